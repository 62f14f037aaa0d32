"""The commands of the command line; each returns the code to exit with."""

from __future__ import annotations

import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import selectors

from tidyfair.audits.filing import NAMED_AUDITS
from tidyfair.audits.filing import audit as file_audit
from tidyfair.audits.usual_metrics import LEAST_ROWS, Groups, UsualMetrics, kind_of
from tidyfair.cli.fail_if import columns_of, comparison_of, gate_of
from tidyfair.cli.terminal import note, show, watched
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, ColumnError, ConstantWarning, UndefinedWarning
from tidyfair.escapes import visible
from tidyfair.evaluation.labels import read_labels
from tidyfair.inference.model_comparison import compare_models
from tidyfair.metric_sets import GroupwiseMetric, Metric, metric_set
from tidyfair.metrics.catalog import catalogue, definition_of
from tidyfair.metrics.classification import base_rate
from tidyfair.reports.findings import percent
from tidyfair.reports.page import report
from tidyfair.reports.reproduction import how_to_repeat
from tidyfair.reports.sections import missing_of
from tidyfair.reports.tables import NOTHING, groups_side_by_side, one_below_the_other, too_few
from tidyfair.specs.columns import telling
from tidyfair.specs.options import Options
from tidyfair.tallies.files import PAGES, check_outputs, save, scan, write
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import ESTIMATE
from tidyfair.tallies.thresholds import Cut

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from tidyfair.audits.usual_metrics import Feature, Predictions
    from tidyfair.inference.gates import Gate
    from tidyfair.reports.page import Report
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_EXAMPLE: dict[str, Any] = {
    "truth": "repaid",
    "estimate": "approved",
    "pos_label": "yes",
    "by": ["sex", "race"],
}
_COLUMNS = ("truth", "estimate", "one", "other", "probs", "weights", "group_by", "within")
_INTERVALS = f"{percent(0.95)} confidence intervals."
_DRAWS = 1_000
"""Bootstrap draws for numbers, whose rows take long to draw; labels have the usual number."""
_CONFIDENCE = 0.95
_MANY = 30
"""Groups beyond which a feature is likely to be a number, and undefined values are not listed."""


def audit(options: Namespace) -> int:
    """An audit of a file of predictions: one that has a name, or the usual metrics."""
    if _named(options) is not None:
        return _file(options)
    for flag in ("to", "within"):
        if getattr(options, flag, None) is not None:
            msg = f"`{flag}` goes with `as`, the name of an audit."
            raise ArgumentError(msg)
    _set_defaults(options)
    return _usual_audit(options)


def _usual_audit(options: Namespace) -> int:
    """Rates by group and disparities, with verdicts, pages and files on request."""
    files = _files(options)
    pages = _pages(files, options.group_by)
    inputs = _inputs(options, quiet=bool(files))
    more = [comparison_of(name, "metric") for name in options.metric or ()]
    _check_kind("metric", [factory.typical for factory in more], inputs.kind)
    audited = UsualMetrics.of(inputs.features, inputs.kind, groups=_groups(options), more=more)
    gate = _gate(options, inputs, [by.text for by in audited.bys])
    call: dict[str, Any] = {"data": inputs.data, "truth": inputs.truth, "estimate": inputs.estimate, **inputs.counting}
    judged = gate.metrics if gate else ()
    tally = audited.everything(*judged).tally(**call, parts=0)
    audited.results.run.check_occurs(tally, Options(**inputs.reading))
    verdicts = gate.compute(tally, on_undefined="ignore", **inputs.reading) if gate else None
    if pages:
        settings: Any = {"by": inputs.features, "metrics": audited.results, "gate": gate}
        settings |= {name: getattr(options, name) for name in ("min_n", "min_share", "unknown", "unknown_values")}
        _write_pages(pages, report(**call, **inputs.reading, **settings), options.line)
    if len(files) > len(pages) or not pages:
        _output_results(audited, tally, inputs.reading, files, options.min_n)
    _note_missing(dict(missing_of(tally).select("column", "missing").rows()))
    # the range of the scores matters only where all decisions are the same
    threshold = inputs.counting["threshold"]
    if threshold is not None and tally.cells[ESTIMATE].drop_nulls().n_unique() == 1:
        _note_threshold(inputs.data, threshold, [inputs.counting["probs"]])
    if gate is None or verdicts is None:
        return 0
    return _judged(verdicts, gate.confidence)


