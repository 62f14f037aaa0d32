"""Tests of 2 x 2 tables, alone and in strata: exact tests with mid-p-values, and Mantel and Haenszel's estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tidyfair.intervals import correction, in_progress, root, shares_apart, squared, z_value
from tidyfair.specs import Array

Counts: TypeAlias = "Array | int"
Standard: TypeAlias = Literal["reference", "group", "both"]
Factorials: TypeAlias = Callable[[Array], Array]
"""Logarithms of factorials, without the largest part: n log n - n."""

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
    broadcast = np.broadcast_arrays(*(np.asarray(count, np.int64) for count in (hits, rows, other_hits, other_rows)))
    columns = [column.ravel() for column in broadcast]
    p_values: Array = np.zeros(len(columns[0]))
    largest = int((columns[1] + columns[3]).max(initial=0))
    # a few tables take fewer logarithms than a list of all has
    listed = _remainder(np.arange(min(largest, _MOST_LISTED, _TAKEN * len(p_values)) + 1.0))

    def factorials(counts: Array) -> Array:
        return listed[counts] if counts.max(initial=0) < len(listed) else _remainder(counts.astype(float))

    for start in in_progress(range(0, len(p_values), _BLOCK), "testing"):
        block = slice(start, start + _BLOCK)
        hits, rows, other_hits, other_rows = (column[block] for column in columns)
        tables = _Tables(hits, other_rows - other_hits, other_hits, rows - hits)
        p_values[block] = tables.toward_equality().p_values(factorials, mid_p=mid_p)
    return p_values.reshape(broadcast[0].shape)


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
        return _Tables(*(np.where(is_lower, turned, cell) for turned, cell in zip(self.turned(), self, strict=True)))

    def turned(self) -> _Tables:
        """The tables in the other order."""
        return _Tables(self.rising, self.other_rising, self.falling, self.other_falling)

    def after(self, steps: Array) -> _Tables:
        """The tables so many steps away."""
        return _Tables(self.falling - steps, self.other_falling - steps, self.rising + steps, self.other_rising + steps)

    def p_values(self, factorials: Factorials, *, mid_p: bool) -> Array:
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

    def tails(self, logarithm: Array, away: Array, factorials: Factorials) -> tuple[Array, Array]:
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
        near_tail, _, _ = self.turned().walk(_TAIL)
        return 1 + near_tail + last * (1 + other), last >= 1 - _ROUNDED

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
                number, stride_of_table = np.arange(width)[:, None], stride[index]
                step = number * stride_of_table + (steps[index] + (stride_of_table - 1) / 2)
                falling, other_falling, rising, other_rising = self.chosen(index)
                ratio: Array = (falling - step) * (other_falling - step)
                step += 1
                ratio /= (rising + step) * (other_rising + step)
                if stride_of_table.max() > 1:
                    ratio **= stride_of_table
                terms: Array = np.cumprod(ratio, axis=0)
                terms *= term[index]
                is_below: Array = terms <= least[index]
                end = np.where(is_below[-1], is_below.argmax(axis=0), width)
                total[index] += stride_of_table * np.einsum("ij,ij->j", terms, number < end)
                ends = end < width
                term[index], last[index] = terms[-1], terms[np.minimum(end, width - 1), np.arange(len(index))]
                steps[index] += (stride_of_table * np.where(ends, end + 1, width)).astype(np.int64)
                still.append(index[~ends])
            walking, width = np.concatenate(still), min(2 * width, _BLOCK * _FIRST_STEPS)
        return total, steps, last

    def moments(self) -> tuple[Array, Array]:
        """The distance of the first cell from its expectation, and its variance."""
        one, other, two, last = (cell.astype(float) for cell in self)
        total = np.maximum(one + other + two + last, 1)
        margins = (one + last) * (one + two) * (other + two) / total * (other + last) / total
        return (one * other - two * last) / total, margins / np.maximum(total - 1, 1)

    def log_probability(self, factorials: Factorials) -> Array:
        """The logarithms of the probabilities of tables, given their margins."""
        # rows are the first and the last cell, and the other two
        one, other, two, last = self
        rows, hits = (one + last, two + other), (one + two, last + other)
        logarithm = sum(factorials(margin) for margin in (*rows, *hits)) - factorials(rows[0] + rows[1])
        total = np.maximum(rows[0] + rows[1], 1)
        away = (one.astype(float) * other - two.astype(float) * last) / total
        for cell, row, column, sign in ((one, 0, 0, 1), (other, 1, 1, 1), (two, 1, 0, -1), (last, 0, 1, -1)):
            expected = rows[row] * (hits[column] / total)
            # the part of a cell in half the likelihood ratio statistic: o log(o / e) - (o - e)
            with np.errstate(divide="ignore", invalid="ignore"):
                deviance = cell * np.log1p(sign * away / expected) - sign * away
            logarithm -= factorials(cell) + np.where(cell > 0, deviance, expected)
        return logarithm


def mcnemar(one: int, other: int, *, mid_p: bool = True) -> float:
    """Exact p-value for the rows on which two models disagree (McNemar, 1947).

    As a mid-p-value (Fagerland et al., 2013), splits that are as uneven count half.
    """
    from scipy.special import betainc

    total, more = one + other, max(one, other)
    if not total:
        return 1.0
    # the probabilities that at least so many rows are hits, which have even odds
    p_value = min(1.0, 2 * float(betainc(more, total - more + 1, 0.5)))
    less_likely = 2 * float(betainc(more + 1, total - more, 0.5)) if more < total else 0.0
    return (p_value + less_likely) / 2 if mid_p else p_value


def cochrans_q(hits: Array) -> tuple[float | None, float | None]:
    """The statistic and p-value of the test that columns of hits have the same share (Cochran, 1950).

    Rows are matched sets. Null if no row has both a hit and a miss.
    """
    from scipy.special import chdtrc

    columns = hits.shape[1]
    column_hits, row_hits = hits.sum(axis=0, dtype=float), hits.sum(axis=1, dtype=float)
    scale = columns * row_hits.sum() - (row_hits**2).sum()
    if not scale:
        return None, None
    statistic = float((columns - 1) * (columns * (column_hits**2).sum() - column_hits.sum() ** 2) / scale)
    return statistic, float(chdtrc(columns - 1, statistic))


class ChiSquared(NamedTuple):
    """A statistic that is distributed as chi-squared if the hypothesis holds, and its degrees of freedom."""

    statistic: float
    freedom: int

    @property
    def p_value(self) -> float:
        """The probability of so large a statistic; 1 where nothing can vary, and nan without a statistic."""
        from scipy.special import chdtrc

        return float(chdtrc(self.freedom, self.statistic)) if self.freedom else 1.0


def equal_odds(hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> ChiSquared:
    """Test of equal odds ratios in strata (Breslow and Day, 1980).

    With Tarone's (1985) correction, because the common odds ratio is the Mantel-Haenszel estimate. Strata without hits,
    or with hits only, do not count. The statistic is NaN if there is no common odds ratio.
    """
    total_hits = hits + other_hits
    counted = (total_hits > 0) & (total_hits < rows + other_rows)
    hits, rows, other_hits, other_rows, total_hits = (
        column[counted] for column in (hits, rows, other_hits, other_rows, total_hits)
    )
    if len(hits) < 2:
        return ChiSquared(0.0, 0)
    total = rows + other_rows
    above = (hits * (other_rows - other_hits) / total).sum()
    below = (other_hits * (rows - hits) / total).sum()
    if not above or not below:
        return ChiSquared(math.nan, len(hits) - 1)
    ratio = above / below
    # the hits expected at this odds ratio, given the margins: the possible root of a quadratic equation, written so
    # that an odds ratio of 1 does not divide by zero
    square, linear = 1 - ratio, other_rows - total_hits + ratio * (rows + total_hits)
    constant = -ratio * rows * total_hits
    expected = -2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant))
    other_expected = total_hits - expected
    inverse = 1 / expected + 1 / (rows - expected) + 1 / other_expected + 1 / (other_rows - other_expected)
    variance = 1 / inverse
    away = hits - expected
    statistic = float((away**2 / variance).sum() - away.sum() ** 2 / variance.sum())
    return ChiSquared(max(0.0, statistic), len(hits) - 1)


def chi_squared(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """Statistics of the chi-squared test of equal shares (Pearson, 1900), without continuity correction."""
    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    return ((observed - expected) ** 2 / np.where(expected > 0, expected, 1)).sum(axis=0)


def likelihood_ratio(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """Statistics of the likelihood ratio test of equal shares (Wilks, 1938), the G test."""
    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    is_observed = observed > 0
    quotient = np.where(is_observed, observed, 1) / np.where(is_observed, expected, 1)
    return np.maximum(2 * (observed * np.log(quotient)).sum(axis=0), 0)


def _observed_and_expected(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> tuple[Array, Array]:
    """The counts of tables, and those expected for equal shares: the first axis is that of the cells."""
    counts: list[Array] = [np.asarray(count, float) for count in (hits, rows, other_hits, other_rows)]
    hits, rows, other_hits, other_rows = counts
    share = (hits + other_hits) / (rows + other_rows)
    observed = np.stack([hits, rows - hits, other_hits, other_rows - other_hits])
    return observed, np.stack([rows * share, rows * (1 - share), other_rows * share, other_rows * (1 - share)])


def strata_weights(rows: Array, other_rows: Array, standard: Standard | None) -> Array:
    """The share of each stratum in the population that rates are standardized to.

    It is that of a group, or of both; by default those of Mantel and Haenszel, by which differences are most precise.
    """
    total = rows + other_rows
    sizes = {"reference": other_rows, "group": rows, "both": total}
    weight = rows * other_rows / total if standard is None else sizes[standard]
    return weight / weight.sum()


def sato_error(hits: Array, rows: Array, other_hits: Array, other_rows: Array, difference: float) -> float:
    """The standard error of Mantel and Haenszel's difference, for few large strata and many small ones (Sato, 1989)."""
    total = rows + other_rows
    weight = rows * other_rows / total
    tilted = rows**2 * other_hits - other_rows**2 * hits + rows * other_rows * (other_rows - rows) / 2
    mixed = hits * (other_rows - other_hits) + other_hits * (rows - hits)
    variance = (difference * (tilted / total**2).sum() + (mixed / (2 * total)).sum()) / weight.sum() ** 2
    return float(np.sqrt(max(variance, 0.0)))


