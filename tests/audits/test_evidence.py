"""Evidence: verified without the rows, and refused where one bit has changed."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from command_line import ARGUMENTS, called, written

import tidyfair as tf
from tidyfair.audits import AuditPolicy, verify_evidence, write_evidence
from tidyfair.datasets import lending

POLICY = AuditPolicy(
    features=("sex", "race", "sex:race"),
    metrics=("sens", "spec"),
    limits={"equalized_odds": 0.1, "demographic_parity": 0.2, "accuracy": 0.65},
)
pytestmark = pytest.mark.usefixtures("few_draws")

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
    assert content["results"]["verdicts"] == verdicts.to_dicts()
    parts = verify_evidence(path, data.sample(fraction=1.0, shuffle=True, seed=1))
    digest = "not enough evidence" if "suppress_below" in options else "pass"
    assert outcomes(parts) == {"digests": "pass", "groups": "pass", "verdicts": "pass", "data": digest}
    if "suppress_below" not in options:
        changed = data.with_columns(pl.col("sex").reverse())
        assert outcomes(verify_evidence(path, changed))["data"] == "fail"
        # without the data nothing is said of them
        assert "data" not in outcomes(verify_evidence(path))


def flipped(path: Path, number: int) -> int:
    """The number of single bits of a file whose change is refused."""
    content = path.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    # in each of as many stretches of one length
    for position in np.linspace(0, len(content) - 1, number).astype(int):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(changed))
        try:
            refused += "fail" in outcomes(verify_evidence(path)).values()
        except tf.errors.ArgumentError:
            refused += 1
    path.write_bytes(content)
    return refused


def test_one_changed_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    policy = AuditPolicy(features=("sex",), limits={"demographic_parity": 0.2})
    write_evidence(path, policy, lending(), estimate="approved", pos_label="yes")
    assert flipped(path, 60) == 60
    tf.audit("eeoc_uniform_guidelines", lending(), estimate="approved", pos_label="yes", by="sex").save_evidence(path)
    assert flipped(path, 60) == 60


RACES = ["White", "Native", "Asian", "Hispanic", "Black"]
PEOPLE = lending().with_columns(
    pl.col("race").cast(pl.String).cast(pl.Enum(RACES)).alias("ordered"),
    (pl.int_range(pl.len()) % 3 == 0).alias("renter"), (pl.int_range(pl.len()) % 5 < 2).alias("parent"),
    (pl.col("score") * 40 + 20).round(2).alias("pay"), (pl.int_range(pl.len()) % 4).cast(pl.Float64).alias("bonus"),
    pl.when(pl.int_range(pl.len()) % 9 == 0).then(pl.lit("Unknown")).otherwise(pl.col("sex").cast(pl.String))
    .alias("stated"),
)  # fmt: skip
TAGS = tf.memberships("renter", "parent")
LABELS: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
TO = {"sex": "male"}
NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "nyc": ("nyc_ll144", {"estimate": "approved", "pos_label": "yes", "by": ["stated", "race"]}),
    "nyc scores": ("nyc_ll144", {"probs": "score", "by": ["sex", "race"], "group_by": "fold"}),
    "eeoc": ("eeoc_uniform_guidelines", {**LABELS, "by": [TAGS, ("sex", "race")], "case_weights": "weight"}),
    "credit": ("lending_adverse_impact", {**LABELS, "by": "sex", "to": TO, "within": "age_band"}),
    "credit scores": ("lending_adverse_impact", {**LABELS, "by": "sex", "to": TO, "probs": "score"}),
    "prediction": (
        "clinical_tripod_ai",
        {"truth": "repaid", "probs": "score", "threshold": [0.3, 0.5], "by": "sex", "pos_label": "yes"},
    ),
    "data": ("eu_ai_act_data", {**LABELS, "by": ["sex", "ordered"]}),
    "card": ("model_card", {**LABELS, "by": [tf.bins("weight", [0.9, 1.1])]}),
    "pay": (
        "eu_pay_transparency",
        {"estimate": "pay", "complementary": "bonus", "by": "sex", "to": TO, "within": ["age_band"]},
    ),
}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Check that rows have the same values, numbers but for their last digits."""
    for column, value in other.items():
        is_number = isinstance(value, float) and math.isfinite(value)
        expected = pytest.approx(value, rel=1e-9, abs=1e-12) if is_number else value
        assert one[column] == (None if isinstance(value, float) and not is_number else expected), column


