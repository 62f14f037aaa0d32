"""Commands, messages and exit codes of the command line."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import ARGUMENTS, called, written
from report_data import Page

import tidyfair as tf
from tidyfair.cli import terminal as screen
from tidyfair.cli.catalogue import explanation_of
from tidyfair.cli.fail_if import gate_of
from tidyfair.cli.main import main
from tidyfair.datasets import lending
from tidyfair.metrics import catalog

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "predictions.csv"
    lending(2_000).write_csv(path)
    return str(path)


@pytest.fixture(params=[".parquet", ".csv", ".ndjson"])
def any_file(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = tmp_path / f"predictions{request.param}"
    data = lending(2_000)
    write: dict[str, Any] = {".parquet": data.write_parquet, ".csv": data.write_csv, ".ndjson": data.write_ndjson}
    write[request.param](path)
    return str(path)


def test_audit_of_example_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Audit of the example data (simulated decisions on loans): 5,000 rows")
    assert "Native" in shown
    race = tf.demographic_parity("race")(lending(), estimate="approved", pos_label="yes")
    assert f"{race['.estimate'][0] * 100:.1f} points" in shown


def test_audit_of_a_file(any_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", any_file, *ARGUMENTS]) == 0
    shown = capsys.readouterr().out
    assert "race and sex" in shown
    assert "equalized_odds" in shown
    output = tmp_path / "result.parquet"
    assert main(["audit", any_file, *ARGUMENTS, "--weights", "weight", "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    result = pl.read_parquet(output)
    expected = tf.equalized_odds("race", "sex", min_n=30, unknown="apart")(
        lending(2_000), "repaid", "approved", pos_label="yes", case_weights="weight", on_undefined="ignore"
    )
    row = result.filter((pl.col(".metric") == "equalized_odds") & (pl.col(".by") == "race:sex"))
    assert row[".estimate"][0] == pytest.approx(expected[".estimate"][0])


def test_group_by_with_every_output_format(any_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[int] = []
    for suffix in (".csv", ".json", ".parquet"):
        output = tmp_path / f"result{suffix}"
        assert main(["audit", any_file, *ARGUMENTS, "--group-by", "fold", "--output", str(output)]) == 0
        read: Any = {
            ".csv": pl.read_csv,
            ".json": partial(pl.read_json, infer_schema_length=None),
            ".parquet": pl.read_parquet,
        }[suffix]
        rows.append(read(output).height)
    # six rates and four disparities on two features, in ten folds
    assert rows == [140, 140, 140]
    assert "note: " in capsys.readouterr().err  # small groups without positives


def test_pos_label_is_read_as_the_type_of_the_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "numbers.csv"
    lending(500).with_columns(repaid=(pl.col("repaid") == "yes").cast(pl.Int8)).write_csv(path)
    call = ["audit", str(path), "--truth", "repaid", "--probs", "score", "--threshold", "0.6", "--by", "sex"]
    assert main([*call, "--pos-label", "1"]) == 0
    title, _, one = capsys.readouterr().out.partition("\n\n")
    assert "event 1" in title
    assert main(call) == 0
    assert capsys.readouterr().out.partition("\n\n") == (title, "\n\n", one)
    assert main([*call, "--pos-label", "0"]) == 0
    assert capsys.readouterr().out.partition("\n\n")[2] != one


def test_audit_without_truth_shows_selection_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "decisions.parquet"
    lending(500).write_parquet(path)
    assert main(["audit", str(path), "--estimate", "approved", "--pos-label", "yes", "--by", "sex"]) == 0
    shown = capsys.readouterr().out
    assert "selection_rate" in shown
    assert "equalized_odds" not in shown


def test_column_name_may_have_a_colon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "colon.parquet"
    lending(500).rename({"sex": "applicant:sex"}).write_parquet(path)
    assert main(["audit", str(path), "--estimate", "approved", "--pos-label", "yes", "--by", "applicant:sex"]) == 0
    assert "applicant:sex" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere.parquet", "--by", "sex"], "nowhere.parquet"),
        (
            ["predictions.xlsx", "--by", "sex"],
            "'predictions.xlsx' cannot be read: its name must end in .parquet, ",
        ),
        (["--output", "result.docx"], "its name must end in .csv, .parquet or .json"),
        (["--by", "rase"], "Did you mean 'race'?"),
        (["--pos-label", "YES"], "Did you mean 'yes'?"),
        (["--threshold", "0.5"], "`--threshold` needs a column of scores; add `--probs`."),
    ],
    ids=["no-file", "no-reader", "no-writer", "no-column", "no-label", "no-scores"],
)
def test_bad_usage_exits_with_2(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_unreadable_file_leaves_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "half.parquet", tmp_path / "result.parquet"
    lending(2_000).write_parquet(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert main(["audit", str(path), *ARGUMENTS, "--output", str(output)]) == 2
    assert "cannot be read as parquet: " in capsys.readouterr().err
    # a file whose rows are no rows is found when they are counted
    texts = tmp_path / "late.csv"
    lending(12_000).write_csv(texts)
    with texts.open("a") as file:
        file.write("too,few\n")
    numbers = ["--truth", "repaid", "--probs", "score", "--threshold", "0.5", "--pos-label", "yes", "--by", "race"]
    lines = texts.read_text().splitlines()
    texts.write_text("\n".join([*lines[:-1], lines[-2].replace(lines[-2].split(",")[-1], "high"), ""]))
    assert main(["audit", str(texts), *numbers, "--weights", "weight", "--output", str(output)]) == 2
    assert "column 'weight' holds numbers, and here 'high'" in capsys.readouterr().err
    assert sorted(item.name for item in tmp_path.iterdir()) == ["half.parquet", "late.csv"]


def test_failed_write_keeps_the_old_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "result.json"
    output.write_text("before")

    def full(_: pl.DataFrame, path: Path) -> None:
        path.write_text("[{")
        msg = "No space left on device"
        raise OSError(msg)

    monkeypatch.setattr(pl.DataFrame, "write_json", full)
    assert main(["audit", "--output", str(output)]) == 2
    assert "No space left on device (while tidyfair wrote the result)" in capsys.readouterr().err
    assert [item.name for item in tmp_path.iterdir()] == ["result.json"]
    assert output.read_text() == "before"


def test_messages_name_flags(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", file, "--truth", "repaid", "--estimate", "approved", "--by", "sex"]) == 2
    assert "write `--pos-label 'yes'` or `--pos-label 'no'`" in capsys.readouterr().err


def test_multiclass_audit_uses_one_vs_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.parquet"
    lending(300).select("sex", truth="age_band", estimate="age_band").write_parquet(path)
    output = tmp_path / "result.parquet"
    call = ["audit", str(path), "--truth", "truth", "--estimate", "estimate", "--by", "sex", "--by", "sex"]
    assert main([*call, "--output", str(output)]) == 0
    result = pl.read_parquet(output).filter(pl.col(".by") == "sex")
    assert set(result[".estimator"]) == {"one_vs_rest"}
    assert capsys.readouterr().out == ""


def test_averages_over_labels_that_cannot_vary_are_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "three.parquet"
    data = lending(300).select("sex", truth="age_band", estimate="age_band")
    data.write_parquet(path)
    _, out, _ = called(capsys, "audit", str(path), "--truth", "truth", "--estimate", "estimate", "--by", "sex")
    # label, rows, base rate, selection rate, accuracy …
    label, rows, base_rate, selection_rate, accuracy, *_ = _cells(out, "all rows")
    assert (label, rows, base_rate, selection_rate) == ("-", "300", "-", "-")
    assert accuracy.startswith("100.0% (")


def test_audit_of_a_file_needs_by(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", file, "--truth", "repaid", "--estimate", "approved"]) == 2
    assert "--by" in capsys.readouterr().err


def test_no_arguments_show_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "audit" in capsys.readouterr().out


def test_module_runs_as_a_command() -> None:
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
def test_exit_code_is_that_of_the_worst_verdict(
    conditions: list[str], code: int, verdicts: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [argument for condition in conditions for argument in ("--fail-if", condition)]
    assert main(["audit", *flags]) == code
    shown, _, together = capsys.readouterr().out.partition("Verdicts")[2].partition("\n\n")[0].partition("Failures are")
    assert bool(together) == (len(conditions) > 1)
    assert {verdict for verdict in ("pass", "fail", "not enough") if f" {verdict} " in shown} == verdicts


def test_not_enough_evidence_exits_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "few.parquet"
    lending(60).write_parquet(path)
    gate = tf.check(tf.equalized_odds("race"), below=0.1)
    data = lending(60)
    expected = gate(data, "repaid", "approved", pos_label="yes", on_undefined="ignore")[".verdict"].to_list()
    assert expected == ["not enough evidence"]
    assert main(["audit", str(path), *ARGUMENTS, "--fail-if", "equalized_odds(race) > 0.1"]) == 4
    shown = capsys.readouterr().out.partition("Verdicts")[2]
    assert "not enough evidence" in shown
    (left_out,) = gate(data, "repaid", "approved", pos_label="yes", on_undefined="ignore")[".groups_left_out"].to_list()
    assert left_out
    assert all(f"{group} (" in shown.partition("cannot pass without")[2] for group in left_out)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("equalized_odds(race) == 0.1", "is not a condition; write one such as"),
        ("change in equalized_odds(race) > 0.1", "as `tidyfair compare` shows it"),
        ("equalised_odds(race) > 0.1", "Did you mean 'equalized_odds'?\n"),
        ("nothing_of_ours(race) > 0.1", "`tidyfair metrics` lists what there is."),
        ("four_fifths(sex) < 0.8", "write 'four_fifths(sex)', or 'demographic_parity_ratio(sex) < 0.8'"),
        ("accuracy(race) > 0.1", "compares no groups"),
        ("equalized_odds(rase) > 0.1", "Did you mean 'race'?"),
        ("__import__('os').getcwd(race) > 0", "is not a condition; write one such as"),
    ],
)
def test_fail_if_conditions_are_parsed_and_not_executed(
    condition: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "--fail-if", condition]) == 2
    assert expected in capsys.readouterr().err


def test_second_limit_of_a_disparity_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--fail-if", "disparate_impact(race) < 0.8", "--fail-if", "disparate_impact( race ) > 1.25"]
    assert main(["audit", *twice]) == 2
    assert "`--fail-if`: 'disparate_impact( race ) > 1.25' is a second limit of disparate_impact(race)" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_terminals_only(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setattr(screen, "_PATIENCE", -1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["audit", file, *ARGUMENTS]) == 0
    text = capsys.readouterr().err.partition("note:")[0]
    assert ("2,000 rows read\r\x1b[2K" in text) == terminal
    assert terminal or text == ""
    monkeypatch.setattr(screen, "_PATIENCE", 60)
    assert main(["audit", file, *ARGUMENTS]) == 0
    assert "rows read" not in capsys.readouterr().err


def test_metrics_command_lists_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    text = capsys.readouterr().out
    assert "tp / (tp + fn)" in text
    assert text.count(" to ") >= len(tf.catalogue())


def test_metrics_command_explains_every_metric(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # each explanation looks names up in the catalogue, which takes long to make
    monkeypatch.setattr("tidyfair.cli.catalogue.catalogue", cache(tf.catalogue))
    for row in tf.catalogue().rows(named=True):
        text = explanation_of(row["name"])
        assert text.startswith(f"{row['name']}: ")
        assert f"{row['lower']:g} to {row['upper']:g}; " in text
        if row["source"]:
            assert row["source"] in " ".join(text.split())
    assert main(["metrics", "recall", "equalized_odds"]) == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    assert "formula tp / (tp + fn) where tp: true positives; fn: false negatives range 0 to 1; larger" in words
    assert "disparities average_abs_odds_difference, equal_opportunity," in words
    assert "def sens(tp: Number, fn: Number) -> Rate:\n    return tp, tp + fn" in text
    assert "source Hardt et al. (2016), Equality of opportunity in supervised learning" in words
    assert "def spec(tn: Number, fp: Number) -> Rate:\n    return tn, tn + fp" in text
    assert "source Hanley and McNeil, 1982; Hand and Till, 2001" in " ".join(explanation_of("roc_auc").split())
    assert main(["metrics", "recal"]) == 2
    assert "There is no metric 'recal'. Did you mean 'recall'?" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_report_command_makes_interactive_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, html = tmp_path / "loans.parquet", tmp_path / "page.html"
    lending(300).write_parquet(file)
    call = ["--truth", "repaid", "--estimate", "approved", "--pos-label", "yes", "--by", "sex"]
    facts = ["--model", "Trees 2", "--dataset", "loans", "--date", "2026-11-23"]
    assert main(["report", str(file), *call, *facts, "--interactive", "--html", str(html)]) == 0
    assert "page.html is written" in capsys.readouterr().err
    page = html.read_text("utf-8")
    assert all(fact in page for fact in ("Trees 2", "loans", "2026-11-23", "Explore the groups"))


def test_metrics_command_knows_the_names_of_other_libraries() -> None:
    assert explanation_of("r2_score").startswith("r2_score is rsq_trad here.\n\nrsq_trad: 1 minus ")
    assert explanation_of("f1_score_group_min").startswith('f1_score_group_min is f_meas.group_minimum("column") here.')
    with pytest.raises(tf.errors.ArgumentError, match="There is no metric"):
        explanation_of("nothing_like_it")


def test_datasets_command_shows_and_writes_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets"]) == 0
    assert "lending" in capsys.readouterr().out
    assert main(["datasets", "lending", "--rows", "3"]) == 0
    assert capsys.readouterr().out.count("\n") == 3 + 6
    output = tmp_path / "loans.csv"
    assert main(["datasets", "lending", "--rows", "30", "--output", str(output)]) == 0
    assert pl.read_csv(output).height == 30
    assert main(["datasets", "lendin"]) == 2
    assert "Did you mean 'lending'?" in capsys.readouterr().err


def test_compare_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer = pl.when(pl.col("score") > 0.4).then(pl.lit("yes")).otherwise(pl.lit("no"))
    data = lending(500).with_columns(pl.col("approved").cast(pl.String), newer=newer)
    data.write_parquet(tmp_path / "both.parquet")
    call = ["compare", str(tmp_path / "both.parquet"), "--truth", "repaid", "--by", "sex", "--pos-label", "yes"]
    assert main([*call, "--one", "approved", "--other", "newer"]) == 0
    text = capsys.readouterr().out
    result = tf.compare_models(tf.accuracy)(data, "repaid", one="approved", other="newer", pos_label="yes")
    assert f"{result['.change'][0] * 100:.1f} points" in text
    assert "demographic_parity" in text
    assert main([*call, "--one", "approved", "--other", "newest"]) == 2
    assert "no column 'newest'" in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_audit_and_report_write_pages(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "leave it out with `--html`" in capsys.readouterr().err
    assert not list(tmp_path.glob(".part*"))


@pytest.mark.parametrize("quiet", [True, False])
def test_verdicts_are_colored_on_terminals(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, quiet: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1" if quiet else "")
    assert main(["audit", file, *ARGUMENTS, "--fail-if", "demographic_parity(age_band) > 0.01"]) == 3
    text = capsys.readouterr().out
    assert ("\x1b[31mfail\x1b[0m" in text) == (not quiet)
    assert " fail " in text.replace("\x1b[31m", "").replace("\x1b[0m", "")


def test_help_of_every_command_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("audit", "report", "compare", "check", "verify", "metrics", "datasets"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        assert f"  tidyfair {command}" in capsys.readouterr().out


def test_unencodable_characters_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "people.parquet"
    lending(200).with_columns(race=pl.lit("\u65e5\u672c")).write_parquet(file)
    command = [sys.executable, "-m", "tidyfair", "audit", str(file), *ARGUMENTS[:-2]]
    ended = subprocess.run(  # noqa: S603 - ours
        command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert ended.returncode == 0, ended.stderr
    assert b"\\u65e5\\u672c" in ended.stdout


@pytest.mark.parametrize("module", ["polars", "tidyfair.cli.parser", "numpy"])
def test_an_interrupt_ends_the_command_quietly(module: str) -> None:
    # the first two are imported before the command runs, numpy while it does
    script = f"""
