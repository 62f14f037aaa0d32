"""Files: rows that are read, and results that are written whole or not at all.

In csv files an apostrophe is put before texts, and names of columns, that a spreadsheet would take for a formula. Other
files keep them as they are, and no file changes numbers.
"""

from __future__ import annotations

import glob
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars import selectors

from tidyfair.errors import ArgumentError
from tidyfair.escapes import renamed
from tidyfair.specs.columns import telling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__: list[str] = []


def _scan_parquet(files: list[Path]) -> pl.LazyFrame:
    # folders have their keys in their names
    has_folder = any(map(Path.is_dir, files))
    return pl.scan_parquet(files, glob=False, hive_partitioning=has_folder or None)


def _scan_csv(files: list[Path]) -> pl.LazyFrame:
    return pl.scan_csv(files, glob=False)


def _scan_ndjson(files: list[Path]) -> pl.LazyFrame:
    # names are no patterns here, but polars would read them so
    names = [glob.escape(str(file)) for file in files]
    return pl.scan_ndjson(names)


_READERS = {".parquet": _scan_parquet, ".csv": _scan_csv, ".ndjson": _scan_ndjson, ".jsonl": _scan_ndjson}
PAGES = {"html": ".html", "markdown": ".md"}
_FORMULA = (
    r"^(?:[\s\x00\u{200b}\u{feff}]*[=+\-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}\u{fe66}\u{fe62}\u{fe63}\u{fe6b}]|[\t\r\n])"
)
"""Beginning of a cell that spreadsheets take for a formula."""
_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def scan(file: Path) -> pl.LazyFrame:
    """The rows of a file, of a folder, or of all files that a pattern with `*`, `?` or `[…]` names."""
    kind = file.suffix.lower()
    if kind not in _READERS:
        setting = "kind of file"
        raise ArgumentError.unknown(setting, file.suffix, _READERS)
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        msg = f"The name {str(file)!r} is not UTF-8, and cannot be read; rename the file."
        raise ArgumentError(msg) from error
    return _READERS[kind](_matching(file))


def _matching(file: Path) -> list[Path]:
    """The file of a name if it exists, else all files that match the name as a pattern."""
    file = file.expanduser()
    if file.exists() or not glob.has_magic(str(file)):
        return [file]
    names = glob.glob(str(file), recursive=True)  # noqa: PTH207 - of a path it would fit hidden files too
    files = list(map(Path, sorted(names)))
    if not files:
        msg = f"No file fits {str(file)!r}."
        raise ArgumentError(msg)
    return files


def check_outputs(outputs: Mapping[str, Path], data: Path | None) -> None:
    """Refuse files whose folder is missing, which hold the data, come twice, or have the wrong extension."""
    sources = _matching(data) if data is not None and outputs else []
    for flag, file in outputs.items():
        extension = PAGES.get(flag)
        if extension is None:
            _writer(file)
        elif file.suffix != extension:
            msg = f"{file} is to hold a page of kind {extension}; call it so."
            raise ArgumentError(msg)
        if not file.parent.is_dir():
            msg = f"{file} cannot be written: there is no folder {str(file.parent)!r}."
            raise ArgumentError(msg)
        for source in sources:
            _check_source(file, source)
    for one, other in itertools.combinations(outputs.values(), 2):
        if _is_same(one, other):
            flags = " and ".join(map("`{}`".format, outputs))
            msg = f"{flags} are to be written to files of their own."
            raise ArgumentError(msg)


def _check_source(output: Path, source: Path) -> None:
    """Refuse to write over a file of the data, by whatever name, or into a folder of them."""
    if source.is_dir() and output.resolve().is_relative_to(source.resolve()):
        msg = f"{output} is in the folder of the data, {str(source)!r}; write elsewhere."
        raise ArgumentError(msg)
    files = source.rglob("*") if source.is_dir() else [source]
    if any(_is_same(output, file) for file in files):
        msg = f"{output} is the file of the data; write to another one."
        raise ArgumentError(msg)


def _is_same(one: Path, other: Path) -> bool:
    """Check whether two names are of one file, which may have several: links are names too."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def write(table: pl.DataFrame, file: Path) -> None:
    """Write a table in the format of the file's extension."""
    save(lambda part: _writer(file)(table, part), file)


def save(write_to: Callable[[Path], object], file: Path) -> None:
    """Write another file beside it first, so that there is never half a file."""
    if file.exists() and not file.is_file():
        # a device or a pipe, which a file must not replace
        write_to(file)
        return
    file = file.resolve()
    part = file.with_name(f".part-{os.urandom(8).hex()}{file.suffix}")
    try:
        with telling("wrote the result"):
            write_to(part)
            part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _writer(file: Path) -> Callable[[pl.DataFrame, Path], object]:
    writers: dict[str, Callable[[pl.DataFrame, Path], object]] = {
        ".csv": lambda table, part: _without_formulas(table).write_csv(part),
        ".parquet": pl.DataFrame.write_parquet,
        ".json": pl.DataFrame.write_json,
    }
    if file.suffix not in writers:
        setting = "kind of output"
        raise ArgumentError.unknown(setting, file.suffix, writers)
    return writers[file.suffix]


def _without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """A table for a csv file, where no text is a formula; numbers are as they are."""
    lists = pl.col(pl.List(pl.String))
    texts = (selectors.string(include_categorical=True) | selectors.enum()).cast(pl.String)
    plain = table.with_columns(lists.list.eval(_as_text(pl.element())).list.join(";"), _as_text(texts))
    plain.columns = renamed(table.columns, lambda name: pl.select(_as_text(pl.lit(name))).item())
    return plain


def _as_text(texts: pl.Expr) -> pl.Expr:
    formula = texts.str.contains(_FORMULA) & ~texts.str.contains(_NUMBER)
    return pl.when(formula).then(pl.format("'{}", texts)).otherwise(texts)
