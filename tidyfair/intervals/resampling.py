"""Replicates of tallies: counts as they might have been of other rows from the same population, or without one unit.

Rows that are drawn with replacement fall into the cells of a tally as a multinomial draw does, so that a replicate
costs cells, not rows. A replicate is one more outer key.

What a result loses without a row is the influence of that row, whatever the result is made of: values of several
groups, of two models, or of groups and all rows together. The influences of all rows give its variance (Tukey, 1958),
and those of a change are the differences of those of both values. Rows of labels are known by their cell, with a part
of a row more in each cell. Other rows are left out in random parts, and rows of a cluster together.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation import KeyCodes, read_labels
from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.proportions import student_limits, z_value
from tidyfair.specs import Array, Booleans, Column, Floats, Integers, MetricSpec, OperatingPoint, Options, Segments
from tidyfair.tallies import ESTIMATE, LABELS, SCORE, TRUTH, WEIGHT, Key, Tally, centred, merged, reduction_of

DRAW = "\0draw"
"""The outer key that numbers replicates; no column of a user has this name."""
ROW = "\0row"
"""The column that numbers rows."""
MOST_CELLS = 2**21
_MOST_DRAWN = 2**19
"""Counts that are drawn at once; the values of 100,000 cells then take less than 500 MB in all."""
_CACHED, _ENOUGH_AT_ONCE = 2**17, 256
"""Counts of which the values stay in the cache of a processor, and replicates at once of which more are no faster."""
MOST_ROWS = 2 * 10**9
"""The most rows that are drawn in all, which takes minutes."""
MOST_SHUFFLED = 10**9
"""The most rows from which numpy draws without replacement."""
_PRIOR = 0.5
"""Jeffreys' prior weight of each cell of a group."""
_MOST_PARTS, _FEWEST_PARTS = 400, 30
_FEW_ROWS, _MOST_ROWS = 2**22, 2**26
"""The rows that are read in all: with as many parts as few rows allow, or with the fewest parts as most rows do."""
_DOING = "leaving out rows"
_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_POSSIBLE = "\0possible"
_SCORE = "s0"
"""The scores that a threshold reads, among the rows that a tally keeps."""


