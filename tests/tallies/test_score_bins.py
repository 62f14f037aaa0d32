"""Ranking metrics from counts in bins: their error bounds, and that tallies add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import examples
from hypothesis import given, settings, strategies as st
from inline_snapshot import snapshot
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from pathlib import Path

METRICS = tf.metric_set(
    tf.roc_auc, tf.gain_capture, tf.roc_aunu, tf.roc_aunp, tf.average_precision, tf.pr_auc, tf.brier_class,
)  # fmt: skip
COLUMNS: dict[str, Any] = {"truth": "y", "probs": "p"}
ROUNDING = 1e-12


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    size = draw(st.integers(2, 40))
    score = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, None]))
    columns = {
        "y": st.sampled_from([0, 1]), "p": score, "g": st.sampled_from("abc"),
        "w": st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    }  # fmt: skip
    return pl.DataFrame(
        {name: draw(st.lists(item, min_size=size, max_size=size)) for name, item in columns.items()},
        schema={"y": pl.Int64, "p": pl.Float64, "g": pl.String, "w": pl.Float64},
    )


def distance(result: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    keys = ".group" if ".group" in result.columns else ".by"
    assert result.select(".metric", keys).equals(exact.select(".metric", keys))
    return result.with_columns(off=(result[".estimate"] - exact[".estimate"]).abs())


@settings(deadline=None, max_examples=examples(40), database=None)
@given(data=frames(), bins=st.sampled_from([2, 3, 10, 1000, 65536]), weighted=st.booleans())
def test_error_is_within_error_bound(data: pl.DataFrame, bins: int, *, weighted: bool) -> None:
    columns: dict[str, Any] = {**COLUMNS, "pos_label": 1, "case_weights": "w" if weighted and data["w"].sum() else None}
    fair = tf.metric_set(METRICS, tf.auc_parity("g"), tf.auc_parity("g", aggregate=tf.group_minimum(), name="least"))
    for call in (fair.by_group, lambda *given, **options: fair(*given, **options, on_undefined="ignore")):
        result = call(data, **columns, score_bins=bins)
        off = distance(result, call(data, **columns))
        assert off["off"].is_null().equals(result[".error_bound"].is_null())
        assert (off["off"] <= off[".error_bound"] + ROUNDING).all()


@settings(deadline=None, max_examples=examples(30), database=None)
@given(data=frames(), bins=st.sampled_from([2, 3, 10, 1000]), weighted=st.booleans())
def test_error_of_distances_is_within_error_bound(data: pl.DataFrame, bins: int, *, weighted: bool) -> None:
    columns: dict[str, Any] = {**COLUMNS, "pos_label": 1, "case_weights": "w" if weighted and data["w"].sum() else None}
    distances = tf.metric_set(
        tf.distributions.kolmogorov_smirnov("g"), tf.abroca("g"), tf.distributions.bpsn_auc("g"), tf.distributions.bnsp_auc("g"), tf.distributions.wasserstein_distance("g"),
        tf.distributions.kolmogorov_smirnov("g", min_n=8, name="of large groups"),
    )  # fmt: skip
    for call in (distances.by_group, lambda *given, **options: distances(*given, **options, on_undefined="ignore")):
        result = call(data, **columns, score_bins=bins)
        off = distance(result, call(data, **columns))
        assert off["off"].is_null().equals(result[".error_bound"].is_null())
        assert (off["off"] <= off[".error_bound"] + ROUNDING).all()


def test_distances_from_bins_are_those_of_binned_scores() -> None:
    data = lending(5_000)
    by_hand = data.with_columns(score=(pl.col("score") * 20).floor().clip(0, 19))
    distances = tf.metric_set(
        tf.distributions.kolmogorov_smirnov("race"),
        tf.abroca("race"),
        tf.distributions.bpsn_auc("sex"),
        tf.distributions.bnsp_auc("sex"),
    )
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    binned = distances.by_group(data, **call, score_bins=20)
    expected = distances.by_group(by_hand, **call)
    assert_frame_equal(binned.drop(".error_bound"), expected, abs_tol=ROUNDING)
    shifted = tf.distributions.wasserstein_distance("sex")
    middles = by_hand.with_columns((pl.col("score") + 0.5) / 20)
    from_bins = shifted(data, **call, score_bins=20).row(0, named=True)
    assert from_bins[".estimate"] == pytest.approx(shifted(middles, **call)[".estimate"].item())
    assert from_bins[".error_bound"] == pytest.approx(1 / 20)
    # the distribution functions meet at the ends of bins
    assert (binned.filter(pl.col(".metric") == "kolmogorov_smirnov")[".error_bound"] < 0.1).all()


def test_bound_of_the_distance_of_scores_is_attained() -> None:
    together = pl.DataFrame({"g": ["a", "a", "b", "b"], "p": [0.1, 0.2, 0.3, 0.4]})
    binned = tf.distributions.kolmogorov_smirnov("g")(together, probs="p", score_bins=2)
    assert binned.select(".estimate", ".error_bound").row(0) == (0.0, 1.0)
    assert tf.distributions.kolmogorov_smirnov("g")(together, probs="p")[".estimate"].item() == 1


def test_roc_auc_error_bound_is_attained() -> None:
    # two bins: the lower one has two with and three without the event, the upper one of each
    first = pl.DataFrame({"y": [1, 1, 0, 0, 0, 1, 0], "p": [0.41, 0.42, 0.1, 0.2, 0.3, 0.9, 0.8]})
    last = first.with_columns(p=pl.Series([0.1, 0.2, 0.41, 0.42, 0.43, 0.8, 0.9]))
    for data, sign in ((first, 1), (last, -1)):
        binned = tf.roc_auc(data, **COLUMNS, score_bins=2)
        exact = tf.roc_auc(data, **COLUMNS)
        # 2 * 3 + 1 * 1 of 3 * 4 pairs are in one bin
        assert binned[".error_bound"].item() == pytest.approx(7 / 12 / 2)
        assert exact[".estimate"].item() - binned[".estimate"].item() == pytest.approx(sign * 7 / 24)


def test_bins_have_equal_width_and_the_last_includes_1() -> None:
    data = pl.DataFrame({"y": [0, 1, 0, 1, 1, 0], "p": [0.0, 0.249, 0.25, 0.5, 1.0, 0.99]})
    by_hand = data.with_columns(p=(pl.col("p") * 4).floor().clip(0, 3))
    binned = METRICS.by_group(data, **COLUMNS, score_bins=4).head(6)
    assert_frame_equal(
        binned.select(".metric", ".estimate"),
        tf.metric_set(*METRICS.metrics[:6]).by_group(by_hand, **COLUMNS).select(".metric", ".estimate"),
    )


def test_brier_score_stays_exact_with_bins() -> None:
    data = lending(2_000)
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
    result = METRICS(data, **call, score_bins=4).filter(pl.col(".metric") == "brier_class")
    assert result[".estimate"].equals(tf.brier_class(data, **call)[".estimate"])
    assert result[".error_bound"].to_list() == [0.0]


@pytest.mark.parametrize("weights", [None, "weight", "whole"])
def test_table_and_group_by_counts_of_bins_agree(weights: str | None) -> None:
    data = lending(60_000).with_columns(whole=(pl.col("weight") * 10).cast(pl.Int64))
    plain = data.with_columns(pl.col("repaid", "race").cast(pl.String))
    fair = tf.metric_set(METRICS, tf.auc_parity("race"))
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "case_weights": weights, "score_bins": 512}
    tallies = [fair.tally(frame, **call) for frame in (data, plain)]
    for tally in tallies:
        assert tally.rows is not None
        assert len(tally.rows) <= 2 * 5 * 512
    result, other = (fair.compute(tally, pos_label="yes") for tally in tallies)
    assert_frame_equal(result, other, abs_tol=ROUNDING)
    merged: Any = sum(fair.tally(data[start : start + 25_000], **call) for start in (0, 25_000, 50_000))
    assert isinstance(merged, tf.types.Tally)
    assert merged.rows is not None
    assert tallies[0].rows is not None
    assert len(merged.rows) == len(tallies[0].rows)
    assert_frame_equal(fair.compute(merged, pos_label="yes"), result, abs_tol=ROUNDING)


def test_state_with_bins_is_saved_and_loaded(tmp_path: Path) -> None:
    data, path = lending(3_000), tmp_path / "state.parquet"
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "score_bins": 64}
    fair = tf.metric_set(METRICS, tf.auc_parity("sex"))
    tf.save_state(fair.tally(data, **call), path)
    other: dict[str, Any] = call | {"score_bins": 32}
    read = tf.load_state(path, like=fair.tally(data.head(0), **call))
    assert fair.compute(read, pos_label="yes").equals(fair(data, **call, pos_label="yes"))
    with pytest.raises(tf.errors.ArgumentError, match="was counted with different scores"):
        tf.load_state(path, like=fair.tally(data.head(0), **other))


def test_multiclass_error_is_within_error_bound() -> None:
    data = pl.DataFrame({"y": list("abcabcaabbcc") * 4}).with_columns(
        (((pl.int_range(pl.len()) * step) % 17 + 1) / 18).alias(name) for step, name in ((5, "a"), (7, "b"), (11, "c"))
    )
    total = pl.sum_horizontal("a", "b", "c")
    data = data.with_columns(pl.col("a", "b", "c") / total)
    few = tf.metric_set(*METRICS.metrics[:6])
    for bins in (4, 50):
        call: dict[str, Any] = {"truth": "y", "probs": ["a", "b", "c"]}
        off = distance(few(data, **call, score_bins=bins), few(data, **call))
        assert (off["off"] <= off[".error_bound"] + ROUNDING).all()
        assert (off[".error_bound"] > 0).all()


def test_aggregates_without_error_bound_report_null() -> None:
    data = lending(500)
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes", "score_bins": 64}
    aggregates = (tf.ratio(), tf.difference(to="overall"), tf.difference(to="White", signed=True))
    result = [tf.auc_parity("race", aggregate=item)(data, **call)[".error_bound"].item() for item in aggregates]
    assert result == [None, None, None]


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (
            tf.roc_auc, {"score_bins": 1},
            snapshot("`score_bins` is a whole number, 2 to 65536, not 1."),
        ),
        (
            tf.roc_auc, {"score_bins": True},
            snapshot("`score_bins` is a whole number, 2 to 65536, not True."),
        ),
        (
            tf.brier_class, {"score_bins": 8},
            snapshot("`score_bins` needs a ranking metric, such as roc_auc, and `probs=`; leave it out for other metrics."),
        ),
        (
            tf.calibration.error, {"score_bins": 8},
            snapshot("expected_calibration_error cannot be computed from binned scores; leave out `score_bins`."),
        ),
        (
            tf.distributions.abroca_debiased("g"), {"score_bins": 8},
            snapshot("abroca_debiased cannot be computed from binned scores; leave out `score_bins`."),
        ),
        (
            tf.roc_auc, {"score_bins": 8, "probs": "logit"},
            snapshot("`score_bins` needs scores between 0 and 1, but 'logit' holds values from -2 to 1.5; rescale them, for example with `sigmoid(…)`."),
        ),
    ],
)  # fmt: skip
def test_bad_score_bins_raise(metric: Any, options: dict[str, Any], expected: str) -> None:
    data = pl.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.5, 0.7], "logit": [-2.0, 0.0, 1.5], "g": ["a", "b", "a"]})
    with pytest.raises(tf.errors.TidyfairError) as caught:
        metric(data, **COLUMNS | options)
    assert str(caught.value) == expected


def test_tally_with_bins_rejects_metrics_needing_scores() -> None:
    data = pl.DataFrame({"y": [0, 1, 1], "p": [0.1, 0.5, 0.7]})
    tally = tf.roc_auc.tally(data, **COLUMNS, score_bins=8)
    with pytest.raises(tf.errors.ArgumentError) as caught:
        tf.calibration.error.compute(tally)
    assert str(caught.value) == snapshot(
        "expected_calibration_error needs the scores themselves: count again without `score_bins`."
    )


def test_tally_with_bins_holds_no_scores() -> None:
    data = pl.DataFrame({"y": [1, 0, 1], "p": [0.912345678, 0.2, 0.7], "g": ["alone", "b", "b"]})
    tally = tf.auc_parity("g").tally(data, "y", probs="p", score_bins=4)
    assert tally.rows is not None
    for frame in (tally.cells, tally.rows):
        values = [value for row in frame.rows() for value in row]
        assert not any(isinstance(value, float) for value in values)


def test_error_bound_of_exact_metrics_is_0_for_any_aggregate() -> None:
    data = lending(500)
    fair = tf.metric_set(tf.roc_auc, tf.demographic_parity_ratio("sex"), tf.auc_parity("sex", aggregate=tf.ratio()))
    result = fair(data, "repaid", probs="score", pos_label="yes", threshold=0.5, score_bins=64)
    assert result[".error_bound"].is_null().to_list() == [False, False, True]
    assert result[".error_bound"][1] == 0


def test_missing_weights_raise_with_many_rows() -> None:
    rows = 60_000
    people = pl.DataFrame(
        {"y": [0, 1] * (rows // 2), "s": [0.1, 0.6, 0.9] * (rows // 3), "w": [None] + [1] * (rows - 1)}
    )
    with pytest.raises(tf.errors.WeightError, match="some values of 'w' are missing"):
        tf.roc_auc(people, "y", probs="s", score_bins=100, case_weights="w")


@pytest.mark.parametrize("bins", [16, 65536])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_bins_of_a_large_frame_are_those_of_numpy(bins: int, *, missing: bool, lazy: bool) -> None:
    data = lending(60_000).with_columns(y=pl.col("repaid") == "yes")
    if missing:
        every = pl.int_range(pl.len())
        data = data.with_columns(score=pl.when(every % 7 > 0).then("score"), y=pl.when(every % 5 > 0).then("y"))
    tally = tf.auc_parity("race").tally(data.lazy() if lazy else data, "y", probs="score", score_bins=bins)
    known = data.filter(pl.col("score").is_not_null()).with_columns(
        bin=(pl.col("score") * bins).floor().clip(0, bins - 1).cast(pl.UInt16)
    )
    expected = known.group_by(k0="race", truth="y", s0="bin").agg(weight=pl.len().cast(pl.Int64))
    assert tally.rows is not None
    assert_frame_equal(tally.rows.drop("weight squared"), expected, check_row_order=False)
    rows = data.group_by(k0="race", truth="y", score=pl.when(pl.col("score").is_not_null()).then(statement=True))
    expected = rows.agg(n=pl.len().cast(pl.Int64)).select("k0", "truth", "score", "n")
    assert_frame_equal(tally.cells.select(expected.columns), expected, check_row_order=False)


def test_no_rows_of_a_lazy_frame_have_no_bins() -> None:
    data = lending(10).lazy().filter(pl.col("score") > 2)
    tally = tf.auc_parity("race").tally(data, "repaid", probs="score", score_bins=16)
    assert tally.rows is not None
    assert tally.rows.is_empty()
    assert tally.cells.is_empty()


def test_functions_of_labels_beside_bins_are_exact() -> None:
    share = tf.new_class_metric(lambda truth, estimate: float((truth == estimate).mean()), "share of equal labels")
    data = lending(500)
    call: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "probs": "score", "pos_label": "yes"}
    result = tf.metric_set(tf.roc_auc, share)(data, **call, score_bins=8)
    exact = tf.accuracy(data, "repaid", "approved", pos_label="yes")[".estimate"].item()
    assert result.select(".estimate", ".error_bound").row(1) == (pytest.approx(exact), 0.0)
