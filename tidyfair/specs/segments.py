"""Runs of rows that belong together in sorted arrays, and reductions of each run to one number or one row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import numpy as np

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.signedinteger[Any]]]"
Array: TypeAlias = "np.ndarray[Any, Any]"
Merge: TypeAlias = "np.ufunc"
"""A function of two arrays that merges any number of them, such as `np.add` or `np.fmin`."""
Booleans: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

NO_ROW = -1
"""Stands for a missing row index."""
TIE = 1e-12
"""Relative tolerance for equality: float sums do not agree to the last bit."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Runs of consecutive rows, stored as the first row of each run and the total number of rows."""

    starts: Integers
    length: int

    @classmethod
    def of(cls, *keys: Integers) -> Segments:
        """Runs of rows that agree in all keys."""
        length = len(keys[0])
        if not length:
            return cls(np.zeros(0, dtype=np.int64), 0)
        begins = np.zeros(length, dtype=bool)
        begins[0] = True
        for key in keys:
            begins[1:] |= key[1:] != key[:-1]
        (starts,) = begins.nonzero()
        return cls(starts, length)

    @cached_property
    def sizes(self) -> Integers:
        """The number of rows of each run."""
        sizes = self.length - self.starts
        sizes[:-1] = self.starts[1:] - self.starts[:-1]
        return sizes

    def to_rows(self, values: Any) -> Any:
        """One value for each run as one for each row."""
        return values.repeat(self.sizes, axis=0)

    @property
    def runs(self) -> Integers:
        """The number of the run of each row."""
        return np.arange(len(self.starts)).repeat(self.sizes)

    def sum(self, values: Any) -> Any:
        """The sum of each run; of Booleans, how many are true."""
        numbers = values.astype(np.int64) if values.dtype == bool else values
        return np.add.reduceat(numbers, self.starts) if self.length else numbers[:0]

    def any(self, mask: Booleans) -> Booleans:
        """Mask of the runs in which any row meets a condition."""
        return np.logical_or.reduceat(mask, self.starts) if self.length else mask[:0]

    def all(self, mask: Booleans) -> Booleans:
        """Mask of the runs in which all rows meet a condition."""
        return np.logical_and.reduceat(mask, self.starts) if self.length else mask[:0]

    def minimum(self, values: Floats) -> Floats:
        """The smallest number of each run; nan where there is none."""
        return np.fmin.reduceat(values, self.starts) if self.length else values[:0]

    def maximum(self, values: Any) -> Any:
        """The largest number of each run; nan where there is none."""
        return np.fmax.reduceat(values, self.starts) if self.length else values[:0]

    def first_where(self, mask: Booleans) -> Integers:
        """The first row of each run that meets a condition, or `NO_ROW`."""
        if not self.length:
            return self.starts
        rows = np.where(mask, np.arange(self.length), self.length)
        first = np.minimum.reduceat(rows, self.starts)
        return np.where(first == self.length, NO_ROW, first)

    def last_where(self, mask: Booleans) -> Integers:
        """The last row of each run that meets a condition, or `NO_ROW`."""
        rows = np.where(mask, np.arange(self.length), NO_ROW)
        return np.maximum.reduceat(rows, self.starts) if self.length else self.starts

    def first_largest(self, values: Floats) -> Integers:
        """The row of the largest number of each run, the first of equals, or `NO_ROW` where there is none."""
        largest = self.maximum(values)
        # infinity, too, is next to itself
        least = largest * (1 - TIE * np.sign(largest))
        return self.first_where(values >= self.to_rows(least))

    def before(self, values: Array, merge: Merge, nothing: float) -> Array:
        """For each row, earlier rows of its run merged; `nothing` for the first."""
        passed = np.full(values.shape, nothing, dtype=values.dtype)
        if len(self.starts) <= self.sizes.max(initial=0):
            for start, size in zip(self.starts.tolist(), self.sizes.tolist(), strict=True):
                passed[start + 1 : start + size] = merge.accumulate(values[start : start + size - 1], axis=0)
            return passed
        # many short runs: one step for the second rows of all, one for the third ones …
        for step in range(1, int(self.sizes.max())):
            rows = self.starts[self.sizes > step] + step
            passed[rows] = merge(passed[rows - 1], values[rows - 1])
        return passed

    def after(self, values: Array, merge: Merge, nothing: float) -> Array:
        """For each row, later rows of its run merged; `nothing` for the last."""
        turned = Segments(np.flip(self.length - self.starts - self.sizes), self.length)
        return np.flip(turned.before(np.flip(values, axis=0), merge, nothing), axis=0)


def taken(values: Array, rows: Integers, missing: object) -> Array:
    """The values of rows, with another value for `NO_ROW`."""
    if not len(values):
        return np.full(len(rows), missing)
    return np.where(rows == NO_ROW, cast("Any", missing), values[rows])
