"""The values of formulas in all group cells, with shared sums and statistics computed once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.array_metrics import NOT_COMPUTED, ComputedValues, row_values
from tidyfair.evaluation.group_cells import GroupCells, among_groups_of, rows_of, rows_of_cells
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.ranked_rows import Level, Rows, Scope
from tidyfair.evaluation.statistics import (
    ERROR,
    Cells,
    LabelReading,
    Measure,
    Statistics,
    pooled,
    statistics_of,
    sums_of,
)
from tidyfair.specs import MICRO, Array, Average, Booleans, By, Context, MeanOfLabels, MetricSpec, average_of
from tidyfair.specs.formulas import OVERALL, THE_REST, Formula, LabelSums, Statistic, SumFormula, Table, unprefixed
from tidyfair.tallies import Copies, Members, Tally

PART = "part"
"""The column that is 1 for metrics of a disparity that is subtracted from another one, and 0 for all other metrics."""
COLUMNS = ("estimate", "n", "denominator", "weight", "size", "rows", "reason", "levels_left_out")
"""The arrays that all values have."""


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a formula and counts of their rows: arrays of group cells by labels.

    The second axis has one entry for all labels together, or one for each label that is read.
    """

    estimate: Array
    """The values; nan where undefined."""
    n: Array
    """The number of rows that the formula uses."""
    denominator: Array
    weight: Array
    """The weight of the rows that the formula uses."""
    size: Array
    """The weight of all rows."""
    rows: Array
    """The number of all rows."""
    reason: Array
    """The reasons why values are undefined, where they are; a single one if it is the same for all."""
    levels_left_out: Booleans
    """The averages that leave out labels without a value, as a mask; a single False if there are none."""
    extra: Mapping[str, Array]
    """Further columns: the effective number of rows, bounds of errors, values of contexts."""

    def beside(self, name: str, column: Array) -> Values:
        """The same values with one more column."""
        return replace(self, extra={**self.extra, name: column})


def evaluate(
    formula: Formula, average: Average, statistics: Statistics, computed: ComputedValues, *, effective: bool = False
) -> Values:
    """The values of one formula in all group cells; with the `effective` numbers of their rows if asked for."""
    if isinstance(formula, SumFormula):
        values = _values_of_sums(formula, average, statistics, effective=effective)
    else:
        values = _values_of_rows(formula, statistics, computed)
    if isinstance(average, MeanOfLabels):
        values = _mean_of_labels(values, formula, average, statistics.true(formula.reads))
    elif not average.by_label:
        values = _first_level(values)
    if statistics.hidden is None and not formula.beyond:
        return values
    return _without_hidden(values, formula, statistics)


def values_of(formula: Formula, average: Average, sums: Mapping[str, Array]) -> Values:
    """The values of a formula from the sums of its table."""
    return evaluate(formula, average, statistics_of(formula.table(average), sums), NOT_COMPUTED)


def _values_of_sums(formula: SumFormula, average: Average, statistics: Statistics, *, effective: bool) -> Values:
    """The values of a formula over sums, one for each level that is read."""

    def read(measure: Measure) -> Mapping[str, Array]:
        return formula.sums_read(statistics.read(formula.reads, measure), average)

    sums = read("weights")
    value, counted = formula.on_sums(sums)
    if statistics.rows is not statistics.weights:
        counted = formula.denominator(read("rows"))
    values = _with_counts(formula, statistics, value, counted)
    if average is MICRO:
        # rows are those of any label, but weights are summed over labels, like the statistics
        values = replace(_first_level(values), weight=values.weight.sum(axis=1, keepdims=True))
        denominator = values.n if counted is None else counted
        values = replace(values, estimate=value, denominator=denominator)
    if effective and statistics.squares is not None:
        for name, rows in formula.effective_numbers(sums, read("squares")).items():
            values = values.beside(name, rows.reshape(values.estimate.shape))
    return values


def _values_of_rows(formula: Formula, statistics: Statistics, computed: ComputedValues) -> Values:
    """The values of a formula over rows, which have been computed before."""
    denominator = formula.denominator(statistics.rows)
    values = _with_counts(formula, statistics, computed.numbers[formula.column], denominator)
    reasons = computed.reasons.get(formula.column)
    if reasons is None:
        return values
    return replace(values, reason=np.where(reasons == None, formula.undefined, reasons))  # noqa: E711 - an array


