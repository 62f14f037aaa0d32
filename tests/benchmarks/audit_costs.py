"""What an audit costs: everything on the page for people from AIF360 against its tally, and searches.

`python tests/benchmarks/audit_costs.py`. Options: `--rows`, `--runs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from measuring import Row, compared, run_alone

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Iterator

FEATURES = ("sex", "race")
RATES = (
    tf.accuracy, tf.error_rate, tf.true_positive_rate, tf.true_negative_rate, tf.false_positive_rate,
    tf.false_negative_rate, tf.positive_predictive_value, tf.negative_predictive_value, tf.false_discovery_rate,
    tf.false_omission_rate, tf.selection_rate, tf.base_rate,
)  # fmt: skip
COMPARED = (
    *(getattr(rate, way) for rate in RATES for way in ("difference", "ratio")),
    tf.average_abs_odds_difference,
    tf.equalized_odds,
    tf.inequality.between_group_generalized_entropy_index,
    tf.inequality.between_group_theil_index,
    tf.inequality.between_group_coefficient_of_variation,
    tf.differential_fairness,
    tf.distributions.bias_amplification,
)
EVERY = tf.metric_set(
    *RATES, tf.inequality.generalized_entropy_index, tf.inequality.theil_index, tf.inequality.benefit_variation,
    *(factory(by) for by in FEATURES for factory in COMPARED),
)  # fmt: skip
"""The rates first, then everything of the first feature."""


def measure(rows: int, runs: int) -> Iterator[Row]:
    enums = lending(rows).with_columns(pl.col("repaid", "approved") == "yes")
    texts = lending(rows).with_columns(pl.col("repaid", "approved", *FEATURES).cast(pl.String))
    for kind, data, event in (("Enum", enums, None), ("text", texts, "yes")):
        yield compared(
            f"{len(EVERY)} metrics of 2 features, {kind} columns", "their tally",
            lambda data=data, event=event: EVERY(data, "repaid", "approved", pos_label=event),
            lambda data=data: EVERY.tally(data, "repaid", "approved"), rows=rows, runs=runs,
        )  # fmt: skip
    few = tf.metric_set(*EVERY.metrics[:9])
    yield compared(
        f"{len(EVERY)} metrics of 2 features", f"{len(few)} of them",
        lambda: EVERY(enums, "repaid", "approved"), lambda: few(enums, "repaid", "approved"), rows=rows, runs=runs,
    )  # fmt: skip
    search = tf.inference.subgroup_search(tf.fall_out, ["sex", "race", "age_band"], depth=3)
    yield compared(
        "89 conjunctions, 2,000 permutations", "their tally",
        lambda: search(enums, "repaid", "approved"),
        lambda: tf.equal_opportunity("sex", "race", "age_band").tally(enums, "repaid", "approved"),
        rows=rows, runs=runs,
    )  # fmt: skip
    near = enums.head(100_000).with_columns(
        (pl.col("weight").sort_by(pl.int_range(pl.len()).shuffle(seed)) + pl.col("score")).alias(f"x{seed}")
        for seed in range(10)
    )
    alike, half = tf.inequality.consistency([f"x{seed}" for seed in range(10)]), near.head(len(near) // 2)
    yield compared(
        "consistency of rows by 10 features", "half of the rows",
        lambda: alike(near, estimate="approved"), lambda: alike(half, estimate="approved"), rows=len(near), runs=1,
    )  # fmt: skip


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=1_000_000, runs=9)
