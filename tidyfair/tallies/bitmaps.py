"""Counting by bitmaps: a row is a bit, so that the values of columns are crossed 64 rows at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tidyfair.tallies.key_encoding import Levels, Packing
from tidyfair.tallies.slices import over_slices

_MOST_COMBINATIONS = 32
"""With more combinations a table is faster."""
_SLICE = 2**21
"""Rows that are crossed at once, whose bitmaps fit the cache of a processor."""
_FEW_COMPARISONS = 4
"""With more combinations it pays to narrow wide columns first."""


def can_cross(packing: Packing) -> bool:
    """Check whether bitmaps count fastest: few combinations and no missing values."""
    return packing.size <= _MOST_COMBINATIONS and not any(levels.nulls for _, levels in packing.by)


def crossed(columns: Mapping[str, pl.Series], packing: Packing) -> Any:
    """Count the rows of each code of a packing that `can_cross`."""
    values = packing.kept.values

    def count(rows: slice) -> list[int]:
        # the first column varies fastest in codes, so it is crossed last
        masks: list[list[pl.Series]] = []
        for name, levels in reversed(packing.narrow_first):
            column = columns[name].slice(rows.start, _SLICE)
            masks.append(_masks(column, levels, values[name]))
        return _counts(masks, rows.stop - rows.start)

    size = len(next(iter(columns.values())))
    if size <= _SLICE:
        return np.array(count(slice(0, size)), dtype=np.int64)
    counts = over_slices(count, size, _SLICE)
    return np.array(counts, dtype=np.int64).reshape(-1, packing.size).sum(axis=0)


def _masks(column: pl.Series, levels: Levels, values: Sequence[pl.Series]) -> list[pl.Series]:
    """One mask for each value of a column but the last, which has the rest of the rows."""
    *but_last, _ = values
    if levels.dtype == pl.Boolean:
        return [~column]
    if levels.dtype.is_integer() and levels.span > _FEW_COMPARISONS:
        # integers go round, so that there are as many of them as values
        column = (column - levels.least).cast(pl.UInt8, wrap_numerical=True)
        return [column == offset for offset in range(levels.span - 1)]
    return [column == value for value in but_last]


def _counts(masks: Sequence[Sequence[pl.Series]], rows: int, within: pl.Series | None = None) -> list[int]:
    """Count the rows within a bitmap by combinations of values."""
    if not masks:
        return [rows]
    if not rows:
        return [0] * math.prod(len(values) + 1 for values in masks)
    first, *others = masks
    counts: list[int] = []
    rest = _counts(others, rows, within)
    for mask in first:
        both = mask if within is None else mask & within
        of_value = _counts(others, int(both.sum()), both)
        counts += of_value
        rest = [total - part for total, part in zip(rest, of_value, strict=True)]
    return counts + rest
