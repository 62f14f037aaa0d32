"""Calls of the command line in tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidyfair.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    import pytest

ARGUMENTS = ["--truth", "repaid", "--estimate", "approved", "--pos-label", "yes", "--by", "race", "--by", "race:sex"]


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what is written to both streams."""
    code = main(arguments)
    written = capsys.readouterr()
    return code, written.out, written.err


def written(data: pl.DataFrame, folder: Path) -> str:
    path = folder / "people.parquet"
    data.write_parquet(path)
    return str(path)
