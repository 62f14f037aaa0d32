"""The command line: `tidyfair audit` shows per-group rates and disparities of a file of predictions."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair import fairness
from tidyfair.columns import telling
from tidyfair.contrasts import difference
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, TidyfairError, UndefinedWarning
from tidyfair.fairness import (
    demographic_parity,
    equal_opportunity,
    equalized_odds,
    new_groupwise_metric,
    predictive_parity,
)
from tidyfair.gates import Gate, check
from tidyfair.labels import levels_of
from tidyfair.metric_sets import GroupwiseFactory, metric_set
from tidyfair.metrics.classification import accuracy, base_rate, precision, selection_rate, sens, spec
from tidyfair.tallies import LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidyfair.gates import Side
    from tidyfair.metric_sets import GroupwiseMetric, Metric
    from tidyfair.tallies import Tally

__all__ = ["main"]

_READERS = {".parquet": pl.scan_parquet, ".csv": pl.scan_csv, ".ndjson": pl.scan_ndjson, ".jsonl": pl.scan_ndjson}
_RATES: tuple[Metric, ...] = (base_rate, selection_rate, accuracy, sens, spec, precision)
_PARITIES = (demographic_parity, equal_opportunity, equalized_odds, predictive_parity)
_MOST_ROWS = 200
_PATIENCE = 1.0
"""Seconds after which a terminal is told that rows are still being read."""
_ERASED = "\x1b[2K"
_CONDITION = re.compile(r"\s*(?P<name>\w+)\((?P<by>[^()]+)\)\s*(?P<side>[<>])\s*(?P<limit>\d*\.?\d+)\s*")
_EXAMPLE: dict[str, Any] = {
    "truth": "repaid", "estimate": "approved", "pos_label": "yes", "by": ["sex", "race"],
    "group_by": None, "weights": None, "probs": None, "threshold": None,
}  # fmt: skip
_EXAMPLES = """\
examples:
  tidyfair audit
      the example data: simulated decisions on loans
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --by sex --by race:sex --group-by fold
      a file of yours, every disparity for each fold; race:sex are the intersections
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --fail-if 'equalized_odds(race) > 0.1'
      ends with 3 if the disparity is larger for sure, with 4 if it is not known well enough
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score --threshold 0.5 --by sex --output result.csv
      decisions made from scores, the result written to a file
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    0 is success, 2 bad usage or data that cannot be read; with `--fail-if` 3 is a disparity that fails its limit, and 4
    that there is not enough evidence.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    try:
        return _audit(options)
    except BrokenPipeError:
        # the reader of the output left, which is no error of ours; nor is what Python flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (TidyfairError, OSError, pl.exceptions.PolarsError) as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        print(f"tidyfair: {_as_flags(str(error))}{notes}", file=sys.stderr)
        return 2
    finally:
        _unwatch()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidyfair", description="Group performance and fairness of predictions.")
    parser.add_argument("--version", action="version", version=f"tidyfair {version('tidyfair')}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    audit = commands.add_parser(
        "audit", help="per-group rates and disparities of a file of predictions", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    audit.add_argument("file", nargs="?", type=Path, help="parquet, csv or ndjson; the example data where left out")
    audit.add_argument("--truth", metavar="COLUMN", help="column of the true labels")
    audit.add_argument("--estimate", metavar="COLUMN", help="column of the predicted labels")
    audit.add_argument("--probs", metavar="COLUMN", help="column of scores, used with --threshold")
    audit.add_argument("--threshold", type=float, metavar="NUMBER", help="scores at or above it are positive")
    audit.add_argument(
        "--by",
        action="append",
        metavar="COLUMN[:COLUMN]",
        help="a sensitive feature, or an intersection; repeat for more",
    )
    audit.add_argument(
        "--group-by", action="append", metavar="COLUMN", help="outer groups such as folds; repeat for more"
    )
    audit.add_argument("--pos-label", metavar="LABEL", help="the label that is the event")
    audit.add_argument("--weights", metavar="COLUMN", help="column of case weights")
    audit.add_argument(
        "--fail-if",
        action="append",
        metavar="CONDITION",
        help="a disparity and its limit, such as 'equalized_odds(race) > 0.1'; repeat for more",
    )
    audit.add_argument("--confidence", type=float, default=0.95, help="how sure a verdict of --fail-if must be")
    audit.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the metrics and disparities to .csv, .parquet or .json instead of printing them",
    )
    return parser


