"""Tables as they are published: rounded values under the headings of a rule, as frames, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, listed, nearest
from tidyfair.escapes import as_html, markdown_row, renamed, visible_texts
from tidyfair.tallies import save

__all__ = ["PublishedColumn"]

_ROUNDING = {"half_up": ROUND_HALF_UP, "up": ROUND_CEILING}
_EXACT = 12
"""Digits up to which a value is exact: what is beyond is no reason to round up."""
_NOTHING, _NOTE = "\N{EN DASH}", "Note"


@dataclass(frozen=True, kw_only=True)
class PublishedColumn:
    """A column of a published table: the values that it shows, its heading, and how they are rounded.

    Args:
        column: The column of the tidy frame.
        heading: The heading.
        digits: The digits behind the point; without these and `significant`, values are shown as they are.
        significant: The digits that are not leading zeros, for values that may be very small.
        percent: Show values in percent.
        rounding: `"half_up"`, as people round, or `"up"`, to the next number above.

    >>> rate = PublishedColumn(column=".estimate", heading="Selection rate (%)", digits=1, percent=True)
    >>> rate.values(pl.Series([0.47945, 0.0625])).to_list()
    [47.9, 6.3]
    """

    column: str
    heading: str
    digits: int | None = None
    significant: int | None = None
    percent: bool = False
    rounding: Literal["half_up", "up"] = "half_up"

    def __str__(self) -> str:
        """The heading, the column, and how its values are rounded."""
        parts = [f"{self.heading}: {self.column}"]
        if self.percent:
            parts.append("in percent")
        if self.significant is not None:
            parts.append(f"{self.significant} significant digits")
        elif self.digits is not None:
            parts.append(f"{self.digits} decimals")
        if self.rounding == "up":
            parts.append("up")
        return ", ".join(parts)

    def values(self, column: pl.Series) -> pl.Series:
        """The values of a column as they are published."""
        if not column.dtype.is_numeric() and (self.significant, self.digits) != (None, None):
            msg = f"{self!r}: the column {self.column!r} holds no numbers that could be rounded; leave `digits` out."
            raise ArgumentError(msg)
        if self.significant is not None:
            return column.round_sig_figs(self.significant).alias(self.heading)
        if self.digits is None:
            return column.alias(self.heading)
        values = [self._rounded(value) for value in column]
        numbers = pl.Series(self.heading, values, dtype=pl.Float64)
        return numbers if self.digits else numbers.cast(pl.Int64)

    def _rounded(self, value: float | None) -> float | None:
        if value is None:
            return None
        exact = Decimal(repr(value)) * (100 if self.percent else 1)
        if not exact.is_finite():
            return None
        step = Decimal(1).scaleb(-(self.digits or 0))
        return float(round(exact, _EXACT).quantize(step, _ROUNDING[self.rounding]))

    def interval(self, value: dict[str, float | None]) -> str:
        """A value and the ends of its interval as text."""
        estimate, lower, upper = (self._rounded(value[name]) for name in (".estimate", ".lower", ".upper"))
        if estimate is None or lower is None or upper is None:
            return self.text(estimate)
        return f"{self.text(estimate)} ({self.text(lower)} to {self.text(upper)})"

    def text(self, value: object) -> str:
        """A published value as text, with all its digits."""
        if value is None:
            return _NOTHING
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float) and self.significant is not None:
            is_small = self.column.startswith(".p_") and 0 <= value < _SMALL_P
            return f"< {_SMALL_P:g}" if is_small else f"{value:#.{self.significant}g}".removesuffix(".")
        if isinstance(value, float) and self.digits is None:
            return f"{value:g}"
        if isinstance(value, float):
            return f"{value:z,.{self.digits or 0}f}"
        return f"{value:,}" if isinstance(value, int) else str(value)


_GROUPS = ("Group", "Compared with")
"""The headings of columns of groups."""
_SMALL_P = 0.001
"""Below it a p-value is not written with all of its digits."""
_WIDE = 8
"""The number of columns of a table that does not fit a narrow window."""


@dataclass(frozen=True)
class PublishedTable:
    """A table as it is published: its heading, its rounded values, and the columns that say how they are written."""

    heading: str
    values: pl.DataFrame
    columns: tuple[PublishedColumn, ...]
    """The heading and the format of each column of the values."""
    numbers: frozenset[str]
    """The headings of columns that hold numbers, or texts of them."""

    @classmethod
    def of(
        cls, heading: str, frame: pl.DataFrame, keys: Sequence[tuple[str, str]], columns: Sequence[PublishedColumn],
        *, texts_of_numbers: Collection[str] = (),
    ) -> PublishedTable:  # fmt: skip
        """The published table of a frame: its keys, given by name and heading, and then its columns.

        `texts_of_numbers` are columns of text that are set as numbers are.
        """
        columns = [*(PublishedColumn(column=name, heading=heading) for name, heading in keys), *columns]
        for column in columns:
            if column.column not in frame.columns:
                hint, known = nearest(column.column, frame.columns), listed(frame.columns, shown=40)
                msg = f"The table {heading!r} has no column {column.column!r}.{hint} The columns: {known}."
                raise ArgumentError(msg)
        headings = renamed([column.heading for column in columns])
        named = dict(zip(headings, columns, strict=True))
        values = pl.DataFrame({name: column.values(frame[column.column]) for name, column in named.items()})
        are_texts = {name for name, column in named.items() if column.column in texts_of_numbers}
        are_numbers = {name for name, dtype in values.schema.items() if dtype.is_numeric()}
        return cls(heading, values, tuple(columns), frozenset(are_texts | are_numbers))

    @property
    def texts(self) -> pl.DataFrame:
        """The values as texts, with all their digits; notes where there are any, and groups as people write them."""
        texts = [
            pl.Series(series.name, map(column.text, series), dtype=pl.String)
            for series, column in zip(self.values, self.columns, strict=True)
        ]
        table = pl.DataFrame(texts).with_columns(map(_with_capitals, (own for own in texts if own.name in _GROUPS)))
        if _NOTE in table.columns and (table[_NOTE] == "").all():
            table = table.drop(_NOTE)
        return visible_texts(table)

    def markdown(self) -> str:
        """As Markdown."""
        texts = self.texts
        rules = ["---:" if name in self.numbers else "---" for name in texts.columns]
        head = [markdown_row(texts.columns), f"| {' | '.join(rules)} |"]
        return "\n".join([*head, *(markdown_row(row) for row in texts.rows())])

    def html(self) -> str:
        """As HTML, in a box of its own, in which a wide table scrolls."""
        texts = self.texts
        classes = [' class="number"' if name in self.numbers else "" for name in texts.columns]
        head = _html_row(texts.columns, "th", [f'{own} scope="col"' for own in classes])
        body = "".join(_html_row(row, "td", classes) for row in texts.rows())
        label = as_html(self.heading)
        wide = f'<p class="hint">{texts.width} columns: scroll sideways to see all of them.</p>\n'
        hint = wide if texts.width >= _WIDE else ""
        return (
            f'{hint}<div class="table" role="region" tabindex="0" aria-label="{label}">'
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table></div>"
        )


def _with_capitals(groups: pl.Series) -> pl.Series:
    """Groups that start with a capital letter, unless some then read alike."""
    capitals = groups.str.slice(0, 1).str.to_uppercase() + groups.str.slice(1)
    return capitals if capitals.n_unique() == groups.n_unique() else groups


def _html_row(cells: Sequence[Any], tag: str, attributes: Sequence[str]) -> str:
    row = "".join(f"<{tag}{own}>{as_html(cell)}</{tag}>" for cell, own in zip(cells, attributes, strict=True))
    return f"<tr>{row}</tr>"


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy: a browser may show the page, and nothing else."""


def html_page(title: str, style: str, body: str, scripts: str = "") -> str:
    """A page that needs nothing else, and runs no scripts but those of a policy."""
    policy = f"{_POLICY}; {scripts}" if scripts else _POLICY
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{as_html(title)}</title>\n<style>{style}</style>\n"
        f"</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def save_document(file: str | Path, writers: Mapping[str, Callable[[], str]]) -> Path:
    """Write a document in the form that the suffix of the file names."""
    path = Path(file)
    if path.suffix not in writers:
        kind = "kind of report"
        raise ArgumentError.unknown(kind, path.suffix, writers)
    content = writers[path.suffix]()
    try:
        save(lambda part: part.write_text(content, "utf-8"), path)
    except OSError as error:
        msg = f"The report cannot be written to {str(path)!r}: {error}"
        raise ArgumentError(msg) from error
    return path
