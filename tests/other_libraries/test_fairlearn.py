"""Every class-metric number that fairlearn computed on our data: reproduced, or listed with the reason why not.

Where we differ by design, `references/fairlearn_deviations.txt` lists the record with a rule of
`references/deviations.md`, by which fairlearn's number follows from our per-group values.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import pytest
from conftest import REFERENCES, check_every, deviations, records, reference_data, script

import tidyfair as tf

METRICS: dict[str, tf.types.Metric] = {
    "accuracy": tf.accuracy,
    "precision": tf.precision,
    "precision_nan": tf.precision,
    "recall": tf.recall,
    "recall_nan": tf.recall,
    "selection_rate": tf.selection_rate,
    "mean_prediction": tf.selection_rate,  # the mean of 0/1 predictions
    "true_positive_rate": tf.true_positive_rate,
    "true_negative_rate": tf.true_negative_rate,
    "false_positive_rate": tf.false_positive_rate,
    "false_negative_rate": tf.false_negative_rate,
    "count": tf.counts.instances,
    "accuracy_score": tf.accuracy,
    "zero_one_loss": tf.error_rate,
    "balanced_accuracy_score": tf.bal_accuracy,
    "f1_score": tf.f_meas,
    "precision_score": tf.precision,
    "recall_score": tf.recall,
    "sklearn.metrics.fbeta_score": tf.metric_tweak(tf.f_meas, "fbeta", beta=0.6),
}
PARITIES: dict[str, tuple[tf.types.Metric, ...]] = {
    "demographic_parity": (tf.selection_rate,),
    "equal_opportunity": (tf.sens,),
    "equalized_odds": (tf.sens, tf.fall_out),
}
OF_ROWS = [*METRICS.values(), tf.sens, tf.spec, tf.fall_out]
"""Metrics that are asked of rows themselves, to be compared as they are or by fairlearn's rules."""
page = script("coming_from/fairlearn.py")

OUT_OF_SCOPE = {
    "numeric": "reads scores or numbers, not labels",
    "interval": "a bootstrap interval",
    "argument": "an error about arguments of fairlearn's own",
}


def scope(record: dict[str, Any]) -> str | None:
    """Why a record is no number of a class metric."""
    function, params = record["function"], record["params"]
    if "case" in params:
        return "argument"
    if function.endswith("_ci") or function == "MetricFrame.__init__":
        return "interval"
    named = params.get("metric", function)
    if params.get("y_pred") == "score" or named.startswith(("log_loss", "mean_", "r2_", "roc_auc")):
        return None if named == "mean_prediction" and params["y_pred"] == "y_pred" else "numeric"
    return None


RECORDS = [record for record in records("fairlearn") if scope(record) is None]
DATA = {name: reference_data(name) for name in {record["data"] for record in RECORDS}}
DEVIATIONS = dict(
    line.split()[:2]
    for line in (REFERENCES / "fairlearn_deviations.txt").read_text().splitlines()
    if line[:9] == "fairlearn"
)


