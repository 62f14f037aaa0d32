"""Formulas of metrics: functions whose parameters are the statistics they need.

Formulas over sums are arithmetic on numpy arrays: groups along the first axis, labels along the last. Formulas over the
rows of a group, and the quantities of a row that are summed, are polars expressions, which run where the rows are.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status, failures_of, in_short, listed, nearest
from tidyfair.specs.arguments import is_list, plain, whole
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
Input: TypeAlias = Literal["sums", "rows", "arrays"]
Counts: TypeAlias = Literal["instances", "positives", "smaller_class"]
Given: TypeAlias = Literal["nothing", "truth", "estimate"]

CONTENT = {
    "class": "labels", "prob": "labels and scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals",
}  # fmt: skip
"""The columns that metrics of each kind read."""
SEVERAL_COLUMNS = frozenset({"survival", "interval"})
"""The kinds of metrics whose truth or predictions are no single column."""
AVERAGES = ("macro", "macro_weighted", "micro")
HAND_TILL = "hand_till"
"""The average of each label against each other label, after Hand and Till (2001)."""
WEIGHTS = ("sample_weight", "case_weights", "weight", "weights")
"""The arguments by which functions of arrays take weights."""
OVERALL, THE_REST = "overall_", "rest_"
"""Prefixes of a statistic of all groups together, and of all other groups."""
ROWS, SQUARES = "_rows", "_squares"
"""Suffixes of a statistic counted in rows, and in squared case weights; without one, in case weights."""

_BOTH, _TRUTH, _ESTIMATE = frozenset({"truth", "estimate"}), frozenset({"truth"}), frozenset({"estimate"})
_SCORED, _NOTHING = frozenset({"truth", "probs"}), frozenset[str]()
STATISTICS: dict[str, frozenset[str]] = {
    "tp": _BOTH, "fp": _BOTH, "fn": _BOTH, "tn": _BOTH, "absolute_steps": _BOTH, "squared_steps": _BOTH,
    "positives": _TRUTH, "negatives": _TRUTH, "selected": _ESTIMATE, "unselected": _ESTIMATE,
    "instances": _NOTHING, "rank": _NOTHING, "label_count": _NOTHING, "row_weight": _NOTHING,
    "count": _NOTHING,
}  # fmt: skip
"""The statistics of one label against the rest, and the columns without which a row does not count in them."""
_TRIED_GROUPS = 3
_COUNTS_OF_ROWS = ("positives", "negatives", "instances")
_OF_ORDER = {"absolute_steps", "squared_steps", "rank"}
"""Statistics of labels in an order, for weighted kappa."""

SUMS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": STATISTICS,
    "prob": {"positives": _SCORED, "negatives": _SCORED, "instances": _NOTHING, "rank": _NOTHING},
    "numeric": {
        "instances": _NOTHING, "weight_squares": _NOTHING,
        "truth_mean": _TRUTH, "truth_variation": _TRUTH, "truth_minimum": _TRUTH, "truth_maximum": _TRUTH,
        "estimate_mean": _ESTIMATE, "estimate_variation": _ESTIMATE, "covariation": _BOTH,
    },
    "survival": {"instances": _NOTHING},
    "interval": {"instances": _NOTHING},
}  # fmt: skip
"""The statistics of a group that are sums, and so merge. A metric's own statistics come on top."""

ROW_COLUMNS: dict[Kind, dict[str, frozenset[str]]] = {
    "class": {},
    "prob": dict.fromkeys(
        ["score", "hits", "false_alarms", "hit_squares", "false_alarm_squares", "percentile"], _SCORED
    ),
    "numeric": {"truth": _TRUTH, "estimate": _ESTIMATE, "weight": _NOTHING, "weighted": _NOTHING},
    "survival": {},
    "interval": {},
}
"""The columns of formulas over rows. Scores come as their distinct values, falling, with the weight of the rows with
the event (`hits`) and without it (`false_alarms`), the sums of squared weights, and the `percentile` of the score: the
share of its outer group at or below it. Numbers come row by row, as they stand in the data."""

