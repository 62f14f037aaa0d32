"""The options of all commands, those of calls from the table of options, and messages in the words of flags."""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from tidyfair.audits import LEAST_ROWS
from tidyfair.errors import ArgumentError
from tidyfair.inference.gates import Outside
from tidyfair.metrics.catalog import metric_named
from tidyfair.metrics.operating_points import operating_point
from tidyfair.specs import OPTIONS, Flag

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
    try:
        return [operating_point(base, **{"at_most" if sign == "<=" else "at_least": _number(limit)})]
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
class CommandFlag:
    """An option of some commands; `name` is the option of a call that it stands for."""

    name: str
    flag: Flag
    commands: tuple[str, ...]
    required: bool = False

    @property
    def text(self) -> str:
        """The way in which messages write it."""
        return self.flag.texts[0] if self.flag.texts else f"--{self.name.replace('_', '-')}"

    def add_to(self, command: Any) -> None:
        """Add the option to a parser, or to a group of its options."""
        flag, action = self.flag, self.flag.action
        settings: dict[str, Any] = {"metavar": flag.metavar, "choices": flag.choices, "type": _READERS[flag.reads]}
        settings |= {"action": action, "required": self.required or None}
        if action in {"store_true", "store_false"}:
            # without the flag an option is None, as all others are
            settings = {"action": "store_const", "const": action == "store_true"}
        given = {name: value for name, value in settings.items() if value is not None}
        repeatable = " (repeatable)" if action in {"append", "extend"} else ""
        command.add_argument(*(flag.texts or [self.text]), dest=self.name, help=flag.sentence + repeatable, **given)


_READERS: Mapping[str, Callable[[str], object] | None] = {
    "text": None, "path": Path, "number": _number, "numbers": _numbers, "thresholds": _thresholds, "whole": _whole,
    "wholes": lambda text: list(map(_whole, text.split(","))),
}  # fmt: skip
"""Functions that read the text of an option, by the kind of its value; None leaves it a text."""


def _flag(name: str, commands: tuple[str, ...], **changed: Any) -> CommandFlag:
    """An option of calls, whose flag is that of the table of options but for what is `changed`."""
    return CommandFlag(name, replace(cast("Flag", OPTIONS[name].flag), **changed), commands)


def _own(
    name: str, commands: tuple[str, ...], sentence: str, metavar: str | None = "TEXT", *, required: bool = False,
    **settings: Any,
) -> CommandFlag:  # fmt: skip
    """An option that only the command line has."""
    return CommandFlag(name, Flag(sentence, metavar, **settings), commands, required)


