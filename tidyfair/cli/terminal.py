"""The terminal: tables that fit it, colours and progress, which files and pipes do not get."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
from polars import selectors

from tidyfair.escapes import renamed, visible, visible_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__: list[str] = []

_MOST_ROWS = 200
_BORDERS = 3
"""Characters of a column beside its texts."""
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


def complain(text: str) -> None:
    """Print an error; its further lines are indented, so that none passes for a message of its own."""
    unwatch()
    print(f"tidyfair: {visible(text, lines=True)}".replace("\n", "\n  "), file=sys.stderr)


def show(
    title: str, table: pl.DataFrame, notes: Sequence[tuple[str, int, str]] = (), *, up_to: str = "", remark: str = ""
) -> None:
    """Print a table below its title.

    Args:
        title: The title.
        table: The table.
        notes: A column, a row, and the note on that cell.
        up_to: The columns up to this one are repeated where a table is so wide that it is shown in parts; without,
            cells wrap.
        remark: A line below the table.
    """
    unwatch()
    title = _coloured(visible(title), 1)
    if table.is_empty():
        print(f"{title}\n(no rows)\n")
        return
    names = dict(zip(table.columns, renamed(table.columns), strict=True))
    table = visible_texts(table).rename(names)
    table = table.with_columns((selectors.string() | selectors.integer()).cast(pl.String).fill_null("-"))
    numbers: dict[str, int] = {}
    for column, row, text in notes:
        number = numbers.setdefault(visible(text), len(numbers) + 1)
        table[row, names[column]] += f" [{number}]"
    below = [f"[{number}] {text}" for text, number in numbers.items()]
    if remark:
        below.append(visible(remark))
    print("\n".join([title, *_printed(table, names.get(up_to, "")), *below]))
    if len(table) > _MOST_ROWS:
        print(f"({len(table):,} rows in all; a file has all of them)")
    print()


def _printed(table: pl.DataFrame, up_to: str) -> list[str]:
    """A table as text that fits the terminal, in several parts if it is too wide."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    formatting = "UTF8_FULL_CONDENSED" if is_unicode else "ASCII_FULL_CONDENSED"
    width = max(80, shutil.get_terminal_size((120, 24)).columns)
    with pl.Config(
        tbl_rows=_MOST_ROWS,
        tbl_cols=-1,
        tbl_width_chars=width,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting=formatting,
        fmt_str_lengths=40,
        float_precision=3,
        fmt_table_cell_list_len=10,
    ):
        printed: list[str] = []
        for part in _parts(table, up_to, width):
            # texts in lists and structs are made visible here
            text = visible(str(part), lines=True)
            printed.append(_verdicts_coloured(text))
        return printed


def _parts(table: pl.DataFrame, up_to: str, width: int) -> list[pl.DataFrame]:
    """Tables no wider than `width`, each of which begins with the columns up to `up_to`."""
    if not up_to:
        return [table]
    repeated = table.columns.index(up_to) + 1
    first, rest = table.columns[:repeated], table.columns[repeated:]
    own_width = sum(_width(table[name]) for name in first)
    parts: list[list[str]] = []
    used = width
    for name in rest:
        needed = _width(table[name])
        if not parts or used + needed >= width:
            parts.append([])
            used = own_width
        parts[-1].append(name)
        used += needed
    if not parts:
        return [table]
    return [table.select(*first, *part) for part in parts]


def _width(column: pl.Series) -> int:
    """The width of a column with its border."""
    return max(map(len, (column.name, *map(str, column)))) + _BORDERS


def _coloured(text: str, code: int) -> str:
    """A text in a colour of the terminal, which files do not get."""
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def _verdicts_coloured(table: str) -> str:
    """A table whose verdicts have their colours."""
    verdicts = "|".join(_COLOURS)

    def coloured(match: re.Match[str]) -> str:
        return _coloured(match[0], _COLOURS[match[0]])

    return re.sub(rf"(?<=[\u2502\u2506|] )(?:{verdicts})(?= )", coloured, table)
