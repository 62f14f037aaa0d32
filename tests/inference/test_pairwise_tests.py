"""Tests of pairs of groups equal Newcombe's limits, Fisher's test and step-down adjustment."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from inline_snapshot import snapshot
from permutation_data import SAME, SMALL, TIMES, error, random_people
from polars.testing import assert_frame_equal
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep

import tidyfair as tf
from tidyfair import inference

if TYPE_CHECKING:
    from collections.abc import Sequence


NO_PAIRS: list[Any] = [tf.equalized_odds("g"), tf.differential_fairness("g"), tf.independence("g")]


@pytest.mark.parametrize("metric", NO_PAIRS, ids=lambda item: item.name)
def test_pairwise_refuses_metrics_that_are_no_comparison_of_single_values(metric: Any) -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=r"compares several rates|compares each group with others already"
    ):
        tf.inference.pairwise(metric)


GROUPS = {"a": (31, 60), "b": (9, 25), "c": (0, 12), "d": (7, 7)}


@pytest.fixture(scope="module")
def pairs_of() -> pl.DataFrame:
    """Decisions of four groups, one of which has none and one of which has all."""
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (size - hits), "g": group}) for group, (hits, size) in GROUPS.items()
    )


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_pairwise_equals_newcombe_and_fisher(pairs_of: pl.DataFrame, level: float) -> None:
    result = tf.inference.pairwise(tf.demographic_parity("g"))(pairs_of, estimate="e", conf_level=level)
    error = (1 - level) / len(result)
    assert result.select(".group", ".other").rows() == list(itertools.combinations(GROUPS, 2))
    for row in result.to_dicts():
        (one, rows), (other, other_rows) = GROUPS[row[".group"]], GROUPS[row[".other"]]
        assert (row[".n"], row[".n_other"]) == (rows, other_rows)
        assert row[".estimate"] == pytest.approx(one / rows)
        assert row[".estimate_other"] == pytest.approx(other / other_rows)
        assert row[".disparity"] == pytest.approx(one / rows - other / other_rows)
        low, high = confint_proportions_2indep(one, rows, other, other_rows, method="newcomb", alpha=error)
        if row[".p_adjusted"] >= 1 - level:
            low, high = min(low, 0), max(high, 0)
        elif row[".disparity"] > 0:
            low = max(low, 0)
        else:
            high = min(high, 0)
        assert (row[".lower"], row[".upper"]) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
        expected = stats.fisher_exact([[one, rows - one], [other, other_rows - other]])[1]
        assert row[".p_value"] == pytest.approx(expected)


def excludes_equality(result: pl.DataFrame) -> list[bool]:
    """Whether the intervals of pairs exclude equality, which may be an end that does not belong to them."""
    excluded: list[bool] = []
    for row in result.to_dicts():
        equality = 0 if row[".scale"] == "difference" else 1
        is_open = row[".method"].endswith(f", open at {equality}")
        # where an end is open, it is the nearer one, and an end that is a number beside equality is none
        nearer = row[".lower"] if row[".disparity"] > equality else row[".upper"]
        assert not is_open or nearer == equality
        assert nearer == equality or abs(nearer - equality) > 1e-12
        excluded.append(is_open or row[".lower"] > equality or row[".upper"] < equality)
    return excluded


@pytest.mark.parametrize("adjust", ["holm", "max_t", "bh", "by", "none"])
@pytest.mark.parametrize("test", ["fisher", "chi_squared", "g"])
@pytest.mark.parametrize("family", ["all", "metric"])
def test_pairwise_limits_exclude_0_where_adjusted_p_values_reject_it(adjust: Any, test: Any, family: Any) -> None:
    random = np.random.default_rng(7)
    rows = random.integers(2, 90, (12, 4))
    hits = random.binomial(rows, random.uniform(0.2, 0.8, (12, 4)))
    data = pl.DataFrame({
        "table": np.repeat(np.arange(12), 8), "g": np.tile(np.repeat(list("abcd"), 2), 12), "e": [1, 0] * 48,
        "people": np.stack([hits, rows - hits], axis=-1).ravel(),
    })  # fmt: skip
    for level in (0.7, 0.95):
        test_of = tf.inference.pairwise(tf.demographic_parity("g"), adjust=adjust, test=test, family=family)
        result = test_of(data, estimate="e", group_by="table", frequency_weights="people", conf_level=level)
        rejected = result[".p_adjusted"] < 1 - level
        assert excludes_equality(result) == rejected.to_list()
        assert 0 < rejected.sum() < len(result)
        assert result.select((pl.col(".lower") <= pl.col(".disparity")).all()).item()
        assert result.select((pl.col(".upper") >= pl.col(".disparity")).all()).item()


def test_pair_that_is_told_apart_by_steps_alone_has_limits_that_are_open_at_equality() -> None:
    # once another pair of three groups differs, the p-value of 14 / 50 and 24 / 50 alone decides, which is below 0.05
    data = decisions((2, 14, 24), (50, 50, 50))
    result = tf.inference.pairwise(tf.demographic_parity("g"), mid_p=True)(data, estimate="e")
    row = result.row(2, named=True)
    assert row[".p_adjusted"] < 0.05
    low, high = confint_proportions_2indep(14, 50, 24, 50, method="newcomb", alpha=0.05 / 3)
    assert high > 0
    assert row[".lower"] == pytest.approx(low)
    assert (row[".upper"], row[".method"]) == (0.0, "newcombe, open at 0")
    assert result[".method"].to_list() == ["newcombe", "newcombe", "newcombe, open at 0"]
    ratios = tf.inference.pairwise(tf.selection_rate.ratio("g"), mid_p=True)(data, estimate="e").row(2, named=True)
    assert (ratios[".upper"], ratios[".method"]) == (1.0, "miettinen_nurminen, open at 1")


def test_pairwise_limits_of_bh_have_the_level_of_the_rejected_share() -> None:
    data = decisions((40, 12, 25, 26), (50, 50, 50, 50))
    result = tf.inference.pairwise(tf.demographic_parity("g"), adjust="bh")(data, estimate="e")
    rejected = int((result[".p_adjusted"] < 0.05).sum())
    assert 1 < rejected < 6
    low, high = confint_proportions_2indep(40, 50, 12, 50, method="newcomb", alpha=0.05 * rejected / 6)
    assert result.select(".lower", ".upper").row(0) == pytest.approx((low, high))


@pytest.mark.simulation
@pytest.mark.parametrize("adjust", ["holm", "max_t"])
def test_pairwise_limits_hold_for_all_pairs_at_once(adjust: Any) -> None:
    random, runs, rates = np.random.default_rng(11), 300, np.array([0.3, 0.3, 0.3, 0.42])
    rows = np.array([60, 100, 150, 80])
    hits = random.binomial(rows, rates, (runs, 4))
    data = pl.DataFrame({
        "run": np.repeat(np.arange(runs), 8), "g": np.tile(np.repeat(list("abcd"), 2), runs), "e": [1, 0] * 4 * runs,
        "people": np.stack([hits, rows - hits], axis=-1).ravel(),
    })  # fmt: skip
    test = tf.inference.pairwise(tf.demographic_parity("g"), adjust=adjust, family="metric")
    call: dict[str, Any] = {"estimate": "e", "frequency_weights": "people", "labels": [0, 1], "pos_label": 1}
    if adjust == "max_t":
        result = test(data, **call, group_by="run", times=2000)
    else:
        # a family is that of a call
        parts = data.partition_by("run")
        result = pl.concat(
            test(part.drop("run"), **call, times=2000).with_columns(run=part["run"][0]) for part in parts
        )
    true = dict(zip("abcd", rates.tolist(), strict=True))
    difference = pl.col(".group").replace_strict(true) - pl.col(".other").replace_strict(true)
    held = result.with_columns(held=difference.is_between(".lower", ".upper")).group_by("run").agg(pl.col("held").all())
    assert held["held"].mean() >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


def test_pairwise_p_values_of_many_tables_equal_fisher() -> None:
    random = np.random.default_rng(6)
    sizes = random.integers(1, 40, (40, 2))
    hits = random.binomial(sizes, random.uniform(size=(40, 1)))
    data = pl.concat(
        pl.DataFrame({"e": [1] * hit + [0] * (size - hit), "g": group, "table": table})
        for table in range(40)
        for group, size, hit in zip("ab", sizes[table].tolist(), hits[table].tolist(), strict=True)
    )
    result = tf.inference.pairwise(tf.demographic_parity("g"))(data, estimate="e", group_by="table")
    assert result["table"].to_list() == list(range(40))
    for table, p_value in result.select("table", ".p_value").rows():
        counts = [[int(hits[table, at]), int(sizes[table, at] - hits[table, at])] for at in (0, 1)]
        assert p_value == pytest.approx(stats.fisher_exact(counts)[1]), counts


def test_pairwise_with_another_test(pairs_of: pl.DataFrame) -> None:
    pair = pairs_of.filter(pl.col("g").is_in(list(GROUPS)[:2]))
    (one, rows), (other, other_rows) = list(GROUPS.values())[:2]
    table = [[one, rows - one], [other, other_rows - other]]
    for test, power in (("chi_squared", "pearson"), ("g", "log-likelihood")):
        asked: Any = test
        result = tf.inference.pairwise(tf.demographic_parity("g"), test=asked)(pair, estimate="e")
        expected: Any = stats.chi2_contingency(table, correction=False, lambda_=power)
        assert result[".p_value"].item() == pytest.approx(expected.pvalue)
        assert (result[".test"].item(), result[".method"].item()) == (test, "newcombe")
    odd: Any = "chisq"
    with pytest.raises(tf.errors.ArgumentError, match=r"`test=` must be .*, not 'chisq'"):
        tf.inference.pairwise(tf.demographic_parity("g"), test=odd)


def test_pairwise_uses_the_denominator_of_the_rate() -> None:
    result = tf.inference.pairwise(tf.equal_opportunity("g"), tf.predictive_parity("g"))(SMALL, "t", "e")
    for name, about, holds in (("sens", "t", "e"), ("precision", "e", "t")):
        rates = SMALL.filter(pl.col(about) == 1).group_by("g").agg(pl.col(holds).mean().alias("rate"), pl.len())
        expected = {group: (rate, rows) for group, rate, rows in rates.rows()}
        mine = result.filter(pl.col(".metric") == name)
        assert set(mine[".group"]) | set(mine[".other"]) == set(expected)
        for row in mine.to_dicts():
            assert (row[".estimate"], row[".n"]) == expected[row[".group"]]
            assert (row[".estimate_other"], row[".n_other"]) == expected[row[".other"]]


def test_pairwise_names_groups() -> None:
    crossed = tf.inference.pairwise(tf.demographic_parity("g", "h"))(SMALL, "t", "e")
    assert set(crossed[".by"]) == {"g:h"}
    assert set(crossed[".group"]) | set(crossed[".other"]) == {f"{one}:{other}" for one in "abc" for other in "xy"}
    assert len(crossed) == math.comb(6, 2)
    sides = tf.inference.pairwise(tf.demographic_parity(tf.privileged(g="a")))(SMALL, "t", "e")
    assert sides.select(".by", ".group", ".other").rows() == [("g=a", "privileged", "unprivileged")]
    missing = tf.inference.pairwise(tf.demographic_parity("w", unknown="group"))(SMALL, "t", "e")
    assert set(missing[".group"]) | set(missing[".other"]) == {"u", "v", "null"}


def test_pairwise_tests_outer_groups_separately() -> None:
    people = random_people()
    test = tf.inference.pairwise(tf.equal_opportunity("g"), adjust="none")
    result = test(people, "t", "e", group_by="fold")
    for (fold,), part in people.group_by("fold"):
        assert result.filter(fold=fold).drop("fold").equals(test(part, "t", "e"))
    answer = as_polars(test(people.to_pandas(), "t", "e", group_by="fold"))
    assert answer[".p_value"].to_list() == pytest.approx(result[".p_value"].to_list())


def decisions(hits: Sequence[int], rows: Sequence[int]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame({"e": [1] * hit + [0] * (size - hit), "g": group})
        for group, hit, size in zip("abcdef", hits, rows, strict=False)
    )


def any_so_far(distance: float, rows: Sequence[int], pairs: Sequence[tuple[int, int]]) -> float:
    """The probability that any of some pairs of equal groups is so many standard errors apart, by scipy's integral."""
    contrasts = np.zeros((len(pairs), len(rows)))
    for index, (one, other) in enumerate(pairs):
        error = math.sqrt(1 / rows[one] + 1 / rows[other])
        contrasts[index, one], contrasts[index, other] = 1 / error, -1 / error
    covariance = contrasts @ np.diag(1 / np.array(rows)) @ contrasts.T
    ends = np.full(len(pairs), distance)
    normal: Any = stats.multivariate_normal
    options = {"lower_limit": -ends, "allow_singular": True, "maxpts": 20_000, "abseps": 1e-3}
    return 1 - float(normal.cdf(ends, cov=covariance, **options))


