"""Sums over the rows of group cells, and the statistics that formulas read, as arrays of group cells by labels.

A group cell is a group of a `by` within an outer group, identified by its index. Sums of several group cells merge into
their joint sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.evaluation.group_index import GroupIndex
from tidyfair.evaluation.labels import Labels
from tidyfair.specs import Array, Booleans, Integers, Segments
from tidyfair.specs.formulas import BOTH, ROWS, SQUARES, STEPS, WHEN_COMPLETE, Given, Kind, Statistic, Table
from tidyfair.tallies import (
    ACTUAL,
    ESTIMATE,
    EXTREMES,
    HIDDEN,
    PREDICTED,
    REST,
    SCORE,
    TRUTH,
    UP_TO,
    Tally,
    is_of_replicate,
    recentred,
    reduction_of,
)

GROUP_CELL, LEVEL = "group_cell", "level"
"""The columns with the group cell and the label of a value."""
ERROR = "error"
"""The column with the error bound of a value, if scores were counted in bins."""
_ROUNDED = 1e-13
"""The variation of a constant is a smaller part of its square about a center near it."""
_SMALLEST_COUNT = 2
"""A label is read against at least one other."""

CELLS = {
    "tp": (True, True),
    "fn": (True, False),
    "fp": (False, True),
    "tn": (False, False),
    "positive_only": (True, None),
    "negative_only": (False, None),
    "selected_only": (None, True),
    "unselected_only": (None, False),
    "blank": (None, None),
}
"""Truth and estimate in the cells of a table of one label against the rest; None where one is missing."""

_MARGINS = {
    "positives": ("tp", "fn", "positive_only"),
    "negatives": ("fp", "tn", "negative_only"),
    "selected": ("tp", "fp", "selected_only"),
    "unselected": ("fn", "tn", "unselected_only"),
    "instances": tuple(CELLS),
}
"""The cells that sum up to each margin of such a table."""

_USED = {
    frozenset({"truth", "estimate"}): ("tp", "fn", "fp", "tn"),
    frozenset({"truth"}): ("positives", "negatives"),
    frozenset({"estimate"}): ("selected", "unselected"),
    frozenset[str](): ("instances",),
}
"""The statistics that count the rows of a formula, by the columns that it reads."""
Measure: TypeAlias = Literal["weights", "rows", "squares"]
_COUNTS = {HIDDEN, *(name + suffix for suffix in ("", ROWS, SQUARES) for name in (*CELLS, *STEPS))}
"""The names of sums of labels that are counts."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a tally as arrays, with labels as their index, -1 where they are missing."""

    tally: Tally
    labels: Labels

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The cells with all summed columns except sums with replicate weights."""
        cells = self.tally.cells
        if self.tally.design is None:
            return cells
        return cells[[name for name in cells.columns if not is_of_replicate(name)]]

    @cached_property
    def truth(self) -> Integers:
        """The index of the true label."""
        return self.labels.index(self.tally, TRUTH)

    @cached_property
    def estimate(self) -> Integers:
        """The index of the predicted label."""
        return self.labels.index(self.tally, ESTIMATE)

    @cached_property
    def complete(self) -> bool:
        """True if all rows have a truth and an estimate."""
        return bool((self.truth >= 0).all() and (self.estimate >= 0).all())

    @cached_property
    def weighted(self) -> bool:
        """True if rows have case weights."""
        return "w" in self.frame.columns

    def measure(self, name: Literal["n", "w", "w2"]) -> Array:
        """The rows, weights or squared weights of each cell; without weights always the rows."""
        return self.frame.get_column(name if self.weighted else "n").to_numpy()

    def label_counts(self, index: GroupIndex, levels: Sequence[int]) -> LabelCounts:
        """The cells by the groups of an index and by their labels."""
        return LabelCounts(self.truth, self.estimate, index.of_cell, len(index), levels, self.complete)

    def complete_in(self, reads: frozenset[str]) -> Booleans:
        """The cells whose rows have a value in all roles that are read, such as `truth` and `probs`, as a mask."""
        # the key `SCORE` is null where some score is missing, and true elsewhere
        column_of_role = {"truth": TRUTH, "estimate": ESTIMATE, "probs": SCORE}
        complete = np.ones(len(self.frame), dtype=bool)
        for role in reads:
            complete &= self.frame[column_of_role[role]].is_not_null().to_numpy()
        return complete


@dataclass(frozen=True, eq=False)
class LabelReading:
    """The labels and scores of a call that are summed."""

    levels: Sequence[int]
    """The labels that are read one by one against the rest."""
    labels: int
    """The number of all labels."""
    scores: Mapping[int, str]
    """The name of the score of each level."""
    steps: bool
    """True if the steps between the labels of truth and estimate are counted."""
    squares: bool
    """True if squared weights are summed."""


# Sums over the cells of group cells


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Cells of a tally by group and label, whose measure (rows, weights or their squares) is summed.

    A measure is an array of cells, or of replicates by cells; its sums are arrays of levels by groups, or of replicates
    by levels by groups.
    """

    truth: Integers
    """The true label of each cell as its index; -1 where it is missing."""
    estimate: Integers
    group: Integers
    groups: int
    levels: Sequence[int]
    """The labels that are read against the rest."""
    complete: bool
    """True if every row has a truth and an estimate."""

    @cached_property
    def labels(self) -> int:
        """A number above the index of every label; rows below a threshold may have no label."""
        highest_true, highest_predicted = int(self.truth.max(initial=0)), int(self.estimate.max(initial=0))
        return 1 + max(highest_true, highest_predicted, *self.levels)

    @cached_property
    def _position(self) -> Integers:
        """The position of each label among the levels; -1 for all others."""
        position = np.zeros(self.labels, dtype=np.int64) - 1
        position[list(self.levels)] = range(len(self.levels))
        return position

    def of(self, measure: Array) -> dict[str, Array]:
        """The cells of the table of each label against the rest, by name.

        If no truth or estimate is missing, only the four cells of rows with both.
        """
        has_truth, has_estimate = self.truth >= 0, self.estimate >= 0
        both, agree = has_truth & has_estimate, self.truth == self.estimate
        tp = self._by_label(measure, both & agree, self.truth)
        fn = self._by_label(measure, both & ~agree, self.truth)
        fp = self._by_label(measure, both & ~agree, self.estimate)
        counts = {"tp": tp, "fn": fn, "fp": fp, "tn": self._rest(measure, both, (self.truth, self.estimate))}
        if self.complete:
            return counts
        only_truth, only_estimate = has_truth & ~has_estimate, has_estimate & ~has_truth
        return counts | {
            "positive_only": self._by_label(measure, only_truth, self.truth),
            "negative_only": self._rest(measure, only_truth, (self.truth,)),
            "selected_only": self._by_label(measure, only_estimate, self.estimate),
            "unselected_only": self._rest(measure, only_estimate, (self.estimate,)),
            "blank": self.totals(measure, ~has_truth & ~has_estimate),
        }

    def steps(self, measure: Array) -> dict[str, Array]:
        """The steps between the labels of truth and estimate, absolute and squared, summed by the true label."""
        both = (self.truth >= 0) & (self.estimate >= 0)
        away = np.abs(self.truth - self.estimate).astype(np.float64)
        return {
            "absolute_steps": self._by_label(measure * away, both, self.truth),
            "squared_steps": self._by_label(measure * away**2, both, self.truth),
        }

    def totals(self, measure: Array, chosen: Booleans) -> Array:
        """The sum over chosen cells, which is the same for every label."""
        sums = self._summed(measure, chosen, self.group, self.groups)
        return sums[..., None, :].repeat(len(self.levels), axis=-2)

    def _by_label(self, measure: Array, chosen: Booleans, label: Integers) -> Array:
        """The sum over chosen cells by their label."""
        level, levels = self._position[label], len(self.levels)
        sums = self._summed(measure, chosen & (level >= 0), level * self.groups + self.group, levels * self.groups)
        return sums.reshape(*measure.shape[:-1], levels, self.groups)

    def _rest(self, measure: Array, chosen: Booleans, labels: Sequence[Integers]) -> Array:
        """The sum over chosen cells without a level in any of their labels."""
        if len(self.levels) <= 2:  # sums of the cells themselves cost no more than differences
            sums = [
                self._summed(measure, chosen & _has_none(labels, level), self.group, self.groups)[..., None, :]
                for level in self.levels
            ]
            return np.concatenate(sums, axis=-2)
        # all cells without those that have the level as one of their labels
        own = sum(self._by_label(measure, chosen, label) for label in labels)
        if len(labels) > 1:
            own = own - self._by_label(measure, chosen & (labels[0] == labels[1]), labels[0])
        counts = self.totals(measure, chosen) - own
        if counts.dtype.kind == "f":
            self._sum_anew(counts, measure, chosen, labels)
        return counts

    def _sum_anew(self, counts: Array, measure: Array, chosen: Booleans, labels: Sequence[Integers]) -> None:
        """Sum cells directly where a difference of floats would lose digits.

        This is so where less than a quarter of a group is left. A cell has at most two labels, so a group has at most
        two such levels: the first and the last.
        """
        few = counts < self.totals(measure, chosen) / 4
        levels = np.array(self.levels)
        affected = few.any(axis=-2, keepdims=True)
        first = np.argmax(few, axis=-2, keepdims=True)
        last = len(levels) - 1 - np.argmax(few[..., ::-1, :], axis=-2, keepdims=True)
        for index in (first, last):
            level = np.where(affected, levels[index], -1)[..., 0, self.group]
            rest = chosen & (level >= 0) & _has_none(labels, level)
            sums = self._summed(np.where(rest, measure, 0), chosen, self.group, self.groups)[..., None, :]
            anew = np.where(affected, sums, np.take_along_axis(counts, index, axis=-2))
            np.put_along_axis(counts, index, anew, axis=-2)

    @staticmethod
    def _summed(measure: Array, chosen: Booleans, index: Integers, size: int) -> Array:
        """Sums of chosen cells by index, exact for whole numbers."""
        sums = np.zeros((*measure.shape[:-1], size), dtype=measure.dtype)
        if measure.ndim == 1:
            np.add.at(sums, index[chosen], measure[chosen])
            return sums
        # cells that merge stand together
        (cells,) = chosen.nonzero()
        cells = cells[np.argsort(index[cells], kind="stable")]
        merged, values = Segments.of(index[cells]), np.take(measure, cells, axis=-1)
        if len(merged.starts) < merged.length:
            values = np.add.reduceat(values, merged.starts, axis=-1)
        sums[..., index[cells[merged.starts]]] = values
        return sums


