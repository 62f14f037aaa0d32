"""Groups that overlap: people who are in several of them count in each, and comparisons know whom groups share."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair import audits, distributions, inference
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.specs import By

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GROUPS = ["white", "black", "asian"]


def people(rows: int = 1_200, seed: int = 3) -> pl.DataFrame:
    """People who are in none, one or several of three groups; of a few it is not known whether they are in one."""
    random = np.random.default_rng(seed)
    truth = random.random(rows) < 0.5
    score = np.clip(0.3 * truth + random.random(rows) * 0.7, 0, 1)
    columns: dict[str, Any] = {"y": truth, "p": score > 0.55, "score": score, "number": random.normal(size=rows)}
    columns |= {"guess": columns["number"] + random.normal(size=rows), "weight": random.integers(1, 5, rows)}
    for group, share in zip(GROUPS, (0.6, 0.3, 0.2), strict=True):
        columns[group] = random.random(rows) < share
    data = pl.DataFrame(columns).with_columns(sex=pl.Series(random.choice(["f", "m"], rows)))
    few = pl.int_range(pl.len()) < 40
    return data.with_columns(white=pl.when(~few).then("white"), fold=pl.int_range(pl.len()) % 3)


PEOPLE = people()
RACE = tf.memberships(*GROUPS, name="race")
IN_NONE = pl.all_horizontal(~pl.col(group) for group in GROUPS)
KNOWN = pl.any_horizontal(GROUPS).fill_null(value=False) | IN_NONE.fill_null(value=False)


def in_group(group: str) -> pl.Expr:
    return pl.col(group).fill_null(value=False)


def value(metric: Any, data: pl.DataFrame, **call: Any) -> float:
    return float(metric(data, "y", "p", **call)[".estimate"].item())


def test_rows_count_in_each_of_their_groups() -> None:
    groups = tf.accuracy.difference(RACE).by_group(PEOPLE, "y", "p", on_undefined="ignore")
    by_name = {row[".group"]: row for row in groups.iter_rows(named=True)}
    for group in GROUPS:
        own = PEOPLE.filter(in_group(group))
        assert by_name[group][".n"] == len(own)
        assert by_name[group][".estimate"] == value(tf.accuracy, own)
    assert by_name["none"][".n"] == len(PEOPLE.filter(IN_NONE))
    assert by_name["none"][".status"] == "left_out"
    assert by_name["null"][".n"] == len(PEOPLE.filter(~KNOWN))
    assert by_name["null"][".status"] == "unknown"
    # the group is a column under the name of the feature
    assert groups["race"].to_list() == [*GROUPS, "none", None]


@pytest.mark.parametrize("to", ["rest", "overall", "black", "majority", "range"])
@pytest.mark.parametrize("metric", [tf.accuracy, tf.sens, tf.mcc, tf.roc_auc, tf.brier_class], ids=lambda own: own.name)
def test_comparisons_equal_those_of_chosen_rows(metric: Any, to: str) -> None:
    call: dict[str, Any] = {"probs": "score"}
    own = {group: value(metric, PEOPLE.filter(in_group(group)), **call) for group in GROUPS}
    rest = {
        group: value(metric, PEOPLE.filter(pl.col(group) == False), **call)  # noqa: E712 - null is not false
        for group in GROUPS
    }
    expected = {
        "rest": max(abs(own[group] - rest[group]) for group in GROUPS),
        "overall": max(abs(own[group] - value(metric, PEOPLE.filter(KNOWN), **call)) for group in GROUPS),
        "black": max(abs(own[group] - own["black"]) for group in GROUPS),
        "majority": max(abs(own[group] - own["white"]) for group in GROUPS),
        "range": max(own.values()) - min(own.values()),
    }
    disparity = metric.difference(RACE, to=to)
    assert value(disparity, PEOPLE, on_undefined="ignore", **call) == pytest.approx(expected[to], abs=1e-12)


def test_crossed_with_a_column_outside_is_everyone_else() -> None:
    disparity = tf.accuracy.difference(RACE, "sex", to="rest")
    largest = 0.0
    for group, sex in itertools.product(GROUPS, "fm"):
        own = in_group(group) & (pl.col("sex") == sex)
        may_be = pl.col(group).fill_null(value=True) & (pl.col("sex") == sex)
        distance = value(tf.accuracy, PEOPLE.filter(own)) - value(tf.accuracy, PEOPLE.filter(~may_be))
        largest = max(largest, abs(distance))
    assert value(disparity, PEOPLE, on_undefined="ignore") == pytest.approx(largest, abs=1e-12)


def test_alone_and_each_combination() -> None:
    complete = PEOPLE.drop_nulls()
    named = [pl.when(group).then(pl.lit(group)) for group in GROUPS]
    texts = pl.concat_str(named, separator=" & ", ignore_nulls=True)
    combined = complete.with_columns(each=pl.when(~IN_NONE).then(texts))
    alone = pl.when(pl.col("each").str.contains("&")).then(pl.lit("two or more")).otherwise("each")
    combined = combined.with_columns(alone=alone)
    for way in ("alone", "each"):
        feature = tf.memberships(*GROUPS, combined=way, name=way)
        groups = tf.sens.difference(feature, min_n=5).by_group(complete, "y", "p")
        plain = tf.sens.difference(way, min_n=5).by_group(combined, "y", "p", on_undefined="ignore")
        columns = [".group", ".estimate", ".n", ".status"]
        own, other = (
            frame.filter(~pl.col(".group").is_in(["none", "null"])).select(columns).sort(".group")
            for frame in (groups, plain)
        )
        assert_frame_equal(own, other)


def as_texts(separator: str) -> pl.Expr:
    named = [pl.when(in_group(group)).then(pl.lit(group)) for group in GROUPS]
    return pl.concat_str(named, separator=separator, ignore_nulls=True)


def test_lists_and_texts_are_read_alike() -> None:
    complete = PEOPLE.drop_nulls().with_columns(text=as_texts(" ; "))
    complete = complete.with_columns(
        races=pl.col("text").str.split(" ; ").list.eval(pl.element().filter(pl.element() != ""))
    )
    expected = tf.accuracy.difference(RACE).by_group(complete, "y", "p").sort(".group")
    for feature in (tf.memberships("races", name="race"), tf.memberships("text", separator=";", name="race")):
        groups = tf.accuracy.difference(feature).by_group(complete, "y", "p", on_undefined="ignore").sort(".group")
        names = [".estimate", ".n"]
        # an empty list is in no group, and an empty text says nothing
        assert groups[names].rows() == expected[names].rows()
    statuses = {
        feature: tf.accuracy.difference(tf.memberships(*feature[:1], separator=feature[1])).by_group(
            complete, "y", "p", on_undefined="ignore"
        )[".status"].to_list()[-1]
        for feature in (("races", None), ("text", ";"))
    }  # fmt: skip
    assert list(statuses.values()) == ["left_out", "unknown"]


def test_texts_that_mean_unknown_are_an_unknown_group() -> None:
    data = pl.DataFrame({
        "race": ["a;b", "a", "b", "Prefer not to say", "a;Prefer not to say", "b"], "p": [1, 1, 0, 1, 0, 0],
    })  # fmt: skip
    disparity = tf.selection_rate.difference(tf.memberships("race", separator=";"), to="rest")
    groups = disparity.by_group(data, estimate="p", on_undefined="ignore")
    assert groups.select(".group", ".n", ".status").rows() == [
        ("Prefer not to say", 2, "unknown"), ("a", 3, "ok"), ("b", 3, "ok"),
    ]  # fmt: skip
    # a: 2 of 3, outside of a: 0 of 2; b: 1 of 3, outside of b: 1 of 2; who says nothing else is not among these
    assert value_of(disparity(data, estimate="p", on_undefined="ignore")) == pytest.approx(2 / 3)


def value_of(frame: pl.DataFrame) -> float:
    return float(frame[".estimate"].item())


ANSWERS = pl.DataFrame({
    "p": [1, 1, 0, 1, 0, 0, 1, 0],
    "tags": [["a", "b"], ["a"], ["b", "b"], [], None, ["a", None], [None], ["none"]],
    "texts": ["a;b", " a", "b;b;", "none", None, " ; ", "", "none;a"],
    "numbers": [[1, 2], [1], [2, 2], [], None, [1], [2], [3]],
    "flag": [True, False, None, None, True, True, False, False],
    "zero_one": [1, 0, 1, 0, None, 1, 0, 1],
    "number": [1, 2, 3, 4, 5, 6, 7, 8],
    "word": ["a", "b", "a", "b", None, "a", "b", "a"],
    "flags": [[True, False], [True], [False], [], None, [True], [False], [True]],
    "alone": ["two or more;a", "a", "b", "a", "b", "a", "b", "a"],
    "alike": ["a & b", "a;b", "a", "b", "a", "b", "a", "b"],
})  # fmt: skip
FRAMES = [
    pytest.param(lambda frame: frame, id="eager"),
    pytest.param(lambda frame: frame.lazy(), id="lazy"),
    pytest.param(lambda frame: frame.to_pandas(), id="pandas"),
    pytest.param(lambda frame: pytest.importorskip("duckdb").from_arrow(frame.to_arrow()), id="duckdb"),
]


def counted(feature: Any, data: Any) -> dict[str, int]:
    """The rows of each group."""
    groups = tf.selection_rate.difference(feature).by_group(data, estimate="p", pos_label=1, on_undefined="ignore")
    return dict(pl.DataFrame(groups).select(".group", ".n").rows())


@pytest.mark.parametrize("made", FRAMES)
def test_nobody_is_put_into_a_group_without_saying_so(made: Callable[[pl.DataFrame], Any]) -> None:
    data = made(ANSWERS)
    # a null in a list is an answer that is not known; one value twice is one group
    assert counted(tf.memberships("tags"), data) == {"a": 3, "b": 2, "none": 2, "null": 2}
    assert counted(tf.memberships("numbers"), data) == {"1": 3, "2": 3, "3": 1, "none": 1, "null": 1}
    assert counted(tf.memberships("texts", separator=";"), data) == {"a": 3, "b": 2, "none": 1, "null": 3}
    assert counted(tf.memberships("tags", combined="alone"), data) == {
        "a": 1, "b": 1, "two or more": 1, "none": 2, "null": 3,
    }  # fmt: skip
    assert counted(tf.memberships("flag", "zero_one"), data) == {"flag": 3, "zero_one": 4, "none": 2, "null": 1}


def test_people_without_any_answer_are_not_known() -> None:
    nothing = ANSWERS.with_columns(tags=pl.lit(None, pl.List(pl.String)), texts=pl.lit(None, pl.String))
    empty = ANSWERS.with_columns(tags=pl.lit([], pl.List(pl.String)))
    for combined in ("any", "alone", "each"):
        assert counted(tf.memberships("tags", combined=combined), nothing) == {"null": 8}
        assert counted(tf.memberships("texts", separator=";", combined=combined), nothing) == {"null": 8}
        assert counted(tf.memberships("tags", combined=combined), empty) == {"none": 8}


@pytest.mark.parametrize("made", FRAMES)
@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (tf.memberships("flag"), "'flag' is Boolean. Name several columns of true and false; or write `by='flag'`"),
        (
            tf.memberships("number"),
            "one column alone holds lists .* and 'number'",
        ),
        (tf.memberships("word"), "'word' is String"),
        (tf.memberships("flags"), "'flags' is List"),
        (tf.memberships("word", "flag"), r"the column 'word' is String; .* `\(pl.col\('word'\) == \"yes\"\)"),
        (tf.memberships("flag", "number"), r"a membership is true or false .* `\(pl.col\('number'\) >= 0.5\)"),
        (tf.memberships("tags", "flag"), r"must hold one plain value per row. .* `memberships\('tags'\)`"),
        (tf.memberships("tags", separator=";"), r"People in several groups are a feature .* `memberships\('tags'\)`"),
        (tf.memberships("number", separator=";"), "`separator=` splits texts, and 'number' is Int64; leave it out"),
        (tf.memberships("flag", separator=";"), "`separator=` splits texts, and 'flag' is Boolean"),
        (tf.memberships("absent"), "there is no column 'absent'"),
        (
            tf.memberships("alone", separator=";", combined="alone"),
            "makes a group 'two or more'",
        ),
        (tf.memberships("alike", separator=";", combined="each"), "are both 'a & b'; rename one"),
    ],
    ids=str,
)
def test_columns_that_are_no_memberships_say_what_to_write(
    made: Callable[[pl.DataFrame], Any], feature: Any, message: str
) -> None:
    with pytest.raises(ColumnError, match=message):
        counted(feature, made(ANSWERS))


# Groups that do not overlap


DISJOINT = PEOPLE.drop_nulls().with_columns(
    race=pl.when("white").then(pl.lit("white")).when("black").then(pl.lit("black")).otherwise(pl.lit("asian"))
).with_columns(*((pl.col("race") == group).alias(group) for group in GROUPS)).with_columns(
    pl.col("race").cast(pl.Enum(GROUPS))
)  # fmt: skip
CALLS: list[tuple[Any, dict[str, Any]]] = [
    (
        tf.metric_set(
            tf.accuracy.difference(RACE), tf.sens.ratio(RACE, to="black"), tf.mcc.difference(RACE, to="rest")
        ),
        {},
    ),
    (tf.metric_set(tf.equalized_odds(RACE), tf.f_meas.difference(RACE, to="overall")), {"case_weights": "weight"}),
    (tf.metric_set(tf.roc_auc.difference(RACE), tf.brier_class.group_maximum(RACE)), {"probs": "score"}),
    (tf.metric_set(tf.demographic_parity(RACE, "sex"), tf.accuracy), {"group_by": "fold"}),
]


def of_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame whose groups are texts: overlapping groups have one more level, for people in none of them."""
    return frame.with_columns(pl.col(pl.Enum).cast(pl.String))


