"""Opens frames of any kind, selects checked columns, and returns results in the caller's kind."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from typing import Any, NamedTuple, TypeAlias, cast

import polars as pl
from polars.dataframe.group_by import DynamicGroupBy, GroupBy, RollingGroupBy
from polars.lazyframe.group_by import LazyGroupBy

from tidyfair.errors import (
    ArgumentError,
    ColumnError,
    EngineError,
    EngineWarning,
    TidyfairError,
    WeightError,
    listed,
    nearest,
    warn,
    with_article,
)
from tidyfair.specs import (
    EXACT,
    SIDE,
    Bins,
    Column,
    ColumnLike,
    ListColumn,
    Privileged,
    are_columns,
    blaming_expressions,
    names_of,
    roots_of,
    telling,
)
from tidyfair.tallies.moments import ACTUAL, MEASURE, PREDICTED, is_weight_column

PolarsFrame: TypeAlias = "pl.DataFrame | pl.LazyFrame | GroupBy"

WEIGHT = "weight"
FREQUENCY = "frequency"
"""Number of equal rows that a row represents."""
SQUARED = "weight squared"
"""The sum of squared weights of rows that are counted together."""
_VALUES = {WEIGHT, MEASURE, ACTUAL, PREDICTED}
_EAGER = ("pandas", "pyarrow")
_ENGINES = {
    "duckdb": ("DuckDB", "data.pl()"), "ibis": ("Ibis", "data.to_polars()"), "dask": ("Dask", "data.compute()"),
    "pyspark": ("Spark", "data.toPandas()"), "pyspark[connect]": ("Spark", "data.toPandas()"),
}  # fmt: skip
"""Engines by their names in narwhals: how messages name them, and the call for a frame in memory."""
MANY_ROWS, TOO_MANY_ROWS = 100_000, 10_000_000
"""More rows of another engine are transferred with a warning, or not at all."""
_TOO_WIDE = "decimal256"
_SQLITE = "Ibis on sqlite"
_PLAIN = (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)


@dataclass(frozen=True)
class Source:
    """An opened frame, with its engine, its outer groups and the kind of its results."""

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
        if self.is_elsewhere:
            with engine_errors(self.frame):
                return self.frame.collect_schema().names()
        lazy = isinstance(self.frame, pl.LazyFrame)
        return self.frame.collect_schema().names() if lazy else list(self.frame.columns)

    @property
    def is_elsewhere(self) -> bool:
        """True where the rows are in a database, a cluster or another engine that runs queries."""
        return self.kind not in ("polars", *_EAGER)

    @property
    def engine(self) -> str:
        """The name of the engine that has the rows, for messages."""
        return engine_of(self.frame)

    @property
    def group_by(self) -> list[Any]:
        """The outer groups, as a user writes them."""
        sources = [column.source for column in self.outer]
        return [*sources, self.sides] if self.sides else sources

    @property
    def rows(self) -> int | None:
        """The number of rows, if known without reading them."""
        if self.is_elsewhere or isinstance(self.frame, pl.LazyFrame):
            return None
        return len(self.frame)

    def named(self, names: Mapping[str, str]) -> Any:
        """Columns of another engine under new names, `{new: old}`."""
        import narwhals.stable.v2 as nw

        frame: Any = self.frame
        new_names = {old: new for new, old in names.items()}
        if self.kind == "dask" and len(new_names) == len(names):
            # a column under another name would be a copy
            return frame.select(*new_names).rename(new_names)
        columns: list[Any] = []
        for new, old in names.items():
            # in Spark dots would be parts of a name
            name = "`{}`".format(old.replace("`", "``")) if self.kind.startswith("pyspark") else old
            columns.append(nw.col(name).alias(new))
        return frame.select(*columns)

    def levels(self, roots: Iterable[str]) -> dict[str, list[Any]]:
        """The levels of ordered columns of pandas, pyarrow and Dask in their order, as far as they are declared."""
        if self.kind not in (*_EAGER, "dask"):
            return {}
        import narwhals.stable.v2 as nw

        frame: Any = self.frame
        levels: dict[str, list[Any]] = {}
        with engine_errors(frame):
            schema = frame.select(*roots).collect_schema()
        for root, dtype in schema.items():
            declared: list[Any] = []
            if isinstance(dtype, nw.Enum):
                declared = list(dtype.categories)
            elif isinstance(dtype, nw.Categorical) and self.kind in _EAGER:
                declared = _dictionary(frame[root].to_native())
            if declared:
                levels[root] = declared
        return levels

    def levels_of_numbers(self, columns: Mapping[str, Column | None]) -> dict[str, list[Any]]:
        """The declared levels of numeric columns, which polars dtypes cannot store, keyed by the names of `columns`."""
        if self.kind not in (*_EAGER, "dask"):
            return {}
        present = self.columns
        roots: dict[str, str] = {}
        for name, column in columns.items():
            if column is not None and isinstance(column.source, str) and column.source in present:
                roots[name] = column.source
        levels = self.levels(set(roots.values())) if roots else {}
        numbers: dict[str, list[Any]] = {}
        for name, root in roots.items():
            declared = levels.get(root, [])
            if _are_numbers(declared):
                numbers[name] = declared
        return numbers

    def with_levels(self, roots: Iterable[str]) -> Source:
        """The same with ordered columns of Dask as numbers, or as text if the levels are unknown or of other kinds.

        Dask does not know the levels in files.
        """
        import narwhals.stable.v2 as nw

        if self.kind != "dask":
            return self
        frame: Any = self.frame
        native, schema = frame.to_native(), frame.collect_schema()
        casts: list[Any] = []
        for root in roots:
            dtype = schema[root]
            if not isinstance(dtype, nw.Enum):
                continue
            levels = list(dtype.categories) if native[root].cat.known else []
            if _are_numbers(levels):
                casts.append(nw.col(root).cast(nw.Float64))  # the only numbers that may be missing
            elif not levels or not _is_text(levels):
                casts.append(nw.col(root).cast(nw.String))
        return replace(self, frame=frame.with_columns(*casts)) if casts else self

    def select(self, wanted: Mapping[str, tuple[str, Column]]) -> pl.LazyFrame:
        """Only the wanted columns, under internal names: `{name: (role, column)}`.

        NaN becomes null, also where expressions read it, except in weights, where it is an error later on, and -0.0
        among keys and labels becomes 0.0.
        """
        frame = self.here(wanted).frame.lazy()
        roots = roots_of({name: item for name, item in wanted.items() if not isinstance(item[1].source, str)})
        if roots:
            # for polars NaN is larger than any number, which expressions would see
            schema = frame.collect_schema()
            for role, column in wanted.values():
                if isinstance(column.source, Bins):
                    _check_numeric(role, column.source.column, schema[column.source.column])
                if isinstance(column, ListColumn):
                    column.check_dtype(frame)
            frame = frame.with_columns(pl.col(root).fill_nan(None) for root in roots if schema[root].is_float())
        chosen = frame.select([column.expr.alias(name) for name, (_, column) in wanted.items()])
        with blaming_expressions(wanted):
            schema = chosen.collect_schema()
        floats: list[pl.Expr] = []
        for name, (role, column) in wanted.items():
            _check_plain(role, column, schema[name])
            if schema[name].is_float() and name not in {WEIGHT, FREQUENCY}:
                number = pl.col(name).fill_nan(None)
                floats.append(number if is_value(name) else with_one_zero(number).alias(name))
        return chosen.with_columns(floats) if floats else chosen

    def here(self, wanted: Mapping[str, tuple[str, Column]]) -> Source:
        """The same as a polars frame that has at least the wanted columns, which must exist."""
        columns = self.columns
        for role, column in wanted.values():
            column.check(columns, role)
        return (
            self if self.kind == "polars" else replace(self, frame=self._as_polars({*roots_of(wanted)}), kind="polars")
        )

    def columns_in_memory(
        self, wanted: Mapping[str, tuple[str, Column]]
    ) -> tuple[dict[str, pl.Series], dict[str, pl.DataType]] | None:
        """The wanted columns of a polars frame in memory, under internal names, and their dtypes.

        None if the frame is lazy, or a column is an expression.
        """
        frame = self.frame
        if not isinstance(frame, pl.DataFrame):
            return None
        present, columns, schema = frame.columns, dict[str, pl.Series](), dict[str, pl.DataType]()
        for name, (role, column) in wanted.items():
            if not isinstance(column.source, str):
                return None
            if column.source not in present:
                raise ColumnError.missing(column.source, role, present)
            columns[name] = frame.get_column(column.source)
            # asked for once, as the answer lists all levels
            schema[name] = columns[name].dtype
            _check_plain(role, column, schema[name])
        return columns, schema

    @telling("read the rows")
    def read(self, wanted: Mapping[str, tuple[str, Column]]) -> pl.DataFrame:
        """The rows of the wanted columns."""
        return self.select(wanted).collect()

    def some_rows(self, wanted: Mapping[str, tuple[str, Column]], count: int) -> pl.DataFrame:
        """A sample of the wanted columns: equally spaced rows of a frame in memory, the first rows of any other."""
        frame: Any = self.frame
        if isinstance(frame, pl.LazyFrame):
            frame = frame.head(count)
        elif len(frame) > count:
            frame = frame.gather_every(len(frame) // count).head(count)
        return replace(self, frame=frame).read(wanted)

    def distinct_in_sample(self, roots: Iterable[str], count: int) -> tuple[int, int]:
        """The number of the first rows of another engine, at most `count`, and of the distinct ones among them."""
        import narwhals.stable.v2 as nw

        named = {f"k{index}": root for index, root in enumerate(roots)}
        with engine_errors(self.frame):
            sample = self.named(named).head(count)
            distinct = sample.group_by(*named).agg(nw.len().alias("n"))
            return collected(distinct.select(nw.col("n").sum(), nw.len().alias("distinct"))).row(0)

    def quantiles(self, name: str, shares: Sequence[float]) -> tuple[Any, ...]:
        """The quantiles of a numeric column, between the nearest two numbers; None without any number."""
        column = Column(name)
        column.check(self.columns, "by")
        numbers = (self.emptied([name]) if self.is_elsewhere else self).select({MEASURE: ("by", column)})
        _check_numeric("by", name, numbers.collect_schema()[MEASURE])
        if not self.is_elsewhere:
            values = numbers.collect()[MEASURE]
            return tuple(values.quantile(share, "linear") for share in shares)
        import narwhals.stable.v2 as nw

        number = nw.col(MEASURE)
        with engine_errors(self.frame):
            rows = self.named({MEASURE: name}).filter(number.cast(nw.Float64).abs() <= math.inf)
            ends = [number.quantile(share, "linear").alias(f"q{index}") for index, share in enumerate(shares)]
            return collected(rows.select(*ends)).row(0)

    def emptied(self, roots: Iterable[str]) -> Source:
        """A polars frame without rows, whose columns are some of those of the frame."""
        import narwhals.stable.v2 as nw

        schema: Any = cast("Any", self.frame).collect_schema()
        dtypes: dict[str, Any] = {}
        for root in roots:
            dtype = schema[root]
            if isinstance(dtype, nw.Duration):
                dtypes[root] = pl.Object()  # months and days of a database are no time that polars knows
            elif isinstance(dtype, nw.Unknown):
                try:
                    # a query for zero rows
                    dtypes[root] = self.named({root: root}).head(0).collect("polars").to_native().dtypes[0]
                except Exception:  # noqa: BLE001 - what cannot come here is no plain value, whatever the engine says
                    dtypes[root] = pl.Object()
            elif isinstance(dtype, nw.Datetime) and dtype.time_unit == "s":
                dtypes[root] = pl.Datetime("ms")  # polars knows no seconds
            else:
                dtypes[root] = nw.Schema({root: dtype}).to_polars()[root]
        return replace(self, frame=pl.DataFrame(schema=dtypes), kind="polars")

    @telling("read the rows")
    def to_polars(self) -> pl.DataFrame:
        """The whole frame in polars."""
        frame = self._as_polars(set(self.columns))
        return frame.collect() if isinstance(frame, pl.LazyFrame) else frame

    def restore(self, result: pl.DataFrame) -> Any:
        """A result in the caller's kind; a polars frame for lazy input."""
        if self.kind == "pyarrow":
            return cast("Any", result).to_arrow()
        if self.kind != "pandas":
            return result
        frame: Any = result.to_pandas()
        for column in result:
            if isinstance(column.dtype, pl.List):
                # tuples of names, which tables ask for missing values as they do of texts
                frame[column.name] = [None if names is None else tuple(names) for names in column.to_list()]
        return frame

    def _as_polars(self, needed: set[str]) -> pl.DataFrame | pl.LazyFrame:
        """The frame in polars: unchanged if it is a polars frame, else its needed columns."""
        if isinstance(self.frame, pl.DataFrame | pl.LazyFrame):
            return self.frame
        import narwhals.stable.v2 as nw

        named = [name for name in self.columns if name in needed]
        if self.is_elsewhere:
            try:
                with engine_errors(self.frame):
                    number = collected(self.frame.select(nw.len().alias("rows"))).item()
                    rows = f"rows of the columns {listed(named)}"
                    check_transfer(self.frame, number, rows, "Take a sample of the rows")
                    return collected(self.named(dict(zip(named, named, strict=True))))
            except pl.exceptions.PolarsError as error:
                msg = f"The columns {listed(named)} could not be read as plain columns: {error}."
                raise ColumnError(msg) from error
        try:
            return self._across(named)
        except ColumnError:
            raise
        except ImportError as error:
            msg = f"Columns of text in pandas need pyarrow: pip install 'tidyfair[pandas]' ({error})."
            raise ColumnError(msg) from error
        except Exception as error:
            blamed = [name for name in named if not self._comes_across(name)] or named
            msg = f"The columns {listed(blamed)} could not be read as plain columns: {error}."
            raise ColumnError(msg) from error

    def _comes_across(self, name: str) -> bool:
        """Check whether a single column can be read."""
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
            dtype = native[name].dtype if self.kind == "pandas" else native.schema.field(name).type
            check_width(name, dtype)
        # ordered columns would lose their levels on the way; those of numbers are the numbers
        coded: dict[str, pl.Series] = {}
        dtypes: dict[str, pl.DataType] = {}
        for name, declared in self.levels(named).items():
            texts = list(map(str, declared))
            levels = pl.Series(name, declared) if _are_numbers(declared) else pl.Series(name, texts, pl.Enum(texts))
            if isinstance(frame.schema[name], nw.Enum):
                # by their codes, which is a hundred times as fast as by their texts; those below zero are missing
                codes = pl.Series(frame[name].to_native().cat.codes.to_numpy())
                coded[name] = levels.gather(codes.cast(pl.UInt32, strict=False))
            else:
                dtypes[name] = levels.dtype
        others = [name for name in named if name not in coded]
        plain = _named(frame.select(*others), others) if others else pl.DataFrame()
        columns = plain.cast(pl.Schema(dtypes)).to_dict() | coded
        # select by name: a column name may be the empty string
        return pl.DataFrame({name: columns[name] for name in named})


