"""Metrics that are functions of arrays, asked group by group; and the values of all that must see rows."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError, Status, TidyfairError, Undefined
from tidyfair.evaluation.ranked_rows import Level, Rows, Whose, ordered_values
from tidyfair.evaluation.values import OfRows
from tidyfair.specs.formulas import WEIGHTS, name_of
from tidyfair.tallies.moments import REST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

    from tidyfair.specs.formulas import Formula

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["Sample"]

_LARGEST = 2**1023
"""Whole numbers beyond this are no doubles."""


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The rows of a group as a function of two samples sees them."""

    truth: Array
    """Whether a row has the event."""
    score: Array
    weight: Array | None


class _Answers:
    """The numbers of formulas for each level and group cell, and the reasons that functions gave for having none."""

    def __init__(self, formulas: Iterable[Formula], levels: int, group_cells: int) -> None:
        import numpy as np

        self.numbers = {formula.column: np.full((levels, group_cells), np.nan) for formula in formulas}
        self.reasons = {
            formula.column: np.full((levels, group_cells), None, dtype=object)
            for formula in formulas
            if formula.way == "arrays"
        }

    def put(self, formula: Formula, place: Any, answer: tuple[Any, Any]) -> None:
        """Set a number, or numbers, and the reason."""
        self.numbers[formula.column][place], self.reasons[formula.column][place] = answer

    def of_rows(self, group_cells: Array | None = None) -> OfRows:
        """As arrays of group cells by levels; of the given group cells, or all."""
        chosen: Any = slice(None) if group_cells is None else group_cells
        numbers = {name: values.T[chosen] for name, values in self.numbers.items()}
        return OfRows(numbers, {name: values.T[chosen] for name, values in self.reasons.items()})


def row_values(
    rows: Rows, formulas: Sequence[Formula], levels: Sequence[Level], whose: Whose, *, pairs: bool = False
) -> OfRows:
    """The values of formulas for each group cell and level, and the reasons of those without.

    With `pairs` a level is read against each other level, and the mean counts.
    """
    count = int(rows.outer_of_group_cell.max(initial=-1)) + 1 if whose == "overall" else len(rows.outer_of_group_cell)
    found = _Answers(formulas, len(levels), count)
    ordered = [formula for formula in formulas if formula.way == "rows"]
    for index, level in enumerate(levels):
        others = [Level(level.place, level.score, other.place) for other in levels if other.place != level.place]
        for name, values in _means(rows, ordered, others if pairs else [level], whose, count).items():
            found.numbers[name][index] = values
        for formula in formulas:
            if formula.against is not None:
                found.put(formula, index, _compared(formula, rows, level))
            elif formula.way == "arrays":
                for segment in rows.segments(whose):
                    for group_cell, start, end in zip(
                        segment.group_cells, segment.ends[:-1], segment.ends[1:], strict=True
                    ):
                        taken = segment.indices[start:end]
                        found.put(formula, (index, group_cell), _asked(formula, rows, taken, level, levels))
    return found.of_rows(rows.outer_of_group_cell if whose == "overall" else None)


def _means(
    rows: Rows, formulas: Sequence[Formula], levels: Sequence[Level], whose: Whose, count: int
) -> dict[str, Array]:
    """The mean of the values of formulas over rows that some levels have, for each group cell."""
    import numpy as np

    each = _Answers(formulas, len(levels), count)
    for place, level in enumerate(levels if formulas else ()):
        for name, group_cells, values in ordered_values(rows, formulas, level, whose):
            each.numbers[name][place, group_cells] = values
    with np.errstate(invalid="ignore"):
        return {
            name: np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0) for name, values in each.numbers.items()
        }


