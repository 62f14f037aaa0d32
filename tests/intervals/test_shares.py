"""Values that are shares of rows, or made of shares, have the limits of the shares."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from lending_rates import CALL, LOANS

import tidyfair as tf
from tidyfair.intervals.shares import share_of

SAME = {
    "ppv": (tf.precision, tf.ppv, 1.0),
    "npv": (tf.negative_predictive_value, tf.npv, 1.0),
    "a multiple": (tf.sens, tf.new_class_metric(lambda tp, fn: 3 * tp / (tp + fn) - 1, "three", range=(-1, 2)), 3.0),
}


@pytest.mark.parametrize("interval", ["auto", "analytic"])
@pytest.mark.parametrize("name", SAME)
def test_values_that_are_a_share_have_the_error_of_the_share(name: str, interval: Any) -> None:
    plain, metric, factor = SAME[name]
    for of_share, result in zip(
        plain.difference("sex").by_group(LOANS, **CALL, interval=interval).iter_rows(named=True),
        metric.difference("sex").by_group(LOANS, **CALL, interval=interval).iter_rows(named=True),
        strict=True,
    ):
        assert result[".std_error"] == pytest.approx(factor * of_share[".std_error"], rel=1e-6)
    one, other = (item.difference("sex")(LOANS, **CALL, interval=interval) for item in (plain, metric))
    assert other[".std_error"].item() == pytest.approx(factor * one[".std_error"].item(), rel=1e-6)


def test_sum_of_two_shares_has_the_errors_of_both() -> None:
    sens, spec, index = (tf.metric_set(tf.sens, tf.spec, tf.j_index)(LOANS, **CALL, interval="auto"))[".std_error"]
    assert index == pytest.approx(math.hypot(sens, spec))


RIGHT = pl.DataFrame(
    {"t": [1] * 10 + [0] * 10, "e": [1] * 10 + [0] * 10, "g": [*"ab"] * 10, "p": [1.0] * 10 + [0] * 10}
)
RATES = tf.metric_set(tf.precision, tf.ppv, tf.sens, tf.accuracy, tf.f_meas, tf.bal_accuracy)


@pytest.mark.parametrize("interval", ["auto", "bootstrap", "exact"])
def test_error_of_what_has_not_been_seen_to_vary_is_null(interval: Any) -> None:
    metrics = tf.metric_set(tf.precision, tf.sens) if interval == "exact" else RATES
    result = metrics(RIGHT, "t", "e", pos_label=1, interval=interval, times=200)
    assert result[".std_error"].null_count() == len(result) == len(metrics)
    assert (result[".lower"] < 1).all()
    if interval != "exact":
        gaps = metrics.difference("g")(RIGHT, "t", "e", pos_label=1, interval=interval, times=200)
        assert gaps[".std_error"].null_count() == len(metrics)
    if interval == "auto":
        assert tf.roc_auc(RIGHT, "t", probs="p", pos_label=1, interval="auto")[".std_error"].item() is None


def test_share_of_recognizes_rates() -> None:
    share = share_of(tf.false_discovery_rate.definition)
    assert share is not None
    assert (share.holds, share.among) == (frozenset({"fp"}), frozenset({"tp", "fp"}))
    accuracy = share_of(tf.accuracy.definition)
    assert accuracy is not None
    assert accuracy.among == frozenset({"tp", "fp", "fn", "tn"})
    for metric in (
        tf.f_meas,
        tf.mcc,
        tf.inequality.mean_benefit,
        tf.counts.false_negatives_per_false_positive,
        tf.kap,
        tf.roc_auc,
    ):
        assert share_of(metric.definition) is None
