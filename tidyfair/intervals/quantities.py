"""The same quantity of several groups, with limits of each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from tidyfair.intervals.jackknife import Correlations
from tidyfair.intervals.proportions import (
    area,
    clopper_pearson,
    corrected_wilson,
    on_logits,
    score_of_equality,
    score_ratio,
    student_limits,
    wilson,
    z_value,
)
from tidyfair.intervals.shares import at_share
from tidyfair.specs.survey_designs import ReplicateWeights, SurveyDesign

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    import numpy as np

    from tidyfair.intervals.proportions import Limits
    from tidyfair.intervals.scales import Scale
    from tidyfair.intervals.shares import Share
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.segments import Array, Floats

__all__: list[str] = []

FEW = 15
"""With fewer rows of a class the normal approximation of an area is not used."""
_NORMAL = 10_000
"""Counts with a larger variance are normal to three digits."""
_STEP = 1e-6
"""The part by which a share is moved for a derivative."""


def _in_reach(errors: Floats) -> Floats:
    """Errors in a unit, a power of 2, in which the largest is about 1, so that squares are in reach of 32 bits."""
    import numpy as np

    _, exponent = np.frexp(np.max(errors, where=np.isfinite(errors), initial=0.0))
    return np.ldexp(errors, -exponent)


@dataclass(frozen=True)
class Interval:
    """An interval and the name of its method."""

    lower: float
    upper: float
    error: float
    method: str
    one_sided: bool = False
    """True if only one end is known, and the other is nan."""


class Quantities(ABC):
    """The same quantity of several groups."""

    difference_method: ClassVar[str]
    """The name of the method for the difference of two groups."""
    ratio_method: ClassVar[str]
    odds_ratio_method: ClassVar[str] = "mover"
    method_of_ranges: ClassVar[str] = "pairwise"
    """The name of the method for the largest distance of several groups."""
    value: Floats
    error: Floats
    """The standard error."""

    def __len__(self) -> int:
        return len(self.value)

    def at(self, groups: Array) -> Self:
        """The quantities of some groups, by their indices."""
        chosen: dict[str, Any] = {}
        for own in fields(cast("Any", self)):
            chosen[own.name] = _of_groups(getattr(self, own.name), groups)
        return replace(cast("Any", self), **chosen)

    @property
    def order(self) -> Array:
        """The indices of groups by their values and errors, so that draws do not depend on how groups are called."""
        import numpy as np

        return np.lexsort((self.widest, self.value))

    @property
    @abstractmethod
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""

    @abstractmethod
    def limits(self, z: float | Floats) -> Limits:
        """Limits of all quantities, at so many standard errors of a normal distribution, or at as many as each has."""

    def alone(self, z: float) -> Limits:
        """Limits of all quantities, each by itself and not to be compared."""
        return self.limits(z)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends between which limits lie."""
        return 0.0, 1.0

    @property
    def finite(self) -> Quantities:
        """The same with a finite value in place of an infinite one, where there is one to be compared by."""
        return self

    @property
    def widest(self) -> Floats:
        """The standard error on the side on which it is larger."""
        return self.error

    @property
    def shown_error(self) -> Floats:
        """The standard error that results show; nan where values have not been seen to vary, which says nothing."""
        import numpy as np

        return np.where(self.widest > 0, self.widest, np.nan)

    def intervals(self, level: float, *, exact: bool = False) -> list[Interval]:
        """The intervals of all quantities."""
        (lower, upper), methods = self._limits_at(level, exact=exact)
        ends = zip(lower.tolist(), upper.tolist(), self.shown_error.tolist(), methods, strict=True)
        return [Interval(*columns) for columns in ends]

    def _limits_at(self, level: float, *, exact: bool) -> tuple[Limits, list[str]]:  # noqa: ARG002 - shares have them
        return self.alone(z_value(level)), self.methods

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits; a value of 0 counts as half of its upper limit."""
        import numpy as np

        lower, upper = self.limits(z)
        value = np.where(self.value > 0, self.value, upper / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(value), (np.log(lower), np.log(np.maximum(upper, value)))

    def logits(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logits of shares and their limits; a share of 0 or 1 counts as half of the way to its other limit."""
        import numpy as np

        low, high = self.limits(z)
        share = np.where(self.value <= 0, high / 2, np.where(self.value >= 1, (1 + low) / 2, self.value))
        with np.errstate(divide="ignore"):
            value, lower, upper = (np.log(end / (1 - end)) for end in (share, low, high))
        return value, (np.minimum(lower, value), np.maximum(upper, value))

    def error_of_ratio(self, one: Any, other: Any) -> Floats:  # noqa: ARG002 - those of surveys have one
        """The standard errors of the ratios of groups; nan where limits of ratios do not rest on one."""
        import numpy as np

        return np.full(len(one), np.nan)

    def deviates(self, times: int, random: np.random.Generator, *, logarithm: bool) -> tuple[Array, Array]:
        """Deviations of estimates from the truth by chance, `times` over, and their estimated variances.

        The truth is taken to be the estimate, shrunk a little to the middle. Groups are rows of single-precision
        arrays, so that those that are compared stay in the cache; deviations are in a unit that all groups share.
        """
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            error = self.widest / self.value if logarithm else _in_reach(self.widest)
            error = error.astype(np.float32)[:, None]
            normal = np.ascontiguousarray(random.standard_normal((times, len(self))).T, dtype=np.float32)
            return normal * error, np.broadcast_to(error**2, normal.shape)

    @property
    def studentized_logarithms(self) -> tuple[Floats, Floats] | None:
        """The logarithms and their standard errors as `deviates` has them; None if limits are nearly the same."""
        return None

    def errors_of_limits(self, z: float, *, logarithm: bool) -> Floats:
        """The standard errors that limits are of, or those of the logarithms."""
        import numpy as np

        value, (low, high) = self.logarithms(z) if logarithm else (self.value, self.limits(z))
        with np.errstate(divide="ignore", invalid="ignore"):
            own = self.widest / np.exp(value) if logarithm else self.widest
            of_limits = (high - low) / (2 * z)
        # the smaller ones say that chance takes groups less far apart, which is on the safe side
        return np.where(own > 0, np.fmin(own, of_limits), of_limits)

    @property
    def is_independent(self) -> bool:
        """True if chance moves groups independently of each other."""
        return True

    def correlation_of(self, one: Any, other: Any) -> Floats | Literal[0]:  # noqa: ARG002 - those that share clusters have one
        """The correlation of the values of groups by chance; 0 where they are independent."""
        return 0

    def ratio_limits(self, one: Any, other: Any, z: float | Floats) -> Limits | None:  # noqa: ARG002 - shares have them
        """Limits of the ratio of two groups; None if they follow from those of the logarithms."""
        return None

    def ratio_statistic(self, one: Any, other: Any) -> Floats | None:  # noqa: ARG002 - as above
        """The standard errors at which limits of the ratio just hold equality; None if these have to be searched."""
        return None


