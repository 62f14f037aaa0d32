"""The command line: `tidyfair audit` and its companions."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

import polars as pl

from tidyfair.audits.usual_metrics import LEAST_ROWS
from tidyfair.cli import commands
from tidyfair.cli.terminal import complain, unwatch
from tidyfair.errors import TidyfairError
from tidyfair.escapes import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["main"]

_AUDIT = """\
examples:
  tidyfair audit
      the example data: simulated decisions on loans
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --by sex --by race:sex --group-by fold
      a file of yours, everything for each fold; race:sex are the intersections
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --fail-if 'equalized_odds(race) > 0.1'
      ends with 3 if the disparity is larger for sure, with 4 if it is not known well enough
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --fail-if 'recall_group_minimum(race) < 0.8'
      the same of what should be large: the recall of the group where it is lowest
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score --threshold 0.5 --by sex --output result.csv
      scores and the decisions made of them, the result written to a file
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --metric predictive_equality --min-n 30
      one more disparity, and none of groups of fewer than 30 rows
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --output-groups groups.csv
      the values of each group written to a file
  tidyfair audit stays.csv --truth days --estimate predicted_days --by sex --read-as numbers
      whole numbers that are a measurement
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --html audit.html --markdown card.md
      a page to be mailed, and a text for a model card
  tidyfair audit hiring.csv --as nyc_ll144 --estimate hired --by sex --by race --markdown audit.md
      the table that a rule asks for; --as list shows which there are
"""
_REPORT = """\
examples:
  tidyfair report
      the example data, as report.html
  tidyfair report predictions.parquet --truth obs --estimate pred --by race --html audit.html
      a file of yours as a page that opens without a network
"""
_COMPARE = """\
examples:
  tidyfair compare predictions.parquet --truth obs --one old --other new --by race
      two columns of predictions of the same rows, and the difference from one to the other
  tidyfair compare scores.csv --truth repaid --pos-label yes --one old_score --other new_score --threshold 0.5
      decisions made of the scores of both, without looking at groups
"""
_METRICS = """\
examples:
  tidyfair metrics
      everything, with formulas
  tidyfair metrics sens equalized_odds
      two definitions, as they are executed
"""
_DATASETS = """\
examples:
  tidyfair datasets
      what there is
  tidyfair datasets lending --rows 1000 --output loans.csv
      a thousand rows in a file
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    0 is success, 2 bad usage or data that cannot be read; with `--fail-if` 3 is a disparity that fails its limit, and 4
    that there is not enough evidence.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # characters that a terminal lacks are escaped
            stream.reconfigure(errors="backslashreplace")
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    given = sys.argv[1:] if arguments is None else arguments
    options.line = shlex.join(["tidyfair", *given])
    try:
        return options.run(options)
    except BrokenPipeError:
        # the reader of the output has gone, which is no error; neither is the flush of Python at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (TidyfairError, OSError, pl.exceptions.PolarsError) as error:
        message = _as_flags(str(error), vars(options))
        for note in getattr(error, "__notes__", ()):
            message += f" ({note})"
        complain(message)
        return 2
    finally:
        unwatch()
    return 0


