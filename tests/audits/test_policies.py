"""Required policies: what is missing fails as much as what is exceeded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair.audits import AuditPolicy, read_policy
from tidyfair.cli.main import main
from tidyfair.datasets import lending

CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
POLICY = """\
features = ["sex", "race"]
crossings = ["sex:race"]
metrics = ["sens", "roc_auc"]
least_n = 40

[limits]
accuracy = 0.65
equalized_odds = 0.1
"""


def verdicts_of(policy: AuditPolicy, data: pl.DataFrame, **options: Any) -> dict[tuple[object, ...], str]:
    frame = policy(data, **CALL, **options)
    return {row[:3]: row[3] for row in frame.select(".by", ".metric", ".requirement", ".verdict").rows()}


def test_verdicts_are_those_of_gates_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    policy, data = read_policy(path), lending()
    verdicts = verdicts_of(policy, data, probs="score")
    assert len(verdicts) == 3 + 3 * 4
    # 38 women are native
    smallest = data.group_by("sex", "race").len()["len"].min()
    assert smallest == 38
    assert verdicts["sex:race", None, "rows"] == "fail"
    assert verdicts["race", None, "rows"] == "pass"
    for by, columns in (("sex", ["sex"]), ("race", ["race"]), ("sex:race", ["sex", "race"])):
        gate = tf.check(tf.equalized_odds(*columns), below=0.1)
        assert verdicts[by, "equalized_odds", "limit"] == gate(data, **CALL)[".verdict"].item()
        assert verdicts[by, "roc_auc", "value"] == "pass"
    assert verdicts[None, "accuracy", "limit"] == tf.check(tf.accuracy, above=0.65)(data, **CALL)[".verdict"].item()


def test_what_is_missing_fails(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    policy = read_policy(path)
    # without scores there is no area, without the column no feature
    verdicts = verdicts_of(policy, lending().drop("race"))
    assert verdicts["sex", "roc_auc", "value"] == verdicts[None, "roc_auc", "value"] == "fail"
    assert verdicts["race", None, "feature"] == verdicts["sex:race", None, "feature"] == "fail"
    assert verdicts["sex", "sens", "value"] == "pass"
    # without a truth limits on errors cannot be judged
    frame = policy(lending(), estimate="approved", pos_label="yes")
    limits = frame.filter(pl.col(".requirement") == "limit")
    assert set(limits[".verdict"]) == {"fail"}
    assert "missing" in limits[".reason"][0]


def test_exceeded_limits_fail() -> None:
    policy = AuditPolicy(features=("race",), limits={"demographic_parity": 0.05, "selection_rate": 0.99})
    verdicts = verdicts_of(policy, lending())
    assert verdicts["race", "demographic_parity", "limit"] == "fail"
    with pytest.raises(tf.inference.UnfairError, match=r"2 of 3 requirements do not hold"):
        policy.assert_holds(lending(), **CALL)
    AuditPolicy(features=("sex",), limits={"demographic_parity": 0.2}).assert_holds(lending(), **CALL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('features = "sex"', r"line 1: 'features' takes a list of columns"),
        ('\nfeature = ["sex"]', r"line 2: unknown key 'feature'. Did you mean 'features'\?"),
        ('features = ["sex"]\nmetrics = [\n  "senss",\n]', r"line 3: `metrics`: there is no metric 'senss'"),
        ("[limits]\nequalized_od = 0.1", r"line 2: `limits`: there is no metric or disparity 'equalized_od'"),
        ("[limits]\nequalized_odds = 5", r"line 2: .*lies between 0 and 1"),
        (
            "[limits]\naccuracy = 65",
            r"line 2: `limits`: .* the limit `accuracy = 65`, .* 65 percent is `accuracy = 0\.65`",
        ),
        ("[limits]\nfpr = 0.1", r"line 2: .* no metric or disparity 'fpr'\. Here it is 'false_positive_rate'"),
        ("x = = 3", "not a policy: .*line 1, column 5"),
    ],
)
def test_bad_policies_name_key_and_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(tf.errors.ArgumentError, match=message):
        read_policy(path)
    with pytest.raises(tf.errors.ArgumentError, match=r"none.toml' cannot be read: No such file"):
        read_policy(tmp_path / "none.toml")


def test_command_line_checks_and_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, data, evidence = tmp_path / "policy.toml", tmp_path / "loans.parquet", tmp_path / "evidence.json"
    policy.write_text('features = ["sex"]\n[limits]\ndemographic_parity = 0.2\n')
    lending().write_parquet(data)
    call = ["--estimate", "approved", "--pos-label", "yes", "--policy", str(policy)]
    assert main(["check", str(data), *call, "--evidence", str(evidence)]) == 0
    assert "limit" in capsys.readouterr().out
    assert main(["verify", str(evidence), "--data", str(data)]) == 0
    lending().head(10).write_parquet(data)
    assert main(["verify", str(evidence), "--data", str(data)]) == 3
    assert main(["verify", str(evidence), "--data", str(data), "--json", "-"]) == 3
    assert "the rows are others" in capsys.readouterr().out
    policy.write_text('features = ["tall"]\n')
    assert main(["check", str(data), *call]) == 3
    assert main(["check", str(data), *call, "--json", "-"]) == 3
    assert "the data have no columns tall" in capsys.readouterr().out
    policy.write_text('features = ["sex"]\nmetrics = ["selection_rate"]\nleast_n = 2000\n')
    main(["check", *call])
    shown = capsys.readouterr().out
    sizes = lending().group_by("sex").agg(pl.len(), (pl.col("approved") == "yes").mean())
    # as counts, and in percent
    assert f" {sizes['len'].min():,} " in shown
    assert " 2000 " in shown
    assert f"{sizes['approved'].min():.1%}" in shown  # pyright: ignore[reportOptionalOperand] - no nulls
    with pytest.raises(SystemExit):
        main(["check", *call, "--by", "sex"])
    assert "--by is an option of audit, report, compare, and not of check" in capsys.readouterr().err
    assert main(["check", "missing.csv", *call]) == 2
    assert "'missing.csv': No such file or directory" in capsys.readouterr().err
    evidence.write_text("{}")
    assert main(["verify", str(evidence)]) == 2
