"""Permutation tests of metrics that read rows, weights or clusters, against shuffles by plain loops; error rates."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from benchmarks.measuring import forget_peak, peak_memory
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import f1_score, roc_auc_score

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending
from tidyfair.inference.testing.studentized import rate_distances

if TYPE_CHECKING:
    from collections.abc import Callable

LOANS = lending(1_500)
DECIDED: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORED: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
TIMES = 1_000
STUDENTIZED = "studentized permutation, asymptotic"


def gap(metric: tf.types.Metric, aggregate: Any = None) -> tf.types.GroupwiseFactory:
    return tf.new_groupwise_metric(metric, f"{metric.name}_gap", aggregate or tf.difference())


def outcome(
    metric: tf.types.GroupwiseMetric, data: pl.DataFrame, call: dict[str, Any], times: int = TIMES, seed: int = 0,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    given: dict[str, Any] = {"adjust": "none", **options}
    return inference.disparity_test(metric, **given)(data, **call, times=times, seed=seed).row(0, named=True)


def columns(data: pl.DataFrame, group: str) -> tuple[np.ndarray, ...]:
    labels = ((data[name] == "yes").to_numpy() for name in ("repaid", "approved"))
    return (*labels, data["score"].to_numpy(), data[group].cast(pl.String).to_numpy())


def by_plain_shuffles(
    value: Callable[[np.ndarray], float], error: Callable[[np.ndarray], float], group: np.ndarray, strata: np.ndarray
) -> dict[str, float]:
    """The range of values of groups and the distances in standard errors, with labels shuffled in a loop.

    What is expected are the distances, on the scale on which the observed ones are the range.
    """
    random, ranges, distances = np.random.default_rng(5), list[float](), list[tuple[float, float]]()
    names = np.unique(group)
    for draw in range(TIMES + 1):
        shuffled = group.copy()
        if draw:
            for stratum in np.unique(strata):
                mine = np.flatnonzero(strata == stratum)
                shuffled[mine] = random.permutation(group[mine])
        rows = [np.flatnonzero(shuffled == name) for name in names]
        values, errors = [value(item) for item in rows], [error(item) for item in rows]
        ranges.append(max(values) - min(values))
        distances.append(distances_of(values, errors))
    scaled = relative_to_first(np.array(distances))
    p_value = (1 + sum(item >= 1 - 1e-9 for item in scaled[1:])) / (TIMES + 1)
    expected = scaled[1:] * ranges[0]
    high = np.quantile(expected, 0.95)
    return {"estimate": ranges[0], "expected": expected.mean(), "low": expected.min(), "high": high, "p": p_value}


def distances_of(values: list[float], errors: list[float]) -> tuple[float, float]:
    """The root of the Wald statistic, and the largest distance of a group from all others."""
    weights = [1 / error**2 for error in errors]

    def mean(left_out: int | None = None) -> float:
        kept = [index for index in range(len(values)) if index != left_out]
        return sum(weights[index] * values[index] for index in kept) / sum(weights[index] for index in kept)

    wald = sum(weight * (value - mean()) ** 2 for weight, value in zip(weights, values, strict=True))
    away = [
        abs(value - mean(index)) / math.sqrt(errors[index] ** 2 + 1 / (sum(weights) - weights[index]))
        for index, value in enumerate(values)
    ]
    return math.sqrt(wald), max(away)


def relative_to_first(distances: np.ndarray) -> np.ndarray:
    """How much of the first distances is as rare as those of each draw; the largest one is three times rarer."""

    def rarity(both: np.ndarray) -> float:
        return float(min((distances >= both - 1e-9).mean(axis=0) * (1, 3)))

    parts = np.unique(distances / distances[0])
    rarity_of_parts = np.array([rarity(part * distances[0]) for part in parts])
    return np.array([parts[rarity_of_parts >= rarity(both) - 1e-9].max() for both in distances])


def assert_same(result: dict[str, Any], plain: dict[str, float], rows: int) -> None:
    assert result[".method"] == STUDENTIZED
    assert result[".n"] == rows
    assert result[".estimate"] == pytest.approx(plain["estimate"])
    width = plain["high"] - plain["low"]
    for name, value in ((".expected", "expected"), (".expected_lower", "low"), (".expected_upper", "high")):
        assert result[name] == pytest.approx(plain[value], abs=0.12 * width), name
    # both are known to 1/sqrt(times), and errors are estimated in two ways
    share = max(plain["p"], 0.01)
    assert result[".p_value"] == pytest.approx(plain["p"], abs=5 * math.sqrt(2 * share * (1 - share) / TIMES) + 0.02)


@pytest.mark.parametrize(("group", "within"), [("race", None), ("sex", "age_band")])
def test_f1_test_equals_shuffled_rows(group: str, within: str | None) -> None:
    large = [name for name, size in LOANS[group].value_counts().rows() if size >= 60]
    data = LOANS.filter(pl.col(group).cast(pl.String).is_in(large))
    truth, guess, _, groups = columns(data, group)
    strata = data[within].cast(pl.String).to_numpy() if within else np.zeros(len(data))

    def f1_error(rows: np.ndarray) -> float:
        # by the delta method: F1 = 2 tp / (2 tp + fp + fn)
        hits, wrong = (truth & guess)[rows].sum(), (truth != guess)[rows].sum()
        below = 2 * hits + wrong
        return math.sqrt(hits * (2 * wrong / below**2) ** 2 + wrong * (2 * hits / below**2) ** 2)

    def f1(rows: np.ndarray) -> float:
        # scikit-learn's number, without its checks of what is given, thousands of times
        return 2 * (truth & guess)[rows].sum() / (truth[rows].sum() + guess[rows].sum())

    for name in large:
        mine = np.flatnonzero(groups == name)
        assert f1(mine) == pytest.approx(f1_score(truth[mine], guess[mine]), rel=1e-12)
    plain = by_plain_shuffles(f1, f1_error, groups, strata)
    # ours cost little, and leave the error of the plain ones
    assert_same(outcome(gap(tf.f_meas)(group), data, DECIDED, within=within, times=10 * TIMES), plain, len(data))


def wins_of(truth: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Who of each pair of an event and another row has the larger score."""
    events, others = score[truth], score[~truth]
    return (events[:, None] > others) + (events[:, None] == others) / 2