@pytest.mark.parametrize("name", NAMED)
def test_named_audits_have_evidence_of_their_tables(name: str, tmp_path: Path) -> None:
    path, (audit, call) = tmp_path / "evidence.json", NAMED[name]
    filed = tf.audit(audit, PEOPLE, **call)
    reads_rows = name in {"credit scores", "prediction", "pay"}
    if reads_rows:
        with pytest.raises(tf.errors.ArgumentError, match="evidence holds no rows"):
            filed.save_evidence(path)
    filed.save_evidence(path, rows=reads_rows)
    parts = verify_evidence(path, PEOPLE.sample(fraction=1.0, shuffle=True, seed=2))
    assert outcomes(parts) == dict.fromkeys(["digests", *filed.tables, "data"], "pass")
    stated = json.loads(path.read_text("utf-8"))["results"]
    for table, frame in filed.tables.items():
        rows = frame.to_dicts()
        assert len(stated[table]) == len(rows)
        for one, other in zip(stated[table], rows, strict=True):
            assert_same(one, other)
    assert outcomes(verify_evidence(path, PEOPLE.head(4_000)))["data"] == "fail"


@pytest.mark.parametrize("name", ["nyc", "eeoc"])
def test_evidence_of_suppressed_audits_holds_no_small_count(name: str, tmp_path: Path) -> None:
    path, (audit, call) = tmp_path / "evidence.json", NAMED[name]
    by = ["stated", "race", ("sex", "race")]
    few = PEOPLE.head(700)
    options: dict[str, Any] = {**call, "by": by, "group_by": "fold", "case_weights": None, "suppress_below": 6}
    filed = tf.audit(audit, few, **options)
    filed.save_evidence(path)
    assert set(outcomes(verify_evidence(path)).values()) == {"pass"}
    content = json.loads(path.read_text("utf-8"))
    assert min(filter(None, counts_in(content))) >= 6
    # what was not shown is not in the file either
    rows = [row for table in content["results"].values() for row in table if row.get(".status") == "suppressed"]
    assert rows
    assert all(row[".n"] is row[".estimate"] is None for row in rows)
    assert content["data"]["sha256"] is None