def with_one_zero(number: pl.Expr) -> pl.Expr:
    """The number with 0.0 in place of -0.0, which is equal but shown otherwise; adding 0.0 would be optimized away."""
    return pl.when(number == 0).then(0.0).otherwise(number)


def is_value(name: str) -> bool:
    """Check whether a column, by its internal name, holds numbers to be summed, rather than a key."""
    return name in _VALUES or is_score(name) or is_weight_column(name)


def is_score(name: str) -> bool:
    """Check whether a column holds scores: `s0`, `s1`, …."""
    return name[0] == "s" and name[1:].isdigit()


def _check_plain(role: str, column: Column, dtype: pl.DataType) -> None:
    """Refuse columns of lists, structs and objects."""
    if not (isinstance(dtype, _PLAIN) or dtype.is_numeric() or dtype.is_temporal()):
        msg = f"`{role}`: the column {column.name!r} has dtype {dtype}; it must hold one plain value per row."
        if role == "by" and isinstance(dtype, pl.List | pl.Array):
            msg += f" People in several groups are a feature of their own: `memberships({column.name!r})`."
        raise ColumnError(msg)


def _check_numeric(role: str, name: str, dtype: pl.DataType) -> None:
    """Refuse bins of what are no numbers."""
    if not dtype.is_numeric():
        msg = f"`{role}`: the column {name!r} is {dtype}; bins and quantiles are those of numbers. Cast it first."
        raise ColumnError(msg)