def _audit(options: argparse.Namespace) -> int:
    if options.file is None:
        data, given = lending().lazy(), _EXAMPLE | {name: value for name, value in vars(options).items() if value}
        if not options.output:
            print("Example data: 5,000 simulated decisions on loans, tidyfair.datasets.lending().\n")
    else:
        data, given = _watched(_scan(options.file)), vars(options)
    if not given["by"]:
        msg = "Name at least one sensitive feature with --by."
        raise ArgumentError(msg)
    if given["probs"] and given["threshold"] is None:
        msg = "`probs` needs `threshold`: scores at or above it are positive."
        raise ArgumentError(msg)
    writer = _writer(options.output) if options.output else None
    gate = _gate(options.fail_if, options.confidence) if options.fail_if else None
    with telling("opened the file"):
        names = data.collect_schema().names()
    features = [[text] if text in names else text.split(":") for text in dict.fromkeys(given["by"])]
    # without a truth, what can be said is who is selected
    rates, parities = (_RATES, _PARITIES) if given["truth"] else ((selection_rate,), (demographic_parity,))
    compared = new_groupwise_metric(metric_set(*rates), "rates", difference())
    by_group = metric_set(*rates, *(compared(*columns) for columns in features))
    results = metric_set(*rates, *(parity(*columns) for parity in parities for columns in features))
    counting = {"group_by": given["group_by"], "case_weights": given["weights"]}
    counting |= {"probs": given["probs"], "threshold": given["threshold"]}
    tally = results.tally(data, given["truth"], given["estimate"], **counting)
    # of more than two labels, disparities of averages can hide those that cancel
    reading: dict[str, Any] = {"estimator": "one_vs_rest"}
    if given["pos_label"] is not None:
        reading = {"pos_label": _as_label(given["pos_label"], tally)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndefinedWarning)
        result = results.compute(tally, explain=True, **reading)
    if writer:
        writer(result)
    else:
        outer = [key.column.name for key in tally.outer]
        _print("Rates by group", _wide(by_group.compute_by_group(tally, **reading), outer))
        disparities = result.filter(pl.col(".by").is_not_null())
        said = {
            ".level": disparities[".level"].count(),
            ".groups_left_out": disparities[".groups_left_out"].list.len().sum(),
        }
        says_nothing = [name for name, count in said.items() if not count]
        _print("Disparities, and the groups that carry them", disparities.drop(".n", ".status", *says_nothing))
    for warning in caught:
        print(f"note: {str(warning.message).partition(' (on_undefined')[0]}", file=sys.stderr)
    return _judged(gate, data, given, counting, reading) if gate else 0


def _gate(conditions: Sequence[str], confidence: float) -> Gate:
    """The gate that conditions describe; they are parsed, never evaluated."""
    made: list[tuple[GroupwiseMetric, Side, float]] = []
    for condition in conditions:
        found = _CONDITION.fullmatch(condition)
        if found is None:
            msg = f"--fail-if: {condition!r} is no condition such as 'equalized_odds(race) > 0.1'."
            raise ArgumentError(msg)
        factory = getattr(fairness, found["name"], None) if found["name"] in fairness.__all__ else None
        if not isinstance(factory, GroupwiseFactory):
            names = [name for name in fairness.__all__ if isinstance(getattr(fairness, name), GroupwiseFactory)]
            kind = "comparison of groups"
            raise ArgumentError.unknown(kind, found["name"], names)
        columns = [column.strip() for column in re.split("[:,]", found["by"])]
        metric = factory(*columns)
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
    event = {name: value for name, value in reading.items() if name == "pos_label"}
    verdicts = gate(data, given["truth"], given["estimate"], **counting, **event, on_undefined="ignore")
    hidden = [".estimator", ".n", ".status", ".std_error", ".method", ".level"]
    none_left_out = [".groups_left_out"] * (not verdicts[".groups_left_out"].list.len().sum())
    _print("Verdicts", verdicts.drop(*hidden, *none_left_out))
    found = set(verdicts[".verdict"])
    return 3 if "fail" in found else 4 if "not enough evidence" in found else 0


