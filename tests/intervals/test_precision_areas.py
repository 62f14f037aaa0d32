"""Limits of areas under the precision-recall curve, against plain arithmetic and simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special
from scored_rows import SCORED, Z, effective, scored
from sklearn.metrics import average_precision_score

import tidyfair as tf

AREAS = {"average_precision": tf.average_precision, "pr_auc": tf.pr_auc}


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
