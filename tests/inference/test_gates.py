"""Verdicts of gates equal the one-sided limits of the same call; error rates by simulation."""

from __future__ import annotations

import math
import re
import warnings
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import answer_kind, as_polars
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

    Counts = dict[str, tuple[int, int]]

PASS, FAIL, UNSURE = "pass", "fail", "not enough evidence"


def people(**counts: tuple[int, int]) -> pl.DataFrame:
    """Decisions: how many of a group have one, of how many."""
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (size - hits), "g": group}) for group, (hits, size) in counts.items()
    )


FAIR = people(a=(500, 1000), b=(505, 1000))
UNFAIR = people(a=(500, 1000), b=(300, 1000))
UNKNOWN = people(a=(10, 20), b=(9, 20))


def verdict(result: Any) -> str:
    return as_polars(result)[".verdict"].item()


def by_hand(row: dict[str, Any], side: str, limit: float) -> str:
    """The verdict on a row that stands alone."""
    lower, upper = row[".lower"], row[".upper"]
    if side == "below" and row[".estimate"] == math.inf:
        return FAIL
    if lower is None or upper is None:
        return UNSURE
    if (lower > limit) if side == "below" else (upper < limit):
        return FAIL
    right = upper < limit if side == "below" else lower > limit
    return PASS if right and not row[".groups_left_out"] else UNSURE


def random_people(rows: int = 600) -> pl.DataFrame:
    random = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "t": random.integers(0, 2, rows), "e": random.integers(0, 2, rows), "score": random.uniform(size=rows),
            "g": random.choice(list("abc"), rows, p=[0.5, 0.3, 0.2]), "h": random.choice(["x", "y"], rows),
            "fold": random.integers(1, 4, rows),
        }
    )  # fmt: skip
    return frame.with_columns(e=pl.when(pl.col("h") == "x").then(pl.col("t")).otherwise("e"))


# Verdicts


def test_check_computes_from_added_tallies() -> None:
    parities = tf.metric_set(tf.equalized_odds("g"), tf.demographic_parity("h"))
    frame, gate = random_people(), tf.check(parities, below=0.2)
    one, other = (gate.metrics.tally(part, "t", "e") for part in (frame[:200], frame[200:]))
    assert gate.compute(one + other).equals(gate(frame, "t", "e"))
    wanted = tf.four_fifths("g", pos_label=1)
    with pytest.raises(tf.errors.ArgumentError, match="`pos_label` is given twice"):
        wanted.compute(wanted.metrics.tally(frame, estimate="e"), pos_label=0)


def test_check_has_three_verdicts() -> None:
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    verdicts = [verdict(gate(data, estimate="e")) for data in (FAIR, UNFAIR, UNKNOWN)]
    assert verdicts == [PASS, FAIL, UNSURE]


@pytest.mark.parametrize("conf_level", [0.8, 0.99])
@pytest.mark.parametrize("limit", [0.02, 0.15, 0.4, 0.6])
def test_verdict_equals_one_sided_limits(limit: float, conf_level: float) -> None:
    data = random_people()
    level = 2 * conf_level - 1
    for metric in (tf.demographic_parity("g"), tf.equalized_odds("h"), tf.accuracy.difference("h")):
        expected = metric(data, "t", "e", interval="auto", conf_level=level, explain=True)
        result = tf.check(metric, below=limit, conf_level=conf_level)(data, "t", "e")
        assert sorted(result.columns) == sorted(
            [*expected.columns, ".limit", ".verdict", ".unknown", ".unknown_share", ".with_unknown"]
        )
        shared = [name for name in expected.columns if name not in (".lower", ".upper", ".conf_level")]
        assert result[".conf_level"].item() == conf_level
        assert result.select(shared).equals(expected.select(shared))
        for name in (".lower", ".upper"):
            assert result[name].item() == pytest.approx(expected[name].item(), abs=1e-9)
        assert result[".limit"].item() == limit
        assert verdict(result) == by_hand(expected.row(0, named=True), "below", limit)


@pytest.mark.parametrize("limit", [0.3, 0.6, 0.8, 0.95])
def test_ratio_verdict_equals_one_sided_limits(limit: float) -> None:
    data = random_people()
    for metric in (tf.demographic_parity_ratio("g"), tf.equalized_odds_ratio("h"), tf.accuracy.ratio("h")):
        expected = metric(data, "t", "e", interval="auto", conf_level=0.9, explain=True).row(0, named=True)
        assert verdict(tf.check(metric, above=limit)(data, "t", "e")) == by_hand(expected, "above", limit)


def test_ordinary_metrics_have_verdicts() -> None:
    data = random_people()
    expected = tf.accuracy(data, "t", "e", interval="auto", conf_level=0.9).row(0, named=True)
    for limit in (expected[".lower"] - 0.01, expected[".estimate"], expected[".upper"] + 0.01):
        row = {**expected, ".groups_left_out": []}
        assert verdict(tf.check(tf.accuracy, above=limit)(data, "t", "e")) == by_hand(row, "above", limit)


def test_signed_disparity_fails_on_either_side() -> None:
    for side in ("a", "b"):
        difference = tf.demographic_parity(tf.privileged(g=side))
        assert verdict(tf.check(difference, below=0.1)(UNFAIR, estimate="e")) == FAIL
        assert verdict(tf.check(difference, below=0.1)(FAIR, estimate="e")) == PASS
        ratio = tf.disparate_impact(tf.privileged(g=side))
        assert verdict(tf.check(ratio, above=0.8)(UNFAIR, estimate="e")) == FAIL
        assert verdict(tf.four_fifths(tf.privileged(g=side))(UNFAIR, estimate="e")) == FAIL
        to = tf.difference(to=side, signed=True)
        assert verdict(tf.check(tf.demographic_parity("g", aggregate=to), below=0.1)(UNFAIR, estimate="e")) == FAIL


@pytest.mark.parametrize("side", ["a", "b"])
def test_sign_of_a_stored_result_does_not_make_it_pass(side: str) -> None:
    metric = tf.demographic_parity(tf.privileged(g=side))
    result = metric(UNFAIR, estimate="e", interval="auto", conf_level=0.9, explain=True).pipe(tf.check, below=0.1)
    assert verdict(result) != PASS
    ratio = tf.disparate_impact(tf.privileged(g=side))
    result = ratio(UNFAIR, estimate="e", interval="auto", conf_level=0.9, explain=True).pipe(tf.check, above=0.8)
    assert verdict(result) != PASS


def test_metric_beyond_1_is_checked_above_its_limit() -> None:
    data = pl.DataFrame({"t": [1] * 300 + [0] * 300, "e": [1] * 240 + [0] * 60 + [1] * 45 + [0] * 255})
    actual = tf.check(tf.positive_likelihood_ratio, above=2)(data, "t", "e")
    assert actual[".lower"].item() > 4
    assert verdict(actual) == PASS
    assert verdict(tf.check(tf.positive_likelihood_ratio, above=20)(data, "t", "e")) == FAIL
    assert verdict(tf.check(tf.positive_likelihood_ratio, above=5)(data, "t", "e")) == UNSURE
    result = tf.positive_likelihood_ratio(data, "t", "e", interval="auto", conf_level=0.9, explain=True)
    assert [verdict(tf.check(result, above=limit)) for limit in (0.5, 2, 20)] == [PASS, PASS, FAIL]
    # of groups that all have the same rate 3 is the largest that there can be
    least = tf.new_aggregate(3 * pl.col(".estimate").min() / pl.col(".estimate").max(), equal=3, direction="maximize")
    own = tf.demographic_parity("g", aggregate=least)
    assert [verdict(tf.check(own, above=2.5)(item, estimate="e", times=200)) for item in (FAIR, UNFAIR)] == [PASS, FAIL]
    compared = own(FAIR, estimate="e", interval="auto", conf_level=0.9, times=200, explain=True)
    assert verdict(tf.check(compared, above=2.5)) == PASS


