"""Intervals of shares, and of what two shares are apart, in closed form or as roots of score equations.

All take and give arrays. A share is known by its value and the number of rows it is of, which may be an effective one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray[Any, Any]
Limits: TypeAlias = tuple[Floats, Floats]

_HALVINGS = 60
_WHOLE = 1e-6
_FEW_HITS = 3
_ROUNDED = 1e-9
_WIDEST_STUDENT = 1e100
"""The largest number of standard errors, whose square is still a number."""
_WIDEST = 50.0
"""The largest logarithm of a ratio that is searched for."""


def _tail(z: float | Floats) -> Any:
    """The probability of a normal variable beyond `z`."""
    from scipy.special import ndtr

    return ndtr(-z)


def z_value(level: Any) -> Any:
    """The number of standard deviations to either side of the mean within which a share of a normal distribution is."""
    from scipy.special import ndtri

    # the largest number below 1, where rounding would reach it
    return ndtri(np.minimum((1 + level) / 2, 1 - 2**-53))


def wilson(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """The shares that a score test does not reject (Wilson, 1927)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = 1 + z**2 / rows
        centre = (share + z**2 / (2 * rows)) / shrink
        half = z / shrink * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    # a rate of 0 has lower limit 0, a rate of 1 upper limit 1
    return np.where(share <= 0, 0.0, (centre - half).clip(0, 1)), np.where(share >= 1, 1.0, (centre + half).clip(0, 1))


