"""The commands and options of the command line, with their help."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from tidyfair.audits.usual_metrics import LEAST_ROWS
from tidyfair.cli import audit, catalogue, compare
from tidyfair.escapes import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__: list[str] = []

_METHODS = ("auto", "analytic", "exact", "bootstrap", "bayes", "none")
"""The ways to compute intervals; a page cannot do without."""
_EXIT_CODES = """\
exit codes:
  0  success; with --fail-if: every condition is shown not to hold
  2  a mistake in the call, or data that cannot be read
  3  a condition of --fail-if holds with the confidence asked for
  4  there is not enough evidence to decide some condition, and none fails
"""
_AUDIT = f"""\
{_EXIT_CODES}
examples:
  tidyfair audit
      the example data: simulated decisions on loans
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --by sex --by race:sex
      a file of yours; race:sex compares the intersections
  tidyfair audit data/ --truth obs --estimate pred --by race --group-by year
      a folder with year=2023/, year=2024/ …: the folders are the column year
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --group-by fold
      one row for each metric: pooled, mean, lowest and highest fold; --full shows each fold
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --fail-if 'equalized_odds(race) > 0.1' --fail-if 'accuracy < 0.7' --markdown "$GITHUB_STEP_SUMMARY"
      gates for a pipeline, of a disparity and of all rows, with a job summary
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --fail-if 'recall_group_minimum(race) < 0.8'
      the recall of the group where it is lowest
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score --threshold 0.5 --by sex --output result.csv
      scores, the decisions made of them, and the results in a file
  tidyfair audit large.parquet --truth repaid --probs score --threshold 0.5 --by sex --score-bins 1000
      millions of scores: areas under curves from counts in bins, in a fraction of the memory
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race=White --metric statistical_parity_difference
      two sides: one group, and everybody else
  tidyfair audit stays.csv --truth days --estimate predicted_days --by sex --read-as numbers
      whole numbers that are a measurement
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --html audit.html
      a page to be mailed
  tidyfair audit hiring.csv --as nyc_ll144 --estimate hired --by sex --by race --markdown audit.md
      the table that a rule asks for; --as list shows which there are
"""
_REPORT = f"""\
{_EXIT_CODES}
examples:
  tidyfair report
      the example data, as report.html
  tidyfair report predictions.parquet --truth obs --estimate pred --by race --html audit.html --markdown card.md
      a file of yours as a page that opens without a network, and as Markdown for a model card
"""
_COMPARE = f"""\
{_EXIT_CODES}
examples:
  tidyfair compare predictions.parquet --truth obs --one old --other new --by race
      two columns of predictions of the same rows, and the change from one to the other
  tidyfair compare scores.csv --truth repaid --pos-label yes --one old_score --other new_score --threshold 0.5
      decisions made of the scores of both, without looking at groups
  tidyfair compare predictions.parquet --truth obs --one old --other new --by race \\
      --fail-if 'change in accuracy < -0.01' --fail-if 'change in equalized_odds(race) > 0.02'
      fails where the new model is less accurate by more than 0.01, or less fair by more than 0.02
"""
_METRICS = """\
examples:
  tidyfair metrics
      all metrics, with formulas
  tidyfair metrics sens equalized_odds
      two of them explained: formula, range, source, disparities
"""
_DATASETS = """\
examples:
  tidyfair datasets
      what there is
  tidyfair datasets lending --rows 1000 --output loans.csv
      a thousand rows in a file
