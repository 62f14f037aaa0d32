"""What metrics of scores and numbers cost, as ratios in one process: `python tests/benchmarks/scores.py`.

Machines are noisy: every figure is the ratio of two medians, taken in turns. Options: `--rows`, `--runs`. scikit-learn
is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
from typing import TYPE_CHECKING

import polars as pl
from counting import FEATURES, compare, disparities

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = 50
SUMS = (tf.brier_class, tf.mn_log_loss), (tf.mae, tf.rmse, tf.rsq)


def auc_by_hand(data: pl.DataFrame) -> Callable[[], object]:
    ones, rows = pl.col("ones").cast(pl.Int64), pl.col("rows").cast(pl.Int64)
    query = (
        data.lazy()
        .with_columns(pl.col("score").rank().over("group").alias("rank"))
        .group_by("group")
        .agg(pl.col("y").sum().alias("ones"), pl.len().alias("rows"), pl.col("rank").filter("y").sum().alias("ranks"))
        .select("group", auc=(pl.col("ranks") - ones * (ones + 1) / 2) / (ones * (rows - ones)))
    )
    return query.collect


def auc_in_a_loop(data: pl.DataFrame) -> object:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - where it is installed

    return [roc_auc_score(part["y"].to_numpy(), part["score"].to_numpy()) for _, part in data.group_by("group")]


def one_query(data: pl.DataFrame) -> tuple[Callable[[], object], Callable[[], object]]:
    """The sums of probability and of regression metrics by all keys at once, each as one streaming query."""
    score, truth = pl.col("score"), pl.col("y").cast(pl.Float64)
    scored = data.lazy().group_by(*FEATURES, "fold", "y").agg(
        pl.len(), ((score - truth) ** 2).sum().alias("squares"), score.clip(1e-16, 1).log().sum().alias("ones"),
        (1 - score).clip(1e-16, 1).log().sum().alias("zeros"),
    )  # fmt: skip
    actual, predicted = pl.col("actual"), pl.col("predicted")
    distance = actual - predicted
    measured = data.lazy().group_by(*FEATURES, "fold").agg(
        pl.len(), distance.abs().sum().alias("distance"), (distance**2).sum().alias("squares"),
        actual.var().alias("var"), predicted.var().alias("other"), pl.cov("actual", "predicted").alias("cov"),
    )  # fmt: skip
    return lambda: scored.collect(engine="streaming"), lambda: measured.collect(engine="streaming")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    runs = options.runs
    print(
        f"polars {pl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {options.rows:,} rows\n"
    )
    print("| the whole call against | ratio | ms | ms of the other |\n|---|---|---|---|")

    names = [f"group {number}" for number in range(GROUPS)]
    place = pl.col("weight").rank("ordinal") % GROUPS
    data = lending(options.rows).with_columns(
        y=pl.col("repaid") == "yes", actual=pl.col("score") * 10 + pl.col("weight"), predicted=pl.col("weight") * 3
    )
    data = data.with_columns(group=pl.Series(names, dtype=pl.Enum(names)).gather(data.select(place).to_series()))
    auc = tf.auc_parity("group")
    compare(
        f"ROC AUC of {GROUPS} groups, exact, against rank().over()",
        lambda: auc.by_group(data, "y", probs="score"), auc_by_hand(data), runs,
    )  # fmt: skip
    for bins in (2**16, 2**12):
        compare(
            f"the same from {bins:,} score bins",
            lambda bins=bins: auc.by_group(data, "y", probs="score", score_bins=bins), auc_by_hand(data), runs,
        )  # fmt: skip
    if importlib.util.find_spec("sklearn"):
        compare(
            "the same against scikit-learn in a loop",
            lambda: auc.by_group(data, "y", probs="score"), lambda: auc_in_a_loop(data), max(2, runs // 2),
        )  # fmt: skip

    scored, measured = (
        tf.metric_set(
            *(tf.new_groupwise_metric(each, each.name, tf.difference())(by) for each in every for by in FEATURES)
        )
        for every in SUMS
    )
    by_score, by_number = one_query(data)
    text = "by 3 features and 10 folds against one streaming query by all keys"
    compare(f"Brier and log loss {text}", lambda: scored(data, "y", probs="score", group_by="fold"), by_score, runs)
    compare(
        f"MAE, RMSE and rsq {text}", lambda: measured(data, "actual", "predicted", group_by="fold"), by_number, runs
    )

    cut = tf.metric_set(tf.accuracy, tf.sens, *(each for by in FEATURES for each in disparities(by)))
    thresholds = [step / 100 for step in range(1, 100)]
    compare(
        "99 thresholds and 3 features against one threshold",
        lambda: cut(data, "y", probs="score", threshold=thresholds),
        lambda: cut(data, "y", probs="score", threshold=0.5),
        runs,
    )


if __name__ == "__main__":
    main()
