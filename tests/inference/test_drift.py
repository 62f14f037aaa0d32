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
    # the p-value is that of changes of groups, to which no range of changes of the disparity belongs
    assert result[".expected_lower"] is result[".expected_upper"] is None
    assert result[".expected"] > 0.05
    assert result[".change"] == pytest.approx(result[".estimate"] - result[".estimate_before"])
    values = tf.demographic_parity("g")(data, **CALL)[".estimate"].to_list()
    assert [result[".estimate_before"], result[".estimate"]] == pytest.approx(values)


@pytest.mark.parametrize("relative", [False, True])
def test_p_value_equals_hand_made_shuffles_of_changes_between_groups(relative: bool) -> None:  # noqa: FBT001 - a case
    data = people((400, {"a": 0.5, "b": 0.45, "c": 0.2}), (150, {"a": 0.45, "b": 0.52, "c": 0.2}), seed=4)
    hits = {(month, group): n for month, group, n in data.group_by("month", "g").agg(pl.col("p").sum()).rows()}
    metric = tf.demographic_parity_ratio("g") if relative else tf.demographic_parity("g")
    result = inference.compare_periods(metric, period="month", adjust="none")(data, **CALL)[".p_value"].item()
    totals = np.array([hits[1, group] + hits[2, group] for group in "abc"])

    def severity(before: Any) -> Any:
        """The largest distance of two groups' changes, in standard errors."""
        after, shares = totals - before, totals / 550
        if relative:
            shares = (totals + 0.5) / 551
            change = np.log((after + 0.5) / 151) - np.log((before + 0.5) / 401)
            variance = (1 - shares) / shares * (1 / 400 + 1 / 150)
        else:
            change, variance = after / 150 - before / 400, shares * (1 - shares) * (1 / 400 + 1 / 150)
        pairs = [(0, 1), (0, 2), (1, 2)]
        apart = [np.abs(change[:, i] - change[:, j]) / np.sqrt(variance[i] + variance[j]) for i, j in pairs]
        return np.max(apart, axis=0)

    shuffled = np.random.default_rng(1).hypergeometric(totals, 550 - totals, 400, (20_000, 3))
    observed = severity(np.array([[hits[1, group] for group in "abc"]]))
    assert result == pytest.approx(float((severity(shuffled) >= observed - 1e-9).mean()), abs=0.02)


def test_changed_sign_of_a_disparity_is_seen() -> None:
    # the range is 0.2 in both months, once to the one side and once to the other
    turned = people((400, {"a": 0.6, "b": 0.4}), (400, {"a": 0.4, "b": 0.6}))
    result = PARITY(turned, **CALL).row(0, named=True)
    assert abs(result[".change"]) < 0.1
    assert result[".p_value"] < 0.001


@pytest.mark.simulation
def test_common_shift_of_all_groups_is_no_changed_disparity() -> None:
    rates = {"a": 0.3, "b": 0.4}, {"a": 0.5, "b": 0.6}
    shifted = pl.concat(
        people((300, rates[0]), (300, rates[1]), seed=seed).with_columns(run=seed) for seed in range(150)
    )
    test = inference.compare_periods(tf.demographic_parity("g"), period="month")
    p_values = test(shifted, estimate="p", group_by=["run", "month"], times=199)[".p_value"]
    assert len(p_values) == 150
    assert (p_values <= 0.05).to_numpy().mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)


def test_change_of_a_minimum_is_tested_by_itself() -> None:
    worse = people((400, {"a": 0.7, "b": 0.8}), (400, {"a": 0.5, "b": 0.6}), (300, {"a": 0.5, "b": 0.6}), seed=1)
    lowest = inference.compare_periods(tf.selection_rate.group_minimum("g"), period="month", adjust="none")
    result = lowest(worse, **CALL, times=999)
    assert result[".p_value"][0] < 0.01
    is_inside = result.select(pl.col(".change").is_between(".expected_lower", ".expected_upper")).to_series()
    assert is_inside.to_list() == (result[".p_value"] >= 0.05).to_list() == [False, True]


def test_expected_change_of_distances_to_the_whole_draws_the_whole_too() -> None:
    data = people((300, {"a": 0.5, "b": 0.45}), (60, {"a": 0.45, "b": 0.52}), seed=4)
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="overall"))
    result = inference.compare_periods(metric, period="month")(data, **CALL, times=4000).row(0, named=True)
    totals = data.group_by("g", maintain_order=True).agg(pl.col("p").sum())["p"].to_numpy()
    before = np.random.default_rng(1).hypergeometric(totals, 360 - totals, 300, (20_000, 2))
    after = totals - before
    # of two groups of the same size, each is half of their distance from both together
    changes = np.abs(np.diff(after / 60, axis=1)) / 2 - np.abs(np.diff(before / 300, axis=1)) / 2
    assert result[".expected"] == pytest.approx(changes.mean(), abs=0.002)


@pytest.mark.simulation
def test_drift_is_detected_and_no_drift_is_rarely_rejected() -> None:
    drifted = people((500, {"a": 0.5, "b": 0.5}), (500, {"a": 0.5, "b": 0.5}), (500, {"a": 0.5, "b": 0.2}))
    result = PARITY(drifted, **CALL)
    assert result.select(".before", "month").rows() == [(1, 2), (2, 3)]
    assert result[".p_value"][0] > 0.05
    assert result[".p_value"][1] < 0.01
    samples = pl.concat(people((300, EQUAL), (60, EQUAL), seed=seed).with_columns(run=seed) for seed in range(1, 61))
    p_values = PARITY(samples, estimate="p", group_by=["run", "month"])[".p_value"]
    assert len(p_values) == 60
    assert (p_values < 0.05).sum() <= 8


def test_equal_opportunity_drift_ignores_negatives() -> None:
    data = people((200, {"a": 0.5, "b": 0.6}), (150, {"a": 0.4, "b": 0.6}))
    doubled = pl.concat([data, data.with_columns(y=pl.lit(0), p=pl.lit(1, pl.Int64))])
    metric = inference.compare_periods(tf.equal_opportunity("g"), period="month")
    assert (
        metric(doubled, "y", **CALL, times=500)
        .drop(".metric")
        .equals(
            inference.compare_periods(tf.demographic_parity("g", name="equal_opportunity"), period="month")(
                data, **CALL, pos_label=1, times=500
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


def test_more_rows_than_can_be_shuffled_raise() -> None:
    data = people((20, {"a": 0.5, "b": 0.5}), (20, {"a": 0.5, "b": 0.5})).with_columns(n=pl.lit(10**8))
    with pytest.raises(tf.errors.ArgumentError, match="Fewer than 1000000000 rows can be shuffled"):
        PARITY(data, **CALL, frequency_weights="n")


def test_bad_periods_and_metrics_raise() -> None:
    data = people((20, {"a": 0.5, "b": 0.5}), (20, {"a": 0.5, "b": 0.5}))
    with pytest.raises(tf.errors.ArgumentError, match="group_by='month'"):
        PARITY(data, estimate="p")
    with pytest.raises(tf.errors.ArgumentError, match="does not compare rates"):
        inference.compare_periods(tf.bal_accuracy.group_minimum("g"), period="month")(data, "y", **CALL)
    assert PARITY(data.filter(pl.col("month") == 1), **CALL).is_empty()