"""


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
        # an abbreviation would change its meaning when an option is added
        super().__init__(*args, allow_abbrev=False, **settings)
        self.register("action", None, _StoreOnce)

    def error(self, message: str) -> Never:
        super().error(visible(message))


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    every = _Parser(prog="tidyfair", description="Performance and fairness of predictions, by group.")
    every.add_argument("--version", action="version", version=f"tidyfair {version('tidyfair')}")
    subparsers = every.add_subparsers(dest="command", metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, examples: str
    ) -> argparse.ArgumentParser:
        subparser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        subparser.set_defaults(run=run)
        return subparser

    _add_audit(command("audit", audit.audit, "metrics and disparities of a file of predictions, by group", _AUDIT))
    _add_report(command("report", audit.audit, "an audit as one page that opens without a network", _REPORT))
    _add_compare(command("compare", compare.compare, "two models that predict the same rows", _COMPARE))
    metrics = command("metrics", catalogue.metrics, "the metrics there are, and what they mean", _METRICS)
    metrics.add_argument("name", nargs="*", help="metrics to explain")
    _add_files(metrics, {"output": "the list", "json": "the list"})
    datasets = command("datasets", catalogue.datasets, "the example data", _DATASETS)
    datasets.add_argument("name", nargs="?", help="the data to show, or to write")
    datasets.add_argument("--rows", type=int, default=5_000, help="the number of rows (default: 5000)")
    _add_files(datasets, {"output": "the rows"})
    return every


def _add_audit(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    _add_predictions(command)
    _add_counting(command)
    _add_groups(command)
    _add_intervals(command)
    simultaneous = "make the intervals of groups hold all at once"
    _group(command, "intervals").add_argument("--simultaneous", action="store_true", help=simultaneous)
    _add_verdicts(command, "'equalized_odds(race) > 0.1' or 'accuracy < 0.7'")
    _add_outer(command)
    full = "show the values of each outer group, and all groups of features that have many"
    _group(command, "output").add_argument("--full", action="store_true", help=full)
    _add_named(command)
    _add_files(
        command,
        {
            "output": "metrics of all rows and disparities, with their intervals,",
            "output_groups": "values of groups, with their intervals,",
            "html": "a page that opens anywhere",
            "markdown": "what the terminal shows, as Markdown",
            "json": "results, groups and verdicts",
        },
    )
    command.set_defaults(title=None)


def _add_report(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    _add_predictions(command)
    _add_counting(command)
    _add_groups(command)
    _add_intervals(command, methods=_METHODS[:-1])
    _add_verdicts(command, "'equalized_odds(race) > 0.1' or 'accuracy < 0.7'")
    output = _group(command, "output")
    output.add_argument("--title", metavar="TEXT", help="the title of the page")
    _add_files(
        command,
        {
            "html": "the page (default: report.html)",
            "markdown": "the same as Markdown, for a model card",
            "json": "results, groups and verdicts",
        },
    )
    command.set_defaults(html=Path("report.html"), group_by=None, simultaneous=False, full=False)


def _add_compare(command: argparse.ArgumentParser) -> None:
    _add_data(command, example=False)
    columns = _group(command, "columns")
    for name in ("one", "other"):
        what = "column of the predictions of a model; of scores with --threshold"
        columns.add_argument(f"--{name}", metavar="COLUMN", required=True, help=what)
    scores = "make decisions of scores: those at or above it select the event"
    columns.add_argument("--threshold", type=float, metavar="NUMBER", help=scores)
    _add_metric(command)
    _add_counting(command, of_scores=False)
    _add_groups(command)
    _add_intervals(command, methods=())
    _add_verdicts(command, "'change in accuracy < -0.01' or 'change in equalized_odds(race) > 0.02'")
    _add_outer(command)
    _add_files(
        command,
        {
            "output": "the comparison",
            "markdown": "what the terminal shows, as Markdown",
            "json": "the comparison and its verdicts",
        },
    )


def _group(command: argparse.ArgumentParser, title: str) -> Any:
    """The group of options of that title, made where there is none."""
    groups: Sequence[Any] = command._action_groups  # noqa: SLF001 - argparse has no public list of its groups
    for group in groups:
        if group.title == title:
            return group
    group = command.add_argument_group(title)
    group.register("action", None, _StoreOnce)
    return group


def _add_data(command: argparse.ArgumentParser, *, example: bool = True) -> None:
    left_out = "; the example data where left out" if example else ""
    kinds = (
        "parquet, csv, csv.gz or ndjson: a file, a folder, or a quoted pattern such as 'part-*.csv'; folders named "
        "column=value are columns, and the name of an existing file is no pattern"
    )
    command.add_argument("file", nargs="?" if example else None, type=Path, help=f"{kinds}{left_out}")
    columns = _group(command, "columns")
    columns.add_argument("--truth", metavar="COLUMN", help="column of the true labels, or numbers")
    feature = (
        "a sensitive feature; sex:race for intersections, race=White for one group and everybody else; repeat for more"
    )
    columns.add_argument("--by", action="append", metavar="FEATURE", help=feature)
    columns.add_argument("--pos-label", metavar="LABEL", help="the label that is the event")
    label = "a label, where the data do not hold all of them or not in order; repeat for each, in order"
    columns.add_argument("--label", action="append", dest="labels", metavar="LABEL", help=label)
    estimators = ["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"]
    average = "how more than two labels are read (default: one_vs_rest)"
    columns.add_argument("--estimator", choices=estimators, help=average)
    whole = "what whole numbers are, where columns leave it open"
    columns.add_argument("--read-as", choices=["labels", "numbers"], help=whole)


def _add_predictions(command: argparse.ArgumentParser) -> None:
    columns = _group(command, "columns")
    columns.add_argument("--estimate", metavar="COLUMN", help="column of the predicted labels, or numbers")
    scores = (
        "column of scores, such as probabilities of the event, beside decisions; with more than two labels "
        "LABEL=COLUMN, repeated for each"
    )
    columns.add_argument("--probs", action="append", metavar="COLUMN", help=scores)
    at = "make decisions of scores: those at or above it select the event"
    columns.add_argument("--threshold", type=float, metavar="NUMBER", help=at)
    best = "make decisions: so many highest scores are selected"
    columns.add_argument("--top-k", type=int, metavar="ROWS", help=best)
    share = "make decisions: so large a share of rows, those with the highest scores, is selected"
    columns.add_argument("--top-fraction", type=float, metavar="SHARE", help=share)
    _add_metric(command)


def _add_metric(command: argparse.ArgumentParser) -> None:
    more = "a metric or a disparity beside the usual ones, such as mcc or predictive_equality; repeat for more"
    _group(command, "columns").add_argument("--metric", action="append", metavar="NAME", help=more)


def _add_counting(command: argparse.ArgumentParser, *, of_scores: bool = True) -> None:
    rows = _group(command, "rows")
    weights = "column of case weights, such as sampling weights"
    rows.add_argument("--case-weights", "--weights", metavar="COLUMN", help=weights)
    frequencies = "column that says how many equal rows a row stands for"
    rows.add_argument("--frequency-weights", metavar="COLUMN", help=frequencies)
    cluster = "column of rows that belong together, such as those of one patient, for wider intervals"
    rows.add_argument("--cluster", metavar="COLUMN", help=cluster)
    missing = "make metrics of groups with missing values undefined, in place of leaving these rows out"
    rows.add_argument("--no-na-rm", dest="na_rm", action="store_const", const=False, help=missing)
    if of_scores:
        bins = "work out areas under curves from counts of scores in so many bins: for millions of rows"
        rows.add_argument("--score-bins", type=int, metavar="BINS", help=bins)


def _add_groups(command: argparse.ArgumentParser) -> None:
    groups = _group(command, "groups")
    few = "values of groups of fewer rows are neither shown nor written, and disparities not taken over them"
    groups.add_argument("--min-n", type=int, metavar="ROWS", help=f"{few} (default: {LEAST_ROWS})")
    rare = "disparities are not taken over groups with a smaller share of the rows, such as 0.02"
    groups.add_argument("--min-share", type=float, metavar="SHARE", help=rare)
    unknown = "rows whose group is missing or unknown: counted apart, a group like all others, or dropped"
    choices = ["apart", "group", "drop"]
    groups.add_argument("--unknown", choices=choices, help=f"{unknown} (default: apart)")
    values = "a value that means unknown, beside missing ones; repeat for more"
    groups.add_argument("--unknown-value", action="append", dest="unknown_values", metavar="VALUE", help=values)


def _add_outer(command: argparse.ArgumentParser) -> None:
    outer = "outer groups such as folds, months or models, each with results of its own; repeat for more"
    _group(command, "groups").add_argument("--group-by", action="append", metavar="COLUMN", help=outer)


def _add_intervals(command: argparse.ArgumentParser, *, methods: Sequence[str] = _METHODS) -> None:
    intervals = _group(command, "intervals")
    if methods:
        method = "how intervals are computed (default: auto, the best method for each value)"
        intervals.add_argument("--interval", choices=methods, help=method)
    level = "confidence level of intervals (default: 0.95)"
    intervals.add_argument("--conf-level", type=float, metavar="NUMBER", help=level)
    times = "number of replicates of intervals by replicates (default: 10000)"
    intervals.add_argument("--times", type=int, metavar="NUMBER", help=times)
    intervals.add_argument("--seed", type=int, metavar="NUMBER", help="seed of the replicates (default: 0)")


def _add_verdicts(command: argparse.ArgumentParser, example: str) -> None:
    verdicts = _group(command, "verdicts")
    limit = f"a metric and where it fails, such as {example}; the exit code tells; repeat for more"
    verdicts.add_argument("--fail-if", action="append", metavar="CONDITION", help=limit)
    sure = "confidence level of the verdicts of --fail-if, between 0.5 and 1 (default: 0.95)"
    verdicts.add_argument("--confidence", type=float, metavar="NUMBER", help=sure)


def _add_named(command: argparse.ArgumentParser) -> None:
    named_audits = _group(command, "named audits")
    named = (
        "the tables of a named audit, such as nyc_ll144, which has defaults of its own, in place of the usual ones; "
        "`list` shows all names"
    )
    named_audits.add_argument("--as", metavar="NAME", help=named)
    reference = "with --as, the group that others of a feature are compared with, such as race=White; repeat for more"
    named_audits.add_argument("--to", action="append", metavar="FEATURE=GROUP", help=reference)
    within = "with --as, columns whose groups are segments in which like is compared with like; repeat for more"
    named_audits.add_argument("--within", action="append", metavar="COLUMN", help=within)


def _add_files(command: argparse.ArgumentParser, files: dict[str, str]) -> None:
    """Add the options of files, each with what is written to it; none may be a file of the data."""
    output = _group(command, "output")
    table = (
        "to .csv, .parquet or .json in place of printing; in .csv an apostrophe is put before text that a spreadsheet "
        "would take for a formula (beginning with = + - @, a tab or a line break)"
    )
    endings = {
        "output": f" {table}",
        "output_groups": f" {table.partition(';')[0]}",
        "html": "",
        "markdown": "; - prints it; the file of $GITHUB_STEP_SUMMARY is added to, and any other replaced",
        "json": " as one JSON document; - prints it",
    }
    for flag, what in files.items():
        option = f"--{flag.replace('_', '-')}"
        output.add_argument(option, type=Path, metavar="FILE", help=f"write {what}{endings[flag]}")
