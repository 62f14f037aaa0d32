"""The pass over the data: one `group_by` makes a tally, and tallies merge by key."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.columns import Column, blaming_expressions, check_features
from tidyfair.cuts import ESTIMATE, Cut
from tidyfair.errors import ArgumentError, ColumnError, WeightError
from tidyfair.frames import WEIGHT
from tidyfair.groups import SIDE
from tidyfair.neighbors import other_labels
from tidyfair.sums import (
    ACTUAL,
    MEASURE,
    PREDICTED,
    SCORE,
    Needs,
    centred,
    digits_lost,
    merged,
    moments,
    own_centres,
    summed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polars._typing import EngineType

    from tidyfair.frames import Source
    from tidyfair.groups import Privileged

__all__ = ["Tally"]

HIDDEN = "hidden"
"""The sum that says how many cells of a group were suppressed, so that nothing is worked out of the rest."""
TRUTH = "truth"
LABELS = (TRUTH, ESTIMATE)
THRESHOLD = "\0threshold"
"""The column of the value of a list of cuts, among the keys."""
_LARGEST_CODE = 2**16 - 1
_FEW_ROWS = 50_000
_MOST_WHOLE = 2**63
_LEAST = 1e-75
_SAMPLE = 1_000


@dataclass(frozen=True)
class Key:
    """A column that the tally is counted by, and what it is for."""

    column: Column
    role: Literal["outer", "by", "side", "threshold"]


@dataclass(frozen=True)
class Scores:
    """The columns of scores: one, or one for each label."""

    columns: tuple[Column, ...]
    labels: tuple[Any, ...] | None = None
    """The labels that a mapping gave them."""
    several: bool = False


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of rows by keys and labels, and sums beside them: all that metrics need to know of the data.

    `cells` has one row per combination that occurs: the keys as `k0`, `k1`, …, then `truth` and `estimate` (null where
    missing or not given; where they are numbers, only whether they are there), `n` rows and, with case weights, their
    sum `w` and the sum of their squares `w2`, and the sums that probability and regression metrics need. `rows` are
    kept for metrics that depend on their order. Tallies of two halves of the data add up to the tally of the whole.
    """

    cells: pl.DataFrame
    keys: tuple[Key, ...]
    truth: Column | None
    estimate: Column | None
    cut: Cut | None = None
    weights: Column | None = None
    scores: Scores | None = None
    needs: Needs = field(default_factory=Needs)
    rows: pl.DataFrame | None = None
    sides: Privileged | None = None
    """Conditions whose two sides are outer groups too."""

    @property
    def outer(self) -> tuple[Key, ...]:
        """The keys of the outer grouping."""
        return tuple(key for key in self.keys if key.role in {"outer", "threshold"})

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

    def on_sides(self) -> Tally:
        """The tally in which the side of a row is one more outer key."""
        sides = self.sides
        if sides is None:
            return self
        names, place = self.names(sides.columns), f"k{len(self.keys)}"
        sides.check(self.cells[names])

        def placed(frame: pl.DataFrame) -> pl.DataFrame:
            side = sides.side(frame[names]).alias(place)
            keys = [f"k{index}" for index in range(len(self.keys))]
            return frame.select(*keys, side, pl.exclude(keys))

        rows = None if self.rows is None else placed(self.rows)
        keys = (*self.keys, Key(Column(SIDE), "outer"))
        return replace(self, cells=placed(self.cells), keys=keys, rows=rows, sides=None)

    def at_each_cut(self) -> Tally:
        """The tally in which a list of cuts is one more key, and the estimate is whether the score reaches it."""
        if self.cut is None or not self.cut.several:
            return self
        import numpy as np

        by = [*(f"k{index}" for index in range(len(self.keys))), TRUTH]
        sums = [name for name in ("n", "w", "w2") if name in self.cells.columns]
        cells = self.cells.group_by(*by, ESTIMATE).agg(pl.col(sums).sum())
        known = cells.filter(pl.col(ESTIMATE).is_not_null())
        distinct = known.select(by).unique(maintain_order=True)
        placed = known.join(
            distinct.with_row_index("place"), on=by, how="left", nulls_equal=True, maintain_order="left"
        )
        place = placed["place"].to_numpy()
        values, height = self.cut.values, len(distinct)
        code = place.astype(np.int64) * (len(values) + 1) + known[ESTIMATE].to_numpy()
        ascending = np.array(self.cut.ascending)
        long = {name: distinct[name].gather(np.tile(np.arange(height), 2 * len(values))) for name in by}
        for name in sums:
            dense = np.zeros(height * (len(values) + 1), dtype=known[name].to_numpy().dtype)
            dense[code] = known[name].to_numpy()
            dense = dense.reshape(height, len(values) + 1)
            # both sides are summed, because subtracting floats would leave dust where there is nothing
            below = dense.cumsum(axis=1)[:, ascending]
            above = dense[:, ::-1].cumsum(axis=1)[:, ::-1][:, ascending + 1]
            long[name] = pl.Series(name, np.concatenate([below.T.ravel(), above.T.ravel()]))
        side = np.repeat([False, True], height * len(values))
        value = np.tile(np.repeat(np.array(values), height), 2)
        decided = pl.DataFrame({**long, ESTIMATE: side, THRESHOLD: value}).filter(pl.col("n") > 0)
        missing = cells.filter(pl.col(ESTIMATE).is_null()).with_columns(pl.lit(None, pl.Boolean).alias(ESTIMATE))
        missing = missing.join(pl.DataFrame({THRESHOLD: values}), how="cross")
        name = f"k{len(self.keys)}"
        every = pl.concat([decided, missing.select(decided.columns)]).rename({THRESHOLD: name})
        keys = (*self.keys, Key(Column(THRESHOLD), "threshold"))
        order = [f"k{index}" for index in range(len(keys))]
        return replace(self, cells=every.select(*order, *LABELS, *sums), keys=keys, needs=Needs(), rows=None)

    def remarks(self) -> list[str]:
        """Where the cut selects more or less than it was asked for."""
        if self.cut is None or self.cut.way == "threshold":
            return []
        tally = self.at_each_cut()
        by = tally.names([key.column for key in tally.outer])
        measure = "w" if self.cut.way == "top_fraction" and self.weights is not None else "n"
        known = tally.cells.filter(pl.col(ESTIMATE).is_not_null()).with_columns(
            pl.lit(self.cut.values[0]).alias("value")
        )
        known = known.with_columns(pl.col(by[-1]).alias("value")) if self.cut.several else known
        selected = pl.col(measure).filter(pl.col(ESTIMATE)).sum().alias("selected")
        table = known.group_by(*by, "value").agg(selected, pl.col(measure).sum().alias("all")).sort(by, nulls_last=True)
        names = [key.column.name for key in tally.outer if key.role == "outer"]
        texts = [", ".join(f"{name}={part!r}" for name, part in zip(names, row, strict=False)) for row in table.rows()]
        groups = pl.Series("group", [f" ({text})" if text else "" for text in texts], dtype=pl.String)
        return self.cut.remarks(table.with_columns(groups), weighed=measure == "w")

    def __radd__(self, other: object) -> Tally:
        """So that `sum()` adds tallies up."""
        return self if other == 0 else NotImplemented

    def __add__(self, other: Tally) -> Tally:
        """Merge by key, never by position."""
        return add_up([self, other]) if isinstance(other, Tally) else NotImplemented  # pyright: ignore[reportUnnecessaryIsInstance] - user input

    @property
    def counted_by(self) -> list[str]:
        """The columns that cells are counted by."""
        return self.cells.columns[: self.cells.columns.index("n")]

    @property
    def definition(self) -> tuple[object, ...]:
        """What was counted, and how; only tallies that agree in it add up."""
        return (self.keys, self.truth, self.estimate, self.cut, self.weights, self.scores, self.needs, self.sides)


