"""Values from labels of people for some rows and of a judge for all rows, and how each row moves them.

A value is that of the labels of people, less a part of how far the value of the judge on the same rows is from that on
all others (Angelopoulos, Duchi and Zrnic, 2023, PPI++). That part, the power, is between 0, for the labels of people
alone, and 1; the one with the least variance is taken. The distance is that from the value on all rows over the share
of rows without a label by people, so that labels may also be drawn with unequal probabilities. All are functions of
sums of the cells of a tally, and so are the influences of cells, of which power and variance are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidyfair.errors import ArgumentError, LabelError, Status, listed
from tidyfair.evaluation.evaluator import Evaluator, RequestedFormula, Values, values_of
from tidyfair.evaluation.group_cells import number_group_cells
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.statistics import pooled, sums_of
from tidyfair.specs import Array, Average, Booleans, By, Floats, Integers, Segments
from tidyfair.specs.formulas import Formula
from tidyfair.tallies import ESTIMATE, HIDDEN, SOURCES, reduction_of

JUDGED = {
    ".people": "people", ".judge_labelled": "judge_labelled", ".judge": "judge", ".judge_weight": "power",
    ".labels_worth": "labels_worth", ".labelled_share": "labelled_share",
}  # fmt: skip
"""The columns of groups with labels of a judge, and what they show of values."""
_STEP = 1e-3
"""The part of a sum by which it is moved for a derivative, and by half as much again."""
_FEWEST_LABELS = 2
"""With fewer labels of people, a group has no value."""
_ROUNDED = 1e-6
"""The influences of all rows on a value that does not depend on their number add up to a smaller part of them."""


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """Values of a formula in groups, from labels of people and of a judge, and what units add to them.

    Values are arrays of groups by labels. Units are rows of a cell, or clusters, sorted by group; what they add are
    arrays of units by labels, whose squares add up to variances.
    """

    people: Floats
    """The values by the labels of people alone."""
    judge_labelled: Floats
    """The values by the labels of the judge, on the rows that people labelled."""
    judge: Floats
    """The values by the labels of the judge on all rows."""
    error: Floats
    """How far the values of the judge on the rows that people labelled are from those on all others; 0 if unknown."""
    of_people: Floats
    """What each unit adds to the values by people."""
    of_error: Floats
    group: Integers
    size: Floats
    """The number of independent rows of each unit, in effect."""
    is_labelled: Booleans
    labelled_share: Floats
    """The share of the rows of each group that people labelled."""
    denominator: Floats
    """The rows with labels by people that values are of."""
    cluster: Integers | None = None
    """The cluster that each unit is; None where rows are independent."""

    def less(self, other: JudgedValues) -> JudgedValues:
        """The changes from other values of the same units."""
        names = ("people", "judge", "error", "of_people", "of_error")
        return replace(self, **{name: getattr(self, name) - getattr(other, name) for name in names})

    def at(self, power: Floats) -> Floats:
        """The values with some weight of the judge."""
        return self.people - power * self.error

    @property
    def value(self) -> Floats:
        """The values with the power that has the least variance."""
        return self.at(self.power)

    @cached_property
    def segments(self) -> Segments:
        """The units of each group."""
        return Segments.of(self.group)

    @cached_property
    def power(self) -> Floats:
        """The weight of the judge, from 0 to 1: the slope of the influences of people on those of the judge."""
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = self.segments.sum(self.of_people * self.of_error) / self.segments.sum(self.of_error**2)
        return np.nan_to_num(slope).clip(0, 1)

    @property
    def influence(self) -> Floats:
        """What each unit adds to the values."""
        return self.of_people - self.segments.to_rows(self.power) * self.of_error

    @property
    def ratio(self) -> Floats:
        """The variance over that by people alone, at most 1."""
        variance, alone = self._variances
        return np.where(alone > 0, variance / np.where(alone > 0, alone, 1.0), 1.0).clip(max=1)

    @property
    def labels_worth(self) -> Floats:
        """The rows that people would have to label for values by them alone that vary as little."""
        return self.denominator / self.ratio

    @property
    def variance(self) -> Floats:
        """The variance of values."""
        return self._variances[0]

    @cached_property
    def _variances(self) -> tuple[Floats, Floats]:
        """The variance of values, and of those by people alone, with one more row that has not been seen.

        Its label by people has nothing to do with that by the judge: few rows may agree by luck. The first is larger by
        the degree of freedom that the power takes.
        """
        counts = self.is_labelled[:, None] & (self.of_people != 0)
        rows = self.segments.sum(np.where(counts, self.size[:, None], 0.0))
        units = np.fmax(self.segments.sum(counts.astype(float)), 1)
        more, more_of_error = (
            self.segments.sum(np.where(counts, own**2 / self.size[:, None], 0.0)) / units
            for own in (self.of_people, self.of_error)
        )
        alone = self.segments.sum(self.of_people**2) + more
        variance = self.segments.sum(self.influence**2) + more + self.power**2 * more_of_error
        freedom = np.fmax(rows - 1, 2)
        return variance * np.where(self.power > 0, freedom / (freedom - 1), 1.0), alone


@dataclass(eq=False, repr=False)
class JudgedEvaluator(Evaluator):
    """The values of formulas in the cells of a tally with labels of a judge."""

    def values(self, requested: RequestedFormula) -> Values:
        """The values of a formula; of those that do not read the truth, from all rows."""
        formula = requested.formula
        if "truth" not in formula.reads:
            return super().values(requested)
        if contexts := self._contexts.get(formula):
            msg = (
                f"`judged`: {requested.name} is compared with {listed(contexts)}, in which groups may have been "
                'labelled at different rates; compare with one group, `to="majority"`, or all pairs.'
            )
            raise ArgumentError(msg)
        values = self.sources[0].values(requested)
        of_bys = [self.judged(requested, by) for by in self.group_cells.spans]
        columns: dict[str, Array] = {}
        for name, attribute in {"": "value", **JUDGED}.items():
            arrays = [np.broadcast_to(getattr(judged, attribute), judged.people.shape) for judged in of_bys]
            columns[name] = np.concatenate(arrays)
        estimate = columns.pop("")
        least, most = self.specs[requested.spec].range_of(requested.name)
        for name, column in columns.items():
            values = values.beside(name, column)
        few = np.broadcast_to(values.denominator, estimate.shape) < _FEWEST_LABELS
        reason = np.where(few & ~np.isnan(estimate), Status.TOO_FEW_LABELS.value, values.reason)
        return replace(values, estimate=np.where(few, np.nan, estimate.clip(least, most)), reason=reason)

    @cached_property
    def sources(self) -> list[Evaluator]:
        """The evaluators with the labels of people, of the judge on the same rows, and of the judge on all."""
        labels, others = self.labels, list(self.labels.values)
        event = others.pop(labels.event or 0)
        if HIDDEN in self.tally.cells.columns:
            msg = "`judged`: values need all cells, but some are suppressed; take the data, or a tally of all cells."
            raise ArgumentError(msg)
        if self.tally.has_scores_of_judge and (labels.event is None or not others):
            way_out = "give it as `pos_label=`" if others else "list all labels as `labels=`, not only one"
            msg = f"`judged` holds scores of one event among {listed(labels.values)}: {way_out}."
            raise LabelError(msg)
        evaluators: list[Evaluator] = []
        for source in SOURCES:
            tally = self.tally.labelled_by(source, event, next(iter(others), None))
            group_cells, cells = number_group_cells(tally, labels, list(self.group_cells.indices))
            evaluator = Evaluator(
                tally, labels, group_cells, cells, self.reading, self.specs, self.tables, with_variances=False
            )
            evaluators.append(evaluator)
        return evaluators

    @cached_property
    def _judged(self) -> dict[tuple[object, ...], JudgedValues]:
        """Values that were computed, by formula and feature."""
        return {}

    @np.errstate(divide="ignore", invalid="ignore")
    def judged(self, requested: RequestedFormula, by: By | None) -> JudgedValues:
        """The values of a formula in the groups of a feature."""
        key = (requested.formula, requested.average, by)
        if key not in self._judged:
            self._judged[key] = self._linearized(requested, by)
        return self._judged[key]

    def _linearized(self, requested: RequestedFormula, by: By | None) -> JudgedValues:
        """The same, from the values of all sources and what rows with the same labels add to each."""
        formula, average, people = requested.formula, requested.average, self.sources[0]
        # rows with the same labels by all, and the same cluster, which the sources have in the same order
        names = [f"k{index}" for index, key in enumerate(people.tally.keys) if key.role in {"judged", "cluster"}]
        values: list[Floats] = []
        changes: list[Floats] = []
        # what does not read the truth is from all rows
        sources = self.sources if "truth" in formula.reads else [self.sources[2]] * 3
        for source in sources:
            index = source.group_cells.indices[by]
            units = KeyCodes(source.tally.cells).index([*names, ESTIMATE], within=index)
            sums = sums_of(formula.table(average), formula.all_terms, source.cells, units, source.reading)
            segments = Segments.of(index.of_cell[units.example])
            value, change = derivatives(formula, average, sums, segments)
            if (np.abs(segments.sum(change)) > _ROUNDED * (segments.sum(np.abs(change)) + 1)).any():
                msg = (
                    f"`judged`: {requested.name} depends on the number of rows, of which people labelled some; leave "
                    "`judged` out, or take a rate."
                )
                raise ArgumentError(msg)
            values.append(value)
            changes.append(change)
        codes = KeyCodes(people.tally.cells)
        units = codes.index([*names, ESTIMATE], within=people.group_cells.indices[by])
        group = people.group_cells.indices[by].of_cell[units.example]
        weight, square = (np.bincount(units.of_cell, people.cells.measure(name), len(units)) for name in ("w", "w2"))
        size, is_labelled = np.where(square > 0, weight**2 / square, 1.0), people.cells.truth[units.example] >= 0
        segments = Segments.of(group)
        share = (segments.sum(np.where(is_labelled, size, 0.0)) / segments.sum(size))[:, None]
        first, count = self.group_cells.spans[by]
        error = (values[1] - values[2]) / (1 - share)
        # a judge without a value in a group, or without other rows, says nothing about it
        is_known = np.isfinite(error)
        of_error = np.where(is_known[group], (changes[1] - changes[2]) / (1 - share)[group], 0.0)
        judged = JudgedValues(
            people=values[0], judge_labelled=values[1], judge=values[2], error=np.where(is_known, error, 0.0),
            of_people=changes[0], of_error=of_error, group=group, size=size, is_labelled=is_labelled,
            labelled_share=share, denominator=people.values(requested).denominator[first : first + count],
        )  # fmt: skip
        if self.tally.cluster_names:
            return _in_clusters(judged, codes.index(self.tally.cluster_names).of_cell[units.example])
        # from what rows with the same labels add together to the root of the sum of what each adds, squared
        root = np.sqrt(judged.size)[:, None]
        return replace(judged, of_people=judged.of_people / root, of_error=judged.of_error / root)


def _in_clusters(judged: JudgedValues, cluster: Integers) -> JudgedValues:
    """The values with the sums of what the units of each cluster add."""
    both, index = np.unique(np.stack([judged.group, cluster]), axis=1, return_inverse=True)
    sums = np.zeros((2, both.shape[1], judged.of_people.shape[1]))
    for total, own in zip(sums, (judged.of_people, judged.of_error), strict=True):
        np.add.at(total, index, own)
    return replace(
        judged, of_people=sums[0], of_error=sums[1], group=both[0], cluster=both[1], size=np.ones(len(both[0])),
        is_labelled=np.bincount(index, judged.is_labelled) > 0,
    )  # fmt: skip


def derivatives(
    formula: Formula, average: Average, sums: Mapping[str, Array], segments: Segments
) -> tuple[Floats, Floats]:
    """The values of groups, and what each unit adds to them: the derivative by its weight (Richardson, 1911)."""
    nothing = np.zeros(int(segments.sizes.sum()), dtype=bool)
    everything = pooled(sums, segments, nothing, "overall")
    others = pooled(sums, segments, nothing, "rest")
    own = {name: everything[name] - others[name] for name in everything if reduction_of(name) == "sum"}
    share = np.zeros(len(nothing))
    for values in own.values():
        flat = np.abs(values).reshape(len(nothing), -1)
        total = segments.to_rows(segments.sum(flat))
        share = np.fmax(share, np.nan_to_num(flat / total).max(axis=1, initial=0.0))

    def value_with(step: Floats) -> Floats:
        """The values of groups with a little more, or less, of a unit."""
        steps = {name: step.reshape(-1, *[1] * (values.ndim - 1)) for name, values in own.items()}
        moved = {name: everything[name] + values * steps[name] for name, values in own.items()}
        return values_of(formula, average, everything | moved).estimate

    def slope(part: float) -> Floats:
        """The change for a unit of weight, from moving sums by a part to both sides."""
        step = np.where(share > 0, part / share, 0.0)
        return np.where(step[:, None] > 0, (value_with(step) - value_with(-step)) / (2 * step[:, None]), 0.0)

    value = values_of(formula, average, everything).estimate
    change = (4 * slope(_STEP / 2) - slope(_STEP)) / 3
    return value[segments.starts], np.where(np.isnan(value), 0.0, change)
