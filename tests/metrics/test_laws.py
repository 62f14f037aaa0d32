"""Laws of every metric on random data: equality with plain arithmetic, values in range, and invariances.

The arithmetic is that of the module `arithmetic`.
"""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import polars as pl
import pytest
from arithmetic import (
    ALL_LABELS,
    BESIDE_ALL,
    BESIDE_OTHERS,
    DEFINITIONS,
    DISTANCES,
    OF_ROWS,
    ONE_LABEL,
    SMOOTHED,
    SYNONYMS,
    alone,
    disparity,
    made_of,
    used,
    value,
)
from conftest import examples, records
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from polars.testing import assert_frame_equal
from public_names import public

import tidyfair as tf
from tidyfair import metrics
from tidyfair.calling.metric_sets import comparison
from tidyfair.metrics import fairness, ranking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from arithmetic import Row

    from tidyfair.audits.reference_tables import GroupComparison
    from tidyfair.specs.formulas import Number, Rate

    Member: TypeAlias = tf.types.Metric | tf.types.GroupwiseMetric

MODULES: list[ModuleType] = [
    importlib.import_module(f"{metrics.__name__}.{found.name}") for found in pkgutil.iter_modules(metrics.__path__)
]
METRICS: dict[str, tuple[tf.types.Metric, ModuleType]] = {
    name: (each, module)
    for module in MODULES
    for name in getattr(module, "__all__", ())
    if isinstance(each := getattr(module, name), tf.types.Metric)
}
FACTORIES: dict[str, tf.types.GroupwiseFactory] = {
    name: each
    for module in (fairness, ranking)
    for name in module.__all__
    if isinstance(each := getattr(module, name), tf.types.GroupwiseFactory)
}
COMPARED = {
    "difference ratio": (
        tf.accuracy, tf.base_rate, tf.error_rate, tf.false_discovery_rate, tf.false_negative_rate,
        tf.false_omission_rate, tf.false_positive_rate, tf.negative_predictive_value, tf.positive_predictive_value,
        tf.precision, tf.recall, tf.selection_rate, tf.sensitivity, tf.specificity, tf.true_negative_rate,
        tf.true_positive_rate,
    ),
    "group_minimum": (tf.accuracy, tf.bal_accuracy, tf.f_meas, tf.precision, tf.recall),
    "group_maximum": (tf.error_rate,),
}  # fmt: skip
"""Metrics that compare themselves, by the methods that do."""
for ways, compared in COMPARED.items():
    FACTORIES.update({f"{metric.name}_{way}": comparison(metric, way) for way in ways.split() for metric in compared})

CLASS: list[tf.types.Metric] = [metric for metric, _ in METRICS.values() if metric.kind == "class"]
TWEAKS: list[tf.types.Metric] = [
    tf.metric_tweak(tf.kap, "kap_linear", weighting="linear"),
    tf.metric_tweak(tf.kap, "kap_quadratic", weighting="quadratic"),
    tf.metric_tweak(tf.f_meas, "f2", beta=2),
    tf.metric_tweak(tf.ppv, "ppv_at_0.25", prevalence=0.25),
    tf.metric_tweak(tf.npv, "npv_at_0.25", prevalence=0.25),
    tf.metric_tweak(tf.inequality.generalized_entropy_index, "entropy_of_half", alpha=0.5),
    tf.metric_tweak(tf.inequality.generalized_entropy_index, "entropy_of_less_than_nothing", alpha=-0.5),
    tf.metric_tweak(tf.counts.smoothed_base_rate, "base_rate_smoothed_by_3", concentration=3),
]
BY_LABEL = {name for name, (_, given) in DISTANCES.items() if given}
"""Ungrouped, they have a row for each label that is given and do not say which, so that only groups are asked for."""
FROM_ALL = {"average_odds_difference", "average_predictive_value_difference"}
"""Signed; of two groups as far away on either side either would do, so that they go without a sign here."""


def all_of_them() -> tf.types.MetricSet:
    """Every metric of labels."""

    def members() -> Iterator[Member]:
        yield from (item for item in (*CLASS, *TWEAKS) if item.name not in BY_LABEL)
        for factory in FACTORIES.values():
            if factory.metrics[0].kind == "class":
                aggregate = tf.difference(to="overall", signed=False) if factory.name in FROM_ALL else None
                yield factory("group", aggregate=aggregate)

    return tf.metric_set(*members())


def names_in(member: Member) -> set[str]:
    """The metrics that it is made of."""
    return {member.name} if isinstance(member, tf.types.Metric) else set(made_of(member.name))


EVERY = all_of_them()
UNSMOOTHED = tf.metric_set(*(member for member in EVERY if SMOOTHED.keys().isdisjoint(names_in(member))))

