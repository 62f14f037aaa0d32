"""Rows are counted once, or once per feature for features with very many values, with the steps that a call has."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf
import tidyfair.calling.runner as calling
from tidyfair.intervals import inversion
from tidyfair.tallies.counting import count as count_tallies

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidyfair.tallies.tally import Tally

ROWS, USERS = 60_000, 20_000
RANDOM = np.random.default_rng(1)
VISITS = pl.DataFrame(
    {
        "user": RANDOM.integers(0, USERS, ROWS), "item": RANDOM.integers(0, USERS, ROWS),
        "sex": RANDOM.choice(["f", "m"], ROWS), "race": RANDOM.choice(list("abcd"), ROWS),
        "fold": RANDOM.integers(0, 3, ROWS), "y": RANDOM.random(ROWS) < 0.4, "p": RANDOM.random(ROWS) < 0.5,
    }
)  # fmt: skip
CALL: dict[str, Any] = {"truth": "y", "estimate": "p", "on_undefined": "ignore"}


@pytest.fixture
def tallies(monkeypatch: pytest.MonkeyPatch) -> list[Tally]:
    """What is counted, pass by pass."""
    made: list[Tally] = []
    count: Callable[..., Tally] = count_tallies

    def recorded(*given: Any, **options: Any) -> Tally:
        made.append(count(*given, **options))
        return made[-1]

    monkeypatch.setattr(calling, "count", recorded)
    return made


def parity(*by: str) -> tf.types.GroupwiseMetric:
    return tf.demographic_parity(*by)


def test_features_with_few_values_share_one_pass(tallies: list[Tally]) -> None:
    tf.metric_set(tf.accuracy, parity("sex"), parity("race"), parity("sex", "race"))(VISITS, **CALL)
    assert len(tallies) == 1
    assert len(tallies[0].cells) == 2 * 4 * 4


def test_features_with_many_values_are_counted_separately(tallies: list[Tally]) -> None:
    both = tf.metric_set(tf.accuracy, parity("user"), tf.equal_opportunity("item"), parity("sex"))
    result = both(VISITS, **CALL, explain=True)
    assert len(tallies) == 3
    assert [len(tally.cells) for tally in tallies] == [
        VISITS.select(feature, "y", "p").n_unique() for feature in ("user", "item", "sex")
    ]
    alone = [metric(VISITS, **CALL, explain=True) for metric in both]
    assert_frame_equal(result, pl.concat(alone))
    groups = both.by_group(VISITS, **CALL)
    separate = pl.concat((metric.by_group(VISITS, **CALL) for metric in both), how="diagonal")
    assert_frame_equal(groups, separate.select(groups.columns), check_row_order=False)


def test_feature_of_an_intersection_is_counted_with_it(tallies: list[Tally]) -> None:
    # groups of single rows are refused
    twice = pl.concat([VISITS, VISITS])
    tf.metric_set(parity("user", "item"), parity("user"), parity("item"))(twice, **CALL)
    assert len(tallies) == 1


def test_pass_planning_samples_rows_on_every_engine(
    engine: Callable[[pl.DataFrame], Any], tallies: list[Tally]
) -> None:
    result = tf.metric_set(parity("user"), parity("item"))(engine(VISITS), **CALL, group_by="fold")
    assert len(tallies) == 2
    expected = tf.metric_set(parity("user"), parity("item"))(VISITS, **CALL, group_by="fold")
    assert_frame_equal(as_polars(result), expected, check_dtypes=False)


def test_intervals_and_warnings_with_several_passes(tallies: list[Tally], monkeypatch: pytest.MonkeyPatch) -> None:
    # of thousands of groups few draws are enough here
    monkeypatch.setattr(inversion, "_DRAWS", 20)
    both = tf.metric_set(parity("user"), tf.demographic_parity("item", aggregate=tf.aggregates.standard_deviation()))
    sure = both(VISITS, **CALL, interval="auto", times=20)
    assert len(tallies) == 2
    assert_frame_equal(sure[:1], parity("user")(VISITS, **CALL, interval="auto", times=20))
    with pytest.warns(tf.errors.UndefinedWarning) as caught:
        tf.metric_set(tf.equal_opportunity("user"), tf.equal_opportunity("item"))(VISITS, "y", "p")
    assert len(caught) == 1


def test_bad_columns_raise_with_several_passes() -> None:
    with pytest.raises(tf.errors.ColumnError, match="no column 'nobody'"):
        tf.metric_set(parity("user"), parity("nobody"))(VISITS, **CALL)
    broken = (pl.col("sex") + 1).alias("broken")
    with pytest.raises(tf.errors.TidyfairError, match="broken"):
        tf.metric_set(parity("user"), tf.demographic_parity(broken))(VISITS, **CALL)


def queries_of(call: Callable[[], object]) -> int:
    """How many queries polars runs in a call, those of single steps on frames and series included."""
    count = 0

    def seen(frame: object, event: str, function: object) -> None:
        nonlocal count
        del frame
        count += event == "c_call" and getattr(function, "__name__", "") in {"collect", "collect_all"}

    call()  # what is worked out once is no part of it
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_few_rows_take_few_polars_queries() -> None:
    few_rows = VISITS.head(1000).cast({"sex": pl.Enum(["f", "m"]), "race": pl.Enum(list("abcd"))})
    one = tf.metric_set(tf.sens, tf.equal_opportunity("sex", "race"))
    bys = [("sex",), ("race",), ("sex", "race")]
    factories = (tf.demographic_parity, tf.equal_opportunity, tf.equalized_odds, tf.predictive_parity)
    rates = (tf.sens, tf.spec, tf.precision, tf.selection_rate, tf.accuracy)
    many = tf.metric_set(*rates, *(factory(*by) for by in bys for factory in factories))
    of_one, of_many = (
        queries_of(lambda metrics=item: metrics(few_rows, group_by="fold", **CALL)) for item in (one, many)
    )
    # the count, the labels that occur, and a look at each column of keys
    assert of_many == of_one <= 8


def entered(call: Callable[[], object]) -> set[str]:
    """The functions of the library that a call enters."""
    names: set[str] = set()
    package = str(Path(tf.__file__).parent)

    def seen(frame: Any, event: str, function: object) -> None:
        del function
        if event == "call" and frame.f_code.co_filename.startswith(package):
            names.add(frame.f_code.co_qualname)

    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


STEPS = {"_decided", "with_censoring_weights", "_in_parts", "with_comparisons", "_with_frequencies", "_bins"}


def test_steps_that_a_call_does_not_have_are_not_entered() -> None:
    few_rows = VISITS.head(1000).with_columns(score=pl.Series(RANDOM.random(1000)))
    fair = tf.metric_set(tf.accuracy, parity("sex"))
    assert not entered(lambda: fair(few_rows, "y", "p")) & STEPS
    assert entered(lambda: fair(few_rows, "y", probs="score", threshold=0.5)) & STEPS == {"_decided"}
    assert entered(lambda: fair(few_rows, "y", "p", frequency_weights="user")) & STEPS == {"_with_frequencies"}


def test_plan_is_made_once_for_calls_with_the_same_options() -> None:
    few_rows, fair = VISITS.head(1000), tf.metric_set(tf.accuracy, parity("race"))
    made = "CountPlan.of"
    assert made in entered(lambda: fair(few_rows, **CALL))
    assert made not in entered(lambda: fair(few_rows, **CALL))
    assert made in entered(lambda: fair(few_rows.group_by("fold"), **CALL))
    assert made not in entered(lambda: fair(few_rows, **CALL))


def test_options_of_other_types_are_other_options() -> None:
    few_rows, fair = VISITS.head(1000), tf.metric_set(tf.accuracy, parity("race"))
    fair(few_rows, **CALL, explain=True)
    with pytest.raises(tf.errors.ArgumentError, match="`explain` is True or False, not 1"):
        fair(few_rows, **CALL, explain=cast("Any", 1))


def test_accumulator_pickles_after_it_has_counted() -> None:
    batches = tf.Accumulator(parity("sex"), "y", "p").update(VISITS.head(1000))
    again = pickle.loads(pickle.dumps(batches))  # noqa: S301 - our own
    assert_frame_equal(again.update(VISITS.tail(500)).compute(), batches.update(VISITS.tail(500)).compute())
