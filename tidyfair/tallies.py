"""The pass over the data: one `group_by` makes a tally, and tallies merge by key."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError
from tidyfair.frames import WEIGHT, Column, blaming_expressions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polars._typing import EngineType

    from tidyfair.frames import Source

__all__ = ["Tally"]

TRUTH, ESTIMATE = "truth", "estimate"
LABELS = (TRUTH, ESTIMATE)
_SCORE = "score"
_LARGEST_CODE = 2**16 - 1
_FEW_ROWS = 50_000
_MOST_WHOLE = 2**63
_LEAST = 1e-75


@dataclass(frozen=True)
class Key:
    """A column that the tally is counted by, and what it is for."""

    column: Column
    role: Literal["outer", "by"]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of rows by keys and labels: all that class metrics need to know of the data.

    `cells` has one row per combination that occurs: the keys as `k0`, `k1`, …, then `truth` and `estimate` (null where
    missing or not given), `n` rows and, with case weights, their sum `w` and the sum of their squares `w2`.
    Tallies of two halves of the data add up to the tally of the whole.
    """

    cells: pl.DataFrame
    keys: tuple[Key, ...]
    truth: Column | None
    estimate: Column | None
    threshold: float | None = None
    weights: Column | None = None

    @property
    def outer(self) -> tuple[Key, ...]:
        """The keys of the outer grouping."""
        return tuple(key for key in self.keys if key.role == "outer")

    @cached_property
    def seen(self) -> dict[str, list[Any]]:
        """The labels that occur in truth and in estimate."""
        found = self.cells.select(pl.col(LABELS).drop_nulls().unique().sort().implode())
        return {name: found[name][0].to_list() for name in LABELS}

    def names(self, columns: Sequence[Column]) -> list[str]:
        """The names in `cells` of the given columns."""
        place = {key.column: f"k{index}" for index, key in enumerate(self.keys)}
        for column in columns:
            if column not in place:
                msg = f"The tally was not counted by {column.name!r}; count again with what is to be computed."
                raise ColumnError(msg)
        return [place[column] for column in columns]

    def __radd__(self, other: object) -> Tally:
        """So that `sum()` adds tallies up."""
        return self if other == 0 else NotImplemented

    def __add__(self, other: Tally) -> Tally:
        """Merge by key, never by position."""
        if not isinstance(other, Tally):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            return NotImplemented
        mine = (self.keys, self.truth, self.estimate, self.threshold, self.weights)
        if mine != (other.keys, other.truth, other.estimate, other.threshold, other.weights):
            msg = "Only tallies of the same columns, keys, weights and threshold can be added."
            raise ArgumentError(msg)
        by = [f"k{index}" for index in range(len(self.keys))] + list(LABELS)
        try:
            both = pl.concat([self.cells, other.cells], how="vertical_relaxed")
        except pl.exceptions.PolarsError as error:
            msg = f"The columns of the two tallies do not have the same kind of values: {error}"
            raise ArgumentError(msg) from error
        cells = both.group_by(by).agg(pl.exclude(by).sum())
        if self.weights is not None:
            _check_total(cells, self.weights)
        return Tally(cells, *mine)


def count(
    source: Source,
    keys: tuple[Key, ...],
    *,
    truth: Column | None,
    estimate: Column | None,
    score: Column | None = None,
    threshold: float | None = None,
    weights: Column | None = None,
) -> Tally:
    """Count the rows of a frame in one pass; with a threshold the labels are made from the score."""
    wanted = {f"k{index}": ("group_by" if key.role == "outer" else "by", key.column) for index, key in enumerate(keys)}
    named = {TRUTH: truth, ESTIMATE: estimate, _SCORE: score, WEIGHT: weights}
    roles = {_SCORE: "probs", WEIGHT: "case_weights"}
    wanted |= {name: (roles.get(name, name), column) for name, column in named.items() if column is not None}
    # small frames do not repay the start of the streaming engine
    engine: EngineType = "in-memory" if source.rows is not None and source.rows < _FEW_ROWS else "streaming"
    frame = source.select(wanted)
    schema = frame.collect_schema()
    if score is not None:
        if not schema[_SCORE].is_numeric():
            msg = f"`probs`: the column {score.name!r} is {schema[_SCORE]}; a threshold needs numbers."
            raise ColumnError(msg)
        frame = frame.with_columns((pl.col(_SCORE) >= threshold).alias(ESTIMATE)).drop(_SCORE)
    _refuse_continuous(frame, named, engine)
    sums = [pl.len().cast(pl.Int64).alias("n")]
    if weights is not None:
        frame = _weighable(frame, weights)
        sums += [pl.col(WEIGHT).sum().alias("w"), pl.col(WEIGHT).cast(pl.Float64).pow(2).sum().alias("w2")]
        sums += [pl.col(WEIGHT).min().alias("least"), pl.col(WEIGHT).count().alias("known")]
    by = [name for name in frame.collect_schema().names() if name != WEIGHT]
    with blaming_expressions(wanted):
        cells = _grouped(frame, by, sums, engine)
    if weights is not None:
        _check_weights(cells, weights)
        cells = cells.drop("least", "known")
    cells = cells.with_columns(pl.lit(None).alias(name) for name in LABELS if name not in cells.columns)
    order = [f"k{index}" for index in range(len(keys))]
    return Tally(cells.select(*order, *LABELS, pl.exclude(*order, *LABELS)), keys, truth, estimate, threshold, weights)


