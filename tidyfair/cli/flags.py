"""The options of all commands in one table, and messages of the library in the words of the command line."""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from tidyfair.audits import LEAST_ROWS
from tidyfair.inference.gates import Outside
from tidyfair.metrics.catalog import metric_named
from tidyfair.metrics.operating_points import operating_point
from tidyfair.specs import OPTIONS, REPLICATES, Estimator

_ENDS_AND_STEP = 3
_MOST_STEPS = 1_000


# How values are read


def _read(kind: Callable[[str], Any], words: str, text: str) -> Any:
    """A value of an option, of a type that `words` name in the message."""
    try:
        return kind(text)
    except ValueError:
        msg = f"{text!r} is not {words}"
        raise argparse.ArgumentTypeError(msg) from None


_number = partial(_read, float, "a number")
_whole = partial(_read, int, "a whole number")


def _wholes(text: str) -> list[int]:
    """Whole numbers of an option, such as `100,200`."""
    return [_whole(part) for part in text.split(",")]


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


def _thresholds(text: str) -> list[Any]:
    """Numbers, or the threshold at which a metric reaches a limit: `fall_out<=0.05`, `sens>=0.9`."""
    metric, sign, limit = text.partition("<=") if "<=" in text else text.partition(">=")
    if not sign:
        return _numbers(text)
    if (base := metric_named(metric.strip())) is None:
        msg = f"{metric.strip()!r} is not a metric; `tidyfair metrics` lists all"
        raise argparse.ArgumentTypeError(msg)
    return [operating_point(base, **{"at_most" if sign == "<=" else "at_least": _number(limit)})]


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


# The table


@dataclass(frozen=True)
class Flag:
    """An option of some commands, and how argparse reads it; `name` is the option of a call that it stands for."""

    name: str
    metavar: str | None = None
    commands: tuple[str, ...] = ("audit", "report", "compare", "check")
    type: Callable[[str], object] | None = None
    action: str | None = None
    choices: Sequence[str] | None = None
    const: object = None
    required: bool | None = None
    texts: tuple[str, ...] = ()
    """The ways to write it, the first of which messages show; by default its name with two dashes."""

    def add_to(self, command: Any, sentence: str) -> None:
        """Add the option to a parser, or to a group of its options, with the sentence of its help."""
        names = ("metavar", "type", "action", "choices", "const", "required")
        settings = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.action in {"append", "extend"}:
            sentence += " (repeatable)"
        command.add_argument(*(self.texts or [self.text]), dest=self.name, help=sentence, **settings)

    @property
    def text(self) -> str:
        """The way in which messages write it."""
        return self.texts[0] if self.texts else f"--{self.name.replace('_', '-')}"


_PREDICTIONS, _SEVERAL = ("audit", "report", "check"), ("audit", "compare")
"""The commands on the predictions of one model, and those on several sets of predictions."""
_OPEN, _PAGES = ("audit", "report", "compare"), ("audit", "report")
"""The commands without a policy, which says what is compared and judged, and those that make pages."""
_METHODS = ("auto", "analytic", "exact", "bootstrap", "bayes", "none")
"""The ways to compute intervals; a page cannot do without."""
_MODEL = "column of the predictions of a model; of scores with --threshold"
_INTERVAL = "method: {} (default: auto, the best method for each value)"
_FAIL_IF = "fail if a condition holds, such as {}; see the exit codes below"
_TABLE = (
    "write {} to a .csv, .parquet or .json file instead of printing; in .csv files, an apostrophe is put before text "
    "that a spreadsheet would run as a formula (text that begins with =, +, -, @, a tab or a line break)"
)
_MARKDOWN = "write {}; - prints it; the file of $GITHUB_STEP_SUMMARY is appended to, other files are replaced"
_JSON = "write {} as one JSON document, where numbers that JSON cannot hold are null; - prints it"

