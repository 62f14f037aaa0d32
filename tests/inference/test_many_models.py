"""Many models compared at once: values and errors equal plain arithmetic, and limits hold for all models together."""

from __future__ import annotations

import math
import time
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair.datasets import lending


def drawn(rows: int, rates: np.ndarray, seed: int) -> pl.DataFrame:
    """Rows of which models select groups at given rates: models by groups; most rows are seen alike by all models."""
    random = np.random.default_rng(seed)
    models, groups = rates.shape
    group, shared = random.integers(0, groups, rows), random.random(rows)
    own = random.random((models, rows))
    seen = np.where(random.random((models, rows)) < 0.7, shared, own)
    selected = seen < rates[:, group]
    return pl.DataFrame({"g": group, "y": shared < 0.5, **{f"m{index}": row for index, row in enumerate(selected)}})


def compared(
    performance: Any, disparity: Any, data: Any, truth: str, *, one: Any, others: Any, **options: Any
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The changes of the performance and of the disparity of all models."""
    result = tf.compare_models(performance, disparity, adjust="max_t")(data, truth, one=one, others=others, **options)
    return result[: len(others)], result[len(others) :]


def accuracies(rates: np.ndarray) -> np.ndarray:
    """The true accuracy of models: a row that is seen alike is right unless it lies between the rate and one half."""
    return (0.7 * (1 - np.abs(rates - 0.5)) + 0.3 * 0.5).mean(axis=1)


def test_values_equal_those_of_the_metrics_and_the_frontier_is_that_of_brute_force() -> None:
    people = lending().with_columns((pl.col("score") * 10).floor().alias("tens"))
    cuts = [(pl.col("score") >= cut / 20).alias(f"at {cut}") for cut in range(6, 15)]
    people = people.with_columns(cuts, paid=pl.col("repaid") == "yes")
    names = [f"at {cut}" for cut in range(6, 15)]
    disparity = tf.equalized_odds("race", min_n=30)
    others = [name for name in names if name != "at 10"]
    performances, disparities = compared(tf.f_meas, disparity, people, "paid", one="at 10", others=others)
    points = [(performances[".one"][0], disparities[".one"][0])]
    points += zip(performances[".other"], disparities[".other"], strict=True)
    for name, point in zip(["at 10", *others], points, strict=True):
        alone = tf.metric_set(tf.f_meas, disparity)(people, "paid", name, on_undefined="ignore")[".estimate"]
        assert point == pytest.approx(tuple(alone), rel=1e-12)
    for (good, bad), on_frontier in zip(points[1:], disparities[".on_frontier"], strict=True):
        beaten = any(a >= good and b <= bad and (a, b) != (good, bad) for a, b in points)
        assert on_frontier == (not beaten)
    assert disparities.select(".metric", ".by").unique().rows() == [("equalized_odds", "race")]
    assert performances[".on_frontier"].null_count() == len(others)
    for part in (performances, disparities):
        assert part[".model_other"].to_list() == others
        assert part[".change"].to_list() == pytest.approx((part[".other"] - part[".one"]).to_list())


def test_several_disparities_have_a_frontier_each_and_equal_those_alone() -> None:
    people = lending().with_columns(pl.col("repaid") == "yes")
    cuts = [(pl.col("score") >= cut / 20).alias(f"at {cut}") for cut in (8, 11, 12)]
    one = (pl.col("score") >= 0.5).alias("in use")
    disparities = tf.demographic_parity("race", min_n=100), tf.equal_opportunity("sex", "race", min_n=100)
    together = tf.compare_models(tf.accuracy, tf.f_meas, *disparities, margin=0.01, adjust="max_t")(
        people, "repaid", one=one, others=cuts
    )
    assert together[".by"].to_list() == [None] * 6 + ["race"] * 3 + ["sex:race"] * 3
    for disparity in disparities:
        _, alone = compared(tf.accuracy, disparity, people, "repaid", one=one, others=cuts)
        own = together.filter(pl.col(".metric") == disparity.name)
        assert own.select(".one", ".other", ".change", ".on_frontier").equals(
            alone.select(".one", ".other", ".change", ".on_frontier")
        )
        # other draws
        assert own[".lower"].to_list() == pytest.approx(alone[".lower"].to_list(), abs=0.01)
    assert set(together[".margin"]) == {0.01}
    # those of pairs are the same values on the same rows
    pairs = tf.compare_models(tf.accuracy, tf.f_meas, *disparities, margin=0.01)(people, "repaid", one=one, others=cuts)
    for name in (".one", ".other", ".change", ".n"):
        assert together[name].to_list() == pytest.approx(pairs[name].to_list())
    assert together[".on_frontier"].to_list() == pairs[".on_frontier"].to_list()


def test_width_of_two_models_equals_that_of_paired_rows() -> None:
    rates = np.array([[0.5, 0.4], [0.45, 0.42]])
    data = drawn(4000, rates, 3)
    performances, _ = compared(tf.accuracy, tf.demographic_parity("g"), data, "y", one="m0", others=["m1"])
    row = performances.row(0, named=True)
    paired = (data["m1"] == data["y"]).cast(int) - (data["m0"] == data["y"]).cast(int)
    error = float(np.std(paired.to_numpy())) / math.sqrt(len(paired))
    # of one change alone, the limits are those of the normal distribution
    width = row[".upper"] - row[".lower"]
    assert width == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert row[".change"] == pytest.approx(paired.mean())


@pytest.mark.simulation
def test_limits_hold_for_all_models_together() -> None:
    random = np.random.default_rng(8)
    rates = random.uniform(0.35, 0.65, (12, 3))
    # several models are alike, as those of a search are
    rates[6:] = rates[:6] + 0.01
    true = [accuracies(rates), np.ptp(rates, axis=1)]
    missed = np.zeros((2, 2), dtype=int)
    runs = 200
    names = [f"m{index}" for index in range(1, 12)]
    for run in range(runs):
        parts = compared(tf.accuracy, tf.demographic_parity("g"), drawn(900, rates, run), "y", one="m0", others=names)
        for index, (part, values) in enumerate(zip(parts, true, strict=True)):
            first = part.select(".one_lower", ".one_upper").row(0)
            limits = [
                [first, *part.select(".other_lower", ".other_upper").rows()],
                part.select(".lower", ".upper").rows(),
            ]
            for of_change, (shown, truths) in enumerate(zip(limits, (values, (values - values[0])[1:]), strict=True)):
                missed[index, of_change] += not all(
                    low <= truth <= high for (low, high), truth in zip(shown, truths, strict=True)
                )
    # 5 % and two standard errors of so many runs
    assert (missed / runs <= 0.08).all(), missed


@pytest.mark.simulation
def test_no_model_is_called_less_discriminatory_by_chance_among_many() -> None:
    rates = np.full((40, 3), 0.4)
    rates[:, 1] = 0.5
    names = [f"m{index}" for index in range(1, 40)]
    wrong, fairer = 0, 0
    for run in range(60):
        _, disparities = compared(
            tf.accuracy, tf.demographic_parity("g"), drawn(500, rates, run), "y", one="m0", others=names
        )
        wrong += "better" in set(disparities[".verdict"])
        fairer += (disparities[".change"] < -0.03).any()
    # of so many, some look much fairer in nearly every sample
    assert fairer > 40
    assert wrong <= 6


def test_verdicts_say_what_is_shown_of_each_model_with_enough_rows() -> None:
    rates = np.array([[0.5, 0.35], [0.425, 0.425], [0.1, 0.1], [0.5, 0.34], [0.5, 0.5], [0.57, 0.33], [0.4, 0.25]])
    models = [f"m{index}" for index in range(1, 7)]
    verdicts = {
        "m1": ("not shown", "better"), "m2": ("worse", "better"), "m3": ("not shown", "not shown"),
        "m4": ("better", "better"), "m5": ("worse", "worse"), "m6": ("worse", "not shown"),
    }  # fmt: skip
    for performance in (tf.accuracy, tf.error_rate):
        parts = compared(performance, tf.demographic_parity("g"), drawn(20_000, rates, 1), "y", one="m0", others=models)
        shown = zip(*(part[".verdict"] for part in parts), strict=True)
        assert dict(zip(models, shown, strict=True)) == verdicts


def test_verdicts_say_what_intervals_say() -> None:
    rates = np.random.default_rng(4).uniform(0.3, 0.6, (30, 3))
    models = [f"m{index}" for index in range(1, 30)]
    parts = compared(tf.accuracy, tf.demographic_parity("g"), drawn(6000, rates, 1), "y", one="m0", others=models)
    for part, (below, above) in zip(parts, (("worse", "better"), ("better", "worse")), strict=True):
        for row in part.to_dicts():
            expected = below if row[".upper"] < 0 else above if row[".lower"] > 0 else "not shown"
            assert row[".verdict"] == expected
        assert part[".verdict"].n_unique() > 1


def test_one_group_has_no_disparity_but_the_names_of_its_metrics() -> None:
    data = drawn(200, np.array([[0.5], [0.3]]), 1)
    performances, disparities = compared(tf.accuracy, tf.demographic_parity("g"), data, "y", one="m0", others=["m1"])
    assert disparities.select(".metric", ".by").rows() == [("demographic_parity", "g")]
    numbers = (".one", ".other", ".change", ".lower", ".upper", ".one_lower", ".one_upper", ".other_lower", ".verdict")
    assert disparities.select(numbers).null_count().row(0) == (1,) * len(numbers)
    assert performances.select(numbers).null_count().row(0) == (0,) * len(numbers)
    assert disparities[".on_frontier"].to_list() == [False]


def test_identical_models_and_perfect_groups_are_not_sure() -> None:
    data = pl.DataFrame({"g": [0, 1] * 10, "y": [1, 1, 0, 0] * 5}).with_columns(one="y", other="y")
    performances, _ = compared(tf.accuracy, tf.demographic_parity("g"), data, "y", one="one", others=["other"])
    row = performances.row(0, named=True)
    assert row[".one"] == row[".other"] == 1
    assert 0.7 < row[".other_lower"] < 0.99
    assert row[".lower"] < 0 < row[".upper"]


def test_rows_without_a_prediction_are_left_out_of_all_models_and_labels_may_be_text() -> None:
    people = lending(500)
    noisy = people.with_columns(
        pl.when(pl.int_range(pl.len()) % 7 > 0).then("approved").alias("a"),
        pl.when(pl.int_range(pl.len()) % 5 > 0).then("repaid").alias("b"),
    )
    choice = tf.compare_models(tf.accuracy, tf.demographic_parity("sex"), adjust="max_t")
    # a model without predictions in one row of five, beside one that lacks them in one of seven
    models: dict[str, Any] = {"one": "a", "others": ["b"], "pos_label": "yes"}
    result = choice(noisy, "repaid", **models)
    complete = noisy.drop_nulls(["repaid", "a", "b"])
    of_complete = choice(complete, "repaid", **models)
    assert result.drop(".n_missing").equals(of_complete.drop(".n_missing"))
    assert result[".n"].to_list() == [len(complete)] * 2
    assert result[".n_missing"].to_list() == [100] * 2
    assert choice(noisy, "repaid", one="b", others=["a"], pos_label="yes")[".n_missing"].to_list() == [72] * 2
    assert of_complete[".n_missing"].to_list() == [0, 0]
    alone = tf.accuracy(complete, "repaid", "a", pos_label="yes")[".estimate"].item()
    assert result[".one"][0] == pytest.approx(alone)
    in_pandas = choice(noisy.to_pandas(), "repaid", **models)
    assert type(in_pandas).__module__.startswith("pandas")


def test_truth_values_and_whole_numbers_are_the_same_labels() -> None:
    data = drawn(500, np.array([[0.5, 0.4], [0.45, 0.42]]), 2)
    choice = tf.compare_models(tf.accuracy, tf.demographic_parity("g"), adjust="max_t")
    result = choice(data, "y", one="m0", others=["m1"])
    for columns in (["y"], ["m0"], ["m1"], ["y", "m0", "m1"]):
        mixed = data.with_columns(pl.col(columns).cast(pl.Int64))
        assert choice(mixed, "y", one="m0", others=["m1"]).equals(result)


def test_undefined_disparities_are_null() -> None:
    data = pl.DataFrame({"g": [0, 1] * 20, "y": [True, True, False, False] * 10})
    data = data.with_columns(one="y", never=pl.lit(value=False))
    _, disparities = compared(tf.accuracy, tf.predictive_parity("g"), data, "y", one="one", others=["never"])
    row = disparities.row(0, named=True)
    assert (row[".one"], row[".other"], row[".verdict"], row[".on_frontier"]) == (0, None, None, False)


def test_two_hundred_models_take_a_few_seconds() -> None:
    random = np.random.default_rng(1)
    data = drawn(20_000, random.uniform(0.3, 0.7, (200, 4)), 5)
    start = time.process_time()
    compared(
        tf.accuracy, tf.demographic_parity("g"), data, "y", one="m0", others=[f"m{index}" for index in range(1, 200)]
    )
    assert time.process_time() - start < 4


def test_fifty_groups_of_many_models_take_seconds() -> None:
    random = np.random.default_rng(1)
    data = drawn(20_000, random.uniform(0.3, 0.7, (60, 50)), 5)
    start = time.process_time()
    _, disparities = compared(
        tf.accuracy, tf.equalized_odds("g"), data, "y", one="m0", others=[f"m{index}" for index in range(1, 60)]
    )
    assert time.process_time() - start < 15
    assert disparities[".upper"].null_count() == 0


def test_limits_of_the_change_of_one_gap_are_those_of_paired_rows() -> None:
    data = drawn(6000, np.array([[0.7, 0.3], [0.6, 0.35]]), 4)
    _, disparities = compared(tf.accuracy, tf.demographic_parity("g"), data, "y", one="m0", others=["m1"])
    row = disparities.row(0, named=True)
    moved = data.select("g", moved=pl.col("m1").cast(int) - pl.col("m0").cast(int))
    of_groups = moved.group_by("g").agg(pl.col("moved").mean(), error=pl.col("moved").std() / pl.len().sqrt()).sort("g")
    change = of_groups["moved"][0] - of_groups["moved"][1]
    error = math.hypot(*of_groups["error"])
    assert row[".change"] == pytest.approx(change)
    # the gap to the other side is far away, but it counts among what limits allow for
    for end, sign in (("lower", -1), ("upper", 1)):
        assert 1.9 < sign * (row[f".{end}"] - change) / error < 2.4


def test_limits_are_within_what_metrics_can_reach() -> None:
    for rows in (2, 4, 8):
        data = pl.DataFrame({"g": [0, 1] * (rows // 2), "y": [1, 0] * (rows // 2)})
        data = data.with_columns(bad=1 - pl.col("y"), good="y")
        for part in compared(
            tf.accuracy, tf.demographic_parity("g"), data, "y", one="bad", others=["good"], pos_label=1
        ):
            row = part.row(0, named=True)
            assert -1 <= row[".lower"] <= row[".upper"] <= 1
            for name in (".one", ".other"):
                assert 0 <= row[f"{name}_lower"] <= row[f"{name}_upper"] <= 1


def test_few_rows_show_no_improvement() -> None:
    # all rows change for the better: McNemar's exact p-values are 1, 0.5, 0.25 and 0.125
    for rows in range(1, 5):
        data = pl.DataFrame({"g": ["a", "b", "a", "b"], "y": [1, 0, 0, 1]})[:rows]
        data = data.with_columns(bad=1 - pl.col("y"), good="y")
        performances, disparities = compared(
            tf.accuracy, tf.demographic_parity("g"), data, "y", one="bad", others=["good"], pos_label=1
        )
        row = performances.row(0, named=True)
        assert row[".change"] == 1
        assert row[".lower"] <= 0
        assert row[".verdict"] == "not shown"
        assert disparities[".verdict"][0] in (None, "not shown")


def test_a_group_of_one_row_may_be_anything() -> None:
    data = drawn(3000, np.array([[0.8, 0.2], [0.5, 0.5]]), 2)
    more = pl.DataFrame({"g": 2, "y": True, "m0": True, "m1": False}, schema=data.schema)

    def disparity(data: pl.DataFrame, min_n: int = 0) -> dict[str, Any]:
        by = tf.demographic_parity("g", min_n=min_n)
        return compared(tf.accuracy, by, data, "y", one="m0", others=["m1"])[1].row(0, named=True)

    assert disparity(data)[".verdict"] == "better"
    lone = disparity(pl.concat([data, more]))
    assert lone[".one_upper"] == lone[".other_upper"] == 1
    assert lone[".verdict"] == "not shown"
    left_out = disparity(pl.concat([data, more]), min_n=10)
    assert left_out[".groups_left_out"] == ["2"]
    assert left_out[".verdict"] == "better"


def test_metrics_whose_denominators_differ_from_model_to_model_are_compared() -> None:
    # the rows that are selected, and those that are not, are few in some groups of some models
    random = np.random.default_rng(6)
    data = drawn(150, random.uniform(0, 1, (8, 4)), 3)
    both = tf.new_groupwise_metric(tf.metric_set(tf.precision, tf.npv), "predictive", tf.difference())
    _, disparities = compared(
        tf.accuracy, both("g"), data, "y", one="m0", others=[f"m{index}" for index in range(1, 8)]
    )
    known = disparities.filter(pl.col(".other").is_not_null())
    assert len(known) > 2
    assert known.select(pl.col(".other").is_between(".other_lower", ".other_upper").all()).item()


def test_no_rows_give_null_values() -> None:
    data = drawn(10, np.array([[0.5, 0.4], [0.45, 0.42]]), 2)
    choice = tf.compare_models(tf.accuracy, tf.demographic_parity("g"), adjust="max_t")
    result = choice(data.clear(), "y", one="m0", others=["m1"])
    assert result.schema == choice(data, "y", one="m0", others=["m1"]).schema
    assert result.select(".one", ".other", ".n", ".verdict").rows() == [(None, None, 0, None)] * 2


def test_missing_numbers_count_as_missing_predictions() -> None:
    data = pl.DataFrame({"g": [0, 1] * 6, "y": [1.0, 0, 1] * 4, "one": [1.0, 0] * 6, "other": [math.nan, 1.0, 0] * 4})
    performances, _ = compared(tf.accuracy, tf.demographic_parity("g"), data, "y", one="one", others=["other"])
    assert performances.select(".n", ".n_missing").rows() == [(8, 4)]


CALLS: list[tuple[dict[str, Any], str]] = [
    ({"others": ["nope"]}, "nope"),
    ({"others": "other"}, "`others` is a list of columns"),
    ({"others": ["one"]}, "`others`: 'one' is the model that others are compared with"),
    ({"others": ["other", (1 - pl.col("other")).alias("one")]}, "`others`: 'one' is the model that others are"),
    ({"others": ["other", "other"]}, "'other' is given more than once"),
    ({"others": ["y"]}, "`others`: 'y' is the truth"),
    ({"others": ["other", pl.col("y").alias("oracle")]}, "`others`: 'oracle' is the truth"),
    ({"others": {"mine": "y"}}, "`others`: 'y' is the truth"),
    ({"others": ["g"]}, "`others`: 'g' defines the groups"),
    ({"one": "y"}, "`one`: 'y' is the truth"),
    ({"one": pl.col("g").alias("G")}, "`one`: 'G' defines the groups"),
    ({"one": "nope"}, "`one`: there is no column 'nope'"),
    ({"others": ["empty"]}, "have no prediction in 'empty'"),
    ({"truth": "empty"}, "no row has a truth"),
    ({"others": ["text"]}, "which is not among the labels"),
    ({"times": 5}, "leave out `adjust`"),
    ({"case_weights": "one"}, "leave out `adjust`"),
    ({"judged": "one"}, "leave out `adjust`"),
    ({"group_by": "g"}, "leave out `adjust`"),
    ({"threshold": 0.5}, "make labels of scores"),
]


@pytest.mark.parametrize(("arguments", "message"), CALLS)
def test_odd_calls_are_refused(arguments: dict[str, Any], message: str) -> None:
    data = pl.DataFrame({"g": [0, 1], "y": [1, 0], "one": [1, 0], "other": [0, 0], "text": ["a", "b"]})
    data = data.with_columns(empty=pl.lit(None, pl.Int64))
    choice: Any = tf.compare_models(tf.accuracy, tf.demographic_parity("g"), adjust="max_t")
    with pytest.raises(tf.errors.TidyfairError, match=message):
        choice(data, **({"truth": "y", "one": "one", "others": ["other"]} | arguments))


def test_grouped_data_and_gates_are_refused() -> None:
    data = pl.DataFrame({"g": [0, 1], "y": [1, 0], "one": [1, 0], "other": [0, 0]})
    choice = tf.compare_models(tf.accuracy, adjust="max_t")
    with pytest.raises(tf.errors.ArgumentError, match="does not accept grouped data"):
        choice(data.group_by("g"), "y", one="one", others=["other"])
    with pytest.raises(tf.errors.ArgumentError, match="each pair is judged by itself"):
        tf.check(choice, above=-0.1)(data, "y", one="one", others=["other"])


def test_metrics_that_are_not_compared_by_counts_are_refused() -> None:
    for metric in (
        tf.roc_auc, tf.demographic_parity_ratio("g"), tf.auc_parity("g"), tf.demographic_parity("g", to="overall"),
        tf.demographic_parity(tf.privileged(g=1)), tf.demographic_parity(tf.memberships("a", "b")),
    ):  # fmt: skip
        with pytest.raises(tf.errors.ArgumentError, match=r"max_t.*[Ll]eave out `adjust`"):
            tf.compare_models(metric, adjust="max_t")
    with pytest.raises(tf.errors.ArgumentError, match="`adjust=` must be"):
        tf.compare_models(tf.accuracy, adjust=cast("Any", "bonferroni"))


def test_a_model_is_not_compared_with_itself_beside_others() -> None:
    data = pl.DataFrame({"y": [1, 0, 1], "one": [1, 0, 0], "other": [0, 0, 1]})
    with pytest.raises(tf.errors.ColumnError, match="`others`: 'one' is the model that others are compared with"):
        tf.compare_models(tf.accuracy)(data, "y", one="one", others=["one", "other"])
