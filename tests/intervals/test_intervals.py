"""Intervals in closed form equal those from counts by hand: rates, ranges of groups, areas, weights, spreads."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import scipy.optimize
import scipy.stats
from conftest import as_polars
from inline_snapshot import snapshot
from lending_rates import CALL, LOANS, SCORED, Z, counts, ends
from plain_limits import limits_of_area, limits_of_difference, limits_of_log_ratio, outer_limits, wilson_with_few
from public_names import public
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import tidyfair as tf
from tidyfair.intervals.shares import share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@pytest.mark.parametrize("metric", [tf.sens, tf.spec, tf.precision, tf.accuracy, tf.detection_prevalence])
def test_rate_has_wilson_interval(metric: tf.types.Metric) -> None:
    ((hits, rows),) = counts(metric).values()
    result = metric(LOANS, **CALL, interval="auto")
    assert result.columns[-4:] == [".lower", ".upper", ".std_error", ".method"]
    assert ends(result) == pytest.approx(proportion_confint(hits, rows, method="wilson"))
    assert result[".method"].item() == "wilson"
    share = hits / rows
    assert result[".std_error"].item() == pytest.approx(math.sqrt(share * (1 - share) / rows))
    exact = metric(LOANS, **CALL, interval="exact", conf_level=0.9)
    assert ends(exact) == pytest.approx(proportion_confint(hits, rows, alpha=0.1, method="beta"))


def test_group_values_have_wilson_intervals() -> None:
    groups = tf.equalized_odds("race").by_group(LOANS, **CALL, interval="auto")
    for metric in (tf.sens, tf.spec):
        for race, (hits, rows) in counts(metric, "race").items():
            mine = groups.filter((pl.col(".metric") == metric.name) & (pl.col(".group") == race))
            assert ends(mine) == pytest.approx(proportion_confint(hits, rows, method="wilson"))


def test_two_sides_have_newcombe_and_miettinen_nurminen_intervals() -> None:
    groups = counts(tf.sens, "sex")
    one, other = groups["female"], groups["male"]
    difference = tf.equal_opportunity(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto")
    expected = confint_proportions_2indep(*one, *other, method="newcomb", compare="diff")
    assert ends(difference) == pytest.approx(expected)
    ratio = tf.equal_opportunity_ratio(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto")
    assert ends(ratio) == pytest.approx(confint_proportions_2indep(*one, *other, method="score", compare="ratio"))
    assert difference[".method"].item() == "newcombe"
    assert ratio[".method"].item() == "miettinen_nurminen"


def two_rates(one: tuple[int, int], other: tuple[int, int]) -> pl.DataFrame:
    """Decisions of a small group and of a large one: how many are selected, of how many."""
    sides = {"small": one, "large": other}
    return pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (rows - hits), "g": group}) for group, (hits, rows) in sides.items()
    )


@pytest.mark.parametrize(
    ("one", "other"), [((2, 6), (28, 100)), ((0, 8), (30, 60)), ((5, 5), (40, 80)), ((300, 900), (410, 1000))]
)
def test_signed_difference_of_two_rates_has_newcombe_interval_for_any_reference(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    data = two_rates(one, other)
    expected, turned = limits_of_difference(one, other), limits_of_difference(other, one)
    parity, privileged = tf.demographic_parity, tf.privileged(g="large")
    ways = {
        "a group": (parity("g", aggregate=tf.difference(to="large", signed=True)), expected),
        "the majority": (parity("g", aggregate=tf.difference(to="majority", signed=True)), expected),
        "the privileged side": (parity(privileged, aggregate=tf.difference(signed=True)), expected),
        "the other side": (parity(privileged, aggregate=tf.difference(to="unprivileged", signed=True)), turned),
    }
    for metric, (lower, upper) in ways.values():
        result = metric(data, estimate="e", interval="auto")
        assert result[".method"].item() == "newcombe"
        assert ends(result) == pytest.approx((lower, upper))
        assert metric(data, estimate="e", interval="analytic").equals(result)


def test_signed_ratio_and_log_ratio_have_miettinen_nurminen_interval() -> None:
    data = two_rates((2, 6), (28, 100))
    expected = confint_proportions_2indep(2, 6, 28, 100, method="score", compare="ratio")
    ratio = tf.demographic_parity("g", aggregate=tf.ratio(to="large", signed=True))(data, estimate="e", interval="auto")
    logarithm = tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio(to="large", signed=True))
    result = logarithm(data, estimate="e", interval="auto")
    assert set(ratio[".method"]) == set(result[".method"]) == {"miettinen_nurminen"}
    assert ends(ratio) == pytest.approx(expected)
    assert ends(result) == pytest.approx(tuple(map(math.log, expected)))


def test_newcombe_interval_needs_a_single_pair_in_the_outer_group() -> None:
    two = two_rates((2, 6), (28, 100)).with_columns(fold=1)
    third = pl.DataFrame({"e": [1, 0] * 20, "g": "third", "fold": 2}, schema=two.schema)
    data = pl.concat([two, two.with_columns(fold=2), third])
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="large", signed=True))
    result = metric(data, estimate="e", group_by="fold", interval="auto", times=400)
    assert result[".method"].to_list() == ["newcombe", "bootstrap"]
    assert ends(result) == pytest.approx(limits_of_difference((2, 6), (28, 100)))
    with pytest.raises(tf.errors.ArgumentError, match="there is no interval in closed form"):
        metric(data, estimate="e", group_by="fold", interval="analytic")


def test_signed_difference_across_rates_may_cross_zero() -> None:
    data = two_rates((20, 60), (28, 100)).with_columns(t=pl.int_range(pl.len()) % 2)
    metric = tf.equalized_odds(tf.privileged(g="large"), aggregate=tf.difference(signed=True))
    result = metric(data, "t", "e", interval="auto", times=400).row(0, named=True)
    assert result[".lower"] < 0 < result[".upper"]
    assert result[".lower"] <= result[".estimate"] <= result[".upper"]


def test_unsigned_interval_is_folded_at_equality() -> None:
    signed = ends(tf.equal_opportunity(tf.privileged(sex="male"))(LOANS, **CALL, interval="auto"))
    unsigned = ends(tf.equal_opportunity("sex")(LOANS, **CALL, interval="auto"))
    crosses = signed[0] < 0 < signed[1]
    assert unsigned == pytest.approx((0.0 if crosses else min(map(abs, signed)), max(map(abs, signed))))
    ratio = ends(tf.equal_opportunity_ratio("sex")(LOANS, **CALL, interval="auto"))
    assert 0 < ratio[0] < ratio[1] <= 1


# Ranges


def level_at_once(*groups: int, level: float = 0.95) -> float:
    """The level of a pair at which all pairs of independent families of so many groups are within their limits."""

    def beyond(q: float) -> float:
        shares = [float(scipy.stats.studentized_range.cdf(q * math.sqrt(2), count, np.inf)) for count in groups]
        return math.prod(shares) - level

    q: Any = scipy.optimize.brentq(beyond, 1, 6, xtol=1e-10)
    return 2 * NormalDist().cdf(q) - 1


def nearest_end(groups: Sequence[tuple[int, int]], level: float, limits_of_pair: Callable[..., Any]) -> float:
    """The largest limit towards equality of any pair, from the farther ones of two kinds of limits of each group."""
    pairs = itertools.permutations(groups, 2)
    return max(0.0, *(limits_of_pair(one, other, level, outer_limits)[0] for one, other in pairs))


def test_range_interval_equals_simultaneous_pairs() -> None:
    groups = list(counts(tf.sens, "race").values())
    level = level_at_once(len(groups))
    result = tf.equal_opportunity("race")(LOANS, **CALL, interval="auto")
    assert result[".method"].item() == "pairwise"
    farthest = max(limits_of_difference(one, other)[1] for one, other in itertools.permutations(groups, 2))
    assert result[".upper"].item() == pytest.approx(farthest)
    assert result[".lower"].item() == pytest.approx(nearest_end(groups, level, limits_of_difference), rel=1e-6)
    assert result[".lower"].item() > 0
    assert result[".std_error"].item() is None
    # the seed and the number of draws are of no concern
    assert tf.equal_opportunity("race")(LOANS, **CALL, interval="auto", seed=9, times=50).equals(result)


def test_range_of_ratios_has_the_nearest_end_of_any_pair() -> None:
    groups, runs = [(30, 90), (45, 100), (3, 40), (60, 80)], [[30, 45, 3, 60]]
    people = selections(np.array(runs), [rows for _, rows in groups])
    nearest = nearest_end(groups, level_at_once(4), limits_of_log_ratio)
    ratio = tf.demographic_parity_ratio("g")(people, **OF_COUNTS)
    assert ratio[".upper"].item() == pytest.approx(math.exp(-nearest), rel=1e-6)
    assert ratio[".upper"].item() < 1
    logarithm = tf.demographic_parity("g", aggregate=tf.aggregates.log_ratio())(people, **OF_COUNTS)
    assert logarithm[".lower"].item() == pytest.approx(nearest, rel=1e-6)


def test_distance_to_a_named_group_has_the_nearest_end_of_its_pairs() -> None:
    groups = [(30, 90), (45, 100), (3, 40), (60, 80)]
    people = selections(np.array([[hits for hits, _ in groups]]), [rows for _, rows in groups])
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="1", signed=False))
    result = metric(people.with_columns(pl.col("g").cast(pl.String)), **OF_COUNTS)
    # three pairs hold at once (Šidák, 1967)
    level, others = 0.95 ** (1 / 3), [groups[0], groups[2], groups[3]]
    limits = [limits_of_difference(other, groups[1], level, outer_limits) for other in others]
    assert result[".lower"].item() == pytest.approx(max(max(low, -high) for low, high in limits))
    limits = [limits_of_difference(other, groups[1]) for other in others]
    assert result[".upper"].item() == pytest.approx(max(max(high, -low) for low, high in limits))


@pytest.mark.parametrize("interval", ["auto", "analytic"])
def test_the_same_values_have_the_same_interval_whatever_they_are_called(interval: Any) -> None:
    def limits(metric: Any, loans: pl.DataFrame) -> tuple[float, float]:
        return ends(metric(loans, estimate="approved", pos_label="yes", interval=interval).head(1))

    race = LOANS["race"].unique(maintain_order=True).to_list()
    recoded = pl.col("race").cast(pl.String).replace_strict(race, [f"group {9 - index}" for index in range(len(race))])
    expected = limits(tf.disparate_impact("race"), LOANS)
    assert limits(tf.demographic_parity_ratio("race"), LOANS) == expected
    assert limits(tf.selection_rate.ratio("race"), LOANS) == expected
    assert limits(tf.disparate_impact("ethnicity"), LOANS.rename({"race": "ethnicity"})) == expected
    assert limits(tf.disparate_impact("race"), LOANS.with_columns(recoded)) == expected
    several = tf.metric_set(tf.disparate_impact("race"), tf.demographic_parity("race"), tf.demographic_parity("sex"))
    assert limits(several, LOANS) == expected


def test_the_same_distances_to_the_rest_have_the_same_interval_whatever_they_are_called() -> None:
    one = tf.demographic_parity("race", aggregate=tf.difference(to="rest"))
    other = tf.selection_rate.difference("ethnicity", to="rest")
    call: Any = {"estimate": "approved", "pos_label": "yes", "interval": "auto"}
    assert ends(one(LOANS, **call)) == ends(other(LOANS.rename({"race": "ethnicity"}), **call))


def test_equalized_odds_interval_covers_pairs_of_both_rates() -> None:
    both = tf.equalized_odds("race")(LOANS, **CALL, interval="auto")
    one = tf.equal_opportunity("race")(LOANS, **CALL, interval="auto")
    assert both[".upper"].item() >= one[".upper"].item()
    spec = tf.new_groupwise_metric(tf.spec, "spec_gap", tf.difference())("race")
    other = spec(LOANS, **CALL, interval="auto")
    assert both[".upper"].item() == pytest.approx(max(one[".upper"].item(), other[".upper"].item()))
    # pairs of both are within their limits at once
    of_rates = [list(counts(metric, "race").values()) for metric in (tf.sens, tf.spec)]
    level = level_at_once(*map(len, of_rates))
    nearest = max(nearest_end(groups, level, limits_of_difference) for groups in of_rates)
    assert both[".lower"].item() == pytest.approx(nearest, rel=1e-6)


def equal_sizes(shares: Sequence[float], rows: int, runs: int, random: np.random.Generator) -> pl.DataFrame:
    """Decisions about groups with these rates, drawn anew for each of many runs."""
    size = len(shares) * rows
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), size),
            "g": np.tile(np.repeat(np.arange(len(shares)), rows), runs),
            "p": random.random(runs * size) < np.tile(np.repeat(shares, rows), runs),
        }
    )


def test_range_intervals_cover_the_truth() -> None:
    runs = 120
    frame = equal_sizes([0.4] * 5 + [0.5], 100, runs, np.random.default_rng(1))
    for metric, true in ((tf.demographic_parity("g"), 0.1), (tf.demographic_parity_ratio("g"), 0.8)):
        result = metric(frame, estimate="p", interval="auto", times=500, group_by="run")
        held = (result[".lower"] <= true) & (true <= result[".upper"])
        assert len(held) == runs
        assert held.sum() >= 0.92 * runs


def test_range_interval_of_equal_groups_covers_zero() -> None:
    runs = 150
    frame = equal_sizes([0.4] * 6, 100, runs, np.random.default_rng(2))
    result = tf.demographic_parity("g")(frame, estimate="p", interval="auto", times=500, group_by="run")
    assert len(result) == runs
    assert (result[".upper"] > 0).all()
    assert (result[".lower"] == 0).sum() >= 0.9 * runs


def selections(hits: np.ndarray[Any, Any], rows: int | Sequence[int]) -> pl.DataFrame:
    """How many of each group are selected and how many are not, in runs by groups."""
    runs, groups = hits.shape
    counted = np.stack([hits, np.broadcast_to(rows, hits.shape) - hits], axis=-1)
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * groups),
            "g": np.tile(np.repeat(np.arange(groups), 2), runs),
            "e": np.tile([1, 0], runs * groups),
            "n": counted.ravel(),
        }
    )


OF_COUNTS: dict[str, Any] = {"estimate": "e", "frequency_weights": "n", "group_by": "run", "interval": "auto"}


@pytest.mark.parametrize("logarithm", [False, True])
def test_upper_end_of_range_is_where_so_small_a_range_is_rare(*, logarithm: bool) -> None:
    # large groups have normal errors that are nearly equal: two groups are so far apart, the others in the middle
    groups, rows, draws, random = 12, 90_000, 400_000, np.random.default_rng(3)
    shares = 0.4 + np.linspace(-0.003, 0.003, groups)
    people = selections(np.round(shares * rows).astype(int)[None], rows)
    aggregate = tf.aggregates.log_ratio() if logarithm else tf.difference()
    result = tf.demographic_parity("g", aggregate=aggregate)(people, **OF_COUNTS, times=100)
    observed, upper = result[".estimate"].item(), result[".upper"].item()
    error = math.sqrt(0.6 / (0.4 * rows)) if logarithm else math.sqrt(0.4 * 0.6 / rows)
    middle = np.zeros(groups)
    middle[:2] = upper / 2, -upper / 2
    equal = error * random.standard_normal((draws, groups))
    apart, together = (np.mean(np.ptp(centre + equal, axis=1) <= observed) for centre in (middle, np.zeros(groups)))
    assert apart / together == pytest.approx(0.025, abs=0.0025)
    largest_of_pairs = observed + Z * math.sqrt(2) * error
    assert upper < 0.96 * largest_of_pairs


def test_upper_end_of_range_of_three_groups_is_between_that_of_two_and_of_all_pairs() -> None:
    two, three = (
        tf.demographic_parity("g")(selections(np.array([hits]), 200), **OF_COUNTS)[".upper"].item()
        for hits in ([60, 80], [60, 70, 80])
    )
    # a third group in the middle hardly changes what is known of the other two
    assert 0.9 * two < three < two


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("shares", "rows"),
    [
        ([0.25, 0.35] + [0.3] * 18, 300),
        ([0.05, 0.15] + [0.1] * 18, 100),
        ([0.25, 0.35] + [0.3] * 3, 300),
        ([0.4] + [0.5] * 5, 300),
        ([0.9, 1.0] + [0.95] * 8, 60),
        ([0.4, 0.5] + [0.45] * 8, [150, 200] + [800] * 8),
    ],
)
def test_gates_of_ranges_at_the_limit_are_seldom_wrong(shares: list[float], rows: int | list[int]) -> None:
    runs, random = 200, np.random.default_rng(21)
    people = selections(random.binomial(rows, shares, (runs, len(shares))), rows)
    options: dict[str, Any] = OF_COUNTS | {"times": 100, "conf_level": 0.9, "explain": True}
    result = tf.demographic_parity("g")(people, **options)
    limit = max(shares) - min(shares)
    passed = (tf.check(result, below=limit)[".verdict"] == "pass").sum()
    assert passed <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


def test_gates_let_many_equal_groups_pass() -> None:
    runs, groups, rows, random = 200, 20, 300, np.random.default_rng(22)
    people = selections(random.binomial(rows, 0.3, (runs, groups)), rows)
    options: dict[str, Any] = OF_COUNTS | {"times": 100, "explain": True}
    one_sided = tf.demographic_parity("g")(people, conf_level=0.9, **options)
    verdicts = tf.check(one_sided, below=0.14)[".verdict"]
    # the limits of pairs let an eighth pass
    assert (verdicts == "pass").sum() > 0.3 * runs
    assert np.mean(tf.demographic_parity("g")(people, **options)[".upper"].to_numpy()) < 0.165


def test_range_of_groups_that_share_clusters_has_the_largest_limit_of_pairs() -> None:
    clusters, random = 60, np.random.default_rng(23)
    luck = random.standard_normal(clusters)
    people = pl.DataFrame(
        {
            "c": np.repeat(np.arange(clusters), 40),
            "g": np.tile(np.repeat(np.arange(4), 10), clusters),
            "e": random.random(clusters * 40) < np.repeat(0.4 + 0.1 * luck, 40).clip(0, 1),
        }
    )
    options: dict[str, Any] = {"estimate": "e", "cluster": "c", "interval": "auto"}
    upper = tf.demographic_parity("g")(people, **options)[".upper"].item()
    pairs = [
        tf.demographic_parity("g")(people.filter(pl.col("g").is_in(pair)), **options)[".upper"].item()
        for pair in itertools.combinations(range(4), 2)
    ]
    assert upper == pytest.approx(max(pairs))


@pytest.mark.parametrize("groups", [201, 20_000])
def test_range_of_many_groups_uses_simultaneous_bands(groups: int) -> None:
    random, rows = np.random.default_rng(7), np.full(groups, 12)
    # two large groups are surely apart
    rows[:2] = 400
    hits = random.binomial(rows, 0.4)
    hits[:2] = 10, 380
    people = selections(hits[None], rows.tolist())
    result = tf.demographic_parity("g")(people, **OF_COUNTS).row(0, named=True)
    z = NormalDist().inv_cdf((1 + 0.95 ** (1 / groups)) / 2)
    assert result[".method"] == "simultaneous"
    distinct = sorted({*zip(hits.tolist(), rows.tolist(), strict=True)})
    limits = [wilson_with_few(*group, 2 * NormalDist().cdf(z) - 1) for group in distinct]
    nearest = max(low for low, _ in limits) - min(high for _, high in limits)
    assert result[".lower"] == pytest.approx(nearest)
    assert nearest > 0.5
    limits = [wilson_with_few(*group) for group in distinct]
    assert result[".upper"] == pytest.approx(max(high for _, high in limits) - min(low for low, _ in limits))
    ratio = tf.demographic_parity_ratio("g")(people, **OF_COUNTS).row(0, named=True)
    assert 0 <= ratio[".lower"] <= ratio[".estimate"] <= ratio[".upper"] <= 1


@pytest.mark.parametrize("aggregate", [tf.group_minimum(), tf.group_maximum()])
def test_extremes_have_the_limits_of_each_group_by_itself_and_of_all_at_once(aggregate: Any) -> None:
    of_rates = [list(counts(metric, "race").values()) for metric in (tf.sens, tf.spec)]
    of_one = tf.equal_opportunity("race", aggregate=aggregate)(LOANS, **CALL, interval="auto")
    of_both = tf.equalized_odds("race", aggregate=aggregate)(LOANS, **CALL, interval="auto")
    for result, groups in ((of_one, of_rates[0]), (of_both, [*of_rates[0], *of_rates[1]])):
        alone = [wilson_with_few(*group) for group in groups]
        at_once = [wilson_with_few(*group, 0.95 ** (1 / len(groups))) for group in groups]
        if aggregate.kind == "group_minimum":
            # it is above a limit if every group is (Berger, 1982), and below one if some group is
            expected = min(low for low, _ in alone), min(high for _, high in at_once)
        else:
            expected = max(low for low, _ in at_once), max(high for _, high in alone)
        assert ends(result) == pytest.approx(expected)
        end = "lower" if aggregate.kind == "group_minimum" else "upper"
        assert result[".method"].item() == f"simultaneous, {end} end of each group"


# Distances to the rest and to all rows

HITS, SIZES = np.array([[30, 45, 25, 70]]), [100, 120, 40, 200]


def of_groups_and_rests(method: str, compare: str) -> list[tuple[float, float]]:
    """The limits of each group and all others together."""
    hits, rows = HITS[0], np.array(SIZES)
    return [
        confint_proportions_2indep(
            one, size, hits.sum() - one, rows.sum() - size, method=method, compare=compare
        )
        for one, size in zip(hits.tolist(), SIZES, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_distance_to_rest_has_the_farthest_newcombe_limit_of_any_group(to: str) -> None:
    metric = tf.demographic_parity("g", aggregate=tf.difference(to=to))
    result = metric(selections(HITS, SIZES), **OF_COUNTS, times=20_000).row(0, named=True)
    # all rows are the group and the rest
    parts = [1 - size / sum(SIZES) if to == "overall" else 1.0 for size in SIZES]
    limits = of_groups_and_rests("newcomb", "diff")
    farthest = max(part * max(high, -low) for part, (low, high) in zip(parts, limits, strict=True))
    assert result[".upper"] == pytest.approx(farthest)
    assert result[".method"] == "pairwise"
    # the lower end holds for all four groups at once, so that it is below that of the farthest group by itself
    nearest = max(part * max(low, -high) for part, (low, high) in zip(parts, limits, strict=True))
    assert 0 < result[".lower"] < nearest
    assert result[".lower"] < result[".estimate"] < result[".upper"]
    groups, level = list(zip(HITS[0].tolist(), SIZES, strict=True)), 0.95 ** (1 / 4)
    rests = [(int(HITS.sum()) - hits, sum(SIZES) - rows) for hits, rows in groups]
    limits = [limits_of_difference(one, other, level, outer_limits) for one, other in zip(groups, rests, strict=True)]
    nearest = max(part * max(low, -high) for part, (low, high) in zip(parts, limits, strict=True))
    assert result[".lower"] == pytest.approx(nearest)


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_ratio_to_rest_has_the_farthest_score_limit_of_any_group(to: str) -> None:
    metric = tf.demographic_parity("g", aggregate=tf.ratio(to=to))
    result = metric(selections(HITS, SIZES), **OF_COUNTS).row(0, named=True)
    farthest = 1.0
    for size, limits in zip(SIZES, of_groups_and_rests("score", "ratio"), strict=True):
        part = size / sum(SIZES) if to == "overall" else 0.0
        quotients = [1 / (part + (1 - part) / limit) for limit in limits]
        farthest = min(farthest, *(min(quotient, 1 / quotient) for quotient in quotients))
    assert result[".lower"] == pytest.approx(farthest)
    assert result[".lower"] < result[".estimate"] < result[".upper"] <= 1


def test_rest_of_one_of_two_groups_is_the_other() -> None:
    people = selections(HITS[:, :2], SIZES[:2])
    for aggregate in (tf.difference, tf.ratio, tf.aggregates.log_ratio):
        pair, to_rest = (
            ends(tf.demographic_parity("g", aggregate=aggregate(to=to))(people, **OF_COUNTS))
            for to in ("range", "rest")
        )
        assert to_rest == pytest.approx(pair)
    whole = ends(tf.demographic_parity("g", aggregate=tf.difference(to="overall"))(people, **OF_COUNTS))
    difference = ends(tf.demographic_parity("g")(people, **OF_COUNTS))
    # the smaller group is farther from all rows
    assert whole == pytest.approx([end * SIZES[1] / sum(SIZES[:2]) for end in difference])


def test_worst_distance_to_rest_of_two_rates_is_that_of_two_pairs() -> None:
    random = np.random.default_rng(1)
    group, truth = random.choice(["a", "b"], 600), random.integers(0, 2, 600)
    chosen = random.random(600) < np.where(group == "a", 0.8, 0.35)
    people = pl.DataFrame({"g": group, "truth": truth, "chosen": chosen.astype(int)})
    to_rest, of_range = (
        tf.equalized_odds("g", aggregate=tf.difference(to=to))(people, "truth", "chosen", interval="auto").row(
            0, named=True
        )
        for to in ("rest", "range")
    )
    # each of the two groups is the rest of the other
    rates = people.group_by("truth", "g").agg(pl.col("chosen").sum(), pl.len()).sort("truth", "g")
    pairs = rates.select("chosen", "len").rows()
    level = 0.95 ** (1 / 2)
    limits = [limits_of_difference(one, other, level, outer_limits) for one, other in (pairs[:2], pairs[2:])]
    assert to_rest[".lower"] == pytest.approx(max(max(low, -high) for low, high in limits), rel=1e-6)
    assert to_rest[".lower"] > 0.3
    for end in (".lower", ".upper"):
        assert to_rest[end] == pytest.approx(of_range[end], rel=1e-6)


def test_unit_weights_do_not_change_distances_to_rest() -> None:
    people = selections(HITS, SIZES).drop("run")
    rows = people.select(pl.col("g", "e").repeat_by("n").explode()).with_columns(w=2.0)
    metric = tf.demographic_parity("g", aggregate=tf.difference(to="rest"))
    weighted = metric(rows, estimate="e", case_weights="w", interval="auto")
    assert ends(weighted) == pytest.approx(ends(metric(rows, estimate="e", interval="auto")))


def test_distance_of_means_to_rest_is_nearly_normal() -> None:
    random, rows = np.random.default_rng(31), 3_000
    group = np.repeat([0, 1, 2], [rows, 2 * rows, rows])
    size = np.abs(random.standard_normal(len(group))) * np.where(group == 2, 1.3, 1.0)
    people = pl.DataFrame({"g": group, "truth": size, "estimate": 0.0})
    metric = tf.mae.difference("g", to="rest")
    result = metric(people, "truth", "estimate", interval="auto").row(0, named=True)
    own, others = size[group == 2], size[group != 2]
    parts = [size[group == 0], size[group == 1]]
    variance = own.var() / len(own) + sum(
        (len(part) / len(others)) ** 2 * part.var() / len(part) for part in parts
    )  # fmt: skip
    gap = own.mean() - others.mean()
    assert result[".estimate"] == pytest.approx(gap)
    assert result[".upper"] == pytest.approx(gap + Z * math.sqrt(variance), rel=0.01)
    assert result[".method"] == "pairwise"


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (tf.f_meas.difference("g", to="rest"), {}),
        (tf.accuracy.difference("g", to="rest", min_n=50), {}),
        (tf.accuracy.difference("g", to="rest", signed=True), {}),
        (tf.accuracy.difference("g", to="overall"), {"cluster": "c"}),
    ],
)
def test_other_distances_to_rest_invert_tests_or_have_replicates(metric: Any, options: dict[str, Any]) -> None:
    random, rows = np.random.default_rng(32), 300
    people = pl.DataFrame(
        {
            "g": np.repeat([0, 1, 2], [20, 100, 180]),
            "truth": random.random(rows) < 0.5,
            "estimate": random.random(rows) < 0.5,
            "c": np.arange(rows) % 40,
        }
    )
    (method,) = metric(people, "truth", "estimate", interval="auto", times=50, on_undefined="ignore", **options)[
        ".method"
    ]
    # the sign of the farthest group is that of whichever is the farthest
    assert method == ("bootstrap" if metric.aggregate.is_signed else "test_inversion")


@pytest.mark.simulation
@pytest.mark.parametrize("to", ["rest", "overall"])
@pytest.mark.parametrize("shares", [[0.4] * 6, [0.5] * 5 + [0.4], [0.3] * 5 + [0.5]])
def test_distances_to_rest_cover_the_truth_closely(to: str, shares: list[float]) -> None:
    runs, rows, random = 300, 100, np.random.default_rng(33)
    middle = sum(shares) / 6
    truth = max(abs(share - middle) for share in shares) * (1.2 if to == "rest" else 1)
    metric = tf.demographic_parity("g", aggregate=tf.difference(to=to))
    people = selections(random.binomial(rows, shares, (runs, 6)), rows)
    result = metric(people, **OF_COUNTS, times=500)
    below, above = ((result[".lower"] > truth + 1e-9).sum(), (result[".upper"] < truth - 1e-9).sum())
    assert max(below, above) <= 0.025 * runs + 3 * math.sqrt(0.025 * 0.975 * runs)


# Areas


def ct_ratings() -> pl.DataFrame:
    """Hanley and McNeil's (1982) ratings of CT images: 58 normal and 51 abnormal ones."""
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    rows = [
        (truth, rating / 5)
        for truth, item in ((0, normal), (1, abnormal))
        for rating, n in enumerate(item, 1)
        for _ in range(n)
    ]
    return pl.DataFrame(rows, schema=["abnormal", "rating"], orient="row")


