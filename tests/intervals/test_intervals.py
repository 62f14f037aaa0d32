"""What `interval=` adds: closed forms from counts by hand, pairs of groups, areas, replicates."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from inline_snapshot import snapshot
from polars.testing import assert_frame_equal
from scipy.stats import beta
from scipy.stats import t as student_t
from sklearn.metrics import average_precision_score
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.intervals.analytic import share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOANS = lending(3000)
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORED: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
Z = NormalDist().inv_cdf(0.975)


def ends(result: pl.DataFrame, row: int = 0) -> tuple[float, float]:
    return result[".lower"][row], result[".upper"][row]


def counts(metric: tf.Metric, by: str | None = None, frame: pl.DataFrame = LOANS) -> dict[Any, tuple[int, int]]:
    """Hits and rows of a rate by group, by hand."""
    truth, guess = pl.col("repaid") == "yes", pl.col("approved") == "yes"
    every = pl.lit(value=True)
    about = {
        "sens": (truth, guess), "spec": (~truth, ~guess), "precision": (guess, truth), "accuracy": (every, truth == guess),
        "detection_prevalence": (every, guess), "selection_rate": (every, guess),
    }  # fmt: skip
    among, holds = about[metric.name]
    kept = frame.filter(among).with_columns(pl.lit(0).alias("all") if by is None else pl.col(by))
    table = kept.group_by(by or "all", maintain_order=True).agg(holds.sum().alias("hits"), pl.len())
    return {key: (hits, rows) for key, hits, rows in table.rows()}


@pytest.mark.parametrize("metric", [tf.sens, tf.spec, tf.precision, tf.accuracy, tf.detection_prevalence])
def test_rate_has_wilson_interval(metric: tf.Metric) -> None:
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
    expected = confint_proportions_2indep(*one, *other, method="newcomb", compare="diff")
    turned = confint_proportions_2indep(*other, *one, method="newcomb", compare="diff")
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
    logarithm = tf.demographic_parity("g", aggregate=tf.log_ratio(to="large", signed=True))
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
    assert ends(result) == pytest.approx(confint_proportions_2indep(2, 6, 28, 100, method="newcomb", compare="diff"))
    with pytest.raises(tf.ArgumentError, match="there is no interval in closed form"):
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


def wilson(hits: int, rows: int, level: float) -> tuple[float, float]:
    result: Any = proportion_confint(hits, rows, alpha=1 - level, method="wilson")
    return float(result[0]), float(result[1])


def deviations(groups: list[tuple[int, int]], times: int, random: Any, *, logarithm: bool) -> Any:
    """The largest distance of any pair by chance, in standard errors, written out."""
    largest = []
    for _ in range(times):
        drawn = []
        for hits, rows in groups:
            middle = (hits + 0.5) / (rows + 1)
            share = (random.binomial(rows, middle) + 0.5) / (rows + 1)
            if logarithm:
                drawn.append((math.log(share) - math.log(middle), (1 - share) / (share * rows)))
            else:
                drawn.append((share - middle, share * (1 - share) / rows))
        pairs = itertools.combinations(drawn, 2)
        largest.append(max(abs(a - b) / math.sqrt(v + w) for (a, v), (b, w) in pairs))
    return np.quantile(largest, 0.975)


def test_range_interval_equals_simultaneous_pairs() -> None:
    groups = list(counts(tf.sens, "race").values())
    q = deviations(groups, 4000, np.random.default_rng(5), logarithm=False)

    def largest(z: float, *, upper: bool) -> float:
        result = []
        for (one, rows), (other, other_rows) in itertools.permutations(groups, 2):
            level = 2 * NormalDist().cdf(z) - 1
            low, high = wilson(one, rows, level)
            less, more = wilson(other, other_rows, level)
            first, second = one / rows, other / other_rows
            below, above = math.hypot(first - low, more - second), math.hypot(high - first, second - less)
            result.append(first - second + above if upper else first - second - below)
        return max(0.0, *result)

    result = tf.equal_opportunity("race")(LOANS, **CALL, interval="auto")
    assert result[".method"].item() == "pairwise"
    assert result[".upper"].item() == pytest.approx(largest(Z, upper=True))
    assert result[".lower"].item() == pytest.approx(largest(float(q), upper=False), abs=0.004)
    assert result[".std_error"].item() is None


def test_equalized_odds_interval_covers_pairs_of_both_rates() -> None:
    both = tf.equalized_odds("race")(LOANS, **CALL, interval="auto")
    one = tf.equal_opportunity("race")(LOANS, **CALL, interval="auto")
    assert both[".upper"].item() >= one[".upper"].item()
    spec = tf.new_groupwise_metric(tf.spec, "spec_gap", tf.difference())("race")
    other = spec(LOANS, **CALL, interval="auto")
    assert both[".upper"].item() == pytest.approx(max(one[".upper"].item(), other[".upper"].item()))
    # more pairs must be far apart at once
    assert both[".lower"].item() <= max(one[".lower"].item(), other[".lower"].item()) + 1e-9


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


@pytest.mark.parametrize("groups", [201, 20_000])
def test_range_of_many_groups_uses_simultaneous_bands(groups: int) -> None:
    rows, random = 12, np.random.default_rng(7)
    hits = random.binomial(rows, 0.4, groups)
    chosen = (np.arange(rows) < hits[:, None]).ravel()
    people = pl.DataFrame({"g": np.repeat(np.arange(groups), rows), "e": chosen})
    result = tf.demographic_parity("g")(people, estimate="e", interval="auto").row(0, named=True)
    z = NormalDist().inv_cdf((1 + 0.95 ** (1 / groups)) / 2)
    assert result[".method"] == "simultaneous"
    low, high = proportion_confint(hits, rows, alpha=2 * (1 - NormalDist().cdf(z)), method="wilson")
    assert result[".lower"] == pytest.approx(max(0.0, float(np.max(low) - np.min(high))))
    low, high = proportion_confint(hits, rows, method="wilson")
    assert result[".upper"] == pytest.approx(float(np.max(high) - np.min(low)))
    ratio = tf.demographic_parity_ratio("g")(people, estimate="e", interval="auto").row(0, named=True)
    assert 0 <= ratio[".lower"] <= ratio[".estimate"] <= ratio[".upper"] <= 1


@pytest.mark.parametrize("metric", [tf.group_minimum(), tf.group_maximum()])
def test_group_minimum_and_maximum_have_simultaneous_interval(metric: Any) -> None:
    groups = list(counts(tf.sens, "race").values())
    level = 0.95 ** (1 / len(groups))
    values = [proportion_confint(hits, rows, alpha=1 - level, method="wilson") for hits, rows in groups]
    end = min if metric.kind == "group_minimum" else max
    result = tf.equal_opportunity("race", aggregate=metric)(LOANS, **CALL, interval="auto")
    assert ends(result) == pytest.approx((end(low for low, _ in values), end(high for _, high in values)))
    assert result[".method"].item() == "simultaneous"


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
    logit, half = math.log(area / (1 - area)), Z * error / (area * (1 - area))
    assert ends(result) == pytest.approx((1 / (1 + math.exp(half - logit)), 1 / (1 + math.exp(-half - logit))))


def test_delong_variance_equals_its_definition() -> None:
    part = LOANS.head(200)
    positive = part.filter(pl.col("repaid") == "yes")["score"].to_numpy()
    negative = part.filter(pl.col("repaid") == "no")["score"].to_numpy()
    wins = (positive[:, None] > negative[None, :]) + 0.5 * (positive[:, None] == negative[None, :])
    variance = wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative)
    result = tf.roc_auc(part, **SCORED, interval="auto")
    assert result[".std_error"].item() == pytest.approx(math.sqrt(variance))


def test_small_class_and_perfect_auc_have_newcombe_interval() -> None:
    few = pl.DataFrame({"y": [1, 1, 1, 0, 0], "p": [0.9, 0.8, 0.7, 0.2, 0.1]})
    result = tf.roc_auc(few, "y", probs="p", interval="auto")
    assert result[".method"].item() == "newcombe"
    assert result[".upper"].item() == pytest.approx(1.0)
    assert 0.3 < result[".lower"].item() < 1


def test_method_is_reported_per_group() -> None:
    data = pl.DataFrame(
        {"y": [0, 1] * 20 + [0, 1, 1], "p": [0.2, 0.6, 0.7, 0.4] * 10 + [0.1, 0.5, 0.3], "g": ["a"] * 40 + ["b"] * 3}
    )
    groups = tf.auc_parity("g").by_group(data, "y", probs="p", interval="auto")
    assert groups.select(".group", ".method").rows() == [("a", "delong"), ("b", "newcombe")]


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


# Weights


def test_intervals_do_not_depend_on_weight_scale() -> None:
    fair = tf.metric_set(tf.sens, tf.accuracy, tf.demographic_parity("race"), tf.roc_auc, tf.auc_parity("sex"))
    call: dict[str, Any] = {**CALL, "probs": "score", "case_weights": "weight", "interval": "auto"}
    once = fair(LOANS, **call)
    again = fair(LOANS.with_columns(pl.col("weight") * 100), **call)
    for name in (".lower", ".upper", ".std_error"):
        assert again[name].is_null().equals(once[name].is_null())
        assert again[name].drop_nulls().to_list() == pytest.approx(once[name].drop_nulls().to_list(), rel=1e-9)


def test_weighted_rate_has_the_error_of_a_weighted_mean() -> None:
    rows = LOANS.filter(pl.col("repaid") == "yes")
    hit, weight = (rows["approved"] == "yes").cast(pl.Float64).to_numpy(), rows["weight"].to_numpy()
    share = (weight * hit).sum() / weight.sum()
    error = math.sqrt((weight**2 * (hit - share) ** 2).sum()) / weight.sum()
    result = tf.sens(LOANS, **CALL, case_weights="weight", interval="auto")
    assert result[".std_error"].item() == pytest.approx(error)
    size = share * (1 - share) / error**2
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


def test_intervals_with_unit_weights_equal_unweighted() -> None:
    fair = tf.metric_set(tf.sens, tf.demographic_parity("race"), tf.roc_auc)
    call: dict[str, Any] = {**CALL, "probs": "score", "interval": "auto"}
    plain = fair(LOANS, **call)
    weighted = fair(LOANS.with_columns(one=pl.lit(1.0)), **call, case_weights="one")
    for name in (".lower", ".upper"):
        assert weighted[name].to_list() == pytest.approx(plain[name].to_list(), rel=1e-9)


# Replicates


def test_bootstrap_of_cells_equals_bootstrap_of_rows() -> None:
    part = LOANS.head(400).with_columns(pl.col("repaid", "approved") == "yes")
    result = tf.mcc(part, "repaid", "approved", interval="bootstrap", times=20_000)
    truth, guess = part["repaid"].to_numpy(), part["approved"].to_numpy()
    random, values = np.random.default_rng(3), []
    for _ in range(20_000):
        rows = random.integers(0, 400, 400)
        y, p = truth[rows], guess[rows]
        tp, tn, fp, fn = (float((a & b).sum()) for a, b in ((y, p), (~y, ~p), (~y, p), (y, ~p)))
        values.append((tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    assert ends(result) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=0.004)
    assert result[".std_error"].item() == pytest.approx(np.std(values), rel=0.03)
    assert result[".method"].item() == "bootstrap"


def test_bayes_interval_of_a_rate_is_jeffreys() -> None:
    ((hits, rows),) = counts(tf.sens).values()
    result = tf.sens(LOANS, **CALL, interval="bayes", times=40_000)
    expected = tuple(float(beta.ppf(end, hits + 0.5, rows - hits + 0.5)) for end in (0.025, 0.975))
    assert ends(result) == pytest.approx(expected, abs=0.001)
    assert result[".method"].item() == "dirichlet"


def test_bootstrap_fixes_group_sizes_unless_they_matter() -> None:
    # of groups without variation only their size could vary, beside what their empty cells may hold
    frame = pl.DataFrame({"g": ["a"] * 50 + ["b"] * 50, "p": [1] * 50 + [0] * 50})
    fixed = tf.demographic_parity("g", aggregate=tf.group_mean())(frame, estimate="p", interval="bootstrap")
    unseen = Z**2 / (50 + Z**2)
    assert ends(fixed) == pytest.approx((0.5 - unseen / 2, 0.5 + unseen / 2))
    weighted = tf.group_mean(weighted=True)
    free = tf.demographic_parity("g", aggregate=weighted)(frame, estimate="p", interval="bootstrap")
    assert ends(free) == pytest.approx((0.4, 0.6), abs=0.011)


def test_same_seed_gives_same_interval_in_any_set_and_row_order() -> None:
    fair = tf.metric_set(tf.mcc, tf.demographic_parity("race"), tf.bal_accuracy_group_minimum("sex"))
    call: dict[str, Any] = {**CALL, "interval": "auto", "times": 500}
    result = fair(LOANS, **call)
    assert fair(LOANS.sample(fraction=1, shuffle=True, seed=4), **call).equals(result)
    alone = [metric(LOANS, **call) for metric in fair]
    assert pl.concat(alone).equals(result)
    assert not fair(LOANS, **call, seed=1).equals(result)


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
    assert many[".method"].to_list() == ["wilson", "bootstrap", "pairwise"]
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
    for metric in (tf.f_meas, tf.mcc, tf.mean_benefit, tf.false_negatives_per_false_positive, tf.kap, tf.roc_auc):
        assert share_of(metric.definition) is None


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (
            tf.sens,
            {"interval": "wilson"},
            snapshot("Unknown interval 'wilson'. Known: 'auto', 'analytic', 'bootstrap', 'bayes', 'exact'."),
        ),
        (
            tf.sens,
            {"interval": "auto", "conf_level": 95},
            snapshot("`conf_level` is a number between 0 and 1, not 95; 95 percent is 0.95."),
        ),
        (
            tf.sens,
            {"interval": "auto", "times": 0},
            snapshot("`times` is a whole number, 2 to 10000000, not 0."),
        ),
        (tf.sens, {"interval": "auto", "seed": -1}, snapshot("`seed` is a whole number, 0 or more, not -1.")),
        (
            tf.mcc,
            {"interval": "analytic"},
            snapshot('\'mcc\': there is no interval in closed form; take `interval="auto"` or "bootstrap".'),
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
            {"interval": "auto", "probs": "score", "times": 10**6},
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
    with pytest.raises(tf.TidyfairError) as caught:
        metric(LOANS, **call)
    assert str(caught.value) == expected


# Sums and clusters


NUMBERS = LOANS.with_columns(actual=pl.col("score") * 10 + pl.col("weight"), predicted=pl.col("weight") * 3)


def test_regression_intervals_equal_bootstrap_of_rows() -> None:
    part = NUMBERS.head(300)
    fair = tf.metric_set(tf.mae, tf.rmse, tf.rsq)
    result = fair(part, "actual", "predicted", interval="auto")
    actual, predicted = part["actual"].to_numpy(), part["predicted"].to_numpy()
    random, values = np.random.default_rng(6), []
    for _ in range(10_000):
        rows = random.integers(0, 300, 300)
        y, p = actual[rows], predicted[rows]
        values.append((np.abs(y - p).mean(), math.sqrt(((y - p) ** 2).mean()), np.corrcoef(y, p)[0, 1] ** 2))
    expected = np.quantile(values, [0.025, 0.975], axis=0)
    assert result[".lower"].to_list() == pytest.approx(list(expected[0]), rel=0.02, abs=0.002)
    assert result[".upper"].to_list() == pytest.approx(list(expected[1]), rel=0.02, abs=0.002)
    assert set(result[".method"]) == {"bootstrap"}


def test_block_bootstrap_of_many_rows_matches_plain_error() -> None:
    result = tf.mae(NUMBERS, "actual", "predicted", interval="auto")
    distance = (NUMBERS["actual"] - NUMBERS["predicted"]).abs()
    error: Any = distance.std()
    assert result[".std_error"].item() == pytest.approx(error / math.sqrt(len(distance)), rel=0.12)
    brier = tf.brier_class(LOANS, **SCORED, interval="auto")
    squares: Any = ((LOANS["repaid"] == "yes").cast(pl.Float64) - LOANS["score"]).pow(2).std()
    assert brier[".std_error"].item() == pytest.approx(squares / math.sqrt(len(LOANS)), rel=0.12)
    shuffled = tf.mae(NUMBERS.sample(fraction=1, shuffle=True, seed=1), "actual", "predicted", interval="auto")
    assert ends(shuffled) == pytest.approx(ends(result), rel=1e-9)


def test_range_of_means_covers_the_truth() -> None:
    runs, random = 60, np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 300),
            "g": np.tile(np.repeat(np.arange(5), 60), runs),
            "y": random.normal(size=300 * runs),
            "p": 0.0,
        }
    )
    result = tf.mae_difference("g")(frame, "y", "p", interval="auto", times=400, group_by="run")
    assert len(result) == runs
    assert (result[".upper"] > 0).all()
    assert (result[".lower"] == 0).sum() >= 0.88 * runs


def test_cluster_bootstrap_error_matches_between_cluster_error() -> None:
    random = np.random.default_rng(8)
    share = np.repeat(random.beta(2, 2, 80), 10)
    people = pl.DataFrame(
        {"person": np.repeat(np.arange(80), 10), "y": 1, "p": (random.random(800) < share).astype(int)}
    )
    result = tf.sens(people, "y", "p", interval="auto", cluster="person")
    values = people.group_by("person").agg(pl.col("p").mean())["p"]
    error: Any = values.std()
    assert result[".std_error"].item() == pytest.approx(error / math.sqrt(80), rel=0.05)
    assert result[".method"].item() == "cluster bootstrap"
    plain = tf.sens(people, "y", "p", interval="auto")
    assert result[".std_error"].item() > 1.5 * plain[".std_error"].item()
    # with t of 79 degrees of freedom in place of a normal quantile
    half = (result[".upper"].item() - result[".lower"].item()) / 2
    assert half == pytest.approx(float(student_t.ppf(0.975, 79)) * error / math.sqrt(80), rel=0.1)
    # clusters of one row are rows
    alone = people.with_row_index("row")
    single = tf.sens(alone, "y", "p", interval="auto", cluster="row")
    assert single[".std_error"].item() == pytest.approx(plain[".std_error"].item(), rel=0.05)


def test_tally_with_parts_has_intervals() -> None:
    tally = tf.mae.tally(NUMBERS, "actual", "predicted", parts=0)
    called = tf.mae(NUMBERS, "actual", "predicted", interval="auto")
    # sums of floats depend on the order of threads in their last bits
    assert_frame_equal(tf.mae.compute(tally, interval="auto"), called, rel_tol=1e-12, abs_tol=0)
    with pytest.raises(tf.ArgumentError, match="count with `parts=0`"):
        tf.mae.compute(tf.mae.tally(NUMBERS, "actual", "predicted"), interval="auto")
    odd: Any = "all"
    with pytest.raises(tf.ArgumentError, match="`parts` is a whole number, 0 or more"):
        tf.mae.tally(NUMBERS, "actual", "predicted", parts=odd)
    with pytest.raises(tf.ArgumentError, match="both say what varies"):
        tf.mae.tally(NUMBERS, "actual", "predicted", parts=1, cluster="fold")


def test_few_cluster_intervals_cover_the_mean() -> None:
    # t of 5 degrees of freedom, on normal means of 6 clusters: a plain percentile bootstrap covers 87 % of these
    runs, random = 200, np.random.default_rng(4)
    mae = tf.new_numeric_metric(
        lambda gap, instances: (gap, instances), "mean", statistics={"gap": lambda truth: truth}
    )
    people = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 6),
            "person": np.tile(np.arange(6), runs),
            "y": random.standard_normal(6 * runs),
            "p": 0.0,
        }
    )
    with pytest.warns(tf.ClusterWarning):
        result = mae(people, "y", "p", interval="auto", cluster="person", times=2_000, group_by="run")
    covered = (result[".lower"] <= 0) & (result[".upper"] >= 0)
    assert len(covered) == runs
    assert covered.sum() >= 0.9 * runs


def test_few_clusters_warn() -> None:
    people = pl.DataFrame({"person": list("abcde") * 4, "y": [1, 0] * 10, "p": [1, 0, 0, 1] * 5})
    with pytest.warns(tf.ClusterWarning, match="There are 5 clusters"):
        tf.accuracy(people, "y", "p", interval="auto", cluster="person")
    with pytest.raises(tf.ColumnError, match="is a group already"):
        tf.accuracy(people, "y", "p", interval="auto", cluster="person", group_by="person")
    with pytest.raises(tf.ArgumentError, match="whose clusters have no prior"):
        tf.accuracy(people, "y", "p", interval="bayes", cluster="person")


# Metrics that read rows, bootstrapped row by row


def drawn_again(values: Callable[[np.ndarray], float], rows: int, times: int, seed: int = 0) -> np.ndarray:
    """A value of as many rows drawn with replacement, `times` over."""
    random = np.random.default_rng(seed)
    return np.array([values(random.integers(0, rows, rows)) for _ in range(times)])


def test_ranking_metric_interval_equals_bootstrap_of_rows() -> None:
    frame, times = LOANS.head(600), 1_000
    truth, score = (frame["repaid"] == "yes").to_numpy(), frame["score"].to_numpy()
    result = tf.average_precision(frame, **SCORED, interval="auto", times=times)
    plain = drawn_again(lambda rows: average_precision_score(truth[rows], score[rows]), len(frame), times)
    assert result[".method"].item() == "bootstrap"
    # two bootstraps: an error is known to 1/sqrt(2 times) of itself in each
    assert result[".std_error"].item() == pytest.approx(plain.std(), rel=4 / math.sqrt(times))
    assert ends(result) == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=plain.std() / 4)
    shuffled = tf.average_precision(
        frame.sample(fraction=1.0, shuffle=True, seed=3), **SCORED, interval="auto", times=50
    )
    assert ends(shuffled) == ends(tf.average_precision(frame, **SCORED, interval="auto", times=50))


def test_group_medians_are_drawn_within_groups() -> None:
    frame, times = LOANS.head(400).with_columns(guess=pl.col("score") * 2), 1_000
    parity = tf.new_groupwise_metric(tf.median_absolute_error, "medians", tf.difference())("sex")
    groups = parity.by_group(frame, "score", "guess", interval="auto", times=times)
    for sex, value, error in groups.select(".group", ".estimate", ".std_error").rows():
        away = frame.filter(sex=sex)["score"].to_numpy()
        plain = drawn_again(lambda rows, away=away: float(np.median(away[rows])), len(away), times)
        assert value == pytest.approx(np.median(away))
        assert error == pytest.approx(plain.std(), rel=0.2)
    made = parity(frame, "score", "guess", interval="auto", times=200)
    assert made[".method"].item() == "bootstrap"
    assert made[".lower"].item() <= made[".estimate"].item() <= made[".upper"].item()


def test_cluster_bootstrap_of_ranking_metrics() -> None:
    # every row five times: clusters of copies know no more than one row each
    frame = LOANS.head(120).with_row_index("person")
    copies = pl.concat([frame] * 5)
    options: dict[str, Any] = {**SCORED, "interval": "auto", "times": 400}
    alone, together = tf.average_precision(frame, **options), tf.average_precision(copies, **options, cluster="person")
    naive = tf.average_precision(copies, **options)
    assert together[".method"].item() == "cluster bootstrap"
    assert together[".std_error"].item() == pytest.approx(alone[".std_error"].item(), rel=0.2)
    assert naive[".std_error"].item() < 0.6 * alone[".std_error"].item()


def test_bootstrap_of_custom_label_function_equals_library_metric() -> None:
    def hits(truth: Any, estimate: Any) -> float:
        return float((truth & estimate).sum() / truth.sum())

    own = tf.new_class_metric(hits, "hits")
    result, known = (metric(LOANS, **CALL, interval="bootstrap", times=200) for metric in (own, tf.sens))
    assert ends(result) == ends(known)


# Replicates that lack a group


def test_lost_replicates_are_counted_and_warned() -> None:
    # of 4 rows with the event in b none is told in (1 - 1/4) ** 4 of the draws; precision of b is then undefined
    few = pl.DataFrame(
        {"t": [1, 0] * 100 + [1, 0, 1, 0], "e": [1, 0, 0, 1] * 50 + [1, 0, 0, 0], "g": ["a"] * 200 + ["b"] * 4}
    )
    gap = tf.new_groupwise_metric(tf.precision, "gap", tf.difference())("g")
    times = 2_000
    with pytest.warns(tf.UndefinedWarning, match=r"gap by g: in \d+ of 2000 replicates a group has no value"):
        result = gap(few, "t", "e", interval="bootstrap", times=times, explain=True)
    share = result[".replicates_lost"].item() / times
    assert share == pytest.approx(0.75**4, abs=5 * math.sqrt(0.3 * 0.7 / times))
    silent = gap(few, "t", "e", interval="bootstrap", times=times, on_undefined="ignore")
    assert ".replicates_lost" not in silent.columns
    closed = gap(LOANS.with_columns(g="sex"), **CALL, interval="auto", explain=True)
    # nothing was lost where nothing was drawn
    assert closed[".replicates_lost"].to_list() == [None]
    of_pandas = gap(LOANS.to_pandas().assign(g="a"), **CALL, interval="auto", explain=True)
    assert of_pandas[".replicates_lost"].isna().all()
    both = tf.metric_set(tf.sens, tf.f_meas)(LOANS, **CALL, interval="auto", times=50, explain=True)
    assert both[".replicates_lost"].to_list() == [None, 0]


def test_worst_label_is_chosen_in_each_replicate() -> None:
    random = np.random.default_rng(8)
    data = pl.DataFrame({"e": random.choice(list("pqr"), 600), "g": random.choice(["a", "b"], 600)})
    parity = tf.demographic_parity("g")
    result = parity(data, estimate="e", interval="bootstrap", times=2_000).row(0, named=True)
    code, group = data["e"].cast(pl.Enum(list("pqr"))).to_physical().to_numpy(), (data["g"] == "a").to_numpy()
    shares = [np.bincount(code[side], minlength=3) / side.sum() for side in (group, ~group)]
    drawn = [
        random.multinomial(side.sum(), share, 4_000) / side.sum()
        for side, share in zip((group, ~group), shares, strict=True)
    ]
    ranges = np.abs(drawn[0] - drawn[1]).max(axis=1)
    expected = np.quantile(ranges, [0.025, 0.975])
    assert (result[".lower"], result[".upper"]) == pytest.approx(expected, abs=0.1 * float(np.ptp(expected)))


# Bayesian intervals and probabilities


def test_bayes_interval_of_a_range_has_no_lower_end() -> None:
    result = tf.demographic_parity("race")(LOANS, **CALL, interval="bayes", times=500).row(0, named=True)
    assert result[".lower"] is None
    assert result[".upper"] > result[".estimate"]
    assert result[".method"] == "dirichlet, upper end"


@pytest.mark.parametrize("limit", [0.01, 0.03, 0.06])
def test_probability_equals_beta_draws(limit: float) -> None:
    times, random = 20_000, np.random.default_rng(2)
    result = tf.probability(tf.equal_opportunity("sex"), below=limit, times=times)(LOANS, **CALL).row(0, named=True)
    assert result[".limit"] == limit
    assert result[".estimate"] == pytest.approx(tf.equal_opportunity("sex")(LOANS, **CALL)[".estimate"].item())
    sides = [random.beta(hits + 0.5, rows - hits + 0.5, times) for hits, rows in counts(tf.sens, "sex").values()]
    expected = float((np.abs(sides[0] - sides[1]) < limit).mean())
    assert result[".probability"] == pytest.approx(expected, abs=5 * math.sqrt(0.5 / times))


def test_probability_uses_independent_priors_per_group() -> None:
    # distances to the whole are drawn within groups too, never over all cells together
    whole = tf.demographic_parity("sex", aggregate=tf.difference(to="overall"))
    actual = tf.probability(whole, below=0.02, times=20_000)
    result = actual(LOANS, estimate="approved", pos_label="yes").row(0, named=True)
    rates, random = counts(tf.selection_rate, "sex"), np.random.default_rng(3)
    drawn = np.array([random.beta(hits + 0.5, rows - hits + 0.5, 20_000) for hits, rows in rates.values()])
    sizes = np.array([rows for _, rows in rates.values()])
    away = np.abs(drawn - (sizes @ drawn) / sizes.sum()).max(axis=0)
    assert result[".probability"] == pytest.approx(float((away < 0.02).mean()), abs=0.02)


def test_probability_by_outer_group_and_of_ratios() -> None:
    actual = tf.probability(tf.demographic_parity_ratio("sex"), above=0.8, times=500)
    result = actual(LOANS, estimate="approved", pos_label="yes", group_by="fold")
    assert result.columns == ["fold", ".metric", ".by", ".estimator", ".estimate", ".limit", ".probability"]
    assert result["fold"].to_list() == sorted(LOANS["fold"].unique())
    assert result[".probability"].is_between(0, 1).all()
    with pytest.raises(tf.ArgumentError, match="should be large, so its limit is one to be above"):
        tf.probability(tf.demographic_parity_ratio("sex"), below=0.8)
    with pytest.raises(tf.ArgumentError, match="needs one limit"):
        tf.probability(tf.demographic_parity("sex"))
    odd: list[dict[str, Any]] = [{"interval": "auto"}, {"case_weights": "weight"}, {"cluster": "fold"}, {"times": 3}]
    for options in odd:
        with pytest.raises(tf.ArgumentError):
            actual(LOANS, estimate="approved", pos_label="yes", **options)


def test_bayes_prior_covers_empty_cells() -> None:
    # 10 rows without the event in each group, none of them selected: Beta(1/2, 10 + 1/2)
    nobody = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "y": ([1] * 10 + [0] * 10) * 2, "p": ([1] * 5 + [0] * 15) * 2})
    times, random = 40_000, np.random.default_rng(1)
    away = np.abs(np.diff(random.beta(0.5, 10.5, (2, times)), axis=0))
    result = tf.probability(tf.predictive_equality("g"), below=0.01, times=times)(nobody, "y", "p")
    assert result[".probability"].item() == pytest.approx(float((away < 0.01).mean()), abs=0.015)
    of_all = tf.fall_out(nobody, "y", "p", interval="bayes", times=times)
    assert ends(of_all) == pytest.approx(beta.ppf([0.025, 0.975], 0.5, 20.5), abs=0.003)
    none = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "p": [0] * 40})
    away = np.abs(np.diff(random.beta(0.5, 20.5, (2, times)), axis=0))
    result = tf.probability(tf.demographic_parity("g"), below=0.02, times=times)(none, estimate="p")
    assert result[".probability"].item() == pytest.approx(float((away < 0.02).mean()), abs=0.015)
    with pytest.raises(tf.ArgumentError, match="how many rows groups have, of which there is no prior"):
        tf.probability(tf.class_imbalance("g"), below=0.1)(none)
    with pytest.raises(tf.ArgumentError, match="reads more than labels, of which there is no prior"):
        tf.probability(tf.auc_parity("g"), below=0.1)(none, "p", probs="p")


def test_interval_uses_replicates_with_all_groups() -> None:
    # where c has a value at all, it is far from the others, which are near each other
    scores = ([0.9, 0.1] * 45 + [0.4, 0.6] * 5) * 2
    sure = pl.DataFrame({"g": ["a"] * 100 + ["b"] * 100, "y": [1, 0] * 100, "s": scores})
    rare = pl.DataFrame({"g": ["c"] * 7, "y": [1] * 6 + [0], "s": [0.1] * 5 + [0.2, 0.15]})
    with pytest.warns(tf.UndefinedWarning, match="the interval is of the others"):
        result = tf.roc_auc_difference("g")(pl.concat([sure, rare]), "y", probs="s", interval="bootstrap", times=300)
    assert result[".lower"].item() > 0.3


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


@pytest.mark.parametrize("rates", [[0.3, 0.3, 0.3, 0.5, 0.5, 0.5], [0.2, 0.3, 0.5, 0.6]], ids=["tied", "apart"])
def test_spread_intervals_cover_the_truth(rates: list[float]) -> None:
    random, rows = np.random.default_rng(2), [200] * len(rates)
    middle = float(np.mean(rates))
    truth = {"range": max(rates) - min(rates), "sd": float(np.std(rates)), "far": max(abs(p - middle) for p in rates)}
    aggregates = dict(zip(truth, (RANGE, tf.standard_deviation(), tf.difference(to="overall")), strict=True))
    spreads = tf.metric_set(
        *(tf.demographic_parity("g", aggregate=item, name=name) for name, item in aggregates.items())
    )
    wrong, above = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    people = some_people(rates, rows, random)
    result = spreads(people, estimate="e", interval="auto", times=200, group_by="run")
    assert len(result) == len(truth) * RUNS
    assert set(result[".method"]) == {"bootstrap, simultaneous"}
    for name, lower, upper in result.select(".metric", ".lower", ".upper").rows():
        wrong[name] += not lower <= truth[name] <= upper
        above[name] += lower > 0
    # five of a hundred, give or take what 60 samples do
    assert max(wrong.values()) <= 8
    # and it is seen that groups differ
    assert min(above.values()) >= 30


def test_custom_range_lower_end_equals_simultaneous_bands() -> None:
    result = tf.demographic_parity("race", aggregate=RANGE)(LOANS, **CALL, interval="auto", times=200)
    counts = LOANS.group_by("race").agg((pl.col("approved") == "yes").sum(), pl.len()).rows()
    bands = [
        proportion_confint(hits, rows, 1 - 0.975 ** (1 / len(counts)), method="wilson") for _, hits, rows in counts
    ]
    lower = max(0, max(low for low, _ in bands) - min(high for _, high in bands))
    assert result[".lower"].item() == pytest.approx(lower, abs=1e-9)
    plain = tf.demographic_parity("race")(LOANS, **CALL)
    assert result[".estimate"].item() == pytest.approx(plain[".estimate"].item())


def test_standard_deviation_of_means_has_lower_end() -> None:
    random = np.random.default_rng(5)
    data = pl.DataFrame({"p": random.normal(size=1_200) + [0, 0, 1] * 400, "g": ["a", "b", "c"] * 400})
    spread = tf.mean_prediction_difference("g", aggregate=tf.standard_deviation())
    result = spread(data, estimate="p", interval="auto", times=200).row(0, named=True)
    assert 0.2 < result[".lower"] < result[".estimate"] < result[".upper"]


@pytest.mark.parametrize(
    "name", ["independence", "separation", "kl_divergence", "mutual_information", "kolmogorov_smirnov", "abroca"]
)
def test_between_group_distances_have_no_end_at_equality(name: str) -> None:
    random, metric = np.random.default_rng(4), getattr(tf, name)("g")
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


# Too few rows or no variation


def no_interval(result: pl.DataFrame) -> list[bool]:
    """Which rows have none."""
    actual = result.select(pl.col(".lower", ".upper", ".std_error", ".method").is_null())
    assert actual.select(pl.all_horizontal(pl.all()) | ~pl.col(".method")).to_series().all()
    return actual[".method"].to_list()


@pytest.mark.parametrize("metric", [tf.mae, tf.median_absolute_error], ids=["of sums", "of rows"])
def test_single_row_group_has_no_interval(metric: tf.Metric) -> None:
    random = np.random.default_rng(11)
    rows = pl.DataFrame(
        {"y": random.normal(size=61), "p": random.normal(size=61), "g": ["a"] * 30 + ["b"] * 30 + ["c"]}
    )
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())
    assert no_interval(gap("g").by_group(rows, "y", "p", **options)) == [False, False, True]
    for aggregate in (None, tf.standard_deviation(), tf.difference(to="overall"), tf.group_maximum()):
        assert no_interval(gap("g", aggregate=aggregate)(rows, "y", "p", **options)) == [True]
        assert no_interval(gap("g", aggregate=aggregate)(rows[:60], "y", "p", **options)) == [False]
    # who is left out is not compared
    assert no_interval(gap("g", min_n=2)(rows, "y", "p", **options)) == [False]
    # a row that lacks its truth tells as little as none
    more = pl.concat([rows, rows[-1:].with_columns(pl.lit(None, pl.Float64).alias("y"))])
    assert no_interval(gap("g").by_group(more, "y", "p", **options)) == [False, False, True]
    assert no_interval(metric(rows, "y", "p", group_by="g", **options)) == [False, False, True]
    folds = pl.concat([rows.with_columns(fold=1), rows[:60].with_columns(fold=2)])
    assert no_interval(gap("g")(folds, "y", "p", group_by="fold", **options)) == [True, False]


def test_single_row_group_has_interval_only_for_rates() -> None:
    rows = pl.DataFrame({"t": [1, 0] * 20 + [1], "e": [1, 0, 0, 1] * 10 + [1], "g": ["a"] * 40 + ["b"]})
    gap = tf.new_groupwise_metric(tf.f_meas, "gap", tf.difference())("g")
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    assert no_interval(gap.by_group(rows, "t", "e", **options)) == [False, True]
    assert no_interval(gap(rows, "t", "e", **options)) == [True]
    sens = tf.equal_opportunity("g")
    assert sens.by_group(rows, "t", "e", **options)[".method"].to_list() == ["wilson", "wilson"]
    assert sens(rows, "t", "e", **options)[".method"].item() == "newcombe"
    scored = rows.with_columns(s=pl.col("e") / 2)
    listed = gap(scored, "t", probs="s", threshold=[0.25, 0.75], **options)
    assert no_interval(listed) == [True, True]


@pytest.mark.filterwarnings("ignore::tidyfair.ClusterWarning")
def test_single_cluster_has_no_interval() -> None:
    random = np.random.default_rng(12)
    rows = pl.DataFrame({
        "y": random.normal(size=60), "p": random.normal(size=60), "t": random.integers(0, 2, 60),
        "g": ["a"] * 40 + ["b"] * 20, "person": np.repeat([1, 2, 3, 4, 5, 5], 10),
    })  # fmt: skip
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore", "cluster": "person"}
    for metric in (tf.mae, tf.median_absolute_error):
        gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("g")
        assert no_interval(gap.by_group(rows, "y", "p", **options)) == [False, True]
        assert no_interval(gap(rows, "y", "p", **options)) == [True]
    parity = tf.demographic_parity("g")
    assert no_interval(parity(rows, estimate="t", **options)) == [True]
    apart = rows.with_columns(pl.int_range(pl.len()).floordiv(10).alias("person"))
    assert no_interval(parity(apart, estimate="t", **options)) == [False]


@pytest.mark.parametrize("aggregate", [
    tf.difference(), tf.standard_deviation(), tf.difference(to="overall"),
    tf.new_aggregate(pl.col(".estimate").max() - pl.col(".estimate").min(), equal=0),
], ids=repr)  # fmt: skip
def test_single_group_has_no_interval(aggregate: Any) -> None:
    rows = pl.DataFrame({"e": [1, 0] * 50, "g": ["a"] * 100})
    metric = tf.demographic_parity("g", aggregate=aggregate)
    result = metric(rows, estimate="e", interval="auto", times=200)
    assert result[".estimate"].item() == 0
    assert no_interval(result) == [True]
    assert tf.check(metric, below=0.1)(rows, estimate="e", times=200)[".verdict"].item() == "not enough evidence"


# Empty cells


def labelled(tp: int = 0, fn: int = 0, fp: int = 0, tn: int = 0, group: str = "a") -> pl.DataFrame:
    """People of a group: how many there are in each cell of truth and estimate."""
    truth, guess = [1] * (tp + fn) + [0] * (fp + tn), [1] * tp + [0] * fn + [1] * fp + [0] * tn
    return pl.DataFrame({"t": truth, "e": guess, "g": [group] * len(truth)})


MANY = labelled(160, 40, 40, 160, "b")
OF_LABELS = [tf.f_meas, tf.mcc, tf.kap, tf.bal_accuracy, tf.j_index]


def gap_of(metric: tf.Metric, aggregate: Any = None) -> tf.GroupwiseMetric:
    return tf.new_groupwise_metric(metric, "gap", aggregate or tf.difference())("g")


def wilson_of_all(rows: int, level: float = 0.95) -> float:
    return wilson(rows, rows, level)[0]


def test_error_free_group_has_interval_of_its_accuracy() -> None:
    for rows in (4, 8, 40, 1000):
        people = labelled(tp=rows // 2, tn=rows // 2)
        for result in (
            tf.f_meas(people, "t", "e", interval="auto", times=200, on_undefined="ignore"),
            gap_of(tf.f_meas).by_group(people, "t", "e", interval="auto", times=200, on_undefined="ignore"),
            tf.f_meas(people, "t", "e", interval="bootstrap", times=200, on_undefined="ignore"),
        ):
            # with k more rows that are wrong it is 2 tp / (2 tp + k)
            assert ends(result) == pytest.approx((wilson_of_all(rows), 1.0))
            assert result[".method"].item() == "bootstrap, empty cells"
            assert result[".std_error"].item() == pytest.approx((1 - wilson_of_all(rows)) / Z)


@pytest.mark.parametrize("metric", OF_LABELS, ids=lambda item: item.name)
def test_small_error_free_group_gives_not_enough_evidence(metric: tf.Metric) -> None:
    people = pl.concat([labelled(tp=2, tn=2), MANY])
    value = metric(MANY, "t", "e")[".estimate"].item()
    assert (
        tf.check(gap_of(metric), below=0.05)(people, "t", "e", times=200, on_undefined="ignore")[".verdict"].item()
        == "not enough evidence"
    )
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    for aggregate in (tf.group_minimum(), tf.group_mean(), tf.difference(to="b", signed=True)):
        result = gap_of(metric, aggregate)(people, "t", "e", **options).row(0, named=True)
        low = {"group_minimum": value, "group_mean": (1 + value) / 2, "difference": 1 - value}[aggregate.kind]
        assert result[".lower"] < low - 0.1


def test_four_error_free_rows_pass_no_check() -> None:
    people = labelled(tp=2, tn=2)
    quiet: dict[str, Any] = {"times": 200, "on_undefined": "ignore"}
    for limit in (0.6, 0.7, 0.8, 0.9, 0.99):
        for metric in (tf.f1_group_minimum("g"), tf.f1, gap_of(tf.bal_accuracy, tf.group_minimum())):
            result = tf.check(metric, above=limit)(people, "t", "e", **quiet)
            assert result[".verdict"].item() == "not enough evidence"
    # but of many such rows it is known
    assert tf.check(tf.f1, above=0.9)(labelled(tp=500, tn=500), "t", "e", **quiet)[".verdict"].item() == "pass"


def test_empty_cell_widens_only_its_own_end() -> None:
    # of 8 rows without the event none is wrong, and of 400 with it a quarter
    people, half = labelled(tp=300, fn=100, tn=8), Z**2
    low = (300 / 400 + 8 / (8 + half)) / 2
    result = tf.bal_accuracy(people, "t", "e", interval="auto", times=400)
    assert result[".lower"].item() == pytest.approx(low)
    # nothing is added to a cell that is not empty
    assert result[".upper"].item() < 0.91


def test_intervals_without_empty_cells_are_unchanged() -> None:
    # as they were before empty cells were filled
    known = {
        tf.difference(): (0.0, 0.04937113292945618), tf.ratio(): (0.9323140556392042, 1.0),
        tf.group_minimum(): (0.6697469036503785, 0.7249737838879888),
        tf.standard_deviation(): (0.0, 0.024923415711429805), tf.group_mean(): (0.6864397495629632, 0.7207570712067825),
    }  # fmt: skip
    for aggregate, expected in known.items():
        metric = tf.new_groupwise_metric(tf.f_meas, "gap", aggregate)("sex")
        assert ends(metric(LOANS, **CALL, interval="auto", times=400)) == pytest.approx(expected, rel=1e-12)
    alone = tf.f_meas(LOANS, **CALL, interval="auto", times=400)
    assert ends(alone) == pytest.approx((0.6856267171409676, 0.7215409477653054), rel=1e-12)


def test_empty_cells_widen_only_their_outer_group() -> None:
    folds = pl.concat([MANY.with_columns(fold=1), labelled(tp=4, tn=4, group="b").with_columns(fold=2)])
    options: dict[str, Any] = {"interval": "auto", "times": 400, "on_undefined": "ignore"}
    result = tf.f_meas(folds, "t", "e", group_by="fold", **options)
    assert result[".method"].to_list() == ["bootstrap", "bootstrap, empty cells"]
    assert ends(result, 1) == pytest.approx((wilson_of_all(8), 1.0))


def test_empty_cells_use_effective_rows_of_weights_and_clusters() -> None:
    people = labelled(tp=10, tn=10)
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    weights = np.tile([1.0, 3.0], 10)
    effective = weights.sum() ** 2 / (weights**2).sum()
    expected = float(effective / (effective + Z**2))
    for scale in (1, 100):
        weighted = people.with_columns(w=pl.Series(weights * scale))
        result: Any = tf.f_meas(weighted, "t", "e", case_weights="w", **options)
        assert ends(result) == pytest.approx((expected, 1.0))
    # five clusters of four rows
    clustered = people.with_columns(person=pl.int_range(20) % 5)
    with pytest.warns(tf.ClusterWarning):
        result = tf.f_meas(clustered, "t", "e", cluster="person", **options)
    assert ends(result) == pytest.approx((wilson_of_all(5), 1.0))
    with pytest.warns(tf.ClusterWarning):
        rate: Any = tf.sens(clustered.filter(pl.col("t") == 1), "t", "e", cluster="person", **options)
    assert ends(rate) == pytest.approx((wilson_of_all(5), 1.0))


def test_empty_cells_with_thresholds_and_multiclass() -> None:
    scored = labelled(tp=6, tn=6).with_columns(s=pl.when(pl.col("e") == 1).then(0.8).otherwise(0.2))
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    listed = tf.f_meas(scored, "t", probs="s", threshold=[0.5, 0.1], **options).filter(pl.col(".threshold") == 0.5)
    one = tf.f_meas(scored, "t", probs="s", threshold=0.5, **options)
    assert ends(listed) == pytest.approx(ends(one))
    assert ends(one) == pytest.approx((wilson_of_all(12), 1.0))
    letters = pl.DataFrame({"y": list("abc") * 4, "p": list("abc") * 4})
    recall = tf.sens(letters, "y", "p", **options)
    # six cells share the rows, two of each label
    lower = 4 / (4 + Z**2 / 3)
    alone = (2 + 4 / (4 + Z**2)) / 3
    assert ends(recall) == pytest.approx((min(lower, alone), 1.0))


@pytest.mark.parametrize("rates", [(0.4, 0.1), (0.45, 0.05)], ids=["0.8", "0.9"])
@pytest.mark.parametrize("rows", [(8, 400, 400), (4, 400, 400)], ids=str)
def test_rare_group_does_not_fail_a_fair_model(rows: tuple[int, ...], rates: tuple[float, float]) -> None:
    right, wrong = rates
    random, worlds = np.random.default_rng(3), 300
    drawn = np.stack([random.multinomial(size, (right, wrong, wrong, right), worlds) for size in rows])
    cells = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 1, 0], "cell": range(4)})
    places = pl.DataFrame(
        [(str(g), w, c, int(n)) for (g, w, c), n in np.ndenumerate(drawn)], ["g", "world", "cell", "n"], orient="row"
    )
    people = places.join(cells, on="cell")
    gap = gap_of(tf.f_meas)(
        people, "t", "e", frequency_weights="n", group_by="world", interval="auto", conf_level=0.9, times=200,
        on_undefined="ignore", explain=True,
    )  # fmt: skip
    for limit in (1e-9, 0.05):
        failing = gap.pipe(tf.check, below=limit)[".verdict"] == "fail"
        assert failing.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)


@pytest.mark.parametrize("metric", [tf.mae, tf.rmse, tf.median_absolute_error], ids=lambda item: item.name)
def test_constant_errors_have_no_interval(metric: tf.Metric) -> None:
    random = np.random.default_rng(11)
    constant = pl.DataFrame({"y": random.normal(size=12), "g": "a"}).with_columns(p=pl.col("y") + 0.1)
    rows = pl.concat([constant, pl.DataFrame({"y": random.normal(size=80), "g": "b", "p": random.normal(size=80)})])
    options: dict[str, Any] = {"interval": "auto", "times": 200}
    assert no_interval(gap_of(metric).by_group(rows, "y", "p", **options)) == [True, False]
    for aggregate in (None, tf.standard_deviation(), tf.difference(to="b", signed=True), tf.group_mean()):
        assert no_interval(gap_of(metric, aggregate)(rows, "y", "p", **options)) == [True]
    for limit in (0.01, 5):
        (verdict,) = tf.check(gap_of(metric), below=limit)(rows, "y", "p", times=200)[".verdict"]
        assert verdict == "not enough evidence"


@pytest.mark.parametrize("metric", [tf.brier_class, tf.average_precision], ids=lambda item: item.name)
def test_constant_scores_have_no_interval(metric: tf.Metric) -> None:
    random = np.random.default_rng(12)
    perfect = pl.DataFrame({"t": [1, 0] * 6, "s": [1.0, 0.0] * 6, "g": "a"})
    rows = pl.concat([perfect, pl.DataFrame({"t": [1, 0] * 40, "s": random.random(80), "g": "b"})])
    options: dict[str, Any] = {"interval": "auto", "times": 100, "on_undefined": "ignore"}
    assert no_interval(gap_of(metric).by_group(rows, "t", probs="s", **options)) == [True, False]
    assert no_interval(gap_of(metric)(rows, "t", probs="s", **options)) == [True]


def test_infinite_values_have_no_interval_and_pass_no_check() -> None:
    # nobody without the event is selected in a, so that its positive likelihood ratio is infinite
    people = pl.concat([labelled(tp=20, fn=20, tn=10), MANY])
    quiet: dict[str, Any] = {"times": 200, "on_undefined": "ignore"}
    for aggregate in (tf.difference(), tf.ratio(), tf.log_ratio()):
        gap = gap_of(tf.positive_likelihood_ratio, aggregate)
        assert no_interval(gap(people, "t", "e", interval="auto", **quiet)) == [True]
    ratio = tf.check(gap_of(tf.positive_likelihood_ratio, tf.ratio()), above=0.8)
    assert ratio(people, "t", "e", **quiet)[".verdict"].item() == "not enough evidence"


def test_zero_value_has_one_sided_ratio_interval() -> None:
    people = pl.concat([labelled(fn=2, fp=2, tn=4), MANY])
    result = gap_of(tf.f_meas, tf.ratio())(people, "t", "e", interval="auto", times=200, on_undefined="ignore")
    assert result[".estimate"].item() == result[".lower"].item() == 0
    assert 0.5 < result[".upper"].item() <= 1


def test_metrics_with_different_draws_in_one_set() -> None:
    # the sizes of groups are fixed for the one, and not for the other
    gaps = [tf.new_groupwise_metric(tf.f_meas, name, item)("sex") for name, item in (
        ("spread", tf.standard_deviation()), ("to all", tf.difference(to="overall")),
    )]  # fmt: skip
    options: dict[str, Any] = {**CALL, "interval": "auto", "times": 100}
    together = tf.metric_set(*gaps)(LOANS, **options)
    assert pl.concat([item(LOANS, **options) for item in gaps]).equals(together)
    assert len(tf.metric_set(*gaps).by_group(LOANS, **options)) == 2


@pytest.mark.parametrize("group_by", [None, "o"])
@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_sums_of_no_rows_have_no_interval(interval: Any, group_by: str | None) -> None:
    schema = {"y": pl.Boolean, "s": pl.Float64, "g": pl.String, "o": pl.String}
    nobody = pl.DataFrame(schema=schema)
    metrics = tf.metric_set(tf.brier_class, tf.new_groupwise_metric(tf.brier_class, "gap", tf.difference())("g"))
    result = metrics(nobody, "y", probs="s", interval=interval, times=20, group_by=group_by, on_undefined="ignore")
    assert result.select(".estimate", ".lower", ".upper").null_count().rows() == [(len(result),) * 3]
