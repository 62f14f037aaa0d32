"""Small and unknown groups are listed and not compared: what is left is what a filter leaves."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable


CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
LOANS = lending(1_500).with_columns(
    race=pl.when(pl.int_range(pl.len()) % 40 == 0)
    .then(pl.lit("Prefer not to say"))
    .when(pl.int_range(pl.len()) % 55 == 0)
    .then(None)
    .otherwise(pl.col("race").cast(pl.String))
)
KNOWN = LOANS.filter(pl.col("race").is_not_null() & (pl.col("race") != "Prefer not to say"))
METRICS = tf.metric_set(tf.selection_rate, tf.f_meas, tf.roc_auc)


@pytest.mark.parametrize("unknown", ["apart", "drop"])
@pytest.mark.parametrize("options", [{}, {"to": "overall"}, {"to": "rest"}, {"to": "majority"}, {"to": "White"}])
def test_unknown_groups_are_part_of_no_comparison(unknown: Any, options: dict[str, Any]) -> None:
    call: dict[str, Any] = CALL | {"probs": "score"}
    result = METRICS.difference("race", **options, unknown=unknown)(LOANS, **call)
    assert_frame_equal(result, METRICS.difference("race", **options)(KNOWN, **call))
    # replicates draw all rows, so that only intervals in closed form are the same to the last digit
    metrics = tf.metric_set(tf.selection_rate, tf.accuracy)
    limits = metrics.difference("race", **options, unknown=unknown)(LOANS, **CALL, interval="auto")
    assert_frame_equal(limits, metrics.difference("race", **options)(KNOWN, **CALL, interval="auto"))


def test_unknown_groups_are_listed_unless_they_are_dropped() -> None:
    parity = tf.demographic_parity("race", unknown="apart")
    groups = parity.by_group(LOANS, **CALL)
    unknown = groups.filter(pl.col(".status") == "unknown")
    assert unknown.select("race", ".n", ".estimate").rows() == [("Prefer not to say", 38, None), (None, 24, None)]
    assert set(unknown[".group"]) == {"Prefer not to say", "null"}
    dropped = tf.demographic_parity("race", unknown="drop").by_group(LOANS, **CALL)
    assert_frame_equal(dropped, groups.filter(pl.col(".status") == "ok"))
    # no disparity is about them, so that none is left out
    assert parity(LOANS, **CALL, explain=True)[".groups_left_out"].to_list() == [[]]


def test_a_combination_is_unknown_if_a_part_of_it_is() -> None:
    crossed = tf.demographic_parity("sex", "race", unknown="apart").by_group(LOANS, **CALL)
    is_unknown = pl.col("race").is_null() | (pl.col("race") == "Prefer not to say")
    assert crossed.filter(is_unknown)[".status"].unique().to_list() == ["unknown"]
    assert crossed.filter(~is_unknown)[".status"].unique().to_list() == ["ok"]


def test_values_that_mean_unknown_are_those_that_are_named() -> None:
    named = tf.demographic_parity("race", unknown="apart", unknown_values=["Native"])
    statuses = dict(named.by_group(LOANS, **CALL).select(".group", ".status").rows())
    assert {group for group, status in statuses.items() if status == "unknown"} == {"Native", "null"}
    numbers = LOANS.with_columns(age=pl.Series([30, 40, -9] * 500))
    coded = tf.demographic_parity("age", unknown="apart", unknown_values=[-9]).by_group(numbers, **CALL)
    assert coded.filter(age=-9)[".status"].item() == "unknown"


def test_a_share_of_the_rows_is_of_all_rows_of_the_outer_group() -> None:
    people = pl.DataFrame({
        "fold": [1] * 100 + [2] * 50, "g": ["a"] * 97 + ["b"] * 3 + ["a"] * 47 + ["b"] * 3, "hired": [1, 0] * 75,
    })  # fmt: skip
    groups = tf.demographic_parity("g", min_share=0.05).by_group(people, estimate="hired", group_by="fold")
    statuses = groups.select("fold", "g", ".status").rows()
    assert statuses == [(1, "a", "ok"), (1, "b", "below_min_share"), (2, "a", "ok"), (2, "b", "ok")]
    excluded = tf.demographic_parity("g", min_share=0.05)(people.filter(fold=1), estimate="hired", explain=True)
    assert excluded.select(".groups_left_out").item().to_list() == ["b"]


def test_small_groups_are_those_that_a_metric_of_rows_leaves_out() -> None:
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    share = LOANS["race"].value_counts().filter(race="Native")["count"].item() / len(LOANS)
    for factory in (tf.distributions.kolmogorov_smirnov, tf.abroca):
        small = factory("race", min_share=share + 0.001)(LOANS, **call, explain=True)
        assert "Native" in small[".groups_left_out"].item().to_list()


def test_gates_judge_the_groups_that_are_known() -> None:
    loans = pl.concat([lending(4_000).with_columns(pl.col("sex").cast(pl.String)), lending(3).with_columns(sex=None)])
    gate = tf.check(tf.demographic_parity("sex", unknown="apart"), below=0.3)
    assert gate(loans, **CALL)[".verdict"].item() == "pass"
    assert tf.check(tf.demographic_parity("sex"), below=0.3)(loans, **CALL)[".verdict"].item() == "pass"
    grouped = tf.check(tf.demographic_parity("sex", unknown="group"), below=0.3)
    assert grouped(loans, **CALL)[".verdict"].item() != "pass"


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_any_frame_has_the_same_unknown_groups(convert: Any) -> None:
    data = LOANS.with_columns(pl.col(pl.Enum).cast(pl.String))
    parity = tf.demographic_parity("race", "sex", unknown="apart", min_share=0.02)
    assert_frame_equal(
        as_polars(parity.by_group(convert(data), **CALL)), parity.by_group(data, **CALL), check_dtypes=False
    )


def test_by_group_joins_back_to_the_data() -> None:
    set_of_two = tf.metric_set(tf.accuracy, tf.sens.difference("sex", "race"), tf.spec.difference("race"))
    groups = set_of_two.by_group(LOANS, **CALL)
    assert groups.columns[:5] == [".metric", ".by", "sex", "race", ".group"]
    crossed = groups.filter(pl.col(".by") == "sex:race")
    joined = LOANS.join(crossed, on=["sex", "race"], how="left", nulls_equal=True)
    assert joined[".n"].null_count() == 0
    assert groups.filter(pl.col(".by") == "race")["sex"].null_count() == groups["race"].n_unique()
    assert groups.filter(pl.col(".by").is_null()).select("sex", "race").row(0) == (None, None)


def test_a_feature_called_like_a_column_of_results_is_in_the_text_of_the_group() -> None:
    data = LOANS.rename({"race": ".estimate"})
    groups = tf.demographic_parity(".estimate").by_group(data, **CALL)
    assert groups.columns.count(".estimate") == 1
    assert set(groups[".group"]) == {str(race).replace("None", "null") for race in LOANS["race"].unique()}


def test_comparisons_show_which_groups_are_unknown() -> None:
    assert repr(tf.demographic_parity("race").by) == "'race'"
    assert repr(tf.demographic_parity("race", unknown="apart").by) == "'race'"
    assert repr(tf.demographic_parity("race", unknown="group", min_n=5).by) == "'race', min_n=5, unknown='group'"
    assert repr(tf.demographic_parity("race", unknown="drop", unknown_values=["?"]).by) == (
        "'race', unknown='drop', unknown_values=['?']"
    )


REFUSED: dict[str, dict[str, Any]] = {
    "another word": {"unknown": "skip"},
    "values of groups that are compared": {"unknown": "group", "unknown_values": ["x"]},
    "a text of values": {"unknown": "apart", "unknown_values": "x"},
    "no values": {"unknown": "apart", "unknown_values": [[1]]},
    "a negative share": {"min_share": -0.1},
    "a share in percent": {"min_share": 2},
    "part of a row": {"min_n": 2.5},
    "fewer than no rows": {"min_n": -1},
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(tf.errors.ArgumentError):
        tf.demographic_parity("race", **REFUSED[case])
    with pytest.raises(tf.errors.ArgumentError):
        tf.accuracy.difference("race", **REFUSED[case])


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "the treatment": ({"unknown": "aprt"}, "`unknown=` must be 'group', 'apart' or 'drop', not 'aprt'"),
    "the values": ({"unknown_values": "x"}, "demographic_parity: `unknown_values` is a list of values of the feature"),
    "the values of groups that are compared": (
        {"unknown": "group", "unknown_values": ["x"]}, '`unknown_values` needs `unknown="apart"` or `unknown="drop"`',
    ),
    "the number of rows": ({"min_n": 2.5}, "demographic_parity: `min_n` is a whole number, 0 or more, not 2.5"),
    "the share": ({"min_share": 2}, "`min_share` is a number from 0 to 1, not 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_errors_of_the_policy_name_the_setting_and_the_way_out(case: str) -> None:
    settings, message = MISTAKES[case]
    with pytest.raises(tf.errors.ArgumentError, match=message):
        tf.demographic_parity("race", **settings)


def test_values_that_mean_unknown_must_fit_the_feature() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="-9"):
        tf.demographic_parity("race", unknown_values=[-9])(LOANS, **CALL)


def test_tests_of_rates_leave_out_the_groups_that_metrics_do() -> None:
    options: dict[str, Any] = {"unknown": "apart", "min_share": 0.05}
    large = KNOWN.filter(pl.len().over("race") >= 0.05 * len(LOANS))
    for test in (tf.inference.pairwise, tf.inference.worst_groups, tf.inference.disparity_test):
        result = test(tf.equal_opportunity("race", unknown="apart"))(LOANS, **CALL)
        assert_frame_equal(result, test(tf.equal_opportunity("race"))(KNOWN, **CALL))
    within = tf.inference.stratified(tf.demographic_parity("race", unknown="apart"), within="sex")(LOANS, **CALL)
    assert_frame_equal(within, tf.inference.stratified(tf.demographic_parity("race"), within="sex")(KNOWN, **CALL))
    compared = tf.inference.pairwise(tf.demographic_parity("race", **options))(LOANS, **CALL)
    assert_frame_equal(compared, tf.inference.pairwise(tf.demographic_parity("race"))(large, **CALL))


POLICIES: dict[str, tuple[dict[str, Any], pl.DataFrame]] = {
    "known": ({}, KNOWN),
    "dropped": ({"unknown": "drop"}, KNOWN),
    "large": (
        {"unknown": "drop", "min_share": 0.05}, KNOWN.filter(pl.len().over("race") >= 0.05 * len(LOANS)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", POLICIES)
def test_monitors_compare_the_groups_that_metrics_do(case: str) -> None:
    options, compared = POLICIES[case]
    result = tf.inference.monitor(tf.demographic_parity("race", **options), below=0.1)(LOANS, **CALL)
    expected = tf.inference.monitor(tf.demographic_parity("race"), below=0.1)(compared, **CALL)
    assert result.select(".n", ".estimate").rows() == expected.select(".n", ".estimate").rows()


@pytest.mark.parametrize("case", POLICIES)
def test_errors_are_tried_in_the_groups_that_are_known(case: str) -> None:
    options, compared = POLICIES[case]
    parity = tf.demographic_parity("race", **options)
    result = tf.inference.verdict_sensitivity(parity, below=0.1)(LOANS, **CALL)
    assert result[".estimate"].unique().to_list() == parity(compared, **CALL)[".estimate"].to_list()
    assert set(result[".group"]) == set(KNOWN["race"])
    assert set(result[".to"]) <= set(compared["race"])
    if "min_share" not in options:
        assert_frame_equal(result, tf.inference.verdict_sensitivity(parity, below=0.1)(compared, **CALL))


@pytest.mark.parametrize("case", POLICIES)
def test_disparities_of_models_are_of_the_groups_that_metrics_compare(case: str) -> None:
    options, compared = POLICIES[case]
    models: dict[str, Any] = {"one": "approved", "others": ["never"], "pos_label": "yes"}
    choice = tf.compare_models(tf.demographic_parity("race", **options), adjust="max_t")
    result = choice(LOANS.with_columns(never=pl.lit("no")), "repaid", **models)
    expected = choice(compared.with_columns(never=pl.lit("no")), "repaid", **models)
    apart = [".n_missing", ".groups_left_out"]
    assert_frame_equal(result.drop(apart), expected.drop(apart))
    rates: list[float] = compared.group_by("race").agg(pl.col("approved").eq("yes").mean())["approved"].to_list()
    assert result.select(".one", ".other").row(0) == pytest.approx((max(rates) - min(rates), 0))
    assert result[".n"].to_list() == [len(compared)]


def test_a_search_that_compares_no_group_has_nothing_to_draw() -> None:
    people = pl.DataFrame({"g": ["unknown", "a"] * 20, "hired": [1, 0, 0, 1] * 10})
    found = tf.inference.subgroup_search(tf.selection_rate, ["g"])(people, estimate="hired", times=20)
    assert set(found[".status"]) == {"unknown", "no_other_group"}
    with pytest.raises(tf.errors.ArgumentError, match="nothing to draw: no subgroup is compared"):
        tf.autoplot(found)


ANSWERS = pl.DataFrame({
    "race": ["a"] * 10 + ["b"] * 10 + ["Unknown"] * 4 + ["n/a"] * 3 + [None] * 2 + ["c"],
    "sex": ["f", "m"] * 15,
    "hired": [1] * 6 + [0] * 4 + [1] * 3 + [0] * 7 + [1] * 9 + [0],
})  # fmt: skip


def notices(call: Callable[[], object]) -> list[str]:
    """What a call says about people of unknown groups."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught if warning.category is tf.errors.UnknownGroupWarning]


