"""Counting rows by their keys: by bitmaps or in a table if keys are known, else by a `group_by`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.specs import in_batches, side_by_side
from tidyfair.tallies.key_encoding import Levels, Packing, levels_by_dtype, levels_by_ends, levels_of_column
from tidyfair.tallies.source import SQUARED, WEIGHT
from tidyfair.tallies.threads import MOST_PARTED, Parted, in_threads, over_slices

Engine: TypeAlias = Literal["auto", "in-memory"]
"""The engines of polars that are asked for."""

ROWS = pl.len().cast(pl.Int64).alias("n")
"""The number of rows of a cell: polars counts in 32 bits."""
_HARDLY_ANY_ROWS, _FEW_ROWS, _MANY_ROWS = 2**13, 50_000, 2**20
"""Fewer rows are not worth a query, the start of an engine, or splitting into parts."""
_LARGEST_CODE = 2**16
_SMALLEST_LIMIT, _LARGEST_TABLE = 2**18, 2**24
"""A table up to the first size is always worth its cost; up to the second size, if there are as many rows."""
_LARGEST_TABLE_OF_BINS = 2**26
_SMALL_TABLE = 2**8
"""Its square fits the cache of a processor and 16 bits, so that rows can be counted in pairs."""
_BATCH, _BLOCK = 2**18, 2**16
"""Rows that the engine hands over at once, and rows that are counted at once, in the cache of a processor."""
_MOST_COMBINATIONS = 32
"""With more combinations a table is faster."""
_CROSSED = 2**21
"""Rows that are crossed at once, whose bitmaps fit the cache of a processor."""
_FEW_COMPARISONS = 4
"""With more combinations it pays to narrow wide columns first."""


def engine_for(rows: int | None) -> Engine:
    """The engine for a number of rows: small frames are not worth the start of a parallel engine or the user's own."""
    return "in-memory" if rows is not None and rows < _FEW_ROWS else "auto"


def count_in_memory(columns: Mapping[str, pl.Series], schema: Mapping[str, pl.DataType]) -> pl.DataFrame | None:
    """Count the rows of each combination of values; None if these need checks, or a query that prepares them."""
    rows = next(iter(columns.values())).len()
    if not all(map(_may_have_levels, schema.values())):
        # the possible texts are not known; floats are compared by a query that prepares them
        if any(dtype.is_float() or dtype.is_decimal() for dtype in schema.values()):
            return None
        frame = side_by_side([column.alias(name) for name, column in columns.items()])
        if rows >= _FEW_ROWS:
            return frame.lazy().group_by(pl.all()).agg(ROWS).collect()
        # of few rows in less than half of the time of a query
        counted = frame.to_struct("keys").value_counts(name="n")
        return counted.get_column("keys").struct.unnest().hstack([counted.get_column("n").cast(pl.Int64)])
    return _counted_by_levels(columns, schema, rows) if rows < _HARDLY_ANY_ROWS or _gives_batches() else None


def _counted_by_levels(
    columns: Mapping[str, pl.Series], schema: Mapping[str, pl.DataType], rows: int
) -> pl.DataFrame | None:
    """Count the rows of columns that may have levels; None if the levels are too many."""
    few = rows < _HARDLY_ANY_ROWS
    levels = {key: levels_of_column(column, schema[key]) for key, column in columns.items()}
    packing = Packing.of(columns, levels)
    if packing is None or packing.size > (_LARGEST_CODE if few else _largest_table(rows)):
        return None
    are_few_combinations = packing.size <= _MOST_COMBINATIONS and not any(levels.nulls for _, levels in packing.by)
    if are_few_combinations and not (few and not packing.queries):
        return packing.counts(crossed(columns, packing))
    if few:
        return packing.counts(np.bincount(packing.codes(columns), minlength=packing.size))
    return _counted(pl.DataFrame(dict(columns)).lazy(), packing, rows)


def grouped(
    frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], known: Mapping[str, Levels], rows: int | None
) -> pl.DataFrame:
    """Group and sum, by one integer where the keys can be packed; `rows` is their number where they are in memory."""
    engine = engine_for(rows)
    if not by:
        return frame.select(sums).collect(engine=engine)
    # few rows do not repay the packing
    packing = None if engine == "in-memory" else _packing(frame, by, known, in_memory=rows is not None)
    if packing is None or packing.size > _largest_table(rows):
        return frame.group_by(by).agg(sums).collect(engine=engine)
    values = [name for name in frame.collect_schema() if name not in by]
    if not values and _gives_batches():
        # without other columns only rows can be counted
        return _counted(frame, packing, rows)
    if packing.size > _LARGEST_CODE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    code = packing.code().alias("code")
    packed = frame.select(code, *values).group_by("code").agg(sums).collect(engine=engine)
    return packed.drop("code").with_columns(packing.keys(packed["code"].to_numpy()))


