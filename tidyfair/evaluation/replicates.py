"""Replicates of an evaluation: other counts, sums or rows of the same groups, as one more axis of the same arrays.

A replicate has the outer groups of the data once more, so that formulas and aggregates are evaluated as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.evaluator import Evaluator, Values
from tidyfair.evaluation.group_cells import GroupCells, complete_rows, number_group_cells, rows_of
from tidyfair.evaluation.group_index import GroupIndex, KeyCodes
from tidyfair.evaluation.ranked_rows import Rows
from tidyfair.evaluation.results import frames_of
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL, Cells, LabelCounts
from tidyfair.evaluation.value_rows import PART, STATE, UNDEFINED, ValueRows
from tidyfair.specs import CONTEXTS, Array, Average, Booleans, By, Floats, Integers, Segments, UserAggregate
from tidyfair.specs.formulas import Formula
from tidyfair.tallies import EXTREMES, LABELS, Copies, Members, Tally, centred, reduction_of

_SIZES = ("weight", "size", "n")
"""The columns of the sizes of groups, which some aggregates read."""
_VARIANCES = ("variance", "effective", "denominator")
"""The columns that say how far values vary."""
_LAYOUT = ("spec", PART, GROUP_CELL, LEVEL, "metric", "is_reference", *_SIZES, *CONTEXTS)
"""The columns of values that replicates have as the evaluation has them, unless they have others."""
_STEP = 1e-4
"""The distance by which a value is moved for a derivative."""


@dataclass(frozen=True, eq=False)
class RepeatedCells(Cells):
    """The cells of a tally many times over, one replicate after the other, each with sums of its own."""

    own: Cells
    """The cells of the tally."""
    sums: Mapping[str, Array]
    """Arrays of replicates by cells, by the column that they replace."""

    @property
    def times(self) -> int:
        """The number of replicates."""
        return len(next(iter(self.sums.values())))

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cells with all that is summed."""
        columns: dict[str, Array] = {}
        for name in self.own.frame.columns:
            if name in self.sums:
                columns[name] = self.sums[name].ravel()
            elif name not in self.tally.counted_by and name not in LABELS:
                columns[name] = np.tile(self.own.frame[name].to_numpy(), self.times)
        # replicates of rows without weights may have some
        columns |= {name: values.ravel() for name, values in self.sums.items() if name not in columns}
        return pl.DataFrame(columns)

    def label_counts(self, index: GroupIndex, levels: Sequence[int]) -> LabelCounts:
        """The cells of one replicate by the groups of an index and by their labels."""
        first = GroupIndex(index.of_cell[: len(self.own.truth)], index.example[: len(index) // self.times])
        return self.own.label_counts(first, levels)

    @cached_property
    def truth(self) -> Integers:
        """The index of the true label."""
        return np.tile(self.own.truth, self.times)

    @cached_property
    def estimate(self) -> Integers:
        """The index of the predicted label."""
        return np.tile(self.own.estimate, self.times)

    def complete_in(self, reads: frozenset[str]) -> Booleans:
        """The cells whose rows have a value in all roles that are read, as a mask."""
        return np.tile(self.own.complete_in(reads), self.times)


@dataclass(eq=False, repr=False)
class _RowsDrawn(Evaluator):
    """An evaluator of replicates of rows."""

    row: Integers
    """The rows of all replicates, by their index among those of the tally."""
    replicate: Integers
    """The replicate of each of them."""
    own: Evaluator

    def rows_read(self, by: By | None, reads: frozenset[str]) -> Rows:
        """The rows that count, and their group cells."""
        rows = rows_of(self.tally, self.labels, self.own.group_cells, by, reads)
        complete = complete_rows(self.tally, reads)
        position = np.where(complete, np.cumsum(complete) - 1, -1)[self.row]
        counted = position >= 0
        groups = self.own.group_cells.spans[by][1]
        chosen, replicate = position[counted], self.replicate[counted]
        span = slice(self.group_cells.spans[by][0], sum(self.group_cells.spans[by]))
        return replace(
            rows,
            frame=rows.frame[chosen],
            group_cell=rows.group_cell[chosen].astype(np.int64) + replicate * groups,
            outer_of_group_cell=self.group_cells.outer[span],
            excluded=self.group_cells.excluded[span],
            clusters=None,
        )


@dataclass(frozen=True, eq=False)
class Replicates:
    """Values of some groups many times over: as they are drawn, or as they might be."""

    evaluated: Evaluated
    """The evaluation of the data."""
    rows: Integers
    """The values of the evaluation that are replicated, by their indices."""
    columns: Mapping[str, Floats]
    """The columns that differ from those of the evaluation: arrays of replicates by values."""
    layouts: dict[int, ValueRows] = field(default_factory=dict[int, ValueRows])
    """The values of the evaluation itself, repeated so many times, which further replicates share."""

    @classmethod
    def by_evaluator(cls, evaluated: Evaluated, specs: Collection[int], evaluator: Evaluator, times: int) -> Replicates:
        """Values of some specs by the evaluator of all replicates."""
        base = evaluated.values
        rows = np.flatnonzero(np.isin(base["spec"], list(specs)))
        names = _columns_read(evaluated, specs, with_variances=evaluator.with_variances)
        parts: dict[str, list[Floats]] = {name: [] for name in names}
        computed: dict[tuple[Formula, Average], Values] = {}
        cells, levels = base[GROUP_CELL][rows].astype(np.int64), base[LEVEL][rows]
        of_formulas, requested = Segments.of(base["requested"][rows]), list(evaluated.evaluator.tables)
        for start, size in zip(of_formulas.starts.tolist(), of_formulas.sizes.tolist(), strict=True):
            formula, run = requested[base["requested"][rows[start]]], slice(start, start + size)
            # specs may have the same formula
            key = formula.formula, formula.average
            if key not in computed:
                computed[key] = evaluator.values(formula)
            values = computed[key]
            by, labels = evaluated.specs[formula.spec].by, values.estimate.shape[1]
            (first, groups), (shift, every) = (own.group_cells.spans[by] for own in (evaluated, evaluator))
            label: Integers = evaluated.label_index(levels[run], labels, formula.average)
            index = (cells[run] - first) * labels + label
            is_whole = len(index) == groups * labels and bool((index == np.arange(len(index))).all())
            for name in names:
                numbers = values.extra[name] if name in values.extra else getattr(values, name, None)
                if numbers is None:
                    parts[name].append(np.full((times, size), np.nan))
                else:
                    of_replicates = numbers[shift : shift + every].reshape(times, groups * labels)
                    parts[name].append(of_replicates if is_whole else np.take(of_replicates, index, axis=1))
        columns = {name: np.concatenate(own, axis=1) if own else np.empty((times, 0)) for name, own in parts.items()}
        # groups that are not compared in the data are not compared in replicates
        columns["estimate"][:, np.isnan(base["estimate"][rows])] = np.nan
        return cls(evaluated, rows, columns)

    @property
    def values(self) -> Floats:
        """The values of groups: an array of replicates by `rows`."""
        return self.columns["estimate"]

    def slopes(self, column: str) -> Floats:
        """The changes of the results of single values for a little more of a value, or of its context."""
        # one value of each result is moved at a time
        order = np.argsort(self._result, kind="stable")
        segments = Segments.of(self._result[order])
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order)) - segments.to_rows(segments.starts)
        step = np.where(position == np.arange(int(segments.sizes.max(initial=0)))[:, None], _STEP, 0.0)
        columns = {name: np.tile(values, (len(step), 1)) for name, values in self.columns.items()}
        up, down = (
            replace(self, columns=columns | {column: columns[column] + moved}).results for moved in (step, -step)
        )
        return ((up - down) / (2 * _STEP))[position, self._result]

    @property
    def times(self) -> int:
        """The number of replicates."""
        return len(self.values)

    @property
    def _outers(self) -> int:
        return len(self.evaluated.group_cells.outer_keys)

    @cached_property
    def _result(self) -> Integers:
        """The result that each value belongs to."""
        base = self.evaluated.values
        return base["spec"][self.rows].astype(np.int64) * self._outers + base["outer"][self.rows]

    @cached_property
    def known(self) -> Integers:
        """The number of groups that have a value: an array of replicates by results."""
        known = np.bincount(self._result, minlength=len(self.evaluated.specs) * self._outers)
        known = np.tile(known, (self.times, 1))
        unknown = np.isnan(self.values)
        if unknown.any():
            replicate, index = unknown.nonzero()
            np.subtract.at(known, (replicate, self._result[index]), 1)
        return known

    @cached_property
    def results(self) -> Floats:
        """The results: an array of replicates by all specs and outer groups of the evaluation."""
        outers, base, plan = self._outers, self.evaluated.values, self.evaluated.plan
        results = np.full((self.times, len(self.evaluated.specs) * outers), np.nan)
        own = {int(number) for number in np.unique(base["spec"][self.rows])}
        aggregates = {number: aggregate for number, aggregate in plan.aggregates.items() if number in own}
        for disparities in compare(
            self._value_rows(), aggregates, undefined_is_null=False, tidy=frames_of(self.evaluated),
            two_sided=plan.two_sided, with_carriers=False,
        ):  # fmt: skip
            replicate, outer = np.divmod(disparities.outer.astype(np.int64), outers)
            results[replicate, disparities.spec * outers + outer] = disparities.value
        ordinary = ~np.isin(base["spec"][self.rows], list(aggregates))
        results[:, self._result[ordinary]] = self.values[:, ordinary]
        return results

    def _value_rows(self) -> ValueRows:
        """The values of all replicates, spec by spec; outer groups are numbered one replicate after the other."""
        base, rows, times = self.evaluated.values, self.rows, self.times
        specs = Segments.of(base["spec"][rows])

        def in_order(values: Array) -> Array:
            """Values of one replicate, or of all, as one column."""
            every = np.broadcast_to(values, (times, len(rows)))
            return np.concatenate([own.ravel() for own in np.split(every, specs.starts[1:], axis=1)])

        if times not in self.layouts:
            repeated = {name: in_order(base[name][rows]) for name in _LAYOUT if name in base}
            first_outer = np.arange(times)[:, None] * self._outers
            repeated["outer"] = in_order(base["outer"][rows].astype(np.int64) + first_outer)
            # groups with a value, whatever their status, have one in replicates
            state = np.where(np.isnan(base["estimate"][rows]), base[STATE][rows], Status.OK.code)
            repeated[STATE] = in_order(state.astype(np.int8))
            self.layouts.clear()
            outer = pl.Series("outer", repeated["outer"])
            self.layouts[times] = ValueRows(repeated, lambda: base.frame[in_order(rows)].with_columns(outer))
        layout = self.layouts[times]
        arrays: dict[str, Array] = {name: in_order(values) for name, values in self.columns.items()}
        unknown = np.isnan(arrays["estimate"])
        if unknown.any():
            arrays[STATE] = np.where(unknown & (layout[STATE] == Status.OK.code), UNDEFINED, layout[STATE])
        return layout.with_columns(arrays)