def test_minimized_metric_may_be_far_below_zero() -> None:
    counts = pl.DataFrame({"t": [9.0, 11.0] * 200, "e": [10.0] * 400})
    negative = tf.new_numeric_metric(lambda truth_mean: -truth_mean, "negative", "minimize", (-math.inf, math.inf))
    assert verdict(tf.check(negative, below=0.5)(counts, "t", "e", times=200)) == PASS
    assert verdict(tf.check(tf.msd, below=0.5)(counts.with_columns(e=13.0), "t", "e", times=200)) == FAIL


def test_metric_with_direction_one_fails_on_either_side() -> None:
    def last_over_first(groups: pl.DataFrame) -> float:
        return groups[".estimate"][-1] / groups[".estimate"][0]

    signed = tf.demographic_parity("g", aggregate=tf.new_aggregate(last_over_first, direction="one"))
    swapped = pl.col("g").replace({"a": "b", "b": "a"})
    for data, expected in ((UNFAIR, FAIL), (UNFAIR.with_columns(swapped), FAIL), (FAIR, PASS)):
        assert verdict(tf.check(signed, above=0.8)(data, estimate="e", times=200)) == expected


def test_limit_on_the_wrong_side_raises() -> None:
    """A ratio of 0.6 is below 0.8, and no reason to pass."""
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (tf.demographic_parity_ratio("g"), {"below": 0.8}), (tf.demographic_parity("g"), {"above": 0.1}),
    ]  # fmt: skip
    for metric, limit in wrong:
        with pytest.raises(tf.errors.ArgumentError):
            tf.check(metric, **limit)


def test_left_out_group_prevents_a_pass() -> None:
    data = pl.concat([FAIR, people(c=(2, 4))])
    gate = tf.check(tf.demographic_parity("g", min_n=10), below=0.1)
    result = gate(data, estimate="e")
    assert result[".groups_left_out"].to_list() == [["c"]]
    assert result[".upper"].item() < 0.1
    assert verdict(result) == UNSURE
    # but who is left out makes nobody else equal
    assert verdict(gate(pl.concat([UNFAIR, people(c=(2, 4))]), estimate="e")) == FAIL
    with_nobody = pl.concat([FAIR.with_columns(t=1), people(c=(2, 4)).with_columns(t=0)])
    undefined = tf.check(tf.equal_opportunity("g"), below=0.1)(with_nobody, "t", "e", on_undefined="ignore")
    assert (verdict(undefined), undefined[".groups_left_out"].to_list()) == (UNSURE, [["c"]])


def test_numeric_metrics_have_verdicts() -> None:
    random = np.random.default_rng(3)
    data = pl.DataFrame({"y": random.normal(size=2000), "p": 0.0, "g": ["a", "b"] * 1000})
    gate = tf.check(tf.mae.difference("g"), below=0.2)
    assert gate(data, "y", "p")[".verdict"].item() == "pass"
    far = data.with_columns(pl.when(pl.col("g") == "a").then(pl.col("y") * 3).otherwise("y").alias("y"))
    assert gate(far, "y", "p")[".verdict"].item() == "fail"
    halves = [tf.mae.tally(part, "y", "p", parts=seed) for seed, part in enumerate((data[:1000], data[1000:]))]
    result = tf.mae.compute(halves[0] + halves[1], interval="auto")
    assert result[".lower"].item() < result[".estimate"].item() < result[".upper"].item()


def test_rows_on_neither_side_do_not_prevent_a_pass() -> None:
    sides = tf.privileged({"g": "a"}, unprivileged={"g": "b"})
    data = pl.concat([FAIR, people(c=(2, 4))])
    assert verdict(tf.check(tf.demographic_parity(sides), below=0.1)(data, estimate="e")) == PASS


def test_undefined_metric_gives_not_enough_evidence() -> None:
    data = FAIR.with_columns(t=0)
    for metric in (tf.equal_opportunity("g"), tf.metric_set(tf.equal_opportunity("g"))):
        gate = tf.check(metric, below=0.1)
        assert verdict(gate(data, "t", "e", pos_label=1, labels=[0, 1], on_undefined="ignore")) == UNSURE
    empty = tf.check(tf.demographic_parity("g"), below=0.1)
    assert verdict(empty(FAIR.head(0), estimate="e")) == UNSURE
    assert len(empty(FAIR.with_columns(f=1).head(0), estimate="e", group_by="f")) == 0
    # one group differs from nobody, but who knows how many there are
    assert verdict(empty(FAIR.filter(pl.col("g") == "a"), estimate="e")) != FAIL


def test_weights_that_sum_to_1_do_not_make_differential_fairness_pass() -> None:
    loans = lending().with_columns(share=pl.lit(1 / 5_000))
    gate = tf.check(tf.differential_fairness("race"), below=0.1)
    plain = gate(loans, estimate="approved", pos_label="yes")
    weighted = gate(loans, estimate="approved", pos_label="yes", case_weights="share")
    assert verdict(plain) == verdict(weighted) == FAIL
    assert weighted[".estimate"].item() == pytest.approx(plain[".estimate"].item())


def test_infinite_disparity_of_few_rows_is_not_enough_evidence() -> None:
    metric = tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio())
    result = tf.check(metric, below=1)(people(a=(0, 4), b=(2, 4)), estimate="e")
    assert result[".estimate"].item() == math.inf
    assert verdict(result) == UNSURE


def test_infinite_disparity_of_many_rows_fails() -> None:
    data = people(a=(0, 400), b=(200, 400))
    metric = tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio())
    result = tf.check(metric, below=1)(data, estimate="e")
    assert result[".estimate"].item() == math.inf
    assert verdict(result) == FAIL
    piped = metric(data, estimate="e", interval="auto", conf_level=0.9, explain=True).pipe(tf.check, below=1)
    assert verdict(piped) == FAIL


def test_value_that_is_infinite_for_certain_fails() -> None:
    # one without benefit makes the mean logarithmic deviation infinite, however many others there are
    data = pl.DataFrame({"t": [1] * 40 + [0] * 40, "e": [1] * 30 + [0] * 50})
    gate = tf.check(tf.inequality.mean_log_deviation, below=1)
    result = gate(data, "t", "e")
    assert result.select(".estimate", ".lower", ".verdict").row(0) == (math.inf, math.inf, FAIL)


def test_infinite_value_of_one_cluster_is_not_enough_evidence() -> None:
    data = pl.DataFrame({"t": [1, 0, 1, 0], "e": [1, 0, 1, 0], "c": [0] * 4})
    gate = tf.check(tf.negative_likelihood_ratio, below=1)
    turned = data.with_columns(e=1 - pl.col("e"))
    result = gate(turned, "t", "e", cluster="c")
    assert result.select(".estimate", ".lower", ".verdict").row(0) == (math.inf, None, UNSURE)


def test_two_infinite_groups_say_so() -> None:
    data = pl.DataFrame({"t": [1, 1, 0, 0] * 2, "e": [1, 0, 1, 0] * 2, "g": ["a"] * 4 + ["b"] * 4})
    result = tf.inequality.mean_log_deviation.difference("g")(data, "t", "e", explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "infinite_less_infinite")
    groups = tf.inequality.mean_log_deviation.difference("g").by_group(data.filter(e=1), "t", "e", interval="auto")
    # none without benefit was seen, so that the true value may be anything
    assert groups.select(".lower", ".upper").unique().rows() == [(0.0, math.inf)]


# Several metrics


def holm(metrics: tf.types.MetricSet, data: pl.DataFrame, limit: float, conf_level: float, **options: Any) -> list[str]:
    """Verdicts with failures after Holm, from the limits at each level that it asks for."""

    def at(error: float) -> list[dict[str, Any]]:
        result = metrics(data, "t", "e", interval="auto", conf_level=1 - 2 * error, explain=True, **options)
        return result.to_dicts()

    alone = at(1 - conf_level)
    verdicts = [by_hand(row, "below", limit) for row in alone]
    verdicts = [UNSURE if item == FAIL else item for item in verdicts]
    # one after the other, the clearest first: each at the level of those that are left
    left = set(range(len(alone)))
    while left:
        now = at((1 - conf_level) / len(left))
        failing = [index for index in left if by_hand(now[index], "below", limit) == FAIL]
        if not failing:
            break
        clearest = max(failing, key=lambda index: now[index][".lower"])
        verdicts[clearest] = FAIL
        left.remove(clearest)
    return verdicts


