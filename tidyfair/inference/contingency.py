"""Tests of 2 x 2 tables, alone and in strata: exact tests with mid-p-values, and Mantel and Haenszel's estimates."""

from __future__ import annotations

import math
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
"""The root of the smallest cell beyond which several steps are taken at once."""


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
        every, unlikely, ties = _walked(falling, rising)
        tail, _, _ = _walked(rising, falling)
        # probabilities are relative to that of the table itself
        unlikely = 1 + tail + unlikely - ((1 + ties) / 2 if mid_p else 0)
        p_values[block] = unlikely / (1 + tail + every)
    return p_values.reshape(broadcast[0].shape)


@np.errstate(over="ignore", invalid="ignore")
def _walked(falling: list[Array], rising: list[Array]) -> tuple[Array, Array, Array]:
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
