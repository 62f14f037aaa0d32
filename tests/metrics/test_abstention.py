"""Coverage and risk of models that abstain equal plain arithmetic, by group and at common thresholds."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars

import tidyfair as tf
from tidyfair.abstention import coverage, risk_coverage_auc, risk_coverage_curve

ROWS = pl.DataFrame({
    "y": [1, 1, 0, 0, None, 1, 0], "e": [1, None, 0, 1, 1, None, 0], "g": list("abbbbab"), "w": [1, 2, 1, 1, 2, 3, 1],
})  # fmt: skip


def answers(seed: int, rows: int = 200) -> pl.DataFrame:
    """Errors, less often where the confidence is high; some questions are refused, and some answers not judged."""
    random = np.random.default_rng(seed)
    confidence = random.random(rows).round(2 if seed % 2 else 6)
    error = random.random(rows) > 0.4 + 0.5 * confidence
    frame = pl.DataFrame({"c": confidence, "error": error, "g": random.choice(["a", "b"], rows)})
    refused, unjudged = pl.int_range(rows) % 7 == 2, pl.int_range(rows) % 11 == 5
    return frame.with_columns(
        c=pl.when(~refused).then("c"), error=pl.when(~(refused | unjudged)).then("error"), w=pl.int_range(rows) % 3 + 1
    )


def test_coverage_is_the_share_with_a_prediction_beside_metrics_of_the_others(engine: Any) -> None:
    both = tf.metric_set(coverage, tf.accuracy, coverage.difference("g"), tf.accuracy.difference("g"))
    with warnings.catch_warnings():
        # coverage says what the warning of missing predictions would
        warnings.simplefilter("error", tf.errors.MissingPredictionsWarning)
        result = as_polars(both(engine(ROWS), "y", "e", interval="auto", on_undefined="ignore"))
        groups = as_polars(both.by_group(engine(ROWS), "y", "e"))
    assert result[".estimate"].to_list() == pytest.approx([5 / 7, 3 / 4, 0.8 - 0.5, 1 - 2 / 3])
    values = groups.filter(pl.col(".by").is_not_null()).select(".metric", ".group", ".estimate", ".denominator").rows()
    assert values == [
        ("coverage", "a", 0.5, 2), ("coverage", "b", 0.8, 5), ("accuracy", "a", 1.0, 1), ("accuracy", "b", 2 / 3, 3),
    ]  # fmt: skip
    weighed = coverage(ROWS, "y", "e", case_weights="w")
    assert weighed[".estimate"].item() == pytest.approx(6 / 11)
    with pytest.warns(tf.errors.MissingPredictionsWarning, match=r"put `abstention\.coverage` beside the metric"):
        tf.accuracy.difference("g")(ROWS, "y", "e")


def test_coverage_of_scores_is_the_share_that_is_scored() -> None:
    scored = ROWS.with_columns(p=pl.col("e") * 0.8)
    assert coverage(scored, "y", probs="p", threshold=0.5)[".estimate"].item() == pytest.approx(5 / 7)
    assert coverage(ROWS, estimate="e", pos_label=1)[".estimate"].item() == pytest.approx(5 / 7)


def curve_by_hand(
    rows: pl.DataFrame, everyone: pl.DataFrame, weight: str | None
) -> list[tuple[float, float, float, float]]:
    """Threshold, coverage, risk and overall coverage, threshold by threshold."""

    def total(frame: pl.DataFrame) -> float:
        return float(frame[weight].sum() if weight else len(frame))

    def in_doubt(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("c").is_null() | pl.col("error").is_not_null())

    points: list[tuple[float, float, float, float]] = []
    known = rows.drop_nulls(["c", "error"])
    for threshold in sorted({*known["c"]}, reverse=True):
        own = known.filter(pl.col("c") >= threshold)
        of_all = everyone.drop_nulls(["c", "error"]).filter(pl.col("c") >= threshold)
        risk = total(own.filter("error")) / total(own)
        covered, overall = total(own) / total(in_doubt(rows)), total(of_all) / total(in_doubt(everyone))
        points.append((threshold, covered, risk, overall))
    return points


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("seed", range(4))
def test_risk_coverage_curves_are_those_by_hand(seed: int, weight: str | None) -> None:
    rows = answers(seed)
    curve = risk_coverage_curve(rows, "error", probs="c", group_by="g", case_weights=weight)
    for group in ("a", "b"):
        own = curve.filter(g=group).drop("g").rows()
        np.testing.assert_allclose(own, curve_by_hand(rows.filter(g=group), rows, weight))
    alone = risk_coverage_curve(rows, "error", probs="c", case_weights=weight)
    assert alone[".coverage"].to_list() == pytest.approx(alone[".overall_coverage"].to_list())


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("seed", range(4))
def test_the_area_is_the_mean_risk_over_all_rows(seed: int, weight: str | None) -> None:
    rows = answers(seed).drop_nulls(["c", "error"])
    table = [*zip(rows["c"], rows["error"], rows[weight] if weight else [1] * len(rows), strict=True)]
    risks: list[float] = []
    for confidence, _, own in table:
        above = [(error, w) for other, error, w in table if other >= confidence]
        risks.append(own * sum(error * w for error, w in above) / sum(w for _, w in above))
    expected = math.fsum(risks) / sum(w for *_, w in table)
    area = risk_coverage_auc(answers(seed), "error", probs="c", case_weights=weight)
    assert area[".estimate"].item() == pytest.approx(expected)


def test_the_area_is_the_error_rate_where_confidence_says_nothing() -> None:
    rows = answers(2).with_columns(c=pl.lit(0.5))
    rate = rows["error"].mean()
    assert risk_coverage_auc(rows, "error", probs="c")[".estimate"].item() == pytest.approx(rate)


def test_intervals_of_the_area_agree_with_the_bootstrap() -> None:
    rows = answers(2, 600)
    measures = tf.metric_set(risk_coverage_auc, risk_coverage_auc.difference("g"))
    close = risk_coverage_auc(rows, "error", probs="c", interval="auto")
    drawn = risk_coverage_auc(rows, "error", probs="c", interval="bootstrap", times=2_000)
    assert close[".method"].item() == "influence"
    assert close[".std_error"].item() == pytest.approx(drawn[".std_error"].item(), rel=0.06)
    clustered = measures(rows.with_row_index("row"), "error", probs="c", interval="auto", cluster="row")
    assert clustered[".std_error"][0] == pytest.approx(close[".std_error"].item(), rel=1e-6)


def test_curves_refuse_what_they_do_not_have() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"Unknown argument of risk_coverage_curve\(\) 'thresholds'"):
        risk_coverage_curve(answers(1), "error", probs="c", thresholds=[0.5])
    with pytest.raises(tf.errors.ColumnError, match="risk_coverage_curve needs a column of scores"):
        risk_coverage_curve(answers(1), "error")