def _may_have_levels(dtype: pl.DataType) -> bool:
    """Check whether the possible values of a column may follow from its contents."""
    return dtype.is_integer() or dtype.is_float() or isinstance(dtype, pl.Enum | pl.Categorical) or dtype == pl.Boolean


def _largest_table(rows: int | None) -> int:
    """Largest useful size of a table for a number of rows."""
    if rows is None:
        return _SMALLEST_LIMIT
    return min(max(_SMALLEST_LIMIT, rows), _LARGEST_TABLE)


def _packing(frame: pl.LazyFrame, by: list[str], known: Mapping[str, Levels], *, in_memory: bool) -> Packing | None:
    """The packing of keys, from their dtypes or, in memory, from their smallest and largest values."""
    schema = frame.collect_schema()
    unknown = [name for name in by if name not in known]
    levels: dict[str, Levels | None] = dict(known)
    for name in unknown:
        if not _may_have_levels(schema[name]):
            return None
        levels[name] = levels_by_dtype(schema[name])
    if in_memory:
        levels |= levels_by_ends(frame, schema, unknown)
    return Packing.of(by, levels)


def crossed(columns: Mapping[str, pl.Series], packing: Packing) -> Any:
    """Count the rows of each code by bitmaps: a row is a bit, so that columns are crossed 64 rows at a time."""
    values = packing.values

    def count(rows: slice) -> list[int]:
        # the first column varies fastest in codes, so it is crossed last
        masks: list[list[pl.Series]] = []
        for name, levels in reversed(packing.narrow_first):
            column = columns[name].slice(rows.start, _CROSSED)
            masks.append(_masks(column, levels, values[name]))
        return _combinations(masks, rows.stop - rows.start)

    size = len(next(iter(columns.values())))
    if size <= _CROSSED:
        return np.array(count(slice(0, size)), dtype=np.int64)
    counts = over_slices(count, size, _CROSSED)
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


def _combinations(masks: Sequence[Sequence[pl.Series]], rows: int, within: pl.Series | None = None) -> list[int]:
    """Count the rows within a bitmap by combinations of values."""
    if not masks:
        return [rows]
    if not rows:
        return [0] * math.prod(len(values) + 1 for values in masks)
    first, *others = masks
    counts: list[int] = []
    rest = _combinations(others, rows, within)
    for mask in first:
        both = mask if within is None else mask & within
        of_value = _combinations(others, int(both.sum()), both)
        counts += of_value
        rest = [total - part for total, part in zip(rest, of_value, strict=True)]
    return counts + rest


def _counted(frame: pl.LazyFrame, packing: Packing, rows: int | None) -> pl.DataFrame:
    """Count the rows of each combination of keys: no hash is as fast as an index into a table."""
    size = packing.size
    in_pairs = size <= _SMALL_TABLE
    table = np.zeros(size, dtype=np.int64)
    possible_pairs = size**2 if in_pairs else 0
    table_of_pairs = np.zeros(possible_pairs, dtype=np.int64)
    # a part of the rows makes a table of its own, which is not to cost more than they do
    block = max(_BLOCK, size)
    for part in _codes(frame, packing, rows):
        code = part.to_series().to_numpy()
        if in_pairs:
            # two rows at a time: half as many steps
            half = len(code) // 2
            both = code[:half].astype(np.uint16) * np.uint16(size) + code[half : 2 * half]
            table_of_pairs += np.bincount(both, minlength=possible_pairs)
            code = code[2 * half :]
        for start in range(0, len(code), block):
            table += np.bincount(code[start : start + block], minlength=size)
    if in_pairs:
        pairs = table_of_pairs.reshape(size, size)
        table += pairs.sum(axis=0) + pairs.sum(axis=1)
    return packing.counts(table)


def _codes(frame: pl.LazyFrame, packing: Packing, rows: int | None) -> Iterable[pl.DataFrame]:
    """The codes of rows, at once or in parts: these are counted while the engine reads others."""
    codes = frame.select(packing.code())
    if rows is not None and rows < _MANY_ROWS:
        return [codes.collect(engine="in-memory")]
    return in_batches(codes, max(_BATCH, packing.size))


def _gives_batches() -> bool:
    """Check whether queries run in the default engines, not in one chosen by the user, such as a GPU."""
    return pl.Config.state().get("POLARS_ENGINE_AFFINITY") in {None, "auto", "streaming"}


