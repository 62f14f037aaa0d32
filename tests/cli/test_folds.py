"""Audits of several outer groups, such as folds: a pooled result, and a row for each metric."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command_line import ARGUMENTS, called, written

import tidyfair as tf
from tidyfair.cli.audit import pooled
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")
CALL = [*ARGUMENTS[:-4], "--by", "sex", "--by", "age_band", "--by", "race"]


@pytest.mark.parametrize(
    "options", [{}, {"score_bins": 300}, {"case_weights": "weight"}, {"cluster": "cluster"}, {"top_fraction": 0.3}]
)
def test_pooled_tally_equals_that_of_the_rows_without_folds(options: dict[str, Any]) -> None:
    data = lending(900).with_columns(cluster=pl.int_range(900) % 60, fold=pl.int_range(900) % 3)
    metrics = tf.metric_set(tf.accuracy, tf.roc_auc, tf.demographic_parity("sex"), tf.auc_parity("sex"))
    parts = {} if "cluster" in options else {"parts": 0}
    decided = {} if "top_fraction" in options else {"threshold": 0.5}
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", **decided, **parts, **options}
    together = metrics.compute(pooled(metrics.tally(data, group_by="fold", **call)), pos_label="yes", interval="auto")
    expected = metrics(data, **call, pos_label="yes", interval="auto")
    if decided:
        wanted = [".metric", ".by", ".estimate", ".lower", ".upper"]
        assert together.select(wanted).equals(expected.select(wanted)) or all(
            row == pytest.approx(other)
            for row, other in zip(together.select(wanted[2:]).rows(), expected.select(wanted[2:]).rows(), strict=True)
        )
    else:
        # the best rows are selected in each fold
        assert together[".estimate"][1] == pytest.approx(expected[".estimate"][1])


def _row(out: str, title: str, name: str) -> list[str]:
    """The cells of a metric in the table of that title."""
    table = out.partition(f"\n{title}\n")[2]
    line = next(line for line in table.partition("\n\n")[0].splitlines() if line.startswith(f"│ {name} "))
    return [cell.strip() for cell in re.split("[│┆]", line)[1:-1]]


def test_folds_are_a_row_for_each_metric(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(1_500).with_columns(fold=pl.int_range(1_500) % 5 + 1)
    file = written(data, tmp_path)
    code, out, _ = called(capsys, "audit", file, *CALL, "--group-by", "fold")
    # three features and five folds were 580 lines
    assert code == 0
    assert len(out.splitlines()) < 150
    for title, metric, unit in (
        ("Metrics over fold", tf.accuracy, "%"),
        ("Disparities of age_band over fold", tf.demographic_parity("age_band", min_n=30), ""),
    ):
        call: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
        of_folds = metric(data, **call, group_by="fold").sort(".estimate")
        together = metric(data, **call, interval="auto")
        value, low, high = (100 * number for number in together.select(".estimate", ".lower", ".upper").row(0))
        folds = [f"{rate * 100:.1f}{unit} ({fold})" for fold, rate in of_folds.select("fold", ".estimate").rows()]
        mean = (100 * of_folds[".estimate"]).mean()
        pooled_text = f"{value:.1f}{unit or ' points'} ({low:.1f} to {high:.1f})"
        expected = [metric.name, pooled_text, f"{mean:.1f}{unit}", folds[0], folds[-1]]
        assert _row(out, title, metric.name) == expected
    # groups are those of all folds together
    black = data.filter(pl.col("race") == "Black")
    assert _row(out, "Groups of race", "Black")[1] == str(len(black))


def test_full_shows_each_fold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = lending(600).with_columns(fold=pl.int_range(600) % 3 + 1)
    _, out, _ = called(capsys, "audit", written(data, tmp_path), *ARGUMENTS[:-2], "--group-by", "fold", "--full")
    of_folds = tf.accuracy(data, "repaid", "approved", pos_label="yes", group_by="fold")[".estimate"]
    table = out.partition("Metrics by fold")[2].partition("\n\n")[0]
    lines = [line for line in table.splitlines() if " accuracy " in line]
    assert len(lines) == 3
    assert all(f" {value:.1%} (" in line for value, line in zip(of_folds, lines, strict=True))


def test_verdicts_of_folds_are_counted_and_failing_ones_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    approved = pl.when((pl.col("fold") == 2) & (pl.col("sex") == "male")).then(pl.lit("no")).otherwise("approved")
    data = lending(1_500).with_columns(fold=pl.int_range(1_500) % 3 + 1).with_columns(approved=approved)
    call = ["audit", written(data, tmp_path), *CALL, "--group-by", "fold", "--fail-if", "demographic_parity(sex) > 0.3"]
    code, out, _ = called(capsys, *call)
    assert code == 3
    assert _row(out, "Verdicts", "demographic_parity(sex) > 0.3")[1:] == ["1", "0", "2", "2"]
    code, out, _ = called(capsys, *call, "--json", "-")
    verdicts = {row["keys"]["fold"]: row["verdict"] for row in json.loads(out)["verdicts"]}
    assert (code, verdicts) == (3, {1: "pass", 2: "fail", 3: "pass"})
