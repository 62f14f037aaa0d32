"""Confusion tables and their summary."""

from __future__ import annotations

import polars as pl
from public_names import public

import tidyfair as tf


def test_conf_mat_counts_by_outer_group(loans: pl.DataFrame) -> None:
    table = tf.conf_mat(loans, "truth", "estimate", group_by="sex", case_weights="weight")
    assert table.columns == ["sex", ".truth", ".predicted", ".n", ".weight"]
    assert table.filter(sex="f").select(".truth", ".predicted", ".n").rows() == [
        (0, 0, 1),
        (0, 1, 2),
        (1, 0, 1),
        (1, 1, 2),
    ]
    assert table[".weight"].sum() == loans["weight"].sum()
    # pairs that do not occur are there, rows without a label are not
    holes = pl.DataFrame({"t": ["a", "b", None], "e": ["a", "a", "a"]})
    assert tf.conf_mat(holes, "t", "e", labels=["a", "b"]).rows() == [
        ("a", "a", 1), ("a", "b", 0), ("b", "a", 1), ("b", "b", 0)
    ]  # fmt: skip
    cut = tf.conf_mat(loans, "truth", probs="score", threshold=0.5)
    expected = tf.conf_mat(loans.with_columns(estimate=(pl.col("score") >= 0.5).cast(pl.Int64)), "truth", "estimate")
    assert cut.equals(expected)


def test_conf_mat_summary_has_the_rows_of_yardstick(loans: pl.DataFrame) -> None:
    summary = tf.conf_mat_summary(loans, "truth", "estimate")
    assert summary[".metric"].to_list() == [
        "accuracy", "kap", "sens", "spec", "ppv", "npv", "mcc", "j_index", "bal_accuracy", "detection_prevalence",
        "precision", "recall", "f_meas",
    ]  # fmt: skip
    alone = [public(name)(loans, "truth", "estimate")[".estimate"].item() for name in summary[".metric"]]
    assert summary[".estimate"].to_list() == alone


def test_conf_mat_of_pandas(loans: pl.DataFrame) -> None:
    table = tf.conf_mat(loans.to_pandas(), "truth", "estimate")
    assert table[".n"].tolist() == [4, 3, 1, 4]