def delong(truth: np.ndarray, score: np.ndarray) -> float:
    """The standard error of an area, from the places of each class in the other."""
    wins = wins_of(truth, score)
    parts = [wins.mean(axis=axis).var(ddof=1) / wins.shape[1 - axis] for axis in (0, 1)]
    return math.sqrt(sum(parts))


def test_auc_test_equals_shuffles_with_delong_errors() -> None:
    data = LOANS.head(400)
    truth, _, score, group = columns(data, "sex")
    for name in np.unique(group):
        mine = np.flatnonzero(group == name)
        area = wins_of(truth[mine], score[mine]).mean()
        assert area == pytest.approx(roc_auc_score(truth[mine], score[mine]), rel=1e-12)
    plain = by_plain_shuffles(
        lambda rows: float(wins_of(truth[rows], score[rows]).mean()),
        lambda rows: delong(truth[rows], score[rows]), group, np.zeros(len(data)),
    )  # fmt: skip
    assert_same(outcome(tf.auc_parity("sex"), data, SCORED), plain, len(data))


def mean_precision(truth: np.ndarray, score: np.ndarray) -> float:
    """Average precision of scores without ties."""
    falling = truth[np.argsort(-score)]
    precision = falling.cumsum() / np.arange(1, len(falling) + 1)
    return float(precision[falling].mean())


def area_by_trapezoids(truth: np.ndarray, score: np.ndarray) -> float:
    """The area under the precision-recall curve of scores without ties."""
    falling = truth[np.argsort(-score)]
    precision = np.append(1, falling.cumsum() / np.arange(1, len(falling) + 1))
    return float(((precision[1:] + precision[:-1]) / 2)[falling].mean())


