"""Errors of areas under ROC curves by DeLong, against their definition and published ratings."""

from __future__ import annotations

import math

import polars as pl
import pytest
from lending_rates import LOANS, SCORED, Z, ends
from plain_limits import limits_of_area

import tidyfair as tf


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
