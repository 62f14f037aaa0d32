"""Aggregates that describe the values of all groups: extremes, means, spread and inequality."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.aggregates import ESTIMATE, TEXT, Aggregate, severity_of
from tidyfair.entropies import check_alpha, entropy_index, powered
from tidyfair.errors import AggregateError, ArgumentError

if TYPE_CHECKING:
    from tidyfair.aggregates import Across, Direction

__all__ = [
    "coefficient_of_variation",
    "generalized_entropy",
    "group_maximum",
    "group_mean",
    "group_minimum",
    "mean_absolute_deviation",
    "standard_deviation",
]

_MASS = pl.col("mass").filter(ESTIMATE.is_not_null())
"""The weight of the rows that the values of groups are about, where there is a value."""
_VALUE = ESTIMATE.drop_nulls()


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
    def reads_mass(self) -> bool:
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

    def value(self) -> pl.Expr:
        def mean(of: pl.Expr) -> pl.Expr:
            return _weighted_mean(of) if self.weighted else of.mean()

        away = _VALUE - mean(_VALUE)
        deviation = mean(away**2).sqrt()
        return {
            "group_minimum": ESTIMATE.min(),
            "group_maximum": ESTIMATE.max(),
            "group_mean": mean(_VALUE),
            "standard_deviation": deviation,
            "coefficient_of_variation": deviation / mean(_VALUE),
            "mean_absolute_deviation": mean(away.abs()),
        }[self.kind]

    def severity(self, value: pl.Expr) -> pl.Expr:
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
    def reads_mass(self) -> bool:
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

    def value(self) -> pl.Expr:
        counted = _VALUE * 0 + 1
        sums = [(_MASS * each).sum() for each in (counted, _VALUE, powered(_VALUE, self.alpha), counted - (_VALUE > 0))]
        return entropy_index(self.alpha, *sums)

    def __repr__(self) -> str:
        across = "" if self.across == "worst" else f", across={self.across!r}"
        return f"{self.kind}(alpha={self.alpha!r}{across})"


def _weighted_mean(of: pl.Expr) -> pl.Expr:
    return (of * _MASS).sum() / _MASS.sum()


@dataclass(frozen=True, repr=False)
class FarthestPair(Spread):
    """The largest of values that pairs of groups share: it is carried by both groups of the pair."""

    kind: str = "group_maximum"

    @property
    def reads_values_only(self) -> bool:
        return False

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        largest = TEXT.filter(ESTIMATE.max() == ESTIMATE)
        return largest.first(), largest.last()


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
