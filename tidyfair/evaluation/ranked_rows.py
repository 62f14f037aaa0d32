"""The rows of groups, for metrics that must see them: in the order of their scores, or as they stand.

Rows are parted by unit once, and worked through some ten thousand at a time, so that they stay in the cache.
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from tidyfair.tallies.moments import ACTUAL, PREDICTED, REST
from tidyfair.tallies.source import SQUARED, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from tidyfair.specs.formulas import Formula

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

Whose: TypeAlias = Literal["own", "overall", "rest"]
"""Whose rows count for a unit: its own, those of its outer group, or those of everybody else in it."""

_CHUNK = 2**16
_UNIT = "unit"
_COUNTS = {"score", "hits", "false_alarms"}
_SQUARES = {"hit_squares", "false_alarm_squares"}
_PACKABLE = 2.0
"""Doubles from zero to below this leave the highest bit free, so that the truth fits beside the score."""


@dataclass(frozen=True)
class Level:
    """A label that is read against the rest, or against one other."""

    place: int
    score: str
    """The name of its score."""
    other: int | None = None
    both_sides: bool = False
    """Whether it and the rest are read together, for what is over all labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows that count for a table of statistics, and the unit of each."""

    frame: pl.DataFrame
    """`truth` and scores `s0` …, or `actual` and `predicted`; and weights."""
    labels: tuple[Any, ...]
    """The labels, in order; none where truth is a number."""
    unit: Array
    """The place of the unit among those of its `by`."""
    outer_of_unit: Array
    apart: Array
    """Whether a unit is not compared with others."""

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
        return self.outer_of_unit[self.unit]

    @cached_property
    def place(self) -> Array:
        """The place of each row's label."""
        import numpy as np

        places = np.zeros(len(self.frame), dtype=np.int64)
        for level in range(1, len(self.labels)):
            places[self.event(level)] = level
        return places

    @cached_property
    def numbers(self) -> tuple[Array, Array]:
        """The true and the predicted numbers."""
        return self.frame[ACTUAL].to_numpy(), self.frame[PREDICTED].to_numpy()

    def event(self, level: int) -> Array:
        """Whether each row has a label."""
        truth = self.frame["truth"]
        if truth.is_empty():
            return truth.is_null().to_numpy()  # its kind need not be that of the labels
        try:
            return (truth == self.labels[level]).to_numpy()
        except OverflowError:
            return truth.is_null().to_numpy()  # a number that no row holds

    def score(self, name: str) -> Array:
        """A score by its name, `~` is its complement; or the number of its bin."""
        binned = self.frame.schema.get(f"s{name}") == pl.UInt16
        if binned:
            return self.frame[f"s{name}"].to_numpy()
        values = self.frame[f"s{name.removeprefix(REST)}"].cast(pl.Float64).to_numpy()
        return 1 - values if name.startswith(REST) else values

    def segments(self, whose: Whose) -> Iterator[Segment]:
        """Runs of whole groups: those of the units, of their outer groups, or of everybody else in these."""
        import numpy as np

        if whose == "own":
            yield from _runs(self.unit, len(self.outer_of_unit))
            return
        compared = ~self.apart[self.unit]
        if whose == "overall":
            of_outer = np.where(compared, self.outer, -1)
            yield from _runs(of_outer, int(self.outer_of_unit.max(initial=-1)) + 1)
            return
        for unit, outer in enumerate(self.outer_of_unit):
            rows = np.flatnonzero(compared & (self.outer == outer) & (self.unit != unit))
            yield Segment(np.array([unit]), rows, np.array([0, len(rows)]))


@dataclass(frozen=True, eq=False, repr=False)
class Segment:
    """Some units, and the places of their rows one unit after the other."""

    units: Array
    rows: Array
    ends: Array
    """Where each unit's rows begin, and the last one's end."""

    def unit_of_row(self) -> Array:
        """The unit of each row, in order."""
        import numpy as np

        return np.repeat(self.units, np.diff(self.ends))


def _runs(codes: Array, count: int) -> Iterator[Segment]:
    """The rows of each code, together; those below 0 belong to nobody."""
    import numpy as np

    left_out = bool(len(codes)) and codes.min() < 0
    sizes: Array = np.bincount(codes[codes >= 0] if left_out else codes, minlength=count)
    # sorting small integers takes one pass
    dtype: Any = np.int8 if count < np.iinfo(np.int8).max else np.int16 if count < np.iinfo(np.int16).max else np.int64
    sorted_already = bool((codes[1:] >= codes[:-1]).all())
    order: Array | None = None if sorted_already else np.argsort(codes.astype(dtype), kind="stable")
    first, before = 0, len(codes) - int(sizes.sum())
    ends: Array = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    while first < count:
        last = int(np.searchsorted(ends, int(ends[first]) + _CHUNK, side="right")) - 1
        last = min(max(last, first + 1), count)
        inside: Array = ends[first : last + 1]
        start, stop = before + int(inside[0]), before + int(inside[-1])
        taken: Array = np.arange(start, stop) if order is None else order[start:stop]
        yield Segment(np.arange(first, last), taken, inside - inside[0])
        first = last


