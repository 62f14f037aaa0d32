"""The groups that occur in cells, in order, and the group of each cell, from keys as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tidyfair.specs import Booleans, Integers

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
"""The whole numbers that numpy has, too."""
_FEW_CELLS = 1_000
"""Up to this many cells Python is faster than a query."""
_FEW_TEXTS = 2**15
"""Up to this many texts their numbers as levels cost less than a join."""
_LARGEST_TABLE = 2**22
"""Codes up to this are looked up in a table; larger ones are sorted."""


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """The distinct combinations of some keys, sorted with null last, and the combination of each cell."""

    of_cell: Integers
    """The index of the combination of each cell."""
    example: Integers
    """A cell of each combination."""
    keys_of_cells: Sequence[pl.Series] = ()
    """The columns of the keys, with a value for each cell."""
    hidden: Booleans | None = None
    """The combinations whose counts are suppressed, if any are."""
    first: int = 0
    """The number of the first combination among those of several features."""

    @cached_property
    def keys(self) -> pl.DataFrame:
        """The distinct combinations."""
        return self.keys_named([key.name for key in self.keys_of_cells])

    def keys_named(self, names: Sequence[str]) -> pl.DataFrame:
        """The distinct combinations, in columns under other names."""
        example = pl.Series(self.example.astype(np.uint32))
        keys = pl.DataFrame([key[example] for key in self.keys_of_cells])
        # a name may be empty
        keys.columns = [*names]
        return keys

    def repeated(self, times: int) -> GroupIndex:
        """The combinations of so many replicates of the cells, one after the other, without their keys."""
        replicate = np.arange(times)[:, None]
        hidden = None if self.hidden is None else np.tile(self.hidden, times)
        of_cell, example = self.of_cell + replicate * len(self), self.example + replicate * len(self.of_cell)
        return GroupIndex(of_cell.ravel(), example.ravel(), hidden=hidden, first=self.first * times)

    def __len__(self) -> int:
        return len(self.example)


class KeyCodes:
    """The keys of cells as whole numbers, computed once for all combinations of keys."""

    def __init__(self, cells: pl.DataFrame) -> None:
        self._cells = cells
        self._codes: dict[str, tuple[pl.Series, Integers, int]] = {}

    def index(self, names: Sequence[str], within: GroupIndex | None = None) -> GroupIndex:
        """Number the distinct combinations of some keys, nested `within` the groups of another index."""
        if within is None:
            codes, possible_codes = np.zeros(self._cells.height, dtype=np.int64), 1
        else:
            codes, possible_codes = within.of_cell, len(within.example)
        keys: list[pl.Series] = []
        for name in names:
            if name not in self._codes:
                key = self._cells.get_column(name)
                self._codes[name] = key, *_codes_of(key)
            key, code_of_key, size = self._codes[name]
            keys.append(key)
            if possible_codes * size > _LARGEST_TABLE:
                codes, possible_codes = _compressed(codes, possible_codes)
            codes = codes * size + code_of_key
            possible_codes *= size
        codes, count = _compressed(codes, possible_codes)
        example = np.zeros(count, dtype=np.int64)
        example[codes] = np.arange(len(codes))
        return GroupIndex(codes, example, keys)

    def add(self, key: pl.Series) -> None:
        """Add a key of the cells, or replace one."""
        self._cells = self._cells.with_columns(key)
        self._codes.pop(key.name, None)


def _codes_of(key: pl.Series) -> tuple[Integers, int]:
    """The ranks of values, null last, and a number above all ranks."""
    dtype = key.dtype
    if isinstance(dtype, pl.Enum):
        count, ranks = len(dtype.categories), key.to_physical()
    elif isinstance(dtype, pl.Boolean):
        count, ranks = 2, key.cast(pl.UInt8)
    elif isinstance(dtype, pl.String) and key.len() <= _FEW_CELLS:
        texts = key.to_list()
        in_order: list[str | None] = [*sorted({*texts} - {None}), None]
        rank_of_text = dict(zip(in_order, range(len(in_order)), strict=True))
        return np.array(list(map(rank_of_text.get, texts)), dtype=np.int64), len(in_order)
    elif (offsets := _offsets_of_integers(key)) is not None:
        return offsets, int(offsets.max()) + 1
    elif isinstance(dtype, pl.String) and (distinct := key.drop_nulls().unique()).len() <= _FEW_TEXTS:
        count, ranks = len(distinct), key.cast(pl.Enum(distinct.sort())).to_physical()
    else:
        ranking = pl.DataFrame({"key": key.unique().sort(nulls_last=True)}).with_row_index("rank")
        keys = pl.DataFrame({"key": key})
        ranked = keys.join(ranking, on="key", how="left", nulls_equal=True, maintain_order="left")
        return ranked["rank"].to_numpy().astype(np.int64), len(ranking)
    if ranks.null_count():
        ranks = ranks.cast(pl.UInt32).fill_null(count)
    return ranks.to_numpy().astype(np.int64), count + 1


def _offsets_of_integers(key: pl.Series) -> Integers | None:
    """The distances of whole numbers from the smallest one, if they are small enough to serve as codes; else None."""
    if not isinstance(key.dtype, _INTEGERS) or key.null_count() or not len(key):
        return None
    values = key.to_numpy()
    lowest, highest = values.min(), values.max()
    if int(highest) - int(lowest) >= _LARGEST_TABLE:
        return None
    if values.dtype.kind == "u":
        # unsigned numbers may exceed int64
        return (values - lowest).astype(np.int64)
    # differences of signed numbers may exceed their own dtype
    return values.astype(np.int64) - lowest


def _compressed(codes: Integers, possible_codes: int) -> tuple[Integers, int]:
    """Codes renumbered without gaps, in the same order, and their number."""
    if possible_codes > max(_LARGEST_TABLE, len(codes)):
        distinct, codes = np.unique(codes, return_inverse=True)
        return codes, len(distinct)
    occurs = np.zeros(possible_codes, dtype=bool)
    occurs[codes] = True
    rank = occurs.cumsum()
    return rank[codes] - 1, int(rank[-1]) if possible_codes else 0