FAIR = tf.metric_set(tf.accuracy, tf.equalized_odds("race"), tf.sens.difference("ordered", to="White", min_n=20))
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "set": (FAIR, LABELS),
    "one": (tf.demographic_parity(TAGS), LABELS),
    "gate": (tf.check(tf.metric_set(tf.equalized_odds("stated"), tf.demographic_parity("race")), below=0.2), LABELS),
    "sides": (tf.check(tf.equal_opportunity(tf.privileged(race="White")), below=0.3), LABELS),
    "numbers": (tf.metric_set(tf.rmse, tf.mae.difference("sex")), {"truth": "pay", "estimate": "bonus"}),
    "bootstrap": (tf.f_meas.difference("race"), {**LABELS, "interval": "bootstrap", "times": 100}),
    "clusters": (tf.equalized_odds("sex"), {**LABELS, "cluster": "fold"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_evidence_of_metrics_and_gates(name: str, tmp_path: Path) -> None:
    path, (audit, call) = tmp_path / "evidence.json", CALLS[name]
    results = write_evidence(path, audit, PEOPLE, **call)
    assert set(outcomes(verify_evidence(path, PEOPLE)).values()) == {"pass"}
    if name == "bootstrap":
        return
    options: dict[str, Any] = {} if name in {"gate", "sides"} else {"interval": "auto", "explain": True}
    if name == "numbers":
        # the limits of means in a file are those of random parts of the rows
        again = audit.compute(audit.tally(PEOPLE, **call, parts=0), **options)
    else:
        again = audit(PEOPLE, **call, **options, on_undefined="ignore")
    for one, other in zip(results.to_dicts(), again.to_dicts(), strict=True):
        assert_same(one, other)


def test_reports_have_evidence(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    gate = tf.check(tf.equal_opportunity("sex"), below=0.2)
    report = tf.report(PEOPLE, by=["sex", "race"], gate=gate, **LABELS)
    report.save_evidence(path)
    assert outcomes(verify_evidence(path, PEOPLE)) == dict.fromkeys(
        ["digests", "results", "groups", "verdicts", "data"], "pass"
    )
    content = json.loads(path.read_text("utf-8"))
    (overall,) = (row for row in content["results"]["results"] if row[".metric"] == "accuracy")
    assert overall[".estimate"] == pytest.approx(PEOPLE.select((pl.col("repaid") == pl.col("approved")).mean()).item())
    # the call is the code that makes it again
    assert content["call"]["gate"].startswith("{'metrics': tdf.equal_opportunity('sex'), 'limits': (('below', 0.2),)")


@pytest.mark.usefixtures("undrawn")
def test_commands_write_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "evidence.json")
    data = written(lending(), tmp_path)
    calls = [
        ["audit", data, *ARGUMENTS, "--fail-if", "equalized_odds(race) > 0.5", "--suppress-below", "5"],
        [
            "audit",
            data,
            *ARGUMENTS,
            "--fail-if",
            "accuracy < 0.6",
            "--fail-if",
            "sens_group_minimum(race) < 0.3",
            "--outside",
            "state",
            "--unknown-value",
            "Native",
            "--min-share",
            "0.02",
            "--metric",
            "f_meas",
        ],
        ["report", data, *ARGUMENTS, "--html", str(tmp_path / "page.html")],
        ["audit", data, "--as", "eeoc_uniform_guidelines", *ARGUMENTS],
    ]
    for call in calls:
        code, _, said = called(capsys, *call, "--evidence", path)
        assert code == 0, said
        assert f"{path} is written." in said
        code, shown, _ = called(capsys, "verify", path, "--data", data)
        assert code == (4 if "--suppress-below" in call else 0)
        assert "fail" not in shown
    scores = ["audit", data, "--truth", "repaid", "--pos-label", "yes", "--probs", "score", "--by", "sex"]
    assert "`--evidence-rows`" in called(capsys, *scores, "--evidence", path)[2]
    assert called(capsys, *scores, "--evidence", path, "--evidence-rows")[0] == 0
    assert called(capsys, "verify", path)[0] == 0
    assert "`--evidence-rows` goes with `--evidence`" in called(capsys, *scores, "--evidence-rows")[2]
    assert "must end in .json" in called(capsys, *scores, "--evidence", str(tmp_path / "evidence.txt"))[2]


def test_code_in_a_file_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, tf.equalized_odds("sex"), PEOPLE, **LABELS)
    text = path.read_text("utf-8")
    for code in ("__import__('os').system('true')", "tdf.load_state('a', 'b')", "tdf.sens.__class__", "open('a')"):
        path.write_text(text.replace("tdf.equalized_odds('sex')", code), "utf-8")
        reason = verify_evidence(path).filter(pl.col(".requirement") == "numbers")[".reason"].item()
        assert "is no code of a call" in reason


def test_forged_results_are_found_by_the_tallies(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, POLICY, lending(), **CALL)
    content = json.loads(path.read_text("utf-8"))
    row = next(row for row in content["results"]["groups"] if row[".group"] == "Black" and row[".metric"] == "sens")
    row[".estimate"] += 0.1
    # a forger may compute all digests again
    digest, digests = "", dict[str, str]()
    for part in ("made_by", "data", "call", "tallies", "results"):
        digest = digests[part] = hashlib.sha256((digest + canonical(content[part])).encode()).hexdigest()
    content["sha256"] = digests
    path.write_text(canonical(content), "utf-8")
    parts = verify_evidence(path)
    assert outcomes(parts) == {"digests": "pass", "groups": "fail", "verdicts": "pass"}
    assert "race Black sens: .estimate is" in parts.filter(pl.col(".requirement") == "groups")[".reason"].item()


def test_counts_of_features_are_those_of_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, POLICY, lending(), **CALL)
    content = json.loads(path.read_text("utf-8"))
    every, sex = content["tallies"][0][:2]
    assert (every["by"], sex["by"]) == (None, "sex")
    for feature in (every, sex):
        feature["cells"]["n"][0] += 1
        path.write_text(digested(content), "utf-8")
        assert "the rows of sex are not those of all rows" in verify_evidence(path).row(-1)[2]
        feature["cells"]["n"][0] -= 1
    path.write_text(digested(content), "utf-8")
    assert set(outcomes(verify_evidence(path)).values()) == {"pass"}


