"""Rows that people labeled in part and a judge throughout, for tests of values from labels of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

WITH_AND_WITHOUT: tuple[dict[str, Any], ...] = ({"judged": "labels"}, {})


def answers() -> pl.DataFrame:
    """600 rows that repeat by arithmetic, of which people labelled 131; `truth` is not known to a call."""
    i = np.arange(600)
    truth = (i * 7 % 10 < 4).astype(int)
    score = np.round(np.clip(0.15 + 0.6 * truth + 0.025 * (i * 5 % 11 - 5), 0, 1), 3)
    rows = pl.DataFrame(
        {
            "group": i * 13 % 17 < 7,
            "truth": truth,
            "labels": np.where(i % 9 == 0, 1 - truth, truth),
            "scores": score,
            "guess": np.where(i * 3 % 11 < 3, 1 - truth, truth),
            "other": np.where(i * 3 % 10 < 2, 1 - truth, truth),
        }
    )
    return rows.with_columns(pl.when(pl.Series(i * 11 % 23 < 5)).then("truth").alias("gold"))


ANSWERS = answers()


def simulated(seed: int, times: int, labels: int, rows: int, judge: float, share: float) -> pl.DataFrame:
    """Draws of rows of two groups, of which people labelled some, and a judge is right so often."""
    random = np.random.default_rng(seed)
    size = times * rows
    group = random.integers(0, 2, size)
    truth = random.random(size) < share + 0.1 * group
    by_judge = np.where(random.random(size) < judge, truth, ~truth)
    one = np.where(random.random(size) < 0.8, truth, ~truth)
    order = random.random((times, rows)).argsort(axis=1).argsort(axis=1).ravel()
    return pl.DataFrame(
        {
            "draw": np.repeat(np.arange(times), rows),
            "group": group,
            "truth": truth,
            "labels": by_judge,
            "guess": one,
        }
    ).with_columns(pl.when(pl.Series(order < labels)).then("truth").alias("gold"))
