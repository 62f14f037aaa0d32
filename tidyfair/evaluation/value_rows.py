"""The values of formulas as rows: one for each metric of a spec, label and group cell, with its state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.errors import Status
from tidyfair.evaluation.states import NO_LEVEL, PART, UNDEFINED
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.specs.metric_specs import ALL_LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tidyfair.evaluation.evaluator import Asked
    from tidyfair.evaluation.group_cells import GroupCells
    from tidyfair.evaluation.labels import Labels
    from tidyfair.evaluation.values import Values
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.segments import Array, Booleans, Integers

__all__: list[str] = []

STATE = "state"
"""The column of the state of each row as the code of its `Status`, or `UNDEFINED`."""
_INTEGERS = {
    "spec": pl.Int32, PART: pl.Int8, GROUP_CELL: pl.Int32, LEVEL: pl.Int32, "metric": pl.Int32, "outer": pl.Int32,
}  # fmt: skip
_COLUMNS = ("estimate", "n", "denominator", "weight", "size", "rows", "reason", "levels_left_out")
_BY_LABEL = ("one_vs_rest", ALL_LABELS)
"""Estimators that results show a label for."""


class ValueRows:
    """The values of all specs by column: as arrays for what only compares numbers, and as a frame."""

    def __init__(self, arrays: Mapping[str, Array], frame: Callable[[], pl.DataFrame]) -> None:
        self._arrays = dict(arrays)
        self._made_of_arrays = bool(arrays)
        self._frame = frame

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ValueRows:
        """The rows of a frame."""
        return cls({}, lambda: frame)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The values with everything that is known of them."""
        return self._frame()

    def array(self, name: str) -> Array:
        """A column as an array; numbers that are null are nan."""
        if name not in self._arrays:
            self._arrays[name] = _codes_of(self.frame["status"]) if name == STATE else self.frame[name].to_numpy()
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        """Whether there is a column of numbers that is not always there."""
        return name in self._arrays or (not self._made_of_arrays and name in self.frame.columns)


def _codes_of(status: pl.Series) -> Integers:
    """Statuses as codes, and `UNDEFINED` for free text."""
    codes = {known.value: known.code for known in Status}
    return status.replace_strict(codes, default=UNDEFINED, return_dtype=pl.Int64).to_numpy()


def value_rows(
    asked: Sequence[Asked],
    values: Mapping[tuple[Formula, str], Values],
    specs: Sequence[MetricSpec],
    group_cells: GroupCells,
    labels: Labels,
    *,
    na_rm: bool,
) -> ValueRows:
    """One row for each metric of a spec, label and group cell; values that are not compared are left out of it."""
    runs = _Runs.of(asked, values, specs, group_cells)
    columns = _Columns(list(values.values()), runs.source)
    min_n = runs.spread([specs[each.spec].min_n for each in asked])
    states = _States.of(columns, group_cells.excluded[runs.group_cell], min_n, na_rm=na_rm, unseen=labels.unseen)
    formulas = {formula: number for number, formula in enumerate(dict.fromkeys(each.formula for each in asked))}
    spec = runs.spread([each.spec for each in asked])
    numbers = {
        "spec": spec,
        PART: runs.spread([each.part for each in asked]),
        GROUP_CELL: runs.group_cell,
        LEVEL: _levels(asked, values, labels, runs),
        "metric": runs.spread([formulas[each.formula] for each in asked]),
        "outer": group_cells.outer[runs.group_cell],
        STATE: states.codes,
        "estimate": states.compared,
        "weight": columns["weight"],
        "size": _without(columns["size"], states.excluded),
        "is_reference": _references(specs, group_cells, spec, runs.group_cell),
    }
    extra = {name: columns[name] for name in columns.extra}

    def frame() -> pl.DataFrame:
        return pl.DataFrame(
            {
                **{name: pl.Series(numbers[name], dtype=dtype) for name, dtype in _INTEGERS.items()},
                "min_n": min_n,
                "name": runs.spread_texts([each.name for each in asked]),
                "estimator": runs.spread_texts([each.estimator for each in asked]),
                "text": group_cells.text[runs.group_cell],
                "excluded": states.excluded,
                "status": states.texts,
                "estimate": _numbers(states.compared),
                "rate": _numbers(states.shown),
                # what is left of a group says nothing about it
                "n": _whole_numbers(columns["n"], states.suppressed),
                "denominator": _whole_numbers(columns["denominator"], states.suppressed),
                "about": _whole_numbers(columns["denominator"], None),
                "rows": _whole_numbers(columns["rows"], None),
                "weight": columns["weight"],
                "size": _numbers(numbers["size"]),
                "is_reference": numbers["is_reference"],
                **{name: _numbers(column) for name, column in extra.items()},
            }
        )

    return ValueRows(numbers | extra | {"n": _without(columns["n"], states.suppressed)}, frame)


