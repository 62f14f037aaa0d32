"""The two pages that the benchmarks fill: what users want to know, and how targets were reached, for contributors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from measuring import HEADING, Row, digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scaling import Curve

QUESTIONS = {
    ("5 rates, 3 disparities of one feature, Enum", "streaming `group_by`"): (
        "five rates and three disparities of one feature"
    ),
    ("3 features and their intersection, 10 folds", "streaming `group_by` of six keys"): (
        "five rates and twelve disparities of three features and their intersection, in each of ten folds"
    ),
    ("99 thresholds, 3 features", "one threshold"): "the same features at 99 thresholds",
    ("ROC AUC of 50 groups, exact", "`rank().over()`"): "the area under the ROC curve of 50 groups",
    ('3 disparities of 60 groups, `interval="auto"`, 10,000 replicates', "the values alone"): (
        "three disparities of 60 groups, with 95% confidence intervals"
    ),
    ('3 disparities of 60 groups, `interval="bootstrap"`, 10,000 replicates', "the values alone"): (
        "the same by 10,000 replicates"
    ),
    ("1,000 batches of 1,000 rows", "three whole calls and 1 ms for each batch"): "1,000 batches of 1,000 rows",
    ("a parquet file, 14 metrics, 10 folds, Enum keys", "streaming query of the file"): (
        "14 metrics in each of ten folds, from a parquet file"
    ),
    ("`import tidyfair`", "`import polars`"): "`import tidyfair` (polars is imported at the first call)",
}  # fmt: skip
"""What a user asks, for what is measured, and beside what."""

SPEED = """\
# Speed and memory

A call reads the rows once and counts. Ten million rows take less than a second on two cores, and hardly any memory beyond the data.

## How long will my data take?

Features and labels are Enum columns, folds are whole numbers, scores are floats; text columns cost four to five times as much to count. There is one figure for each question; the tables below compare by ratios, each measured in turns with the other library.

{times}

