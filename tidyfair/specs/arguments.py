"""Checks of arguments, whose errors name the argument, the values that it takes and the value that it got."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeGuard, cast

from tidyfair.errors import ArgumentError, in_short

LEAST_TIMES, MOST_TIMES = 20, 10**7
_LARGEST = 2**63 - 1
"""The largest whole number of 64 bits."""
_PERCENT, _LEAST_PERCENT = 100, 2
"""Range of a number in place of a share that is taken for percent."""


def whole(name: str, value: object, least: int, most: int = _LARGEST, *, of: str = "") -> int:
    """A whole number from one end to the other."""
    integer = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if integer is None or not least <= integer <= most:
        has_limit = most < _LARGEST or (integer is not None and integer > most)
        ends = f"{least} to {most}" if has_limit else f"{least} or more"
        subject = f"{of}: `{name}`" if of else f"`{name}`"
        msg = f"{subject} is a whole number, {ends}, not {in_short(value)}."
        raise ArgumentError(msg)
    return integer


def how_often(value: object) -> int:
    """A number of draws, large enough for a 5% level (20 or more)."""
    return whole("times", value, LEAST_TIMES, MOST_TIMES)


def number(name: str, value: object, least: float, most: float = math.inf, *, inside: bool = False) -> float:
    """A finite number from one end to the other, or strictly `inside`."""
    result = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            result = float(value)
    is_within = least < result < most if inside else least <= result <= most
    if not is_within or result == math.inf:
        hint = ""
        if most == 1 and (share := share_of_percent(result)):
            hint = f"; {value!r} percent is {share:g}"
        msg = f"`{name}` is a {_range_in_words(least, most, inside=inside)}, not {in_short(value)}{hint}."
        raise ArgumentError(msg)
    return result


def _range_in_words(least: float, most: float, *, inside: bool) -> str:
    if most < math.inf:
        return f"number between {least:g} and {most:g}" if inside else f"number from {least:g} to {most:g}"
    if inside:
        return f"finite number above {least:g}"
    return f"finite number of {least:g} or more" if least > -math.inf else "finite number"


def share_of_percent(value: float) -> float | None:
    """The share of a number that looks like percent; None for other numbers."""
    return value / _PERCENT if _LEAST_PERCENT <= value <= _PERCENT else None


def proper_share(name: str, value: object, least: float = 0) -> float:
    """A share strictly between a lower end and 1."""
    return number(name, value, least, 1, inside=True)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        msg = f"`{name}` is True or False, not {in_short(value)}."
        raise ArgumentError(msg)
    return value


def string(name: str, value: object) -> str:
    """Any text; invisible characters are escaped where it is shown."""
    if not isinstance(value, str):
        msg = f"`{name}` is a text, not {in_short(value)}."
        raise ArgumentError(msg)
    return value


def text(name: str, value: object) -> str:
    """A non-empty text of valid Unicode characters."""
    if not isinstance(value, str) or not value or not is_unicode(value):
        msg = f"`{name}` is a text of valid Unicode characters, not {in_short(value)}."
        raise ArgumentError(msg)
    return value


def is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Check whether it has items; texts and zero-dimensional arrays are single values, although iterable."""
    is_one_value = isinstance(value, str | bytes | bytearray | memoryview) or getattr(value, "ndim", 1) == 0
    return isinstance(value, Iterable) and not is_one_value


def is_value(value: object) -> bool:
    """Check whether it is a single value comparable with those of a column; expressions, frames and NA are not."""
    try:
        hash(value)
        bool(value == value)  # noqa: PLR0124 - what cannot say so has no truth value
    # what frames, expressions and missing values raise, by their libraries
    except (TypeError, ValueError, NotImplementedError):
        return False
    return not isinstance(value, complex) and not (isinstance(value, Decimal) and not value.is_finite())


def plain(value: object) -> object:
    """Convert numpy scalars and zero-dimensional arrays to Python numbers, which expressions take."""
    return cast("Any", value).item() if getattr(value, "ndim", None) == 0 else value


def is_unicode(value: str) -> bool:
    """Check whether a text can be encoded; lone surrogates, which Python strings may hold, cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_of(name: str, value: object, known: Sequence[str]) -> str:
    """One of the words that an argument takes."""
    if not isinstance(value, str) or value not in known:
        raise ArgumentError.not_one_of(name, value, known)
    return value