_UNNAMED = ("metric", "fail_if", "confidence", "output_groups")
"""Options that a named audit does not take: it says itself what is computed, and gives no verdicts."""


_GROUPS: dict[str, Any] = {"min_n": LEAST_ROWS, "min_share": 0.0, "unknown": "apart", "unknown_values": None}
"""Options that say which groups are compared, and their defaults; a named audit has its own."""


def _set_defaults(options: Namespace) -> None:
    """Set the options on groups that are left out."""
    for name, value in _GROUPS.items():
        if getattr(options, name) is None:
            setattr(options, name, value)


def _named(options: Namespace) -> str | None:
    """The name of the audit that is asked for, or `list`."""
    return vars(options).get("as")


def _file(options: Namespace) -> int:
    """The tables of a named audit, printed or written to files, or the list of these audits."""
    name = str(_named(options))
    if name == "list":
        every = NAMED_AUDITS.values()
        columns = {"name": [one.name for one in every], "audit": [one.title for one in every]}
        show("Named audits", pl.DataFrame(columns))
        return 0
    for flag in _UNNAMED:
        if getattr(options, flag, None) is not None:
            msg = f"`as={name}` says itself what is computed, and goes without `{flag}`."
            raise ArgumentError(msg)
    files = _files(options)
    groups = {flag: getattr(options, flag) for flag in _GROUPS}
    _set_defaults(options)
    inputs = _inputs(options, quiet=bool(files), scores_alone=True)
    reading = {key: value for key, value in inputs.reading.items() if key != "estimator"}
    counting = {key: value for key, value in inputs.counting.items() if value is not None}
    settings: Any = {"by": inputs.features, "to": _references(options.to), "within": options.within, **groups}
    filed = file_audit(name, inputs.data, inputs.truth, inputs.estimate, **settings, **counting, **reading)
    if "output" in files:
        tables = [frame.select(pl.lit(key).alias(".table"), pl.all()) for key, frame in filed.tables.items()]
        write(pl.concat(tables, how="diagonal_relaxed"), files["output"])
    for flag, content in (("markdown", filed.markdown), ("html", filed.page)):
        if flag in files:
            save(_writing(content()), files[flag])
            print(f"{visible(str(files[flag]))} is written.", file=sys.stderr)
    if not files:
        for table in filed.published_tables().values():
            show(table.heading, table.texts, up_to="Group")
        print("\n".join(map(visible, filed.statement)))
    return 0


def _writing(text: str) -> Callable[[Path], object]:
    """The writing of a text to a file."""
    return lambda file: file.write_text(text, encoding="utf-8")


def _references(texts: Sequence[str] | None) -> dict[str, str] | None:
    """The references of features, from texts such as `race=White`."""
    if not texts:
        return None
    references: dict[str, str] = {}
    for text in texts:
        feature, is_equal, group = text.partition("=")
        if not is_equal:
            msg = f"`to`: {text!r} is no reference of a feature; write it as `--to race=White`."
            raise ArgumentError(msg)
        references[feature] = group
    return references


def _pages(files: Mapping[str, Path], group_by: str | None) -> list[Path]:
    """The files of pages, which need a single set of predictions."""
    pages = [path for flag, path in files.items() if flag in PAGES]
    if pages and group_by:
        msg = (
            "A page is about one set of predictions, and `group_by` makes several: leave it out with `html` and "
            "`markdown`, or write the values of each to a file with `output`."
        )
        raise ArgumentError(msg)
    return pages


