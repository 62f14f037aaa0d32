"""Evidence that outlives its author: one file of digests, call, tallies and verdicts, verified without the rows."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors

from tidyfair.audits.policies import AuditPolicy
from tidyfair.errors import ArgumentError, listed
from tidyfair.inference.gates import FAIL, PASS, UNSURE
from tidyfair.specs import Column
from tidyfair.tallies import Suppression, Tally, add_up, key_names, open_frame, save

__all__ = ["verify_evidence", "write_evidence"]

_FORMAT, _VERSION = "tidyfair evidence", 1
_PARTS = ("made_by", "data", "call", "tallies", "groups", "verdicts")
"""The parts of a file, in the order in which each digest covers those before."""
_DTYPES: Mapping[str, pl.DataType] = {
    str(dtype): dtype for dtype in (pl.String(), pl.Boolean(), pl.Int64(), pl.Float64())
}  # fmt: skip
"""The dtypes of columns, as files have them."""
_NO_DIGEST = "with suppressed counts there is no digest of the data"


def write_evidence(
    path: str | Path, policy: AuditPolicy, data: object, truth: str | None = None, estimate: str | None = None,
    **options: Any,
) -> pl.DataFrame:  # fmt: skip
    """Judge predictions by a policy, and write all that the verdicts rest on into one JSON file.

    The file has digests of the data (of the columns that are read, in any order of rows), versions, the call, tallies,
    values of groups and verdicts, each under a digest of all before. It holds no rows. With `suppress_below` it holds
    tallies of each feature alone, without the counts that are suppressed, and no digest of the data, which would let
    others try which data have it.

    Args:
        path: Name of the file.
        policy: The policy, as `read_policy` reads it.
        data: The predictions.
        truth: Column of the true labels.
        estimate: Column of the predicted labels.
        options: The options of a call that JSON can hold. `score_bins` is needed for areas under curves.

    Returns:
        The verdicts, as the policy gives them.

    Raises:
        ArgumentError: For options or dtypes that JSON cannot hold, and for metrics that read rows.
    """
    call: dict[str, Any] = {"truth": truth, "estimate": estimate, "options": options, "policy": asdict(policy)}
    try:
        _text(call)
    except (TypeError, ValueError) as error:
        msg = f"write_evidence() takes options that JSON can hold, such as names of columns: {error}."
        raise ArgumentError(msg) from error
    read = _columns_read(data, call)
    tally, reading = policy.counted(read, truth, estimate, **options)
    if tally.rows is not None and not tally.binned:
        msg = "write_evidence() writes no rows, and areas under curves read them: give `score_bins=1000`."
        raise ArgumentError(msg)
    if tally.suppression is not None:
        tally.check_all_rows_are_shown()
        if tally.needs.anything or tally.clusters:
            msg = "write_evidence(): with `suppress_below` only metrics of labels can be written, without clusters."
            raise ArgumentError(msg)
    tables = [_table(tally, by) for by in policy.tables if policy.is_counted(tally, by)]
    content: dict[str, Any] = {
        "format": _FORMAT, "version": _VERSION, "call": call, "tallies": tables,
        "made_by": {"tidyfair": version("tidyfair"), "polars": pl.__version__, "python": platform.python_version()},
        "data": _described(read), **_numbers(policy, tally, reading, tables),
    }  # fmt: skip
    if tally.suppression is not None:
        content["data"]["sha256"] = None
    text = _text(content | {"sha256": _chain(content)})
    save(lambda part: part.write_text(text, "utf-8"), Path(path))
    return pl.concat(policy.judged(tally, by, reading) for by in policy.tables)


def verify_evidence(path: str | Path, data: object = None) -> pl.DataFrame:
    """Verify a file of evidence: its digests, the numbers from its tallies and, where data are given, their digest.

    Returns:
        A row for each part of the file: `.requirement`, `.verdict` (`pass`, `fail`, or `not enough evidence` for what
        cannot be verified) and `.reason`, which says what differs.

    Raises:
        ArgumentError: For a file that is no evidence of this version.
    """
    try:
        text = Path(path).read_text("utf-8")
        content = json.loads(text)
        is_ours = content["format"] == _FORMAT and content["version"] == _VERSION and {*_PARTS} <= content.keys()
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{str(path)!r} is not evidence: {error}."
        raise ArgumentError(msg) from error
    if not is_ours:
        msg = f"{str(path)!r} is not evidence of version {_VERSION}."
        raise ArgumentError(msg)
    chain = _chain(content)
    stated: Any = content.get("sha256") if isinstance(content.get("sha256"), dict) else {}
    changed = [part for part in _PARTS if stated.get(part) != chain[part]]
    reason = f"{changed[0]!r} or its digest was changed" if changed else ""
    if not reason and text != _text(content):
        reason = "the file is not written as it was"
    rows, call = {"digests": reason}, content["call"]
    try:
        policy, columns = AuditPolicy(**call["policy"]), content["data"]["columns"]
        empty = pl.DataFrame(schema={name: _DTYPES[dtype] for name, dtype in columns.items()})
        like, reading = policy.counted(empty, call["truth"], call["estimate"], **call["options"])
        for part, found in _numbers(policy, like, reading, content["tallies"]).items():
            rows[part] = _difference(content[part], found)
        if data is not None:
            read = _described(_columns_read(data, call))
            rows["data"] = "" if read == content["data"] else "the rows are others"
            if content["data"]["sha256"] is None:
                rows["data"] = _NO_DIGEST
            elif read["columns"] != columns:
                rows["data"] = f"the columns are {listed(read['columns'])}, or of other types than in the file"
    except (ArgumentError, KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError) as error:
        rows["numbers"] = f"cannot be computed: {error}"
    outcomes = {"": PASS, _NO_DIGEST: UNSURE}
    table = [(part, outcomes.get(reason, FAIL), reason or None) for part, reason in rows.items()]
    return pl.DataFrame(table, schema=dict.fromkeys((".requirement", ".verdict", ".reason"), pl.String), orient="row")


# What a file holds


def _columns_read(data: object, call: Mapping[str, Any]) -> pl.DataFrame:
    """The columns that a call reads, of the few dtypes that JSON has."""
    source = open_frame(data)
    features = {column for by in call["policy"]["features"] for column in by.split(":")}
    # options may list columns, or map labels to them
    texts = _text({name: value for name, value in call.items() if name != "policy"})
    names = [name for name in source.columns if name in features or json.dumps(name, ensure_ascii=False) in texts]
    frame = source.to_polars().select(names)
    frame = frame.with_columns(
        selectors.string(include_categorical=True).cast(pl.String), selectors.enum().cast(pl.String),
        selectors.integer().cast(pl.Int64), selectors.float().cast(pl.Float64),
    )  # fmt: skip
    for name, dtype in frame.schema.items():
        if str(dtype) not in _DTYPES:
            msg = f"write_evidence(): the column {name!r} is {dtype}, which JSON cannot hold; cast it to text."
            raise ArgumentError(msg)
    return frame


def _described(frame: pl.DataFrame) -> dict[str, Any]:
    """The columns of some rows, and the digest of the distinct rows and their numbers, whatever their order."""
    rows = frame.select(sorted(frame.columns)).group_by(pl.all()).len("\0rows").sort(pl.all(), nulls_last=True)
    digest = hashlib.sha256(rows.write_csv().encode()).hexdigest()
    return {"columns": {name: str(dtype) for name, dtype in frame.schema.items()}, "sha256": digest}


def _table(tally: Tally, by: str | None) -> dict[str, Any]:
    """The tally of a feature alone, or of all rows, as columns, with the keys of the groups that are suppressed."""
    kept = [*_names(tally, by), *key_names(tally.keys, "cluster")]
    without = [pl.lit(None, tally.kinds[name]).alias(name) for name in key_names(tally.keys) if name not in kept]
    rows = None if tally.rows is None else tally.rows.with_columns(without)
    margin = add_up([replace(tally, cells=tally.cells.with_columns(without), rows=rows, suppression=None)])
    cells, hidden = margin.cells, list[tuple[Any, ...]]()
    if tally.suppression is not None and by is not None:
        keys = tally.suppression.hidden_keys(by)
        keys.columns = _names(tally, by)
        hidden = keys.rows()
        cells = cells.join(keys, on=keys.columns, how="anti", nulls_equal=True)
    cells = cells.sort(margin.counted_by, nulls_last=True)
    rows = None if margin.rows is None else margin.rows.sort(pl.all()).to_dict(as_series=False)
    return {"by": by, "cells": cells.to_dict(as_series=False), "rows": rows, "hidden": hidden}


def _tally(table: Mapping[str, Any], like: Tally, below: int | None) -> Tally:
    """The tally that a table holds."""
    cells = pl.DataFrame(table["cells"], schema=like.cells.schema)
    rows = None if like.rows is None else pl.DataFrame(table["rows"], schema=like.rows.schema)
    names, suppression = _names(like, table["by"]), None
    if below is not None:
        hidden = pl.DataFrame(table["hidden"], schema={name: like.kinds[name] for name in names}, orient="row")
        suppression = Suppression.of_keys(below, table["by"], hidden)
        sums = [name for name in cells.columns if name not in like.counted_by]
        cells = pl.concat([cells, hidden], how="diagonal").with_columns(pl.col(sums).fill_null(0))
    return replace(like, cells=cells, rows=rows, suppression=suppression)


def _names(tally: Tally, by: str | None) -> list[str]:
    """The names of the keys of a feature."""
    return tally.names([Column(name) for name in by.split(":")]) if by else []


def _numbers(
    policy: AuditPolicy, like: Tally, reading: Mapping[str, Any], tables: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The values of groups and the verdicts that follow from tables."""
    below = None if like.suppression is None else like.suppression.below
    numbers: dict[str, Any] = {"groups": [], "verdicts": []}
    by_name = {table["by"]: _tally(table, like, below) for table in tables}
    for by in policy.tables:
        tally = by_name.get(by, like)
        if by in by_name:
            numbers["groups"] += policy.values(tally, by, reading).to_dicts()
        numbers["verdicts"] += policy.judged(tally, by, reading).to_dicts()
    for row in (*numbers["groups"], *numbers["verdicts"]):
        row |= {name: None for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)}
    return numbers


def _difference(stated: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> str:
    """The first number that differs, in words."""
    if len(stated) != len(found):
        return f"{len(stated)} rows, and the tallies give {len(found)}"
    for one, other in zip(stated, found, strict=True):
        for name in other:
            is_same = one.get(name) == other[name]
            if isinstance(other[name], float) and isinstance(one.get(name), float):
                # other machines round the last digits otherwise
                is_same = math.isclose(one[name], other[name], rel_tol=1e-9, abs_tol=1e-12)
            if not is_same:
                where = " ".join(str(other[key]) for key in (".by", ".group", ".metric") if other.get(key))
                return f"{where}: {name} is {one.get(name)}, and the tallies give {other[name]}"
    return ""


def _chain(content: Mapping[str, Any]) -> dict[str, str]:
    """The digest of each part and all before."""
    chain: dict[str, str] = {}
    digest = ""
    for part in _PARTS:
        digest = hashlib.sha256((digest + _text(content[part])).encode()).hexdigest()
        chain[part] = digest
    return chain


def _text(content: object) -> str:
    """JSON with one value on a line, in the order of the policy and of its limits."""
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
