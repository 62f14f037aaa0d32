"""Tables of what was simulated: shares of intervals that hold, that miss, and widths."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    Array: TypeAlias = np.ndarray[Any, Any]

LEVEL = 0.95
"""Of intervals; tests are of 5%, and gates are 95% sure."""
LOW, HIGH = 0.93, 0.97
_MISSING = "no interval, %"
INTERVAL = ("covers, %", "truth below, %", "truth above, %", _MISSING, "mean width")
"""The columns of `Limits.shares`."""
_ROUNDING = 1e-12
_FEW_SUBJECTS = 3
_MOST_ON_PAGE = 40
"""Of more settings than these, a page has a line for each subject."""
_WIDTHS = ("mean width", "times as wide")
"""The columns that are averaged beside shares."""


class Table:
    """A Markdown table that is printed while it grows.

    The first column has the subject, such as a metric, by which the coverages are summed up. Names of shares end in %.
    """

    def __init__(self, title: str, about: str, columns: tuple[str, ...], note: str = "") -> None:
        self.title, self.columns = title, columns
        self.lines, self.rows = list[str](), list[tuple[tuple[str, ...], tuple[float, ...]]]()
        headings = [name.strip() for name in about.split("|")]
        self.headings, self.blanks = headings, len(headings) - 1
        self._show(f"\n## {title}\n")
        if note:
            self._show(f"{note}\n")
        self._show(_row([*headings, *columns]))
        self._show(f"|{'---|' * (len(headings) + len(columns))}")

    def add(self, setting: object, *values: float) -> None:
        cells = tuple(name.strip() for name in str(setting).split("|"))
        self.rows.append((cells, values))
        self._show(_row([*cells, *self._texts(values)]))

    def close(self) -> Table:
        values = np.array([numbers for _, numbers in self.rows])
        for name, reduced in (("average", np.nanmean), ("smallest", np.nanmin), ("largest", np.nanmax)):
            numbers = [float(reduced(column)) if not np.isnan(column).all() else np.nan for column in values.T]
            self._show(_row([f"**{name}**", *[""] * self.blanks, *self._texts(numbers)]))
        return self

    def on_page(self) -> list[str]:
        """The table as a page has it: all settings where these are few, else a line for each subject."""
        if len(self.rows) <= _MOST_ON_PAGE:
            return self.lines[1:]
        widths = [name for name in _WIDTHS if name in self.columns]
        numbers = ["average, %", "smallest", "largest"]
        headings = [self.headings[0], "share", *numbers, "worst setting", _MISSING, *widths]
        lines = [_row(headings), f"|{'---|' * len(headings)}"]
        for cells in self._cells_by_subject():
            own = [[value for setting, value in self._of_column(name) if setting[0] == cells[0]] for name in widths]
            lines.append(_row([*cells, *(f"{np.mean(values):.2f}" if values else "" for values in own)]))
        settings = f"{len(self.rows):,} settings: {', '.join(self.headings)}."
        return [settings, "", *lines]

    def in_one_line(self) -> str:
        """The mean and the worst coverage, or the mean and the ends of other shares, by subject where these are few."""
        return f"{self.title}: {'; '.join(map(self._summed_up, self._summed_columns()))}"

    def _summed_up(self, name: str) -> str:
        label, column = name.removesuffix(", %"), self._of_column(name)
        if _is_coverage(name):
            cells, least = min(column, key=lambda pair: pair[1])
            mean = np.mean([share for _, share in column])
            return f"{label} {100 * mean:.1f} % on average, at worst {100 * least:.1f} ({'; '.join(cells)})"
        subjects = self._subjects()
        if len(subjects) > _FEW_SUBJECTS:
            return f"{label} {_range_of([share for _, share in column])}"
        parts = list[str]()
        for subject in subjects:
            shares = [share for cells, share in column if cells[0] == subject]
            if shares:
                parts.append(f"{subject} {_range_of(shares)}")
        return f"{label}: {', '.join(parts)}"

    def _subjects(self) -> list[str]:
        return list(dict.fromkeys(cells[0] for cells, _ in self.rows))

    def summary(self) -> list[str]:
        """A line for each column of shares: cells, average, smallest, largest; of coverages those off by 2 points."""
        lines = list[str]()
        for name in self.columns:
            column = self._of_column(name)
            if not name.endswith("%") or not column:
                continue
            shares = [share for _, share in column]
            ends = " | ".join(f"{100 * share:.1f}" for share in (np.mean(shares), min(shares), max(shares)))
            missed = f"{sum(share < LOW for share in shares)} | {sum(share > HIGH for share in shares)}"
            lines.append(
                f"| {self.title}: {name.removesuffix(', %')} | {len(shares)} | {ends} "
                f"| {missed if _is_coverage(name) else ' | '} |"
            )
        return lines

    def by_subject(self) -> list[str]:
        """A line for each subject and column of shares: average, ends, the worst setting, and runs without an interval.

        The worst coverage is the smallest, and the worst of any other share the largest.
        """
        return [_row([self.title, *cells]) for cells in self._cells_by_subject()]

    def _cells_by_subject(self) -> list[list[str]]:
        """The subject, the column, the average and the ends of it, the worst setting, and runs without an interval."""
        lines: list[list[str]] = []
        for name, subject in itertools.product(self._summed_columns(), self._subjects()):
            column = [(cells, share) for cells, share in self._of_column(name) if cells[0] == subject]
            if not column:
                continue
            shares = [share for _, share in column]
            worst = (min if _is_coverage(name) else max)(column, key=lambda pair: pair[1])[0]
            missing = [share for cells, share in self._of_column(_MISSING) if cells[0] == subject]
            ends = [f"{100 * share:.1f}" for share in (np.mean(shares), min(shares), max(shares))]
            without = f"{100 * np.mean(missing):.1f}" if missing else ""
            lines.append([subject, name.removesuffix(", %"), *ends, "; ".join(worst[1:]), without])
        return lines

    def _summed_columns(self) -> list[str]:
        coverages = [name for name in self.columns if _is_coverage(name)]
        return coverages or [name for name in self.columns if name.endswith("%")]

    def _of_column(self, name: str) -> list[tuple[tuple[str, ...], float]]:
        """The settings and the values of a column, without those that could not be had."""
        if name not in self.columns:
            return []
        index = self.columns.index(name)
        column = [(cells, values[index]) for cells, values in self.rows]
        return [(cells, value) for cells, value in column if not np.isnan(value)]

    def _texts(self, values: Any) -> list[str]:
        return [_text(name, value) for name, value in zip(self.columns, values, strict=True)]

    def _show(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)


def write_summary(page: Path, table: Table) -> None:
    """Write the lines of a table in the summary of a page again; those of other tables stay as they are."""
    first, last = "<!-- all tables -->", "<!-- end of all tables -->"
    lines = page.read_text("utf-8").partition(first)[2].partition(last)[0].strip().splitlines()
    own = [number for number, line in enumerate(lines) if line.startswith(f"| {table.title}: ")]
    start, stop = (own[0], own[-1] + 1) if own else (len(lines), len(lines))
    write_between(page, "all tables", [*lines[:start], *table.summary(), *lines[stop:]])


def write_between(page: Path, name: str, lines: list[str]) -> None:
    """Write what is between the marks of a table on a page again."""
    first, last = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, _, rest = page.read_text("utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not end:
        msg = f"{page} has no {first} with {last} after it."
        raise ValueError(msg)
    page.write_text("\n".join([before + first, "", *lines, "", last + after]), "utf-8")


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(name: str, value: float) -> str:
    if np.isnan(value):
        return ""
    if name.startswith("rows"):
        return f"{value:,.0f}"
    return f"{100 * value:.1f}" if name.endswith("%") else f"{value:.3f}"


def _is_coverage(name: str) -> bool:
    return "cover" in name


def _range_of(shares: list[float]) -> str:
    return f"{100 * np.mean(shares):.1f} % ({100 * min(shares):.1f} to {100 * max(shares):.1f})"


@dataclass(frozen=True)
class Limits:
    """The limits of many runs; those that have none are left out and counted."""

    lower: Array
    upper: Array
    missing: float
    """The share of runs without an interval."""

    @classmethod
    def of(cls, result: pl.DataFrame, runs: int) -> Limits:
        """The limits of a result with a row for each run that has a value."""
        known = result.filter(result[".method"].is_not_null() & result[".estimate"].is_not_null())
        lower = known[".lower"].fill_null(-np.inf).to_numpy()
        upper = known[".upper"].fill_null(np.inf).to_numpy()
        return cls(lower, upper, 1 - len(known) / runs)

    def covers(self, truth: float) -> float:
        return 1 - self.below(truth) - self.above(truth)

    def below(self, truth: float) -> float:
        """The share of intervals that lie above the truth."""
        return _share(truth < self.lower - _ROUNDING)

    def above(self, truth: float) -> float:
        return _share(truth > self.upper + _ROUNDING)

    def width(self) -> float:
        return float((self.upper - self.lower).mean()) if len(self.lower) else np.nan

    def shares(self, truth: float) -> tuple[float, ...]:
        """The columns of `INTERVAL`."""
        return self.covers(truth), self.below(truth), self.above(truth), self.missing, self.width()


def _share(events: Array) -> float:
    return float(events.mean()) if len(events) else np.nan
