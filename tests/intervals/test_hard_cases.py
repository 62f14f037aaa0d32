"""Intervals where rows, replicates or names say little: each case once had an interval that was wrong or missing."""

from __future__ import annotations

import itertools
import math
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf

NUMBERS = pl.DataFrame(
    {"y": [1.0, 2.5, 3.0, 4.5, 7.0, 8.0], "p": [1.5, 2.0, 3.5, 4.0, 6.0, 9.5], "g": [0, 0, 0, 1, 1, 1]}
)


def rates(**groups: tuple[int, int]) -> pl.DataFrame:
    """Groups with so many selected rows of all."""
    rows = [(name, int(row < hits)) for name, (hits, count) in groups.items() for row in range(count)]
    return pl.DataFrame(rows, schema=["g", "e"], orient="row")


def ends(result: pl.DataFrame) -> tuple[Any, Any]:
    return result[".lower"].item(), result[".upper"].item()


@pytest.mark.parametrize("metric", [tf.calibration.slope, tf.calibration.intercept])
def test_a_single_cluster_gives_no_interval_of_a_calibration_line(metric: tf.types.Metric) -> None:
    data = pl.DataFrame({"y": [0, 1, 0, 1, 1, 0] * 5, "s": [0.2, 0.7, 0.4, 0.6, 0.3, 0.5] * 5, "c": 1})
    result = metric(data, "y", probs="s", cluster="c", interval="auto")
    assert result[".estimate"].item() is not None
    assert ends(result) == (None, None)


def test_tied_scores_do_not_make_an_area_certain() -> None:
    data = pl.DataFrame({"y": [0, 1] * 4, "s": [0.4] * 8, "g": ["a"] * 4 + ["b"] * 4})
    low, high = ends(tf.roc_auc(data, "y", probs="s", interval="auto"))
    assert low < 0.3
    assert high > 0.7
    verdict = tf.check(tf.roc_auc.difference("g"), below=0.05)(data, "y", probs="s")
    assert verdict[".verdict"].item() == "not enough evidence"


def test_replicates_that_are_infinite_bound_nothing_above() -> None:
    # every ninth replicate or so of 3 of 25 has no hits, so that the ratio is infinite
    data = rates(a=(7, 20), b=(1, 25))
    result = tf.disparate_impact(tf.privileged(g="b"))(data, estimate="e", interval="bootstrap", seed=1)
    low, high = ends(result)
    assert 0 < low < result[".estimate"].item()
    assert high == math.inf


def test_replicates_that_are_all_alike_are_widened_by_empty_cells() -> None:
    result = tf.selection_rate.ratio("g")(rates(a=(0, 10), b=(5, 10)), estimate="e", interval="bootstrap", seed=1)
    low, high = ends(result)
    assert low == 0
    assert 0.2 < high < 1


@pytest.mark.parametrize("metric", [tf.mae, tf.rmse, tf.rsq, tf.ccc])
@pytest.mark.parametrize("name", ["analytic", "jackknife"])
def test_names_of_methods_hold_for_metrics_of_numbers(metric: tf.types.Metric, name: Any) -> None:
    auto = metric(NUMBERS, "y", "p", interval="auto")
    assert auto[".method"].item() == "jackknife"
    assert_frame_equal(metric(NUMBERS, "y", "p", interval=name), auto)


@pytest.mark.parametrize(("compared", "method"), [("difference", "newcombe"), ("ratio", "miettinen_nurminen")])
def test_comparisons_of_rates_beside_exact_limits_say_that_they_are_others(compared: str, method: str) -> None:
    metrics = tf.metric_set(tf.selection_rate, getattr(tf.selection_rate, compared)("g"))
    result = metrics(rates(a=(7, 20), b=(3, 25)), estimate="e", interval="exact")
    assert result[".method"].to_list() == ["clopper_pearson", method]


def test_mover_of_a_ratio_is_not_the_score_interval() -> None:
    ratio, data = tf.selection_rate.ratio("g", to="b", signed=True), rates(a=(7, 20), b=(3, 25))
    score, mover = (ends(ratio(data, estimate="e", interval=name)) for name in ("miettinen_nurminen", "mover"))
    logs: list[tuple[float, float, float]] = []
    for name, hits, rows in (("a", 7, 20), ("b", 3, 25)):
        low, high = ends(tf.selection_rate(data.filter(g=name), estimate="e", interval="auto"))
        logs.append((math.log((hits + 0.5) / (rows + 1)), math.log(low), math.log(high)))
    (one, low_one, high_one), (other, low_other, high_other) = logs
    distance = one - other
    low = math.exp(distance - math.hypot(one - low_one, high_other - other))
    high = math.exp(distance + math.hypot(high_one - one, other - low_other))
    assert mover == pytest.approx((low, high))
    assert score != pytest.approx(mover, rel=1e-3)