def add_up(tallies: Sequence[Tally]) -> Tally:
    """Merge tallies of parts of the data by key, never by position, into that of the whole."""
    first, *others = tallies
    if any(other.definition != first.definition for other in others):
        msg = "Only tallies of the same columns, keys, weights, threshold and metrics can be added."
        raise ArgumentError(msg)
    if first.cut is not None and first.cut.way != "threshold":
        msg = f"`{first.cut.way}` ranks all rows together, so tallies of parts do not add up; count them at once."
        raise ArgumentError(msg)
    if first.needs.compared:
        msg = "Neighbours are sought among all rows, so tallies of parts do not add up; count them at once."
        raise ArgumentError(msg)
    by = first.counted_by
    try:
        parts = [tally.cells for tally in tallies]
        if any(HIDDEN in part.columns for part in parts):
            nothing = pl.lit(0, pl.Int64).alias(HIDDEN)
            parts = [part if HIDDEN in part.columns else part.with_columns(nothing) for part in parts]
        every = pl.concat(parts, how="vertical_relaxed")
        kept = [tally.rows for tally in tallies if tally.rows is not None]
        rows = pl.concat(kept, how="vertical_relaxed") if kept else None
    except pl.exceptions.PolarsError as error:
        msg = f"The columns of the tallies do not have the same kind of values: {error}"
        raise ArgumentError(msg) from error
    merges = merged(name for name in every.columns if name not in by)
    merging = [merge(pl.col(name)) for name, merge in merges.items()]
    cells = centred(every, by).group_by(by).agg(merging) if by else centred(every).select(merging)
    if first.weights is not None:
        _check_total(cells, first.weights)
    return replace(first, cells=cells, rows=rows)


