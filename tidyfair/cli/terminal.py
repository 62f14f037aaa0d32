"""The terminal: texts and tables that fit it, colors and progress, which files and pipes do not get."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap

import polars as pl

from tidyfair.escapes import visible

_LEAST_WIDTH = 80
_MOST_OF_TEXT = 110
"""The widest line of prose."""
_PATIENCE = 1.0
"""Seconds after which the count of rows is shown."""
_ERASED = "\x1b[2K"
_COLOURS = {"pass": 32, "fail": 31, "not enough evidence": 33}
"""Green, red and yellow, of verdicts, which are words all the same."""
_BORDERS = 3
"""Characters of a column beside its texts."""
_NARROWEST = 12
"""Columns of names are not made narrower than this to fit a line."""
_VALUE = re.compile(r"(?:-|(?:< )?-?(?:[\d.,]+|inf)(?:%| points)?(?: \(.*\))?)(?: \[\d+\])*|")
"""Numbers with their interval, or none, and the marks of notes; they stay on one line."""
_BREAKS = re.compile(r"(?<=[\s:;,_/|\-])(?=\S)")
"""Where names may continue on the next line."""
_UNICODE = ("┌─┬┐", "╞═╪╡", "└─┴┘"), "│┆│"
_ASCII = ("+-++", "+=++", "+-++"), "|||"
"""The lines of a table, above its head, below it and at the end, each left to right; and the borders of its rows."""


def watched(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows, with a count of those read in the terminal if reading takes a while."""
    if not sys.stderr.isatty():
        return rows
    started, read = time.monotonic(), 0

    def report_progress(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal read
        read += len(batch)
        if time.monotonic() - started > _PATIENCE:
            print(f"{read:,} rows read", end="\r", file=sys.stderr, flush=True)
        return batch

    return rows.map_batches(report_progress, streamable=True, validate_output_schema=False)


def unwatch() -> None:
    """Erase the count of rows in the terminal."""
    if sys.stderr.isatty():
        print(_ERASED, end="", file=sys.stderr, flush=True)


def tell(text: str) -> None:
    """Print what was done, or a note beside the results, to stderr."""
    unwatch()
    print(visible(text), file=sys.stderr)


def complain(text: str) -> None:
    """Print an error; its further lines are indented, so that none passes for a message of its own."""
    unwatch()
    print(f"tidyfair: {visible(text, lines=True)}".replace("\n", "\n  "), file=sys.stderr)


def say(text: str, *, bold: bool = False) -> None:
    """Print a paragraph of prose, in lines that fit the terminal; without a text, an empty line."""
    unwatch()
    width = min(_width(), _MOST_OF_TEXT)
    for line in wrap(visible(text), width, break_long_words=False, break_on_hyphens=False) or [""]:
        print(_coloured(line, 1) if bold else line)


def show_texts(table: pl.DataFrame, repeated: int = 0) -> None:
    """Print a table of texts, whose first columns are repeated where it is so wide that it is shown in parts."""

    def colour(column: str, text: str) -> str:
        return _coloured(text, _COLOURS[text]) if column == "verdict" and text in _COLOURS else text

    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    for line in lines_of(table, width=_width(), repeated=repeated, unicode=is_unicode, colour=colour):
        print(line)


def _width() -> int:
    """The width of the terminal."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((120, 24)).columns)


def _coloured(text: str, code: int) -> str:
    """A text in a color of the terminal, which files do not get."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


# Tables of texts, as wide as the terminal, with nothing cut off


def lines_of(
    table: pl.DataFrame,
    *,
    width: int,
    repeated: int = 0,
    unicode: bool = True,
    colour: Callable[[str, str], str] = lambda _, text: text,
) -> list[str]:
    """The lines of a table of texts that is no wider than `width`, in parts that repeat its first columns if need be.

    Lines are drawn, or without `unicode` made of letters that every terminal has; `colour` is a function of the name of
    a column and one of its texts.
    """
    drawn, sides = _UNICODE if unicode else _ASCII
    natural = {column.name: max(map(_width_of, [column.name, *column])) for column in table}
    # names are wrapped, and numbers are not
    numbers = [column.name for column in table if all(map(_VALUE.fullmatch, column))]
    least = {name: size if name in numbers else min(size, _NARROWEST) for name, size in natural.items()}
    lines: list[str] = []
    for names in _parts(natural, least, width, repeated):
        widths = _narrowed({name: natural[name] for name in names}, least, width)
        above, below_head, end = (
            left + between.join(line * (size + 2) for size in widths.values()) + right
            for left, line, between, right in drawn
        )
        lines += [above, *_row(names, widths, sides, lambda _, text: text), below_head]
        for row in table.select(names).rows():
            lines += _row(row, widths, sides, colour)
        lines.append(end)
    return lines


def _narrowed(widths: dict[str, int], least: Mapping[str, int], width: int) -> dict[str, int]:
    """The widths of columns in a table of some width, the widest of which are made narrower if need be."""
    excess = sum(widths.values()) + _BORDERS * len(widths) + 1 - width
    while excess > 0 and (wide := [name for name in widths if widths[name] > least[name]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
        excess -= 1
    return widths


def _row(texts: Sequence[str], widths: Mapping[str, int], sides: str, colour: Callable[[str, str], str]) -> list[str]:
    """The lines of a row, whose texts may take several."""
    left, between, right = sides
    cells = [_wrapped(text, width) for text, width in zip(texts, widths.values(), strict=True)]
    lines: list[str] = []
    for parts in zip_longest(*cells, fillvalue=""):
        padding = [" " * (width - _width_of(text)) for text, width in zip(parts, widths.values(), strict=True)]
        coloured = map(colour, widths, parts)
        shown = [f" {text}{blanks} " for text, blanks in zip(coloured, padding, strict=True)]
        lines.append(left + between.join(shown) + right)
    return lines


def _parts(natural: Mapping[str, int], least: Mapping[str, int], width: int, repeated: int) -> list[list[str]]:
    """The columns of a table, or of parts of it that fit the width, each of which begins with the first ones."""
    names = [*natural]
    if sum(least.values()) + _BORDERS * len(names) + 1 <= width or not 0 < repeated < len(names):
        return [names]
    first, parts, used = names[:repeated], list[list[str]](), width
    for name in names[repeated:]:
        if used + natural[name] + _BORDERS > width:
            parts.append([*first])
            used = sum(natural[one] + _BORDERS for one in first) + 1
        parts[-1].append(name)
        used += natural[name] + _BORDERS
    return parts


def _width_of(text: str) -> int:
    """The width of a text in a terminal, where some characters are two columns wide and some none."""
    sizes = (2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text if not unicodedata.combining(one))
    return sum(sizes)


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken between words or, where a word is too long, in it."""
    if _width_of(text) <= width:
        return [text]
    lines = [""]
    for word in _BREAKS.split(text):
        if lines[-1] and _width_of(lines[-1] + word.rstrip()) > width:
            lines.append("")
        for character in word:
            if _width_of(lines[-1] + character) > width:
                if character.isspace():
                    continue
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]
