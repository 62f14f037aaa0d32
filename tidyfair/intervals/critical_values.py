"""Critical values: the standard errors at which limits hold for all groups, pairs or comparisons together.

All are integrals over one normal variable, so that they follow from the numbers of groups, or from their errors, and
do not depend on draws, nor on the other outer groups of a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tidyfair.intervals.proportions import bracket, z_value
from tidyfair.specs import Booleans, Floats, Integers, Segments

_FARTHEST = 8.0
"""The standard errors beyond which nothing is summed."""
_NODES = 81
_LEAST = 1e-300
_LEAST_WITHIN = 1e-100
"""Positive numbers in place of a probability of 0, alone and as a factor."""
_FARTHEST_RANGE, _NODES_OF_RANGE = 6.5, 48
_STEPS, _FIRST_STEP, _FALL = 128, 115.0, 0.033
"""The steps in which the errors of a range are searched, the first one, and the usual fall of the excess in each."""
_TERMS, _NEAREST, _FARTHEST_OF_MOTION = 40, 0.3, 40.0
"""The terms of the series of the range of a Brownian motion, and the ends of the ranges that occur."""
_LEAST_DISTANCE = 0.1
"""The observed distance of equal groups, in standard errors of a pair: none at all has no probability."""
_SMALLEST = 0.25
"""Groups whose error is a smaller part of the largest hardly move a range; it is on the safe side to leave them out."""


def z_of_groups(groups: Integers, level: float) -> Floats:
    """The standard errors at which limits of so many independent groups hold together (Šidák, 1967)."""
    return z_value(level ** (1 / np.maximum(groups, 1)))


@lru_cache(maxsize=4096)
def distance_of_pairs(counts: tuple[int, ...], share: float) -> float:
    """The standard errors of a pair within which all pairs of independent families of so many groups lie."""
    from scipy.special import ndtr

    counts = tuple(count for count in counts if count > 1)
    if not counts:
        return math.nan

    # points of the largest normal value of a family, from which all others are less than a distance away
    point = np.linspace(-_FARTHEST, _FARTHEST, _NODES)
    density = np.exp(-(point**2) / 2) * ((point[1] - point[0]) / math.sqrt(2 * math.pi))

    def is_rarer(q: Floats) -> bool:
        """Check whether all pairs are nearer than `q` of their errors with a smaller probability."""
        within = ndtr(point) - ndtr(point - float(q) * math.sqrt(2))
        of_families = [max(float(count * (density @ within ** (count - 1))), _LEAST) for count in counts]
        return math.prod(of_families) < share

    pairs = sum(count * (count - 1) // 2 for count in counts)
    low, high = bracket(is_rarer, np.array(z_value(share)), np.array(z_value(share ** (1 / pairs))))
    return float(low + high) / 2


def brownian_range_tail(distance: Floats) -> Floats:
    """The probability that the range of a Brownian motion, up to the time 1, is at least some distance (Feller, 1951).

    It is 1 but for 1e-20 below the nearest distance, where the series would take more terms.
    """
    from scipy.special import ndtr

    term = np.arange(1, _TERMS + 1)
    above: Floats = ndtr(-term * np.maximum(distance, _NEAREST)[..., None])
    return np.minimum(8 * ((-1.0) ** (term - 1) * term * above).sum(axis=-1), 1)


def brownian_range_quantile(share: float) -> float:
    """The distance that the range of a Brownian motion, up to the time 1, reaches with some probability."""

    def is_likelier(distance: Floats) -> Booleans:
        return brownian_range_tail(distance) > share

    near, far = bracket(is_likelier, np.array(_NEAREST), np.array(_FARTHEST_OF_MOTION))
    return float(near + far) / 2


def errors_needed(
    error: Floats, outer: Integers, upper_end: Callable[[Floats], Floats], z: float, outers: int
) -> Floats:
    """The standard errors at which the largest upper limit of all pairs is that of the range; `z` at most.

    The upper limit of each pair holds by itself, so that the largest of them holds too often: chance takes other pairs
    farther apart, and each of them counts. A range is surely below some number only if the limits of all pairs are.
    That happens most often by chance where two groups are so far apart in truth and all others lie between them, where
    they add as little as they can: the normal density is log-concave, and what is symmetric about the middle is most
    likely there (Prékopa, 1973). Of groups of different size the two with the largest errors are those two. That has to
    be rare among samples in which equal groups would be as near (Read, 2002): groups that are nearer than chance leaves
    equal ones would else have any range excluded.

    `error` has the standard errors of groups in outer groups; `upper_end` gives the largest limit of any pair.
    """
    segments = Segments.of(outer)
    table = np.full((outers, int(segments.sizes.max(initial=2))), -1.0)
    table[outer, np.arange(len(outer)) - segments.to_rows(segments.starts)] = error
    known = np.ones(outers, dtype=bool)
    known[outer[~(np.isfinite(error) & (error > 0))]] = False
    descending = -np.sort(-table, axis=1)
    near = descending > np.maximum(_SMALLEST * descending[:, :1], 0)
    near[:, :2] = True
    highest = np.full(outers, z)
    searched = known & (near.sum(axis=1) > 2) & np.isfinite(upper_end(highest))
    if not searched.any():
        return highest
    wrong = math.erfc(z / math.sqrt(2)) / 2
    # of the steps up to `z`, the last one where range intervals are known to exclude too often, and the next ones
    excluded, allowed, step = np.zeros(outers), np.full(outers, float(_STEPS)), np.full(outers, _FIRST_STEP)
    while (left := searched & (allowed - excluded > 1)).any():
        middle = np.where(left, z * step / _STEPS, z)
        limit, twice = upper_end(middle), np.tile(np.flatnonzero(left), 2)
        distance = np.append(limit[left], np.zeros(left.sum()))
        below = _all_below(descending[twice], near[twice], limit[twice], middle[twice], distance)
        apart, equal = below.reshape(2, -1)
        excess = np.full(outers, np.nan)
        with np.errstate(divide="ignore"):
            excess[left] = np.fmax(np.log(apart / np.maximum(equal, _LEAST) / wrong), -np.inf)
        excluded, allowed = np.where(excess > 0, step, excluded), np.where(excess <= 0, step, allowed)
        # the logarithm of the excess falls about evenly
        guess = step + np.copysign(np.maximum(np.ceil(np.abs(excess) / _FALL), 1), excess)
        step = np.where(guess > excluded, np.minimum(guess, allowed - 1), (excluded + allowed) // 2)
    return np.where(searched, z * allowed / _STEPS, z)


def _all_below(error: Floats, near: Booleans, limit: Floats, z: Floats, apart: Floats) -> Floats:
    """The probability that all pairs are `z` standard errors below a limit if the first two groups are some way apart.

    The error of a pair is at least a weighted sum of those of its groups, and just that of the first two, so that each
    group has two bounds of its own. The probability is summed over the groups that may be the lowest, and where: arrays
    of outer groups by groups by points.
    """
    from scipy.special import ndtr

    error = np.where(near, error, 1.0)
    first, second, factor = error[:, :1], error[:, 1:2], z[:, None]
    of_pair = np.hypot(first, second)
    limit = np.maximum(limit[:, None], (factor + _LEAST_DISTANCE) * of_pair)
    above, below = factor * first / of_pair * error, factor * second / of_pair * error
    # the middle of the first two where they are just so much nearer
    mean = np.broadcast_to(-factor * (first**2 - second**2) / (2 * of_pair), error.shape).copy()
    mean[:, 0], mean[:, 1] = apart / 2, -apart / 2
    mean[apart == 0] = 0.0
    lowest = mean - below
    start: Floats = np.where(near, lowest - _FARTHEST_RANGE * error, np.inf).min(axis=1)
    end: Floats = np.where(near, lowest + _FARTHEST_RANGE * error, np.inf).min(axis=1)
    point = np.linspace(start, end, _NODES_OF_RANGE, axis=1)[:, None, :]
    low = (point - lowest[..., None]) / error[..., None]
    high = (point + limit[..., None] - (mean + above)[..., None]) / error[..., None]
    within = np.where(near[..., None], np.maximum(ndtr(high) - ndtr(low), _LEAST_WITHIN), 1.0)
    density = np.where(near[..., None], np.exp(-(low**2) / 2) / (math.sqrt(2 * math.pi) * error[..., None]), 0.0)
    # the density of one of the groups, and the probability that all others are above it and near
    summed = ((density / within).sum(axis=1) * within.prod(axis=1)).sum(axis=1)
    return summed * (end - start) / (_NODES_OF_RANGE - 1)
