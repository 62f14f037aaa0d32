"""Permutations of group labels: the values that groups would have if they were equal.

The counts of labels of groups are drawn without replacement from those of all groups, which costs cells, not rows: from
the rows of the denominator of a rate, whose test is exact then, or from all rows. What reads more than labels is
shuffled row by row, or cluster by cluster. Each permutation is a replicate of the evaluation, and the last of them is
the observed data. Where formulas do not give the variance of values, each permutation has variants, that are replicates
too: the sum of the squared distances of their values from those of the permutation is the variance, but for a factor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation import CELLS, GROUP_CELL, KeyCodes, ReplicatedGroups, Replicates
from tidyfair.inference.rate_tests import Case
from tidyfair.intervals import (
    MOST_ROWS,
    check_shuffled,
    in_order,
    kept_keys,
    placed,
    runs_of_replicates,
    with_pairs,
)
from tidyfair.specs import Array, By, Column, Integers, formulas_of, names_of
from tidyfair.tallies import EXTREMES, LABELS, TRUTH, Key, Tally, centred, recounted, reduction_of

_PARTS, _PARTS_OF_SUMS = 20, 100
"""The numbers of random parts of the rows; the more, the less do errors depend on the parts."""
_COPY, _ROW, _SLOT = "\0copy", "\0row", "\0slot"
"""The columns that number the copies of rows, the rows, and the groups that a row may be in."""


@dataclass(frozen=True, eq=False)
class Permutations:
    """The values of groups in some permutations, and in the variants of each."""

    replicates: Replicates
    variants: int
    """The replicates of each permutation: itself, and its variants."""

    @property
    def results(self) -> Array:
        """The disparity of each permutation: permutations by outer groups."""
        columns = {name: values[:: self.variants] for name, values in self.replicates.columns.items()}
        return replace(self.replicates, columns=columns).results

    def column(self, name: str) -> Array:
        """A column of the values: permutations by variants by values."""
        values = self.replicates.columns[name]
        return values.reshape(-1, self.variants, values.shape[1])


# Counts of labels


def permuted_labels(
    case: Case, within: Sequence[Column], blocks: Sequence[Collection[str]], *, times: int,
    random: np.random.Generator, varied: bool, with_variances: bool = False,
) -> Iterator[Permutations]:  # fmt: skip
    """Permutations of the labels of an outer group, within strata, and among the cells of each of the blocks only.

    Without blocks all labels are permuted together. In each variant, if there are any, one of the cells of each group
    has one standard deviation of its count more rows.
    """
    evaluated, by = case.evaluated, case.metric.by
    tally = evaluated.evaluator.base_tally
    if not any("truth" in formula.reads for formula in formulas_of(case.metric)):
        # what is not read is not drawn
        tally = replace(tally, cells=tally.cells.with_columns(pl.lit(None, tally.cells.schema[TRUTH]).alias(TRUTH)))
    drawn = with_pairs(tally, by.columns, tally.cells.select(LABELS).unique())
    groups, pairs, _ = _numbers_of_cells(drawn, by, ())
    # the place of each pair of labels of each group among the cells that are drawn
    places = np.empty((int(groups.max(initial=-1)) + 1, int(pairs.max(initial=-1)) + 1), dtype=np.int64)
    places[groups, pairs] = np.arange(len(groups))
    group, pair, stratum = _numbers_of_cells(tally, by, within)
    block = np.where(_is_compared(case, tally.cells), _blocks_of_cells(case, blocks), -1)
    rows, unmoved = tally.cells["n"].to_numpy(), np.zeros(len(groups), dtype=np.int64)
    np.add.at(unmoved, places[group[block < 0], pair[block < 0]], rows[block < 0])
    tables: list[tuple[Array, Array]] = []
    for number in np.unique(np.stack([stratum, block])[:, block >= 0], axis=1).T:
        own = np.flatnonzero((stratum == number[0]) & (block == number[1]))
        groups_of_table, row = np.unique(group[own], return_inverse=True)
        pairs_of_table, column = np.unique(pair[own], return_inverse=True)
        table = np.zeros((len(groups_of_table), len(pairs_of_table)), dtype=np.int64)
        np.add.at(table, (row, column), rows[own])
        check_shuffled(int(table.sum()))
        # groups that people state are drawn in the order of groups, as those of a column, and people in none last
        order = slice(None, None, None if by.memberships is None else -1)
        tables.append((places[np.ix_(groups_of_table, pairs_of_table)][order], table[order]))
    variants = 1 + places.shape[1] if varied else 1
    replicated = ReplicatedGroups(evaluated, [0], by, drawn, with_variances=with_variances)
    for start, end in runs_of_replicates(times + 1, variants * len(unmoved), "shuffling"):
        counts, shuffled = np.tile(unmoved, (end - start, 1)), min(end, times) - start
        for cells, table in tables:
            counts[:shuffled, cells] += _drawn_tables(table, shuffled, random)
            counts[shuffled:, cells] += table
        counts = np.repeat(counts, variants, axis=0)
        for variant in range(1, variants):
            varied_counts = counts[variant::variants, pairs == variant - 1]
            counts[variant::variants, pairs == variant - 1] += np.sqrt(varied_counts).round().astype(np.int64)
        yield Permutations(replicated.replicates({"n": counts}), variants)


def _numbers_of_cells(tally: Tally, by: By, within: Sequence[Column]) -> tuple[Integers, Integers, Integers]:
    """The group, the pair of labels and the stratum of each cell, numbered in order; outer groups are strata."""
    codes = KeyCodes(tally.cells)
    outer = codes.index(tally.outer_names)
    group, stratum = (codes.index(tally.names(columns), within=outer).of_cell for columns in (by.columns, within))
    return group, codes.index(LABELS).of_cell, stratum


def _blocks_of_cells(case: Case, blocks: Sequence[Collection[str]]) -> Integers:
    """The block of each cell of a tally; -1 where it is in none, and 0 without blocks."""
    labels, tally = case.evaluated.labels, case.evaluated.evaluator.base_tally
    if not blocks:
        return np.zeros(len(tally.cells), dtype=np.int64)
    encoded = labels.encode(tally).select(LABELS)
    if labels.event is None:
        # all labels are read at once
        reads = [name for name in LABELS if any(name in formula.reads for formula in formulas_of(case.metric))]
        return encoded.select(pl.any_horizontal(pl.col(reads).is_null()).cast(pl.Int64)).to_series().to_numpy() * -1
    block_of_pair = {CELLS[name]: number for number, block in enumerate(blocks) for name in block}
    # null labels stay null
    pairs = encoded.select(pl.col(LABELS) == labels.event).rows()
    return np.array([block_of_pair.get(pair, -1) for pair in pairs], dtype=np.int64)


def _drawn_tables(table: Array, draws: int, random: np.random.Generator) -> Array:
    """Draws of the counts of each group and cell with the margins of the table, hypergeometric ones."""
    if table.shape[1] == 2:
        counts = np.zeros((draws, *table.shape), dtype=np.int64)
        counts[:, :, 0] = random.multivariate_hypergeometric(
            table.sum(axis=1), int(table[:, 0].sum()), draws, method="marginals"
        )
        counts[:, :, 1] = table.sum(axis=1) - counts[:, :, 0]
        return counts
    # halves of the groups have parts of the counts, halves of these parts of those, and so on
    halvings = max(len(table) - 1, 0).bit_length()
    sizes = np.zeros(2**halvings, dtype=np.int64)
    sizes[: len(table)] = table.sum(axis=1)
    counts = np.repeat(table.sum(axis=0)[None, None], draws, axis=0)
    for halving in range(halvings):
        needed = np.repeat(sizes.reshape(2 * 2**halving, -1).sum(axis=1)[None, ::2], draws, axis=0)
        others, first = counts.sum(axis=2), np.zeros_like(counts)
        for cell in range(table.shape[1]):
            others -= counts[:, :, cell]
            first[:, :, cell] = random.hypergeometric(counts[:, :, cell], others, needed)
            needed -= first[:, :, cell]
        counts = np.stack([first, counts - first], axis=2).reshape(draws, -1, table.shape[1])
    return counts[:, : len(table)]


# Rows and clusters


def permuted_rows(
    case: Case, within: Sequence[Column], *, times: int, random: np.random.Generator, varied: bool,
    with_variances: bool = False,
) -> Iterator[Permutations]:  # fmt: skip
    """Permutations of the groups of the rows, or clusters, of each outer group, within strata.

    In each variant, if there are any, a random part of the rows, or clusters, is left out.
    """
    # predictions at points are counted again as they were read
    evaluated = case.evaluated.evaluator.base_tally
    tally = evaluated if evaluated.forecast is None else case.tally.on_sides()
    if tally.rows is None:
        msg = (
            "The test of this metric permutes rows, but the tally has none: count with `keep_rows=True`, or test the "
            "data."
        )
        raise ArgumentError(msg)
    copies = _Copies(case, tally, tally.rows, within)
    reads_rows, parts = any(formula.is_of_rows for formula in formulas_of(case.metric)), 1
    if varied and len(copies.slot):
        parts = min(_PARTS if reads_rows else _PARTS_OF_SUMS, len(copies.slot))
    part = (random.permutation(len(copies.slot)) % parts)[copies.unit]
    variants, rows, cells = (1 + parts if varied else 1), len(copies.unit), len(copies.drawn.cells)
    rows_read = rows * variants if reads_rows else rows
    if rows_read * (times + 1) > MOST_ROWS:
        msg = f"Permuting {rows} rows {times} times takes too long; reduce `times=`, or use fewer rows."
        raise ArgumentError(msg)
    replicated = ReplicatedGroups(case.evaluated, [0], case.metric.by, copies.drawn, with_variances=with_variances)
    for start, end in runs_of_replicates(times + 1, max(rows_read, cells * (variants + parts)), "shuffling"):
        copy = copies.shuffled(end - start, min(end, times) - start, random)
        index = (np.arange(end - start)[:, None] * parts + part) * cells + copies.cell[copy]
        shape = (end - start, parts, cells)
        sums = {name: _with_variants(name, index, values[copy], shape, varied=varied) for name, values in copies.sums}
        flat = {name: values.reshape(-1, cells) for name, values in sums.items()}
        flat["n"] = flat["n"].astype(np.int64)
        drawn = None
        if reads_rows:
            kept = [np.flatnonzero((part != variant - 1) | (variant == 0)) for variant in range(variants)]
            variant = np.repeat(np.arange(variants), list(map(len, kept)))
            chosen = copy[:, np.concatenate(kept)]
            replicate = np.arange(end - start)[:, None] * variants + variant
            drawn = chosen.ravel(), replicate.ravel()
        yield Permutations(replicated.replicates(flat, drawn), variants)


class _Copies:
    """The rows of a tally, those that are compared once for each group that they may be permuted into."""

    def __init__(self, case: Case, tally: Tally, rows: pl.DataFrame, within: Sequence[Column]) -> None:
        by = case.metric.by
        keys, names = kept_keys(tally, by.columns)
        outer, features = tally.outer_names, tally.names(by.columns)
        strata, clusters = [*outer, *tally.names(within)], tally.cluster_names
        rows = in_order(tally, rows, [*names, *strata, *clusters])
        moves = pl.Series(_is_compared(case, rows))
        self.unit, stratum = np.arange(len(rows)), placed(rows, strata)[0]
        """The unit of each row: itself, or a cluster."""
        if clusters:
            _check_clusters(tally, rows.filter(moves), clusters, by, within)
            # rows of a cluster whose group is unknown stay where they are
            self.unit = placed(rows.with_columns(moves.alias(_SLOT)), [*strata, *clusters, _SLOT])[0]
        # the groups that are compared are numbered within their outer group
        group = [*outer, *features]
        groups = rows.filter(moves).select(group).unique().sort(group, nulls_last=True)
        groups = groups.with_columns(
            (pl.int_range(pl.len()).over(outer) if outer else pl.int_range(pl.len())).alias(_SLOT)
        )
        joining: Any = {"nulls_equal": True, "maintain_order": "left"}
        first_row = np.unique(self.unit, return_index=True)[1]
        slot = rows.join(groups, on=group, how="left", **joining)[_SLOT].fill_null(0)
        self.slot = slot.to_numpy()[first_row]
        """The number of the group of each unit, among those that it may be in."""
        # what does not move is alone in its stratum
        self._stratum = np.where(moves, stratum, len(rows) + np.arange(len(rows)))[first_row].astype(float)
        self._in_order = np.argsort(self._stratum, kind="stable")
        numbered = rows.drop({*strata, *clusters} - {*group}).with_row_index(_ROW)
        moved = numbered.filter(moves).drop(features)
        moved = moved.join(groups, on=outer, how="inner", **joining) if outer else moved.join(groups, how="cross")
        unmoved = numbered.filter(~moves).with_columns(pl.lit(0, pl.Int64).alias(_SLOT))
        copied = pl.concat([unmoved, moved.select(unmoved.columns)]).sort(_ROW, _SLOT)
        self._first = np.searchsorted(copied[_ROW].to_numpy(), np.arange(len(rows)))
        """The first copy of each row."""
        is_at_points = case.evaluated.evaluator.base_tally.is_at_points
        self._count(tally, copied.drop(_ROW, _SLOT).rename(names), keys, is_at_points=is_at_points)

    def _count(self, tally: Tally, copied: pl.DataFrame, keys: tuple[Key, ...], *, is_at_points: bool) -> None:
        """Count the copies one by one, and by the keys that they have in common."""
        name = f"k{len(keys)}"
        copied = copied.with_row_index(name)
        counted = recounted(tally, copied, (*keys, Key(Column(_COPY), "cluster")))
        counted = counted.at_each_point() if is_at_points else counted.over_points()
        cells = counted.cells.sort(name)
        merged = [column for column in cells.columns[: cells.columns.index("n")] if column != name]
        cells = centred(cells, merged)
        index = KeyCodes(cells).index(merged)
        self.cell = index.of_cell
        """The cell that each copy is counted in."""
        self.drawn = replace(counted, cells=cells[index.example])
        sums = [column for column in cells.columns[cells.columns.index("n") :] if reduction_of(column) != "first"]
        self.sums = [(column, cells[column].to_numpy().astype(float)) for column in sums]
        """What is summed of each copy."""

    def shuffled(self, draws: int, shuffled: int, random: np.random.Generator) -> Integers:
        """The copy of each row with units shuffled within strata; in draws after the first `shuffled` as observed."""
        slot = np.tile(self.slot, (draws, 1))
        order = np.argsort(random.random((shuffled, len(self.slot))) + self._stratum, axis=-1)
        slot[:shuffled, self._in_order] = self.slot[order]
        return self._first + slot[:, self.unit]


def _with_variants(name: str, index: Array, values: Array, shape: tuple[int, ...], *, varied: bool) -> Array:
    """The sums, or ends, of values that are put at an index of draws by parts by cells: of all parts, or variants too.

    In the first all parts are together, and then one after the other is left out.
    """
    extreme = EXTREMES.get(reduction_of(name))
    merge, nothing = (np.add, 0.0) if extreme is None else (extreme, np.nan)
    of_parts = np.full(math.prod(shape), nothing)
    if extreme is None:
        of_parts = np.bincount(index.ravel(), values.ravel(), len(of_parts))
    else:
        extreme.at(of_parts, index.ravel(), values.ravel())
    of_parts = of_parts.reshape(shape)
    up_to: Array = merge.accumulate(of_parts, axis=1)
    if not varied:
        return up_to
    down_to = merge.accumulate(of_parts[:, ::-1], axis=1)[:, ::-1]
    edge = np.full_like(up_to[:, :1], nothing)
    without = merge(np.concatenate([edge, up_to[:, :-1]], axis=1), np.concatenate([down_to[:, 1:], edge], axis=1))
    return np.concatenate([up_to[:, -1:], without], axis=1)


# Both


def _is_compared(case: Case, frame: pl.DataFrame) -> Array:
    """A mask of the rows of groups that are compared: known ones that have a value, and on one of two sides."""
    by, tally = case.metric.by, case.evaluated.evaluator.base_tally
    features = tally.names(by.columns)
    if by.sides:
        by.sides.check(frame[features])
    groups = by.groups(frame[features])
    # people in none of the groups that overlap are others, whose groups are shuffled, too
    is_known = by.is_compared(groups) if by.memberships is None else ~by.is_unknown(groups)
    if by.memberships is not None or by.sides:
        return is_known.to_numpy()
    group_cells, names = case.evaluated.group_cells, [*tally.outer_names, *features]
    valued = np.unique(case.evaluated.values[GROUP_CELL][~np.isnan(case.evaluated.values["estimate"])])
    example = group_cells.indices[by].example[valued - group_cells.spans[by][0]]
    kept = tally.cells[names][pl.Series(example.astype(np.uint32))].with_columns(pl.lit(value=True).alias(_COPY))
    marked = frame[names].join(kept, on=names, how="left", nulls_equal=True, maintain_order="left") if names else kept
    return (is_known & marked[_COPY].is_not_null()).to_numpy()


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
