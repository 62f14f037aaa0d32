"""Messages of the library in the words of the command line."""

from __future__ import annotations

import ast
import datetime as dt
import re
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS = {"labels": "label", "unknown_values": "unknown-value", "na_rm": "no-na-rm"}
"""The flags of options that the library names otherwise, beside underscores."""
_MAPPING = re.compile(r"`probs=\{[^`]*\}`")
"""Scores by label, as Python writes them."""
_IN_PYTHON = (
    (
        re.compile(r"Convert logits with `probs=sigmoid\(…\)`, or (.*?) If the threshold is right, .*", re.DOTALL),
        r"Convert logits to probabilities in the file, or \1",
    ),
    (re.compile(r" If the value is correct, make the column an Enum of .*?`unprivileged=`\.", re.DOTALL), ""),
    (re.compile(r"If that means missing, read it as null: .*", re.DOTALL), "If that means missing, leave it empty."),
    (
        re.compile(r"Convert one of them, for example with `\(pl\.col.*", re.DOTALL),
        "Write the labels of both in the same way.",
    ),
    (re.compile(r"make it one: `data\.with_columns\([^`]*`"), "write it in one way in the file"),
    (re.compile(r"Put numbers into bands, `[^`]*`"), "Put numbers into bands in the file"),
    (re.compile(r"Pool (rare values of '.*') with `lump_rare`"), r"Put \1 together in the file"),
    (re.compile(r"^audit(?:\(\))?: "), ""),
)
"""Advice of the library that is about Python, and what the command line says instead."""
_TEXTS = re.compile(r"\[(?:'[^']*'(?:, )?)+\]")
"""A list of texts, as Python writes it."""
_MOMENT = re.compile(r"datetime\.(date|datetime|time)\((\d+(?:, \d+)*)\)")
"""Dates and times, as Python writes them."""


def _as_written(match: re.Match[str]) -> str:
    """A date or time as the command line takes it."""
    numbers = map(int, match[2].split(", "))
    kinds: dict[str, Any] = {"date": dt.date, "datetime": dt.datetime, "time": dt.time}
    return repr(kinds[match[1]](*numbers).isoformat())


def as_flags(message: str, flags: Iterable[str]) -> str:
    """A message whose names of arguments are flags."""
    names: dict[str, str] = {}
    for flag in flags:
        names[flag] = _FLAGS.get(flag, flag.replace("_", "-"))

    def as_flag(match: re.Match[str]) -> str:
        flag, value = f"--{names[match['name']]}", match["value"]
        if value and _TEXTS.fullmatch(value):
            # a flag is repeated for each of several
            return f"`{' '.join(f'{flag} {shlex.quote(text)}' for text in ast.literal_eval(value))}`"
        return f"`{flag} {value}`" if value else f"`{flag}`"

    for advice, words in _IN_PYTHON:
        message = advice.sub(words, message)
    message = _MOMENT.sub(_as_written, message)
    message = _MAPPING.sub("`probs=LABEL=COLUMN` for each label", message)
    return re.sub(rf"`(?P<name>{'|'.join(names)})(=(?P<value>[^`]*))?`", as_flag, message)
