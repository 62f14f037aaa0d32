"""Odd values for every argument raise an error of this package, or mean something."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from inline_snapshot import snapshot

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable


def message(call: Callable[[], object]) -> str:
    with pytest.raises(tf.errors.TidyfairError) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


PEOPLE = pl.DataFrame({"y": [1, 0, 1, 1], "p": [1, 1, 0, 1], "s": [0.1, 0.2, 0.3, 0.4], "g": list("abab")})


FAIRNESS = tf.demographic_parity("g")
GOOD = tf.metric_set(tf.accuracy, FAIRNESS)
TALLY = GOOD.tally(PEOPLE, "y", "p")
GROUPS = FAIRNESS.by_group(PEOPLE, "y", "p")
FOLDS = tf.accuracy(PEOPLE, "y", "p", group_by="g")
LABELLED: dict[str, Any] = {"data": PEOPLE, "truth": "y", "estimate": "p"}
ODDITIES: list[Any] = [
    True, -1, 2**63, 2**200, 10**400, 0.5, math.nan, math.inf, 1j, Decimal("0.5"), Decimal("NaN"), np.array(0.5),
    np.array([1, 2]), "", "nope", "\ud800", b"y", bytearray(b"y"), [], [None], ["g", "g"], {}, {"g": 1}, {1: 2},
    {"zz": {"a": 0.5}}, range(0), pl.col("nope"), pl.all(), pl.col("y").sum(), pl.Series([1, 2]), pd.Series([1, 2]),
    pl.DataFrame(), pl.DataFrame({"y": []}), PEOPLE.lazy(), PEOPLE.to_pandas(), pd.DataFrame(), PEOPLE.group_by("g"),
    len, int, object(), tf.rmse, tf.demographic_parity, FAIRNESS, tf.difference(), TALLY, pd.NA, pd.NaT, pl.Int64,
]  # fmt: skip
CALLED: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "a call": (
        GOOD,
        {
            **LABELLED, "group_by": None, "case_weights": "s", "pos_label": 1, "labels": [0, 1], "estimator": "binary",
            "na_rm": True, "on_undefined": "ignore", "interval": "bootstrap", "conf_level": 0.9, "times": 40, "seed": 1,
            "explain": True, "cluster": None, "keep_rows": False, "frequency_weights": None, "parts": None,
        },
    ),
    "a threshold": (GOOD, {"data": PEOPLE, "truth": "y", "probs": "s", "threshold": 0.2, "top_k": None}),
    "scores": (tf.roc_auc, {"data": PEOPLE, "truth": "y", "probs": "s", "score_bins": 8}),
    "a tally": (GOOD.compute, {"tally": TALLY, "explain": True, "pos_label": 1, "on_undefined": "ignore"}),
    "arrays": (GOOD.arrays, {"truth": [1, 0], "estimate": [1, 1], "by": {"g": [0, 1]}, "ignore_index": -1}),
    "a factory": (
        lambda by, **options: tf.demographic_parity(by, **options)(**LABELLED),
        {"by": "g", "aggregate": None, "name": "x", "min_n": 1},
    ),
    "an aggregate": (
        lambda **options: tf.demographic_parity("g", aggregate=tf.difference(**options))(**LABELLED),
        {"to": "a", "signed": True, "across": "worst"},
    ),
    "an aggregate of a user": (
        lambda answer: tf.demographic_parity("g", aggregate=tf.new_aggregate(lambda _: answer))(**LABELLED),
        {"answer": 0.5},
    ),
    "an option": (lambda beta: tf.metric_tweak(tf.f_meas, "f", beta=beta)(**LABELLED), {"beta": 2}),
    "plain numbers": (tf.sens.formula, {"tp": 3, "fn": 1}),
    "a metric of a user": (
        lambda **made: tf.new_class_metric(lambda tp, fp: (tp, tp + fp), **made)(**LABELLED),
        {"name": "x", "direction": "maximize", "range": (0, 1), "over_levels": False},
    ),
    "a statistic of a user": (
        lambda made: tf.new_numeric_metric(lambda near: near, "x", statistics={"near": lambda **_: made}),
        {"made": pl.col("truth")},
    ),
    "a condition": (lambda g: tf.demographic_parity(tf.privileged(g=g))(**LABELLED), {"g": "a"}),
    "a test": (
        lambda times, seed, **options: tf.inference.disparity_test(FAIRNESS, **options)(
            **LABELLED, times=times, seed=seed
        ),
        {"within": None, "times": 40, "seed": 0, "mid_p": False, "adjust": "holm", "family": "all"},
    ),
    "pairs": (
        lambda test, adjust, **options: tf.inference.pairwise(FAIRNESS, test=test, adjust=adjust)(
            **LABELLED, **options
        ),
        {"test": "fisher", "adjust": "holm", "conf_level": 0.9, "times": 40, "seed": 0},
    ),
    "a gate": (
        lambda **limits: tf.check(**limits)(**LABELLED),
        {"given": FAIRNESS, "below": 0.1, "above": None, "conf_level": 0.9},
    ),
    "a monitor": (
        lambda **options: tf.inference.monitor(**options)(**LABELLED),
        {
            "given": FAIRNESS, "below": 0.1, "above": None, "conf_level": 0.9, "period": None, "groups": 5,
            "change": False,
        },
    ),
    "a monitor of numbers": (
        lambda bounds: tf.inference.monitor(tf.mae, below=0.5, bounds=bounds)(**LABELLED), {"bounds": (0, 1)},
    ),
    "an assertion": (tf.assert_fair, {**LABELLED, "given": FAIRNESS, "below": 1, "strict": False}),
    "rows that are needed": (
        tf.inference.rows_needed, {"difference": 0.4, "share": 0.3, "groups": 2, "power": 0.5, "times": 50, "seed": 0},
    ),
    "rows that a gate needs": (
        tf.inference.rows_needed, {"difference": 0, "share": 0.3, "below": 0.5, "above": None, "times": 40},
    ),
    "a certificate": (
        lambda conf_level, **options: tf.inference.certify_subgroups(tf.error_rate, **options)(
            **LABELLED, conf_level=conf_level
        ),
        {"features": ["g"], "depth": 1, "min_n": 1, "conf_level": 0.9},
    ),
    "many models": (
        tf.compare_models(tf.accuracy, FAIRNESS, adjust="max_t"),
        {
            "data": PEOPLE, "truth": "y", "others": ["p"], "one": (pl.col("s") > 0.2).alias("q"),
            "conf_level": 0.9, "seed": 1, "pos_label": 1, "labels": [0, 1],
        },
    ),
    "sensitivity": (
        lambda **limits: tf.inference.verdict_sensitivity(**limits)(**LABELLED),
        {"given": FAIRNESS, "below": 0.1, "above": None, "conf_level": 0.9},
    ),
    "probable groups": (
        lambda p_a, proxy, to: tf.inference.probabilistic_groups(
            tf.error_rate, {"a": p_a, "b": (1 - pl.col("s")).alias("t")}, proxy=proxy, to=to
        )(**LABELLED),
        {"p_a": "s", "proxy": ["g"], "to": "rest"},
    ),
    "groups with probabilities": (
        lambda groups: tf.inference.probabilistic_groups(tf.error_rate, groups)(**LABELLED),
        {"groups": {"a": "s", "b": (1 - pl.col("s")).alias("t")}},
    ),
    "subgroups": (
        lambda times, seed, **options: tf.inference.subgroup_search(tf.error_rate, **options)(
            **LABELLED, times=times, seed=seed
        ),
        {"features": ["g"], "depth": 1, "min_n": 1, "times": 40, "seed": 0},
    ),
    "rare groups": (tf.inference.lump_rare, {"data": PEOPLE, "column": "g", "min_n": 1, "other": "other", "name": "h"}),
    "resamples": (tf.inference.resamples, {"parts": [("a", PEOPLE), ("b", PEOPLE)], "data": None, "name": "fold"}),
    "a summary": (tf.inference.summarize, {"result": FOLDS, "over": "g", "corrected": False}),
    "a table of counts": (tf.conf_mat, {**LABELLED, "pos_label": 1, "labels": [0, 1]}),
    "rows without a truth": (tf.inference.missing_truth, {**LABELLED, "positive": 1}),
    "an accumulator": (
        lambda metrics, batch: tf.Accumulator(metrics, "y", "p").update(batch).compute(),
        {"metrics": GOOD, "batch": PEOPLE},
    ),
    "a merge": (lambda other: tf.Accumulator(GOOD, "y", "p").update(PEOPLE).merge(other), {"other": TALLY}),
    "logits": (tf.calibration.sigmoid, {"column": "s"}),
    "a picture": (tf.autoplot, {"result": GROUPS, "kind": None, "at": None, "title": "t"}),
    "example data": (lending, {"rows": 10, "seed": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.filterwarnings("ignore")
def test_odd_argument_values_raise_own_errors_or_work(name: str) -> None:
    call, arguments = CALLED[name]
    call(**arguments)
    result = list[str]()
    for argument in arguments:
        for odd in ODDITIES:
            try:
                call(**arguments | {argument: odd})
            except tf.errors.TidyfairError as error:
                result.append(str(error))
    assert result
    # all of them can be printed
    assert "".join(result).encode()


def test_numpy_integers_are_accepted() -> None:
    two = np.int64(2)
    assert tf.metric_tweak(tf.f_meas, "f", beta=two)(**LABELLED).equals(
        tf.metric_tweak(tf.f_meas, "f", beta=2)(**LABELLED)
    )
    of_numpy: dict[str, Any] = {"times": np.int64(40), "seed": np.int64(3)}
    drawn = GOOD(**LABELLED, interval="bootstrap", **of_numpy)
    assert drawn.equals(GOOD(**LABELLED, interval="bootstrap", times=40, seed=3))


def test_formula_reading_more_than_its_parameters() -> None:
    strange: Any = lambda hits: (pl.col("nope") + hits).sum()  # noqa: E731 - as users write them
    assert message(lambda: tf.new_prob_metric(strange, "x")) == snapshot(
        'ArgumentError: x: a formula may only read its parameters, \'hits\', not [(col("nope")) + (col("hits"))].sum().'
    )
    in_polars: Any = lambda tp: pl.lit(float(tp.sum()))  # noqa: E731 - as users may write them
    assert message(lambda: tf.new_class_metric(in_polars, "x")) == snapshot(
        "ArgumentError: x() returns a polars expression; a formula over sums uses arithmetic on numpy arrays, "
        "such as `np.where(tp > 0, tp / fn, np.nan)`."
    )

    def in_place(tp: Any, fn: Any) -> Any:
        tp += fn
        return tp

    assert message(lambda: tf.new_class_metric(in_place, "x")) == snapshot(
        "ArgumentError: x: the formula failed with ValueError: output array is read-only. Write it with numpy "
        "arrays, such as `np.sqrt(tp)` or `np.where(tp > 0, tp / fn, np.nan)`."
    )
    summed: Any = lambda tp, fp: tp.sum() / fp  # noqa: E731 - as users may write them
    assert message(lambda: tf.new_class_metric(summed, "x", over_levels=True)) == snapshot(
        "ArgumentError: x() turns arrays of shape (3, 2) into arrays of shape (3, 2); sum over the labels, "
        "which are the last axis: `tp.sum(axis=-1)`."
    )


def test_conf_mat_of_mixed_number_types() -> None:
    counts = tf.conf_mat(PEOPLE.cast({"p": pl.Float64}).to_pandas(), "y", "p")
    assert counts[".n"].tolist() == [0, 1, 1, 2]
    wide = pl.DataFrame({"y": [1, 2**100], "p": [1, 1]}, schema={"y": pl.Int128, "p": pl.Int128})
    assert tf.conf_mat(wide, "y", "p").rows() == [(1, 1, 1), (1, 2**100, 0), (2**100, 1, 1), (2**100, 2**100, 0)]


def test_default_metrics_of_decimals() -> None:
    decimals = pl.DataFrame({"y": ["1.5", "2.5"], "p": ["1.5", "3.5"]}).cast(pl.Decimal(10, 2))
    result = tf.default_metrics(decimals, "y", "p")
    assert result.equals(tf.default_metrics(decimals.cast(pl.Float64), "y", "p"))


def test_lump_rare_of_durations_and_lists() -> None:
    spans = pl.DataFrame({"span": [timedelta(days=1), timedelta(days=2), None]})
    assert tf.inference.lump_rare(spans, "span", 1)["span_lumped"].to_list() == ["1d", "2d", None]
    lists = pl.DataFrame({"span": [[1], [2]]})
    assert message(lambda: tf.inference.lump_rare(lists, "span", 1)) == snapshot(
        "ColumnError: `column`: the column 'span' has dtype List(Int64); it must hold one plain value per row."
    )
