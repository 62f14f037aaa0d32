"""Limits of values of groups and of their differences in plain arithmetic, without the library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import scipy.stats
from scipy.special import expit, logit
from statsmodels.stats.proportion import proportion_confint

if TYPE_CHECKING:
    from collections.abc import Callable

Limits: TypeAlias = tuple[float, float]
Count: TypeAlias = tuple[float, float]
"""Hits, and the rows that they are of."""


# Limits of rates


def wilson(hits: float, rows: float, level: float = 0.95) -> Limits:
    """Wilson's limits."""
    result: Any = proportion_confint(hits, rows, alpha=1 - level, method="wilson")
    return float(result[0]), float(result[1])


def wilson_with_few(hits: float, rows: float, level: float = 0.95) -> Limits:
    """The same, at three hits or misses or less as far as Poisson's limits (Brown, Cai and DasGupta, 2001)."""
    lower, upper = wilson(hits, rows, level)
    few = max(min(3, rows / 2), 1)
    if 0 < hits <= few:
        lower = min(lower, float(scipy.stats.chi2.ppf(1 - level, 2 * hits)) / 2 / rows)
    if 0 < rows - hits <= few:
        upper = max(upper, 1 - float(scipy.stats.chi2.ppf(1 - level, 2 * (rows - hits))) / 2 / rows)
    return lower, upper


def jeffreys(hits: float, rows: float, level: float = 0.95) -> Limits:
    """Quantiles of a beta distribution, but 0 without hits, and 1 without misses."""
    posterior = scipy.stats.beta(hits + 0.5, rows - hits + 0.5)
    lower, upper = (float(end) for end in posterior.ppf([(1 - level) / 2, (1 + level) / 2]))
    return lower if hits > 0 else 0.0, upper if hits < rows else 1.0


def outer_limits(hits: float, rows: float, level: float) -> Limits:
    """The farther ones of Wilson's limits with few hits, and Jeffreys'."""
    (low, high), (least, most) = wilson_with_few(hits, rows, level), jeffreys(hits, rows, level)
    return min(low, least), max(high, most)


def limits_of_difference(
    one: Count, other: Count, level: float = 0.95, limits: Callable[[float, float, float], Limits] = wilson_with_few
) -> Limits:
    """Limits of the difference of two rates from those of each (Newcombe, 1998, method 10)."""
    first, second = one[0] / one[1], other[0] / other[1]
    (low, high), (least, most) = limits(*one, level), limits(*other, level)
    below, above = math.hypot(first - low, most - second), math.hypot(high - first, second - least)
    return first - second - below, first - second + above


def limits_of_log_ratio(
    one: Count, other: Count, level: float, limits: Callable[[float, float, float], Limits] = wilson_with_few
) -> Limits:
    """Limits of the logarithm of the ratio of two rates, with half a hit and half a miss more in each."""
    logarithms: list[tuple[float, float, float]] = []
    for hits, rows in (one, other):
        low, high = limits(hits, rows, level)
        value = math.log((hits + 0.5) / (rows + 1))
        logarithms.append((value, math.log(low) if low > 0 else -math.inf, max(math.log(high), value)))
    (first, low, high), (second, least, most) = logarithms
    below, above = math.hypot(first - low, most - second), math.hypot(high - first, second - least)
    return first - second - below, first - second + above


# Limits of areas under a ROC curve


def limits_of_area(value: float, error: float, events: float, others: float, factor: float) -> Limits:
    """DeLong's on logits, but towards 1/2 with half an event and half a non-event more, of which scores say nothing."""

    def end(centre: float, spread: float, sign: int) -> float:
        if not 0 < centre < 1:
            return centre
        return float(expit(logit(centre) + sign * factor * spread / (centre * (1 - centre))))

    more = (events + 0.5, others + 0.5)
    # all pairs count as they were, those with an added row as 1/2
    centre = 0.5 + (value - 0.5) * (events / more[0] + others / more[1] - 1)
    added = 0.5 * (value - 0.5) ** 2 * (1 / more[0] ** 2 + 1 / more[1] ** 2)
    unseen = math.sqrt(error**2 + added)
    if value > 0.5:
        return end(centre, unseen, -1), end(value, error, 1)
    return end(value, error, -1), end(centre, unseen, 1)