def check_width(name: str, dtype: object) -> None:
    """Refuse numbers with more digits than polars supports, which would crash it."""
    if _TOO_WIDE in str(dtype):
        msg = f"{name!r} is {dtype}, which has more digits than polars supports; cast it to decimal128 or float first."
        raise ColumnError(msg)


def _named(frame: Any, names: list[str]) -> pl.DataFrame:
    """The frame in polars; names are set last, because conversion would replace an empty one."""
    import narwhals.stable.v2 as nw

    if "" not in names:
        return frame.to_polars()
    renamed = frame.select(nw.col(name).alias(f"c{index}") for index, name in enumerate(names)).to_polars()
    renamed.columns = names
    return renamed


def _are_numbers(levels: list[Any]) -> bool:
    """Check whether levels are all numbers of one kind, or all Booleans."""
    types: set[object] = set(map(type, levels))
    return len(types) == 1 and types <= {bool, int, float}


def _is_text(levels: list[Any]) -> bool:
    """Check whether levels are all texts."""
    return all(isinstance(level, str) for level in levels)


def _dictionary(column: Any) -> list[Any]:
    """The levels of an ordered Arrow dictionary, collected from all chunks; empty for other columns."""
    pandas_dtype = getattr(column, "dtype", None)
    dtype: Any = getattr(pandas_dtype, "pyarrow_dtype", None) or getattr(column, "type", None)
    if not getattr(dtype, "ordered", False):
        return []
    array = sys.modules["pyarrow"].array(column) if hasattr(column, "dtype") else column
    chunks = getattr(array, "chunks", [array])
    levels_of_chunks: list[list[Any]] = [chunk.dictionary.to_pylist() for chunk in chunks]
    levels = max(levels_of_chunks, key=len, default=list[Any]())
    if not (_is_text(levels) or _are_numbers(levels)):
        return []  # dates and the like come over as they are
    distinct = {*levels}
    has_all = all(map(distinct.issuperset, levels_of_chunks))
    return levels if has_all and len(distinct) == len(levels) else []


