"""Metrics that must see the rows of a group: in the order of their scores, as they stand, or as arrays.

Rows are parted by unit once, and worked through a few hundred thousand at a time, so that they stay in the cache.
"""

from __future__ import annotations

import inspect
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.frames import WEIGHT
from tidyfair.sums import ACTUAL, PREDICTED, REST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.formulas import Formula

    Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
    Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

__all__ = ["Undefined"]

_CHUNK = 2**16
_UNIT = "unit"
_PACKABLE = 2.0
"""Doubles from zero to below this leave the highest bit free, so that the truth fits beside the score."""


class Undefined(Exception):  # noqa: N818 - it is an answer, not a mistake
    """Raised by a function of arrays that has no value for a group; its text is the reason, shown as the status."""


@dataclass(frozen=True)
class Sample:
    """The rows of a group as a function of arrays sees them."""

    truth: np.ndarray[Any, Any]
    """1 where a row has the event, else 0; for numbers the true number."""
    score: np.ndarray[Any, Any]
    """The score; for numbers the predicted one."""
    weight: Floats | None


@dataclass(frozen=True)
class Rows:
    """The rows that count for a table of statistics, and the unit of each."""

    frame: pl.DataFrame
    """`truth` and scores `s0` …, or `actual` and `predicted`; and weights."""
    labels: tuple[Any, ...]
    """The labels, in order; none where truth is a number."""
    unit: np.ndarray[Any, Any]
    """The place of the unit among those of its `by`."""
    outer_of_unit: np.ndarray[Any, Any]
    apart: np.ndarray[Any, Any]
    """Whether a unit is not compared with others."""

    @cached_property
    def weight(self) -> Floats | None:
        """The weights of all rows, if they have any."""
        return self.frame[WEIGHT].cast(pl.Float64).to_numpy() if WEIGHT in self.frame.columns else None

    @cached_property
    def outer(self) -> np.ndarray[Any, Any]:
        """The outer group of each row."""
        return self.outer_of_unit[self.unit]

    @cached_property
    def place(self) -> np.ndarray[Any, Any]:
        """The place of each row's label."""
        import numpy as np

        places = np.zeros(len(self.frame), dtype=np.int64)
        for level in range(1, len(self.labels)):
            places[self.event(level)] = level
        return places

    def event(self, level: int) -> np.ndarray[Any, Any]:
        """Whether each row has a label."""
        return (self.frame["truth"] == self.labels[level]).to_numpy()

    def score(self, name: str) -> Floats:
        """A score by its name; `~` is its complement."""
        values = self.frame[f"s{name.removeprefix(REST)}"].cast(pl.Float64).to_numpy()
        return 1 - values if name.startswith(REST) else values

    def segments(self, whose: Literal["own", "overall", "rest"]) -> Iterator[Segment]:
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


@dataclass(frozen=True)
class Segment:
    """Some units, and the places of their rows one unit after the other."""

    units: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    """Where each unit's rows begin, and the last one's end."""

    def unit_of_row(self) -> np.ndarray[Any, Any]:
        """The unit of each row, in order."""
        import numpy as np

        return np.repeat(self.units, np.diff(self.ends))


def _runs(codes: np.ndarray[Any, Any], count: int) -> Iterator[Segment]:
    """The rows of each code, together; those below 0 belong to nobody."""
    import numpy as np

    left_out = bool(len(codes)) and codes.min() < 0
    sizes = np.bincount(codes[codes >= 0] if left_out else codes, minlength=count)
    # sorting small integers takes one pass
    dtype = np.int8 if count < np.iinfo(np.int8).max else np.int16 if count < np.iinfo(np.int16).max else np.int64
    order = None if count == 1 and not left_out else np.argsort(codes.astype(dtype), kind="stable")
    first, before = 0, len(codes) - int(sizes.sum())
    ends = np.concatenate([[0], np.cumsum(sizes)])
    while first < count:
        last = int(np.searchsorted(ends, ends[first] + _CHUNK, side="right")) - 1
        last = min(max(last, first + 1), count)
        inside = ends[first : last + 1]
        start, stop = before + inside[0], before + inside[-1]
        taken = np.arange(start, stop) if order is None else order[start:stop]
        yield Segment(np.arange(first, last), taken, inside - inside[0])
        first = last


