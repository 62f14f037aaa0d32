"""Intervals by replicates: bootstraps of cells, rows and clusters, and Bayesian draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from lending_rates import CALL, LOANS, SCORED, Z, counts, ends
from polars.testing import assert_frame_equal
from scipy.stats import beta, t as student_t
from sklearn.metrics import average_precision_score

import tidyfair as tf
from tidyfair.evaluation.statistics import LabelCounts
from tidyfair.intervals import resampling

if TYPE_CHECKING:
    from collections.abc import Callable


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


def test_counts_of_several_replicates_are_those_of_each() -> None:
    random = np.random.default_rng(5)
    truth, estimate = random.integers(-1, 4, (2, 80))
    # weights of very different size lose digits in differences
    weights = random.random((7, 80)) ** 20
    for levels in ((1,), (0, 1, 2, 3)):
        labels = LabelCounts(truth, estimate, random.integers(0, 5, 80), 6, levels, complete=False)
        together = labels.of(weights)
        for replicate, weight in enumerate(weights):
            for name, sums in labels.of(weight).items():
                assert together[name][replicate] == pytest.approx(sums, rel=1e-12, abs=1e-300), name


def test_replicates_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fair = tf.metric_set(tf.equalized_odds("race"), tf.demographic_parity("race", aggregate=tf.ratio()))
    together = fair(LOANS, **CALL, interval="bootstrap", times=500)
    for name, few in (("_CACHED", 64), ("_ENOUGH_AT_ONCE", 16)):
        monkeypatch.setattr(resampling, name, few)
    assert_frame_equal(fair(LOANS, **CALL, interval="bootstrap", times=500), together, rel_tol=1e-12)


def test_bayes_interval_of_a_rate_is_jeffreys() -> None:
    ((hits, rows),) = counts(tf.sens).values()
    result = tf.sens(LOANS, **CALL, interval="bayes", times=40_000)
    expected = tuple(float(beta.ppf(end, hits + 0.5, rows - hits + 0.5)) for end in (0.025, 0.975))
    assert ends(result) == pytest.approx(expected, abs=0.001)
    assert result[".method"].item() == "dirichlet"


def test_bootstrap_fixes_group_sizes_unless_they_matter() -> None:
    # of groups without variation only their size could vary, beside what their empty cells may hold
    frame = pl.DataFrame({"g": ["a"] * 50 + ["b"] * 50, "p": [1] * 50 + [0] * 50})
    fixed = tf.demographic_parity("g", aggregate=tf.aggregates.group_mean())(frame, estimate="p", interval="bootstrap")
    unseen = Z**2 / (50 + Z**2)
    assert ends(fixed) == pytest.approx((0.5 - unseen / 2, 0.5 + unseen / 2))
    weighted = tf.aggregates.group_mean(weighted=True)
    free = tf.demographic_parity("g", aggregate=weighted)(frame, estimate="p", interval="bootstrap")
    assert ends(free) == pytest.approx((0.4, 0.6), abs=0.011)


def test_same_seed_gives_same_interval_in_any_set_and_row_order() -> None:
    closed = tf.metric_set(tf.mcc, tf.demographic_parity("race"), tf.bal_accuracy.group_minimum("sex"))
    spread = tf.demographic_parity("race", aggregate=tf.aggregates.standard_deviation(), name="spread")
    mean = tf.demographic_parity("sex", aggregate=tf.aggregates.group_mean(), name="mean")
    fair = tf.metric_set(closed, spread, mean)
    call: dict[str, Any] = {**CALL, "interval": "auto", "times": 500}
    result = fair(LOANS, **call)
    assert fair(LOANS.sample(fraction=1, shuffle=True, seed=4), **call).equals(result)
    alone = [metric(LOANS, **call) for metric in fair]
    assert pl.concat(alone).equals(result)
    again = fair(LOANS, **call, seed=1)
    # what is drawn follows from the seed, and the others from nothing but the data
    assert again.head(3).equals(result.head(3))
    for row in (3, 4):
        assert ends(again, row) != ends(result, row)


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
    lower, upper = (dict(zip(("mae", "rmse", "rsq"), end, strict=True)) for end in expected)
    errors = np.std(values, axis=0, ddof=1)
    assert result[".std_error"].to_list()[:2] == pytest.approx(list(errors[:2]), rel=0.02)
    found = {name: (low, high) for name, low, high in result.select(".metric", ".lower", ".upper").rows()}
    for name in ("mae", "rmse"):
        # large errors that have not been seen widen the upper end alone
        assert found[name][0] == pytest.approx(lower[name], rel=0.02, abs=0.002)
        assert found[name][1] > upper[name]
    # ends of a correlation allow for more skewness than a sample shows
    assert found["rsq"][0] < lower["rsq"] < upper["rsq"] < found["rsq"][1]
    assert set(result[".method"]) == {"jackknife"}


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
    result = tf.mae.difference("g")(frame, "y", "p", interval="auto", times=400, group_by="run")
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
    assert result[".method"].item() == "jackknife"
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
    few = NUMBERS.head(400)
    tally = tf.mae.tally(few, "actual", "predicted", parts=0)
    called = tf.mae(few, "actual", "predicted", interval="auto")
    # sums of floats depend on the order of threads in their last bits
    assert_frame_equal(tf.mae.compute(tally, interval="auto"), called, rel_tol=1e-12, abs_tol=0)
    with pytest.raises(tf.errors.ArgumentError, match="count with `parts=0`"):
        tf.mae.compute(tf.mae.tally(NUMBERS, "actual", "predicted"), interval="auto")
    odd: Any = "all"
    with pytest.raises(tf.errors.ArgumentError, match="`parts` is a whole number, 0 or more"):
        tf.mae.tally(NUMBERS, "actual", "predicted", parts=odd)
    with pytest.raises(tf.errors.ArgumentError, match="are alternatives"):
        tf.mae.tally(NUMBERS, "actual", "predicted", parts=1, cluster="fold")


def test_few_cluster_intervals_cover_the_mean() -> None:
    # t of 5 degrees of freedom, on normal means of 6 clusters: a plain percentile bootstrap covers 87 % of these
    runs, random = 200, np.random.default_rng(4)
    mae = tf.new_numeric_metric(
        lambda gap, instances: (gap, instances), "mean", "zero", (-math.inf, math.inf),
        statistics={"gap": lambda truth: truth},
    )  # fmt: skip
    people = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 6),
            "person": np.tile(np.arange(6), runs),
            "y": random.standard_normal(6 * runs),
            "p": 0.0,
        }
    )
    result = mae(people, "y", "p", interval="auto", cluster="person", group_by="run")
    covered = (result[".lower"] <= 0) & (result[".upper"] >= 0)
    assert len(covered) == runs
    assert covered.sum() >= 0.9 * runs


def test_few_clusters_warn() -> None:
    people = pl.DataFrame({"person": list("abcde") * 4, "y": [1, 0] * 10, "p": [1, 0, 0, 1] * 5})
    with pytest.warns(tf.errors.ClusterWarning, match="There are 5 clusters"):
        tf.accuracy(people, "y", "p", interval="bootstrap", cluster="person")
    with pytest.raises(tf.errors.ColumnError, match="already defines groups"):
        tf.accuracy(people, "y", "p", interval="auto", cluster="person", group_by="person")
    with pytest.raises(tf.errors.ArgumentError, match="whose clusters have no prior"):
        tf.accuracy(people, "y", "p", interval="bayes", cluster="person")


# Metrics that read rows, bootstrapped row by row


def drawn_again(values: Callable[[np.ndarray], float], rows: int, times: int, seed: int = 0) -> np.ndarray:
    """A value of as many rows drawn with replacement, `times` over."""
    random = np.random.default_rng(seed)
    return np.array([values(random.integers(0, rows, rows)) for _ in range(times)])


def test_ranking_metric_interval_equals_bootstrap_of_rows() -> None:
    frame, times = LOANS.head(600), 2_000
    truth, score = (frame["repaid"] == "yes").to_numpy(), frame["score"].to_numpy()
    result = tf.average_precision(frame, **SCORED, interval="bootstrap", times=times)
    plain = drawn_again(lambda rows: average_precision_score(truth[rows], score[rows]), len(frame), times)
    assert result[".method"].item() == "bootstrap"
    # two bootstraps: an error is known to 1/sqrt(2 times) of itself in each
    assert result[".std_error"].item() == pytest.approx(plain.std(), rel=4 / math.sqrt(times))
    assert ends(result) == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=plain.std() / 4)
    shuffled = tf.average_precision(
        frame.sample(fraction=1.0, shuffle=True, seed=3), **SCORED, interval="bootstrap", times=50
    )
    assert ends(shuffled) == ends(tf.average_precision(frame, **SCORED, interval="bootstrap", times=50))


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
    options: dict[str, Any] = {**SCORED, "interval": "bootstrap", "times": 400}
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
    with pytest.warns(tf.errors.UndefinedWarning, match=r"gap by g: in \d+ of 2000 replicates a group has no value"):
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
    both = tf.metric_set(tf.sens, tf.equal_opportunity("sex", aggregate=tf.aggregates.group_mean()))(
        LOANS, **CALL, interval="auto", times=50, explain=True
    )
    assert both[".replicates_lost"].to_list() == [None, 0]


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ClusterWarning")
def test_replicates_of_one_row_have_no_variation() -> None:
    random = np.random.default_rng(4)
    rows = pl.DataFrame({"y": random.normal(size=3), "p": 3 + random.normal(size=3), "cluster": [0, 1, 2]})
    orders = [rows.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5)]
    results = [
        tf.rsq(frame, "y", "p", interval="bootstrap", times=400, cluster="cluster", on_undefined="ignore", explain=True)
        for frame in orders
    ]
    # all three are the same cluster in one of nine replicates
    assert {result[".replicates_lost"].item() for result in results} == {results[0][".replicates_lost"].item()}
    assert results[0][".replicates_lost"].item() == pytest.approx(400 / 9, abs=15)
    assert {round(result[".std_error"].item(), 9) for result in results} == {round(results[0][".std_error"].item(), 9)}


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


def test_interval_uses_replicates_with_all_groups() -> None:
    # where c has a value at all, it is far from the others, which are near each other
    scores = ([0.9, 0.1] * 45 + [0.4, 0.6] * 5) * 2
    sure = pl.DataFrame({"g": ["a"] * 100 + ["b"] * 100, "y": [1, 0] * 100, "s": scores})
    rare = pl.DataFrame({"g": ["c"] * 7, "y": [1] * 6 + [0], "s": [0.1] * 5 + [0.2, 0.15]})
    with pytest.warns(tf.errors.UndefinedWarning, match="the interval is of the others"):
        result = tf.roc_auc.difference("g")(pl.concat([sure, rare]), "y", probs="s", interval="bootstrap", times=300)
    assert result[".lower"].item() > 0.3


@pytest.mark.parametrize("interval", ["auto", "bayes"])
@pytest.mark.parametrize("aggregate", [tf.difference(across="mean"), tf.ratio(across="mean")], ids=str)
def test_intervals_include_their_value_at_any_level(aggregate: tf.types.Aggregate, interval: Any) -> None:
    metric = tf.equalized_odds("g", aggregate=aggregate)
    for seed in range(4):
        random = np.random.default_rng(seed)
        group = random.integers(0, 2, 300)
        selected = (random.random(300) < np.where(group == 0, 0.2, 0.8)).astype(int)
        data = pl.DataFrame({"t": random.integers(0, 2, 300), "e": selected, "g": group})
        result = metric(data, "t", "e", interval=interval, conf_level=0.02, times=100)
        value, lower, upper = result.select(".estimate", ".lower", ".upper").row(0)
        # of draws from a posterior, the end at equality would exclude it even where it is true
        assert [lower, upper].count(None) == (interval == "bayes")
        assert lower is None or lower <= value
        assert upper is None or upper >= value