import os, signal, sys, time
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
sys.meta_path.insert(0, Interrupting())
from tidyfair.__main__ import main
sys.argv[1:] = ["audit"]
sys.exit(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)  # noqa: S603 - ours
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"")


def test_undecodable_arguments_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(lending(200), tmp_path)
    lone = "\udcff"
    for arguments in (
        [f"{tmp_path}/{lone}.csv", *ARGUMENTS],
        [file, *ARGUMENTS, "--by", lone],
        [file, *ARGUMENTS[:4], "--by", "sex", "--pos-label", lone],
        [file, *ARGUMENTS, "--output", f"{tmp_path}/{lone}/result.csv"],
        [file, *ARGUMENTS, "--fail-if", f"demographic_parity({lone}) > 0.1"],
    ):
        code, out, err = called(capsys, "audit", *arguments)
        assert (code, out) == (2, "")
        assert "\\udcff" in err
        assert lone not in err


def test_intervals_equal_those_of_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500)
    file = written(data, tmp_path)
    call: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes", "interval": "auto"}
    parity, accuracy = tf.demographic_parity("race", min_n=30)(data, **call), tf.accuracy(data, **call)
    _, out, _ = called(capsys, "audit", file, *ARGUMENTS)
    for result, unit in ((parity, " points"), (accuracy, "%")):
        value, lower, upper = (100 * number for number in result.select(".estimate", ".lower", ".upper").row(0))
        assert f"{value:.1f}{unit} ({lower:.1f} to {upper:.1f})" in out
    output, groups = tmp_path / "result.csv", tmp_path / "groups.csv"
    places = ["--output", str(output), "--output-groups", str(groups)]
    assert called(capsys, "audit", file, *ARGUMENTS, *places)[:2] == (0, "")
    row = pl.read_csv(output).row(by_predicate=(pl.col(".metric") == "demographic_parity") & (pl.col(".by") == "race"))
    assert row[4:6] == pytest.approx(parity.select(".lower", ".upper").row(0))
    alone = tf.accuracy(data.filter(pl.col("race") == "Black"), **call)
    black = pl.read_csv(groups).filter(pl.col(".metric") == "accuracy", pl.col(".group") == "Black")
    wanted = [".estimate", ".lower", ".upper"]
    assert black.select(wanted).row(0) == pytest.approx(alone.select(wanted).row(0))


