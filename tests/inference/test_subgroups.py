"""Subgroup audits equal brute force on the rows, and their p-values full enumeration."""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import answer_kind, as_polars
from public_names import public
from scipy import stats

import tidyfair as tf
from tidyfair import inference

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = [".estimate", ".rest", ".difference", ".share"]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(21)
    rows = 400
    data = pl.DataFrame(
        {
            "truth": random.integers(0, 2, rows),
            "estimate": random.integers(0, 2, rows),
            "score": random.uniform(size=rows),
            "sex": random.choice(["f", "m"], rows),
            "race": random.choice(["a", "b", "c", "rare"], rows, p=[0.5, 0.3, 0.19, 0.01]),
            "age": random.integers(2, 6, rows) * 10,
            "income": random.normal(size=rows),
            "fold": random.integers(1, 4, rows),
        }
    )
    row = pl.int_range(pl.len())
    return data.with_columns(
        pl.when(row % 11 != 0).then("truth").alias("truth"), pl.when(row % 13 != 0).then("estimate").alias("estimate"),
        pl.when(row % 9 != 0).then("race").alias("race"),
    )  # fmt: skip


TRUE, FALSE = pl.col("truth") == 1, pl.col("truth") == 0
YES, NO = pl.col("estimate") == 1, pl.col("estimate") == 0
BOTH = pl.col("truth").is_not_null() & pl.col("estimate").is_not_null()

RATES: dict[str, tuple[tf.types.Metric, pl.Expr, pl.Expr]] = {
    "fall_out": (tf.fall_out, FALSE & BOTH, YES),
    "miss_rate": (tf.miss_rate, TRUE & BOTH, NO),
    "precision": (tf.precision, YES & BOTH, TRUE),
    "accuracy": (tf.accuracy, BOTH, pl.col("truth") == pl.col("estimate")),
    "selection_rate": (tf.selection_rate, YES | NO, YES),
    "base_rate": (tf.base_rate, TRUE | FALSE, TRUE),
}
"""A rate, the rows that it is about, and those of them that it counts."""


def counts(rows: pl.DataFrame, name: str) -> tuple[int, int]:
    """How many of how many rows."""
    _, about, met = RATES[name]
    there = rows.filter(about)
    return len(there.filter(met)), len(there)


def rate(held: int, size: int) -> float | None:
    return held / size if size else None


def conjunctions(data: pl.DataFrame, features: list[str], depth: int) -> dict[str, tuple[list[str], pl.DataFrame]]:
    """Every conjunction that occurs, with its features and its rows."""
    result: dict[str, tuple[list[str], pl.DataFrame]] = {}
    for size in range(1, depth + 1):
        for names in itertools.combinations(features, size):
            for values in data.select(names).unique().rows():
                chosen = dict(zip(names, values, strict=True))
                rows = data.filter(pl.all_horizontal(pl.col(name).eq_missing(value) for name, value in chosen.items()))
                written = {None: "null", "True": "true", "False": "false"}
                texts = {name: value if value is None else str(value) for name, value in chosen.items()}
                text = " & ".join(f"{name}={written.get(text, text)}" for name, text in texts.items())
                result[text] = list(names), rows
    return result


def assert_brute_force(
    result: pl.DataFrame, data: pl.DataFrame, name: str, features: list[str], depth: int, unknown: str = "apart"
) -> None:
    """The rest of a conjunction are the people of whom its features are known, and unknown people have none."""
    expected = conjunctions(data, features, depth)
    is_unknown = {
        text: unknown != "group" and rows[names].null_count().row(0) != (0,) * len(names)
        for text, (names, rows) in expected.items()
    }
    assert sorted(result[".subgroup"]) == sorted(text for text in expected if unknown != "drop" or not is_unknown[text])
    for row in result.to_dicts():
        names, rows = expected[row[".subgroup"]]
        held, about = counts(rows, name)
        all_held, all_size = counts(data if unknown == "group" else data.drop_nulls(names), name)
        estimate, rest = rate(held, about), rate(all_held - held, all_size - about)
        assert (row[".status"] == "unknown") == is_unknown[row[".subgroup"]]
        if is_unknown[row[".subgroup"]]:
            rest = None
            assert row[".p_value"] is row[".p_adjusted"] is None
        gap = None if estimate is None or rest is None else estimate - rest
        assert (row[".metric"], row[".depth"], row[".n"], row[".denominator"]) == (name, len(names), len(rows), about)
        for column, number in zip(NUMBERS, (estimate, rest, gap, len(rows) / len(data)), strict=True):
            assert row[column] == (None if number is None else pytest.approx(number, rel=1e-12, abs=1e-14)), column


# Subgroup search


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", RATES)
def test_conjunctions_equal_brute_force(people: pl.DataFrame, name: str, depth: int) -> None:
    features = ["sex", "race", "age"]
    search = inference.subgroup_search(RATES[name][0], features, depth=depth)
    assert_brute_force(search(people, "truth", "estimate", times=20), people, name, features, depth)


