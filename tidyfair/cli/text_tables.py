"""Tables of texts as lines of a terminal: as wide as it, with nothing cut off."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

_BORDERS = 3
"""Characters of a column beside its texts."""
_NARROWEST = 12
"""Columns of names are not made narrower than this to fit a line."""
_VALUE = re.compile(r"(?:-|(?:< )?-?(?:[\d.,]+|inf)(?: \(.*\))?)(?: \[\d+\])*")
"""Numbers with their interval, or none, and the marks of notes; they stay on one line."""
_BREAKS = re.compile(r"(?<=[\s:;,_/|\-])(?=\S)")
"""Where names may continue on the next line."""


@dataclass(frozen=True)
class _Borders:
    """The characters of a table's lines, each left to right: end, line, between columns, end."""

    top: str
    head: str
    bottom: str
    left: str
    between: str
    right: str


_UNICODE = _Borders("┌─┬┐", "╞═╪╡", "└─┴┘", "│", "┆", "│")
_ASCII = _Borders("+-++", "+=++", "+-++", "|", "|", "|")


def lines_of(
    table: pl.DataFrame,
    *,
    width: int,
    repeated: int = 0,
    unicode: bool = True,
    colour: Callable[[str, str], str] | None = None,
) -> list[str]:
    """The lines of a table of texts that is no wider than `width`.

    Args:
        table: Columns of texts, none of them missing.
        width: The width of the terminal.
        repeated: The number of first columns that are repeated where a table is so wide that it is shown in parts.
        unicode: Whether lines are drawn, or made of letters that every terminal has.
        colour: A function of the name of a column and one of its texts, which gives the text in its colour.
    """
    lines: list[str] = []
    for part in _parts(table, width, repeated):
        lines += _drawn(part, width, _UNICODE if unicode else _ASCII, colour)
    return lines


def _width_of(text: str) -> int:
    """The width of a text in a terminal, where some characters are two columns wide and some none."""
    width = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return width


def _parts(table: pl.DataFrame, width: int, repeated: int) -> list[pl.DataFrame]:
    """The table, or parts of it that fit the width, each of which begins with the first columns."""
    narrowest = sum(map(_narrowest, table)) + _BORDERS * table.width + 1
    if narrowest <= width or not repeated or repeated >= table.width:
        return [table]
    first, rest = table.columns[:repeated], table.columns[repeated:]
    own_width = sum(_natural(table[name]) + _BORDERS for name in first) + 1
    parts: list[list[str]] = []
    used = width
    for name in rest:
        needed = _natural(table[name]) + _BORDERS
        if not parts or used + needed > width:
            parts.append([])
            used = own_width
        parts[-1].append(name)
        used += needed
    return [table.select(*first, *part) for part in parts]


def _natural(column: pl.Series) -> int:
    """The width of a column whose texts are on one line."""
    return max(map(_width_of, [column.name, *column]))


def _narrowest(column: pl.Series) -> int:
    """The least width of a column: that of its longest number, or that of a name that is wrapped."""
    natural = _natural(column)
    return natural if _holds_values(column) else min(natural, _NARROWEST)


def _holds_values(column: pl.Series) -> bool:
    return all(_VALUE.fullmatch(text) or not text for text in column)


def _widths(table: pl.DataFrame, width: int) -> list[int]:
    """The widths of columns, of which the widest names are wrapped until all fit."""
    widths = [_natural(column) for column in table]
    least = [_narrowest(column) for column in table]
    excess = sum(widths) + _BORDERS * len(widths) + 1 - width
    while excess > 0:
        spare = [own - narrowest for own, narrowest in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        widest = max(range(len(widths)), key=lambda index: (spare[index] > 0, widths[index]))
        widths[widest] -= 1
        excess -= 1
    return widths


def _drawn(table: pl.DataFrame, width: int, borders: _Borders, colour: Callable[[str, str], str] | None) -> list[str]:
    """The lines of a table that fits."""
    widths = _widths(table, width)
    lines = [_line(borders.top, widths), *_row(table.columns, widths, borders), _line(borders.head, widths)]
    for row in table.rows():
        lines += _row(row, widths, borders, table.columns, colour)
    return [*lines, _line(borders.bottom, widths)]


def _line(characters: str, widths: Sequence[int]) -> str:
    left, line, between, right = characters
    return left + between.join(line * (width + 2) for width in widths) + right


def _row(
    texts: Sequence[str],
    widths: Sequence[int],
    borders: _Borders,
    names: Sequence[str] = (),
    colour: Callable[[str, str], str] | None = None,
) -> list[str]:
    """The lines of a row, whose texts may take several."""
    cells = [_wrapped(text, width) for text, width in zip(texts, widths, strict=True)]
    lines: list[str] = []
    for number in range(max(map(len, cells))):
        shown: list[str] = []
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            text = cell[number] if number < len(cell) else ""
            padding = " " * (width - _width_of(text))
            if colour is not None:
                text = colour(names[index], text)
            shown.append(f" {text}{padding} ")
        lines.append(borders.left + borders.between.join(shown) + borders.right)
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken between words or, where a word is too long, in it."""
    if _width_of(text) <= width:
        return [text]
    lines = [""]
    for word in _BREAKS.split(text):
        if lines[-1] and _width_of(lines[-1] + word.rstrip()) > width:
            lines.append("")
        for character in word:
            if _width_of(lines[-1] + character) > width:
                if character.isspace():
                    continue
                lines.append("")
            lines[-1] += character
    return [line.rstrip() for line in lines]