def whole_frequencies(values: pl.Series, column: Column, most: float, often: pl.Series | None = None) -> pl.Series:
    """Check frequencies: whole numbers that add up to `most` rows at most.

    With `often`, the number of times that each row itself occurs, they are multiplied by it.
    """
    whole = pl.Series([None], dtype=pl.Int64)
    if values.dtype.is_numeric():
        whole = values.cast(pl.Int64, strict=False)
    are_counts = not whole.null_count() and (whole == values).all() and (whole >= 0).all()
    rows = whole.cast(pl.Float64)
    if often is not None and are_counts:
        rows = rows * often
    if not are_counts or rows.sum() > most:
        why = f"add up to more than {most:g} rows" if are_counts else "are not all whole numbers of 0 or more"
        msg = (
            f"`frequency_weights`: the values of {column.name!r} {why}; each is the number of equal rows that a row "
            "stands for. For other weights use `case_weights=`."
        )
        raise WeightError(msg)
    return whole if often is None else whole * often


def collected(frame: Any) -> pl.DataFrame:
    """The result of a query of another engine, in polars."""
    with engine_errors(frame):
        if frame.implementation.is_ibis():
            frame = _with_natural_logarithms(frame)
        result = frame.collect("polars").to_native()
    if is_sqlite(frame):
        _check_whole_numbers(result)
    return result


