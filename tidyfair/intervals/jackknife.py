"""Standard errors by the jackknife: by leaving out one row, part or cluster at a time.

What a value loses when a row is left out is the influence of that row; the influences of all rows give the variance
(Quenouille, 1956; Tukey, 1958; Efron, 1982). It needs no formula of its own, so that metrics of a user have it too.
Rows of labels are known by the cell that they are in, with a quarter of a row more in each cell, so that a group
without errors is not taken for one that cannot err. Rows of scores and numbers are left out in the random parts that a
tally counts, and rows of a cluster together. Formulas that read rows say themselves what a row or cluster adds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from tidyfair.evaluation import (
    Evaluator,
    GroupIndex,
    KeyCodes,
    LabelCounts,
    Level,
    RequestedFormula,
    influences_of,
    pooled,
    rows_of,
    slice_of,
    sums_of,
    values_of,
)
from tidyfair.intervals.estimates import Counts, Influences, Scale, Smooth, known_errors
from tidyfair.intervals.shares import is_mean
from tidyfair.intervals.small_samples import UnseenRows, unseen_rows, with_rows_added
from tidyfair.specs import Array, Average, By, Floats, Integers, Segments
from tidyfair.specs.formulas import ROWS, SQUARES, Formula
from tidyfair.tallies import BLOCK, HIDDEN, Tally

CELLS = ("tp", "fn", "fp", "tn")
_ADDED_ROWS = 1.0
"""The rows added in all: a quarter of a row in each of the four cells of two labels."""
_MOST_LABELS_WITH_ADDED_ROWS = 10
_MOST_NUMBERS = 2**22
"""The most numbers of an array at once."""
_STEP = 1e-6
"""The part of a count by which it is moved for a derivative."""
MEANS = (frozenset({"truth_mean"}), frozenset({"estimate_mean"}))
"""The statistics of formulas that are the mean of a column."""
_HIDDEN_SKEWNESS = 1.5
"""The factor of the skewness of samples, which is nearer to 0 than that of values."""


def has_jackknife(formula: Formula, average: Average, tally: Tally) -> bool:
    """Check whether values of a formula have standard errors by leaving out rows of a tally."""
    if formula.influence is not None:
        # bins do not show the order of scores within them
        return average.by_label and tally.rows is not None and not (tally.binned and formula.variation == "ranked")
    if formula.variation not in ("counts", "sums") or HIDDEN in tally.cells.columns:
        return False
    if any(term.neighborhood is not None for term in formula.all_terms):
        # a row or cluster that is left out would still be among the neighbours of others
        return False
    return bool(formula.reads) and (formula.variation == "counts" or bool(tally.clusters))


def by_jackknife(evaluator: Evaluator, requested: RequestedFormula, by: By | None, scale: Scale) -> Smooth:
    """The values of a formula in the groups of a `by`, by groups and labels."""
    tally, formula = evaluator.tally, requested.formula
    if formula.influence is not None:
        return _read_row_estimates(evaluator, requested, by, scale)
    clusters = [key.column for key in tally.clusters]
    if formula.variation == "counts":
        clusters = [column for column in clusters if column.name != BLOCK]
    index = evaluator.group_cells.indices[by]
    if not clusters:
        return _label_row_estimates(evaluator, requested, index, scale)
    codes = KeyCodes(tally.cells)
    units = codes.index(tally.names(clusters), within=index)
    values, in_errors = _LeftOut(evaluator, requested, index, units).estimates(scale)
    are_units = evaluator.shares_rows or any(column.name != BLOCK for column in clusters)
    if by is None or not are_units:
        return values
    cluster = codes.index(tally.names(clusters)).of_cell[units.example]
    return replace(values, influences=Influences.of_units(in_errors, index.of_cell[units.example], cluster, len(index)))


def _read_row_estimates(evaluator: Evaluator, requested: RequestedFormula, by: By | None, scale: Scale) -> Smooth:
    """Values of a formula that reads rows, and knows the influence of rows and clusters."""
    labels, formula = evaluator.labels, requested.formula
    rows = rows_of(evaluator.tally, labels, evaluator.group_cells, by, formula.reads)
    value = evaluator.values(requested).estimate[slice_of(evaluator.group_cells, by)]
    error, freedom, error_below = np.full((3, *value.shape), np.nan)
    centre = value.copy()
    of_clusters: list[tuple[Floats, int, Integers]] = []
    for number, level in enumerate(labels.levels):
        score = Level(level, evaluator.reading.scores.get(level, ""))
        for group, units, influence in influences_of(formula, rows, score):
            if units is not None and len(units) == 1:
                # a single cluster does not show how far values vary
                continue
            at = group, number
            error[at], freedom[at] = influence.error, influence.freedom
            centre[at], error_below[at] = influence.unseen or (value[at], influence.error)
            if by is not None and units is not None and influence.error > 0:
                amount: Floats = np.asarray(influence.of_unit) / influence.error
                of_clusters.append((amount, group * value.shape[1] + number, units))
    influences = None
    if of_clusters:
        amounts, positions, units = zip(*of_clusters, strict=True)
        position = np.repeat(positions, list(map(len, units)))
        influences = Influences.of_units(np.concatenate(amounts)[:, None], position, np.concatenate(units), value.size)
    values = Smooth.about(value, error, freedom, scale, influences=influences)
    return replace(values, below=(centre.ravel(), (error_below * scale.slope(centre)).ravel()))


# Parts and clusters


class _LeftOut:
    """The parts or clusters of groups, which are left out one at a time."""

    def __init__(self, evaluator: Evaluator, requested: RequestedFormula, index: GroupIndex, units: GroupIndex) -> None:
        """Sum the units of the groups of a tally."""
        self.formula, self.average = requested.formula, requested.average
        self.segments = segments = Segments.of(index.of_cell[units.example])
        """The units of each group."""
        table = self.formula.table(self.average)
        sums = sums_of(table, self.formula.all_terms, evaluator.cells, units, evaluator.reading)
        own = values_of(self.formula, self.average, sums)
        weight = np.where(own.n[:, 0] > 0, own.weight[:, 0], 0.0)
        self.share: Floats = (weight / segments.to_rows(segments.sum(weight)))[:, None]
        """The share of each unit in the weight of its group."""
        self.unseen: UnseenRows | None = None
        """Parts of rows added for what few rows do not show; None for formulas that compare rows with others."""
        if table.kind != "class":
            self.unseen = unseen_rows(evaluator, table, requested, index, (sums, weight, segments))
        elif not self.formula.all_terms:
            # the weight of a unit, weighted by itself
            size = np.nan_to_num(segments.sum(weight**2) / segments.sum(weight))
            self.unseen = _added_rows(evaluator, requested, index, size)
        nothing = np.zeros(segments.length, dtype=bool)
        self.everything, self.all_others = (pooled(sums, segments, nothing, scope) for scope in ("overall", "rest"))
        """The sums of the group of each unit, and those without the unit."""

    def estimates(self, scale: Scale) -> tuple[Smooth, Array]:
        """The values, and the influences of units in standard errors of these.

        Rows added for what has not been seen (`unseen`) widen both errors, or the upper one only if they are of rare
        large errors (`is_above`).
        """
        unseen = self.unseen
        counted: Mapping[str, Array] = {} if unseen is None or unseen.is_above else unseen.sums
        centre, influence, on_scale = self._influences(counted, scale)
        added = 0.0 if unseen is None else unseen.variance
        variance = self._variance(influence) + (0.0 if unseen is None or unseen.is_above else added)
        # what has not been seen to vary says nothing about how far it varies
        error = known_errors(np.sqrt(variance), centre)
        in_errors = influence / self.segments.to_rows(error)
        spread = np.sqrt(self._variance(on_scale)) if counted == {} else error * scale.slope(centre)
        below = above = (centre.ravel(), np.where(np.isnan(error), np.nan, spread).ravel())
        if unseen is not None and unseen.is_above:
            # an error that is rare widens the limit above; it is no part of what has been seen to vary
            higher, with_unseen, _ = self._influences(unseen.sums, scale)
            wider = np.sqrt(self._variance(with_unseen) + added)
            # an error of 0 has no product with the slope at an end of the range, which is infinite
            above = higher.ravel(), (np.where(np.isnan(error), np.nan, wider) * scale.slope(higher)).ravel()
        skew = None
        # means have the interval of Student's t
        is_a_mean = is_mean(self.formula) or self.formula.statistics in MEANS
        if self.formula.kind == "numeric" and unseen is None and not is_a_mean:
            skew = self.segments.sum(on_scale**3) / self.segments.sum(on_scale**2) ** 1.5
            skew = (np.nan_to_num(skew) * _HIDDEN_SKEWNESS).ravel()
        values = Smooth.about(centre, error, self._freedom, scale)
        return replace(values, below=below, above=above, skew=skew), in_errors

    def _influences(self, added: Mapping[str, Array], scale: Scale) -> tuple[Floats, Array, Array]:
        """The values of groups with some rows more, and the influences of units on them, and on their scale."""
        per_unit = {name: self.segments.to_rows(values) for name, values in added.items()}
        value, without = (
            values_of(self.formula, self.average, with_rows_added(sums, per_unit)).estimate
            for sums in (self.everything, self.all_others)
        )
        change, on_scale = value - without, scale.transform(value) - scale.transform(without)
        return value[self.segments.starts], self._centred(change), self._centred(on_scale)

    @cached_property
    def _count(self) -> Floats:
        """The number of units of each group with some weight."""
        return self.segments.sum((self.share > 0).astype(float))

    def _centred(self, change: Array) -> Array:
        """The influences of units, whose squares add up to the variance, from what values lose without them."""
        present, to_units = self.share > 0, self.segments.to_rows
        own = np.where(present, change, 0.0)
        mean, factor = self.segments.sum(own) / self._count, np.sqrt((self._count - 1) / self._count)
        # on the scale a value may be at the end of its range without a unit, and its change infinite
        return np.where(present, own - to_units(mean), 0.0) * to_units(factor)

    def _variance(self, influence: Array) -> Floats:
        """The variance of values; nan where there is a single unit."""
        return np.where(self._count > 1, self.segments.sum(influence**2), np.nan)

    @property
    def _freedom(self) -> Floats:
        """The degrees of freedom of the variance: of units of equal weight, their number less one.

        Of others the geometric mean of the effective number (Kish, 1965) less one, which is too large, and of what
        normal values have by Satterthwaite (Bell and McCaffrey, 2002), which is too small.
        """
        add, share = self.segments.sum, self.share
        squares = add(share**2)
        squares_of_units = self.segments.to_rows(squares)
        # squares of normal values less their mean, over what is expected of them
        own = np.where(share > 0, share**2 / (1 - 2 * share + squares_of_units), 0.0)
        # which covary, because the mean is of all of them
        middle = share - squares_of_units / 2
        pairs = add(own) * add(own * middle**2) + add(own * middle) ** 2 - 2 * add((own * middle) ** 2)
        of_normal = squares**2 / (add(share**4) + 2 * pairs)
        return np.fmax(np.sqrt(of_normal * (1 / squares - 1)), 1)


# Rows of labels


class _Pairs:
    """Pairs of true and predicted labels, the weights of their rows, and what a row adds to counts."""

    def __init__(self, evaluator: Evaluator, requested: RequestedFormula, index: GroupIndex) -> None:
        """Count all pairs of labels that occur, and those to which rows are added, of some groups."""
        self.formula, self.average = requested.formula, requested.average
        cells, levels, reads = evaluator.cells, evaluator.reading.levels, requested.formula.reads
        # the labels that are told apart: one and the rest are two
        is_one = len(levels) == 1
        labels = 2 if is_one else evaluator.reading.labels
        # missing labels, and those that are not read, are -1
        codes: list[Integers] = []
        for side, own in (("truth", cells.truth), ("estimate", cells.estimate)):
            told_apart = np.where(own < 0, -1, own != levels[0]) if is_one else own
            codes.append((told_apart if side in reads else np.full(len(own), -1)).astype(np.int64))
        possible = [range(labels) if side in reads else [-1] for side in ("truth", "estimate")]
        filled = [*itertools.product(*possible)] if labels <= _MOST_LABELS_WITH_ADDED_ROWS else []
        code = (codes[0] + 1) * (labels + 1) + codes[1] + 1
        occurring = [divmod(own, labels + 1) for own in np.unique(code).tolist()]
        pairs = list(dict.fromkeys([*filled, *((one - 1, other - 1) for one, other in occurring)]))
        truth, estimate = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
        all_complete = bool((truth >= 0).all() and (estimate >= 0).all())
        read = [0] if is_one else levels
        counting = LabelCounts(truth, estimate, np.arange(len(pairs)), len(pairs), read, all_complete)
        one_row = np.ones(len(pairs))
        counts = counting.of(one_row) | (counting.steps(one_row) if evaluator.reading.steps else {})
        self.counts = {name: values.T for name, values in counts.items()}
        """The counts of one row: arrays of pairs by labels, by name."""
        position = np.zeros((labels + 1) ** 2, dtype=np.int64)
        position[(truth + 1) * (labels + 1) + estimate + 1] = np.arange(len(pairs))
        self.of_cell = position[code]
        """The pair of each cell of the tally."""
        of_group, size = index.of_cell * len(pairs) + self.of_cell, len(index) * len(pairs)
        self.weight, self.square = (
            np.bincount(of_group, cells.measure(name).astype(float), size).astype(float).reshape(len(index), -1)
            for name in ("w", "w2")
        )
        """Sums of weights, and of their squares: arrays of groups by pairs."""
        self.complete = ((truth >= 0) | ("truth" not in reads)) & ((estimate >= 0) | ("estimate" not in reads))
        """Mask of the pairs whose rows have what the formula reads."""
        self.added = np.where(np.arange(len(pairs)) < len(filled), _ADDED_ROWS / max(1, len(filled)), 0.0)
        """The rows that are added to each pair."""

    @property
    def are_many(self) -> bool:
        """True where rows of each pair are too many to be left out one pair after the other."""
        return not self.added.any() and len(self.added) > _MOST_LABELS_WITH_ADDED_ROWS**2

    def counts_of(self, weight: Floats) -> dict[str, Floats]:
        """The counts of rows with some weights: arrays of groups by labels, by name."""
        return {name: weight @ counts for name, counts in self.counts.items()}

    def values(self, sums: Mapping[str, Array], row: Floats) -> Floats:
        """The values of groups from counts of labels, with the weight of a row of each group."""
        counts = {name + ROWS: values for name, values in sums.items()}
        times = len(next(iter(sums.values()))) // max(1, len(row))
        row_weight = {"row_weight": np.repeat(row, times, axis=0)}
        return values_of(self.formula, self.average, counts | row_weight).estimate


def _added_rows(evaluator: Evaluator, requested: RequestedFormula, index: GroupIndex, cluster: Floats) -> UnseenRows:
    """Rows that are added to groups of clusters: a part of a row in each cell, and of a cluster in an empty one."""
    pairs = _Pairs(evaluator, requested, index)
    weight = pairs.weight
    row = np.nan_to_num(pairs.square.sum(axis=1) / weight.sum(axis=1))[:, None]
    each = np.where(weight > 0, row, cluster[:, None])
    added = pairs.added * each
    sums = pairs.counts_of(added)
    sums |= {name + SQUARES: values * row for name, values in sums.items()}
    if not added.any():
        return UnseenRows(sums, np.zeros((len(weight), 1)))
    # the variance of the rows of a cell, left out together
    changes = _changes(pairs, weight + added, added, row)
    rows = (added / each)[:, :, None]
    return UnseenRows(sums, np.where(rows > 0, changes**2 / rows, 0.0).sum(axis=1))


def _changes(pairs: _Pairs, total: Floats, left_out: Floats, row: Floats) -> Floats:
    """The changes of values when some rows of a pair of labels are left out: groups by pairs by labels."""
    sums = pairs.counts_of(total)
    groups, count = total.shape
    without = {
        name: (sums[name][:, None, :] - left_out[:, :, None] * counts).reshape(groups * count, -1)
        for name, counts in pairs.counts.items()
    }
    return pairs.values(sums, row)[:, None, :] - pairs.values(without, row).reshape(groups, count, -1)


def _derivatives(pairs: _Pairs, sums: Mapping[str, Array], value: Floats, row: Floats) -> Floats:
    """The changes of values for a little more of each pair of labels: groups by pairs by labels.

    A pair changes the counts of its labels, so that it is enough to know what each count of a label changes (the
    infinitesimal jackknife: Jaeckel, 1972).
    """
    groups, labels = next(iter(sums.values())).shape
    by_label = value.shape[1] == labels
    influence = np.zeros((groups, len(pairs.added), value.shape[1]))
    for name, counts in pairs.counts.items():
        step = _STEP * np.maximum(sums[name], 1)
        moved, shift = sums, step
        if not by_label:
            # one label after the other
            moved = {other: np.repeat(values, labels, axis=0) for other, values in sums.items()}
            shift = (step[:, :, None] * np.eye(labels)).reshape(groups * labels, labels)
        above, below = (
            pairs.values({**moved, name: moved[name] + away}, row).reshape(groups, labels) for away in (shift, -shift)
        )
        derivative = np.where(sums[name] > 0, (above - below) / (2 * step), 0.0)
        influence += derivative[:, None, :] * counts if by_label else (derivative @ counts.T)[:, :, None]
    return influence


def _label_row_estimates(evaluator: Evaluator, requested: RequestedFormula, index: GroupIndex, scale: Scale) -> Smooth:
    """Values by leaving out one row of labels at a time: the same for all rows of a cell."""
    pairs = _Pairs(evaluator, requested, index)
    groups, count = pairs.weight.shape
    labels = len(evaluator.reading.levels)
    one_value = pairs.are_many and not requested.average.by_label
    of_group = max(count * (1 if one_value else labels), labels**2)
    step = max(1, _MOST_NUMBERS // max(1, of_group * len(pairs.counts)))
    parts: list[tuple[Floats, Floats, Floats, Floats]] = []
    for start in range(0, groups, step):
        own = slice(start, start + step)
        parts.append(_errors_of_counts(pairs, pairs.weight[own], pairs.square[own]))
    counts: Counts | None = None
    of_one = requested.average.by_label and not evaluator.cells.weighted
    if of_one and requested.formula.reads == frozenset({"truth", "estimate"}):
        tp, fn, fp, tn = ((pairs.weight @ pairs.counts[name]).ravel() for name in CELLS)
        counts = (tp, fn, fp, tn)
    centre, error, freedom, of_pairs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    values = Smooth.about(centre, error, freedom, scale, formula=requested.formula, counts=counts)
    if not evaluator.shares_rows or evaluator.members is None:
        return values
    # the rows of a cell of the data together are a unit, which groups share
    in_errors = of_pairs / np.sqrt((pairs.square[:, :, None] * of_pairs**2).sum(axis=1, keepdims=True))
    squares = evaluator.cells.measure("w2").astype(float)
    amount = in_errors[index.of_cell, pairs.of_cell] * np.sqrt(squares)[:, None]
    cell = evaluator.members.copies_by_group.cell
    return replace(values, influences=Influences.of_units(amount, index.of_cell, cell, len(index)))


def _errors_of_counts(pairs: _Pairs, weight: Floats, square: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Values, errors and degrees of freedom from the weights of rows with each pair of labels, and their squares.

    The last are the influences of a row of each pair.
    """
    of_group, of_squares = (own[:, pairs.complete].sum(axis=1) for own in (weight, square))
    effective, each = of_group**2 / of_squares, np.nan_to_num(of_squares / of_group)[:, None]
    of_pair = np.where(weight > 0, square / weight, each)
    total = weight + pairs.added * each
    squares = square + pairs.added * each**2
    left_out = np.minimum(of_pair, total / 2)
    sums = pairs.counts_of(total)
    value = pairs.values(sums, each)
    if pairs.are_many:
        influence = _derivatives(pairs, sums, value, each)
    else:
        influence = _changes(pairs, total, left_out, each) / left_out[:, :, None]
    influence = np.where(total[:, :, None] > 0, influence, 0.0)
    size = total.sum(axis=1) ** 2 / squares.sum(axis=1)
    mean = (total[:, :, None] * influence).sum(axis=1) / size[:, None]
    variance = (squares[:, :, None] * influence**2).sum(axis=1) - size[:, None] * mean**2
    # few heavy rows may agree by luck: no less than if weights told nothing of what they are of
    even = (total * (squares.sum(axis=1) / total.sum(axis=1))[:, None])[:, :, None]
    variance = np.maximum(variance, (even * influence**2).sum(axis=1) - size[:, None] * mean**2)
    error = known_errors(np.sqrt(variance.clip(0) * (size / (size - 1))[:, None]), value)
    return value, error, np.broadcast_to((effective - 1)[:, None], error.shape), influence - mean[:, None, :]