@dataclass(frozen=True, eq=False)
class _Runs:
    """The rows of a metric of a spec and label stand together, one for each group cell."""

    group_cell: Integers
    """The group cell of each row."""
    source: Integers
    """Its index among the values of all formulas, which stand one below the other, label by label."""
    label: Integers
    """The index of its label among those of its formula."""
    sizes: list[int]
    """The number of rows of each metric of a spec."""

    @classmethod
    def of(
        cls,
        asked: Sequence[Asked],
        values: Mapping[tuple[Formula, str], Values],
        specs: Sequence[MetricSpec],
        group_cells: GroupCells,
    ) -> _Runs:
        import numpy as np

        begins: dict[tuple[Formula, str], int] = {}
        count, begin = len(group_cells.outer), 0
        for key, each in values.items():
            begins[key] = begin
            begin += each.estimate.size
        group_cell: list[Integers] = []
        source: list[Integers] = []
        label: list[Integers] = []
        for each in asked:
            key = (each.formula, each.estimator)
            first, size = group_cells.spans[specs[each.spec].by]
            labels = values[key].estimate.shape[1]
            # of distributions the labels of a group stand together, of everything else the groups of a label
            shape = (size, labels) if each.formula.given is not None else (labels, size)
            one, other = (axis.ravel() for axis in np.indices(shape))
            group, of_label = (first + one, other) if each.formula.given is not None else (first + other, one)
            group_cell.append(group)
            source.append(begins[key] + of_label * count + group)
            label.append(of_label)
        sizes = [len(part) for part in group_cell]
        return cls(np.concatenate(group_cell), np.concatenate(source), np.concatenate(label), sizes)

    def spread(self, numbers: Sequence[int]) -> Integers:
        """A number for each metric of a spec as one for each row."""
        import numpy as np

        return np.repeat(np.array(numbers, dtype=np.int32), self.sizes)

    def spread_texts(self, texts: Sequence[str]) -> pl.Series:
        """A text for each metric of a spec as one for each row."""
        return pl.Series(texts, dtype=pl.String)[self.spread(range(len(texts)))]


class _Columns:
    """What is known of the values of all rows; columns are put together when they are asked for."""

    def __init__(self, values: Sequence[Values], source: Integers) -> None:
        self._values = values
        self._source = source
        self._known: dict[str, Array] = {}

    @property
    def extra(self) -> list[str]:
        """The names of the columns that are not always there."""
        return list(dict.fromkeys(name for values in self._values for name in values.extra))

    def __getitem__(self, name: str) -> Array:
        import numpy as np

        if name not in self._known:
            parts = [self._part(values, name).T.ravel() for values in self._values]
            self._known[name] = np.concatenate(parts)[self._source]
        return self._known[name]

    @staticmethod
    def _part(values: Values, name: str) -> Array:
        import numpy as np

        if name in _COLUMNS:
            return getattr(values, name)
        return values.extra.get(name, np.full(values.estimate.shape, np.nan))

    def reasons(self, rows: Integers) -> list[str]:
        """Why some rows have no value."""
        import numpy as np

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
        """Whether a condition is met anywhere."""
        return any(getattr(values, name).any() for values in self._values)


def _levels(
    asked: Sequence[Asked], values: Mapping[tuple[Formula, str], Values], labels: Labels, runs: _Runs
) -> Integers:
    """The label that each row is about, where there is one for each."""
    import numpy as np

    read = {"truth": range(len(labels.values)), "estimate": range(len(labels.values))}
    levels, start = np.full(len(runs.group_cell), NO_LEVEL, dtype=np.int32), 0
    for each, size in zip(asked, runs.sizes, strict=True):
        own = np.array(read.get(str(each.formula.given), labels.levels))
        by_label = each.estimator in _BY_LABEL and values[each.formula, each.estimator].by_level
        if by_label and each.formula.given != "nothing":
            levels[start : start + size] = own[runs.label[start : start + size]]
        start += size
    return levels