def is_sqlite(frame: Any) -> bool:
    """Check for a table of SQLite, whose columns take values of any type."""
    return engine_of(frame) == _SQLITE


@contextmanager
def engine_errors(frame: Any) -> Generator[None]:
    """Raise errors of another engine, in which a query is built or run, as errors that name it."""
    try:
        yield
    except (TidyfairError, pl.exceptions.PolarsError):
        raise  # of polars the query has run
    except Exception as error:
        way_out = f"If the engine cannot do this, pass the rows as a frame in memory: `{in_memory(frame)}`."
        raise EngineError(engine_of(frame), error, way_out) from error


def engine_of(frame: Any) -> str:
    """The name of the engine of a narwhals frame, for messages."""
    name, _ = _ENGINES.get(frame.implementation.value, (frame.implementation.value, ""))
    if not frame.implementation.is_ibis():
        return name
    try:
        return f"{name} on {frame.to_native().get_backend().name}"
    except Exception:  # noqa: BLE001 - a table without a connection
        return name


def check_transfer(frame: Any, number: int, rows: str, fewer: str) -> None:
    """Warn that another engine transfers many rows, and refuse too many.

    Args:
        frame: The frame of the engine.
        number: The number of rows.
        rows: What they are, for messages.
        fewer: The advice on how to transfer fewer.
    """
    if number <= MANY_ROWS:
        return
    engine, call = engine_of(frame), in_memory(frame)
    if number > TOO_MANY_ROWS:
        msg = (
            f"{engine} would have to transfer {number:,} {rows}, but at most {TOO_MANY_ROWS:,} are transferred. "
            f"{fewer}, or pass a frame in memory: `{call}`."
        )
        raise ColumnError(msg)
    msg = f"{engine} transfers {number:,} {rows}. {fewer} for fewer; a frame in memory, `{call}`, has no such warning."
    warn(msg, EngineWarning)


