"""Tests of 2 x 2 tables, alone and in strata: exact tests with mid-p-values, and Mantel and Haenszel's estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tidyfair.intervals import correction, in_progress, root, shares_apart, squared, z_value
from tidyfair.specs import Array

Counts: TypeAlias = "Array | int"
Standard: TypeAlias = Literal["reference", "group", "both"]

_ROUNDED = 1e-7
"""Probabilities with a smaller relative difference are the same."""
_TAIL = 1e-14
"""A share of another probability that is negligible."""
_BLOCK, _FIRST_STEPS = 2**16, 8
"""The tables, or the steps of all of them, that are worked out at once; and the steps of each, to begin with."""
_FINEST = 2**18
"""Where the square root of the smallest cell is larger, several steps are taken at once."""


def fisher(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts, *, mid_p: bool = False) -> Array:
    """Exact p-values of tables given their margins: the probability of all tables no likelier (Fisher, 1935).

    As mid-p-values (Lancaster, 1961), equally likely tables count half.
    """
    broadcast = np.broadcast_arrays(*(np.asarray(count, np.int64) for count in (hits, rows, other_hits, other_rows)))
    columns = [column.ravel() for column in broadcast]
    p_values: Array = np.zeros(len(columns[0]))
    for start in in_progress(range(0, len(p_values), _BLOCK), "testing"):
        block = slice(start, start + _BLOCK)
        hits, rows, other_hits, other_rows = (column[block] for column in columns)
        one, other = (hits, other_rows - other_hits), (other_hits, rows - hits)
        # first toward equality, to likelier tables, and through these to the tail on the other side
        is_lower = np.multiply(*one, dtype=float) < np.multiply(*other, dtype=float)
        falling = [np.where(is_lower, second, first) for first, second in zip(one, other, strict=True)]
        rising = [np.where(is_lower, first, second) for first, second in zip(one, other, strict=True)]
        every, unlikely, ties = _sums_of_next_tables(falling, rising)
        tail, _, _ = _sums_of_next_tables(rising, falling)
        # probabilities are relative to that of the table itself
        unlikely = 1 + tail + unlikely - ((1 + ties) / 2 if mid_p else 0)
        p_values[block] = unlikely / (1 + tail + every)
    return p_values.reshape(broadcast[0].shape)


@np.errstate(over="ignore", invalid="ignore")
def _sums_of_next_tables(falling: list[Array], rising: list[Array]) -> tuple[Array, Array, Array]:
    """The sums of the probabilities of the next tables, relative to that of each: all, those no likelier, and ties.

    In each step the cells of one diagonal fall and those of the other rise, until probabilities are negligible, or so
    large that nothing beside them counts. Of very large counts, some steps are taken at once, between which ratios are
    alike.
    """
    count, stride = len(falling[0]), 1 + np.sqrt(np.minimum.reduce([*falling, *rising])) // _FINEST
    sums, steps, term = np.zeros((3, count)), np.zeros(count), np.ones(count)
    walking, width = np.arange(count), _FIRST_STEPS
    while len(walking):
        still: list[Array] = []
        size = max(1, _BLOCK * _FIRST_STEPS // width)
        for first in range(0, len(walking), size):
            index = walking[first : first + size]
            # a column is a table
            number, stride_of_table = np.arange(width)[:, None], stride[index]
            step = number * stride_of_table + (steps[index] + (stride_of_table - 1) / 2)
            ratio: Array = (falling[0][index] - step) * (falling[1][index] - step)
            step += 1
            ratio /= (rising[0][index] + step) * (rising[1][index] + step)
            if stride_of_table.max() > 1:
                ratio **= stride_of_table
            terms: Array = np.cumprod(ratio, axis=0)
            terms *= term[index]
            is_last: Array = (terms <= _TAIL) | ~np.isfinite(terms)
            end = np.where(is_last.any(axis=0), is_last.argmax(axis=0), width)
            term[index] = terms[-1]
            terms[number > end] = 0
            is_unlikely = terms <= 1 + _ROUNDED
            sums[0, index] += stride_of_table * terms.sum(axis=0)
            terms[~is_unlikely] = 0
            sums[1, index] += stride_of_table * terms.sum(axis=0)
            sums[2, index] += (terms >= 1 - _ROUNDED).sum(axis=0)
            steps[index] += stride_of_table * width
            still.append(index[end == width])
        walking, width = np.concatenate(still), min(2 * width, _BLOCK * _FIRST_STEPS)
    return sums[0], sums[1], sums[2]


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


@dataclass(frozen=True, eq=False)
class Strata:
    """Two groups in strata, with the rows of each group and those of them that are hits: arrays of strata."""

    hits: Array
    rows: Array
    other_hits: Array
    other_rows: Array
    standard: Standard | None = None
    """Whose strata rates are standardized to: those of a group, or of both; None for Mantel and Haenszel's weights."""

    @cached_property
    def total(self) -> Array:
        """The rows of both groups."""
        return self.rows + self.other_rows

    @cached_property
    def mantel_haenszel(self) -> Array:
        """The weights of strata by which differences are most precise."""
        return self.rows * self.other_rows / self.total

    @cached_property
    def weight(self) -> Array:
        """The share of each stratum in the population that rates are standardized to."""
        sizes = {"reference": self.other_rows, "group": self.rows, "both": self.total, None: self.mantel_haenszel}
        return sizes[self.standard] / sizes[self.standard].sum()

    @cached_property
    def differences(self) -> Array:
        """The difference of both rates in each stratum."""
        return self.hits / self.rows - self.other_hits / self.other_rows

    @cached_property
    def rates(self) -> tuple[float, float]:
        """The standardized rates of both groups."""
        rate, other = self.weight * self.hits / self.rows, self.weight * self.other_hits / self.other_rows
        return float(rate.sum()), float(other.sum())

    @property
    def variances(self) -> tuple[float, float]:
        """The variances of both rates."""
        groups = ((self.hits, self.rows), (self.other_hits, self.other_rows))
        one, other = ((self.weight**2 * a / n * (1 - a / n) / n).sum() for a, n in groups)
        return float(one), float(other)

    @property
    def std_error(self) -> float:
        """The standard error of the difference; by Mantel and Haenszel's weights that of Sato (1989).

        It holds for few large strata and many small ones.
        """
        if self.standard is not None:
            return math.sqrt(sum(self.variances))
        hits, rows, other_hits, other_rows = self.hits, self.rows, self.other_hits, self.other_rows
        tilted = rows**2 * other_hits - other_rows**2 * hits + rows * other_rows * (other_rows - rows) / 2
        mixed = hits * (other_rows - other_hits) + other_hits * (rows - hits)
        rate, other = self.rates
        variance = (rate - other) * (tilted / self.total**2).sum() + (mixed / (2 * self.total)).sum()
        return float(np.sqrt(max(variance, 0.0))) / float(self.mantel_haenszel.sum())

    def limits(self, z: float) -> tuple[float, float]:
        """The differences of standardized rates that a score test does not reject.

        Miettinen and Nurminen (1985): 0 is outside where `equal_rates` rejects it, and where all shares are 0 or 1 they
        are as wide as so few rows leave them.
        """
        one, other = self.hits / self.rows, self.other_hits / self.other_rows

        def statistic(difference: Array) -> Array:
            first, second = shares_apart(one, self.rows, other, self.other_rows, difference)
            variance = first * (1 - first) / self.rows + second * (1 - second) / self.other_rows
            distance = (self.weight * (one - other - difference)).sum(keepdims=True)
            return squared(distance, (self.weight**2 * variance * correction(self.total)).sum(keepdims=True))

        observed = (self.weight * (one - other)).sum(keepdims=True)
        lower, upper = (root(statistic, observed, np.array([end]), z) for end in (-1.0, 1.0))
        return float(lower[0]), float(upper[0])

    def ratio(self, z: float) -> tuple[float, float, float]:
        """The ratio of both rates, and its limits; nan where one side has no hits.

        The error of its logarithm is that of Greenland and Robins (1985) for Mantel and Haenszel's ratio, and else
        follows from the variances of both rates.
        """
        above, below = self.rates
        if not above or not below:
            return math.nan, math.nan, math.nan
        if self.standard is None:
            hits = (self.hits + self.other_hits) * self.mantel_haenszel - self.hits * self.other_hits
            variance = (hits / self.total).sum() / (above * below * self.mantel_haenszel.sum() ** 2)
        else:
            variance = self.variances[0] / above**2 + self.variances[1] / below**2
        return _ratio_with_limits(above / below, z * math.sqrt(variance))

    @cached_property
    def _concordant(self) -> tuple[Array, Array]:
        """The products of hits of one group and misses of the other, and of misses and hits, by rows."""
        misses, other_misses = self.rows - self.hits, self.other_rows - self.other_hits
        return self.hits * other_misses / self.total, misses * self.other_hits / self.total

    def odds_ratio(self, z: float) -> tuple[float, float, float]:
        """The common odds ratio of strata, and its limits; nan where it is 0 or infinite.

        Mantel and Haenszel's (1959), with the error of its logarithm by Robins, Breslow and Greenland (1986).
        """
        along, across = self._concordant
        above, below = along.sum(), across.sum()
        if not above or not below:
            return math.nan, math.nan, math.nan
        agree = (self.hits + self.other_rows - self.other_hits) / self.total
        mixed = (agree * across + (1 - agree) * along).sum() / (2 * above * below)
        variance = (agree * along).sum() / (2 * above**2) + mixed + ((1 - agree) * across).sum() / (2 * below**2)
        return _ratio_with_limits(above / below, z * math.sqrt(variance))

    def equal_rates(self) -> ChiSquared:
        """Test of no difference of standardized rates: by default that of Cochran, and Mantel and Haenszel (1959)."""
        share, total = (self.hits + self.other_hits) / self.total, self.total
        variance = self.weight**2 * share * (1 - share) * total**2 / (self.rows * self.other_rows * (total - 1))
        distance = (self.weight * self.differences).sum()
        return ChiSquared(float(distance**2 / variance.sum()) if variance.sum() > 0 else 0.0, 1)

    def homogeneity(self) -> ChiSquared:
        """Test of equal differences in all strata (Cochran's Q, 1954)."""
        # a continuity correction of half a row, so that no stratum has a variance of zero
        rows = np.stack([self.rows, self.other_rows])
        shares = (np.stack([self.hits, self.other_hits]) + 0.5) / (rows + 1)
        variance: Array = (shares * (1 - shares) / rows).sum(axis=0)
        middle = (self.differences / variance).sum() / (1 / variance).sum()
        spread = float(((self.differences - middle) ** 2 / variance).sum())
        return ChiSquared(spread if len(self.rows) > 1 else 0.0, len(self.rows) - 1)

    def equal_odds(self) -> ChiSquared:
        """Test of equal odds ratios (Breslow and Day, 1980).

        With Tarone's (1985) correction, because the common odds ratio is the Mantel-Haenszel estimate. Strata without
        hits, or with hits only, do not count. The statistic is NaN if there is no common odds ratio.
        """
        total_hits = self.hits + self.other_hits
        counted = (total_hits > 0) & (total_hits < self.total)
        hits, rows, other_rows, total_hits, along, across = (
            column[counted] for column in (self.hits, self.rows, self.other_rows, total_hits, *self._concordant)
        )
        freedom = len(hits) - 1
        if freedom < 1:
            return ChiSquared(0.0, 0)
        if not along.sum() or not across.sum():
            return ChiSquared(math.nan, freedom)
        ratio = along.sum() / across.sum()
        # the hits expected at this odds ratio, given the margins: the possible root of a quadratic equation, written so
        # that an odds ratio of 1 does not divide by zero
        square, linear = 1 - ratio, other_rows - total_hits + ratio * (rows + total_hits)
        constant = -ratio * rows * total_hits
        expected = -2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant))
        other_expected = total_hits - expected
        inverse = 1 / expected + 1 / (rows - expected) + 1 / other_expected + 1 / (other_rows - other_expected)
        away = hits - expected
        statistic = float((away**2 * inverse).sum() - away.sum() ** 2 / (1 / inverse).sum())
        return ChiSquared(max(0.0, statistic), freedom)

    def columns(self, level: float) -> dict[str, Any]:
        """The columns of results of all strata together: contrasts with their limits, and tests."""
        z, (rate, other), (lower, upper) = z_value(level), self.rates, self.limits(z_value(level))
        columns: dict[str, Any] = {
            ".estimate": rate, ".estimate_other": other, ".adjusted": rate - other, ".lower": lower, ".upper": upper,
            ".std_error": self.std_error or None,
        }  # fmt: skip
        tests = {"": self.equal_rates(), "_homogeneity": self.homogeneity(), "_equal_odds": self.equal_odds()}
        for name, test in tests.items():
            columns |= {f".statistic{name}": test.statistic, f".df{name}": test.freedom}
            columns[f".p{name or '_value'}"] = test.p_value
        for name, ratio in {".ratio": self.ratio(z), ".odds_ratio": self.odds_ratio(z)}.items():
            columns |= zip((name, f"{name}_lower", f"{name}_upper"), ratio, strict=True)
        return columns


def _ratio_with_limits(value: float, half: float) -> tuple[float, float, float]:
    """A ratio with its limits, `half` to either side on the logarithmic scale."""
    return float(value), float(value * math.exp(-half)), float(value * math.exp(half))


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
