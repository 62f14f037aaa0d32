"""Rates that borrow strength from those of other groups: beta-binomial, and additive with interactions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize, root
from scipy.special import expit
from scipy.stats import betabinom, binom, halfnorm, norm

import tidyfair as tf
from tidyfair import inference
from tidyfair.datasets import lending
from tidyfair.inference.partial_knowledge.pooling import Additive, BetaBinomial

DECIDED: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
PARITY = tf.demographic_parity("g")


def people_of(hits: Any, rows: Any) -> pl.DataFrame:
    """People of groups 0, 1, 2 …, so many of which have so many hits."""
    return pl.concat(
        pl.DataFrame({"g": [group] * n, "p": [1] * k + [0] * (n - k)})
        for group, (k, n) in enumerate(zip(hits, rows, strict=True))
    )


def likeliest(hits: Any, rows: Any) -> tuple[float, float]:
    """The mean and the concentration at which the likelihood has no slope, by sums over rows (Smith, 1983)."""
    number = [np.concatenate([np.arange(count) for count in counts]) for counts in (hits, rows - hits, rows)]

    def slopes(given: Any) -> Any:
        mean, spread = expit(given[0]), math.exp(given[1])
        at = [mean, 1 - mean, 1.0]
        terms = [1 / (share + index * spread) for share, index in zip(at, number, strict=True)]
        by_spread = [float(term @ index) for term, index in zip(terms, number, strict=True)]
        return [terms[0].sum() - terms[1].sum(), by_spread[0] + by_spread[1] - by_spread[2]]

    def cost(given: Any) -> float:
        mean, strength = expit(given[0]), np.exp(-given[1])
        return -float(betabinom.logpmf(hits, rows, strength * mean, strength * (1 - mean)).sum())

    starts = [(0.0, -np.log(start)) for start in (2, 20, 200, 2_000)]
    fits = [minimize(cost, start, bounds=[(-8, 8), (-np.log(1e6), -np.log(0.05))]) for start in starts]
    best = root(slopes, min(fits, key=lambda fit: fit.fun).x, tol=1e-11)
    assert best.success
    return float(expit(best.x[0])), math.exp(-best.x[1])


@pytest.mark.parametrize("seed", range(5))
def test_shrunken_rates_fit_mean_and_concentration_by_maximum_likelihood(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = np.append(random.integers(2, 60, 12), 1500)
    hits = random.binomial(rows, np.append(random.beta(8, 12, 12), 0.8))
    mean, strength = likeliest(hits, rows)
    result = inference.shrunken_rates(PARITY, people_of(hits, rows), estimate="p")
    weight = rows / (rows + strength)
    assert result[".weight"].to_list() == pytest.approx(list(weight), abs=1e-3)
    assert result[".mean"].to_list() == pytest.approx([mean] * 13, rel=1e-6)
    assert result[".precision"].to_list() == pytest.approx([strength] * 13, rel=1e-6)
    assert result[".estimate"].to_list() == pytest.approx(list(weight * hits / rows + (1 - weight) * mean), abs=1e-3)
    assert result[".raw"].to_list() == pytest.approx(list(hits / rows))
    assert result[".estimator"].unique().to_list() == ["beta_binomial"]
    assert (result[".lower"] <= result[".estimate"]).all()
    assert (result[".upper"] >= result[".estimate"]).all()


@pytest.mark.parametrize("seed", range(12))
def test_mean_and_concentration_have_the_largest_likelihood(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, strength = int(random.integers(4, 20)), 10 ** random.uniform(0, 2.5)
    rows = random.integers(2, 400, size)
    hits = random.binomial(rows, random.beta(0.3 * strength, 0.7 * strength, size))
    model = BetaBinomial(hits.astype(float), rows.astype(float))
    mean, strength = likeliest(hits, rows)
    assert model.fit == (pytest.approx(mean, rel=1e-9), pytest.approx(strength, rel=1e-8))
    weight = rows / (rows + strength)
    assert model.estimate == pytest.approx(weight * hits / rows + (1 - weight) * mean, rel=1e-9)


def test_concentration_is_infinite_exactly_where_equal_rates_are_likeliest() -> None:
    random, infinite = np.random.default_rng(1), 0
    strengths = np.geomspace(0.05, 1e6, 4_000)[:, None]
    for _ in range(100):
        rows = random.integers(10, 1_000, 6)
        hits = random.binomial(rows, 0.3)
        overall = hits.sum() / rows.sum()
        model = BetaBinomial(hits.astype(float), rows.astype(float))
        mean, strength = model.fit
        equal = float(binom.logpmf(hits, rows, overall).sum())
        if math.isinf(strength):
            infinite += 1
            assert mean == overall
            assert (model.weight == 0).all()
            varying = betabinom.logpmf(hits, rows, strengths * overall, strengths * (1 - overall)).sum(axis=1)
            assert varying.max() < equal + 1e-6
        else:
            assert betabinom.logpmf(hits, rows, strength * mean, strength * (1 - mean)).sum() > equal
    assert 40 < infinite < 80


def test_the_highest_of_two_peaks_of_the_likelihood_is_found() -> None:
    # next to a huge group, rates may vary much, or not at all
    for hits, rows, concentration in (((5, 8294), (20, 9465), 2.402472), ((0, 25), (1, 27), math.inf)):
        model = BetaBinomial(np.array(hits, dtype=float), np.array(rows, dtype=float))
        assert model.fit[1] == pytest.approx(concentration, rel=1e-6)


def test_rates_of_very_many_rows_that_differ_clearly_stay_apart() -> None:
    rows = np.full(3, 1e8)
    model = BetaBinomial(rows * [0.5, 0.5004, 0.4996], rows)
    # 8 standard errors
    assert model.weight == pytest.approx([0.98] * 3, abs=0.01)


def rmse(estimates: list[Any], truths: list[Any]) -> float:
    return float(np.sqrt(np.mean((np.array(estimates) - np.array(truths)) ** 2)))


@pytest.mark.simulation
def test_fitted_mean_is_nearer_the_truth_than_the_overall_rate() -> None:
    # a large group that is unlike the others does not draw them to itself
    random, rows = np.random.default_rng(1), np.append(np.full(20, 25), 2000).astype(float)
    truths, raw, fitted, covered = list[Any](), list[Any](), list[Any](), list[Any]()
    for _ in range(150):
        truth = np.append(random.beta(8, 12, 20), 0.8)
        hits = random.binomial(rows.astype(int), truth).astype(float)
        model = BetaBinomial(hits, rows)
        lower, upper = model.limits(0.95, model.draws(1000, random))
        truths.append(truth)
        raw.append(hits / rows)
        fitted.append(model.estimate)
        covered.append((lower <= truth) & (truth <= upper))
    assert rmse(raw, truths) > 0.09
    assert rmse(fitted, truths) < 0.078
    assert np.mean(covered) == pytest.approx(0.955, abs=0.02)


def test_groups_without_variation_shrink_to_the_mean() -> None:
    result = inference.shrunken_rates(PARITY, people_of([10, 10], [20, 20]), estimate="p")
    assert result[".estimate"].to_list() == [0.5, 0.5]
    assert result[".weight"].to_list() == [0.0, 0.0]
    # the rates of both are not certain for that
    assert (result[".upper"] - result[".lower"]).min() > 0.15


def test_groups_of_one_row_shrink_to_the_mean() -> None:
    result = inference.shrunken_rates(PARITY, people_of([1, 0, 1, 0, 0], [1] * 5), estimate="p")
    assert result[".estimate"].to_list() == pytest.approx([0.4] * 5)


@pytest.mark.parametrize("hits", [[0, 0, 0], [5, 3, 20]])
def test_rates_that_are_all_0_or_1_have_limits_inside(hits: list[int]) -> None:
    result = inference.shrunken_rates(PARITY, people_of(hits, [5, 3, 20]), estimate="p")
    value = float(hits[0] > 0)
    assert result[".estimate"].to_list() == [value] * 3
    inner = result[".upper"] if value == 0 else 1 - result[".lower"]
    assert inner.is_between(0.01, 0.6).all()


# Crossed groups

SHAPE = (2, 3, 4)
CELLS = np.array(list(np.ndindex(*SHAPE)))


def crossed_rates(random: np.random.Generator, interaction: float, main: float = 0.5) -> Any:
    """The rates of crossed groups with main effects and small interactions."""
    effects = sum(random.normal(0, main, levels)[CELLS[:, index]] for index, levels in enumerate(SHAPE))
    return expit(-0.4 + effects + random.normal(0, interaction, len(CELLS)))


@pytest.mark.simulation
def test_additive_rates_equal_integration_over_the_prior() -> None:
    cells = np.array(list(np.ndindex(2, 3)))
    hits, rows = np.array([1, 4, 2, 5, 6, 3.0]), np.array([6, 6, 5, 7, 8, 3.0])
    model = Additive(hits, rows, list(cells.T))
    # the prior is drawn, and weighted with the likelihood
    random, times = np.random.default_rng(3), 500_000
    spread = np.abs(random.normal(0, 1, times))
    constant = random.normal(0, 2.5, times)
    logits = constant[:, None] + random.normal(0, 1, (times, 6)) * spread[:, None]
    for index, levels in enumerate((2, 3)):
        logits += random.normal(0, 1, (times, levels))[:, cells[:, index]]
    weight = np.exp((hits * logits - rows * np.logaddexp(0, logits)).sum(axis=1))
    weight *= norm.pdf(constant, 0, 10) / norm.pdf(constant, 0, 2.5)
    rates = expit(logits)
    mean = weight @ rates / weight.sum()
    assert halfnorm.cdf(4) > 0.9999
    assert model.estimate == pytest.approx(mean, abs=0.01)
    drawn = model.draws(20_000, random)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.012)
    lower, upper = model.limits(0.9, drawn)
    for index in range(6):
        order = np.argsort(rates[:, index])
        below = np.cumsum(weight[order]) / weight.sum()
        ends = [rates[order[np.searchsorted(below, share)], index] for share in (0.05, 0.95)]
        assert (lower[index], upper[index]) == pytest.approx(tuple(ends), abs=0.035)


@pytest.mark.simulation
def test_additive_rates_of_small_crossed_groups_are_nearest_the_truth() -> None:
    random, rows = np.random.default_rng(7), np.full(len(CELLS), 5.0)
    truths, raw, beta_binomial, additive, covered = (list[Any]() for _ in range(5))
    for _ in range(80):
        truth = crossed_rates(random, 0.15)
        hits = random.binomial(5, truth).astype(float)
        model = Additive(hits, rows, list(CELLS.T))
        lower, upper = model.limits(0.95, model.draws(1000, random))
        truths.append(truth)
        raw.append(hits / rows)
        beta_binomial.append(BetaBinomial(hits, rows).estimate)
        additive.append(model.estimate)
        covered.append((lower <= truth) & (truth <= upper))
    assert rmse(raw, truths) > 0.19
    assert rmse(beta_binomial, truths) < 0.14
    assert rmse(additive, truths) < 0.12
    assert 0.95 < np.mean(covered) < 0.99


def test_additive_rates_of_many_rows_follow_interactions() -> None:
    random, rows = np.random.default_rng(8), np.full(len(CELLS), 2000.0)
    truth = crossed_rates(random, 0.6)
    hits = random.binomial(2000, truth).astype(float)
    model = Additive(hits, rows, list(CELLS.T))
    assert model.estimate == pytest.approx(hits / rows, abs=0.01)
    assert np.abs(model.additive - hits / rows).max() > 0.1


def test_interaction_share_separates_main_effects_from_interactions() -> None:
    random, rows = np.random.default_rng(9), np.full(len(CELLS), 5000.0)
    shares = list[float]()
    for interaction, main in ((0.02, 0.5), (0.6, 0.02)):
        truth = crossed_rates(random, interaction, main)
        hits = random.binomial(5000, truth).astype(float)
        between_share, interaction_share = Additive(hits, rows, list(CELLS.T)).variance_shares
        between = np.var(np.log(truth / (1 - truth)))
        assert between_share == pytest.approx(between / (between + np.pi**2 / 3), rel=0.35)
        shares.append(interaction_share)
    assert shares[0] < 0.05
    assert shares[1] > 0.8


def test_additive_shrunken_rates_of_data() -> None:
    loans, crossed = lending(600), tf.demographic_parity("sex", "race")
    result = inference.shrunken_rates(crossed, loans, pooling="additive", **DECIDED)
    counts = loans.group_by("sex", "race", maintain_order=True).agg(
        (pl.col("approved") == "yes").sum().alias("hits"), pl.len().alias("rows")
    )
    counts = counts.with_columns(pl.format("{}:{}", "sex", "race").alias(".group"))
    joined = result.join(counts, on=".group", maintain_order="left")
    levels = [joined[name].cast(pl.String).rank("dense").to_numpy() for name in ("sex", "race")]
    model = Additive(joined["hits"].to_numpy().astype(float), joined["rows"].to_numpy().astype(float), levels)
    assert len(joined) == len(counts) == len(result)
    assert result[".estimate"].to_list() == pytest.approx(list(model.estimate))
    assert result[".additive"].to_list() == pytest.approx(list(model.additive))
    assert result[".raw"].to_list() == pytest.approx((joined["hits"] / joined["rows"]).to_list())
    assert result[".interaction_share"].unique().item() == pytest.approx(model.variance_shares[1])
    shuffled = inference.shrunken_rates(
        crossed, loans.sample(fraction=1, shuffle=True, seed=1), pooling="additive", **DECIDED
    )
    assert shuffled.sort(".group")[".estimate"].to_list() == pytest.approx(result.sort(".group")[".estimate"].to_list())
    outer = inference.shrunken_rates(crossed, loans, pooling="additive", group_by="fold", **DECIDED)
    assert outer.columns == ["fold", *result.columns]
    one = inference.shrunken_rates(crossed, loans.filter(pl.col("fold") == 1), pooling="additive", **DECIDED)
    first = outer.filter(pl.col("fold") == 1).sort(".group")
    assert first[".estimate"].to_list() == pytest.approx(one.sort(".group")[".estimate"].to_list())


def test_missing_values_are_a_level_of_their_own() -> None:
    data = pl.DataFrame({"a": ["x", "x", None, None] * 10, "b": ["u", "v"] * 20, "p": [1, 0, 1, 1] * 10})
    result = inference.shrunken_rates(
        tf.demographic_parity("a", "b", unknown="group"), data, estimate="p", pooling="additive"
    )
    assert len(result) == 4
    assert result[".estimate"].is_between(0, 1, closed="none").all()


ADDITIVE: dict[str, Any] = {
    "rates": lambda metric: inference.shrunken_rates(metric, lending(50), pooling="additive", **DECIDED),
    "worst": lambda metric: inference.worst_groups(metric, pooling="additive"),
    "probability": lambda metric: inference.probability(metric, below=0.1, pooling="additive"),
}


@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_pooling_needs_crossed_groups(name: str) -> None:
    make = ADDITIVE[name]
    with pytest.raises(tf.errors.ArgumentError, match="needs several features"):
        make(tf.demographic_parity("race"))
    with pytest.raises(tf.errors.ArgumentError, match="needs several features"):
        make(tf.demographic_parity(tf.privileged(sex="male", race="White")))


def test_unknown_pooling_raises() -> None:
    wrong: Any = "bayes"
    with pytest.raises(tf.errors.ArgumentError, match=r"`pooling=` must be .*, not 'bayes'"):
        inference.worst_groups(PARITY, pooling=wrong)
    with pytest.raises(tf.errors.ArgumentError, match=r"`pooling=` must be .*, not 'bayes'"):
        inference.shrunken_rates(PARITY, people_of([1], [2]), estimate="p", pooling=wrong)


# What is fed


@pytest.mark.parametrize("model", ["beta_binomial", "additive"])
def test_worst_groups_of_pooled_rates_equal_their_draws(model: Any) -> None:
    loans, crossed = lending(400), tf.demographic_parity("sex", "race")
    result = inference.worst_groups(crossed, pooling=model)(loans, **DECIDED, times=4000)
    shrunken = inference.shrunken_rates(crossed, loans, pooling=model, **DECIDED)
    assert result[".estimate"].to_list() == pytest.approx(shrunken[".estimate"].to_list())
    assert result[".p_worst"].sum() == pytest.approx(1)
    # all at once is wider than one by one
    wider = (result[".upper"] - result[".lower"]) - (shrunken[".upper"] - shrunken[".lower"])
    assert (wider > 0).all()
    # chance makes a rare group look the worst; what groups have in common speaks against it
    alone = inference.worst_groups(crossed, pooling=None)(loans, **DECIDED, times=4000)
    rarest = alone.sort(".n").row(0, named=True)
    pooled = result.filter(pl.col(".group") == rarest[".group"])
    assert pooled[".upper"].item() - pooled[".lower"].item() < rarest[".upper"] - rarest[".lower"]


@pytest.mark.simulation
def test_worst_groups_are_as_sure_as_they_are_right() -> None:
    # by themselves, groups of a few rows look the worst with a certainty that they do not have
    runs, sizes = 80, np.array([6, 8, 10, 12, 15, 15, 20, 30, 60, 400])
    rates = np.array([0.6] * 9 + [0.55])
    hits = np.random.default_rng(3).binomial(sizes, rates, (runs, len(sizes)))
    people = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), 20), "g": np.tile(np.repeat(np.arange(10), 2), runs),
            "t": 1, "e": np.tile([1, 0], 10 * runs), "n": np.stack([hits, sizes - hits], axis=-1).ravel(),
        }
    )  # fmt: skip
    recall = tf.recall.difference("g")
    call: dict[str, Any] = {"frequency_weights": "n", "group_by": "run", "labels": [0, 1], "pos_label": 1}

    def named(**options: Any) -> tuple[float, float]:
        """How sure the group is that is named, and how often it is the worst."""
        result = inference.worst_groups(recall, **options)(people, "t", "e", **call, times=1000)
        first = result.sort(".p_worst", descending=True).unique("run", keep="first", maintain_order=True)
        return first[".p_worst"].mean(), (first[".group"] == "9").mean()

    sure, right = named()
    sure_alone, right_alone = named(pooling=None)
    assert sure_alone > 0.4
    assert right_alone < 0.1
    assert sure == pytest.approx(right, abs=0.1)
    assert right > right_alone


def test_simultaneous_limits_hold_for_all_rates_at_once() -> None:
    random = np.random.default_rng(3)
    model = BetaBinomial(np.array([3.0, 8, 5, 20]), np.array([10.0, 10, 20, 40]))
    lower, upper = model.simultaneous_limits(0.9, model.draws(20_000, random))
    drawn = model.draws(20_000, random)
    inside = ((lower <= drawn) & (drawn <= upper)).all(axis=1).mean()
    assert inside == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("aggregate", [tf.difference(), tf.difference(to="overall")])
def test_probability_of_pooled_rates_equals_their_draws(aggregate: Any) -> None:
    random, rows = np.random.default_rng(2), np.array([6, 5, 8, 40, 100])
    hits = np.array([5, 1, 3, 22, 48])
    metric = tf.demographic_parity("g", aggregate=aggregate)
    limit = 0.2
    result = inference.probability(metric, below=limit, pooling="beta_binomial")(
        people_of(hits, rows), estimate="p", times=20_000
    )
    drawn = BetaBinomial(hits.astype(float), rows.astype(float)).draws(20_000, random)
    away = np.ptp(drawn, axis=1)
    if aggregate != tf.difference():
        away = np.abs(drawn - (drawn @ rows / rows.sum())[:, None]).max(axis=1)
    assert result[".probability"].item() == pytest.approx(float((away < limit).mean()), abs=0.015)
    alone = inference.probability(metric, below=limit)(people_of(hits, rows), estimate="p", times=4000)
    assert alone.columns == result.columns
    assert alone[".probability"].item() < result[".probability"].item()


def test_pooled_probability_by_outer_group_and_of_several_rates() -> None:
    test = inference.probability(tf.equalized_odds("sex", "race"), below=0.3, pooling="additive")
    result = test(lending(800), "repaid", "approved", pos_label="yes", group_by="fold", times=300)
    assert result["fold"].n_unique() == len(result)
    assert result[".probability"].is_between(0, 1).all()
    with pytest.raises(tf.errors.ArgumentError):
        inference.probability(tf.f_meas.difference("sex"), below=0.3, pooling="beta_binomial")(
            lending(200), "repaid", "approved", pos_label="yes"
        )
    with pytest.raises(tf.errors.ArgumentError, match="takes comparisons of groups"):
        inference.probability(tf.accuracy, above=0.3, pooling="beta_binomial")


def test_shrunken_rates_have_a_picture_with_the_rates_of_groups_alone() -> None:
    pytest.importorskip("altair")
    crossed = inference.shrunken_rates(
        tf.demographic_parity("sex", "race"), lending(400), pooling="additive", **DECIDED
    )
    drawn = tf.autoplot(crossed).to_dict()
    rows = [row for part in drawn["datasets"].values() for row in part if "raw" in row]
    # each is in the table of dots and in that of intervals
    assert {row["raw"] for row in rows} == set(crossed[".raw"])
    assert "the group alone" in str(drawn["title"])


@pytest.mark.parametrize("rows", [1e9, 1e12, 1e15, 9e18])
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.5, 0.4, 0.3), (0.0, 0.5), (0.5, 0.5, 0.5, 0.2)])
def test_rates_of_any_number_of_rows_are_pooled(rows: float, rates: tuple[float, ...]) -> None:
    size = np.full(len(rates), rows)
    hits = np.array(rates) * size
    levels = [np.arange(len(rates)), np.arange(len(rates)) % 2]
    for made in (BetaBinomial(hits, size), Additive(hits, size, levels)):
        lower, upper = made.limits(0.95, made.draws(200, np.random.default_rng(1)))
        assert made.estimate == pytest.approx(np.array(rates), abs=1e-6)
        assert (upper - lower < 1e-3).all()
