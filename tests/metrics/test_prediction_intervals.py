"""Metrics of prediction intervals and quantiles against their definitions, row by row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
from plain_limits import wilson_with_few
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.metrics import prediction_intervals

LEVEL = 0.8
INTERVAL = tf.prediction_intervals.interval("low", "high", level=LEVEL)
QUANTILES = {0.1: "low", 0.5: "middle", 0.9: "high"}
ALL = tf.get_metrics("interval")
OF_QUANTILES = tf.metric_set(
    tf.prediction_intervals.weighted_interval_score,
    tf.prediction_intervals.quantile_loss,
    tf.prediction_intervals.quantile_coverage_error,
)


def forecasts(rows: int = 60, seed: int = 0) -> pl.DataFrame:
    """Rows with truths on the ends of their intervals, below and above them."""
    random = np.random.default_rng(seed)
    low = random.integers(0, 10, rows) / 2
    high = low + random.integers(0, 10, rows) / 2
    return pl.DataFrame(
        {
            "y": low + random.integers(-2, 12, rows) / 2, "low": low, "high": high,
            "middle": low + (high - low) * random.random(rows), "group": random.choice(["a", "b", "c"], rows),
            "fold": random.integers(1, 3, rows), "weight": random.integers(1, 4, rows),
        }
    )  # fmt: skip


def loss(y: float, quantile: float, level: float) -> float:
    return max(level * (y - quantile), (level - 1) * (y - quantile))


def by_hand(rows: pl.DataFrame, quantiles: dict[float, str]) -> dict[tuple[str, float | None], float]:
    """All metrics as weighted means of what they are of a row."""
    values: dict[tuple[str, float | None], list[float]] = {}
    for row in rows.to_dicts():
        y, low, high = row["y"], row["low"], row["high"]
        of_row: dict[tuple[str, float | None], float] = {
            ("interval_coverage", None): low <= y <= high,
            ("interval_coverage_error", None): (low <= y <= high) - LEVEL,
            ("interval_misses_below", None): y < low,
            ("interval_misses_above", None): y > high,
            ("interval_width", None): high - low,
            ("interval_score", None): high - low + 2 / (1 - LEVEL) * (max(low - y, 0) + max(y - high, 0)),
            ("weighted_interval_score", None): 2
            * sum(loss(y, row[name], level) for level, name in quantiles.items()) / len(quantiles),
        }  # fmt: skip
        for level, name in quantiles.items():
            of_row["quantile_loss", level] = loss(y, row[name], level)
            of_row["quantile_coverage_error", level] = (y <= row[name]) - level
        for key, value in of_row.items():
            values.setdefault(key, []).append(value)
    return {key: float(np.average(of_rows, weights=rows["weight"])) for key, of_rows in values.items()}


def numbers(result: pl.DataFrame) -> dict[tuple[str, float | None], float]:
    columns = result.select(".metric", ".quantile_level", ".estimate")
    return {(name, level if level is None else round(level, 9)): value for name, level, value in columns.rows()}


def test_every_metric_of_intervals_equals_its_definition_row_by_row() -> None:
    rows = forecasts()
    expected = by_hand(rows, {0.1: "low", 0.9: "high"})
    assert {name for name, _ in expected} == {*prediction_intervals.__all__} - {"winkler_score"}
    assert numbers(ALL(rows, "y", INTERVAL, case_weights="weight")) == pytest.approx(expected, rel=1e-12)


def test_quantiles_have_a_row_for_each_level_and_null_for_all_of_them() -> None:
    rows = forecasts()
    result = OF_QUANTILES(rows, "y", dict(reversed(QUANTILES.items())), case_weights="weight", group_by="fold")
    assert result.columns == ["fold", ".metric", ".by", ".estimator", ".quantile_level", ".estimate"]
    for fold in (1, 2):
        own = numbers(result.filter(fold=fold))
        expected = by_hand(rows.filter(fold=fold), QUANTILES)
        assert own == pytest.approx({key: expected[key] for key in own}, rel=1e-12)
    one = tf.metric_set(tf.prediction_intervals.coverage, tf.prediction_intervals.weighted_interval_score)(
        rows, "y", INTERVAL
    )
    assert ".quantile_level" not in one.columns


def test_ends_of_an_interval_are_at_the_levels_of_the_same_quantiles() -> None:
    for level, ends in ((0.9, (0.05, 0.95)), (0.8, (0.1, 0.9)), (0.95, (0.025, 0.975)), (0.68, (0.16, 0.84))):
        interval = tf.prediction_intervals.interval("low", "high", level=level)
        losses = tf.prediction_intervals.quantile_loss(forecasts(), "y", interval)
        assert losses[".quantile_level"].to_list() == list(ends)
        assert_frame_equal(
            losses,
            tf.prediction_intervals.quantile_loss(forecasts(), "y", dict(zip(ends, ("low", "high"), strict=True))),
        )


def test_weighted_interval_score_is_made_of_interval_scores() -> None:
    rows = forecasts()
    score = tf.prediction_intervals.weighted_interval_score(rows, "y", QUANTILES)[".estimate"].item()
    of_interval = tf.prediction_intervals.winkler_score(rows, "y", INTERVAL)[".estimate"].item()
    error = tf.mae(rows, "y", "middle")[".estimate"].item()
    assert score == pytest.approx((error / 2 + (1 - LEVEL) / 2 * of_interval) / 1.5, rel=1e-12)


def test_quantile_loss_is_pinball_loss() -> None:
    result = tf.prediction_intervals.quantile_loss(forecasts(), "y", {0.9: "high"})[".estimate"].item()
    tilted = tf.metric_tweak(tf.prediction_intervals.pinball_loss, "at_0.9", quantile=0.9)
    assert result == pytest.approx(tilted(forecasts(), "y", "high")[".estimate"].item(), rel=1e-12)


def test_groups_are_compared() -> None:
    rows = forecasts(90)
    gaps = tf.metric_set(
        tf.prediction_intervals.equalized_coverage("group"), tf.prediction_intervals.width.ratio("group", to="a")
    )
    by_group = {
        group: by_hand(rows.filter(group=group).with_columns(weight=1), {0.1: "low", 0.9: "high"}) for group in "abc"
    }
    shares = [values["interval_coverage", None] for values in by_group.values()]
    result = gaps(rows, "y", INTERVAL)
    assert result[".estimate"][0] == pytest.approx(max(shares) - min(shares), rel=1e-12)
    groups = tf.prediction_intervals.quantile_loss.difference("group").by_group(rows, "y", QUANTILES)
    assert groups.select(".group", ".quantile_level").rows() == [
        (group, level) for level in QUANTILES for group in "abc"
    ]  # fmt: skip
    for group, level, value in groups.select(".group", ".quantile_level", ".estimate").rows():
        expected = by_hand(rows.filter(group=group).with_columns(weight=1), QUANTILES)
        assert value == pytest.approx(expected["quantile_loss", level], rel=1e-12)


def test_weights_and_frequencies_are_repeated_intervals() -> None:
    rows = forecasts(40)
    repeated = rows.select(pl.all().repeat_by("weight").explode())
    expected = ALL(repeated, "y", INTERVAL)
    for role in ("case_weights", "frequency_weights"):
        weights: dict[str, Any] = {role: "weight"}
        assert_frame_equal(ALL(rows, "y", INTERVAL, **weights), expected, rel_tol=1e-12)


def test_rows_without_an_end_or_a_truth_are_left_out() -> None:
    rows = forecasts().with_row_index("row")
    holes = rows.with_columns(
        y=pl.when(pl.col("row") != 3).then("y"), low=pl.when(pl.col("row") != 5).then("low"),
        high=pl.when(pl.col("row") != 7).then("high"),
    )  # fmt: skip
    complete = holes.drop_nulls(["y", "low", "high"])
    of_one = {"interval_width", "quantile_loss", "quantile_coverage_error"}
    of_both = tf.metric_set(*(metric for metric in ALL if metric.name not in of_one))
    assert_frame_equal(of_both(holes, "y", INTERVAL), of_both(complete, "y", INTERVAL))
    # the length of an interval needs no truth
    width = float((complete["high"] - complete["low"]).sum() + rows["high"][3] - rows["low"][3]) / (len(complete) + 1)
    assert tf.prediction_intervals.width(holes, "y", INTERVAL)[".estimate"].item() == pytest.approx(width, rel=1e-12)
    strict = of_both(holes, "y", INTERVAL, na_rm=False, explain=True, on_undefined="ignore")
    assert set(strict[".status"]) == {"missing_values"}
    assert tf.prediction_intervals.width(holes, estimate=INTERVAL)[".estimate"].item() == pytest.approx(
        width, rel=1e-12
    )


def test_each_level_has_the_rows_with_its_quantile() -> None:
    holes = forecasts().with_columns(
        low=pl.when(pl.int_range(60) % 4 > 0).then("low"), high=pl.when(pl.int_range(60) % 7 > 0).then("high")
    )
    of_levels = tf.metric_set(tf.prediction_intervals.quantile_loss, tf.prediction_intervals.quantile_coverage_error)
    options: dict[str, Any] = {"group_by": "fold", "interval": "auto", "explain": True}
    together = of_levels(holes, "y", QUANTILES, **options)
    for level, column in QUANTILES.items():
        alone = of_levels(holes, "y", {level: column}, **options)
        assert_frame_equal(together.filter(pl.col(".quantile_level") == level), alone)
    complete = holes.drop_nulls()
    score = tf.prediction_intervals.weighted_interval_score(holes, "y", QUANTILES, explain=True)
    assert_frame_equal(score, tf.prediction_intervals.weighted_interval_score(complete, "y", QUANTILES, explain=True))


def test_tallies_of_batches_add_up() -> None:
    rows, both = forecasts(), tf.metric_set(ALL, ALL.difference("group"))
    parts = [both.tally(part, "y", INTERVAL) for part in (rows[:20], rows[20:])]
    assert_frame_equal(both.compute(parts[0] + parts[1]), both(rows, "y", INTERVAL), rel_tol=1e-12)
    seen = tf.Accumulator(both, "y", INTERVAL)
    for part in (rows[:20], rows[20:]):
        seen.update(part)
    assert_frame_equal(seen.compute(), both(rows, "y", INTERVAL), rel_tol=1e-12)


def test_intervals_and_quantiles_are_given_as_arrays() -> None:
    rows = forecasts()
    ends = tf.prediction_intervals.interval(rows["low"].to_numpy(), rows["high"].to_list(), level=LEVEL)
    assert_frame_equal(ALL.arrays(rows["y"].to_numpy(), ends), ALL(rows, "y", INTERVAL))
    quantiles = {level: rows[name].to_numpy() for level, name in QUANTILES.items()}
    assert_frame_equal(OF_QUANTILES.arrays(rows["y"].to_numpy(), quantiles), OF_QUANTILES(rows, "y", QUANTILES))


def test_interval_is_a_value() -> None:
    again = tf.prediction_intervals.interval("low", "high", level=LEVEL)
    assert again == INTERVAL
    assert hash(again) == hash(INTERVAL)
    assert pickle.loads(pickle.dumps(INTERVAL)) == INTERVAL  # noqa: S301 - our own


def test_coverage_has_limits_of_a_share_and_others_those_of_a_mean() -> None:
    rows = forecasts()
    result = ALL(rows, "y", INTERVAL, interval="auto")
    methods = dict(result.select(".metric", ".method").rows())
    shares = {"interval_coverage", "interval_misses_below", "interval_misses_above"}
    assert {name for name, method in methods.items() if method == "wilson"} == shares
    assert {method for name, method in methods.items() if name not in shares} == {"jackknife"}
    coverage = result.filter(pl.col(".metric") == "interval_coverage")
    covered = int(((rows["low"] <= rows["y"]) & (rows["y"] <= rows["high"])).sum())
    assert coverage.select(".lower", ".upper").row(0) == pytest.approx(wilson_with_few(covered, len(rows)))
    everywhere = tf.prediction_intervals.coverage(
        rows.with_columns(low=-99.0, high=99.0), "y", INTERVAL, interval="auto"
    )
    assert everywhere[".estimate"].item() == 1
    assert 0.9 < everywhere[".lower"].item() < 1
    score = result.filter(pl.col(".metric") == "interval_width")
    error = float(np.std((rows["high"] - rows["low"]).to_numpy(), ddof=1)) / np.sqrt(len(rows))
    assert score[".std_error"].item() == pytest.approx(error, rel=1e-9)
    drawn = tf.prediction_intervals.score(rows, "y", INTERVAL, interval="bootstrap", times=400)
    expected = result.filter(pl.col(".metric") == "interval_score")[".std_error"].item()
    assert drawn[".std_error"].item() == pytest.approx(expected, rel=0.2)


def test_replicate_weights_give_the_error_of_quantiles() -> None:
    random, rows = np.random.default_rng(1), forecasts(100)
    names = [f"replicate {number}" for number in range(10)]
    rows = rows.with_columns(**{name: random.exponential(1, len(rows)) for name in names})
    design = tf.surveys.replicate_weights(weights="weight", replicates=names, method="bootstrap")
    both = tf.metric_set(tf.prediction_intervals.quantile_loss, tf.prediction_intervals.weighted_interval_score)
    result = both(rows, "y", QUANTILES, design=design, interval="auto")
    values = [both(rows, "y", QUANTILES, case_weights=name)[".estimate"].to_numpy() for name in names]
    errors = np.sqrt(((np.stack(values) - result[".estimate"].to_numpy()) ** 2).mean(axis=0))
    assert result[".std_error"].to_list() == pytest.approx(errors.tolist(), rel=1e-9)


def test_differences_at_levels_have_intervals() -> None:
    result = tf.prediction_intervals.quantile_loss.difference("group")(forecasts(150), "y", QUANTILES, interval="auto")
    assert result[".quantile_level"].to_list() == [*QUANTILES]
    assert (result[".lower"] <= result[".estimate"]).all()
    assert (result[".estimate"] <= result[".upper"]).all()


@pytest.mark.usefixtures("few_draws")
def test_models_are_compared_by_their_intervals_and_quantiles() -> None:
    rows = forecasts(100).with_columns(higher=pl.col("high") + 1)
    compared: Any = tf.compare_models(tf.metric_set(tf.prediction_intervals.score, tf.prediction_intervals.coverage))
    wider = tf.prediction_intervals.interval("low", "higher", level=LEVEL)
    result = compared(rows, "y", one=INTERVAL, other=wider)
    for side, interval in ((".one", INTERVAL), (".other", wider)):
        values = tf.metric_set(tf.prediction_intervals.score, tf.prediction_intervals.coverage)(rows, "y", interval)[
            ".estimate"
        ].to_list()
        assert result[side].to_list() == pytest.approx(values, rel=1e-12)
    several: Any = tf.compare_models(tf.prediction_intervals.quantile_loss)
    with pytest.raises(
        tf.errors.ArgumentError, match="several levels of quantiles as `estimate=` for quantile_loss; give one"
    ):
        several(rows, "y", one=QUANTILES, other=QUANTILES)


def test_what_is_no_interval_is_refused() -> None:
    def refusal(metric: Any, *args: Any, rows: pl.DataFrame | None = None, **options: Any) -> str:
        with pytest.raises(tf.errors.TidyfairError) as caught:
            metric(forecasts() if rows is None else rows, *args, **options)
        return str(caught.value)

    assert refusal(tf.prediction_intervals.coverage, "y", "low") == (
        '`estimate` of metrics of intervals is `prediction_intervals.interval("lower", "upper", level=0.9)`, '
        "or a mapping from "
        'levels to columns of quantiles, such as `{0.05: "q05", 0.5: "q50", 0.95: "q95"}`, and not \'low\'.'
    )
    assert refusal(tf.prediction_intervals.coverage, "y") == (
        "interval_coverage needs an interval: "
        '`estimate=prediction_intervals.interval("lower", "upper", level=0.9)`, or quantiles.'
    )
    assert refusal(tf.prediction_intervals.coverage, "y", QUANTILES) == (
        "interval_coverage reads an interval, not quantiles: name its two columns, as in "
        '`estimate=prediction_intervals.interval("q05", "q95", level=0.9)`.'
    )
    assert refusal(tf.mae, "y", INTERVAL) == (
        "`estimate`: mae reads one column of predictions, not an interval or quantiles."
    )
    swapped = tf.prediction_intervals.interval("high", "low", level=LEVEL)
    assert refusal(tf.prediction_intervals.coverage, "y", swapped) == (
        "`estimate`: 'high' is above 'low' in some rows; the lower end of an interval comes first."
    )
    apart = forecasts().with_columns(high=pl.col("high") + 1)
    assert refusal(tf.prediction_intervals.weighted_interval_score, "y", {0.1: "high", 0.9: "low"}, rows=apart) == (
        "`estimate`: 'low' at 0.9 is below 'high' at 0.1 in all rows, but quantiles rise with their level; the columns "
        "may be swapped."
    )
    assert refusal(tf.prediction_intervals.quantile_loss, "y", {1.5: "low"}) == (
        "`estimate` maps a level between 0 and 1 to a column of quantiles, not 1.5."
    )
    assert refusal(tf.prediction_intervals.quantile_loss, "y", {0.5: "group"}).startswith(
        "`estimate`: the column 'group' is String"
    )
    assert refusal(tf.prediction_intervals.quantile_loss, "y", {0.5: "group"}).endswith(
        "quantiles and the ends of intervals are numbers."
    )
    for option in ("threshold", "top_k", "top_fraction"):
        wanted: Any = {option: 0.5}
        assert refusal(tf.prediction_intervals.coverage, "y", INTERVAL, **wanted) == (
            f"`{option}` turns scores into labels, but interval_coverage reads intervals; leave it out."
        )
    assert refusal(tf.prediction_intervals.quantile_loss, "y", {}).startswith(
        "`estimate` maps a level between 0 and 1 to a column"
    )
    assert refusal(lambda _: tf.prediction_intervals.interval("low", "high", level=90)) == (
        "`level` is a number between 0 and 1, not 90; 90 percent is 0.9."
    )
    assert "infinite values" in refusal(
        tf.prediction_intervals.quantile_loss, "y", {0.5: "middle"}, rows=forecasts().with_columns(middle=float("inf"))
    )
