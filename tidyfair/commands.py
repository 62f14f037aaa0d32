"""What each command of the command line does; each returns the code to exit with."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair import fairness
from tidyfair.audits import Audit
from tidyfair.catalogue import catalogue, definition_of
from tidyfair.changes import compare_models
from tidyfair.columns import telling
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, UndefinedWarning
from tidyfair.gates import Gate, check
from tidyfair.labels import levels_of
from tidyfair.metric_sets import GroupwiseFactory, metric_set
from tidyfair.reports import report
from tidyfair.tallies import LABELS
from tidyfair.terminal import show, watched

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tidyfair.audits import Feature
    from tidyfair.gates import Side
    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.tallies import Tally

__all__: list[str] = []

_READERS = {".parquet": pl.scan_parquet, ".csv": pl.scan_csv, ".ndjson": pl.scan_ndjson, ".jsonl": pl.scan_ndjson}
_CONDITION = re.compile(r"\s*(?P<name>\w+)\((?P<by>[^()]+)\)\s*(?P<side>[<>])\s*(?P<limit>\d*\.?\d+(?:[eE]-?\d+)?)\s*")
_EXAMPLE: dict[str, Any] = {
    "truth": "repaid", "estimate": "approved", "pos_label": "yes", "by": ["sex", "race"],
    "group_by": None, "weights": None, "probs": None, "threshold": None,
}  # fmt: skip


def audit(options: Namespace) -> int:
    """Rates by group and disparities of a file of predictions; verdicts, pages and files where they are asked for."""
    places = [place for place in (options.output, options.html, options.markdown) if place]
    data, given = _opened(options, quiet=bool(places))
    _check_places(options)
    names = _names(data)
    gate = _gate(options.fail_if, options.confidence, names) if options.fail_if else None
    features: list[Feature] = [_feature(text, names) for text in dict.fromkeys(given["by"])]
    audited = Audit.of(features, "labels" if given["truth"] else "selections")
    counting = {"group_by": given["group_by"]} | _counting(given)
    tally = audited.results.tally(data, given["truth"], given["estimate"], **counting)
    # of more than two labels, disparities of averages can hide those that cancel
    reading: dict[str, Any] = {"estimator": "one_vs_rest"}
    if given["pos_label"] is not None:
        reading = {"pos_label": _as_label(given["pos_label"], tally)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedWarning)
        result = audited.results.compute(tally, explain=True, **reading)
    if pages := [place for place in (options.html, options.markdown) if place]:
        told = report(data, given["truth"], given["estimate"], by=features, gate=gate, **counting, **_event(reading))
        for place in pages:
            _save(told.save, place)
            print(f"{place} is written.", file=sys.stderr)
    if options.output:
        _writer(options.output)(result)
    if not places:
        groups = audited.groups.compute_by_group(tally, **reading)
        show("Rates by group", _wide(groups, [key.column.name for key in tally.outer]))
        show("Disparities, and the groups that carry them", _with_something_to_say(result))
    for warning in caught:
        print(f"note: {str(warning.message).partition(' (on_undefined')[0]}", file=sys.stderr)
    return _judged(gate, data, given, counting, reading) if gate else 0


def _with_something_to_say(result: pl.DataFrame) -> pl.DataFrame:
    """Disparities without the columns that are empty."""
    disparities = result.filter(pl.col(".by").is_not_null())
    said = {
        ".level": disparities[".level"].count(),
        ".groups_left_out": disparities[".groups_left_out"].list.len().sum(),
    }
    return disparities.drop(".n", ".status", *(name for name, count in said.items() if not count))


def compare(options: Namespace) -> int:
    """Two models that predict the same rows, side by side."""
    data, given = _opened(options, quiet=False)
    one, other = given["one"], given["other"]
    names = _names(data)
    features: list[Feature] = [_feature(text, names) for text in dict.fromkeys(given["by"])]
    audited = Audit.of(features, "labels" if given["truth"] else "selections")
    tally = metric_set(*audited.results).tally(data, given["truth"], one)
    event = {} if given["pos_label"] is None else {"pos_label": _as_label(given["pos_label"], tally)}
    compared = compare_models(audited.results)
    found: pl.DataFrame = compared(data, given["truth"], one=one, other=other, **event, on_undefined="ignore")
    show(f"{one}, {other}, and the change from one to the other", found.drop(".estimator"))
    return 0


def metrics(options: Namespace) -> int:
    """What there is, or the definition of some of it."""
    if options.name:
        for name in options.name:
            print(f"{definition_of(name)}\n")
        return 0
    every = catalogue()
    for kind in every["kind"].unique(maintain_order=True):
        of_kind = every.filter(kind=kind)
        ends = [f"{low:g} to {high:g}" for low, high in of_kind.select("lower", "upper").rows()]
        formula = pl.col("formula").fill_null("(several lines)")
        show(f"Metrics of kind {kind}", of_kind.select("name", formula, pl.Series("range", ends), "direction"))
    print("`tidyfair metrics NAME` shows a definition as it is executed.")
    return 0


def datasets(options: Namespace) -> int:
    """The example data, which no one need download."""
    if options.name is None:
        about = {"name": "lending", "rows": "as many as asked for", "what": "simulated decisions on loans"}
        show("Example data", pl.DataFrame([about]))
        return 0
    if options.name != "lending":
        kind = "data set"
        raise ArgumentError.unknown(kind, options.name, ["lending"])
    data = lending(options.rows)
    if options.output:
        _writer(options.output)(data)
    else:
        show(f"lending({options.rows})", data.head(10))
    return 0


def _opened(options: Namespace, *, quiet: bool) -> tuple[pl.LazyFrame, dict[str, Any]]:
    """The rows of the file, or of the example, and the options with those that are the example's."""
    if options.file is None:
        given = _EXAMPLE | {name: value for name, value in vars(options).items() if value}
        if not quiet:
            print("Example data: 5,000 simulated decisions on loans, tidyfair.datasets.lending().\n")
        data = lending().lazy()
    else:
        given, data = vars(options), watched(_scan(options.file))
    if not given["by"]:
        msg = "Name at least one sensitive feature with --by."
        raise ArgumentError(msg)
    if given.get("probs") and given["threshold"] is None:
        msg = "`probs` needs `threshold`: scores at or above it are positive."
        raise ArgumentError(msg)
    return data, given