def partitions(groups: Sequence[int]) -> list[list[list[int]]]:
    """All ways to put groups together that are equal."""
    if not groups:
        return [[]]
    first, *others = groups
    result: list[list[list[int]]] = []
    for parts in partitions(others):
        result.append([[first], *parts])
        result += [[*parts[:index], [first, *part], *parts[index + 1 :]] for index, part in enumerate(parts)]
    return result


def numbers_of_equal_pairs(groups: int) -> set[int]:
    return {sum(math.comb(len(part), 2) for part in parts) for parts in partitions(range(groups))}


def closed_holm(p_values: Sequence[float], numbers: set[int]) -> list[float]:
    """Holm's adjustment for as many pairs as can be equal."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    result, so_far = [0.0] * len(p_values), 0.0
    for passed, index in enumerate(order):
        most = max(number for number in numbers if number <= len(p_values) - passed)
        so_far = max(so_far, min(1.0, most * p_values[index]))
        result[index] = so_far
    return result


def step_down(p_values: Sequence[float], rows: Sequence[int]) -> list[float]:
    """What is adjusted by the largest distance of the pairs that are not yet told apart, one after the other."""
    numbers = numbers_of_equal_pairs(len(rows))
    pairs = list(itertools.combinations(range(len(rows)), 2))
    order = sorted(range(len(pairs)), key=lambda index: p_values[index])
    result, so_far = [0.0] * len(pairs), 0.0
    for passed, index in enumerate(order):
        distance = -statistics.NormalDist().inv_cdf(p_values[index] / 2)
        most = max(number for number in numbers if number <= len(pairs) - passed)
        reached = min(any_so_far(distance, rows, [pairs[item] for item in order[passed:]]), most * p_values[index])
        so_far = max(so_far, reached)
        result[index] = so_far
    return result


def by_largest(test: Any = "fisher", times: int = TIMES, seed: int = 0) -> Any:
    return partial(tf.inference.pairwise(tf.demographic_parity("g"), test=test, adjust="max_t"), times=times, seed=seed)


@pytest.mark.parametrize("test", ["fisher", "chi_squared", "g"])
def test_max_t_equals_step_down_of_the_largest_distance(test: str) -> None:
    for hits, rows in (([20, 9, 4, 11], [40, 30, 20, 20]), ([300, 5, 9], [900, 20, 60])):
        result = by_largest(test)(decisions(hits, rows), estimate="e")
        expected = step_down(result[".p_value"].to_list(), rows)
        assert result[".p_adjusted"].to_list() == pytest.approx(expected, abs=error(0.3))
        assert result[".adjustment"].unique().to_list() == ["max_t over the pairs of each comparison"]


def test_max_t_of_equal_sizes_equals_tukey() -> None:
    result = by_largest("chi_squared")(decisions([45, 55, 50, 63, 58], [150] * 5), estimate="e")
    distance = -statistics.NormalDist().inv_cdf(result[".p_value"].min() / 2)
    expected = float(stats.studentized_range.sf(distance * math.sqrt(2), 5, np.inf))
    assert 0.05 < expected < 0.4
    assert result[".p_adjusted"].min() == pytest.approx(expected, abs=error(0.4))


NOT_ALL_EQUAL = [
    ((10, 20, 500, 1000), (0.3, 0.3, 0.3, 0.3)),
    ((10, 20, 500, 1000), (0.5, 0.5, 0.02, 0.02)),
    ((50, 50, 50, 2000), (0.5, 0.5, 0.5, 0.02)),
    ((20, 20, 20, 20, 20, 5000), (0.5, 0.5, 0.5, 0.5, 0.5, 0.01)),
    ((1000, 1000, 30, 30), (0.1, 0.1, 0.4, 0.4)),
    ((100, 100, 100, 100, 100, 100), (0.4, 0.4, 0.4, 0.1, 0.1, 0.1)),
]


@pytest.mark.simulation
@pytest.mark.parametrize(("sizes", "rates"), NOT_ALL_EQUAL, ids=str)
def test_max_t_familywise_error_rate(sizes: tuple[int, ...], rates: tuple[float, ...]) -> None:
    runs, random = 200, np.random.default_rng(5)
    group = np.tile(np.repeat(np.arange(len(sizes)), sizes), runs)
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), sum(sizes)),
            "g": group,
            "e": (random.random(len(group)) < np.array(rates)[group]).astype(int),
        }
    )
    result = by_largest(times=1000)(data, estimate="e", group_by="run")
    equal = [rates[int(one)] == rates[int(other)] for one, other in result.select(".group", ".other").rows()]
    rejected = result.filter(pl.Series(equal) & (pl.col(".p_adjusted") <= 0.05))
    assert rejected["run"].n_unique() / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("sizes", "rates", "adjust"),
    # Holm's adjustment needs nothing of the pairs, so that it is tried on few
    [(*case, "max_t") for case in NOT_ALL_EQUAL] + [(*case, "holm") for case in NOT_ALL_EQUAL[1::2]],
    ids=str,
)
def test_familywise_error_rate_with_mid_p_values(sizes: tuple[int, ...], rates: tuple[float, ...], adjust: Any) -> None:
    runs, random = 150, np.random.default_rng(6)
    hits = random.binomial(sizes, rates, (runs, len(sizes)))
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * len(sizes)),
            "g": np.tile(np.repeat(np.arange(len(sizes)), 2), runs),
            "e": np.tile([1, 0], runs * len(sizes)),
            "people": np.stack([hits, np.array(sizes) - hits], axis=-1).ravel(),
        }
    )
    test = tf.inference.pairwise(tf.demographic_parity("g"), adjust=adjust, mid_p=True)
    call: dict[str, Any] = {"frequency_weights": "people", "labels": [0, 1], "pos_label": 1}
    if adjust == "max_t":
        result = test(data, estimate="e", group_by="run", **call, times=1000)
    else:
        # a family is that of a call
        parts = data.partition_by("run")
        result = pl.concat(
            test(part.drop("run"), estimate="e", **call, times=1000).with_columns(run=part["run"][0]) for part in parts
        )
    equal = [rates[int(one)] == rates[int(other)] for one, other in result.select(".group", ".other").rows()]
    rejected = result.filter(pl.Series(equal) & (pl.col(".p_adjusted") <= 0.05))
    assert rejected["run"].n_unique() / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_holm_counts_the_pairs_that_can_be_equal() -> None:
    for hits, rows in (([20, 9, 4, 11], [40, 30, 20, 20]), ([30, 5, 9], [60, 40, 60]), ([1, 9, 30, 40, 6], [60] * 5)):
        result = tf.inference.pairwise(tf.demographic_parity("g"))(decisions(hits, rows), estimate="e")
        raw = result[".p_value"].to_list()
        expected = closed_holm(raw, numbers_of_equal_pairs(len(rows)))
        assert result[".p_adjusted"].to_list() == pytest.approx(expected)
        holm: Any = multipletests(raw, method="holm")[1]
        assert (result[".p_adjusted"].to_numpy() <= holm * (1 + SAME)).all()
        assert result[".adjustment"].unique().to_list() == ["closed holm over all"]


def test_holm_over_several_comparisons_counts_the_pairs_of_each() -> None:
    people = random_people(300)
    test = tf.inference.pairwise(tf.demographic_parity("g"), tf.equal_opportunity("g"))
    result = test(people, "t", "e")
    groups = people["g"].n_unique()
    of_one = numbers_of_equal_pairs(groups)
    both = {one + other for one in of_one for other in of_one}
    assert result[".p_adjusted"].to_list() == pytest.approx(closed_holm(result[".p_value"].to_list(), both))


def test_max_t_p_value_lies_between_raw_and_holm() -> None:
    random, tables = np.random.default_rng(8), list[pl.DataFrame]()
    for run in range(12):
        rows = random.integers(1, 400, random.integers(2, 7))
        hits = random.binomial(rows, random.uniform(0.01, 0.6, len(rows)))
        tables.append(decisions(hits.tolist(), rows.tolist()).with_columns(run=run))
    tests = by_largest(times=50)(pl.concat(tables), estimate="e", pos_label=1, labels=[0, 1], group_by="run")
    by_run = tests.sort(".p_value", ".p_adjusted").partition_by("run")
    assert len(by_run) == len(tables)
    for result in by_run:
        raw, made = (result[name].to_numpy() for name in (".p_value", ".p_adjusted"))
        holm: Any = multipletests(raw, method="holm")[1]
        assert (made >= raw).all()
        assert (made <= holm * (1 + SAME)).all()
        assert (np.diff(made) >= 0).all()


def test_max_t_keeps_p_value_0() -> None:
    result = by_largest(times=100)(decisions([0, 4000], [4000, 4000]), estimate="e")
    assert result.select(".p_value", ".p_adjusted").row(0) == (0.0, 0.0)


def test_max_t_same_seed_gives_same_p_values() -> None:
    data = decisions([20, 9, 4, 11], [40, 30, 20, 20])
    assert_frame_equal(by_largest(seed=3)(data, estimate="e"), by_largest(seed=3)(data, estimate="e"))
    other = by_largest(seed=4)(data, estimate="e")[".p_adjusted"].to_list()
    assert by_largest(seed=3)(data, estimate="e")[".p_adjusted"].to_list() != other


def test_max_t_by_outer_group() -> None:
    tables = [([20, 9, 4], [40, 30, 20]), ([10, 12, 3], [30, 25, 20])]
    data = pl.concat(decisions(*table).with_columns(fold=pl.lit(fold)) for fold, table in enumerate(tables))
    result = by_largest()(data, estimate="e", group_by="fold")
    for fold, (_, rows) in enumerate(tables):
        pairs = result.filter(fold=fold)
        expected = step_down(pairs[".p_value"].to_list(), rows)
        assert pairs[".p_adjusted"].to_list() == pytest.approx(expected, abs=error(0.3))


def test_max_t_of_equal_pairs_is_1() -> None:
    for hits in ([0, 0, 0], [5, 6, 7]):
        result = tf.inference.pairwise(tf.demographic_parity("g"), adjust="max_t")(
            decisions(hits, [5, 6, 7]), estimate="e", pos_label=1, labels=[0, 1], times=100
        )
        assert result.select(".disparity", ".p_value", ".p_adjusted").unique().rows() == [(0.0, 1.0, 1.0)]


@pytest.mark.parametrize("adjust", ["holm", "max_t"])
def test_pairwise_skips_outer_groups_without_pairs(adjust: Any) -> None:
    data = pl.DataFrame(
        {"t": [0, 0, 0, 0, 1, 1, 1, 1], "e": [1, 0, 1, 0] * 2, "g": list("abbaaabb"), "fold": [1] * 4 + [2] * 4}
    )
    test = tf.inference.pairwise(tf.equal_opportunity("g"), adjust=adjust)
    result = test(data, "t", "e", group_by="fold", pos_label=1, times=50)
    assert result["fold"].to_list() == [2]
    assert result[".p_adjusted"].null_count() == 0
    both = tf.inference.pairwise(tf.equal_opportunity("g"), tf.demographic_parity("g"), adjust=adjust)
    of_one = both(data.filter(pl.col("t") == 0), "t", "e", pos_label=1, labels=[0, 1], times=50)
    assert of_one[".metric"].to_list() == ["selection_rate"]
    assert of_one[".p_adjusted"].null_count() == 0
    alone = test(data.filter(pl.col("g") == "a"), "t", "e", times=50)
    assert alone.is_empty()
    assert alone.schema == test(data, "t", "e", times=50).schema


def test_pairs_of_several_labels_are_compared_label_by_label() -> None:
    result = tf.inference.pairwise(tf.demographic_parity("g"))(SMALL, estimate="guess")
    labels = sorted(map(str, SMALL["guess"].unique()))
    assert sorted(result[".level"].unique()) == labels
    assert len(result) == len(labels) * 3
    for label in labels:
        decided = SMALL.with_columns(one=(pl.col("guess").cast(pl.String) == label).cast(pl.Int8))
        alone = tf.inference.pairwise(tf.demographic_parity("g"))(decided, estimate="one", pos_label=1)
        of_label = result.filter(pl.col(".level") == label)
        assert of_label[".p_value"].to_list() == pytest.approx(alone[".p_value"].to_list())


# Ratios, means and areas


def deviations(p_value: float) -> float:
    """The standard errors of a normal distribution beyond which it is so probable to be."""
    return -statistics.NormalDist().inv_cdf(p_value / 2)


def score_of_ratio(ratio: float, one: int, rows: int, other: int, other_rows: int) -> float:
    """Miettinen and Nurminen's statistic of a ratio, with the likeliest rates searched numerically."""

    def unlikely(share: float) -> float:
        logarithms = stats.binom.logpmf(one, rows, min(ratio * share, 1)) + stats.binom.logpmf(other, other_rows, share)
        return -float(logarithms)

    most = min(1.0, 1 / ratio)
    options: Any = {"bounds": (0, most), "method": "bounded", "options": {"xatol": 1e-12}}
    likeliest: Any = optimize.minimize_scalar(unlikely, **options)
    share = float(likeliest.x)
    total = rows + other_rows
    variance = ratio * share * (1 - ratio * share) / rows + ratio**2 * share * (1 - share) / other_rows
    return abs(one / rows - ratio * other / other_rows) / math.sqrt(variance * total / (total - 1))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_ratios_of_rates_have_the_limits_of_miettinen_and_nurminen(pairs_of: pl.DataFrame, level: float) -> None:
    result = tf.inference.pairwise(tf.selection_rate.ratio("g"))(pairs_of, estimate="e", conf_level=level)
    assert result[".scale"].unique().to_list() == ["ratio"]
    error = (1 - level) / len(result)
    checked = 0
    for row in result.to_dicts():
        (one, rows), (other, other_rows) = GROUPS[row[".group"]], GROUPS[row[".other"]]
        expected = stats.fisher_exact([[one, rows - one], [other, other_rows - other]])[1]
        assert row[".p_value"] == pytest.approx(expected)
        is_rejected = row[".p_adjusted"] < 1 - level
        assert excludes_equality(
            result.filter((pl.col(".group") == row[".group"]) & (pl.col(".other") == row[".other"]))
        ) == [is_rejected]
        if 0 in (one, other):
            continue
        ratio = (one / rows) / (other / other_rows)
        assert row[".disparity"] == pytest.approx(ratio)
        z = statistics.NormalDist().inv_cdf(1 - error / 2)
        for name, is_beside in (
            (".lower", row[".lower"] == 1),
            (".upper", row[".upper"] == 1),
        ):
            # limits that are moved to equality agree with the p-value of Fisher's test
            if not is_beside:
                assert score_of_ratio(row[name], one, rows, other, other_rows) == pytest.approx(z, rel=1e-4)
                checked += 1
    assert checked >= 5


