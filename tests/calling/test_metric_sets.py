"""Calls of metrics and sets, and their results."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import date
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import answer_kind, as_polars
from polars.testing import assert_frame_equal
from public_names import public

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.specs.options import ComputeOptions, CountOptions, GroupCallOptions, Options
from tidyfair.specs.result_columns import RESERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from polars import DataFrame

FAIR = tf.metric_set(
    tf.accuracy, tf.sens, tf.demographic_parity("sex"), tf.equalized_odds("sex"), tf.equal_opportunity("sex", "race")
)


def value(result: pl.DataFrame, row: int = 0) -> Any:
    return result[".estimate"][row]


# Calling


def test_result_is_tidy(loans: DataFrame) -> None:
    result = FAIR(loans, "truth", "estimate", on_undefined="ignore")
    assert result.schema == {
        ".metric": pl.String, ".by": pl.String, ".estimator": pl.String, ".estimate": pl.Float64,
    }  # fmt: skip
    assert result[".metric"].to_list() == [
        "accuracy", "sens", "demographic_parity", "equalized_odds", "equal_opportunity"
    ]  # fmt: skip
    assert result[".by"].to_list() == [None, None, "sex", "sex", "sex:race"]
    # by hand: 8 of 12 right, 4 of 5 positives found, 4 of 6 women and 3 of 6 men selected
    assert result[".estimate"][:3].to_list() == pytest.approx([8 / 12, 4 / 5, 1 / 6])


def test_every_engine_gives_the_same_result_in_its_own_kind(
    loans: DataFrame, every_engine: Callable[[DataFrame], Any]
) -> None:
    data = every_engine(loans)
    expected = FAIR(loans, "truth", "estimate", group_by="fold", case_weights="weight", on_undefined="ignore")
    result = FAIR(data, "truth", "estimate", group_by="fold", case_weights="weight", on_undefined="ignore")
    assert type(result) is answer_kind(data)
    assert_frame_equal(as_polars(result), expected, check_dtypes=False, rel_tol=1e-12)
    by_group = FAIR.by_group(data, "truth", "estimate")
    assert_frame_equal(as_polars(by_group), FAIR.by_group(loans, "truth", "estimate"), check_dtypes=False)


def test_grouped_frames_equal_group_by(loans: DataFrame) -> None:
    expected = FAIR(loans, "truth", "estimate", group_by="fold", on_undefined="ignore")
    assert_frame_equal(FAIR(loans.group_by("fold"), "truth", "estimate", on_undefined="ignore"), expected)
    pandas: Any = loans.to_pandas()
    result = FAIR(pandas.groupby("fold"), "truth", "estimate", on_undefined="ignore")
    assert isinstance(result, pd.DataFrame)
    assert_frame_equal(as_polars(result), expected)
    named = FAIR(loans.group_by(late=pl.col("fold") > 1), "truth", "estimate", on_undefined="ignore")
    assert named["late"].unique().sort().to_list() == [False, True]
    assert named[".estimate"].to_list() == expected[".estimate"].to_list()
    several = tf.accuracy(loans.group_by(["fold", "race"]), "truth", "estimate")
    assert several.columns[:2] == ["fold", "race"]


def test_rows_are_ordered_by_metric_and_outer_group(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    loans = loans.with_columns(fold=pl.Series([2, None, 1] * 4))
    result = as_polars(tf.metric_set(tf.spec, tf.accuracy)(engine(loans), "truth", "estimate", group_by="fold"))
    assert result[".metric"].to_list() == ["spec"] * 3 + ["accuracy"] * 3
    assert result["fold"].to_list() == [1, 2, None] * 2


def test_metrics_and_sets_work_in_pipe(loans: DataFrame) -> None:
    assert value(loans.pipe(tf.accuracy, "truth", "estimate")) == pytest.approx(8 / 12)
    pandas: Any = loans.to_pandas()
    assert pandas.pipe(tf.accuracy, "truth", "estimate")[".estimate"][0] == pytest.approx(8 / 12)
    assert loans.pipe(FAIR, "truth", "estimate", on_undefined="ignore").filter(pl.col(".by").is_null()).height == 2


def test_input_frame_is_unchanged(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    data, untouched = engine(loans), engine(loans.clone())
    FAIR(data, "truth", "estimate", group_by="fold", case_weights="weight", on_undefined="ignore")
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(data, untouched)
    assert_frame_equal(as_polars(data), loans, check_row_order=False)


def test_expressions_may_replace_columns(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    metric = tf.demographic_parity((pl.col("weight") > 1).alias("heavy"))
    expected = tf.demographic_parity("heavy")(loans.with_columns(heavy=pl.col("weight") > 1), estimate="estimate")
    result = metric(every_engine(loans), estimate=pl.col("estimate"))
    assert_frame_equal(as_polars(result), expected)
    late = tf.accuracy(every_engine(loans), "truth", "estimate", group_by=(pl.col("fold") * 10).alias("tenfold"))
    assert as_polars(late)["tenfold"].to_list() == [10, 20]


def test_explain_names_groups_and_status(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    result = as_polars(FAIR(engine(loans), "truth", "estimate", explain=True, on_undefined="ignore"))
    explained = [".n", ".status", ".group_min", ".group_max", ".level", ".base_metric"]
    explained += [".metrics_left_out", ".groups_left_out", ".groups_outside", ".left_out"]
    assert result.columns[4:] == explained
    parity = result.row(2, named=True)
    assert (parity[".group_min"], parity[".group_max"], parity[".n"], parity[".status"]) == ("m", "f", 12, "ok")
    assert result[".groups_left_out"].to_list()[-1] == ["f:b", "f:rare", "m:rare"]
    # they have no value, and not because they are unknown or small
    assert result[".groups_outside"].to_list() == [[]] * len(result)


def test_by_group_columns_and_rows(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    groups = as_polars(FAIR.by_group(engine(loans), "truth", "estimate"))
    assert groups.columns == [
        ".metric", ".by", "sex", "race", ".group", ".level", ".estimator", ".estimate", ".n", ".denominator", ".status"
    ]  # fmt: skip
    # the plain sens, and the sens of equalized odds and of equal opportunity: each once per by
    assert groups.filter(pl.col(".metric") == "sens")[".by"].unique().to_list().count("sex") == 1
    rare = groups.filter(pl.col(".group") == "f:rare").row(0, named=True)
    assert (rare[".estimate"], rare[".n"], rare[".denominator"], rare[".status"]) == (None, 1, 0, "zero_denominator")


def test_compute_of_tally_equals_the_call(loans: DataFrame) -> None:
    tally = FAIR.tally(loans, "truth", "estimate", group_by="fold", case_weights="weight")
    with pytest.warns(tf.errors.UndefinedWarning):
        result = FAIR.compute(tally)
    with pytest.warns(tf.errors.UndefinedWarning):
        expected = FAIR(loans, "truth", "estimate", group_by="fold", case_weights="weight")
    assert_frame_equal(result, expected)
    assert_frame_equal(
        FAIR.compute_by_group(tally), FAIR.by_group(loans, "truth", "estimate", group_by="fold", case_weights="weight")
    )


# Thresholds, missing values, no truth


def test_threshold_equals_labels_by_hand(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    cut = tf.metric_set(tf.sens, tf.selection_rate, tf.demographic_parity("sex"))
    by_hand = loans.with_columns(estimate=(pl.col("score") >= 0.55).cast(pl.Int64))
    expected = cut(by_hand, "truth", "estimate")
    result = as_polars(cut(engine(loans), "truth", probs="score", threshold=0.55))
    assert_frame_equal(result, expected)
    words = loans.with_columns(truth=pl.col("truth").replace_strict({0: "bad", 1: "good"}))
    result = as_polars(cut(engine(words), "truth", probs="score", threshold=0.55, pos_label="good"))
    assert_frame_equal(result, expected)
    # without truth nothing needs a positive label
    free = as_polars(tf.demographic_parity("sex")(engine(loans), probs="score", threshold=0.55))
    assert value(free) == value(expected, 2)
    assert free.equals(tf.demographic_parity("sex")(loans, probs="score", threshold=0.55, pos_label="good"))
    # zero is a threshold like any other
    assert value(tf.selection_rate(loans, probs="score", threshold=0)) == 1.0


def test_missing_scores_are_dropped(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    holes = loans.with_columns(score=pl.Series([None, float("nan"), *loans["score"][2:]]))
    data, rest = every_engine(holes), loans[2:]
    assert value(as_polars(tf.selection_rate(data, probs="score", threshold=0.5))) == value(
        tf.selection_rate(rest, probs="score", threshold=0.5)
    )
    assert value(as_polars(tf.selection_rate(data, probs="score", threshold=0.5, na_rm=False))) is None


def test_each_metric_drops_only_rows_it_cannot_read(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    holes = loans.with_columns(
        truth=pl.Series([None, *loans["truth"][1:]]), estimate=pl.Series([*loans["estimate"][:-1], None])
    )
    several = tf.metric_set(tf.counts.instances, tf.base_rate, tf.selection_rate, tf.sens, tf.ppv)
    data = engine(holes)
    result = as_polars(several(data, "truth", "estimate", explain=True))
    assert result[".n"].to_list() == [12, 11, 11, 10, 10]
    # ppv by Bayes' rule uses the base rate of the rows it reads, and so equals precision
    assert value(result, 4) == pytest.approx(value(tf.precision(holes, "truth", "estimate")))
    strict = as_polars(several(data, "truth", "estimate", explain=True, na_rm=False))
    assert strict[".status"].to_list() == ["ok"] + ["missing_values"] * 4
    assert strict[".estimate"].to_list() == [12.0, None, None, None, None]


def test_na_rm_false_makes_disparity_null(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    holes = loans.with_columns(estimate=pl.Series([None, *loans["estimate"][1:]]))
    parity = tf.demographic_parity("sex")
    assert value(parity(holes, estimate="estimate")) is not None
    strict = as_polars(parity(engine(holes), estimate="estimate", na_rm=False, explain=True)).row(0, named=True)
    assert (strict[".estimate"], strict[".status"]) == (None, "missing_values")


# Edge cases


def test_zero_rows(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    nobody = every_engine(loans.head(0))
    result = as_polars(FAIR(nobody, "truth", "estimate", on_undefined="ignore", explain=True))
    assert result[".estimate"].to_list() == [None] * 5
    assert result[".status"].to_list() == ["zero_denominator"] * 2 + ["no_groups"] * 3
    assert as_polars(FAIR(nobody, "truth", "estimate", group_by="fold")).height == 0
    assert value(as_polars(tf.counts.instances(nobody, "truth", "estimate"))) == 0.0
    assert as_polars(FAIR.by_group(nobody, "truth", "estimate"))[".by"].to_list() == [None, None]


def test_zero_rows_of_text() -> None:
    nobody = pl.DataFrame(schema={"t": pl.String, "e": pl.String, "g": pl.String})
    result = tf.metric_set(tf.sens, tf.demographic_parity("g"))(
        nobody, "t", "e", pos_label="yes", on_undefined="ignore"
    )
    assert result[".estimate"].to_list() == [None, None]


def test_one_row_and_one_group(loans: DataFrame) -> None:
    one = loans.head(1)
    result = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.demographic_parity_ratio("sex"))(
        one, "truth", "estimate"
    )
    assert result[".estimate"].to_list() == [1.0, 0.0, 1.0]
    women = loans.filter(sex="f")
    assert value(tf.equalized_odds("sex")(women, "truth", "estimate")) == 0.0
    # the only group has no positive: there is nothing to compare
    rare = loans.filter(race="rare")
    actual = tf.equal_opportunity("race")(rare, "truth", "estimate", on_undefined="ignore", explain=True)
    assert actual.select(".estimate", ".status").row(0) == (None, "too_few_groups")


def test_null_is_a_group(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    loans = loans.with_columns(sex=pl.when(pl.col("race") == "rare").then(None).otherwise("sex"))
    groups = as_polars(tf.demographic_parity("sex").by_group(every_engine(loans), estimate="estimate"))
    assert groups[".group"].to_list() == ["f", "m", "null"]
    both = loans.with_columns(sex=pl.when(pl.col("fold") == 1).then(pl.lit("null")).otherwise("sex"))
    # a group that is called null is another one than the rows without a group
    groups = as_polars(tf.demographic_parity("sex").by_group(every_engine(both), estimate="estimate"))
    assert {'"null"', "null"} <= set(groups[".group"])


def test_nan_keys_are_null() -> None:
    data = pl.DataFrame({"t": [1, 0, 1, 1], "e": [1, 1, 0, 1], "g": [1.5, float("nan"), None, 1.5]})
    assert tf.accuracy(data, "t", "e", group_by="g")["g"].to_list() == [1.5, None]
    assert tf.demographic_parity("g").by_group(data, estimate="e")[".group"].to_list() == ["1.5", "null"]


def test_all_null_estimate(loans: DataFrame) -> None:
    for dtype in (pl.Int64, pl.String, pl.Null):
        nothing = loans.with_columns(estimate=pl.lit(None, dtype=dtype))
        result = FAIR(nothing, "truth", "estimate", on_undefined="ignore")
        assert result[".estimate"].to_list() == [None] * 5


@pytest.mark.parametrize(
    "keys",
    [
        pl.Series(["u", "v", None] * 4, dtype=pl.Categorical),
        pl.Series(["v", "u", None] * 4, dtype=pl.Enum(["v", "unused", "u"])),
        pl.Series([date(2026, 1, 2), date(2026, 1, 1), None] * 4),
        pl.Series([True, False, None] * 4),
        pl.Series(["1.10", "2.00", None] * 4).cast(pl.Decimal(10, 2)),
    ],
    ids=lambda item: str(item.dtype.base_type()),
)
def test_keys_of_any_type(loans: DataFrame, keys: pl.Series) -> None:
    loans = loans.with_columns(keys.alias("key"))
    metric = tf.metric_set(tf.accuracy, tf.demographic_parity("key"))
    result = tf.accuracy(loans, "truth", "estimate", group_by="key")
    assert result["key"].dtype == keys.dtype
    assert result["key"].to_list() == [
        *sorted(keys.drop_nulls().unique().to_list(), reverse=keys.dtype == pl.Enum(["v", "unused", "u"])),
        None,
    ]
    for key, estimate in result.select("key", ".estimate").rows():
        part = loans.filter(pl.col("key").eq_missing(pl.lit(key, dtype=keys.dtype)))
        assert estimate == value(tf.accuracy(part, "truth", "estimate"))
    assert metric(loans, "truth", "estimate")[".estimate"].null_count() == 0


def test_durations_may_be_groups(loans: DataFrame) -> None:
    waits = loans.with_columns(wait=pl.duration(days=pl.col("fold")))
    groups = tf.demographic_parity("wait").by_group(waits, estimate="estimate")
    assert groups[".group"].to_list() == ["1d", "2d"]


def test_the_order_of_groups_does_not_depend_on_other_metrics() -> None:
    rows = pl.DataFrame({
        "y": ["a", "b", "c"] * 40, "e": ["a", "c", "b", "b"] * 30, "g": ["u", "v"] * 60, "fold": [1] * 60 + [2] * 60,
        "one": [True] * 120, "two": [True, False, False] * 40,
    })  # fmt: skip
    call: dict[str, Any] = {"group_by": "fold", "estimator": "one_vs_rest"}
    alone = tf.sens.difference("g").by_group(rows, "y", "e", **call)
    shared = tf.accuracy.difference(tf.memberships("one", "two", name="both"))
    beside = tf.metric_set(tf.sens.difference("g"), shared).by_group(rows, "y", "e", **call)
    assert_frame_equal(beside.filter(pl.col(".by") == "g").select(alone.columns), alone)


def test_pandas_intervals_are_groups_in_order() -> None:
    data: Any = pd.DataFrame({"t": [1, 0, 1, 0], "e": [1, 0, 0, 1], "age": [9, 70, 25, 30]})
    data["band"] = pd.cut(data["age"], [0, 10, 40, 100])
    groups: Any = tf.demographic_parity("band").by_group(data, estimate="e")
    assert groups[".group"].tolist() == ["(0, 10]", "(10, 40]", "(40, 100]"]
    ordered = data.astype({"t": pd.CategoricalDtype([0, 1], ordered=True)})
    assert tf.sens(ordered, "t", "e")[".estimate"][0] == tf.sens(data, "t", "e")[".estimate"][0]


def test_nan_is_missing_in_expressions_on_every_engine(every_engine: Callable[[DataFrame], Any]) -> None:
    data = pl.DataFrame(
        {"x": [0.1, 0.9, float("nan"), None, 0.7, 0.2], "y": [0, 1, 1, 0, 1, 0], "e": [0, 1, 1, 1, 0, 0]}
    )
    high = (pl.col("x") > 0.5).alias("high")
    groups = as_polars(tf.accuracy.difference(high).by_group(every_engine(data), "y", "e", pos_label=1))
    # people whose group is not known are listed and not compared
    assert groups.select(".group", ".n", ".estimate").rows() == [("false", 2, 1.0), ("true", 2, 0.5), ("null", 2, None)]
    assert as_polars(tf.base_rate.by_group(every_engine(data), high, pos_label=True))[".n"].item() == 4


def test_expressions_with_python_functions(loans: DataFrame) -> None:
    shout = pl.col("sex").map_elements(str.upper, return_dtype=pl.String).alias("loud")
    result = tf.metric_set(tf.demographic_parity(shout), tf.equal_opportunity(shout))(loans, "truth", "estimate")
    quiet = tf.metric_set(tf.demographic_parity("sex"), tf.equal_opportunity("sex"))(loans, "truth", "estimate")
    assert result[".estimate"].to_list() == quiet[".estimate"].to_list()


def test_outer_key_may_have_an_empty_name(loans: DataFrame) -> None:
    assert tf.accuracy(loans.rename({"fold": ""}), "truth", "estimate", group_by="").columns[0] == ""


def test_columns_may_have_internal_names(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    names = {"truth": "n", "estimate": "tp", "sex": ".metric", "race": "truth", "weight": "w", "fold": "k0"}
    odd = loans.rename(names)
    fair = tf.metric_set(tf.accuracy, tf.demographic_parity(".metric"), tf.demographic_parity("truth", ".metric"))
    data = every_engine(odd)
    result = as_polars(fair(data, "n", "tp", group_by="k0", case_weights="w"))
    plain = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.demographic_parity("race", "sex"))
    expected = plain(loans, "truth", "estimate", group_by="fold", case_weights="weight")
    assert result[".estimate"].to_list() == expected[".estimate"].to_list()
    assert result[".by"].unique(maintain_order=True).to_list() == [None, ".metric", "truth:.metric"]
    custom = tf.new_groupwise_metric(tf.sens, "custom", lambda groups: groups[".estimate"].to_list()[-1])
    assert value(as_polars(custom(".metric")(data, "n", "tp"))) == value(custom("sex")(loans, "truth", "estimate"))


def test_a_hundred_thousand_groups() -> None:
    size = 200_000
    data = pl.DataFrame({"t": [0, 1] * (size // 2), "e": [0, 1, 1, 1] * (size // 4), "g": range(size)}).with_columns(
        pl.col("g") // 2
    )
    result = tf.metric_set(tf.accuracy, tf.demographic_parity("g"))(data, "t", "e", explain=True)
    assert result[".estimate"].to_list() == [0.75, 0.5]
    assert result[".group_min"][1] == "0"
    assert tf.accuracy(data, "t", "e", group_by="g").height == size // 2


def test_large_totals_do_not_overflow(engine: Callable[[DataFrame], Any]) -> None:
    weight = 2_500_000_000
    data = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 1, 0], "w": pl.Series([weight] * 4, dtype=pl.UInt32)})
    several = tf.metric_set(tf.counts.instances, tf.mcc, tf.kap, tf.sens)
    result = as_polars(several(engine(data), "t", "e", case_weights="w"))
    assert result[".estimate"].to_list() == [10_000_000_000.0, 0.0, 0.0, 0.5]
    lopsided = data.with_columns(w=pl.Series([4 * weight, weight, weight, 4 * weight]))
    expected = (16 - 1) / 25
    assert value(tf.mcc(lopsided, "t", "e", case_weights="w")) == pytest.approx(expected)
    # more false than true: a difference of unsigned counts would be 4294967295
    wrong = pl.DataFrame({"t": [1, 0, 1], "e": [0, 1, 0]})
    assert value(as_polars(tf.j_index(engine(wrong), "t", "e"))) == -1.0


def test_zero_weight_gives_zero_denominator(engine: Callable[[DataFrame], Any]) -> None:
    data = pl.DataFrame({"t": [1, 1, 1, 0], "e": [1, 0, 1, 1], "g": ["a", "a", "b", "b"], "w": [0.1, 0.2, 0.0, 0.3]})
    gap = tf.equal_opportunity("g")
    groups = as_polars(gap.by_group(engine(data), "t", "e", case_weights="w"))
    assert groups[".status"].to_list() == ["ok", "zero_denominator"]
    assert groups[".denominator"].to_list() == [2, 1]  # in rows
    rest = tf.equal_opportunity("g", aggregate=tf.difference(to="rest"))
    assert value(rest(data, "t", "e", case_weights="w", on_undefined="ignore")) is None


def test_row_and_column_order_do_not_matter(loans: DataFrame) -> None:
    expected = FAIR(loans, "truth", "estimate", group_by="fold", explain=True, on_undefined="ignore")
    for seed in range(5):
        shuffled = loans.sample(fraction=1, shuffle=True, seed=seed).select(reversed(loans.columns))
        result = FAIR(shuffled, "truth", "estimate", group_by="fold", explain=True, on_undefined="ignore")
        assert_frame_equal(result, expected)


# Objects


@pytest.mark.parametrize(
    "thing",
    [
        tf.sens, tf.recall, tf.f_meas, tf.metric_tweak(tf.f_meas, "f2", beta=2), tf.kap, tf.demographic_parity,
        tf.equalized_odds("sex"), tf.equal_opportunity("sex", "race", min_n=5, name="gap"),
        tf.demographic_parity((pl.col("age") > 40).alias("old"), aggregate=tf.ratio(to="overall")),
        tf.demographic_parity(tf.privileged(sex="male", race=["White", "Asian"])),
        tf.new_groupwise_metric(tf.sens, "own", pl.col(".estimate").max() - pl.col(".estimate").mean())("sex"), FAIR,
    ],
    ids=repr,
)  # fmt: skip
def test_objects_pickle_compare_and_hash(thing: Any) -> None:
    again = pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own
    assert again == thing
    assert hash(again) == hash(thing)
    assert copy.deepcopy(thing) == thing
    assert repr(again) == repr(thing)


def test_calling_a_set_does_not_change_its_pickle(loans: DataFrame) -> None:
    fair = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"))
    before = pickle.dumps(fair)
    called = fair(loans, "truth", "estimate")
    assert pickle.dumps(fair) == before
    assert pickle.loads(before)(loans, "truth", "estimate").equals(called)  # noqa: S301 - our own


def test_catalogue_metrics_pickle_by_name() -> None:
    assert pickle.loads(pickle.dumps(tf.sens)) is tf.sens  # noqa: S301 - our own
    assert pickle.loads(pickle.dumps(tf.recall)) is tf.recall  # noqa: S301 - our own


def test_different_objects_are_unequal() -> None:
    assert tf.sens != tf.recall
    assert tf.equalized_odds("sex") != tf.equalized_odds("race")
    assert tf.equalized_odds("sex") != tf.equalized_odds("sex", min_n=10)
    old, older = ((pl.col("age") > age).alias("old") for age in (40, 41))
    assert tf.equalized_odds(old) != tf.equalized_odds(older)
    assert tf.equalized_odds(old) != tf.equalized_odds("old")


def test_metrics_are_frozen() -> None:
    thing: Any = tf.sens
    with pytest.raises(AttributeError):
        thing.name = "other"


def test_threads_may_share_a_set(loans: DataFrame) -> None:
    expected = FAIR(loans, "truth", "estimate", group_by="fold", on_undefined="ignore")

    def call(_: int) -> DataFrame:
        return FAIR(loans, "truth", "estimate", group_by="fold", on_undefined="ignore")

    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(call, range(40)):
            assert_frame_equal(result, expected)


def test_reprs() -> None:
    assert repr(tf.sens) == "<class metric sens: maximize, 0 to 1>"
    assert repr(tf.demographic_parity) == (
        "<factory of groupwise metrics demographic_parity: difference() of selection_rate; "
        'call demographic_parity("column")(data, …)>'
    )
    assert repr(tf.equalized_odds_ratio("sex", "race")) == (
        "<groupwise metric equalized_odds_ratio('sex', 'race'): ratio(to='range') of sens, fall_out, maximize>"
    )
    sides = tf.equal_opportunity(tf.privileged(sex="m"))
    assert repr(sides) == (
        "<groupwise metric equal_opportunity(privileged(sex=m)): "
        "difference(to=('privileged',), signed=True) of sens, zero>"
    )


def test_sets_are_flat_and_sized() -> None:
    nested = tf.metric_set(FAIR, tf.metric_set(tf.mcc))
    assert len(nested) == 6
    assert [metric.name for metric in nested][-1] == "mcc"


# Every function that returns a tidy frame, of data and outer keys

LENT = lending().head(1_000)
ROW = pl.int_range(pl.len())
DATA = LENT.with_columns(
    part=ROW % 2, other=pl.col("approved").reverse(), pair=ROW // 4 * 2 + ROW % 2, side=ROW % 4 // 2
)
TRUTH: Any = {"truth": "repaid", "pos_label": "yes"}
LABELS: Any = {**TRUTH, "estimate": "approved"}
SCORES: Any = {**TRUTH, "probs": "score"}
GAP = tf.equal_opportunity("sex")
PREDICTED: Any = {"estimate": "approved", "pos_label": "yes"}
PAIRED = tf.inference.paired_groups(tf.selection_rate, by="side", pair="pair")


def paid(data: pl.DataFrame, keys: list[str], table: str) -> pl.DataFrame:
    """A table of gaps of pay."""
    components: Any = {"estimate": "weight", "complementary": (pl.col("weight") / 2).alias("half"), "within": "race"}
    return tf.audit("eu_pay_transparency", data, **components, by="sex", to="male", group_by=keys).tables[table]


TABLES: dict[str, Callable[[DataFrame, list[str]], DataFrame]] = {
    "call": lambda data, keys: tf.equalized_odds("sex")(
        data, **LABELS, group_by=keys, interval="auto", explain=True, times=20
    ),
    "by_group": lambda data, keys: GAP.by_group(
        data, **LABELS, group_by=keys, interval="auto", case_weights="weight", times=20
    ),
    "score_bins": lambda data, keys: tf.roc_auc(data, **SCORES, score_bins=64, group_by=keys),
    "threshold": lambda data, keys: tf.sens(data, **SCORES, threshold=[0.1, 0.2], group_by=keys),
    "quantiles": lambda data, keys: tf.prediction_intervals.quantile_loss(data, "score", {0.5: "score"}, group_by=keys),
    "evaluation times": lambda data, keys: tf.survival.brier(
        data.with_columns(died=pl.lit(value=True)),
        tf.survival.outcome("score", "died"),
        probs={0.5: "score"},
        group_by=keys,
    ),
    "top_k": lambda data, keys: tf.sens(data, **SCORES, top_k=[10, 20], group_by=keys),
    "top_fraction": lambda data, keys: tf.sens(data, **SCORES, top_fraction=[0.1, 0.2], group_by=keys),
    "check": lambda data, keys: tf.check(GAP, below=0.1)(data, **LABELS, group_by=keys),
    "check with unknown groups": lambda data, keys: tf.check(tf.demographic_parity("sex", unknown="apart"), below=0.1)(
        data, **LABELS, group_by=keys
    ),
    "disparity_test": lambda data, keys: tf.inference.disparity_test(GAP)(data, **LABELS, group_by=keys, times=20),
    "compare_groups": lambda data, keys: tf.compare_groups(GAP)(data, **LABELS, group_by=keys, explain=True),
    "audit": lambda data, keys: tf.audit(
        "nyc_ll144", data, estimate="approved", pos_label="yes", by="sex", group_by=keys
    ).tables["selections"],
    "audit of unknown groups": lambda data, keys: tf.audit(
        "nyc_ll144", data, estimate="approved", pos_label="yes", by="sex", group_by=keys
    ).tables["unknown"],
    "audit of employment": lambda data, keys: tf.audit(
        "eeoc_uniform_guidelines", data, "repaid", "approved", pos_label="yes", by="sex", group_by=keys
    ).tables["adverse_impact"],
    "audit of lending": lambda data, keys: tf.audit(
        "lending_adverse_impact", data, estimate="approved", pos_label="yes", by="sex", to="male", group_by=keys
    ).tables["adverse_impact"],
    "audit of lending within segments": lambda data, keys: tf.audit(
        "lending_adverse_impact",
        data,
        estimate="approved",
        pos_label="yes",
        by="sex",
        to="male",
        within="race",
        group_by=keys,
    ).tables["segments"],
    "paired_groups": lambda data, keys: PAIRED(data.filter(pl.int_range(pl.len()) < 80), **PREDICTED, group_by=keys),
    "cochrans_q": lambda data, keys: PAIRED.cochrans_q(
        data.filter(pl.int_range(pl.len()) < 80), **PREDICTED, group_by=keys
    ),
    "standardized_differences": lambda data, keys: tf.audits.standardized_differences(
        data, "score", by="sex", to="male", group_by=keys
    ),
    "kaplan_meier": lambda data, keys: tf.survival.kaplan_meier(
        data.with_columns(paid=pl.col("repaid") == "yes"), tf.survival.outcome("score", "paid"), group_by=keys
    ),
    "quantile_ratios": lambda data, keys: tf.audits.quantile_ratios(data, "score", by="sex", to="male", group_by=keys),
    "pairwise": lambda data, keys: tf.inference.pairwise(GAP)(data, **LABELS, group_by=keys),
    "stratified": lambda data, keys: tf.inference.stratified(GAP, within="race")(data, **LABELS, group_by=keys),
    "worst_groups": lambda data, keys: tf.inference.worst_groups(GAP)(data, **LABELS, group_by=keys),
    "probability": lambda data, keys: tf.inference.probability(GAP, below=0.1)(data, **LABELS, group_by=keys, times=20),
    "decompose": lambda data, keys: tf.inference.decompose(tf.sens, between="sex", by="race")(
        data, **LABELS, group_by=keys
    ),
    "search for a change": lambda data, keys: tf.inference.compare_periods(GAP, period="age_band", search="change")(
        data, **LABELS, group_by=[*keys, "age_band"], times=20
    ),
    "compare_periods": lambda data, keys: tf.inference.compare_periods(GAP, period="age_band")(
        data, **LABELS, group_by=[*keys, "age_band"], times=20
    ),
    "monitor": lambda data, keys: tf.inference.monitor(GAP, below=0.1, period="age_band")(
        data, **LABELS, group_by=[*keys, "age_band"]
    ),
    "compare_models": lambda data, keys: tf.compare_models(GAP)(
        data, one="approved", other="other", **TRUTH, group_by=keys, times=20
    ),
    "smallest_difference": lambda data, keys: tf.inference.smallest_difference(
        GAP.by_group(data, **LABELS, group_by=keys), times=200
    ),
    "summarize": lambda data, keys: tf.inference.summarize(
        GAP(data, **LABELS, group_by=[*keys, "age_band"]), "age_band"
    ),
    "compare_resamples": lambda data, keys: tf.inference.compare_resamples(
        GAP(data, **LABELS, group_by=[*keys, "age_band"]), GAP(data, **LABELS, group_by=[*keys, "age_band"]), "age_band"
    ),
    "labels_needed": lambda data, keys: tf.inference.labels_needed(
        GAP.by_group(
            data.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then("repaid").alias("known")),
            "known",
            "approved",
            pos_label="yes",
            judged="repaid",
            interval="auto",
            group_by=keys,
        ),
        0.1,
    ),
    "shrunken_rates": lambda data, keys: tf.inference.shrunken_rates(GAP, data, **LABELS, group_by=keys),
    "additive shrunken_rates": lambda data, keys: tf.inference.shrunken_rates(
        tf.sens.difference("sex", "race"), data, **LABELS, group_by=keys, pooling="additive"
    ),
    "verdict_sensitivity": lambda data, keys: tf.inference.verdict_sensitivity(GAP, below=0.2)(
        data, **LABELS, group_by=keys
    ),
    "certify_subgroups": lambda data, keys: tf.inference.certify_subgroups(tf.sens, ["sex"])(
        data, **LABELS, group_by=keys
    ),
    "probabilistic_groups": lambda data, keys: tf.inference.probabilistic_groups(
        tf.sens, {"f": (pl.col("sex") == "female").alias("f"), "m": (pl.col("sex") == "male").alias("m")}
    )(data, **LABELS, group_by=keys),
    "missing_truth": lambda data, keys: tf.inference.missing_truth(
        data, "repaid", "approved", by=keys[0], positive="yes"
    ),
    "subgroup_search": lambda data, keys: tf.inference.subgroup_search(tf.sens, ["sex"])(
        data, **LABELS, group_by=keys, times=20
    ),
    "linear_subgroup": lambda data, keys: tf.inference.linear_subgroup(tf.sens, ["weight"])(
        data, **LABELS, group_by=keys
    ),
    "conf_mat": lambda data, keys: tf.conf_mat(data, "repaid", "approved", group_by=keys),
    "roc_curve": lambda data, keys: tf.roc_curve(data, **SCORES, group_by=keys),
    "pr_curve": lambda data, keys: tf.pr_curve(data, **SCORES, group_by=keys),
    "gain_curve": lambda data, keys: tf.gain_curve(data, **SCORES, group_by=keys),
    "lift_curve": lambda data, keys: tf.lift_curve(data, **SCORES, group_by=keys),
    "calibration_curve": lambda data, keys: tf.calibration.curve(data, **SCORES, group_by=keys),
    "isotonic calibration_curve": lambda data, keys: tf.calibration.curve(
        data, **SCORES, group_by=keys, binning="isotonic"
    ),
    "cumulative_calibration_curve": lambda data, keys: tf.calibration.cumulative_curve(data, **SCORES, group_by=keys),
    "multicalibration_test": lambda data, keys: tf.inference.multicalibration_test(["sex"])(
        data, **SCORES, group_by=keys
    ),
    "gaps of pay": lambda data, keys: paid(data, keys, "categories"),
    "bands of pay": lambda data, keys: paid(data, keys, "quartile_bands"),
    "risk_coverage_curve": lambda data, keys: tf.abstention.risk_coverage_curve(data, **SCORES, group_by=keys),
    "feature_curve": lambda data, keys: tf.inference.feature_curve(tf.sens, "weight", at=[1.0])(
        data, **LABELS, group_by=keys
    ),
    "threshold_curve": lambda data, keys: tf.threshold_curve(GAP, [0.1, 0.2])(data, **SCORES, group_by=keys),
}


@cache
def columns_of(name: str) -> list[str]:
    """The columns of a table in outer groups, each made once."""
    return TABLES[name](DATA, ["part"]).columns


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ProxyWarning")
@pytest.mark.parametrize("name", TABLES)
def test_outer_keys_named_like_result_columns_raise(name: str) -> None:
    data = DATA
    table = TABLES[name]
    own = set(columns_of(name)) - set(data.columns)
    assert {column for column in own if column.startswith(".")} <= RESERVED
    for column in own:
        with pytest.raises(tf.errors.ColumnError, match=rf"'{re.escape(column)}' is a reserved column of"):
            table(data.rename({"part": column}), [column])


def test_any_metric_has_another_name() -> None:
    loans = DATA.with_columns(
        y=pl.col("repaid") == "yes",
        p=pl.col("approved") == "yes",
        list=pl.int_range(pl.len()) % 9,
        relevance=pl.int_range(pl.len()) % 3,
    )
    for metric, call in (
        (tf.accuracy, ("y", "p")), (tf.f_meas, ("y", "p")), (tf.demographic_parity("sex"), ("y", "p")),
        (tf.sens.difference("sex", to="male"), ("y", "p")), (tf.rankings.ndcg("list"), ("relevance", "score")),
        (tf.new_class_metric(lambda tp, fn: (tp, tp + fn), "own"), ("y", "p")),
    ):  # fmt: skip
        renamed = tf.metric_tweak(metric, "another name")
        found = renamed(loans, *call)
        assert found[".metric"].to_list() == ["another name"]
        assert found.drop(".metric").equals(metric(loans, *call).drop(".metric"))
    with pytest.raises(tf.errors.ArgumentError, match=r'demographic_parity\("column", name="parity"\)'):
        tf.metric_tweak(tf.demographic_parity, "parity")  # pyright: ignore[reportCallIssue, reportArgumentType] - refused
    with pytest.raises(tf.errors.ArgumentError, match="set the options of its metric"):
        tf.metric_tweak(tf.demographic_parity("sex"), "parity", beta=2)  # pyright: ignore[reportCallIssue, reportArgumentType] - refused


def test_a_low_score_may_be_the_good_one() -> None:
    people = pl.DataFrame({"g": ["a", "a", "b", "b"], "risk": [0.1, 0.3, 0.6, 0.8], "other": [0.0, 0.2, 0.5, 0.7]})
    risk = tf.metric_tweak(tf.mean_score, "mean_risk", better="lower")
    assert (risk.better, tf.mean_score.better) == ("minimize", "neither")
    table = tf.compare_groups(risk, by="g")(people, probs="risk")
    assert table[".reference"].to_list() == ["a", "a"]
    assert table[".disparity"].to_list() == pytest.approx([0, 0.5])
    highest = tf.metric_tweak(tf.mean_score, "mean_score", better="higher")
    assert tf.compare_groups(highest, by="g")(people, probs="risk")[".reference"].to_list() == ["b", "b"]
    models = tf.compare_models(risk, margin=0.0)(people.with_columns(pl.lit(1).alias("y")), one="risk", other="other")
    assert models[".verdict"].item() in {"better", "not shown", None}
    gate = tf.check(risk.group_maximum("g"), below=0.9)
    assert gate(people, probs="risk")[".limit"].item() == 0.9
    again = pickle.loads(pickle.dumps(risk))  # noqa: S301 - its own
    assert (again.better, again.name) == ("minimize", "mean_risk")
    renamed = tf.metric_tweak(risk, "danger")
    assert renamed.better == "minimize"
    with pytest.raises(tf.errors.ArgumentError, match="must be 'higher' or 'lower'"):
        tf.metric_tweak(tf.mean_score, "mean_risk", better=cast("Any", "low"))


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ProxyWarning")
def test_every_reserved_name_is_used() -> None:
    data = DATA
    columns = {column for name in TABLES for column in columns_of(name)}
    # these do not take outer groups
    truth, guess = ((pl.col(name) == "yes").alias(f"is {name}") for name in ("repaid", "approved"))
    models: dict[str, Any] = {"one": guess, "others": [(pl.col("score") >= 0.6).alias("later")]}
    at_once = tf.compare_models(tf.accuracy, adjust="max_t")(data, truth, **models)
    choice = tf.compare_models(tf.accuracy, margin=0.1)(data, truth, **models)
    policy = tf.audits.AuditPolicy(features=("part",))(data, estimate="approved", pos_label="yes")
    survey = tf.sens(data, **LABELS, design=tf.surveys.design(weights="weight"), interval="auto")
    assert columns.union(at_once.columns, choice.columns, policy.columns, survey.columns) >= RESERVED


def test_pandas_float_labels_with_nan() -> None:
    # missing integers are floats in pandas
    data = pd.DataFrame({"t": [1.0, 0.0, np.nan, 1.0], "e": [1, 0, 1, 0], "g": ["a", None, "b", "a"]})
    result = tf.metric_set(tf.accuracy, tf.demographic_parity("g"))(data, "t", "e")
    assert result[".estimate"].tolist() == pytest.approx([2 / 3, 1 - 1 / 2])
    with_null = tf.demographic_parity("g", unknown="group")(data, estimate="e")
    assert with_null[".estimate"].tolist() == [1 - 0]


def test_pandas_ordered_categoricals_keep_their_levels() -> None:
    levels = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    data = pd.DataFrame({"t": ["low", "high", "low"], "e": ["low", "high", "high"]}).astype(levels)
    # three levels, one of which does not occur: still three labels
    assert tf.sens(data, "t", "e", on_undefined="ignore")[".estimator"].tolist() == ["macro"]
    steps = tf.metric_tweak(tf.kap, "kap2", weighting="quadratic")
    assert steps(data, "t", "e")[".estimate"][0] == pytest.approx(1 - 4 * 3 / (4 * (2 * 2 + 1 * 1)))


# Metrics that compare themselves


def test_metrics_compare_themselves_as_a_factory_does() -> None:
    call: Any = {"truth": "repaid", "estimate": "approved", "pos_label": "yes", "on_undefined": "ignore"}
    data = lending(1_000)
    pairs = {
        "accuracy_difference": (tf.accuracy.difference("race"), tf.difference()),
        "accuracy_ratio": (tf.accuracy.ratio("race", to="White"), tf.ratio(to="White")),
        "sens_group_minimum": (tf.sens.group_minimum("race", "sex"), tf.group_minimum()),
        "fall_out_group_maximum": (tf.fall_out.group_maximum("sex"), tf.group_maximum()),
        "spec_difference": (
            tf.spec.difference("sex", to="overall", signed=True),
            tf.difference("overall", signed=True),
        ),
    }
    for name, (metric, aggregate) in pairs.items():
        made = tf.new_groupwise_metric(metric.metrics[0], name, aggregate)(*metric.by.features)
        assert metric == made
        assert metric(data, **call).equals(made(data, **call))
    gap = tf.sens.difference("sex", name="gap", min_n=30)
    assert (gap.name, gap.policy.min_n) == ("gap", 30)
    sides = tf.sens.difference(tf.privileged(sex="male"))
    assert sides.direction == "zero"


def test_a_set_compares_each_of_its_metrics() -> None:
    both = tf.metric_set(tf.sens, tf.roc_auc)
    assert [metric.name for metric in both.difference("sex")] == ["sens_difference", "roc_auc_difference"]
    assert [metric.name for metric in both.ratio("sex")] == ["sens_ratio", "roc_auc_ratio"]
    assert [metric.name for metric in both.group_minimum("sex")] == ["sens_group_minimum", "roc_auc_group_minimum"]
    assert [metric.name for metric in both.group_maximum("sex")] == ["sens_group_maximum", "roc_auc_group_maximum"]
    with pytest.raises(tf.errors.ArgumentError, match="demographic_parity already compares groups"):
        tf.metric_set(tf.sens, tf.demographic_parity("sex")).difference("sex")
    with pytest.raises(tf.errors.AggregateError, match=r"ratio\(\) is not defined for mcc"):
        tf.mcc.ratio("sex")
    with pytest.raises(tf.errors.ArgumentError, match=r'`sens.difference\("column"\)`'):
        tf.sens.difference()
    with pytest.raises(tf.errors.ArgumentError, match=r'write `sens.ratio\("column"\)\(data, …\)`'):
        tf.sens.ratio(cast("Any", lending(10)))


MEANINGS: list[tuple[tf.types.GroupwiseMetric, str]] = [
    (tf.sens.difference("sex"), "Difference in sens between the groups: largest value minus smallest value."),
    (tf.sens.ratio("sex"), "Ratio of sens between the groups: smallest value divided by largest value."),
    (
        tf.sens.difference("sex", to="f"),
        (
            "Difference in sens between a group and the group 'f': larger value minus smaller value, "
            "for the group that is farthest from equality."
        ),
    ),
    (
        tf.sens.ratio("sex", to="overall", signed=True),
        (
            "Ratio of sens between a group and all rows: group divided by all rows, "
            "for the group that is farthest from equality."
        ),
    ),
    (
        tf.sens.difference(tf.privileged(sex="m")),
        "Difference in sens between the unprivileged and the privileged: unprivileged minus privileged.",
    ),
    (
        tf.equalized_odds("sex"),
        "Difference in sens or spec between the groups: largest value minus smallest value, for whichever is worse.",
    ),
    (
        tf.differential_fairness("sex", aggregate=tf.aggregates.log_ratio(across="mean")),
        (
            "Log ratio of smoothed_selection_rate and smoothed_rejection_rate between the groups: "
            "logarithm of largest value divided by smallest value, averaged over these metrics."
        ),
    ),
    (tf.sens.group_minimum("sex"), "Smallest value of sens in a group."),
    (tf.abroca("sex"), "Largest value of abroca for any two groups."),
    (
        tf.demographic_parity("sex", aggregate=tf.aggregates.standard_deviation()),
        "Standard deviation of selection_rate across the groups.",
    ),
    (
        tf.demographic_parity("sex", aggregate=pl.col(".estimate").last()),
        'Result of the expression col(".estimate").last() for the values of selection_rate in the groups.',
    ),
]


def test_meaning_of_a_comparison_is_a_sentence() -> None:
    for metric, meaning in MEANINGS:
        assert metric.meaning == meaning
        assert meaning in cells_of(metric)


def test_signatures_show_the_keywords_of_calls() -> None:
    call = inspect.signature(tf.sens)
    assert {"probs", "group_by", "threshold", "pos_label", "interval", "explain"} <= set(call.parameters)
    assert call.parameters["conf_level"].default == 0.95
    assert set(inspect.signature(tf.sens.compute).parameters) == {"tally", *ComputeOptions.__annotations__}
    assert set(inspect.signature(tf.sens.tally).parameters) >= {*CountOptions.__annotations__}
    # each option has one default, that of the object in which it travels, with the parts that follow from it
    travelling = {field.name for field in fields(Options)} - {"has_single_rows"}
    assert {*GroupCallOptions.__annotations__, "truth", "estimate"} == travelling


def html_of(made: Any) -> str:
    return made._repr_html_()


def cells_of(made: Any) -> list[str]:
    """The texts of cells and of code, as a notebook shows them."""
    return [unescape(text) for text in re.findall("<(?:t[hd]|code)[^>]*>(.*?)</", html_of(made))]


def test_metrics_are_tables_in_notebooks() -> None:
    shown = html_of(tf.metric_set(tf.sens, tf.accuracy.difference("<b>")))
    assert shown.count("<tr>") == 3
    assert ">&lt;b&gt;</td>" in shown
    assert "<b>" not in shown
    assert "Share of actual positives that were predicted positive" in html_of(tf.sens)
    assert "accuracy_difference" in html_of(tf.accuracy.difference("sex"))


@pytest.mark.parametrize(
    ("metric", "formula"),
    [(tf.sens, "tp / (tp + fn)"), (tf.accuracy, "sum(tp) / sum(tp + fn)"), (tf.rmse, "sqrt(mse)")],
)
def test_notebooks_show_the_formula_of_a_metric(metric: Any, formula: str) -> None:
    assert formula in cells_of(metric)


def test_notebooks_show_no_formula_of_several_statements_or_without_source() -> None:
    assert "formula" not in cells_of(tf.mcc)
    unnamed = eval("lambda tp, fn: (tp, tp + fn)")  # noqa: S307 - a function without a file
    unnamed.__name__ = "sensitivity_here"
    assert "formula" not in cells_of(tf.class_metric(range=(0, 1))(unnamed))


def test_notebooks_show_limits_settings_and_calls() -> None:
    gate = tf.check(tf.metric_set(tf.demographic_parity("sex"), tf.equalized_odds("race")), below=0.1)
    assert cells_of(gate).count("below 0.1") == 2
    assert "conf_level=0.95" in html_of(gate)
    assert cells_of(gate)[-1] == "(data, truth, estimate, …)"
    assert "mid_p=True" in html_of(tf.inference.disparity_test(tf.demographic_parity("sex"), mid_p=True))
    assert cells_of(tf.inference.compare_models(tf.accuracy))[-1] == "(data, truth, one=…, other=…)"
    assert cells_of(tf.equalized_odds)[-1] == 'equalized_odds("column")(data, truth, estimate, …)'
    audit = tf.audits.NAMED_AUDITS["nyc_ll144"]
    assert {audit.tables[0].name, 'audit("nyc_ll144", data, …)'} <= set(cells_of(audit))


def test_columns_in_notebooks_have_space_between_them() -> None:
    # marimo adds none
    cells = re.findall(r"<t[hd]\b[^>]*>", html_of(tf.metric_set(tf.sens, tf.accuracy)))
    assert cells
    assert all("padding: 0.25em 0.75em" in cell for cell in cells)


def test_notebooks_get_no_script_and_no_style_sheet() -> None:
    for made in (tf.sens, tf.metric_set(tf.sens), tf.check(tf.sens, above=0.5), tf.audits.NAMED_AUDITS["nyc_ll144"]):
        assert not re.search("<(script|style|link)|color|class=", html_of(made))


def test_factories_take_the_reference_of_their_aggregate() -> None:
    for metric, aggregate in (
        (tf.equal_opportunity("race", to="White"), tf.difference("White")),
        (tf.demographic_parity_ratio("race", to="majority"), tf.ratio("majority")),
        (tf.demographic_parity("race", to="rest", signed=True), tf.difference("rest", signed=True)),
    ):
        factory = public(metric.name)
        assert metric == factory("race", aggregate=aggregate)
    with pytest.raises(tf.errors.ArgumentError, match="Unknown option of independence 'to'"):
        tf.independence("race", to="White")


def test_lists_of_names_in_pandas_are_tuples_which_great_tables_takes() -> None:
    table = pytest.importorskip("great_tables")
    people = pd.DataFrame({"y": [1, 0, 1, 0], "p": [1, 0, 0, 0], "g": ["a", "a", "b", "c"]})
    result = tf.equal_opportunity("g")(people, "y", "p", explain=True, on_undefined="ignore")
    assert result[".groups_left_out"].tolist() == [("c",)]
    assert ".groups_left_out" in table.GT(result).as_raw_html()
