"""What intervals cost beside the values alone: `python tests/benchmarks/intervals.py`.

Three disparities of 60 groups; fairlearn's bootstrap of rows, where it is installed, is timed with few replicates of
fewer rows, and multiplied. Options: `--rows`, `--times`, `--runs`, `--cells` (for the memory that replicates take).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import resource
from typing import Any

import numpy as np
import polars as pl
from streams import seconds

import tidyfair as tf

METRICS = tf.metric_set(tf.equalized_odds("group"), tf.demographic_parity("group"), tf.equal_opportunity("group"))
_FEW_TIMES = 100
_THEIR_ROWS, _THEIR_TIMES = 100_000, 20


def people(rows: int, groups: int) -> pl.DataFrame:
    random = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "group": random.integers(0, groups, rows, dtype=np.int32),
            "truth": random.random(rows) < 0.4,
            "estimate": random.random(rows) < 0.5,
        }
    )


def of_fairlearn(rows: int, times: int) -> float:
    """The seconds that so many replicates of so many rows would take, from fewer of each."""
    frames: Any = importlib.import_module("fairlearn.metrics")
    data = {name: column.to_numpy() for name, column in people(_THEIR_ROWS, 60).to_dict().items()}
    rates = {"sens": frames.true_positive_rate, "fall_out": frames.false_positive_rate, "rate": frames.selection_rate}

    def call(replicates: int) -> object:
        frame = frames.MetricFrame(
            metrics=rates, y_true=data["truth"], y_pred=data["estimate"], sensitive_features=data["group"],
            n_boot=replicates, ci_quantiles=[0.025, 0.975], random_state=0,
        )  # fmt: skip
        return frame.difference_ci()

    few, more = (seconds(lambda n=n: call(n), 1) for n in (_THEIR_TIMES // 2, _THEIR_TIMES))
    return (more - few) / (_THEIR_TIMES // 2) * times * rows / _THEIR_ROWS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--times", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cells", type=int, default=10**5)
    options = parser.parse_args()

    def call(data: pl.DataFrame, **asked: Any) -> pl.DataFrame:
        return METRICS(data, "truth", "estimate", **asked)

    # first, since memory is known by its peak
    few = people(10 * options.cells, options.cells // 4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    call(few, interval="bootstrap", times=_FEW_TIMES)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.cells:,} cells, {_FEW_TIMES} replicates: peak memory {peak:.0f} MB, {before:.0f} MB before")
    data = people(options.rows, 60)
    call(data, interval="auto", times=options.times)
    alone = seconds(lambda: call(data), options.runs)
    print(f"{options.rows:,} rows, 60 groups, three disparities: {alone:.2f} s")
    for way in ("auto", "bootstrap"):
        taken = seconds(lambda way=way: call(data, interval=way, times=options.times), options.runs)
        print(f'interval="{way}", {options.times:,} replicates: ratio {taken / alone:.2f}; {taken:.2f} s')
    if importlib.util.find_spec("fairlearn"):
        theirs = of_fairlearn(options.rows, options.times)
        print(f"fairlearn's bootstrap, extrapolated: {theirs / taken:,.0f} times as long as ours; {theirs:,.0f} s")


if __name__ == "__main__":
    main()