@pytest.mark.parametrize("unknown", ["apart", "drop", "group"])
def test_unknown_people_are_listed_apart_or_dropped_or_searched(people: pl.DataFrame, unknown: Any) -> None:
    two = people.with_columns(age=pl.when(pl.int_range(pl.len()) % 7 != 0).then("age"))
    search = inference.subgroup_search(tf.fall_out, ["race", "age"], unknown=unknown)
    assert_brute_force(search(two, "truth", "estimate", times=20), two, "fall_out", ["race", "age"], 2, unknown)


def test_p_values_of_a_search_equal_shuffled_outcomes_of_known_people(people: pl.DataFrame) -> None:
    times = 20_000
    search = inference.subgroup_search(tf.accuracy, ["race"])
    chances = dict(
        search(people, "truth", "estimate", times=times).drop_nulls(".p_value").select(".subgroup", ".p_value").rows()
    )
    assert sorted(chances) == ["race=a", "race=b", "race=c", "race=rare"]
    rows = people.filter(BOTH)
    is_known = rows["race"].is_not_null().to_numpy()
    outcomes = rows.select(pl.col("truth") == pl.col("estimate")).to_series().cast(pl.Float64).to_numpy()
    drawn = np.random.default_rng(5).permuted(np.tile(outcomes, (times, 1)), axis=1)
    for text, chance in chances.items():
        members = (rows["race"] == text.removeprefix("race=")).fill_null(value=False).to_numpy()

        def distance(of: np.ndarray, members: np.ndarray = members) -> np.ndarray:
            share, size, total = of[:, is_known].mean(axis=1), members.sum(), is_known.sum()
            spread = np.sqrt(size * share * (1 - share) * (total - size) / (total - 1))
            return np.abs(of[:, members].sum(axis=1) - size * share) / spread

        shuffled = (distance(drawn) >= distance(outcomes[None]) * (1 - 1e-9)).mean()
        assert chance == pytest.approx(shuffled, abs=4 * math.sqrt(2 * shuffled * (1 - shuffled) / times) + 1e-4)


def test_subgroup_rate_equals_the_metric_on_its_rows(people: pl.DataFrame) -> None:
    result = inference.subgroup_search(tf.fall_out, ["sex", "race"])(people, "truth", "estimate", times=20)
    rates = dict(result.select(".subgroup", ".estimate").rows())
    for text, (_, rows) in conjunctions(people, ["sex", "race"], 2).items():
        alone = tf.fall_out(rows, "truth", "estimate", pos_label=1, labels=[0, 1], on_undefined="ignore")
        assert rates[text] == alone[".estimate"].item()


@pytest.mark.parametrize("name", ["fall_out", "selection_rate"])
def test_outer_groups_are_searched_separately(people: pl.DataFrame, name: str) -> None:
    features = ["sex", "race"]
    result = inference.subgroup_search(RATES[name][0], features)(people, "truth", "estimate", group_by="fold", times=20)
    assert result.columns[:2] == ["fold", ".metric"]
    for (fold,), part in people.group_by("fold"):
        assert_brute_force(result.filter(fold=fold), part, name, features, 2)


def test_sides_and_grouped_frames_are_searched_separately(people: pl.DataFrame) -> None:
    search = inference.subgroup_search(tf.accuracy, ["race"])
    by_side = search(people, "truth", "estimate", group_by=tf.privileged(sex="m"), times=20)
    for side, sex in (("privileged", "m"), ("unprivileged", "f")):
        assert_brute_force(by_side.filter(side=side), people.filter(sex=sex), "accuracy", ["race"], 1)
    grouped: Any = people.group_by("fold", maintain_order=True)
    assert search(grouped, "truth", "estimate", times=20).equals(
        search(people, "truth", "estimate", group_by="fold", times=20)
    )


def test_rows_on_neither_side_are_searched(people: pl.DataFrame) -> None:
    sides = tf.privileged({"age": 20}, unprivileged={"age": 30})
    result = inference.subgroup_search(tf.accuracy, ["sex"])(people, "truth", "estimate", group_by=sides, times=20)
    neither = people.filter(pl.col("age") > 30)
    assert_brute_force(result.filter(side="neither"), neither, "accuracy", ["sex"], 1)


def test_search_with_threshold(people: pl.DataFrame) -> None:
    made = people.with_columns(estimate=(pl.col("score") >= 0.7).cast(pl.Int64))
    result = inference.subgroup_search(tf.fall_out, ["sex", "age"])(
        people, "truth", probs="score", threshold=0.7, times=20
    )
    assert_brute_force(result, made, "fall_out", ["sex", "age"], 2)


def test_search_with_pos_label(people: pl.DataFrame) -> None:
    words = people.with_columns(pl.col("truth", "estimate").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String))
    search = inference.subgroup_search(tf.fall_out, ["sex", "race"])
    assert search(words, "truth", "estimate", pos_label="yes", times=20).equals(
        search(people, "truth", "estimate", times=20)
    )
    other = search(words, "truth", "estimate", pos_label="no", times=20)
    upside_down = people.with_columns(truth=1 - pl.col("truth"), estimate=1 - pl.col("estimate"))
    assert_brute_force(other, upside_down, "fall_out", ["sex", "race"], 2)


