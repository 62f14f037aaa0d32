"""Rows that are compared with others: in lists, as the ranked items of a query, or with their nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ColumnError, WeightError, listed
from tidyfair.specs import SIDE, Array, Column, Segments, check_features, names_of
from tidyfair.specs.formulas import Statistic
from tidyfair.tallies.moments import ACTUAL, PREDICTED
from tidyfair.tallies.source import WEIGHT
from tidyfair.tallies.tally import Tally, key_names
from tidyfair.tallies.thresholds import ESTIMATE

_ROW = "\0row"
"""Column of row numbers, under a name that no internal column has."""
_TIE = 1e-12
"""Distances closer than this, relative to their size, are equal."""
_FARTHEST = 1e100
"""Squares of distances beyond this, or below its inverse, exceed the range of floats."""
_MOST_NUMBERS = 2**22
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
    def _ties(self) -> Segments:
        """The runs of equal estimates."""
        return Segments.of(self.columns["estimate"], self.list_of_row)

    def total(self, values: Array) -> Array:
        """The sum of values of rows in each list."""
        return np.add.reduceat(values, self.starts)

    def to_rows(self, of_lists: Array) -> Array:
        """The value of its list for each row."""
        return np.repeat(of_lists, self.sizes)

    def mean_of_ties(self, values: Array) -> Array:
        """The mean over rows with equal estimates, whose order in the list is arbitrary."""
        return self._ties.to_rows(self._ties.sum(values) / self._ties.sizes)

    def expected_count(self, marked: Array) -> Array:
        """The marked rows from the top of the list to each position, expected if rows with equal estimates shuffle."""
        expected = self.mean_of_ties(marked.astype(float))
        running = np.cumsum(expected)
        before = running[self.starts] - expected[self.starts]
        return running - self.to_rows(before)


def _in_lists(
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
    if numbers:
        columns_of_lists = {role: sorted_rows[name].to_numpy() for role, name in _OF_NUMBERS.items() if name in needed}
    else:
        columns_of_lists = {"label": _codes(sorted_rows[ESTIMATE])[0]}
    in_lists = ListedRows(
        sizes,
        columns_of_lists,
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


def with_comparisons(rows: pl.DataFrame, tally: Tally, features: list[Column]) -> pl.DataFrame:
    """Add the quantities for which a row is compared with others of its outer group."""
    needs, sides = tally.needs, tally.sides
    if not needs.compared:
        return rows
    names = {f"f{index}": column.name for index, column in enumerate(features)}
    of_distances = {
        f"f{features.index(column)}" for term in needs.compared if term.neighborhood for column in term.compared_by
    }
    check_features(rows, {name: names[name] for name in names if name in of_distances}, "distances need")
    with_sides = rows
    together = key_names(tally.keys, "outer")
    if sides is not None:
        conditions = key_names(tally.keys, "side")
        with_sides = rows.with_columns(sides.side(rows[conditions]).alias(SIDE))
        together.append(SIDE)
    for term in needs.compared:
        columns = [f"f{features.index(column)}" for column in term.compared_by]
        if term.neighborhood is not None:
            value = _other_labels(with_sides, columns, ESTIMATE, together, term.neighborhood.n_neighbors)
        else:
            undivided_by = [key.column for key in tally.keys if (term, key.column) in needs.undivided]
            groups = dict(zip(tally.names(undivided_by), names_of(undivided_by), strict=True))
            value = _in_lists(with_sides, term, columns, together, groups, numbers=needs.numbers)
        rows = rows.with_columns(value.alias(term.column))
    return rows.drop(names)


def _other_labels(
    frame: pl.DataFrame, features: Sequence[str], label: str, together: Sequence[str], n_neighbors: int
) -> pl.Series:
    """For each row the share of its nearest neighbours, itself among them, that have another label.

    Neighbours are rows with a label and equal keys `together`; rows at equal distance share the remaining places. Null
    without a label, NaN where there are too few rows.
    """
    share = np.full(len(frame), np.nan)
    labelled = frame.with_row_index(_ROW).filter(pl.col(label).is_not_null())
    pools = labelled.partition_by(together, include_key=True) if together else [labelled]
    for pool in pools:
        if len(pool) >= n_neighbors:
            share[pool[_ROW].to_numpy()] = _shares(pool.select(*features, label), n_neighbors)
    return pl.select(pl.when(frame[label].is_not_null()).then(pl.Series(share))).to_series()


def _shares(rows: pl.DataFrame, n_neighbors: int) -> Array:
    """The shares in one pool of rows, computed once for identical rows."""
    *features, label = rows.columns
    # adding 0 makes 0 of -0
    features_of_row = pl.struct(pl.col(features).cast(pl.Float64) + 0.0)
    point = rows.select(features_of_row.rank("dense") - 1).to_series().to_numpy()
    code = rows[label].rank("dense").to_numpy() - 1
    first_rows = np.unique(point, return_index=True)[1]
    points = rows[first_rows].select(pl.col(features).cast(pl.Float64)).to_numpy()
    points, width = points - points.min(axis=0), float(np.ptp(points, axis=0).max())
    if not width < _FARTHEST:
        msg = f"`features`: values differ by {width:g}, too much to compute distances; filter or rescale them first."
        raise ColumnError(msg)
    points = points / width if 0 < width < 1 / _FARTHEST else points
    counts = np.zeros((len(points), int(code.max()) + 1))
    np.add.at(counts, (point, code), 1)
    return _shares_of_neighbors(points, counts, n_neighbors)[point, code]


def _shares_of_neighbors(points: Array, counts: Array, n_neighbors: int) -> Array:
    """For each distinct point and label the share of the neighbours with another label."""
    # its trees are several times as fast as those of scikit-learn, and exact, unlike brute force
    from scipy.spatial import KDTree

    tree: Any = KDTree(points)
    shares = np.empty_like(counts)
    todo, width = np.arange(len(points)), min(n_neighbors + 1, len(points))
    while len(todo):
        step = max(1, _MOST_NUMBERS // (width * counts.shape[1]))
        left: list[Any] = []
        for start in range(0, len(todo), step):
            batch = todo[start : start + step]
            distance, near = tree.query(points[batch], range(1, width + 1), workers=-1)
            labels = counts[near]
            neighbors = labels.sum(axis=2).cumsum(axis=1)
            last = (neighbors >= n_neighbors).argmax(axis=1)
            end = distance[np.arange(len(batch)), last][:, None]
            inside, border = distance < end * (1 - _TIE), np.abs(distance - end) <= end * _TIE
            # what is as far away as the last neighbour must be seen to the end
            whole = ~border[:, -1] | (width == len(points))
            sure = np.where(inside[:, :, None], labels, 0).sum(axis=1)
            tied = np.where(border[:, :, None], labels, 0).sum(axis=1)
            rest = n_neighbors - sure.sum(axis=1, keepdims=True)
            same = sure + tied * rest / tied.sum(axis=1, keepdims=True)
            shares[batch[whole]] = (1 - same / n_neighbors)[whole]
            left.append(batch[~whole])
        todo, width = np.concatenate(left), min(2 * width, len(points))
    return shares