def test_verdicts_of_several_metrics_use_holm() -> None:
    data = random_people()
    metrics = tf.metric_set(
        tf.demographic_parity("g"), tf.demographic_parity("h"), tf.accuracy.difference("h"), tf.equal_opportunity("h"),
        tf.predictive_parity("h"), tf.accuracy.difference("g"),
    )  # fmt: skip
    seen = set[str]()
    for limit in (0.01, 0.15, 0.3, 0.36, 0.4, 0.42, 0.45, 0.6):
        expected = holm(metrics, data, limit, 0.95)
        assert tf.check(metrics, below=limit)(data, "t", "e")[".verdict"].to_list() == expected, limit
        seen |= set(expected)
    assert seen == {PASS, FAIL, UNSURE}


def test_holm_keeps_repeated_metrics_from_failing() -> None:
    # limits of which one alone is crossed
    data = people(a=(550, 1000), b=(500, 1000)).with_columns(t=1)
    metric = tf.demographic_parity("g")
    lower = metric(data, "t", "e", interval="auto", conf_level=0.9)[".lower"].item()
    limit = lower - 0.002
    assert verdict(tf.check(metric, below=limit)(data, "t", "e")) == FAIL
    same = [tf.demographic_parity("g", name=f"p{index}") for index in range(3)]
    assert tf.check(tf.metric_set(*same), below=limit)(data, "t", "e")[".verdict"].to_list() == [UNSURE] * 3
    # after one that fails clearly the others are fewer
    far = tf.demographic_parity("far")
    with_far = data.with_columns(far=pl.col("e"))
    two = tf.check(tf.metric_set(metric, far), below=limit)(with_far, "t", "e")
    assert two[".verdict"].to_list() == [FAIL, FAIL]


def test_outer_groups_have_verdicts() -> None:
    data = pl.concat([FAIR.with_columns(f=1), UNFAIR.with_columns(f=2), UNKNOWN.with_columns(f=3)])
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    result = gate(data, estimate="e", group_by="f")
    assert result.select("f", ".verdict").rows() == [(1, PASS), (2, FAIL), (3, UNSURE)]
    grouped: Any = data.group_by("f")
    assert gate(grouped, estimate="e").equals(result)
    assert gate(data, estimate="e", group_by=iter(["f"])).equals(result)


def test_holm_covers_outer_groups() -> None:
    data = random_people()
    metrics = tf.metric_set(tf.demographic_parity("h"), tf.accuracy.difference("h"))
    for limit in (0.1, 0.3, 0.35, 0.4):
        expected = holm(metrics, data, limit, 0.9, group_by="fold")
        result = tf.check(metrics, below=limit, conf_level=0.9)(data, "t", "e", group_by="fold")
        assert result[".verdict"].to_list() == expected


def test_thresholds_have_verdicts() -> None:
    data = random_people()
    metric = tf.demographic_parity("g")
    expected = metric(data, probs="score", threshold=[0.3, 0.6], interval="auto", conf_level=0.9, explain=True)
    result = tf.check(metric, below=0.2)(data, probs="score", threshold=[0.3, 0.6])
    assert result[".threshold"].to_list() == [0.3, 0.6]
    assert [row == FAIL for row in result[".verdict"]] == [False, False]
    assert result[".verdict"].to_list() == [by_hand(row, "below", 0.2) for row in expected.to_dicts()]


def test_metric_without_closed_form_uses_replicates() -> None:
    data = random_people()
    metric = tf.new_groupwise_metric(tf.mcc, "mcc_difference", tf.difference())("h")
    expected = metric(data, "t", "e", interval="auto", conf_level=0.9, times=300, seed=2, explain=True)
    for limit in (0.3, 0.9, 1.5):
        result = tf.check(metric, below=limit)(data, "t", "e", times=300, seed=2)
        assert result[".upper"].item() == pytest.approx(expected[".upper"].item())
        assert verdict(result) == by_hand(expected.row(0, named=True), "below", limit)


def test_check_warns_once_as_its_metrics_do() -> None:
    data = random_people().with_columns(t=pl.when(pl.col("g") == "c").then(0).otherwise("t"))
    metrics = tf.metric_set(tf.equal_opportunity("g"), tf.accuracy.difference("h"), tf.demographic_parity("h"))
    for call in (metrics, tf.check(metrics, below=0.3)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(data, "t", "e")
        assert [item.category for item in caught] == [tf.errors.UndefinedWarning]


# Results


def test_check_of_a_result_uses_its_limits() -> None:
    data = random_people()
    metrics = tf.metric_set(tf.demographic_parity("g"), tf.accuracy.difference("h"), tf.equalized_odds("h"))
    result = metrics(data, "t", "e", interval="auto", conf_level=0.9, explain=True, group_by="fold")
    seen = set[str]()
    for limit in (0.05, 0.3, 0.6):
        actual = result.pipe(tf.check, below=limit)
        assert actual[".verdict"].to_list() == [by_hand(row, "below", limit) for row in result.to_dicts()]
        assert ".conf_level" not in actual.columns
        assert actual.drop(".limit", ".verdict").equals(result.drop(".conf_level"))
        seen |= set(actual[".verdict"])
    assert seen == {PASS, FAIL, UNSURE}


def test_check_of_a_ratio_result() -> None:
    ratio = tf.demographic_parity_ratio("g")
    for data, expected in ((FAIR, PASS), (UNFAIR, FAIL), (UNKNOWN, UNSURE)):
        result = ratio(data, estimate="e", interval="auto", conf_level=0.9, explain=True)
        assert verdict(result.pipe(tf.check, above=0.8)) == expected


def test_check_of_a_result_with_a_left_out_group_does_not_pass() -> None:
    data = pl.concat([FAIR, people(c=(2, 4))])
    gap = tf.demographic_parity("g", min_n=10)
    result = gap(data, estimate="e", interval="auto", conf_level=0.9, explain=True)
    assert verdict(result.pipe(tf.check, below=0.1)) == UNSURE
    unexplained = gap(data, estimate="e", interval="auto", conf_level=0.9)
    with pytest.raises(
        tf.errors.ColumnError, match=r"no '.metrics_left_out', '.groups_left_out', '.groups_outside'; .*explain=True"
    ):
        tf.check(unexplained, below=0.1)


SOME = random_people().with_columns(t=pl.when(pl.col("g") == "c").then(0).otherwise("t"))
SOME_METRICS = tf.metric_set(tf.equal_opportunity("g"), tf.demographic_parity("h"), tf.demographic_parity("g"))
SOME_CALL: dict[str, Any] = {"truth": "t", "estimate": "e", "on_undefined": "null", "group_by": "fold"}
SURE: dict[str, Any] = {"interval": "auto", "conf_level": 0.9, "explain": True}


@cache
def verdicts_of_polars(limit: float) -> list[str]:
    return tf.check(SOME_METRICS, below=limit)(SOME, **SOME_CALL)[".verdict"].to_list()


@cache
def rows_of_polars() -> list[dict[str, Any]]:
    return SOME_METRICS(SOME, **SOME_CALL, **SURE).to_dicts()


def test_check_returns_the_kind_of_frame_given(engine: Callable[[pl.DataFrame], Any]) -> None:
    given = engine(SOME)
    kind = answer_kind(given)
    result = SOME_METRICS(given, **SOME_CALL, **SURE)
    for limit in (0.05, 0.2, 0.6):
        actual = tf.check(SOME_METRICS, below=limit)(given, **SOME_CALL)
        assert type(actual) is kind
        assert as_polars(actual)[".verdict"].to_list() == verdicts_of_polars(limit)
        piped = tf.check(result, below=limit)
        assert type(piped) is kind
        assert as_polars(piped)[".verdict"].to_list() == [by_hand(row, "below", limit) for row in rows_of_polars()]


def test_check_of_a_result_rejects_confidence() -> None:
    result = tf.demographic_parity("g")(FAIR, estimate="e", interval="auto", conf_level=0.2, explain=True)
    with pytest.raises(tf.errors.ArgumentError, match="does not accept `conf_level` for a result"):
        tf.check(result, below=0.15, conf_level=0.99)


def test_check_of_a_result_from_csv_raises() -> None:
    result = tf.demographic_parity("g")(FAIR, estimate="e", interval="auto", explain=True)
    as_text = result.with_columns(pl.lit("").alias(".groups_left_out"))
    with pytest.raises(tf.errors.ColumnError, match=r"'\.groups_left_out' of the result holds String instead of lists"):
        tf.check(as_text, below=0.1)


def test_check_of_a_result_without_limits_raises() -> None:
    result = tf.demographic_parity("g")(FAIR, estimate="e")
    with pytest.raises(
        tf.errors.ColumnError, match=r"no '.lower', '.upper', .*; evaluate with `interval=\"auto\", explain=True`"
    ):
        tf.check(result, below=0.1)


# Error rates


def worlds(shares: dict[str, float], rows: int, count: int, seed: int) -> pl.DataFrame:
    """Many data sets in which the shares are true."""
    random = np.random.default_rng(seed)
    return pl.concat(
        pl.DataFrame(
            {
                "world": np.repeat(np.arange(count), rows),
                "e": (random.uniform(size=count * rows) < share).astype(int),
                "g": group,
            }
        )
        for group, share in shares.items()
    )


AT_THE_LIMIT = {
    "two groups": {"a": 0.5, "b": 0.4},
    "rare": {"a": 0.15, "b": 0.05},
    "three groups": {"a": 0.5, "b": 0.4, "c": 0.45},
    "three groups at two ends": {"a": 0.5, "b": 0.4, "c": 0.4},
}


@pytest.mark.simulation
@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_error_rate_at_the_limit_of_a_difference(name: str) -> None:
    count = 300
    data = worlds(AT_THE_LIMIT[name], 150, count, seed=len(name))
    result = tf.demographic_parity("g")(
        data, estimate="e", group_by="world", interval="auto", conf_level=0.9, times=1000, explain=True
    )
    verdicts = result.pipe(tf.check, below=0.1 - 1e-9)[".verdict"]
    often = 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)
    assert (verdicts == PASS).mean() <= often
    assert (verdicts == FAIL).mean() <= often
    if name == "two groups":
        # and each happens
        assert (verdicts == PASS).any()
        assert (verdicts == FAIL).any()


