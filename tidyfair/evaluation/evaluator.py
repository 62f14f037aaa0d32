"""The values of formulas in all group cells, with everything that they are worked out from worked out once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidyfair.evaluation.array_metrics import class_values, row_values
from tidyfair.evaluation.group_cells import cells_of, rows_of
from tidyfair.evaluation.ranked_rows import Level
from tidyfair.evaluation.statistics import ERROR, pooled, statistics_of, sums_of
from tidyfair.evaluation.values import OfRows, evaluate, stacked
from tidyfair.specs.aggregates import CONTEXTS
from tidyfair.specs.formulas import OVERALL, THE_REST, Statistic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.evaluation.group_cells import GroupCells
    from tidyfair.evaluation.labels import Labels
    from tidyfair.evaluation.ranked_rows import Scope
    from tidyfair.evaluation.statistics import Cells, LabelReading, Statistics, Table
    from tidyfair.evaluation.values import Values
    from tidyfair.specs.aggregates import Context
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import By
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.segments import Array
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []


@dataclass(frozen=True)
class Asked:
    """A formula of a spec, and how it reads labels."""

    spec: int
    name: str
    formula: Formula
    estimator: str
    part: int
    """Whether it belongs to the disparity itself (0), or to the one that is subtracted from it (1)."""


@dataclass(eq=False, repr=False)
class Evaluator:
    """The values of formulas in the cells of a tally; sums and statistics that formulas share are worked out once."""

    tally: Tally
    labels: Labels
    group_cells: GroupCells
    cells: Cells
    reading: LabelReading
    specs: tuple[MetricSpec, ...]
    tables: Mapping[Asked, Table]
    sure: bool
    """Whether intervals are asked for, so that variances are needed as well."""

    def __post_init__(self) -> None:
        self._sums: dict[Table, dict[str, Array]] = {}
        self._known: dict[tuple[Table, Scope], Statistics] = {}
        self._of_rows: dict[tuple[Table, Scope], OfRows] = {}

    def values(self, asked: Asked) -> Values:
        """The values of a formula in all group cells, beside those of the contexts that aggregates ask for."""
        formula, table = asked.formula, self.tables[asked]
        values = self._evaluate(formula, asked.estimator, table, "own")
        for name, other in _about(formula, binned=self.tally.binned, sure=self.sure).items():
            values = values.beside(name, self._evaluate(other, asked.estimator, table, "own").estimate)
        if self.tally.binned and ERROR not in values.extra:
            # what is not worked out from bins is exact
            values = values.beside(ERROR, values.estimate * 0)
        for context in self._contexts.get(formula, ()):
            values = values.beside(context, self._evaluate(formula, asked.estimator, table, context).estimate)
        return values

    @cached_property
    def _contexts(self) -> dict[Formula, list[Context]]:
        """The contexts that the values of formulas are compared with."""
        contexts: dict[Formula, list[Context]] = {}
        for asked in self.tables:
            for context in CONTEXTS:
                known = contexts.setdefault(asked.formula, [])
                if context not in known and self._compares_with(context, asked):
                    known.append(context)
        return contexts

    def _compares_with(self, context: Context, asked: Asked) -> bool:
        """Whether the aggregate of a spec compares the values of groups with those of a context."""
        aggregate = self.specs[asked.spec].aggregate
        # what compares a group with the others itself has no value for all of them
        return aggregate is not None and context in aggregate.contexts and not asked.formula.compares

    def _evaluate(self, formula: Formula, estimator: str, table: Table, scope: Scope) -> Values:
        known = self._statistics(table, scope)
        if formula.beyond:
            beside = {prefix: self._statistics(table, _POOLS[prefix]) for prefix in formula.beyond}
            known = replace(known, beside=beside)
        of_rows = OfRows({}, {}) if formula.way == "sums" else self._rows(table, scope)
        return evaluate(formula, estimator, known, of_rows)

    def _statistics(self, table: Table, scope: Scope) -> Statistics:
        if (table, scope) not in self._known:
            sums = self._sums_of(table)
            if scope != "own":
                sums = pooled(sums, self.group_cells.compared, self.group_cells.excluded, scope)
            self._known[table, scope] = statistics_of(table, sums)
        return self._known[table, scope]

    def _sums_of(self, table: Table) -> dict[str, Array]:
        """The sums of a table for all group cells, those of one `by` after those of another."""
        import numpy as np

        if table not in self._sums:
            terms = frozenset[Statistic]().union(
                *(asked.formula.all_terms for asked, own in self.tables.items() if own == table)
            )
            parts = [
                sums_of(table, terms, self.cells, index, self.reading) for index in self.group_cells.indices.values()
            ]
            self._sums[table] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return self._sums[table]

    def _rows(self, table: Table, scope: Scope) -> OfRows:
        """The values of all formulas of a table that read rows."""
        if (table, scope) not in self._of_rows:
            levels = len(self.reading.levels) if table.kind != "numeric" else 1
            parts = [
                (self._rows_of(table, scope, by), (size, levels)) for by, (_, size) in self.group_cells.spans.items()
            ]
            self._of_rows[table, scope] = stacked(parts)
        return self._of_rows[table, scope]

    def _rows_of(self, table: Table, scope: Scope, by: By | None) -> OfRows:
        """The values of the formulas of a table that read rows, in the groups of a `by` that ask for them."""
        formulas = self._formulas_of_rows(table, scope, by)
        if not formulas:
            return OfRows({}, {})
        labels = self.labels
        if table.kind == "class":
            cells = cells_of(self.tally, labels, self.group_cells, by)
            all_labels = labels.values if labels.event is None else None
            return class_values(cells, formulas, labels.levels, all_labels, scope, self.group_cells.spans[by][1])
        rows = rows_of(self.tally, labels, self.group_cells, by, table.reads)
        levels = [Level(0, "")]
        if table.kind == "prob":
            levels = [Level(level, self.reading.scores[level], both_sides=table.sides) for level in labels.levels]
        return row_values(rows, formulas, levels, scope, pairs=table.pairs)

    def _formulas_of_rows(self, table: Table, scope: Scope, by: By | None) -> list[Formula]:
        """The formulas that read rows and are asked for by the specs of a `by`, with those of how sure they are."""
        formulas: list[Formula] = []
        for asked, table_of_formula in self.tables.items():
            reads_rows = table_of_formula == table and asked.formula.way != "sums"
            if not reads_rows or self.specs[asked.spec].by != by:
                continue
            if scope == "own":
                about = _about(asked.formula, binned=self.tally.binned, sure=self.sure)
                formulas += [asked.formula, *about.values()]
            elif self._compares_with(scope, asked):
                formulas.append(asked.formula)
        return list(dict.fromkeys(formulas))


_POOLS: dict[str, Context] = {OVERALL: "overall", THE_REST: "rest"}
"""Scope statistics a prefix asks for."""


def _about(formula: Formula, *, binned: bool, sure: bool) -> dict[str, Formula]:
    """The formulas of how sure another one is, by the column of their values."""
    bounds = {ERROR: formula.bound} if binned and formula.way == "rows" else {}
    return bounds | (formula.spreads if sure else {})
