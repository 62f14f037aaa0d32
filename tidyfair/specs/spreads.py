"""Aggregates that describe the values of all groups: extremes, means, spread and inequality."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.specs.aggregates import Across, Aggregate, Direction, GroupValues, Reduced, of_extremes, severity_of
from tidyfair.specs.entropies import check_alpha, entropy_index, powered
from tidyfair.specs.segments import Floats, Segments
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = [
    "coefficient_of_variation",
    "generalized_entropy",
    "group_maximum",
    "group_mean",
    "group_minimum",
    "mean_absolute_deviation",
    "standard_deviation",
]


class Extreme(Aggregate):
    """The value of the lowest or of the highest group."""

    is_extreme = True
    groups_needed = 1
    is_highest: ClassVar[bool]

    def in_words(self, of: str) -> str:
        return f"{'largest' if self.is_highest else 'smallest'} value of {of} in a group"

    def reduce(self, groups: GroupValues) -> Reduced:
        end = groups.segments.maximum if self.is_highest else groups.segments.minimum
        return of_extremes(groups, end(groups.estimate))

    def severity(self, value: Floats) -> Floats:
        return value if self.is_highest else -value

    @property
    def direction(self) -> Direction | None:
        return None

    @property
    def equality(self) -> float | None:
        return None

    @property
    def error_factor(self) -> float | None:
        return 1.0

    def in_closed_form(self, metrics: int) -> bool:
        return metrics == 1 or self.across == "worst"


class GroupMinimum(Extreme):
    """The smallest value of a group."""

    kind = "group_minimum"
    is_highest = False


class GroupMaximum(Extreme):
    """The largest value of a group."""

    kind = "group_maximum"
    is_highest = True


class FarthestPair(GroupMaximum):
    """The largest of values defined on pairs of groups, carried by both groups of the pair."""

    def in_words(self, of: str) -> str:
        return f"largest value of {of} for any two groups"

    def reduce(self, groups: GroupValues) -> Reduced:
        segments, estimate = groups.segments, groups.estimate
        largest = segments.maximum(estimate)
        in_pair = estimate == segments.to_rows(largest)
        return Reduced(largest, segments.first_where(in_pair), segments.last_where(in_pair))


@dataclass(frozen=True, repr=False)
class Spread(Aggregate):
    """The mean or the spread of all groups, weighted equally or by their rows."""

    weighted: bool = False
    words: ClassVar[str]
    """Description before the name of the metric."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weighted, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise ArgumentError.not_one_of("weighted", self.weighted, [True, False])

    @abstractmethod
    def summary(self, values: Floats, mean: Callable[[Floats], Floats], segments: Segments) -> Floats:
        """Compute the number of each run from the values of groups and the function that takes means of runs."""

    @property
    def reads_weight(self) -> bool:
        return self.weighted

    @property
    def error_factor(self) -> float | None:
        return 1.0

    def in_words(self, of: str) -> str:
        weighting = ", weighted by their rows" if self.weighted else ""
        return f"{self.words} {of} across the groups{weighting}"

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        # values at both ends are half the width from their mean
        return 0, (upper - lower) / 2

    def reduce(self, groups: GroupValues) -> Reduced:
        segments, known = groups.segments, groups.known
        weight = np.where(known, groups.weight if self.weighted else 1.0, 0.0)

        def mean(values: Floats) -> Floats:
            return segments.sum(np.where(known, values * weight, 0.0)) / segments.sum(weight)

        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.summary(groups.estimate, mean, segments)
        return of_extremes(groups, value)


