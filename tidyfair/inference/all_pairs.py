"""P-values of all pairs of groups, adjusted by the number of pairs that can be equal, or by the largest distance."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.proportions import z_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Array: TypeAlias = np.ndarray[Any, Any]

_MANY_GROUPS = 100
"""With more groups, all remaining pairs are assumed to be equal."""


def groups_of(pairs: int) -> int:
    """The number of groups with a given number of pairs."""
    return (1 + math.isqrt(1 + 8 * pairs)) // 2


def most_equal(groups: Sequence[int], tested: int) -> Array:
    """The most tested pairs that may be equal while none is known to differ, then while one is, two are and so on.

    Equality is transitive: if one of three pairs of three groups differs, only one of the others can be equal.
    """
    remaining = np.arange(tested, 0, -1)
    if max(groups, default=0) > _MANY_GROUPS:
        return remaining
    possible = 1
    for size in groups:
        shifts = _numbers_of_equal_pairs(size)
        before, possible = possible, 0
        for shift in range(shifts.bit_length()):
            possible |= before << shift if shifts >> shift & 1 else 0
    bits = np.frombuffer(possible.to_bytes(possible.bit_length() // 8 + 1, "little"), np.uint8)
    is_possible = np.unpackbits(bits, bitorder="little")[: possible.bit_length()]
    # a possible number of equal pairs, or else the next smaller one
    largest = np.maximum.accumulate(np.where(is_possible, np.arange(len(is_possible)), 0))
    return np.minimum(largest[:0:-1][:tested], remaining)


@lru_cache(maxsize=256)
def _numbers_of_equal_pairs(groups: int) -> int:
    """The numbers of pairs that can be equal, from 0 to all, as the bits of a number."""
    possible = 1 << groups * (groups - 1) // 2
    for size in range(1, groups):
        possible |= _numbers_of_equal_pairs(groups - size) << size * (size - 1) // 2
    return possible


def harmonic(count: int) -> float:
    """The sum of 1, 1/2, 1/3 and so on."""
    return float((1 / np.arange(1, count + 1)).sum())


class Distances:
    """The distances of pairs of groups by chance, in standard errors (Westfall and Young, 1993).

    The distance of two equal groups in standard errors of their own is nearly normal, and its correlation with that of
    any other two equal groups follows from the errors of the groups alone, which for rates are those of their numbers
    of rows. So it is drawn without knowing which groups are equal and what their values are, which shuffling all groups
    together does not allow.
    """

    def __init__(
        self, covariance: Array, pairs: tuple[Array, Array], times: int, random: np.random.Generator
    ) -> None:  # fmt: skip
        self._pairs, self._covariance = pairs, covariance
        drawn = random.standard_normal((times, len(covariance)))
        error = np.sqrt(np.diagonal(covariance))
        if (covariance == np.diag(np.diagonal(covariance))).all():
            drawn = drawn * error
        else:
            values, vectors = np.linalg.eigh(covariance)
            drawn = drawn @ (vectors * np.sqrt(np.maximum(values, 0))).T
        # the draws of a group are beside each other in memory
        self._drawn = np.ascontiguousarray(drawn.T)

    def adjusted(self, p_values: Array) -> tuple[Array, Array]:
        """The p-values of the pairs, adjusted step-down, and the largest distance of all pairs in each draw."""
        normal, times = NormalDist(), self._drawn.shape[1]
        largest, adjusted = np.zeros(times), np.empty(len(p_values))
        at_most = most_equal([len(self._covariance)], len(p_values))[::-1]
        falling = np.argsort(-p_values, kind="stable")
        for pair, equal in in_progress(zip(falling, at_most, strict=True), "drawing pairs", len(falling)):
            p_value = float(p_values[pair])
            tail = p_value / 2  # zero for the smallest floats
            np.maximum(largest, self._distance(pair), out=largest)
            distance = -normal.inv_cdf(tail) if tail else math.inf
            reached = (1 + (largest >= distance).sum()) / (1 + times)
            # the probability for any pair is that of this one at least, and at most the sum of those that can be equal
            adjusted[pair] = min(max(reached, p_value), equal * p_value, 1)
        rising = falling[::-1]
        adjusted[rising] = np.maximum.accumulate(adjusted[rising])
        return adjusted, largest

    def quantile(self, largest: Array, level: float) -> float:
        """The distance that no pair exceeds at some level, which is Bonferroni's at most."""
        rank = math.ceil(level * (len(largest) + 1))
        most = z_value(1 - (1 - level) / len(self._pairs[0]))
        return most if rank > len(largest) else min(float(np.sort(largest)[rank - 1]), most)

    def _distance(self, pair: int) -> Array:
        """The distance of a pair in each draw."""
        one, other = self._pairs[0][pair], self._pairs[1][pair]
        variance = self._covariance[one, one] + self._covariance[other, other] - 2 * self._covariance[one, other]
        return np.abs(self._drawn[one] - self._drawn[other]) / math.sqrt(variance)
