"""Independence, separation and sufficiency equal the definitions, with the distances of scipy."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from conftest import examples
from hypothesis import given, settings, strategies as st
from public_names import public
from scipy import special, stats
from scipy.spatial import distance as spatial

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidyfair.specs.formulas import Number

    Array = Any

COLUMNS: dict[str, Any] = {"truth": "truth", "estimate": "estimate"}

# Definitions


def steps(p: Array, q: Array) -> float:
    places = np.arange(len(p))
    return float(stats.wasserstein_distance(places, places, p, q))


DISTANCES: dict[str, Callable[[Array, Array], float]] = {
    "kl": lambda p, q: float(special.rel_entr(p, q).sum()),
    "total_variation": lambda p, q: float(spatial.cityblock(p, q)) / 2,
    "jensen_shannon": lambda p, q: float(spatial.jensenshannon(p, q)) ** 2,
    "wasserstein": steps,
}
SIDES: dict[str, tuple[str, str | None]] = {
    "independence": ("estimate", None),
    "separation": ("estimate", "truth"),
    "sufficiency": ("truth", "estimate"),
}
"""The side whose labels are counted, and the one that is given."""
METRIC = {
    "independence": "distance_to_all",
    "separation": "distance_given_truth",
    "sufficiency": "distance_given_estimate",
}


class Found(NamedTuple):
    group: str
    level: str | None
    value: float | None
    n: int


def distribution(rows: pl.DataFrame, side: str, labels: Sequence[object]) -> Array | None:
    """The share of each label, None where there is nobody."""
    masses = [rows.filter(pl.col(side).cast(pl.String) == str(label))["weight"].sum() for label in labels]
    return np.array(masses) / sum(masses) if sum(masses) else None


def values(rows: pl.DataFrame, name: str, distance: str, labels: Sequence[object], by: str = "group") -> list[Found]:
    """How far each group is from all, for each label that is given."""
    side, given = SIDES[name]
    known = rows.drop_nulls([item for item in (side, given) if item])
    result: list[Found] = []
    for group in sorted(rows[by].unique(), key=lambda item: (item is None, item)):
        for level in labels if given else [None]:
            everybody = known.filter(pl.col(given).cast(pl.String) == str(level)) if given else known
            own = everybody.filter(pl.col(by).eq_missing(group))
            p, q = (distribution(item, side, labels) for item in (own, everybody))
            value = None if p is None or q is None else DISTANCES[distance](p, q)
            result.append(Found(str(group or "null"), None if level is None else str(level), value, len(own)))
    return result


def worst(result: Sequence[Found]) -> float | None:
    return max((item.value for item in result if item.value is not None), default=None)


def state(result: Sequence[Found]) -> str:
    """Whether each label that is given has a value for somebody."""
    levels = [{item.value for item in result if item.level == level} for level in {item.level for item in result}]
    return "levels_left_out" if {None} in levels else "ok"


def close(result: float | None, expected: float | None) -> bool:
    if result is None or expected is None:
        return result is expected
    return math.isclose(result, expected, rel_tol=1e-9, abs_tol=1e-12)


def number(result: pl.DataFrame) -> float | None:
    return result[".estimate"].item()


def factory(name: str) -> tf.types.GroupwiseFactory:
    return public(name)


# Data

NAMES = ["low", "middle", "high", "top"]
LABELS: dict[str, list[Any]] = {"numbers": [0, 1], "text": NAMES[:3], "enum": NAMES}
"""Two, three and four labels; the last of four is never predicted for anybody, and never true for one group."""


def people(kind: str, *, weighted: bool = False, gaps: bool = True) -> pl.DataFrame:
    random = np.random.default_rng(17)
    labels, rows = LABELS[kind], 160
    dtype: Any = {"numbers": pl.Int64, "text": pl.String, "enum": pl.Enum(NAMES)}[kind]
    likely = labels[:-1] if kind == "enum" else labels
    row = pl.int_range(pl.len())
    data = pl.DataFrame(
        {
            "truth": [labels[index] for index in random.integers(0, len(labels), rows)],
            "estimate": [likely[index] for index in random.integers(0, len(likely), rows)],
            "group": random.choice(["a", "b", "c", "rare"], rows, p=[0.5, 0.3, 0.18, 0.02]),
            "fold": random.integers(1, 4, rows),
            "weight": random.integers(0, 4, rows) / 2 if weighted else np.ones(rows),
        },
        schema_overrides={"truth": dtype, "estimate": dtype},
    )
    # group b is never given the first label, and never has the last
    data = data.filter((pl.col("group") != "b") | ((pl.col("estimate") != labels[0]) & (pl.col("truth") != labels[-1])))
    data = data.with_columns(pl.when(row % 9 != 0).then("group").alias("group"))
    if not gaps:
        return data
    return data.with_columns(
        pl.when(row % 11 != 0).then("truth").alias("truth"), pl.when(row % 13 != 0).then("estimate").alias("estimate")
    )


def options(kind: str, *, weighted: bool = False) -> dict[str, Any]:
    order = {"labels": LABELS[kind]} if kind == "text" else {}
    return {**COLUMNS, **order, "case_weights": "weight" if weighted else None, "on_undefined": "ignore"}


def assert_by_group(result: pl.DataFrame, expected: Sequence[Found]) -> None:
    levels = [item.level for item in expected]
    # there is no column of levels where an event is read and nothing has any
    assert (result[".level"].to_list() if ".level" in result.columns else [None] * len(result)) == levels
    assert result.select(".group", ".n").rows() == [(item.group, item.n) for item in expected]
    for number, item in zip(result[".estimate"], expected, strict=True):
        assert close(number, item.value), item
    assert result[".status"].to_list() == ["zero_denominator" if item.value is None else "ok" for item in expected]
    assert result[".denominator"].to_list() == [item.n for item in expected]


EVERY = pytest.mark.parametrize("name", SIDES)
EACH = pytest.mark.parametrize("distance", DISTANCES)
KINDS = pytest.mark.parametrize("kind", LABELS)


# Equality with the definitions


@pytest.mark.parametrize("weighted", [False, True])
@KINDS
@EACH
@EVERY
def test_group_values_and_maximum_equal_the_definition(name: str, distance: str, kind: str, *, weighted: bool) -> None:
    data, call = people(kind, weighted=weighted), options(kind, weighted=weighted)
    metric = factory(name)("group", distance=distance, unknown="group")
    expected = values(data, name, distance, LABELS[kind])
    by_group = metric.by_group(data, **call)
    assert_by_group(by_group, expected)
    assert set(by_group[".metric"]) == {METRIC[name]}
    assert set(by_group[".estimator"]) == {"multiclass"}
    result = metric(data, explain=True, **call)
    assert close(number(result), worst(expected))
    carrier = next(item for item in expected if close(item.value, worst(expected)))
    assert result.select(".group_max", ".level").row(0) == (carrier.group, carrier.level)
    assert result[".status"].to_list() == [state(expected)]
    left_out = dict.fromkeys(item.group for item in expected if item.value is None)
    assert result[".groups_left_out"].to_list() == [list(left_out)]
    assert close(number(metric(data, **call)), worst(expected))


@EACH
@EVERY
def test_outer_groups_are_compared_within_themselves(name: str, distance: str) -> None:
    data, call = people("enum", weighted=True), options("enum", weighted=True)
    metric = factory(name)("group", distance=distance, unknown="group")
    by_group, result = (item(data, group_by="fold", **call) for item in (metric.by_group, metric))
    assert result["fold"].to_list() == [1, 2, 3]
    for fold in (1, 2, 3):
        expected = values(data.filter(fold=fold), name, distance, LABELS["enum"])
        assert_by_group(by_group.filter(fold=fold), expected)
        assert close(number(result.filter(fold=fold)), worst(expected))


@EACH
@EVERY
def test_sides_are_compared_with_both_sides_only(name: str, distance: str) -> None:
    data, call = people("text", weighted=True), options("text", weighted=True)
    metric = factory(name)(tf.privileged(group="a", unprivileged={"group": ["b", "rare"]}), distance=distance)
    sides = pl.col("group").replace_strict({"a": "privileged", "b": "unprivileged", "rare": "unprivileged"}, default="")
    both = data.with_columns(side=sides).filter(pl.col("side") != "")
    expected = values(both, name, distance, LABELS["text"], by="side")
    by_group = metric.by_group(data, **call)
    on_a_side = pl.col(".group").is_in(["privileged", "unprivileged"])
    assert_by_group(by_group.filter(on_a_side), expected)
    others = by_group.filter(~on_a_side)
    assert set(others.select(".group", ".status").rows()) == {("neither", "left_out"), ("unknown", "unknown")}
    assert others[".estimate"].null_count() == len(others) == (2 if name == "independence" else 6)
    assert close(number(metric(data, **call)), worst(expected))


@EVERY
def test_several_features_make_intersections_of_distances(name: str) -> None:
    data, call = people("numbers"), options("numbers")
    both = data.with_columns(both=pl.format("{}:{}", pl.col("group").fill_null("null"), "fold"))
    one, other = (factory(name)(*by, unknown="group")(both, **call) for by in (["group", "fold"], ["both"]))
    assert close(number(one), number(other))


@pytest.mark.parametrize("undefined", ["ignore", "null"])
@EVERY
def test_unseen_label(name: str, undefined: str) -> None:
    data, labels = people("numbers", gaps=False), [0, 1, 2]
    call: Any = {**COLUMNS, "labels": labels, "pos_label": 1, "on_undefined": undefined}
    metric = factory(name)("group", unknown="group")
    expected = values(data, name, "kl", labels)
    assert_by_group(metric.by_group(data, **call), expected)
    result = metric(data, explain=True, **call)
    is_null = undefined == "null" and name != "independence"
    assert close(number(result), None if is_null else worst(expected))
    assert result[".status"].item() == ("undefined_group" if is_null else state(expected))
    assert state(expected) == ("ok" if name == "independence" else "levels_left_out")


@EVERY
def test_unseen_middle_label_matters_only_to_wasserstein(name: str) -> None:
    data = people("numbers").filter(pl.col("group").is_in(["a", "c"]))
    shared: dict[str, Any] = {**options("numbers"), "pos_label": 1}
    for distance in DISTANCES:
        metric = factory(name)("group", distance=distance, unknown="group")
        one, other = (number(metric(data, labels=labels, **shared)) for labels in ([0, 1], [0, 2, 3, 1]))
        assert one is not None
        assert close(other, one * (3 if distance == "wasserstein" else 1))


@pytest.mark.parametrize("undefined", ["ignore", "null"])
def test_group_without_predictions_has_null_distance(undefined: Any) -> None:
    data = pl.DataFrame({"truth": [0, 1, 1, 0], "estimate": [0, 1, 1, None], "group": ["a", "a", "b", "c"]})
    metrics = tf.metric_set(tf.independence("group"), tf.distributions.mutual_information("group"))
    result = metrics(data, **COLUMNS, on_undefined=undefined, explain=True)
    expected = None if undefined == "null" else math.log(3 / 2)
    assert close(result[".estimate"][0], expected)
    shares = [2 / 3 * (1 / 2 * math.log(3 / 2) + 1 / 2 * math.log(3 / 4)), 1 / 3 * math.log(3 / 2)]
    assert close(result[".estimate"][1], None if undefined == "null" else sum(shares))
    assert result[".groups_left_out"].to_list() == [["c"]] * 2
    with pytest.warns(tf.errors.UndefinedWarning, match="distance_to_all has no value .* in group 'c'"):
        tf.independence("group")(data, **COLUMNS)
    with pytest.raises(tf.errors.UndefinedError, match="distance_to_all has no value"):
        tf.independence("group")(data, **COLUMNS, on_undefined="raise")


def test_group_with_zero_weight_has_null_distance() -> None:
    data = pl.DataFrame({"estimate": [0, 1, 1, 0], "group": ["a", "a", "b", "c"], "weight": [1, 1, 2, 0]})
    call: Any = {"estimate": "estimate", "case_weights": "weight", "on_undefined": "ignore"}
    assert tf.independence("group").by_group(data, **call)[".status"].to_list() == ["ok", "ok", "zero_denominator"]
    weighed = data.filter(pl.col("weight") > 0)
    for metric in (tf.independence("group"), tf.distributions.mutual_information("group")):
        assert close(number(metric(data, **call)), number(metric(weighed, **call)))


@EVERY
def test_min_n_applies_per_label(name: str) -> None:
    data, call = people("text"), options("text")
    expected = values(data, name, "kl", LABELS["text"])
    result = factory(name)("group", min_n=8, unknown="group").by_group(data, **call)
    assert result[".status"].to_list() == ["ok" if item.n >= 8 else "below_min_n" for item in expected]
    large = [item for item in expected if item.n >= 8]
    assert len(large) < len(expected)
    assert close(number(factory(name)("group", min_n=8, unknown="group")(data, **call)), worst(large))


def test_independence_needs_no_truth() -> None:
    data = people("enum")
    alone = tf.independence("group", unknown="group")(data, estimate="estimate")
    assert close(number(alone), worst(values(data, "independence", "kl", LABELS["enum"])))
    for name in ("separation", "sufficiency"):
        with pytest.raises(tf.errors.ColumnError, match=f"{METRIC[name]} needs the column of true labels"):
            factory(name)("group")(data, estimate="estimate")


# Scores with thresholds


@EACH
@EVERY
def test_lists_of_thresholds_equal_labels_cut_by_hand(name: str, distance: str) -> None:
    data = people("numbers").with_columns(score=pl.int_range(pl.len()) * 7 % 20 / 20)
    metric, cuts = factory(name)("group", distance=distance, unknown="group"), [0.2, 0.5, 0.9]
    several = metric(data, "truth", probs="score", threshold=cuts, on_undefined="ignore")
    by_group = metric.by_group(data, "truth", probs="score", threshold=cuts, on_undefined="ignore")
    assert several[".threshold"].to_list() == cuts
    for cut in cuts:
        selected = data.with_columns(estimate=(pl.col("score") >= cut).cast(pl.Int64))
        expected = values(selected, name, distance, [0, 1])
        assert_by_group(by_group.filter(pl.col(".threshold") == cut), expected)
        once = metric(data, "truth", probs="score", threshold=cut, on_undefined="ignore")
        assert close(number(once), worst(expected))
        assert close(number(several.filter(pl.col(".threshold") == cut)), worst(expected))


# Mutual information


@pytest.mark.parametrize("weighted", [False, True])
@KINDS
def test_mutual_information_equals_g_statistic(kind: str, *, weighted: bool) -> None:
    data = people(kind, weighted=weighted).with_columns(pl.col("group").fill_null("null"))
    result = number(
        tf.distributions.mutual_information("group", unknown="group")(data, **options(kind, weighted=weighted))
    )
    known = data.drop_nulls("estimate")
    groups, labels = known["group"].unique().sort(), known["estimate"].unique()
    table = np.array(
        [[known.filter(group=group, estimate=label)["weight"].sum() for label in labels] for group in groups]
    )
    table = table[table.sum(axis=1) > 0]
    test: Any = stats.chi2_contingency(table, correction=False, lambda_="log-likelihood")
    assert result is not None
    assert close(2 * table.sum() * result, float(test.statistic))
    joint, independent = table / table.sum(), np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum() ** 2
    assert close(result, float(special.rel_entr(joint, independent).sum()))


@EACH
def test_weighted_group_mean_of_any_distance(distance: str) -> None:
    data, call = people("enum", weighted=True), options("enum", weighted=True)
    each = values(data, "independence", distance, LABELS["enum"])
    masses = data.drop_nulls("estimate").group_by("group").agg(pl.col("weight").sum())
    size = dict(masses.with_columns(pl.col("group").fill_null("null")).rows())
    pairs = [(one.value, size[one.group]) for one in each if one.value is not None]
    expected = sum(value * mass for value, mass in pairs) / sum(mass for _, mass in pairs)
    mean = tf.independence(
        "group", unknown="group", aggregate=tf.aggregates.group_mean(weighted=True), distance=distance
    )
    assert close(number(mean(data, **call)), expected)


# Properties on random data

LAW = settings(deadline=None, max_examples=examples(20), database=None)
ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2, None]), st.sampled_from([0, 1, 2, None]),
        st.sampled_from(["a", "b", None]), st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.5]),
    ),
    min_size=1, max_size=25,
).filter(lambda rows: any(row[-1] > 0 for row in rows))  # fmt: skip
SCHEMA = {"truth": pl.Int64, "estimate": pl.Int64, "group": pl.String, "weight": pl.Float64}
ALL = tf.metric_set(
    *(
        factory(name)("group", unknown="group", distance=each, name=f"{name} {each}")
        for name in SIDES
        for each in DISTANCES
    )
)


def frame(rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def all_distances(data: pl.DataFrame) -> dict[str, float | None]:
    result = ALL(data, **COLUMNS, labels=[0, 1, 2], case_weights="weight", on_undefined="ignore")
    return dict(zip(result[".metric"], result[".estimate"], strict=True))


@LAW
@given(ROWS)
def test_distances_equal_the_definition_and_are_in_range(rows: list[tuple[object, ...]]) -> None:
    data = frame(rows)
    highest = {"kl": math.inf, "total_variation": 1, "jensen_shannon": math.log(2), "wasserstein": 2}
    for key, result in all_distances(data).items():
        name, distance = key.split()
        assert close(result, worst(values(data, name, distance, [0, 1, 2]))), key
        assert result is None or 0 <= result <= highest[distance] + 1e-12, key


@LAW
@given(ROWS, st.integers(0, 25))
def test_tallies_of_parts_give_the_distances_of_the_whole(rows: list[tuple[object, ...]], cut: int) -> None:
    parts = (ALL.tally(frame(part), **COLUMNS, case_weights="weight") for part in (rows[:cut], rows[cut:]))
    merged = ALL.compute(sum(parts, start=next(parts)), labels=[0, 1, 2], on_undefined="ignore")
    for result, expected in zip(merged[".estimate"], all_distances(frame(rows)).values(), strict=True):
        assert close(result, expected)


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3).filter(any), st.integers(1, 3), st.integers(0, 2))
@settings(LAW, max_examples=examples(15))
def test_distance_is_zero_only_for_equal_distributions(counts: list[int], times: int, other: int) -> None:
    estimate = [label for label, count in enumerate(counts) for _ in range(count)]
    equal = [(0, label, "a", 1.0) for label in estimate] + [(0, label, "b", 1.0) for label in estimate * times]
    for key, result in all_distances(frame(equal)).items():
        assert result is not None, key
        assert abs(result) <= 1e-12, key
    differing = {key: result for key, result in all_distances(frame([*equal, (0, other, "b", 1.0)])).items() if result}
    same = all(label == other for label in estimate)
    apart = set[str]() if same else {key for key in all_distances(frame(equal)) if not key.startswith("sufficiency")}
    assert {key for key, result in differing.items() if result > 1e-12} == apart


@pytest.mark.parametrize("distance", DISTANCES)
def test_distance_of_groups_without_shared_labels(distance: str) -> None:
    data = pl.DataFrame({"estimate": [0] * 3 + [2], "group": list("aaab")})
    result = number(tf.independence("group", distance=distance)(data, estimate="estimate", labels=[0, 1, 2]))
    p, q = np.array([0, 0, 1.0]), np.array([0.75, 0, 0.25])
    expected = {"kl": math.log(4), "total_variation": 0.75, "wasserstein": 1.5}
    assert close(result, expected.get(distance, DISTANCES["jensen_shannon"](p, q)))


# Calls and options


def test_metrics_in_a_set_equal_separate_calls() -> None:
    data = people("text", weighted=True).with_columns(band=pl.int_range(pl.len()) % 3)
    call: dict[str, Any] = {**options("text", weighted=True), "group_by": "fold"}
    members = [
        tf.accuracy,
        tf.separation("group"),
        tf.demographic_parity("group"),
        tf.sufficiency("group", distance="kl"),
        tf.independence("group", distance="wasserstein"),
        tf.distributions.mutual_information("band"),
        tf.distributions.distance_to_all,
        tf.separation("band", distance="jensen_shannon", name="by band"),
        tf.distributions.kl_divergence("group"),
    ]
    together = tf.metric_set(*members)
    rows = together(data, **call, explain=True)
    parts = {member.name: member(data, **call, explain=True) for member in members}
    for name, alone in parts.items():
        mine = rows.filter(pl.col(".metric") == name)
        assert mine.select(alone.columns).equals(alone), name
    tables = together.by_group(data, **call)
    for name in SIDES:
        metric = next(member for member in members if member.name == name)
        assert isinstance(metric, tf.types.GroupwiseMetric)
        alone = metric.by_group(data, **call)
        mine = tables.filter((pl.col(".metric") == METRIC[name]) & (pl.col(".by") == "group"))
        assert mine.select(alone.columns).equals(alone), name


@pytest.mark.parametrize(("name", "distance"), [*zip(SIDES, DISTANCES, strict=False), ("mutual_information", None)])
def test_pos_label_does_not_matter(name: str, distance: str | None) -> None:
    given: dict[str, Any] = {} if distance is None else {"distance": distance}
    metric = factory(name)("group", unknown="group", **given)
    no_levels = [] if name in {"separation", "sufficiency"} else [".level"]
    for kind, labels in LABELS.items():
        data, call = people(kind), options(kind)
        readings: list[dict[str, Any]] = [{"pos_label": label} for label in labels]
        readings += [{"estimator": item} for item in (None, "macro", "micro", "one_vs_rest") if kind != "numbers"]
        tables = [metric(data, explain=True, **call, **reading) for reading in readings]
        groups = [metric.by_group(data, **call, **item).drop(no_levels, strict=False) for item in readings]
        assert all(one.equals(other) for one, other in itertools.pairwise(tables))
        assert all(one.equals(other) for one, other in itertools.pairwise(groups))


def test_metric_tweak_sets_the_distance() -> None:
    data, call = people("text"), options("text")
    for name, metric in METRIC.items():
        tweaked = tf.metric_tweak(public(metric), "mine", distance="wasserstein")
        made = tf.new_groupwise_metric(tweaked, "made", tf.group_maximum())("group", unknown="group")
        assert close(
            number(made(data, **call)),
            number(factory(name)("group", distance="wasserstein", unknown="group")(data, **call)),
        )
        assert set(made.by_group(data, **call)[".metric"]) == {"mine"}
        mean = tf.new_groupwise_metric(tweaked, "made", tf.group_minimum())("group", unknown="group")
        known = [item.value for item in values(data, name, "wasserstein", LABELS["text"]) if item.value is not None]
        assert close(number(mean(data, **call)), min(known))


@pytest.mark.parametrize("compared", [tf.difference(), tf.group_minimum(), tf.aggregates.group_mean()])
@EVERY
def test_other_aggregates_apply_per_truth_label(name: str, compared: Any) -> None:
    data, call = people("numbers", gaps=False), options("numbers")
    result = values(data, name, "kl", [0, 1])
    known = {
        level: [one.value for one in result if one.level == level and one.value is not None]
        for level in {each.level for each in result}
    }
    numbers: dict[str, Callable[[list[float]], float]] = {
        "difference": lambda some: max(some) - min(some),
        "group_minimum": min,
        "group_mean": lambda some: float(np.mean(some)),
    }
    each = [numbers[compared.kind](some) for some in known.values()]
    expected = min(each) if compared.kind == "group_minimum" else max(each)
    assert close(number(factory(name)("group", aggregate=compared, unknown="group")(data, **call)), expected)


def test_distance_to_all_without_groups_is_zero() -> None:
    data = people("enum")
    result = tf.distributions.distance_to_all(data, **COLUMNS, group_by="fold")
    assert result.select("fold", ".estimator", ".estimate").rows() == [(fold, "multiclass", 0.0) for fold in (1, 2, 3)]
    nobody = tf.distributions.distance_to_all(data.clear(), **COLUMNS, on_undefined="ignore")
    assert nobody[".estimate"].to_list() == [None]


def test_formula_on_plain_numbers() -> None:
    result = tf.distributions.distance_to_all.formula(count=[3, 1], overall_count=[4, 4])
    assert close(result, 0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    for distance, expected in DISTANCES.items():
        for name in METRIC.values():
            metric = tf.metric_tweak(public(name), "mine", distance=distance)
            result = metric.formula(count=[3, 0, 1], overall_count=[4, 2, 4])
            assert close(result, expected(np.array([0.75, 0, 0.25]), np.array([0.4, 0.2, 0.4])))
    assert tf.distributions.distance_to_all.formula(count=[0, 0], overall_count=[4, 4]) is None


# Bad input


def test_unknown_distance_raises_with_known_ones() -> None:
    known = "'kl', 'total_variation', 'jensen_shannon' or 'wasserstein'"
    for name, metric in METRIC.items():
        with pytest.raises(tf.errors.ArgumentError, match=f"`distance=` must be {known}, not 'hellinger'"):
            factory(name)("group", distance="hellinger")
        with pytest.raises(tf.errors.ArgumentError, match=r"not 'wassersten'. Did you mean 'wasserstein'\?"):
            tf.metric_tweak(public(metric), "mine", distance="wassersten")


def test_unknown_option_raises_with_known_ones() -> None:
    for name, metric in METRIC.items():
        with pytest.raises(
            tf.errors.ArgumentError, match=f"Unknown option of {name} 'distanse'. Did you mean 'distance'"
        ):
            factory(name)("group", distanse="kl")
        with pytest.raises(tf.errors.ArgumentError, match=f"Unknown option of {metric} 'alpha'. Known: 'distance'"):
            tf.metric_tweak(public(metric), "mine", alpha=1)


@EVERY
def test_comparison_with_overall_raises(name: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=f"{name} already compares each group with the others"):
        factory(name)("group", aggregate=tf.difference(to="overall"))(people("numbers"), **options("numbers"))


# Regressions


@pytest.mark.parametrize("name", ["separation", "sufficiency"])
def test_na_rm_false_on_complete_rows_changes_nothing(name: str) -> None:
    data, call = people("numbers", gaps=False), options("numbers")
    kept = factory(name)("group", unknown="group")(data, **call, na_rm=False)
    assert close(number(kept), number(factory(name)("group", unknown="group")(data, **call)))


@pytest.mark.parametrize("name", [*SIDES, "mutual_information"])
def test_na_rm_false_gives_status_missing_values(name: str) -> None:
    result = factory(name)("group", unknown="group")(people("numbers"), **options("numbers"), na_rm=False, explain=True)
    assert result.select(".estimate", ".status").row(0) == (None, "missing_values")


@pytest.mark.parametrize(
    "metric",
    [tf.distributions.distance_given_truth, tf.distributions.distance_given_estimate],
    ids=lambda item: item.name,
)
def test_group_distance_without_groups_raises(metric: tf.types.Metric) -> None:
    with pytest.raises(tf.errors.ArgumentError, match="is defined for groups only"):
        metric(people("text"), **options("text"), group_by="fold")


def test_formula_reducing_over_labels_raises() -> None:
    def most(count: Number) -> Number:
        return count.max(axis=-1)

    with pytest.raises(tf.errors.ArgumentError):
        tf.class_metric()(most)(people("numbers"), **options("numbers"))


distance_to_all = tf.distributions.distance_to_all


def test_distance_in_another_formula_raises() -> None:
    def doubled(distance_to_all: Number) -> Number:
        return 2 * distance_to_all

    with pytest.raises(tf.errors.ArgumentError, match="not part of another formula"):
        tf.class_metric(range=(0, math.inf))(doubled)


def test_mutual_information_has_no_distance_option() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="Unknown option of mutual_information 'distance'"):
        tf.distributions.mutual_information("group", distance="total_variation")


def test_binary_labels_need_no_event() -> None:
    people = pl.DataFrame(
        {"p": ["yes", "no", "no", "yes", "yes"], "y": ["yes", "yes", "no", "no", "yes"], "g": list("aabbb")}
    )
    for metric in (tf.independence("g"), tf.separation("g")):
        call: Any = {"estimate": "p", **({"truth": "y"} if metric.name == "separation" else {})}
        assert metric(people, **call, on_undefined="ignore").equals(
            metric(people, **call, pos_label="yes", on_undefined="ignore")
        )
    with pytest.raises(tf.errors.LabelError, match="is the event"):
        tf.metric_set(tf.independence("g"), tf.sens)(people, "y", "p")


def test_wasserstein_needs_ordered_labels() -> None:
    moods = pl.DataFrame({"p": ["low"] * 4 + ["mid"] * 2 + ["high"] * 4 + ["mid"] * 2, "g": ["a"] * 6 + ["b"] * 6})
    metric = tf.independence("g", distance="wasserstein")
    with pytest.raises(
        tf.errors.LabelError, match="accumulates from label to label in order, but 'high', 'low', 'mid' have no"
    ):
        metric(moods, estimate="p")
    order = ["low", "mid", "high"]
    listed = metric(moods, estimate="p", labels=order)
    assert listed[".estimate"].item() == pytest.approx(2 / 3)
    assert metric(moods.cast({"p": pl.Enum(order)}), estimate="p").equals(listed)
    assert tf.independence("g")(moods, estimate="p").height
    two = moods.filter(pl.col("p") != "mid")
    assert metric(two, estimate="p").height
