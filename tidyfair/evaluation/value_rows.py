"""The values of formulas as rows: one for each metric of a spec, label and group cell, with its status."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.evaluator import COLUMNS, PART, EvaluationPlan, Values
from tidyfair.evaluation.group_cells import GroupCells
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.specs import DISTRIBUTION_BY_LABEL, Array, Booleans, Integers

TEXTS = [status.value for status in Status]
"""The texts of all statuses, in the order of their codes."""
VALUED = [status.value for status in Status if status.code <= Status.METRICS_LEFT_OUT.code]
"""The statuses of values that are numbers, as texts."""
LAST_DEFINED = Status.BELOW_MIN_SHARE.code
"""Groups with a status up to this one have a value or are left out on purpose; all others have no value."""
OUTSIDE = [Status.UNKNOWN.value, Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value]
"""The statuses of groups outside the policy of a metric, as texts."""
UNDEFINED = len(Status)
"""The code of groups without a value; their reasons, which may be free text, are stored separately."""
NO_LEVEL = -1
"""The level of values for all labels, or for the event."""
STATE = "state"
"""The column of the status of each row as the code of its `Status`, or `UNDEFINED`."""
_INTEGERS = {
    "spec": pl.Int32,
    "requested": pl.Int32,
    PART: pl.Int8,
    GROUP_CELL: pl.Int32,
    LEVEL: pl.Int32,
    "metric": pl.Int32,
    "outer": pl.Int32,
}
"""The columns of integers, with their dtypes in frames."""
_UNKNOWN = np.full((1, 1), np.nan)
"""A column that a formula does not have."""


class ValueRows(dict[str, Array]):
    """The values of all specs: columns of numbers as arrays by their names, and a frame with texts; nan where null."""

    def __init__(
        self, columns: Mapping[str, Array], frame: Callable[[], pl.DataFrame], **texts: Callable[[], Array]
    ) -> None:
        """Functions make the frame and, where they need not be read from it, columns of texts."""
        super().__init__(columns)
        self._frame, self._texts = frame, texts
        self.orders: dict[tuple[int, ...], Any] = {}
        """The order in which groups of some specs are compared, once it is known; see `disparities`."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ValueRows:
        """The rows of a frame."""
        status = frame["status"].replace_strict(TEXTS, range(len(TEXTS)), default=UNDEFINED, return_dtype=pl.Int64)
        numbers = {column.name: column.to_numpy() for column in frame if column.dtype != pl.String}
        return cls({**numbers, STATE: status.to_numpy()}, lambda: frame)

    def with_columns(self, columns: Mapping[str, Array]) -> ValueRows:
        """The same rows, in the same order, with some other numbers."""

        def frame() -> pl.DataFrame:
            names = [name for name in columns if name in self.frame.columns]
            return self.frame.with_columns(pl.Series(name, columns[name], nan_to_null=True) for name in names)

        rows = ValueRows({**self, **columns}, frame, **self._texts)
        rows.orders = self.orders
        return rows

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All columns as a frame."""
        return self._frame()

    def __missing__(self, name: str) -> Array:
        """A column of texts."""
        made = self._texts.get(name)
        values = self[name] = self.frame[name].to_numpy() if made is None else made()
        return values


def value_rows(
    plan: EvaluationPlan, values: Sequence[Values], group_cells: GroupCells, labels: Labels, *, na_rm: bool
) -> ValueRows:
    """One row for each metric of a spec, label and group cell; values that are not compared are left out of it."""
    rows = _Rows(plan, values, group_cells, labels)
    numbers = {name: of_metrics[rows.requested] for name, of_metrics in plan.numbers.items()}
    min_n, min_share = numbers.pop("min_n"), numbers.pop("min_share")
    states = _States(
        rows, group_cells,
        too_few=rows["denominator"] < min_n if plan.numbers["min_n"].any() else None,
        too_rare=rows.shares < min_share if plan.numbers["min_share"].any() else None,
        na_rm=na_rm, unseen=labels.unseen,
    )  # fmt: skip
    is_reference = np.zeros(len(rows.requested), dtype=bool)
    for index, aggregate in plan.aggregates.items():
        spec, reference = plan.specs[index], aggregate.reference
        if spec.by is not None and reference is not None:
            named = group_cells.find(spec.by, reference, spec.name)
            is_reference |= (numbers["spec"] == index) & np.isin(rows.group_cell, named)
    extra = {name: rows[name] for of_formula in values for name in of_formula.extra}
    arrays = {
        **numbers,
        "requested": rows.requested,
        GROUP_CELL: rows.group_cell,
        LEVEL: rows.level,
        "outer": rows.outer,
        STATE: states.codes,
        "estimate": states.compared,
        "denominator": rows["denominator"],
        "weight": rows["weight"],
        "size": _without(rows["size"], states.excluded),
        "is_reference": is_reference,
        # rows beside suppressed cells say nothing about the size of a group
        "n": _without(rows["n"], states.suppressed),
        **extra,
    }
    listed = ~group_cells.unlisted[rows.group_cell]

    def frame() -> pl.DataFrame:
        columns = {
            **{name: pl.Series(arrays[name], dtype=dtype) for name, dtype in _INTEGERS.items()},
            "min_n": min_n,
            "min_share": min_share,
            **plan.texts[pl.Series(rows.requested)].to_dict(),
            "text": group_cells.text[rows.group_cell],
            "excluded": states.excluded,
            "status": pl.Series(states.texts(), dtype=pl.String),
            "estimate": _numbers(states.compared),
            "rate": _numbers(states.shown),
            "n": _whole_numbers(rows["n"], states.suppressed),
            "denominator": _whole_numbers(rows["denominator"], states.suppressed),
            "counted_rows": _whole_numbers(rows["denominator"], None),
            "rows": _whole_numbers(rows["rows"], None),
            "share": _numbers(rows.shares),
            "weight": rows["weight"],
            "size": _numbers(arrays["size"]),
            "is_reference": is_reference,
            **{name: _numbers(column) for name, column in extra.items()},
        }
        return pl.DataFrame(columns).filter(pl.Series(listed))

    def names() -> Array:
        return plan.texts["name"].to_numpy()[rows.requested]

    if listed.all():
        return ValueRows(arrays, frame, name=names, status=states.texts)
    return ValueRows({name: column[listed] for name, column in arrays.items()}, frame)


class _Rows:
    """The rows of each metric of a spec: one for each label and group cell, in runs of consecutive rows."""

    def __init__(self, plan: EvaluationPlan, values: Sequence[Values], group_cells: GroupCells, labels: Labels) -> None:
        self.values, self._group_cells, self._columns = values, group_cells, dict[str, Array]()
        # the values of all formulas follow each other label by label
        self._starts = [0, *itertools.accumulate(of_formula.estimate.size for of_formula in values)]
        count, indices = len(group_cells.outer), [*group_cells.indices.values()]
        columns: list[tuple[Integers, Integers, Integers, Integers]] = []
        for metric in plan.requested:
            average, number_of_labels = metric.average, values[metric.distinct].estimate.shape[1]
            index = indices[plan.by_of_spec[metric.spec]]
            size = len(index.example)
            position = np.arange(number_of_labels * size, dtype=np.int32)
            if average is DISTRIBUTION_BY_LABEL:
                # the labels of a group together, not the groups of a label
                group_cell, label = np.divmod(position, np.int32(number_of_labels))
            else:
                label, group_cell = np.divmod(position, np.int32(size))
            group_cell += np.int32(index.first)
            levels = labels.levels_of(average) if average.shows_label else [NO_LEVEL] * number_of_labels
            source = self._starts[metric.distinct] + label * np.int64(count) + group_cell
            columns.append((group_cell, source, label, np.array(levels, dtype=np.int32)[label]))
        self.group_cell, self.source, self.label, self.level = map(np.concatenate, zip(*columns, strict=True))
        sizes = [len(group_cell) for group_cell, *_ in columns]
        self.requested: Integers = np.arange(len(sizes), dtype=np.int32).repeat(sizes)
        """The number of the metric of a spec that each row belongs to."""

    def __getitem__(self, name: str) -> Array:
        """A column of values, made on demand; nan for formulas that do not have it."""
        if name not in self._columns:
            by_label: list[Array] = []
            for values in self.values:
                of_formula: Array = getattr(values, name) if name in COLUMNS else values.extra.get(name, _UNKNOWN)
                if of_formula.shape != values.estimate.shape:
                    of_formula = np.broadcast_to(of_formula, values.estimate.shape)
                by_label.append(of_formula.T.ravel())
            self._columns[name] = np.concatenate(by_label)[self.source]
        return self._columns[name]

    def reasons(self, rows: Integers) -> Array:
        """The reasons why some rows have no value."""
        reasons, source = np.empty(len(rows), dtype=object), self.source[rows]
        number = np.searchsorted(self._starts, source, side="right") - 1
        for index in np.bincount(number).nonzero()[0].tolist():
            values, chosen = self.values[index], number == index
            label, cell = np.divmod(source[chosen] - self._starts[index], len(values.estimate))
            reasons[chosen] = np.broadcast_to(values.reason, values.estimate.shape)[cell, label]
        return reasons

    @property
    def outer(self) -> Integers:
        """The outer group of each row."""
        return self._group_cells.outer[self.group_cell]

    @cached_property
    def shares(self) -> Array:
        """The share of each group in the rows of all groups that are compared, and of those that are unknown."""
        if self._group_cells.outer_rows is not None:
            return self["n"] / self._group_cells.outer_rows[self.outer]
        number, label, outer = self.requested.astype(np.int64), self.label, self.outer
        code = (number * (label.max(initial=0) + 1) + label) * (outer.max(initial=0) + 1) + outer
        _, run = np.unique(code, return_inverse=True)
        with np.errstate(invalid="ignore"):
            return self["n"] / np.bincount(run, np.nan_to_num(self["n"]))[run]


class _States:
    """The statuses of rows, and the values they leave."""

    def __init__(
        self, rows: _Rows, group_cells: GroupCells, *,
        too_few: Booleans | None, too_rare: Booleans | None, na_rm: bool, unseen: bool,
    ) -> None:  # fmt: skip
        excluded = group_cells.excluded[rows.group_cell]
        # an event that does not occur may be a slip, so that nothing has a value
        estimate = np.full(len(excluded), np.nan) if unseen else rows["estimate"]
        (undefined,) = np.isnan(estimate).nonzero()
        reasons = rows.reasons(undefined) if len(undefined) else np.array([], dtype=object)
        suppressed = np.zeros(len(excluded), dtype=bool)
        suppressed[undefined] = reasons == Status.SUPPRESSED.value
        codes = np.full(len(excluded), Status.OK.code, dtype=np.int8)
        # the last status that applies counts
        if any(values.levels_left_out.any() for values in rows.values):
            codes[rows["levels_left_out"]] = Status.LEVELS_LEFT_OUT.code
        codes[np.isinf(estimate)] = Status.INFINITE.code
        codes[undefined] = UNDEFINED
        left_out = suppressed | excluded
        masks = {
            Status.BELOW_MIN_SHARE: too_rare,
            Status.BELOW_MIN_N: too_few,
            Status.SUPPRESSED: suppressed,
            Status.MISSING_VALUES: None if na_rm else rows["rows"] > rows["n"],
        }
        for status, mask in masks.items():
            if mask is not None:
                codes[mask] = status.code
                left_out |= mask
        if unseen:
            codes[:] = UNDEFINED
            reasons[:] = Status.UNSEEN_EVENT.value
        else:
            reasons[rows["n"][undefined] == 0] = Status.ZERO_DENOMINATOR.value
        codes[excluded] = Status.LEFT_OUT.code
        codes[group_cells.unknown[rows.group_cell]] = Status.UNKNOWN.code
        self.codes, self.suppressed, self.excluded = codes, suppressed, excluded
        """The status of each row as the code of its `Status`, or `UNDEFINED`; and masks."""
        self.compared, self.shown = _without(estimate, left_out), _without(estimate, suppressed)
        """The values that are compared, and those of all groups whose size is not hidden; nan for the others."""
        self._undefined, self._reasons = undefined, reasons
        """The rows without a value, and why."""

    def texts(self) -> Array:
        """The status of each row as results show it."""
        texts = np.array([*TEXTS, ""], dtype=object)[self.codes]
        is_undefined = self.codes[self._undefined] == UNDEFINED
        texts[self._undefined[is_undefined]] = self._reasons[is_undefined]
        return texts


def _numbers(values: Array) -> pl.Series:
    """Numbers, with null for missing ones."""
    return pl.Series(values, dtype=pl.Float64, nan_to_null=True)


def _whole_numbers(values: Array, hidden: Booleans | None) -> pl.Series:
    """Numbers of rows, null where hidden; floats only if a formula counts fractions of rows."""
    numbers = pl.Series(values, nan_to_null=True)
    if not (np.where(np.isnan(values), 0, values) % 1).any():
        numbers = numbers.cast(pl.Int64)
    if hidden is not None and hidden.any():
        numbers = numbers.set(pl.Series(hidden), None)
    return numbers


def _without(values: Array, excluded: Booleans) -> Array:
    """Numbers, nan where they do not count."""
    return np.where(excluded, np.nan, values) if excluded.any() else values
