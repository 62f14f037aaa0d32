"""Tallies with shuffled group labels: counts under the hypothesis that groups are equal.

Shuffling draws the cells of each group from those of all without replacement, which costs cells, not rows; metrics of
more than labels are shuffled row by row, or cluster by cluster. The number of a draw is one more outer key, and the
last draw is the observed data. So is the number of a variant of the draw, which shows the variance of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.intervals import DRAW, MOST_CELLS, MOST_ROWS, check_shuffled, in_order, in_progress, kept_keys, placed
from tidyfair.specs import Array, By, Column, names_of
from tidyfair.tallies import LABELS, Key, Tally, centred, key_names, merged, recounted, reduction_of, running

VARIANT = "\0variant"
"""The outer key that numbers variants: 0 as drawn, then others.

The sum of the squared distances of the others from it is in proportion to the variance of the value.
"""
_PARTS, _PARTS_OF_SUMS = 20, 100
"""The numbers of random parts of the rows; the more, the less do errors depend on the parts."""
_MOST_COUNTED, _MOST_EVALUATED = 2**19, 2**18
"""The most rows that are counted at once, and cells that are evaluated, which limits the memory of draws."""


def shuffled_cells(
    tally: Tally, by: By, within: Sequence[Column], *, times: int, random: np.random.Generator, varied: bool = True,
    among: pl.DataFrame | None = None,
) -> Iterator[Tally]:  # fmt: skip
    """Tallies of labels with the groups of `by` shuffled in each outer group, within strata, or `among` some labels.

    In each variant, if there are any, one of the cells has one standard deviation of its count more rows.
    """
    axes, shape, tables = _counts_of_strata(tally, by, within)
    labels = axes[-1]
    moves = np.ones(len(labels), dtype=bool)
    if among is not None:
        index = labels.join(among.with_row_index(), on=list(LABELS), how="left", maintain_order="left")["index"]
        moves = index.is_not_null().to_numpy()
    # the keys of all counts of a draw
    indices = zip(axes, np.indices(shape), strict=True)
    every = pl.DataFrame([key.gather(axis.ravel()) for frame, axis in indices for key in frame])
    kept, names = kept_keys(tally, by.columns)
    keys, size, total = _with_draws(kept), math.prod(shape), times + 1
    numbers = max(1, size * (1 + len(labels) if varied else 1))
    step, part = max(1, MOST_CELLS // numbers), max(1, _MOST_EVALUATED // numbers)
    for first in in_progress(range(0, total, step), "shuffling"):
        draws = min(step, total - first)
        # the last draw is the observed data
        shuffled = min(draws, times - first)
        drawn = np.zeros((draws, *shape), dtype=np.int64)
        for outer, table in tables:
            counts = np.repeat(table[None], draws, axis=0)
            counts[:shuffled, :, moves] = _shuffled(table[:, moves], shuffled, random)
            drawn[:, outer] += counts
        for start in range(0, draws, part):
            counts = _varied(drawn[start : start + part]) if varied else drawn[start : start + part, None]
            draw, variant, cell = np.indices((*counts.shape[:2], size)).reshape(3, -1)
            cells = every[cell].with_columns(pl.Series("n", counts.ravel())).rename(names)
            cells = _numbered(cells, len(kept), first + start + draw, variant).filter(pl.col("n") > 0)
            yield replace(tally, cells=cells.select(*key_names(keys), *LABELS, "n"), keys=keys, rows=None)


def _counts_of_strata(
    tally: Tally, by: By, within: Sequence[Column]
) -> tuple[list[pl.DataFrame], tuple[int, ...], list[tuple[int, Array]]]:
    """The outer groups, the groups and the pairs of labels of a tally, their numbers, and the counts of each stratum.

    A stratum is given by the number of its outer group, and its rows by group and labels.
    """
    outer, features = tally.outer_names, tally.names(by.columns)
    strata = [*outer, *tally.names(within)]
    cells = tally.cells.filter(_is_compared(tally.cells, by, features))
    # sorted, so that draws depend on the seed and not on the order of rows
    cells = (
        cells.group_by(*strata, *features, *LABELS)
        .agg(pl.col("n").sum())
        .sort(*strata, *features, *LABELS, nulls_last=True)
    )
    (outer_index, outers), (group, groups), (label, labels) = (
        placed(cells, names) for names in (outer, features, LABELS)
    )
    shape = (len(outers) if outer else 1, len(groups), len(labels))
    stratum, counts = placed(cells, strata)[0], cells["n"].to_numpy()
    tables: list[tuple[int, Array]] = []
    for number in np.unique(stratum):
        rows = np.flatnonzero(stratum == number)
        table = np.zeros(shape[1:], dtype=np.int64)
        np.add.at(table, (group[rows], label[rows]), counts[rows])
        check_shuffled(int(table.sum()))
        tables.append((int(outer_index[rows[0]]), table))
    return [outers, groups, labels], shape, tables


def _varied(drawn: Array) -> Array:
    """The counts of each draw, and a variant for each cell, which has one standard deviation more rows."""
    labels = drawn.shape[-1]
    counts = np.repeat(drawn[:, None], 1 + labels, axis=1)
    for label in range(labels):
        counts[:, 1 + label, ..., label] += np.sqrt(drawn[..., label]).round().astype(np.int64)
    return counts


def shuffled_rows(
    tally: Tally, by: By, within: Sequence[Column], *, times: int, random: np.random.Generator, varied: bool = True,
    reads_sums: bool = False,
) -> Iterator[Tally]:  # fmt: skip
    """Tallies with the groups of `by` shuffled among the rows of each outer group, within strata, or among clusters.

    In each variant, if there are any, a random part of the rows is left out; where only sums are read, from them.
    """
    if tally.rows is None:
        msg = (
            "The test of this metric permutes rows, but the tally has none: count with `keep_rows=True`, or test the "
            "data."
        )
        raise ArgumentError(msg)
    keys, names = kept_keys(tally, by.columns)
    units = _Units(tally, tally.rows, by, within)
    columns, unit, parts = units.columns, units.unit, 0
    size, variant, total = len(unit), np.zeros(len(unit), dtype=np.int64), times + 1
    if varied and size:
        parts = min(_PARTS_OF_SUMS if reads_sums else _PARTS, len(units.stratum))
        part = (random.permutation(len(units.stratum)) % parts)[unit]
        if reads_sums:
            # sums are counted by part, in place of variants
            variant = part
        else:
            kept = [np.arange(size), *(np.flatnonzero(part != left_out) for left_out in range(parts))]
            row, variant = np.concatenate(kept), np.repeat(np.arange(parts + 1), list(map(len, kept)))
            columns, unit = columns[row], unit[row]
    if len(unit) * total > MOST_ROWS:
        msg = f"Permuting {size} rows {times} times takes too long; reduce `times=`, or use fewer rows."
        raise ArgumentError(msg)
    # sums of parts are left out of those of each group, which makes cells of few rows
    counted_at_once = _MOST_COUNTED // max(1, len(unit))
    evaluated_at_once = _MOST_EVALUATED // max(1, len(units.groups) * parts)
    step = max(1, min(counted_at_once, evaluated_at_once))
    for first in in_progress(range(0, total, step), "shuffling"):
        draws = min(step, total - first)
        # the last draw is the observed data
        group = units.shuffled(draws, min(draws, times - first), random)
        group_columns = units.groups[group[:, unit].ravel()].get_columns()
        rows = columns[np.tile(np.arange(len(unit)), draws)].hstack(group_columns).rename(names)
        draw = np.repeat(np.arange(first, first + draws), len(unit))
        rows = _numbered(rows, len(keys), draw, np.tile(variant, draws))
        drawn = recounted(tally, rows, _with_draws(keys))
        yield _with_parts_left_out(drawn, parts) if parts and reads_sums else drawn


class _Units:
    """Rows that are shuffled one by one, or clusters."""

    def __init__(self, tally: Tally, rows: pl.DataFrame, by: By, within: Sequence[Column]) -> None:
        """Number the rows or clusters of a tally, and their groups and strata."""
        names = kept_keys(tally, by.columns)[1]
        outer, features = tally.outer_names, tally.names(by.columns)
        strata, clusters = [*outer, *tally.names(within)], key_names(tally.keys, "cluster")
        rows = rows.filter(_is_compared(rows, by, features))
        rows = in_order(tally, rows, [*names, *strata, *clusters])
        self.columns = rows.drop({*strata, *clusters, *features} - {*outer})
        """The columns that are counted, without those of groups."""
        self.group, self.groups = placed(rows, features)
        """The group of each unit, and the keys of groups."""
        self.unit, self.stratum = np.arange(len(rows)), placed(rows, strata)[0]
        """The number of the unit of each row, and the stratum of each unit."""
        if clusters:
            _check_clusters(tally, rows, clusters, by, within)
            self.unit = placed(rows, [*strata, *clusters])[0]
            first_row = np.unique(self.unit, return_index=True)[1]
            self.stratum, self.group = self.stratum[first_row], self.group[first_row]
        self.in_order = np.argsort(self.stratum, kind="stable")
        """The units in the order of their strata."""

    def shuffled(self, draws: int, shuffled: int, random: np.random.Generator) -> Array:
        """The groups of units shuffled within strata; in draws after the first `shuffled` as observed."""
        group = np.tile(self.group, (draws, 1))
        numbers = random.random((shuffled, len(self.stratum)))
        order = np.argsort(numbers + self.stratum, axis=-1)
        group[:shuffled, self.in_order] = self.group[order]
        return group


def _with_parts_left_out(tally: Tally, count: int) -> Tally:
    """The tally, and variants, each without the rows of one of the parts, which are the last key of the tally."""
    last = f"k{len(tally.keys) - 1}"
    by = [name for name in tally.counted_by if name != last]
    cells = centred(tally.cells, by)
    names = [name for name in cells.columns if name not in {*by, last}]
    # every part has a cell, so that it can be left out of the others
    parts = pl.DataFrame({last: pl.int_range(count, dtype=pl.Int32, eager=True)})
    filled = cells.select(by).unique().join(parts, how="cross")
    filled = filled.join(cells, on=[*by, last], how="left", nulls_equal=True)
    filled = filled.with_columns(_filled(name, by) for name in names)
    sums_of_others = [running(name).over(by) for name in names]
    without = filled.with_columns(*sums_of_others, pl.col(last) + 1)
    merging = [merge(pl.col(name)) for name, merge in merged(names).items()]
    whole = cells.group_by(by).agg(merging)
    whole = whole.with_columns(pl.lit(0, pl.Int32).alias(last))
    columns = tally.cells.columns
    both = pl.concat([whole.select(columns), without.select(columns)])
    return replace(tally, cells=both.filter(pl.col("n") > 0), rows=None)


def _filled(name: str, by: Sequence[str]) -> pl.Expr:
    """A column of sums or centers with values for parts without rows."""
    if reduction_of(name) == "sum":
        return pl.col(name).fill_null(0)
    if reduction_of(name) == "first":
        return pl.col(name).drop_nulls().first().over(by)
    return pl.col(name)


def _is_compared(frame: pl.DataFrame, by: By, features: Sequence[str]) -> pl.Series:
    """A mask of the rows of known groups and, of two sides, on one of them."""
    if by.sides:
        by.sides.check(frame[features])
    groups = by.groups(frame[features])
    # people in none of the groups that overlap are others, whose groups are shuffled, too
    return by.is_compared(groups) if by.memberships is None else ~by.is_unknown(groups)


def _shuffled(table: Array, draws: int, random: np.random.Generator) -> Array:
    """Draws of the counts of each group and cell with the margins of the table: a hypergeometric draw for each."""
    counts = np.zeros((draws, *table.shape), dtype=np.int64)
    remaining = np.repeat(table.sum(axis=0)[None], draws, axis=0)
    for group, size in enumerate(table.sum(axis=1)):
        needed, others = np.full(draws, size), remaining.sum(axis=1)
        for cell in range(table.shape[1]):
            others -= remaining[:, cell]
            counts[:, group, cell] = random.hypergeometric(remaining[:, cell], others, needed)
            needed -= counts[:, group, cell]
        remaining -= counts[:, group]
    return counts


def _check_clusters(
    tally: Tally, rows: pl.DataFrame, clusters: Sequence[str], by: By, within: Sequence[Column]
) -> None:
    """Refuse clusters that hold rows of several groups, and cannot be shuffled as a whole."""
    outer = tally.outer_names
    groups = pl.struct(tally.names([*by.columns, *within])).n_unique().alias("groups")
    several = rows.group_by(*clusters, *outer).agg(groups).filter(pl.col("groups") > 1)
    if len(several):
        name = tally.clusters[0].column.name
        features = listed(names_of([*by.columns, *within]))
        msg = (
            f"{len(several)} clusters of {name!r} hold rows of several groups of {features}, so whole clusters cannot "
            f"be permuted; permute rows within clusters, with `within={name!r}` instead of `cluster=`."
        )
        raise ArgumentError(msg)


def _numbered(frame: pl.DataFrame, keys: int, draw: Array, variant: Array) -> pl.DataFrame:
    """The frame with the numbers of draws and variants as the keys after the others."""
    return frame.with_columns(
        pl.Series(f"k{keys}", draw.astype(np.int32)), pl.Series(f"k{keys + 1}", variant.astype(np.int32))
    )


def _with_draws(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """The keys, and those of draws and variants."""
    return (*keys, Key(Column(DRAW), "outer"), Key(Column(VARIANT), "outer"))
