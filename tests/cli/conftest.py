"""The terminal of tests of the command line."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in which no table of these tests wraps; some tests choose another width."""
    monkeypatch.setenv("COLUMNS", "160")
