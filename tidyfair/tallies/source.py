"""The door: opens any frame, gives out checked columns and hands results back in the caller's kind."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import polars as pl
from polars.dataframe.group_by import DynamicGroupBy, GroupBy, RollingGroupBy
from polars.lazyframe.group_by import LazyGroupBy

from tidyfair.errors import ArgumentError, ColumnError, WeightError, listed
from tidyfair.specs.arguments import text
from tidyfair.specs.columns import EXACT, Column, are_columns, blaming_expressions, telling
from tidyfair.specs.groups import SIDE, Privileged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidyfair.specs.columns import ColumnLike

__all__: list[str] = []

PolarsFrame: TypeAlias = "pl.DataFrame | pl.LazyFrame | GroupBy"

WEIGHT = "weight"
FREQUENCY = "frequency"
"""How many equal rows a row stands for."""
SQUARED = "weight squared"
"""The sum of squared weights, of rows that are counted together."""
_EAGER = ("pandas", "pyarrow")
_LARGEST = 2**127 - 1
_TOO_WIDE = "decimal256"
_PLAIN = (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)


@dataclass(frozen=True)
class Source:
    """An opened frame: where the rows are, what they are grouped by, and which kind of frame to answer with."""

    frame: pl.DataFrame | pl.LazyFrame | Any
    """A polars frame, or a narwhals frame of another kind."""
    kind: str
    """`polars`, `pandas` or `pyarrow`, or the engine that has the rows."""
    outer: tuple[Column, ...]
    sides: Privileged | None = None
    """Conditions whose two sides are outer groups too."""

    @property
    def columns(self) -> list[str]:
        """The names of the user's columns."""
        lazy = self.is_elsewhere or isinstance(self.frame, pl.LazyFrame)
        return self.frame.collect_schema().names() if lazy else list(self.frame.columns)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the rows are in a database, a cluster or another engine that works out queries."""
        return self.kind not in ("polars", *_EAGER)

    @property
    def group_by(self) -> list[Any]:
        """What the frame is grouped by, to be given again."""
        return [*(column.source for column in self.outer), *([self.sides] if self.sides else [])]

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known without reading them."""
        return None if self.is_elsewhere or isinstance(self.frame, pl.LazyFrame) else len(self.frame)

    def named(self, names: Mapping[str, str]) -> Any:
        """Columns of another engine under new names, `{new: old}`."""
        import narwhals.stable.v2 as nw

        frame: Any = self.frame
        old = {name: new for new, name in names.items()}
        if self.kind == "dask" and len(old) == len(names):
            # a column under another name would be a copy
            return frame.select(*old).rename(old)
        if self.kind.startswith("pyspark"):
            # dots would be parts of a name
            names = {new: "`{}`".format(name.replace("`", "``")) for new, name in names.items()}
        return frame.select(*(nw.col(name).alias(new) for new, name in names.items()))

    def levels(self, roots: Iterable[str]) -> dict[str, list[Any]]:
        """The levels of ordered columns of pandas, pyarrow and Dask in their order, as far as they are declared."""
        if self.kind not in (*_EAGER, "dask"):
            return {}
        import narwhals.stable.v2 as nw

        frame: Any = self.frame
        found: dict[str, list[Any]] = {}
        for root, dtype in frame.select(*roots).collect_schema().items():
            if isinstance(dtype, nw.Enum):
                found[root] = list(dtype.categories)
            elif isinstance(dtype, nw.Categorical) and self.kind in _EAGER:
                found[root] = _dictionary(frame[root].to_native())
        return {root: levels for root, levels in found.items() if levels}

    def levels_of_numbers(self, columns: Mapping[str, Column | None]) -> dict[str, list[Any]]:
        """The levels of columns of numbers, which no dtype of polars carries, by the names of `columns`."""
        there = self.columns if self.kind in (*_EAGER, "dask") else ()
        roots = {
            name: column.source for name, column in columns.items()
            if column is not None and isinstance(column.source, str) and column.source in there
        }  # fmt: skip
        levels = self.levels(set(roots.values())) if roots else {}
        return {name: levels[root] for name, root in roots.items() if _are_numbers(levels.get(root, []))}

    def with_levels(self, roots: Iterable[str]) -> Source:
        """The same with ordered columns of Dask as numbers, or as text where its levels are neither known nor text.

        It does not know those of files.
        """
        import narwhals.stable.v2 as nw

        if self.kind != "dask":
            return self
        frame: Any = self.frame
        native, there = frame.to_native(), frame.collect_schema()
        kinds: dict[str, Any] = {}
        for root in (root for root in roots if isinstance(there[root], nw.Enum)):
            levels = list(there[root].categories) if native[root].cat.known else []
            if _are_numbers(levels):
                kinds[root] = nw.Float64  # the only numbers that may be missing
            elif not levels or not _is_text(levels):
                kinds[root] = nw.String
        casts = [nw.col(root).cast(kind) for root, kind in kinds.items()]
        return replace(self, frame=frame.with_columns(*casts)) if casts else self

    def select(self, wanted: Mapping[str, tuple[str, Column]]) -> pl.LazyFrame:
        """The wanted columns and nothing else, under names of ours: `{name: (role, column)}`.

        NaN becomes null, except in weights, where it is an error later on.
        """
        columns = self.columns
        for role, column in wanted.values():
            column.check(columns, role)
        frame = self._as_polars({root for _, column in wanted.values() for root in column.roots})
        chosen = frame.lazy().select(column.expr.alias(name) for name, (_, column) in wanted.items())
        with blaming_expressions(wanted):
            schema = chosen.collect_schema()
        for name, (role, column) in wanted.items():
            _check_plain(role, column, schema[name])
        floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in {WEIGHT, FREQUENCY}]
        return chosen.with_columns(pl.col(floats).fill_nan(None)) if floats else chosen

    def here(self, wanted: Mapping[str, tuple[str, Column]]) -> Source:
        """The same as a polars frame, of which the wanted columns are there."""
        columns = self.columns
        for role, column in wanted.values():
            column.check(columns, role)
        frame = self._as_polars({root for _, column in wanted.values() for root in column.roots})
        return replace(self, frame=frame, kind="polars")

    def columns_in_memory(
        self, wanted: Mapping[str, tuple[str, Column]]
    ) -> tuple[dict[str, pl.Series], dict[str, pl.DataType]] | None:
        """The wanted columns of a polars frame in memory, under names of ours, and their dtypes.

        None if some are yet to be made.
        """
        frame = self.frame
        if not isinstance(frame, pl.DataFrame):
            return None
        there, columns, schema = frame.columns, dict[str, pl.Series](), dict[str, pl.DataType]()
        for name, (role, column) in wanted.items():
            if not isinstance(column.source, str):
                return None
            column.check(there, role)
            columns[name] = frame[column.source]
            # asked for once, as the answer lists all levels
            schema[name] = columns[name].dtype
            _check_plain(role, column, schema[name])
        return columns, schema

    @telling("read the rows")
    def read(self, wanted: Mapping[str, tuple[str, Column]]) -> pl.DataFrame:
        """The rows of the wanted columns."""
        return self.select(wanted).collect()

    def some_rows(self, wanted: Mapping[str, tuple[str, Column]], count: int) -> pl.DataFrame:
        """Some rows of the wanted columns: every so many of a frame in memory, the first of another."""
        frame: Any = self.frame
        if self.is_elsewhere or isinstance(frame, pl.LazyFrame):
            frame = frame.head(count)
        elif len(frame) > count:
            frame = frame.gather_every(len(frame) // count).head(count)
        if self.is_elsewhere:
            roots = {root: root for _, column in wanted.values() for root in column.roots}
            frame = collected(replace(self, frame=frame).named(roots))
            return replace(self, frame=frame, kind="polars").read(wanted)
        return replace(self, frame=frame).read(wanted)

    def emptied(self, roots: Iterable[str]) -> Source:
        """A polars frame without rows, whose columns are some of those of the frame."""
        import narwhals.stable.v2 as nw

        there: Any = cast("Any", self.frame).collect_schema()
        kinds: dict[str, Any] = {}
        for root in roots:
            dtype = there[root]
            if isinstance(dtype, nw.Duration):
                kinds[root] = pl.Object()  # months and days of a database are no time that polars knows
            elif isinstance(dtype, nw.Unknown):
                kinds[root] = self._looked_up(root)
            elif isinstance(dtype, nw.Datetime) and dtype.time_unit == "s":
                kinds[root] = pl.Datetime("ms")  # polars knows no seconds
            else:
                kinds[root] = nw.Schema({root: dtype}).to_polars()[root]
        return replace(self, frame=pl.DataFrame(schema=kinds), kind="polars")

    def _looked_up(self, root: str) -> Any:
        """The dtype of a column that narwhals does not know, by asking for none of its rows."""
        try:
            return self.named({root: root}).head(0).collect("polars").to_native().dtypes[0]
        except Exception:  # noqa: BLE001 - what cannot come here is no plain value, whatever the engine says
            return pl.Object()

    @telling("read the rows")
    def to_polars(self) -> pl.DataFrame:
        """The whole frame in polars."""
        frame = self._as_polars(set(self.columns))
        return frame.collect() if isinstance(frame, pl.LazyFrame) else frame

    def restore(self, result: pl.DataFrame) -> Any:
        """A result in the caller's kind; lazy input is answered with a polars frame."""
        kinds: dict[str, Callable[[], Any]] = dict(zip(_EAGER, (result.to_pandas, result.to_arrow), strict=True))
        return kinds[self.kind]() if self.kind in kinds else result

    def _as_polars(self, needed: set[str]) -> pl.DataFrame | pl.LazyFrame:
        if isinstance(self.frame, pl.DataFrame | pl.LazyFrame):
            return self.frame
        named = [name for name in self.columns if name in needed]
        if self.is_elsewhere:
            try:
                return collected(self.named({name: name for name in named}))
            except pl.exceptions.PolarsError as error:
                msg = f"What is in {listed(named)} could not be read as plain columns: {error}."
                raise ColumnError(msg) from error
        try:
            return self._across(named)
        except ColumnError:
            raise
        except ModuleNotFoundError as error:
            msg = f"pandas text columns need pyarrow to cross over: pip install 'tidyfair[pandas]' ({error})."
            raise ColumnError(msg) from error
        except Exception as error:
            blamed = [name for name in named if not self._comes_across(name)] or named
            msg = f"What is in {listed(blamed)} could not be read as plain columns: {error}."
            raise ColumnError(msg) from error

    def _comes_across(self, name: str) -> bool:
        """Whether a column alone can be read."""
        try:
            self._across([name])
        except Exception:  # noqa: BLE001 - the engine says why where all are read
            return False
        return True

    def _across(self, named: list[str]) -> pl.DataFrame:
        """Columns of a frame in memory, in polars."""
        import narwhals.stable.v2 as nw

        frame: Any = cast("Any", self.frame).select(*named)
        native = frame.to_native()
        for name in named:
            _check_width(name, native[name].dtype if self.kind == "pandas" else native.schema.field(name).type)
        # ordered columns would lose their levels on the way; those of numbers are the numbers
        levels = self.levels(named)
        values = {name: _as_series(name, each) for name, each in levels.items()}
        coded = [name for name in levels if isinstance(frame.schema[name], nw.Enum)]
        others = [name for name in named if name not in coded]
        plain = _named(frame.select(*others), others) if others else pl.DataFrame()
        # by their places, which is a hundred times as fast as by their texts
        placed = {name: _gathered(values[name], frame[name].to_native().cat.codes) for name in coded}
        kinds = {name: values[name].dtype for name in levels if name not in coded}
        columns = {column.name: column for column in plain.cast(pl.Schema(kinds))} | placed
        return pl.DataFrame({name: columns[name] for name in named})


def _check_plain(role: str, column: Column, kind: pl.DataType) -> None:
    """Refuse columns of lists, structs and objects."""
    if not (kind.is_numeric() or kind.is_temporal() or isinstance(kind, _PLAIN)):
        msg = f"`{role}`: the column {column.name!r} has dtype {kind}; it needs one plain value a row."
        raise ColumnError(msg)


def _check_width(name: str, kind: object) -> None:
    """Refuse numbers with more digits than polars has, over which it would panic."""
    if _TOO_WIDE in str(kind):
        msg = f"{name!r} is {kind}, which has more digits than polars can hold; cast it to decimal128 or float first."
        raise ColumnError(msg)


def _named(frame: Any, names: list[str]) -> pl.DataFrame:
    """The frame in polars; an empty name would become another one on the way, and not be found again."""
    import narwhals.stable.v2 as nw

    if "" not in names:
        return frame.to_polars()
    found = frame.select(nw.col(name).alias(f"c{place}") for place, name in enumerate(names)).to_polars()
    found.columns = names
    return found


def _are_numbers(levels: list[Any]) -> bool:
    """Whether levels are all numbers of one kind, or all truth values."""
    return any(bool(levels) and all(type(each) is kind for each in levels) for kind in (bool, int, float))


def _is_text(levels: list[Any]) -> bool:
    return all(isinstance(each, str) for each in levels)


def _as_series(name: str, levels: list[Any]) -> pl.Series:
    """Levels as a column: numbers as they are, and else as an Enum of them."""
    if _are_numbers(levels):
        return pl.Series(name, levels)
    texts = [str(each) for each in levels]
    return pl.Series(name, texts, pl.Enum(texts))


def _dictionary(column: Any) -> list[Any]:
    """The levels of an ordered dictionary of Arrow, of which each part may hold some; nothing if it is none."""
    kind: Any = getattr(getattr(column, "dtype", None), "pyarrow_dtype", None) or getattr(column, "type", None)
    if not getattr(kind, "ordered", False):
        return []
    array = sys.modules["pyarrow"].array(column) if hasattr(column, "dtype") else column
    parts: list[list[Any]] = [each.dictionary.to_pylist() for each in getattr(array, "chunks", [array])]
    levels = max(parts, key=len) if parts else list[Any]()
    if not (_is_text(levels) or _are_numbers(levels)):
        return []  # dates and the like come over as they are
    known = {*levels}
    return levels if len(known) == len(levels) and all(known.issuperset(part) for part in parts) else []


def _gathered(values: pl.Series, codes: Any) -> pl.Series:
    """The values at some places; those below zero are missing."""
    return values.gather(pl.Series(codes.to_numpy()).cast(pl.UInt32, strict=False))


def whole_frequencies(given: pl.Series, column: Column, most: float, often: pl.Series | None = None) -> pl.Series:
    """How many equal rows each row stands for, as whole numbers that add up to `most` rows at most.

    Where a row itself is there several times, `often` says so.
    """
    whole = given.cast(pl.Int64, strict=False) if given.dtype.is_numeric() else pl.Series([None], dtype=pl.Int64)
    known = not whole.null_count() and (whole == given).all() and (whole >= 0).all()
    counted = whole.cast(pl.Float64) if often is None or not known else whole.cast(pl.Float64) * often
    if not known or counted.sum() > most:
        why = f"add up to more than {most:g} rows" if known else "are not all whole numbers of 0 or more"
        msg = (
            f"`frequency_weights`: the values of {column.name!r} {why}; they say how many equal rows a row stands for. "
            "Other weights are `case_weights=`."
        )
        raise WeightError(msg)
    return whole if often is None else whole * often


def collected(frame: Any) -> pl.DataFrame:
    """What a query of another engine gives, in polars."""
    return frame.collect("polars").to_native()


def open_frame(
    data: object, group_by: ColumnLike | Privileged | Iterable[ColumnLike | Privileged] | None = None
) -> Source:
    """Open a frame of any supported kind, grouped or not."""
    if data is None:
        msg = "The data come first, as in `accuracy(data, …)`; options of a metric are fixed by `metric_tweak`."
        raise ArgumentError(msg)
    frame, keys = _ungrouped(data)
    outer, sides = _outer(_keys_of(keys, group_by))
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return Source(frame, "polars", outer, *sides)
    import narwhals.stable.v2 as nw

    try:
        opened = nw.from_native(cast("Any", frame))
    except (TypeError, ValueError) as error:
        raise _no_frame(frame, error) from error
    return Source(opened, opened.implementation.value, outer, *sides)


def _keys_of(grouped: list[Any] | None, group_by: object) -> list[Any]:
    """What rows are grouped by, on the frame or by the argument."""
    if grouped is None:
        return [] if group_by is None else list(group_by) if are_columns(group_by) else [group_by]
    if group_by is not None:
        msg = "The data are already grouped; write the grouping once, on the frame or as `group_by=`."
        raise ArgumentError(msg)
    return grouped


def _outer(keys: list[Any]) -> tuple[tuple[Column, ...], list[Privileged]]:
    """The columns among the keys, and the conditions; names come once."""
    sides = [key for key in keys if isinstance(key, Privileged)]
    outer = tuple(Column.of(key, "group_by") for key in keys if not isinstance(key, Privileged))
    names = [column.name for column in outer] + [SIDE for _ in sides]
    if twice := {name for name in names if names.count(name) > 1}:
        own = f"; privileged(…) makes a column {SIDE!r}, so rename yours or give one condition" if SIDE in twice else ""
        msg = f"`group_by`: {sorted(twice)} are given more than once{own}."
        raise ColumnError(msg)
    return outer, sides


def _no_frame(given: object, error: Exception) -> ArgumentError | ColumnError:
    """What is wrong with data that are no frame, and what to write instead."""
    module, kind = type(given).__module__.partition(".")[0], type(given).__name__
    is_frame = hasattr(given, "columns")
    if module in _EAGER and is_frame:
        return ColumnError(f"The {module} frame cannot be read: {error}")
    what = f"`data` is a {kind if module == 'builtins' else f'{module}.{kind}'}"
    if hasattr(given, "table"):
        way_out = ', which has many tables: name one of them, `(con, "table")` or `con.table("table")`.'
    elif isinstance(given, str | PathLike):
        way_out = ": read the file first, as `pl.scan_parquet(path)` or `pl.scan_csv(path)` does."
    elif isinstance(given, Mapping) or (isinstance(given, list) and given and isinstance(given[0], Mapping)):
        way_out = ": make it a frame first, `pl.DataFrame(data)`."
    elif not is_frame and (isinstance(given, Sequence) or hasattr(given, "__array__")):
        way_out = ", no frame: arrays are given to `.arrays(…)`, as in `accuracy.arrays(truth, estimate)`."
    else:
        way_out = (
            "; tidyfair opens polars frames (eager, lazy, grouped), pandas frames (also grouped), pyarrow tables, and "
            "what narwhals opens of DuckDB, Spark, Dask and Ibis. Turn it into one of these first."
        )
    return ArgumentError(what + way_out)


def _ungrouped(data: object) -> tuple[object, list[Any] | None]:
    """The frame behind a grouped frame and its keys; None where it is not grouped."""
    if isinstance(data, GroupBy):
        return data.df, _keys_of_polars(data)
    if isinstance(data, RollingGroupBy | DynamicGroupBy | LazyGroupBy):
        raise ArgumentError(_regroup(f"a {type(data).__name__}"))
    if isinstance(data, tuple):
        return _named_table(cast("tuple[Any, ...]", data)), None
    # pandas is recognised by name, so that it need not be installed
    if type(data).__module__.startswith("pandas.") and type(data).__name__.endswith("GroupBy"):
        return _ungrouped_pandas(data)
    return data, None


def _keys_of_polars(data: GroupBy) -> list[Any]:
    """What a polars frame is grouped by."""
    if data.predicates is not None:
        raise ArgumentError(_regroup("having()"))
    keys = list[Any]()
    for by in cast("tuple[Any, ...]", data.by):
        keys += by if type(by) in (list, tuple) else [by]
    named_by = cast("dict[str, pl.Expr]", data.named_by)
    return [*keys, *(expr.alias(name) for name, expr in named_by.items())]


def _ungrouped_pandas(grouped: Any) -> tuple[object, list[Any]]:
    """The pandas frame behind a grouped one, and its keys."""
    keys: Any = [grouped.keys] if isinstance(grouped.keys, str) else grouped.keys
    named = isinstance(keys, list) and all(isinstance(key, str) for key in cast("list[object]", keys))
    chosen = grouped._selection is not None  # noqa: SLF001 - there is no public way to ask
    if type(grouped).__name__ != "DataFrameGroupBy" or not named or chosen:
        raise ArgumentError(_regroup("a pandas groupby on anything but the names of columns"))
    return grouped.obj, cast("list[Any]", keys)


def _named_table(pair: tuple[Any, ...]) -> object:
    """The table that a connection has under a name."""
    if not any(hasattr(each, "table") or isinstance(each, str) for each in pair):
        return pair  # something else, such as an array
    if len(pair) != 2 or not hasattr(pair[0], "table") or not isinstance(pair[1], str):
        msg = "A pair is a connection, of DuckDB, Spark or Ibis, and the name of a table."
        raise ArgumentError(msg)
    return pair[0].table(pair[1])


def _regroup(what: str) -> str:
    return f'{what} cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'


def from_arrays(arrays: Mapping[str, object]) -> pl.DataFrame:
    """Arrays, and what becomes one, as the columns of a frame."""
    columns = [_from_array(text("by", name), values) for name, values in arrays.items()]
    if not columns:
        msg = "There are no arrays: give the truth, the estimate or the scores, and what they are grouped by."
        raise ColumnError(msg)
    for column in columns:
        if column.dtype.is_nested() or column.dtype == pl.Object:
            msg = f"`{column.name}` is no array of plain values, one for each row, but {column.dtype}."
            raise ColumnError(msg)
        if len(column) != len(columns[0]):
            msg = f"`{column.name}` has {len(column)} values, and `{columns[0].name}` {len(columns[0])}."
            raise ColumnError(msg)
    return pl.DataFrame(columns)


def _from_array(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    if isinstance(values, str | bytes | Real | Mapping | AbstractSet):
        msg = f"`{name}` is no array of plain values, one for each row, but {values!r}."
        raise ColumnError(msg)
    kind = type(values).__module__.partition(".")[0]
    try:
        if kind == "pandas":
            series = sys.modules["pandas"].Series(values)
            if type(series.dtype).__module__.startswith("numpy") and series.dtype.kind in "biuf":
                return _from_numpy(name, series)
            # as a frame, so that it is read as columns of frames are
            return open_frame(series.to_frame(name)).to_polars()[name]
        if kind == "pyarrow":
            _check_width(name, values.type)
            return open_frame(sys.modules["pyarrow"].table({name: values})).to_polars()[name]
        if hasattr(values, "mask"):
            return pl.Series(name, values.tolist())
        numeric = hasattr(values, "__array__") or hasattr(values, "__dlpack__")
        return _from_numpy(name, values) if numeric else _from_list(name, list(values))
    except ColumnError:
        raise
    except Exception as error:
        msg = f"`{name}` is no array of plain values: {error}"
        raise ColumnError(msg) from error


def _from_numpy(name: str, values: Any) -> pl.Series:
    import numpy as np

    array = np.asarray(values) if hasattr(values, "__array__") else np.from_dlpack(values)
    if array.ndim != 1:
        several = ", as `probs={label: array}`" if name.endswith("probs") else ""
        msg = f"`{name}` is no array of plain values, one for each row{several}, but has {array.ndim} dimensions."
        raise ColumnError(msg)
    return _from_list(name, array.tolist()) if array.dtype == object else pl.Series(name, array)


def _from_list(name: str, values: list[Any]) -> pl.Series:
    found = _of_one_kind(name, values)
    if found.dtype.is_float() and (found.abs() >= EXACT).any():
        whole = (int(each) for each in values if isinstance(each, Integral))
        if any(int(float(each)) != each for each in whole):
            msg = f"`{name}` holds floats, and whole numbers that floats cannot tell apart; bring them to one kind."
            raise ColumnError(msg)
    return found


def _of_one_kind(name: str, values: list[Any]) -> pl.Series:
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        plain = list(map(_unwrapped, values))
    if all(not isinstance(value, bool) and isinstance(value, Integral) for value in plain):
        return pl.Series(name, plain, dtype=pl.UInt128 if max(plain) > _LARGEST else pl.Int128)
    known = list(map(_nan_as_null, plain))
    there = [value for value in known if value is not None]
    if all(isinstance(value, Real) for value in there):
        return pl.Series(name, [None if value is None else float(value) for value in known], dtype=pl.Float64)
    kinds = sorted({type(value).__name__ for value in there})
    if len(kinds) > 1:
        msg = f"`{name}` holds values of several kinds: {', '.join(kinds)}; bring them to one."
        raise ColumnError(msg)
    return pl.Series(name, known)


def _unwrapped(value: Any) -> Any:
    """A number of numpy as one of Python."""
    return value.item() if hasattr(value, "item") else value


def _nan_as_null(value: Any) -> Any:
    """NaN is how pandas and numpy write what is missing."""
    return None if isinstance(value, float) and math.isnan(value) else value