def in_memory(frame: Any) -> str:
    """The call that makes a frame in memory of a frame of another engine, for messages."""
    _, call = _ENGINES.get(frame.implementation.value, ("", "data.collect()"))
    return call


def _check_whole_numbers(result: pl.DataFrame) -> None:
    """Refuse whole numbers that Ibis may have rounded: it reads those of SQLite as floats where one is missing."""
    for name, dtype in result.schema.items():
        column = result[name]
        if dtype == pl.Int64 and column.null_count() and (column.cast(pl.Float64).abs() >= EXACT).any():
            msg = (
                "A column of SQLite has missing values beside whole numbers of 2**53 and more, which Ibis rounds; "
                "cast it to text in the query, or fill its missing values."
            )
            raise ColumnError(msg)


def _with_natural_logarithms(frame: Any) -> Any:
    """A query of Ibis with the function for natural logarithms, for those to any base that narwhals writes.

    PostgreSQL computes these on decimals, at least ten times as slowly.
    """
    import narwhals.stable.v2 as nw

    ops: Any = sys.modules["ibis.expr.operations"]
    table = frame.to_native().op()
    logarithms = [node for node in table.find(ops.Log) if getattr(node.base, "value", None) == math.e]
    natural = {node: ops.Ln(node.arg) for node in logarithms}
    return nw.from_native(table.replace(natural).to_expr()) if natural else frame


