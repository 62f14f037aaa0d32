"""Evidence: verified without the rows, and refused where one bit has changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidyfair as tf
from tidyfair.audits import AuditPolicy, verify_evidence, write_evidence
from tidyfair.datasets import lending

POLICY = AuditPolicy(
    features=("sex", "race", "sex:race"),
    metrics=("sens", "spec"),
    limits={"equalized_odds": 0.1, "demographic_parity": 0.2, "accuracy": 0.65},
)
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}


def canonical(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def outcomes(parts: pl.DataFrame) -> dict[str, str]:
    return dict(parts.select(".requirement", ".verdict").rows())


@pytest.mark.parametrize("options", [{}, {"suppress_below": 12}, {"probs": "score", "score_bins": 50}])
def test_evidence_has_the_numbers_of_the_audit(options: dict[str, Any], tmp_path: Path) -> None:
    path, data = tmp_path / "evidence.json", lending()
    policy = replace(POLICY, metrics=("sens", "roc_auc")) if "probs" in options else POLICY
    verdicts = write_evidence(path, policy, data, **CALL, **options)
    assert verdicts.equals(policy(data, **CALL, **options))
    content = json.loads(path.read_text("utf-8"))
    assert content["verdicts"] == verdicts.to_dicts()
    parts = verify_evidence(path, data.sample(fraction=1.0, shuffle=True, seed=1))
    digest = "not enough evidence" if "suppress_below" in options else "pass"
    assert outcomes(parts) == {"digests": "pass", "groups": "pass", "verdicts": "pass", "data": digest}
    if "suppress_below" not in options:
        changed = data.with_columns(pl.col("sex").reverse())
        assert outcomes(verify_evidence(path, changed))["data"] == "fail"
        # without the data nothing is said of them
        assert "data" not in outcomes(verify_evidence(path))


def test_one_changed_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    policy = AuditPolicy(features=("sex",), limits={"demographic_parity": 0.2})
    write_evidence(path, policy, lending(), estimate="approved", pos_label="yes")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), size=80, replace=False):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        try:
            verdicts = outcomes(verify_evidence(path))
        except tf.errors.ArgumentError:
            continue
        assert "fail" in verdicts.values(), (position, content[position : position + 1], changed[position])


def test_forged_results_are_found_by_the_tallies(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, POLICY, lending(), **CALL)
    content = json.loads(path.read_text("utf-8"))
    row = next(row for row in content["groups"] if row[".group"] == "Black" and row[".metric"] == "sens")
    row[".estimate"] += 0.1
    # a forger may compute all digests again
    digest, digests = "", dict[str, str]()
    for part in ("made_by", "data", "call", "tallies", "groups", "verdicts"):
        digest = digests[part] = hashlib.sha256((digest + canonical(content[part])).encode()).hexdigest()
    content["sha256"] = digests
    path.write_text(canonical(content), "utf-8")
    parts = verify_evidence(path)
    assert outcomes(parts) == {"digests": "pass", "groups": "fail", "verdicts": "pass"}
    assert "race Black sens: .estimate is" in parts.filter(pl.col(".requirement") == "groups")[".reason"].item()


def test_suppressed_evidence_holds_no_small_count(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, POLICY, lending(), **CALL, suppress_below=12)
    content = json.loads(path.read_text("utf-8"))
    assert content["data"]["sha256"] is None
    counts = [count for table in content["tallies"] for count in table["cells"]["n"]]
    assert min(counts) >= 12
    assert any(table["hidden"] for table in content["tallies"])
    assert all(row[".n"] is None for row in content["groups"] if row[".status"] == "suppressed")


def test_what_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "evidence.json", lending()
    areas = AuditPolicy(features=("sex",), metrics=("roc_auc",))
    with pytest.raises(tf.errors.ArgumentError, match="score_bins=1000"):
        write_evidence(path, areas, data, "repaid", probs="score", pos_label="yes")
    with pytest.raises(tf.errors.ArgumentError, match="JSON can hold"):
        write_evidence(path, POLICY, data, "repaid", "approved", pos_label="yes", case_weights=pl.col("score"))
    dated = data.with_columns(pl.lit("2026-01-01").str.to_date().alias("sex"))
    with pytest.raises(tf.errors.ArgumentError, match="'sex' is Date, which JSON cannot hold"):
        write_evidence(path, POLICY, dated, **CALL)
