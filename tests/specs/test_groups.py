"""Naming features, in factories and in verbs."""

from __future__ import annotations

import polars as pl
import pytest

import tidyfair as tf


def test_features_are_named_alike_in_factories_and_verbs() -> None:
    assert tf.demographic_parity(("sex", "race")) == tf.demographic_parity("sex", "race")
    assert tf.accuracy.difference(("sex", "race")) == tf.accuracy.difference("sex", "race")
    with pytest.raises(tf.errors.ColumnError, match=r"a list is one feature after the other.* without brackets"):
        tf.demographic_parity(["sex", "race"])  # pyright: ignore[reportArgumentType] - user input


def test_fairness_metrics_compare_their_metrics_anew(loans: pl.DataFrame) -> None:
    ratio = tf.demographic_parity.ratio("sex")
    assert ratio.name == "demographic_parity_ratio"
    assert ratio(loans, estimate="estimate")[".estimate"].item() == (
        tf.demographic_parity_ratio("sex")(loans, estimate="estimate")[".estimate"].item()
    )
    overall = tf.equalized_odds.difference("sex", to="overall", min_n=3)
    assert overall == tf.equalized_odds("sex", aggregate=tf.difference(to="overall"), name=overall.name, min_n=3)
    with pytest.raises(tf.errors.ArgumentError, match=r"demographic_parity\.ratio\(\) needs the sensitive feature"):
        tf.demographic_parity.ratio()
    with pytest.raises(tf.errors.ArgumentError, match=r"takes no `aggregate`"):
        tf.demographic_parity.ratio("sex", aggregate=tf.ratio())  # pyright: ignore[reportCallIssue] - user input
