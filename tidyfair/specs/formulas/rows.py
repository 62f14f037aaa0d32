"""Formulas over the rows of groups: polars expressions, functions of arrays, and of the rows of two groups."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status, TidyfairError, Undefined, failures_of, in_short, listed
from tidyfair.specs.arguments import is_list
from tidyfair.specs.formulas.formula import Formula, Variation, as_floats
from tidyfair.specs.formulas.statistics import BOTH, NO_COLUMNS, ROLES, SCORED, WEIGHTS, Expr
from tidyfair.specs.polars_versions import columns_of, gives_a_value_per_row
from tidyfair.specs.segments import Array

__all__ = ["Sample"]

_NO_VALUE = 'Where a group has no value, return nan or raise `Undefined("reason")`.'
_LARGEST = 2**1023
"""Largest whole number up to which doubles are exact."""


@dataclass(frozen=True, eq=False)
class RowExpression(Formula):
    """An expression of polars over the distinct scores of a group, falling, or over its numbers in their order."""

    deviations: tuple[Callable[..., Expr], ...] = ()
    """The variance, and the effective numbers with and without the event."""
    variance: Callable[..., Expr] | None = None
    """The variance, where tests need one and intervals do not."""
    bins_of: Callable[..., Any] | None = None
    """For errors of calibration: the bins of the rows of a group, from scores, or from the shares at or below them."""
    in_order_unless: str | None = None
    """For numbers: the option without which it reads the rows of a group in their given order."""

    @property
    def reads_row_order(self) -> bool:
        """True if its value depends on the order of rows."""
        is_in_order = self.in_order_unless is not None and dict(self.options)[self.in_order_unless] is None
        return is_in_order or any(part.reads_row_order for _, part in self._parts)

    @property
    def _parts(self) -> tuple[tuple[str, RowExpression], ...]:
        return cast("tuple[tuple[str, RowExpression], ...]", self.parts)

    @property
    def variation(self) -> Variation | None:
        """How it is known how far values vary."""
        if self.deviations:
            return "area"
        if self.bins_of is not None:
            return "calibration_error"
        return None if self.influence is None else "ranked"

    @cached_property
    def spreads(self) -> dict[str, Formula]:
        """The formulas of its `deviations`, or of its `variance`, by the name of the column."""
        functions = self.deviations if self.variance is None else (self.variance,)
        beside = partial(RowExpression, kind=self.kind, undefined_levels=self.undefined_levels)
        return dict(zip(("variance", "events", "others"), map(beside, functions), strict=False))

    def express(self, given: Collection[str] = ()) -> tuple[Expr, Expr | None]:
        """Value and, for a rate, denominator, as expressions over columns of their names.

        Parts in `given` are read from columns of their name instead of being computed.
        """
        parts = dict(self._parts)
        arguments: dict[str, Any] = {}
        for name in self.needs:
            if name in parts and name not in given:
                arguments[name], _ = parts[name].express(given)
            else:
                arguments[name] = pl.col(name)
        result = self.result(arguments)
        match result:
            case pl.Expr():
                return result, None
            case (pl.Expr() as numerator, pl.Expr() as denominator):
                return pl.when(denominator != 0).then(numerator / denominator), denominator
            case _:
                msg = (
                    f"{self.name}() must return an expression of its parameters, or numerator and "
                    f"denominator, not {result!r}."
                )
                raise ArgumentError(msg)

    @cached_property
    def over_rows(self) -> Expr:
        """The value over the rows of a group; NaN means undefined, and is cheaper to turn into null later."""
        return self.express()[0].cast(pl.Float64)

    def check(self) -> None:
        """Refuse options that it cannot use."""
        self.express()

    def check_columns(self) -> None:
        """Refuse a function that reads other columns than its parameters, or that does not aggregate them."""
        value, _ = self.express(given=self.needs)
        unknown = set(columns_of(value)) - set(self.needs)
        if unknown or value.meta.has_multiple_outputs():
            msg = f"{self.name}: a formula may only read its parameters, {listed(self.needs)}, not {value}."
            raise ArgumentError(msg)
        with failures_of(f"{self.name}: the formula", "Its parameters are columns of floats."):
            pl.DataFrame(schema=dict.fromkeys(self.needs, pl.Float64)).select(value)
        if gives_a_value_per_row(value, unknown=False):
            msg = f"{self.name}: a formula over rows must return one value; aggregate it, for example with `.sum()`."
            raise ArgumentError(msg)

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain numbers of the rows of a group, or of parts; None where it is undefined."""
        given = {name: as_floats(name, value) for name, value in numbers.items()}
        self.check_given(given)
        try:
            frame = pl.DataFrame(given, strict=False).with_columns(pl.all().cast(pl.Float64))
        except pl.exceptions.PolarsError as error:
            msg = f"{self.name} takes one number for each statistic, or lists of the same length."
            raise ArgumentError(msg) from error
        values = frame.select(self.express(given=frame.columns)[0]).to_series()
        if len(values) != 1:
            msg = f"{self.name} takes one number for each statistic: it is computed label by label."
            raise ArgumentError(msg)
        value = values.item()
        return None if value is None or math.isnan(value) else value


