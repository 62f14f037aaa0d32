"""Standard errors of values that are functions of sums, by leaving out one row, part or cluster at a time.

What a value loses when a row is left out is the influence of that row; the influences of all rows give the variance
(Quenouille, 1956; Tukey, 1958; Efron, 1982). It needs no formula of its own, so that metrics of a user have it too.
Rows of labels are known by the cell that they are in, with a quarter of a row more in each cell, so that a group
without errors is not taken for one that cannot err. Rows of scores and numbers are left out in the random parts that a
tally counts, and rows of a cluster together. Formulas that read rows say themselves what a row or cluster adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidyfair.evaluation.array_metrics import influences_of
from tidyfair.evaluation.group_cells import rows_of, slice_of
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.label_counts import LabelCounts
from tidyfair.evaluation.ranked_rows import Level
from tidyfair.evaluation.statistics import ONE_LABEL, ROWS, SQUARES, Table, pooled, sums_of
from tidyfair.intervals.scales import Scale
from tidyfair.intervals.survey import has_survey_error, survey_errors
from tidyfair.intervals.unseen_rows import (
    Unseen,
    counts_all_events,
    is_of_squares,
    unseen_errors,
    unseen_events,
    unseen_outcomes,
    values_of,
    with_rows_added,
)
from tidyfair.specs.segments import Segments
from tidyfair.tallies.tally import BLOCK, HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.evaluation.evaluator import Evaluator
    from tidyfair.evaluation.group_index import GroupIndex
    from tidyfair.intervals.survey import SurveyErrors
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import By
    from tidyfair.specs.segments import Array, Floats, Integers
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

CELLS = ("tp", "fn", "fp", "tn")
_ADDED_ROWS = 1.0
"""A quarter of a row in each of the four cells of two labels."""
_MOST_LABELS_WITH_ADDED_ROWS = 10
_ROUNDED = 1e-12
"""The relative difference of sums of equal numbers is smaller."""
_MOST_NUMBERS = 2**22
"""The most numbers of an array at once."""
_STEP = 1e-6
"""The part of a count by which it is moved for a derivative."""


@dataclass(frozen=True, eq=False)
class Influences:
    """The influences of sampling units that groups share on values, in standard errors of these.

    Entries are sorted by value and unit. A covariance is the sum of the products of the influences of all units.
    """

    value: Integers
    unit: Integers
    amount: Floats
    sign: Floats | None
    """-1 where products are subtracted, as those of the means of strata are; None where none are."""
    of: Integers
    """The value that each estimate is."""

    @classmethod
    def sorted(cls, value: Integers, unit: Integers, amount: Floats, sign: Floats | None, count: int) -> Influences:
        """The influences on so many values, from entries in any order."""
        import numpy as np

        order = np.lexsort((unit, value))
        amount = np.nan_to_num(amount[order])
        return cls(value[order], unit[order], amount, None if sign is None else sign[order], np.arange(count))

    def at(self, index: Array) -> Influences:
        """The influences on some of the estimates."""
        return replace(self, of=self.of[index])

    def between(self, one: Integers, other: Integers) -> Floats:
        """The correlations of pairs of estimates."""
        import numpy as np

        step = max(1, _MOST_NUMBERS // max(1, int(np.bincount(self.value).max(initial=1))))
        parts = [
            self._between(self.of[one[start : start + step]], self.of[other[start : start + step]])
            for start in range(0, len(one), step)
        ]
        return np.concatenate([*parts, np.zeros(0)]).clip(-1, 1)

    def _between(self, one: Integers, other: Integers) -> Floats:
        """The sums of the products of the influences of the units that two values share."""
        import numpy as np

        first, last = (np.searchsorted(self.value, one, side=side) for side in ("left", "right"))
        sizes = last - first
        pair = np.repeat(np.arange(len(one)), sizes)
        entry = np.arange(len(pair)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        units = int(self.unit.max(initial=-1)) + 1
        wanted = other[pair] * units + self.unit[entry]
        found = np.searchsorted(self._keys, wanted).clip(max=max(len(self._keys) - 1, 0))
        amount = self.amount[entry] * np.where(self._keys[found] == wanted, self.amount[found], 0.0)
        return np.bincount(pair, amount if self.sign is None else amount * self.sign[entry], len(one))

    @cached_property
    def _keys(self) -> Integers:
        return self.value * (int(self.unit.max(initial=-1)) + 1) + self.unit


@dataclass(frozen=True, eq=False)
class Deviations:
    """Standard errors of values and their degrees of freedom: arrays of group cells by labels."""

    centre: Floats
    error: Floats
    spread: Floats
    """The standard error on the scale of the range; not finite where values leave it, or reach its ends."""
    freedom: Floats
    cells: Mapping[str, Floats]
    """The counts of one label against the rest, where rows have no weights."""
    influence: Array | None = None
    """The influence of each cluster of a group in standard errors: clusters of groups by labels."""
    influences: Influences | None = None
    """The same with the clusters, where groups may share them."""
    below: tuple[Floats, Floats] | None = None
    """The centre and the standard error on the scale of lower limits, where these count what has not been seen."""

    def influences_at(self, values: Integers) -> Influences | None:
        """The influences on some of the values, by their position."""
        return None if self.influences is None else self.influences.at(values)


def is_smooth(formula: Formula, estimator: str, tally: Tally) -> bool:
    """Check whether values of a formula have standard errors by leaving out rows of a tally, or by its design."""
    if tally.design is not None:
        return has_survey_error(formula, estimator, tally)
    if formula.influence is not None:
        # bins do not show the order of scores within them
        return estimator in ONE_LABEL and tally.rows is not None and not (tally.binned and reads_ranks(formula))
    if formula.input != "sums" or formula.given is not None or formula.beyond or HIDDEN in tally.cells.columns:
        return False
    if formula.reads_neighbors:
        # a row or cluster that is left out would still be among the neighbours of others
        return False
    counts_are_enough = formula.kind == "class" and not formula.all_terms
    return bool(formula.reads) and (counts_are_enough or bool(tally.clusters))


def reads_ranks(formula: Formula) -> bool:
    """Check whether a formula is an area under a curve of ranked scores other than that of DeLong's error."""
    return formula.influence is not None and formula.input == "rows" and not formula.deviations


