"""Features and values as the command line writes them: `race`, `race:sex`, `race=White`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.specs.groups import privileged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidyfair.specs.groups import Privileged

__all__: list[str] = []


def feature_of(text: str, names: Iterable[str], role: str) -> tuple[str, ...] | Privileged:
    """The feature that a text names: a column, several as `sex:race`, or two sides as `race=White`.

    A colon or an equal sign is part of a name if there is such a column.
    """
    present = list(names)
    if text in present:
        return (text,)
    parts = list(map(str.strip, re.split("[:,]", text)))
    is_value = [part not in present and part.partition("=")[0] in present for part in parts]
    if any(is_value):
        if not all(is_value):
            msg = f"`{role}`: {text!r} mixes columns and values: write columns, 'sex:race', or values, 'race=White'."
            raise ArgumentError(msg)
        return privileged(dict(_value_of(part, names) for part in parts))
    for column in parts:
        if column not in present:
            raise ColumnError.missing(column, role, present)
    return tuple(parts)


def _value_of(part: str, names: Iterable[str]) -> tuple[str, object]:
    """A column and its value, read as the column is."""
    column, _, value = part.partition("=")
    dtype = names[column] if isinstance(names, pl.Schema) else pl.String()
    return column, as_value(value, dtype)


def as_value(text: str, dtype: pl.DataType) -> object:
    """The value that a text stands for in a column of this dtype."""
    if dtype == pl.Boolean and text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if dtype == pl.Boolean or dtype.is_numeric():
        with suppress(ValueError):
            return int(text)  # a float would lose digits
        with suppress(ValueError):
            number = float(text)
            return int(number) if number.is_integer() else number
    return text
