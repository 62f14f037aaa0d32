"""Rows in lists: the ranked items of a query, the labels of an item. Quantities of a row that depend on its list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ColumnError, WeightError, listed
from tidyfair.specs.columns import names_of
from tidyfair.specs.formulas import Statistic
from tidyfair.tallies.moments import ACTUAL, PREDICTED
from tidyfair.tallies.source import WEIGHT
from tidyfair.tallies.thresholds import ESTIMATE

Array: TypeAlias = np.ndarray[Any, Any]

_ROW = "\0row"
"""Column of row numbers, under a name that no internal column has."""
_TRUTH = "truth"
_OF_NUMBERS = {"truth": ACTUAL, "estimate": PREDICTED}
_OF_LABELS = {"truth": _TRUTH, "estimate": ESTIMATE}
"""The internal columns of what quantities read."""


@dataclass(frozen=True, eq=False, repr=False)
class ListedRows:
    """Rows of whole lists, one list after the other; of numbers, in each list by falling estimate."""

    sizes: Array
    """The number of rows of each list."""
    columns: Mapping[str, Array]
    """For numbers `estimate` and `truth`, as far as they are read; for labels the code of each `label`."""
    others: tuple[tuple[Array, Sequence[Any]], ...]
    """The other columns that a quantity reads: the code of each row's value, and the values."""
    group: Array
    """The code of the group of each list, where groups must not divide lists; else that of its outer group."""
    weighted: bool

    @cached_property
    def starts(self) -> Array:
        """The index of the first row of each list."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def list_of_row(self) -> Array:
        """The number of the list of each row."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def position(self) -> Array:
        """The position of each row in its list, from 1; that of rows with equal estimates is arbitrary."""
        return np.arange(1, len(self.list_of_row) + 1) - self.to_rows(self.starts)

    @cached_property
    def _first_of_ties(self) -> Array:
        """The index of the first row of each run of equal estimates."""
        estimate, list_of_row = self.columns["estimate"], self.list_of_row
        new = np.ones(len(estimate), dtype=bool)
        new[1:] = (estimate[1:] != estimate[:-1]) | (list_of_row[1:] != list_of_row[:-1])
        return np.flatnonzero(new)

    def total(self, values: Array) -> Array:
        """The sum of values of rows in each list."""
        return np.add.reduceat(values, self.starts)

    def to_rows(self, of_lists: Array) -> Array:
        """The value of its list for each row."""
        return np.repeat(of_lists, self.sizes)

    def mean_of_ties(self, values: Array) -> Array:
        """The mean over rows with equal estimates, whose order in the list is arbitrary."""
        first = self._first_of_ties
        sizes = np.diff(first, append=len(values))
        return np.repeat(np.add.reduceat(values, first) / sizes, sizes)

    def expected_count(self, marked: Array) -> Array:
        """The marked rows from the top of the list to each position, expected if rows with equal estimates shuffle."""
        expected = self.mean_of_ties(marked.astype(float))
        running = np.cumsum(expected)
        before = running[self.starts] - expected[self.starts]
        return running - self.to_rows(before)


