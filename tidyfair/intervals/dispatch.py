"""What an interval adds to a call: the limits of every value, in closed form where there is one, else by replicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation.results import tidy_groups
from tidyfair.evaluation.states import NO_LEVEL
from tidyfair.evaluation.statistics import LEVEL, ONE_LABEL, UNIT
from tidyfair.intervals.analytic import Interval, Kind, Quantities, compared, limits_of, share_of
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
from tidyfair.intervals.proportions import z_value
from tidyfair.intervals.resampling import generator
from tidyfair.intervals.simultaneous import band_limits, has_bands
from tidyfair.specs.arguments import how_often, one_of, proper_share, whole
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.spreads import Spread
from tidyfair.tallies.tally import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.options import Reading, Request
    from tidyfair.tallies.tally import Tally

    _Form: TypeAlias = Callable[[pl.DataFrame, np.random.Generator], Interval | None]

__all__: list[str] = []

WAYS = ("auto", "analytic", "bootstrap", "bayes", "exact")
_SCHEMA: dict[str, Any] = dict(zip(INTERVAL, (pl.Float64, pl.Float64, pl.Float64, pl.String, pl.Int64), strict=True))


_VALUE = ["name", "estimator", "min_n", "unit", LEVEL]
"""What says which value a row is about, whatever asks for it."""
_REACH: dict[str, Any] = {ALIKE: pl.Boolean, LOW: pl.Float64, HIGH: pl.Float64, "z": pl.Float64}
_BY_REPLICATES = ("auto", "bootstrap")


def check_reading(reading: Reading) -> None:
    """Refuse options of intervals that mean nothing."""
    if reading["interval"] is not None:
        one_of("interval", reading["interval"], WAYS)
    proper_share("conf_level", reading["conf_level"])
    how_often(reading["times"], 2)
    whole("seed", reading["seed"], 0)


def group_intervals(tally: Tally, evaluated: Evaluated, groups: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The values of groups with an interval of each."""
    evaluated = evaluated.with_rows(with_lone(tally, evaluated))
    rows = evaluated.rows.unique(_VALUE, keep="first", maintain_order=True)
    found: list[Interval | None] = [None] * len(rows)
    left = set[int]()
    for (number, name), part in rows.with_row_index("place").group_by("request", "name", maintain_order=True):
        request = evaluated.requests[int(str(number))]
        formula = next(each for metric, each in request.formulas if metric == name)
        kind = _kind(tally, formula, part["estimator"][0], reading)
        if kind is None:
            left.add(int(str(number)))
            continue
        valued = part.filter(pl.col("estimate").is_not_null())
        exact = reading["interval"] == "exact"
        each = limits_of(Quantities.of(kind, valued), reading["conf_level"], exact=exact)
        for place, interval in zip(valued["place"], each, strict=True):
            found[place] = interval
    requests = [request for number, request in enumerate(evaluated.requests) if number in left]
    rows = _with_reach(tally, evaluated, dict.fromkeys(left, z_value(reading["conf_level"])), reading)
    rows = rows.unique(_VALUE, keep="first", maintain_order=True)
    known = rows.select(LOW, HIGH, pl.col("lone") | pl.col(ALIKE))
    table = _beside(groups, found, tally, requests, reading, tidy_groups, known)
    return _without_ends_of_distances(table, evaluated.requests, reading)


