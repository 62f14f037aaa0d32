"""The commands of the command line, and the parser of their arguments."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Never

from tidyfair.cli import audit, catalogue, compare, named_audits
from tidyfair.cli.flags import EVERY_FLAG, FLAGS, as_flags
from tidyfair.errors import nearest
from tidyfair.escapes import visible
from tidyfair.specs import hint

_ABOUT = """\
Survival times, prediction intervals, rankings and pairs are evaluated in Python
only.

exit codes:
  0  success; with --fail-if, every condition is shown not to hold
  2  usage error, or data that cannot be read
  3  with --fail-if, at least one condition holds with the required confidence
  4  with --fail-if, no condition is shown to hold, but there is not enough
     evidence to rule all of them out
130  interrupted with Ctrl-C
"""
_AUDIT = f"""\
{_ABOUT}
examples:
  tidyfair audit
      the example data: simulated decisions on loans
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --by sex --by race:sex
      a file of yours; race:sex compares the intersections
  tidyfair audit data/ --truth obs --estimate pred --by race --group-by year
      a folder with year=2023/, year=2024/ …: the folders are the column year
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --group-by fold
      one row per metric: pooled value, mean, lowest and highest fold; --full
      shows every fold
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --fail-if 'equalized_odds(race) > 0.1' --fail-if 'accuracy < 0.7' \\
      --markdown "$GITHUB_STEP_SUMMARY"
      gates for a pipeline, on a disparity and on all rows, with a job summary
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --fail-if 'recall_group_minimum(race) < 0.8'
      a gate on the recall of the group where it is lowest
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score \\
      --threshold 0.5 --by sex --output result.csv
      scores and the decisions made from them, with the results in a file
  tidyfair audit scores.csv --truth repaid --pos-label yes --probs score \\
      --threshold 0.1:0.9:0.1 --by sex --metric net_benefit
      several thresholds, with the net benefit at each: a decision curve
  tidyfair audit large.parquet --truth repaid --probs score --threshold 0.5 \\
      --by sex --score-bins 1000
      millions of scores: areas under curves from binned scores, in a fraction
      of the time and memory
  tidyfair audit predictions.parquet --truth obs --estimate pred \\
      --by race=White --metric statistical_parity_difference
      one group compared with everyone else
  tidyfair audit stays.csv --truth days --estimate predicted_days --by sex \\
      --read-as numbers
      whole numbers that are measurements, not labels
  tidyfair audit predictions.parquet --truth obs --estimate pred --by race \\
      --html audit.html
      a page that can be mailed
  tidyfair audit hiring.csv --as nyc_ll144 --estimate hired --by sex \\
      --by race --markdown audit.md
      the table that a law asks for; --as list shows all of them
"""
_REPORT = f"""\
{_ABOUT}
examples:
  tidyfair report
      the example data, as report.html
  tidyfair report predictions.parquet --truth obs --estimate pred --by race \\
      --html audit.html --markdown card.md
      a file of yours as a page that opens without a network, and as Markdown
      for a model card
"""
_COMPARE = f"""\
{_ABOUT}
examples:
  tidyfair compare predictions.parquet --truth obs --one old --other new \\
      --by race
      two columns of predictions of the same rows, and the change from one to
      the other
  tidyfair compare scores.csv --truth repaid --pos-label yes --one old_score \\
      --other new_score --threshold 0.5
      decisions made from the scores of both models, without groups
  tidyfair compare predictions.parquet --truth obs --one old --other new \\
      --by race --fail-if 'change in accuracy < -0.01' \\
      --fail-if 'change in equalized_odds(race) > 0.02'
      fails if the new model loses more than 0.01 accuracy, or if its disparity
      is larger by more than 0.02
"""
_CHECK = """\
exit codes: as for --fail-if of audit; what the policy requires and is missing
fails.

examples:
  tidyfair check predictions.parquet --policy policy.toml --truth obs \\
      --estimate pred --evidence evidence.json
"""
_VERIFY = """\
exit codes: 0 where every part passes, 3 where one fails, 4 where one cannot be
verified, 2 for a file that is no evidence.

