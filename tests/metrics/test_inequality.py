"""Inequality, differential fairness and comparisons of many groups equal their formulas in numpy."""

from __future__ import annotations

import math
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from public_names import public

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidyfair.specs.formulas import Number

ALPHAS = [-1, 0, 0.5, 1, 2, 3]
BENEFITS = ["ratio", "difference", "amount"]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(11)
    rows = 240
    return pl.DataFrame(
        {
            "truth": random.integers(0, 2, rows),
            "estimate": random.integers(0, 2, rows),
            "score": random.uniform(0.05, 0.95, rows),
            "pay": random.uniform(2, 9, rows),
            "guess": random.uniform(9, 20, rows),
            "weight": random.integers(0, 5, rows) / 4,
            "race": random.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "fold": random.integers(1, 4, rows),
        }
    )


def ones(data: pl.DataFrame) -> Any:
    return np.ones(len(data))


def weight(data: pl.DataFrame) -> Any:
    return data["weight"].to_numpy()


def counting(*, weighted: bool) -> tuple[Callable[[pl.DataFrame], Any], dict[str, Any]]:
    """The weights of rows for the arithmetic, and how a call is told of them."""
    return (weight, {"case_weights": "weight"}) if weighted else (ones, {})


# Benefits


def of_labels(data: pl.DataFrame) -> Any:
    return (data["estimate"] - data["truth"] + 1).to_numpy().astype(float)


def of_scores(data: pl.DataFrame) -> Any:
    return (data["score"] - data["truth"] + 1).to_numpy()


def of_numbers(benefit: str) -> Callable[[pl.DataFrame], Any]:
    kinds: dict[str, Callable[[pl.DataFrame], Any]] = {
        "ratio": lambda data: data["guess"].to_numpy() / data["pay"].to_numpy(),
        "difference": lambda data: data["guess"].to_numpy() - data["pay"].to_numpy() + 1,
        "amount": lambda data: data["guess"].to_numpy(),
    }
    return kinds[benefit]


LABELS: dict[str, Any] = {"truth": "truth", "estimate": "estimate"}
SCORES: dict[str, Any] = {"truth": "truth", "probs": "score"}
NUMBERS: dict[str, Any] = {"truth": "pay", "estimate": "guess"}

KINDS: dict[str, tuple[Callable[[pl.DataFrame], Any], dict[str, Any], dict[str, Any]]] = {
    "labels": (of_labels, LABELS, {}),
    "scores": (of_scores, SCORES, {}),
    **{kind: (of_numbers(kind), NUMBERS, {"benefit": kind}) for kind in BENEFITS},
}


def entropy(benefits: Any, alpha: float, weights: Any) -> float | None:
    """Generalized entropy (Speicher et al., 2018)."""
    b, w = (np.asarray(item, float)[np.asarray(weights) > 0] for item in (benefits, weights))
    if not b.sum():
        return None
    u = b / np.average(b, weights=w)
    if alpha <= 0 and (u == 0).any():
        return math.inf
    logarithm = np.log(np.where(u > 0, u, 1.0))
    if alpha == 1:
        return float(np.average(u * logarithm, weights=w))
    if alpha == 0:
        return float(-np.average(logarithm, weights=w))
    return float(np.average(u**alpha - 1, weights=w) / (alpha * (alpha - 1)))


def close(result: float | None, expected: float | None) -> bool:
    if result is None or expected is None:
        return result is expected
    return math.isclose(result, expected, rel_tol=1e-9, abs_tol=1e-12)


def number(result: pl.DataFrame) -> float | None:
    return result[".estimate"].item()


def by_key(result: pl.DataFrame, key: str) -> dict[Any, float | None]:
    return dict(zip(result[key].to_list(), result[".estimate"].to_list(), strict=True))


def parts(data: pl.DataFrame, key: str) -> dict[Any, pl.DataFrame]:
    return {name: part for (name,), part in data.group_by(key)}


def index(kind: str, alpha: float) -> tf.types.Metric:
    options = KINDS[kind][2]
    return tf.metric_tweak(tf.inequality.generalized_entropy_index, "index", alpha=alpha, **options)


# Inequality of rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_index_equals_the_formula(people: pl.DataFrame, kind: str, alpha: float, *, weighted: bool) -> None:
    benefit, columns, *_ = KINDS[kind]
    mass, options = counting(weighted=weighted)
    result = number(index(kind, alpha)(people, **columns, **options))
    assert close(result, entropy(benefit(people), alpha, mass(people)))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_index_by_outer_group_and_group_equals_the_formula(people: pl.DataFrame, kind: str, alpha: float) -> None:
    benefit, columns, *_ = KINDS[kind]
    mass, options = counting(weighted=True)
    metric = index(kind, alpha)
    folds = by_key(metric(people, **columns, **options, group_by="fold"), "fold")
    gap = tf.new_groupwise_metric(metric, "gap", tf.group_maximum())("race")
    groups = by_key(gap.by_group(people, **columns, **options), ".group")
    for key, result in (("fold", folds), ("race", groups)):
        assert len(result) == 3
        for name, part in parts(people, key).items():
            assert close(result[name], entropy(benefit(part), alpha, mass(part)))


