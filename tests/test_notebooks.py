"""Notebooks run, and give the outputs that are committed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
AFRESH = """
get_ipython().run_line_magic("reset", "-f")
import altair
import polars
import vl_convert

altair.renderers.enable("default")
polars.Config.restore_defaults()
# pages are made, and their pictures not drawn: the text that stands for a page is compared
vl_convert.vegalite_to_svg = lambda *_: '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
"""


def shown(notebook: Any) -> list[list[str]]:
    """What the cells of a notebook show as text."""
    return [
        [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.fixture(scope="module")
def client() -> Iterator[NotebookClient]:
    """One kernel for all notebooks, which takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        # how far a slow machine is would be an output
        patch.setenv("TIDYFAIR_PROGRESS", "0")
        made = NotebookClient(nbformat.v4.new_notebook(), timeout=300)
        with made.setup_kernel():
            yield made


@pytest.mark.filterwarnings("default")  # of the machinery of notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_outputs_are_up_to_date(path: Path, client: NotebookClient) -> None:
    notebook: Any = nbformat.read(path, as_version=4)
    client.nb = copy.deepcopy(notebook)
    # no notebook sees the names and settings of another
    client.nb.cells.insert(0, nbformat.v4.new_code_cell(AFRESH))
    client.reset_execution_trackers()
    for index, cell in enumerate(client.nb.cells):
        client.execute_cell(cell, index)
    del client.nb.cells[0]
    assert shown(client.nb) == shown(notebook)


def test_notebooks_exist() -> None:
    assert NOTEBOOKS