def _of_groups(value: object, groups: Array) -> Any:
    """The part of a field of quantities that is about some groups."""
    import numpy as np

    if isinstance(value, Quantities | Weighted | Correlations):
        return value.at(groups)
    if isinstance(value, tuple):
        return tuple(_of_groups(part, groups) for part in cast("tuple[object, ...]", value))
    if not isinstance(value, np.ndarray):
        return value
    numbers = cast("Array", value)
    return numbers[groups] if numbers.ndim == 1 else numbers[np.ix_(groups, groups)]


@dataclass(frozen=True, eq=False, repr=False)
class Weighted:
    """The rows of shares with weights, and how many of them count if weights tell nothing of hits (Kish, 1965)."""

    rows: Floats
    even: Floats

    def at(self, groups: Array) -> Weighted:
        """The rows of some groups, by their indices."""
        return Weighted(self.rows[groups], self.even[groups])

    def left_of(self, effective: Floats, z: float | Floats) -> Floats:
        """The effective rows for limits: as few as weights leave in either way, and fewer for unsure variances.

        Korn and Graubard (1998), Confidence intervals for proportions with small expected number of positive counts.
        """
        import numpy as np

        freedom = [np.maximum(rows - 1, 1) for rows in (self.rows, self.even)]
        of_rows, of_even = (student_limits(z, own) for own in freedom)
        return np.fmin(effective, self.even) * (of_rows / of_even) ** 2


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Quantities):
    """Shares of rows, with limits by Wilson."""

    difference_method = "newcombe"
    ratio_method = "miettinen_nurminen"
    value: Floats
    rows: Floats
    """The effective number of rows that a share is of."""
    weighted: Weighted | None = None
    """The rows by their weights, which say how unsure that number is."""

    @classmethod
    def of_counts(cls, hits: Floats, rows: Floats) -> Shares:
        """Shares from the rows of groups and those of them that count."""
        return cls(hits / rows, rows.astype(float))

    @property
    def error(self) -> Floats:  # pyright: ignore[reportIncompatibleVariableOverride] - computed
        """The standard error."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self.value * (1 - self.value) / self.rows)

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return ["wilson"] * len(self)

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all shares."""
        return wilson(self.value, self._rows_at(z), z)

    def alone(self, z: float) -> Limits:
        """Limits of all shares, each by itself."""
        return corrected_wilson(self.value, self._rows_at(z), z)

    def _rows_at(self, z: float | Floats) -> Floats:
        """The effective rows for limits at so many standard errors."""
        return self.rows if self.weighted is None else self.weighted.left_of(self.rows, z)

    def _limits_at(self, level: float, *, exact: bool) -> tuple[Limits, list[str]]:
        if exact:
            return clopper_pearson(self.value, self.rows, (1 - level) / 2), ["clopper_pearson"] * len(self)
        return super()._limits_at(level, exact=exact)

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits; zero counts get a continuity correction of half a row."""
        import numpy as np

        lower, upper = self.limits(z)
        rows = self._rows_at(z)
        value = (self.value * rows + 0.5) / (rows + 1)
        with np.errstate(divide="ignore"):
            return np.log(value), (np.log(lower), np.log(np.maximum(upper, value)))

    @property
    def studentized_logarithms(self) -> tuple[Floats, Floats]:
        """The logarithms and their standard errors, with half a row more: of few rows, limits by score are narrower."""
        import numpy as np

        share = (self.value * self.rows + 0.5) / (self.rows + 1)
        return np.log(share), np.sqrt((1 - share) / (share * self.rows))

    def errors_of_limits(self, z: float, *, logarithm: bool) -> Floats:
        """The standard errors of the shares, or those of the logarithms, at the share of all groups if that has less.

        The error of a share of few rows goes with the share, so that large shares by chance seem to vary more.
        """
        import numpy as np

        of_all = (float(self.value @ self.rows) + 0.5) / (float(self.rows.sum()) + 1)
        if logarithm:
            return np.minimum(self.studentized_logarithms[1], np.sqrt((1 - of_all) / (of_all * self.rows)))
        own = super().errors_of_limits(z, logarithm=False)
        return np.minimum(own, np.sqrt(of_all * (1 - of_all) / self.rows))

    def deviates(self, times: int, random: np.random.Generator, *, logarithm: bool) -> tuple[Array, Array]:
        """Deviations of estimated shares from the true ones by chance, and their estimated variances."""
        import numpy as np

        rows = np.maximum(np.round(self.rows), 1)
        middle = (self.value * rows + 0.5) / (rows + 1)
        spread = rows * middle * (1 - middle)
        if spread.min() > _NORMAL:
            drawn = random.standard_normal((len(self), times), dtype=np.float32)
            drawn *= (np.sqrt(spread) / rows).astype(np.float32)[:, None]
            drawn += middle.astype(np.float32)[:, None]
        else:
            hits = random.binomial(rows.astype(np.int64), middle, (times, len(self)))
            drawn = np.ascontiguousarray(hits.T, dtype=np.float32)
            drawn += 0.5
            drawn /= (rows + 1).astype(np.float32)[:, None]
        middle, rows = (numbers.astype(np.float32)[:, None] for numbers in (middle, rows))
        variance = 1 - drawn
        if logarithm:
            variance /= drawn
            away = np.log(drawn) - np.log(middle)
        else:
            variance *= drawn
            away = drawn - middle
        variance /= rows
        return away, variance

    def ratio_limits(self, one: Any, other: Any, z: float | Floats) -> Limits:
        """Limits of the ratio of two shares by their score (Miettinen and Nurminen, 1985)."""
        import numpy as np

        rows = self._rows_at(z)
        of_pairs = np.broadcast_to(z, rows.shape)[one]
        return score_ratio(self.value[one], rows[one], self.value[other], rows[other], of_pairs)

    def ratio_statistic(self, one: Any, other: Any) -> Floats | None:
        """The statistic of the score test of equal shares, which the limits of their ratio invert."""
        if self.weighted is not None:
            # the rows that limits are of depend on the level
            return None
        return score_of_equality(self.value[one], self.rows[one], self.value[other], self.rows[other])


@dataclass(frozen=True, eq=False, repr=False)
class Areas(Quantities):
    """Areas under a curve, with DeLong's error where there are enough rows of both classes."""

    difference_method = ratio_method = "mover"
    value: Floats
    error: Floats
    events: Floats
    others: Floats
    freedom: Floats | None = None
    """The degrees of freedom of the error; None for so many that limits are normal."""
    correlations: Correlations | None = None
    """The correlations of groups that share clusters."""

    @property
    def is_independent(self) -> bool:
        """True if chance moves groups independently of each other."""
        return self.correlations is None

    def correlation_of(self, one: Any, other: Any) -> Floats | Literal[0]:
        """The correlation of the values of groups by chance."""
        return 0 if self.correlations is None else self.correlations.between(one, other)

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return ["delong" if normal else "newcombe" for normal in self._normal()]

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all areas."""
        import numpy as np

        factor = z if self.freedom is None else student_limits(z, self.freedom)
        exact, normal = area(self.value, self.events, self.others, factor), on_logits(self.value, self.error, factor)
        lower, upper = (np.where(self._normal(), one, other) for one, other in zip(normal, exact, strict=True))
        return lower, upper

    def _normal(self) -> Any:
        import numpy as np

        enough = np.minimum(self.events, self.others) >= FEW
        return enough & (self.value > 0) & (self.value < 1) & (self.error > 0)


@dataclass(frozen=True, eq=False, repr=False)
class Smooth(Quantities):
    """Values of a function of sums, with errors by leaving out rows, and limits by Student's t on its scale."""

    difference_method = ratio_method = "mover"
    value: Floats
    centre: Floats
    """The value with a quarter of a row more in each cell, about which limits lie."""
    error: Floats
    spread: Floats
    """The standard error on the scale."""
    freedom: Floats
    scale: Scale
    correlations: Correlations | None = None
    """The correlations of groups that share clusters."""
    method: str = "jackknife"

    @property
    def is_independent(self) -> bool:
        """True if chance moves groups independently of each other."""
        return self.correlations is None

    def correlation_of(self, one: Any, other: Any) -> Floats | Literal[0]:
        """The correlation of the values of groups by chance."""
        return 0 if self.correlations is None else self.correlations.between(one, other)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends between which limits lie: none on a side on which some value lies beyond."""
        low, high = self.scale.low, self.scale.high
        return -math.inf if (self.value < low).any() else low, math.inf if (self.value > high).any() else high

    @property
    def finite(self) -> Smooth:
        """The same with the value of a quarter of a row more in each cell in place of an infinite one."""
        import numpy as np

        return replace(self, value=np.where(np.isinf(self.value), self.centre, self.value))

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return [self.method] * len(self)

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values, which include these."""
        import numpy as np

        factor = student_limits(z, self.freedom)
        inside = self.scale.holds(self.centre) & (np.isfinite(self.spread) | np.isnan(self.error))
        middle = self.scale.transform(self.centre)
        with np.errstate(invalid="ignore"):
            half = factor * self.spread
            lower = np.where(inside, self.scale.inverse(middle - half), self.centre - factor * self.error)
            upper = np.where(inside, self.scale.inverse(middle + half), self.centre + factor * self.error)
        lower, upper = self._with_infinite(lower, upper)
        low, high = self.bounds
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)

    def _with_infinite(self, lower: Floats, upper: Floats) -> Limits:
        """The limits, with those of values that are infinite as soon as some row occurs.

        If such a row has been seen, the true value is infinite for certain; else it may be anything.
        """
        import numpy as np

        infinite = np.isinf(self.centre)
        known = infinite & (self.value == self.centre)
        lower = np.where(infinite, np.where(known, self.centre, self.scale.low), lower)
        return lower, np.where(infinite, np.where(known, self.centre, self.scale.high), upper)