def count(
    source: Source,
    keys: tuple[Key, ...],
    *,
    truth: Column | None,
    estimate: Column | None,
    scores: Scores | None = None,
    cut: Cut | None = None,
    weights: Column | None = None,
    needs: Needs = Needs(),  # noqa: B008 - frozen
) -> Tally:
    """Count the rows of a frame in one pass; with a cut the labels are made from the score."""
    wanted = {f"k{index}": ("by" if key.role == "by" else "group_by", key.column) for index, key in enumerate(keys)}
    numbers = {TRUTH: ACTUAL, ESTIMATE: PREDICTED} if needs.numbers else {TRUTH: TRUTH, ESTIMATE: ESTIMATE}
    named = {numbers[TRUTH]: truth, numbers[ESTIMATE]: estimate, WEIGHT: weights}
    roles = {ACTUAL: TRUTH, PREDICTED: ESTIMATE, WEIGHT: "case_weights"}
    wanted |= {name: (roles.get(name, name), column) for name, column in named.items() if column is not None}
    reads_scores = scores is not None and (needs.scores or cut is not None)
    if scores is not None and reads_scores:
        wanted |= {f"s{place}": ("probs", column) for place, column in enumerate(scores.columns)}
    groups = {f"t{index}": ("threshold", column) for index, column in enumerate(cut.by if cut else ())}
    pools = [term.neighborhood for term in needs.compared if term.neighborhood]
    features = dict.fromkeys(column for pool in pools for column in pool.features)
    wanted |= {f"f{index}": ("features", column) for index, column in enumerate(features)}
    # small frames do not repay the start of the streaming engine
    engine: EngineType = "in-memory" if source.rows is not None and source.rows < _FEW_ROWS else "streaming"
    frame = source.select(wanted | groups)
    schema = frame.collect_schema()
    for name, (role, column) in wanted.items():
        if name in {ACTUAL, PREDICTED} or role == "probs":
            _check_numbers(schema[name], role, column.name, decided=cut is not None and not needs.scores)
    frame = frame.with_columns(
        pl.col(name).cast(pl.Float64) for name in wanted if name in {ACTUAL, PREDICTED} or wanted[name][0] == "probs"
    )
    if weights is not None:
        frame = _weighable(frame, weights)
    if cut is not None:
        outer = [f"k{index}" for index, key in enumerate(keys) if key.role == "outer"]
        with blaming_expressions(wanted):
            frame = cut.decide(frame, outer, list(groups), [column.name for column in cut.by]).drop(list(groups))
    if not needs.numbers:
        _refuse_continuous(frame, {TRUTH: truth, ESTIMATE: estimate}, engine)
    rows = None
    if needs.rows or needs.compared:
        # read once, counted from memory
        with blaming_expressions(wanted):
            rows = frame.collect(engine=engine)
        rows = _compared(rows, needs, list(features), keys, source.sides)
        frame = rows.lazy()
        rows = rows if needs.rows else None
    cells = _cells(frame, wanted, needs, scores if reads_scores and needs.scores else None, cut, engine)
    if weights is not None:
        _check_weights(cells, weights)
        cells = cells.drop("least", "known")
    cells = cells.with_columns(pl.lit(None).alias(name) for name in LABELS if name not in cells.columns)
    order = [*(f"k{index}" for index in range(len(keys))), *LABELS]
    order += [SCORE] if SCORE in cells.columns else []
    cells = cells.select(*order, pl.exclude(order))
    _check_finite(cells, {name: column for name, (_, column) in wanted.items()}, wanted)
    return Tally(cells, keys, truth, estimate, cut, weights, scores, needs, rows, source.sides)


