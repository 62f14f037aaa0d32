"""The intervals of a call: limits of all values, in closed form where there is one, else by replicates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation.results import VALUE, tidy_groups
from tidyfair.evaluation.states import NO_LEVEL
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL, ONE_LABEL
from tidyfair.intervals.analytic import compared, compared_with_rest
from tidyfair.intervals.bootstrap import (
    ALIKE,
    INTERVAL,
    ROUNDED,
    alike,
    by_replicates,
    is_stratified,
    lone_results,
    results_of,
    with_lone,
)
from tidyfair.intervals.empty_cells import HIGH, LOW, filled_groups, filled_result
from tidyfair.intervals.jackknife import is_smooth, with_deviations
from tidyfair.intervals.kinds import Kind, quantities_of
from tidyfair.intervals.pairs import Family
from tidyfair.intervals.proportions import z_value
from tidyfair.intervals.resampling import generator
from tidyfair.intervals.rest import WithRest
from tidyfair.intervals.shares import is_mean, is_share_of_flags, share_of
from tidyfair.intervals.simultaneous import band_limits, has_bands
from tidyfair.specs.contrasts import Contrast
from tidyfair.tallies.tally import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.intervals.quantities import Interval, Quantities
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

    _Form: TypeAlias = Callable[[pl.DataFrame, np.random.Generator], Interval | None]

__all__: list[str] = []

_SCHEMA: dict[str, Any] = dict(zip(INTERVAL, (pl.Float64, pl.Float64, pl.Float64, pl.String, pl.Int64), strict=True))


_TOGETHER = "\0together"
"""The number of values of groups that intervals hold for at once."""
_REACH: dict[str, Any] = {ALIKE: pl.Boolean, LOW: pl.Float64, HIGH: pl.Float64, "z": pl.Float64}
_LEAST_BEYOND = 4
"""The fewest replicates beyond each end of an interval."""
_EQUAL = 1e-9
"""The relative difference of means that are the same is smaller."""
_BY_REPLICATES = ("auto", "bootstrap")


def group_intervals(tally: Tally, evaluated: Evaluated, groups: pl.DataFrame, options: Options) -> pl.DataFrame:
    """The values of groups with their intervals."""
    evaluated = with_deviations(evaluated.with_rows(with_lone(tally, evaluated)))
    rows = evaluated.rows.unique(VALUE, keep="first", maintain_order=True)
    intervals: list[Interval | None] = [None] * len(rows)
    without_form = set[int]()
    most_drawn = 1
    for (number, name), part in rows.with_row_index("index").group_by("spec", "name", maintain_order=True):
        spec = evaluated.specs[int(str(number))]
        formula = next(formula for metric, formula in spec.formulas if metric == name)
        kind = _kind(tally, formula, part["estimator"][0], options)
        if kind is None:
            _refuse_under_design(tally, spec)
        if "even" in part.columns and share_of(formula) is None:
            # of rates whose rows count for more or less than one it is only known how far their weights differ
            groups = groups.with_columns(groups[".effective_n"].scatter(part["index"], part["even"]))
        valued = part.filter(pl.col("estimate").is_not_null())
        together = pl.len().over("outer") if options.simultaneous else pl.lit(1, pl.UInt32)
        valued = valued.with_columns(together.alias(_TOGETHER))
        if kind is None:
            without_form.add(int(str(number)))
            most_drawn = max([most_drawn, *valued[_TOGETHER]])
            continue
        exact = options.interval == "exact"
        family = quantities_of(kind, spec, formula, valued, evaluated)
        for count in valued[_TOGETHER].unique():
            limits = family.intervals(options.conf_level ** (1 / count), exact=exact)
            for row in (valued[_TOGETHER] == count).arg_true():
                intervals[valued["index"][row]] = limits[row]
    specs = [spec for number, spec in enumerate(evaluated.specs) if number in without_form]
    is_simultaneous = options.simultaneous
    if is_simultaneous:
        options = _at_level_of(options, most_drawn)
    rows = _with_reach(tally, evaluated, dict.fromkeys(without_form, z_value(options.conf_level)), options)
    rows = rows.unique(VALUE, keep="first", maintain_order=True)
    reach = rows.select(LOW, HIGH, pl.col("lone") | pl.col(ALIKE))
    table = _beside(groups, intervals, tally, specs, options, tidy_groups, reach)
    table = _without_ends_of_distances(table, evaluated.specs, options)
    if not is_simultaneous:
        return table
    of_groups = pl.when(pl.col(".by").is_not_null()).then(pl.col(".method") + ", simultaneous")
    return table.with_columns(of_groups.otherwise(".method").alias(".method"))


def _at_level_of(options: Options, groups: int) -> Options:
    """The options at the level at which replicates have limits that hold for all of some groups at once."""
    level = options.conf_level ** (1 / groups)
    least = math.ceil(_LEAST_BEYOND * 2 / (1 - level))
    if options.times is None:
        return replace(options, conf_level=level, simultaneous=False, times=max(least, options.replicates_of_rows))
    if groups > 1 and options.times < least:
        msg = (
            f"`times={options.times}` replicates do not show the ends of simultaneous intervals of {groups} groups, "
            f"each at the level {level:.6g}: take `times={least}` or more."
        )
        raise ArgumentError(msg)
    return replace(options, conf_level=level, simultaneous=False)


def result_intervals(tally: Tally, evaluated: Evaluated, results: pl.DataFrame, options: Options) -> pl.DataFrame:
    """Results with their intervals, one row for each spec and outer group in this order."""
    outers = len(evaluated.group_cells.outer_keys)
    evaluated = with_deviations(evaluated)
    methods = _Methods.of(tally, evaluated, options)
    rows = _with_reach(tally, evaluated, methods.reached(options.conf_level), options)
    rows = rows.filter(pl.col("estimate").is_not_null())
    lone = lone_results(tally, evaluated) | _with_some(rows.filter(ALIKE), len(results), outers)
    rows = _with_deviations(tally, evaluated.with_rows(rows), [*methods.paired, *methods.estimated], options)
    intervals: list[Interval | None] = [None] * len(results)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(results)
    for index, interval in _of_values_alone(evaluated, methods, rows, options):
        intervals[index] = interval
    for number, form in methods.forms.items():
        spec = evaluated.specs[number]
        for (outer,), part in rows.filter(spec=number).group_by("outer", maintain_order=True):
            index = number * outers + int(str(outer))
            drawn = form is None or _is_drawn(spec, part)
            if results[".estimate"][index] is None or (lone[index] and (drawn or number in methods.paired)):
                continue
            if form is None or drawn:
                ends[index] = filled_result(evaluated, part)
                continue
            compared_metrics = _without_metrics(part, results[".metrics_left_out"][index])
            interval = form(compared_metrics, generator(options.seed, "distances"))
            intervals[index] = _including(interval, results[".estimate"][index])
    drawn_specs = [spec for number, spec in enumerate(evaluated.specs) if number in methods.drawn]
    schema: Any = {LOW: pl.Float64, HIGH: pl.Float64}
    reach = pl.DataFrame(ends, schema, orient="row").with_columns(lone=lone)
    table = _beside(results, intervals, tally, drawn_specs, options, results_of, reach)
    table = _without_ends_of_distances(table, evaluated.specs, options)
    banded = rows.filter(pl.col("spec").is_in(methods.in_bands))
    return _with_bands(table, tally, evaluated, banded, options) if methods.in_bands else table


def families(tally: Tally, evaluated: Evaluated, options: Options) -> list[Family]:
    """The values of groups with how far they vary by chance, by spec, outer group and label."""
    evaluated, kinds = _with_kinds(tally, evaluated, options)
    of_outer_groups: list[Family] = []
    for (number, outer, level), part in evaluated.rows.group_by("spec", "outer", LEVEL, maintain_order=True):
        spec = int(str(number))
        quantities = _quantities(evaluated, spec, kinds[spec], part)
        of_outer_groups.append(Family(spec, int(str(outer)), int(str(level)), part, quantities))
    return of_outer_groups


def of_all_outer_groups(
    tally: Tally, evaluated: Evaluated, options: Options
) -> list[tuple[int, pl.DataFrame, Quantities]]:
    """The same by spec alone: its number, the rows of all outer groups and labels, and their quantities."""
    evaluated, kinds = _with_kinds(tally, evaluated, options)
    of_specs: list[tuple[int, pl.DataFrame, Quantities]] = []
    for (number,), part in evaluated.rows.group_by("spec", maintain_order=True):
        spec = int(str(number))
        of_specs.append((spec, part, _quantities(evaluated, spec, kinds[spec], part)))
    return of_specs


def _with_kinds(tally: Tally, evaluated: Evaluated, options: Options) -> tuple[Evaluated, dict[int, Kind]]:
    """Those rows that have a value, with how far it varies by chance, and the kinds of the values of specs."""
    evaluated = with_deviations(evaluated)
    kinds: dict[int, Kind] = {}
    for number, spec in enumerate(evaluated.specs):
        rows = evaluated.rows.filter(pl.col("estimate").is_not_null(), spec=number)
        if len(rows):
            kinds[number] = _kind_of(tally, spec, rows, options)
    estimated = [number for number, kind in kinds.items() if kind == "estimated"]
    reach = _with_reach(tally, evaluated, dict.fromkeys(estimated, z_value(options.conf_level)), options)
    valued = evaluated.with_rows(reach.filter(pl.col("estimate").is_not_null()))
    return valued.with_rows(_with_deviations(tally, valued, estimated, options)), kinds


def _quantities(evaluated: Evaluated, number: int, kind: Kind, rows: pl.DataFrame) -> Quantities:
    """The quantities of some rows of a spec of one formula."""
    spec = evaluated.specs[number]
    ((_, formula),) = spec.formulas
    return quantities_of(kind, spec, formula, rows, evaluated)


def _of_values_alone(
    evaluated: Evaluated, methods: _Methods, rows: pl.DataFrame, options: Options
) -> Iterator[tuple[int, Interval]]:
    """The intervals of values that are not compared, with the index of their result."""
    outers = len(evaluated.group_cells.outer_keys)
    for number, kind in methods.alone.items():
        part = rows.filter(spec=number)
        for outer, interval in zip(part["outer"], _alone(evaluated, number, kind, part, options), strict=True):
            yield number * outers + outer, interval


def _including(interval: Interval | None, value: float) -> Interval | None:
    """An interval that includes its value, which that of a finite value in its place may not."""
    if interval is None or _lacks_an_end(interval):
        return interval
    return replace(interval, lower=min(interval.lower, value), upper=max(interval.upper, value))


def _lacks_an_end(interval: Interval) -> bool:
    """True if one of the ends is unknown, or both."""
    return math.isnan(interval.lower) or math.isnan(interval.upper)


@dataclass(frozen=True)
class _Methods:
    """The methods for the intervals of specs, which are given by their numbers."""

    alone: dict[int, Kind]
    """Specs that compare no groups, with an interval in closed form, and the kind of their values."""
    forms: dict[int, _Form | None]
    """Specs with an interval from the values of groups, and its function; None for all others."""
    paired: list[int]
    """Specs of these whose values have errors from replicates."""
    in_bands: list[int]
    """Specs with intervals from replicates that are widened to simultaneous limits of all groups."""
    estimated: list[int]
    """Specs of these whose simultaneous limits have errors from replicates."""
    drawn: list[int]
    """Specs with intervals from replicates in some outer group."""
    groups: dict[int, int]
    """The largest number of groups that are compared."""

    @classmethod
    def of(cls, tally: Tally, evaluated: Evaluated, options: Options) -> _Methods:
        """Choose the methods."""
        methods = cls({}, {}, [], [], [], [], {})
        for number, spec in enumerate(evaluated.specs):
            rows = evaluated.rows.filter(pl.col("estimate").is_not_null(), spec=number)
            kind = _kind_alone(tally, spec, rows, options)
            if kind is None:
                methods._add_comparison(number, tally, evaluated, rows, options)
            else:
                methods.alone[number] = kind
        return methods

    def _add_comparison(
        self, number: int, tally: Tally, evaluated: Evaluated, rows: pl.DataFrame, options: Options
    ) -> None:
        """Choose the method of a spec that compares groups, or whose values have no limits in closed form."""
        spec = evaluated.specs[number]
        parts = [part for _, part in rows.group_by("outer")]
        self.groups[number] = max((part[GROUP_CELL].n_unique() for part in parts), default=1)
        form = _closed_form(tally, evaluated, spec, rows, options)
        # a range of values without a closed form follows from pairs as well, with errors from replicates
        if form is None and _is_paired(spec, rows, options):
            self.paired.append(number)
            form = _of_pairs(evaluated, spec, options)
        self.forms[number] = form
        if tally.design is not None and rows.is_empty():
            return
        if form is None or any(_is_drawn(spec, part) for part in parts):
            _refuse_under_design(tally, spec)
            self.drawn.append(number)
        if form is None and options.interval == "auto" and has_bands(spec):
            self.in_bands.append(number)
            if _kind_of(tally, spec, rows, options) == "estimated":
                self.estimated.append(number)

    def reached(self, level: float) -> dict[int, float]:
        """The standard errors at which empty cells are filled, by spec; more for limits of all groups at once."""
        at_once = {number: z_value(level ** (1 / self.groups[number])) for number in (*self.paired, *self.estimated)}
        return {**dict.fromkeys(self.drawn, z_value(level)), **at_once}


def _without_metrics(rows: pl.DataFrame, left_out: pl.Series) -> pl.DataFrame:
    """The rows of the metrics that a disparity is the worst of."""
    # of labels read one by one, a metric may be left out of some and not of others
    by_label = (rows[LEVEL] != NO_LEVEL).any()
    return rows if by_label else rows.filter(~pl.col("name").is_in(left_out.to_list()))


def _with_some(rows: pl.DataFrame, length: int, outers: int) -> pl.Series:
    """A mask of the results that some rows belong to."""
    indices = rows.select(pl.col("spec") * outers + pl.col("outer")).to_series()
    return pl.int_range(length, eager=True).is_in(indices.unique().implode())


def _with_reach(tally: Tally, evaluated: Evaluated, levels: Mapping[int, float], options: Options) -> pl.DataFrame:
    """The rows of values and, for some specs, how far empty cells may move them, which replicates do not show.

    `levels` are the standard errors at which empty cells are filled. Values are `alike` if all replicates have the
    same value, and filled cells do not change it.
    """
    value, low, high = (pl.col(name) for name in ("estimate", LOW, HIGH))
    if levels and options.interval in _BY_REPLICATES:
        reach = _reach_of(tally, evaluated, levels, options)
    else:
        reach = pl.DataFrame(schema={"spec": pl.Int32, **evaluated.rows.select(VALUE).schema, **_REACH})
    rows = evaluated.rows.join(reach, on=["spec", *VALUE], how="left", nulls_equal=True, maintain_order="left")
    near = ROUNDED * value.abs()
    return (
        rows.with_columns(
            pl.when(low < value - near).then(low).otherwise(value).alias(LOW),
            pl.when(high > value + near).then(high).otherwise(value).alias(HIGH),
        )
        .with_columns(
            (pl.col(ALIKE).fill_null(value=False) & (low == high)).alias(ALIKE),
            ((value - low) / pl.col("z")).fill_null(0.0).alias("below"),
            ((high - value) / pl.col("z")).fill_null(0.0).alias("above"),
        )
        .drop("z")
    )


def _reach_of(tally: Tally, evaluated: Evaluated, levels: Mapping[int, float], options: Options) -> pl.DataFrame:
    """The ends to which empty cells may move the values of some specs, and `ALIKE` for equal replicates."""
    specs = {number: evaluated.specs[number] for number in levels}
    same = alike(tally.in_few_parts(), list(specs.values()), options)
    parts = list[pl.DataFrame]()
    for z in dict.fromkeys(levels.values()):
        own = [number for number, level in levels.items() if level == z]
        filled = filled_groups(tally, [specs[number] for number in own], options, z)
        parts += [_of_values(evaluated, number, same, filled).with_columns(z=z) for number in own]
    return pl.concat(parts).select("spec", *VALUE, *_REACH)


def _of_values(evaluated: Evaluated, number: int, *tables: pl.DataFrame) -> pl.DataFrame:
    """The values of a spec by the columns that identify them, with the columns that tables have of their groups."""
    rows = evaluated.rows.filter(spec=number)
    groups = tidy_groups(evaluated.with_rows(rows))
    values = rows.unique(VALUE, keep="first", maintain_order=True).select("spec", *VALUE)
    for table in tables:
        keys = [name for name in groups.columns if name in table.columns]
        matched = groups.select(keys).join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")
        values = values.hstack(matched.drop(keys))
    return values


def _with_bands(
    table: pl.DataFrame, tally: Tally, evaluated: Evaluated, rows: pl.DataFrame, options: Options
) -> pl.DataFrame:
    """Results with simultaneous limits of distances, which replicates do not give, or too narrowly for few rows."""
    ends = {name: table[name].to_list() for name in (".lower", ".upper", ".method")}
    for (number, outer), part in rows.group_by("spec", "outer", maintain_order=True):
        spec = evaluated.specs[int(str(number))]
        index = int(str(number)) * len(evaluated.group_cells.outer_keys) + int(str(outer))
        if ends[".method"][index] is None or part[LEVEL].n_unique() > 1:
            continue
        ((_, formula),) = spec.formulas
        family = quantities_of(_kind_of(tally, spec, part, options), spec, formula, part, evaluated)
        limits = band_limits(evaluated, part, family, options.conf_level)
        if limits is None:
            continue
        own = [table[".estimate"][index], ends[".lower"][index], ends[".upper"][index]]
        bounds = [end for end in (*own, *limits) if end is not None]
        ends[".lower"][index], ends[".upper"][index] = min(bounds), max(bounds)
        ends[".method"][index] = f"{ends['.method'][index].partition(',')[0]}, simultaneous"
    return table.with_columns(pl.Series(name, values, dtype=table[name].dtype) for name, values in ends.items())


def _kind_of(tally: Tally, spec: MetricSpec, rows: pl.DataFrame, options: Options) -> Kind:
    """The kind of error that the values of a metric of one formula have."""
    ((_, formula),) = spec.formulas
    kind = _kind(tally, formula, rows["estimator"][0], options) if len(rows) else None
    if kind is None and len(rows):
        _refuse_under_design(tally, spec)
    return kind or "estimated"


def _without_ends_of_distances(table: pl.DataFrame, specs: Sequence[MetricSpec], options: Options) -> pl.DataFrame:
    """Intervals of distances without the end towards equality, which replicates cannot give."""
    if options.interval not in {"auto", "bayes"}:
        return table
    of_groups = ".group" in table.columns
    for spec in specs:
        if spec.of_distances and spec.by:
            names = [name for name, _ in spec.formulas] if of_groups else [spec.name]
            applies = pl.col(".metric").is_in(names) & (pl.col(".by") == spec.by.text) & pl.col(".lower").is_not_null()
            method = pl.when(applies).then(pl.col(".method") + ", upper end").otherwise(".method").alias(".method")
            table = table.with_columns(pl.when(~applies).then(".lower").alias(".lower"), method)
    return table


def _is_paired(spec: MetricSpec, rows: pl.DataFrame, options: Options) -> bool:
    """Check whether a comparison is one of pairs of groups, or with a reference."""
    return options.interval == "auto" and not spec.subtracted and _is_of_limits(spec, rows)


def _is_of_limits(spec: MetricSpec, rows: pl.DataFrame) -> bool:
    """Check whether the interval of a comparison follows from those of groups; for extremes, of one label at most.

    With a sign it does in outer groups with a single pair, because the sign of the farthest of several is that of the
    pair.
    """
    aggregate = spec.aggregate
    if aggregate is None or not aggregate.in_closed_form(len(spec.formulas)):
        return False
    if _is_signed(spec):
        return any(not _is_drawn(spec, part) for _, part in rows.group_by("outer"))
    return not aggregate.is_extreme or rows[LEVEL].n_unique() <= 1


def _is_signed(spec: MetricSpec) -> bool:
    return spec.aggregate is not None and spec.aggregate.is_signed


def _is_drawn(spec: MetricSpec, part: pl.DataFrame) -> bool:
    """Check whether a comparison has a sign, and an outer group more values than two groups have for one label."""
    return _is_signed(spec) and len(part) > 2


def _with_deviations(tally: Tally, evaluated: Evaluated, numbers: Sequence[int], options: Options) -> pl.DataFrame:
    """The rows, with the standard errors of those of some specs from replicates."""
    if not numbers:
        return evaluated.rows
    by_design: dict[bool, list[int]] = {}
    for number in numbers:
        by_design.setdefault(is_stratified(evaluated.specs[number]), []).append(number)
    parts = list[pl.DataFrame]()
    # replicates keep the sizes of groups only where these do not matter
    for own in by_design.values():
        drawn = by_replicates(tally.in_few_parts(), [evaluated.specs[number] for number in own], options, tidy_groups)
        drawn = drawn.select(pl.exclude(INTERVAL), pl.col(".std_error").alias("deviation"))
        parts += [_of_values(evaluated, number, drawn) for number in own]
    keys = ["spec", *VALUE]
    return evaluated.rows.join(pl.concat(parts), on=keys, how="left", nulls_equal=True, maintain_order="left")


def _of_pairs(evaluated: Evaluated, spec: MetricSpec, options: Options) -> _Form:
    """The function for the interval of a comparison from the values of groups and their errors."""

    def interval(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        of_groups, references = _families(evaluated, spec, part, dict.fromkeys(part["name"], "estimated"))
        aggregate = spec.aggregate
        if aggregate is None or not of_groups:
            return None
        return compared(of_groups, references, aggregate, options.conf_level, times=options.replicates, random=random)

    return interval


def _families(
    evaluated: Evaluated, spec: MetricSpec, part: pl.DataFrame, kinds: Mapping[str, Kind]
) -> tuple[list[Quantities], list[int | None]]:
    """The quantities of each rate and label of an outer group, and the group that others are compared with."""
    families: list[Quantities] = []
    references: list[int | None] = []
    needed = spec.aggregate.groups_needed if spec.aggregate else 1
    for (name, _), of_family in part.group_by("name", LEVEL, maintain_order=True):
        reference = of_family["is_reference"].arg_true().to_list()
        # labels that cannot be compared are left out of the value too
        if len(of_family) < needed or (part["is_reference"].any() and not reference):
            continue
        if spec.aggregate is not None and spec.aggregate.compares_with_majority:
            reference = [of_family["size"].arg_max()]
        families.append(quantities_of(kinds[str(name)], spec, dict(spec.formulas)[str(name)], of_family, evaluated))
        references.append(reference[0] if reference else None)
    return families, references


def _refuse_under_design(tally: Tally, spec: MetricSpec) -> None:
    """Refuse the interval of a metric that needs replicates of rows, which no design of a survey gives."""
    if tally.design is None:
        return
    way_out = "leave `interval=` out, or ask for the others alone"
    if spec.aggregate is not None:
        way_out += "; `compare_groups` compares each group with a reference"
    msg = f"There is no interval of {spec.name} for a survey design: {way_out}."
    raise ArgumentError(msg)


def _kind(tally: Tally, formula: Formula, estimator: str, options: Options) -> Kind | None:
    """The kind of error that the values of a formula have in closed form, if any."""
    if tally.design is not None:
        return _kind_under_design(tally, formula, estimator, options)
    if options.interval in {"bootstrap", "bayes"}:
        return None
    is_of_one, clustered = estimator in ONE_LABEL, _has_clusters(tally)
    if not clustered and share_of(formula) is not None and (is_of_one or formula.over_levels):
        return "share"
    if not clustered and tally.weights is None and is_share_of_flags(formula):
        return "share"
    known = is_smooth(formula, estimator, tally)
    if formula.deviations and is_of_one and (known or not clustered):
        return "area"
    return "smooth" if options.interval != "exact" and known else None


def _kind_under_design(tally: Tally, formula: Formula, estimator: str, options: Options) -> Kind | None:
    """The kind of error of values from a survey, if any: that of the design."""
    if options.interval not in {"auto", "analytic"}:
        msg = f'`interval={options.interval!r}` does not support `design`; use `interval="auto"`.'
        raise ArgumentError(msg)
    return "smooth" if is_smooth(formula, estimator, tally) else None


def _has_clusters(tally: Tally) -> bool:
    """Check whether rows have clusters of the user's own."""
    return any(key.column.name != BLOCK for key in tally.clusters)