def test_printed_values_equal_those_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, card = written(lending(60), tmp_path), tmp_path / "card.md"
    call = ["audit", file, *ARGUMENTS[:-2], "--probs", "score", "--min-n", "0"]
    _, out, _ = called(capsys, *call)
    assert called(capsys, *call, "--markdown", str(card))[0] == 0
    cells = set(re.findall(r"\d+\.\d(?:%| points) \(\d+\.\d to \d+\.\d\)", out))
    assert len(cells) > 25
    assert all(cell in card.read_text("utf-8") for cell in cells)
    assert "[1] no row of the group counts for this metric" in out


def test_audit_of_scores_shows_roc_auc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500)
    file = written(data, tmp_path)
    area = tf.roc_auc(data, "repaid", probs="score", pos_label="yes")[".estimate"].item()
    call = ["audit", file, "--truth", "repaid", "--pos-label", "yes", "--by", "sex", "--probs", "score"]
    for decided in (["--threshold", "0.5"], ["--estimate", "approved"]):
        code, out, _ = called(capsys, *call, *decided)
        assert (code, f"{area:.1%}" in out, "auc_parity" in out) == (0, True, True)
    # without decisions there are ranking and calibration
    code, out, _ = called(capsys, *call)
    assert (code, f"{area:.1%}" in out, "selection_rate" in out) == (0, True, False)
    message = "`--probs` needs a `--truth`, or decisions: add `--threshold`"
    assert message in called(capsys, "audit", file, "--pos-label", "yes", "--by", "sex", "--probs", "score")[2]