def deviations_of(evaluator: Evaluator, formula: Formula, estimator: str, by: By | None, scale: Scale) -> Deviations:
    """The deviations of the values of a formula in the groups of a `by`."""
    tally = evaluator.tally
    if tally.design is not None:
        return _of_survey(survey_errors(evaluator, tally, formula, estimator, by), scale)
    if formula.influence is not None:
        return _of_read_rows(evaluator, tally, formula, estimator, by, scale)
    table = Table.of(formula, estimator)
    clusters = [key.column for key in tally.clusters]
    if formula.kind == "class" and not formula.all_terms:
        clusters = [column for column in clusters if column.name != BLOCK]
    index = evaluator.group_cells.indices[by]
    if clusters:
        codes = KeyCodes(tally.cells)
        units = codes.index(tally.names(clusters), within=index)
        deviations = _of_units(evaluator, table, formula, estimator, index, units, scale)
        if by is None or all(column.name == BLOCK for column in clusters):
            return deviations
        cluster = codes.index(tally.names(clusters)).of_cell[units.example]
        if deviations.influence is None:
            return deviations
        influences = _influences(deviations.influence, index.of_cell[units.example], cluster, None, len(index))
        return replace(deviations, influences=influences)
    return _of_label_rows(evaluator, table, formula, estimator, index, scale)


def _of_survey(errors: SurveyErrors, scale: Scale) -> Deviations:
    """Deviations by the design of a survey."""
    import numpy as np

    influences = _influences(errors.influence, errors.group, errors.unit, errors.sign, len(errors.value))
    with np.errstate(invalid="ignore"):
        spread = errors.error * scale.slope(errors.value)
    return Deviations(errors.value, errors.error, spread, errors.freedom, {}, influences=influences)


