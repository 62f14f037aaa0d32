"""Closed intervals that the library is compared with, for many pairs at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.special
from tables import LEVEL

Array: TypeAlias = np.ndarray[Any, Any]
Ends: TypeAlias = tuple[Array, Array]

_STEPS = 60
"""Halvings of an interval of logarithms."""
_FARTHEST = 30.0
"""The largest logarithm of a ratio that is looked at."""


def normal(level: float) -> float:
    """The standard errors on both sides of a normal interval."""
    return float(scipy.special.ndtri((1 + level) / 2))


def wilson(hits: Array, rows: Array, level: float = LEVEL) -> Ends:
    """Limits of rates (Wilson, 1927)."""
    square = normal(level) ** 2
    rate, total = hits / rows, rows + square
    centre = (hits + square / 2) / total
    half = np.sqrt(square * (rows * rate * (1 - rate) + square / 4)) / total
    return centre - half, centre + half


def newcombe(hits: Array, rows: Array, other_hits: Array, other_rows: Array, level: float = LEVEL) -> Ends:
    """Limits of differences of rates (Newcombe, 1998, method 10)."""
    rate, other = hits / rows, other_hits / other_rows
    (low, high), (other_low, other_high) = wilson(hits, rows, level), wilson(other_hits, other_rows, level)
    below = np.hypot(rate - low, other_high - other)
    above = np.hypot(high - rate, other - other_low)
    return rate - other - below, rate - other + above


def miettinen_nurminen(hits: Array, rows: Array, other_hits: Array, other_rows: Array, level: float = LEVEL) -> Ends:
    """Limits of ratios of rates (Miettinen and Nurminen, 1985), by bisection of the score."""
    square = normal(level) ** 2

    def is_beyond(logarithm: Array) -> Any:
        return _score_of_ratio(np.exp(logarithm), hits, rows, other_hits, other_rows) > square

    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(hits / rows) - np.log(other_hits / other_rows)
        start = np.where(np.isfinite(start), start, np.sign(np.nan_to_num(start)) * _FARTHEST)
    ends: list[Array] = []
    for farthest in (-_FARTHEST, _FARTHEST):
        inside, outside = start.copy(), np.full_like(start, farthest)
        for _ in range(_STEPS):
            middle = (inside + outside) / 2
            beyond = is_beyond(middle)
            inside, outside = np.where(beyond, inside, middle), np.where(beyond, middle, outside)
        ends.append(np.exp(inside))
    return np.where(hits == 0, 0, ends[0]), np.where(other_hits == 0, np.inf, ends[1])


def _score_of_ratio(ratio: Array, hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> Array:
    """The squared distance of rates from a ratio, in standard errors at the likeliest rates with that ratio."""
    total = rows + other_rows
    squared, linear, constant = total * ratio, -(ratio * (rows + other_hits) + hits + other_rows), hits + other_hits
    root = np.sqrt(np.maximum(linear**2 - 4 * squared * constant, 0))
    other_rate = 2 * constant / (-linear + root)  # the smaller solution, without cancellation
    rate = np.minimum(ratio * other_rate, 1)
    variance = rate * (1 - rate) / rows + ratio**2 * other_rate * (1 - other_rate) / other_rows
    variance = variance * total / (total - 1)
    distance = hits / rows - ratio * other_hits / other_rows
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0, distance**2 / variance)


def welch(values: Array, others: Array, level: float = LEVEL) -> Ends:
    """Limits of differences of means (Welch, 1947); the last axis are the rows."""
    parts = [array.var(axis=-1, ddof=1) / array.shape[-1] for array in (values, others)]
    variance = parts[0] + parts[1]
    lost = sum(part**2 / (array.shape[-1] - 1) for part, array in zip(parts, (values, others), strict=True))
    half = scipy.special.stdtrit(variance**2 / lost, (1 + level) / 2) * np.sqrt(variance)
    difference = values.mean(axis=-1) - others.mean(axis=-1)
    return difference - half, difference + half


def student(values: Array, level: float = LEVEL) -> Ends:
    """Limits of means (Student, 1908); the last axis are the values."""
    count = values.shape[-1]
    half = scipy.special.stdtrit(count - 1, (1 + level) / 2) * values.std(axis=-1, ddof=1) / np.sqrt(count)
    mean = values.mean(axis=-1)
    return mean - half, mean + half


def bonett_price(gained: Array, lost: Array, rows: Array, level: float = LEVEL) -> Ends:
    """Limits of changes of a rate of the same rows (Bonett and Price, 2012)."""
    first, second = (gained + 1) / (rows + 2), (lost + 1) / (rows + 2)
    half = normal(level) * np.sqrt((first + second - (first - second) ** 2) / (rows + 2))
    return np.maximum(first - second - half, -1), np.minimum(first - second + half, 1)


def largest_of_pairs(hits: Array, rows: Array, pairs: Ends, level: float = LEVEL) -> Ends:
    """Limits of the largest difference of any of some pairs, each of which has its limits after Bonferroni."""
    one, other = pairs
    low, high = newcombe(hits[:, one], rows[one], hits[:, other], rows[other], 1 - (1 - level) / len(one))
    least = np.maximum(np.maximum(low, -high), 0)
    most = np.maximum(high, -low)
    return least.max(axis=1), most.max(axis=1)


def chi_squared(hits: Array, rows: Array) -> Array:
    """P-values of Pearson's test that all groups have one rate; the last axis are the groups."""
    expected = hits.sum(axis=1, keepdims=True) / rows.sum() * rows
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = ((hits - expected) ** 2 / expected + (hits - expected) ** 2 / (rows - expected)).sum(axis=1)
    # without a hit, or a miss, no group differs
    return scipy.special.chdtrc(len(rows) - 1, np.nan_to_num(statistic))
