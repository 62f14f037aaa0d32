"""Values from labels of people for some rows and of a judge for all rows, and how each row moves them.

A value is that of the labels of people, corrected by how far the value of the judge on the same rows is from that on
all rows: people - power * (judge - judge of all). The power is between 0, for the labels of people alone, and 1; the
one with the least variance is taken (Angelopoulos, Duchi and Zrnic, 2023, PPI++). All three are functions of sums of
the cells of a tally, and so are the influences of cells, of which power and variance are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tidyfair.errors import ArgumentError, LabelError, Status, listed
from tidyfair.evaluation.evaluator import Evaluator, RequestedFormula
from tidyfair.evaluation.group_cells import number_group_cells
from tidyfair.evaluation.group_index import GroupIndex, KeyCodes
from tidyfair.evaluation.statistics import pooled, sums_of
from tidyfair.evaluation.values import Values, values_of
from tidyfair.specs import Array, Average, By, Floats, Integers, Segments
from tidyfair.specs.formulas import Formula
from tidyfair.tallies import ESTIMATE, HIDDEN, is_centre, is_end

_STEP = 1e-3
"""The part of a sum by which it is moved for a derivative, and by half as much again."""
_FEWEST_LABELS = 2
"""With fewer labels of people, a group has no value."""
_ROUNDED = 1e-6
"""The influences of all rows on a value that does not depend on their number add up to a smaller part of them."""


@dataclass(frozen=True, eq=False)
class Powered:
    """Values of a formula in groups, from labels of people and of a judge: arrays of groups by labels."""

    value: Floats
    people: Floats
    """The values by the labels of people alone."""
    judge: Floats
    """The values by the labels of the judge on the same rows."""
    judge_of_all: Floats
    power: Floats
    """The weight of the judge, from 0 to 1."""
    variance: Floats
    variance_of_people: Floats
    """The variance by the labels of people alone."""
    ratio: Floats
    """The variance over that by people alone, with one more row that nobody has seen."""
    rows: Floats
    """The rows with labels by people that the values are of; with weights, in effect."""
    labelled: Floats
    """The units that people labelled in each group."""
    influence: Floats
    """What each unit adds to values: an array of units by labels."""
    group: Integers
    """The group of each unit."""
    cluster: Integers | None
    """The cluster that each unit is; None where units are rows of a cell, which are independent."""


@dataclass(eq=False, repr=False)
class JudgedEvaluator(Evaluator):
    """The values of formulas in the cells of a tally with labels of a judge."""

    SOURCES: ClassVar[tuple[Any, ...]] = ("people", "judge", "judge of all")

    def values(self, requested: RequestedFormula) -> Values:
        """The values of a formula; of those that do not read the truth, from all rows."""
        formula = requested.formula
        if "truth" not in formula.reads:
            return super().values(requested)
        if HIDDEN in self.tally.cells.columns:
            msg = "`judged`: values need all cells, but some are suppressed; take the data, or a tally of all cells."
            raise ArgumentError(msg)
        if contexts := self._contexts.get(formula):
            msg = (
                f"`judged`: {requested.name} is compared with {listed(contexts)}, in which groups may have been "
                'labelled at different rates; compare with one group, `to="majority"`, or all pairs.'
            )
            raise ArgumentError(msg)
        values = self.sources[0].values(requested)
        estimate = np.full(values.estimate.shape, np.nan)
        for by, (first, size) in self.group_cells.spans.items():
            estimate[first : first + size] = self.powered(requested, by).value
        least, most = self.specs[requested.spec].range_of(requested.name)
        few = np.broadcast_to(values.denominator, estimate.shape) < _FEWEST_LABELS
        reason = np.where(few & ~np.isnan(estimate), Status.TOO_FEW_LABELS.value, values.reason)
        return replace(values, estimate=np.where(few, np.nan, estimate.clip(least, most)), reason=reason)

    @cached_property
    def sources(self) -> list[Evaluator]:
        """The evaluators with the labels of people, of the judge on the same rows, and of the judge on all."""
        labels, others = self.labels, list(self.labels.values)
        event = others.pop(labels.event or 0)
        if self.tally.has_scores_of_judge and labels.event is None:
            msg = f"`judged` holds scores of one event: give it as `pos_label=`, one of {listed(labels.values)}."
            raise LabelError(msg)
        evaluators: list[Evaluator] = []
        for source in self.SOURCES:
            tally = self.tally.labelled_by(source, event, others[0])
            group_cells, cells = number_group_cells(tally, labels, list(self.group_cells.indices))
            reading = replace(self.reading, squares=False)
            evaluators.append(
                Evaluator(tally, labels, group_cells, cells, reading, self.specs, self.tables, with_variances=False)
            )
        return evaluators

    @cached_property
    def _powered(self) -> dict[tuple[object, ...], Powered]:
        """Values that were computed, by formula and feature."""
        return {}

    @np.errstate(divide="ignore", invalid="ignore")
    def powered(self, requested: RequestedFormula, by: By | None) -> Powered:
        """The values of a formula in the groups of a feature."""
        key = (requested.formula, requested.average, by)
        if key not in self._powered:
            self._powered[key] = self._with_power(requested, by)
        return self._powered[key]

    def _with_power(self, requested: RequestedFormula, by: By | None) -> Powered:
        people, judge, everyone = (self._linearized(source, requested, by) for source in self.sources)
        group, labelled, alike, size = self._units(by)
        if self.tally.cluster_names:
            alike = np.ones_like(alike)
        difference = judge[0] - everyone[0]
        # a judge without a value in a group says nothing about it
        known = ~np.isnan(difference)
        of_people, of_judge = people[1] * alike, np.where(known[group], judge[1] - everyone[1], 0.0) * alike
        cluster = None
        if self.tally.cluster_names:
            group, cluster, labelled, (of_people, of_judge) = self._in_clusters(by, group, labelled, of_people, of_judge)
            size = np.ones(len(group))
        segments = Segments.of(group)
        squares, products, squares_of_judge = (
            segments.sum(one * other)
            for one, other in ((of_people, of_people), (of_people, of_judge), (of_judge, of_judge))
        )
        power = np.nan_to_num(products / squares_of_judge).clip(0, 1)
        # one more row, whose label by people has nothing to do with that of the judge
        more, more_of_judge = (
            np.nan_to_num(_mean_square(own, size, labelled, segments)) for own in (of_people, of_judge)
        )
        alone = squares + more
        both = alone - 2 * power * products + power**2 * (squares_of_judge + more_of_judge)
        first, count = self.group_cells.spans[by]
        used = self.sources[0].values(requested)
        return Powered(
            value=people[0] - power * np.where(known, difference, 0.0), people=people[0], judge=judge[0],
            judge_of_all=everyone[0], power=power,
            variance=squares - 2 * power * products + power**2 * squares_of_judge, variance_of_people=squares,
            ratio=np.where(alone > 0, both / alone, 1.0),
            rows=np.broadcast_to(used.denominator, used.estimate.shape)[first : first + count],
            labelled=segments.sum(np.where(labelled, size, 0.0)), influence=of_people - segments.to_rows(power) * of_judge, group=group, cluster=cluster,
        )  # fmt: skip

    def _linearized(self, source: Evaluator, requested: RequestedFormula, by: By | None) -> tuple[Floats, Floats]:
        """The values of groups by the labels of a source, and what each unit adds to them."""
        formula, average = requested.formula, requested.average
        units = self._index_of_units(source, by)
        sums = sums_of(formula.table(average), formula.all_terms, source.cells, units, source.reading)
        group = source.group_cells.indices[by].of_cell[units.example]
        value, change = derivatives(formula, average, sums, Segments.of(group))
        total = np.abs(Segments.of(group).sum(change))
        if (total > _ROUNDED * Segments.of(group).sum(np.abs(change)) + _ROUNDED).any():
            msg = (
                f"`judged`: {requested.name} depends on the number of rows, of which people labelled some; "
                "leave `judged` out, or take a rate."
            )
            raise ArgumentError(msg)
        return value, change

    def _index_of_units(self, source: Evaluator, by: By | None) -> GroupIndex:
        """The rows of a group with the same labels by people, judge and model, and the same cluster, as a unit."""
        names = [f"k{index}" for index, key in enumerate(source.tally.keys) if key.role in {"judged", "cluster"}]
        return KeyCodes(source.tally.cells).index([*names, ESTIMATE], within=source.group_cells.indices[by])

    def _units(self, by: By | None) -> tuple[Integers, Array, Floats, Floats]:
        """The group of each unit, whether it has a label by people, the root of the share of each of its rows in the
        square of its weight, and its rows in effect."""
        people = self.sources[0]
        units = self._index_of_units(people, by)
        weight, square = (np.bincount(units.of_cell, people.cells.measure(name), len(units)) for name in ("w", "w2"))
        labelled = people.cells.truth[units.example] >= 0
        alike = np.where(weight > 0, np.sqrt(square) / weight, 0.0)
        group = people.group_cells.indices[by].of_cell[units.example]
        return group, labelled, alike[:, None], np.where(weight > 0, weight**2 / square, 0.0)

    def _in_clusters(
        self, by: By | None, group: Integers, labelled: Array, *of_units: Floats
    ) -> tuple[Integers, Integers, Array, list[Floats]]:
        """The groups of clusters, these, whether they have labels by people, and the sums of what units add."""
        source = self.sources[0]
        codes, units = KeyCodes(source.tally.cells), self._index_of_units(source, by)
        cluster = codes.index(self.tally.cluster_names).of_cell[units.example]
        both, index = np.unique(group * (int(cluster.max(initial=0)) + 1) + cluster, return_inverse=True)
        sums: list[Floats] = []
        for own in of_units:
            total = np.zeros((len(both), own.shape[1]))
            np.add.at(total, index, own)
            sums.append(total)
        group_of_cluster, cluster_of_cluster = np.divmod(both, int(cluster.max(initial=0)) + 1)
        return group_of_cluster, cluster_of_cluster, np.bincount(index, labelled) > 0, sums


def _mean_square(influence: Floats, size: Floats, labelled: Array, segments: Segments) -> Floats:
    """The mean square of the influences of single rows over the units that people labelled, and that count."""
    counted = labelled[:, None] & (influence != 0)
    of_rows = np.where(counted, influence**2 / size[:, None], 0.0)
    return segments.sum(of_rows) / segments.sum(counted.astype(float))


def derivatives(
    formula: Formula, average: Average, sums: Mapping[str, Array], segments: Segments
) -> tuple[Floats, Floats]:
    """The values of groups, and what each unit adds to them: the derivative by its weight (Richardson, 1911)."""
    nothing = np.zeros(int(segments.sizes.sum()), dtype=bool)
    everything = pooled(sums, segments, nothing, "overall")
    others = pooled(sums, segments, nothing, "rest")
    own = {name: everything[name] - others[name] for name in everything if not (is_centre(name) or is_end(name))}
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
