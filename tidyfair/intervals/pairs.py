"""Limits of the differences and ratios of pairs of groups, and the p-values that go with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tidyfair.errors import ArgumentError
from tidyfair.intervals.proportions import difference_limits
from tidyfair.intervals.shares import share_of
from tidyfair.specs.contrasts import Contrast

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import polars as pl

    from tidyfair.intervals.proportions import Limits
    from tidyfair.intervals.quantities import Quantities
    from tidyfair.specs.aggregates import Aggregate
    from tidyfair.specs.formulas import Formula

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

Scale: TypeAlias = Literal["difference", "ratio", "odds_ratio"]
"""Ways to compare two values."""
SCALES = ("difference", "ratio", "odds_ratio")
EQUALITY = {"difference": 0.0, "ratio": 1.0, "odds_ratio": 1.0}
"""The value of equal groups."""
_FARTHEST = 40.0
"""Standard errors of a normal distribution beyond which no probability is left."""
_NEAREST = 1e-6
"""Standard errors that are next to none; without any, the odds of a rate of 0 have no limits."""
_PRECISION = 1e-9


@dataclass(frozen=True, eq=False)
class Family:
    """The values of a metric in the groups of an outer group, for one label, and how far they vary by chance."""

    spec: int
    outer: int
    level: int
    rows: pl.DataFrame
    quantities: Quantities


def scale_of(aggregate: Aggregate | None) -> Scale:
    """The scale on which an aggregate compares two groups; differences where it has none."""
    return "ratio" if isinstance(aggregate, Contrast) and aggregate.is_relative else "difference"


def check_scale(name: str, formula: Formula, ends: tuple[float, float], scale: Scale) -> None:
    """Refuse scales that the values of a metric do not have."""
    low, _ = ends
    if scale == "ratio" and -math.inf < low < 0:
        msg = f'{name} can be negative, so that its ratios mean nothing; take `scale="difference"`.'
        raise ArgumentError(msg)
    if scale == "odds_ratio" and share_of(formula) is None:
        msg = f'{name} is no rate, so that it has no odds; take `scale="ratio"` or `"difference"`.'
        raise ArgumentError(msg)


def check_positive(family: Family, scale: Scale) -> None:
    """Refuse ratios of values below 0."""
    values = family.quantities.value
    if scale == "difference" or not (values < 0).any():
        return
    index = int((values < 0).argmax())
    name, group = family.rows["name"][0], family.rows["text"][index]
    msg = (
        f"{name}: a ratio compares values above 0, and that of the group {group!r} is {values[index]:.4g}; "
        'take differences, `scale="difference"`.'
    )
    raise ArgumentError(msg)


def compare_values(value: Floats, other: Floats, scale: Scale) -> Floats:
    """Values compared with others; nan where there is no number."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "difference":
            return value - other
        if scale == "odds_ratio":
            value, other = value / (1 - value), other / (1 - other)
        return value / other


def pair_limits(family: Quantities, one: Any, other: Any, z: float, scale: Scale) -> Limits:
    """Limits of the comparisons of pairs of groups, which are given by their indices."""
    import numpy as np

    if scale == "ratio":
        ends = family.ratio_limits(one, other, z)
        if ends is not None:
            return ends
    value, (low, high) = _on_scale(family, z, scale)
    correlation = family.correlation_of(one, other)
    ends = difference_limits(value[one], (low[one], high[one]), value[other], (low[other], high[other]), correlation)
    with np.errstate(over="ignore"):
        return ends if scale == "difference" else (np.exp(ends[0]), np.exp(ends[1]))


def _on_scale(family: Quantities, z: float, scale: Scale) -> tuple[Floats, Limits]:
    """The values on the scale on which differences are taken, and their limits."""
    import numpy as np

    if scale == "difference":
        return family.value, family.limits(z)
    if scale == "odds_ratio":
        return family.logits(z)
    value, (low, high) = family.logarithms(z)
    # a limit below 0 is one of 0: the quotient has no bound on its side
    return value, (np.where(np.isnan(low), -np.inf, low), high)


def p_value(family: Quantities, one: int, other: int, scale: Scale) -> float:
    """The probability at which the interval of a pair just holds equality: the p-value that agrees with its limits."""
    import numpy as np

    pair, equality = family.at(np.array([one, other])), EQUALITY[scale]
    first, second = np.array([0]), np.array([1])
    known = pair.ratio_statistic(first, second) if scale == "ratio" else None
    if known is not None:
        return math.erfc(float(known[0]) / math.sqrt(2))

    def distance(z: float) -> float:
        """The distance of the nearer limit from equality, which is above 0 while the interval excludes equality."""
        low, high = pair_limits(pair, first, second, z, scale)
        return max(float(low[0]) - equality, equality - float(high[0]))

    return math.erfc(_root(distance) / math.sqrt(2))


def _root(distance: Callable[[float], float]) -> float:
    """The standard errors at which a falling distance is 0, by false position (Illinois); nan where it is none."""
    inside, outside = _NEAREST, _FARTHEST
    above, below = distance(inside), distance(outside)
    if math.isnan(above) or above <= 0:
        return above if math.isnan(above) else 0.0
    if below > 0:
        return math.inf
    moved = 0
    while outside - inside > _PRECISION:
        is_finite = math.isfinite(below)
        middle = (inside * below - outside * above) / (below - above) if is_finite else (inside + outside) / 2
        value = distance(middle)
        if abs(value) <= _PRECISION * abs(above):
            return middle
        # the end that stays a second time counts half, so that it moves, too
        if value > 0:
            inside, above, below = middle, value, below / 2 if moved > 0 and is_finite else below
            moved = 1
        else:
            outside, below, above = middle, value, above / 2 if moved < 0 else above
            moved = -1
    return (inside + outside) / 2


def method_of(family: Quantities, scale: Scale) -> str:
    """The name of the method of the limits of pairs."""
    if scale == "odds_ratio":
        return family.odds_ratio_method
    return family.difference_method if scale == "difference" else family.ratio_method