def test_audit_of_numbers_shows_regression_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, weights = lending(500)["score"], lending(500)["weight"]
    data = pl.DataFrame({"sex": lending(500)["sex"], "hours": scores * 10, "guess": scores * 10 + weights})
    call = ["audit", "--truth", "hours", "--estimate", "guess", "--by", "sex"]
    error = tf.mae(data, "hours", "guess")[".estimate"].item()
    code, out, _ = called(capsys, *call, written(data, tmp_path))
    assert (code, f"{error:.3f}" in out, "mae_difference" in out) == (0, True, True)
    whole = data.with_columns(pl.col("hours", "guess").round().cast(pl.Int64))
    file, card = written(whole, tmp_path), tmp_path / "card.md"
    code, out, err = called(capsys, *call, file)
    assert (code, out) == (2, "")
    assert "say `--read-as labels` or `--read-as numbers`" in err
    error = tf.mae(whole, "hours", "guess")[".estimate"].item()
    assert f"{error:.3f}" in called(capsys, *call, file, "--read-as", "numbers")[1]
    assert called(capsys, *call, file, "--read-as", "numbers", "--markdown", str(card))[0] == 0
    assert f"{error:.3f}" in card.read_text("utf-8")
    assert "accuracy" in called(capsys, *call, file, "--read-as", "labels")[1]
    assert (
        "does not go with `--pos-label`" in called(capsys, *call, file, "--read-as", "numbers", "--pos-label", "1")[2]
    )


def test_scores_as_estimate_are_rejected_with_the_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scored = {"y": [0, 1] * 30, "score": [item / 60 for item in range(60)], "g": ["a", "b", "b"] * 20}
    file = written(pl.DataFrame(scored), tmp_path)
    call = [file, "--truth", "y", "--by", "g"]
    for command, page in (("audit", []), ("report", ["--html", str(tmp_path / "page.html")])):
        code, out, err = called(capsys, command, *call, "--estimate", "score", *page)
        assert (code, out) == (2, "")
        assert "`--estimate`: the column 'score' holds scores" in err
        assert "`--probs`, with `--threshold`" in err
        assert "`--read-as numbers`" in err
    code, _, err = called(capsys, "compare", *call, "--one", "score", "--other", "y")
    assert code == 2
    assert "`--one`: 'score' holds scores" in err
    assert "`--threshold`" in err
    code, out, _ = called(capsys, "audit", *call, "--estimate", "score", "--read-as", "numbers")
    assert code == 0
    assert "mae_difference" in out


def test_page_shows_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, card = written(lending(300), tmp_path), tmp_path / "a card.md"
    call = ["audit", file, *ARGUMENTS[:-2], "--fail-if", "demographic_parity(race) > 0.5", "--markdown", str(card)]
    called(capsys, *call)
    (line,) = [line for line in card.read_text("utf-8").splitlines() if line.startswith("    tidyfair ")]
    # the limit of the command line is that of no Python call, so that it is written out
    assert shlex.split(line) == ["tidyfair", *call, "--min-n", "30"]
    assert "Compared: groups of 30 rows or more; unknown groups are counted apart." in card.read_text("utf-8")


def test_bad_flags_are_rejected_before_counting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(lending(60), tmp_path)

    def counted(*_: object, **__: object) -> None:
        pytest.fail("rows were counted")

    monkeypatch.setattr("tidyfair.calling.runner.count", counted)
    page, table = str(tmp_path / "page.html"), str(tmp_path / "table.csv")
    refused = {
        ("--group-by", "fold", "--html", page): "`--group-by` makes several: leave it out with `--html`",
        ("--by", "rase"): "`--by`: there is no column 'rase'. Did you mean 'race'?",
        ("--group-by", "fodl"): "`--group-by`: there is no column 'fodl'. Did you mean 'fold'?",
        ("--case-weights", "wieght"): "`--case-weights`: there is no column 'wieght'. Did you mean 'weight'?",
        ("--probs", "scores"): "`--probs`: there is no column 'scores'. Did you mean 'score'?",
        ("--truth", "repayed"): "`--truth`: there is no column 'repayed'. Did you mean 'repaid'?",
        ("--fail-if", "demographic_parity(rase) > 0.1"): (
            "`--fail-if 'demographic_parity(rase) > 0.1'`: there is no column 'rase'. Did you mean 'race'?"
        ),
        ("--fail-if", "demographic_parity(race) > 10"): (
            "`--fail-if`: 'demographic_parity(race) > 10': demographic_parity lies between 0 and 1: 10 percent is "
            "'demographic_parity(race) > 0.1'"
        ),
        ("--fail-if", "disparate_impact(race)<80"): (
            "`--fail-if`: 'disparate_impact(race)<80': disparate_impact lies between 0 and 1: 80 percent is "
            "'disparate_impact(race) < 0.8'"
        ),
        ("--output", table, "--output-groups", table): "different files",
        ("--output", str(tmp_path / "nowhere" / "x.csv")): "does not exist",
        ("--fail-if", "demographic_parity(race) > 0.1", "--confidence", "95"): "`--confidence` is a number between 0.5",
        ("--fail-if", "demographic_parity(race) > 0.1", "--confidence", "0"): "`--confidence` is a number between 0.5",
        ("--confidence", "0.9"): "there are none without it; that of intervals is `--conf-level`",
        ("--min-n", "-1"): "`--min-n` is a whole number, 0 or more",
    }
    for arguments, expected in refused.items():
        usual = list(ARGUMENTS)
        if arguments[0] == "--truth":
            start = usual.index("--truth")
            del usual[start : start + 2]
        code, out, err = called(capsys, "audit", file, *usual, *arguments)
        assert (code, out) == (2, "")
        assert expected in err