@dataclass(frozen=True, repr=False)
class GroupMean(Spread):
    """The mean of the groups' values."""

    kind = "group_mean"
    words = "mean of"
    groups_needed = 1
    good: Direction | None = field(default=None, repr=False)
    """Direction of the metric, to choose the worst of several."""

    @property
    def direction(self) -> Direction | None:
        return None

    @property
    def equality(self) -> float | None:
        return None

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        return lower, upper

    def resolved(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        del sides, negative
        return replace(self, good=direction)

    def summary(self, values: Floats, mean: Callable[[Floats], Floats], segments: Segments) -> Floats:
        del segments
        return mean(values)

    def severity(self, value: Floats) -> Floats:
        return severity_of(value, self.good)


class StandardDeviation(Spread):
    """The standard deviation of the groups' values."""

    kind = "standard_deviation"
    words = "standard deviation of"

    def summary(self, values: Floats, mean: Callable[[Floats], Floats], segments: Segments) -> Floats:
        return np.sqrt(mean((values - segments.to_rows(mean(values))) ** 2))


class CoefficientOfVariation(StandardDeviation):
    """The standard deviation of the groups' values over their mean."""

    kind = "coefficient_of_variation"
    words = "standard deviation divided by mean of"
    refuses_negative = True

    @property
    def error_factor(self) -> float | None:
        return None

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        # the mean may be as near to 0 as you like
        del lower, upper
        return 0, math.inf

    def summary(self, values: Floats, mean: Callable[[Floats], Floats], segments: Segments) -> Floats:
        return super().summary(values, mean, segments) / mean(values)


class MeanAbsoluteDeviation(Spread):
    """The mean distance of the groups' values from their mean."""

    kind = "mean_absolute_deviation"
    words = "mean distance from the mean of"

    def summary(self, values: Floats, mean: Callable[[Floats], Floats], segments: Segments) -> Floats:
        return mean(abs(values - segments.to_rows(mean(values))))


@dataclass(frozen=True, repr=False)
class GeneralizedEntropy(Aggregate):
    """Inequality between the values of groups, weighted by their rows."""

    kind = "generalized_entropy"
    refuses_negative = True
    alpha: float = 2
    fixed: bool = False
    """True if the user chose this `alpha`, so that a factory must not replace it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)

    @property
    def reads_weight(self) -> bool:
        return True

    def in_words(self, of: str) -> str:
        return f"inequality of {of} across the groups (generalized entropy, alpha {self.alpha:g})"

    @property
    def options(self) -> dict[str, object]:
        return {} if self.fixed else {"alpha": self.alpha}

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        return 0, math.inf

    def reduce(self, groups: GroupValues) -> Reduced:
        known = groups.known
        value = np.where(known, groups.estimate, 0.0)
        weight = np.where(known, groups.weight, 0.0)
        power = pl.DataFrame({"value": value}).select(powered(pl.col("value"), self.alpha)).to_series().to_numpy()

        def weighted_sum(terms: Any) -> Floats:
            return groups.segments.sum(np.where(known, weight * terms, 0.0))

        with np.errstate(all="ignore"):
            index = entropy_index(
                self.alpha,
                count=weighted_sum(1.0),
                total=weighted_sum(value),
                power=weighted_sum(power),
                without=weighted_sum(value <= 0),
            )
        return of_extremes(groups, index)

    def __repr__(self) -> str:
        across = "" if self.across == "worst" else f", across={self.across!r}"
        return f"{self.kind}(alpha={self.alpha!r}{across})"


@refuse_unknown_settings
def group_minimum(*, across: Across = "worst") -> Aggregate:
    """The smallest value of a group. It keeps the direction of the metric.

    >>> group_minimum()
    group_minimum()
    """
    return GroupMinimum(across)


@refuse_unknown_settings
def group_maximum(*, across: Across = "worst") -> Aggregate:
    """The largest value of a group. It keeps the direction of the metric.

    >>> group_maximum()
    group_maximum()
    """
    return GroupMaximum(across)


@refuse_unknown_settings
def group_mean(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """The mean of the groups' values; groups count equally or, if `weighted`, by the weight of their rows.

    It keeps the direction of the metric.

    >>> group_mean(weighted=True)
    group_mean(weighted=True)
    """
    return GroupMean(across, weighted)


@refuse_unknown_settings
def standard_deviation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Standard deviation of the groups' values (divided by their number), equal weights or `weighted` by rows.

    >>> standard_deviation()
    standard_deviation()
    """
    return StandardDeviation(across, weighted)


@refuse_unknown_settings
def coefficient_of_variation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Standard deviation of the groups' values over their mean. Refused for metrics that can be negative.

    >>> coefficient_of_variation()
    coefficient_of_variation()
    """
    return CoefficientOfVariation(across, weighted)


@refuse_unknown_settings
def mean_absolute_deviation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Mean distance of the groups' values from their mean.

    >>> mean_absolute_deviation()
    mean_absolute_deviation()
    """
    return MeanAbsoluteDeviation(across, weighted)


@refuse_unknown_settings
def generalized_entropy(alpha: float | None = None, *, across: Across = "worst") -> Aggregate:
    """Inequality between the groups' values, weighted by rows: 0 when all are equal, no upper bound.

    Args:
        alpha: 1 is Theil's index, 0 the mean logarithmic deviation, 2 half the squared coefficient of variation; the
            larger it is, the more the largest values count. The default is 2, unless the factory sets another.
        across: `"worst"` or `"mean"` index of several metrics or labels.

    Null where the mean is 0; infinite where a group has 0 and `alpha` is 0 or less. Refused for metrics that can be
    negative. Shorrocks (1980), The class of additively decomposable inequality measures.

    >>> generalized_entropy(1)
    generalized_entropy(alpha=1)
    """
    return GeneralizedEntropy(across, 2 if alpha is None else alpha, fixed=alpha is not None)
