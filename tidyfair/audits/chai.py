"""The values of groups in the fields of the applied model card of the Coalition for Health AI (CHAI)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from tidyfair.audits.named_audits import AuditTable, ValuesTable, keys_of
from tidyfair.errors import ArgumentError

_NAMESPACE = "https://mc.chai.org/v0.2/schema.xsd"
_ALL_ROWS_SECTION, _GROUPS_SECTION = "UsefulnessUsabilityEfficacy", "FairnessEquity"


def applied_model_card(
    name: str, tables: Iterable[AuditTable], frames: Mapping[str, pl.DataFrame], sentences: Sequence[str], level: float
) -> dict[str, Any]:
    """The fields of an applied model card that the values of an audit fill; the others are for people to write."""
    value_tables = [table for table in tables if isinstance(table, ValuesTable)]
    if not value_tables:
        msg = (
            f"chai(): {name} has no metrics of all rows and of groups, which the card asks for; take "
            '`audit("model_card", …).chai()`.'
        )
        raise ArgumentError(msg)
    results: dict[str, list[dict[str, str]]] = {_ALL_ROWS_SECTION: [], _GROUPS_SECTION: []}
    for table in value_tables:
        headings = {column.column: column.heading for column in table.columns}
        frame = frames[table.name]
        keys = keys_of(frame)
        for row in frame.to_dicts():
            value = _value(row, level)
            if value is not None and row[".metric"] in headings:
                label = _label(headings[row[".metric"]], row, keys)
                section = _ALL_ROWS_SECTION if row[".by"] is None else _GROUPS_SECTION
                results[section].append({"Label": label, "ValueJson": value})
    rows = _sentences_on_sizes(frames[value_tables[0].name])
    described = {_ALL_ROWS_SECTION: rows[:1], _GROUPS_SECTION: [*rows, *sentences]}
    metrics = {
        section: {"Results": {"MetricResult": items}, "TestingDataDescription": " ".join(described[section])}
        for section, items in results.items()
    }
    return {"AppliedModelCard": {"@xmlns": _NAMESPACE, "KeyMetrics": metrics}}


def _value(row: Mapping[str, Any], level: float) -> str | None:
    """A value as the JSON text of the card, with its interval where there is one; None where it is undefined."""
    estimate, lower, upper = row[".estimate"], row[".lower"], row[".upper"]
    if estimate is None or not math.isfinite(estimate):
        return None
    value: dict[str, object] = {"kind": "single", "value": estimate}
    if lower is not None and upper is not None and math.isfinite(lower) and math.isfinite(upper):
        percent = round(100 * level, 10)
        value = {"kind": "estimate_ci", "estimate": estimate, "lower": lower, "upper": upper, "level": percent}
    return json.dumps(value, separators=(",", ":"))


def _label(heading: str, row: Mapping[str, Any], keys: Sequence[tuple[str, str]]) -> str:
    """The heading of a metric, with its group, outer groups and threshold."""
    parts = [heading]
    if row[".by"] is not None:
        parts.append(f"{row['.by']}: {row['.group']}")
    for name, shown in keys:
        if name not in {".by", ".group"} and row[name] is not None:
            parts.append(f"{shown}: {row[name]}")
    return ", ".join(parts)


def _sentences_on_sizes(frame: pl.DataFrame) -> list[str]:
    """A sentence for all rows and for each feature: the rows of each group."""
    keys = [name for name, _ in keys_of(frame)]
    features = frame.columns[frame.columns.index(".by") + 1 : frame.columns.index(".group")]
    groups = frame.unique([*keys, *features], keep="first", maintain_order=True)
    counts: dict[str | None, list[str]] = {}
    for row in groups.to_dicts():
        counts.setdefault(row[".by"], []).append(_label(f"{row['.n']:,} rows", row, keys_of(frame)))
    return [f"{'; '.join(texts)}." for texts in counts.values()]
