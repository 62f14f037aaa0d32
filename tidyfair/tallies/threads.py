"""Threads: work on cache-sized slices of rows in several of them, and forked processes that lack those of polars.

A fork of a process that has run polars lacks the threads of polars, which then waits forever.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from tidyfair.errors import ForkError
from tidyfair.specs import Array

MOST_PARTED = 2**8
"""With more codes, copying the rows of one code from each slice is slow."""
_SLICE = 2**17
_TASKS = Path("/proc/self/task")
"""Folder in which Linux lists the threads of a process."""
_NAMED = "polars"
_A_MOMENT = 0.01

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_threads(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Results of work on each item, in their order, computed in threads."""
    threads = min(len(items), os.cpu_count() or 1)
    if threads <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(work, items))


def over_slices(work: Callable[[slice], _Result], rows: int, size: int) -> list[_Result]:
    """Results of work on slices of `size` rows, in order; without rows there is one empty slice."""
    slices = [slice(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]
    return in_threads(work, slices)


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


# Forked processes


@cache
def check_threads(process: int) -> None:  # noqa: ARG001 - the check is one for each process
    """Refuse to work in a fork that lacks the threads of polars, which would hang; `process` is `os.getpid()`.

    Even the first process may be a fork of one that used polars alone. Only Linux lists threads; other systems do not
    fork by default, so nothing is checked there.
    """
    if _TASKS.exists() and not _polars_has_threads():
        msg = (
            "This process was forked after polars had run, so it lacks the threads of polars and would hang. Start "
            'processes with `multiprocessing.get_context("spawn")` (or "forkserver"), or fork before polars has run.'
        )
        raise ForkError(msg)


def _polars_has_threads() -> bool:
    before = len(_names())
    pl.thread_pool_size()  # starts them, unless they were there when the process was forked
    if len(_names()) > before or _polars_is_named():
        return True
    # threads take their names when they begin
    time.sleep(_A_MOMENT)
    return _polars_is_named()


def _polars_is_named() -> bool:
    return any(name.startswith(_NAMED) for name in _names())


def _names() -> list[str]:
    """The names of the threads of this process."""
    names: list[str] = []
    for task in _TASKS.iterdir():
        try:
            names.append((task / "comm").read_text())
        except OSError:
            continue  # it has ended meanwhile
    return names
