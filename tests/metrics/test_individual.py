"""Consistency equals brute force over all pairs of rows: neighbors, ties, and rows that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from sklearn.neighbors import NearestNeighbors

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


def shares_of_others(points: Any, labels: Any, n_neighbors: int) -> Any:
    """For each row the share of its nearest rows with another label; what ties for the last places shares them."""
    result: list[float] = []
    for point, label in zip(points, labels, strict=True):
        distance = ((points - point) ** 2).sum(axis=1)
        last = np.sort(distance)[n_neighbors - 1]
        nearer, tied = distance < last, distance == last
        places = nearer + tied * (n_neighbors - nearer.sum()) / tied.sum()
        result.append(float((places * (labels != label)).sum() / n_neighbors))
    return np.array(result)


def brute_force(
    data: pl.DataFrame, features: list[str], n_neighbors: int, label: str = "estimate", within: str | None = None
) -> pl.DataFrame:
    """The rows that have a label, with what is consistent about each; neighbours are sought within a column."""
    known = data.filter(pl.col(label).is_not_null())
    pools = [part for _, part in known.group_by(within)] if within else [known]
    return pl.concat(
        part.with_columns(
            same=1
            - shares_of_others(part.select(features).to_numpy().astype(float), part[label].to_numpy(), n_neighbors)
        )
        for part in pools
    )


def mean(rows: pl.DataFrame, weight: str | None = None) -> float:
    return float(np.average(rows["same"].to_numpy(), weights=rows[weight].to_numpy() if weight else None))


def value(result: Any) -> float:
    return as_polars(result)[".estimate"].item()


def exactly(number: float) -> Any:
    return pytest.approx(number, rel=1e-11, abs=1e-13)


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(5)
    rows = 180
    return pl.DataFrame(
        {
            "x": random.normal(size=rows),
            "y": random.normal(size=rows) * 2,
            "age": random.integers(0, 6, rows),
            "score": random.integers(0, 4, rows),
            "member": random.integers(0, 2, rows).astype(bool),
            "truth": random.integers(0, 2, rows),
            "estimate": random.integers(0, 2, rows),
            "grade": random.choice(["low", "middle", "high"], rows),
            "race": random.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "fold": random.integers(1, 4, rows),
            "weight": random.integers(0, 5, rows) / 4,
        }
    )


CONTINUOUS, DISCRETE = ["x", "y"], ["age", "score"]

# Nearest neighbors


@pytest.mark.parametrize("n_neighbors", [1, 2, 5, 17, 180])
@pytest.mark.parametrize(
    "features", [CONTINUOUS, DISCRETE, ["age"], ["member"], ["age", "x"], ["member", "score", "age"]]
)
def test_consistency_equals_brute_force(people: pl.DataFrame, features: list[str], n_neighbors: int) -> None:
    result = tf.inequality.consistency(features, n_neighbors=n_neighbors)(people, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(people, features, n_neighbors)))


@pytest.mark.parametrize("n_neighbors", [1, 3, 8])
@pytest.mark.parametrize("features", [CONTINUOUS, DISCRETE])
def test_multiclass_consistency_equals_brute_force(people: pl.DataFrame, features: list[str], n_neighbors: int) -> None:
    result = tf.inequality.consistency(features, n_neighbors=n_neighbors)(people, estimate="grade")
    assert value(result) == exactly(mean(brute_force(people, features, n_neighbors, "grade")))


@pytest.mark.parametrize("n_neighbors", [1, 4, 9])
def test_duplicated_rows_share_distance_zero(people: pl.DataFrame, n_neighbors: int) -> None:
    doubled = pl.concat([people, people.with_columns(estimate=1 - pl.col("estimate")), people[:60]])
    result = tf.inequality.consistency(CONTINUOUS, n_neighbors=n_neighbors)(doubled, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(doubled, CONTINUOUS, n_neighbors)))


def test_duplicates_share_a_single_neighbor() -> None:
    data = pl.DataFrame({"x": [1, 1, 9], "estimate": [0, 1, 1]})
    assert value(tf.inequality.consistency(["x"], n_neighbors=1)(data, estimate="estimate")) == exactly(
        (0.5 + 0.5 + 1) / 3
    )


def test_row_is_its_own_first_neighbor() -> None:
    data = pl.DataFrame({"x": [1.0, 2.0, 4.0, 8.0], "estimate": [0, 1, 0, 1]})
    assert value(tf.inequality.consistency(["x"], n_neighbors=1)(data, estimate="estimate")) == 1.0
    assert value(tf.inequality.consistency(["x"], n_neighbors=2)(data, estimate="estimate")) == 0.5


@pytest.mark.parametrize("n_neighbors", [2, 5, 6, 20])
def test_rows_tied_for_the_last_neighbor_share_it(n_neighbors: int) -> None:
    squares = [(x, y) for x in range(-34, 35) for y in range(-34, 35) if x * x + y * y in (0, 1105)]
    grid = [(x, y) for x in range(100, 112) for y in range(12)]
    random = np.random.default_rng(3)
    points = np.array(squares + grid)
    data = pl.DataFrame({"x": points[:, 0], "y": points[:, 1], "estimate": random.integers(0, 3, len(points))})
    assert len(squares) == 33
    result = tf.inequality.consistency(["x", "y"], n_neighbors=n_neighbors)(data, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(data, ["x", "y"], n_neighbors)))


def test_n_neighbors_may_be_half_of_the_rows() -> None:
    random = np.random.default_rng(8)
    rows = 3_000
    data = pl.DataFrame({"x": random.normal(size=rows), "estimate": random.integers(0, 2, rows)})
    result = tf.inequality.consistency(["x"], n_neighbors=rows // 2)(data, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(data, ["x"], rows // 2)))


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 1e-9, 1e12])
def test_ties_survive_float_rounding(people: pl.DataFrame, factor: float) -> None:
    grid = people.with_columns(pl.col(DISCRETE).cast(pl.Float64) * factor)
    result = tf.inequality.consistency(DISCRETE, n_neighbors=7)(grid, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(people, DISCRETE, 7)))


@pytest.mark.parametrize("n_neighbors", [1, 5, 10])
def test_binary_consistency_equals_one_minus_distance_to_neighbor_mean(people: pl.DataFrame, n_neighbors: int) -> None:
    points, label = people.select(CONTINUOUS).to_numpy(), people["estimate"].to_numpy()
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(points).kneighbors(points, return_distance=False)
    expected = 1 - np.abs(label - label[near].mean(axis=1)).mean()
    result = tf.inequality.consistency(CONTINUOUS, n_neighbors=n_neighbors)(people, estimate="estimate")
    assert value(result) == exactly(float(expected))


def test_n_neighbors_defaults_to_5(people: pl.DataFrame) -> None:
    assert value(tf.inequality.consistency(DISCRETE)(people, estimate="estimate")) == exactly(
        mean(brute_force(people, DISCRETE, 5))
    )


def test_consistency_takes_expressions_as_features(people: pl.DataFrame) -> None:
    scaled = people.with_columns(z=pl.col("x") * 3)
    result = tf.inequality.consistency([(pl.col("x") * 3).alias("z"), "y"])(people, estimate="estimate")
    assert value(result) == exactly(mean(brute_force(scaled, ["z", "y"], 5)))


def test_consistency_does_not_depend_on_row_order(people: pl.DataFrame) -> None:
    metric = tf.inequality.consistency(DISCRETE, n_neighbors=4)
    expected = value(metric(people, estimate="estimate"))
    for seed in range(5):
        shuffled = people.sample(fraction=1, shuffle=True, seed=seed)
        assert value(metric(shuffled, estimate="estimate")) == exactly(expected)


# Rows that count


@pytest.mark.parametrize("features", [CONTINUOUS, DISCRETE])
def test_neighbors_are_searched_within_outer_groups(people: pl.DataFrame, features: list[str]) -> None:
    result = tf.inequality.consistency(features, n_neighbors=6)(people, estimate="estimate", group_by="fold")
    rows = brute_force(people, features, 6, within="fold")
    for fold, number in result.select("fold", ".estimate").rows():
        assert number == exactly(mean(rows.filter(fold=fold)))


@pytest.mark.parametrize("features", [CONTINUOUS, DISCRETE])
def test_neighbors_of_compared_groups_are_searched_among_all_rows(people: pl.DataFrame, features: list[str]) -> None:
    gap = tf.new_groupwise_metric(tf.inequality.consistency(features, n_neighbors=6), "gap", tf.difference())("race")
    rows = brute_force(people, features, 6, within="fold")
    groups = gap.by_group(people, estimate="estimate", group_by="fold")
    for fold, race, number, count in groups.select("fold", ".group", ".estimate", ".n").rows():
        mine = rows.filter(fold=fold, race=race)
        assert number == exactly(mean(mine))
        assert count == len(mine)
    for fold, number in gap(people, estimate="estimate", group_by="fold").select("fold", ".estimate").rows():
        values = [mean(rows.filter(fold=fold, race=race)) for race in "abc"]
        assert number == exactly(max(values) - min(values))


def test_neighbors_are_searched_within_sides_in_group_by(people: pl.DataFrame) -> None:
    sides = tf.privileged({"race": "a"}, unprivileged={"race": "b"})
    result = tf.inequality.consistency(DISCRETE, n_neighbors=6)(people, estimate="estimate", group_by=sides)
    side = {"privileged": "a", "unprivileged": "b", "neither": "c"}
    assert result["side"].to_list() == list(side)
    for name, number in result.select("side", ".estimate").rows():
        assert number == exactly(mean(brute_force(people.filter(race=side[name]), DISCRETE, 6)))


def test_neighbors_of_compared_sides_are_searched_among_all_rows(people: pl.DataFrame) -> None:
    gap = tf.new_groupwise_metric(tf.inequality.consistency(DISCRETE, n_neighbors=6), "gap", tf.difference())
    rows = brute_force(people, DISCRETE, 6)
    expected = mean(rows.filter(pl.col("race") != "a")) - mean(rows.filter(race="a"))
    assert value(gap(tf.privileged(race="a"))(people, estimate="estimate")) == exactly(expected)


@pytest.mark.parametrize("features", [CONTINUOUS, DISCRETE])
def test_weights_apply_to_rows_but_not_to_neighbors(people: pl.DataFrame, features: list[str]) -> None:
    metric = tf.inequality.consistency(features, n_neighbors=6)
    rows = brute_force(people, features, 6)
    result = metric(people, estimate="estimate", case_weights="weight")
    assert value(result) == exactly(mean(rows, "weight"))
    assert value(result) != exactly(mean(rows))


@pytest.mark.parametrize("label", ["estimate", "grade"])
def test_rows_without_label_are_no_neighbors(people: pl.DataFrame, label: str) -> None:
    gaps = people.with_columns(pl.when(pl.int_range(pl.len()) % 3 != 0).then(label).alias(label))
    result = tf.inequality.consistency(DISCRETE, n_neighbors=6)(gaps, estimate=label, explain=True)
    rows = brute_force(gaps, DISCRETE, 6, label)
    assert value(result) == exactly(mean(rows))
    assert result[".n"].item() == len(rows) == 120
    strict = tf.inequality.consistency(DISCRETE, n_neighbors=6)(gaps, estimate=label, na_rm=False, explain=True)
    assert strict.select(".estimate", ".status").row(0) == (None, "missing_values")


def test_missing_truth_does_not_drop_rows(people: pl.DataFrame) -> None:
    gaps = people.with_columns(pl.when(pl.int_range(pl.len()) % 3 != 0).then("truth").alias("truth"))
    both = tf.metric_set(tf.inequality.consistency(DISCRETE), tf.accuracy)(gaps, "truth", "estimate")
    known = gaps.filter(pl.col("truth").is_not_null())
    right = float(np.mean((known["truth"] == known["estimate"]).to_numpy()))
    assert both[".estimate"].to_list() == [exactly(mean(brute_force(people, DISCRETE, 5))), exactly(right)]


def test_consistency_of_true_labels(people: pl.DataFrame) -> None:
    result = tf.inequality.consistency(DISCRETE)(people, estimate="truth")
    assert value(result) == exactly(mean(brute_force(people, DISCRETE, 5, "truth")))


def test_consistency_with_threshold(people: pl.DataFrame) -> None:
    people = people.with_columns(p=tf.calibration.sigmoid("x"))
    result = tf.inequality.consistency(DISCRETE)(people, probs="p", threshold=0.6)
    made = people.with_columns(made=(pl.col("p") >= 0.6).cast(pl.Int64))
    assert value(result) == exactly(mean(brute_force(made, DISCRETE, 5, "made")))


def test_consistency_in_a_metric_set(people: pl.DataFrame) -> None:
    many = tf.metric_set(
        tf.inequality.consistency(DISCRETE, name="five"),
        tf.inequality.consistency(DISCRETE, n_neighbors=9, name="nine"),
        tf.inequality.consistency(CONTINUOUS, name="elsewhere"),
        tf.accuracy,
        tf.demographic_parity("race"),
        tf.roc_auc,
        tf.new_groupwise_metric(tf.inequality.consistency(["age"]), "gap", tf.difference())("race"),
    )
    options: dict[str, Any] = {"group_by": "fold", "case_weights": "weight", "probs": "x"}
    together = many(people, "truth", "estimate", **options)
    alone = pl.concat(metric(people, "truth", "estimate", **options) for metric in many)
    keys = ["fold", ".metric"]
    both = together.sort(keys).join(alone.sort(keys), on=keys, suffix=" alone")
    assert len(both) == 21
    assert both[".estimate"].to_list() == [exactly(number) for number in both[".estimate alone"]]
    for name, features, n_neighbors in (("five", DISCRETE, 5), ("nine", DISCRETE, 9), ("elsewhere", CONTINUOUS, 5)):
        rows = brute_force(people, features, n_neighbors, within="fold")
        for fold, number in together.filter(pl.col(".metric") == name).select("fold", ".estimate").rows():
            assert number == exactly(mean(rows.filter(fold=fold), "weight"))


def test_consistency_on_every_engine(people: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    result = tf.inequality.consistency(DISCRETE)(engine(people), estimate="estimate", group_by="fold")
    rows = brute_force(people, DISCRETE, 5, within="fold")
    for fold, number in as_polars(result).select("fold", ".estimate").rows():
        assert number == exactly(mean(rows.filter(fold=fold)))


def test_equal_labels_have_consistency_1(people: pl.DataFrame) -> None:
    same = people.with_columns(estimate=pl.lit(1))
    assert value(tf.inequality.consistency(DISCRETE)(same, estimate="estimate")) == 1.0


def test_consistency_name_direction_and_range() -> None:
    metric = tf.inequality.consistency(["x"], name="alike")
    assert (metric.name, metric.direction, metric.range) == ("alike", "maximize", (0, 1))


# Undefined values


def test_outer_group_with_fewer_rows_than_neighbors_is_null() -> None:
    data = pl.DataFrame({"x": [1, 2, 3, 4, 5], "estimate": [1, 0, 1, 0, None], "fold": [1, 1, 1, 2, 2]})
    metric = tf.inequality.consistency(["x"], n_neighbors=3)
    with pytest.warns(
        tf.errors.UndefinedWarning, match=r"consistency has no value \(too few rows\) in \(fold=2\)"
    ) as caught:
        result = metric(data, estimate="estimate", group_by="fold", explain=True)
    assert len(caught) == 1
    expected = mean(brute_force(data.filter(fold=1), ["x"], 3))
    assert result.select("fold", ".estimate", ".status").rows() == [
        (1, exactly(expected), "ok"), (2, None, "too_few_rows")
    ]  # fmt: skip
    few = tf.inequality.consistency(["x"], n_neighbors=5)(
        data, estimate="estimate", on_undefined="ignore", explain=True
    )
    assert few.select(".estimate", ".status").row(0) == (None, "too_few_rows")
    assert value(tf.inequality.consistency(["x"], n_neighbors=4)(data, estimate="estimate")) == exactly(
        mean(brute_force(data, ["x"], 4))
    )


def test_groups_with_too_few_rows_in_total_are_null() -> None:
    data = pl.DataFrame({"x": [1, 2, 3], "estimate": [1, 0, 1], "race": [*"aab"]})
    gap = tf.new_groupwise_metric(tf.inequality.consistency(["x"]), "gap", tf.difference())("race")
    groups = gap.by_group(data, estimate="estimate", on_undefined="ignore")
    assert groups.select(".estimate", ".status").rows() == [(None, "too_few_rows")] * 2
    assert gap(data, estimate="estimate", on_undefined="ignore")[".estimate"].item() is None


# Bad input


@pytest.mark.parametrize("number", [0, -1, True, 2.5, "5", None])
def test_bad_n_neighbors_raises(number: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match="`n_neighbors` is a whole number, 1 or more, not"):
        tf.inequality.consistency(["x"], n_neighbors=number)


def test_features_not_a_list_raise() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"takes a list of features, such as `consistency\(\['x'\]\)`"):
        tf.inequality.consistency("x")
    number: Any = 3
    with pytest.raises(tf.errors.ArgumentError, match="takes a list of features"):
        tf.inequality.consistency(number)
    for features in ([], ["x", "x"]):
        with pytest.raises(tf.errors.ArgumentError, match="needs a list of distinct features"):
            tf.inequality.consistency(features)


def test_text_feature_raises(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="the column 'grade' is String; distances need numbers"):
        tf.inequality.consistency(["x", "grade"])(people, estimate="estimate")


@pytest.mark.parametrize("absent", [None, float("nan"), float("inf")])
def test_missing_or_infinite_feature_values_raise(absent: float | None) -> None:
    data = pl.DataFrame({"x": [1.0, absent, 3.0], "estimate": [1, 0, 1]})
    with pytest.raises(tf.errors.ColumnError, match="some values of 'x' are missing or not finite"):
        tf.inequality.consistency(["x"], n_neighbors=1)(data, estimate="estimate")


def test_unknown_feature_raises(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match=r"`features`: there is no column 'agee'\. Did you mean 'age'\?"):
        tf.inequality.consistency(["agee"])(people, estimate="estimate")


def test_missing_estimate_raises(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="consistency needs the column of predicted labels"):
        tf.inequality.consistency(["x"])(people, "truth")


@pytest.mark.parametrize(("way", "cuts"), [("threshold", [0.1, 0.2]), ("top_k", [5, 9]), ("top_fraction", [0.1, 0.2])])
def test_list_of_selections_raises(people: pl.DataFrame, way: str, cuts: list[float]) -> None:
    options: dict[str, Any] = {way: cuts}
    with pytest.raises(
        tf.errors.ArgumentError, match=f"consistency does not accept a list of values for {way}; give one value"
    ):
        tf.metric_set(tf.accuracy, tf.inequality.consistency(["x"]))(people, "truth", probs="x", **options)


def test_adding_tallies_raises(people: pl.DataFrame) -> None:
    metric = tf.inequality.consistency(DISCRETE)
    one, other = (metric.tally(part, estimate="estimate") for part in (people[:90], people[90:]))
    with pytest.raises(
        tf.errors.ArgumentError,
        match="Nearest neighbours are searched among all rows, so tallies of parts cannot be added",
    ):
        one + other  # pyright: ignore[reportUnusedExpression] - adding is what raises
    whole = metric.compute(metric.tally(people, estimate="estimate"))
    assert value(whole) == exactly(mean(brute_force(people, DISCRETE, 5)))


def test_two_consistencies_in_a_set_need_names() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"two metrics consistency; give one .* `\.alias"):
        tf.metric_set(tf.inequality.consistency(["x"]), tf.inequality.consistency(["y"]))
    two = tf.metric_set(tf.inequality.consistency(["x"]), tf.inequality.consistency(["y"]).alias("other"))
    assert len(two) == 2


@pytest.mark.parametrize("scale", [1e-160, 1e-90, 1e90])
def test_feature_scale_does_not_change_neighbors(people: pl.DataFrame, scale: float) -> None:
    near = tf.inequality.consistency(["x", "y"])
    scaled = people.with_columns(pl.col("x", "y") * scale)
    assert value(near(scaled, estimate="estimate")) == value(near(people, estimate="estimate"))


def test_distances_beyond_floats_raise() -> None:
    data = pl.DataFrame({"x": [0.0, 1.0, 10.0, 12.0, 1e200], "estimate": [1, 0, 1, 0, 1]})
    with pytest.raises(tf.errors.ColumnError, match="too much to compute distances"):
        tf.inequality.consistency(["x"], n_neighbors=2)(data, estimate="estimate")


@pytest.mark.parametrize(
    "options", [{}, {"cluster": "town"}, {"interval": "bootstrap", "times": 50, "cluster": "town"}]
)
def test_consistency_has_no_interval_because_neighbors_are_shared(options: dict[str, Any]) -> None:
    # labels of 30 towns whose people live among those of all others: clusters left out would still be neighbours
    random = np.random.default_rng(0)
    people = pl.DataFrame(
        {"x": random.normal(size=90), "estimate": random.random(90) < 0.2, "town": np.repeat(np.arange(30), 3)}
    )
    call: dict[str, Any] = {"interval": "auto", **options}
    with pytest.raises(
        tf.errors.ArgumentError, match="compares each row with its neighbours, so that rows and clusters"
    ):
        tf.inequality.consistency(["x"])(people, estimate="estimate", **call)