def test_a_call_says_once_how_many_people_are_unknown_and_by_which_values() -> None:
    (notice,) = notices(lambda: tf.demographic_parity("race")(ANSWERS, estimate="hired"))
    assert notice.startswith("race is unknown in 9 of 30 rows ('Unknown', 'n/a', missing): these rows are counted")
    assert '`unknown="group"` compares them' in notice
    assert '`unknown="drop"` leaves them out without notice' in notice
    both = tf.metric_set(
        tf.demographic_parity("race"), tf.selection_rate.ratio("race"), tf.demographic_parity("sex", "race")
    )
    (notice,) = notices(lambda: both(ANSWERS, estimate="hired"))
    assert notice.count("is unknown in 9 of 30 rows") == 2
    sites = ANSWERS.with_columns(site=pl.col("sex"))
    (notice,) = notices(lambda: both(sites, estimate="hired", group_by="site"))
    assert "race is unknown in 9 of 30 rows" in notice


def test_the_notice_names_the_values_that_mean_unknown() -> None:
    (notice,) = notices(lambda: tf.demographic_parity("race", unknown_values=["c"])(ANSWERS, estimate="hired"))
    assert "race is unknown in 3 of 30 rows ('c', missing)" in notice
    missing = ANSWERS.filter(pl.col("race").is_null() | pl.col("race").is_in(["a", "b"]))
    (notice,) = notices(lambda: tf.demographic_parity("race")(missing, estimate="hired"))
    assert "race is unknown in 2 of 22 rows (missing)" in notice


