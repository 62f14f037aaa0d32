"""Limits of areas under the precision-recall curve and of calibration errors, against plain arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special, stats
from sklearn.metrics import average_precision_score

import tidyfair as tf
from tidyfair.intervals.calibration_errors import calibration_error_limits

AREAS = {"average_precision": tf.average_precision, "pr_auc": tf.pr_auc}
SCORED: dict[str, Any] = {"truth": "t", "probs": "s"}
Z = special.ndtri(0.975)


def scored(seed: int, rows: int, rate: float = 0.3, digits: int = 2) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    truth = (random.random(rows) < rate).astype(int)
    score = special.expit(random.normal(size=rows) + 1.5 * truth - 1.5).round(digits)
    return pl.DataFrame({
        "t": truth, "s": score.clip(0.001, 0.999), "w": random.integers(1, 6, rows).astype(float),
        "c": random.integers(0, 25, rows), "g": random.choice(["a", "b", "c"], rows), "row": np.arange(rows),
    })  # fmt: skip


def area(name: str, truth: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """The area by its definition: one threshold after the other."""
    total, before, precision_before = 0.0, 0.0, 1.0
    for threshold in np.unique(score)[::-1]:
        selected = score >= threshold
        hits = weight[selected] @ truth[selected]
        precision = hits / weight[selected].sum()
        counted = precision if name == "average_precision" else (precision + precision_before) / 2
        total += (hits - before) * counted
        before, precision_before = hits, precision
    return float(total / (weight @ truth))


def derivatives(name: str, data: pl.DataFrame, weight: np.ndarray) -> np.ndarray:
    """What a little more of the weight of each row adds to the area, times the weight, by finite differences."""
    truth, score = data["t"].to_numpy(), data["s"].to_numpy()
    changes = []
    for row in range(len(data)):
        ends = []
        for step in (1e-4, -1e-4):
            moved = weight.copy()
            moved[row] *= 1 + step
            ends.append(area(name, truth, score, moved))
        changes.append((ends[0] - ends[1]) / 2e-4)
    return np.array(changes)


def effective(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())


def standard_error(name: str, data: pl.DataFrame, weight: np.ndarray, unit: np.ndarray) -> float:
    """The error from the derivatives, summed in units; each class has as many as its weights leave."""
    truth, change = data["t"].to_numpy(), derivatives(name, data, weight)
    of_unit = np.zeros(unit.max() + 1)
    for rows in (truth == 1, truth == 0):
        number = effective(np.bincount(unit[rows], weight[rows]))
        of_unit += np.sqrt(number / (number - 1)) * np.bincount(unit[rows], change[rows], len(of_unit))
    return float(np.sqrt((of_unit**2).sum()))


@pytest.mark.parametrize("name", AREAS)
@pytest.mark.parametrize("way", ["rows", "weights", "clusters"])
def test_errors_of_areas_are_those_of_finite_differences(name: str, way: str) -> None:
    data = scored(1, 90)
    weight = data["w"].to_numpy() if way == "weights" else np.ones(len(data))
    unit = (data["c"] if way == "clusters" else data["row"]).to_numpy()
    call: dict[str, Any] = SCORED | {"rows": {}, "weights": {"case_weights": "w"}, "clusters": {"cluster": "c"}}[way]
    result = AREAS[name](data, **call, interval="auto")
    assert result[".estimate"].item() == pytest.approx(area(name, data["t"].to_numpy(), data["s"].to_numpy(), weight))
    assert result[".std_error"].item() == pytest.approx(standard_error(name, data, weight, unit), rel=1e-6)
    assert result[".method"].item() == "influence"


@pytest.mark.parametrize("name", AREAS)
def test_errors_of_areas_are_near_those_of_rows_that_are_left_out(name: str) -> None:
    data = scored(2, 300, digits=6)
    truth, score = data["t"].to_numpy(), data["s"].to_numpy()
    ones = np.ones(len(data))
    without = []
    for row in range(len(data)):
        kept = np.arange(len(data)) != row
        without.append(area(name, truth[kept], score[kept], ones[kept]))
    jackknife = np.sqrt(np.var(without) * (len(data) - 1))
    assert AREAS[name](data, **SCORED, interval="auto")[".std_error"].item() == pytest.approx(jackknife, rel=0.03)


@pytest.mark.parametrize("name", AREAS)
def test_limits_of_areas_are_on_logits_with_half_an_event_below(name: str) -> None:
    data = scored(3, 80)
    (value, low, high, error) = AREAS[name](data, **SCORED, interval="auto").select(
        ".estimate", ".lower", ".upper", ".std_error"
    ).row(0)  # fmt: skip
    truth = data["t"].to_numpy()
    events, rate = truth.sum(), truth.mean()
    part = 0.5 / (events + 0.5)
    centre = (1 - part) * value + part * rate
    spread = np.hypot(error, np.sqrt(0.5) * (value - rate) / (events + 0.5))
    assert low == pytest.approx(special.expit(special.logit(centre) - Z * spread / (centre * (1 - centre))))
    assert high == pytest.approx(special.expit(special.logit(value) + Z * error / (value * (1 - value))))


def test_limits_of_areas_at_the_ends() -> None:
    sure = pl.DataFrame({"t": [1] * 10 + [0] * 10, "s": [0.9] * 10 + [0.1] * 10})
    value, low, high, error = tf.average_precision(sure, **SCORED, interval="auto").select(
        ".estimate", ".lower", ".upper", ".std_error"
    ).row(0)  # fmt: skip
    # nothing has been seen to vary, but half an event has the precision of chance
    assert (value, high, error) == (1, 1, None)
    centre, spread = 1 - 0.5 * 0.5 / 10.5, np.sqrt(0.5) * 0.5 / 10.5
    assert low == pytest.approx(special.expit(special.logit(centre) - Z * spread / (centre * (1 - centre))))
    # a single row of a class does not show how far others vary, and events alone always have 1
    for truth in ([1] + [0] * 9, [0] + [1] * 9, [1] * 10):
        few = pl.DataFrame({"t": truth, "s": np.linspace(0.1, 0.9, 10)})
        result = tf.pr_auc(few, **SCORED, pos_label=1, interval="auto")
        assert result[".estimate"].item() is not None
        assert result.select(".lower", ".upper", ".std_error", ".method").row(0) == (None,) * 4


def test_differences_of_areas_follow_from_limits_and_shared_clusters() -> None:
    data = scored(4, 300).filter(pl.col("g") != "c")
    metric = tf.average_precision.difference("g")
    groups = metric.by_group(data, **SCORED, interval="auto")
    (one, other), (low, low_other) = groups[".estimate"], groups[".lower"]
    high, high_other = groups[".upper"]
    # the larger less the smaller, by MOVER
    if one < other:
        one, low, high, other, low_other, high_other = other, low_other, high_other, one, low, high
    upper = one - other + np.hypot(high - one, other - low_other)
    result = metric(data, **SCORED, interval="auto")
    assert (result[".method"].item(), result[".upper"].item()) == ("mover", pytest.approx(upper))
    # groups with the same rows in each cluster vary together
    one_group = data.filter(pl.col("g") == "a")
    both = pl.concat([one_group, one_group.with_columns(g=pl.lit("b"))])
    shared = tf.average_precision.difference("g", to="b", signed=True)(both, **SCORED, interval="auto", cluster="row")
    alone = tf.average_precision(one_group, **SCORED, interval="auto", cluster="row")
    value, low, high = alone.select(".estimate", ".lower", ".upper").row(0)
    assert shared.select(".estimate", ".std_error").row(0) == (0, pytest.approx(0, abs=1e-7))
    assert shared[".upper"].item() == pytest.approx(abs((high - value) - (value - low)))


def test_ranges_of_areas_and_folds_take_no_replicates() -> None:
    data = scored(5, 600).with_columns(c=pl.col("row") % 5)
    metrics = tf.metric_set(tf.pr_auc.difference("g"), tf.average_precision.ratio("g"), tf.pr_auc.group_minimum("g"))
    result = metrics(data, **SCORED, interval="analytic", group_by="c")
    assert set(result[".method"]) == {"pairwise", "simultaneous, lower end of each group"}


def test_bins_of_scores_do_not_show_the_order_in_them() -> None:
    ways: tuple[dict[str, Any], ...] = ({}, {"cluster": "c"})
    for options in ways:
        with pytest.raises(
            tf.errors.ArgumentError, match="no interval of pr_auc, of which only bins of scores were counted"
        ):
            tf.pr_auc(scored(6, 100), **SCORED, score_bins=20, interval="auto", **options)


# Calibration errors


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


@pytest.mark.simulation
@pytest.mark.parametrize("name", AREAS)
def test_limits_of_areas_cover_the_truth(name: str) -> None:
    random, runs, events, others = np.random.default_rng(14), 400, 20, 80
    truth = np.tile(np.repeat([1, 0], [events, others]), runs)
    score = special.expit(random.normal(size=len(truth)) + 1.5 * truth)
    data = pl.DataFrame({"t": truth, "s": score, "run": np.repeat(np.arange(runs), events + others)})
    many = np.linspace(0.5 / 100_000, 1 - 0.5 / 100_000, 100_000)
    true = average_precision_score(
        np.repeat([1, 0], [100_000, 100_000]),
        np.append(special.ndtri(many) + 1.5, special.ndtri(many)),
        sample_weight=np.repeat([0.2, 0.8], [100_000, 100_000]),
    )
    result = AREAS[name](data, **SCORED, group_by="run", interval="auto")
    covered = ((result[".lower"] <= true) & (true <= result[".upper"])).to_numpy().mean()
    assert covered > 0.917