def test_delong_error_on_hanley_mcneil_ratings() -> None:
    result = tf.roc_auc(ct_ratings(), "abnormal", probs="rating", interval="auto")
    assert result[".estimate"].item() == pytest.approx(0.8932, abs=5e-5)
    assert result[".std_error"].item() == pytest.approx(0.0307, abs=5e-5)
    assert result[".method"].item() == "delong"
    area, error = result[".estimate"].item(), result[".std_error"].item()
    assert ends(result) == pytest.approx(limits_of_area(area, error, 51, 58, Z))
    # the end away from 1/2 is DeLong's on logits
    logit, half = math.log(area / (1 - area)), Z * error / (area * (1 - area))
    assert result[".upper"].item() == pytest.approx(1 / (1 + math.exp(-half - logit)))
    turned = ct_ratings().with_columns(rating=-pl.col("rating"))
    reflected = tf.roc_auc(turned, "abnormal", probs="rating", interval="auto")
    assert ends(reflected) == pytest.approx((1 - result[".upper"].item(), 1 - result[".lower"].item()))


def test_delong_variance_equals_its_definition() -> None:
    part = LOANS.head(200)
    positive = part.filter(pl.col("repaid") == "yes")["score"].to_numpy()
    negative = part.filter(pl.col("repaid") == "no")["score"].to_numpy()
    wins = (positive[:, None] > negative[None, :]) + 0.5 * (positive[:, None] == negative[None, :])
    variance = wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative)
    result = tf.roc_auc(part, **SCORED, interval="auto")
    assert result[".std_error"].item() == pytest.approx(math.sqrt(variance))


