"""The terminal: tables that fit it, colours and progress, which files and pipes do not get."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time

import polars as pl

__all__: list[str] = []

_MOST_ROWS = 200
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


def show(title: str, table: pl.DataFrame) -> None:
    """Print a table below its title."""
    unwatch()
    box = "UTF8_FULL_CONDENSED" if (sys.stdout.encoding or "").lower().startswith("utf") else "ASCII_FULL_CONDENSED"
    width = max(80, shutil.get_terminal_size((120, 24)).columns)
    with pl.Config(
        tbl_rows=_MOST_ROWS, tbl_cols=-1, tbl_width_chars=width, tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True, tbl_formatting=box, fmt_str_lengths=40, float_precision=3,
        fmt_table_cell_list_len=10,
    ):  # fmt: skip
        print(f"{_coloured(title, 1)}\n{_verdicts_coloured(str(table))}")
    if len(table) > _MOST_ROWS:
        print(f"({len(table):,} rows in all; --output writes them to a file)")
    print()


def _coloured(text: str, code: int) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\x1b[{code}m{text}\x1b[0m"


def _verdicts_coloured(table: str) -> str:
    """The cells that are a verdict, in its colour."""
    cells = "|".join(_COLOURS)
    return re.sub(rf"(?<=[\u2502\u2506|] )({cells})(?= )", lambda cell: _coloured(cell[1], _COLOURS[cell[1]]), table)
