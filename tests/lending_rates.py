"""Lending data, and their rates counted by hand, for tests of intervals."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import polars as pl
import scipy.stats
from statsmodels.stats.proportion import proportion_confint

from tidyfair.datasets import lending

if TYPE_CHECKING:
    import tidyfair as tf

LOANS = lending(3000)
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORED: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
Z = NormalDist().inv_cdf(0.975)


def ends(result: pl.DataFrame, row: int = 0) -> tuple[float, float]:
    return result[".lower"][row], result[".upper"][row]


def counts(metric: tf.Metric, by: str | None = None, frame: pl.DataFrame = LOANS) -> dict[Any, tuple[int, int]]:
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


# Limits of rates


def wilson(hits: float, rows: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's limits."""
    result: Any = proportion_confint(hits, rows, alpha=1 - level, method="wilson")
    return float(result[0]), float(result[1])


def wilson_with_few(hits: float, rows: float, level: float = 0.95) -> tuple[float, float]:
    """The same, at three hits or misses or less as far as Poisson's limits (Brown, Cai and DasGupta, 2001)."""
    lower, upper = wilson(hits, rows, level)
    few = max(min(3, rows / 2), 1)
    if 0 < hits <= few:
        lower = min(lower, float(scipy.stats.chi2.ppf(1 - level, 2 * hits)) / 2 / rows)
    if 0 < rows - hits <= few:
        upper = max(upper, 1 - float(scipy.stats.chi2.ppf(1 - level, 2 * (rows - hits))) / 2 / rows)
    return lower, upper


def jeffreys(hits: float, rows: float, level: float = 0.95) -> tuple[float, float]:
    """Quantiles of a beta distribution, but 0 without hits, and 1 without misses."""
    posterior = scipy.stats.beta(hits + 0.5, rows - hits + 0.5)
    lower, upper = (float(end) for end in posterior.ppf([(1 - level) / 2, (1 + level) / 2]))
    return lower if hits > 0 else 0.0, upper if hits < rows else 1.0


def outer_limits(hits: float, rows: float, level: float) -> tuple[float, float]:
    """The farther ones of Wilson's limits with few hits, and Jeffreys'."""
    (low, high), (least, most) = wilson_with_few(hits, rows, level), jeffreys(hits, rows, level)
    return min(low, least), max(high, most)
