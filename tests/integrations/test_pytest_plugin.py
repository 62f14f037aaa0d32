"""The plugin of pytest, in runs of pytest on small files of tests."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["pytester"]

HEAD = """
import polars as pl
import pytest
import tidyfair as tdf

PARITY = tdf.demographic_parity("g")

def people(**counts):
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (1000 - hits), "g": group}) for group, hits in counts.items()
    )

FAIR = people(a=500, b=505)
UNFAIR = people(a=500, b=300)
"""


@pytest.fixture(scope="module", autouse=True)
def modules_are_read() -> None:
    """Runs inside a test forget the modules that they read, and classes would be there twice."""
    data = pl.DataFrame({"e": [1] * 20 + [0] * 20, "g": ["a", "b"] * 20})
    with pytest.raises(tf.inference.UnfairError):
        tf.assert_fair(tf.demographic_parity("g"), data, estimate="e", below=0.01, strict=True)


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run pytest with this plugin alone on tests below `HEAD`."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "160")

    def run_tests(tests: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_model=HEAD + tests)
        return pytester.runpytest_inprocess("-p", "tidyfair.integrations.pytest_plugin", "--strict-markers", *arguments)

    return run_tests


def properties(pytester: pytest.Pytester) -> dict[str, str]:
    tree = ET.parse(pytester.path / "junit.xml")  # noqa: S314 - a file of our own
    return {item.attrib["name"]: item.attrib["value"] for item in tree.iter("property")}


def test_assert_fair_shows_groups_and_what_the_rows_show(run: Callable[..., pytest.RunResult]) -> None:
    result = run("def test_parity():\n    tdf.assert_fair(PARITY, UNFAIR, estimate='e', below=0.1)\n")
    result.assert_outcomes(failed=1)
    upper = tf.check(tf.demographic_parity("g"), below=0.1)(
        pl.DataFrame({"e": [1] * 500 + [0] * 500 + [1] * 300 + [0] * 700, "g": ["a"] * 1000 + ["b"] * 1000}),
        estimate="e",
    )[".upper"].item()
    # where the variable CI is set, pytest's summary repeats it
    shown = next(line for line in result.outlines if "these rows show no more than" in line)
    limit = float(shown.rpartition("below ")[2].rstrip("."))
    assert upper < limit < upper + 0.001
    result.stdout.fnmatch_lines(
        ["*selection_rate ┆ b * ┆ 0.3 *1000 *1000 *", "*selection_rate ┆ a * ┆ 0.5 *1000 *1000 *"]
    )


def test_fixture_takes_required_policies(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        "from tidyfair.audits import AuditPolicy\n\n"
        "def test_policy(fairness):\n"
        "    fairness(AuditPolicy(features=('g',), limits={'demographic_parity': 0.1}), UNFAIR, estimate='e')\n"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*requirements do not hold*"])


def test_page_on_pytest_shows_what_its_code_prints(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/pages/how-to/pytest.md").read_text("utf-8")

    def blocks(language: str) -> list[str]:
        return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "160")
    yes = (pl.col("repaid", "approved") == "yes").cast(pl.Int8)
    lending().with_columns(yes).write_parquet(pytester.path / "predictions.parquet")
    pytester.makepyfile(test_model="\n\n".join(blocks("python")))
    plugin = "tidyfair.integrations.pytest_plugin"
    result = pytester.runpytest_inprocess("-p", plugin, "--strict-markers", "--junitxml=junit.xml", "-Wdefault")
    result.assert_outcomes(passed=4, failed=2, xfailed=1, warnings=1)
    junit = (pytester.path / "junit.xml").read_text("utf-8").replace("><", ">\n<")
    printed = {" ".join(line.removeprefix("E").split()) for line in (*result.outlines, *junit.splitlines())}
    shown = [block for block in blocks("text") if not block.startswith("pytest ")] + blocks("xml")
    assert len(shown) == 3
    for line in "".join(shown).splitlines():
        words = " ".join(line.split())
        is_heading = words.startswith(("UnfairError: ", "=="))
        assert is_heading or words in printed, line


def test_fixture_judges_every_gate_and_fails_at_the_end(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
def test_all(fairness):
    fairness(PARITY, UNFAIR, estimate="e", below=0.1)
    fairness(PARITY, FAIR, estimate="e", below=0.1)
    fairness(tdf.demographic_parity_ratio("g"), UNFAIR, estimate="e", above=0.8)
    print("the end")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "2 of 3 gates did not pass.",
        "test_model.py:16: The limit is not met:",
        "test_model.py:18: The limit is not met:",
        "the end",
        "FAILED test_model.py::test_all - tidyfair.inference.gates.checks.UnfairError: 2 of 3 gates did not pass.",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_fixture_passes_and_can_be_expected_to_fail(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
def test_fair(fairness):
    fairness(PARITY, FAIR, estimate="e", below=0.1)

@pytest.mark.xfail(raises=tdf.inference.UnfairError, strict=True)
def test_known(fairness):
    fairness(PARITY, UNFAIR, estimate="e", below=0.1)
"""
    )
    result.assert_outcomes(passed=1, xfailed=1)


