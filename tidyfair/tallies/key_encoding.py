"""Encoding of keys as one small integer, which makes a pass over the data fast."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tidyfair.specs import from_physical, is_beyond_numpy
from tidyfair.tallies.threads import over_slices

_MOST_LEVELS = 2**24
_MOST_KEPT = 2**12
"""Tables of keys of so many rows are kept for the next frame of the same kind."""
_MOST_SHARED, _MOST_CODES = 2**16, 2**32
_NONE = pl.QueryOptFlags.none()
"""A plain selection needs no optimiser."""
_BLOCK, _SLICE = 2**16, 2**18
_LARGEST_FLOAT = 2**10
"""Differences of whole numbers below this are exact in floats of any width."""
_WIDTHS: dict[int, type[pl.DataType]] = {8: pl.UInt8, 16: pl.UInt16, 32: pl.UInt32}


class Levels(NamedTuple):
    """The possible values of a column: a number of them in physical order from the smallest on, and perhaps null."""

    dtype: pl.DataType
    least: int
    span: int
    nulls: bool = True

    @property
    def size(self) -> int:
        """Number of values, with null."""
        return self.span + self.nulls

    def values(self) -> pl.Series:
        """The values in their order, null last."""
        steps = pl.int_range(self.span, eager=True)
        if isinstance(self.dtype, pl.Enum):
            values = self.dtype.categories.cast(self.dtype)
        elif self.dtype == pl.Boolean:
            values = steps.cast(pl.Boolean)
        elif self.dtype.is_float():
            values = (steps + self.least).cast(self.dtype)
        elif isinstance(self.dtype, pl.Categorical):
            values = from_physical(self._integers(steps, self.dtype.categories.physical()), self.dtype)
        else:
            values = self._integers(steps, self.dtype)
        return values.extend(pl.Series([None], dtype=self.dtype)) if self.nulls else values

    def _integers(self, steps: pl.Series, dtype: Any) -> pl.Series:
        """The integers at given offsets from the smallest."""
        # integers of fixed width go round, so that a range wider than half of them comes out right
        return steps.cast(dtype, wrap_numerical=True) + pl.Series([self.least], dtype=dtype)

    def offsets(self, values: Any) -> Any:
        """Offsets of the numbers of an array from the smallest value."""
        if self.dtype.is_float():
            return values - self.least
        # integers of fixed width go round, so that what is negative comes out right
        return values.astype(np.uint64) - np.uint64(self.least % 2**64)

    def offset(self, name: str) -> tuple[pl.Expr, int]:
        """Offset of a row's value from the smallest, with null last, and the bits of this integer."""
        bits = _bits(self.size)
        width = _WIDTHS[bits]
        if self.dtype.is_float():
            offset = (pl.col(name) - self.least).cast(width)
        else:
            offset = pl.col(name).to_physical().cast(width, wrap_numerical=True)
            if self.least:
                # integers of fixed width go round, so that what is negative comes out right
                offset -= pl.lit(self.least % 2**bits, width)
        return (offset.fill_null(self.span) if self.nulls else offset), bits


def _bits(size: int) -> int:
    """The bits of the smallest integer type with that many values."""
    return next(bits for bits in _WIDTHS if size <= 2**bits)


