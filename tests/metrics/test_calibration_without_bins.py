"""Calibration without bins: cumulative errors and curves, and the decomposition by isotonic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from inline_snapshot import snapshot
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import tidyfair as tf

calibration = tf.calibration


def rows(seed: int, *, ties: bool, size: int = 300) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    score = random.integers(1, 10, size) / 10 if ties else random.random(size)
    return pl.DataFrame(
        {
            "truth": (random.random(size) < score**1.5).astype(int),
            "score": score,
            "weight": random.choice([0.0, 0.5, 1.0, 2.5], size),
            "group": random.choice(["a", "b", "c"], size, p=[0.7, 0.2, 0.1]),
        }
    )


def parts_of(data: pl.DataFrame, *, weighted: bool) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    data = data if weighted else data.with_columns(weight=1.0)
    return {
        str(key): (part["truth"].to_numpy(), part["score"].to_numpy(), part["weight"].to_numpy())
        for (key,), part in data.group_by("group")
    }


def values_of(metric: tf.types.Metric, data: pl.DataFrame, *, weighted: bool) -> dict[str, float]:
    weights: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    groups = metric.difference("group").by_group(data, "truth", probs="score", **weights)
    return dict(groups.select(".group", ".estimate").rows())


EVERY = pytest.mark.parametrize(("seed", "ties", "weighted"), [(1, False, False), (2, True, False), (3, True, True)])


@EVERY
def test_cumulative_error_equals_plain_sums(*, seed: int, ties: bool, weighted: bool) -> None:
    data = rows(seed, ties=ties)
    errors = values_of(calibration.cumulative_error, data, weighted=weighted)
    chance = values_of(calibration.cumulative_error_if_calibrated, data, weighted=weighted)
    for group, (truth, score, weight) in parts_of(data, weighted=weighted).items():
        # rows with the same score have no order: their differences are taken together
        heights = [0.0] + [float((weight * (truth - score))[score <= cut].sum()) for cut in np.unique(score)]
        assert errors[group] == pytest.approx((max(heights) - min(heights)) / weight.sum(), rel=1e-12)
        deviation = np.sqrt((weight**2 * score * (1 - score)).sum()) / weight.sum()
        assert chance[group] == pytest.approx(np.sqrt(8 / np.pi) * deviation, rel=1e-12)


@EVERY
@pytest.mark.parametrize("loss", ["brier", "log"])
def test_decomposition_equals_losses_of_scikit_learn(*, seed: int, ties: bool, weighted: bool, loss: Any) -> None:
    data = rows(seed, ties=ties)
    metrics = {
        "miscalibration": calibration.miscalibration,
        "discrimination": calibration.discrimination,
        "uncertainty": calibration.uncertainty,
    }
    values = {
        name: values_of(tf.metric_tweak(metric, name, loss=loss), data, weighted=weighted)
        for name, metric in metrics.items()
    }
    total = values_of(tf.brier_class if loss == "brier" else tf.mn_log_loss, data, weighted=weighted)
    for group, (truth, score, weight) in parts_of(data, weighted=weighted).items():
        isotonic: Any = IsotonicRegression(out_of_bounds="clip")
        recalibrated = isotonic.fit(score, truth, sample_weight=weight).predict(score)
        function: Any = brier_score_loss if loss == "brier" else log_loss
        share = np.full(len(truth), np.average(truth, weights=weight))
        plain, pooled, constant = (
            function(truth, forecast, sample_weight=weight) for forecast in (score, recalibrated, share)
        )
        assert values["miscalibration"][group] == pytest.approx(plain - pooled, abs=1e-9)
        assert values["discrimination"][group] == pytest.approx(constant - pooled, abs=1e-9)
        assert values["uncertainty"][group] == pytest.approx(constant, abs=1e-9)
        parts = values["miscalibration"][group] - values["discrimination"][group] + values["uncertainty"][group]
        assert parts == pytest.approx(total[group], abs=1e-12)


def test_consistency_bands_are_those_of_drawn_events() -> None:
    random = np.random.default_rng(4)
    score = random.beta(0.8, 1.2, 300).round(2)
    data = pl.DataFrame({"score": score, "truth": random.random(300) < score})
    order = np.argsort(score)
    drawn = random.random((1_000, 300)) < score[order]
    fits = np.array([IsotonicRegression().fit_transform(score[order], events) for events in drawn])
    for level in (0.95, 0.8):
        curve = calibration.curve(data, "truth", probs="score", binning="isotonic", conf_level=level)
        limits = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
        for low, high, *own in curve.select(".lowest_score", ".highest_score", ".lower", ".upper").rows():
            inside = (score[order] >= low) & (score[order] <= high)
            assert own == pytest.approx(limits[:, inside].mean(axis=1).tolist(), abs=0.04)
    assert curve[".conf_level"].unique().to_list() == [0.8]
    # the same call has the same draws, and weights are no counts of events
    assert curve.equals(calibration.curve(data, "truth", probs="score", binning="isotonic", conf_level=0.8))
    weights = data.with_columns(weight=2.0)
    weighted = calibration.curve(weights, "truth", probs="score", binning="isotonic", case_weights="weight")
    assert weighted.select(".lower", ".upper").null_count().row(0) == (len(weighted), len(weighted))


@pytest.mark.simulation
@pytest.mark.parametrize(("rows_of_curve", "digits"), [(100, 6), (1_000, 1)])
def test_consistency_bands_hold_calibrated_scores(rows_of_curve: int, digits: int) -> None:
    random = np.random.default_rng(rows_of_curve)
    times = 60_000 // rows_of_curve
    score = random.beta(0.8, 1.2, times * rows_of_curve).round(digits)
    draw = np.repeat(np.arange(times), rows_of_curve)
    inside = pl.col(".event_rate").is_between(pl.col(".lower") - 1e-12, pl.col(".upper") + 1e-12)
    shares: list[float] = []
    for probability in (score, score**1.5):
        data = pl.DataFrame({"draw": draw, "score": score, "truth": random.random(len(score)) < probability})
        curve = calibration.curve(data, "truth", probs="score", binning="isotonic", group_by="draw")
        shares.append(curve.select((inside * pl.col(".n")).sum() / pl.col(".n").sum()).item())
    assert 0.94 < shares[0] < 0.985
    assert shares[1] < shares[0] - 0.05


@EVERY
def test_isotonic_bins_are_those_of_scikit_learn(*, seed: int, ties: bool, weighted: bool) -> None:
    data = rows(seed, ties=ties)
    weights: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    curve = calibration.curve(data, "truth", probs="score", group_by="group", binning="isotonic", **weights)
    for group, (truth, score, weight) in parts_of(data, weighted=weighted).items():
        bins = curve.filter(group=group)
        counted = weight > 0
        isotonic: Any = IsotonicRegression()
        fitted = isotonic.fit(score[counted], truth[counted], sample_weight=weight[counted]).predict(score)
        assert bins[".bin"].to_list() == [*range(1, len(np.unique(fitted[counted].round(9))) + 1)]
        for low, high, mean, rate, size in bins.select(
            ".lowest_score", ".highest_score", ".mean_score", ".event_rate", ".n"
        ).rows():
            inside = counted & (score >= low) & (score <= high)
            assert inside.sum() == size
            assert fitted[inside] == pytest.approx(rate, abs=1e-9)
            assert mean == pytest.approx(np.average(score[inside], weights=weight[inside]))


@EVERY
def test_cumulative_curve_equals_plain_sums(*, seed: int, ties: bool, weighted: bool) -> None:
    data = rows(seed, ties=ties)
    weights: dict[str, Any] = {"case_weights": "weight"} if weighted else {}
    curve = calibration.cumulative_curve(data, "truth", probs="score", group_by="group", **weights)
    errors = values_of(calibration.cumulative_error, data, weighted=weighted)
    for group, (truth, score, weight) in parts_of(data, weighted=weighted).items():
        points = curve.filter(group=group).drop("group")
        assert points.row(0) == (-np.inf, 0.0, 0.0, 0.0)
        height = points[".cumulative_error"].to_numpy()
        assert np.ptp(height) == pytest.approx(errors[group], rel=1e-12)
        for cut, share, error, deviation in points.rows()[1:]:
            below = score <= cut
            assert share == pytest.approx(weight[below].sum() / weight.sum())
            assert error == pytest.approx((weight * (truth - score))[below].sum() / weight.sum(), abs=1e-14)
            variance = (weight**2 * score * (1 - score))[below].sum()
            assert deviation == pytest.approx(np.sqrt(variance) / weight.sum())


def test_several_labels_are_read_one_by_one() -> None:
    random = np.random.default_rng(4)
    scores = random.dirichlet([1, 1, 1], 200)
    truth = np.array([random.choice(["x", "y", "z"], p=row) for row in scores])
    data = pl.DataFrame({"truth": truth, **dict(zip("xyz", scores.T, strict=True))})
    columns: Any = {"x": "x", "y": "y", "z": "z"}
    curve = calibration.cumulative_curve(data, "truth", probs=columns)
    heights = curve.group_by(".level").agg(pl.col(".cumulative_error").max() - pl.col(".cumulative_error").min())
    average = calibration.cumulative_error(data, "truth", probs=columns)
    assert average[".estimator"].item() == "macro"
    assert average[".estimate"].item() == pytest.approx(heights[".cumulative_error"].mean())


def test_groups_without_rows_are_undefined() -> None:
    data = pl.DataFrame({"truth": [1, 0, 1], "score": [0.5, 0.2, None], "group": ["a", "a", "b"]})
    for metric in (calibration.cumulative_error, calibration.miscalibration, calibration.discrimination):
        groups = metric.difference("group").by_group(data, "truth", probs="score", on_undefined="ignore")
        assert groups.select(".group", ".status").rows() == [("a", "ok"), ("b", "zero_denominator")]
    assert calibration.cumulative_curve(data, "truth", probs="score", group_by="group")["group"].unique().to_list() == [
        "a"
    ]


def test_refusals_name_the_way_out() -> None:
    data = rows(1, ties=True)

    def message(**options: Any) -> str:
        with pytest.raises(tf.errors.ArgumentError) as error:
            calibration.curve(data.with_columns(score=pl.col("score") * 2), "truth", probs="score", **options)
        return str(error.value)

    assert message(binning="isotonic", bins=5) == snapshot(
        'calibration_curve: `binning="isotonic"` takes its bins from the data; leave out `bins`.'
    )
    assert message(binning="isotonic") == snapshot(
        '`probs`: scores from 0.2 to 1.8 are not probabilities; use binning="count".'
    )
    assert message(binning="isotonic", conf_level=0.9, case_weights="score") == snapshot(
        "calibration_curve: limits are of rows that count alike, without weights; leave out `conf_level`."
    )
    assert message(binning="isotonic", bins=None, conf_level=2) == snapshot(
        "`conf_level` is a number between 0 and 1, not 2; 2 percent is 0.02."
    )
    assert message(binning="none") == snapshot("`binning=` must be 'width', 'count' or 'isotonic', not 'none'.")
    with pytest.raises(tf.errors.ArgumentError) as error:
        calibration.cumulative_curve(data.with_columns(score=pl.col("score") * 2), "truth", probs="score")
    assert str(error.value) == snapshot("`probs`: scores from 0.2 to 1.8 are not probabilities.")
    with pytest.raises(tf.errors.ArgumentError) as error:
        calibration.cumulative_curve(data, "truth", probs="score", thresholds=[0.5])
    assert str(error.value) == snapshot(
        "Unknown argument of cumulative_calibration_curve() 'thresholds'. Here `thresholds` is `threshold=`."
    )
    with pytest.raises(tf.errors.ArgumentError) as error:
        tf.metric_tweak(calibration.miscalibration, "other", loss="squared")
    assert str(error.value) == snapshot("`loss=` must be 'brier' or 'log', not 'squared'.")
    with pytest.raises(tf.errors.ArgumentError) as error:
        calibration.cumulative_error(data, "truth", probs="score", interval="auto")
    assert str(error.value) == snapshot(
        "There is no interval of cumulative_calibration_error, which chance makes larger, in resamples too: "
        "`inference.multicalibration_test` has its p-value; leave `interval=` out, or ask for the others alone."
    )
