"""The posterior probability that a disparity is small equals draws of beta distributions."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from lending_rates import CALL, LOANS, counts, ends
from scipy.stats import beta

import tidyfair as tf
from tidyfair import inference


@pytest.mark.parametrize("limit", [0.01, 0.03, 0.06])
def test_probability_equals_beta_draws(limit: float) -> None:
    times, random = 20_000, np.random.default_rng(2)
    result = inference.probability(tf.equal_opportunity("sex"), below=limit)(LOANS, **CALL, times=times).row(
        0, named=True
    )
    assert result[".limit"] == limit
    assert result[".estimate"] == pytest.approx(tf.equal_opportunity("sex")(LOANS, **CALL)[".estimate"].item())
    sides = [random.beta(hits + 0.5, rows - hits + 0.5, times) for hits, rows in counts(tf.sens, "sex").values()]
    expected = float((np.abs(sides[0] - sides[1]) < limit).mean())
    assert result[".probability"] == pytest.approx(expected, abs=5 * math.sqrt(0.5 / times))


def test_probability_uses_independent_priors_per_group() -> None:
    # distances to the whole are drawn within groups too, never over all cells together
    whole = tf.demographic_parity("sex", aggregate=tf.difference(to="overall"))
    actual = inference.probability(whole, below=0.02)
    result = actual(LOANS, estimate="approved", pos_label="yes", times=20_000).row(0, named=True)
    rates, random = counts(tf.selection_rate, "sex"), np.random.default_rng(3)
    drawn = np.array([random.beta(hits + 0.5, rows - hits + 0.5, 20_000) for hits, rows in rates.values()])
    sizes = np.array([rows for _, rows in rates.values()])
    away = np.abs(drawn - (sizes @ drawn) / sizes.sum()).max(axis=0)
    assert result[".probability"] == pytest.approx(float((away < 0.02).mean()), abs=0.02)


def test_probability_by_outer_group_and_of_ratios() -> None:
    actual = inference.probability(tf.demographic_parity_ratio("sex"), above=0.8)
    result = actual(LOANS, estimate="approved", pos_label="yes", group_by="fold", times=500)
    assert result.columns == ["fold", ".metric", ".by", ".estimator", ".estimate", ".limit", ".probability"]
    assert result["fold"].to_list() == sorted(LOANS["fold"].unique())
    assert result[".probability"].is_between(0, 1).all()
    with pytest.raises(tf.errors.ArgumentError, match="should be large, so give its limit as `above=`"):
        inference.probability(tf.demographic_parity_ratio("sex"), below=0.8)
    with pytest.raises(tf.errors.ArgumentError, match="needs one limit"):
        inference.probability(tf.demographic_parity("sex"))
    odd: list[dict[str, Any]] = [{"interval": "auto"}, {"case_weights": "weight"}, {"cluster": "fold"}, {"times": 3}]
    for options in odd:
        with pytest.raises(tf.errors.ArgumentError):
            actual(LOANS, estimate="approved", pos_label="yes", **options)


def test_bayes_prior_covers_empty_cells() -> None:
    # 10 rows without the event in each group, none of them selected: Beta(1/2, 10 + 1/2)
    nobody = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "y": ([1] * 10 + [0] * 10) * 2, "p": ([1] * 5 + [0] * 15) * 2})
    times, random = 40_000, np.random.default_rng(1)
    away = np.abs(np.diff(random.beta(0.5, 10.5, (2, times)), axis=0))
    result = inference.probability(tf.predictive_equality("g"), below=0.01)(nobody, "y", "p", times=times)
    assert result[".probability"].item() == pytest.approx(float((away < 0.01).mean()), abs=0.015)
    of_all = tf.fall_out(nobody, "y", "p", interval="bayes", times=times)
    assert ends(of_all) == pytest.approx(beta.ppf([0.025, 0.975], 0.5, 20.5), abs=0.003)
    none = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 20, "p": [0] * 40})
    away = np.abs(np.diff(random.beta(0.5, 20.5, (2, times)), axis=0))
    result = inference.probability(tf.demographic_parity("g"), below=0.02)(none, estimate="p", times=times)
    assert result[".probability"].item() == pytest.approx(float((away < 0.02).mean()), abs=0.015)
    with pytest.raises(tf.errors.ArgumentError, match="depends on the size of groups, for which no prior is defined"):
        inference.probability(tf.counts.class_imbalance("g"), below=0.1)(none)
    with pytest.raises(tf.errors.ArgumentError, match="needs metrics of predicted labels"):
        inference.probability(tf.auc_parity("g"), below=0.1)(none, "p", probs="p")


@pytest.mark.parametrize("pooling", [None, "beta_binomial"])
def test_probability_of_a_single_group_is_null_with_a_warning(pooling: Any) -> None:
    people = pl.DataFrame({"g": ["a"] * 8 + ["b"] * 8, "e": [0, 1] * 8, "month": [1] * 8 + [2] * 5 + [1] * 3})
    for metric, limit in (
        (tf.demographic_parity("g"), {"below": 0.1}),
        (tf.demographic_parity_ratio("g"), {"above": 0.8}),
    ):
        given: dict[str, Any] = limit
        made = tf.inference.probability(metric, **given, pooling=pooling)
        with pytest.warns(tf.errors.UndefinedWarning, match=r"by g has no probability \(too few groups\)"):
            result = made(people, estimate="e", group_by="month", times=200)
        assert result[".probability"].is_null().to_list() == [False, True]


def test_probability_of_a_smallest_value_needs_one_group() -> None:
    people = pl.DataFrame({"g": ["a"] * 8, "e": [0, 1] * 4})
    made = tf.inference.probability(tf.selection_rate.group_minimum("g"), above=0.2)
    assert made(people, estimate="e", times=200)[".probability"].item() > 0.9


def test_ratios_of_rates_that_are_nearly_zero_do_not_overflow() -> None:
    people = pl.DataFrame({"g": ["a"] * 8 + ["b"] * 400, "e": [0] * 408})
    made = tf.inference.probability(tf.demographic_parity_ratio("g"), above=0.8, pooling="beta_binomial")
    assert made(people, estimate="e", labels=[0, 1], pos_label=1, times=2000)[".probability"].item() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny = np.array([1e-310, 0.5])
        ratio: Any = tf.ratio()
        assert ratio.unsigned(ratio.contrast(tiny, tiny[::-1])).tolist() == [2e-310, 0]