def _write_pages(files: Iterable[Path], page: Report, line: str) -> None:
    """Write a report that ends with the command line that made it."""
    page = replace(page, parts=(*page.parts[:-1], how_to_repeat(line)))
    for file in files:
        page.save(file)
        print(f"{visible(str(file))} is written.", file=sys.stderr)


def _gate(options: Namespace, inputs: _Inputs, features: Sequence[str]) -> Gate | None:
    """The limits that `fail_if` sets for these predictions."""
    if not options.fail_if:
        if options.confidence is not None:
            msg = "`confidence` is how sure a verdict must be, and there is none without `fail_if`: give both or none."
            raise ArgumentError(msg)
        return None
    confidence = _CONFIDENCE if options.confidence is None else options.confidence
    gate = gate_of(options.fail_if, confidence, inputs.schema.names(), features, _groups(options))
    _check_kind("fail_if", gate.metrics, inputs.kind)
    return gate


def _check_kind(flag: str, metrics: Iterable[Metric | GroupwiseMetric], kind: Predictions) -> None:
    """Refuse metrics of numbers for labels, and the reverse."""
    for metric in metrics:
        if (metric.kind == "numeric") != (kind == "numbers"):
            content = "labels" if kind == "numbers" else "numbers"
            msg = f"`{flag}`: {metric.name} is about {content}, which these predictions are not."
            raise ArgumentError(msg)


def _judged(verdicts: pl.DataFrame, confidence: float) -> int:
    """Print the verdicts, and return the exit code of the worst."""
    # a disparity with excluded groups never passes
    excluded = pl.col(".groups_left_out")
    left_out = pl.when(excluded.list.len() > 0).then(excluded).alias("groups left out")
    title = f"Verdicts: each end of an interval is right {percent(confidence)} of the time"
    show(title, _disparity_table(verdicts, left_out), up_to=".by")
    if len(verdicts) > 1:
        print("Failures are judged together (Holm), so that one alone may look beyond its limit and still not fail.\n")
    outcomes = set(verdicts[".verdict"])
    if "fail" in outcomes:
        return 3
    return 0 if outcomes == {"pass"} else 4


def _output_results(
    audited: UsualMetrics, tally: Tally, reading: dict[str, Any], files: Mapping[str, Path], min_n: int
) -> None:
    """Write values of groups and disparities with their intervals to files, or print them if there are none."""
    quiet: Any = {"interval": "auto", "on_undefined": "ignore", **reading}
    results = audited.results.compute(tally, explain=True, **quiet)
    groups = audited.groups.compute_by_group(tally, **quiet)
    if "output" in files:
        write(results, files["output"])
    if "output_groups" in files:
        write(groups.filter(pl.col(".n") >= min_n), files["output_groups"])
    if not files:
        values, notes = groups_side_by_side(groups, None, min_n)
        show("Each group", values, notes, up_to=".n", remark=too_few(min_n).replace(NOTHING, "-"))
        show("Disparities", _disparity_table(results.filter(pl.col(".by").is_not_null())), up_to=".by")
        print(f"{_INTERVALS}\n")
    _note_undefined(audited, tally, reading, _note_many_groups(groups))


def _note_many_groups(groups: pl.DataFrame) -> set[str]:
    """Print which features have very many groups, and return their names."""
    sizes = groups.group_by(".by", ".group", maintain_order=True).agg(pl.col(".n").max()).drop_nulls(".by")
    counts = sizes.group_by(".by", maintain_order=True).agg(pl.len().alias("groups"), pl.col(".n").median())
    many = counts.filter(pl.col("groups") > _MANY)
    for by, number, median in many.rows():
        text = f"{by!r} has {number:,} groups, half of which have no more than {median:,.0f} rows"
        note(f"{text}: put numbers into bands, and rare values together.")
    return set(many[".by"])


