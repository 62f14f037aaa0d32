"""The values of formulas as rows: one for each metric of a spec, label and group cell, with its status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.evaluator import RequestedFormula
from tidyfair.evaluation.group_cells import GroupCells
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.states import NO_LEVEL, PART, TEXTS, UNDEFINED
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.evaluation.values import COLUMNS, Values
from tidyfair.specs import DISTRIBUTION_BY_LABEL, Array, Average, Booleans, Integers, MetricSpec
from tidyfair.specs.formulas import Formula

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


class ValueRows:
    """The values of all specs by column: as arrays, and as a frame with texts, built on demand.

    Columns of texts are built on demand, too, by the functions of `texts`.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        frame: Callable[[], pl.DataFrame],
        texts: Mapping[str, Callable[[], Array]] | None = None,
    ) -> None:
        self._arrays = dict(arrays)
        self._has_arrays = bool(arrays)
        self._frame = frame
        self._texts = texts or {}

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ValueRows:
        """The rows of a frame."""
        return cls({}, lambda: frame)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """All columns as a frame."""
        return self._frame()

    def without(self, unlisted: Booleans) -> ValueRows:
        """The rows outside a mask."""
        kept = ~unlisted
        arrays = {name: values[kept] for name, values in self._arrays.items()}
        return ValueRows(arrays, lambda: self.frame.filter(pl.Series(kept)))

    def array(self, name: str) -> Array:
        """A column as an array; numbers that are null are nan."""
        if name not in self._arrays:
            if name in self._texts:
                self._arrays[name] = self._texts[name]()
            elif name == STATE:
                self._arrays[name] = _codes_of(self.frame["status"])
            else:
                self._arrays[name] = self.frame[name].to_numpy()
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        """Check for a column that only some calls have."""
        return name in self._arrays or (not self._has_arrays and name in self.frame.columns)


def _codes_of(status: pl.Series) -> Integers:
    """Statuses as codes, and `UNDEFINED` for free text."""
    codes = range(len(TEXTS))
    return status.replace_strict(TEXTS, codes, default=UNDEFINED, return_dtype=pl.Int64).to_numpy()


def value_rows(
    requested: Sequence[RequestedFormula],
    values: Mapping[tuple[Formula, Average], Values],
    specs: Sequence[MetricSpec],
    by_of_spec: Sequence[int],
    group_cells: GroupCells,
    labels: Labels,
    *,
    na_rm: bool,
) -> ValueRows:
    """One row for each metric of a spec, label and group cell; values that are not compared are left out of it."""
    runs = _Runs.of(requested, values, by_of_spec, group_cells, labels)
    columns = _Columns(list(values.values()), runs.source)
    number_of_formula: dict[Formula, int] = {}
    for metric in requested:
        number_of_formula.setdefault(metric.formula, len(number_of_formula))

    def to_rows(numbers: Sequence[float], dtype: type[Any] = np.int32) -> Array:
        """The numbers of the requested metrics as those of rows."""
        return np.array(numbers, dtype=dtype)[runs.requested]

    policies = [specs[metric.spec].policy for metric in requested]
    min_n, min_share = [policy.min_n for policy in policies], [policy.min_share for policy in policies]
    states = _States.of(
        columns, group_cells, runs.group_cell,
        too_few=columns["denominator"] < to_rows(min_n) if any(min_n) else None,
        too_rare=_shares(columns["n"], runs, group_cells) < to_rows(min_share, float) if any(min_share) else None,
        na_rm=na_rm, unseen=labels.unseen,
    )  # fmt: skip
    spec = to_rows([metric.spec for metric in requested])
    names = np.array([metric.name for metric in requested], dtype=object)
    arrays = {
        "spec": spec,
        "requested": runs.requested,
        PART: to_rows([metric.part for metric in requested]),
        GROUP_CELL: runs.group_cell,
        LEVEL: runs.level,
        "metric": to_rows([number_of_formula[metric.formula] for metric in requested]),
        "outer": group_cells.outer[runs.group_cell],
        STATE: states.codes,
        "estimate": states.compared,
        "denominator": columns["denominator"],
        "weight": columns["weight"],
        "size": _without(columns["size"], states.excluded),
        "is_reference": _references(specs, group_cells, spec, runs.group_cell),
    }
    extra = columns.extra

    def frame() -> pl.DataFrame:
        integers = {name: pl.Series(arrays[name], dtype=dtype) for name, dtype in _INTEGERS.items()}
        estimators = pl.Series([metric.average.name for metric in requested], dtype=pl.String)
        numbers = dict(zip(extra, map(_numbers, extra.values()), strict=True))
        return pl.DataFrame(
            {
                **integers,
                "min_n": to_rows(min_n),
                "min_share": to_rows(min_share, float),
                "name": pl.Series(names, dtype=pl.String)[runs.requested],
                "estimator": estimators[runs.requested],
                "text": group_cells.text[runs.group_cell],
                "excluded": states.excluded,
                "status": pl.Series(states.texts(), dtype=pl.String),
                "estimate": _numbers(states.compared),
                "rate": _numbers(states.shown),
                # rows beside suppressed cells say nothing about the size of a group
                "n": _whole_numbers(columns["n"], states.suppressed),
                "denominator": _whole_numbers(columns["denominator"], states.suppressed),
                "counted_rows": _whole_numbers(columns["denominator"], None),
                "rows": _whole_numbers(columns["rows"], None),
                "share": _numbers(_shares(columns["n"], runs, group_cells)),
                "weight": columns["weight"],
                "size": _numbers(arrays["size"]),
                "is_reference": arrays["is_reference"],
                **numbers,
            }
        )

    texts = {"name": lambda: names[runs.requested], "status": states.texts}
    rows = ValueRows(arrays | extra | {"n": _without(columns["n"], states.suppressed)}, frame, texts)
    unlisted = group_cells.unlisted[runs.group_cell]
    return rows.without(unlisted) if unlisted.any() else rows


