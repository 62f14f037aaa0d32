"""Sample sizes and smallest detectable differences, against exact power, closed forms and simulation."""

from __future__ import annotations

import math
import time
from functools import cache
from statistics import NormalDist
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from scipy import special, stats

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import disparity_test, rows_needed, smallest_difference

SAME = 1e-9
TIMES = 2_000
"""Half of the usual draws, where the error of them is small beside that of the numbers they are compared with."""


def moved(share: float, difference: float) -> float:
    return share - difference if share >= 0.5 else share + difference


def power(rates: tuple[float, float], rows: tuple[int, int], *, mid_p: bool = False, level: float = 0.05) -> float:
    """How often a difference of two groups is found when all ways to shuffle them are counted, summed over all data."""
    hits = [stats.binom.pmf(np.arange(size + 1), size, rate) for size, rate in zip(rows, rates, strict=True)]
    result = 0.0
    # of the hypergeometric distribution
    logarithms = special.gammaln(np.arange(sum(rows) + 1) + 1)
    ways = [logarithms[size] - logarithms[: size + 1] - logarithms[size::-1] for size in rows]
    logarithm_of_all = logarithms[-1] - logarithms - logarithms[::-1]
    for total in range(sum(rows) + 1):
        one = np.arange(max(0, total - rows[1]), min(rows[0], total) + 1)
        likely = hits[0][one] * hits[1][total - one]
        if likely.sum() < 1e-9:
            continue
        distance = np.abs(one / rows[0] - (total - one) / rows[1])
        order = np.argsort(distance)
        shuffles = np.exp(ways[0][one] + ways[1][total - one] - logarithm_of_all[total])
        above = np.append(np.cumsum(shuffles[order][::-1])[::-1], 0.0)
        as_far, farther = (above[np.searchsorted(distance[order], distance + slack)] for slack in (-SAME, SAME))
        reached = (as_far + farther) / 2 if mid_p else as_far
        result += float(likely[reached <= level].sum())
    return result


def usual_rows(difference: float, share: float, wanted: float = 0.8) -> tuple[float, float]:
    """Rows of each of two groups by the formula of Fleiss (1981): for a test of large groups, and for an exact one."""
    rates = np.array([share, moved(share, difference)])
    middle, spread = rates.mean(), math.sqrt((rates * (1 - rates)).sum())
    z = [NormalDist().inv_cdf(item) for item in (0.975, wanted)]
    rows = (z[0] * math.sqrt(2 * middle * (1 - middle)) + z[1] * spread) ** 2 / difference**2
    return rows, rows / 4 * (1 + math.sqrt(1 + 4 / (rows * difference))) ** 2


DIFFERENCES = [
    (0.04, 0.01), (0.05, 0.02), (0.2, 0.1), (0.1, 0.3), (0.3, 0.5), (0.1, 0.95),
]  # fmt: skip


@cache
def needed_rows(difference: float, share: float, *, mid_p: bool) -> int:
    return rows_needed(difference, share, mid_p=mid_p, times=TIMES)


@pytest.mark.simulation
@pytest.mark.parametrize(("difference", "share"), DIFFERENCES)
@pytest.mark.parametrize("mid_p", [False, True])
def test_rows_needed_reach_the_power_asked_for(difference: float, share: float, mid_p: bool) -> None:  # noqa: FBT001 - a case
    needed = needed_rows(difference, share, mid_p=mid_p)
    result = power((share, moved(share, difference)), (needed, needed), mid_p=mid_p)
    assert result == pytest.approx(0.8, abs=0.025)


@pytest.mark.parametrize(("difference", "share"), DIFFERENCES)
def test_rows_needed_are_close_to_the_closed_form(difference: float, share: float) -> None:
    large, exact = usual_rows(difference, share)
    assert needed_rows(difference, share, mid_p=False) == pytest.approx(exact, rel=0.1)
    assert needed_rows(difference, share, mid_p=True) == pytest.approx(large, rel=0.1)


def test_rows_needed_grow_with_power_and_confidence() -> None:
    needed = rows_needed(0.1, 0.4, times=TIMES)
    assert rows_needed(0.05, 0.4, times=TIMES) > 3 * needed
    more_often = rows_needed(0.1, 0.4, power=0.9, times=TIMES)
    assert more_often == pytest.approx(usual_rows(0.1, 0.4, 0.9)[1], rel=0.05)
    surer = rows_needed(0.1, 0.4, conf_level=0.99, times=TIMES)
    assert power((0.4, 0.5), (surer, surer), level=0.01) == pytest.approx(0.8, abs=0.025)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("rows", "share"),
    [((500, 500), 0.5), ((2000, 300), 0.3), ((400, 1000), 0.8), ((3000, 60), 0.02), ((1000, 250), 0.01)],
)
@pytest.mark.parametrize("mid_p", [False, True])
def test_smallest_difference_reaches_the_power_asked_for(
    rows: tuple[int, int], share: float, mid_p: bool  # noqa: FBT001 - a case
) -> None:  # fmt: skip
    result = smallest_difference({"a": rows[0], "b": rows[1]}, share, mid_p=mid_p, times=TIMES)
    apart, smaller = result[".difference"].item(), int(rows[1] < rows[0])
    assert result[".smallest"].item() == "ab"[smaller]
    ordered = (rows[1 - smaller], rows[smaller])
    assert power((share, moved(share, apart)), ordered, mid_p=mid_p) == pytest.approx(0.8, abs=0.03)