def test_simultaneous_limits_of_sums_of_rates_reach_farther_than_their_level_alone() -> None:
    data = pl.DataFrame({"y": ([1] * 10 + [0] * 10) * 6, "p": ([1] * 8 + [0] * 10 + [1] * 2) * 6}).with_columns(
        g=pl.int_range(pl.len()) // 20
    )
    parity = tf.bal_accuracy.difference("g")
    at_once = parity.by_group(data, "y", "p", interval="auto", simultaneous=True)
    alone = parity.by_group(data, "y", "p", interval="auto", conf_level=0.95 ** (1 / 6))
    assert (at_once[".lower"] < alone[".lower"]).all()
    assert (at_once[".upper"] >= alone[".upper"]).all()


def test_replicates_are_as_many_as_the_level_needs() -> None:
    data = pl.DataFrame({"y": [float(number % 17) for number in range(60)], "p": 0.0})
    usual, higher, highest = (
        tf.median_absolute_error(data, "y", "p", interval="auto", conf_level=level)[".upper"].item()
        for level in (0.95, 0.99, 0.999)
    )
    assert usual <= higher <= highest
    with pytest.raises(
        tf.errors.ArgumentError, match=r"`times=20` replicates do not show .* level 0\.999: take `times=2000`"
    ):
        tf.median_absolute_error(data, "y", "p", interval="auto", conf_level=0.999, times=20)
    with pytest.raises(tf.errors.ArgumentError, match=r"Replicates do not show .* take a lower `conf_level=`"):
        tf.median_absolute_error(data, "y", "p", interval="auto", conf_level=1 - 1e-9)


@pytest.mark.parametrize(("hits", "value"), [(0, 0.0), (10, 1.0)])
def test_posterior_limits_of_none_or_all_rows_include_the_rate(hits: int, value: float) -> None:
    low, high = ends(tf.selection_rate(rates(a=(hits, 10)), estimate="e", interval="bayes", conf_level=0.5))
    assert value in {low, high}


def test_limits_of_spreads_do_not_depend_on_the_order_of_groups() -> None:
    counts = [(4, 7), (3, 7), (4, 6), (9, 20)]
    spread = tf.demographic_parity("g", aggregate=tf.aggregates.standard_deviation())
    found = {
        ends(spread(rates(**dict(zip("abcd", order, strict=True))), estimate="e", interval="auto"))
        for order in itertools.permutations(counts)
    }
    first = min(found)
    assert all(limits == pytest.approx(first, rel=1e-9) for limits in found)


def test_a_single_cluster_is_said_to_be_one() -> None:
    data = rates(a=(7, 20)).with_columns(c=1)
    with pytest.warns(tf.errors.ClusterWarning, match="There is 1 cluster; intervals from fewer than 30 clusters"):
        tf.selection_rate(data, estimate="e", cluster="c", interval="bootstrap")


@pytest.mark.parametrize(("hits", "rows"), [(0, 30), (20, 50), (3, 6)])
@pytest.mark.parametrize("compared", ["difference", "ratio"])
def test_equal_groups_are_no_surer_to_be_near_than_two_of_them(hits: int, rows: int, compared: str) -> None:
    parity = getattr(tf.selection_rate, compared)("g")
    # the ratio of two rates is by their score by default, that of several by the limits of both, as `mover` of two is
    two, several = (
        ends(parity(rates(**dict.fromkeys(names, (hits, rows))), estimate="e", interval=name, on_undefined="ignore"))
        for names, name in (("ab", "mover"), ("abcd", "auto"))
    )
    assert (several == two) if two[0] is None else (several == pytest.approx(two, rel=1e-9))
    if compared == "difference":
        gate = tf.check(parity, below=0.02)
        assert gate(rates(**dict.fromkeys("abc", (hits, rows))), estimate="e")[".verdict"].item() != "pass"


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_distances_that_are_small_by_chance_have_some_width(to: Any) -> None:
    same = [0.1, 0.4, 0.35, 0.8, 0.2, 0.6, 0.5, 0.7] * 5
    data = pl.DataFrame({"y": [0, 0, 1, 1, 0, 1, 1, 0] * 15, "s": same * 3, "g": ["a"] * 40 + ["b"] * 40 + ["c"] * 40})
    result = tf.roc_auc.difference("g", to=to)(data, "y", probs="s", interval="auto")
    low, high = ends(result)
    assert result[".estimate"].item() == pytest.approx(0, abs=1e-12)
    assert low == 0
    assert high > 0.05


def test_simultaneous_limits_are_those_of_groups_that_a_metric_compares() -> None:
    data = rates(a=(7, 20), b=(3, 25))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"selection_rate compares none: write `selection_rate\.difference\("
    ):
        tf.selection_rate.by_group(data, estimate="e", group_by="g", interval="auto", simultaneous=True)
    result = tf.selection_rate.difference("g").by_group(data, estimate="e", interval="auto", simultaneous=True)
    assert result[".method"].to_list() == ["wilson, simultaneous"] * 2
