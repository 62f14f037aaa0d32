"""Small data, and the tolerance of permutation tests on them."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

TIMES = 10_000
SAME = 1e-9


def error(share: float, times: int = TIMES) -> float:
    """How far a share of draws may be off."""
    return 4.5 * math.sqrt(max(share * (1 - share), 1 / times) / times) + 2 / times


SMALL = pl.DataFrame(
    {
        "t": [1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0], "e": [1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1],
        "g": list("aaaabbbbbccccc"), "i": [1, 2] * 7, "h": list("xxyyxyxyxxyyxy"),
        "w": ["u", None, "v", "u", None, "v", "u"] * 2, "flag": [True, False, False] * 4 + [True, True],
        "many": list("pqrpqrpqrpqrpq"), "guess": list("pqpqrrpqrrqrpp"),
    }
)  # fmt: skip


def random_people(rows: int = 300, seed: int = 5) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "t": random.integers(0, 2, rows), "e": random.integers(0, 2, rows), "score": random.uniform(size=rows),
            "g": random.choice(list("abc"), rows, p=[0.5, 0.3, 0.2]), "h": random.choice(["x", "y"], rows),
            "fold": random.integers(1, 4, rows),
        }
    )  # fmt: skip
