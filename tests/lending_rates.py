"""Lending data, and their rates counted by hand, for tests of intervals."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.datasets import lending

if TYPE_CHECKING:
    import tidyfair as tf

LOANS = lending(3000)
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORED: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
Z = NormalDist().inv_cdf(0.975)


def ends(result: pl.DataFrame, row: int = 0) -> tuple[float, float]:
    return result[".lower"][row], result[".upper"][row]


def counts(metric: tf.types.Metric, by: str | None = None, frame: pl.DataFrame = LOANS) -> dict[Any, tuple[int, int]]:
    """Hits and rows of a rate by group, by hand."""
    truth, guess = pl.col("repaid") == "yes", pl.col("approved") == "yes"
    every = pl.lit(value=True)
    about = {
        "sens": (truth, guess),
        "spec": (~truth, ~guess),
        "precision": (guess, truth),
        "accuracy": (every, truth == guess),
        "detection_prevalence": (every, guess),
        "selection_rate": (every, guess),
    }
    among, holds = about[metric.name]
    kept = frame.filter(among).with_columns(pl.lit(0).alias("all") if by is None else pl.col(by))
    table = kept.group_by(by or "all", maintain_order=True).agg(holds.sum().alias("hits"), pl.len())
    return {key: (hits, rows) for key, hits, rows in table.rows()}