def _has_none(labels: Sequence[Integers], level: int | Integers) -> Booleans:
    """Mask of the cells without a level, or without their respective level, in any of their labels."""
    return np.logical_and.reduce([label != level for label in labels])


def sums_of(
    table: Table, terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The sums of a table over the cells of each group cell: arrays of group cells by labels, by name."""
    if table.given is not None:
        sums = _distributions(table.given, cells, index, reading.labels)
    elif table.kind == "class":
        sums = _label_sums(terms, cells, index, reading)
    elif table.kind == "prob":
        sums = _score_sums(table, terms, cells, index, reading)
    else:
        sums = _number_sums(table, cells, index)
    if index.hidden is not None:
        sums[HIDDEN] = sums.get(HIDDEN, 0.0) + index.hidden[:, None]
    return sums


def _label_sums(
    terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The table of each label against the rest, counted in rows and in weights."""
    counts = cells.label_counts(index, reading.levels)
    replicates = len(index) // max(1, counts.groups)

    def by_group_cell(sums: Array) -> Array:
        """Sums as an array of group cells, of one replicate after the other, by labels."""
        return sums.swapaxes(-1, -2).reshape(-1, sums.shape[-2]) if replicates > 1 else sums.T

    def by_cell(measure: Array) -> Array:
        """A measure of cells, with an axis of replicates if there are any."""
        return measure.reshape(replicates, -1) if replicates > 1 else measure

    measures: dict[str, Literal["n", "w", "w2"]] = {ROWS: "n"}
    if cells.weighted:
        measures[""] = "w"
    if reading.squares:
        measures[SQUARES] = "w2"
    sums: dict[str, Array] = {}
    for suffix, measure in measures.items():
        values = by_cell(cells.measure(measure))
        by_name = counts.of(values)
        if reading.steps and suffix != SQUARES:
            by_name |= counts.steps(values)
        for name, by_level in by_name.items():
            sums[name + suffix] = by_group_cell(by_level)
    for name in sorted(term.column for term in terms):
        sums[name] = by_group_cell(counts.totals(by_cell(cells.frame[name].to_numpy()), counts.estimate >= 0))
    if HIDDEN in cells.frame.columns:
        sums[HIDDEN] = by_group_cell(counts.totals(by_cell(cells.frame[HIDDEN].to_numpy()), counts.group >= 0))
    return sums


def _distributions(given: Given, cells: Cells, index: GroupIndex, labels: int) -> dict[str, Array]:
    """The weights and rows of the labels of one side, for each given label of the other side."""
    counted = cells.truth if given == "estimate" else cells.estimate
    conditions = {"truth": cells.truth, "estimate": cells.estimate}.get(given, np.zeros_like(counted))
    height = 1 if given == "nothing" else labels
    # what a threshold leaves out may have no label of its own
    width = max(labels, int(counted.max(initial=0)) + 1)
    both = (counted >= 0) & (conditions >= 0) & (conditions < height)
    code = (index.of_cell * height + conditions) * width + counted
    shape = (len(index), height, width)

    def summed(measure: Array) -> Array:
        return np.bincount(code[both], measure[both], math.prod(shape)).reshape(shape)

    sums = {"count": summed(cells.measure("w")), "count" + ROWS: summed(cells.measure("n"))}
    sums |= {"size": _of_cells(cells.measure("w"), index), "rows": _of_cells(cells.measure("n"), index)}
    if HIDDEN in cells.frame.columns:
        sums[HIDDEN] = _of_cells(cells.frame[HIDDEN].to_numpy(), index)
    return sums


def _of_cells(measure: Array, index: GroupIndex, chosen: Booleans | None = None) -> Array:
    """The sums over the cells of group cells, as one column."""
    rows = slice(None) if chosen is None else chosen
    return np.bincount(index.of_cell[rows], measure[rows], len(index))[:, None]


def _score_sums(
    table: Table, terms: frozenset[Statistic], cells: Cells, index: GroupIndex, reading: LabelReading
) -> dict[str, Array]:
    """The sums of the score of each level; with sides, after those of its complement."""
    counted = cells.complete_in(table.reads)
    columns: dict[str, list[Array]] = {}
    sides = (REST, "") if table.sides else ("",)
    for level in reading.levels:
        for side in sides:
            events = (cells.truth != level) if side else (cells.truth == level)
            sums = _counts_of_events(cells, index, events & counted, counted)
            for term in terms:
                values = _sums_by_event(term, cells, events, level, side, reading, cumulative=not table.sides)
                sums[term.column] = _of_cells(values, index, counted)
            for name, values in sums.items():
                columns.setdefault(name, []).append(values)
    shape = (len(index), len(reading.levels))
    if table.sides:
        shape = (*shape, len(sides))
    return {name: np.concatenate(values, axis=1).reshape(shape) for name, values in columns.items()}


def _counts_of_events(cells: Cells, index: GroupIndex, events: Booleans, counted: Booleans) -> dict[str, Array]:
    """The counts with and without the event, in rows and in weights; and the counts of all rows."""
    sums: dict[str, Array] = {}
    for suffix, measure in ((ROWS, cells.measure("n")), ("", cells.measure("w"))):
        sums["positives" + suffix] = _of_cells(measure, index, events)
        sums["negatives" + suffix] = _of_cells(measure, index, counted & ~events)
        sums["instances" + suffix] = _of_cells(measure, index, counted)
    sums["rows"] = _of_cells(cells.measure("n"), index)
    sums["size"] = _of_cells(cells.measure("w"), index)
    return sums


def _sums_by_event(
    term: Statistic, cells: Cells, events: Booleans, level: int, side: str, reading: LabelReading, *, cumulative: bool
) -> Array:
    """The sum of a quantity in each cell, of the two that were counted: with the event, and without it."""
    score = side + reading.scores[level]
    if term.cumulative and cumulative:
        score = UP_TO + reading.scores[level]
        events = (cells.truth >= 0) & (cells.truth <= level)
    with_event = cells.frame[f"{term.column} {score} 1"].to_numpy()
    without_event = cells.frame[f"{term.column} {score} 0"].to_numpy()
    return np.where(events, with_event, without_event)


def _number_sums(table: Table, cells: Cells, index: GroupIndex) -> dict[str, Array]:
    """The sums of numbers over the cells that have what the table reads."""
    counted = cells.complete_in(table.reads)
    sums = {"rows": _of_cells(cells.measure("n"), index), "size": _of_cells(cells.measure("w"), index)}
    sums["instances"] = _of_cells(cells.measure("w"), index, counted)
    sums["instances" + ROWS] = _of_cells(cells.measure("n"), index, counted)
    sums["weight_squares"] = _of_cells(cells.measure("w2"), index, counted)
    columns = cells.frame.columns
    values: dict[str, Array] = {}
    for name in columns[columns.index("n") + 1 :]:
        if name not in {"w", "w2"}:
            values[name] = cells.frame[name].to_numpy()
    if "product" in values:
        order = np.argsort(index.of_cell, kind="stable")
        segments = Segments.of(index.of_cell[order])
        complete = cells.complete_in(BOTH)[order]
        in_order = {name: column[order] for name, column in values.items()}
        for name, column in recentred(in_order, cells.measure("w")[order], complete, segments).items():
            values[name] = np.empty(len(order))
            values[name][order] = column
    for name, column in values.items():
        sums[name] = _merged(name, column, index, counted)
    return sums


def _merged(name: str, values: Array, index: GroupIndex, chosen: Booleans) -> Array:
    """One value for the cells of each group cell: their sum, their least or most, or their common center."""
    group, of_group = index.of_cell[chosen], np.full(len(index), np.nan)
    reduction = reduction_of(name)
    if reduction == "first":
        of_group[group] = values[chosen]
    elif reduction in EXTREMES:
        EXTREMES[reduction].at(of_group, group, values[chosen])
    else:
        return _of_cells(values, index, chosen)
    return of_group[:, None]


# Sums of several group cells together


def pooled(
    sums: Mapping[str, Array], segments: Segments, left_out: Booleans, scope: Literal["overall", "rest"]
) -> dict[str, Array]:
    """For each group of a run, the sums of all groups of the run together, or of all other groups.

    Groups that are `left_out` are never part of these sums.
    """
    if "product" in sums:
        columns = {name: values[:, 0] for name, values in sums.items()}
        everything = np.ones(len(left_out), dtype=bool)
        moved = recentred(columns, columns["instances"], everything, segments)
        sums = dict(sums)
        for name, values in moved.items():
            sums[name] = values[:, None]
    pooled_sums = dict(sums)
    for name, values in sums.items():
        reduction = reduction_of(name)
        if reduction == "first":
            # groups of a run share their center
            continue
        is_end = reduction in EXTREMES
        merge, neutral = (EXTREMES[reduction], np.nan) if is_end else (np.add, 0.0)
        compared = values
        if left_out.any():
            compared = values.astype(float) if is_end else values.copy()
            compared[left_out] = neutral
        if scope == "overall":
            pooled_sums[name] = segments.to_rows(merge.reduceat(compared, segments.starts, axis=0))
        else:
            # subtracting floats from their sum would leave rounding errors instead of zeros
            before, after = segments.before(compared, merge, neutral), segments.after(compared, merge, neutral)
            pooled_sums[name] = merge(before, after)
    return pooled_sums


# The statistics that formulas read


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics that formulas read, for all group cells and labels, and the rows that they count."""

    kind: Kind
    given: Given | None
    weights: Mapping[str, Array]
    """Statistics in case weights: arrays of group cells by labels, by name."""
    rows: Mapping[str, Array]
    """The same statistics counted in rows."""
    size: Array
    """The weight of all rows of a group cell."""
    all_rows: Array
    squares: Mapping[str, Array] | None = None
    """The same statistics in squared case weights."""
    hidden: Array | None = None
    """The number of cells of each group cell that were suppressed."""
    beside: Mapping[str, Statistics] = field(default_factory=dict[str, "Statistics"])
    """The statistics of all groups together, or of all other groups, by the prefix of their names."""

    def read(self, reads: frozenset[str], measure: Measure = "weights") -> dict[str, Array]:
        """The statistics of formulas that read some columns, and so leave out rows without one of these."""
        statistics: dict[str, Array] = dict(getattr(self, measure))
        if self.kind == "class" and reads == BOTH:
            for margin, (one, other) in WHEN_COMPLETE.items():
                if one in statistics:
                    statistics[margin] = statistics[one] + statistics[other]
        if measure == "weights" and self.squares is not None:
            # the weight of each row if all were equal and effectively as many (Kish, 1965), the same for all labels
            with np.errstate(divide="ignore", invalid="ignore"):
                row_weight = self.counted(reads, "squares") / self.counted(reads, "weights")
                statistics["row_weight"] = row_weight[:, :1]
        for prefix, others in self.beside.items():
            for name, values in others.read(reads, measure).items():
                statistics[prefix + name] = values
        return statistics

    def counted(self, reads: frozenset[str], measure: Measure) -> Array:
        """The number, the weight or the squared weights of the rows of formulas that read some columns."""
        counts: Mapping[str, Array] = getattr(self, measure)
        if self.kind == "class" and self.given is None:
            return reduce(np.add, [counts[name] for name in _USED[reads]])
        return counts["instances"]

    def true(self, reads: frozenset[str]) -> Array:
        """The weight of the true labels, used for weighted averages over labels."""
        if self.given is not None:
            return self.weights["instances"]
        if self.kind == "numeric":
            return self.weights["instances"] * 0 + 1
        if self.kind == "class" and "estimate" in reads:
            return self.weights["tp"] + self.weights["fn"]
        return self.weights["positives"]


def statistics_of(table: Table, sums: Mapping[str, Array]) -> Statistics:
    """The statistics of a table from its sums."""
    if table.given is not None:
        return _of_distributions(table.given, sums)
    if table.kind == "class":
        return _of_labels(sums)
    return _score_statistics(sums) if table.kind == "prob" else _of_numbers(sums)


def _of_distributions(given: Given, sums: Mapping[str, Array]) -> Statistics:
    """The statistics of the labels of one side, for each given label of the other side."""
    of_label, all_rows = sums["count" + ROWS].sum(axis=-1), sums["rows"]
    # incomplete rows count for every label that is given
    incomplete = all_rows - of_label.sum(axis=-1, keepdims=True)
    weights = {"count": sums["count"], "instances": sums["count"].sum(axis=-1)}
    rows = {"instances": of_label}
    return Statistics("class", given, weights, rows, sums["size"], of_label + incomplete, hidden=sums.get(HIDDEN))


def _of_labels(sums: Mapping[str, Array]) -> Statistics:
    """The statistics of labels against the rest."""
    terms = {name: values for name, values in sums.items() if name not in _COUNTS}
    rows = _with_margins(sums, ROWS)
    weights = _with_margins(sums, "") if "tp" in sums else rows
    squares = _with_margins(sums, SQUARES) if "tp" + SQUARES in sums else None
    levels = rows["tp"].shape[1]
    # steps are counted only where a formula reads them
    common = dict.fromkeys(STEPS, rows["tp"] * np.nan) | {"row_weight": np.ones(1)} | terms
    common["rank"] = np.arange(float(levels))
    common["label_count"] = np.zeros(levels) + max(levels, _SMALLEST_COUNT)
    of_rows = common | rows
    return Statistics(
        kind="class",
        given=None,
        # one and the same object shows that there are no weights
        weights=of_rows if weights is rows else common | weights,
        rows=of_rows,
        size=weights["instances"],
        all_rows=rows["instances"],
        squares=None if squares is None else common | squares,
        hidden=sums.get(HIDDEN),
    )


def _with_margins(sums: Mapping[str, Array], suffix: str) -> dict[str, Array]:
    """The cells of the table of each label and their margins, as floats: products of large counts overflow integers."""
    counts: dict[str, Array] = {}
    for name in (*CELLS, *STEPS):
        if name + suffix in sums:
            counts[name] = sums[name + suffix].astype(float)
    for margin, cells in _MARGINS.items():
        counts[margin] = reduce(np.add, [counts[name] for name in cells if name in counts])
    return counts


def _score_statistics(sums: Mapping[str, Array]) -> Statistics:
    """The statistics of scores, whose sums are not numbers of rows."""
    shape = sums["instances"].shape
    weights: dict[str, Array] = {"rank": np.arange(float(shape[-1]))}
    rows: dict[str, Array] = {"rank": np.full(shape[-1], np.nan)}
    for name in ("positives", "negatives", "instances"):
        weights[name], rows[name] = sums[name], sums[name + ROWS]
    unknown = np.full(shape, np.nan)
    for name, values in sums.items():
        if name not in {*weights, "rows", "size", HIDDEN} and not name.endswith(ROWS):
            weights[name], rows[name] = values, unknown
    return Statistics("prob", None, weights, rows, sums["size"], sums["rows"], hidden=sums.get(HIDDEN))


def _of_numbers(sums: Mapping[str, Array]) -> Statistics:
    """The statistics of numbers, of which only the instances are numbers of rows."""
    weights = dict(sums)
    weight = sums["instances"]
    weights["truth_minimum"] = sums[f"least {ACTUAL}"]
    weights["truth_maximum"] = sums[f"most {ACTUAL}"]
    if "product" in sums:
        with np.errstate(all="ignore"):
            weights |= _moments(sums, weight)
    unknown = np.full(weight.shape, np.nan)
    rows = dict.fromkeys(weights, unknown) | {"instances": sums["instances" + ROWS]}
    return Statistics("numeric", None, weights, rows, sums["size"], sums["rows"], hidden=sums.get(HIDDEN))


def _moments(sums: Mapping[str, Array], weight: Array) -> dict[str, Array]:
    """Means, variation and covariation from sums about a center."""
    moments: dict[str, Array] = {}
    moved: dict[str, Array] = {}
    constant: dict[str, Booleans] = {}
    for name, number in (("truth", ACTUAL), ("estimate", PREDICTED)):
        moved[name] = sums[f"{name}_shift"] / weight
        constant[name] = sums[f"least {number}"] == sums[f"most {number}"]
        square = sums[f"{name}_square"]
        variation = (square - moved[name] * sums[f"{name}_shift"]).clip(0)
        # replicates may have a single row many times, and keep the ends of the range of all
        constant[name] |= variation <= _ROUNDED * square
        moments[f"{name}_mean"] = sums[f"{name}_centre"] + moved[name]
        # constant numbers have no variation at all, not one of rounding errors
        moments[f"{name}_variation"] = np.where(constant[name], 0.0, variation)
    product = sums["product"] - moved["truth"] * sums["estimate_shift"]
    moments["covariation"] = np.where(constant["truth"] | constant["estimate"], 0.0, product)
    return moments
