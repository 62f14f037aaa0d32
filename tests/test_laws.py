"""Laws that hold for every metric, by whatever data: equal to plain arithmetic, and indifferent to what means nothing.

The reference is slow and obvious: exact fractions, one label and one group at a time, written from the definitions.
"""

from __future__ import annotations

import doctest
import importlib
import math
import pkgutil
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict

import polars as pl
import pytest
from conftest import records
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair import fairness, metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from tidyfair.formulas import Expr, Rate

    Member: TypeAlias = tf.Metric | tf.GroupwiseMetric

MODULES: list[ModuleType] = [
    importlib.import_module(f"{metrics.__name__}.{found.name}") for found in pkgutil.iter_modules(metrics.__path__)
]
METRICS: dict[str, tuple[tf.Metric, ModuleType]] = {
    name: (each, module)
    for module in MODULES
    for name in module.__all__
    if isinstance(each := getattr(module, name), tf.Metric)
}
FACTORIES: dict[str, tf.GroupwiseFactory] = {
    name: each for name in fairness.__all__ if isinstance(each := getattr(fairness, name), tf.GroupwiseFactory)
}

CLASS: list[tf.Metric] = [metric for metric, _ in METRICS.values() if metric.kind == "class"]
TWEAKS: list[tf.Metric] = [
    tf.metric_tweak(tf.kap, "kap_linear", weighting="linear"),
    tf.metric_tweak(tf.kap, "kap_quadratic", weighting="quadratic"),
    tf.metric_tweak(tf.f_meas, "f2", beta=2),
    tf.metric_tweak(tf.ppv, "ppv_at_0.25", prevalence=0.25),
    tf.metric_tweak(tf.npv, "npv_at_0.25", prevalence=0.25),
]
GROUPWISE: list[tf.GroupwiseMetric] = [
    each for factory in FACTORIES.values() if (each := factory("group")).kind == "class"
]
EVERY = tf.metric_set(*CLASS, *TWEAKS, *GROUPWISE)

COUNTS = {
    "instances", "positives", "negatives", "predicted_positives", "predicted_negatives",
    "true_positives", "false_positives", "false_negatives", "true_negatives", "power",
}  # fmt: skip
"""The exceptions to scale-freedom: what counts case weights grows with them."""


# The reference: one label against the rest

Number: TypeAlias = Fraction | float
Value: TypeAlias = Number | None


class Row(TypedDict):
    truth: str | None
    estimate: str | None
    group: str | None
    outer: int | None
    weight: float


class Table(NamedTuple):
    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction


def rate(numerator: Fraction, denominator: Fraction) -> Fraction | None:
    return None if denominator == 0 else numerator / denominator


def quotient(numerator: Fraction, denominator: Fraction) -> Value:
    if denominator == 0:
        return math.inf if numerator > 0 else None
    return numerator / denominator


def of(function: Callable[[Fraction, Fraction], Value], one: Fraction | None, other: Fraction | None) -> Value:
    return None if one is None or other is None else function(one, other)


def sens(t: Table) -> Fraction | None:
    return rate(t.tp, t.tp + t.fn)


def spec(t: Table) -> Fraction | None:
    return rate(t.tn, t.tn + t.fp)


def fall_out(t: Table) -> Fraction | None:
    return rate(t.fp, t.tn + t.fp)


def miss_rate(t: Table) -> Fraction | None:
    return rate(t.fn, t.tp + t.fn)


def right_when_selected(t: Table) -> Fraction | None:
    return rate(t.tp, t.tp + t.fp)


def right_when_unselected(t: Table) -> Fraction | None:
    return rate(t.tn, t.tn + t.fn)


def f_measure(t: Table, beta: int) -> Value:
    if sens(t) is None or right_when_selected(t) is None:
        return None
    return (1 + beta**2) * t.tp / ((1 + beta**2) * t.tp + beta**2 * t.fn + t.fp)


def bayes(likelihood: Fraction, other_likelihood: Fraction, prior: Fraction) -> Value:
    return rate(likelihood * prior, likelihood * prior + other_likelihood * (1 - prior))


