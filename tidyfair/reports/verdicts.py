"""Verdicts of a gate in a report: a headline, a row for each limit, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tidyfair.errors import Status
from tidyfair.inference.gates import (
    FAIL,
    PASS,
    UNKNOWN_ROWS,
    UNKNOWN_SHARE,
    UNSURE,
    WITH_UNKNOWN,
    Gate,
    unknown_in_words,
)
from tidyfair.metrics import at_cut, capitalized, title_of
from tidyfair.reports.blocks import Figure, Folded, Table, Verdict, Verdicts
from tidyfair.reports.findings import disparity_in_words, percent
from tidyfair.reports.tables import ends_in_words, number_in_digits, reason, with_interval
from tidyfair.specs import RowKey, key_of

_ORDER = (FAIL, UNSURE, PASS)
"""Verdicts, the worst first."""
_NAMED = 3
"""The most metrics that a headline names."""


def value_and_limit(name: str, row: Mapping[str, Any], side: str) -> str:
    """The value of a metric, or its change, and the limit of a verdict, as a clause."""
    verb = "has" if _value(row) is None else "is"
    return f"{name} {verb} {_value_in_words(row)}, and must be {side} {row['.limit']:g}"


def headline(verdicts: Sequence[str], clauses: Sequence[str] = ()) -> str:
    """The verdict of a gate as a whole, in a sentence; with clauses on the limits, those of the worst verdicts."""
    overall = min(verdicts, key=_ORDER.index)
    number, total = verdicts.count(overall), len(verdicts)
    limits = "the limit is" if total == 1 else f"{number:,} of {total:,} limits {'is' if number == 1 else 'are'}"
    if overall == PASS:
        sentence = "Pass: the limit is met" if total == 1 else f"Pass: all {total:,} limits are met"
    elif overall == FAIL:
        sentence = f"Fail: {limits} not met"
    else:
        sentence = f"Not enough evidence to decide whether {limits} met"
    if not clauses or (overall == PASS and total > 1):
        return f"{sentence}."
    worst = [clause for verdict, clause in zip(verdicts, clauses, strict=True) if verdict == overall]
    more = [f"and {number - _NAMED:,} more"] if number > _NAMED else []
    return f"{sentence}: {'; '.join([*worst[:_NAMED], *more])}."


def verdicts_of_gate(
    gate: Gate, verdicts: pl.DataFrame, words: Mapping[str, str], limited: Mapping[RowKey, float | None]
) -> Verdicts:
    """The verdict of a gate as a whole, and each of its verdicts, with the features in words.

    `limited` are the disparities over the groups that the page compares, where these are others, by the keys of rows.
    """
    names = [(metric.name, metric.by.text if metric.by else None) for metric in gate.metrics]
    sides = dict(zip(names, (side for side, _ in gate.limits), strict=True))
    rows: list[Verdict] = []
    for row in verdicts.iter_rows(named=True):
        by, key = row[".by"], key_of(row)
        title = at_cut(title_of(row[".metric"]), row)
        if by is not None:
            title += f" by {words.get(by, by)}"
        text = _in_words(row, sides.get((row[".metric"], by), "within"))
        if key in limited and limited[key] != row[".estimate"]:
            value = limited[key]
            shown = "there is no value" if value is None else f"the value is {number_in_digits(value)}"
            text += f" The gate also judges groups that this report leaves out; without them {shown}."
        rows.append(Verdict(row[".verdict"], title, row[".metric"], text))
    rows.sort(key=lambda row: _ORDER.index(row.verdict))
    return Verdicts(rows[0].verdict, headline([row.verdict for row in rows]), tuple(rows))


def _value(row: Mapping[str, Any]) -> float | None:
    """The value that a verdict is about, which may be a change."""
    return row[".change"] if ".change" in row else row[".estimate"]


def _value_in_words(row: Mapping[str, Any]) -> str:
    """The value of a verdict with its limits, or why there is none."""
    value = _value(row)
    if value is not None:
        ends = [None if end is None else number_in_digits(end) for end in (row[".lower"], row[".upper"])]
        interval = ends_in_words(*ends)
        return f"{number_in_digits(value)} ({interval})" if interval else number_in_digits(value)
    if row.get(".status") not in {None, Status.OK}:
        return f"no value, because {reason(row['.status'])}"
    return "no value"


def _in_words(row: Mapping[str, Any], side: str) -> str:
    """The value of a verdict with its limits, and the limit that it must be below or above."""
    text = f"{capitalized(_value_in_words(row))}; must be {side} {row['.limit']:g}."
    if row[".groups_left_out"] and row[".verdict"] == UNSURE:
        text += " It cannot pass while groups are left out; see Exclusions."
    if row.get(UNKNOWN_ROWS):
        rows = unknown_in_words(row[UNKNOWN_ROWS], row[UNKNOWN_SHARE])
        text += f" {rows} {'is' if row[UNKNOWN_ROWS] == 1 else 'are'} not compared"
        with_them = "; with them as groups of their own the metric does not pass"
        text += "." if row[WITH_UNKNOWN] in {None, PASS} else f"{with_them}."
    return text


def verdicts_explained(verdicts: pl.DataFrame, features: Mapping[str, str], conf_level: float) -> Folded:
    """The numbers behind the verdicts of a gate."""
    rule = (
        "A metric passes if its whole interval is within the limit, fails if its whole interval is beyond it, and is "
        f"undecided otherwise. Each end of these intervals is a one-sided {percent(conf_level)} confidence bound."
    )
    if UNKNOWN_ROWS in verdicts.columns:
        rule += " Rows of unknown groups are not compared, but a pass needs a pass with them as groups of their own."
    rows = verdicts.to_dicts()
    columns = {
        "metric": [disparity_in_words(row) for row in rows],
        "feature": [features.get(row[".by"], "all rows") for row in rows],
        "value": list(with_interval(verdicts)),
        "limit": [f"{row['.limit']:g}" for row in rows],
        "verdict": [row[".verdict"] for row in rows],
    }
    table = Table(pl.DataFrame(columns, dict.fromkeys(columns, pl.String)), codes=tuple(row[".metric"] for row in rows))
    return Folded("How the verdicts are reached", (rule, Figure(verdicts, "Metrics and their limits"), table))