def test_threshold_outside_the_scores_gives_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, scores = written(lending(300), tmp_path), lending(300)["score"]
    ends = f"the scores 'score' range from {scores.min():.3g} to {scores.max():.3g}"
    for threshold, who in {"80": "nobody", "0": "everybody", "0.5": ""}.items():
        call = ["audit", file, *ARGUMENTS[:2], *ARGUMENTS[4:], "--probs", "score", "--threshold", threshold]
        call += ["--interval", "none"]
        for places in ([], ["--markdown", str(tmp_path / "card.md")]):
            _, _, err = called(capsys, *call, *places)
            assert (f"note: {who} is selected at --threshold {threshold}: {ends}." in err) == bool(who)
            assert ("is selected" in err) == bool(who)


@pytest.mark.parametrize("kind", ["class", "prob", "numeric", "survival", "interval"])
def test_fail_if_of_a_plain_metric_suggests_a_comparison(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # each message looks through all metrics, whose sources are then read once only
    monkeypatch.setattr(catalog, "source_of", cache(catalog.source_of))
    for metric in tf.get_metrics(kind):
        assert isinstance(metric, tf.types.Metric)
        with pytest.raises(tf.errors.ArgumentError, match=f"`fail_if`: {metric.name} compares no groups") as caught:
            gate_of([f"{metric.name}(race) > 0.3"], 0.95, ["race"], ["race"])
        offered = re.search(r"write such as '(.*?)'", str(caught.value))
        assert offered
        (compared,) = gate_of([offered[1]], 0.95, ["race"], ["race"]).metrics
        assert isinstance(compared, tf.types.GroupwiseMetric)
        assert {item.of_kind(kind).definition for item in compared.metrics} == {metric.definition}


def test_fail_if_of_group_minimum_and_maximum(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "audit", "--fail-if", "accuracy(sex) < 0.8")
    assert (code, out) == (2, "")
    assert "write such as 'accuracy_group_minimum(sex) < 0.8' or 'accuracy_difference(sex) > 0.1'" in err
    verdicts = {
        "accuracy_group_minimum(sex) < 0.8": 3,
        "accuracy_group_minimum(sex) < 0.6": 0,
        "error_rate_group_maximum(sex) > 0.2": 3,
        "accuracy_ratio(sex) < 0.8": 0,
    }
    for condition, code in verdicts.items():
        assert called(capsys, "audit", "--fail-if", condition)[0] == code
    for condition, expected in {
        "accuracy_group_minimum(sex) > 0.8": "accuracy_group_minimum should be large: write <",
        "demographic_parity(sex) < 0.1": "demographic_parity should be small: write >",
        "demographic_parity > 0.1": "does not say which groups are compared: write 'demographic_parity(sex) > 0.1'",
        "average_odds_difference(sex) > 0.1": "compares two sides",
        "mae_difference(sex) > 0.1": "mae_difference is about numbers, which these predictions are not",
        "auc_parity(sex) > 0.1": "roc_auc needs the column of scores: `--probs`",
    }.items():
        assert expected in called(capsys, "audit", "--fail-if", condition)[2]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("roc_auc needs the column of scores: `probs=`.", "roc_auc needs the column of scores: `--probs`."),
        ("scores as `probs=` with `threshold=`.", "scores as `--probs` with `--threshold`."),
        ("write `pos_label='yes'`.", "write `--pos-label 'yes'`."),
        ("`case_weights`: some are negative", "`--case-weights`: some are negative"),
        ("`confidence` is a number, and `loud=` is not", "`--confidence` is a number, and `loud=` is not"),
        ("`labels=` and `na_rm`", "`--label` and `--no-na-rm`"),
        ("say `read_as=labels` or `group_by=`", "say `--read-as labels` or `--group-by`"),
        ("the column 'by' is no `bye`", "the column 'by' is no `bye`"),
    ],
)
def test_library_messages_are_translated_to_flags(
    message: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> int:
        raise tf.errors.ArgumentError(message)

    monkeypatch.setattr("tidyfair.cli.audit.audit", failing)
    assert called(capsys, "audit") == (2, "", f"tidyfair: {expected}\n")


def _two_models(folder: Path) -> tuple[pl.DataFrame, str]:
    newer = pl.when(pl.col("score") > 0.4).then(pl.lit("yes")).otherwise(pl.lit("no"))
    data = lending(500).with_columns(
        pl.col("approved").cast(pl.String),
        newer=newer,
        again=pl.when(pl.col("fold") == 1).then(None).otherwise(pl.col("score") ** 2),
    )
    return data, written(data, folder)


def test_compare_with_threshold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, file = _two_models(tmp_path)
    call = ["compare", file, "--truth", "repaid", "--one", "score", "--other", "again", "--threshold", "0.5"]
    output = tmp_path / "found.parquet"
    missing = data["again"].null_count()
    text = f"note: rows with missing values are left out of the metrics that read them: {missing} without 'again'.\n"
    assert called(capsys, *call, "--pos-label", "yes", "--output", str(output)) == (0, "", text)
    result = pl.read_parquet(output)
    assert result[".by"].null_count() == len(result)
    known = data.drop_nulls("again")
    for path, score in ((".one", "score"), (".other", "again")):
        expected = tf.sens(known, "repaid", probs=score, threshold=0.5, pos_label="yes")[".estimate"].item()
        assert result.row(by_predicate=pl.col(".metric") == "sens", named=True)[path] == pytest.approx(expected)
    code, out, err = called(capsys, *call, "--pos-label", "yes", "--by", "sex")
    assert (code, err) == (0, text)
    assert out.startswith("score and again at 0.5, compared on")
    assert "demographic_parity" in out
    assert "write `--pos-label 'yes'` or" in called(capsys, *call)[2]
    assert "`--other`: the column 'sex'" in called(capsys, *call[:6], "--other", "sex", *call[8:])[2]
    unreached = called(capsys, *call[:-1], "7", "--pos-label", "yes")[2]
    assert unreached.count("nobody is selected at --threshold 7") == 2
    logits = tmp_path / "logits.parquet"
    data.with_columns(again=pl.col("again") * 4 - 2).write_parquet(logits)
    refused = called(capsys, "compare", str(logits), *call[2:], "--pos-label", "yes")
    assert refused[0] == 2
    assert "`--other`: 'again' holds values from" in refused[2]
    without = called(capsys, *call[:8], "--pos-label", "yes")[2]
    assert "`--one`: 'score' holds numbers that are not whole" in without


def test_32_bit_scores_are_cut_alike_by_all_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = np.array([0.7] * 20 + [0.1] * 10 + [0.9] * 10, np.float32), np.array([0.3, 0.7] * 20, np.float32)
    # the nearest number of 32 bits is below 0.7
    expected = [(scores.astype(np.float64) >= 0.7).mean() for scores in (one, other)]
    assert expected == [0.25, 0.0]
    file = written(pl.DataFrame({"t": [1, 0] * 20, "one": one, "other": other, "g": [*"aabb"] * 10}), tmp_path)
    call = [file, "--truth", "t", "--pos-label", "1", "--threshold", "0.7", "--metric", "selection_rate", "--json", "-"]
    results = json.loads(called(capsys, "compare", *call, "--one", "one", "--other", "other")[1])["results"]
    assert [(row["one"], row["other"]) for row in results if row["metric"] == "selection_rate"] == [tuple(expected)]
    for score, rate in zip(("one", "other"), expected, strict=True):
        results = json.loads(called(capsys, "audit", *call, "--probs", score, "--by", "g")[1])["results"]
        assert [row["estimate"] for row in results if row["metric"] == "selection_rate"] == [rate]


def test_compare_with_weights_and_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, file = _two_models(tmp_path)
    call = ["compare", file, "--truth", "repaid", "--one", "approved", "--other", "newer", "--pos-label", "yes"]
    output = tmp_path / "found.csv"
    assert main([*call, "--weights", "weight", "--group-by", "sex", "--output", str(output)]) == 0
    result = pl.read_csv(output).filter(pl.col(".metric") == "accuracy")
    expected = tf.compare_models(tf.accuracy)(
        data, "repaid", one="approved", other="newer", pos_label="yes", case_weights="weight", group_by="sex"
    )
    numbers = [".one", ".other", ".change", ".lower", ".upper"]
    for row, other in zip(result.select(numbers).rows(), expected.select(numbers).rows(), strict=True):
        assert row == pytest.approx(other)
    _, out, _ = called(capsys, *call)
    value, lower, upper = (
        tf.compare_models(tf.accuracy)(data, "repaid", one="approved", other="newer", pos_label="yes")
        .select(".change", ".lower", ".upper")
        .row(0)
    )
    assert f"{value * 100:.1f} points ({lower * 100:.1f} to {upper * 100:.1f})" in out
    assert re.search(r"metric .* approved .* newer .* change", out)
    assert "'newer' is named twice" in called(capsys, *call[:5], "newer", *call[6:])[2]


@pytest.mark.usefixtures("undrawn")
def test_compare_with_several_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strict = (pl.col("score") > 0.8).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String)
    data = _two_models(tmp_path)[0].with_columns(strict=strict)
    call = ["compare", written(data, tmp_path), "--truth", "repaid", "--one", "approved", "--pos-label", "yes"]
    call += ["--other", "newer", "--other", "strict", "--by", "sex", "--fail-if", "change in accuracy < -0.05"]
    page, output = tmp_path / "page.html", tmp_path / "found.parquet"
    code, found, _ = called(capsys, *call, "--json", "-", "--html", str(page), "--output", str(output))
    both: dict[str, Any] = {"one": "approved", "pos_label": "yes"}
    expected = tf.compare_models(tf.accuracy, tf.demographic_parity("sex", min_n=30))(
        data, "repaid", others=["newer", "strict"], **both
    )
    result = pl.read_parquet(output)
    for metric in ("accuracy", "demographic_parity"):
        rows, others = (table.filter(pl.col(".metric") == metric) for table in (result, expected))
        for name in (".model_other", ".change", ".lower", ".upper"):
            assert rows[name].to_list() == others[name].to_list()
    gate = tf.check(tf.compare_models(tf.accuracy), above=-0.05)(data, "repaid", others=["newer", "strict"], **both)
    document = json.loads(found)
    assert document["other"] == ["newer", "strict"]
    assert [(row["model_other"], row["verdict"]) for row in document["verdicts"]] == gate.select(
        ".model_other", ".verdict"
    ).rows()
    assert code == (3 if "fail" in gate[".verdict"] else 4 if "not enough evidence" in gate[".verdict"] else 0)
    texts = Page(page.read_text("utf-8")).text
    assert "strict: change in accuracy < -0.05" in texts
    assert "approved and newer within the groups of sex" in texts
    _, out, _ = called(capsys, *call)
    assert "which holds for all 2 models at once" in out
    assert max(map(len, out.splitlines())) <= 120