def symmetric_extremal_dependence(hits: Fraction, false_alarms: Fraction) -> float:
    h, f = (min(max(float(each), 1e-9), 1 - 1e-9) for each in (hits, false_alarms))
    log = math.log
    return (log(f) - log(h) + log(1 - h) - log(1 - f)) / (log(f) + log(h) + log(1 - h) + log(1 - f))


QUARTER = Fraction(1, 4)

ONE_LABEL: dict[str, Callable[[Table], Value]] = {
    "sens": sens,
    "spec": spec,
    "fall_out": fall_out,
    "miss_rate": miss_rate,
    "precision": right_when_selected,
    "negative_predictive_value": right_when_unselected,
    "false_discovery_rate": lambda t: rate(t.fp, t.tp + t.fp),
    "false_omission_rate": lambda t: rate(t.fn, t.fn + t.tn),
    "detection_prevalence": lambda t: rate(t.tp + t.fp, t.tp + t.fp + t.fn + t.tn),
    "base_rate": lambda t: rate(t.tp + t.fn, t.tp + t.fp + t.fn + t.tn),
    "threat_score": lambda t: rate(t.tp, t.tp + t.fp + t.fn),
    "bal_accuracy": lambda t: of(lambda a, b: (a + b) / 2, sens(t), spec(t)),
    "j_index": lambda t: of(lambda a, b: a + b - 1, sens(t), spec(t)),
    "markedness": lambda t: of(lambda a, b: a + b - 1, right_when_selected(t), right_when_unselected(t)),
    # at the prevalence of the data, Bayes' rule counts the same rows
    "ppv": lambda t: None if None in (sens(t), spec(t)) else right_when_selected(t),
    "npv": lambda t: None if None in (sens(t), spec(t)) else right_when_unselected(t),
    "ppv_at_0.25": lambda t: of(lambda a, b: bayes(a, 1 - b, QUARTER), sens(t), spec(t)),
    "npv_at_0.25": lambda t: of(lambda a, b: bayes(b, 1 - a, 1 - QUARTER), sens(t), spec(t)),
    "f_meas": lambda t: f_measure(t, 1),
    "f2": lambda t: f_measure(t, 2),
    "roc_dist": lambda t: of(lambda a, b: math.hypot(1 - a, 1 - b), sens(t), spec(t)),
    "sedi": lambda t: of(symmetric_extremal_dependence, sens(t), fall_out(t)),
    "lift": lambda t: rate(t.tp * (t.tp + t.fp + t.fn + t.tn), (t.tp + t.fp) * (t.tp + t.fn)),
    "positive_likelihood_ratio": lambda t: of(quotient, sens(t), fall_out(t)),
    "negative_likelihood_ratio": lambda t: of(quotient, miss_rate(t), spec(t)),
    "diagnostic_odds_ratio": lambda t: quotient(t.tp * t.tn, t.fp * t.fn),
    "false_negatives_per_false_positive": lambda t: rate(t.fn, t.fp),
    "positives": lambda t: t.tp + t.fn,
    "negatives": lambda t: t.fp + t.tn,
    "predicted_positives": lambda t: t.tp + t.fp,
    "predicted_negatives": lambda t: t.fn + t.tn,
    "true_positives": lambda t: t.tp,
    "false_positives": lambda t: t.fp,
    "false_negatives": lambda t: t.fn,
    "true_negatives": lambda t: t.tn,
}


# The reference: forms of their own for many labels; rows are truth, columns are estimate

Matrix: TypeAlias = list[list[Fraction]]


def diagonal(m: Matrix) -> Fraction:
    return sum((row[i] for i, row in enumerate(m)), Fraction())


def total(m: Matrix) -> Fraction:
    return sum(margins(m), Fraction())


def margins(lines: Iterable[Sequence[Fraction]]) -> list[Fraction]:
    return [sum(line, Fraction()) for line in lines]


def correlation(m: Matrix) -> Value:
    s, truth, estimate = total(m), margins(m), margins(zip(*m, strict=True))
    covariance = diagonal(m) * s - sum(t * e for t, e in zip(truth, estimate, strict=True))
    variances = [s**2 - sum(each**2 for each in margin) for margin in (truth, estimate)]
    return None if 0 in variances else covariance / math.sqrt(variances[0] * variances[1])