class Question:
    """A record in our words: metrics, how groups are compared, and on what."""

    def __init__(self, record: dict[str, Any]) -> None:
        params, function = record["params"], record["function"]
        self.function: str = function
        self.data: str = record["data"]
        self.by: list[str] = params["sensitive_features"]
        self.control: list[str] = params.get("control_features") or []
        self.across = {"worst_case": "worst", "mean": "mean", None: "worst"}[params.get("agg")]
        self.to = {"between_groups": None, "to_overall": "overall", None: None}[params.get("method")]
        stem, _, suffix = function.rpartition("_")
        if function.startswith("MetricFrame."):
            named, self.kind = params["metric"], function.partition(".")[2]
        elif function == "make_derived_metric":
            named, self.kind = params["metric"], params["transform"]
        elif suffix in {"min", "max"}:
            named, self.kind = stem.removesuffix("_group"), f"group_{suffix}"
        else:
            named, self.kind = stem, suffix
        self.metrics = PARITIES.get(named) or (METRICS[named],)
        # count takes no weight in fairlearn
        self.weights = None if named == "count" else params["sample_weight"]

    def key(self) -> tuple[Any, ...]:
        return (self.data, tuple(self.by), tuple(self.control), self.weights, self.metrics)

    def ours(self) -> dict[tuple[Any, ...], float | None]:
        """Our answer, by control features and, for `by_group`, groups."""
        if self.kind in {"overall", "by_group"}:
            keys = self.control + (self.by if self.kind == "by_group" else [])
            rows = call(self.metrics[0], self.data, tuple(keys), self.weights)
            return {tuple(row[key] for key in keys): row[".estimate"] for row in rows}
        rows = call(self.compared(), self.data, tuple(self.control), self.weights)
        return {tuple(row[key] for key in self.control): row[".estimate"] for row in rows}

    def compared(self) -> tf.types.GroupwiseMetric:
        """The metric by which the page compares groups."""
        row = page.ROWS["functions"].get(self.function) or page.ROWS["MetricFrame"][self.kind]
        given = {"metric": self.metrics[0], "by": self.by, "to": self.to, "across": self.across}
        return row(**{name: given[name] for name in inspect.signature(row).parameters})

    def fairlearns(self) -> dict[tuple[Any, ...], float]:
        """What fairlearn's rules make of our per-group values: 0 for an undefined rate, then NaN-blind aggregates."""
        answer: dict[tuple[Any, ...], float] = {}
        per_metric = [self.values(metric) for metric in self.metrics]
        for control in per_metric[0][1]:
            numbers: list[float] = []
            for groups, overalls in per_metric:
                mine = {group: value for (outer, group), value in groups.items() if outer == control}
                numbers.append(self.number(list(mine.values()), overalls[control]))
            # Python's max and min, in which a NaN survives only in the first place
            worst = max if self.kind == "difference" else min
            known = [number for number in numbers if not math.isnan(number)]
            answer[control] = sum(known) / len(known) if self.across == "mean" else worst(numbers)
        return answer

    def values(self, metric: tf.types.Metric) -> tuple[dict[tuple[Any, Any], float], dict[tuple[Any, ...], float]]:
        grouped = call(metric, self.data, (*self.control, *self.by), self.weights)
        overall = call(metric, self.data, tuple(self.control), self.weights)
        table = {
            (tuple(row[key] for key in self.control), tuple(row[key] for key in self.by)): self.filled(metric, row)
            for row in grouped
        }
        return table, {tuple(row[key] for key in self.control): self.filled(metric, row) for row in overall}

    def filled(self, metric: tf.types.Metric, row: dict[str, Any]) -> float:
        if row[".estimate"] is None and metric is tf.bal_accuracy:
            # scikit-learn averages the recalls of the classes that occur
            where = dict(
                zip((*self.control, *self.by), (row.get(key) for key in (*self.control, *self.by)), strict=True)
            )
            each = [
                only[".estimate"]
                for rate in (tf.sens, tf.spec)
                for only in call(rate, self.data, tuple(where), self.weights)
                if all(only[key] == value for key, value in where.items())
            ]
            return next(value for value in each if value is not None)
        return 0.0 if row[".estimate"] is None else row[".estimate"]

    def number(self, groups: list[float], overall: float) -> float:
        if self.kind in {"group_min", "group_max"}:
            return min(groups) if self.kind == "group_min" else max(groups)
        if self.kind == "difference":
            return max(groups) - min(groups) if self.to is None else max(abs(group - overall) for group in groups)
        if self.to is None:
            return min(groups) / max(groups) if max(groups) else math.nan
        ratios = [group / overall if overall else math.nan for group in groups]
        return min(ratio if ratio <= 1 or math.isnan(ratio) else 1 / ratio for ratio in ratios)