@dataclass(eq=False)
class Packing:
    """Keys with known possible values, encoded as one integer.

    What depends on their kind alone is computed once, and shared by frames of one kind, so that many small ones stay
    cheap.
    """

    by: tuple[tuple[str, Levels], ...]
    """The name and the values of each key."""
    _last: tuple[bytes | None, pl.DataFrame] = field(default=(None, pl.DataFrame()), init=False)
    """The last codes, which often repeat, and their keys."""

    @classmethod
    def of(cls, by: Collection[str], levels: Mapping[str, Levels | None]) -> Packing | None:
        """The packing of some columns, if all their possible values are known."""
        known: list[tuple[str, Levels]] = []
        for name in by:
            of_column = levels.get(name)
            if of_column is None:
                return None
            known.append((name, of_column))
        packing = cls(tuple(known))
        if packing.size > _MOST_SHARED:
            # to look for very many levels would take longer
            return packing if packing.size <= _MOST_CODES else None
        return _packing(packing.by)

    @cached_property
    def size(self) -> int:
        """Number of different integers."""
        return math.prod(levels.size for _, levels in self.by)

    @cached_property
    def narrow_first(self) -> list[tuple[str, Levels]]:
        """Keys of few values first, so that the integer stays narrow while most of it is made."""
        return sorted(self.by, key=lambda key: key[1].size)

    def code(self) -> pl.Expr:
        """The integer of a row, with as few bits as possible."""
        code, stride, bits = pl.lit(0, pl.UInt8), 1, 8
        for name, levels in self.narrow_first:
            offset, own_bits = levels.offset(name)
            wider = max(bits, _bits(stride * levels.size))
            width = _WIDTHS[wider]
            if wider > bits:
                code = code.cast(width)
            if wider > own_bits:
                offset = offset.cast(width)
            if stride > 1:
                offset = offset * pl.lit(stride, width)
            code += offset
            stride, bits = stride * levels.size, wider
        return code

    def codes(self, columns: Mapping[str, pl.Series]) -> Any:
        """The integers of few rows: most columns are arrays already, which need no query."""
        offsets: dict[str, Any] = {}
        if self.queries:
            queried = pl.DataFrame({name: columns[name] for name in self.queries}).lazy()
            offsets = queried.select(self.queries.values()).collect(engine="in-memory", optimizations=_NONE).to_dict()
        codes, stride = 0, 1
        for name, levels in self.narrow_first:
            offset = offsets[name].to_numpy() if name in offsets else levels.offsets(columns[name].to_numpy())
            codes += offset.astype(np.int64) * stride
            stride *= levels.size
        return codes

    def keys(self, codes: Any) -> list[pl.Series]:
        """The keys of codes, one column for each key."""
        columns: dict[str, pl.Series] = {}
        rest = codes.astype(np.uint32)
        for name, levels in self.narrow_first:
            size = np.uint32(levels.size)
            offsets = pl.Series(rest % size)
            columns[name] = levels.values().gather(offsets).alias(name)
            rest //= size
        return [columns[name] for name, _ in self.by]

    def counts(self, table: Any) -> pl.DataFrame:
        """The keys with a count above 0 in a table of all codes, and their counts `n`."""
        (codes,) = table.nonzero()
        occurring = codes.astype(np.uint32)
        if self.size > _MOST_KEPT:
            cells = pl.DataFrame(self.keys(occurring))
        elif (content := occurring.tobytes()) == self._last[0]:
            cells = self._last[1].clone()
        else:
            cells = self._all_keys[pl.Series(occurring)]
            self._last = content, cells.clone()
        return cells.insert_column(len(self.by), pl.Series("n", table[occurring]))

    @cached_property
    def queries(self) -> dict[str, pl.Expr]:
        """The offsets of values that need a query, because they are not plain numbers of numpy."""
        queries: dict[str, pl.Expr] = {}
        for name, levels in self.by:
            is_of_levels = isinstance(levels.dtype, pl.Enum | pl.Categorical)
            if levels.nulls or is_of_levels or is_beyond_numpy(levels.dtype):
                queries[name] = levels.offset(name)[0]
        return queries

    @cached_property
    def values(self) -> dict[str, list[pl.Series]]:
        """The values of each key, one by one."""
        values: dict[str, list[pl.Series]] = {}
        for name, levels in self.by:
            of_key = levels.values()
            values[name] = [of_key[offset : offset + 1] for offset in range(len(of_key))]
        return values

    @cached_property
    def _all_keys(self) -> pl.DataFrame:
        """The keys of all codes."""
        return pl.DataFrame(self.keys(np.arange(self.size)))


