from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair import terminal as screen
from tidyfair.cli import main
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = ["--truth", "repaid", "--estimate", "approved", "--pos-label", "yes", "--by", "race", "--by", "race:sex"]


@pytest.fixture(params=[".parquet", ".csv", ".ndjson"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / f"predictions{request.param}"
    data = lending(2_000)
    write: dict[str, Any] = {".parquet": data.write_parquet, ".csv": data.write_csv, ".ndjson": data.write_ndjson}
    write[request.param](path)
    return str(path)


def test_example_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 0
    shown = capsys.readouterr().out
    assert "Example data: 5,000 simulated decisions" in shown
    assert "Native" in shown
    race = tf.demographic_parity("race")(lending(), estimate="approved", pos_label="yes")
    assert f"{race['.estimate'][0]:.3f}" in shown


def test_audit_of_a_file(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", file, *ARGUMENTS]) == 0
    shown = capsys.readouterr().out
    assert "race:sex" in shown
    assert "equalized_odds" in shown
    output = tmp_path / "result.parquet"
    assert main(["audit", file, *ARGUMENTS, "--weights", "weight", "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    found = pl.read_parquet(output)
    expected = tf.equalized_odds("race", "sex")(
        lending(2_000), "repaid", "approved", pos_label="yes", case_weights="weight", on_undefined="ignore"
    )
    row = found.filter((pl.col(".metric") == "equalized_odds") & (pl.col(".by") == "race:sex"))
    assert row[".estimate"][0] == pytest.approx(expected[".estimate"][0])


def test_group_by_and_every_output(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[int] = []
    for suffix in (".csv", ".json", ".parquet"):
        output = tmp_path / f"result{suffix}"
        assert main(["audit", file, *ARGUMENTS, "--group-by", "fold", "--output", str(output)]) == 0
        read: Any = {".csv": pl.read_csv, ".json": pl.read_json, ".parquet": pl.read_parquet}[suffix]
        rows.append(read(output).height)
    # six rates and four disparities on two features, in ten folds
    assert rows == [140, 140, 140]
    assert "note: " in capsys.readouterr().err  # small groups without positives


def test_scores_and_labels_of_the_columns_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "numbers.csv"
    lending(500).with_columns(repaid=(pl.col("repaid") == "yes").cast(pl.Int8)).write_csv(path)
    call = ["audit", str(path), "--truth", "repaid", "--probs", "score", "--threshold", "0.6", "--by", "sex"]
    assert main([*call, "--pos-label", "1"]) == 0
    one = capsys.readouterr().out
    assert main(call) == 0
    assert capsys.readouterr().out == one
    assert main([*call, "--pos-label", "0"]) == 0
    assert capsys.readouterr().out != one


def test_without_truth_only_who_is_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "decisions.parquet"
    lending(500).write_parquet(path)
    assert main(["audit", str(path), "--estimate", "approved", "--pos-label", "yes", "--by", "sex"]) == 0
    shown = capsys.readouterr().out
    assert "selection_rate" in shown
    assert "equalized_odds" not in shown


def test_a_column_may_have_a_colon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "colon.parquet"
    lending(500).rename({"sex": "applicant:sex"}).write_parquet(path)
    assert main(["audit", str(path), "--estimate", "approved", "--pos-label", "yes", "--by", "applicant:sex"]) == 0
    assert "applicant:sex" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.parquet", "--by", "sex"], "nowhere.parquet"),
        (["predictions.xlsx", "--by", "sex"], "kind of file '.xlsx'"),
        (["--output", "result.docx"], "kind of output '.docx'"),
        (["--by", "rase"], "Did you mean 'race'?"),
        (["--pos-label", "YES"], "Did you mean 'yes'?"),
        (["--probs", "score"], "`--probs` needs `--threshold`"),
    ],
    ids=["no-file", "no-reader", "no-writer", "no-column", "no-label", "no-threshold"],
)
def test_bad_usage(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_cannot_be_read_leaves_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "half.parquet", tmp_path / "result.parquet"
    lending(2_000).write_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert main(["audit", str(path), *ARGUMENTS, "--output", str(output)]) == 2
    assert "(while tidyfair opened the file)" in capsys.readouterr().err
    # a file whose rows are no rows is found when they are counted
    texts = tmp_path / "late.csv"
    lending(2_000).write_csv(texts)
    with texts.open("a") as file:
        file.write("too,few\n")
    numbers = ["--truth", "repaid", "--probs", "score", "--threshold", "0.5", "--pos-label", "yes", "--by", "race"]
    lines = texts.read_text().splitlines()
    texts.write_text("\n".join([*lines[:-1], lines[-2].replace(lines[-2].split(",")[-1], "high"), ""]))
    assert main(["audit", str(texts), *numbers, "--weights", "weight", "--output", str(output)]) == 2
    assert "(while tidyfair counted the rows)" in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["half.parquet", "late.csv"]


def test_half_an_output_is_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "result.json"
    output.write_text("before")

    def full(_: pl.DataFrame, place: Path) -> None:
        place.write_text("[{")
        msg = "No space left on device"
        raise OSError(msg)

    monkeypatch.setattr(pl.DataFrame, "write_json", full)
    assert main(["audit", "--output", str(output)]) == 2
    assert "No space left on device (while tidyfair wrote the result)" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]
    assert output.read_text() == "before"


def test_messages_speak_of_flags(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", file, "--truth", "repaid", "--estimate", "approved", "--by", "sex"]) == 2
    assert "write `--pos-label 'yes'` or `--pos-label 'no'`" in capsys.readouterr().err


def test_more_than_two_labels_are_compared_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.parquet"
    lending(300).select("sex", truth="age_band", estimate="age_band").write_parquet(path)
    output = tmp_path / "result.parquet"
    call = ["audit", str(path), "--truth", "truth", "--estimate", "estimate", "--by", "sex", "--by", "sex"]
    assert main([*call, "--output", str(output)]) == 0
    found = pl.read_parquet(output).filter(pl.col(".by") == "sex")
    assert set(found[".estimator"]) == {"one_vs_rest"}
    assert capsys.readouterr().out == ""


def test_a_file_needs_a_feature(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", file, "--truth", "repaid", "--estimate", "approved"]) == 2
    assert "--by" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "audit" in capsys.readouterr().out


def test_the_installed_command_runs() -> None:
    command = [sys.executable, "-m", "tidyfair", "audit", "--by", "sex"]
    result = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")  # noqa: S603 - our own command
    assert "demographic_parity" in result.stdout


@pytest.mark.parametrize(
    ("conditions", "code", "verdicts"),
    [
        (["demographic_parity(race) > 0.05"], 3, {"fail"}),
        (["demographic_parity(sex) > 0.3", "disparate_impact(race) < 0.2"], 0, {"pass"}),
        (["demographic_parity(sex) > 0.3", "demographic_parity(sex:race) > 0.05"], 3, {"pass", "fail"}),
    ],
    ids=["fails", "passes", "one-of-two-fails"],
)
def test_an_exit_code_says_the_worst_verdict(
    conditions: list[str], code: int, verdicts: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [argument for condition in conditions for argument in ("--fail-if", condition)]
    assert main(["audit", *flags]) == code
    shown = capsys.readouterr().out.partition("Verdicts")[2]
    assert {verdict for verdict in ("pass", "fail", "not enough") if verdict in shown} == verdicts


def test_too_few_people_to_tell_has_its_own_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.parquet"
    lending(60).write_parquet(path)
    gate = tf.check(tf.equalized_odds("race"), below=0.1)
    data = lending(60)
    expected = gate(data, "repaid", "approved", pos_label="yes", on_undefined="ignore")[".verdict"].to_list()
    assert expected == ["not enough evidence"]
    assert main(["audit", str(path), *ARGUMENTS, "--fail-if", "equalized_odds(race) > 0.1"]) == 4
    assert "not enough" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("equalized_odds(race) == 0.1", "is no condition such as"),
        ("equalised_odds(race) > 0.1", "Did you mean 'equalized_odds'?"),
        ("accuracy(race) > 0.1", "comparison of groups"),
        ("equalized_odds(rase) > 0.1", "Did you mean 'race'?"),
        ("__import__('os').getcwd(race) > 0", "is no condition such as"),
    ],
)
def test_conditions_are_read_not_run(condition: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--fail-if", condition]) == 2
    assert said in capsys.readouterr().err


def test_a_disparity_has_one_limit(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--fail-if", "disparate_impact(race) < 0.8", "--fail-if", "disparate_impact( race ) > 1.25"]
    assert main(["audit", *twice]) == 2
    assert "--fail-if: 'disparate_impact( race ) > 1.25' is a second limit of disparate_impact(race)" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_told_of_rows_that_take_long(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setattr(screen, "_PATIENCE", -1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["audit", file, *ARGUMENTS]) == 0
    told = capsys.readouterr().err.partition("note:")[0]
    assert ("2,000 rows read\r\x1b[2K" in told) == terminal
    assert terminal or told == ""
    monkeypatch.setattr(screen, "_PATIENCE", 60)
    assert main(["audit", file, *ARGUMENTS]) == 0
    assert "rows read" not in capsys.readouterr().err


def test_metrics_are_listed_with_their_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    told = capsys.readouterr().out
    assert "tp / (tp + fn)" in told
    assert told.count(" to ") >= len(tf.catalogue())
    assert main(["metrics", *tf.catalogue()["name"]]) == 0
    told = capsys.readouterr().out
    assert all(f"{name}: " in told for name in tf.catalogue()["name"])
    assert main(["metrics", "recall", "equalized_odds"]) == 0
    told = capsys.readouterr().out
    assert "def sens(tp: Expr, fn: Expr) -> Rate:\n    return tp, tp + fn" in told
    assert "difference(to='range') of\n  sens\n  spec\nminimize" in told
    assert main(["metrics", "recal"]) == 2
    assert "Did you mean 'recall'?" in capsys.readouterr().err


def test_example_data_are_shown_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    assert "lending" in capsys.readouterr().out
    assert main(["datasets", "lending", "--rows", "3"]) == 0
    assert capsys.readouterr().out.count("\n") == 3 + 6
    output = tmp_path / "loans.csv"
    assert main(["datasets", "lending", "--rows", "30", "--output", str(output)]) == 0
    assert pl.read_csv(output).height == 30
    assert main(["datasets", "lendin"]) == 2
    assert "Did you mean 'lending'?" in capsys.readouterr().err


def test_two_models_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = pl.when(pl.col("score") > 0.4).then(pl.lit("yes")).otherwise(pl.lit("no"))
    data = lending(500).with_columns(pl.col("approved").cast(pl.String), newer=newer)
    data.write_parquet(tmp_path / "both.parquet")
    call = ["compare", str(tmp_path / "both.parquet"), "--truth", "repaid", "--by", "sex", "--pos-label", "yes"]
    assert main([*call, "--one", "approved", "--other", "newer"]) == 0
    told = capsys.readouterr().out
    found = tf.compare_models(tf.accuracy)(data, "repaid", one="approved", other="newer", pos_label="yes")
    assert f"{found['.change'][0]:.3f}" in told
    assert "demographic_parity" in told
    assert main([*call, "--one", "approved", "--other", "newest"]) == 2
    assert "no column 'newest'" in capsys.readouterr().err


def test_pages_are_written(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html, card = tmp_path / "audit.html", tmp_path / "card.md"
    assert main(["audit", file, *ARGUMENTS, "--html", str(html), "--markdown", str(card)]) == 0
    assert capsys.readouterr().out == ""
    assert html.read_text("utf-8").startswith("<!doctype html>")
    assert "## Disparities" in card.read_text("utf-8")
    gate = ["--fail-if", "demographic_parity(age_band) > 0.01"]
    assert main(["report", file, *ARGUMENTS, *gate, "--html", str(html)]) == 3
    assert "<td" in html.read_text("utf-8")
    assert ">fail<" in html.read_text("utf-8")
    assert main(["audit", file, *ARGUMENTS, "--group-by", "fold", "--html", str(html)]) == 2
    assert "without groups" in capsys.readouterr().err
    assert not list(tmp_path.glob(".part*"))


@pytest.mark.parametrize("quiet", [True, False])
def test_verdicts_have_colours_on_terminals(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, quiet: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1" if quiet else "")
    assert main(["audit", file, *ARGUMENTS, "--fail-if", "demographic_parity(age_band) > 0.01"]) == 3
    told = capsys.readouterr().out
    assert ("\x1b[31mfail\x1b[0m" in told) == (not quiet)
    assert " fail " in told.replace("\x1b[31m", "").replace("\x1b[0m", "")


def test_every_command_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("audit", "report", "compare", "metrics", "datasets"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        assert f"  tidyfair {command}" in capsys.readouterr().out


def test_files_are_not_written_where_they_do_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "people.CSV"
    lending(300).rename({"sex": "a:b"}).write_csv(data)
    call = ["audit", str(data), *ARGUMENTS[:-4], "--by", "a:b"]
    assert main([*call, "--fail-if", "demographic_parity(a:b) > 9e-1"]) == 0
    capsys.readouterr()
    odd = {
        ("--output", str(tmp_path / "nowhere" / "x.csv")): "there is no folder",
        ("--html", str(tmp_path / "x.md")): "to hold a page of kind .html",
        ("--fail-if", "demographic_parity(race) >= 1"): "with < or > and a number",
    }
    for arguments, said in odd.items():
        assert main([*call, *arguments]) == 2
        assert said in capsys.readouterr().err
    same = tmp_path / "same.csv"
    same.write_bytes(data.read_bytes())
    assert main(["audit", str(same), *call[2:], "--output", str(same)]) == 2
    assert "is the file of the data" in capsys.readouterr().err
    assert same.read_bytes() == data.read_bytes()
