"""What differs between the versions of polars that this library runs on, in one place.

The oldest is the one that Pyodide has, so that tidyfair runs in browsers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

_ITEM = set(pl.element().meta.root_names())
"""The name that items of a list have among the columns of an expression, in older versions."""
_COMPUTES_WITH_LITERALS = hasattr(pl.col("").meta, "is_length_preserving")
"""False before polars 2.0, which panics where literals are computed with each other for every group."""


def columns_of(expr: pl.Expr) -> list[str]:
    """The columns that an expression reads."""
    return [name for name in expr.meta.root_names() if name not in _ITEM]


def number_of_rows(value: float, column: pl.Expr) -> pl.Expr:
    """A number that statistics of rows may compute with, the same in each row; `column` is any of the frame's."""
    return pl.lit(value) if _COMPUTES_WITH_LITERALS else spread(pl.lit(value), column)


def spread(value: pl.Expr, column: pl.Expr) -> pl.Expr:
    """A value in as many rows as a column has; a literal alone is summed once, however many rows there are."""
    return value + column.is_null().cast(pl.Float64) * 0


def gives_a_value_per_row(expr: pl.Expr, *, unknown: bool) -> bool:
    """Check whether an expression gives one value for each row; `unknown` where only the data could tell."""
    try:
        if hasattr(expr.meta, "is_length_preserving"):
            return expr.meta.is_length_preserving()
        # before polars 2.0: three rows show the length
        rows = pl.DataFrame({name: [0.0, 0.5, 1.0] for name in columns_of(expr)})
        return rows.select(expr).height == len(rows)
    except Exception:  # noqa: BLE001 - a function in it may fail of these rows with any error
        return unknown


def is_row_separable(expr: pl.Expr, *, unknown: bool) -> bool:
    """Check whether the value of a row depends on that row alone; `unknown` where polars cannot tell, as before 2.0."""
    try:
        return expr.meta.is_row_separable() if hasattr(expr.meta, "is_row_separable") else unknown
    except pl.exceptions.PolarsError:
        return unknown


def from_physical(values: pl.Series, dtype: pl.Categorical) -> pl.Series:
    """The categories of their physical integers."""
    if hasattr(values.cat, "to"):
        return values.cat.to(dtype)
    # before polars 1.43
    return values.cast(dtype)


def is_beyond_numpy(dtype: pl.DataType) -> bool:
    """Check for integers of 128 bits; before polars 1.34 there are no unsigned ones."""
    return str(dtype) in {"Int128", "UInt128"}


def value_at(values: pl.Expr, index: pl.Expr) -> pl.Expr:
    """The value at an index, null beyond the end: `get` does so from polars 1.37 on."""
    return values.slice(index, 1).first()


def in_batches(frame: pl.LazyFrame, rows: int) -> Iterable[pl.DataFrame]:
    """The result of a query in batches of rows; before polars 1.34 at once."""
    if hasattr(frame, "collect_batches"):
        return frame.collect_batches(chunk_size=rows, maintain_order=False)
    return [frame.collect(engine="streaming")]


def largest_integer(value: int) -> Any:
    """The dtype of 128 bits for a large integer; before polars 1.34 there is one with a sign only."""
    return pl.UInt128 if value >= 2**127 and hasattr(pl, "UInt128") else pl.Int128