def _scan(file: Path) -> pl.LazyFrame:
    if file.suffix not in _READERS:
        raise ArgumentError.unknown("kind of file", file.suffix, _READERS)
    return _READERS[file.suffix](file)


def _watched(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows, of which a terminal is told how many have been read, where that takes a while."""
    if not sys.stderr.isatty():
        return rows
    started, read = time.monotonic(), 0

    def passed_on(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal read
        read += len(batch)
        if time.monotonic() - started > _PATIENCE:
            print(f"{read:,} rows read", end="\r", file=sys.stderr, flush=True)
        return batch

    return rows.map_batches(passed_on, streamable=True, validate_output_schema=False)


def _unwatch() -> None:
    """Erase what a terminal was told of rows."""
    if sys.stderr.isatty():
        print(_ERASED, end="", file=sys.stderr, flush=True)


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

    def write(result: pl.DataFrame) -> None:
        # beside its place first, so that there is never half a file
        part = file.with_name(f".{file.name}.part")
        try:
            with telling("wrote the result"):
                writers[file.suffix](result, part)
                part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    return write


def _as_label(text: str, tally: Tally) -> object:
    """The label that a text means: the one that is written so, or the number it is."""
    values = [value for name in LABELS for value in (*tally.seen[name], *levels_of(tally.cells.schema[name]))]
    for value in values:
        if str(value).casefold() == text.casefold() if isinstance(value, bool) else str(value) == text:
            return value
    if values and not isinstance(values[0], str):
        with contextlib.suppress(ValueError):
            return float(text)
    return text


def _as_flags(message: str) -> str:
    """A message of the library in the words of the command line."""
    flags = {"case_weights": "weights", "group_by": "group-by", "pos_label": "pos-label"}
    named = "|".join(["truth", "estimate", "probs", "threshold", "by", *flags])
    return re.sub(
        rf"`({named})(=?)", lambda found: f"`--{flags.get(found[1], found[1])}{' ' * bool(found[2])}", message
    )


def _wide(groups: pl.DataFrame, outer: Sequence[str]) -> pl.DataFrame:
    """Per-group values with one column for each metric, for people to read."""
    index = [*outer, ".by", ".group", *([".level"] if ".level" in groups.columns else [])]
    names = groups[".metric"].unique(maintain_order=True).to_list()
    wanted = [pl.col(".estimate").filter(pl.col(".metric") == name).first().alias(name) for name in names]
    wide = groups.group_by(index, maintain_order=True).agg(pl.col(".n").max(), *wanted)
    return wide.with_columns(pl.col(".by").fill_null("all"), pl.col(".group").fill_null("all"))


def _print(title: str, table: pl.DataFrame) -> None:
    _unwatch()
    box = "UTF8_FULL_CONDENSED" if (sys.stdout.encoding or "").lower().startswith("utf") else "ASCII_FULL_CONDENSED"
    width = max(80, shutil.get_terminal_size((120, 24)).columns)
    with pl.Config(
        tbl_rows=_MOST_ROWS, tbl_cols=-1, tbl_width_chars=width, tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True, tbl_formatting=box, fmt_str_lengths=40, float_precision=3,
        fmt_table_cell_list_len=10,
    ):  # fmt: skip
        print(f"{title}\n{table}")
    if len(table) > _MOST_ROWS:
        print(f"({len(table):,} rows in all; --output writes them to a file)")
    print()