def _kind_alone(tally: Tally, spec: MetricSpec, rows: pl.DataFrame, options: Options) -> Kind | None:
    """The kind of the values of a metric that compares no groups, where these have limits in closed form."""
    if spec.aggregate is not None or rows.is_empty() or not (rows[LEVEL] == NO_LEVEL).all():
        return None
    ((_, formula),) = spec.formulas
    return _kind(tally, formula, rows["estimator"][0], options)


def _alone(evaluated: Evaluated, number: int, kind: Kind, rows: pl.DataFrame, options: Options) -> list[Interval]:
    """The intervals of values that are not compared."""
    spec = evaluated.specs[number]
    ((_, formula),) = spec.formulas
    exact = options.interval == "exact"
    return quantities_of(kind, spec, formula, rows, evaluated).intervals(options.conf_level, exact=exact)


def _closed_form(
    tally: Tally, evaluated: Evaluated, spec: MetricSpec, rows: pl.DataFrame, options: Options
) -> _Form | None:
    """The function for the intervals of a spec from the rows of an outer group; None if by replicates."""
    kinds: dict[str, Kind] = {}
    for name, formula in spec.formulas:
        of_name = rows.filter(name=name)
        kind = _kind(tally, formula, of_name["estimator"][0], options) if len(of_name) else "share"
        if kind is None or spec.subtracted:
            return None
        kinds[name] = kind
    level, aggregate = options.conf_level, spec.aggregate
    if isinstance(aggregate, Contrast) and _is_beside_rest(tally, spec, aggregate, kinds, rows):
        return _beside_rest(evaluated, spec, aggregate, kinds, options)
    if aggregate is None or not _is_of_limits(spec, rows):
        return None

    def interval(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        of_groups, references = _families(evaluated, spec, part, kinds)
        if not of_groups:
            return None
        return compared(of_groups, references, aggregate, level, times=options.replicates, random=random)

    return interval


def _size_column(tally: Tally) -> str:
    """The column of what the mean of several groups weights their values by; with weights, of those of all rows."""
    return "counted_rows" if tally.weights is None else "weight"


def _is_beside_rest(
    tally: Tally, spec: MetricSpec, aggregate: Contrast, kinds: Mapping[str, Kind], rows: pl.DataFrame
) -> bool:
    """Check whether groups are compared with the mean of all others, or of all rows, of which nothing is left out."""
    several = len(spec.formulas) > 1 or (rows[LEVEL] != NO_LEVEL).any()
    if (
        tally.design is not None
        or not aggregate.contexts
        or aggregate.signed
        or (several and aggregate.across != "worst")
    ):
        return False
    if _has_clusters(tally) or not all(kinds[name] == "share" or is_mean(formula) for name, formula in spec.formulas):
        return False
    value, weight = pl.col("estimate"), pl.col(_size_column(tally))
    total = (value * weight).sum()
    mean = total / weight.sum()
    if aggregate.to == "rest":
        mean = (total - value * weight) / (weight.sum() - weight)
    context = pl.col(str(aggregate.to))
    sums = rows.group_by("outer", "name", LEVEL).agg(
        adds_up=((mean - context).abs() <= _EQUAL * value.abs().max()).all() & (weight > 0).all() & (weight.len() > 1)
    )
    return bool(len(sums)) and bool(sums["adds_up"].fill_null(value=False).all())


def _beside_rest(
    evaluated: Evaluated, spec: MetricSpec, aggregate: Contrast, kinds: Mapping[str, Kind], options: Options
) -> _Form:
    """The function for the interval of a comparison with all others, or with all rows."""

    def interval(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        of_groups, _ = _families(evaluated, spec, part, kinds)
        weights = [
            of_family[_size_column(evaluated.evaluator.tally)].to_numpy().astype(float)
            for _, of_family in part.group_by("name", LEVEL, maintain_order=True)
        ]
        families = [WithRest.of(family, weight) for family, weight in zip(of_groups, weights, strict=True)]
        return compared_with_rest(families, aggregate, options.conf_level, times=options.replicates, random=random)

    return interval


def _with_values(drawn: pl.DataFrame, value: pl.Series) -> pl.DataFrame:
    """Intervals of which those of one end include their values, which quantiles of a low level need not."""
    lower, upper = pl.col(".lower"), pl.col(".upper")
    return drawn.with_columns(
        pl.when(upper.is_null() & (lower > value)).then(value).otherwise(lower).alias(".lower"),
        pl.when(lower.is_null() & (upper < value)).then(value).otherwise(upper).alias(".upper"),
    )


def _reaching(drawn: pl.DataFrame, value: pl.Series, reach: pl.DataFrame, z: float) -> pl.DataFrame:
    """Intervals by replicates that are no narrower than empty cells can make them."""
    lower, upper, low, high = (pl.col(name) for name in (".lower", ".upper", LOW, HIGH))
    wider = ((low < lower) | (high > upper)).fill_null(value=False)
    error = pl.max_horizontal(".std_error", (value - low) / z, (high - value) / z)
    return drawn.hstack(reach).with_columns(
        pl.when(lower.is_not_null()).then(pl.min_horizontal(lower, low)).alias(".lower"),
        pl.when(upper.is_not_null()).then(pl.max_horizontal(upper, high)).alias(".upper"),
        # replicates that are all the same say nothing about how far values vary
        pl.when(pl.col(".std_error") > 0).then(pl.when(wider).then(error).otherwise(".std_error")),
        pl.when(wider).then(pl.col(".method") + ", empty cells").otherwise(".method").alias(".method"),
    )


def _beside(
    table: pl.DataFrame,
    intervals: Sequence[Interval | None],
    tally: Tally,
    specs: Sequence[MetricSpec],
    options: Options,
    tidy: Callable[[Evaluated], pl.DataFrame],
    reach: pl.DataFrame,
) -> pl.DataFrame:
    """A table with intervals, and with those by replicates for `specs` in rows without one.

    `reach` has a row for each row of the table: whether it is `lone`, and how far empty cells may move it.
    """
    columns = _as_columns(intervals)
    if specs:
        drawn = _drawn_beside(table, tally, specs, options, tidy, reach)
        columns = columns.with_columns(pl.coalesce(columns[name], drawn[name]).alias(name) for name in INTERVAL)
    columns = columns.with_columns(
        pl.when(table[".estimate"].is_not_null()).then(name).alias(name) for name in INTERVAL
    )
    after = ".error_bound" if ".error_bound" in table.columns else ".estimate"
    end = table.columns.index(after) + 1
    return table[:, :end].hstack(columns).hstack(table[:, end:])


def _as_columns(intervals: Sequence[Interval | None]) -> pl.DataFrame:
    """Intervals as columns, null where there is none."""
    rows: list[tuple[Any, ...]] = []
    for interval in intervals:
        if interval is None or (_lacks_an_end(interval) and not interval.one_sided):
            rows.append((None,) * len(INTERVAL))
        else:
            rows.append((interval.lower, interval.upper, interval.error, interval.method, None))
    columns = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return columns.with_columns(pl.selectors.float().fill_nan(None))


def _drawn_beside(
    table: pl.DataFrame,
    tally: Tally,
    specs: Sequence[MetricSpec],
    options: Options,
    tidy: Callable[[Evaluated], pl.DataFrame],
    reach: pl.DataFrame,
) -> pl.DataFrame:
    """The intervals by replicates of all rows of a table, null where replicates cannot give one."""
    if options.interval in {"analytic", "exact"}:
        names = dict.fromkeys(spec.name for spec in specs)
        kind = "exact interval" if options.interval == "exact" else "interval in closed form"
        msg = f'{listed(names)}: there is no {kind}; take `interval="auto"` or "bootstrap".'
        raise ArgumentError(msg)
    drawn = by_replicates(tally.in_few_parts(), specs, options, tidy)
    keys = [name for name in drawn.columns if name not in INTERVAL]
    drawn = table.select(keys).join(drawn, on=keys, how="left", nulls_equal=True, maintain_order="left")
    drawn = _with_values(drawn, table[".estimate"])
    if options.interval == "bayes":
        return drawn
    # replicates of a single row or cluster are identical, so that there is no interval; a prior adds variance
    drawn = drawn.with_columns(pl.when(~reach["lone"]).then(name).alias(name) for name in INTERVAL)
    return _reaching(drawn, table[".estimate"], reach, z_value(options.conf_level))