def test_perfect_area_of_few_rows_allows_for_those_that_scores_say_nothing_of() -> None:
    few = pl.DataFrame({"y": [1, 1, 1, 0, 0], "p": [0.9, 0.8, 0.7, 0.2, 0.1]})
    result = tf.roc_auc(few, "y", probs="p", interval="auto")
    assert result[".method"].item() == "delong"
    assert ends(result) == pytest.approx(limits_of_area(1, 0, 3, 2, Z))
    assert result[".std_error"].item() is None


def test_area_of_a_class_of_one_row_varies_as_much_as_it_may() -> None:
    for scores, area in (([0.5, 0.2, 0.6, 0.1], 2 / 3), ([0.1, 0.2, 0.6, 0.05], 1 / 3), ([0.7, 0.2, 0.6, 0.1], 1)):
        data = pl.DataFrame({"y": [1, 0, 0, 0], "p": scores})
        result = tf.roc_auc(data, "y", probs="p", interval="auto")
        assert result[".estimate"].item() == pytest.approx(area)
        # by Birnbaum and Klose (1957) it is no more than that
        most = math.sqrt(area * (1 - area) / 1)
        assert ends(result) == pytest.approx(limits_of_area(area, most, 1, 3, Z))


def test_method_is_reported_per_group() -> None:
    data = pl.DataFrame({"t": [1, 0] * 20 + [1], "e": [1, 0, 0, 1] * 10 + [1], "g": ["a"] * 40 + ["b"]})
    groups = tf.mcc.difference("g").by_group(data, "t", "e", interval="auto", on_undefined="ignore")
    assert groups.select(".group", ".method").rows() == [("a", "jackknife"), ("b", None)]