@pytest.mark.parametrize(("metrics", "call"), CALLS, ids=range(len(CALLS)))
def test_disjoint_groups_give_the_numbers_of_a_column(metrics: Any, call: dict[str, Any]) -> None:
    def plain(metric: Any) -> Any:
        if not isinstance(metric, tf.types.GroupwiseMetric):
            return metric
        return replace(metric, by=By.of(("race", *metric.by.features[1:]), "", metric.policy))

    columns = tf.metric_set(*map(plain, metrics))
    for interval in (None, "auto"):
        for asked in ("__call__", "by_group"):
            frames = [getattr(one, asked)(DISJOINT, "y", "p", interval=interval, **call) for one in (metrics, columns)]
            # sums of scores have the order in which polars reads the rows of a key
            assert_frame_equal(*map(of_texts, frames), check_exact="probs" not in call, rel_tol=1e-13, abs_tol=1e-14)


def test_disjoint_groups_in_verbs() -> None:
    pairs: list[tuple[Any, ...]] = []
    for feature in (RACE, "race"):
        compared = tf.compare_groups(tf.accuracy, by=feature, to="rest")(DISJOINT, "y", "p")
        each = inference.pairwise(tf.sens.difference(feature))(DISJOINT, "y", "p")
        gate = tf.check(tf.accuracy.difference(feature), below=0.2)(DISJOINT, "y", "p")
        test = inference.disparity_test(tf.accuracy.difference(feature))(DISJOINT, "y", "p", times=200)
        pairs.append((compared, each, gate, test))
    for own, other in zip(*pairs, strict=True):
        assert_frame_equal(of_texts(own), of_texts(other), check_exact=True)


