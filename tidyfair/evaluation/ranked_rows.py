"""The rows of groups, for metrics that read them one by one: sorted by score, or in their original order.

Rows are split by group cell once, and read about ten thousand at a time, so that they stay in the cache.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import failures_of
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.specs import AT_POINT, EVENT, EVENT_WEIGHT, TIME_AT_POINT, WEIGHT_AT_POINT, columns_of
from tidyfair.specs.formulas import RowExpression
from tidyfair.tallies import ACTUAL, MOST_PARTED, PREDICTED, REST, SQUARED, WEIGHT, Parted

Array: TypeAlias = np.ndarray[Any, Any]

Scope: TypeAlias = Literal["own", "overall", "rest"]
"""The rows that count for a group cell: its own, those of its outer group, or those of all other groups in it."""

_CHUNK = 2**16
_SPARSE = 4
"""With more bins per row, rows are sorted instead of counted by bin."""
_GROUP_CELL = "group_cell"
_SURVIVAL_COLUMNS = {
    "time": ACTUAL, "event": EVENT, "event_weight": EVENT_WEIGHT, "estimate": PREDICTED, "survival": AT_POINT,
    "censoring_weight": WEIGHT_AT_POINT, "eval_time": TIME_AT_POINT,
}  # fmt: skip
"""The columns of rows of survival times, by the names of parameters."""
_COUNTS = {"score", "hits", "false_alarms"}
_SQUARES = ("hit_squares", "false_alarm_squares")
_PACKABLE = 2.0
"""Doubles from zero to below this do not use the highest bit, so that score and truth fit one integer."""


@dataclass(frozen=True)
class Level:
    """A label that is read against the rest, or against one other."""

    label: int
    """The index of the label."""
    score: str
    """The name of its score."""
    other: int | None = None
    """The index of the label that it is read against, instead of the rest."""
    both_sides: bool = False
    """True if the label and its complement are read together, for formulas over all labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows that count for a table of statistics, and the group cell of each."""

    frame: pl.DataFrame
    """`truth` and scores `s0` …, or `actual` and `predicted`; and weights."""
    labels: tuple[Any, ...]
    """The labels, in order; none where truth is a number."""
    group_cell: Array
    """The index of the group cell of each row among those of its `by`."""
    outer_of_group_cell: Array
    excluded: Array
    """The group cells that are left out of comparisons, as a mask."""
    clusters: pl.DataFrame | None = None
    """The keys of the cluster of each row, where rows have clusters."""
    sizes: Array | None = None
    """The number of rows of each group cell, where rows were counted in bins of their scores."""
    bins: int | None = None
    """The number of these bins, of equal width between 0 and 1."""
    others: Rows | None = None
    """The rows that are not of each group cell, if groups overlap."""

    @cached_property
    def cluster(self) -> Array | None:
        """The number of the cluster of each row, where rows have clusters."""
        return None if self.clusters is None else KeyCodes(self.clusters).index(self.clusters.columns).of_cell

    @cached_property
    def weight(self) -> Array | None:
        """The weights of all rows, if they have any."""
        return self.frame[WEIGHT].cast(pl.Float64).to_numpy() if WEIGHT in self.frame.columns else None

    @cached_property
    def squares(self) -> Array | None:
        """The squares of the weights of all rows, if they have any."""
        if SQUARED in self.frame.columns:
            return self.frame[SQUARED].cast(pl.Float64).to_numpy()
        return None if self.weight is None else self.weight**2

    @cached_property
    def outer(self) -> Array:
        """The outer group of each row."""
        return self.outer_of_group_cell[self.group_cell]

    @cached_property
    def label_index(self) -> Array:
        """The index of the label of each row."""
        indices = np.zeros(len(self.frame), dtype=np.int64)
        for level in range(1, len(self.labels)):
            indices[self.event(level)] = level
        return indices

    @cached_property
    def numbers(self) -> tuple[Array, Array]:
        """The true and the predicted numbers."""
        return self.frame[ACTUAL].to_numpy(), self.frame[PREDICTED].to_numpy()

    def event(self, level: int) -> Array:
        """The rows with a label, as a mask."""
        truth = self.frame["truth"]
        if truth.is_empty():
            return truth.is_null().to_numpy()  # its kind need not be that of the labels
        try:
            return (truth == self.labels[level]).to_numpy()
        except OverflowError:
            return truth.is_null().to_numpy()  # a number that no row holds

    def score(self, name: str) -> Array:
        """A score by its name, which begins with `~` for its complement; or its bins, if scores were binned."""
        binned = self.frame.schema.get(f"s{name}") == pl.UInt16
        if binned:
            return self.frame[f"s{name}"].to_numpy()
        values = self.frame[f"s{name.removeprefix(REST)}"].cast(pl.Float64).to_numpy()
        return 1 - values if name.startswith(REST) else values

    def survival_columns(self, names: Sequence[str], chosen: Array) -> dict[str, Array]:
        """Columns of survival times, by the names of parameters, for some rows."""
        return {name: self.frame[_SURVIVAL_COLUMNS[name]].to_numpy()[chosen] for name in names}

    def codes(self, scope: Literal["own", "overall"]) -> tuple[Array, int]:
        """The group cell of each row, or its outer group, below 0 if it counts for none; and their number."""
        if scope == "own":
            return self.group_cell, len(self.outer_of_group_cell)
        compared = ~self.excluded[self.group_cell]
        return np.where(compared, self.outer, -1), int(self.outer_of_group_cell.max(initial=-1)) + 1

    def segments(self, scope: Scope) -> Iterator[Segment]:
        """Runs of whole groups: the group cells, their outer groups, or all other groups in these."""
        if scope != "rest":
            yield from _runs(*self.codes(scope))
            return
        compared = ~self.excluded[self.group_cell]
        for group_cell, outer in enumerate(self.outer_of_group_cell):
            rows = np.flatnonzero(compared & (self.outer == outer) & (self.group_cell != group_cell))
            yield Segment(np.array([group_cell]), rows, np.array([0, len(rows)]))


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Some group cells and their rows, one group cell after the other."""

    group_cells: Array
    rows: Array | slice
    """Indices of rows; a slice where they are consecutive."""
    ends: Array
    """The start of the rows of each group cell, and the end of those of the last one."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.ends[-1])

    @property
    def indices(self) -> Array:
        """The indices of its rows."""
        if not isinstance(self.rows, slice):
            return self.rows
        first = int(self.rows.start)
        return np.arange(first, first + self.size)


def _runs(codes: Array, count: int) -> Iterator[Segment]:
    """Segments of the rows of each code; those below 0 belong to no group."""
    if (codes[1:] >= codes[:-1]).all():
        yield from _segments(np.searchsorted(codes, np.arange(count + 1)), None)
        return
    codes_of_groups = codes[codes >= 0] if codes.min() < 0 else codes
    sizes = np.bincount(codes_of_groups, minlength=count)
    # sorting small integers takes one pass
    order = np.argsort(codes.astype(np.min_scalar_type(-count - 1)), kind="stable")
    # rows of no group come first
    ends = np.concatenate([[0], np.cumsum(sizes)]) + len(codes) - sizes.sum()
    yield from _segments(ends, order)


def _segments(ends: Array, order: Array | None) -> Iterator[Segment]:
    """Runs of whole group cells of some ten thousand rows, from the ends of their rows `(group cells + 1,)`."""
    first, count = 0, len(ends) - 1
    while first < count:
        last = int(np.searchsorted(ends, int(ends[first]) + _CHUNK, side="right")) - 1
        last = min(max(last, first + 1), count)
        inside: Array = ends[first : last + 1]
        in_order = slice(int(inside[0]), int(inside[-1]))
        rows = in_order if order is None else order[in_order]
        yield Segment(np.arange(first, last), rows, inside - inside[0])
        first = last


def ordered_values(
    rows: Rows, formulas: Sequence[RowExpression], level: Level, scope: Scope
) -> Iterator[tuple[str, Array, Array]]:
    """The values of formulas over rows: their columns, the indices of group cells, and values (NaN for none)."""
    scores = _Scores(rows, formulas, level) if rows.labels else None
    read = partial(_numbers, rows) if scores is None else scores.read
    expressions = [formula.over_rows.alias(formula.column) for formula in formulas]
    names = ", ".join(formula.name for formula in formulas)

    def evaluate(segment: Segment) -> pl.DataFrame | None:
        if not segment.size:
            return None
        frame = read(segment)
        with failures_of(f"{names}: the formula", "It is computed by polars over columns of floats."):
            return _aggregate(frame, expressions)

    if scope == "rest" or len(rows.group_cell) <= _CHUNK:
        # in threads the rows of all segments of the rest would be in memory at once
        for segment in rows.segments(scope):
            yield from _columns_of(evaluate(segment))
        return
    segments = rows.segments(scope)
    codes, count = rows.codes(scope)
    if scores is not None and scores.packable and count <= MOST_PARTED:
        read, segments = _packed_by_cell(scores, codes, count)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only where it is needed

    # numpy and polars release the interpreter's lock, so that segments are read in parallel
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for values in threads.map(evaluate, segments):
            yield from _columns_of(values)


def _columns_of(values: pl.DataFrame | None) -> Iterator[tuple[str, Array, Array]]:
    """The columns of values with their names and group cells."""
    if values is None:
        return
    for name in values.columns[1:]:
        yield name, values[_GROUP_CELL].to_numpy(), values[name].cast(pl.Float64).to_numpy()


def sorted_scores(rows: Rows, level: Level) -> Iterator[pl.DataFrame]:
    """The distinct scores of each group cell, falling, with rows, weights by event, and sums of squared weights."""
    reader = _Scores(rows, [], level)
    for segment in rows.segments("own"):
        scores = reader.read(segment)
        if not scores.is_empty():
            squares = pl.sum_horizontal(_SQUARES).alias("squares")
            yield scores.select(pl.col(_GROUP_CELL).cast(pl.Int64), "score", "hits", "false_alarms", squares, "rows")


def _aggregate(frame: pl.DataFrame, expressions: list[pl.Expr]) -> pl.DataFrame | None:
    """The values of expressions for each group cell, without a grouping if there is only one; None without rows."""
    if frame.is_empty():
        return None
    if frame[_GROUP_CELL][0] == frame[_GROUP_CELL][-1]:
        return frame.select(pl.col(_GROUP_CELL).first(), *expressions)
    return frame.group_by(_GROUP_CELL, maintain_order=True).agg(expressions)


def _numbers(rows: Rows, segment: Segment) -> pl.DataFrame:
    """The numbers and weights of the rows of a segment, as formulas read them."""
    frame, weighted = rows.frame[segment.rows], rows.weight is not None
    size = int(np.diff(segment.ends).sum())
    ones = pl.Series([1.0]).new_from_index(0, size)
    # a formula may read one of the columns alone
    given = {name: column for name, column in (("truth", ACTUAL), ("estimate", PREDICTED)) if column in frame.columns}
    columns = {
        _GROUP_CELL: np.repeat(segment.group_cells, np.diff(segment.ends)),
        **{name: frame[column] for name, column in given.items()},
        "weight": frame[WEIGHT].cast(pl.Float64) if weighted else ones,
        "weighted": pl.Series([weighted]).new_from_index(0, size),
    }
    return pl.DataFrame(columns)


class _Scores:
    """The distinct scores of groups, falling, and their weights with and without the event."""

    def __init__(self, rows: Rows, formulas: Sequence[RowExpression], level: Level) -> None:
        """Read the scores of a level, and the columns that formulas read; without formulas, those of a curve."""
        self.score, self.event = rows.score(level.score), rows.event(level.label)
        needs = frozenset({*_COUNTS, *_SQUARES, "rows"})
        if formulas:
            # options decide which of its parameters a formula reads
            needs = frozenset[str]().union(*(columns_of(formula.over_rows) for formula in formulas))
        self.needs = needs
        self.counts = None if level.other is None else self.event | rows.event(level.other)
        """The rows that count, as a mask; None for all."""
        # bins have a weight for each row, so that it becomes a float only where it is read
        self.weight = rows.frame[WEIGHT].to_numpy() if WEIGHT in rows.frame.columns else None
        if self.weight is not None and (self.weight == 0).any():
            # weights of replicates may be negative
            has_weight = self.weight != 0
            self.counts = has_weight if self.counts is None else self.counts & has_weight
        reads_shares = "percentile" in self.needs
        self.weight_share = weight_shares(self.score, rows.weight, rows.outer) if reads_shares else None
        """The share of the weight that is at or below a score, which formulas call `percentile`."""
        self.squares = None if self.needs.isdisjoint(_SQUARES) else rows.squares

    @cached_property
    def packable(self) -> bool:
        """True if only the score and the event of a row are read, and fit one integer."""
        if self.weight is not None or self.weight_share is not None or not len(self.score):
            return False
        return self.score.min() >= 0 and self.score.max() < _PACKABLE

    @cached_property
    def bins(self) -> int | None:
        """The number of bins, if scores are bins and only their weights are read."""
        binned = self.score.dtype == "uint16" and len(self.score) > 0
        if not binned or self.weight is None or not self.needs <= {*_COUNTS, *_SQUARES}:
            return None
        return int(self.score.max()) + 1

    def read(self, segment: Segment) -> pl.DataFrame:
        """The distinct scores of each group cell, and the other columns that formulas read."""
        rows, ends = self._counted(segment)
        if not ends[-1]:
            return pl.DataFrame(schema={_GROUP_CELL: pl.Int64})
        filled = np.diff(ends) > 0
        bounds: Array = np.append(ends[:-1][filled], ends[-1])
        group_cells = segment.group_cells[filled]
        if self.packable:
            return _distinct(_packed(self.score[rows], self.event[rows]), bounds, group_cells, self.needs)
        if self.bins is not None and self.bins * len(group_cells) < _SPARSE * ends[-1]:
            return self._binned(rows, np.diff(bounds), group_cells, self.bins)
        order = _falling(self.score[rows], bounds)
        rows = segment.indices if isinstance(rows, slice) else rows
        return self._sorted(rows[order], bounds, group_cells)

    def _counted(self, segment: Segment) -> tuple[Array | slice, Array]:
        """The rows of a segment that count, and the bounds of those of each group cell."""
        if self.counts is None:
            return segment.rows, segment.ends
        kept = self.counts[segment.rows]
        return segment.indices[kept], np.concatenate([[0], np.cumsum(kept)])[segment.ends]

    def _sorted(self, rows: Array, bounds: Array, group_cells: Array) -> pl.DataFrame:
        """The columns of rows in the falling order of scores in each group cell."""
        score, event = self.score[rows], self.event[rows]
        new = _first_of_equal(score, bounds)
        first = np.flatnonzero(new)
        columns = {"score": score[first], "rows": np.diff(first, append=len(event))}
        columns["hits"], columns["false_alarms"] = _weights_by_event(first, event, _as_floats(self.weight, rows))
        if not self.needs.isdisjoint(_SQUARES):
            squares = _as_floats(self.squares, rows)
            columns["hit_squares"], columns["false_alarm_squares"] = _weights_by_event(first, event, squares)
        if self.weight_share is not None:
            columns["percentile"] = self.weight_share[rows[first]]
        return _frame(group_cells, np.add.reduceat(new, bounds[:-1], dtype=np.int64), columns, self.needs)

    def _binned(self, rows: Array | slice, sizes: Array, group_cells: Array, bins: int) -> pl.DataFrame:
        """The columns of rows with bins as scores, which need no sorting: tables of group cells, events and bins."""
        # falling from the last bin of the group cell's table without the event, or of the one with it
        index = np.repeat(np.arange(len(group_cells)) * 2 * bins + bins - 1, sizes)
        index += self.event[rows] * bins
        index -= self.score[rows]

        def tables(values: Array | None) -> tuple[Array, Array]:
            sums = np.bincount(index, _as_floats(values, rows), 2 * len(group_cells) * bins)
            by_event = sums.reshape(len(group_cells), 2, bins)
            return by_event[:, 1].ravel(), by_event[:, 0].ravel()

        hits, false_alarms = tables(self.weight)
        occupied = hits + false_alarms != 0
        cell = np.flatnonzero(occupied)
        columns = {"hits": hits[cell], "false_alarms": false_alarms[cell]}
        if "score" in self.needs:
            columns["score"] = bins - 1 - cell % bins
        if self.squares is not None:
            hit_squares, false_alarm_squares = tables(self.squares)
            columns |= {"hit_squares": hit_squares[cell], "false_alarm_squares": false_alarm_squares[cell]}
        return _frame(group_cells, occupied.reshape(-1, bins).sum(axis=1), columns, self.needs)


def _packed_by_cell(
    scores: _Scores, codes: Array, count: int
) -> tuple[Callable[[Segment], pl.DataFrame], Iterator[Segment]]:
    """A reader of the scores of many rows, packed as integers and split by group cell, and runs that fit the cache.

    The code of a row is that of its group cell, below 0 for rows of none.
    """
    if scores.counts is not None:
        codes = np.where(scores.counts, codes, -1)
    parted = Parted.of(codes, count, lambda rows: _packed(scores.score[rows], scores.event[rows]))

    def read(segment: Segment) -> pl.DataFrame:
        filled = np.diff(segment.ends) > 0
        group_cells, bounds = segment.group_cells[filled], np.append(segment.ends[:-1][filled], segment.size)
        return _distinct(parted.together(group_cells.tolist()), bounds, group_cells, scores.needs)

    return read, _segments(parted.ends, None)


def _packed(score: Array, event: Array) -> Array:
    """Scores and events as integers that rise as scores fall."""
    # adding zero makes a negative zero positive
    packed = (score + 0.0).view(np.uint64)
    packed <<= np.uint64(1)
    packed |= event
    return np.invert(packed, out=packed)


def _distinct(packed: Array, bounds: Array, group_cells: Array, needs: frozenset[str]) -> pl.DataFrame:
    """The distinct scores of each group cell, falling, from packed scores, which are sorted in place."""
    for start, end in itertools.pairwise(bounds):
        packed[start:end].sort()
    hits = (packed & np.uint64(1) == 0).astype(np.float64)
    packed >>= np.uint64(1)
    new = _first_of_equal(packed, bounds)
    lengths = np.diff(bounds)
    columns = {"hits": hits, "false_alarms": 1 - hits}
    if "rows" in needs or not new.all():
        lengths = np.add.reduceat(new, bounds[:-1], dtype=np.int64)
        first = np.flatnonzero(new)
        columns = {name: np.add.reduceat(values, first) for name, values in columns.items()}
        columns["rows"] = np.diff(first, append=len(packed))
        packed = packed[first]
    # a row counts once, and once squared
    columns |= {"hit_squares": columns["hits"], "false_alarm_squares": columns["false_alarms"]}
    if "score" in needs:
        columns["score"] = (packed ^ np.uint64(2**63 - 1)).view(np.float64)
    return _frame(group_cells, lengths, columns, needs)


def _first_of_equal(score: Array, bounds: Array) -> Array:
    """A mask of the sorted scores that are the first of equal ones in their group cell."""
    new = np.empty(len(score), dtype=bool)
    np.not_equal(score[1:], score[:-1], out=new[1:])
    new[bounds[:-1]] = True
    return new


def _frame(group_cells: Array, lengths: Array, columns: Mapping[str, Array], needs: frozenset[str]) -> pl.DataFrame:
    """The columns that are needed, with the group cell of each row."""
    read = {name: values for name, values in columns.items() if name in needs}
    return pl.DataFrame({_GROUP_CELL: np.repeat(group_cells, lengths), **read})


def _falling(score: Array, bounds: Array) -> Array:
    """The order in which the scores of each group cell fall."""
    if score.dtype == np.uint16:
        # sorting small integers takes one pass
        orders = [start + np.argsort(~score[start:end], kind="stable") for start, end in itertools.pairwise(bounds)]
        return np.concatenate(orders)
    sizes = np.diff(bounds)
    if len(sizes) == 1:
        # equal scores are summed, in whatever order; a stable sort takes five times as long
        return np.argsort(-score)
    group_cell = np.repeat(np.arange(len(sizes)), sizes)
    return np.lexsort((-score, group_cell))


def _as_floats(values: Array | None, rows: Array | slice) -> Array | None:
    """The values of rows as floats, if there are any."""
    return None if values is None else values[rows].astype(float)


def _weights_by_event(first: Array, event: Array, weight: Array | None) -> tuple[Array, Array]:
    """The weight of rows with and without the event in each run of equal scores."""
    if weight is not None:
        hits = np.add.reduceat(np.where(event, weight, 0.0), first)
        return hits, np.add.reduceat(np.where(event, 0.0, weight), first)
    total = np.diff(first, append=len(event))
    hits = np.add.reduceat(event, first, dtype=np.int64)
    return hits.astype(np.float64), (total - hits).astype(np.float64)


def weight_shares(values: Array, weights: Array | None, group: Array) -> Array:
    """The share of the weight of its group, given by its number, that is at or below each row's score."""
    shares = np.zeros(len(values))
    for segment in _runs(group, int(group.max(initial=-1)) + 1):
        indices = segment.indices
        for start, end in itertools.pairwise(segment.ends):
            of_group = indices[start:end]
            order = of_group[np.argsort(values[of_group])]
            weight = np.ones(len(order)) if weights is None else weights[order]
            if not weight.sum():
                continue
            cumulative = np.cumsum(weight)
            rising = values[order]
            last = np.searchsorted(rising, rising, side="right") - 1
            shares[order] = cumulative[last] / cumulative[-1]
    return shares
