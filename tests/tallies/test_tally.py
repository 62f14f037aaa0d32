"""Tallies count rows and weights, and add up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from polars import DataFrame

FAIR = tf.metric_set(tf.accuracy, tf.kap, tf.equalized_odds("sex"), tf.demographic_parity("sex", "race"))


def test_cells_hold_counts_and_weights(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    tally = tf.demographic_parity("sex").tally(
        every_engine(loans), "truth", "estimate", group_by="fold", case_weights="weight"
    )
    assert tally.cells.columns == ["k0", "k1", "truth", "estimate", "n", "w", "w2"]
    assert tally.cells["n"].sum() == loans.height
    assert tally.cells["n"].dtype == pl.Int64
    cell = tally.cells.row(
        by_predicate=(pl.col("k0") == 1) & (pl.col("k1") == "f") & (pl.col("truth") == 1), named=True
    )
    assert (cell["n"], cell["w"], cell["w2"]) == (2, 1.5, 1.25)


def test_unneeded_columns_are_not_read(loans: DataFrame) -> None:
    def untouched(_: Any) -> Any:
        pytest.fail("an unneeded column was read")

    spoilt = loans.lazy().with_columns(score=pl.col("score").map_batches(untouched, return_dtype=pl.Float64))
    assert tf.accuracy(spoilt, "truth", "estimate")[".estimate"][0] == pytest.approx(8 / 12)


def test_tallies_of_parts_equal_the_whole(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    whole = FAIR.tally(loans, "truth", "estimate")
    # the second half has a group that the first has not, and the other way round
    halves = [
        FAIR.tally(engine(part), "truth", "estimate")
        for part in (loans.filter(race="a"), loans.filter(pl.col("race") != "a"))
    ]
    for merged in (halves[0] + halves[1], halves[1] + halves[0], sum(halves[1:], halves[0])):
        assert_frame_equal(merged.cells, whole.cells, check_row_order=False)
        assert_frame_equal(FAIR.compute(merged), FAIR.compute(whole))


def test_overflow_of_merged_weights_raises() -> None:
    data = pl.DataFrame({"t": [1], "e": [1], "w": [2**62 + 1]})
    half = tf.accuracy.tally(data, "t", "e", case_weights="w")
    with pytest.raises(tf.errors.WeightError, match="rescale them"):
        _ = half + half


def test_counts_beyond_32_bits_add_up(loans: DataFrame, engine: Callable[[DataFrame], Any]) -> None:
    tally = tf.accuracy.tally(engine(loans), "truth", "estimate")
    many = replace(tally, cells=tally.cells.with_columns(pl.col("n") * 2**31))
    total = many + many
    assert total.cells["n"].sum() == loans.height * 2**32
    assert_frame_equal(tf.accuracy.compute(total), tf.accuracy(loans, "truth", "estimate"))


def test_builtin_sum_adds_tallies(loans: DataFrame) -> None:
    halves = [tf.accuracy.tally(part, "truth", "estimate") for part in (loans[:5], loans[5:])]
    total: Any = sum(halves)
    assert_frame_equal(tf.accuracy.compute(total), tf.accuracy(loans, "truth", "estimate"))
    with pytest.raises(TypeError):
        total = total + 3


def test_shared_key_is_counted_once(loans: DataFrame) -> None:
    tally = FAIR.tally(loans, "truth", "estimate")
    assert [key.column.name for key in tally.keys] == ["sex", "race"]


ENUMS = {"sex": pl.Enum(["m", "f"]), "race": pl.Enum(["a", "b", "rare", "unused"])}


@pytest.mark.parametrize("labels", [pl.Boolean, pl.Enum(["0", "1"])], ids=["Boolean", "Enum"])
def test_enum_keys_give_the_same_counts(loans: DataFrame, labels: Any) -> None:
    # keys whose dtype lists its values are counted as one small integer
    holes = loans.with_columns(
        sex=pl.when(pl.col("fold") == 2).then("sex"), estimate=pl.when(pl.col("race") != "b").then("estimate")
    )
    plain = holes.with_columns(pl.col("truth", "estimate").cast(pl.String))
    packed = (holes if labels == pl.Boolean else plain).with_columns(
        pl.col("truth", "estimate").cast(labels), *(pl.col(name).cast(dtype) for name, dtype in ENUMS.items())
    )
    result = FAIR.tally(packed, "truth", "estimate", case_weights="weight").cells
    expected = FAIR.tally(plain, "truth", "estimate", case_weights="weight").cells
    in_words = {"0": "0", "1": "1", "false": "0", "true": "1"}
    as_text = pl.col("k0", "k1").cast(pl.String), pl.col("truth", "estimate").cast(pl.String).replace(in_words)
    assert result["k0"].dtype == ENUMS["sex"]
    assert_frame_equal(result.with_columns(as_text), expected.with_columns(as_text), check_row_order=False)


def test_integer_weights_are_exact(every_engine: Callable[[DataFrame], Any]) -> None:
    weights = [2**53 + 1, 1]
    data = pl.DataFrame({"t": [1, 1], "e": [1, 1], "w": weights})
    tally = tf.accuracy.tally(every_engine(data), "t", "e", case_weights="w")
    assert tally.cells["w"].to_list() == [sum(weights)]
    assert tally.cells["w"].dtype == pl.Int64


def test_weights_may_be_boolean(loans: DataFrame, every_engine: Callable[[DataFrame], Any]) -> None:
    masked = loans.with_columns(keep=pl.col("fold") == 1)
    kept = tf.accuracy(loans.filter(fold=1), "truth", "estimate")
    result = tf.accuracy(every_engine(masked), "truth", "estimate", case_weights="keep")
    assert_frame_equal(as_polars(result), kept)


def test_lazy_frame_equals_eager_frame(tmp_path: Any, loans: DataFrame) -> None:
    file = tmp_path / "loans.parquet"
    loans.write_parquet(file)
    lazy = pl.scan_parquet(file)
    with pytest.warns(tf.errors.UndefinedWarning):
        result = tf.equal_opportunity("race")(lazy, "truth", "estimate")
    assert (
        result.to_dicts() == tf.equal_opportunity("race")(loans, "truth", "estimate", on_undefined="ignore").to_dicts()
    )


# Frequency weights

OFTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (FAIR, {"estimate": "estimate"}),
    "scores": (tf.metric_set(tf.brier_class, tf.mean_score), {"probs": "score"}),
    "order of scores": (tf.metric_set(tf.roc_auc, tf.pr_auc, tf.auc_parity("sex")), {"probs": "score"}),
    "bins of scores": (tf.roc_auc, {"probs": "score", "score_bins": 50}),
    "numbers": (tf.metric_set(tf.rmse, tf.mae, tf.rsq), {"truth": "score", "estimate": "weight"}),
    "a threshold": (tf.accuracy, {"probs": "score", "threshold": 0.4}),
    "a rank": (tf.sens, {"probs": "score", "top_fraction": 0.5}),
    "weights": (FAIR, {"estimate": "estimate", "case_weights": "weight"}),
    "intervals": (FAIR, {"estimate": "estimate", "interval": "bootstrap", "times": 50}),
    "intervals of numbers": (tf.mae, {"truth": "score", "estimate": "weight", "interval": "auto", "times": 50}),
}


@pytest.mark.parametrize("name", OFTEN)
@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning", "ignore::tidyfair.errors.SelectionWarning")
def test_frequency_weights_equal_repeated_rows(loans: DataFrame, name: str) -> None:
    metric, call = OFTEN[name]
    often = [(index * 7) % 4 for index in range(loans.height)]
    weighted = loans.with_columns(often=pl.Series(often))
    repeated = loans[[index for index, times in enumerate(often) for _ in range(times)]]
    options: dict[str, Any] = {"truth": "truth", **call}
    result = metric(weighted, **options, frequency_weights="often", explain=True)
    assert_frame_equal(result, metric(repeated, **options, explain=True))
    groups = metric.by_group(weighted, **options, frequency_weights=pl.col("often").cast(pl.Float64).alias("o"))
    assert_frame_equal(groups, metric.by_group(repeated, **options), check_row_order=False)


def test_tallies_with_and_without_frequency_weights_add_up(loans: DataFrame) -> None:
    weighted = loans[:6].with_columns(often=pl.lit(2))
    both = FAIR.tally(weighted, "truth", "estimate", frequency_weights="often") + FAIR.tally(
        loans[6:], "truth", "estimate"
    )
    plain = FAIR.tally(pl.concat([loans[:6], loans]), "truth", "estimate")
    assert_frame_equal(both.cells, plain.cells, check_row_order=False)


def test_arrays_take_frequency_weights() -> None:
    weighted = tf.accuracy.arrays([1, 0, 1], [1, 1, 1], frequency_weights=[3, 1, 0])
    assert weighted[".estimate"].item() == 0.75


@pytest.mark.parametrize(
    "values", [[-1], [0.5], [None], ["2"], [True], [float("nan")], [float("inf")], [10**18, 10**18]]
)
def test_bad_frequency_weights_raise(loans: DataFrame, values: list[Any]) -> None:
    weighted = loans.with_columns(often=pl.Series((values * 12)[:12], strict=False))
    for metric, call in (OFTEN["labels"], OFTEN["order of scores"]):
        with pytest.raises(tf.errors.WeightError, match="`frequency_weights`: the values of 'often'"):
            metric(weighted, "truth", **call, frequency_weights="often")
    with pytest.raises(tf.errors.ColumnError, match="no column 'oftn'"):
        tf.accuracy(weighted, "truth", "estimate", frequency_weights="oftn")