def test_difference_of_two_aucs_uses_mover() -> None:
    groups = tf.auc_parity("sex").by_group(LOANS, **SCORED, interval="auto")
    female, male = (groups.row(index, named=True) for index in (0, 1))
    below = math.hypot(female[".estimate"] - female[".lower"], male[".upper"] - male[".estimate"])
    above = math.hypot(female[".upper"] - female[".estimate"], male[".estimate"] - male[".lower"])
    apart = female[".estimate"] - male[".estimate"]
    signed = tf.new_groupwise_metric(tf.roc_auc, "gap", tf.difference())(tf.privileged(sex="male"))
    result = signed(LOANS, **SCORED, interval="auto")
    assert ends(result) == pytest.approx((apart - below, apart + above))
    assert result[".method"].item() == "mover"


SAME = {
    "ppv": (tf.precision, tf.ppv, 1.0),
    "npv": (tf.negative_predictive_value, tf.npv, 1.0),
    "a multiple": (tf.sens, tf.new_class_metric(lambda tp, fn: 3 * tp / (tp + fn) - 1, "three", range=(-1, 2)), 3.0),
}


@pytest.mark.parametrize("interval", ["auto", "analytic"])
@pytest.mark.parametrize("name", SAME)
def test_values_that_are_a_share_have_the_error_of_the_share(name: str, interval: Any) -> None:
    plain, metric, factor = SAME[name]
    for of_share, result in zip(
        plain.difference("sex").by_group(LOANS, **CALL, interval=interval).iter_rows(named=True),
        metric.difference("sex").by_group(LOANS, **CALL, interval=interval).iter_rows(named=True),
        strict=True,
    ):
        assert result[".std_error"] == pytest.approx(factor * of_share[".std_error"], rel=1e-6)
    one, other = (item.difference("sex")(LOANS, **CALL, interval=interval) for item in (plain, metric))
    assert other[".std_error"].item() == pytest.approx(factor * one[".std_error"].item(), rel=1e-6)