def generator(seed: int, name: str) -> np.random.Generator:
    """A random generator for a name, so that random numbers do not depend on the other parts of a call."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def check_shuffled(rows: int) -> None:
    """Refuse more rows than can be drawn without replacement."""
    if rows >= MOST_SHUFFLED:
        msg = f"Fewer than {MOST_SHUFFLED} rows can be shuffled; test a part of them."
        raise ArgumentError(msg)


@dataclass(frozen=True, eq=False)
class DrawnUnits:
    """The unit of each row, and replicates of the times that units are there, in parts that fit into memory."""

    unit: Array
    parts: Iterator[Array]
    """Arrays of replicates by units."""


@dataclass(frozen=True, eq=False)
class DrawnCells:
    """A tally of the cells of some groups, and replicates of their sums, in parts that fit into memory."""

    tally: Tally
    """Its only keys are those of outer groups and of the features."""
    parts: Iterator[dict[str, Array]]
    """Arrays of replicates by cells, by the column of cells."""


# Cells


def drawn_labels(
    tally: Tally, by: Sequence[Column], *, strata: Sequence[Column], times: int, seed: int,
    possible: pl.DataFrame | None = None,
) -> DrawnCells:  # fmt: skip
    """Replicates of the counts of labels.

    Outer groups, and the groups of `strata`, keep their size. Each has random numbers of its own, so that replicates of
    an outer group do not depend on the others, nor on how many are drawn at once. With `possible` pairs of truth and
    estimate cells are not drawn: their shares are, from the Dirichlet distribution that Jeffreys' prior and the counts
    of a group give to each of these pairs.
    """
    reduced = with_pairs(tally, by, possible)
    cells, outer_names = reduced.cells, reduced.outer_names
    outer = placed(cells, outer_names)[0]
    of_strata = _runs_of(placed(cells, [*outer_names, *reduced.names(strata)])[0])
    first = outer[[own[0] for own in of_strata]]
    rows, weighted = cells["n"].to_numpy(), "w" in cells.columns
    randoms = _generators_of_strata(first, seed, f"replicates {bool(strata)}")
    noises = _generators_of_strata(first, seed, f"weights {bool(strata)}") if weighted else []
    size = np.maximum(rows, 1)

    def shares(count: int) -> dict[str, Array]:
        drawn = np.zeros((count, len(cells)))
        for stratum, random in zip(of_strata, randoms, strict=True):
            drawn[:, stratum] = random.dirichlet(rows[stratum] + _PRIOR, count) * rows[stratum].sum()
        return {"n": np.broadcast_to(size, drawn.shape), "w": drawn, "w2": drawn}

    def counts(count: int) -> dict[str, Array]:
        drawn = np.zeros((count, len(cells)), dtype=np.int64)
        for stratum, random in zip(of_strata, randoms, strict=True):
            total = rows[stratum].sum()
            if total:
                drawn[:, stratum] = random.multinomial(total, rows[stratum] / total, count)
        if not weighted:
            return {"n": drawn}
        noise = np.zeros((count, len(cells)))
        for stratum, random in zip(of_strata, noises, strict=True):
            noise[:, stratum] = random.standard_normal((count, len(stratum)))
        # the weights of a cell by their mean and their variance
        mean, square = cells["w"].to_numpy() / size, cells["w2"].to_numpy() / size
        weight = drawn * mean + noise * np.sqrt(drawn * np.maximum(square - mean**2, 0))
        return {"n": drawn, "w": np.maximum(weight, 0), "w2": drawn * square}

    draw = counts if possible is None else shares
    runs = runs_of_replicates(times, len(outer))
    return DrawnCells(reduced, (draw(end - start) for start, end in runs))


def with_pairs(tally: Tally, by: Sequence[Column], possible: pl.DataFrame | None) -> Tally:
    """The counts of labels in outer groups and groups of `by`, in order, with all `possible` pairs of labels.

    What is possible may have keys of `by` beside the labels, such as the prediction of another model.
    """
    keys, renamed = kept_keys(tally, by)
    sums = [name for name in ("n", "w", "w2") if name in tally.cells.columns]
    cells = tally.cells.group_by(*renamed, *LABELS).agg(pl.col(sums).sum())
    if possible is not None:
        own = [name for name in renamed if name not in possible.columns]
        groups = cells.select(own).unique() if own else None
        every = possible if groups is None else groups.join(possible, how="cross")
        occurring = [*renamed, *LABELS]
        cells = every.join(cells, on=occurring, how="full", coalesce=True, nulls_equal=True)
        cells = cells.with_columns(pl.col(sums).fill_null(0))
    # in order, so that results follow from the seed, whatever the order of the rows
    cells = cells.select(*renamed, *LABELS, *sums).sort(*renamed, *LABELS, nulls_last=True).rename(renamed)
    return replace(tally, cells=cells, keys=keys, rows=None)


def drawn_clusters(tally: Tally, by: Sequence[Column], *, times: int, seed: int) -> DrawnCells:
    """Replicates of a tally in which all rows of a cluster of an outer group are drawn together.

    Sums are summed again; extremes stay the same.
    """
    from scipy.sparse import csr_array

    labels = [*LABELS, SCORE] if SCORE in tally.cells.columns else [*LABELS]
    keys, renamed = kept_keys(tally, by)
    cell, unit = [*renamed, *labels], [*tally.outer_names, *tally.names([key.column for key in tally.clusters])]
    merges = merged(name for name in tally.cells.columns if name not in {*tally.counted_by, *labels})
    columns = {name: merge(pl.col(name)) for name, merge in merges.items()}
    keyed = list(dict.fromkeys([*cell, *unit]))
    cells = centred(tally.cells).group_by(keyed).agg(columns.values()).sort(keyed, nulls_last=True)
    (index, distinct), (unit_of_cell, units) = placed(cells, cell), placed(cells, unit)
    fixed = cells.group_by(cell).agg(columns.values())
    fixed = distinct.join(fixed, on=cell, how="left", nulls_equal=True, maintain_order="left").rename(renamed)
    reduced = replace(tally, cells=fixed, keys=keys, rows=None)
    # the sums of the cells of each cluster
    sums: dict[str, Any] = {
        name: csr_array((cells[name].cast(pl.Float64).to_numpy(), (unit_of_cell, index)), (len(units), len(fixed)))
        for name in columns
        if reduction_of(name) == "sum"
    }
    outer = placed(units, tally.outer_names)[0]
    randoms = [generator(seed, "replicates of clusters") for _ in _runs_of(outer)]

    def parts() -> Iterator[dict[str, Array]]:
        for start, end in runs_of_replicates(times, max(len(fixed) * len(sums), len(units))):
            drawn = np.zeros((end - start, len(units)))
            for own, random in zip(_runs_of(outer), randoms, strict=True):
                drawn[:, own] = _drawn_evenly(len(own), end - start, random)
            replicates: dict[str, Array] = {name: drawn @ of_clusters for name, of_clusters in sums.items()}
            yield replicates | {"n": np.round(replicates["n"]).astype(np.int64)}

    return DrawnCells(reduced, parts())


def drawn_decisions(
    tally: Tally, point: OperatingPoint, by: Sequence[Column], *, strata: Sequence[Column], times: int, seed: int
) -> DrawnCells:
    """Replicates of counts by true label and decision, with rows or clusters drawn with replacement.

    In each of them the threshold is chosen again from the drawn rows, and then decides about all of them.
    """
    every = tally.cells.select(TRUTH).unique().join(
        pl.DataFrame({ESTIMATE: [False, True, None]}, schema={ESTIMATE: pl.Boolean}), how="cross"
    )  # fmt: skip
    reduced = with_pairs(tally, by, every)
    kept = tally.rows if tally.rows is not None else pl.DataFrame()
    rows, parts = drawn_rows(tally, kept, by, strata=strata, times=times, seed=seed)
    _, renamed = kept_keys(tally, by)
    cells = reduced.cells.with_row_index("cell").select(pl.exclude("n", "w", "w2"))
    keys = rows.select(*renamed, TRUTH).rename(renamed)

    def cell_of_row(decision: Booleans | None) -> Integers:
        decided = pl.Series(ESTIMATE, decision) if decision is not None else pl.lit(None, pl.Boolean).alias(ESTIMATE)
        return keys.with_columns(decided).join(
            cells, on=[*renamed.values(), *LABELS], how="left", nulls_equal=True, maintain_order="left"
        )["cell"].to_numpy()  # fmt: skip

    every_row = np.ones(len(rows), dtype=bool)
    unscored, below, above = map(cell_of_row, (None, ~every_row, every_row))
    is_scored = rows[_SCORE].is_not_null().to_numpy()
    score = rows[_SCORE].fill_null(-math.inf).cast(pl.Float64).to_numpy()
    weight = rows[WEIGHT].cast(pl.Float64).to_numpy() if WEIGHT in rows.columns else np.ones(len(rows))
    has_both = is_scored & rows[TRUTH].is_not_null().to_numpy()
    event = has_both & point.is_event(rows[TRUTH]).fill_null(value=False).to_numpy()
    group = placed(rows, [*tally.outer_names, *(f"t{index}" for index in range(len(point.by)))])[0]
    falling = np.argsort(-score, kind="stable")
    groups = [falling[own] for own in _runs_of(group[falling])]

    def decided(drawn: Array) -> dict[str, Array]:
        cell = np.broadcast_to(np.where(is_scored, below, unscored), drawn.shape).copy()
        for of_group in groups:
            # the threshold is chosen from rows with both, and decides about all
            chosen = of_group[has_both[of_group]]
            weights = drawn[:, chosen] * weight[chosen]
            selected, _ = point.selected(score[chosen], weights * event[chosen], weights * ~event[chosen])
            lowest = np.append(math.inf, score[chosen])[selected]
            is_above = is_scored[of_group] & (score[of_group] >= lowest[:, None])
            cell[:, of_group] = np.where(is_above, above[of_group], cell[:, of_group])
        code = cell + np.arange(len(drawn))[:, None] * len(cells)
        size = len(drawn) * len(cells)

        def summed(measure: Array) -> Array:
            return np.bincount(code.ravel(), measure.ravel(), size).reshape(len(drawn), -1)

        sums = {"n": summed(drawn).astype(np.int64)}
        if WEIGHT in rows.columns:
            sums |= {"w": summed(drawn * weight), "w2": summed(drawn * weight**2)}
        return sums

    return DrawnCells(reduced, map(decided, parts))


# Rows


def drawn_rows(
    tally: Tally, rows: pl.DataFrame, by: Sequence[Column], *, strata: Sequence[Column], times: int, seed: int
) -> tuple[pl.DataFrame, Iterator[Array]]:
    """The rows of a tally in order, and replicates of the times that they are drawn: arrays of replicates by rows.

    Outer groups, and the groups of `strata`, keep their size; rows of a cluster of an outer group are drawn together.
    """
    clusters, outer_names = tally.cluster_names, tally.outer_names
    rows = in_order(tally, rows, [*outer_names, *tally.names(by), *clusters])
    if len(rows) * times > MOST_ROWS:
        msg = (
            f"{times} draws of {len(rows)} rows take too long; a few hundred tell a standard error to a few percent, "
            "`times=400`."
        )
        raise ArgumentError(msg)
    outer = placed(rows, outer_names)[0]
    unit = placed(rows, [*outer_names, *(clusters or tally.names(strata))])[0]
    units = _runs_of(unit)
    outer_of_unit = outer[[own[0] for own in units]]
    randoms = _generators_of_strata(outer_of_unit, seed, f"replicates {bool(strata)}")

    def of_clusters(count: int) -> Array:
        drawn = [_drawn_evenly(len(own), count, randoms[int(own[0])]) for own in _runs_of(outer_of_unit)]
        return np.concatenate(drawn, axis=1)[:, unit]

    def of_rows(count: int) -> Array:
        drawn = np.zeros((count, len(rows)), dtype=np.int64)
        for own, random in zip(units, randoms, strict=True):
            index = (random.random((count, len(own))) * len(own)).astype(np.int64)
            index += np.arange(count)[:, None] * len(own)
            drawn[:, own] = np.bincount(index.ravel(), minlength=count * len(own)).reshape(count, -1)
        return drawn

    draw = of_clusters if clusters else of_rows
    return rows, (draw(end - start) for start, end in runs_of_replicates(times, len(rows)))


def drawn_units(
    tally: Tally, rows: pl.DataFrame, by: Sequence[Column], *, strata: Sequence[Column], times: int, seed: int
) -> DrawnUnits:
    """Replicates of rows of a tally, with all columns that they have, each of which is a unit."""
    ordered, parts = drawn_rows(tally, numbered(rows), by, strata=strata, times=times, seed=seed)
    return DrawnUnits(np.argsort(ordered[ROW].to_numpy()), parts)


# Without one unit


@dataclass(frozen=True, eq=False)
class Units:
    """The units that replicates lack, one of each outer group at a time; replicate 0 has all. Arrays of units."""

    outer: Integers
    """The outer group, in order."""
    stratum: Integers
    """The units of a stratum are alike; in order."""
    replicate: Integers
    """The replicate that lacks the unit."""
    weight: Floats
    """The weight of all that is like the unit."""
    squares: Floats
    """The sum of its squares."""
    left_out: Floats
    """The weight that is left out."""
    freedom: Floats
    """The degrees of freedom of the stratum."""
    factors: tuple[Floats, Floats] | None = None
    """Those of the variance of strata, of the sum of squares and of the square of the sum, if the design of a survey
    has them; else those of as many units as there are in effect. Weights are shares of the outer group then."""

    def limits(
        self, results: Floats, size: Floats, level: float, *, added_changes: float = 0.0
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Limits of results, standard errors and p-values, arrays of results by outer groups, from those of replicates.

        `size` is that of the numbers whose rounding errors results have. As many units as `added_changes` are taken to
        change results as others do, and to have been missed.
        """
        from scipy.special import stdtr

        strata = Segments.of(self.stratum)
        of_strata, free = Segments.of(self.outer[strata.starts]), self.freedom[strata.starts][:, None]
        weight, squares, left_out = (own[:, None] for own in (self.weight, self.squares, self.left_out))
        error, freedom = np.full((2, *results.shape[1:]), np.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            everything = strata.sum(weight)
            remaining = 1 - left_out / (strata.to_rows(everything) if self.factors is None else 1.0)
            lost = results[0][:, self.outer].T - results[self.replicate, :, self.outer]
            # that of a unit of weight 1
            influence = lost * remaining / left_out
            total, square = strata.sum(squares * influence**2), strata.sum(weight * influence) ** 2
            if self.factors is None:
                count = everything**2 / strata.sum(squares)
                of_stratum = np.maximum(total - square / count, 0) * count / (count - 1)
                variance = of_strata.sum(of_stratum)
                of_variance = variance**2 / of_strata.sum(of_stratum**2 / np.maximum(free, 1))
            else:
                of_squares, of_sums = (own[:, None] for own in self.factors)
                variance = of_strata.sum(of_squares * total - of_sums * square).clip(0)
                of_variance = np.broadcast_to(of_strata.sum(free), variance.shape)
            changing = of_strata.sum(total) ** 2 / of_strata.sum(strata.sum(squares**2 * influence**4))
            own = self.outer[strata.starts][of_strata.starts]
            error[:, own] = np.sqrt(variance * (1 + added_changes / changing)).T
            freedom[:, own] = of_variance.T
            half = student_limits(z_value(level), freedom) * error
            # what has not been seen to vary says nothing about how far it varies
            varies = (error > _ROUNDED * size) & np.isfinite(half)
            p_value = 2 * stdtr(freedom, -np.abs(results[0]) / error)
        lower, upper = results[0] - half, results[0] + half
        lower, upper, error, p_value = (np.where(varies, own, np.nan) for own in (lower, upper, error, p_value))
        return lower, upper, error, p_value


def without_rows_of_cells(
    tally: Tally, by: Sequence[Column], beside: Column, possible: pl.DataFrame, added: float, *, reads_truth: bool
) -> tuple[Units, DrawnCells]:
    """Replicates of a tally of labels in which a row of one cell is left out.

    Rows of an outer group and group of `by` are alike; their cells are told apart by their labels and another key
    `beside` these. Before, so many rows are `added` to each group, spread over all cells that are possible. Without
    rows that are added, cells are those that occur.
    """
    possible = possible.cast({name: tally.cells.schema[name] for name in possible.columns})
    (name,) = tally.names([beside])
    tally = with_pairs(tally, (*by, beside), possible if added else None)
    possible = possible.rename({name: tally.names([beside])[0]}).with_columns(pl.lit(value=True).alias(_POSSIBLE))
    labels = possible.columns[:-1]
    marked = tally.cells.join(possible, on=labels, how="left", nulls_equal=True, maintain_order="left")
    is_possible = marked[_POSSIBLE].is_not_null().to_numpy()
    cells, codes = tally.cells, KeyCodes(tally.cells)
    counted = cells[TRUTH].is_not_null().to_numpy() | (not reads_truth)
    index = codes.index(tally.outer_names)
    outer, stratum = index.of_cell, codes.index(tally.names(by), within=index).of_cell
    weighted = "w" in cells.columns
    rows, weight, square = (cells[name].to_numpy() for name in ("n", *(("w", "w2") if weighted else ("n", "n"))))
    total, squares = (np.bincount(stratum, np.where(counted, own, 0)) for own in (weight, square))
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.nan_to_num(squares / total)[stratum]
        extra = np.where(is_possible, each * added / max(1, len(possible)), 0.0)
        weight, square = weight + extra, square + extra * each
        of_row = np.where(weight > 0, square / weight, 0.0)
    left_out = np.where(counted, np.minimum(of_row, weight / 2), 0.0)
    unit = np.lexsort((stratum, outer))
    unit = unit[left_out[unit] > 0]
    segments = Segments.of(outer[unit])
    replicate = 1 + np.arange(len(unit)) - segments.to_rows(segments.starts)
    freedom = total[stratum[unit]] ** 2 / squares[stratum[unit]] - 1
    units = Units(outer[unit], stratum[unit], replicate, weight[unit], square[unit], left_out[unit], freedom)

    def parts() -> Iterator[dict[str, Array]]:
        for start, end in runs_of_replicates(1 + int(replicate.max(initial=0)), len(weight), _DOING):
            own = (replicate >= start) & (replicate < end)
            place = replicate[own] - start, unit[own]
            n, w, w2 = (np.tile(sums, (end - start, 1)) for sums in (rows, weight, square))
            w[place] -= left_out[unit[own]]
            w2[place] -= (of_row * left_out)[unit[own]]
            yield {"n": n, "w": w, "w2": w2}

    return units, DrawnCells(tally, parts())


def without_parts(
    tally: Tally, rows: pl.DataFrame, by: Sequence[Column], random: np.random.Generator
) -> tuple[Units, DrawnUnits]:
    """Replicates of the rows of a tally without a random part, or a cluster, of each outer group."""
    outer_names = tally.outer_names
    clusters = tally.cluster_names
    ordered = in_order(tally, numbered(rows), [*outer_names, *tally.names(by), *clusters])
    codes = KeyCodes(ordered)
    outer_of_row = codes.index(outer_names).of_cell
    cluster = codes.index(clusters).of_cell if clusters else np.arange(len(ordered))
    part = random_parts(outer_of_row, cluster, random)
    most = int(part.max(initial=-1)) + 1
    code, first, unit_of_row = np.unique(outer_of_row * most + part, return_index=True, return_inverse=True)
    outer = outer_of_row[first]
    weight = np.bincount(unit_of_row, ordered[WEIGHT].to_numpy() if WEIGHT in ordered.columns else None).astype(float)
    squares, segments = weight**2, Segments.of(outer)
    replicate = code - outer * most + 1
    freedom = segments.to_rows(segments.sum(weight) ** 2 / segments.sum(squares)) - 1
    units = Units(outer, outer, replicate, weight, squares, weight, freedom)
    unit = np.empty(len(ordered), dtype=np.int64)
    unit[ordered[ROW].to_numpy()] = unit_of_row
    sizes = segments.to_rows(segments.sizes)

    def parts() -> Iterator[Array]:
        for number in numbers_of_replicates(1 + most, len(unit)):
            # outer groups with fewer parts are in no further replicate
            yield ((replicate != number) & (sizes >= number)).astype(np.int8)

    return units, DrawnUnits(unit, parts())


def numbers_of_replicates(times: int, rows: int) -> Iterator[Integers]:
    """The numbers of replicates of so many rows, as columns, in parts that fit into memory."""
    for start, end in runs_of_replicates(times, rows, _DOING):
        yield np.arange(start, end)[:, None]


def random_parts(outer: Integers, unit: Integers, random: np.random.Generator) -> Integers:
    """The part of each row within its outer group: rows or clusters one by one, or random parts of many."""
    distinct, index = np.unique(np.stack([outer, unit], axis=1), axis=0, return_inverse=True)
    of_outer = distinct[:, 0]
    # in random order within their outer group
    order = np.lexsort((random.random(len(distinct)), of_outer))
    segments = Segments.of(of_outer)
    number = np.empty(len(distinct), dtype=np.int64)
    number[order] = np.arange(len(distinct)) - segments.to_rows(segments.starts)
    rows = max(1, len(outer))
    most = max(_FEW_ROWS // rows, int(np.clip(_MOST_ROWS // rows, _FEWEST_PARTS, _MOST_PARTS)))
    return (number % most)[index.ravel()]


# What all of them need


def runs_of_replicates(times: int, size: int, doing: str = "resampling") -> Iterator[tuple[int, int]]:
    """Runs of replicates of so many numbers that fit into memory: the first of each, and the one after the last."""
    size = max(1, size)
    step = max(1, min(_MOST_DRAWN // size, max(_CACHED // size, _ENOUGH_AT_ONCE)))
    for start in in_progress(range(0, times, step), doing):
        yield start, min(start + step, times)


def _runs_of(codes: Array) -> list[Array]:
    """The indices of each code, in the order of the codes."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else []


def _generators_of_strata(outer: Array, seed: int, name: str) -> list[np.random.Generator]:
    """A random generator for each stratum, from its number in its outer group; outer groups are in order."""
    position = np.arange(len(outer)) - np.searchsorted(outer, outer)
    return [generator(seed, f"{name} {number}") for number in position.tolist()]


def _drawn_evenly(count: int, times: int, random: np.random.Generator) -> Array:
    """The times that clusters are drawn, as many as there are: arrays of replicates by clusters."""
    return random.multinomial(count, np.full(count, 1 / count), times)


def kept_keys(tally: Tally, by: Sequence[Column]) -> tuple[tuple[Key, ...], dict[str, str]]:
    """The keys of outer groups and of `by`, and the new names of their columns without the other keys."""
    kept = [*by, *(key.column for key in tally.outer)]
    keys = tuple(key for key in tally.keys if key.column in kept)
    return keys, {f"k{tally.keys.index(key)}": f"k{index}" for index, key in enumerate(keys)}


def placed(frame: pl.DataFrame, by: Sequence[str]) -> tuple[Array, pl.DataFrame]:
    """The index of each row among the distinct ones, which are in order and null last; and these."""
    if not by:
        return np.zeros(len(frame), dtype=np.int64), pl.DataFrame()
    index = KeyCodes(frame).index(by)
    return index.of_cell, index.keys


def numbered(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their number as the last column."""
    return rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(ROW))


def in_order(tally: Tally, rows: pl.DataFrame, kept: Sequence[str]) -> pl.DataFrame:
    """The rows with only the keys that are kept, sorted.

    So results follow from the seed, whatever the order of the data and the other parts of a call.
    """
    others = [f"k{index}" for index in range(len(tally.keys)) if f"k{index}" not in kept]
    return rows.drop(others).sort(pl.all(), nulls_last=True)


def possible_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All pairs of true and predicted label that are possible or occur."""
    return pl.concat([label_pairs(tally, options), tally.cells.select(LABELS)], how="vertical_relaxed").unique()


def label_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All possible pairs of true and predicted label."""
    labels = read_labels(tally, options, allow_unseen=True)
    sides: list[pl.DataFrame] = []
    for name in LABELS:
        column = tally.cells[name]
        distinct = column.drop_nulls().unique()
        if name == ESTIMATE and tally.cut is not None:
            values = pl.Series([False, True]) if column.dtype == pl.Boolean else distinct
        else:
            values = pl.Series(list(labels.values)).cast(column.dtype) if len(distinct) else column.clear(1)
        sides.append(pl.DataFrame({name: values}))
    return sides[0].join(sides[1], how="cross")


def is_of_labels(spec: MetricSpec) -> bool:
    """Check whether counts of labels are enough for a spec."""
    return all(formula.kind == "class" and not formula.all_terms for _, formula in spec.formulas)
