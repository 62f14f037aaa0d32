"""Errors of what is fitted or ranked, of weights, and of rows that have not been seen, against other arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from plain_limits import limits_of_area
from scipy import special, stats

import tidyfair as tf

FITS = tf.metric_set(tf.calibration.slope, tf.calibration.intercept)
T = stats.norm.ppf(0.975)


def scored(seed: int, rows: int, clusters: int = 20) -> pl.DataFrame:
    """Scores that are too bold, in clusters that shift them."""
    random = np.random.default_rng(seed)
    cluster = random.integers(0, clusters, rows)
    shift = random.normal(size=clusters)[cluster]
    logit = random.normal(size=rows) + shift
    truth = random.random(rows) < special.expit(0.7 * logit + 0.5 * shift - 0.3)
    return pl.DataFrame(
        {
            "t": truth.astype(int), "s": special.expit(logit), "c": cluster, "w": random.lognormal(0, 1, rows),
            "row": np.arange(rows),
        }
    )  # fmt: skip


def fitted(data: pl.DataFrame, weights: np.ndarray | None = None) -> tuple[Any, Any, Any]:
    """The design of a calibration line, the fitted risks, and the errors of its coefficients by the information."""
    design = sm.add_constant(special.logit(data["s"].to_numpy()))
    model = sm.GLM(data["t"].to_numpy(), design, family=sm.families.Binomial(), var_weights=weights)
    result = model.fit(tol=1e-12)
    return design, result.fittedvalues, result.bse


def errors(result: pl.DataFrame) -> dict[str, float]:
    return dict(result.select(".metric", ".std_error").rows())


# Calibration lines


def test_calibration_lines_have_the_errors_and_limits_of_logistic_regression() -> None:
    data = scored(1, 300)
    result = FITS(data, "t", probs="s", interval="analytic")
    design = sm.add_constant(special.logit(data["s"].to_numpy()))
    fit = sm.Logit(data["t"].to_numpy(), design).fit(disp=0, tol=1e-12)
    limits = fit.conf_int()[::-1]
    assert result[".std_error"].to_list() == pytest.approx(fit.bse[::-1])
    assert result.select(".lower", ".upper").rows() == [pytest.approx(tuple(ends)) for ends in limits]
    assert result[".method"].to_list() == ["information"] * 2


def test_intercept_given_the_slope_has_the_error_of_its_regression() -> None:
    data = scored(2, 200)
    given_slope = tf.metric_tweak(tf.calibration.intercept, "given_slope", slope="one")
    fit = sm.GLM(
        data["t"].to_numpy(), np.ones(200), family=sm.families.Binomial(), offset=special.logit(data["s"].to_numpy())
    ).fit(tol=1e-12)
    result = given_slope(data, "t", probs="s", interval="auto")
    assert result[".std_error"].item() == pytest.approx(fit.bse[0])


def test_weighted_calibration_lines_have_the_sandwich_of_rows_that_are_left_out() -> None:
    data = scored(3, 120)
    weights = data["w"].to_numpy()
    design, risk, _ = fitted(data, weights)
    spread = weights * risk * (1 - risk)
    bread = np.linalg.inv(design.T @ (design * spread[:, None]))
    leverage = spread * np.einsum("ij,jk,ik->i", design, bread, design)
    score = design * (weights * (data["t"].to_numpy() - risk) / (1 - leverage))[:, None]
    # by MacKinnon and White's HC3
    intercept, slope = np.sqrt(np.diag(bread @ score.T @ score @ bread))
    found = errors(FITS(data, "t", probs="s", interval="auto", case_weights="w"))
    assert found == {"calibration_slope": pytest.approx(slope), "calibration_intercept": pytest.approx(intercept)}
    heavier = errors(FITS(data, "t", probs="s", interval="auto", case_weights=(pl.col("w") * 100).alias("heavier")))
    assert heavier == pytest.approx(found)


def test_calibration_lines_of_clusters_are_what_is_left_without_one_of_them() -> None:
    data = scored(4, 200)
    design, risk, _ = fitted(data)
    score, spread = design * (data["t"].to_numpy() - risk)[:, None], risk * (1 - risk)
    changes = []
    for cluster in range(20):
        own = (data["c"] == cluster).to_numpy()
        rest = design[~own].T @ (design[~own] * spread[~own, None])
        changes.append(np.linalg.inv(rest) @ score[own].sum(axis=0))
    intercept, slope = np.sqrt((np.array(changes) ** 2).sum(axis=0))
    result = FITS(data, "t", probs="s", interval="auto", cluster="c")
    assert errors(result) == {
        "calibration_slope": pytest.approx(slope), "calibration_intercept": pytest.approx(intercept)
    }  # fmt: skip
    assert set(result[".method"]) == {"jackknife"}


def freedom_of_area(data: pl.DataFrame) -> float:
    """The degrees of freedom of DeLong's variance, from those of either class (Satterthwaite, 1946)."""
    events, others = (data.filter(t=label)["s"].to_numpy() for label in (1, 0))
    above = (events[:, None] > others) + 0.5 * (events[:, None] == others)
    parts = [
        (above.mean(axis=1).var(ddof=1) / len(events), len(events) - 1),
        (above.mean(axis=0).var(ddof=1) / len(others), len(others) - 1),
    ]
    return sum(variance for variance, _ in parts) ** 2 / sum(variance**2 / freedom for variance, freedom in parts)


