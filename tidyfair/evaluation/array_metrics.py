"""Metrics computed by a Python function for each group, and all other metrics that read rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import Status, Undefined
from tidyfair.evaluation.ranked_rows import Level, Rows, Scope, ordered_values
from tidyfair.specs.formulas import Formula, GroupPairs, Influence, RowArrays, RowExpression, Sample
from tidyfair.tallies import LABELS, REST

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalSample:
    """The rows of survival times of a group."""

    columns: Mapping[str, Array]
    """The columns by the names of parameters: `time`, `event`, `estimate`, `survival` …."""
    weight: Array | None


@dataclass(frozen=True, eq=False)
class ComputedValues:
    """The values of formulas over rows, by their column, and the reasons of those that are undefined."""

    numbers: Mapping[str, Array]
    reasons: Mapping[str, Array]


NOT_COMPUTED = ComputedValues({}, {})
"""Stands for them where formulas are over sums."""


def _no_values(formulas: Sequence[Formula], group_cells: int, levels: int) -> ComputedValues:
    """Values of formulas in group cells and levels, and reasons for missing ones, none of which is set."""
    shape = (group_cells, levels)
    numbers = {formula.column: np.full(shape, np.nan) for formula in formulas}
    called = [formula.column for formula in formulas if isinstance(formula, RowArrays)]
    return ComputedValues(numbers, {column: np.full(shape, None, dtype=object) for column in called})


def _put(results: ComputedValues, formula: Formula, index: Any, result: tuple[Any, Any]) -> None:
    """Set the number and the reason at an index, or those of several group cells."""
    results.numbers[formula.column][index], results.reasons[formula.column][index] = result


def row_values(
    rows: Rows, formulas: Sequence[Formula], levels: Sequence[Level], scope: Scope, *, pairs: bool = False
) -> ComputedValues:
    """The values of formulas over rows for each group cell and level, and the reasons of those without.

    With `pairs` a level is read against each other level, and the mean of expressions counts.
    """
    count = len(rows.outer_of_group_cell)
    if scope == "overall":
        # a value for each outer group, which is that of all its group cells
        count = int(rows.outer_of_group_cell.max(initial=-1)) + 1
    results = _no_values(formulas, count, len(levels))
    expressions = [formula for formula in formulas if isinstance(formula, RowExpression)]
    for index, level in enumerate(levels):
        averaged_levels = [level]
        if pairs:
            others = [other.label for other in levels if other.label != level.label]
            averaged_levels = [Level(level.label, level.score, other) for other in others]
        for name, values in _means(rows, expressions, averaged_levels, scope, count).items():
            results.numbers[name][:, index] = values
        for formula in formulas:
            if isinstance(formula, GroupPairs):
                _put(results, formula, (slice(None), index), _compare_group_cells(formula, rows, level))
            elif isinstance(formula, RowArrays):
                for group_cell, chosen in _rows_by_group_cell(rows, scope):
                    result = _call_on_rows(formula, rows, chosen, level, levels)
                    _put(results, formula, (group_cell, index), result)
    if scope != "overall":
        return results
    numbers, reasons = (
        {name: values[rows.outer_of_group_cell] for name, values in by_outer.items()}
        for by_outer in (results.numbers, results.reasons)
    )
    return ComputedValues(numbers, reasons)


def _rows_by_group_cell(rows: Rows, scope: Scope) -> Iterator[tuple[int, Array]]:
    """The group cells, or outer groups, and the indices of their rows."""
    for segment in rows.segments(scope):
        indices = segment.indices
        for group_cell, (start, end) in zip(segment.group_cells, itertools.pairwise(segment.ends), strict=True):
            yield group_cell, indices[start:end]


def _means(
    rows: Rows, formulas: Sequence[RowExpression], levels: Sequence[Level], scope: Scope, count: int
) -> dict[str, Array]:
    """The mean of the values of formulas over rows for each group cell, over the levels that have a value."""
    if not formulas:
        return {}
    of_levels = _no_values(formulas, count, len(levels)).numbers
    for index, level in enumerate(levels):
        for name, group_cells, values in ordered_values(rows, formulas, level, scope):
            of_levels[name][group_cells, index] = values
    with np.errstate(invalid="ignore"):
        return {name: np.nansum(own, axis=1) / (~np.isnan(own)).sum(axis=1) for name, own in of_levels.items()}


def influences_of(formula: Formula, rows: Rows, level: Level) -> Iterator[tuple[int, Array | None, Influence]]:
    """For group cells whose values vary: their index, their clusters if any, and their sampling variation."""
    if formula.influence is None:
        return
    parameters = formula.row_parameters if isinstance(formula, RowArrays) else ()
    event, score = (None, None) if parameters else (rows.event(level.label), rows.score(level.score))
    for group_cell, counted, weight, cluster, units in rows_with_weight(rows):
        sample: Sample | SurvivalSample
        if event is None or score is None:
            sample = SurvivalSample(rows.survival_columns(parameters, counted), weight)
        else:
            sample = Sample(event[counted], score[counted], weight)
        try:
            influence = formula.influence(sample, units, **dict[str, Any](formula.options))
        except Undefined:
            continue
        yield group_cell, cluster, influence


def rows_with_weight(rows: Rows) -> Iterator[tuple[int, Array, Array | None, Array | None, Array | None]]:
    """Group cells with the indices and the weights of their rows, their clusters, and the cluster of each row."""
    for group_cell, chosen in _rows_by_group_cell(rows, "own"):
        counted = chosen if rows.weight is None else chosen[rows.weight[chosen] > 0]
        if not len(counted):
            continue
        weight = None if rows.weight is None else rows.weight[counted].astype(float)
        cluster, units = None, None
        if rows.cluster is not None:
            cluster, units = np.unique(rows.cluster[counted], return_inverse=True)
        yield group_cell, counted, weight, cluster, units


def _call_on_rows(
    formula: RowArrays, rows: Rows, chosen: Array, level: Level, levels: Sequence[Level]
) -> tuple[float, str | None]:
    """The result of a function of arrays for some rows, for one level or for all of them together."""
    weight = None if rows.weight is None else rows.weight[chosen]
    if formula.kind == "class":
        # with weights each pair of labels once, without them every row
        counted = rows.frame[chosen if weight is not None else np.repeat(chosen, rows.frame["n"].to_numpy()[chosen])]
        if formula.over_levels and rows.labels:
            labels = pl.Series(rows.labels)
            return formula.call([labels.gather(counted[side].cast(pl.UInt32)).to_numpy() for side in LABELS], weight)
        return formula.call([(counted[side] == level.label).cast(pl.Int64).to_numpy() for side in LABELS], weight)
    if formula.row_parameters:
        if weight is not None:
            chosen, weight = chosen[weight > 0], weight[weight > 0]
        return formula.call(list(rows.survival_columns(formula.row_parameters, chosen).values()), weight)
    if not formula.has_labels:
        return formula.call([side[chosen] for side in rows.numbers], weight)
    if not formula.over_levels:
        is_event = rows.event(level.label)[chosen].astype(np.int64)
        return formula.call([is_event, rows.score(level.score)[chosen]], weight)
    label_index = rows.event(level.label)[chosen].astype(np.int64) if level.both_sides else rows.label_index[chosen]
    names, labels = _scores_and_labels(rows, level, levels)
    truth = pl.Series(labels).gather(label_index).to_numpy()
    scores = np.stack([rows.score(name)[chosen] for name in names], axis=1)
    return formula.call([truth, scores], weight, {"labels": labels} if "labels" in formula.parameters else None)


def _scores_and_labels(rows: Rows, level: Level, levels: Sequence[Level]) -> tuple[list[str], list[object]]:
    """The names of the scores, and their labels: those of all labels, or those of the rest and of the event."""
    if not level.both_sides:
        # columns of scores stand as they were given, which is not the order of the labels
        return [other.score for other in levels], list(rows.labels)
    # several others go by 0, and the event by 1
    labels: list[object] = [0, 1]
    if len(rows.labels) == 2:
        labels = [rows.labels[1 - level.label], rows.labels[level.label]]
    return [REST + level.score, level.score], labels


def _samples(formula: GroupPairs, rows: Rows, level: Level) -> Callable[[Array], Sample]:
    """A function from the indices of rows to the sample that a formula of two samples compares at a level."""
    score, weight, width = rows.score(level.score), rows.weight, None
    event = rows.event(level.label) if formula.reads_truth else np.zeros(len(score), dtype=bool)
    if rows.bins is not None:
        score, width = (score + 0.5) / rows.bins, 1 / rows.bins
    return lambda chosen: Sample(event[chosen], score[chosen], None if weight is None else weight[chosen], width)


def _compare_group_cells(formula: GroupPairs, rows: Rows, level: Level) -> tuple[Array, Array]:
    """Each group cell compared with the others of its outer group: with all together, or with the farthest one."""
    count = len(rows.outer_of_group_cell)
    outers = int(rows.outer_of_group_cell.max(initial=-1)) + 1
    values = np.full(count, np.nan)
    reasons = np.full(count, Status.NO_OTHER_GROUP.value, dtype=object)
    counted = ~rows.excluded[rows.group_cell]
    if rows.weight is not None:
        counted &= rows.weight > 0
    sizes = np.bincount(rows.group_cell, minlength=count) if rows.sizes is None else rows.sizes
    outer_sizes = np.bincount(rows.outer_of_group_cell, sizes, outers)
    least = np.maximum(formula.min_n, formula.min_share * outer_sizes[rows.outer_of_group_cell])
    large_enough = ~rows.excluded & (sizes >= least)
    rows_of_outer = _split(rows.outer, np.flatnonzero(counted), outers)
    group_cells_of_outer = _split(rows.outer_of_group_cell, np.flatnonzero(large_enough), outers)
    sample_of = _samples(formula, rows, level)
    others = None if rows.others is None else _samples_of_others(formula, rows.others, level, count)
    for group_cells, compared in zip(group_cells_of_outer, rows_of_outer, strict=True):
        group_cell_of_row = rows.group_cell[compared]
        own = {cell: sample_of(compared[group_cell_of_row == cell]) for cell in group_cells.tolist()}
        if formula.against == "rest":
            for cell, sample in own.items():
                rest = sample_of(compared[group_cell_of_row != cell]) if others is None else others(cell)
                values[cell], reasons[cell] = formula.call_on_samples(sample, rest)
            continue
        for one, other in itertools.combinations(own, 2):
            # once for both, so that they have the same value to the last bit
            value, reason = formula.call_on_samples(own[one], own[other])
            for cell in (one, other):
                values[cell] = np.fmax(values[cell], value)
                reasons[cell] = reason or reasons[cell]
    return values, reasons


def _samples_of_others(formula: GroupPairs, rows: Rows, level: Level, count: int) -> Callable[[int], Any]:
    """A function from a group cell to the sample of the rows that are not its own."""
    counted = np.flatnonzero(np.ones(len(rows.group_cell), dtype=bool) if rows.weight is None else rows.weight > 0)
    rows_of_cell, sample_of = _split(rows.group_cell, counted, count), _samples(formula, rows, level)
    return lambda cell: sample_of(rows_of_cell[cell])


def _split(codes: Array, chosen: Array, count: int) -> list[Array]:
    """The chosen indices of each code, in their order: sorted once and sliced, so that the cost is linear."""
    of_chosen = codes[chosen]
    in_order = chosen[np.argsort(of_chosen, kind="stable")]
    ends = np.cumsum(np.bincount(of_chosen, minlength=count))
    return np.split(in_order, ends[:-1])