def wilson_with_few(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """Wilson's limits, widened to those of Poisson's distribution where there are three hits or misses or fewer.

    Brown, Cai and DasGupta (2001), Interval estimation for a binomial proportion.
    """
    from scipy.special import erfc, gammaincinv

    lower, upper = wilson(share, rows, z)
    tail, most = erfc(z / math.sqrt(2)), np.maximum(np.minimum(_FEW_HITS, rows / 2), 1) + _WHOLE

    def end(count: Floats) -> Floats:
        """The largest share for which so many hits, or more, have that probability."""
        few = (count > 0) & (count <= most)
        ends = np.full(few.shape, np.inf)
        if few.any():
            tails, sizes = (np.broadcast_to(own, few.shape)[few] for own in (tail, rows))
            ends[few] = gammaincinv(count[few], tails) / sizes
        return ends

    return np.minimum(lower, end(share * rows)), np.maximum(upper, 1 - end((1 - share) * rows))


def jeffreys(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """Quantiles of the posterior with Jeffreys' prior; 0 and 1 at the ends (Brown, Cai and DasGupta, 2001)."""
    from scipy.special import betainccinv, betaincinv

    tail, hits = _tail(z), share * rows
    lower = np.where(hits > 0, betaincinv(hits + 0.5, rows - hits + 0.5, tail), 0.0)
    upper = np.where(hits < rows, betainccinv(hits + 0.5, rows - hits + 0.5, tail), 1.0)
    return lower, upper


def agresti_coull(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """Wald's limits with z² rows more, half of them hits (Agresti and Coull, 1998)."""
    more = rows + z**2
    return wald((share * rows + z**2 / 2) / more, more, z)


def wald(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """So many standard errors to either side (Laplace, 1812)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        half = z * np.sqrt(share * (1 - share) / rows)
    return (share - half).clip(0), (share + half).clip(max=1)


def agresti_caffo(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float) -> Limits:
    """Wald's limits of a difference with a hit and a miss more in each group (Agresti and Caffo, 2000)."""
    more = [((share * size + 1) / (size + 2), size + 2) for share, size in ((one, rows), (other, other_rows))]
    return wald_difference(*more[0], *more[1], z)


def wald_difference(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float) -> Limits:
    """So many standard errors of a difference to either side (Laplace, 1812)."""
    half = z * np.sqrt(one * (1 - one) / rows + other * (1 - other) / other_rows)
    return (one - other - half).clip(-1), (one - other + half).clip(max=1)


def exact(share: Floats, rows: Floats, z: float | Floats) -> Limits:
    """The shares that exact tests do not reject."""
    return clopper_pearson(share, rows, _tail(z))


def clopper_pearson(share: Floats, rows: Floats, tail: float | Floats) -> Limits:
    """The shares that exact one-sided tests at a level of `tail` do not reject (Clopper and Pearson, 1934)."""
    from scipy.special import betainccinv, betaincinv

    count = share * rows
    lower = np.where(count > 0, betaincinv(count, rows - count + 1, tail), 0.0)
    upper = np.where(count < rows, betainccinv(count + 1, rows - count, tail), 1.0)
    return np.where(rows > 0, lower, math.nan), np.where(rows > 0, upper, math.nan)


def difference_limits(
    one: Floats, of_one: Limits, other: Floats, of_other: Limits, correlation: Floats | Literal[0] = 0
) -> Limits:
    """Limits of the difference of two quantities from the limits of each, and their correlation.

    Of independent shares with Wilson's limits it is Newcombe's (1998) hybrid score interval; of others, MOVER (Zou and
    Donner, 2008).
    """

    def together(side: Floats, other_side: Floats) -> Floats:
        if isinstance(correlation, int):
            # limits may be infinite
            return np.hypot(side, other_side)
        both = np.sqrt((side**2 + other_side**2 - 2 * correlation * side * other_side).clip(0))
        return np.where(np.isinf(side) | np.isinf(other_side), np.inf, both)

    # infinity minus itself is not a number
    with np.errstate(invalid="ignore", over="ignore"):
        below = together(one - of_one[0], of_other[1] - other)
        above = together(of_one[1] - one, other - of_other[0])
        return one - other - below, one - other + above


def newcombe(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float) -> Limits:
    """Limits of a difference from Wilson's of both (Newcombe, 1998, method 10)."""
    return difference_limits(one, wilson(one, rows, z), other, wilson(other, other_rows, z))


def katz(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float) -> Limits:
    """Limits of the ratio of two shares on the logarithmic scale (Katz et al., 1978)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt((1 - one) / (one * rows) + (1 - other) / (other * other_rows))
        return one / other * np.exp(-z * error), one / other * np.exp(z * error)


def score_difference(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float) -> Limits:
    """The differences that a score test does not reject (Miettinen and Nurminen, 1985)."""

    def statistic(difference: Floats) -> Floats:
        first, second = shares_apart(one, rows, other, other_rows, difference)
        variance = first * (1 - first) / rows + second * (1 - second) / other_rows
        return squared(one - other - difference, variance * correction(rows + other_rows))

    observed = one - other
    ends = np.full_like(observed, -1.0), np.full_like(observed, 1.0)
    return root(statistic, observed, ends[0], z), root(statistic, observed, ends[1], z)


def score_ratio(one: Floats, rows: Floats, other: Floats, other_rows: Floats, z: float | Floats) -> Limits:
    """The ratios that a score test does not reject (Miettinen and Nurminen, 1985)."""

    def statistic(logarithm: Floats) -> Floats:
        ratio = np.exp(logarithm)
        total, hits, other_hits = rows + other_rows, one * rows, other * other_rows
        linear = -(rows * ratio + hits + other_rows + other_hits * ratio)
        under = np.sqrt(np.maximum(linear**2 - 4 * total * ratio * (hits + other_hits), 0))
        # the root that is a share, written so that nothing cancels
        second = (2 * (hits + other_hits) / (under - linear)).clip(0, 1)
        first = (ratio * second).clip(0, 1)
        variance = first * (1 - first) / rows + ratio**2 * second * (1 - second) / other_rows
        return squared(one - ratio * other, variance * correction(total))

    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.log(one / other).clip(-_WIDEST, _WIDEST)
    ends = np.full_like(observed, -_WIDEST), np.full_like(observed, _WIDEST)
    lower, upper = (np.exp(root(statistic, observed, end, z)) for end in ends)
    both_zero = (one <= 0) & (other <= 0)
    return np.where((one <= 0) | both_zero, 0.0, lower), np.where((other <= 0) | both_zero, math.inf, upper)


def score_of_equality(one: Floats, rows: Floats, other: Floats, other_rows: Floats) -> Floats:
    """The standard errors between two shares, by the score of their equality (Miettinen and Nurminen, 1985)."""
    total = rows + other_rows
    together = (one * rows + other * other_rows) / total
    variance = together * (1 - together) * (1 / rows + 1 / other_rows) * correction(total)
    return np.sqrt(squared(one - other, variance))


def correction(total: Floats) -> Floats:
    """The factor by which Miettinen and Nurminen widen the variance of so many rows."""
    return total / np.maximum(total - 1, 1)


def squared(distance: Floats, variance: Floats) -> Floats:
    """The squared score statistic."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance**2 / variance)


def shares_apart(
    one: Floats, rows: Floats, other: Floats, other_rows: Floats, difference: Floats
) -> tuple[Floats, Floats]:
    """The likeliest two shares with a given difference: a root of a cubic equation in closed form."""
    hits, other_hits = one * rows, other * other_rows
    total = rows + other_rows
    cubic = total
    square = (rows + 2 * other_rows) * difference - total - hits - other_hits
    linear = (other_rows * difference - total - 2 * other_hits) * difference + hits + other_hits
    constant = other_hits * difference * (1 - difference)
    third = square / (3 * cubic)
    inner = third**3 - square * linear / (6 * cubic**2) + constant / (2 * cubic)
    radius = np.sign(inner) * np.sqrt(np.maximum(third**2 - linear / (3 * cubic), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(radius == 0, 0.0, inner / radius**3)
    angle = (math.pi + np.arccos(cosine.clip(-1, 1))) / 3
    second = (2 * radius * np.cos(angle) - third).clip(0, 1)
    return (second + difference).clip(0, 1), second


def bracket(
    is_inside: Callable[[Floats], Any], inside: Floats, outside: Floats, halvings: int = _HALVINGS
) -> tuple[Floats, Floats]:
    """The two ends between which a condition ceases to hold, after so many halvings."""
    for _ in range(halvings):
        middle = (inside + outside) / 2
        holds = is_inside(middle)
        inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
    return inside, outside


def root(statistic: Callable[[Floats], Floats], inside: Floats, outside: Floats, z: float | Floats) -> Floats:
    """The point at which a statistic that grows from the inside to the outside reaches z squared."""
    inside, outside = bracket(lambda middle: ~(statistic(middle) > z**2), inside, outside)
    return (inside + outside) / 2


def student(level: float, freedom: int) -> float:
    """The quantile of Student's t for an interval of some level."""
    return float(student_limits(z_value(level), np.array(float(freedom))))


def student_limits(z: float | Floats, freedom: Floats) -> Floats:
    """The standard errors of Student's t that hold as much as `z` of a normal distribution; nan without freedom."""
    from scipy.special import betainccinv, betaincinv, erfc

    tail, half = erfc(z / math.sqrt(2)), freedom / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # t² / freedom is the odds of a beta variable; either of the two shares may be next to 1
        t = np.sqrt(freedom * betainccinv(1 / 2, half, tail) / betaincinv(half, 1 / 2, tail)).clip(max=_WIDEST_STUDENT)
    return np.where(np.isposinf(freedom), z, np.where(freedom > 1 - _ROUNDED, t, math.nan))


def adjusted(p_values: Floats, method: str) -> Floats:
    """P-values of several tests, adjusted for their number.

    `"holm"` (1979) bounds the probability of any false rejection; `"bh"` (Benjamini and Hochberg, 1995) and `"by"`
    (Benjamini and Yekutieli, 2001) bound the share of false rejections.
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    rank = np.arange(1, count + 1)
    if method == "holm":
        in_order = np.maximum.accumulate(p_values[order] * (count - rank + 1))
    elif method in {"bh", "by"}:
        harmonic = (1 / rank).sum() if method == "by" else 1.0
        # the factor first: it is 1 or more, so that rounding takes no p-value below the raw one
        in_order = np.minimum.accumulate((p_values[order] * (count / rank * harmonic))[::-1])[::-1]
    else:
        in_order = p_values[order]
    values = np.empty(count)
    values[order] = in_order.clip(0, 1)
    return values