def row_values(
    rows: Rows,
    formulas: Sequence[Formula],
    levels: Sequence[tuple[int, str]],
    labels: Sequence[object],
    whose: Literal["own", "overall", "rest"],
    *,
    pairs: bool = False,
) -> pl.DataFrame:
    """The values of formulas for each unit and level, in level-major order; text where a function gave a reason.

    `levels` are the places of labels and the names of their scores; with `pairs` a level is read against each other
    level and the mean counts. Without a value a number is NaN.
    """
    import numpy as np

    count = len(rows.outer_of_unit)
    places = int(rows.outer_of_unit.max(initial=-1)) + 1 if whose == "overall" else count
    found: dict[str, np.ndarray[Any, Any]] = {}
    for formula in formulas:
        found[formula.column] = np.full((len(levels), places), np.nan)
        if formula.way == "arrays":
            found[formula.column + " reason"] = np.full((len(levels), places), None, dtype=object)
    for index, (level, score) in enumerate(levels):
        others = [other for other, _ in levels if other != level] if pairs else [None]
        each = [_level_values(rows, formulas, level, other, score, labels, whose, places) for other in others]
        for name, values in found.items():
            if name.endswith(" reason"):
                values[index] = each[0][name]
                continue
            stacked = np.stack([one[name] for one in each])
            known = ~np.isnan(stacked)
            with np.errstate(invalid="ignore"):
                values[index] = np.where(known, stacked, 0).sum(axis=0) / known.sum(axis=0)
    if whose == "overall":
        found = {name: values[:, rows.outer_of_unit] for name, values in found.items()}
    return pl.DataFrame(
        {
            name: pl.Series(
                values.ravel().tolist() if values.dtype == object else values.ravel(),
                dtype=pl.String if values.dtype == object else pl.Float64,
            )
            for name, values in found.items()
        }
    ).with_columns(pl.selectors.float().fill_nan(None))


def sorted_scores(rows: Rows, level: int, score: str) -> Iterator[pl.DataFrame]:
    """The distinct scores of each unit, falling, and the weights of those with and without the event at each."""
    reader = _Scores.of(rows, [], level, None, score)
    for segment in rows.segments("own"):
        found = reader.read(segment)
        if not found.is_empty():
            yield found.select(pl.col(_UNIT).cast(pl.Int64), "score", "hits", "false_alarms")


def _level_values(
    rows: Rows,
    formulas: Sequence[Formula],
    level: int,
    other: int | None,
    score: str,
    labels: Sequence[object],
    whose: Literal["own", "overall", "rest"],
    count: int,
) -> dict[str, np.ndarray[Any, Any]]:
    """The values of one level against the rest, or against another one."""
    import numpy as np

    if whose != "own" and (two := next((each for each in formulas if each.against), None)) is not None:
        msg = f"{two.function.__name__} compares a group with others already; aggregate it without `to=`."
        raise ArgumentError(msg)
    ordered = [formula for formula in formulas if formula.way == "rows"]
    by_array = [formula for formula in formulas if formula.way == "arrays" and formula.against is None]
    between = [formula for formula in formulas if formula.against is not None]
    found: dict[str, np.ndarray[Any, Any]] = {formula.column: np.full(count, np.nan) for formula in formulas}
    found |= {
        formula.column + " reason": np.full(count, None, dtype=object)
        for formula in formulas
        if formula.way == "arrays"
    }
    if ordered:
        reader: Any = (
            _Numbers(rows) if formulas[0].kind == "numeric" else _Scores.of(rows, ordered, level, other, score)
        )
        wanted = [formula.over_rows.alias(formula.column) for formula in ordered]

        def worked_out(segment: Segment) -> pl.DataFrame | None:
            return _aggregated(reader.read(segment), wanted) if len(segment.rows) else None

        # numpy and polars let go of the interpreter, so that segments go side by side
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            for values in threads.map(worked_out, rows.segments(whose)):
                for formula in ordered if values is not None else ():
                    found[formula.column][values[_UNIT].to_numpy()] = values[formula.column].fill_null(math.nan).to_numpy()
    if by_array:
        for segment in rows.segments(whose):
            for unit, start, end in zip(segment.units, segment.ends[:-1], segment.ends[1:], strict=True):
                taken = segment.rows[start:end]
                for formula in by_array:
                    values, reasons = found[formula.column], found[formula.column + " reason"]
                    values[unit], reasons[unit] = _asked(formula, rows, taken, level, score, labels)
    for formula in between:
        values, reasons = _compared(formula, rows, level, score)
        found[formula.column], found[formula.column + " reason"] = values, reasons
    return found