_PREDICTIONS, _SEVERAL = ("audit", "report", "check"), ("audit", "compare")
"""The commands on the predictions of one model, and those on several sets of predictions."""
_OPEN, _PAGES = ("audit", "report", "compare"), ("audit", "report")
"""The commands without a policy, which says what is compared and judged, and those that make pages."""
_METHODS = ("auto", "analytic", "exact", "bootstrap", "bayes", "none")
"""The ways to compute intervals; a page cannot do without."""
_MODEL = "column of the predictions of a model; of scores with --threshold"
_MIN_N = "hide groups with fewer rows, and leave them out of disparities (default: {})"
_INTERVAL = "method: {} (default: auto, the best method for each value)"
_FAIL_IF = "fail if a condition holds, such as {}; see the exit codes below"
_TABLE = (
    "write {} to a .csv, .parquet or .json file instead of printing; in .csv files, an apostrophe is put before text "
    "that a spreadsheet would run as a formula (text that begins with =, +, -, @, a tab or a line break)"
)
_MARKDOWN = "write {}; - prints it; the file of $GITHUB_STEP_SUMMARY is appended to, other files are replaced"
_TERMINAL = "the tables as Markdown, of which the terminal then shows only the verdicts of --fail-if"
_JSON = "write {} as one JSON document, where numbers that JSON cannot hold are null; - prints it"
_EVIDENCE = "write digests, the call, tallies, results and verdicts into a .json file, which `tidyfair verify` verifies"
_ROWS = "with --evidence: write values of rows where results need them, such as pay, and scores without --score-bins"
_POLICY = "TOML file of what an audit must hold: features, crossings, metrics, least_n, conf_level and limits"
_file = partial(_own, metavar="FILE", reads="path")
_ALL = ("audit", "report", "compare", "check")
FLAGS: Mapping[str, Sequence[CommandFlag]] = {
    "file": [
        _own(
            "separator", _ALL, "character between the fields of csv files, or tab (default: , and tab in .tsv files)",
            "CHARACTER",
        ),
    ],
    "columns": [
        _flag("truth", _ALL), _own("one", ("compare",), _MODEL, "COLUMN", required=True),
        _own(
            "other", ("compare",), f"{_MODEL}; give it again for each other model, whose intervals then hold for all "
            "of them at once", "COLUMN", required=True, action="append",
        ),
        _own(
            "threshold", ("compare",), "make decisions of scores: those at or above it select the event", "NUMBER",
            reads="number",
        ),
        _flag("estimate", _PREDICTIONS), _flag("probs", _PREDICTIONS), _flag("case_weights", _ALL),
        _flag("frequency_weights", _ALL), _flag("cluster", _ALL),
    ],
    "policy": [_file("policy", ("check",), _POLICY, required=True)],
    "groups": [
        _own(
            "by", _OPEN, "feature whose groups are compared; sex:race compares intersections, race=White one group "
            "with everyone else", "FEATURE", action="append",
        ),
        _flag("min_n", _OPEN, sentence=_MIN_N.format(LEAST_ROWS)),
        _flag("min_share", _OPEN), _flag("unknown", _OPEN), _flag("unknown_values", _OPEN),
        _flag("suppress_below", _PREDICTIONS), _flag("group_by", _SEVERAL),
    ],
    "labels": [
        _flag("pos_label", _ALL), _flag("labels", _ALL), _flag("estimator", _ALL),
        _own(
            "read_as", _ALL, "read whole numbers as labels or as numbers, if the columns leave it open", None,
            choices=("labels", "numbers"),
        ),
    ],
    "decisions from scores": [
        _flag("threshold", _PREDICTIONS), _flag("top_k", _PREDICTIONS), _flag("top_fraction", _PREDICTIONS),
    ],
    "metrics": [
        _own(
            "metric", _OPEN, "metric or disparity to add to the usual ones, such as mcc or predictive_equality",
            "NAME", action="append",
        ),
        _flag("na_rm", _ALL), _flag("score_bins", _PREDICTIONS),
    ],
    "intervals": [
        *(
            _flag("interval", (command,), choices=methods, sentence=_INTERVAL.format(", ".join(methods)))
            for command, methods in (("audit", _METHODS), ("report", _METHODS[:-1]))
        ),
        _own(
            "margin", _PREDICTIONS, "how far apart groups may be and count as alike, in the unit of the metrics "
            "(default: 0.05 between shares)", "NUMBER", reads="number",
        ),
        _own(
            "margin", ("compare",), "change up to which models are as good as each other, in the unit of the metrics; "
            "says which values are equivalent, or not worse", "NUMBER", reads="number",
        ),
        _flag("conf_level", _OPEN), _flag("times", _OPEN), _flag("seed", _OPEN), _flag("simultaneous", ("audit",)),
    ],
    "verdicts": [
        _own(
            "fail_if", _PAGES, _FAIL_IF.format("'equalized_odds(race) > 0.1' or 'accuracy < 0.7'"), "CONDITION",
            action="append",
        ),
        _own(
            "fail_if", ("compare",),
            _FAIL_IF.format("'change in accuracy < -0.01' or 'change in equalized_odds(race) > 0.02'"), "CONDITION",
            action="append",
        ),
        _own(
            "confidence", _OPEN, "confidence level of the verdicts, between 0.5 and 1 (default: 0.95)", "NUMBER",
            reads="number",
        ),
        _own(
            "outside", _OPEN, "groups that are too small or unknown hold a pass back (hold), or are outside its scope, "
            "and stated (state) (default: hold)", None, choices=get_args(Outside),
        ),
    ],
    "output": [
        _own("title", ("report",), "the title of the page"),
        _own("auditor", _PREDICTIONS, "who made the audit, as the page, or the table of --as, says"),
        _own("model", _PREDICTIONS, "the model that was audited, as the page names it"),
        _own("model_version", _PREDICTIONS, "its version"),
        _own("dataset", _PREDICTIONS, "the data that it was audited on, as the page names them"),
        _own("date", _PREDICTIONS, "the date of the audit, as the page shows it"),
        _own(
            "interactive", ("report",),
            "add controls for the feature, metric, reference and threshold to the HTML page", action="store_true",
        ),
        _own(
            "full", ("audit",), "show every outer group, and every group of features with many groups",
            action="store_true",
        ),
        _file("output", ("audit",), _TABLE.format("metrics of all rows and disparities, with their intervals,")),
        _file("output", ("compare",), _TABLE.format("the comparison")),
        _file("output", ("metrics",), _TABLE.format("the list")),
        _file("output", ("datasets",), _TABLE.format("the rows")),
        _file("output_groups", ("audit",), "write values of groups, with their intervals, to a file of the same kinds"),
        _file("html", _SEVERAL, "write a page that opens anywhere"),
        _file("html", ("report",), "write the page (default: report.html)"),
        _file("markdown", _SEVERAL, _MARKDOWN.format(_TERMINAL)),
        _file("markdown", ("report",), _MARKDOWN.format("the same as Markdown, for a model card")),
        _file("json", _PAGES, _JSON.format("results, groups and verdicts")),
        _file("json", ("check", "verify"), _JSON.format("the verdicts")),
        _file("json", ("compare",), _JSON.format("the comparison and its verdicts")),
        _file("json", ("metrics",), _JSON.format("the list")),
        _file("evidence", _PREDICTIONS, _EVIDENCE),
        _own("evidence_rows", _PREDICTIONS, _ROWS, None, action="store_true"),
        _file("data", ("verify",), "the file of the data, whose digest is compared"),
    ],
    "named audits": [
        _own(
            "as", ("audit",), "compute a named audit, such as nyc_ll144, with its own defaults; --as list shows the "
            "names", "NAME",
        ),
        _own(
            "to", ("audit",), "with --as: reference group of a feature, such as race=White", "FEATURE=GROUP",
            action="append",
        ),
        _own(
            "within", ("audit",), "with --as: column whose values are segments within which groups are compared",
            "COLUMN", action="append",
        ),
        _own(
            "complementary", ("audit",),
            "with --as eu_pay_transparency: column of complementary or variable components of pay", "COLUMN",
        ),
    ],
    "options": [_own("rows", ("datasets",), "the number of rows (default: 5000)", None, reads="whole")],
}  # fmt: skip
"""The options of all commands, by the headings of help, in its order."""
EVERY_FLAG = tuple(flag for flags in FLAGS.values() for flag in flags)
COLUMNS = tuple(dict.fromkeys(flag.name for flag in EVERY_FLAG if flag.flag.metavar == "COLUMN"))
"""The options that name columns."""


