"""The terminal: texts and tables that fit it, colors and progress, which files and pipes do not get."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
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
    lines: list[str] = []
    for part in _parts(table, width, repeated):
        widths = _widths(part, width)
        above, below_head, end = (
            left + between.join(line * (width + 2) for width in widths) + right for left, line, between, right in drawn
        )
        lines += [above, *_row(part.columns, widths, sides), below_head]
        for row in part.rows():
            lines += _row(row, widths, sides, [partial(colour, name) for name in part.columns])
        lines.append(end)
    return lines


def _row(
    texts: Sequence[str], widths: Sequence[int], sides: str, colours: Sequence[Callable[[str], str]] = ()
) -> list[str]:
    """The lines of a row, whose texts may take several."""
    left, between, right = sides
    cells = [_wrapped(text, width) for text, width in zip(texts, widths, strict=True)]
    lines: list[str] = []
    for number in range(max(map(len, cells))):
        shown: list[str] = []
        for cell, width, colour in zip(cells, widths, colours or [str] * len(cells), strict=True):
            text = cell[number] if number < len(cell) else ""
            padding = " " * (width - _width_of(text))
            shown.append(f" {colour(text)}{padding} ")
        lines.append(left + between.join(shown) + right)
    return lines


def _width_of(text: str) -> int:
    """The width of a text in a terminal, where some characters are two columns wide and some none."""
    width = 0
    for character in text:
        if not unicodedata.combining(character):
            width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def _natural(column: pl.Series) -> int:
    """The width of a column whose texts are on one line."""
    return max(map(_width_of, [column.name, *column]))


def _narrowest(column: pl.Series) -> int:
    """The least width of a column: that of its longest number, or that of a name that is wrapped."""
    holds_values = all(map(_VALUE.fullmatch, column))
    return _natural(column) if holds_values else min(_natural(column), _NARROWEST)


def _parts(table: pl.DataFrame, width: int, repeated: int) -> list[pl.DataFrame]:
    """The table, or parts of it that fit the width, each of which begins with the first columns."""
    narrowest = sum(map(_narrowest, table)) + _BORDERS * table.width + 1
    if narrowest <= width or not repeated or repeated >= table.width:
        return [table]
    first, rest = table.columns[:repeated], table.columns[repeated:]
    parts: list[list[str]] = []
    used = width
    for name in rest:
        needed = _natural(table[name]) + _BORDERS
        if used + needed > width:
            parts.append([])
            used = sum(_natural(table[name]) + _BORDERS for name in first) + 1
        parts[-1].append(name)
        used += needed
    return [table.select(*first, *part) for part in parts]


def _widths(table: pl.DataFrame, width: int) -> list[int]:
    """The widths of columns, of which the widest names are wrapped until all fit."""
    widths = [_natural(column) for column in table]
    least = [_narrowest(column) for column in table]
    excess = sum(widths) + _BORDERS * len(widths) + 1 - width
    while excess > 0:
        wide = [index for index in range(len(widths)) if widths[index] > least[index]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
        excess -= 1
    return widths


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