def test_sum_of_two_shares_has_the_errors_of_both() -> None:
    sens, spec, index = (tf.metric_set(tf.sens, tf.spec, tf.j_index)(LOANS, **CALL, interval="auto"))[".std_error"]
    assert index == pytest.approx(math.hypot(sens, spec))


RIGHT = pl.DataFrame(
    {"t": [1] * 10 + [0] * 10, "e": [1] * 10 + [0] * 10, "g": [*"ab"] * 10, "p": [1.0] * 10 + [0] * 10}
)
RATES = tf.metric_set(tf.precision, tf.ppv, tf.sens, tf.accuracy, tf.f_meas, tf.bal_accuracy)


@pytest.mark.parametrize("interval", ["auto", "bootstrap", "exact"])
def test_error_of_what_has_not_been_seen_to_vary_is_null(interval: Any) -> None:
    metrics = tf.metric_set(tf.precision, tf.sens) if interval == "exact" else RATES
    result = metrics(RIGHT, "t", "e", pos_label=1, interval=interval, times=200)
    assert result[".std_error"].null_count() == len(result) == len(metrics)
    assert (result[".lower"] < 1).all()
    if interval != "exact":
        gaps = metrics.difference("g")(RIGHT, "t", "e", pos_label=1, interval=interval, times=200)
        assert gaps[".std_error"].null_count() == len(metrics)
    if interval == "auto":
        assert tf.roc_auc(RIGHT, "t", probs="p", pos_label=1, interval="auto")[".std_error"].item() is None


# Weights


SMOOTHED = tf.metric_set(
    tf.counts.smoothed_base_rate, tf.differential_fairness("race"), tf.distributions.bias_amplification("sex")
)
FAIR = tf.metric_set(tf.sens, tf.accuracy, tf.demographic_parity("race"), tf.roc_auc, tf.auc_parity("sex"), SMOOTHED)


@pytest.mark.parametrize("factor", [100, 1 / 5_000])
@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_intervals_do_not_depend_on_weight_scale(interval: Any, factor: float) -> None:
    call: dict[str, Any] = {**CALL, "case_weights": "weight", "interval": interval, "times": 200}
    fair = FAIR if interval == "auto" else SMOOTHED
    call |= {"probs": "score"} if interval == "auto" else {}
    once = fair(LOANS, **call)
    again = fair(LOANS.with_columns(pl.col("weight") * factor), **call)
    for name in (".estimate", ".lower", ".upper", ".std_error"):
        assert again[name].is_null().equals(once[name].is_null())
        assert again[name].drop_nulls().to_list() == pytest.approx(once[name].drop_nulls().to_list(), rel=1e-9)


def test_weighted_rate_has_the_error_of_a_weighted_mean() -> None:
    rows = LOANS.filter(pl.col("repaid") == "yes")
    hit, weight = (rows["approved"] == "yes").cast(pl.Float64).to_numpy(), rows["weight"].to_numpy()
    share = (weight * hit).sum() / weight.sum()
    error = math.sqrt((weight**2 * (hit - share) ** 2).sum()) / weight.sum()
    result = tf.sens(LOANS, **CALL, case_weights="weight", interval="auto")
    assert result[".std_error"].item() == pytest.approx(error)
    even = weight.sum() ** 2 / (weight**2).sum()
    freedom = [scipy.stats.t(rows - 1).ppf(0.975) for rows in (len(rows), even)]
    # Korn and Graubard (1998), with the fewer of two effective numbers of rows
    size = min(share * (1 - share) / error**2, even) * (freedom[0] / freedom[1]) ** 2
    assert ends(result) == pytest.approx(proportion_confint(share * size, size, method="wilson"))