def numbers_of(groups: dict[str, tuple[float, float, int]], seed: int = 1) -> pl.DataFrame:
    """Numbers of groups with a mean, a standard deviation and a number of rows."""
    random = np.random.default_rng(seed)
    parts: list[pl.DataFrame] = []
    for group, (mean, deviation, rows) in groups.items():
        value = random.normal(mean, deviation, rows)
        parts.append(pl.DataFrame({"g": group, "x": value, "zero": 0.0}))
    return pl.concat(parts).with_columns(pl.col("x").abs().alias("size"))


NUMBERS = numbers_of({"a": (10, 2, 180), "b": (10.4, 3, 120), "c": (10.6, 2, 90)})


def test_means_have_the_p_values_and_limits_of_welch() -> None:
    result = tf.inference.pairwise(tf.mean_prediction.difference("g"), adjust="none")(NUMBERS, "zero", "x")
    errors = tf.inference.pairwise(tf.mae.difference("g"), adjust="none")(NUMBERS, "zero", "x")
    assert result[".test"].unique().to_list() == ["interval"]
    for row, of_errors in zip(result.to_dicts(), errors.to_dicts(), strict=True):
        one, other = (NUMBERS.filter(g=row[name])["x"].to_numpy() for name in (".group", ".other"))
        welch: Any = stats.ttest_ind(one, other, equal_var=False)
        low, high = welch.confidence_interval()
        assert row[".disparity"] == pytest.approx(one.mean() - other.mean())
        assert (row[".n"], row[".n_other"]) == (len(one), len(other))
        assert deviations(row[".p_value"]) == pytest.approx(deviations(welch.pvalue), rel=0.02)
        width = high - low
        assert row[".lower"] == pytest.approx(low, abs=0.02 * width)
        assert row[".upper"] == pytest.approx(high, abs=0.02 * width)
        # errors have limits that allow for a large one that is not among them
        assert of_errors[".disparity"] == pytest.approx(row[".disparity"])
        assert of_errors[".lower"] < row[".lower"] < row[".upper"] < of_errors[".upper"]
        assert of_errors[".p_value"] > row[".p_value"]


