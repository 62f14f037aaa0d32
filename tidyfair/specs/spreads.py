"""Aggregates that describe the values of all groups: extremes, means, spread and inequality."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import AggregateError, ArgumentError
from tidyfair.specs.aggregates import Aggregate, Reduced, of_extremes, severity_of
from tidyfair.specs.entropies import check_alpha, entropy_index, powered

if TYPE_CHECKING:
    from tidyfair.specs.aggregates import Across, Direction, GroupValues
    from tidyfair.specs.segments import Floats

__all__ = [
    "coefficient_of_variation",
    "generalized_entropy",
    "group_maximum",
    "group_mean",
    "group_minimum",
    "mean_absolute_deviation",
    "standard_deviation",
]


@dataclass(frozen=True, repr=False)
class Spread(Aggregate):
    """One number that describes the values of all groups."""

    weighted: bool = False
    """Whether groups count as much as their rows weigh."""
    good: Direction | None = None
    """Where a mean should go, so that it is known which of several is the worst."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weighted, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise ArgumentError.unknown("weighted", self.weighted, [True, False])

    @property
    def direction(self) -> Direction | None:
        return None if self.equality is None else "minimize"

    @property
    def groups_needed(self) -> int:
        return 1 if self.equality is None else 2

    @property
    def equality(self) -> float | None:
        return None if self.kind in {"group_minimum", "group_maximum", "group_mean"} else 0.0

    @property
    def reads_weight(self) -> bool:
        return self.weighted

    def in_words(self, of: str) -> str:
        what = {
            "group_minimum": "smallest", "group_maximum": "largest", "group_mean": "mean",
            "standard_deviation": "standard deviation of", "mean_absolute_deviation": "mean distance from the mean of",
            "coefficient_of_variation": "standard deviation over mean of",
        }[self.kind]  # fmt: skip
        return f"{what} {of}{', groups counting as much as their rows weigh' if self.weighted else ''}"

    def in_closed_form(self, metrics: int) -> bool:
        return self.kind in {"group_minimum", "group_maximum"} and metrics == 1

    @property
    def error_factor(self) -> float | None:
        return None if self.kind == "coefficient_of_variation" else 1.0

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        # values at both ends are half the width from their mean; relative to it, they may be any number of times as far
        width = math.inf if self.kind == "coefficient_of_variation" else (upper - lower) / 2
        return (lower, upper) if self.equality is None else (0, width)

    def bound(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        del sides
        if negative and self.kind == "coefficient_of_variation":
            raise AggregateError(self._means_nothing(negative))
        return replace(self, good=direction) if self.kind == "group_mean" else self

    def reduce(self, groups: GroupValues) -> Reduced:
        import numpy as np

        segments, estimate = groups.segments, groups.estimate
        if self.kind == "group_minimum":
            return of_extremes(groups, segments.minimum(estimate))
        if self.kind == "group_maximum":
            return of_extremes(groups, segments.maximum(estimate))
        weight = np.where(groups.known, groups.weight if self.weighted else 1.0, 0.0)

        def mean(of: Floats) -> Floats:
            return segments.sum(np.where(groups.known, of * weight, 0.0)) / segments.sum(weight)

        with np.errstate(divide="ignore", invalid="ignore"):
            middle = mean(estimate)
            away = estimate - segments.spread(middle)
            if self.kind == "group_mean":
                value = middle
            elif self.kind == "mean_absolute_deviation":
                value = mean(abs(away))
            else:
                value = np.sqrt(mean(away**2))
                value = value / middle if self.kind == "coefficient_of_variation" else value
        return of_extremes(groups, value)

    def severity(self, value: Floats) -> Floats:
        return -value if self.kind == "group_minimum" else severity_of(value, self.good)

    def __repr__(self) -> str:
        options = [f"across={self.across!r}"] * (self.across != "worst") + ["weighted=True"] * self.weighted
        return f"{self.kind}({', '.join(options)})"


@dataclass(frozen=True, repr=False)
class _Entropy(Aggregate):
    """Inequality between the values of groups, each as often as its rows weigh."""

    alpha: float = 2
    fixed: bool = False
    """Whether it is meant to have this `alpha`, and no other."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.alpha)

    @property
    def reads_weight(self) -> bool:
        return True

    def in_words(self, of: str) -> str:
        return f"inequality of {of} (generalized entropy, alpha {self.alpha:g})"

    @property
    def options(self) -> dict[str, object]:
        return {} if self.fixed else {"alpha": self.alpha}

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        return 0, math.inf

    def bound(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        del sides, direction
        if negative:
            raise AggregateError(self._means_nothing(negative))
        return self

    def reduce(self, groups: GroupValues) -> Reduced:
        import numpy as np

        known = groups.known
        value, weight = (np.where(known, each, 0.0) for each in (groups.estimate, groups.weight))
        power = pl.Series(value).to_frame("value").select(powered(pl.col("value"), self.alpha)).to_series().to_numpy()
        count, total, powers, without = (
            groups.segments.sum(np.where(known, weight * term, 0.0)) for term in (1.0, value, power, value <= 0)
        )
        with np.errstate(all="ignore"):
            index = entropy_index(self.alpha, count, total, powers, without)
        return of_extremes(groups, index)

    def __repr__(self) -> str:
        across = "" if self.across == "worst" else f", across={self.across!r}"
        return f"{self.kind}(alpha={self.alpha!r}{across})"


@dataclass(frozen=True, repr=False)
class FarthestPair(Spread):
    """The largest of values that pairs of groups share: it is carried by both groups of the pair."""

    kind: str = "group_maximum"

    def reduce(self, groups: GroupValues) -> Reduced:
        segments, estimate = groups.segments, groups.estimate
        largest = segments.maximum(estimate)
        in_pair = estimate == segments.spread(largest)
        return Reduced(largest, segments.first_where(in_pair), segments.last_where(in_pair))


def group_minimum(*, across: Across = "worst") -> Aggregate:
    """The smallest value of a group. It keeps the direction of the metric.

    >>> group_minimum()
    group_minimum()
    """
    return Spread("group_minimum", across)


def group_maximum(*, across: Across = "worst") -> Aggregate:
    """The largest value of a group. It keeps the direction of the metric.

    >>> group_maximum()
    group_maximum()
    """
    return Spread("group_maximum", across)


def group_mean(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """The mean of the groups' values, each group counting the same or, `weighted`, as much as its rows weigh.

    It keeps the direction of the metric.

    >>> group_mean(weighted=True)
    group_mean(weighted=True)
    """
    return Spread("group_mean", across, weighted)


def standard_deviation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Standard deviation of the groups' values, each counting the same (divided by their number) or `weighted`.

    >>> standard_deviation()
    standard_deviation()
    """
    return Spread("standard_deviation", across, weighted)


def coefficient_of_variation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Standard deviation of the groups' values over their mean. Refused for metrics that can be negative.

    >>> coefficient_of_variation()
    coefficient_of_variation()
    """
    return Spread("coefficient_of_variation", across, weighted)


def mean_absolute_deviation(*, across: Across = "worst", weighted: bool = False) -> Aggregate:
    """Mean distance of the groups' values from their mean.

    >>> mean_absolute_deviation()
    mean_absolute_deviation()
    """
    return Spread("mean_absolute_deviation", across, weighted)


def generalized_entropy(alpha: float | None = None, *, across: Across = "worst") -> Aggregate:
    """Inequality between the groups' values, each as often as its rows weigh: 0 when all are equal, unbounded.

    Args:
        alpha: 1 is Theil's index, 0 the mean logarithmic deviation, 2 half the squared coefficient of variation; the
            larger it is, the more the largest values count. 2, unless the factory is called with another one.
        across: Several metrics, or labels, give the `"worst"` or the `"mean"` of theirs.

    Null where the mean is 0; infinite where a group has 0 and `alpha` is 0 or less. Refused for metrics that can be
    negative. Shorrocks (1980), The class of additively decomposable inequality measures.

    >>> generalized_entropy(1)
    generalized_entropy(alpha=1)
    """
    return _Entropy("generalized_entropy", across, 2 if alpha is None else alpha, fixed=alpha is not None)
