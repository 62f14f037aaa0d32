"""Resamples are concatenated, summarized and compared."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import answer_kind, as_polars
from sklearn.model_selection import KFold

import tidyfair as tf
from tidyfair.inference import compare_resamples, resamples, summarize

if TYPE_CHECKING:
    from collections.abc import Callable

FAIR = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"))


def test_resamples_of_splits_hold_the_test_rows(loans: pl.DataFrame) -> None:
    folds = resamples(KFold(3).split(loans), loans.drop("fold"))
    assert folds["fold"].to_list() == [0] * 4 + [1] * 4 + [2] * 4
    assert folds.drop("fold").equals(loans.drop("fold"))


def test_resamples_of_named_frames(loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    parts = [(f"month {fold}", engine(part)) for (fold,), part in loans.group_by("fold", maintain_order=True)]
    folds = resamples(parts, name="month")
    result = as_polars(FAIR(folds, "truth", "estimate", group_by="month"))
    expected = FAIR(loans, "truth", "estimate", group_by="fold")
    assert result[".estimate"].equals(expected[".estimate"])
    assert type(folds) is answer_kind(parts[0][1])
    assert result["month"].unique().sort().to_list() == ["month 1", "month 2"]


def test_summarize_gives_mean_number_and_standard_error(
    loans: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    result = FAIR(engine(loans), "truth", "estimate", group_by="fold")
    actual = as_polars(summarize(result))
    assert actual.columns == [".metric", ".by", ".estimator", ".mean", ".n", ".std_error"]
    values = as_polars(result).filter(pl.col(".metric") == "accuracy")[".estimate"].to_list()
    error = statistics.stdev(values) / math.sqrt(len(values))
    assert actual.row(0) == ("accuracy", None, "binary", statistics.mean(values), 2, pytest.approx(error))


def test_corrected_standard_error_of_folds() -> None:
    values = [0.5, 0.7, 0.6, 0.9, 0.8]
    result = pl.DataFrame({"fold": range(5), ".metric": ["sens"] * 5, ".estimate": values})
    # of five folds, four parts train for each that tests
    error = statistics.stdev(values) * math.sqrt(1 / 5 + 1 / 4)
    assert summarize(result, corrected=True)[".std_error"].item() == pytest.approx(error)
    other = result.with_columns(pl.Series(".estimate", [0.4, 0.7, 0.5, 0.6, 0.9]))
    changes = [b - a for a, b in zip(values, other[".estimate"], strict=True)]
    actual = compare_resamples(result, other, corrected=True)[".std_error"].item()
    assert actual == pytest.approx(statistics.stdev(changes) * math.sqrt(1 / 5 + 1 / 4))


def test_summarize_skips_null_values() -> None:
    result = pl.DataFrame({"fold": [1, 2, 3], ".metric": ["sens"] * 3, ".estimate": [0.5, None, 0.7]})
    assert summarize(result).row(0) == ("sens", pytest.approx(0.6), 2, pytest.approx(0.1))
    assert summarize(result[:1]).row(0) == ("sens", 0.5, 1, None)


def test_summarize_keeps_other_outer_groups(loans: pl.DataFrame) -> None:
    result = tf.accuracy(loans, "truth", "estimate", group_by=["fold", "sex"])
    assert summarize(result, over="fold")["sex"].to_list() == ["f", "m"]
    assert len(summarize(result)) == 1


def test_compare_resamples_pairs_resamples(loans: pl.DataFrame) -> None:
    better = loans.with_columns(estimate="truth")
    one, other = (FAIR(item, "truth", "estimate", group_by="fold") for item in (loans, better))
    result = compare_resamples(one, other)
    differences = [1 - value for value in one.filter(pl.col(".metric") == "accuracy")[".estimate"]]
    error = statistics.stdev(differences) / math.sqrt(2)
    assert result.row(0)[3:] == (pytest.approx(statistics.mean(differences)), 2, pytest.approx(error))
    assert compare_resamples(one, other.sample(fraction=1, shuffle=True, seed=1)).equals(result)


def test_bad_results_raise(loans: pl.DataFrame) -> None:
    result = FAIR(loans, "truth", "estimate", group_by="fold")
    with pytest.raises(tf.errors.ArgumentError, match="have no metrics and resamples in common"):
        compare_resamples(result, result.filter(fold=1))
    with pytest.raises(tf.errors.ColumnError, match="is not a result of metrics"):
        summarize(loans)
    with pytest.raises(tf.errors.ArgumentError, match="no outer groups"):
        summarize(FAIR(loans, "truth", "estimate"))
    with pytest.raises(tf.errors.ColumnError, match="'flod'"):
        summarize(result, over="flod")
    with pytest.raises(tf.errors.ColumnError, match="have a column 'fold'"):
        resamples([(1, loans)])
    odd: Any = [loans]
    with pytest.raises(tf.errors.ArgumentError, match="`parts` must be pairs"):
        resamples(odd)
    with pytest.raises(tf.errors.ArgumentError, match="`parts` is empty"):
        resamples([])


def test_summarize_of_group_values(loans: pl.DataFrame) -> None:
    groups = tf.equal_opportunity("sex").by_group(loans, "truth", "estimate", group_by="fold")
    result = summarize(groups)
    assert result.select(".group", ".n").rows() == [("f", 2), ("m", 2)]
    expected = groups.filter(pl.col(".group") == "f")[".estimate"].mean()
    assert result[".mean"][0] == pytest.approx(expected)
    explained = FAIR(loans, "truth", "estimate", group_by="fold", explain=True)
    assert summarize(explained).equals(summarize(FAIR(loans, "truth", "estimate", group_by="fold")))


def test_outer_group_name_may_begin_with_a_dot() -> None:
    result = pl.DataFrame({".month": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
    assert summarize(result).rows() == [("rmse", 2.0, 2, 1.0)]


def test_summarize_with_infinite_and_nan_values() -> None:
    result = pl.DataFrame({"fold": [1, 2, 3], ".metric": ["r"] * 3, ".estimate": [1.0, math.inf, 2.0]})
    assert summarize(result).row(0) == ("r", math.inf, 3, None)
    assert compare_resamples(result, result).row(0) == ("r", 0.0, 2, 0.0)
    broken = result.with_columns(pl.Series(".estimate", [1.0, math.nan, 3.0]))
    assert summarize(broken).row(0) == ("r", 2.0, 2, 1.0)
    assert summarize(broken.to_pandas()).iloc[0].tolist() == ["r", 2.0, 2, 1.0]


def test_resamples_take_indices_or_masks(loans: pl.DataFrame) -> None:
    rows, data = [False] * 9 + [True] * 3, loans.drop("fold")
    assert resamples([(None, rows)], data).drop("fold").equals(data[9:])
    assert resamples([(None, []), (None, range(3))], data)["fold"].to_list() == [1] * 3


GOOD = pl.DataFrame({"y": [1, 0], "g": ["a", "b"]})
RESULT = pl.DataFrame({"fold": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
GIVEN: Any = GOOD
ODD: dict[str, tuple[Callable[[], object], str]] = {
    "a place too many": (lambda: resamples([(None, [0, 2])], GOOD), "numbers from 0 to 1"),
    "a place before the first": (lambda: resamples([(None, [-1])], GOOD), "numbers from 0 to 1"),
    "half a place": (lambda: resamples([(None, [0.5])], GOOD), "numbers from 0 to 1"),
    "texts as places": (lambda: resamples([(None, ["a", "b"])], GOOD), "numbers from 0 to 1"),
    "a name twice": (lambda: resamples([(1, GOOD), (1, GOOD)]), "need distinct names"),
    "names of two kinds": (lambda: resamples([(1, GOOD), ("1", GOOD)]), "need distinct names"),
    "a name that is none": (lambda: resamples([((1, 2), GOOD)]), "need distinct names"),
    "another column": (
        lambda: resamples([(1, GOOD), (2, GOOD.rename({"g": "h"}))]), "have different columns: 'g', 'h'",
    ),
    "another kind": (
        lambda: resamples([(1, GOOD), (2, GOOD.with_columns(y=pl.lit("1")))]), "The column 'y' is Int64",
    ),
    "another kind after nothing": (
        lambda: resamples([(1, GOOD.with_columns(y=None)), (2, GOOD), (3, GOOD.with_columns(y=pl.lit("1")))]),
        "The column 'y' is Int64 in the resample 2 and String in 3",
    ),
    "floats that cannot tell whole numbers apart": (
        lambda: resamples([(1, GOOD.with_columns(y=2**53 + 1)), (2, GOOD.with_columns(y=2.0**53))]),
        "The column 'y' is Int64 and Float64 in different parts",
    ),
    "folds that floats cannot tell apart": (
        lambda: compare_resamples(
            RESULT.with_columns(pl.col("fold") + 2**53), RESULT.with_columns(pl.col("fold") + 2.0**53)
        ),
        "The column 'fold' is Int64 and Float64 in different parts",
    ),
    "a grouped frame": (lambda: resamples([(None, [0])], GOOD.group_by("g")), "does not accept grouped frames"),
    "no pairs": (lambda: resamples(GIVEN["y"]), "`parts` must be pairs"),
    "results put together": (lambda: summarize(pl.concat([RESULT, RESULT])), (
        "several values of the same metric and resample"
    )),
    "texts as values": (lambda: summarize(RESULT.cast({".estimate": pl.String})), "`.estimate` is String"),
    "an expression": (lambda: summarize(RESULT, over=GIVEN["y"]), "is not an outer group"),
    "other kinds of folds": (
        lambda: compare_resamples(RESULT, RESULT.cast({"fold": pl.String})), "have no metrics and resamples in common",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_bad_splits_raise(name: str) -> None:
    call, message = ODD[name]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


def test_compare_resamples_matches_folds_of_other_number_types() -> None:
    result = compare_resamples(RESULT, RESULT.cast({"fold": pl.Float64}).reverse())
    assert result.rows() == [("rmse", 0.0, 2, 0.0)]


def test_resamples_take_columns_in_any_order() -> None:
    assert resamples([(1, GOOD), (2, GOOD.select("g", "y"))])["y"].to_list() == [1, 0, 1, 0]