Call: TypeAlias = "tuple[str, tuple[str, ...], str | None]"
"""Data, the outer groups and the weights: everything of a call of ours but the metrics."""


@cache
def compared_in_calls() -> dict[Call, dict[tf.types.GroupwiseMetric, None]]:
    """Every comparison of groups that a record asks for, by call."""
    calls: dict[Call, dict[tf.types.GroupwiseMetric, None]] = {}
    for question in map(Question, RECORDS):
        if question.kind not in {"overall", "by_group"}:
            call = (question.data, tuple(question.control), question.weights)
            calls.setdefault(call, {})[question.compared()] = None
    return calls


@cache
def answers(call: Call) -> dict[Any, list[dict[str, Any]]]:
    """The rows of each metric, all computed in one call."""
    data, group_by, weights = call
    metrics = [*dict.fromkeys(OF_ROWS), *compared_in_calls().get(call, ())]
    named = [replace(metric, name=str(number)) for number, metric in enumerate(metrics)]
    result = tf.metric_set(*named)(
        DATA[data], "y_true", "y_pred", group_by=group_by, case_weights=weights, on_undefined="ignore"
    )
    rows: dict[Any, list[dict[str, Any]]] = {metric: [] for metric in metrics}
    for row in result.to_dicts():
        rows[metrics[int(row[".metric"])]].append(row)
    return rows


def call(metric: Any, data: str, group_by: tuple[str, ...], weights: str | None) -> list[dict[str, Any]]:
    return answers((data, group_by, weights))[metric]


def expected(record: dict[str, Any], question: Question) -> dict[tuple[Any, ...], float | None]:
    value = record["value"]
    if not isinstance(value, list):
        return {(): number(value)}
    keys = question.control + (question.by if question.kind == "by_group" else [])
    return {tuple(row[key] for key in keys): number(row["value"]) for row in value}


def number(value: Any) -> float | None:
    return None if value in (None, "NaN") else float(value)


def equal(one: dict[Any, float | None], other: dict[Any, float | None]) -> bool:
    def same(first: float | None, second: float | None) -> bool:
        if first is None or second is None or math.isnan(first) or math.isnan(second):
            return (first is None or math.isnan(first)) and (second is None or math.isnan(second))
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)

    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)


BY_FUNCTION: dict[str, dict[str, dict[str, Any]]] = {}
for each in RECORDS:
    BY_FUNCTION.setdefault(each["function"], {})[each["id"]] = each


@pytest.mark.parametrize("function", BY_FUNCTION)
def test_records_are_reproduced(function: str) -> None:
    check_every(BY_FUNCTION[function], check_record)


def check_record(record: dict[str, Any]) -> None:
    question = Question(record)
    ours, theirs = question.ours(), expected(record, question)
    reason = DEVIATIONS.get(record["id"])
    if reason is None:
        assert equal(ours, theirs), (ours, theirs)
        return
    assert not equal(ours, theirs), "listed as a deviation, but there is none"
    if question.kind in {"overall", "by_group"}:
        # the full product of levels: combinations without a row are NaN
        absent = theirs.keys() - ours.keys()
        assert bool(absent) == reason.startswith("empty_cell")
        assert all(theirs[key] is None for key in absent)
        differing = [key for key in ours if not equal({key: ours[key]}, {key: theirs[key]})]
        assert bool(differing) == reason.endswith("zero")
        assert all(ours[key] is None and theirs[key] == 0 for key in differing)
    else:
        assert equal(dict(question.fairlearns()), theirs), (ours, theirs, question.fairlearns())


def test_deviations_match_the_table() -> None:
    assert Counter(DEVIATIONS.values()) == deviations("fairlearn")
    assert DEVIATIONS.keys() <= {record["id"] for record in RECORDS}
    assert len(RECORDS) > 4_000


def test_out_of_scope_reasons_match_the_list() -> None:
    reasons = {reason for record in records("fairlearn") if (reason := scope(record))}
    assert reasons == OUT_OF_SCOPE.keys()