ROLES: dict[str, frozenset[str]] = {
    "truth": _TRUTH, "estimate": _ESTIMATE, "score": frozenset({"probs"}),
    "time": _TRUTH, "event": _TRUTH, "event_weight": _TRUTH, "censoring_weight": _TRUTH,
    "survival": frozenset({"probs"}), "eval_time": _NOTHING,
    "lower": _ESTIMATE, "upper": _ESTIMATE, "level": _NOTHING, "quantile": _ESTIMATE, "quantile_level": _NOTHING,
}  # fmt: skip
"""The parameters of quantities of a row, and of functions of rows of survival times, by the column of the call."""
AT_POINTS = frozenset({"survival", "censoring_weight", "eval_time", "quantile", "quantile_level"})
"""Those that differ between evaluation times, or levels of quantiles."""
OF_INTERVAL = frozenset({"lower", "upper", "level"})
"""Those of a prediction interval."""
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
_FROM_THE_REST = (
    _OTHER_SIDE
    | {OVERALL + name: OVERALL + other for name, other in _OTHER_SIDE.items()}
    | {THE_REST + name: THE_REST + other for name, other in _OTHER_SIDE.items()}
)
"""Names of the statistics of the event when the rest is the event."""


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
        return f"{self.name}({_text_of(self.options)}){suffix}"

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
        return fingerprint(self.of(**{name: pl.col(name) for name in ROLES}))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns in which a row must have a value to count."""
        return _NOTHING.union(*(ROLES[name] for name in self.parameters))

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The columns of a row that its function takes."""
        options = dict(self.options)
        return frozenset(name for name in inspect.signature(self.function).parameters if name not in options)

    @property
    def at_points(self) -> bool:
        """True if there is a value for each evaluation time, or level of a quantile."""
        return not self.parameters.isdisjoint(AT_POINTS)

    def of(self, **columns: Expr) -> Expr:
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


@dataclass(frozen=True, eq=False)
class Influence:
    """Sampling variation of a value."""

    of_unit: Number
    """The change of the value when a unit, a row or a cluster, is left out; the squares add up to the variance."""
    freedom: float
    """The degrees of freedom of the variance; infinite for that of a model."""
    of_model: float | None = None
    """The standard error from the information of a fit, used instead."""
    unseen: tuple[float, float] | None = None
    """The centre and the standard error of the lower limit, with a part of a row that has not been seen."""

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(float((self.of_unit**2).sum())) if self.of_model is None else self.of_model


def _in_short(text: str) -> str:
    """Arithmetic without the axis of labels, and without the name of numpy."""
    of_labels = r"(\w+|\([^()]*\))\.sum\(axis=-1\)"
    text = re.sub(of_labels, lambda match: f"sum({match[1].strip('()')})", text)
    return text.replace("np.", "").replace("[..., 0]", "")


