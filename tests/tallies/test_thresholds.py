"""Thresholds, one or many, for all rows or by group, and top-k selections equal labels made by hand."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars, examples
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from polars.testing import assert_frame_equal

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LAW = settings(
    deadline=None,
    max_examples=examples(8),
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
EVERY = tf.metric_set(
    # net benefit takes the threshold that is its risk, and no other
    *(metric for metric in tf.get_metrics("class") if "net_benefit" not in metric.name),
    tf.demographic_parity("sex"),
    tf.equalized_odds("sex"),
    tf.disparate_impact("sex"),
    tf.accuracy.group_minimum("sex"),
    tf.predictive_parity("sex"),
)
SCHEMA = {
    "truth": pl.Int64, "score": pl.Float64, "sex": pl.String, "outer": pl.Int64, "weight": pl.Float64,
}  # fmt: skip
SCORES = st.one_of(st.integers(0, 10).map(lambda k: k / 10), st.floats(0, 1))


@st.composite
def frames(draw: st.DrawFn, *, gaps: bool = True) -> pl.DataFrame:
    holes = [st.none()] if gaps and draw(st.booleans()) else []
    row = st.fixed_dictionaries(
        {
            "truth": st.one_of(st.integers(0, 1), *holes),
            "score": st.one_of(SCORES, *holes),
            "sex": st.sampled_from(["f", "m"]),
            "outer": st.sampled_from([1, 2, None]),
            "weight": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        }
    )
    rows = draw(st.lists(row, min_size=1, max_size=25))
    rows[0]["weight"] = 1.0  # weights that are all zero are an error
    return pl.DataFrame(rows, schema=SCHEMA)


counting = st.fixed_dictionaries(
    {"group_by": st.sampled_from([None, "outer"]), "case_weights": st.sampled_from([None, "weight"])}
)
READING: dict[str, Any] = {"on_undefined": "ignore", "pos_label": 1}


@st.composite
def cuts(draw: st.DrawFn, data: pl.DataFrame) -> list[float]:
    """Thresholds at scores, between and outside of them, in any order."""
    at = data["score"].drop_nulls().to_list()
    each = st.one_of(
        st.sampled_from([*at, -1.0, 2.0, 0.5]), st.floats(-0.5, 1.5), st.sampled_from([-math.inf, math.inf])
    )
    return draw(st.lists(each, min_size=1, max_size=6, unique=True))


def rows(results: pl.DataFrame) -> dict[tuple[Any, ...], float | None]:
    keys = [name for name in ("outer", ".metric", ".by", ".threshold") if name in results.columns]
    return dict(zip(results.select(keys).rows(), results[".estimate"].to_list(), strict=True))


def close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def assert_same(result: pl.DataFrame, expected: pl.DataFrame) -> None:
    one, other = rows(result), rows(expected)
    assert one.keys() == other.keys()
    assert not {key: (one[key], other[key]) for key in one if not close(one[key], other[key])}


@LAW
@given(st.data(), frames(), counting)
def test_list_of_thresholds_equals_separate_calls(data: st.DataObject, frame: pl.DataFrame, options: Any) -> None:
    thresholds = data.draw(cuts(frame))
    result = EVERY(frame, "truth", probs="score", threshold=thresholds, **options, **READING)
    values = [
        EVERY(frame, "truth", probs="score", threshold=cut, **options, **READING).with_columns(
            pl.lit(cut).alias(".threshold")
        )
        for cut in thresholds
    ]
    assert_same(result, pl.concat(values, how="diagonal"))


@LAW
@given(st.data(), frames(), counting)
def test_threshold_equals_labels_cut_by_hand(data: st.DataObject, frame: pl.DataFrame, options: Any) -> None:
    cut = data.draw(cuts(frame))[0]
    by_hand = frame.with_columns(estimate=(pl.col("score") >= cut).cast(pl.Int64))
    expected = EVERY(by_hand, "truth", "estimate", **options, **READING)
    assert_same(EVERY(frame, "truth", probs="score", threshold=cut, **options, **READING), expected)


@LAW
@given(st.data(), frames(), counting, st.integers(0, 25))
def test_tallies_with_thresholds_add_up(data: st.DataObject, frame: pl.DataFrame, options: Any, cut: int) -> None:
    thresholds = data.draw(cuts(frame))
    both = tf.metric_set(EVERY, tf.roc_auc, tf.brier_class)
    counts: dict[str, Any] = {"probs": "score", "threshold": thresholds, **options}
    parts = [both.tally(part, "truth", **counts) for part in (frame[:cut], frame[cut:])]
    assert_same(both.compute(parts[0] + parts[1], **READING), both(frame, "truth", **counts, **READING))


@pytest.mark.parametrize("threshold", [0.7, [0.7, 0.95], {"sex": {"f": 0.7, "m": 0.7}}])
def test_32_bit_scores_are_cut_as_64_bit_numbers(threshold: Any, engine: Callable[[pl.DataFrame], Any]) -> None:
    scores = np.array([0.7, 0.7, 0.5, 0.9], np.float32)
    data = pl.DataFrame({"score": scores, "sex": [*"fmfm"]})
    result = as_polars(tf.selection_rate(engine(data), probs="score", threshold=threshold))
    # the nearest number of 32 bits is below 0.7
    assert result[".estimate"][0] == (scores.astype(np.float64) >= 0.7).mean() == 0.25


def test_threshold_column_of_results(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = pl.DataFrame({"truth": [1, 0, 1, 0], "score": [0.9, 0.6, 0.4, 0.1], "sex": [*"ffmm"]})
    both = tf.metric_set(tf.roc_auc, tf.accuracy, tf.demographic_parity("sex"), tf.roc_auc.difference("sex"))
    result = as_polars(both(engine(data), "truth", probs="score", threshold=[0.5, 0.05]))
    assert result.columns == [".metric", ".by", ".estimator", ".threshold", ".estimate"]
    assert result.select(".metric", ".threshold", ".estimate").rows() == [
        ("roc_auc", None, 0.75),
        ("accuracy", 0.05, 0.5),
        ("accuracy", 0.5, 0.5),
        ("demographic_parity", 0.05, 0.0),
        ("demographic_parity", 0.5, 1.0),
        ("roc_auc_difference", None, 0.0),
    ]
    alone = tf.roc_auc(data, "truth", probs="score", threshold=[0.5, 0.05])
    assert alone[".threshold"].to_list() == [None]
    assert alone[".threshold"].dtype == pl.Float64
    assert ".threshold" not in tf.accuracy(data, "truth", probs="score", threshold=0.5).columns


@LAW
@given(frames(), counting)
def test_score_metrics_beside_thresholds_have_one_row(frame: pl.DataFrame, options: Any) -> None:
    prob = tf.metric_set(tf.roc_auc, tf.brier_class, tf.roc_auc.difference("sex"))
    result = tf.metric_set(tf.sens, prob)(frame, "truth", probs="score", threshold=[0.2, 0.7], **options, **READING)
    alone = prob(frame, "truth", probs="score", **options, **READING)
    beside = result.filter(pl.col(".metric") != "sens")
    assert beside[".threshold"].is_null().all()
    assert_same(beside.drop(".threshold"), alone)


@LAW
@given(frames(), counting, st.tuples(SCORES, SCORES))
def test_thresholds_by_group_equal_labels_cut_by_hand(
    frame: pl.DataFrame, options: Any, chosen: tuple[float, float]
) -> None:
    thresholds = dict(zip("fm", chosen, strict=True))
    own = pl.col("sex").replace_strict(thresholds, return_dtype=pl.Float64)
    by_hand = frame.with_columns(estimate=(pl.col("score") >= own).cast(pl.Int64))
    result = EVERY(frame, "truth", probs="score", threshold={"sex": thresholds}, **options, **READING)
    assert_same(result, EVERY(by_hand, "truth", "estimate", **options, **READING))
    pairs = {(sex, outer): cut for sex, cut in thresholds.items() for outer in (1, 2, None)}
    result = EVERY(frame, "truth", probs="score", threshold={("sex", "outer"): pairs}, **options, **READING)
    assert_same(result, EVERY(by_hand, "truth", "estimate", **options, **READING))


# Scores that are no probabilities

LOGITS = pl.DataFrame({"truth": [1, 0, 1, 0], "logit": [2.0, -3.0, 0.2, 0.1], "sex": [*"ffmm"]})


@pytest.mark.parametrize(
    "threshold", [0.5, [0.3, 0.7], [0, 0.5, 1], {"sex": {"f": 0.4, "m": 0.5}}], ids=["one", "list", "ends", "groups"]
)
def test_logits_with_a_probability_threshold_raise(threshold: Any, engine: Callable[[pl.DataFrame], Any]) -> None:
    data, both = engine(LOGITS), tf.metric_set(tf.sens, tf.demographic_parity("sex"))
    with pytest.raises(tf.errors.ColumnError, match=r"'logit' holds values from -3 to 2, but .* `probs=sigmoid\(…\)`"):
        both(data, "truth", probs="logit", threshold=threshold)
    with pytest.raises(tf.errors.ColumnError, match="sigmoid"):
        tf.metric_set(both, tf.roc_auc)(data, "truth", probs="logit", threshold=threshold)


def test_logit_arrays_with_a_probability_threshold_raise() -> None:
    truth, logits = LOGITS["truth"].to_list(), LOGITS["logit"].to_numpy()
    with pytest.raises(tf.errors.ColumnError, match=r"'array of probs' holds values from -3 to 2.*`probs >= 0\.5`"):
        tf.sens.arrays(truth, probs=logits, threshold=0.5)
    assert tf.sens.arrays(truth, probs=tf.calibration.sigmoid(logits), threshold=0.5)[".estimate"].item() == 1.0
    with pytest.raises(tf.errors.ColumnError, match="sigmoid"):
        tf.threshold_curve(tf.sens)(LOGITS, "truth", probs="logit")


@pytest.mark.parametrize(
    ("threshold", "shown", "labels"),
    [
        (0.3, "threshold=0.3", '`(pl.col("my \\"logit\\"") >= 0.3).alias("selected")`'),
        (
            [0.25, 0.75], "threshold=[0.25, 0.75]",
            '`(pl.col("my \\"logit\\"") >= 0.25).alias("selected")` for the first, and so on',
        ),
        (
            {"sex": {"f": 0.4, "m": 0.5}}, "threshold={'sex': {'f': 0.4, 'm': 0.5}}",
            '`(pl.col("my \\"logit\\"") >= pl.col("threshold")).alias("selected")`, with the threshold of each group',
        ),
    ],
    ids=["one", "list", "groups"],
)  # fmt: skip
def test_refused_thresholds_are_shown_with_their_column(threshold: Any, shown: str, labels: str) -> None:
    column = 'my "logit"'
    with pytest.raises(tf.errors.ColumnError) as error:
        tf.sens(LOGITS.rename({"logit": column}), "truth", probs=column, threshold=threshold)
    assert str(error.value) == (
        f"`probs`: {column!r} holds values from -3 to 2, but {shown} is a threshold for probabilities. Convert logits "
        "with `probs=sigmoid(…)`, or give a threshold on the scale of the scores. If the threshold is right, make the "
        f"labels yourself: {labels}{' in a column' if isinstance(threshold, dict) else ''}."
    )


@pytest.mark.parametrize(("threshold", "expected"), [(0, [1.0]), (1, [0.5]), ([0.15, 1.5], [1.0, 0.5]), (-2.5, [1.0])])
def test_thresholds_on_the_scale_of_the_scores(
    threshold: Any, expected: list[float], engine: Callable[[pl.DataFrame], Any]
) -> None:
    # a threshold of 0 or 1, or beside one outside of 0 to 1, may be one of any scores
    result = as_polars(tf.sens(engine(LOGITS), "truth", probs="logit", threshold=threshold))
    assert result[".estimate"].to_list() == expected


def test_probabilities_may_exceed_0_to_1_by_rounding() -> None:
    rounded = LOGITS.with_columns(logit=pl.Series([1.0000001, -1e-8, 0.2, 0.1]))
    assert tf.sens(rounded, "truth", probs="logit", threshold=0.15)[".estimate"].item() == 1.0


# Top-k selection


def best(frame: pl.DataFrame, wanted: Any) -> pl.DataFrame:
    """The labels of the best-scored rows and of those that tie with the last of them."""
    scores = sorted((item for item in frame["score"] if item is not None), reverse=True)
    size = min(wanted(frame), len(scores))
    cut = scores[size - 1] if size else math.inf
    return frame.with_columns(estimate=(pl.col("score") >= cut).cast(pl.Int64))


def by_outer(frame: pl.DataFrame, options: Any, wanted: Any) -> pl.DataFrame:
    parts = frame.partition_by("outer") if options["group_by"] else [frame]
    return pl.concat([best(part, wanted) for part in parts])


def quietly(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.SelectionWarning)
        return EVERY(frame, "truth", probs="score", **options, **READING)


@LAW
@given(frames(), counting, st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True))
def test_top_k_equals_best_rows_by_hand(frame: pl.DataFrame, options: Any, sizes: list[int]) -> None:
    several = quietly(frame, top_k=sizes, **options)
    for k in sizes:
        expected = EVERY(by_outer(frame, options, lambda _, k=k: k), "truth", "estimate", **options, **READING)
        assert_same(quietly(frame, top_k=k, **options), expected)
        assert_same(several.filter(pl.col(".top_k") == k).drop(".top_k"), expected)


@LAW
@given(frames(), st.sampled_from([None, "outer"]), st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]))
def test_top_fraction_equals_best_rows_by_hand(frame: pl.DataFrame, outer: str | None, share: float) -> None:
    def wanted(part: pl.DataFrame) -> int:
        return math.floor(part["score"].count() * share + 1e-9)

    options = {"group_by": outer}
    expected = EVERY(by_outer(frame, options, wanted), "truth", "estimate", **options, **READING)
    assert_same(quietly(frame, top_fraction=share, **options), expected)
    several = quietly(frame, top_fraction=[share, 0.7], **options)
    assert_same(several.filter(pl.col(".top_fraction") == share).drop(".top_fraction"), expected)


@LAW
@given(frames(gaps=False), st.sampled_from([None, "outer"]), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_top_fraction_of_weight_equals_best_rows_by_hand(frame: pl.DataFrame, outer: str | None, share: float) -> None:
    """As many whole scores from the top as have no more than that share of the weight, ties together."""
    frame = frame.with_columns(score=pl.col("score").rank("ordinal") / 100)  # without ties the order is clear

    def wanted(part: pl.DataFrame) -> int:
        weights = part.sort("score", descending=True)["weight"].to_list()
        reached = [sum(weights[: index + 1]) <= share * sum(weights) + 1e-9 for index in range(len(weights))]
        return sum(reached)

    options = {"group_by": outer, "case_weights": "weight"}
    expected = EVERY(by_outer(frame, options, wanted), "truth", "estimate", **options, **READING)
    assert_same(quietly(frame, top_fraction=share, **options), expected)


TIED = pl.DataFrame(
    {
        "truth": [1, 0, 1, 0, 1, 0],
        "score": [0.9, 0.5, 0.5, 0.1, 0.8, None],
        "fold": [1, 1, 1, 1, 2, 2],
    }
)


TIE = "rows are tied at the threshold and equal scores get the same decision, so"
SECOND = "asks for 2 rows, but only 1 rows have a score."


def warnings_of(**options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tf.accuracy(TIED, "truth", probs="score", **options)
    assert {item.category for item in caught} <= {tf.errors.SelectionWarning}
    return [str(item.message) for item in caught]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"top_k": 1}, []),
        ({"top_k": 5}, []),
        (
            {"top_k": 3},
            [
                (
                    "top_k=3 asks for 3 rows: rows are tied at the threshold and equal scores get the same decision, "
                    "so 4 are selected."
                )
            ],
        ),
        ({"top_k": 7}, ["top_k=7 asks for 7 rows, but only 5 rows have a score."]),
        (
            {"top_k": 2, "group_by": "fold"},
            [f"top_k=2 (fold=1) asks for 2 rows: {TIE} 3 are selected; top_k=2 (fold=2) {SECOND}"],
        ),
        (
            {"top_fraction": [0.2, 0.6]},
            [f"top_fraction=0.6 asks for 3 rows: {TIE} 4 are selected."],
        ),
    ],
)
def test_selection_of_another_size_warns_once(options: dict[str, Any], expected: Sequence[str]) -> None:
    assert warnings_of(**options) == expected


def test_top_k_selects_in_each_outer_group(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = engine(TIED)
    with pytest.warns(tf.errors.SelectionWarning, match="fold=1"):
        result = tf.counts.predicted_positives(data, "truth", probs="score", top_k=2, group_by="fold")
    assert as_polars(result)[".estimate"].to_list() == [3, 1]


# Curves


@LAW
@given(st.data(), frames(), counting)
def test_threshold_curve_equals_list_of_thresholds(data: st.DataObject, frame: pl.DataFrame, options: Any) -> None:
    thresholds = data.draw(cuts(frame))
    curve = tf.threshold_curve(EVERY, thresholds)
    result = curve(frame, "truth", probs="score", **options, **READING)
    listed = EVERY(frame, "truth", probs="score", threshold=thresholds, **options, **READING)
    assert_frame_equal(result, listed)


def test_threshold_curve_defaults_to_0_to_1() -> None:
    data = pl.DataFrame({"truth": [1, 0, 1], "score": [0.0, 0.5, 1.0]})
    result = tf.threshold_curve(tf.detection_prevalence)(data, probs="score", pos_label=1)
    assert result[".threshold"].to_list() == [step / 100 for step in range(101)]
    shares = [1.0] + [2 / 3] * 50 + [1 / 3] * 50
    assert result[".estimate"].to_list() == pytest.approx(shares)


def test_threshold_curve_rejects_thresholds_in_the_call() -> None:
    data = pl.DataFrame({"truth": [1, 0, 1], "score": [0.0, 0.5, 1.0]})
    with pytest.raises(tf.errors.ArgumentError, match="when creating the curve"):
        tf.threshold_curve(tf.sens, [0.5])(data, "truth", probs="score", threshold=[0.1])
    with pytest.raises(tf.errors.ArgumentError, match="takes a metric or a metric set"):
        tf.threshold_curve(tf.demographic_parity, [0.5])  # pyright: ignore[reportArgumentType] - a factory