def kappa(m: Matrix, disagreement: Callable[[int, int], int]) -> Value:
    truth, estimate = margins(m), margins(zip(*m, strict=True))
    pairs = [(i, j) for i in range(len(m)) for j in range(len(m))]
    observed = sum((disagreement(i, j) * m[i][j] for i, j in pairs), Fraction())
    chance = rate(sum((disagreement(i, j) * truth[i] * estimate[j] for i, j in pairs), Fraction()), total(m))
    return None if not chance else 1 - observed / chance


ALL_LABELS: dict[str, Callable[[Matrix], Value]] = {
    "accuracy": lambda m: rate(diagonal(m), total(m)),
    "error_rate": lambda m: rate(total(m) - diagonal(m), total(m)),
    "mcc": correlation,
    "kap": lambda m: kappa(m, lambda i, j: int(i != j)),
    "kap_linear": lambda m: kappa(m, lambda i, j: abs(i - j)),
    "kap_quadratic": lambda m: kappa(m, lambda i, j: (i - j) ** 2),
}

SYNONYMS = {
    "sensitivity": "sens", "true_positive_rate": "sens", "hit_rate": "sens", "recall": "sens",
    "specificity": "spec", "true_negative_rate": "spec",
    "false_positive_rate": "fall_out", "false_negative_rate": "miss_rate",
    "positive_predictive_value": "precision",
    "selection_rate": "detection_prevalence", "prevalence": "base_rate",
    "zero_one_loss": "error_rate", "critical_success_index": "threat_score",
    "balanced_accuracy": "bal_accuracy", "informedness": "j_index", "youden_index": "j_index",
    "matthews_corrcoef": "mcc", "cohen_kappa": "kap", "f1": "f_meas", "power": "true_positives",
}  # fmt: skip

READS: dict[str, tuple[Literal["truth", "estimate"], ...]] = {
    **dict.fromkeys(("base_rate", "positives", "negatives"), ("truth",)),
    **dict.fromkeys(("detection_prevalence", "predicted_positives", "predicted_negatives"), ("estimate",)),
    "instances": (),
}
"""What must be known of a row for it to count; both truth and estimate where nothing is said."""

NULL_LEVELS = {
    "ppv", "npv", "ppv_at_0.25", "npv_at_0.25", "bal_accuracy", "detection_prevalence", "base_rate", "threat_score",
    "lift", "positive_likelihood_ratio", "negative_likelihood_ratio", "diagnostic_odds_ratio",
    "false_negatives_per_false_positive",
}  # fmt: skip
"""Averages that are null where a label has no value; the others leave the label out."""


def weigh(rows: Iterable[Row]) -> Fraction:
    return sum((Fraction(row["weight"]) for row in rows), Fraction())


def used(name: str, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if all(row[column] is not None for column in READS.get(name, ("truth", "estimate")))]


def one_label(name: str, rows: Sequence[Row], label: str) -> Table:
    def cell(*, truth: bool, estimate: bool) -> Fraction:
        return weigh(
            r for r in used(name, rows) if ((r["truth"] == label), (r["estimate"] == label)) == (truth, estimate)
        )

    return Table(
        cell(truth=True, estimate=True),
        cell(truth=False, estimate=True),
        cell(truth=True, estimate=False),
        cell(truth=False, estimate=False),
    )


def value(name: str, rows: Sequence[Row], labels: Sequence[str], estimator: str) -> float | None:
    """A metric of some rows; with the estimator `binary`, `labels` is the event alone."""
    name = SYNONYMS.get(name, name)
    if name == "instances":
        found = weigh(rows)
    elif name in ALL_LABELS and estimator == "binary":
        t = one_label(name, rows, labels[0])
        found = ALL_LABELS[name]([[t.tp, t.fn], [t.fp, t.tn]])
    elif name in ALL_LABELS:
        cells = [[[r for r in rows if (r["truth"], r["estimate"]) == (t, e)] for e in labels] for t in labels]
        found = ALL_LABELS[name]([[weigh(cell) for cell in row] for row in cells])
    else:
        tables = [one_label(name, rows, label) for label in labels]
        if estimator in {"binary", "micro"}:
            found = ONE_LABEL[name](Table(*(sum(cells, Fraction()) for cells in zip(*tables, strict=True))))
        else:
            even = estimator == "macro"
            weights = [
                Fraction(1) if even else weigh(r for r in used(name, rows) if r["truth"] == each) for each in labels
            ]
            found = average([ONE_LABEL[name](t) for t in tables], weights, drop=name not in NULL_LEVELS)
    return None if found is None else float(found)