def quantity_in_lists(
    rows: pl.DataFrame,
    term: Statistic,
    columns: Sequence[str],
    together: Sequence[str],
    undivided_by: Mapping[str, str],
    *,
    numbers: bool,
) -> pl.Series:
    """A quantity of each row in its list; null in rows that lack what it reads.

    Lists are rows with equal values of `columns` and of the outer groups, `together`. Groups of the keys in
    `undivided_by`, internal names with those of the user, must not divide a list.
    """
    value = np.full(len(rows), np.nan)
    lists = term.lists
    if lists is None or rows.is_empty():
        return pl.Series(value)
    keys, others = columns[: len(lists.columns)], columns[len(lists.columns) :]
    names = names_of(lists.columns)
    _check_keys(rows, keys, names)
    column_of_role = _OF_NUMBERS if numbers else _OF_LABELS
    needed = [column_of_role[role] for role in sorted(term.reads)]
    counted = rows.with_row_index(_ROW).filter(pl.all_horizontal(pl.col(needed).is_not_null()))
    if counted.is_empty():
        return pl.Series(value, nan_to_null=True)
    index = pl.col(_ROW).sort_by(PREDICTED, descending=True) if numbers else pl.col(_ROW)
    of_lists = counted.group_by(*together, *keys).agg(index)
    order = of_lists[_ROW].explode().to_numpy()
    sizes = of_lists[_ROW].list.len().to_numpy().astype(np.int64)
    sorted_rows = rows[order]
    in_lists = ListedRows(
        sizes,
        _numbers(sorted_rows, needed) if numbers else {"label": _codes(sorted_rows[ESTIMATE])[0]},
        tuple(_codes(sorted_rows[name]) for name in others),
        _groups(sorted_rows, sizes, together, undivided_by, names, lists.metric),
        WEIGHT in rows.columns,
    )
    if lists.undivided and in_lists.weighted:
        _check_weights(sorted_rows[WEIGHT].cast(pl.Float64).to_numpy(), in_lists, names)
    # numbers that are infinite, or too large to be squared, are refused when they are summed
    with np.errstate(all="ignore"):
        value[order] = lists.quantity(in_lists, **dict(term.options))
    return pl.Series(value, nan_to_null=True)


def _numbers(rows: pl.DataFrame, needed: Sequence[str]) -> dict[str, Array]:
    """The numbers of rows that are read."""
    return {role: rows[name].to_numpy() for role, name in _OF_NUMBERS.items() if name in needed}


def _codes(values: pl.Series) -> tuple[Array, Sequence[Any]]:
    """The code of each value, and the values; null is a value."""
    levels = values.unique().sort(nulls_last=True)
    codes = pl.Series(range(len(levels)), dtype=pl.Int64)
    table = pl.DataFrame({"value": levels, "code": codes})
    joined = (
        values.alias("value").to_frame().join(table, on="value", how="left", nulls_equal=True, maintain_order="left")
    )
    return joined["code"].to_numpy(), levels.to_list()


def _check_keys(rows: pl.DataFrame, keys: Sequence[str], names: Sequence[str]) -> None:
    """Refuse lists that are not named."""
    for key, name in zip(keys, names, strict=True):
        if missing := rows[key].null_count():
            msg = (
                f"The column {name!r} says which list a row belongs to, but is null in {missing} rows; fill or filter "
                "them first."
            )
            raise ColumnError(msg)


def _groups(
    rows: pl.DataFrame,
    sizes: Array,
    together: Sequence[str],
    undivided_by: Mapping[str, str],
    names: Sequence[str],
    metric: str,
) -> Array:
    """The code of the group of each list, which must be that of all of its rows."""
    columns = [*together, *undivided_by]
    if not columns:
        return np.zeros(len(sizes), dtype=np.int64)
    code_of_row = rows.select(pl.struct(columns).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    least, most = np.minimum.reduceat(code_of_row, starts), np.maximum.reduceat(code_of_row, starts)
    if (least != most).any():
        groups = list(undivided_by.values())
        wanted = ", ".join(repr(name) for name in [*names, *groups])
        msg = (
            f"{metric}: rows with the same {listed(names)} have different {listed(groups)}, but "
            f"the value is that of a whole list. For lists of one group only, give [{wanted}] as the columns of lists."
        )
        raise ColumnError(msg)
    return least


def _check_weights(weight: Array, lists: ListedRows, names: Sequence[str]) -> None:
    """Refuse weights that differ within a list, whose value has one weight."""
    if (np.minimum.reduceat(weight, lists.starts) != np.maximum.reduceat(weight, lists.starts)).any():
        msg = f"`case_weights`: rows with the same {listed(names)} have different weights, but count as one list."
        raise WeightError(msg)