def _with_counts(formula: Formula, statistics: Statistics, estimate: Array, denominator: Array | None) -> Values:
    """Values with the counts of their rows."""
    used = weight = statistics.counted(formula.reads, "rows")
    if statistics.rows is not statistics.weights:
        weight = statistics.counted(formula.reads, "weights")
    if used.ndim > 2:
        # both sides of a label have the same rows
        shape = (*used.shape[:2], math.prod(used.shape[2:]))
        used, weight = used.reshape(shape)[..., 0], weight.reshape(shape)[..., 0]
    shape, estimate = used.shape, _in_columns(estimate)
    return Values(
        estimate=estimate,
        n=used,
        denominator=used if denominator is None else _in_columns(denominator),
        weight=weight,
        size=_by_label(statistics.size, shape),
        rows=_by_label(statistics.all_rows, shape),
        reason=np.array([[formula.undefined]], dtype=object),
        levels_left_out=np.zeros((1, 1), dtype=bool),
        extra={},
    )


def _by_label(values: Array, shape: tuple[int, ...]) -> Array:
    """Numbers of group cells, repeated for each label where there is one for all labels."""
    flat = _in_columns(values)
    labels = shape[1]
    if flat.shape[1] >= labels:
        return flat[:, :labels]
    return np.broadcast_to(flat[:, :1], shape)


def _in_columns(values: Array) -> Array:
    """One row for each group cell."""
    return values if values.ndim == 2 else values.reshape(len(values), math.prod(values.shape[1:]))


def _first_level(values: Values) -> Values:
    """The values of the first label, where they are the same for all labels."""
    extra = {name: column[:, :1] for name, column in values.extra.items()}
    return replace(values, extra=extra, **{name: getattr(values, name)[:, :1] for name in COLUMNS})


def _mean_of_labels(values: Values, formula: Formula, average: MeanOfLabels, frequency: Array) -> Values:
    """The mean of the values of labels, which the formula lets leave out labels without a value or not."""
    means, left_out = average.means(values.estimate, frequency, drop=formula.undefined_levels == "drop")
    # a mean of labels that all have a value is undefined if all of them weigh nothing
    defined = ~np.isnan(values.estimate)
    first = np.argmin(defined, axis=1)
    reasons = np.broadcast_to(values.reason, values.estimate.shape)[np.arange(len(first)), first]
    reason = np.where(defined.all(axis=1), Status.ZERO_DENOMINATOR.value, reasons)
    return replace(
        _first_level(replace(values, denominator=values.n)),
        estimate=means[:, None],
        reason=reason[:, None],
        levels_left_out=left_out[:, None],
        extra=dict.fromkeys(values.extra, np.full((len(means), 1), np.nan)),
    )


def _without_hidden(values: Values, formula: Formula, statistics: Statistics) -> Values:
    """The values, undefined where cells were suppressed in a group or in other groups that a formula reads."""
    sources = [statistics, *(statistics.beside[prefix] for prefix in formula.beyond)]
    masks = [source.hidden[:, :1] > 0 for source in sources if source.hidden is not None]
    if not masks:
        return values
    hidden = np.broadcast_to(np.logical_or.reduce(masks), values.estimate.shape)
    estimate = np.where(hidden, np.nan, values.estimate)
    return replace(values, estimate=estimate, reason=np.where(hidden, Status.SUPPRESSED.value, values.reason))


# Values of all formulas of a call


@dataclass(frozen=True, eq=False)
class RequestedFormula:
    """A formula of a spec, with the average over labels that it is evaluated by."""

    spec: int
    name: str
    formula: Formula
    average: Average
    part: int
    """1 if it belongs to a disparity that is subtracted from another one, else 0."""
    distinct: int
    """Its index among the pairs of a formula and an average, which several specs may share."""
    contexts: tuple[Context, ...]
    """The contexts that values are compared with; a formula that compares groups itself has none for all rows."""

    @classmethod
    def requested_by(
        cls, specs: Sequence[MetricSpec], estimator: str | None, threshold: float | None, *, one_event: bool
    ) -> list[RequestedFormula]:
        """The formulas of some specs, for labels of which one is the event, or all are read by an estimator."""
        requested: list[RequestedFormula] = []
        index_of_pair: dict[tuple[Formula, Average], int] = {}
        for number, spec in enumerate(specs):
            first_subtracted = len(spec.formulas) - spec.subtracted
            needed = () if spec.aggregate is None else spec.aggregate.contexts
            for index, (name, without_threshold) in enumerate(spec.formulas):
                formula = without_threshold.at_threshold(threshold)
                contexts = () if formula.compares else needed
                average = average_of(spec, formula, estimator, one_event=one_event)
                distinct = index_of_pair.setdefault((formula, average), len(index_of_pair))
                part = int(index >= first_subtracted)
                requested.append(cls(number, name, formula, average, part, distinct, contexts))
        return requested


