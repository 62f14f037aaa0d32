"""Faults of csv files, with the line they are in; polars names its own options instead."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.specs import telling

_UTF_16 = "is encoded as UTF-16: save it as UTF-8"
_STARTS = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"PK": "is a spreadsheet or a zip archive: export the table as csv",
    b"\x1f\x8b": "is compressed: let its name end in .csv.gz",
    b"sep=": "starts with a line for Excel, which names the separator: remove that line",
}
"""The first bytes of files that are no table in UTF-8, and what to do with these."""
_NEVER_CLOSED = "opens a quotation mark that is never closed: close it, or write two marks where one is meant as text"
_FAULTS = {
    "unexpected end of data": _NEVER_CLOSED,
    "field larger than field limit": _NEVER_CLOSED,
    "expected after": (
        "has text after the quotation mark that closes a field: write two marks where one is meant as text"
    ),
    "new-line character": "ends in a carriage return alone: save the file with line feeds at the ends of lines",
}
"""Messages of Python's csv reader, and for each what is wrong with the line and what to do."""
_LONGEST_FIELD = 2**24
"""Characters of a field, of which Python takes fewer by default."""
_SEPARATORS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
"""Characters that separate fields, in words."""
_NO_SEPARATOR = "\x1f"
"""A character that separates no fields, so that lines are read as they are."""
_NOTHING: tuple[int, list[str]] = (0, [])
"""The line and the fields of a header that is absent."""
_WRONG_TYPE = re.compile(
    r"could not parse `(?P<value>.*?)` as dtype `(?P<dtype>\w+)` at column '(?P<column>.*?)' \(", re.DOTALL
)
"""The message of polars on a field that is not of the type of its column."""


@telling("opened the file")
def check_file(file: Path, separator: str) -> None:
    """Refuse a file that is no table, or has a line with more or fewer fields than its header.

    Raises:
        ArgumentError: For such a file.
    """
    header = _header(file, separator)
    # polars cuts and fills such lines where it reads some of the columns only
    if _may_have_other_fields(file, separator, len(header)):
        find_line(file, separator, "")


def _header(file: Path, separator: str) -> list[str]:
    """The names of columns; refuses no rows, another encoding or separator, and columns of the same name."""
    _check_start(file, next(_bytes(file), b""))
    with closing(_records(file, separator)) as records:
        (_, header), first_row = next(records, _NOTHING), next(records, None)
    if not header:
        msg = f"{str(file)!r} is empty: a csv file has a line of column names, and a line for each row."
        raise ArgumentError(msg)
    if len(header) == 1:
        _check_separator(file, header[0])
    for name in header:
        if header.count(name) > 1:
            fault = f"two columns called {name!r}: rename one of them"
            if not name:
                fault = "two columns without a name: name them, or remove separators from the ends of its lines"
            msg = f"{str(file)!r} has {fault}."
            raise ArgumentError(msg)
    if first_row is None:
        msg = f"{str(file)!r} has a header and no rows."
        raise ArgumentError(msg)
    return header


def _may_have_other_fields(file: Path, separator: str, columns: int) -> bool:
    """True if a line has more or fewer fields than columns, or opens a field that goes on in the next line."""
    lines = pl.scan_csv(
        file, glob=False, has_header=False, separator=_NO_SEPARATOR, quote_char=None, schema={"line": pl.String},
        truncate_ragged_lines=True,
    )  # fmt: skip
    line = pl.col("line")
    is_plain = (line.str.count_matches(separator, literal=True) == columns - 1) & ~line.str.contains('"', literal=True)
    # a quotation mark counts as one at the start of a field only
    quoted_field = f'{re.escape(separator)}"(?:[^"]|"")*"'
    rest = (pl.lit(separator) + line).str.replace_all(quoted_field, separator.replace("$", "$$"))
    is_same = rest.str.count_matches(separator, literal=True) == columns
    is_open = rest.str.contains(f'{separator}"', literal=True)
    return lines.filter(~is_plain).select((~is_same | is_open).any()).collect(engine="streaming").item()


def _check_start(file: Path, line: bytes) -> None:
    """Refuse a file whose first line shows that it is no table in UTF-8."""
    for start, fault in _STARTS.items():
        if line.startswith(start):
            msg = f"{str(file)!r} {fault}."
            raise ArgumentError(msg)
    if b"\0" in line:
        # every other byte of English text in UTF-16
        msg = f"{str(file)!r} {_UTF_16}."
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
    """Refuse the first line with more or fewer fields than the header, or with the value that polars could not read.

    Args:
        file: The file.
        separator: The character between fields.
        message: The message of polars, which may name a value and its column; empty if it has none.

    Raises:
        ArgumentError: For that line; nothing is raised if no fault is found.
    """
    wrong = _WRONG_TYPE.search(message)
    with closing(_records(file, separator)) as records:
        _, header = next(records, _NOTHING)
        for line, fields in records:
            fault = _fault_of_fields(fields, header, wrong)
            if fault:
                msg = f"line {line} of {str(file)!r}{fault}."
                raise ArgumentError(msg)


def _fault_of_fields(fields: Sequence[str], header: Sequence[str], wrong: re.Match[str] | None) -> str:
    """The fault of a line with more or fewer fields than the header, or with the value that polars could not read."""
    if len(fields) != len(header):
        way_out = (
            "put text that holds the separator in double quotes, or name another separator as `--separator`"
            if len(fields) > len(header)
            else "leave a missing value empty between its separators"
        )
        number = f"{len(fields)} field{'s' if len(fields) > 1 else ''}"
        return f" has {number}, and its header has {len(header)}: {way_out}"
    if wrong is None:
        return ""
    value = dict(zip(header, fields, strict=True)).get(wrong["column"])
    if value is None or value.strip() != wrong["value"].strip():
        return ""
    held = "true and false" if wrong["dtype"] == "bool" else "numbers"
    return (
        f": column {wrong['column']!r} holds {held}, and here {wrong['value']!r}: correct the field, or leave it empty "
        "if the value is missing"
    )


def _bytes(file: Path) -> Iterator[bytes]:
    """The lines of a file, which may be compressed."""
    is_compressed = file.suffix.lower() == ".gz"
    with file.open("rb") as stream:
        try:
            yield from cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if is_compressed else stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            msg = f"{str(file)!r} is not a complete gzip file: {error}."
            raise ArgumentError(msg) from error


def _records(file: Path, separator: str) -> Generator[tuple[int, list[str]]]:
    """The records of a file that are not empty, each with the number of its last line."""
    reader = csv.reader(_lines(file), delimiter=separator, strict=True)
    begun = 0
    shortest = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
            begun = reader.line_num
    except csv.Error as error:
        faults = [fault for message, fault in _FAULTS.items() if message in str(error)]
        msg = f"line {begun + 1} of {str(file)!r} {faults[0] if faults else f'is no csv: {error}'}."
        raise ArgumentError(msg) from error
    finally:
        csv.field_size_limit(shortest)


def _lines(file: Path) -> Iterator[str]:
    """The lines of a file as text."""
    for number, line in enumerate(_bytes(file), 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            msg = f"line {number} of {str(file)!r} is not UTF-8: save the file in that encoding."
            raise ArgumentError(msg) from error
