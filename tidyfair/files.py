"""Files: rows that are read, and results that are written whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.columns import telling
from tidyfair.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__: list[str] = []

_READERS = {".parquet": pl.scan_parquet, ".csv": pl.scan_csv, ".ndjson": pl.scan_ndjson, ".jsonl": pl.scan_ndjson}
PAGES = {"html": ".html", "markdown": ".md"}


def scan(file: Path) -> pl.LazyFrame:
    """The rows of a file."""
    kind = file.suffix.lower()
    if kind not in _READERS:
        what = "kind of file"
        raise ArgumentError.unknown(what, file.suffix, _READERS)
    return _READERS[kind](file)


def check_places(places: Mapping[str, Path], data: Path | None) -> None:
    """Refuse to write where there is no folder, over the data, twice, or what a file's name says that it is not."""
    for flag, place in places.items():
        page = PAGES.get(flag)
        if page is None:
            _writer(place)
        elif place.suffix != page:
            msg = f"{place} is to hold a page of kind {page}; call it so."
            raise ArgumentError(msg)
        if not place.parent.is_dir():
            msg = f"{place} cannot be written: there is no folder {str(place.parent)!r}."
            raise ArgumentError(msg)
        if data is not None and place.resolve() == data.resolve():
            msg = f"{place} is the file of the data; write to another one."
            raise ArgumentError(msg)
    if len({place.resolve() for place in places.values()}) < len(places):
        msg = f"{' and '.join(f'`{flag}`' for flag in places)} are to be written to files of their own."
        raise ArgumentError(msg)


def write(table: pl.DataFrame, place: Path) -> None:
    """Write a table as the name of the file says."""
    save(lambda part: _writer(place)(table, part), place)


def save(written: Callable[[Path], object], place: Path) -> None:
    """Write beside the place first, so that there is never half a file."""
    if place.exists() and not place.is_file():
        # a device or a pipe, which a file must not replace
        written(place)
        return
    place = place.resolve()
    part = place.with_name(f".part-{os.urandom(8).hex()}{place.suffix}")
    try:
        with telling("wrote the result"):
            written(part)
            part.replace(place)
    finally:
        part.unlink(missing_ok=True)


def _writer(place: Path) -> Callable[[pl.DataFrame, Path], object]:
    writers: dict[str, Callable[[pl.DataFrame, Path], object]] = {
        ".csv": lambda table, part: table.with_columns(pl.col(pl.List(pl.String)).list.join(";")).write_csv(part),
        ".parquet": pl.DataFrame.write_parquet,
        ".json": pl.DataFrame.write_json,
    }
    if place.suffix not in writers:
        kind = "kind of output"
        raise ArgumentError.unknown(kind, place.suffix, writers)
    return writers[place.suffix]
