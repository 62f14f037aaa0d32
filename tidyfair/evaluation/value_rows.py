"""The values of formulas as rows: one for each metric of a spec, label and group cell, with its status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.evaluator import RequestedFormula
from tidyfair.evaluation.group_cells import GroupCells
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.states import NO_LEVEL, PART, TEXTS, UNDEFINED
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.evaluation.values import COLUMNS, Values
from tidyfair.specs.averages import DISTRIBUTION_BY_LABEL, Average
from tidyfair.specs.formulas import Formula
from tidyfair.specs.metric_specs import MetricSpec
from tidyfair.specs.segments import Array, Booleans, Integers

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


class ValueRows:
    """The values of all specs by column: as arrays, and as a frame with texts, built on demand."""

    def __init__(self, arrays: Mapping[str, Array], frame: Callable[[], pl.DataFrame]) -> None:
        self._arrays = dict(arrays)
        self._has_arrays = bool(arrays)
        self._frame = frame

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
            is_state = name == STATE
            self._arrays[name] = _codes_of(self.frame["status"]) if is_state else self.frame[name].to_numpy()
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
    group_cells: GroupCells,
    labels: Labels,
    *,
    na_rm: bool,
) -> ValueRows:
    """One row for each metric of a spec, label and group cell; values that are not compared are left out of it."""
    runs = _Runs.of(requested, values, specs, group_cells, labels)
    columns = _Columns(list(values.values()), runs.source)
    formula_index: dict[Formula, int] = {}
    formula_of_metric = [formula_index.setdefault(metric.formula, len(formula_index)) for metric in requested]
    policies = [specs[metric.spec].policy for metric in requested]
    spec = runs.to_rows([metric.spec for metric in requested])
    min_n = runs.to_rows([policy.min_n for policy in policies])
    min_share = runs.to_rows([policy.min_share for policy in policies])
    share = _shares(columns["n"], runs, group_cells) if min_share.any() else None
    states = _States.of(
        columns, group_cells, runs.group_cell,
        too_few=columns["denominator"] < min_n if min_n.any() else None,
        too_rare=None if share is None else share < min_share,
        na_rm=na_rm, unseen=labels.unseen,
    )  # fmt: skip
    arrays = {
        "spec": spec,
        "requested": runs.number,
        PART: runs.to_rows([metric.part for metric in requested]),
        GROUP_CELL: runs.group_cell,
        LEVEL: runs.level,
        "metric": runs.to_rows(formula_of_metric),
        "outer": group_cells.outer[runs.group_cell],
        STATE: states.codes,
        "estimate": states.compared,
        "denominator": columns["denominator"],
        "weight": columns["weight"],
        "size": _without(columns["size"], states.excluded),
        "is_reference": _references(specs, group_cells, spec, runs.group_cell),
    }
    extra = {name: columns[name] for name in columns.extra}

    def frame() -> pl.DataFrame:
        integers = {name: pl.Series(arrays[name], dtype=dtype) for name, dtype in _INTEGERS.items()}
        names = pl.Series([metric.name for metric in requested], dtype=pl.String)
        estimators = pl.Series([metric.average.name for metric in requested], dtype=pl.String)
        numbers = dict(zip(extra, map(_numbers, extra.values()), strict=True))
        return pl.DataFrame(
            {
                **integers,
                "min_n": min_n,
                "min_share": min_share,
                "name": names[runs.number],
                "estimator": estimators[runs.number],
                "text": group_cells.text[runs.group_cell],
                "excluded": states.excluded,
                "status": states.texts,
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

    rows = ValueRows(arrays | extra | {"n": _without(columns["n"], states.suppressed)}, frame)
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
    sizes: list[int]
    """The number of rows of each metric of a spec."""

    @classmethod
    def of(
        cls,
        requested: Sequence[RequestedFormula],
        values: Mapping[tuple[Formula, Average], Values],
        specs: Sequence[MetricSpec],
        group_cells: GroupCells,
        all_labels: Labels,
    ) -> _Runs:
        starts: dict[tuple[Formula, Average], int] = {}
        start = 0
        for key, of_formula in values.items():
            starts[key] = start
            start += of_formula.estimate.size
        count = len(group_cells.outer)
        group_cell: list[Integers] = []
        source: list[Integers] = []
        label: list[Integers] = []
        level: list[Array] = []
        for metric in requested:
            key = metric.formula, metric.average
            first, size = group_cells.spans[specs[metric.spec].by]
            labels = values[key].estimate.shape[1]
            if metric.average is DISTRIBUTION_BY_LABEL:
                # the labels of a group together, not the groups of a label
                own_group, own_label = np.indices((size, labels))
            else:
                own_label, own_group = np.indices((labels, size))
            group_cell.append(first + own_group.ravel())
            label.append(own_label.ravel())
            source.append(starts[key] + label[-1] * count + group_cell[-1])
            if metric.average.shows_label:
                level.append(np.array(all_labels.levels_of(metric.average))[label[-1]])
            else:
                level.append(np.full(len(label[-1]), NO_LEVEL))
        sizes = list(map(len, group_cell))
        levels = np.concatenate(level).astype(np.int32)
        return cls(np.concatenate(group_cell), np.concatenate(source), np.concatenate(label), levels, sizes)

    def to_rows(self, numbers: Sequence[float]) -> Array:
        """The numbers of the metrics of specs, repeated for each row."""
        is_whole = all(isinstance(number, int) for number in numbers)
        return np.repeat(np.array(numbers, dtype=np.int32 if is_whole else float), self.sizes)

    @property
    def number(self) -> Integers:
        """The number of the metric of a spec that each row belongs to."""
        return self.to_rows(range(len(self.sizes)))


class _Columns:
    """The columns of the values of all rows, built on demand."""

    def __init__(self, values: Sequence[Values], source: Integers) -> None:
        self._values = values
        self._source = source
        self._columns: dict[str, Array] = {}

    @property
    def extra(self) -> list[str]:
        """The names of the columns that only some formulas have."""
        names: dict[str, None] = {}
        for values in self._values:
            names |= dict.fromkeys(values.extra)
        return list(names)

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            by_label: list[Array] = []
            for values in self._values:
                if name in COLUMNS:
                    of_formula = getattr(values, name)
                else:
                    of_formula = values.extra.get(name, np.full(values.estimate.shape, np.nan))
                by_label.append(of_formula.T.ravel())
            self._columns[name] = np.concatenate(by_label)[self._source]
        return self._columns[name]

    def reasons(self, rows: Integers) -> list[str]:
        """The reasons why some rows have no value."""
        ends = np.cumsum([values.estimate.size for values in self._values])
        source = self._source[rows]
        of_formula = np.searchsorted(ends, source, side="right")
        reasons = np.empty(len(rows), dtype=object)
        for number, values in enumerate(self._values):
            chosen = of_formula == number
            label, cell = np.divmod(source[chosen] - ends[number] + values.estimate.size, len(values.estimate))
            reasons[chosen] = values.reason[cell, label]
        return reasons.tolist()

    def any(self, name: str) -> bool:
        """Check whether a column of masks holds anywhere."""
        return any(getattr(values, name).any() for values in self._values)


def _shares(rows: Array, runs: _Runs, group_cells: GroupCells) -> Array:
    """The share of each group in the rows of all groups that are compared, and of those that are unknown."""
    number, label, outer = runs.number, runs.label, group_cells.outer[runs.group_cell]
    code = (number.astype(np.int64) * (label.max(initial=0) + 1) + label) * (outer.max(initial=0) + 1) + outer
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
    reasons: list[str]
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
        excluded, none = group_cells.excluded[group_cell], np.zeros(len(group_cell), dtype=bool)
        # an event that does not occur may be a slip, so that nothing has a value
        estimate = np.full(len(excluded), np.nan) if unseen else columns["estimate"]
        undefined = np.flatnonzero(np.isnan(estimate))
        reasons = columns.reasons(undefined)
        suppressed = np.zeros(len(excluded), dtype=bool)
        suppressed[undefined] = [reason == Status.SUPPRESSED.value for reason in reasons]
        incomplete = none if na_rm else columns["rows"] > columns["n"]
        too_few, too_rare = (none if mask is None else mask for mask in (too_few, too_rare))
        codes = np.full(len(excluded), Status.OK.code, dtype=np.int8)
        # the last status that applies counts
        if columns.any("levels_left_out"):
            codes[columns["levels_left_out"]] = Status.LEVELS_LEFT_OUT.code
        codes[np.isinf(estimate)] = Status.INFINITE.code
        codes[undefined] = UNDEFINED
        codes[too_rare] = Status.BELOW_MIN_SHARE.code
        codes[too_few] = Status.BELOW_MIN_N.code
        codes[suppressed] = Status.SUPPRESSED.code
        codes[incomplete] = Status.MISSING_VALUES.code
        if unseen:
            codes[:] = UNDEFINED
            reasons = [Status.UNSEEN_EVENT.value] * len(undefined)
        else:
            for index in np.flatnonzero(columns["n"][undefined] == 0):
                reasons[index] = Status.ZERO_DENOMINATOR.value
        codes[excluded] = Status.LEFT_OUT.code
        codes[group_cells.unknown[group_cell]] = Status.UNKNOWN.code
        left_out = too_few | too_rare | suppressed | incomplete | excluded
        return cls(
            codes=codes,
            undefined=undefined,
            reasons=reasons,
            compared=_without(estimate, left_out),
            shown=_without(estimate, suppressed),
            suppressed=suppressed,
            excluded=excluded,
        )

    @property
    def texts(self) -> pl.Series:
        """The status of each row as results show it."""
        texts = np.array([*TEXTS, ""], dtype=object)[self.codes]
        is_undefined = self.codes[self.undefined] == UNDEFINED
        texts[self.undefined[is_undefined]] = np.array(self.reasons, dtype=object)[is_undefined]
        return pl.Series(texts, dtype=pl.String)


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
