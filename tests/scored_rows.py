"""Scores with ties, weights and clusters, for tests of areas and calibration errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy import special

SCORED: dict[str, Any] = {"truth": "t", "probs": "s"}


Z = special.ndtri(0.975)


def scored(seed: int, rows: int, rate: float = 0.3, digits: int = 2) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    truth = (random.random(rows) < rate).astype(int)
    score = special.expit(random.normal(size=rows) + 1.5 * truth - 1.5).round(digits)
    return pl.DataFrame({
        "t": truth, "s": score.clip(0.001, 0.999), "w": random.integers(1, 6, rows).astype(float),
        "c": random.integers(0, 25, rows), "g": random.choice(["a", "b", "c"], rows), "row": np.arange(rows),
    })  # fmt: skip


def effective(weight: np.ndarray) -> float:
    return float(weight.sum() ** 2 / (weight**2).sum())