def test_effective_n_of_groups() -> None:
    parity = tf.demographic_parity("sex")
    groups = parity.by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    for sex, effective, error, share in groups.select(".group", ".effective_n", ".std_error", ".estimate").rows():
        mine = LOANS.filter(sex=sex)
        weight, guess = mine["weight"].to_numpy(), (mine["approved"] == "yes").to_numpy()
        linear = ((weight * (guess - share)) ** 2).sum() / weight.sum() ** 2
        assert effective == pytest.approx(share * (1 - share) / linear)
        # about what Kish (1965) has, who does not look at who is selected
        assert effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=0.05)
        assert error == pytest.approx(math.sqrt(share * (1 - share) / effective))
    assert ".effective_n" not in parity.by_group(LOANS, **CALL, interval="auto").columns
    assert ".effective_n" not in tf.selection_rate.by_group(LOANS, **CALL, case_weights="weight").columns


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
def test_effective_n_of_a_rate_that_is_no_share_is_that_of_its_weights(at: float) -> None:
    both = tf.metric_set(tf.metric_tweak(tf.net_benefit, "benefit", at=at), tf.accuracy)
    groups = both.difference("sex").by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    kish = {
        sex: weight.sum() ** 2 / (weight**2).sum()
        for (sex,), part in LOANS.group_by("sex")
        for weight in [part["weight"].to_numpy()]
    }
    for sex, effective in groups.filter(pl.col(".metric") == "benefit").select(".group", ".effective_n").rows():
        assert effective == pytest.approx(kish[sex])
    shares = groups.filter(pl.col(".metric") == "accuracy")
    alone = tf.accuracy.difference("sex").by_group(LOANS, **CALL, case_weights="weight", interval="auto")
    assert shares[".effective_n"].equals(alone[".effective_n"])


def test_intervals_with_unit_weights_equal_unweighted() -> None:
    call: dict[str, Any] = {**CALL, "probs": "score", "interval": "auto", "times": 200}
    plain = FAIR(LOANS, **call)
    weighted = FAIR(LOANS.with_columns(one=pl.lit(1.0)), **call, case_weights="one")
    for name in (".estimate", ".lower", ".upper"):
        assert weighted[name].is_null().equals(plain[name].is_null())
        assert weighted[name].drop_nulls().to_list() == pytest.approx(plain[name].drop_nulls().to_list(), rel=1e-9)


@pytest.mark.parametrize("one", [1.0, 1 / 5_000])
def test_intervals_of_clusters_with_equal_weights_equal_unweighted(one: float) -> None:
    call: dict[str, Any] = {**CALL, "cluster": "person", "interval": "auto", "times": 200}
    people = LOANS.with_columns(person=pl.int_range(pl.len()) // 5, one=one)
    plain, weighted = SMOOTHED(people, **call), SMOOTHED(people, **call, case_weights="one")
    for name in (".lower", ".upper"):
        assert weighted[name].is_null().equals(plain[name].is_null())
        assert weighted[name].drop_nulls().to_list() == pytest.approx(plain[name].drop_nulls().to_list(), rel=1e-6)


# Calls


def test_intervals_by_outer_group_threshold_and_label() -> None:
    by_fold = tf.demographic_parity("sex")(LOANS, **CALL, group_by="fold", interval="auto")
    one = tf.demographic_parity("sex")(LOANS.filter(pl.col("fold") == 3), **CALL, interval="auto")
    assert ends(by_fold.filter(pl.col("fold") == 3)) == pytest.approx(ends(one))
    cut = tf.sens(LOANS, **SCORED, threshold=[0.3, 0.6], interval="auto")
    for row, threshold in enumerate((0.3, 0.6)):
        assert ends(cut, row) == ends(tf.sens(LOANS, **SCORED, threshold=threshold, interval="auto"))
    letters = pl.DataFrame(
        {"y": list("abc") * 30, "p": list("abcacbabc") * 10, "g": list("uvw") * 10 + list("vwu") * 20}
    )
    fair = tf.metric_set(tf.accuracy, tf.sens, tf.demographic_parity("g"))
    many = fair(letters, "y", "p", interval="auto", times=200)
    assert many[".method"].to_list() == ["wilson", "jackknife", "pairwise"]
    assert (many[".lower"] <= many[".estimate"]).all()
    assert (many[".upper"] >= many[".estimate"]).all()


def test_intervals_on_every_engine(engine: Callable[[pl.DataFrame], Any]) -> None:
    result = as_polars(tf.sens(engine(LOANS), **CALL, interval="auto"))
    assert ends(result) == ends(tf.sens(LOANS, **CALL, interval="auto"))


def test_undefined_value_has_null_interval() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1, 1], "p": [0, 1, 1, 1], "g": list("aabb")})
    groups = tf.equal_opportunity("g").by_group(frame, "y", "p", interval="auto")
    assert groups.select(".lower", ".upper", ".method").row(0) == (None, None, None)
    assert groups[".lower"][1] is not None
    result = tf.equal_opportunity("g")(frame, "y", "p", interval="auto", on_undefined="ignore")
    assert result.select(".estimate", ".lower", ".method").row(0) == (None, None, None)
    one = tf.demographic_parity("g")(frame.head(2), estimate="p", interval="auto")
    assert one.select(".estimate", ".lower").row(0) == (0.0, None)


def test_share_of_recognizes_rates() -> None:
    share = share_of(tf.false_discovery_rate.definition)
    assert share is not None
    assert (share.holds, share.among) == (frozenset({"fp"}), frozenset({"tp", "fp"}))
    accuracy = share_of(tf.accuracy.definition)
    assert accuracy is not None
    assert accuracy.among == frozenset({"tp", "fp", "fn", "tn"})
    for metric in (
        tf.f_meas,
        tf.mcc,
        tf.inequality.mean_benefit,
        tf.counts.false_negatives_per_false_positive,
        tf.kap,
        tf.roc_auc,
    ):
        assert share_of(metric.definition) is None


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (
            tf.sens,
            {"interval": "wilsons"},
            snapshot(
                "`interval=` must be 'auto', 'analytic', 'bootstrap', 'bayes', 'exact', 'wilson', 'clopper_pearson', 'jeffreys', 'agresti_coull', 'wald', 'newcombe', 'agresti_caffo', 'miettinen_nurminen', 'katz', 'mover', 'delong', 'influence', 'folded_normal', 'jackknife', 'information', 'pairwise', 'simultaneous', 'test_inversion' or 'prediction_powered', not 'wilsons'. Did you mean 'wilson'?"
            ),
        ),
        (
            tf.sens,
            {"interval": "auto", "conf_level": 95},
            snapshot("`conf_level` is a number between 0 and 1, not 95; 95 percent is 0.95."),
        ),
        (
            tf.sens,
            {"interval": "auto", "times": 0},
            snapshot("`times` is a whole number, 20 to 10000000, not 0."),
        ),
        (tf.sens, {"interval": "auto", "seed": -1}, snapshot("`seed` is a whole number, 0 or more, not -1.")),
        (
            tf.mcc,
            {"interval": "exact"},
            snapshot('\'mcc\': there is no exact interval; take `interval="auto"` or "bootstrap".'),
        ),
        (
            tf.average_precision,
            {"interval": "bayes", "probs": "score"},
            snapshot(
                "There is no interval of average_precision, whose rows have no prior; leave `interval=` out, or ask for the others alone."
            ),
        ),
        (
            tf.average_precision,
            {"interval": "auto", "probs": "score", "score_bins": 64},
            snapshot(
                "There is no interval of average_precision, of which only bins of scores were counted; leave `interval=` out, or ask for the others alone."
            ),
        ),
        (
            tf.average_precision,
            {"interval": "bootstrap", "probs": "score", "times": 10**6},
            snapshot(
                "1000000 draws of 3000 rows take too long; a few hundred tell a standard error to a few percent, `times=400`."
            ),
        ),
        (
            tf.mase,
            {"truth": "score", "estimate": "weight", "pos_label": None, "interval": "auto"},
            snapshot(
                "There is no interval of mase, which reads rows in the order in which they stand; leave `interval=` out, or ask for the others alone."
            ),
        ),
    ],
)
def test_bad_interval_options_raise(metric: Any, options: dict[str, Any], expected: str) -> None:
    call = {**CALL, **options}
    if "probs" in options:
        del call["estimate"]
    with pytest.raises(tf.errors.TidyfairError) as caught:
        metric(LOANS, **call)
    assert str(caught.value) == expected


# Spreads of all groups

RUNS = 60
VALUE = pl.col(".estimate")
RANGE = tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0)
QUOTIENT = tf.new_aggregate(VALUE.min() / VALUE.max(), equal=1)