def test_the_notice_counts_rows_and_not_lines_of_data() -> None:
    (notice,) = notices(
        lambda: tf.demographic_parity("race")(
            ANSWERS.with_columns(n=pl.lit(1_000)), estimate="hired", frequency_weights="n"
        )
    )
    assert "9,000 of 30,000 rows" in notice


@pytest.mark.parametrize("unknown", ["group", "drop"])
def test_rows_that_are_compared_or_dropped_are_no_news(unknown: Any) -> None:
    assert notices(lambda: tf.demographic_parity("race", unknown=unknown)(ANSWERS, estimate="hired")) == []


def test_the_notice_is_silenced_like_other_warnings() -> None:
    parity = tf.demographic_parity("race")
    assert notices(lambda: parity(ANSWERS, estimate="hired", on_undefined="ignore")) == []
    models = tf.compare_models(parity)
    call: dict[str, Any] = {"one": "hired", "other": "other"}
    data = ANSWERS.with_columns(other=pl.col("hired").shift(1, fill_value=0))
    assert len(notices(lambda: models(data, **call))) == 1
    assert notices(lambda: models(data, **call, on_undefined="ignore")) == []
    (notice,) = notices(lambda: parity(ANSWERS, estimate="hired"))
    assert notice.endswith('(on_undefined="ignore" silences this.)')
    pairs = tf.inference.pairwise(parity)
    assert notices(lambda: pairs(ANSWERS, estimate="hired", on_undefined="ignore")) == []
    assert len(notices(lambda: pairs(ANSWERS, estimate="hired"))) == 1
    # which is no option of this
    (notice,) = notices(lambda: tf.inference.disparity_test(parity)(ANSWERS, estimate="hired"))
    assert notice.endswith('`unknown="drop"` leaves them out without notice.')