COUNTS = {
    "instances", "positives", "negatives", "predicted_positives", "predicted_negatives",
    "true_positives", "false_positives", "false_negatives", "true_negatives",
}  # fmt: skip
"""The exceptions to scale-freedom: what counts case weights grows with them."""

# Data, and calls on them


@dataclass(frozen=True)
class Case:
    rows: list[Row]
    labels: list[str]
    weights: Literal["none", "whole", "broken"]
    options: dict[str, Any]

    def but(self, **options: object) -> Case:
        return replace(self, options={**self.options, **options})

    @property
    def frame(self) -> pl.DataFrame:
        weight = pl.Float64 if self.weights == "broken" else pl.Int64
        text = dict.fromkeys(("truth", "estimate", "group"), pl.String)
        return pl.DataFrame(self.rows, schema={**text, "outer": pl.Int64, "weight": weight})

    @property
    def counting(self) -> dict[str, Any]:
        weights = None if self.weights == "none" else "weight"
        return {"case_weights": weights, **{name: self.options[name] for name in self.options.keys() & COUNTING}}

    @property
    def reading(self) -> dict[str, Any]:
        chosen = {name: self.options[name] for name in self.options.keys() - COUNTING}
        return {"labels": self.labels, "on_undefined": "ignore", **chosen}

    def call(self, every: tf.types.MetricSet, frame: pl.DataFrame | None = None) -> pl.DataFrame:
        return every(self.frame if frame is None else frame, "truth", "estimate", **self.counting, **self.reading)


COUNTING = {"group_by", "case_weights", "frequency_weights"}

WEIGHTS: dict[str, st.SearchStrategy[float]] = {
    "none": st.just(1),
    "whole": st.integers(0, 3),
    "broken": st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0, 2.5]),
}


def weighs_something(rows: Sequence[Row]) -> bool:
    """Weights that are all zero are an error."""
    return not rows or any(row["weight"] > 0 for row in rows)


@st.composite
def cases(
    draw: st.DrawFn, *, most_labels: int = 4, weights: Sequence[str] = tuple(WEIGHTS), zeros: bool = True
) -> Case:
    labels = ["no", "yes", "maybe", "never"][: draw(st.integers(2, most_labels))]
    gaps = [None] if draw(st.booleans()) else []
    groups = draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", None]]))
    kind: Any = draw(st.sampled_from(weights))
    row: st.SearchStrategy[Any] = st.fixed_dictionaries(
        {
            "truth": st.sampled_from([*labels, *gaps]),
            "estimate": st.sampled_from([*labels, *gaps]),
            "group": st.sampled_from(groups),
            "outer": st.sampled_from([1, 2, None]),
            "weight": WEIGHTS[kind].filter(lambda weight: zeros or weight > 0),
        }
    )
    fewest = draw(st.sampled_from([0, 0, 12]))  # left alone, lists are mostly short
    rows: list[Row] = draw(st.lists(row, min_size=fewest, max_size=30).filter(weighs_something))
    # one label against the rest, or all labels in one of the ways there are
    more = [None, "one_vs_rest"] if len(labels) > 2 else []
    all_labels = [{"estimator": item} for item in ("macro", "macro_weighted", "micro", *more)]
    reading = draw(st.sampled_from([*({"pos_label": label} for label in labels), *all_labels]))
    return Case(rows, labels, kind, {**reading, "group_by": draw(st.sampled_from([None, "outer"]))})


LAW = settings(
    deadline=None,
    max_examples=examples(20),
    database=None,
    phases=[Phase.generate, Phase.shrink],  # explaining a failure takes longer than finding it
    suppress_health_check=[HealthCheck.too_slow],
)

Key: TypeAlias = tuple[object, ...]


def numbers(results: pl.DataFrame) -> dict[Key, float | None]:
    """`.estimate` by outer group, `.metric` and `.by`, in the order of the rows."""
    keys = [name for name in ("outer", ".metric", ".by") if name in results.columns]
    return dict(zip(results.select(keys).rows(), results[".estimate"].to_list(), strict=True))


def close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def assert_same(result: dict[Key, float | None], expected: dict[Key, float | None]) -> None:
    assert list(result) == list(expected)
    assert not {key: (result[key], expected[key]) for key in result if not close(result[key], expected[key])}


def assert_same_frames(result: pl.DataFrame, expected: pl.DataFrame, case: Case) -> None:
    """The same to the last bit, unless fractions were summed in another order."""
    assert_frame_equal(result, expected, check_exact=case.weights != "broken", rel_tol=1e-9, abs_tol=1e-12)


SHARES = {"detection_prevalence", "base_rate", "demographic_disparity", "mean_benefit", *SMOOTHED}


