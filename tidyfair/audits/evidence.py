"""Evidence that outlives its author: one file of digests, call, tallies and results, verified without the rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from tidyfair.audits.audit_results import results_of_metrics, settings_of_gate
from tidyfair.audits.call_code import value_of_code
from tidyfair.audits.evidence_files import (
    DTYPES,
    FORMAT,
    PARTS,
    VERSION,
    Run,
    StoredCounts,
    as_json,
    chain_of,
    columns_read,
    described,
    file_of,
    write_evidence_of,
)
from tidyfair.audits.filing import results_of_audit
from tidyfair.audits.policies import AuditPolicy, results_of_policy
from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, listed, without_notices
from tidyfair.inference.gates import FAIL, PASS, UNSURE, Gate

__all__ = ["verify_evidence", "write_evidence"]

_RUNS: Mapping[str, Run] = {
    "policy": results_of_policy, "audit": results_of_audit, "metrics": results_of_metrics, "gate": results_of_metrics
}  # fmt: skip
"""The functions that compute the results of a call, by an argument that it has."""
_NOT_COMPUTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    pl.exceptions.PolarsError,
)  # fmt: skip
"""The exceptions of results that are computed from a changed file."""
_NO_DIGEST = "with suppressed counts there is no digest of the data"


def write_evidence(
    path: str | Path, audit: AuditPolicy | Metric | GroupwiseMetric | MetricSet | Gate, data: object,
    truth: str | None = None, estimate: str | None = None, *, rows: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Compute metrics, or judge predictions, and write all that the results rest on into one JSON file.

    The file has digests of the data (of the columns that are read, in any order of rows), versions, the call as code,
    the tallies of all rows and of each feature alone, and the results, each under a digest of all before. It holds no
    rows, unless you ask for them. With `suppress_below` it lacks the counts that are suppressed, and a digest of the
    data, which would let others try which data have it. Named audits and reports have `.save_evidence(path)`.

    Args:
        path: Name of the file.
        audit: A policy as `read_policy` reads it, metrics of the library, or a gate made of them.
        data: The predictions.
        truth: Column of the true labels.
        estimate: Column of the predicted labels.
        rows: Write the values of rows where results need them, such as areas under curves that are exact.
        options: The options of a call. With `score_bins` areas under curves need no rows.

    Returns:
        The verdicts of a policy or a gate, or the results of metrics.

    Raises:
        ArgumentError: For what a file cannot hold: expressions, metrics of your own, dtypes that JSON lacks, and rows.
    """
    if isinstance(audit, AuditPolicy):
        part, subject = "policy", asdict(audit)
    else:
        is_gate = isinstance(audit, Gate)
        part, subject = ("gate", settings_of_gate(audit)) if is_gate else ("metrics", metric_set(audit))
    arguments = {part: subject, "truth": truth, "estimate": estimate, **options}
    results = write_evidence_of(path, arguments, data, _RUNS[part], keeps_rows=rows)
    return results.get("verdicts", results.get("results"))


def verify_evidence(path: str | Path, data: object = None) -> pl.DataFrame:
    """Verify a file of evidence: its digests, the results from its tallies and, where data are given, their digest.

    Returns:
        A row for each part of the file: `.requirement` (`digests`, the names of the results, and `data`), `.verdict`
        (`pass`, `fail`, or `not enough evidence` for what cannot be verified) and `.reason`, which says what differs.

    Raises:
        ArgumentError: For a file that is no evidence of this version.
    """
    content, is_as_written = _read(path)
    chain = chain_of(content)
    stated: Any = content.get("sha256") if isinstance(content.get("sha256"), dict) else {}
    changed = [part for part in PARTS if stated.get(part) != chain[part]]
    reason = f"{changed[0]!r} or its digest was changed" if changed else ""
    if not reason and not is_as_written:
        reason = "the file is not written as it was"
    rows = {"digests": reason}
    try:
        rows |= _differences(content)
        if data is not None:
            rows["data"] = _difference_of_data(content, data)
    except _NOT_COMPUTED as error:
        rows["numbers"] = f"cannot be computed: {error}"
    outcomes = {"": PASS, _NO_DIGEST: UNSURE}
    table = [(part, outcomes.get(reason, FAIL), reason or None) for part, reason in rows.items()]
    return pl.DataFrame(table, schema=dict.fromkeys((".requirement", ".verdict", ".reason"), pl.String), orient="row")


def _read(path: str | Path) -> tuple[dict[str, Any], bool]:
    """The content of a file of this version, and whether it is written as `write_evidence` writes it, without more."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        msg = f"{str(path)!r} cannot be read: {error.strerror}."
        raise ArgumentError(msg) from error
    except ValueError as error:
        msg = f"{str(path)!r} is not evidence: it is no text."
        raise ArgumentError(msg) from error
    try:
        content: Any = json.loads(text)
        is_ours = content["format"] == FORMAT and content["version"] == VERSION and {*PARTS} <= content.keys()
        is_as_written = is_ours and text == file_of(content)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = f"{str(path)!r} is not evidence: {error}."
        raise ArgumentError(msg) from error
    if not is_ours:
        msg = f"{str(path)!r} is not evidence of version {VERSION}."
        raise ArgumentError(msg)
    return content, is_as_written


def _differences(content: Mapping[str, Any]) -> dict[str, str]:
    """The first difference of each result from that of the tallies, in words; empty where they agree."""
    arguments = {name: value_of_code(code) for name, code in content["call"].items()}
    dtypes: dict[str, Any] = content["data"]["columns"]
    empty = pl.DataFrame(schema={name: DTYPES.get(str(dtype)) or pl.Enum(dtype) for name, dtype in dtypes.items()})
    counts = StoredCounts(keeps_rows=True, stored=[*content["tallies"]])
    run, *_ = [run for part, run in _RUNS.items() if part in arguments]
    with without_notices():
        found = as_json(run(arguments, empty, counts))
    stated = content["results"]
    differences = {name: _difference(stated[name], rows) for name, rows in found.items()}
    if counts.stored or stated.keys() != found.keys():
        differences["numbers"] = "the file has tallies or results that do not belong to its call"
    return differences


def _difference_of_data(content: Mapping[str, Any], data: object) -> str:
    """The difference of data from those of a file, in words; empty where there is none."""
    if content["data"]["sha256"] is None:
        return _NO_DIGEST
    read = described(columns_read(data, content["call"]))
    if read["columns"].keys() != content["data"]["columns"].keys():
        return f"the columns are {listed(read['columns'])}, and not those in the file"
    return "" if read["sha256"] == content["data"]["sha256"] else "the rows are others, or columns of other types"


def _difference(stated: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> str:
    """The first number that differs, in words."""
    if len(stated) != len(found):
        return f"{len(stated)} rows, and the tallies give {len(found)}"
    for one, other in zip(stated, found, strict=True):
        added = [name for name in one if name not in other]
        if added:
            return f"the tallies give no {listed(added)}"
        for name in other:
            is_same = one.get(name) == other[name]
            if isinstance(other[name], float) and isinstance(one.get(name), float):
                # other machines round the last digits otherwise
                is_same = math.isclose(one[name], other[name], rel_tol=1e-9, abs_tol=1e-12)
            if not is_same:
                where = " ".join(str(other[key]) for key in (".by", ".group", ".metric") if other.get(key))
                return f"{where}: {name} is {one.get(name)}, and the tallies give {other[name]}"
    return ""
