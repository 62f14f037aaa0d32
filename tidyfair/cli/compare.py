"""The command `compare`: two models that predict the same rows, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl
from polars import selectors

from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.cli.audit import added_metrics, check_kind, confidence_of, directions_of, notes_on_left_out, verdicts_part
from tidyfair.cli.documents import Document, Part, in_words
from tidyfair.cli.fail_if import CHANGE, Condition, conditions_of
from tidyfair.cli.headlines import changes_in_words, exit_code_of, verdicts_in_words
from tidyfair.cli.inputs import (
    policy_of,
    range_of,
    read_inputs,
    remarks_on_missing,
    remarks_on_threshold,
    set_defaults,
)
from tidyfair.cli.outputs import Outputs, as_json, records
from tidyfair.cli.terminal import note
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.evaluation.labels import read_labels
from tidyfair.inference.gates import judged_changes
from tidyfair.inference.model_comparison import compare_models
from tidyfair.metric_sets import GroupwiseMetric, Metric
from tidyfair.metrics.classification import base_rate
from tidyfair.reports.findings import percent, quoted_group
from tidyfair.reports.tables import one_below_the_other
from tidyfair.specs.groups import Privileged
from tidyfair.tallies.files import write
from tidyfair.tallies.thresholds import Cut

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from tidyfair.cli.inputs import Inputs
    from tidyfair.inference.model_comparison import PairedModels
    from tidyfair.inference.verdicts import Outside
    from tidyfair.specs.groups import Policy

_DRAWS = 1_000
"""Bootstrap draws for numbers, whose rows take long to draw; labels have the usual number."""
_LEVEL = 0.95
_MOST_GROUPS = 30
"""Groups beyond which the changes within the groups of a feature are not shown."""
_ROWS = "\0rows"
_CHANGE = (".metric", ".by", ".lower", ".upper")
"""The columns of changes that the summary reads."""


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
    asked = _Asked.of(options, inputs, conditions)
    compared = _compared(asked, inputs)
    result = pl.concat([part.paired.compared() for part in compared], how="vertical_relaxed")
    _check_within_reach(conditions, result, one)
    of_groups = _changes_of_groups(options, inputs, asked)
    verdicts = None if confidence is None else _verdicts(compared, conditions, confidence, options.outside or "hold")
    code = exit_code_of(verdicts)
    notes = remarks_on_missing(_count_missing(inputs, [inputs.truth, one, other]))
    if threshold is not None:
        notes += remarks_on_threshold(inputs.data, threshold, [one, other])
    document = _document(options, inputs, compared, result, of_groups, verdicts)
    if "output" in outputs:
        write(result, outputs.files["output"])
    if "json" in outputs:
        content: dict[str, Any] = {"command": options.line, "data": {"name": inputs.name, "truth": inputs.truth}}
        content |= {"one": one, "other": other, "threshold": threshold, "conf_level": _level(inputs)}
        content["results"] = records(result)
        if of_groups is not None:
            content["groups"] = records(of_groups)
        if verdicts is not None:
            content |= {"confidence": confidence, "verdicts": records(verdicts)}
        outputs.write_text("json", as_json(content | {"exit_code": code, "notes": notes}))
    if "markdown" in outputs:
        outputs.write_text("markdown", document.markdown(options.line, notes))
    if not outputs:
        document.print()
    elif verdicts is not None and not outputs.takes_stdout:
        replace(document, headline=document.headline[:1], parts=document.parts[:1]).print()
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
    conditions = conditions_of(options.fail_if, inputs.schema, features, policy_of(options), of_changes=True)
    check_kind("fail_if", [condition.metric for condition in conditions], inputs.kind)
    for condition in conditions:
        if not _reads_predictions(condition.metric):
            msg = f"`fail_if`: {condition.shown} reads no predictions, so that models do not change it."
            raise ArgumentError(msg)
    return conditions


def _compared(asked: _Asked, inputs: Inputs) -> list[_Compared]:
    """The comparisons of decisions, and of scores where metrics of them are asked for."""
    parts: list[_Compared] = []
    for metrics, rows, reading in asked.by_kind:
        if metrics:
            paired = compare_models(*metrics).paired(rows, inputs.truth, **asked.call, **reading)
            parts.append(_Compared(metrics, paired))
    return parts


@dataclass(frozen=True)
class _Asked:
    """Metrics of decisions and of scores, and the rows and options by which each are compared."""

    of_decisions: list[Metric | GroupwiseMetric]
    of_scores: list[Metric | GroupwiseMetric]
    decided: pl.LazyFrame
    """The rows with decisions in place of scores."""
    rows: pl.LazyFrame
    reading_decisions: dict[str, Any]
    reading: dict[str, Any]
    call: dict[str, Any]

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs, conditions: Sequence[Condition]) -> _Asked:
        """The checked options."""
        models, threshold = {"one": options.one, "other": options.other}, options.threshold
        of_decisions, of_scores = _metrics_by_kind(options, inputs, conditions)
        reading: dict[str, Any] = {name: value for name, value in inputs.reading.items() if name != "interval"}
        decided, reading_decisions = inputs.data, reading
        if inputs.kind == "numbers":
            reading.setdefault("times", _DRAWS)
        elif threshold is None:
            _check_labels(inputs, models)
        if threshold is not None:
            decided = _decided(inputs, threshold, models)
            kept = {name: value for name, value in reading.items() if name not in {"labels", "estimator"}}
            reading_decisions = {**kept, "pos_label": True}
        counting = {name: value for name, value in inputs.counting.items() if name != "threshold"}
        call = {**models, **counting, "on_undefined": "ignore"}
        return cls(of_decisions, of_scores, decided, inputs.data, reading_decisions, reading, call)

    @property
    def by_kind(self) -> list[tuple[list[Metric | GroupwiseMetric], pl.LazyFrame, dict[str, Any]]]:
        """The metrics of each kind, with the rows and the options of reading them."""
        return [
            (self.of_decisions, self.decided, self.reading_decisions),
            (self.of_scores, self.rows, self.reading),
        ]

    def within(self, feature: Sequence[str], compared: pl.DataFrame) -> _Asked:
        """The metrics of the groups of a feature that are compared, instead of all rows and disparities."""
        groups = compared.select(feature).lazy()
        return replace(
            self,
            of_decisions=[metric for metric in self.of_decisions if isinstance(metric, Metric)],
            of_scores=[metric for metric in self.of_scores if isinstance(metric, Metric)],
            decided=self.decided.join(groups, on=feature, how="semi", nulls_equal=True),
            rows=self.rows.join(groups, on=feature, how="semi", nulls_equal=True),
            call={**self.call, "group_by": list(feature)},
        )


def _metrics_by_kind(
    options: Namespace, inputs: Inputs, conditions: Sequence[Condition]
) -> tuple[list[Metric | GroupwiseMetric], list[Metric | GroupwiseMetric]]:
    """The metrics of decisions, and those of scores, which need a threshold for the others."""
    by_key: dict[object, Metric | GroupwiseMetric] = {}
    for metric in (*_of_models(options, inputs), *(condition.metric for condition in conditions)):
        by_key[metric.name, metric.by.text if metric.by else None] = metric
    of_scores = [metric for metric in by_key.values() if metric.kind == "prob"]
    if of_scores and options.threshold is None:
        msg = f"{of_scores[0].name} is about scores: `one` and `other` name scores where `threshold` is given."
        raise ArgumentError(msg)
    return [metric for metric in by_key.values() if metric.kind != "prob"], of_scores


def _changes_of_groups(options: Namespace, inputs: Inputs, asked: _Asked) -> pl.DataFrame | None:
    """The changes within the groups of features, with intervals adjusted for the number of groups of each feature.

    None with outer groups, which have tables of their own. Features with very many groups are left out.
    """
    frames: list[pl.DataFrame] = []
    policy = policy_of(options)
    for feature in () if options.group_by else inputs.features:
        if isinstance(feature, Privileged):
            continue
        names = cast("tuple[str, ...]", feature)
        groups = _compared_groups(inputs.data, names, policy)
        if groups.is_empty() or len(groups) > _MOST_GROUPS:
            continue
        level = 1 - (1 - _level(inputs)) / len(groups)
        changes = [part.paired.compared(level) for part in _compared(asked.within(names, groups), inputs)]
        frame = pl.concat(changes, how="vertical_relaxed")
        frame = frame.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left")
        frames.append(frame.select(pl.lit(":".join(names)).alias(".by"), ".group", pl.exclude(*names, ".by", ".group")))
    return pl.concat(frames, how="vertical_relaxed") if frames else None


def _compared_groups(data: pl.LazyFrame, names: Sequence[str], policy: Policy) -> pl.DataFrame:
    """The groups of a feature that are compared, with their `.group`."""
    groups = data.group_by(names).agg(pl.len().alias(_ROWS)).collect()
    keys, rows = groups.select(names), pl.col(_ROWS)
    is_large = (rows >= policy.min_n) & (rows >= policy.min_share * rows.sum())
    named = groups.with_columns(texts_of(keys).alias(".group"))
    return named.filter(~policy.is_unknown(keys) & groups.select(is_large).to_series()).drop(_ROWS)


def _check_within_reach(conditions: Sequence[Condition], result: pl.DataFrame, one: str) -> None:
    """Refuse limits that no second model can meet, given the values of the first one."""
    for condition in conditions:
        name, by = condition.key
        values = result.filter((pl.col(".metric") == name) & pl.col(".by").eq_missing(pl.lit(by)))[".one"]
        if len(values) != 1 or values.has_nulls():
            continue
        value = float(values.item())
        low, high = condition.metric.range
        rises = condition.side == "<"
        reach = high - value if rises else value - low
        wanted = condition.limit if rises else -condition.limit
        if wanted <= reach:
            continue
        verb, worse = ("rise", "falls") if rises else ("fall", "rises")
        written = f"{condition.shown} {condition.side}"
        msg = f"`fail_if`: {f'change in {written} {condition.limit:g}'!r}: {name} of {one!r} is {value:.3f}, and can "
        msg += f"{verb} by {reach:.3f} at most: write {f'change in {written} {-condition.limit:g}'!r} to fail where it "
        msg += f"{worse} by more than {wanted:g}; limits of the value itself go to `tidyfair audit`."
        raise ArgumentError(msg)


def _of_models(options: Namespace, inputs: Inputs) -> list[Metric | GroupwiseMetric]:
    """The metrics that can differ between models, which are those that read predictions."""
    more = added_metrics(options, inputs)
    # an audit needs a feature; without one, only its metrics of all rows are used
    features = inputs.features or [options.one]
    results = UsualMetrics.of(features, inputs.kind, policy=policy_of(options), more=more).results
    of_models: list[Metric | GroupwiseMetric] = []
    for metric in results:
        if _reads_predictions(metric) and (inputs.features or isinstance(metric, Metric)):
            of_models.append(metric)
    return of_models


def _reads_predictions(metric: Metric | GroupwiseMetric) -> bool:
    _, formula = metric.formulas[0]
    return not {"estimate", "probs"}.isdisjoint(formula.reads)


def _decided(inputs: Inputs, threshold: float, scores: Mapping[str, str]) -> pl.LazyFrame:
    """The rows with decisions in place of scores, and the event as true or false in place of the truth."""
    columns = list(scores.values())
    for flag, column in scores.items():
        _check_scores(inputs, threshold, column, flag)
    decided = [Cut.reached(pl.col(column), threshold) for column in columns]
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


def _verdicts(
    compared: Sequence[_Compared], conditions: Sequence[Condition], confidence: float, outside: Outside
) -> pl.DataFrame:
    """The verdict on each change that has a limit."""
    limits = {condition.key: condition.allowed for condition in conditions}
    return judged_changes([part.paired for part in compared], limits, confidence, outside)


# Documents


def _level(inputs: Inputs) -> float:
    return inputs.reading.get("conf_level", _LEVEL)


def _document(
    options: Namespace,
    inputs: Inputs,
    compared: Sequence[_Compared],
    result: pl.DataFrame,
    of_groups: pl.DataFrame | None,
    verdicts: pl.DataFrame | None,
) -> Document:
    """The comparison as a document: headline, verdicts, and both models with their change."""
    one, other, threshold = options.one, options.other, options.threshold
    at = "" if threshold is None else f" at {threshold:g}"
    metrics = [metric for part in compared for metric in part.metrics]
    headline = _changes_in_words(metrics, result, of_groups, other)
    parts: list[Part] = []
    if verdicts is not None:
        confidence, directions, outside = options.confidence or _LEVEL, directions_of(metrics), options.outside
        headline = [*verdicts_in_words(verdicts, directions, change=CHANGE), *headline]
        parts.append(verdicts_part(verdicts, directions, confidence, outside or "hold", change=CHANGE))
    # files have the p-values of McNemar's test too
    shown = in_words(one_below_the_other(result.drop(".p_value"))).rename({".one": one, ".other": other}, strict=False)
    remark = f"change: {other} minus {one}, with its {percent(_level(inputs))} confidence interval."
    remarks = [remark, *_hint(options, inputs, of_groups)]
    left_out = pl.concat([part.paired.left_out() for part in compared])
    bys = [metric.by for metric in metrics if isinstance(metric, GroupwiseMetric)]
    notes = notes_on_left_out(shown, left_out, bys)
    parts.append(Part("Both models", shown, tuple(notes), "by" if "by" in shown.columns else "metric", tuple(remarks)))
    if of_groups is not None:
        parts += _parts_within_groups(options, inputs, of_groups)
    title = f"{one} and {other}{at}, compared on {inputs.name}"
    groups = policy_of(options).in_words if inputs.features else ""
    return Document(title, tuple(headline), tuple(parts), compared=groups)


def _changes_in_words(
    metrics: Sequence[Metric | GroupwiseMetric], result: pl.DataFrame, of_groups: pl.DataFrame | None, other: str
) -> list[str]:
    """The sentences on significant changes, of all rows, of disparities and within groups."""
    judged = directions_of(metric for metric in metrics if metric.better != "neither")
    changes = result.select(_CHANGE)
    if of_groups is not None:
        # the summary names a group where it names the feature of a disparity
        words = [quoted_group(by.split(":"), group) for by, group in of_groups.select(".by", ".group").rows()]
        groups = of_groups.with_columns(pl.Series(".by", words, dtype=pl.String))
        changes = pl.concat([changes, groups.select(_CHANGE)], how="vertical_relaxed")
        for metric, group in groups.select(".metric", ".by").rows():
            if (metric, None) in judged:
                judged[metric, group] = judged[metric, None]
    return changes_in_words(changes, judged, other)


def _parts_within_groups(options: Namespace, inputs: Inputs, of_groups: pl.DataFrame) -> list[Part]:
    """The table of both models within the groups of each feature."""
    parts: list[Part] = []
    for (by,), frame in of_groups.group_by(".by", maintain_order=True):
        table = in_words(one_below_the_other(frame.drop(".by", ".p_value")))
        table = table.rename({".one": options.one, ".other": options.other}, strict=False)
        number = frame[".group"].n_unique()
        adjusted = f"Intervals are {percent(_level(inputs))} confidence intervals, adjusted for {number} groups."
        parts.append(Part(f"Both models within the groups of {by}", table, (), "metric", (adjusted,)))
    return parts


def _hint(options: Namespace, inputs: Inputs, of_groups: pl.DataFrame | None) -> list[str]:
    """A sentence on features whose groups are not shown one by one, and how to see them."""
    if options.group_by:
        return []
    shown: list[str] = [] if of_groups is None else of_groups[".by"].to_list()
    hints: list[str] = []
    for feature in inputs.features:
        if isinstance(feature, Privileged) or ":".join(cast("tuple[str, ...]", feature)) in shown:
            continue
        names = cast("tuple[str, ...]", feature)
        flags = " ".join(f"--group-by {name}" for name in names)
        hints.append(
            f"{':'.join(names)} has no group of enough rows, or more than {_MOST_GROUPS} groups; `{flags}` shows all."
        )
    return hints
