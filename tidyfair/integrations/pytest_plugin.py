"""The plugin of pytest: the fixture and the marker `fairness`, and the verdicts of gates in what pytest reports.

It is read at the start of every run of pytest, so it imports nothing but the listener until a gate is judged.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tidyfair.inference.gate_listeners import listening

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from types import TracebackType

    import polars as pl

MARKER = "fairness(**options): a test of fairness; options are defaults of the calls of the fixture `fairness`"
TITLES = ("test", "gate", "value", "interval", "limit", "verdict")
COLORS: Mapping[str, Mapping[str, bool]] = {
    "pass": {"green": True}, "fail": {"red": True}, "not enough evidence": {"yellow": True},
}  # fmt: skip
"""The color of each verdict in the terminal."""

_LIMITS = frozenset({"below", "above"})
"""The options of which a gate has one."""
_CALL_ARGUMENTS = frozenset({"metrics", "data"})
"""Arguments of the fixture that are no options."""

Judged = dict[str, str]
"""A verdict in texts: the gate, its value, interval and limit."""
_PACKAGE = Path(__file__).parent.parent
_judged = pytest.StashKey[list[Judged]]()
_fairness = pytest.StashKey["Fairness"]()


@dataclass(repr=False)
class Fairness:
    """The fixture `fairness`: gates that are all judged before the test fails."""

    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of every call, from the marker."""
    calls: int = 0
    failures: list[str] = field(default_factory=list[str])

    def __call__(self, metrics: Any, data: Any = None, truth: Any = None, estimate: Any = None, **options: Any) -> None:
        """Judge a gate with the arguments of `assert_fair`; the test fails at its end."""
        from tidyfair.inference.gates import UnfairError, assert_fair  # noqa: PLC0415 - reads polars

        __tracebackhide__ = True  # pytest shows the line of the test, and not this
        self.calls += 1
        columns = {"truth": truth, "estimate": estimate}
        given = options | {name: column for name, column in columns.items() if column is not None}
        # a required policy has its own limits
        judge = getattr(metrics, "assert_holds", None)
        try:
            if judge is None:
                assert_fair(metrics, data, **_with_defaults(given, self.defaults))
            else:
                judge(data, **given)
        except UnfairError as error:
            self.failures.append(f"{_line_of_test()}: {error}")

    def __repr__(self) -> str:
        return f"<fairness: {len(self.failures)} of {self.calls} gates did not pass>"

    def check(self) -> None:
        """Raise `UnfairError` with all gates that failed, if any did."""
        if self.failures:
            from tidyfair.inference.gates import UnfairError  # noqa: PLC0415 - reads polars

            # with `strict=True`, a lack of evidence is among them
            outcome = f"{len(self.failures)} of {self.calls} gates" if self.calls > 1 else "The gate"
            msg = f"{outcome} did not pass.\n\n" + "\n\n".join(self.failures)
            raise UnfairError(msg)