def average(values: Sequence[Value], weights: Sequence[Fraction], *, drop: bool) -> Value:
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0]
    known = [(value, weight) for value, weight in pairs if value is not None]
    if not known or (len(known) < len(pairs) and not drop):
        return None
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)


# The reference: groups compared

DEFINITIONS: dict[str, tuple[str, ...]] = {
    "demographic_parity": ("difference", "detection_prevalence"),
    "demographic_parity_difference": ("difference", "detection_prevalence"),
    "demographic_parity_ratio": ("ratio", "detection_prevalence"),
    "statistical_parity_difference": ("difference", "detection_prevalence"),
    "disparate_impact": ("ratio", "detection_prevalence"),
    "equal_opportunity": ("difference", "sens"),
    "equal_opportunity_difference": ("difference", "sens"),
    "equal_opportunity_ratio": ("ratio", "sens"),
    "equalized_odds": ("difference", "sens", "spec"),
    "equalized_odds_difference": ("difference", "sens", "fall_out"),
    "equalized_odds_ratio": ("ratio", "sens", "fall_out"),
    "predictive_parity": ("difference", "precision"),
    "predictive_equality": ("difference", "fall_out"),
    "overall_accuracy_equality": ("difference", "accuracy"),
    "treatment_equality": ("ratio", "false_negatives_per_false_positive"),
    "conditional_use_accuracy_equality": ("difference", "precision", "negative_predictive_value"),
}
"""What a name of the field means; the others say it themselves, as in `spec_group_minimum`."""

AGGREGATES = ("difference", "ratio", "group_minimum", "group_maximum")


def meaning(name: str) -> tuple[str, ...]:
    said = [(each, name.removesuffix(f"_{each}")) for each in AGGREGATES if name.endswith(f"_{each}")]
    return DEFINITIONS.get(name) or said[0]


