"""Values from labels of people for some rows and of a judge for all rows, and how each row moves them.

A value is that of the labels of people, less a part of how far the value of the judge on the same rows is from that on
all others (Angelopoulos, Duchi and Zrnic, 2023, PPI++). That part, the power, is between 0, for the labels of people
alone, and 1; the one with the least variance is taken. The distance is that from the value on all rows over the share
of rows without a label by people, so that labels may also be drawn with unequal probabilities. All are functions of
sums of the cells of a tally, and so are the influences of cells, of which power and variance are made.

Groups may have been labeled at different rates. In the rest of the groups, or all of them together, each labeled row
therefore stands for as many rows of its group as there are for each label (poststratification: Holt and Smith, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidyfair.errors import ArgumentError, LabelError, Status, listed
from tidyfair.evaluation.evaluator import Evaluator, RequestedFormula, Values, values_of
from tidyfair.evaluation.group_cells import number_group_cells
from tidyfair.evaluation.group_index import GroupIndex, KeyCodes
from tidyfair.evaluation.ranked_rows import Scope
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
FEWEST_LABELS = 2
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
    """The values by the labels of the judge, on the rows that people labeled."""
    judge: Floats
    """The values by the labels of the judge on all rows."""
    error: Floats
    """Distance of the values of the judge on the rows that people labeled from those on all others; 0 if unknown."""
    of_people: Floats
    """What each unit adds to the values by people."""
    of_error: Floats
    group: Integers
    size: Floats
    """The effective number of independent rows of each unit."""
    is_labelled: Booleans
    labelled_share: Floats
    """The share of the rows of each group that people labeled."""
    denominator: Floats
    """The rows with labels by people that values are of."""
    unit: Integers
    """The number of each unit, which is the same in all values that it is part of."""
    given_power: Floats | None = None
    """The weight of the judge, if it is not the one with the least variance."""

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
        if self.given_power is not None:
            return self.given_power
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
        variance, alone = self.variances
        return np.where(alone > 0, variance / np.where(alone > 0, alone, 1.0), 1.0).clip(max=1)

    @property
    def labels_worth(self) -> Floats:
        """The rows that people would have to label for values by them alone that vary as little."""
        return self.denominator / self.ratio

    @property
    def labelled_rows(self) -> Floats:
        """The effective number of independent rows that people labeled."""
        return self.segments.sum(np.where(self.is_labelled, self.size, 0.0))[:, None]

    @cached_property
    def variances(self) -> tuple[Floats, Floats]:
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
        for context in self._contexts.get(formula, ()):
            of_context = [self.judged(requested, by, context) for by in self.group_cells.spans]
            known = [np.where(own.denominator < FEWEST_LABELS, np.nan, own.value) for own in of_context]
            values = values.beside(context, np.concatenate(known).clip(least, most))
        few = np.broadcast_to(values.denominator, estimate.shape) < FEWEST_LABELS
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
        if self.tally.judge is not None and self.tally.lacks_labels_of_judge:
            msg = (
                f"`judged`: {self.tally.judge.column.name!r} has no value in any row without a label by people; give "
                "labels of the judge for all rows, or leave `judged` out."
            )
            raise ArgumentError(msg)
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
        """Values that were computed, by formula, feature and scope."""
        return {}

    def judged(self, requested: RequestedFormula, by: By | None, scope: Scope = "own") -> JudgedValues:
        """The values of a formula in the groups of a feature, or in what each of them is compared with."""
        key = (requested.formula, requested.average, by, scope)
        if key not in self._judged:
            self._judged[key] = self._linearized(requested, by, scope)
        return self._judged[key]

    def share_power(self, other: JudgedEvaluator) -> None:
        """Give the judge the weight in all values, and in those of another model, that suits their change."""
        for requested in self.tables:
            by = self.specs[requested.spec].by
            for scope in ("own", *self._contexts.get(requested.formula, ())):
                change = other.judged(requested, by, scope).less(self.judged(requested, by, scope))
                for evaluator in (self, other):
                    own = evaluator.judged(requested, by, scope)
                    key = (requested.formula, requested.average, by, scope)
                    evaluator._judged[key] = replace(own, given_power=change.power)  # noqa: SLF001 - of the same class

    @np.errstate(divide="ignore", invalid="ignore")
    def _linearized(self, requested: RequestedFormula, by: By | None, scope: Scope) -> JudgedValues:
        """The same, from the values of all sources and what rows with the same labels add to each."""
        formula, average, people = requested.formula, requested.average, self.sources[0]
        # rows with the same labels by all, and the same cluster, which the sources have in the same order
        names = [f"k{index}" for index, key in enumerate(people.tally.keys) if key.role in {"judged", "cluster"}]
        codes, index = KeyCodes(people.tally.cells), people.group_cells.indices[by]
        units = codes.index([*names, ESTIMATE], within=index)
        strata = _Strata.of(people, units, by, scope)
        group, unit = strata.value, strata.unit
        # labels that were drawn with known probabilities have weights already
        is_weighted = scope != "own" and (self.tally.judge is None or self.tally.judge.probability is None)
        values: list[Floats] = []
        changes: list[Floats] = []
        # what does not read the truth is from all rows
        sources = self.sources if "truth" in formula.reads else [self.sources[2]] * 3
        for source, of in zip(sources, SOURCES, strict=True):
            index = source.group_cells.indices[by]
            units_of_source = KeyCodes(source.tally.cells).index([*names, ESTIMATE], within=index)
            sums = sums_of(formula.table(average), formula.all_terms, source.cells, units_of_source, source.reading)
            is_of_labelled = is_weighted and of != "judge of all"
            sums = {name: own[unit] for name, own in sums.items()}
            if is_of_labelled:
                sums = {name: (own.T * strata.rows_of_label).T for name, own in sums.items()}
            value, change = derivatives(formula, average, sums, strata.segments)
            total, most = (strata.segments.sum(own) for own in (change, np.abs(change)))
            if (np.abs(total) > _ROUNDED * (most + 1)).any():
                msg = (
                    f"`judged`: {requested.name} depends on the number of rows, of which people labeled some; leave "
                    "`judged` out, or take a rate."
                )
                raise ArgumentError(msg)
            values.append(value)
            changes.append(strata.poststratified(change) if is_of_labelled else change)
        size, is_labelled, segments = strata.size, strata.is_labelled, strata.segments
        share = (segments.sum(np.where(is_labelled, size, 0.0)) / segments.sum(size))[:, None]
        first, count = self.group_cells.spans[by]
        error = (values[1] - values[2]) / (1 - share)
        # a judge without a value in a group, or without other rows, says nothing about it
        is_known = np.isfinite(error)
        to_rows = segments.to_rows
        of_error = np.where(to_rows(is_known), (changes[1] - changes[2]) / to_rows(1 - share), 0.0)
        denominator = people.values(requested).denominator[first : first + count]
        judged = JudgedValues(
            people=values[0], judge_labelled=values[1], judge=values[2], error=np.where(is_known, error, 0.0),
            of_people=changes[0], of_error=of_error, group=group, size=size, is_labelled=is_labelled, unit=unit,
            labelled_share=share, denominator=strata.pooled(denominator),
        )  # fmt: skip
        if self.tally.cluster_names:
            return _in_clusters(judged, codes.index(self.tally.cluster_names).of_cell[units.example][unit])
        # from what rows with the same labels add together to the root of the sum of what each adds, squared
        root = np.sqrt(judged.size)[:, None]
        return replace(judged, of_people=judged.of_people / root, of_error=judged.of_error / root)


@dataclass(frozen=True, eq=False)
class _Strata:
    """The units that each value is of, in the strata of their groups: sorted by value and unit."""

    value: Integers
    unit: Integers
    group: Integers
    weight: Floats
    size: Floats
    """The effective number of independent rows of each unit."""
    is_labelled: Booleans
    is_empty: Booleans
    """Mask of the values that no group is part of."""
    segments: Segments
    """The units of each value."""
    strata: Segments
    """The units of each value that are of the same group."""

    @classmethod
    def of(cls, people: Evaluator, units: GroupIndex, by: By | None, scope: Scope) -> _Strata:
        """The units of the groups of a feature that each value is of; of several groups, of those with some label."""
        weight, square = (
            np.bincount(units.of_cell, people.cells.measure(name), len(units)).astype(float) for name in ("w", "w2")
        )
        size, is_labelled = np.where(square > 0, weight**2 / square, 1.0), people.cells.truth[units.example] >= 0
        first, groups = people.group_cells.spans[by]
        group = people.group_cells.indices[by].of_cell[units.example]
        value, unit, is_empty = group, np.arange(len(group)), np.zeros(groups, dtype=bool)
        if scope != "own":
            # all units of the outer group of each value, which stand together
            outer = people.group_cells.outer[first : first + groups]
            starts, ends = (np.searchsorted(outer[group], outer, side=side) for side in ("left", "right"))
            value = np.repeat(np.arange(groups), ends - starts)
            unit = np.arange(len(value)) + np.repeat(ends - np.cumsum(ends - starts), ends - starts)
            is_own = group[unit] == value
            has_label = np.bincount(group, is_labelled, groups) > 0
            is_known = has_label & ~people.group_cells.excluded[first : first + groups]
            pooled = is_known[group[unit]] & (~is_own if scope == "rest" else True)
            is_empty = np.bincount(value, pooled, groups) == 0
            # in place of nothing stands the group itself, as all values have units
            kept = pooled | (is_own & is_empty[value])
            value, unit = value[kept], unit[kept]
        return cls(
            value, unit, group[unit], weight[unit], size[unit], is_labelled[unit], is_empty, Segments.of(value),
            Segments.of(value, group[unit]),
        )  # fmt: skip

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        """The weight of the labeled rows of the stratum of each unit, and of all of its rows."""
        of_labelled = np.where(self.is_labelled, self.weight, 0.0)
        labelled, every = (self.strata.to_rows(self.strata.sum(own)) for own in (of_labelled, self.weight))
        return labelled, every

    @property
    def rows_of_label(self) -> Floats:
        """The rows that a labeled row stands for."""
        labelled, every = self._weights
        return np.where(self.is_labelled, every / labelled, 1.0)

    def poststratified(self, change: Floats) -> Floats:
        """Contributions of units to values whose labels are weighted by the rows of their stratum for each label."""
        labelled, every = self._weights
        share = self.weight / every - np.where(self.is_labelled, self.weight / labelled, 0.0)
        return change + share[:, None] * self.strata.to_rows(self.strata.sum(change))

    def pooled(self, counts: Array) -> Array:
        """The sums of the counts of the groups that are pooled in each value."""
        first = self.strata.starts
        sums = np.zeros_like(counts)
        np.add.at(sums, self.value[first], counts[self.group[first]])
        sums[self.is_empty] = 0
        return sums


def _in_clusters(judged: JudgedValues, cluster: Integers) -> JudgedValues:
    """The values with the sums of what the units of each cluster add."""
    both, index = np.unique(np.stack([judged.group, cluster]), axis=1, return_inverse=True)
    sums = np.zeros((2, both.shape[1], judged.of_people.shape[1]))
    for total, own in zip(sums, (judged.of_people, judged.of_error), strict=True):
        np.add.at(total, index, own)
    return replace(
        judged, of_people=sums[0], of_error=sums[1], group=both[0], unit=both[1], size=np.ones(len(both[0])),
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
        flat = np.abs(values).reshape(len(nothing), math.prod(values.shape[1:]))
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
