"""What other libraries and queries by hand cost for the same numbers: `python tests/benchmarks/peers.py`.

Each works in a process of its own, in turns with tidyfair in this one, once both have found the same numbers. What is
not installed is left out; `--peer-python fairlearn=PATH` names the interpreter that has it. What would take more than
a minute and a half a call, as the size before lets expect, is left out too. Options: `--rows` (some; from 100,000 on
every group of every fold has a value of every rate, which some libraries make up where there is none), `--runs`,
`--peer-python`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from counting import AUDIT, ONE, RATES
from measuring import Asked, Row, clock, in_turns, printed
from scores import AUC, GROUPS, scored
from ways import BATCH, FEATURES, REPLICATES

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from measuring import Clock

PATIENCE = 90.0
"""Seconds that a call of another library may take."""
_SLOW, _FEW_RUNS = 3.0, 3

_SIDES = tf.privileged(race="White")
_OF_SIDES = tf.metric_set(
    *RATES, tf.statistical_parity_difference(_SIDES), tf.equal_opportunity(_SIDES),
    tf.average_abs_odds_difference(_SIDES),
)  # fmt: skip
_OF_EACH = tf.metric_set(*RATES)
_SMALLEST_RATIOS = tf.metric_set(tf.demographic_parity_ratio("race"), tf.equal_opportunity_ratio("race"))
_REPLICATED = tf.metric_set(
    tf.demographic_parity("group"), tf.equal_opportunity("group"), tf.false_positive_rate.difference("group")
)


def in_batches(data: pl.DataFrame) -> pl.DataFrame:
    seen = tf.Accumulator(_SMALLEST_RATIOS, "repaid", "approved")
    for batch in data.iter_slices(BATCH):
        seen.update(batch)
    return seen.compute(pos_label="yes")


class Work(NamedTuple):
    what: str
    ours: Callable[[pl.DataFrame], Any]


def _of_labels(metrics: tf.types.MetricSet, **asked: Any) -> Callable[[pl.DataFrame], Any]:
    return lambda data: metrics(data, "repaid", "approved", pos_label="yes", **asked)


WORKS = {
    "one": Work("5 rates, 3 disparities of one feature", _of_labels(ONE)),
    "audit": Work("3 features and their intersection, 10 folds", _of_labels(AUDIT, group_by="fold")),
    "sides": Work("5 rates, 3 differences of two sides", _of_labels(_OF_SIDES)),
    "each": Work("5 rates of each group", _of_labels(_OF_EACH, group_by="race")),
    "ratios": Work("2 ratios of one feature", _of_labels(_SMALLEST_RATIOS)),
    "batches": Work(f"2 ratios of one feature, batches of {BATCH:,} rows", in_batches),
    "areas": Work(f"ROC AUC of {GROUPS} groups", lambda data: AUC.by_group(data, "y", probs="score")),
    "replicates": Work(
        f"3 disparities of {GROUPS} groups, {REPLICATES} replicates",
        _of_labels(_REPLICATED, interval="bootstrap", times=REPLICATES, on_undefined="ignore"),
    ),
}


class Comparison(NamedTuple):
    way: str
    work: str
    against: str
    asked: Asked | None = None
    tolerance: float = 1e-9


COMPARISONS = (
    Comparison("polars", "one", "polars: streaming `group_by`"),
    Comparison("numpy", "one", "numpy: `bincount` of codes"),
    Comparison("duckdb", "one", "DuckDB: SQL on its own table"),
    Comparison("polars", "audit", "polars: streaming `group_by`"),
    Comparison("numpy", "audit", "numpy: `bincount` of codes"),
    Comparison("duckdb", "audit", "DuckDB: SQL on its own table"),
    Comparison("scikit-learn", "one", "scikit-learn: `confusion_matrix` in a loop"),
    Comparison("fairlearn", "one", "fairlearn: `MetricFrame`"),
    Comparison("fairlearn", "audit", "fairlearn: four `MetricFrame`s", Asked(10_000)),
    Comparison("fairlearn", "replicates", "fairlearn: `MetricFrame(n_boot=…)`"),
    Comparison("aif360", "sides", "AIF360: `ClassificationMetric`, datasets there", Asked(50)),
    Comparison("aequitas", "each", "aequitas: `Group().get_crosstabs`"),
    # it divides in 32 bits
    Comparison("torchmetrics", "ratios", "torchmetrics: `BinaryFairness`", Asked(25), tolerance=1e-6),
    Comparison("torchmetrics", "batches", "torchmetrics: `BinaryFairness`", tolerance=1e-6),
    Comparison("scikit-learn", "areas", "scikit-learn: `roc_auc_score` in a loop", Asked(8)),
)
BY_HAND = ("polars", "numpy", "duckdb")


class Started(NamedTuple):
    """A worker that has worked once."""

    first: dict[str, Any]
    clock: Clock


@contextmanager
def started(python: str, way: str, work: str, file: Path) -> Generator[Started | None]:
    """A worker, or nothing where it was killed, as for want of memory."""
    command = [python, str(Path(__file__).with_name("ways.py")), way, work, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:  # noqa: S603 - our own
        tell, hear = worker.stdin, worker.stdout
        assert tell
        assert hear

        def seconds() -> float:
            tell.write("\n")
            tell.flush()
            return float(hear.readline())

        answer = hear.readline()
        if not answer and worker.wait() > 0:
            msg = f"{way} failed at {work!r}"
            raise RuntimeError(msg)
        yield Started(json.loads(answer), seconds) if answer else None
        tell.close()


def numbers(result: Any) -> np.ndarray[Any, Any]:
    return result[".estimate"].to_numpy()


@dataclass
class Peers:
    """The comparisons, and what becomes known on the way."""

    pythons: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    left_out: list[str] = field(default_factory=list[str])
    grown: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """Megabytes beyond the data, of the first work."""

    def measure(self, sizes: Sequence[int], runs: int) -> Iterator[Row]:
        """Rows by comparison and size."""
        missing, taken = dict[str, str](), dict[Comparison, tuple[int, float]]()
        with tempfile.TemporaryDirectory() as folder:
            for size in sorted(sizes):
                data, file = scored(size), Path(folder) / "people.npz"
                codes = data.select(
                    pl.col("repaid", "approved", *FEATURES, "group").to_physical(), "score", pl.col("fold") - 1
                )
                np.savez(file, **{column.name: column.to_numpy() for column in codes})  # pyright: ignore[reportArgumentType] - its stub says that all are flags
                self._weigh_ours(file, size)
                for comparison in COMPARISONS:
                    before = taken.get(comparison, (size, 0.0))
                    if comparison.way in missing or (comparison in taken and np.isinf(before[1])):
                        continue
                    if before[1] * size / before[0] > PATIENCE:
                        self._leave_out(
                            comparison, f"not at {size:,} rows: a call would take more than a minute and a half"
                        )
                        continue
                    row = self._compare(comparison, data, file, runs)
                    if isinstance(row, str):
                        missing[comparison.way] = row
                    elif row is None:
                        self._leave_out(
                            comparison, f"not at {size:,} rows: its process was killed, with no memory left"
                        )
                        taken[comparison] = size, float("inf")
                    else:
                        taken[comparison] = size, (row.theirs or 0) / 1e3
                        yield row
        self.left_out += [f"{way} was not there: {why}" for way, why in missing.items()]

    def memory(self) -> Iterator[Row]:
        """What the first work needs beyond the data, each way at its largest size."""
        largest = {way: max(size for one, size in self.grown if one == way) for way, _ in self.grown}
        what = "5 rates, 3 disparities of one feature: memory beyond the data"
        for way, size in largest.items():
            if way != "tidyfair":
                yield Row(
                    what, way, size, self.grown["tidyfair", size], self.grown[way, size], "MB", "itself",
                    Asked(50) if way == "polars" else None,
                )  # fmt: skip

    def _weigh_ours(self, file: Path, size: int) -> None:
        with started(sys.executable, "tidyfair", "one", file) as worker:
            assert worker
            self.grown["tidyfair", size] = worker.first["grown"]

    def _compare(self, comparison: Comparison, data: pl.DataFrame, file: Path, runs: int) -> Row | str | None:
        """A row, why the library is missing, or nothing where it did not end."""
        way, name, against, asked, tolerance = comparison
        work = WORKS[name]
        with started(self.pythons.get(way, sys.executable), way, name, file) as worker:
            if worker is None:
                return None
            if "missing" in worker.first:
                return worker.first["missing"]
            self.versions[way] = worker.first["version"]
            if name == "one":
                self.grown[way, len(data)] = worker.first["grown"]
            np.testing.assert_allclose(
                worker.first["numbers"], numbers(work.ours(data)), rtol=tolerance, atol=tolerance, err_msg=against
            )
            slow = worker.clock() > _SLOW
            ours, theirs = in_turns(
                clock(lambda: work.ours(data)), worker.clock, runs=min(runs, _FEW_RUNS) if slow else runs
            )
        reading = "ratio" if way in BY_HAND else "faster"
        return Row(work.what, against, len(data), ours * 1e3, theirs * 1e3, "ms", reading, asked)

    def _leave_out(self, comparison: Comparison, why: str) -> None:
        self.left_out.append(f"{WORKS[comparison.work].what}, {comparison.against}: {why}")


def with_peers(parser: argparse.ArgumentParser) -> None:
    """The options of scripts that measure peers."""
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--peer-python", action="append", default=[], metavar="NAME=PATH", type=lambda given: given.split("=", 1)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    with_peers(parser)
    options = parser.parse_args()
    peers = Peers(dict(options.peer_python))
    printed(peers.measure(options.rows, options.runs))
    printed(peers.memory())
    print(peers.versions, *peers.left_out, sep="\n")


if __name__ == "__main__":
    main()
