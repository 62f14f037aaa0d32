"""The commands and options of the command line, with their help."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Never

from tidyfair.audits.usual_metrics import LEAST_ROWS
from tidyfair.cli import audit, catalogue, compare
from tidyfair.cli.flags import as_flags
from tidyfair.errors import nearest
from tidyfair.escapes import visible
from tidyfair.other_keywords import hint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_METHODS = ("auto", "analytic", "exact", "bootstrap", "bayes", "none")
"""The ways to compute intervals; a page cannot do without."""
_EXIT_CODES = """\
exit codes:
  0  success; with --fail-if, every condition is shown not to hold
  2  usage error, or data that cannot be read
  3  with --fail-if, at least one condition holds with the required confidence
  4  with --fail-if, no condition is shown to hold, but there is not enough evidence to rule all of them out
130  interrupted with Ctrl-C
"""
_SCOPE = "Survival times, prediction intervals, rankings and pairs are evaluated in Python only.\n"
_AUDIT = f"""\
{_SCOPE}
{_EXIT_CODES}
examples:
  tidyfair audit
      the example data: simulated decisions on loans
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --by sex --by race:sex
      a file of yours; race:sex compares the intersections
  tidyfair audit data/ --truth obs --estimate pred --by race --group-by year
      a folder with year=2023/, year=2024/ …: the folders are the column year
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --group-by fold
      one row per metric: pooled value, mean, lowest and highest fold; --full shows every fold
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --fail-if 'equalized_odds(race) > 0.1' --fail-if 'accuracy < 0.7' --markdown "$GITHUB_STEP_SUMMARY"
      gates for a pipeline, on a disparity and on all rows, with a job summary
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --fail-if 'recall_group_minimum(race) < 0.8'
      a gate on the recall of the group where it is lowest
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score --threshold 0.5 --by sex --output result.csv
      scores and the decisions made from them, with the results in a file
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score --threshold 0.1:0.9:0.1 --by sex \\
      --metric net_benefit
      several thresholds, with the net benefit at each: a decision curve
  tidyfair audit large.parquet --truth repaid --probs score --threshold 0.5 --by sex --score-bins 1000
      millions of scores: areas under curves from binned scores, in a fraction of the time and memory
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race=White --metric statistical_parity_difference
      one group compared with everyone else
  tidyfair audit stays.csv --truth days --estimate predicted_days --by sex --read-as numbers
      whole numbers that are measurements, not labels
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race --html audit.html
      a page that can be mailed
  tidyfair audit hiring.csv --as nyc_ll144 --estimate hired --by sex --by race --markdown audit.md
      the table that a law asks for; --as list shows all of them
"""
_REPORT = f"""\
{_SCOPE}
{_EXIT_CODES}
examples:
  tidyfair report
      the example data, as report.html
  tidyfair report predictions.parquet --truth obs --estimate pred --by race --html audit.html --markdown card.md
      a file of yours as a page that opens without a network, and as Markdown for a model card
"""
_COMPARE = f"""\
{_SCOPE}
{_EXIT_CODES}
examples:
  tidyfair compare predictions.parquet --truth obs --one old --other new --by race
      two columns of predictions of the same rows, and the change from one to the other
  tidyfair compare scores.csv --truth repaid --pos-label yes --one old_score --other new_score --threshold 0.5
      decisions made from the scores of both models, without groups
  tidyfair compare predictions.parquet --truth obs --one old --other new --by race \\
      --fail-if 'change in accuracy < -0.01' --fail-if 'change in equalized_odds(race) > 0.02'
      fails if the new model loses more than 0.01 accuracy, or if its disparity is larger by more than 0.02
"""
_METRICS = """\
examples:
  tidyfair metrics
      all metrics, with formulas
  tidyfair metrics sens equalized_odds
      two metrics explained: formula, range, source and disparities
"""
_DATASETS = """\
examples:
  tidyfair datasets
      a list of the data sets
  tidyfair datasets lending --rows 1000 --output loans.csv
      a file with a thousand rows