def test_search_takes_numbers_booleans_and_expressions(people: pl.DataFrame) -> None:
    made = people.with_columns(rich=pl.col("income") > 1)
    rich: Any = (pl.col("income") > 1).alias("rich")
    result = inference.subgroup_search(tf.accuracy, ["age", rich])(people, "truth", "estimate", times=20)
    assert_brute_force(result, made, "accuracy", ["age", "rich"], 2)


def test_depth_beyond_the_features_adds_nothing(people: pl.DataFrame) -> None:
    two, nine = (inference.subgroup_search(tf.accuracy, ["sex", "race"], depth=depth) for depth in (2, 9))
    assert nine(people, "truth", "estimate", times=20).equals(two(people, "truth", "estimate", times=20))


@pytest.mark.parametrize("min_n", [1, 20, 60, 1_000])
def test_subgroups_below_min_n_have_no_p_value(people: pl.DataFrame, min_n: int) -> None:
    search = inference.subgroup_search(tf.fall_out, ["sex", "race", "age"], min_n=min_n)
    result = search(people, "truth", "estimate", times=50)
    assert_brute_force(result, people, "fall_out", ["sex", "race", "age"], 2)
    for row in result.to_dicts():
        about = row[".denominator"]
        is_unknown = "race=null" in row[".subgroup"]
        status = (
            "unknown" if is_unknown else "zero_denominator" if about == 0 else "below_min_n" if about < min_n else "ok"
        )
        assert row[".status"] == status
        assert (row[".p_value"] is None) == (row[".p_adjusted"] is None) == (status != "ok")
    searched = (result[".status"] == "ok").to_list()
    assert searched == sorted(searched, reverse=True)


def test_subgroups_are_sorted_by_standardized_distance(people: pl.DataFrame) -> None:
    result = inference.subgroup_search(tf.accuracy, ["sex", "race", "age"])(people, "truth", "estimate", times=50)

    def distance(row: dict[str, Any]) -> float:
        names = [part.partition("=")[0] for part in row[".subgroup"].split(" & ")]
        held, total = counts(people.drop_nulls(names), "accuracy")
        share = held / total
        about = row[".denominator"]
        spread = math.sqrt(about * share * (1 - share) * (total - about) / (total - 1))
        return abs(row[".estimate"] * about - about * share) / spread

    distances = [distance(row) for row in result.filter(pl.col(".status") == "ok").to_dicts()]
    assert distances == pytest.approx(sorted(distances, reverse=True), rel=1e-9)
    adjusted = result.filter(pl.col(".status") == "ok")[".p_adjusted"].to_list()
    assert adjusted == sorted(adjusted)


def test_subgroup_of_all_rows_has_no_other_group() -> None:
    data = pl.DataFrame({"estimate": [0, 1, 1], "sex": ["f", "f", "f"]})
    result = inference.subgroup_search(tf.selection_rate, ["sex"])(data, estimate="estimate")
    row = result.select(".estimate", ".rest", ".p_value", ".p_adjusted", ".status").row(0)
    assert row == (pytest.approx(2 / 3, rel=1e-12), None, None, None, "no_other_group")


def test_search_with_zero_denominator_gives_null() -> None:
    data = pl.DataFrame({"truth": [1, 1, 1], "estimate": [0, 1, 1], "sex": [*"ffm"]})
    result = inference.subgroup_search(tf.fall_out, ["sex"])(data, "truth", "estimate")
    assert result[".status"].to_list() == ["zero_denominator"] * 2
    for column in (".estimate", ".rest", ".difference", ".p_value", ".p_adjusted"):
        assert result[column].null_count() == 2


@pytest.mark.parametrize("constant", [0, 1])
def test_equal_outcomes_have_p_value_1(constant: int) -> None:
    data = pl.DataFrame({"estimate": [constant] * 6, "sex": [*"ffmmmm"], "race": [*"ababab"]})
    result = inference.subgroup_search(tf.selection_rate, ["sex", "race"])(
        data, estimate="estimate", pos_label=1, labels=[0, 1], times=50
    )
    assert set(result[".p_value"]) == set(result[".p_adjusted"]) == {1.0}
    assert set(result[".difference"]) == {0.0}


# Reproducibility


def test_same_seed_gives_same_search_in_any_row_order(people: pl.DataFrame) -> None:
    options: list[dict[str, Any]] = [{}, {"group_by": "fold"}, {"group_by": ["fold", "sex"]}]
    for seed, item in itertools.product((0, 7), options):
        search = inference.subgroup_search(tf.fall_out, ["race", "age"])
        result = search(people, "truth", "estimate", **item, times=100, seed=seed)
        shuffled = people.sample(fraction=1, shuffle=True, seed=seed)
        assert search(people, "truth", "estimate", **item, times=100, seed=seed).equals(result)
        assert search(shuffled, "truth", "estimate", **item, times=100, seed=seed).equals(result)


def test_another_seed_changes_only_p_values(people: pl.DataFrame) -> None:
    one, other = (
        inference.subgroup_search(tf.fall_out, ["race", "age"])(people, "truth", "estimate", times=100, seed=seed)
        for seed in (0, 1)
    )
    chances = [".p_value", ".p_adjusted"]
    assert one.drop(chances).equals(other.drop(chances))
    assert not one.select(chances).equals(other.select(chances))


