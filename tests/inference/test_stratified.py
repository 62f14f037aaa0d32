"""Differences within strata equal statsmodels and plain arithmetic; error rates by simulation."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2
from statsmodels.stats.contingency_tables import StratifiedTable

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending
from tidyfair.inference.contingency import Strata
from tidyfair.intervals.proportions import score_difference, z_value

LOANS = lending(2500).with_columns(y=pl.col("repaid") == "yes", p=pl.col("approved") == "yes")


def strata(metric: str = "selection", group: str = "Black", other: str = "White") -> list[Any]:
    """Hits and rows of two races in each age band, by hand."""
    kept = LOANS.filter("y") if metric == "sens" else LOANS
    tables: list[Any] = []
    for race in (group, other):
        each = (
            kept.filter(pl.col("race") == race).group_by("age_band").agg(pl.col("p").sum(), pl.len()).sort("age_band")
        )
        tables += [each["p"].cast(pl.Float64).to_numpy(), each["len"].cast(pl.Float64).to_numpy()]
    return tables


@pytest.mark.parametrize("metric", ["selection", "sens"])
def test_adjusted_difference_and_tests_equal_statsmodels(metric: str) -> None:
    made = tf.equal_opportunity("race") if metric == "sens" else tf.demographic_parity("race")
    result = inference.stratified(made, within="age_band")(LOANS, "y", "p")
    hits, rows, other, others = strata(metric)
    row = result.filter(pl.col(".group") == "Black").row(0, named=True)
    assert row[".crude"] == pytest.approx(hits.sum() / rows.sum() - other.sum() / others.sum())
    weight = rows * others / (rows + others)
    assert row[".adjusted"] == pytest.approx(np.average(hits / rows - other / others, weights=weight))
    table = [[[a, n - a], [b, m - b]] for a, n, b, m in zip(hits, rows, other, others, strict=True)]
    theirs: Any = StratifiedTable(np.array(table).transpose(1, 2, 0)).test_null_odds(correction=False)
    assert row[".p_value"] == pytest.approx(theirs.pvalue)
    one, two = (hits + 0.5) / (rows + 1), (other + 0.5) / (others + 1)
    variance = one * (1 - one) / rows + two * (1 - two) / others
    apart = hits / rows - other / others
    middle = np.average(apart, weights=1 / variance)
    spread = ((apart - middle) ** 2 / variance).sum()
    assert row[".p_homogeneity"] == pytest.approx(float(chi2.sf(spread, len(rows) - 1)))
    assert row[".other"] == "White"
    assert row[".strata"] == 4
    assert (row[".n"], row[".n_other"]) == (rows.sum(), others.sum())


@pytest.mark.simulation
@pytest.mark.parametrize(("count", "size", "least", "most"), [(4, 80, 0.2, 0.6), (40, 6, 0.2, 0.6), (2, 5, 0.4, 0.85)])
def test_mantel_haenszel_interval_coverage(count: int, size: int, least: float, most: float) -> None:
    random, held, runs = np.random.default_rng(3), 0, 300
    base = np.linspace(least, most, count)
    rows, others = np.full(count, size), np.full(count, 2 * size)
    for _ in range(runs):
        hits, other = random.binomial(rows, base + 0.1), random.binomial(others, base)
        lower, upper = Strata(hits, rows, other, others).limits(1.959964)
        held += lower <= 0.1 <= upper
    assert held / runs == pytest.approx(0.95, abs=0.03)


def test_interval_excludes_equality_where_its_test_rejects_it() -> None:
    random = np.random.default_rng(8)
    for _ in range(60):
        rows, others = random.integers(2, 40, (2, 3))
        tables = random.binomial(rows, 0.5), rows, random.binomial(others, 0.25), others
        lower, upper = Strata(*tables).limits(z_value(0.95))
        assert (lower > 0 or upper < 0) == (Strata(*tables).equal_rates().p_value < 0.05)


def test_interval_of_one_stratum_is_that_of_its_difference() -> None:
    hits, rows, other, others = (np.array([number]) for number in (7, 20, 20, 45))
    expected = score_difference(hits / rows, rows, other / others, others, 1.959964)
    assert np.ravel(Strata(hits, rows, other, others).limits(1.959964)) == pytest.approx(np.ravel(expected))


def test_interval_of_rates_that_are_all_0_or_1_is_no_certainty() -> None:
    for hits, other, expected in ((0, 0, 0), (8, 10, 0), (8, 0, 1)):
        data = people(x=((hits, 8), (other, 10)), y=((hits, 8), (other, 10)))
        row = PARITY(data, estimate="p", pos_label=1, labels=[0, 1]).row(0, named=True)
        sign = 1 if row[".group"] == "a" else -1
        assert row[".adjusted"] == sign * expected
        assert row[".upper"] - row[".lower"] > 0.1
        assert row[".std_error"] is None


def test_groups_without_counted_rows_have_no_comparison() -> None:
    data = people(x=((5, 10), (4, 10)), y=((5, 10), (4, 10))).with_columns(t=0)
    result = inference.stratified(tf.equal_opportunity("g"), within="s")(data, "t", "p", pos_label=1, labels=[0, 1])
    assert result.is_empty()
    assert result.columns == PARITY(data, estimate="p").columns


@pytest.mark.simulation
def test_error_rate_of_equal_groups() -> None:
    random, rejected, varied, runs = np.random.default_rng(4), 0, 0, 1500
    base, rows, others = np.array([0.1, 0.3, 0.5, 0.8]), np.array([60, 30, 80, 50]), np.array([200, 100, 90, 300])
    for _ in range(runs):
        tables = random.binomial(rows, base), rows, random.binomial(others, base), others
        rejected += Strata(*tables).equal_rates().p_value < 0.05
        varied += Strata(*tables).homogeneity().p_value < 0.05
    assert rejected / runs == pytest.approx(0.05, abs=0.02)
    assert varied / runs < 0.07


def people(**strata: tuple[tuple[int, int], tuple[int, int]]) -> pl.DataFrame:
    """Two groups in each stratum, as hits and rows."""
    rows = [
        (name, group, hit)
        for name, both in strata.items()
        for group, (hits, size) in zip("ab", both, strict=True)
        for hit in [1] * hits + [0] * (size - hits)
    ]
    return pl.DataFrame(rows, schema=["s", "g", "p"], orient="row")


PARITY = inference.stratified(tf.demographic_parity("g"), within="s")


def test_pattern_names_simpson_and_heterogeneity() -> None:
    turned = PARITY(people(x=((18, 20), (72, 90)), y=((27, 90), (4, 20))), estimate="p").row(0, named=True)
    assert turned[".crude"] > 0 > turned[".adjusted"]
    assert turned[".pattern"] == "simpson"
    across = PARITY(people(x=((80, 100), (20, 100)), y=((20, 100), (80, 100))), estimate="p").row(0, named=True)
    assert across[".pattern"] == "heterogeneous"
    assert across[".adjusted"] == pytest.approx(0)
    alike = PARITY(people(x=((50, 100), (40, 100)), y=((30, 100), (22, 100))), estimate="p").row(0, named=True)
    assert alike[".pattern"] == "alike"
    none = PARITY(people(x=((5, 10), (0, 0)), y=((0, 0), (5, 10))), estimate="p").row(0, named=True)
    assert (none[".pattern"], none[".adjusted"], none[".strata"]) == ("no common stratum", None, 0)


# Two strata of rows and hits: 40 of 100 and 10 of 20 in the group, 40 of 80 and 30 of 120 in the reference.
TWO = people(x=((40, 100), (40, 80)), y=((10, 20), (30, 120)))


@pytest.mark.parametrize(
    ("standard", "shares"),
    [("reference", (80 / 200, 120 / 200)), ("group", (100 / 120, 20 / 120)), ("both", (180 / 320, 140 / 320))],
)
def test_rates_are_standardized_to_the_strata_of_a_group(standard: Any, shares: tuple[float, float]) -> None:
    """Direct standardization, by plain arithmetic."""
    parity = tf.demographic_parity("g", to="b")
    row = inference.stratified(parity, within="s", standard=standard)(TWO, estimate="p").row(0, named=True)
    rate, other = (shares[0] * 0.4 + shares[1] * 0.5), (shares[0] * 0.5 + shares[1] * 0.25)
    assert (row[".estimate"], row[".estimate_other"]) == pytest.approx((rate, other))
    assert row[".adjusted"] == pytest.approx(rate - other)
    variance = shares[0] ** 2 * 0.24 / 100 + shares[1] ** 2 * 0.25 / 20
    of_other = shares[0] ** 2 * 0.25 / 80 + shares[1] ** 2 * 0.1875 / 120
    assert row[".std_error"] == pytest.approx((variance + of_other) ** 0.5)
    half = 1.959963984540054 * (variance / rate**2 + of_other / other**2) ** 0.5
    assert row[".ratio"] == pytest.approx(rate / other)
    assert row[".ratio_upper"] == pytest.approx(rate / other * np.exp(half))
    pooled = [80 / 180 * (1 - 80 / 180) * 180 / 179 * (1 / 100 + 1 / 80), 40 / 140 * (1 - 40 / 140) * 140 / 139]
    by_chance = shares[0] ** 2 * pooled[0] + shares[1] ** 2 * pooled[1] * (1 / 20 + 1 / 120)
    assert row[".statistic"] == pytest.approx((rate - other) ** 2 / by_chance)
    assert row[".p_value"] == pytest.approx(float(chi2.sf((rate - other) ** 2 / by_chance, 1)))
    assert (row[".lower"] > 0 or row[".upper"] < 0) == (row[".p_value"] < 0.05)


def test_statistics_and_degrees_of_freedom_are_those_of_statsmodels() -> None:
    row = PARITY(TWO, estimate="p").row(0, named=True)
    table: Any = StratifiedTable([np.array([[30, 90], [10, 10]]), np.array([[40, 40], [40, 60]])])
    assert (row[".statistic"], row[".df"]) == pytest.approx((table.test_null_odds().statistic, 1))
    equal = table.test_equal_odds(adjust=True)
    assert (row[".statistic_equal_odds"], row[".df_equal_odds"]) == pytest.approx((equal.statistic, 1))
    assert row[".df_homogeneity"] == 1
    assert row[".p_homogeneity"] == pytest.approx(float(chi2.sf(row[".statistic_homogeneity"], 1)))
    # Mantel and Haenszel's difference is one of rates with the same shares of strata
    assert row[".estimate"] - row[".estimate_other"] == pytest.approx(row[".adjusted"])


def test_reference_and_outer_groups() -> None:
    to = tf.demographic_parity("race", aggregate=tf.difference(to="Asian"))
    result = inference.stratified(to, within="age_band")(LOANS, estimate="p")
    assert result[".other"].unique().to_list() == ["Asian"]
    assert len(result) == 4
    by_sex = inference.stratified(tf.demographic_parity("race"), within="age_band")(LOANS, estimate="p", group_by="sex")
    part = LOANS.filter(pl.col("sex") == "male")
    alone = inference.stratified(tf.demographic_parity("race"), within="age_band", adjust="none")(part, estimate="p")
    male = by_sex.filter(pl.col("sex") == "male").drop("sex", ".p_adjusted", ".adjustment")
    assert male.equals(alone.drop(".p_adjusted", ".adjustment"))


def test_stratified_rejects_bad_metrics_and_strata() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="compares several rates"):
        inference.stratified(tf.equalized_odds("race"), within="age_band")(LOANS, "y", "p")
    with pytest.raises(tf.errors.ArgumentError, match="is given more than once"):
        inference.stratified(tf.demographic_parity("race"), within="race")(LOANS, estimate="p")
    with pytest.raises(tf.errors.ArgumentError, match="standard"):
        inference.stratified(tf.demographic_parity("race"), within="sex", standard=cast("Any", "referense"))
    with pytest.raises(tf.errors.ArgumentError, match="names their columns"):
        inference.stratified(tf.demographic_parity("race"), within=[])


@pytest.mark.parametrize("metric", ["selection", "sens"])
def test_ratios_within_strata_are_mantel_and_haenszels(metric: str) -> None:
    hits, rows, other_hits, other_rows = strata(metric)
    pooled: Any = StratifiedTable([
        np.array([[a, n - a], [c, m - c]]) for a, n, c, m in zip(hits, rows, other_hits, other_rows, strict=True)
    ])  # fmt: skip
    compared = tf.demographic_parity if metric == "selection" else tf.equal_opportunity
    test = inference.stratified(compared("race", to="White"), within="age_band")
    result = test(LOANS, "y", "p").row(by_predicate=pl.col(".group") == "Black", named=True)
    assert result[".ratio"] == pytest.approx(pooled.riskratio_pooled)
    assert result[".odds_ratio"] == pytest.approx(pooled.oddsratio_pooled)
    limits = [result[".odds_ratio_lower"], result[".odds_ratio_upper"]]
    assert limits == pytest.approx(list(pooled.oddsratio_pooled_confint()))
    # Greenland and Robins (1985), stratum by stratum
    variance = above = below = 0.0
    for a, n, c, m in zip(hits, rows, other_hits, other_rows, strict=True):
        variance += ((a + c) * n * m - a * c * (n + m)) / (n + m) ** 2
        above, below = above + a * m / (n + m), below + c * n / (n + m)
    half = 1.959963984540054 * (variance / (above * below)) ** 0.5
    expected = [above / below * np.exp(sign * half) for sign in (-1, 1)]
    assert [result[".ratio_lower"], result[".ratio_upper"]] == pytest.approx(expected)


def test_ratios_without_hits_are_null() -> None:
    people = pl.DataFrame({"g": ["a", "b"] * 20, "s": ["x", "x", "y", "y"] * 10, "hired": [0, 1] * 20})
    result = inference.stratified(tf.demographic_parity("g", to="b"), within="s")(people, estimate="hired")
    assert result.select(".ratio", ".ratio_lower", ".odds_ratio", ".odds_ratio_upper").row(0) == (None,) * 4
    assert result[".adjusted"].item() == -1


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_strata_are_compared_with_a_group(to: Any) -> None:
    metric = tf.selection_rate.difference("race", to=to)
    with pytest.raises(
        tf.errors.TidyfairError, match=rf"stratified\(\) compares groups with one of them, not with `to='{to}'`"
    ):
        tf.inference.stratified(metric, within="sex")(lending(500), estimate="approved", pos_label="yes")


def test_a_reference_below_min_share_is_named_as_such() -> None:
    metric = tf.selection_rate.difference("race", to="Native", min_share=0.3)
    with pytest.raises(tf.errors.TidyfairError, match=r"the reference 'Native' is below `min_share=0.3` of the rows"):
        tf.inference.stratified(metric, within="sex")(lending(500), estimate="approved", pos_label="yes")
