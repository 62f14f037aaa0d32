"""What formulas read: statistics and columns by their names, and quantities of a row that are summed."""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, failures_of, in_short
from tidyfair.specs.columns import Column, fingerprint
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["statistic"]

Expr: TypeAlias = pl.Expr
Number: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
"""A statistic of groups (and labels), as an array; formulas run on plain floats as well."""
Rate: TypeAlias = "tuple[Number, Number]"
"""Numerator and denominator; a denominator of zero makes the value null."""
ExprRate: TypeAlias = tuple[pl.Expr, pl.Expr]
"""Numerator and denominator of a formula over rows."""
Sums: TypeAlias = "Mapping[str, Number]"
"""Statistics by name."""
Kind: TypeAlias = Literal["class", "prob", "numeric", "survival", "interval"]
Counts: TypeAlias = Literal["instances", "positives", "smaller_class"]
Given: TypeAlias = Literal["nothing", "truth", "estimate"]

CONTENT = {
    "class": "labels", "prob": "labels and scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals",
}  # fmt: skip
"""The columns that metrics of each kind read."""
SEVERAL_COLUMNS = frozenset({"survival", "interval"})
"""The kinds of metrics whose truth or predictions are no single column."""
WEIGHTS = ("sample_weight", "case_weights", "weight", "weights")
"""The arguments by which functions of arrays take weights."""
OVERALL, THE_REST = "overall_", "rest_"
"""Prefixes of a statistic of all groups together, and of all other groups."""
ROWS, SQUARES = "_rows", "_squares"
"""Suffixes of a statistic counted in rows, and in squared case weights; without one, in case weights."""

BOTH, SCORED = frozenset({"truth", "estimate"}), frozenset({"truth", "probs"})
_TRUTH, _ESTIMATE, NO_COLUMNS = frozenset({"truth"}), frozenset({"estimate"}), frozenset[str]()
STATISTICS: dict[str, frozenset[str]] = {
    "tp": BOTH, "fp": BOTH, "fn": BOTH, "tn": BOTH, "absolute_steps": BOTH, "squared_steps": BOTH,
    "positives": _TRUTH, "negatives": _TRUTH, "selected": _ESTIMATE, "unselected": _ESTIMATE,
    "instances": NO_COLUMNS, "rank": NO_COLUMNS, "label_count": NO_COLUMNS, "row_weight": NO_COLUMNS,
    "count": NO_COLUMNS,
}  # fmt: skip
"""The statistics of one label against the rest, and the columns without which a row does not count in them."""

STEPS = ("absolute_steps", "squared_steps")
"""The distance of truth and estimate in an order of labels, for weighted kappa."""
ORDER_STATISTICS = {*STEPS, "rank"}

SUMS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": STATISTICS,
    "prob": {"positives": SCORED, "negatives": SCORED, "instances": NO_COLUMNS, "rank": NO_COLUMNS},
    "numeric": {
        "instances": NO_COLUMNS, "weight_squares": NO_COLUMNS,
        "truth_mean": _TRUTH, "truth_variation": _TRUTH, "truth_minimum": _TRUTH, "truth_maximum": _TRUTH,
        "estimate_mean": _ESTIMATE, "estimate_variation": _ESTIMATE, "covariation": BOTH,
    },
    "survival": {"instances": NO_COLUMNS},
    "interval": {"instances": NO_COLUMNS},
}  # fmt: skip
"""The statistics of a group that are sums, and so merge. A metric's own statistics come on top."""

ROW_COLUMNS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": {},
    "prob": dict.fromkeys(
        ["score", "hits", "false_alarms", "hit_squares", "false_alarm_squares", "percentile"], SCORED
    ),
    "numeric": {"truth": _TRUTH, "estimate": _ESTIMATE, "weight": NO_COLUMNS, "weighted": NO_COLUMNS},
    "survival": {},
    "interval": {},
}
"""The columns of formulas over rows. Scores come as their distinct values, falling, with the weight of the rows with
the event (`hits`) and without it (`false_alarms`), the sums of squared weights, and the `percentile` of the score: the
share of its outer group at or below it. Numbers come row by row, as they stand in the data."""

ROLES: dict[str, frozenset[str]] = {
    "truth": _TRUTH, "estimate": _ESTIMATE, "score": frozenset({"probs"}),
    "time": _TRUTH, "event": _TRUTH, "event_weight": _TRUTH, "censoring_weight": _TRUTH,
    "survival": frozenset({"probs"}), "eval_time": NO_COLUMNS,
    "lower": _ESTIMATE, "upper": _ESTIMATE, "level": NO_COLUMNS, "quantile": _ESTIMATE, "quantile_level": NO_COLUMNS,
}  # fmt: skip
"""The parameters of quantities of a row, and of functions of rows of survival times, by the column of the call."""
AT_POINTS = frozenset({"survival", "censoring_weight", "eval_time", "quantile", "quantile_level"})
"""Those that differ between evaluation times, or levels of quantiles."""
OF_INTERVAL = frozenset({"lower", "upper", "level"})
"""Parameters that read a prediction interval."""
OF_CENSORING = frozenset({"event_weight", "censoring_weight"})
"""The censoring weights of a row: just before its event, and at an evaluation time."""