def _feature(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a feature; a colon is part of a name where there is such a column."""
    return (text,) if text in names else tuple(part.strip() for part in re.split("[:,]", text))


@telling("opened the file")
def _names(data: pl.LazyFrame) -> list[str]:
    return data.collect_schema().names()


def _check_places(options: Namespace) -> None:
    """Refuse to write where there is no folder, over the data, or what a file's name says that it is not."""
    kinds = {".html": options.html, ".md": options.markdown}
    if options.output:
        _writer(options.output)
        kinds[options.output.suffix] = options.output
    for kind, place in kinds.items():
        if place is None:
            continue
        if place.suffix != kind:
            msg = f"{place} is to hold a page of kind {kind}; call it so."
            raise ArgumentError(msg)
        if options.file is not None and place.resolve() == options.file.resolve():
            msg = f"{place} is the file of the data; write to another one."
            raise ArgumentError(msg)


def _counting(given: dict[str, Any]) -> dict[str, Any]:
    return {"case_weights": given["weights"], "probs": given["probs"], "threshold": given["threshold"]}


def _event(reading: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reading.items() if name == "pos_label"}


def _gate(conditions: Sequence[str], confidence: float, names: Sequence[str]) -> Gate:
    """The gate that conditions describe; they are parsed, never evaluated."""
    made: list[tuple[GroupwiseMetric, Side, float]] = []
    for condition in conditions:
        found = _CONDITION.fullmatch(condition)
        if found is None:
            example = "'equalized_odds(race) > 0.1', with < or > and a number"
            msg = f"--fail-if: {condition!r} is no condition such as {example}."
            raise ArgumentError(msg)
        factory = getattr(fairness, found["name"], None) if found["name"] in fairness.__all__ else None
        if not isinstance(factory, GroupwiseFactory):
            names = [name for name in fairness.__all__ if isinstance(getattr(fairness, name), GroupwiseFactory)]
            kind = "comparison of groups"
            raise ArgumentError.unknown(kind, found["name"], names)
        metric = factory(*_feature(found["by"].strip(), names))
        if any((metric.name, metric.by) == (other.name, other.by) for other, _, _ in made):
            msg = f"--fail-if: {condition!r} is a second limit of {metric.name}({metric.by.text}); give one."
            raise ArgumentError(msg)
        # what is larger than the limit is bad, and of ratios what is smaller
        made.append((metric, "below" if found["side"] == ">" else "above", float(found["limit"])))
    gates = [check(metric, **{side: limit}, confidence=confidence) for metric, side, limit in made]
    return Gate(
        metric_set(*(gate.metrics for gate in gates)),
        tuple(limit for gate in gates for limit in gate.limits),
        confidence,
    )


def _judged(
    gate: Gate, data: pl.LazyFrame, given: dict[str, Any], counting: dict[str, Any], reading: dict[str, Any]
) -> int:
    """Print the verdicts, and say by the exit code which is the worst."""
    verdicts = gate(data, given["truth"], given["estimate"], **counting, **_event(reading), on_undefined="ignore")
    hidden = [".estimator", ".n", ".status", ".std_error", ".method", ".level"]
    none_left_out = [".groups_left_out"] * (not verdicts[".groups_left_out"].list.len().sum())
    show("Verdicts", verdicts.drop(*hidden, *none_left_out))
    found = set(verdicts[".verdict"])
    return 3 if "fail" in found else 4 if "not enough evidence" in found else 0


def _scan(file: Path) -> pl.LazyFrame:
    kind = file.suffix.lower()
    if kind not in _READERS:
        raise ArgumentError.unknown("kind of file", file.suffix, _READERS)
    return _READERS[kind](file)


def _writer(file: Path) -> Callable[[pl.DataFrame], None]:
    def write_csv(result: pl.DataFrame, place: Path) -> None:
        result.with_columns(pl.col(pl.List(pl.String)).list.join(";")).write_csv(place)

    writers: dict[str, Callable[[pl.DataFrame, Path], None]] = {
        ".csv": write_csv,
        ".parquet": pl.DataFrame.write_parquet,
        ".json": pl.DataFrame.write_json,
    }
    if file.suffix not in writers:
        raise ArgumentError.unknown("kind of output", file.suffix, writers)

    return lambda result: _save(lambda place: writers[file.suffix](result, place), file)


def _save(write: Callable[[Path], object], file: Path) -> None:
    """Write beside the place first, so that there is never half a file."""
    if not file.parent.is_dir():
        msg = f"{file} cannot be written: there is no folder {str(file.parent)!r}."
        raise ArgumentError(msg)
    part = file.with_name(f".part-of-{file.name}")
    try:
        with telling("wrote the result"):
            write(part)
            part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _as_label(text: str, tally: Tally) -> object:
    """The label that a text means: the one that is written so, or the number it is."""
    values = [value for name in LABELS for value in (*tally.seen[name], *levels_of(tally.kinds[name]))]
    for value in values:
        if str(value).casefold() == text.casefold() if isinstance(value, bool) else str(value) == text:
            return value
    if values and not isinstance(values[0], str):
        with contextlib.suppress(ValueError):
            return float(text)
    return text


def _wide(groups: pl.DataFrame, outer: Sequence[str]) -> pl.DataFrame:
    """Per-group values with one column for each metric, for people to read."""
    index = [*outer, ".by", ".group", *([".level"] if ".level" in groups.columns else [])]
    names = groups[".metric"].unique(maintain_order=True).to_list()
    wanted = [pl.col(".estimate").filter(pl.col(".metric") == name).first().alias(name) for name in names]
    wide = groups.group_by(index, maintain_order=True).agg(pl.col(".n").max(), *wanted)
    return wide.with_columns(pl.col(".by").fill_null("all"), pl.col(".group").fill_null("all"))