def _with_defaults(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Options and the defaults of those that are not given; a limit, below or above, takes the place of either."""
    replaced = set(options)
    if not _LIMITS.isdisjoint(options):
        replaced |= _LIMITS
    return dict(options) | {name: value for name, value in defaults.items() if name not in replaced}


def _line_of_test() -> str:
    """The file and the line that called the fixture."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else ""


@pytest.fixture
def fairness(request: pytest.FixtureRequest) -> Fairness:
    """Gates as `assert_fair` has them, all of which are judged before the test fails."""
    defaults: dict[str, Any] = {}
    for marker in request.node.iter_markers("fairness"):
        if marker.args:
            pytest.fail(f"The marker `fairness` takes options by name, not {marker.args[0]!r}.", pytrace=False)
        for name in _CALL_ARGUMENTS.intersection(marker.kwargs):
            pytest.fail(
                f"The marker `fairness` does not take `{name}`: give it to the fixture, `fairness(metrics, data, …)`.",
                pytrace=False,
            )
        # the marker of the test comes first, then those of its class and its module
        defaults = _with_defaults(defaults, marker.kwargs)
    item = cast("pytest.Item", request.node)
    item.stash[_fairness] = Fairness(defaults)
    return item.stash[_fairness]


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and collect verdicts for the summary."""
    config.addinivalue_line("markers", MARKER)
    config.pluginmanager.register(Summary(), "tidyfair-summary")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that use the fixture, so that `-m fairness` selects them."""
    if "fairness" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("fairness"):
        item.add_marker("fairness")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the verdicts of all gates of a test, also as properties in junit files."""

    def keep(verdicts: pl.DataFrame, side: str) -> None:
        judged = [_in_texts(row, side) for row in verdicts.iter_rows(named=True)]
        item.stash.setdefault(_judged, []).extend(judged)
        for verdict in judged:
            for name in ("value", "interval", "limit", "verdict"):
                item.user_properties.append((f"{verdict['gate']} {name}", verdict[name]))

    with listening(keep):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test at its end if a gate of its fixture failed."""
    yield
    gates = item.stash.get(_fairness, None)
    if gates:
        gates.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add verdicts to the report of a test, which also travels from the workers of pytest-xdist."""
    errors = sys.modules.get("tidyfair.errors")
    is_ours = call.excinfo and errors and isinstance(call.excinfo.value, errors.TidyfairError)
    if call.excinfo and is_ours and not item.config.option.fulltrace:
        # its message says what is wrong with the call
        _end_at_call(call.excinfo.tb)
    report = yield
    if call.when == "teardown":
        cast("Any", report).fairness = item.stash.get(_judged, list[Judged]())
    gates = item.stash.get(_fairness, None)
    if call.when == "call" and call.excinfo and gates and gates.failures:
        text = "\n\n".join(gates.failures)
        if text in str(call.excinfo.value):
            # the text names the lines of the test; the traceback is of this plugin
            report.longrepr = call.excinfo.getrepr(style="value")
        else:
            report.sections.append(("fairness", text))
    return report


def _end_at_call(traceback: TracebackType | None) -> None:
    """Cut a traceback off after the line that calls this library."""
    while traceback is not None and traceback.tb_next is not None:
        code = traceback.tb_next.tb_frame.f_code
        # pytest runs tests inside the hooks of plugins
        if Path(code.co_filename).is_relative_to(_PACKAGE) and code.co_name != pytest_runtest_call.__name__:
            traceback.tb_next = None
        traceback = traceback.tb_next


def _in_texts(row: Mapping[str, Any], side: str) -> Judged:
    """A row of verdicts in texts."""
    from tidyfair.errors import listed  # noqa: PLC0415 - reads polars
    from tidyfair.escapes import visible  # noqa: PLC0415 - as above
    from tidyfair.inference.gates import outside_of  # noqa: PLC0415 - as above
    from tidyfair.specs import cut_as_settings  # noqa: PLC0415 - as above

    keys = [f"{name}={row[name]}" for name in takewhile(lambda name: name != ".metric", row)]
    keys += cut_as_settings(row)
    if row.get(".level") is not None:
        keys.append(f"level={row['.level']}")
    gate = row[".metric"] if row[".by"] is None else f"{row['.metric']}({row['.by']})"
    keys += [f"{name.removeprefix('.')}={row[name]}" for name in (".group", ".other") if isinstance(row.get(name), str)]
    if outside := outside_of(row):
        keys.append(f"(not about {listed(outside)})")
    if row.get(".unknown"):
        keys.append(f"unknown={row['.unknown']} ({100 * row['.unknown_share']:.3g} %)")
    return {
        "gate": visible(" ".join([gate, *keys])),
        "value": _number(next(row[name] for name in _VALUES if name in row)),
        "interval": f"{_number(row['.lower'])} to {_number(row['.upper'])}",
        "limit": f"{side} {_number(row['.limit'])}",
        "verdict": row[".verdict"],
    }


_VALUES = (".disparity", ".change", ".estimate")
"""The columns of the value that a limit is about, of comparisons and of metrics."""


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4g}"


class Summary:
    """The table of all gates at the end of a run."""

    def __init__(self) -> None:
        self.rows: list[Judged] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the verdicts from the report of a test."""
        self.rows += [{"test": report.nodeid, **judged} for judged in getattr(report, "fairness", ())]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the table."""
        if not self.rows:
            return
        widths = {title: max(len(title), *(len(row[title]) for row in self.rows)) for title in TITLES}
        terminalreporter.section("fairness")
        terminalreporter.write_line("  ".join(title.ljust(widths[title]) for title in TITLES).rstrip())
        for row in self.rows:
            cells = [row[title].ljust(widths[title]) for title in TITLES[:-1]]
            terminalreporter.write("  ".join([*cells, ""]))
            terminalreporter.write_line(row["verdict"], **COLORS[row["verdict"]])