"""


_USAGES = {
    "audit": "tidyfair audit [file] [options]",
    "report": "tidyfair report [file] [options]",
    "compare": "tidyfair compare file --one COLUMN --other COLUMN [options]",
    "metrics": "tidyfair metrics [name ...] [options]",
    "datasets": "tidyfair datasets [name] [options]",
}


_OF_ARGUMENT = re.compile(r"^argument ([^:]+): ")
_WIDTH = 80
"""The width of help, beside which terminals are not narrower."""
_ENDS_AND_STEP = 3
_MOST_STEPS = 1_000
_WITHOUT_VALUE = re.compile(r"^(\S+?)(?:/\S+)?: expected one argument$")
"""Messages of argparse."""


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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # pyright: ignore[reportIncompatibleMethodOverride] - its overloads say the same
        """Refuse options that the command does not have, with the usage of the command."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [text for text in unknown if text.startswith("-") and text != "-"]
            self.error(self._unknown_option(options[0]) if options else _unexpected(unknown[0]))
        return known, unknown

    def _unknown_option(self, text: str) -> str:
        """The message on an option that does not exist, with the one to write instead."""
        option = text.partition("=")[0]
        if option in self._option_string_actions:
            return f"Unexpected argument {option!r}: write options before --, after which everything is a file."
        destinations = [action.dest for action in self._actions]
        words = option.strip("-").replace("-", "_")
        way_out = nearest(option, self._option_string_actions)
        if not way_out:
            sentence = hint(words, destinations).partition(", such as")[0].rstrip(".")
            way_out = f" {as_flags(sentence, destinations)}." if sentence else ""
        return f"Unknown option {option}.{way_out or f' `{self.prog} --help` shows all.'}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is no choice, with the nearest one."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            msg = f"{value!r} is not one of {', '.join(choices)}.{nearest(value, choices)}"
            raise argparse.ArgumentError(action, msg)

    def error(self, message: str) -> Never:
        """Show the usage and the message."""
        message = _OF_ARGUMENT.sub(r"\1: ", message)
        way_out = r"\1 needs a value; one that begins with - is written \1=VALUE"
        super().error(visible(_WITHOUT_VALUE.sub(way_out, message)))


def _unexpected(text: str) -> str:
    """The message on an argument that is no option, and one too many."""
    return f"Unexpected argument {text!r}: quote a pattern of several files, and put options before their values."


def _file(text: str) -> Path:
    """The file of the data."""
    if text in {"-", "/dev/stdin"}:
        msg = "standard input cannot be read: write the rows to a file first"
        raise argparse.ArgumentTypeError(msg)
    if not text:
        msg = "the name of the file is empty"
        raise argparse.ArgumentTypeError(msg)
    return Path(text)


def _number(text: str) -> float:
    """A number of an option."""
    try:
        return float(text)
    except ValueError:
        msg = f"{text!r} is not a number"
        raise argparse.ArgumentTypeError(msg) from None


def _numbers(text: str) -> list[float]:
    """Numbers of an option: `0.5`, `0.3,0.5`, or `0.1:0.9:0.1` from the first to the second in steps of the third."""
    numbers: list[float] = []
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) == _ENDS_AND_STEP:
            numbers += _steps(part, *ends)
        else:
            numbers.append(_number(part))
    return numbers


def _steps(text: str, first: str, last: str, step: str) -> list[float]:
    """The numbers from the first to the last, both included, as decimals."""
    try:
        low, high, width = Decimal(first), Decimal(last), Decimal(step)
        count = int((high - low) / width) + 1
    except (ArithmeticError, ValueError):
        low = width = Decimal(0)
        count = 0
    if not 0 < count <= _MOST_STEPS:
        msg = f"{text!r} is not a range such as 0.1:0.9:0.1 (first, last, step) of up to {_MOST_STEPS:,} numbers"
        raise argparse.ArgumentTypeError(msg)
    return [float(low + index * width) for index in range(count)]


def _wholes(text: str) -> list[int]:
    """Whole numbers of an option, such as `100,200`."""
    return [_whole(part) for part in text.split(",")]