@pytest.mark.simulation
def test_error_rate_at_the_limit_of_a_ratio() -> None:
    count = 300
    data = worlds({"a": 0.5, "b": 0.4}, 300, count, seed=2)
    ratio = tf.demographic_parity_ratio("g")
    result = ratio(data, estimate="e", group_by="world", interval="auto", conf_level=0.9, explain=True)
    verdicts = result.pipe(tf.check, above=0.8)[".verdict"]
    often = 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)
    for word in (PASS, FAIL):
        assert 0 < float((verdicts == word).mean()) <= often


@pytest.mark.simulation
def test_familywise_error_rate_at_the_limit() -> None:
    random = np.random.default_rng(9)
    count, rows, failing = 40, 300, 0
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    for _ in range(count):
        hits = random.binomial(rows, [0.5, 0.4, 0.5, 0.4, 0.5, 0.4])
        data = pl.concat(
            people(a=(int(hits[at]), rows), b=(int(hits[at + 1]), rows)).with_columns(f=at) for at in (0, 2, 4)
        )
        result = gate(data, estimate="e", group_by="f")
        failing += FAIL in result[".verdict"].to_list()
    assert failing / count <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / count)


# Four fifths


def test_four_fifths_equals_check_of_the_ratio_above_0_8() -> None:
    for data in (FAIR, UNFAIR, UNKNOWN):
        result = tf.four_fifths("g")(data, estimate="e")
        expected = tf.check(tf.demographic_parity_ratio("g", name="four_fifths"), above=0.8)(data, estimate="e")
        assert result.equals(expected)
        assert result.select(".metric", ".limit").row(0) == ("four_fifths", 0.8)
    confident = tf.four_fifths("g", conf_level=0.999)(UNFAIR, estimate="e")
    assert confident[".upper"].item() > tf.four_fifths("g")(UNFAIR, estimate="e")[".upper"].item()


def test_four_fifths_takes_the_favourable_label() -> None:
    words = UNFAIR.with_columns(pl.col("e").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String))
    gate = tf.four_fifths("g", pos_label="yes")
    assert gate(words, estimate="e").equals(tf.four_fifths("g")(UNFAIR, estimate="e"))
    with pytest.raises(tf.errors.LabelError, match="maybe"):
        tf.four_fifths("g", pos_label="maybe")(words, estimate="e")
    # a 0 that is favourable is not one that was not named
    zero = tf.four_fifths("g", pos_label=0)(UNFAIR, estimate="e")
    assert zero[".estimate"].item() == pytest.approx(0.5 / 0.7)
    with pytest.raises(tf.errors.ArgumentError, match="`pos_label` is given twice: 'yes' for the gate, and 'no' here"):
        gate(words, estimate="e", pos_label="no")
    with pytest.raises(tf.errors.ArgumentError, match="needs the sensitive feature"):
        tf.four_fifths()


def test_four_fifths_without_selections_is_not_enough_evidence() -> None:
    data = people(a=(0, 50), b=(0, 50))
    gate = tf.four_fifths("g", pos_label=1)
    assert verdict(gate(data, estimate="e", labels=[0, 1], on_undefined="ignore")) == UNSURE


# Assertions


def test_assert_fair_raises_with_a_table() -> None:
    metrics = tf.metric_set(tf.demographic_parity("g"), tf.accuracy.difference("g"))
    data = UNFAIR.with_columns(t="e")
    with pytest.raises(tf.inference.UnfairError) as caught:
        tf.assert_fair(metrics, data, "t", "e", below=0.1)
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, tf.errors.TidyfairError)
    text = str(caught.value)
    assert text.startswith("1 of 2 limits is not met:\n")
    for shown in ("demographic_parity", ".lower", ".upper", "0.2", "0.1", "fail", "┆ b ", "┆ a "):
        assert shown in text
    assert "accuracy_difference" not in text
    assert max(map(len, text.splitlines())) <= 160


def test_assert_fair_returns_none_when_fair() -> None:
    assert_fair: Callable[..., object] = tf.assert_fair
    assert assert_fair(tf.demographic_parity("g"), FAIR, estimate="e", below=0.1) is None
    assert assert_fair(tf.demographic_parity_ratio("g"), FAIR, estimate="e", above=0.8) is None
    assert assert_fair(tf.demographic_parity("g"), FAIR.to_pandas(), estimate="e", below=0.1) is None


def test_strict_assert_fair_needs_evidence() -> None:
    parity = tf.demographic_parity("g")
    expected = "^There is not enough evidence that the limit is met:\n"
    with pytest.raises(tf.inference.UnfairError, match=expected):
        tf.assert_fair(parity, UNKNOWN, estimate="e", below=0.1, strict=True)
    tf.assert_fair(parity, FAIR, estimate="e", below=0.1, strict=True)
    with pytest.raises(tf.inference.UnfairError, match=UNSURE):
        tf.assert_fair(parity, UNFAIR, estimate="e", below=0.2, strict=True)
    with pytest.raises(tf.inference.UnfairError):
        tf.assert_fair(parity, UNFAIR, estimate="e", below=0.2, conf_level=0.501, strict=True)


def test_assert_fair_warns_where_there_is_no_evidence_either_way() -> None:
    both = tf.metric_set(tf.demographic_parity("g"), tf.demographic_parity("h"))
    # the groups of `g` are alike, and one group of `h` has two rows
    data = FAIR.with_columns(h=pl.when(pl.int_range(pl.len()) < 2).then(pl.lit("few")).otherwise(pl.lit("many")))
    with pytest.warns(tf.errors.EvidenceWarning) as caught:
        tf.assert_fair(both, data, estimate="e", below=0.1)
    text = str(caught[0].message)
    assert text.startswith("assert_fair(): there is not enough evidence that 1 of 2 limits is met:\n")
    assert "┆ h " in text
    assert "┆ g " not in text
    assert text.endswith("`strict=True` makes this a failure.")
    # the line of the user is blamed
    assert caught[0].filename == __file__
    for data, limit in ((UNKNOWN, 0.1), (UNFAIR, 0.2)):
        with pytest.warns(tf.errors.EvidenceWarning, match="there is not enough evidence that the limit is met:"):
            tf.assert_fair(tf.demographic_parity("g"), data, estimate="e", below=limit)


