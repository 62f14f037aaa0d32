"""Limits of the differences and ratios of pairs of groups, and the p-values that go with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.intervals.estimates import Estimates
from tidyfair.intervals.methods import Case, required
from tidyfair.intervals.shares import share_of
from tidyfair.specs.formulas import Formula

Floats: TypeAlias = np.ndarray[Any, Any]

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
class ComparedGroups:
    """The values of a metric in the groups of an outer group, for one label, and how far they vary by chance."""

    spec: int
    outer: int
    level: int
    rows: pl.DataFrame
    estimates: Estimates


def check_scale(name: str, formula: Formula, ends: tuple[float, float], scale: Scale) -> None:
    """Refuse scales that the values of a metric do not have."""
    low, _ = ends
    if scale == "ratio" and -math.inf < low < 0:
        msg = f'{name} can be negative, so its ratios are not defined; use `scale="difference"`.'
        raise ArgumentError(msg)
    if scale == "odds_ratio" and share_of(formula) is None:
        msg = f'{name} is not a rate, so it has no odds; use `scale="ratio"` or `"difference"`.'
        raise ArgumentError(msg)


def check_positive(family: ComparedGroups, scale: Scale) -> None:
    """Refuse ratios of values below 0."""
    values = family.estimates.value
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
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "difference":
            return value - other
        if scale == "odds_ratio":
            value, other = value / (1 - value), other / (1 - other)
        return value / other


def p_values(family: Estimates, one: Any, other: Any, scale: Scale) -> Floats:
    """The probabilities at which intervals of pairs just hold equality: the p-values that agree with their limits."""
    # the standard errors at which the limits of pairs just hold equality
    statistic = family.ratio_statistic(one, other) if scale == "ratio" else None
    if statistic is None:
        # the groups of each pair are searched at standard errors of their own
        sides, equality = family.at(np.concatenate([one, other])), EQUALITY[scale]
        first = np.arange(len(one))
        second, correlation = first + len(one), family.correlation_of(one, other)

        def distance(z: Floats) -> Floats:
            """The distance of the nearer limit from equality, which is above 0 while an interval excludes equality."""
            low, high = sides.compared(first, second, np.concatenate([z, z]), scale, correlation)
            return np.where(equality - high > low - equality, equality - high, low - equality)

        statistic = _roots(distance, len(one))
    return np.array([math.erfc(number / math.sqrt(2)) for number in statistic.tolist()])


def _roots(distance: Callable[[Floats], Floats], count: int) -> Floats:
    """The standard errors at which falling distances are 0, by false position (Illinois); nan where they are none."""
    inside, outside = np.full(count, _NEAREST), np.full(count, _FARTHEST)
    above, below = distance(inside), distance(outside)
    root = np.full(count, np.nan)
    root[above <= 0], root[(above > 0) & (below > 0)] = 0.0, np.inf
    searched = (above > 0) & ~(below > 0)
    # 1 where the inner end moved last, -1 where the outer one did
    moved = np.zeros(count)
    while searched.any():
        is_finite = np.isfinite(below)
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = (inside * below - outside * above) / (below - above)
        middle = np.where(is_finite & searched, secant, (inside + outside) / 2)
        value = distance(middle)
        is_inside, is_hit = value > 0, np.abs(value) <= _PRECISION * np.abs(above)
        root = np.where(searched & is_hit, middle, root)
        searched &= ~is_hit
        # the end that stays a second time counts half, so that it moves, too
        halved_below = np.where((moved > 0) & is_finite, below / 2, below)
        halved_above = np.where(moved < 0, above / 2, above)
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
        above, below = np.where(is_inside, value, halved_above), np.where(is_inside, halved_below, value)
        moved = np.where(is_inside, 1, -1)
        is_near = outside - inside <= _PRECISION
        root = np.where(searched & is_near, (inside + outside) / 2, root)
        searched &= ~is_near
    return root


def method_of(family: Estimates, scale: Scale) -> str:
    """The name of the method of the limits of pairs."""
    return required(Case.of(family, scale), "auto", "values").name