WHEN_COMPLETE = {
    "positives": ("tp", "fn"), "negatives": ("fp", "tn"), "selected": ("tp", "fp"), "unselected": ("fn", "tn"),
}  # fmt: skip
"""Margins as sums of cells, for formulas that read both truth and estimate, and so need rows with both."""

_OTHER_SIDE = {
    "tp": "tn", "tn": "tp", "fp": "fn", "fn": "fp",
    "positives": "negatives", "negatives": "positives", "selected": "unselected", "unselected": "selected",
}  # fmt: skip
OTHER_SIDE = {prefix + one: prefix + other for prefix in ("", OVERALL, THE_REST) for one, other in _OTHER_SIDE.items()}
"""The statistics of the event when the rest is the event, of a group and of others."""


def unprefixed(name: str) -> str:
    """A statistic without the prefix of other groups."""
    return name.removeprefix(OVERALL if name.startswith(OVERALL) else THE_REST)


@dataclass(frozen=True)
class Neighborhood:
    """The rows that a row is compared with: the nearest ones by some columns."""

    features: tuple[Column, ...]
    n_neighbors: int


@dataclass(frozen=True)
class Lists:
    """The rows that a row is ranked or counted among: those with the same values of some columns."""

    metric: str
    """The function that makes the metric, for messages."""
    columns: tuple[Column, ...]
    quantity: Callable[..., Any]
    """A number for each row, as a function of the rows in lists (`ListedRows`) and the options."""
    others: tuple[tuple[str, Column], ...] = ()
    """More columns that the quantity reads, with the arguments that name them."""
    undivided: bool = False
    """True if all rows of a list must be of one group, because its quantities only mean something together."""
    role: str = "lists"
    """The argument that names the columns, for messages."""


@dataclass(frozen=True)
class Statistic:
    """A quantity of a row that formulas need the sum of, as a function of its columns; made by `statistic`."""

    function: Callable[..., Expr]
    cumulative: bool = False
    options: tuple[tuple[str, object], ...] = ()
    alias: str | None = None
    neighborhood: Neighborhood | None = None
    """The nearest rows that a row is compared with; such a quantity is computed before rows are counted."""
    lists: Lists | None = None
    """The rows that a row is ranked or counted among; such a quantity, too, is computed before rows are counted."""
    tail: tuple[float, float] | None = None
    """For errors: how many times the mean, or the largest one seen, a rare error may be."""
    flag: bool = False
    """True if it is 1 or 0, so that its mean is a share of rows."""
    at_last_point: bool = False
    """True if over several evaluation times it is that of the last, not the average."""
    outcome: bool | None = None
    """If it is of rows as if all had the event by the evaluation time (True), or survived it (False)."""

    @property
    def name(self) -> str:
        """The parameter name by which formulas read its sum."""
        return self.alias or self.function.__name__

    @cached_property
    def column(self) -> str:
        """The column of its sum; the same quantity with other options has another column."""
        suffix = ""
        if self.alias and self.lists is None:
            suffix = f" #{self.fingerprint or id(self.function)}"
        if near := self.neighborhood:
            features = [fingerprint(feature.expr) or id(feature.source) for feature in near.features]
            suffix += f" of {near.n_neighbors} by {features}"
        if lists := self.lists:
            names = [fingerprint(column.expr) or id(column.source) for column in self.compared_by]
            suffix += f" {name_of(lists.quantity)} of {sorted(self.reads)} in {len(lists.columns)} of {names}"
        if self.outcome is not None:
            suffix += " with event" if self.outcome else " without event"
        return f"{self.name}({text_of_options(self.options)}){suffix}"

    @property
    def compares_rows(self) -> bool:
        """True if its value in a row depends on other rows."""
        return self.neighborhood is not None or self.lists is not None

    @property
    def compared_by(self) -> tuple[Column, ...]:
        """The columns that rows are compared by: features of neighbours, or the columns of lists and what they read."""
        if self.neighborhood is not None:
            return self.neighborhood.features
        return () if self.lists is None else (*self.lists.columns, *(column for _, column in self.lists.others))

    def role_of(self, column: Column) -> str:
        """The argument that names one of the columns that rows are compared by."""
        if self.lists is None:
            return "features"
        roles = {other: role for role, other in self.lists.others}
        return self.lists.role if column in self.lists.columns else roles[column]

    @cached_property
    def fingerprint(self) -> str | None:
        """Digest that identifies it, the same in every process; None if it calls a Python function."""
        return fingerprint(self.expression(**{name: pl.col(name) for name in ROLES}))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns in which a row must have a value to count."""
        return NO_COLUMNS.union(*(ROLES[name] for name in self.parameters))

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The columns of a row that its function takes."""
        options = dict(self.options)
        return frozenset(name for name in inspect.signature(self.function).parameters if name not in options)

    @property
    def at_points(self) -> bool:
        """True if there is a value for each evaluation time, or level of a quantile."""
        return not self.parameters.isdisjoint(AT_POINTS)

    def expression(self, **columns: Expr) -> Expr:
        """The quantity over columns given by the names of its parameters."""
        known = inspect.signature(self.function).parameters
        if self.outcome is not None:
            # rows count fully, and all have the event by the evaluation time or survive it; a column even where it is
            # the same number in all rows, so that its sum is that of the rows
            zero = columns["time"] * 0.0
            time = zero + (columns["eval_time"] if self.outcome else math.inf)
            weight = zero + 1.0
            columns |= {"time": time, "event": time.is_finite(), "event_weight": weight, "censoring_weight": weight}
        arguments = {name: column for name, column in columns.items() if name in known}
        with failures_of(f"the statistic {self.name!r}", "It must return a polars expression of its parameters."):
            return self.function(**arguments, **dict[str, Any](self.options))

    def __reduce__(self) -> tuple[Any, ...]:
        # its function goes by the name that the statistic has taken over
        module = sys.modules.get(self.function.__module__)
        named: object = getattr(module, self.function.__name__, None)
        if isinstance(named, Statistic) and named.function is self.function:
            of_module = self.function.__module__, self.function.__name__
            return _named_statistic, (
                *of_module,
                {"options": self.options, "alias": self.alias, "outcome": self.outcome},
            )
        values = (
            self.function, self.cumulative, self.options, self.alias, self.neighborhood, self.lists, self.tail,
            self.flag, self.at_last_point, self.outcome,
        )  # fmt: skip
        return Statistic, values

    def with_options(self, options: Mapping[str, object]) -> Statistic:
        """The same statistic, with its options set to those of a formula."""
        return replace(self, options=tuple((name, options.get(name, value)) for name, value in self.options))


