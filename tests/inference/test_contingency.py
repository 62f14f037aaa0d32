"""Exact tests and mid-p-values of tables of two rows and two columns, and tests of equal odds ratios."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import StratifiedTable, mcnemar as their_mcnemar

import tidyfair as tf
from tidyfair.inference.contingency import Strata, fisher, mcnemar


def test_fisher_equals_scipy_and_its_mid_p_value_counts_ties_half() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        rows, other_rows = (int(size) for size in random.integers(1, 60, 2))
        hits, other_hits = int(random.integers(0, rows + 1)), int(random.integers(0, other_rows + 1))
        theirs: Any = stats.fisher_exact([[hits, rows - hits], [other_hits, other_rows - other_hits]])
        assert fisher(hits, rows, other_hits, other_rows) == pytest.approx(theirs[1], rel=1e-6)
        total = hits + other_hits
        possible = np.arange(max(0, total - other_rows), min(rows, total) + 1)
        likely = stats.hypergeom.pmf(possible, rows + other_rows, total, rows)
        observed = stats.hypergeom.pmf(hits, rows + other_rows, total, rows)
        ties = likely[np.isclose(likely, observed, rtol=1e-7, atol=0)].sum()
        expected = theirs[1] - ties / 2
        assert fisher(hits, rows, other_hits, other_rows, mid_p=True) == pytest.approx(expected, rel=1e-6)


def test_mcnemar_equals_statsmodels_and_its_mid_p_value_counts_ties_half() -> None:
    for one in range(12):
        for other in range(12):
            theirs: Any = their_mcnemar([[5, one], [other, 5]], exact=True)
            exact = theirs.pvalue if one + other else 1.0
            assert mcnemar(one, other, mid_p=False) == pytest.approx(exact)
            # Fagerland and others (2013): an even split is one of its kind, an uneven one is one of two
            ties = stats.binom.pmf(one, one + other, 0.5) * (1 if one == other else 2)
            # without disagreement there is nothing to test
            assert mcnemar(one, other) == pytest.approx(exact - ties / 2 if one + other else 1)


@pytest.mark.simulation
@pytest.mark.parametrize("disagree", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("rows", [20, 60, 200])
def test_mid_p_value_of_mcnemar_keeps_its_level(rows: int, disagree: float) -> None:
    reached = {"mid_p": 0.0, "exact": 0.0}
    for total in range(rows + 1):
        one = np.arange(total + 1)
        likely = stats.binom.pmf(total, rows, disagree) * stats.binom.pmf(one, total, 0.5)
        for name in reached:
            p_values = np.array([mcnemar(int(k), int(total - k), mid_p=name == "mid_p") for k in one])
            reached[name] += float(likely[p_values <= 0.05].sum())
    assert reached["exact"] <= reached["mid_p"] <= 0.053


@pytest.mark.parametrize("rows", [10**6, 10**9, 10**12, 10**15])
def test_exact_tests_of_many_rows_take_no_longer_and_are_right(rows: int) -> None:
    away = round(rows**0.5)
    start = time.process_time()
    # of so many rows, mid-p-values are those of the normal distribution
    middle = fisher(rows // 2 + away, rows, rows // 2, rows, mid_p=True)
    assert middle == pytest.approx(2 * stats.norm.sf(away / math.sqrt(rows / 2)), rel=5e-5)
    assert mcnemar(rows // 2 + away, rows // 2) == pytest.approx(2 * stats.norm.sf(away / math.sqrt(rows)), rel=1e-3)
    # of rare hits, they are those of binomials
    assert fisher(30, rows, 10, rows) == pytest.approx(2 * stats.binom.cdf(10, 40, 0.5), rel=1e-3)
    assert time.process_time() - start < 1


def test_exact_tests_know_probabilities_that_are_tiny() -> None:
    assert mcnemar(1000, 0, mid_p=False) == pytest.approx(2.0**-999, rel=1e-9)
    theirs: Any = stats.fisher_exact([[300, 10**6 - 300], [10, 10**6 - 10]])
    assert fisher(300, 10**6, 10, 10**6) == pytest.approx(theirs[1], rel=1e-8)
    assert fisher(10**6, 10**6, 0, 10**6) == mcnemar(10**6, 0) == 0


@pytest.mark.parametrize(("mid_p", "counted"), [(False, 1.0), (True, 0.5)])
def test_fisher_equals_sums_of_whole_numbers_for_all_small_tables(*, mid_p: bool, counted: float) -> None:
    tables: list[tuple[int, int, int, int]] = []
    expected: list[float] = []
    for rows, other_rows in itertools.product(range(9), repeat=2):
        for hits, other_hits in itertools.product(range(rows + 1), range(other_rows + 1)):
            total = hits + other_hits
            ways = [math.comb(rows, one) * math.comb(other_rows, total - one) for one in range(min(rows, total) + 1)]
            observed = ways[hits]
            fewer, as_many = sum(way for way in ways if way < observed), observed * ways.count(observed)
            tables.append((hits, rows, other_hits, other_rows))
            expected.append((fewer + as_many * counted) / sum(ways))
    assert fisher(*np.array(tables).T, mid_p=mid_p) == pytest.approx(expected, rel=1e-10)


def test_p_values_of_a_hundred_thousand_tables_are_those_of_each_table() -> None:
    random = np.random.default_rng(7)
    rows, other_rows = random.integers(1, 40, (2, 10**5))
    hits, other_hits = random.binomial(rows, 0.3), random.binomial(other_rows, 0.5)
    start = time.process_time()
    p_values = fisher(hits, rows, other_hits, other_rows)
    assert time.process_time() - start < 4  # one by one they took twenty seconds
    for index in random.integers(0, 10**5, 50).tolist():
        counts = hits[index], other_hits[index]
        theirs: Any = stats.fisher_exact([counts, (rows[index] - counts[0], other_rows[index] - counts[1])])
        assert p_values[index] == pytest.approx(theirs[1], rel=1e-7)


STRATA = [
    ([10.0, 20, 5], [40.0, 50, 30], [8.0, 30, 3], [50.0, 60, 20]),
    ([1.0, 2, 5, 9], [4.0, 5, 30, 12], [8.0, 3, 3, 2], [50.0, 6, 20, 30]),
]


@pytest.mark.parametrize("tables", STRATA)
def test_equal_odds_equals_breslow_day_with_tarones_correction(tables: Any) -> None:
    hits, rows, other, others = map(np.array, tables)
    cells = [[[a, n - a], [b, m - b]] for a, n, b, m in zip(hits, rows, other, others, strict=True)]
    theirs: Any = StratifiedTable(np.array(cells).transpose(1, 2, 0)).test_equal_odds(adjust=True)
    assert Strata(hits, rows, other, others).equal_odds().p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_equal_odds_of_opposite_strata_by_hand() -> None:
    # the common odds ratio is 1, at which 20 of 60 are expected on both sides
    rows = np.full(2, 60.0)
    variance = 1 / (2 / 20 + 2 / 40)
    expected = stats.chi2.sf(2 * 10**2 / variance, 1)
    assert Strata(np.array([30.0, 10]), rows, np.array([10.0, 30]), rows).equal_odds().p_value == pytest.approx(
        expected
    )


def test_strata_without_hits_do_not_count() -> None:
    hits, rows, other, others = map(np.array, STRATA[0])
    more = [np.append(column, extra) for column, extra in zip(STRATA[0], (0, 20, 0, 30), strict=True)]
    assert Strata(more[0], more[1], more[2], more[3]).equal_odds() == pytest.approx(
        Strata(hits, rows, other, others).equal_odds()
    )
    assert Strata(hits[:1], rows[:1], other[:1], others[:1]).equal_odds().p_value == 1
    assert math.isnan(Strata(hits, hits, other, others).equal_odds().p_value)


@pytest.mark.simulation
def test_error_rate_of_equal_odds() -> None:
    random, rejected = np.random.default_rng(6), 0
    rows, others = np.full(5, 60.0), np.full(5, 80.0)
    base = np.array([-1.5, -0.5, 0, 0.5, 1])
    for _ in range(1000):
        hits = random.binomial(60, 1 / (1 + np.exp(-base - 0.5)))
        other = random.binomial(80, 1 / (1 + np.exp(-base)))
        rejected += Strata(hits.astype(float), rows, other.astype(float), others).equal_odds().p_value < 0.05
    assert rejected / 1000 == pytest.approx(0.05, abs=3 * math.sqrt(0.05 * 0.95 / 1000))


def test_compare_models_takes_mid_p_values_unless_told_otherwise() -> None:
    people = pl.DataFrame({"y": [1] * 40, "one": [1] * 30 + [0] * 10, "other": [0] * 9 + [1] * 23 + [0] * 8})
    only_one, only_other = 9, 2
    for given, expected in (({}, mcnemar(9, 2)), ({"mid_p": False}, mcnemar(9, 2, mid_p=False))):
        options: dict[str, Any] = given
        result = tf.compare_models(tf.accuracy, **options)(people, "y", one="one", other="other", pos_label=1, times=50)
        assert result[".p_value"].item() == pytest.approx(expected)
    theirs: Any = their_mcnemar([[0, only_one], [only_other, 0]], exact=True)
    assert mcnemar(only_one, only_other, mid_p=False) == pytest.approx(theirs.pvalue)


def test_pairwise_takes_mid_p_values_if_asked() -> None:
    people = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 30 + ["c"] * 25, "e": [1] * 14 + [0] * 6 + [1] * 10 + [0] * 45})
    exact = tf.inference.pairwise(tf.demographic_parity("g"), adjust="none")(people, estimate="e", pos_label=1)
    middle = tf.inference.pairwise(tf.demographic_parity("g"), adjust="none", mid_p=True)(
        people, estimate="e", pos_label=1
    )
    assert exact[".p_value"][0] == pytest.approx(fisher(14, 20, 10, 30))
    assert middle[".p_value"][0] == pytest.approx(fisher(14, 20, 10, 30, mid_p=True))
    assert middle[".test"].unique().to_list() == ["mid_p"]
    with pytest.raises(tf.errors.ArgumentError, match="`mid_p`"):
        tf.inference.pairwise(tf.demographic_parity("g"), test="g", mid_p=True)
