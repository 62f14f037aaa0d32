"""Tests for 2 x 2 tables: exact tests with mid-p-values, and a test of equal odds ratios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidyfair.intervals.progress import in_progress

if TYPE_CHECKING:
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, Any]
    Counts: TypeAlias = Array | int

_ROUNDED = 1e-7
"""Probabilities with a smaller relative difference are the same."""
_NEGLIGIBLE = 745.0
"""The logarithm of a probability, with its sign changed, that is zero as a float."""
_TAIL = 1e-14
"""A share of another probability that is negligible."""
_NEAR, _SURE = 9.0, 1e-2
"""Chi-squared statistics up to which p-values are what likelier tables leave, and the smallest such p-value."""
_HUGE = 500.0
"""The logarithm of a probability, with its sign changed, whose inverse is nearly too large for a float."""
_BLOCK, _FIRST_STEPS = 2**16, 8
"""The tables, or the steps of all of them, that are worked out at once; and the steps of each, to begin with."""
_FINEST = 2**18
"""The root of the smallest cell beyond which several steps are taken at once."""
_SERIES, _MOST_LISTED = 32, 2**20
"""The counts from which logarithms of factorials follow from a series, and up to which they are listed."""
_TAKEN = 30
"""About as many factorials are taken for each table."""


def fisher(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts, *, mid_p: bool = False) -> Array:
    """Exact p-values of tables given their margins: the probability of all tables no likelier (Fisher, 1935).

    As mid-p-values (Lancaster, 1961), equally likely tables count half.
    """
    given: list[Array] = [np.asarray(count, np.int64) for count in (hits, rows, other_hits, other_rows)]
    shape = np.broadcast_shapes(*(column.shape for column in given))
    columns = [np.broadcast_to(column, shape).ravel() for column in given]
    p_values: Array = np.zeros(len(columns[0]))
    largest = int((columns[1] + columns[3]).max(initial=0))
    # a few tables take fewer logarithms than a list of all has
    listed = min(largest, _MOST_LISTED, _TAKEN * len(p_values))
    factorials = _Factorials(_remainder(np.arange(listed + 1.0)))
    for start in in_progress(range(0, len(p_values), _BLOCK), "testing"):
        block = slice(start, start + _BLOCK)
        hits, rows, other_hits, other_rows = (column[block] for column in columns)
        tables = _Tables(hits, other_rows - other_hits, other_hits, rows - hits)
        p_values[block] = tables.toward_equality().p_values(factorials, mid_p=mid_p)
    return p_values.reshape(shape)


@dataclass(frozen=True, eq=False)
class _Factorials:
    """Logarithms of factorials, without the largest part: n log n - n."""

    listed: Array

    def of(self, counts: Array) -> Array:
        """The logarithms of some counts."""
        if counts.max(initial=0) < len(self.listed):
            return self.listed[counts]
        return _remainder(counts.astype(float))


def _remainder(counts: Array) -> Array:
    """The logarithm of n! without n log n - n."""
    from scipy.special import gammaln, xlogy

    large = np.maximum(counts, _SERIES)
    series = np.log(2 * math.pi * large) / 2 + (1 / 12 - (1 / 360 - 1 / 1260 / large**2) / large**2) / large
    small = np.minimum(counts, _SERIES)
    return np.where(counts < _SERIES, gammaln(small + 1) - xlogy(small, small) + small, series)


class _Tables(NamedTuple):
    """The cells of tables: the two of a diagonal that fall, and those that rise, with each step to other tables."""

    falling: Array
    other_falling: Array
    rising: Array
    other_rising: Array

    def chosen(self, index: Array) -> _Tables:
        """Some of the tables."""
        return _Tables(*(cell[index] for cell in self))

    def toward_equality(self) -> _Tables:
        """The tables in such an order that steps lead first to likelier ones."""
        one, other, two, last = (cell.astype(float) for cell in self)
        is_lower = one * other < two * last
        order = (self.rising, self.other_rising, self.falling, self.other_falling)
        return _Tables(*(np.where(is_lower, turned, cell) for turned, cell in zip(order, self, strict=True)))

    def turned(self) -> _Tables:
        """The tables in the other order."""
        return _Tables(self.rising, self.other_rising, self.falling, self.other_falling)

    def after(self, steps: Array) -> _Tables:
        """The tables so many steps away."""
        return _Tables(self.falling - steps, self.other_falling - steps, self.rising + steps, self.other_rising + steps)

    def p_values(self, factorials: _Factorials, *, mid_p: bool) -> Array:
        """The p-values: what likelier tables leave of 1, or the sum of both tails where that is little."""
        logarithm, (away, variance) = self.log_probability(factorials), self.moments()
        probability, p_values = np.exp(logarithm), np.zeros(len(logarithm))
        is_near = away**2 <= _NEAR * variance
        near, likelier = np.flatnonzero(is_near), np.zeros(len(logarithm))
        likelier[near], _, as_likely = self.chosen(near).walk(1 + _ROUNDED)
        p_values[near] = 1 - probability[near] * likelier[near]
        equal = np.zeros(len(logarithm))
        equal[near] = as_likely >= 1 - _ROUNDED
        rest = np.flatnonzero((~is_near | (p_values < _SURE)) & (logarithm > -_NEGLIGIBLE))
        tails, equal[rest] = self.chosen(rest).tails(logarithm[rest], away[rest], factorials)
        p_values[rest] = np.exp(logarithm[rest] + np.log(tails))
        p_values[logarithm <= -_NEGLIGIBLE] = 0.0
        if mid_p:
            p_values -= probability * (1 + equal) / 2
        return np.clip(p_values, 0, 1)

    def tails(self, logarithm: Array, away: Array, factorials: _Factorials) -> tuple[Array, Array]:
        """The probability of tables no likelier, relative to that of each; and whether one is as likely."""
        # the farthest of likelier tables is about as far from equality on the other side
        most = np.minimum(self.falling, self.other_falling)
        steps = np.minimum(np.floor(1.8 * away).astype(np.int64), most)
        ratio = self.after(steps).log_probability(factorials) - logarithm
        is_likelier = ratio > _ROUNDED
        steps = np.where(is_likelier, steps, 0)
        # relative to a small number, where others are too large
        start = np.where(is_likelier, np.exp(np.minimum(ratio, _NEGLIGIBLE - 40)), 1.0)
        scale = np.where(~is_likelier & (logarithm < -_HUGE), 1e-250, 1.0)
        _, more, last = self.after(steps).walk((1 + _ROUNDED) * scale, start * scale)
        last = last / scale
        other, _, _ = self.after(np.minimum(steps + more, most)).walk(_TAIL)
        own, _, _ = self.turned().walk(_TAIL)
        return 1 + own + last * (1 + other), last >= 1 - _ROUNDED

    def walk(self, least: Array | float, start: Array | float = 1.0) -> tuple[Array, Array, Array]:
        """The sum of the probabilities of the next tables while they are above the least, relative to that of each.

        Then the number of the first table that is not, and its probability. Each table has the probability `start`.
        Of very large counts, some steps are taken at once, between which ratios are alike.
        """
        count, stride = len(self.falling), 1 + np.sqrt(np.minimum.reduce(self)) // _FINEST
        least, term = np.broadcast_to(least, count), np.array(np.broadcast_to(start, count), dtype=float)
        total, steps, last = np.zeros(count), np.zeros(count, dtype=np.int64), np.zeros(count)
        walking, width = np.arange(count), _FIRST_STEPS
        while len(walking):
            still: list[Array] = []
            size = max(1, _BLOCK * _FIRST_STEPS // width)
            for first in range(0, len(walking), size):
                index = walking[first : first + size]
                # a column is a table
                number, of_table = np.arange(width)[:, None], stride[index]
                step = number * of_table + (steps[index] + (of_table - 1) / 2)
                falling, other_falling, rising, other_rising = self.chosen(index)
                ratio: Array = (falling - step) * (other_falling - step)
                step += 1
                ratio /= (rising + step) * (other_rising + step)
                if of_table.max() > 1:
                    ratio **= of_table
                terms: Array = np.cumprod(ratio, axis=0)
                terms *= term[index]
                is_below: Array = terms <= least[index]
                end = np.where(is_below[-1], is_below.argmax(axis=0), width)
                total[index] += of_table * np.einsum("ij,ij->j", terms, number < end)
                ends = end < width
                term[index], last[index] = terms[-1], terms[np.minimum(end, width - 1), np.arange(len(index))]
                steps[index] += (of_table * np.where(ends, end + 1, width)).astype(np.int64)
                still.append(index[~ends])
            walking, width = np.concatenate(still), min(2 * width, _BLOCK * _FIRST_STEPS)
        return total, steps, last

    def moments(self) -> tuple[Array, Array]:
        """The distance of the first cell from its expectation, and its variance."""
        one, other, two, last = (cell.astype(float) for cell in self)
        total = np.maximum(one + other + two + last, 1)
        margins = (one + last) * (one + two) * (other + two) / total * (other + last) / total
        return (one * other - two * last) / total, margins / np.maximum(total - 1, 1)

    def log_probability(self, factorials: _Factorials) -> Array:
        """The logarithms of the probabilities of tables, given their margins."""
        # rows are the first and the last cell, and the other two
        one, other, two, last = self
        rows, hits = (one + last, two + other), (one + two, last + other)
        logarithm = sum(factorials.of(margin) for margin in (*rows, *hits)) - factorials.of(rows[0] + rows[1])
        total = np.maximum(rows[0] + rows[1], 1)
        away = (one.astype(float) * other - two.astype(float) * last) / total
        for cell, row, column, sign in ((one, 0, 0, 1), (other, 1, 1, 1), (two, 1, 0, -1), (last, 0, 1, -1)):
            expected = rows[row] * (hits[column] / total)
            logarithm -= factorials.of(cell) + _deviance(cell, expected, sign * away)
        return logarithm


def _deviance(observed: Array, expected: Array, away: Array) -> Array:
    """The part of a cell in half the likelihood ratio statistic: o log(o / e) - (o - e)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = observed * np.log1p(away / expected) - away
    return np.where(observed > 0, part, expected)


