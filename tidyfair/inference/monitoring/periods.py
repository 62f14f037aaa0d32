"""The order of periods by value; texts that do not sort chronologically are refused."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import polars as pl

from tidyfair.errors import ArgumentError, in_short

_PARTS = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
_YEAR = re.compile(r"(19|20)\d\d")
_DAY_FIRST = re.compile(r"\d{1,2}\D\d{1,2}\D(\d\d|\d{4})")
"""Dates that end with the year, whose order of day and month is ambiguous."""
_NAMES = (
    ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
     "december"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("before", "after"), ("pre", "post"), ("old", "new"),
)  # fmt: skip
_NUMBER_OF_NAME = {
    text: float(number) for names in _NAMES for number, name in enumerate(names, start=1) for text in (name, name[:3])
}


def period_column(function: str, period: object) -> None:
    """Refuse what is not the name of a column of periods."""
    if not isinstance(period, str) or not period:
        msg = f"{function}(): `period` must be the name of a column, not {in_short(period)}."
        raise ArgumentError(msg)


def check_periods(function: str, outer_keys: pl.DataFrame, period: str) -> None:
    """Refuse periods that are not among the keys of outer groups, are missing, or do not sort chronologically."""
    if period not in outer_keys.columns:
        msg = f"{function}() needs the periods as outer groups: `group_by={period!r}`."
        raise ArgumentError(msg)
    periods = outer_keys[period]
    if periods.null_count():
        msg = f"{function}(): some rows have no value of {period!r}; leave them out."
        raise ArgumentError(msg)
    if not isinstance(periods.dtype, pl.String | pl.Categorical):
        return
    texts = periods.cast(pl.String).unique().sort().to_list()
    keys = _order_of_times(texts)
    for (text, key), (after, key_after) in itertools.pairwise(zip(texts, keys, strict=True)):
        is_ambiguous = _DAY_FIRST.fullmatch(text) and _DAY_FIRST.fullmatch(after)
        if key > key_after or is_ambiguous:
            msg = (
                f"{function}(): periods are sorted by value, but as text {text!r} sorts before {after!r}. Convert "
                f"{period!r} to a number or a date, for example with `pl.col({period!r}).cast(pl.Int64)` or "
                f"`pl.col({period!r}).str.to_date(…)`, an Enum of its values in their order, or text such as "
                "'2026-08' and '2026-10'."
            )
            raise ArgumentError(msg)


def _order_of_times(texts: Sequence[str]) -> list[list[tuple[float, str]]]:
    """Keys that sort texts in time: numbers by value; else by parts, a year first, and names of times by number."""
    try:
        return [[(float(text), "")] for text in texts]
    except ValueError:
        pass
    keys: list[list[tuple[float, str]]] = []
    for text in texts:
        parts = _PARTS.findall(text.casefold())
        years = [part for part in parts if _YEAR.fullmatch(part)]
        if len(years) == 1:
            parts = [*years, *(part for part in parts if part not in years)]
        numbers = [float(part) if part.isdecimal() else _NUMBER_OF_NAME.get(part, math.inf) for part in parts]
        # other texts come after numbers
        keys.append([(number, part if number == math.inf else "") for number, part in zip(numbers, parts, strict=True)])
    return keys
