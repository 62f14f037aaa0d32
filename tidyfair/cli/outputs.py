"""What a command writes: tables and pages to files, a job summary, and one JSON document."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidyfair.cli.terminal import tell
from tidyfair.errors import ArgumentError
from tidyfair.specs.result_columns import RESERVED, key_columns
from tidyfair.tallies.files import check_outputs, save

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    import polars as pl

_FLAGS = ("html", "markdown", "output", "output_groups", "json")
_TEXTS = ("markdown", "json")
_STDOUT = Path("-")
_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The environment variable that names the file of the summary of a GitHub job, which steps add to."""


@dataclass(frozen=True)
class Outputs:
    """The files to be written, by option; `-` is the standard output."""

    files: dict[str, Path]

    @classmethod
    def of(cls, options: Namespace) -> Outputs:
        """The files that options name; refuses those that would overwrite each other or the data."""
        named = {flag: getattr(options, flag) for flag in _FLAGS}
        files = {flag: file for flag, file in named.items() if file is not None}
        on_stdout = [f"`{flag}`" for flag, file in files.items() if file == _STDOUT]
        for flag, file in files.items():
            if file == _STDOUT and flag not in _TEXTS:
                msg = f"`{flag}` is written to a file; documents that can be printed are `json` and `markdown`."
                raise ArgumentError(msg)
        if len(on_stdout) > 1:
            msg = f"{' and '.join(on_stdout)} cannot both be printed: write one of them to a file."
            raise ArgumentError(msg)
        on_disk = {flag: file for flag, file in files.items() if file != _STDOUT}
        check_outputs(on_disk, options.file, summary=_summary())
        return cls(files)

    def __contains__(self, flag: str) -> bool:
        return flag in self.files

    def __bool__(self) -> bool:
        return bool(self.files)

    @property
    def takes_stdout(self) -> bool:
        """True if a document goes to the standard output, which then holds nothing else."""
        return _STDOUT in self.files.values()

    def write_text(self, flag: str, content: str) -> None:
        """Write a document to its file, or print it; the summary of a GitHub job is added to."""
        file = self.files[flag]
        if file == _STDOUT:
            sys.stdout.write(content)
            return
        summary = _summary()
        if summary is not None and file.exists() and file.samefile(summary):
            with file.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{content}")
            tell(f"{file} is added to.")
            return
        save(_writing(content), file)
        tell(f"{file} is written.")


def _writing(content: str) -> Callable[[Path], object]:
    """The writing of a text to a file."""
    return lambda file: file.write_text(content, encoding="utf-8")


def _summary() -> Path | None:
    """The file of the summary of a GitHub job, if this is one."""
    name = os.environ.get(_SUMMARY)
    return Path(name) if name else None


def as_json(content: dict[str, Any]) -> str:
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
    for row in table.rows(named=True):
        own: dict[str, Any] = {}
        for name, value in row.items():
            if name in keys:
                own.setdefault("keys", {})[name] = _plain(value)
            elif name in RESERVED:
                own[name.removeprefix(".")] = _plain(value)
            else:
                own.setdefault("features", {})[name] = _plain(value)
        rows.append(own)
    return rows


def plain_rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table for JSON."""
    rows: list[dict[str, Any]] = []
    for row in table.rows(named=True):
        rows.append({name: _plain(value) for name, value in row.items()})
    return rows


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