def estimator_of(member: Member, options: dict[str, Any]) -> str:
    if not DISTANCES.keys().isdisjoint(names_in(member)):
        return "multiclass"
    if "pos_label" in options:
        return "binary"
    asked = options["estimator"]
    if isinstance(member, tf.types.Metric):
        return "macro" if asked in {None, "one_vs_rest"} else asked
    # an average of shares over labels says nothing: it is 1/K in every group
    shares = SHARES & {SYNONYMS.get(item, item) for item in made_of(member.name)}
    return asked or ("one_vs_rest" if shares else "macro")


def by_hand(every: tf.types.MetricSet, case: Case) -> dict[Key, float | None]:
    options, outer = case.options, case.options["group_by"] is not None
    read, label_count = case.labels, len(case.labels)
    if "pos_label" in options:
        read, label_count = [options["pos_label"]], 2
    places = sorted({row["outer"] for row in case.rows}, key=lambda item: (item is None, item)) if outer else [None]
    result: dict[Key, float | None] = {}
    for member in every:
        plain = isinstance(member, tf.types.Metric)
        for index in places:
            rows = [row for row in case.rows if not outer or row["outer"] == index]
            names = [member.name] if plain else made_of(member.name)
            # people of unknown group are no part of comparisons
            compared = rows if plain else [row for row in rows if row["group"] is not None]
            gaps = any(len(used(SYNONYMS.get(name, name), compared)) < len(compared) for name in names)
            estimator = estimator_of(member, options)
            labels = case.labels if estimator == "multiclass" else read
            if gaps and not options.get("na_rm", True):
                number = None
            elif plain:
                number = value(member.name, alone(rows), labels, estimator, label_count)
            else:
                strict = options.get("on_undefined") == "null"
                number = disparity(member.name, rows, labels, estimator, label_count, undefined_is_null=strict)
            key = (*([index] if outer else []), member.name, None if plain else "group")
            result[key] = None if number is None else float(number)
    return result


def assert_equals_reference(every: tf.types.MetricSet, case: Case) -> None:
    assert_same(numbers(case.call(every)), by_hand(every, case))


# Laws


def test_plain_arithmetic_covers_every_metric() -> None:
    known = {*ONE_LABEL, *SMOOTHED, *BESIDE_ALL, *ALL_LABELS, *OF_ROWS, *DISTANCES, *SYNONYMS}
    known -= {item.name for item in TWEAKS}
    assert {metric.name for metric in CLASS} == known
    assert {metric.name for metric in tf.get_metrics("class")} == known - SYNONYMS.keys() - BESIDE_OTHERS
    assert DEFINITIONS.keys() <= FACTORIES.keys()


@settings(LAW, max_examples=examples(60))
@given(cases(), st.sampled_from([{}, {"on_undefined": "null"}, {"na_rm": False}]))
def test_every_metric_equals_plain_arithmetic(case: Case, undefined_or_missing: dict[str, object]) -> None:
    assert_equals_reference(EVERY, case.but(**undefined_or_missing))


def corner(*pairs: tuple[str | None, str | None], labels: int, weight: float | None = None, **options: str) -> Case:
    rows: list[Row] = [
        {"truth": t, "estimate": e, "group": "a", "outer": 1, "weight": 1 if weight is None else weight}
        for t, e in pairs
    ]
    names = ["no", "yes", "maybe", "never"][:labels]
    return Case(rows, names, "none" if weight is None else "broken", {**options, "group_by": None})


CORNERS = {
    "no rows": corner(labels=2, pos_label="yes"),
    "more false negatives than false positives": corner(
        ("no", "no"), ("no", "yes"), ("no", "yes"), ("yes", "no"), labels=2, pos_label="no"
    ),
    "a label two steps away, read against the rest": corner(
        ("no", "no"), ("no", "maybe"), ("maybe", "no"), ("yes", "maybe"), labels=3, pos_label="maybe"
    ),
    "truth known where the estimate is not": corner(
        ("no", None), ("yes", "no"), ("no", "no"), labels=3, estimator="macro_weighted"
    ),
    "an average of pooled counts, asked for without missing values": corner(
        ("no", "no"), ("yes", "no"), labels=3, estimator="micro"
    ).but(na_rm=False),
    "agreement on a single label, whose weight is no binary fraction": corner(
        ("never", "never"), labels=4, weight=0.1, estimator="macro"
    ),
}


@pytest.mark.parametrize("name", CORNERS)
def test_corner_cases_equal_plain_arithmetic(name: str) -> None:
    assert_equals_reference(EVERY, CORNERS[name])


@LAW
@given(cases())
def test_values_are_in_range_or_null(case: Case) -> None:
    ranges = {member.name: member.range for member in EVERY}
    for (*_, name, _), number in numbers(case.call(EVERY)).items():
        low, high = ranges[str(name)]
        assert number is None or low - 1e-12 <= number <= high + 1e-12, name
        assert number is None or math.isfinite(number) or number in (low, high), name