def test_ratios_of_means_have_the_limits_of_log_ratios() -> None:
    errors = tf.inference.pairwise(tf.mae.ratio("g"), adjust="none")(NUMBERS, "zero", "x")
    result = tf.inference.pairwise(tf.mean_prediction.difference("g"), scale="ratio", adjust="none")(
        NUMBERS, "zero", "x"
    )
    assert errors[".disparity"].to_list() == pytest.approx(result[".disparity"].to_list())
    # errors have limits that allow for a large one that is not among them
    assert (errors[".lower"] < result[".lower"]).all()
    assert (errors[".upper"] > result[".upper"]).all()
    for row in result.to_dicts():
        one, other = (NUMBERS.filter(g=row[name])["size"].to_numpy() for name in (".group", ".other"))
        ratio = one.mean() / other.mean()
        error = math.hypot(stats.sem(one) / one.mean(), stats.sem(other) / other.mean())
        assert row[".disparity"] == pytest.approx(ratio)
        assert row[".lower"] == pytest.approx(ratio * math.exp(-1.96 * error), rel=3e-3)
        assert row[".upper"] == pytest.approx(ratio * math.exp(1.96 * error), rel=3e-3)
        # means that differ have a ratio other than 1
        welch: Any = stats.ttest_ind(one, other, equal_var=False)
        assert deviations(row[".p_value"]) == pytest.approx(deviations(welch.pvalue), rel=0.02)


