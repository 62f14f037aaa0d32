"""All benchmarks in one run, as a page of the docs.

`python tests/benchmarks/suite.py --write docs/pages/benchmarks.md`. Options: `--rows` (some; targets are for the
largest), `--runs`, `--peer-python NAME=PATH` (some), `--write`. Without `--write` the page is printed at the end. Rows
are shown while they are measured.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import audit_costs
import counting
import engines
import files
import intervals
import scaling
import scores
import streams
from measuring import HEADING, Row, machine, printed, versions
from peers import Peers, with_peers

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = (counting, scores, intervals, streams, audit_costs, engines)
_MOST_FOR_AUDITS = 1_000_000
"""Audits and streams have parts of a fixed size, and say nothing more about more rows."""

PAGE = """\
# What it costs

All figures are of one run on {date}, of `python tests/benchmarks/suite.py --rows {sizes} --runs {runs}`: {machine};
{versions}. Another machine gives other times; the ratios change less, but machines are noisy.

How to read the tables:

- A time is a median. tidyfair and the other take turns, after a round that is not counted.
- tidyfair's time is always that of the whole call: columns and labels are checked, rows counted, metrics finished.
- `0.50x` is tidyfair's time divided by the other's: half of it. `50x as fast` is the other's divided by tidyfair's.
  A figure with a unit is tidyfair's own.
- *asked* is the target that was set before, and *reached* what came out. A target is for a number of rows; on fewer
  rows it is neither reached nor missed. A call costs some milliseconds however few the rows, so ratios get better
  with more of them.
- The data are simulated decisions on loans (`tidyfair.datasets.lending`): two labels, features of 2, 5 and 4 values,
  ten folds, a score. "3 features and their intersection" is 5 rates and 12 disparities, in each fold.

## What was asked

{asked}

## Other libraries

The same metrics of the same rows. Before the clock runs, every library gets the rows in the form that it likes best
(arrays, data frames, tensors, its own datasets), and must find the same numbers as tidyfair: to 1e-9, but 1e-6 for
torchmetrics, which divides in 32 bits. fairlearn needs one `MetricFrame` for each family of groups, where tidyfair
needs one call. AIF360 compares two sides, so tidyfair is asked for the same two.

{libraries}

{left_out}

## By hand

Queries that give the counts which the metrics are made of. For these the count alone is timed: the arithmetic after
it is written by hand too, and costs them nothing. numpy's columns are small integers that need no coding.

{by_hand}

## Where the rows are

{engines}

## How the cost grows

tidyfair alone; the ratio is to the first point of each table.

{curves}

## Memory

Megabytes by which the first call in a new process raises its memory above that of the data, which are loaded before.

{memory}

## More figures

{more}
"""


def table(rows: Sequence[Row]) -> str:
    return "\n".join([HEADING, *map(str, rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    with_peers(parser)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    sizes, runs, largest = sorted(options.rows), options.runs, max(options.rows)

    own = {
        script.__name__: printed(
            script.measure(min(largest, _MOST_FOR_AUDITS) if script in (audit_costs, streams) else largest, runs)
        )
        for script in OWN
    }
    # five times as many rows as in memory
    own["files"] = printed(files.measure(5 * largest, min(runs, 3)))
    peers = Peers(dict(options.peer_python))
    others = printed(peers.measure(sizes, runs))
    memory = printed(peers.memory())
    curves = list(scaling.measure(sizes, runs))

    compared = [row for rows in own.values() for row in rows]
    most = {(row.what, row.against): row for row in others}  # the last is the largest
    asked = [row for row in (*compared, *most.values(), *memory) if row.asked]
    page = PAGE.format(
        date=dt.datetime.now(tz=dt.UTC).date(),
        sizes=" ".join(map(str, sizes)), runs=runs, machine=machine(),
        versions=", ".join(
            [versions("tidyfair", "polars", "narwhals", "numpy"),
             *(f"{name} {found}" for name, found in peers.versions.items() if name not in ("polars", "numpy"))]
        ),
        asked=table(asked),
        libraries=table([row for row in others if row.reading == "faster"]),
        left_out="\n".join(f"- {each}." for each in peers.left_out) or "Nothing was left out.",
        by_hand=table([row for row in others if row.reading == "ratio"]),
        engines=table(own.pop("engines")),
        curves="\n\n".join("\n".join(curve.lines()) for curve in curves),
        memory=table(memory),
        more=table([row for rows in own.values() for row in rows if not row.asked]),
    )  # fmt: skip
    if options.write:
        options.write.write_text(page, "utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
