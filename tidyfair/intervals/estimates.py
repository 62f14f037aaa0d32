"""Estimates: values of several groups, how far they vary by chance, and their limits.

Arrays have an entry for each value, of any number of outer groups. Limits are at `z` standard errors of a normal
distribution, the same for all values or one for each; so p-values are found by searching for `z`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from tidyfair.intervals.calibration_errors import calibration_error_limits
from tidyfair.intervals.influence import Influences
from tidyfair.intervals.proportions import (
    Limits,
    difference_limits,
    jeffreys,
    score_of_equality,
    score_ratio,
    student_limits,
    wilson_with_few,
)
from tidyfair.intervals.scales import Scale
from tidyfair.intervals.shares import Share, at_share, on_counts
from tidyfair.intervals.small_samples import counts_with_few_errors, outer_factor
from tidyfair.specs.formulas import Formula
from tidyfair.specs.segments import Array, Floats, Integers, Segments

Side: TypeAlias = tuple[Floats, Floats]

_STEP = 1e-6
"""The part by which a share is moved for a derivative."""


class Estimates(ABC):
    """Values of the same metric in several groups."""

    kind: str
    """The kind of values in the table of methods."""
    sampling: str = "rows"
    value: Floats
    error: Floats
    """The standard error."""
    influences: Influences | None = None
    """The influences of units that groups share; None where values are independent."""

    def __len__(self) -> int:
        return len(self.value)

    def at(self, index: Array) -> Self:
        """Some of the values, by their indices or a mask."""
        chosen: dict[str, Any] = {}
        for own in fields(cast("Any", self)):
            chosen[own.name] = _part_of(getattr(self, own.name), index)
        return replace(cast("Any", self), **chosen)

    @abstractmethod
    def limits(self, z: float | Floats) -> Limits:
        """Limits that are compared with those of other groups."""

    def alone(self, z: float | Floats) -> Limits:
        """Limits of each value by itself."""
        return self.limits(z)

    @property
    def far(self) -> Estimates:
        """The same with limits that hold far out, where those of shares by their score alone are too narrow."""
        return self

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The ends between which limits lie."""
        return 0.0, 1.0

    @property
    def finite(self) -> Estimates:
        """The same with a finite value in place of an infinite one, where there is one to be compared by."""
        return self

    @property
    def widest(self) -> Floats:
        """The standard error on the side on which it is larger."""
        return self.error

    @property
    def shown_error(self) -> Floats:
        """The standard error that results show; nan where values have not been seen to vary, which says nothing."""
        return np.where(self.widest > 0, self.widest, np.nan)

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits; a value of 0 counts as half of its upper limit.

        A lower limit below 0 has no logarithm and bounds nothing.
        """
        lower, upper = self.limits(z)
        value = np.where(self.value > 0, self.value, upper / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(value), (np.log(np.maximum(lower, 0)), np.log(np.maximum(upper, value)))

    def logits(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logits of shares and their limits; a share of 0 or 1 counts as half of the way to its other limit."""
        low, high = self.limits(z)
        share = np.where(self.value <= 0, high / 2, np.where(self.value >= 1, (1 + low) / 2, self.value))
        with np.errstate(divide="ignore"):
            value, lower, upper = (np.log(end / (1 - end)) for end in (share, low, high))
        return value, (np.minimum(lower, value), np.maximum(upper, value))

    def error_of_ratio(self, one: Integers, other: Integers) -> Floats:  # noqa: ARG002 - those of surveys have one
        """The standard errors of ratios of pairs; nan where limits of ratios do not rest on one."""
        return np.full(len(one), np.nan)

    def on_scale(self, scale: str, z: float | Floats) -> tuple[Floats, Limits]:
        """The values on the scale on which pairs are subtracted, and their limits: logits of an `odds_ratio`."""
        if scale == "odds_ratio":
            return self.logits(z)
        return self.logarithms(z) if scale == "ratio" else (self.value, self.limits(z))

    def distances(
        self, one: Integers, other: Integers, z: float | Floats, scale: str,
        correlation: Floats | Literal[0] | None = None,
    ) -> Limits:  # fmt: skip
        """Limits of the distances of pairs on a scale, from those of both values and their correlation."""
        value, (low, high) = self.on_scale(scale, z)
        correlation = self.correlation_of(one, other) if correlation is None else correlation
        return difference_limits(
            value[one], (low[one], high[one]), value[other], (low[other], high[other]), correlation
        )

    def compared(
        self, one: Integers, other: Integers, z: float | Floats, scale: str,
        correlation: Floats | Literal[0] | None = None, *, by_both: bool = False,
    ) -> Limits:  # fmt: skip
        """Limits of the differences, ratios or odds ratios of pairs, which are given by their indices.

        They are those `by_both` values if asked for, also where there is a method for pairs.
        """
        ends = self.ratio_limits(one, other, z) if scale == "ratio" and not by_both else None
        if ends is not None:
            return ends
        low, high = self.distances(one, other, z, scale, correlation)
        with np.errstate(over="ignore"):
            return (low, high) if scale == "difference" else (np.exp(low), np.exp(high))

    def errors_of_limits(self, z: float, scale: str, outer: Integers | None = None) -> Floats:  # noqa: ARG002 - that of shares
        """The standard errors that limits on a scale are of, in some outer groups, or in one."""
        value, (low, high) = self.on_scale(scale, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.widest / np.exp(value) if scale == "ratio" else self.widest
            of_limits = (high - low) / (2 * z)
        # the smaller ones say that chance takes groups less far apart, which is on the safe side
        return np.where(own > 0, np.fmin(own, of_limits), of_limits)

    def correlation_of(self, one: Integers, other: Integers) -> Floats | Literal[0]:
        """The correlations of pairs of values by chance; 0 where all are independent."""
        return 0 if self.influences is None else self.influences.between(one, other)

    def ratio_limits(self, one: Integers, other: Integers, z: float | Floats) -> Limits | None:  # noqa: ARG002 - those of shares
        """Limits of the ratios of pairs; None if they follow from those of the logarithms."""
        return None

    def ratio_statistic(self, one: Integers, other: Integers) -> Floats | None:  # noqa: ARG002 - as above
        """The standard errors at which limits of ratios just hold equality; None if these have to be searched."""
        return None


def _part_of(value: object, index: Array) -> Any:
    """The part of a field that is about some values."""
    if isinstance(value, np.ndarray):
        return cast("Array", value)[index]
    if isinstance(value, tuple):
        return tuple(_part_of(part, index) for part in cast("tuple[object, ...]", value))
    return cast("Any", value).at(index) if hasattr(value, "at") else value


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Estimates):
    """Shares of rows, with limits by Wilson."""

    kind = "rate"
    value: Floats
    rows: Floats
    """The effective number of rows that a share is of."""
    weighted: tuple[Floats, Floats] | None = None
    """The rows that have weights, and how many of them count if weights tell nothing of hits (Kish, 1965)."""
    are_far: bool = False
    """True if limits are the farther of those by the score and of Jeffreys'."""

    @classmethod
    def of_counts(cls, hits: Floats, rows: Floats) -> Shares:
        """Shares from the rows of groups and those of them that count."""
        return cls(hits / rows, rows.astype(float))

    @property
    def error(self) -> Floats:  # pyright: ignore[reportIncompatibleVariableOverride] - computed
        """The standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self.value * (1 - self.value) / self.rows)

    def limits(self, z: float | Floats) -> Limits:
        """Limits by their score."""
        rows = self.rows_at(z)
        lower, upper = wilson_with_few(self.value, rows, z)
        if not self.are_far:
            return lower, upper
        low, high = jeffreys(self.value, rows, z)
        return np.minimum(lower, low), np.maximum(upper, high)

    @property
    def far(self) -> Shares:
        """The same with limits that hold far out."""
        return replace(self, are_far=True)

    def rows_at(self, z: float | Floats) -> Floats:
        """The effective rows for limits: as few as weights leave in either way, and fewer for unsure variances.

        Korn and Graubard (1998), Confidence intervals for proportions with small expected number of positive counts.
        """
        if self.weighted is None:
            return self.rows
        of_rows, of_even = (student_limits(z, np.maximum(rows - 1, 1)) for rows in self.weighted)
        return np.fmin(self.rows, self.weighted[1]) * (of_rows / of_even) ** 2

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits; zero counts get a continuity correction of half a row."""
        (lower, upper), rows = self.limits(z), self.rows_at(z)
        value = (self.value * rows + 0.5) / (rows + 1)
        with np.errstate(divide="ignore"):
            return np.log(value), (np.log(lower), np.log(np.maximum(upper, value)))

    def errors_of_limits(self, z: float, scale: str, outer: Integers | None = None) -> Floats:
        """The standard errors of shares, or of their logarithms, at the share of their outer group if that has less.

        The error of a share of few rows goes with the share, so that large shares by chance seem to vary more.
        """
        segments = Segments.of(np.zeros(len(self), dtype=np.int64) if outer is None else outer)
        hits, rows = (segments.to_rows(segments.sum(own)) for own in (self.value * self.rows, self.rows))
        of_all = (hits + 0.5) / (rows + 1)
        if scale == "ratio":
            share = (self.value * self.rows + 0.5) / (self.rows + 1)
            return np.sqrt(np.minimum((1 - share) / share, (1 - of_all) / of_all) / self.rows)
        own = super().errors_of_limits(z, scale, outer)
        return np.minimum(own, np.sqrt(of_all * (1 - of_all) / self.rows))

    def ratio_limits(self, one: Integers, other: Integers, z: float | Floats) -> Limits:
        """Limits of the ratios of pairs by their score (Miettinen and Nurminen, 1985)."""
        rows = self.rows_at(z)
        of_pairs = np.broadcast_to(z, rows.shape)[one]
        return score_ratio(self.value[one], rows[one], self.value[other], rows[other], of_pairs)

    def ratio_statistic(self, one: Integers, other: Integers) -> Floats | None:
        """The statistic of the score test of equal shares, which the limits of their ratio invert."""
        if self.weighted is not None:
            # the rows that limits are of depend on the level
            return None
        return score_of_equality(self.value[one], self.rows[one], self.value[other], self.rows[other])


