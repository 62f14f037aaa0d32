"""Work on cache-sized slices of rows, in threads: numpy and polars release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

MOST_PARTED = 2**8
"""With more codes, copying the rows of one code from each slice is slow."""
_SLICE = 2**17

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Results of work on each item, in their order, computed in threads."""
    threads = min(len(items), os.cpu_count() or 1)
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(work, items))


def over_slices(work: Callable[[slice], _Result], rows: int, size: int) -> list[_Result]:
    """Results of work on slices of `size` rows, in order; without rows there is one empty slice."""
    slices = [slice(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]
    return side_by_side(work, slices)


@dataclass(frozen=True, eq=False, repr=False)
class Parted:
    """Values of rows sorted by code within each slice of rows."""

    parts: list[tuple[Array, Array]]
    """The values of each slice, and the offsets at which each code begins and ends `(codes + 1,)`."""

    @classmethod
    def of(cls, codes: Array, count: int, values: Callable[[slice], Array]) -> Parted:
        """Sort the values of rows, read slice by slice; rows whose code is below 0 are left out.

        There are at most `MOST_PARTED` codes, which are small integers, so that sorting them takes one pass.
        """

        def part(rows: slice) -> tuple[Array, Array]:
            code, own = codes[rows], values(rows)
            if len(code) and code.min() < 0:
                own, code = own[code >= 0], code[code >= 0]
            order = np.argsort(code.astype(np.uint8), kind="stable")
            return own[order], np.concatenate([[0], np.cumsum(np.bincount(code, minlength=count))])

        return cls(over_slices(part, len(codes), _SLICE))

    @cached_property
    def ends(self) -> Array:
        """Offsets at which each code begins and ends if all slices are joined `(codes + 1,)`."""
        return np.sum([ends for _, ends in self.parts], axis=0)

    def together(self, codes: Sequence[int]) -> Array:
        """The values of some codes, one code after the other."""
        values: list[Array] = []
        for code in codes:
            for own, ends in self.parts:
                values.append(own[ends[code] : ends[code + 1]])
        return np.concatenate(values)