def _cells(
    frame: pl.LazyFrame,
    wanted: dict[str, tuple[str, Column]],
    needs: Needs,
    scores: Scores | None,
    cut: Cut | None,
    engine: EngineType,
) -> pl.DataFrame:
    """One row for each combination of keys and labels, with everything that is summed."""
    columns = frame.collect_schema().names()
    sums = [pl.len().cast(pl.Int64).alias("n")]
    if WEIGHT in columns:
        sums += [pl.col(WEIGHT).sum().alias("w"), pl.col(WEIGHT).cast(pl.Float64).pow(2).sum().alias("w2")]
        sums += [pl.col(WEIGHT).min().alias("least"), pl.col(WEIGHT).count().alias("known")]
    count = 0
    if scores is not None:
        # what is there is a key, as missing labels are
        count = len(scores.columns)
        there = pl.all_horizontal(pl.col(f"s{place}").is_not_null() for place in range(count))
        frame = frame.with_columns(pl.when(there).then(statement=True).alias(SCORE))
    numbers = {name: number for name, number in ((TRUTH, ACTUAL), (ESTIMATE, PREDICTED)) if number in columns}
    if needs.numbers:
        missing = [name for name in (ACTUAL, PREDICTED) if name not in columns]
        frame = frame.with_columns(
            *(pl.lit(None, pl.Float64).alias(name) for name in missing),
            *(
                pl.when(pl.col(number).is_not_null()).then(statement=True).alias(name)
                for name, number in numbers.items()
            ),
        )
    weighted = WEIGHT in columns
    if needs.anything:
        sums += summed(needs, count, weighted=weighted)
        frame = frame.with_columns(pl.col(WEIGHT).cast(pl.Float64).alias(MEASURE)) if weighted else frame
    values = {WEIGHT, MEASURE, ACTUAL, PREDICTED, *(f"s{place}" for place in range(len(columns)))}
    values |= {term.column for term in needs.compared}
    by = [name for name in frame.collect_schema().names() if name not in values]
    with blaming_expressions(wanted):
        if not needs.moments:
            return _grouped(frame, by, sums, engine, cut)
        sample = frame.select(ACTUAL, PREDICTED).head(_SAMPLE).collect().median()
        centres = [pl.lit(each.fill_null(0.0).item()) for each in sample]
        named = [centre.alias(name) for name, centre in zip(("truth_centre", "estimate_centre"), centres, strict=True)]
        cells = _grouped(frame, by, [*sums, *moments(*centres, weighted=weighted)], engine, cut).with_columns(named)
        if not digits_lost(cells):
            return cells
        # the groups lie far apart: each is summed about its own means
        placed = own_centres(cells, by)
        frame = (
            frame.join(placed.lazy(), on=by, how="left", nulls_equal=True)
            if by
            else frame.with_columns(pl.lit(each.item()).alias(each.name) for each in placed)
        )
        again = moments(pl.col("truth_centre"), pl.col("estimate_centre"), weighted=weighted)
        centred_sums = [*sums, *again, pl.col("truth_centre", "estimate_centre").first()]
        return _grouped(frame, by, centred_sums, engine, cut)


