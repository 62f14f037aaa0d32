"""Certificates of subgroups hold as often as they say, and equal limits that are worked out another way."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import certify_subgroups, subgroup_search

RUNS = 200
MOST_WRONG = 0.05 + 2 * math.sqrt(0.05 * 0.95 / RUNS)
"""5 % and two standard errors of so many runs."""


def worst_of(rates: np.ndarray, shares: np.ndarray, runs: pl.DataFrame, min_n: int) -> float:
    """How much worse the worst conjunction with enough rows truly is; features are the axes of the rates."""
    worst = -math.inf
    cells = list(itertools.product(*map(range, rates.shape)))
    for chosen in itertools.product(*([None, *range(size)] for size in rates.shape)):
        if all(value is None for value in chosen):
            continue
        inside = np.array([all(want in (None, has) for want, has in zip(chosen, cell, strict=True)) for cell in cells])
        inside = inside.reshape(rates.shape)
        conditions = [pl.col(f"f{axis}") == value for axis, value in enumerate(chosen) if value is not None]
        if len(runs.filter(conditions)) >= min_n:
            one, rest = (np.average(rates[part], weights=shares[part]) for part in (inside, ~inside))
            worst = max(worst, float(one - rest))
    return worst


@pytest.mark.simulation
def test_certified_epsilon_is_wrong_in_five_percent_of_samples_at_most() -> None:
    random = np.random.default_rng(4)
    shape, rows, min_n = (2, 3), 240, 20
    samples, worst = list[pl.DataFrame](), list[float]()
    certificate = certify_subgroups(tf.error_rate, ["f0", "f1"], min_n=min_n)
    for run in range(RUNS):
        rates = random.uniform(0.02, 0.5, shape)
        shares = random.dirichlet(np.full(rates.size, 3)).reshape(shape)
        cell = random.choice(rates.size, rows, p=shares.ravel())
        f0, f1 = np.unravel_index(cell, shape)
        data = pl.DataFrame({
            "f0": f0, "f1": f1, "y": np.zeros(rows, dtype=int), "p": random.binomial(1, rates.ravel()[cell]),
        })  # fmt: skip
        samples.append(data.with_columns(run=run))
        worst.append(worst_of(rates, shares, data, min_n))
    epsilon = certificate(pl.concat(samples), "y", "p", labels=[0, 1], group_by="run").sort("run")[".epsilon"]
    assert (len(epsilon), epsilon.null_count()) == (RUNS, 0)
    assert (epsilon < pl.Series(worst)).to_numpy().mean() <= MOST_WRONG


@pytest.mark.simulation
def test_limits_of_two_small_groups_are_wrong_in_five_percent_of_all_tables_at_most() -> None:
    sizes = (6, 4)
    tables = list(itertools.product(*(range(size + 1) for size in sizes)))
    parts = []
    for table, hits in enumerate(tables):
        for group, (count, size) in enumerate(zip(hits, sizes, strict=True)):
            parts.append(pl.DataFrame({"table": table, "g": group, "y": 0, "p": [1] * count + [0] * (size - count)}))
    certificate = certify_subgroups(tf.fall_out, ["g"], min_n=1)
    limits = certificate.by_subgroup(pl.concat(parts), "y", "p", group_by="table", labels=[0, 1])
    uppers = {
        group: limits.filter(pl.col(".subgroup") == f"g={group}").sort("table")[".upper"].to_numpy() for group in (0, 1)
    }
    rates = np.linspace(0, 1, 41)
    chances = [stats.binom.pmf(np.array(tables)[:, [group]], size, rates) for group, size in enumerate(sizes)]
    worst = 0.0
    for (first, one), (second, other) in itertools.product(enumerate(rates), repeat=2):
        chance = chances[0][:, first] * chances[1][:, second]
        is_wrong = (uppers[0] < one - other - 1e-12) | (uppers[1] < other - one - 1e-12)
        worst = max(worst, float(chance[is_wrong].sum()))
    assert 0.005 < worst <= 0.05


def test_limits_are_sharper_than_those_of_both_groups_at_half_the_error() -> None:
    people = lending()
    features = ["sex", "race", "age_band"]
    limits = certify_subgroups(tf.error_rate, features, min_n=50).by_subgroup(
        people, "repaid", "approved", pos_label="yes"
    )
    searched = limits.filter(pl.col(".status") == "ok")
    error = 0.05 / len(searched)
    size, rest = searched[".denominator"].to_numpy(), len(people) - searched[".denominator"].to_numpy()
    hits = (searched[".estimate"].to_numpy() * size).round()
    other = (searched[".compared_with"].to_numpy() * rest).round()
    at_half = stats.beta.isf(error / 2, hits + 1, size - hits) - stats.beta.ppf(error / 2, other, rest - other + 1)
    # no limit of the difference is below the exact limit of the share, less the share of the rest
    at_least = stats.beta.isf(error, hits + 1, size - hits) - other / rest
    upper = searched[".upper"].to_numpy()
    assert (upper > at_least).all()
    assert np.median(upper / at_half) < 1


def test_certificate_equals_its_largest_limit_and_counts_what_is_searched() -> None:
    people = lending()
    certificate = certify_subgroups(tf.sens, ["sex", "race"], min_n=40)
    given = certificate(people, "repaid", "approved", pos_label="yes", group_by="fold", conf_level=0.9)
    limits = certificate.by_subgroup(people, "repaid", "approved", pos_label="yes", group_by="fold", conf_level=0.9)
    found = subgroup_search(tf.sens, ["sex", "race"], min_n=40)(
        people, "repaid", "approved", pos_label="yes", group_by="fold", times=20
    )
    assert given.schema.names()[0] == "fold"
    for fold, row in zip(given["fold"], given.to_dicts(), strict=True):
        of_fold = limits.filter(fold=fold)
        assert row[".epsilon"] == of_fold[".upper"].max() == of_fold[".upper"][0]
        assert row[".subgroup"] == of_fold[".subgroup"][0]
        assert row[".searched"] == (of_fold[".status"] == "ok").sum()
        assert row[".not_searched"] == (of_fold[".status"] != "ok").sum()
        rates = dict(found.filter(fold=fold).select(".subgroup", ".difference").rows())
        # less sensitivity is worse
        assert row[".difference"] == pytest.approx(-rates[row[".subgroup"]], abs=1e-12)
    assert given[".conf_level"].unique().to_list() == [0.9]


def test_nothing_is_certified_of_subgroups_that_are_too_small() -> None:
    certificate = certify_subgroups(tf.error_rate, ["sex"], min_n=10_000)
    row = certificate(lending(), "repaid", "approved", pos_label="yes").row(0, named=True)
    assert (row[".epsilon"], row[".searched"], row[".not_searched"]) == (None, 0, 2)
    assert row[".status"] == "below_min_n"


def test_status_says_why_nothing_is_certified() -> None:
    data = pl.DataFrame({"g": [0, 1] * 40, "one": [0] * 80, "y": [1, 0, 0, 1] * 20, "p": [1, 1, 0, 0] * 20, "s": 0.5})
    unseen = data.with_columns(p=pl.lit(None, pl.Int64), s=pl.lit(None, pl.Float64))
    of_scores = certify_subgroups(tf.calibration.in_the_large, ["g"])
    of_labels = certify_subgroups(tf.error_rate, ["g"])
    certificates = [
        (of_scores(unseen, "y", probs="s", pos_label=1), "zero_denominator", 2),
        (of_labels(unseen, "y", "p", pos_label=1), "zero_denominator", 2),
        (of_scores(data[:40], "y", probs="s", pos_label=1), "below_min_n", 2),
        # the reason of one that may be mended by more rows
        (of_labels(data.with_columns(p=pl.when(g=0, s=0.5).then("p"))[:40], "y", "p", pos_label=1), "below_min_n", 2),
        (certify_subgroups(tf.error_rate, ["one"])(data, "y", "p", pos_label=1), "no_other_group", 0),
        (of_labels(data.clear(), "y", "p", pos_label=1), "no_groups", 0),
    ]
    for certificate, status, not_searched in certificates:
        row = certificate.row(0, named=True)
        assert (row[".epsilon"], row[".searched"], row[".status"]) == (None, 0, status)
        assert row[".not_searched"] == not_searched


def test_subgroups_without_a_prediction_count_as_not_searched() -> None:
    data = pl.DataFrame({"g": [0, 1, 2] * 40, "y": [1, 0, 0, 1] * 30, "p": [1, 1, 0, 0] * 30})
    data = data.with_columns(p=pl.when(pl.col("g") < 2).then("p"))
    row = certify_subgroups(tf.error_rate, ["g"])(data, "y", "p", pos_label=1).row(0, named=True)
    assert (row[".searched"], row[".not_searched"]) == (2, 1)


@pytest.mark.simulation
def test_certified_miscalibration_is_wrong_in_five_percent_of_samples_at_most() -> None:
    random = np.random.default_rng(11)
    rows, min_n = 150, 25
    samples, away = list[pl.DataFrame](), list[Any]()
    certificate = certify_subgroups(tf.calibration.in_the_large, ["f0", "f1"], min_n=min_n)
    for run in range(RUNS):
        f0, f1 = random.integers(0, 2, rows), random.integers(0, 3, rows)
        true = random.uniform(0, 1, rows)
        score = np.clip(true + random.normal(0, 0.1, 6)[f0 * 3 + f1], 0, 1)
        data = pl.DataFrame({"f0": f0, "f1": f1, "score": score, "true": true, "y": random.binomial(1, true)})
        samples.append(data.with_columns(run=run))
        worst = 0.0
        for names in (["f0"], ["f1"], ["f0", "f1"]):
            groups = data.group_by(names).agg(pl.len(), away=(pl.col("true") - pl.col("score")).mean().abs())
            worst = max(worst, groups.filter(pl.col("len") >= min_n)["away"].max() or 0.0)
        away.append(worst)
    epsilon = certificate(pl.concat(samples), "y", probs="score", pos_label=1, group_by="run").sort("run")[".epsilon"]
    assert (len(epsilon), epsilon.null_count()) == (RUNS, 0)
    assert (epsilon < pl.Series(away)).to_numpy().mean() <= MOST_WRONG


def test_limits_of_miscalibration_are_exact_binomial_limits_less_the_mean_score() -> None:
    people = lending()
    limits = certify_subgroups(tf.calibration.in_the_large, ["race"], depth=1).by_subgroup(
        people, "repaid", probs="score", pos_label="yes"
    )
    searched = limits.filter(pl.col(".status") == "ok")
    error = 0.05 / len(searched) / 2
    for row in searched.to_dicts():
        rows = people.filter(pl.col("race") == row[".subgroup"].removeprefix("race=")).drop_nulls(["repaid", "score"])
        events, size, score = int((rows["repaid"] == "yes").sum()), len(rows), rows["score"].mean()
        assert (row[".denominator"], row[".compared_with"]) == (size, pytest.approx(score))
        ends = stats.binomtest(events, size).proportion_ci(1 - 2 * error, "exact")
        assert row[".upper"] == pytest.approx(max(ends.high - score, score - ends.low))


def test_certificates_refuse_what_is_no_rate() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="of scores, not f_meas"):
        certify_subgroups(tf.f_meas, ["sex"])
    with pytest.raises(tf.errors.ArgumentError, match="takes a list of features"):
        certify_subgroups(tf.calibration.in_the_large, "sex")  # pyright: ignore[reportArgumentType] - a slip
    with pytest.raises(tf.errors.ArgumentError, match="`conf_level`"):
        certify_subgroups(tf.error_rate, ["sex"])(lending(), "repaid", "approved", conf_level=95)