_packing = lru_cache(maxsize=64)(Packing)


def levels_by_dtype(dtype: pl.DataType) -> Levels | None:
    """All values of a dtype, if they are few."""
    if isinstance(dtype, pl.Enum):
        return Levels(dtype, 0, len(dtype.categories))
    if dtype == pl.Boolean:
        return Levels(dtype, 0, 2)
    if dtype == pl.Int8:
        return Levels(dtype, -(2**7), 2**8)
    if dtype == pl.UInt8:
        return Levels(dtype, 0, 2**8)
    return None


def levels_of_column(column: pl.Series, dtype: pl.DataType) -> Levels | None:
    """The possible values of a column, from its dtype, or from its smallest and its largest value."""
    nulls = column.null_count() > 0
    if isinstance(dtype, pl.Enum | pl.Boolean) and (levels := levels_by_dtype(dtype)) is not None:
        return levels._replace(nulls=nulls)
    if dtype.is_integer():
        return _between(dtype, *_ends(column), nulls=nulls)
    if isinstance(dtype, pl.Categorical):
        return _between(dtype, *_ends(column.to_physical()), nulls=nulls)
    return _levels_of_floats(column, dtype) if dtype.is_float() else None


def _ends(values: pl.Series) -> tuple[Any, Any]:
    """The smallest and the largest of some values; None if all are missing."""
    if len(values) <= _SLICE:
        return values.min(), values.max()
    # both are looked for while a slice is in the cache
    ends = over_slices(lambda rows: _ends(values[rows]), len(values), _SLICE)
    smallest = [least for least, _ in ends if least is not None]
    largest = [most for _, most in ends if most is not None]
    return min(smallest, default=None), max(largest, default=None)


def _levels_of_floats(column: pl.Series, dtype: pl.DataType) -> Levels | None:
    """The values between the smallest and the largest whole number; None if some number is not whole, or missing."""
    if column.null_count() or not len(column):
        return None
    least, most = math.inf, -math.inf
    # a part at a time, which fits the cache of a processor
    for part in column.to_frame().iter_slices(_BLOCK):
        values = part.to_series().to_numpy()
        if not (values == np.rint(values)).all():
            return None
        least, most = min(least, values.min()), max(most, values.max())
    return whole_levels(dtype, least, most, nulls=False)


def whole_levels(dtype: pl.DataType, least: Any, most: Any, *, nulls: bool = True) -> Levels | None:
    """The whole numbers from the smallest to the largest, as floats; None if they are not small."""
    if least is None or not (dtype.is_float() and least >= -_LARGEST_FLOAT and most <= _LARGEST_FLOAT):
        return None
    return _between(dtype, int(least), int(most), nulls=nulls)


def levels_by_ends(frame: pl.LazyFrame, schema: pl.Schema, names: Iterable[str]) -> dict[str, Levels]:
    """The values between the smallest and the largest whole number or category, if they are few, by one query."""
    # of these the smallest and the largest value determine the others
    names = [name for name in names if schema[name].is_integer() or isinstance(schema[name], pl.Categorical)]
    if not names:
        return {}
    physical = pl.col(names).to_physical()
    ends = frame.select(physical.min().name.prefix("least "), physical.max().name.prefix("most ")).collect()
    known: dict[str, Levels] = {}
    for name in names:
        levels = _between(schema[name], ends[f"least {name}"][0], ends[f"most {name}"][0])
        if levels is not None:
            known[name] = levels
    return known


def _between(dtype: pl.DataType, least: int | None, most: int | None, *, nulls: bool = True) -> Levels | None:
    """The values from the smallest to the largest, if they are few; `least` and `most` are None if all are missing."""
    if least is None or most is None:
        return Levels(dtype, 0, 0)
    return Levels(dtype, least, most - least + 1, nulls) if most - least < _MOST_LEVELS else None
