"""The period from which on rates and disparities are others, against searches made by hand."""

from __future__ import annotations

from datetime import date
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair import inference
from tidyfair.intervals.proportions import newcombe, z_value

TIMES: dict[str, Any] = {"times": 499}
CALL: dict[str, Any] = {"estimate": "p", "group_by": "week", "frequency_weights": "n"}


def weekly(weeks: int, groups: dict[str, tuple[int, list[float]]], seed: int = 0) -> pl.DataFrame:
    """So many rows of each group in each week, at one rate for all weeks, or at a rate for each."""
    random = np.random.default_rng(seed)
    tables: list[pl.DataFrame] = []
    for group, (rows, rates) in groups.items():
        hits = random.binomial(rows, np.broadcast_to(rates, weeks))
        for label, counts in ((1, hits), (0, rows - hits)):
            tables.append(pl.DataFrame({"week": np.arange(1, weeks + 1), "g": group, "y": 1, "p": label, "n": counts}))
    return pl.concat(tables)


def counts_of(data: pl.DataFrame, group: str) -> tuple[Any, Any]:
    """The hits and rows of a group in each week."""
    of_weeks = data.filter(g=group).group_by("week").agg((pl.col("n") * pl.col("p")).sum().alias("hits"), pl.sum("n"))
    return tuple(of_weeks.sort("week").select("hits", "n").to_numpy().T)


def search(*metrics: Any, **options: Any) -> Any:
    of_call = TIMES | {name: options.pop(name) for name in ("times", "seed") if name in options}
    return partial(inference.compare_periods(*metrics, period="week", search="change", **options), **of_call)


PARITY = tf.demographic_parity("g")
DROPPED = weekly(40, {"a": (75, [0.5] * 24 + [0.35] * 16), "b": (225, [0.5])}, seed=1)


