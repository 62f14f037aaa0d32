"""Progress is shown in terminals and notebooks, after two seconds, and leaves nothing behind."""

from __future__ import annotations

import io
import itertools
import sys
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tidyfair.datasets import lending
from tidyfair.errors import ProxyWarning
from tidyfair.inference import compare_models, disparity_test, probabilistic_groups
from tidyfair.intervals.progress import in_progress
from tidyfair.metrics.classification import accuracy, selection_rate
from tidyfair.metrics.fairness import demographic_parity


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which half a second passes whenever somebody looks."""
    clock = itertools.count()
    monkeypatch.setattr("tidyfair.intervals.progress.monotonic", lambda: next(clock) / 2)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr("tidyfair.intervals.progress.sys", SimpleNamespace(stderr=stream, modules={}))
    return stream


@pytest.mark.usefixtures("seconds")
def test_long_loop_shows_its_progress_and_erases_it(terminal: Terminal) -> None:
    assert list(in_progress(range(20), "shuffling")) == list(range(20))
    states = terminal.getvalue().split("\r\x1b[2K")
    # half a second a step: five steps pass before anything is shown
    assert states[1] == "shuffling: 20%, 10 s left (Ctrl-C stops)"
    assert states[-1] == ""
    assert len(states) == 18


@pytest.mark.usefixtures("seconds")
def test_notebook_gets_one_line_that_is_empty_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    class Handle:
        def update(self, shown: dict[str, str], *, raw: bool) -> None:
            assert raw
            lines.append(shown["text/plain"])

    def display(shown: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        lines.append(shown["text/plain"])
        return Handle()

    stream = io.StringIO()
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    modules = {"IPython": notebook}
    monkeypatch.setattr("tidyfair.intervals.progress.sys", SimpleNamespace(stderr=stream, modules=modules))
    displays: Any = SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    assert list(in_progress(range(20), "shuffling")) == list(range(20))
    assert lines[0] == "shuffling: 20%, 10 s left (Ctrl-C stops)"
    assert lines[-1] == ""
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("seconds")
def test_progress_can_be_switched_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDYFAIR_PROGRESS", "0")
    assert list(in_progress(range(20), "shuffling")) == list(range(20))
    assert terminal.getvalue() == ""


def test_short_loop_shows_nothing(terminal: Terminal) -> None:
    assert list(in_progress(range(20), "shuffling")) == list(range(20))
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("seconds")
def test_pipe_gets_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("tidyfair.intervals.progress.sys", SimpleNamespace(stderr=stream, modules={}))
    assert list(in_progress(range(20), "shuffling")) == list(range(20))
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("seconds")
def test_interrupted_loop_leaves_no_progress_behind(terminal: Terminal) -> None:
    def interrupted() -> None:
        for step in in_progress(itertools.count(), "searching"):
            if step == 10:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    shown = terminal.getvalue()
    assert "searching: 5 s" in shown
    assert shown.endswith("\r\x1b[2K")


@pytest.mark.usefixtures("seconds")
def test_tests_show_their_progress(terminal: Terminal) -> None:
    many = lending(300).with_columns(group=pl.int_range(pl.len()) // 2)
    disparity_test(demographic_parity("group"))(many, estimate="approved", pos_label="yes")
    assert "shuffling: " in terminal.getvalue()


@pytest.mark.usefixtures("seconds")
def test_comparison_of_many_models_shows_its_progress(terminal: Terminal) -> None:
    data = lending(500).with_columns(pl.col("repaid") == "yes")
    models = [(pl.col("score") >= cut / 100).alias(f"at {cut}") for cut in range(30, 80, 5)]
    choice = compare_models(accuracy, demographic_parity("race"), adjust="max_t")
    choice(data, "repaid", one=models[0], others=models[1:])
    assert "simulating: " in terminal.getvalue()
    assert "comparing models: " in terminal.getvalue()


@pytest.mark.usefixtures("seconds")
def test_bounds_of_guessed_groups_show_their_progress(terminal: Terminal) -> None:
    groups = {name: name for name in "abcdefgh"}
    data = lending(500).with_columns(pl.lit(1 / 8).alias(name) for name in groups)
    with pytest.warns(ProxyWarning):
        probabilistic_groups(selection_rate, groups, to="overall", proxy="age_band")(
            data, estimate="approved", pos_label="yes"
        )
    assert "bounding rates: " in terminal.getvalue()
