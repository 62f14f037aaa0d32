"""Influences: what each sampling unit adds to values, which vary because their units might have been others.

The squares of the influences of all units add up to the variance of a value, and the products of those on two values to
their covariance (Tukey, 1958; Hampel, 1974). Units are rows of label cells, random parts of rows, clusters, primary
sampling units of a survey, or replicate weights; each file of this room that makes `Deviations` is about some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tidyfair.intervals.scales import Scale
from tidyfair.specs.segments import Array, Floats, Integers

Side: TypeAlias = tuple[Floats, Floats]

_MOST_NUMBERS = 2**22
"""The most numbers of an array at once."""
_ROUNDED = 1e-12
"""The relative difference of sums of equal numbers is smaller."""


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
    def of_units(
        cls, amount: Array, group: Integers, unit: Integers, groups: int, sign: Floats | None = None
    ) -> Influences:
        """The influences of the units of groups: an array of units of groups by labels."""
        labels: int = amount.shape[1]
        value: Integers = (group[:, None] * labels + np.arange(labels)).ravel()
        signs = None if sign is None else np.repeat(sign, labels)
        return cls.sorted(value, np.repeat(unit, labels), amount.ravel(), signs, groups * labels)

    @classmethod
    def sorted(cls, value: Integers, unit: Integers, amount: Floats, sign: Floats | None, count: int) -> Influences:
        """The influences on so many values, from entries in any order."""
        order = np.lexsort((unit, value))
        amount = np.nan_to_num(amount[order])
        return cls(value[order], unit[order], amount, None if sign is None else sign[order], np.arange(count))

    def at(self, index: Array) -> Influences:
        """The influences on some of the estimates."""
        return replace(self, of=self.of[index])

    def between(self, one: Integers, other: Integers) -> Floats:
        """The correlations of pairs of estimates."""
        step = max(1, _MOST_NUMBERS // max(1, int(np.bincount(self.value).max(initial=1))))
        parts = [
            self._between(self.of[one[start : start + step]], self.of[other[start : start + step]])
            for start in range(0, len(one), step)
        ]
        return np.concatenate([*parts, np.zeros(0)]).clip(-1, 1)

    def _between(self, one: Integers, other: Integers) -> Floats:
        """The sums of the products of the influences of the units that two values share."""
        first, last = (np.searchsorted(self.value, one, side=side) for side in ("left", "right"))
        sizes = last - first
        pair = np.repeat(np.arange(len(one)), sizes)
        entry = np.arange(len(pair)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        units = int(self.unit.max(initial=-1)) + 1
        wanted = other[pair] * units + self.unit[entry]
        found = np.searchsorted(self._keys, wanted).clip(max=max(len(self._keys) - 1, 0))
        amount = self.amount[entry] * np.where(self._keys[found] == wanted, self.amount[found], 0.0)
        signed = amount if self.sign is None else amount * self.sign[entry]
        return np.bincount(pair, signed, len(one)).astype(float, copy=False)

    @cached_property
    def _keys(self) -> Integers:
        return self.value * (int(self.unit.max(initial=-1)) + 1) + self.unit


@dataclass(frozen=True, eq=False)
class Deviations:
    """The variation of the values of groups by chance: arrays of group cells by labels."""

    error: Floats
    """The standard error; nan where it is not known how far values vary."""
    freedom: Floats
    below: Side
    """Where the lower limit is measured from, and the standard error on the scale of the range."""
    above: Side
    skew: Floats | None = None
    """The skewness of values on the scale, from the influences of their units."""
    cells: Mapping[str, Floats] = field(default_factory=dict[str, "Floats"])
    """The counts of one label against the rest, where rows have no weights."""
    influences: Influences | None = None
    """The influences of clusters, where groups may share them."""

    @classmethod
    def unknown(cls, groups: int, labels: int) -> Deviations:
        """Those of values that are not known to vary."""
        nothing = np.full((groups, labels), np.nan)
        return cls(nothing, nothing, (nothing, nothing), (nothing, nothing))

    @classmethod
    def about(cls, value: Floats, error: Floats, freedom: Floats, scale: Scale, **others: Any) -> Deviations:
        """Those of values with some standard errors, from which both limits are measured."""
        side = (value, error * scale.slope(value))
        return cls(error, np.broadcast_to(freedom, error.shape), side, side, **others)

    def at(self, index: Integers) -> Deviations:
        """Those of some of the values, by their position, as arrays of one axis."""

        def part(values: Floats) -> Floats:
            return values.ravel()[index]

        below, above = ((part(centre), part(spread)) for centre, spread in (self.below, self.above))
        skew = None if self.skew is None else part(self.skew)
        cells = {name: part(counts) for name, counts in self.cells.items()}
        influences = None if self.influences is None else self.influences.at(index)
        return Deviations(part(self.error), part(self.freedom), below, above, skew, cells, influences)


def known_errors(error: Floats, value: Floats, rounding: float = _ROUNDED) -> Floats:
    """Errors; nan where they are those of rounding."""
    return np.where(error > rounding * np.abs(value), error, np.nan)
