"""The content of a file of evidence: digests of the data, versions, the call, its tallies, and results."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from ast import Constant, parse, walk
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
from polars import selectors

from tidyfair.audits.call_code import code_of
from tidyfair.calling import GroupwiseMetric
from tidyfair.errors import ArgumentError, advice, in_short, without_notices
from tidyfair.specs import By
from tidyfair.tallies import LABELS, Tally, open_frame, save

Arguments: TypeAlias = Mapping[str, Any]
"""The arguments of a call, without the data."""
FORMAT, VERSION = "tidyfair evidence", 2
PARTS = ("made_by", "data", "call", "tallies", "results")
"""The parts of a file, in the order in which each digest covers those before."""
DTYPES: Mapping[str, pl.DataType] = {
    str(dtype): dtype for dtype in (pl.String(), pl.Boolean(), pl.Int64(), pl.Float64())
}  # fmt: skip
"""The dtypes of columns, as files have them; those of ordered levels are their lists."""

_WAYS_OUT: Mapping[Any, str] = {
    pl.Decimal: "cast it to Float64",
    pl.List: 'write `.list.join(";")`, and `memberships(…, separator=";")`',
}  # fmt: skip
"""The way out for columns of other dtypes, where it is not a cast to text."""


@dataclass
class StoredCounts:
    """The tallies that an audit counts, one after the other: written into evidence, or read from it instead.

    Either way the audit goes on with the tally of all rows and those of each feature alone that the file has.
    """

    keeps_rows: bool = False
    """True if values of rows may be written, without which some results cannot be computed again."""
    stored: list[Any] | None = None
    """The tables of a file that is read."""
    tables: list[Any] = field(default_factory=list[Any])

    def tally(self, counted: Tally, metrics: Iterable[object]) -> Tally:
        """The tally of some metrics, as the file has it."""
        given = [metric.by for metric in metrics if isinstance(metric, GroupwiseMetric)]
        bys: dict[str | None, By | None] = {None: None, **{by.text: by for by in given}}
        margins: dict[str | None, Tally] = {}
        for feature in self._next(lambda: [self._feature(counted, by) for by in bys.values()]):
            cells = pl.DataFrame(feature["cells"], schema=counted.cells.schema)
            rows = None if counted.rows is None else pl.DataFrame(feature["rows"], schema=counted.rows.schema)
            margin = replace(counted, cells=cells, rows=rows)
            margins[feature["by"]] = margin.suppressed_as_counted(bys[feature["by"]])
        if counted.suppression is None:
            _check_same_rows(margins)
        return replace(margins.pop(None), margins={str(text): margin for text, margin in margins.items()})

    def rows(self, frame: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
        """Rows that are read one by one, as the file has them: some columns, in the order of their values."""
        chosen = frame.select(list(dict.fromkeys(columns)))
        return pl.DataFrame(
            self._next(lambda: self._written_rows(chosen).to_dict(as_series=False)), schema=chosen.schema
        )

    def _next(self, made: Callable[[], Any]) -> Any:
        """The next table of the file, which is made, or read."""
        if self.stored is None:
            self.tables.append(made())
            return self.tables[-1]
        if not self.stored:
            msg = "the file has fewer tallies than its call"
            raise ArgumentError(msg)
        return self.stored.pop(0)

    def _feature(self, counted: Tally, by: By | None) -> dict[str, Any]:
        """The tally of a feature alone, or of all rows, as columns."""
        problem = "`group_by` takes columns, not privileged(…)" if counted.sides is not None else ""
        if counted.cut is not None and counted.cut.point is not None:
            problem = "`threshold` is a number, because tallies do not choose that of an operating point again"
        if counted.suppression is not None:
            if by is not None:
                # the file would have the combinations of groups
                by.refuse_memberships("evidence with `suppress_below`", overlapping=True)
            if counted.needs.anything or counted.clusters:
                problem = "with `suppress_below` only metrics of labels can be written, without clusters"
        if problem:
            msg = f"evidence: {problem}."
            raise ArgumentError(msg)
        margin = counted.margin(by)
        rows = margin.rows
        if rows is not None:
            rows = rows.sort(pl.all()) if margin.binned else self._written_rows(rows)
        return {
            "by": by and by.text,
            "cells": margin.cells.sort(margin.counted_by, nulls_last=True).to_dict(as_series=False),
            "rows": None if rows is None else rows.to_dict(as_series=False),
        }

    def _written_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Values of rows in their order, if they may be written."""
        if not self.keeps_rows:
            ways = advice(
                "`score_bins=1000` for areas, or `rows=True` to write the values",
                "`--score-bins 1000` for areas, or `--evidence-rows` to write the values",
            )
            msg = f"evidence holds no rows, and exact areas, medians and means of pay or scores need them: give {ways}."
            raise ArgumentError(msg)
        return rows.sort(pl.all())


