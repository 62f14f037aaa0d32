"""What an audit costs: everything on the page for people from AIF360 against its tally, and searches.

`python tests/benchmarks/audits.py`. Figures are ratios of medians of one run, taken in turns. Options: `--rows`,
`--runs`.
"""

from __future__ import annotations

import argparse
import os
import platform

import polars as pl
from counting import compare

import tidyfair as tf
from tidyfair.datasets import lending

FEATURES = ("sex", "race")
RATES = (
    tf.accuracy, tf.error_rate, tf.true_positive_rate, tf.true_negative_rate, tf.false_positive_rate,
    tf.false_negative_rate, tf.positive_predictive_value, tf.negative_predictive_value, tf.false_discovery_rate,
    tf.false_omission_rate, tf.selection_rate, tf.base_rate,
)  # fmt: skip
COMPARED = (
    *(getattr(tf, f"{rate.name}_{kind}") for rate in RATES for kind in ("difference", "ratio")),
    tf.average_abs_odds_difference, tf.equalized_odds_difference, tf.between_group_generalized_entropy_index,
    tf.between_group_theil_index, tf.between_group_coefficient_of_variation, tf.differential_fairness,
    tf.differential_fairness_of_labels, tf.bias_amplification,
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    runs = options.runs
    print(
        f"polars {pl.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, {options.rows:,} rows\n"
    )
    print("| the whole call against | ratio | ms | ms of the other |\n|---|---|---|---|")
    enums = lending(options.rows).with_columns(pl.col("repaid", "approved") == "yes")
    texts = lending(options.rows).with_columns(pl.col("repaid", "approved", *FEATURES).cast(pl.String))
    every = tf.metric_set(
        *RATES, tf.generalized_entropy_index, tf.theil_index, tf.benefit_variation,
        *(factory(by) for factory in COMPARED for by in FEATURES),
    )  # fmt: skip
    for kind, data, event in (("Enum", enums, None), ("text", texts, "yes")):
        compare(
            f"{len(every)} metrics of 2 features against their tally, {kind} columns",
            lambda data=data, event=event: every(data, "repaid", "approved", pos_label=event),
            lambda data=data: every.tally(data, "repaid", "approved"),
            runs,
        )
    few = tf.metric_set(*every.metrics[:9])
    compare(
        f"{len(every)} metrics against {len(few)} of them",
        lambda: every(enums, "repaid", "approved"), lambda: few(enums, "repaid", "approved"), runs,
    )  # fmt: skip
    search = tf.subgroup_search(tf.fall_out, ["sex", "race", "age_band"], depth=3)
    compare(
        "89 conjunctions, 2,000 permutations, against their tally",
        lambda: search(enums, "repaid", "approved"),
        lambda: tf.equal_opportunity("sex", "race", "age_band").tally(enums, "repaid", "approved"),
        runs,
    )
    near = enums.head(100_000).with_columns(
        (pl.col("weight").sort_by(pl.int_range(pl.len()).shuffle(seed)) + pl.col("score")).alias(f"x{seed}")
        for seed in range(10)
    )
    alike = tf.consistency([f"x{seed}" for seed in range(10)])
    compare(
        "consistency of 100,000 rows by 10 features against one of 50,000",
        lambda: alike(near, estimate="approved"), lambda: alike(near.head(50_000), estimate="approved"), 1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