@pytest.mark.parametrize("group_by", [None, "fold"])
def test_audits_on_every_engine(
    people: pl.DataFrame, engine: Callable[[pl.DataFrame], Any], group_by: str | None
) -> None:
    # pandas turns whole numbers with gaps into floats
    whole = people.drop_nulls()
    for audit in (
        inference.subgroup_search(tf.fall_out, ["sex", "race"]),
        inference.linear_subgroup(tf.fall_out, ["age", "income"]),
    ):
        data = engine(whole)
        expected = audit(whole, "truth", "estimate", group_by=group_by)
        result = audit(data, "truth", "estimate", group_by=group_by)
        assert type(result) is answer_kind(data)
        results = as_polars(result)
        exact = [name for name in expected.columns if not expected[name].dtype.is_float()]
        assert results.select(exact).rows() == expected.select(exact).rows()
        for name in set(expected.columns) - set(exact):
            pairs = zip(results[name].fill_nan(None), expected[name], strict=True)
            assert all(one == (None if other is None else pytest.approx(other, rel=1e-9)) for one, other in pairs)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int32, pl.Int64, pl.String, pl.Categorical, pl.Enum(["1", "2", "3"])])
@pytest.mark.parametrize("kind", ["search", "linear"])
def test_outer_keys_keep_their_type(people: pl.DataFrame, dtype: Any, kind: str) -> None:
    typed = people.with_columns(pl.col("fold").cast(pl.String).cast(dtype))
    searched, split = (
        inference.subgroup_search(tf.accuracy, ["sex"]),
        inference.linear_subgroup(tf.accuracy, ["age"]),
    )
    result = (searched if kind == "search" else split)(typed, "truth", "estimate", group_by="fold")
    assert result.schema["fold"] == dtype


def test_side_column_keeps_its_type(people: pl.DataFrame) -> None:
    sides = tf.privileged(sex="m")
    metric = tf.accuracy(people, "truth", "estimate", group_by=sides)
    result = inference.subgroup_search(tf.accuracy, ["race"])(people, "truth", "estimate", group_by=sides, times=20)
    assert result.schema["side"] == metric.schema["side"]


@pytest.mark.parametrize("group_by", [None, "fold"])
def test_no_rows_give_an_empty_result(people: pl.DataFrame, group_by: str | None) -> None:
    result = inference.subgroup_search(tf.accuracy, ["sex"])(
        people[:0], "truth", "estimate", group_by=group_by, times=20
    )
    assert result.is_empty()


# P-values


def drawn(probability: float, times: int) -> float:
    """How far a share of so many draws may be from its probability: five standard deviations, and the draw itself."""
    return 5 * math.sqrt(probability * (1 - probability) / times) + 1 / times


@pytest.mark.parametrize(("held", "size", "others_held", "others"), [(9, 20, 7, 40), (2, 30, 9, 30), (5, 6, 40, 90)])
def test_p_value_of_two_groups_equals_hypergeometric(held: int, size: int, others_held: int, others: int) -> None:
    data = pl.DataFrame(
        {
            "estimate": [1] * held + [0] * (size - held) + [1] * others_held + [0] * (others - others_held),
            "sex": ["f"] * size + ["m"] * others,
        }
    )
    chance: Any = stats.hypergeom(size + others, held + others_held, size)
    possible = np.arange(size + 1)
    middle = size * (held + others_held) / (size + others)
    exact = float(chance.pmf(possible)[np.abs(possible - middle) >= abs(held - middle) - 1e-9].sum())
    times = 20_000
    result = inference.subgroup_search(tf.selection_rate, ["sex"])(data, estimate="estimate", times=times)
    assert set(result[".subgroup"]) == {"sex=f", "sex=m"}
    for value in result[".p_value"]:
        assert value == pytest.approx(exact, abs=drawn(exact, times))
    # each of two groups is as striking as the other, so that there is nothing to adjust for
    assert result[".p_adjusted"].to_list() == result[".p_value"].to_list()


def test_p_values_equal_full_enumeration() -> None:
    features = {"sex": [*"ffffmmmmm"], "race": [*"aabbabbcc"]}
    data = pl.DataFrame({**features, "estimate": [1, 1, 1, 0, 0, 0, 0, 1, 0]})
    members = {
        text: np.array([all(features[part[:-2]][row] == part[-1] for part in text.split(" & ")) for row in range(9)])
        for text in conjunctions(data, [*features], 2)
    }

    def striking(outcomes: Any, mine: Any) -> float:
        size = mine.sum()
        return abs(outcomes[mine].sum() - size * 4 / 9) / math.sqrt(size * (9 - size))

    deals = [np.isin(np.arange(9), chosen) for chosen in itertools.combinations(range(9), 4)]
    every = {text: np.array([striking(deal, mine) for deal in deals]) for text, mine in members.items()}
    largest = np.max(list(every.values()), axis=0)
    times = 20_000
    result = inference.subgroup_search(tf.selection_rate, [*features])(data, estimate="estimate", times=times)
    assert len(result) == len(members) == 10
    for text, p_value, p_adjusted in result.select(".subgroup", ".p_value", ".p_adjusted").rows():
        own = striking(data["estimate"].to_numpy(), members[text]) - 1e-9
        one, all_of_them = float((every[text] >= own).mean()), float((largest >= own).mean())
        assert p_value == pytest.approx(one, abs=drawn(one, times))
        assert p_adjusted == pytest.approx(all_of_them, abs=drawn(all_of_them, times))


