"""Writes a page of the site for each notebook, with the outputs that are committed in it.

`--check` says which pages are stale, and exits 1.
"""  # noqa: INP001 - a script

from __future__ import annotations

import base64
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FOLDER = Path(__file__).parent / "pages" / "notebooks"
_NUMBER = re.compile(r"-?[\d.,]+(e-?\d+)?|null")
_MARKUP = re.compile(r"([\\`*|<>\[\]])")


def pages() -> dict[str, str | bytes]:
    """The pages and the pictures on them, by the name of their file."""
    found: dict[str, str | bytes] = {}
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        pictures: list[bytes] = []
        cells = json.loads(path.read_text("utf-8"))["cells"]
        parts = [part for cell in cells for part in _of_cell(cell, path.stem, pictures)]
        found[f"{path.stem}.md"] = "\n\n".join(parts) + "\n"
        for number, picture in enumerate(pictures, start=1):
            found[f"{path.stem}_{number}.png"] = picture
    return found


def _of_cell(cell: dict[str, Any], stem: str, pictures: list[bytes]) -> Iterator[str]:
    """Prose as it stands; code with its outputs."""
    source = "".join(cell["source"]).strip("\n")
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            pictures.append(base64.b64decode(data["image/png"]))
            yield f"![Picture drawn by the cell above]({stem}_{len(pictures)}.png)"
        elif "text/html" in data:
            yield _table("".join(data["text/html"]))
        else:
            text = "".join(data.get("text/plain", output.get("text", ""))).strip("\n")
            yield f"```text\n{text}\n```"


def _table(markup: str) -> str:
    """The table of a frame in Markdown, without the row of dtypes."""
    reader = _Rows()
    reader.feed(markup)
    heading, *rows = reader.rows
    rows = [row for row in rows if len(row) == len(heading)]
    # numbers stand below each other
    sides = ["---:" if all(map(_NUMBER.fullmatch, column)) else "---" for column in zip(*rows, strict=True)]
    lines = [heading, sides, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class _Rows(HTMLParser):
    """The texts of the cells of a table, row by row; rows of plain cells in the head are dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in_head, self._in_cell = False, False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - of the parser
        if tag == "thead":
            self._in_head = True
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and (tag == "th" or not self._in_head):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "thead":
            self._in_head = False
            self.rows = [row for row in self.rows if row]
        elif tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            # polars shows texts in quotes
            self.rows[-1][-1] += _MARKUP.sub(r"\\\1", data.strip('"'))


def main() -> int:
    """Write the pages, or say which are stale."""
    texts = {name: text.encode() if isinstance(text, str) else text for name, text in pages().items()}
    FOLDER.mkdir(exist_ok=True)
    stale = [name for name, text in texts.items() if _committed(name) != text]
    extra = [path for path in FOLDER.iterdir() if path.name not in texts]
    if "--check" in sys.argv[1:]:
        sys.stdout.writelines(f"{name} is stale: run `python docs/notebooks.py`.\n" for name in stale)
        return int(bool(stale or extra))
    for name in stale:
        (FOLDER / name).write_bytes(texts[name])
    for path in extra:
        path.unlink()
    return 0


def _committed(name: str) -> bytes | None:
    path = FOLDER / name
    return path.read_bytes() if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
