"""Whether rows are counted once, by all features together, or once for each of some features that have many values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import TidyfairError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.specs.columns import Column
    from tidyfair.specs.groups import By
    from tidyfair.tallies.source import Source

__all__: list[str] = []

_SAMPLE = 20_000
_MANY = 0.5
"""Hardly fewer cells than rows: counting by all features together saves nothing, and takes the memory of the rows."""


def counted_together(source: Source, bys: Sequence[By | None]) -> list[list[By | None]]:
    """The features that are counted in one pass each, from a look at some rows.

    Features that are among those of another are counted with these.
    """
    columns = {by: frozenset(by.columns if by else ()) for by in dict.fromkeys(bys)}
    largest = _largest(columns)
    distinct = list(dict.fromkeys(columns[by] for by in largest))
    features = dict.fromkeys(column for by in largest for column in by.columns)
    if len(distinct) <= 1 or not _are_many(source, list(features)):
        return [list(columns)]
    passes: list[list[By | None]] = [[] for _ in distinct]
    for by, own in columns.items():
        passes[next(place for place, other in enumerate(distinct) if own <= other)].append(by)
    return passes


def _largest(columns: Mapping[By | None, frozenset[Column]]) -> list[By]:
    """The features that are not among those of another."""
    every = list(columns.values())
    return [by for by, own in columns.items() if by is not None and not any(own < other for other in every)]


def _are_many(source: Source, columns: Sequence[Column]) -> bool:
    """Whether most of some rows differ in the columns."""
    if source.rows is not None and source.rows < _SAMPLE:
        return False
    columns = [*source.outer, *(column for column in columns if column not in source.outer)]
    try:
        rows = source.some_rows({f"k{place}": ("by", column) for place, column in enumerate(columns)}, _SAMPLE)
    except (TidyfairError, pl.exceptions.PolarsError):
        return False  # the counting says what is wrong
    if math.prod(map(_levels, rows.dtypes)) < _MANY * _SAMPLE:
        return False
    return len(rows) == _SAMPLE and rows.n_unique() > _MANY * _SAMPLE


def _levels(dtype: pl.DataType) -> float:
    """How many values a column can have, as far as its dtype says."""
    if isinstance(dtype, pl.Enum):
        return len(dtype.categories) + 1
    return 3 if dtype == pl.Boolean else math.inf
