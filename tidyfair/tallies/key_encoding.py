"""Grouping by keys that travel as one small integer, which is what makes a pass over the data fast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from polars.lazyframe.engine_config import get_engine_affinity_override

from tidyfair.tallies.source import SQUARED, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from polars._typing import EngineType

__all__: list[str] = []

_FEW_ROWS = 50_000
_LARGEST_CODE = 2**16
_LARGEST_TABLE = 2**18
_LARGEST_TABLE_OF_BINS = 2**26
_SMALL_TABLE = 2**7
"""Its square fits the cache of a processor and 16 bits, so that rows can be counted in pairs."""
_BATCH, _BLOCK = 2**18, 2**16
"""Rows that the engine hands over at once, and rows that are counted at once, in the cache of a processor."""
_WIDTHS: dict[int, type[pl.DataType]] = {8: pl.UInt8, 16: pl.UInt16, 32: pl.UInt32}


def engine_for(rows: int | None) -> EngineType:
    """The engine for so many rows: small frames do not repay the start of polars' own choice, or of the user's."""
    return "in-memory" if rows is not None and rows < _FEW_ROWS else "auto"


@dataclass(frozen=True, eq=False)
class Packing:
    """Keys whose possible values are all known, as one integer."""

    levels: Mapping[str, pl.Series]
    """The values of each key in physical order, null last."""

    @classmethod
    def of(
        cls, frame: pl.LazyFrame, by: Sequence[str], known: Mapping[str, pl.Series] | None = None, *, in_memory: bool
    ) -> Self | None:
        """The packing of some columns, if it is `known` of each what values it can hold.

        Dtypes say so, or a look at the least and the most where rows are `in_memory` and need not be read for it.
        """
        schema = frame.collect_schema()
        levels = (_within(frame, schema, by) if in_memory else {}) | (dict(known) if known else {})
        found = {name: levels[name] if name in levels else _levels(schema[name]) for name in by}
        levels = {name: values for name, values in found.items() if values is not None}
        return cls(levels) if len(levels) == len(by) else None

    @property
    def size(self) -> int:
        """How many different integers there are."""
        return math.prod(map(len, self.levels.values()))

    def code(self, bits: int | None = None) -> pl.Expr:
        """The integer of a row, of so many bits or as few as it needs."""
        bits = bits or next(each for each in _WIDTHS if self.size <= 2**each)
        width = _WIDTHS[bits]
        code, stride = pl.lit(0, width), 1
        for name, values in self.levels.items():
            physical = pl.col(name).to_physical().cast(width, wrap_numerical=True)
            if least := values.to_physical()[0]:
                # integers of fixed width go round, so that what is negative comes out right
                physical -= pl.lit(least % 2**bits, width)
            code += physical.fill_null(len(values) - 1) * pl.lit(stride, width)
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
    frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], known: Mapping[str, pl.Series], rows: int | None
) -> pl.DataFrame:
    """Group and sum, by one integer where the keys can be packed; `rows` is their number where they are in memory."""
    engine = engine_for(rows)
    if not by:
        return frame.select(sums).collect(engine=engine)
    # few rows do not repay the packing
    packing = None if engine == "in-memory" else Packing.of(frame, by, known, in_memory=rows is not None)
    if packing is None or packing.size > _LARGEST_TABLE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    values = [name for name in frame.collect_schema() if name not in by]
    if not values and _gives_batches():
        (number,) = sums  # of what is not there nothing but rows can be counted
        return _counted(frame, packing, number.meta.output_name())
    if packing.size > _LARGEST_CODE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    code = packing.code().alias("code")
    packed = frame.select(code, *values).group_by("code").agg(sums).collect(engine=engine)
    return packed.drop("code").with_columns(packing.keys(packed["code"]))


def _counted(frame: pl.LazyFrame, packing: Packing, name: str) -> pl.DataFrame:
    """How many rows there are of each combination of keys: no hash is as fast as a place in a table."""
    import numpy as np

    size = packing.size
    table, pairs = np.zeros(size, dtype=np.int64), np.zeros(size**2 if size <= _SMALL_TABLE else 0, dtype=np.int64)
    block = max(_BLOCK, size)
    # rows are counted while the engine reads others
    codes = frame.select(packing.code()).collect_batches(chunk_size=_BATCH, maintain_order=False)
    for batch in codes:
        code = batch.to_series().to_numpy()
        if len(pairs):
            # two rows at a time: half as many steps
            half = len(code) // 2
            both = code[:half].astype(np.uint16) * np.uint16(size) + code[half : 2 * half]
            pairs += np.bincount(both, minlength=len(pairs))
            code = code[2 * half :]
        for start in range(0, len(code), block):
            table += np.bincount(code[start : start + block], minlength=size)
    if len(pairs):
        table += pairs.reshape(size, size).sum(axis=0) + pairs.reshape(size, size).sum(axis=1)
    there = np.flatnonzero(table)
    return pl.DataFrame([*packing.keys(pl.Series(there)), pl.Series(name, table[there])])


def _gives_batches() -> bool:
    """Whether rows are worked out here, not by an engine that the user has set, such as a GPU, and that groups too."""
    named = pl.Config.state().get("POLARS_ENGINE_AFFINITY") in {None, "auto", "streaming"}
    return named and get_engine_affinity_override() is None


def binned(frame: pl.LazyFrame, by: list[str], scores: list[str], bins: int, rows: int | None) -> pl.DataFrame:
    """The weight of the rows, or their number, for each combination of keys and bins of scores between 0 and 1.

    Bins are numbered from 0 and of equal width; rows without a score are left out.
    """
    engine = engine_for(rows)
    schema = frame.collect_schema()
    weights = [WEIGHT] if WEIGHT in schema else []
    numbers = [(pl.col(name) * bins).clip(0, bins - 1).cast(pl.UInt16) for name in scores]
    known = frame.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in scores))
    frame = known.select(*by, *numbers, *weights)
    few = engine == "in-memory" or len(scores) > 1
    packing = None if few else Packing.of(frame, by, in_memory=rows is not None)
    if packing is None or packing.size * bins > _LARGEST_TABLE_OF_BINS:
        counted = pl.len().cast(pl.Int64)
        squares = pl.col(WEIGHT).cast(pl.Float64).pow(2).sum() if weights else counted
        total = pl.col(WEIGHT).sum() if weights else counted.alias(WEIGHT)
        return frame.group_by(*by, *scores).agg(total, squares.alias(SQUARED)).collect(engine=engine)
    import numpy as np

    # a table of all combinations is filled in one go
    code = packing.code(32) * bins + pl.col(scores[0]).cast(pl.UInt32)
    coded = frame.select(code.alias("code"), *weights).collect(engine=engine)
    values = coded[WEIGHT].to_numpy() if weights else None
    table = np.bincount(coded["code"].to_numpy(), values)
    there = np.bincount(coded["code"].to_numpy()) if weights else table
    places = np.flatnonzero(there).astype(np.uint32)
    found = pl.Series(WEIGHT, table[places])
    # a row counts once, and once squared
    squares = found if values is None else np.bincount(coded["code"].to_numpy(), values.astype(float) ** 2)[places]
    key = pl.Series(places // np.uint32(bins))
    bin_of = pl.Series(scores[0], (places % np.uint32(bins)).astype(np.uint16))
    # weights that are missing are found later, by name
    found = found.fill_nan(None).cast(schema[WEIGHT]) if weights else found
    return pl.DataFrame([*packing.keys(key), bin_of, found, pl.Series(SQUARED, squares)])


def _levels(dtype: pl.DataType) -> pl.Series | None:
    """All values a dtype can hold, in physical order and null last, where they are few."""
    if isinstance(dtype, pl.Enum):
        return pl.Series([*dtype.categories.to_list(), None], dtype=dtype)
    if dtype == pl.Int8 or dtype == pl.UInt8:  # noqa: PLR1714 - dtypes are no members of sets of classes
        least = -(2**7) if dtype == pl.Int8 else 0
        return pl.Series([*range(least, least + 2**8), None], dtype=dtype)
    return pl.Series([False, True, None]) if dtype == pl.Boolean else None


def _within(frame: pl.LazyFrame, schema: pl.Schema, by: Sequence[str]) -> dict[str, pl.Series]:
    """The values between the least and the most of whole numbers and categories, where they are few."""
    open_ended = [name for name in by if schema[name].is_integer() or isinstance(schema[name], pl.Categorical)]
    if not open_ended:
        return {}
    physical = pl.col(open_ended).to_physical()
    ends = frame.select(physical.min().name.prefix("least "), physical.max().name.prefix("most "))
    found, levels = ends.collect().row(0, named=True), dict[str, pl.Series]()
    for name in open_ended:
        least, most, dtype = found[f"least {name}"], found[f"most {name}"], schema[name]
        if least is None or most - least < _LARGEST_TABLE:
            numbers = [*(range(least, most + 1) if least is not None else ()), None]
            categories = isinstance(dtype, pl.Categorical)
            values = pl.Series(numbers, dtype=dtype.categories.physical() if categories else dtype)
            levels[name] = values.cat.to(dtype) if categories else values
    return levels