@pytest.mark.parametrize(
    ("metric", "value"), [(tf.average_precision, mean_precision), (tf.pr_auc, area_by_trapezoids)], ids=["mean", "area"]
)
def test_precision_test_equals_shuffles_with_jackknife_errors(
    metric: tf.types.Metric, value: Callable[[np.ndarray, np.ndarray], float]
) -> None:
    data = LOANS.head(60)
    truth, _, score, group = columns(data, "sex")
    score = score + np.arange(len(score)) * 1e-9
    data = data.with_columns(score=pl.Series(score).clip(0, 1))

    def jackknife(rows: np.ndarray) -> float:
        without = [value(np.delete(truth[rows], row), np.delete(score[rows], row)) for row in range(len(rows))]
        return math.sqrt((len(rows) - 1) * float(np.var(without)))

    plain = by_plain_shuffles(lambda rows: value(truth[rows], score[rows]), jackknife, group, np.zeros(len(data)))
    assert_same(outcome(gap(metric)("sex"), data, SCORED), plain, len(data))


@pytest.mark.parametrize("metric", [tf.pr_auc, tf.average_precision, tf.gain_capture], ids=lambda metric: metric.name)
def test_tests_of_ranked_scores_are_fast(metric: tf.types.Metric) -> None:
    random = np.random.default_rng(1)
    score = random.random(2_000)
    data = pl.DataFrame({"y": random.random(2_000) < score, "s": score, "g": random.integers(0, 2, 2_000)})
    start = time.process_time()
    inference.disparity_test(gap(metric)("g"))(data, "y", probs="s", pos_label=True)
    # a second or less; leaving out random parts took eleven
    assert time.process_time() - start < 3


def test_weighted_rate_test_shuffles_weights() -> None:
    data = LOANS.head(600)
    _, guess, _, group = columns(data, "sex")
    weight = data["weight"].to_numpy()

    def share(rows: np.ndarray) -> float:
        return float(np.average(guess[rows], weights=weight[rows]))

    def error(rows: np.ndarray) -> float:
        away = weight[rows] * (guess[rows] - share(rows))
        return math.sqrt((away**2).sum()) / weight[rows].sum()

    plain = by_plain_shuffles(share, error, group, np.zeros(len(data)))
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes", "case_weights": "weight"}
    result = outcome(tf.demographic_parity("sex"), data, call)
    assert_same(result, plain, len(data))
    times_hundred = outcome(tf.demographic_parity("sex"), data.with_columns(pl.col("weight") * 100), call)
    assert times_hundred == {
        name: pytest.approx(value) if ".p" not in name else value for name, value in result.items()
    }


def test_numeric_metrics_have_permutation_tests() -> None:
    data = LOANS.with_columns(guess=pl.lit(0.5) + pl.when(pl.col("sex") == LOANS["sex"][0]).then(1.0).otherwise(0.0))
    far = outcome(tf.mae.difference("sex"), data, {"truth": "score", "estimate": "guess"}, times=199)
    assert far[".p_value"] == pytest.approx(1 / 200)
    alike = data.with_columns(sex=pl.col("sex").shuffle(seed=2), guess=pl.lit(0.5))
    near = outcome(tf.mae.difference("sex"), alike, {"truth": "score", "estimate": "guess"}, times=199)
    assert near[".p_value"] > 0.05


@pytest.mark.parametrize("within", [None, "age_band"])
def test_studentized_test_of_rates(within: str | None) -> None:
    truth, guess, _, groups = columns(LOANS, "race")
    data = LOANS.filter(pl.Series(truth))
    guess, groups, pooled = guess[truth], groups[truth], guess[truth].mean()
    strata = data[within].cast(pl.String).to_numpy() if within else np.zeros(len(data))
    plain = by_plain_shuffles(
        lambda rows: float(guess[rows].mean()),
        lambda rows: math.sqrt(pooled * (1 - pooled) / len(rows)),
        groups,
        strata,
    )
    result = outcome(tf.equal_opportunity("race"), LOANS, DECIDED, within=within, times=10_000)
    assert result[".method"] == "studentized permutation"
    assert result[".n"] == len(data)
    assert result[".p_value"] == pytest.approx(
        plain["p"], abs=5 * math.sqrt(0.25 / TIMES) * 2 * math.sqrt(plain["p"]) + 0.005
    )
    for name, value in ((".expected", "expected"), (".expected_lower", "low"), (".expected_upper", "high")):
        assert result[name] == pytest.approx(plain[value], abs=0.1 * plain["high"]), name