def test_data_of_known_people_and_listed_groups_need_no_notice() -> None:
    parity = tf.demographic_parity("race")
    assert notices(lambda: parity(ANSWERS.filter(pl.col("race").is_in(["a", "b"])), estimate="hired")) == []
    assert notices(lambda: tf.demographic_parity("sex")(ANSWERS, estimate="hired")) == []
    # their rows show them
    assert notices(lambda: parity.by_group(ANSWERS, estimate="hired")) == []
    compared = tf.compare_groups(tf.selection_rate, by="race")
    assert notices(lambda: compared(ANSWERS, estimate="hired")) == []
    assert {"Unknown", "n/a", "null"} <= set(compared(ANSWERS, estimate="hired")[".group"])


@pytest.mark.parametrize("verb", ["pairwise", "stratified", "monitor", "verdict_sensitivity", "compare_models"])
def test_every_verb_says_so_once(verb: str) -> None:
    parity = tf.demographic_parity("race")
    data = ANSWERS.with_columns(truth=pl.col("hired").reverse(), other=pl.col("hired").shift(1, fill_value=0))
    calls: dict[str, Callable[[], object]] = {
        "pairwise": lambda: tf.inference.pairwise(parity)(data, estimate="hired"),
        "stratified": lambda: tf.inference.stratified(parity, within="sex")(data, estimate="hired"),
        "monitor": lambda: tf.inference.monitor(parity, below=0.5)(data, estimate="hired"),
        "verdict_sensitivity": lambda: tf.inference.verdict_sensitivity(parity, below=0.5)(data, estimate="hired"),
        "compare_models": lambda: tf.compare_models(parity)(data, "truth", one="hired", other="other"),
    }
    (notice,) = notices(calls[verb])
    assert "race is unknown in 9 of 30 rows" in notice


