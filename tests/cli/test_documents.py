"""Documents of the command line: JSON, and Markdown for the summary of a job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Never

import polars as pl
import pytest
from command_line import ARGUMENTS, called, written

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")
CALL = [*ARGUMENTS[:-4], "--by", "race"]


def parsed(text: str) -> Any:
    """A document, which has no constants that JSON forbids."""

    def refused(constant: str) -> Never:
        pytest.fail(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refused)


def test_json_holds_results_groups_and_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500)
    file, output = written(data, tmp_path), tmp_path / "audit.json"
    call = ["audit", file, *CALL, "--group-by", "sex", "--fail-if", "accuracy < 0.9"]
    code, out, _ = called(capsys, *call, "--json", "-")
    document = parsed(out)
    assert code == document["exit_code"] == 3
    assert {row["verdict"] for row in document["verdicts"]} == {"fail"}
    assert called(capsys, *call, "--json", str(output))[0] == 3
    same = parsed(output.read_text("utf-8"))
    assert {**same, "command": ""} == {**document, "command": ""}
    for row in document["results"]:
        if row["metric"] == "accuracy":
            part = data.filter(pl.col("sex") == row["keys"]["sex"])
            expected = tf.accuracy(part, "repaid", "approved", pos_label="yes", interval="auto")
            assert [row["estimate"], row["lower"]] == pytest.approx(expected.select(".estimate", ".lower").row(0))
    (together,) = [row for row in document["pooled_results"] if row["metric"] == "accuracy"]
    assert together["estimate"] == tf.accuracy(data, "repaid", "approved", pos_label="yes")[".estimate"].item()
    # groups below the least number of rows are not written
    sizes = dict(data.group_by("sex", "race").len().select(pl.format("{} {}", "sex", "race"), "len").rows())
    shown = {f"{row['keys']['sex']} {row['group']}" for row in document["groups"] if row["group"] is not None}
    assert shown == {name for name, size in sizes.items() if size >= 30}


def test_json_has_no_infinite_numbers_and_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = pl.DataFrame(
        {"y": [1, 0, 1, 0] * 20, "p": [1, 1, 1, 0] * 20, "g": ["a", "a", "b", "b"] * 20, "k": [float("inf"), 0.5] * 40}
    )
    call = ["audit", written(data, tmp_path), "--truth", "y", "--estimate", "p", "--by", "g", "--group-by", "k"]
    _, out, _ = called(capsys, *call, "--metric", "diagnostic_odds_ratio", "--min-n", "0", "--json", "-")
    document = parsed(out)
    odds = [row for row in document["pooled_groups"] if row["metric"] == "diagnostic_odds_ratio"]
    assert {(row["estimate"], row["status"]) for row in odds if row["group"]} >= {(None, "infinite")}
    # every end is a number too
    assert {row["keys"]["k"] for row in document["results"]} == {None, 0.5}


def test_comparison_as_json_and_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = pl.when(pl.col("score") > 0.4).then(pl.lit("yes")).otherwise(pl.lit("no"))
    data = lending(500).with_columns(pl.col("approved").cast(pl.String), newer=newer)
    call = ["compare", written(data, tmp_path), "--truth", "repaid", "--one", "approved", "--other", "newer"]
    call += ["--pos-label", "yes", "--fail-if", "change in sens < 0"]
    code, out, _ = called(capsys, *call, "--json", "-")
    document = parsed(out)
    assert (code, document["exit_code"], document["verdicts"][0]["verdict"]) == (0, 0, "pass")
    expected = tf.compare_models(tf.sens)(data, "repaid", one="approved", other="newer", pos_label="yes")
    (row,) = [row for row in document["results"] if row["metric"] == "sens"]
    assert row["change"] == expected[".change"].item()
    code, out, _ = called(capsys, *call, "--markdown", "-")
    assert code == 0
    assert out.startswith("# approved and newer, compared on ")
    assert "| change in sens &lt; 0 |" in out


def test_markdown_is_added_to_the_summary_of_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, card = tmp_path / "step_summary_1f", tmp_path / "card.md"
    summary.write_text("# Another step\n")
    card.write_text("before")
    call = ["audit", written(lending(300), tmp_path), *CALL, "--fail-if", "accuracy < 0.5", "--markdown"]
    assert "must end in .md" in called(capsys, *call, str(summary))[2]
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for _ in range(2):
        code, out, err = called(capsys, *call, str(summary))
        assert (code, err) == (0, f"{summary} is added to.\n")
        assert "accuracy < 0.5" in out
    text = summary.read_text("utf-8")
    assert text.startswith("# Another step\n\n# Audit of ")
    assert text.count("\n# Audit of ") == text.count("\n## Verdicts\n") == 2
    # other files are replaced
    assert called(capsys, *call, str(card))[0] == 0
    assert card.read_text("utf-8").startswith("# Audit of ")


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (["--json", "-", "--markdown", "-"], "`--markdown` and `--json` cannot both be printed"),
        (["--output", "-"], "`--output` is written to a file; documents that can be printed are"),
        (["--json", "audit.txt"], "its name must end in .json"),
    ],
)
def test_wrong_places_of_documents_are_refused(
    outputs: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, "audit", written(lending(60), tmp_path), *CALL, *outputs)
    assert (code, out) == (2, "")
    assert expected in err


def test_named_audit_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500)
    call = ["audit", written(data, tmp_path), "--as", "nyc_ll144", "--estimate", "approved", "--pos-label", "yes"]
    code, out, _ = called(capsys, *call, "--by", "sex", "--by", "race", "--json", "-")
    document = parsed(out)
    filed = tf.audit("nyc_ll144", data, estimate="approved", pos_label="yes", by=["sex", "race"])
    assert code == 0
    assert document["statement"] == list(filed.statement)
    assert set(document["tables"]) == set(filed.tables)
    code, _, err = called(capsys, *call, "--by", "race=White")
    assert code == 2
    assert "compares all groups of a column: give `--by` columns, and the reference as `--to`" in err
