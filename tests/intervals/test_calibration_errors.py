"""Limits of calibration errors, against plain arithmetic and simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special, stats
from scored_rows import SCORED, Z, effective, scored

import tidyfair as tf
from tidyfair.intervals.calibration_errors import calibration_error_limits


def gaps(data: pl.DataFrame, weight: np.ndarray, bin_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The gaps of bins and their standard errors, bin by bin."""
    share, off = weight / weight.sum(), data["t"].to_numpy() - data["s"].to_numpy()
    score, number = data["s"].to_numpy(), effective(weight)
    gap, variance = [], []
    for one in range(10):
        own = bin_of == one
        gap.append(share[own] @ off[own])
        seen = (((share * off)[own] ** 2).sum() - gap[-1] ** 2 / number) * number / (number - 1)
        variance.append(max(seen, (share[own] ** 2 * score[own] * (1 - score[own])).sum()))
    return np.array(gap), np.sqrt(variance)


def plain_limits(gap: np.ndarray, error: np.ndarray, z: float = Z) -> tuple[float, float]:
    """The limits by their definition, with the upper one by a search for the root."""
    unsure = np.abs(gap) <= 2.5 * error
    variance = np.where(unsure, (1 - 2 / np.pi) * error**2, error**2).sum()
    lower = np.abs(gap).sum() - np.sqrt(2 / np.pi) * error[unsure].sum() - z * np.sqrt(variance)

    def above(distance: float) -> float:
        mean, variance = stats.foldnorm.stats(distance, moments="mv")
        return mean * error.sum() - z * np.sqrt(variance * (error**2).sum()) - np.abs(gap).sum()

    farthest = (np.abs(gap).sum() + z * np.sqrt((error**2).sum())) / error.sum()
    upper = optimize.brentq(above, 0, farthest, xtol=1e-12) * error.sum()
    return max(lower, 0.0), upper


@pytest.mark.parametrize("way", ["rows", "weights"])
@pytest.mark.parametrize("binning", ["width", "count", "own"])
def test_limits_of_calibration_errors_are_those_of_their_gaps(way: str, binning: str) -> None:
    data = scored(7, 300, digits=5)
    weight = data["w"].to_numpy() if way == "weights" else np.ones(len(data))
    score = data["s"].to_numpy()
    at_or_below = np.array([weight[score <= one].sum() for one in score]) / weight.sum()
    bin_of = {
        "width": np.floor(score * 10), "own": np.floor((score - score.min()) / np.ptp(score) * 10),
        "count": np.ceil(at_or_below * 10 - 1e-9) - 1,
    }[binning].clip(0, 9)  # fmt: skip
    options: dict[str, Any] = {"width": {}, "own": {"edges": "own"}, "count": {"binning": "count"}}[binning]
    gap, error = gaps(data, weight, bin_of)
    lower, upper = plain_limits(gap, error)
    call: dict[str, Any] = SCORED | ({"case_weights": "w"} if way == "weights" else {}) | {"interval": "auto"}
    plain, debiased = (
        tf.metric_tweak(metric, "tweaked", **options)(data, **call)
        for metric in (tf.calibration.error, tf.calibration.error_debiased)
    )
    columns = [".lower", ".upper", ".std_error", ".method"]
    expected = pytest.approx(lower), pytest.approx(upper), pytest.approx(np.sqrt((error**2).sum())), "folded_normal"
    assert plain[".estimate"].item() == pytest.approx(np.abs(gap).sum())
    assert plain.select(columns).row(0) == expected
    value = debiased[".estimate"].item()
    assert debiased.select(columns).row(0) == (pytest.approx(min(lower, value)), *expected[1:])


def test_limits_of_the_calibration_errors_of_groups_are_those_of_their_rows() -> None:
    data = scored(8, 500)
    groups = tf.calibration.error.difference("g").by_group(data, **SCORED, interval="auto")
    for name, lower, upper in groups.select(".group", ".lower", ".upper").iter_rows():
        alone = tf.calibration.error(data.filter(g=name), **SCORED, interval="auto")
        assert (lower, upper) == pytest.approx(alone.select(".lower", ".upper").row(0))