class OuterGroups(NamedTuple):
    """The columns and the conditions that data are grouped by."""

    columns: tuple[Column, ...] = ()
    sides: Privileged | None = None

    @classmethod
    def of(cls, group_by: object) -> OuterGroups:
        """The groups as a user names them: by one column or condition, or by several."""
        is_one = isinstance(group_by, str) or not are_columns(group_by)
        keys: list[Any] = [group_by] if is_one else list(cast("Iterable[Any]", group_by))
        sides = [key for key in keys if isinstance(key, Privileged)]
        outer = tuple(Column.of(key, "group_by") for key in keys if not isinstance(key, Privileged))
        names = names_of(outer) + [SIDE] * len(sides)
        if len(set(names)) < len(names):
            twice = {name for name in names if names.count(name) > 1}
            own = ""
            if SIDE in twice:
                own = f"; privileged(…) adds a column {SIDE!r}, so rename yours or give one condition only"
            msg = f"`group_by`: {sorted(twice)} are given more than once{own}."
            raise ColumnError(msg)
        return cls(outer, *sides)


def open_frame(
    data: object, group_by: OuterGroups | ColumnLike | Privileged | Iterable[ColumnLike | Privileged] | None = None
) -> Source:
    """Open a frame of any supported kind, grouped or not."""
    if data is None:
        msg = "The first argument is the data, as in `accuracy(data, …)`; set options of a metric with `metric_tweak`."
        raise ArgumentError(msg)
    frame, keys = _ungrouped(data)
    if keys is not None and group_by is not None:
        msg = "The data are already grouped; give the grouping once, on the frame or as `group_by=`."
        raise ArgumentError(msg)
    outer = group_by if isinstance(group_by, OuterGroups) else OuterGroups()
    if keys is not None:
        outer = OuterGroups.of(keys)
    elif group_by is not None and outer is not group_by:
        outer = OuterGroups.of(group_by)
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return Source(frame, "polars", *outer)
    import narwhals.stable.v2 as nw

    try:
        opened = nw.from_native(cast("Any", frame))
    except (TypeError, ValueError) as error:
        raise _no_frame(frame, error) from error
    if opened.implementation.is_dask() and int((installed := version("pandas")).partition(".")[0]) < 3:
        msg = (
            f"Dask frames need pandas 3, because Dask drops groups with missing keys on pandas {installed}. "
            "Upgrade pandas, or pass `frame.compute()`."
        )
        raise ArgumentError(msg)
    return Source(opened, opened.implementation.value, *outer)


def _no_frame(data: object, error: Exception) -> ArgumentError | ColumnError:
    """The error for data that are not a frame, with the call to write instead."""
    module, kind = type(data).__module__.partition(".")[0], type(data).__name__
    is_frame = hasattr(data, "columns")
    if module in _EAGER and is_frame:
        return ColumnError(f"The {module} frame cannot be read: {error}")
    full_name = kind if module == "builtins" else f"{module}.{kind}"
    if module == "sqlite3" and hasattr(data, "execute"):
        way_out = '; open the database with Ibis, and name a table: `(ibis.sqlite.connect("file.db"), "table")`.'
    elif hasattr(data, "table"):
        way_out = ', which has many tables; select one with `(con, "table")` or `con.table("table")`.'
    elif isinstance(data, str | PathLike):
        way_out = "; read the file first, with `pl.scan_parquet(path)` or `pl.scan_csv(path)`."
    elif isinstance(data, Mapping) or (isinstance(data, list) and data and isinstance(data[0], Mapping)):
        way_out = "; make it a frame first, with `pl.DataFrame(data)`."
    elif not is_frame and (isinstance(data, Sequence) or hasattr(data, "__array__")):
        way_out = ", not a frame; pass arrays to `.arrays(…)`, as in `accuracy.arrays(truth, estimate)`."
    else:
        way_out = (
            "; tidyfair reads polars frames (eager, lazy, grouped), pandas frames (also grouped), pyarrow tables, "
            "and frames of DuckDB, Spark, Dask and Ibis supported by narwhals. Convert it to one of these first."
        )
    return ArgumentError(f"`data` is {with_article(full_name)}{way_out}")


