"""Disparities: the values of groups reduced to one number for each outer group by an aggregate.

Rows become arrays, sorted so that compared groups are consecutive; each step reduces runs of them: the groups of a
metric, the metrics of a label, the labels of a disparity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import AggregateError, Status, Undefined, failures_of, listed
from tidyfair.evaluation.statistics import LEVEL
from tidyfair.evaluation.value_rows import LAST_DEFINED, NO_LEVEL, PART, STATE, ValueRows
from tidyfair.specs import (
    CONTEXTS,
    NO_ROW,
    NOT_ASKED,
    Aggregate,
    Booleans,
    Floats,
    GroupValues,
    Integers,
    Segments,
    UserAggregate,
    taken,
)

_COMPARISON = "\0comparison"

Tidy: TypeAlias = "Callable[[int, pl.DataFrame], tuple[str, pl.DataFrame]]"
"""Converts a spec and its rows to its name and the frame passed to a user's function."""


class _Groups:
    """The values of groups as arrays, sorted by spec, outer group, part, level and metric."""

    def __init__(self, rows: ValueRows, specs: Sequence[int], *, with_carriers: bool) -> None:
        """Sort the rows of some specs; those of a metric stay in group order."""
        self.rows = rows
        if tuple(specs) not in rows.orders:
            rows.orders[tuple(specs)] = self._order_of(rows, specs)
        self.order, self._are_in_place, self.keys, segments = rows.orders[tuple(specs)]
        """The compared rows, in order; if these are all as they are; their spec, outer group, part and label."""
        self.values = GroupValues(
            segments=segments,
            estimate=self.column("estimate"),
            weight=self.column("weight"),
            size=self.column("size"),
            suppressed=self.column(STATE) == Status.SUPPRESSED.code,
            is_reference=self.column("is_reference").astype(bool, copy=False),
            contexts={name: self.column(name) for name in CONTEXTS if name in rows},
            with_carriers=with_carriers,
        )
        """The columns that aggregates read."""

    @staticmethod
    def _order_of(rows: ValueRows, specs: Sequence[int]) -> tuple[Integers, bool, list[Integers], Segments]:
        """The rows of some specs in order, whether these are all in place, their keys, and the runs of a metric."""
        spec = rows["spec"]
        is_chosen = np.zeros(max(int(spec.max(initial=0)), *specs) + 1, dtype=bool)
        is_chosen[specs] = True
        (chosen,) = is_chosen[spec].nonzero()
        names = ("spec", "outer", PART, LEVEL)
        order = chosen[np.lexsort([rows[name][chosen] for name in reversed(names)])]
        keys = [rows[name][order] for name in names]
        are_in_place = len(order) == len(spec) and bool((order == np.arange(len(spec))).all())
        return order, are_in_place, keys, Segments.of(*keys, rows["metric"][order])

    def column(self, name: str) -> Any:
        """A column as an array; numbers that are null are nan."""
        values = self.rows[name]
        return values if self._are_in_place else values[self.order]

    def carriers(self, rows: Integers, defined: Booleans) -> Integers:
        """The rows of values that carry numbers, by their places in order; `NO_ROW` of numbers that are undefined."""
        return np.where(defined & (rows != NO_ROW), self.order[rows], NO_ROW)


_WITHOUT_ROW = {
    "spec": NO_ROW, "outer": NO_ROW, "part": 0, "level": NO_LEVEL, "value": math.nan, "reason": Status.OK.code,
    "low": NO_ROW, "high": NO_ROW, "metric": NO_ROW, "n": 0, "partly": False,
}  # fmt: skip
"""The values in the columns of a disparity that compares no rows, where the index is `NO_ROW`."""