def test_rows_that_stand_in_clusters_twice_tell_no_more_than_once() -> None:
    data = scored(5, 80)
    twice = pl.concat([data, data])
    for metric in (tf.calibration.slope, tf.roc_auc):
        once = metric(data, "t", probs="s", interval="auto", cluster="row")
        both = metric(twice, "t", probs="s", interval="auto", cluster="row")
        columns = [".estimate", ".upper", ".std_error"]
        assert both.select(columns).row(0) == pytest.approx(once.select(columns).row(0))
        if metric is tf.calibration.slope:
            assert both[".lower"].item() == pytest.approx(once[".lower"].item())
            continue
        freedom = freedom_of_area(data)
        for result, rows in ((once, data), (both, twice)):
            value, error = result.select(".estimate", ".std_error").row(0)
            # as many rows as would have that error without clusters
            alone = tf.roc_auc(rows, "t", probs="s", interval="auto")[".std_error"].item()
            share, events = min(1.0, (alone / error) ** 2), int(rows["t"].sum())
            others = len(rows) - events
            expected = limits_of_area(value, error, events * share, others * share, stats.t(freedom).ppf(0.975))
            assert (result[".lower"].item(), result[".upper"].item()) == pytest.approx(expected)


def test_six_calibration_metrics_of_groups_take_no_replicates() -> None:
    data = scored(6, 1_000).with_columns(g=pl.col("row") % 5)
    metrics = tf.metric_set(
        tf.calibration.slope, tf.calibration.intercept, tf.calibration.in_the_large, tf.calibration.ratio,
        tf.brier_class, tf.mn_log_loss,
    )  # fmt: skip
    result = metrics(data, "t", probs="s", group_by="g", interval="auto")
    assert result[".lower"].null_count() == 0
    assert set(result[".method"]) == {"information", "jackknife"}
    gap = tf.calibration.slope.difference("g")(data, "t", probs="s", interval="analytic")
    assert gap[".method"].item() == "pairwise"


def test_labels_that_scores_separate_have_neither_value_nor_interval() -> None:
    data = pl.DataFrame({"t": [0, 0, 1, 1], "s": [0.1, 0.2, 0.6, 0.9]})
    result = tf.calibration.slope(data, "t", probs="s", interval="auto", on_undefined="ignore")
    assert result.select(".estimate", ".lower", ".upper").row(0) == (None, None, None)


# Areas of clusters