def hand_made(hits: Any, rows: Any) -> Any:
    """The distances of the rows before and from each week on, in standard errors: draws by weeks."""
    before, after = np.cumsum(hits, axis=-1)[..., :-1], np.cumsum(hits[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    n_before, n_after = np.cumsum(rows)[:-1], np.cumsum(rows[::-1])[::-1][1:]
    shares = [((before + 1) / (n_before + 2), n_before), ((after + 1) / (n_after + 2), n_after)]
    variance = sum(share * (1 - share) / n for share, n in shares)
    return np.abs(after / n_after - before / n_before) / np.sqrt(variance)


def shuffled(hits: Any, rows: Any, times: int, random: Any) -> Any:
    """The hits of weeks with all rows shuffled one by one."""
    labels = np.repeat([1, 0], [hits.sum(), rows.sum() - hits.sum()])
    ends = np.cumsum(rows)[:-1]
    draws = [[part.sum() for part in np.split(random.permutation(labels), ends)] for _ in range(times)]
    return np.array(draws)


def test_a_drop_of_a_small_group_that_neighbouring_weeks_do_not_show_is_found() -> None:
    neighbours = inference.compare_periods(PARITY, period="week")(DROPPED, **CALL, times=499)
    assert neighbours[".p_adjusted"].min() > 0.1  # pyright: ignore[reportOptionalOperand] - a number
    result = search(PARITY, tf.selection_rate)(DROPPED, **CALL)
    assert result.select(".metric", ".by", ".group", ".n").rows() == [
        ("selection_rate", "g", "a", 3000),
        ("selection_rate", "g", "b", 9000),
        ("demographic_parity", "g", None, 12000),
        ("selection_rate", None, None, 12000),
    ]
    assert result[".period"].to_list()[::2] == [25, 25]
    assert (result[".p_adjusted"] < 0.05).to_list() == [True, False, True, True]
    assert result.select(".period_lower", ".period_upper").row(1) == (None, None)
    covers = result.select(pl.lit(25).is_between(".period_lower", ".period_upper")).to_series()
    assert covers.to_list() == [True, None, True, True]


def test_p_value_equals_rows_shuffled_one_by_one() -> None:
    data = weekly(12, {"a": (9, [0.35] * 5 + [0.6] * 7), "b": (8, [0.5])}, seed=5)
    result = search(PARITY, times=4000, adjust="none")(data, **CALL)
    random = np.random.default_rng(1)
    for index, group in enumerate("ab"):
        hits, rows = counts_of(data, group)
        observed = hand_made(hits, rows)
        drawn = hand_made(shuffled(hits, rows, 4000, random), rows).max(axis=1)
        assert result[".period"][index] == observed.argmax() + 2
        expected = (drawn >= observed.max() - 1e-9).mean()
        assert result[".p_value"][index] == pytest.approx(expected, abs=0.025)


def test_p_value_of_a_disparity_is_that_of_the_farthest_changes_of_groups() -> None:
    data = weekly(8, {"a": (20, [0.3] * 4 + [0.5] * 4), "b": (40, [0.5]), "c": (30, [0.45])}, seed=2)
    random = np.random.default_rng(3)

    def farthest(hits: dict[str, Any]) -> Any:
        changes: list[Any] = []
        variances: list[Any] = []
        for drawn, rows in ((hits[group], counts_of(data, group)[1]) for group in "abc"):
            before, after = np.cumsum(drawn, axis=-1)[..., :-1], np.cumsum(rows)[:-1]
            total, all_rows = drawn.sum(axis=-1)[..., None], rows.sum()
            changes.append((total - before) / (all_rows - after) - before / after)
            parts = ((before, after), (total - before, all_rows - after))
            variances.append(sum((x + 1) / (n + 2) * (1 - (x + 1) / (n + 2)) / n for x, n in parts))
        pairs = [(0, 1), (0, 2), (1, 2)]
        apart = [np.abs(changes[i] - changes[j]) / np.sqrt(variances[i] + variances[j]) for i, j in pairs]
        return np.max(apart, axis=(0, -1))

    drawn = farthest({group: shuffled(*counts_of(data, group), 2000, random) for group in "abc"})
    observed = farthest({group: counts_of(data, group)[0] for group in "abc"})
    result = search(PARITY, times=4000, adjust="none")(data, **CALL).row(-1, named=True)
    assert result[".p_value"] == pytest.approx((drawn >= observed - 1e-9).mean(), abs=0.035)


def test_weeks_that_a_change_may_have_begun_are_those_that_shuffles_of_both_sides_do_not_exclude() -> None:
    data = weekly(14, {"a": (12, [0.3] * 6 + [0.75] * 8)}, seed=8)
    result = search(tf.selection_rate, adjust="none")(data, **CALL).row(0, named=True)
    (hits, rows), random = counts_of(data, "a"), np.random.default_rng(4)
    observed = hand_made(hits, rows).max()
    shares: dict[int, float] = {}
    for week in range(1, 14):
        sides = [shuffled(hits[part], rows[part], 600, random) for part in (slice(week), slice(week, None))]
        drawn = hand_made(np.concatenate(sides, axis=1), rows).max(axis=1)
        shares[week + 1] = float((drawn >= observed - 1e-9).mean())
    possible = [week for week, share in shares.items() if share > 0.05]
    assert (result[".period_lower"], result[".period_upper"]) == (min(possible), max(possible))


def test_limits_of_a_change_are_newcombes_at_the_distance_that_no_week_exceeds_by_chance() -> None:
    data = weekly(12, {"a": (30, [0.35] * 5 + [0.6] * 7)}, seed=6)
    result = search(tf.selection_rate, times=9999)(data, **CALL).row(0, named=True)
    hits, rows = counts_of(data, "a")
    drawn = np.random.default_rng(1).multivariate_hypergeometric(rows, hits.sum(), 20_000)
    z = float(np.quantile(hand_made(drawn, rows).max(axis=1), 0.95))
    split = result[".period"] - 1
    parts = [np.array([part.sum()], dtype=float) for part in (hits[split:], rows[split:], hits[:split], rows[:split])]
    (low,), (high,) = newcombe(parts[0] / parts[1], parts[1], parts[2] / parts[3], parts[3], z)
    assert (result[".lower"], result[".upper"]) == pytest.approx((low, high), abs=0.005)
    assert z > z_value(0.95)


@pytest.mark.parametrize("metric", [PARITY, tf.selection_rate.ratio("g"), tf.demographic_parity("g", to="b")])
def test_values_of_a_disparity_are_those_of_the_rows_before_and_after(metric: Any) -> None:
    result = search(metric, times=4999)(DROPPED, **CALL).row(-1, named=True)
    halves = [DROPPED.filter(pl.col("week") < result[".period"]), DROPPED.filter(pl.col("week") >= result[".period"])]
    level = 0.997
    call = {"estimate": "p", "frequency_weights": "n", "interval": "auto", "conf_level": level}
    before, after = (metric(half, **call).row(0, named=True) for half in halves)
    assert (result[".estimate_before"], result[".estimate"]) == pytest.approx((before[".estimate"], after[".estimate"]))
    assert result[".change"] == pytest.approx(after[".estimate"] - before[".estimate"])
    below = np.hypot(after[".estimate"] - after[".lower"], before[".upper"] - before[".estimate"])
    above = np.hypot(after[".upper"] - after[".estimate"], before[".estimate"] - before[".lower"])
    limits = result[".change"] - below, result[".change"] + above
    assert (result[".lower"], result[".upper"]) == pytest.approx(limits, abs=0.02)


def test_disparity_that_turns_its_sign_is_found_and_a_change_of_all_groups_is_none() -> None:
    turned = weekly(20, {"a": (60, [0.6] * 12 + [0.4] * 8), "b": (60, [0.4] * 12 + [0.6] * 8)})
    result = search(PARITY)(turned, **CALL).row(-1, named=True)
    assert result[".period"] == 13
    assert result[".p_adjusted"] < 0.01
    assert abs(result[".change"]) < 0.1
    together = weekly(20, {"a": (60, [0.3] * 12 + [0.5] * 8), "b": (60, [0.4] * 12 + [0.6] * 8)})
    result = search(PARITY)(together, **CALL)
    assert (result[".p_adjusted"] < 0.01).to_list() == [True, True, False]


def test_a_window_finds_a_change_that_does_not_last() -> None:
    passing = weekly(40, {"a": (60, [0.5] * 18 + [0.3] * 4 + [0.5] * 18)}, seed=3)
    of_all, of_window = (search(tf.selection_rate, window=window)(passing, **CALL) for window in (None, 4))
    assert of_all[".p_value"].item() > 0.05
    row = of_window.row(0, named=True)
    assert row[".p_value"] < 0.01
    # down at first, or up again
    assert row[".period"] in {19, 23}
    first = row[".period"] - 4
    window = passing.filter(pl.col("week").is_between(first, first + 7))
    before = window.filter(pl.col("week") < row[".period"])
    value = tf.selection_rate(before, estimate="p", frequency_weights="n")[".estimate"].item()
    assert row[".estimate_before"] == pytest.approx(value)
    assert first < row[".period_lower"] <= row[".period"] <= row[".period_upper"] < first + 8


def test_rates_of_several_metrics_are_searched_once_and_adjusted_together() -> None:
    metrics = tf.metric_set(tf.equalized_odds("g"), tf.sens.difference("g"), tf.sens)
    data = pl.concat([DROPPED, DROPPED.with_columns(y=pl.lit(0))])
    result = search(metrics)(data, "y", **CALL)
    named = [("sens", "a"), ("sens", "b"), ("spec", "a"), ("spec", "b"), ("equalized_odds", None)]
    assert result.select(".metric", ".group").rows() == [*named, ("sens_difference", None), ("sens", None)]
    smallest = result.filter(pl.col(".p_value") == 1 / 500)
    assert set(smallest[".p_adjusted"]) == {7 / 500}
    assert result[".n"].to_list() == [3000, 9000, 3000, 9000, 24000, 12000, 12000]
    by_metric = search(metrics, family="metric")(data, "y", **CALL)
    assert by_metric.filter(pl.col(".group") == "a")[".p_adjusted"].to_list() == [3 / 500, 2 / 500]


def test_outer_groups_have_searches_of_their_own() -> None:
    other = weekly(40, {"a": (75, [0.5] * 9 + [0.2] * 31), "b": (225, [0.5])}, seed=7)
    models = pl.concat([DROPPED.with_columns(model=pl.lit("one")), other.with_columns(model=pl.lit("other"))])
    test = search(PARITY, adjust="none")
    together = test(models, estimate="p", frequency_weights="n", group_by=["week", "model"])
    assert together["model"].to_list() == ["one"] * 3 + ["other"] * 3
    for name, data in (("one", DROPPED), ("other", other)):
        alone = test(data, **CALL)
        assert_frame_equal(together.filter(model=name).drop("model"), alone)
    assert together.filter(model="other")[".period"][0] == 10


def test_periods_keep_their_kind_and_a_tally_gives_the_same() -> None:
    days = DROPPED.with_columns(week=pl.lit(date(2026, 1, 5)) + pl.duration(days=7 * (pl.col("week") - 1)))
    test = search(PARITY)
    result = test(days, **CALL)
    assert result[".period"][0] == result[".period_lower"][0] == date(2026, 6, 22)
    assert_frame_equal(test.func.compute(PARITY.tally(days, **CALL), **TIMES), result)
    assert search(tf.selection_rate)(days.lazy(), **CALL).schema == search(tf.selection_rate)(days, **CALL).schema


def test_groups_outside_the_policy_are_not_searched() -> None:
    rare = pl.concat([DROPPED, weekly(40, {"c": (1, [0.5]), "unknown": (9, [0.5])})])
    with pytest.warns(tf.errors.UnknownGroupWarning, match="360 of 12,400 rows"):
        result = search(tf.demographic_parity("g", min_n=50))(rare, **CALL)
    assert result[".group"].to_list() == ["a", "b", None]


def test_what_cannot_be_compared_has_no_period() -> None:
    constant = weekly(6, {"a": (9, [0.0]), "b": (9, [0.5])})
    only_first = weekly(1, {"c": (9, [0.5])})
    result = search(PARITY)(pl.concat([constant, only_first]), **CALL)
    for group in "ac":
        row = result.filter(pl.col(".group") == group).row(0, named=True)
        assert {row[name] for name in (".period", ".estimate", ".change", ".p_value", ".p_adjusted")} == {None}
    assert result.filter(pl.col(".group") == "b")[".p_value"].is_not_null().all()
    one_week = search(PARITY)(only_first, **CALL)
    assert one_week[".period"].to_list() == [None, None]
    empty = search(PARITY)(constant.clear(), **CALL)
    assert empty.is_empty()
    assert empty.schema == result.schema


def test_bad_input_says_what_to_write() -> None:
    make: Any = inference.compare_periods
    with pytest.raises(tf.errors.ArgumentError, match='add `search="change"`'):
        make(PARITY, period="week", window=3)
    with pytest.raises(tf.errors.ArgumentError, match="`search=` must be 'change', not 'trend'"):
        make(PARITY, period="week", search="trend")
    with pytest.raises(tf.errors.ArgumentError, match="`window` is a whole number, 1 "):
        search(PARITY, window=0)
    with pytest.raises(
        tf.errors.ArgumentError, match="differences and ratios of groups, and selection_rate_group_minimum"
    ):
        search(tf.selection_rate.group_minimum("g"))
    with pytest.raises(tf.errors.ArgumentError, match="takes comparisons of groups"):
        make(tf.selection_rate, period="week")
    with pytest.raises(tf.errors.ArgumentError, match=r"did you mean `demographic_parity\(\"col\"\)`"):
        search(tf.demographic_parity)
    with pytest.raises(tf.errors.ArgumentError, match="finds changes of rates of one label, and bal_accuracy is none"):
        search(tf.bal_accuracy)(DROPPED, "y", **CALL)
    with pytest.raises(tf.errors.ArgumentError, match="does not accept `case_weights`: it counts rows"):
        search(PARITY)(DROPPED, **CALL, case_weights="n")
    with pytest.raises(tf.errors.ArgumentError, match="does not accept `cluster`: it counts rows"):
        search(PARITY)(DROPPED, **CALL, cluster="week")
    with pytest.raises(tf.errors.ArgumentError, match="group_by='week'"):
        search(PARITY)(DROPPED, estimate="p")


@pytest.mark.simulation
@pytest.mark.parametrize(("weeks", "rows", "rate"), [(60, 4, 0.3), (20, 80, 0.02)])
def test_changes_are_rarely_found_where_there_are_none(weeks: int, rows: int, rate: float) -> None:
    wrong = 0
    for seed in range(100):
        data = weekly(weeks, {"a": (rows, [rate]), "b": (3 * rows, [rate])}, seed=seed)
        result = search(PARITY, seed=seed, times=99)(data, **CALL)
        wrong += bool((result[".p_adjusted"] <= 0.05).any())
    assert wrong <= 5 + 3 * np.sqrt(100 * 0.05 * 0.95)


def test_different_rates_of_one_name_are_searched_apart() -> None:
    groups, periods = ["u"] * 50 + ["v"] * 50, [1, 2, 3, 4] * 25
    data = pl.DataFrame({"y": [1, 0] * 50, "p": [1] * 80 + [0] * 20, "g": groups, "m": periods})
    called = tf.new_groupwise_metric(tf.selection_rate.alias("sens"), "other", tf.difference())("g")
    apart = inference.compare_periods(tf.sens.difference("g"), called, period="m", search="change")
    found = apart(data, "y", "p", group_by="m", times=20)
    rows = found.filter(pl.col(".metric") == "sens")
    assert sorted(zip(rows[".group"], rows[".n"], strict=True)) == [("u", 25), ("u", 50), ("v", 25), ("v", 50)]


def test_windows_that_the_data_do_not_hold_are_refused() -> None:
    data = weekly(4, {"a": (20, [0.5]), "b": (20, [0.5])})
    with pytest.raises(tf.errors.ArgumentError, match=r"`window=3` compares 6 periods, .* have 4; .* 2 or less"):
        search(tf.demographic_parity("g"), window=3)(data, **CALL)


def test_messages_of_searches_name_the_metric() -> None:
    with pytest.raises(tf.errors.ColumnError, match=r"^accuracy needs the column of true labels"):
        search(tf.accuracy)(weekly(4, {"a": (20, [0.5])}), **CALL)


def test_nothing_that_is_counted_is_a_row_of_nulls() -> None:
    data = weekly(4, {"a": (20, [0.5])}).with_columns(p=pl.lit(None, pl.Int64))
    found = search(tf.accuracy)(data, "y", **CALL, pos_label=1, labels=[0, 1])
    assert found.select(".metric", ".n", ".period", ".p_value").rows() == [("accuracy", 0, None, None)]