def _named_statistic(module: str, name: str, settings: dict[str, Any]) -> Statistic:
    """A statistic with its options, looked up by its name in its module."""
    return replace(getattr(importlib.import_module(module), name), **settings)


@refuse_unknown_settings
def statistic(
    function: Callable[..., Expr] | None = None, *, cumulative: bool = False, tail: tuple[float, float] | None = None,
    flag: bool = False, at_last_point: bool = False,
) -> Any:  # fmt: skip
    """Turn a function of `truth` and `score` (of `truth` and `estimate` for numbers) into a statistic of formulas.

    The function returns an expression for a row; formulas that have a parameter of its name get its weighted sum. For
    scores, `truth` is 1 where the row has the label that `score` is the probability of, else 0; `cumulative` ones read
    labels in order, up to and including each. Keyword-only parameters are options, shared with the metric. `tail`
    applies to errors: how many times the mean of a group, or the largest error seen, a rare one may be, which intervals
    of few rows allow for. A `flag` is 1 or 0, so that intervals of its mean are those of a share. With `at_last_point`,
    averages over evaluation times read it at the last of them.
    """
    if function is None:
        return partial(statistic, cumulative=cumulative, tail=tail, flag=flag, at_last_point=at_last_point)
    if not callable(function):
        msg = f"statistic() takes a function of `truth` and `score` or `estimate`, not {in_short(function)}."
        raise ArgumentError(msg)
    if tail is not None and not (isinstance(tail, tuple) and len(tail) == 2):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = (
            f"statistic(): `tail` is two numbers, in means and in the largest errors, as (12, 4), not {in_short(tail)}."
        )
        raise ArgumentError(msg)
    parameters = inspect.signature(function).parameters.values()
    options = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    defaults = tuple((option.name, option.default) for option in options)
    return Statistic(function, cumulative, defaults, tail=tail, flag=flag, at_last_point=at_last_point)


def name_of(function: object) -> str:
    """Name of a function; callable objects have that of their class."""
    return getattr(function, "__name__", type(function).__name__)


def text_of_options(options: Iterable[tuple[str, object]]) -> str:
    """Options as part of a name, which is the same for options that are equal, as 1 and 1.0 are."""
    texts: list[str] = []
    for name, value in options:
        comparable = float(value) if isinstance(value, Real) else value
        texts.append(f"{name}={comparable!r}")
    return ", ".join(texts)