def test_default_test_is_not_dominated_by_a_rare_group() -> None:
    sizes, hits = {"a": 1000, "b": 1000, "rare": 8}, {"a": 400, "b": 500, "rare": 4}
    data = pl.concat(
        pl.DataFrame({"group": [name] * size, "e": [1] * hits[name] + [0] * (size - hits[name])})
        for name, size in sizes.items()
    )
    call: dict[str, Any] = {"estimate": "e"}
    parity = tf.demographic_parity("group")
    assert outcome(parity, data, call, studentized=False)[".p_value"] > 0.2
    assert outcome(parity, data, call)[".p_value"] < 0.005
    # against a, b is far and the rare one is not
    to_rare = tf.demographic_parity("group", aggregate=tf.difference(to="rare"))
    assert outcome(to_rare, data, call)[".p_value"] > 0.2
    left_out = tf.demographic_parity("group", min_n=10)
    assert outcome(left_out, data, call)[".p_value"] < 0.005


def drawn_runs(sizes: tuple[int, ...], rates: tuple[float, ...], runs: int) -> tuple[pl.DataFrame, Any]:
    """So many data sets of groups, as counts of people, and the hits of their groups."""
    hits = np.random.default_rng(9).binomial(sizes, rates, (runs, len(sizes)))
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 2 * len(sizes)),
            "group": np.tile(np.repeat(np.arange(len(sizes)), 2), runs),
            "hired": np.tile([1, 0], runs * len(sizes)),
            "people": np.stack([hits, np.array(sizes) - hits], axis=-1).ravel(),
        }
    )
    return data, hits


OF_RUNS: dict[str, Any] = {
    "estimate": "hired", "group_by": "run", "frequency_weights": "people", "labels": [0, 1], "pos_label": 1,
}  # fmt: skip
BESIDE_RARE = [
    ((490, 490, 20), (0.4, 0.5, 0.45)), ((700, 280, 20), (0.4, 0.52, 0.4)), ((490, 490, 20), (0.02, 0.06, 0.02)),
    ((400, 300, 200, 80, 20), (0.4, 0.5, 0.4, 0.5, 0.45)),
]  # fmt: skip


@pytest.mark.simulation
@pytest.mark.parametrize(("sizes", "rates"), BESIDE_RARE)
def test_default_test_has_the_power_of_chi_squared_beside_a_rare_group(
    sizes: tuple[int, ...], rates: tuple[float, ...]
) -> None:
    data, hits = drawn_runs(sizes, rates, 200)
    test = inference.disparity_test(tf.demographic_parity("group"), adjust="none")
    p_values = test(data, **OF_RUNS, times=199)[".p_value"].to_numpy()
    chi_squared: Any = stats.chi2_contingency
    theirs = np.array([chi_squared([row, sizes - row], correction=False).pvalue for row in hits])
    assert (p_values <= 0.05).mean() > (theirs <= 0.05).mean() - 0.07


MANY = [
    ((100,) * 20, (0.4,) * 10 + (0.5,) * 10), (tuple(range(20, 420, 20)), (0.4, 0.47) * 10),
    ((200,) * 5, (0.4, 0.42, 0.45, 0.48, 0.5)),
]  # fmt: skip


@pytest.mark.simulation
@pytest.mark.parametrize(("sizes", "rates"), MANY)
def test_default_test_has_the_power_of_chi_squared_where_many_groups_differ(
    sizes: tuple[int, ...], rates: tuple[float, ...]
) -> None:
    data, hits = drawn_runs(sizes, rates, 60)
    test = inference.disparity_test(tf.demographic_parity("group"), adjust="none")
    p_values = test(data, **OF_RUNS, times=999)[".p_value"].to_numpy()
    chi_squared: Any = stats.chi2_contingency
    theirs = np.array([chi_squared([row, sizes - row], correction=False).pvalue for row in hits])
    assert (p_values <= 0.05).mean() >= (theirs <= 0.05).mean() - 0.05


@pytest.mark.simulation
def test_default_test_finds_one_of_many_groups_more_often_than_chi_squared() -> None:
    data, hits = drawn_runs((50,) * 20, (0.4,) * 19 + (0.65,), 60)
    test = inference.disparity_test(tf.demographic_parity("group"), adjust="none")
    p_values = test(data, **OF_RUNS, times=999)[".p_value"].to_numpy()
    chi_squared: Any = stats.chi2_contingency
    theirs = np.array([chi_squared([row, 50 - row], correction=False).pvalue for row in hits])
    assert (p_values <= 0.05).mean() > (theirs <= 0.05).mean()