def compared(aggregate: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if aggregate in {"group_minimum", "group_maximum"}:
        return worst(aggregate, known) if known else None
    if len(values) == len(known) == 1:
        return 0 if aggregate == "difference" else 1
    if len(known) < 2:
        return None
    low, high = min(known), max(known)
    return high - low if aggregate == "difference" else None if high == 0 else low / high


def worst(aggregate: str, numbers: Sequence[float]) -> float:
    return max(numbers) if aggregate in {"difference", "group_maximum"} else min(numbers)


def disparity(
    name: str, rows: Sequence[Row], labels: Sequence[str], estimator: str, *, undefined_is_null: bool
) -> float | None:
    aggregate, *names = meaning(name)
    groups = [[row for row in rows if row["group"] == group] for group in {row["group"] for row in rows}]
    readings = [([label], "binary") for label in labels] if estimator == "one_vs_rest" else [(labels, estimator)]
    per_label: list[float | None] = []
    for some, read_as in readings:
        values = [[value(metric, group, some, read_as) for group in groups] for metric in names]
        numbers = [compared(aggregate, each) for each in values]
        known = [number for number in numbers if number is not None]
        undefined = undefined_is_null and any(None in each for each in values)
        per_label.append(worst(aggregate, known) if known and len(known) == len(names) and not undefined else None)
    known = [number for number in per_label if number is not None]
    return worst(aggregate, known) if known and (len(known) == len(per_label) or not undefined_is_null) else None


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

    def call(self, every: tf.MetricSet, frame: pl.DataFrame | None = None) -> pl.DataFrame:
        return every(self.frame if frame is None else frame, "truth", "estimate", **self.counting, **self.reading)


COUNTING = {"group_by", "case_weights"}

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
    all_labels = [{"estimator": each} for each in ("macro", "macro_weighted", "micro", *more)]
    reading = draw(st.sampled_from([*({"pos_label": label} for label in labels), *all_labels]))
    return Case(rows, labels, kind, {**reading, "group_by": draw(st.sampled_from([None, "outer"]))})


LAW = settings(
    deadline=None,
    max_examples=40,
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


def assert_same(found: dict[Key, float | None], expected: dict[Key, float | None]) -> None:
    assert list(found) == list(expected)
    assert not {key: (found[key], expected[key]) for key in found if not close(found[key], expected[key])}


def assert_same_frames(found: pl.DataFrame, expected: pl.DataFrame, case: Case) -> None:
    """The same to the last bit, unless fractions were summed in another order."""
    assert_frame_equal(found, expected, check_exact=case.weights != "broken", rel_tol=1e-9, abs_tol=1e-12)


def estimator_of(member: Member, options: dict[str, Any]) -> str:
    if "pos_label" in options:
        return "binary"
    asked = options["estimator"]
    if isinstance(member, tf.Metric):
        return "macro" if asked in {None, "one_vs_rest"} else asked
    # an average of shares over labels says nothing: it is 1/K in every group
    shares = {"detection_prevalence", "base_rate"} & {SYNONYMS.get(each, each) for each in meaning(member.name)}
    return asked or ("one_vs_rest" if shares else "macro")


def by_hand(every: tf.MetricSet, case: Case) -> dict[Key, float | None]:
    options, outer = case.options, case.options["group_by"] is not None
    labels = [options["pos_label"]] if "pos_label" in options else case.labels
    places = sorted({row["outer"] for row in case.rows}, key=lambda each: (each is None, each)) if outer else [None]
    found: dict[Key, float | None] = {}
    for member in every:
        plain = isinstance(member, tf.Metric)
        for place in places:
            rows = [row for row in case.rows if not outer or row["outer"] == place]
            names = [member.name] if plain else meaning(member.name)[1:]
            gaps = any(len(used(SYNONYMS.get(name, name), rows)) < len(rows) for name in names)
            estimator = estimator_of(member, options)
            if gaps and not options.get("na_rm", True):
                number = None
            elif plain:
                number = value(member.name, rows, labels, estimator)
            else:
                strict = options.get("on_undefined") == "null"
                number = disparity(member.name, rows, labels, estimator, undefined_is_null=strict)
            found[(*([place] if outer else []), member.name, None if plain else "group")] = number
    return found


def assert_equals_reference(every: tf.MetricSet, case: Case) -> None:
    assert_same(numbers(case.call(every)), by_hand(every, case))


# Laws


def test_the_reference_knows_every_metric_and_no_other() -> None:
    known = {*ONE_LABEL, *ALL_LABELS, *SYNONYMS, "instances"}
    assert {metric.name for metric in CLASS} == known - {each.name for each in TWEAKS}
    assert {metric.name for metric in tf.get_metrics("class")} == {metric.name for metric in CLASS} - SYNONYMS.keys()
    assert DEFINITIONS.keys() <= FACTORIES.keys()


@settings(LAW, max_examples=120)
@given(cases(), st.sampled_from([{}, {"on_undefined": "null"}, {"na_rm": False}]))
def test_equals_plain_arithmetic(case: Case, undefined_or_missing: dict[str, object]) -> None:
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
def test_corners_equal_plain_arithmetic(name: str) -> None:
    assert_equals_reference(EVERY, CORNERS[name])


@LAW
@given(cases())
def test_in_range_or_null(case: Case) -> None:
    ranges = {member.name: member.range for member in EVERY}
    for (*_, name, _), number in numbers(case.call(EVERY)).items():
        low, high = ranges[str(name)]
        assert number is None or low - 1e-12 <= number <= high + 1e-12, name
        assert number is None or math.isfinite(number) or number == high, name


@LAW
@given(cases(weights=["whole", "broken"]), st.sampled_from([0.1, 3, 1e6]))
def test_the_scale_of_weights_means_nothing_but_for_counts(case: Case, factor: float) -> None:
    once = numbers(case.call(EVERY))
    scaled = numbers(case.call(EVERY, case.frame.with_columns(pl.col("weight") * factor)))
    assert_same(
        scaled, {key: number * factor if number and key[-2] in COUNTS else number for key, number in once.items()}
    )


@LAW
@given(cases(), st.integers(0, 30))
def test_tallies_of_parts_add_up_to_the_whole(case: Case, cut: int) -> None:
    parts = case.frame[:cut], case.frame[cut:]
    first, second = (EVERY.tally(part, "truth", "estimate", **case.counting) for part in parts)
    assert_same_frames(EVERY.compute(first + second, **case.reading), case.call(EVERY), case)


@LAW
@given(cases(), st.data())
def test_the_order_of_rows_and_columns_means_nothing(case: Case, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(case.rows))))
    columns = data.draw(st.permutations(case.frame.columns))
    assert_same(numbers(case.call(EVERY, case.frame[rows].select(columns))), numbers(case.call(EVERY)))


