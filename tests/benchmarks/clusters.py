"""What rows in a cluster cost, beside a `groupby` by hand: `python tests/benchmarks/clusters.py`.

Labels of people of three features in ten folds are written to parquet once, a file for each partition, and counted by
Spark and by Dask with two workers each; the numbers are those of polars. Of Spark the rows are in memory before the
clock runs, Dask reads them each time. Options: `--rows`, `--partitions`, `--runs`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.config
import dask.dataframe
import polars as pl
from dask.callbacks import Callback
from files import FAIR, LEVELS, written
from measuring import clock, digits, in_turns
from polars.testing import assert_frame_equal
from pyspark.sql import SparkSession  # pyright: ignore[reportMissingImports] - only where there is Java

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = [*LEVELS, "fold", "truth", "estimate"]


class Cost(NamedTuple):
    """What a call costs."""

    jobs: int
    ours: float
    theirs: float


def fair(data: Any) -> pl.DataFrame:
    return FAIR(data, "truth", "estimate", group_by="fold", on_undefined="ignore")


def cost(data: Any, by_hand: Callable[[], object], jobs: Callable[[], int], expected: pl.DataFrame, runs: int) -> Cost:
    """The jobs of one call, and the median seconds of several; `jobs` counts those since it was asked last."""
    by_hand()
    jobs()
    assert_frame_equal(fair(data), expected, check_dtypes=False, rel_tol=1e-12)
    return Cost(jobs(), *in_turns(clock(lambda: fair(data)), clock(by_hand), runs=runs))


def of_spark(folder: Path, partitions: int, expected: pl.DataFrame, runs: int) -> Cost:
    # an adaptive plan is one job for each stage, another is one for each query
    options = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR",
        "spark.driver.memory": "2g", "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    people = session.read.parquet(str(folder)).repartition(partitions).cache()
    people.count()
    context, seen = session.sparkContext, 0
    context.setJobGroup("fair", "everything that is timed")

    def jobs() -> int:
        nonlocal seen
        before, seen = seen, len(context.statusTracker().getJobIdsForGroup("fair"))
        return seen - before

    found = cost(people, lambda: people.groupBy(*KEYS).count().toArrow(), jobs, expected, runs)
    session.stop()
    return found


def of_dask(folder: Path, expected: pl.DataFrame, runs: int) -> Cost:
    people = dask.dataframe.read_parquet(folder)
    started: list[object] = []

    def jobs() -> int:
        count = len(started)
        started.clear()
        return count

    with dask.config.set(scheduler="processes", num_workers=2), Callback(start=started.append):
        return cost(people, lambda: people.groupby(KEYS, dropna=False).size().compute(), jobs, expected, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in range(options.partitions):
            written(folder / f"{part}.parquet", options.rows // options.partitions, texts=True, seed=part)
        expected = fair(pl.scan_parquet(folder))
        found = {
            "Spark": of_spark(folder, options.partitions, expected, options.runs),
            "Dask": of_dask(folder, expected, options.runs),
        }
    print(
        f"{options.rows:,} rows in {options.partitions} partitions, two workers: {len(FAIR.metrics)} metrics, by fold\n"
    )
    print("| engine | jobs | tidyfair, s | by hand, s | ratio |\n|---|---|---|---|---|")
    for engine, (jobs, ours, theirs) in found.items():
        print(f"| {engine} | {jobs} | {digits(ours)} | {digits(theirs)} | {digits(ours / theirs)} |")


if __name__ == "__main__":
    main()
