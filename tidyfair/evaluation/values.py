"""From statistics to values: formulas and averages over labels, as arrays of group cells by labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidyfair.errors import Status
from tidyfair.evaluation.statistics import ONE_LABEL, Statistics
from tidyfair.specs.formulas import HAND_TILL, two_sides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.segments import Array, Booleans

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Values:
    """The values of a formula, and what is known of the rows behind them: arrays of group cells by labels.

    The second axis has one entry for all labels together, or one for each label that is read.
    """

    estimate: Array
    """The values; nan where undefined."""
    n: Array
    """The number of rows that the formula uses."""
    denominator: Array
    weight: Array
    """The weight of the rows that the formula uses."""
    size: Array
    """The weight of all rows."""
    rows: Array
    """The number of all rows."""
    reason: Array
    """Why there is no value, where there is none."""
    levels_left_out: Booleans
    """Whether an average leaves out labels without a value."""
    by_level: bool
    """Whether there is a value for each label."""
    extra: Mapping[str, Array]
    """Further columns: the effective number of rows, how far off values can be, what groups are compared with."""

    def beside(self, name: str, column: Array) -> Values:
        """The same values with one more column."""
        return replace(self, extra={**self.extra, name: column})


@dataclass(frozen=True, eq=False)
class OfRows:
    """The values of formulas that read rows, by their column, and the reasons of those that are undefined."""

    numbers: Mapping[str, Array]
    reasons: Mapping[str, Array]


def stacked(parts: Sequence[tuple[OfRows, tuple[int, int]]]) -> OfRows:
    """The values of several runs of group cells, each of a shape; nan where a formula was not asked for."""
    import numpy as np

    numbers: dict[str, Array] = {}
    reasons: dict[str, Array] = {}
    for name in dict.fromkeys(name for part, _ in parts for name in part.numbers):
        columns = [part.numbers.get(name, np.full(shape, np.nan)) for part, shape in parts]
        numbers[name] = np.concatenate(columns)
    for name in dict.fromkeys(name for part, _ in parts for name in part.reasons):
        columns = [part.reasons.get(name, np.full(shape, None, dtype=object)) for part, shape in parts]
        reasons[name] = np.concatenate(columns)
    return OfRows(numbers, reasons)


def evaluate(formula: Formula, estimator: str, known: Statistics, of_rows: OfRows) -> Values:
    """The values of one formula in all group cells."""
    of_sums = formula.way == "sums"
    values = _of_sums(formula, estimator, known) if of_sums else _of_rows(formula, known, of_rows)
    one_by_one = estimator in ONE_LABEL or formula.given is not None
    if formula.over_levels and not one_by_one:
        values = _first_level(values)
    elif not formula.over_levels and not one_by_one and estimator != "micro":
        values = _average(values, formula, estimator, known.true(formula.reads))
    values = _without_hidden(values, formula, known)
    return replace(values, by_level=one_by_one)


def _of_sums(formula: Formula, estimator: str, known: Statistics) -> Values:
    """The values of a formula over sums; of one over all labels, one for each that is read against the rest."""
    micro = estimator == "micro" and not formula.over_levels
    sums = _as_read(formula, estimator, known, "weights")
    value, counted = formula.on_sums(sums)
    if known.rows is not known.weights:
        counted = formula.denominator(_as_read(formula, estimator, known, "rows"))
    values = _beside(formula, known, value, counted)
    if micro:
        # rows are the same for all labels, their weight is added up as that of labels is
        values = replace(_first_level(values), weight=values.weight.sum(axis=1, keepdims=True))
        values = replace(values, estimate=value, denominator=values.n if counted is None else counted)
    if known.squares is not None:
        squares = _as_read(formula, estimator, known, "squares")
        effective = formula.effective(sums, squares)
        if effective is not None:
            values = values.beside("effective", effective.reshape(values.estimate.shape))
    return values


def _as_read(formula: Formula, estimator: str, known: Statistics, measure: Any) -> dict[str, Array]:
    """The statistics as a formula reads them: label by label, from two sides, or added up over labels."""
    sums = known.read(formula.reads, measure)
    if formula.over_levels and estimator in ONE_LABEL and formula.kind == "class" and formula.given is None:
        return two_sides(sums, formula.all_sums)
    if estimator == "micro" and not formula.over_levels:
        return {
            # what is about the labels of the call is the same for all groups
            name: values[:1] if values.ndim == 1 else values.sum(axis=1, keepdims=True)
            for name, values in sums.items()
        }
    return sums


def _of_rows(formula: Formula, known: Statistics, of_rows: OfRows) -> Values:
    """The values of a formula over rows, which are there already."""
    values = _beside(formula, known, of_rows.numbers[formula.column], formula.denominator(known.rows))
    reasons = of_rows.reasons.get(formula.column)
    if reasons is None:
        return values
    import numpy as np

    return replace(values, reason=np.where(reasons == None, formula.undefined, reasons))  # noqa: E711 - an array


def _beside(formula: Formula, known: Statistics, estimate: Array, denominator: Array | None) -> Values:
    """Values with what is known of the rows behind them."""
    import numpy as np

    used, weight = known.used(formula.reads), known.weight(formula.reads)
    shape = used.shape[:2]
    used, weight = (rows.reshape(*shape, math.prod(rows.shape[2:]))[..., 0] for rows in (used, weight))
    estimate = _in_columns(estimate)
    return Values(
        estimate=estimate,
        n=used,
        denominator=used if denominator is None else _in_columns(denominator),
        weight=weight,
        size=np.broadcast_to(_in_columns(known.size)[:, :1], shape),
        rows=_by_label(known.all_rows, shape),
        reason=np.broadcast_to(np.array(formula.undefined, dtype=object), estimate.shape),
        levels_left_out=np.broadcast_to(np.array(False), estimate.shape),  # noqa: FBT003 - an array
        by_level=False,
        extra={},
    )


def _by_label(values: Array, shape: tuple[int, ...]) -> Array:
    """Numbers of group cells beside those of each label."""
    import numpy as np

    flat = _in_columns(values)
    return flat[:, : shape[1]] if flat.shape[1] >= shape[1] else np.broadcast_to(flat[:, :1], shape)


def _in_columns(values: Array) -> Array:
    """One row for each group cell."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _first_level(values: Values) -> Values:
    """The numbers of rows of the first label, where they are the same for all."""
    return replace(
        values,
        estimate=values.estimate[:, :1],
        n=values.n[:, :1],
        denominator=values.denominator[:, :1],
        weight=values.weight[:, :1],
        size=values.size[:, :1],
        rows=values.rows[:, :1],
        reason=values.reason[:, :1],
        levels_left_out=values.levels_left_out[:, :1],
        extra={name: column[:, :1] for name, column in values.extra.items()},
    )