@LAW
@given(cases(weights=["whole", "broken"]), st.sampled_from([0.1, 3, 1e6]))
def test_weight_scale_changes_only_counts(case: Case, factor: float) -> None:
    once = numbers(case.call(EVERY))
    scaled = numbers(case.call(EVERY, case.frame.with_columns(pl.col("weight") * factor)))
    assert_same(
        scaled, {key: number * factor if number and key[-2] in COUNTS else number for key, number in once.items()}
    )


@LAW
@given(cases(), st.integers(0, 30))
def test_tallies_of_parts_equal_the_whole(case: Case, cut: int) -> None:
    parts = case.frame[:cut], case.frame[cut:]
    first, second = (EVERY.tally(part, "truth", "estimate", **case.counting) for part in parts)
    assert_same_frames(EVERY.compute(first + second, **case.reading), case.call(EVERY), case)


@LAW
@given(cases(), st.data())
def test_row_and_column_order_do_not_matter(case: Case, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(case.rows))))
    columns = data.draw(st.permutations(case.frame.columns))
    assert_same(numbers(case.call(EVERY, case.frame[rows].select(columns))), numbers(case.call(EVERY)))


@LAW
@given(cases())
def test_group_order_does_not_matter(case: Case) -> None:
    reversed_names = pl.col("group").replace({"a": "z", "b": "y", "c": "x"})
    assert_same(numbers(case.call(EVERY, case.frame.with_columns(reversed_names))), numbers(case.call(EVERY)))


@LAW
@given(cases())
def test_group_by_equals_filtering(case: Case) -> None:
    grouped = case.but(group_by="outer").call(EVERY)
    for index in {row["outer"] for row in case.rows}:
        if weighs_something([row for row in case.rows if row["outer"] == index]):
            here = pl.col("outer").eq_missing(index)
            alone = case.but(group_by=None).call(EVERY, case.frame.filter(here))
            assert_same(numbers(grouped.filter(here).drop("outer")), numbers(alone))


@LAW
@given(cases(weights=["whole"], zeros=False))  # rows of weight zero would leave their group behind
def test_integer_weights_equal_repeated_rows(case: Case) -> None:
    repeated = case.frame[[index for index, row in enumerate(case.rows) for _ in range(int(row["weight"]))]]
    one_by_one = case.but(case_weights=None)
    counted = case.but(case_weights=None, frequency_weights="weight").call(EVERY)
    assert_same_frames(one_by_one.call(EVERY, repeated), counted, case)
    # a sampled row that represents three people is still one row to smooth
    assert_same_frames(one_by_one.call(UNSMOOTHED, repeated), case.call(UNSMOOTHED), case)


@LAW
@given(cases(weights=["none"]))
def test_unit_weights_equal_no_weights(case: Case) -> None:
    assert_same_frames(case.but(case_weights="weight").call(EVERY), case.call(EVERY), case)


@LAW
@given(cases(most_labels=2), st.sampled_from(["no", "yes"]))
def test_one_vs_rest_of_two_labels_equals_binary(case: Case, event: str) -> None:
    against_the_rest = case.but(pos_label=event, estimator="one_vs_rest").call(EVERY)
    assert_same_frames(against_the_rest, case.but(pos_label=event, estimator="binary").call(EVERY), case)


EXCHANGED = {
    "sens": "spec", "miss_rate": "fall_out", "precision": "negative_predictive_value", "ppv": "npv",
    "false_discovery_rate": "false_omission_rate", "positives": "negatives",
    "predicted_positives": "predicted_negatives", "true_positives": "true_negatives",
    "false_positives": "false_negatives", "true_positive_share": "true_negative_share",
    "false_positive_share": "false_negative_share",
    "smoothed_selection_rate": "smoothed_rejection_rate", "smoothed_base_rate": "smoothed_negative_rate",
    "equal_opportunity": "true_negative_rate_difference", "predictive_equality": "false_negative_rate_difference",
} | {
    name: name
    for name in (
        "accuracy", "error_rate", "bal_accuracy", "j_index", "markedness", "roc_dist", "sedi", "mcc", "kap",
        "kap_linear", "diagnostic_odds_ratio", "instances", "demographic_parity", "base_rate_difference",
        "equalized_odds", "overall_accuracy_equality", "conditional_use_accuracy_equality",
        "divergence_from_rest", "share_of_rows", "differential_fairness",
        "bias_amplification", "kl_divergence", "class_imbalance",
        "distance_to_all", "independence", "separation", "sufficiency", "mutual_information",
    )
}  # fmt: skip
"""What a metric is called when the other label is the event."""