@dataclass(frozen=True, eq=False, repr=False)
class Smooth(Estimates):
    """Values of a function of sums or ranks, with limits by Student's t on the scale of their range."""

    value: Floats
    error: Floats
    freedom: Floats
    scale: Scale
    below: Side
    """Where the lower limit is measured from, and the standard error on the scale."""
    above: Side
    skew: Floats | None = None
    """The skewness of values on the scale."""
    influences: Influences | None = None
    kind: str = "smooth"
    sampling: str = "rows"

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The ends between which limits lie: none on a side on which the value lies beyond."""
        low, high = self.scale.low, self.scale.high
        return np.where(self.value < low, -np.inf, low), np.where(self.value > high, np.inf, high)

    @property
    def finite(self) -> Smooth:
        """The same with the value of a quarter of a row more in each cell in place of an infinite one."""
        infinite = np.isinf(self.value)
        return replace(self, value=np.where(infinite, self.above[0], self.value)) if infinite.any() else self

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values, which include these."""
        factor = student_limits(z, self.freedom)
        lower, upper = self._end(self.below, factor, -1), self._end(self.above, factor, 1)
        low, high = self.bounds
        return np.minimum(np.maximum(lower, low), self.value), np.maximum(np.minimum(upper, high), self.value)

    def _end(self, side: Side, factor: Floats, sign: Literal[-1, 1]) -> Floats:
        """The limits on one side, at so many standard errors."""
        centre, spread = side
        away = sign * (factor if self.skew is None else outer_factor(factor, sign * self.skew))
        inside = self.scale.holds(centre) & (np.isfinite(spread) | np.isnan(self.error))
        with np.errstate(invalid="ignore"):
            on_scale = self.scale.inverse(self.scale.transform(centre) + away * spread)
            end = np.where(inside, on_scale, centre + away * self.error)
        # values that are infinite as soon as some row occurs: if one has been seen, the true value is so for certain
        beyond = self.scale.low if sign < 0 else self.scale.high
        return np.where(np.isinf(centre), np.where(self.value == centre, centre, beyond), end)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OfLabels(Smooth):
    """Values of the labels of rows without weights, whose few errors may be rarer than they seem."""

    formula: Formula
    counts: tuple[Floats, Floats, Floats, Floats]
    """The counts of tp, fn, fp and tn."""

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values, as far as values with errors as rare as they may be."""
        lower, upper = super().limits(z)
        counts = counts_with_few_errors(self.counts, z)
        # formulas may give numbers for counts that are none, and what is not known to vary has no limits
        unknown = np.isnan(counts[0]) | np.isnan(self.error)
        with_few = np.where(unknown, np.nan, on_counts(self.formula, counts))
        return np.fmin(lower, with_few), np.fmax(upper, with_few)


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationErrors(Estimates):
    """Sums of the distances of bins from calibration, which chance makes larger."""

    kind = "calibration_error"
    value: Floats
    error: Floats
    gap: Floats
    """The distances with their sign: values by bins."""
    errors_of_gaps: Floats
    freedom: Floats

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all errors, which include the values: debiased ones may be below 0."""
        factor = student_limits(z, self.freedom)
        lower, upper = calibration_error_limits(self.gap, self.errors_of_gaps, self.error, factor)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)


