"""Metrics of rankings equal plain arithmetic, list by list, and scikit-learn's nDCG."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from sklearn.metrics import dcg_score, ndcg_score

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


def value(result: Any) -> float:
    return as_polars(result)[".estimate"].item()


def exactly(number: float) -> Any:
    return pytest.approx(number, rel=1e-11, abs=1e-13)


@pytest.fixture(scope="module")
def found() -> pl.DataFrame:
    """Answers to 40 queries, some without relevant items, with few distinct scores."""
    random = np.random.default_rng(3)
    sizes = random.integers(1, 25, 40)
    rows = int(sizes.sum())
    query = np.repeat(np.arange(40), sizes)
    return pl.DataFrame(
        {
            "query": [f"q{number}" for number in query],
            "user": np.where(query % 3 == 0, "new", "old"),
            "group": random.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]),
            "score": random.integers(0, 8, rows) / 4,
            "relevance": np.where(query % 10 == 9, 0, random.integers(0, 4, rows)),
        }
    ).sample(fraction=1, shuffle=True, seed=1)


ATTENTION: dict[str, Callable[[int], float]] = {
    "log2": lambda position: 1 / math.log2(1 + position),
    "geometric": lambda position: 0.7 ** (position - 1),
    "reciprocal": lambda position: 1 / position,
}


def total(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].cast(pl.Float64).sum())


def attention(rows: pl.DataFrame, discount: str, k: int | None) -> list[float]:
    """The mean attention of the positions that an item may have among equal scores."""
    scores = rows["score"].to_list()
    result: list[float] = []
    for score in scores:
        above, equal = sum(other > score for other in scores), scores.count(score)
        positions = range(above + 1, above + equal + 1)
        parts = [ATTENTION[discount](position) if k is None or position <= k else 0.0 for position in positions]
        result.append(sum(parts) / equal)
    return result


def with_attention(found: pl.DataFrame, discount: str, k: int | None) -> pl.DataFrame:
    lists = found.partition_by("query")
    return pl.concat(rows.with_columns(pl.Series("attention", attention(rows, discount, k))) for rows in lists)


@pytest.mark.parametrize(("discount", "k"), [("log2", None), ("geometric", None), ("reciprocal", 5)])
def test_exposure_is_the_mean_attention_of_positions(found: pl.DataFrame, discount: Any, k: int | None) -> None:
    plain = with_attention(found, discount, k)
    metric = tf.rankings.exposure("query", discount=discount, patience=0.7, k=k)
    assert value(metric(found, estimate="score")) == exactly(plain["attention"].mean())  # pyright: ignore[reportArgumentType] - a number
    groups = metric.difference("group").by_group(found, estimate="score")
    means = plain.group_by("group").agg(pl.col("attention").mean()).sort("group")["attention"].to_list()
    assert dict(zip(groups["group"], groups[".estimate"], strict=True)) == dict(
        zip("abc", map(exactly, means), strict=True)
    )


def test_disparate_treatment_is_the_ratio_of_attention_per_relevance(found: pl.DataFrame) -> None:
    plain = with_attention(found, "log2", None)
    parts = {
        group: total(rows, "attention") / total(rows, "relevance") for (group,), rows in plain.group_by("group")
    }  # fmt: skip
    metric = tf.rankings.exposure_per_relevance("query").ratio("group", to="a", signed=True)
    groups = tf.rankings.exposure_per_relevance("query").difference("group").by_group(found, "relevance", "score")
    assert dict(zip(groups["group"], groups[".estimate"], strict=True)) == {
        str(group): exactly(part) for group, part in parts.items()
    }
    farthest = max((parts["b"] / parts["a"], parts["c"] / parts["a"]), key=lambda ratio: abs(math.log(ratio)))
    assert value(metric(found, "relevance", "score")) == exactly(farthest)


def test_attention_gap_is_the_mean_over_lists_of_the_shares_of_groups(found: pl.DataFrame) -> None:
    gaps: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    for rows in with_attention(found, "log2", 10).partition_by("query"):
        if not rows["relevance"].sum():
            continue
        for group, own in gaps.items():
            of_group = rows.filter(group=group)
            own.append(
                total(of_group, "attention") / total(rows, "attention")
                - total(of_group, "relevance") / total(rows, "relevance")
            )
    result = tf.rankings.attention_gap("query", k=10).difference("group").by_group(found, "relevance", "score")
    assert result[".estimate"].to_list() == [exactly(float(np.mean(own))) for own in gaps.values()]
    assert result[".estimate"].sum() == exactly(0)
    assert value(tf.rankings.attention_gap("query", k=10)(found, "relevance", "score")) == exactly(0)


@pytest.mark.parametrize("k", [None, 1, 5])
def test_ndcg_equals_scikit_learn_list_by_list(found: pl.DataFrame, k: int | None) -> None:
    expected: dict[str, float] = {}
    for rows in found.partition_by("query"):
        if len(rows) > 1 and rows["relevance"].sum():
            score = ndcg_score([rows["relevance"].to_numpy()], [rows["score"].to_numpy()], k=k)
            expected[rows["query"][0]] = float(score)
        elif rows["relevance"].sum():
            expected[rows["query"][0]] = 1.0
    by_query = tf.rankings.ndcg("query", k=k)(
        found, "relevance", "score", group_by="query", on_undefined="ignore", explain=True
    )  # fmt: skip
    assert dict(by_query.drop_nulls(".estimate").select("query", ".estimate").iter_rows()) == {
        query: exactly(score) for query, score in expected.items()
    }
    without = by_query.filter(pl.col(".estimate").is_null())
    assert len(without) == found["query"].n_unique() - len(expected)
    assert set(without[".status"]) == {"zero_denominator"}
    assert value(tf.rankings.ndcg("query", k=k)(found, "relevance", "score")) == exactly(
        float(np.mean([*expected.values()]))
    )
    by_user = tf.rankings.ndcg("query", k=k).difference("user").by_group(found, "relevance", "score")
    users = dict(found.select("query", "user").iter_rows())
    for user, mean in by_user.select("user", ".estimate").iter_rows():
        assert mean == exactly(float(np.mean([score for query, score in expected.items() if users[query] == user])))


def test_ndcg_with_exponential_gain() -> None:
    data = pl.DataFrame({"query": 1, "score": [3, 2, 1], "relevance": [0, 2, 1]})
    observed = 3 / math.log2(3) + 1 / 2
    ideal = 3 + 1 / math.log2(3)
    assert value(tf.rankings.ndcg("query", gain="exponential")(data, "relevance", "score")) == exactly(observed / ideal)


def test_ndcg_of_the_items_of_each_group_ranks_them_among_themselves(found: pl.DataFrame) -> None:
    metric = tf.rankings.ndcg(["query", "group"])
    result = metric.difference("group").by_group(found, "relevance", "score")
    for group, mean in result.select("group", ".estimate").iter_rows():
        assert mean == exactly(value(tf.rankings.ndcg("query")(found.filter(group=group), "relevance", "score")))


def test_dcg_is_the_mean_of_the_discounted_gains_of_lists(found: pl.DataFrame) -> None:
    scores = [
        float((rows["attention"] * rows["relevance"]).sum())
        for rows in with_attention(found, "log2", 5).partition_by("query")
    ]
    assert value(tf.rankings.dcg("query", k=5)(found, "relevance", "score")) == exactly(float(np.mean(scores)))
    # that of scikit-learn, for a list with three levels of relevance
    one = pl.DataFrame({"query": [1] * 4, "relevance": [2, 0, 1, 2], "score": [0.1, 0.4, 0.4, 0.9]})
    theirs = dcg_score([one["relevance"].to_numpy()], [one["score"].to_numpy()])
    assert value(tf.rankings.dcg("query")(one, "relevance", "score")) == exactly(float(theirs))
    data = pl.DataFrame({"query": [1, 1], "relevance": [3, 1], "score": [1, 2]})
    exponential = tf.rankings.dcg("query", gain="exponential")(data, "relevance", "score")
    assert value(exponential) == exactly(1 + 7 / math.log2(3))


def test_attention_gap_to_a_target_is_by_hand() -> None:
    """Two lists with attentions 1, 1/2 and 1/3; the second has nobody of group b."""
    data = pl.DataFrame({
        "query": [1, 1, 1, 2, 2], "score": [3, 2, 1, 2, 1], "g": ["a", "a", "b", "a", "c"],
    })  # fmt: skip
    gaps = tf.rankings.attention_gap("query", discount="reciprocal", by="g", target={"a": 0.5, "b": 0.3, "c": 0.2})
    found = gaps.difference("g").by_group(data, estimate="score")
    of_a = (1.5 / (11 / 6) - 0.5 / 0.8) + (1 / 1.5 - 0.5 / 0.7)
    of_b = 1 / 3 / (11 / 6) - 0.3 / 0.8
    of_c = 0.5 / 1.5 - 0.2 / 0.7
    assert found[".estimate"].to_list() == pytest.approx([of_a / 2, of_b / 2, of_c / 2])
    items = tf.rankings.attention_gap("query", discount="reciprocal", target="items").difference("g")
    even = items.by_group(data, estimate="score")[".estimate"].to_list()
    assert even[1] == pytest.approx((1 / 3 / (11 / 6) - 1 / 3) / 2)
    assert sum(even) == pytest.approx(0)


def test_targets_of_attention_need_their_groups() -> None:
    data = pl.DataFrame({"query": [1, 1], "score": [2, 1], "g": ["a", "b"]})
    with pytest.raises(tf.errors.ArgumentError, match="a target of groups needs their column"):
        tf.rankings.attention_gap("query", target={"a": 1.0})
    with pytest.raises(tf.errors.ArgumentError, match="a target of groups needs their column"):
        tf.rankings.attention_gap("query", by="g")
    with pytest.raises(tf.errors.ArgumentError, match="no share for the group 'b'"):
        tf.rankings.attention_gap("query", by="g", target={"a": 1.0})(data, estimate="score")
    with pytest.raises(tf.errors.ArgumentError, match="must be 'relevance' or 'items'"):
        tf.rankings.attention_gap("query", target=cast("Any", "even"))


def test_groups_must_not_divide_a_list(found: pl.DataFrame) -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"ndcg: rows with the same 'query' have different 'group'.*\['query', 'group'\]"
    ):
        tf.rankings.ndcg("query").difference("group")(found, "relevance", "score")
    # other metrics of the set may compare them
    both = tf.metric_set(tf.rankings.ndcg("query"), tf.rankings.exposure("query").ratio("group"))
    assert both(found, "relevance", "score")[".estimate"].null_count() == 0


def kl(shares: dict[str, float], wanted: dict[str, float]) -> float:
    return sum(share * math.log(share / wanted[group]) for group, share in shares.items() if share)


def test_ndkl_equals_plain_arithmetic_without_ties(found: pl.DataFrame) -> None:
    distinct = found.with_columns(score=pl.col("score") + pl.int_range(pl.len()) / 1e4)
    target = {"a": 0.2, "b": 0.3, "c": 0.5}
    expected: dict[str, list[float]] = {"own": [], "target": []}
    for rows in distinct.partition_by("query"):
        groups = rows.sort("score", descending=True)["group"].to_list()
        own = {group: groups.count(group) / len(groups) for group in target}
        weights = [1 / math.log2(position + 1) for position in range(1, len(groups) + 1)]
        for name, wanted in (("own", own), ("target", target)):
            parts: list[float] = []
            for position in range(1, len(groups) + 1):
                top = groups[:position]
                parts.append(kl({group: top.count(group) / position for group in target}, wanted))
            expected[name].append(sum(map(math.prod, zip(weights, parts, strict=True))) / sum(weights))
    assert value(tf.rankings.ndkl("query", "group")(distinct, estimate="score")) == exactly(
        float(np.mean(expected["own"]))
    )
    of_target = tf.rankings.ndkl("query", "group", target=target)(distinct, estimate="score")
    assert value(of_target) == exactly(float(np.mean(expected["target"])))


def test_items_with_equal_scores_count_with_the_expected_number_of_their_group() -> None:
    tied = pl.DataFrame({"query": 1, "score": [2, 1, 1, 1], "group": ["a", "a", "b", "b"]})
    orders = [["a", *order] for order in set(itertools.permutations(["a", "b", "b"]))]
    total = 0.0
    weights = [1 / math.log2(position + 1) for position in range(1, 5)]
    for position, weight in enumerate(weights, 1):
        share = float(np.mean([order[:position].count("a") / position for order in orders]))
        total += weight * kl({"a": share, "b": 1 - share}, {"a": 0.5, "b": 0.5})
    assert value(tf.rankings.ndkl("query", "group")(tied, estimate="score")) == exactly(total / sum(weights))


def test_rnd_is_one_for_the_worst_orders_and_equals_plain_arithmetic() -> None:
    def of(marks: list[bool]) -> float:
        data = pl.DataFrame({"query": 1, "score": range(len(marks), 0, -1), "protected": marks})
        return value(tf.rankings.rnd("query", "protected", step=2)(data, estimate="score"))

    assert of([True] * 4 + [False] * 6) == 1
    marks = [True, False, False, True, False, True, False, False, False, True]
    lengths = range(2, 11, 2)

    def plain(order: list[bool]) -> float:
        return sum(abs(sum(order[:size]) / size - 0.4) / math.log2(size) for size in lengths)

    worst = max(plain([True] * 4 + [False] * 6), plain([False] * 6 + [True] * 4))
    assert of(marks) == exactly(plain(marks) / worst)


def test_rnd_leaves_out_lists_in_which_nothing_can_differ() -> None:
    data = pl.DataFrame(
        {"query": [1, 1, 2, 2, 2, 2], "score": [2, 1, 4, 3, 2, 1], "protected": [True] * 4 + [False] * 2}
    )
    result = tf.rankings.rnd("query", "protected", step=2)
    assert value(result(data, estimate="score")) == 1
    nothing = result(data.filter(query=1), estimate="score", on_undefined="ignore", explain=True)
    assert nothing.select(".estimate", ".status").row(0) == (None, "zero_denominator")


METRICS = [
    tf.rankings.exposure("query"),
    tf.rankings.exposure_per_relevance("query", discount="geometric"),
    tf.rankings.ndcg("query", k=3),
    tf.rankings.ndkl("query", "group"),
    tf.rankings.rnd("query", (pl.col("group") == "a").alias("is a"), step=3),
    tf.rankings.attention_gap("query"),
]


def test_rankings_do_not_depend_on_the_order_of_rows(found: pl.DataFrame) -> None:
    both = tf.metric_set(*METRICS)
    shuffled = found.sample(fraction=1, shuffle=True, seed=8)
    first, second = (both(data, "relevance", "score")[".estimate"].to_list() for data in (found, shuffled))
    assert first == [exactly(number) for number in second]


def test_rankings_on_every_engine(found: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    both = tf.metric_set(*METRICS[:4], tf.rankings.exposure("query").ratio("group"))
    result = as_polars(both(engine(found), "relevance", "score"))
    expected = both(found, "relevance", "score")
    assert result[".metric"].to_list() == expected[".metric"].to_list()
    assert result[".estimate"].to_list() == [exactly(number) for number in expected[".estimate"]]


def test_rows_without_score_or_relevance_are_not_ranked(found: pl.DataFrame) -> None:
    missing = pl.int_range(pl.len()) % 7 == 0
    gaps = found.with_columns(relevance=pl.when(~missing).then("relevance"))
    result = tf.rankings.ndcg("query")(gaps, "relevance", "score")
    assert value(result) == exactly(value(tf.rankings.ndcg("query")(found.filter(~missing), "relevance", "score")))
    assert (
        tf.rankings.ndcg("query")(gaps, "relevance", "score", na_rm=False, on_undefined="ignore")[".estimate"].item()
        is None
    )


def test_metrics_that_need_relevance_do_not_change_those_that_do_not(found: pl.DataFrame) -> None:
    gaps = found.with_columns(relevance=pl.when(pl.int_range(pl.len()) % 3 > 0).then("relevance"))
    metrics = (tf.rankings.exposure("query"), tf.rankings.exposure_per_relevance("query"))
    together = tf.metric_set(*metrics)(gaps, "relevance", "score")[".estimate"].to_list()
    assert together == [exactly(value(metric(gaps, "relevance", "score"))) for metric in metrics]
    assert together[0] == exactly(value(metrics[0](found, estimate="score")))


def test_lists_are_those_of_an_outer_group(found: pl.DataFrame) -> None:
    result = tf.rankings.exposure("query")(found, estimate="score", group_by="group")
    for group, mean in result.select("group", ".estimate").iter_rows():
        assert mean == exactly(value(tf.rankings.exposure("query")(found.filter(group=group), estimate="score")))


def test_weights_count_whole_lists(found: pl.DataFrame) -> None:
    weighted = found.with_columns(weight=pl.when(user="new").then(3).otherwise(1))
    twice = pl.concat([
        found,
        *(found.filter(user="new").with_columns(pl.col("query") + suffix) for suffix in ("b", "c")),
    ])  # fmt: skip
    result = tf.rankings.ndcg("query")(weighted, "relevance", "score", case_weights="weight")
    assert value(result) == exactly(value(tf.rankings.ndcg("query")(twice, "relevance", "score")))
    with pytest.raises(tf.errors.WeightError, match="rows with the same 'query' have different weights"):
        tf.rankings.ndcg("query")(weighted.with_columns(weight="score"), "relevance", "score", case_weights="weight")


def test_intervals_of_rankings_are_those_of_means_over_lists(found: pl.DataFrame) -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=r"ndcg: the rows of a list depend on each other.*`cluster='query'`"
    ):
        tf.rankings.ndcg("query")(found, "relevance", "score", interval="auto")
    by_query = tf.rankings.ndcg("query")(found, "relevance", "score", group_by="query", on_undefined="ignore")
    summary = tf.inference.summarize(by_query)
    result = tf.rankings.ndcg("query")(found, "relevance", "score", interval="auto", cluster="query")
    assert result[".estimate"].item() == exactly(summary[".mean"].item())
    # the clusters without relevant items are part of the sample
    assert result[".std_error"].item() == pytest.approx(summary[".std_error"].item(), rel=0.02)
    assert result[".lower"].item() < result[".estimate"].item() < result[".upper"].item()
    gap = tf.rankings.exposure("query").difference("group")(found, estimate="score", interval="auto", cluster="query")
    assert gap[".lower"].item() <= gap[".estimate"].item() <= gap[".upper"].item()


def test_metrics_of_rankings_pickle() -> None:
    for metric in METRICS[:4]:
        assert pickle.loads(pickle.dumps(metric)) == metric  # noqa: S301 - made here


def test_tallies_of_parts_cannot_be_added(found: pl.DataFrame) -> None:
    one, other = (tf.rankings.exposure("query").tally(part, estimate="score") for part in (found[:50], found[50:]))
    with pytest.raises(
        tf.errors.ArgumentError, match="Lists may have rows in both parts, so tallies of parts cannot be added"
    ):
        one + other  # pyright: ignore[reportUnusedExpression] - adding is what raises


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tf.rankings.exposure([]),
            'exposure() needs the column of lists, such as "query", or several; `lists` is empty',
        ),
        (lambda: tf.rankings.exposure(["a", "a"]), "`lists` is empty or has duplicates"),
        (lambda: tf.rankings.exposure("query", discount="log"), "not 'log'. Did you mean 'log2'?"),  # pyright: ignore[reportArgumentType] - a slip
        (lambda: tf.rankings.exposure("query", patience=1), "`patience` is a number between 0 and 1, not 1"),
        (lambda: tf.rankings.ndcg("query", k=0), "ndcg(): `k` is a whole number, 1 or more, not 0."),
        (lambda: tf.rankings.ndkl("query", "group", target={"a": 0.5}), "the shares in `target` add up to 0.5, not 1"),
        (lambda: tf.rankings.rnd("query", "group", step=0), "rnd(): `step` is a whole number, 1 or more, not 0."),
    ],
)
def test_bad_settings_of_rankings(make: Callable[[], object], message: str) -> None:
    with pytest.raises(tf.errors.ArgumentError) as error:
        make()
    assert message in str(error.value)


def test_bad_columns_of_rankings(found: pl.DataFrame) -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"'query' says which list a row belongs to, but is null in 40 rows"
    ):
        tf.rankings.exposure("query")(found.with_columns(query=pl.col("query").shift(40)), estimate="score")
    with pytest.raises(tf.errors.ColumnError, match=r"`lists`: there is no column 'qery'\. Did you mean 'query'\?"):
        tf.rankings.exposure("qery")(found, estimate="score")
    with pytest.raises(tf.errors.ColumnError, match="relevance is 0 or more, but the smallest value is -1"):
        tf.rankings.ndcg("query")(found.with_columns(pl.col("relevance") - 1), "relevance", "score")
    with pytest.raises(tf.errors.ArgumentError, match=r"`target` has no share for the group 'c'; it has 'a', 'b'"):
        tf.rankings.ndkl("query", "group", target={"a": 0.5, "b": 0.5})(found, estimate="score")
    with pytest.raises(
        tf.errors.ColumnError, match=r"`protected` is a Boolean column, but it has the values 'a', 'b', 'c'"
    ):
        tf.rankings.rnd("query", "group")(found, estimate="score")


def test_a_group_that_is_wanted_nowhere_makes_the_divergence_infinite() -> None:
    data = pl.DataFrame({"query": 1, "score": [2, 1], "group": ["a", "b"]})
    result = tf.rankings.ndkl("query", "group", target={"a": 1.0, "b": 0.0})(
        data, estimate="score", on_undefined="ignore", explain=True
    )
    assert result.select(".estimate", ".status").row(0) == (math.inf, "infinite")


def test_skew_at_k_is_the_logarithm_of_shares(found: pl.DataFrame) -> None:
    data = found.with_columns(score=pl.col("score") + pl.int_range(pl.len()) / 1e4)
    top = data.sort("score", descending=True).head(100)
    expected: list[float] = []
    for group in "abc":
        shares = [len(rows.filter(group=group)) / len(rows) for rows in (top, data)]
        expected.append(math.log(shares[0] / shares[1]))
    both = tf.metric_set(tf.rankings.min_skew("group"), tf.rankings.max_skew("group"))
    result = both(data, probs="score", top_k=100)
    assert result[".estimate"].to_list() == [exactly(min(expected)), exactly(max(expected))]
    groups = tf.rankings.min_skew("group").by_group(data, probs="score", top_k=100)
    assert groups[".estimate"].to_list() == [exactly(skew) for skew in expected]


def test_skew_of_a_group_that_is_not_at_the_top_is_infinite() -> None:
    data = pl.DataFrame({"score": [3, 2, 1], "group": ["a", "a", "b"]})
    result = tf.rankings.min_skew("group")(data, probs="score", top_k=2, explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status", ".group_min").row(0) == (-math.inf, "infinite", "b")
    # of a query in which nobody is selected there is no value
    nobody = tf.rankings.skew(data, estimate=(pl.col("score") > 3).alias("top"), on_undefined="ignore", explain=True)
    assert nobody.select(".estimate").item() is None


def test_tests_need_to_know_the_lists_and_models_are_compared_list_by_list(found: pl.DataFrame) -> None:
    gap = tf.rankings.exposure("query").difference("group")
    with pytest.raises(
        tf.errors.ArgumentError, match=r"exposure: the rows of a list depend on each other.*`cluster='query'`"
    ):
        tf.inference.pairwise(gap)(found, estimate="score")
    assert tf.inference.pairwise(gap)(found, estimate="score", cluster="query")[".p_value"].null_count() == 0
    with pytest.raises(tf.errors.ArgumentError, match="cannot compare ndcg, in which rows depend on each other"):
        tf.compare_models(tf.rankings.ndcg("query"))
    # nDCG of two rankings, query by query
    one, other = (
        tf.rankings.ndcg("query")(found, "relevance", score, group_by="query", on_undefined="ignore")
        for score in ("score", (pl.col("score") * 0).alias("all tied"))
    )
    result = tf.inference.compare_resamples(one, other)
    changes = (other[".estimate"] - one[".estimate"]).drop_nulls().to_numpy()
    assert result.select(".difference", ".n").row(0) == (exactly(changes.mean()), len(changes))
    assert result[".std_error"].item() == exactly(changes.std(ddof=1) / math.sqrt(len(changes)))


def test_exponential_gains_of_large_relevance_are_compared_within_lists() -> None:
    data = pl.DataFrame({"query": [1, 1, 2, 2], "score": [2, 1, 2, 1], "relevance": [1998.0, 2000, 3, 1]})
    result = tf.rankings.ndcg("query", gain="exponential")(data, "relevance", "score", group_by="query")
    second = 1 / math.log2(3)
    # 2**1998 and 2**2000 are to each other as 1 and 4
    assert result[".estimate"].to_list() == [exactly((1 + 4 * second) / (4 + second)), exactly(1.0)]


@pytest.mark.parametrize("largest", [math.inf, 1e308])
def test_infinite_and_huge_relevance_raise_without_a_warning_of_numpy(largest: float) -> None:
    data = pl.DataFrame({"query": [1, 1], "score": [2, 1], "relevance": [largest, largest]})
    for metric in (
        tf.rankings.ndcg("query"),
        tf.rankings.attention_gap("query"),
        tf.rankings.exposure_per_relevance("query"),
    ):
        with pytest.raises(
            tf.errors.ColumnError, match=r"'relevance' holds (infinite values|numbers as large as 1e\+308)"
        ):
            metric(data, "relevance", "score")


def test_missing_columns_of_lists_are_named_with_their_argument(found: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="`by`: there is no column 'sex'"):
        tf.rankings.ndkl("query", by="sex")(found, estimate="score")
    with pytest.raises(tf.errors.ColumnError, match="`protected`: there is no column 'sex'"):
        tf.rankings.rnd("query", "sex")(found, estimate="score")
    with pytest.raises(tf.errors.ColumnError, match="`item`: there is no column 'id'"):
        tf.annotators.fleiss_kap("id")(found, estimate="relevance")
    with pytest.raises(tf.errors.ArgumentError, match="`target of 'a'` is a number from 0 to 1, not -1"):
        tf.rankings.ndkl("query", by="group", target={"a": -1, "b": 2})