def test_compare_models_of_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(100).with_columns(pl.col("score") * 10, hours=pl.col("score") * 10 + pl.col("weight"))
    call = ["compare", written(data, tmp_path), "--truth", "score", "--one", "hours", "--other", "weight"]
    _, out, _ = called(capsys, *call)
    for name in ("hours", "weight"):
        assert f"{tf.rmse(data, 'score', name)['.estimate'].item():.3f}" in out


def test_wide_tables_are_split_and_empty_ones_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lending(300)
    for columns in ("80", "120", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        _, out, _ = called(capsys, "audit", written(data, tmp_path), *ARGUMENTS)
        names = {line for line in out.splitlines() if str(tmp_path) in line}
        assert max(map(len, set(out.splitlines()) - names)) <= int(columns)
        assert out.count("│ Hispanic, male ") == {"80": 3, "120": 2, "400": 1}[columns]
        assert all(f" {race}, female " in out for race in data["race"].unique())
    condition = ["--fail-if", "demographic_parity(race) > 0.1"]
    code, out, err = called(capsys, "audit", written(data.clear(), tmp_path), *ARGUMENTS, *condition)
    # where nothing is judged nothing has passed
    assert (code, out) == (2, "")
    assert "has columns and no rows" in err


def _cells(shown: str, *starts: str) -> list[str]:
    """The cells of the lines that begin with these, without the marks of notes."""
    without_marks = re.sub(r" \[\d+\]", "", shown)
    lines = [[cell.strip() for cell in re.split("[│┆]", line)[1:-1]] for line in without_marks.splitlines()]
    return [cell for line in lines if tuple(line[: len(starts)]) == starts for cell in line[len(starts) :]]


@pytest.mark.usefixtures("undrawn")
def test_min_n_hides_groups_and_leaves_them_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500).with_columns(model=pl.col("repaid"))
    file, groups, card = written(data, tmp_path), tmp_path / "groups.csv", tmp_path / "card.md"
    sizes = dict(data["race"].value_counts().rows())
    few = {race for race, size in sizes.items() if size < 60}
    assert 0 < len(few) < len(sizes)
    enough = tf.demographic_parity("race")(
        data.filter(~pl.col("race").is_in(few)), estimate="approved", pos_label="yes"
    )
    call = [file, *ARGUMENTS[:-2], "--min-n", "60"]
    gate = ["--fail-if", "demographic_parity(race) > 0.9"]
    code, out, _ = called(capsys, "audit", *call, *gate)
    for race, size in sizes.items():
        assert (set(_cells(out, race)) == {"-"}) == (race in few)
        assert (str(size) in _cells(out, race)) == (race not in few)
    assert "\n-: hidden, fewer than 60 rows.\n" in out
    assert _cells(out, "demographic_parity")[0].startswith(f"{enough['.estimate'].item() * 100:.1f} points ")
    # who is left out by a gate may be whom it is about
    assert (code, called(capsys, "audit", *call[:-1], "0", *gate)[0]) == (4, 0)
    assert few <= set(re.findall(r"\w+", out.partition("cannot pass without")[2]))
    called(capsys, "audit", *call, "--output-groups", str(groups))
    assert set(pl.read_csv(groups).filter(pl.col(".by") == "race")[".group"]) == set(sizes) - few
    called(capsys, "report", *call, "--html", str(tmp_path / "page.html"), "--markdown", str(card))
    assert "\N{EN DASH}: hidden, fewer than 60 rows." in card.read_text("utf-8")
    _, out, _ = called(
        capsys, "compare", file, "--truth", "repaid", "--pos-label", "yes", "--one", "approved", "--other", "model",
        "--by", "race", "--min-n", "60",
    )  # fmt: skip
    assert _cells(out, "demographic_parity", "race")[0] == f"{enough['.estimate'].item() * 100:.1f} points"