class EvaluationPlan:
    """The formulas that some metrics read, and from what: it depends on the metrics and the kind of labels only."""

    def __init__(
        self, specs: tuple[MetricSpec, ...], estimator: str | None, *, one_event: bool, threshold: float | None = None
    ) -> None:
        """Make the plan for labels of which one is the event, or all are read by an estimator, at a threshold."""
        self.specs = specs
        self.requested = RequestedFormula.requested_by(specs, estimator, threshold, one_event=one_event)
        self.distinct = list({metric.distinct: metric for metric in self.requested}.values())
        """The formulas that are evaluated, each once."""
        first_of_spec = {metric.spec: metric for metric in reversed(self.requested)}
        names = [
            (spec.name, spec.by and spec.by.text, first_of_spec[index].average.name) for index, spec in enumerate(specs)
        ]
        self.names = pl.DataFrame(names, dict.fromkeys([".metric", ".by", ".estimator"], pl.String), orient="row")
        """The columns of results that name each spec."""
        texts = [(metric.name, metric.average.name) for metric in self.requested]
        self.texts = pl.DataFrame(texts, dict.fromkeys(["name", "estimator"], pl.String), orient="row")
        """The names of requested formulas and of their averages."""
        self.numbers = _numbers_of_rows(self.requested, specs)
        """The spec, the part, the formula and the smallest groups that are compared, for each requested formula."""
        self.tables = {metric: metric.formula.table(metric.average) for metric in self.requested}
        self.bys = sorted(dict.fromkeys(spec.by for spec in specs), key=lambda by: by is not None)
        """The features whose groups are compared; None, for all rows together, comes first."""
        self.by_of_spec = [self.bys.index(spec.by) for spec in specs]
        """The number of the features of each spec."""
        self.two_sided = [index for index, spec in enumerate(specs) if spec.by is not None and spec.by.sides]
        """The specs that compare the two sides of a condition."""
        self.aggregates = {index: spec.aggregate for index, spec in enumerate(specs) if spec.aggregate is not None}
        """The aggregates of the specs that compare groups, by the index of the spec."""
        formulas = {metric.formula for metric in self.requested}
        self.reads_scores = any(table.kind == "prob" for table in self.tables.values())
        self.counts_steps = any(isinstance(own, LabelSums) and own.counts_steps for own in formulas)
        self.reads_squares = any("row_weight" in map(unprefixed, own.statistics) for own in formulas)


