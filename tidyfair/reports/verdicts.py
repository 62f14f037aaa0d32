"""Verdicts of a gate in a report: a headline, a row for each limit, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tidyfair.audits import AuditResults
from tidyfair.calling import metric_set
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
from tidyfair.reports.findings import disparity_in_words, percent, units_of
from tidyfair.reports.tables import in_unit, interval_in_words, reason, with_interval
from tidyfair.specs import RowKey, key_of, keys_of

_ORDER = (FAIL, UNSURE, PASS)
"""Verdicts, the worst first."""
_NAMED = 3
"""The most metrics that a headline names."""


def value_and_limit(name: str, row: Mapping[str, Any], side: str, unit: str = "") -> str:
    """The value of a metric, or its change, and the limit of a verdict, as a clause."""
    verb = "has" if _value(row) is None else "is"
    return f"{name} {verb} {_value_in_words(row, unit)}, and must be {side} {_limit_in_words(row, unit)}"


def with_intervals_of(audit: AuditResults, gate: Gate, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Verdicts with the intervals that the audit shows everywhere, in place of the one-sided bounds that decide."""
    if audit.level is None:
        return verdicts
    options: dict[str, Any] = {**audit.reading, **dict(gate.options)}
    values = metric_set(*gate.metrics).compute(audit.tally, **options)
    ends = dict(zip(keys_of(values), values.select(".lower", ".upper").rows(), strict=True))
    limits = [ends.get(key, (None, None)) for key in keys_of(verdicts)]
    shown = pl.DataFrame(limits, schema={".lower": pl.Float64, ".upper": pl.Float64}, orient="row")
    return verdicts.with_columns(shown)


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
    gate: Gate, verdicts: pl.DataFrame, audit: AuditResults, words: Mapping[str, str],
    limited: Mapping[RowKey, float | None],
) -> Verdicts:  # fmt: skip
    """The verdict of a gate as a whole, and each of its verdicts, with the features in words.

    `limited` are the disparities over the groups that the page compares, where these are others, by the keys of rows.
    """
    names = [(metric.name, metric.by.text if metric.by else None) for metric in gate.metrics]
    sides = dict(zip(names, (side for side, _ in gate.limits), strict=True))
    units = units_of(gate.metrics)
    rows: list[Verdict] = []
    deciding = verdicts.select(".lower", ".upper").rows()
    shown = with_intervals_of(audit, gate, verdicts).iter_rows(named=True)
    for row, bounds in zip(shown, deciding, strict=True):
        by, key, unit = row[".by"], key_of(row), units.get(row[".metric"], "")
        title = at_cut(title_of(row[".metric"]), row)
        if by is not None:
            title += f" by {words.get(by, by)}"
        level = 2 * gate.conf_level - 1 if audit.level is None else audit.level
        side = sides.get((row[".metric"], by), "within")
        text = f"{capitalized(_value_in_words(row, unit, level))}; must be {side} {_limit_in_words(row, unit)}."
        text += _bound_in_words(row, bounds, unit, gate.conf_level) + _left_out_in_words(row)
        if key in limited and limited[key] != row[".estimate"]:
            value = limited[key]
            without = "there is no value" if value is None else f"the value is {in_unit(value, unit)}"
            text += f" The gate also judges groups that this report leaves out; without them {without}."
        rows.append(Verdict(row[".verdict"], title, row[".metric"], text))
    rows.sort(key=lambda row: _ORDER.index(row.verdict))
    return Verdicts(rows[0].verdict, headline([row.verdict for row in rows]), tuple(rows))


def _value(row: Mapping[str, Any]) -> float | None:
    """The value that a verdict is about, which may be a change."""
    return row[".change"] if ".change" in row else row[".estimate"]


def _value_in_words(row: Mapping[str, Any], unit: str, level: float | None = None) -> str:
    """The value of a verdict with its limits, whose level is said if it is given, or why there is none."""
    value = _value(row)
    if value is not None:
        interval = interval_in_words(row[".lower"], row[".upper"], unit)
        kind = f"{percent(level)} CI " if level is not None else ""
        return f"{in_unit(value, unit)} ({kind}{interval})" if interval else in_unit(value, unit)
    if row.get(".status") not in {None, Status.OK}:
        return f"no value, because {reason(row['.status'])}"
    return "no value"


def _limit_in_words(row: Mapping[str, Any], unit: str) -> str:
    """The limit of a verdict, in the unit of its value."""
    scale, words = (100, unit if unit == "%" else f" {unit}") if unit else (1, "")
    return f"{row['.limit'] * scale:g}{words}"


def _bound_in_words(
    row: Mapping[str, Any], bounds: tuple[float | None, float | None], unit: str, conf_level: float
) -> str:
    """The bound that has decided, where the interval that is shown would leave it open; else nothing."""
    low, high, limit = row[".lower"], row[".upper"], row[".limit"]
    is_open = low is not None and high is not None and low <= limit <= high
    decided = [bound for bound in bounds if bound is not None]
    if row[".verdict"] == UNSURE or not is_open or not decided:
        return ""
    nearest = min(decided, key=lambda bound: abs(bound - limit))
    return f" Its one-sided {percent(conf_level)} confidence bound, which decides, is {in_unit(nearest, unit)}."


def _left_out_in_words(row: Mapping[str, Any]) -> str:
    """Sentences on the groups and the rows that hold a verdict back; empty without any."""
    text = ""
    if row[".groups_left_out"] and row[".verdict"] == UNSURE:
        text += " It cannot pass while groups are left out; they are among the findings."
    if row.get(UNKNOWN_ROWS):
        rows = unknown_in_words(row[UNKNOWN_ROWS], row[UNKNOWN_SHARE])
        text += f" {rows} {'is' if row[UNKNOWN_ROWS] == 1 else 'are'} not compared"
        with_them = "; with them as groups of their own the metric does not pass"
        text += "." if row[WITH_UNKNOWN] in {None, PASS} else f"{with_them}."
    return text


def verdicts_explained(gate: Gate, verdicts: pl.DataFrame, features: Mapping[str, str]) -> Folded:
    """The numbers behind the verdicts of a gate."""
    units, confidence = units_of(gate.metrics), percent(gate.conf_level)
    level = percent(2 * gate.conf_level - 1)
    rule = (
        "A metric passes if its whole interval is within the limit, fails if its whole interval is beyond it, and is "
        f"undecided otherwise. These intervals are {level} confidence intervals; each end is a one-sided {confidence} "
        "bound."
    )
    if UNKNOWN_ROWS in verdicts.columns:
        rule += " Rows of unknown groups are not compared, but a pass needs a pass with them as groups of their own."
    rows = verdicts.to_dicts()
    columns = {
        "metric": [disparity_in_words(row) for row in rows],
        "feature": [features.get(row[".by"], "all rows") for row in rows],
        f"value ({level} CI)": list(with_interval(verdicts, units=units)),
        "limit": [_limit_in_words(row, units.get(row[".metric"], "")) for row in rows],
        "verdict": [row[".verdict"] for row in rows],
    }
    table = Table(pl.DataFrame(columns, dict.fromkeys(columns, pl.String)), codes=tuple(row[".metric"] for row in rows))
    return Folded(
        "How the verdicts are reached", (rule, Figure(verdicts, "Metrics and their limits", units=units), table)
    )