@dataclass(frozen=True)
class Formula:
    """A function of statistics, with its options fixed."""

    function: Callable[..., Any]
    kind: Kind = "class"
    input: Input = "sums"
    """Its input: sums, the rows of a group as expressions, or as arrays."""
    over_levels: bool = False
    """True if it sums over the rows of all labels itself, instead of being evaluated label by label."""
    undefined_levels: Literal["drop", "null"] = "drop"
    """Treatment of labels without a value in averages: leave them out, or make the average undefined."""
    undefined: str = Status.ZERO_DENOMINATOR
    """The reason if it has no value."""
    average: str | None = None
    """The only average over labels that it has, or its default average."""
    probabilities: bool = False
    """True if scores must be probabilities."""
    counts: Counts = "instances"
    """Rows that its denominator counts, if it is not a rate."""
    given: Given | None = None
    """The rows in which it reads the distribution of labels: all of them, or those of each label of the other side."""
    ordered_with: tuple[str, str] | None = None
    """The option, and its value, with which the order of labels counts."""
    against: Literal["rest", "pairs"] | None = None
    """The groups whose rows it compares with those of a group: all others together, or each of them."""
    min_n: int = 0
    """The fewest rows of a group that others are compared with."""
    min_share: float = 0.0
    """The smallest share of the rows of such a group."""
    error_of_bins: Callable[..., Any] | None = None
    """For formulas over distinct scores, or of two samples: the largest error if scores are counted in bins."""
    deviations: tuple[Callable[..., Expr], ...] = ()
    """For formulas over distinct scores: the variance, and the effective numbers with and without the event."""
    variance: Callable[..., Expr] | None = None
    """For formulas over distinct scores: the variance, where tests need one and intervals do not."""
    influence: Callable[..., Influence] | None = None
    """For formulas that read rows: the sampling variation, from the rows of a group as arrays, and their units."""
    bins_of: Callable[..., Any] | None = None
    """For errors of calibration: the bins of the rows of a group, from scores, or from the shares at or below them."""
    no_interval: str = ""
    """The reason why it has no interval; empty if it may have one."""
    in_order_unless: str | None = None
    """The option without which it reads the rows of a group in their given order."""
    squared_correlation: bool = False
    """True if it is the square of a correlation, whose interval is that of the correlation."""
    ignores_truth: bool = False
    """Whether, as a function of arrays, it reads scores alone."""
    range_of_limits: tuple[float, float] | None = None
    """The range of true values, where those of samples may leave it because of the weights of their rows."""
    over_points: bool = False
    """True if it is of the average over evaluation times, or levels of quantiles, instead of each of them."""
    descriptive: bool = False
    """True if more of it is neither good nor bad, although it reads truth and estimate, or all rows."""
    parts: tuple[tuple[str, Formula], ...] = field(default=(), repr=False)
    """Parameters that are other metrics."""
    terms: tuple[tuple[str, Statistic], ...] = field(default=(), repr=False)
    """Parameters that are sums of a quantity of rows."""
    options: tuple[tuple[str, object], ...] = ()
    metric: str = field(default="", repr=False, compare=False)
    """The name of the user's metric, where it is not that of the function."""

    @property
    def written(self) -> str:
        """Its arithmetic as it is written, where that is one line; else empty."""
        import ast  # noqa: PLC0415 - for display only
        from textwrap import dedent  # noqa: PLC0415 - as above

        try:
            (function,) = ast.parse(dedent(inspect.getsource(self.function))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            return ""
        if not isinstance(function, ast.FunctionDef):
            return ""
        *before, last = function.body
        # a docstring may precede the only statement
        if (
            not isinstance(last, ast.Return)
            or last.value is None
            or any(not isinstance(one, ast.Expr) for one in before)
        ):
            return ""
        if any(isinstance(node, ast.Name) and node.id.startswith("_") for node in ast.walk(last.value)):
            # arithmetic that is somewhere else
            return ""
        if not isinstance(last.value, ast.Tuple):
            return _in_short(ast.unparse(last.value))
        parts: list[str] = []
        for part in last.value.elts:
            text = _in_short(ast.unparse(part))
            parts.append(f"({text})" if isinstance(part, ast.BinOp) else text)
        return " / ".join(parts)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        kind: Kind,
        known: Mapping[str, Formula],
        terms: Mapping[str, Statistic],
        **settings: Any,
    ) -> Self:
        """Read the parameters of a function: statistics, metrics among `known`, and keyword-only options."""
        parameters = inspect.signature(function).parameters.values()
        needs = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
        options = {parameter.name: parameter.default for parameter in parameters if parameter.name not in needs}
        parts = _parts_of(function, kind, needs, known, terms)
        _check_prefixes(function, {name: parts.get(name) for name in needs})
        _check_counts(function, needs, parts, given=settings.get("given"))
        # a formula that sums over labels itself is not evaluated label by label
        over_levels = settings.pop("over_levels", False) or any(part.over_levels for part in parts.values())
        summed = [name for name in needs if unprefixed(name) in terms]
        return cls(
            function,
            kind,
            input=_input_of(function, kind, needs, parts),
            over_levels=over_levels,
            parts=tuple(parts.items()),
            terms=tuple((name, terms[unprefixed(name)].with_options(options)) for name in summed),
            options=_frozen(options),
            **settings,
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # computed once, because formulas are keys of many mappings
        return hash((self.function, self.kind, self.input, self.min_n, self.min_share, self.options))

    @property
    def name(self) -> str:
        """The name in messages: that of the metric, or of the function."""
        return self.metric or name_of(self.function)

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The names of its parameters except the options: statistics and other metrics."""
        options = dict(self.options)
        return tuple(name for name in inspect.signature(self.function).parameters if name not in options)

    @cached_property
    def _inputs(self) -> list[tuple[str, str, str, Formula | None, str]]:
        """The name, prefix, name without prefix, metric (if it is one) and column of sums of each parameter."""
        parts = dict(self.parts)
        columns = {name: term.column for name, term in self.terms}
        inputs: list[tuple[str, str, str, Formula | None, str]] = []
        for name in self.needs:
            base = unprefixed(name)
            inputs.append((name, name.removesuffix(base), base, parts.get(name), columns.get(name, base)))
        return inputs

    @cached_property
    def statistics(self) -> frozenset[str]:
        """The names of all statistics it needs, including those of its parts."""
        others = {*dict(self.parts), *dict(self.terms)}
        own = frozenset(name for name in self.needs if name not in others)
        return own.union(*(part.statistics for _, part in self.parts))

    @cached_property
    def all_terms(self) -> frozenset[Statistic]:
        """The quantities it needs the sum of, including those of its parts."""
        return frozenset(term for _, term in self.terms).union(*(part.all_terms for _, part in self.parts))

    @cached_property
    def terms_of_lists(self) -> tuple[Statistic, ...]:
        """The quantities of rows that depend on the other rows of a list."""
        return tuple(sorted((term for term in self.all_terms if term.lists), key=lambda term: term.column))

    @property
    def reads_neighbors(self) -> bool:
        """True if it compares rows with the nearest others, so that a row counts in the values of several."""
        return any(term.neighborhood is not None for term in self.all_terms)

    @cached_property
    def beyond(self) -> tuple[str, ...]:
        """The prefixes of the statistics that it needs of other groups."""
        prefixes = {name.removesuffix(unprefixed(name)) for name in self.needs} - {""}
        for _, part in self.parts:
            prefixes |= {*part.beyond}
        return tuple(sorted(prefixes))

    @cached_property
    def reads(self) -> frozenset[str]:
        """Those of `truth`, `estimate` and `probs` in which a row must have a value to count."""
        if self.given is not None:
            return _ESTIMATE if self.given == "nothing" else _BOTH
        if self.input == "arrays" and self.kind == "survival":
            return _NOTHING.union(*(ROLES[name] for name in self.row_parameters))
        if self.input == "arrays":
            columns = _SCORED if self.kind == "prob" else _BOTH
            return _SCORED - _TRUTH if self.ignores_truth else columns
        sources = SUMS[self.kind] | ROW_COLUMNS[self.kind]
        own = (sources[unprefixed(name)] for name in self.statistics)
        return _NOTHING.union(*own, *(term.reads for term in self.all_terms))

    @property
    def of_labels(self) -> bool:
        """True if the truth is a label."""
        return self.kind in {"class", "prob"}

    @cached_property
    def row_parameters(self) -> tuple[str, ...]:
        """The columns of the rows of survival times that a function of arrays takes."""
        options = dict(self.options)
        names = inspect.signature(self.function).parameters if self.kind == "survival" else ()
        return tuple(name for name in names if name not in options and name not in WEIGHTS)

    @cached_property
    def columns_of_rows(self) -> frozenset[str]:
        """The columns of a row that it, or a quantity that it sums, reads."""
        own = frozenset(self.row_parameters if self.input == "arrays" else ())
        return own.union(*(term.parameters for term in self.all_terms))

    @cached_property
    def reads_points(self) -> bool:
        """True if it reads predictions at evaluation times, or quantiles."""
        return not self.columns_of_rows.isdisjoint(AT_POINTS)

    @cached_property
    def terms_of_outcomes(self) -> frozenset[Statistic]:
        """The quantities of survival times that it sums, of rows as if all had the event or survived the time."""
        terms = self.all_terms
        if self.kind != "survival" or not any("time" in term.parameters for term in terms):
            return frozenset()
        at_points = [term for term in terms if term.at_points]
        return frozenset(replace(term, outcome=outcome) for term in at_points for outcome in (True, False))

    @cached_property
    def at_points(self) -> bool:
        """True if it has a value for each evaluation time, or level of a quantile."""
        over = self.over_points or any(part.over_points for _, part in self.parts)
        return self.reads_points and not over

    @property
    def spreads(self) -> dict[str, Formula]:
        """The formulas of its `deviations`, or of its `variance`, by the name of the column."""
        functions = self.deviations if self.variance is None else (self.variance,)
        formulas: dict[str, Formula] = {}
        for name, function in zip(("variance", "events", "others"), functions, strict=False):
            formulas[name] = Formula(function, self.kind, self.input, undefined_levels=self.undefined_levels)
        return formulas

    @property
    def reads_label_order(self) -> bool:
        """True if its value, with its options, depends on the order of all labels."""
        return self.ordered_with in self.options

    @property
    def reads_row_order(self) -> bool:
        """True if its value depends on the order of rows."""
        own = self.in_order_unless is not None and dict(self.options)[self.in_order_unless] is None
        return own or any(part.reads_row_order for _, part in self.parts)

    @property
    def compares(self) -> bool:
        """True if it reads other groups besides its own."""
        return self.against is not None or bool(self.beyond)

    @property
    def describes(self) -> bool:
        """True if more of it is neither good nor bad, as of sums of the truth or of the predictions alone."""
        compares_rows = any(term.compares_rows for term in self.all_terms)
        is_sum = self.input == "sums" and self.given is None and not self.compares and not compares_rows
        # the width of an interval is read from its ends alone, and better if small
        return self.descriptive or (is_sum and len(self.reads) <= 1 and self.kind != "interval")

    @property
    def error_bound(self) -> Formula:
        """The formula of its largest error if scores are counted in bins."""
        if self.error_of_bins is None:
            msg = f"{self.name} needs the scores themselves: count again without `score_bins`."
            raise ArgumentError(msg)
        if self.against is not None:
            return replace(self, function=self.error_of_bins, options=())
        return Formula(self.error_of_bins, self.kind, self.input, undefined_levels=self.undefined_levels)

    def with_options(self, name: str, options: Mapping[str, object]) -> Self:
        """The same formula with other options."""
        known = dict(self.options)
        for option in options:
            if option not in known:
                kind = f"option of {name}"
                raise ArgumentError.unknown_keyword(kind, option, known)
        options = {option: plain(value) for option, value in options.items()}
        for option, value in options.items():
            if isinstance(value, int) and not isinstance(value, bool):
                whole(option, value, -(2**63), of=name)
        chosen = {**known, **options}
        for option, value in options.items():
            if isinstance(known[option], bool) and not isinstance(value, bool):
                msg = f"{name}: the option `{option}` is True or False, not {value!r}."
                raise ArgumentError(msg)
        try:
            hash(_frozen(chosen))
        except TypeError as error:
            msg = f"{name}: options are plain values, lists or mappings, not {options!r}."
            raise ArgumentError(msg) from error
        terms = tuple((name, term.with_options(chosen)) for name, term in self.terms)
        # an option of a metric is one of the metrics that it is made of
        parts: list[tuple[str, Formula]] = []
        for name_of_part, part in self.parts:
            shared = {option: value for option, value in options.items() if option in dict(part.options)}
            parts.append((name_of_part, part.with_options(name_of_part, shared)))
        return replace(self, options=_frozen(chosen), terms=terms, parts=tuple(parts))

    def on_sums(self, sums: Sums, whose: str = "") -> tuple[Number, Number | None]:
        """The value, nan or infinite where it is undefined, and the denominator of a rate; from sums by their name.

        Metrics that it is built from may be among the sums, as when a user gives plain numbers. `whose` is the prefix
        of the groups that it is evaluated for, if these are not the groups themselves.
        """
        arguments: dict[str, Number] = {}
        for name, prefix, base, part, column in self._inputs:
            of_groups = whose or prefix
            if of_groups + base in sums:
                values = sums[of_groups + base]
            elif part is not None:
                values = part.on_sums(sums, of_groups)[0]
            else:
                values = sums[of_groups + column]
            # read-only, so that a formula such as `tp += 1` cannot change the numbers of others
            arguments[name] = values.view()
            arguments[name].flags.writeable = False
        with np.errstate(all="ignore"):
            result = self._result(arguments)
            match result:
                case tuple() if len(pair := cast("tuple[Any, ...]", result)) == 2:
                    numerator, denominator = (self._as_numbers(part) for part in pair)
                    return np.where(denominator == 0, np.nan, numerator / denominator), denominator
                case np.ndarray() | np.floating():
                    return self._as_numbers(result), None
                case pl.Expr():
                    msg = (
                        f"{self.name}() returns a polars expression; a formula over sums uses arithmetic "
                        "on numpy arrays, such as `np.where(tp > 0, tp / fn, np.nan)`."
                    )
                    raise ArgumentError(msg)
                case _:
                    msg = (
                        f"{self.name}() must return a number for each group, or numerator and "
                        f"denominator, computed from its parameters, not {result!r}."
                    )
                    raise ArgumentError(msg)

    def _result(self, arguments: Mapping[str, Any]) -> object:
        """The result of the function for statistics by their names."""
        language = "polars expressions"
        if self.input == "sums":
            language = "numpy arrays, such as `np.sqrt(tp)` or `np.where(tp > 0, tp / fn, np.nan)`"
        with failures_of(f"{self.name}: the formula", f"Write it with {language}."):
            return self.function(**arguments, **dict[str, Any](self.options))

    def _as_numbers(self, result: Any) -> Number:
        """The result of the function, or a part of it, as an array of floats."""
        array = np.asarray(result)
        if array.dtype == np.float64:
            return array
        # numpy would read None as nan
        if array.dtype == object and any(item is None for item in array.flat):
            msg = f"{self.name}() returned None among its values; where a group has no value, return np.nan."
            raise ArgumentError(msg)
        with failures_of(f"{self.name}: the result of the formula", "It must be made of numbers."):
            return array.astype(np.float64, copy=False)

    def effective(self, sums: Sums, squares: Sums) -> Number | None:
        """Effective number of rows of a weighted rate, by linearisation; None for other formulas."""
        value, weight = self.on_sums(sums)
        squared, squares_of_weight = self.on_sums(squares)
        if weight is None or squares_of_weight is None:
            return None
        with np.errstate(all="ignore"):
            # of no rows without the event, and of none with it, there is no spread to compare with
            spread = value * (1 - value)
            variance = squares_of_weight * ((1 - value) ** 2 * squared + value**2 * (1 - squared)) / weight**2
            inside = (value > 0) & (value < 1)
            return np.where(inside, spread / variance, weight**2 / squares_of_weight)

    def even(self, sums: Sums, squares: Sums) -> Number | None:
        """Effective number of rows of a rate whose weights are unrelated to its hits (Kish, 1965); None for others."""
        weight, squares_of_weight = self.on_sums(sums)[1], self.on_sums(squares)[1]
        if weight is None or squares_of_weight is None:
            return None
        with np.errstate(all="ignore"):
            return weight**2 / squares_of_weight

    def denominator(self, rows: Sums) -> Number | None:
        """The denominator of a rate, from sums counted in rows; None where it is not a number of rows."""
        if self.counts == "positives":
            return rows["positives"]
        if self.counts == "smaller_class":
            return np.minimum(rows["positives"], rows["negatives"])
        if self.input != "sums" or self.given is not None or (self.kind != "class" and self.over_levels):
            return None
        denominator = self.on_sums(rows)[1]
        if self.kind == "class" or denominator is None:
            return denominator
        # other sums are no numbers of rows
        return None if np.isnan(denominator).any() else denominator

    def try_out(self, **known: float) -> tuple[Number, Number | None]:
        """The value and the denominator on made-up sums of three groups and two labels, to determine their kind."""
        value, denominator = self.on_sums(self._made_up(known))
        shape = self._tried_shape
        expected = shape[:-1] if self.over_levels else shape
        if value.shape != expected or (denominator is not None and denominator.shape != expected):
            way_out = "return one value for each group and label"
            if self.over_levels:
                way_out = "sum over the labels, which are the last axis: `tp.sum(axis=-1)`"
            msg = f"{self.name}() turns arrays of shape {shape} into arrays of shape {value.shape}; {way_out}."
            raise ArgumentError(msg)
        return value, denominator

    @property
    def _tried_shape(self) -> tuple[int, int]:
        return (_TRIED_GROUPS, 2) if self.of_labels else (_TRIED_GROUPS, 1)

    def _made_up(self, known: Mapping[str, float]) -> dict[str, Number]:
        """Made-up sums of a few groups, all different; known sums are kept."""
        shape = self._tried_shape
        counting = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
        made_up: dict[str, Number] = {name: counting + index for index, name in enumerate(self.all_sums)}
        return made_up | {name: np.full(shape, value) for name, value in known.items()}

    @cached_property
    def all_sums(self) -> tuple[str, ...]:
        """The names of all sums that it reads, including those of its parts."""
        names: list[str] = []
        for _, prefix, _, part, column in self._inputs:
            for of_part in part.all_sums if part is not None else (column,):
                # a prefix of its own counts, else that of the metric
                has_prefix = part is not None and unprefixed(of_part) != of_part
                names.append(of_part if has_prefix else prefix + of_part)
        return tuple(dict.fromkeys(names))

    @cached_property
    def is_rate(self) -> bool:
        """True if it returns numerator and denominator."""
        _, denominator = self.try_out() if self.input == "sums" else self.express()
        return denominator is not None

    @cached_property
    def is_share_of_rows(self) -> bool:
        """True if it is a rate whose denominator is a number of rows."""
        if self.input != "sums" or not self.is_rate or self.kind == "class":
            return self.input == "sums" and self.is_rate
        others = {name: math.nan for name in self.all_sums if name not in _COUNTS_OF_ROWS}
        return not self.over_levels and self.denominator(self._made_up(others)) is not None

    @cached_property
    def counts_steps(self) -> bool:
        """True if it reads the distance of truth and estimate in levels, with its options."""
        steps = {"absolute_steps", "squared_steps"}
        if self.kind != "class" or self.input != "sums" or steps.isdisjoint(self.statistics):
            return False
        return bool(np.isnan(self.try_out(**dict.fromkeys(steps, math.nan))[0]).any())

    def express(self, given: Collection[str] = ()) -> tuple[Expr, Expr | None]:
        """Value and, for a rate, denominator of a formula over rows, as expressions over columns of their names.

        Parts in `given` are read from columns of their name instead of being computed.
        """
        parts = dict(self.parts)
        arguments: dict[str, Any] = {}
        for name in self.needs:
            if name in parts and name not in given:
                arguments[name], _ = parts[name].express(given)
            else:
                arguments[name] = pl.col(name)
        result = self._result(arguments)
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

    def check(self) -> None:
        """Refuse a function that is not a formula, or options that it cannot use."""
        if self.input == "sums":
            self.try_out()
        elif self.input == "rows":
            self.express()

    @cached_property
    def column(self) -> str:
        """Column of its values next to the sums of a group, if it is computed from rows."""
        return f"{name_of(self.function)}({_text_of(self.options)}) {self.min_n} {self.min_share} {id(self.function)}"

    @cached_property
    def over_rows(self) -> Expr:
        """The value over the rows of a group; NaN means undefined, and is cheaper to turn into null later."""
        return self.express()[0].cast(pl.Float64)

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain numbers, given by the names of statistics or parts; null where it is undefined."""
        given = {name: _as_floats(name, value) for name, value in numbers.items()}
        self._check_given(given)
        value = self._of_rows(given) if self.input == "rows" else self._of_numbers(given)
        return None if value is None or math.isnan(value) else value

    def _check_given(self, given: Mapping[str, object]) -> None:
        """Refuse numbers without a statistic that the formula reads."""
        parts = dict(self.parts)
        missing = [name for name in self.needs if name not in given and name not in parts and name != "rank"]
        for name, part in parts.items():
            if name not in given:
                prefix = name.removesuffix(unprefixed(name))
                needed = {prefix + own for own in (*part.statistics, *dict(part.terms))}
                missing += sorted(needed - {*given})
        steps = {"absolute_steps", "squared_steps"} if "fn" in given else set[str]()
        if missing := [name for name in missing if name not in steps]:
            msg = f"{self.name} needs the number {missing[0]!r}."
            raise ArgumentError(msg)

    def _of_numbers(self, given: Mapping[str, float | list[float]]) -> float:
        """The value from sums, a number for each or, of a formula over labels, a list."""
        sums: dict[str, Any] = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
        lengths = {value.shape for value in sums.values()} - {()}
        if len(lengths) > 1:
            msg = f"{self.name} takes one number for each statistic, or lists of the same length."
            raise ArgumentError(msg)
        if lengths and not self.over_levels and lengths != {(1,)}:
            msg = f"{self.name} takes one number for each statistic: it is computed label by label."
            raise ArgumentError(msg)
        (shape,) = lengths or {()}
        sums = {name: np.broadcast_to(value, shape) for name, value in sums.items()}
        if self.over_levels and math.prod(shape) == 1:
            one_label = {name: value.reshape(()) for name, value in sums.items()}
            sums = two_sides(one_label, {*sums, *self.all_sums})
        elif self.over_levels:
            sums["rank"] = np.arange(float(shape[0]))
        return self.on_sums(sums)[0].item()

    def _of_rows(self, given: Mapping[str, float | list[float]]) -> float | None:
        """The value from numbers of the rows of a group."""
        try:
            frame = pl.DataFrame(dict(given), strict=False).with_columns(pl.all().cast(pl.Float64))
        except pl.exceptions.PolarsError as error:
            msg = f"{self.name} takes one number for each statistic, or lists of the same length."
            raise ArgumentError(msg) from error
        values = frame.select(self.express(given=frame.columns)[0]).to_series()
        if len(values) != 1:
            msg = f"{self.name} takes one number for each statistic: it is computed label by label."
            raise ArgumentError(msg)
        return values.item()


def _as_floats(name: str, value: object) -> float | list[float]:
    """One or several numbers of a statistic as floats; nan where missing."""
    several = is_list(value) and not isinstance(value, Mapping)
    numbers: list[Any] = list(cast("Iterable[Any]", value)) if several else [value]
    if not all(number is None or isinstance(number, Real | Decimal) for number in numbers):
        msg = f"`{name}` is a number, or a list of numbers, not {value!r}."
        raise ArgumentError(msg)
    try:
        floats = [math.nan if number is None else float(number) for number in numbers]
    except OverflowError as error:
        msg = f"`{name}` is too large for a number of 64 bits."
        raise ArgumentError(msg) from error
    return floats if several else floats[0]


def unprefixed(name: str) -> str:
    """A statistic without the prefix of other groups."""
    return name.removeprefix(OVERALL if name.startswith(OVERALL) else THE_REST)


def _parts_of(
    function: object, kind: Kind, needs: Sequence[str], known: Mapping[str, Formula], terms: Mapping[str, Statistic]
) -> dict[str, Formula]:
    """The metrics that parameters name; other names must be those of statistics."""
    parts: dict[str, Formula] = {}
    sums, rows = {*SUMS[kind], *terms}, ROW_COLUMNS[kind]
    for name in needs:
        base = unprefixed(name)
        if base in sums:
            continue
        if base in known and known[base].kind == kind:
            parts[name] = known[base]
        elif name not in rows:
            vocabulary = [word for word in (*SUMS[kind], *terms, *rows) if word not in _OF_ORDER]
            msg = (
                f"{name_of(function)}(): the parameter {name!r} is neither a statistic nor a metric in its module; "
                f"import the metric there.{nearest(name, [*vocabulary, *known])} Statistics: "
                f"{listed(vocabulary, shown=30)}."
            )
            raise ArgumentError(msg)
    return parts


def _input_of(function: object, kind: Kind, needs: Sequence[str], parts: Mapping[str, Formula]) -> Input:
    """Sums or rows: what all parameters of a formula are."""
    inputs: list[Input] = []
    for name in needs:
        if name in ROW_COLUMNS[kind]:
            inputs.append("rows")
        else:
            inputs.append(parts[name].input if name in parts else "sums")
    if len(set(inputs)) > 1:
        msg = f"{name_of(function)}(): a formula reads sums or rows, not both: {listed(needs)}."
        raise ArgumentError(msg)
    return inputs[0] if inputs else "sums"


def _check_counts(function: object, needs: Sequence[str], parts: Mapping[str, Formula], *, given: object) -> None:
    """Refuse the `count` of each label together with other statistics, or in a formula without `given=`."""
    bases = set(map(unprefixed, needs))
    of_labels = any(part.given is not None for part in parts.values())
    misread = bases != {"count"} if given else "count" in bases
    if of_labels or misread:
        msg = (
            f"{name_of(function)}(): `count` can only be read by a formula with `given=`, which reads nothing else "
            "and is not part of another formula."
        )
        raise ArgumentError(msg)


def _check_prefixes(function: object, needs: Mapping[str, Formula | None]) -> None:
    """Refuse prefixes of statistics that are not sums, which other groups do not have."""
    for name, part in needs.items():
        if name == unprefixed(name):
            continue
        statistics = {unprefixed(name)} if part is None else part.statistics
        is_of_rows = part is not None and part.input != "sums"
        if is_of_rows or not _OF_ORDER.isdisjoint(statistics):
            msg = f"{name_of(function)}(): {name!r} is not available: only sums over rows can be read for other groups."
            raise ArgumentError(msg)


def name_of(function: object) -> str:
    """Name of a function; callable objects have that of their class."""
    return getattr(function, "__name__", type(function).__name__)


def _frozen(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Options in hashable form: lists and mappings as tuples."""

    def freeze(value: object) -> object:
        if isinstance(value, Mapping):
            return tuple(cast("Mapping[object, object]", value).items())
        return tuple(cast("list[object]", value)) if isinstance(value, list) else value

    return tuple((name, freeze(value)) for name, value in options.items())


def _text_of(options: Iterable[tuple[str, object]]) -> str:
    """Options as part of a name, which is the same for options that are equal, as 1 and 1.0 are."""
    texts: list[str] = []
    for name, value in options:
        comparable = float(value) if isinstance(value, Real) else value
        texts.append(f"{name}={comparable!r}")
    return ", ".join(texts)


def two_sides(sums: Sums, names: Iterable[str]) -> dict[str, Number]:
    """Sums of one label against the rest and, on a new last axis, of the rest against the label."""
    both_sides: dict[str, Number] = {}
    for name in names:
        # of two labels, the wrong one is one step away
        own = "fn" if name in {"absolute_steps", "squared_steps"} else name
        if own in sums:
            other = _FROM_THE_REST.get(own, own)
            both_sides[name] = np.stack([sums[own], sums.get(other, sums[own])], axis=-1)
    return both_sides | {"rank": np.array([0.0, 1.0])}
