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
"""How much wider a column is than its texts."""
_PATIENCE = 1.0
"""Seconds after which a terminal is told that rows are still being read."""
_ERASED = "\x1b[2K"
_COLOURS = {"pass": 32, "fail": 31, "not enough evidence": 33}
"""Green, red and yellow, of verdicts, which are words all the same."""


def watched(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows, of which a terminal is told how many have been read, where that takes a while."""
    if not sys.stderr.isatty():
        return rows
    started, read = time.monotonic(), 0

    def passed_on(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal read
        read += len(batch)
        if time.monotonic() - started > _PATIENCE:
            print(f"{read:,} rows read", end="\r", file=sys.stderr, flush=True)
        return batch

    return rows.map_batches(passed_on, streamable=True, validate_output_schema=False)


def unwatch() -> None:
    """Erase what a terminal was told of rows."""
    if sys.stderr.isatty():
        print(_ERASED, end="", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Say something beside the results."""
    unwatch()
    print(f"note: {visible(text)}", file=sys.stderr)


def complain(text: str) -> None:
    """Say what went wrong; further lines of it are set in, so that none passes for a message of its own."""
    unwatch()
    print(f"tidyfair: {visible(text, lines=True)}".replace("\n", "\n  "), file=sys.stderr)


def show(
    title: str, table: pl.DataFrame, notes: Sequence[tuple[str, int, str]] = (), *, up_to: str = "", remark: str = ""
) -> None:
    """Print a table below its title.

    Args:
        title: What it shows.
        table: The table.
        notes: What is said of a column and row.
        up_to: The columns up to this one come again where a table is so wide that it is shown in parts; without, cells
            wrap.
        remark: What is said below it.
    """
    unwatch()
    title = visible(title)
    if table.is_empty():
        print(f"{_coloured(title, 1)}\n(no rows)\n")
        return
    names = dict(zip(table.columns, renamed(table.columns), strict=True))
    notes = [(names[column], row, visible(text)) for column, row, text in notes]
    table = visible_texts(table).rename(names)
    up_to = names.get(up_to, "")
    box = "UTF8_FULL_CONDENSED" if (sys.stdout.encoding or "").lower().startswith("utf") else "ASCII_FULL_CONDENSED"
    width = max(80, shutil.get_terminal_size((120, 24)).columns)
    table = table.with_columns((selectors.string() | selectors.integer()).cast(pl.String).fill_null("-"))
    remarks = list(dict.fromkeys(text for _, _, text in notes))
    for column, row, text in notes:
        table[row, column] += f" [{remarks.index(text) + 1}]"
    with pl.Config(
        tbl_rows=_MOST_ROWS, tbl_cols=-1, tbl_width_chars=width, tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True, tbl_formatting=box, fmt_str_lengths=40, float_precision=3,
        fmt_table_cell_list_len=10,
    ):  # fmt: skip
        # what stands in lists and structs is not visible yet
        parts = [_verdicts_coloured(visible(str(part), lines=True)) for part in _parts(table, up_to, width)]
    below = [*(f"[{place}] {text}" for place, text in enumerate(remarks, 1)), *([visible(remark)] if remark else [])]
    print("\n".join([_coloured(title, 1), *parts, *below]))
    if len(table) > _MOST_ROWS:
        print(f"({len(table):,} rows in all; a file has all of them)")
    print()


def _parts(table: pl.DataFrame, up_to: str, width: int) -> list[pl.DataFrame]:
    """Tables that are no wider than that, each of which begins with the columns up to one."""
    if not up_to:
        return [table]
    repeated = table.columns.index(up_to) + 1
    first, rest = table.columns[:repeated], table.columns[repeated:]
    wide = {name: max(len(text) for text in (name, *map(str, table[name]))) + _BORDERS for name in table.columns}
    parts = list[list[str]]()
    for name in rest:
        if not parts or sum(wide[each] for each in [*first, *parts[-1], name]) >= width:
            parts.append([])
        parts[-1].append(name)
    return [table.select(*first, *part) for part in parts or [[]]]


def _coloured(text: str, code: int) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def _verdicts_coloured(table: str) -> str:
    """The cells that are a verdict, in its colour."""
    cells = "|".join(_COLOURS)
    return re.sub(rf"(?<=[\u2502\u2506|] )({cells})(?= )", lambda cell: _coloured(cell[1], _COLOURS[cell[1]]), table)
