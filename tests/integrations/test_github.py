"""The action of GitHub and the hook of pre-commit: the steps run here, with inputs that try to be commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tidyfair.cli.main import main
from tidyfair.datasets import lending

TOP = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((TOP / ".github/actions/audit/action.yml").read_text("utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}
HOSTILE = ["$(touch stolen)", "`touch stolen`", '"; touch stolen; "', "'; touch stolen; '", "--html=stolen", "a b", "*"]


class Ran(NamedTuple):
    code: int
    arguments: list[str]
    outputs: dict[str, str]


def run(folder: Path, inputs: dict[str, str], code: int = 0) -> Ran:
    """Run the step of the audit as GitHub does, with a command that writes its arguments down."""
    folder.mkdir(exist_ok=True)
    command = folder / "tidyfair" / "bin" / "tidyfair"
    command.parent.mkdir(parents=True)
    lines = ["import json, sys", "json.dump(sys.argv[1:], open('arguments.json', 'w'))", f"sys.exit({code})"]
    command.write_text("\n".join([f"#!{sys.executable} -S", *lines]))
    command.chmod(0o755)
    step = STEPS["Audit"]
    given = {name: str(declared.get("default", "")) for name, declared in ACTION["inputs"].items()} | inputs
    environment = {"PATH": "/usr/bin:/bin", "RUNNER_TEMP": str(folder)}
    environment |= {"GITHUB_STEP_SUMMARY": "summary of the run.md", "GITHUB_OUTPUT": "outputs"}
    for variable, expression in step["env"].items():
        environment[variable] = given[expression.removeprefix("${{ inputs.").removesuffix(" }}")]
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(script, cwd=folder, env=environment, check=False)  # noqa: S603 - our own
    outputs = dict(line.split("=", 1) for line in (folder / "outputs").read_text().splitlines())
    return Ran(done.returncode, json.loads((folder / "arguments.json").read_text()), outputs)


def test_action_declares_its_inputs_and_no_text_of_users_is_part_of_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert {"data", "truth", "estimate", "features", "fail-if", "arguments"} <= set(ACTION["inputs"])
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    used = {expression for step in STEPS.values() for expression in step["env"].values()}
    declared = {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"] if name != "python-version"}
    assert used == declared | {"${{ github.action_path }}"}
    assert set(ACTION["outputs"]) == {"exit-code", "verdict"}


@pytest.mark.parametrize("text", HOSTILE)
def test_inputs_of_the_action_stay_arguments(text: str, tmp_path: Path) -> None:
    same = dict.fromkeys(("data", "truth", "estimate", "features"), text)
    ran = run(tmp_path, {**same, "fail-if": f"{text}\n\n{text}"})
    assert ran.arguments == [
        "audit", "--markdown=summary of the run.md", f"--truth={text}", f"--estimate={text}", f"--by={text}",
        f"--fail-if={text}", f"--fail-if={text}", "--", text,
    ]  # fmt: skip
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize(
    ("code", "allowed", "ends", "verdict"),
    [
        (0, "false", 0, "pass"),
        (2, "true", 2, "error"),
        (3, "true", 3, "fail"),
        (4, "false", 4, "not enough evidence"),
        (4, "true", 0, "not enough evidence"),
    ],
)
def test_action_ends_with_the_verdict(code: int, allowed: str, ends: int, verdict: str, tmp_path: Path) -> None:
    ran = run(tmp_path, {"data": "loans.csv", "allow-not-enough-evidence": allowed}, code)
    assert ran.code == ends
    assert ran.outputs == {"exit-code": str(code), "verdict": verdict}


def test_arguments_of_the_action_are_those_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lending(1_000).write_csv(tmp_path / "loans.csv")
    inputs = {
        "data": "loans.csv", "truth": "repaid", "estimate": "approved", "features": "race\n  sex\n",
        "arguments": "--pos-label=yes\n--confidence\n0.9", "fail-if": "accuracy < 0.99",
    }  # fmt: skip
    ran = run(tmp_path, inputs)
    monkeypatch.chdir(tmp_path)
    assert main(ran.arguments) == 3
    out = capsys.readouterr().out
    assert "FAIL: the limit is not met: accuracy is " in out
    assert "must be above 99%" in " ".join(out.split())
    assert "accuracy" in (tmp_path / "summary of the run.md").read_text("utf-8")


def test_an_empty_name_of_the_data_is_no_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(run(tmp_path, {"data": ""}).arguments)
    assert ended.value.code == 2
    assert "the name of the file is empty" in capsys.readouterr().err


def test_hook_of_pre_commit_runs_the_audit_on_files() -> None:
    (hook,) = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["id"] == "tidyfair-audit"
    assert hook["entry"] == "tidyfair audit"
    assert hook["language"] == "python"
    # without the name of a file the example data would be audited
    assert hook.get("pass_filenames", True)
    # several processes would judge the same file in parts
    assert hook["require_serial"]