def some_people(rates: Sequence[float], rows: Sequence[int], random: np.random.Generator) -> pl.DataFrame:
    """Decisions about groups of these sizes, drawn anew for each of `RUNS`."""
    size = sum(rows)
    rate = np.tile(np.repeat(rates, rows), RUNS)
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(RUNS), size),
            "g": np.tile(np.repeat(np.arange(len(rows)), rows), RUNS),
            "e": random.random(RUNS * size) < rate,
        }
    )


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [[160] * 6, [10, 20, 100, 300, 300, 300]], ids=["even", "rare"])
def test_custom_distance_intervals_of_equal_groups_cover_equality(rows: list[int]) -> None:
    random, out = np.random.default_rng(1), dict.fromkeys(["own", "difference", "own ratio", "ratio"], 0)
    compared = dict(zip(out, [RANGE, tf.difference(), QUOTIENT, tf.ratio()], strict=True))
    of_all = tf.metric_set(*(tf.demographic_parity("g", aggregate=item, name=name) for name, item in compared.items()))
    people = some_people([0.4] * 6, rows, random)
    result = of_all(people, estimate="e", interval="auto", times=200, group_by="run")
    assert len(result) == len(out) * RUNS
    for name, estimate, lower, upper in result.select(".metric", ".estimate", ".lower", ".upper").rows():
        assert lower <= estimate <= upper
        out[name] += lower > 0 if "ratio" not in name else upper < 1
    assert (out["own"], out["own ratio"]) <= (out["difference"], out["ratio"])


@pytest.mark.simulation
@pytest.mark.parametrize("rates", [[0.3, 0.3, 0.3, 0.5, 0.5, 0.5], [0.2, 0.3, 0.5, 0.6]], ids=["tied", "apart"])
def test_spread_intervals_cover_the_truth(rates: list[float]) -> None:
    random, rows = np.random.default_rng(2), [200] * len(rates)
    middle = float(np.mean(rates))
    truth = {"range": max(rates) - min(rates), "sd": float(np.std(rates)), "far": max(abs(p - middle) for p in rates)}
    aggregates = dict(zip(truth, (RANGE, tf.aggregates.standard_deviation(), tf.difference(to="overall")), strict=True))
    spreads = tf.metric_set(
        *(tf.demographic_parity("g", aggregate=item, name=name) for name, item in aggregates.items())
    )
    wrong, above = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    people = some_people(rates, rows, random)
    result = spreads(people, estimate="e", interval="auto", times=200, group_by="run")
    assert len(result) == len(truth) * RUNS
    methods = dict(result.select(".metric", ".method").rows())
    assert methods == {"range": "test_inversion", "sd": "test_inversion", "far": "pairwise"}
    for name, lower, upper in result.select(".metric", ".lower", ".upper").rows():
        wrong[name] += not lower <= truth[name] <= upper
        above[name] += lower > 0
    # five of a hundred, give or take what 60 samples do
    assert max(wrong.values()) <= 8
    # and it is seen that groups differ
    assert min(above.values()) >= 30


def inverted(
    distance: Callable[[Any], Any], values: Any, errors: Any, weights: Any, draws: int, random: np.random.Generator
) -> tuple[float, float]:
    """The ends of a distance of values at which the observed one is a quantile, over spreads in two patterns."""
    middle, observed = np.average(values, weights=weights), float(distance(values))
    away = values - middle
    ends_of_patterns: list[tuple[float, float]] = []
    # what chance alone may add is left out of the second (Breiman, 1995)
    sparse = away * np.maximum(1 - 2 * math.log(len(values)) * (errors / away) ** 2, 0)
    for pattern in (away, sparse):
        spread = math.sqrt((pattern**2).mean())
        unit = pattern / spread if spread else away / math.sqrt((away**2).mean())
        reach = math.sqrt((away**2).mean()) + 4 * math.sqrt((errors**2).mean())
        lows, highs = [], []
        spreads = np.linspace(0, reach, 41)
        for size in spreads:
            drawn = distance(middle + size * unit + errors * random.standard_normal((draws, len(values))))
            low, high = np.quantile(drawn, [0.025, 0.975])
            lows.append(low)
            highs.append(high)
        least = 0.0 if observed <= highs[0] else float(np.interp(observed, highs, spreads))
        most = float(np.interp(observed, lows, spreads))
        ends_of_patterns.append((float(distance(middle + least * unit)), float(distance(middle + most * unit))))
    lower, upper = zip(*ends_of_patterns, strict=True)
    return min(*lower, observed), max(*upper, observed)


DISTANCES = {
    "sd": (tf.aggregates.standard_deviation(), lambda v: np.std(v, axis=-1)),
    "range": (RANGE, lambda v: np.ptp(v, axis=-1)),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_of_several_groups_invert_tests_along_their_spread(name: str) -> None:
    random, rows = np.random.default_rng(5), [300, 500, 400]
    data = pl.DataFrame({"g": np.repeat([0, 1, 2], rows), "p": random.normal(size=1_200)})
    data = data.with_columns(pl.col("p") + pl.col("g") * 0.3)
    aggregate, distance = DISTANCES[name]
    result = tf.new_groupwise_metric(tf.mean_prediction, name, aggregate)("g")(data, estimate="p", interval="auto")
    parts = [data.filter(g=group)["p"].to_numpy() for group in range(3)]
    values = np.array([part.mean() for part in parts])
    errors = np.array([part.std(ddof=1) / math.sqrt(len(part)) for part in parts])
    expected = inverted(distance, values, errors, rows, 40_000, random)
    assert result[".method"].item() == "test_inversion"
    # 400 draws know a quantile to a seventh of a standard error, and nine spreads are joined by lines
    assert ends(result) == pytest.approx(expected, abs=3 / 7 * float(errors.max()))
    assert 0 < result[".lower"].item() < result[".estimate"].item() < result[".upper"].item()


def test_spread_of_groups_that_may_be_equal_reaches_equality() -> None:
    people = selections(np.array([[30, 33, 29, 35]]), 100)
    for aggregate, equality in ((tf.aggregates.standard_deviation(), 0), (RANGE, 0), (QUOTIENT, 1)):
        lower, upper = ends(tf.demographic_parity("g", aggregate=aggregate)(people, **OF_COUNTS))
        assert equality in (lower, upper)
        assert lower < upper


def test_standard_deviation_of_means_has_lower_end() -> None:
    random = np.random.default_rng(5)
    data = pl.DataFrame({"p": random.normal(size=1_200) + [0, 0, 1] * 400, "g": ["a", "b", "c"] * 400})
    spread = tf.new_groupwise_metric(tf.mean_prediction, "spread", tf.aggregates.standard_deviation())("g")
    result = spread(data, estimate="p", interval="auto", times=200).row(0, named=True)
    assert 0.2 < result[".lower"] < result[".estimate"] < result[".upper"]


@pytest.mark.parametrize(
    "name", ["independence", "separation", "kl_divergence", "mutual_information", "kolmogorov_smirnov", "abroca"]
)
def test_between_group_distances_have_no_end_at_equality(name: str) -> None:
    random, metric = np.random.default_rng(4), public(name)("g")
    rows = 300
    people = pl.DataFrame(
        {
            "t": random.integers(0, 2, rows), "e": random.integers(0, 2, rows), "s": random.random(rows),
            "g": random.choice(list("abc"), rows),
        }
    )  # fmt: skip
    call: dict[str, Any] = {"probs": "s"} if metric.kind == "prob" else {"estimate": "e"}
    for result in (
        metric(people, "t", **call, interval="auto", times=100),
        metric.by_group(people, "t", **call, interval="auto", times=100).drop_nulls(".estimate"),
    ):
        assert result[".lower"].null_count() == len(result)
        assert (result[".upper"] >= result[".estimate"]).all()
        assert result[".method"].str.ends_with(", upper end").all()
    (verdict,) = tf.check(metric, below=1e-4)(people, "t", **call, times=100)[".verdict"]
    assert verdict == "not enough evidence"
    most = min(5, metric.range[1])
    assert tf.check(metric, below=most)(people, "t", **call, times=100)[".verdict"].item() == "pass"


def test_ratio_range_of_many_small_equal_groups_holds_equality() -> None:
    # of 60 groups of 30 rows the ratio of the extremes is far below 1 by chance alone
    runs, groups, rows, random = 60, 60, 30, np.random.default_rng(12)
    hits = random.binomial(rows, 0.3, (runs, groups))
    counted = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * groups),
            "g": np.tile(np.repeat(np.arange(groups), 2), runs),
            "e": np.tile([1, 0], runs * groups),
            "n": np.stack([hits.ravel(), rows - hits.ravel()], axis=1).ravel(),
        }
    )
    ratio = tf.selection_rate.ratio("g")
    result = ratio(counted, estimate="e", frequency_weights="n", group_by="run", interval="auto", times=1_000)
    assert (result[".estimate"] < 0.5).all()
    assert (result[".upper"] == 1).sum() >= 0.95 * runs - 3 * math.sqrt(0.95 * 0.05 * runs)


