"""What the benchmarks share: calls timed in turns, peaks of memory, and rows of Markdown tables.

Only the standard library is imported, since interpreters without tidyfair read it too.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Clock: TypeAlias = Callable[[], float]
    """Does something once, and says how many seconds it took."""

Reading: TypeAlias = Literal["ratio", "faster", "itself"]

HEADING = "| what | against | rows | asked | reached | tidyfair | the other |\n|---|---|---|---|---|---|---|"


def clock(call: Callable[[], object]) -> Clock:
    def seconds() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return seconds


def in_turns(*clocks: Clock, runs: int) -> list[float]:
    """Median seconds of each, taken in turns after a round that is not counted."""
    rounds = [[each() for each in clocks] for _ in range(runs + 1)][1:]
    return [statistics.median(seconds) for seconds in zip(*rounds, strict=True)]


def peak_memory() -> float:
    """The most memory that this process has had since it started or forgot, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # what a process tells of itself in other ways has the peak of the process that started it
        return int(status.read_text("utf-8").partition("VmHWM:")[2].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def forget_peak() -> None:
    """Let the peak start again from the memory in use, where the system can do that."""
    peak = Path("/proc/self/clear_refs")
    if peak.exists():
        peak.write_text("5", "utf-8")


@dataclass(frozen=True)
class Asked:
    """The figure to reach: at most, or at least where it says how many times as fast."""

    limit: float
    rows: int = 10_000_000
    """It is asked of so many rows; what is measured on fewer neither reaches nor misses it."""


@dataclass(frozen=True)
class Row:
    """What was measured, beside what; ours and theirs are milliseconds or megabytes."""

    what: str
    against: str
    rows: int | None
    ours: float
    theirs: float | None = None
    unit: Literal["ms", "MB"] = "ms"
    reading: Reading = "ratio"
    """What the figure is: ours over theirs, theirs over ours, or ours."""
    asked: Asked | None = None

    @property
    def figure(self) -> float:
        if self.reading == "itself" or self.theirs is None:
            return self.ours
        return self.ours / self.theirs if self.reading == "ratio" else self.theirs / self.ours

    @property
    def missed(self) -> bool:
        if self.asked is None or (self.rows is not None and self.rows < self.asked.rows):
            return False
        return self.figure < self.asked.limit if self.reading == "faster" else self.figure > self.asked.limit

    def __str__(self) -> str:
        reached, rows, asked = self._figure(self.figure), "" if self.rows is None else f"{self.rows:,}", ""
        if self.asked:
            asked = f"{'≥' if self.reading == 'faster' else '≤'} {self._figure(self.asked.limit)}"
            asked += f" at {self.asked.rows:,} rows" if self.rows not in (None, self.asked.rows) else ""
        cells = [
            self.what, self.against, rows, asked, f"**{reached}, missed**" if self.missed else reached,
            self._amount(self.ours), "" if self.theirs is None else self._amount(self.theirs),
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |"

    def _figure(self, value: float) -> str:
        if self.reading == "itself":
            return self._amount(value)
        return f"{digits(value)}x{' as fast' if self.reading == 'faster' else ''}"

    def _amount(self, value: float) -> str:
        return f"{digits(value)} {self.unit}"


def digits(value: float) -> str:
    """Two places of what is small, fewer of what is large."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def compared(
    what: str, against: str, ours: Callable[[], object], theirs: Callable[[], object],
    *, rows: int | None, runs: int, reading: Reading = "ratio", asked: Asked | None = None,
) -> Row:  # fmt: skip
    """Two calls in this process."""
    mine, other = in_turns(clock(ours), clock(theirs), runs=runs)
    return Row(what, against, rows, mine * 1e3, other * 1e3, reading=reading, asked=asked)


def printed(rows: Iterable[Row]) -> list[Row]:
    """The rows, each shown as soon as it is known."""
    print(HEADING)
    seen = list[Row]()
    for row in rows:
        print(row, flush=True)
        seen.append(row)
    return seen


def machine() -> str:
    """Cores and memory, and what the figures come from."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB of memory, {platform.system()} on {platform.machine()}"


def versions(*packages: str) -> str:
    """Python's version, and those of the packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def run_alone(about: str | None, measure: Callable[[int, int], Iterator[Row]], *, rows: int, runs: int) -> None:
    """What a script does that is called by itself."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--runs", type=int, default=runs)
    options = parser.parse_args()
    print(f"{machine()}; {versions('tidyfair', 'polars', 'numpy')}\n")
    printed(measure(options.rows, options.runs))
