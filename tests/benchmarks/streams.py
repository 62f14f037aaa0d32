"""What batches cost: batches of 1,000 rows beside one call: `python tests/benchmarks/streams.py`.

Options: `--rows`, `--runs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counting import FEATURES, disparities
from measuring import Asked, Row, clock, in_turns, run_alone

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 1_000
_METRICS = tf.metric_set(tf.accuracy, *(each for feature in FEATURES for each in disparities(feature)))


def measure(rows: int, runs: int) -> Iterator[Row]:
    data = lending(rows)
    batches = list(data.iter_slices(BATCH))

    def streamed() -> None:
        seen = tf.Accumulator(_METRICS, "repaid", "approved")
        for batch in batches:
            seen.update(batch)
        seen.compute(pos_label="yes")

    stream, once = in_turns(
        clock(streamed), clock(lambda: _METRICS(data, "repaid", "approved", pos_label="yes")), runs=runs
    )
    allowed = 3e3 * once + len(batches)
    yield Row(
        f"{len(batches):,} batches of {BATCH:,} rows", "three whole calls and 1 ms for each batch", rows,
        stream * 1e3, allowed, asked=Asked(1, rows=1_000_000),
    )  # fmt: skip


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=1_000_000, runs=3)