def test_assert_fair_table_describes_its_rows() -> None:
    data = pl.concat([UNFAIR.with_columns(month=pl.lit("May")), FAIR.with_columns(month=pl.lit("June"))])
    with pytest.raises(tf.inference.UnfairError, match="May") as caught:
        tf.assert_fair(tf.demographic_parity("g"), data.to_pandas(), estimate="e", below=0.1, group_by="month")
    assert "June" not in str(caught.value)
    scored = UNFAIR.with_columns(p=pl.when(pl.col("e") == 1).then(0.75).otherwise(0.3))
    with pytest.raises(tf.inference.UnfairError, match=r"0\.62"):
        tf.assert_fair(tf.demographic_parity("g"), scored, probs="p", threshold=[0.125, 0.625], below=0.1)
    name = "the_share_of_those_whom_the_model_of_last_year_selects"
    with pytest.raises(tf.inference.UnfairError, match=name):
        tf.assert_fair(tf.demographic_parity("g", name=name), UNFAIR, estimate="e", below=0.1)


def failure(metrics: Any, data: Any, *columns: Any, **options: Any) -> str:
    with pytest.raises(tf.inference.UnfairError) as caught:
        tf.assert_fair(metrics, data, *columns, **options)
    return str(caught.value)


def test_failure_at_several_times_shows_the_groups_of_each_time() -> None:
    rows = pl.DataFrame({"time": [2.0, 6.0, 9.0, 9.0] * 100, "died": True, "g": ["a", "b"] * 200})
    rows = rows.with_columns(s4=pl.lit(0.9), s8=pl.when(pl.col("g") == "a").then(0.95).otherwise(0.9))
    gap: Any = tf.survival.brier.difference("g")
    text = failure(gap, rows, tf.survival.outcome("time", "died"), probs={4: "s4", 8: "s8"}, below=0.01, strict=True)
    assert ".eval_time" in text.splitlines()[2]
    for at in (4, 8):
        error = ((pl.col("time") > at).cast(pl.Float64) - pl.col(f"s{at}")) ** 2
        values = dict(rows.group_by("g").agg(error.mean()).rows())
        paragraph = text.partition(f"eval_time={at} passes if")[2].partition("\n\n")[0]
        assert paragraph.count("brier_survival ") == 2
        for value in values.values():
            assert f"{value:.6g}"[:6] in paragraph


def shown_bound(text: str) -> float:
    return float(re.findall(r"these rows show no more than that it is (?:below|above) ([\d.]+)\.\n", text)[0])


@pytest.mark.parametrize(
    ("metric", "limit"),
    [
        (tf.demographic_parity("g"), {"below": 0.1}),
        (tf.demographic_parity_ratio("g"), {"above": 0.8}),
        (tf.detection_prevalence.difference("g", to="a"), {"below": 0.1}),
        (tf.detection_prevalence.ratio("g", to="b"), {"above": 0.8}),
        (tf.detection_prevalence.group_minimum("g"), {"above": 0.4}),
    ],
    ids=str,
)
def test_bound_that_rows_show_would_pass_as_a_limit_and_a_slightly_stricter_one_would_not(
    metric: Any, limit: dict[str, Any]
) -> None:
    passing = shown_bound(failure(metric, UNFAIR, estimate="e", strict=True, **limit))
    (side,) = limit
    nearest: dict[str, Any] = {side: passing}
    tf.assert_fair(metric, UNFAIR, estimate="e", strict=True, **nearest)
    stricter = passing * (0.98 if side == "below" else 1.02)
    failure(metric, UNFAIR, estimate="e", strict=True, **{side: stricter})


def test_failure_shows_the_compared_groups_with_their_rows() -> None:
    data = pl.concat([UNFAIR.with_columns(month=pl.lit("May")), UNFAIR.with_columns(month=pl.lit("June"))])
    text = failure(
        tf.demographic_parity("g"), data.vstack(data.filter(month="May")), estimate="e", below=0.1, group_by="month"
    )
    june, may = re.split("demographic_parity of g, month=(?:June|May) passes if `.upper` is below 0.1", text)[1:]
    assert "┆ 2000 " in may
    assert "┆ 2000 " not in june
    lines = [line for line in june.splitlines() if "selection_rate" in line]
    assert [line.split("┆")[1].strip() for line in lines] == ["b", "a"]
    assert [float(line.split("┆")[2]) for line in lines] == [0.3, 0.5]


def test_failure_shows_the_extremes_of_many_groups_and_few_of_many_disparities() -> None:
    many = people(**{f"group {number:02}": (10 * number, 1000) for number in range(20, 40)})
    text = failure(tf.demographic_parity("g"), many, estimate="e", below=0.05)
    shown = [number for number in range(20, 40) if f"┆ group {number:02} " in text]
    assert shown == [*range(20, 26), *range(34, 40)]
    months = pl.concat(UNFAIR.with_columns(month=pl.lit(month)) for month in range(7))
    text = failure(tf.demographic_parity("g"), months, estimate="e", below=0.1, group_by="month")
    assert text.count("passes if") == 5
    assert text.endswith("The groups of 2 more are not shown.")


def test_failure_names_groups_without_which_nothing_passes() -> None:
    few = people(a=(500, 1000), b=(300, 1000), c=(2, 4))
    text = failure(tf.demographic_parity("g", min_n=30), few, estimate="e", below=0.1, on_undefined="ignore")
    assert "passes if `.upper` is below 0.1 and no group is left out; here 'c' is." in text
    assert "below_min_n" in text


def test_failure_of_a_metric_of_all_rows_has_no_groups() -> None:
    data = UNFAIR.with_columns(t=1 - pl.col("e"))
    text = failure(tf.accuracy, data, "t", "e", above=0.5)
    assert text.endswith("accuracy passes if `.lower` is above 0.5; these rows show nothing of the kind.")


# Bad input

ODD_LIMITS: list[dict[str, Any]] = [
    {}, {"below": 0.1, "above": 0.8}, {"below": "0.1"}, {"below": True}, {"below": math.nan}, {"above": math.nan},
    {"below": [0.1]}, {"below": 0.1, "conf_level": 0.5}, {"below": 0.1, "conf_level": 1},
    {"below": 0.1, "conf_level": 95},
    {"below": 0.1, "conf_level": "high"}, {"below": 0.1, "conf_level": math.nan}, {"below": 0.1, "conf_level": True},
]  # fmt: skip


@pytest.mark.parametrize("limits", ODD_LIMITS, ids=str)
def test_bad_limits_raise(limits: dict[str, Any]) -> None:
    result = tf.demographic_parity("g")(FAIR, estimate="e", interval="auto", explain=True)
    for given in (tf.demographic_parity("g"), result):
        with pytest.raises(tf.errors.ArgumentError):
            tf.check(given, **limits)
    with pytest.raises(tf.errors.ArgumentError):
        tf.assert_fair(tf.demographic_parity("g"), FAIR, estimate="e", **limits)


WILD_LIMITS: list[tuple[Any, dict[str, float], str]] = [
    (tf.demographic_parity("g"), {"below": 5}, "between 0 and 1: 5 percent is `below=0.05`"),
    (tf.demographic_parity("g"), {"below": 1.5}, "between 0 and 1."),
    (tf.demographic_parity("g"), {"below": 250}, "between 0 and 1."),
    (tf.demographic_parity_ratio("g"), {"above": 80}, "between 0 and 1: 80 percent is `above=0.8`"),
    (tf.demographic_parity(tf.privileged(g="a")), {"below": 10}, "between 0 and 1: 10 percent is `below=0.1`"),
    (tf.disparate_impact(tf.privileged(g="a")), {"above": 1.25}, "between 0 and 1."),
    (tf.accuracy, {"above": 90}, "between 0 and 1: 90 percent is `above=0.9`"),
    (tf.f_meas.group_minimum("g"), {"above": 90}, "between 0 and 1: 90 percent is `above=0.9`"),
    (tf.new_groupwise_metric(tf.mcc, "mcc_gap", tf.difference())("g"), {"below": 10}, "between 0 and 2."),
    (tf.counts.demographic_disparity, {"below": 3}, "between 0 and 1: 3 percent is `below=0.03`"),
    (tf.calibration.in_the_large, {"below": 5}, "between 0 and 1: 5 percent is `below=0.05`"),
    (
        tf.inequality.mean_benefit,
        {"above": 80},
        "between 0 and 1, and its reciprocal is the other end: 80 percent is `above=0.8`",
    ),
    (tf.metric_set(tf.accuracy.difference("g"), tf.equalized_odds("g")), {"below": 10}, "between 0 and 1: 10 percent"),
    (
        tf.class_metric(range=(1, math.inf), direction="minimize")(lambda selected, tp: (selected, tp)),
        {"below": 0.5},
        "1 or more.",
    ),
]