def test_groups_outside_are_the_unknown_and_the_small_ones() -> None:
    call: dict[str, Any] = {"estimate": "hired", "explain": True}
    row = tf.demographic_parity("race", min_n=2)(ANSWERS, **call).row(0, named=True)
    assert row[".estimate"] == pytest.approx(0.6 - 0.3)
    assert row[".n"] == 20
    assert sorted(row[".groups_outside"]) == ["Unknown", "c", "n/a", "null"]
    assert row[".groups_left_out"] == ["c"]
    shares = tf.demographic_parity("race", min_share=0.1)(ANSWERS, **call).row(0, named=True)
    assert (sorted(shares[".groups_outside"]), shares[".estimate"]) == (["Unknown", "c", "n/a", "null"], 0.3)
    dropped = tf.demographic_parity("race", min_n=2, unknown="drop")(ANSWERS, **call).row(0, named=True)
    assert (dropped[".groups_outside"], dropped[".estimate"]) == (["c"], row[".estimate"])
    grouped = tf.demographic_parity("race", unknown="group")(ANSWERS, **call).row(0, named=True)
    # all people with an unknown group were hired, and the one of c was not
    assert (grouped[".groups_outside"], grouped[".estimate"]) == ([], 1)
    assert ".groups_outside" not in tf.demographic_parity("race")(ANSWERS, estimate="hired").columns


def test_groups_without_a_value_are_not_outside_the_policy() -> None:
    data = ANSWERS.with_columns(truth=pl.when(pl.col("race") == "c").then(0).otherwise(1))
    row = tf.equal_opportunity("race")(data, "truth", "hired", explain=True, on_undefined="null").row(0, named=True)
    assert sorted(row[".groups_outside"]) == ["Unknown", "n/a", "null"]
    assert row[".groups_left_out"] == ["c"]


