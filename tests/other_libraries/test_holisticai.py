"""Every number that holisticai computed on our data: reproduced, or listed with the reason why not."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script

import tidyfair as tf
from tidyfair.specs.formulas import Number, Rate

page = script("coming_from/holisticai.py")

CASES = {
    "group_a empty": "NaN there; here a value that never occurs is an error",
    "non-binary y_pred": "an error there and here",
    "probabilities as y_score (argument name says y_score)": "an error there and here",
    "group_a = first three rows with y_true = y_pred = 0 (1x1 confusion matrix)": "an error there; here it has a value",
    "shape mismatch": "out of scope: columns of a frame are of one length",
    "metric_type unknown": "out of scope: a set is made of metrics, not chosen by a word",
}
"""Calls that were made to fail, and what there is to them here."""


def of(column: str, side: str, metric: str | None = None) -> pl.Expr:
    chosen = pl.col(".group") == side
    return pl.col(column).filter(chosen if metric is None else chosen & (pl.col(".metric") == metric)).first()


A, B = of(".estimate", "unprivileged"), of(".estimate", "privileged")
N_A, N_B = of(".n", "unprivileged"), of(".n", "privileged")
POOLED = (A * N_A + B * N_B) / (N_A + N_B)


def pooled_deviation(variance_a: pl.Expr, variance_b: pl.Expr) -> pl.Expr:
    return (((N_A - 1) * variance_a + (N_B - 1) * variance_b) / (N_A + N_B - 2)).sqrt()


COHEN_D = (A - B) / pooled_deviation(A * (1 - A), B * (1 - B))
Z_OF_DIFFERENCE = (A - B) / (POOLED * (1 - POOLED) * (1 / N_A + 1 / N_B)).sqrt()
Z_OF_RATIO = (A / B).log() / ((1 - POOLED) / POOLED * (1 / N_A + 1 / N_B)).sqrt()
Z_SCORE = (of(".estimate", "unprivileged", "mean_prediction") - of(".estimate", "privileged", "mean_prediction")) / (
    pooled_deviation(of(".estimate", "unprivileged", "variance"), of(".estimate", "privileged", "variance"))
)
VARIANCE = tf.new_numeric_metric(lambda estimate_variation, instances: (estimate_variation, instances), "variance")
CORRELATION = tf.new_numeric_metric(
    lambda covariation, truth_variation, estimate_variation: (
        covariation / np.sqrt(truth_variation) / np.sqrt(estimate_variation)
    ),
    "correlation", "maximize", (-1, 1),
)  # fmt: skip


def share_of_label(selected: Number, overall_selected: Number) -> Rate:
    return selected, overall_selected


def named(metric: Any, aggregate: Any) -> tf.types.GroupwiseFactory:
    return tf.new_groupwise_metric(metric, "it", aggregate)


COMPARED = {
    **page.ROWS["Labels"],
    "cohen_d": named(tf.selection_rate, COHEN_D),
    "z_test_diff": named(tf.selection_rate, Z_OF_DIFFERENCE),
    "z_test_ratio": named(tf.selection_rate, Z_OF_RATIO),
}
RATES = {
    "equal_opportunity_diff": ("sens",),
    "false_negative_rate_diff": ("miss_rate",),
    "average_odds_diff": ("sens", "fall_out"),
}
"""Rates whose zeros holisticai compares, as the mean of their differences."""
INDIVIDUALS = page.ROWS["Individuals"]
INDIVIDUAL = {
    "theil_index": INDIVIDUALS["theil_index"](),
    "coefficient_of_variation": INDIVIDUALS["coefficient_of_variation"](),
    **{
        f"generalized_entropy_index {alpha}": INDIVIDUALS["generalized_entropy_index"](alpha)
        for alpha in (0, 0.5, 1, 2)
    },
    **{f"consistency_score {k}": INDIVIDUALS["consistency_score"](["x1", "x2", "x3"], k) for k in (3, 5)},
}
NUMERIC = {
    **page.ROWS["Numbers"],
    "avg_score_ratio": named(tf.mean_prediction, A / B),
    "zscore_diff": named(tf.metric_set(tf.mean_prediction, VARIANCE), Z_SCORE),
    "correlation_diff": named(CORRELATION, tf.difference()),
}
OF_LABELS = page.ROWS["Matrices of several labels"]
MATRICES = {
    "frequency_matrix None": tf.counts.predicted_positives,
    "frequency_matrix group": OF_LABELS["frequency_matrix"](),
    "frequency_matrix class": tf.new_class_metric(share_of_label, "share_of_label"),
    **{name: OF_LABELS[name]() for name in ("accuracy_matrix", "precision_matrix", "recall_matrix")},
}
BATCH = {
    "Statistical Parity": "statistical_parity",
    "Disparate Impact": "disparate_impact",
    "Four Fifths Rule": "four_fifths",
    "Cohen D": "cohen_d",
    "2SD Rule": "z_test_diff",
    "Equality of Opportunity Difference": "equal_opportunity_diff",
    "False Positive Rate Difference": "false_positive_rate_diff",
    "Average Odds Difference": "average_odds_diff",
    "Accuracy Difference": "accuracy_diff",
    "ABROCA": "abroca",
    "Theil Index": "theil_index",
    "Generalized Entropy Index": "generalized_entropy_index 2",
    "Coefficient of Variation": "coefficient_of_variation",
    "Consistency Score": "consistency_score 5",
    **{f"Disparate Impact Q{round(100 * q)}": f"disparate_impact_regression {q}" for q in (0.9, 0.8, 0.5)},
    "Statistical Parity Q50": "statistical_parity_regression 0.8",  # it is at 0.8, whatever its name
    "No Disparate Impact Level": "no_disparate_impact_level",
    "Average Score Difference": "avg_score_diff 0",
    "Average Score Ratio": "avg_score_ratio 0",
    "Z Score Difference": "zscore_diff 0",
    "Max Statistical Parity": "max_statistical_parity",
    "Statistical Parity AUC": "statistical_parity_auc",
    **{f"{name} Ratio": f"{name.lower()}_ratio 0" for name in ("RMSE", "MAE")},
    **{f"{name} Ratio Q80": f"{name.lower()}_ratio 0.8" for name in ("RMSE", "MAE")},
    "Correlation Difference": "correlation_diff 0",
    **{
        f"{word} Multiclass {title}": f"multiclass_{name} {word.lower()}"
        for word in ("Max", "Mean")
        for title, name in {
            "Statistical Parity": "statistical_parity", "Equality of Opportunity": "equality_of_opp",
            "Average Odds": "average_odds", "True Positive Difference": "true_rates",
        }.items()
    },
}  # fmt: skip

SIDES = {
    "a: sex==0, b: sex==1": tf.privileged(sex=1, unprivileged={"sex": 0}),
    "a: race==rare, b: race==alpha": tf.privileged(race="alpha", unprivileged={"race": "rare"}),
    "a: race==gamma, b: race!=gamma": tf.privileged(race=["alpha", "beta", "rare"], unprivileged={"race": "gamma"}),
}
CLASSES = [0, 1, 2, 3]
BY_CLASS: dict[str, Any] = {"estimator": "one_vs_rest", "labels": CLASSES, "on_undefined": "ignore"}
RECORDS = {
    f"{record['id']}-{record['function']}": record for record in records("holisticai") if "case" not in record["params"]
}
DATA = {name: reference_data(name) for name in {record["data"] for record in RECORDS.values()}}


class Field(NamedTuple):
    """One number: ours, and that of holisticai's rule with its name where they differ."""

    ours: Any
    theirs: Any
    rule: str | None = None