@dataclass(frozen=True, eq=False)
class Disparities:
    """Disparities, or parts of them: their keys, values and statuses, and the rows of the groups that carry them."""

    spec: Integers
    outer: Integers
    part: Integers
    level: Integers
    value: Floats
    """The numbers; nan where there is none."""
    reason: Integers
    """The code of the status of a number that is undefined, else that of `Status.OK`."""
    low: Integers
    """The row of the group with the lower value, or `NO_ROW`."""
    high: Integers
    metric: Integers
    """A row of the metric that a number is of, or `NO_ROW`."""
    n: Integers
    partly: Booleans
    """The numbers that leave out labels without one, as a mask."""
    left_out: Mapping[int, list[str]] = field(default_factory=dict[int, list[str]])
    """The names of the metrics that cannot be compared, if any."""

    @property
    def known(self) -> Booleans:
        """The numbers that are defined, as a mask."""
        return ~np.isnan(self.value)

    def at(self, rows: Integers) -> Disparities:
        """The numbers of some rows; undefined where there is `NO_ROW`."""
        chosen: dict[str, Any] = {name: taken(getattr(self, name), rows, none) for name, none in _WITHOUT_ROW.items()}
        return Disparities(**chosen)

    @property
    def status_codes(self) -> Integers:
        """The code of the status of each number."""
        without_metrics = np.zeros(len(self.value), dtype=bool)
        without_metrics[list(self.left_out)] = True
        # the first status that applies counts
        qualified = {
            Status.INFINITE: np.isinf(self.value),
            Status.METRICS_LEFT_OUT: without_metrics,
            Status.LEVELS_LEFT_OUT: self.partly,
        }
        codes = self.reason.copy()
        for status, applies in qualified.items():
            codes[applies & (codes == Status.OK.code)] = status.code
        return codes


def compare(
    rows: ValueRows,
    aggregates: Mapping[int, Aggregate],
    *,
    two_sided: Collection[int],
    undefined_is_null: bool,
    tidy: Tidy,
    with_carriers: bool = True,
) -> list[Disparities]:
    """The disparities of all specs in all outer groups, those of specs with the same aggregate at once.

    `rows` hold the values of the groups: `spec`, `outer`, `part`, `level`, `metric`, `name`, `group_cell`, `text`,
    `estimate`, `n`, `weight`, `size`, `status`, `is_reference`, and the contexts of the aggregates; those of other
    specs do not count. With only one side present, a `two_sided` spec has no disparity. `tidy` makes the frame passed
    to a user's function. Without carriers it is not told which groups carry them.
    """
    by_aggregate: dict[Aggregate, list[int]] = {}
    for spec, aggregate in aggregates.items():
        by_aggregate.setdefault(aggregate, []).append(spec)
    results: list[Disparities] = []
    for aggregate, specs in by_aggregate.items():
        groups = _Groups(rows, specs, with_carriers=with_carriers)
        numbers = _of_metrics(groups, aggregate, two_sided, undefined_is_null=undefined_is_null)
        segments = Segments.of(numbers.spec, numbers.outer, numbers.part, numbers.level)
        if len(segments.starts) < segments.length:
            numbers = _worst_metric(numbers, segments, groups, aggregate, undefined_is_null=undefined_is_null)
        if isinstance(aggregate, UserAggregate):
            numbers = _with_user_values(numbers, groups, aggregate, tidy)
        # without levels there is one number for each outer group already
        if (numbers.level != NO_LEVEL).any():
            numbers = _worst_level(numbers, aggregate, undefined_is_null=undefined_is_null)
        if numbers.part.any():
            numbers = _subtract(numbers)
        results.append(numbers)
    return results


