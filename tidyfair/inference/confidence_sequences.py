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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Index: TypeAlias = Any
    """The index of some elements of an array: that of `numpy.nonzero`, or `...` for all."""

__all__: list[str] = []

_LARGEST_BET, _BETS = 8.0, 13
"""The largest b, and how many there are, each half of the one before: down to 1/512, for up to ten million rows."""
_CENTRAL, _SPREAD = 5, 4
"""The index of the b with the largest weight, 1/4, and how slowly the weights of the others fall."""
_MOST_STEPS, _SLOW = 200, 4
_EXACT = 1e-10
"""Steps that are smaller end a search."""
_PRICE = 2.0
"""Roughly what the mixture costs of the logarithm of the best bet."""
_BLOCK = 2**12
"""Mixtures that are worked out at once, so that all their bets stay in the cache."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The sum of the values of some rows, each between 0 and 1, and the number of rows; as arrays."""

    total: Floats
    rows: Floats

    @property
    def reversed(self) -> Totals:
        """The same of 1 less each value."""
        return Totals(self.rows - self.total, self.rows)

    def at(self, index: Index) -> Totals:
        """Some of the sums."""
        return Totals(self.total[index], self.rows[index])

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
        import numpy as np

        log_threshold = np.broadcast_to(log_threshold, self.total.shape)
        mean, variance = self.about
        start = np.clip(mean - np.sqrt(2 * (log_threshold + _PRICE) * variance), 0, 1)

        def excess(mean: Floats, index: Index) -> tuple[Floats, Floats]:
            value, slope, _ = _log_mixture(self.at(index), mean)
            return value - log_threshold[index], slope

        return _falling_root(excess, np.zeros(self.total.shape), np.ones(self.total.shape), start)


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
        import numpy as np

        value, slope, curvature = _log_mixture(self.other.reversed, 1 - means[1])
        return _log_mixture(self.one, means[0]), np.stack([value, -slope, curvature])

    def log_e_value_of_difference(self, difference: float) -> Floats:
        """Logarithm of the e-value against a mean that is larger than the other by at most `difference`."""
        import numpy as np

        return _OnLines(self, _pairs_of_difference).least(np.full(self.one.total.shape, difference), ...)[0]

    def lower_limit_of_difference(self, log_threshold: Floats) -> Floats:
        """The smallest difference whose e-value is below the threshold; -1 without rows."""
        import numpy as np

        lines, one = _OnLines(self, _pairs_of_difference), np.ones(self.one.total.shape)
        log_threshold = np.broadcast_to(log_threshold, one.shape)
        (mean, variance), (other_mean, other_variance) = self.one.about, self.other.about
        width = np.sqrt(2 * (log_threshold + 2 * _PRICE) * (variance + other_variance))
        start = np.clip(mean - other_mean - width, -1, 1)

        def excess(difference: Floats, index: Index) -> tuple[Floats, Floats]:
            value, slope, other_slope, _ = lines.least(difference, index)
            return value - log_threshold[index], (slope - other_slope) / 2

        return _falling_root(excess, -one, one, start)

    def log_e_value_of_ratio(self, ratio: float) -> Floats:
        """Logarithm of the e-value against a mean that is at most `ratio` times the other."""
        import numpy as np

        share = 1.0 if math.isinf(ratio) else ratio / (1 + ratio)
        return _OnLines(self, _pairs_of_ratio).least(np.full(self.one.total.shape, share), ...)[0]

    def lower_limit_of_ratio(self, log_threshold: Floats) -> Floats:
        """The smallest ratio whose e-value is below the threshold; 0 without rows."""
        import numpy as np

        lines, one = _OnLines(self, _pairs_of_ratio), np.ones(self.one.total.shape)
        log_threshold = np.broadcast_to(log_threshold, one.shape)
        (mean, variance), (other_mean, other_variance) = self.one.about, self.other.about
        relative = variance / mean**2 + other_variance / other_mean**2
        ratio = mean / other_mean * np.exp(-np.sqrt(2 * (log_threshold + 2 * _PRICE) * relative))
        start = ratio / (1 + ratio)

        def excess(share: Floats, index: Index) -> tuple[Floats, Floats]:
            value, slope, other_slope, position = lines.least(share, index)
            return value - log_threshold[index], position * (slope - other_slope)

        share = _falling_root(excess, 0 * one, one, start)
        with np.errstate(divide="ignore"):
            return share / (1 - share)


