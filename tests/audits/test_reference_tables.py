"""Reference tables equal what the library gives elsewhere, plain arithmetic, and the tests of scipy and statsmodels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.proportion import proportions_ztest

import tidyfair as tf
from tidyfair.datasets import lending

compare: Any = tf.compare_groups
fisher: Any = stats.fisher_exact
welch: Any = stats.ttest_ind
odds_ratio: Any = stats.contingency.odds_ratio
LOANS = lending(2_000)
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
APPLICANTS = pl.DataFrame({
    "sex": ["m"] * 80 + ["f"] * 40,
    "race": (["A"] * 50 + ["B"] * 27 + [None] * 3) + (["A"] * 20 + ["B"] * 17 + ["Unknown"] * 3),
    "hired": [1] * 48 + [0] * 32 + [1] * 12 + [0] * 28,
})  # fmt: skip


def table(*metrics: Any, data: Any = APPLICANTS, call: dict[str, Any] | None = None, **options: Any) -> pl.DataFrame:
    given: dict[str, Any] = call or {"estimate": "hired", "explain": True}
    of_call = {name: options.pop(name) for name in ("times", "conf_level") if name in options}
    return as_polars(compare(*metrics, **options)(data, **given, **of_call))


def row(result: pl.DataFrame, group: str | None) -> dict[str, Any]:
    (found,) = result.filter(pl.col(".group") == group).rows(named=True)
    return found


def test_columns_follow_from_the_call() -> None:
    result = compare(tf.selection_rate, by="sex")(APPLICANTS, estimate="hired")
    assert result.columns == [
        ".metric", ".by", "sex", ".group", ".level", ".estimator", ".n", ".share", ".estimate",
        ".estimate_lower", ".estimate_upper", ".reference", ".estimate_reference", ".scale", ".std_error", ".method",
        ".statistic", ".df", ".p_value", ".test", ".status", ".disparity", ".lower", ".upper", ".p_adjusted",
    ]  # fmt: skip
    empty = compare(tf.selection_rate, by="sex")(APPLICANTS.clear(), estimate="hired")
    assert empty.schema == result.schema
    assert empty.is_empty()


def test_the_example_of_the_uniform_guidelines() -> None:
    # 48 of 80 men and 12 of 40 women are hired: 60 and 30 %, a ratio of one half, 12 women short
    women = row(table(tf.selection_rate, by="sex", scale="ratio"), "f")
    assert women[".estimate"] == pytest.approx(0.3)
    assert (women[".reference"], women[".estimate_reference"]) == ("m", pytest.approx(0.6))
    assert women[".disparity"] == pytest.approx(0.5)
    assert women[".shortfall"] == pytest.approx(12)
    assert women[".deviations"] == pytest.approx(-3.0983866769659336)
    assert women[".flip_flop"] == pytest.approx((13 / 40) / (47 / 80))
    assert women[".share"] == pytest.approx(1 / 3)


def test_tests_of_rates_are_those_of_other_libraries() -> None:
    counts = [[12, 28], [48, 32]]
    exact = row(table(tf.selection_rate, by="sex", test="fisher"), "f")
    assert exact[".p_value"] == pytest.approx(float(fisher(counts)[1]), rel=1e-9)
    assert row(table(tf.selection_rate, by="sex", test="mid_p"), "f")[".p_value"] < exact[".p_value"]
    deviations = row(table(tf.selection_rate, by="sex", test="z"), "f")
    z, p = proportions_ztest([12, 48], [40, 80])
    assert deviations[".deviations"] == pytest.approx(z)
    assert deviations[".p_value"] == pytest.approx(p)
    assert deviations[".test"] == "z"


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("metric", [tf.selection_rate, tf.sens, tf.f_meas, tf.roc_auc], ids=lambda item: item.name)
def test_intervals_are_those_of_a_signed_comparison_with_the_same_reference(
    metric: tf.types.Metric, scale: str
) -> None:
    call = CALL | {"probs": "score"}
    signed: Any = getattr(metric, scale)
    expected = signed("sex", to="male", signed=True)(LOANS, **call, interval="auto")
    women = row(table(metric, data=LOANS, call=call, by="sex", to="male", scale=scale), "female")
    assert women[".disparity"] == pytest.approx(expected[".estimate"][0])
    assert [women[".lower"], women[".upper"]] == pytest.approx([expected[".lower"][0], expected[".upper"][0]])
    assert women[".method"] == expected[".method"][0]


@pytest.mark.parametrize("scale", ["difference", "ratio", "odds_ratio"])
def test_p_values_are_below_5_percent_where_95_percent_intervals_exclude_equality(scale: str) -> None:
    metrics = tf.metric_set(tf.selection_rate, tf.sens, tf.precision)
    result = table(metrics, data=lending(600), call=CALL, by=["race", ("sex", "race")], scale=scale)
    tested = result.drop_nulls(".lower")
    equality = 0 if scale == "difference" else 1
    excludes = (tested[".lower"] > equality) | (tested[".upper"] < equality)
    assert 0 < excludes.sum() < len(tested)
    assert (excludes == (tested[".p_value"] < 0.05)).all()


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("rows", [{}, {"case_weights": "weight"}, {"cluster": "household"}], ids=str)
@pytest.mark.parametrize("metric", [tf.selection_rate, tf.f_meas, tf.roc_auc], ids=lambda item: item.name)
def test_limits_at_the_level_of_a_p_value_touch_equality(
    metric: tf.types.Metric, rows: dict[str, str], scale: str
) -> None:
    people = lending(900).with_columns(
        weight=1 + pl.int_range(pl.len()) % 7 / 3, household=pl.int_range(pl.len()) * 7 % 60
    )
    call = CALL | {"probs": "score"} | rows
    tested = table(metric, data=people, call=call, by="race", scale=scale).drop_nulls(".lower")
    equality = 1.0 if scale == "ratio" else 0.0
    assert len(tested) > 2
    for group, p_value in tested.select(".group", ".p_value").rows():
        at_level = table(metric, data=people, call=call, by="race", scale=scale, conf_level=1 - p_value)
        limits = row(at_level, group)
        nearer = min((limits[".lower"], limits[".upper"]), key=lambda end: abs(end - equality))
        assert nearer == pytest.approx(equality, abs=1e-6)


@pytest.mark.parametrize("metric", [tf.selection_rate, tf.f_meas, tf.roc_auc], ids=lambda item: item.name)
def test_a_single_group_has_no_rest(metric: tf.types.Metric) -> None:
    call = CALL | {"probs": "score"}
    alone = table(metric, data=LOANS.filter(sex="male"), call=call, by="sex", to="rest")
    assert alone.select(".status", ".disparity", ".p_value").rows() == [("no_reference", None, None)]


def test_replicates_for_the_rest_are_those_of_each_group() -> None:
    people, call = lending(250), {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    of_rest = table(tf.pr_auc, data=people, call=call, by="race", to="rest", times=400)
    for race in ("White", "Hispanic"):
        sides = people.with_columns(
            side=pl.when(pl.col("race") == race).then(pl.lit("own")).otherwise(pl.lit("others"))
        )
        alone = row(table(tf.pr_auc, data=sides, call=call, by="side", to="others", times=400), "own")
        own = row(of_rest, race)
        assert own[".disparity"] == pytest.approx(alone[".disparity"])
        width = alone[".upper"] - alone[".lower"]
        assert own[".upper"] - own[".lower"] == pytest.approx(width, rel=0.1)


def test_p_values_of_means_are_nearly_those_of_welch() -> None:
    random = np.random.default_rng(1)
    people = pl.DataFrame({"g": ["a"] * 400 + ["b"] * 300, "pay": random.normal(10, 2, 700)})
    result = row(table(tf.mean_prediction, data=people, call={"estimate": "pay"}, by="g", to="a"), "b")
    pay = [people.filter(g=group)["pay"] for group in "ba"]
    assert result[".p_value"] == pytest.approx(float(welch(*pay, equal_var=False)[1]), rel=0.02)


def test_odds_ratios() -> None:
    women = row(table(tf.selection_rate, by="sex", scale="odds_ratio"), "f")
    assert women[".disparity"] == pytest.approx((12 / 28) / (48 / 32))
    conditional = odds_ratio([[12, 28], [48, 32]], kind="sample").confidence_interval()
    assert women[".lower"] == pytest.approx(conditional.low, rel=0.05)
    assert women[".upper"] == pytest.approx(conditional.high, rel=0.05)


def test_each_feature_has_a_reference_of_its_own() -> None:
    result = table(tf.selection_rate, data=LOANS, call=CALL, by=["sex", "race"], to={"sex": "female", "race": "Black"})
    assert dict(result.select(".by", ".reference").unique().rows()) == {"sex": "female", "race": "Black"}
    mixed = table(tf.selection_rate, data=LOANS, call=CALL, by=["sex", "race"], to={"race": "majority"})
    best = LOANS.group_by("sex").agg((pl.col("approved") == "yes").mean()).sort("approved")["sex"][-1]
    assert dict(mixed.select(".by", ".reference").unique().rows()) == {"sex": best, "race": "White"}


def test_the_rest_and_all_rows() -> None:
    of_rest = table(tf.selection_rate, data=LOANS, call=CALL, by="race", to="rest")
    of_all = table(tf.selection_rate, data=LOANS, call=CALL, by="race", to="overall")
    selected = pl.col("approved") == "yes"
    for race in LOANS["race"].unique():
        others = LOANS.filter(pl.col("race") != race).select(selected.mean()).item()
        assert row(of_rest, race)[".estimate_reference"] == pytest.approx(others)
        rest, overall = row(of_rest, race), row(of_all, race)
        assert overall[".estimate_reference"] == pytest.approx(LOANS.select(selected.mean()).item())
        # all rows are a mixture: the difference from them is as much smaller as the group is part of them
        for column in (".disparity", ".lower", ".upper"):
            assert overall[column] == pytest.approx(rest[column] * (1 - rest[".share"]))
        assert overall[".p_value"] == rest[".p_value"]


def test_rates_of_some_rows_are_mixtures_by_those_rows() -> None:
    of_rest = table(tf.sens, data=LOANS, call=CALL, by="sex", to="rest")
    of_all = table(tf.sens, data=LOANS, call=CALL, by="sex", to="overall")
    repaid = dict(LOANS.filter(pl.col("repaid") == "yes")["sex"].value_counts().rows())
    for sex, count in repaid.items():
        share = count / sum(repaid.values())
        for column in (".disparity", ".lower", ".upper"):
            assert row(of_all, sex)[column] == pytest.approx(row(of_rest, sex)[column] * (1 - share))


@pytest.mark.parametrize(
    "metric", [tf.selection_rate, tf.f_meas, tf.roc_auc, tf.brier_class], ids=lambda item: item.name
)
@pytest.mark.parametrize("to", ["rest", "overall"])
def test_contexts_have_intervals_of_any_metric(metric: tf.types.Metric, to: str) -> None:
    call = CALL | {"probs": "score"}
    for scale in ("difference", "ratio"):
        result = table(metric, data=LOANS, call=call, by="sex", to=to, scale=scale)
        inside = (result[".lower"] < result[".disparity"]) & (result[".disparity"] < result[".upper"])
        assert inside.all(), (metric.name, to, scale)


def test_unknown_groups_are_listed_and_never_compared() -> None:
    result = table(tf.selection_rate, by="race")
    for group in (None, "Unknown"):
        (unknown,) = result.filter(pl.col("race").eq_missing(group)).rows(named=True)
        assert (unknown[".n"], unknown[".status"], unknown[".disparity"]) == (3, "unknown", None)
    assert set(result.drop_nulls(".reference")[".reference"]) == {"A"}
    dropped = table(tf.selection_rate, by="race", unknown="drop")
    assert dropped["race"].to_list() == ["A", "B"]
    as_groups = table(tf.selection_rate, by="race", unknown="group")
    assert (as_groups[".status"] == "ok").all()
    crossed = table(tf.selection_rate, by=("sex", "race"))
    unknown = crossed.filter(pl.col(".status") == "unknown")
    assert unknown[".n"].to_list() == [3, 3]


def test_small_groups_are_listed_and_are_no_reference() -> None:
    people = pl.DataFrame({"g": ["a"] * 60 + ["b"] * 38 + ["c"] * 2, "hired": [1, 0] * 30 + [1, 0] * 19 + [1, 1]})
    everyone = table(tf.selection_rate, data=people, by="g")
    assert row(everyone, "a")[".reference"] == "c"
    cases: list[dict[str, Any]] = [{"min_n": 3}, {"min_share": 0.025}]
    for options in cases:
        result = table(tf.selection_rate, data=people, by="g", **options)
        rare = row(result, "c")
        status = "below_min_n" if "min_n" in options else "below_min_share"
        assert (rare[".estimate"], rare[".disparity"], rare[".status"]) == (1.0, None, status)
        assert row(result, "b")[".reference"] == "a"
    # 2 of 100 are not fewer than 2 %
    assert row(table(tf.selection_rate, data=people, by="g", min_share=0.02), "c")[".status"] == "ok"


def test_a_reference_that_is_not_compared_is_none() -> None:
    people = pl.DataFrame({"g": ["a"] * 6 + ["b"] * 38, "hired": [1, 0] * 22})
    result = table(tf.selection_rate, data=people, by="g", to="a", min_n=10)
    assert row(result, "b")[".status"] == "no_reference"
    assert row(result, "b")[".disparity"] is None


def test_groupwise_metrics_bring_their_feature_and_their_scale() -> None:
    result = compare(tf.disparate_impact("race", aggregate=tf.ratio(to="White")))(LOANS, **CALL)
    assert set(result[".scale"]) == {"ratio"}
    assert set(result[".reference"]) == {"White"}
    odds = compare(tf.equalized_odds("sex"))(LOANS, **CALL)
    assert odds[".metric"].unique(maintain_order=True).to_list() == ["sens", "spec"]


def test_p_values_are_adjusted_for_the_comparisons_of_a_family() -> None:
    metrics = tf.metric_set(tf.selection_rate, tf.sens)
    every = table(metrics, data=LOANS, call=CALL, by="race")
    p = every.drop_nulls(".p_value")[".p_value"].sort().to_numpy()
    holm = np.minimum(np.maximum.accumulate(p * np.arange(len(p), 0, -1)), 1)
    assert every.drop_nulls(".p_value").sort(".p_value")[".p_adjusted"].to_numpy() == pytest.approx(holm)
    by_metric = table(metrics, data=LOANS, call=CALL, by="race", family="metric")
    alone = table(tf.sens, data=LOANS, call=CALL, by="race")
    assert by_metric.filter(pl.col(".metric") == "sens")[".p_adjusted"].to_list() == alone[".p_adjusted"].to_list()


def test_thresholds_and_folds_are_compared_in_one_call() -> None:
    call = {"truth": "repaid", "probs": "score", "threshold": [0.4, 0.6], "group_by": "fold", "pos_label": "yes"}
    data = LOANS.with_columns(pl.col("fold") % 2)
    result = table(tf.metric_set(tf.selection_rate, tf.roc_auc), data=data, call=call, by="sex")
    one = call | {"threshold": 0.6, "group_by": None}
    part = table(tf.selection_rate, data=data.filter(fold=1), call=one, by="sex")
    expected = result.filter((pl.col("fold") == 1) & (pl.col(".threshold") == 0.6)).select(part.columns)
    adjusted = [".p_adjusted"]
    assert_frame_equal(expected.drop(adjusted), part.drop(adjusted))
    assert result.filter(pl.col(".metric") == "roc_auc")[".threshold"].null_count() == 4


def test_quantiles_of_the_score_are_selections() -> None:
    call = {"truth": "repaid", "probs": "score", "top_fraction": [0.2, 0.5], "pos_label": "yes"}
    result = table(tf.selection_rate, data=LOANS, call=call, by="sex", scale="ratio", to="male")
    top = LOANS.with_columns(top=pl.col("score").rank(descending=True) <= 0.2 * len(LOANS))
    rates = dict(top.group_by("sex").agg(pl.col("top").mean()).rows())
    women = result.filter((pl.col(".group") == "female") & (pl.col(".top_fraction") == 0.2))
    assert women[".disparity"].item() == pytest.approx(rates["female"] / rates["male"], rel=0.02)


def test_weights_and_clusters_have_tests_by_their_intervals() -> None:
    for option in ({"case_weights": "weight"}, {"cluster": "fold"}):
        result = compare(tf.selection_rate, by="sex", test="fisher")(LOANS, **CALL, **option)
        assert set(result.drop_nulls(".p_value")[".test"]) == {"interval"}
    weighted = compare(tf.selection_rate, by="sex", to="male")(LOANS, **CALL, case_weights="weight", explain=True)
    assert weighted[".numerator"].null_count() == len(weighted)
    selected = LOANS.with_columns(hit=pl.col(CALL["estimate"]) == "yes")
    sums = {
        sex: rows.select((pl.col("hit") * pl.col("weight")).sum().alias("hits"), pl.col("weight").sum()).row(0)
        for (sex,), rows in selected.group_by("sex")
    }
    for name, factor in ((".shortfall", 1.0), (".shortfall_four_fifths", 0.8)):
        shown = weighted.filter(pl.col(".group") == "female")[name].item()
        hits, weight = sums["female"]
        assert shown == pytest.approx(factor * sums["male"][0] / sums["male"][1] * weight - hits)


@pytest.mark.parametrize("option", ["case_weights", "cluster"])
@pytest.mark.parametrize("metric", [tf.selection_rate, tf.f_meas, tf.roc_auc], ids=lambda item: item.name)
def test_p_values_of_many_groups_are_the_levels_at_which_intervals_end_at_equality(
    metric: tf.types.Metric, option: str
) -> None:
    people = LOANS.filter(pl.col("race") != "Native")
    call = CALL | {"probs": "score", option: {"case_weights": "weight", "cluster": "fold"}[option]}
    result = table(metric, data=people, call=call, by="race", to="Asian", adjust="none")
    for group, p_value in result.drop_nulls(".p_value").select(".group", ".p_value").rows():
        at_level = table(metric, data=people, call=call, by="race", to="Asian", conf_level=1 - p_value)
        ends = row(at_level, group)
        assert min(abs(ends[".lower"]), abs(ends[".upper"])) == pytest.approx(0, abs=1e-6)


def test_counts_of_a_tally_are_enough(loans: pl.DataFrame) -> None:
    compared = compare(tf.accuracy, by=["sex", "race"], to="rest")
    metrics = tf.metric_set(tf.accuracy.difference("sex"), tf.accuracy.difference("race"))
    tally = metrics.tally(loans, "truth", "estimate")
    assert_frame_equal(compared.compute(tally), compared(loans, "truth", "estimate"))


def test_two_groups_that_read_alike_stay_two_rows() -> None:
    people = pl.DataFrame({"a": ["x:y", "x"] * 20, "b": ["z", "y:z"] * 20, "hired": [1, 0, 0, 1] * 10})
    result = table(tf.selection_rate, data=people, by=("a", "b"), to="majority")
    assert result.select(".group", "a", "b").rows() == [('"x":"y:z"', "x", "y:z"), ('"x:y":"z"', "x:y", "z")]


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.lazy, pl.DataFrame.to_arrow])
def test_any_frame_gives_the_same_table(convert: Any) -> None:
    compared = compare(tf.metric_set(tf.selection_rate, tf.sens), by=["sex", "race"], scale="ratio")
    data = LOANS.with_columns(pl.col(pl.Enum).cast(pl.String))
    expected = compared(data, **CALL)
    result = as_polars(compared(convert(data), **CALL))
    assert_frame_equal(result, expected, check_dtypes=False)


REFUSED: dict[str, tuple[Any, str]] = {
    "no metric": (lambda: compare(by="sex"), "needs a metric and a feature"),
    "no feature": (lambda: compare(tf.accuracy), "name the feature"),
    "a factory": (lambda: compare(tf.demographic_parity), "did you mean"),
    "a text": (lambda: compare("accuracy", by="sex"), "takes metrics"),
    "a scale": (lambda: compare(tf.accuracy, by="sex", scale="percent"), "scale"),
    "a ratio of what can be negative": (lambda: compare(tf.mcc, by="sex", scale="ratio"), "can be negative"),
    "odds of a mean": (lambda: compare(tf.mae, by="sex", scale="odds_ratio"), "is not a rate"),
    "a standardized rate": (
        lambda: compare(tf.accuracy, by="sex", scale="standardized"), "is for means of numbers and scores"
    ),
    "a standardized difference from all rows": (
        lambda: compare(tf.mean_prediction, by="sex", to="rest", scale="standardized"), "not with 'rest'"
    ),
    "a standardized difference with clusters": (
        lambda: compare(tf.mean_score, by="sex", to="male", scale="standardized")(
            LOANS, probs="score", cluster="race"
        ), "accepts neither clusters nor designs"
    ),
    "Welch's test of a rate": (
        lambda: compare(tf.accuracy, by="sex", to="male", test="welch"), '`test="welch"` is for means'
    ),
    "Welch's test of a ratio": (
        lambda: compare(tf.mean_score, by="sex", to="male", scale="ratio", test="welch"), "difference of a mean"
    ),
    "Welch's test of pairs": (
        lambda: compare(tf.mean_score, by="sex", to="each", test="welch"), "pairs have the test"
    ),
    "a standardized mean of several labels": (
        lambda: compare(tf.mean_score, by="sex", to="male", scale="standardized")(
            LOANS.with_columns(kind=pl.Series(list("abcd") * 500), half=pl.lit(0.25)),
            "kind", probs={"a": "half", "b": "half", "c": "half", "d": "half"},
        ), "is that of several labels"
    ),
    "a spread of other scales": (
        lambda: compare(tf.mean_score, by="sex", to="male", spread="all"), "are about standardized differences"
    ),
    "an unknown spread": (
        lambda: compare(tf.mean_score, by="sex", to="male", scale="standardized", spread="iqr"), "spread"
    ),
    "the best mean": (lambda: compare(tf.mean_prediction, by="sex", to="best"), "neither good nor bad"),
    "an unknown feature": (lambda: compare(tf.accuracy, by="sex", to={"race": "a"}), "is not compared"),
    "a function": (lambda: compare(tf.accuracy, by="sex", to=max), "is a group"),
    "an unknown group": (lambda: table(tf.selection_rate, by="sex", to="mm"), "is not a group"),
    "an option of its own": (
        lambda: compare(tf.accuracy, by="sex")(LOANS, **CALL, interval="auto"), "does not accept `interval`"
    ),
    "unknown values of groups": (
        lambda: compare(tf.accuracy, by="sex", unknown="group", unknown_values=["x"]), "unknown_values"
    ),
    "an unknown treatment": (lambda: compare(tf.accuracy, by="sex", unknown="ignore"), "unknown"),
    "a share in percent": (lambda: compare(tf.accuracy, by="sex", min_share=2), "min_share"),
    "negative means": (
        lambda: table(
            tf.mean_prediction, data=pl.DataFrame({"g": ["a", "a", "b", "b"], "x": [-1.0, -2.0, 1.0, 3.0]}),
            call={"estimate": "x"}, by="g", to="b", scale="ratio",
        ), "take differences",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


def test_ratios_of_means_name_the_table_that_has_them() -> None:
    with pytest.raises(
        tf.errors.AggregateError, match=r'take `compare_groups\(mean_prediction, by=…, to=…, scale="ratio"\)`'
    ):
        tf.mean_prediction.ratio("g")


@pytest.mark.parametrize("scale", ["ratio", "odds_ratio"])
@pytest.mark.parametrize("to", ["none", "rest"])
def test_ratio_to_a_rate_of_0_is_infinite_and_says_so(scale: str, to: str) -> None:
    people = pl.DataFrame({"g": ["some"] * 10 + ["none"] * 10 + ["nobody"] * 10, "e": [1] * 5 + [0] * 25})
    result = table(tf.selection_rate, data=people, call={"estimate": "e", "pos_label": 1}, by="g", to=to, scale=scale)
    statuses = {
        group: (disparity, status)
        for group, disparity, status in result.select(".group", ".disparity", ".status").rows()
    }
    assert statuses["some"] == (math.inf, "infinite")
    assert statuses["nobody"] == ((None, "zero_denominator") if to == "none" else (0.0, "ok"))


def test_differences_of_infinite_values_say_why_there_are_none() -> None:
    people = pl.DataFrame({"g": [*"ab"] * 12, "t": [1, 1, 0, 0] * 6, "e": [1, 1, 0, 0] * 6})
    ratios = tf.positive_likelihood_ratio
    for scale in ("difference", "ratio"):
        result = table(
            ratios, data=people, call={"truth": "t", "estimate": "e", "pos_label": 1}, by="g", to="b", scale=scale
        )
        assert row(result, "a")[".status"] == "infinite_less_infinite"


def test_ratios_of_means_that_are_positive() -> None:
    people = pl.DataFrame({"g": ["a"] * 50 + ["b"] * 50, "x": [1.0, 3.0] * 25 + [2.0, 6.0] * 25})
    result = row(table(tf.mean_prediction, data=people, call={"estimate": "x"}, by="g", to="b", scale="ratio"), "a")
    assert result[".disparity"] == pytest.approx(0.5)
    assert 0 < result[".lower"] < 0.5 < result[".upper"] < math.inf


@pytest.mark.parametrize(
    ("spread", "corrected"), [("pooled", False), ("pooled", True), ("reference", False), ("all", True)]
)
def test_standardized_scale_is_that_of_standardized_differences(spread: str, *, corrected: bool) -> None:
    people = LOANS.with_columns(
        pl.when(pl.col("race") != "Asian").then("race").alias("race"),
        pl.when(pl.int_range(pl.len()) % 7 != 0).then(pl.col("score") * 1e3 + 1e9).alias("pay"),
        pl.col("fold") % 2,
    )
    options: dict[str, Any] = {"spread": spread, "corrected": corrected}
    for metric, column, call in (
        (tf.mean_prediction, "pay", {"estimate": "pay"}),
        (tf.mean_truth, "pay", {"truth": "pay"}),
        (tf.mean_score, "score", {"probs": "score"}),
    ):
        for by, to in (("race", "White"), (("sex", "race"), ("male", "White"))):
            compared = compare(metric, by=by, to=to, scale="standardized", **options)
            result = compared(people, **call, group_by="fold", explain=True)
            expected = tf.audits.standardized_differences(people, column, by=by, to=to, group_by="fold", **options)
            assert result[".status"].to_list() == expected[".status"].to_list()
            for name in (".spread", ".disparity", ".lower", ".upper"):
                given, wanted = (frame[name].fill_null(math.nan).to_list() for frame in (result, expected))
                assert given == pytest.approx(wanted, rel=1e-6, nan_ok=True), name
            tested = result.drop_nulls(".p_value")
            excludes = (tested[".lower"] > 0) | (tested[".upper"] < 0)
            assert (excludes == (tested[".p_value"] < 0.05)).all()
            assert set(tested[".method"]) == {"hedges_olkin"}


def test_standardized_differences_of_tables_count_frequencies_as_rows() -> None:
    people = pl.DataFrame({"g": list("aabbb"), "x": [1.0, 3.0, 2.0, 5.0, 4.0], "times": [3, 2, 4, 1, 2]})
    repeated = people.select(pl.all().exclude("times").repeat_by("times").explode())
    compared = compare(tf.mean_prediction, by="g", to="b", scale="standardized")
    counted = compared(people, estimate="x", frequency_weights="times")
    plain = compared(repeated, estimate="x")
    for name in (".disparity", ".lower", ".upper", ".p_value"):
        assert counted.drop_nulls(".p_value")[name].item() == pytest.approx(plain.drop_nulls(".p_value")[name].item())


def weighted_people() -> pl.DataFrame:
    random = np.random.default_rng(7)
    sex = np.repeat(["f", "m"], [40, 60])
    numbers = random.normal(size=100) * np.where(sex == "f", 2, 1)
    return pl.DataFrame({"sex": sex, "x": numbers, "w": random.uniform(0.2, 3, 100)})


def test_standardized_differences_have_weights() -> None:
    """By plain arithmetic: variances with weights divide by W less the sum of squares over W."""
    people = weighted_people()
    direct = tf.audits.standardized_differences(people, "x", by="sex", to="m", case_weights="w", spread="reference")
    of_table = compare(tf.mean_prediction, by="sex", to="m", scale="standardized", spread="reference")
    of_table = of_table(people, estimate="x", case_weights="w")
    parts: dict[str, tuple[float, float, float]] = {}
    for (sex,), rows in people.group_by("sex"):
        x, w = rows["x"].to_numpy(), rows["w"].to_numpy()
        mean = float((w * x).sum() / w.sum())
        variance = float((w * (x - mean) ** 2).sum() / (w.sum() - (w**2).sum() / w.sum()))
        parts[str(sex)] = mean, variance, float(w.sum() ** 2 / (w**2).sum())
    (mean, _, size), (other, variance, other_size) = parts["f"], parts["m"]
    expected = (mean - other) / variance**0.5
    error = (1 / size + 1 / other_size + expected**2 / (2 * (other_size - 1))) ** 0.5
    for table in (direct, of_table):
        found = table.filter(pl.col(".group") == "f").row(0, named=True)
        assert (found[".disparity"], found[".std_error"]) == pytest.approx((expected, error))
    equal = tf.audits.standardized_differences(
        people, "x", by="sex", to="m", case_weights=(pl.col("w") * 0 + 3).alias("three")
    )
    plain = tf.audits.standardized_differences(people, "x", by="sex", to="m")
    for name in (".disparity", ".lower", ".p_value"):
        assert equal[name].drop_nulls().to_list() == pytest.approx(plain[name].drop_nulls().to_list())
    with pytest.raises(tf.errors.WeightError, match="negative"):
        tf.audits.standardized_differences(people, "x", by="sex", to="m", case_weights=(-pl.col("w")).alias("minus"))
    alone = people.with_columns(w=pl.when(pl.col("sex") == "f").then(0.0).otherwise("w"))
    nobody = tf.audits.standardized_differences(alone, "x", by="sex", to="m", case_weights="w").row(0, named=True)
    assert (nobody[".mean"], nobody[".disparity"], nobody[".status"]) == (None, None, "zero_denominator")


def test_welchs_test_is_that_of_scipy() -> None:
    people = weighted_people()
    table = compare(tf.mean_prediction, by="sex", to="m", test="welch")(people, estimate="x", conf_level=0.9)
    found = table.filter(pl.col(".group") == "f").row(0, named=True)
    sides = (people.filter(pl.col("sex") == sex)["x"].to_numpy() for sex in ("f", "m"))
    theirs: Any = stats.ttest_ind(*sides, equal_var=False)
    limits = theirs.confidence_interval(0.9)
    assert (found[".statistic"], found[".df"]) == pytest.approx((theirs.statistic, theirs.df))
    assert found[".p_value"] == pytest.approx(theirs.pvalue)
    assert (found[".lower"], found[".upper"]) == pytest.approx((limits.low, limits.high))
    assert (found[".method"], found[".test"]) == ("welch", "welch")
    assert found[".std_error"] == pytest.approx(found[".disparity"] / found[".statistic"])
    clustered = compare(tf.mean_prediction, by="sex", to="m", test="welch")
    other = clustered(people.with_row_index("row"), estimate="x", cluster="row")
    assert other.drop_nulls(".p_value")[".test"].item() == "interval"


def test_errors_and_statistics_of_rates_are_by_hand() -> None:
    people = pl.DataFrame({"g": ["a"] * 40 + ["b"] * 60, "p": [1] * 10 + [0] * 30 + [1] * 30 + [0] * 30})
    found = compare(tf.selection_rate, by="g", to="b", test="z")(people, estimate="p").row(0, named=True)
    unpooled = (0.25 * 0.75 / 40 + 0.5 * 0.5 / 60) ** 0.5
    pooled = (0.4 * 0.6 * (1 / 40 + 1 / 60)) ** 0.5
    assert (found[".std_error"], found[".statistic"]) == pytest.approx((unpooled, -0.25 / pooled))
    assert found[".df"] is None
    rest = compare(tf.selection_rate, by="g", to="rest")(people, estimate="p").row(0, named=True)
    assert rest[".std_error"] == pytest.approx(unpooled)
    overall = compare(tf.selection_rate, by="g", to="overall")(people, estimate="p").row(0, named=True)
    assert overall[".std_error"] == pytest.approx(0.6 * unpooled)
    of_pairs = tf.inference.pairwise(tf.demographic_parity("g"), test="chi_squared")(people, estimate="p")
    pair = of_pairs.row(0, named=True)
    assert (pair[".std_error"], pair[".statistic"]) == pytest.approx((unpooled, (0.25 / pooled) ** 2))
    assert pair[".df"] == 1
    exact = tf.inference.pairwise(tf.demographic_parity("g"))(people, estimate="p").row(0, named=True)
    assert (exact[".statistic"], exact[".df"]) == (None, None)


def test_standardized_differences_of_one_value_are_null_with_a_reason() -> None:
    same = pl.DataFrame({"x": [1.0, 1.0, 1.0, 1.0], "g": list("aabb")})
    call: dict[str, Any] = {"estimate": "x"}
    result = row(table(tf.mean_prediction, data=same, call=call, by="g", to="b", scale="standardized"), "a")
    assert (result[".disparity"], result[".status"], result[".method"]) == (None, "zero_denominator", None)


def test_standardized_tallies_are_enough() -> None:
    compared = compare(tf.mean_prediction, by="sex", to="male", scale="standardized")
    with pytest.raises(tf.errors.TidyfairError):
        compared.compute(tf.mean_score.difference("sex").tally(LOANS, probs="score"))
    tally = tf.metric_set(tf.mean_prediction.difference("sex"), tf.ccc.difference("sex")).tally(
        LOANS, "score", "score", parts=0
    )
    assert_frame_equal(compared.compute(tally), compared(LOANS, "score", "score"))


def test_a_group_alone_is_its_own_reference() -> None:
    people = pl.DataFrame(
        {"fold": [1, 1, 2, 2, 2, 2], "sex": ["f", "f", "f", "f", "m", "m"], "hired": [1, 0, 1, 1, 0, 1]}
    )
    call: dict[str, Any] = {"estimate": "hired", "group_by": "fold"}
    result = table(tf.selection_rate, data=people, call=call, by="sex")
    assert result.select("fold", "sex", ".disparity").rows() == [(1, "f", 0.0), (2, "f", 0.0), (2, "m", -0.5)]
    alone = table(tf.selection_rate, data=people.filter(fold=1), call={"estimate": "hired"}, by="sex", to="rest")
    assert alone.select(".disparity", ".status").row(0) == (None, "no_reference")


def test_the_group_is_counted_once_in_tests_against_all_rows() -> None:
    call: dict[str, Any] = CALL | {"explain": True}
    tables = [table(tf.selection_rate, data=LOANS, call=call, by="race", to=to, test="z") for to in ("rest", "overall")]
    for column in (".p_value", ".deviations"):
        assert tables[0][column].to_list() == pytest.approx(tables[1][column].to_list())
    black = row(tables[1], "Black")
    hits, rows = LOANS.filter(race="Black").select((pl.col("approved") == "yes").sum(), pl.len().alias("rows")).row(0)
    assert black[".flip_flop"] == pytest.approx((hits + 1) / rows - black[".estimate_reference"])


def test_ratios_of_nothing_to_nothing_are_null() -> None:
    people = pl.DataFrame({"g": ["a", "b"] * 10, "hired": [0] * 20})
    call: dict[str, Any] = {"estimate": "hired", "pos_label": 1}
    result = table(tf.selection_rate, data=people, call=call, by="g", to="highest", scale="ratio")
    assert result.select(".disparity", ".status").rows() == [(None, "zero_denominator")] * 2


def test_a_metric_is_compared_by_a_feature_once() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="two metrics selection_rate by sex"):
        compare(tf.selection_rate, by=["sex", "sex"])
    with pytest.raises(tf.errors.ColumnError, match="selection_rate: the data are grouped by 'sex'"):
        compare(tf.selection_rate, by="sex")(APPLICANTS, estimate="hired", group_by="sex")


def test_groupwise_metrics_leave_out_the_same_groups() -> None:
    groupwise = table(tf.demographic_parity("race"), min_n=20)
    ordinary = table(tf.selection_rate, by="race", min_n=20)
    assert_frame_equal(groupwise, ordinary)
    assert set(groupwise.filter(pl.col(".n") == 3)[".status"]) == {"unknown"}
    with pytest.raises(tf.errors.ArgumentError, match="has a feature of its own, 'race'; leave out `by`"):
        compare(tf.demographic_parity("race"), by="sex")


@pytest.mark.parametrize("unknown", ["apart", "drop"])
def test_shares_are_those_of_all_rows_as_min_share_reads_them(unknown: str) -> None:
    result = table(tf.selection_rate, by="race", unknown=unknown, min_share=0.4)
    assert row(result, "A")[".share"] == pytest.approx(70 / 120)
    assert (row(result, "B")[".share"], row(result, "B")[".status"]) == (pytest.approx(44 / 120), "below_min_share")


def test_shares_of_no_rows_are_null() -> None:
    without_truth = APPLICANTS.with_columns(truth=pl.lit(None, pl.Int64))
    call = {"truth": "truth", "estimate": "hired", "labels": [0, 1]}
    result = table(tf.sens, data=without_truth, call=call, by="sex")
    assert result[".share"].to_list() == [None, None]
    assert set(result[".status"]) == {"zero_denominator"}


def test_values_for_unknown_groups_fit_some_feature() -> None:
    people = APPLICANTS.with_columns(code=pl.int_range(pl.len()) % 3)
    call: dict[str, Any] = {"estimate": "hired"}
    with pytest.raises(tf.errors.TidyfairError, match=r"`unknown_values`: '2' is text, and the column 'code' is Int64"):
        table(tf.selection_rate, data=people, call=call, by="code", unknown_values=["2"])
    with pytest.raises(
        tf.errors.TidyfairError, match=r"`unknown_values`: 9 is no text, and the column 'race' is String"
    ):
        table(tf.selection_rate, data=people, call=call, by="race", unknown_values=[9])
    both = table(tf.selection_rate, data=people, call=call, by=["code", "race"], unknown_values=[2, "B"])
    assert both.filter(pl.col(".status") == "unknown")[".group"].to_list() == ["2", "B", "null"]


@pytest.mark.parametrize("compare", [tf.audits.standardized_differences, tf.audits.quantile_ratios])
def test_numbers_that_cannot_be_squared_are_refused(compare: Any) -> None:
    # their deviation would be infinite, and the difference 0
    people = pl.DataFrame({"pay": [1e300, 2e300, 3e300, 5e300], "group": ["a", "a", "b", "b"]})
    with pytest.raises(tf.errors.ColumnError, match="`values`: the column 'pay' holds numbers as large as 5e"):
        compare(people, "pay", by="group", to="a")
    with pytest.raises(tf.errors.ColumnError, match="`values`: the column 'pay' holds infinite values"):
        compare(people.with_columns(pay=float("inf")), "pay", by="group", to="a")


def test_features_without_a_reference_are_named() -> None:
    people = pl.DataFrame({"pay": [1.0, 2, 3, 4], "group": ["a", "a", "b", "b"]})
    for to in (None, {"sex": "male"}):
        with pytest.raises(
            tf.errors.ArgumentError, match=r"`to` has no reference for 'group'; write `to=\{'group': …\}`"
        ):
            tf.audits.standardized_differences(people, "pay", by="group", to=to)


def test_each_pair_of_groups_is_compared_as_pairwise_does() -> None:
    loans = lending(900)
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
    pairs = tf.compare_groups(tf.selection_rate, by="race", to="each", scale="ratio", test="fisher", adjust="bh")
    expected = tf.inference.pairwise(tf.selection_rate.difference("race"), scale="ratio", adjust="bh")
    assert pairs(loans, **call).equals(expected(loans, **call))
    with pytest.raises(tf.errors.ArgumentError, match='pairs have the test "interval", "fisher" or "mid_p"'):
        tf.compare_groups(tf.selection_rate, by="race", to="each", test="z")
    with pytest.raises(tf.errors.ArgumentError, match="`spread` and `corrected` are about standardized differences"):
        tf.compare_groups(tf.selection_rate, by="race", to="each", spread="all")
