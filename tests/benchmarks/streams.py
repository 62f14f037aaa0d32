"""What batches cost: 1,000 of 1,000 rows against one call, in the same process: `python tests/benchmarks/streams.py`.

torchmetrics is left out where it is not installed. Options: `--batches`, `--rows`, `--runs`.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from typing import TYPE_CHECKING, Any

import polars as pl
from counting import FEATURES, disparities

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = tf.metric_set(tf.accuracy, *(each for feature in FEATURES for each in disparities(feature)))


def seconds(call: Callable[[], object], runs: int) -> float:
    found: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def against_torchmetrics(batches: list[pl.DataFrame], runs: int) -> None:
    """The same two metrics of the same batches; there each batch is given as tensors, made before the clock runs."""
    # where they are installed
    torch: Any = importlib.import_module("torch")
    their_metric: Any = importlib.import_module("torchmetrics.classification").BinaryFairness
    tensors = [
        tuple(
            torch.tensor(each.to_physical().cast(pl.Int64).to_numpy())
            for each in (batch["approved"], batch["repaid"], batch["race"])
        )
        for batch in batches
    ]
    metrics = tf.metric_set(tf.demographic_parity_ratio("race"), tf.equal_opportunity_ratio("race"))

    def theirs() -> None:
        seen = their_metric(5)
        for batch in tensors:
            seen.update(*batch)
        seen.compute()

    def ours() -> None:
        seen = tf.Accumulator(metrics, "repaid", "approved")
        for batch in batches:
            seen.update(batch)
        seen.compute(pos_label="yes")

    theirs()
    ours()
    mine, other = seconds(ours, runs), seconds(theirs, runs)
    ratio = f"ratio {mine / other:.2f}; {mine:.2f} s against {other:.2f} s"
    print(f"torchmetrics' BinaryFairness, {len(batches[0]):,} rows a batch: {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000)
    options = parser.parse_args()
    data = lending(options.batches * options.rows)
    batches = list(data.iter_slices(options.rows))

    def streamed() -> None:
        seen = tf.Accumulator(METRICS, "repaid", "approved")
        for batch in batches:
            seen.update(batch)
        seen.compute(pos_label="yes")

    def at_once() -> None:
        METRICS(data, "repaid", "approved", pos_label="yes")

    if importlib.util.find_spec("torchmetrics"):
        against_torchmetrics(batches, options.runs)
    stream, once = seconds(streamed, options.runs), seconds(at_once, options.runs)
    allowed = 3 * once + options.batches * 1e-3
    print(
        f"{options.batches:,} batches: {stream:.2f} s; one call: {once:.3f} s; 3 calls + 1 ms a batch: {allowed:.2f} s"
    )
    print(f"ratio to what is allowed: {stream / allowed:.2f}; {stream / options.batches * 1e3:.2f} ms a batch")


if __name__ == "__main__":
    main()
