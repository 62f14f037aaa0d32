"""Files: rows that are read, and results that are written whole or not at all.

In csv files an apostrophe precedes texts and column names that a spreadsheet would read as a formula. Other file
formats keep them unchanged, and numbers are never changed.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl
from polars import selectors

from tidyfair.errors import ArgumentError, listed
from tidyfair.escapes import renamed
from tidyfair.specs import telling
from tidyfair.tallies.csv_files import check_file, find_line


def _scan_parquet(files: list[Path], **options: Any) -> pl.LazyFrame:
    # partition columns are read from the names of folders here, and alike for all kinds of files
    return pl.scan_parquet(files, glob=False, hive_partitioning=False, **options)


def _scan_csv(files: list[Path], **options: Any) -> pl.LazyFrame:
    return pl.scan_csv(files, glob=False, infer_schema_length=_TYPES_FROM, **options)


def _scan_ndjson(files: list[Path], **options: Any) -> pl.LazyFrame:
    # names are no patterns here, but polars would read them so
    names = [glob.escape(str(file)) for file in files]
    return pl.scan_ndjson(names, infer_schema_length=_TYPES_FROM, **options)


_READERS = {
    ".parquet": _scan_parquet,
    ".csv": _scan_csv,
    ".csv.gz": _scan_csv,
    ".tsv": _scan_csv,
    ".ndjson": _scan_ndjson,
    ".jsonl": _scan_ndjson,
}
_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t"}
"""The character between fields of text files, unless another is named."""
_TYPES_FROM = 10_000
"""The rows of a text file whose values say whether a column holds numbers or texts."""
_TABLES = (".csv", ".parquet", ".json")
"""The extensions of tables that are written."""
_FILE = "\0file"
"""The internal column of the file of a row."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows whose partition column is null."""
PAGES = {"html": ".html", "markdown": ".md", "json": ".json", "evidence": ".json"}
"""The extensions of documents, by the option that names their file."""
_FORMULA = (
    r"^(?:[\s\x00\u{200b}\u{feff}]*[=+\-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}\u{fe66}\u{fe62}\u{fe63}\u{fe6b}]|[\t\r\n])"
)
"""Beginning of a cell that spreadsheets take for a formula."""
_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def scan(path: Path, separator: str | None = None) -> pl.LazyFrame:
    """The rows of a file, of a folder, or of all files that match a pattern with `*`, `?` or `[…]`.

    Folders named `column=value` add that column, as Hive, Spark and polars write them.
    """
    files = _files_of(path)
    kind = _kind_of(files)
    reader = _READERS[kind]
    for file in files:
        if file.is_file() and not file.stat().st_size:
            msg = f"{str(file)!r} is empty."
            raise ArgumentError(msg)
    options: dict[str, Any] = {}
    if kind in _SEPARATORS:
        options["separator"] = _separator_of(kind, separator)
        for file in files:
            check_file(file, options["separator"])
    elif separator is not None:
        msg = f"`separator` is about csv files, and {str(path)!r} is {kind}: leave it out."
        raise ArgumentError(msg)
    partitions = _partitions(files)
    if partitions.is_empty():
        return reader(files, **options)
    return _with_partitions(reader(files, include_file_paths=_FILE, **options), partitions)


def find_fault(path: Path, separator: str | None, error: Exception) -> None:
    """Refuse the file, or the line of a text file, that polars could not read, if there is one.

    Raises:
        ArgumentError: For that file or line, or for files whose columns differ.
    """
    files = _files_of(path)
    kind = _kind_of(files)
    if kind in _SEPARATORS:
        for file in files:
            find_line(file, _separator_of(kind, separator), str(error))
    schemas: list[pl.Schema] = []
    for file in files:
        options = {"separator": _separator_of(kind, separator)} if kind in _SEPARATORS else {}
        try:
            schemas.append(_READERS[kind]([file], **options).collect_schema())
        except pl.exceptions.PolarsError as fault:
            msg = f"{str(file)!r} cannot be read as {kind.removeprefix('.')}: {fault}."
            raise ArgumentError(msg) from fault
    for file, schema in zip(files, schemas, strict=True):
        first = schemas[0]
        for name in dict.fromkeys([*first, *schema]):
            if first.get(name) != schema.get(name):
                held = [f"{one[name]}" if name in one else "absent" for one in (first, schema)]
                msg = f"All files need the same columns: {name!r} is {held[0]} in {str(files[0])!r}, and {held[1]} in "
                msg += f"{str(file)!r}."
                raise ArgumentError(msg)


def _separator_of(kind: str, separator: str | None) -> str:
    """The character between fields, which may be named `tab`."""
    if separator is None:
        return _SEPARATORS[kind]
    character = "\t" if separator in {"tab", "\\t"} else separator
    if len(character) != 1 or not character.isascii() or character in '"\r\n':
        msg = f"`separator`: one character, or tab, separates fields, and not {separator!r}."
        raise ArgumentError(msg)
    return character


