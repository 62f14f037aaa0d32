"""What a call costs, as ratios to hand-written polars in the same process: `python tests/benchmarks/counting.py`.

Machines are noisy: every figure is the ratio of two medians, taken in turns. Options: `--rows`, `--runs`.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

RATES = (tf.accuracy, tf.sens, tf.spec, tf.precision, tf.selection_rate)
FEATURES = ("sex", "race", "age_band")


def disparities(*by: str) -> tuple[tf.GroupwiseMetric, ...]:
    return tuple(factory(*by) for factory in (tf.demographic_parity, tf.equal_opportunity, tf.equalized_odds))


def medians(*calls: Callable[[], object], runs: int) -> list[float]:
    """Median seconds of each call, the calls taken in turns after one that is not counted."""
    seconds: list[list[float]] = [[] for _ in calls]
    for run in range(runs + 1):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            if run:
                seconds[place].append(time.perf_counter() - start)
    return [statistics.median(each) for each in seconds]


def by_hand(data: pl.DataFrame, *keys: str, weights: str | None = None) -> Callable[[], object]:
    sums = [pl.len()] if weights is None else [pl.len(), pl.col(weights).sum()]
    query = data.lazy().group_by(*keys, "repaid", "approved").agg(sums)
    return lambda: query.collect(engine="streaming")


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> None:
    mine, other = medians(ours, theirs, runs=runs)
    print(f"| {name} | {mine / other:.2f} | {mine * 1e3:.1f} | {other * 1e3:.1f} |", flush=True)


def seconds_to_import(module: str) -> Callable[[], object]:
    # as an installed package: compiled once, in the run that is not counted
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=env)  # noqa: S603 - our own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    runs = options.runs
    print(
        f"polars {pl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {options.rows:,} rows\n"
    )
    print("| the whole call against | ratio | ms | ms by hand |\n|---|---|---|---|")

    data = lending(options.rows)
    one = tf.metric_set(*RATES, *disparities("race"))
    first = "5 rates, 3 disparities, one `by` against a streaming group_by: "
    compare(first + "Enum", lambda: one(data, "repaid", "approved", pos_label="yes"), by_hand(data, "race"), runs)
    flags = data.with_columns(pl.col("repaid", "approved") == "yes")
    compare(first + "Boolean labels", lambda: one(flags, "repaid", "approved"), by_hand(flags, "race"), runs)
    numbers = flags.with_columns(pl.col("repaid", "approved").cast(pl.Int64))
    compare(first + "Int64 labels", lambda: one(numbers, "repaid", "approved"), by_hand(numbers, "race"), runs)
    weighed = by_hand(data, "race", weights="weight")
    compare(
        first + "Enum, weights",
        lambda: one(data, "repaid", "approved", pos_label="yes", case_weights="weight"),
        weighed,
        runs,
    )
    every = tf.metric_set(
        *RATES, *(each for feature in FEATURES for each in disparities(feature)), *disparities(*FEATURES)
    )
    compare(
        "3 features and their intersection, 10 folds against a six-key group_by",
        lambda: every(data, "repaid", "approved", pos_label="yes", group_by="fold"),
        by_hand(data, *FEATURES, "fold"),
        runs,
    )
    small = data.head(1_000)
    ten = tf.metric_set(
        *RATES,
        tf.f_meas,
        tf.mcc,
        tf.demographic_parity("sex"),
        tf.equalized_odds("race"),
        tf.equal_opportunity("age_band"),
    )
    compare(
        "1,000 rows, 10 metrics, 3 `by`, 10 folds (latency: see ms)",
        lambda: ten(small, "repaid", "approved", pos_label="yes", group_by="fold", on_undefined="ignore"),
        by_hand(small, *FEATURES, "fold"),
        10 * runs,
    )
    compare("import tidyfair against import polars", seconds_to_import("tidyfair"), seconds_to_import("polars"), runs)


if __name__ == "__main__":
    main()