@dataclass(frozen=True, eq=False)
class RowArrays(Formula):
    """A function of the rows of a group as arrays: of truth and predictions, or of columns of survival times."""

    over_points: bool = False
    """True if it is of all evaluation times together, whose columns are arrays of rows by times."""

    @property
    def at_points(self) -> bool:
        """True if it has a value for each evaluation time."""
        return self.reads_points and not self.over_points

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of its function."""
        return inspect.signature(self.function).parameters

    @cached_property
    def row_parameters(self) -> tuple[str, ...]:
        """The columns of the rows of survival times that it takes; other functions take truth and prediction."""
        if self.kind != "survival":
            return ()
        options = dict(self.options)
        return tuple(name for name in self.parameters if name not in options and name not in WEIGHTS)

    @cached_property
    def columns_of_rows(self) -> frozenset[str]:
        """The columns of a row that it reads."""
        return frozenset(self.row_parameters)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Those of `truth`, `estimate` and `probs` in which a row must have a value to count."""
        if self.kind == "survival":
            return NO_COLUMNS.union(*(ROLES[name] for name in self.row_parameters))
        return SCORED if self.kind == "prob" else BOTH

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain lists; None where it is undefined."""
        self._check_lists(numbers)
        in_order = [numbers[name] for name in self.row_parameters] if self.row_parameters else [*numbers.values()]
        value, _ = self.call(list(map(self._array, in_order)), None)
        return None if math.isnan(value) else value

    def _array(self, values: Any) -> Any:
        """A list of the user as the function takes it."""
        return np.array(values)

    def _check_lists(self, lists: Mapping[str, Any]) -> None:
        """Refuse lists of which one is missing, or is not a list."""
        if self.row_parameters:
            missing = [name for name in self.row_parameters if name not in lists]
        else:
            # functions of other libraries have names of their own for truth and score
            by_position = [item for item in self.parameters.values() if item.kind is item.POSITIONAL_OR_KEYWORD]
            needed = [item.name for item in by_position if item.default is item.empty and item.name not in WEIGHTS]
            missing = needed[len(lists) :]
        if missing:
            msg = f"{self.name} needs the list {missing[0]!r}."
            raise ArgumentError(msg)
        for name, values in lists.items():
            if not is_list(values):
                msg = f"{self.name}: {name!r} is a list of numbers, not {in_short(values)}."
                raise ArgumentError(msg)

    def call(
        self, arrays: Sequence[Any], weight: Array | None, arguments: Mapping[str, object] | None = None
    ) -> tuple[float, str | None]:
        """The result of the function as a number, and the reason if undefined."""
        if not len(arrays[0]) or (weight is not None and not weight.sum()):
            return math.nan, None
        keywords = dict[str, Any](self.options) | dict(arguments or {}) | self._weight_argument(weight)
        try:
            with failures_of(self.name, _NO_VALUE):
                result = self._result_of(arrays, keywords)
        except Undefined as reason:
            return math.nan, str(reason)
        # arrays of a single number are accepted
        number = result.item() if getattr(result, "size", 0) == 1 and hasattr(result, "item") else result
        too_large = isinstance(number, Integral) and abs(int(number)) > _LARGEST
        if not isinstance(number, Real) or too_large:
            msg = f"{self.name} returned {result!r}; it must return one number. {_NO_VALUE}"
            raise ArgumentError(msg)
        value = float(number)
        return value, Status.NO_VALUE.value if math.isnan(value) else None

    def _weight_argument(self, weight: Array | None) -> dict[str, object]:
        """The weights, by the function's parameter for weights."""
        if weight is None:
            return {}
        for name in WEIGHTS:
            if name in self.parameters:
                return {name: weight}
        msg = (
            f"{self.name} does not accept weights; leave out `case_weights=`, or add a parameter `sample_weight` to "
            "the function."
        )
        raise ArgumentError(msg)

    def _result_of(self, arrays: Sequence[object], keywords: Mapping[str, Any]) -> Any:
        """The result of the function; undefined for a `ValueError`, by which scikit-learn refuses a single class."""
        try:
            return self.function(*arrays, **keywords)
        except (TidyfairError, Undefined):
            raise
        except ValueError as error:
            msg = f"failed: {error}"
            raise Undefined(msg) from error


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The rows of a group, as passed to a function of two samples."""

    truth: Array
    """The rows with the event, as a mask."""
    score: Array
    """The scores, or the middle of their bins."""
    weight: Array | None
    width: float | None = None
    """The width of the bins, where scores were counted in bins."""

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, eq=False)
class GroupPairs(RowArrays):
    """A function of two samples: of the scores of a group, and of all others together or of each of them."""

    against: Literal["rest", "pairs"] = "rest"
    """The groups whose rows it compares with those of a group: all others together, or each of them."""
    reads_truth: bool = True
    """True if it reads truth and scores; else scores alone."""
    min_n: int = 0
    """The fewest rows of a group that others are compared with."""
    min_share: float = 0.0
    """The smallest share of the rows of such a group."""

    @property
    def compares(self) -> bool:
        """It always reads other groups besides its own."""
        return True

    @cached_property
    def reads(self) -> frozenset[str]:
        """Those of `truth` and `probs` in which a row must have a value to count."""
        return SCORED if self.reads_truth else frozenset({"probs"})

    def call_on_samples(self, one: Sample, other: Sample) -> tuple[float, str | None]:
        """The result of the function for two samples, and the reason if undefined."""
        if not len(one):
            return math.nan, None
        return self.call([one, other], None) if len(other) else (math.nan, Status.NO_OTHER_GROUP.value)

    def _array(self, values: Any) -> Sample:
        """A sample from a list of scores, or from a mapping with `truth`, `score` and perhaps `weight`."""
        columns = cast("Mapping[str, Any]", values) if isinstance(values, Mapping) else {"score": values}
        score = np.array(columns["score"], dtype=float)
        truth = np.array(columns.get("truth", np.zeros(len(score))))
        weight = columns.get("weight")
        return Sample(truth, score, None if weight is None else np.array(weight, dtype=float))