@LAW
@given(cases())
def test_the_order_of_groups_means_nothing(case: Case) -> None:
    reversed_names = pl.col("group").replace({"a": "z", "b": "y", "c": "x", None: "w"})
    assert_same(numbers(case.call(EVERY, case.frame.with_columns(reversed_names))), numbers(case.call(EVERY)))


@LAW
@given(cases())
def test_grouped_equals_filtered(case: Case) -> None:
    grouped = case.but(group_by="outer").call(EVERY)
    for place in {row["outer"] for row in case.rows}:
        if weighs_something([row for row in case.rows if row["outer"] == place]):
            here = pl.col("outer").eq_missing(place)
            alone = case.but(group_by=None).call(EVERY, case.frame.filter(here))
            assert_same(numbers(grouped.filter(here).drop("outer")), numbers(alone))


@LAW
@given(cases(weights=["whole"], zeros=False))  # rows of weight zero would leave their group behind
def test_whole_weights_are_repeated_rows(case: Case) -> None:
    repeated = case.frame[[place for place, row in enumerate(case.rows) for _ in range(int(row["weight"]))]]
    assert_same_frames(case.but(case_weights=None).call(EVERY, repeated), case.call(EVERY), case)


@LAW
@given(cases(weights=["none"]))
def test_weights_of_one_are_no_weights(case: Case) -> None:
    assert_same_frames(case.but(case_weights="weight").call(EVERY), case.call(EVERY), case)


@LAW
@given(cases(most_labels=2), st.sampled_from(["no", "yes"]))
def test_one_of_two_labels_against_the_rest_is_binary(case: Case, event: str) -> None:
    against_the_rest = case.but(pos_label=event, estimator="one_vs_rest").call(EVERY)
    assert_same_frames(against_the_rest, case.but(pos_label=event, estimator="binary").call(EVERY), case)


EXCHANGED = {
    "sens": "spec", "miss_rate": "fall_out", "precision": "negative_predictive_value", "ppv": "npv",
    "false_discovery_rate": "false_omission_rate", "positives": "negatives",
    "predicted_positives": "predicted_negatives", "true_positives": "true_negatives",
    "false_positives": "false_negatives",
    "equal_opportunity": "true_negative_rate_difference", "predictive_equality": "false_negative_rate_difference",
} | {
    name: name
    for name in (
        "accuracy", "error_rate", "bal_accuracy", "j_index", "markedness", "roc_dist", "sedi", "mcc", "kap",
        "kap_linear", "diagnostic_odds_ratio", "instances", "demographic_parity", "base_rate_difference",
        "equalized_odds", "overall_accuracy_equality", "conditional_use_accuracy_equality",
    )
}  # fmt: skip
"""What a metric is called when the other label is the event."""


@LAW
@given(cases(most_labels=2))
def test_the_other_label_as_the_event_exchanges_metrics(case: Case) -> None:
    one, other = (numbers(case.but(pos_label=label, estimator=None).call(EVERY)) for label in case.labels)
    pairs = {key: (*key[:-2], EXCHANGED[str(key[-2])], key[-1]) for key in one if key[-2] in EXCHANGED}
    assert_same({key: one[key] for key in pairs}, {key: other[there] for key, there in pairs.items()})
    assert_same({key: other[key] for key in pairs}, {key: one[there] for key, there in pairs.items()})


# Witnesses

YARDSTICK = {record["metric"] for record in records("yardstick")}

