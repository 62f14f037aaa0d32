"""The intervals of a call: limits of all values and comparisons, by the methods that the table gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.results import LOST, VALUE
from tidyfair.evaluation.states import NO_LEVEL
from tidyfair.evaluation.statistics import LEVEL
from tidyfair.intervals.comparisons import Family, FamilyWithRests, Intervals, in_blocks, shapes_of, usable_outers
from tidyfair.intervals.critical_values import z_of_groups
from tidyfair.intervals.draws import Draws
from tidyfair.intervals.estimates import Estimates
from tidyfair.intervals.inversion import Spread
from tidyfair.intervals.methods import Case, Method, required
from tidyfair.intervals.pairs import ComparedGroups
from tidyfair.intervals.proportions import z_value
from tidyfair.intervals.shares import is_mean, share_of
from tidyfair.intervals.uncertainty import Uncertainty, sampling_of
from tidyfair.specs.aggregates import Aggregate
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.metric_specs import MetricSpec
from tidyfair.specs.options import Options
from tidyfair.specs.segments import Booleans, Floats, Integers, Segments
from tidyfair.tallies.tally import Tally

Estimator: TypeAlias = Callable[[Integers], Estimates]
"""The estimates of some rows of a formula."""

_EQUAL = 1e-9
"""The relative difference of means that are the same is smaller."""


def group_intervals(evaluated: Evaluated, groups: pl.DataFrame, options: Options) -> pl.DataFrame:
    """The values of groups with their intervals."""
    uncertainty = _uncertainty_of(evaluated, options)
    row_of_table = (
        evaluated.rows.with_row_index("row").unique(VALUE, keep="first", maintain_order=True)["row"].to_numpy()
    )
    is_shown = np.zeros(len(evaluated.rows), dtype=bool)
    is_shown[row_of_table] = True
    intervals = Intervals.none(len(evaluated.rows))
    drawn: list[int] = []
    for number, requested in enumerate(uncertainty.requested):
        rows = uncertainty.rows(number)
        rows = rows[is_shown[rows]]
        method = _method_of_values(uncertainty, number, evaluated.specs[requested.spec])
        if not len(rows):
            continue
        if method is None:
            drawn.append(number)
            continue
        outer = uncertainty.column("outer")[rows]
        # the values of an outer group hold together
        z = z_of_groups(np.bincount(outer)[outer], options.conf_level) if options.simultaneous else None
        _put_values(uncertainty, number, rows, method, z, intervals, rows)
    lost = Draws(uncertainty).put_groups(drawn, is_shown, intervals) if drawn else None
    _without_lower(uncertainty, uncertainty.column("spec"), is_shown, intervals)
    groups = _with_even_rows(groups, uncertainty, row_of_table)
    table = _beside(groups, intervals, row_of_table, lost)
    if not options.simultaneous:
        return table
    of_groups = pl.when(pl.col(".by").is_not_null()).then(pl.col(".method") + ", simultaneous")
    return table.with_columns(of_groups.otherwise(".method").alias(".method"))


def _uncertainty_of(evaluated: Evaluated, options: Options) -> Uncertainty:
    """The values of a call with how far they vary, if its design knows the interval that is asked for."""
    if evaluated.evaluator.tally.design is not None and options.interval not in {"auto", "analytic"}:
        msg = f'`interval={options.interval!r}` does not support `design`; use `interval="auto"`.'
        raise ArgumentError(msg)
    return Uncertainty(evaluated, options)


def _without_lower(uncertainty: Uncertainty, spec: Integers, shown: Booleans, intervals: Intervals) -> None:
    """Drop the end towards equality of values that are distances from other groups: chance only adds to these."""
    if uncertainty.interval in {"auto", "bayes"}:
        specs = uncertainty.evaluated.specs
        of_distances = np.array([own.of_distances and own.by is not None for own in specs])[spec]
        index = np.flatnonzero(of_distances & shown & ~np.isnan(intervals.lower))
        intervals.lower[index] = np.nan
        intervals.method[index] = [f"{name.partition(',')[0]}, upper end" for name in intervals.method[index]]


def _with_even_rows(groups: pl.DataFrame, uncertainty: Uncertainty, rows: Integers) -> pl.DataFrame:
    """Groups with the effective number of rows that is known of values that are no rates: how far weights differ."""
    if ".effective_n" not in groups.columns or "even" not in uncertainty.evaluated.values:
        return groups
    rates = [share_of(requested.formula) is not None for requested in uncertainty.requested]
    is_rate = np.array(rates)[uncertainty.column("requested")[rows]] | np.isnan(uncertainty.column("estimate")[rows])
    even = pl.Series(uncertainty.column("even")[rows], nan_to_null=True)
    effective = pl.when(pl.Series(is_rate)).then(".effective_n").otherwise(even)
    return groups.with_columns(effective.alias(".effective_n"))


def result_intervals(evaluated: Evaluated, results: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Results with their intervals, one row for each spec and outer group in this order."""
    uncertainty = _uncertainty_of(evaluated, options)
    draws, intervals = Draws(uncertainty), Intervals.none(len(results))
    kept, outers = _kept_rows(uncertainty, results), uncertainty.outers
    comparisons = [_Comparison(uncertainty, number, kept) for number in range(len(evaluated.specs))]
    resampled = draws.estimators([own.number for own in comparisons if own.is_resampled])
    value = results[".estimate"].to_numpy()
    left = ~np.isnan(value)
    for comparison in comparisons:
        index = slice(comparison.number * outers, (comparison.number + 1) * outers)
        left[index] &= comparison.put(resampled, intervals.part(index))
    # limits of values that stand for infinite ones need not include these
    lower, upper = np.minimum(intervals.lower, value), np.maximum(intervals.upper, value)
    intervals = replace(intervals, lower=lower, upper=upper)
    numbers: list[int] = np.unique(np.flatnonzero(left) // outers).tolist()
    only_closed = uncertainty.interval in {"analytic", "exact"}
    for number in numbers:
        spec = evaluated.specs[number]
        refuse_under_design(uncertainty.tally, spec)
        if not only_closed:
            required(Case("resampled", "other", "rows"), uncertainty.interval, spec.name)
    if numbers and only_closed:
        raise no_closed_form([evaluated.specs[number].name for number in numbers], uncertainty.interval)
    lost = draws.put_results(left, value, intervals) if left.any() else None
    _without_lower(
        uncertainty, np.repeat(np.arange(len(evaluated.specs)), outers), np.ones(len(value), dtype=bool), intervals
    )
    return _beside(results, intervals, np.arange(len(results)), lost)


def _kept_rows(uncertainty: Uncertainty, results: pl.DataFrame) -> Booleans | None:
    """Mask of the values that results count: those of metrics that are left out of a result do not."""
    left_out = results[".metrics_left_out"]
    has_some = left_out.list.len() > 0
    if not has_some.any():
        return None
    names = np.array([requested.name for requested in uncertainty.requested], dtype=object)
    spec, outer = uncertainty.column("spec"), uncertainty.column("outer")
    name, kept = names[uncertainty.column("requested")], np.ones(len(spec), dtype=bool)
    for index in has_some.arg_true():
        number, own = divmod(index, uncertainty.outers)
        kept &= ~((spec == number) & (outer == own) & np.isin(name, left_out[index].to_list()))
    return kept


@dataclass(frozen=True, eq=False)
class _Comparison:
    """A spec, whose results are set in closed form where they have one."""

    uncertainty: Uncertainty
    number: int
    kept: Booleans | None
    """Mask of the values that count; None for all."""

    @cached_property
    def spec(self) -> MetricSpec:
        """The spec."""
        return self.uncertainty.evaluated.specs[self.number]

    @cached_property
    def rows(self) -> dict[int, Integers]:
        """The rows of its formulas that have some."""
        rows = {own: self.uncertainty.rows(own) for own in self.uncertainty.of_spec(self.number)}
        return {own: of_formula for own, of_formula in rows.items() if len(of_formula)}

    @cached_property
    def levels(self) -> set[int]:
        """The labels that its values are of."""
        return {int(level) for rows in self.rows.values() for level in np.unique(self.uncertainty.column(LEVEL)[rows])}

    @cached_property
    def has_kinds(self) -> bool:
        """True if all of its values have errors in closed form."""
        return all(self.uncertainty.kinds[own] is not None for own in self.rows)

    @property
    def is_resampled(self) -> bool:
        """True if its limits follow from those of groups, whose errors are those of replicates."""
        is_closed = self.spec.aggregate is not None and (self._is_closed or self._is_distance)
        return is_closed and not self.has_kinds and self.uncertainty.interval == "auto"

    @cached_property
    def _is_closed(self) -> bool:
        """True if the limits of its results follow from those of values."""
        aggregate = self.spec.aggregate
        if aggregate is None:
            return self.levels == {NO_LEVEL}
        return aggregate.in_closed_form(len(self.spec.formulas) * len(self.levels)) and not self.spec.subtracted

    @property
    def _is_distance(self) -> bool:
        """True if it is a distance of groups whose values do not depend on each other."""
        aggregate, formulas = self.spec.aggregate, [formula for _, formula in self.spec.formulas]
        is_distance = aggregate is not None and aggregate.is_distance and not self.spec.subtracted
        is_distance = is_distance and self.uncertainty.tally.design is None
        return is_distance and all(formula.reads and not formula.compares for formula in formulas)

    def put(self, resampled: Mapping[int, Estimator], intervals: Intervals) -> Booleans:
        """Set the limits of results in closed form; a mask of the outer groups that are left to replicates."""
        uncertainty, aggregate = self.uncertainty, self.spec.aggregate
        left = np.full(uncertainty.outers, fill_value=True)
        if uncertainty.interval in {"bootstrap", "bayes"} or not (self.has_kinds or self.is_resampled):
            return left
        if aggregate is None:
            for number, rows in self.rows.items() if self._is_closed else ():
                method = _method_of_values(uncertainty, number, self.spec)
                if method is not None:
                    _put_values(uncertainty, number, rows, method, None, intervals, uncertainty.column("outer")[rows])
                    left[:] = False
            return left
        if self._is_closed:
            return self._put_comparisons(aggregate, resampled, intervals)
        if aggregate.compares_with_context and not self.spec.subtracted:
            left = ~self._put_beside_rests(intervals)
        if left.any() and self._is_distance and uncertainty.interval != "exact" and self.rows:
            estimators = {own: resampled.get(own, partial(uncertainty.estimates, own)) for own in self.rows}
            case = Case("smooth", "distance", sampling_of(uncertainty.tally))
            method = required(case, uncertainty.interval, self.spec.name)
            put = Spread(uncertainty, self.number, estimators, left).put(intervals)
            intervals.name(put, before=method.name)
            left &= ~put
        return left

    def _put_comparisons(
        self, aggregate: Aggregate, resampled: Mapping[int, Estimator], intervals: Intervals
    ) -> Booleans:
        """Set the limits of comparisons of groups with each other, or with one of them."""
        uncertainty = self.uncertainty
        families = uncertainty.families(self.number, aggregate, resampled, self.kept)
        families = [replace(family, values=family.values.finite) for family in families]
        # the sign of the farthest of several values is that of whichever is the farthest
        outers = [uncertainty.column("outer")[rows] for rows in self.rows.values()]
        count = np.sum([np.bincount(own, minlength=uncertainty.outers) for own in outers], axis=0)
        signed = np.broadcast_to((count > 2) & aggregate.is_signed, uncertainty.outers)
        shapes = shapes_of(families, aggregate) if families else np.full(uncertainty.outers, None)
        shapes[signed] = None
        for shape in {shape for shape in shapes.tolist() if shape is not None}:
            for block in in_blocks(families, shapes == shape):
                # two groups have the method of their own values
                for own in [[family] for family in block] if shape in {"difference", "ratio"} else [block]:
                    self._put(shape, own, intervals)
        return signed

    def _put(self, shape: str, families: Sequence[Family], intervals: Intervals) -> None:
        """Set the limits of results by the method of their shape."""
        # comparisons of rates have no exact interval
        interval = "analytic" if self.uncertainty.interval == "exact" else self.uncertainty.interval
        method = required(Case.of(families[0].values, shape), interval, self.spec.name)
        if method.limits is not None:
            method.limits(families, self.spec.aggregate, self.uncertainty.options.conf_level, intervals)
        intervals.name(np.unique(np.concatenate([family.outer for family in families])), before=method.name)

    def _put_beside_rests(self, intervals: Intervals) -> Booleans:
        """Set the limits of distances to all others, or to all rows; a mask of the outer groups that have some."""
        aggregate: Any = self.spec.aggregate
        uncertainty = self.uncertainty
        several = len(self.spec.formulas) > 1 or self.levels != {NO_LEVEL}
        are_means = all(
            uncertainty.kinds[own] == "rate" or is_mean(uncertainty.requested[own].formula) for own in self.rows
        )
        possible = not aggregate.signed and (not several or aggregate.across == "worst") and are_means
        if uncertainty.tally.design is not None or uncertainty.tally.cluster_names or not possible:
            return np.zeros(uncertainty.outers, dtype=bool)
        adds_up = self._adds_up(aggregate)
        families = uncertainty.families(self.number, aggregate, {}, self.kept)
        usable = usable_outers(families) & adds_up if families else adds_up
        families = [family.among(usable) for family in families if usable[family.outer].any()]
        if families:
            self._put("rest", FamilyWithRests.of(families, of_all_rows=aggregate.to == "overall"), intervals)
        return adds_up

    def _adds_up(self, aggregate: Contrast) -> Booleans:
        """Mask of the outer groups in which what groups are compared with is the mean of their values."""
        uncertainty = self.uncertainty
        adds_up, unequal = np.zeros((2, uncertainty.outers), dtype=bool)
        for rows in self.rows.values():
            outer, value = uncertainty.column("outer")[rows], uncertainty.column("estimate")[rows]
            weight, context = uncertainty.weights(rows), uncertainty.column(str(aggregate.to))[rows]
            segments = Segments.of(uncertainty.column(LEVEL)[rows], outer)
            total, everything = (segments.to_rows(segments.sum(own)) for own in (value * weight, weight))
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = total / everything
                if aggregate.to == "rest":
                    mean = (total - value * weight) / (everything - weight)
                near = np.abs(mean - context) <= _EQUAL * segments.to_rows(segments.maximum(np.abs(value)))
            equal = segments.all(near & (weight > 0)) & (segments.sizes > 1)
            first = outer[segments.starts]
            adds_up[first[equal]], unequal[first[~equal]] = True, True
        return adds_up & ~unequal


def _method_of_values(uncertainty: Uncertainty, number: int, spec: MetricSpec) -> Method | None:
    """The method of the values of a formula; None if by replicates."""
    interval, sampling, kind = uncertainty.interval, sampling_of(uncertainty.tally), uncertainty.kinds[number]
    if kind is None:
        refuse_under_design(uncertainty.tally, spec)
    case = Case(kind or "resampled", "alone", sampling)
    if kind is None and interval in {"analytic", "exact"}:
        raise no_closed_form([spec.name], interval)
    method = required(case, interval, uncertainty.requested[number].name)
    return None if method.name in {"bootstrap", "dirichlet"} else method


def no_closed_form(names: Iterable[str], interval: str) -> ArgumentError:
    """The error for results that have no closed form."""
    kind = "exact interval" if interval == "exact" else "interval in closed form"
    msg = f'{listed(dict.fromkeys(names))}: there is no {kind}; take `interval="auto"` or "bootstrap".'
    return ArgumentError(msg)


def refuse_under_design(tally: Tally, spec: MetricSpec) -> None:
    """Refuse the interval of a metric that needs replicates of rows, which no design of a survey gives."""
    if tally.design is None:
        return
    way_out = "leave `interval=` out, or ask for the others alone"
    if spec.aggregate is not None:
        way_out += "; `compare_groups` compares each group with a reference"
    msg = f"There is no interval of {spec.name} for a survey design: {way_out}."
    raise ArgumentError(msg)


def _put_values(
    uncertainty: Uncertainty, number: int, rows: Integers, method: Method, z: Floats | None, intervals: Intervals,
    index: Integers,
) -> None:  # fmt: skip
    """Set the limits of the values of some rows, which are not compared."""
    z_of_values: Any = z_value(uncertainty.options.conf_level) if z is None else z
    estimates = uncertainty.estimates(number, rows, method.name)
    if method.limits is not None and estimates.kind == "rate":
        shares: Any = estimates
        limits = method.limits(shares.value, shares.rows_at(z_of_values), z_of_values)
    else:
        # sums of limits are too narrow far out, where limits of many groups at once are
        is_far = z is not None and estimates.kind == "sum_of_rates"
        limits = (estimates.far if is_far else estimates).alone(z_of_values)
    intervals.put(index, limits, estimates.shown_error)
    intervals.name(index, before=method.name)


def _beside(table: pl.DataFrame, intervals: Intervals, rows: Integers, lost: Integers | None) -> pl.DataFrame:
    """A table with the intervals of its rows, null where a value is, or where an end is unknown."""
    lower, upper, error, method = (
        own[rows] for own in (intervals.lower, intervals.upper, intervals.error, intervals.method)
    )
    one_sided = np.array([name is not None and name.endswith(" end") for name in method.tolist()], dtype=bool)
    known = table[".estimate"].is_not_null().to_numpy()
    known &= one_sided | ~(np.isnan(lower) | np.isnan(upper))
    # the replicates that were lost; null where none were drawn
    lost_of_rows = pl.Series([None] * len(rows), dtype=pl.Int64)
    if lost is not None:
        numbers = pl.Series(lost[rows])
        lost_of_rows = numbers.set(pl.Series(~known) | (numbers < 0), None)
    columns = pl.DataFrame(
        {
            ".lower": np.where(known, lower, np.nan), ".upper": np.where(known, upper, np.nan),
            ".std_error": np.where(known, error, np.nan),
            ".method": pl.Series(np.where(known, method, np.array(None)).tolist(), dtype=pl.String),
            LOST: lost_of_rows,
        },
        nan_to_null=True,
    )  # fmt: skip
    after = ".error_bound" if ".error_bound" in table.columns else ".estimate"
    end = table.columns.index(after) + 1
    return table[:, :end].hstack(columns).hstack(table[:, end:])


# For comparisons of groups


def families(evaluated: Evaluated, options: Options) -> list[ComparedGroups]:
    """The values of groups with how far they vary by chance, by spec, label and outer group."""
    of_outer_groups: list[ComparedGroups] = []
    for spec, rows, estimates in of_all_outer_groups(evaluated, options):
        level, outer = (rows[name].to_numpy() for name in (LEVEL, "outer"))
        segments = Segments.of(level, outer)
        for start, size in zip(segments.starts.tolist(), segments.sizes.tolist(), strict=True):
            own = estimates.at(np.arange(start, start + size))
            part = rows[start : start + size]
            of_outer_groups.append(ComparedGroups(spec, int(outer[start]), int(level[start]), part, own))
    return of_outer_groups


def of_all_outer_groups(evaluated: Evaluated, options: Options) -> list[tuple[int, pl.DataFrame, Estimates]]:
    """The values of all labels and outer groups by spec, each of one formula: its number, its rows, and estimates."""
    uncertainty = Uncertainty(evaluated, options)
    rows_of = {number: uncertainty.rows(number) for number in range(len(uncertainty.requested))}
    specs = {number: uncertainty.requested[number].spec for number, rows in rows_of.items() if len(rows)}
    resampled = [spec for number, spec in specs.items() if uncertainty.kinds[number] is None]
    for spec in resampled:
        refuse_under_design(uncertainty.tally, evaluated.specs[spec])
    estimators = Draws(uncertainty).estimators(resampled)
    of_specs: list[tuple[int, pl.DataFrame, Estimates]] = []
    for number, spec in specs.items():
        estimates = estimators.get(number, partial(uncertainty.estimates, number))(rows_of[number])
        of_specs.append((spec, evaluated.rows[rows_of[number]], estimates))
    return of_specs