@pytest.mark.parametrize(("metric", "limit", "expected"), WILD_LIMITS, ids=repr)
def test_unreachable_limit_raises(metric: Any, limit: dict[str, Any], expected: str) -> None:
    for gate in (
        lambda: tf.check(metric, **limit),
        lambda: tf.assert_fair(metric, FAIR, estimate="e", **limit),
        lambda: inference.probability(metric, **limit),
    ):
        with pytest.raises(tf.errors.ArgumentError) as caught:
            gate()
        assert expected in str(caught.value)
        assert f"`{next(iter(limit))}={next(iter(limit.values())):g}`" in str(caught.value)


BOUNDLESS: list[tuple[Any, dict[str, Any]]] = [
    (tf.rmse, {"below": 250}), (tf.mae.difference("g"), {"below": 5}), (tf.msd, {"below": 5}),
    (tf.mase, {"below": 5}), (tf.smape, {"below": 5}),
    (tf.positive_likelihood_ratio, {"above": 20}),
    (tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio()), {"below": 5}),
    (tf.demographic_parity("g", aggregate=tf.aggregates.coefficient_of_variation()), {"below": 5}),
    (tf.demographic_parity("g", aggregate=pl.col(".estimate").max()), {"below": 5}),
    (tf.demographic_parity("g", aggregate=tf.new_aggregate(pl.len(), equal=3, direction="maximize")), {"above": 2}),
    (tf.demographic_parity("g"), {"below": 1}), (tf.demographic_parity("g"), {"below": 0}),
    (tf.demographic_parity_ratio("g"), {"above": 1}), (tf.demographic_parity_ratio("g"), {"above": 0}),
    # the range of a custom count is not known
    (tf.new_class_metric(lambda fn: fn, "misses", "minimize"), {"below": 50}),
    (tf.new_groupwise_metric(tf.new_class_metric(lambda fn: fn, "misses"), "gap", tf.difference())("g"), {"below": 50}),
]  # fmt: skip


def test_reachable_limit_is_accepted() -> None:
    for metric, limit in BOUNDLESS:
        assert tf.check(metric, **limit).limits == (next(iter(limit.items())),)


def test_range_of_a_custom_metric_bounds_the_limit() -> None:
    share = tf.new_class_metric(lambda fn, instances: (fn, instances), "missed", "minimize", (0, 0.5))
    with pytest.raises(tf.errors.ArgumentError, match=r"between 0 and 0\.5"):
        tf.check(share, below=0.7)
    assert tf.check(share, below=0.2).limits == (("below", 0.2),)


@pytest.mark.parametrize("options", [{"interval": "auto"}, {"conf_level": 0.9}, {"explain": True}], ids=str)
def test_gate_rejects_interval_options(options: dict[str, Any]) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=f"A gate does not accept `{next(iter(options))}`"):
        tf.check(tf.demographic_parity("g"), below=0.1)(FAIR, estimate="e", **options)

    gate: Any = tf.check(tf.demographic_parity("g"), below=0.1)
    with pytest.raises(tf.errors.ArgumentError, match=f"A gate does not accept `{next(iter(options))}`"):
        gate.compute(gate.metrics.tally(FAIR, estimate="e"), **options)


def test_pos_label_none_is_not_given_twice() -> None:
    gate: Any = tf.four_fifths("g", pos_label=1)
    assert gate(UNFAIR, estimate="e", pos_label=None).equals(gate(UNFAIR, estimate="e"))


def test_gate_rejects_bad_options() -> None:
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    for options in ({"nonsense": 1}, {"times": 0}, {"seed": -1}, {"na_rm": 2}, {"on_undefined": "cry"}):
        with pytest.raises(tf.errors.TidyfairError):
            gate(FAIR, estimate="e", **options)
        with pytest.raises(tf.errors.TidyfairError):
            gate.compute(gate.metrics.tally(FAIR, estimate="e"), **options)
    with pytest.raises(tf.errors.ArgumentError, match="needs the result of `tally`"):
        gate.compute(FAIR)
    with pytest.raises(tf.errors.ColumnError, match="nowhere"):
        gate(FAIR, estimate="nowhere")


def test_check_of_a_non_metric_raises() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r'did you mean `demographic_parity\("col"\)`'):
        tf.check(tf.demographic_parity, below=0.1)
    for odd in (None, 3, "demographic_parity", [tf.demographic_parity("g")]):
        with pytest.raises(tf.errors.ArgumentError):
            tf.check(odd, below=0.1)
    result: Any = tf.demographic_parity("g")(FAIR, estimate="e", interval="auto", explain=True)
    with pytest.raises(tf.errors.TidyfairError):
        tf.assert_fair(result, FAIR, estimate="e", below=0.1)


def test_check_of_a_metric_without_interval_raises() -> None:
    precision = tf.new_groupwise_metric(tf.average_precision, "precision_parity", tf.difference())
    with pytest.raises(tf.errors.ArgumentError, match="no interval of precision_parity"):
        tf.check(precision("g"), below=0.1)(random_people(), "t", probs="score", score_bins=64)
    calibration = tf.check(tf.calibration.parity("g"), below=0.1)(random_people(), "t", probs="score")
    assert calibration[".lower"].item() <= calibration[".estimate"].item() <= calibration[".upper"].item()


def largest_less_smallest(groups: pl.DataFrame) -> float:
    values = groups[".estimate"].to_list()
    return max(values) - min(values)


def test_custom_aggregate_without_equality_does_not_fail_equal_groups() -> None:
    own = tf.new_groupwise_metric(tf.selection_rate, "own", largest_less_smallest)("g")
    random = np.random.default_rng(3)
    for _ in range(5):
        # six groups with the same rate: replicates of their range lie far from 0
        equal = pl.DataFrame({"g": random.integers(0, 6, 1_000), "y": random.random(1_000) < 0.4})
        result = tf.check(own, below=0.03)(equal, estimate="y", times=200)
        assert result[".lower"].item() > 0
        assert result[".verdict"].item() == "not enough evidence"
        assert tf.check(own, below=0.9)(equal, estimate="y", times=200)[".verdict"].item() == "pass"


OWN_DISTANCES: list[tuple[Any, dict[str, float]]] = [
    (tf.new_aggregate(largest_less_smallest, equal=0), {"below": 0.1}),
    (tf.new_aggregate(pl.col(".estimate").min() / pl.col(".estimate").max(), equal=1), {"above": 0.8}),
    (tf.difference(to="overall"), {"below": 0.05}),
    (tf.ratio(to="overall"), {"above": 0.9}),
    (tf.aggregates.standard_deviation(), {"below": 0.05}),
]  # fmt: skip


@pytest.mark.parametrize(("aggregate", "limit"), OWN_DISTANCES, ids=lambda item: repr(item)[:30])
def test_spread_aggregates_have_three_verdicts(aggregate: Any, limit: dict[str, Any]) -> None:
    gate = tf.check(tf.demographic_parity("g", aggregate=aggregate), **limit)
    # a function is called thousands of times for each verdict
    is_function = aggregate is OWN_DISTANCES[0][0]
    asked = {PASS: FAIR, FAIL: UNFAIR} if is_function else {PASS: FAIR, FAIL: UNFAIR, UNSURE: UNKNOWN}
    assert [verdict(gate(data, estimate="e", times=50)) for data in asked.values()] == list(asked)
    if is_function:
        return
    # few people who are alike do not show that groups are
    assert verdict(gate(people(a=(4, 4), b=(4, 4), c=(4, 4)), estimate="e", times=50)) == UNSURE


