"""Small and unknown groups are listed and not compared: what is left is what a filter leaves."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending

CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
LOANS = lending(1_500).with_columns(
    race=pl.when(pl.int_range(pl.len()) % 40 == 0)
    .then(pl.lit("Prefer not to say"))
    .when(pl.int_range(pl.len()) % 55 == 0)
    .then(None)
    .otherwise(pl.col("race").cast(pl.String))
)
KNOWN = LOANS.filter(pl.col("race").is_not_null() & (pl.col("race") != "Prefer not to say"))
METRICS = tf.metric_set(tf.selection_rate, tf.f_meas, tf.roc_auc)


@pytest.mark.parametrize("unknown", ["apart", "drop"])
@pytest.mark.parametrize("options", [{}, {"to": "overall"}, {"to": "rest"}, {"to": "majority"}, {"to": "White"}])
def test_unknown_groups_are_part_of_no_comparison(unknown: Any, options: dict[str, Any]) -> None:
    call: dict[str, Any] = CALL | {"probs": "score"}
    result = METRICS.difference("race", **options, unknown=unknown)(LOANS, **call)
    assert_frame_equal(result, METRICS.difference("race", **options)(KNOWN, **call))
    # replicates draw all rows, so that only intervals in closed form are the same to the last digit
    metrics = tf.metric_set(tf.selection_rate, tf.accuracy)
    limits = metrics.difference("race", **options, unknown=unknown)(LOANS, **CALL, interval="auto")
    assert_frame_equal(limits, metrics.difference("race", **options)(KNOWN, **CALL, interval="auto"))


def test_unknown_groups_are_listed_unless_they_are_dropped() -> None:
    parity = tf.demographic_parity("race", unknown="apart")
    groups = parity.by_group(LOANS, **CALL)
    unknown = groups.filter(pl.col(".status") == "unknown")
    assert unknown.select("race", ".n", ".estimate").rows() == [("Prefer not to say", 38, None), (None, 24, None)]
    assert set(unknown[".group"]) == {"Prefer not to say", "null"}
    dropped = tf.demographic_parity("race", unknown="drop").by_group(LOANS, **CALL)
    assert_frame_equal(dropped, groups.filter(pl.col(".status") == "ok"))
    # no disparity is about them, so that none is left out
    assert parity(LOANS, **CALL, explain=True)[".groups_left_out"].to_list() == [[]]


def test_a_combination_is_unknown_if_a_part_of_it_is() -> None:
    crossed = tf.demographic_parity("sex", "race", unknown="apart").by_group(LOANS, **CALL)
    is_unknown = pl.col("race").is_null() | (pl.col("race") == "Prefer not to say")
    assert crossed.filter(is_unknown)[".status"].unique().to_list() == ["unknown"]
    assert crossed.filter(~is_unknown)[".status"].unique().to_list() == ["ok"]


def test_values_that_mean_unknown_are_those_that_are_named() -> None:
    named = tf.demographic_parity("race", unknown="apart", unknown_values=["Native"])
    statuses = dict(named.by_group(LOANS, **CALL).select(".group", ".status").rows())
    assert {group for group, status in statuses.items() if status == "unknown"} == {"Native", "null"}
    numbers = LOANS.with_columns(age=pl.Series([30, 40, -9] * 500))
    coded = tf.demographic_parity("age", unknown="apart", unknown_values=[-9]).by_group(numbers, **CALL)
    assert coded.filter(age=-9)[".status"].item() == "unknown"


def test_a_share_of_the_rows_is_of_all_rows_of_the_outer_group() -> None:
    people = pl.DataFrame({
        "fold": [1] * 100 + [2] * 50, "g": ["a"] * 97 + ["b"] * 3 + ["a"] * 47 + ["b"] * 3, "hired": [1, 0] * 75,
    })  # fmt: skip
    groups = tf.demographic_parity("g", min_share=0.05).by_group(people, estimate="hired", group_by="fold")
    statuses = groups.select("fold", "g", ".status").rows()
    assert statuses == [(1, "a", "ok"), (1, "b", "below_min_share"), (2, "a", "ok"), (2, "b", "ok")]
    excluded = tf.demographic_parity("g", min_share=0.05)(people.filter(fold=1), estimate="hired", explain=True)
    assert excluded.select(".groups_left_out").item().to_list() == ["b"]


def test_small_groups_are_those_that_a_metric_of_rows_leaves_out() -> None:
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    share = LOANS["race"].value_counts().filter(race="Native")["count"].item() / len(LOANS)
    for factory in (tf.kolmogorov_smirnov, tf.abroca):
        small = factory("race", min_share=share + 0.001)(LOANS, **call, explain=True)
        assert "Native" in small[".groups_left_out"].item().to_list()


def test_gates_judge_the_groups_that_are_known() -> None:
    loans = pl.concat([lending(4_000).with_columns(pl.col("sex").cast(pl.String)), lending(3).with_columns(sex=None)])
    gate = tf.check(tf.demographic_parity("sex", unknown="apart"), below=0.3)
    assert gate(loans, **CALL)[".verdict"].item() == "pass"
    assert tf.check(tf.demographic_parity("sex"), below=0.3)(loans, **CALL)[".verdict"].item() != "pass"


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_any_frame_has_the_same_unknown_groups(convert: Any) -> None:
    data = LOANS.with_columns(pl.col(pl.Enum).cast(pl.String))
    parity = tf.demographic_parity("race", "sex", unknown="apart", min_share=0.02)
    assert_frame_equal(
        as_polars(parity.by_group(convert(data), **CALL)), parity.by_group(data, **CALL), check_dtypes=False
    )


def test_by_group_joins_back_to_the_data() -> None:
    set_of_two = tf.metric_set(tf.accuracy, tf.sens.difference("sex", "race"), tf.spec.difference("race"))
    groups = set_of_two.by_group(LOANS, **CALL)
    assert groups.columns[:5] == [".metric", ".by", "sex", "race", ".group"]
    crossed = groups.filter(pl.col(".by") == "sex:race")
    joined = LOANS.join(crossed, on=["sex", "race"], how="left", nulls_equal=True)
    assert joined[".n"].null_count() == 0
    assert groups.filter(pl.col(".by") == "race")["sex"].null_count() == groups["race"].n_unique()
    assert groups.filter(pl.col(".by").is_null()).select("sex", "race").row(0) == (None, None)


def test_a_feature_called_like_a_column_of_results_is_in_the_text_of_the_group() -> None:
    data = LOANS.rename({"race": ".estimate"})
    groups = tf.demographic_parity(".estimate").by_group(data, **CALL)
    assert groups.columns.count(".estimate") == 1
    assert set(groups[".group"]) == {str(race).replace("None", "null") for race in LOANS["race"].unique()}


def test_comparisons_show_which_groups_are_unknown() -> None:
    assert repr(tf.demographic_parity("race", unknown="apart").by) == "'race', unknown='apart'"
    assert repr(tf.demographic_parity("race", unknown="drop", unknown_values=["?"]).by) == (
        "'race', unknown='drop', unknown_values=['?']"
    )


REFUSED: dict[str, dict[str, Any]] = {
    "another word": {"unknown": "skip"},
    "values of no treatment": {"unknown_values": ["x"]},
    "a text of values": {"unknown": "apart", "unknown_values": "x"},
    "no values": {"unknown": "apart", "unknown_values": [[1]]},
    "a negative share": {"min_share": -0.1},
    "a share in percent": {"min_share": 2},
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(tf.ArgumentError):
        tf.demographic_parity("race", **REFUSED[case])
    with pytest.raises(tf.ArgumentError):
        tf.accuracy.difference("race", **REFUSED[case])


def test_sides_have_no_unknown_groups() -> None:
    with pytest.raises(tf.ArgumentError, match="cannot be combined with privileged"):
        tf.demographic_parity(tf.privileged(race="White"), unknown="apart")


def test_tests_of_rates_leave_out_the_groups_that_metrics_do() -> None:
    options: dict[str, Any] = {"unknown": "apart", "min_share": 0.05}
    large = KNOWN.filter(pl.len().over("race") >= 0.05 * len(LOANS))
    for test in (tf.pairwise, tf.inference.worst_groups, tf.inference.disparity_test):
        result = test(tf.equal_opportunity("race", unknown="apart"))(LOANS, **CALL)
        assert_frame_equal(result, test(tf.equal_opportunity("race"))(KNOWN, **CALL))
    within = tf.inference.stratified(tf.demographic_parity("race", unknown="apart"), within="sex")(LOANS, **CALL)
    assert_frame_equal(within, tf.inference.stratified(tf.demographic_parity("race"), within="sex")(KNOWN, **CALL))
    compared = tf.pairwise(tf.demographic_parity("race", **options))(LOANS, **CALL)
    assert_frame_equal(compared, tf.pairwise(tf.demographic_parity("race"))(large, **CALL))


COMPARE_ALL: dict[str, Any] = {
    "model_frontier": lambda parity: tf.inference.model_frontier(tf.accuracy, parity),
    "verdict_sensitivity": lambda parity: tf.inference.verdict_sensitivity(parity, below=0.1),
    "monitor": lambda parity: tf.inference.monitor(parity, below=0.1),
}


@pytest.mark.parametrize("function", COMPARE_ALL)
def test_functions_that_compare_all_groups_refuse_to_leave_some_out(function: str) -> None:
    with pytest.raises(tf.ArgumentError, match="take `min_n=`"):
        COMPARE_ALL[function](tf.demographic_parity("race", min_share=0.02))
    if function != "monitor":
        with pytest.raises(tf.ArgumentError, match="filter rows of unknown groups first"):
            COMPARE_ALL[function](tf.demographic_parity("race", unknown="apart"))


def test_groups_that_would_read_alike_are_quoted() -> None:
    people = pl.DataFrame({
        "race": ["null", None, "x"] * 20, "site": ["a:b", "a", "q"] * 20, "ward": ["c", "b:c", "r"] * 20,
        "hired": [1, 0, 1] * 15 + [0, 1, 0] * 5,
    })  # fmt: skip
    by_race = tf.demographic_parity("race").by_group(people, estimate="hired")
    assert dict(by_race.select("race", ".group").rows()) == {"null": '"null"', "x": "x", None: "null"}
    crossed = tf.demographic_parity("site", "ward")(people, estimate="hired", explain=True)
    assert crossed.select(".group_min", ".group_max").row(0) == ('"a":"b:c"', '"a:b":"c"')
    compared = tf.compare_groups(tf.selection_rate, by=("site", "ward"))(people, estimate="hired")
    assert compared[".group"].to_list() == ['"a":"b:c"', '"a:b":"c"', "q:r"]