def _ungrouped(data: object) -> tuple[object, list[Any] | None]:
    """The frame behind a grouped frame and its keys; None where it is not grouped."""
    if isinstance(data, GroupBy):
        return data.df, _keys_of_polars(data)
    if isinstance(data, RollingGroupBy | DynamicGroupBy | LazyGroupBy):
        raise ArgumentError(_regroup(with_article(type(data).__name__)))
    if isinstance(data, tuple):
        return _named_table(cast("tuple[Any, ...]", data)), None
    # pandas is recognized by name, so that it need not be installed
    if type(data).__module__.startswith("pandas.") and type(data).__name__.endswith("GroupBy"):
        return _ungrouped_pandas(data)
    return data, None


def _keys_of_polars(data: GroupBy) -> list[Any]:
    """The keys of a grouped polars frame."""
    # `having` is newer than the oldest polars that works here
    if getattr(data, "predicates", None) is not None:
        raise ArgumentError(_regroup("having()"))
    keys = list[Any]()
    for by in cast("tuple[Any, ...]", data.by):
        keys += by if type(by) in (list, tuple) else [by]
    for name, expr in cast("dict[str, pl.Expr]", data.named_by).items():
        keys.append(expr.alias(name))
    return keys


def _ungrouped_pandas(grouped: Any) -> tuple[object, list[Any]]:
    """The pandas frame behind a grouped one, and its keys."""
    keys: Any = [grouped.keys] if isinstance(grouped.keys, str) else grouped.keys
    is_selection = grouped._selection is not None  # noqa: SLF001 - there is no public way to ask
    are_names = isinstance(keys, list) and _is_text(cast("list[Any]", keys))
    if type(grouped).__name__ != "DataFrameGroupBy" or not are_names or is_selection:
        raise ArgumentError(_regroup("a pandas groupby on anything but column names"))
    return grouped.obj, cast("list[Any]", keys)


def _named_table(pair: tuple[Any, ...]) -> object:
    """The named table of a connection."""
    if not any(hasattr(item, "table") or isinstance(item, str) for item in pair):
        return pair  # something else, such as an array
    if len(pair) != 2 or not hasattr(pair[0], "table") or not isinstance(pair[1], str):
        if type(pair[0]).__module__ == "sqlite3":
            raise _no_frame(pair[0], TypeError())
        msg = "A pair must be a connection (DuckDB, Spark or Ibis) and the name of a table."
        raise ArgumentError(msg)
    connection, name = pair
    try:
        return connection.table(name)
    except Exception as error:
        engine, tables = _tables_of(connection)
        if tables is None or name in tables:
            raise EngineError(engine, error, f"`data` is a connection and the name of a table, {name!r}.") from error
        problem = f"there is no table {name!r}"
        way_out = f"{nearest(name, tables)} Tables: {listed(tables)}.".strip()
        raise EngineError(engine, problem, way_out) from error


def _tables_of(connection: Any) -> tuple[str, list[str] | None]:
    """The engine of a connection and the names of its tables; None where they cannot be listed."""
    try:
        if hasattr(connection, "list_tables"):
            return "Ibis", sorted(connection.list_tables())
        if hasattr(connection, "catalog"):
            return "Spark", sorted(table.name for table in connection.catalog.listTables())
        return "DuckDB", sorted(str(row[0]) for row in connection.execute("SHOW TABLES").fetchall())
    except Exception:  # noqa: BLE001 - the error of the table itself is shown
        return "The engine", None


def _regroup(grouping: str) -> str:
    """The message for a grouping that cannot be read."""
    return f'{grouping} cannot be read as outer groups; pass the frame itself and `group_by=["column", …]`.'