def _columns_read(evaluated: Evaluated, specs: Collection[int], *, with_variances: bool) -> list[str]:
    """The columns of values that the aggregates of some specs read."""
    names = ["estimate", *(name for name in CONTEXTS if name in evaluated.values)]
    names += _VARIANCES if with_variances else ()
    aggregates = [evaluated.specs[number].aggregate for number in specs]
    reads_sizes = any(
        own.reads_weight or own.compares_with_majority or isinstance(own, UserAggregate) for own in aggregates if own
    )
    return [*names, *(_SIZES if reads_sizes else ())]


class ReplicatedGroups:
    """The groups of some specs in the cells of a tally, of which replicates have other sums."""

    def __init__(
        self, evaluated: Evaluated, specs: Collection[int], by: By | None, tally: Tally, *, with_variances: bool = False
    ) -> None:
        """Number the groups; replicates have the variances of values, or what they follow from, if asked for."""
        # groups that overlap have copies of the cells and rows of the tally
        members = copies = None
        if by is not None and by.memberships is not None and not set(by.keys) <= {key.column for key in tally.keys}:
            members = Members(tally, by)
            copies = members.copies_by_group
            tally = copies.tally
        group_cells, cells = number_group_cells(tally, evaluated.labels, [by])
        tables = {own: table for own, table in evaluated.evaluator.tables.items() if own.spec in specs}
        own = replace(
            evaluated.evaluator, tally=tally, tables=tables, with_variances=with_variances, group_cells=group_cells,
            cells=cells, members=members, pools={},
        )  # fmt: skip
        self._evaluated, self._specs, self._own, self._copies = evaluated, specs, own, copies
        self._beside = list(own.beside(by))
        self._layouts: dict[int, ValueRows] = {}
        self._repeated: dict[Evaluator, GroupCells] = {}
        self._times = 0

    def replicates(self, sums: Mapping[str, Array], drawn: tuple[Integers, Integers] | None = None) -> Replicates:
        """Values from arrays of replicates by cells of the tally, by the column of its cells.

        Of specs that read rows, `drawn` are those of all replicates, by their indices in a tally that has kept them,
        and the replicate of each.
        """
        times = len(next(iter(sums.values())))
        if times != self._times:
            every = [self._own, *(pool for _, pool, _ in self._beside)]
            self._times, self._repeated = times, {own: own.group_cells.repeated(times) for own in every}
        evaluator = self._evaluator(self._own, self._copies, sums, drawn)
        for context, pool, copies in self._beside:
            evaluator.pools[context] = self._evaluator(pool, copies, sums, drawn)
        replicates = Replicates.by_evaluator(self._evaluated, self._specs, evaluator, times)
        return replace(replicates, layouts=self._layouts)

    def _evaluator(
        self, own: Evaluator, copies: Copies | None, sums: Mapping[str, Array],
        drawn: tuple[Integers, Integers] | None,
    ) -> Evaluator:  # fmt: skip
        """The evaluator of the replicates of the cells of another one."""
        if copies is not None:
            sums = {name: values[:, copies.cell] for name, values in sums.items()}
        cells = RepeatedCells(own.tally, own.labels, own.cells, sums)
        replicates = replace(own, group_cells=self._repeated[own], cells=cells, pools={})
        if drawn is None:
            return replicates
        row, replicate = drawn if copies is None else _rows_of_copies(copies, *drawn)
        columns: dict[str, Any] = {column.name: getattr(replicates, column.name) for column in fields(replicates)}
        return _RowsDrawn(**columns, row=row, replicate=replicate, own=own)