def _note_undefined(audited: UsualMetrics, tally: Tally, reading: dict[str, Any], large: Collection[str]) -> None:
    """Print which values are undefined, except for features with very many groups."""
    shown = [metric for metric in audited.results if _feature_of(metric) not in large]
    with warnings.catch_warnings(record=True) as caught:
        for category in (UndefinedWarning, ConstantWarning):
            warnings.simplefilter("always", category)
        metric_set(*shown).compute(tally, **reading)
    for warning in caught:
        note(str(warning.message).partition(" (on_undefined")[0])


def _feature_of(metric: Metric | GroupwiseMetric) -> str | None:
    """The feature that a metric compares groups by, as results show it."""
    return metric.by.text if isinstance(metric, GroupwiseMetric) else None


def _note_missing(missing: Mapping[str, int]) -> None:
    """Print how many rows are left out because of missing values."""
    lacking = [f"{rows:,} without {name!r}" for name, rows in missing.items() if rows]
    if lacking:
        note(f"rows are left out of the metrics that read what they lack: {' and '.join(lacking)}.")


def _disparity_table(frame: pl.DataFrame, *more: pl.Expr) -> pl.DataFrame:
    """Disparities as a table to be read, with further columns."""
    return one_below_the_other(frame.drop(".n", ".method").with_columns(*more))


def compare(options: Namespace) -> int:
    """Two models that predict the same rows, side by side."""
    _set_defaults(options)
    files = _files(options)
    inputs = _inputs(options, quiet=True)
    one, other, threshold = options.one, options.other, options.threshold
    _check_models(one, other, inputs.truth)
    data, reading = inputs.data, inputs.reading
    if threshold is not None:
        data = _decided(inputs, threshold, {"one": one, "other": other})
        reading = {"pos_label": True}
    elif inputs.kind != "numbers":
        _check_labels(inputs, {"one": one, "other": other})
    call: dict[str, Any] = dict(reading)
    for name in ("group_by", "case_weights"):
        call[name] = inputs.counting[name]
    if inputs.kind == "numbers":
        call["times"] = _DRAWS
    comparison = compare_models(*_of_models(inputs, one, _groups(options)))
    result: pl.DataFrame = comparison(data, inputs.truth, one=one, other=other, **call, on_undefined="ignore")
    if files:
        write(result, files["output"])
    else:
        last_key = ".by" if inputs.features else ".metric"
        _show_models(result, one, other, threshold, last_key=last_key)
    _note_missing(_count_missing(inputs, [inputs.truth, one, other]))
    if threshold is not None:
        _note_threshold(inputs.data, threshold, [one, other])
    return 0


def _check_models(one: str, other: str, truth: str | None) -> None:
    """Refuse columns that are not the predictions of two models."""
    for flag, column in (("one", one), ("other", other)):
        if column == truth:
            msg = f"`{flag}`: {column!r} is the truth; name the column of a model's predictions."
            raise ArgumentError(msg)
    if one == other:
        msg = f"`one` and `other` are both {one!r}: name the columns of two models."
        raise ArgumentError(msg)


def _of_models(inputs: _Inputs, one: str, groups: Groups) -> list[Metric | GroupwiseMetric]:
    """The metrics that can differ between models, which are those that read predictions."""
    # an audit needs a feature; without one, only its metrics of all rows are used
    results = UsualMetrics.of(inputs.features or [one], inputs.kind, groups=groups).results
    of_models: list[Metric | GroupwiseMetric] = []
    for metric in results:
        _, formula = metric.formulas[0]
        if "estimate" in formula.reads and (inputs.features or isinstance(metric, Metric)):
            of_models.append(metric)
    return of_models


def _show_models(result: pl.DataFrame, one: str, other: str, threshold: float | None, *, last_key: str) -> None:
    """Print two models and their difference."""
    names = {".one": one, ".other": other, ".change": ".difference"}
    at = "" if threshold is None else f" at {threshold:g}"
    title = f"{one} and {other}{at}, and the difference from one to the other"
    show(title, one_below_the_other(result.rename(names)), up_to=last_key)
    print(f"{_INTERVALS}\n")


