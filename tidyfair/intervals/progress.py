"""Progress of long loops, in terminals and notebooks only: what runs, how far it is, and how long it will take.

The environment variable `TIDYFAIR_PROGRESS=0` switches it off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from time import monotonic
from typing import Any, TypeVar

_Step = TypeVar("_Step")
SWITCH = "TIDYFAIR_PROGRESS"
"""The environment variable that is 0 where no progress is wanted."""
_PATIENCE = 2.0
"""Seconds of a loop before anything is shown."""
_PAUSE = 0.25
"""Seconds between two states that are shown."""


def in_progress(steps: Iterable[_Step], doing: str, total: int | None = None) -> Iterator[_Step]:
    """The same steps; where they take longer than two seconds, somebody who waits sees how far they are.

    Args:
        steps: What is looped over.
        doing: What the loop does, such as `"shuffling"`.
        total: The number of steps, where they have no length.
    """
    line = _line()
    if line is None:
        yield from steps
        return
    if total is None and hasattr(steps, "__len__"):
        total = len(steps)  # pyright: ignore[reportArgumentType] - it has a length
    started = shown = monotonic()
    has_shown = False
    try:
        for number, step in enumerate(steps):
            now = monotonic()
            if now - started > _PATIENCE and now - shown > _PAUSE:
                line(_state(doing, number, total, now - started))
                shown, has_shown = now, True
            yield step
    finally:
        if has_shown:
            line("")


def _line() -> Callable[[str], None] | None:
    """A function that writes over a line on the screen; None if output is not interactive or progress is off."""
    if os.environ.get(SWITCH) == "0":
        return None
    stream = sys.stderr
    # without a console there is no stream
    if stream is not None and stream.isatty():  # pyright: ignore[reportUnnecessaryComparison] - see above

        def write(text: str) -> None:
            """Write over the line of a terminal."""
            stream.write(f"\r\x1b[2K{text}")
            stream.flush()

        return write
    # others than notebooks import their packages, too, but have no kernel
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    lines: list[Any] = []

    def show(text: str) -> None:
        """Write over a line below the cell of the notebook, which is empty in the end."""
        shown = {"text/plain": text}
        if lines:
            lines[0].update(shown, raw=True)
        else:
            # only notebooks come here, and they have it
            lines.append(import_module("IPython.display").display(shown, raw=True, display_id=True))

    return show


def _state(doing: str, number: int, total: int | None, seconds: float) -> str:
    """The progress of a loop as one line of text."""
    if not total or not number:
        return f"{doing}: {seconds:.0f} s"
    left = seconds / number * (total - number)
    return f"{doing}: {number / total:.0%}, {left:.0f} s left (Ctrl-C stops)"
