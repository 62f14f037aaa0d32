"""How large a disparity rows can show, against closed forms for two groups and simulation for more."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.proportion import power_proportions_2indep

import tidyfair as tf
from tidyfair.datasets import lending


@pytest.mark.parametrize(("rows", "share"), [((500, 500), 0.5), ((2000, 300), 0.3), ((400, 1000), 0.8)])
def test_of_two_groups_the_power_is_that_of_the_usual_test(rows: tuple[int, int], share: float) -> None:
    found = tf.smallest_difference({"a": rows[0], "b": rows[1]}, share)
    apart = found[".difference"].item()
    smaller, other = (1, 0) if rows[1] < rows[0] else (0, 1)
    signed = -apart if share >= 0.5 else apart
    ratio: Any = rows[other] / rows[smaller]
    usual: Any = power_proportions_2indep(signed, share, rows[smaller], ratio=ratio)
    assert usual.power == pytest.approx(0.8, abs=0.03)
    assert found[".smallest"].item() == "ab"[smaller]


def test_rows_needed_are_those_of_the_usual_test() -> None:
    needed = tf.rows_needed(0.1, 0.4)
    usual: Any = power_proportions_2indep(0.1, 0.4, needed)
    assert usual.power == pytest.approx(0.8, abs=0.03)
    assert tf.rows_needed(0.05, 0.4) > 3 * needed
    assert tf.rows_needed(0.1, 0.4, power=0.9) > needed


def test_a_difference_is_found_as_often_as_it_says() -> None:
    sizes = {"a": 300, "b": 300, "c": 300, "d": 80}
    apart = tf.smallest_difference(sizes, 0.4)[".difference"].item()
    random, rows = np.random.default_rng(9), np.array(list(sizes.values()))

    def ranges(shares: list[float]) -> Any:
        drawn = random.binomial(rows, shares, (20_000, 4)) / rows
        return drawn.max(axis=1) - drawn.min(axis=1)

    usual = np.quantile(ranges([0.4] * 4), 0.95)
    assert (ranges([0.4, 0.4, 0.4, 0.4 + apart]) > usual).mean() == pytest.approx(0.8, abs=0.03)


def test_a_result_says_how_many_rows_there_are() -> None:
    loans = lending(3000)
    groups = tf.equalized_odds("race").by_group(loans, "repaid", "approved", pos_label="yes", group_by="sex")
    found = tf.smallest_difference(groups, times=500)
    assert found.select("sex", ".metric").rows() == [
        ("female", "sens"), ("male", "sens"), ("female", "spec"), ("male", "spec"),
    ]  # fmt: skip
    part = groups.filter((pl.col("sex") == "male") & (pl.col(".metric") == "spec"))
    sizes = dict(part.select(".group", ".denominator").rows())
    share = float(np.average(part[".estimate"].to_numpy(), weights=part[".denominator"].to_numpy()))
    alone = tf.smallest_difference(sizes, share, times=500)
    assert found[".difference"][3] == alone[".difference"].item()
    assert found[".rows"][3] == min(sizes.values())


def test_where_no_difference_is_large_enough() -> None:
    assert tf.smallest_difference({"a": 500, "b": 1}, 0.5)[".difference"].item() is None
    assert tf.smallest_difference({"a": 500}, 0.5)[".difference"].item() is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.smallest_difference({"a": 10, "b": 10}), "needs the rate of the groups"),
        (lambda: tf.smallest_difference({"a": 10, "b": 0}, 0.5), "1 or more, not 0"),
        (lambda: tf.smallest_difference({"a": 10, "b": 5}, 0.5, power=80), "`power` is a number between 0 and 1"),
        (lambda: tf.smallest_difference(lending(10)), "has no column '.metric'"),
        (lambda: tf.rows_needed(0.6, 0.5), "No rate is 0.6 from 0.5"),
        (lambda: tf.rows_needed(0.1, 0.5, groups=1), "2 or more"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(tf.TidyfairError, match=message):
        call()


def test_a_difference_may_be_too_small_for_any_data() -> None:
    with pytest.raises(tf.ArgumentError, match="More than 10,000,000 rows a group"):
        tf.rows_needed(1e-5, 0.5, times=200)