def test_only_denominator_rows_are_permuted() -> None:
    table = {("f", 0, 1): 6, ("f", 0, 0): 4, ("m", 0, 1): 5, ("m", 0, 0): 20, ("f", 1, 1): 300, ("m", 1, 0): 200}
    rows = [key for key, count in table.items() for _ in range(count)]
    data = pl.DataFrame(rows, schema=["sex", "truth", "estimate"], orient="row")
    chance: Any = stats.hypergeom(35, 11, 10)
    possible = np.arange(11)
    middle = 10 * 11 / 35
    exact = float(chance.pmf(possible)[np.abs(possible - middle) >= abs(6 - middle) - 1e-9].sum())
    result = inference.subgroup_search(tf.fall_out, ["sex"])(data, "truth", "estimate", times=20_000)
    assert result[".p_value"].to_list() == [pytest.approx(exact, abs=drawn(exact, 20_000))] * 2


def test_adjusted_p_value_is_never_below_the_raw_one(people: pl.DataFrame) -> None:
    result = inference.subgroup_search(tf.fall_out, ["sex", "race", "age"], depth=3)(
        people, "truth", "estimate", times=200
    )
    known = result.drop_nulls(".p_value")
    assert (known[".p_adjusted"] >= known[".p_value"]).all()
    assert (known[".p_adjusted"] > known[".p_value"]).any()
    assert known[".p_value"].min() >= 1 / 201  # pyright: ignore[reportOperatorIssue, reportOptionalOperand] - they are numbers
    assert known[".p_adjusted"].max() <= 1  # pyright: ignore[reportOperatorIssue, reportOptionalOperand] - they are numbers


def test_adjustment_covers_only_searched_subgroups() -> None:
    random = np.random.default_rng(4)
    data = pl.DataFrame({"estimate": random.integers(0, 2, 60), "race": ["a"] * 35 + [*"bcdef"] * 5})
    one_only = inference.subgroup_search(tf.selection_rate, ["race"], min_n=6)(data, estimate="estimate", times=500)
    searched = one_only.filter(pl.col(".status") == "ok")
    assert searched[".subgroup"].to_list() == ["race=a"]
    assert searched[".p_adjusted"].to_list() == searched[".p_value"].to_list()


@pytest.mark.simulation
def test_familywise_error_rate_without_disparity() -> None:
    random = np.random.default_rng(12)
    runs, rows, times, level = 240, 300, 400, 0.05
    features = ["a", "b", "c", "d"]
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), rows), "estimate": random.random(runs * rows) < 0.3,
            **{name: random.integers(0, 3, runs * rows) for name in features},
        }
    )  # fmt: skip
    result = inference.subgroup_search(tf.selection_rate, features)(
        data, estimate="estimate", group_by="run", times=times
    )
    smallest = result.group_by("run").agg(pl.col(".p_value", ".p_adjusted").min(), pl.len())
    assert set(smallest["len"]) == {66}
    raw, adjusted = (int((smallest[name] < level).sum()) for name in (".p_value", ".p_adjusted"))
    assert raw > runs / 2
    low, high = (float(stats.binom.ppf(end, runs, level)) for end in (0.001, 0.999))
    assert low <= adjusted <= high


def test_permutation_costs_little_more_than_shuffling_rows() -> None:
    random, rows, times = np.random.default_rng(14), 100_000, 100
    features = [f"x{index}" for index in range(8)]
    data = pl.DataFrame({name: random.integers(0, 4, rows) for name in features})
    outcomes = random.random(rows) < 0.5
    search = inference.subgroup_search(tf.selection_rate, features)
    data = data.with_columns(estimate=outcomes)
    start = time.process_time()
    for _ in range(times):
        random.shuffle(outcomes)
    shuffles = time.process_time() - start
    start = time.process_time()
    result = search(data, estimate="estimate", times=times)
    assert len(result) == 8 * 4 + 28 * 16
    assert time.process_time() - start < 6 * shuffles


def test_planted_disparity_is_ranked_first() -> None:
    random = np.random.default_rng(13)
    rows = 1_000
    data = pl.DataFrame({"sex": random.choice(["f", "m"], rows), "race": random.choice(["a", "b", "c"], rows)})
    hurt = ((data["sex"] == "f") & (data["race"] == "c")).to_numpy()
    data = data.with_columns(estimate=random.random(rows) < np.where(hurt, 0.15, 0.5))
    first = inference.subgroup_search(tf.selection_rate, ["sex", "race"])(data, estimate="estimate", times=500).row(
        0, named=True
    )
    assert first[".subgroup"] == "sex=f & race=c"
    assert first[".p_adjusted"] == 1 / 501
    assert first[".difference"] < -0.25


# Linear subgroups


