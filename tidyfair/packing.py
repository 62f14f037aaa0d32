"""Grouping by keys that travel as one small integer, which is what makes a pass over the data fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.frames import SQUARED, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from polars._typing import EngineType

__all__: list[str] = []

_LARGEST_CODE = 2**16 - 1
_LARGEST_TABLE = 2**26


@dataclass(frozen=True, eq=False)
class Packing:
    """Keys whose possible values are all known, as one integer."""

    levels: Mapping[str, pl.Series]
    """The values of each key in physical order, null last."""

    @classmethod
    def of(cls, schema: pl.Schema, by: Sequence[str], known: Mapping[str, pl.Series] | None = None) -> Self | None:
        """The packing of some columns, if it is `known` of each, or its dtype says, what values it can hold."""
        found = {name: (known or {}).get(name, _levels(schema[name])) for name in by}
        levels = {name: values for name, values in found.items() if values is not None}
        return cls(levels) if len(levels) == len(by) else None

    @property
    def size(self) -> int:
        """How many different integers there are."""
        return math.prod(map(len, self.levels.values()))

    def code(self, width: type[pl.DataType]) -> pl.Expr:
        """The integer of a row."""
        code, stride = pl.lit(0, width), 1
        for name, values in self.levels.items():
            physical = pl.col(name).to_physical().cast(width).fill_null(len(values) - 1)
            code += physical * pl.lit(stride, width)
            stride *= len(values)
        return code

    def keys(self, code: pl.Series) -> list[pl.Series]:
        """The columns that were packed."""
        found, stride = list[pl.Series](), 1
        for name, values in self.levels.items():
            found.append(values.gather((code // stride % len(values)).cast(pl.UInt32)).alias(name))
            stride *= len(values)
        return found


def grouped(
    frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], engine: EngineType, known: Mapping[str, pl.Series]
) -> pl.DataFrame:
    """Group and sum, by one integer where the keys can be packed."""
    if not by:
        return frame.select(sums).collect(engine=engine)
    # few rows do not repay the packing
    schema = frame.collect_schema() if engine != "in-memory" else pl.Schema()
    packing = Packing.of(schema, by, known) if schema else None
    if packing is None or packing.size > _LARGEST_CODE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    code = packing.code(pl.UInt8 if packing.size <= 2**8 else pl.UInt16).alias("code")
    values = [name for name in schema if name not in by]
    packed = frame.select(code, *values).group_by("code").agg(sums).collect(engine=engine)
    return packed.drop("code").with_columns(packing.keys(packed["code"]))


def binned(frame: pl.LazyFrame, by: list[str], scores: list[str], bins: int, engine: EngineType) -> pl.DataFrame:
    """The weight of the rows, or their number, for each combination of keys and bins of scores between 0 and 1.

    Bins are numbered from 0 and of equal width; rows without a score are left out.
    """
    schema = frame.collect_schema()
    weights = [WEIGHT] if WEIGHT in schema else []
    numbers = [(pl.col(name) * bins).clip(0, bins - 1).cast(pl.UInt16) for name in scores]
    known = frame.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in scores))
    frame = known.select(*by, *numbers, *weights)
    packing = Packing.of(schema, by)
    if engine == "in-memory" or packing is None or len(scores) > 1 or packing.size * bins > _LARGEST_TABLE:
        counted = pl.len().cast(pl.Int64)
        squares = pl.col(WEIGHT).cast(pl.Float64).pow(2).sum() if weights else counted
        total = pl.col(WEIGHT).sum() if weights else counted.alias(WEIGHT)
        return frame.group_by(*by, *scores).agg(total, squares.alias(SQUARED)).collect(engine=engine)
    import numpy as np

    # a table of all combinations is filled in one go
    code = packing.code(pl.UInt32) * bins + pl.col(scores[0]).cast(pl.UInt32)
    rows = frame.select(code.alias("code"), *weights).collect(engine="streaming")
    values = rows[WEIGHT].to_numpy() if weights else None
    table = np.bincount(rows["code"].to_numpy(), values)
    there = np.bincount(rows["code"].to_numpy()) if weights else table
    places = np.flatnonzero(there).astype(np.uint32)
    found = pl.Series(WEIGHT, table[places])
    # a row counts once, and once squared
    squares = found if values is None else np.bincount(rows["code"].to_numpy(), values.astype(float) ** 2)[places]
    key = pl.Series(places // np.uint32(bins))
    bin_of = pl.Series(scores[0], (places % np.uint32(bins)).astype(np.uint16))
    found = found.cast(schema[WEIGHT]) if weights else found
    return pl.DataFrame([*packing.keys(key), bin_of, found, pl.Series(SQUARED, squares)])


def _levels(dtype: pl.DataType) -> pl.Series | None:
    """All values a dtype can hold, in physical order and null last, where it says so."""
    if isinstance(dtype, pl.Enum):
        return pl.Series([*dtype.categories.to_list(), None], dtype=dtype)
    return pl.Series([False, True, None]) if dtype == pl.Boolean else None