def _numbers_of_rows(requested: Sequence[RequestedFormula], specs: Sequence[MetricSpec]) -> dict[str, Array]:
    """The numbers that all rows of values of a formula have, by column."""
    formulas = list(dict.fromkeys(metric.formula for metric in requested))
    policies = [specs[metric.spec].policy for metric in requested]
    whole = {
        "spec": [metric.spec for metric in requested],
        PART: [metric.part for metric in requested],
        "metric": [formulas.index(metric.formula) for metric in requested],
        "min_n": [policy.min_n for policy in policies],
    }
    numbers = {name: np.array(column, dtype=np.int32) for name, column in whole.items()}
    return numbers | {"min_share": np.array([policy.min_share for policy in policies], dtype=np.float64)}


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
    """Where groups overlap: the evaluators of what each group is compared with, for the same group cells."""

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
        """The tally of the data; where groups overlap, `tally` has a copy of its cells and rows for each group."""
        return self.tally if self.members is None else self.members.base

    @property
    def shares_rows(self) -> bool:
        """True if some rows are in several of the groups that are compared."""
        return self.members is not None and self.members.are_shared

    def beside(
        self, by: By | None, contexts: Sequence[Context] | None = None
    ) -> Iterator[tuple[Context, Evaluator, Copies]]:
        """Where groups overlap: each context (by default those needed), its evaluator, and the copies that it reads."""
        if by is None or self.members is None:
            return
        for context in self.contexts if contexts is None else contexts:
            beside = self.members.beside(context)
            copies, group_cells, cells = among_groups_of(self.group_cells, by, beside, self.labels)
            pool = replace(self, tally=copies.tally, group_cells=group_cells, cells=cells, members=None, pools={})
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
            needed |= contexts
        for requested in self.tables:
            needed |= {_POOLS[prefix]: None for prefix in requested.formula.beyond}
            needed |= {"rest": None} if requested.formula.compares else {}
        return list(needed)

    @cached_property
    def _contexts(self) -> dict[Formula, dict[Context, None]]:
        """The contexts that the values of formulas are compared with."""
        contexts: dict[Formula, dict[Context, None]] = {}
        for requested in self.tables:
            for context in requested.contexts:
                contexts.setdefault(requested.formula, {})[context] = None
        return contexts

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
        statistics = self._statistics_of_scope.get((table, scope))
        if statistics is None:
            sums = self._sums.get(table)
            if sums is None:
                formulas = [requested.formula for requested, own in self.tables.items() if own == table]
                terms = frozenset[Statistic]().union(*(formula.all_terms for formula in formulas))
                # those of one `by` after those of another
                indices = self.group_cells.indices.values()
                sums, *others = [sums_of(table, terms, self.cells, index, self.reading) for index in indices]
                if others:
                    sums = {name: np.concatenate([sums[name], *(own[name] for own in others)]) for name in sums}
                self._sums[table] = sums
            if scope != "own":
                sums = pooled(sums, self.group_cells.compared, self.group_cells.excluded, scope)
            statistics = self._statistics_of_scope[table, scope] = statistics_of(table, sums)
        return statistics

    def _rows(self, table: Table, scope: Scope) -> ComputedValues:
        """The values of all formulas of a table that read rows, in all group cells."""
        if (table, scope) not in self._computed:
            shape = (len(self.group_cells.outer), len(self.reading.levels))
            numbers: dict[str, Array] = {}
            reasons: dict[str, Array] = {}
            for by, (first, size) in self.group_cells.spans.items():
                formulas, span = self._row_formulas(table, scope, by), slice(first, first + size)
                if not formulas:
                    continue
                source, rows = (
                    (self, scope) if scope == "own" or scope not in self.pools else (self.pools[scope], "own")
                )
                own = source._values_of_rows(table, rows, by, formulas)  # noqa: SLF001 - of the same class
                for name, values in own.numbers.items():
                    numbers.setdefault(name, np.full(shape, np.nan))[span] = values
                for name, values in own.reasons.items():
                    reasons.setdefault(name, np.full(shape, None, dtype=object))[span] = values
            self._computed[table, scope] = ComputedValues(numbers, reasons)
        return self._computed[table, scope]

    def _values_of_rows(self, table: Table, scope: Scope, by: By | None, formulas: Sequence[Formula]) -> ComputedValues:
        """The values of some formulas that read rows, in the groups of a `by`."""
        if table.kind == "class":
            levels = [Level(level, "") for level in self.labels.levels]
            return row_values(rows_of_cells(self.cells, self.group_cells, by), formulas, levels, scope)
        rows = self.rows_read(by, table.reads)
        if "rest" in self.pools:
            rows = replace(rows, others=self.pools["rest"].rows_read(by, table.reads))
        if self.tally.scores is not None and self.tally.binned:
            # bins stand for several rows
            index, counted = self.group_cells.indices[by], self.cells.complete_in(table.reads)
            sizes = np.bincount(index.of_cell[counted], self.cells.measure("n")[counted], len(index))
            rows = replace(rows, sizes=sizes, bins=self.tally.scores.bins)
        scores = self.reading.scores
        levels = [Level(level, scores.get(level, ""), both_sides=table.sides) for level in self.labels.levels]
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
            elif scope in requested.contexts:
                formulas.append(requested.formula)
        return list(dict.fromkeys(formulas))


_POOLS: dict[str, Context] = {OVERALL: "overall", THE_REST: "rest"}
"""The scope of the statistics whose names begin with a prefix."""
