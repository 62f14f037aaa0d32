"""Curves over a feature equal local fits by least squares, and their bands hold the whole curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.inference import feature_curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

AT = [25.0, 40.0, 55.0]


def people(seed: int, rows: int = 1_500) -> pl.DataFrame:
    """Ages in whole years, so that each is a bin, and decisions that depend on them."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, rows)
    truth = random.random(rows) < 0.5
    chance = np.where(truth, 1 / (1 + np.exp(-(age - 30) / 15)), 0.2)
    return pl.DataFrame({
        "age": age, "y": truth, "e": random.random(rows) < chance, "t": random.normal(size=rows),
        "n": random.normal(size=rows) + age / 20, "g": random.choice(["a", "b"], rows),
        "w": random.integers(1, 4, rows), "p": random.random(rows),
    })  # fmt: skip


def fitted(x: NDArray[Any], value: NDArray[Any], weight: NDArray[Any], at: float, span: float) -> float:
    """The height at a point of the parabola by least squares, with tricube weights of the nearest rows."""
    away = np.abs(x - at)
    order = np.argsort(away, kind="stable")
    width = away[order][np.searchsorted(np.cumsum(weight[order]), span * weight.sum())]
    kernel = (1 - np.minimum(away / width, 1) ** 3) ** 3 * weight
    return float(np.polynomial.Polynomial.fit(x - at, value, 2, w=np.sqrt(kernel)).convert().coef[0])


@pytest.mark.parametrize("weight", [None, "w"])
def test_rates_are_quotients_of_local_fits(weight: str | None) -> None:
    rows = people(1)
    curve = feature_curve(tf.sens, "age", at=AT, span=0.4)(rows, "y", "e", case_weights=weight)
    x, y, e = (rows[name].to_numpy().astype(float) for name in ("age", "y", "e"))
    of_row = rows[weight].to_numpy().astype(float) if weight else np.ones(len(x))
    expected = [fitted(x, y * e, of_row, at, 0.4) / fitted(x, y, of_row, at, 0.4) for at in AT]
    assert curve[".estimate"].to_list() == pytest.approx(expected, rel=1e-6)
    assert curve.select(".metric", ".by", ".at").rows() == [("sens", "age", at) for at in AT]


def test_means_of_errors_are_local_fits() -> None:
    rows = people(2)
    curve = feature_curve(tf.mse, "age", at=AT, span=0.4)(rows, "t", "n")
    x, error = rows["age"].to_numpy().astype(float), ((rows["t"] - rows["n"]) ** 2).to_numpy()
    expected = [fitted(x, error, np.ones(len(x)), at, 0.4) for at in AT]
    assert curve[".estimate"].to_list() == pytest.approx(expected, rel=1e-6)


@pytest.mark.simulation
def test_errors_of_means_of_errors_are_their_standard_deviation_over_samples() -> None:
    curve = feature_curve(tf.mse, "age", at=AT, span=0.4)(people(2), "t", "n")
    drawn = [feature_curve(tf.mse, "age", at=AT, span=0.4)(people(seed), "t", "n")[".estimate"] for seed in range(60)]
    spread = np.std([own.to_list() for own in drawn], axis=0)
    assert curve[".std_error"].to_list() == pytest.approx(spread.tolist(), rel=0.3)


def test_scores_have_curves_and_ranks_have_none() -> None:
    rows = people(3)
    curve = feature_curve(tf.brier_class, "age", at=AT, span=0.4)(rows, "y", probs="p")
    x, error = rows["age"].to_numpy().astype(float), ((rows["y"] - rows["p"]) ** 2).to_numpy()
    expected = [fitted(x, error, np.ones(len(x)), at, 0.4) for at in AT]
    assert curve[".estimate"].to_list() == pytest.approx(expected, rel=1e-6)
    decided = feature_curve(tf.selection_rate, "age", at=AT)(rows, probs="p", threshold=0.5, pos_label=True)
    assert decided[".estimate"].is_between(0.3, 0.7).all()
    anything: Any = "sens"
    others: list[Any] = [tf.roc_auc, tf.median_absolute_error, anything, tf.sens.difference("g")]
    for metric in others:
        with pytest.raises(tf.errors.ArgumentError, match="takes a metric of counts or sums"):
            feature_curve(metric, "age")


