"""What batches cost: 1,000 of 1,000 rows against one call, in the same process: `python tests/benchmarks/streams.py`.

Options: `--batches`, `--runs`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

from counting import FEATURES, disparities

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = tf.metric_set(tf.accuracy, *(each for feature in FEATURES for each in disparities(feature)))
ROWS = 1_000


def seconds(call: Callable[[], object], runs: int) -> float:
    found: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    data = lending(options.batches * ROWS)
    batches = list(data.iter_slices(ROWS))

    def streamed() -> None:
        seen = tf.Accumulator(METRICS, "repaid", "approved")
        for batch in batches:
            seen.update(batch)
        seen.compute(pos_label="yes")

    def at_once() -> None:
        METRICS(data, "repaid", "approved", pos_label="yes")

    stream, once = seconds(streamed, options.runs), seconds(at_once, options.runs)
    allowed = 3 * once + options.batches * 1e-3
    print(
        f"{options.batches:,} batches: {stream:.2f} s; one call: {once:.3f} s; 3 calls + 1 ms a batch: {allowed:.2f} s"
    )
    print(f"ratio to what is allowed: {stream / allowed:.2f}; {stream / options.batches * 1e3:.2f} ms a batch")


if __name__ == "__main__":
    main()