def delong(truth: Any, score: Any) -> tuple[float, float]:
    """The area under the curve and its variance (DeLong, DeLong and Clarke-Pearson, 1988)."""
    events, others = score[truth == 1], score[truth == 0]
    wins = (events[:, None] > others).astype(float) + (events[:, None] == others) / 2
    variance = wins.mean(axis=1).var(ddof=1) / len(events) + wins.mean(axis=0).var(ddof=1) / len(others)
    return wins.mean(), variance


def test_areas_of_pairs_have_nearly_the_p_values_of_delong() -> None:
    random = np.random.default_rng(2)
    group, truth = np.repeat(list("abc"), [900, 700, 500]), random.integers(0, 2, 2100)
    shift = np.select([group == "a", group == "b"], [1.2, 0.8], 1.0)
    people = pl.DataFrame({"g": group, "t": truth, "p": stats.norm.cdf(random.normal(truth * shift, 1))})
    result = tf.inference.pairwise(tf.roc_auc.difference("g"), adjust="none")(people, "t", probs="p", pos_label=1)
    for row in result.to_dicts():
        parts = [people.filter(g=row[name]) for name in (".group", ".other")]
        areas = [delong(part["t"].to_numpy(), part["p"].to_numpy()) for part in parts]
        difference, error = areas[0][0] - areas[1][0], math.sqrt(areas[0][1] + areas[1][1])
        assert row[".disparity"] == pytest.approx(difference)
        # limits of areas are symmetric on the scale of logits, and allow for half a row of either class that no score
        # predicts
        assert 0.9 * abs(difference) / error < deviations(row[".p_value"]) < 1.05 * abs(difference) / error


