"""What metrics of scores and numbers cost, beside hand-written polars: `python tests/benchmarks/scores.py`.

Options: `--rows`, `--runs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from counting import FEATURES, disparities
from measuring import Asked, Row, compared, run_alone

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GROUPS = 50
AUC = tf.auc_parity("group")
SUMS = {
    "Brier and log loss": (tf.brier_class, tf.mn_log_loss),
    "MAE, RMSE and R²": (tf.mae, tf.rmse, tf.rsq),
}


def scored(rows: int) -> pl.DataFrame:
    """Decisions on loans, with fifty groups, and numbers as well as labels."""
    names = pl.Enum([f"group {number}" for number in range(GROUPS)])
    place = pl.col("weight").rank("ordinal") % GROUPS
    data = lending(rows).with_columns(
        y=pl.col("repaid") == "yes", actual=pl.col("score") * 10 + pl.col("weight"), predicted=pl.col("weight") * 3
    )
    return data.with_columns(group=pl.Series(names.categories, dtype=names).gather(data.select(place).to_series()))


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


def one_query(data: pl.DataFrame) -> tuple[Callable[[], object], Callable[[], object]]:
    """The sums of probability and of regression metrics by all keys at once, each as one streaming query."""
    score, truth = pl.col("score"), pl.col("y").cast(pl.Float64)
    squares = data.lazy().group_by(*FEATURES, "fold", "y").agg(
        pl.len(), ((score - truth) ** 2).sum().alias("squares"), score.clip(1e-16, 1).log().sum().alias("ones"),
        (1 - score).clip(1e-16, 1).log().sum().alias("zeros"),
    )  # fmt: skip
    actual, predicted = pl.col("actual"), pl.col("predicted")
    distance = actual - predicted
    measured = data.lazy().group_by(*FEATURES, "fold").agg(
        pl.len(), distance.abs().sum().alias("distance"), (distance**2).sum().alias("squares"),
        actual.var().alias("var"), predicted.var().alias("other"), pl.cov("actual", "predicted").alias("cov"),
    )  # fmt: skip
    return lambda: squares.collect(engine="streaming"), lambda: measured.collect(engine="streaming")


def measure(rows: int, runs: int) -> Iterator[Row]:
    data = scored(rows)
    for how, bins, asked in (
        ("exact", None, Asked(0.6)), ("from 65,536 score bins", 2**16, Asked(0.2)),
        ("from 4,096 score bins", 2**12, None),
    ):  # fmt: skip
        yield compared(
            f"ROC AUC of {GROUPS} groups, {how}", "`rank().over()`",
            lambda bins=bins: AUC.by_group(data, "y", probs="score", score_bins=bins), auc_by_hand(data),
            rows=rows, runs=runs, asked=asked,
        )  # fmt: skip
    columns: tuple[dict[str, Any], dict[str, Any]] = {"probs": "score"}, {"estimate": "predicted"}
    for (names, every), truth, kind, query in zip(SUMS.items(), ("y", "actual"), columns, one_query(data), strict=True):
        metrics = tf.metric_set(
            *(tf.new_groupwise_metric(each, each.name, tf.difference())(by) for each in every for by in FEATURES)
        )
        yield compared(
            f"{names}, 3 features, 10 folds", "one streaming query by all keys",
            lambda metrics=metrics, truth=truth, kind=kind: metrics(data, truth, **kind, group_by="fold"), query,
            rows=rows, runs=runs,
        )  # fmt: skip
    cut = tf.metric_set(tf.accuracy, tf.sens, *(each for by in FEATURES for each in disparities(by)))
    thresholds = [step / 100 for step in range(1, 100)]
    yield compared(
        "99 thresholds, 3 features", "one threshold",
        lambda: cut(data, "y", probs="score", threshold=thresholds),
        lambda: cut(data, "y", probs="score", threshold=0.5),
        rows=rows, runs=runs,
    )  # fmt: skip


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=10_000_000, runs=5)