def plain(value: Any) -> Field:
    return Field(value, value)


@cache
def binary(data: str, groups: str) -> dict[str, Field]:
    """All comparisons of labels, with those that take what is undefined for 0."""
    sides = SIDES[groups]
    metrics = tf.metric_set(*(replace(factory(sides), name=name) for name, factory in COMPARED.items()))
    columns: dict[str, Any] = {"truth": "y_true", "estimate": "y_pred", "probs": "score", "on_undefined": "ignore"}
    result = dict(metrics(DATA[data], **columns).select(".metric", ".estimate").iter_rows())
    rates = named(tf.metric_set(tf.sens, tf.miss_rate, tf.fall_out), tf.difference())(sides)
    each = rates.by_group(DATA[data], "y_true", "y_pred", on_undefined="ignore")
    filled = {(metric, group): value or 0.0 for metric, group, value in each[[".metric", ".group", ".estimate"]].rows()}
    fields = {name: plain(value) for name, value in result.items()}
    for name in (name for name in RATES if result[name] is None):
        gaps = [filled[rate, "unprivileged"] - filled[rate, "privileged"] for rate in RATES[name]]
        fields[name] = Field(None, sum(gaps) / len(gaps), "undefined_is_zero")
    return fields


@cache
def individual(data: str) -> dict[str, Field]:
    metrics = tf.metric_set(*(replace(metric, name=name) for name, metric in INDIVIDUAL.items()))
    result = metrics(DATA[data], "y_true", "y_pred")
    fields = {name: plain(value) for name, value in zip(INDIVIDUAL, result[".estimate"], strict=True)}
    if variation := fields["coefficient_of_variation"].ours:
        fields["coefficient_of_variation"] = Field(variation, math.sqrt(2) * variation, "root_of_two")
    return fields


