"""Tallies of batches, threads and processes add up."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import polars as pl
import pytest
from conftest import examples, reference_data
from hypothesis import HealthCheck, given, settings, strategies as st
from polars.testing import assert_frame_equal

import tidyfair as tf

FRAME = reference_data("a400_weighted")
CLASS = tf.metric_set(tf.accuracy, tf.sens, tf.equalized_odds("sex"), tf.demographic_parity("sex", "race"))
PROB = tf.metric_set(tf.roc_auc, tf.brier_class, tf.auc_parity("race"))
BOTH = tf.metric_set(tf.accuracy, tf.roc_auc, tf.equal_opportunity_ratio("race"))
NUMERIC = tf.metric_set(tf.rmse, tf.rsq, tf.mae.difference("race"))


STREAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (CLASS, {"truth": "y_true", "estimate": "y_pred"}),
    "labels, weighted, by month": (
        CLASS, {"truth": "y_true", "estimate": "y_pred", "case_weights": "weight", "group_by": "age_band"},
    ),
    "several labels": (CLASS, {"truth": "y_multi", "estimate": "pred_multi"}),
    "scores": (PROB, {"truth": "y_true", "probs": "score"}),
    "thresholds": (BOTH, {"truth": "y_true", "probs": "score", "threshold": [0.3, 0.6]}),
    "numbers": (NUMERIC, {"truth": "y_reg", "estimate": "pred_reg"}),
}  # fmt: skip
SOME = FRAME[:60].with_columns(weight=pl.col("weight").round(2))
"""Few rows, so that batches lack groups: three of them are `rare`."""


KEYS = (".metric", ".by", ".group", ".level", ".threshold", "age_band")


def added(tallies: list[Any], random: Any) -> Any:
    """The tallies added up by twos and threes, as they come."""
    left = list(tallies)
    while len(left) > 1:
        index = random.randrange(len(left) - 1)
        left[index : index + 2] = [left[index] + left[index + 1]]
    return left[0]


def assert_same(result: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(result, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=examples(8), deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    places=st.lists(st.integers(0, 4), min_size=SOME.height, max_size=SOME.height),
    random=st.randoms(use_true_random=False),
)
def test_tallies_of_batches_add_up_in_any_order(name: str, places: list[int], random: Any) -> None:
    metric, columns = STREAMS[name]
    parts = [part for _, part in SOME.with_columns(batch=pl.Series(places)).group_by("batch", maintain_order=True)]
    random.shuffle(parts)
    total = added([metric.tally(part, **columns) for part in parts], random)
    quiet: Any = {"on_undefined": "ignore"}
    assert_same(metric.compute(total, **quiet), metric(SOME, **columns, **quiet))
    assert_same(metric.compute(total, **quiet, explain=True), metric(SOME, **columns, **quiet, explain=True))
    groups, expected = metric.compute_by_group(total, **quiet), metric.by_group(SOME, **columns, **quiet)
    keys = [name for name in KEYS if name in expected.columns]
    assert_same(groups.sort(keys), expected.sort(keys))


def test_batches_may_lack_groups() -> None:
    # each batch has one race, and the last one is new
    parts = FRAME.sort("race").partition_by("race")
    for order in (parts, parts[::-1]):
        total: Any = sum(CLASS.tally(part, "y_true", "y_pred") for part in order)
        assert_same(CLASS.compute(total), CLASS(FRAME, "y_true", "y_pred"))


def test_batches_may_lack_labels() -> None:
    parts = FRAME.sort("y_multi", "pred_multi").partition_by("y_multi", "pred_multi")
    total: Any = sum(CLASS.tally(part, "y_multi", "pred_multi") for part in parts)
    assert_same(CLASS.compute(total), CLASS(FRAME, "y_multi", "pred_multi"))


def test_empty_batches_change_nothing() -> None:
    empty, whole = (CLASS.tally(frame, "y_true", "y_pred") for frame in (FRAME.clear(), FRAME))
    for total in (empty + whole, whole + empty, empty + whole + empty):
        assert_same(CLASS.compute(total), CLASS(FRAME, "y_true", "y_pred"))


# a method of the library, so that another process need not import these tests
counted: Any = partial(CLASS.tally, truth="y_true", estimate="y_pred", case_weights="weight")


def test_tallies_of_threads_add_up() -> None:
    parts = [FRAME[start : start + 25] for start in range(0, FRAME.height, 25)]
    with ThreadPoolExecutor(4) as pool:
        total: Any = sum(pool.map(counted, parts))
    assert_same(CLASS.compute(total), CLASS(FRAME, "y_true", "y_pred", case_weights="weight"))


@pytest.mark.parametrize("name", STREAMS)
def test_tallies_pickle(name: str) -> None:
    metric, columns = STREAMS[name]
    tally = metric.tally(FRAME, **columns)
    back = pickle.loads(pickle.dumps(tally))  # noqa: S301 - our own bytes
    assert_same(metric.compute(back), metric.compute(tally))
    half = pickle.loads(pickle.dumps(metric.tally(FRAME[:200], **columns)))  # noqa: S301 - our own bytes
    assert_same(metric.compute(half + metric.tally(FRAME[200:], **columns)), metric.compute(tally))


def test_tallies_of_processes_add_up() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        total: Any = sum(pool.map(counted, [FRAME[:150], FRAME[150:]]))
    assert_same(CLASS.compute(total), CLASS(FRAME, "y_true", "y_pred", case_weights="weight"))