def names_of(command: str) -> list[str]:
    """The names of the options of a command."""
    return [flag.name for flag in EVERY_FLAG if command in flag.commands]


# Messages

_OPTION = re.compile(r"`(?P<name>\w+)(?:=(?P<value>[^`]*))?`")
"""An option of a call in a message, which may have a value."""
_MOMENT = re.compile(r"datetime\.(date|datetime|time)\((\d+(?:, \d+)*)\)")
"""Dates and times, as Python writes them."""
_TEXT_OF = {flag.name: flag.text for flag in EVERY_FLAG}


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
    kinds: dict[str, Any] = {"date": dt.date, "datetime": dt.datetime, "time": dt.time}

    def as_written(moment: re.Match[str]) -> str:
        return repr(kinds[moment[1]](*map(int, moment[2].split(", "))).isoformat())

    return _OPTION.sub(as_flag, _MOMENT.sub(as_written, message))


def _texts_of(value: str) -> list[str]:
    """The items of a list or a mapping as a shell takes them, or any other value as it is."""
    try:
        items: Any = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return [value]
    if isinstance(items, dict):
        items = [f"{key}={item}" for key, item in cast("dict[object, object]", items).items()]
    return [shlex.quote(str(item)) for item in cast("list[object]", items)] if isinstance(items, list) else [value]