@cache
def numeric(data: str, groups: str, estimate: str, q: float) -> dict[str, Field]:
    """Numbers compared among the rows of the largest predictions."""
    truth = {"score": "y_true", "pred_reg": "y_reg"}[estimate]
    top = pl.col(estimate) >= float(np.quantile(DATA[data][estimate], q))
    metrics = tf.metric_set(*(replace(factory(SIDES[groups]), name=name) for name, factory in NUMERIC.items()))
    result = metrics(DATA[data], truth, estimate, group_by=top.alias("top"), on_undefined="ignore").filter("top")
    return {name: plain(value) for name, value in result.select(".metric", ".estimate").iter_rows()}


@cache
def curves(data: str, groups: str, scores: str) -> dict[str, Field]:
    """What is read from selection rates at many thresholds, which are quantiles of all scores."""
    shares = [*np.linspace(1, 0, 150), *np.linspace(1, 0, 100), 0.5, 0.8, 0.9]
    thresholds = [float(item) for item in np.quantile(DATA[data][scores], shares)]
    metrics = tf.metric_set(tf.statistical_parity_difference(SIDES[groups]), tf.disparate_impact(SIDES[groups]))
    result = metrics(DATA[data], probs=scores, threshold=sorted(set(thresholds)), on_undefined="ignore")
    actual = {
        (metric, threshold): value
        for metric, threshold, value in result.select(".metric", ".threshold", ".estimate").iter_rows()
    }
    gaps = [actual["statistical_parity_difference", item] for item in thresholds]
    ratios = [actual["disparate_impact", item] for item in thresholds]
    levels = [item for item in range(150, 250) if 0.8 < (ratios[item] or 0) < 1.2]
    fields = {
        "max_statistical_parity": max(map(abs, gaps[:150])),
        "statistical_parity_auc": sum(map(abs, gaps[:150])) / 150,
        "no_disparate_impact_level": thresholds[levels[0] if levels else 249],
    }
    for q, gap, ratio in zip((0.5, 0.8, 0.9), gaps[250:], ratios[250:], strict=True):
        fields |= {f"statistical_parity_regression {q}": gap, f"disparate_impact_regression {q}": ratio}
    return {name: plain(value) for name, value in fields.items()}


def success(data: str, groups: str, **cut: Any) -> dict[str, Field]:
    result = tf.demographic_parity(SIDES[groups]).by_group(DATA[data], **cut)
    rates = dict(result.select(".group", ".estimate").iter_rows())
    return {"sr_a": plain(rates["unprivileged"]), "sr_b": plain(rates["privileged"])}


def jain(data: str, truth: str, estimate: str) -> Field:
    """1 / (1 + variation²), of which half is the generalized entropy of errors."""
    entropy = tf.metric_tweak(tf.inequality.generalized_entropy_index, "entropy", benefit="amount", alpha=2)
    errors = DATA[data].with_columns((pl.col(estimate) - truth).abs().cast(pl.Float64).alias("error"))
    value = entropy(errors, truth, "error", on_undefined="ignore")[".estimate"].item()
    return Field(None, 1.0, "zero_over_zero") if value is None else plain(1 / (1 + 2 * value))


@cache
def matrix(metric: tf.types.Metric, data: str, by: str) -> dict[str, dict[str, float | None]]:
    """Values of each group and class."""
    rows = named(metric, tf.difference())(by).by_group(DATA[data], "y_multi", "pred_multi", **BY_CLASS)
    table: dict[str, dict[str, float | None]] = {}
    for group, level, value in rows.select(".group", ".level", ".estimate").iter_rows():
        table.setdefault(group, {})[level] = value
    return table


def confusion(data: str, normalize: str | None) -> dict[str, dict[str, float | None]]:
    """Rows are predicted, columns true."""
    if normalize == "pred":
        return matrix(tf.base_rate, data, "pred_multi")
    if normalize == "true":
        shares = matrix(tf.selection_rate, data, "y_multi")
        return {predicted: {true: shares[true][predicted] for true in shares} for predicted in shares}
    table: dict[str, dict[str, float | None]] = {}
    for true, predicted, n in tf.conf_mat(DATA[data], "y_multi", "pred_multi").rows():
        table.setdefault(str(predicted), {})[str(true)] = n
    return table