def _files_of(path: Path) -> list[Path]:
    """The files of a name, of a folder or of a pattern."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        msg = f"The file name {str(path)!r} is not valid UTF-8; rename the file."
        raise ArgumentError(msg) from error
    # a pattern such as `data/**` names folders and the files in them
    unique: dict[Path, None] = {}
    for match in _matching(path):
        unique |= dict.fromkeys(_files_in(match) if match.is_dir() else [match])
    return list(unique)


def _files_in(folder: Path) -> list[Path]:
    """The files of rows in a folder and those below it, without hidden ones and marks of other programs."""
    files: list[Path] = []
    for file in sorted(folder.rglob("*")):
        own = file.relative_to(folder).parts
        is_mark = any(part.startswith((".", "_")) and "=" not in part for part in own)
        if not is_mark and file.is_file() and _extension(file) in _READERS:
            files.append(file)
    if not files:
        msg = f"The folder {str(folder)!r} has no readable files; supported extensions: {listed(_READERS)}."
        raise ArgumentError(msg)
    return files


def _extension(file: Path) -> str:
    """The extension of a file, of which compressed files have two."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _kind_of(files: Sequence[Path]) -> str:
    """The one kind of all files, by their extension."""
    kinds = list(dict.fromkeys(map(_extension, files)))
    for kind in kinds:
        if kind not in _READERS:
            (file, *_) = [file for file in files if _extension(file) == kind]
            *others, last = _READERS
            msg = f"{str(file)!r} cannot be read: its name must end in {', '.join(others)} or {last}."
            raise ArgumentError(msg)
    if len(kinds) > 1:
        msg = (
            f"Files of different types cannot be read together: {listed(kinds)}. Select files of one type with a "
            "pattern."
        )
        raise ArgumentError(msg)
    return kinds[0]


def _partitions(files: Sequence[Path]) -> pl.DataFrame:
    """The values of partition columns from the names of folders, a row for each file; empty without any."""
    rows: list[dict[str, str | None]] = []
    for file in files:
        values: dict[str, str | None] = {}
        for part in file.parts[:-1]:
            column, is_partition, value = part.partition("=")
            if is_partition and column:
                values[unquote(column)] = None if value == _NULL_PARTITION else unquote(value)
        rows.append(values)
    for file, values in zip(files, rows, strict=True):
        if values.keys() != rows[0].keys():
            named = [listed(columns) for columns in (rows[0], values)]
            msg = f"All files need the same partition columns: {files[0]} has {named[0]}, and {file} has {named[1]}."
            raise ArgumentError(msg)
    if not rows[0]:
        return pl.DataFrame()
    # as polars reads the names of folders: dates and numbers where all values are some
    texts = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
    return texts.select(_as_read(column) for column in texts).with_columns(pl.Series(_FILE, list(map(str, files))))


def _as_read(texts: pl.Series) -> pl.Series:
    """The values of a partition column as whole numbers, numbers or dates, if all of them are and all stay different.

    Only the folder that stands for null is null: `nan` and `inf` are texts.
    """
    if texts.str.contains("^-?0[0-9]").any():
        return texts  # codes such as 007
    numbers = texts.cast(pl.Float64, strict=False)
    # a float has 15 digits for certain
    is_number = numbers.is_finite() & ~texts.str.contains("^[-+]?[0-9]{16}")
    for values in (
        texts.cast(pl.Int64, strict=False),
        pl.select(pl.when(is_number).then(numbers)).to_series(),
        texts.str.to_date("%Y-%m-%d", strict=False),
    ):
        if values.null_count() == texts.null_count() and values.n_unique() == texts.n_unique():
            return values
    return texts


@telling("opened the file")
def _with_partitions(rows: pl.LazyFrame, partitions: pl.DataFrame) -> pl.LazyFrame:
    """The rows with their partition columns; a column that the files have too is taken from them.

    Raises:
        ArgumentError: For a column of a file that contradicts the name of its folder.
    """
    present = rows.collect_schema()
    files = partitions[_FILE]
    added: list[pl.Expr] = []
    for column in partitions.drop(_FILE):
        if column.name in present:
            _check_agreement(rows, files, column)
            continue
        values = pl.col(_FILE).replace_strict(files, column, return_dtype=column.dtype)
        added.append(values.alias(column.name))
    return rows.with_columns(added).drop(_FILE)


def _check_agreement(rows: pl.LazyFrame, files: pl.Series, partition: pl.Series) -> None:
    """Refuse a column that holds other values than the names of the folders say."""
    partition_of_file = dict(zip(files, partition, strict=True))
    name = partition.name
    for file, value in rows.select(_FILE, name).unique(maintain_order=True).collect(engine="streaming").rows():
        if _is_same_value(value, partition_of_file[file]):
            continue
        (folder,) = [part for part in Path(file).parts if unquote(part).startswith(f"{name}=")]
        holds = "null" if value is None else repr(str(value))
        msg = (
            f"the folder {folder!r} contradicts the column {name!r} of the file in it, {file!r}, which holds {holds}: "
        )
        msg += "rename the folder, or drop the column from the file."
        raise ArgumentError(msg)


