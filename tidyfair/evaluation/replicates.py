"""Replicates of an evaluation: other counts, sums or rows of the same groups, as one more axis of the same arrays.

A replicate has the outer groups of the data once more, so that formulas and aggregates are evaluated as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.evaluator import Evaluator
from tidyfair.evaluation.group_cells import complete_rows, number_group_cells, rows_of
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.ranked_rows import Rows
from tidyfair.evaluation.results import frames_of
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL, Cells
from tidyfair.evaluation.value_rows import PART, STATE, UNDEFINED, ValueRows
from tidyfair.specs import CONTEXTS, Array, Booleans, By, Floats, Integers, Segments
from tidyfair.tallies import EXTREMES, LABELS, Copies, Members, Tally, centred, reduction_of

_NUMBERS = ("estimate", "weight", "size", "n")
"""The columns of values that aggregates read."""
_VARIANCES = ("variance", "effective", "denominator")
"""The columns that say how far values vary."""
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
    """The columns that aggregates read: arrays of replicates by values."""

    @classmethod
    def of_sums(
        cls, evaluated: Evaluated, specs: Collection[int], by: By | None, tally: Tally, sums: Mapping[str, Array],
        drawn: tuple[Integers, Integers] | None = None, *, with_variances: bool = False,
    ) -> Replicates:  # fmt: skip
        """Values of some specs from arrays of replicates by cells of a tally, by the column of its cells.

        Of specs that read rows, `drawn` are those of all replicates, by their indices in a tally that has kept them,
        and the replicate of each. With the variances of values, or what they follow from, if asked for.
        """
        own, copies = _evaluator_of_groups(evaluated, specs, by, tally)
        own = replace(own, with_variances=with_variances)
        times = len(next(iter(sums.values())))

        def repeated(evaluator: Evaluator, copies: Copies | None) -> Evaluator:
            of_cells = sums if copies is None else {name: values[:, copies.cell] for name, values in sums.items()}
            cells = RepeatedCells(evaluator.tally, evaluated.labels, evaluator.cells, of_cells)
            replicates = replace(evaluator, group_cells=evaluator.group_cells.repeated(times), cells=cells)
            if drawn is None:
                return replicates
            row, replicate = drawn if copies is None else _rows_of_copies(copies, *drawn)
            columns: dict[str, Any] = {column.name: getattr(replicates, column.name) for column in fields(replicates)}
            return _RowsDrawn(**columns, row=row, replicate=replicate, own=evaluator)

        evaluator = repeated(own, copies)
        for context, pool, beside in own.beside(by):
            evaluator.pools[context] = repeated(pool, beside)
        return cls.by_evaluator(evaluated, specs, evaluator, times)

    @classmethod
    def by_evaluator(cls, evaluated: Evaluated, specs: Collection[int], evaluator: Evaluator, times: int) -> Replicates:
        """Values of some specs by the evaluator of all replicates."""
        base = evaluated.values
        rows = np.flatnonzero(np.isin(base.array("spec"), list(specs)))
        names = [*_NUMBERS, *(name for name in CONTEXTS if name in base)]
        names += _VARIANCES if evaluator.with_variances else ()
        columns = {name: np.full((times, len(rows)), np.nan) for name in names}
        cells, levels = base.array(GROUP_CELL)[rows].astype(np.int64), base.array(LEVEL)[rows]
        of_formulas, requested = Segments.of(base.array("requested")[rows]), list(evaluated.evaluator.tables)
        for start, size in zip(of_formulas.starts.tolist(), of_formulas.sizes.tolist(), strict=True):
            formula, run = requested[base.array("requested")[rows[start]]], slice(start, start + size)
            values = evaluator.values(formula)
            by, labels = evaluated.specs[formula.spec].by, values.estimate.shape[1]
            (first, groups), (shift, every) = (own.group_cells.spans[by] for own in (evaluated, evaluator))
            label = evaluated.label_index(levels[run], labels, formula.average)
            for name in names:
                numbers = values.extra[name] if name in values.extra else getattr(values, name, None)
                if numbers is not None:
                    of_replicates = numbers[shift : shift + every].reshape(times, groups, labels)
                    columns[name][:, run] = of_replicates[:, cells[run] - first, label]
        # groups that are not compared in the data are not compared in replicates
        columns["estimate"][:, np.isnan(base.array("estimate")[rows])] = np.nan
        return cls(evaluated, rows, columns)

    @classmethod
    def of_values(
        cls, evaluated: Evaluated, rows: Integers, values: Floats, contexts: Mapping[str, Floats]
    ) -> Replicates:
        """Other values of some groups, and other contexts of these: arrays of replicates by values."""
        base, times = evaluated.values, len(values)
        names = [*_NUMBERS[1:], *(name for name in CONTEXTS if name in base)]
        columns = {name: np.tile(base.array(name)[rows], (times, 1)) for name in names}
        return cls(evaluated, rows, {"estimate": values, **columns, **contexts})

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
        return base.array("spec")[self.rows].astype(np.int64) * self._outers + base.array("outer")[self.rows]

    @cached_property
    def known(self) -> Integers:
        """The number of groups that have a value: an array of replicates by results."""
        results = len(self.evaluated.specs) * self._outers
        code = self._result + np.arange(self.times)[:, None] * results
        known = np.bincount(code[~np.isnan(self.values)], minlength=self.times * results)
        return known.reshape(self.times, results)

    @cached_property
    def results(self) -> Floats:
        """The results: an array of replicates by all specs and outer groups of the evaluation."""
        outers, base, plan = self._outers, self.evaluated.values, self.evaluated.plan
        results = np.full((self.times, len(self.evaluated.specs) * outers), np.nan)
        own = {int(number) for number in np.unique(base.array("spec")[self.rows])}
        aggregates = {number: aggregate for number, aggregate in plan.aggregates.items() if number in own}
        for disparities in compare(
            self._value_rows(), aggregates, undefined_is_null=False, tidy=frames_of(self.evaluated),
            two_sided=plan.two_sided,
        ):  # fmt: skip
            replicate, outer = np.divmod(disparities.outer.astype(np.int64), outers)
            results[replicate, disparities.spec * outers + outer] = disparities.value
        ordinary = ~np.isin(base.array("spec")[self.rows], list(aggregates))
        results[:, self._result[ordinary]] = self.values[:, ordinary]
        return results

    def _value_rows(self) -> ValueRows:
        """The values of all replicates, spec by spec; outer groups are numbered one replicate after the other."""
        base, rows, times = self.evaluated.values, self.rows, self.times
        specs = Segments.of(base.array("spec")[rows])

        def in_order(values: Array) -> Array:
            """Values of one replicate, or of all, as one column."""
            every = np.broadcast_to(values, (times, len(rows)))
            return np.concatenate([own.ravel() for own in np.split(every, specs.starts[1:], axis=1)])

        arrays: dict[str, Array] = {name: in_order(values) for name, values in self.columns.items()}
        for name in ("spec", PART, GROUP_CELL, LEVEL, "metric", "is_reference"):
            arrays[name] = in_order(base.array(name)[rows])
        first_outer = np.arange(times)[:, None] * self._outers
        arrays["outer"] = in_order(base.array("outer")[rows].astype(np.int64) + first_outer)
        was_defined = ~np.isnan(base.array("estimate")[rows])
        state = np.where(was_defined, Status.OK.code, base.array(STATE)[rows])
        arrays[STATE] = np.where(np.isnan(arrays["estimate"]) & in_order(was_defined), UNDEFINED, in_order(state))

        def frame() -> pl.DataFrame:
            tiled = base.frame[in_order(rows)]
            drawn = [pl.Series(name, arrays[name], nan_to_null=True) for name in self.columns if name in tiled.columns]
            return tiled.with_columns(*drawn, pl.Series("outer", arrays["outer"]))

        return ValueRows(arrays, frame)


def _evaluator_of_groups(
    evaluated: Evaluated, specs: Collection[int], by: By | None, tally: Tally
) -> tuple[Evaluator, Copies | None]:
    """The evaluator of a tally and, where groups overlap, the copies of its cells and rows for each group."""
    members = copies = None
    if by is not None and by.memberships is not None and not set(by.keys) <= {key.column for key in tally.keys}:
        members = Members(tally, by)
        copies = members.copies_by_group
        tally = copies.tally
    group_cells, cells = number_group_cells(tally, evaluated.labels, [by])
    tables = {requested: table for requested, table in evaluated.evaluator.tables.items() if requested.spec in specs}
    evaluator = replace(
        evaluated.evaluator, tally=tally, tables=tables, with_variances=False, group_cells=group_cells, cells=cells,
        members=members, pools={},
    )  # fmt: skip
    return evaluator, copies


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
        self._sums: dict[str, Array] = {
            name: self._cells[name].to_numpy()
            for name in cells.columns[cells.columns.index("n") :]
            if reduction_of(name) != "first"
        }

    def replicates(self, times: Array) -> Replicates:
        """The values with each unit as often as `times` says: an array of replicates by units."""
        evaluated, tally = self._evaluated, self._tally
        specs, by = range(len(evaluated.specs)), evaluated.specs[0].by
        drawn = np.take(times, self._cells[self._unit].to_numpy(), axis=1).astype(float)
        sums = {name: _merged(name, values, drawn, self._starts) for name, values in self._sums.items()}
        if tally.rows is None or not any(own.formula.is_of_rows for own in evaluated.evaluator.tables):
            return Replicates.of_sums(evaluated, specs, by, tally, sums)
        of_rows = np.take(times, tally.rows[self._unit].to_numpy(), axis=1)
        replicate, row = np.nonzero(of_rows)
        drawn_rows = of_rows[replicate, row]
        if (drawn_rows > 1).any():
            row, replicate = np.repeat(row, drawn_rows), np.repeat(replicate, drawn_rows)
        return Replicates.of_sums(evaluated, specs, by, tally, sums, (row, replicate))


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