BOTH = tf.metric_set(tf.demographic_parity("race"), tf.equal_opportunity("sex"), tf.mcc.difference("race"), tf.accuracy)


def test_simultaneous_intervals_of_groups_have_sidaks_level() -> None:
    together = BOTH.by_group(LOANS, **CALL, interval="auto", simultaneous=True)
    for count, by in ((5, "race"), (2, "sex"), (1, None)):
        level = 0.95 ** (1 / count)
        alone = BOTH.by_group(LOANS, **CALL, interval="auto", conf_level=level).drop(".conf_level", strict=False)
        assert together.columns == alone.columns
        one, other = (table.filter(pl.col(".by").eq_missing(pl.lit(by))) for table in (together, alone))
        assert one.drop(".method").equals(other.drop(".method"))
        suffix = "" if by is None else ", simultaneous"
        assert one[".method"].to_list() == [f"{method}{suffix}" for method in other[".method"]]
    hits, rows = counts(tf.detection_prevalence, "race")["Asian"]
    asian = together.filter(pl.col(".metric") == "selection_rate", pl.col(".group") == "Asian")
    assert ends(asian) == pytest.approx(proportion_confint(hits, rows, alpha=1 - 0.95**0.2, method="wilson"))


def test_simultaneous_intervals_count_the_groups_of_each_outer_group() -> None:
    data = LOANS.filter((pl.col("sex") == "male") | (pl.col("race") != "Native"))
    parity = tf.demographic_parity("race")
    together = parity.by_group(data, **CALL, interval="auto", simultaneous=True, group_by="sex")
    for sex, count in (("male", 5), ("female", 4)):
        part = data.filter(pl.col("sex") == sex)
        alone = parity.by_group(part, **CALL, interval="auto", conf_level=0.95 ** (1 / count))
        of_sex = together.filter(pl.col("sex") == sex)
        assert of_sex.select(".lower", ".upper").equals(alone.select(".lower", ".upper"))


@pytest.mark.parametrize("interval", ["bootstrap", "bayes"])
def test_simultaneous_intervals_by_replicates_take_their_quantiles_further_out(interval: Any) -> None:
    parity, call = tf.demographic_parity("race"), {**CALL, "interval": interval}
    together = parity.by_group(LOANS, **call, simultaneous=True, times=1000)
    alone = parity.by_group(LOANS, **call, conf_level=0.95**0.2, times=1000)
    assert together.select(".lower", ".upper").equals(alone.select(".lower", ".upper"))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"`times=500` replicates do not show .* of 5 groups.* take `times=784`"
    ):
        parity.by_group(LOANS, **call, simultaneous=True, times=500)


def test_simultaneous_intervals_of_tallies_and_accumulators() -> None:
    parity = tf.demographic_parity("race")
    expected = parity.by_group(LOANS, **CALL, interval="auto", simultaneous=True)
    given: dict[str, Any] = {"interval": "auto", "pos_label": CALL["pos_label"], "simultaneous": True}
    counting = {name: value for name, value in CALL.items() if name != "pos_label"}
    read: Any = parity.compute_by_group(parity.tally(LOANS, **counting), **given)
    assert read.equals(expected)


def test_simultaneous_is_for_intervals_of_groups() -> None:
    parity, asked = tf.demographic_parity("race"), {"simultaneous": True}
    untyped: Any = asked
    with pytest.raises(
        tf.errors.ArgumentError, match="'simultaneous' applies to the values of groups; give it to `by_group`"
    ):
        parity(LOANS, **CALL, interval="auto", **untyped)
    with pytest.raises(tf.errors.ArgumentError, match=r'`simultaneous` needs intervals: add `interval="auto"`'):
        parity.by_group(LOANS, **CALL, **untyped)


def test_simultaneous_intervals_hold_for_all_groups_at_once() -> None:
    runs, random = 400, np.random.default_rng(21)
    rates, rows = np.array([0.1, 0.3, 0.5, 0.6, 0.9]), np.array([40, 200, 25, 60, 100])
    hits = random.binomial(rows, rates, (runs, 5))
    counted = pl.DataFrame({
        "run": np.repeat(np.arange(runs), 10), "g": np.tile(np.repeat(np.arange(5), 2), runs),
        "e": np.tile([1, 0], 5 * runs), "n": np.stack([hits, rows - hits], axis=-1).ravel(),
    })  # fmt: skip
    call: dict[str, Any] = {"estimate": "e", "frequency_weights": "n", "group_by": "run", "interval": "auto"}
    shares = dict[bool, Any]()
    for simultaneous in (False, True):
        values = tf.demographic_parity("g").by_group(counted, **call, simultaneous=simultaneous)
        truth = values[".group"].replace_strict(dict(zip("01234", rates.tolist(), strict=True)))
        held = truth.is_between(values[".lower"], values[".upper"])
        of_runs = pl.DataFrame([values["run"], held.alias("held")]).group_by("run").agg(pl.col("held").all())
        shares[simultaneous] = of_runs["held"].sum() / runs
    assert shares[False] < 0.85
    assert shares[True] == pytest.approx(0.95, abs=0.03)


def test_label_that_one_group_lacks_does_not_take_the_limits_of_the_others() -> None:
    rows = [("a", "a", 60), ("a", "b", 20), ("b", "b", 50), ("b", "a", 10)]
    other = [("a", "a", 50), ("a", "b", 30), ("b", "b", 55), ("b", "a", 15)]
    cells = [(*row, "one") for row in rows] + [(*row, "two") for row in other]
    common = pl.DataFrame(cells, ["t", "e", "rows", "g"], orient="row")
    rare = pl.DataFrame([("c", "c", 2, "two")], ["t", "e", "rows", "g"], orient="row")
    metric = tf.sens.difference("g")
    options: dict[str, Any] = {"estimator": "one_vs_rest", "frequency_weights": "rows", "on_undefined": "ignore"}
    expected = metric(common, "t", "e", **options, labels=["a", "b", "c"], interval="auto")
    result = metric(pl.concat([common, rare]), "t", "e", **options, interval="auto")
    columns = (".estimate", ".lower", ".upper")
    assert expected[".upper"].item() is not None
    assert result.select(columns).row(0) == pytest.approx(expected.select(columns).row(0))


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_rates_of_some_rows_have_closed_limits_of_distances_to_the_rest(to: str) -> None:
    result = tf.sens.difference("race", to=to)(LOANS, **CALL, interval="auto")
    assert result[".method"].item() == "pairwise"
    repaid = LOANS.filter(pl.col("repaid") == "yes")
    selected = {name: value for name, value in CALL.items() if name != "truth"}
    expected = tf.selection_rate.difference("race", to=to)(repaid, **selected, interval="auto")
    columns = (".estimate", ".lower", ".upper")
    assert result.select(columns).row(0) == pytest.approx(expected.select(columns).row(0), abs=0.005)