@dataclass(frozen=True, eq=False, repr=False)
class Surveyed(Smooth):
    """Values from a survey: each has limits on its scale, and comparisons have those of their standard errors."""

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values that are as far from them on either side, to be compared."""
        half = student_limits(z, self.freedom) * self.error
        return self.value - half, self.value + half

    def alone(self, z: float) -> Limits:
        """Limits of all values, each by itself."""
        return super().limits(z)

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits, by the errors of logarithms."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(self.value)
            half = student_limits(z, self.freedom) * self.error / self.value
        return value, (value - half, value + half)

    def logits(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logits of shares and their limits, by the errors of logits."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(self.value / (1 - self.value))
            half = student_limits(z, self.freedom) * self.error / (self.value * (1 - self.value))
        return value, (value - half, value + half)

    def error_of_ratio(self, one: Any, other: Any) -> Floats:
        """The standard error of the ratio of two groups."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = (self.error[side] / self.value[side] for side in (one, other))
            square = first**2 + second**2 - 2 * self.correlation_of(one, other) * first * second
            return np.abs(self.value[one] / self.value[other]) * np.sqrt(square.clip(0))


class Linearized(Surveyed):
    """The same with linearised errors."""

    difference_method = ratio_method = odds_ratio_method = SurveyDesign.interval_method
    method_of_ranges = f"{SurveyDesign.interval_method}, pairwise"