FLAGS: Mapping[str, Mapping[Flag, str]] = {
    "file": {
        Flag("separator", "CHARACTER"): (
            "character between the fields of csv files, or tab (default: , and tab in .tsv files)"
        ),
    },
    "columns": {
        Flag("truth", "COLUMN"): "true labels or numbers",
        Flag("one", "COLUMN", ("compare",), required=True): _MODEL,
        Flag("other", "COLUMN", ("compare",), required=True, action="append"): (
            f"{_MODEL}; give it again for each other model, whose intervals then hold for all of them at once"
        ),
        Flag("threshold", "NUMBER", ("compare",), _number): (
            "make decisions of scores: those at or above it select the event"
        ),
        Flag("estimate", "COLUMN", _PREDICTIONS): "predicted labels or numbers",
        Flag("probs", "COLUMN", _PREDICTIONS, action="append"): (
            "scores, such as probabilities of the event; with more than two labels, LABEL=COLUMN for each"
        ),
        Flag("case_weights", "COLUMN", texts=("--case-weights", "--weights")): (
            "case weights, such as sampling weights"
        ),
        Flag("frequency_weights", "COLUMN"): "number of identical rows that a row stands for",
        Flag("cluster", "COLUMN"): "rows that belong together, such as those of one patient; intervals allow for it",
    },
    "policy": {
        Flag("policy", "FILE", ("check",), Path, required=True): (
            "TOML file of what an audit must hold: features, crossings, metrics, least_n, conf_level and limits"
        ),
    },
    "groups": {
        Flag("by", "FEATURE", commands=_OPEN, action="append"): (
            "feature whose groups are compared; sex:race compares intersections, race=White one group with everyone "
            "else"
        ),
        Flag("min_n", "ROWS", commands=_OPEN, type=_whole): (
            f"hide groups with fewer rows, and leave them out of disparities (default: {LEAST_ROWS})"
        ),
        Flag("min_share", "SHARE", commands=_OPEN, type=_number): (
            "leave groups with a smaller share of the rows, such as 0.02, out of disparities"
        ),
        Flag("unknown", commands=_OPEN, choices=("apart", "group", "drop")): (
            "rows whose group is missing or unknown: counted, but not compared (apart), compared like any other "
            "group, or dropped (default: apart)"
        ),
        Flag("unknown_values", "VALUE", commands=_OPEN, action="append", texts=("--unknown-value",)): (
            "value that means unknown, besides missing values"
        ),
        Flag("suppress_below", "ROWS", _PREDICTIONS, _whole): (
            "show no count from 1 to below this number, nor what would give one away by subtraction"
        ),
        Flag("group_by", "COLUMN", _SEVERAL, action="append"): (
            "column, such as the fold, month or model, whose values each get their own results"
        ),
    },
    "labels": {
        Flag("pos_label", "LABEL"): "label that counts as the event",
        Flag("labels", "LABEL", action="append", texts=("--label",)): (
            "labels in their order, if the data do not show all labels or their order"
        ),
        Flag("estimator", "NAME", choices=get_args(Estimator)): (
            f"how more than two labels are handled: NAME is {', '.join(get_args(Estimator))} (default: one_vs_rest)"
        ),
        Flag("read_as", choices=("labels", "numbers")): (
            "read whole numbers as labels or as numbers, if the columns leave it open"
        ),
    },
    "decisions from scores": {
        Flag("threshold", "NUMBERS", _PREDICTIONS, _thresholds, "extend"): (
            "select scores at or above this number; several as 0.3,0.5 or 0.1:0.9:0.1; or from where a rate keeps to a "
            "limit, as 'fall_out<=0.05' or 'sens>=0.9'"
        ),
        Flag("top_k", "ROWS", _PREDICTIONS, _wholes, "extend"): (
            "select this many rows, those with the highest scores; several as 100,200"
        ),
        Flag("top_fraction", "SHARES", _PREDICTIONS, _numbers, "extend"): (
            "select this share of the rows, those with the highest scores; several as 0.1,0.2"
        ),
    },
    "metrics": {
        Flag("metric", "NAME", commands=_OPEN, action="append"): (
            "metric or disparity to add to the usual ones, such as mcc or predictive_equality"
        ),
        Flag("na_rm", action="store_const", const=False, texts=("--no-na-rm",)): (
            "leave metrics undefined if values are missing, instead of dropping the rows"
        ),
        Flag("score_bins", "BINS", _PREDICTIONS, _whole): (
            "compute areas under curves from scores counted in this many bins, for millions of rows"
        ),
    },
    "intervals": {
        Flag("interval", "METHOD", ("audit",), choices=_METHODS): _INTERVAL.format(", ".join(_METHODS)),
        Flag("interval", "METHOD", ("report",), choices=_METHODS[:-1]): _INTERVAL.format(", ".join(_METHODS[:-1])),
        Flag("margin", "NUMBER", _PREDICTIONS, type=_number): (
            "how far apart groups may be and count as alike, in the unit of the metrics (default: 0.05 between shares)"
        ),
        Flag("conf_level", "NUMBER", commands=_OPEN, type=_number): (
            f"confidence level of the intervals (default: {OPTIONS['conf_level'].default})"
        ),
        Flag("times", "NUMBER", commands=_OPEN, type=_whole): (
            f"number of replicates, of methods that draw them (default: {REPLICATES})"
        ),
        Flag(
            "seed", "NUMBER", commands=_OPEN, type=_whole
        ): f"random seed of the replicates (default: {OPTIONS['seed'].default})",
        Flag("simultaneous", commands=("audit",), action="store_true"): (
            "widen the intervals of groups so that all of them hold at once"
        ),
    },
    "verdicts": {
        Flag("fail_if", "CONDITION", _PAGES, action="append"): (
            _FAIL_IF.format("'equalized_odds(race) > 0.1' or 'accuracy < 0.7'")
        ),
        Flag("fail_if", "CONDITION", ("compare",), action="append"): (
            _FAIL_IF.format("'change in accuracy < -0.01' or 'change in equalized_odds(race) > 0.02'")
        ),
        Flag("confidence", "NUMBER", commands=_OPEN, type=_number): (
            "confidence level of the verdicts, between 0.5 and 1 (default: 0.95)"
        ),
        Flag("outside", commands=_OPEN, choices=get_args(Outside)): (
            "groups that are too small or unknown hold a pass back (hold), or are outside its scope, and stated "
            "(state) (default: hold)"
        ),
    },
    "output": {
        Flag("title", "TEXT", ("report",)): "the title of the page",
        Flag("auditor", "TEXT", _PREDICTIONS): "who made the audit, as the page, or the table of --as, says",
        Flag("model", "TEXT", _PREDICTIONS): "the model that was audited, as the page names it",
        Flag("model_version", "TEXT", _PREDICTIONS): "its version",
        Flag("dataset", "TEXT", _PREDICTIONS): "the data that it was audited on, as the page names them",
        Flag("date", "TEXT", _PREDICTIONS): "the date of the audit, as the page shows it",
        Flag("interactive", commands=("report",), action="store_true"): (
            "add controls for the feature, metric, reference and threshold to the HTML page"
        ),
        Flag("full", commands=("audit",), action="store_true"): (
            "show every outer group, and every group of features with many groups"
        ),
        Flag("output", "FILE", ("audit",), Path): (
            _TABLE.format("metrics of all rows and disparities, with their intervals,")
        ),
        Flag("output", "FILE", ("compare",), Path): _TABLE.format("the comparison"),
        Flag("output", "FILE", ("metrics",), Path): _TABLE.format("the list"),
        Flag("output", "FILE", ("datasets",), Path): _TABLE.format("the rows"),
        Flag("output_groups", "FILE", ("audit",), Path): (
            "write values of groups, with their intervals, to a file of the same kinds"
        ),
        Flag("html", "FILE", _SEVERAL, Path): "write a page that opens anywhere",
        Flag("html", "FILE", ("report",), Path): "write the page (default: report.html)",
        Flag("markdown", "FILE", _SEVERAL, Path): _MARKDOWN.format(
            "the tables as Markdown, of which the terminal then shows only the verdicts of --fail-if"
        ),
        Flag("markdown", "FILE", ("report",), Path): _MARKDOWN.format("the same as Markdown, for a model card"),
        Flag("json", "FILE", _PAGES, Path): _JSON.format("results, groups and verdicts"),
        Flag("json", "FILE", ("check", "verify"), Path): _JSON.format("the verdicts"),
        Flag("evidence", "FILE", ("check",), Path): (
            "write digests, the call, tallies, values of groups and verdicts, which `tidyfair verify` verifies"
        ),
        Flag("data", "FILE", ("verify",), Path): "the file of the data, whose digest is compared",
        Flag("json", "FILE", ("compare",), Path): _JSON.format("the comparison and its verdicts"),
        Flag("json", "FILE", ("metrics",), Path): _JSON.format("the list"),
    },
    "named audits": {
        Flag("as", "NAME", ("audit",)): (
            "compute a named audit, such as nyc_ll144, with its own defaults; --as list shows the names"
        ),
        Flag("to", "FEATURE=GROUP", ("audit",), action="append"): (
            "with --as: reference group of a feature, such as race=White"
        ),
        Flag("within", "COLUMN", ("audit",), action="append"): (
            "with --as: column whose values are segments within which groups are compared"
        ),
        Flag("complementary", "COLUMN", ("audit",)): (
            "with --as eu_pay_transparency: column of complementary or variable components of pay"
        ),
    },
    "options": {Flag("rows", commands=("datasets",), type=_whole): "the number of rows (default: 5000)"},
}
"""The options of all commands with the sentences of their help, by the headings of help, in its order."""
_EVERY = tuple(flag for flags in FLAGS.values() for flag in flags)
COLUMNS = tuple(dict.fromkeys(flag.name for flag in _EVERY if flag.metavar == "COLUMN"))
"""The options that name columns."""