A call costs some milliseconds however few the rows. Ten times as many rows take less than ten times as long: see [how the cost grows](#how-the-cost-grows). What costs more: permutation tests and replicates of metrics of rank, and [`consistency`](functions/inequality.consistency.md), which compares rows with each other.

## How much memory?

| question | rows | tidyfair, beyond the data |
|---|--:|--:|
{memory}

A parquet file is read in pieces: {file_memory}.

## Compared with what I use today

The same metrics of the same rows, at the largest size that was measured. Every library gets the rows in the form that it likes best, tidyfair gets Enum columns, and all must return the same numbers.

{libraries}

## Compared with queries by hand

The counts alone, from Enum columns (polars, DuckDB) or from integer codes that are there already (numpy), against the whole call of tidyfair, which also checks columns and labels and computes the metrics:

{by_hand}

## How the cost grows

{curves}

## How this was measured

{measured} Times are medians of calls in turns with the other library, after a round that is not counted. Another machine gives other times; the ratios change less. The data are simulated decisions on loans (`tidyfair.datasets.lending`): two labels, features of 2, 5 and 4 values, ten folds, a score. [All measurements, and the targets they are held to](contributors/benchmark-targets.md), are on a page for contributors.
"""  # noqa: E501 - paragraphs of a page

TARGETS = """\
# Benchmark targets

What users want to know is on [Speed and memory](../benchmarks.md). This page has every measurement, and the targets that were set before.

{measured} Another machine gives other times; the ratios change less, but machines are noisy.

How to read the tables:

- A time is a median. tidyfair and the other take turns, after a round that is not counted.
- tidyfair's time is always that of the whole call: columns and labels are checked, rows counted, metrics finished.
- `0.50x` is tidyfair's time divided by the other's: half of it. `50x as fast` is the other's divided by tidyfair's. A figure with a unit is tidyfair's own.
- *asked* is the target that was set before, and *reached* what came out. A target is for a number of rows; on fewer rows it is neither reached nor missed. A call costs some milliseconds however few the rows, so ratios get better with more of them.
- "3 features and their intersection" is 5 rates and 12 disparities, in each fold.

## What was asked

{asked}

## Other libraries

The same metrics of the same rows. Before the clock runs, every library gets the rows in the form that it likes best (arrays, data frames, tensors, its own datasets), and must find the same numbers as tidyfair: to 1e-9, but 1e-6 for torchmetrics, which divides in 32 bits. fairlearn needs one `MetricFrame` for each family of groups, where tidyfair needs one call. AIF360 compares two sides, so tidyfair is asked for the same two.

{libraries}

{left_out}

## By hand

Queries that give the counts which the metrics are made of. For these the count alone is timed: the arithmetic after it is written by hand too, and costs them nothing. numpy's columns are small integers that need no coding.

{by_hand}

## Where the rows are

{engines}

## Memory

Megabytes by which the first call in a new process raises its memory above that of the data, which are loaded before.

{memory}

## More figures

{more}
"""  # noqa: E501 - paragraphs of a page


@dataclass(frozen=True)
class Measured:
    """Everything of one run."""

    about: str
    """When, where, and with which versions."""
    own: Sequence[Row]
    """Of tidyfair beside itself or a query."""
    engines: Sequence[Row]
    others: Sequence[Row]
    """Beside other libraries and by hand, at all sizes."""
    memory: Sequence[Row]
    curves: Sequence[Curve]
    left_out: Sequence[str]

    def at_most_rows(self, reading: str) -> list[Row]:
        """Of what is read so, the largest size of each."""
        most = {(row.what, row.against): row for row in self.others}
        return [row for row in most.values() if row.reading == reading]


def speed(measured: Measured) -> str:
    """The page for users."""
    files = [row for row in measured.own if row.unit == "MB" and row.what.startswith("a parquet file")]
    return SPEED.format(
        times="\n".join(["| question | rows | time |", "|---|--:|--:|", *_times(measured.own)]),
        memory="\n".join(
            _line(row.what.partition(":")[0], _count(row.rows), _amount(row.ours, "MB"))
            for row in measured.memory
            if row.against in ("polars", "fairlearn")
        ),
        file_memory="; ".join(
            f"{_count(row.rows)} rows take {_amount(row.ours, 'MB')} in all "
            f"({'Enum' if 'Enum' in row.what else 'text'} columns)"
            for row in files
        ),
        libraries="\n".join(
            ["| today | question | rows | its time | tidyfair is faster by |", "|---|---|--:|--:|--:|",
             *_beside(measured.at_most_rows("faster"))]
        ),
        by_hand="\n".join(
            ["| by hand | question | rows | its time | tidyfair / by hand |", "|---|---|--:|--:|--:|",
             *_beside(measured.at_most_rows("ratio"))]
        ),
        curves="\n\n".join("\n".join(curve.lines()[:3]) for curve in measured.curves),
        measured=measured.about,
    )  # fmt: skip


def targets(measured: Measured) -> str:
    """The page for contributors."""
    largest = {(row.what, row.against): row for row in measured.others}
    asked = [row for row in (*measured.own, *largest.values(), *measured.memory) if row.asked]
    return TARGETS.format(
        measured=measured.about,
        asked=_table(asked),
        libraries=_table(row for row in measured.others if row.reading == "faster"),
        left_out="\n".join(f"- {each}." for each in measured.left_out) or "Nothing was left out.",
        by_hand=_table(row for row in measured.others if row.reading == "ratio"),
        engines=_table(measured.engines),
        memory=_table(measured.memory),
        more=_table(row for row in measured.own if not row.asked),
    )


def _table(rows: Iterable[Row]) -> str:
    return "\n".join([HEADING, *map(str, rows)])


def _times(rows: Sequence[Row]) -> Iterator[str]:
    measured = {(row.what, row.against): row for row in rows if row.unit == "ms"}
    for asked, question in QUESTIONS.items():
        if row := measured.get(asked):
            yield _line(question, _count(row.rows), _amount(row.ours))


def _beside(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.theirs is not None:
            yield _line(row.against, row.what, _count(row.rows), _amount(row.theirs), digits(row.figure))


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _count(rows: int | None) -> str:
    return "" if rows is None else f"{rows:,}"


def _amount(value: float, unit: str = "ms") -> str:
    """Milliseconds, or seconds where these are many."""
    if unit == "ms" and value >= 1_000:
        return f"{digits(value / 1_000)} s"
    return f"{digits(value)} {unit}"
