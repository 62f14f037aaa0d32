"""Resamples put together, summarised and compared."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars
from sklearn.model_selection import KFold

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

FAIR = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"))


def test_splits_are_the_test_rows_of_each_fold(loans: pl.DataFrame) -> None:
    folds = tf.resamples(KFold(3).split(loans), loans.drop("fold"))
    assert folds["fold"].to_list() == [0] * 4 + [1] * 4 + [2] * 4
    assert folds.drop("fold").equals(loans.drop("fold"))


def test_named_frames_are_put_together(loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    parts = [(f"month {fold}", engine(part)) for (fold,), part in loans.group_by("fold", maintain_order=True)]
    folds = tf.resamples(parts, name="month")
    found = FAIR(folds, "truth", "estimate", group_by="month")
    expected = FAIR(loans, "truth", "estimate", group_by="fold")
    assert found[".estimate"].equals(expected[".estimate"])
    assert found["month"].unique().sort().to_list() == ["month 1", "month 2"]


def test_a_summary_is_mean_number_and_standard_error(
    loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    result = FAIR(engine(loans), "truth", "estimate", group_by="fold")
    found = as_polars(tf.summarize(result))
    assert found.columns == [".metric", ".by", ".estimator", ".mean", ".n", ".std_error"]
    values = as_polars(result).filter(pl.col(".metric") == "accuracy")[".estimate"].to_list()
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert found.row(0) == ("accuracy", None, "binary", statistics.mean(values), 2, pytest.approx(error))


def test_what_has_no_value_is_not_counted() -> None:
    result = pl.DataFrame({"fold": [1, 2, 3], ".metric": ["sens"] * 3, ".estimate": [0.5, None, 0.7]})
    assert tf.summarize(result).row(0) == ("sens", pytest.approx(0.6), 2, pytest.approx(0.1))
    assert tf.summarize(result[:1]).row(0) == ("sens", 0.5, 1, None)


def test_other_outer_groups_are_kept_apart(loans: pl.DataFrame) -> None:
    result = tf.accuracy(loans, "truth", "estimate", group_by=["fold", "sex"])
    assert tf.summarize(result, over="fold")["sex"].to_list() == ["f", "m"]
    assert len(tf.summarize(result)) == 1


def test_models_are_compared_resample_by_resample(loans: pl.DataFrame) -> None:
    better = loans.with_columns(estimate="truth")
    one, other = (FAIR(each, "truth", "estimate", group_by="fold") for each in (loans, better))
    found = tf.compare_resamples(one, other)
    differences = [1 - value for value in one.filter(pl.col(".metric") == "accuracy")[".estimate"]]
    error = statistics.stdev(differences) / math.sqrt(2)
    assert found.row(0)[3:] == (pytest.approx(statistics.mean(differences)), 2, pytest.approx(error))
    assert tf.compare_resamples(one, other.sample(fraction=1, shuffle=True, seed=1)).equals(found)


def test_what_is_none_of_it_is_refused(loans: pl.DataFrame) -> None:
    result = FAIR(loans, "truth", "estimate", group_by="fold")
    with pytest.raises(tf.ArgumentError, match="not of the same metrics and resamples"):
        tf.compare_resamples(result, result.filter(fold=1))
    with pytest.raises(tf.ColumnError, match="is no result of metrics"):
        tf.summarize(loans)
    with pytest.raises(tf.ArgumentError, match="no outer groups"):
        tf.summarize(FAIR(loans, "truth", "estimate"))
    with pytest.raises(tf.ColumnError, match="'flod'"):
        tf.summarize(result, over="flod")
    with pytest.raises(tf.ColumnError, match="have a column 'fold'"):
        tf.resamples([(1, loans)])
    odd: Any = [loans]
    with pytest.raises(tf.ArgumentError, match="`parts` are pairs"):
        tf.resamples(odd)
    with pytest.raises(tf.ArgumentError, match="no resamples"):
        tf.resamples([])