@pytest.mark.simulation
@pytest.mark.parametrize(("groups", "rows", "rate"), [(20, 50, 0.4), (20, 100, 0.03), (5, 40, 0.2)])
def test_default_test_keeps_its_level_with_many_groups(groups: int, rows: int, rate: float) -> None:
    data, _ = drawn_runs((rows,) * groups, (rate,) * groups, 600)
    test = inference.disparity_test(tf.demographic_parity("group"), adjust="none")
    rejected = (test(data, **OF_RUNS, times=99)[".p_value"].to_numpy() <= 0.05).mean()
    assert rejected <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


@pytest.mark.simulation
@pytest.mark.parametrize(("sizes", "rates"), BESIDE_RARE)
def test_default_test_does_not_contradict_the_interval(sizes: tuple[int, ...], rates: tuple[float, ...]) -> None:
    # of few hits more runs are needed to tell the share of contradictions
    data, _ = drawn_runs(sizes, rates, 400 if min(rates) < 0.1 else 200)
    parity = tf.demographic_parity("group")
    p_values = inference.disparity_test(parity, adjust="none")(data, **OF_RUNS, times=1999)[".p_value"].to_numpy()
    lower = parity(data, **OF_RUNS, interval="auto", times=2000)[".lower"].to_numpy()
    assert (lower > 0).any()
    # where the interval is sure of a difference, so is the test, but for few hits, which are all or nothing
    assert (p_values[lower > 0] > 0.05).mean() < 0.06
    assert p_values[lower > 0].max() < 0.08
    assert (lower[p_values < 0.01] == 0).mean() < 0.1


@pytest.mark.simulation
@pytest.mark.parametrize("rate", [0.02, 0.4])
def test_default_test_keeps_its_level_beside_a_rare_group(rate: float) -> None:
    data, _ = drawn_runs((490, 490, 20), (rate,) * 3, 400)
    test = inference.disparity_test(tf.demographic_parity("group"), adjust="none")
    rejected = (test(data, **OF_RUNS, times=99)[".p_value"].to_numpy() <= 0.05).mean()
    assert rejected <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("groups", [30, 700])
def test_default_test_of_many_groups_finds_one_that_differs(groups: int) -> None:
    sizes = np.arange(groups) % 7 + 200
    hits = sizes // 2
    even = pl.DataFrame({"group": np.arange(groups), "1": hits, "0": sizes - hits})
    data = even.unpivot(["1", "0"], index="group", variable_name="hired", value_name="people").cast(pl.Int64)
    # one that differs by itself counts as the third of the sums of squares by chance
    test = inference.disparity_test(tf.demographic_parity("group"))
    call = {name: value for name, value in OF_RUNS.items() if name != "group_by"}
    assert test(data, **call, times=999)[".p_value"].item() > 0.9
    is_moved = (pl.col("group") == 3) & (pl.col("hired") == 1)
    apart = data.with_columns(people=pl.when(is_moved).then(260).otherwise("people"))
    assert test(apart, **call, times=999)[".p_value"].item() < 0.01


# Rows that are shuffled


def test_treatment_equality_shuffles_errors() -> None:
    data = LOANS.head(500)
    truth, guess, _, group = columns(data, "sex")
    wrong = truth != guess
    missed, of = truth[wrong], group[wrong]
    names, random = np.unique(group), np.random.default_rng(4)

    def ratio(shuffled: np.ndarray) -> float:
        odds = [missed[shuffled == name].sum() / (~missed)[shuffled == name].sum() for name in names]
        return min(odds) / max(odds)

    observed, draws = ratio(of), np.array([ratio(random.permutation(of)) for _ in range(TIMES)])
    result = outcome(tf.treatment_equality("sex"), data, DECIDED, times=10_000)
    assert result[".method"] == "permutation"
    assert result[".estimate"] == pytest.approx(observed)
    assert result[".expected"] == pytest.approx(draws.mean(), abs=5 * draws.std() / math.sqrt(TIMES))
    assert result[".p_value"] == pytest.approx((draws <= observed + 1e-9).mean(), abs=0.08)