def class_values(
    cells: pl.DataFrame,
    formulas: Sequence[Formula],
    levels: Sequence[int],
    labels: Sequence[object] | None,
    whose: Whose,
    group_cells: int,
) -> OfRows:
    """The values of functions of true and predicted labels for each group cell and level, from the cells of a tally.

    Without weights the function sees each row; with weights, each pair of labels once, and its weight. Labels are 1 for
    the event (the level) and 0, or the `labels` themselves where the function is over all of them.
    """
    import numpy as np

    complete = cells.drop_nulls(["truth", "estimate"])
    group_cell, outer, excluded = (complete[name].to_numpy() for name in ("group_cell", "outer", "excluded"))
    outer_of_group_cell = dict(zip(group_cell.tolist(), outer.tolist(), strict=True))
    found = _Answers(formulas, len(levels), group_cells)

    def seen(part: pl.DataFrame, side: str, level: int, *, all_labels: bool) -> Array:
        if labels is not None and all_labels:
            return pl.Series(list(labels)).gather(part[side].cast(pl.UInt32)).to_numpy()
        return (part[side] == level).cast(pl.Int64).to_numpy()

    for place in range(group_cells):
        mine = group_cell == place
        if whose != "own":
            together = (outer == outer_of_group_cell.get(place, -1)) & ~excluded
            mine = together if whose == "overall" else together & ~mine
        part = complete.filter(pl.Series(mine))
        weight = part["w"].cast(pl.Float64).to_numpy() if "w" in part.columns else None
        times = 1 if weight is not None else part["n"].to_numpy()
        for index, level in enumerate(levels):
            for formula in formulas:
                sides = [
                    np.repeat(seen(part, side, level, all_labels=formula.over_levels), times)
                    for side in ("truth", "estimate")
                ]
                found.put(formula, (index, place), _answer(formula, sides, weight))
    return found.of_rows()


def _asked(
    formula: Formula, rows: Rows, taken: Array, level: Level, levels: Sequence[Level]
) -> tuple[float, str | None]:
    """The answer of a function of arrays for one group, about one of the levels or all of them."""
    import numpy as np

    weight = None if rows.weight is None else rows.weight[taken]
    if formula.kind == "numeric":
        return _answer(formula, [side[taken] for side in rows.numbers], weight)
    if not formula.over_levels:
        return _answer(
            formula, [rows.event(level.place)[taken].astype(np.int64), rows.score(level.score)[taken]], weight
        )
    names, labels = _sides(rows, level, levels)
    place = rows.event(level.place)[taken].astype(np.int64) if level.both_sides else rows.place[taken]
    truth = pl.Series(labels).gather(place).to_numpy()
    scores = np.stack([rows.score(name)[taken] for name in names], axis=1)
    takes_labels = "labels" in inspect.signature(formula.function).parameters
    return _answer(formula, [truth, scores], weight, {"labels": labels} if takes_labels else {})


def on_arrays(formula: Formula, arrays: Mapping[str, Any]) -> float | None:
    """The answer of a function on plain lists, in the order of its parameters; None where it is undefined.

    Of two samples each is a list of scores, or a mapping with `truth` and `score`.
    """
    import numpy as np

    def sample(given: Any) -> Sample:
        mapping = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"score": given}
        score = np.array(mapping["score"], dtype=float)
        weight = mapping.get("weight")
        truth = np.array(mapping.get("truth", np.zeros(len(score))))
        return Sample(truth, score, None if weight is None else np.array(weight, dtype=float))

    given = [sample(each) if formula.against else np.array(each) for each in arrays.values()]
    value, _ = _answer(formula, given, None)
    return None if math.isnan(value) else value


def _sides(rows: Rows, level: Level, levels: Sequence[Level]) -> tuple[list[str], list[object]]:
    """The scores of all labels, in the order of these; where one is read, those of the rest and of the event."""
    if not level.both_sides:
        # columns of scores stand as they were given, which is not the order of the labels
        return [each.score for each in levels], list(rows.labels)
    others = [label for place, label in enumerate(rows.labels) if place != level.place]
    # several others go by 0, and the event by 1
    pair: list[object] = [others[0], rows.labels[level.place]] if len(others) == 1 else [0, 1]
    return [REST + level.score, level.score], pair