# Rows that groups share


def shared_error(own: np.ndarray[Any, Any], one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """The standard error of the difference of two means over rows, of which some are in both."""
    influence = (own - own[one].mean()) * one / one.sum() - (own - own[other].mean()) * other / other.sum()
    return float(np.sqrt((influence**2).sum()))


def test_differences_know_the_rows_that_both_groups_have() -> None:
    two = tf.memberships("black", "asian")
    data = PEOPLE.drop_nulls().with_columns(p=pl.col("p") | (pl.col("black") & (pl.col("score") > 0.3)))
    one, other = data["black"].to_numpy(), data["asian"].to_numpy()
    selected, score = data["p"].to_numpy().astype(float), data["score"].to_numpy()
    rate = tf.selection_rate.difference(two)(data, estimate="p", interval="auto").row(0, named=True)
    # half a thousandth is what a row more in each cell makes
    assert rate[".std_error"] == pytest.approx(shared_error(selected, one, other), rel=5e-4)
    mean = tf.mean_score.difference(two)(data, probs="score", interval="auto").row(0, named=True)
    assert mean[".std_error"] == pytest.approx(shared_error(score, one, other), rel=2e-3)
    assert rate[".method"] == mean[".method"] == "mover"
    strangers = np.sqrt(sum(np.var(selected[own]) / own.sum() for own in (one, other)))
    assert rate[".std_error"] < 0.97 * strangers


@pytest.mark.parametrize("name", ["sens", "mcc", "f_meas", "roc_auc", "brier_class"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_errors_of_differences_are_those_of_resampled_people(name: str, weights: str | None) -> None:
    two, data, metric = tf.memberships("black", "asian"), PEOPLE.drop_nulls(), getattr(tf, name)
    half = data.with_columns(asian=pl.col("asian") | (pl.col("black") & (pl.col("score") < 0.6)))
    call: dict[str, Any] = {"probs": "score", "case_weights": weights}
    error = metric.difference(two)(half, "y", "p", interval="auto", **call)[".std_error"].item()
    # every replicate is an outer group
    random, times = np.random.default_rng(1), 400
    drawn = half[random.integers(0, len(half), len(half) * times)].with_columns(
        draw=pl.int_range(pl.len()) // len(half)
    )
    values = [
        metric(drawn.filter(group), "y", "p", group_by="draw", **call)[".estimate"] for group in ("black", "asian")
    ]
    assert error == pytest.approx(float((values[0] - values[1]).std()), rel=0.12)  # pyright: ignore[reportArgumentType] - of floats


def test_replicates_draw_people_with_all_their_groups() -> None:
    data = PEOPLE.drop_nulls()
    disparity = tf.accuracy.difference(tf.memberships("black", "asian"), to="black", signed=True)
    drawn = disparity(data, "y", "p", interval="bootstrap", times=4_000)
    closed = disparity(data, "y", "p", interval="auto")
    assert drawn[".std_error"].item() == pytest.approx(closed[".std_error"].item(), rel=0.05)
    spread = tf.new_groupwise_metric(tf.roc_auc, "spread", tf.aggregates.standard_deviation())(RACE)
    assert spread(data, "y", probs="score", interval="auto", times=200)[".method"].item() == "bootstrap, upper end"


def overlapping() -> pl.DataFrame:
    """Draws of 400 people in two groups that share most of them and are selected alike."""
    random, draws, rows = np.random.default_rng(8), 400, 400
    one = random.random(draws * rows) < 0.6
    other = np.where(random.random(draws * rows) < 0.8, one, random.random(draws * rows) < 0.5)
    selected = random.random(draws * rows) < 0.4
    return pl.DataFrame({"draw": np.repeat(np.arange(draws), rows), "one": one, "other": other, "p": selected})


@pytest.mark.simulation
@pytest.mark.parametrize("base", [tf.selection_rate, tf.roc_auc], ids=lambda own: own.name)
def test_intervals_of_groups_that_share_most_people_cover(base: Any) -> None:
    data, random = overlapping(), np.random.default_rng(9)
    truth = random.random(len(data)) < 0.5
    scored = data.with_columns(y=truth, score=pl.Series(random.random(len(data)) + 0.3 * truth).clip(0, 1))
    disparity = base.difference(tf.memberships("one", "other"), to="one", signed=True)
    limits = disparity(scored, "y", "p", probs="score", group_by="draw", interval="auto")
    # both groups have the same rate
    covered = limits.select(pl.lit(0).is_between(".lower", ".upper").mean()).item()
    assert 0.925 <= covered <= 0.98


@pytest.mark.simulation
@pytest.mark.parametrize("to", ["rest", "overall"])
def test_groups_are_seldom_said_to_differ_from_equal_others(to: str) -> None:
    disparity = tf.selection_rate.difference(tf.memberships("one", "other"), to=to)
    limits = disparity(overlapping(), estimate="p", group_by="draw", interval="auto")
    assert limits.select((pl.col(".lower") > 0).mean()).item() <= 0.07


@pytest.mark.simulation
def test_permutation_tests_keep_their_level() -> None:
    random, times, rows = np.random.default_rng(9), 400, 400 * 200
    shared = random.random(rows) < 0.5
    groups = {name: np.where(random.random(rows) < 0.6, shared, random.random(rows) < 0.4) for name in "abc"}
    data = pl.DataFrame({**groups, "p": random.random(rows) < 0.3, "run": np.arange(rows) % times})
    difference = tf.selection_rate.difference(tf.memberships("a", "b", "c"), to="rest")
    p_values = inference.disparity_test(difference, adjust="none")(data, estimate="p", group_by="run", times=199)
    assert len(p_values) == times
    assert (p_values[".p_value"] <= 0.05).mean() <= 0.08


def test_each_group_against_those_outside_of_it() -> None:
    compared = tf.compare_groups(tf.accuracy, by=RACE, to="rest")(PEOPLE, "y", "p")
    for row in compared.filter(pl.col(".status") == "ok").iter_rows(named=True):
        rest = PEOPLE.filter(~pl.col(row[".group"]).fill_null(value=True))
        sides = pl.concat([PEOPLE.filter(in_group(row[".group"])).with_columns(side=1), rest.with_columns(side=0)])
        two = tf.accuracy.difference("side", to=0, signed=True)(sides, "y", "p", interval="auto").row(0, named=True)
        own = (row[".disparity"], row[".lower"], row[".upper"])
        assert own == pytest.approx((two[".estimate"], two[".lower"], two[".upper"]), abs=1e-12)


@pytest.mark.parametrize("to", ["rest", "overall"])
@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("name", ["accuracy", "brier_class", "roc_auc"])
def test_limits_of_the_farthest_group_are_those_of_each(name: str, scale: Any, to: str) -> None:
    data, metric = PEOPLE.drop_nulls(), getattr(tf, name)
    row = getattr(metric, scale)(RACE, to=to)(data, "y", "p", probs="score", interval="auto", times=40).row(
        0, named=True
    )
    if (name, to) == ("roc_auc", "overall"):
        # the area of all rows is no mean of those of a group and of all others
        assert row[".method"].startswith("bootstrap")
        return
    each = tf.compare_groups(metric, by=RACE, to=to, scale=scale)(data, "y", "p", probs="score")
    ends = each.select(".lower", ".upper").drop_nulls().to_numpy()
    farthest = np.abs(ends).max() if scale == "difference" else np.exp(-np.abs(np.log(ends)).max())
    assert row[".upper" if scale == "difference" else ".lower"] == pytest.approx(farthest, abs=1e-12)
    assert row[".method"] == "pairwise"


def test_limits_of_the_farthest_group_are_near_those_of_resampled_people() -> None:
    disparity = tf.sens.difference(RACE, to="rest")
    closed, drawn = (
        disparity(PEOPLE.drop_nulls(), "y", "p", interval=interval, times=1_000).row(0, named=True)
        for interval in ("auto", "bootstrap")
    )
    assert closed[".upper"] == pytest.approx(drawn[".upper"], abs=0.02)
    # clusters have people of several groups
    grouped = disparity(PEOPLE, "y", "p", interval="auto", cluster="number", times=50, on_undefined="ignore")
    assert grouped[".method"].item().startswith("cluster bootstrap")


def test_formulas_of_two_samples_compare_with_those_outside() -> None:
    groups = distributions.kolmogorov_smirnov(RACE)
    expected = 0.0
    for group in GROUPS:
        own = PEOPLE.filter(in_group(group))["score"].to_numpy()
        rest = PEOPLE.filter(~pl.col(group).fill_null(value=True))["score"].to_numpy()
        points = np.concatenate([own, rest])
        distance = np.abs(
            np.searchsorted(np.sort(own), points, "right") / len(own)
            - np.searchsorted(np.sort(rest), points, "right") / len(rest)
        )
        expected = max(expected, float(distance.max()))
    found = groups(PEOPLE, probs="score", on_undefined="ignore")
    assert value_of(found) == pytest.approx(expected, abs=1e-12)


def test_people_count_once_where_rows_are_counted() -> None:
    row = tf.accuracy.difference(RACE)(PEOPLE, "y", "p", explain=True, on_undefined="ignore").row(0, named=True)
    members = PEOPLE.filter(pl.any_horizontal(in_group(group) for group in GROUPS))
    assert row[".n"] == len(members)
    # shares are of all people
    groups = tf.compare_groups(tf.accuracy, by=RACE)(PEOPLE, "y", "p")
    shares = dict(groups.select(".group", ".share").rows())
    assert shares["black"] == pytest.approx(PEOPLE["black"].mean())


# Effect sizes, tests and audits


def plain_and_overlapping(call: Callable[[Any], pl.DataFrame]) -> None:
    """Groups that do not overlap give the numbers of a column."""
    own, other = (of_texts(call(feature)) for feature in (RACE, "race"))
    assert_frame_equal(own, other, check_exact=True)


def test_effect_sizes_of_disjoint_groups_are_those_of_a_column() -> None:
    data = DISJOINT.with_columns(pay=pl.col("number").exp())
    plain_and_overlapping(lambda by: audits.standardized_differences(data, "number", by=by, to="white"))
    plain_and_overlapping(lambda by: audits.quantile_ratios(data, "pay", by=(by, "sex"), to="highest", group_by="fold"))


def resampled(data: pl.DataFrame, times: int) -> list[pl.DataFrame]:
    """Samples of people with all their groups."""
    random = np.random.default_rng(4)
    return [data[random.integers(0, len(data), len(data))] for _ in range(times)]


def resamples(data: pl.DataFrame, times: int) -> pl.DataFrame:
    """The same samples as the outer groups of one call."""
    return pl.concat(sample.with_columns(draw=draw) for draw, sample in enumerate(resampled(data, times)))


def shared_half() -> pl.DataFrame:
    """Asian people, of whom many are Black, too; those have larger numbers."""
    data = PEOPLE.drop_nulls().with_columns(asian=pl.col("asian") | (pl.col("black") & (pl.col("score") < 0.6)))
    return data.with_columns(number=pl.col("number") + 0.7 * pl.col("black"), pay=pl.col("number").exp())


@pytest.mark.simulation
@pytest.mark.parametrize("options", [{}, {"spread": "reference", "case_weights": "weight"}], ids=str)
def test_errors_of_standardized_differences_are_those_of_resampled_people(options: dict[str, Any]) -> None:
    def compared(data: pl.DataFrame, **outer: Any) -> pl.DataFrame:
        feature = tf.memberships("black", "asian")
        table = audits.standardized_differences(data, "number", by=feature, to="asian", **options, **outer)
        return table.filter(pl.col(".group") == "black")

    data = shared_half()
    values = compared(resamples(data, 300), group_by="draw")[".disparity"]
    assert len(values) == 300
    assert compared(data)[".std_error"].item() == pytest.approx(float(np.std(values.to_numpy())), rel=0.12)


@pytest.mark.simulation
def test_limits_of_quantile_ratios_are_those_of_resampled_people() -> None:
    def compared(data: pl.DataFrame, **outer: Any) -> pl.DataFrame:
        table = audits.quantile_ratios(data, "pay", by=tf.memberships("black", "asian"), to="asian", **outer)
        return table.filter(pl.col(".group") == "black")

    data = shared_half()
    row = compared(data).row(0, named=True)
    error = np.log(row[".upper"] / row[".lower"]) / (2 * 1.959964)
    values = np.log(compared(resamples(data, 300), group_by="draw")[".disparity"].to_numpy())
    assert len(values) == 300
    # medians of samples have ties, so that they vary in steps
    assert error == pytest.approx(float(np.std(values)), rel=0.2)


def test_tests_of_groups_that_share_people_know_whom_they_share() -> None:
    data = shared_half()
    one, other = (data[group].to_numpy() for group in ("black", "asian"))
    number, selected = data["number"].to_numpy(), data["p"].to_numpy().astype(float)
    two = tf.memberships("black", "asian")
    means = tf.compare_groups(tf.mean_prediction, by=two, to="asian", test="welch")(data, estimate="number")
    row = means.filter(pl.col(".group") == "black").row(0, named=True)
    assert row[".std_error"] == pytest.approx(shared_error(number, one, other), rel=5e-3)
    assert row[".statistic"] == pytest.approx(row[".disparity"] / row[".std_error"])
    standardized = tf.compare_groups(tf.mean_prediction, by=two, to="asian", scale="standardized")
    effect = audits.standardized_differences(data, "number", by=two, to="asian")
    names = [".disparity", ".std_error", ".p_value"]
    assert standardized(data, estimate="number").select(names).row(0) == pytest.approx(
        effect.select(names).row(0), rel=5e-3
    )
    # exact tests of two samples are of two samples
    fisher = tf.compare_groups(tf.selection_rate, by=two, to="asian", test="fisher")
    for table in (
        fisher(data, estimate="p"),
        inference.pairwise(tf.selection_rate.difference(two))(data, estimate="p"),
    ):
        row = table.row(0, named=True)
        assert row[".test"] == "interval"
        assert row[".p_value"] == pytest.approx(
            tf.compare_groups(tf.selection_rate, by=two, to="asian")(data, estimate="p")[".p_value"][0]
        )
    z = tf.compare_groups(tf.selection_rate, by=two, to="asian", test="z")(data, estimate="p", explain=True)
    together = float(np.concatenate([selected[one], selected[other]]).mean())
    alike = together * (1 - together)
    strangers = alike / one.sum() + alike / other.sum()
    errors = [np.sqrt(selected[group].var() / group.sum()) for group in (one, other)]
    correlation = (errors[0] ** 2 + errors[1] ** 2 - shared_error(selected, one, other) ** 2) / (
        2 * errors[0] * errors[1]
    )
    error = np.sqrt(strangers - 2 * correlation * alike / np.sqrt(one.sum() * other.sum()))
    row = z.row(0, named=True)
    assert row[".deviations"] == pytest.approx((selected[one].mean() - selected[other].mean()) / error, rel=2e-3)
    assert row[".numerator_reference"] is None


def test_identical_groups_do_not_differ() -> None:
    data = PEOPLE.drop_nulls().with_columns(copy="black")
    twice = tf.memberships("black", "copy")
    for compare in (
        audits.standardized_differences(data, "number", by=twice, to="copy"),
        tf.compare_groups(tf.mean_prediction, by=twice, to="copy", test="welch")(data, estimate="number"),
    ):
        row = compare.filter(pl.col(".group") == "black").row(0, named=True)
        assert (row[".disparity"], row[".lower"], row[".p_value"]) == (0, None, None)


@pytest.mark.parametrize("name", [name for name in audits.NAMED_AUDITS if name != "lending_adverse_impact"])
def test_audits_of_disjoint_groups_are_those_of_a_column(name: str) -> None:
    data = DISJOINT.with_columns(pay=pl.col("number").exp())
    call: dict[str, Any] = {"truth": "y", "estimate": "p"}
    if "pay" in name:
        call = {"estimate": "pay", "within": "fold", "to": {"race": "white", "sex": "m"}}
    elif name in {"clinical_tripod_ai", "model_card"}:
        call = {"truth": "y", "probs": "score", "threshold": 0.5}
    own, other = (tf.audit(name, data, by=[feature, "sex"], times=50, **call) for feature in (RACE, "race"))
    assert own.tables.keys() == other.tables.keys()
    for table, frame in own.tables.items():
        both = [of_texts(frame), of_texts(other.tables[table])]
        if ".method" in frame.columns:
            # people who are drawn again are not the same
            drawn = pl.col(".method").fill_null("").str.starts_with("bootstrap")
            limits = [pl.when(~drawn).then(name).alias(name) for name in (".lower", ".upper", ".std_error")]
            both = [part.with_columns(limits) for part in both]
        assert_frame_equal(*both, rel_tol=1e-12, abs_tol=1e-12)


def test_audits_count_people_in_each_of_their_groups() -> None:
    rates = {group: float(PEOPLE.filter(in_group(group))["p"].cast(pl.Float64).mean()) for group in GROUPS}  # pyright: ignore[reportArgumentType] - of floats
    table = tf.audit("eeoc_uniform_guidelines", PEOPLE, estimate="p", by=RACE).tables["adverse_impact"]
    shown = {row[".group"]: row for row in table.iter_rows(named=True)}
    for group in GROUPS:
        assert shown[group][".disparity"] == pytest.approx(rates[group] / max(rates.values()))
    highest = max(rates, key=lambda group: rates[group])
    assert shown["asian"][".reference"] == highest
    # counts of two groups do not stand beside each other where they share people
    assert shown["asian"][".p_fisher"] is None
    assert "no exact tests" in shown["asian"][".note"]
    assert shown[highest][".note"] == ""
    assert shown["none"][".note"] == "in no group: not compared"
    # rows that are unknown in any feature count nowhere
    law = tf.audit(
        "nyc_ll144",
        PEOPLE.with_columns(sex=pl.when(pl.int_range(pl.len()) > 9).then("sex")),
        estimate="p",
        by=[RACE, "sex"],
    )
    known = PEOPLE[10:].filter(KNOWN)
    impact = law.tables["selections"].filter(pl.col(".by") == "race")
    counts = dict(impact.select(".group", ".n").rows())
    assert {group: counts[group] for group in GROUPS} == {group: len(known.filter(in_group(group))) for group in GROUPS}


def test_bands_of_pay_have_all_groups_of_a_person() -> None:
    data = PEOPLE.with_columns(pay=pl.col("number").exp())
    table = tf.audit("eu_pay_transparency", data, estimate="pay", by=RACE, to="white").tables["quartile_bands"]
    known = data.filter(KNOWN).sort("pay")
    quarter = len(known) // 4
    assert len(known) % 4 == 0
    for group, band in itertools.product(GROUPS, range(4)):
        in_band = known[band * quarter : (band + 1) * quarter].filter(in_group(group))
        row = table.filter(pl.col(".group") == group, pl.col(".bin") == band + 1).row(0, named=True)
        assert (row[".n"], row[".estimate"]) == pytest.approx((len(in_band), len(in_band) / quarter))


# Verbs, engines, states


def test_models_are_compared_with_other_metrics_in_their_order() -> None:
    data = PEOPLE.drop_nulls().with_columns(other=pl.col("score") > 0.5)
    metrics = [tf.sens.difference("sex"), tf.accuracy.difference(RACE), tf.accuracy]
    compared = tf.compare_models(tf.metric_set(*metrics))(data, "y", one="p", other="other")
    assert compared[".metric"].to_list() == [metric.name for metric in metrics]
    changes = [value(metric, data.with_columns(p="other")) - value(metric, data) for metric in metrics]
    assert compared[".change"].to_list() == pytest.approx(changes, abs=1e-12)
    assert compared[".lower"].null_count() == 0


def test_every_engine_counts_combinations(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = PEOPLE.select("y", "p", *GROUPS).with_columns(text=as_texts(";"))
    for feature in (RACE, tf.memberships("text", separator=";", name="race")):
        metric = tf.accuracy.difference(feature, to="rest")
        expected = metric(data, "y", "p", on_undefined="ignore", pos_label=True)
        found = metric(engine(data), "y", "p", on_undefined="ignore", pos_label=True)
        assert value_of(pl.DataFrame(found)) == pytest.approx(value_of(expected), abs=1e-12)


def test_states_hold_combinations(tmp_path: Path) -> None:
    metric = tf.accuracy.difference(RACE, to="rest")
    halves = [metric.tally(half, "y", "p") for half in (PEOPLE[:500], PEOPLE[500:])]
    tf.save_state(halves[0] + halves[1], tmp_path / "state.json")
    loaded = tf.load_state(tmp_path / "state.json", like=halves[0])
    expected = metric(PEOPLE, "y", "p", on_undefined="ignore")
    assert value_of(metric.compute(loaded, on_undefined="ignore")) == pytest.approx(value_of(expected), abs=1e-12)
    assert value_of(pickle.loads(pickle.dumps(metric))(PEOPLE, "y", "p", on_undefined="ignore")) == value_of(expected)  # noqa: S301 - our own


def test_thresholds_and_outer_groups() -> None:
    parity = tf.demographic_parity(RACE)
    table = parity(PEOPLE, probs="score", threshold=[0.4, 0.6], group_by="fold", pos_label=True, on_undefined="ignore")
    for row in table.iter_rows(named=True):
        part = PEOPLE.filter(fold=row["fold"])
        rates = [part.filter(in_group(group))["score"].ge(row[".threshold"]).mean() for group in GROUPS]
        assert row[".estimate"] == pytest.approx(max(rates) - min(rates), abs=1e-12)  # pyright: ignore[reportOperatorIssue, reportCallIssue, reportArgumentType] - floats


# What is refused


def test_bad_memberships_say_what_to_write() -> None:
    with pytest.raises(ArgumentError, match="a column of true and false for each group"):
        tf.memberships()
    with pytest.raises(ArgumentError, match="a column of true and false for each group"):
        tf.memberships("a", "b", separator=";")
    with pytest.raises(ArgumentError, match="two groups have the same name"):
        tf.memberships("a", "a")
    with pytest.raises(ArgumentError, match="`combined=` must be 'any', 'alone' or 'each'"):
        tf.memberships("a", "b", combined="all")  # pyright: ignore[reportArgumentType] - bad input
    with pytest.raises(ArgumentError, match="`separator` is a text"):
        tf.memberships("a", separator="")
    with pytest.raises(ArgumentError, match="cross overlapping groups with columns only"):
        tf.accuracy.difference(RACE, tf.memberships("c", "d"))
    with pytest.raises(ColumnError, match=r"the column 'score' is Float64; a membership is true or false"):
        tf.accuracy.difference(tf.memberships("white", "score"))(PEOPLE, "y", "p")
    with pytest.raises(ColumnError, match="there is no column 'absent'"):
        tf.accuracy.difference(tf.memberships("white", "absent"))(PEOPLE, "y", "p")
    with pytest.raises(ArgumentError, match="`name` is a text"):
        tf.memberships("a", "b", name=3)  # pyright: ignore[reportArgumentType] - bad input


def test_verbs_of_rows_in_one_group_refuse_several() -> None:
    gold = PEOPLE.with_columns(judge="p", y=pl.when(pl.int_range(pl.len()) % 3 == 0).then("y"))
    for call in (
        lambda: inference.stratified(tf.accuracy.difference(RACE), within="sex")(PEOPLE, "y", "p"),
        lambda: tf.accuracy.difference(RACE)(gold, "y", "p", judged="judge"),
    ):
        with pytest.raises(ArgumentError, match=r'each row is in one group, .* or say `combined="alone"`'):
            call()
    with pytest.raises(ArgumentError, match=r"each row is in one group, .* and compare by that\.$"):
        inference.verdict_sensitivity(tf.check(tf.accuracy.difference(RACE), below=0.1))(PEOPLE, "y", "p")
    for call in (
        lambda: tf.accuracy(PEOPLE, "y", "p", group_by=RACE),  # pyright: ignore[reportCallIssue, reportArgumentType] - bad input
        lambda: inference.decompose(tf.accuracy, by=RACE, between="sex"),  # pyright: ignore[reportArgumentType] - bad input
        lambda: inference.subgroup_search(tf.accuracy, [tf.memberships("sex", separator=";")]),  # pyright: ignore[reportArgumentType] - bad input
        lambda: inference.missing_truth(PEOPLE, "y", "p", by=RACE),  # pyright: ignore[reportArgumentType] - bad input
    ):
        with pytest.raises(ColumnError, match="name the column of one group, or one of their combinations"):
            call()


def test_searches_read_the_columns_of_memberships() -> None:
    calls: list[tuple[Any, dict[str, Any]]] = [
        (lambda by: inference.subgroup_search(tf.accuracy, by), {"estimate": "p", "times": 49}),
        (inference.multicalibration_test, {"probs": "score"}),
    ]
    for search, call in calls:
        assert_frame_equal(*(search(by)(PEOPLE, "y", **call) for by in ([RACE, "sex"], [*GROUPS, "sex"])))


def test_people_who_are_outside_of_a_group_belong_to_its_rest() -> None:
    # of the last three it is not known whether they are in b
    data = pl.DataFrame({
        "a": [True, True, False, False, False, None, True], "b": [False, True, True, False, None, None, None],
        "hired": [1, 0, 1, 0, 1, 1, 1],
    })  # fmt: skip

    def rests(**options: Any) -> list[tuple[Any, ...]]:
        table = tf.compare_groups(tf.selection_rate, by=tf.memberships("a", "b"), to="rest", **options)
        rows = table(data, estimate="hired", on_undefined="ignore", explain=True)
        return rows.drop_nulls(".disparity").select(".group", ".n", ".denominator_reference").rows()

    assert rests() == [("a", 3, 3), ("b", 2, 2)]
    # two people of unknown groups, and five others
    assert rests(unknown="group") == [("a", 3, 3), ("b", 2, 2), ("null", 2, 5)]
    # who is left out altogether is in no rest
    assert rests(unknown="drop") == [("a", 3, 2), ("b", 2, 2)]
    # a value that means unknown says nothing of other groups
    texts = pl.DataFrame({"tags": ["a", "a;b", "b", "none", "Unknown", "a;Unknown"], "hired": [1, 0, 1, 0, 1, 1]})
    table = tf.compare_groups(tf.selection_rate, by=tf.memberships("tags", separator=";"), to="rest")
    rows = table(texts, estimate="hired", on_undefined="ignore", explain=True).drop_nulls(".disparity")
    assert rows.select(".group", ".n", ".denominator_reference").rows() == [("a", 3, 2), ("b", 2, 3)]


@pytest.mark.parametrize("to", ["overall", "rest"])
def test_without_rows_there_is_no_value(to: str) -> None:
    nobody = pl.DataFrame(schema={"y": pl.String, "e": pl.String, "a": pl.Boolean, "b": pl.Boolean})
    gap = tf.accuracy.difference(tf.memberships("a", "b"), to=to)
    assert gap(nobody, "y", "e", interval="auto")[".estimate"].to_list() == [None]


def test_people_in_no_group_are_no_reference() -> None:
    for call in (tf.accuracy.difference(RACE, to="none"), tf.compare_groups(tf.accuracy, by=RACE, to="none")):
        with pytest.raises(tf.errors.AggregateError, match=r'people in none of the groups of .*write `to="rest"`'):
            call(PEOPLE, "y", "p")


ALONE = tf.memberships(*GROUPS, name="race", combined="alone")
GOLD = DISJOINT.with_columns(judge="p", y=pl.when(pl.int_range(pl.len()) % 3 == 0).then("y"))


@pytest.mark.parametrize(
    "call",
    [
        lambda by: inference.stratified(tf.sens.difference(by), within="sex")(DISJOINT, "y", "p"),
        lambda by: inference.stratified(tf.sens.difference(by, "sex"), within="fold")(DISJOINT, "y", "p"),
        lambda by: inference.disparity_test(tf.sens.difference(by), within="sex")(DISJOINT, "y", "p", times=99),
        lambda by: tf.accuracy.difference(by)(GOLD, "y", "p", judged="judge", interval="auto"),
        lambda by: tf.sens.difference(by).by_group(GOLD, "y", "p", judged="judge", interval="auto"),
        lambda by: tf.accuracy.difference(by, "sex").by_group(DISJOINT, "y", "p", suppress_below=12, group_by="fold"),
        lambda by: tf.audit(
            "eeoc_uniform_guidelines", DISJOINT, estimate="p", by=[by, "sex"], suppress_below=28,
        ).tables["adverse_impact"],
        lambda by: tf.audit(
            "lending_adverse_impact", DISJOINT, "y", probs="score", threshold=0.5, within="fold", by=[by, "sex"],
            to={"race": "white", "sex": "m"},
        ).tables["segments"],
    ],
    ids=range(8),
)  # fmt: skip
def test_people_who_are_alone_in_their_groups_are_as_by_a_column(call: Callable[[Any], pl.DataFrame]) -> None:
    own, other = (of_texts(call(feature)) for feature in (ALONE, "race"))
    own = own.filter(pl.col(".group") != "two or more") if ".group" in own.columns else own
    assert_frame_equal(own, other, check_exact=True)


def test_features_of_one_name_and_separators_in_lists_are_refused() -> None:
    data = pl.DataFrame({"l": [["a\x1fb"], ["a", "b"]], "truth": [0, 1], "guess": [1, 1]})
    with pytest.raises(tf.errors.ColumnError, match=r"lists of 'l' has the character U\+001F"):
        tf.accuracy.difference(tf.memberships("l"))(data, "truth", "guess")
    one = tf.accuracy.difference(tf.memberships("a", "b", name="r"))
    for other in (tf.sens.difference(tf.memberships("a", "c", name="r")), tf.sens.difference("r")):
        with pytest.raises(tf.errors.ArgumentError, match="two features 'r'; give memberships another name"):
            tf.metric_set(one, other)
    assert len(tf.metric_set(one, tf.sens.difference(tf.memberships("a", "b", name="r")))) == 2