ALIKE: dict[str, tuple[tf.types.Metric, dict[str, Any]]] = {
    "rates": (tf.sens, {}),
    "rates with weights": (tf.selection_rate, {"case_weights": "w"}),
    "rates of clusters": (tf.selection_rate, {"cluster": "fold"}),
    "areas": (tf.roc_auc, {}),
    "areas of clusters": (tf.roc_auc, {"cluster": "fold"}),
    "made of labels": (tf.f_meas, {}),
}


@pytest.mark.parametrize("scale", ["difference", "ratio"])
@pytest.mark.parametrize("case", ALIKE)
def test_pairs_are_those_of_reference_tables(case: str, scale: Any) -> None:
    metric, option = ALIKE[case]
    random = np.random.default_rng(3)
    people = random_people(600).with_columns(w=pl.Series(random.uniform(1, 3, 600)), p=pl.Series(random.random(600)))
    call: dict[str, Any] = {"truth": "t", "estimate": "e", "probs": "p", "pos_label": 1, **option}
    made = getattr(metric, scale)("g")
    result = tf.inference.pairwise(made, test="interval", adjust="none")(people, **call)
    assert len(result) == 3
    for row in result.to_dicts():
        compared: Any = tf.compare_groups(metric, by="g", to=row[".other"], scale=scale)(people, **call)
        expected = compared.row(by_predicate=pl.col(".group") == row[".group"], named=True)
        for name in (".estimate", ".disparity", ".p_value", ".lower", ".upper"):
            assert row[name] == pytest.approx(expected[name], rel=1e-9), name
        assert (row[".scale"], row[".method"], row[".test"]) == (scale, expected[".method"], "interval")