def test_failed_gates_are_shown_beside_another_error(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
def test_both(fairness):
    fairness(PARITY, UNFAIR, estimate="e", below=0.1)
    assert 1 + 1 == 3
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E  *assert (1 + 1) == 3", "*- fairness -*", "test_model.py:16: The limit is not met:*"]
    )


def test_marker_gives_options_and_the_nearest_one_wins(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
@pytest.mark.fairness(estimate="e", below=0.1, strict=True)
class TestModel:
    def test_of_class(self, fairness):
        fairness(PARITY, FAIR)

    @pytest.mark.fairness(below=0.3)
    def test_own(self, fairness):
        fairness(PARITY, UNFAIR)

    def test_call(self, fairness):
        fairness(tdf.demographic_parity_ratio("g"), FAIR, above=0.8)

    @pytest.mark.fairness(above=0.8)
    def test_other_limit(self, fairness):
        fairness(tdf.demographic_parity_ratio("g"), FAIR)

    def test_strict(self, fairness):
        fairness(PARITY, FAIR.head(60).vstack(FAIR.tail(60)), estimate="e", below=0.5)
        fairness(PARITY, FAIR, below=0.02)

@pytest.mark.fairness(0.1)
def test_position(fairness):
    pass

@pytest.mark.fairness(data=FAIR)
def test_data(fairness):
    pass
"""
    )
    result.assert_outcomes(passed=4, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "The marker `fairness` takes options by name, not 0.1.",
            "The marker `fairness` does not take `data`: give it to the fixture, `fairness(metrics, data, …)`.",
        ]
    )


def test_marker_selects_tests_with_the_fixture_and_marked_ones(run: Callable[..., pytest.RunResult]) -> None:
    tests = """
def test_fixture(fairness):
    pass

@pytest.mark.fairness
def test_marked():
    pass

def test_other():
    pass
"""
    run(tests, "-m", "fairness").assert_outcomes(passed=2, deselected=1)
    run(tests, "-m", "not fairness").assert_outcomes(passed=1, deselected=2)


def test_junit_properties_have_value_limit_and_verdict(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    run(
        """
def test_parity():
    data = UNFAIR.with_columns(month=pl.lit("May\\x1b[31m"))
    with pytest.raises(tdf.inference.UnfairError):
        tdf.assert_fair(PARITY, data, estimate="e", below=0.1, group_by="month")
""",
        "--junitxml=junit.xml",
    ).assert_outcomes(passed=1)
    found = properties(pytester)
    name = "demographic_parity(g) month=May\\x1b[31m"
    assert {key: found[f"{name} {key}"] for key in ("value", "limit", "verdict")} == {
        "value": "0.2", "limit": "below 0.1", "verdict": "fail",
    }  # fmt: skip
    lower, upper = map(float, found[f"{name} interval"].split(" to "))
    assert 0.1 < lower < 0.2 < upper < 0.3


def test_summary_has_the_gates_of_all_tests(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
@pytest.fixture(scope="module")
def data():
    tdf.assert_fair(tdf.demographic_parity_ratio("g"), FAIR, estimate="e", above=0.8)
    return FAIR

def test_one(data):
    tdf.assert_fair(PARITY, data, estimate="e", below=0.1)

def test_two(fairness):
    fairness(PARITY, UNFAIR, estimate="e", below=0.1)
"""
    )
    result.stdout.fnmatch_lines([
        "*= fairness =*",
        "test  * gate  * value * interval * limit * verdict",
        "test_model.py::test_one  demographic_parity_ratio(g)  0.9901 * above 0.8  pass",
        "test_model.py::test_one  demographic_parity(g)  * 0.005 * below 0.1  pass",
        "test_model.py::test_two  demographic_parity(g)  * 0.2 * below 0.1  fail",
    ])  # fmt: skip


