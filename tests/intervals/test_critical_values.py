"""Standard errors at which limits hold for all groups or pairs together, against distributions of other libraries."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from tidyfair.intervals.comparisons import Family, distance_at_once
from tidyfair.intervals.critical_values import errors_needed, z_of_groups
from tidyfair.intervals.estimates import Shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = np.ndarray[Any, Any]


def family(sizes: Sequence[int], *, with_reference: bool = False) -> Family:
    """Shares of outer groups of so many groups each, of which the first may be the reference."""
    outer = np.repeat(np.arange(len(sizes)), sizes)
    is_first = np.append(True, np.diff(outer) > 0) if len(outer) else np.zeros(0, dtype=bool)
    shares = Shares(np.full(len(outer), 0.5), np.full(len(outer), 100.0))
    return Family(shares, np.arange(len(outer)), outer, is_first & with_reference, len(sizes))


def range_of_normal(groups: int, level: float) -> float:
    """The quantile of the largest distance of so many normal values, in standard errors of a distance."""
    return float(studentized_range.ppf(level, groups, np.inf)) / math.sqrt(2)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_all_pairs_are_within_the_studentized_range(level: float) -> None:
    sizes = [2, 3, 5, 10, 60]
    found = distance_at_once([family(sizes)], level, len(sizes))
    assert found.tolist() == pytest.approx([range_of_normal(groups, level) for groups in sizes], rel=1e-6)


def test_two_groups_have_the_standard_errors_of_a_pair() -> None:
    for level in (0.8, 0.95, 0.99):
        (found,) = distance_at_once([family([2])], level, 1)
        assert found == pytest.approx(norm.ppf((1 + level) / 2), rel=1e-9)


@pytest.mark.parametrize("counts", [(3, 3), (2, 7), (4, 5, 12)])
def test_all_pairs_of_independent_families_are_within_together(counts: tuple[int, ...]) -> None:
    (found,) = distance_at_once([family([count]) for count in counts], 0.95, 1)
    of_families = [studentized_range.cdf(found * math.sqrt(2), count, np.inf) for count in counts]
    assert math.prod(of_families) == pytest.approx(0.95, rel=1e-7)


def test_a_family_of_one_group_has_no_pairs() -> None:
    alone, beside = (distance_at_once(families, 0.95, 1) for families in ([family([4])], [family([4]), family([1])]))
    assert beside.tolist() == alone.tolist()
    assert np.isnan(distance_at_once([family([1])], 0.95, 1)).all()


def test_pairs_with_a_reference_have_sidaks_level() -> None:
    sizes = [2, 5, 11]
    found = distance_at_once([family(sizes, with_reference=True)], 0.9, 3)
    assert found.tolist() == pytest.approx([norm.ppf((1 + 0.9 ** (1 / (size - 1))) / 2) for size in sizes])
    both = distance_at_once([family(sizes, with_reference=True)] * 2, 0.9, 3)
    assert both.tolist() == pytest.approx([norm.ppf((1 + 0.9 ** (1 / (2 * size - 2))) / 2) for size in sizes])


def test_groups_have_sidaks_level() -> None:
    groups = np.array([1, 2, 60, 20_000])
    expected = [norm.isf((1 - 0.95 ** (1 / number)) / 2) for number in groups.tolist()]
    assert z_of_groups(groups, 0.95).tolist() == pytest.approx(expected)


def test_values_of_an_outer_group_do_not_depend_on_others() -> None:
    sizes = [3, 9, 2, 9, 4]
    together = distance_at_once([family(sizes)], 0.95, len(sizes))
    alone = [distance_at_once([family([size])], 0.95, 1).item() for size in sizes]
    assert together.tolist() == alone


# The upper end of a range

NODES, FARTHEST = 48, 6.5


def all_below(error: list[float], limit: float, z: float, *, equal: bool) -> float:
    """The probability that all pairs are `z` standard errors below a limit, for groups from the largest error on.

    The first two are so far apart and all others are where pairs are least likely to be beyond the limit; or all are
    `equal`.
    """
    first, second = error[:2]
    pair = math.hypot(first, second)
    limit = max(limit, (z + 0.1) * pair)
    middle = -z * (first**2 - second**2) / (2 * pair)
    means = [0.0] * len(error) if equal else [limit / 2, -limit / 2] + [middle] * (len(error) - 2)
    lowest = [mean - z * second / pair * own for mean, own in zip(means, error, strict=True)]
    highest = [mean + z * first / pair * own for mean, own in zip(means, error, strict=True)]
    start, end = (min(low + side * FARTHEST * own for low, own in zip(lowest, error, strict=True)) for side in (-1, 1))
    total: Any = 0.0
    for point in np.linspace(start, end, NODES):
        within = [
            norm.cdf((point + limit - high) / own) - norm.cdf((point - low) / own)
            for low, high, own in zip(lowest, highest, error, strict=True)
        ]
        for group, own in enumerate(error):
            # this group is the lowest, and stands at the point
            others = math.prod(within[:group] + within[group + 1 :])
            total += norm.pdf((point - lowest[group]) / own) / own * others
    return float(total) * (end - start) / (NODES - 1)


def largest_upper(value: list[float], error: list[float], z: float) -> float:
    """The largest upper limit of the distance of any pair."""
    groups = list(zip(value, error, strict=True))
    return max(abs(a - b) + z * math.hypot(v, w) for (a, v), (b, w) in itertools.combinations(groups, 2))


def needed(value: list[float], error: list[float], z: float) -> float:
    """The standard errors that the upper end of a range needs, of one outer group."""
    descending = sorted(error, reverse=True)
    near = descending[:2] + [own for own in descending[2:] if own > 0.25 * descending[0]]
    if len(near) == 2:
        return z
    low, high = 0.0, z
    for _ in range(7):
        middle = (low + high) / 2
        upper = largest_upper(value, error, middle)
        apart, together = (all_below(near, upper, middle, equal=equal) for equal in (False, True))
        if apart / together > norm.sf(z):
            low = middle
        else:
            high = middle
    return high


def test_upper_end_needs_the_standard_errors_of_the_least_favourable_groups() -> None:
    random, z = np.random.default_rng(1), 1.96
    values = [random.normal(size=size).tolist() for size in (2, 3, 3, 6, 12)]
    errors = [(0.3 + random.random(len(value))).tolist() for value in values]
    # small errors hardly move a range
    errors[1][2] = errors[1][0] / 10
    outer = np.repeat(np.arange(5), [len(value) for value in values])
    value, error = (np.concatenate(columns) for columns in (values, errors))

    def upper_end(at: Numbers) -> Numbers:
        parts = [(value[outer == own].tolist(), error[outer == own].tolist()) for own in range(5)]
        return np.array([largest_upper(*part, z) for part, z in zip(parts, at.tolist(), strict=True)])

    found = errors_needed(error, outer, upper_end, z, 5)
    expected = [needed(*columns, z) for columns in zip(values, errors, strict=True)]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)
    assert found[:2].tolist() == [z, z]
    assert found[4] < z


def test_upper_end_of_groups_that_do_not_vary_needs_all_standard_errors() -> None:
    outer, error = np.repeat([0, 1], 3), np.array([1.0, 1.0, 0.0, 1.0, np.nan, 1.0])
    found = errors_needed(error, outer, lambda at: at, 1.96, 2)
    assert found.tolist() == [1.96, 1.96]