def _influences(amount: Array, group: Integers, unit: Integers, sign: Floats | None, groups: int) -> Influences:
    """Influences from those of the units of groups: an array of units of groups by labels."""
    import numpy as np

    labels = amount.shape[1]
    value = (group[:, None] * labels + np.arange(labels)).ravel()
    signs = None if sign is None else np.repeat(sign, labels)
    return Influences.sorted(value, np.repeat(unit, labels), amount.ravel(), signs, groups * labels)


def _of_read_rows(
    evaluator: Evaluator, tally: Tally, formula: Formula, estimator: str, by: By | None, scale: Scale
) -> Deviations:
    """Deviations of a formula that reads rows, and knows the influence of rows and clusters."""
    import numpy as np

    labels = evaluator.labels
    rows = rows_of(tally, labels, evaluator.group_cells, by, formula.reads)
    requested = next(one for one in evaluator.tables if (one.formula, one.estimator) == (formula, estimator))
    value = evaluator.values(requested).estimate[slice_of(evaluator.group_cells, by)]
    error, freedom, centre_below, error_below = np.full((4, *value.shape), np.nan)
    of_clusters: dict[int, tuple[Integers, Floats]] = {}
    for number, level in enumerate(labels.levels):
        for group, units, influence in influences_of(
            formula, rows, Level(level, evaluator.reading.scores.get(level, ""))
        ):
            error[group, number], freedom[group, number] = influence.error, influence.freedom
            if influence.unseen is not None:
                centre_below[group, number], error_below[group, number] = influence.unseen
            if by is not None and units is not None and influence.error > 0:
                _, of_units = of_clusters.setdefault(group, (units, np.zeros((len(units), value.shape[1]))))
                of_units[:, number] = influence.of_unit / influence.error
    with np.errstate(invalid="ignore"):
        spread = error * scale.slope(value)
        below = (centre_below, error_below * scale.slope(centre_below)) if reads_ranks(formula) else None
    influences = _of_clusters(of_clusters, len(value))
    return Deviations(value, error, spread, freedom, {}, influences=influences, below=below)


def _of_clusters(of_clusters: Mapping[int, tuple[Integers, Floats]], groups: int) -> Influences | None:
    """The influences of the clusters of all groups, from the clusters of each and their influences."""
    import numpy as np

    if not of_clusters:
        return None
    varying = sorted(of_clusters)
    clusters, influences = zip(*(of_clusters[group] for group in varying), strict=True)
    group = np.repeat(varying, list(map(len, clusters)))
    return _influences(np.concatenate(influences), group, np.concatenate(clusters), None, groups)


# Parts and clusters


