"""The intervals of a call: limits of all values and comparisons, by the methods that the table gives them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation import LEVEL, LOST, NO_LEVEL, VALUE, Evaluated
from tidyfair.intervals.comparisons import ComparedGroups, Family, Intervals, in_blocks, shapes_of, usable_outers
from tidyfair.intervals.critical_values import z_of_groups
from tidyfair.intervals.draws import Draws
from tidyfair.intervals.estimates import Estimates, Shares, Surveyed
from tidyfair.intervals.inversion import Spread
from tidyfair.intervals.methods import Case, required
from tidyfair.intervals.proportions import z_value
from tidyfair.intervals.shares import is_mean, share_of
from tidyfair.intervals.uncertainty import Uncertainty, is_judged
from tidyfair.specs import Booleans, Integers, MetricSpec, Options, Segments, formulas_of
from tidyfair.tallies import Tally

_EQUAL = 1e-9
"""The relative difference of means that are the same is smaller."""


def group_intervals(evaluated: Evaluated, groups: pl.DataFrame, options: Options) -> pl.DataFrame:
    """The values of groups with their intervals."""
    uncertainty = Uncertainty(evaluated, options)
    row_of_table = (
        evaluated.rows.with_row_index("row").unique(VALUE, keep="first", maintain_order=True)["row"].to_numpy()
    )
    is_shown = np.zeros(len(evaluated.rows), dtype=bool)
    is_shown[row_of_table] = True
    intervals = Intervals.none(len(evaluated.rows))
    drawn: list[int] = []
    for number in range(len(uncertainty.requested)):
        rows = uncertainty.rows(number)
        rows = rows[is_shown[rows]]
        outer = uncertainty.column("outer")[rows]
        # the values of an outer group hold together
        z = z_of_groups(np.bincount(outer)[outer], options.conf_level) if options.simultaneous else None
        if not _put_values(uncertainty, number, rows, rows, intervals, z) and len(rows):
            drawn.append(number)
    lost = Draws(uncertainty).put_groups(drawn, is_shown, intervals) if drawn else None
    _without_lower(uncertainty, uncertainty.column("spec"), is_shown, intervals)
    groups = _with_even_rows(groups, uncertainty, row_of_table)
    of_survey = uncertainty.tally.design is not None
    table = _beside(groups, intervals, row_of_table, lost, of_survey=of_survey)
    if not options.simultaneous:
        return table
    of_groups = pl.when(pl.col(".by").is_not_null()).then(pl.col(".method") + ", simultaneous")
    return table.with_columns(of_groups.otherwise(".method").alias(".method"))


def _without_lower(uncertainty: Uncertainty, spec: Integers, shown: Booleans, intervals: Intervals) -> None:
    """Drop the end toward equality of values that are distances from other groups: chance only adds to these."""
    for number, own in enumerate(uncertainty.evaluated.specs):
        if own.of_distances and own.by is not None and uncertainty.interval in {"auto", "bayes"}:
            index = np.flatnonzero((spec == number) & shown & ~np.isnan(intervals.lower))
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


def result_intervals(
    evaluated: Evaluated, results: pl.DataFrame, options: Options, metrics_left_out: Mapping[int, Collection[str]]
) -> pl.DataFrame:
    """Results with their intervals, one row for each spec and outer group in this order.

    The names of metrics that are left out of a result are those of its row.
    """
    uncertainty = Uncertainty(evaluated, options)
    draws, intervals = Draws(uncertainty), Intervals.none(len(results))
    kept, outers = _kept_rows(uncertainty, metrics_left_out) if metrics_left_out else None, uncertainty.outers
    comparisons = [_Comparison(uncertainty, number, kept) for number in range(len(evaluated.specs))]
    if resampled := [own.number for own in comparisons if own.is_resampled]:
        draws.add_estimates(resampled)
    value = results[".estimate"].to_numpy()
    left = ~np.isnan(value)
    for comparison in comparisons:
        index = slice(comparison.number * outers, (comparison.number + 1) * outers)
        left[index] &= comparison.put(intervals.part(index))
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
    _without_lower(uncertainty, np.arange(len(value)) // outers, ~np.isnan(value), intervals)
    of_survey = uncertainty.tally.design is not None
    return _beside(results, intervals, np.arange(len(results)), lost, of_survey=of_survey)


def _kept_rows(uncertainty: Uncertainty, metrics_left_out: Mapping[int, Collection[str]]) -> Booleans:
    """Mask of the values that results use: not those of metrics that are left out of a result."""
    names = np.array([requested.name for requested in uncertainty.requested], dtype=object)
    spec, outer = uncertainty.column("spec"), uncertainty.column("outer")
    name, kept = names[uncertainty.column("requested")], np.ones(len(spec), dtype=bool)
    for index, left_out in metrics_left_out.items():
        number, own = divmod(index, uncertainty.outers)
        kept &= ~((spec == number) & (outer == own) & np.isin(name, list(left_out)))
    return kept


class _Comparison:
    """A spec, whose results are set in closed form where they have one."""

    def __init__(self, uncertainty: Uncertainty, number: int, kept: Booleans | None) -> None:
        self.uncertainty, self.number, self.kept = uncertainty, number, kept
        self.spec = uncertainty.evaluated.specs[number]
        column = uncertainty.column
        every = np.flatnonzero((column("spec") == number) & ~np.isnan(column("estimate")))
        self.outer = column("outer")[every]
        """The outer groups of all values."""
        self.levels: list[int] = np.unique(column(LEVEL)[every]).tolist()
        """The labels that its values are of."""
        self.numbers: list[int] = np.unique(column("requested")[every]).tolist()
        """The formulas that have values."""
        self.kinds = [uncertainty.kinds[own] for own in self.numbers]
        self.has_kinds = None not in self.kinds
        """True if all of its values have errors in closed form."""
        self.is_judged = uncertainty.tally.judge is not None and all(map(uncertainty.is_judged, self.numbers))
        """True if all of them are from labels of people and of a judge."""
        self.ways = self._ways()

    def _ways(self) -> list[Callable[[Booleans, Intervals], Booleans]]:
        """The functions that set limits that follow from those of values.

        Each takes a mask of the outer groups that have none yet, and gives that of those that have some then.
        """
        spec, aggregate, uncertainty = self.spec, self.spec.aggregate, self.uncertainty
        if uncertainty.interval in {"bootstrap", "bayes"} or spec.subtracted:
            return []
        if uncertainty.shares_rows and not self.has_kinds:
            return []
        if aggregate is None:
            return [self._put_values] if self.levels == [NO_LEVEL] else []
        if aggregate.in_closed_form(len(spec.formulas) * len(self.levels)):
            return [self._put_comparisons]
        ways = [self._put_rests] if self._has_rests(aggregate) else []
        # a distance of groups whose values do not depend on each other
        is_distance = aggregate.is_distance and uncertainty.interval != "exact" and uncertainty.tally.design is None
        is_distance = is_distance and not uncertainty.shares_rows and all(
            formula.reads and not formula.compares and not is_judged(uncertainty.tally, formula)
            for _, formula in spec.formulas
        )  # fmt: skip
        return [*ways, self._put_distances] if is_distance else ways

    def _has_rests(self, aggregate: Any) -> bool:
        """Check whether limits of distances to rests, or to all rows, follow from those of groups and of rests."""
        uncertainty, tally = self.uncertainty, self.uncertainty.tally
        is_of_one = len(self.spec.formulas) == 1 and self.levels == [NO_LEVEL]
        if not aggregate.compares_with_context or aggregate.signed or not (is_of_one or aggregate.across == "worst"):
            return False
        if self.is_judged:
            return True
        if tally.design is not None or tally.cluster_names:
            return False
        # rests of groups that overlap are evaluated by themselves; others, and all rows, are means of groups
        has_own_rests = uncertainty.shares_rows and aggregate.to == "rest"
        return has_own_rests or all(
            kind == "rate" or is_mean(uncertainty.requested[own].formula)
            for kind, own in zip(self.kinds, self.numbers, strict=True)
        )

    @property
    def is_resampled(self) -> bool:
        """True if its limits follow from those of groups, whose errors are those of replicates."""
        is_compared = self._put_comparisons in self.ways or self._put_distances in self.ways
        return is_compared and not self.has_kinds and self.uncertainty.interval == "auto"

    def put(self, intervals: Intervals) -> Booleans:
        """Set the limits of results in closed form; a mask of the outer groups that are left to replicates."""
        left = np.full(self.uncertainty.outers, fill_value=True)
        for way in self.ways if self.has_kinds or self.is_resampled else ():
            if left.any():
                left &= ~way(left, intervals)
        return left

    def _put_values(self, outers: Booleans, intervals: Intervals) -> Booleans:
        """Set the limits of values that are not compared."""
        (number,) = self.numbers
        rows = self.uncertainty.rows(number)
        outer = self.uncertainty.column("outer")[rows]
        is_put = _put_values(self.uncertainty, number, rows, outer, intervals)
        return outers if is_put else np.zeros_like(outers)

    def _put_distances(self, outers: Booleans, intervals: Intervals) -> Booleans:
        """Set the limits of distances that are not of pairs."""
        uncertainty = self.uncertainty
        method = required(Case("smooth", "distance", "rows"), uncertainty.interval, self.spec.name)
        if not outers[self.outer].any():
            return np.zeros_like(outers)
        return Spread(uncertainty, self.number, outers).put(intervals.named(method.name))

    def _put_comparisons(self, outers: Booleans, intervals: Intervals) -> Booleans:
        """Set the limits of comparisons of groups with each other, or with one of them."""
        aggregate: Any = self.spec.aggregate
        families = self.uncertainty.families(self.number, aggregate, self.kept)
        # the sign of the farthest of several values is that of whichever is the farthest
        signed = (np.bincount(self.outer, minlength=len(outers)) > 2) & aggregate.is_signed
        if families:
            families = [replace(family, values=family.values.finite) for family in families]
            shapes = shapes_of(families, aggregate)
            shapes[signed] = None
            for shape in {*shapes.tolist()} - {None}:
                for block in in_blocks(families, shapes == shape):
                    # two groups have the method of their own values
                    for own in [[family] for family in block] if shape in {"difference", "ratio"} else [block]:
                        self._put(shape, own, intervals)
        return ~signed

    def _put(self, shape: str, families: Sequence[Family], intervals: Intervals) -> None:
        """Set the limits of results by the method of their shape."""
        # comparisons of rates have no exact interval
        interval = "analytic" if self.uncertainty.interval == "exact" else self.uncertainty.interval
        values = families[0].values
        method = required(Case(values.kind, shape, values.sampling), interval, self.spec.name)
        if method.limits is not None:
            level = self.uncertainty.options.conf_level
            method.limits(families, self.spec.aggregate, level, intervals.named(method.name))

    def _put_rests(self, outers: Booleans, intervals: Intervals) -> Booleans:
        """Set the limits of distances to rests, or to all rows."""
        families = self.uncertainty.families(self.number, self.spec.aggregate, self.kept)
        put = np.full_like(outers, self.is_judged or bool(families))
        if not self.is_judged:
            for family in families:
                put &= self._adds_up(family)
        usable = put & usable_outers(families) if families else put
        families = [family.among(usable) for family in families if usable[family.outer].any()]
        if families:
            self._put("rest", families, intervals)
        return put

    def _adds_up(self, family: Family) -> Booleans:
        """Mask of the outer groups whose rests, or all rows, have the values that means over groups give."""
        aggregate: Any = self.spec.aggregate
        groups, rests = np.split(family.values.value, 2)
        share, segments = family.share, Segments.of(family.outer)
        with np.errstate(invalid="ignore"):
            together = share * groups + (1 - share) * rests if family.to_all_rows else rests
            away = np.abs(together - self.uncertainty.column(aggregate.to)[family.rows])
            near = away <= _EQUAL * segments.to_rows(segments.maximum(np.abs(groups)))
        return ~family.has(np.tile(~(near & (share > 0)), 2)) & (family.sizes != 1)


def no_closed_form(names: Iterable[str], interval: str) -> ArgumentError:
    """The error for results that have no closed form."""
    kind = "exact interval" if interval == "exact" else "interval in closed form"
    msg = f'{listed(dict.fromkeys(names))}: there is no {kind}; take `interval="auto"` or "bootstrap".'
    return ArgumentError(msg)


def refuse_under_design(tally: Tally, spec: MetricSpec) -> None:
    """Refuse the interval of a metric that needs replicates of rows, which neither a design nor a judge gives."""
    is_of_judge = any(is_judged(tally, formula) for formula in formulas_of(spec))
    if tally.design is None and not is_of_judge:
        return
    way_out = "leave `interval=` out, or ask for the others alone"
    if spec.aggregate is not None:
        way_out += "; `compare_groups` compares each group with a reference"
    reason = "from labels of people and of a judge together" if is_of_judge else "for a survey design"
    msg = f"There is no interval of {spec.name} {reason}: {way_out}."
    raise ArgumentError(msg)


def _put_values(
    uncertainty: Uncertainty, number: int, rows: Integers, index: Integers, intervals: Intervals, z: Any = None
) -> bool:
    """Set the limits of the values of some rows, which are not compared; False if they are those of replicates."""
    requested, kind, interval = uncertainty.requested[number], uncertainty.kinds[number], uncertainty.interval
    if kind is None:
        spec = uncertainty.evaluated.specs[requested.spec]
        refuse_under_design(uncertainty.tally, spec)
        if interval in {"analytic", "exact"}:
            raise no_closed_form([spec.name], interval)
    case = Case(kind or "resampled", "alone", uncertainty.sampling(requested.formula))
    method = required(case, interval, requested.name)
    if method.name in {"bootstrap", "dirichlet"}:
        return False
    if not len(rows):
        return True
    z_of_values: Any = z_value(uncertainty.options.conf_level) if z is None else z
    estimates = uncertainty.estimates(number, rows, method.name)
    if method.limits is not None and isinstance(estimates, Shares):
        limits = method.limits(estimates.value, estimates.rows_at(z_of_values), z_of_values)
    else:
        # sums of limits are too narrow far out, where limits of many groups at once are
        is_far = z is not None and estimates.kind == "sum_of_rates"
        limits = (estimates.far(np.ones(len(rows), dtype=bool)) if is_far else estimates).alone(z_of_values)
    intervals.named(method.name).put(index, limits, estimates.shown_error)
    if isinstance(estimates, Surveyed):
        intervals.freedom[index], intervals.design_effect[index] = estimates.freedom, estimates.design_effect
    return True


def _beside(
    table: pl.DataFrame, intervals: Intervals, rows: Integers, lost: Integers | None, *, of_survey: bool
) -> pl.DataFrame:
    """A table with the intervals of its rows, null where a value is, or where an end is unknown."""
    lower, upper, method = intervals.lower[rows], intervals.upper[rows], intervals.method[rows]
    one_sided = np.array([name is not None and name.endswith(" end") for name in method.tolist()], dtype=bool)
    known = one_sided | ~(np.isnan(lower) | np.isnan(upper))
    known &= table[".estimate"].is_not_null().to_numpy()
    # the replicates that were lost; null where none were drawn
    number = np.full(len(rows), -1) if lost is None else lost[rows]
    columns = {".lower": lower, ".upper": upper, ".std_error": intervals.error[rows]}
    if of_survey:
        columns |= {".df": intervals.freedom[rows], ".design_effect": intervals.design_effect[rows]}
    added = pl.DataFrame(
        {
            **{name: np.where(known, own, np.nan) for name, own in columns.items()},
            ".method": pl.Series(np.where(known, method, np.array(None)).tolist(), dtype=pl.String),
            LOST: pl.Series(number, dtype=pl.Int64).set(pl.Series(~known | (number < 0)), None),
        },
        nan_to_null=True,
    )
    after = ".error_bound" if ".error_bound" in table.columns else ".estimate"
    end = table.columns.index(after) + 1
    return table[:, :end].hstack(added).hstack(table[:, end:])


# For comparisons of groups


def families(evaluated: Evaluated, options: Options) -> list[ComparedGroups]:
    """The values of groups with how far they vary by chance, by spec, label and outer group."""
    compared: list[ComparedGroups] = []
    for spec, rows, estimates in of_all_outer_groups(evaluated, options):
        level, outer = (rows[name].to_numpy() for name in (LEVEL, "outer"))
        segments = Segments.of(level, outer)
        starts: list[int] = segments.starts.tolist()
        sizes: list[int] = segments.sizes.tolist()
        for start, size in zip(starts, sizes, strict=True):
            own = estimates.at(np.arange(start, start + size))
            part = rows[start : start + size]
            compared.append(ComparedGroups(spec, int(outer[start]), int(level[start]), part, own))
    return compared


def of_all_outer_groups(evaluated: Evaluated, options: Options) -> list[tuple[int, pl.DataFrame, Estimates]]:
    """The values of all labels and outer groups by spec, each of one formula: its number, its rows, and estimates."""
    uncertainty = Uncertainty(evaluated, options)
    rows_of = {number: uncertainty.rows(number) for number in range(len(uncertainty.requested))}
    specs = {number: uncertainty.requested[number].spec for number, rows in rows_of.items() if len(rows)}
    resampled = [spec for number, spec in specs.items() if uncertainty.kinds[number] is None]
    for spec in resampled:
        refuse_under_design(uncertainty.tally, evaluated.specs[spec])
    Draws(uncertainty).add_estimates(resampled)
    return [
        (spec, evaluated.rows[rows_of[number]], uncertainty.estimates(number, rows_of[number]))
        for number, spec in specs.items()
    ]