examples:
  tidyfair verify evidence.json
      the digests, and the numbers computed again from the tallies
  tidyfair verify evidence.json --data predictions.parquet
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
_FILE = (
    "parquet, csv, csv.gz or ndjson file, a folder of such files, or a quoted pattern such as 'part-*.csv'; folders "
    "named column=value add that column, and the name of an existing file is never a pattern"
)
_EXAMPLE = f"{_FILE} (default: the example data)"
_COMMANDS: Mapping[str, tuple[str, str, tuple[str, str | None, str], str]] = {
    "audit": (
        "[file] [options]", "audit a file of predictions: metrics and disparities, by group",
        ("file", "?", _EXAMPLE), _AUDIT,
    ),
    "report": (
        "[file] [options]", "write an audit as one page that opens without a network", ("file", "?", _EXAMPLE), _REPORT
    ),
    "compare": (
        "file --one COLUMN --other COLUMN [options]", "compare two models on the same rows",
        ("file", None, _FILE), _COMPARE,
    ),
    "check": (
        "[file] --policy FILE [options]", "judge a file of predictions by a required policy",
        ("file", "?", _EXAMPLE), _CHECK,
    ),
    "verify": (
        "evidence [--data FILE]", "verify a file of evidence, with or without the data",
        ("evidence", None, "file that `--evidence` wrote"), _VERIFY,
    ),
    "metrics": (
        "[name ...] [options]", "list all metrics, or explain some",
        ("name", "*", "metric or disparity to explain"), _METRICS,
    ),
    "datasets": (
        "[name] [options]", "show or write example data", ("name", "?", "data set to show or write"), _DATASETS
    ),
}  # fmt: skip
"""The usage of each command, what it does, its argument (with the number and its help), and the end of its help."""


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
        super().__init__(*args, allow_abbrev=False, exit_on_error=False, **settings)
        self.register("action", None, _StoreOnce)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # pyright: ignore[reportIncompatibleMethodOverride] - its overloads say the same
        """Refuse options that the command does not have, and wrong values, with the usage of the command."""
        try:
            known, unknown = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            name, message = error.argument_name, error.message
            if message == "expected one argument":
                option = str(name).partition("/")[0]
                self.error(f"{option} needs a value; one that begins with - is written {option}=VALUE")
            self.error(message if name is None else f"{name}: {message}")
        options = [text for text in unknown if text.startswith("-") and text != "-"]
        if options:
            self.error(self._unknown_option(options[0]))
        if unknown:
            way_out = "quote a pattern of several files, and put options before their values"
            self.error(f"Unexpected argument {unknown[0]!r}: {way_out}.")
        return known, unknown

    def _unknown_option(self, text: str) -> str:
        """The message on an option that does not exist, with the one to write instead."""
        option = text.partition("=")[0]
        if option in self._option_string_actions:
            return f"Unexpected argument {option!r}: write options before --, after which everything is a file."
        flags = [flag for flag in EVERY_FLAG if option in {*flag.flag.texts, flag.text}]
        if flags:
            others = ", ".join(dict.fromkeys(command for flag in flags for command in flag.commands))
            own = self.prog.split()[-1]
            policy = " What is compared and judged is written in the policy." if own == "check" else ""
            return f"{option} is an option of {others}, and not of {own}.{policy}"
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
        super().error(visible(message))


def _file(text: str) -> Path:
    """The file of the data."""
    if text in {"-", "/dev/stdin"}:
        msg = "standard input cannot be read: write the rows to a file first"
        raise argparse.ArgumentTypeError(msg)
    if not text:
        msg = "the name of the file is empty"
        raise argparse.ArgumentTypeError(msg)
    return Path(text)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; options that a command does not have are None."""
    every = _Parser(prog="tidyfair", description="Performance and fairness of predictions, by group.")
    every.add_argument("--version", action="version", version=f"tidyfair {version('tidyfair')}")
    subparsers = every.add_subparsers(dest="command", metavar="command")
    absent: dict[str, Any] = {flag.name: None for flag in EVERY_FLAG}
    runs = {
        "audit": audit.audit, "report": audit.audit, "compare": compare.compare, "check": named_audits.check,
        "verify": named_audits.verify, "metrics": catalogue.metrics, "datasets": catalogue.datasets,
    }  # fmt: skip
    for name, (usage, text, (argument, number, meaning), examples) in _COMMANDS.items():
        command = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter, usage=f"{every.prog} {name} {usage}",
        )  # fmt: skip
        command.set_defaults(**{"file": None, **absent, "run": runs[name]})
        is_file = argument in {"file", "evidence"}
        command.add_argument(argument, nargs=number, type=_file if is_file else str, help=meaning)
        for heading, flags in FLAGS.items():
            taken = [flag for flag in flags if name in flag.commands]
            group = command.add_argument_group(heading) if taken and heading != "options" else command
            for flag in taken:
                flag.add_to(group)
        if name == "report":
            command.set_defaults(html=Path("report.html"))
        if name == "datasets":
            command.set_defaults(rows=5_000)
    return every
