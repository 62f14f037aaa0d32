"""How the cost grows with rows, groups, features, metrics and folds: `python tests/benchmarks/scaling.py`.

Each table takes turns between its points, and gives ratios to the first. Options: `--rows` (some), `--runs`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from audit_costs import EVERY
from counting import AUDIT, FEATURES, ONE, RATES, disparities
from measuring import clock, digits, in_turns

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_GROUPS = (2, 10, 100, 1_000, 10_000, 100_000)
_METRICS = (5, 15, 30, 60)
_FOLDS = (1, 10, 30, 100)


class Curve(NamedTuple):
    """The cost at some points."""

    what: str
    rows: int | None
    points: tuple[int, ...]
    seconds: tuple[float, ...]

    def lines(self) -> list[str]:
        """A table of Markdown."""
        counts = " | ".join(f"{point:,}" for point in self.points)
        times = " | ".join(f"{digits(each * 1e3)} ms" for each in self.seconds)
        ratios = " | ".join(f"{digits(each / self.seconds[0])}x" for each in self.seconds)
        head = self.what if self.rows is None else f"{self.what}, {self.rows:,} rows"
        return [
            f"| {head} | {counts} |", f"|---|{'---|' * len(self.points)}", f"| time | {times} |",
            f"| to the first | {ratios} |",
        ]  # fmt: skip


def _curve(
    what: str, rows: int | None, points: Sequence[int], call: Callable[[int], Callable[[], object]], runs: int
) -> Curve:
    return Curve(what, rows, tuple(points), tuple(in_turns(*(clock(call(point)) for point in points), runs=runs)))


def measure(sizes: Sequence[int], runs: int) -> Iterator[Curve]:
    """Rows at all sizes; everything else at the largest."""
    sizes = sorted(sizes)
    frames = {size: lending(size).with_columns(pl.col("repaid", "approved") == "yes") for size in sizes}
    yield _curve(
        "rows, 3 features and their intersection, 10 folds", None, sizes,
        lambda size: lambda: AUDIT(frames[size], "repaid", "approved", group_by="fold", on_undefined="ignore"), runs,
    )  # fmt: skip

    rows = sizes[-1]
    data, random = frames[rows], np.random.default_rng(0)

    def with_codes(levels: int, name: str) -> pl.DataFrame:
        return data.with_columns(pl.Series(name, random.integers(0, levels, rows, dtype=np.int32)))

    def groups(count: int) -> Callable[[], object]:
        grouped, metrics = with_codes(count, "group"), tf.metric_set(*RATES, *disparities("group"))
        return lambda: metrics(grouped, "repaid", "approved", on_undefined="ignore")

    # a group of every row is no feature, and refused
    yield _curve("groups of one feature", rows, [count for count in _GROUPS if 10 * count <= rows], groups, runs)

    six = data.with_columns(pl.Series(f"x{place}", random.integers(0, 4, rows, dtype=np.int8)) for place in range(3))

    def features(count: int) -> Callable[[], object]:
        each = (*FEATURES, "x0", "x1", "x2")[:count]
        metrics = tf.metric_set(*RATES, *(metric for feature in each for metric in disparities(feature)))
        return lambda: metrics(six, "repaid", "approved")

    yield _curve("features, one by one", rows, range(1, 7), features, runs)

    def together(count: int) -> Callable[[], object]:
        metrics = tf.metric_set(*RATES, *disparities(*(*FEATURES, "x0", "x1", "x2")[:count]))
        return lambda: metrics(six, "repaid", "approved", on_undefined="ignore")

    yield _curve("features that are crossed", rows, range(1, 7), together, runs)

    def metrics(count: int) -> Callable[[], object]:
        some = tf.metric_set(*EVERY.metrics[:count])
        return lambda: some(data, "repaid", "approved")

    yield _curve("metrics, of two features", rows, _METRICS, metrics, runs)

    def folds(count: int) -> Callable[[], object]:
        folded = with_codes(count, "fold")
        return lambda: ONE(folded, "repaid", "approved", group_by="fold", on_undefined="ignore")

    yield _curve("folds", rows, _FOLDS, folds, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    for curve in measure(options.rows, options.runs):
        print(*curve.lines(), sep="\n", end="\n\n", flush=True)


if __name__ == "__main__":
    main()