def _log_mixture(totals: Totals, mean: Floats) -> Floats:
    """Logarithm of the e-value at a mean, its derivative (never above 0), and the second one (never below 0)."""
    import numpy as np

    total, rows, flat = totals.total.ravel(), totals.rows.ravel(), mean.ravel()
    found = np.empty((3, mean.size))
    for first in range(0, mean.size, _BLOCK):
        some = slice(first, first + _BLOCK)
        found[:, some] = few_mixtures(total[some], rows[some], flat[some])
    return found.reshape(3, *mean.shape)


def few_mixtures(total: Floats, rows: Floats, mean: Floats) -> tuple[Floats, Floats, Floats]:
    """The same of few sums, as one array each."""
    import numpy as np

    halvings = np.arange(_BETS)
    weights = 1 / (_SPREAD + (halvings - _CENTRAL) ** 2)
    # a row for each bet
    bets = (_LARGEST_BET / 2.0**halvings)[:, None]
    gains = np.expm1(bets)
    falls = gains * mean
    falls += 1
    logarithms = np.log(falls)
    logarithms *= -rows
    logarithms += bets * total
    logarithms += np.log(weights / weights.sum())[:, None]
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
        import numpy as np

        mean, variance = map(np.stack, zip(pair.one.about, pair.other.about, strict=True))
        along = ((mean - self.start) * self.direction / variance).sum(axis=0)
        return np.clip(along / (self.direction**2 / variance).sum(axis=0), 0, self.end)


def _pairs_of_difference(difference: Floats) -> _Lines:
    """All pairs of means with that difference."""
    import numpy as np

    start = np.stack([np.maximum(difference, 0), np.maximum(-difference, 0)])
    return _Lines(start, np.ones(start.shape), 1 - abs(difference))


def _pairs_of_ratio(share: Floats) -> _Lines:
    """All pairs of means of which the first is that share of both."""
    import numpy as np

    direction = np.stack([share, 1 - share])
    return _Lines(np.zeros(direction.shape), direction, 1 / direction.max(axis=0))


class _OnLines:
    """The smallest e-values of pairs on lines, each sought from the position of the one before."""

    def __init__(self, pair: Pair, lines_of: Callable[[Floats], _Lines]) -> None:
        self._pair = pair
        self._lines_of = lines_of
        self._share = pair.one.total * math.nan
        """The position on the line as a share of its end."""

    def least(self, parameter: Floats, index: Index) -> tuple[Floats, Floats, Floats, Floats]:
        """The smallest logarithm of the e-value, its derivatives by the two means, and the position on the line."""
        import numpy as np

        lines, pair = self._lines_of(parameter), self._pair.at(index)

        def descent(position: Floats, some: Index) -> tuple[Floats, Floats]:
            direction = lines.direction[:, *some]
            (_, slope, curvature), (_, other_slope, other_curvature) = pair.at(some).bets(
                lines.start[:, *some] + position * direction
            )
            along = direction[0] * slope + direction[1] * other_slope
            bend = direction[0] ** 2 * curvature + direction[1] ** 2 * other_curvature
            return -along, -bend

        before = self._share[index]
        start = np.where(np.isnan(before), lines.nearest(pair), before * lines.end)
        position = _falling_root(descent, np.zeros(lines.end.shape), lines.end, start)
        self._share[index] = position / np.where(lines.end > 0, lines.end, 1)
        (value, slope, _), (other_value, other_slope, _) = pair.bets(lines.start + position * lines.direction)
        return value + other_value, slope, other_slope, position


def _falling_root(
    function: Callable[[Floats, Index], tuple[Floats, Floats]], low: Floats, high: Floats, start: Floats
) -> Floats:
    """The roots of falling functions between two ends, by Newton's steps, or an end of what has none.

    The function takes numbers and the index of the elements that they are of: of those whose search has not ended. A
    step beyond an end goes to the end. One that leaves the bracket of the root otherwise, or is slow, halves it.
    """
    import numpy as np

    roots, least, most = start.copy(), low, high
    index = np.nonzero(high > low)
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
        is_active &= ~(abs(following - root) <= _EXACT)
        is_slow = (step % _SLOW == 0) & (abs(following - root) > (high - low) / _SLOW)
        is_out = ~((following > low) & (following < high))
        beyond_low, beyond_high = (following <= low) & ~low_is_tried, (following >= high) & ~high_is_tried
        following = np.where(is_out | is_slow, (low + high) / 2, following)
        following = np.where(beyond_low, low, np.where(beyond_high, high, following))
        is_active &= ~(abs(following - root) <= _EXACT)
        index = tuple(axis[is_active] for axis in index)
        low, high, root = low[is_active], high[is_active], following[is_active]
        low_is_tried, high_is_tried = low_is_tried[is_active], high_is_tried[is_active]
        roots[index] = root
    return roots