def _of_metrics(
    groups: _Groups, aggregate: Aggregate, two_sided: Collection[int], *, undefined_is_null: bool
) -> Disparities:
    """The number of each metric, and the reason where it is undefined."""
    values = groups.values
    segments, first = values.segments, values.segments.starts
    status = groups.column(STATE)
    is_present = (status != Status.LEFT_OUT.code) & (status != Status.UNKNOWN.code)
    has_value, equality = values.known, aggregate.equality
    present, known = segments.sum(is_present), segments.sum(has_value)
    reduced = aggregate.reduce(values)
    spec, outer, part, level = [key[first] for key in groups.keys]
    of_sides = np.isin(spec, list(two_sided)) if two_sided else np.zeros(len(spec), dtype=bool)
    alone = (present == 1) & (known == 1) & reduced.referable & ~of_sides
    value = reduced.value
    if equality is not None:
        value = np.where(alone, equality, value)
    # an aggregate of a single group is allowed if there are no others
    not_all = of_sides | (known < present) | (known == 0)
    too_few = (known < aggregate.groups_needed) & not_all
    # the first rule that applies counts
    rules = {
        Status.MISSING_VALUES.code: segments.any(status == Status.MISSING_VALUES.code),
        Status.UNDEFINED_GROUP.code: segments.any(status > LAST_DEFINED) & undefined_is_null,
        Status.NO_REFERENCE.code: np.logical_not(reduced.referable),
        # all others have no value where some of them are hidden
        Status.SUPPRESSED.code: (too_few | np.isnan(value)) & segments.any(values.suppressed),
        Status.TOO_FEW_GROUPS.code: too_few,
        Status.INFINITE_LESS_INFINITE.code: np.isnan(value) & segments.any(np.isinf(values.estimate)),
        Status.ZERO_DENOMINATOR.code: np.isnan(value),
    }
    reason = np.full(len(first), Status.OK.code)
    for code, applies in reversed(rules.items()):
        reason[applies] = code
    # an undefined number has no groups and no metric that carry it
    defined = reason == Status.OK.code
    return Disparities(
        spec=spec,
        outer=outer,
        part=part,
        level=level,
        value=np.where(defined, value, np.nan),
        reason=reason,
        low=groups.carriers(reduced.low, defined),
        high=groups.carriers(reduced.high, defined),
        metric=groups.carriers(first, defined),
        n=segments.sum(np.where(has_value, groups.column("n"), 0)).astype(np.int64),
        partly=np.zeros(len(first), dtype=bool),
    )


def _worst_metric(
    numbers: Disparities, segments: Segments, groups: _Groups, aggregate: Aggregate, *, undefined_is_null: bool
) -> Disparities:
    """Combine the numbers of several metrics, in runs: the worst of the comparable ones, or the mean of all."""
    # a mean of fewer metrics, and a user's function of fewer, would mean something else
    of_all = undefined_is_null or aggregate.across == "mean" or isinstance(aggregate, UserAggregate)
    unusable = segments.any(np.isin(numbers.reason, [Status.MISSING_VALUES.code, Status.SUPPRESSED.code]))
    enough = np.where(of_all | unusable, segments.all(numbers.known), segments.any(numbers.known))
    settled = _worst_or_mean(numbers, segments, enough, aggregate)
    left_out: dict[int, list[str]] = {}
    (not_compared,) = (~numbers.known & segments.to_rows(enough)).nonzero()
    if len(not_compared):
        names = groups.rows["name"][groups.order[groups.values.segments.starts[not_compared]]]
        for number, name in zip(segments.runs[not_compared].tolist(), names.tolist(), strict=True):
            left_out.setdefault(number, []).append(name)
    return replace(settled, level=numbers.level[segments.starts], left_out=left_out)


def _worst_level(numbers: Disparities, aggregate: Aggregate, *, undefined_is_null: bool) -> Disparities:
    """Combine the numbers of several labels: the worst of the defined ones, or their mean."""
    segments = Segments.of(numbers.spec, numbers.outer, numbers.part)
    enough = segments.all(numbers.known) if undefined_is_null else segments.any(numbers.known)
    settled = _worst_or_mean(numbers, segments, enough, aggregate)
    partly = settled.known & ~segments.all(numbers.known)
    return replace(settled, partly=partly, left_out=_merged_names(numbers.left_out, segments.runs))


def _merged_names(left_out: Mapping[int, list[str]], run: Integers) -> dict[int, list[str]]:
    """The names of the metrics that are left out of any number of a run."""
    combined: dict[int, list[str]] = {}
    for index, names in left_out.items():
        of_run = combined.setdefault(int(run[index]), [])
        of_run += [name for name in names if name not in of_run]
    return combined


