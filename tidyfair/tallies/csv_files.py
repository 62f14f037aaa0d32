"""Faults of csv files, with the line they are in; polars names its own options instead."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from typing import IO, TYPE_CHECKING, cast

from tidyfair.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__: list[str] = []

_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK": "a spreadsheet or a zip archive"}
"""The first bytes of files that are no text in UTF-8."""
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
"""Characters that separate fields, in words."""
_NOTHING: tuple[int, list[str]] = (0, [])
"""The line and the fields of a header that is absent."""
_WRONG_TYPE = re.compile(
    r"could not parse `(?P<value>.*?)` as dtype `(?P<dtype>\w+)` at column '(?P<column>.*?)' \(", re.DOTALL
)
"""The message of polars on a field that is not of the type of its column."""


def check_header(file: Path, separator: str) -> None:
    """Refuse a file without rows, in another encoding or with another separator, and with columns of the same name.

    Raises:
        ArgumentError: For such a file.
    """
    start = next(_bytes(file), b"")
    for first, encoding in _OTHER_ENCODINGS.items():
        if start.startswith(first):
            way_out = "save it as UTF-8" if encoding == "UTF-16" else "export the table as csv"
            msg = f"{str(file)!r} is {'encoded as ' if encoding == 'UTF-16' else ''}{encoding}: {way_out}."
            raise ArgumentError(msg)
    records = _records(file, separator)
    _, header = next(records, _NOTHING)
    if not header:
        msg = f"{str(file)!r} is empty: a csv file has a line of column names, and a line for each row."
        raise ArgumentError(msg)
    if len(header) == 1:
        _check_separator(file, header[0])
    for name in header:
        if header.count(name) > 1:
            msg = f"{str(file)!r} has two columns called {name!r}: rename one of them."
            raise ArgumentError(msg)
    if next(records, None) is None:
        msg = f"{str(file)!r} has a header and no rows."
        raise ArgumentError(msg)


def _check_separator(file: Path, name: str) -> None:
    """Refuse a header of one field that holds another separator."""
    for other, words in _SEPARATORS.items():
        if other in name:
            written = "tab" if other == "\t" else f"'{other}'"
            msg = f"{str(file)!r} has one column, {name!r}: if {words} separates its fields, write "
            msg += f"`--separator {written}`."
            raise ArgumentError(msg)


def find_line(file: Path, separator: str, message: str) -> None:
    """Refuse the first line that polars could not read.

    Args:
        file: The file.
        separator: The character between fields.
        message: The message of polars, which may name a value and its column.

    Raises:
        ArgumentError: For that line; nothing is raised if no fault is found.
    """
    records = _records(file, separator)
    _, header = next(records, _NOTHING)
    wrong = _WRONG_TYPE.search(message)
    column = header.index(wrong["column"]) if wrong and wrong["column"] in header else None
    for line, fields in records:
        if len(fields) > len(header):
            msg = f"line {line} of {str(file)!r} has {len(fields)} fields, and its header has {len(header)}: put text "
            msg += "that holds the separator in double quotes, or name another separator as `--separator`."
            raise ArgumentError(msg)
        if wrong and column is not None and column < len(fields) and fields[column].strip() == wrong["value"].strip():
            values = "true and false" if wrong["dtype"] == "bool" else "numbers"
            msg = f"line {line} of {str(file)!r}: column {wrong['column']!r} holds {values}, and here "
            msg += f"{wrong['value']!r}: correct the field, or leave it empty if the value is missing."
            raise ArgumentError(msg)


def _bytes(file: Path) -> Iterator[bytes]:
    """The lines of a file, which may be compressed."""
    is_compressed = file.suffix.lower() == ".gz"
    with file.open("rb") as stream:
        try:
            yield from cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if is_compressed else stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            msg = f"{str(file)!r} is not a complete gzip file: {error}."
            raise ArgumentError(msg) from error


def _records(file: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The records of a file that are not empty, each with the number of its last line."""
    reader = csv.reader(_lines(file), delimiter=separator, strict=True)
    begun = 0
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
            begun = reader.line_num
    except csv.Error as error:
        msg = f"line {begun + 1} of {str(file)!r} opens a quotation mark that is never closed: close it, or write two "
        msg += "marks where one is meant as text."
        raise ArgumentError(msg) from error


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file as text."""
    for number, line in enumerate(_bytes(file), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            msg = f"line {number} of {str(file)!r} is not UTF-8: save the file in that encoding."
            raise ArgumentError(msg) from error