def ordered_values(
    rows: Rows, formulas: Sequence[Formula], level: Level, whose: Whose
) -> Iterator[tuple[str, Array, Array]]:
    """The values of formulas over rows: the column of the formula, places of units, and their values (NaN for none)."""
    numbers = formulas[0].kind == "numeric"
    reader = _Numbers(rows) if numbers else _Scores.of(rows, formulas, level)
    wanted = [formula.over_rows.alias(formula.column) for formula in formulas]

    def worked_out(segment: Segment) -> pl.DataFrame | None:
        return _aggregated(reader.read(segment), wanted) if len(segment.rows) else None

    def tell(values: pl.DataFrame | None) -> Iterator[tuple[str, Array, Array]]:
        if values is None:
            return
        for name in values.columns[1:]:
            yield name, values[_UNIT].to_numpy(), values[name].fill_null(math.nan).to_numpy()

    if whose == "rest" or len(rows.unit) <= _CHUNK:
        # those of the rest would all be in memory at once
        for segment in rows.segments(whose):
            yield from tell(worked_out(segment))
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only where it is needed

    # numpy and polars let go of the interpreter, so that segments go side by side
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for values in threads.map(worked_out, rows.segments(whose)):
            yield from tell(values)


def sorted_scores(rows: Rows, level: Level) -> Iterator[pl.DataFrame]:
    """The distinct scores of each unit, falling, with their rows and the weights with and without the event."""
    reader = _Scores.of(rows, [], level)
    for segment in rows.segments("own"):
        found = reader.read(segment)
        if not found.is_empty():
            yield found.select(pl.col(_UNIT).cast(pl.Int64), "score", "hits", "false_alarms", "rows")


def _aggregated(frame: pl.DataFrame, wanted: list[pl.Expr]) -> pl.DataFrame | None:
    if frame.is_empty():
        return None
    if frame[_UNIT][0] == frame[_UNIT][-1]:
        # lazily, because what formulas share is worked out once
        return frame.lazy().select(pl.col(_UNIT).first(), *wanted).collect()
    return frame.group_by(_UNIT, maintain_order=True).agg(wanted)


