"""Limits of comparisons between groups equal those of pairs by hand: ranges, the rest and all rows."""

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
from lending_rates import CALL, LOANS, Z, counts, ends
from plain_limits import limits_of_difference, limits_of_log_ratio, outer_limits, wilson_with_few
from statsmodels.stats.proportion import confint_proportions_2indep

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


@pytest.mark.parametrize("to", ["rest", "overall"])
def test_rates_of_some_rows_have_closed_limits_of_distances_to_the_rest(to: str) -> None:
    result = tf.sens.difference("race", to=to)(LOANS, **CALL, interval="auto")
    assert result[".method"].item() == "pairwise"
    repaid = LOANS.filter(pl.col("repaid") == "yes")
    selected = {name: value for name, value in CALL.items() if name != "truth"}
    expected = tf.selection_rate.difference("race", to=to)(repaid, **selected, interval="auto")
    columns = (".estimate", ".lower", ".upper")
    assert result.select(columns).row(0) == pytest.approx(expected.select(columns).row(0), abs=0.005)


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