def _aggregated(frame: pl.DataFrame, wanted: list[pl.Expr]) -> pl.DataFrame | None:
    if frame.is_empty():
        return None
    if frame[_UNIT][0] == frame[_UNIT][-1]:
        return frame.select(pl.col(_UNIT).first(), *wanted)
    return frame.group_by(_UNIT, maintain_order=True).agg(wanted)


@dataclass(frozen=True)
class _Numbers:
    """Numbers of groups, row by row."""

    rows: Rows

    def read(self, segment: Segment) -> pl.DataFrame:
        taken = self.rows.frame[segment.rows]
        weight = (
            pl.Series([1.0]).new_from_index(0, len(taken))
            if self.rows.weight is None
            else taken[WEIGHT].cast(pl.Float64)
        )
        return pl.DataFrame(
            {
                _UNIT: segment.unit_of_row(), "truth": taken[ACTUAL], "estimate": taken[PREDICTED], "weight": weight,
                "weighted": pl.Series([self.rows.weight is not None]).new_from_index(0, len(taken)),
            }
        )  # fmt: skip


@dataclass(frozen=True)
class _Scores:
    """The distinct scores of groups, falling, and the weight of those with and without the event at each."""

    score: Floats
    event: np.ndarray[Any, Any]
    weight: Floats | None
    counts: np.ndarray[Any, Any] | None
    """Whether a row counts; None for all."""
    squares: bool
    place: Floats | None

    @classmethod
    def of(cls, rows: Rows, formulas: Sequence[Formula], level: int, other: int | None, score: str) -> _Scores:
        values, event = rows.score(score), rows.event(level)
        needs = frozenset[str]().union(*(formula.statistics for formula in formulas))
        squares = not needs.isdisjoint({"hit_squares", "false_alarm_squares"})
        counts = None if other is None else event | rows.event(other)
        if rows.weight is not None and (rows.weight == 0).any():
            counts = rows.weight > 0 if counts is None else counts & (rows.weight > 0)
        place = _places(values, rows) if "place" in needs else None
        return cls(values, event, rows.weight, counts, squares, place)

    def read(self, segment: Segment) -> pl.DataFrame:
        import numpy as np

        rows, ends = segment.rows, segment.ends
        if self.counts is not None:
            kept = self.counts[rows]
            ends = np.concatenate([[0], np.cumsum(kept)])[ends]
            rows = rows[kept]
        sizes = np.diff(ends)
        if not len(rows):
            return pl.DataFrame(schema={_UNIT: pl.Int64})
        units = segment.units[sizes > 0]
        starts = ends[:-1][sizes > 0]
        score = self.score[rows]
        packed = self.weight is None and self.place is None and score.min() >= 0 and score.max() < _PACKABLE
        if packed:
            # score and event as one integer, sorted at once; adding zero makes a negative zero positive
            key = ((score + 0.0).view(np.uint64) << np.uint64(1)) | self.event[rows]
            for start, end in zip(starts, ends[1:][sizes > 0], strict=True):
                key[start:end].sort()
            event, score = (key & np.uint64(1)).astype(bool), (key >> np.uint64(1)).view(np.float64)
            weight = taken = None
        else:
            unit = np.repeat(np.arange(len(sizes)), sizes)
            order = np.lexsort((score, unit)) if len(units) > 1 else np.argsort(score, kind="stable")
            taken = rows[order]
            score, event = score[order], self.event[taken]
            weight = None if self.weight is None else self.weight[taken]
        new = np.empty(len(score), dtype=bool)
        np.not_equal(score[1:], score[:-1], out=new[1:])
        new[starts] = True
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(score)) - 1
        length = np.add.reduceat(new, starts, dtype=np.int64)

        def at_each(values: np.ndarray[Any, Any] | None, power: int) -> tuple[Any, Any]:
            if values is None:
                total = np.diff(np.append(first, len(score))).astype(np.float64)
                hits = np.cumsum(event, dtype=np.int64)[last]
                hits = np.diff(hits, prepend=0).astype(np.float64)
                return hits, total - hits
            powered = values**power
            none = np.zeros_like(powered)
            return tuple(np.add.reduceat(np.where(side, powered, none), first) for side in (event, ~event))  # pyright: ignore[reportReturnType]

        hits, false_alarms = at_each(weight, 1)
        columns = {
            _UNIT: np.repeat(units, length), "score": score[first], "hits": hits, "false_alarms": false_alarms,
        }  # fmt: skip
        if self.squares:
            columns["hit_squares"], columns["false_alarm_squares"] = at_each(weight, 2)
        if self.place is not None and taken is not None:
            columns["place"] = self.place[taken[first]]
        return pl.DataFrame({name: values[::-1] for name, values in columns.items()})