def standardized_limits(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, z: float, standard: Standard | None = None
) -> tuple[Array, Array]:
    """The differences of standardized rates that a score test does not reject, as arrays of one number.

    Miettinen and Nurminen (1985): 0 is outside where `equal_rates` rejects it, and where all shares are 0 or 1 they
    are as wide as so few rows leave them.
    """
    one, other, total = hits / rows, other_hits / other_rows, rows + other_rows
    weight = strata_weights(rows, other_rows, standard)

    def statistic(difference: Array) -> Array:
        first, second = shares_apart(one, rows, other, other_rows, difference)
        variance = first * (1 - first) / rows + second * (1 - second) / other_rows
        distance = (weight * (one - other - difference)).sum(keepdims=True)
        return squared(distance, (weight**2 * variance * correction(total)).sum(keepdims=True))

    observed = (weight * (one - other)).sum(keepdims=True)
    return root(statistic, observed, np.array([-1.0]), z), root(statistic, observed, np.array([1.0]), z)


def standardized_ratio(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, z: float, standard: Standard | None
) -> tuple[float, float, float]:
    """The ratio of two standardized rates, and its limits; nan where one side has no hits.

    The error of its logarithm is that of Greenland and Robins (1985) for Mantel and Haenszel's ratio, and else follows
    from the variances of both rates.
    """
    total, weight = rows + other_rows, strata_weights(rows, other_rows, standard)
    above, below = (weight * hits / rows).sum(), (weight * other_hits / other_rows).sum()
    if not above or not below:
        return math.nan, math.nan, math.nan
    if standard is None:
        both = ((hits + other_hits) * rows * other_rows / total**2 - hits * other_hits / total).sum()
        variance = both / (above * below * (rows * other_rows / total).sum() ** 2)
    else:
        of_rate, of_other = variances_of_rates(hits, rows, other_hits, other_rows, weight)
        variance = of_rate / above**2 + of_other / below**2
    return _about(above / below, z * math.sqrt(variance))