def _of_units(
    evaluator: Evaluator, table: Table, formula: Formula, estimator: str, index: GroupIndex, units: GroupIndex,
    scale: Scale,
) -> Deviations:  # fmt: skip
    """Deviations by leaving out one part or cluster of a group at a time."""
    import numpy as np

    if not len(units):
        nothing = np.full((len(index), len(evaluator.reading.levels)), np.nan)
        return Deviations(nothing, nothing, nothing, nothing, {})
    group = index.of_cell[units.example]
    segments = Segments.of(group)
    nothing = np.zeros(len(group), dtype=bool)
    sums = sums_of(table, formula.all_terms, evaluator.cells, units, evaluator.reading)
    own = values_of(formula, estimator, table, sums)
    everything = pooled(sums, segments, nothing, "overall")
    all_others = pooled(sums, segments, nothing, "rest")
    weight = np.where(own.n[:, 0] > 0, own.weight[:, 0], 0.0)
    units_left_out = _LeftOut.of(segments, weight)

    def influence_with(added: Mapping[str, Array]) -> tuple[Floats, Floats, Floats]:
        """The values of groups with some rows more, and the influence of units on them, and on their scale."""
        per_unit = {name: np.repeat(values, segments.sizes, axis=0) for name, values in added.items()}
        value, without = (
            values_of(formula, estimator, table, with_rows_added(own_sums, per_unit)).estimate
            for own_sums in (everything, all_others)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            change, on_scale = value - without, scale.transform(value) - scale.transform(without)
            return value[segments.starts], units_left_out.influence(change), units_left_out.influence(on_scale)

    added = _added(evaluator, table, formula, index, _mean_square(segments, own.weight[:, 0]))
    # an error that is rare widens limits; it is no part of what has been seen to vary
    is_of_limits = added is not None and table.kind == "numeric"
    centre, influence, on_scale = influence_with({} if added is None or is_of_limits else added.sums)
    of_added = 0.0 if added is None else added.variance(table, formula, estimator)
    error = np.sqrt(units_left_out.variance(influence) + (0.0 if is_of_limits else of_added))
    # what has not been seen to vary says nothing about how far it varies
    error = np.where(error > _ROUNDED * np.abs(centre), error, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        in_errors = influence / np.repeat(error, segments.sizes, axis=0)
    if added is None:
        spread = np.sqrt(units_left_out.variance(on_scale))
    elif is_of_limits:
        centre, influence, _ = influence_with(added.sums)
        with_unseen = np.sqrt(units_left_out.variance(influence) + of_added)
        # an error of 0 has no product with the slope at an end of the range, which is infinite
        spread = np.where(np.isnan(error), np.nan, with_unseen) * scale.slope(centre)
    else:
        spread = error * scale.slope(centre)
    spread = np.where(np.isnan(error), np.nan, spread)
    return Deviations(centre, error, spread, np.broadcast_to(units_left_out.freedom, centre.shape), {}, in_errors)


def _added(
    evaluator: Evaluator, table: Table, formula: Formula, index: GroupIndex, cluster: Floats
) -> _AddedRows | Unseen | None:
    """The parts of rows that are added to groups whose clusters have some weight; None for none."""
    if table.kind == "class":
        # a row that is added has no quantity that compares it with others
        return None if formula.all_terms else _AddedRows.of(evaluator, formula, index, cluster)
    if table.kind == "survival":
        return unseen_outcomes(evaluator, table, formula, index)
    if table.kind == "prob":
        return unseen_events(evaluator, table, formula, index) if counts_all_events(formula) else None
    return unseen_errors(evaluator, table, formula, index) if is_of_squares(formula) else None


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """The parts or clusters of groups, which are left out one at a time, by their share of the weight of the group."""

    segments: Segments
    share: Floats
    count: Floats

    @classmethod
    def of(cls, segments: Segments, weight: Floats) -> _LeftOut:
        """Units with some weights."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            share = (weight / segments.to_rows(segments.sum(weight)))[:, None]
        return cls(segments, share, segments.sum((share > 0).astype(float)))

    def influence(self, change: Array) -> Array:
        """The influence of units on values, from what these lose without them; the squares add up to the variance."""
        import numpy as np

        present = self.share > 0
        own = np.where(present, change, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, factor = self.segments.sum(own) / self.count, np.sqrt((self.count - 1) / self.count)
        return np.where(present, own - self._repeated(mean), 0.0) * self._repeated(factor)

    def variance(self, influence: Array) -> Floats:
        """The variance of values; nan where there is a single unit."""
        import numpy as np

        return np.where(self.count > 1, self.segments.sum(influence**2), np.nan)

    @property
    def freedom(self) -> Floats:
        """The degrees of freedom of the variance: of units of equal weight, their number less one.

        Of others the geometric mean of the effective number (Kish, 1965) less one, which is too large, and of what
        normal values have by Satterthwaite (Bell and McCaffrey, 2002), which is too small.
        """
        import numpy as np

        add, share = self.segments.sum, self.share
        squares = add(share**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            # squares of normal values less their mean, over what is expected of them
            own = share**2 / (1 - 2 * share + self._repeated(squares))
            own = np.where(share > 0, own, 0.0)
            # which covary, because the mean is of all of them
            middle = share - self._repeated(squares) / 2
            pairs = add(own) * add(own * middle**2) + add(own * middle) ** 2 - 2 * add((own * middle) ** 2)
            of_normal = squares**2 / (add(share**4) + 2 * pairs)
            return np.fmax(np.sqrt(of_normal * (1 / squares - 1)), 1)

    def _repeated(self, values: Array) -> Array:
        """Values of groups as those of their units."""
        import numpy as np

        return np.repeat(values, self.segments.sizes, axis=0)


def _mean_square(segments: Segments, weight: Floats) -> Floats:
    """The weight that a row or cluster of each group has, weighted by itself."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(segments.sum(weight**2) / segments.sum(weight))


# Rows of labels


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of true and predicted labels, and what a row with them adds to the counts of labels."""

    truth: Array
    estimate: Array
    added: Array
    """The rows that are added to each pair."""
    counts: Mapping[str, Array]
    """The counts of one row: arrays of pairs by labels, by name."""

    @property
    def are_many(self) -> bool:
        """True where rows of each pair are too many to be left out one pair after the other."""
        return not self.added.any() and len(self.truth) > _MOST_LABELS_WITH_ADDED_ROWS**2


def _pairs(formula: Formula, evaluator: Evaluator, observed: set[tuple[int, int]]) -> _Pairs:
    """All pairs of labels that occur, and those to which rows are added."""
    import numpy as np

    levels = evaluator.reading.levels
    labels, positions = _read_labels(evaluator)
    complete: list[tuple[int, int]] = []
    if labels <= _MOST_LABELS_WITH_ADDED_ROWS:
        true = range(labels) if "truth" in formula.reads else [-1]
        predicted = range(labels) if "estimate" in formula.reads else [-1]
        complete = [(one, other) for one in true for other in predicted]
    pairs = [*complete, *sorted(observed - {*complete})]
    truth, estimate = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    all_complete = bool((truth >= 0).all() and (estimate >= 0).all())
    read = [positions[level] for level in levels]
    counting = LabelCounts(truth, estimate, np.arange(len(pairs)), len(pairs), read, all_complete)
    one_row = np.ones(len(pairs))
    counts = counting.of(one_row)
    if evaluator.reading.steps:
        counts |= counting.steps(one_row)
    added = np.zeros(len(pairs))
    added[: len(complete)] = _ADDED_ROWS / max(1, len(complete))
    return _Pairs(truth, estimate, added, {name: values.T for name, values in counts.items()})


def _read_labels(evaluator: Evaluator) -> tuple[int, dict[int, int]]:
    """The number of labels that are told apart, and the position of each that is read; one and the rest are two."""
    levels = evaluator.reading.levels
    if len(levels) == 1:
        return 2, {levels[0]: 0}
    return evaluator.reading.labels, {level: level for level in levels}


def _codes(evaluator: Evaluator, labels: Array) -> Array:
    """The labels of cells as they are told apart."""
    import numpy as np

    levels = evaluator.reading.levels
    if len(levels) > 1:
        return labels.astype(np.int64)
    return np.where(labels < 0, -1, np.where(labels == levels[0], 0, 1)).astype(np.int64)


def _pair_weights(evaluator: Evaluator, formula: Formula, index: GroupIndex) -> tuple[_Pairs, Floats, Floats]:
    """The pairs of labels, and the weights and squared weights of their rows: arrays of groups by pairs."""
    import numpy as np

    cells = evaluator.cells
    truth, estimate = _codes(evaluator, cells.truth), _codes(evaluator, cells.estimate)
    if "truth" not in formula.reads:
        truth = np.full_like(truth, -1)
    if "estimate" not in formula.reads:
        estimate = np.full_like(estimate, -1)
    # missing labels are -1
    height = 2 + max(evaluator.reading.labels, 1)
    pair_code = (truth + 1) * height + estimate + 1
    occurring = [divmod(code, height) for code in np.unique(pair_code).tolist()]
    pairs = _pairs(formula, evaluator, {(one - 1, other - 1) for one, other in occurring})
    position = np.zeros(height**2, dtype=np.int64)
    position[(pairs.truth + 1) * height + pairs.estimate + 1] = np.arange(len(pairs.truth))
    shape = (len(index), len(pairs.truth))
    code = index.of_cell * shape[1] + position[pair_code]

    def summed(measure: Array) -> Floats:
        return np.bincount(code, measure.astype(np.float64), shape[0] * shape[1]).reshape(shape).astype(np.float64)

    return pairs, summed(cells.measure("w")), summed(cells.measure("w2"))


@dataclass(frozen=True, eq=False)
class _AddedRows:
    """Rows that are added to clusters: a part of a row in each cell, and of a cluster in an empty one."""

    pairs: _Pairs
    total: Floats
    """The weight of all rows with each pair of labels."""
    added: Floats
    """The weight that is added to each pair, and of one such row."""
    each: Floats
    row: Floats
    """The weight of a row of each group."""

    @classmethod
    def of(cls, evaluator: Evaluator, formula: Formula, index: GroupIndex, cluster: Floats) -> _AddedRows:
        """The rows that are added to groups with clusters of some weight."""
        import numpy as np

        pairs, weight, square = _pair_weights(evaluator, formula, index)
        with np.errstate(divide="ignore", invalid="ignore"):
            row = np.nan_to_num(square.sum(axis=1) / weight.sum(axis=1))[:, None]
        each = np.where(weight > 0, row, cluster[:, None])
        added = pairs.added * each
        return cls(pairs, weight + added, added, each, row)

    @property
    def sums(self) -> dict[str, Array]:
        """The counts of labels that they add, in weights and in squared weights."""
        sums = {name: self.added @ counts for name, counts in self.pairs.counts.items()}
        return sums | {name + SQUARES: values * self.row for name, values in sums.items()}

    def variance(self, table: Table, formula: Formula, estimator: str) -> Floats:
        """The variance that they add: that of the rows of a cell, left out together."""
        import numpy as np

        if not self.added.any():
            return np.zeros((len(self.total), 1))
        changes = _changes(self.total, self.added, self.row, self.pairs, table, formula, estimator)
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = (self.added / self.each)[:, :, None]
            squares = np.where(rows > 0, changes**2 / rows, 0.0)
        return squares.sum(axis=1)


def _changes(
    total: Floats, left_out: Floats, row: Floats, pairs: _Pairs, table: Table, formula: Formula, estimator: str
) -> Floats:  # fmt: skip
    """The changes of values when some rows of a pair of labels are left out: groups by pairs by labels."""
    import numpy as np

    sums = {name: total @ counts for name, counts in pairs.counts.items()}
    value = values_of(formula, estimator, table, _as_rows(sums, row)).estimate
    groups, count = total.shape
    without = {
        name: (sums[name][:, None, :] - left_out[:, :, None] * counts).reshape(groups * count, -1)
        for name, counts in pairs.counts.items()
    }
    changed = values_of(formula, estimator, table, _as_rows(without, row)).estimate
    with np.errstate(invalid="ignore"):
        return value[:, None, :] - changed.reshape(groups, count, -1)


def _derivatives(
    sums: Mapping[str, Array], value: Floats, row: Floats, pairs: _Pairs, table: Table, formula: Formula, estimator: str
) -> Floats:
    """The changes of values for a little more of each pair of labels: groups by pairs by labels.

    A pair changes the counts of its labels, so that it is enough to know what each count of a label changes (the
    infinitesimal jackknife: Jaeckel, 1972).
    """
    import numpy as np

    groups, labels = next(iter(sums.values())).shape
    by_label = value.shape[1] == labels
    influence = np.zeros((groups, len(pairs.truth), value.shape[1]))
    for name, counts in pairs.counts.items():
        step = _STEP * np.maximum(sums[name], 1)
        if by_label:
            high, low = ({**sums, name: sums[name] + away} for away in (step, -step))
        else:
            # one label after the other
            repeated = {other: np.repeat(values, labels, axis=0) for other, values in sums.items()}
            shift = (step[:, :, None] * np.eye(labels)).reshape(groups * labels, labels)
            high, low = ({**repeated, name: repeated[name] + away} for away in (shift, -shift))
        above, below = (
            values_of(formula, estimator, table, _as_rows(moved, row)).estimate.reshape(groups, labels)
            for moved in (high, low)
        )
        derivative = np.where(sums[name] > 0, (above - below) / (2 * step), 0.0)
        influence += derivative[:, None, :] * counts if by_label else (derivative @ counts.T)[:, :, None]
    return influence


def _of_label_rows(
    evaluator: Evaluator, table: Table, formula: Formula, estimator: str, index: GroupIndex, scale: Scale
) -> Deviations:
    """Deviations by leaving out one row of labels at a time: the same for all rows of a cell."""
    import numpy as np

    pairs, weight, square = _pair_weights(evaluator, formula, index)
    shape = weight.shape
    parts: list[Deviations] = []
    labels = len(evaluator.reading.levels)
    one_value = pairs.are_many and estimator not in ONE_LABEL
    of_group = max(shape[1] * (1 if one_value else labels), labels**2)
    step = max(1, _MOST_NUMBERS // max(1, of_group * len(pairs.counts)))
    for start in range(0, shape[0], step):
        own = slice(start, start + step)
        parts.append(_of_counts(weight[own], square[own], pairs, table, formula, estimator, scale))
    counts: dict[str, Floats] = {}
    if not evaluator.cells.weighted and formula.reads == frozenset({"truth", "estimate"}):
        counts = {name: weight @ pairs.counts[name] for name in CELLS}
    return Deviations(
        np.concatenate([part.centre for part in parts]),
        np.concatenate([part.error for part in parts]),
        np.concatenate([part.spread for part in parts]),
        np.concatenate([part.freedom for part in parts]),
        counts,
    )


def _of_counts(
    weight: Floats, square: Floats, pairs: _Pairs, table: Table, formula: Formula, estimator: str, scale: Scale
) -> Deviations:
    """Deviations from the weights of the rows with each pair of labels, and their squares: groups by pairs."""
    import numpy as np

    complete = _complete(pairs, formula)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = weight[:, complete].sum(axis=1) ** 2 / square[:, complete].sum(axis=1)
        each = np.nan_to_num(square[:, complete].sum(axis=1) / weight[:, complete].sum(axis=1))[:, None]
        of_pair = np.where(weight > 0, square / weight, each)
    total = weight + pairs.added * each
    squares = square + pairs.added * each**2
    left_out = np.minimum(of_pair, total / 2)
    sums = {name: total @ counts for name, counts in pairs.counts.items()}
    value = values_of(formula, estimator, table, _as_rows(sums, each)).estimate
    with np.errstate(divide="ignore", invalid="ignore"):
        if pairs.are_many:
            influence = _derivatives(sums, value, each, pairs, table, formula, estimator)
        else:
            influence = _changes(total, left_out, each, pairs, table, formula, estimator) / left_out[:, :, None]
        influence = np.where(total[:, :, None] > 0, influence, 0.0)
        size = total.sum(axis=1) ** 2 / squares.sum(axis=1)
        mean = (total[:, :, None] * influence).sum(axis=1) / size[:, None]
        variance = (squares[:, :, None] * influence**2).sum(axis=1) - size[:, None] * mean**2
        # few heavy rows may agree by luck: no less than if weights told nothing of what they are of
        even = (total * (squares.sum(axis=1) / total.sum(axis=1))[:, None])[:, :, None]
        variance = np.maximum(variance, (even * influence**2).sum(axis=1) - size[:, None] * mean**2)
        error = np.sqrt(variance.clip(0) * (size / (size - 1))[:, None])
        # a value that no row changes has not been seen to vary
        error = np.where(error > _ROUNDED * np.abs(value), error, np.nan)
        spread = error * scale.slope(value)
    freedom = np.broadcast_to((effective - 1)[:, None], error.shape)
    return Deviations(value, error, spread, freedom, {})


def _complete(pairs: _Pairs, formula: Formula) -> Array:
    """The pairs of rows that have what a formula reads, as a mask."""
    import numpy as np

    complete = np.ones(len(pairs.truth), dtype=bool)
    for side, labels in (("truth", pairs.truth), ("estimate", pairs.estimate)):
        if side in formula.reads:
            complete &= labels >= 0
    return complete


def _as_rows(sums: Mapping[str, Array], row: Floats) -> dict[str, Array]:
    """Counts of labels under the names of counts of rows, with the weight of a row of each group."""
    import numpy as np

    counts = {name + ROWS: values for name, values in sums.items()}
    times = len(next(iter(sums.values()))) // max(1, len(row))
    return counts | {"row_weight": np.repeat(row, times, axis=0)}