def tensor(data: str, by: str) -> list[list[list[float]]]:
    cells = tf.conf_mat(DATA[data].sort(by), "y_multi", "pred_multi", group_by=by, labels=CLASSES)
    counts = np.array(cells[".n"]).reshape(-1, len(CLASSES), len(CLASSES))
    return counts.transpose(0, 2, 1).tolist()


@cache
def multiclass(data: str, by: str) -> dict[str, Field]:
    """Distances of groups from each other, the mean or the largest of all pairs."""
    pairs = [
        tf.privileged({by: one}, unprivileged={by: other})
        for one, other in combinations(DATA[data][by].unique().sort().to_list(), 2)
    ]
    mean_gap = tf.difference(signed=False, across="mean")

    def ours(metric: tf.types.Metric, **options: Any) -> list[float]:
        metrics = tf.metric_set(*(named(metric, mean_gap)(pair) for pair in pairs))
        result = metrics(frame, "y_multi", "pred_multi", **BY_CLASS, **options)
        return result.group_by(".by", maintain_order=True).agg(pl.col(".estimate").mean())[".estimate"].to_list()

    frame = DATA[data].with_columns((1 / pl.len().over(by, "y_multi")).alias("each_class_alike"))
    half = len(CLASSES) / 2  # a distance of distributions is half the sum of differences
    distances = {
        "statistical_parity": [half * gap for gap in ours(tf.selection_rate)],
        "equality_of_opp": [half * gap for gap in ours(tf.selection_rate, group_by="y_multi")],
        "average_odds": [half * gap for gap in ours(tf.selection_rate, case_weights="each_class_alike")],
        "true_rates": ours(tf.sens),
    }
    ruled = filled_distances(data, by)
    fields: dict[str, Field] = {}
    for name, item in distances.items():
        for word, single in {"mean": np.mean, "max": np.max}.items():
            one, other = float(single(item)), float(single(ruled[name]))
            same_number = math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
            fields[f"multiclass_{name} {word}"] = Field(one, other, None if same_number else "empty_class")
    return fields


def filled_distances(data: str, by: str) -> dict[str, list[float]]:
    """Those of our shares of predictions, where a class without rows is predicted as all classes alike."""
    rows = named(tf.selection_rate, tf.difference())(by).by_group(
        DATA[data], "y_multi", "pred_multi", group_by="y_multi", **BY_CLASS
    )
    groups = sorted(matrix(tf.selection_rate, data, by))
    shares = np.full((len(groups), len(CLASSES), len(CLASSES)), 1 / len(CLASSES))
    for true, group, level, value in rows.select("y_multi", ".group", ".level", ".estimate").iter_rows():
        shares[groups.index(group), true, int(level)] = value
    rates = np.array([list(row.values()) for _, row in sorted(matrix(tf.selection_rate, data, by).items())])
    pairs = list(combinations(range(len(groups)), 2))
    gaps = [shares[one] - shares[other] for one, other in pairs]
    return {
        "statistical_parity": [np.abs(rates[one] - rates[other]).sum() / 2 for one, other in pairs],
        "equality_of_opp": [np.abs(gap).sum() / 2 / len(CLASSES) for gap in gaps],
        "average_odds": [np.abs(gap.mean(0)).sum() / 2 for gap in gaps],
        "true_rates": [np.abs(np.diag(gap)).mean() for gap in gaps],
    }


def number(name: str, record: dict[str, Any]) -> Field:
    """The answer to one of holisticai's functions, called with one of its arguments by a record or a batch."""
    data, params = record["data"], record["params"]
    groups, by = params.get("groups"), params.get("p_attr")
    scores = params.get("y_pred")
    function, _, argument = name.partition(" ")
    if function in COMPARED:
        return binary(data, groups)[name]
    if function.startswith("multiclass_"):
        return multiclass(data, by)[name]
    if name in INDIVIDUAL:
        return individual(data)[name]
    if function in NUMERIC:
        return numeric(data, groups, scores, float(argument))[function]
    if function == "jain_index":
        return jain(data, params["y_true"], scores)
    return curves(data, groups, scores)[name]