def names_of(command: str) -> list[str]:
    """The names of the options of a command."""
    return [flag.name for flag in _EVERY if command in flag.commands]


# Messages

_OPTION = re.compile(r"`(?P<name>\w+)(?:=(?P<value>[^`]*))?`")
"""An option of a call in a message, which may have a value."""
_MOMENT = re.compile(r"datetime\.(date|datetime|time)\((\d+(?:, \d+)*)\)")
"""Dates and times, as Python writes them."""
_TEXT_OF = {flag.name: flag.text for flag in _EVERY}


def as_flags(message: str, names: Collection[str]) -> str:
    """A message whose options of calls are written as the flags of those `names`, with values as a shell takes them."""

    def as_flag(option: re.Match[str]) -> str:
        name, value = option.group("name", "value")
        if name not in names:
            return option[0]
        flag = _TEXT_OF[name]
        if not value:
            return f"`{flag}`"
        if name == "probs" and value.startswith("{"):
            return f"`{flag} LABEL=COLUMN` for each label"
        # a flag is repeated for each of several
        return f"`{' '.join(f'{flag} {text}' for text in _texts_of(value))}`"

    # the functions that the commands call
    message = message.removeprefix("audit(): ").removeprefix("audit: ")
    return _OPTION.sub(as_flag, _MOMENT.sub(_as_written, message))


def _texts_of(value: str) -> list[str]:
    """The items of a list or a mapping as a shell takes them, or any other value as it is."""
    try:
        items: Any = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return [value]
    if isinstance(items, dict):
        items = [f"{key}={item}" for key, item in cast("dict[object, object]", items).items()]
    return [shlex.quote(str(item)) for item in cast("list[object]", items)] if isinstance(items, list) else [value]


def _as_written(match: re.Match[str]) -> str:
    """A date or time as the command line takes it."""
    numbers = map(int, match[2].split(", "))
    kinds: dict[str, Any] = {"date": dt.date, "datetime": dt.datetime, "time": dt.time}
    return repr(kinds[match[1]](*numbers).isoformat())