def test_verdicts_at_several_times_name_their_time(
    run: Callable[..., pytest.RunResult], pytester: pytest.Pytester
) -> None:
    result = run(
        """
def test_brier(fairness):
    rows = pl.DataFrame({"time": [2.0, 6.0, 9.0, 9.0] * 100, "died": True, "g": ["a", "b"] * 200, "s": 0.5})
    rows = rows.with_columns(s4=pl.col("s") + pl.int_range(pl.len()) % 5 / 100)
    outcome = tdf.survival.outcome("time", "died")
    fairness(tdf.survival.brier.difference("g"), rows, outcome, probs={4: "s4", 8: "s4"}, below=0.3)
""",
        "--junitxml=junit.xml",
    )
    for at in (4, 8):
        result.stdout.fnmatch_lines([f"test_model.py::test_brier  brier_survival_difference(g) eval_time={at} * pass"])
        assert properties(pytester)[f"brier_survival_difference(g) eval_time={at} verdict"] == "pass"


def test_runs_without_gates_have_no_summary(run: Callable[..., pytest.RunResult]) -> None:
    result = run("def test_nothing():\n    pass\n")
    result.stdout.no_fnmatch_line("*fairness*")


def test_verdicts_travel_from_workers(run: Callable[..., pytest.RunResult], request: pytest.FixtureRequest) -> None:
    result: Any = run("def test_parity():\n    tdf.assert_fair(PARITY, FAIR, estimate='e', below=0.1)\n")
    (report,) = result.reprec.getreports("pytest_runtest_logreport")[-1:]
    hook = request.config.hook
    sent = hook.pytest_report_to_serializable(config=request.config, report=report)
    received = hook.pytest_report_from_serializable(config=request.config, data=sent)
    assert [judged["verdict"] for judged in received.fairness] == ["pass"]
    assert dict(received.user_properties)["demographic_parity(g) verdict"] == "pass"


def test_start_of_pytest_reads_no_frames() -> None:
    code = (
        "import sys, tidyfair.integrations.pytest_plugin\n"
        "print(sorted({'polars', 'numpy', 'narwhals'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - our own
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "call",
    [
        "tdf.assert_fair(tdf.demographic_parity('gg'), FAIR, estimate='e', below=0.1)",
        "fairness(PARITY, FAIR, estimate='ee', below=0.1)",
        "tdf.check(PARITY, below=0.1)(FAIR, estimate='ee')",
        "tdf.equal_opportunity('g')(FAIR, 'truth', 'e')",
    ],
)
def test_mistakes_in_a_call_show_the_line_of_the_test_and_the_message(
    run: Callable[..., pytest.RunResult], call: str
) -> None:
    test = f"def test_it(fairness):\n    {call}\n"
    result = run(test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E  *tidyfair.errors.ColumnError: *there is no column *", "test_model.py:*"])
    assert f">       {call}" in result.outlines
    lines = result.outlines
    failure = lines[next(number for number, line in enumerate(lines) if "FAILURES" in line) :]
    assert len(failure) < 15
    result.stdout.no_fnmatch_line("*calls.py*")
    if "assert_fair" in call:
        # whoever asks for everything gets it
        run(test, "--full-trace").stdout.fnmatch_lines(["*tallies*source.py*"])


def test_lack_of_evidence_is_not_called_a_failure_of_the_limit(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
def test_few(fairness):
    fairness(PARITY, UNFAIR, estimate="e", below=0.2, strict=True)
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["The gate did not pass.", "*There is not enough evidence that the limit is met:"])


def test_rows_of_unknown_groups_are_in_the_table_of_gates(run: Callable[..., pytest.RunResult]) -> None:
    result = run(
        """
def test_unknown(fairness):
    data = FAIR.with_columns(pl.when(pl.int_range(pl.len()) % 20 == 0).then(None).otherwise("g").alias("g"))
    fairness(tdf.demographic_parity("g", unknown="apart"), data, estimate="e", below=0.2)
"""
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*demographic_parity(g) unknown=100 (5 %) *pass"])
