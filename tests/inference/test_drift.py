"""Changes between periods, against changes expected from the numbers of rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair import inference


def people(*periods: tuple[int, dict[str, float]], seed: int = 0) -> pl.DataFrame:
    """So many rows of each group in each period, at the rates of the groups."""
    random = np.random.default_rng(seed)
    return pl.concat(
        pl.DataFrame({"month": month, "g": group, "y": 1, "p": (random.random(rows) < rate).astype(np.int64)})
        for month, (rows, rates) in enumerate(periods, 1)
        for group, rate in rates.items()
    )


EQUAL = dict.fromkeys("abcdef", 0.4)
PARITY = inference.compare_periods(tf.demographic_parity("g"), period="month", adjust="none")
CALL: dict[str, Any] = {"estimate": "p", "group_by": "month"}


def test_expected_change_equals_hand_made_shuffles() -> None:
    data = people((1000, EQUAL), (100, EQUAL))
    result = PARITY(data, **CALL).row(0, named=True)
    # shuffled by hand
    random, changes = np.random.default_rng(1), []
    hits = {(month, group): n for month, group, n in data.group_by("month", "g").agg(pl.col("p").sum()).rows()}
    for _ in range(4000):
        before = np.array(
            [random.hypergeometric(hits[1, g] + hits[2, g], 1100 - hits[1, g] - hits[2, g], 1000) for g in EQUAL]
        )
        after = np.array([hits[1, g] + hits[2, g] for g in EQUAL]) - before
        changes.append(np.ptp(after / 100) - np.ptp(before / 1000))
    assert result[".expected"] == pytest.approx(np.mean(changes), abs=0.003)
    low, high = np.quantile(changes, [0.025, 0.975])
    assert (result[".expected_lower"], result[".expected_upper"]) == pytest.approx((low, high), abs=0.006)
    assert result[".expected"] > 0.05
    away = np.abs(np.array(changes) - np.mean(changes)) >= abs(result[".change"] - np.mean(changes))
    assert result[".p_value"] == pytest.approx(away.mean(), abs=0.03)
    assert result[".change"] == pytest.approx(result[".estimate"] - result[".estimate_before"])
    values = tf.demographic_parity("g")(data, **CALL)[".estimate"].to_list()
    assert [result[".estimate_before"], result[".estimate"]] == pytest.approx(values)


def test_drift_is_detected_and_no_drift_is_rarely_rejected() -> None:
    drifted = people((500, {"a": 0.5, "b": 0.5}), (500, {"a": 0.5, "b": 0.5}), (500, {"a": 0.5, "b": 0.2}))
    result = PARITY(drifted, **CALL)
    assert result.select(".before", ".period").rows() == [(1, 2), (2, 3)]
    assert result[".p_value"][0] > 0.05
    assert result[".p_value"][1] < 0.01
    rejected = sum(
        PARITY(people((300, EQUAL), (60, EQUAL), seed=seed), **CALL)[".p_value"].item() < 0.05 for seed in range(1, 61)
    )
    assert rejected <= 8


def test_equal_opportunity_drift_ignores_negatives() -> None:
    data = people((200, {"a": 0.5, "b": 0.6}), (150, {"a": 0.4, "b": 0.6}))
    doubled = pl.concat([data, data.with_columns(y=pl.lit(0), p=pl.lit(1, pl.Int64))])
    metric = inference.compare_periods(tf.equal_opportunity("g"), period="month", times=500)
    assert (
        metric(doubled, "y", **CALL)
        .drop(".metric")
        .equals(
            inference.compare_periods(tf.demographic_parity("g", name="equal_opportunity"), period="month", times=500)(
                data, **CALL, pos_label=1
            ).drop(".metric")
        )
    )


def test_outer_groups_have_their_own_periods() -> None:
    data = pl.concat(
        people((100, {"a": 0.5, "b": 0.4}), (100, {"a": 0.5, "b": 0.3}), seed=seed).with_columns(model=pl.lit(name))
        for seed, name in enumerate(("one", "two"))
    )
    result = PARITY(data, estimate="p", group_by=["model", "month"])
    assert result["model"].to_list() == ["one", "two"]
    alone = PARITY(data.filter(pl.col("model") == "two"), **CALL)
    assert result.filter(pl.col("model") == "two")[".estimate"].item() == alone[".estimate"].item()


def test_bad_periods_and_metrics_raise() -> None:
    data = people((20, {"a": 0.5, "b": 0.5}), (20, {"a": 0.5, "b": 0.5}))
    with pytest.raises(tf.ArgumentError, match="group_by='month'"):
        PARITY(data, estimate="p")
    with pytest.raises(tf.ArgumentError, match="is no comparison of rates"):
        inference.compare_periods(tf.bal_accuracy.group_minimum("g"), period="month")(data, "y", **CALL)
    assert PARITY(data.filter(pl.col("month") == 1), **CALL).is_empty()