@dataclass(frozen=True, eq=False, repr=False)
class Surveyed(Smooth):
    """Values from a survey: each has limits on its scale, and comparisons have those of their standard errors."""

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values that are as far from them on either side, to be compared."""
        half = student_limits(z, self.freedom) * self.error
        return self.value - half, self.value + half

    def alone(self, z: float | Floats) -> Limits:
        """Limits of all values, each by itself."""
        return super().limits(z)

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits, by the errors of logarithms."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._transformed(np.log(self.value), 1 / self.value, z)

    def logits(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logits of shares and their limits, by the errors of logits."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._transformed(np.log(self.value / (1 - self.value)), 1 / (self.value * (1 - self.value)), z)

    def _transformed(self, value: Floats, slope: Floats, z: float | Floats) -> tuple[Floats, Limits]:
        """Transformed values, and limits by the errors that the slope of the transformation gives them."""
        half = student_limits(z, self.freedom) * self.error * slope
        return value, (value - half, value + half)

    def error_of_ratio(self, one: Integers, other: Integers) -> Floats:
        """The standard errors of ratios of pairs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (self.error[side] / self.value[side] for side in (one, other))
            square = first**2 + second**2 - 2 * self.correlation_of(one, other) * first * second
            return np.abs(self.value[one] / self.value[other]) * np.sqrt(square.clip(0))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MadeOfShares(Smooth):
    """Sums of shares of different rows, with limits from those of the shares (MOVER: Zou, Huang and Zhang, 2009)."""

    kind: str = "sum_of_rates"
    factors: tuple[float, ...]
    shares: tuple[Shares, ...]

    @property
    def far(self) -> MadeOfShares:
        """The same with limits that hold far out."""
        return replace(self, shares=tuple(share.far for share in self.shares))

    @property
    def shown_error(self) -> Floats:
        """The standard error, from those of the shares."""
        variances = [(factor * share.shown_error) ** 2 for factor, share in zip(self.factors, self.shares, strict=True)]
        return np.sqrt(np.sum(variances, axis=0))

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all sums."""
        below, above = np.zeros_like(self.value), np.zeros_like(self.value)
        for factor, share in zip(self.factors, self.shares, strict=True):
            low, high = share.limits(z)
            down, up = factor * (share.value - low), factor * (high - share.value)
            below += (down if factor > 0 else up) ** 2
            above += (up if factor > 0 else down) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OfShare(Smooth):
    """Values that rise with a share, with the values at its limits."""

    kind: str = "function_of_rate"
    formula: Formula
    share: Share
    shares: Shares

    @property
    def far(self) -> OfShare:
        """The same with limits that hold far out."""
        return replace(self, shares=self.shares.far)

    @property
    def shown_error(self) -> Floats:
        """The standard error, from that of the share."""
        share = self.shares.value
        low, high = (share - _STEP).clip(0), (share + _STEP).clip(max=1)
        lower, upper = self._at((low, high))
        return (upper - lower) / (high - low) * self.shares.shown_error

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values."""
        return self._at(self.shares.limits(z))

    def _at(self, limits: Limits) -> Limits:
        lower, upper = limits
        return at_share(self.formula, self.share, lower), at_share(self.formula, self.share, upper)