def _places(values: Floats, rows: Rows) -> Floats:
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


def _asked(
    formula: Formula,
    rows: Rows,
    taken: np.ndarray[Any, Any],
    level: int,
    score: str,
    labels: Sequence[object],
) -> tuple[float, str | None]:
    """The answer of a function of arrays for one group."""
    import numpy as np

    weight = None if rows.weight is None else rows.weight[taken]
    if weight is not None and not weight.sum():
        return np.nan, None
    options = dict(formula.options)
    if formula.kind == "numeric":
        truth, estimate = rows.frame[ACTUAL].to_numpy()[taken], rows.frame[PREDICTED].to_numpy()[taken]
    elif formula.over_levels:
        names, shown = _sides(rows, level, score, labels)
        truth = rows.event(level)[taken].astype(np.int64) if names[0].startswith(REST) else rows.place[taken]
        estimate = np.stack([rows.score(each)[taken] for each in names], axis=1)
        if "labels" in inspect.signature(formula.function).parameters:
            options["labels"] = shown
    else:
        truth = rows.event(level)[taken].astype(np.int64)
        estimate = rows.score(score)[taken]
    return ask(formula, lambda: formula.function(truth, estimate, **weighing(formula, weight), **options), len(truth))


def _sides(rows: Rows, level: int, score: str, labels: Sequence[object]) -> tuple[list[str], list[object]]:
    """The scores of all labels; where there is one, those of the rest and of the event."""
    names = [name.removeprefix("s") for name in rows.frame.columns if name[:1] == "s" and name[1:].isdigit()]
    if len(names) == len(labels):
        return names, list(labels)
    others = [label for place, label in enumerate(labels) if place != level]
    return [REST + score, score], [others[0] if len(others) == 1 else tuple(others), labels[level]]


WEIGHTS = ("sample_weight", "case_weights", "weight", "weights")


def weighing(formula: Formula, weight: Any) -> dict[str, Any]:
    """The weights as the argument that a function takes them by."""
    if weight is None:
        return {}
    known = inspect.signature(formula.function).parameters
    name = next((name for name in WEIGHTS if name in known), None)
    if name is None:
        msg = (
            f"{formula.function.__name__} takes no weights; leave out `case_weights=`, or give it a parameter "
            "`sample_weight`."
        )
        raise ArgumentError(msg)
    return {name: weight}


def ask(formula: Formula, function: Callable[[], object], rows: int) -> tuple[float, str | None]:
    """What a function answers, as a number and a reason where it has none."""
    if not rows:
        return math.nan, None
    try:
        answer = function()
    except Undefined as reason:
        return math.nan, str(reason)
    except (ValueError, ArithmeticError) as error:
        # one metric that fails does not sink the others
        return math.nan, f"failed: {error}"
    except Exception as error:
        error.add_note(f"in the function of {formula.function.__name__}")
        raise
    if answer is None:
        return math.nan, None
    if isinstance(answer, bool) or not isinstance(answer, Real):
        item = getattr(answer, "item", None)
        number = item() if item is not None and getattr(answer, "size", 0) == 1 else None
        if number is None:
            msg = f"{formula.function.__name__} returned {answer!r}; a metric is one number."
            raise ArgumentError(msg)
        return float(number), None
    return float(answer), None