def obuchowski(data: pl.DataFrame) -> float:
    """The error of an area of clusters that have rows of both classes (Obuchowski, 1997), pair by pair."""
    truth, score, cluster = (data[name].to_numpy() for name in ("t", "s", "c"))
    events, others = score[truth == 1], score[truth == 0]
    above = (events[:, None] > others) + 0.5 * (events[:, None] == others)
    value, counts = above.mean(), (len(events), len(others))
    names = np.unique(cluster)
    of_events = np.array([(above.mean(axis=1) - value)[cluster[truth == 1] == name].sum() for name in names])
    of_others = np.array([(above.mean(axis=0) - value)[cluster[truth == 0] == name].sum() for name in names])
    factor = len(names) / (len(names) - 1)
    s10, s01, s11 = (factor * (one * other).sum() for one, other in (
        (of_events, of_events), (of_others, of_others), (of_events, of_others),
    ))  # fmt: skip
    return math.sqrt(s10 / counts[0] ** 2 + s01 / counts[1] ** 2 + 2 * s11 / (counts[0] * counts[1]))


def test_area_of_clusters_has_the_error_of_obuchowski() -> None:
    data = scored(7, 300).with_columns(s=pl.col("s").round(2))
    result = tf.roc_auc(data, "t", probs="s", interval="analytic", cluster="c")
    assert result[".std_error"].item() == pytest.approx(obuchowski(data))
    assert result[".method"].item() == "delong"


def test_area_of_clusters_of_one_row_has_the_error_of_delong() -> None:
    data = scored(8, 150)
    for weights in ({}, {"case_weights": "w"}):
        options: dict[str, Any] = {"probs": "s", "interval": "auto", **weights}
        alone = tf.roc_auc(data, "t", **options)
        clustered = tf.roc_auc(data, "t", **options, cluster="row")
        # of weights the corrections for the number of rows differ
        assert clustered[".std_error"].item() == pytest.approx(
            alone[".std_error"].item(), rel=0.02 if weights else 1e-9
        )


def test_perfect_area_of_clusters_is_no_surer_than_one_row_of_each() -> None:
    data = scored(9, 400).with_columns(s=pl.col("t") * 0.5 + pl.col("s") * 0.4)
    result = tf.roc_auc(data, "t", probs="s", interval="auto", cluster="c")
    # of the smaller class one row of each cluster
    events = int(data["t"].sum())
    share = 20 / min(events, 400 - events)
    expected = limits_of_area(1, 0, events * share, (400 - events) * share, stats.t(19).ppf(0.975))
    assert result.select(".lower", ".upper").row(0) == pytest.approx(expected, rel=1e-6)


def test_groups_that_are_copies_in_the_same_clusters_differ_for_sure_by_nothing() -> None:
    data = scored(10, 300)
    both = pl.concat([data.with_columns(g=pl.lit("a")), data.with_columns(g=pl.lit("b"))])
    for metric in (tf.roc_auc, tf.calibration.slope):
        gap = metric.difference("g", to="a", signed=True)
        result = gap(both, "t", probs="s", interval="auto", cluster="c")
        assert result.select(".estimate", ".std_error").row(0) == pytest.approx((0, 0), abs=1e-7)


# Weights


def test_mean_with_weights_has_the_freedom_of_bell_and_mccaffrey() -> None:
    random = np.random.default_rng(11)
    data = pl.DataFrame({"y": random.normal(size=30), "p": 0.0, "w": random.lognormal(0, 1.2, 30)})
    share = (data["w"] / data["w"].sum()).to_numpy()
    # what is left of independent normal rows beside their mean, and what the variance makes of it
    left = np.eye(30) - share
    covariance = left @ left.T
    factor = np.diag(share**2 / np.diag(covariance))
    product = factor @ covariance
    of_normal = np.trace(product) ** 2 / np.trace(product @ product)
    freedom = math.sqrt(of_normal * (1 / (share**2).sum() - 1))
    result = tf.mean_truth(data, "y", "p", interval="auto", case_weights="w").row(0, named=True)
    half = (result[".upper"] - result[".lower"]) / 2
    assert half / result[".std_error"] == pytest.approx(stats.t(freedom).ppf(0.975), rel=2e-3)