@pytest.mark.usefixtures("undrawn")
@pytest.mark.usefixtures("undrawn")
def test_metric_flag_adds_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # one table for all columns
    data = lending(500)
    file, card = written(data, tmp_path), tmp_path / "card.md"
    names = ["--metric", "predictive_equality", "--metric", "demographic_parity", "--metric", "predictive_equality"]
    call = [file, *ARGUMENTS, *names]
    _, out, _ = called(capsys, "audit", *call)
    for by in ("race", "race:sex"):
        result = tf.predictive_equality(*by.split(":"), min_n=30)(
            data, "repaid", "approved", pos_label="yes", on_undefined="ignore"
        )
        cells = _cells(out.partition(f"Disparities of {by.replace(':', ' and ')}\n")[2], "predictive_equality")
        assert cells[0].startswith(f"{result['.estimate'].item() * 100:.1f} points ")
        assert out.count(" demographic_parity ") == 2
    assert " fall_out " in out
    called(capsys, "report", *call, "--html", str(tmp_path / "page.html"), "--markdown", str(card))
    assert "`predictive_equality` | race |" in card.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("predictive_equalty", "`--metric`: there is no metric or disparity 'predictive_equalty'. Did you mean"),
        ("mae_difference", "`--metric`: mae_difference is about numbers, which these predictions are not."),
        ("average_odds_difference", "`--metric`: average_odds_difference compares two sides"),
        ("four_fifths", "a rule with a limit of its own: its metric is 'demographic_parity_ratio'."),
        ("auc_parity", "roc_auc needs the column of scores: `--probs`"),
    ],
)
def test_metric_flag_rejects_non_comparisons(name: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "audit", "--metric", name)
    assert (code, expected in err) == (2, True)


def test_missing_values_give_one_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(500).with_columns(
        pl.when(pl.col("fold") == 1).then(None).otherwise("repaid").alias("repaid"),
        pl.when(pl.col("fold") < 3).then(float("nan")).otherwise("score").alias("score"),
        again=pl.col("score") ** 2,
    )
    truths, scores = (data["fold"] == 1).sum(), (data["fold"] < 3).sum()
    file = written(data, tmp_path)
    text = f"the metrics that read them: {truths} without 'repaid' and {scores} without 'score'."
    models = ["compare", file, "--truth", "repaid", "--one", "score", "--other", "again", "--threshold", "0.5"]
    audit = ["audit", file, "--truth", "repaid", "--probs", "score", "--by", "sex"]
    for call in ([*audit, "--threshold", "0.5"], [*audit, "--estimate", "approved"], models):
        assert called(capsys, *call, "--pos-label", "yes")[2].count(text) == 1
    numbers = ["audit", file, "--truth", "weight", "--estimate", "score", "--by", "sex"]
    assert f"read them: {scores} without 'score'." in called(capsys, *numbers)[2]
    assert "read them" not in called(capsys, "audit", "--by", "sex")[2]


