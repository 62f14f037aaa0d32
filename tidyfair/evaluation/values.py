"""The values of formulas and their averages over labels, as arrays of group cells by labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tidyfair.errors import Status
from tidyfair.evaluation.statistics import Measure, Statistics, statistics_of
from tidyfair.specs import MICRO, Array, Average, Booleans, MeanOfLabels
from tidyfair.specs.formulas import Formula, SumFormula

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


@dataclass(frozen=True, eq=False)
class ComputedValues:
    """The values of formulas over rows, by their column, and the reasons of those that are undefined."""

    numbers: Mapping[str, Array]
    reasons: Mapping[str, Array]


NOT_COMPUTED = ComputedValues({}, {})
"""Stands for them where formulas are over sums."""


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
    used, weight = statistics.counted(formula.reads, "rows"), statistics.counted(formula.reads, "weights")
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