@pytest.mark.parametrize("adjust", ["holm", "max_t", "bh", "by", "none"])
def test_limits_of_means_and_areas_exclude_equality_where_adjusted_p_values_reject_it(adjust: Any) -> None:
    random = np.random.default_rng(5)
    rows = 2_400
    group, fold = random.integers(0, 4, rows), random.integers(0, 6, rows)
    truth = random.integers(0, 2, rows)
    score = stats.norm.cdf(random.normal(truth * (0.3 + 1.5 * (group == 3)), 1))
    people = pl.DataFrame({"g": group, "fold": fold, "t": truth, "p": score, "x": random.exponential(1 + group / 2)})
    of_scores = tf.inference.pairwise(tf.roc_auc.difference("g"), tf.brier_class.ratio("g"), adjust=adjust)
    of_numbers = tf.inference.pairwise(tf.mae.ratio("g"), tf.rmse.difference("g"), adjust=adjust)
    results = [
        of_scores(people, "t", probs="p", pos_label=1, group_by="fold"), of_numbers(people, "t", "x", group_by="fold")
    ]  # fmt: skip
    for result in results:
        rejected = result[".p_adjusted"] < 0.05
        assert excludes_equality(result) == rejected.to_list()
        assert 0 < rejected.sum() < len(result)
        assert result.select(pl.col(".disparity").is_between(".lower", ".upper").all()).item()


def test_max_t_of_means_and_clusters_is_at_most_holms() -> None:
    people = random_people(800)
    cases: list[tuple[tf.types.Metric, dict[str, Any]]] = [(tf.f_meas, {}), (tf.selection_rate, {"cluster": "fold"})]
    for metric, option in cases:
        made = {
            adjust: tf.inference.pairwise(metric.difference("g"), adjust=adjust)(
                people, "t", "e", pos_label=1, **option
            )
            for adjust in ("holm", "max_t", "none")
        }
        assert (made["max_t"][".p_adjusted"] <= made["holm"][".p_adjusted"] * (1 + SAME)).all()
        assert (made["max_t"][".p_adjusted"] >= made["none"][".p_value"] * (1 - SAME)).all()
        assert (made["max_t"][".lower"] >= made["holm"][".lower"]).all()


@pytest.mark.simulation
def test_max_t_of_means_rejects_equal_groups_rarely() -> None:
    runs, sizes = 150, (12, 30, 60)
    random = np.random.default_rng(9)
    group = np.tile(np.repeat(list("abc"), sizes), runs)
    run = np.repeat(np.arange(runs), sum(sizes))
    people = pl.DataFrame({"run": run, "g": group, "x": random.normal(5, 1, len(group)), "zero": 0.0})
    test = tf.inference.pairwise(tf.mean_prediction.difference("g"), adjust="max_t")
    result = test(people, "zero", "x", group_by="run", times=1000)
    rejected = result.filter(pl.col(".p_adjusted") < 0.05)["run"].n_unique() / runs
    assert rejected <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_pairs_without_an_interval_have_no_p_value() -> None:
    people = pl.concat([NUMBERS, pl.DataFrame({"g": ["d"], "x": [9.0], "zero": [0.0], "size": [9.0]})])
    for adjust in ("holm", "max_t", "bh"):
        result = tf.inference.pairwise(tf.mae.difference("g"), adjust=adjust)(people, "zero", "x")
        alone = pl.col(".other") == "d"
        assert result.filter(alone)[".disparity"].null_count() == 0
        for name in (".lower", ".upper", ".p_value", ".p_adjusted", ".method"):
            assert result.filter(alone)[name].null_count() == 3, name
            assert result.filter(~alone)[name].null_count() == 0, name
        others = tf.inference.pairwise(tf.mae.difference("g"), adjust=adjust)(NUMBERS, "zero", "x")
        if adjust == "bh":
            assert result.filter(~alone)[".p_adjusted"].to_list() == pytest.approx(others[".p_adjusted"].to_list())


