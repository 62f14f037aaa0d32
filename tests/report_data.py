"""Lending data with a hostile name, survival times, and pages as a browser reads them, for tests of reports."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl

from tidyfair.datasets import lending
from tidyfair.survival import outcome as survival

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


def patients(rows: int = 400) -> pl.DataFrame:
    """Survival times without censoring of two groups, of which one has wrong predictions at the time 8 only.

    The row that is followed longest outlives both times, so that no row is left out.
    """
    random = np.random.default_rng(0)
    time = random.integers(1, 13, rows).astype(float)
    ward = np.where(np.arange(rows) % 2 == 0, "a", "b")
    lives_4, lives_8 = time > 4, time > 8
    s4 = np.where(lives_4, 0.8, 0.2) + random.uniform(-0.1, 0.1, rows)
    s8 = np.where(lives_8 == (ward == "a"), 0.8, 0.2) + random.uniform(-0.1, 0.1, rows)
    risk = random.random(rows)
    return pl.DataFrame({"time": time, "died": True, "ward": ward, "s4": s4, "s8": s8, "risk": risk})


TIMES: dict[str, Any] = {"truth": survival("time", "died"), "probs": {4: "s4", 8: "s8"}}
