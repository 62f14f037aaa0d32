"""What all formulas have: a function whose parameters are what it needs, with its options fixed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np

from tidyfair.errors import ArgumentError, Status, failures_of
from tidyfair.specs.arguments import is_list, plain, whole
from tidyfair.specs.averages import STANDARD, Average
from tidyfair.specs.formulas.statistics import (
    AT_POINTS,
    NO_COLUMNS,
    ROW_COLUMNS,
    STEPS,
    SUMS,
    Counts,
    Given,
    Kind,
    Number,
    Statistic,
    Sums,
    name_of,
    text_of_options,
    unprefixed,
)
from tidyfair.specs.option_table import refuse_unknown, unknown_keyword

Variation: TypeAlias = Literal["counts", "sums", "area", "ranked", "calibration_error", "fit"]
"""How far a value varies is known from counts of labels, from other sums, from the ranks of an area under the ROC
curve, from the influences of ranked rows, from the bins of a calibration error, or from the influences on a fit."""


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
    """The center and the standard error of the lower limit, with a part of a row that has not been seen."""

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(float((self.of_unit**2).sum())) if self.of_model is None else self.of_model


@dataclass(frozen=True)
class Table:
    """The rows of a group that count and the way they are summed; formulas with the same needs share a table."""

    kind: Kind
    reads: frozenset[str] = frozenset()
    """The columns that must not be null for a row to count; for class metrics they differ by statistic."""
    sides: bool = False
    """True if a label and its complement are read, for formulas over all labels."""
    pairs: bool = False
    """True if labels are read against each other label instead of the rest."""
    given: Given | None = None
    """The side whose labels condition the distributions that it holds, if it holds distributions."""


@dataclass(frozen=True, eq=False)
class Formula:
    """A function of what metrics read, with its options fixed; the types of formulas say what that is."""

    function: Callable[..., Any]
    kind: Kind
    options: tuple[tuple[str, object], ...] = ()
    parts: tuple[tuple[str, Formula], ...] = field(default=(), repr=False)
    """Parameters that are other metrics."""
    terms: tuple[tuple[str, Statistic], ...] = field(default=(), repr=False)
    """Parameters that are sums of a quantity of rows."""
    metric: str = field(default="", repr=False, compare=False)
    """The name of the user's metric, where it is not that of the function."""
    over_levels: bool = False
    """True if it reads all labels itself, instead of being evaluated label by label."""
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
    influence: Callable[..., Influence] | None = None
    """For formulas that read rows: the sampling variation, from the rows of a group as arrays, and their units."""
    error_of_bins: Callable[..., Any] | None = None
    """For formulas that read rows: the largest error if scores are counted in bins."""
    no_interval: str = ""
    """The reason why it has no interval; empty if it may have one."""

    is_of_rows: ClassVar[bool] = True
    """True if values are computed from the rows of groups, instead of from sums that merge."""
    language: ClassVar[str] = "polars expressions"
    """The language in which its function is written, for messages."""

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        return (type(self), *(getattr(self, item.name) for item in fields(self) if item.compare))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # computed once, because formulas are keys of many mappings
        return hash(self._identity)

    @cached_property
    def column(self) -> str:
        """Column of its values, if they are computed from rows."""
        return f"{name_of(self.function)}({text_of_options(self.options)}) {hash(self)}"

    @cached_property
    def name(self) -> str:
        """The name in messages: that of the metric, or of the function."""
        return self.metric or name_of(self.function)

    # What it reads

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """The names of its parameters except the options: statistics and other metrics."""
        options = dict(self.options)
        return tuple(name for name in inspect.signature(self.function).parameters if name not in options)

    @cached_property
    def reads(self) -> frozenset[str]:
        """Those of `truth`, `estimate` and `probs` in which a row must have a value to count."""
        sources = SUMS[self.kind] | ROW_COLUMNS[self.kind]
        own = (sources[unprefixed(name)] for name in self.statistics)
        return NO_COLUMNS.union(*own, *(term.reads for term in self.all_terms))

    @property
    def has_labels(self) -> bool:
        """True if the truth is a label."""
        return self.kind in {"class", "prob"}

    @property
    def needs_rows(self) -> bool:
        """True if a tally has to keep rows for it; of functions of labels, which are counted, it has not."""
        return self.is_of_rows and self.kind != "class"

    @cached_property
    def statistics(self) -> frozenset[str]:
        """The names of all statistics, or columns of rows, that it needs, including those of its parts."""
        own = frozenset({*self.needs} - {*dict(self.parts), *dict(self.terms)})
        return own.union(*(part.statistics for _, part in self.parts))

    @cached_property
    def all_terms(self) -> frozenset[Statistic]:
        """The quantities of rows that it needs the sum of, including those of its parts."""
        return frozenset(term for _, term in self.terms).union(*(part.all_terms for _, part in self.parts))

    @cached_property
    def terms_of_lists(self) -> tuple[Statistic, ...]:
        """The quantities of rows that depend on the other rows of a list."""
        return tuple(sorted((term for term in self.all_terms if term.lists), key=lambda term: term.column))

    @cached_property
    def columns_of_rows(self) -> frozenset[str]:
        """The columns of a row that it, or a quantity that it sums, reads."""
        return NO_COLUMNS.union(*(term.parameters for term in self.all_terms))

    @cached_property
    def beyond(self) -> tuple[str, ...]:
        """The prefixes of the statistics that it needs of other groups."""
        prefixes = {name.removesuffix(unprefixed(name)) for name in self.needs} - {""}
        return tuple(sorted(prefixes.union(*(part.beyond for _, part in self.parts))))

    @property
    def compares(self) -> bool:
        """True if it reads other groups besides its own."""
        return bool(self.beyond)

    @property
    def reads_points(self) -> bool:
        """True if it reads predictions at evaluation times, or quantiles."""
        return not self.columns_of_rows.isdisjoint(AT_POINTS)

    @property
    def at_points(self) -> bool:
        """True if it has a value for each evaluation time, or level of a quantile."""
        return self.reads_points

    # What it is

    @property
    def describes(self) -> bool:
        """True if more of it is neither good nor bad, as of sums of the truth or of the predictions alone."""
        return False

    @cached_property
    def only_average(self) -> Average | None:
        """The average over labels that it has in every call; None if that depends on the call."""
        return None if self.has_labels else STANDARD

    @property
    def variation(self) -> Variation | None:
        """How it is known how far values vary; None if by replicates only."""
        return None if self.influence is None else "fit"

    @property
    def error_bound(self) -> Formula:
        """The formula of its largest error if scores are counted in bins."""
        if self.error_of_bins is None:
            msg = f"{self.name} needs the scores themselves: count again without `score_bins`."
            raise ArgumentError(msg)
        return replace(self, function=self.error_of_bins, options=(), parts=())

    @cached_property
    def spreads(self) -> dict[str, Formula]:
        """The formulas of its variance, by the name of the column."""
        return {}

    def table(self, average: Average) -> Table:
        """The table that it reads; the counts of labels are the same for all averages."""
        if self.kind == "class":
            return Table("class")
        sides = self.kind == "prob" and self.over_levels and average.by_label
        return Table(self.kind, self.reads, sides, average.of_pairs)

    # How it is evaluated

    def denominator(self, rows: Sums) -> Number | None:
        """The denominator of a rate, from sums counted in rows; None where it is not a number of rows."""
        if self.counts == "positives":
            return rows["positives"]
        return np.minimum(rows["positives"], rows["negatives"]) if self.counts == "smaller_class" else None

    def check(self) -> None:
        """Refuse a function that is not a formula, or options that it cannot use."""

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain numbers, given by the names of what it needs; None where it is undefined."""
        # each type of formula has its own; `Formula` itself is never made
        raise NotImplementedError

    def check_given(self, given: Mapping[str, object]) -> None:
        """Refuse numbers without one that it needs, and those that it has no name for."""
        parts = dict(self.parts)
        named = {*SUMS[self.kind], *ROW_COLUMNS[self.kind], *self.needs, *parts, *STEPS}
        named |= {own for part in parts.values() for own in (*part.statistics, *part.needs, *dict(part.terms))}
        for name in given:
            if unprefixed(name) not in named and name not in named:
                kind = f"number of {self.name}.formula()"
                raise unknown_keyword(kind, name, self.needs)
        missing = [name for name in self.needs if name not in given and name not in parts and name != "rank"]
        for name, part in parts.items():
            if name not in given:
                prefix = name.removesuffix(unprefixed(name))
                needed = {prefix + own for own in (*part.statistics, *dict(part.terms))}
                missing += sorted(needed - {*given})
        steps = STEPS if "fn" in given else ()
        if missing := [name for name in missing if name not in steps]:
            msg = f"{self.name} needs the number {missing[0]!r}."
            raise ArgumentError(msg)

    def result(self, arguments: Mapping[str, Any]) -> object:
        """The result of the function for what it needs, by name."""
        try:
            return self.function(**arguments, **dict[str, Any](self.options))
        except Exception:
            with failures_of(f"{self.name}: the formula", f"Write it with {self.language}."):
                raise

    @property
    def follows_threshold(self) -> bool:
        """True if its option `at`, a risk, is the threshold of the call."""
        return self.kind == "class" and ("at", "threshold") in self.options

    def at_threshold(self, threshold: float | None) -> Self:
        """The same formula at a threshold of the call, if it follows that."""
        follows = threshold is not None and self.follows_threshold
        return self.with_options(self.name, {"at": threshold}) if follows else self

    def with_options(self, name: str, options: Mapping[str, object]) -> Self:
        """The same formula with other options."""
        known = dict(self.options)
        refuse_unknown(f"option of {name}", options, known)
        options = {option: plain(value) for option, value in options.items()}
        for option, value in options.items():
            if isinstance(value, int) and not isinstance(value, bool):
                whole(option, value, -(2**63), of=name)
        for option, value in options.items():
            if isinstance(known[option], bool) and not isinstance(value, bool):
                msg = f"{name}: the option `{option}` is True or False, not {value!r}."
                raise ArgumentError(msg)
        chosen = frozen_options(known | options)
        try:
            hash(chosen)
        except TypeError as error:
            msg = f"{name}: options are plain values, lists or mappings, not {options!r}."
            raise ArgumentError(msg) from error
        # an option of a metric is one of the metrics that it is made of
        parts: list[tuple[str, Formula]] = []
        for name_of_part, part in self.parts:
            shared = {option: value for option, value in options.items() if option in dict(part.options)}
            parts.append((name_of_part, part.with_options(name_of_part, shared)))
        terms = tuple((name, term.with_options(dict(chosen))) for name, term in self.terms)
        return replace(self, options=chosen, parts=tuple(parts), terms=terms)


def frozen_options(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    """Options in hashable form: lists and mappings as tuples."""

    def freeze(value: object) -> object:
        if isinstance(value, Mapping):
            return tuple(cast("Mapping[object, object]", value).items())
        return tuple(cast("list[object]", value)) if isinstance(value, list) else value

    return tuple((name, freeze(value)) for name, value in options.items())


def as_floats(name: str, value: object) -> float | list[float]:
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


def arithmetic_of(function: Callable[..., Any]) -> str | None:
    """The expression that a function returns, if that is all it does; a rate is a quotient."""
    import ast  # noqa: PLC0415 - for display only
    from textwrap import dedent  # noqa: PLC0415 - as above

    try:
        (definition,) = ast.parse(dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(definition, ast.FunctionDef):
        return None
    *docstring, last = definition.body
    is_alone = isinstance(last, ast.Return) and all(isinstance(statement, ast.Expr) for statement in docstring)
    value = last.value if isinstance(last, ast.Return) and is_alone else None
    if not isinstance(value, ast.Tuple):
        return None if value is None else ast.unparse(value)
    # operands of a quotient need parentheses
    operands = [f"({ast.unparse(part)})" if isinstance(part, ast.BinOp) else ast.unparse(part) for part in value.elts]
    return " / ".join(operands)
