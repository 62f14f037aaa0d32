"""Plan of the passes over the data: one by all features together, or one each for features with many values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import polars as pl

from tidyfair.errors import TidyfairError
from tidyfair.specs.columns import Column, roots_of
from tidyfair.specs.groups import By
from tidyfair.tallies.source import Source

_SAMPLE = 20_000
_MANY = 0.5
"""With nearly as many cells as rows, counting by all features together saves nothing and takes as much memory."""


def counted_together(source: Source, bys: Sequence[By | None]) -> list[list[By | None]]:
    """Assign features to passes over the rows, based on a sample of rows.

    Sets of features that are part of a larger set are counted with it.
    """
    columns: dict[By | None, frozenset[Column]] = {}
    for by in bys:
        columns[by] = frozenset(by.columns) if by else frozenset()
    features: dict[Column, None] = {}
    passes: dict[frozenset[Column], list[By | None]] = {}
    for by in _largest(columns):
        features |= dict.fromkeys(by.columns)
        passes[columns[by]] = []
    if len(passes) <= 1 or not _are_many(source, list(features)):
        return [list(columns)]
    for by, own in columns.items():
        first = next(together for together in passes if own <= together)
        passes[first].append(by)
    return list(passes.values())


def _largest(columns: Mapping[By | None, frozenset[Column]]) -> list[By]:
    """The sets of features that are not part of a larger set."""
    largest: list[By] = []
    for by, own in columns.items():
        is_part = any(own < other for other in columns.values())
        if by is not None and not is_part:
            largest.append(by)
    return largest


def _are_many(source: Source, columns: Sequence[Column]) -> bool:
    """Check whether most of some rows differ in the columns."""
    if source.rows is not None and source.rows < _SAMPLE:
        return False
    keys = dict.fromkeys((*source.outer, *columns))
    wanted = {f"k{index}": ("by", column) for index, column in enumerate(keys)}
    try:
        if source.is_elsewhere:
            # the engine counts, so that no rows leave it
            rows, distinct = source.distinct_in_sample(roots_of(wanted), _SAMPLE)
            return rows == _SAMPLE and distinct > _MANY * _SAMPLE
        rows = source.some_rows(wanted, _SAMPLE)
    except (TidyfairError, pl.exceptions.PolarsError):
        return False  # the counting says what is wrong
    if math.prod(map(_levels, rows.dtypes)) < _MANY * _SAMPLE:
        return False
    return len(rows) == _SAMPLE and rows.n_unique() > _MANY * _SAMPLE


def _levels(dtype: pl.DataType) -> float:
    """Largest possible number of values of a dtype; infinity if unlimited."""
    if isinstance(dtype, pl.Enum):
        return len(dtype.categories) + 1
    return 3 if dtype == pl.Boolean else math.inf
