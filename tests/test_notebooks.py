"""Notebooks run, and give the outputs that are committed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import is_numpy_2_5
from nbclient import NotebookClient

NUMPY_2_5 = {"29.5 to 42.2": "29.6 to 42.2"}
"""What the outputs are from numpy 2.5 on, which draws a few of the numbers of a seed anew."""
NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def shown(notebook: Any) -> list[list[str]]:
    """What the cells of a notebook show as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def as_drawn_here(text: str) -> str:
    """An output that is committed as the installed numpy gives it."""
    if is_numpy_2_5():
        for before, after in NUMPY_2_5.items():
            text = text.replace(before, after)
    return text


@pytest.mark.filterwarnings("default")  # of the machinery of notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_are_up_to_date(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # how far a slow machine is would be an output
    monkeypatch.setenv("TIDYFAIR_PROGRESS", "0")
    notebook: Any = nbformat.read(path, as_version=4)
    again = copy.deepcopy(notebook)
    NotebookClient(again, timeout=300).execute()
    assert shown(again) == [[as_drawn_here(text) for text in outputs] for outputs in shown(notebook)]


def test_notebooks_exist() -> None:
    assert NOTEBOOKS