def split_by_hand(rows: pl.DataFrame, features: list[str], outcome: str, every: int) -> list[dict[str, Any]]:
    """Least squares on the rows that a rate is about, and the rows fitted below and above the rate of all."""
    y = rows[outcome].to_numpy().astype(float)
    x = np.column_stack([np.ones(len(rows)), rows.select(features).to_numpy().astype(float)])
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0] - y.mean()
    halves = [y[sign * fitted > 1e-12] for sign in (-1, 1)]
    return [
        {
            ".estimate": half.mean(), ".overall": y.mean(), ".denominator": len(half), ".share": len(half) / every,
            ".violation": abs(half.mean() - y.mean()) * len(half) / every,
        }
        for half in halves
    ]  # fmt: skip


def assert_split(result: pl.DataFrame, expected: list[dict[str, Any]]) -> None:
    assert result[".status"].to_list() == ["ok", "ok"]
    for row, wanted in zip(result.to_dicts(), expected, strict=True):
        for name, number in wanted.items():
            assert row[name] == pytest.approx(float(number), rel=1e-9, abs=1e-13), name


@pytest.mark.parametrize("features", [["age"], ["income"], ["age", "income"], ["age", "income", "score"]])
@pytest.mark.parametrize("name", RATES)
def test_linear_subgroup_equals_least_squares(people: pl.DataFrame, name: str, features: list[str]) -> None:
    metric, about, met = RATES[name]
    rows = people.with_columns(met=met).filter(about)
    result = inference.linear_subgroup(metric, features)(people, "truth", "estimate")
    assert result[".metric"].to_list() == [name, name]
    assert_split(result, split_by_hand(rows, features, "met", len(people)))


def test_linear_subgroup_by_outer_group_equals_least_squares(people: pl.DataFrame) -> None:
    metric, about, met = RATES["miss_rate"]
    result = inference.linear_subgroup(metric, ["age", "income"])(people, "truth", "estimate", group_by="fold")
    assert result["fold"].to_list() == [1, 1, 2, 2, 3, 3]
    for (fold,), part in people.group_by("fold"):
        rows = part.with_columns(met=met).filter(about)
        assert_split(result.filter(fold=fold), split_by_hand(rows, ["age", "income"], "met", len(part)))


SCORED: dict[str, tuple[tf.types.Metric, pl.Expr, pl.Expr]] = {
    "fpr": (tf.calibration.balance_for_negative_class, FALSE, pl.col("score")),
    "fnr": (tf.counts.generalized_false_negative_rate, TRUE, 1 - pl.col("score")),
    "tnr": (tf.counts.generalized_true_negative_rate, FALSE, 1 - pl.col("score")),
    "tpr": (tf.calibration.balance_for_positive_class, TRUE, pl.col("score")),
}


@pytest.mark.parametrize("name", SCORED)
def test_linear_subgroup_of_scores(people: pl.DataFrame, name: str) -> None:
    metric, about, score = SCORED[name]
    rows = people.with_columns(met=score).filter(about)
    result = inference.linear_subgroup(metric, ["age", "income"])(people, "truth", probs="score")
    assert_split(result, split_by_hand(rows, ["age", "income"], "met", len(people)))


def test_linear_subgroup_takes_booleans(people: pl.DataFrame) -> None:
    made = people.with_columns(woman=pl.col("sex") == "f")
    rows = made.with_columns(met=YES).filter(YES | NO)
    result = inference.linear_subgroup(tf.selection_rate, ["woman"])(made, estimate="estimate")
    assert_split(result, split_by_hand(rows, ["woman"], "met", len(people)))


def test_linear_subgroup_with_threshold(people: pl.DataFrame) -> None:
    rows = people.with_columns(met=pl.col("score") >= 0.7).filter(FALSE)
    result = inference.linear_subgroup(tf.fall_out, ["age", "income"])(people, "truth", probs="score", threshold=0.7)
    assert_split(result, split_by_hand(rows, ["age", "income"], "met", len(people)))


def test_linear_subgroup_conditions_describe_the_split() -> None:
    data = pl.DataFrame({"age": [20, 30, 40, 50], "rank": [0, 1, 1, 0], "estimate": [1, 1, 0, 0]})
    result = inference.linear_subgroup(tf.selection_rate, ["age"])(data, estimate="estimate")
    assert result[".subgroup"].to_list() == ["-0.04 (age - 35) < 0", "-0.04 (age - 35) > 0"]
    assert result.select(".estimate", ".overall", ".denominator").rows() == [(0.0, 0.5, 2), (1.0, 0.5, 2)]
    slanted = data.with_columns(estimate=pl.Series([0, 0, 1, 0]))
    result = inference.linear_subgroup(tf.selection_rate, ["age", "rank"])(slanted, estimate="estimate")
    assert result[".subgroup"].to_list() == [f"0.01 (age - 35) + 0.5 (rank - 0.5) {side} 0" for side in "<>"]
    assert result[".denominator"].to_list() == [2, 2]


def test_rows_fitted_at_the_overall_rate_are_in_neither_half() -> None:
    data = pl.DataFrame({"age": [1, 2, 2, 3], "estimate": [0, 1, 0, 1]})
    result = inference.linear_subgroup(tf.selection_rate, ["age"])(data, estimate="estimate")
    assert result.select(".estimate", ".denominator", ".share", ".violation").rows() == [
        (0.0, 1, 0.25, 0.125),
        (1.0, 1, 0.25, 0.125),
    ]


