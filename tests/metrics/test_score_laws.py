"""Laws of metrics of scores and numbers: values in range, and invariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import pytest
from conftest import examples
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

import tidyfair as tf
from tidyfair.metrics import fairness

LAW = settings(
    deadline=None,
    max_examples=examples(8),
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
FACTORIES = [
    each for name in fairness.__all__ if isinstance(each := getattr(fairness, name), tf.types.GroupwiseFactory)
]
WITHIN: dict[Literal["prob", "numeric"], tf.types.Metric] = {
    "prob": tf.inequality.inequality_within.of_kind("prob"),
    "numeric": tf.inequality.inequality_within.of_kind("numeric"),
}
"""They read all groups, so that no set has them unasked."""
SETS = {
    kind: tf.metric_set(
        tf.get_metrics(kind), within, *(each("group") for each in FACTORIES if each.metrics[0].kind == kind)
    )
    for kind, within in WITHIN.items()
}
BENEFIT: dict[str, dict[str, Any]] = {"prob": {}, "numeric": {"benefit": "ratio"}}
"""Numbers are read where their benefit is set."""
BETWEEN = {
    name for name in fairness.__all__ if name.startswith(("kolmogorov", "wasserstein", "abroca", "bpsn", "bnsp"))
}

COUNTS = {
    "generalized_true_positives", "generalized_false_positives",
    "generalized_false_negatives", "generalized_true_negatives", "prediction_total",
}  # fmt: skip
"""The exceptions to scale-freedom: what counts case weights grows with them."""
IN_ORDER = {"mase"}
"""It reads rows in their order."""
CHANCE = {each for each in BETWEEN if each.endswith(("_if_equal", "_debiased"))} | {
    "expected_calibration_error_if_calibrated", "expected_calibration_error_debiased", "calibration_error_parity",
    "cumulative_calibration_error_if_calibrated",
}  # fmt: skip
NOT_REPEATED = {
    "mase": "the one before a repeated row is the same row",
    "rpiq": "with weights quartiles interpolate cumulated shares, as yardstick has it",
    "ccc": "variances are unbiased for weights that say how reliable a row is, not how often it was seen",
    "rpd": "the same",
    **dict.fromkeys(CHANCE, "rows of large weight are fewer than repeated ones, so that chance has more of a say"),
}
"""Metrics to which a weight of two is not two rows, and why."""
NOT_WEIGHTS_OF_ONE = {"rpiq": "with weights it interpolates cumulated shares, as yardstick does"}


@dataclass(frozen=True)
class Case:
    kind: str
    frame: pl.DataFrame
    weighted: bool
    outer: bool

    def options(self, *, weighted: bool, outer: bool) -> dict[str, Any]:
        return {
            **({"probs": "predicted"} if self.kind == "prob" else {"estimate": "predicted"}),
            **({"case_weights": "weight"} if weighted else {}),
            **({"group_by": "outer"} if outer else {}),
        }

    def call(
        self, frame: pl.DataFrame | None = None, every: tf.types.MetricSet | None = None, **but: bool
    ) -> pl.DataFrame:
        options = self.options(**{"weighted": self.weighted, "outer": self.outer, **but})
        every = SETS[self.kind] if every is None else every
        return every(self.frame if frame is None else frame, "truth", on_undefined="ignore", **options)


@st.composite
def cases(draw: st.DrawFn, kind: str, *, weights: tuple[str, ...] = ("none", "whole", "broken")) -> Case:
    holes = [st.none()] if draw(st.booleans()) else []
    # quarters and eighths add up exactly in any order, so that what is constant stays so
    predicted = st.integers(0, 8).map(lambda k: k / 8) if kind == "prob" else st.integers(1, 30).map(lambda k: k / 4)
    truth: st.SearchStrategy[Any] = st.integers(0, 1) if kind == "prob" else st.integers(1, 30).map(lambda k: k / 4)
    chosen = draw(st.sampled_from(weights))
    weight = {
        "none": st.just(1.0),
        "whole": st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        "positive": st.sampled_from([1.0, 2.0, 3.0]),
        "broken": st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.5]),
    }[chosen]
    row = st.fixed_dictionaries(
        {
            "truth": st.one_of(truth, *holes),
            "predicted": st.one_of(predicted, *holes),
            "group": st.sampled_from(["a", "b", "c"]),
            "outer": st.sampled_from([1, 2]),
            "weight": weight,
        }
    )
    rows = draw(st.lists(row, min_size=1, max_size=30))
    rows[0]["weight"] = rows[0]["weight"] or 1.0  # weights that are all zero are an error
    number = pl.Int64 if kind == "prob" else pl.Float64
    schema = {
        "truth": number, "predicted": pl.Float64, "group": pl.String, "outer": pl.Int64, "weight": pl.Float64
    }  # fmt: skip
    return Case(kind, pl.DataFrame(rows, schema=schema), chosen != "none", draw(st.booleans()))


Key = tuple[Any, ...]


def numbers(results: pl.DataFrame) -> dict[Key, float | None]:
    keys = [name for name in ("outer", ".metric", ".by") if name in results.columns]
    return dict(zip(results.select(keys).rows(), results[".estimate"].to_list(), strict=True))


def name_of(key: Key) -> str:
    return str(key[-2])


def close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-9)


def assert_same(result: pl.DataFrame, expected: pl.DataFrame, but: dict[str, str] | set[str] | None = None) -> None:
    one, other = numbers(result), numbers(expected)
    assert one.keys() == other.keys()
    left_out = set(but or ())
    assert not {
        key: (one[key], other[key]) for key in one if name_of(key) not in left_out and not close(one[key], other[key])
    }


each_kind = pytest.mark.parametrize("kind", SETS)


@each_kind
@LAW
@given(data=st.data())
def test_score_values_are_in_range_or_null(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    ranges = {member.name: member.range for member in SETS[kind]}
    for key, number in numbers(case.call()).items():
        low, high = ranges[name_of(key)]
        assert number is None or low - 1e-9 <= number <= high + 1e-9, (key, number)
        assert number is None or not math.isnan(number), key


@each_kind
@LAW
@given(data=st.data(), factor=st.sampled_from([0.125, 4.0, 3.0, 1e6]))
def test_weight_scale_changes_only_counts(kind: str, data: st.DataObject, factor: float) -> None:
    case = data.draw(cases(kind, weights=("whole", "broken")))
    grown = pl.when(pl.col(".metric").is_in(COUNTS)).then(pl.col(".estimate") * factor).otherwise(".estimate")
    scaled = case.call(case.frame.with_columns(pl.col("weight") * factor))
    assert_same(scaled, case.call().with_columns(grown.alias(".estimate")))


@each_kind
@LAW
@given(data=st.data(), cut=st.integers(0, 30))
def test_tallies_of_parts_equal_the_whole(kind: str, data: st.DataObject, cut: int) -> None:
    case = data.draw(cases(kind))
    options = case.options(weighted=case.weighted, outer=case.outer)
    # what reads rows in their order does not add up, and says so
    every = tf.metric_set(*(metric for metric in SETS[kind] if metric.name not in IN_ORDER))
    first, second = (every.tally(part, "truth", **options) for part in (case.frame[:cut], case.frame[cut:]))
    whole = case.call().filter(~pl.col(".metric").is_in(IN_ORDER))
    assert_same(every.compute(first + second, on_undefined="ignore"), whole)
    assert_same(every.compute(second + first, on_undefined="ignore"), whole)


@each_kind
@LAW
@given(data=st.data())
def test_row_order_does_not_matter(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    order = data.draw(st.permutations(range(len(case.frame))))
    assert_same(case.call(case.frame[order]), case.call(), IN_ORDER)


@each_kind
@LAW
@given(data=st.data())
def test_group_by_equals_filtering(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    grouped = case.call(outer=True)
    for (index,), part in case.frame.group_by("outer"):
        if case.weighted and not part["weight"].sum():
            continue  # weights that are all zero are an error
        assert_same(grouped.filter(outer=index).drop("outer"), case.call(part, outer=False))


@each_kind
@LAW
@given(data=st.data())
def test_unit_weights_equal_no_weights(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind, weights=("none",)))
    assert_same(case.call(weighted=True), case.call(weighted=False), NOT_WEIGHTS_OF_ONE)


@each_kind
@LAW
@given(data=st.data())
def test_integer_weights_equal_repeated_rows(kind: str, data: st.DataObject) -> None:
    # rows of weight zero would leave their group behind
    case = data.draw(cases(kind, weights=("positive",)))
    repeated = case.frame.select(pl.all().repeat_by(pl.col("weight").cast(pl.UInt32)).explode())
    assert_same(case.call(repeated, weighted=False), case.call(weighted=True), NOT_REPEATED)


@each_kind
@LAW
@given(data=st.data())
def test_zero_weight_rows_do_not_change_values(kind: str, data: st.DataObject) -> None:
    case = data.draw(cases(kind, weights=("whole",)))
    there = case.frame.select("group", "outer", "weight").filter(pl.col("weight") > 0).select("group", "outer")
    left = case.frame.join(there.unique(), on=["group", "outer"], how="semi", maintain_order="left")
    assert_same(case.call(left), case.call(left.filter(pl.col("weight") > 0)), IN_ORDER)


@each_kind
@LAW
@given(data=st.data(), alpha=st.sampled_from([0.5, 1, 2, -0.5]))
def test_inequality_splits_into_within_and_between_groups(kind: str, data: st.DataObject, alpha: float) -> None:
    options: dict[str, Any] = {"alpha": alpha, **BENEFIT[kind]}
    within = tf.inequality.within_group_generalized_entropy_index("group", name="within", **options)
    between = tf.inequality.between_group_generalized_entropy_index("group", name="between", **options)
    of_all = tf.metric_tweak(tf.inequality.generalized_entropy_index, "all", **options)
    parts = (within, between)
    case = data.draw(cases(kind))
    result = numbers(case.call(every=tf.metric_set(of_all, *parts), outer=True))
    for position in {outer for outer, *_ in result}:
        of_all, of_groups = result[position, "all", None], [result[position, part.name, "group"] for part in parts]
        finite = [item for item in (of_all, *of_groups) if item is not None and math.isfinite(item)]
        assert len(finite) < 3 or close(sum(finite[1:]), of_all), (position, of_all, of_groups)