def test_suppressed_evidence_holds_no_small_count(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, POLICY, lending(), **CALL, suppress_below=12)
    content = json.loads(path.read_text("utf-8"))
    assert content["data"]["sha256"] is None
    # suppressed groups are there, with no rows
    assert min(counts_in(content)) == 0
    assert min(filter(None, counts_in(content))) >= 12
    assert all(row[".n"] is None for row in content["results"]["groups"] if row[".status"] == "suppressed")


def counts_in(content: dict[str, Any]) -> list[int]:
    """The numbers of rows in all tallies of a file."""
    return [n for table in content["tallies"] for feature in table for n in feature["cells"]["n"]]


def test_what_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "evidence.json", lending()
    areas = AuditPolicy(features=("sex",), metrics=("roc_auc",))
    with pytest.raises(tf.errors.ArgumentError, match="score_bins=1000"):
        write_evidence(path, areas, data, "repaid", probs="score", pos_label="yes")
    with pytest.raises(tf.errors.ArgumentError, match=r"`case_weights` is .* which a file cannot hold"):
        write_evidence(path, POLICY, data, "repaid", "approved", pos_label="yes", case_weights=pl.col("score"))
    point = tf.operating_point(tf.fall_out, at_most=0.2)
    scores: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes", "threshold": point}
    with pytest.raises(tf.errors.ArgumentError, match="`threshold` is a number"):
        write_evidence(path, tf.equalized_odds("sex"), data, **scores)
    dated = data.with_columns(pl.lit("2026-01-01").str.to_date().alias("sex"))
    with pytest.raises(tf.errors.ArgumentError, match="'sex' is Date, which JSON cannot hold"):
        write_evidence(path, POLICY, dated, **CALL)


def digested(content: dict[str, Any]) -> str:
    """A file with the digests of its parts, as anybody can compute them."""
    digest, digests = "", dict[str, str]()
    for part in ("made_by", "data", "call", "tallies", "results"):
        digest = digests[part] = hashlib.sha256((digest + canonical(content[part])).encode()).hexdigest()
    return canonical(content | {"sha256": digests})


def test_what_is_added_to_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, tf.equalized_odds("sex"), PEOPLE, **LABELS)
    content = json.loads(path.read_text("utf-8"))
    added = [
        content | {"certified": "yes"},
        content | {"version": 2.0},
        content | {"sha256": {**content["sha256"], "": ""}},
    ]
    for changed in added:
        path.write_text(canonical(changed), "utf-8")
        assert verify_evidence(path).row(0) == ("digests", "fail", "the file is not written as it was")
    content["results"]["results"][0][".certified"] = True
    path.write_text(digested(content), "utf-8")
    assert ("results", "fail", "the tallies give no '.certified'") in verify_evidence(path).rows()


@pytest.mark.parametrize("number", ["NaN", "Infinity", '"\\ud800"', "[" * 100_000])
def test_files_that_are_no_evidence_are_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, tf.equalized_odds("sex"), PEOPLE, **LABELS)
    path.write_text(path.read_text("utf-8").replace('"made_by": {', f'"made_by": {{"a": {number}, ', 1), "utf-8")
    with pytest.raises(tf.errors.ArgumentError, match="is not evidence"):
        verify_evidence(path)


def test_code_that_is_nested_too_deeply_is_no_call(tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    write_evidence(path, tf.equalized_odds("sex"), PEOPLE, **LABELS)
    content = json.loads(path.read_text("utf-8"))
    path.write_text(digested(content | {"call": content["call"] | {"times": "-" * 100_000 + "1"}}), "utf-8")
    assert outcomes(verify_evidence(path)) == {"digests": "pass", "numbers": "fail"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pl.Series([math.inf, 1.0]), "'g' holds infinite numbers"),
        (pl.Series([2**63, 1], dtype=pl.UInt64), "'g' is UInt64.*cast it to text"),
        (pl.Series([1, 2]).cast(pl.Decimal(9, 2)), "'g' is Decimal.*cast it to Float64"),
    ],
)
def test_columns_that_json_lacks_have_a_way_out(values: pl.Series, message: str, tmp_path: Path) -> None:
    data = pl.DataFrame({"g": values, "y": [0, 1], "guess": [1, 1]})
    with pytest.raises(tf.errors.ArgumentError, match=message):
        write_evidence(tmp_path / "evidence.json", tf.accuracy.difference("g"), data, "y", "guess")