def test_linear_subgroup_does_not_depend_on_row_order(people: pl.DataFrame) -> None:
    audit = inference.linear_subgroup(tf.fall_out, ["age", "income"])
    result = audit(people, "truth", "estimate", group_by="fold")
    for seed in range(3):
        shuffled = people.sample(fraction=1, shuffle=True, seed=seed)
        assert audit(shuffled, "truth", "estimate", group_by="fold").equals(result)


def test_linear_subgroup_with_zero_denominator() -> None:
    data = pl.DataFrame({"truth": [1, 1, 0, 0], "estimate": [0, 1, 0, 1], "age": [1, 2, 3, 4], "fold": [1, 1, 2, 2]})
    result = inference.linear_subgroup(tf.fall_out, ["age"])(data, "truth", "estimate", group_by="fold")
    assert result.select("fold", ".status").rows() == [(1, "zero_denominator")] * 2 + [(2, "ok")] * 2
    assert result.row(0, named=True)[".estimate"] is None


def test_linear_subgroup_of_equal_outcomes_is_empty() -> None:
    data = pl.DataFrame({"age": [1, 2, 1, 2], "estimate": [1, 1, 1, 1]})
    result = inference.linear_subgroup(tf.selection_rate, ["age"])(
        data, estimate="estimate", pos_label=1, labels=[0, 1]
    )
    for row in result.select(".overall", ".violation", ".denominator", ".status").rows():
        assert row == (1.0, 0.0, 0, "nobody")


def test_linear_subgroup_without_correlation_is_empty() -> None:
    data = pl.DataFrame({"age": [1, 2, 1, 2], "estimate": [0, 0, 1, 1]})
    result = inference.linear_subgroup(tf.selection_rate, ["age"])(data, estimate="estimate")
    assert result.select(".estimate", ".violation", ".denominator", ".status").rows() == [(None, 0.0, 0, "nobody")] * 2


def test_linear_subgroup_of_a_constant_feature_is_empty() -> None:
    for selected in range(1, 13):
        data = pl.DataFrame({"age": [1] * 13, "estimate": [1] * selected + [0] * (13 - selected)})
        result = inference.linear_subgroup(tf.selection_rate, ["age"])(data, estimate="estimate")
        assert result[".status"].to_list() == ["nobody", "nobody"]


@pytest.mark.parametrize("far", [-1e5, 1e5, 1e9, -1e9])
def test_shifted_or_mirrored_feature_gives_the_same_split(people: pl.DataFrame, far: float) -> None:
    columns = [".estimate", ".overall", ".violation", ".denominator", ".share", ".status"]
    audit = inference.linear_subgroup(tf.accuracy, ["age"])
    here = audit(people, "truth", "estimate").select(columns)
    for mirrored in (1, -1):
        moved = people.with_columns(age=mirrored * pl.col("age") + far)
        assert audit(moved, "truth", "estimate").select(columns).rows() == here.rows()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1e10), (1.0, 1.7e15), (1e200, 0.0), (1e-200, 0.0)])
def test_scaled_feature_gives_the_same_split(people: pl.DataFrame, scale: float, shift: float) -> None:
    columns = [".estimate", ".overall", ".violation", ".denominator", ".status"]
    audit = inference.linear_subgroup(tf.accuracy, ["age"])
    moved = people.with_columns(age=pl.col("age") * scale + shift)
    expected = audit(people, "truth", "estimate").select(columns)
    assert audit(moved, "truth", "estimate").select(columns).equals(expected)


# Bad input

AUDITS: list[Callable[[Any, Any], Any]] = [inference.subgroup_search, inference.linear_subgroup]


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize(
    "name", ["f_meas", "rmse", "bal_accuracy", "mcc", "share_of_rows", "mean_benefit", "true_positives"]
)
def test_audits_reject_other_metrics(audit: Callable[[Any, Any], Any], name: str) -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=f"takes a rate of labels, such as fall_out.*; {name} is not a share of rows"
    ):
        audit(public(name), ["age"])


