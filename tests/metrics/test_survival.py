"""Metrics of survival times against their definitions, row by row and pair by pair."""

from __future__ import annotations

import pickle
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from public_names import public
from scipy import special, stats

import tidyfair as tf
from tidyfair.metrics import survival as survival_metrics

if TYPE_CHECKING:
    from pathlib import Path

TRUTH = tf.survival.outcome("time", "event")
PROBS = {4: "s4", 8: "s8"}
ALL = tf.get_metrics("survival")


def people(rows: int = 60, seed: int = 0) -> pl.DataFrame:
    """Rows with many ties of times, of events with censoring, and of predictions."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "time": random.integers(1, 12, rows).astype(float), "event": random.random(rows) < 0.6,
            "estimate": random.integers(0, 8, rows).astype(float), "s4": random.integers(0, 9, rows) / 8,
            "s8": random.integers(0, 5, rows) / 8, "group": random.choice(["a", "b", "c"], rows),
            "fold": random.integers(1, 3, rows), "weight": random.integers(1, 4, rows),
        }
    )  # fmt: skip


def uncensored_before(rows: pl.DataFrame, at: float) -> float:
    """The Kaplan-Meier estimate of the probability to be uncensored just before a time."""
    left = 1.0
    times = rows.filter(~pl.col("event"), pl.col("time") < at)["time"].unique().sort()
    for time in times:
        same = rows.filter(time=time)
        censored = float(same.filter(~pl.col("event"))["weight"].sum())
        later = float(rows.filter(pl.col("time") >= time)["weight"].sum())
        at_risk = later - float(same.filter("event")["weight"].sum())
        left *= 1 - censored / at_risk
    return left


def by_hand(rows: pl.DataFrame, everyone: pl.DataFrame | None = None) -> dict[tuple[str, float | None], float]:
    """All metrics by their definitions; censoring weights are of `everyone`."""
    everyone = rows if everyone is None else everyone
    values: dict[tuple[str, float | None], float] = {}
    records = rows.to_dicts()
    uncensored = {time: uncensored_before(everyone, time) for time in (*rows["time"].unique(), *PROBS)}
    for name, power in (("concordance_survival", 0), ("concordance_survival_uno", 2)):
        pairs = concordant = 0.0
        for one, other in product(records, records):
            later = other["time"] > one["time"] or (other["time"] == one["time"] and not other["event"])
            if one["event"] and later:
                weight = one["weight"] * other["weight"] / uncensored[one["time"]] ** power
                pairs += weight
                concordant += weight * (
                    (other["estimate"] > one["estimate"]) + 0.5 * (other["estimate"] == one["estimate"])
                )
        values[name, None] = concordant / pairs
    total = sum(row["weight"] for row in records)
    with_event: dict[int, float] = {}
    for at, column in PROBS.items():
        brier = expected = seen = 0.0
        cases: list[tuple[float, float]] = []
        others: list[tuple[float, float]] = []
        for row in records:
            expected += row["weight"] * (1 - row[column])
            if row["time"] > at:
                weight = row["weight"] / uncensored[at]
                brier += weight * (1 - row[column]) ** 2
                others.append((weight, row[column]))
            elif row["event"]:
                weight = row["weight"] / uncensored[row["time"]]
                brier += weight * row[column] ** 2
                seen += weight
                cases.append((weight, row[column]))
        values["brier_survival", at] = brier / total
        values["calibration_in_the_large_survival", at] = (expected - seen) / total
        values["calibration_ratio_survival", at] = seen / expected
        area = sum(
            one * other * ((below < above) + 0.5 * (below == above))
            for (one, below), (other, above) in product(cases, others)
        )
        values["roc_auc_survival", at] = area / sum(one for one, _ in cases) / sum(one for one, _ in others)
        with_event[at] = seen
    values["brier_survival_integrated", None] = (
        (values["brier_survival", 4] + values["brier_survival", 8]) / 2 * (8 - 4) / 8
    )
    early, late = values["roc_auc_survival", 4], values["roc_auc_survival", 8]
    values["roc_auc_survival_mean", None] = early + (late - early) * (1 - with_event[4] / with_event[8])
    return values


OVER_TIMES = ("brier_survival_integrated", "roc_auc_survival_mean")


def numbers(result: pl.DataFrame) -> dict[tuple[str, float | None], float]:
    return {(name, at): value for name, at, value in result.select(".metric", ".eval_time", ".estimate").rows()}


def call(metric: Any, rows: Any, **options: Any) -> Any:
    return metric(rows, TRUTH, "estimate", **{"probs": PROBS, "case_weights": "weight"} | options)


# Values


@pytest.mark.parametrize("seed", range(3))
def test_every_metric_equals_its_definition_pair_by_pair(seed: int) -> None:
    rows = people(40, seed)
    expected = by_hand(rows)
    assert {name for name, _ in expected} == {*survival_metrics.__all__}
    assert numbers(call(ALL, rows)) == pytest.approx(expected, rel=1e-12)


def test_results_have_a_row_for_each_evaluation_time_and_null_for_all_of_them() -> None:
    both = tf.metric_set(tf.survival.brier, tf.survival.concordance, tf.survival.brier_integrated)
    result = both(people(), TRUTH, "estimate", probs={8: "s8", 4: "s4"}, group_by="fold")
    assert result.columns == ["fold", ".metric", ".by", ".estimator", ".eval_time", ".estimate"]
    assert result.select("fold", ".metric", ".eval_time").rows() == [
        *((fold, "brier_survival", at) for fold in (1, 2) for at in (4.0, 8.0)),
        *((fold, "concordance_survival", None) for fold in (1, 2)),
        *((fold, "brier_survival_integrated", None) for fold in (1, 2)),
    ]
    assert ".eval_time" not in tf.survival.concordance(people(), TRUTH, "estimate").columns


def test_groups_are_weighted_by_the_censoring_of_their_outer_group() -> None:
    rows = people(90)
    result = call(ALL.difference("group"), rows, group_by="fold")
    groups = ALL.difference("group").by_group(
        rows, TRUTH, "estimate", probs=PROBS, case_weights="weight", group_by="fold"
    )
    for fold in (1, 2):
        everyone = rows.filter(fold=fold)
        expected = {group: by_hand(everyone.filter(group=group), everyone) for group in "abc"}
        for group, values in expected.items():
            assert numbers(groups.filter(fold=fold, group=group)) == pytest.approx(values, rel=1e-12)
        for (name, at), value in numbers(result.filter(fold=fold)).items():
            of_groups = [values[name.removesuffix("_difference"), at] for values in expected.values()]
            assert value == pytest.approx(max(of_groups) - min(of_groups), rel=1e-9)


def test_censoring_may_be_estimated_within_groups() -> None:
    rows = people(90)
    own = tf.survival.outcome("time", "event", censoring_by="group")
    result = ALL(rows, own, "estimate", probs=PROBS, case_weights="weight", group_by="group")
    for group in "abc":
        expected = by_hand(rows.filter(group=group))
        assert numbers(result.filter(group=group)) == pytest.approx(expected, rel=1e-12)


def test_a_distribution_of_other_data_and_given_weights_take_the_place_of_the_estimate() -> None:
    rows, train = people(50), people(80, seed=5)
    distribution = tf.survival.censoring_distribution(train, TRUTH, case_weights="weight")
    given = tf.survival.outcome("time", "event", censoring=distribution)
    result = ALL(rows, given, "estimate", probs=PROBS, case_weights="weight")
    assert numbers(result) == pytest.approx(by_hand(rows, train), rel=1e-12)
    weights: dict[float, pl.Expr] = {}
    for at in PROBS:
        last = pl.when(pl.col("time") > at).then(float(at)).when(pl.col("event")).then("time")
        times = [*rows["time"].unique(), float(at)]
        weight = last.replace_strict({time: 1 / uncensored_before(train, time) for time in times}, default=None)
        weights[at] = weight.alias(f"weight at {at}")
    rows = rows.with_columns(weights.values())
    by_column = tf.survival.outcome("time", "event", censoring={at: f"weight at {at}" for at in PROBS})
    at_points = tf.metric_set(tf.survival.brier, tf.survival.brier_integrated, tf.survival.roc_auc)
    one, other = (
        at_points(rows, truth, probs=PROBS, case_weights="weight")[".estimate"].to_list()
        for truth in (given, by_column)
    )
    assert one == pytest.approx(other, rel=1e-12)


def test_estimated_share_of_events_is_that_of_kaplan_and_meier() -> None:
    rows = people(70).with_columns(certain=pl.lit(1.0))
    share = -tf.survival.calibration_in_the_large(rows, TRUTH, probs={8: "certain"})[".estimate"].item()
    survive = 1.0
    for time in rows.filter("event", pl.col("time") <= 8)["time"].unique().sort():
        survive *= 1 - rows.filter("event", time=time).height / rows.filter(pl.col("time") >= time).height
    assert share == pytest.approx(1 - survive, rel=1e-12)


def test_weights_and_frequencies_are_repeated_rows() -> None:
    rows = people(50)
    repeated = rows.select(pl.exclude("weight"), pl.col("weight").alias("w")).select(
        pl.all().repeat_by("w").explode()
    )  # fmt: skip
    expected = call(ALL, repeated, case_weights=None)
    for weights in ({"case_weights": "weight"}, {"case_weights": None, "frequency_weights": "weight"}):
        assert_frame_equal(call(ALL, rows, **weights), expected, rel_tol=1e-12)


@pytest.mark.parametrize("scale", [12.5, 1e-12, 1e-60, 1e30])
def test_order_of_rows_and_scale_of_weights_mean_nothing(scale: float) -> None:
    rows = people(80)
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1).with_columns(pl.col("weight") * scale)
    assert_frame_equal(call(ALL, shuffled), call(ALL, rows), rel_tol=1e-12)
    # also of the rows that others are weighted by, which the last of them do not outlive
    others = people(80, seed=2).with_columns(time=pl.col("time") + 3)
    plain, scaled = (
        tf.survival.outcome(
            "time", "event", censoring=tf.survival.censoring_distribution(frame, TRUTH, case_weights="weight")
        )
        for frame in (rows, shuffled)
    )
    uno = tf.survival.concordance_uno(others, plain, "estimate")
    assert tf.survival.concordance_uno(others, scaled, "estimate")[".estimate"].item() == pytest.approx(
        uno[".estimate"].item(), rel=1e-12
    )


def test_nobody_is_left_uncensored_where_the_last_rows_are_censored_whatever_their_weight() -> None:
    rows = {"time": [1.0, 2, 3, 3], "event": [True, False, True, False]}
    for weights, left in (([1, 1, 1, 1], 2 / 3), ([1e-12] * 4, 2 / 3), ([1, 1, 1e9, 1e-9], 1.0)):
        weighted = pl.DataFrame(rows | {"weight": weights}, strict=False)
        distribution = tf.survival.censoring_distribution(weighted, TRUTH, case_weights="weight")
        assert distribution.probabilities == (pytest.approx(left, rel=1e-8), 0.0)


def test_larger_risks_are_shorter_times() -> None:
    rows = people().with_columns(risk=-pl.col("estimate"))
    for metric in (tf.survival.concordance, tf.survival.concordance_uno):
        of_risk = tf.metric_tweak(metric, "of_risk", risk=True)
        expected = metric(rows, TRUTH, "estimate")[".estimate"].item()
        assert of_risk(rows, TRUTH, "risk")[".estimate"].item() == expected


def test_events_from_tau_on_are_left_out_of_harrells_concordance() -> None:
    rows = people()
    to_six = tf.metric_tweak(tf.survival.concordance, "to_six", tau=6)
    pairs = concordant = 0.0
    for one, other in product(rows.to_dicts(), repeat=2):
        survives = other["time"] > one["time"] or (other["time"] == one["time"] and not other["event"])
        if one["event"] and one["time"] < 6 and survives:
            pairs += 1
            concordant += (other["estimate"] > one["estimate"]) + (other["estimate"] == one["estimate"]) / 2
    result = to_six(rows, TRUTH, "estimate", interval="auto").row(0, named=True)
    assert result[".estimate"] == pytest.approx(concordant / pairs)
    whole = tf.metric_tweak(tf.survival.concordance, "whole", tau=100)(rows, TRUTH, "estimate", interval="auto")
    plain = tf.survival.concordance(rows, TRUTH, "estimate", interval="auto")
    assert whole.drop(".metric").equals(plain.drop(".metric"))
    # the error of the jackknife of single rows
    many = people(250, seed=2).with_row_index("row")
    without = pl.concat(many.filter(pl.col("row") != row).with_columns(without=row) for row in range(250))
    left_out = to_six(without, TRUTH, "estimate", group_by="without")[".estimate"].to_numpy()
    error = to_six(many, TRUTH, "estimate", interval="auto")[".std_error"].item()
    assert len(left_out) == 250
    assert error == pytest.approx(np.std(left_out) * 249**0.5, rel=0.03)


# The remission of 21 children with 6-mercaptopurine (Freireich et al., 1963), and the numbers of lifelines 0.30.3.
WEEKS = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
KAPLAN_MEIER = {
    6: (0.8571428571, 0.6197179553, 0.9515517476), 7: (0.8067226891, 0.5631465646, 0.9228090192),
    10: (0.7529411765, 0.5031995108, 0.8893618352), 13: (0.6901960784, 0.4316102225, 0.8490659633),
    16: (0.6274509804, 0.3675108560, 0.8049121895), 22: (0.5378151261, 0.2677789368, 0.7467907176),
    23: (0.4481792717, 0.1880520060, 0.6801426285),
}  # fmt: skip


def test_kaplan_meier_equals_lifelines() -> None:
    remission = pl.DataFrame({"weeks": WEEKS, "relapsed": RELAPSED})
    curve = tf.survival.kaplan_meier(remission, tf.survival.outcome("weeks", "relapsed"))
    rows = curve.select(".eval_time", ".estimate", ".lower", ".upper").rows()
    assert {time: values for time, *values in rows} == {
        time: pytest.approx(list(values), abs=1e-9) for time, values in KAPLAN_MEIER.items()
    }
    assert curve.select(".n_at_risk", ".n_events").rows()[:2] == [(21, 3), (17, 1)]
    greenwood = (3 / (21 * 18) + 1 / (17 * 16)) ** 0.5
    assert curve[".std_error"][1] == pytest.approx(0.8067226891 * greenwood)


def test_kaplan_meier_by_group_is_that_of_each_group() -> None:
    rows = people().with_columns(pl.when(pl.int_range(pl.len()) > 3).then("group").alias("group"))
    curves = tf.survival.kaplan_meier(rows, TRUTH, group_by="group", conf_level=0.9)
    assert curves.equals(tf.survival.kaplan_meier(rows.group_by("group"), TRUTH, conf_level=0.9))
    assert curves["group"].unique(maintain_order=True).to_list() == ["a", "b", "c", None]
    for (group,), own in rows.group_by("group"):
        alone = tf.survival.kaplan_meier(own, TRUTH, conf_level=0.9)
        assert curves.filter(pl.col("group").eq_missing(group)).drop("group").equals(alone)


def test_kaplan_meier_where_nobody_is_left_has_no_limits() -> None:
    gone = tf.survival.kaplan_meier(pl.DataFrame({"t": [1, 2], "e": [1, 1]}), tf.survival.outcome("t", "e"))
    assert gone.select(".estimate", ".lower", ".upper", ".std_error").row(1) == (0.0, None, None, None)
    with pytest.raises(tf.errors.ArgumentError, match=r"kaplan_meier\(\) takes `survival.outcome"):
        tf.survival.kaplan_meier(people(), cast("Any", "time"))


def test_events_from_tau_on_are_left_out_of_unos_concordance() -> None:
    rows = people()
    to_eight = tf.metric_tweak(tf.survival.concordance_uno, "to_eight", tau=8)
    censored = rows.with_columns(event=pl.col("event") & (pl.col("time") < 8))
    given = tf.survival.outcome("time", "event", censoring=tf.survival.censoring_distribution(rows, TRUTH))
    # later rows only count as survivors, whatever happens to them
    later = censored.with_columns(time=pl.when(pl.col("time") < 8).then("time").otherwise(99.0))
    expected = tf.survival.concordance_uno(later, given, "estimate")[".estimate"].item()
    assert to_eight(rows, TRUTH, "estimate")[".estimate"].item() == pytest.approx(expected, rel=1e-12)


def test_a_median_that_is_not_reached_is_an_infinite_time() -> None:
    rows = people().with_columns(estimate=pl.when(pl.col("estimate") == 7).then(float("inf")).otherwise("estimate"))
    expected = tf.survival.concordance(people(), TRUTH, "estimate")[".estimate"].item()
    assert tf.survival.concordance(rows, TRUTH, "estimate")[".estimate"].item() == expected


def test_missing_values_leave_a_row_out_of_the_metrics_that_read_them() -> None:
    rows = people(50).with_row_index("row")
    holes = rows.with_columns(
        time=pl.when(pl.col("row") != 3).then("time"), event=pl.when(pl.col("row") != 5).then("event"),
        estimate=pl.when(pl.col("row") != 7).then("estimate"), s8=pl.when(pl.col("row") != 9).then("s8"),
    )  # fmt: skip
    known = holes.drop_nulls(["time", "event"])
    result = numbers(call(ALL, holes, explain=True))
    given = tf.survival.outcome(
        "time", "event", censoring=tf.survival.censoring_distribution(known, TRUTH, case_weights="weight")
    )
    at_times = tf.metric_set(tf.survival.brier, tf.survival.roc_auc)
    for metrics, column, probs in (
        (tf.metric_set(tf.survival.concordance, tf.survival.concordance_uno), "estimate", PROBS),
        (at_times, "s4", {4: "s4"}),
        (at_times, "s8", {8: "s8"}),
        (tf.survival.brier_integrated, "s8", PROBS),
    ):
        complete = known.drop_nulls(column)
        expected = metrics(complete, given, "estimate", probs=probs, case_weights="weight")
        keys = expected.columns
        pairs = zip(expected[".metric"], expected[".eval_time"] if ".eval_time" in keys else [None] * 9, strict=False)
        assert [result[pair] for pair in pairs] == pytest.approx(expected[".estimate"].to_list(), rel=1e-12)
    strict = call(ALL, holes, na_rm=False, explain=True, on_undefined="ignore")
    assert set(strict[".status"]) == {"missing_values"}
    of_second = call(ALL, rows.with_columns(s8=holes["s8"]), na_rm=False, explain=True, on_undefined="ignore")
    status = dict(of_second.filter(pl.col(".metric") == "brier_survival").select(".eval_time", ".status").rows())
    assert status == {4.0: "ok", 8.0: "missing_values"}


def test_each_time_has_the_rows_with_a_prediction_for_it() -> None:
    random = np.random.default_rng(1)
    holes = people(60).with_columns(
        s4=pl.when(pl.Series(random.random(60) < 0.8)).then("s4"),
        s8=pl.when(pl.Series(random.random(60) < 0.7)).then("s8"),
    )
    of_times = tf.metric_set(*(metric for metric in ALL if metric.name not in OVER_TIMES))
    every = tf.metric_set(of_times, tf.survival.brier.difference("group"), tf.survival.roc_auc.difference("group"))
    options: dict[str, Any] = {"group_by": "fold", "interval": "auto", "explain": True, "on_undefined": "ignore"}
    together = call(every, holes, **options)
    for at, column in PROBS.items():
        alone = call(every, holes, probs={at: column}, **options)
        assert_frame_equal(together.filter(pl.col(".eval_time").is_null() | (pl.col(".eval_time") == at)), alone)
    # over all times are the rows that have a prediction for each
    complete = holes.drop_nulls(["s4", "s8"])
    given = tf.survival.outcome(
        "time", "event", censoring=tf.survival.censoring_distribution(holes, TRUTH, case_weights="weight")
    )
    weighted: dict[str, Any] = {"probs": PROBS, "case_weights": "weight", "explain": True}
    for over_times in (tf.survival.brier_integrated, tf.survival.roc_auc_mean):
        result = over_times(holes, given, **weighted)
        assert_frame_equal(result, over_times(complete, given, **weighted))
        assert result[".n"].item() == len(complete)


def test_tallies_keep_the_rows_of_each_time(tmp_path: Path) -> None:
    holes = people(60).with_columns(s8=pl.when(pl.int_range(60) % 3 > 0).then("s8"))
    given = tf.survival.outcome("time", "event", censoring=tf.survival.censoring_distribution(holes, TRUTH))
    both = tf.metric_set(tf.survival.brier, tf.survival.brier_integrated, tf.survival.calibration_ratio)
    first, second = (both.tally(part, given, probs=PROBS) for part in (holes[:25], holes[25:]))
    expected = both(holes, given, probs=PROBS, explain=True)
    assert_frame_equal(both.compute(first + second, explain=True), expected)
    tf.save_state(first + second, tmp_path / "state")
    back = tf.load_state(tmp_path / "state", both.tally(holes.head(0), given, probs=PROBS))
    assert_frame_equal(both.compute(back, explain=True), expected)
    drawn = both(holes, given, probs=PROBS, interval="bootstrap", times=300, explain=True)
    assert ((drawn[".lower"] < expected[".estimate"]) & (expected[".estimate"] < drawn[".upper"])).all()


@pytest.mark.parametrize(
    ("metric", "rows", "status"),
    [
        (tf.survival.concordance, {"time": [3, 2], "event": [False, False]}, "no_comparable_pairs"),
        (tf.survival.concordance_uno, {"time": [3, 3], "event": [True, True]}, "no_comparable_pairs"),
        (tf.survival.brier, {"time": [3, 2], "event": [False, False]}, "all_censored"),
        (tf.survival.calibration_ratio, {"time": [3, 2], "event": [False, False]}, "all_censored"),
        (tf.survival.roc_auc, {"time": [3, 2], "event": [True, True]}, "one_class"),
        (tf.survival.roc_auc, {"time": [9, 8], "event": [True, True]}, "one_class"),
    ],
)  # fmt: skip
def test_values_without_information_are_null_with_a_reason(metric: tf.types.Metric, rows: Any, status: str) -> None:
    data = pl.DataFrame(rows).with_columns(estimate=pl.lit(1.0), s=pl.lit(0.5))
    with pytest.warns(tf.errors.UndefinedWarning, match=metric.name):
        result = metric(data, TRUTH, "estimate", probs={5: "s"}, explain=True)
    assert result.select(".estimate", ".status").row(0) == (None, status)


def test_small_groups_are_left_out() -> None:
    rows = people(60).with_columns(group=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("few")).otherwise("group"))
    gap = tf.survival.brier.difference("group", min_n=5)
    result = gap.by_group(rows, TRUTH, probs={4: "s4"})
    assert result.filter(group="few").select(".denominator", ".status").row(0) == (3, "below_min_n")


# Tallies


def test_a_tally_gives_what_a_call_gives() -> None:
    both = tf.metric_set(ALL, ALL.difference("group"))
    rows = people(200)
    options: dict[str, Any] = {"probs": PROBS, "case_weights": "weight", "group_by": "fold"}
    tally = both.tally(rows, TRUTH, "estimate", **options)
    assert_frame_equal(both.compute(tally), both(rows, TRUTH, "estimate", **options))
    result, expected = both.compute_by_group(tally), both.by_group(rows, TRUTH, "estimate", **options)
    assert_frame_equal(result, expected)


def test_tallies_of_parts_add_up_if_the_censoring_is_given() -> None:
    rows = people(80)
    parts = rows[:30], rows[30:]
    estimated = [tf.survival.brier.tally(part, TRUTH, probs=PROBS) for part in parts]
    with pytest.raises(
        tf.errors.ArgumentError, match=r"Censoring weights are estimated from all rows together .*censoring="
    ):
        _ = estimated[0] + estimated[1]
    given = tf.survival.outcome("time", "event", censoring=tf.survival.censoring_distribution(rows, TRUTH))
    halves = [ALL.tally(part, given, "estimate", probs=PROBS) for part in parts]
    expected = ALL(rows, TRUTH, "estimate", probs=PROBS)
    assert_frame_equal(ALL.compute(halves[0] + halves[1]), expected, rel_tol=1e-12)
    alone = [tf.survival.concordance.tally(part, TRUTH, "estimate") for part in parts]
    expected = tf.survival.concordance(rows, TRUTH, "estimate")
    assert_frame_equal(tf.survival.concordance.compute(alone[0] + alone[1]), expected)


def test_arrays_are_given_as_survival_times() -> None:
    rows = people()
    truth = tf.survival.outcome(rows["time"].to_numpy(), rows["event"].to_list())
    probs = {at: rows[column].to_numpy() for at, column in PROBS.items()}
    by = {"group": rows["group"].to_list()}
    gap = tf.metric_set(ALL, tf.survival.concordance_parity("group"), tf.survival.calibration_parity("group"))
    result = gap.arrays(truth, rows["estimate"].to_numpy(), probs=probs, case_weights=rows["weight"].to_list(), by=by)
    assert_frame_equal(result, call(gap, rows))


def test_survival_times_are_values() -> None:
    distribution = tf.survival.censoring_distribution(people(), TRUTH)
    for one, other in (
        (tf.survival.outcome("time", "event"), TRUTH),
        (tf.survival.outcome("t", "e", censoring=distribution), tf.survival.outcome("t", "e", censoring=distribution)),
        (tf.survival.outcome("t", "e", censoring={4: "w"}), tf.survival.outcome("t", "e", censoring={4: "w"})),
    ):
        assert one == other
        assert hash(one) == hash(other)
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    assert (
        repr(tf.survival.outcome("t", "e", censoring_by=["a", "b"]))
        == "survival.outcome('t', 'e', censoring_by=['a', 'b'])"
    )
    assert repr(distribution).startswith("<censoring distribution: 10 times, 0 after 11>")


def test_mean_of_areas_weighs_them_by_the_decrease_of_the_kaplan_meier_curve() -> None:
    # as scikit-survival defines the mean of its cumulative/dynamic areas
    rows = people(80)
    columns: dict[str, Any] = {"truth": TRUTH, "probs": PROBS}
    area = tf.survival.roc_auc(rows, **columns)[".estimate"].to_numpy()
    curve = tf.survival.kaplan_meier(rows, TRUTH)
    survival = [curve.filter(pl.col(".eval_time") <= at)[".estimate"][-1] for at in PROBS]
    weights = -np.diff([1.0, *survival])
    mean = tf.survival.roc_auc_mean(rows, **columns)[".estimate"].item()
    assert mean == pytest.approx(float(np.average(area, weights=weights)), rel=1e-12)


# Intervals


@pytest.mark.parametrize("name", ["concordance_survival", "concordance_survival_uno", "roc_auc_survival"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_standard_errors_are_those_of_leaving_out_rows(name: str, weights: str | None) -> None:
    rows, metric = people(80), public(name)
    given = tf.survival.outcome(
        "time", "event", censoring=tf.survival.censoring_distribution(rows, TRUTH, case_weights=weights)
    )
    options: dict[str, Any] = {"probs": {4: "s4"}, "case_weights": weights}
    result = metric(rows, given, "estimate", **options, interval="auto")
    numbered = rows.with_row_index("row")
    others = numbered.join(numbered.select(left_out="row"), how="cross").filter(pl.col("row") != pl.col("left_out"))
    without = metric(others, given, "estimate", **options, group_by="left_out")[".estimate"].to_numpy()
    assert len(without) == len(rows)
    error = float(np.sqrt((len(rows) - 1) / len(rows) * ((without - without.mean()) ** 2).sum()))
    assert result[".std_error"].item() == pytest.approx(error, rel=0.05)
    assert result[".method"].item() == "jackknife"
    assert 0 < result[".lower"].item() < result[".estimate"].item() < result[".upper"].item() < 1


def test_intervals_of_clusters_are_those_of_their_copies() -> None:
    rows = people(80).with_row_index("person")
    twice = pl.concat([rows, rows])
    expected = call(ALL, rows, case_weights=None, interval="auto", cluster="person")
    result = call(ALL, twice, case_weights=None, interval="auto", cluster="person")
    of_pairs = pl.col(".metric").is_in(["roc_auc_survival", "concordance_survival", "concordance_survival_uno"])
    one, other = (table.filter(of_pairs)[".std_error"] for table in (expected, result))
    assert one.to_list() == pytest.approx(other.to_list(), rel=1e-9)


@pytest.mark.usefixtures("few_draws")
def test_bootstrap_gives_errors_like_those_of_leaving_out_rows() -> None:
    rows = people(200)
    both = tf.metric_set(tf.survival.brier, tf.survival.concordance, tf.survival.roc_auc)
    errors = [
        both(rows, TRUTH, "estimate", probs=PROBS, interval=interval, times=200)[".std_error"].to_list()
        for interval in ("auto", "bootstrap")
    ]
    assert errors[0] == pytest.approx(errors[1], rel=0.3)
    alone = tf.survival.concordance.difference("group").by_group(
        rows, TRUTH, "estimate", interval="bootstrap", times=50
    )
    assert alone[".std_error"].null_count() == 0


def test_differences_have_intervals_at_each_time() -> None:
    both = tf.metric_set(tf.survival.brier.difference("group"), tf.survival.concordance_parity("group"))
    result = both(people(150), TRUTH, "estimate", probs=PROBS, interval="auto", explain=True)
    assert result[".eval_time"].to_list() == [4.0, 8.0, None]
    assert (result[".lower"] <= result[".estimate"]).all()
    assert (result[".estimate"] <= result[".upper"]).all()
    assert result[".groups_left_out"].list.len().sum() == 0


def rare_events(samples: int, rows: int, rate: float) -> pl.DataFrame:
    """Samples of people of different hazards, all followed for three years, and their chance to survive the first."""
    random = np.random.default_rng(3)
    hazard = -np.log(1 - rate) * random.uniform(0.5, 1.5, samples * rows)
    time = random.exponential(1 / hazard)
    return pl.DataFrame({
        "time": np.minimum(time, 3), "event": time <= 3, "s1": np.exp(-hazard),
        "sample": np.repeat(np.arange(samples), rows), "person": np.arange(samples * rows),
    })  # fmt: skip


def test_interval_of_a_brier_score_adds_a_row_of_which_half_has_the_event() -> None:
    rows = rare_events(1, 40, 0.05)
    result = tf.survival.brier(rows, TRUTH, probs={1: "s1"}, interval="auto").row(0, named=True)
    survives, chance = rows["time"].to_numpy() > 1, rows["s1"].to_numpy()
    errors = np.append((survives - chance) ** 2, [(chance**2).mean(), ((1 - chance) ** 2).mean()])
    counts = np.append(np.ones(len(rows)), [0.5, 0.5])
    without = (counts @ errors - counts * errors) / (counts.sum() - counts)
    centre = counts @ errors / counts.sum()
    change = (centre - without)[:-2]
    variance = (len(rows) - 1) / len(rows) * ((change - change.mean()) ** 2).sum()
    error = np.sqrt(variance + ((centre - without)[-2:] ** 2 / 0.5).sum())
    assert result[".std_error"] == pytest.approx(error)
    reach = stats.t.ppf(0.975, len(rows) - 1) * error / (centre * (1 - centre))
    middle = special.logit(centre)
    expected = special.expit([middle - reach, middle + reach])
    assert [result[".lower"], result[".upper"]] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["brier_survival", "calibration_in_the_large_survival", "calibration_ratio_survival"])
def test_intervals_of_rare_events_hold_the_truth(name: str) -> None:
    samples, everyone = rare_events(200, 20, 0.05), rare_events(1, 100_000, 0.05)
    truth = {
        "brier_survival": ((everyone["time"] > 1) - everyone["s1"]).pow(2).mean(),
        "calibration_in_the_large_survival": 0,
        "calibration_ratio_survival": 1,
    }[name]
    metric = public(name)
    result = metric(samples, TRUTH, probs={1: "s1"}, group_by="sample", cluster="person", interval="auto")
    # without a row that has not been seen, those of samples without an event do not: three of ten
    assert ((result[".lower"] <= truth) & (result[".upper"] >= truth)).fill_null(value=False).mean() > 0.85
    if name == "brier_survival":
        assert result[".upper"].max() < 1


def test_brier_score_without_censoring_has_the_interval_of_that_of_labels() -> None:
    rows = rare_events(20, 30, 0.05).with_columns(died=(pl.col("time") <= 1).cast(pl.Int8), risk=1 - pl.col("s1"))
    options: dict[str, Any] = {"group_by": "sample", "cluster": "person", "interval": "auto"}
    result = tf.survival.brier(rows, TRUTH, probs={1: "s1"}, **options)
    expected = tf.brier_class(rows, "died", probs="risk", **options)
    limits = [".lower", ".upper", ".std_error"]
    assert_frame_equal(result.select(limits), expected.select(limits))


def test_brier_scores_above_1_by_their_weights_have_limits_that_hold_them() -> None:
    rows = people(60).with_columns(group=pl.when(pl.col("time") > 8).then(pl.lit("late")).otherwise(pl.lit("early")))
    wrong = rows.with_columns(s8=pl.when(pl.col("time") > 8).then(0.0).otherwise(1.0))
    groups = tf.survival.brier.difference("group").by_group(wrong, TRUTH, probs={8: "s8"}, interval="auto")
    assert (groups[".estimate"] > 1).any()
    assert groups.select((pl.col(".lower") <= pl.col(".estimate")).all()).item()
    assert groups.select((pl.col(".estimate") <= pl.col(".upper")).all()).item()


def test_tallies_of_parts_have_the_intervals_of_a_call() -> None:
    rows = people(80).with_row_index("person")
    options: dict[str, Any] = {"probs": PROBS, "cluster": "person"}
    given = tf.survival.outcome("time", "event", censoring=tf.survival.censoring_distribution(rows, TRUTH))
    parts = [tf.survival.brier.tally(part, given, **options) for part in (rows[:30], rows[30:])]
    merged = pickle.loads(pickle.dumps(parts[0] + parts[1]))  # noqa: S301 - our own
    expected = tf.survival.brier(rows, given, **options, interval="auto")
    assert_frame_equal(tf.survival.brier.compute(merged, interval="auto"), expected)


# Tests, gates and comparisons of models


@pytest.mark.usefixtures("few_draws")
def test_tests_and_comparisons_take_one_evaluation_time_and_gates_and_pairs_several() -> None:
    rows, options = people(150), {"probs": PROBS}
    gap: Any = tf.metric_set(tf.survival.brier.difference("group"), tf.survival.concordance_parity("group"))
    gate: Any = tf.check(gap, below=0.9)
    verdicts = gate(rows, TRUTH, "estimate", **options)
    assert verdicts.select(".eval_time", ".verdict").rows() == [(4.0, "pass"), (8.0, "pass"), (None, "pass")]
    analyses: list[tuple[Any, dict[str, Any]]] = [
        (tf.inference.disparity_test(gap), {"times": 20}),
        (tf.compare_groups(tf.survival.brier, by="group", to="a"), {}),
    ]
    for analysis, draws in analyses:
        message = refusal(analysis, TRUTH, "estimate", rows=rows, **options)
        assert "does not accept several evaluation times as `probs=` for brier_survival; give one." in message
        at_four = analysis(rows, TRUTH, "estimate", probs={4: "s4"}, **draws)
        assert not {column for column in at_four.columns if "threshold" in column}
    both: Any = tf.metric_set(tf.survival.brier, tf.survival.concordance)
    one = both(rows, TRUTH, "estimate", probs={4: "s4"})
    assert numbers(one) == pytest.approx({key: value for key, value in numbers(
        both(rows, TRUTH, "estimate", **options)).items() if key[1] != 8}, rel=1e-12)  # fmt: skip


def test_models_are_compared_by_their_survival_probabilities() -> None:
    rows = people(150)
    compared: Any = tf.compare_models(tf.survival.brier)
    result = compared(rows, TRUTH, one={4: "s4"}, other={4: "s8"})
    values = [tf.survival.brier(rows, TRUTH, probs={4: name})[".estimate"].item() for name in ("s4", "s8")]
    assert [result[".one"].item(), result[".other"].item()] == pytest.approx(values, rel=1e-12)
    assert result[".lower"].item() < result[".change"].item() < result[".upper"].item()
    assert "both need the same times or levels" in refusal(compared, TRUTH, rows=rows, one={4: "s4"}, other={8: "s4"})
    by_order: Any = tf.compare_models(tf.survival.concordance)
    result = by_order(rows, TRUTH, one="estimate", other="s8")
    values = [tf.survival.concordance(rows, TRUTH, name)[".estimate"].item() for name in ("estimate", "s8")]
    assert result[".change"].item() == pytest.approx(values[1] - values[0], rel=1e-12)
    assert result[".lower"].item() < result[".change"].item() < result[".upper"].item()


def test_pairs_at_several_times_are_those_of_each_time_adjusted_for_all() -> None:
    rows, keys = people(150), [".metric", ".eval_time", ".group", ".other"]
    brier, order = tf.survival.brier.difference("group"), tf.survival.concordance_parity("group")
    pairs: Any = tf.inference.pairwise(brier, order, adjust="holm", family="all")
    result = pairs(rows, TRUTH, "estimate", probs=PROBS).sort(keys)
    values: dict[tuple[Any, ...], tuple[float, float]] = {}
    for at, name in PROBS.items():
        alone: Any = tf.inference.pairwise(brier, adjust="none")
        for row in alone(rows, TRUTH, probs={at: name}).to_dicts():
            values["brier_survival", at, row[".group"], row[".other"]] = row[".disparity"], row[".p_value"]
    alone = tf.inference.pairwise(order, adjust="none")
    for row in alone(rows, TRUTH, "estimate").to_dicts():
        values["concordance_survival", None, row[".group"], row[".other"]] = row[".disparity"], row[".p_value"]
    assert set(result.select(keys).rows()) == set(values)
    for key, disparity, p_value in result.select(pl.struct(keys), ".disparity", ".p_value").rows():
        expected, p_expected = values[tuple(key.values())]
        assert disparity == pytest.approx(expected, rel=1e-9)
        assert p_value == pytest.approx(p_expected, rel=0.05)
    # the smallest of nine p-values, of three comparisons of three groups each, is multiplied by nine
    smallest = result.sort(".p_value").row(0, named=True)
    assert smallest[".p_adjusted"] == pytest.approx(min(1, 9 * smallest[".p_value"]))
    assert {name.split(" by ")[0] for name in panels_of(tf.autoplot(result))} >= {
        "Brier score of survival at time 4", "Brier score of survival at time 8"
    }  # fmt: skip


def panels_of(chart: Any) -> set[str]:
    """The names of panels, as the rows of marks have them."""
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    return {row["panel"] for row in rows if "panel" in row}


def test_values_of_groups_are_in_the_order_of_the_set() -> None:
    order, brier = tf.survival.concordance_parity("group"), tf.survival.brier.difference("group")
    for metrics in (
        tf.metric_set(order, brier),
        tf.metric_set(brier, order),
        tf.metric_set(order, brier, tf.survival.brier),
    ):
        groups = metrics.by_group(people(), TRUTH, "estimate", probs=PROBS)
        shown = groups.select(".metric", ".by").unique(maintain_order=True).rows()
        assert shown == [(metric.specs[0].formulas[0][0], metric.by and metric.by.text) for metric in metrics]
        times = groups.filter(pl.col(".metric") == "brier_survival", pl.col(".by") == "group")
        assert times.select(".eval_time", ".group").rows() == list(product(PROBS, "abc"))


def test_metrics_at_several_times_are_drawn_over_time() -> None:
    gap: Any = tf.metric_set(tf.survival.brier.difference("group"), tf.survival.concordance_parity("group"))
    several, one = (gap(people(), TRUTH, "estimate", probs=probs) for probs in (PROBS, {4: "s4"}))
    over_time = str(tf.autoplot(several).to_dict())
    assert "Evaluation time" in over_time
    assert "not drawn: Concordance parity, which does not depend on the evaluation time" in over_time
    assert "Evaluation time" not in str(tf.autoplot(one).to_dict())


def test_saved_tallies_know_their_times_and_their_censoring(tmp_path: Path) -> None:
    rows, file = people(), tmp_path / "state"
    known = tf.survival.outcome("time", "event", censoring=tf.survival.censoring_distribution(rows, TRUTH))
    tally = ALL.tally(rows, known, "estimate", probs=PROBS)
    tf.save_state(tally, file)
    back = tf.load_state(file, ALL.tally(rows.head(0), known, "estimate", probs=PROBS))
    assert_frame_equal(ALL.compute(back), ALL.compute(tally))
    for truth, probs in ((TRUTH, PROBS), (known, {4: "s4", 9: "s8"})):
        with pytest.raises(tf.errors.ArgumentError):
            tf.load_state(file, ALL.tally(rows.head(0), truth, "estimate", probs=probs))


# What is refused


def refusal(metric: Any, *args: Any, rows: pl.DataFrame | None = None, **options: Any) -> str:
    with pytest.raises(tf.errors.TidyfairError) as caught:
        metric(people() if rows is None else rows, *args, **options)
    return str(caught.value)


def test_calls_without_what_survival_metrics_read_say_what_to_write() -> None:
    assert refusal(tf.survival.concordance, "time", "estimate") == (
        'concordance_survival reads survival times: write `truth=survival.outcome("time", "event")`, not \'time\'.'
    )
    assert refusal(tf.survival.concordance, TRUTH) == (
        "concordance_survival needs the column of predicted times, or of risks: `estimate=`."
    )
    assert refusal(tf.survival.brier, TRUTH) == (
        'brier_survival needs survival probabilities by evaluation time: `probs={365: "survival_at_365"}`.'
    )
    assert refusal(tf.survival.brier, TRUTH, probs="s4") == (
        "`probs` of survival metrics maps evaluation times to columns of survival probabilities, such as "
        "`probs={365: \"survival_at_365\"}`, and is not 's4'."
    )
    assert refusal(tf.survival.brier, TRUTH, probs={-1: "s4"}) == (
        "`probs` maps a time from 0 on to a column of survival probabilities, not -1."
    )
    assert "give survival probabilities at two or more times" in refusal(
        tf.survival.brier_integrated, TRUTH, probs={4: "s4"}
    )
    assert refusal(tf.survival.brier, TRUTH, probs={4: "s5"}).startswith("`probs`: there is no column 's5'.")
    assert refusal(tf.accuracy, TRUTH, "estimate") == (
        "accuracy reads labels, not survival times: give a column as `truth=`."
    )
    assert refusal(tf.survival.concordance, TRUTH, tf.prediction_intervals.interval("s4", "s8", level=0.9)) == (
        "`estimate`: concordance_survival reads one column of predictions, not an interval or quantiles."
    )
    assert "A set cannot combine metrics of survival times with others" in refusal(
        lambda _: tf.metric_set(tf.accuracy, tf.survival.brier)
    )
    given: dict[str, Any]
    for metric, given in (
        (tf.survival.brier, {"probs": {4: "s4"}}),
        (tf.survival.concordance, {"estimate": "estimate"}),
        (tf.survival.brier, {"estimate": "estimate", "probs": {4: "s4"}}),
    ):
        assert refusal(metric, TRUTH, threshold=0.5, **given) == (
            f"`threshold` turns scores into labels, but {metric.name} reads survival times; leave it out."
        )
    assert "`pos_label` applies to labels, but concordance_survival reads survival times" in refusal(
        tf.survival.concordance, TRUTH, "estimate", pos_label=True
    )


def test_values_that_are_no_survival_times_are_refused() -> None:
    rows = people()
    for columns, message in (
        ({"time": -pl.col("time")}, "the column of times 'time' holds -11; survival times are not negative"),
        ({"event": pl.col("fold")}, r"the column of events 'event' holds 2; it must be Boolean, or 0 and 1"),
        ({"event": pl.col("group")}, "the column of events 'event' is String; it must be Boolean, or 0 and 1"),
        ({"time": pl.col("group")}, "the column 'time' is String"),
        ({"estimate": pl.col("group")}, "the column 'estimate' is String; predicted times and risks are numbers"),
        ({"s4": pl.col("s4") * 2}, "'s4' holds values from 0 to 2, but survival probabilities lie between 0 and 1"),
    ):  # fmt: skip
        assert message in refusal(ALL, TRUTH, "estimate", rows=rows.with_columns(**columns), probs=PROBS)


def test_survival_that_rises_in_all_rows_is_refused() -> None:
    rows = people().with_columns(s4=0.5 + pl.col("s4") / 2, s8=0.25 + pl.col("s4") / 4)
    assert refusal(tf.survival.brier, TRUTH, rows=rows, probs={8: "s4", 4: "s8"}) == (
        "`probs`: 's4' at 8 is above 's8' at 4 in all rows, but survival does not rise with time; the columns may be "
        "swapped."
    )
    # models of single times may cross in some rows, and agree
    some = rows.with_columns(s8=pl.when(pl.col("time") > 3).then("s8").otherwise(1.0))
    assert tf.survival.brier(some, TRUTH, probs={8: "s4", 4: "s8"})[".estimate"].null_count() == 0
    assert tf.survival.brier(rows, TRUTH, probs={4: "s4", 8: "s4"})[".estimate"].null_count() == 0


def test_censoring_that_does_not_fit_is_refused() -> None:
    odd: Any = 3
    assert "`censoring` is made by `survival.censoring_distribution(" in refusal(
        lambda _: tf.survival.outcome("time", "event", censoring=odd)
    )
    both: Any = {"censoring": tf.survival.censoring_distribution(people(), TRUTH), "censoring_by": "group"}
    assert "give only one of them" in refusal(lambda _: tf.survival.outcome("time", "event", **both))
    at_four = tf.survival.outcome("time", "event", censoring={4: "weight"})
    assert "`censoring` has no weights for the evaluation time 8.0" in refusal(tf.survival.brier, at_four, probs=PROBS)
    assert "give `censoring_distribution(…)` instead" in refusal(
        tf.survival.concordance_uno, at_four, "estimate", probs={4: "s4"}
    )
    rows = people().with_columns(weight=pl.when(pl.col("time") < 5).then("weight"))
    assert "some weights in 'weight' are missing, negative or not finite, of rows that are not censored before 4" in (
        refusal(tf.survival.brier, at_four, rows=rows, probs={4: "s4"})
    )
    sides = tf.privileged(group="a")
    assert "give `survival.outcome(…, censoring=…)`, or group by columns" in refusal(
        tf.survival.brier, TRUTH, probs=PROBS, group_by=sides
    )
    assert "takes `survival.outcome(" in refusal(lambda rows: tf.survival.censoring_distribution(rows, odd))


def test_a_censoring_distribution_is_of_rows_of_one_group() -> None:
    for rows in (people().head(0), people().with_columns(event=None), people().with_columns(time=None)):
        assert refusal(lambda data: tf.survival.censoring_distribution(data, TRUTH), rows=rows) == (
            "censoring_distribution(): no row has both a time in 'time' and an event in 'event'."
        )
    assert refusal(lambda data: tf.survival.censoring_distribution(data.group_by("fold"), TRUTH)) == (
        "censoring_distribution() estimates one distribution, but the data are grouped. Give the frame without groups, "
        "or estimate it in each group by `survival.outcome(…, censoring_by=…)`."
    )
    weightless = people().with_columns(weight=0)
    assert "all values of 'weight' are zero" in refusal(
        lambda data: tf.survival.censoring_distribution(data, TRUTH, case_weights="weight"), rows=weightless
    )


def test_names_of_columns_are_refused_where_arrays_are_read() -> None:
    message = "`survival.outcome` takes arrays in `.arrays`, but `time` is the column 'time'"
    with pytest.raises(tf.errors.ColumnError, match=message.replace("(", r"\(")):
        tf.survival.concordance.arrays(TRUTH, [1, 2, 3])
    interval = tf.prediction_intervals.interval([0, 1], "high", level=0.9)
    with pytest.raises(
        tf.errors.ColumnError,
        match=r"`prediction_intervals.interval` takes arrays in `.arrays`, but `upper` is the column",
    ):
        tf.prediction_intervals.coverage.arrays([1, 2], interval)


def test_survival_times_and_intervals_have_no_usual_metrics() -> None:
    interval = tf.prediction_intervals.interval("s8", "s4", level=0.9)
    for content, metric, truth, estimate in (
        ("survival times", "concordance_survival", TRUTH, "estimate"),
        ("intervals", "interval_coverage", "time", interval),
        ("quantiles", "weighted_interval_score", "time", {0.5: "estimate"}),
    ):
        given: Any = (truth, estimate)
        for call_without_metrics in (tf.default_metrics, lambda *args: tf.report(*args, by="group")):
            assert refusal(call_without_metrics, *given) == (
                f"The usual metrics are of labels, scores and numbers, not of {content}; ask for metrics such as "
                f"`{metric}`, which a report takes as `metrics=`."
            )


def test_values_after_the_last_censored_row_are_null() -> None:
    rows = people().with_columns(event=(pl.col("time") < pl.col("time").max()) & pl.col("event"))
    last = rows["time"].to_numpy().max()
    probs = PROBS | {99: "s8"}
    result = call(tf.metric_set(*ALL), rows, probs=probs, on_undefined="ignore", explain=True)
    late = result.filter((pl.col(".eval_time") == 99) | (pl.col(".metric") == "brier_survival_integrated"))
    assert late[".estimate"].null_count() == len(late) == 5
    assert {*late[".status"]} == {"all_censored", "one_class"}
    early = result.filter(pl.col(".eval_time") < 99)
    assert_frame_equal(early, call(tf.metric_set(*ALL), rows, explain=True).filter(pl.col(".eval_time") < 99))
    at_last = call(tf.survival.brier, rows, probs={last: "s8"})
    assert at_last[".estimate"].null_count() == 0
    # an event ends the follow-up of nobody else
    ended = rows.with_columns(event=pl.col("event") | (pl.col("time") == last))
    assert call(tf.survival.brier, ended, probs={99: "s8"})[".estimate"].null_count() == 0


def test_integral_of_a_group_that_is_censored_before_a_time_is_null() -> None:
    rows = people().with_columns(
        event=pl.col("event") & (pl.col("group") != "a"),
        time=pl.when(pl.col("group") == "a").then(pl.min_horizontal("time", 5.0)).otherwise("time"),
    )
    integrals = tf.survival.brier_integrated.difference("group")
    values = integrals.by_group(rows, TRUTH, probs=PROBS, on_undefined="ignore")
    assert values.select(".group", ".status").rows() == [("a", "all_censored"), ("b", "ok"), ("c", "ok")]
    of_two = integrals(rows.filter(pl.col("group") != "a"), TRUTH, probs=PROBS)[".estimate"].item()
    weighted_by_all = values[".estimate"].drop_nulls().to_numpy()
    result = integrals(rows, TRUTH, probs=PROBS, on_undefined="ignore")[".estimate"].item()
    assert result == pytest.approx(np.ptp(weighted_by_all))
    assert result != of_two
    outer = call(tf.survival.brier_integrated, rows, group_by="group", on_undefined="ignore")
    assert outer[".estimate"].null_count() == 1


def test_bad_columns_of_a_censoring_distribution_are_named() -> None:
    rows = pl.DataFrame({"time": [1.0, 2.0], "event": [True, False], "weight": ["a", "b"]})
    with pytest.raises(
        tf.errors.WeightError, match="`case_weights`: the column 'weight' is String; weights must be numbers"
    ):
        tf.survival.censoring_distribution(rows, TRUTH, case_weights="weight")
    with pytest.raises(tf.errors.WeightError, match="some values of 'weight' are missing, negative or not finite"):
        tf.survival.censoring_distribution(
            rows.with_columns(weight=pl.Series([1.0, -1.0])), TRUTH, case_weights="weight"
        )
    with pytest.raises(tf.errors.ColumnError, match="`truth`: the column 'time' holds infinite values"):
        tf.survival.censoring_distribution(rows.with_columns(time=float("inf")), TRUTH)


# Risks that are read as times


def _with_hazards(size: int = 300, *, effect: float = 1.0) -> pl.DataFrame:
    """Survival times by a proportional hazard, half of them censored or so."""
    random = np.random.default_rng(1)
    strength = random.normal(size=size)
    times, censored = random.exponential(np.exp(-effect * strength)), random.exponential(2, size=size)
    return pl.DataFrame({
        "days": np.minimum(times, censored), "died": times <= censored, "hazard": np.exp(strength),
        "g": random.choice(["a", "b"], size),
    })  # fmt: skip


@pytest.mark.parametrize(
    "metric", [tf.survival.concordance, tf.survival.concordance_uno, tf.survival.concordance_parity("g")]
)
def test_hazards_that_are_read_as_times_give_a_warning_with_the_way_out(metric: Any) -> None:
    with pytest.warns(tf.errors.DirectionWarning) as caught:
        metric(_with_hazards(), tf.survival.outcome("days", "died"), "hazard")
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert "is 0.26 over all rows, clearly below 0.5" in text or "_uno" in text
    assert ', "c_index", risk=True)`, and compare groups by its `.difference("column")`' in text


def test_times_that_are_read_as_risks_give_a_warning() -> None:
    c_index = tf.metric_tweak(tf.survival.concordance, "c_index", risk=True)
    survival_times = _with_hazards().with_columns(time=1 / pl.col("hazard"))
    with pytest.warns(tf.errors.DirectionWarning, match="c_index is 0.26 .* if these are times, leave out `risk=True`"):
        c_index.difference("g").by_group(survival_times, tf.survival.outcome("days", "died"), "time")


@pytest.mark.filterwarnings("error::tidyfair.errors.DirectionWarning")
def test_orders_that_are_right_or_may_be_random_give_no_warning() -> None:
    truth, data = tf.survival.outcome("days", "died"), _with_hazards()
    c_index = tf.metric_tweak(tf.survival.concordance, "c_index", risk=True)
    metrics = tf.metric_set(c_index, c_index.difference("g"))
    metrics(data, truth, "hazard")
    tf.survival.concordance(data.with_columns(time=1 / pl.col("hazard")), truth, "time")
    # no order at all, and too few rows to tell
    tf.survival.concordance_parity("g")(_with_hazards(effect=0.0), truth, "hazard")
    tf.survival.concordance(data[:6], truth, "hazard")
    tf.survival.concordance(data, truth, "hazard", on_undefined="ignore")