def test_people_with_an_unknown_value_are_on_no_side() -> None:
    def groups(sides: tf.types.Privileged, **policy: Any) -> list[tuple[str, float | None, int, str]]:
        table = tf.demographic_parity(sides, **policy).by_group(ANSWERS, estimate="hired")
        return table.select(".group", ".estimate", ".n", ".status").rows()

    one_side, two_sides = tf.privileged(race="a"), tf.privileged({"race": "a"}, unprivileged={"race": "b"})
    assert groups(one_side) == [
        ("privileged", 0.6, 10, "ok"), ("unprivileged", pytest.approx(3 / 11), 11, "ok"),
        ("unknown", None, 9, "unknown"),
    ]  # fmt: skip
    assert groups(two_sides) == [
        ("privileged", 0.6, 10, "ok"), ("unprivileged", 0.3, 10, "ok"), ("neither", None, 1, "left_out"),
        ("unknown", None, 9, "unknown"),
    ]  # fmt: skip
    assert groups(two_sides, unknown="drop") == groups(two_sides)[:3]
    # then a missing value is on neither side, and every other one on the other
    assert groups(one_side, unknown="group") == [
        ("privileged", 0.6, 10, "ok"), ("unprivileged", pytest.approx(10 / 18), 18, "ok"),
        ("neither", None, 2, "left_out"),
    ]  # fmt: skip
    assert groups(one_side, unknown_values=["b"]) == [
        ("privileged", 0.6, 10, "ok"), ("unprivileged", pytest.approx(7 / 8), 8, "ok"),
        ("unknown", None, 12, "unknown"),
    ]  # fmt: skip


def test_disparities_of_sides_are_about_known_people_and_say_who_is_unknown() -> None:
    parity = tf.demographic_parity(tf.privileged(race="a"))
    (notice,) = notices(lambda: parity(ANSWERS, estimate="hired"))
    assert notice.startswith("race=a is unknown in 9 of 30 rows ('Unknown', 'n/a', missing)")
    row = parity(ANSWERS, estimate="hired", explain=True).row(0, named=True)
    assert (row[".estimate"], row[".n"]) == (pytest.approx(3 / 11 - 0.6), 21)
    assert (row[".groups_outside"], row[".groups_left_out"]) == (["unknown"], [])


def test_a_value_that_a_condition_names_is_known() -> None:
    named = tf.demographic_parity(tf.privileged({"race": "a"}, unprivileged={"race": "Unknown"}))
    groups = named.by_group(ANSWERS, estimate="hired").select(".group", ".estimate", ".n").rows()
    assert groups == [("privileged", 0.6, 10), ("unprivileged", 1, 4), ("neither", None, 11), ("unknown", None, 5)]


def test_groups_that_would_read_alike_are_quoted() -> None:
    people = pl.DataFrame({
        "race": ["null", None, "x"] * 20, "site": ["a:b", "a", "q"] * 20, "ward": ["c", "b:c", "r"] * 20,
        "hired": [1, 0, 1] * 15 + [0, 1, 0] * 5,
    })  # fmt: skip
    by_race = tf.demographic_parity("race").by_group(people, estimate="hired")
    assert dict(by_race.select("race", ".group").rows()) == {"null": '"null"', "x": "x", None: "null"}
    crossed = tf.demographic_parity("site", "ward")(people, estimate="hired", explain=True)
    assert crossed.select(".group_min", ".group_max").row(0) == ('"a":"b:c"', '"a:b":"c"')
    compared = tf.compare_groups(tf.selection_rate, by=("site", "ward"))(people, estimate="hired")
    assert compared[".group"].to_list() == ['"a":"b:c"', '"a:b":"c"', "q:r"]


