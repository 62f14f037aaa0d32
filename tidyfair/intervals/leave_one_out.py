"""Limits of results of any kind, from replicates that lack one row, part or cluster of each outer group.

What a result loses without a row is the influence of that row, whatever the result is made of: values of several
groups, of two models, or of groups and all rows together. The influences of all rows give its variance (Tukey, 1958),
and those of a change are the differences of those of both values. Rows of labels are known by their cell, with a part
of a row more in each cell. Other rows are left out in random parts, and rows of a cluster together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.intervals.proportions import student_limits, z_value
from tidyfair.intervals.resampling import (
    ROW,
    DrawnCells,
    DrawnUnits,
    in_order,
    numbered,
    runs_of_replicates,
    with_pairs,
)
from tidyfair.specs.columns import Column
from tidyfair.specs.segments import Array, Floats, Integers, Segments
from tidyfair.tallies.source import WEIGHT
from tidyfair.tallies.tally import TRUTH, Tally

_MOST_PARTS, _FEWEST_PARTS = 400, 30
_FEW_ROWS, _MOST_ROWS = 2**22, 2**26
"""The rows that are read in all: with as many parts as few rows allow, or with the fewest parts as most rows do."""
_DOING = "leaving out rows"
_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_POSSIBLE = "\0possible"


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

    def limits(
        self, results: Floats, size: Floats, level: float, *, added_changes: float = 0.0
    ) -> tuple[Floats, Floats, Floats]:
        """Limits of results and their standard errors, arrays of results by outer groups, from those of replicates.

        `size` is that of the numbers whose rounding errors results have. As many units as `added_changes` are taken to
        change results as others do, and to have been missed.
        """
        influence, weight, squares = self.influences(results), self.weight[:, None], self.squares[:, None]
        strata = Segments.of(self.stratum)
        of_strata = Segments.of(self.outer[strata.starts])
        error, freedom = np.full((2, *results.shape[1:]), np.nan)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            count = strata.sum(weight) ** 2 / strata.sum(squares)
            total = strata.sum(squares * influence**2)
            about_mean = np.maximum(total - strata.sum(weight * influence) ** 2 / count, 0)
            of_stratum = about_mean * count / (count - 1)
            variance = of_strata.sum(of_stratum)
            changing = of_strata.sum(total) ** 2 / of_strata.sum(strata.sum(squares**2 * influence**4))
            free = np.maximum(self.freedom[strata.starts], 1)[:, None]
            own = self.outer[strata.starts][of_strata.starts]
            error[:, own] = np.sqrt(variance * (1 + added_changes / changing)).T
            freedom[:, own] = (variance**2 / of_strata.sum(of_stratum**2 / free)).T
        half = student_limits(z_value(level), freedom) * error
        with np.errstate(invalid="ignore"):
            # what has not been seen to vary says nothing about how far it varies
            varies = (error > _ROUNDED * size) & np.isfinite(half)
        centre = results[0]
        lower, upper, error = (np.where(varies, own, np.nan) for own in (centre - half, centre + half, error))
        return lower, upper, error

    def influences(self, results: Floats) -> Floats:
        """The influences on the results of an outer group (units, results) from replicates by results by outer groups.

        They are those of a unit of weight 1.
        """
        strata = Segments.of(self.stratum)
        remaining = 1 - self.left_out / strata.to_rows(strata.sum(self.weight))
        with np.errstate(invalid="ignore"):
            lost = results[0][:, self.outer].T - results[self.replicate, :, self.outer]
        return lost * (remaining / self.left_out)[:, None]


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
    part = _parts(outer_of_row, cluster, random)
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
        for start, end in runs_of_replicates(1 + most, len(unit), _DOING):
            number = np.arange(start, end)[:, None]
            # outer groups with fewer parts are in no further replicate
            yield ((replicate != number) & (sizes >= number)).astype(np.int8)

    return units, DrawnUnits(unit, parts())


def _parts(outer: Integers, unit: Integers, random: np.random.Generator) -> Integers:
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
