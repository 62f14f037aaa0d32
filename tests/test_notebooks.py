"""Notebooks run, and give the outputs that are committed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def shown(notebook: Any) -> list[list[str]]:
    """What the cells of a notebook show as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.filterwarnings("default")  # of the machinery of notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_are_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # how far a slow machine is would be an output
    monkeypatch.setenv("TIDYFAIR_PROGRESS", "0")
    notebook: Any = nbformat.read(path, as_version=4)
    again = copy.deepcopy(notebook)
    NotebookClient(again, timeout=300).execute()
    assert shown(again) == shown(notebook)


def test_notebooks_exist() -> None:
    assert NOTEBOOKS