def _count_missing(inputs: _Inputs, columns: Iterable[str | None]) -> dict[str, int]:
    """The number of rows that are null or NaN, by column."""
    missing: list[pl.Expr] = []
    for column in columns:
        if column is not None:
            values = pl.col(column)
            if inputs.schema[column].is_float():
                values = values.fill_nan(None)
            missing.append(values.null_count())
    return inputs.data.select(missing).collect().row(0, named=True)


def metrics(options: Namespace) -> int:
    """The list of metrics, or the definitions of some."""
    if options.name:
        for name in options.name:
            print(f"{definition_of(name)}\n")
        return 0
    every = catalogue()
    for kind in every["kind"].unique(maintain_order=True):
        of_kind = every.filter(kind=kind)
        ranges = [f"{low:g} to {high:g}" for low, high in of_kind.select("lower", "upper").rows()]
        formula = pl.col("formula").fill_null("(several lines)")
        show(f"Metrics of kind {kind}", of_kind.select("name", formula, pl.Series("range", ranges), "direction"))
    print("`tidyfair metrics NAME` shows a definition as it is executed.")
    return 0


def datasets(options: Namespace) -> int:
    """The example data, which no one need download."""
    if options.name is None:
        description = {"name": "lending", "rows": "as many as asked for", "what": "simulated decisions on loans"}
        show("Example data", pl.DataFrame([description]))
        return 0
    if options.name != "lending":
        kind = "data set"
        raise ArgumentError.unknown(kind, options.name, ["lending"])
    files = _files(options)
    data = lending(options.rows)
    if files:
        write(data, files["output"])
    else:
        show(f"lending({options.rows})", data.head(10))
    return 0


@dataclass(frozen=True)
class _Inputs:
    """The rows of a file, the kind of their predictions, and the options of counting and reading."""

    data: pl.LazyFrame
    schema: pl.Schema
    truth: str | None
    estimate: str | None
    features: list[Feature]
    kind: Predictions
    counting: dict[str, Any]
    reading: dict[str, Any]


def _groups(options: Namespace) -> Groups:
    """The groups that are compared."""
    return Groups.read("audit", options.min_n, options.min_share, options.unknown, options.unknown_values)


def _inputs(options: Namespace, *, quiet: bool, scores_alone: bool = False) -> _Inputs:
    """The file, or the example if there is none, with its columns and options checked."""
    _groups(options)
    given: dict[str, Any] = {flag: value for flag, value in vars(options).items() if value is not None}
    if options.file is None:
        given = _example_for(given) | given
        data = lending().lazy()
        if not quiet:
            print("Example data: 5,000 simulated decisions on loans, tidyfair.datasets.lending().\n")
    else:
        data = watched(scan(options.file))
    schema = _schema(data)
    _check_columns(given, schema)
    if not scores_alone and "probs" in given and given.keys().isdisjoint({"threshold", "estimate"}):
        msg = "`probs` needs `threshold`, at or above which the event is selected, or decisions as `estimate`."
        raise ArgumentError(msg)
    kind = _kind(data, given)
    features: list[Feature] = []
    for text in dict.fromkeys(given.get("by", [])):
        features.append(columns_of(text, schema.names(), "by"))
    counting = {
        "group_by": given.get("group_by"),
        "probs": given.get("probs"),
        "threshold": given.get("threshold"),
        "case_weights": given.get("weights"),
    }
    reading = _reading(given, kind, schema)
    return _Inputs(data, schema, given.get("truth"), given.get("estimate"), features, kind, counting, reading)