@dataclass(frozen=True, eq=False)
class _Runs:
    """The rows of each metric of a spec: one for each label and group cell, in runs of consecutive rows."""

    group_cell: Integers
    """The group cell of each row."""
    source: Integers
    """The index of each row among the values of all formulas, which follow each other label by label."""
    label: Integers
    """The index of the label of each row among those of its formula."""
    level: Integers
    """The label of each row, for metrics that results show a label for."""
    requested: Integers
    """The number of the metric of a spec that each row belongs to."""

    @classmethod
    def of(
        cls,
        requested: Sequence[RequestedFormula],
        values: Mapping[tuple[Formula, Average], Values],
        by_of_spec: Sequence[int],
        group_cells: GroupCells,
        all_labels: Labels,
    ) -> _Runs:
        """The rows of the requested formulas, in their order."""
        starts: dict[tuple[Formula, Average], tuple[int, Values]] = {}
        start = 0
        for key, of_formula in values.items():
            starts[key] = start, of_formula
            start += of_formula.estimate.size
        count = len(group_cells.outer)
        group_cells_of_spans = np.arange(count, dtype=np.int32)
        spans = [*group_cells.spans.values()]
        columns: list[tuple[Integers, Integers, Integers, Integers]] = []
        for metric in requested:
            average = metric.average
            start, of_formula = starts[metric.formula, average]
            labels = of_formula.estimate.shape[1]
            first, size = spans[by_of_spec[metric.spec]]
            group_cell, label = group_cells_of_spans[first : first + size], np.zeros(size, dtype=np.int32)
            if labels > 1:
                label, group_cell = np.repeat(np.arange(labels, dtype=np.int32), size), np.tile(group_cell, labels)
            if labels > 1 and average is DISTRIBUTION_BY_LABEL:
                # the labels of a group together, not the groups of a label
                label, group_cell = (values.reshape(labels, size).T.ravel() for values in (label, group_cell))
            level = np.full(len(label), NO_LEVEL, dtype=np.int32)
            if average.shows_label:
                level = np.array(all_labels.levels_of(average))[label]
            source = group_cell + np.int64(start)
            columns.append((group_cell, source + label * np.int64(count) if labels > 1 else source, label, level))
        group_cells_of_rows, source, labels_of_rows, levels = map(np.concatenate, zip(*columns, strict=True))
        sizes = [len(group_cell) for group_cell, *_ in columns]
        number = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        return cls(group_cells_of_rows, source, labels_of_rows, levels.astype(np.int32), number)


class _Columns:
    """The columns of the values of all rows, built on demand."""

    def __init__(self, values: Sequence[Values], source: Integers) -> None:
        self._values = values
        self._source = source
        self._columns: dict[str, Array] = {}

    @property
    def extra(self) -> dict[str, Array]:
        """The columns that only some formulas have."""
        extra: dict[str, Array] = {}
        for values in self._values:
            for name in values.extra:
                extra[name] = self[name]
        return extra

    @property
    def levels_left_out(self) -> Booleans | None:
        """The averages that leave out labels without a value, as a mask; None if there are none."""
        for values in self._values:
            if values.levels_left_out.any():
                return self["levels_left_out"]
        return None

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            by_label: list[Array] = []
            for values in self._values:
                of_formula: Array = getattr(values, name) if name in COLUMNS else values.extra.get(name, _UNKNOWN)
                if of_formula.shape != values.estimate.shape:
                    of_formula = np.broadcast_to(of_formula, values.estimate.shape)
                by_label.append(of_formula.T.ravel())
            self._columns[name] = np.concatenate(by_label)[self._source]
        return self._columns[name]

    def reasons(self, rows: Integers) -> Array:
        """The reasons why some rows have no value."""
        reasons = np.empty(len(rows), dtype=object)
        source, start = self._source[rows], 0
        for values in self._values:
            end = start + values.estimate.size
            chosen = (source >= start) & (source < end)
            if chosen.any():
                label, cell = np.divmod(source[chosen] - start, len(values.estimate))
                reasons[chosen] = np.broadcast_to(values.reason, values.estimate.shape)[cell, label]
            start = end
        return reasons