def test_custom_signed_aggregate_fails_on_either_side() -> None:
    def last_less_first(groups: pl.DataFrame) -> float:
        return groups[".estimate"][-1] - groups[".estimate"][0]

    signed = tf.new_aggregate(last_less_first, direction="zero")
    for data in (UNFAIR, UNFAIR.with_columns(pl.col("g").replace({"a": "b", "b": "a"}))):
        gate = tf.check(tf.demographic_parity("g", aggregate=signed), below=0.1)
        assert verdict(gate(data, estimate="e", times=200)) == FAIL


def test_spread_of_two_metrics_at_once_may_be_none_at_all() -> None:
    spread = tf.equalized_odds("g", aggregate=tf.aggregates.standard_deviation())
    data = pl.concat([FAIR.with_columns(t=1), FAIR.with_columns(t=0)])
    result = tf.check(spread, below=0.1)(data, "t", "e", times=200)
    assert (result[".lower"].item(), verdict(result)) == (0.0, PASS)


def test_groups_of_one_row_give_not_enough_evidence() -> None:
    rows = pl.DataFrame({"y": [1.0, 2.0, 3.0], "p": [1.1, 2.1, 3.1], "g": list("abc")})
    for limit in (0.1, 0.001):
        result = tf.check(tf.mae.difference("g"), below=limit)(rows, "y", "p", times=200, on_undefined="ignore")
        assert result.select(".lower", ".upper", ".verdict").row(0) == (None, None, UNSURE)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([FAIR, UNFAIR], "1 of 2 limits is not met:"),
        ([UNFAIR, UNFAIR], "2 of 2 limits are not met:"),
        ([FAIR, UNKNOWN], "There is not enough evidence that 1 of 2 limits is met:"),
        ([UNFAIR, UNKNOWN, UNKNOWN], "1 of 3 limits is not met, and there is not enough evidence that 2 are met:"),
    ],
)
def test_failures_count_what_fails_and_what_lacks_evidence(data: list[pl.DataFrame], expected: str) -> None:
    folds = pl.concat(part.with_columns(fold=fold) for fold, part in enumerate(data))
    text = failure(tf.demographic_parity("g"), folds, estimate="e", below=0.1, group_by="fold", strict=True)
    assert text.splitlines()[0] == expected


def test_messages_of_gates_do_not_advise_another_limit() -> None:
    failing = failure(tf.demographic_parity("g"), UNFAIR, estimate="e", below=0.1)
    with pytest.warns(tf.errors.EvidenceWarning) as caught:
        tf.assert_fair(tf.demographic_parity("g"), UNKNOWN, estimate="e", below=0.1)
    for text in (failing, str(caught[0].message)):
        assert "wider limit" not in text
        assert "would pass with" not in text


# Unknown groups


def with_unknown_rows(hits: int, size: int) -> pl.DataFrame:
    """Fair decisions, and rows without a group of which so many have one."""
    return pl.concat([FAIR, pl.DataFrame({"e": [1] * hits + [0] * (size - hits), "g": [None] * size}, FAIR.schema)])


def test_rows_of_unknown_groups_that_could_turn_the_verdict_keep_a_gate_from_passing() -> None:
    data = with_unknown_rows(220, 220)
    (row,) = tf.check(tf.demographic_parity("g", unknown="apart"), below=0.1)(data, estimate="e").to_dicts()
    assert row[".upper"] < 0.1
    assert (row[".verdict"], row[".with_unknown"]) == (UNSURE, FAIL)
    assert (row[".unknown"], row[".unknown_share"]) == (220, 220 / 2220)
    # who says that they are meant to be left out has said so
    dropped = tf.check(tf.demographic_parity("g", unknown="drop"), below=0.1)(data, estimate="e")
    assert verdict(dropped) == PASS
    assert ".unknown" not in dropped.columns


def test_rows_of_unknown_groups_like_all_others_do_not_keep_a_gate_from_passing() -> None:
    data = with_unknown_rows(500, 1000)
    (row,) = tf.check(tf.demographic_parity("g", unknown="apart"), below=0.1)(data, estimate="e").to_dicts()
    assert (row[".verdict"], row[".with_unknown"], row[".unknown"]) == (PASS, PASS, 1000)


def test_rows_of_unknown_groups_that_are_too_few_to_matter_let_a_gate_pass() -> None:
    # four rows move the rate of a group of 1,000 by less than 0.4 points, and eighty by some 4
    gate = tf.check(tf.demographic_parity("g", unknown="apart", min_n=100), below=0.06)
    assert [verdict(gate(with_unknown_rows(size, size), estimate="e")) for size in (4, 80)] == [PASS, UNSURE]
    (row,) = gate(FAIR, estimate="e").to_dicts()
    assert (row[".verdict"], row[".unknown"], row[".with_unknown"]) == (PASS, 0, None)


def test_rows_of_unknown_groups_are_tried_in_every_known_group() -> None:
    # in the larger group the rows would be lost, in the smaller one they are a tenth
    data = pl.concat([people(a=(2500, 5000), b=(250, 500)), with_unknown_rows(50, 50).filter(pl.col("g").is_null())])
    gate = tf.check(tf.demographic_parity("g", unknown="apart", min_n=60), below=0.08)
    in_each = [tf.check(tf.demographic_parity("g"), below=0.08)(data.fill_null(g), estimate="e") for g in "ab"]
    assert list(map(verdict, in_each)) == [PASS, UNSURE]
    assert verdict(gate(data, estimate="e")) == UNSURE


def test_a_gate_that_fails_or_is_undecided_stays_so_with_unknown_groups() -> None:
    gate = tf.check(tf.demographic_parity("g", unknown="apart"), below=0.1)
    nobody = pl.DataFrame({"e": [1, 0], "g": [None, None]}, FAIR.schema)
    assert verdict(gate(pl.concat([UNFAIR, nobody]), estimate="e")) == FAIL
    undecided = gate(pl.concat([UNKNOWN, nobody]), estimate="e")
    assert (verdict(undecided), undecided[".with_unknown"].item()) == (UNSURE, None)


def test_unknown_rows_of_gates_are_counted_in_each_fold_and_for_each_feature() -> None:
    one, other = with_unknown_rows(220, 220), FAIR
    data = pl.concat([one.with_columns(fold=1), other.with_columns(fold=2)]).with_columns(h=pl.col("e").cast(pl.String))
    of_both = tf.metric_set(tf.demographic_parity("g"), tf.demographic_parity("h", unknown="group"))
    gate = tf.check(of_both, below=0.1)
    result = gate(data, estimate="e", group_by="fold")
    assert result.select("fold", ".by", ".unknown").rows() == [
        (1, "g", 220),
        (2, "g", 0),
        (1, "h", None),
        (2, "h", None),
    ]
    assert result.filter(pl.col(".by") == "g")[".verdict"].to_list() == [UNSURE, PASS]


def test_assertions_say_how_many_rows_are_of_unknown_groups_and_how_to_leave_them_out() -> None:
    data, parity = with_unknown_rows(220, 220), tf.demographic_parity("g", unknown="apart")
    with pytest.warns(tf.errors.EvidenceWarning) as caught:
        tf.assert_fair(parity, data, estimate="e", below=0.1)
    strict = failure(parity, data, estimate="e", below=0.1, strict=True)
    (warning,) = [str(one.message) for one in caught if one.category is tf.errors.EvidenceWarning]
    for text in (warning, strict):
        assert "The known groups of g pass, but 220 rows of unknown groups (9.91%) could turn the verdict" in text
        assert '`outside="state"` states that a pass is not about them' in text
    assert "with unknown groups compared too; here there are 220 rows of unknown groups (9.91%)." in strict


