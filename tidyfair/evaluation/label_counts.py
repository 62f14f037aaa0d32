"""Counts of labels against the rest in groups, from margins and the diagonal instead of all pairs of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidyfair.specs import Array, Booleans, Integers


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Cells of a tally by group and label, whose measure (rows, weights or their squares) is summed."""

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
    def _no_truth(self) -> Booleans:
        return self.truth < 0

    @cached_property
    def _no_estimate(self) -> Booleans:
        return self.estimate < 0

    def of(self, measure: Array) -> dict[str, Array]:
        """The cells of the table of each label against the rest: arrays of levels by groups, by name.

        If no truth or estimate is missing, only the four cells of rows with both.
        """
        has_truth, has_estimate = ~self._no_truth, ~self._no_estimate
        both, agree = has_truth & has_estimate, self.truth == self.estimate
        tp = self._by_label(measure, both & agree, self.truth)
        fn = self._by_label(measure, both & ~agree, self.truth)
        fp = self._by_label(measure, both & ~agree, self.estimate)
        counts = {"tp": tp, "fn": fn, "fp": fp, "tn": self._rest(measure, both, (self.truth, self.estimate))}
        if self.complete:
            return counts
        only_truth, only_estimate = has_truth & self._no_estimate, has_estimate & self._no_truth
        return counts | {
            "positive_only": self._by_label(measure, only_truth, self.truth),
            "negative_only": self._rest(measure, only_truth, (self.truth,)),
            "selected_only": self._by_label(measure, only_estimate, self.estimate),
            "unselected_only": self._rest(measure, only_estimate, (self.estimate,)),
            "blank": self.totals(measure, self._no_truth & self._no_estimate),
        }

    def steps(self, measure: Array) -> dict[str, Array]:
        """The steps between the labels of truth and estimate, absolute and squared, summed by the true label."""
        both = ~self._no_truth & ~self._no_estimate
        away = np.abs(self.truth - self.estimate).astype(np.float64)
        return {
            "absolute_steps": self._by_label(measure * away, both, self.truth),
            "squared_steps": self._by_label(measure * away**2, both, self.truth),
        }

    def totals(self, measure: Array, chosen: Booleans) -> Array:
        """The sum over chosen cells, which is the same for every label: levels by groups."""
        return np.tile(self._summed(measure[chosen], self.group[chosen], self.groups), (len(self.levels), 1))

    def _by_label(self, measure: Array, chosen: Booleans, label: Integers) -> Array:
        """The sum over chosen cells by their label: levels by groups."""
        index = label[chosen] * self.groups + self.group[chosen]
        sums = self._summed(measure[chosen], index, self.labels * self.groups)
        return sums.reshape(self.labels, self.groups)[list(self.levels)]

    def _rest(self, measure: Array, chosen: Booleans, labels: Sequence[Integers]) -> Array:
        """The sum over chosen cells without a level in any of their labels: levels by groups."""
        if len(self.levels) <= 2:  # sums of the cells themselves cost no more than differences
            sums = np.zeros((len(self.levels), self.groups), dtype=measure.dtype)
            for index, level in enumerate(self.levels):
                rest = chosen & _has_none(labels, level)
                sums[index] = self._summed(measure[rest], self.group[rest], self.groups)
            return sums
        counts = self._all_less_own(measure, chosen, labels)
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
        affected = few.any(axis=0)
        first, last = np.argmax(few, axis=0), len(few) - 1 - np.argmax(few[::-1], axis=0)
        for index in (first, last):
            level = np.where(affected, levels[index], -1)[self.group]
            rest = chosen & (level >= 0) & _has_none(labels, level)
            sums = self._summed(measure[rest], self.group[rest], self.groups)
            counts[index[affected], np.flatnonzero(affected)] = sums[affected]

    def _all_less_own(self, measure: Array, chosen: Booleans, labels: Sequence[Integers]) -> Array:
        """The sum over all chosen cells minus that over cells with the level as one of their labels."""
        own = sum(self._by_label(measure, chosen, label) for label in labels)
        if len(labels) > 1:
            own = own - self._by_label(measure, chosen & (labels[0] == labels[1]), labels[0])
        return self.totals(measure, chosen) - own

    @staticmethod
    def _summed(measure: Array, index: Integers, size: int) -> Array:
        """Sums by index, exact for whole numbers."""
        sums = np.zeros(size, dtype=measure.dtype)
        np.add.at(sums, index, measure)
        return sums


def _has_none(labels: Sequence[Integers], level: int | Integers) -> Booleans:
    """Mask of the cells without a level, or without their respective level, in any of their labels."""
    return np.logical_and.reduce([label != level for label in labels])