def _answer(
    formula: Formula, arrays: Sequence[object], weight: Array | None, given: dict[str, object] | None = None
) -> tuple[float, str | None]:
    """The answer of a function, as a number, and a reason where it has none."""
    first: Any = arrays[0]
    size = len(first.score) if isinstance(first, Sample) else len(first)
    if not size or (weight is not None and not weight.sum()):
        return math.nan, None
    arguments = dict(formula.options) | (given or {}) | _weighing(formula, weight)
    try:
        answer = formula.function(*arrays, **arguments)
    except Undefined as reason:
        return math.nan, str(reason)
    except TidyfairError:
        raise
    except (ValueError, ArithmeticError) as error:
        # one metric that fails does not sink the others
        return math.nan, f"failed: {error}"
    except Exception as error:
        error.add_note(f"in the function of {name_of(formula.function)}")
        raise
    if answer is None:
        return math.nan, Status.NO_VALUE.value
    number = _number_of(formula, answer)
    return number, Status.NO_VALUE.value if math.isnan(number) else None


def _number_of(formula: Formula, answer: Any) -> float:
    """The number that a function answers, which may be an array of a single one."""
    number = answer
    if getattr(answer, "size", 0) == 1 and hasattr(answer, "item"):
        number = answer.item()
    too_large = isinstance(number, Integral) and abs(int(number)) > _LARGEST
    if not isinstance(number, Real) or too_large:
        msg = f"{name_of(formula.function)} returned {answer!r}; a metric is one number."
        raise ArgumentError(msg)
    return float(number)


def _weighing(formula: Formula, weight: Array | None) -> dict[str, object]:
    """The weights as the argument that a function takes them by."""
    if weight is None:
        return {}
    known = inspect.signature(formula.function).parameters
    name = next((name for name in WEIGHTS if name in known), None)
    if name is None:
        msg = (
            f"{name_of(formula.function)} takes no weights; leave out `case_weights=`, or give it a parameter "
            "`sample_weight`."
        )
        raise ArgumentError(msg)
    return {name: weight}


def _compared(formula: Formula, rows: Rows, level: Level) -> tuple[Array, Array]:
    """Each group cell compared with the others of its outer group: with all together, or with the farthest one."""
    import numpy as np

    count, outers = len(rows.outer_of_group_cell), int(rows.outer_of_group_cell.max(initial=-1)) + 1
    values, reasons = np.full(count, np.nan), np.full(count, Status.NO_OTHER_GROUP.value, dtype=object)
    scores, sizes = rows.score(level.score), np.bincount(rows.group_cell, minlength=count)
    event = np.zeros(len(scores), dtype=bool) if formula.ignores_truth else rows.event(level.place)
    counted = (
        ~rows.excluded[rows.group_cell] if rows.weight is None else ~rows.excluded[rows.group_cell] & (rows.weight > 0)
    )
    rows_of_outer = _split(rows.outer, np.flatnonzero(counted), outers)
    group_cells_of_outer = _split(
        rows.outer_of_group_cell, np.flatnonzero(~rows.excluded & (sizes >= formula.min_n)), outers
    )

    def sample(taken: Array) -> Sample:
        return Sample(event[taken], scores[taken], None if rows.weight is None else rows.weight[taken])

    def answer(one: Sample, other: Sample) -> tuple[float, str | None]:
        if not len(one.score) or not len(other.score):
            return math.nan, Status.NO_OTHER_GROUP.value if len(one.score) else None
        return _answer(formula, [one, other], None)

    for group_cells, compared in zip(group_cells_of_outer, rows_of_outer, strict=True):
        group_cell_of_row = rows.group_cell[compared]
        samples = {group_cell: sample(compared[group_cell_of_row == group_cell]) for group_cell in group_cells.tolist()}
        if formula.against == "rest":
            for group_cell, own in samples.items():
                values[group_cell], reasons[group_cell] = answer(own, sample(compared[group_cell_of_row != group_cell]))
            continue
        for one, other in itertools.combinations(samples, 2):
            # once for both, so that they have the same value to the last bit
            value, reason = answer(samples[one], samples[other])
            for group_cell in (one, other):
                values[group_cell] = np.fmax(values[group_cell], value)
                reasons[group_cell] = reason or reasons[group_cell]
    return values, reasons


def _split(codes: Array, chosen: Array, count: int) -> list[Array]:
    """The chosen places of each code, in their order: sorted once and sliced, so that the cost is linear."""
    import numpy as np

    of_chosen = codes[chosen]
    in_order = chosen[np.argsort(of_chosen, kind="stable")]
    ends = np.cumsum(np.bincount(of_chosen, minlength=count))
    return np.split(in_order, ends[:-1])
