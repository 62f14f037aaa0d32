"""What a command reads: the rows of a file, and the options by which they are counted and read, checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.audits.usual_metrics import LEAST_ROWS, kind_of
from tidyfair.cli.features import as_value, feature_of
from tidyfair.cli.terminal import watched
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.specs.columns import names_of, telling
from tidyfair.specs.groups import Policy, Privileged
from tidyfair.specs.options import Options
from tidyfair.tallies.files import scan
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping, Sequence

    from tidyfair.audits.usual_metrics import Feature, Predictions

_EXAMPLE: dict[str, Any] = {
    "truth": "repaid",
    "estimate": "approved",
    "pos_label": "yes",
    "by": ["sex", "race"],
}
_COLUMNS = (
    "truth", "estimate", "one", "other", "probs", "case_weights", "frequency_weights", "cluster", "group_by",
    "within",
)  # fmt: skip
"""The options that name columns."""
COUNTING = (
    "group_by", "probs", "threshold", "top_k", "top_fraction", "score_bins", "case_weights", "frequency_weights",
    "cluster",
)  # fmt: skip
"""The options of counting rows."""
READING = ("pos_label", "labels", "estimator", "na_rm", "interval", "conf_level", "times", "seed")
"""The options of reading what was counted."""
CUTS = ("threshold", "top_k", "top_fraction")
"""The options that make decisions of scores."""
GROUPS = tuple(option.name for option in fields(Policy))
"""The options that say which groups are compared; a named audit has its own defaults."""


@dataclass(frozen=True)
class Inputs:
    """The rows of a file, the kind of their predictions, and the options of counting and reading."""

    data: pl.LazyFrame
    schema: pl.Schema
    truth: str | None
    estimate: str | None
    features: list[Feature]
    kind: Predictions
    counting: dict[str, Any]
    reading: dict[str, Any]
    name: str
    """The name of the data, for titles."""

    @property
    def judged_by(self) -> dict[str, Any]:
        """The options of reading that gates accept, whose intervals are their own."""
        return {name: value for name, value in self.reading.items() if name not in {"interval", "conf_level"}}


def set_defaults(options: Namespace) -> None:
    """Set the options on groups that are left out, and write the one that Python has otherwise into the line."""
    defaults = asdict(Policy(min_n=LEAST_ROWS))
    if options.min_n is None:
        options.line += f" --min-n {LEAST_ROWS}"
    for name in GROUPS:
        if getattr(options, name) is None:
            setattr(options, name, defaults[name])


def policy_of(options: Namespace) -> Policy:
    """The groups that are compared."""
    return Policy.of("audit", **{name: getattr(options, name) for name in GROUPS})


def read_inputs(options: Namespace, *, scores_alone: bool = False) -> Inputs:
    """The file, or the example if there is none, with its columns and options checked."""
    policy_of(options)
    given: dict[str, Any] = {flag: value for flag, value in vars(options).items() if value is not None}
    for cut in CUTS:
        # several numbers have results of their own
        if isinstance(given.get(cut), list) and len(given[cut]) == 1:
            given[cut] = given[cut][0]
    if options.file is None:
        given = _example_for(given) | given
        data, name = lending().lazy(), "the example data (simulated decisions on loans)"
    else:
        rows, name = scan(options.file, options.separator), str(options.file)
        _check_rows(rows, name)
        data = watched(rows)
    schema = _schema(data)
    if "probs" in given:
        given["probs"] = _scores_of(given["probs"], given, schema)
    _check_columns(given, schema)
    _check_scores(given, scores_alone=scores_alone)
    kind = _kind(data, given)
    features: list[Feature] = []
    for text in dict.fromkeys(given.get("by", [])):
        features.append(feature_of(text, schema, "by"))
    if options.unknown_values:
        options.unknown_values = _unknown_values(options.unknown_values, features, schema)
    counting = {flag: given[flag] for flag in COUNTING if flag in given}
    reading = _reading(given, kind, schema)
    # values are checked before rows are read
    Options(**{flag: value for flag, value in reading.items() if flag != "estimator"})
    return Inputs(data, schema, given.get("truth"), given.get("estimate"), features, kind, counting, reading, name)


def _unknown_values(texts: Sequence[str], features: Sequence[Feature], schema: pl.Schema) -> list[object]:
    """The values that mean unknown, read as the columns of features are, which may be of several types."""
    dtypes: list[pl.DataType] = []
    for feature in features:
        names = names_of(feature.columns) if isinstance(feature, Privileged) else cast("tuple[str, ...]", feature)
        dtypes += [schema[name] for name in names]
    values: dict[object, None] = {}
    for text in texts:
        values |= dict.fromkeys(as_value(text, dtype) for dtype in dtypes or [pl.String()])
    return list(values)


def _example_for(given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the example, without its decisions where others are made of scores."""
    example = dict(_EXAMPLE)
    if not given.keys().isdisjoint(CUTS):
        del example["estimate"]
    return example


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
    for flag in _COLUMNS:
        value: Any = given.get(flag, ())
        if isinstance(value, dict):
            value = list(cast("dict[object, str]", value).values())
        columns: list[str] = [value] if isinstance(value, str) else value
        for column in columns:
            if column not in schema:
                raise ColumnError.missing(column, flag, schema)