def test_named_indices_have_their_alpha(people: pl.DataFrame) -> None:
    known = {
        tf.inequality.generalized_entropy_index: 2, tf.inequality.theil_index: 1, tf.inequality.mean_log_deviation: 0,
    }  # fmt: skip
    for metric, alpha in known.items():
        assert close(number(metric(people, **LABELS)), entropy(of_labels(people), alpha, ones(people)))
        assert close(number(metric(people, **SCORES)), entropy(of_scores(people), alpha, ones(people)))
        of_ratios = tf.metric_tweak(metric, "of_ratios", benefit="ratio")
        assert close(number(of_ratios(people, **NUMBERS)), entropy(of_numbers("ratio")(people), alpha, ones(people)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_mean_benefit_equals_numpy_average(people: pl.DataFrame, kind: str, *, weighted: bool) -> None:
    benefit, columns, own = KINDS[kind]
    mass, options = counting(weighted=weighted)
    metric = tf.metric_tweak(tf.inequality.mean_benefit, "mean", **own)
    expected = float(np.average(benefit(people), weights=mass(people)))
    assert close(number(metric(people, **columns, **options)), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_benefit_variation_equals_deviation_over_mean(people: pl.DataFrame, *, weighted: bool) -> None:
    mass, options = counting(weighted=weighted)
    b, w = of_labels(people), mass(people)
    mean = np.average(b, weights=w)
    expected = float(np.sqrt(np.average((b - mean) ** 2, weights=w)) / mean)
    assert close(number(tf.inequality.benefit_variation(people, **LABELS, **options)), expected)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_equal_benefits_have_index_0(alpha: float) -> None:
    data = pl.DataFrame({"truth": [1, 0, 1], "estimate": [1, 0, 1], "score": [0.7, 0.7, 0.7], "sure": [0, 0, 0]})
    assert number(index("labels", alpha)(data, **LABELS)) == 0.0
    result = number(index("scores", alpha)(data, "sure", probs="score", pos_label=1, labels=[0, 1]))
    assert result == pytest.approx(0, abs=1e-15)


def test_incomplete_rows_are_dropped(people: pl.DataFrame) -> None:
    row = pl.int_range(pl.len())
    gaps = people.with_columns(
        pl.when(row % 7 != 0).then("truth").alias("truth"), pl.when(row % 5 != 0).then("estimate").alias("estimate"),
        pl.when(row % 5 != 0).then("score").alias("score"),
    )  # fmt: skip
    known = gaps.drop_nulls()
    for kind in ("labels", "scores"):
        benefit, columns, *_ = KINDS[kind]
        result = number(index(kind, 1)(gaps, **columns, case_weights="weight"))
        assert close(result, entropy(benefit(known), 1, weight(known)))


@pytest.mark.parametrize("kind", ["labels", "scores", *BENEFITS])
def test_set_may_hold_integer_and_float_alpha(people: pl.DataFrame, kind: str) -> None:
    benefit, columns, own = KINDS[kind]
    metric: tf.types.Metric = tf.inequality.generalized_entropy_index
    both = tf.metric_set(*(tf.metric_tweak(metric, f"{alpha!r}", alpha=alpha, **own) for alpha in (1, 1.0)))
    expected = entropy(benefit(people), 1, ones(people))
    assert all(close(value, expected) for value in both(people, **columns)[".estimate"])


def test_index_keeps_precision_with_a_large_mean() -> None:
    data = pl.DataFrame({"pay": [1.0] * 1000, "guess": [1e6 + step / 1000 for step in range(1000)]})
    expected = entropy(of_numbers("amount")(data), 2, ones(data))
    # the index is what is left of a ratio to 1
    assert number(index("amount", 2)(data, **NUMBERS)) == pytest.approx(expected, rel=0, abs=1e-15)


# Rows without benefit

NOBODY = pl.DataFrame({"truth": [1, 1, 1], "estimate": [0, 0, 0], "score": [0.0, 0.0, 0.0]})
SOMEBODY = pl.DataFrame({"truth": [1, 1, 0], "estimate": [0, 1, 1], "score": [0.0, 1.0, 1.0]})


def explained(metric: Any, data: pl.DataFrame, **columns: Any) -> tuple[Any, ...]:
    result = metric(data, **columns, on_undefined="ignore", explain=True)
    return result.select(".estimate", ".status").row(0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_index_without_positive_benefits_is_null(alpha: float) -> None:
    nothing = (None, "no_positive_benefits")
    labels: dict[str, Any] = {"pos_label": 1, "labels": [0, 1]}
    assert explained(index("labels", alpha), NOBODY, **LABELS, **labels) == nothing
    assert explained(index("scores", alpha), NOBODY, **SCORES, **labels) == nothing
    for kind in ("ratio", "amount"):
        assert explained(index(kind, alpha), NOBODY, truth="truth", estimate="estimate") == nothing
    no_variation = explained(tf.inequality.benefit_variation, NOBODY, **LABELS, **labels)
    assert no_variation == nothing


@pytest.mark.parametrize("alpha", ALPHAS)
def test_zero_benefit_gives_infinity_unless_alpha_is_positive(alpha: float) -> None:
    expected = entropy([0.0, 1.0, 2.0], alpha, [1, 1, 1])
    assert (expected == math.inf) == (alpha <= 0)
    for kind, columns in (("labels", LABELS), ("scores", SCORES)):
        value, status = explained(index(kind, alpha), SOMEBODY, **columns)
        assert close(value, expected)
        assert status == ("infinite" if alpha <= 0 else "ok")
    numbers = pl.DataFrame({"pay": [2.0, 2.0, 2.0], "guess": [0.0, 2.0, 4.0]})
    value, status = explained(index("ratio", alpha), numbers, **NUMBERS)
    assert close(value, expected)
    assert status == ("infinite" if alpha <= 0 else "ok")


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("kind", "pay", "guess"),
    [("ratio", 0.0, 1.0), ("ratio", -1.0, -1.0), ("ratio", 1.0, -1.0), ("difference", 5.0, 1.0), ("amount", 1.0, -1.0)],
)
def test_invalid_benefit_gives_null(kind: str, pay: float, guess: float, alpha: float) -> None:
    data = pl.DataFrame({"pay": [2.0, pay], "guess": [3.0, guess]})
    nothing = (None, "no_positive_benefits")
    assert explained(index(kind, alpha), data, **NUMBERS) == nothing
    mean = tf.metric_tweak(tf.inequality.mean_benefit, "mean", benefit=kind)
    assert explained(mean, data, **NUMBERS) == nothing


def test_no_rows_give_null() -> None:
    data = pl.DataFrame({"pay": [None, 1.0], "guess": [1.0, None]})
    assert explained(index("ratio", 1), data, **NUMBERS) == (None, "zero_denominator")


# One metric, which reads what it is given


def test_labels_are_read_where_scores_are_given_too(people: pl.DataFrame) -> None:
    both = tf.metric_set(tf.inequality.theil_index, tf.roc_auc)(people, "truth", "estimate", probs="score")
    of_labels_alone = number(tf.inequality.theil_index(people, **LABELS))
    assert both.filter(pl.col(".metric") == "theil_index")[".estimate"].item() == of_labels_alone
    assert of_labels_alone != number(tf.inequality.theil_index(people, **SCORES))


def test_threshold_makes_labels_that_are_read(people: pl.DataFrame) -> None:
    selected = people.with_columns(estimate=(pl.col("score") >= 0.5).cast(pl.Int64))
    cut = tf.inequality.theil_index(people, "truth", probs="score", threshold=0.5)
    assert number(cut) == number(tf.inequality.theil_index(selected, "truth", "estimate"))


def test_missing_predictions_raise_with_the_column_of_labels(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="theil_index needs the column of predicted labels: `estimate=`"):
        tf.inequality.theil_index(people, "truth")


@pytest.mark.parametrize("kind", KINDS)
def test_alias_and_pickle_keep_what_is_read(people: pl.DataFrame, kind: str) -> None:
    expected = number(index(kind, 1)(people, **KINDS[kind][1]))
    for metric in (index(kind, 1).alias("other"), pickle.loads(pickle.dumps(index(kind, 1)))):  # noqa: S301 - our own
        assert number(metric(people, **KINDS[kind][1])) == expected
    between = tf.inequality.between_group_theil_index("race", **KINDS[kind][2])
    again = pickle.loads(pickle.dumps(between))  # noqa: S301 - our own
    assert number(again(people, **KINDS[kind][1])) == number(between(people, **KINDS[kind][1]))


def test_gates_tests_and_tallies_of_scores_read_scores(people: pl.DataFrame) -> None:
    between = tf.inequality.between_group_theil_index("race")
    expected = number(between(people, **SCORES))
    assert expected != number(between(people, **LABELS))
    assert number(between.compute(between.tally(people, **SCORES))) == expected
    tested = tf.inference.disparity_test(between)(people, **SCORES, times=99)
    assert close(number(tested), expected)
    assert close(number(tf.check(between, below=1)(people, **SCORES)), expected)


# Within and between groups


def group_means(data: pl.DataFrame, benefits: Any, weights: Any) -> tuple[list[float], list[float]]:
    race = data["race"].to_numpy()
    there = [race == name for name in sorted(set(race)) if weights[race == name].sum()]
    means = [float(np.average(benefits[mine], weights=weights[mine])) for mine in there]
    return means, [float(weights[mine].sum()) for mine in there]


def compared(what: str, kind: str, alpha: float) -> tf.types.GroupwiseMetric:
    options = KINDS[kind][2]
    factory = public(f"{what}_group_generalized_entropy_index")
    return factory("race", alpha=alpha, **options)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_between_group_index_replaces_benefits_by_group_means(people: pl.DataFrame, kind: str, alpha: float) -> None:
    benefit, columns, *_ = KINDS[kind]
    mass, options = counting(weighted=True)
    result = by_key(compared("between", kind, alpha)(people, **columns, **options, group_by="fold"), "fold")
    for fold, part in parts(people, "fold").items():
        means, sizes = group_means(part, benefit(part), mass(part))
        assert close(result[fold], entropy(means, alpha, sizes))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_within_group_index_is_total_minus_between(people: pl.DataFrame, kind: str, alpha: float) -> None:
    benefit, columns, *_ = KINDS[kind]
    mass, options = counting(weighted=True)
    three = tf.metric_set(index(kind, alpha), compared("between", kind, alpha), compared("within", kind, alpha))
    result = three(people, **columns, **options)[".estimate"].to_list()
    b, w = benefit(people), mass(people)
    total = entropy(b, alpha, w)
    means, sizes = group_means(people, b, w)
    between = entropy(means, alpha, sizes)
    assert total is not None
    assert between is not None
    mean, own = np.average(b, weights=w), list[float]()
    for size, item, (_, part) in zip(sizes, means, sorted(parts(people, "race").items()), strict=True):
        one = entropy(benefit(part), alpha, mass(part))
        assert one is not None
        own.append(size / w.sum() * (item / mean) ** alpha * one)
    for value, expected in zip(result, (total, between, sum(own)), strict=True):
        assert close(value, expected)
    if math.isfinite(total):
        assert math.isclose(result[0], result[1] + result[2], rel_tol=1e-9)


def test_group_without_benefits_counts_only_between_groups() -> None:
    data = pl.DataFrame({"truth": [1, 1, 0, 1], "estimate": [0, 0, 1, 1], "race": [*"aabb"]})
    for alpha in (0.5, 1, 2, 3):
        total, between, within = tf.metric_set(
            index("labels", alpha), compared("between", "labels", alpha), compared("within", "labels", alpha)
        )(data, **LABELS)[".estimate"]
        assert close(total, entropy([0, 0, 2, 1], alpha, ones(data)))
        assert close(between, entropy([0, 0, 1.5, 1.5], alpha, ones(data)))
        assert close(total, between + within)


def test_named_between_group_indices_equal_the_formula(people: pl.DataFrame) -> None:
    means, sizes = group_means(people, of_labels(people), ones(people))
    second = entropy(means, 2, sizes)
    assert second is not None
    expected = {
        tf.inequality.between_group_theil_index: entropy(means, 1, sizes),
        tf.inequality.between_group_generalized_entropy_index: second,
        tf.inequality.between_group_coefficient_of_variation: math.sqrt(2 * second),
    }
    for factory, value in expected.items():
        assert close(number(factory("race")(people, **LABELS)), value)


# Between the groups' values of any metric


def rate_and_rows(data: pl.DataFrame, measure: str, *, weighted: bool) -> tuple[list[float], list[float]]:
    """The selection rate or the base rate of each race, and what the rows that it reads weigh."""
    known = data.filter(pl.col(measure).is_not_null())
    mass, _ = counting(weighted=weighted)
    return group_means(known, known[measure].to_numpy().astype(float), mass(known))


def gappy(people: pl.DataFrame) -> pl.DataFrame:
    """More truths are missing in race a, more estimates in race b."""
    row = pl.int_range(pl.len())
    return people.with_columns(
        pl.when((row % 2 == 0) | (pl.col("race") != "a")).then("truth").alias("truth"),
        pl.when((row % 3 == 0) | (pl.col("race") != "b")).then("estimate").alias("estimate"),
    )


def spread(name: str, values: list[float], sizes: list[float]) -> float:
    mean = np.average(values, weights=sizes)
    deviation = math.sqrt(np.average((np.array(values) - mean) ** 2, weights=sizes))
    away = np.average(np.abs(np.array(values) - mean), weights=sizes)
    every = {
        "group_mean": mean, "standard_deviation": deviation, "coefficient_of_variation": deviation / mean,
        "mean_absolute_deviation": away,
    }  # fmt: skip
    return float(every[name])


RATES = {"estimate": tf.selection_rate, "truth": tf.base_rate}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("measure", RATES)
@pytest.mark.parametrize(
    "name", ["group_mean", "standard_deviation", "coefficient_of_variation", "mean_absolute_deviation"]
)
def test_weighted_spreads_use_rows_of_the_denominator(
    people: pl.DataFrame, name: str, measure: str, *, weighted: bool
) -> None:
    data = gappy(people)
    _, options = counting(weighted=weighted)
    values, sizes = rate_and_rows(data, measure, weighted=weighted)
    aggregate: Any = public(name)
    of_groups, of_rows = (
        tf.new_groupwise_metric(RATES[measure], "spread", aggregate(weighted=item))("race")(data, **LABELS, **options)
        for item in (False, True)
    )
    assert close(number(of_groups), spread(name, values, [1.0] * 3))
    assert close(number(of_rows), spread(name, values, sizes))
    assert not close(number(of_groups), number(of_rows))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("measure", RATES)
def test_entropy_of_rates_uses_rows_of_the_denominator(
    people: pl.DataFrame, measure: str, alpha: float, *, weighted: bool
) -> None:
    data = gappy(people)
    _, options = counting(weighted=weighted)
    values, sizes = rate_and_rows(data, measure, weighted=weighted)
    made = tf.new_groupwise_metric(RATES[measure], "inequality", tf.aggregates.generalized_entropy(alpha))("race")
    assert close(number(made(data, **LABELS, **options)), entropy(values, alpha, sizes))


def test_weighted_group_mean_of_accuracy_equals_accuracy(people: pl.DataFrame) -> None:
    data = gappy(people)
    mean = tf.new_groupwise_metric(tf.accuracy, "mean", tf.aggregates.group_mean(weighted=True))("race")
    result = tf.metric_set(tf.accuracy, mean)(data, **LABELS, case_weights="weight")[".estimate"]
    known = data.drop_nulls()
    right = (known["truth"] == known["estimate"]).to_numpy()
    expected = float(np.average(right, weights=weight(known)))
    assert close(result[0], expected)
    assert close(result[1], expected)


def test_undefined_groups_have_no_weight_in_entropy_and_mean() -> None:
    data = pl.DataFrame(
        {"truth": [0, 0, 0, 1, 1, 1, 1, 0], "estimate": [1, 1, 1, 1, 0, 1, 1, 0], "race": [*"aaabbccc"]}
    )
    factory = tf.new_groupwise_metric(tf.sens, "inequality", tf.aggregates.generalized_entropy(2))
    result = number(factory("race")(data, **LABELS, on_undefined="ignore"))
    assert close(result, entropy([0.5, 1.0], 2, [2, 3]))
    mean = factory("race", aggregate=tf.aggregates.group_mean(weighted=True))(data, **LABELS, on_undefined="ignore")
    assert close(number(mean), (0.5 * 2 + 1.0 * 3) / 5)


def test_entropy_of_one_zero_rate_is_infinite_and_of_all_zeros_null() -> None:
    data = pl.DataFrame({"truth": [0, 0, 1, 1], "estimate": [0, 0, 1, 1], "race": [*"aabb"]})
    zero = tf.new_groupwise_metric(tf.selection_rate, "inequality", tf.aggregates.generalized_entropy(0))("race")
    assert explained(zero, data, **LABELS) == (math.inf, "infinite")
    never = tf.new_groupwise_metric(tf.error_rate, "inequality", tf.aggregates.generalized_entropy(2))("race")
    assert explained(never, data, **LABELS)[0] is None


# Logarithms of ratios

SELECTED = {"a": (0, 4), "b": (1, 4), "c": (3, 4), "none": (0, 2)}
"""How many of how many are selected."""


def selections(*names: str) -> pl.DataFrame:
    rows = [
        {"race": name, "estimate": int(index < SELECTED[name][0])}
        for name in names
        for index in range(SELECTED[name][1])
    ]
    return pl.DataFrame(rows)


def log_gap(**options: Any) -> Any:
    return tf.new_groupwise_metric(tf.selection_rate, "log_gap", tf.aggregates.log_ratio(**options))("race")


def test_log_ratio_compares_largest_and_smallest() -> None:
    assert close(number(log_gap()(selections("b", "c"), estimate="estimate")), math.log(3))


def test_log_ratio_of_zero_is_infinite_and_of_zeros_is_0() -> None:
    assert explained(log_gap(), selections("a", "c"), estimate="estimate") == (math.inf, "infinite")
    nobody = selections("a", "none")
    assert explained(log_gap(), nobody, estimate="estimate", pos_label=1, labels=[0, 1]) == (0.0, "ok")


def test_log_ratio_to_a_reference_may_be_signed() -> None:
    data = selections("b", "c")
    for to, expected in (("b", math.log(3)), ("c", -math.log(3))):
        assert close(number(log_gap(to=to, signed=True)(data, estimate="estimate")), expected)
        assert close(number(log_gap(to=to)(data, estimate="estimate")), math.log(3))
    nobody = log_gap(to="c", signed=True)(selections("a", "c"), estimate="estimate", on_undefined="ignore")
    assert number(nobody) == -math.inf
    overall = log_gap(to="overall", signed=True)(data, estimate="estimate")
    assert close(number(overall), max((math.log(0.25 / 0.5), math.log(0.75 / 0.5)), key=abs))


def test_log_ratio_of_two_sides_is_signed() -> None:
    made = tf.new_groupwise_metric(tf.selection_rate, "log_gap", tf.aggregates.log_ratio())(tf.privileged(race="c"))
    assert close(number(made(selections("b", "c"), estimate="estimate")), -math.log(3))


def test_signed_log_ratio_without_reference_raises() -> None:
    with pytest.raises(tf.errors.AggregateError, match="a range has no sign"):
        tf.new_groupwise_metric(tf.selection_rate, "log_gap", tf.aggregates.log_ratio(signed=True))("race")


# Differential fairness


def smoothed(labels: Iterable[object], every: list[Any], weights: Any, concentration: float) -> dict[Any, float]:
    there = list(labels)
    total = float(sum(weights))
    added = concentration * sum(w**2 for w in weights) / total
    return {
        label: (sum(w for item, w in zip(there, weights, strict=True) if item == label) + added / len(every))
        / (total + added)
        for label in every
    }


def farthest(data: pl.DataFrame, column: str, concentration: float, mass: Callable[[pl.DataFrame], Any]) -> float:
    """The largest distance of logarithms, over labels and pairs of groups."""
    every = sorted(data[column].unique().drop_nulls().to_list())
    shares = [
        smoothed(part[column], every, mass(part), concentration)
        for part in parts(data.filter(pl.col(column).is_not_null()), "race").values()
    ]

    def apart(one: float, other: float) -> float:
        if one == other:
            return 0.0
        return abs(math.log(one / other)) if one and other else math.inf

    return max(apart(one[label], other[label]) for label in every for one in shares for other in shares)


def outcomes(count: int) -> pl.DataFrame:
    random = np.random.default_rng(count)
    rows = 90
    names = np.array(["low", "middle", "high", "top"][:count])
    race = random.choice(["a", "b", "c"], rows, p=[0.5, 0.35, 0.15])
    lean = np.where(race == "c", 0, random.integers(0, count, rows))
    return pl.DataFrame(
        {
            "truth": names[random.integers(0, count, rows)],
            "estimate": names[lean],
            "race": race,
            "weight": random.integers(1, 5, rows) / 2,
            "fold": random.integers(1, 3, rows),
        }
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("concentration", [0, 0.5, 1, 4])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_differential_fairness_equals_the_largest_log_ratio(
    count: int, concentration: float, *, weighted: bool
) -> None:
    data = outcomes(count)
    mass, options = counting(weighted=weighted)
    if count == 2:
        options["pos_label"] = "low"
    ours = tf.metric_set(
        tf.differential_fairness("race", concentration=concentration),
        tf.distributions.bias_amplification("race", concentration=concentration),
    )
    of_estimate, amplified = ours(data, **LABELS, **options, on_undefined="ignore")[".estimate"].to_list()
    of_truth = number(ours.metrics[0](data, truth="truth", **options, on_undefined="ignore"))
    predicted, true = (farthest(data, column, concentration, mass) for column in ("estimate", "truth"))
    assert (predicted == math.inf) == (concentration == 0)
    assert close(of_estimate, predicted)
    assert close(of_truth, true)
    assert close(amplified, predicted - true)


def test_differential_fairness_by_outer_group() -> None:
    data = outcomes(3)
    ours = tf.metric_set(tf.differential_fairness("race"), tf.distributions.bias_amplification("race"))
    result = ours(data, **LABELS, group_by="fold")
    for fold, part in parts(data, "fold").items():
        predicted, true = (farthest(part, column, 1, ones) for column in ("estimate", "truth"))
        values = result.filter(fold=fold)[".estimate"].to_list()
        assert close(values[0], predicted)
        assert close(values[1], predicted - true)


def test_differential_fairness_names_label_and_groups() -> None:
    data = pl.DataFrame({"truth": [0] * 8, "estimate": [*"xxyzxyyy"], "race": [*"aaaabbbb"]})
    result = tf.differential_fairness("race")(data, estimate="estimate", explain=True)
    share = {"x": (7 / 15, 4 / 15), "y": (4 / 15, 10 / 15), "z": (4 / 15, 1 / 15)}
    worst = max(share, key=lambda label: abs(math.log(share[label][0] / share[label][1])))
    assert result.select(".level", ".group_min", ".group_max").row(0) == (worst, "b", "a")
    assert close(number(result), math.log(4))


def test_differential_fairness_counts_both_of_two_labels() -> None:
    data = pl.DataFrame({"estimate": [1] * 9 + [0] + [1] * 6 + [0] * 4, "race": ["a"] * 10 + ["b"] * 10})
    result = number(tf.differential_fairness("race", concentration=0)(data, estimate="estimate"))
    assert close(result, math.log(0.4 / 0.1))


def test_differential_fairness_of_a_single_group_is_0() -> None:
    data = pl.DataFrame({"truth": [0, 1], "estimate": [1, 1], "race": ["a", "a"]})
    assert number(tf.differential_fairness("race")(data, **LABELS)) == 0.0


def test_infinite_less_infinite_amplification_is_null() -> None:
    data = pl.DataFrame({"truth": [0, 0, 1, 1], "estimate": [1, 1, 0, 0], "race": [*"aabb"]})
    value, status = explained(tf.distributions.bias_amplification("race", concentration=0), data, **LABELS)
    assert (value, status) == (None, "infinite_less_infinite")


# Disparities less disparities


def test_less_subtracts_a_disparity(people: pl.DataFrame) -> None:
    added = tf.new_groupwise_metric(tf.selection_rate, "added", tf.difference(), "zero", less=tf.base_rate)("race")
    predicted, true = (
        [float(part[column].mean()) for part in parts(people, "race").values()]  # pyright: ignore[reportArgumentType] - numbers
        for column in ("estimate", "truth")
    )
    expected = max(predicted) - min(predicted) - (max(true) - min(true))
    result = added(people, **LABELS)
    assert close(number(result), expected)
    assert (added.direction, added.range) == ("zero", (-1, 1))


def test_less_takes_the_worst_of_a_set(people: pl.DataFrame) -> None:
    def gap(rates: list[float]) -> float:
        return max(rates) - min(rates)

    def rate(part: pl.DataFrame, given: dict[str, int], **wanted: int) -> float:
        there = part.filter(**given)
        return len(there.filter(**wanted)) / len(there)

    there = list(parts(people, "race").values())
    tpr = [rate(part, {"truth": 1}, estimate=1) for part in there]
    fpr = [rate(part, {"truth": 0}, estimate=1) for part in there]
    ppv = [rate(part, {"estimate": 1}, truth=1) for part in there]
    npv = [rate(part, {"estimate": 0}, truth=0) for part in there]
    more = tf.new_groupwise_metric(
        tf.metric_set(tf.sens, tf.fall_out), "more", tf.difference(), less=tf.metric_set(tf.ppv, tf.npv)
    )
    result = number(more("race")(people, **LABELS))
    assert close(result, max(gap(tpr), gap(fpr)) - max(gap(ppv), gap(npv)))


def test_less_with_undefined_disparity_is_null() -> None:
    data = pl.DataFrame({"truth": [0, 0, 0, 0], "estimate": [1, 0, 1, 1], "race": [*"aabb"]})
    more = tf.new_groupwise_metric(tf.selection_rate, "more", tf.difference(), less=tf.sens)("race")
    value, status = explained(more, data, **LABELS)
    assert value is None
    assert status == "too_few_groups"


def test_less_rejects_metrics_of_other_columns() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="numeric metrics cannot be combined with others"):
        tf.new_groupwise_metric(tf.selection_rate, "more", tf.difference(), less=tf.mae)
    parity: Any = tf.demographic_parity("race")
    with pytest.raises(tf.errors.ArgumentError, match="needs a metric or a set of ordinary metrics"):
        tf.new_groupwise_metric(tf.selection_rate, "more", tf.difference(), less=parity)


# Comparisons of many groups


@pytest.mark.parametrize("weighted", [False, True])
def test_conditional_demographic_disparity_equals_mean_over_strata(people: pl.DataFrame, *, weighted: bool) -> None:
    mass, options = counting(weighted=weighted)
    made = tf.conditional_demographic_disparity("race")
    e, w, race = people["estimate"].to_numpy(), mass(people), people["race"].to_numpy()
    rejected, selected = (w * (e == 0)).sum(), (w * (e == 1)).sum()
    names = ["a", "b", "c"]
    disparity = [
        (w * ((race == name) & (e == 0))).sum() / rejected - (w * ((race == name) & (e == 1))).sum() / selected
        for name in names
    ]
    sizes = [w[race == name].sum() for name in names]
    result = made.by_group(people, estimate="estimate", **options)
    assert all(map(close, result.sort(".group")[".estimate"].to_list(), map(float, disparity)))
    assert close(number(made(people, estimate="estimate", **options)), float(np.average(disparity, weights=sizes)))


def test_conditional_disparity_is_null_when_all_are_selected() -> None:
    data = pl.DataFrame({"estimate": [1, 1, 1], "race": [*"aab"]})
    result = tf.conditional_demographic_disparity("race")(
        data, estimate="estimate", pos_label=1, labels=[0, 1], on_undefined="ignore"
    )
    assert number(result) is None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_divergence_compares_labels_of_a_group_with_the_rest(count: int, *, weighted: bool) -> None:
    data = outcomes(count)
    mass, options = counting(weighted=weighted)
    if count == 2:
        options["pos_label"] = "low"
    every = sorted(data["truth"].unique())

    def shares(part: pl.DataFrame) -> list[float]:
        w, truth = mass(part), part["truth"].to_numpy()
        return [float(w[truth == label].sum() / w.sum()) for label in every]

    expected = {
        name: sum(
            p * math.log(p / q)
            for p, q in zip(shares(data.filter(race=name)), shares(data.filter(pl.col("race") != name)), strict=True)
        )
        for name in "abc"
    }
    made = tf.distributions.kl_divergence("race")
    result = by_key(made.by_group(data, truth="truth", **options), ".group")
    assert all(close(result[name], value) for name, value in expected.items())
    assert close(number(made(data, truth="truth", **options)), max(expected.values()))


def test_divergence_is_infinite_when_the_rest_lacks_a_label() -> None:
    data = pl.DataFrame({"truth": [0, 1, 1, 1], "race": [*"aabb"]})
    result = tf.distributions.kl_divergence("race").by_group(data, truth="truth", on_undefined="ignore")
    assert by_key(result, ".group") == {"a": math.inf, "b": pytest.approx(math.log(2), rel=1e-12)}


@pytest.mark.parametrize("weighted", [False, True])
def test_class_imbalance_equals_difference_of_row_shares(people: pl.DataFrame, *, weighted: bool) -> None:
    mass, options = counting(weighted=weighted)
    w, race = mass(people), people["race"].to_numpy()
    shares = {name: float(w[race == name].sum() / w.sum()) for name in "abc"}
    result = number(tf.counts.class_imbalance("race")(people, **LABELS, **options))
    assert close(result, max(shares.values()) - min(shares.values()))
    sided = number(tf.counts.class_imbalance(tf.privileged(race="a"))(people, **LABELS, **options))
    assert close(sided, shares["b"] + shares["c"] - shares["a"])


# Averages of two rates


def rates(data: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """False and true positive rate of each race."""
    counts = data.group_by("race").agg(
        pl.col("estimate").filter(truth=0).mean().alias("fpr"), pl.col("estimate").filter(truth=1).mean().alias("tpr")
    )
    return {race: (fpr, tpr) for race, fpr, tpr in counts.rows()}


def test_average_odds_difference_to_a_reference(people: pl.DataFrame) -> None:
    mean = {race: (fpr + tpr) / 2 for race, (fpr, tpr) in rates(people).items()}
    for to in "abc":
        expected = max((value - mean[to] for race, value in mean.items() if race != to), key=abs)
        made = tf.average_odds_difference("race", aggregate=tf.difference(to=to, signed=True))
        assert close(number(made(people, **LABELS)), expected)


def test_odds_differences_of_two_sides_are_unprivileged_minus_privileged(people: pl.DataFrame) -> None:
    two = people.with_columns(race=pl.when(race="a").then(pl.lit("a")).otherwise(pl.lit("other")))
    (f0, t0), (f1, t1) = (rates(two)[race] for race in ("a", "other"))
    sides = tf.privileged(race="a")
    result = tf.metric_set(
        tf.average_odds_difference(sides), tf.average_abs_odds_difference(sides), tf.equalized_odds(sides)
    )(people, **LABELS)[".estimate"].to_list()
    expected = [((f1 - f0) + (t1 - t0)) / 2, (abs(f1 - f0) + abs(t1 - t0)) / 2, max(abs(f1 - f0), abs(t1 - t0))]
    assert all(map(close, result, expected))


def test_average_predictive_value_difference_of_two_sides(people: pl.DataFrame) -> None:
    def mean(part: pl.DataFrame) -> float:
        precision, omission = (float(np.mean(part.filter(estimate=value)["truth"].to_numpy())) for value in (1, 0))
        return (precision + omission) / 2

    sides = tf.privileged(race="a")
    expected = mean(people.filter(pl.col("race") != "a")) - mean(people.filter(race="a"))
    assert close(number(tf.counts.average_predictive_value_difference(sides)(people, **LABELS)), expected)


@pytest.mark.parametrize("name", ["average_odds_difference", "average_predictive_value_difference"])
def test_signed_averages_need_two_sides(name: str) -> None:
    with pytest.raises(tf.errors.AggregateError, match="a range has no sign; compare two sides"):
        public(name)("race")


def test_average_odds_difference_of_0_with_unequal_odds() -> None:
    table = {("a", 1, 1): 8, ("a", 1, 0): 2, ("a", 0, 1): 2, ("a", 0, 0): 8}
    table |= {("b", 1, 1): 4, ("b", 1, 0): 6, ("b", 0, 1): 6, ("b", 0, 0): 4}
    rows = [key for key, count in table.items() for _ in range(count)]
    data = pl.DataFrame(rows, schema=["race", "truth", "estimate"], orient="row")
    sides = tf.privileged(race="a")
    signed, absolute, equalized = tf.metric_set(
        tf.average_odds_difference(sides), tf.average_abs_odds_difference(sides), tf.equalized_odds(sides)
    )(data, **LABELS)[".estimate"]
    assert signed == 0.0
    assert absolute == pytest.approx(0.4, rel=1e-12)
    assert equalized == pytest.approx(0.4, rel=1e-12)


# Bad input

NO_ALPHA: list[Any] = ["x", math.nan, math.inf, True, None]


@pytest.mark.parametrize("alpha", NO_ALPHA)
def test_bad_alpha_raises(alpha: Any) -> None:
    for make in (
        lambda: tf.inequality.between_group_generalized_entropy_index("race", alpha=alpha),
        lambda: tf.inequality.within_group_generalized_entropy_index("race", alpha=alpha),
        lambda: tf.metric_tweak(tf.inequality.generalized_entropy_index, "index", alpha=alpha),
    ):
        with pytest.raises(tf.errors.ArgumentError, match="`alpha` is a finite number"):
            make()


STARTS = ["generalized_entropy_index", "inequality_within"]


@pytest.mark.parametrize("alpha", [math.nan, math.inf, True])
@pytest.mark.parametrize("start", STARTS)
def test_bad_alpha_of_scores_and_numbers_raises_in_calls(people: pl.DataFrame, start: str, alpha: Any) -> None:
    by_start: list[tuple[dict[str, Any], Any]] = [({}, SCORES), ({"benefit": "ratio"}, NUMBERS)]
    for own, columns in by_start:
        with pytest.raises(tf.errors.ArgumentError, match="`alpha` is a finite number"):
            tf.metric_tweak(public(start), "index", alpha=alpha, **own)(people, **columns)


@pytest.mark.parametrize("alpha", [math.nan, math.inf, True, "x", None])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("own", [{}, {"benefit": "ratio"}])
def test_bad_alpha_of_scores_and_numbers_raises_in_metric_tweak(start: str, own: dict[str, Any], alpha: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match="`alpha` is a finite number"):
        tf.metric_tweak(public(start), "index", alpha=alpha, **own)


NO_BENEFIT: dict[str, Any] = {"benefit": "ratios"}


@pytest.mark.parametrize("start", ["mean_benefit", *STARTS])
def test_unknown_benefit_raises_in_calls(people: pl.DataFrame, start: str) -> None:
    metric: tf.types.Metric = public(start)
    with pytest.raises(tf.errors.ArgumentError, match=r"`benefit=` must be .*, not 'ratios'\. Did you mean 'ratio'\?"):
        tf.metric_tweak(metric, "index", **NO_BENEFIT)(people, **NUMBERS)


@pytest.mark.parametrize("start", ["mean_benefit", *STARTS])
def test_unknown_benefit_raises_in_metric_tweak(start: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"`benefit=` must be .*, not 'ratios'"):
        tf.metric_tweak(public(start), "index", **NO_BENEFIT)


@pytest.mark.parametrize("concentration", [-1, math.nan, math.inf, "x", True])
def test_bad_concentration_raises(concentration: Any) -> None:
    for factory in (tf.differential_fairness, tf.distributions.bias_amplification):
        with pytest.raises(tf.errors.ArgumentError, match="`concentration` is a number from 0"):
            factory("race", concentration=concentration)


def test_unknown_options_raise_with_known_ones() -> None:
    with pytest.raises(tf.errors.ArgumentError) as caught:
        tf.differential_fairness("race", concentraton=1)
    assert "Did you mean 'concentration'?" in str(caught.value)
    with pytest.raises(tf.errors.ArgumentError, match="Unknown option of demographic_parity 'alpha'"):
        tf.demographic_parity("race", alpha=1)
    with pytest.raises(
        tf.errors.ArgumentError,
        match="Known: 'benefit', 'alpha', 'aggregate', 'min_n', 'min_share', 'unknown', 'unknown_values', 'name'",
    ):
        tf.inequality.between_group_generalized_entropy_index("race", beta=1)
    with pytest.raises(
        tf.errors.ArgumentError,
        match="Known: 'benefit', 'aggregate', 'min_n', 'min_share', 'unknown', 'unknown_values', 'name'",
    ):
        tf.inequality.between_group_theil_index("race", alpha=2)
    with pytest.raises(tf.errors.ArgumentError, match="'concentration'"):
        tf.differential_fairness("race", aggregate=tf.difference(), alpha=1)


def test_options_reach_a_given_aggregate(people: pl.DataFrame) -> None:
    made = tf.differential_fairness("race", aggregate=tf.aggregates.generalized_entropy(), alpha=1, concentration=0)
    values, sizes = rate_and_rows(people, "estimate", weighted=False)
    either = [entropy(shares, 1, sizes) for shares in (values, [1 - value for value in values])]
    assert close(number(made(people, **LABELS)), max(value for value in either if value is not None))


def test_inequality_of_negative_metrics_raises() -> None:
    for aggregate in (
        tf.aggregates.generalized_entropy(),
        tf.aggregates.log_ratio(),
        tf.aggregates.coefficient_of_variation(weighted=True),
    ):
        with pytest.raises(tf.errors.AggregateError, match="is not defined for mcc, which can be negative"):
            tf.new_groupwise_metric(tf.mcc, "spread", aggregate)("race")


# Formulas that read other groups and metrics

TALL = pl.DataFrame({"t": [1, 1, 1, 0, 0, 0, 0, 1], "e": [1, 0, 1, 1, 0, 1, 0, 1], "g": list("aabbbbbb")})


accuracy = tf.accuracy


@tf.class_metric(direction="zero", range=(-1, 1))
def gain(accuracy: Number, overall_accuracy: Number, rest_accuracy: Number) -> Number:
    return accuracy - overall_accuracy + 0 * rest_accuracy


@tf.class_metric()
def plain(accuracy: Number) -> Number:
    return accuracy


def test_formula_may_read_overall_and_rest_of_another_metric() -> None:
    rows = tf.new_groupwise_metric(gain, "it", tf.group_maximum())("g").by_group(TALL, "t", "e")
    assert rows[".estimate"].to_list() == [pytest.approx(0.5 - 5 / 8), pytest.approx(4 / 6 - 5 / 8)]
    assert plain(TALL, "t", "e")[".estimate"].to_list() == [5 / 8]


def test_mean_of_opposite_infinities_is_null() -> None:
    data = pl.DataFrame({"t": [1] * 8, "e": [1] * 4 + [0] * 4, "g": list("aaaabbbb")})
    both = tf.metric_set(tf.counts.smoothed_selection_rate, tf.counts.smoothed_rejection_rate)
    signed = tf.new_groupwise_metric(both, "signed", tf.aggregates.log_ratio(to="b", signed=True, across="mean"))
    result = signed("g", concentration=0)(data, "t", "e", labels=[0, 1], explain=True)
    assert result.select(".estimate", ".status").row(0) == (None, "infinite_less_infinite")


@pytest.mark.parametrize("alpha", [1e-15, 1 + 1e-14, 1e-12, 1 + 1e-12])
def test_alpha_next_to_0_or_1_equals_the_limit(people: pl.DataFrame, alpha: float) -> None:
    near, limit = (
        tf.metric_tweak(tf.inequality.generalized_entropy_index, "index", alpha=item) for item in (alpha, round(alpha))
    )
    assert near(people, **LABELS)[".estimate"].equals(limit(people, **LABELS)[".estimate"])


def test_overall_of_a_statistic_that_is_no_sum_raises() -> None:
    def ranked(overall_rank: Number) -> Number:
        return overall_rank.sum(axis=-1)

    with pytest.raises(tf.errors.ArgumentError, match="'overall_rank' is not available: only sums over rows"):
        tf.class_metric()(ranked)
    with pytest.raises(tf.errors.ArgumentError, match="sum over the labels, which are the last axis"):
        tf.class_metric(over_levels=True)(lambda tp: tp)