@LAW
@given(cases(most_labels=2))
def test_swapping_the_event_swaps_paired_metrics(case: Case) -> None:
    one, other = (numbers(case.but(pos_label=label, estimator=None).call(EVERY)) for label in case.labels)
    pairs = {key: (*key[:-2], EXCHANGED[str(key[-2])], key[-1]) for key in one if key[-2] in EXCHANGED}
    assert_same({key: one[key] for key in pairs}, {key: other[there] for key, there in pairs.items()})
    assert_same({key: other[key] for key in pairs}, {key: one[there] for key, there in pairs.items()})


@LAW
@given(cases(), st.sampled_from([0.5, 1, 2, -0.5]), st.booleans())
def test_inequality_splits_into_within_and_between_groups(
    case: Case,
    alpha: float,
    pooled: bool,  # noqa: FBT001 - drawn
) -> None:
    parts = (
        tf.inequality.within_group_generalized_entropy_index("group", alpha=alpha, unknown="group", name="within"),
        tf.inequality.between_group_generalized_entropy_index("group", alpha=alpha, unknown="group", name="between"),
    )
    every = tf.metric_set(tf.metric_tweak(tf.inequality.generalized_entropy_index, "all", alpha=alpha), *parts)
    # averages over labels do not add up
    reading = {"estimator": "micro", "pos_label": None} if pooled else {"estimator": None, "pos_label": case.labels[0]}
    result = numbers(case.but(group_by="outer", **reading).call(every))
    for index in {outer for outer, *_ in result}:
        of_all, of_groups = result[index, "all", None], [result[index, part.name, "group"] for part in parts]
        finite = [item for item in (of_all, *of_groups) if item is not None and math.isfinite(item)]
        assert len(finite) < 3 or close(sum(finite[1:]), of_all), (index, of_all, of_groups)


# Reference values

YARDSTICK = {record["metric"] for record in records("yardstick")}

PLAIN: dict[str, float] = {
    "base_rate": 9 / 15,
    "error_rate": 5 / 15,
    "coverage": 15 / 15,
    "false_discovery_rate": 2 / 8,
    "false_omission_rate": 3 / 7,
    "negative_predictive_value": 4 / 7,
    "threat_score": 6 / 11,
    "lift": (6 / 8) / (9 / 15),
    "positive_likelihood_ratio": (6 / 9) / (2 / 6),
    "negative_likelihood_ratio": (3 / 9) / (4 / 6),
    "diagnostic_odds_ratio": (6 * 4) / (2 * 3),
    "false_negatives_per_false_positive": 3 / 2,
    "net_benefit": (6 - 2) / 15,
    "net_benefit_of_treating_all": (9 - 6) / 15,
    "net_benefit_of_untreated": (4 - 3) / 15,
    "net_benefit_at_prevalence": (6 - 2) / 15,
    "standardized_net_benefit": (6 - 2) / 9,
    "average_odds": (2 / 6 + 6 / 9) / 2,
    "average_predictive_value": (6 / 8 + 3 / 7) / 2,
    "smoothed_selection_rate": 8.5 / 16,
    "smoothed_rejection_rate": 7.5 / 16,
    "smoothed_base_rate": 9.5 / 16,
    "smoothed_negative_rate": 6.5 / 16,
    # 10 get 1, 2 get 2 and 3 get nothing, 14 in all
    "mean_benefit": 14 / 15,
    "generalized_entropy_index": (18 / 15 / (14 / 15) ** 2 - 1) / 2,
    "theil_index": 2 * 2 * math.log(2) / 14 - math.log(14 / 15),
    "mean_log_deviation": math.inf,
    "benefit_variation": math.sqrt(18 / 15 / (14 / 15) ** 2 - 1),
    "true_positive_share": 6 / 15,
    "false_positive_share": 2 / 15,
    "false_negative_share": 3 / 15,
    "true_negative_share": 4 / 15,
    "instances": 15,
    "positives": 9,
    "negatives": 6,
    "predicted_positives": 8,
    "predicted_negatives": 7,
    "true_positives": 6,
    "false_positives": 2,
    "false_negatives": 3,
    "true_negatives": 4,
}
"""What yardstick does not have, on 6 true positives, 2 false positives, 3 false negatives and 4 true negatives."""


def test_docstring_examples_of_metrics_run() -> None:
    for name, (metric, module) in METRICS.items():
        text, names = metric.__doc__ or "", dict(vars(module))
        example = doctest.DocTestParser().get_doctest(text, names, name, module.__file__, None)
        assert example.examples, name
        assert not doctest.DocTestRunner().run(example).failed, name


def test_every_metric_has_a_reference_value() -> None:
    # those of scores and of numbers have theirs in test_probability and test_regression
    of_groups = {item for factory in PLAIN_OF_GROUPS for item in made_of(factory)}
    names = {metric.name: {metric.name, (metric.base or metric).name} for metric in CLASS}
    assert [name for name, both in names.items() if not both & {*YARDSTICK, *PLAIN, *of_groups}] == []