def _whole(text: str) -> int:
    """A whole number of an option."""
    try:
        return int(text)
    except ValueError:
        msg = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(msg) from None


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    every = _Parser(prog="tidyfair", description="Performance and fairness of predictions, by group.")
    every.add_argument("--version", action="version", version=f"tidyfair {version('tidyfair')}")
    subparsers = every.add_subparsers(dest="command", metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, examples: str
    ) -> argparse.ArgumentParser:
        subparser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=_fitted(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter, usage=_USAGES[name],
        )  # fmt: skip
        subparser.set_defaults(run=run)
        return subparser

    _add_audit(command("audit", audit.audit, "audit a file of predictions: metrics and disparities, by group", _AUDIT))
    _add_report(command("report", audit.audit, "write an audit as one page that opens without a network", _REPORT))
    _add_compare(command("compare", compare.compare, "compare two models on the same rows", _COMPARE))
    metrics = command("metrics", catalogue.metrics, "list all metrics, or explain some", _METRICS)
    metrics.add_argument("name", nargs="*", help="metric or disparity to explain")
    _add_files(metrics, {"output": "the list", "json": "the list"})
    datasets = command("datasets", catalogue.datasets, "show or write example data", _DATASETS)
    datasets.add_argument("name", nargs="?", help="data set to show or write")
    datasets.add_argument("--rows", type=_whole, default=5_000, help="the number of rows (default: 5000)")
    _add_files(datasets, {"output": "the rows"})
    return every


def _fitted(text: str) -> str:
    """Exit codes and examples in lines that every terminal shows whole; commands go on after a backslash."""
    lines: list[str] = []
    for line in text.replace("\\\n      ", "").splitlines():
        words = line.lstrip()
        indent = line[: len(line) - len(words)]
        if len(line) <= _WIDTH:
            lines.append(line)
        elif words.startswith("tidyfair "):
            lines += _continued(words, indent)
        else:
            more = f"{indent}   " if words[0].isdigit() else indent
            lines += wrap(words, _WIDTH, initial_indent=indent, subsequent_indent=more, break_on_hyphens=False)
    return "\n".join(lines)


def _continued(command: str, indent: str) -> list[str]:
    """A command in lines that end between options."""
    lines = [indent]
    for part in re.split(r" (?=--)", command):
        if lines[-1].strip() and len(lines[-1]) + len(part) + len(" \\") >= _WIDTH:
            lines[-1] += "\\"
            lines.append(f"{indent}    ")
        lines[-1] += f"{part} "
    return [line.rstrip() for line in lines]


