"""How often intervals hold what is true, and how often tests and gates are wrong.

`python tests/benchmarks/coverage`. Data are drawn from populations that are known, so that everything can be checked
against the truth. Options: `--runs` (in each cell; what is slow takes a part of them), `--seed`, `--only` (some of the
tables), `--markdown` (a file to write all settings to), `--page` (a page with a pair of marks for each table, such as
`<!-- rates -->` and `<!-- end of rates -->`, between which it is written again).
"""

from __future__ import annotations

import argparse
import time
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import changes
import dependence
import equality
import gates
import groups
import hard
import models
import monitors
import numpy as np
import polars as pl
import searches
import values
from tables import LEVEL, Table, write_between, write_summary

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES: dict[str, Callable[[int, np.random.Generator], Table]] = {
    **values.TABLES, **groups.TABLES, **gates.TABLES, **dependence.TABLES, **models.TABLES, **equality.TABLES,
    **changes.TABLES, **searches.TABLES, **monitors.TABLES, **hard.TABLES,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--markdown", type=Path, help="a file that the tables are written to")
    parser.add_argument("--page", type=Path, help="a page whose tables are written again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of few clusters and of groups without a value, which are simulated on purpose
    about = (
        f"numpy {np.__version__}, polars {pl.__version__}, seed {options.seed}, intervals of {LEVEL:.0%}, "
        f"{options.runs:,} runs in each cell, fewer of what is slow."
    )
    print(about)
    tables, seconds = list[Table](), list[float]()
    for name, measure in TABLES.items():
        if name in options.only:
            start = time.process_time()
            tables.append(measure(options.runs, np.random.default_rng([options.seed, zlib.crc32(name.encode())])))
            seconds.append(time.process_time() - start)
            if options.page:
                note = f"*{options.runs:,} runs or a part of them, seed {options.seed}.*"
                write_between(options.page, name, [note, "", *tables[-1].on_page()])
                write_summary(options.page, tables[-1])
            if options.markdown:
                lines = [about, *_summary(tables, seconds), *(line for table in tables for line in table.lines)]
                options.markdown.write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(_summary(tables, seconds)))


def _of_all(tables: list[Table]) -> list[str]:
    """A line for each column of shares of all tables."""
    headings = ["", "settings", "average, %", "smallest", "largest", "below 93%", "above 97%"]
    heading = f"| {' | '.join(headings)} |"
    return [heading, f"|{'---|' * len(headings)}", *(line for table in tables for line in table.summary())]


def _summary(tables: list[Table], seconds: list[float]) -> list[str]:
    """What all tables come to."""
    lines = ["\n## In one line\n"]
    lines += [f"- {table.in_one_line()} ({took:.0f} s of a core)" for table, took in zip(tables, seconds, strict=True)]
    if by_subject := [line for table in tables for line in table.by_subject()]:
        lines += [
            "\n## By subject\n",
            "| table | subject | column | average, % | smallest | largest | worst | no interval, % |",
        ]
        lines += [f"|{'---|' * 8}", *by_subject]
    lines += ["\n## All\n", "Cells outside of 93 to 97% are counted of coverages.\n"]
    return [*lines, *_of_all(tables)]


if __name__ == "__main__":
    main()