def variances_of_rates(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, weight: Array
) -> tuple[float, float]:
    """The variances of two rates that are standardized to strata of these weights."""
    one, other = ((weight**2 * a / n * (1 - a / n) / n).sum() for a, n in ((hits, rows), (other_hits, other_rows)))
    return float(one), float(other)


def mantel_haenszel_odds_ratio(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, z: float
) -> tuple[float, float, float]:
    """The common odds ratio of strata, and its limits; nan where it is 0 or infinite.

    Mantel and Haenszel's (1959), with the error of its logarithm by Robins, Breslow and Greenland (1986).
    """
    total, misses, other_misses = rows + other_rows, rows - hits, other_rows - other_hits
    agree, differ = (hits + other_misses) / total, (misses + other_hits) / total
    along, across = hits * other_misses / total, misses * other_hits / total
    above, below = along.sum(), across.sum()
    if not above or not below:
        return math.nan, math.nan, math.nan
    mixed = (agree * across + differ * along).sum() / (2 * above * below)
    variance = (agree * along).sum() / (2 * above**2) + mixed + (differ * across).sum() / (2 * below**2)
    return _about(above / below, z * math.sqrt(variance))


def within_strata(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, level: float, standard: Standard | None = None
) -> dict[str, Any]:
    """The columns of results of all strata with both groups together: contrasts with their limits, and tests."""
    tables, z = (hits, rows, other_hits, other_rows), z_value(level)
    weight = strata_weights(rows, other_rows, standard)
    rate, other_rate = float((weight * hits / rows).sum()), float((weight * other_hits / other_rows).sum())
    error = math.sqrt(sum(variances_of_rates(*tables, weight)))
    if standard is None:
        error = sato_error(*tables, rate - other_rate)
    (lower,), (upper,) = standardized_limits(*tables, z, standard)
    columns: dict[str, Any] = {
        ".estimate": rate, ".estimate_other": other_rate, ".adjusted": rate - other_rate, ".lower": lower,
        ".upper": upper, ".std_error": error or None,
    }  # fmt: skip
    tests = {
        "": equal_rates(*tables, standard),
        "_homogeneity": homogeneity(*tables),
        "_equal_odds": equal_odds(*tables),
    }
    for name, test in tests.items():
        columns |= {f".statistic{name}": test.statistic, f".df{name}": test.freedom}
        columns[f".p{name or '_value'}"] = test.p_value
    ratios = {".ratio": standardized_ratio(*tables, z, standard), ".odds_ratio": mantel_haenszel_odds_ratio(*tables, z)}
    for name, ratio in ratios.items():
        columns |= zip((name, f"{name}_lower", f"{name}_upper"), ratio, strict=True)
    return columns