def binned(
    frame: pl.LazyFrame, by: list[str], scores: list[str], bins: int, rows: int | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Count rows, or sum their weights, by keys and bins of scores between 0 and 1.

    Bins are numbered from 0 and of equal width; rows without a score are left out. Beside them the number of rows `n`
    of each combination of keys, where it is known and all rows have a score.
    """
    schema = frame.collect_schema()
    weights = [WEIGHT] if WEIGHT in schema else []
    numbers = (pl.col(scores) * bins).clip(0, bins - 1).cast(pl.UInt16)
    scored = frame.filter(pl.all_horizontal(pl.col(scores).is_not_null()))
    frame = scored.select(*by, numbers, *weights)
    engine = engine_for(rows)
    few = engine == "in-memory" or len(scores) > 1
    packing = None if few else _packing(frame, by, {}, in_memory=rows is not None)
    if packing is not None and packing.size <= MOST_PARTED and not weights:
        counts, cells = _binned_by_key(frame, packing, scores[0], bins, engine)
        return counts, cells if cells["n"].sum() == rows else None
    if packing is not None and packing.size * bins <= _LARGEST_TABLE_OF_BINS:
        return _binned_in_a_table(frame, packing, scores[0], bins, schema, engine), None
    counted = pl.len().cast(pl.Int64)
    squares = pl.col(WEIGHT).cast(pl.Float64).pow(2).sum() if weights else counted
    total = pl.col(WEIGHT).sum() if weights else counted.alias(WEIGHT)
    return frame.group_by(*by, *scores).agg(total, squares.alias(SQUARED)).collect(engine=engine), None


def _binned_by_key(
    frame: pl.LazyFrame, packing: Packing, score: str, bins: int, engine: Engine
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Count rows by few keys and bins of one score, and by keys alone: one key after the other, in the cache."""
    read = frame.select(packing.code().alias("code"), score).collect(engine=engine)
    bin_of_row = read[score].to_numpy()
    parted = Parted.of(read["code"].to_numpy(), packing.size, lambda rows: bin_of_row[rows])
    keys = np.flatnonzero(np.diff(parted.ends))

    def count(key: int) -> tuple[Any, Any]:
        table = np.bincount(parted.together([key]), minlength=bins)
        occurring = np.flatnonzero(table)
        return occurring.astype(np.uint16), table[occurring]

    counted = in_threads(count, keys.tolist())
    values = pl.DataFrame(packing.keys(keys))
    # of no keys there are empty arrays of these dtypes
    numbers, tables = [np.zeros(0, dtype=np.uint16)], [np.zeros(0, dtype=np.int64)]
    bins_of_key: list[int] = []
    for occurring, table in counted:
        numbers.append(occurring)
        tables.append(table)
        bins_of_key.append(len(occurring))
    key_of_bin = np.repeat(np.arange(len(keys), dtype=np.uint32), bins_of_key)
    number = pl.Series(score, np.concatenate(numbers))
    rows = pl.Series(np.concatenate(tables))
    # a row counts once, and once squared
    counts = values[pl.Series(key_of_bin)].hstack([number, rows.alias(WEIGHT), rows.alias(SQUARED)])
    return counts, values.with_columns(pl.Series("n", np.diff(parted.ends)[keys], dtype=pl.Int64))


def _binned_in_a_table(
    frame: pl.LazyFrame, packing: Packing, score: str, bins: int, schema: pl.Schema, engine: Engine
) -> pl.DataFrame:
    """Count rows by keys and bins of one score, in a table of all combinations that is filled in one go."""
    weights = [WEIGHT] if WEIGHT in schema else []
    # as wide as numpy counts them, so that it takes no copy
    code = packing.code().cast(pl.Int64) * bins + pl.col(score).cast(pl.Int64)
    rows = frame.select(code.alias("code"), *weights).collect(engine=engine)
    codes: Any = rows["code"].to_numpy()
    values = rows[WEIGHT].to_numpy() if weights else None
    size = packing.size * bins
    table = np.bincount(codes, values, size)
    counts = np.bincount(codes, minlength=size) if weights else table
    occurring = np.flatnonzero(counts)
    total = pl.Series(WEIGHT, table[occurring])
    # a row counts once, and once squared
    squares = total if values is None else np.bincount(codes, values.astype(float) ** 2, size)[occurring]
    # codes are sorted by their keys, which are looked up once for all bins
    bins_of_key = np.count_nonzero(counts.reshape(packing.size, bins), axis=1)
    present = np.flatnonzero(bins_of_key)
    first_code = np.repeat(present * bins, bins_of_key[present])
    number = pl.Series(score, (occurring - first_code).astype(np.uint16))
    key_of_bin = np.repeat(np.arange(len(present)), bins_of_key[present])
    if weights:
        # weights that are missing are found later, by name
        total = total.fill_nan(None).cast(schema[WEIGHT])
    keys = pl.DataFrame(packing.keys(present))[key_of_bin]
    return keys.hstack([number, total, pl.Series(SQUARED, squares)])