def test_explained_results_say_of_which_metric_a_group_is_left_out_and_why() -> None:
    # of 50 students 7 repaid, and 11 were approved
    rows = pl.DataFrame({
        "job": ["skilled"] * 100 + ["student"] * 50 + ["nobody knows"] * 50,
        "truth": [1, 0] * 50 + [1] * 7 + [0] * 43 + [1, 0] * 25,
        "guess": [1, 1, 0, 0] * 25 + [1] * 11 + [0] * 39 + [1, 0] * 25,
        "fold": [1, 2] * 50 + [1] * 50 + [2] * 50,
    })  # fmt: skip
    groups: dict[str, Any] = {"min_n": 20, "unknown": "apart", "unknown_values": ["nobody knows"]}
    odds, precise = tf.equalized_odds("job", **groups), tf.predictive_parity("job", **groups)
    fair = tf.metric_set(tf.accuracy, odds, precise, tf.demographic_parity("job", **groups))
    result = fair(rows, "truth", "guess", pos_label=1, explain=True, on_undefined="ignore")
    unknown = ("nobody knows", "unknown")
    found = {
        row[".metric"]: [(one["group"], one["metric"], one["status"], one["denominator"]) for one in row[".left_out"]]
        for row in result.to_dicts()
    }
    assert found == {
        "accuracy": [],
        "equalized_odds": [
            (unknown[0], "sens", unknown[1], 25), (unknown[0], "spec", unknown[1], 25),
            ("student", "sens", "below_min_n", 7),
        ],
        "predictive_parity": [
            (unknown[0], "precision", unknown[1], 25), ("student", "precision", "below_min_n", 11),
        ],
        "demographic_parity": [(unknown[0], "selection_rate", unknown[1], 50)],
    }  # fmt: skip
    # unknown groups are no groups that a disparity is about
    assert result[".groups_left_out"].to_list() == [[], ["student"], ["student"], []]
    in_folds = odds(rows, "truth", "guess", pos_label=1, group_by="fold", explain=True, on_undefined="ignore")
    counts = in_folds.explode(".left_out").select("fold", pl.col(".left_out").struct.unnest())
    of_students = counts.filter(group="student").select("fold", "metric", "denominator").rows()
    assert of_students == [(1, "sens", 7.0)]
    # multi-class values are left out label by label
    several = rows.with_columns(truth=pl.when(pl.int_range(pl.len()) % 3 == 0).then(2).otherwise("truth"))
    recalls = tf.sens.difference("job", min_n=20)(
        several, "truth", "guess", estimator="one_vs_rest", explain=True, on_undefined="ignore"
    )
    expected = (
        several.group_by("job", "truth")
        .len()
        .filter(pl.col("len") < 20)
        .select("job", pl.col("truth").cast(pl.String), "len")
    )
    entries = recalls[".left_out"].explode().struct.unnest().filter(status="below_min_n")
    assert sorted(entries.select("group", "level", "denominator").rows()) == sorted(expected.rows())


# Groups of single rows


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    number = pl.int_range(6_000)
    return lending(6_000).with_columns(income=20_000 + number * 1.5, person=number.cast(pl.String), pair=number // 2)


def test_features_that_make_a_group_of_every_row_are_refused(people: pl.DataFrame) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda by: tf.demographic_parity(*by)(people, **CALL),
        lambda by: tf.demographic_parity(*by).by_group(people, **CALL),
        lambda by: tf.metric_set(tf.accuracy, tf.demographic_parity("sex"), tf.equal_opportunity(*by))(people, **CALL),
        lambda by: tf.compare_groups(tf.selection_rate, by=by, to="overall")(people, **CALL),
        lambda by: tf.inference.disparity_test(tf.demographic_parity(*by))(people, **CALL),
    ]
    for call in calls:
        with pytest.raises(tf.errors.ColumnError, match="'income' makes 6,000 groups, 6,000 of them of one row"):
            call(["income"])
    with pytest.raises(tf.errors.ColumnError, match="'sex:person' makes 6,000 groups"):
        calls[0](["sex", "person"])