def _shares(rows: Array, runs: _Runs, group_cells: GroupCells) -> Array:
    """The share of each group in the rows of all groups that are compared, and of those that are unknown."""
    if group_cells.outer_rows is not None:
        return rows / group_cells.outer_rows[group_cells.outer[runs.group_cell]]
    number, label, outer = runs.requested.astype(np.int64), runs.label, group_cells.outer[runs.group_cell]
    code = (number * (label.max(initial=0) + 1) + label) * (outer.max(initial=0) + 1) + outer
    _, run = np.unique(code, return_inverse=True)
    with np.errstate(invalid="ignore"):
        return rows / np.bincount(run, np.nan_to_num(rows))[run]


@dataclass(frozen=True, eq=False)
class _States:
    """The statuses of rows, and the values they leave."""

    codes: Integers
    """The status of each row as the code of its `Status`, or `UNDEFINED`."""
    undefined: Integers
    """The rows without a value."""
    reasons: Array
    """The reasons of rows without a value."""
    compared: Array
    """The values that are compared; nan for the others."""
    shown: Array
    """The values of all groups whose size is not hidden."""
    suppressed: Booleans
    excluded: Booleans

    @classmethod
    def of(
        cls, columns: _Columns, group_cells: GroupCells, group_cell: Integers, *,
        too_few: Booleans | None, too_rare: Booleans | None, na_rm: bool, unseen: bool,
    ) -> _States:  # fmt: skip
        excluded = group_cells.excluded[group_cell]
        # an event that does not occur may be a slip, so that nothing has a value
        estimate = np.full(len(excluded), np.nan) if unseen else columns["estimate"]
        undefined = np.flatnonzero(np.isnan(estimate))
        reasons = columns.reasons(undefined)
        suppressed = np.zeros(len(excluded), dtype=bool)
        suppressed[undefined] = reasons == Status.SUPPRESSED.value
        codes = np.full(len(excluded), Status.OK.code, dtype=np.int8)
        # the last status that applies counts
        if (levels_left_out := columns.levels_left_out) is not None:
            codes[levels_left_out] = Status.LEVELS_LEFT_OUT.code
        codes[np.isinf(estimate)] = Status.INFINITE.code
        codes[undefined] = UNDEFINED
        left_out = suppressed | excluded
        masks = {
            Status.BELOW_MIN_SHARE: too_rare,
            Status.BELOW_MIN_N: too_few,
            Status.SUPPRESSED: suppressed,
            Status.MISSING_VALUES: None if na_rm else columns["rows"] > columns["n"],
        }
        for status, mask in masks.items():
            if mask is not None:
                codes[mask] = status.code
                left_out |= mask
        if unseen:
            codes[:] = UNDEFINED
            reasons[:] = Status.UNSEEN_EVENT.value
        else:
            reasons[columns["n"][undefined] == 0] = Status.ZERO_DENOMINATOR.value
        codes[excluded] = Status.LEFT_OUT.code
        codes[group_cells.unknown[group_cell]] = Status.UNKNOWN.code
        return cls(
            codes=codes,
            undefined=undefined,
            reasons=reasons,
            compared=_without(estimate, left_out),
            shown=_without(estimate, suppressed),
            suppressed=suppressed,
            excluded=excluded,
        )

    def texts(self) -> Array:
        """The status of each row as results show it."""
        texts = np.array([*TEXTS, ""], dtype=object)[self.codes]
        is_undefined = self.codes[self.undefined] == UNDEFINED
        texts[self.undefined[is_undefined]] = self.reasons[is_undefined]
        return texts


def _references(specs: Sequence[MetricSpec], group_cells: GroupCells, spec: Integers, group_cell: Integers) -> Booleans:
    """The rows of groups that the user named as references, as a mask."""
    is_reference = np.zeros(len(group_cell), dtype=bool)
    for index, member in enumerate(specs):
        reference = member.aggregate.reference if member.aggregate else None
        if member.by is not None and reference is not None:
            named = group_cells.find(member.by, reference, member.name)
            is_reference |= (spec == index) & np.isin(group_cell, named)
    return is_reference


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