@pytest.mark.parametrize("curve", [tf.roc_curve, tf.pr_curve, tf.gain_curve, tf.lift_curve], ids=repr)
def test_docstring_example_of_curve_runs(curve: tf.types.Curve) -> None:
    example = doctest.DocTestParser().get_doctest(
        curve.__doc__ or "", {name: public(name) for name in tf.__all__}, curve.name, None, None
    )
    assert example.examples
    assert not doctest.DocTestRunner().run(example).failed


def test_metrics_on_plain_numbers() -> None:
    truth, estimate = [1] * 6 + [0] * 2 + [1] * 3 + [0] * 4, [1] * 6 + [1] * 2 + [0] * 3 + [0] * 4
    result = tf.metric_set(*(METRICS[name][0] for name in PLAIN))(pl.DataFrame({"t": truth, "e": estimate}), "t", "e")
    assert_same(numbers(result), {(name, None): number for name, number in PLAIN.items()})


PLAIN_OF_GROUPS: dict[str, float] = {
    "average_abs_odds_difference": (2 / 2 - 0 / 2 + 1 / 1 - 2 / 4) / 2,
    "differential_fairness": math.log((4.5 / 7) / (0.5 / 4)),
    "bias_amplification": math.log((4.5 / 7) / (0.5 / 4)) - math.log((2.5 / 4) / (2.5 / 7)),
    "class_imbalance": 6 / 9 - 3 / 9,
    # the second group selects all 3, and all groups 5 of 9
    "independence": math.log(9 / 5),
    "mutual_information": (6 * (2 / 6 * math.log(3 / 5) + 4 / 6 * math.log(3 / 2)) + 3 * math.log(9 / 5)) / 9,
    # of 4 negatives, one group selects 2 and the other leaves 2
    "separation": math.log(4 / 2),
    # both whom the first group selects are positives, and 3 of all 5
    "sufficiency": math.log(5 / 3),
    # 2 of the 5 who are selected and all of the 4 who are not are in the first group
    "conditional_demographic_disparity": (6 * (4 / 4 - 2 / 5) + 3 * (0 / 4 - 3 / 5)) / 9,
    "min_skew": math.log((2 / 6) / (5 / 9)),
    "max_skew": math.log((3 / 3) / (5 / 9)),
    # two in three of the first group are positives, and one in three of the second
    "kl_divergence": 2 / 3 * math.log(2 / 1) + 1 / 3 * math.log(1 / 2),
    # the 6 get 4 and the 3 get 5, so that the mean of all is 1
    "between_group_generalized_entropy_index": ((6 * (4 / 6) ** 2 + 3 * (5 / 3) ** 2) / 9 - 1) / 2,
    "between_group_theil_index": (4 * math.log(4 / 6) + 5 * math.log(5 / 3)) / 9,
    "between_group_coefficient_of_variation": math.sqrt((6 * (4 / 6 - 1) ** 2 + 3 * (5 / 3 - 1) ** 2) / 9),
    "within_group_generalized_entropy_index": (6 * (4 / 6 - (4 / 6) ** 2) + 3 * (9 / 3 - (5 / 3) ** 2)) / 9 / 2,
}
"""On 2 true positives, 2 false negatives and 2 true negatives beside a true positive and 2 false positives."""


def test_disparities_on_plain_numbers() -> None:
    pairs = [(1, 1)] * 2 + [(1, 0)] * 2 + [(0, 0)] * 2 + [(1, 1)] + [(0, 1)] * 2
    people = pl.DataFrame(pairs, schema=["t", "e"], orient="row").with_columns(group=pl.Series(["a"] * 6 + ["b"] * 3))
    every = tf.metric_set(*(FACTORIES[name]("group") for name in PLAIN_OF_GROUPS))
    with pytest.warns(
        tf.errors.UndefinedWarning, match="^distance_given_estimate has no value"
    ):  # the second selects all
        result = every(people, "t", "e")
    assert_same(numbers(result), {(name, "group"): number for name, number in PLAIN_OF_GROUPS.items()})


# Wrong metrics break the laws


