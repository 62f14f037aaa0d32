"""The catalogue lists every metric."""

from __future__ import annotations

import polars as pl
from public_names import public

import tidyfair as tf
from tidyfair.metrics import (
    classification,
    dependence,
    fairness,
    inequality,
    prediction_intervals,
    probability,
    regression,
    survival,
)
from tidyfair.metrics.titles import in_prose, title_of


def test_every_metric_is_in_the_catalogue() -> None:
    table = tf.catalogue()
    named = set(table["name"]) | set(table["aliases"].explode().drop_nulls())
    modules = (
        classification,
        probability,
        regression,
        survival,
        prediction_intervals,
        inequality,
        dependence,
        fairness,
    )
    makers = {"new_groupwise_metric", "new_between_group_metric"}
    of_tops = {"skew", "min_skew", "max_skew"}
    assert named == {name for module in modules for name in module.__all__} - makers | of_tops
    assert table["name"].is_unique().all()
    assert set(table["kind"]) == {"class", "prob", "numeric", "survival", "interval", "groupwise"}
    assert set(table["direction"]) <= {"maximize", "minimize", "zero", "one", "neither"}
    assert table.filter(pl.col("lower") >= pl.col("upper")).is_empty()


def test_what_describes_data_or_decisions_is_neither_good_nor_bad() -> None:
    neither = {
        "base_rate",
        "selection_rate",
        "average_odds",
        "average_predictive_value",
        "mean_prediction",
        "positives",
    }
    for name in neither:
        metric: tf.types.Metric = public(name)
        assert metric.better == "neither", name
        assert "neither" in repr(metric)
        assert metric.difference("g").better == "minimize"
    assert neither - {"selection_rate"} <= set(tf.catalogue().filter(direction="neither")["name"])
    assert tf.base_rate.group_minimum("g").better == "neither"
    assert (tf.sens.better, tf.miss_rate.better, tf.residual_bias.better) == ("maximize", "minimize", "zero")


def test_catalogue_has_the_names_of_other_libraries() -> None:
    assert tf.catalogue().filter(name="kap")["elsewhere"].item().to_list() == ["cohen_kappa", "cohen_kappa_score"]


def test_aliases_share_the_formula_and_keep_their_own_name(loans: pl.DataFrame) -> None:
    assert tf.true_positive_rate.definition == tf.sens.definition
    assert tf.true_positive_rate(loans, "truth", "estimate")[".metric"].to_list() == ["true_positive_rate"]


def test_get_metrics_returns_all_metrics_of_a_kind(loans: pl.DataFrame) -> None:
    every = tf.get_metrics("class")
    result = every(loans, "truth", "estimate")
    assert result[".metric"].to_list() == [metric.name for metric in every]
    assert result[".estimate"].null_count() == 0


def test_every_metric_has_a_title_for_people() -> None:
    names = [*tf.catalogue()["name"], *(alias for aliases in tf.catalogue()["aliases"] for alias in aliases)]
    titles = {name: title_of(name) for name in names}
    assert titles["sens"] == "Sensitivity (true positive rate)"
    for name, title in titles.items():
        assert "_" not in title
        assert title[0].isupper()
        assert in_prose(name).lower() == title.partition(" (")[0].lower()
    assert title_of("mae_difference") == "Difference in mean absolute error"
    assert title_of("own_rate") == "Own rate"