@cache
def answer(name: str) -> dict[str, Field]:
    record = RECORDS[name]
    data, function, params = record["data"], record["function"], record["params"]
    if function.endswith("_bias_metrics"):
        return {title: number(BATCH[title], record) for title in record["value"]}
    if function == "success_rate":
        return success(data, params["groups"], estimate="y_pred")
    if function == "success_rate_regression":
        scores, at = DATA[data][params["y_pred"]], params["threshold"]
        threshold = {"mean": scores.mean(), "median": scores.median()}.get(at, at)
        selected = (pl.col(params["y_pred"]) >= threshold).alias("selected")
        return success(data, params["groups"], estimate=selected)
    if function.endswith(("_matrix", "_tensor")):
        return {index: plain(value) for index, value in flat(table(record)).items()}
    arguments = [params[name] for name in ("q", "alpha", "aggregation_fun", "n_neighbors") if name in params]
    if arguments and isinstance(arguments[0], list):
        return {str(index): number(f"{function} {q}", record) for index, q in enumerate(arguments[0])}
    return {"": number(" ".join(map(str, [function, *arguments])), record)}


def table(record: dict[str, Any]) -> Any:
    data, function, params = record["data"], record["function"], record["params"]
    if function == "confusion_matrix":
        return confusion(data, params["normalize"])
    if function == "confusion_tensor":
        return tensor(data, params["p_attr"])
    asked = f"{function} {params['normalize']}" if "normalize" in params else function
    return matrix(MATRICES[asked], data, params["p_attr"])


def flat(value: Any) -> dict[str, Any]:
    """Numbers of a nested answer by their place in it."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        value = {str(row["index_0"]): {name: row[name] for name in row if name != "index_0"} for row in value}
    if isinstance(value, list):
        value = {str(index): item for index, item in enumerate(value)}
    if not isinstance(value, dict):
        return {"": value}
    inner = {name: flat(item) for name, item in value.items()}
    return {" ".join(filter(None, (name, index))): item for name in inner for index, item in inner[name].items()}


def same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs == "NaN":
        return ours is None and theirs == "NaN"
    return math.isclose(ours, float(theirs), rel_tol=1e-9, abs_tol=1e-9)


NAMES: dict[str, dict[str, str]] = {}
for each, its_record in RECORDS.items():
    NAMES.setdefault(its_record["function"], {})[each] = each


@pytest.mark.parametrize("function", NAMES)
def test_records_are_reproduced(function: str) -> None:
    check_every(NAMES[function], check_record)


def check_record(name: str) -> None:
    result, expected = answer(name), flat(RECORDS[name]["value"])
    assert result.keys() == expected.keys()
    for index, theirs in expected.items():
        field = result[index]
        assert same(field.theirs, theirs), (index, field, theirs)
        assert same(field.ours, theirs) == (field.rule is None), (index, field, theirs)


def test_deviations_match_the_table() -> None:
    rules = Counter(field.rule for name in RECORDS for field in answer(name).values() if field.rule)
    assert rules == deviations("holisticai")


def test_every_record_is_compared_or_listed() -> None:
    every = records("holisticai")
    cases = [record["params"]["case"] for record in every if "case" in record["params"]]
    assert set(cases) == CASES.keys()
    assert len(RECORDS) + len(cases) == len(every) == 1_108


def test_disparity_with_an_empty_side_is_null() -> None:
    with pytest.warns(tf.errors.UndefinedWarning, match="'sex' is never 2"):
        result = tf.statistical_parity_difference(tf.privileged(sex=0, unprivileged={"sex": 2}))(
            DATA["a400_weighted"], estimate="y_pred"
        )
    assert result[".estimate"].to_list() == [None]


def test_scores_given_as_estimate_raise() -> None:
    for metric in (tf.statistical_parity_difference, tf.accuracy.difference):
        with pytest.raises(tf.errors.ColumnError):
            metric("sex")(DATA["a400_weighted"], "y_true", "score")


def test_side_with_one_label_has_the_rates_its_rows_define() -> None:
    negative = (pl.col("y_true") == 0) & (pl.col("y_pred") == 0)
    data = DATA["a400_weighted"].with_columns((negative & (negative.cum_sum() <= 3)).alias("first"))
    sides = tf.privileged(first=False)
    metrics = tf.metric_set(tf.false_positive_rate.difference(sides), tf.equal_opportunity(sides))
    result = metrics(data, "y_true", "y_pred", on_undefined="ignore")
    rate = tf.fall_out(data.filter(~pl.col("first")), "y_true", "y_pred")[".estimate"].item()
    assert result[".estimate"].to_list() == [pytest.approx(-rate, rel=1e-9), None]
