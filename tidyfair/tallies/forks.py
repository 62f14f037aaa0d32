"""Forked processes: a fork of a process that has run polars lacks the threads of polars, which then waits forever."""

from __future__ import annotations

import os
import time
from pathlib import Path

import polars as pl

from tidyfair.errors import ForkError

_TASKS = Path("/proc/self/task")
"""Folder in which Linux lists the threads of a process."""
_NAMED = "polars"
_A_MOMENT = 0.01
_CHECKED: set[int] = set()
"""Processes known to have the threads; even the first may be a fork of a process that used polars alone."""


def check_threads() -> None:
    """Refuse to work in a fork that lacks the threads of polars, which would hang.

    Only Linux lists threads; other systems do not fork by default, so nothing is checked there.
    """
    process = os.getpid()
    if process in _CHECKED:
        return
    if _TASKS.exists() and not _polars_has_threads():
        msg = (
            "This process was forked after polars had run, so it lacks the threads of polars and would hang. Start "
            'processes with `multiprocessing.get_context("spawn")` (or "forkserver"), or fork before polars has run.'
        )
        raise ForkError(msg)
    _CHECKED.add(process)


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
