"""Frontiers of models: values and errors equal plain arithmetic, and limits hold for all models together."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import model_frontier


def drawn(rows: int, rates: np.ndarray, seed: int) -> pl.DataFrame:
    """Rows of which models select groups at given rates: models by groups; most rows are seen alike by all models."""
    random = np.random.default_rng(seed)
    models, groups = rates.shape
    group, shared = random.integers(0, groups, rows), random.random(rows)
    own = random.random((models, rows))
    seen = np.where(random.random((models, rows)) < 0.7, shared, own)
    selected = seen < rates[:, group]
    return pl.DataFrame({"g": group, "y": shared < 0.5, **{f"m{index}": row for index, row in enumerate(selected)}})


def accuracies(rates: np.ndarray) -> np.ndarray:
    """The true accuracy of models: a row that is seen alike is right unless it lies between the rate and one half."""
    return (0.7 * (1 - np.abs(rates - 0.5)) + 0.3 * 0.5).mean(axis=1)


def test_values_equal_those_of_the_metrics_and_the_frontier_is_that_of_brute_force() -> None:
    people = lending().with_columns((pl.col("score") * 10).floor().alias("tens"))
    cuts = [(pl.col("score") >= cut / 20).alias(f"at {cut}") for cut in range(6, 15)]
    people = people.with_columns(cuts, paid=pl.col("repaid") == "yes")
    names = [f"at {cut}" for cut in range(6, 15)]
    disparity = tf.equalized_odds("race", min_n=30)
    result = model_frontier(tf.f_meas, disparity)(people, "paid", models=names, baseline="at 10")
    assert result[".model"].to_list() == ["at 10", *(name for name in names if name != "at 10")]
    for row in result.to_dicts():
        alone = tf.metric_set(tf.f_meas, disparity)(people, "paid", row[".model"], on_undefined="ignore")[".estimate"]
        assert (row[".performance"], row[".disparity"]) == pytest.approx(tuple(alone), rel=1e-12)
    points = result.select(".performance", ".disparity").rows()
    for (good, bad), on_frontier in zip(points, result[".on_frontier"], strict=True):
        beaten = any(a >= good and b <= bad and (a, b) != (good, bad) for a, b in points)
        assert on_frontier == (not beaten)
    assert set(result.select(".performance_metric", ".disparity_metric", ".by").rows()) == {
        ("f_meas", "equalized_odds", "race")
    }
    change = result[".disparity"] - result[".disparity"][0]
    assert result[".disparity_change"][1:].to_list() == pytest.approx(change[1:].to_list())
    assert result[".verdict"][0] == "baseline"
    assert result[0].select(r"^.*_change.*$").null_count().row(0) == (1,) * 6


def test_width_of_two_models_equals_that_of_paired_rows() -> None:
    rates = np.array([[0.5, 0.4], [0.45, 0.42]])
    data = drawn(4000, rates, 3)
    row = model_frontier(tf.accuracy, tf.demographic_parity("g"))(data, "y", models=["m1"], baseline="m0").row(
        1, named=True
    )
    paired = (data["m1"] == data["y"]).cast(int) - (data["m0"] == data["y"]).cast(int)
    error = float(np.std(paired.to_numpy())) / math.sqrt(len(paired))
    # of one change alone, the limits are those of the normal distribution
    width = row[".performance_change_upper"] - row[".performance_change_lower"]
    assert width == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert row[".performance_change"] == pytest.approx(paired.mean())


@pytest.mark.simulation
def test_limits_hold_for_all_models_together() -> None:
    random = np.random.default_rng(8)
    rates = random.uniform(0.35, 0.65, (12, 3))
    # several models are alike, as those of a search are
    rates[6:] = rates[:6] + 0.01
    true = {".performance": accuracies(rates), ".disparity": np.ptp(rates, axis=1)}
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    missed = dict.fromkeys([*true, ".performance_change", ".disparity_change"], 0)
    runs = 200
    for run in range(runs):
        names = [f"m{index}" for index in range(12)]
        result = frontier(drawn(900, rates, run), "y", models=names, baseline="m0")
        for name in missed:
            values = true[name.removesuffix("_change")]
            values = (values - values[0])[1:] if name.endswith("change") else values
            rows = result[len(result) - len(values) :]
            inside = rows.select(pl.col(f"{name}_lower") <= values, pl.col(f"{name}_upper") >= values)
            missed[name] += not inside.select(pl.all_horizontal(pl.all()).all()).item()
    # 5 % and two standard errors of so many runs
    assert {name: count / runs for name, count in missed.items() if count / runs > 0.08} == {}


@pytest.mark.simulation
def test_no_model_is_called_less_discriminatory_by_chance_among_many() -> None:
    rates = np.full((40, 3), 0.4)
    rates[:, 1] = 0.5
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    names = [f"m{index}" for index in range(40)]
    wrong, fairer = 0, 0
    for run in range(60):
        result = frontier(drawn(500, rates, run), "y", models=names, baseline="m0")
        wrong += "less discriminatory" in " ".join(result[".verdict"])
        fairer += (result[".disparity_change"] < -0.03).any()
    # of so many, some look much fairer in nearly every sample
    assert fairer > 40
    assert wrong <= 6


def test_verdicts_say_what_is_shown_of_each_model_with_enough_rows() -> None:
    rates = np.array([[0.5, 0.35], [0.425, 0.425], [0.1, 0.1], [0.5, 0.34], [0.5, 0.5], [0.57, 0.33], [0.4, 0.25]])
    models = [f"m{index}" for index in range(1, 7)]
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    result = frontier(drawn(20_000, rates, 1), "y", models=models, baseline="m0")
    assert result[".verdict"].to_list() == [
        "baseline", "less discriminatory", "less discriminatory, worse performance", "not told apart",
        "less discriminatory, better performance", "more discriminatory, worse performance", "worse performance",
    ]  # fmt: skip
    errors = model_frontier(tf.error_rate, tf.demographic_parity("g"))
    again = errors(drawn(20_000, rates, 1), "y", models=models, baseline="m0")
    assert again[".verdict"].to_list() == result[".verdict"].to_list()


def test_verdicts_say_what_intervals_say() -> None:
    rates = np.random.default_rng(4).uniform(0.3, 0.6, (30, 3))
    models = [f"m{index}" for index in range(1, 30)]
    result = model_frontier(tf.accuracy, tf.demographic_parity("g"))(
        drawn(6000, rates, 1), "y", models=models, baseline="m0"
    )
    seen: set[str] = set()
    for row in result[1:].to_dicts():
        expected: list[str] = []
        for change, less, more in (
            (".disparity_change", "less discriminatory", "more discriminatory"),
            (".performance_change", "worse performance", "better performance"),
        ):
            expected += [less] * (row[f"{change}_upper"] < 0) + [more] * (row[f"{change}_lower"] > 0)
        assert row[".verdict"] == (", ".join(expected) or "not told apart")
        seen.add(row[".verdict"])
    assert len(seen) > 4


def test_one_group_has_no_disparity_but_the_names_of_its_metrics() -> None:
    data = drawn(200, np.array([[0.5], [0.3]]), 1)
    result = model_frontier(tf.accuracy, tf.demographic_parity("g"))(data, "y", models=["m1"], baseline="m0")
    assert result.select(".performance_metric", ".disparity_metric", ".by").unique().rows() == [
        ("accuracy", "demographic_parity", "g")
    ]
    assert result.select(pl.col("^.disparity(_change)?(_lower|_upper)?$")).null_count().row(0) == (2,) * 6
    assert result[".performance"].null_count() == 0
    assert result[".verdict"].to_list() == ["baseline", None]


def test_identical_models_and_perfect_groups_are_not_sure() -> None:
    data = pl.DataFrame({"g": [0, 1] * 10, "y": [1, 1, 0, 0] * 5}).with_columns(one="y", other="y")
    row = model_frontier(tf.accuracy, tf.demographic_parity("g"))(data, "y", models=["other"], baseline="one").row(
        1, named=True
    )
    assert row[".performance"] == 1
    assert 0.7 < row[".performance_lower"] < 0.99
    assert row[".performance_change_lower"] < 0 < row[".performance_change_upper"]


def test_rows_without_a_prediction_are_left_out_of_all_models_and_labels_may_be_text() -> None:
    people = lending(500)
    noisy = people.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 > 0).then("approved").alias("a"),
        pl.when(pl.int_range(pl.len()) % 5 > 0).then("repaid").alias("b"),
    )
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("sex"))
    result = frontier(noisy, "repaid", models=["b"], baseline="a", pos_label="yes")
    complete = noisy.drop_nulls(["repaid", "a", "b"])
    of_complete = frontier(
        complete.to_pandas().pipe(pl.from_pandas), "repaid", models=["b"], baseline="a", pos_label="yes"
    )
    assert result.drop(".n_missing").equals(of_complete.drop(".n_missing"))
    assert result[".n"].to_list() == [len(complete)] * 2
    # a baseline without predictions in one row of seven, and a model without them in one of five
    assert result[".n_missing"].to_list() == [72, 100]
    assert of_complete[".n_missing"].to_list() == [0, 0]
    alone = tf.accuracy(complete, "repaid", "a", pos_label="yes")[".estimate"].item()
    assert result[".performance"][0] == pytest.approx(alone)
    in_pandas = frontier(noisy.to_pandas(), "repaid", models=["b"], baseline="a", pos_label="yes")
    assert type(in_pandas).__module__.startswith("pandas")


def test_truth_values_and_whole_numbers_are_the_same_labels() -> None:
    data = drawn(500, np.array([[0.5, 0.4], [0.45, 0.42]]), 2)
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    result = frontier(data, "y", models=["m1"], baseline="m0")
    for columns in (["y"], ["m0"], ["m1"], ["y", "m0", "m1"]):
        mixed = data.with_columns(pl.col(columns).cast(pl.Int64))
        assert frontier(mixed, "y", models=["m1"], baseline="m0").equals(result)


def test_undefined_disparities_are_null() -> None:
    data = pl.DataFrame({"g": [0, 1] * 20, "y": [True, True, False, False] * 10})
    data = data.with_columns(one="y", never=pl.lit(value=False))
    result = model_frontier(tf.accuracy, tf.predictive_parity("g"))(data, "y", models=["never"], baseline="one")
    assert result[".disparity"].to_list() == [0, None]
    assert result[".verdict"].to_list() == ["baseline", None]
    assert result[".on_frontier"].to_list() == [True, False]


def test_two_hundred_models_take_a_few_seconds() -> None:
    random = np.random.default_rng(1)
    data = drawn(20_000, random.uniform(0.3, 0.7, (200, 4)), 5)
    start = time.process_time()
    model_frontier(tf.accuracy, tf.demographic_parity("g"))(
        data, "y", models=[f"m{index}" for index in range(200)], baseline="m0"
    )
    assert time.process_time() - start < 4


def test_fifty_groups_of_many_models_take_seconds() -> None:
    random = np.random.default_rng(1)
    data = drawn(20_000, random.uniform(0.3, 0.7, (60, 50)), 5)
    start = time.process_time()
    result = model_frontier(tf.accuracy, tf.equalized_odds("g"))(
        data, "y", models=[f"m{index}" for index in range(60)], baseline="m0"
    )
    assert time.process_time() - start < 15
    assert result.null_count().select(".disparity_change_upper").item() == 1


def test_limits_of_the_change_of_one_gap_are_those_of_paired_rows() -> None:
    data = drawn(6000, np.array([[0.7, 0.3], [0.6, 0.35]]), 4)
    row = model_frontier(tf.accuracy, tf.demographic_parity("g"))(data, "y", models=["m1"], baseline="m0").row(
        1, named=True
    )
    moved = data.select("g", moved=pl.col("m1").cast(int) - pl.col("m0").cast(int))
    of_groups = moved.group_by("g").agg(pl.col("moved").mean(), error=pl.col("moved").std() / pl.len().sqrt()).sort("g")
    change = of_groups["moved"][0] - of_groups["moved"][1]
    error = math.hypot(*of_groups["error"])
    assert row[".disparity_change"] == pytest.approx(change)
    # the gap to the other side is far away, but it counts among what limits allow for
    for end, sign in (("lower", -1), ("upper", 1)):
        assert 1.9 < sign * (row[f".disparity_change_{end}"] - change) / error < 2.4


def test_limits_are_within_what_metrics_can_reach() -> None:
    ends = {".performance": (0, 1), ".disparity": (0, 1), ".performance_change": (-1, 1), ".disparity_change": (-1, 1)}
    for rows in (2, 4, 8):
        data = pl.DataFrame({"g": [0, 1] * (rows // 2), "y": [1, 0] * (rows // 2)})
        data = data.with_columns(bad=1 - pl.col("y"), good="y")
        result = model_frontier(tf.accuracy, tf.demographic_parity("g"))(
            data, "y", models=["good"], baseline="bad", pos_label=1
        )
        for name, (least, most) in ends.items():
            assert result[f"{name}_lower"].min() >= least
            assert result[f"{name}_upper"].max() <= most


def test_few_rows_show_no_improvement() -> None:
    # all rows change for the better: McNemar's exact p-values are 1, 0.5, 0.25 and 0.125
    for rows in range(1, 5):
        data = pl.DataFrame({"g": ["a", "b", "a", "b"], "y": [1, 0, 0, 1]})[:rows]
        data = data.with_columns(bad=1 - pl.col("y"), good="y")
        frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
        row = frontier(data, "y", models=["good"], baseline="bad", pos_label=1).row(1, named=True)
        assert row[".performance_change"] == 1
        assert row[".performance_change_lower"] <= 0
        assert row[".verdict"] in (None, "not told apart")


def test_a_group_of_one_row_may_be_anything() -> None:
    data = drawn(3000, np.array([[0.8, 0.2], [0.5, 0.5]]), 2)
    more = pl.DataFrame({"g": 2, "y": True, "m0": True, "m1": False}, schema=data.schema)
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    assert frontier(data, "y", models=["m1"], baseline="m0")[".verdict"][1].startswith("less discriminatory")
    lone = frontier(pl.concat([data, more]), "y", models=["m1"], baseline="m0")
    assert lone[".disparity_upper"].to_list() == [1, 1]
    assert "discriminatory" not in lone[".verdict"][1]
    enough = model_frontier(tf.accuracy, tf.demographic_parity("g", min_n=10))
    left_out = enough(pl.concat([data, more]), "y", models=["m1"], baseline="m0")
    assert left_out[".groups_left_out"].to_list() == [["2"], ["2"]]
    assert left_out[".verdict"][1].startswith("less discriminatory")


def test_metrics_whose_denominators_differ_from_model_to_model_are_compared() -> None:
    # the rows that are selected, and those that are not, are few in some groups of some models
    random = np.random.default_rng(6)
    data = drawn(150, random.uniform(0, 1, (8, 4)), 3)
    both = tf.new_groupwise_metric(tf.metric_set(tf.precision, tf.npv), "predictive", tf.difference())
    result = model_frontier(tf.accuracy, both("g"))(
        data, "y", models=[f"m{index}" for index in range(8)], baseline="m0"
    )
    known = result.filter(pl.col(".disparity").is_not_null())
    assert len(known) > 2
    assert known.select((pl.col(".disparity_lower") <= pl.col(".disparity")).all()).item()
    assert known.select((pl.col(".disparity_upper") >= pl.col(".disparity")).all()).item()


def test_no_rows_give_null_values() -> None:
    data = drawn(10, np.array([[0.5, 0.4], [0.45, 0.42]]), 2)
    frontier = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    result = frontier(data.clear(), "y", models=["m1"], baseline="m0")
    assert result.schema == frontier(data, "y", models=["m1"], baseline="m0").schema
    assert result.select(".performance", ".disparity", ".n").rows() == [(None, None, 0)] * 2
    assert result[".verdict"].to_list() == ["baseline", None]


def test_missing_numbers_count_as_missing_predictions() -> None:
    data = pl.DataFrame({"g": [0, 1] * 6, "y": [1.0, 0, 1] * 4, "one": [1.0, 0] * 6, "other": [math.nan, 1.0, 0] * 4})
    result = model_frontier(tf.accuracy, tf.demographic_parity("g"))(data, "y", models=["other"], baseline="one")
    assert result[".n"].to_list() == [8, 8]
    assert result[".n_missing"].to_list() == [0, 4]


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"models": ["nope"]}, "nope"),
    ({"models": "one"}, "`models` must be a list of columns"),
    ({"models": ["one"]}, "other than the baseline"),
    ({"models": ["one", "one"]}, "'one' is given more than once"),
    ({"models": ["other", "other"]}, "'other' is given more than once"),
    ({"models": ["other", (1 - pl.col("other")).alias("one")]}, "the same name as the baseline, 'one'"),
    ({"models": ["y"]}, "`models`: 'y' is the truth"),
    ({"models": ["other", pl.col("y").alias("oracle")]}, "`models`: 'oracle' is the truth"),
    ({"models": ["other"], "baseline": "y"}, "`baseline`: 'y' is the truth"),
    ({"models": ["g"]}, "`models`: 'g' defines the groups"),
    ({"models": ["other"], "baseline": pl.col("g").alias("G")}, "`baseline`: 'G' defines the groups"),
    ({"models": ["other"], "baseline": "nope"}, "`baseline`: there is no column 'nope'"),
    ({"models": ["empty"]}, "have no prediction in 'empty'"),
    ({"models": ["other"], "truth": "empty"}, "no row has a truth"),
    ({"models": ["text"]}, "which is not among the labels"),
    ({"models": ["other"], "times": 5}, "unexpected argument|times"),
]


@pytest.mark.parametrize(("arguments", "message"), CALLS)
def test_odd_calls_are_refused(arguments: dict[str, Any], message: str) -> None:
    data = pl.DataFrame({"g": [0, 1], "y": [1, 0], "one": [1, 0], "other": [0, 0], "text": ["a", "b"]})
    data = data.with_columns(empty=pl.lit(None, pl.Int64))
    frontier: Any = model_frontier(tf.accuracy, tf.demographic_parity("g"))
    with pytest.raises(tf.errors.TidyfairError, match=message):
        frontier(data, **({"truth": "y", "baseline": "one"} | arguments))


def test_metrics_that_are_not_compared_by_counts_are_refused() -> None:
    strange: list[tuple[Any, Any]] = [
        (tf.roc_auc, tf.demographic_parity("g")), (tf.accuracy, tf.demographic_parity_ratio("g")),
        (tf.demographic_parity("g"), tf.accuracy), (tf.accuracy, tf.auc_parity("g")),
        (tf.accuracy, tf.demographic_parity("g", to="overall")),
        (tf.accuracy, tf.demographic_parity(tf.privileged(g=1))),
    ]  # fmt: skip
    for pair in strange:
        with pytest.raises(tf.errors.ArgumentError, match="model_frontier"):
            model_frontier(*pair)
