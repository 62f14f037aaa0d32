"""The answer of a command: a headline and tables, printed in a terminal or written as Markdown."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tidyfair.cli.terminal import blank_line, heading, say, show, with_notes
from tidyfair.escapes import as_text, markdown_row, visible
from tidyfair.reports.tables import reason

_HEADINGS = {
    ".metric": "metric", ".by": "by", ".group": "group", ".level": "label", ".n": "rows", ".estimate": "value",
    ".base_metric": "of", ".estimator": "estimator", ".limit": "limit", ".verdict": "verdict", ".status": "reason",
    ".group_min": "lowest", ".group_max": "highest", ".p_value": "p", ".change": "change", ".threshold": "threshold",
    ".groups_left_out": "groups left out", ".metrics_left_out": "metrics left out", ".condition": "fails if",
    ".mean": "mean", ".pooled": "pooled", ".denominator": "rows that count", ".top_k": "best rows",
    ".top_fraction": "best share", ".error_bound": "error at most",
}  # fmt: skip
"""The headings of columns of results, in words."""
_NOTHING = "\N{EN DASH}"
"""The sign of a Markdown table where there is no value; a terminal may lack it."""


@dataclass(frozen=True)
class Part:
    """A table with its title, notes on its cells and remarks below it."""

    title: str
    table: pl.DataFrame
    notes: tuple[tuple[str, int, str], ...] = ()
    up_to: str = ""
    """The columns up to this one are repeated where the table is too wide for the terminal."""
    remarks: tuple[str, ...] = ()

    def print(self) -> None:
        """Print the table."""
        show(self.title, self.table, self.notes, up_to=self.up_to, remarks=self.remarks)

    def markdown(self) -> list[str]:
        """The paragraphs of the table in Markdown."""
        paragraphs = [f"## {as_text(self.title)}"] if self.title else []
        if self.table.is_empty():
            return [*paragraphs, "No rows."]
        table, below = with_notes(self.table, self.notes, nothing=_NOTHING)
        lines = [markdown_row(table.columns), markdown_row(["---"] * table.width)]
        lines += [markdown_row(row) for row in table.rows()]
        return [*paragraphs, "\n".join(lines), *map(as_text, [*below, *self.remarks])]


@dataclass(frozen=True)
class Document:
    """A title, a headline of a few sentences, and tables."""

    title: str
    headline: tuple[str, ...]
    parts: tuple[Part, ...]
    remarks: tuple[str, ...] = ()
    compared: str = ""
    """The groups that are compared."""

    def print(self) -> None:
        """Print all of it."""
        heading(self.title)
        if self.compared:
            say(f"Compared: {self.compared}.")
        for sentence in self.headline:
            say(sentence)
        blank_line()
        for part in self.parts:
            part.print()
        for remark in self.remarks:
            say(remark)
        if self.remarks:
            blank_line()

    def markdown(self, line: str, notes: list[str]) -> str:
        """The same in Markdown, with notes and the command line that made it."""
        paragraphs = [f"# {as_text(self.title)}"]
        if self.compared:
            paragraphs.append(f"Compared: {self.compared}.")
        if self.headline:
            paragraphs.append("\n".join(f"- {as_text(sentence)}" for sentence in self.headline))
        for part in self.parts:
            paragraphs += part.markdown()
        paragraphs += map(as_text, self.remarks)
        if notes:
            paragraphs += ["## Notes", "\n".join(f"- {as_text(note)}" for note in notes)]
        paragraphs += ["## How to repeat it", f"    {visible(line)}"]
        return "\n\n".join(paragraphs) + "\n"


def in_words(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose columns of results have headings in words; columns of the user keep their names."""
    if ".status" in table.columns:
        reasons = [reason(status) if status else None for status in table[".status"]]
        table = table.with_columns(pl.Series(".status", reasons, dtype=pl.String))
    names: dict[str, str] = {}
    for name in table.columns:
        words = _HEADINGS.get(name)
        if words is not None:
            # a column of the user may be called so
            names[name] = f"{words} " if words in table.columns else words
    return table.rename(names)
