"""The input of a command, checked: the rows of a file, the options of counting and reading, and the metrics."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import polars as pl

from tidyfair.audits import LEAST_ROWS, Feature, Predictions, kind_of
from tidyfair.calling import KINDS, PYTHON_ONLY, GroupwiseFactory, GroupwiseMetric, Metric
from tidyfair.cli.fail_if import as_value, comparison_of, feature_of
from tidyfair.cli.flags import COLUMNS
from tidyfair.cli.terminal import watched
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.metrics.catalog import metric_named
from tidyfair.specs import (
    CUT_OPTIONS,
    OPTIONS,
    Options,
    Policy,
    Privileged,
    ReadOptions,
    names_of,
    proper_share,
    telling,
)
from tidyfair.tallies import open_frame, scan

_EXAMPLE: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes", "by": ["sex", "race"]}
COUNTING = (
    "group_by", "probs", *CUT_OPTIONS, "score_bins", "case_weights", "frequency_weights", "cluster", "suppress_below",
)  # fmt: skip
"""The options of counting rows, in the order in which documents have them."""
GROUPS = tuple(option.name for option in fields(Policy))
"""The options that say which groups are compared."""


@dataclass(frozen=True)
class Inputs:
    """The rows of a file, the kind of their predictions, and the options of counting and reading."""

    data: pl.LazyFrame
    schema: pl.Schema
    truth: str | None
    estimate: str | None
    features: list[Feature]
    kind: Predictions
    policy: Policy
    """The groups that are compared."""
    counting: dict[str, Any]
    reading: dict[str, Any]
    name: str
    """The name of the data, for titles."""

    @property
    def level(self) -> float:
        """The confidence level of intervals."""
        return self.reading.get("conf_level", OPTIONS["conf_level"].default)


def read_inputs(options: Namespace) -> Inputs:
    """The file, or the example if there is none, with its columns and options checked.

    The minimum of rows, which Python has otherwise, is written into the command line; a named audit has its own.
    """
    given = _given(options)
    is_named = "as" in given
    if "min_n" not in given and not is_named:
        options.line += f" --min-n {LEAST_ROWS}"
    groups: dict[str, Any] = {"min_n": LEAST_ROWS, **{name: given[name] for name in GROUPS if name in given}}
    Policy.of("audit", **groups)
    data, schema, name = _opened(options)
    if "probs" in given:
        given["probs"] = _scores_of(given["probs"], given, schema)
    _check_columns(given, schema)
    _check_scores(given, scores_alone=is_named)
    kind = _kind(data, given)
    features: list[Feature] = [feature_of(text, schema, "by") for text in dict.fromkeys(given.get("by", []))]
    if "unknown_values" in groups:
        groups["unknown_values"] = _unknown_values(groups["unknown_values"], features, schema)
    counting = {name: given[name] for name in COUNTING if name in given}
    reading = _reading(given, kind, schema)
    # values are checked before rows are read
    Options(**{name: value for name, value in reading.items() if name != "estimator"})
    policy, truth, estimate = Policy.of("audit", **groups), given.get("truth"), given.get("estimate")
    return Inputs(data, schema, truth, estimate, features, kind, policy, counting, reading, name)


def _given(options: Namespace) -> dict[str, Any]:
    """The options that are given, with those of the example if there is no file."""
    given: dict[str, Any] = {name: value for name, value in vars(options).items() if value is not None}
    # several numbers have results of their own
    given |= {cut: given[cut][0] for cut in CUT_OPTIONS if isinstance(given.get(cut), list) and len(given[cut]) == 1}
    if options.file is not None:
        return given
    # decisions that are made of scores take the place of those of the example
    has_no_cut = given.keys().isdisjoint(CUT_OPTIONS)
    return {name: value for name, value in _EXAMPLE.items() if name != "estimate" or has_no_cut} | given


def _opened(options: Namespace) -> tuple[pl.LazyFrame, pl.Schema, str]:
    """The rows of the file, or of the example, with their columns and the name of the data."""
    if options.file is None:
        data = lending().lazy()
        return data, data.collect_schema(), "the example data (simulated decisions on loans)"
    data, name = scan(options.file, options.separator), str(options.file)
    with telling("opened the file"):
        if data.head(1).select(pl.nth(0)).collect().is_empty():
            msg = f"{name!r} has columns and no rows."
            raise ArgumentError(msg)
        schema = data.collect_schema()
    return watched(data), schema, name


def _scores_of(texts: list[str], given: Mapping[str, Any], schema: pl.Schema) -> str | list[str] | dict[object, str]:
    """The column of scores, several in the order of the labels, or one for each label from texts such as `yes=p_yes`.

    An equal sign is part of a name if there is such a column.
    """
    pairs = [text.rpartition("=") for text in texts]
    if all(sign and text not in schema for text, (_, sign, _) in zip(texts, pairs, strict=True)):
        dtype = schema.get(given.get("truth", ""), pl.String())
        return {as_value(label, dtype): column for label, _, column in pairs}
    return texts[0] if len(texts) == 1 else texts


def _check_columns(given: Mapping[str, Any], schema: pl.Schema) -> None:
    """Refuse columns that the file does not have."""
    for name in COLUMNS:
        value: Any = given.get(name, ())
        if isinstance(value, dict):
            value = cast("dict[object, str]", value).values()
        for column in [value] if isinstance(value, str) else value:
            if column not in schema:
                raise ColumnError.missing(column, name, schema)


def _check_scores(given: Mapping[str, Any], *, scores_alone: bool) -> None:
    """Refuse scores without decisions, which some named audits can do without, and several rules for decisions."""
    cuts = [f"`{cut}`" for cut in CUT_OPTIONS if cut in given]
    if len(cuts) > 1:
        msg = f"{' and '.join(cuts)} each make decisions of scores: give one of them."
        raise ArgumentError(msg)
    if "probs" in given and not scores_alone and not cuts and not given.keys() & {"estimate", "truth"}:
        msg = (
            "`probs` needs a `truth`, or decisions: add `threshold` (scores at or above it select the event), `top_k` "
            "or `top_fraction`, or name the column of decisions as `estimate`."
        )
        raise ArgumentError(msg)


def _unknown_values(texts: Sequence[str], features: Sequence[Feature], schema: pl.Schema) -> list[object]:
    """The values that mean unknown, read as the columns of features are, which may be of several types."""
    dtypes: list[pl.DataType] = []
    for feature in features:
        names = names_of(feature.columns) if isinstance(feature, Privileged) else cast("tuple[str, ...]", feature)
        dtypes += [schema[name] for name in names]
    return list(dict.fromkeys(as_value(text, dtype) for text in texts for dtype in dtypes or [pl.String()]))


def _reading(given: Mapping[str, Any], kind: Predictions, schema: pl.Schema) -> dict[str, Any]:
    """The options by which labels are read, and those of intervals."""
    reading = {name: given[name] for name in ReadOptions.__annotations__ if name in given}
    column = given.get("truth") or given.get("estimate")
    dtype = schema[column] if column else pl.Boolean()
    if "pos_label" in reading:
        reading["pos_label"] = as_value(reading["pos_label"], dtype)
    elif "estimator" not in reading and kind != "numbers":
        # of more than two labels, disparities of averages can hide those that cancel
        reading["estimator"] = "one_vs_rest"
    if "labels" in reading:
        reading["labels"] = [as_value(label, dtype) for label in reading["labels"]]
    interval = reading.setdefault("interval", "auto")
    if interval == "none":
        reading["interval"] = None
    return reading


def _kind(data: pl.LazyFrame, given: dict[str, Any]) -> Predictions:
    """The kind of predictions; whole numbers may be labels or a measurement, and `read_as` says which."""
    read_as = given.get("read_as")
    if read_as == "numbers":
        label_options = [f"`{name}`" for name in ("probs", *CUT_OPTIONS, "pos_label", "labels") if name in given]
        if label_options:
            msg = f"`read_as=numbers` does not go with {' and '.join(label_options)}: numbers have no labels."
            raise ArgumentError(msg)
        return "numbers"
    # what a threshold makes are labels
    options = {**given, "labels": given.get("labels", given.get("threshold", read_as))}
    truth = given.get("truth")
    try:
        return kind_of(open_frame(data), truth, given.get("estimate", given.get("one")), options)
    except ArgumentError as error:
        either = "`read_as=labels` or `read_as=numbers`"
        msg = f"`truth`: {truth!r} holds whole numbers, which may be labels or a measurement: say {either}."
        raise ArgumentError(msg) from error
    except ColumnError as error:
        if "one" not in given:
            raise
        msg = (
            f"`one`: {given['one']!r} holds scores, beside a truth of labels: decisions are made of scores by "
            "`threshold`. If both are a measurement, say `read_as=numbers`."
        )
        raise ColumnError(msg) from error


def confidence_of(options: Namespace) -> float | None:
    """The confidence level of verdicts; None where no verdicts are asked for."""
    if options.fail_if:
        return 0.95 if options.confidence is None else proper_share("confidence", options.confidence, 0.5)
    if options.outside is not None:
        msg = "`outside` is about the verdicts of `fail_if`, and there are none without it."
        raise ArgumentError(msg)
    if options.confidence is not None:
        msg = (
            "`confidence` is the confidence level of the verdicts of `fail_if`, and there are none without it; that of "
            "intervals is `conf_level`."
        )
        raise ArgumentError(msg)
    return None


def added_metrics(options: Namespace, inputs: Inputs) -> list[Metric | GroupwiseFactory]:
    """The metrics and disparities that `metric` adds to the usual ones."""
    has_sides = bool(inputs.features) and all(isinstance(feature, Privileged) for feature in inputs.features)
    more: list[Metric | GroupwiseFactory] = []
    for name in options.metric or ():
        metric = metric_named(name)
        if metric is None or metric.definition.compares:
            metric = comparison_of(name, "metric", has_sides=has_sides)
        check_kind("metric", [metric if isinstance(metric, Metric) else metric.typical], inputs.kind)
        more.append(metric)
    return more


def check_kind(flag: str, metrics: Iterable[Metric | GroupwiseMetric], kind: Predictions) -> None:
    """Refuse metrics of numbers for labels, and the reverse."""
    for metric in metrics:
        if metric.kind in PYTHON_ONLY:
            msg = f"`{flag}`: {metric.name} reads {KINDS[metric.kind]}, which only a call in Python can name."
            raise ArgumentError(msg)
        if (metric.kind == "numeric") != (kind == "numbers"):
            content = "labels" if kind == "numbers" else "numbers"
            msg = f"`{flag}`: {metric.name} is about {content}, which these predictions are not."
            raise ArgumentError(msg)


def range_of(data: pl.LazyFrame, column: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a column."""
    value = pl.col(column)
    return data.select(value.min().alias("low"), value.max().alias("high")).collect().row(0)


def remarks_on_threshold(data: pl.LazyFrame, threshold: float | list[Any], columns: Sequence[str]) -> list[str]:
    """Sentences on scores that are all on one side of the threshold."""
    remarks: list[str] = []
    for column in columns:
        lowest, highest = range_of(data, column)
        for cut in threshold if isinstance(threshold, list) else [threshold]:
            # one that is chosen from the data lies among the scores
            if isinstance(cut, float) and lowest is not None and (highest < cut or lowest >= cut):
                who = "nobody" if highest < cut else "everybody"
                ends = f"{lowest:.3g} to {highest:.3g}"
                remarks.append(f"{who} is selected at --threshold {cut:g}: the scores {column!r} range from {ends}.")
    return remarks


def remarks_on_missing(missing: Iterable[tuple[str, int]]) -> list[str]:
    """A sentence on the rows that are left out because of missing values, if there are any."""
    lacking = [f"{rows:,} without {name!r}" for name, rows in missing if rows]
    if not lacking:
        return []
    return [f"rows with missing values are left out of the metrics that read them: {' and '.join(lacking)}."]