def mcnemar(one: int, other: int, *, mid_p: bool = True) -> float:
    """Exact p-value for the rows on which two models disagree (McNemar, 1947).

    As a mid-p-value (Fagerland et al., 2013), splits that are as uneven count half.
    """
    total, more = one + other, max(one, other)
    if not total:
        return 1.0
    p_value, less_likely = (min(1.0, 2 * _half_at_least(count, total)) for count in (more, more + 1))
    return (p_value + less_likely) / 2 if mid_p else p_value


def _half_at_least(count: int, total: int) -> float:
    """The probability that at least so many of some rows are hits, which have even odds."""
    from scipy.special import betainc

    if count in {0, total + 1}:
        return float(count == 0)
    return float(betainc(count, total - count + 1, 0.5))


def cochrans_q(hits: Array) -> tuple[float | None, float | None]:
    """The statistic and p-value of the test that columns of hits have the same share (Cochran, 1950).

    Rows are matched sets. Null if no row has both a hit and a miss.
    """
    from scipy.special import chdtrc

    columns = hits.shape[1]
    of_column, of_row = hits.sum(axis=0, dtype=float), hits.sum(axis=1, dtype=float)
    scale = columns * of_row.sum() - (of_row**2).sum()
    if not scale:
        return None, None
    statistic = float((columns - 1) * (columns * (of_column**2).sum() - of_column.sum() ** 2) / scale)
    return statistic, float(chdtrc(columns - 1, statistic))