@pytest.mark.parametrize(
    ("audit", "metric"),
    [
        (inference.subgroup_search, tf.roc_auc), (inference.subgroup_search, tf.calibration.balance_for_negative_class),
        (inference.linear_subgroup, tf.roc_auc), (inference.linear_subgroup, tf.brier_class),
        (inference.subgroup_search, tf.inequality.consistency(["age"])),
    ],
)  # fmt: skip
def test_audits_reject_custom_non_rates(audit: Callable[[Any, Any], Any], metric: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match="is not a share of rows"):
        audit(metric, ["sex"])


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize("metric", ["fall_out", tf.demographic_parity, tf.equal_opportunity("sex"), None])
def test_audits_reject_non_metrics(audit: Callable[[Any, Any], Any], metric: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match="takes a metric, such as fall_out, not"):
        audit(metric, ["age"])


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_reject_features_not_in_a_list(audit: Callable[[Any, Any], Any]) -> None:
    for features in ("age", 3, None):
        with pytest.raises(tf.errors.ArgumentError, match="takes a list of features, such as"):
            audit(tf.fall_out, features)
    with pytest.raises(tf.errors.ArgumentError, match="needs the features that define subgroups"):
        audit(tf.fall_out, [])


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_reject_bad_feature_columns(people: pl.DataFrame, audit: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(tf.errors.ColumnError, match="there is no column 'aeg'"):
        audit(tf.fall_out, ["aeg"])(people, "truth", "estimate")
    with pytest.raises(tf.errors.ArgumentError, match="two columns have the same name"):
        audit(tf.fall_out, ["age", "age"])(people, "truth", "estimate")
    with pytest.raises(tf.errors.ColumnError, match="the data are grouped by 'age'"):
        audit(tf.fall_out, ["age"])(people, "truth", "estimate", group_by="age")


def test_linear_subgroup_rejects_text_and_missing_values(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="the column 'sex' is String; a linear threshold needs numbers"):
        inference.linear_subgroup(tf.fall_out, ["age", "sex"])(people, "truth", "estimate")
    gaps = people.with_columns(pl.when(pl.col("age") > 20).then("age").alias("age"))
    with pytest.raises(tf.errors.ColumnError, match="values of 'age' are missing or not finite"):
        inference.linear_subgroup(tf.fall_out, ["age"])(gaps, "truth", "estimate")


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_reject_weights(people: pl.DataFrame, audit: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=r"Unknown argument 'case_weights'\. Known: 'data', 'truth', 'estimate'"
    ):
        audit(tf.fall_out, ["age"])(people, "truth", "estimate", case_weights="income")


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_reject_lists_of_thresholds(people: pl.DataFrame, audit: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match="A search does not accept a list of values for threshold; give one value"
    ):
        audit(tf.fall_out, ["age"])(people, "truth", probs="score", threshold=[0.3, 0.6])


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_of_several_labels_need_pos_label(people: pl.DataFrame, audit: Callable[[Any, Any], Any]) -> None:
    graded = people.with_columns(grade=pl.Series([*"xyz", "x"] * 100))
    with pytest.raises(
        tf.errors.LabelError, match=r"Which label of 'grade' is the event\? .* write `pos_label=` one of them"
    ):
        audit(tf.selection_rate, ["age"])(graded, estimate="grade")
    assert not audit(tf.selection_rate, ["age"])(graded, estimate="grade", pos_label="x").is_empty()


@pytest.mark.parametrize("audit", AUDITS)
def test_audits_need_the_columns_of_the_rate(people: pl.DataFrame, audit: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(tf.errors.ColumnError, match="fall_out needs the column of predicted labels"):
        audit(tf.fall_out, ["age"])(people, "truth")


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize("own", [".subgroup", ".share", ".metric"])
def test_audits_reject_reserved_outer_keys(people: pl.DataFrame, audit: Callable[[Any, Any], Any], own: str) -> None:
    with pytest.raises(tf.errors.ColumnError, match=f"'{own}' is a reserved column of results"):
        audit(tf.fall_out, ["age"])(people.rename({"fold": own}), "truth", "estimate", group_by=own)


@pytest.mark.parametrize(("name", "least"), [("depth", 1), ("min_n", 1), ("times", 20), ("seed", 0)])
def test_search_rejects_bad_numbers(people: pl.DataFrame, name: str, least: int) -> None:
    wrong: list[Any] = [least - 1, 2.5, True, "3"]
    for value in wrong:
        options: dict[str, Any] = {name: value}
        own, call = (options, {}) if name in {"depth", "min_n"} else ({}, options)
        with pytest.raises(
            tf.errors.ArgumentError, match=f"`{name}` is a whole number, {least} (or more|to [0-9]+), not"
        ):
            inference.subgroup_search(tf.fall_out, ["age"], **own)(people, "truth", "estimate", **call)


def test_linear_subgroup_rejects_infinite_features() -> None:
    data = pl.DataFrame({"age": [1.0, math.inf, 3.0, 4.0], "estimate": [1, 0, 1, 0]})
    with pytest.raises(tf.errors.ColumnError, match="'age'"):
        inference.linear_subgroup(tf.selection_rate, ["age"])(data, estimate="estimate")


def test_audits_compare_and_hash_by_value() -> None:
    older = (pl.col("age") > 40).alias("older")
    for audit in AUDITS:
        assert audit(tf.fall_out, [older]) == audit(tf.fall_out, [older])
        assert hash(audit(tf.fall_out, [older])) == hash(audit(tf.fall_out, [older]))
        with pytest.raises(tf.errors.ColumnError, match="`features` takes a column name or a polars expression"):
            audit(tf.fall_out, [tf.privileged(sex="m")])


def test_linear_subgroup_rejects_scores_that_are_no_probabilities(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="needs probabilities"):
        inference.linear_subgroup(tf.calibration.balance_for_negative_class, ["age"])(people, "truth", probs="income")


def test_combined_memberships_are_refused() -> None:
    groups = tf.memberships("a", "b", combined="alone")
    with pytest.raises(tf.errors.ArgumentError, match=r"leave out `combined='alone'`"):
        inference.subgroup_search(tf.accuracy, [groups, "sex"])