def test_between_group_metrics_are_tested_unstudentized() -> None:
    small = LOANS.head(300)
    *_, group = columns(small, "race")
    random, draws = np.random.default_rng(6), list[float]()
    parity = tf.independence("race")
    for _ in range(200):
        shuffled = small.with_columns(race=pl.Series(random.permutation(group)))
        draws.append(parity(shuffled, **DECIDED, on_undefined="ignore")[".estimate"].item())
    result = outcome(parity, small, DECIDED, times=2_000)
    assert result[".method"] == "permutation"
    assert result[".expected"] == pytest.approx(np.mean(draws), abs=5 * float(np.std(draws)) / math.sqrt(200))
    assert 0 < outcome(tf.abroca("sex"), small, SCORED, times=50)[".p_value"] <= 1


def test_groups_below_min_n_are_not_compared() -> None:
    result = outcome(gap(tf.f_meas)("race", min_n=100), LOANS, DECIDED, times=200)
    names = LOANS["race"].value_counts().filter(pl.col("count") >= 100)["race"].to_list()
    kept = LOANS.filter(pl.col("race").is_in(names))
    assert result[".n"] == len(kept)
    assert result[".estimate"] == pytest.approx(gap(tf.f_meas)("race")(kept, **DECIDED)[".estimate"].item())


def test_test_compares_with_the_reference() -> None:
    data = LOANS.with_columns(group=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    data = data.with_columns(group=pl.when(pl.int_range(pl.len()) % 11 == 0).then(pl.lit("c")).otherwise("group"))
    of_c = pl.when(pl.col("group") == "c").then(pl.col("repaid").cast(pl.String)).otherwise(pl.lit("yes"))
    # b is far from c, and a is not far from b
    to_a = outcome(gap(tf.f_meas, tf.difference(to="a"))("group"), data.with_columns(approved=of_c), DECIDED, times=200)
    among_all = outcome(gap(tf.f_meas)("group"), data.with_columns(approved=of_c), DECIDED, times=200)
    assert to_a[".estimate"] <= among_all[".estimate"] + 1e-12
    assert to_a[".p_value"] == pytest.approx(1 / 201)


def test_test_of_two_sides_drops_rows_on_neither() -> None:
    names = LOANS["race"].value_counts(sort=True)["race"].cast(pl.String).to_list()
    sides = tf.privileged({"race": names[0]}, unprivileged={"race": names[1]})
    kept = LOANS.filter(pl.col("race").cast(pl.String).is_in(names[:2])).with_columns(pl.col("race").cast(pl.String))
    result = outcome(gap(tf.f_meas)(sides), LOANS, DECIDED, times=2_000)
    alone = outcome(gap(tf.f_meas)("race"), kept, DECIDED, times=2_000)
    assert result[".n"] == alone[".n"] == len(kept)
    assert abs(result[".estimate"]) == pytest.approx(alone[".estimate"])
    assert result[".p_value"] == pytest.approx(alone[".p_value"], abs=0.06)


def test_outer_groups_are_shuffled_separately() -> None:
    test = inference.disparity_test(gap(tf.f_meas)("sex"), tf.auc_parity("sex"), adjust="none")
    call: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "probs": "score", "pos_label": "yes"}
    result = test(LOANS, **call, group_by="fold", times=100)
    assert result.columns[:2] == ["fold", ".metric"]
    for (fold,), rows in result.group_by("fold"):
        alone = test(LOANS.filter(fold=fold), **call, times=100)
        assert rows[".metric"].to_list() == alone[".metric"].to_list()
        assert rows[".estimate"].to_list() == pytest.approx(alone[".estimate"].to_list())
        assert rows[".n"].to_list() == alone[".n"].to_list()
    assert result[".p_value"].is_between(0, 1).all()


# Clusters