class _StoreOnce(argparse.Action):
    """Store a value, and refuse a second one instead of taking the last."""

    used = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if self.used:
            parser.error(f"{option_string or self.dest} is given twice, and takes one value")
        self.used = True
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors repeat arguments without control characters, and whose options are given once."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.register("action", None, _StoreOnce)

    def error(self, message: str) -> Never:
        super().error(visible(message))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tidyfair", description="Group performance and fairness of predictions.")
    parser.add_argument("--version", action="version", version=f"tidyfair {version('tidyfair')}")
    subparsers = parser.add_subparsers(dest="command", metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, examples: str
    ) -> argparse.ArgumentParser:
        subparser = subparsers.add_parser(
            name, help=text, description=text, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        subparser.set_defaults(run=run)
        return subparser

    audit = command("audit", commands.audit, "rates of groups and disparities of a file of predictions", _AUDIT)
    _add_data(audit)
    _add_predictions(audit)
    _add_groups(audit)
    _add_output(audit, "metrics of all rows and disparities, with their intervals,")
    _add_output(audit, "values of groups, with their intervals,", "--output-groups")
    _add_pages(audit, None)
    _add_named(audit)
    report = command("report", commands.audit, "an audit as one page that opens without a network", _REPORT)
    _add_data(report)
    _add_predictions(report)
    _add_pages(report, Path("report.html"))
    report.set_defaults(group_by=None)
    compare = command("compare", commands.compare, "two models that predict the same rows", _COMPARE)
    _add_data(compare, example=False)
    for name in ("one", "other"):
        what = "column of the predictions of a model; of scores with --threshold"
        compare.add_argument(f"--{name}", metavar="COLUMN", required=True, help=what)
    _add_groups(compare)
    _add_output(compare, "the comparison")
    metrics = command("metrics", commands.metrics, "the metrics there are, and their formulas", _METRICS)
    metrics.add_argument("name", nargs="*", help="metrics whose definition is shown")
    datasets = command("datasets", commands.datasets, "the example data", _DATASETS)
    datasets.add_argument("name", nargs="?", help="the data to show, or to write")
    datasets.add_argument("--rows", type=int, default=5_000, help="how many rows there are")
    _add_output(datasets, "the rows")
    return parser


def _add_data(parser: argparse.ArgumentParser, *, example: bool = True) -> None:
    left_out = "; the example data where left out" if example else ""
    kinds = (
        "parquet, csv or ndjson, or a quoted pattern such as 'part-*.csv'; the name of an existing file is no pattern"
    )
    parser.add_argument("file", nargs="?" if example else None, type=Path, help=f"{kinds}{left_out}")
    parser.add_argument("--truth", metavar="COLUMN", help="column of the true labels, or numbers")
    feature = "a sensitive feature, or an intersection; repeat for more"
    parser.add_argument("--by", action="append", metavar="COLUMN[:COLUMN]", help=feature)
    parser.add_argument("--pos-label", metavar="LABEL", help="the label that is the event")
    parser.add_argument("--threshold", type=float, metavar="NUMBER", help="scores at or above it select the event")
    parser.add_argument("--weights", metavar="COLUMN", help="column of case weights")
    few = "values of groups of fewer rows are neither shown nor written, and disparities not taken over them"
    parser.add_argument("--min-n", type=int, metavar="ROWS", help=f"{few} (default: {LEAST_ROWS})")
    rare = "disparities are not taken over groups with a smaller share of the rows, such as 0.02"
    parser.add_argument("--min-share", type=float, metavar="SHARE", help=rare)
    unknown = "rows whose group is missing or unknown: counted apart, a group like all others, or dropped"
    choices = ["apart", "group", "drop"]
    parser.add_argument("--unknown", choices=choices, help=f"{unknown} (default: apart)")
    values = "a value that means unknown, beside missing ones; repeat for more"
    parser.add_argument("--unknown-value", action="append", dest="unknown_values", metavar="VALUE", help=values)
    whole = "what whole numbers are, where columns leave it open"
    parser.add_argument("--read-as", choices=["labels", "numbers"], help=whole)


def _add_predictions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--estimate", metavar="COLUMN", help="column of the predicted labels, or numbers")
    scores = "column of scores, such as probabilities of the event; with --threshold, or with decisions as --estimate"
    parser.add_argument("--probs", metavar="COLUMN", help=scores)
    more = "a comparison of groups beside the usual ones, such as predictive_equality; repeat for more"
    parser.add_argument("--metric", action="append", metavar="NAME", help=more)
    limit = "a comparison of groups and where it fails, such as 'equalized_odds(race) > 0.1'; repeat for more"
    parser.add_argument("--fail-if", action="append", metavar="CONDITION", help=limit)
    sure = "how sure a verdict of --fail-if must be, between 0.5 and 1; 0.95 where left out"
    parser.add_argument("--confidence", type=float, metavar="NUMBER", help=sure)


def _add_groups(parser: argparse.ArgumentParser) -> None:
    outer = "outer groups such as folds, each looked at on its own; repeat for more"
    parser.add_argument("--group-by", action="append", metavar="COLUMN", help=outer)


def _add_named(parser: argparse.ArgumentParser) -> None:
    named = (
        "the tables of a named audit, such as nyc_ll144, which has defaults of its own, in place of the usual ones; "
        "`list` shows all names"
    )
    parser.add_argument("--as", metavar="NAME", help=named)
    reference = "with --as, the group that others of a feature are compared with, such as race=White; repeat for more"
    parser.add_argument("--to", action="append", metavar="FEATURE=GROUP", help=reference)
    segments = (
        "with --as, a column whose groups are the segments within which like is compared with like; repeat for more"
    )
    parser.add_argument("--within", action="append", metavar="COLUMN", help=segments)


def _add_output(parser: argparse.ArgumentParser, what: str, flag: str = "--output") -> None:
    written = (
        f"write {what} to .csv, .parquet or .json instead of printing; in .csv an apostrophe is put before text that a "
        "spreadsheet would take for a formula"
    )
    parser.add_argument(flag, type=Path, metavar="FILE", help=written)


def _add_pages(parser: argparse.ArgumentParser, page: Path | None) -> None:
    left_out = f"; {page} where left out" if page else ""
    html = f"write one page that opens anywhere{left_out}"
    parser.add_argument("--html", type=Path, metavar="FILE", default=page, help=html)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the same in Markdown, for a model card")


def _as_flags(message: str, flags: Iterable[str]) -> str:
    """A message of the library in the words of the command line."""
    names = {"case_weights": "weights"}
    for flag in flags:
        names[flag] = flag.replace("_", "-")

    def as_flag(match: re.Match[str]) -> str:
        flag, value = f"--{names[match['name']]}", match["value"]
        return f"`{flag} {value}`" if value else f"`{flag}`"

    return re.sub(rf"`(?P<name>{'|'.join(names)})(=(?P<value>[^`]*))?`", as_flag, message)