def test_a_straight_line_is_met_at_both_ends() -> None:
    rows = pl.DataFrame({"x": np.linspace(0, 1, 400), "t": np.zeros(400)}).with_columns(e=2 + 3 * pl.col("x"))
    curve = feature_curve(tf.mae, "x", at=[0.01, 0.5, 0.99])(rows, "t", "e")
    assert curve[".estimate"].to_list() == pytest.approx([2.03, 3.5, 4.97], abs=0.01)


def test_outer_groups_have_curves_of_their_own_in_every_engine(engine: Callable[[pl.DataFrame], Any]) -> None:
    rows = people(4, 400).with_columns(age=pl.when(pl.int_range(pl.len()) % 31 != 4).then("age").cast(pl.Float64))
    curve = feature_curve(tf.accuracy, "age", at=AT, span=0.5)
    try:
        together = as_polars(curve(engine(rows), "y", "e", group_by="g"))
    except tf.errors.EngineError:
        pytest.skip("an engine without quantiles says so")
    # the fine bins are those of all rows, of which each is an age
    for group in ("a", "b"):
        own = together.filter(g=group).drop("g")
        assert_frame_equal(own, curve(rows.filter(g=group), "y", "e"), rel_tol=1e-6)


def test_clusters_of_one_row_change_little_and_large_ones_widen() -> None:
    rows = people(5).with_row_index("row").with_columns(three=pl.col("row") // 3)
    curve = feature_curve(tf.sens, "age", at=AT)
    alone, single = curve(rows, "y", "e"), curve(rows, "y", "e", cluster="row")
    assert single[".std_error"].to_list() == pytest.approx(alone[".std_error"].to_list(), rel=1e-3)
    tripled = pl.concat([rows] * 3)
    of_three = curve(tripled, "y", "e", cluster="row")[".std_error"]
    assert of_three.to_list() == pytest.approx(alone[".std_error"].to_list(), rel=0.2)


def test_bands_are_wider_than_intervals_and_end_where_rates_do() -> None:
    rows = people(6).with_columns(e=pl.when(pl.col("age") > 60).then(pl.col("y")).otherwise("e"))
    curve = feature_curve(tf.sens, "age")(rows, "y", "e")
    known = curve.filter(pl.col(".std_error") > 0)
    assert (known[".upper"] - known[".lower"] > 2 * 1.96 * known[".std_error"] * 0.9).any()
    assert curve.select(pl.col(".lower", ".estimate", ".upper").is_between(0, 1).all()).row(0) == (True,) * 3
    # nobody above 60 is missed, which does not mean that nobody could be
    oldest = curve.filter(pl.col(".at") > 70)
    assert (oldest[".upper"] > 0.99).all()
    assert (oldest[".lower"] < 0.99).all()
    assert len(curve) == 50


def test_settings_that_a_curve_cannot_use_are_refused() -> None:
    rows = people(7, 200)
    with pytest.raises(tf.errors.ColumnError, match="the column 'g' is String"):
        feature_curve(tf.sens, "g")(rows, "y", "e")
    with pytest.raises(tf.errors.ArgumentError, match="`interval`: its band has a method of its own"):
        feature_curve(tf.sens, "age")(rows, "y", "e", interval="auto")
    with pytest.raises(tf.errors.ArgumentError, match="`span` is a number between 0 and 1"):
        feature_curve(tf.sens, "age", span=1.5)
    with pytest.raises(tf.errors.ArgumentError, match="does not accept a list of values for threshold"):
        feature_curve(tf.sens, "age")(rows, "y", probs="p", threshold=[0.2, 0.5])


@pytest.mark.simulation
@pytest.mark.parametrize("seed", [0])
def test_bands_hold_the_whole_curve(seed: int) -> None:
    at = np.linspace(20, 78, 30)
    true = 1 / (1 + np.exp(-(at - 30) / 15))
    held = 0
    samples = pl.concat(people(1_000 * seed + number, 2_000).with_columns(run=number) for number in range(200))
    curves = feature_curve(tf.sens, "age", at=at.tolist())(samples, "y", "e", group_by="run")
    assert curves["run"].n_unique() == 200
    for curve in curves.partition_by("run"):
        lower, upper = (curve[end].to_numpy() for end in (".lower", ".upper"))
        held += bool(((lower <= true) & (true <= upper)).all())
    assert 0.91 <= held / 200 <= 0.99