PLAIN: dict[str, float] = {
    "base_rate": 9 / 15,
    "error_rate": 5 / 15,
    "false_discovery_rate": 2 / 8,
    "false_omission_rate": 3 / 7,
    "negative_predictive_value": 4 / 7,
    "threat_score": 6 / 11,
    "lift": (6 / 8) / (9 / 15),
    "positive_likelihood_ratio": (6 / 9) / (2 / 6),
    "negative_likelihood_ratio": (3 / 9) / (4 / 6),
    "diagnostic_odds_ratio": (6 * 4) / (2 * 3),
    "false_negatives_per_false_positive": 3 / 2,
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


@pytest.mark.parametrize("name", METRICS)
def test_the_example_of_its_docstring_is_true(name: str) -> None:
    metric, module = METRICS[name]
    example = doctest.DocTestParser().get_doctest(metric.__doc__ or "", dict(vars(module)), name, module.__file__, None)
    assert example.examples
    assert not doctest.DocTestRunner().run(example).failed


@pytest.mark.parametrize("name", [metric.name for metric in CLASS])
def test_it_or_what_it_is_made_of_has_a_reference(name: str) -> None:
    # those of scores and of numbers have theirs in test_scores and test_numbers
    metric, _ = METRICS[name]
    assert {name, metric.base.name if metric.base else name} & {*YARDSTICK, *PLAIN}


@pytest.mark.parametrize("curve", [tf.roc_curve, tf.pr_curve, tf.gain_curve, tf.lift_curve], ids=repr)
def test_the_example_of_a_curve_is_true(curve: tf.Curve) -> None:
    example = doctest.DocTestParser().get_doctest(curve.__doc__ or "", dict(vars(tf)), curve.name, None, None)
    assert example.examples
    assert not doctest.DocTestRunner().run(example).failed


def test_plain_numbers() -> None:
    truth, estimate = [1] * 6 + [0] * 2 + [1] * 3 + [0] * 4, [1] * 6 + [1] * 2 + [0] * 3 + [0] * 4
    found = tf.metric_set(*(METRICS[name][0] for name in PLAIN))(pl.DataFrame({"t": truth, "e": estimate}), "t", "e")
    assert_same(numbers(found), {(name, None): number for name, number in PLAIN.items()})


# The laws can fail


def mutants() -> list[Member]:
    """Metrics under the name of another one, each wrong in its own way."""

    def spec(tp: Expr, fn: Expr) -> Rate:
        return tp, tp + fn

    def precision(tp: Expr, fp: Expr) -> Expr:
        return (tp / (tp + fp)).fill_nan(0)

    def error_rate(fp: Expr, fn: Expr, tp: Expr, tn: Expr) -> Rate:
        return fp + fn, tp + fp + fn + tn

    def bal_accuracy(tp: Expr, fp: Expr, fn: Expr, tn: Expr) -> Expr:
        return (tp / (tp + fn) + tn / (tn + fp)) / 2

    def positives(tp: Expr, fn: Expr) -> Expr:
        return tp + fn

    def detection_prevalence(selected: Expr, unselected: Expr) -> Rate:
        return selected, selected + unselected

    selected = tf.class_metric(undefined_levels="null")(detection_prevalence)
    both, new = tf.metric_set(tf.sens, tf.spec), tf.new_groupwise_metric
    return [
        *(tf.class_metric()(wrong) for wrong in (spec, precision, error_rate, bal_accuracy, positives)),
        tf.fall_out.alias("miss_rate"),
        tf.metric_tweak(tf.kap, "kap", weighting="linear"),
        new(selected, "demographic_parity", tf.difference())("group"),
        new(tf.sens, "equal_opportunity", tf.ratio())("group"),
        new(both, "equalized_odds", tf.difference(across="mean"))("group"),
        new(tf.accuracy, "accuracy_difference", tf.difference(to="overall"))("group"),
        new(tf.f1, "f1_group_minimum", tf.group_maximum())("group"),
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
            ("no", "yes", "b", 1),
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
def test_the_reference_tells_wrong_metrics(mutant: Member) -> None:
    def disagreements(member: Member) -> list[object]:
        every, found = tf.metric_set(member), list[object]()
        for case in (TELLING.but(pos_label="yes"), TELLING.but(estimator=None)):
            got, wanted = numbers(case.call(every)), by_hand(every, case)
            found += [key for key in got if not close(got[key], wanted[key])]
        return found

    right = getattr(tf, mutant.name)
    assert not disagreements(right("group") if isinstance(right, tf.GroupwiseFactory) else right)
    assert disagreements(mutant)
