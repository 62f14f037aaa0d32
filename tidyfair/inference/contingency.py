"""Tests for 2 x 2 tables: exact tests with mid-p-values, and a test of equal odds ratios."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tidyfair.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

_ROUNDED = 1e-7
"""Probabilities with a smaller relative difference are the same."""
_NEGLIGIBLE = 745.0
"""The logarithm of a probability, with its sign changed, that is zero as a float."""
_MOST_COUNTS = 2**20
"""The most counts whose probabilities are worked out one by one; of more, several beside each other are alike."""


def fisher(hits: int, rows: int, other_hits: int, other_rows: int, *, mid_p: bool = False) -> float:
    """Exact p-value of tables given their margins: the probability of all tables no likelier (Fisher, 1935).

    As a mid-p-value (Lancaster, 1961), equally likely tables count half.
    """
    total, size = hits + other_hits, rows + other_rows
    share = total / size
    variance = rows * share * (1 - share) * other_rows / max(size - 1, 1)
    counts = _window(hits, rows * share, variance, max(0, total - other_rows), min(total, rows))
    if counts is None:
        return 0.0
    probability = _probabilities(
        counts, lambda count: (rows - count) * (total - count) / ((count + 1) * (other_rows - total + count + 1))
    )
    observed = probability[counts == hits]
    less_likely = probability[probability < observed * (1 - _ROUNDED)].sum()
    as_likely = probability[probability <= observed * (1 + _ROUNDED)].sum() - less_likely
    return float(min(1.0, less_likely + as_likely * (0.5 if mid_p else 1.0)))


def mcnemar(one: int, other: int, *, mid_p: bool = True) -> float:
    """Exact p-value for the rows on which two models disagree (McNemar, 1947).

    As a mid-p-value (Fagerland et al., 2013), equally uneven splits count half; the value is 1 for an even split.
    """
    total, fewer = one + other, min(one, other)
    counts = _window(fewer, total / 2, total / 4, 0, total)
    if counts is None:
        return 0.0
    probability = _probabilities(counts, lambda count: (total - count) / (count + 1))
    excess = probability[counts == fewer].sum() if mid_p else 0.0
    return float(min(1.0, 2 * probability[counts <= fewer].sum() - excess))


def cochrans_q(hits: Array) -> tuple[float | None, float | None]:
    """The statistic and p-value of the test that columns of hits have the same share (Cochran, 1950); needs scipy.

    Rows are matched sets. Null if no row has both a hit and a miss.
    """
    try:
        from scipy.stats import chi2  # pyright: ignore[reportMissingTypeStubs] - it has none
    except ImportError as error:
        msg = f"Cochran's test needs scipy: pip install 'tidyfair[stats]' ({error})."
        raise ArgumentError(msg) from error
    columns = hits.shape[1]
    of_column, of_row = hits.sum(axis=0, dtype=float), hits.sum(axis=1, dtype=float)
    scale = columns * of_row.sum() - (of_row**2).sum()
    if not scale:
        return None, None
    statistic = float((columns - 1) * (columns * (of_column**2).sum() - of_column.sum() ** 2) / scale)
    survival: Callable[..., Any] = chi2.sf  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - no types
    return statistic, float(survival(statistic, columns - 1))


def _window(observed: int, mean: float, variance: float, least: int, most: int) -> Array | None:
    """The counts, the observed one among them, whose probability is no zero; None if that of the observed one is.

    The counts are sums of independent zeros and ones, or as if they were, so that Bernstein's inequality says how far
    from their mean they can be (for hypergeometric ones: Vatutin and Mikhailov, 1982).
    """
    import numpy as np

    third = _NEGLIGIBLE / 3
    reach = third + math.sqrt(third**2 + 2 * _NEGLIGIBLE * variance) + 1
    if abs(observed - mean) > reach:
        return None
    low, high = max(least, math.floor(mean - reach)), min(most, math.ceil(mean + reach))
    step = 1 + (high - low) // _MOST_COUNTS
    return observed + step * np.arange(-((observed - low) // step), (high - observed) // step + 1)


def _probabilities(counts: Array, ratio: Callable[[Array], Array]) -> Array:
    """The probabilities of counts, from the ratio of the probability of a count and one more to its own."""
    import numpy as np

    steps = np.diff(counts)
    # between counts that are some steps from each other, the ratio is that in their middle
    logarithms = np.log(ratio((counts[:-1] + counts[1:] - 1) / 2)) * steps
    logarithms = np.concatenate([[0.0], np.cumsum(logarithms)])
    probability = np.exp(logarithms - logarithms.max())
    return probability / probability.sum()


def equal_odds(hits: Array, rows: Array, other_hits: Array, other_rows: Array) -> float:
    """P-value of the test of equal odds ratios in strata (Breslow and Day, 1980); needs scipy.

    With Tarone's (1985) correction, because the common odds ratio is the Mantel-Haenszel estimate. Strata without hits,
    or with hits only, do not count. The value is NaN if there is no common odds ratio.
    """
    try:
        from scipy.stats import chi2  # pyright: ignore[reportMissingTypeStubs] - it has none
    except ImportError as error:
        msg = f"The test of equal odds ratios needs scipy: pip install 'tidyfair[stats]' ({error})."
        raise ArgumentError(msg) from error
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
    survival: Callable[..., Any] = chi2.sf  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - no types
    return float(survival(max(0.0, statistic), len(hits) - 1))


def _hits_at(ratio: float, rows: Array, other_rows: Array, total_hits: Array) -> Array:
    """The hits among the rows of a table with an odds ratio, given its margins: a root of a quadratic equation."""
    import numpy as np

    square = 1 - ratio
    linear = other_rows - total_hits + ratio * (rows + total_hits)
    constant = -ratio * rows * total_hits
    # the root that is possible, written so that an odds ratio of 1 does not divide by zero
    return -2 * constant / (linear + np.sqrt(linear**2 - 4 * square * constant))


def chi_squared(hits: int, rows: int, other_hits: int, other_rows: int) -> float:
    """P-value of the chi-squared test of equal shares (Pearson, 1900), without continuity correction."""
    pairs = _observed_and_expected(hits, rows, other_hits, other_rows)
    return _one_degree(sum((observed - expected) ** 2 / expected for observed, expected in pairs))


def likelihood_ratio(hits: int, rows: int, other_hits: int, other_rows: int) -> float:
    """P-value of the likelihood ratio test of equal shares (Wilks, 1938), the G test."""
    pairs = _observed_and_expected(hits, rows, other_hits, other_rows)
    return _one_degree(2 * sum(observed * math.log(observed / expected) for observed, expected in pairs if observed))


def _observed_and_expected(hits: int, rows: int, other_hits: int, other_rows: int) -> Iterator[tuple[int, float]]:
    """The counts of a table, and those expected for equal shares, without counts that can only be 0."""
    share = (hits + other_hits) / (rows + other_rows)
    for count, size in ((hits, rows), (other_hits, other_rows)):
        for observed, expected in ((count, size * share), (size - count, size * (1 - share))):
            if expected:
                yield observed, expected


def _one_degree(statistic: float) -> float:
    """Upper tail probability of the chi-squared distribution with one degree of freedom."""
    return math.erfc(math.sqrt(max(0.0, statistic) / 2))