def test_feature_with_many_groups_gives_one_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ages = lending(570).with_columns(age=pl.int_range(570) % 57 + 18)
    call = ["audit", written(ages, tmp_path), *ARGUMENTS[:-4], "--by", "sex", "--by", "age"]
    err = called(capsys, *call)[2]
    assert err == (
        "note: 'age' has 57 groups, half of which have no more than 10 rows: put numbers into bands, and rare values "
        "together.\n"
    )
    banded = ages.with_columns(pl.col("age") // 10)
    assert "has 57 groups" not in called(capsys, call[0], written(banded, tmp_path), *call[2:])[2]


def test_feature_with_a_group_for_every_row_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    incomes = lending(2_000).with_columns(income=pl.int_range(2_000) * 1.5)
    code, out, err = called(capsys, "audit", written(incomes, tmp_path), *ARGUMENTS[:-4], "--by", "income")
    assert (code, out) == (2, "")
    assert err == (
        "tidyfair: `--by`: 'income' makes 2,000 groups, 2,000 of them of one row. Put numbers into bins in the file. "
        "An identifier is no feature: leave it out, or give it as `--group-by` or `--cluster`.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--one", "approved", "--other", "repaid"], "`--other`: 'repaid' is the truth; name the column of a model's"),
        (["--one", "repaid", "--other", "approved"], "`--one`: 'repaid' is the truth"),
    ],
)
def test_compare_rejects_the_truth_as_model(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lending(100).write_parquet(tmp_path / "loans.parquet")
    call = ["compare", str(tmp_path / "loans.parquet"), "--truth", "repaid", "--pos-label", "yes", *arguments]
    assert main(call) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["datasets", "lending", "--rows", "99999999999"],
            "`--rows` is a whole number, 0 to 100000000, not 99999999999",
        ),
        (["datasets", "lending", "--rows", "-1"], "`--rows` is a whole number, 0 to 100000000, not -1"),
        (["audit", "--min-n", str(2**63)], f"`--min-n` is a whole number, 0 to {2**63 - 1}, not {2**63}"),
    ],
)
def test_out_of_range_numbers_are_rejected(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert expected in capsys.readouterr().err


def test_large_integer_pos_label_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = 2**53
    labels = pl.DataFrame(
        {"y": [large, large + 1] * 4, "p": [large, large + 1, large, large] * 2, "g": list("abab") * 2}
    )
    labels.write_parquet(tmp_path / "labels.parquet")
    call = ["audit", str(tmp_path / "labels.parquet"), "--truth", "y", "--estimate", "p", "--by", "g"]
    result = tmp_path / "result.csv"
    assert main([*call, "--pos-label", str(large + 1), "--output", str(result)]) == 0
    expected = tf.sens(labels, "y", "p", pos_label=large + 1)[".estimate"].item()
    actual = pl.read_csv(result).filter((pl.col(".metric") == "sens") & pl.col(".by").is_null())
    assert actual[".estimate"].to_list() == [expected] == [0.5]
    capsys.readouterr()


@pytest.mark.parametrize("flag", ["--conf-level", "--truth", "--pos-label"])
def test_an_option_of_one_value_given_twice_is_an_error(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["audit", flag, "0.5", flag, "0.6"])
    assert stopped.value.code == 2
    assert f"{flag} is given twice, and takes one value" in capsys.readouterr().err


HOSTILE = {
    "empty.parquet": "'empty.parquet' is empty",
    "empty.ndjson": "'empty.ndjson' is empty",
    "junk.parquet": "'junk.parquet' cannot be read as parquet: ",
    "bad.ndjson": "'bad.ndjson' cannot be read as ndjson: ",
    "norows.parquet": "'norows.parquet' has columns and no rows",
    "bad.csv.gz": "'bad.csv.gz' is not a complete gzip file",
    "half.csv.gz": "'half.csv.gz' is not a complete gzip file",
    "fewer": "All files need the same columns: 'sex' is Enum(categories=['female', 'male']) in 'fewer/a.parquet'",
    "types": "and Int32 in 'types/b.parquet'",
    "spreadsheet.xlsx": "'spreadsheet.xlsx' cannot be read: its name must end in .parquet, .csv",
    "infinite.parquet": "Convert logits to probabilities in the file, or give a threshold on the scale of the scores.",
    "nobody.parquet": "No such file",
    "*.nothing": "No file matches the pattern",
    ".": "Files of different types cannot be read together",
}


def test_hostile_files_are_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = lending(100)
    for name, content in {
        "empty.parquet": b"", "empty.ndjson": b"", "junk.parquet": b"PAR1 junk PAR1", "bad.ndjson": b'{"a":1}\n{"a":\n',
        "bad.csv.gz": b"no gzip", "half.csv.gz": gzip.compress(data.write_csv().encode())[:500],
        "spreadsheet.xlsx": b"PK",
    }.items():  # fmt: skip
        Path(name).write_bytes(content)
    data.head(0).write_parquet("norows.parquet")
    data.with_columns(score=pl.lit(float("inf"))).write_parquet("infinite.parquet")
    for folder, other in {"fewer": data.drop("sex"), "types": data.with_columns(sex=pl.lit(1))}.items():
        Path(folder).mkdir()
        data.write_parquet(f"{folder}/a.parquet")
        other.write_parquet(f"{folder}/b.parquet")
    call = ["--truth", "repaid", "--probs", "score", "--threshold", "0.5", "--pos-label", "yes", "--by", "sex"]
    for name, expected in HOSTILE.items():
        code, out, err = called(capsys, "audit", name, *call)
        assert (code, out) == (2, ""), name
        assert expected in err, name
    for arguments, expected in {
        ("-",): "standard input cannot be read",
        ("",): "the name of the file is empty",
        ("a.csv", "--", "--truth"): "Unexpected argument '--truth': write options before --",
    }.items():
        with pytest.raises(SystemExit) as stopped:
            main(["audit", *arguments])
        assert stopped.value.code == 2
        assert expected in capsys.readouterr().err


def test_without_intervals_tables_have_no_empty_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--group-by", "fold"], ["--fail-if", "accuracy < 0.5"], ["--by", "race=White"]):
        code, out, _ = called(capsys, "audit", "--interval", "none", *more, "--markdown", "-")
        assert code == 0
        for table in re.findall(r"(?:^\|.*\n)+", out, re.MULTILINE):
            rows = [line.strip("|").split("|") for line in table.splitlines()]
            for column in zip(*rows[2:], strict=True):
                assert {cell.strip() for cell in column} - {"", "-", "\N{EN DASH}"}


def test_command_line_says_that_survival_times_and_intervals_are_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in (("concordance_parity", "survival times"), ("interval_score", "intervals and quantiles")):
        assert "gate" not in explanation_of(name)
        code, _, err = called(capsys, "audit", "--metric", name)
        assert code == 2
        assert f"{name} reads {content}, which only a call in Python can name." in err


def test_missing_predictions_are_noted_by_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    is_lost = (pl.col("sex") == "female") & (pl.int_range(pl.len()) % 4 == 0)
    lost = lending(500).with_columns(approved=pl.when(~is_lost).then("approved"))
    call = ["audit", written(lost, tmp_path), "--truth", "repaid", "--estimate", "approved", "--pos-label", "yes"]
    err = called(capsys, *call, "--by", "sex")[2]
    count, women = int(lost["approved"].null_count()), lost.filter(sex="female")
    share = f"{count / len(women):.1%}"
    assert (
        f"note: predictions ('approved') are missing in {count} of 500 rows: {share} of sex = \"female\", 0.0% of"
        in err
    )
    assert "MissingPredictionsWarning" not in err
