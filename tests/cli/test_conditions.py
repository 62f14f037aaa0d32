"""Conditions of `--fail-if`: on values of all rows, on disparities, and on changes from one model to another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command_line import ARGUMENTS, called, written
from public_names import public

import tidyfair as tf
from tidyfair.cli.fail_if import conditions_of
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")
CALL = [*ARGUMENTS[:-4], "--by", "race"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [("accuracy < 0.6", 0), ("accuracy < 0.8", 3), ("accuracy < 0.69", 4), ("miss_rate > 0.5", 0)],
)
def test_gate_on_all_rows_equals_that_of_the_library(
    condition: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = lending(2_000)
    name, side, limit = condition.split()
    allowed: dict[str, Any] = {"above" if side == "<" else "below": float(limit)}
    gate = tf.check(public(name), **allowed)
    result = gate(data, "repaid", "approved", pos_label="yes")
    verdict = result[".verdict"].item()
    assert verdict == {0: "pass", 3: "fail", 4: "not enough evidence"}[code]
    given, out, _ = called(capsys, "audit", written(data, tmp_path), *CALL, "--fail-if", condition)
    assert given == code
    assert f" {verdict} " in out.partition("Verdicts")[2]
    # the interval is that of the audit, not the bound that decides
    shown = public(name)(data, "repaid", "approved", pos_label="yes", interval="auto")
    value, low, high = (100 * number for number in shown.select(".estimate", ".lower", ".upper").row(0))
    good = f"{'above' if side == '<' else 'below'} {100 * float(limit):g}%"
    held = f"{name} is {value:.1f}% ({low:.1f} to {high:.1f}), and must be {good}."
    start = {
        0: "PASS: the limit is met: ", 3: "FAIL: the limit is not met: ",
        4: "NOT ENOUGH EVIDENCE to decide whether the limit is met: ",
    }  # fmt: skip
    assert f"{start[code]}{held}" in " ".join(out.partition("Verdicts")[0].split())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("accuracy > 0.9", "`--fail-if`: accuracy should be large: write < in 'accuracy > 0.9'"),
        ("accuracy < 70", "accuracy lies between 0 and 1: 70 percent is 'accuracy < 0.7'"),
        ("mae > 3", "mae is about numbers, which these predictions are not"),
        ("divergence_from_rest > 0.1", "divergence_from_rest_group_maximum(race) > 0.1"),
    ],
)
def test_wrong_gates_on_all_rows_are_refused(
    condition: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = called(capsys, "audit", written(lending(60), tmp_path), *CALL, "--fail-if", condition)
    assert code == 2
    assert expected in err


def _models(folder: Path) -> tuple[pl.DataFrame, list[str]]:
    decided = pl.when(pl.col("score") > 0.45).then(pl.lit("yes")).otherwise(pl.lit("no"))
    wrong = pl.when(pl.col("sex") == "male").then(pl.lit("no")).otherwise(pl.col("approved").cast(pl.String))
    data = lending(2_000).with_columns(pl.col("approved").cast(pl.String), newer=decided, wrong=wrong)
    file = written(data, folder)
    return data, ["compare", file, "--truth", "repaid", "--pos-label", "yes", "--by", "sex", "--one", "approved"]


def test_changes_are_judged_by_one_sided_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, call = _models(tmp_path)
    for other in ("newer", "wrong"):
        bounds = tf.compare_models(tf.accuracy, tf.demographic_parity("sex", min_n=30, unknown="apart"))(
            data, "repaid", one="approved", other=other, pos_label="yes", conf_level=0.9
        )
        (low, high), (low_of_parity, high_of_parity) = bounds.select(".lower", ".upper").rows()
        expected = {
            f"change in accuracy < {low - 0.001:.5f}": 0,
            f"change in accuracy < {low + 0.001:.5f}": 4,
            f"change in accuracy < {high + 0.001:.5f}": 3,
            f"change in demographic_parity(sex) > {high_of_parity + 0.001:.5f}": 0,
            f"change in demographic_parity(sex) > {low_of_parity - 0.001:.5f}": 3,
        }
        for condition, code in expected.items():
            given, out, _ = called(capsys, *call, "--other", other, "--fail-if", condition)
            assert (condition, given) == (condition, code)
            assert f"({low * 100:.1f} to {high * 100:.1f})" in out or "accuracy" not in condition


def test_failing_changes_are_adjusted_for_their_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, call = _models(tmp_path)
    compared = tf.compare_models(tf.accuracy)
    options: dict[str, Any] = {"one": "approved", "other": "wrong", "pos_label": "yes"}
    (alone,) = compared(data, "repaid", **options, conf_level=0.9)[".upper"]
    (of_two,) = compared(data, "repaid", **options, conf_level=0.95)[".upper"]
    limit = (alone + of_two) / 2
    beyond = ["--other", "wrong", "--fail-if", f"change in accuracy < {limit:.6f}"]
    assert called(capsys, *call, *beyond)[0] == 3
    assert called(capsys, *call, *beyond, "--fail-if", "change in demographic_parity(sex) > 0.9")[0] == 4
    assert called(capsys, *call, *beyond, "--fail-if", "change in demographic_parity(sex) > 0.01")[0] == 3


def test_change_of_a_disparity_with_groups_left_out_never_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, call = _models(tmp_path)
    condition = ["--other", "newer", "--fail-if", "change in demographic_parity(race) > 0.9"]
    assert called(capsys, *call, *condition, "--min-n", "0")[0] == 0
    code, out, _ = called(capsys, *call, *condition, "--min-n", "100")
    assert code == 4
    assert "demographic_parity(race) cannot pass without Native (" in out


def test_change_of_a_score_metric_is_that_of_the_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(600).with_columns(again=(pl.col("score") + pl.col("weight")) / 4)
    call = ["compare", written(data, tmp_path), "--truth", "repaid", "--pos-label", "yes", "--one", "score"]
    call += ["--other", "again", "--threshold", "0.5", "--fail-if", "change in roc_auc < -0.01"]
    one, other = (
        tf.roc_auc(data, "repaid", probs=name, pos_label="yes")[".estimate"].item() for name in ("score", "again")
    )
    code, out, _ = called(capsys, *call)
    assert code == 3
    assert f"{one * 100:.1f}%" in out
    assert f"{(other - one) * 100:.1f} points (" in out


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("accuracy < 0.7", "write 'change in accuracy < 0.7', and mean the other model minus the first one"),
        ("change in accuracy > 0.1", "accuracy should be large: write <"),
        ("change in accuracy < -3", "accuracy changes by less than 1"),
        ("change in accuracy < 0.5", "and can rise by 0.3"),
        (
            "change in accuracy < 0.5",
            "write 'change in accuracy < -0.5' to fail where it falls by more",
        ),
        ("change in equalized_odds(sex) > -0.9", "write 'change in equalized_odds(sex) > 0.9' to fail where it rises"),
        ("change in base_rate < 0", "base_rate reads no predictions, so that models do not change it"),
        ("change in equalized_odds > 0.1", "write 'change in equalized_odds(sex) > 0.1'"),
        ("change in roc_auc < 0", "roc_auc is about scores: `--one` and `--other` name scores where `--threshold`"),
    ],
)
def test_wrong_conditions_on_changes_are_refused(
    condition: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, call = _models(tmp_path)
    code, out, err = called(capsys, *call, "--other", "newer", "--fail-if", condition)
    assert (code, out) == (2, "")
    assert expected in err


def test_conditions_name_one_group_and_everybody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(2_000)
    sides = tf.privileged({"race": "White"})
    call = [written(data, tmp_path), *ARGUMENTS[:-4], "--by", "race=White", "--metric", "statistical_parity_difference"]
    expected = tf.statistical_parity_difference(sides)(
        data, estimate="approved", pos_label="yes", interval="auto"
    ).select(".estimate", ".lower", ".upper")
    value, low, high = expected.row(0)
    condition = ["--fail-if", "average_odds_difference(race=White) > 0.5"]
    code, out, _ = called(capsys, "audit", *call, *condition)
    assert code == 0
    assert f"{value * 100:.1f} points ({low * 100:.1f} to {high * 100:.1f})" in out
    assert "privileged" in out
    code, _, err = called(capsys, "audit", *call[:-3], "race", "--metric", "average_odds_difference")
    assert code == 2
    assert "compares two sides: name the value of one of them, such as 'race=White'" in err
    (read,) = conditions_of(["average_odds_difference(sex=1) > 0.5"], pl.Schema({"sex": pl.Int64()}), [])
    assert read.metric.by == tf.demographic_parity(tf.privileged({"sex": 1})).by


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--fail-if", "tpr_difference(sex) > 0.1"], "'tpr_difference'. Here it is 'true_positive_rate_difference'."),
        (["--fail-if", "f1_score < 0.5"], "'f1_score'. Here it is 'f_meas'."),
        (["--fail-if", "auroc < 0.5"], "Here it is 'roc_auc'."),
        (["--fail-if", "demographic_parity_difference(sex) > 0.1"], "Here it is 'demographic_parity'."),
        (["--fail-if", "acuracy < 0.5"], "Did you mean 'accuracy'?"),
        (["--fail-if", "acuracy_difference(sex) > 0.1"], "Did you mean 'accuracy_difference'?"),
        (["--fail-if", "equalised_odds(sex) > 0.1"], "Did you mean 'equalized_odds'?"),
        (["--metric", "recall_score"], "Here it is 'recall'."),
        (["--metric", "mccc"], "Did you mean 'mcc'?"),
        (["--metric", "xyzzy"], "`tidyfair metrics` lists what there is."),
    ],
)
def test_unknown_metrics_are_met_with_the_name_to_write(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, "audit", *arguments)
    assert (code, out) == (2, "")
    assert expected in err


def test_unknown_names_are_looked_up_among_comparisons_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "metrics", "acuracy_differenc")
    assert code == 2
    assert "Did you mean 'accuracy_difference'?" in err
    for name in ("tpr", "sensitivity", "f1_score", "tpr_difference", "demographic_parity_difference", "brier_score"):
        code, out, _ = called(capsys, "metrics", name)
        assert code == 0
        assert "formula" in out or "compares" in out


def test_summary_of_a_comparison_speaks_of_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the other model is right where the first one is wrong, in one group, and wrong where it is right, in another
    count = 400
    data = pl.DataFrame(
        {
            "g": ["a"] * count + ["b"] * count + ["c"] * 5,
            "truth": ["yes", "no"] * count + ["yes"] * 5,
            "old": ["yes", "no", "no", "no"] * (count // 4) + ["yes", "no"] * (count // 2) + ["yes"] * 5,
            "new": ["yes", "no"] * (count // 2) + ["yes", "no", "no", "no"] * (count // 4) + ["yes"] * 5,
        }
    )
    call = ["compare", written(data, tmp_path), "--truth", "truth", "--one", "old", "--other", "new", "--by", "g"]
    call += ["--pos-label", "yes"]
    code, out, _ = called(capsys, *call)
    assert code == 0
    sentences = " ".join(out.split())
    assert 'new: better in accuracy for g = "a", sensitivity for g = "a"' in sentences
    assert 'worse in accuracy for g = "b", sensitivity for g = "b"' in sentences
    assert "25.0 points (" in out
    assert "adjusted for 2 groups" in out
    assert "--group-by" not in out
    groups = json.loads(called(capsys, *call, "--json", "-")[1])["groups"]
    (change,) = [row for row in groups if (row["group"], row["metric"]) == ("a", "accuracy")]
    assert change["change"] == pytest.approx(0.25)
    expected = tf.compare_models(tf.accuracy)(
        data.filter(pl.col("g") == "a"), "truth", one="old", other="new", pos_label="yes", conf_level=0.975
    )
    assert [change["lower"], change["upper"]] == pytest.approx(expected.select(".lower", ".upper").row(0))
    _, out, _ = called(capsys, *call, "--margin", "0.6")
    assert "new: equivalent in selection rate, accuracy, sensitivity" in " ".join(out.split())
    assert "equivalent: the whole interval is within 0.6" in out
    changes = json.loads(called(capsys, *call, "--margin", "0.6", "--json", "-")[1])["results"]
    models = tf.compare_models(tf.accuracy, margin=0.6)(data, "truth", one="old", other="new", pos_label="yes")
    (row,) = [row for row in changes if (row["metric"], row["by"]) == ("accuracy", None)]
    assert (row["verdict"], row["margin"]) == models.select(".verdict", ".margin").row(0)
    assert called(capsys, *call, "--margin", "-1")[0] == 2
    _, out, _ = called(capsys, *call, "--min-n", "1000")
    assert "better in" not in out
    assert "no change is shown in any of" in out
    assert "`--group-by g` shows all" in out


@pytest.mark.parametrize("unknown", ["drop", "apart", "group"])
def test_changes_of_unknown_groups_are_shown_only_where_they_are_groups(
    unknown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # the second model is better in every group
    races = ["White", "Black", "Unknown", ""]
    data = pl.DataFrame({"race": [race for race in races for _ in range(100)], "truth": ["yes", "no"] * 200})
    mistaken = pl.int_range(pl.len()) % 10 < 4
    other_label = pl.when(pl.col("truth") == "yes").then(pl.lit("no")).otherwise(pl.lit("yes"))
    data = data.with_columns(old=pl.when(mistaken).then(other_label).otherwise("truth"), new="truth")
    file = tmp_path / "people.csv"
    data.write_csv(file, quote_style="never")
    call = ["compare", str(file), "--truth", "truth", "--one", "old", "--other", "new", "--pos-label", "yes"]
    call += ["--by", "race", "--unknown", unknown]
    shown = called(capsys, *call)[1]
    files = {kind: tmp_path / f"changes.{kind}" for kind in ("json", "csv", "md")}
    outputs = ["--json", str(files["json"]), "--output", str(files["csv"]), "--markdown", str(files["md"])]
    called(capsys, *call, *outputs)
    content = json.loads(files["json"].read_text())
    known, others = ["Black", "White"], ["Unknown", "null"]
    assert list(dict.fromkeys(row["group"] for row in content["groups"])) == (
        ["Black", "Unknown", "White", "null"] if unknown == "group" else known
    )
    headline, _, tables = shown.partition("Both models")
    assert ("Unknown" in headline) == (unknown == "group")
    assert "adjusted for 4 groups" in tables if unknown == "group" else "adjusted for 2 groups" in tables
    card = files["md"].read_text().partition("tidyfair compare")[0]
    texts = [shown, card, files["csv"].read_text(), json.dumps({**content, "command": ""})]
    if unknown == "drop":
        assert not [text for text in texts if "Unknown" in text or "(unknown)" in text]
    if unknown == "apart":
        # named once, in the note on who is left out
        assert shown.count("Unknown") == card.count("Unknown") == 1
        assert "left out: Unknown.\n" in shown
    assert all(group in shown for group in (known + others if unknown == "group" else known))


def _with_unknown_races(share_selected: float) -> pl.DataFrame:
    """Two races that are selected alike, and a tenth of the rows without a race."""
    known = pl.DataFrame({"approved": ["yes", "no", "no"] * 1200, "race": ["White"] * 1800 + ["Black"] * 1800})
    selected = round(400 * share_selected)
    unknown = {"approved": ["yes"] * selected + ["no"] * (400 - selected), "race": [None] * 400}
    return pl.concat([known, pl.DataFrame(unknown, known.schema)])


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", ["audit", "report"])
def test_rows_of_unknown_groups_that_could_turn_a_verdict_keep_a_build_from_passing(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, card = written(_with_unknown_races(1.0), tmp_path), tmp_path / "card.md"
    call = [command, file, "--estimate", "approved", "--pos-label", "yes", "--by", "race"]
    call += ["--fail-if", "demographic_parity(race) > 0.1"]
    call += ["--markdown", str(card), "--html", str(tmp_path / "page.html")] if command == "report" else []
    code, out, _ = called(capsys, *call)
    assert code == 4
    text = " ".join(out.split())
    assert "race: 400 rows are of unknown groups (10% of all) and not compared." in text
    assert "`--unknown drop` states that they are meant to be left out" in text
    if command == "report":
        page = card.read_text("utf-8")
        assert "400 rows of unknown groups (10%) are not compared; with them as groups of their own" in page
        out = page
    # what is not compared is shown, except for groups of too few rows
    (row,) = [line for line in out.splitlines() if line.lstrip("│| ").startswith("Unknown (not compared) ")]
    assert "100.0% (" in row
    assert called(capsys, *call, "--unknown", "drop")[0] == 0
    assert called(capsys, *call, "--unknown", "group")[0] == 3


def test_rows_of_unknown_groups_like_all_others_let_a_build_pass_and_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["audit", written(_with_unknown_races(1 / 3), tmp_path), "--estimate", "approved", "--pos-label", "yes"]
    code, out, _ = called(capsys, *call, "--by", "race", "--fail-if", "demographic_parity(race) > 0.2")
    assert code == 0
    assert "race: 400 rows are of unknown groups (10% of all) and not compared.\n" in out
    # the gate passes with them too
    assert "is not about" not in out


def test_change_that_only_known_groups_show_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _with_unknown_races(1 / 3).with_columns(repaid="approved")
    # the other model selects everybody without a race
    data = data.with_columns(newer=pl.when(pl.col("race").is_null()).then(pl.lit("yes")).otherwise("approved"))
    call = ["compare", written(data, tmp_path), "--truth", "repaid", "--pos-label", "yes", "--by", "race"]
    call += ["--one", "approved", "--other", "newer", "--fail-if", "change in demographic_parity(race) > 0.1"]
    code, out, _ = called(capsys, *call)
    assert code == 4
    assert "race: 400 rows are of unknown groups (10% of all) and not compared. Compared as groups" in out
    assert called(capsys, *call, "--unknown", "drop")[0] == 0
    assert called(capsys, *call, "--unknown", "group")[0] == 3


def test_few_rows_of_unknown_groups_let_a_change_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = _with_unknown_races(1.0)[:3610].with_columns(repaid="approved", newer="approved")
    call = ["compare", written(data, tmp_path), "--truth", "repaid", "--pos-label", "yes", "--by", "race"]
    call += ["--one", "approved", "--other", "newer", "--fail-if", "change in demographic_parity(race) > 0.1"]
    code, out, _ = called(capsys, *call)
    assert code == 0
    assert "race: 10 rows are of unknown groups (0.277% of all) and not compared.\n" in out