def _worst_or_mean(numbers: Disparities, segments: Segments, enough: Booleans, aggregate: Aggregate) -> Disparities:
    """The worst or the mean of the numbers of each run; undefined, with the reason, where they are not `enough`."""
    averaged, first = aggregate.across == "mean", segments.starts
    worst = segments.first_largest(aggregate.severity(numbers.value))
    reason_of_run = taken(numbers.reason, segments.first_where(numbers.reason != Status.OK.code), Status.OK.code)
    value = taken(numbers.value, worst, np.nan)
    if averaged:
        with np.errstate(invalid="ignore"):
            value = segments.sum(np.where(numbers.known, numbers.value, 0.0)) / segments.sum(numbers.known)
    value = np.where(enough, value, np.nan)
    reason = np.where(enough, Status.OK.code, reason_of_run)
    # infinite numbers of both signs have no mean
    reason = np.where(enough & np.isnan(value), Status.INFINITE_LESS_INFINITE.code, reason)
    # a mean of several is carried by none of them
    carried = enough & (segments.sizes == 1) if averaged else enough
    carrier = numbers.at(np.where(carried, worst, NO_ROW))
    return replace(
        carrier,
        spec=numbers.spec[first],
        outer=numbers.outer[first],
        part=numbers.part[first],
        value=value,
        reason=reason,
        n=segments.maximum(numbers.n),
        partly=np.zeros(len(first), dtype=bool),
    )


def _subtract(numbers: Disparities) -> Disparities:
    """Disparity minus the disparity of `less`; the reported groups are those of the first."""
    segments = Segments.of(numbers.spec, numbers.outer)
    first = numbers.at(segments.first_where(numbers.part == 0))
    subtracted = segments.first_where(numbers.part == 1)
    second = numbers.at(subtracted)
    with np.errstate(invalid="ignore"):
        value = first.value - np.where(subtracted == NO_ROW, 0.0, second.value)
    reason = np.where(first.reason != Status.OK.code, first.reason, second.reason)
    reason = np.where(np.isnan(value) & (reason == Status.OK.code), Status.INFINITE_LESS_INFINITE.code, reason)
    # an undefined number has no level, groups and metric that carry it
    defined = reason == Status.OK.code
    carrier = first.at(np.where(defined, np.arange(len(defined)), NO_ROW))
    left_out: dict[int, list[str]] = {}
    for index, names in _merged_names(numbers.left_out, segments.runs).items():
        if defined[index]:
            left_out[index] = names
    return replace(
        first,
        value=value,
        reason=reason,
        level=carrier.level,
        low=carrier.low,
        high=carrier.high,
        metric=carrier.metric,
        left_out=left_out,
    )


def _with_user_values(numbers: Disparities, groups: _Groups, aggregate: UserAggregate, tidy: Tidy) -> Disparities:
    """Set the numbers of a user's aggregate where the rules allow one, with one call for all metrics of a label."""
    segments, values = Segments.of(*groups.keys), groups.values
    allowed = numbers.reason == Status.OK.code
    pending = allowed & (numbers.value == NOT_ASKED)
    comparison = segments.runs
    shown = values.known & segments.to_rows(pending)
    value = numbers.value.copy()
    rows_shown = groups.rows.frame[groups.order[shown]].with_columns(pl.Series(_COMPARISON, comparison[shown]))
    for (spec,), rows in rows_shown.group_by("spec", maintain_order=True):
        name, frame = tidy(int(str(spec)), rows)
        for index, result in _user_results(frame.with_columns(rows[_COMPARISON]), name, aggregate):
            number = aggregate.number(result, name)
            value[index] = np.nan if number is None else number
    reason = np.where(allowed & np.isnan(value), Status.ZERO_DENOMINATOR.code, numbers.reason)
    # the extremes of all metrics together
    low, high = segments.first_largest(-values.estimate), segments.first_largest(values.estimate)
    low, high = groups.carriers(low, allowed), groups.carriers(high, allowed)
    return replace(numbers, value=value, reason=reason, low=low, high=high)


def _user_results(frame: pl.DataFrame, name: str, aggregate: UserAggregate) -> list[tuple[int, Any]]:
    """The results of a user's aggregate by the index of the comparison."""
    grouped, columns = frame.group_by(_COMPARISON, maintain_order=True), frame.columns[:-1]
    function = aggregate.function
    advice = f"Its columns: {listed(columns)}."
    if not isinstance(function, pl.Expr):
        advice = f"It is called with a polars DataFrame with the columns {listed(columns)}."
    results: list[tuple[int, Any]] = []
    with failures_of(f"{name}: the aggregate {aggregate!r}", advice, AggregateError):
        if isinstance(function, pl.Expr):
            return grouped.agg(function.alias("value")).rows()
        for (index,), part in grouped:
            try:
                result = function(part.drop(_COMPARISON))
            except Undefined:
                result = math.nan
            results.append((int(str(index)), result))
    return results
