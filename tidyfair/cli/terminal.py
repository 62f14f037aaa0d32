"""The terminal: texts and tables that fit it, colours and progress, which files and pipes do not get."""

from __future__ import annotations

import os
import shutil
import sys
import time
from textwrap import wrap
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.cli.text_tables import lines_of
from tidyfair.escapes import renamed, visible, visible_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_ROWS = 200
_LEAST_WIDTH = 80
_MOST_OF_TEXT = 110
"""The widest line of prose."""
_PATIENCE = 1.0
"""Seconds after which the count of rows is shown."""
_ERASED = "\x1b[2K"
_COLOURS = {"pass": 32, "fail": 31, "not enough evidence": 33}
"""Green, red and yellow, of verdicts, which are words all the same."""


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


def note(text: str) -> None:
    """Print a note beside the results, to stderr."""
    unwatch()
    print(f"note: {visible(text)}", file=sys.stderr)


def tell(text: str) -> None:
    """Print what was done, to stderr."""
    unwatch()
    print(visible(text), file=sys.stderr)


def complain(text: str) -> None:
    """Print an error; its further lines are indented, so that none passes for a message of its own."""
    unwatch()
    print(f"tidyfair: {visible(text, lines=True)}".replace("\n", "\n  "), file=sys.stderr)


def say(text: str) -> None:
    """Print a paragraph of prose, in lines that fit the terminal; without a text, an empty line."""
    unwatch()
    for line in _in_lines(text) or [""]:
        print(line)


def heading(text: str) -> None:
    """Print a heading."""
    unwatch()
    for line in _in_lines(text):
        print(_coloured(line, 1))


def show(
    title: str,
    table: pl.DataFrame,
    notes: Sequence[tuple[str, int, str]] = (),
    *,
    up_to: str = "",
    remarks: Sequence[str] = (),
) -> None:
    """Print a table below its title.

    Args:
        title: The title.
        table: The table.
        notes: A column, a row, and the note on that cell.
        up_to: The columns up to this one are repeated where a table is so wide that it is shown in parts; without,
            cells wrap.
        remarks: Sentences below the table.
    """
    if title:
        heading(title)
    if table.is_empty():
        print("(no rows)\n")
        return
    table, below = with_notes(table, notes)
    repeated = table.columns.index(visible(up_to)) + 1 if up_to else 0
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    texts = table.head(_MOST_ROWS)
    for line in lines_of(texts, width=_width(), repeated=repeated, unicode=is_unicode, colour=_verdict_coloured):
        print(line)
    for sentence in (*below, *remarks):
        say(sentence)
    if len(table) > _MOST_ROWS:
        say(f"({len(table):,} rows in all; write them to a file to see the others.)")
    print()


def with_notes(
    table: pl.DataFrame, notes: Sequence[tuple[str, int, str]], *, nothing: str = "-"
) -> tuple[pl.DataFrame, list[str]]:
    """A table as visible texts, with the numbers of notes in its cells, and the notes with their numbers."""
    names = dict(zip(table.columns, renamed(table.columns), strict=True))
    texts: list[pl.Series] = []
    for column in visible_texts(table):
        # texts in lists and structs are made visible here
        cells = [nothing if value is None else visible(_as_text(value)) for value in column]
        texts.append(pl.Series(names[column.name], cells, dtype=pl.String))
    marked = pl.DataFrame(texts)
    numbers: dict[str, int] = {}
    for column, row, text in notes:
        number = numbers.setdefault(visible(text), len(numbers) + 1)
        marked[row, names[column]] += f" [{number}]"
    return marked, [f"[{number}] {text}" for text, number in numbers.items()]


def _as_text(value: object) -> str:
    """A value of a table as text."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _in_lines(text: str) -> list[str]:
    """A text in lines that fit the terminal, broken between words."""
    width = min(_width(), _MOST_OF_TEXT)
    return wrap(visible(text), width, break_long_words=False, break_on_hyphens=False)


def _width() -> int:
    """The width of the terminal."""
    return max(_LEAST_WIDTH, shutil.get_terminal_size((120, 24)).columns)


def _coloured(text: str, code: int) -> str:
    """A text in a colour of the terminal, which files do not get."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def _verdict_coloured(column: str, text: str) -> str:
    """A verdict in its colour; other texts as they are."""
    return _coloured(text, _COLOURS[text]) if column == "verdict" and text in _COLOURS else text