def _average(values: Values, formula: Formula, estimator: str, true: Array) -> Values:
    """The mean over labels, each counting the same or as often as it is `true`.

    Labels without a value are left out where the formula says so; else the mean has none, unless they weigh nothing.
    """
    import numpy as np

    weight = true if estimator == "macro_weighted" else np.ones(values.estimate.shape)
    known = ~np.isnan(values.estimate)
    counted = known & (weight > 0)
    dispensable = known | (weight == 0)
    drops = formula.undefined_levels == "drop" or estimator == HAND_TILL
    complete = dispensable.all(axis=1) | drops
    with np.errstate(invalid="ignore"):
        total = np.where(counted, values.estimate * weight, 0.0).sum(axis=1)
        mean = total / np.where(counted, weight, 0.0).sum(axis=1)
    # where every label has a value, none of them weighs anything
    first = np.argmin(known, axis=1)
    reason = np.where(known.all(axis=1), Status.ZERO_DENOMINATOR.value, values.reason[np.arange(len(first)), first])
    averaged = _first_level(replace(values, denominator=values.n))
    return replace(
        averaged,
        estimate=np.where(complete, mean, np.nan)[:, None],
        reason=reason[:, None],
        levels_left_out=~dispensable.all(axis=1)[:, None],
        extra={name: np.full((len(mean), 1), np.nan) for name in values.extra},
    )


def _without_hidden(values: Values, formula: Formula, known: Statistics) -> Values:
    """No values where cells were left out on purpose, of the group or of what is read of other groups."""
    import numpy as np

    sources = [known, *(known.beside[prefix] for prefix in formula.beyond)]
    masks = [source.hidden[:, :1] > 0 for source in sources if source.hidden is not None]
    if not masks:
        return values
    hidden = np.broadcast_to(np.logical_or.reduce(masks), values.estimate.shape)
    estimate = np.where(hidden, np.nan, values.estimate)
    return replace(values, estimate=estimate, reason=np.where(hidden, Status.SUPPRESSED.value, values.reason))