def _example_for(given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the example, without its decisions where a threshold makes others."""
    example = dict(_EXAMPLE)
    if "threshold" in given:
        del example["estimate"]
    return example


def _check_columns(given: Mapping[str, Any], schema: pl.Schema) -> None:
    """Refuse columns that the file does not have."""
    for flag in _COLUMNS:
        value = given.get(flag, ())
        columns = [value] if isinstance(value, str) else value
        for column in columns:
            if column not in schema:
                raise ColumnError.missing(column, flag, schema)


def _reading(given: Mapping[str, Any], kind: Predictions, schema: pl.Schema) -> dict[str, Any]:
    """The options by which labels are read."""
    if "pos_label" in given:
        column = given.get("truth") or given.get("estimate")
        dtype = schema[column] if column else pl.Boolean()
        return {"pos_label": _as_label(given["pos_label"], dtype)}
    # of more than two labels, disparities of averages can hide those that cancel
    return {} if kind == "numbers" else {"estimator": "one_vs_rest"}


@telling("opened the file")
def _schema(data: pl.LazyFrame) -> pl.Schema:
    """The columns of a file."""
    return data.collect_schema()


def _kind(data: pl.LazyFrame, given: dict[str, Any]) -> Predictions:
    """The kind of predictions; whole numbers may be labels or a measurement, and `read_as` says which."""
    read_as = given.get("read_as")
    if read_as == "numbers":
        of_labels = [f"`{flag}`" for flag in ("probs", "threshold", "pos_label") if flag in given]
        if of_labels:
            msg = f"`read_as=numbers` goes without {' and '.join(of_labels)}, which are about labels."
            raise ArgumentError(msg)
        return "numbers"
    # what a threshold makes are labels
    options = {**given, "labels": given.get("threshold", read_as)}
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


def _as_label(text: str, dtype: pl.DataType) -> object:
    """The label that a text stands for in a column of this dtype."""
    if dtype == pl.Boolean and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if dtype == pl.Boolean or dtype.is_numeric():
        with suppress(ValueError):
            return int(text)  # a float would lose digits
        with suppress(ValueError):
            number = float(text)
            return int(number) if number.is_integer() else number
    return text


def _decided(inputs: _Inputs, threshold: float, scores: Mapping[str, str]) -> pl.LazyFrame:
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


def _check_scores(inputs: _Inputs, threshold: float, column: str, flag: str) -> None:
    """Refuse a column that a threshold cannot cut."""
    if not inputs.schema[column].is_numeric():
        msg = f"`{flag}`: the column {column!r} is {inputs.schema[column]}; `threshold` needs numbers."
        raise ColumnError(msg)
    cut = Cut("threshold", (threshold,))
    if cut.is_of_probabilities:
        low, high = _range_of(inputs.data, column)
        cut.check_scores(low, high, column, flag)


def _range_of(data: pl.LazyFrame, column: str) -> tuple[Any, Any]:
    """The smallest and the largest value of a column."""
    value = pl.col(column)
    return data.select(value.min().alias("low"), value.max().alias("high")).collect().row(0)


def _check_labels(inputs: _Inputs, predictions: Mapping[str, str]) -> None:
    """Refuse scores where labels are read."""
    for flag, column in predictions.items():
        value = pl.col(column)
        if inputs.schema[column].is_float() and inputs.data.select((value != value.round()).any()).collect().item():
            msg = f"`{flag}`: {column!r} holds numbers that are not whole: decisions are made of scores by `threshold`."
            raise ColumnError(msg)


def _note_threshold(data: pl.LazyFrame, threshold: float, columns: Sequence[str]) -> None:
    """Print which scores are all on one side of the threshold."""
    for column in columns:
        lowest, highest = _range_of(data, column)
        if lowest is not None and (highest < threshold or lowest >= threshold):
            who = "nobody" if highest < threshold else "everybody"
            ends = f"{lowest:.3g} to {highest:.3g}"
            note(f"{who} is selected at --threshold {threshold:g}: the scores {column!r} are from {ends}.")


def _files(options: Namespace) -> dict[str, Path]:
    """The files to be written, by flag; refuses files that would overwrite each other or the input."""
    files: dict[str, Path] = {}
    for flag in (*PAGES, "output", "output_groups"):
        file = getattr(options, flag, None)
        if file is not None:
            files[flag] = file
    check_outputs(files, getattr(options, "file", None))
    return files
