"""Statistics of permutation tests: the severity of a disparity, or the distance of groups in standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidyfair.evaluation import LEVEL
from tidyfair.inference.rate_tests import Case
from tidyfair.inference.testing.permutation import Permutations
from tidyfair.intervals import share_of
from tidyfair.specs import ONE_LABEL, Array, formulas_of

_RARER = 3
"""The factor by which the largest distance must be rarer than the sum of squares to count as much.

So three quarters of false rejections are left to the sum of squares, which loses 2 to 4 points of power beside the
chi-squared test where 20 to 200 groups differ a little, and the largest distance finds a single group of 20 that
differs in 68% of samples instead of 55%.
"""
_LEAST_VARIANCE = 1e-12
"""The least variance of a group, relative to the largest one."""
_NO_VARIANCE = 1e-300
"""The least variance where no group has one: the weights that are its inverses can still be summed."""
_ROUNDED = 1e-12
"""Distances from a mean that are smaller, relative to the mean, are rounding errors."""
_SAME = 1e-9
"""Statistics that differ by less are ties: the same counts, computed in another order."""


@dataclass(frozen=True, eq=False)
class Families:
    """The families of values whose groups are compared, one for each metric, label and outer group."""

    case: Case
    are_rates: bool
    """True if values are rates of rows that permutations leave to their groups, and are tested as such."""

    @cached_property
    def have_variance(self) -> bool:
        """True where the variance of values is known, so that permutations need no variants."""
        formulas, labels = formulas_of(self.case.metric), set(self.case.evaluated.rows["estimator"])
        are_independent = not self.case.tally.clusters and labels <= set(ONE_LABEL)
        return self.are_rates or (are_independent and all(formula.spreads or share_of(formula) for formula in formulas))

    @cached_property
    def _indices(self) -> list[tuple[int, Array, list[int]]]:
        """The outer group of each family, the indices of its values, and those among them that are the reference."""
        outer, requested, level, size, estimate, is_reference = (
            self.case.evaluated.values.array(name)
            for name in ("outer", "requested", LEVEL, "size", "estimate", "is_reference")
        )
        families, number = np.unique(np.stack([outer, requested, level]), axis=1, return_inverse=True)
        indices: list[tuple[int, Array, list[int]]] = []
        for family, outer_of_family in enumerate(families[0].tolist()):
            index = np.flatnonzero((number == family) & ~np.isnan(estimate))
            reference = is_reference[index].astype(bool)
            if self.case.metric.aggregate.compares_with_majority and len(index):
                reference = size[index] == size[index].max()
            indices.append((outer_of_family, index, np.flatnonzero(reference).tolist()))
        return indices

    def distances(self, permutations: Permutations) -> Array:
        """The distances of groups, in all and the largest one: permutations by outer groups by two."""
        value = permutations.column("estimate")
        outers = len(self.case.evaluated.group_cells.outer_keys)
        in_all = np.zeros((len(value), outers, 2))
        for outer, index, reference in self._indices:
            values = value[:, 0, index]
            if self.are_rates:
                rows = self.case.evaluated.values.array("denominator")[index]
                share = (values * rows).sum(axis=1) / max(1, rows.sum())
                away = rate_distances(values * rows, rows, share, reference)
            else:
                away = distances(values, self._variance(permutations, index), reference)
            in_all[:, outer] = all_distances(in_all[:, outer], away)
        return in_all

    def _variance(self, permutations: Permutations, index: Array) -> Array:
        """The variance of some values in each permutation."""
        if permutations.variants > 1:
            value = permutations.column("estimate")[:, :, index]
            return np.nansum((value[:, 1:] - value[:, :1]) ** 2, axis=1)
        variance, effective, rows, value = (
            permutations.column(name)[:, 0, index] for name in ("variance", "effective", "denominator", "estimate")
        )
        # half a row more, so that 0 and 1 of few rows have a variance
        size = np.where(np.isnan(effective), rows, effective)
        middle = (value * size + 0.5) / (size + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.isnan(variance), middle * (1 - middle) / size, variance)


def rate_distances(hits: Array, rows: Array, share: Array | float, reference: Sequence[int]) -> Array:
    """The distances of groups' rates in each draw, if `share` is the rate of all groups; as those of values."""
    # an empty group has no distance to others
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.reshape(share * (1 - share), (-1, 1)) / rows
        return distances(hits / rows, variance, reference)


