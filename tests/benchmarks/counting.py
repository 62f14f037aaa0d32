"""What counting costs, beside the bare query in hand-written polars: `python tests/benchmarks/counting.py`.

Options: `--rows`, `--runs`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
from measuring import Asked, Row, compared, run_alone

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RATES = (tf.accuracy, tf.sens, tf.spec, tf.precision, tf.selection_rate)
FEATURES = ("sex", "race", "age_band")
_FEW = 1_000


def disparities(*by: str) -> tuple[tf.types.GroupwiseMetric, ...]:
    return tuple(factory(*by) for factory in (tf.demographic_parity, tf.equal_opportunity, tf.equalized_odds))


ONE = tf.metric_set(*RATES, *disparities("race"))
AUDIT = tf.metric_set(*RATES, *(each for feature in FEATURES for each in disparities(feature)), *disparities(*FEATURES))


def by_hand(data: pl.DataFrame, *keys: str, weights: str | None = None) -> Callable[[], object]:
    sums = [pl.len()] if weights is None else [pl.len(), pl.col(weights).sum()]
    query = data.lazy().group_by(*keys, "repaid", "approved").agg(sums)
    return lambda: query.collect(engine="streaming")


def importing(code: str) -> Callable[[], object]:
    # as an installed package: compiled once, in the run that is not counted
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=env)  # noqa: S603 - our own


def measure(rows: int, runs: int) -> Iterator[Row]:
    data = lending(rows)
    flags = data.with_columns(pl.col("repaid", "approved") == "yes")
    numbers = flags.with_columns(pl.col("repaid", "approved").cast(pl.Int64))
    first, query = "5 rates, 3 disparities of one feature, ", "streaming `group_by`"
    yield compared(
        first + "Enum", query,
        lambda: ONE(data, "repaid", "approved", pos_label="yes"), by_hand(data, "race"),
        rows=rows, runs=runs, asked=Asked(0.2),
    )  # fmt: skip
    for kind, frame in (("Boolean labels", flags), ("Int64 labels", numbers)):
        yield compared(
            first + kind, query,
            lambda frame=frame: ONE(frame, "repaid", "approved"), by_hand(frame, "race"),
            rows=rows, runs=runs,
        )  # fmt: skip
    yield compared(
        first + "Enum, weights", query,
        lambda: ONE(data, "repaid", "approved", pos_label="yes", case_weights="weight"),
        by_hand(data, "race", weights="weight"), rows=rows, runs=runs,
    )  # fmt: skip
    yield compared(
        "3 features and their intersection, 10 folds", "streaming `group_by` of six keys",
        lambda: AUDIT(data, "repaid", "approved", pos_label="yes", group_by="fold"),
        by_hand(data, *FEATURES, "fold"), rows=rows, runs=runs, asked=Asked(0.45),
    )  # fmt: skip
    small = data.head(_FEW)
    ten = tf.metric_set(
        *RATES, tf.f_meas, tf.mcc,
        tf.demographic_parity("sex"), tf.equalized_odds("race"), tf.equal_opportunity("age_band"),
    )  # fmt: skip
    yield compared(
        "10 metrics of few rows, 3 features, 10 folds: latency", "streaming `group_by` of six keys",
        lambda: ten(small, "repaid", "approved", pos_label="yes", group_by="fold", on_undefined="ignore"),
        by_hand(small, *FEATURES, "fold"), rows=len(small), runs=10 * runs, reading="itself", asked=Asked(3, _FEW),
    )  # fmt: skip
    yield compared(
        "`import tidyfair`", "`import polars`", importing("import tidyfair"), importing("import polars"),
        rows=None, runs=runs, asked=Asked(1.1),
    )  # fmt: skip
    some = "from tidyfair import metric_set, sens, demographic_parity"
    yield compared(f"`{some}`", "`import polars`", importing(some), importing("import polars"), rows=None, runs=runs)


if __name__ == "__main__":
    run_alone(__doc__, measure, rows=10_000_000, runs=7)
