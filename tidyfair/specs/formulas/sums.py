"""Formulas over sums: arithmetic on numpy arrays, with groups along the first axis and labels along the last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, failures_of
from tidyfair.specs.averages import DISTRIBUTION, DISTRIBUTION_BY_LABEL, MICRO, Average
from tidyfair.specs.formulas.formula import Formula, Table, Variation, as_floats
from tidyfair.specs.formulas.statistics import BOTH, OTHER_SIDE, STEPS, Given, Number, Statistic, Sums, unprefixed

_TRIED_GROUPS = 3
_COUNTS_OF_ROWS = ("positives", "negatives", "instances")


@dataclass(frozen=True, eq=False)
class SumFormula(Formula):
    """Arithmetic on sums that merge; what types of sums have in common."""

    descriptive: bool = False
    """True if more of it is neither good nor bad, although it reads truth and estimate, or all rows."""

    is_of_rows: ClassVar[bool] = False
    language: ClassVar[str] = "numpy arrays, such as `np.sqrt(tp)` or `np.where(tp > 0, tp / fn, np.nan)`"

    @cached_property
    def _inputs(self) -> list[tuple[str, str, str, SumFormula | None, str]]:
        """The name, prefix, name without prefix, metric (if it is one) and column of sums of each parameter."""
        parts = dict(cast("tuple[tuple[str, SumFormula], ...]", self.parts))
        columns = {name: term.column for name, term in self.terms}
        inputs: list[tuple[str, str, str, SumFormula | None, str]] = []
        for name in self.needs:
            base = unprefixed(name)
            inputs.append((name, name.removesuffix(base), base, parts.get(name), columns.get(name, base)))
        return inputs

    @property
    def describes(self) -> bool:
        """True if more of it is neither good nor bad, as of sums of the truth or of the predictions alone."""
        reads_others = self.variation is None or any(term.compares_rows for term in self.all_terms)
        # the width of an interval is read from its ends alone, and better if small
        is_of_one_side = len(self.reads) <= 1 and self.kind != "interval"
        return self.descriptive or (is_of_one_side and not reads_others)

    @property
    def variation(self) -> Variation | None:
        """How it is known how far values vary: from its sums, but for those of other groups."""
        return None if self.beyond else "sums"

    # Arithmetic

    def sums_read(self, sums: Sums, average: Average) -> Sums:
        """The sums that it reads, from those of each label."""
        if average is MICRO:
            return {name: _over_labels(values) for name, values in sums.items()}
        # if it sums over all labels, those of one label against the rest are of two sides
        has_two_sides = self.kind == "class" and self.over_levels and average.by_label and self.only_average is None
        return two_sides(sums, self.all_sums) if has_two_sides else sums

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
            result = self.result(arguments)
            match result:
                case tuple() if len(pair := cast("tuple[Any, ...]", result)) == 2:
                    numerator, denominator = map(self._as_numbers, pair)
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

    def effective_numbers(self, sums: Sums, squares: Sums) -> dict[str, Number]:
        """Effective numbers of rows of a weighted rate, from sums of weights and of squared weights; none for others.

        `effective` is that by linearization, `even` that if weights are unrelated to hits (Kish, 1965).
        """
        value, weight = self.on_sums(sums)
        squared, squares_of_weight = self.on_sums(squares)
        if weight is None or squares_of_weight is None:
            return {}
        with np.errstate(all="ignore"):
            even = weight**2 / squares_of_weight
            # of no rows without the event, and of none with it, there is no spread to compare with
            spread = value * (1 - value)
            variance = squares_of_weight * ((1 - value) ** 2 * squared + value**2 * (1 - squared)) / weight**2
            return {"effective": np.where((value > 0) & (value < 1), spread / variance, even), "even": even}

    # Trials on made-up sums

    def check(self) -> None:
        """Refuse a function that is not a formula, or options that it cannot use."""
        self.try_out()

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
        return (_TRIED_GROUPS, 2) if self.has_labels else (_TRIED_GROUPS, 1)

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
            for sum_of_part in part.all_sums if part is not None else (column,):
                # a prefix of its own counts, else that of the metric
                has_prefix = part is not None and unprefixed(sum_of_part) != sum_of_part
                names.append(sum_of_part if has_prefix else prefix + sum_of_part)
        return tuple(dict.fromkeys(names))

    @cached_property
    def is_rate(self) -> bool:
        """True if it returns numerator and denominator."""
        return self.try_out()[1] is not None

    @cached_property
    def is_share_of_rows(self) -> bool:
        """True if it is a rate whose denominator is a number of rows."""
        others = {name: math.nan for name in self.all_sums if name not in _COUNTS_OF_ROWS}
        return self.is_rate and self.denominator(self._made_up(others)) is not None

    # Plain numbers

    def on(self, numbers: Mapping[str, Any]) -> float | None:
        """The value on plain numbers, given by the names of statistics or parts; None where it is undefined."""
        given = {name: as_floats(name, value) for name, value in numbers.items()}
        self.check_given(given)
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
        value = self.on_sums(sums)[0].item()
        return None if math.isnan(value) else value


@dataclass(frozen=True, eq=False)
class LabelSums(SumFormula):
    """A formula over counts of one label against the rest, or of all labels if it sums over these itself."""

    ordered_with: tuple[str, str] | None = None
    """The option, and its value, with which the order of labels counts."""

    @property
    def reads_label_order(self) -> bool:
        """True if its value, with its options, depends on the order of all labels."""
        return self.ordered_with in self.options

    @cached_property
    def counts_steps(self) -> bool:
        """True if it reads the distance of truth and estimate in levels, with its options."""
        if self.statistics.isdisjoint(STEPS):
            return False
        return bool(np.isnan(self.try_out(**dict.fromkeys(STEPS, math.nan))[0]).any())

    @property
    def variation(self) -> Variation | None:
        """How it is known how far values vary: from counts of labels, unless it sums other quantities."""
        return super().variation if self.beyond or self.all_terms else "counts"

    def denominator(self, rows: Sums) -> Number | None:
        """The denominator of a rate, from sums counted in rows."""
        return self.on_sums(rows)[1]


@dataclass(frozen=True, eq=False)
class LabelDistributions(LabelSums):
    """A formula over the distribution of labels in a group: of all its rows, or of those of each label."""

    given: Given = "nothing"
    """The side whose labels the rows are split by."""

    @cached_property
    def reads(self) -> frozenset[str]:
        """Those of `truth` and `estimate` in which a row must have a value to count."""
        return frozenset({"estimate"}) if self.given == "nothing" else BOTH

    @cached_property
    def only_average(self) -> Average:
        """The values of all labels in every call."""
        return DISTRIBUTION if self.given == "nothing" else DISTRIBUTION_BY_LABEL

    @property
    def variation(self) -> Variation | None:
        """How far values vary is known by replicates only."""
        return None

    def denominator(self, rows: Sums) -> Number | None:  # noqa: ARG002 - it is that of its table
        """It is no rate."""
        return None

    def table(self, average: Average) -> Table:  # noqa: ARG002 - it has one average only
        """The table that it reads."""
        return Table("class", self.reads, given=self.given)


@dataclass(frozen=True, eq=False)
class RowSums(SumFormula):
    """A formula over sums of quantities of rows: of scores, numbers, survival times or intervals."""

    squared_correlation: bool = False
    """True if it is the square of a correlation, whose interval is that of the correlation."""
    range_of_limits: tuple[float, float] | None = None
    """The range of true values, where those of samples may leave it because of the weights of their rows."""
    over_points: bool = False
    """True if it is of the average over evaluation times, or levels of quantiles, instead of each of them."""

    @cached_property
    def terms_of_outcomes(self) -> frozenset[Statistic]:
        """The quantities of survival times that it sums, of rows as if all had the event or survived the time."""
        terms = self.all_terms
        if self.kind != "survival" or not any("time" in term.parameters for term in terms):
            return frozenset()
        at_points = [term for term in terms if term.at_points]
        return frozenset(replace(term, outcome=outcome) for term in at_points for outcome in (True, False))

    @property
    def at_points(self) -> bool:
        """True if it has a value for each evaluation time, or level of a quantile."""
        over_points = self.over_points or any(cast("RowSums", part).over_points for _, part in self.parts)
        return self.reads_points and not over_points

    def denominator(self, rows: Sums) -> Number | None:
        """The denominator of a rate, from sums counted in rows; None where it is not a number of rows."""
        if self.counts != "instances" or self.over_levels:
            return super().denominator(rows)
        denominator = self.on_sums(rows)[1]
        # other sums are no numbers of rows
        return None if denominator is None or np.isnan(denominator).any() else denominator


def _over_labels(values: Number) -> Number:
    """The sums over labels; statistics of the labels of a call, in one dimension, are the same for all groups."""
    return values[:1] if values.ndim == 1 else values.sum(axis=1, keepdims=True)


def two_sides(sums: Sums, names: Iterable[str]) -> dict[str, Number]:
    """Sums of one label against the rest and, on a new last axis, of the rest against the label."""
    both_sides: dict[str, Number] = {}
    for name in names:
        # of two labels, the wrong one is one step away
        own = "fn" if name in STEPS else name
        if own in sums:
            other = sums.get(OTHER_SIDE.get(own, own), sums[own])
            both_sides[name] = np.stack([sums[own], other], axis=-1)
    return both_sides | {"rank": np.array([0.0, 1.0])}
