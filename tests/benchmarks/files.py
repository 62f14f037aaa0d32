"""What files larger than memory cost, beside hand-written polars: `python tests/benchmarks/files.py`.

Labels of people of three features in ten folds are written to parquet, and counted by the streaming engine; each call
is timed in a process of its own, which is asked for its peak memory. Options: `--rows`, `--runs`, `--texts` (features
as text instead of Enums), `--folder`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

import tidyfair as tf

LEVELS = {"sex": ["female", "male"], "race": list("abcde"), "age_band": list("uvwxyz")}
PART = 1_000_000
FAIR = tf.metric_set(
    tf.accuracy, tf.sens, tf.spec, tf.mcc,
    *(factory(by) for factory in (tf.demographic_parity, tf.equal_opportunity, tf.equalized_odds) for by in LEVELS),
    tf.demographic_parity(*LEVELS),
)  # fmt: skip


def written(path: Path, rows: int, *, texts: bool) -> None:
    """Write the rows part by part, so that this process needs no memory for them either."""
    random = np.random.default_rng(0)
    writer: pq.ParquetWriter | None = None
    for start in range(0, rows, PART):
        size = min(PART, rows - start)
        kinds = {name: pl.String if texts else pl.Enum(levels) for name, levels in LEVELS.items()}
        features = {
            name: pl.Series(np.array(levels)[random.integers(0, len(levels), size)], dtype=kinds[name])
            for name, levels in LEVELS.items()
        }
        part = pl.DataFrame(
            {
                **features, "fold": random.integers(0, 10, size, dtype=np.int8),
                "truth": random.random(size) < 0.4, "estimate": random.random(size) < 0.5,
            }
        ).to_arrow()  # fmt: skip
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def measured(way: str, path: Path, runs: int) -> None:
    """Print the median seconds of a call, and the peak memory of this process in MB."""
    rows = pl.scan_parquet(path)

    def call() -> object:
        if way == "polars":
            return rows.group_by(*LEVELS, "fold", "truth", "estimate").len().collect(engine="streaming")
        return FAIR(rows, "truth", "estimate", group_by="fold")

    seconds: list[float] = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    print(statistics.median(seconds[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--measure", choices=["polars", "tidyfair"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (options.folder or Path(folder)) / "people.parquet"
        if options.measure:
            measured(options.measure, path, options.runs)
            return
        written(path, options.rows, texts=options.texts)
        found: dict[str, list[list[float]]] = {"polars": [], "tidyfair": []}
        for _ in range(options.runs):
            for way, each in found.items():
                command = [sys.executable, __file__, "--measure", way, "--folder", str(path.parent)]
                told = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own
                each.append([float(value) for value in told.stdout.split()])
        theirs, ours = ([statistics.median(side) for side in zip(*each, strict=True)] for each in found.values())
        kind, size = "text" if options.texts else "Enum", path.stat().st_size / 2**20
        print(f"{options.rows:,} rows of parquet, {size:.0f} MB, {kind} keys: {len(FAIR.metrics)} metrics")
        print(
            f"ratio to a hand-written streaming group_by {ours[0] / theirs[0]:.2f}: {ours[0]:.2f} and {theirs[0]:.2f} s"
        )
        print(f"peak memory {ours[1]:.0f} MB, hand-written {theirs[1]:.0f} MB")


if __name__ == "__main__":
    main()