def _check_scores(given: Mapping[str, Any], *, scores_alone: bool) -> None:
    """Refuse scores without decisions, which some named audits can do without, and several rules for decisions."""
    cuts = [f"`{flag}`" for flag in CUTS if flag in given]
    if len(cuts) > 1:
        msg = f"{' and '.join(cuts)} each make decisions of scores: give one of them."
        raise ArgumentError(msg)
    if "one" in given or scores_alone or "probs" not in given or cuts or "estimate" in given:
        return
    msg = (
        "`probs` needs decisions: add `threshold` (scores at or above it select the event), `top_k` or "
        "`top_fraction`, or name the column of decisions as `estimate`."
    )
    raise ArgumentError(msg)


def _reading(given: Mapping[str, Any], kind: Predictions, schema: pl.Schema) -> dict[str, Any]:
    """The options by which labels are read, and those of intervals."""
    reading = {flag: given[flag] for flag in READING if flag in given}
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


@telling("opened the file")
def _check_rows(rows: pl.LazyFrame, name: str) -> None:
    """Refuse a file without rows."""
    if rows.head(1).select(pl.nth(0)).collect().is_empty():
        msg = f"{name!r} has columns and no rows."
        raise ArgumentError(msg)


@telling("opened the file")
def _schema(data: pl.LazyFrame) -> pl.Schema:
    """The columns of a file."""
    return data.collect_schema()


def _kind(data: pl.LazyFrame, given: dict[str, Any]) -> Predictions:
    """The kind of predictions; whole numbers may be labels or a measurement, and `read_as` says which."""
    read_as = given.get("read_as")
    if read_as == "numbers":
        of_labels = [f"`{flag}`" for flag in ("probs", *CUTS, "pos_label", "labels") if flag in given]
        if of_labels:
            msg = f"`read_as=numbers` does not go with {' and '.join(of_labels)}: numbers have no labels."
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


def range_of(data: pl.LazyFrame, column: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a column."""
    value = pl.col(column)
    return data.select(value.min().alias("low"), value.max().alias("high")).collect().row(0)


def remarks_on_threshold(data: pl.LazyFrame, threshold: float | list[float], columns: Sequence[str]) -> list[str]:
    """Sentences on scores that are all on one side of the threshold."""
    remarks: list[str] = []
    for column in columns:
        lowest, highest = range_of(data, column)
        if lowest is None:
            continue
        ends = f"{lowest:.3g} to {highest:.3g}"
        for cut in threshold if isinstance(threshold, list) else [threshold]:
            if highest < cut or lowest >= cut:
                who = "nobody" if highest < cut else "everybody"
                remarks.append(f"{who} is selected at --threshold {cut:g}: the scores {column!r} range from {ends}.")
    return remarks


def remarks_on_missing(missing: Iterable[tuple[str, int]]) -> list[str]:
    """A sentence on the rows that are left out because of missing values, if there are any."""
    lacking = [f"{rows:,} without {name!r}" for name, rows in missing if rows]
    if not lacking:
        return []
    return [f"rows with missing values are left out of the metrics that read them: {' and '.join(lacking)}."]