def test_clusters_are_shuffled_whole() -> None:
    # every row four times knows no more than once
    people = LOANS.head(200).with_row_index("person")
    copies = pl.concat([people] * 4)
    options: dict[str, Any] = {"times": 1_000}
    alone = outcome(tf.demographic_parity("sex"), people, {**DECIDED, "cluster": "person"}, **options)
    together = outcome(tf.demographic_parity("sex"), copies, {**DECIDED, "cluster": "person"}, **options)
    assert alone[".method"] == together[".method"] == STUDENTIZED
    assert together[".expected"] == pytest.approx(alone[".expected"], rel=0.1)
    assert together[".p_value"] == pytest.approx(alone[".p_value"], abs=0.06)
    naive = outcome(tf.demographic_parity("sex"), copies, DECIDED, **options)
    assert naive[".expected"] < 0.7 * alone[".expected"]


def test_clusters_across_groups_raise() -> None:
    with pytest.raises(
        tf.errors.ArgumentError, match=r"clusters of 'fold' hold rows of several groups of 'sex'.*`within='fold'`"
    ):
        inference.disparity_test(tf.demographic_parity("sex"))(LOANS, **DECIDED, cluster="fold", times=20)
    inside = outcome(tf.demographic_parity("sex"), LOANS, DECIDED, within="fold", times=100)
    assert inside[".method"] == "studentized permutation"


def test_rows_of_unknown_group_do_not_hold_their_cluster_in_place() -> None:
    visits = pl.concat([LOANS.head(300).with_row_index("person")] * 3)
    some = visits.with_columns(sex=pl.when(pl.int_range(pl.len()) % 4 > 0).then("sex"))
    call: dict[str, Any] = {**DECIDED, "cluster": "person"}
    beside, without = (
        outcome(tf.demographic_parity("sex"), data, call, times=2_000) for data in (some, some.drop_nulls("sex"))
    )
    assert beside[".estimate"] == pytest.approx(without[".estimate"])
    assert beside[".expected"] == pytest.approx(without[".expected"], rel=0.1)
    assert beside[".p_value"] == pytest.approx(without[".p_value"], abs=0.06)


def test_clusters_may_recur_in_outer_groups() -> None:
    people = LOANS.head(400).with_row_index("person")
    both = pl.concat([people.with_columns(model=pl.lit(name)) for name in ("one", "two")])
    result = inference.disparity_test(tf.demographic_parity("sex"))(
        both, **DECIDED, cluster="person", group_by="model", times=50
    )
    assert result[".p_value"].null_count() == 0


def test_p_value_depends_on_neither_other_metrics_nor_row_blocks() -> None:
    call: dict[str, Any] = {"truth": "score", "estimate": "weight"}
    sexes, races = tf.mae.difference("sex"), tf.mae.difference("race")
    both, alone = (inference.disparity_test(*some, adjust="none") for some in ((sexes, races), (sexes,)))
    # sums of floats depend on the order of threads in their last bits
    drawn = both(LOANS, **call, times=100), alone(LOANS, **call, times=100)
    assert_frame_equal(drawn[0][:1], drawn[1], rel_tol=1e-9, abs_tol=0)
    seeds = [outcome(sexes, LOANS.head(300), call, times=500, seed=seed)[".p_value"] for seed in range(5)]
    p_value = float(np.mean(seeds))
    assert max(abs(item - p_value) for item in seeds) < 5 * math.sqrt(p_value * (1 - p_value) / 500) + 0.02


def test_bad_options_are_named() -> None:
    parity: Any = tf.demographic_parity("sex")
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("does not accept `parts`", {}, {"parts": 3}),
        ("`within`: there is no column 'nowhere'", {"within": "nowhere"}, {}),
        ("`within`: the data are already grouped by 'fold'", {"within": "fold"}, {"group_by": "fold"}),
    ]
    for expected, own, options in cases:
        with pytest.raises(tf.errors.TidyfairError, match=expected):
            inference.disparity_test(parity, **own)(LOANS, **DECIDED, **options)
    with pytest.raises(tf.errors.ArgumentError, match="'demographic_parity', 'mae_difference' read different columns"):
        inference.disparity_test(parity, tf.mae.difference("sex"))(LOANS, **DECIDED)
    with pytest.raises(tf.errors.ArgumentError, match="Fewer than 1000000000 rows can be shuffled"):
        inference.disparity_test(parity)(LOANS.with_columns(n=pl.lit(10**15)), **DECIDED, frequency_weights="n")
    with pytest.raises(tf.errors.ArgumentError, match="Permuting 1500 rows 5000000 times takes too long"):
        inference.disparity_test(tf.auc_parity("sex"))(LOANS, **SCORED, times=5_000_000)