def _rows_of_copies(copies: Copies, row: Integers, replicate: Integers) -> tuple[Integers, Integers]:
    """The copies of rows that were drawn, and their replicates; copies of a row stand together."""
    first, last = (np.searchsorted(copies.row, row, side=side) for side in ("left", "right"))
    count = last - first
    position: Array = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(first, count) + position, np.repeat(replicate, count)


class UnitsOfOneFeature:
    """An evaluation of specs of one feature, from cells counted by unit; replicates have units several times."""

    def __init__(self, evaluated: Evaluated, unit: str) -> None:
        """Bring the cells in order; `unit` is the key that numbers the units."""
        tally = evaluated.evaluator.tally
        keys = [name for name in tally.cells.columns[: tally.cells.columns.index("n")] if name != unit]
        cells = centred(tally.cells, keys)
        code = KeyCodes(cells).index(keys).of_cell
        order = np.argsort(code, kind="stable")
        self._cells, self._starts = cells[order], Segments.of(code[order]).starts
        """The cells by unit, and the first of those that merge."""
        self._evaluated, self._unit, self._tally = evaluated, unit, replace(tally, cells=self._cells[self._starts])
        specs = range(len(evaluated.specs))
        self._groups = ReplicatedGroups(evaluated, specs, evaluated.specs[0].by, self._tally)
        self._sums: dict[str, Array] = {
            name: self._cells[name].to_numpy()
            for name in cells.columns[cells.columns.index("n") :]
            if reduction_of(name) != "first"
        }

    def replicates(self, times: Array) -> Replicates:
        """The values with each unit as often as `times` says: an array of replicates by units."""
        evaluated, tally = self._evaluated, self._tally
        drawn = np.take(times, self._cells[self._unit].to_numpy(), axis=1).astype(float)
        sums = {name: _merged(name, values, drawn, self._starts) for name, values in self._sums.items()}
        if tally.rows is None or not any(own.formula.is_of_rows for own in evaluated.evaluator.tables):
            return self._groups.replicates(sums)
        of_rows = np.take(times, tally.rows[self._unit].to_numpy(), axis=1)
        replicate, row = np.nonzero(of_rows)
        drawn_rows = of_rows[replicate, row]
        if (drawn_rows > 1).any():
            row, replicate = np.repeat(row, drawn_rows), np.repeat(replicate, drawn_rows)
        return self._groups.replicates(sums, (row, replicate))


def _merged(name: str, values: Array, drawn: Floats, starts: Integers) -> Array:
    """The sums, or ends, of runs of cells that are there so many times: replicates by runs."""
    if not len(starts):
        return np.zeros((len(drawn), 0))
    reduction = reduction_of(name)
    if reduction == "sum":
        # nothing is 0 of an infinite number, too
        parts = drawn * values if np.isfinite(values).all() else np.where(drawn > 0, drawn * values, 0)
        return np.add.reduceat(parts, starts, axis=1)
    return EXTREMES[reduction].reduceat(np.where(drawn > 0, values, np.nan), starts, axis=1)
