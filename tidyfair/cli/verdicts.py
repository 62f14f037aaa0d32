"""The verdicts on conditions: a sentence on all of them, their table with what it leaves out, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.cli.fail_if import SIDES
from tidyfair.cli.outputs import Part, in_words, records, with_cuts_in_words
from tidyfair.evaluation import texts_of
from tidyfair.inference.gates import (
    FAIL,
    PASS,
    UNKNOWN_ROWS,
    UNKNOWN_SHARE,
    UNSURE,
    WITH_UNKNOWN,
    Outside,
    outside_of,
    share_in_words,
)
from tidyfair.reports import (
    Units,
    headline,
    left_out_in_words,
    one_below_the_other,
    percent,
    units_of,
    units_of_changes,
    value_and_limit,
)
from tidyfair.specs import SELECTIONS, key_columns

_NAME = "\0name"
_EXIT_CODES = {PASS: 0, FAIL: 3, UNSURE: 4}


@dataclass(frozen=True)
class Verdicts:
    """Values or changes with their limits and verdicts."""

    frame: pl.DataFrame
    metrics: Sequence[Metric | GroupwiseMetric]
    confidence: float
    """The confidence level of verdicts."""
    outside: Outside
    """The effect of groups outside the policy."""
    change: str = ""
    """The words before the name of a metric whose change is judged."""
    shown: pl.DataFrame | None = None
    """The verdicts with the intervals that an audit shows, at its `level`, in place of the bounds that decide."""
    level: float | None = None

    @cached_property
    def units(self) -> Units:
        """The unit of each metric that has one, or of its change."""
        units = units_of(self.metrics)
        return units_of_changes(units) if self.change else units

    @property
    def exit_code(self) -> int:
        """The exit code of the worst verdict: 3 where one fails, 4 where there is not enough evidence for another."""
        return exit_code(self.frame[".verdict"])

    @property
    def content(self) -> dict[str, Any]:
        """The verdicts in JSON documents."""
        return {"confidence": self.confidence, "verdicts": records(self.frame)}

    def _named_rows(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """The name of each metric with its feature, the bad side of its limit, and its row."""
        sides = {(metric.name, metric.by and metric.by.text): SIDES[metric.direction] for metric in self.metrics}
        for row in (self.frame if self.shown is None else self.shown).iter_rows(named=True):
            name, by = row[".metric"], row[".by"]
            yield name if by is None else f"{name}({by})", sides[name, by], row

    def sentence(self) -> str:
        """The sentence on all verdicts, as a page shows it."""
        if self.frame.is_empty():
            return f"{UNSURE.upper()}: there is nothing to judge."
        outer = key_columns(self.frame)
        clauses: list[str] = []
        for name, side, row in self._named_rows():
            where = f" ({', '.join(f'{key} {row[key]}' for key in outer)})" if outer else ""
            good, unit = "above" if side == "<" else "below", self.units.get(row[".metric"], "")
            clauses.append(value_and_limit(f"{self.change}{name}{where}", row, good, unit))
        sentence = headline(self.frame[".verdict"].to_list(), clauses)
        (verdict,) = (outcome for outcome in _EXIT_CODES if sentence.lower().startswith(outcome))
        return verdict.upper() + sentence[len(verdict) :]

    def _remarks_on_left_out(self) -> list[str]:
        """Sentences on the groups that verdicts are not about, or cannot pass without."""
        left_out: dict[tuple[str, str], list[Any]] = {}
        for name, _, row in self._named_rows():
            holds, groups = "is not about", outside_of(row)
            if row[".verdict"] != PASS:
                left: list[str] = row[".groups_left_out"] or []
                stated: list[str] = row[".groups_outside"] if self.outside == "state" else []
                holds, groups = "cannot pass without", [group for group in left if group not in stated]
            if groups:
                entries = [entry for entry in row[".left_out"] if entry["group"] in groups]
                left_out.setdefault((name, holds), []).extend(entries)
        return [f"{name} {holds} {left_out_in_words(entries, str)}." for (name, holds), entries in left_out.items()]

    def part(self, *, is_full: bool = True) -> Part:
        """The table of verdicts with the bounds that decide them; counts in outer groups unless `is_full`."""
        conditions = [f"{self.change}{name} {side} {row['.limit']:g}" for name, side, row in self._named_rows()]
        remarks = self._remarks_on_left_out() + _remarks_on_unknown(self.frame)
        shown = self.frame if self.shown is None else self.shown
        named = with_cuts_in_words(shown.with_columns(pl.Series(".condition", conditions, dtype=pl.String)))
        outer = key_columns(self.frame)
        cuts = [name for name in SELECTIONS if name in named.columns]
        if outer and not is_full:
            counts = _counts(named, outer, cuts)
            return Part("Verdicts", in_words(counts), (), "fails if", tuple(remarks))
        value = ".change" if ".change" in named.columns else ".estimate"
        columns = (*outer, *cuts, ".metric", ".condition", value, ".lower", ".upper", ".verdict")
        table = one_below_the_other(named.select(columns), units_of(self.metrics)).drop(".metric")
        bound = f"one-sided {percent(self.confidence)} confidence bound"
        if self.level is None:
            remarks.append(f"Each end of an interval is a {bound}.")
        else:
            remarks.append(f"Intervals are {percent(self.level)} confidence intervals; a {bound} decides.")
        if len(self.frame) > 1:
            remarks.append(
                "Failures are adjusted for the number of conditions (Holm), so that a value beyond its limit may not "
                "fail."
            )
        return Part("Verdicts", in_words(table), (), "fails if", tuple(remarks))


def _counts(named: pl.DataFrame, outer: list[str], cuts: list[str]) -> pl.DataFrame:
    """How many outer groups fail, pass or neither by condition, and the names of those that fail."""
    names = texts_of(named.select(outer), ", ").alias(_NAME)
    failing = pl.col(_NAME).filter(pl.col(".verdict") == FAIL).str.join(", ")
    numbers = [(pl.col(".verdict") == one).sum().cast(pl.Int64).alias(one) for one in (FAIL, UNSURE, PASS)]
    counts = named.with_columns(names).group_by(".condition", *cuts, maintain_order=True)
    return counts.agg(*numbers, failing.alias(f"failing {', '.join(outer)}"))


def exit_code(verdicts: Iterable[str]) -> int:
    """The exit code of the worst of some verdicts; where nothing is judged nothing has passed."""
    outcomes = set(verdicts) or {UNSURE}
    return next(_EXIT_CODES[one] for one in (FAIL, UNSURE, PASS) if one in outcomes)


def _remarks_on_unknown(verdicts: pl.DataFrame) -> list[str]:
    """Sentences on the rows of unknown groups, which are not compared, and on verdicts that they turn."""
    if UNKNOWN_ROWS not in verdicts.columns:
        return []
    remarks: list[str] = []
    for (by,), judged in verdicts.filter(pl.col(UNKNOWN_ROWS) > 0).group_by(".by", maintain_order=True):
        # each metric of a feature has the same rows, in each outer group
        one = judged.filter(pl.col(".metric") == judged[".metric"][0])
        one = one.unique(key_columns(one)) if key_columns(one) else one[:1]
        rows, share = int(one[UNKNOWN_ROWS].sum()), float(one[UNKNOWN_SHARE].max())  # pyright: ignore[reportArgumentType] - numbers
        share_of_all = f"{'up to ' if len(one) > 1 else ''}{share_in_words(share)} of all"
        verb = "row is" if rows == 1 else "rows are"
        remark = f"{by}: {rows:,} {verb} of unknown groups ({share_of_all}) and not compared."
        turned = judged.filter(pl.col(WITH_UNKNOWN) != PASS)[".metric"].unique(maintain_order=True)
        if len(turned):
            remark += (
                f" Compared as groups of their own they keep {', '.join(turned)} from passing: `--unknown group` shows "
                "that comparison, and `--unknown drop` states that they are meant to be left out."
            )
        remarks.append(remark)
    return remarks