# Memory


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory cannot be measured")
@pytest.mark.parametrize(("metric", "call", "times"), [(tf.f_meas, DECIDED, 4_000), (tf.brier_class, SCORED, 100)])
def test_shuffles_of_many_groups_use_little_memory(metric: tf.types.Metric, call: dict[str, Any], times: int) -> None:
    data = LOANS.with_columns(group=pl.int_range(pl.len()) % 50)
    test = inference.disparity_test(gap(metric)("group"))
    forget_peak()
    before = peak_memory()
    assert test(data, **call, times=times)[".p_value"].item() > 0
    assert peak_memory() - before < 300


# Error rates and power


def rejections(
    metric: tf.types.GroupwiseMetric, sample: Callable[[np.random.Generator], pl.DataFrame], runs: int
) -> float:
    """The share of samples in which equality is rejected at 5 %."""
    random = np.random.default_rng(9)
    data = pl.concat(sample(random).with_columns(run=pl.lit(run)) for run in range(runs))
    test = inference.disparity_test(metric, adjust="none")
    result = test(data, "truth", "estimate", group_by="run", times=99)[".p_value"].drop_nulls()
    return float((result <= 0.05).mean())


def decisions(random: np.random.Generator, sizes: tuple[int, ...], base: tuple[float, ...]) -> pl.DataFrame:
    """Groups with base rates of their own, in all of which 70 % of those with and without the event are told."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    truth = random.random(len(group)) < np.array(base)[group]
    right = random.random(len(group)) < 0.7
    return pl.DataFrame({"group": group, "truth": truth, "estimate": truth == right})


@pytest.mark.simulation
def test_error_rate_of_equal_groups() -> None:
    runs = 200
    share = rejections(gap(tf.f_meas)("group"), lambda random: decisions(random, (40, 40, 20), (0.5,) * 3), runs)
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.simulation
def test_error_rate_with_different_base_rates() -> None:
    # balanced accuracy is the same, base rates and sizes are not: what is shuffled is not alike
    runs, metric = 200, gap(tf.bal_accuracy)("group")
    share = rejections(metric, lambda random: decisions(random, (150, 450), (0.5, 0.1)), runs)
    assert share <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.simulation
def test_power_against_unequal_groups() -> None:
    def sample(random: np.random.Generator) -> pl.DataFrame:
        good, bad = decisions(random, (200,), (0.5,)), decisions(random, (200,), (0.5,))
        bad = bad.with_columns(group=pl.lit(1, pl.Int64), estimate=pl.Series(random.random(200) < 0.5))
        return pl.concat([good, bad])

    assert rejections(gap(tf.f_meas)("group"), sample, 60) > 0.8


def test_same_seed_gives_same_p_value_in_any_row_order() -> None:
    mixed = LOANS.sample(fraction=1.0, shuffle=True, seed=1)
    for metric, call in ((gap(tf.f_meas)("race"), DECIDED), (tf.auc_parity("sex"), SCORED)):
        one, other = (outcome(metric, data, call, times=60) for data in (LOANS, mixed))
        assert other == {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in one.items()
        }


def test_empty_and_single_group_data() -> None:
    empty = inference.disparity_test(gap(tf.f_meas)("sex"), tf.auc_parity("sex"))(
        LOANS.clear(), "repaid", "approved", probs="score", labels=["no", "yes"], pos_label="yes", times=20
    )
    assert empty[".p_value"].null_count() == len(empty)
    one = LOANS.filter(pl.col("sex") == LOANS["sex"][0])
    alone = outcome(gap(tf.f_meas)("sex"), one, DECIDED, times=20)
    assert alone[".estimate"] == 0
    assert alone[".p_value"] == 1


def test_draws_without_variance_have_no_distance() -> None:
    hits, rows = np.array([[0, 0, 0, 0], [4, 8, 8, 8], [1, 2, 2, 2]]), np.array([4, 8, 8, 8])
    share = hits.sum(axis=1) / rows.sum()
    assert rate_distances(hits, rows, share, []).tolist() == [[0, 0]] * 3