def _add_audit(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    _add_predictions(command)
    _add_counting(command)
    _add_groups(command)
    _add_intervals(command)
    simultaneous = "widen the intervals of groups so that all of them hold at once"
    _group(command, "intervals").add_argument("--simultaneous", action="store_true", help=simultaneous)
    _add_verdicts(command, "'equalized_odds(race) > 0.1' or 'accuracy < 0.7'")
    _add_outer(command)
    full = "show every outer group, and every group of features with many groups"
    _group(command, "output").add_argument("--full", action="store_true", help=full)
    _add_named(command)
    _add_files(
        command,
        {
            "output": "metrics of all rows and disparities, with their intervals,",
            "output_groups": "values of groups, with their intervals,",
            "html": "a page that opens anywhere",
            "markdown": "the tables as Markdown, of which the terminal then shows only the verdicts of --fail-if",
            "json": "results, groups and verdicts",
        },
    )
    command.set_defaults(title=None, model=None, dataset=None, date=None, interactive=False)


def _add_report(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    _add_predictions(command)
    _add_counting(command)
    _add_groups(command)
    _add_intervals(command, methods=_METHODS[:-1])
    _add_verdicts(command, "'equalized_odds(race) > 0.1' or 'accuracy < 0.7'")
    output = _group(command, "output")
    output.add_argument("--title", metavar="TEXT", help="the title of the page")
    output.add_argument("--model", metavar="TEXT", help="the model that was audited, as the page names it")
    output.add_argument("--dataset", metavar="TEXT", help="the data that it was audited on, as the page names them")
    output.add_argument("--date", metavar="TEXT", help="the date of the audit, as the page shows it")
    interactive = "add controls for the feature, metric, reference and threshold to the HTML page"
    output.add_argument("--interactive", action="store_true", help=interactive)
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
    columns.add_argument("--threshold", type=_number, metavar="NUMBER", help=scores)
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
            "markdown": "the tables as Markdown, of which the terminal then shows only the verdicts of --fail-if",
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
    left_out = " (default: the example data)" if example else ""
    kinds = (
        "parquet, csv, csv.gz or ndjson file, a folder of such files, or a quoted pattern such as 'part-*.csv'; "
        "folders named column=value add that column, and the name of an existing file is never a pattern"
    )
    command.add_argument("file", nargs="?" if example else None, type=_file, help=f"{kinds}{left_out}")
    separator = "character between the fields of csv files, or tab (default: , and tab in .tsv files)"
    _group(command, "file").add_argument("--separator", metavar="CHARACTER", help=separator)
    _group(command, "columns").add_argument("--truth", metavar="COLUMN", help="true labels or numbers")
    feature = (
        "feature whose groups are compared; sex:race compares intersections, race=White one group with everyone else "
        "(repeatable)"
    )
    _group(command, "groups").add_argument("--by", action="append", metavar="FEATURE", help=feature)
    labels = _group(command, "labels")
    labels.add_argument("--pos-label", metavar="LABEL", help="label that counts as the event")
    label = "labels in their order, if the data do not show all labels or their order (repeatable)"
    labels.add_argument("--label", action="append", dest="labels", metavar="LABEL", help=label)
    estimators = ["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"]
    average = "how more than two labels are handled: NAME is " + ", ".join(estimators) + " (default: one_vs_rest)"
    labels.add_argument("--estimator", choices=estimators, metavar="NAME", help=average)
    whole = "read whole numbers as labels or as numbers, if the columns leave it open"
    labels.add_argument("--read-as", choices=["labels", "numbers"], help=whole)


def _add_predictions(command: argparse.ArgumentParser) -> None:
    columns = _group(command, "columns")
    columns.add_argument("--estimate", metavar="COLUMN", help="predicted labels or numbers")
    scores = "scores, such as probabilities of the event; with more than two labels, LABEL=COLUMN for each (repeatable)"
    columns.add_argument("--probs", action="append", metavar="COLUMN", help=scores)
    decisions = _group(command, "decisions from scores")
    cut = "select scores at or above this number; several as 0.3,0.5 or 0.1:0.9:0.1 (repeatable)"
    decisions.add_argument("--threshold", type=_numbers, action="extend", metavar="NUMBERS", help=cut)
    best = "select this many rows, those with the highest scores; several as 100,200 (repeatable)"
    decisions.add_argument("--top-k", type=_wholes, action="extend", metavar="ROWS", help=best)
    share = "select this share of the rows, those with the highest scores; several as 0.1,0.2 (repeatable)"
    decisions.add_argument("--top-fraction", type=_numbers, action="extend", metavar="SHARES", help=share)
    _add_metric(command)


def _add_metric(command: argparse.ArgumentParser) -> None:
    more = "metric or disparity to add to the usual ones, such as mcc or predictive_equality (repeatable)"
    _group(command, "metrics").add_argument("--metric", action="append", metavar="NAME", help=more)


def _add_counting(command: argparse.ArgumentParser, *, of_scores: bool = True) -> None:
    columns = _group(command, "columns")
    weights = "case weights, such as sampling weights"
    columns.add_argument("--case-weights", "--weights", metavar="COLUMN", help=weights)
    frequencies = "number of identical rows that a row stands for"
    columns.add_argument("--frequency-weights", metavar="COLUMN", help=frequencies)
    cluster = "rows that belong together, such as those of one patient; intervals allow for it"
    columns.add_argument("--cluster", metavar="COLUMN", help=cluster)
    missing = "leave metrics undefined if values are missing, instead of dropping the rows"
    _group(command, "metrics").add_argument("--no-na-rm", dest="na_rm", action="store_const", const=False, help=missing)
    if of_scores:
        bins = "compute areas under curves from scores counted in this many bins, for millions of rows"
        _group(command, "metrics").add_argument("--score-bins", type=_whole, metavar="BINS", help=bins)


def _add_groups(command: argparse.ArgumentParser) -> None:
    groups = _group(command, "groups")
    few = "hide groups with fewer rows, and leave them out of disparities"
    groups.add_argument("--min-n", type=_whole, metavar="ROWS", help=f"{few} (default: {LEAST_ROWS})")
    rare = "leave groups with a smaller share of the rows, such as 0.02, out of disparities"
    groups.add_argument("--min-share", type=_number, metavar="SHARE", help=rare)
    unknown = (
        "rows whose group is missing or unknown: counted, but not compared (apart), compared like any other group, or "
        "dropped (default: apart)"
    )
    groups.add_argument("--unknown", choices=["apart", "group", "drop"], help=unknown)
    values = "value that means unknown, besides missing values (repeatable)"
    groups.add_argument("--unknown-value", action="append", dest="unknown_values", metavar="VALUE", help=values)


def _add_outer(command: argparse.ArgumentParser) -> None:
    outer = "column, such as the fold, month or model, whose values each get their own results (repeatable)"
    _group(command, "groups").add_argument("--group-by", action="append", metavar="COLUMN", help=outer)


def _add_intervals(command: argparse.ArgumentParser, *, methods: Sequence[str] = _METHODS) -> None:
    intervals = _group(command, "intervals")
    if methods:
        method = f"method: {', '.join(methods)} (default: auto, the best method for each value)"
        intervals.add_argument("--interval", choices=methods, metavar="METHOD", help=method)
    level = "confidence level of the intervals (default: 0.95)"
    intervals.add_argument("--conf-level", type=_number, metavar="NUMBER", help=level)
    times = "number of replicates, of methods that draw them (default: 10000)"
    intervals.add_argument("--times", type=_whole, metavar="NUMBER", help=times)
    intervals.add_argument("--seed", type=_whole, metavar="NUMBER", help="random seed of the replicates (default: 0)")


def _add_verdicts(command: argparse.ArgumentParser, example: str) -> None:
    verdicts = _group(command, "verdicts")
    limit = f"fail if a condition holds, such as {example}; see the exit codes below (repeatable)"
    verdicts.add_argument("--fail-if", action="append", metavar="CONDITION", help=limit)
    sure = "confidence level of the verdicts, between 0.5 and 1 (default: 0.95)"
    verdicts.add_argument("--confidence", type=_number, metavar="NUMBER", help=sure)
    outside = (
        "groups that are too small or unknown hold a pass back (hold), or are outside its scope, and stated (state) "
        "(default: hold)"
    )
    verdicts.add_argument("--outside", choices=["hold", "state"], help=outside)


def _add_named(command: argparse.ArgumentParser) -> None:
    named_audits = _group(command, "named audits")
    named = "compute a named audit, such as nyc_ll144, with its own defaults; --as list shows the names"
    named_audits.add_argument("--as", metavar="NAME", help=named)
    reference = "with --as: reference group of a feature, such as race=White (repeatable)"
    named_audits.add_argument("--to", action="append", metavar="FEATURE=GROUP", help=reference)
    within = "with --as: column whose values are segments within which groups are compared (repeatable)"
    named_audits.add_argument("--within", action="append", metavar="COLUMN", help=within)


def _add_files(command: argparse.ArgumentParser, files: dict[str, str]) -> None:
    """Add the options of files, each with what is written to it; none may be a file of the data."""
    output = _group(command, "output")
    table = (
        " to a .csv, .parquet or .json file instead of printing; in .csv files, an apostrophe is put before text that "
        "a spreadsheet would run as a formula (text that begins with =, +, -, @, a tab or a line break)"
    )
    endings = {
        "output": table,
        "output_groups": " to a file of the same kinds",
        "html": "",
        "markdown": "; - prints it; the file of $GITHUB_STEP_SUMMARY is appended to, other files are replaced",
        "json": " as one JSON document, where numbers that JSON cannot hold are null; - prints it",
    }
    for flag, what in files.items():
        option = f"--{flag.replace('_', '-')}"
        output.add_argument(option, type=Path, metavar="FILE", help=f"write {what}{endings[flag]}")
