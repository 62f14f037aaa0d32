"""Monitors judge all rows so far, at any number of looks, from counts and sums alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import answer_kind, as_polars
from inline_snapshot import snapshot
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.inference import monitor
from tidyfair.inference.monitoring import confidence_sequences
from tidyfair.inference.monitoring.confidence_sequences import DIFFERENCE, RATIO, Pair, Totals
from tidyfair.inference.monitoring.monitors import Looks

if TYPE_CHECKING:
    from pathlib import Path

ABOVE, BELOW, WITHIN, UNDECIDED = "above the limit", "below the limit", "within", "undecided"


def random_people(rows: int = 900, seed: int = 3) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "y": random.integers(0, 2, rows), "p": random.integers(0, 2, rows), "score": random.uniform(size=rows),
            "g": random.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]), "day": np.arange(rows) // 150,
            "site": random.choice(["x", "y"], rows), "amount": random.uniform(0, 50, rows),
            "guess": random.uniform(0, 50, rows),
        }
    )  # fmt: skip


DATA = random_people()
PARITY = tf.demographic_parity("g")
CALL: dict[str, Any] = {"estimate": "p"}
BY_DAY: dict[str, Any] = {**CALL, "group_by": "day"}


def hits_and_rows(data: pl.DataFrame) -> dict[str, tuple[int, int]]:
    table = data.group_by("g").agg(pl.col("p").sum(), pl.len())
    return {group: (hits, rows) for group, hits, rows in table.rows()}


def totals(hits: float, rows: float) -> Totals:
    return Totals(np.array([float(hits)]), np.array([float(rows)]))


def lower(hits: float, rows: float, log_threshold: float) -> float:
    return totals(hits, rows).lower_limit(np.array([log_threshold])).item()


def message(call: Any) -> str:
    with pytest.raises(tf.errors.TidyfairError) as caught:
        call()
    return str(caught.value)


# Limits


def test_rate_has_the_limits_of_its_counts() -> None:
    row = monitor(tf.accuracy, above=0.9)(DATA, "y", "p").row(0, named=True)
    right = int((DATA["y"] == DATA["p"]).sum())
    # half of 5 % on each side
    threshold = math.log(2 / 0.05)
    assert row[".lower"] == pytest.approx(lower(right, 900, threshold))
    assert row[".upper"] == pytest.approx(1 - lower(900 - right, 900, threshold))
    assert row[".e_value"] == pytest.approx(math.exp(totals(900 - right, 900).log_e_value(np.array([0.1])).item()))
    assert (row[".n"], row[".estimate"], row[".limit"], row[".by"]) == (900, right / 900, 0.9, None)
    assert row[".verdict"] == BELOW


@pytest.mark.parametrize(("groups", "shared"), [(None, 3 * 2 * 4), (3, 3 * 2), (5, 5 * 4)])
def test_range_has_the_limits_of_all_pairs_of_groups(groups: int | None, shared: int) -> None:
    row = monitor(PARITY, below=0.1, groups=groups)(DATA, **CALL).row(0, named=True)
    threshold, counts = np.array([math.log(shared / 0.05)]), hits_and_rows(DATA)
    pairs = [Pair(totals(*counts[one]), totals(*counts[other])) for one in "abc" for other in "abc" if one != other]
    limits = [pair.lower_limit(DIFFERENCE, threshold).item() for pair in pairs]
    assert row[".lower"] == pytest.approx(max(0, *limits))
    assert row[".upper"] == pytest.approx(-min(limits))
    e_values = [math.exp(pair.log_e_value(DIFFERENCE, 0.1).item()) for pair in pairs]
    assert row[".e_value"] == pytest.approx(sum(e_values) / shared)


def test_ratio_has_the_limits_of_all_pairs_of_groups() -> None:
    row = monitor(tf.demographic_parity_ratio("g"), above=0.8, groups=3)(DATA, **CALL).row(0, named=True)
    threshold, counts = np.array([math.log(6 / 0.05)]), hits_and_rows(DATA)
    pairs = [Pair(totals(*counts[one]), totals(*counts[other])) for one in "abc" for other in "abc" if one != other]
    limits = [pair.lower_limit(RATIO, threshold).item() for pair in pairs]
    assert row[".lower"] == pytest.approx(min(limits))
    assert row[".upper"] == pytest.approx(min(1, 1 / max(limits)))
    e_values = [math.exp(pair.log_e_value(RATIO, 1 / 0.8).item()) for pair in pairs]
    assert row[".e_value"] == pytest.approx(sum(e_values) / 6)


def test_comparison_with_a_group_or_the_rest_has_the_limits_of_its_pairs() -> None:
    counts = hits_and_rows(DATA)
    every = tuple(map(sum, zip(*counts.values(), strict=True)))
    rests = {group: (every[0] - hits, every[1] - rows) for group, (hits, rows) in counts.items()}
    cases = {
        "a": [(counts["b"], counts["a"]), (counts["c"], counts["a"])],
        "rest": [(counts[group], rests[group]) for group in "abc"],
    }
    for to, compared in cases.items():
        metric = tf.demographic_parity("g", aggregate=tf.difference(to=to))
        row = monitor(metric, below=0.1, groups=3)(DATA, **CALL).row(0, named=True)
        threshold = np.array([math.log(2 * len(compared) / 0.05)])
        both = [(one, other) for pair in compared for one, other in (pair, pair[::-1])]
        limits = [Pair(totals(*one), totals(*other)).lower_limit(DIFFERENCE, threshold).item() for one, other in both]
        assert (row[".lower"], row[".upper"]) == pytest.approx((max(0, *limits), -min(limits)))


@pytest.mark.parametrize(
    ("metric", "limit"),
    [
        (PARITY, {"below": 0.1}),
        (tf.demographic_parity_ratio("g"), {"above": 0.8}),
        (tf.equalized_odds("g"), {"below": 0.1}),
        (tf.equalized_odds_ratio("g"), {"above": 0.8}),
        (tf.accuracy.difference("g", to="b"), {"below": 0.1}),
        (tf.precision.ratio("g", to="rest"), {"above": 0.8}),
        (tf.sens.difference(tf.privileged(g="a")), {"below": 0.1}),
        (tf.error_rate.group_maximum("g"), {"below": 0.3}),
        (tf.error_rate.group_minimum("g"), {"below": 0.3}),
        (tf.accuracy.group_minimum("g", "site"), {"above": 0.3}),
        (tf.fall_out, {"below": 0.3}),
    ],
)
def test_estimate_is_that_of_the_metric(metric: Any, limit: Any) -> None:
    result = monitor(metric, **limit)(DATA, "y", "p")
    plain = metric(DATA, "y", "p", explain=True)
    # signs are no excuse
    assert result[".estimate"].item() == pytest.approx(abs(plain[".estimate"].item()))
    assert result[".lower"].item() < result[".estimate"].item() < result[".upper"].item()
    assert result.select(".metric", ".by").equals(plain.select(".metric", ".by"))


def test_worst_group_is_beyond_the_limit_if_any_is_and_the_best_if_all_are() -> None:
    data = pl.DataFrame({"p": [1, 0] * 500 + [1] * 900 + [0] * 100, "g": ["a"] * 1_000 + ["b"] * 1_000})
    for aggregate, limit, verdict in (
        (tf.group_maximum(), 0.7, ABOVE), (tf.group_minimum(), 0.7, WITHIN), (tf.group_minimum(), 0.3, ABOVE),
        (tf.group_maximum(), 0.97, WITHIN), (tf.group_minimum(), 0.5, UNDECIDED),
    ):  # fmt: skip
        rate = tf.new_groupwise_metric(tf.fall_out, "f", aggregate)("g")
        row = monitor(rate, below=limit)(data.with_columns(y=pl.lit(0)), "y", "p", labels=[0, 1]).row(0, named=True)
        assert row[".verdict"] == verdict
        assert (row[".e_value"] > 20) == (verdict == ABOVE)


def test_by_group_holds_for_all_groups_at_once() -> None:
    table = monitor(PARITY, below=0.1).by_group(DATA, **CALL)
    # two ends of three groups, and room for groups that turn up later
    threshold = math.log(2 * 3 * 4 / 0.05)
    for group, (hits, rows) in hits_and_rows(DATA).items():
        row = table.row(by_predicate=pl.col(".group") == group, named=True)
        assert (row[".lower"], row[".upper"]) == pytest.approx(
            (lower(hits, rows, threshold), 1 - lower(rows - hits, rows, threshold))
        )
        assert (row[".metric"], row[".n"], row[".estimate"]) == ("selection_rate", rows, hits / rows)
    both = tf.metric_set(PARITY, tf.demographic_parity("g", name="again"), tf.accuracy.difference("site"))
    names = monitor(both, below=0.1).by_group(DATA, "y", "p").select(".metric", ".by", ".group").rows()
    assert names == [
        *(("selection_rate", "g", group) for group in "abc"), *(("accuracy", "site", site) for site in "xy"),
    ]  # fmt: skip


def test_metrics_and_outer_groups_share_the_error() -> None:
    alone = monitor(tf.accuracy, above=0.3, conf_level=1 - 0.05 / 2)(DATA, "y", "p")
    both = monitor(tf.metric_set(tf.accuracy, tf.sens), above=0.3)(DATA, "y", "p")
    assert_frame_equal(both.head(1), alone.drop(".conf_level"))
    # two sites, and room for those that turn up later
    sites = monitor(tf.accuracy, above=0.3)(DATA, "y", "p", group_by="site")
    one = monitor(tf.accuracy, above=0.3, conf_level=1 - 0.05 / 6)(DATA.filter(site="x"), "y", "p")
    assert_frame_equal(sites.filter(site="x").drop("site"), one.drop(".conf_level"))
    assert sites.columns[0] == "site"


def test_means_of_bounded_values_have_limits_on_their_scale() -> None:
    row = monitor(tf.brier_class, below=0.5)(DATA, "y", probs="score").row(0, named=True)
    squares = float(((DATA["y"] - DATA["score"]) ** 2).sum())
    assert row[".lower"] == pytest.approx(lower(squares, 900, math.log(40)))
    row = monitor(tf.mae, below=20, bounds=(0, 50))(DATA, "amount", "guess").row(0, named=True)
    errors = float((DATA["amount"] - DATA["guess"]).abs().sum())
    assert row[".lower"] == pytest.approx(50 * lower(errors / 50, 900, math.log(40)))
    assert row[".upper"] == pytest.approx(50 - 50 * lower(900 - errors / 50, 900, math.log(40)))
    gap = monitor(tf.msd.difference("site"), below=20, bounds=(-50, 50))(DATA, "amount", "guess").row(0, named=True)
    assert gap[".estimate"] == pytest.approx(tf.msd.difference("site")(DATA, "amount", "guess")[".estimate"].item())
    assert gap[".lower"] <= gap[".estimate"] <= gap[".upper"] <= 100


# Looks


def test_periods_are_looks_at_all_rows_up_to_their_end() -> None:
    watch = monitor(tf.metric_set(tf.accuracy.difference("g"), PARITY), below=0.1, period="day")
    looks = watch(DATA, "y", "p", group_by="day")
    assert looks[".look"].to_list() == [1, 2, 3, 4, 5, 6] * 2
    assert looks["day"].to_list() == [0, 1, 2, 3, 4, 5] * 2
    once, seen = monitor(watch.metrics, below=0.1), tf.Accumulator(watch.metrics, "y", "p")
    for day in range(6):
        seen.update(DATA.filter(day=day))
        own = looks.filter(pl.col("day") == day).drop("day", ".look", ".since")
        assert_frame_equal(own, once.compute(seen.state))
        groups = watch.by_group(DATA, "y", "p", group_by="day").filter(pl.col(".look") == day + 1)
        assert_frame_equal(groups.drop("day", ".look", ".since"), once.compute_by_group(seen.state))


def test_series_have_looks_of_their_own() -> None:
    data = DATA.filter((pl.col("site") == "x") | (pl.col("day") > 2))
    looks = monitor(tf.accuracy, above=0.3, period="day")(data, "y", "p", group_by=["day", "site"])
    assert looks.filter(site="y").select("day", ".look").rows() == [(3, 1), (4, 2), (5, 3)]
    last = looks.filter((pl.col("site") == "x") & (pl.col("day") == 5)).drop("site", "day", ".look", ".since")
    alone = monitor(tf.accuracy, above=0.3, conf_level=1 - 0.05 / 6)(data.filter(site="x"), "y", "p")
    assert_frame_equal(last, alone.drop(".conf_level"))
    # before the second site turned up, there was more error for the first
    first = looks.filter((pl.col("site") == "x") & (pl.col("day") == 2)).drop("site", "day", ".look", ".since")
    sooner = data.filter((pl.col("site") == "x") & (pl.col("day") < 3))
    alone = monitor(tf.accuracy, above=0.3, conf_level=1 - 0.05 / 2)(sooner, "y", "p")
    assert_frame_equal(first, alone.drop(".conf_level"))


def test_group_that_turns_up_later_joins_the_comparison() -> None:
    data = DATA.filter((pl.col("g") != "c") | (pl.col("day") > 3))
    looks = monitor(PARITY, below=0.1, period="day")(data, **BY_DAY)
    sooner = data.filter(pl.col("day") < 4)
    assert_frame_equal(looks[3:4].drop("day", ".look", ".since"), monitor(PARITY, below=0.1)(sooner, **CALL))
    threshold, counts = np.array([math.log(2 * 3 / 0.05)]), hits_and_rows(sooner)
    pair = Pair(totals(*counts["a"]), totals(*counts["b"]))
    other = Pair(totals(*counts["b"]), totals(*counts["a"]))
    limits = [each.lower_limit(DIFFERENCE, threshold).item() for each in (pair, other)]
    assert looks[".upper"][3] == pytest.approx(-min(limits))
    assert_frame_equal(looks[5:].drop("day", ".look", ".since"), monitor(PARITY, below=0.1)(data, **CALL))


@pytest.mark.parametrize("first", [2, 3, 5])
def test_limits_of_all_groups_that_may_turn_up_share_the_error(first: int) -> None:
    # what pairs have when they come, one group after another, adds up to 5 % at most
    def level(groups: int) -> float:
        return 0.05 / (groups + 1) / (groups * (groups - 1))

    spent = first * (first - 1) * level(first)
    spent += sum(2 * (groups - 1) * level(groups) for groups in range(first + 1, 5_000))
    assert spent <= 0.05
    data = pl.DataFrame({"p": [0, 1] * 50 * first, "g": [group for group in range(first) for _ in range(100)]})
    row = monitor(PARITY, below=0.1)(data, **CALL).row(0, named=True)
    pair = Pair(totals(50, 100), totals(50, 100))
    limit = pair.lower_limit(DIFFERENCE, np.array([math.log(1 / level(first))])).item()
    assert row[".upper"] == pytest.approx(-limit)


def test_streams_of_two_servers_add_up(tmp_path: Path) -> None:
    metrics = tf.metric_set(PARITY, tf.accuracy.difference("g"))
    watch = monitor(metrics, below=0.1)
    one, other = (tf.Accumulator(metrics, "y", "p").update(DATA.filter(site=site)) for site in "xy")
    together = watch.compute(one.state + other.state)
    assert_frame_equal(together, watch(DATA, "y", "p"))
    tf.save_state(one.state, tmp_path / "one.parquet")
    restored = tf.load_state(tmp_path / "one.parquet", metrics.tally(DATA.head(0), "y", "p"))
    assert_frame_equal(watch.compute(other.merge(restored).state), together)


def test_groups_of_several_columns_and_missing_values_are_followed() -> None:
    data = DATA.with_columns(
        h=pl.when(pl.col("amount") < 30).then("site").cast(pl.Categorical()),
        when=pl.date(2024, 1, 1) + pl.duration(days="day"),
    )
    parity = tf.demographic_parity("g", "h", unknown="group")
    watch = monitor(parity, below=0.1, period="when")
    looks = watch(data, estimate="p", group_by="when")
    assert looks["when"].to_list() == data["when"].unique().sort().to_list()
    groups = watch.by_group(data, estimate="p", group_by="when").filter(pl.col(".look") == 6)
    counted = parity.by_group(data, estimate="p")
    assert groups.select(".group", ".n").rows() == counted.select(".group", ".n").rows()
    assert groups[".estimate"].to_list() == pytest.approx(counted[".estimate"].to_list())


def test_rows_in_any_order_within_a_batch_give_the_same() -> None:
    watch = monitor(PARITY, below=0.1, period="day")
    assert_frame_equal(watch(DATA.sort("p", "g"), **BY_DAY), watch(DATA, **BY_DAY))


# Changes


def daily_counts(hits: Any, batch: int) -> pl.DataFrame:
    """Rows of two groups by day, of `batch` rows each, of which so many are 1."""
    keys = {"day": np.repeat(np.arange(len(hits)), 2), "g": np.tile(["a", "b"], len(hits))}
    numbers = {1: np.asarray(hits), 0: batch - np.asarray(hits)}
    parts = [pl.DataFrame({**keys, "p": value, "n": rows.ravel()}) for value, rows in numbers.items()]
    return pl.concat(parts).filter(pl.col("n") > 0)


def judged_days(hits: Any, batch: int, **options: Any) -> pl.DataFrame:
    watch = monitor(PARITY, below=0.1, period="day", groups=2, **options)
    return watch(daily_counts(hits, batch), **BY_DAY, frequency_weights="n")


def share_of_window(before: int) -> float:
    """The share of the error for rows after some periods: 2ᵛ times the i-th odd number."""
    if not before:
        return 1 / 2
    power = (before & -before).bit_length()
    order = (before // 2 ** (power - 1) + 1) // 2
    return 1 / (2 * power * (power + 1) * order * (order + 1))


def late_change(days: int, rates: tuple[float, float], batch: int = 50) -> Any:
    """200 days of equal rates of 0.3, and then others."""
    return np.rint(batch * np.concatenate([np.full((200, 2), 0.3), np.broadcast_to(rates, (days, 2))])).astype(int)


def test_change_after_many_good_rows_is_found_soon() -> None:
    # 20,000 rows without a difference, and then 15 points above the limit, as exactly as batches of 50 can be
    hits = late_change(300, (0.3, 0.56))
    recent, all_rows = (judged_days(hits, 50, **option) for option in ({"change": True}, {}))
    after, after_all, fresh = recent[200:], all_rows[200:], judged_days(hits[200:], 50)
    delay, delay_all, delay_fresh = (
        100 * (looks[".verdict"].to_list().index(ABOVE) + 1) for looks in (after, after_all, fresh)
    )
    assert delay <= 3 * delay_fresh
    assert delay_all > 15_000
    # rows so far are within the limit for long, but no recent ones
    assert (after_all[".verdict"] == WITHIN).sum() > 80
    assert (after[".verdict"] == WITHIN).sum() <= 5
    found = recent.filter(pl.col(".verdict") == ABOVE).row(0, named=True)
    assert found[".since"] in range(190, 212)
    assert found[".n"] == 100 * (found[".look"] - found[".since"])
    assert set(all_rows[".since"]) == {0}


def test_each_look_for_changes_is_at_the_rows_since_a_period() -> None:
    random = np.random.default_rng(2)
    hits = random.binomial(300, np.where(np.arange(60)[:, None] < 30, [0.3, 0.3], [0.3, 0.55]))
    looks = judged_days(hits, 300, change=True)
    assert {WITHIN, ABOVE, UNDECIDED} == set(looks[".verdict"])
    # rows that were left behind are not called upon again
    assert looks[".since"].is_sorted()
    for row in looks.rows(named=True):
        since, period = row[".since"], row["day"]
        error = 0.05 * share_of_window(since)
        rows = daily_counts(hits, 300).filter(pl.col("day").is_between(since, period))
        alone = monitor(PARITY, below=0.1, groups=2, conf_level=1 - error)(rows, **CALL, frequency_weights="n")
        assert [row[name] for name in (".n", ".verdict")] == [alone[name].item() for name in (".n", ".verdict")]
        limits = [".estimate", ".lower", ".upper"]
        assert [row[name] for name in limits] == pytest.approx([alone[name].item() for name in limits], abs=1e-9)
        assert row[".e_value"] == pytest.approx(share_of_window(since) * alone[".e_value"].item())
    groups = monitor(PARITY, below=0.1, period="day", groups=2, change=True).by_group(
        daily_counts(hits, 300), **BY_DAY, frequency_weights="n"
    )
    assert groups[".since"].to_list() == [since for since in looks[".since"] for _ in "ab"]
    assert groups.filter(pl.col(".group") == "a")[".n"].to_list() == [rows // 2 for rows in looks[".n"]]


def test_windows_share_the_error_and_are_as_long_as_any_change_needs() -> None:
    looks = Looks.of(pl.DataFrame({"day": np.arange(2_000)}), "day", change=True)
    begun = dict(zip(looks.first.tolist(), looks.share_of_window.tolist(), strict=True))
    assert begun == pytest.approx({before: share_of_window(before) for before in range(2_000)})
    assert 0.95 < sum(begun.values()) < 1
    # some window begins in the first half of the rows after any change
    for look in (700, 1_999):
        lengths = look + 1 - looks.first[looks.last == look]
        assert all(((lengths <= rows) & (lengths > rows / 2)).any() for rows in range(1, look))
    assert len(looks.last) < 24 * 2_000


def test_series_have_windows_of_their_own() -> None:
    watch = monitor(tf.accuracy, above=0.3, period="day", change=True)
    both = watch(DATA, "y", "p", group_by=["day", "site"])
    alone = monitor(tf.accuracy, above=0.3, period="day", change=True, conf_level=1 - 0.05 / 6)
    expected = alone(DATA.filter(site="y"), "y", "p", group_by="day")
    assert_frame_equal(both.filter(site="y").drop("site"), expected.drop(".conf_level"))


def test_group_without_recent_rows_makes_within_impossible() -> None:
    fair = pl.DataFrame(
        {"p": [1, 0] * 12_000, "g": (["a"] * 2 + ["b"] * 2) * 6_000, "day": np.repeat(np.arange(24), 1_000)}
    )
    data = fair.filter((pl.col("g") == "a") | (pl.col("day") < 16))
    looks = monitor(PARITY, below=0.1, period="day", change=True)(data, **BY_DAY)
    assert looks[".verdict"][15] == WITHIN
    is_left_out = looks[".since"] > 15
    assert is_left_out.any()
    assert looks.filter(is_left_out).select(".groups_left_out", ".verdict").unique().rows() == [(["b"], UNDECIDED)]


@pytest.mark.simulation
def test_changes_are_hardly_ever_found_where_there_are_none() -> None:
    # 1,000 streams of 512 looks at a rate, of which no window may ever be wrong
    random, streams, days, rate = np.random.default_rng(6), 1_000, 512, 0.2
    looks = Looks.of(pl.DataFrame({"day": np.arange(days)}), "day", change=True)
    threshold = np.log(2 / 0.05 / looks.share_of_window)[:, None]
    hits = random.binomial(40, rate, (days, streams)).astype(float)
    wrong = np.zeros(streams, dtype=bool)
    for some in np.array_split(np.arange(streams), 20):
        sums = Totals(looks.add_up(hits[:, some]), looks.add_up(np.full((days, len(some)), 40.0)))
        shape = sums.rows.shape
        is_wrong = sums.log_e_value(np.full(shape, rate)) >= threshold
        is_wrong |= sums.reversed.log_e_value(np.full(shape, 1 - rate)) >= threshold
        wrong[some] = is_wrong.any(axis=0)
    # 5 %, and three standard errors of it
    assert wrong.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / streams)


@pytest.mark.simulation
def test_late_changes_take_about_two_to_three_times_the_rows_of_a_new_monitor() -> None:
    random, streams = np.random.default_rng(7), 20
    rows: dict[str, list[float]] = {"recent": [], "all": [], "fresh": []}
    wrong = within = 0
    for _ in range(streams):
        hits = random.binomial(50, late_change(200, (0.3, 0.56)) / 50)
        recent, every = judged_days(hits, 50, change=True), judged_days(hits, 50)
        fresh = judged_days(hits[200:], 50)
        wrong += (recent[".verdict"][:200] == ABOVE).any()
        found = {"recent": recent[200:], "all": every[200:], "fresh": fresh}
        for name, looks in found.items():
            is_above = looks[".verdict"] == ABOVE
            rows[name].append(100.0 * (is_above.to_list().index(True) + 1) if is_above.any() else math.inf)
        within += recent[200:].filter(pl.col(".verdict") == WITHIN).height
    assert wrong <= 4
    median = {name: float(np.median(numbers)) for name, numbers in rows.items()}
    assert median["recent"] <= 3 * median["fresh"]
    assert median["all"] > 10 * median["recent"]
    assert within / streams < 6


# Verdicts


def test_verdict_follows_from_the_limits() -> None:
    fair = pl.DataFrame({"p": [1, 0] * 4_000, "g": (["a"] * 2 + ["b"] * 2) * 2_000})
    unfair = fair.with_columns(p=pl.when(g="a").then(1).otherwise("p"))
    watch = monitor(PARITY, below=0.1)
    assert watch(fair, **CALL)[".verdict"].item() == WITHIN
    assert watch(unfair, **CALL)[".verdict"].item() == ABOVE
    assert watch(fair.head(40), **CALL)[".verdict"].item() == UNDECIDED
    ratio = monitor(tf.demographic_parity_ratio("g"), above=0.8)
    assert ratio(fair, **CALL)[".verdict"].item() == WITHIN
    assert ratio(unfair, **CALL)[".verdict"].item() == BELOW
    assert ratio(unfair, **CALL)[".e_value"].item() > 1e6


def test_group_with_too_few_rows_is_named_and_makes_within_impossible() -> None:
    fair = pl.DataFrame({"p": [1, 0] * 4_000 + [1] * 5, "g": (["a"] * 2 + ["b"] * 2) * 2_000 + ["c"] * 5})
    row = monitor(tf.demographic_parity("g", min_n=10), below=0.1)(fair, **CALL).row(0, named=True)
    assert (row[".groups_left_out"], row[".verdict"], row[".n"]) == (["c"], UNDECIDED, 8_000)
    assert row[".upper"] < 0.1
    # nobody of a group has the event
    fair = fair.with_columns(y=pl.when(g="c").then(0).otherwise(1))
    row = monitor(tf.equal_opportunity("g"), below=0.1)(fair, "y", "p").row(0, named=True)
    assert (row[".groups_left_out"], row[".verdict"]) == (["c"], UNDECIDED)


def test_what_cannot_be_compared_has_no_limits() -> None:
    watch = monitor(PARITY, below=0.1)
    for data in (DATA.clear(), DATA.filter(g="a")):
        row = watch(data, **CALL).row(0, named=True)
        assert [row[name] for name in (".estimate", ".lower", ".upper", ".e_value")] == [None] * 4
        assert row[".verdict"] == UNDECIDED
    assert watch.by_group(DATA.filter(g="a"), **CALL)[".group"].to_list() == ["a"]
    by_day = monitor(PARITY, below=0.1, period="day")
    assert by_day(DATA.clear(), **BY_DAY).schema == by_day(DATA, **BY_DAY).schema


@pytest.mark.simulation
def test_verdicts_are_hardly_ever_wrong_in_300_looks() -> None:
    # two groups that are as far apart as the limit; both verdicts would be wrong
    random, streams, looks, batch = np.random.default_rng(5), 60, 300, 40
    rows = streams * looks * 2
    data = pl.DataFrame(
        {
            "stream": np.repeat(np.arange(streams), looks * 2), "day": np.tile(np.repeat(np.arange(looks), 2), streams),
            "g": np.tile(["a", "b"], rows // 2), "ones": random.binomial(batch, np.tile([0.3, 0.4], rows // 2)),
        }
    )  # fmt: skip
    counts = pl.concat(
        [
            data.select("stream", "day", "g", p=pl.lit(1), n="ones"),
            data.select("stream", "day", "g", p=0, n=batch - pl.col("ones")),
        ]
    ).filter(pl.col("n") > 0)
    # each stream on its own
    watch = monitor(PARITY, below=0.1, period="day", groups=2)
    wrong = reached = 0
    for _, stream in counts.group_by("stream"):
        judged = watch(stream, **BY_DAY, frequency_weights="n")
        wrong += (judged[".verdict"] != UNDECIDED).any()
        reached += (judged[".e_value"] >= 20).any()
    # 5 % of 60 are 3; with so many the probability of more than 9 is below 0.1 %
    assert wrong <= 9
    assert reached <= 9


def test_monitor_answers_in_the_frame_of_the_data(engine: Any) -> None:
    given = engine(DATA)
    result = monitor(PARITY, below=0.1)(given, **CALL)
    assert type(result) is answer_kind(given)
    expected = monitor(PARITY, below=0.1)(DATA, **CALL)
    limits = (".estimate", ".lower", ".upper")
    assert as_polars(result).select(limits).row(0) == pytest.approx(expected.select(limits).row(0))
    assert as_polars(result)[".verdict"].item() == expected[".verdict"].item()


# Refusals


def test_what_is_no_mean_over_rows_is_refused() -> None:
    assert message(lambda: monitor(tf.f_meas, above=0.8)) == snapshot(
        "monitor(): f_meas is not a mean over rows. Monitor the rates or errors behind it, such as sens and "
        "precision instead of f_meas, or mse instead of rmse; or look once, at a number of rows fixed in advance, "
        "with `check`."
    )
    assert message(lambda: monitor(tf.roc_auc.difference("g"), below=0.1)) == snapshot(
        "monitor(): roc_auc is not a mean over rows. Monitor the rates or errors behind it, such as sens and "
        "precision instead of f_meas, or mse instead of rmse; or look once, at a number of rows fixed in advance, "
        "with `check`."
    )
    assert message(lambda: monitor(tf.rmse, below=1, bounds=(0, 10))) == snapshot(
        "monitor(): rmse is not a mean over rows. Monitor the rates or errors behind it, such as sens and precision "
        "instead of f_meas, or mse instead of rmse; or look once, at a number of rows fixed in advance, with `check`."
    )
    assert message(lambda: monitor(tf.mae, below=1)) == snapshot(
        "monitor(): the range of mae for a single row is unknown; give its bounds, such as `bounds=(0, 100)`."
    )
    assert message(lambda: monitor(tf.msd, below=1, bounds=(-1, 1))) == snapshot(
        "monitor(): the best value of msd is inside its range; monitor a metric to maximize or minimize."
    )
    own = tf.new_numeric_metric(
        lambda miss, instances: (miss, instances), "own",
        statistics={"miss": lambda truth, estimate: (truth - estimate).abs()},
    )  # fmt: skip
    assert "give its bounds" in message(lambda: monitor(own, below=0.1))
    squared = tf.new_numeric_metric(
        lambda miss, instances: (miss**2, instances), "squared",
        statistics={"miss": lambda truth, estimate: (truth - estimate).abs()},
    )  # fmt: skip
    assert "is not a mean over rows" in message(lambda: monitor(squared, below=0.1, bounds=(0, 1)))


def test_comparisons_without_a_confidence_sequence_are_refused() -> None:
    assert message(lambda: monitor(tf.accuracy.difference("g", to="overall"), below=0.1)) == snapshot(
        "monitor(): accuracy_difference uses the reference 'overall', which changes as rows arrive, which is not "
        "supported. Use the metric itself, `group_minimum`, `group_maximum`, or differences or ratios of one metric "
        '(or the worst of several): as a range, to a group, or `to="rest"`.'
    )
    for metric in (
        tf.new_groupwise_metric(tf.accuracy, "f", tf.aggregates.standard_deviation())("g"),
        tf.new_groupwise_metric(tf.accuracy, "f", tf.aggregates.log_ratio())("g"),
        tf.new_groupwise_metric(tf.accuracy, "f", tf.difference(to="majority"))("g"),
        tf.equalized_odds("g", aggregate=tf.difference(across="mean")),
    ):
        assert "differences or ratios of one metric" in message(lambda metric=metric: monitor(metric, below=0.1))
    factory: Any = tf.demographic_parity
    assert "did you mean" in message(lambda: monitor(factory, below=0.1))


def test_bad_arguments_of_a_monitor_are_refused() -> None:
    assert message(lambda: monitor(PARITY)) == snapshot(
        "monitor() needs one limit, a number: `below=` for differences, or `above=` for ratios."
    )
    assert message(lambda: monitor(PARITY, below=5)) == snapshot(
        "monitor(): no verdict depends on the limit `below=5`, because demographic_parity lies between 0 and "
        "1: 5 percent is `below=0.05`."
    )
    assert message(lambda: monitor(PARITY, above=0.8)) == snapshot(
        "demographic_parity should be small, so give its limit as `below=`."
    )
    assert message(lambda: monitor(tf.mae, below=20, bounds=(0, 10))) == snapshot(
        "monitor(): the limit 20 is outside the range of mae, 0 to 10."
    )
    assert message(lambda: monitor(tf.mae, below=2, bounds=(10, 0))) == snapshot(
        "`bounds` must be two numbers, the smaller one first, not (10, 0)."
    )
    assert message(lambda: monitor(PARITY, below=0.1, groups=1)) == snapshot(
        "`groups` is a whole number, 2 or more, not 1."
    )
    assert message(lambda: monitor(PARITY, below=0.1, conf_level=1)) == snapshot(
        "`conf_level` is a number between 0 and 1, not 1."
    )
    assert message(lambda: monitor(PARITY, below=0.1, period="")) == snapshot(
        "monitor(): `period` must be the name of a column, not ''."
    )
    assert message(lambda: monitor(PARITY, below=0.1, change=True)) == snapshot(
        "monitor(): `change=True` looks at recent periods; give their column as `period=`."
    )
    assert message(lambda: monitor(PARITY, below=0.1, bounds=(0, 1))) == snapshot(
        "monitor(): shares of rows always lie between 0 and 1; leave out `bounds`."
    )


def test_data_that_a_monitor_cannot_follow_is_refused() -> None:
    watch = monitor(PARITY, below=0.1)
    assert message(lambda: watch(DATA, **CALL, case_weights="score")) == snapshot(
        "A monitor does not accept `case_weights`: it needs rows with equal weights."
    )
    assert message(lambda: watch(DATA, **CALL, cluster="site")) == snapshot(
        "A monitor does not accept `cluster`: it needs independent rows."
    )
    assert message(lambda: watch(DATA, **CALL, interval="auto")) == snapshot(
        "A monitor does not accept `interval`: it has limits of its own."
    )
    assert message(lambda: watch(DATA, **CALL, top_k=3)) == snapshot(
        "A monitor does not accept `top_k`: it needs independent rows."
    )
    assert message(lambda: monitor(PARITY, below=0.1, period="day")(DATA, **CALL)) == snapshot(
        "monitor() needs the periods as outer groups: `group_by='day'`."
    )
    late = DATA.with_columns(day=pl.when(pl.col("day") > 1).then("day"))
    assert message(lambda: monitor(PARITY, below=0.1, period="day")(late, **BY_DAY)) == snapshot(
        "monitor(): some rows have no value of 'day'; leave them out."
    )
    assert message(lambda: monitor(PARITY, below=0.1, groups=2)(DATA, **CALL)) == snapshot(
        "monitor(): demographic_parity by g has 3 groups so far, more than `groups=2`; give the largest number of "
        "groups that may ever occur."
    )
    assert message(lambda: monitor(tf.mae, below=2, bounds=(0, 5))(DATA, "amount", "guess")) == snapshot(
        "monitor(): mae has a mean of 17.0156 in some group, so some values lie outside `bounds=(0, 5)`; give bounds "
        "that hold for the value of every row."
    )
    assert message(lambda: watch(DATA.with_columns(p=pl.Series(list("xyz") * 300)), **CALL)) == snapshot(
        "monitor(): demographic_parity averages selection_rate over labels; select one label with `pos_label=`."
    )


def test_too_many_pairs_of_groups_are_refused_before_they_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame({"g": [*range(6_000)] * 4, "p": [0, 1, 1] * 8_000})
    called: list[int] = []
    monkeypatch.setattr(confidence_sequences, "few_mixtures", lambda *arrays: called.append(len(arrays)))
    assert message(lambda: monitor(PARITY, below=0.1)(rows, **CALL)) == snapshot(
        "monitor(): demographic_parity compares 35,994,000 pairs of groups of 'g', both ways round and at all looks; "
        "the limit is 25,000,000 for all metrics. Pool rare groups with `lump_rare`, leave out small ones with "
        '`min_n=`, look less often, compare each group with the rest (`to="rest"`) or with one group, or monitor '
        "`group_minimum` or `group_maximum`."
    )
    assert not called
    monkeypatch.undo()
    # none of them has enough rows, or is compared with more than one other
    few = monitor(tf.demographic_parity("g", min_n=5), below=0.1)(rows, **CALL)
    assert few.select(".estimate", pl.col(".groups_left_out").list.len()).row(0) == (None, 6_000)
    with_rest = monitor(tf.demographic_parity("g", to="rest"), below=0.1)(rows, **CALL)
    assert with_rest[".verdict"].to_list() == [UNDECIDED]
    assert len(monitor(PARITY, below=0.1).by_group(rows, **CALL)) == 6_000


@pytest.mark.parametrize("metric", [PARITY, tf.demographic_parity_ratio("g")])
def test_pairs_of_groups_take_few_steps_each(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    group = np.concatenate([np.arange(200), random.integers(0, 200, 100_000)])
    rows = pl.DataFrame({"g": group, "p": random.random(len(group)) < 0.4 + 0.2 * (group % 3 == 0)})
    sizes: list[int] = []
    mixture = confidence_sequences.few_mixtures

    def counted(total: Any, rows: Any, mean: Any) -> Any:
        sizes.append(len(mean))
        return mixture(total, rows, mean)

    monkeypatch.setattr(confidence_sequences, "few_mixtures", counted)
    limit: dict[str, Any] = {"below": 0.1} if metric is PARITY else {"above": 0.8}
    monitor(metric, **limit)(rows, **CALL)
    assert max(sizes) < 10_000  # so that they stay in the cache
    # 47 when all limits were worked out
    assert sum(sizes) < 14 * 200 * 199


def test_tallies_that_a_monitor_cannot_follow_are_refused(tmp_path: Path) -> None:
    watch = monitor(PARITY, below=0.1)
    assert message(lambda: watch.compute(PARITY.tally(DATA, **CALL, case_weights="score"))) == snapshot(
        "monitor(): the tally was counted with case weights, but a monitor needs rows with equal weights."
    )
    assert message(lambda: watch.compute(PARITY.tally(DATA, **CALL, cluster="site"))) == snapshot(
        "monitor(): the tally was counted by clusters, but a monitor needs independent rows."
    )
    assert message(lambda: watch.compute(PARITY.tally(DATA, probs="score", top_k=9))) == snapshot(
        "monitor(): the tally selects rows with `top_k`, so rows are not independent; use `threshold` instead."
    )
    assert message(lambda: watch.compute(PARITY.tally(DATA, probs="score", threshold=[0.1, 0.2]))) == snapshot(
        "monitor(): the tally has a list of thresholds; a monitor accepts one threshold."
    )
    tf.save_state(PARITY.tally(DATA.head(20), **CALL), tmp_path / "few.parquet", suppress_below=3)
    few = tf.load_state(tmp_path / "few.parquet", PARITY.tally(DATA.head(0), **CALL))
    assert message(lambda: watch.compute(few)) == snapshot(
        "monitor(): the tally has suppressed groups, whose values are unknown; use a tally of all cells."
    )