class Replicated(Surveyed):
    """The same with errors from replicate weights."""

    difference_method = ratio_method = odds_ratio_method = ReplicateWeights.interval_method
    method_of_ranges = f"{ReplicateWeights.interval_method}, pairwise"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MadeOfShares(Smooth):
    """Sums of shares of different rows, with limits from those of the shares (MOVER: Donner and Zou, 2012)."""

    factors: tuple[float, ...]
    shares: tuple[Shares, ...]

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return ["mover"] * len(self)

    @property
    def shown_error(self) -> Floats:
        """The standard error, from those of the shares."""
        import numpy as np

        variances = [(factor * share.shown_error) ** 2 for factor, share in zip(self.factors, self.shares, strict=True)]
        return np.sqrt(np.sum(variances, axis=0))

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all sums."""
        return self._from_shares([share.limits(z) for share in self.shares])

    def alone(self, z: float) -> Limits:
        """Limits of all sums, each by itself."""
        return self._from_shares([share.alone(z) for share in self.shares])

    def _from_shares(self, limits: Sequence[Limits]) -> Limits:
        import numpy as np

        below, above = np.zeros_like(self.value), np.zeros_like(self.value)
        for factor, share, (low, high) in zip(self.factors, self.shares, limits, strict=True):
            down, up = factor * (share.value - low), factor * (high - share.value)
            below += (down if factor > 0 else up) ** 2
            above += (up if factor > 0 else down) ** 2
        return self.value - np.sqrt(below), self.value + np.sqrt(above)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OfShare(Smooth):
    """Values that rise with a share, with the values at its limits."""

    formula: Formula
    share: Share
    shares: Shares

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return ["wilson"] * len(self)

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

    def alone(self, z: float) -> Limits:
        """Limits of all values, each by itself."""
        return self._at(self.shares.alone(z))

    def _at(self, limits: Limits) -> Limits:
        lower, upper = limits
        return at_share(self.formula, self.share, lower), at_share(self.formula, self.share, upper)


@dataclass(frozen=True, eq=False, repr=False)
class Estimated(Quantities):
    """Values with errors from replicates, and what empty cells add to these on either side."""

    difference_method = ratio_method = "bootstrap"
    value: Floats
    error: Floats
    below: Floats
    above: Floats

    @property
    def bounds(self) -> tuple[float, float]:
        """None: limits of replicates may lie anywhere."""
        return -math.inf, math.inf

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return ["bootstrap"] * len(self)

    @property
    def widest(self) -> Floats:
        """The standard error on the side on which it is larger."""
        import numpy as np

        return np.hypot(self.error, np.fmax(self.below, self.above))

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all values."""
        import numpy as np

        below, above = (np.hypot(self.error, side) for side in (self.below, self.above))
        return self.value - z * below, self.value + z * above

    def logarithms(self, z: float | Floats) -> tuple[Floats, Limits]:
        """The logarithms and their limits."""
        import numpy as np

        low, high = np.maximum(self.value - z * self.below, 0), self.value + z * self.above
        # a value of 0 counts as half of its upper limit
        value = np.where(self.value > 0, self.value, high / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            middle, half = np.log(value), z * self.error / value
            below, above = np.hypot(half, middle - np.log(low)), np.hypot(half, np.log(high) - middle)
        return middle, (middle - below, middle + above)