def result_intervals(tally: Tally, evaluated: Evaluated, results: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Results with an interval of each, one row for each request and outer group in this order."""
    outers = len(evaluated.units.outer_keys)
    ways = _Ways.of(tally, evaluated, reading)
    rows = _with_reach(tally, evaluated, ways.reached(reading["conf_level"]), reading)
    rows = rows.filter(pl.col("estimate").is_not_null())
    lone = lone_results(tally, evaluated) | _with_some(rows.filter(ALIKE), len(results), outers)
    rows = _with_deviations(tally, evaluated.with_rows(rows), [*ways.paired, *ways.estimated], reading)
    found: list[Interval | None] = [None] * len(results)
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(results)
    for number, form in ways.forms.items():
        request = evaluated.requests[number]
        for (outer,), part in rows.filter(request=number).group_by("outer", maintain_order=True):
            place = number * outers + int(str(outer))
            drawn = form is None or _is_drawn(request, part)
            if results[".estimate"][place] is None or (lone[place] and (drawn or number in ways.paired)):
                continue
            if form is None or drawn:
                ends[place] = filled_result(evaluated, part)
                continue
            about = f"{request.name} {request.by and request.by.text} {outer}"
            compared_metrics = _without_metrics(part, results[".metrics_left_out"][place])
            found[place] = form(compared_metrics, generator(reading["seed"], about))
    left = [request for number, request in enumerate(evaluated.requests) if number in ways.drawn]
    schema: Any = {LOW: pl.Float64, HIGH: pl.Float64}
    known = pl.DataFrame(ends, schema, orient="row").with_columns(lone=lone)
    table = _beside(results, found, tally, left, reading, results_of, known)
    table = _without_ends_of_distances(table, evaluated.requests, reading)
    banded = rows.filter(pl.col("request").is_in(ways.in_bands))
    return _with_bands(table, tally, evaluated, banded, reading) if ways.in_bands else table


@dataclass(frozen=True)
class _Ways:
    """How the intervals of requests are found, by their numbers."""

    forms: dict[int, _Form | None]
    """From the values of groups, where these are enough."""
    paired: list[int]
    """Of those, from the errors that replicates show of the values."""
    in_bands: list[int]
    """From replicates, and from limits of all groups at once."""
    estimated: list[int]
    """Of those in bands, which have these limits from replicates too."""
    drawn: list[int]
    """From replicates, for some outer group."""
    groups: dict[int, int]
    """How many groups are compared at most."""

    @classmethod
    def of(cls, tally: Tally, evaluated: Evaluated, reading: Reading) -> _Ways:
        """Find out how."""
        forms: dict[int, _Form | None] = {}
        groups: dict[int, int] = {}
        paired, in_bands, estimated, drawn = (list[int]() for _ in range(4))
        for number, request in enumerate(evaluated.requests):
            rows = evaluated.rows.filter(pl.col("estimate").is_not_null(), request=number)
            parts = [part for _, part in rows.group_by("outer")]
            groups[number] = max((part[UNIT].n_unique() for part in parts), default=1)
            forms[number] = _closed_form(tally, request, rows, reading)
            # a range of what has no closed form is that of all pairs too, whose errors replicates tell
            if forms[number] is None and _is_paired(request, rows, reading):
                paired.append(number)
                forms[number] = _of_pairs(request, reading)
            if forms[number] is None or any(_is_drawn(request, part) for part in parts):
                drawn.append(number)
            if forms[number] is None and reading["interval"] == "auto" and has_bands(request):
                in_bands.append(number)
                estimated += [number] * (_kind_of(tally, request, rows, reading) == "estimated")
        return cls(forms, paired, in_bands, estimated, drawn, groups)

    def reached(self, level: float) -> dict[int, float]:
        """At how many standard errors empty cells are filled, where there are replicates; for all groups at once."""
        at_once = {number: z_value(level ** (1 / self.groups[number])) for number in (*self.paired, *self.estimated)}
        return {**dict.fromkeys(self.drawn, z_value(level)), **at_once}


def _without_metrics(rows: pl.DataFrame, left_out: pl.Series) -> pl.DataFrame:
    """The rows of the metrics that a disparity is the worst of."""
    # of labels read one by one, a metric may be left out of some and not of others
    by_label = (rows[LEVEL] != NO_LEVEL).any()
    return rows if by_label else rows.filter(~pl.col("name").is_in(left_out.to_list()))


def _with_some(rows: pl.DataFrame, length: int, outers: int) -> pl.Series:
    """Whether each result is among those that some rows are about."""
    places = rows.select(pl.col("request") * outers + pl.col("outer")).to_series()
    return pl.int_range(length, eager=True).is_in(places.unique().implode())


def _with_reach(tally: Tally, evaluated: Evaluated, levels: Mapping[int, float], reading: Reading) -> pl.DataFrame:
    """The rows of values and, for some requests, what replicates do not tell of them.

    `levels` says at how many standard errors empty cells are filled. Values are `alike` if all replicates have the
    same, and whatever is in empty cells does not change it.
    """
    value, low, high = (pl.col(name) for name in ("estimate", LOW, HIGH))
    if levels and reading["interval"] in _BY_REPLICATES:
        known = _reach_of(tally, evaluated, levels, reading)
    else:
        known = pl.DataFrame(schema={"request": pl.Int32, **evaluated.rows.select(_VALUE).schema, **_REACH})
    rows = evaluated.rows.join(known, on=["request", *_VALUE], how="left", nulls_equal=True, maintain_order="left")
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


def _reach_of(tally: Tally, evaluated: Evaluated, levels: Mapping[int, float], reading: Reading) -> pl.DataFrame:
    """What replicates do not tell of the values of some requests, by what the rows of these are about."""
    requests = {number: evaluated.requests[number] for number in levels}
    same = alike(tally, list(requests.values()), reading)
    parts = list[pl.DataFrame]()
    for z in dict.fromkeys(levels.values()):
        mine = [number for number, level in levels.items() if level == z]
        filled = filled_groups(tally, [requests[number] for number in mine], reading, z)
        parts += [_of_values(evaluated, number, same, filled).with_columns(z=z) for number in mine]
    return pl.concat(parts).select("request", *_VALUE, *_REACH)


def _of_values(evaluated: Evaluated, number: int, *tables: pl.DataFrame) -> pl.DataFrame:
    """The values of a request by what they are about, with what tables know of their groups under other keys."""
    rows = evaluated.rows.filter(request=number)
    groups = tidy_groups(evaluated.with_rows(rows))
    about = rows.unique(_VALUE, keep="first", maintain_order=True).select("request", *_VALUE)
    for table in tables:
        keys = [name for name in groups.columns if name in table.columns]
        found = groups.select(keys).join(table, on=keys, how="left", nulls_equal=True, maintain_order="left")
        about = about.hstack(found.drop(keys))
    return about


def _with_bands(
    table: pl.DataFrame, tally: Tally, evaluated: Evaluated, rows: pl.DataFrame, reading: Reading
) -> pl.DataFrame:
    """Results with the limits of distances that replicates do not tell, or tell too well where rows are few."""
    ends = {name: table[name].to_list() for name in (".lower", ".upper", ".method")}
    for (number, outer), part in rows.group_by("request", "outer", maintain_order=True):
        request = evaluated.requests[int(str(number))]
        place = int(str(number)) * len(evaluated.units.outer_keys) + int(str(outer))
        if ends[".method"][place] is None or part[LEVEL].n_unique() > 1:
            continue
        family = Quantities.of(_kind_of(tally, request, part, reading), part)
        limits = band_limits(evaluated, part, family, reading["conf_level"])
        if limits is None:
            continue
        beside = [table[".estimate"][place], ends[".lower"][place], ends[".upper"][place]]
        known = [each for each in (*beside, *limits) if each is not None]
        ends[".lower"][place], ends[".upper"][place] = min(known), max(known)
        ends[".method"][place] = f"{ends['.method'][place].partition(',')[0]}, simultaneous"
    return table.with_columns(pl.Series(name, each, dtype=table[name].dtype) for name, each in ends.items())


def _kind_of(tally: Tally, request: Request, rows: pl.DataFrame, reading: Reading) -> Kind:
    """How sure the values of a metric of one formula are."""
    ((_, formula),) = request.formulas
    return (_kind(tally, formula, rows["estimator"][0], reading) if len(rows) else None) or "estimated"


def _without_ends_of_distances(table: pl.DataFrame, requests: Sequence[Request], reading: Reading) -> pl.DataFrame:
    """Intervals of what is made of distances without the end towards equality, of which replicates know nothing."""
    if reading["interval"] not in {"auto", "bayes"}:
        return table
    of_groups = ".group" in table.columns
    for request in requests:
        if request.of_distances and request.by:
            names = [name for name, _ in request.formulas] if of_groups else [request.name]
            is_it = pl.col(".metric").is_in(names) & (pl.col(".by") == request.by.text) & pl.col(".lower").is_not_null()
            method = pl.when(is_it).then(pl.col(".method") + ", upper end").otherwise(".method").alias(".method")
            table = table.with_columns(pl.when(~is_it).then(".lower").alias(".lower"), method)
    return table


def _is_paired(request: Request, rows: pl.DataFrame, reading: Reading) -> bool:
    """Whether a comparison is one of pairs of groups, or with a reference."""
    return reading["interval"] == "auto" and not request.less and _is_of_limits(request, rows)


def _is_of_limits(request: Request, rows: pl.DataFrame) -> bool:
    """Whether the interval of a comparison follows from those of the groups; of extremes, for one label at most.

    With a sign it does in outer groups with a single pair, because the farthest of several has the sign of whichever it
    is.
    """
    aggregate = request.aggregate
    if aggregate is None or not aggregate.in_closed_form(len(request.formulas)):
        return False
    if _is_signed(request):
        return any(not _is_drawn(request, part) for _, part in rows.group_by("outer"))
    return not isinstance(aggregate, Spread) or rows[LEVEL].n_unique() <= 1


def _is_signed(request: Request) -> bool:
    return isinstance(request.aggregate, Contrast) and bool(request.aggregate.signed)


def _is_drawn(request: Request, part: pl.DataFrame) -> bool:
    """Whether a comparison has a sign, and an outer group more values than two groups have for one label."""
    return _is_signed(request) and len(part) > len(("one", "other"))


def _with_deviations(tally: Tally, evaluated: Evaluated, numbers: Sequence[int], reading: Reading) -> pl.DataFrame:
    """The rows with the standard error of those of some requests, as replicates show it."""
    if not numbers:
        return evaluated.rows
    together: dict[bool, list[int]] = {}
    for number in numbers:
        together.setdefault(is_stratified(evaluated.requests[number]), []).append(number)
    parts = list[pl.DataFrame]()
    # groups are drawn in another way where their sizes matter
    for mine in together.values():
        drawn = by_replicates(tally, [evaluated.requests[number] for number in mine], reading, tidy_groups)
        drawn = drawn.select(pl.exclude(INTERVAL), pl.col(".std_error").alias("deviation"))
        parts += [_of_values(evaluated, number, drawn) for number in mine]
    about = ["request", *_VALUE]
    return evaluated.rows.join(pl.concat(parts), on=about, how="left", nulls_equal=True, maintain_order="left")


def _of_pairs(request: Request, reading: Reading) -> _Form:
    """How the interval of a comparison follows from the values of groups and their errors."""

    def known(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        of_groups, references = _families(request, part, dict.fromkeys(part["name"], "estimated"))
        aggregate = request.aggregate
        if aggregate is None:
            return None
        return compared(of_groups, references, aggregate, reading["conf_level"], times=reading["times"], random=random)

    return known


def _families(
    request: Request, part: pl.DataFrame, kinds: Mapping[str, Kind]
) -> tuple[list[Quantities], list[int | None]]:
    """The quantities of each rate and label of an outer group, and the group that others are compared with."""
    found, references = list[Quantities](), list[int | None]()
    for (name, _), mine in part.group_by("name", LEVEL, maintain_order=True):
        at = mine["is_reference"].arg_true().to_list()
        if isinstance(request.aggregate, Contrast) and request.aggregate.to == "majority":
            at = [mine["size"].arg_max()]
        found.append(Quantities.of(kinds[str(name)], mine))
        references.append(at[0] if at else None)
    return found, references


def _kind(tally: Tally, formula: Formula, estimator: str, reading: Reading) -> Kind | None:
    """How the values of a formula can be sure in closed form, if they can."""
    clustered = any(key.column.name != BLOCK for key in tally.clusters)
    if reading["interval"] in {"bootstrap", "bayes"} or clustered:
        return None
    if share_of(formula) is not None and (estimator in ONE_LABEL or formula.over_levels):
        return "share"
    return "area" if formula.deviations and estimator in ONE_LABEL else None


def _closed_form(tally: Tally, request: Request, rows: pl.DataFrame, reading: Reading) -> _Form | None:
    """How the intervals of a request are worked out from the rows of an outer group; None if by replicates."""
    kinds: dict[str, Kind] = {}
    for name, formula in request.formulas:
        of_name = rows.filter(name=name)
        kind = _kind(tally, formula, of_name["estimator"][0], reading) if len(of_name) else "share"
        if kind is None or request.less:
            return None
        kinds[name] = kind
    level, aggregate = reading["conf_level"], request.aggregate
    if aggregate is None:
        each = len(kinds) == 1 and (rows[LEVEL] == NO_LEVEL).all()
        exact = reading["interval"] == "exact"
        return (
            (lambda part, _: limits_of(_families(request, part, kinds)[0][0], level, exact=exact)[0]) if each else None
        )
    if not _is_of_limits(request, rows):
        return None

    def known(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        of_groups, references = _families(request, part, kinds)
        return compared(of_groups, references, aggregate, level, times=reading["times"], random=random)

    return known


def _reaching(drawn: pl.DataFrame, value: pl.Series, reach: pl.DataFrame, z: float) -> pl.DataFrame:
    """Intervals by replicates that are no narrower than empty cells can make them."""
    lower, upper, low, high = (pl.col(name) for name in (".lower", ".upper", LOW, HIGH))
    wider = ((low < lower) | (high > upper)).fill_null(value=False)
    error = pl.max_horizontal(".std_error", (value - low) / z, (high - value) / z)
    return drawn.hstack(reach).with_columns(
        pl.when(lower.is_not_null()).then(pl.min_horizontal(lower, low)).alias(".lower"),
        pl.when(upper.is_not_null()).then(pl.max_horizontal(upper, high)).alias(".upper"),
        pl.when(wider).then(error).otherwise(".std_error").alias(".std_error"),
        pl.when(wider).then(pl.col(".method") + ", empty cells").otherwise(".method").alias(".method"),
    )


def _beside(
    table: pl.DataFrame,
    found: Sequence[Interval | None],
    tally: Tally,
    left: Sequence[Request],
    reading: Reading,
    tidy: Callable[[Evaluated], pl.DataFrame],
    known: pl.DataFrame,
) -> pl.DataFrame:
    """A table with the intervals found, and those by replicates where none was and these can tell.

    It is `known` of each row whether something in it is `lone`, and how far empty cells may move it.
    """
    made = _as_columns(found)
    if left:
        drawn = _drawn_beside(table, tally, left, reading, tidy, known)
        made = made.with_columns(pl.coalesce(made[name], drawn[name]).alias(name) for name in INTERVAL)
    made = made.with_columns(pl.when(table[".estimate"].is_not_null()).then(name).alias(name) for name in INTERVAL)
    after = ".error_bound" if ".error_bound" in table.columns else ".estimate"
    end = table.columns.index(after) + 1
    return table[:, :end].hstack(made).hstack(table[:, end:])


def _as_columns(intervals: Sequence[Interval | None]) -> pl.DataFrame:
    """Intervals as columns; null for none, and for what is unknown of one."""
    rows: list[tuple[Any, ...]] = []
    for interval in intervals:
        if interval is None:
            rows.append((None,) * len(INTERVAL))
        else:
            rows.append((interval.lower, interval.upper, interval.error, interval.method, None))
    columns = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return columns.with_columns(pl.selectors.float().fill_nan(None))


def _drawn_beside(
    table: pl.DataFrame,
    tally: Tally,
    requests: Sequence[Request],
    reading: Reading,
    tidy: Callable[[Evaluated], pl.DataFrame],
    known: pl.DataFrame,
) -> pl.DataFrame:
    """The intervals by replicates of each row of a table, null where these cannot tell."""
    if reading["interval"] in {"analytic", "exact"}:
        names = dict.fromkeys(request.name for request in requests)
        msg = f'{listed(names)}: there is no interval in closed form; take `interval="auto"` or "bootstrap".'
        raise ArgumentError(msg)
    drawn = by_replicates(tally, requests, reading, tidy)
    keys = [name for name in drawn.columns if name not in INTERVAL]
    drawn = table.select(keys).join(drawn, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if reading["interval"] == "bayes":
        return drawn
    # what nobody has seen vary is not sure; a prior varies
    drawn = drawn.with_columns(pl.when(~known["lone"]).then(name).alias(name) for name in INTERVAL)
    return _reaching(drawn, table[".estimate"], known, z_value(reading["conf_level"]))
