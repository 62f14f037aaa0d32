"""Bad input raises an error that names the argument, the column and what to write instead; it never gives a number."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import EAGER, ELSEWHERE, as_polars
from inline_snapshot import snapshot

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

    from polars import DataFrame

    from tidyfair.specs.formulas import Number

FAIR = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"))


def message(call: Callable[[], object]) -> str:
    with pytest.raises(tf.errors.TidyfairError) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


def test_text_of_crossed_columns_says_how_they_are_crossed(loans: DataFrame) -> None:
    assert message(lambda: tf.demographic_parity("sex:race")(loans, estimate="estimate")) == snapshot(
        "ColumnError: `by`: there is no column 'sex:race'; crossed columns are a tuple, ('sex', 'race')."
    )


def test_unknown_column_suggests_a_name(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    data = every_engine(loans)
    assert message(lambda: FAIR(data, "truht", "estimate")) == snapshot(
        "ColumnError: `truth`: there is no column 'truht'. Did you mean 'truth'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert message(lambda: FAIR(data, "truth", "estimate", group_by="flod")) == snapshot(
        "ColumnError: `group_by`: there is no column 'flod'. Did you mean 'fold'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert message(lambda: FAIR(data, "truth", "estimate", case_weights="w")) == snapshot(
        "ColumnError: `case_weights`: there is no column 'w'. Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert message(lambda: tf.demographic_parity("Sex")(data, "truth", "estimate")) == snapshot(
        "ColumnError: `by`: there is no column 'Sex'. Did you mean 'sex'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )


def test_missing_estimate_truth_or_scores(loans: DataFrame) -> None:
    assert message(lambda: FAIR(loans, "truth")) == snapshot(
        "ColumnError: accuracy needs the column of predicted labels: `estimate=`, or scores as `probs=` with `threshold=`."
    )
    assert message(lambda: FAIR(loans, estimate="estimate")) == snapshot(
        "ColumnError: accuracy needs the column of true labels: `truth=`."
    )
    assert message(lambda: FAIR(loans, "truth", threshold=0.5)) == snapshot(
        "ArgumentError: `threshold` needs a column of scores; add `probs=`."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", probs="score", threshold=0.5)) == snapshot(
        "ArgumentError: `estimate` and `threshold` are alternatives: give predicted labels, or scores with `threshold`."
    )
    call: Any = FAIR
    assert message(lambda: call(loans, "truth", probs="score", threshold="half")) == snapshot(
        "ArgumentError: `threshold` is a number, a list of numbers, a mapping by group or an `operating_point(…)`, not 'half'."
    )
    assert message(lambda: FAIR(loans, "truth", probs="sex", threshold=0.5)) == snapshot(
        "ColumnError: `probs`: the column 'sex' is String; a threshold needs numbers."
    )


def test_scores_need_a_threshold_for_class_metrics(loans: DataFrame) -> None:
    assert message(lambda: FAIR(loans, "truth", probs="score")) == snapshot(
        "ColumnError: accuracy needs the column of predicted labels: `estimate=`, or `threshold=` to turn `probs` into labels."
    )
    # class metrics read the labels, and leave scores to other metrics of a set; but a slip is a slip
    assert FAIR(loans, "truth", "estimate", probs="score").equals(FAIR(loans, "truth", "estimate"))
    assert message(lambda: FAIR(loans, "truth", "estimate", probs="scores")) == snapshot(
        "ColumnError: `probs`: there is no column 'scores'. Did you mean 'score'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert message(lambda: FAIR(loans, "truth", probs="score", threshold=math.nan)) == snapshot(
        "ArgumentError: `threshold` is a number, a list of numbers, a mapping by group or an `operating_point(…)`, not nan."
    )


def test_arguments_of_the_wrong_type(loans: DataFrame) -> None:
    loose: Any = FAIR
    assert message(lambda: loose(loans, "truth", "estimate", group_by=0)) == snapshot(
        "ColumnError: `group_by` takes a column name or a polars expression, not an int."
    )
    assert message(lambda: loose(loans, "truth", "estimate", labels=3)) == snapshot(
        "LabelError: `labels` must list distinct labels, not 3."
    )
    assert message(lambda: loose(loans, "truth", "estimate", pos_label=pl.lit(1))) == snapshot(
        "LabelError: `pos_label` must be one label, not an Expr."
    )
    difference: Any = tf.difference
    assert message(lambda: difference(to=pl.col("a"))) == snapshot(
        "AggregateError: difference: `to=` takes the value of a group, not an Expr."
    )
    assert message(lambda: difference(to={"a": 1})) == snapshot(
        "AggregateError: difference: `to=` takes the value of a group, not a dict."
    )
    assert message(lambda: difference(to="a", signed="yes")) == snapshot(
        "ArgumentError: `signed=` must be True or False, not 'yes'."
    )
    assert message(lambda: tf.sens.formula(tp=[1, 2], fn=[1, 2])) == snapshot(
        "ArgumentError: sens takes one number for each statistic: it is computed label by label."
    )


def test_factory_called_without_feature(loans: DataFrame) -> None:
    call: Any = tf.demographic_parity
    assert message(lambda: call(loans, "truth", "estimate")) == snapshot(
        'ArgumentError: demographic_parity is a factory: write `demographic_parity("column")(data, …)` with the sensitive feature first.'
    )
    assert message(lambda: call("sex", truth="truth")) == snapshot(
        'ArgumentError: demographic_parity is a factory: write `demographic_parity("column")(data, …)` with the sensitive feature first.'
    )
    assert message(lambda: call(["sex", "race"])) == snapshot(
        "ColumnError: demographic_parity: a list is one feature after the other, and a comparison is of one feature. Compare each, and put the comparisons into a `metric_set`; or cross the features: write them without brackets."
    )
    together: Any = [tf.sens, tf.spec]
    assert message(lambda: tf.metric_set(together)).endswith("Write them one by one, without brackets.")


def test_options_of_the_wrong_step(loans: DataFrame) -> None:
    tally: Any = tf.sens.tally
    compute: Any = tf.sens.compute
    counted = tf.sens.tally(loans, "truth", "estimate")
    assert message(lambda: tally(loans, "truth", "estimate", pos_label=1)) == snapshot(
        "ArgumentError: 'pos_label' is an option of computing; give it to `compute`."
    )
    assert message(lambda: compute(counted, case_weights="weight")) == snapshot(
        "ArgumentError: 'case_weights' is an option of counting; give it to `tally`."
    )
    assert message(lambda: compute(loans)) == snapshot(
        "ArgumentError: `compute` needs the result of `tally`; to count and compute in one step, call the metric itself."
    )
    loose: Any = FAIR
    assert message(lambda: loose(loans, "truth", "estimate", na_rm="yes")) == snapshot(
        "ArgumentError: `na_rm` is True or False, not 'yes'."
    )


def test_conf_mat_needs_truth_and_estimate(loans: DataFrame) -> None:
    table: Any = tf.conf_mat
    assert message(lambda: table(loans, "truth")) == snapshot(
        "ColumnError: conf_mat needs true and predicted labels; `estimate=` is missing."
    )
    assert message(lambda: table(loans, None, "estimate")) == snapshot(
        "ColumnError: conf_mat needs true and predicted labels; `truth=` is missing."
    )


def test_failing_aggregates(loans: DataFrame) -> None:
    odd = tf.demographic_parity("sex", aggregate=pl.col("estimate").max())
    assert message(lambda: odd(loans, estimate="estimate")) == snapshot(
        "AggregateError: demographic_parity: the aggregate col(\"estimate\").max() failed with ColumnNotFoundError: unable to find column \"estimate\". Its columns: 'sex', '.group', '.metric', '.estimator', '.estimate', '.n', '.denominator', '.overall'."
    )

    def of_pandas(groups: Any) -> float:
        return groups.groupby("sex")

    for frame in (loans, loans.to_pandas()):
        with pytest.raises(tf.errors.AggregateError) as caught_too:
            tf.demographic_parity("sex", aggregate=of_pandas)(frame, estimate="estimate")
        assert str(caught_too.value).startswith(
            "demographic_parity: the aggregate of_pandas failed with AttributeError: 'DataFrame' object has no attribute"
        )
        assert "It is called with a polars DataFrame with the columns 'sex', '.group', " in str(caught_too.value)
        assert isinstance(caught_too.value.__cause__, AttributeError)


@pytest.mark.parametrize(
    "asked", [pl.col("score").is_nan(), pl.col("score").is_not_nan(), pl.col("score").fill_nan(0) > 0.5]
)
def test_expressions_that_ask_a_column_for_nan(loans: DataFrame, asked: pl.Expr) -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"`by`: .* asks for NaN, but NaN in a column is null here.*`\.is_null\(\)`"
    ):
        tf.accuracy.difference(asked.alias("it"))(loans, "repaid", "approved")
    made = (pl.col("score") / pl.col("score")).fill_nan(0).alias("it") > 0
    tf.accuracy(loans, made, made)


@pytest.mark.parametrize("method", ["difference", "ratio", "group_minimum", "group_maximum"])
@pytest.mark.parametrize("compared", [tf.accuracy, tf.metric_set(tf.sens, tf.accuracy)])
def test_comparisons_that_say_their_aggregate_take_no_other(compared: Any, method: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=rf"\.{method}\(\) takes no `aggregate`.*`new_groupwise_metric\("):
        getattr(compared, method)("sex", aggregate=tf.aggregates.group_mean())
    assert message(lambda: tf.accuracy.difference("sex", aggregate=tf.ratio())) == snapshot(  # pyright: ignore[reportCallIssue] - bad input
        'ArgumentError: accuracy.difference() takes no `aggregate`, which its name says. Write `accuracy.ratio(…)`, `accuracy.group_minimum(…)`, `accuracy.group_maximum(…)`, or `new_groupwise_metric(accuracy, "name", aggregate)(…)` for any other.'
    )


def test_expressions_not_fitting_the_data(loans: DataFrame) -> None:
    odd = tf.demographic_parity((pl.col("sex") + 1).alias("odd"))
    assert message(lambda: odd(loans, estimate="estimate")).startswith(
        "ColumnError: An expression failed on the data (`by`: "
    )


def test_ambiguous_or_unknown_pos_label(loans: DataFrame) -> None:
    words = loans.with_columns(pl.col("truth", "estimate").replace_strict({0: "no", 1: "yes"}))
    assert message(lambda: FAIR(words, "truth", "estimate")) == snapshot(
        "LabelError: Which label of 'truth' is the event? The labels are 'no', 'yes': write `pos_label='yes'` or `pos_label='no'`."
    )
    assert message(lambda: FAIR(words, "truth", "estimate", pos_label="Yes")) == snapshot(
        "LabelError: `pos_label`: 'Yes' is not among the labels 'no', 'yes'. Did you mean 'yes'?"
    )
    assert message(lambda: FAIR(words, "truth", "estimate", pos_label="yes", estimator="macro")) == snapshot(
        "ArgumentError: `pos_label` selects one label but estimator='macro' uses all of them; give one of the two."
    )
    levels = words.with_columns(pl.col("truth", "estimate").cast(pl.Enum(["no", "yes"])))
    assert message(lambda: FAIR(levels, "truth", "estimate")) == snapshot(
        "LabelError: Which label of 'truth' is the event? The labels are 'no', 'yes': write `pos_label='yes'` or `pos_label='no'`."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", pos_label="1")) == snapshot(
        "LabelError: `pos_label`: '1' is not among the labels 0, 1. Did you mean 1?"
    )
    assert message(lambda: tf.sens(loans, "race", "race", estimator="binary")) == snapshot(
        "LabelError: Which label of 'race' is the event? The labels are 'a', 'b', 'rare': write `pos_label=` one of them."
    )


def test_disjoint_labels_of_truth_and_estimate(loans: DataFrame) -> None:
    apart = loans.with_columns(
        truth=pl.col("truth").replace_strict({0: "no", 1: "yes"}),
        estimate=pl.col("estimate").replace_strict({0: "deny", 1: "grant"}),
    )
    assert message(lambda: FAIR(apart, "truth", "estimate", pos_label="yes")) == snapshot(
        "LabelError: Truth and estimate have no label in common: 'truth' holds 'no', 'yes'; 'estimate' holds 'deny', 'grant'. If they belong together, list all of them as `labels=`."
    )
    assert message(lambda: FAIR(apart.with_columns(loans["estimate"]), "truth", "estimate")) == snapshot(
        "LabelError: Truth and estimate hold different kinds of labels: 'truth' holds 'no', 'yes'; 'estimate' holds 0, 1. Convert one of them, for example with `(pl.col('truth') == 'yes').alias('truth is yes')`."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", labels=[1])) == snapshot(
        "LabelError: `labels`: the column 'truth' also holds 0; list every label."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", labels=[0, 1, 1])) == snapshot(
        "LabelError: `labels` must list distinct labels, not [0, 1, 1]."
    )
    levels = apart.with_columns(pl.col("truth").cast(pl.Enum(["no", "yes"])))
    assert message(lambda: FAIR(levels, "truth", "estimate", pos_label="yes")) == snapshot(
        "LabelError: Truth and estimate have different levels: 'deny', 'grant' is not among 'no', 'yes'. If all of them are labels, list them as `labels=`."
    )


def test_continuous_columns_raise_before_counting(loans: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(*_: object) -> None:
        pytest.fail("rows were counted")

    monkeypatch.setattr("tidyfair.tallies.counting.grouped", counted)
    assert message(lambda: FAIR(loans, "truth", "score")) == snapshot(
        "ColumnError: `estimate`: the column 'score' holds fractional numbers, but class metrics read labels; give the predicted labels, or the scores as `probs=` with `threshold=`."
    )
    assert message(lambda: FAIR(loans, "weight", "estimate")) == snapshot(
        "ColumnError: `truth`: the column 'weight' holds fractional numbers, but class metrics read labels; give the column of labels."
    )


LARGE = 2**53


@pytest.mark.parametrize("floats", ["y", "p"])
def test_large_integer_labels_with_floats(floats: str) -> None:
    labels = pl.DataFrame({"y": [LARGE, LARGE + 1, 0], "p": [LARGE, LARGE, 0]}).cast({floats: pl.Float64})
    # as floats both predictions of the first two rows are right
    for listed in (None, [0, LARGE, LARGE + 1]):
        text = message(lambda listed=listed: tf.accuracy(labels, "y", "p", labels=listed))
        assert text.startswith("LabelError: 'y' (")
        assert "hold labels that floats cannot represent exactly" in text
    small = pl.DataFrame({"y": [LARGE - 1, LARGE - 2], "p": [LARGE - 1, LARGE - 1]}).cast({floats: pl.Float64})
    assert tf.accuracy(small, "y", "p", pos_label=LARGE - 1)[".estimate"].item() == 0.5


def test_compare_models_with_large_integer_labels_and_floats() -> None:
    two = pl.DataFrame({"y": [LARGE, LARGE + 1] * 4, "a": [LARGE, LARGE + 1] * 4, "b": [float(LARGE)] * 8})
    compared = tf.compare_models(tf.accuracy)
    text = message(lambda: compared(two, "y", one="a", other="b", pos_label=LARGE, times=20))
    assert "'y' (Int64) and 'b' (Float64) hold labels that floats cannot represent exactly" in text


@pytest.mark.parametrize("values", [[LARGE + 1, 0.5], [0.5, LARGE + 1]])
def test_arrays_mixing_floats_and_large_integers(values: list[float]) -> None:
    assert message(lambda: tf.demographic_parity("g").arrays(estimate=[1, 0], by={"g": values})) == snapshot(
        "ColumnError: `g` holds floats together with whole numbers that floats cannot represent exactly; convert all values to one type."
    )
    # large floats, and whole numbers that floats hold, are fine
    assert tf.rmse.arrays([1e17, 5, LARGE], [1e17, 5.5, LARGE])[".estimate"].item() == pytest.approx(math.sqrt(1 / 12))


def test_ignore_index_is_exact_for_large_integers() -> None:
    left = tf.accuracy.arrays([LARGE + 1, LARGE, 0], [LARGE + 1, 0, 0], ignore_index=float(LARGE), pos_label=LARGE + 1)
    assert left[".estimate"].item() == 1.0


def test_many_different_numbers_as_labels() -> None:
    amounts = pl.DataFrame({"truth": range(2_000), "estimate": range(2_000)})
    assert message(lambda: tf.accuracy(amounts, "truth", "estimate")) == snapshot(
        "LabelError: `truth`: the column 'truth' holds 2000 different numbers, like a measurement, but class metrics read labels. If these are labels, list them as `labels=`."
    )
    declared = tf.accuracy(amounts, "truth", "estimate", labels=range(2_000))
    assert declared[".estimate"].to_list() == [1.0]


def test_bad_members_of_a_metric_set() -> None:
    odd: Any = tf.demographic_parity
    assert message(lambda: tf.metric_set(odd)) == snapshot(
        'ArgumentError: demographic_parity compares the groups of a column: did you mean `demographic_parity("col")`?'
    )
    assert message(tf.metric_set) == snapshot(
        "ArgumentError: A metric set needs at least one metric, such as `metric_set(accuracy)`."
    )
    odd = "sens"
    assert message(lambda: tf.metric_set(tf.sens, odd)) == snapshot(
        "ArgumentError: A metric set takes metrics, groupwise metrics and metric sets, not 'sens'. Write the metric itself, `tidyfair.sens`."
    )
    assert message(lambda: tf.metric_set(tf.sens, tf.sens)) == snapshot(
        'ArgumentError: The set has two metrics sens; give one of them another name with `.alias("…")`.'
    )
    assert message(lambda: tf.metric_set(tf.equalized_odds("sex"), tf.equalized_odds("sex"))) == snapshot(
        "ArgumentError: The set has two metrics equalized_odds by sex; give one of them another name with `name=`."
    )
    # the same metric on two features, or under two names, is fine
    tf.metric_set(tf.equalized_odds("sex"), tf.equalized_odds("race"), tf.equalized_odds("sex", name="again"))


def test_numeric_metrics_in_a_set_with_others() -> None:
    rmse = replace(tf.accuracy, name="rmse", kind="numeric")
    assert message(lambda: tf.metric_set(tf.sens, rmse)) == snapshot(
        "ArgumentError: A set cannot combine numeric metrics with others, because 'sens', 'rmse' read different columns. Make two sets."
    )


def test_bad_arguments_of_a_factory(loans: DataFrame) -> None:
    odd: Any = tf.demographic_parity("sex")
    assert message(lambda: tf.new_groupwise_metric(odd, "gap", tf.difference())) == snapshot(
        "ArgumentError: gap: a groupwise metric needs a metric or a set of ordinary metrics, not <groupwise metric demographic_parity('sex'): difference(to='range') of selection_rate, minimize>."
    )
    odd = tf.difference
    assert message(lambda: tf.new_groupwise_metric(tf.sens, "gap", odd)) == snapshot(
        "AggregateError: gap: `aggregate=difference` lacks parentheses; write `aggregate=difference()`."
    )
    odd = "better"
    assert message(lambda: tf.new_groupwise_metric(tf.sens, "gap", tf.difference(), odd)) == snapshot(
        "ArgumentError: `direction=` must be 'maximize', 'minimize', 'zero' or 'one', not 'better'."
    )
    odd = 1
    assert message(lambda: tf.new_groupwise_metric(tf.sens, odd, tf.difference())) == snapshot(
        "ArgumentError: The name of a groupwise metric is a non-empty text, not 1."
    )
    odd = "range"
    assert message(lambda: tf.new_groupwise_metric(tf.sens, "gap", odd)) == snapshot(
        "AggregateError: gap: an aggregate is difference(), ratio() or a similar aggregate, a polars expression or a function, not 'range'."
    )
    assert message(tf.demographic_parity) == snapshot(
        'ArgumentError: demographic_parity() needs the sensitive feature: demographic_parity("column").'
    )
    assert message(lambda: tf.demographic_parity("sex", "sex")) == snapshot(
        "ArgumentError: demographic_parity: two columns have the same name; remove or rename one."
    )
    assert message(lambda: tf.demographic_parity(tf.privileged(sex="m"), "race")) == snapshot(
        "ArgumentError: demographic_parity: privileged(…) cannot be combined with columns; add them as conditions to privileged(…)."
    )
    odd = 3
    assert message(lambda: tf.demographic_parity(odd)) == snapshot(
        "ColumnError: `by` takes a column name or a polars expression, not an int."
    )
    assert message(lambda: tf.demographic_parity("sex", min_n=-1)) == snapshot(
        "ArgumentError: demographic_parity: `min_n` is a whole number, 0 or more, not -1."
    )
    assert message(lambda: tf.demographic_parity(pl.col("sex", "race"))) == snapshot(
        "ColumnError: `by`: cs.by_name('sex', 'race', require_all=true) may select several columns; list them one by one."
    )
    scalar = tf.demographic_parity(pl.col("score").max().alias("top"))
    assert message(lambda: scalar(loans, estimate="estimate")) == snapshot(
        'ColumnError: `by`: the expression col("score").max().alias("top") does not give one value for each row.'
    )
    shadow = tf.demographic_parity(pl.col("score") > 0.5)
    assert message(lambda: shadow(loans, estimate="estimate")) == snapshot(
        'ColumnError: `by`: the expression [(col("score")) > (dyn float: 0.5)] has the same name as the column \'score\'; give it another name with `.alias("…")`.'
    )


def test_group_by_the_compared_feature(loans: DataFrame) -> None:
    assert message(lambda: FAIR(loans, "truth", "estimate", group_by="sex")) == snapshot(
        "ColumnError: demographic_parity: the data are grouped by 'sex', so each part has only one group to compare; group by another column, or compare another one."
    )
    assert message(lambda: FAIR(loans.group_by("fold"), "truth", "estimate", group_by="race")) == snapshot(
        "ArgumentError: The data are already grouped; give the grouping once, on the frame or as `group_by=`."
    )
    reserved = loans.rename({"fold": ".metric"})
    assert message(lambda: FAIR(reserved, "truth", "estimate", group_by=".metric")) == snapshot(
        "ColumnError: `group_by`: '.metric' is a reserved column of results; rename your column."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", group_by=["fold", "fold"])) == snapshot(
        "ColumnError: `group_by`: ['fold'] are given more than once."
    )


@pytest.mark.parametrize(
    ("bad", "reason"),
    [(-1.0, "negative"), (math.nan, "NaN or infinite"), (math.inf, "NaN or infinite"), (None, "missing")],
    ids=str,
)
def test_negative_missing_and_infinite_weights(
    loans: DataFrame, bad: float | None, reason: str, every_engine: Callable[[DataFrame], Any]
) -> None:
    weighted = loans.with_columns(weight=pl.Series([bad, *loans["weight"][1:]], dtype=pl.Float64))
    data = every_engine(weighted)
    if every_engine in (EAGER["pandas"], ELSEWHERE["dask"]) and math.isnan(bad or 0):
        reason = "missing"  # which pandas says with NaN
    result = message(lambda: FAIR(data, "truth", "estimate", case_weights="weight"))
    assert result == (
        f"WeightError: `case_weights`: some values of 'weight' are {reason}; "
        "weights must be finite and not negative. Fill or filter these rows first."
    )


@pytest.mark.parametrize("weight", [2**62, 1e200, 1e-90], ids=str)
def test_weights_too_large_to_sum(loans: DataFrame, weight: float, every_engine: Callable[[DataFrame], Any]) -> None:
    # sums of integers would wrap around, products of floats leave what a float can hold
    heavy = loans.with_columns(weight=pl.lit(weight))
    data = every_engine(heavy)
    if weight == 2**62 and every_engine in (ELSEWHERE["duckdb"], ELSEWHERE["table"]):
        # sums of DuckDB have 128 bits
        assert FAIR(data, "truth", "estimate", case_weights="weight").equals(FAIR(loans, "truth", "estimate"))
        return
    with pytest.raises(tf.errors.WeightError, match="too large or too small"):
        FAIR(data, "truth", "estimate", case_weights="weight")


def test_zero_and_text_weights(loans: DataFrame) -> None:
    nothing = loans.with_columns(weight=pl.lit(0))
    assert message(lambda: FAIR(nothing, "truth", "estimate", case_weights="weight")) == snapshot(
        "WeightError: `case_weights`: all values of 'weight' are zero."
    )
    assert message(lambda: FAIR.by_group(nothing, "truth", "estimate", case_weights="weight")) == snapshot(
        "WeightError: `case_weights`: all values of 'weight' are zero."
    )
    assert message(lambda: FAIR(loans, "truth", "estimate", case_weights="sex")) == snapshot(
        "WeightError: `case_weights`: the column 'sex' is String; weights must be numbers."
    )


@pytest.mark.parametrize(
    "aggregate",
    [
        lambda groups: groups[".estimate"],
        lambda groups: groups[".group"][0],
        lambda _: None,
        lambda groups: (groups[".estimate"] > 0.5).any(),
        pl.col(".estimate"),
        pl.col(".group").first(),
        pl.col(".estimate").max() > 0.5,
    ],
    ids=["vector", "text", "None", "Boolean", "expression-vector", "expression-text", "expression-Boolean"],
)
def test_aggregate_not_returning_one_number(loans: DataFrame, aggregate: Any) -> None:
    odd = tf.new_groupwise_metric(tf.sens, "odd", aggregate)("sex")
    reason = message(lambda: odd(loans, "truth", "estimate"))
    assert reason.startswith("AggregateError: odd: the aggregate ")
    assert reason.endswith("it must return one number.")


def test_unknown_reference_group(loans: DataFrame) -> None:
    gap = tf.new_groupwise_metric(tf.sens, "gap", tf.difference(to="B"))
    assert message(lambda: gap("race")(loans, "truth", "estimate")) == snapshot(
        "AggregateError: gap: `to='B'` is not a group. Did you mean 'b'? The groups: 'a', 'b', 'rare'. Or 'majority' (the largest group), 'overall' (all rows), 'rest' (all others) or 'range' (the largest minus the smallest value)."
    )
    assert message(lambda: tf.demographic_parity("sex", aggregate=tf.difference(signed=True))) == snapshot(
        'AggregateError: difference(signed=True): a range has no sign; compare two sides with `privileged(…)`, or give a reference with `aggregate=difference(to="<a group>", signed=True)`.'
    )
    assert message(lambda: tf.difference(to="range", signed=True)) == snapshot(
        "AggregateError: difference(to='range', signed=True): a range has no sign; compare two sides with `privileged(…)`, or give a reference with `aggregate=difference(to=\"<a group>\", signed=True)`."
    )
    odd: Any = "max"
    assert message(lambda: tf.difference(across=odd)) == snapshot(
        "ArgumentError: `across=` must be 'worst' or 'mean', not 'max'."
    )
    factory = tf.new_groupwise_metric(tf.mcc, "mcc_ratio", tf.ratio())
    assert message(lambda: factory("sex")) == snapshot(
        "AggregateError: ratio() is not defined for mcc, which can be negative; use difference() or another metric."
    )
    spread = tf.new_groupwise_metric(tf.kap, "kap_spread", tf.aggregates.coefficient_of_variation())
    assert message(lambda: spread("sex")) == snapshot(
        "AggregateError: coefficient_of_variation() is not defined for kap, which can be negative; use difference() or another metric."
    )


def test_unknown_arguments_and_options(loans: DataFrame) -> None:
    loose: Any = FAIR
    call: Any = FAIR
    assert message(lambda: call(loans, "truth", "estimate", group_bi="fold")) == snapshot(
        "ArgumentError: Unknown argument 'group_bi'. Did you mean 'group_by'? Known: 'data', 'truth', 'estimate', 'probs', 'group_by', 'case_weights', 'frequency_weights', 'threshold', 'top_k', 'top_fraction', 'score_bins', 'cluster', 'parts', 'keep_rows', 'pos_label', 'labels', 'estimator', 'na_rm', 'on_undefined', 'interval', 'conf_level', 'times', 'seed', 'explain', 'design', 'judged', 'label_probability', 'suppress_below'."
    )
    call = tf.f_meas
    assert message(lambda: call(loans, "truth", "estimate", beta=2)) == snapshot(
        "ArgumentError: 'beta' is an option of a metric; set it with `metric_tweak(f_meas, \"a name\", beta=…)`."
    )
    assert message(lambda: loose(loans, "truth", "estimate", estimator="marco")) == snapshot(
        "ArgumentError: `estimator=` must be 'binary', 'macro', 'macro_weighted', 'micro', 'hand_till' or 'one_vs_rest', not 'marco'. Did you mean 'macro'?"
    )
    assert message(lambda: loose(loans, "truth", "estimate", on_undefined="wran")) == snapshot(
        "ArgumentError: `on_undefined=` must be 'warn', 'ignore', 'null' or 'raise', not 'wran'. Did you mean 'warn'?"
    )
    assert message(lambda: tf.metric_tweak(tf.f_meas, "f2", betta=2)) == snapshot(
        "ArgumentError: Unknown option of f_meas 'betta'. Did you mean 'beta'? Known: 'beta'."
    )
    assert message(lambda: tf.metric_tweak(tf.f_meas, "f2", beta=-2)) == snapshot(
        "ArgumentError: `beta` is a finite number of 0 or more, not -2."
    )
    assert message(lambda: tf.metric_tweak(tf.kap, "k", weighting="cubic")) == snapshot(
        "ArgumentError: `weighting=` must be 'none', 'linear' or 'quadratic', not 'cubic'."
    )
    assert message(lambda: tf.metric_tweak(tf.ppv, "p", prevalence=2)) == snapshot(
        "ArgumentError: `prevalence` is a number from 0 to 1, not 2; 2 percent is 0.02."
    )
    odd: Any = "numbers"
    assert message(lambda: tf.get_metrics(odd)) == snapshot(
        "ArgumentError: get_metrics(): `kind` is one of 'class' (labels), 'prob' (scores), 'numeric' (numbers), 'survival' (survival times), 'interval' (intervals and quantiles), not 'numbers'."
    )


def test_data_that_is_no_frame(loans: DataFrame) -> None:
    odd: Any = {"truth": [1]}
    assert message(lambda: FAIR(odd, "truth", "estimate")) == snapshot(
        "ArgumentError: `data` is a dict; make it a frame first, with `pl.DataFrame(data)`."
    )
    if hasattr(loans.group_by("fold"), "having"):  # not in the oldest polars
        assert message(lambda: FAIR(loans.group_by("fold").having(pl.len() > 1), "truth", "estimate")) == snapshot(
            'ArgumentError: having() cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
        )
    odd = loans.lazy().group_by("fold")
    assert message(lambda: FAIR(odd, "truth", "estimate")) == snapshot(
        'ArgumentError: a LazyGroupBy cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
    )
    odd = loans.rolling("fold", period="2i")
    assert message(lambda: FAIR(odd, "truth", "estimate")) == snapshot(
        'ArgumentError: a RollingGroupBy cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
    )
    pandas = loans.to_pandas()
    odd = pandas.groupby(pandas["fold"] > 1)
    assert message(lambda: FAIR(odd, "truth", "estimate")) == snapshot(
        'ArgumentError: a pandas groupby on anything but column names cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
    )
    odd = pandas.groupby("fold")["truth"]
    assert message(lambda: FAIR(odd, "truth", "estimate")) == snapshot(
        'ArgumentError: a pandas groupby on anything but column names cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
    )
    mixed = pd.DataFrame({"truth": [1, 0], "estimate": [1, 0], "sex": ["f", 2]})
    assert message(lambda: FAIR(mixed, "truth", "estimate")).startswith("ColumnError: ")
    nested = loans.with_columns(sex=pl.concat_list("sex", "race"))
    assert message(lambda: FAIR(nested, "truth", "estimate")) == snapshot(
        "ColumnError: `by`: the column 'sex' has dtype List(String); it must hold one plain value per row. People in "
        "several groups are a feature of their own: `memberships('sex')`."
    )


def test_bad_privileged_conditions(loans: DataFrame) -> None:
    def gap(*conditions: Any, **values: Any) -> str:
        return message(lambda: tf.equal_opportunity(tf.privileged(*conditions, **values))(loans, "truth", "estimate"))

    assert gap(sex="M") == snapshot(
        "ArgumentError: privileged(sex=M): 'sex' is never 'M'. Did you mean 'm'? Its values: 'f', 'm'."
    )
    assert gap(sex=1) == snapshot("ArgumentError: privileged(sex=1): 'sex' is never 1. Its values: 'f', 'm'.")
    assert gap(fold="1") == snapshot(
        "ArgumentError: privileged(fold=1): 'fold' is never '1'. Did you mean 1? Its values: 1, 2."
    )
    # what a dtype declares is known of every part of the data
    declared = loans.with_columns(pl.col("sex").cast(pl.Enum(["f", "m", "x"])))
    sides = tf.equal_opportunity(tf.privileged(sex=["m", "mle"]))
    for frame in (declared, declared.filter(sex="f"), declared.head(0)):
        assert message(lambda frame=frame: sides(frame, "truth", "estimate")) == snapshot(
            "ArgumentError: privileged(sex=m|mle): 'sex' is never 'mle'. Its values: 'f', 'm', 'x'."
        )
    assert gap(gender="m") == snapshot(
        "ColumnError: `by`: there is no column 'gender'. Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert gap({"sex": "m"}, unprivileged={"race": "a"}) == snapshot(
        "ArgumentError: privileged(sex=m vs race=a): some rows are on both sides; make the conditions mutually exclusive."
    )
    assert gap(sex=[]) == snapshot("ArgumentError: A condition maps a column to its values, not 'sex' to ().")
    assert gap({"sex": "m"}, unprivileged=[]) == snapshot(
        "ArgumentError: privileged(): `unprivileged=` needs a condition; leave it out to compare with all other rows."
    )
    assert gap({5: "m"}) == snapshot("ArgumentError: A condition maps a column to its values, not 5 to ('m',).")
    assert message(tf.privileged) == snapshot(
        'ArgumentError: privileged() needs a condition, such as privileged(sex="male") or privileged({"sex": "male"}).'
    )
    odd: Any = "m"
    assert message(lambda: tf.privileged(odd)) == snapshot(
        'ArgumentError: A condition is a mapping like {"sex": "male"}, not \'m\'.'
    )


def test_verdicts_on_sides_that_never_occur(loans: DataFrame) -> None:
    def gap(*conditions: Any, **sides: Any) -> str:
        parity = tf.equal_opportunity(tf.privileged(*conditions, **sides))
        judged = [tf.check(parity, below=0.1), tf.inference.disparity_test(parity)]
        (text,) = {message(lambda judge=judge: judge(loans, "truth", "estimate")) for judge in judged}
        return text

    assert gap({"sex": "mle"}) == snapshot(
        "ArgumentError: privileged(sex=mle): 'sex' is never 'mle'. Its values: 'f', 'm'. If the value is correct, make the column an Enum of all its values, or specify the other side with `unprivileged=`."
    )
    assert gap({"race": "rare", "fold": 3}) == snapshot(
        "ArgumentError: privileged(race=rare & fold=3): 'fold' is never 3. Its values: 1, 2. If the value is correct, make the column an Enum of all its values, or specify the other side with `unprivileged=`."
    )
    assert gap({"sex": "f"}, unprivileged={"sex": "m", "race": "z"}) == snapshot(
        "ArgumentError: privileged(sex=f vs sex=m & race=z): 'race' is never 'z'. Its values: 'a', 'b', 'rare'. If the value is correct, make the column an Enum of all its values."
    )


def test_side_column_given_twice(loans: DataFrame) -> None:
    sides = tf.privileged({"sex": "m", "race": "rare"})
    assert message(lambda: tf.accuracy(loans, "truth", "estimate", group_by=[sides, sides])) == snapshot(
        "ColumnError: `group_by`: ['side'] are given more than once; privileged(…) adds a column 'side', so rename yours or give one condition only."
    )
    named = loans.rename({"fold": "side"})
    both = ["side", tf.privileged(sex="m")]
    assert message(lambda: tf.accuracy(named, "truth", "estimate", group_by=both)) == snapshot(
        "ColumnError: `group_by`: ['side'] are given more than once; privileged(…) adds a column 'side', so rename yours or give one condition only."
    )
    ranked: dict[str, Any] = {"probs": "score", "top_k": 2, "group_by": tf.privileged(sex="m")}
    assert message(lambda: tf.accuracy(loans, "truth", **ranked)) == snapshot(
        "ArgumentError: `top_k` cannot be combined with `group_by=privileged(…)`; group by a column instead."
    )


def test_bad_references_of_sides(loans: DataFrame) -> None:
    def gap(to: Any) -> str:
        parity = tf.demographic_parity(tf.privileged(sex="m"), aggregate=tf.difference(to=to))
        return message(lambda: parity(loans, estimate="estimate"))

    assert gap("m") == snapshot(
        "AggregateError: demographic_parity: `to='m'` is not a group. The groups: 'privileged', 'unprivileged'. Or 'majority' (the largest group), 'overall' (all rows), 'rest' (all others) or 'range' (the largest minus the smallest value)."
    )
    assert message(lambda: gap(tf.accuracy)) == snapshot(
        "AggregateError: difference: `to=` takes the value of a group, not a Metric."
    )
    missing: Any = tf.accuracy
    assert message(lambda: missing(truth="truth")) == snapshot(
        "ArgumentError: The first argument is the data, as in `accuracy(data, …)`; set options of a metric with `metric_tweak`."
    )
    factory: Any = tf.differential_fairness
    assert message(lambda: tf.metric_tweak(factory, "it", concentration=2)) == snapshot(
        'ArgumentError: differential_fairness is a factory; give the options in its call: `differential_fairness("column", concentration=2)`.'
    )
    asked: Any = {"concentration": 2}
    assert message(lambda: tf.differential_fairness("sex")(loans, "truth", "estimate", **asked)) == snapshot(
        "ArgumentError: 'concentration' is an option of a metric; give it with the feature, `differential_fairness('sex', concentration=…)`."
    )
    assert message(lambda: tf.conf_mat(loans, "truth", "estimate", pos_label=2)) == snapshot(
        "LabelError: `pos_label`: 2 is not among the labels 0, 1."
    )
    assert tf.conf_mat(loans, "truth", "estimate", pos_label=1).equals(tf.conf_mat(loans, "truth", "estimate"))


def test_bad_options_of_inequality_and_smoothing(loans: DataFrame) -> None:
    def index(alpha: Any) -> str:
        return message(lambda: tf.metric_tweak(tf.inequality.generalized_entropy_index, "index", alpha=alpha))

    assert index("x") == snapshot(
        "ArgumentError: `alpha` is a finite number (2 and 1 are usual, 1 is Theil's index), not 'x'."
    )
    assert index(math.nan) == index(math.inf).replace("inf", "nan")
    assert message(lambda: tf.inequality.between_group_generalized_entropy_index("sex", alpha=None)) == snapshot(
        "ArgumentError: `alpha` is a finite number (2 and 1 are usual, 1 is Theil's index), not None."
    )
    assert message(lambda: tf.inequality.within_group_generalized_entropy_index("sex", alpha=True)) == snapshot(
        "ArgumentError: `alpha` is a finite number (2 and 1 are usual, 1 is Theil's index), not True."
    )
    assert message(lambda: tf.differential_fairness("sex", concentration=-1)) == snapshot(
        "ArgumentError: `concentration` is a number from 0 to 1e+15, not -1."
    )
    assert message(lambda: tf.differential_fairness("sex", concentrations=1)) == snapshot(
        "ArgumentError: Unknown option of differential_fairness 'concentrations'. Did you mean 'concentration'? Known: 'concentration', 'to', 'signed', 'aggregate', 'min_n', 'min_share', 'unknown', 'unknown_values', 'name'."
    )
    assert message(lambda: tf.distributions.bias_amplification("sex", concentration="much")) == snapshot(
        "ArgumentError: `concentration` is a number from 0 to 1e+15, not 'much'."
    )
    frame: Any = loans
    assert message(lambda: tf.differential_fairness(frame, "sex")) == snapshot(
        'ArgumentError: differential_fairness is a factory: write `differential_fairness("column")(data, …)` with the sensitive feature first.'
    )
    assert message(lambda: tf.average_odds_difference("race")) == snapshot(
        'AggregateError: difference(signed=True): a range has no sign; compare two sides with `privileged(…)`, or give a reference with `aggregate=difference(to="<a group>", signed=True)`.'
    )
    kind: Any = "share"
    assert message(lambda: tf.metric_tweak(tf.inequality.generalized_entropy_index, "index", benefit=kind)) == snapshot(
        "ArgumentError: `benefit=` must be 'ratio', 'difference' or 'amount', not 'share'."
    )
    assert message(
        lambda: tf.inequality.between_group_theil_index("sex", aggregate=tf.ratio(to="rest"), alpha=1)
    ) == snapshot(
        "ArgumentError: Unknown option of between_group_theil_index 'alpha'. Known: 'benefit', 'to', 'signed', 'aggregate', 'min_n', 'min_share', 'unknown', 'unknown_values', 'name'."
    )
    assert message(
        lambda: tf.new_groupwise_metric(tf.mcc, "it", tf.aggregates.generalized_entropy())("sex")
    ) == snapshot(
        "AggregateError: generalized_entropy(alpha=2) is not defined for mcc, which can be negative; use difference() or another metric."
    )
    assert message(lambda: tf.new_groupwise_metric(tf.mcc, "it", tf.aggregates.log_ratio())("sex")) == snapshot(
        "AggregateError: log_ratio() is not defined for mcc, which can be negative; use difference() or another metric."
    )
    assert message(lambda: tf.distributions.kl_divergence("sex", aggregate=tf.difference(to="overall"))) == snapshot(
        "ArgumentError: kl_divergence already compares each group with the others; use an aggregate without `to=`."
    )
    assert message(lambda: tf.new_groupwise_metric(tf.sens, "it", tf.difference(), less=tf.rmse)) == snapshot(
        "ArgumentError: it: numeric metrics cannot be combined with others, here 'class', 'numeric', because they read different columns."
    )
    flag: Any = 1
    assert message(lambda: tf.aggregates.group_mean(weighted=flag)) == snapshot(
        "ArgumentError: `weighted=` must be True or False, not 1."
    )


def test_bad_features_and_neighbors_of_consistency(loans: DataFrame) -> None:
    def alike(*features: str, **options: Any) -> str:
        metric = tf.inequality.consistency([*features], **options)
        return message(lambda: metric(loans.with_columns(gap=pl.lit(None, pl.Float64)), estimate="estimate"))

    assert alike("sex") == snapshot(
        "ColumnError: `features`: the column 'sex' is String; distances need numbers. Encode the column first."
    )
    assert alike("gap") == snapshot(
        "ColumnError: `features`: some values of 'gap' are missing or not finite, but distances need finite numbers; fill or filter these rows first."
    )
    assert alike("ag") == snapshot(
        "ColumnError: `features`: there is no column 'ag'. Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight', 'gap'."
    )
    one: Any = "score"
    assert message(lambda: tf.inequality.consistency(one)) == snapshot(
        "ArgumentError: consistency() takes a list of features, such as `consistency(['score'])`."
    )
    assert message(lambda: tf.inequality.consistency([])) == snapshot(
        "ArgumentError: consistency() needs a list of distinct features; `features` is empty or has duplicates."
    )
    assert message(lambda: tf.inequality.consistency(["score"], n_neighbors=0)) == snapshot(
        "ArgumentError: consistency(): `n_neighbors` is a whole number, 1 or more, not 0."
    )
    near = tf.inequality.consistency(["weight"])
    assert message(lambda: near(loans, probs="score", threshold=[0.3, 0.5])) == snapshot(
        "ArgumentError: consistency does not accept a list of values for threshold; give one value."
    )
    tally = near.tally(loans, estimate="estimate")
    assert message(lambda: tally + tally) == snapshot(
        "ArgumentError: Nearest neighbours are searched among all rows, so tallies of parts cannot be added; count all rows at once."
    )


def test_bad_arguments_of_subgroup_audits(loans: DataFrame) -> None:
    search, split = (
        tf.inference.subgroup_search(tf.fall_out, ["sex"]),
        tf.inference.linear_subgroup(tf.fall_out, ["weight"]),
    )
    assert message(lambda: tf.inference.subgroup_search(tf.f_meas, ["sex"])) == snapshot(
        "ArgumentError: subgroup_search() takes a rate of labels, such as fall_out, miss_rate, selection_rate or accuracy; f_meas is not a share of rows."
    )
    assert message(lambda: tf.inference.subgroup_search(tf.brier_class, ["sex"])) == snapshot(
        "ArgumentError: subgroup_search() takes a rate of labels, such as fall_out, miss_rate, selection_rate or accuracy; brier_class is not a share of rows."
    )
    parity: Any = tf.demographic_parity
    assert message(lambda: tf.inference.subgroup_search(parity, ["sex"])) == snapshot(
        'ArgumentError: subgroup_search() takes a metric, such as fall_out, not <factory of groupwise metrics demographic_parity: difference() of selection_rate; call demographic_parity("column")(data, …)>.'
    )
    assert message(lambda: tf.inference.subgroup_search(tf.fall_out, "sex")) == snapshot(
        'ArgumentError: subgroup_search() takes a list of features, such as `subgroup_search(fall_out, ["sex", "race"])`, not \'sex\'.'
    )
    assert message(lambda: tf.inference.linear_subgroup(tf.fall_out, [])) == snapshot(
        "ArgumentError: linear_subgroup() needs the features that define subgroups; `features` is empty."
    )
    assert message(lambda: tf.inference.subgroup_search(tf.fall_out, ["sex"], depth=0)) == snapshot(
        "ArgumentError: `depth` is a whole number, 1 or more, not 0."
    )
    weighted: Any = {"case_weights": "weight"}
    assert message(lambda: search(loans, "truth", "estimate", **weighted)) == snapshot(
        "ArgumentError: Unknown argument 'case_weights'. Known: 'data', 'truth', 'estimate', 'probs', 'threshold', 'group_by', 'pos_label', 'labels', 'times', 'seed'."
    )
    assert message(lambda: search(loans, "truth", "estimate", group_by="sex")) == snapshot(
        "ColumnError: fall_out: the data are grouped by 'sex', so each part has only one group to compare; group by another column, or compare another one."
    )
    assert message(lambda: split(loans, "truth", probs="score", threshold=[0.3, 0.5])) == snapshot(
        "ArgumentError: A search does not accept a list of values for threshold; give one value."
    )
    texts = tf.inference.linear_subgroup(tf.fall_out, ["race"])
    assert message(lambda: texts(loans, "truth", "estimate")) == snapshot(
        "ColumnError: `features`: the column 'race' is String; a linear threshold needs numbers. Encode the column first."
    )
    assert message(lambda: search(loans, "race", "race")) == snapshot(
        "LabelError: Which label of 'race' is the event? The labels are 'a', 'b', 'rare': write `pos_label=` one of them."
    )


def test_on_undefined_raise(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    call, data = tf.equal_opportunity("race"), engine(loans)
    assert message(lambda: call(data, "truth", "estimate", on_undefined="raise")) == snapshot(
        "UndefinedError: sens has no value (zero denominator) in race 'rare'."
    )


def test_formula_with_missing_numbers() -> None:
    assert message(lambda: tf.sens.formula(tp=1)) == snapshot("ArgumentError: sens needs the number 'fn'.")
    assert message(lambda: tf.sens.formula(tp=1, fm=1)) == snapshot(
        "ArgumentError: Unknown number of sens.formula() 'fm'. Known: 'tp', 'fn'."
    )


def test_bad_custom_formulas() -> None:
    def hits(tpp: Number) -> Number:
        return tpp

    assert message(lambda: tf.class_metric()(hits)) == snapshot(
        "ArgumentError: hits(): the parameter 'tpp' is neither a statistic nor a metric in its module; import the metric there. Did you mean 'tp'? Statistics: 'tp', 'fp', 'fn', 'tn', 'positives', 'negatives', 'selected', 'unselected', 'instances', 'label_count', 'row_weight', 'count'."
    )

    def half(tp: Number) -> Any:
        del tp
        return 0.5

    assert message(lambda: tf.class_metric()(half)) == snapshot(
        "ArgumentError: half() must return a number for each group, or numerator and denominator, computed from its parameters, not 0.5."
    )

    @tf.class_metric()
    def scaled(tp: Number, *, by: float = 1) -> Number:
        return tp / math.sqrt(by)

    assert message(lambda: tf.metric_tweak(scaled, "x", by="2")).startswith("ArgumentError: scaled cannot use")
    assert message(lambda: tf.metric_tweak(tf.f_meas, "f2", beta="2")) == snapshot(
        "ArgumentError: `beta` is a finite number of 0 or more, not '2'."
    )


def test_incompatible_tallies(loans: DataFrame) -> None:
    tally = tf.accuracy.tally(loans, "truth", "estimate")
    other = tf.accuracy.tally(loans, "truth", "estimate", group_by="fold")
    assert message(lambda: tally + other) == snapshot(
        "ArgumentError: Only tallies of the same columns, keys, weights, threshold and metrics can be added."
    )
    assert message(lambda: FAIR.compute(tally)) == snapshot(
        "ColumnError: The tally was not counted by 'sex'; count again with the metrics to be computed."
    )


# Scores and numbers


SCORED = tf.metric_set(tf.roc_auc, tf.brier_class)


def test_scores_outside_0_to_1(loans: pl.DataFrame) -> None:
    odds = loans.with_columns(score=pl.col("score") * 2)
    assert message(lambda: SCORED(odds, "truth", probs="score")) == snapshot(
        "ColumnError: `probs`: 'score' holds values from 0.1 to 1.8, but brier_class needs probabilities between 0 and 1. Convert logits with `probs=sigmoid(…)`, or use ranking metrics, such as roc_auc."
    )
    assert message(lambda: tf.calibration.curve(odds, "truth", probs="score")) == snapshot(
        'ArgumentError: `probs`: scores from 0.1 to 1.8 are not probabilities; use binning="count".'
    )
    # metrics of their order take any scores
    assert tf.roc_auc(odds, "truth", probs="score").equals(tf.roc_auc(loans, "truth", probs="score"))


def test_infinite_and_text_scores(loans: pl.DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    infinite = loans.with_columns(score=pl.when(pl.col("fold") == 1).then(float("inf")).otherwise("score"))
    data, unbounded = every_engine(loans), every_engine(infinite)
    assert message(lambda: SCORED(unbounded, "truth", probs="score")) == snapshot(
        "ColumnError: `probs`: the column 'score' holds infinite values; metrics need finite numbers."
    )
    assert message(lambda: SCORED(data, "truth", probs="sex")) == snapshot(
        "ColumnError: `probs`: the column 'sex' is String; scores are numbers."
    )
    assert message(lambda: SCORED(data, "truth", probs="scores")) == snapshot(
        "ColumnError: `probs`: there is no column 'scores'. Did you mean 'score'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert message(lambda: SCORED(data, "truth", "estimate")) == snapshot(
        "ColumnError: roc_auc needs the column of scores: `probs=`."
    )


def test_missing_scores_are_dropped_or_reported(loans: pl.DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    holes = loans.with_columns(score=pl.when(pl.col("fold") == 1).then(float("nan")).otherwise("score"))
    filtered = loans.filter(pl.col("fold") != 1)
    assert SCORED(holes, "truth", probs="score").equals(SCORED(filtered, "truth", probs="score"))
    strict = as_polars(SCORED(engine(holes), "truth", probs="score", na_rm=False, explain=True))
    assert strict.select(".estimate", ".status").rows() == [(None, "missing_values")] * 2


def test_ambiguous_score_columns() -> None:
    frame = pl.DataFrame(
        {"sky": ["sun", "rain", "snow"], "p1": [0.5, 0.2, 0.1], "p2": [0.3, 0.6, 0.1], "p3": [0.2, 0.2, 0.8]}
    )
    assert message(lambda: tf.roc_auc(frame, "sky", probs=["p1", "p2", "p3"])) == snapshot(
        "ColumnError: `probs`: it is unclear which of the columns 'p1', 'p2', 'p3' belongs to which of the labels 'rain', 'snow', 'sun'; write `probs={'rain': …, 'snow': …, 'sun': …}`."
    )
    assert message(lambda: tf.roc_auc(frame, "sky", probs=["p1", "p2"])) == snapshot(
        "ColumnError: `probs` lists 2 columns for 3 labels, 'rain', 'snow', 'sun'; give one for each label, as `probs={label: column}`."
    )
    assert message(lambda: tf.roc_auc(frame, "sky", probs="p1")) == snapshot(
        "ColumnError: `probs`: 'p1' is a single column of scores, but there are several labels, 'rain', 'snow', 'sun'; give a column for each label, as `probs={label: column}`."
    )
    assert message(lambda: tf.roc_auc(frame, "sky", probs={"sun": "p1", "rain": "p2"})) == snapshot(
        "ColumnError: `probs` has columns for 'sun', 'rain' but not for 'snow'; give one for each label."
    )
    assert message(lambda: tf.roc_auc(frame, "sky", probs=["p1"])) == snapshot(
        "ColumnError: `probs` must list one column for each label, not 'p1'; give a single column without brackets."
    )
    # labels without an order are found by the names of their columns; with an order the columns must have it
    named = frame.rename({"p1": "sun", "p2": "rain", "p3": "snow"})
    mapped = tf.roc_auc(frame, "sky", probs={"sun": "p1", "rain": "p2", "snow": "p3"})
    assert tf.roc_auc(named, "sky", probs=["sun", "rain", "snow"]).equals(mapped)
    ordered = named.with_columns(pl.col("sky").cast(pl.Enum(["rain", "snow", "sun"])))
    assert message(lambda: tf.roc_auc(ordered, "sky", probs=["sun", "rain", "snow"])) == snapshot(
        "ColumnError: `probs`: it is unclear which of the columns 'sun', 'rain', 'snow' belongs to which of the labels 'rain', 'snow', 'sun'; write `probs={'rain': …, 'snow': …, 'sun': …}`."
    )
    assert message(lambda: tf.ranked_prob_score(frame, "sky", probs={"sun": "p1", "rain": "p2", "snow": "p3"})) == (
        snapshot(
            "LabelError: ranked_prob_score needs ordered labels, but the order of 'sun', 'rain', 'snow' and of the columns of `probs` is unknown; list both in order, `labels=[…]` and `probs=[…]`."
        )
    )


def test_text_and_infinite_numbers(loans: pl.DataFrame) -> None:
    assert message(lambda: tf.rmse(loans, "sex", "score")) == snapshot(
        "ColumnError: `truth`: the column 'sex' is String; regression metrics read numbers."
    )
    assert message(lambda: tf.rmse(loans, "truth")) == snapshot(
        "ColumnError: rmse needs the column of predicted numbers: `estimate=`."
    )
    assert message(lambda: tf.rmse(loans.with_columns(score=float("inf")), "truth", "score")) == snapshot(
        "ColumnError: `estimate`: the column 'score' holds infinite values; metrics need finite numbers."
    )
    assert message(lambda: tf.rmse(loans, "truth", "score", pos_label=1)) == snapshot(
        "ArgumentError: `pos_label` applies to labels, but rmse reads numbers; leave it out."
    )
    assert message(lambda: tf.rmse(loans, "truth", probs="score", threshold=0.5)) == snapshot(
        "ArgumentError: `threshold` turns scores into labels, but rmse reads numbers; leave it out."
    )
    assert message(lambda: tf.default_metrics(loans, "fold", "fold")) == snapshot(
        "ArgumentError: `truth`: the column 'fold' holds whole numbers, which may be labels or a measurement; list labels as `labels=`, or use metrics of numbers, such as `metric_set(rmse, rsq, mae)`."
    )


def test_bad_thresholds(loans: pl.DataFrame) -> None:
    def call(**cut: Any) -> str:
        return message(lambda: FAIR(loans, "truth", probs="score", **cut))

    assert call(threshold=[]) == snapshot("ArgumentError: `threshold` must not repeat a value: nothing.")
    assert call(threshold=[0.5, 0.5]) == snapshot("ArgumentError: `threshold` must not repeat a value: 0.5, 0.5.")
    assert call(threshold={"sex": {"f": 0.5}}) == snapshot(
        "ArgumentError: `threshold`: the groups 'm' of sex have no threshold; every group needs one."
    )
    assert call(threshold={"sex": 0.5}) == snapshot(
        'ArgumentError: `threshold` by group maps a column to the threshold of each group, such as `threshold={"sex": {"female": 0.4, "male": 0.5}}`.'
    )
    assert call(threshold={"sexes": {"f": 0.5}}) == snapshot(
        "ColumnError: `threshold`: there is no column 'sexes'. Did you mean 'sex'? Columns: 'truth', 'estimate', 'score', 'sex', 'race', 'fold', 'weight'."
    )
    assert call(top_k=0) == snapshot("ArgumentError: `top_k` is a number of rows, 1 or more, not 0.")
    assert call(top_fraction=1.5) == snapshot("ArgumentError: `top_fraction` is a share between 0 and 1, not 1.5.")
    assert call(top_k=2, threshold=0.5) == snapshot(
        "ArgumentError: `threshold` and `top_k` are alternatives; give only one of them."
    )


def test_bad_options_of_score_and_numeric_metrics() -> None:
    assert message(lambda: tf.metric_tweak(tf.huber_loss, "huber", delta=-1)) == snapshot(
        "ArgumentError: `delta` is a finite number above 0, not -1."
    )
    assert message(lambda: tf.metric_tweak(tf.prediction_intervals.pinball_loss, "p90", quantile=90)) == snapshot(
        "ArgumentError: `quantile` is a number from 0 to 1, not 90; 90 percent is 0.9."
    )
    assert message(lambda: tf.metric_tweak(tf.calibration.error, "ece_0", bins=0)) == snapshot(
        "ArgumentError: expected_calibration_error: `bins` is a whole number, 1 to 1000, not 0."
    )
    assert message(lambda: tf.metric_tweak(tf.calibration.error, "ece_q", binning="quantile")) == snapshot(
        "ArgumentError: `binning=` must be 'width' or 'count', not 'quantile'."
    )
    assert message(lambda: tf.metric_tweak(tf.ccc, "biased", bias="yes")) == snapshot(
        "ArgumentError: ccc: the option `bias` is True or False, not 'yes'."
    )


def test_bad_custom_metrics(loans: pl.DataFrame) -> None:
    def first(truth: Any, estimate: Any) -> Any:
        return truth[0] if len(estimate) else None

    unweighted = tf.new_class_metric(first, "first")
    assert message(lambda: unweighted(loans, "truth", "estimate", case_weights="weight")) == snapshot(
        "ArgumentError: first does not accept weights; leave out `case_weights=`, or add a parameter `sample_weight` to the function."
    )
    odd: Any = 5
    assert message(lambda: tf.new_class_metric(odd, "odd")) == snapshot(
        "ArgumentError: new_class_metric() takes a function, not 5."
    )
    assert message(lambda: tf.new_class_metric(lambda tp, fpp: (tp, tp + fpp), "odd")) == snapshot(
        "ArgumentError: <lambda>(): the parameter 'fpp' is neither a statistic nor a metric in its module; import the metric there. Did you mean 'fp'? Statistics: 'tp', 'fp', 'fn', 'tn', 'positives', 'negatives', 'selected', 'unselected', 'instances', 'label_count', 'row_weight', 'count'."
    )
    assert message(lambda: tf.new_prob_metric(lambda truth: float(len(truth)), "odd")) == snapshot(
        "ArgumentError: new_prob_metric(): a function of arrays must take two of them, truth and prediction, not 'truth'."
    )
    text = tf.new_numeric_metric(lambda one, other: str(len(one) + len(other)), "text")
    assert message(lambda: text(loans, "truth", "score")) == snapshot(
        "ArgumentError: text returned '24'; it must return one number. Where a group has no value, return nan or raise `Undefined(\"reason\")`."
    )


def test_failing_custom_metric_leaves_the_others(loans: pl.DataFrame) -> None:
    def fails(truth: Any, score: Any) -> float:
        if len(set(truth)) == 1:
            reason = "one class only"
            raise ValueError(reason)
        return float(score.mean())

    both = tf.metric_set(tf.mean_score, tf.new_prob_metric(fails, "fails"))
    with pytest.warns(tf.errors.UndefinedWarning, match="fails has no value .failed: one class only. in"):
        result = both(loans, "truth", probs="score", group_by="race", explain=True)
    rare = result.filter(pl.col("race") == "rare")
    assert rare[".status"].to_list() == ["ok", "failed: one class only"]


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda truth, score: 1 / 0, ZeroDivisionError),  # noqa: ARG005 - unused on purpose
        (lambda truth, score: {}["typo"], KeyError),  # noqa: ARG005 - unused on purpose
        (lambda truth, score: truth.typo, AttributeError),  # noqa: ARG005 - unused on purpose
        (lambda hits, score: 1 / 0, ZeroDivisionError),  # noqa: ARG005 - unused on purpose
        (lambda positives: {}["typo"], KeyError),  # noqa: ARG005 - unused on purpose
        # works on what it is tried out with
        (lambda positives: positives if positives.shape == (3, 2) else {}["late"], KeyError),
    ],
    ids=["division", "key", "attribute", "division_of_expressions", "key_of_sums", "key_of_data"],
)
def test_bug_in_a_custom_metric_is_an_error_that_names_it(
    loans: pl.DataFrame, function: Any, cause: type[Exception]
) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=f"^mine(: the formula)? failed with {cause.__name__}") as caught:
        tf.new_prob_metric(function, "mine")(loans, "truth", probs="score")
    assert isinstance(caught.value.__cause__, cause)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda truth, score: None, "^mine returned None; it must return one number"),  # noqa: ARG005 - unused on purpose
        (lambda positives, instances: (None, instances), "^mine.. returned None among its values"),  # noqa: ARG005 - unused on purpose
        (lambda positives: None, "^mine.. must return a number for each group"),  # noqa: ARG005 - unused on purpose
    ],
    ids=["arrays", "part", "sums"],
)
def test_custom_metric_that_returns_none_is_an_error(loans: pl.DataFrame, function: Any, said: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=said):
        tf.new_prob_metric(function, "mine")(loans, "truth", probs="score")


def test_custom_metric_that_returns_nan_has_no_value(loans: pl.DataFrame) -> None:
    nothing = tf.new_prob_metric(lambda truth, score: float("nan"), "nothing")  # noqa: ARG005 - unused on purpose
    result = nothing(loans, "truth", probs="score", on_undefined="ignore", explain=True)
    assert result.select(".estimate", ".status").row(0) == (None, "no_value")


def test_custom_statistic_that_fails_or_returns_texts_is_named() -> None:
    def made(function: Any) -> tf.types.Metric:
        return tf.new_prob_metric(lambda gap, instances: (gap, instances), "mine", statistics={"gap": function})

    with pytest.raises(tf.errors.ArgumentError, match=r"^the statistic 'gap' failed with KeyError: 'typo'"):
        made(lambda truth, score: {}["typo"])  # noqa: ARG005 - unused on purpose
    with pytest.raises(tf.errors.ArgumentError, match="the statistic 'gap' failed with SchemaError"):
        made(lambda truth, score: score.str.len_chars())  # noqa: ARG005 - unused on purpose
    with pytest.raises(
        tf.errors.ArgumentError, match="the statistic 'gap' must return numbers, not values of the type String"
    ):
        made(lambda truth, score: score.cast(pl.String))  # noqa: ARG005 - unused on purpose


@pytest.mark.parametrize("cause", [ZeroDivisionError, KeyError, ValueError])
def test_bug_in_an_aggregate_is_an_error_that_names_it(loans: pl.DataFrame, cause: type[Exception]) -> None:
    def mine(groups: pl.DataFrame) -> float:  # noqa: ARG001 - unused on purpose
        raise cause

    with pytest.raises(tf.errors.AggregateError, match=f"the aggregate mine failed with {cause.__name__}") as caught:
        tf.demographic_parity("sex", aggregate=tf.new_aggregate(mine))(loans, estimate="estimate", pos_label=1)
    assert isinstance(caught.value.__cause__, cause)


def test_aggregate_may_say_that_it_is_undefined(loans: pl.DataFrame) -> None:
    def mine(groups: pl.DataFrame) -> float:  # noqa: ARG001 - unused on purpose
        reason = "nothing"
        raise tf.errors.Undefined(reason)

    gap = tf.demographic_parity("sex", aggregate=tf.new_aggregate(mine))
    assert gap(loans, estimate="estimate", pos_label=1, on_undefined="ignore")[".estimate"].to_list() == [None]


def test_between_group_metric_without_other_groups(loans: pl.DataFrame) -> None:
    assert message(lambda: tf.abroca("sex", aggregate=tf.difference(to="overall"))) == snapshot(
        "ArgumentError: abroca already compares each group with the others; use an aggregate without `to=`."
    )
    with pytest.warns(tf.errors.UndefinedWarning, match="no other group"):
        alone = tf.distributions.kolmogorov_smirnov("sex")(loans.filter(sex="f"), probs="score")
    assert alone[".estimate"].to_list() == [None]


def test_bad_arguments_of_curves(loans: pl.DataFrame) -> None:
    assert message(lambda: tf.roc_curve(loans, "truth")) == snapshot(
        "ColumnError: roc_curve needs a column of scores; add `probs=`."
    )
    odd: Any = "half"
    assert message(lambda: tf.roc_curve(loans, "truth", probs="score", thresholds=odd)) == snapshot(
        "ArgumentError: `thresholds` must be a list of numbers, not 'half'."
    )
    assert message(lambda: tf.roc_curve(loans, "truth", probs="score", bins=5)) == snapshot(
        "ArgumentError: Unknown argument of roc_curve 'bins'. Known: 'data', 'truth', 'probs', 'group_by', 'case_weights', 'pos_label', 'labels', 'on_undefined', 'thresholds'."
    )
    assert message(lambda: tf.calibration.curve(loans, "truth", probs="score", bins=0)) == snapshot(
        "ArgumentError: calibration_curve: `bins` is a whole number, 1 to 1000, not 0."
    )


# Frames, columns, numbers and text of the wrong kind

PEOPLE = pl.DataFrame({"y": [1, 0, 1, 1], "p": [1, 1, 0, 1], "s": [0.1, 0.2, 0.3, 0.4], "g": list("abab")})
ARRAYS: dict[str, Any] = {
    "polars.Series": PEOPLE["y"],
    "pandas.Series": pd.Series([1, 0]),
    "pyarrow.ChunkedArray": pa.chunked_array([[1, 0]]),
    "numpy.ndarray": np.array([1, 0]),
    "list": [1, 0],
    "tuple": (1, 0),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_in_place_of_a_frame(kind: str) -> None:
    given = ARRAYS[kind]
    assert message(lambda: tf.accuracy(given, given)) == (
        f"ArgumentError: `data` is a {kind}, not a frame; pass arrays to `.arrays(…)`, as in "
        "`accuracy.arrays(truth, estimate)`."
    )
    assert tf.accuracy.arrays(given, given)[".estimate"].item() == 1.0


@pytest.mark.parametrize("role", ["truth", "estimate", "probs", "case_weights", "group_by"])
def test_arrays_in_place_of_a_column(role: str) -> None:
    call: Any = tf.metric_set(tf.accuracy, tf.roc_auc)
    named: dict[str, Any] = {"truth": "y", "estimate": "p", "probs": "s"}
    for given in (PEOPLE["s"], PEOPLE.to_pandas()["s"]):
        text = message(lambda given=given: call(PEOPLE, **named | {role: given}))
        assert text.startswith(f"ColumnError: `{role}` takes a column name or a polars expression, not a p")
        assert text.endswith("Series. Give the name of the column, or pass arrays to `.arrays(…)`.")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("people.parquet", "a str; read the file first, with `pl.scan_parquet(path)` or `pl.scan_csv(path)`."),
        (Path("people.csv"), "PosixPath; read the file first, with `pl.scan_parquet(path)`"),
        ({"y": [1]}, "a dict; make it a frame first, with `pl.DataFrame(data)`."),
        ([{"y": 1}], "a list; make it a frame first, with `pl.DataFrame(data)`."),
    ],
)
def test_objects_to_convert_to_a_frame_first(given: Any, expected: str) -> None:
    assert expected in message(lambda: tf.accuracy(given, "y", "p")).replace("WindowsPath", "PosixPath")


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame], ids=["pyarrow", "pandas", "polars"])
def test_column_name_may_be_empty(frame: Any) -> None:
    data = frame({"": [1, 0, 1, 1], "p": [1, 1, 0, 1], "other": list("abab")})
    assert as_polars(tf.accuracy(data, "", "p"))[".estimate"].item() == 0.5


WIDE = pa.array([Decimal(1), Decimal(0)], type=pa.decimal256(60, 2))


@pytest.mark.parametrize("engine", ["pyarrow", "pandas"])
def test_decimal256_columns(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"wide": WIDE, "y": [1, 0]})
    data = table if engine == "pyarrow" else table.to_pandas(types_mapper=pd.ArrowDtype)
    for call in (lambda: tf.accuracy(data, "y", "wide"), lambda: tf.demographic_parity("wide")(data, "y", "y")):
        text = message(call)
        assert text.startswith("ColumnError: 'wide' is decimal256(60, 2)")
        assert "cast it to decimal128" in text
    assert as_polars(tf.accuracy(data, "y", "y"))[".estimate"].item() == 1.0
    text = message(lambda: tf.demographic_parity("g").arrays(estimate=[1, 0], by={"g": WIDE}))
    assert text.startswith("ColumnError: 'g' is decimal256(60, 2), which has more digits")
    assert capfd.readouterr().err == ""


HALF = "y\ud800"
"""A text that Python holds, with half of a character that UTF-8 has no bytes for."""


HALVES: dict[str, Callable[[], object]] = {
    "a column": lambda: tf.accuracy(PEOPLE, HALF, "p"),
    "an outer group": lambda: tf.accuracy(PEOPLE, "y", "p", group_by=HALF),
    "a column of pandas": lambda: tf.accuracy(
        pd.DataFrame([[1, 0]], columns=pd.Index([HALF, "p"], dtype=object)), HALF, "p"
    ),
    "a feature": lambda: tf.demographic_parity(HALF)(PEOPLE, "y", "p"),
    "a name": lambda: tf.demographic_parity("g", name=HALF)(PEOPLE, "y", "p"),
    "an alias": lambda: tf.accuracy.alias(HALF)(PEOPLE, "y", "p"),
    "a group": lambda: tf.demographic_parity(tf.privileged({"g": HALF}))(PEOPLE, "y", "p"),
    "a column of a condition": lambda: tf.demographic_parity(tf.privileged({HALF: "a"}))(PEOPLE, "y", "p"),
    "a label": lambda: tf.accuracy(PEOPLE, "y", "p", pos_label=HALF),
    "the name of an array": lambda: tf.demographic_parity("g").arrays(estimate=[1, 0], by={HALF: [1, 0]}),
    "a value of an array": lambda: tf.demographic_parity("g").arrays(estimate=[1, 0], by={"g": [HALF, "a"]}),
    "a value of pandas": lambda: tf.demographic_parity("g")(
        pd.DataFrame({"p": [1, 0], "g": pd.Series([HALF, "a"], dtype=object)}), None, "p"
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_lone_surrogates(name: str) -> None:
    # in words that can be printed
    assert r"\ud800" in message(HALVES[name]).encode().decode()


@pytest.mark.parametrize("rows", [2**63, 2**200])
def test_row_numbers_beyond_64_bits(rows: int) -> None:
    for call in (
        lambda: tf.demographic_parity("g", min_n=rows)(PEOPLE, "y", "p"),
        lambda: tf.inference.lump_rare(PEOPLE, "g", min_n=rows),
        lambda: tf.accuracy(PEOPLE, "y", "p", interval="bootstrap", seed=rows),
    ):
        assert message(call).endswith(f"to {2**63 - 1}, not {rows}.")
    assert "`rows` is a whole number, 0 to 100000000, not " in message(lambda: lending(rows))
