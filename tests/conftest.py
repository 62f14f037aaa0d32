from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parents[1] / "docs"
REFERENCES = Path(__file__).parent / "references"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def script(name: str) -> Any:
    """A module of the docs, from its file."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, DOCS / name)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records(library: str) -> list[dict[str, Any]]:
    with gzip.open(REFERENCES / f"{library}.json.gz", "rt") as file:
        return json.load(file)


def reference_data(name: str) -> pl.DataFrame:
    return pl.read_parquet(REFERENCES / "data" / f"{name}.parquet")


@pytest.fixture
def loans() -> pl.DataFrame:
    """Twelve decisions about people of two sexes and three races; `rare` has no positive."""
    return pl.DataFrame(
        {
            "truth": [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0],
            "estimate": [1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0],
            "score": [0.9, 0.4, 0.2, 0.6, 0.8, 0.7, 0.1, 0.3, 0.75, 0.55, 0.65, 0.05],
            "sex": ["f", "f", "f", "f", "m", "m", "m", "m", "f", "m", "f", "m"],
            "race": ["a", "a", "b", "b", "a", "b", "a", "b", "a", "b", "rare", "rare"],
            "fold": [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2],
            "weight": [1.0, 2.0, 1.5, 0.5, 1.0, 1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0],
        }
    )


def _polars(frame: pl.DataFrame) -> Any:
    return frame


def _lazy(frame: pl.DataFrame) -> Any:
    return frame.lazy()


def _pandas(frame: pl.DataFrame) -> Any:
    return frame.to_pandas()


def _pandas_pyarrow(frame: pl.DataFrame) -> Any:
    return frame.to_pandas(use_pyarrow_extension_array=True)


def _pyarrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow()


@pytest.fixture(params=[_polars, _lazy, _pandas, _pandas_pyarrow, _pyarrow], ids=lambda each: each.__name__.strip("_"))
def engine(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    """Turns a polars frame into a frame of another kind: one test, all engines."""
    return request.param


def as_polars(frame: Any) -> pl.DataFrame:
    """A result of any kind as a polars frame, for comparison."""
    return (
        frame
        if isinstance(frame, pl.DataFrame)
        else pl.DataFrame(pl.from_arrow(frame))
        if not hasattr(frame, "iloc")
        else pl.from_pandas(frame)
    )
