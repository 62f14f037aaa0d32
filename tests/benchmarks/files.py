"""What files larger than memory cost, beside hand-written polars: `python tests/benchmarks/files.py`.

Labels of people of three features in ten folds are written to parquet, and counted by the streaming engine; each call
is timed in a process of its own, which is asked for its peak memory. Options: `--rows`, `--runs`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from measuring import Asked, Row, clock, in_turns, peak_memory, run_alone

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = {"sex": ["female", "male"], "race": list("abcde"), "age_band": list("uvwxyz")}
PART, _ASKED_ROWS = 1_000_000, 50_000_000
FAIR = tf.metric_set(
    tf.accuracy, tf.sens, tf.spec, tf.mcc,
    *(factory(by) for factory in (tf.demographic_parity, tf.equal_opportunity, tf.equalized_odds) for by in LEVELS),
    tf.demographic_parity(*LEVELS),
)  # fmt: skip


def written(path: Path, rows: int, *, texts: bool, seed: int = 0) -> None:
    """Write the rows part by part, so that this process needs no memory for them either."""
    random = np.random.default_rng(seed)
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


def told(way: str, path: Path, runs: int) -> None:
    """Print the median milliseconds of a call, and the peak memory of this process in MB."""
    rows = pl.scan_parquet(path)

    def call() -> object:
        if way == "polars":
            return rows.group_by(*LEVELS, "fold", "truth", "estimate").len().collect(engine="streaming")
        return FAIR(rows, "truth", "estimate", group_by="fold")

    (seconds,) = in_turns(clock(call), runs=runs)
    print(seconds * 1e3, peak_memory())


def measure(rows: int, runs: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        for kind, memory in (("Enum", 300), ("text", 800)):
            written(path, rows, texts=kind == "text")
            found: dict[str, list[list[float]]] = {"tidyfair": [], "polars": []}
            for _ in range(runs):
                for way, each in found.items():
                    command = [sys.executable, __file__, way, str(path), str(runs)]
                    answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own
                    each.append([float(value) for value in answer.stdout.split()])
            ours, theirs = ([statistics.median(side) for side in zip(*each, strict=True)] for each in found.values())
            what, query = f"a parquet file, {len(FAIR)} metrics, 10 folds, {kind} keys", "streaming query of the file"
            yield Row(what, query, rows, ours[0], theirs[0], asked=Asked(1.1, rows=_ASKED_ROWS))
            yield Row(
                f"{what}: peak memory", query, rows, ours[1], theirs[1], "MB", "itself", Asked(memory, _ASKED_ROWS)
            )


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in {"polars", "tidyfair"}:
        told(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        run_alone(__doc__, measure, rows=_ASKED_ROWS, runs=3)