def test_refusals_of_single_rows_name_the_way_out(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError) as caught:
        tf.demographic_parity("income")(people, **CALL)
    assert str(caught.value) == (
        "`by`: 'income' makes 6,000 groups, 6,000 of them of one row. Put numbers into bins with `bins('income', "
        "[edge, …])`, at quantiles with `quantile_groups('income', 5)`, or see the metric over it with "
        "`inference.feature_curve(metric, 'income')`. An identifier is no feature: leave it out, or give it as "
        "`group_by=` or `cluster=`."
    )
    fifths = tf.quantile_groups("income", 5)
    assert tf.demographic_parity(fifths).by_group(people, **CALL)[".n"].to_list() == [1_200] * 5
    with pytest.raises(tf.errors.ColumnError, match=r"Pool rare values of 'person' with `lump_rare`\."):
        tf.demographic_parity("sex", "person")(people, **CALL)
    bits = people.select(
        "repaid", "approved", *((pl.int_range(6_000) // 2**bit % 2).alias(f"b{bit}") for bit in range(12))
    )
    with pytest.raises(tf.errors.ColumnError, match="Cross fewer features, or leave out small groups with `min_n=`"):
        tf.demographic_parity(*bits.columns[2:])(bits.head(4_100), **CALL)
    # also beside infinite ones
    shares = pl.when(pl.int_range(6_000) == 7).then(math.inf).otherwise(pl.col("income") / 30_000)
    with pytest.raises(tf.errors.ColumnError, match=r"`bins\('share', \[edge, …\]\)`"):
        tf.demographic_parity("share")(people.with_columns(share=shares), **CALL)
    lumped = tf.inference.lump_rare(people, "person", 2)
    assert tf.demographic_parity("person_lumped").by_group(lumped, **CALL)[".group"].to_list() == ["other"]


def test_many_numbers_with_fractions_are_no_groups(people: pl.DataFrame) -> None:
    few = people.with_columns(tenth=pl.col("pair") % 120 / 10)
    with pytest.raises(tf.errors.ColumnError, match=r"'tenth' makes 120 groups\. Put numbers into bins"):
        tf.demographic_parity("tenth")(few, **CALL)
    with pytest.raises(tf.errors.ColumnError, match=r"makes 240 groups\. Put numbers into bins"):
        tf.demographic_parity("sex", "tenth")(few, **CALL)
    # enough rows are asked for, few numbers, and whole ones are codes
    assert len(tf.demographic_parity("tenth", min_n=30).by_group(few, **CALL)) == 120
    for values in (pl.col("pair") % 100 / 10, (pl.col("pair") % 120).cast(pl.Float64)):
        tf.demographic_parity("tenth")(people.with_columns(tenth=values), **CALL)


def test_many_groups_of_several_rows_and_few_of_one_are_compared(people: pl.DataFrame) -> None:
    assert len(tf.demographic_parity("pair").by_group(people, **CALL)) == 3_000
    whole = people.with_columns(pl.col("income").round())
    assert len(tf.demographic_parity("income").by_group(whole.head(1_000), **CALL)) == 1_000
    # more than half of the groups have two rows
    halves = people.with_columns(g=pl.when(pl.col("pair") < 2_001).then("pair").otherwise(pl.int_range(6_000)))
    assert len(tf.demographic_parity("g").by_group(halves, **CALL)) == 3_999
    with pytest.raises(tf.errors.ColumnError, match="of one row"):
        tf.demographic_parity("g")(halves.filter(pl.col("pair") >= 100), **CALL)


def test_strata_and_what_searches_read_may_be_single_rows(people: pl.DataFrame) -> None:
    matched = tf.inference.stratified(tf.demographic_parity("sex"), within="pair")(people, **CALL)
    assert matched[".p_value"].item() is not None
    split = tf.inference.linear_subgroup(tf.selection_rate, ["score", "income"])(people, **CALL)
    assert split.height == 2


def test_min_n_leaves_out_single_rows_if_groups_are_left(people: pl.DataFrame) -> None:
    number = pl.int_range(6_000)
    tail = people.with_columns(employer=pl.when(number < 3_000).then(number % 3).otherwise(number))
    groups = tf.demographic_parity("employer", min_n=30).by_group(tail, **CALL)
    assert groups.filter(pl.col(".status") == "ok").height == 3
    with pytest.raises(tf.errors.ColumnError, match="of one row"):
        tf.demographic_parity("employer")(tail, **CALL)
    with pytest.raises(tf.errors.ColumnError, match="of one row"):
        tf.demographic_parity("income", min_n=30)(people, **CALL)