def test_equal_weights_leave_intervals_as_they_are() -> None:
    random = np.random.default_rng(12)
    data = pl.DataFrame({"y": random.normal(size=12), "p": random.normal(size=12), "w": 3.0})
    people = pl.DataFrame({"t": [1, 0] * 10, "e": [1, 1, 0, 0, 1] * 4, "w": 3.0})
    columns = [".estimate", ".lower", ".upper", ".std_error"]
    for metric, frame, names in (
        (tf.rmse, data, ("y", "p")), (tf.mae, data, ("y", "p")), (tf.sens, people, ("t", "e")),
        (tf.mcc, people, ("t", "e")),
    ):  # fmt: skip
        plain = metric(frame, *names, interval="auto").select(columns).row(0)
        weighted = metric(frame, *names, interval="auto", case_weights="w").select(columns).row(0)
        assert weighted == pytest.approx(plain)


def test_rates_under_heavy_weights_hold_the_truth() -> None:
    random = np.random.default_rng(13)
    runs, rows = 400, 25
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), rows),
            "hired": random.random(runs * rows) < 0.3,
            "w": random.lognormal(0, 1.5, runs * rows),
        }
    )
    result = tf.selection_rate(data, estimate="hired", case_weights="w", group_by="run", interval="auto")
    held = result.select((pl.col(".lower") <= 0.3) & (pl.col(".upper") >= 0.3)).to_series().to_numpy().mean()
    assert held >= 0.93


# Rows that have not been seen


def test_brier_score_of_few_rows_without_events_allows_for_one() -> None:
    score = np.array([0.05, 0.1, 0.02, 0.2, 0.1, 0.08])
    data = pl.DataFrame({"t": [0] * 6, "s": score})
    result = tf.brier_class(data, "t", probs="s", interval="auto", labels=[0, 1], pos_label=1)
    # half a row with the event and half a row without it, with all scores
    squares, event, none = score**2, ((1 - score) ** 2).mean(), (score**2).mean()
    centre = (squares.sum() + event / 2 + none / 2) / 7
    changes = np.array([centre - (7 * centre - square) / 6 for square in squares])
    seen = 5 / 6 * ((changes - changes.mean()) ** 2).sum()
    parts = [(centre - (7 * centre - part / 2) / 6.5) ** 2 / 0.5 for part in (event, none)]
    error = math.sqrt(seen + sum(parts))
    half = stats.t(5).ppf(0.975) * error / (centre * (1 - centre))
    limits = special.expit(special.logit(centre) + np.array([-half, half]))
    assert result[".estimate"].item() == pytest.approx(squares.mean())
    assert result[".std_error"].item() == pytest.approx(error)
    assert result.select(".lower", ".upper").row(0) == pytest.approx(tuple(limits))


def test_perfect_scores_have_an_interval_that_allows_for_an_event() -> None:
    data = pl.DataFrame({"t": [1, 0] * 6, "s": [1.0, 0.0] * 6})
    lower, upper = tf.brier_class(data, "t", probs="s", interval="auto").select(".lower", ".upper").row(0)
    assert lower == 0
    assert 0.05 < upper < 0.4


def test_error_of_few_rows_has_limits_that_allow_for_a_rare_one() -> None:
    random = np.random.default_rng(14)
    errors_of_rows = random.normal(size=10)
    data = pl.DataFrame({"y": errors_of_rows, "p": 0.0})
    squares = errors_of_rows**2
    result = tf.rmse(data, "y", "p", interval="auto").row(0, named=True)
    plain = [math.sqrt(np.delete(squares, row).mean()) for row in range(10)]
    assert result[".std_error"] == pytest.approx(math.sqrt(0.9 * np.var(plain) * 10))
    # below, what leaving out one row changes of the logarithm
    value, logarithms = math.sqrt(squares.mean()), np.log(plain)
    t = stats.t(9).ppf(0.975)
    lower = value * math.exp(-t * math.sqrt(0.9 * ((logarithms - logarithms.mean()) ** 2).sum()))
    # above, half a row with twelve times the mean square, or four times the largest if that is more
    total = squares.sum() + max(12 * squares.mean(), 4 * squares.max()) / 2
    centre = math.sqrt(total / 10.5)
    changes = np.array([centre - math.sqrt((total - square) / 9.5) for square in squares])
    unseen = (centre - math.sqrt(squares.mean())) ** 2 / 0.5
    error = math.sqrt(0.9 * ((changes - changes.mean()) ** 2).sum() + unseen)
    assert (result[".lower"], result[".upper"]) == pytest.approx((lower, centre * math.exp(t * error / centre)))


