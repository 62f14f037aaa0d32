"""The effect of empty cells of truth and estimate on values.

Replicates leave empty cells empty, so that a group without errors has none in any of them. If none of n rows is in a
cell, the share of that cell may be as large as z² / (n + z²) (Wilson, 1927): the share that z² more rows in it have.
So values are computed again with as many rows in each empty cell, one cell at a time, and limits include them. For a
rate of none or all of its rows this is Wilson's limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.group_cells import number_group_cells
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.replicates import Replicates
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.resampling import MOST_CELLS, is_of_labels, label_pairs, with_pairs
from tidyfair.intervals.uncertainty import Uncertainty
from tidyfair.specs.groups import By
from tidyfair.specs.segments import Array, Floats, Integers
from tidyfair.tallies.tally import HIDDEN, LABELS, Tally

_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_MOST_FILLED = 10_000
"""The most replicates with filled cells; with more than a hundred labels not all pairs are filled."""


@dataclass(frozen=True, eq=False)
class Filled:
    """The smallest and the largest value of groups with empty cells filled; the values where nothing is filled."""

    uncertainty: Uncertainty
    low: Floats
    high: Floats

    @classmethod
    @np.errstate(divide="ignore", invalid="ignore")
    def of(cls, uncertainty: Uncertainty, specs: Sequence[int], z: float) -> Filled:
        """Fill the empty cells of the values of some specs of labels, at so many standard errors."""
        value = uncertainty.column("estimate")
        filled = cls(uncertainty, value.copy(), value.copy())
        if uncertainty.options.interval not in {"auto", "bootstrap"} or HIDDEN in uncertainty.tally.cells.columns:
            return filled
        by_feature: dict[tuple[By | None, bool], list[int]] = {}
        for number in specs:
            own = uncertainty.evaluated.specs[number]
            if is_of_labels(own):
                compares = any(formula.compares for _, formula in own.formulas)
                by_feature.setdefault((own.by, compares), []).append(number)
        for (by, compares), numbers in by_feature.items():
            for replicates in _filled(uncertainty, by, numbers, z, one_at_a_time=compares):
                rows = replicates.rows
                values = np.where(np.isfinite(replicates.values), replicates.values, np.nan)
                near = _ROUNDED * np.abs(value[rows])
                least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
                filled.low[rows] = np.where(least < filled.low[rows] - near, least, filled.low[rows])
                filled.high[rows] = np.where(most > filled.high[rows] + near, most, filled.high[rows])
        return filled

    def of_results(self, results: Array) -> tuple[Floats, Floats]:
        """The smallest and the largest result if one group, or all of them, have values of filled cells."""
        uncertainty = self.uncertainty
        evaluated, outers = uncertainty.evaluated, uncertainty.outers
        ends = np.full((2, len(results)), np.nan)
        spec, outer, value = (uncertainty.column(name) for name in ("spec", "outer", "estimate"))
        for position, result in enumerate(results.tolist()):
            number, own = divmod(int(result), outers)
            rows = np.flatnonzero((spec == number) & (outer == own) & ~np.isnan(value))
            if evaluated.specs[number].aggregate is None:
                ends[:, position] = self.low[rows[0]], self.high[rows[0]]
                continue
            moved = self._moved(rows)
            if moved is not None:
                compared = Replicates.of_values(evaluated, rows, moved, {}).results[:, result]
                finite = compared[np.isfinite(compared)]
                if len(finite):
                    ends[:, position] = finite.min(), finite.max()
        return ends[0], ends[1]

    def _moved(self, rows: Integers) -> Floats | None:
        """The values of an outer group with filled cells in one group, or in all of them; None if none moves."""
        value, cells = self.uncertainty.column("estimate")[rows], self.uncertainty.column(GROUP_CELL)[rows]
        cases: list[Floats] = []
        for end in (self.low[rows], self.high[rows]):
            with np.errstate(invalid="ignore"):
                away = np.where(end == value, 0.0, np.abs(end - value))
            # only the farthest groups, if there are very many
            farthest = list(dict.fromkeys(cells[np.argsort(-away, kind="stable")].tolist()))
            reaching = [cell for cell in farthest[: MOST_CELLS // len(rows)] if (away[cells == cell] > 0).any()]
            cases += [np.where(cells == cell, end, value) for cell in reaching]
            cases += [end] if reaching else []
        return np.stack(cases) if cases else None


def _filled(
    uncertainty: Uncertainty, by: By | None, specs: Sequence[int], z: float, *, one_at_a_time: bool
) -> Iterator[Replicates]:
    """Replicates in which rows are added to one empty cell of all groups, or to all of them together.

    With `one_at_a_time` this is done in one group after another, for metrics that compare groups themselves.
    """
    evaluated, tally, options = uncertainty.evaluated, uncertainty.tally, uncertainty.options
    columns = by.columns if by else ()
    cells = with_pairs(tally, columns, label_pairs(tally, options))
    index = number_group_cells(cells, evaluated.labels, [by])[0].indices[by].of_cell
    weighted = "w" in cells.cells.columns
    rows = cells.cells["n"].to_numpy()
    weight = cells.cells["w" if weighted else "n"].to_numpy().astype(float)
    square = cells.cells["w2" if weighted else "n"].to_numpy().astype(float)
    groups = int(index.max(initial=-1)) + 1
    total, squares = (np.bincount(index, own, groups) for own in (weight, square))
    row = np.nan_to_num(squares / total)
    each = z**2 * _weight_of_a_unit(tally, evaluated, by, row)
    empty = np.flatnonzero(
        (rows == 0) & (cells.cells[LABELS[0]].is_not_null() | cells.cells[LABELS[1]].is_not_null()).to_numpy()
    )
    if not len(empty):
        return
    # all empty cells of a group together, then one of them at a time
    number_of_empty = np.bincount(index[empty], minlength=groups)
    if one_at_a_time:
        together = np.unique(index[empty], return_inverse=True)[1]
        alone = np.arange(len(empty)) + int(together.max()) + 1
    else:
        together = np.zeros(len(empty), dtype=np.int64)
        pair = cells.cells.select(pl.struct(LABELS).rank("dense")).to_series().to_numpy()[empty]
        alone = 1 + np.unique(pair, return_inverse=True)[1]
    replicate = np.concatenate([together, alone])
    cell = np.concatenate([empty, empty])
    added = np.concatenate([each[index[empty]] / number_of_empty[index[empty]], each[index[empty]]])
    count = min(int(replicate.max()) + 1, _MOST_FILLED)
    step = max(1, MOST_CELLS // len(rows))
    for start in range(0, count, step):
        size = min(step, count - start)
        own = (replicate >= start) & (replicate < start + size)
        filled = np.tile(weight, (size, 1))
        filled[replicate[own] - start, cell[own]] += added[own]
        occupied = np.tile(np.maximum(rows, 0), (size, 1))
        occupied[replicate[own] - start, cell[own]] = 1
        # the weight of a group stays the same
        sums = np.stack([np.bincount(index, one, groups) for one in filled])
        filled *= np.nan_to_num(total / sums)[:, index]
        drawn = {"n": occupied, "w": filled, "w2": filled * row[index]}
        yield Replicates.of_sums(evaluated, specs, by, cells, drawn)


def _weight_of_a_unit(tally: Tally, evaluated: Evaluated, by: By | None, row: Floats) -> Floats:
    """The weight of a row, or of a cluster, of each group, if all were equal and effectively as many."""
    clusters = tally.cluster_names
    if not clusters:
        return row
    index, cells = evaluated.group_cells.indices[by], evaluated.evaluator.cells
    unit = KeyCodes(tally.cells).index(clusters, within=index)
    weight = np.bincount(unit.of_cell, cells.measure("w"), len(unit))
    group = index.of_cell[unit.example]
    return np.nan_to_num(np.bincount(group, weight**2) / np.bincount(group, weight))
