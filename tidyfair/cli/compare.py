"""The command `compare`: two models that predict the same rows, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import selectors

from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.cli.audit import added_metrics, check_kind, confidence_of, directions_of, verdicts_part
from tidyfair.cli.documents import Document, Part, in_words
from tidyfair.cli.fail_if import Condition, conditions_of
from tidyfair.cli.headlines import changes_in_words, exit_code_of, verdicts_in_words
from tidyfair.cli.inputs import (
    groups_of,
    range_of,
    read_inputs,
    remarks_on_missing,
    remarks_on_threshold,
    set_defaults,
)
from tidyfair.cli.outputs import Outputs, as_json, records
from tidyfair.cli.terminal import note
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation.labels import read_labels
from tidyfair.inference.gates import FAIL, PASS, UNSURE
from tidyfair.inference.model_comparison import compare_models
from tidyfair.metric_sets import GroupwiseMetric, Metric
from tidyfair.metrics.classification import base_rate
from tidyfair.reports.findings import percent
from tidyfair.reports.tables import one_below_the_other
from tidyfair.tallies.files import write
from tidyfair.tallies.thresholds import Cut

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from tidyfair.cli.inputs import Inputs
    from tidyfair.inference.model_comparison import PairedModels

__all__: list[str] = []

_DRAWS = 1_000
"""Bootstrap draws for numbers, whose rows take long to draw; labels have the usual number."""
_LEVEL = 0.95


@dataclass(frozen=True)
class _Compared:
    """Metrics that are compared together: those of decisions, or those of scores."""

    metrics: list[Metric | GroupwiseMetric]
    paired: PairedModels


def compare(options: Namespace) -> int:
    """Two models that predict the same rows, side by side."""
    set_defaults(options)
    outputs = Outputs.of(options)
    inputs = read_inputs(options)
    one, other, threshold = options.one, options.other, options.threshold
    _check_models(one, other, inputs.truth)
    confidence = confidence_of(options)
    conditions = _conditions(options, inputs) if confidence is not None else []
    compared = _compared(options, inputs, conditions)
    result = pl.concat([part.paired.compared() for part in compared], how="vertical_relaxed")
    verdicts = None if confidence is None else _verdicts(compared, conditions, confidence)
    code = exit_code_of(verdicts)
    notes = remarks_on_missing(_count_missing(inputs, [inputs.truth, one, other]))
    if threshold is not None:
        notes += remarks_on_threshold(inputs.data, threshold, [one, other])
    document = _document(options, inputs, compared, result, verdicts)
    if "output" in outputs:
        write(result, outputs.files["output"])
    if "json" in outputs:
        content: dict[str, Any] = {"command": options.line, "data": {"name": inputs.name, "truth": inputs.truth}}
        content |= {"one": one, "other": other, "threshold": threshold, "conf_level": _level(inputs)}
        content["results"] = records(result)
        if verdicts is not None:
            content |= {"confidence": confidence, "verdicts": records(verdicts)}
        outputs.write_text("json", as_json(content | {"exit_code": code, "notes": notes}))
    if "markdown" in outputs:
        outputs.write_text("markdown", document.markdown(options.line, notes))
    if not outputs:
        document.print()
    elif verdicts is not None and not outputs.takes_stdout:
        Document(document.title, tuple(verdicts_in_words(verdicts)), document.parts[:1]).print()
    for text in notes:
        note(text)
    return code


def _check_models(one: str, other: str, truth: str | None) -> None:
    """Refuse columns that are not the predictions of two models."""
    for flag, column in (("one", one), ("other", other)):
        if column == truth:
            msg = f"`{flag}`: {column!r} is the truth; name the column of a model's predictions."
            raise ArgumentError(msg)
    if one == other:
        msg = f"`one` and `other` are both {one!r}: name the columns of two models."
        raise ArgumentError(msg)


# What is compared


def _conditions(options: Namespace, inputs: Inputs) -> list[Condition]:
    """The limits of changes that `fail_if` sets."""
    features: list[str] = options.by or []
    conditions = conditions_of(options.fail_if, inputs.schema, features, groups_of(options), of_changes=True)
    check_kind("fail_if", [condition.metric for condition in conditions], inputs.kind)
    for condition in conditions:
        if not _reads_predictions(condition.metric):
            msg = f"`fail_if`: {condition.shown} reads no predictions, so that models do not change it."
            raise ArgumentError(msg)
    return conditions


def _compared(options: Namespace, inputs: Inputs, conditions: Sequence[Condition]) -> list[_Compared]:
    """The comparisons of decisions, and of scores where metrics of them are asked for."""
    one, other, threshold = options.one, options.other, options.threshold
    by_key: dict[object, Metric | GroupwiseMetric] = {}
    for metric in (*_of_models(options, inputs), *(condition.metric for condition in conditions)):
        by_key[metric.name, metric.by.text if metric.by else None] = metric
    of_scores = [metric for metric in by_key.values() if metric.kind == "prob"]
    of_decisions = [metric for metric in by_key.values() if metric.kind != "prob"]
    if of_scores and threshold is None:
        msg = f"{of_scores[0].name} is about scores: `one` and `other` name scores where `threshold` is given."
        raise ArgumentError(msg)
    call = {name: inputs.counting[name] for name in inputs.counting if name != "threshold"}
    reading: dict[str, Any] = {name: value for name, value in inputs.reading.items() if name != "interval"}
    if inputs.kind == "numbers":
        reading.setdefault("times", _DRAWS)
    data, of_labels = inputs.data, reading
    if threshold is not None:
        data = _decided(inputs, threshold, {"one": one, "other": other})
        of_labels = {name: value for name, value in reading.items() if name not in {"labels", "estimator"}}
        of_labels["pos_label"] = True
    elif inputs.kind != "numbers":
        _check_labels(inputs, {"one": one, "other": other})
    models: dict[str, Any] = {"one": one, "other": other}
    parts: list[_Compared] = []
    for metrics, rows, read in ((of_decisions, data, of_labels), (of_scores, inputs.data, reading)):
        if metrics:
            comparison = compare_models(*metrics)
            paired = comparison.paired(rows, inputs.truth, **models, **call, **read, on_undefined="ignore")
            parts.append(_Compared(metrics, paired))
    return parts


def _of_models(options: Namespace, inputs: Inputs) -> list[Metric | GroupwiseMetric]:
    """The metrics that can differ between models, which are those that read predictions."""
    more = added_metrics(options, inputs)
    # an audit needs a feature; without one, only its metrics of all rows are used
    features = inputs.features or [options.one]
    results = UsualMetrics.of(features, inputs.kind, groups=groups_of(options), more=more).results
    of_models: list[Metric | GroupwiseMetric] = []
    for metric in results:
        if _reads_predictions(metric) and (inputs.features or isinstance(metric, Metric)):
            of_models.append(metric)
    return of_models


def _reads_predictions(metric: Metric | GroupwiseMetric) -> bool:
    _, formula = metric.formulas[0]
    return not {"estimate", "probs"}.isdisjoint(formula.reads)


def _has_truth(metric: Metric) -> bool:
    """Tell whether a metric compares predictions with the truth, so that more or less of it is better."""
    return "truth" in metric.definition.reads


def _decided(inputs: Inputs, threshold: float, scores: Mapping[str, str]) -> pl.LazyFrame:
    """The rows with decisions in place of scores, and the event as true or false in place of the truth."""
    columns = list(scores.values())
    for flag, column in scores.items():
        _check_scores(inputs, threshold, column, flag)
    decided = [pl.col(column) >= threshold for column in columns]
    if inputs.truth:
        columns.append(inputs.truth)
        tally = base_rate.tally(inputs.data, inputs.truth)
        pos_label = inputs.reading.get("pos_label")
        labels = read_labels(tally, labels=None, pos_label=pos_label, estimator="binary")
        decided.append(pl.col(inputs.truth) == labels.values[labels.event or 0])
    # NaN is missing, and neither above nor below
    without_nan = (selectors.by_name(columns) & selectors.float()).fill_nan(None)
    return inputs.data.with_columns(without_nan).with_columns(decided)


def _check_scores(inputs: Inputs, threshold: float, column: str, flag: str) -> None:
    """Refuse a column that a threshold cannot cut."""
    if not inputs.schema[column].is_numeric():
        msg = f"`{flag}`: the column {column!r} is {inputs.schema[column]}; `threshold` needs numbers."
        raise ColumnError(msg)
    cut = Cut("threshold", (threshold,))
    if cut.is_of_probabilities:
        low, high = range_of(inputs.data, column)
        cut.check_scores(low, high, column, flag)


def _check_labels(inputs: Inputs, predictions: Mapping[str, str]) -> None:
    """Refuse scores where labels are read."""
    for flag, column in predictions.items():
        value = pl.col(column)
        if inputs.schema[column].is_float() and inputs.data.select((value != value.round()).any()).collect().item():
            msg = f"`{flag}`: {column!r} holds numbers that are not whole: decisions are made of scores by `threshold`."
            raise ColumnError(msg)


def _count_missing(inputs: Inputs, columns: Sequence[str | None]) -> list[tuple[str, int]]:
    """The number of rows that are null or NaN, by column."""
    missing: list[pl.Expr] = []
    for column in columns:
        if column is not None:
            values = pl.col(column)
            if inputs.schema[column].is_float():
                values = values.fill_nan(None)
            missing.append(values.null_count())
    return list(inputs.data.select(missing).collect().row(0, named=True).items())


# Verdicts


def _verdicts(compared: Sequence[_Compared], conditions: Sequence[Condition], confidence: float) -> pl.DataFrame:
    """The verdict on each change that has a limit: passes one by one, failures after Holm."""
    limits = {condition.key: condition for condition in conditions}

    def judged(error: float) -> pl.DataFrame:
        """The changes with a limit, with one-sided bounds of that error rate."""
        parts = [part.paired.compared(1 - 2 * error) for part in compared]
        return _with_limits(pl.concat(parts, how="vertical_relaxed"), limits)

    left_out = _with_limits(pl.concat([part.paired.left_out() for part in compared]), limits)
    changes = judged(1 - confidence).with_columns(left_out[".groups_left_out"])
    low = changes["\0side"] == "<"
    # a bound at the limit itself is not beyond it
    holds = ((changes[".lower"] >= changes[".limit"]) & low) | ((changes[".upper"] <= changes[".limit"]) & ~low)
    passed = holds.fill_null(value=False) & (changes[".groups_left_out"].list.len() == 0)
    failed = pl.Series([False] * len(changes), dtype=pl.Boolean)
    remaining = changes[".change"].is_not_null()
    while remaining.any():
        # the next one is judged by as many as remain
        stricter = judged((1 - confidence) / int(remaining.sum()))
        beyond = ((stricter[".upper"] < stricter[".limit"]) & low) | ((stricter[".lower"] > stricter[".limit"]) & ~low)
        beyond = beyond.fill_null(value=False) & remaining
        if not beyond.any():
            break
        failed, remaining = failed | beyond, remaining & ~beyond
    verdict = pl.when(failed).then(pl.lit(FAIL)).when(passed).then(pl.lit(PASS)).otherwise(pl.lit(UNSURE))
    return changes.with_columns(verdict.alias(".verdict")).drop("\0side")


def _with_limits(changes: pl.DataFrame, limits: Mapping[tuple[str, str | None], Condition]) -> pl.DataFrame:
    """The changes that have a limit, and the side on which they fail."""
    keys = changes.select(".metric", ".by").rows()
    judged = changes.filter(pl.Series([key in limits for key in keys], dtype=pl.Boolean))
    conditions = [limits[key] for key in judged.select(".metric", ".by").rows()]
    return judged.with_columns(
        pl.Series(".limit", [condition.limit for condition in conditions], dtype=pl.Float64),
        pl.Series("\0side", [condition.side for condition in conditions], dtype=pl.String),
    )


# Documents


def _level(inputs: Inputs) -> float:
    return inputs.reading.get("conf_level", _LEVEL)


def _document(
    options: Namespace,
    inputs: Inputs,
    compared: Sequence[_Compared],
    result: pl.DataFrame,
    verdicts: pl.DataFrame | None,
) -> Document:
    """The comparison as a document: headline, verdicts, and both models with their change."""
    one, other, threshold = options.one, options.other, options.threshold
    at = "" if threshold is None else f" at {threshold:g}"
    metrics = [metric for part in compared for metric in part.metrics]
    judged = directions_of(metric for metric in metrics if isinstance(metric, GroupwiseMetric) or _has_truth(metric))
    headline = [*verdicts_in_words(verdicts), *changes_in_words(result, judged, other)]
    parts: list[Part] = []
    if verdicts is not None:
        confidence = options.confidence or _LEVEL
        parts.append(verdicts_part(verdicts, directions_of(metrics), confidence, change="change in "))
    # files have the p-values of McNemar's test too
    shown = in_words(one_below_the_other(result.drop(".p_value"))).rename({".one": one, ".other": other}, strict=False)
    remark = f"change: {other} minus {one}, with its {percent(_level(inputs))} confidence interval."
    parts.append(Part("Both models", shown, (), "by" if "by" in shown.columns else "metric", (remark,)))
    return Document(f"{one} and {other}{at}, compared on {inputs.name}", tuple(headline), tuple(parts))
