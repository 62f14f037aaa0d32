"""A listener to the verdicts of `assert_fair`, such as the plugin of pytest.

The plugin is there in every run of pytest, so this module imports no polars.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeAlias

    import polars as pl

    Listener: TypeAlias = Callable[[pl.DataFrame, str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Call the listener with the verdicts, and the good side of the limit, of every `assert_fair` in the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def notify(verdicts: pl.DataFrame, side: str) -> None:
    """Give the verdicts of a gate to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(verdicts, side)
