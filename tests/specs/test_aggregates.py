"""Aggregates equal plain arithmetic on the values of groups."""

from __future__ import annotations

import math
import pickle
import re
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars

import tidyfair as tf
from tidyfair.specs import contrasts, spreads

if TYPE_CHECKING:
    from collections.abc import Callable


def readable(value: object) -> str:
    """An id of a test case that is the same in every process, without addresses of functions."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value) if isinstance(value, str) else repr(value))[:45]


SHARES = {"a": (1, 10), "b": (4, 10), "c": (12, 20), "d": (2, 4)}
"""Selected and all rows of each group: rates 0.1, 0.4, 0.6, 0.5."""
RATES = {group: selected / rows for group, (selected, rows) in SHARES.items()}
OVERALL = sum(selected for selected, _ in SHARES.values()) / sum(rows for _, rows in SHARES.values())


def rows(shares: dict[str, tuple[int, int]]) -> pl.DataFrame:
    groups = [(group, int(row < selected)) for group, (selected, all_of) in shares.items() for row in range(all_of)]
    return pl.DataFrame(groups, schema=["group", "estimate"], orient="row")


def rest(group: str) -> float:
    others = [SHARES[other] for other in SHARES if other != group]
    return sum(selected for selected, _ in others) / sum(count for _, count in others)


def explained(aggregate: Any, data: pl.DataFrame | None = None, by: Any = "group") -> dict[str, Any]:
    frame = rows(SHARES) if data is None else data
    metric = tf.demographic_parity(by, aggregate=aggregate)
    return metric(frame, estimate="estimate", explain=True, on_undefined="ignore").row(0, named=True)


ENTROPY = statistics.fmean(
    ((RATES[group] / OVERALL) ** 2 - 1) / 2 for group, (_, count) in SHARES.items() for _ in range(count)
)
"""Generalized entropy of the rates, each as often as its group has rows."""
FARTHEST = min(SHARES, key=lambda group: RATES[group] - rest(group))
CASES: list[tuple[Any, float, str | None, str | None]] = [
    (tf.difference(), 0.5, "a", "c"),
    (tf.difference(to="range"), 0.5, "a", "c"),
    (tf.difference(to="overall"), OVERALL - 0.1, "a", None),
    (tf.difference(to="overall", signed=True), 0.1 - OVERALL, "a", None),
    (tf.difference(to="rest"), abs(RATES["a"] - rest("a")), "a", None),
    (tf.difference(to="rest", signed=True), RATES["a"] - rest("a"), "a", None),
    (tf.difference(to="majority"), 0.5, "a", "c"),
    (tf.difference(to="b"), 0.3, "a", "b"),
    (tf.difference(to="b", signed=True), -0.3, "a", "b"),
    (tf.difference(to="a", signed=True), 0.5, "a", "c"),
    (tf.ratio(), 1 / 6, "a", "c"),
    (tf.ratio(to="overall"), 0.1 / OVERALL, "a", None),
    (tf.ratio(to="b"), 0.25, "a", "b"),
    (tf.ratio(to="b", signed=True), 0.25, "a", "b"),
    (tf.ratio(to="a"), 1 / 6, "a", "c"),
    (tf.ratio(to="a", signed=True), 6.0, "a", "c"),
    (tf.ratio(to="rest"), RATES["a"] / rest("a"), "a", None),
    (tf.aggregates.log_ratio(), math.log(6), "a", "c"),
    (tf.aggregates.group_mean(), 0.4, "a", "c"),
    (tf.aggregates.group_mean(weighted=True), OVERALL, "a", "c"),
    (tf.aggregates.generalized_entropy(), ENTROPY, "a", "c"),
    (tf.group_minimum(), 0.1, "a", "c"),
    (tf.group_maximum(), 0.6, "a", "c"),
    (tf.aggregates.standard_deviation(), statistics.pstdev(RATES.values()), "a", "c"),
    (
        tf.aggregates.coefficient_of_variation(),
        statistics.pstdev(RATES.values()) / statistics.fmean(RATES.values()),
        "a",
        "c",
    ),
    (tf.aggregates.mean_absolute_deviation(), statistics.fmean(abs(rate - 0.4) for rate in RATES.values()), "a", "c"),
    (pl.col(".estimate").max() - pl.col(".estimate").median(), 0.6 - 0.45, "a", "c"),
    (lambda groups: float((groups[".estimate"] * groups[".n"]).sum()), 19.0, "a", "c"),
]


def test_every_aggregate_has_a_case() -> None:
    functions = {name for module in (contrasts, spreads) for name in module.__all__}
    cases = {repr(aggregate).partition("(")[0] for aggregate, *_ in CASES}
    assert functions <= cases


@pytest.mark.parametrize(("aggregate", "expected", "low", "high"), CASES, ids=readable)
def test_aggregate_equals_plain_arithmetic_and_names_its_groups(
    aggregate: Any, expected: float, low: str | None, high: str | None
) -> None:
    result = explained(aggregate)
    assert result[".estimate"] == pytest.approx(expected, rel=1e-12)
    assert (result[".group_min"], result[".group_max"], result[".status"]) == (low, high, "ok")
    assert result[".n"] == 44


def test_expected_farthest_group_is_the_first() -> None:
    assert FARTHEST == "a"


def test_aggregate_sets_direction_of_the_metric() -> None:
    gap = {"sens": tf.sens, "miss_rate": tf.miss_rate}

    def direction(aggregate: Any, metric: str = "sens", by: Any = "g") -> str:
        return tf.new_groupwise_metric(gap[metric], "it", aggregate)(by).direction

    assert direction(tf.difference()) == "minimize"
    assert direction(tf.difference(to="overall", signed=True)) == "zero"
    assert direction(tf.ratio()) == "maximize"
    assert direction(tf.ratio(to="x", signed=True)) == "one"
    assert direction(tf.group_minimum()) == "maximize"
    assert direction(tf.group_maximum(), "miss_rate") == "minimize"
    assert direction(tf.difference(), by=tf.privileged(g="x")) == "zero"
    assert tf.new_groupwise_metric(tf.sens, "it", tf.difference(), "maximize")("g").direction == "maximize"


def test_reference_may_be_value_tuple_or_text() -> None:
    data = rows(SHARES).with_columns(number=pl.col("group").replace_strict({"a": 0, "b": 1, "c": 2, "d": 3}))
    assert explained(tf.difference(to=1, signed=True), data, "number")[".estimate"] == pytest.approx(-0.3)
    # 0 is a group, not a missing reference
    assert explained(tf.difference(to=0, signed=True), data, "number")[".estimate"] == pytest.approx(0.5)
    both = tf.demographic_parity("group", "number", aggregate=tf.difference(to=("b", 1), signed=True))
    text = tf.demographic_parity("group", "number", aggregate=tf.difference(to="b:1", signed=True))
    for metric in (both, text):
        assert metric(data, estimate="estimate")[".estimate"][0] == pytest.approx(-0.3)
    # a group that is called like a keyword is named by a tuple
    odd = rows({"rest": (1, 2), "x": (1, 4)})
    assert explained(tf.difference(to=("rest",), signed=True), odd)[".estimate"] == -0.25


def test_reference_absent_from_an_outer_group_gives_null() -> None:
    data = rows(SHARES).with_columns(fold=pl.col("group").is_in(["a", "b"]))
    gap = tf.demographic_parity("group", aggregate=tf.difference(to="a"))
    result = gap(data, estimate="estimate", group_by="fold", explain=True)
    assert result.select("fold", ".estimate", ".status").rows() == [
        (False, None, "no_reference"),
        (True, pytest.approx(0.3), "ok"),
    ]


@pytest.mark.parametrize("to", ["a", "majority", "overall", "rest", "range"])
def test_single_group_has_difference_0_and_ratio_1(to: str) -> None:
    alone = rows({"a": (1, 4)})
    assert explained(tf.difference(to=to), alone)[".estimate"] == 0.0
    assert explained(tf.ratio(to=to), alone)[".estimate"] == 1.0


def test_outer_group_with_an_empty_side_is_null() -> None:
    data = rows(SHARES).with_columns(fold=pl.col("group").replace_strict({"a": 1, "b": 2, "c": 2, "d": 2}))
    gap = tf.demographic_parity(tf.privileged(group=["a", "b"]))
    with pytest.warns(tf.errors.UndefinedWarning, match=r"no value on one of the sides of group=a\|b in \(fold=1\)"):
        result = gap(data, estimate="estimate", group_by="fold", explain=True)
    # one side alone compares with nothing
    expected = [(None, "too_few_groups"), (pytest.approx(14 / 24 - 0.4), "ok")]
    assert result.select(".estimate", ".status").rows() == expected
    lone = tf.demographic_parity(tf.privileged(group="c"))
    other = lone(data, estimate="estimate", group_by="fold", explain=True, on_undefined="ignore")
    assert other.select(".estimate", ".status").row(0) == (None, "no_reference")


@pytest.mark.parametrize("part", ["f", "m"])
def test_missing_side_is_null_in_frames_as_in_outer_groups(part: str, engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"estimate": [1, 0, 1, 1, 0], "sex": list("ffmmm"), "fold": list("aabbb")})
    gap = tf.demographic_parity(tf.privileged({"sex": "m"}, unprivileged={"sex": "f"}))
    outer = gap(data, estimate="estimate", group_by="fold", explain=True, on_undefined="ignore")
    alone = data.filter(sex=part)
    with pytest.warns(tf.errors.UndefinedWarning, match="'sex' is never"):
        result = as_polars(gap(engine(alone), estimate="estimate", explain=True))
    assert result.rows() == outer.filter(fold="a" if part == "f" else "b").drop("fold").rows()
    groups = as_polars(gap.by_group(engine(alone), estimate="estimate"))
    assert groups.select(".group", ".estimate").rows() == [
        ("unprivileged", 0.5) if part == "f" else ("privileged", pytest.approx(2 / 3))
    ]


def test_unprivileged_side_is_known_only_with_declared_values() -> None:
    data = pl.DataFrame({"estimate": [1, 0, 1], "sex": ["f"] * 3})
    sides = tf.privileged(sex="m")
    gap = tf.demographic_parity(sides)
    with pytest.warns(
        tf.errors.UndefinedWarning, match=r"'sex' is never 'm'. Its values: 'f'. If the value is correct, make the"
    ):
        assert gap(data, estimate="estimate")[".estimate"].item() is None
    # "m" may be a slip, so that who is not "m" may be anybody
    assert gap.by_group(data, estimate="estimate").select(".group", ".status").rows() == [("neither", "left_out")]
    with pytest.warns(tf.errors.UndefinedWarning, match="'sex' is never 'm'"):
        result = tf.selection_rate(data, estimate="estimate", group_by=sides)
    assert result["side"].to_list() == ["neither"]
    declared = data.cast({"sex": pl.Enum(["f", "m"])})
    with pytest.warns(tf.errors.UndefinedWarning, match="no rows are privileged, because its values never occur"):
        assert gap(declared, estimate="estimate")[".estimate"].item() is None
    assert gap.by_group(declared, estimate="estimate").select(".group", ".estimate").row(0) == ("unprivileged", 2 / 3)
    assert tf.selection_rate(declared, estimate="estimate", group_by=sides)["side"].to_list() == ["unprivileged"]
    with pytest.warns(tf.errors.UndefinedWarning):
        verdict = tf.check(gap, below=0.1)(declared, estimate="estimate")[".verdict"].item()
    assert verdict == "not enough evidence"


def test_privileged_value_that_never_occurs_gives_null() -> None:
    data = rows(SHARES)
    gap = tf.demographic_parity(tf.privileged(group=["a", "bb"]))
    with pytest.warns(tf.errors.UndefinedWarning, match="'group' is never 'bb'"):
        assert gap(data, estimate="estimate")[".estimate"].item() is None
    declared = data.cast({"group": pl.Enum([*SHARES, "bb"])})
    alone = tf.demographic_parity(tf.privileged(group="a"))(data, estimate="estimate")
    assert gap(declared, estimate="estimate")[".estimate"].item() == alone[".estimate"].item()


def test_privileged_condition_covering_all_or_no_rows_gives_null(loans: pl.DataFrame) -> None:
    everybody = tf.demographic_parity(tf.privileged(sex=["f", "m"]))
    with pytest.warns(
        tf.errors.UndefinedWarning, match="no rows are unprivileged, because all rows are on the other side"
    ):
        assert everybody(loans, estimate="estimate")[".estimate"].item() is None
    never = loans.filter(~((pl.col("sex") == "m") & (pl.col("race") == "rare")))
    nobody = tf.demographic_parity(tf.privileged({"sex": "m", "race": "rare"}))
    with pytest.warns(
        tf.errors.UndefinedWarning, match="no rows are privileged, because its values never occur together"
    ):
        assert nobody(never, estimate="estimate")[".estimate"].item() is None
    with pytest.raises(tf.errors.UndefinedError, match="never occur together"):
        nobody(never, estimate="estimate", on_undefined="raise")


def test_privileged_comparison_is_signed_by_default() -> None:
    sides = tf.privileged(group=["c", "d"])
    gap = (1 + 4) / 20 - (12 + 2) / 24
    assert explained(tf.difference(), by=sides)[".estimate"] == pytest.approx(gap)
    assert explained(tf.difference(signed=False), by=sides)[".estimate"] == pytest.approx(-gap)
    result = explained(tf.ratio(), by=sides)
    assert result[".estimate"] == pytest.approx((5 / 20) / (14 / 24))
    assert (result[".group_min"], result[".group_max"], result[".by"]) == ("unprivileged", "privileged", "group=c|d")


def test_reference_to_the_privileged_side_is_the_default() -> None:
    sides = tf.privileged(group=["c", "d"])
    for aggregate in (tf.difference, tf.ratio, tf.aggregates.log_ratio):
        for to in ("privileged", ("privileged",)):
            assert explained(aggregate(to=to), by=sides) == explained(aggregate(), by=sides)
    assert tf.privileged([{"group": "c"}, {"group": "d"}]) == tf.privileged({"group": "c"}, {"group": "d"})


def test_signed_metric_stays_signed_with_another_reference() -> None:
    named = tf.average_odds_difference("group", aggregate=tf.difference(to="a"))
    assert (named.direction, named.range) == ("zero", (-1, 1))
    assert tf.average_odds_difference("group", aggregate=tf.difference(to="a", signed=False)).direction == "minimize"


def test_rows_on_neither_side_are_excluded_and_reported() -> None:
    data = rows(SHARES).with_columns(
        group=pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise("group")  # the selected one of a
    )
    sides = tf.privileged({"group": "c"}, unprivileged=[{"group": "a"}])
    metric = tf.demographic_parity(sides)
    result = metric(data, estimate="estimate", explain=True).row(0, named=True)
    assert result[".estimate"] == pytest.approx(0 / 9 - 12 / 20)
    assert (result[".n"], result[".groups_left_out"], result[".by"]) == (29, ["neither"], "group=c vs group=a")
    groups = metric.by_group(data, estimate="estimate")
    assert groups.select(".group", ".estimate", ".n", ".status").rows() == [
        ("privileged", 0.6, 20, "ok"),
        ("unprivileged", 0.0, 9, "ok"),
        ("neither", None, 14, "left_out"),
        ("unknown", None, 1, "unknown"),
    ]
    # the rest and the whole are those of the two sides
    overall = tf.demographic_parity(sides, aggregate=tf.difference(to="overall"))
    expected = max(abs(0 - 12 / 29), abs(12 / 20 - 12 / 29))
    assert overall(data, estimate="estimate")[".estimate"][0] == pytest.approx(expected)


def test_ratios_with_zero_rates() -> None:
    nobody = rows({"a": (0, 5), "b": (0, 5)})
    result = explained(tf.ratio(), nobody)
    assert (result[".estimate"], result[".status"]) == (None, "zero_denominator")
    assert explained(tf.difference(), nobody)[".estimate"] == 0.0
    one = rows({"a": (0, 5), "b": (1, 5)})
    assert explained(tf.ratio(), one)[".estimate"] == 0.0
    result = explained(tf.ratio(to="a", signed=True), one)
    assert (result[".estimate"], result[".status"]) == (math.inf, "infinite")
    # against a reference of 0 unsigned is as bad as can be
    assert explained(tf.ratio(to="a"), one)[".estimate"] == 0.0
    assert explained(tf.aggregates.coefficient_of_variation(), nobody)[".status"] == "zero_denominator"


def test_across_combines_metrics_by_worst_or_mean() -> None:
    data = pl.DataFrame(
        {
            "t": [1] * 8 + [0] * 8,
            "e": [1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0],
            "g": ["a"] * 4 + ["b"] * 4 + ["a"] * 4 + ["b"] * 4,
        }
    )  # sens 3/4 and 1/4, fall_out 1/4 and 3/4

    def odds(**options: Any) -> float:
        both = tf.metric_set(tf.sens, tf.fall_out)
        return tf.new_groupwise_metric(both, "odds", tf.difference(**options))("g")(data, "t", "e")[".estimate"][0]

    assert odds() == 0.5
    assert odds(to="a", signed=True) == -0.5
    # a signed mean of opposite differences is no equality of odds
    assert odds(to="a", signed=True, across="mean") == 0.0
    assert odds(across="mean") == 0.5
    low = tf.new_groupwise_metric(tf.metric_set(tf.sens, tf.spec), "low", tf.group_minimum())
    assert low("g")(data, "t", "e")[".estimate"][0] == 0.25


def test_ties_within_rounding_are_broken_by_group_order() -> None:
    third = 1 / 3
    data = pl.DataFrame(
        {"g": ["b", "b", "a", "a", "c"], "e": [1, 0, 1, 0, 1], "w": [third, 1 - third, 0.1 + 0.2, 0.6, 1.0]}
    )
    result = tf.demographic_parity("g")(data, estimate="e", case_weights="w", explain=True)
    # 0.3 / 0.9 and 1/3 differ in the last digit only
    assert result[".group_min"][0] == "a"


def test_min_n_applies_to_the_denominator_of_the_rate(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"t": [1, 1, 1, 0, 0, 0, 0, 1], "e": [1, 0, 1, 1, 0, 0, 0, 1], "g": list("aaabbbbb")})
    given, gap = engine(data), tf.equal_opportunity("g", min_n=2)
    result = as_polars(gap(given, "t", "e", explain=True)).row(0, named=True)
    assert (result[".estimate"], result[".status"], result[".groups_left_out"]) == (None, "too_few_groups", ["b"])
    assert as_polars(gap.by_group(given, "t", "e"))[".status"].to_list() == ["ok", "below_min_n"]
    # all rows are the denominator of a selection rate
    assert tf.demographic_parity("g", min_n=3)(data, estimate="e")[".estimate"][0] == pytest.approx(2 / 3 - 2 / 5)


def test_user_function_receives_frame_of_group_values() -> None:
    seen: list[pl.DataFrame] = []

    def spread(groups: pl.DataFrame) -> float:
        seen.append(groups)
        return 1.0

    data = pl.DataFrame({"t": [1, 1, 0, 0, 1], "e": [1, 0, 1, 0, 1], "g": [7, 8, 7, 8, 8], "f": [1, 1, 1, 1, 2]})
    metric = tf.new_groupwise_metric(tf.metric_set(tf.sens, tf.spec), "own", spread)("g")
    result = metric(data, "t", "e", group_by="f", on_undefined="ignore", explain=True)
    # not called where the rule already says null: one of two metrics has no value in the second fold
    assert result.select(".estimate", ".status").rows() == [(1.0, "ok"), (None, "too_few_groups")]
    (groups,) = seen
    assert groups.columns == [
        "g", ".group", ".metric", ".estimator", ".estimate", ".n", ".denominator", ".overall"
    ]  # fmt: skip
    assert groups.select("g", ".group", ".metric", ".estimate", ".overall").rows() == [
        (7, "7", "sens", 1.0, 0.5),
        (8, "8", "sens", 0.0, 0.5),
        (7, "7", "spec", 0.0, 0.5),
        (8, "8", "spec", 1.0, 0.5),
    ]


def test_expression_aggregate_over_many_outer_groups() -> None:
    data = rows(SHARES).join(pl.DataFrame({"draw": range(300)}), how="cross")
    metric = tf.demographic_parity("group", aggregate=pl.col(".estimate").max() - pl.col(".overall").first())
    result = metric(data, estimate="estimate", group_by="draw")
    assert result[".estimate"].to_list() == pytest.approx([0.6 - OVERALL] * 300)


def test_multiclass_disparity_reports_the_worst_label() -> None:
    data = pl.DataFrame({"e": list("xxxyyz") + list("xyyyzz"), "g": ["a"] * 6 + ["b"] * 6}).with_columns(t=pl.col("e"))
    parity = tf.demographic_parity("g")
    result = parity(data, "t", "e", explain=True).row(0, named=True)
    assert result[".estimator"] == "one_vs_rest"
    assert result[".estimate"] == pytest.approx(2 / 6)
    assert (result[".level"], result[".group_min"], result[".group_max"]) == ("x", "b", "a")
    levels = parity.by_group(data, "t", "e")
    assert levels.filter(pl.col(".group") == "a")[".estimate"].to_list() == pytest.approx([3 / 6, 2 / 6, 1 / 6])
    mean = tf.demographic_parity("g", aggregate=tf.difference(across="mean"))(data, "t", "e")
    assert mean[".estimate"][0] == pytest.approx((2 / 6 + 1 / 6 + 1 / 6) / 3)
    # yardstick's number: the macro average is one third in every group
    with pytest.warns(tf.errors.ConstantWarning, match="demographic_parity cannot vary"):
        constant = parity(data, "t", "e", estimator="macro")
    assert constant[".estimate"][0] == pytest.approx(0, abs=1e-15)
    one = parity(data, "t", "e", pos_label="z")
    assert one.select(".estimator", ".estimate").row(0) == ("binary", pytest.approx(1 / 6))
    every = tf.metric_set(tf.accuracy.difference("g"), tf.equalized_odds("g"))
    assert every(data, "t", "e", estimator="one_vs_rest")[".estimator"].to_list() == ["one_vs_rest"] * 2


def test_group_with_zero_label_weight_is_null() -> None:
    frame = pl.DataFrame({"truth": ["no", "no", None], "estimate": ["no", "no", "no"], "group": ["a", "a", "b"]})
    options: dict[str, Any] = {
        "labels": ["no", "yes", "maybe"],
        "estimator": "macro_weighted",
        "on_undefined": "ignore",
    }
    gap = tf.demographic_parity("group")
    assert gap(frame, "truth", "estimate", explain=True, **options).select(".estimate", ".status").rows() == [
        (None, "too_few_groups")
    ]
    assert gap.by_group(frame, "truth", "estimate", **options)[".status"].to_list() == ["ok", "zero_denominator"]


# Custom aggregates

VALUE = pl.col(".estimate")


def largest_less_smallest(groups: pl.DataFrame) -> float:
    values = groups[".estimate"].to_list()
    return max(values) - min(values)


def test_new_aggregate_options_set_direction_and_range() -> None:
    cases: list[tuple[dict[str, Any], str, float | None, bool, tuple[float, float]]] = [
        ({}, "minimize", None, False, (-math.inf, math.inf)),
        ({"equal": 0}, "minimize", 0, True, (0, math.inf)),
        ({"equal": 1}, "maximize", 1, True, (-math.inf, 1)),
        ({"equal": 1, "direction": "minimize"}, "minimize", 1, True, (1, math.inf)),
        ({"direction": "zero"}, "zero", 0, False, (-math.inf, math.inf)),
        ({"direction": "one"}, "one", 1, False, (-math.inf, math.inf)),
        ({"direction": "maximize"}, "maximize", None, False, (-math.inf, math.inf)),
    ]
    for options, direction, equality, is_distance, limits in cases:
        made = tf.new_aggregate(largest_less_smallest, **options)
        metric = tf.demographic_parity("group", aggregate=made)
        assert (metric.direction, made.equality, made.is_distance, metric.range) == (
            direction, equality, is_distance, limits,
        )  # fmt: skip
    of_factory = tf.new_groupwise_metric(tf.sens, "own", largest_less_smallest, "maximize")("g")
    assert (of_factory.direction, of_factory.aggregate) == (
        "maximize", tf.new_aggregate(largest_less_smallest, direction="maximize"),
    )  # fmt: skip


def test_is_distance_of_library_aggregates() -> None:
    signed = tf.difference(to="a", signed=True)
    assert all(
        item.is_distance
        for item in (tf.difference(), tf.ratio(), tf.aggregates.log_ratio(), tf.aggregates.standard_deviation())
    )
    assert not any(item.is_distance for item in (signed, tf.ratio(to="a", signed=True), tf.aggregates.group_mean()))


def test_custom_difference_and_ratio_equal_library_aggregates() -> None:
    pairs = [
        (tf.new_aggregate(largest_less_smallest, equal=0), tf.difference()),
        (tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0), tf.difference()),
        (tf.new_aggregate(VALUE.min() / VALUE.max(), equal=1), tf.ratio()),
    ]
    for data in (rows(SHARES), rows({"a": (1, 4)})):
        for own, known in pairs:
            assert explained(own, data) == explained(known, data)


def test_custom_aggregate_of_a_single_group_is_equality() -> None:
    def second_less_first(groups: pl.DataFrame) -> float:
        return abs(groups[".estimate"][1] - groups[".estimate"][0])

    alone = explained(tf.new_aggregate(second_less_first, equal=0), rows({"a": (1, 4)}))
    assert (alone[".estimate"], alone[".status"], alone[".group_min"]) == (0.0, "ok", "a")


def test_worst_label_of_custom_ratio_is_the_smallest() -> None:
    data = pl.DataFrame({"e": list("xxxyyz") + list("xyyyzz"), "g": ["a"] * 6 + ["b"] * 6}).with_columns(t=pl.col("e"))
    own = tf.new_aggregate(VALUE.min() / VALUE.max(), equal=1)
    result, known = (
        tf.demographic_parity("g", aggregate=item)(data, "t", "e", explain=True).row(0, named=True)
        for item in (own, tf.ratio())
    )
    assert result[".estimate"] == pytest.approx(1 / 3)
    assert (result[".estimate"], result[".level"]) == (pytest.approx(known[".estimate"]), known[".level"])


def test_custom_aggregates_compare_and_pickle_by_value() -> None:
    made = tf.new_aggregate(largest_less_smallest, "range", equal=0)
    assert repr(made) == "range"
    assert made == tf.new_aggregate(largest_less_smallest, "range", equal=0)
    assert made != tf.new_aggregate(largest_less_smallest, "range", equal=0, direction="zero")
    assert made != tf.new_aggregate(largest_less_smallest, "range")
    of_values = tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0)
    for item in (made, of_values):
        again = pickle.loads(pickle.dumps(item))  # noqa: S301 - our own
        assert (again, hash(again)) == (item, hash(item))
    assert len({of_values, tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0), made}) == 2


ODD_AGGREGATES: list[tuple[Any, dict[str, Any], str]] = [
    (3, {}, "an aggregate is"),
    (tf.difference(), {"equal": 0}, "an aggregate is"),
    (tf.difference, {}, "lacks parentheses"),
    (VALUE.max(), {"name": ""}, "`name` is a non-empty text"),
    (VALUE.max(), {"equal": "0"}, "`equal` is a finite number"),
    (VALUE.max(), {"equal": math.nan}, "`equal` is a finite number"),
    (VALUE.max(), {"equal": 2}, "2 may be the smallest or the largest"),
    (VALUE.max(), {"direction": "down"}, "'down'"),
    (VALUE.max(), {"equal": 1, "direction": "zero"}, "requires `equal=0`, not 1"),
]


@pytest.mark.parametrize(("function", "options", "expected"), ODD_AGGREGATES, ids=readable)
def test_new_aggregate_rejects_bad_arguments(function: Any, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(tf.errors.TidyfairError, match=expected):
        tf.new_aggregate(function, **options)


@pytest.mark.parametrize(("function", "equal"), [(VALUE.min() - VALUE.max(), 0), (VALUE.max() / VALUE.min(), 1)])
def test_custom_distance_beyond_equality_raises(function: pl.Expr, equal: float) -> None:
    with pytest.raises(tf.errors.AggregateError, match='use the direction "zero" or "one"'):
        explained(tf.new_aggregate(function, equal=equal))


def test_base_metric_names_the_worst_metric() -> None:
    people = pl.DataFrame(
        {"y": [1, 1, 0, 0] * 4, "p": [1, 1, 1, 0] * 2 + [1, 0, 1, 0] * 2, "g": list("aaaaaaaabbbbbbbb")}
    )
    asked = tf.metric_set(tf.accuracy, tf.equalized_odds("g"), tf.average_abs_odds_difference("g"))
    result = asked(people, "y", "p", explain=True)
    assert result[".base_metric"].to_list() == [None, "sens", None]
    assert ".base_metric" not in asked(people, "y", "p").columns
    assert tf.equal_opportunity("g")(people, "y", "p", explain=True)[".base_metric"].to_list() == [None]


NO_NEGATIVES = pl.DataFrame({"g": ["a"] * 40 + ["b"] * 80, "t": [1] * 80 + [0] * 40, "e": [1] * 40 + [0] * 80})
"""All of group a are positive and selected, none of group b is selected: sens differs by 1, spec has one group."""
UNRELATED = pl.DataFrame({"g": ["c"] * 80, "t": [0, 1] * 40, "e": [0, 1] * 40})


def test_worst_metric_skips_metrics_defined_in_fewer_than_two_groups() -> None:
    odds = tf.equalized_odds("g")
    with pytest.warns(
        tf.errors.UndefinedWarning, match="equalized_odds by g is the worst of the other metrics, .* spec"
    ):
        result = odds(NO_NEGATIVES, "t", "e", explain=True).row(0, named=True)
    assert (result[".estimate"], result[".base_metric"], result[".status"]) == (1.0, "sens", "metrics_left_out")
    assert (result[".metrics_left_out"], result[".groups_left_out"]) == (["spec"], ["a"])
    # yardstick's rule
    assert odds(NO_NEGATIVES, "t", "e", on_undefined="null")[".estimate"].to_list() == [None]
    # no metric can be compared
    positives = NO_NEGATIVES.filter(pl.col("g") == "a")
    nothing = pl.concat([positives, positives.with_columns(g=pl.lit("b"), t=pl.lit(0, pl.Int64))])
    assert odds(nothing, "t", "e", on_undefined="ignore")[".estimate"].to_list() == [None]


@pytest.mark.parametrize("data", [NO_NEGATIVES, pl.concat([NO_NEGATIVES, UNRELATED])], ids=["two groups", "a third"])
def test_check_fails_whether_or_not_an_unrelated_group_is_present(data: pl.DataFrame) -> None:
    with pytest.warns(tf.errors.UndefinedWarning, match="spec"):
        result = tf.check(tf.equalized_odds("g"), below=0.1)(data, "t", "e")
    assert result[".verdict"].to_list() == ["fail"]


def test_check_does_not_pass_when_a_metric_is_left_out() -> None:
    same = pl.DataFrame({"g": ["a"] * 4000 + ["b"] * 4000, "t": [1] * 6000 + [0] * 2000})
    same = same.with_columns(e=pl.when(pl.col("t") == 1).then(pl.int_range(pl.len()) % 2).otherwise(0))
    with pytest.warns(tf.errors.UndefinedWarning, match="spec"):
        result = tf.check(tf.equalized_odds("g"), below=0.2)(same, "t", "e")
    assert result[".upper"].item() < 0.1
    assert result[".verdict"].to_list() == ["not enough evidence"]


def test_reference_lacking_one_rate_is_compared_by_the_others() -> None:
    data = pl.concat([NO_NEGATIVES, UNRELATED])
    odds = tf.equalized_odds("g", aggregate=tf.difference(to="a"))
    result = odds(data, "t", "e", explain=True, on_undefined="ignore", interval="auto").row(0, named=True)
    # of those in the group a all are found, in b nobody
    assert (result[".estimate"], result[".metrics_left_out"]) == (1.0, ["spec"])
    assert 0.8 < result[".lower"] < result[".upper"] == 1.0


def test_mean_across_metrics_is_null_when_one_is_undefined() -> None:
    result = tf.average_abs_odds_difference("g")(NO_NEGATIVES, "t", "e", explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "too_few_groups")


def test_sides_are_assigned_before_incomplete_rows_are_dropped() -> None:
    data = pl.DataFrame(
        {"t": [1, 0, 1, 0, 1, 0, 1, 0, None], "s": [0.9, 0.1, 0.4, 0.6, 0.8, 0.3, 0.2, 0.5, 0.7], "g": [*"aaaaccccb"]}
    )
    sides = tf.privileged(g=["a", "b"])
    # by hand: of the four pairs of a three are in order, of those of c two
    assert tf.auc_parity(sides).by_group(data, "t", probs="s")[".estimate"].to_list() == [0.75, 0.5]
    assert tf.auc_parity(sides)(data, "t", probs="s")[".estimate"].item() == pytest.approx(-0.25)
    named = tf.privileged({"g": ["a", "b"]}, unprivileged={"g": "c"})
    assert tf.abroca(sides)(data, "t", probs="s")[".estimate"].item() == pytest.approx(
        tf.abroca(named)(data, "t", probs="s")[".estimate"].item()
    )


def test_undefined_difference_of_disparities_names_no_groups() -> None:
    data = pl.DataFrame({"t": [0] * 4, "e": [1, 0, 0, 0], "g": [*"aabb"]})
    less = tf.new_groupwise_metric(tf.metric_set(tf.fall_out, tf.sens), "x", tf.difference(), less=tf.sens)("g")
    result = less(data, "t", "e", explain=True, on_undefined="ignore").row(0, named=True)
    assert result[".estimate"] is None
    assert (result[".group_min"], result[".group_max"], result[".base_metric"]) == (None, None, None)
    assert result[".metrics_left_out"] == []