def test_ratios_of_no_selections_are_null_with_a_reason() -> None:
    data = decisions([0, 0, 5], [8, 9, 10])
    result = tf.inference.pairwise(tf.selection_rate.ratio("g"))(data, estimate="e", pos_label=1)
    (row,) = result.filter((pl.col(".group") == "a") & (pl.col(".other") == "b")).to_dicts()
    assert (row[".disparity"], row[".status"], row[".p_value"]) == (None, "zero_denominator", 1.0)


def test_pairwise_refuses_scales_that_values_do_not_have() -> None:
    below = NUMBERS.with_columns(pl.col("x") - 10)
    with pytest.raises(
        tf.errors.ArgumentError, match=r'mean_prediction: a ratio compares values above 0.*`scale="difference"`'
    ):
        tf.inference.pairwise(tf.mean_prediction.difference("g"), scale="ratio")(below, "zero", "x")
    with pytest.raises(tf.errors.ArgumentError, match="mcc can be negative"):
        tf.inference.pairwise(tf.mcc.difference("g"), scale="ratio")
    with pytest.raises(tf.errors.ArgumentError, match="mae is not a rate, so it has no odds"):
        tf.inference.pairwise(tf.mae.difference("g"), scale="odds_ratio")
    with pytest.raises(tf.errors.AggregateError, match="`to='z'` is not a group"):
        tf.inference.pairwise(tf.mae.difference("g", to="z"))(NUMBERS, "zero", "x")


def with_a_rare_group() -> pl.DataFrame:
    random = np.random.default_rng(1)
    group = np.repeat(["a", "b", "c", "rare"], [600, 400, 300, 20])
    return pl.DataFrame({"g": group, "t": random.random(len(group)) < 0.5, "e": random.random(len(group)) < 0.6})


@pytest.mark.parametrize("test", [tf.inference.pairwise, inference.worst_groups, inference.disparity_test])
def test_min_n_leaves_rare_groups_out_of_tests(test: Any) -> None:
    people = with_a_rare_group()
    left_out = test(tf.sens.difference("g", min_n=30))(people, "t", "e")
    assert_frame_equal(left_out, test(tf.sens.difference("g"))(people.filter(pl.col("g") != "rare"), "t", "e"))


def test_stratified_rejects_a_reference_below_min_n() -> None:
    metric = tf.selection_rate.difference("g", to="rare", min_n=30)
    with pytest.raises(tf.errors.ArgumentError, match="the reference 'rare' is below `min_n=30`"):
        inference.stratified(metric, within="t")(with_a_rare_group(), estimate="e")


def test_many_groups_are_compared_and_too_many_refused_before_that() -> None:
    many = pl.DataFrame({"g": [*range(400)] * 5, "p": [0, 1, 1, 1] * 500})
    for adjust in ("holm", "by", "max_t"):
        start = time.process_time()
        result = tf.inference.pairwise(tf.demographic_parity("g"), adjust=adjust)(many, estimate="p", times=100)
        assert len(result) == 400 * 399 // 2
        assert time.process_time() - start < 15
    several = many.with_columns(g=pl.col("g") % 40, fold=pl.col("g") // 40)
    start = time.process_time()
    assert (
        len(tf.inference.pairwise(tf.demographic_parity("g"))(several, estimate="p", group_by="fold"))
        == 10 * 40 * 39 // 2
    )
    assert time.process_time() - start < 10
    with pytest.raises(tf.errors.ArgumentError) as caught:
        tf.inference.pairwise(tf.demographic_parity("g"), adjust="max_t")(many, estimate="p", times=10**6)
    assert str(caught.value) == snapshot(
        "pairwise() has 79,800 pairs to compare, with up to 400 groups of 'g'; the limit is 10,000. Pool rare groups "
        'with `lump_rare`, leave out small ones with `min_n=`, take `adjust="holm"` or fewer `times`, or compare '
        "each group with one reference, by `compare_groups`."
    )
    more = pl.DataFrame({"g": [*range(4_000)] * 2, "p": [0, 1] * 4_000})
    with pytest.raises(tf.errors.ArgumentError) as caught:
        tf.inference.pairwise(tf.demographic_parity("g"))(more, estimate="p")
    assert str(caught.value) == snapshot(
        "pairwise() has 7,998,000 pairs to compare, with up to 4,000 groups of 'g'; the limit is 5,000,000. Pool rare "
        "groups with `lump_rare`, leave out small ones with `min_n=`, or compare each group with one reference, by "
        "`compare_groups`."
    )
    assert tf.inference.pairwise(tf.demographic_parity("g", min_n=3))(more, estimate="p").is_empty()


def test_pairs_of_thousands_of_groups_take_seconds() -> None:
    random, groups = np.random.default_rng(8), 1_500
    rows = random.integers(5, 100, groups)
    hits = random.binomial(rows, 0.4)
    people = pl.DataFrame(
        {"g": np.repeat(np.arange(groups), 2), "p": [1, 0] * groups, "n": np.stack([hits, rows - hits], axis=1).ravel()}
    )
    start = time.process_time()
    result = tf.inference.pairwise(tf.demographic_parity("g"))(people, estimate="p", frequency_weights="n")
    # about a second; a pair after the other took five and more
    assert time.process_time() - start < 3
    assert len(result) == 1_124_250
    for row in result.sample(20, seed=1).iter_rows(named=True):
        of_pair = [int(row[name]) for name in (".group", ".other")]
        counts = hits[of_pair]
        theirs: Any = stats.fisher_exact([counts, rows[of_pair] - counts])
        assert row[".p_value"] == pytest.approx(theirs[1], rel=1e-7)
    # the smallest p-value counts for all pairs
    assert result[".p_adjusted"].min() == pytest.approx(min(1, result[".p_value"].min() * len(result)))
