"""Groups of as many rows each, at the quantiles of a numeric column of these rows or of another sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tidyfair.errors import ColumnError
from tidyfair.specs import Bins, Column, is_at_quantiles, quantile_bins, refuse_unknown_settings
from tidyfair.tallies.source import Source, open_frame

__all__ = ["quantile_groups"]


@refuse_unknown_settings
def quantile_groups(column: str, groups: int, *, on: Any = None, name: str | None = None) -> Bins:
    """Groups of a column of numbers with about as many rows each, for `by=` and `group_by=`, from low to high.

    Args:
        column: Name of the numeric column.
        groups: Number of groups: 4 for quartiles, 5 for fifths, 10 for deciles.
        on: The frame whose quantiles are the edges, such as the training data; by default the rows of each call, all
            outer groups together. Batches and periods need it, so that groups are the same in all of them.
        name: Name of the feature in results; by default the column with the word `group`.

    Edges are quantiles of the rows, between the two nearest (type 7), whatever the weights. A group has its lower edge
    and not its upper one. Equal numbers are in one group, so that ties make groups unequal, or leave one without rows.
    Null and NaN are the unknown group.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"income": [10, 20, 30, 40]})
    >>> quantile_groups("income", 2, on=rows).edges
    (25.0,)
    """
    unknown = quantile_bins(column, groups, name)
    return unknown if on is None else _at_quantiles(open_frame(on), unknown)


def columns_with_edges(source: Source, columns: Iterable[Column]) -> dict[Column, Column]:
    """The columns to be read in place of bins at quantiles, whose edges are those of all rows of an engine."""
    known: dict[Column, Column] = {}
    for column in columns:
        if is_at_quantiles(column) and isinstance(column.source, Bins):
            known[column] = Column(_at_quantiles(source, column.source))
    return known


def _at_quantiles(source: Source, unknown: Bins) -> Bins:
    """The bins whose edges are the quantiles of a column."""
    edges = source.quantiles(unknown.column, unknown.shares)
    if None in edges:
        msg = f"{unknown!r}: the column {unknown.column!r} has no numbers of which quantiles could be taken."
        raise ColumnError(msg)
    return replace(unknown, edges=tuple(map(float, edges)))
