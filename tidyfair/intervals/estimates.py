"""Estimates: values of several groups, how far they vary by chance, and their limits.

Values vary because their sampling units might have been others: rows of label cells, random parts of rows, clusters,
primary sampling units of a survey, or replicate weights. Arrays have an entry for each value, of any number of outer
groups. Limits are at `z` standard errors of a normal distribution, the same for all values or one for each; so p-values
are found by searching for `z`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np

from tidyfair.intervals.proportions import (
    Limits,
    difference_limits,
    jeffreys,
    score_of_equality,
    score_ratio,
    student_limits,
    wilson_with_few,
)
from tidyfair.intervals.shares import Share, SumOfShares, at_share, on_counts
from tidyfair.intervals.small_samples import counts_with_few_errors, outer_factor
from tidyfair.specs import Array, Booleans, Floats, Integers, Segments
from tidyfair.specs.formulas import Formula, RowSums

Side: TypeAlias = tuple[Floats, Floats]
"""One side of an interval: the value its limit is measured from, and the standard error on the scale."""
Counts: TypeAlias = tuple[Floats, Floats, Floats, Floats]
"""Counts of tp, fn, fp and tn."""

_STEP = 1e-6
"""The part by which a share is moved for a derivative."""
_MOST_NUMBERS = 2**22
"""The most numbers of an array at once."""
_ROUNDED = 1e-12
"""The relative difference of sums of equal numbers is smaller."""


# Scales


@dataclass(frozen=True)
class Scale:
    """The scale on which values are more nearly normal: logits between two ends, logarithms above or below one.

    That of a correlation, from -1 to 1, is twice Fisher's z.
    """

    low: float
    high: float

    @classmethod
    def of(cls, formula: Formula, ends: tuple[float, float]) -> Scale:
        """The scale of the values of a formula."""
        if not isinstance(formula, RowSums):
            return cls(*ends)
        return SquaredCorrelation(0.0, 1.0) if formula.squared_correlation else cls(*(formula.range_of_limits or ends))

    def holds(self, values: Floats) -> Booleans:
        """The values strictly inside of the range, as a mask."""
        return (values > self.low) & (values < self.high)

    def transform(self, values: Floats) -> Floats:
        """The values on the scale; not finite at the ends of the range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.log(values - self.low) if math.isfinite(self.low) else np.zeros_like(values)
            below = np.log(self.high - values) if math.isfinite(self.high) else np.zeros_like(values)
        return values if self._is_identity else above - below

    def slope(self, values: Floats) -> Floats:
        """The change on the scale for a change of the values."""
        if self._is_identity:
            return np.ones_like(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            above = 1 / (values - self.low) if math.isfinite(self.low) else 0.0
            below = 1 / (self.high - values) if math.isfinite(self.high) else 0.0
        return np.zeros_like(values) + above + below

    def inverse(self, numbers: Floats) -> Floats:
        """The values of numbers on the scale."""
        if self._is_identity:
            return numbers
        with np.errstate(over="ignore"):
            if math.isinf(self.high):
                return self.low + np.exp(numbers)
            if math.isinf(self.low):
                return self.high - np.exp(-numbers)
            return self.low + (self.high - self.low) / (1 + np.exp(-numbers))

    @property
    def _is_identity(self) -> bool:
        return math.isinf(self.low) and math.isinf(self.high)


@dataclass(frozen=True)
class SquaredCorrelation(Scale):
    """The scale of the correlation, Fisher's z, because a square near 0 has no normal distribution."""

    def transform(self, values: Floats) -> Floats:
        """Fisher's z of the root."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.arctanh(np.sqrt(values))

    def slope(self, values: Floats) -> Floats:
        """The change of Fisher's z for a change of the square."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1 / (2 * np.sqrt(values) * (1 - values))

    def inverse(self, numbers: Floats) -> Floats:
        """The squares of correlations; 0 where their sign is not known."""
        return np.tanh(np.maximum(numbers, 0)) ** 2


# Influences


@dataclass(frozen=True, eq=False)
class Influences:
    """The influences of sampling units that groups share on values, in standard errors of these.

    The squares of the influences of all units add up to the variance of a value, and the products of those on two
    values to their covariance (Tukey, 1958; Hampel, 1974). Entries are sorted by value and unit.
    """

    value: Integers
    unit: Integers
    amount: Floats
    sign: Floats
    """-1 where products are subtracted, as those of the means of strata are."""
    of: Integers
    """The index of each estimate among the values."""

    @classmethod
    def of_units(
        cls, amount: Array, group: Integers, unit: Integers, groups: int, sign: float | Floats = 1.0
    ) -> Influences:
        """The influences of the units of groups: an array of units of groups by labels."""
        labels: int = amount.shape[1]
        value: Integers = (group[:, None] * labels + np.arange(labels)).ravel()
        units, signs = (np.repeat(np.broadcast_to(own, len(group)), labels) for own in (unit, sign))
        order = np.lexsort((units, value))
        amount = np.nan_to_num(amount.ravel()[order])
        return cls(value[order], units[order], amount, signs[order], np.arange(groups * labels))

    def at(self, index: Array) -> Influences:
        """The influences on some of the estimates."""
        return replace(self, of=self.of[index])

    def with_rests(self, rests: Influences) -> Influences:
        """These influences, and then those of the same units on the values of rests."""
        count = int(max(self.value.max(initial=-1), self.of.max(initial=-1))) + 1
        columns = {name: np.append(getattr(self, name), getattr(rests, name)) for name in ("unit", "amount", "sign")}
        value, of = np.append(self.value, rests.value + count), np.append(self.of, rests.of + count)
        return Influences(value, of=of, **columns)

    def between(self, one: Integers, other: Integers) -> Floats:
        """The correlations of pairs of estimates."""
        step = max(1, _MOST_NUMBERS // max(1, int(np.bincount(self.value).max(initial=1))))
        parts = [
            self._between(self.of[one[start : start + step]], self.of[other[start : start + step]])
            for start in range(0, len(one), step)
        ]
        return np.concatenate([*parts, np.zeros(0)]).clip(-1, 1)

    def _between(self, one: Integers, other: Integers) -> Floats:
        """The sums of the products of the influences of the units that two values share."""
        first, last = (np.searchsorted(self.value, one, side=side) for side in ("left", "right"))
        sizes = last - first
        pair = np.repeat(np.arange(len(one)), sizes)
        entry = np.arange(len(pair)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        keys, units = self._keys
        wanted = other[pair] * units + self.unit[entry]
        found = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
        amount = self.amount[entry] * np.where(keys[found] == wanted, self.amount[found], 0.0)
        return np.bincount(pair, amount * self.sign[entry], len(one)).astype(float, copy=False)

    @cached_property
    def _keys(self) -> tuple[Integers, int]:
        """The value and the unit of each entry as one number, and how many units there are."""
        units = int(self.unit.max(initial=-1)) + 1
        return self.value * units + self.unit, units


def known_errors(error: Floats, value: Floats, rounding: float = _ROUNDED) -> Floats:
    """Errors; nan where they are those of rounding, which says nothing about how far values vary."""
    return np.where(error > rounding * np.abs(value), error, np.nan)


# Estimates


class Estimates(ABC):
    """Values of the same metric in several groups."""

    kind: str
    """The kind of values in the table of methods."""
    sampling: str = "rows"
    value: Floats
    error: Floats
    """The standard error, on the side on which it is larger."""
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

    def with_rests(self, rests: Self) -> Self:
        """These values, and then those of the rows outside of each group."""
        both = [(own.name, getattr(self, own.name), getattr(rests, own.name)) for own in fields(cast("Any", self))]
        chosen = {name: _joined(own, of_rests) for name, own, of_rests in both}
        return replace(cast("Any", self), **chosen | {"sampling": rests.sampling})

    @abstractmethod
    def limits(self, z: float | Floats) -> Limits:
        """Limits that are compared with those of other groups."""

    def alone(self, z: float | Floats) -> Limits:
        """Limits of each value by itself."""
        return self.limits(z)

    def far(self, which: Booleans) -> Estimates:  # noqa: ARG002 - those of shares
        """The same with limits of some values that hold far out, where those by the score alone are too narrow."""
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
    def shown_error(self) -> Floats:
        """The standard error that results show; nan where values have not been seen to vary, which says nothing."""
        return np.where(self.error > 0, self.error, np.nan)

    def error_compared(self, one: Integers, other: Integers, scale: str) -> Floats:
        """The standard errors of comparisons of pairs on a scale; nan where their limits do not follow from one."""
        if scale != "difference":
            return np.full(len(one), np.nan)
        first, second = self.shown_error[one], self.shown_error[other]
        with np.errstate(invalid="ignore"):
            return np.sqrt(first**2 + second**2 - 2 * self.correlation_of(one, other) * first * second)

    def on_scale(self, scale: str, z: float | Floats) -> tuple[Floats, Limits]:
        """The values on the scale on which pairs are subtracted, and their limits: logits of an `odds_ratio`.

        In logarithms a value of 0 counts as half of its upper limit, in logits a share of 0 or 1 as half of the way to
        its other limit. A lower limit below 0 has no logarithm and bounds nothing.
        """
        low, high = self.limits(z)
        if scale == "difference":
            return self.value, (low, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            if scale == "ratio":
                value = np.where(self.value > 0, self.value, high / 2)
                return np.log(value), (np.log(np.maximum(low, 0)), np.log(np.maximum(high, value)))
            share = np.where(self.value <= 0, high / 2, np.where(self.value >= 1, (1 + low) / 2, self.value))
            value, lower, upper = (np.log(end / (1 - end)) for end in (share, low, high))
        return value, (np.minimum(lower, value), np.maximum(upper, value))

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
        """The standard errors that limits on a scale amount to, in some outer groups, or in one."""
        value, (low, high) = self.on_scale(scale, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.error / np.exp(value) if scale == "ratio" else self.error
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


def _joined(value: object, other: object) -> Any:
    """A field that is about some values, and then the same of others."""
    if isinstance(value, np.ndarray):
        return np.append(cast("Array", value), cast("Array", other))
    if isinstance(value, tuple):
        return tuple(map(_joined, cast("tuple[object, ...]", value), cast("tuple[object, ...]", other)))
    if other is None:
        return None
    return cast("Any", value).with_rests(other) if isinstance(value, Estimates | Influences) else value


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
    """The rows with weight, and their effective number if weights are independent of hits (Kish, 1965)."""
    are_far: Booleans | None = None
    """Mask of the shares whose limits are the farther of those by the score and of Jeffreys'."""
    influences: Influences | None = None
    sampling: str = "rows"
    error_by_judge: Floats | None = None
    """The standard error of PPI++ of shares from labels of people and of a judge."""

    @classmethod
    def of_counts(cls, hits: Floats, rows: Floats) -> Shares:
        """Shares from the rows of groups and those of them that count."""
        return cls(hits / rows, rows.astype(float))

    @cached_property
    def error(self) -> Floats:  # pyright: ignore[reportIncompatibleVariableOverride] - computed
        """The standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self.value * (1 - self.value) / self.rows)

    @property
    def shown_error(self) -> Floats:
        """The standard error that results show."""
        error = self.error if self.error_by_judge is None else self.error_by_judge
        return np.where(error > 0, error, np.nan)

    def limits(self, z: float | Floats) -> Limits:
        """Limits by their score."""
        rows = self.rows_at(z)
        lower, upper = wilson_with_few(self.value, rows, z)
        if self.are_far is None:
            return lower, upper
        low, high = jeffreys(self.value, rows, z)
        lower = np.where(self.are_far, np.minimum(lower, low), lower)
        return lower, np.where(self.are_far, np.maximum(upper, high), upper)

    def far(self, which: Booleans) -> Shares:
        """The same with limits of some shares that hold far out."""
        return replace(self, are_far=which)

    def rows_at(self, z: float | Floats) -> Floats:
        """The effective rows for limits: as few as weights leave in either way, and fewer for unsure variances.

        Korn and Graubard (1998), Confidence intervals for proportions with small expected number of positive counts.
        """
        if self.weighted is None:
            return self.rows
        of_rows, of_even = (student_limits(z, np.maximum(rows - 1, 1)) for rows in self.weighted)
        return np.fmin(self.rows, self.weighted[1]) * (of_rows / of_even) ** 2

    def on_scale(self, scale: str, z: float | Floats) -> tuple[Floats, Limits]:
        """The values on a scale and their limits; in logarithms half a row more is a hit, and half a row none."""
        if scale != "ratio":
            return super().on_scale(scale, z)
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

    def ratio_limits(self, one: Integers, other: Integers, z: float | Floats) -> Limits | None:
        """Limits of the ratios of pairs by their score (Miettinen and Nurminen, 1985), if they share no rows."""
        if self.influences is not None:
            return None
        rows = self.rows_at(z)
        of_pairs = np.broadcast_to(z, rows.shape)[one]
        return score_ratio(self.value[one], rows[one], self.value[other], rows[other], of_pairs)

    def ratio_statistic(self, one: Integers, other: Integers) -> Floats | None:
        """The statistic of the score test of equal shares, which the limits of their ratio invert."""
        if self.weighted is not None or self.influences is not None:
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
    above: Side
    skew: Floats | None = None
    """The skewness of values on the scale, from the influences of their units."""
    influences: Influences | None = None
    kind: str = "smooth"
    sampling: str = "rows"
    formula: Formula | None = None
    counts: Counts | None = None
    """The counts of the labels of rows without weights, whose few errors may be rarer than they seem."""

    @classmethod
    def about(cls, value: Floats, error: Floats, freedom: Any, scale: Scale, **others: Any) -> Self:
        """Values with some standard errors, from which both limits are measured: arrays of groups by labels."""
        freedom = np.broadcast_to(freedom, error.shape).ravel()
        side = (value.ravel(), (error * scale.slope(value)).ravel())
        return cls(value.ravel(), error.ravel(), freedom, scale, side, side, **others)

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
        """Limits of all values, which include these; as far as values with errors as rare as they may be."""
        factor = student_limits(z, self.freedom)
        lower, upper = self._end(self.below, factor, -1), self._end(self.above, factor, 1)
        low, high = self.bounds
        lower, upper = np.minimum(np.maximum(lower, low), self.value), np.maximum(np.minimum(upper, high), self.value)
        if self.counts is None or self.formula is None:
            return lower, upper
        counts = counts_with_few_errors(self.counts, z)
        # formulas may give numbers for counts that are none, and what is not known to vary has no limits
        unknown = np.isnan(counts[0]) | np.isnan(self.error)
        with_few = np.where(unknown, np.nan, on_counts(self.formula, counts))
        return np.fmin(lower, with_few), np.fmax(upper, with_few)

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
class MadeOfShares(Smooth):
    """Values that rise with a share, or sums of shares of different rows, with limits from those of the shares."""

    made_of: Share | SumOfShares
    shares: tuple[Shares, ...]

    @classmethod
    def of(cls, values: Smooth, made_of: Share | SumOfShares) -> MadeOfShares:
        """Values of the counts of labels."""
        counts: dict[str, Floats] = dict(zip(("tp", "fn", "fp", "tn"), cast("Counts", values.counts), strict=True))
        parts = [made_of] if isinstance(made_of, Share) else [share for _, share in made_of.shares]
        shares = tuple(
            Shares.of_counts(
                *(np.sum([counts[cell] for cell in sorted(cells)], axis=0) for cells in (own.holds, own.among))
            )
            for own in parts
        )
        columns: dict[str, Any] = {own.name: getattr(values, own.name) for own in fields(values)}
        columns["kind"] = "function_of_rate" if isinstance(made_of, Share) else "sum_of_rates"
        return cls(**columns, made_of=made_of, shares=shares)

    def moved(self, values: Smooth, shift: Floats, ratio: Floats) -> MadeOfShares:
        """The same at values that are shifted, whose variances have some ratio to the present ones."""
        to_share = 0.0 if isinstance(self.made_of, SumOfShares) else np.nan_to_num(shift / self._slopes[0])
        shares = tuple(Shares((share.value + to_share).clip(0, 1), share.rows / ratio) for share in self.shares)
        names = ("value", "error", "below", "above", "sampling")
        return replace(self, shares=shares, **{name: getattr(values, name) for name in names})

    def far(self, which: Booleans) -> MadeOfShares:
        """The same with limits of some values that hold far out."""
        return replace(self, shares=tuple(share.far(which) for share in self.shares))

    @property
    def shown_error(self) -> Floats:
        """The standard error, from those of the shares."""
        variances = [(factor * share.shown_error) ** 2 for factor, share in zip(self._slopes, self.shares, strict=True)]
        return np.sqrt(np.sum(variances, axis=0))

    @property
    def _slopes(self) -> list[Any]:
        """The changes of values for a little more of each share."""
        if isinstance(self.made_of, SumOfShares):
            return [factor for factor, _ in self.made_of.shares]
        share = self.shares[0].value
        low, high = (share - _STEP).clip(0), (share + _STEP).clip(max=1)
        return [(self._at(self.made_of, high) - self._at(self.made_of, low)) / (high - low)]

    def _at(self, made_of: Share, share: Floats) -> Floats:
        """The values at some values of the share with which they rise."""
        return at_share(cast("Formula", self.formula), made_of, share)

    def limits(self, z: float | Floats) -> Limits:
        """The values at the limits of the share; limits of sums by MOVER (Zou, Huang and Zhang, 2009)."""
        if isinstance(self.made_of, Share):
            low, high = self.shares[0].limits(z)
            return self._at(self.made_of, low), self._at(self.made_of, high)
        below, above = np.zeros_like(self.value), np.zeros_like(self.value)
        for factor, share in zip(self._slopes, self.shares, strict=True):
            low, high = share.limits(z)
            down, up = factor * (share.value - low), factor * (high - share.value)
            below += (down if factor > 0 else up) ** 2
            above += (up if factor > 0 else down) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)


@dataclass(frozen=True, eq=False, repr=False)
class Surveyed(Smooth):
    """Values from a survey: each has limits on its scale, and comparisons have those of their standard errors."""

    design_effect: Floats | None = None
    """The variance of values over that of as many rows drawn one by one; nan where it is not known."""

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values that are as far from them on either side, to be compared."""
        return self.on_scale("difference", z)[1]

    def alone(self, z: float | Floats) -> Limits:
        """Limits of all values, each by itself."""
        return super().limits(z)

    def on_scale(self, scale: str, z: float | Floats) -> tuple[Floats, Limits]:
        """The values on a scale and their limits, by the errors that the slope of the scale gives them."""
        value, slope = self.value, np.ones_like(self.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            if scale == "ratio":
                value, slope = np.log(value), 1 / value
            elif scale == "odds_ratio":
                value, slope = np.log(value / (1 - value)), 1 / (value * (1 - value))
            half = student_limits(z, self.freedom) * self.error * slope
            return value, (value - half, value + half)

    def error_compared(self, one: Integers, other: Integers, scale: str) -> Floats:
        """The standard errors of pairs on a scale; nan of odds ratios."""
        if scale != "ratio":
            return super().error_compared(one, other, scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (self.error[side] / self.value[side] for side in (one, other))
            square = first**2 + second**2 - 2 * self.correlation_of(one, other) * first * second
            return np.abs(self.value[one] / self.value[other]) * np.sqrt(square.clip(0))
