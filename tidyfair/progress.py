"""Progress of long loops, in terminals and notebooks only: what runs, how far it is, and how long it will take."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__: list[str] = []

_Step = TypeVar("_Step")
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
    if not _is_watched():
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
                _write(_state(doing, number, total, now - started))
                shown, has_shown = now, True
            yield step
    finally:
        if has_shown:
            _write("")


def _is_watched() -> bool:
    """True in a terminal, and in a notebook, whose errors are no terminal."""
    stream = sys.stderr
    # without a console there is no stream
    return stream is not None and (stream.isatty() or "ipykernel" in sys.modules)  # pyright: ignore[reportUnnecessaryComparison]


def _state(doing: str, number: int, total: int | None, seconds: float) -> str:
    """How far a loop is, in a line."""
    if not total or not number:
        return f"{doing}: {seconds:.0f} s"
    left = seconds / number * (total - number)
    return f"{doing}: {number / total:.0%}, {left:.0f} s left (Ctrl-C stops)"


def _write(text: str) -> None:
    """Write over the line that was written before; notebooks obey no more than the start of a line."""
    line = f"\r\x1b[2K{text}" if sys.stderr.isatty() else f"\r{text:<60}"
    sys.stderr.write(line)
    sys.stderr.flush()