def _check_same_rows(margins: Mapping[str | None, Tally]) -> None:
    """Refuse the tally of a feature that has other rows than that of all rows, by outer group and labels."""
    keys = [*margins[None].outer_names, *LABELS]
    rows = {
        text: margin.cells.group_by(keys).agg(pl.col("n").sum()).sort(keys, nulls_last=True)
        for text, margin in margins.items()
    }
    for text, counts in rows.items():
        if not counts.equals(rows[None]):
            msg = f"the rows of {text} are not those of all rows"
            raise ArgumentError(msg)


Run: TypeAlias = Callable[[Arguments, Any, StoredCounts], Mapping[str, pl.DataFrame]]
"""The results of a call by name, from data and what it counts."""


def write_evidence_of(
    path: str | Path, arguments: Arguments, data: object, run: Run, *, keeps_rows: bool
) -> Mapping[str, pl.DataFrame]:
    """Run a call, and write all that its results rest on; returns the results."""
    call: dict[str, str] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        code = code_of(value)
        if code is None:
            msg = (
                f"evidence: `{name}` is {in_short(value)}, which a file cannot hold; name columns, and audits and "
                "metrics of the library."
            )
            raise ArgumentError(msg)
        call[name] = code
    rows, counts = columns_read(data, call), StoredCounts(keeps_rows)
    with without_notices():
        results = run(arguments, rows, counts)
    is_suppressed = arguments.get("suppress_below") is not None
    content: dict[str, Any] = {
        "call": call, "tallies": counts.tables, "results": as_json(results),
        "made_by": {"tidyfair": version("tidyfair"), "polars": pl.__version__, "python": platform.python_version()},
        "data": described(rows) | ({"sha256": None} if is_suppressed else {}),
    }  # fmt: skip
    text = file_of(content)
    save(lambda part: part.write_text(text, "utf-8"), Path(path))
    return results


def columns_read(data: object, call: Mapping[str, str]) -> pl.DataFrame:
    """The columns that the code of a call names, of the few dtypes that JSON has."""
    source = open_frame(data)
    texts = [node.value for code in call.values() for node in walk(parse(code)) if isinstance(node, Constant)]
    named = {part for text in texts if isinstance(text, str) for part in (text, *text.split(":"))}
    frame = source.to_polars().select(name for name in source.columns if name in named)
    large = [name for name, dtype in frame.schema.items() if dtype == pl.UInt64 and (frame[name] >= 2**63).any()]
    integers = selectors.integer() - selectors.by_name(large)
    frame = frame.with_columns(
        selectors.by_dtype(pl.Categorical).cast(pl.String), integers.cast(pl.Int64), selectors.float().cast(pl.Float64)
    )
    for name, dtype in frame.schema.items():
        if str(dtype) not in DTYPES and not isinstance(dtype, pl.Enum):
            way_out = _WAYS_OUT.get(dtype.base_type(), "cast it to text")
            msg = f"evidence: the column {name!r} is {dtype}, which JSON cannot hold; {way_out}."
            raise ArgumentError(msg)
        if dtype == pl.Float64 and frame[name].is_infinite().any():
            msg = f"evidence: the column {name!r} holds infinite numbers, which JSON lacks; filter these rows."
            raise ArgumentError(msg)
    return frame


def described(frame: pl.DataFrame) -> dict[str, Any]:
    """The columns of some rows, and the digest of the distinct rows and their numbers, whatever their order."""
    rows = frame.with_columns(selectors.enum().cast(pl.String)).select(sorted(frame.columns))
    rows = rows.group_by(pl.all()).len("\0rows").sort(pl.all(), nulls_last=True)
    dtypes = {
        name: dtype.categories.to_list() if isinstance(dtype, pl.Enum) else str(dtype)
        for name, dtype in frame.schema.items()
    }
    return {"columns": dtypes, "sha256": hashlib.sha256(rows.write_csv().encode()).hexdigest()}


def as_json(results: Mapping[str, pl.DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """The rows of results, in which numbers that are not finite are null."""
    return {name: [_finite(row) for row in frame.to_dicts()] for name, frame in results.items()}


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def file_of(content: Mapping[str, Any]) -> str:
    """The text of a file of some parts, and of nothing else."""
    parts = {part: content[part] for part in ("call", "tallies", "results", "made_by", "data")}
    return as_text({"format": FORMAT, "version": VERSION, **parts, "sha256": chain_of(content)})


def chain_of(content: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each part and all before."""
    chain: dict[str, str] = {}
    digest = ""
    for part in PARTS:
        digest = hashlib.sha256((digest + as_text(content[part])).encode()).hexdigest()
        chain[part] = digest
    return chain


def as_text(content: object) -> str:
    """JSON with one value on a line, in the order of a call and of its results."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
