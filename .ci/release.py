"""Checks a version before its release, `python .ci/release.py 0.1.0`: it is the package's, and the changelog dates it."""  # noqa: E501, INP001 - a script

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def faults(version: str) -> list[str]:
    """What is in the way of a release."""
    found: list[str] = []
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if package != version:
        found.append(f"pyproject.toml has version {package}, and the tag says {version}.")
    changelog = (ROOT / "docs" / "pages" / "changelog.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)}, \d{{4}}-\d{{2}}-\d{{2}}$", changelog, re.MULTILINE):
        found.append(f"docs/pages/changelog.md has no heading `## {version}, YYYY-MM-DD`.")
    return found


if __name__ == "__main__":
    found = faults(sys.argv[1])
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    sys.exit(bool(found))