def test_gate_results_end_with_limits_and_verdict_which_printed_frames_show() -> None:
    people = pl.DataFrame({"y": [1, 0] * 50, "p": [1, 0, 0, 0] * 25, "g": ["a"] * 50 + ["b"] * 50})
    gate = tf.check(tf.metric_set(tf.demographic_parity("g"), tf.equalized_odds("g")), below=0.2)
    result = gate(people, "y", "p")
    assert result.columns[:4] == [".metric", ".by", ".estimator", ".estimate"]
    assert result.columns[-4:] == [".lower", ".upper", ".limit", ".verdict"]
    assert gate.compute(gate.metrics.tally(people, "y", "p", parts=0)).columns == result.columns


def test_share_of_unknown_groups_in_no_rows_is_null() -> None:
    nobody = pl.DataFrame(schema={"g": pl.String, "e": pl.Int64})
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    (row,) = gate(nobody, estimate="e", on_undefined="ignore").to_dicts()
    assert (row[".unknown"], row[".unknown_share"], row[".verdict"]) == (0, None, UNSURE)


# Extremes: all groups have to meet the limit, each judged by itself


def wilson(hits: int, rows: int, tail: float) -> tuple[float, float]:
    limits: Any = proportion_confint(hits, rows, alpha=2 * tail, method="wilson")
    return limits


def of_eight(right: int) -> pl.DataFrame:
    """Labels of eight groups of 300 rows: seven without an error, and one with so many that are right."""
    return people(x=(right, 300), **dict.fromkeys("abcdefg", (300, 300))).with_columns(t=1)


@pytest.mark.parametrize(
    ("metric", "limit"),
    [(tf.accuracy.group_minimum("g"), {"above": 0.83}), (tf.error_rate.group_maximum("g"), {"below": 0.17})],
    ids=["minimum", "maximum"],
)
def test_extreme_passes_if_a_score_test_shows_it_of_each_group(metric: Any, limit: dict[str, Any]) -> None:
    deviations = [(right / 300 - 0.83) / math.sqrt(0.83 * 0.17 / 300) for right in range(301)]
    least = next(right for right, deviation in enumerate(deviations) if deviation > NormalDist().inv_cdf(0.95))
    gate, call = tf.check(metric, **limit), {"pos_label": 1, "labels": [0, 1]}
    assert [verdict(gate(of_eight(right), "t", "e", **call)) for right in (least - 1, least)] == [UNSURE, PASS]
    # the probabilities that a group at the limit passes, and that eight with an accuracy of 0.9 do
    assert binom.sf(least - 1, 300, 0.83) == pytest.approx(0.05, abs=1e-4)
    assert binom.sf(least - 1, 300, 0.9) ** 8 == pytest.approx(0.814, abs=1e-3)


SCORED = random_people().with_columns(
    score=0.7 * pl.col("score") + 0.3 * pl.col("t"), weight=1 + pl.col("score"), guess=pl.col("fold").reverse(),
    cluster=pl.int_range(pl.len()) // 5,
)  # fmt: skip
OF_EACH_GROUP: dict[str, tuple[Any, tuple[str, ...], dict[str, Any]]] = {
    "rate": (tf.accuracy.group_minimum("g"), ("t", "e"), {"group_by": "fold"}),
    "smooth": (tf.mcc.group_minimum("g"), ("t", "e"), {}),
    "weights": (tf.accuracy.group_minimum("g"), ("t", "e"), {"case_weights": "weight"}),
    "clusters": (tf.accuracy.group_minimum("g"), ("t", "e"), {"cluster": "cluster"}),
    "area": (tf.roc_auc.group_minimum("g"), ("t",), {"probs": "score"}),
    "numbers": (tf.mae.group_maximum("g"), ("t", "score"), {}),
    "replicates": (tf.pr_auc.group_minimum("g"), ("t",), {"probs": "score", "times": 100}),
    "thresholds": (tf.sens.group_minimum("g"), ("t",), {"probs": "score", "threshold": [0.4, 0.6]}),
    "labels": (tf.sens.group_minimum("g"), ("fold", "guess"), {"estimator": "one_vs_rest"}),
    "metrics": (
        tf.new_groupwise_metric(tf.metric_set(tf.sens, tf.spec), "worst", tf.group_minimum())("g"), ("t", "e"), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("metric", "columns", "call"), OF_EACH_GROUP.values(), ids=OF_EACH_GROUP)
def test_bound_of_an_extreme_is_the_farthest_of_one_sided_bounds_of_groups(
    metric: Any, columns: tuple[Any, ...], call: dict[str, Any]
) -> None:
    is_smallest = metric.aggregate.kind == "group_minimum"
    limit: dict[str, Any] = {"above" if is_smallest else "below": 0.5}
    judged = tf.check(metric, **limit)(SCORED, *columns, **call)
    groups = metric.by_group(SCORED, *columns, **call, interval="auto", conf_level=0.9)
    keys = [name for name in ("fold", ".threshold") if name in judged.columns]
    groups = groups.with_columns(all=1).group_by("all", *keys, maintain_order=True)
    own, other = (".lower", ".upper") if is_smallest else (".upper", ".lower")
    farthest = groups.agg(pl.col(own).min() if is_smallest else pl.col(own).max())
    assert judged[own].null_count() == 0
    assert judged[own].to_list() == pytest.approx(farthest[own].to_list())
    # that some group is beyond the limit is shown by limits that hold for all of them at once
    together = metric(SCORED, *columns, **call, interval="auto", conf_level=0.9)
    assert judged[other].to_list() == pytest.approx(together[other].to_list())
    assert judged[".method"].str.ends_with(f", {own[1:]} end of each group").all()


def test_a_group_is_shown_to_be_beyond_the_limit_of_an_extreme_by_simultaneous_limits() -> None:
    minimum, maximum = tf.selection_rate.group_minimum("g"), tf.selection_rate.group_maximum("g")
    data = people(**dict.fromkeys("abcdefgh", (250, 300)))
    lower, upper = wilson(250, 300, (1 - 0.9 ** (1 / 8)) / 2)
    found = [verdict(tf.check(minimum, above=upper + move)(data, estimate="e")) for move in (-1e-6, 1e-6)]
    assert found == [UNSURE, FAIL]
    # that the largest is above a limit is a claim about some group, and that it is not about all of them
    _, alone = wilson(250, 300, 0.05)
    limits = [lower - 1e-6, lower + 1e-6, alone - 1e-6, alone + 1e-6]
    found = [verdict(tf.check(maximum, above=limit)(data, estimate="e")) for limit in limits]
    assert found == [PASS, UNSURE, UNSURE, FAIL]


def test_small_groups_and_those_without_a_bound_hold_back_the_pass_of_an_extreme() -> None:
    data = pl.concat([FAIR, people(c=(4, 4))])
    small = tf.selection_rate.group_minimum("g", min_n=10)
    assert verdict(tf.check(small, above=0.4)(data, estimate="e")) == UNSURE
    assert verdict(tf.check(small, above=0.4, outside="state")(data, estimate="e")) == PASS
    # one row says nothing of how far errors vary
    errors = pl.DataFrame({"y": [0.9, 1.1] * 100 + [0.0], "p": 0.0, "g": ["a"] * 200 + ["b"]})
    (row,) = tf.check(tf.mae.group_maximum("g"), below=2)(errors, "y", "p").to_dicts()
    assert (row[".upper"], row[".verdict"]) == (None, UNSURE)


def test_failure_of_an_extreme_shows_the_bounds_of_its_groups() -> None:
    # the group with the lowest bound is not the one with the lowest value
    counts = {"large": (860, 1000), "small": (18, 20)}
    text = failure(tf.selection_rate.group_minimum("g"), people(**counts), estimate="e", above=0.84, strict=True)
    large, small = (wilson(hits, rows, 0.05)[0] for hits, rows in counts.values())
    paragraph = text.partition("selection_rate_group_minimum of g passes if ")[2]
    shown = f"these rows show no more than that it is above {math.floor(1000 * small) / 1000:g}."
    assert paragraph.startswith(f"`.lower` of every group is above 0.84; {shown}")
    rows = [[cell.strip() for cell in line.split("┆")] for line in paragraph.splitlines() if "┆ 0." in line]
    assert [row[1] for row in rows] == ["small", "large"]
    assert [float(row[3]) for row in rows] == pytest.approx([small, large], abs=1e-5)