def _is_same_value(value: object, partition: object) -> bool:
    """Check whether the value of a column is the one that a folder names, which is text or read from it."""
    if value is None or partition is None:
        return value is partition
    if isinstance(value, bool):
        return str(value).casefold() == str(partition).casefold()
    texts = str(value), str(partition)
    try:
        return texts[0] == texts[1] or Decimal(texts[0]) == Decimal(texts[1])
    except ArithmeticError:
        return False


def _matching(file: Path) -> list[Path]:
    """The file of a name if it exists, else all files that match the name as a pattern."""
    file = file.expanduser()
    if file.exists() or not glob.has_magic(str(file)):
        return [file]
    names = glob.glob(str(file), recursive=True)  # noqa: PTH207 - of a path it would fit hidden files too
    files = list(map(Path, sorted(names)))
    if not files:
        msg = f"No file matches the pattern {str(file)!r}."
        raise ArgumentError(msg)
    return files


def check_outputs(outputs: Mapping[str, Path], data: Path | None, *, summary: Path | None = None) -> None:
    """Refuse output files that are in a missing folder, hold the data, occur twice, or have the wrong extension.

    A `summary` that others add to may have any extension.
    """
    sources = _matching(data) if data is not None and outputs else []
    for flag, file in outputs.items():
        is_summary = flag == "markdown" and summary is not None and _is_same(file, summary)
        if not is_summary:
            _check_name(flag, file)
        for source in sources:
            _check_source(flag, file, source)
    for one, other in itertools.combinations(outputs.items(), 2):
        if _is_same(one[1], other[1]):
            msg = f"`{one[0]}` and `{other[0]}` are both {str(one[1])!r}; give different files."
            raise ArgumentError(msg)


def _check_name(flag: str, file: Path) -> None:
    """Refuse a file of another kind, a folder, and a file in a folder that is missing or cannot be written to."""
    endings = [PAGES[flag]] if flag in PAGES else list(_TABLES)
    problem = ""
    if file.is_dir():
        problem = f"is a folder: name a file in it, such as {str(file / f'audit{endings[0]}')!r}."
    elif file.suffix.lower() not in endings:
        *others, last = endings
        either = f"{', '.join(others)} or {last}" if others else last
        problem = f"is not a valid output file: its name must end in {either}."
    elif not file.parent.is_dir():
        problem = f"cannot be written: the folder {str(file.parent)!r} does not exist."
    elif not os.access(file.parent, os.W_OK) and not file.exists():
        problem = f"cannot be written: the folder {str(file.parent)!r} cannot be written to."
    if problem:
        msg = f"`{flag}`: {str(file)!r} {problem}"
        raise ArgumentError(msg)


def _check_source(flag: str, output: Path, source: Path) -> None:
    """Refuse to overwrite a file of the data, under any name, or to write into its folder."""
    if source.is_dir() and output.resolve().is_relative_to(source.resolve()):
        msg = f"`{flag}`: {output} is in the folder of the data, {str(source)!r}; write it to another folder."
        raise ArgumentError(msg)
    files = source.rglob("*") if source.is_dir() else [source]
    if any(_is_same(output, file) for file in files):
        msg = f"`{flag}`: {output} is the file of the data; write to another file."
        raise ArgumentError(msg)


def _is_same(one: Path, other: Path) -> bool:
    """Check whether two names, links included, refer to the same file."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def write(table: pl.DataFrame, file: Path) -> None:
    """Write a table in the format of the file's extension."""
    save(lambda part: _writer(file)(table, part), file)


def save(write_to: Callable[[Path], object], file: Path) -> None:
    """Write a temporary file next to it first, so that the file is never incomplete."""
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
    return writers[file.suffix.lower()]


def _without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    """A table for a csv file, in which texts cannot be read as formulas; numbers are unchanged."""
    is_nested = [isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) for dtype in table.dtypes]
    nested = pl.col([name for name, holds_structs in zip(table.columns, is_nested, strict=True) if holds_structs])
    fields = pl.element().struct.field("*")
    table = table.with_columns(nested.list.eval(pl.concat_str(fields, separator=" ", ignore_nulls=True)))
    lists = pl.col(pl.List(pl.String))
    texts = (selectors.string(include_categorical=True) | selectors.enum()).cast(pl.String)
    plain = table.with_columns(lists.list.eval(_as_text(pl.element())).list.join(";"), _as_text(texts))
    plain.columns = renamed(table.columns, lambda name: pl.select(_as_text(pl.lit(name))).item())
    return plain


def _as_text(texts: pl.Expr) -> pl.Expr:
    is_plain = ~texts.str.contains(_FORMULA) | texts.str.contains(_NUMBER)
    return pl.when(is_plain).then(texts).otherwise(pl.lit("'") + texts)
