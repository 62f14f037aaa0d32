"""Groups compared on paired rows equal two models compared on the same rows, and tests of scipy."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from scipy import stats
from statsmodels.stats.contingency_tables import cochrans_q, mcnemar

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

paired_groups = tf.inference.paired_groups


def exactly(number: float | None) -> Any:
    return None if number is None else pytest.approx(number, rel=1e-9, abs=1e-12)


@pytest.fixture(scope="module")
def wide() -> pl.DataFrame:
    """A hundred prompts with the decisions and scores for three names."""
    random = np.random.default_rng(7)
    count = 100
    common = random.random(count)
    decisions = {
        name: common + 0.25 * random.random(count) > cut for name, cut in zip("abc", (0.5, 0.6, 0.55), strict=True)
    }
    return pl.DataFrame({
        "prompt": [f"p{number}" for number in range(count)], "truth": random.random(count) < common,
        **decisions, **{f"score {name}": common + 0.1 * random.normal(size=count) for name in "abc"},
    })  # fmt: skip


@pytest.fixture(scope="module")
def answers(wide: pl.DataFrame) -> pl.DataFrame:
    parts = [
        wide.select(
            "prompt",
            "truth",
            pl.lit(name).alias("name"),
            pl.col(name).alias("yes"),
            pl.col(f"score {name}").alias("score"),
        )
        for name in "abc"
    ]
    return pl.concat(parts).sample(fraction=1, shuffle=True, seed=2)


def test_paired_rates_equal_two_models_on_the_same_rows(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    metrics = (tf.selection_rate, tf.accuracy, tf.sens, tf.f_meas)
    result = paired_groups(*metrics, by="name", pair="prompt")(answers, "truth", "yes")
    for group, other in itertools.combinations("abc", 2):
        models = tf.compare_models(*metrics)(wide, "truth", one=other, other=group)
        own = result.filter(pl.col(".group") == group, pl.col(".other") == other)
        assert own[".metric"].to_list() == models[".metric"].to_list()
        for name, of_models in {
            ".estimate": ".other", ".estimate_other": ".one", ".disparity": ".change", ".lower": ".lower",
            ".upper": ".upper", ".std_error": ".std_error", ".p_value": ".p_value",
        }.items():  # fmt: skip
            assert own[name].to_list() == [exactly(number) for number in models[of_models]]
        assert own[".flip_rate"].unique().to_list() == [exactly((wide[group] != wide[other]).mean())]  # pyright: ignore[reportArgumentType] - a number


def test_p_values_of_paired_rates_are_those_of_mcnemars_exact_test(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    exact = paired_groups(tf.selection_rate, by="name", pair="prompt", mid_p=False)(answers, estimate="yes")
    assert exact.columns == [
        ".metric", ".by", ".group", ".other", ".estimator", ".estimate", ".estimate_other", ".disparity", ".lower",
        ".upper", ".std_error", ".flip_rate", ".pairs", ".unmatched", ".p_value", ".p_adjusted",
    ]  # fmt: skip
    p_values: list[float] = []
    for group, other in itertools.combinations("abc", 2):
        one, two = (wide[name].to_numpy() for name in (group, other))
        table = [[(one & two).sum(), (one & ~two).sum()], [(~one & two).sum(), (~one & ~two).sum()]]
        test: Any = mcnemar(table, exact=True)
        p_values.append(float(test.pvalue))
    assert exact[".p_value"].to_list() == [exactly(number) for number in p_values]
    falling = sorted(range(3), key=lambda index: p_values[index])
    holm = [0.0] * 3
    for rank, index in enumerate(falling):
        holm[index] = min(1, max((3 - rank) * p_values[index], *holm))
    assert exact[".p_adjusted"].to_list() == [exactly(number) for number in holm]


def test_paired_means_have_the_interval_of_a_paired_t_test(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    result = paired_groups(tf.mean_prediction, by="name", pair="prompt", to="a")(answers, estimate="score")
    assert result.select(".group", ".other").rows() == [("b", "a"), ("c", "a")]
    for row, name in zip(result.iter_rows(named=True), "bc", strict=True):
        test = stats.ttest_rel(wide[f"score {name}"], wide["score a"])
        limits = test.confidence_interval()
        assert row[".disparity"] == exactly((wide[f"score {name}"] - wide["score a"]).mean())  # pyright: ignore[reportArgumentType, reportOperatorIssue] - numbers
        assert (row[".lower"], row[".upper"]) == pytest.approx((limits.low, limits.high), rel=1e-7)
        assert row[".p_value"] == pytest.approx(test.pvalue, abs=0.01)
        assert row[".flip_rate"] is None


def test_signs_of_few_differences_are_flipped_in_all_ways() -> None:
    difference = [0.3, 0.1, -0.05, 0.2, 0.15, 0.0]
    scores = pl.DataFrame({"pair": range(6), "a": difference, "b": 0.0}).unpivot(index="pair", variable_name="name")
    result = paired_groups(tf.mean_prediction, by="name", pair="pair")(scores, estimate="value")
    test = stats.permutation_test(
        (difference, [0.0] * 6), lambda one, other: np.mean(one - other), permutation_type="samples"
    )
    assert result[".p_value"].item() == exactly(float(test.pvalue))
    rows = scores.with_columns(truth=0.1)
    error = paired_groups(tf.mae, by="name", pair="pair")(rows, "truth", "value")
    errors = [abs(0.1 - number) - 0.1 for number in difference]
    test = stats.permutation_test(
        (errors, [0.0] * 6), lambda one, other: np.mean(one - other), permutation_type="samples"
    )
    assert error[".p_value"].item() == exactly(float(test.pvalue))


def test_areas_under_curves_are_compared_on_paired_rows(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    result = paired_groups(tf.roc_auc, by="name", pair="prompt", to="a")(answers, "truth", probs="score")
    models = tf.compare_models(tf.roc_auc)(wide, "truth", one="score a", other="score b")
    first = result.row(0, named=True)
    assert first[".disparity"] == exactly(models[".change"].item())
    assert first[".std_error"] == pytest.approx(models[".std_error"].item(), rel=0.1)
    of_normal = 2 * stats.norm.sf(abs(first[".disparity"]) / first[".std_error"])
    assert first[".p_value"] == pytest.approx(of_normal, abs=0.01)


def test_cochrans_q_equals_statsmodels_and_mcnemars_chi_squared(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    test: Any = cochrans_q(wide.select("a", "b", "c").to_numpy().astype(int))
    result = paired_groups(tf.selection_rate, by="name", pair="prompt").cochrans_q(answers, estimate="yes")
    assert result.rows(named=True) == [{
        ".metric": "selection_rate", ".by": "name", ".statistic": exactly(test.statistic), ".df": 2,
        ".p_value": exactly(test.pvalue), ".pairs": 100, ".unmatched": 0,
    }]  # fmt: skip
    two = answers.filter(pl.col("name") != "c", pl.col("truth"))
    of_two = paired_groups(tf.sens, by="name", pair="prompt").cochrans_q(
        answers.filter(pl.col("name") != "c"), "truth", "yes"
    )
    pairs = two.pivot("name", index="prompt", values="yes")
    only, only_other = len(pairs.filter(a=True, b=False)), len(pairs.filter(a=False, b=True))
    assert of_two[".statistic"].item() == exactly((only - only_other) ** 2 / (only + only_other))
    assert of_two[".pairs"].item() == len(pairs)


def test_unmatched_pairs_are_counted_and_left_out(wide: pl.DataFrame, answers: pl.DataFrame) -> None:
    gaps = answers.filter(~((pl.col("name") == "b") & pl.col("prompt").is_in(["p1", "p2"]))).with_columns(
        yes=pl.when(~((pl.col("name") == "a") & (pl.col("prompt") == "p3"))).then("yes")
    )
    metric = paired_groups(tf.selection_rate, by="name", pair="prompt")
    with pytest.warns(tf.errors.SelectionWarning, match="3 of 100 lack one of two groups, or its prediction"):
        result = metric(gaps, estimate="yes")
    assert result.select(".group", ".other", ".pairs", ".unmatched").rows() == [
        ("a", "b", 97, 3), ("a", "c", 99, 1), ("b", "c", 98, 2)
    ]  # fmt: skip
    complete = wide.filter(~pl.col("prompt").is_in(["p1", "p2", "p3"]))
    models = tf.compare_models(tf.selection_rate)(complete, one="b", other="a")
    assert result[".disparity"][0] == exactly(models[".change"].item())
    assert metric.cochrans_q(gaps, estimate="yes").select(".pairs", ".unmatched").row(0) == (97, 3)


def test_outer_groups_are_compared_one_by_one(answers: pl.DataFrame) -> None:
    both = pl.concat(
        [
            answers.with_columns(model=pl.lit("old")),
            answers.with_columns(pl.col("yes") | pl.col("truth"), model=pl.lit("new")),
        ]
    )
    metric = paired_groups(tf.selection_rate, by="name", pair="prompt", to="a")
    result = metric(both, estimate="yes", group_by="model")
    assert result.columns[0] == "model"
    for (model,), part in both.group_by("model"):
        own = result.filter(pl.col("model") == model).drop("model")
        assert own.equals(metric(part, estimate="yes"))
    tests = metric.cochrans_q(both, estimate="yes", group_by="model")
    assert tests["model"].to_list() == ["new", "old"]


def test_clusters_of_prompts_widen_intervals(answers: pl.DataFrame) -> None:
    data = answers.with_columns(template=pl.col("prompt").str.slice(1).cast(pl.Int64) // 3)
    metric = paired_groups(tf.selection_rate, by="name", pair="prompt", to="a")
    result = metric(data, estimate="yes", cluster="template")
    assert result[".p_value"].null_count() == 2
    assert result[".disparity"].to_list() == metric(data, estimate="yes")[".disparity"].to_list()
    with pytest.raises(tf.errors.ArgumentError, match=r"cochrans_q\(\) counts pairs, which are independent"):
        metric.cochrans_q(data, estimate="yes", cluster="template")


def test_paired_groups_on_every_engine(answers: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    metric = paired_groups(tf.selection_rate, tf.accuracy, by="name", pair="prompt")
    result, expected = as_polars(metric(engine(answers), "truth", "yes")), metric(answers, "truth", "yes")
    assert (
        result.select(".metric", ".group", ".other", ".pairs").rows()
        == expected.select(".metric", ".group", ".other", ".pairs").rows()
    )
    assert result[".lower"].to_list() == [exactly(number) for number in expected[".lower"]]


def test_missing_groups_may_be_a_group_and_labels_texts() -> None:
    data = pl.DataFrame({"pair": [1, 1, 2, 2], "name": ["a", None] * 2, "answer": ["yes", "no", "yes", "yes"]})
    result = paired_groups(tf.selection_rate, by="name", pair="pair", unknown="group")(
        data, estimate="answer", pos_label="yes"
    )
    assert result.select(".group", ".other", ".disparity").row(0) == ("a", "null", 0.5)
    assert math.isclose(result[".flip_rate"].item(), 0.5)


def test_bad_input_of_paired_groups(answers: pl.DataFrame) -> None:
    metric = paired_groups(tf.selection_rate, by="name", pair="prompt")

    def message(call: Callable[[], object]) -> str:
        with pytest.raises(tf.errors.TidyfairError) as error:
            call()
        return str(error.value)

    assert "'prompt' 'p0' has 2 rows of the group 'a'. Give one row for each pair and group" in message(
        lambda: metric(pl.concat([answers, answers]), estimate="yes")
    )
    assert "needs two groups or more of 'name', not 'a'" in message(
        lambda: metric(answers.filter(name="a"), estimate="yes")
    )
    differing = answers.with_columns(truth=pl.when(name="b").then(~pl.col("truth")).otherwise("truth"))
    assert "`truth`: rows with the same 'prompt' have different values" in message(
        lambda: metric(differing, "truth", "yes")
    )
    assert "`pair`: the column 'prompt' is null in 10 rows" in message(
        lambda: metric(answers.with_columns(pl.col("prompt").shift(10)), estimate="yes")
    )
    assert "`to` is one of the groups 'a', 'b', 'c', not 'd'" in message(
        lambda: paired_groups(tf.selection_rate, by="name", pair="prompt", to="d")(answers, estimate="yes")
    )
    assert "compares groups itself; give a metric such as selection_rate" in message(
        lambda: paired_groups(tf.demographic_parity("name"), by="name", pair="prompt")  # pyright: ignore[reportArgumentType] - refused
    )
    assert "does not accept `threshold`: make labels of scores" in message(
        lambda: metric(answers, probs="score", threshold=0.5)
    )
    assert "needs the column of predictions" in message(lambda: metric(answers, "truth"))
    assert "tests rates among rows that do not depend on the prediction" in message(
        lambda: paired_groups(tf.precision, by="name", pair="prompt").cochrans_q(answers, "truth", "yes")
    )
    assert "the data are grouped by 'name'" in message(lambda: metric(answers, estimate="yes", group_by="name"))


def test_groups_without_common_pairs() -> None:
    metric = paired_groups(tf.selection_rate, by="name", pair="pair")
    apart = pl.DataFrame({"pair": [1, 2], "name": ["a", "b"], "yes": [1, 0], "model": ["x", "x"]})
    with pytest.raises(tf.errors.ColumnError, match="no 'pair' has a prediction for both 'a' and 'b'"):
        metric(apart, estimate="yes")
    both = pl.concat([apart, pl.DataFrame({"pair": [1, 1], "name": ["a", "b"], "yes": [1, 0], "model": ["y", "y"]})])
    with pytest.warns(tf.errors.SelectionWarning, match="2 of 2 lack one of two groups"):
        result = metric(both, estimate="yes", group_by="model")
    shown = result.select("model", ".metric", ".estimator", ".disparity", ".pairs", ".unmatched", ".p_value").rows()
    assert shown == [
        ("x", "selection_rate", "binary", None, 0, 2, None),
        ("y", "selection_rate", "binary", 1, 1, 0, 0.5),
    ]


def test_metrics_that_pairs_have_not() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="compares labels or scores; call it for each"):
        paired_groups(tf.accuracy, tf.roc_auc, by="name", pair="pair")
    with pytest.raises(tf.errors.ArgumentError, match="cannot compare ndcg, in which rows depend on each other"):
        paired_groups(tf.rankings.ndcg("query"), by="name", pair="pair")


def test_predictions_that_metrics_cannot_read_are_named_as_in_the_data() -> None:
    pairs = pl.DataFrame(
        {"name": ["a", "b"] * 4, "prompt": [1, 1, 2, 2, 3, 3, 4, 4], "score": [0.1, 0.4] * 4, "word": ["x", "y"] * 4}
    )
    of_labels = tf.inference.paired_groups(tf.selection_rate, by="name", pair="prompt")
    with pytest.raises(tf.errors.ColumnError, match="`estimate`: the column 'score' holds fractional numbers"):
        of_labels(pairs, estimate="score")
    of_numbers = tf.inference.paired_groups(tf.mean_prediction, by="name", pair="prompt")
    with pytest.raises(tf.errors.ColumnError, match="`estimate`: the column 'word' is String; regression metrics read"):
        of_numbers(pairs, estimate="word")


@pytest.mark.parametrize(("groups", "to"), [([0.0, 1.0], 1), ([False, True], True), (["a", None], "null")])
def test_reference_is_named_by_its_value_or_its_text(groups: list[Any], to: object) -> None:
    data = pl.DataFrame({"pair": [1, 1, 2, 2], "name": groups * 2, "yes": [1, 0, 1, 1]})
    result = paired_groups(tf.selection_rate, by="name", pair="pair", to=to, unknown="group")(data, estimate="yes")
    every = paired_groups(tf.selection_rate, by="name", pair="pair", unknown="group")(data, estimate="yes")
    assert result.select(".other", ".disparity").rows() == every.select(".other", ".disparity").rows()
    assert result[".disparity"].to_list() == [0.5]


def test_missing_group_and_a_group_called_null_have_different_names() -> None:
    data = pl.DataFrame({"pair": [1, 1, 2, 2], "name": ["null", None] * 2, "yes": [1, 0, 1, 1]})
    result = paired_groups(tf.selection_rate, by="name", pair="pair", to="null", unknown="group")(data, estimate="yes")
    assert result.select(".group", ".other", ".disparity").row(0) == ("null", '"null"', -0.5)


def test_messages_on_predictions_name_the_users_columns(answers: pl.DataFrame) -> None:
    labels = answers.with_columns(answer=pl.when("yes").then(pl.lit("yes")).otherwise(pl.lit("no")))
    with pytest.raises(tf.errors.LabelError, match="Which label of 'answer' is the event"):
        paired_groups(tf.selection_rate, by="name", pair="prompt")(labels, estimate="answer")
    with pytest.raises(tf.errors.ColumnError, match="the column 'score' holds fractional numbers"):
        paired_groups(tf.selection_rate, by="name", pair="prompt")(answers, estimate="score")
    texts = answers.with_columns(target=pl.lit("a"))
    with pytest.raises(tf.errors.ColumnError, match="`truth`: the column 'target' is String"):
        paired_groups(tf.mae, by="name", pair="prompt")(texts, "target", "score")


def test_truth_and_prediction_may_be_one_column(answers: pl.DataFrame) -> None:
    same = answers.with_columns(yes=pl.col("truth"))
    result = paired_groups(tf.accuracy, by="name", pair="prompt")(same, "yes", "yes")
    assert result[".estimate"].to_list() == [1.0] * 3


def test_difference_that_is_undefined_has_no_test() -> None:
    data = pl.DataFrame({"pair": [1, 1, 2, 2], "name": ["a", "b"] * 2, "yes": [1, None, 1, 0]})
    with pytest.warns(tf.errors.SelectionWarning, match="1 of 2 lack one of two groups"):
        result = paired_groups(tf.selection_rate, by="name", pair="pair")(data, estimate="yes", na_rm=False)
    assert result.select(".disparity", ".p_value", ".p_adjusted").row(0) == (None, None, None)


@pytest.mark.parametrize("metric", [tf.survival.concordance, tf.prediction_intervals.coverage])
def test_predictions_of_several_columns_are_refused(metric: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=f"compares labels, scores or numbers, and {metric.name} reads"):
        paired_groups(metric, by="name", pair="pair")


def test_pairs_are_a_table_in_notebooks() -> None:
    shown = paired_groups(tf.selection_rate, by="<b>", pair="prompt")._repr_html_()  # pyright: ignore[reportPrivateUsage] - what a notebook asks for
    assert "by &lt;b&gt; in each prompt" in shown
    assert "selection_rate" in shown