def test_smallest_differences_at_several_thresholds_are_those_of_each() -> None:
    rows = pl.DataFrame({"g": ["a", "b"] * 400, "s": [0.2, 0.5, 0.5, 0.8] * 200})
    rates = tf.demographic_parity("g")
    several = smallest_difference(rates.by_group(rows, probs="s", threshold=[0.3, 0.6]), times=200)
    assert several[".threshold"].to_list() == [0.3, 0.6]
    for row in several.to_dicts():
        one = smallest_difference(rates.by_group(rows, probs="s", threshold=row[".threshold"]), times=200)
        assert row[".difference"] == one[".difference"].item()


def share_found(rates: list[float], rows: list[int], test: Any, runs: int = 250) -> float:
    """How often a test of the library finds a difference in data that are drawn anew."""
    hits = np.random.default_rng(9).binomial(rows, rates, (runs, len(rows)))
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * len(rows)),
            "group": np.tile(np.repeat(np.arange(len(rows)), 2), runs),
            "hired": np.tile([1, 0], runs * len(rows)),
            "people": np.stack([hits, np.array(rows) - hits], axis=-1).ravel(),
        }
    )
    result = test(
        data, estimate="hired", group_by="run", frequency_weights="people", labels=[0, 1], pos_label=1, times=199
    )
    return float((result.group_by("run").agg(pl.col(".p_value").min())[".p_value"] <= 0.05).mean())


@pytest.mark.simulation
def test_disparity_test_of_several_groups_has_the_power_promised() -> None:
    test = disparity_test(tf.demographic_parity("group"), adjust="none")
    sizes = {"a": 300, "b": 300, "c": 300, "d": 80}
    apart = smallest_difference(sizes, 0.05, times=TIMES)[".difference"].item()
    assert share_found([0.05] * 3 + [0.05 + apart], list(sizes.values()), test) == pytest.approx(0.8, abs=0.05)
    needed = rows_needed(0.15, 0.1, groups=4, times=TIMES)
    assert share_found([0.1] * 3 + [0.25], [needed] * 4, test) == pytest.approx(0.8, abs=0.05)


@pytest.mark.simulation
def test_fisher_test_of_two_groups_has_the_power_promised() -> None:
    needed = rows_needed(0.1, 0.1, times=TIMES)
    test = tf.inference.pairwise(tf.demographic_parity("group"), adjust="none")
    assert share_found([0.1, 0.2], [needed] * 2, test) == pytest.approx(0.8, abs=0.05)


def test_smallest_difference_at_rate_0() -> None:
    rows = (1600, 450)
    apart = smallest_difference(dict(zip("ab", rows, strict=True)), 0, times=TIMES)[".difference"].item()
    assert power((0.0, apart), rows) == pytest.approx(0.8, abs=0.03)


def test_smallest_difference_with_billions_of_rows() -> None:
    apart = smallest_difference({"a": 10**9, "b": 450_000}, 0.7)[".difference"].item()
    error = math.sqrt(0.7 * 0.3 / 450_000)
    assert apart == pytest.approx((1.96 + 0.84) * error, rel=0.03)


def test_smallest_difference_reads_a_result() -> None:
    loans = lending(3000)
    groups = tf.equalized_odds("race").by_group(loans, "repaid", "approved", pos_label="yes", group_by="sex")
    result = smallest_difference(groups, times=200)
    assert result.select("sex", ".metric").rows() == [
        ("female", "sens"), ("male", "sens"), ("female", "spec"), ("male", "spec"),
    ]  # fmt: skip
    part = groups.filter((pl.col("sex") == "male") & (pl.col(".metric") == "spec"))
    sizes = dict(part.select(".group", ".denominator").rows())
    share = float(np.average(part[".estimate"].to_numpy(), weights=part[".denominator"].to_numpy()))
    alone = smallest_difference(sizes, share, times=200)
    assert result[".difference"][3] == alone[".difference"].item()
    assert result[".rows"][3] == min(sizes.values())


