"""Confidence sequences and e-processes of means, their differences and their ratios, from sums that grow.

The value x of a row lies between 0 and 1, and p is its mean, given all rows before it. Whatever its distribution, the
mean of exp(bx) is then at most 1 - p + p exp(b) (Hoeffding, 1963). With s the sum of n values, and p their mean so far
(the logarithm is concave in it),

    exp(bs - n log(1 - p + p exp(b)))

is at most a product of factors whose means are never above 1: a bet that begins with 1 and cannot be expected to win.
So is a mixture over some b, all of them fixed beforehand, and the probability that it ever reaches t is at most 1 / t
(Ville, 1939). It needs nothing but n and s, so that rows may come in any order within a batch, and p may drift.

The mixtures here have b above 0, and win where values are larger than p. What wins where they are smaller is the same
of the other side: n - s and 1 - p.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from tidyfair.specs import Booleans, Floats

Index: TypeAlias = Any
"""The index of some elements of an array: that of `numpy.nonzero`, or `...` for all."""

_LARGEST_BET, _BETS = 8.0, 13
"""The largest bet, and how many there are, each half the one before: down to 1/512, for up to ten million rows."""
_CENTRAL, _SPREAD = 5, 4
"""The index of the bet with the largest weight, 1/4, and how slowly the weights of the others fall."""
_MOST_STEPS, _SLOW = 200, 4
_EXACT = 1e-10
"""Steps that are smaller end a search."""
_EXACT_VALUE = 1e-7
"""So do steps that change the smallest value on a line by less; what they would change is known to its square."""
_FEW = 16
"""Pairs of each row whose limits are worked out first."""
_PRICE = 2.0
"""Roughly how far the logarithm of the mixture is below that of the best bet."""
_BLOCK = 2**12
"""Mixtures that are worked out at once, so that all their bets stay in the cache."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The sum of the values of some rows, each between 0 and 1, and the number of rows; as arrays."""

    total: Floats
    rows: Floats

    @property
    def reversed(self) -> Totals:
        """The totals of 1 minus each value."""
        return Totals(self.rows - self.total, self.rows)

    def at(self, index: Index) -> Totals:
        """Some of the sums."""
        return Totals(self.total[index], self.rows[index])

    @property
    def mean(self) -> Floats:
        """The means; nan without rows."""
        with np.errstate(invalid="ignore"):
            return self.total / self.rows

    @property
    def about(self) -> tuple[Floats, Floats]:
        """Roughly the mean and the largest variance that its estimate can have, to begin searches with."""
        mean = (self.total + 1) / (self.rows + 2)
        return mean, mean * (1 - mean) / (self.rows + 2)

    def log_e_value(self, mean: Floats) -> Floats:
        """Logarithm of the e-value against means of at most `mean`."""
        return _log_mixture(self, mean)[0]

    def lower_limit(self, log_threshold: Floats) -> Floats:
        """The smallest mean whose e-value is below the threshold; 0 without rows."""
        log_threshold = np.broadcast_to(log_threshold, self.total.shape)
        mean, variance = self.about
        start = np.clip(mean - np.sqrt(2 * (log_threshold + _PRICE) * variance), 0, 1)

        def excess(mean: Floats, index: Index) -> tuple[Floats, Floats]:
            value, slope, _ = _log_mixture(self.at(index), mean)
            return value - log_threshold[index], slope

        return _falling_root(excess, np.zeros(self.total.shape), np.ones(self.total.shape), start)

    def best_log_e_value(self, mean: Floats) -> Floats:
        """An upper bound of the logarithm of the e-value: that of the best bet of all, known afterwards."""
        from scipy.special import rel_entr

        best = rel_entr(self.total, self.rows * mean) + rel_entr(self.rows - self.total, self.rows * (1 - mean))
        return np.where(self.total > self.rows * mean, best, 0.0)

    @property
    def least_log_e_value(self) -> Floats:
        """A lower bound of the logarithm of the e-value against any mean: that of the smallest bet against 1."""
        bets, log_weights = _mixture()
        return log_weights[-1] - bets[-1] * (self.rows - self.total)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two groups of rows, of which the mean of one is compared with that of the other.

    The e-value of two means is that of a bet that the one is larger, times that of a bet that the other is smaller: a
    bet on rows of both. Against all means with some difference, or some ratio, it is the smallest on the line of these.
    As both are mixtures of exponentials of convex functions there is one minimum.
    """

    one: Totals
    other: Totals

    def at(self, index: Index) -> Pair:
        """Some of the pairs."""
        return Pair(self.one.at(index), self.other.at(index))

    def bets(self, means: Floats) -> tuple[Floats, Floats]:
        """Logarithms of both bets at means of the two, each with its derivatives by the mean."""
        value, slope, curvature = _log_mixture(self.other.reversed, 1 - means[1])
        return _log_mixture(self.one, means[0]), np.stack([value, -slope, curvature])

    def log_e_value(self, contrast: Contrast, value: Floats | float) -> Floats:
        """Logarithm of the e-value against a difference, or a ratio, of at most `value`."""
        shape = self.one.total.shape
        parameter = contrast.parameter(np.broadcast_to(value, shape))
        return self._least(contrast, parameter, ..., np.full(shape, math.nan))[0]

    def lower_limit(self, contrast: Contrast, log_threshold: Floats) -> Floats:
        """The smallest difference, or ratio, whose e-value is below the threshold."""
        shape = self.one.total.shape
        log_threshold, positions = np.broadcast_to(log_threshold, shape), np.full(shape, math.nan)
        start = contrast.parameter(contrast.rough_limit(self, log_threshold))

        def excess(parameter: Floats, index: Index) -> tuple[Floats, Floats]:
            value, slope = self._least(contrast, parameter, index, positions)
            return value - log_threshold[index], slope

        ends = np.full(shape, contrast.least), np.ones(shape)
        return contrast.value(_falling_root(excess, *ends, start))

    def _least(
        self, contrast: Contrast, parameter: Floats, index: Index, positions: Floats
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """The smallest logarithm of the e-value of some pairs on lines, and its derivative by the parameter.

        It is sought from the position of the one before: `positions` are shares of the ends of lines, and renewed.
        """
        lines, pair = contrast.lines(parameter), self.at(index)
        values = np.zeros((3, *parameter.shape))

        def descent(position: Floats, some: Index) -> tuple[Floats, Floats]:
            direction = lines.direction[:, *some]
            (value, slope, curvature), (other_value, other_slope, other_curvature) = pair.at(some).bets(
                lines.start[:, *some] + position * direction
            )
            along = direction[0] * slope + direction[1] * other_slope
            bend = direction[0] ** 2 * curvature + direction[1] ** 2 * other_curvature
            # the value after a last step, unless it leads off the line
            with np.errstate(divide="ignore", invalid="ignore"):
                step = -along / bend
            is_last = abs(along * step) <= _EXACT_VALUE
            is_last &= (position + step >= 0) & (position + step <= lines.end[some])
            values[:, *some] = value + other_value + np.where(is_last, along * step / 2, 0), slope, other_slope
            return -along, -bend

        before = positions[index]
        start = np.where(np.isnan(before), lines.nearest(pair), before * lines.end)
        position = _falling_root(descent, np.zeros(lines.end.shape), lines.end, start, _EXACT_VALUE)
        positions[index] = position / np.where(lines.end > 0, lines.end, 1)
        return values[0], contrast.shift(position) * (values[1] - values[2])

    def extreme_limits(self, contrast: Contrast, log_threshold: Floats, compared: Booleans) -> tuple[Floats, Floats]:
        """The smallest and the largest lower limit of the pairs that are compared, of each row of pairs.

        They are sought among pairs whose limits are roughly the extremes, and then among those with limits beyond.
        """
        rough, chosen = contrast.rough_limit(self, log_threshold), np.zeros(compared.shape, dtype=bool)
        for values in (rough, -rough):
            first = np.where(compared, values, np.inf).argsort(axis=1)[:, :_FEW]
            np.put_along_axis(chosen, first, values=True, axis=1)
        index, limits = np.nonzero(chosen & compared), np.full(compared.shape, np.nan)
        limits[index] = self.at(index).lower_limit(contrast, log_threshold[index])
        smallest, largest = np.fmin.reduce(limits, axis=1), np.fmax.reduce(limits, axis=1)
        index = np.nonzero(compared & ~chosen)
        others, threshold, row = self.at(index), log_threshold[index], index[0]
        is_beyond = others.reach(contrast, largest[row], threshold)
        may_be_less = contrast.parameter(smallest[row]) > contrast.least
        is_beyond |= may_be_less & ~others.reach(contrast, smallest[row], threshold)
        index = tuple(axis[is_beyond] for axis in index)
        limits[index] = self.at(index).lower_limit(contrast, log_threshold[index])
        return np.fmin.reduce(limits, axis=1), np.fmax.reduce(limits, axis=1)

    def reach(self, contrast: Contrast, value: Floats, log_threshold: Floats) -> Booleans:
        """Check whether e-values against a value reach the threshold, so that lower limits are not below it."""
        lines = contrast.lines(contrast.parameter(value))
        means = lines.start + lines.nearest(self) * lines.direction
        most = self.one.best_log_e_value(means[0]) + self.other.reversed.best_log_e_value(1 - means[1])
        reached = most >= log_threshold
        some = np.nonzero(reached)
        pairs, threshold = self.at(some), log_threshold[some]
        direction: Floats = lines.direction[:, *some]
        (one, slope, _), (other, other_slope, _) = pairs.bets(means[:, *some])
        fall: Floats = -slope * direction[0]
        rise: Floats = other_slope * direction[1]
        # by the tangents, what one bet loses along the line the other one wins, but for the difference of their slopes
        room: Floats = one - pairs.one.least_log_e_value
        other_room: Floats = other - pairs.other.reversed.least_log_e_value
        with np.errstate(divide="ignore", invalid="ignore"):
            lost: Floats = np.maximum((1 - fall / rise) * other_room, (1 - rise / fall) * room)
        log_e_values: Floats = one + other
        is_open: Booleans = (log_e_values >= threshold) & ~(log_e_values - lost >= threshold)
        log_e_values[is_open] = pairs.at(is_open).log_e_value(contrast, value[some][is_open])
        reached[some] = log_e_values >= threshold
        return reached


def _log_mixture(totals: Totals, mean: Floats) -> Floats:
    """Logarithm of the e-value at a mean, its derivative (never above 0), and the second one (never below 0)."""
    total, rows, flat = totals.total.ravel(), totals.rows.ravel(), mean.ravel()
    mixtures = np.empty((3, mean.size))
    for first in range(0, mean.size, _BLOCK):
        some = slice(first, first + _BLOCK)
        mixtures[:, some] = few_mixtures(total[some], rows[some], flat[some])
    return mixtures.reshape(3, *mean.shape)


@cache
def _mixture() -> tuple[Floats, Floats]:
    """The bets, and the logarithms of their weights."""
    halvings = np.arange(_BETS, dtype=np.float64)
    weights: Floats = 1 / (_SPREAD + (halvings - _CENTRAL) ** 2)
    return _LARGEST_BET / 2.0**halvings, np.log(weights / weights.sum())


def few_mixtures(total: Floats, rows: Floats, mean: Floats) -> tuple[Floats, Floats, Floats]:
    """The same as `_log_mixture`, for few sums: three arrays."""
    # a row for each bet
    bets, log_weights = (values[:, None] for values in _mixture())
    gains = np.expm1(bets)
    falls = gains * mean
    falls += 1
    logarithms = np.log(falls)
    logarithms *= -rows
    logarithms += bets * total
    logarithms += log_weights
    largest = logarithms.max(axis=0)
    logarithms -= largest
    shares = np.exp(logarithms, out=logarithms)
    mixed = shares.sum(axis=0)
    np.divide(gains, falls, out=falls)
    shares *= falls
    fall = shares.sum(axis=0) / mixed
    shares *= falls
    squares = shares.sum(axis=0) / mixed
    slope = -rows * fall
    # tiny values may be pure rounding error
    curvature = np.maximum(rows * (rows + 1) * squares - slope**2, 0)
    return largest + np.log(mixed), slope, curvature


@dataclass(frozen=True, eq=False)
class _Lines:
    """Points on rays, which are pairs of means: start + t · direction, 0 ≤ t ≤ end."""

    start: Floats
    """The first axis is that of the two means."""
    direction: Floats
    end: Floats

    def nearest(self, pair: Pair) -> Floats:
        """The points nearest to the means of a pair, in their standard errors."""
        mean, variance = map(np.stack, zip(pair.one.about, pair.other.about, strict=True))
        along = ((mean - self.start) * self.direction / variance).sum(axis=0)
        return np.clip(along / (self.direction**2 / variance).sum(axis=0), 0, self.end)


class Contrast:
    """The difference of the means of one and the other: means with the same difference are on one line."""

    least = -1.0
    """The smallest parameter of a line; the largest is 1."""

    def of(self, mean: Floats, other_mean: Floats) -> Floats:
        """The value of two means."""
        return mean - other_mean

    def parameter(self, value: Floats) -> Floats:
        """The parameter of the line of means with a value."""
        return value

    def value(self, parameter: Floats) -> Floats:
        """The value of the means on a line."""
        return parameter

    def lines(self, parameter: Floats) -> _Lines:
        """The lines with some parameters."""
        start = np.stack([np.maximum(parameter, 0), np.maximum(-parameter, 0)])
        return _Lines(start, np.ones(start.shape), 1 - abs(parameter))

    def shift(self, position: Floats) -> Floats:
        """The slopes at which the one mean rises, and the other falls, with the parameter."""
        return 0 * position + 1 / 2

    def rough_limit(self, pair: Pair, log_threshold: Floats) -> Floats:
        """Roughly the lower limit of the value."""
        (mean, variance), (other_mean, other_variance) = pair.one.about, pair.other.about
        width = np.sqrt(2 * (log_threshold + 2 * _PRICE) * (variance + other_variance))
        return np.clip(mean - other_mean - width, -1, 1)


class _Ratio(Contrast):
    """The ratio of the mean of one to that of the other; the parameter is its share of both."""

    least = 0.0

    def of(self, mean: Floats, other_mean: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return mean / other_mean

    def parameter(self, value: Floats) -> Floats:
        # also of infinity
        return 1 - 1 / (1 + value)

    def value(self, parameter: Floats) -> Floats:
        return self.of(parameter, 1 - parameter)

    def lines(self, parameter: Floats) -> _Lines:
        direction = np.stack([parameter, 1 - parameter])
        return _Lines(np.zeros(direction.shape), direction, 1 / direction.max(axis=0))

    def shift(self, position: Floats) -> Floats:
        return position

    def rough_limit(self, pair: Pair, log_threshold: Floats) -> Floats:
        (mean, variance), (other_mean, other_variance) = pair.one.about, pair.other.about
        relative = variance / mean**2 + other_variance / other_mean**2
        return mean / other_mean * np.exp(-np.sqrt(2 * (log_threshold + 2 * _PRICE) * relative))


DIFFERENCE, RATIO = Contrast(), _Ratio()


def _falling_root(
    function: Callable[[Floats, Index], tuple[Floats, Floats]], low: Floats, high: Floats, start: Floats,
    exact_value: float = 0.0,
) -> Floats:  # fmt: skip
    """The roots of falling functions between two ends, by Newton's steps, or an end of what has none.

    The function takes numbers and the index of the elements that they are of: of those whose search has not ended. A
    step beyond an end goes to the end. One that leaves the bracket of the root otherwise, or is slow, halves it. Steps
    that are tiny, or change what the function is the slope of by less than `exact_value`, end the search.
    """
    roots, least, most = start.copy(), low, high
    index = np.nonzero(high >= low)
    low, high, root = low[index], high[index], roots[index]
    low_is_tried = high_is_tried = np.zeros(root.shape, dtype=bool)
    for step in range(1, _MOST_STEPS):
        if not root.size:
            break
        value, slope = function(root, index)
        is_below = value > 0
        low, high = np.where(is_below, root, low), np.where(is_below, high, root)
        low_is_tried, high_is_tried = low_is_tried | is_below, high_is_tried | ~is_below
        is_active = ~np.where(is_below, root >= most[index], root <= least[index])
        with np.errstate(divide="ignore", invalid="ignore"):
            # without rows slopes are zeros, of either sign
            following = root + value / abs(slope)
        is_slow = (step % _SLOW == 0) & (abs(following - root) > (high - low) / _SLOW)
        is_out = ~((following > low) & (following < high))
        is_active &= is_out | (abs(value * (following - root)) > exact_value)
        beyond_low, beyond_high = (following <= low) & ~low_is_tried, (following >= high) & ~high_is_tried
        following = np.where(is_out | is_slow, (low + high) / 2, following)
        following = np.where(beyond_low, low, np.where(beyond_high, high, following))
        is_active &= ~(abs(following - root) <= _EXACT)
        index = tuple(axis[is_active] for axis in index)
        low, high, root = low[is_active], high[is_active], following[is_active]
        low_is_tried, high_is_tried = low_is_tried[is_active], high_is_tried[is_active]
        roots[index] = root
    return roots