def limits_of_mean_error(errors: np.ndarray, *, means: float, largest: float) -> tuple[float, float]:
    """Limits of a mean of errors on logarithms; above with half a row of so many means, or of the largest errors."""
    rows, mean = len(errors), errors.mean()
    t = stats.t(rows - 1).ppf(0.975)
    # what leaving out one row changes of the logarithm
    logarithms = np.log((errors.sum() - errors) / (rows - 1))
    lower = math.log(mean) - t * math.sqrt((rows - 1) * logarithms.var())
    centre = (rows * mean + max(means * mean, largest * errors.max()) / 2) / (rows + 0.5)
    total = errors.sum() + max(means * mean, largest * errors.max()) / 2
    without = (total - errors) / (rows - 0.5)
    spread = math.sqrt((rows - 1) * without.var() + (centre - mean) ** 2 / 0.5)
    return math.exp(lower), centre * math.exp(t * spread / centre)


@pytest.mark.parametrize(("metric", "power", "means", "largest"), [(tf.mae, 1, 4, 0), (tf.mse, 2, 12, 4)])
def test_upper_ends_of_mean_errors_alone_allow_for_rare_ones(
    metric: tf.types.Metric, power: int, means: float, largest: float
) -> None:
    errors_of_rows = stats.expon.ppf((np.arange(12) + 0.5) / 12) - 1
    data = pl.DataFrame({"y": errors_of_rows, "p": 0.0})
    expected = limits_of_mean_error(np.abs(errors_of_rows) ** power, means=means, largest=largest)
    result = metric(data, "y", "p", interval="auto").select(".lower", ".upper").row(0)
    assert result == pytest.approx(expected, rel=1e-9)


def test_interval_scores_allow_for_rare_misses() -> None:
    random = np.random.default_rng(17)
    data = pl.DataFrame({"y": random.normal(size=30), "low": -1.3, "high": 1.3})
    truth = data["y"].to_numpy()
    scores = 2.6 + 2 / 0.2 * np.maximum(np.abs(truth) - 1.3, 0)
    interval = tf.prediction_intervals.interval("low", "high", level=0.8)
    result = tf.prediction_intervals.score(data, "y", interval, interval="auto").select(".lower", ".upper").row(0)
    # the penalty may be that of a miss that has not been seen, and the width is what it is
    assert result[0] == pytest.approx(limits_of_mean_error(scores, means=4, largest=0)[0], rel=1e-9)
    assert result[1] > limits_of_mean_error(scores, means=0, largest=0)[1]


def test_many_rows_hardly_feel_what_has_not_been_seen() -> None:
    random = np.random.default_rng(15)
    data = pl.DataFrame({"y": random.normal(size=20_000), "p": 0.0})
    result = tf.mae(data, "y", "p", interval="auto").row(0, named=True)
    half = (result[".upper"] - result[".lower"]) / 2
    assert half / result[".std_error"] == pytest.approx(T, rel=0.02)
    of_squares = tf.rmse(data, "y", "p", interval="auto").row(0, named=True)
    assert (of_squares[".estimate"] - of_squares[".lower"]) / of_squares[".std_error"] == pytest.approx(T, rel=0.02)
    # a square four times the largest is still rare and large
    of_many = tf.mse(data, "y", "p", interval="auto").row(0, named=True)
    _, upper = limits_of_mean_error(data["y"].to_numpy() ** 2, means=12, largest=4)
    assert of_many[".upper"] == pytest.approx(upper, rel=1e-9)


def test_constant_errors_are_not_enough_to_know_how_far_they_vary() -> None:
    data = pl.DataFrame({"y": np.arange(8.0), "p": np.arange(8.0) + 1})
    result = tf.rmse(data, "y", "p", interval="auto")
    assert result.select(".estimate", ".lower", ".upper").row(0) == (1.0, None, None)
