"""Tests for 2 x 2 tables: exact tests with mid-p-values, and a test of equal odds ratios."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tidyfair.progress import in_progress

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]
    Counts: TypeAlias = Array | int

__all__: list[str] = []

_ROUNDED = 1e-7
"""Probabilities with a smaller relative difference are the same."""
_NEGLIGIBLE = 745.0
"""The logarithm of a probability, with its sign changed, that is zero as a float."""
_MARGIN = 60.0
"""The same of a probability that is nothing beside another one."""
_MOST_COUNTS = 2**20
"""The most counts whose probabilities are worked out at once; if one table has more, neighbours are alike."""


def fisher(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts, *, mid_p: bool = False) -> Array:
    """Exact p-values of tables given their margins: the probability of all tables no likelier (Fisher, 1935).

    As mid-p-values (Lancaster, 1961), equally likely tables count half.
    """
    import numpy as np

    given: list[Array] = [np.asarray(count, np.int64) for count in (hits, rows, other_hits, other_rows)]
    tables = np.stack([column.ravel() for column in np.broadcast_arrays(*given)])
    low, high, is_possible = _window(*tables)
    step = 1 + (high - low) // _MOST_COUNTS
    below = (tables[0] - low) // step
    width = np.where(is_possible, below + (high - tables[0]) // step + 1, 0)
    p_values: Array = np.zeros(len(width))
    for index in in_progress(_blocks(width), "testing"):
        probability = _probabilities(tables[:, index, None], below[index, None], width[index, None], step[index, None])
        observed = np.take_along_axis(probability, below[index, None], axis=1)
        less_likely = np.where(probability < observed * (1 - _ROUNDED), probability, 0).sum(axis=1)
        as_likely = np.where(probability <= observed * (1 + _ROUNDED), probability, 0).sum(axis=1) - less_likely
        p_values[index] = np.minimum(1, less_likely + as_likely * (0.5 if mid_p else 1.0))
    return p_values.reshape(np.broadcast_shapes(*(column.shape for column in given)))


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


def _window(hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> tuple[Array, Array, Array]:
    """The smallest and the largest hits whose probability matters, and whether that of the observed ones is not 0.

    Hits are sums of independent zeros and ones, as it were, so that Bernstein's inequality says how far from their mean
    they can be (Vatutin and Mikhailov, 1982).
    """
    import numpy as np

    total, size = hits + other_hits, rows + other_rows
    share = total / np.maximum(size, 1)
    mean, variance = rows * share, rows * share * (1 - share) * other_rows / np.maximum(size - 1, 1)
    logarithm = _log_choices(rows, hits) + _log_choices(other_rows, other_hits) - _log_choices(size, total)

    def reach(negligible: Array | float) -> Array:
        third = negligible / 3
        return third + np.sqrt(third**2 + 2 * negligible * variance) + 1

    away = reach(np.clip(_MARGIN - logarithm, 0, _NEGLIGIBLE))
    low = np.maximum(np.maximum(0, total - other_rows), np.floor(np.minimum(mean - away, hits)).astype(np.int64))
    high = np.minimum(np.minimum(total, rows), np.ceil(np.maximum(mean + away, hits)).astype(np.int64))
    return low, high, abs(hits - mean) <= reach(_NEGLIGIBLE)


def _log_choices(size: Array, chosen: Array) -> Array:
    """Roughly the logarithm of the number of choices."""
    import numpy as np
    from scipy.special import betaln

    return -np.log1p(size) - betaln(size - chosen + 1, chosen + 1)


def _blocks(width: Array) -> list[Array]:
    """The indices of tables that are worked out at once: of about as many counts each, and not too many together."""
    import numpy as np

    order = np.argsort(-width, kind="stable")
    order = order[width[order] > 0]
    blocks: list[Array] = []
    while len(order):
        size = max(_MOST_COUNTS // int(width[order[0]]), 1)
        blocks.append(order[:size])
        order = order[size:]
    return blocks


def _probabilities(tables: Array, below: Array, width: Array, step: Array) -> Array:
    """The probabilities of hits, some steps below and above those observed; a row for each table."""
    import numpy as np

    hits, rows, other_hits, other_rows = tables
    number = np.arange(int(width.max()))
    counts = hits + step * (number - below)
    # between counts that are some steps from each other, the ratio of probabilities is that in their middle
    middle = (counts[:, :-1] + counts[:, 1:] - 1) / 2
    misses = hits + other_hits - middle
    ratio = (rows - middle) * misses / ((middle + 1) * (other_rows - misses + 1))
    logarithms = np.cumsum(np.log(np.where(number[1:] < width, ratio, 1.0)) * step, axis=1)
    logarithms = np.where(number < width, np.insert(logarithms, 0, 0, axis=1), -math.inf)
    probability = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return probability / probability.sum(axis=1, keepdims=True)


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
    import numpy as np

    square = 1 - ratio
    linear = other_rows - total_hits + ratio * (rows + total_hits)
    constant = -ratio * rows * total_hits
    # the root that is possible, written so that an odds ratio of 1 does not divide by zero
    return -2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant))


def chi_squared(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """P-values of the chi-squared test of equal shares (Pearson, 1900), without continuity correction."""
    import numpy as np

    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    return _one_degree(((observed - expected) ** 2 / np.where(expected > 0, expected, 1)).sum(axis=0))


def likelihood_ratio(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> Array:
    """P-values of the likelihood ratio test of equal shares (Wilks, 1938), the G test."""
    import numpy as np

    observed, expected = _observed_and_expected(hits, rows, other_hits, other_rows)
    is_observed = observed > 0
    quotient = np.where(is_observed, observed, 1) / np.where(is_observed, expected, 1)
    return _one_degree(2 * (observed * np.log(quotient)).sum(axis=0))


def _observed_and_expected(hits: Counts, rows: Counts, other_hits: Counts, other_rows: Counts) -> tuple[Array, Array]:
    """The counts of tables, and those expected for equal shares: the first axis is that of the cells."""
    import numpy as np

    counts: list[Array] = [np.asarray(count, float) for count in (hits, rows, other_hits, other_rows)]
    hits, rows, other_hits, other_rows = counts
    share = (hits + other_hits) / (rows + other_rows)
    observed = np.stack([hits, rows - hits, other_hits, other_rows - other_hits])
    return observed, np.stack([rows * share, rows * (1 - share), other_rows * share, other_rows * (1 - share)])


def _one_degree(statistic: Array) -> Array:
    """Upper tail probabilities of the chi-squared distribution with one degree of freedom."""
    import numpy as np
    from scipy.special import chdtrc

    return chdtrc(1, np.maximum(statistic, 0))