@dataclass(frozen=True, eq=False, repr=False)
class _Numbers:
    """Numbers of groups, row by row."""

    rows: Rows

    def read(self, segment: Segment) -> pl.DataFrame:
        taken = self.rows.frame[segment.rows]
        weighted = self.rows.weight is not None
        weight = taken[WEIGHT].cast(pl.Float64) if weighted else pl.Series([1.0]).new_from_index(0, len(taken))
        return pl.DataFrame(
            {
                _UNIT: segment.unit_of_row(), "truth": taken[ACTUAL], "estimate": taken[PREDICTED], "weight": weight,
                "weighted": pl.Series([weighted]).new_from_index(0, len(taken)),
            }
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class _Scores:
    """The distinct scores of groups, falling, and the weight of those with and without the event at each."""

    score: Array
    event: Array
    weight: Array | None
    squares: Array | None
    counts: Array | None
    """Whether a row counts; None for all."""
    needs: frozenset[str]
    """Which columns formulas read."""
    place: Array | None

    @classmethod
    def of(cls, rows: Rows, formulas: Sequence[Formula], level: Level) -> _Scores:
        values, event = rows.score(level.score), rows.event(level.place)
        needs = frozenset({"score", "hits", "false_alarms", "rows"})
        if formulas:
            needs = frozenset[str]().union(*(formula.statistics for formula in formulas))
        counts = None if level.other is None else event | rows.event(level.other)
        if rows.weight is not None and (rows.weight == 0).any():
            has_weight = rows.weight > 0
            counts = has_weight if counts is None else counts & has_weight
        place = _places(values, rows) if "place" in needs else None
        squares = None if needs.isdisjoint(_SQUARES) else rows.squares
        return cls(values, event, rows.weight, squares, counts, needs, place)

    def read(self, segment: Segment) -> pl.DataFrame:
        """The distinct scores of each unit, and the columns that formulas read beside them."""
        import numpy as np

        rows, ends = self._counted(segment)
        if not len(rows):
            return pl.DataFrame(schema={_UNIT: pl.Int64})
        filled = np.diff(ends) > 0
        starts: Array = ends[:-1][filled]
        bounds: Array = np.append(starts, len(rows))
        score, event, in_order = self._sorted(rows, bounds)
        new = np.empty(len(score), dtype=bool)
        np.not_equal(score[1:], score[:-1], out=new[1:])
        new[starts] = True
        if self.weight is None and self.needs <= _COUNTS and new.all():
            length = np.diff(bounds)
            hits = event.astype(np.float64)
            columns = {"score": score, "hits": hits, "false_alarms": 1 - hits}
        else:
            length = np.add.reduceat(new, starts, dtype=np.int64)
            first = np.flatnonzero(new)
            columns = {"score": score[first], **self._summed(first, event, in_order)}
        read = {name: values for name, values in columns.items() if name in self.needs}
        return pl.DataFrame({_UNIT: np.repeat(segment.units[filled], length), **read})

    def _counted(self, segment: Segment) -> tuple[Array, Array]:
        """The rows of a segment that count, and where those of each unit begin and end."""
        import numpy as np

        if self.counts is None:
            return segment.rows, segment.ends
        kept = self.counts[segment.rows]
        return segment.rows[kept], np.concatenate([[0], np.cumsum(kept)])[segment.ends]

    def _sorted(self, rows: Array, bounds: Array) -> tuple[Array, Array, Array | None]:
        """The scores of rows, falling in each unit, their events, and the rows in this order, None where not needed."""
        score = self.score[rows]
        if self.weight is None and self.place is None and score.min() >= 0 and score.max() < _PACKABLE:
            return *_sorted_as_integers(score, self.event[rows], bounds), None
        order = _falling(score, bounds)
        in_order = rows[order]
        return score[order], self.event[in_order], in_order

    def _summed(self, first: Array, event: Array, in_order: Array | None) -> dict[str, Array]:
        """The columns beside the distinct scores, from where each of these begins among the sorted rows."""
        import numpy as np

        columns: dict[str, Array] = {}
        columns["hits"], columns["false_alarms"] = _at_each(first, event, _taken(self.weight, in_order))
        if "rows" in self.needs:
            columns["rows"] = np.diff(first, append=len(event))
        if not self.needs.isdisjoint(_SQUARES):
            squares = _taken(self.squares, in_order)
            columns["hit_squares"], columns["false_alarm_squares"] = _at_each(first, event, squares)
        if self.place is not None and in_order is not None:
            columns["place"] = self.place[in_order[first]]
        return columns


def _sorted_as_integers(score: Array, event: Array, bounds: Array) -> tuple[Array, Array]:
    """The scores, falling in each unit, and their events: score and event as one integer, sorted at once."""
    import numpy as np

    # adding zero makes a negative zero positive
    key = ~(((score + 0.0).view(np.uint64) << np.uint64(1)) | event)
    for start, end in itertools.pairwise(bounds):
        key[start:end].sort()
    np.invert(key, out=key)
    event = key & np.uint64(1)
    key >>= np.uint64(1)
    return key.view(np.float64), event


def _falling(score: Array, bounds: Array) -> Array:
    """The order in which the scores of each unit fall."""
    import numpy as np

    if score.dtype == np.uint16:
        # sorting small integers takes one pass
        orders = [start + np.argsort(~score[start:end], kind="stable") for start, end in itertools.pairwise(bounds)]
        return np.concatenate(orders)
    sizes = np.diff(bounds)
    if len(sizes) == 1:
        return np.argsort(-score, kind="stable")
    unit = np.repeat(np.arange(len(sizes)), sizes)
    return np.lexsort((-score, unit))


def _taken(values: Array | None, rows: Array | None) -> Array | None:
    """The values of rows, if both are known."""
    return None if values is None or rows is None else values[rows]


def _at_each(first: Array, event: Array, weight: Array | None) -> tuple[Array, Array]:
    """The weight of those with and without the event in each run of equal scores."""
    import numpy as np

    if weight is not None:
        none = np.zeros_like(weight)
        with_event, without = (np.add.reduceat(np.where(side, weight, none), first) for side in (event, ~event))
        return with_event, without
    total = np.diff(first, append=len(event))
    hits = np.add.reduceat(event, first, dtype=np.int64)
    return hits.astype(np.float64), (total - hits).astype(np.float64)


def _places(values: Array, rows: Rows) -> Array:
    """The share of the weight of its outer group that is at or below each row's score."""
    import numpy as np

    place = np.zeros(len(values))
    for segment in _runs(rows.outer, int(rows.outer.max(initial=-1)) + 1):
        for start, end in zip(segment.ends[:-1], segment.ends[1:], strict=True):
            mine = segment.rows[start:end]
            order = mine[np.argsort(values[mine], kind="stable")]
            weight = np.ones(len(order)) if rows.weight is None else rows.weight[order]
            upto = np.cumsum(weight)
            last = np.searchsorted(values[order], values[order], side="right") - 1
            place[order] = upto[last] / upto[-1] if len(upto) and upto[-1] else 0.0
    return place