def test_smallest_difference_is_null_when_unreachable() -> None:
    assert smallest_difference({"a": 500, "b": 1}, 0.5)[".difference"].item() is None
    assert smallest_difference({"a": 500}, 0.5)[".difference"].item() is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smallest_difference({"a": 10, "b": 10}), "needs the rate of the groups"),
        (lambda: smallest_difference({"a": 10, "b": 0}, 0.5), "1 or more, not 0"),
        (lambda: smallest_difference({"a": 10, "b": 5}, 0.5, power=80), "1, not 80; 80 percent is 0.8"),
        (lambda: smallest_difference({"a": 10, "b": 5}, 40), "`share` is a number from 0 to 1, not 40; 40 percent"),
        (lambda: rows_needed(10, 0.5), "`difference` is a number between 0 and 1, not 10; 10 percent is 0.1"),
        (lambda: smallest_difference(lending(10)), "column '.metric' is missing"),
        (lambda: rows_needed(0.6, 0.5), (
            "`difference`: no rate between 0 and 1 differs from 0.5 by 0.6; give a smaller difference"
        )),
        (lambda: rows_needed(0.1, 0.5, groups=1), "2 to 10000"),
        (lambda: rows_needed(0.1, 0.5, times=0), "`times` is a whole number, 20 to 10000000, not 0"),
        (lambda: rows_needed(0.1, 0.5, seed=-1), "`seed` is a whole number, 0 or more, not -1"),
        (lambda: rows_needed(0.1, 0.5, mid_p=cast("Any", "no")), "`mid_p` is True or False, not 'no'"),
    ],
)  # fmt: skip
def test_bad_sample_size_arguments_raise(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


def test_too_small_difference_raises() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="More than 10,000,000 rows per group"):
        rows_needed(1e-5, 0.5, times=200)


def share_of_verdicts(rates: list[float], rows: int, verdict: str, runs: int, **limit: Any) -> float:
    """How often a gate gives a verdict on data that are drawn anew; some are judged by a call of their own too."""
    hits = np.random.default_rng(77).binomial(rows, rates, (runs, len(rates)))
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * len(rates)),
            "group": np.tile(np.repeat(np.arange(len(rates)), 2), runs),
            "hired": [True, False] * (len(rates) * runs),
            "people": np.stack([hits, rows - hits], axis=-1).ravel(),
        }
    )
    metric = tf.demographic_parity("group") if "below" in limit else tf.demographic_parity_ratio("group")
    counted: dict[str, Any] = {"estimate": "hired", "frequency_weights": "people"}
    results = metric(data, **counted, group_by="run", interval="auto", conf_level=0.9, explain=True)
    given = tf.check(results, **limit)[".verdict"]
    gate = tf.check(metric, **limit)
    for run in range(10):
        assert gate(data.filter(run=run), **counted)[".verdict"].item() == given[run]
    return float((given == verdict).mean() or 0)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("difference", "share", "groups", "limit", "verdict"),
    [
        (0, 0.5, 2, {"below": 0.1}, "pass"),
        (0, 0.6, 2, {"above": 0.8}, "pass"),
        (0, 0.4, 3, {"below": 0.2}, "pass"),
        (0.25, 0.4, 2, {"below": 0.1}, "fail"),
    ],
)
def test_rows_needed_of_a_gate_give_its_verdict_four_times_of_five(
    difference: float, share: float, groups: int, limit: dict[str, Any], verdict: str
) -> None:
    needed = rows_needed(difference, share, groups=groups, **limit, times=2000)
    rates = [share] * (groups - 1) + [moved(share, difference)]
    # the standard error of so many samples is 0.028
    assert share_of_verdicts(rates, needed, verdict, 200, **limit) == pytest.approx(0.8, abs=0.07)


def test_rows_needed_to_pass_are_close_to_the_formula_for_equivalence_of_two_groups() -> None:
    z = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.9)
    # two one-sided tests of a difference of 0 (Schuirmann, 1987)
    assert rows_needed(0, 0.5, below=0.1) == pytest.approx(z**2 * 0.5 / 0.1**2, rel=0.05)
    assert rows_needed(0, 0.5, below=0.1, power=0.5) < rows_needed(0, 0.5, below=0.1)
    assert rows_needed(0.05, 0.5, below=0.1) > 2 * rows_needed(0, 0.5, below=0.1)


def test_rows_needed_of_a_gate_refuses_a_difference_at_the_limit_and_odd_limits() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"equals the limit `below=0\.1`"):
        rows_needed(0.1, 0.5, below=0.1)
    with pytest.raises(tf.errors.ArgumentError, match="needs one limit"):
        rows_needed(0.1, 0.5, below=0.2, above=0.8)
    with pytest.raises(tf.errors.ArgumentError, match="`below`"):
        rows_needed(0, 0.5, below=10)
    with pytest.raises(tf.errors.ArgumentError, match="`mid_p`"):
        rows_needed(0, 0.5, below=0.1, mid_p=True)
    with pytest.raises(tf.errors.ArgumentError, match="`conf_level`"):
        rows_needed(0, 0.5, below=0.1, conf_level=0.4)


def test_rows_for_many_groups_take_seconds() -> None:
    start = time.process_time()
    assert 1200 < rows_needed(0, 0.5, below=0.1, groups=50) < 1500
    assert time.process_time() - start < 12