def equal_odds(hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> float:
    """P-value of the test of equal odds ratios in strata (Breslow and Day, 1980).

    With Tarone's (1985) correction, because the common odds ratio is the Mantel-Haenszel estimate. Strata without hits,
    or with hits only, do not count. The value is NaN if there is no common odds ratio.
    """
    from scipy.special import chdtrc

    total_hits = hits + other_hits
    counted = (total_hits > 0) & (total_hits < rows + other_rows)
    hits, rows, other_hits, other_rows, total_hits = (
        column[counted] for column in (hits, rows, other_hits, other_rows, total_hits)
    )
    if len(hits) < 2:
        return 1.0
    total = rows + other_rows
    above = (hits * (other_rows - other_hits) / total).sum()
    below = (other_hits * (rows - hits) / total).sum()
    if not above or not below:
        return math.nan
    ratio = above / below
    expected = _hits_at(ratio, rows, other_rows, total_hits)
    other_expected = total_hits - expected
    inverse = 1 / expected + 1 / (rows - expected) + 1 / other_expected + 1 / (other_rows - other_expected)
    variance = 1 / inverse
    away = hits - expected
    statistic = float((away**2 / variance).sum() - away.sum() ** 2 / variance.sum())
    return float(chdtrc(len(hits) - 1, max(0.0, statistic)))


def _hits_at(ratio: float, rows: Array, other_rows: Array, total_hits: Array) -> Array:
    """The hits among the rows of a table with an odds ratio, given its margins: a root of a quadratic equation."""
    square = 1 - ratio
    linear = other_rows - total_hits + ratio * (rows + total_hits)
    constant = -ratio * rows * total_hits
    # the root that is possible, written so that an odds ratio of 1 does not divide by zero
    return -2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant))


def chi_squared(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """P-values of the chi-squared test of equal shares (Pearson, 1900), without continuity correction."""
    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    return _one_degree(((observed - expected) ** 2 / np.where(expected > 0, expected, 1)).sum(axis=0))


def likelihood_ratio(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """P-values of the likelihood ratio test of equal shares (Wilks, 1938), the G test."""
    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    is_observed = observed > 0
    quotient = np.where(is_observed, observed, 1) / np.where(is_observed, expected, 1)
    return _one_degree(2 * (observed * np.log(quotient)).sum(axis=0))


def _observed_and_expected(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> tuple[Array, Array]:
    """The counts of tables, and those expected for equal shares: the first axis is that of the cells."""
    counts: list[Array] = [np.asarray(count, float) for count in (hits, rows, other_hits, other_rows)]
    hits, rows, other_hits, other_rows = counts
    share = (hits + other_hits) / (rows + other_rows)
    observed = np.stack([hits, rows - hits, other_hits, other_rows - other_hits])
    return observed, np.stack([rows * share, rows * (1 - share), other_rows * share, other_rows * (1 - share)])


def _one_degree(statistic: Array) -> Array:
    """Upper tail probabilities of the chi-squared distribution with one degree of freedom."""
    from scipy.special import erfc

    return erfc(np.sqrt(np.maximum(statistic, 0) / 2))