def _grouped(frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], engine: EngineType) -> pl.DataFrame:
    """Group and sum; keys whose dtype lists all values travel as one small integer, which groups faster."""
    if not by:
        return frame.select(sums).collect(engine=engine)
    schema = frame.collect_schema()
    levels = [each for name in by if (each := _levels(schema[name])) is not None]
    size = math.prod(map(len, levels))
    if len(levels) < len(by) or size > _LARGEST_CODE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    width = pl.UInt8 if size <= 2**8 else pl.UInt16
    code, stride, strides = pl.lit(0, width), 1, list[int]()
    for name, each in zip(by, levels, strict=True):
        physical = pl.col(name).to_physical().cast(width).fill_null(len(each) - 1)
        code += physical * pl.lit(stride, width)
        strides.append(stride)
        stride *= len(each)
    values = [pl.col(WEIGHT)] if WEIGHT in schema else []
    packed = frame.select(code.alias("code"), *values).group_by("code").agg(sums).collect(engine=engine)
    keys = [
        each.gather((packed["code"] // step % len(each)).cast(pl.UInt32)).alias(name)
        for name, each, step in zip(by, levels, strides, strict=True)
    ]
    return packed.drop("code").with_columns(keys)


def _levels(dtype: pl.DataType) -> pl.Series | None:
    """All values a dtype can hold, in physical order and null last, where it says so."""
    if isinstance(dtype, pl.Enum):
        return pl.Series([*dtype.categories.to_list(), None], dtype=dtype)
    return pl.Series([False, True, None]) if dtype == pl.Boolean else None


def _refuse_continuous(frame: pl.LazyFrame, named: dict[str, Column | None], engine: EngineType) -> None:
    """Numbers that are not whole are no labels; found before they are counted one by one."""
    schema = frame.collect_schema()
    floats = [name for name in LABELS if name in schema and (schema[name].is_float() or schema[name].is_decimal())]
    if not floats:
        return
    broken = (pl.col(floats) != pl.col(floats).round(0)).any()
    found = frame.select(broken).collect(engine=engine)
    for name in floats:
        column = named[name]
        if column is not None and found[name][0]:
            way_out = (
                "give the predicted labels, or the scores as `probs=` with `threshold=`"
                if name == ESTIMATE
                else "give the column of labels"
            )
            found_out = f"the column {column.name!r} holds numbers that are not whole, but class metrics read labels"
            msg = f"`{name}`: {found_out}; {way_out}."
            raise ColumnError(msg)


def _weighable(frame: pl.LazyFrame, weights: Column) -> pl.LazyFrame:
    dtype = frame.collect_schema()[WEIGHT]
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        msg = f"`case_weights`: the column {weights.name!r} is {dtype}; weights are numbers."
        raise WeightError(msg)
    whole = dtype.is_integer() or dtype == pl.Boolean
    return frame.with_columns(pl.col(WEIGHT).cast(pl.Int64 if whole else pl.Float64, strict=False))


def _check_weights(cells: pl.DataFrame, weights: Column) -> None:
    found = {
        "missing": (cells["known"] != cells["n"]).any(),
        "NaN or infinite": not cells["w"].is_finite().all(),
        "negative": (cells["least"] < 0).any(),
    }
    for what, there in found.items():
        if there:
            msg = (
                f"`case_weights`: some values of {weights.name!r} are {what}; "
                "weights are finite numbers of zero or more: fill or filter these rows first."
            )
            raise WeightError(msg)
    _check_total(cells, weights)


def _check_total(cells: pl.DataFrame, weights: Column) -> None:
    """Whole weights are summed in 64 bits, and formulas multiply four sums: beyond that numbers would be wrong."""
    rows, total, squares = cells.select(pl.col("n", "w", "w2").cast(pl.Float64).sum()).row(0)
    # no sum of so many weights is larger, by the inequality of Cauchy and Schwarz
    wraps = cells.schema["w"].is_integer() and math.sqrt(rows * squares) >= _MOST_WHOLE
    if wraps or (total != 0 and not _LEAST < total < 1 / _LEAST):
        msg = f"`case_weights`: the values of {weights.name!r} are too large or too small to be summed; rescale them."
        raise WeightError(msg)
