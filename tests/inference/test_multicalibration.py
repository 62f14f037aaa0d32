"""Tests of calibration in subgroups: their distribution, power and corrections, by arithmetic and simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from inline_snapshot import snapshot
from scipy import integrate, stats

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.intervals import brownian_range_quantile, brownian_range_tail

multicalibration_test = tf.inference.multicalibration_test


def tail(distance: float) -> float:
    return float(brownian_range_tail(np.array(distance)))


def test_range_of_brownian_motion_has_the_moments_of_feller() -> None:
    # Feller (1951): the mean is 2 sqrt(2 / pi), the variance 4 (log 2 - 2 / pi)
    mean, _ = integrate.quad(tail, 0, 20, limit=200)
    square, _ = integrate.quad(lambda distance: 2 * distance * tail(distance), 0, 20, limit=200)
    assert mean == pytest.approx(2 * math.sqrt(2 / math.pi), rel=1e-9)
    assert square == pytest.approx(4 * math.log(2), rel=1e-9)


def test_range_of_brownian_motion_has_the_density_of_feller() -> None:
    # 8 times the sum of (-1)^(k - 1) k² φ(k r)
    for distance in (0.8, 1.0, 1.6, 2.5, 5.0):
        density = 8 * sum((-1) ** (k - 1) * k**2 * stats.norm.pdf(k * distance) for k in range(1, 60))
        step = 1e-5
        slope = (tail(distance - step) - tail(distance + step)) / (2 * step)
        assert slope == pytest.approx(density, rel=1e-5)
    assert tail(0.0) == pytest.approx(1, abs=1e-12)
    # as MAPIE tests its distribution function
    assert [1 - tail(distance) for distance in (1, 2, 3)] == pytest.approx([0.063365, 0.818506, 0.989201], abs=1e-6)
    # the other series, whose terms are all positive
    for distance in (0.31, 0.5, 1.0, 2.0):
        rates = [((k - 0.5) * math.pi) ** 2 for k in range(1, 60)]
        terms = [(8 / distance**2 + 2 / rate) * math.exp(-2 * rate / distance**2) for rate in rates]
        assert tail(distance) == pytest.approx(1 - sum(terms), abs=1e-12)
    assert tail(math.inf) == 0
    assert tail(brownian_range_quantile(0.05)) == pytest.approx(0.05, rel=1e-9)
    # far out the motion reaches only one of both ends
    assert tail(9.0) == pytest.approx(8 * stats.norm.sf(9), rel=1e-12)


def test_error_deviation_and_statistic_of_a_published_example() -> None:
    # MCGrad documents 0.15 and 0.67082 for these four rows
    data = pl.DataFrame({"y": [0, 1, 0, 1], "p": [0.6, 0.8, 0.2, 0.4], "g": ["a"] * 4})
    test = multicalibration_test(["g"], min_n=1)(data, "y", probs="p")
    row = test.filter(pl.col(".by").is_null()).row(0, named=True)
    assert row[".estimate"] == pytest.approx(0.15)
    assert row[".std_error"] == pytest.approx(math.sqrt(0.16 + 0.24 + 0.24 + 0.16) / 4)
    assert row[".statistic"] == pytest.approx(0.67082, abs=5e-6)
    assert row[".p_value"] == pytest.approx(tail(0.67082), abs=1e-5)


def simulated(replicates: int, size: int, shift: Any = None, seed: int = 0) -> pl.DataFrame:
    """Replicates of rows with calibrated scores, or with events that are more frequent by a shift."""
    random = np.random.default_rng(seed)
    score = random.beta(1.2, 2, replicates * size)
    rate = score if shift is None else np.clip(score + shift(score), 0, 1)
    return pl.DataFrame(
        {
            "replicate": np.repeat(np.arange(replicates), size),
            "y": random.random(replicates * size) < rate,
            "p": score,
            "sex": random.choice(["f", "m"], replicates * size),
            "race": random.choice(["a", "b", "c"], replicates * size, p=[0.6, 0.3, 0.1]),
        }
    )


@pytest.mark.simulation
def test_p_values_of_calibrated_scores_are_uniform() -> None:
    data = simulated(800, 2_000)
    test = multicalibration_test(["sex"], depth=1)(data, "y", probs="p", group_by="replicate")
    p_values = test.filter(pl.col(".by").is_null())[".p_value"].to_numpy()
    # few steps are a little shorter than a motion: a walk of n steps has a range that is 1.17 / sqrt(n) smaller
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        share, error = (p_values <= level).mean(), math.sqrt(level * (1 - level) / 800)
        assert level - 0.04 - 3 * error < share < level + 3 * error, (level, share)


@pytest.mark.simulation
def test_false_alarms_of_all_subgroups_together_are_rare() -> None:
    data = simulated(600, 1_500, seed=1)
    test = multicalibration_test(["sex", "race"])(data, "y", probs="p", group_by="replicate")
    assert test.group_by("replicate").len()["len"].unique().to_list() == [12]
    smallest = test.group_by("replicate").agg(pl.col(".p_adjusted").min())[".p_adjusted"]
    share = (smallest <= 0.05).mean()
    assert 0.01 < share < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600), share


@pytest.mark.simulation
@pytest.mark.parametrize("where", ["everywhere", "in the middle", "to both sides"])
def test_detectable_errors_are_detected_with_the_power(where: str) -> None:
    size = 1_500
    calibrated = multicalibration_test(["sex"], depth=1)(simulated(1, size), "y", probs="p")
    error = calibrated.filter(pl.col(".by").is_null())[".detectable"].item()
    score = np.random.default_rng(3).beta(1.2, 2, 200_000)
    shapes: dict[str, Any] = {
        "everywhere": np.ones_like,
        "in the middle": lambda score: (np.abs(score - 0.4) < 0.15).astype(float),
        "to both sides": lambda score: np.where(score < 0.3, 1.0, -1.0),
    }
    shape = shapes[where]
    # of scores to both sides, the error is that of either side
    per_row = np.where(shape(score) > 0, shape(score), 0).mean()
    data = simulated(400, size, lambda score: shape(score) * error / per_row, seed=4)
    test = multicalibration_test(["sex"], depth=1)(data, "y", probs="p", group_by="replicate")
    detected = (test.filter(pl.col(".by").is_null())[".p_adjusted"] <= 0.05).mean()
    assert detected > 0.8 - 3 * math.sqrt(0.8 * 0.2 / 400), detected


def test_every_subgroup_has_the_error_of_its_rows() -> None:
    loans = lending()
    scored: Any = {"probs": "score", "pos_label": "yes"}
    features = ["sex", "race", "age_band"]
    test = multicalibration_test(features, depth=3)(loans, "repaid", **scored)
    by = [":".join(names) for size in (1, 2, 3) for names in itertools.combinations(features, size)]
    assert set(test[".by"].drop_nulls()) == set(by)
    for row in test.filter(pl.col(".status") == "ok").rows(named=True):
        names = (row[".by"] or "").split(":") if row[".by"] else []
        part = loans.filter(pl.lit(value=True), *(pl.col(name) == row[name] for name in names))
        assert len(part) == row[".n"]
        value = tf.calibration.cumulative_error(part, "repaid", **scored)[".estimate"].item()
        curve = tf.calibration.cumulative_curve(part, "repaid", **scored)
        assert row[".estimate"] == pytest.approx(value)
        assert row[".std_error"] == pytest.approx(curve[".std_error"][-1])
        assert row[".statistic"] == pytest.approx(row[".estimate"] / row[".std_error"])
    tested = test.filter(pl.col(".p_value").is_not_null())
    assert tested[".statistic"].is_sorted(descending=True)
    # Holm's adjustment by hand: p-values rise down the table
    count, steps = len(tested), np.arange(len(tested), 0, -1)
    holm = np.minimum(np.maximum.accumulate(tested[".p_value"].to_numpy() * steps), 1)
    assert tested[".p_adjusted"].to_numpy() == pytest.approx(holm)
    factor = brownian_range_quantile(0.05 / count) + stats.norm.ppf(0.8)
    assert tested[".detectable"].to_numpy() == pytest.approx(factor * tested[".std_error"].to_numpy())


def test_small_and_unknown_subgroups_are_listed_and_not_tested() -> None:
    data = simulated(1, 400).with_columns(
        race=pl.when(pl.col("race") == "c").then(pl.lit("unknown")).otherwise("race"),
        sex=pl.when(pl.int_range(pl.len()) < 10).then(pl.lit("x")).otherwise("sex"),
    )
    test = multicalibration_test(["sex", "race"])(data, "y", probs="p")
    status = dict(test.select(".group", ".status").rows())
    assert status["x"] == "below_min_n"
    assert status["unknown"] == "unknown"
    untested = test.filter(pl.col(".status") != "ok")
    assert untested.select(pl.col(".p_value", ".p_adjusted", ".detectable").count()).row(0) == (0, 0, 0)
    dropped = multicalibration_test(["sex", "race"], unknown="drop")(data, "y", probs="p")
    assert "unknown" not in dropped[".status"].to_list()
    grouped = multicalibration_test(["sex", "race"], unknown="group", min_n=1)(data, "y", probs="p")
    assert set(grouped[".status"]) == {"ok"}


def test_frequencies_are_repeated_rows() -> None:
    data = simulated(1, 200).with_columns(times=pl.int_range(pl.len()) % 3)
    test = multicalibration_test(["sex"], min_n=1)
    counted = test(data, "y", probs="p", frequency_weights="times")
    repeated = test(data.filter(pl.col("times") > 0).select(pl.all().repeat_by("times").explode()), "y", probs="p")
    for name in (".estimate", ".std_error", ".p_value", ".p_adjusted"):
        assert counted[name].to_numpy() == pytest.approx(repeated[name].to_numpy())


def test_certain_scores_leave_nothing_to_chance() -> None:
    data = pl.DataFrame({"y": [0, 1, 0, 1] * 2, "p": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0], "g": list("aaaabbbb")})
    test = multicalibration_test(["g"], min_n=1)(data, "y", probs="p")
    assert dict(test.select(".group", ".p_value").rows()) == {"b": 0.0, None: 0.0, "a": 1.0}


def test_frames_of_any_kind(engine: Any) -> None:
    data = simulated(1, 100)
    test = multicalibration_test(["sex"])(engine(data), "y", probs="p")
    expected = multicalibration_test(["sex"])(data, "y", probs="p")
    assert as_polars(test)[".p_value"].to_list() == pytest.approx(expected[".p_value"].to_list())


def test_refusals_name_the_way_out() -> None:
    data = simulated(1, 100)

    def message(function: Any) -> str:
        with pytest.raises(tf.errors.TidyfairError) as error:
            function()
        return str(error.value)

    assert message(lambda: multicalibration_test("sex")) == snapshot(
        'multicalibration_test() takes a list of features, such as `multicalibration_test(["sex", "race"])`, '
        "not 'sex'."
    )
    assert message(lambda: multicalibration_test([])) == snapshot(
        "multicalibration_test() needs the features that define subgroups; `features` is empty."
    )
    assert message(lambda: multicalibration_test(["sex"], power=2)) == snapshot(
        "`power` is a number between 0 and 1, not 2; 2 percent is 0.02."
    )
    assert message(lambda: multicalibration_test(["sex"])(data, "y")) == snapshot(
        "cumulative_calibration_error needs the column of scores: `probs=`."
    )
    assert message(lambda: multicalibration_test(["sex"])(data, "y", probs="p", interval="auto")) == snapshot(
        "Unknown argument 'interval'. Known: 'data', 'truth', 'probs', 'group_by', 'case_weights', "
        "'frequency_weights', 'pos_label', 'labels', 'conf_level'."
    )
    assert message(lambda: multicalibration_test(["seks"])(data, "y", probs="p")) == snapshot(
        "`features`: there is no column 'seks'. Columns: 'replicate', 'y', 'p', 'sex', 'race'."
    )
    beyond = data.with_columns(p=pl.col("p") * 2)
    assert message(lambda: multicalibration_test(["sex"])(beyond, "y", probs="p")) == snapshot(
        "`probs`: 'p' holds values from 0.0155401 to 1.72433, but cumulative_calibration_error needs "
        "probabilities between 0 and 1. Convert logits with `probs=sigmoid(…)`, or use ranking metrics, such as "
        "roc_auc."
    )