def mutants() -> list[Member]:
    """Metrics under the name of another one, each wrong in its own way."""

    def spec(tp: Number, fn: Number) -> Rate:
        return tp, tp + fn

    def precision(tp: Number, fp: Number) -> Number:
        return np.nan_to_num(tp / (tp + fp))

    def error_rate(fp: Number, fn: Number, tp: Number, tn: Number) -> Rate:
        return fp + fn, tp + fp + fn + tn

    def bal_accuracy(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
        return (tp / (tp + fn) + tn / (tn + fp)) / 2

    def positives(tp: Number, fn: Number) -> Number:
        return tp + fn

    def detection_prevalence(selected: Number, unselected: Number) -> Rate:
        return selected, selected + unselected

    def smoothed_base_rate(positives: Number, negatives: Number) -> Number:
        return (positives + 0.5) / (positives + negatives + 1)

    def mean_benefit(tp: Number, fp: Number, fn: Number, tn: Number) -> Rate:
        return tp + tn + 2 * fn, tp + fp + fn + tn

    def divergence_from_all(
        positives: Number, instances: Number, overall_positives: Number, overall_instances: Number
    ) -> Number:
        own = positives / instances
        ratio = own / (overall_positives / overall_instances)
        return np.where(own > 0, own * np.log(ratio), 0.0).sum(axis=-1)

    selected = tf.class_metric(undefined_levels="null")(detection_prevalence)
    diverged = tf.class_metric(range=(0, math.inf), over_levels=True)(divergence_from_all)
    both, new = tf.metric_set(tf.sens, tf.spec), tf.new_groupwise_metric
    smooth = tf.metric_set(tf.counts.smoothed_selection_rate, tf.counts.smoothed_rejection_rate)
    return [
        *(tf.class_metric()(wrong) for wrong in (spec, precision, error_rate, bal_accuracy, positives)),
        *(tf.class_metric()(wrong) for wrong in (smoothed_base_rate, mean_benefit)),
        tf.fall_out.alias("miss_rate"),
        tf.metric_tweak(tf.kap, "kap", weighting="linear"),
        tf.metric_tweak(tf.inequality.generalized_entropy_index, "theil_index", alpha=0.5),
        new(selected, "demographic_parity", tf.difference())("group"),
        new(tf.sens, "equal_opportunity", tf.ratio())("group"),
        new(both, "equalized_odds", tf.difference(across="mean"))("group"),
        new(tf.accuracy, "accuracy_difference", tf.difference(to="overall"))("group"),
        new(tf.f_meas, "f_meas_group_minimum", tf.group_maximum())("group"),
        new(both, "average_abs_odds_difference", tf.difference())("group"),
        new(tf.counts.smoothed_selection_rate, "differential_fairness", tf.aggregates.log_ratio())("group"),
        new(smooth, "bias_amplification", tf.aggregates.log_ratio())("group"),
        new(diverged, "kl_divergence", tf.group_maximum())("group"),
        new(tf.base_rate, "class_imbalance", tf.difference())("group"),
        tf.independence("group", distance="jensen_shannon"),
        tf.distributions.mutual_information("group", aggregate=tf.aggregates.group_mean()),
        new(tf.distributions.distance_given_estimate, "separation", tf.group_maximum())("group"),
        new(tf.distributions.distance_given_truth, "sufficiency", tf.group_maximum())("group"),
        new(tf.inequality.mean_benefit, "between_group_theil_index", tf.aggregates.generalized_entropy(2))("group"),
        new(
            tf.inequality.mean_benefit,
            "between_group_coefficient_of_variation",
            tf.aggregates.coefficient_of_variation(),
        )("group"),
        new(tf.inequality.inequality_within, "within_group_generalized_entropy_index", tf.aggregates.group_mean())(
            "group"
        ),
    ]


TELLING = Case(
    [
        {"truth": truth, "estimate": estimate, "group": group, "outer": 1 if group in "ab" else 2, "weight": weight}
        for truth, estimate, group, weight in [
            ("no", "no", "a", 3),
            ("no", "yes", "a", 1),
            ("yes", "yes", "a", 2),
            ("yes", "no", "a", 1),
            ("maybe", "yes", "a", 1),
            ("no", "no", "b", 1),
            ("no", "yes", "b", 4),
            ("yes", "yes", "b", 4),
            ("yes", None, "b", 1),
            ("maybe", "no", "b", 2),
            ("no", "no", "c", 2),
            ("no", "yes", "c", 1),
            ("yes", "yes", "c", 1),
        ]
    ],
    ["no", "yes", "maybe"],
    "whole",
    {"group_by": "outer"},
)
"""A label that is never predicted, one that is never true in an outer group, and a missing estimate."""


@pytest.mark.parametrize("mutant", mutants(), ids=lambda member: member.name)
def test_plain_arithmetic_detects_wrong_metrics(mutant: Member) -> None:
    def disagreements(member: Member) -> list[object]:
        every, result = tf.metric_set(member), list[object]()
        for case in (TELLING.but(pos_label="yes"), TELLING.but(estimator=None)):
            got, wanted = numbers(case.call(every)), by_hand(every, case)
            result += [key for key in got if not close(got[key], wanted[key])]
        return result

    right = FACTORIES.get(mutant.name) or public(mutant.name)
    assert not disagreements(right("group") if isinstance(right, tf.types.GroupwiseFactory) else right)
    assert disagreements(mutant)


# Laws of reference tables

TABLE_CALL: dict[str, Any] = {"truth": "truth", "estimate": "estimate", "case_weights": "weight", "explain": True}
TABLE_METRICS = tf.metric_set(tf.selection_rate, tf.recall)


@st.composite
def people(draw: st.DrawFn) -> pl.DataFrame:
    row = st.tuples(
        st.sampled_from([0, 1]), st.sampled_from([0, 1]), st.sampled_from("abc"), st.sampled_from("AB"),
        st.sampled_from([1.0, 2.0]),
    )  # fmt: skip
    rows = draw(st.lists(row, min_size=8, max_size=40))
    return pl.DataFrame(rows, schema=["truth", "estimate", "group", "outer", "weight"], orient="row")


def reference_table(data: pl.DataFrame, to: str, call: dict[str, Any] | None = None, **options: Any) -> pl.DataFrame:
    given: dict[str, Any] = {"labels": [0, 1], "pos_label": 1, **TABLE_CALL, **(call or {})}
    made = tf.compare_groups(TABLE_METRICS, by="group", to=to, **options)(data, **given)
    return made.sort(".metric", "group", nulls_last=True)


REFERENCES = st.sampled_from(["majority", "highest", "rest", "overall"])
TABLE_LAW = settings(LAW, max_examples=examples(6))


@TABLE_LAW
@given(people(), REFERENCES)
def test_reference_tables_of_outer_groups_are_those_of_their_rows(data: pl.DataFrame, to: str) -> None:
    grouped = reference_table(data, to, {"group_by": "outer"}, adjust="none")
    for (outer,), part in data.group_by("outer"):
        own = grouped.filter(pl.col("outer") == outer).drop("outer")
        assert_frame_equal(own, reference_table(part, to, adjust="none"), abs_tol=1e-7)


@TABLE_LAW
@given(people(), REFERENCES, st.randoms())
def test_reference_tables_do_not_depend_on_the_order_of_rows(data: pl.DataFrame, to: str, random: Any) -> None:
    order = list(range(len(data)))
    random.shuffle(order)
    assert_frame_equal(reference_table(data[order], to), reference_table(data, to), abs_tol=1e-7)


@TABLE_LAW
@given(people(), REFERENCES)
def test_reference_tables_do_not_depend_on_the_scale_of_weights(data: pl.DataFrame, to: str) -> None:
    heavier = data.with_columns(pl.col("weight") * 4)
    shortfalls = (pl.col("^.shortfall.*$") / 4).name.keep()
    assert_frame_equal(reference_table(heavier, to).with_columns(shortfalls), reference_table(data, to), abs_tol=1e-7)


@TABLE_LAW
@given(people(), REFERENCES, st.sampled_from(["apart", "drop"]))
def test_unknown_groups_change_no_comparison_of_reference_tables(data: pl.DataFrame, to: str, unknown: Any) -> None:
    more = pl.concat([data, data.head(5).with_columns(group=pl.lit(None, pl.String))])
    known = reference_table(more, to, unknown=unknown).filter(pl.col("group").is_not_null())
    # shares are of all rows
    assert_frame_equal(known.drop(".share"), reference_table(data, to).drop(".share"), abs_tol=1e-7)


@TABLE_LAW
@given(people(), st.sampled_from(["majority", "highest"]))
def test_small_groups_are_listed_and_left_out_of_reference_tables(data: pl.DataFrame, to: str) -> None:
    sizes = data.group_by("group").len()
    large = sizes.filter(pl.col("len") >= 8)["group"]
    options: dict[str, Any] = {"adjust": "none", "min_n": 8}
    metric = "selection_rate"
    listed = reference_table(data, to, **options).filter(pl.col(".metric") == metric)
    assert set(listed["group"]) == set(sizes["group"])
    compared = listed.filter(pl.col("group").is_in(large.implode())).drop(".share")
    filtered = data.filter(pl.col("group").is_in(large.implode()))
    if len(filtered):
        own = reference_table(filtered, to, **options).filter(pl.col(".metric") == metric)
        assert_frame_equal(compared, own.drop(".share"), abs_tol=1e-7)


@TABLE_LAW
@given(people(), REFERENCES)
def test_reference_tables_of_merged_tallies_are_those_of_all_rows(data: pl.DataFrame, to: str) -> None:
    made = cast("GroupComparison", tf.compare_groups(TABLE_METRICS, by="group", to=to))
    half = len(data) // 2
    parts = [
        TABLE_METRICS.difference("group").tally(part, "truth", "estimate", case_weights="weight")
        for part in (data[:half], data[half:])
    ]
    total = made.compute(parts[0] + parts[1], labels=[0, 1], pos_label=1, explain=True)
    total = total.sort(".metric", "group", nulls_last=True)
    assert_frame_equal(total, reference_table(data, to), abs_tol=1e-7)
