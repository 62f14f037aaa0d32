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


@dataclass(frozen=True, eq=False)
class Totals:
    """The sum of the values of some rows, each between 0 and 1, and the number of rows; as arrays."""

    total: Floats
    rows: Floats

    @property
    def reversed(self) -> Totals:
        """The same of 1 less each value."""
        return Totals(self.rows - self.total, self.rows)

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

        mean, variance = self.about
        start = np.clip(mean - np.sqrt(2 * (log_threshold + _PRICE) * variance), 0, 1)

        def excess(mean: Floats) -> tuple[Floats, Floats]:
            value, slope, _ = _log_mixture(self, mean)
            return value - log_threshold, slope

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

    def log_e_value_of_difference(self, difference: float) -> Floats:
        """Logarithm of the e-value against a mean that is larger than the other by at most `difference`."""
        import numpy as np

        return _OnLines(self, _of_difference).least(np.full(self.one.total.shape, difference))[0]

    def lower_limit_of_difference(self, log_threshold: Floats) -> Floats:
        """The smallest difference whose e-value is below the threshold; -1 without rows."""
        import numpy as np

        lines, one = _OnLines(self, _of_difference), np.ones(self.one.total.shape)
        (mean, variance), (other_mean, other_variance) = self.one.about, self.other.about
        width = np.sqrt(2 * (log_threshold + 2 * _PRICE) * (variance + other_variance))
        start = np.clip(mean - other_mean - width, -1, 1)

        def excess(difference: Floats) -> tuple[Floats, Floats]:
            value, slope, other_slope, _ = lines.least(difference)
            return value - log_threshold, (slope - other_slope) / 2

        return _falling_root(excess, -one, one, start)

    def log_e_value_of_ratio(self, ratio: float) -> Floats:
        """Logarithm of the e-value against a mean that is at most `ratio` times the other."""
        import numpy as np

        share = 1.0 if math.isinf(ratio) else ratio / (1 + ratio)
        return _OnLines(self, _of_ratio).least(np.full(self.one.total.shape, share))[0]

    def lower_limit_of_ratio(self, log_threshold: Floats) -> Floats:
        """The smallest ratio whose e-value is below the threshold; 0 without rows."""
        import numpy as np

        lines, one = _OnLines(self, _of_ratio), np.ones(self.one.total.shape)
        (mean, variance), (other_mean, other_variance) = self.one.about, self.other.about
        relative = variance / mean**2 + other_variance / other_mean**2
        ratio = mean / other_mean * np.exp(-np.sqrt(2 * (log_threshold + 2 * _PRICE) * relative))
        start = ratio / (1 + ratio)

        def excess(share: Floats) -> tuple[Floats, Floats]:
            value, slope, other_slope, position = lines.least(share)
            return value - log_threshold, position * (slope - other_slope)

        share = _falling_root(excess, 0 * one, one, start)
        with np.errstate(divide="ignore"):
            return share / (1 - share)


def _log_mixture(totals: Totals, mean: Floats) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the e-value at a mean, its derivative (never above 0), and the second one (never below 0)."""
    import numpy as np

    halvings = np.arange(_BETS)
    weights = 1 / (_SPREAD + (halvings - _CENTRAL) ** 2)
    # a row for each bet
    shape = (-1, *[1] * mean.ndim)
    bets = (_LARGEST_BET / 2.0**halvings).reshape(shape)
    gains = np.expm1(bets)
    falls = gains * mean
    logarithms = np.log1p(falls)
    logarithms *= -totals.rows
    logarithms += bets * totals.total
    logarithms += np.log(weights / weights.sum()).reshape(shape)
    largest = logarithms.max(axis=0)
    logarithms -= largest
    shares = np.exp(logarithms, out=logarithms)
    total = shares.sum(axis=0)
    falls += 1
    np.divide(gains, falls, out=falls)
    shares *= falls
    fall = shares.sum(axis=0) / total
    shares *= falls
    squares = shares.sum(axis=0) / total
    slope = -totals.rows * fall
    # of the smallest numbers nothing may be left but an error of rounding
    curvature = np.maximum(totals.rows * (totals.rows + 1) * squares - slope**2, 0)
    return largest + np.log(total), slope, curvature


@dataclass(frozen=True, eq=False)
class _Line:
    """Pairs of means on a line: from a start, so far in a direction, up to an end."""

    start: tuple[Floats, Floats]
    direction: tuple[Floats, Floats]
    end: Floats


def _of_difference(difference: Floats) -> _Line:
    """All pairs of means with that difference."""
    import numpy as np

    one = np.ones(difference.shape)
    return _Line((np.maximum(difference, 0), np.maximum(-difference, 0)), (one, one), 1 - abs(difference))


def _of_ratio(share: Floats) -> _Line:
    """All pairs of means of which the first is that share of both."""
    import numpy as np

    zero = np.zeros(share.shape)
    return _Line((zero, zero), (share, 1 - share), 1 / np.maximum(share, 1 - share))


class _OnLines:
    """The smallest e-values of a pair on lines, each sought from the position of the one before."""

    def __init__(self, pair: Pair, line_of: Callable[[Floats], _Line]) -> None:
        self._larger, self._smaller = pair.one, pair.other.reversed
        self._line_of = line_of
        self._share = pair.one.total * 0 + 1 / 2
        """The position on the line as a share of its end."""

    def least(self, parameter: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """The smallest logarithm of the e-value, its derivatives by the two means, and the position on the line."""
        import numpy as np

        line = self._line_of(parameter)

        def descent(position: Floats) -> tuple[Floats, Floats]:
            (_, slope, curvature), (_, other_slope, other_curvature) = self._at(line, position)
            along = line.direction[0] * slope + line.direction[1] * other_slope
            bend = line.direction[0] ** 2 * curvature + line.direction[1] ** 2 * other_curvature
            return -along, -bend

        position = _falling_root(descent, np.zeros(line.end.shape), line.end, self._share * line.end)
        self._share = position / np.where(line.end > 0, line.end, 1)
        (value, slope, _), (other_value, other_slope, _) = self._at(line, position)
        return value + other_value, slope, other_slope, position

    def _at(self, line: _Line, position: Floats) -> tuple[tuple[Floats, Floats, Floats], ...]:
        """Logarithms of both bets at a position, with derivatives by the two means."""
        one, other = (start + position * way for start, way in zip(line.start, line.direction, strict=True))
        value, slope, curvature = _log_mixture(self._smaller, 1 - other)
        return _log_mixture(self._larger, one), (value, -slope, curvature)


def _falling_root(
    function: Callable[[Floats], tuple[Floats, Floats]], low: Floats, high: Floats, start: Floats
) -> Floats:
    """The root of a falling function between two ends, by Newton's steps, or an end if it has none.

    A step beyond an end goes to the end. One that leaves the bracket of the root otherwise, or is slow, halves it.
    """
    import numpy as np

    least, most = low, high
    root = start
    is_active = high > low
    low_is_tried = high_is_tried = np.zeros(low.shape, dtype=bool)
    for step in range(1, _MOST_STEPS):
        value, slope = function(root)
        is_below = value > 0
        low, high = np.where(is_below, root, low), np.where(is_below, high, root)
        low_is_tried, high_is_tried = low_is_tried | is_below, high_is_tried | ~is_below
        is_active &= ~np.where(is_below, root >= most, root <= least)
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
        root = np.where(is_active, following, root)
        if not is_active.any():
            break
    return root
