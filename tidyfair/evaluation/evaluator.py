"""The values of formulas in all group cells, with shared sums and statistics computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tidyfair.evaluation.array_metrics import class_values, row_values
from tidyfair.evaluation.group_cells import GroupCells, among_groups_of, cells_of, rows_of
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.ranked_rows import Level, Rows, Scope
from tidyfair.evaluation.statistics import ERROR, Cells, LabelReading, Statistics, pooled, statistics_of, sums_of
from tidyfair.evaluation.values import NOT_COMPUTED, ComputedValues, Values, evaluate
from tidyfair.specs import Array, Average, By, Context, MetricSpec
from tidyfair.specs.formulas import OVERALL, THE_REST, Formula, RowArrays, Statistic, Table
from tidyfair.tallies import Copies, Members, Tally


@dataclass(frozen=True)
class RequestedFormula:
    """A formula of a spec, with the average over labels that it is evaluated by."""

    spec: int
    name: str
    formula: Formula
    average: Average
    part: int
    """1 if it belongs to a disparity that is subtracted from another one, else 0."""


@dataclass(eq=False, repr=False)
class Evaluator:
    """The values of formulas in the cells of a tally, computed on demand and cached."""

    tally: Tally
    labels: Labels
    group_cells: GroupCells
    cells: Cells
    reading: LabelReading
    specs: tuple[MetricSpec, ...]
    tables: Mapping[RequestedFormula, Table]
    with_variances: bool
    """True if intervals are requested, which need the variances of values."""
    members: Members | None = field(default=None, kw_only=True)
    """The groups that overlap, if those that are compared do."""
    pools: dict[Context, Evaluator] = field(default_factory=dict[Context, "Evaluator"], kw_only=True)
    """Of groups that overlap, the evaluators of what each of them is compared with, for the same group cells."""

    def __post_init__(self) -> None:
        self._sums: dict[Table, dict[str, Array]] = {}
        self._statistics_of_scope: dict[tuple[Table, Scope], Statistics] = {}
        self._computed: dict[tuple[Table, Scope], ComputedValues] = {}

    def values(self, requested: RequestedFormula) -> Values:
        """The values of a formula in all group cells, with those of the contexts that aggregates need."""
        formula, table = requested.formula, self.tables[requested]
        values = self._evaluate(formula, requested.average, table, "own")
        for name, other in self._auxiliary(formula).items():
            values = values.beside(name, self._evaluate(other, requested.average, table, "own").estimate)
        if self.tally.binned and ERROR not in values.extra:
            # values that need no bins are exact
            values = values.beside(ERROR, values.estimate * 0)
        for context in self._contexts.get(formula, ()):
            values = values.beside(context, self._evaluate(formula, requested.average, table, context).estimate)
        return values

    @property
    def base_tally(self) -> Tally:
        """The tally of the data, of whose cells and rows groups that overlap have copies."""
        return self.tally if self.members is None else self.members.base

    @property
    def shares_rows(self) -> bool:
        """True if some rows are in several of the groups that are compared."""
        return self.members is not None and self.members.are_shared

    def beside(
        self, by: By | None, contexts: Sequence[Context] | None = None
    ) -> Iterator[tuple[Context, Evaluator, Copies]]:
        """Of groups that overlap, what evaluates some contexts, or those that are needed, and the copies it reads."""
        if by is None or self.members is None:
            return
        for context in self.contexts if contexts is None else contexts:
            beside = self.members.beside(context)
            copies, group_cells, cells = among_groups_of(self.group_cells, by, beside, self.labels)
            pool = replace(self, tally=copies.tally, group_cells=group_cells, cells=cells, pools={})
            yield context, pool, copies

    def forget_sums(self) -> None:
        """Free the memory of sums and statistics, which are computed again on demand."""
        self._sums.clear()
        self._statistics_of_scope.clear()

    def _auxiliary(self, formula: Formula) -> dict[str, Formula]:
        """The formulas of the error bound and the variance of another formula, by the column of their values."""
        formulas: dict[str, Formula] = {}
        if self.tally.binned and formula.needs_rows:
            formulas[ERROR] = formula.error_bound
        return formulas | formula.spreads if self.with_variances else formulas

    @cached_property
    def contexts(self) -> list[Context]:
        """The contexts that values or formulas need."""
        needed: dict[Context, None] = {}
        for contexts in self._contexts.values():
            needed |= dict.fromkeys(contexts)
        for requested in self.tables:
            needed |= {_POOLS[prefix]: None for prefix in requested.formula.beyond}
            needed |= {"rest": None} if requested.formula.compares else {}
        return list(needed)

    @cached_property
    def _contexts(self) -> dict[Formula, list[Context]]:
        """The contexts that the values of formulas are compared with."""
        contexts: dict[Formula, list[Context]] = {}
        for requested in self.tables:
            aggregate = self.specs[requested.spec].aggregate
            for context in aggregate.contexts if aggregate is not None else ():
                of_formula = contexts.setdefault(requested.formula, [])
                if context not in of_formula and self._compares_with(context, requested):
                    of_formula.append(context)
        return contexts

    def _compares_with(self, context: Context, requested: RequestedFormula) -> bool:
        """Check whether the aggregate of a spec compares the values of groups with those of a context."""
        aggregate = self.specs[requested.spec].aggregate
        # a formula that compares groups itself has no value for all rows together
        return aggregate is not None and context in aggregate.contexts and not requested.formula.compares

    def _evaluate(self, formula: Formula, average: Average, table: Table, scope: Scope) -> Values:
        """The values of a formula from the rows of a scope."""
        statistics = self._statistics(table, scope)
        if formula.beyond:
            beside = {prefix: self._statistics(table, _POOLS[prefix]) for prefix in formula.beyond}
            statistics = replace(statistics, beside=beside)
        computed = self._rows(table, scope) if formula.is_of_rows else NOT_COMPUTED
        return evaluate(formula, average, statistics, computed, effective=self.with_variances)

    def _statistics(self, table: Table, scope: Scope) -> Statistics:
        """The statistics of a table from the rows of a scope."""
        if scope != "own" and scope in self.pools:
            return self.pools[scope]._statistics(table, "own")  # noqa: SLF001 - of the same class
        if (table, scope) not in self._statistics_of_scope:
            if table not in self._sums:
                formulas = [requested.formula for requested, own in self.tables.items() if own == table]
                terms = frozenset[Statistic]().union(*(formula.all_terms for formula in formulas))
                # those of one `by` after those of another
                indices = self.group_cells.indices.values()
                first, *others = [sums_of(table, terms, self.cells, index, self.reading) for index in indices]
                if others:
                    first = {name: np.concatenate([first[name], *(own[name] for own in others)]) for name in first}
                self._sums[table] = first
            sums = self._sums[table]
            if scope != "own":
                sums = pooled(sums, self.group_cells.compared, self.group_cells.excluded, scope)
            self._statistics_of_scope[table, scope] = statistics_of(table, sums)
        return self._statistics_of_scope[table, scope]

    def _rows(self, table: Table, scope: Scope) -> ComputedValues:
        """The values of all formulas of a table that read rows, in all group cells."""
        if (table, scope) not in self._computed:
            shape = (len(self.group_cells.outer), len(self.reading.levels))
            numbers: dict[str, Array] = {}
            reasons: dict[str, Array] = {}
            for by, (first, size) in self.group_cells.spans.items():
                own, span = self._rows_of_feature(table, scope, by), slice(first, first + size)
                for name, values in own.numbers.items():
                    numbers.setdefault(name, np.full(shape, np.nan))[span] = values
                for name, values in own.reasons.items():
                    reasons.setdefault(name, np.full(shape, None, dtype=object))[span] = values
            self._computed[table, scope] = ComputedValues(numbers, reasons)
        return self._computed[table, scope]

    def _rows_of_feature(self, table: Table, scope: Scope, by: By | None) -> ComputedValues:
        """The values of the formulas of a table that read rows, in the groups of a `by`."""
        formulas = self._row_formulas(table, scope, by)
        if not formulas:
            return NOT_COMPUTED
        if scope != "own" and scope in self.pools:
            return self.pools[scope]._values_of_rows(table, "own", by, formulas)  # noqa: SLF001 - of the same class
        return self._values_of_rows(table, scope, by, formulas)

    def _values_of_rows(self, table: Table, scope: Scope, by: By | None, formulas: Sequence[Formula]) -> ComputedValues:
        """The values of some formulas that read rows, in the groups of a `by`."""
        labels = self.labels
        if table.kind == "class":
            cells = cells_of(self.cells, self.group_cells, by)
            all_labels = labels.values if labels.event is None else None
            functions = [formula for formula in formulas if isinstance(formula, RowArrays)]
            return class_values(cells, functions, labels.levels, all_labels, scope, self.group_cells.spans[by][1])
        rows = self.rows_read(by, table.reads)
        if "rest" in self.pools:
            rows = replace(rows, others=self.pools["rest"].rows_read(by, table.reads))
        if self.tally.scores is not None and self.tally.binned:
            # bins stand for several rows
            index, counted = self.group_cells.indices[by], self.cells.complete_in(table.reads)
            sizes = np.bincount(index.of_cell[counted], self.cells.measure("n")[counted], len(index))
            rows = replace(rows, sizes=sizes, bins=self.tally.scores.bins)
        scores = self.reading.scores
        levels = [Level(level, scores.get(level, ""), both_sides=table.sides) for level in labels.levels]
        return row_values(rows, formulas, levels, scope, pairs=table.pairs)

    def rows_read(self, by: By | None, reads: frozenset[str]) -> Rows:
        """The rows with values in all columns that are read, and their group cells within a `by`."""
        return rows_of(self.tally, self.labels, self.group_cells, by, reads)

    def _row_formulas(self, table: Table, scope: Scope, by: By | None) -> list[Formula]:
        """The formulas of the specs of a `by` that read rows, with their auxiliary formulas."""
        formulas: list[Formula] = []
        for requested, own_table in self.tables.items():
            reads_rows = own_table == table and requested.formula.is_of_rows
            if not reads_rows or self.specs[requested.spec].by != by:
                continue
            if scope == "own":
                formulas += [requested.formula, *self._auxiliary(requested.formula).values()]
            elif self._compares_with(scope, requested):
                formulas.append(requested.formula)
        return list(dict.fromkeys(formulas))


_POOLS: dict[str, Context] = {OVERALL: "overall", THE_REST: "rest"}
"""The scope of the statistics whose names begin with a prefix."""
