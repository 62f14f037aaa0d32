"""Lending data with a hostile name, and pages as a browser reads them, for tests of reports."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import polars as pl

from tidyfair.datasets import lending

HOSTILE = "<script>alert(1)</script> | `x` & *y*"
LOANS = lending(3_000).with_columns(
    race=pl.col("race").cast(pl.String).replace({"Native": HOSTILE}),
    repaid=pl.when(pl.int_range(pl.len()) % 60 > 0).then("repaid"),
)
LABELS: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}


class Page(HTMLParser):
    """What is on a page, as a browser reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def shown(table: Any) -> list[str]:
    """The texts of the cells of a table, and of what stands around them."""
    page = Page(table.as_raw_html())
    return [line.strip() for line in page.text.split("\n") if line.strip()]
