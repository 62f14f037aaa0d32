"""All benchmarks in one run, as two pages of the docs: one for users, and one with the targets.

`python tests/benchmarks/suite.py --write docs/pages`. Options: `--rows` (some; targets are for the largest), `--runs`,
`--peer-python NAME=PATH` (some), `--write`. Without `--write` the pages are printed at the end. Rows are shown while
they are measured.
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path

import audit_costs
import counting
import engines
import files
import intervals
import scaling
import scores
import streams
from measuring import machine, printed, versions
from pages import Measured, speed, targets
from peers import Peers, with_peers

OWN = (counting, scores, intervals, streams, audit_costs, engines)
_MOST_FOR_AUDITS = 1_000_000
"""Audits and streams have parts of a fixed size, and say nothing more about more rows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    with_peers(parser)
    parser.add_argument("--write", type=Path, help="the folder of the pages")
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

    found = ", ".join(
        [versions("tidyfair", "polars", "narwhals", "numpy"),
         *(f"{name} {version}" for name, version in peers.versions.items() if name not in ("polars", "numpy"))]
    )  # fmt: skip
    measured = Measured(
        about=(
            f"All figures are of one run on {dt.datetime.now(tz=dt.UTC).date()}, of `python tests/benchmarks/suite.py "
            f"--rows {' '.join(map(str, sizes))} --runs {runs}`: {machine()}; {found}."
        ),
        engines=own.pop("engines"),
        own=[row for rows in own.values() for row in rows],
        others=others,
        memory=memory,
        curves=curves,
        left_out=peers.left_out,
    )
    for name, page in (("benchmarks.md", speed(measured)), ("contributors/benchmark-targets.md", targets(measured))):
        if options.write:
            (options.write / name).write_text(page, "utf-8")
        else:
            print(page)


if __name__ == "__main__":
    main()