def test_rows_that_stand_in_clusters_twice_tell_no_more_of_calibration_than_once() -> None:
    data = scored(9, 200)
    twice = pl.concat([data, data])
    columns = [".lower", ".upper", ".std_error"]
    for metric in (tf.pr_auc, tf.calibration.error):
        call: dict[str, Any] = SCORED | {"interval": "auto", "cluster": "row"}
        once, both = metric(data, **call), metric(twice, **call)
        assert both.select(columns).row(0) == pytest.approx(once.select(columns).row(0))


def test_averages_over_two_labels_are_twice_the_gaps_of_one() -> None:
    # the gap of the other label is the same with the other sign, so that their mean varies as each of them
    data = scored(10, 300, digits=5).with_columns(other=1 - pl.col("s"))
    ends = [".estimate", ".lower", ".upper", ".std_error"]
    label = tf.calibration.error(data, **SCORED, interval="auto").select(ends).row(0)
    for estimator in ("macro", "macro_weighted"):
        result = tf.calibration.error(
            data, "t", probs={0: "other", 1: "s"}, estimator=estimator, interval="auto"
        )  # fmt: skip
        found = result.select(ends).row(0)
        assert result[".method"].item() == "folded_normal"
        assert (found[0], found[3]) == (pytest.approx(label[0]), pytest.approx(label[3]))
        assert found[1] <= label[1] * 1.01
        assert found[2] == pytest.approx(label[2], rel=0.05)


def test_limits_of_calibration_errors_meet_at_the_value_without_errors_in_doubt() -> None:
    gap, error = np.array([[0.1, -0.05]]), np.array([[1e-6, 1e-6]])
    lower, upper = calibration_error_limits(gap, error, np.sqrt((error**2).sum(axis=1)), 1.96)
    assert (lower[0], upper[0]) == (pytest.approx(0.15, abs=1e-5), pytest.approx(0.15, abs=1e-5))


def test_single_rows_and_rows_that_cannot_vary_have_no_limits_of_calibration() -> None:
    for truth, score in (([1], [0.5]), ([1, 0], [1.0, 0.0])):
        result = tf.calibration.error(
            pl.DataFrame({"t": truth, "s": score}), **SCORED, pos_label=1, labels=[0, 1], interval="auto"
        )
        assert result.select(".lower", ".upper", ".std_error", ".method").row(0) == (None,) * 4


def test_the_error_that_chance_gives_has_no_interval() -> None:
    chance = tf.calibration.error_if_calibrated
    for metric in (chance, chance.difference("g")):
        for interval in ("auto", "bootstrap"):
            with pytest.raises(
                tf.errors.ArgumentError, match="says nothing of others: the interval of expected_calibration_e"
            ):
                metric(scored(11, 100), **SCORED, interval=interval)


def test_gaps_of_calibration_errors_follow_from_the_limits_of_groups() -> None:
    data = scored(12, 400).filter(pl.col("g") != "c")
    parity = tf.calibration.error_parity("g")
    groups = parity.by_group(data, **SCORED, interval="auto")
    (one, other), (low, low_other), (high, high_other) = (groups[name] for name in (".estimate", ".lower", ".upper"))
    lower = one - other - np.hypot(one - low, high_other - other)
    upper = one - other + np.hypot(high - one, other - low_other)
    result = parity(data, **SCORED, interval="auto")
    assert result[".method"].item() == "mover"
    assert result[".upper"].item() == pytest.approx(max(abs(lower), abs(upper)))


@pytest.mark.simulation
@pytest.mark.parametrize("steepness", [1.0, 0.5])
def test_limits_of_calibration_errors_cover_the_truth(steepness: float) -> None:
    random, runs, rows = np.random.default_rng(13), 400, 200
    score = random.uniform(0.001, 0.999, runs * rows)
    risk = special.expit(steepness * special.logit(score))
    truth = (random.random(len(score)) < risk).astype(int)
    data = pl.DataFrame({"t": truth, "s": score, "run": np.repeat(np.arange(runs), rows)})
    edges = np.linspace(0, 1, 10_001)[:-1] + 5e-5
    true_gap = special.expit(steepness * special.logit(edges)) - edges
    true = float(np.abs(true_gap.reshape(10, -1).mean(axis=1)).mean())
    result = tf.calibration.error(data, **SCORED, group_by="run", interval="auto")
    covered = ((result[".lower"] <= true) & (true <= result[".upper"])).to_numpy().mean()
    # three standard errors of a simulation below 95 %
    assert covered > 0.917
