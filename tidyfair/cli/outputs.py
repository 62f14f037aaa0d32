"""The output of a command: documents of texts and tables for the terminal, files, a job summary and JSON."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
from polars import selectors

from tidyfair.cli.terminal import say, show_texts, tell
from tidyfair.errors import ArgumentError
from tidyfair.escapes import as_text, renamed, visible
from tidyfair.reports import Table, reason, worded
from tidyfair.specs import RESERVED, SELECTIONS, key_columns
from tidyfair.tallies import check_outputs, save, write

Content: TypeAlias = "pl.DataFrame | str | dict[str, Any]"
"""A table, a text, or the content of a JSON document."""

_FLAGS = ("html", "markdown", "output", "output_groups", "json")
_TEXTS = ("markdown", "json")
_STDOUT = Path("-")
_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the summary of a GitHub job, which steps add to."""
_MOST_ROWS = 200
"""The most rows that are printed."""
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
    options: Namespace

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
        evidence = {} if options.evidence is None or options.command == "verify" else {"evidence": options.evidence}
        check_outputs(on_disk | evidence, options.file, summary=_summary())
        return cls(files, options)

    def write_evidence(self, write: Callable[..., object]) -> Any:
        """Write evidence if a file is named, by a function of its name and of whether values of rows may be written."""
        if self.options.evidence is None:
            if self.options.evidence_rows:
                msg = "`evidence_rows` goes with `evidence`, the name of a file."
                raise ArgumentError(msg)
            return None
        written = write(self.options.evidence, rows=bool(self.options.evidence_rows))
        tell(f"{self.options.evidence} is written.")
        return written

    def finish(
        self, document: Callable[[], Document], contents: Mapping[str, Callable[[], Content]], *,
        brief: Callable[[], Document] | None = None, notes: Sequence[str] = (), code: int = 0,
    ) -> int:  # fmt: skip
        """Write the files that are asked for, in the order of contents, or print the document; return the exit code.

        Args:
            document: What is printed where no file is asked for, and written as Markdown unless `contents` has it.
            contents: The functions that make the content of each file.
            brief: What is printed where files have the rest.
            notes: Sentences beside the document, and in those of JSON and Markdown.
            code: The exit code, which is in JSON too.
        """
        markdown = {"markdown": lambda: document().markdown(self.options.line, notes)}
        for flag, content_of in {**contents, **({} if "markdown" in contents else markdown)}.items():
            if flag not in self.files:
                continue
            content, file = content_of(), self.files[flag]
            if isinstance(content, pl.DataFrame):
                write(content, file)
                continue
            if isinstance(content, dict):
                known = {"tidyfair": version("tidyfair"), "command": self.options.line, **content}
                # neither NaN nor infinite numbers; escaped beyond ASCII, so that a terminal obeys no character
                known |= {"exit_code": code, "notes": [*notes]}
                content = json.dumps(known, indent=2, allow_nan=False, default=str) + "\n"
            _write_text(content, file)
        if not self.files:
            document().print()
        elif brief is not None and _STDOUT not in self.files.values():
            # a document on the standard output has it for itself
            brief().print()
        for text in notes:
            tell(f"note: {text}")
        return code


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


def records(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a result for JSON: columns without their dot; outer groups in `keys`, features in `features`.

    Numbers that are not finite are null; `status` says which values are infinite.
    """
    keys = key_columns(table)
    rows: list[dict[str, Any]] = []
    for row in plain_rows(table):
        rows.append({})
        for name, value in row.items():
            if name in RESERVED:
                rows[-1][name.removeprefix(".")] = value
            else:
                rows[-1].setdefault("keys" if name in keys else "features", {})[name] = value
    return rows


def plain_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table for JSON, in which numbers that are not finite are null."""
    finite = pl.when(selectors.float().is_finite()).then(selectors.float()).name.keep()
    return table.with_columns(finite).rows(named=True)


# Documents


@dataclass(frozen=True)
class Part:
    """A table with its title, notes on its cells and remarks below it."""

    title: str
    table: pl.DataFrame
    notes: Sequence[tuple[str, int, str]] = ()
    up_to: str = ""
    """The columns up to this one are repeated where the table is too wide for the terminal."""
    remarks: Sequence[str] = ()

    @property
    def shown(self) -> Table:
        """The table as pages have it, whose columns keep their names."""
        return Table(self.table, tuple(self.notes), heads={name: (name, "") for name in self.table.columns})

    def print(self) -> None:
        """Print it; a terminal may lack the sign of a missing value."""
        if self.title:
            say(self.title, bold=True)
        if self.table.is_empty():
            say("(no rows)")
            say("")
            return
        names = self.table.columns
        texts = self.shown.texts("-").rename(dict(zip(names, renamed(names), strict=True)))
        show_texts(texts.head(_MOST_ROWS), names.index(self.up_to) + 1 if self.up_to else 0)
        for sentence in (*self.shown.below(), *self.remarks):
            say(sentence)
        if len(texts) > _MOST_ROWS:
            say(f"({len(texts):,} rows in all; write them to a file to see the others.)")
        say("")

    def markdown(self) -> list[str]:
        """The paragraphs of the table in Markdown."""
        heading = [f"## {as_text(self.title)}"] if self.title else []
        if self.table.is_empty():
            return [*heading, "No rows."]
        return [*heading, self.shown.markdown(), *map(as_text, self.remarks)]


@dataclass(frozen=True)
class Document:
    """A title, a headline of a few sentences, and tables."""

    title: str
    headline: Sequence[str]
    parts: Sequence[Part]
    remarks: Sequence[str] = ()
    compared: str = ""
    """The groups that are compared."""

    def print(self) -> None:
        """Print all of it."""
        if self.title:
            say(self.title, bold=True)
        if self.compared:
            say(f"Compared: {self.compared}.")
        for sentence in self.headline:
            say(sentence)
        if self.title or self.headline:
            say("")
        for part in self.parts:
            part.print()
        for remark in self.remarks:
            say(remark)
        if self.remarks:
            say("")

    def markdown(self, line: str, notes: Sequence[str] = ()) -> str:
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
    names = {name: special.get(name) or worded(name) for name in table.columns if name in RESERVED or name in special}
    # a column of the user may be called so
    return table.rename({name: f"{words} " if words in table.columns else words for name, words in names.items()})


def with_cuts_in_words(results: pl.DataFrame) -> pl.DataFrame:
    """Results whose thresholds, numbers and shares of rows are texts with all their digits."""
    cuts = [name for name in SELECTIONS if name in results.columns]
    texts = [pl.Series(name, [f"{cut:g}" for cut in results[name]], dtype=pl.String) for name in cuts]
    return results.with_columns(texts)