def _compared(formula: Formula, rows: Rows, level: int, score: str) -> tuple[Floats, np.ndarray[Any, Any]]:
    """Each unit compared with the others of its outer group: with all of them together, or with the farthest one."""
    import numpy as np

    count = len(rows.outer_of_unit)
    values, reasons = np.full(count, np.nan), np.full(count, None, dtype=object)
    scores = rows.score(score)
    event = rows.event(level) if "truth" in rows.frame.columns else np.zeros(len(scores))
    counts = rows.weight > 0 if rows.weight is not None else np.ones(len(scores), dtype=bool)

    def sample(chosen: np.ndarray[Any, Any]) -> Sample:
        taken = np.flatnonzero(chosen & counts)
        return Sample(event[taken], scores[taken], None if rows.weight is None else rows.weight[taken])

    def answer(one: Sample, other: Sample) -> tuple[float, str | None]:
        if not len(other.score):
            return np.nan, "no_other_group"
        options = dict(formula.options)
        return ask(formula, lambda: formula.function(one, other, **options), len(one.score))

    compared = ~rows.apart[rows.unit]
    for outer in np.unique(rows.outer_of_unit):
        here = compared & (rows.outer == outer)
        units = [unit for unit in np.flatnonzero(rows.outer_of_unit == outer) if not rows.apart[unit]]
        if formula.against == "rest":
            for unit in units:
                mine = rows.unit == unit
                values[unit], reasons[unit] = answer(sample(here & mine), sample(here & ~mine))
            continue
        samples = {unit: sample(here & (rows.unit == unit)) for unit in units}
        for place, unit in enumerate(units):
            for other in units[place + 1 :]:
                value, reason = answer(samples[unit], samples[other])
                for each in (unit, other):
                    values[each] = np.fmax(values[each], value)
                    reasons[each] = reasons[each] or reason
        if len(units) == 1:
            reasons[units[0]] = "no_other_group"
    # a reason is for what has no value
    return values, np.where(np.isnan(values), reasons, None)


def class_values(
    cells: pl.DataFrame,
    formulas: Sequence[Formula],
    levels: Sequence[int],
    event: int | None,
    labels: Sequence[object],
    whose: Literal["own", "overall", "rest"],
    count: int,
) -> pl.DataFrame:
    """The values of functions of true and predicted labels for each unit and level, from the cells of the units.

    Without weights the function sees each row; with weights, each pair of labels once, and its weight. Labels are 1 for
    the event (the level) and 0, or the labels themselves where the function is over all of them.
    """
    import numpy as np

    complete = cells.drop_nulls(["truth", "estimate"])
    unit, outer, apart = (complete[name].to_numpy() for name in (_UNIT, "outer", "apart"))
    outer_of_unit = {int(each): int(other) for each, other in zip(unit, outer, strict=True)}
    found = {formula.column: np.full((len(levels), count), np.nan) for formula in formulas}
    reasons = {formula.column: np.full((len(levels), count), None, dtype=object) for formula in formulas}
    for place in range(count):
        mine = unit == place
        if whose != "own":
            together = (outer == outer_of_unit.get(place, -1)) & ~apart
            mine = together if whose == "overall" else together & ~mine
        part = complete.filter(pl.Series(mine))
        weight = part["w"].cast(pl.Float64).to_numpy() if "w" in part.columns else None
        times = None if weight is not None else part["n"].to_numpy()
        for index, level in enumerate(levels):
            for formula in formulas:
                names = pl.Series(list(labels)) if formula.over_levels and event is None else None
                pair = [
                    (part[side] == level).cast(pl.Int64) if names is None else names.gather(part[side].cast(pl.UInt32))
                    for side in ("truth", "estimate")
                ]
                truth, estimate = (
                    each.to_numpy() if times is None else np.repeat(each.to_numpy(), times) for each in pair
                )
                arguments = weighing(formula, weight) | dict(formula.options)
                if weight is not None and not weight.sum():
                    continue
                found[formula.column][index, place], reasons[formula.column][index, place] = ask(
                    formula,
                    lambda: formula.function(truth, estimate, **arguments),
                    len(truth),
                )
    values = {name: pl.Series(each.ravel()).fill_nan(None) for name, each in found.items()}
    texts = {f"{name} reason": pl.Series(each.ravel().tolist(), dtype=pl.String) for name, each in reasons.items()}
    return pl.DataFrame(values | texts)
