"""The output of a command: documents of texts and tables for the terminal, files, a job summary and JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from tidyfair.cli.terminal import say, show, tell, with_notes
from tidyfair.errors import ArgumentError
from tidyfair.escapes import as_text, markdown_row, visible
from tidyfair.reports.tables import NOTHING, reason, worded
from tidyfair.specs.result_columns import RESERVED, SELECTIONS, key_columns
from tidyfair.tallies.files import check_outputs, save, write

Content: TypeAlias = "pl.DataFrame | str | dict[str, Any]"
"""A table, a text, or the content of a JSON document."""

_FLAGS = ("html", "markdown", "output", "output_groups", "json")
_TEXTS = ("markdown", "json")
_STDOUT = Path("-")
_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the summary of a GitHub job, which steps add to."""
_HEADINGS = {
    ".status": "reason", ".condition": "fails if", ".pooled": "pooled", ".top_k": "best rows",
    ".top_fraction": "best share", ".error_bound": "error at most",
}  # fmt: skip
"""Headings that columns have here alone."""


# Files


@dataclass(frozen=True)
class Outputs:
    """The files to be written, by option; `-` is the standard output."""

    files: dict[str, Path]

    @classmethod
    def of(cls, options: Namespace) -> Outputs:
        """The files that options name; refuses those that would overwrite each other or the data."""
        files: dict[str, Path] = {flag: getattr(options, flag) for flag in _FLAGS if getattr(options, flag) is not None}
        printed = [flag for flag, file in files.items() if file == _STDOUT]
        for flag in printed:
            if flag not in _TEXTS:
                msg = f"`{flag}` is written to a file; documents that can be printed are `json` and `markdown`."
                raise ArgumentError(msg)
        if len(printed) > 1:
            msg = "`markdown` and `json` cannot both be printed: write one of them to a file."
            raise ArgumentError(msg)
        on_disk = {flag: file for flag, file in files.items() if flag not in printed}
        check_outputs(on_disk, options.file, summary=_summary())
        return cls(files)

    def __contains__(self, flag: str) -> bool:
        return flag in self.files

    def __bool__(self) -> bool:
        return bool(self.files)

    def write(self, contents: Mapping[str, Callable[[], Content]]) -> None:
        """Write the files that are asked for, in this order; each content is made by its function."""
        for flag, content_of in contents.items():
            if flag not in self.files:
                continue
            content, file = content_of(), self.files[flag]
            if isinstance(content, pl.DataFrame):
                write(content, file)
            else:
                _write_text(content if isinstance(content, str) else _as_json(content), file)

    def show(
        self, document: Callable[[], Document], brief: Callable[[], Document] | None, notes: Sequence[str]
    ) -> None:
        """Print a document, or its brief form where files have the rest, and notes beside it."""
        if not self:
            document().print()
        elif brief is not None and _STDOUT not in self.files.values():
            # a document on the standard output has it for itself
            brief().print()
        for text in notes:
            tell(f"note: {text}")


def _write_text(text: str, file: Path) -> None:
    """Write a document to its file, or print it; the summary of a GitHub job is added to."""
    if file == _STDOUT:
        sys.stdout.write(text)
        return
    summary = _summary()
    if summary is not None and file.exists() and file.samefile(summary):
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{text}")
        tell(f"{file} is added to.")
        return
    save(lambda part: part.write_text(text, encoding="utf-8"), file)
    tell(f"{file} is written.")


def _summary() -> Path | None:
    """The file of the summary of a GitHub job, if this is one."""
    name = os.environ.get(_SUMMARY)
    return Path(name) if name else None


# JSON


def _as_json(content: dict[str, Any]) -> str:
    """A JSON document of a command; it has no NaN and no infinite numbers, which JSON forbids."""
    document = {"tidyfair": version("tidyfair"), **content}
    # characters beyond ASCII are escapes, so that a terminal obeys none
    return json.dumps(document, indent=2, allow_nan=False, default=str) + "\n"


def records(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a result for JSON: columns without their dot; outer groups in `keys`, features in `features`.

    Numbers that are not finite are null; `status` says which values are infinite.
    """
    keys = key_columns(table)
    rows: list[dict[str, Any]] = []
    for row in plain_rows(table):
        record: dict[str, Any] = {}
        for name, value in row.items():
            if name in RESERVED:
                record[name.removeprefix(".")] = value
            else:
                record.setdefault("keys" if name in keys else "features", {})[name] = value
        rows.append(record)
    return rows


def plain_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table for JSON, in which numbers that are not finite are null."""
    rows = table.rows(named=True)
    for row in rows:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                row[name] = None
    return rows


# Documents


@dataclass(frozen=True)
class Part:
    """A table with its title, notes on its cells and remarks below it."""

    title: str
    table: pl.DataFrame
    notes: tuple[tuple[str, int, str], ...] = ()
    up_to: str = ""
    """The columns up to this one are repeated where the table is too wide for the terminal."""
    remarks: tuple[str, ...] = ()

    def markdown(self) -> list[str]:
        """The paragraphs of the table in Markdown."""
        paragraphs = [f"## {as_text(self.title)}"] if self.title else []
        if self.table.is_empty():
            return [*paragraphs, "No rows."]
        # a terminal may lack the sign of a missing value
        table, below = with_notes(self.table, self.notes, nothing=NOTHING)
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
        say(self.title, bold=True)
        if self.compared:
            say(f"Compared: {self.compared}.")
        for sentence in self.headline:
            say(sentence)
        say("")
        for part in self.parts:
            show(part.title, part.table, part.notes, up_to=part.up_to, remarks=part.remarks)
        for remark in self.remarks:
            say(remark)
        if self.remarks:
            say("")

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
            paragraphs += ["## Notes", "\n".join(f"- {as_text(text)}" for text in notes)]
        paragraphs += ["## How to repeat it", f"    {visible(line)}"]
        return "\n\n".join(paragraphs) + "\n"


def in_words(table: pl.DataFrame, **headings: str) -> pl.DataFrame:
    """A table whose columns of results have headings in words; columns of the user keep their names.

    `headings` are those of some columns, by their names without the dot.
    """
    special = _HEADINGS | {f".{name}": words for name, words in headings.items()}
    if ".status" in table.columns:
        reasons = [reason(status) if status else None for status in table[".status"]]
        table = table.with_columns(pl.Series(".status", reasons, dtype=pl.String))
    names: dict[str, str] = {}
    for name in table.columns:
        if name in RESERVED or name in special:
            words = special.get(name) or worded(name)
            # a column of the user may be called so
            names[name] = f"{words} " if words in table.columns else words
    return table.rename(names)


def with_cuts_in_words(results: pl.DataFrame) -> pl.DataFrame:
    """Results whose thresholds, numbers and shares of rows are texts with all their digits."""
    cuts = [name for name in SELECTIONS if name in results.columns]
    texts = [pl.Series(name, [f"{cut:g}" for cut in results[name]], dtype=pl.String) for name in cuts]
    return results.with_columns(texts)
