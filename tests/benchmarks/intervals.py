"""What intervals cost, beside the values alone: `python tests/benchmarks/intervals.py`.

Three disparities of 60 groups, with 10,000 replicates. Options: `--rows`, `--runs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from measuring import Asked, Row, compared, forget_peak, peak_memory, run_alone

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

METRICS = tf.metric_set(tf.equalized_odds("group"), tf.demographic_parity("group"), tf.equal_opportunity("group"))
_TIMES, _FEW_TIMES = 10_000, 100
_CELLS = 100_000


def people(rows: int, groups: int) -> pl.DataFrame:
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "group": random.integers(0, groups, rows, dtype=np.int32),
            "truth": random.random(rows) < 0.4,
            "estimate": random.random(rows) < 0.5,
        }
    )


def measure(rows: int, runs: int) -> Iterator[Row]:
    def call(data: pl.DataFrame, **asked: Any) -> pl.DataFrame:
        return METRICS(data, "truth", "estimate", **asked)

    # first, since memory that was had once may be kept
    many = people(10 * _CELLS, _CELLS // 4)
    forget_peak()
    before = peak_memory()
    call(many, interval="bootstrap", times=_FEW_TIMES, on_undefined="ignore")
    yield Row(
        f"{_FEW_TIMES} replicates of {_CELLS:,} cells: peak memory", "before the call", len(many), peak_memory(),
        before, unit="MB",
    )  # fmt: skip
    data = people(rows, 60)
    values = "the values alone"
    for way, asked in (("auto", None), ("bootstrap", Asked(5))):
        yield compared(
            f'3 disparities of 60 groups, `interval="{way}"`, {_TIMES:,} replicates', values,
            lambda way=way: call(data, interval=way, times=_TIMES), lambda: call(data),
            rows=rows, runs=runs, asked=asked,
        )  # fmt: skip


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=10_000_000, runs=5)
