"""What is said of versions, in several files that other programs read, is the same everywhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).parents[1]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".github/CITATION.cff", r"^version: (\S+)$"),
        (".github/conda/recipe.yaml", r'^  version: "(\S+)"$'),
        ("docs/pages/install.md", r"^  version += \{(\S+)\},$"),
        ("docs/pages/install.md", r"tidyfair-(\S+)-py3-none-any"),
        ("docs/pages/changelog.md", r"^## (\d\S+), \d{4}-\d\d-\d\d$"),
        ("docs/pages/assets/style.css", r'^  content: " (\S+)";$'),
    ],
)
def test_version_is_the_same_in_every_file(path: str, pattern: str) -> None:
    (version, *_) = re.findall(pattern, (TOP / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert version == PROJECT["version"]


@pytest.mark.parametrize("package", ["polars", "narwhals", "numpy", "scipy"])
def test_oldest_versions_are_the_same_in_every_file(package: str) -> None:
    (oldest, *_) = (item.partition(">=")[2] for item in PROJECT["dependencies"] if item.startswith(f"{package}>="))
    oldest = oldest.partition(";")[0]
    assert f"- {package} >={oldest}\n" in (TOP / ".github/conda/recipe.yaml").read_text(encoding="utf-8")
    assert f"| {package} | {oldest} " in (TOP / "docs/pages/install.md").read_text(encoding="utf-8")


def test_oldest_python_is_the_same_in_every_file() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f'python_min: "{oldest}"' in (TOP / ".github/conda/recipe.yaml").read_text(encoding="utf-8")
    assert f"| Python | {oldest} " in (TOP / "docs/pages/install.md").read_text(encoding="utf-8")
    assert f'python: ["{oldest}"' in (TOP / ".github/workflows/ci.yml").read_text(encoding="utf-8")


def test_extras_that_texts_name_can_be_installed() -> None:
    texts = [*TOP.glob("tidyfair/**/*.py"), *TOP.glob("docs/pages/**/*.md"), TOP / "README.md"]
    named = {
        extra
        for path in texts
        for extras in re.findall(r"(?:tidyfair|'\.)\[(\w+(?:,\w+)*)\]", path.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert {"pandas", "plot", "report"} <= named <= PROJECT["optional-dependencies"].keys()


def test_a_release_needs_the_version_of_the_package_and_its_date() -> None:
    def checked(version: str) -> tuple[int, str]:
        run = subprocess.run(  # noqa: S603 - a script of our own
            [sys.executable, TOP / ".ci" / "release.py", version], capture_output=True, text=True, check=False
        )
        return run.returncode, run.stdout

    assert checked(PROJECT["version"]) == (0, "")
    code, said = checked("99.0.0")
    assert code == 1
    assert PROJECT["version"] in said
    assert "## 99.0.0, YYYY-MM-DD" in said


def test_the_release_workflow_builds_tries_and_attests() -> None:
    steps = yaml.safe_load((TOP / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]["build"][
        "steps"
    ]
    used = [step.get("uses", "").partition("@")[0] for step in steps]
    assert {"actions/attest-build-provenance", "actions/attest-sbom", "actions/upload-artifact"} <= {*used}
    commands = "\n".join(step.get("run", "") for step in steps)
    for command in (".ci/release.py", "python -m build", "twine check", "pytest", "cyclonedx_py"):
        assert command in commands, command