def _compared(
    rows: pl.DataFrame, needs: Needs, features: list[Column], keys: tuple[Key, ...], sides: Privileged | None
) -> pl.DataFrame:
    """The rows with the quantities for which each is compared with others of its outer group."""
    if not needs.compared:
        return rows
    names = {f"f{index}": column.name for index, column in enumerate(features)}
    check_features(rows, names, "distances need")
    placed, together = rows, [f"k{index}" for index, key in enumerate(keys) if key.role == "outer"]
    if sides is not None:
        own = [f"k{index}" for index, key in enumerate(keys) if key.role == "side"]
        placed, together = rows.with_columns(sides.side(rows[own]).alias(SIDE)), [*together, SIDE]
    for term in needs.compared:
        pool = term.neighborhood
        if pool is not None:
            near = [f"f{features.index(column)}" for column in pool.features]
            found = other_labels(placed, near, ESTIMATE, together, pool.n_neighbors)
            rows = rows.with_columns(found.alias(term.column))
    return rows.drop(names)


def _check_numbers(dtype: pl.DataType, role: str, name: str, *, decided: bool) -> None:
    if dtype.is_numeric() or (dtype == pl.Null):
        return
    needed = {"probs": "a threshold needs numbers" if decided else "scores are numbers"}
    msg = f"`{role}`: the column {name!r} is {dtype}; {needed.get(role, 'regression metrics read numbers')}."
    raise ColumnError(msg)


def _check_finite(cells: pl.DataFrame, columns: dict[str, Column], wanted: dict[str, tuple[str, Column]]) -> None:
    for name, column in columns.items():
        ends = [f"{end} {name}" for end in ("least", "most")]
        if ends[0] in cells.columns and cells.select(pl.col(ends).is_infinite().any()).row(0) != (False, False):
            msg = f"`{wanted[name][0]}`: the column {column.name!r} holds infinite values; metrics need finite numbers."
            raise ColumnError(msg)


def _grouped(
    frame: pl.LazyFrame, by: list[str], sums: list[pl.Expr], engine: EngineType, cut: Cut | None
) -> pl.DataFrame:
    """Group and sum; keys whose dtype lists all values travel as one small integer, which groups faster."""
    if not by:
        return frame.select(sums).collect(engine=engine)
    schema = frame.collect_schema()
    known = {ESTIMATE: cut.codes if cut else None}
    levels = [
        each for name in by if (each := _levels(schema[name]) if known.get(name) is None else known[name]) is not None
    ]
    size = math.prod(map(len, levels))
    # few rows do not repay the packing
    if engine == "in-memory" or len(levels) < len(by) or size > _LARGEST_CODE:
        return frame.group_by(by).agg(sums).collect(engine=engine)
    width = pl.UInt8 if size <= 2**8 else pl.UInt16
    code, stride, strides = pl.lit(0, width), 1, list[int]()
    for name, each in zip(by, levels, strict=True):
        physical = pl.col(name).to_physical().cast(width).fill_null(len(each) - 1)
        code += physical * pl.lit(stride, width)
        strides.append(stride)
        stride *= len(each)
    values = [name for name in schema if name not in by]
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