def _about(value: float, half: float) -> tuple[float, float, float]:
    """A ratio, with limits that are so far from it on the logarithmic scale."""
    return float(value), float(value * math.exp(-half)), float(value * math.exp(half))


def equal_rates(
    hits: Array, rows: Array, other_hits: Array, other_rows: Array, standard: Standard | None = None
) -> ChiSquared:
    """Test of no difference of standardized rates: by default that of Cochran, and Mantel and Haenszel (1959)."""
    total, weight = rows + other_rows, strata_weights(rows, other_rows, standard)
    share = (hits + other_hits) / total
    variance = (weight**2 * share * (1 - share) * total**2 / (rows * other_rows * (total - 1))).sum()
    difference = (weight * (hits / rows - other_hits / other_rows)).sum()
    return ChiSquared(float(difference**2 / variance) if variance > 0 else 0.0, 1)


def homogeneity(hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> ChiSquared:
    """Test of equal differences in all strata (Cochran's Q, 1954)."""
    # a continuity correction of half a row, so that no stratum has a variance of zero
    shares = [(count + 0.5) / (size + 1) for count, size in ((hits, rows), (other_hits, other_rows))]
    variance = shares[0] * (1 - shares[0]) / rows + shares[1] * (1 - shares[1]) / other_rows
    distance = hits / rows - other_hits / other_rows
    middle = (distance / variance).sum() / (1 / variance).sum()
    spread = float(((distance - middle) ** 2 / variance).sum())
    return ChiSquared(spread if len(rows) > 1 else 0.0, len(rows) - 1)