@dataclass(frozen=True, eq=False)
class _States:
    """Why rows have no value, or are not compared."""

    codes: Integers
    """The state of each row as the code of its `Status`, or `UNDEFINED`."""
    undefined: Integers
    """The rows without a value."""
    reasons: list[str]
    """Why these have none."""
    compared: Array
    """The values that count where groups are compared; nan for the others."""
    shown: Array
    """The values of all groups whose size is not hidden."""
    suppressed: Booleans
    excluded: Booleans

    @classmethod
    def of(cls, columns: _Columns, excluded: Booleans, min_n: Integers, *, na_rm: bool, unseen: bool) -> _States:
        import numpy as np

        nowhere = np.broadcast_to(np.array(False), excluded.shape)  # noqa: FBT003 - an array
        # of an event that does not occur nothing is known, because it may be a slip
        estimate = np.full(len(excluded), np.nan) if unseen else columns["estimate"]
        undefined = np.flatnonzero(np.isnan(estimate))
        reasons = columns.reasons(undefined)
        suppressed = np.zeros(len(excluded), dtype=bool)
        suppressed[undefined] = [reason == Status.SUPPRESSED for reason in reasons]
        incomplete = nowhere if na_rm else columns["rows"] > columns["n"]
        too_few = columns["denominator"] < min_n if min_n.any() else nowhere
        codes = np.full(len(excluded), Status.OK.code, dtype=np.int8)
        # of those that apply the last one counts
        if columns.any("levels_left_out"):
            codes[columns["levels_left_out"]] = Status.LEVELS_LEFT_OUT.code
        codes[np.isinf(estimate)] = Status.INFINITE.code
        codes[undefined] = UNDEFINED
        codes[too_few] = Status.BELOW_MIN_N.code
        codes[suppressed] = Status.SUPPRESSED.code
        codes[incomplete] = Status.MISSING_VALUES.code
        if unseen:
            codes[:] = UNDEFINED
            reasons = [Status.UNSEEN_EVENT] * len(undefined)
        else:
            for index in np.flatnonzero(columns["n"][undefined] == 0):
                reasons[index] = Status.ZERO_DENOMINATOR
        codes[excluded] = Status.LEFT_OUT.code
        left_out = too_few | suppressed | incomplete | excluded
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
        """The state of each row in words."""
        import numpy as np

        texts = np.array([*(status.value for status in Status), ""], dtype=object)[self.codes]
        is_undefined = self.codes[self.undefined] == UNDEFINED
        texts[self.undefined[is_undefined]] = np.array(self.reasons, dtype=object)[is_undefined]
        return pl.Series(texts, dtype=pl.String)


def _references(specs: Sequence[MetricSpec], group_cells: GroupCells, spec: Integers, group_cell: Integers) -> Booleans:
    """Whether each row is of the group that the user named to be compared with."""
    import numpy as np

    is_reference = np.zeros(len(group_cell), dtype=bool)
    for number, each in enumerate(specs):
        if each.by is not None and each.aggregate is not None and each.aggregate.reference is not None:
            named = group_cells.find(each.by, each.aggregate.reference, each.name)
            is_reference |= (spec == number) & np.isin(group_cell, named)
    return is_reference


def _numbers(values: Array) -> pl.Series:
    """Numbers, null where there is none."""
    return pl.Series(values, dtype=pl.Float64, nan_to_null=True)


def _whole_numbers(values: Array, hidden: Booleans | None) -> pl.Series:
    """Numbers of rows, null where they are hidden; as floats only where a formula counts parts of rows."""
    import numpy as np

    known = np.where(np.isnan(values), 0, values)
    whole = (
        pl.Series(values, nan_to_null=True) if (known % 1).any() else pl.Series(values, nan_to_null=True).cast(pl.Int64)
    )
    return whole if hidden is None or not hidden.any() else whole.set(pl.Series(hidden), None)


def _without(values: Array, excluded: Booleans) -> Array:
    """Numbers, nan where they do not count."""
    import numpy as np

    return np.where(excluded, np.nan, values) if excluded.any() else values
