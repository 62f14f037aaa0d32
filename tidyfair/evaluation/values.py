"""The values of formulas and their averages over labels, as arrays of group cells by labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tidyfair.errors import Status
from tidyfair.evaluation.statistics import ONE_LABEL, Statistics, Table, statistics_of
from tidyfair.specs.formulas import HAND_TILL, Formula, two_sides
from tidyfair.specs.segments import Array, Booleans

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
    by_level: bool
    """True if there is a value for each label."""
    extra: Mapping[str, Array]
    """Further columns: the effective number of rows, bounds of errors, values of contexts."""

    def beside(self, name: str, column: Array) -> Values:
        """The same values with one more column."""
        return replace(self, extra={**self.extra, name: column})


@dataclass(frozen=True, eq=False)
class OfRows:
    """The values of formulas that read rows, by their column, and the reasons of those that are undefined."""

    numbers: Mapping[str, Array]
    reasons: Mapping[str, Array]


def evaluate(
    formula: Formula, estimator: str, statistics: Statistics, of_rows: OfRows, *, effective: bool = False
) -> Values:
    """The values of one formula in all group cells; with the `effective` numbers of their rows if asked for."""
    if formula.input == "sums":
        values = _of_sums(formula, estimator, statistics, effective=effective)
    else:
        values = _of_rows(formula, statistics, of_rows)
    one_by_one = estimator in ONE_LABEL or formula.given is not None
    if formula.over_levels and not one_by_one:
        values = _first_level(values)
    elif not formula.over_levels and not one_by_one and estimator != "micro":
        values = _average(values, formula, estimator, statistics.true(formula.reads))
    values = _without_hidden(values, formula, statistics)
    return replace(values, by_level=one_by_one)


def values_of(formula: Formula, estimator: str, sums: Mapping[str, Array]) -> Values:
    """The values of a formula from the sums of its table."""
    return evaluate(formula, estimator, statistics_of(Table.of(formula, estimator), sums), OfRows({}, {}))


def _of_sums(formula: Formula, estimator: str, statistics: Statistics, *, effective: bool) -> Values:
    """The values of a formula over sums, one for each level that is read."""
    micro = estimator == "micro" and not formula.over_levels
    sums = _as_read(formula, estimator, statistics, "weights")
    value, counted = formula.on_sums(sums)
    if statistics.rows is not statistics.weights:
        counted = formula.denominator(_as_read(formula, estimator, statistics, "rows"))
    values = _with_counts(formula, statistics, value, counted)
    if micro:
        # rows are those of any label, but weights are summed over labels, like the statistics
        values = replace(_first_level(values), weight=values.weight.sum(axis=1, keepdims=True))
        denominator = values.n if counted is None else counted
        values = replace(values, estimate=value, denominator=denominator)
    if effective and statistics.squares is not None:
        squares = _as_read(formula, estimator, statistics, "squares")
        for name, number_of_rows in (("effective", formula.effective), ("even", formula.even)):
            rows = number_of_rows(sums, squares)
            if rows is not None:
                values = values.beside(name, rows.reshape(values.estimate.shape))
    return values


def _as_read(formula: Formula, estimator: str, statistics: Statistics, measure: Any) -> dict[str, Array]:
    """The statistics as a formula reads them: label by label, from two sides, or summed over labels."""
    sums = statistics.read(formula.reads, measure)
    if formula.over_levels and estimator in ONE_LABEL and formula.kind == "class" and formula.given is None:
        return two_sides(sums, formula.all_sums)
    if estimator == "micro" and not formula.over_levels:
        over_labels: dict[str, Array] = {}
        for name, values in sums.items():
            # statistics of the labels of the call, in one dimension, are the same for all groups
            over_labels[name] = values[:1] if values.ndim == 1 else values.sum(axis=1, keepdims=True)
        return over_labels
    return sums


def _of_rows(formula: Formula, statistics: Statistics, of_rows: OfRows) -> Values:
    """The values of a formula over rows, which have been computed before."""
    denominator = formula.denominator(statistics.rows)
    values = _with_counts(formula, statistics, of_rows.numbers[formula.column], denominator)
    reasons = of_rows.reasons.get(formula.column)
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
        by_level=False,
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


def _average(values: Values, formula: Formula, estimator: str, true: Array) -> Values:
    """The mean over labels, weighted by the number of `true` labels or not at all.

    Labels without a value are left out if the formula says so; else the mean is undefined, unless they have no weight.
    """
    weight = true if estimator == "macro_weighted" else np.ones(values.estimate.shape)
    defined = ~np.isnan(values.estimate)
    counted = defined & (weight > 0)
    dispensable = defined | (weight == 0)
    drops = formula.undefined_levels == "drop" or estimator == HAND_TILL
    complete = dispensable.all(axis=1) | drops
    with np.errstate(invalid="ignore"):
        total = np.where(counted, values.estimate * weight, 0.0).sum(axis=1)
        mean = total / np.where(counted, weight, 0.0).sum(axis=1)
    # a mean of labels that all have a value is undefined if all of them weigh nothing
    first = np.argmin(defined, axis=1)
    reasons = np.broadcast_to(values.reason, values.estimate.shape)[np.arange(len(first)), first]
    reason = np.where(defined.all(axis=1), Status.ZERO_DENOMINATOR.value, reasons)
    averaged = _first_level(replace(values, denominator=values.n))
    return replace(
        averaged,
        estimate=np.where(complete, mean, np.nan)[:, None],
        reason=reason[:, None],
        levels_left_out=~dispensable.all(axis=1)[:, None],
        extra=dict.fromkeys(values.extra, np.full((len(mean), 1), np.nan)),
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
