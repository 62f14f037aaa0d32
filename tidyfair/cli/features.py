"""Features and values as the command line writes them: `race`, `race:sex`, `race=White`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.specs import Privileged, privileged


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
        values: dict[str, object] = {}
        for part in parts:
            # a value is read as its column is
            column, _, value = part.partition("=")
            values[column] = as_value(value, names[column] if isinstance(names, pl.Schema) else pl.String())
        return privileged(values)
    for column in parts:
        if column not in present:
            raise ColumnError.missing(column, role, present)
    return tuple(parts)


def as_value(text: str, dtype: pl.DataType) -> object:
    """The value that a text stands for in a column of this dtype; the text itself if it stands for none."""
    readers: dict[type[pl.DataType], Callable[[str], object]] = {
        pl.Boolean: _truth_value,
        pl.Date: date.fromisoformat,
        pl.Time: time.fromisoformat,
        pl.Datetime: partial(_moment, zone=getattr(dtype, "time_zone", None)),
        pl.Decimal: Decimal,
    }
    read = readers.get(type(dtype), _number if dtype.is_numeric() else None)
    if read is None:
        return text
    try:
        return read(text.strip())
    except (ValueError, ArithmeticError):
        return text


def _truth_value(text: str) -> object:
    """True or false, or a number in their place."""
    return {"true": True, "false": False}[text.casefold()] if text.casefold() in {"true", "false"} else _number(text)


def _number(text: str) -> int | float:
    """A number, whole if it can be."""
    with suppress(ValueError):
        return int(text)  # a float would lose digits
    number = float(text)
    return int(number) if number.is_integer() else number


def _moment(text: str, zone: str | None) -> datetime:
    """A date with a time, in the time zone of its column unless the text names another."""
    moment = datetime.fromisoformat(text)
    if zone is None:
        return moment.replace(tzinfo=None)
    own = ZoneInfo(zone)
    return moment.replace(tzinfo=own) if moment.tzinfo is None else moment.astimezone(own)