def distances(value: Array, variance: Array, reference: Sequence[int]) -> Array:
    """The distances of groups in each draw, in standard errors, in all and the largest one: draws by two columns.

    Of each group from all others together; the root of the sum of squares is that of the Wald statistic of equality,
    which for rates is Pearson's chi-squared. With a reference, of each group from it. The variance of a group may be
    one number for all draws. A group without a value has no distance.
    """
    if reference:
        with np.errstate(divide="ignore", invalid="ignore"):
            from_each = [(value - value[:, [one]]) ** 2 / (variance + variance[:, [one]]) for one in reference]
        squares = np.concatenate(from_each, axis=1)
        squares = np.where(np.isnan(squares), 0.0, squares)
        return np.sqrt(np.stack([squares.sum(axis=1), squares.max(axis=1, initial=0)], axis=1))
    has_value = np.isfinite(value) & np.isfinite(variance)
    known = np.where(has_value, variance, 0.0)
    # values that do not vary are nearly certain
    least = np.maximum(_LEAST_VARIANCE * known.max(axis=1, keepdims=True, initial=0), _NO_VARIANCE)
    weight = has_value / np.maximum(known, least)
    value = np.where(has_value, value, 0.0)
    total = weight.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = (weight * value).sum(axis=1, keepdims=True) / total
        away = value - mean
        # the mean of equal values is rounded
        squares = weight * np.where(np.abs(away) <= _ROUNDED * np.abs(mean), 0.0, away) ** 2
        from_others = np.where(weight < total, squares * total / (total - weight), 0.0)
    return np.sqrt(np.stack([squares.sum(axis=1), from_others.max(axis=1, initial=0)], axis=1))


def all_distances(one: Array, other: Array) -> Array:
    """The distances of two families of groups taken together."""
    return np.stack([np.hypot(one[:, 0], other[:, 0]), np.fmax(one[:, 1], other[:, 1])], axis=1)


def joint_ranks(tested: Array, by_chance: Array) -> Array:
    """The rank of distances among those by chance: the smaller of the two, of which the largest one's counts more.

    Either distance finds what the other does not: the sum of squares many small ones, the largest a single one. So the
    less likely one counts (Tippett's combination; Pesarin and Salmaso, 2010), and draws by chance show how often it is
    as unlikely.
    """
    ranks: list[Array] = []
    for column in (0, 1):
        distance, rising = tested[:, column], np.sort(by_chance[:, column])
        ranks.append(len(rising) - np.searchsorted(rising, distance - slack(distance)))
    return np.minimum(ranks[0], _RARER * ranks[1])


def slack(values: Array) -> Array:
    """The distance up to which other values are ties with each of these; of small values it is smaller."""
    size = np.abs(np.where(np.isfinite(values), values, 0))
    return _SAME * np.maximum(min(1, size.max(initial=0)), size)


def joint_distances(drawn: Array) -> Array:
    """The part of the observed distances, the last ones, that is as unlikely as those of each draw."""
    in_all, largest = drawn[-1]
    if not in_all:
        return drawn[:, 0]
    ranks, falling = joint_ranks(drawn, drawn), np.sort(drawn, axis=0)[::-1]
    as_unlikely = falling[ranks - 1, 0], falling[-(-ranks // _RARER) - 1, 1]
    ratios: list[Array] = []
    for distance, observed in zip(as_unlikely, (in_all, largest), strict=True):
        # infinite distances are equal, too
        with np.errstate(invalid="ignore"):
            ratios.append(np.where(distance == observed, 1.0, distance / observed))
    return np.minimum(*ratios)


def farthest(value: Array, variance: Array, reference: list[int]) -> Array:
    """The largest distance of two groups of each draw, or of one from the reference, in standard errors.

    The variance of a group may be one number for all draws.
    """
    # groups are compared one by one, so that the draws of each lie together
    value, variance, largest = np.asfortranarray(value), np.asfortranarray(variance), np.zeros(len(value))
    for one in reference or range(value.shape[1]):
        others = slice(0 if reference else one + 1, None)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(value[:, others] - value[:, [one]]) / np.sqrt(variance[:, others] + variance[:, [one]])
        if distance.shape[1]:
            np.fmax(largest, np.fmax.reduce(distance, axis=1), out=largest)
    return largest
