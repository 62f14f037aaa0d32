"""What an interval adds to a call: the limits of every value, in closed form where there is one, else by replicates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.arguments import how_often, one_of, proper_share, whole
from tidyfair.bands import band_limits, has_bands
from tidyfair.comparisons import NO_LEVEL
from tidyfair.contrasts import Contrast
from tidyfair.draws import INTERVAL, by_replicates, lone_results, results_of, with_lone
from tidyfair.errors import ArgumentError, listed
from tidyfair.intervals import Interval, Kind, Quantities, compared, limits_of, share_of
from tidyfair.readings import LEVEL, ONE_LABEL
from tidyfair.replicates import generator
from tidyfair.results import tidy_groups
from tidyfair.spreads import Spread
from tidyfair.tallies import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.evaluations import Evaluated
    from tidyfair.formulas import Formula
    from tidyfair.requests import Reading, Request
    from tidyfair.tallies import Tally

    _Form: TypeAlias = Callable[[pl.DataFrame, np.random.Generator], Interval | None]

__all__: list[str] = []

WAYS = ("auto", "analytic", "bootstrap", "bayes", "exact")
_SCHEMA: dict[str, Any] = dict(zip(INTERVAL, (pl.Float64, pl.Float64, pl.Float64, pl.String, pl.Int64), strict=True))


def check_reading(reading: Reading) -> None:
    """Refuse options of intervals that mean nothing."""
    if reading["interval"] is not None:
        one_of("interval", reading["interval"], WAYS)
    proper_share("conf_level", reading["conf_level"])
    how_often(reading["times"], 2)
    whole("seed", reading["seed"], 0)


def group_intervals(tally: Tally, evaluated: Evaluated, groups: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The values of groups with an interval of each."""
    about = ["name", "estimator", "min_n", "unit", LEVEL]
    rows = with_lone(tally, evaluated).unique(about, keep="first", maintain_order=True)
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
    table = _beside(groups, found, tally, requests, reading, tidy_groups, rows["lone"])
    return _without_ends_of_distances(table, evaluated.requests, reading)


def result_intervals(tally: Tally, evaluated: Evaluated, results: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Results with an interval of each, one row for each request and outer group in this order."""
    outers = len(evaluated.units.outer_keys)
    found: list[Interval | None] = [None] * len(results)
    rows = evaluated.rows.filter(pl.col("estimate").is_not_null())
    lone = lone_results(tally, evaluated)
    forms = {
        number: _closed_form(tally, request, rows.filter(request=number), reading)
        for number, request in enumerate(evaluated.requests)
    }
    # a range of what has no closed form is that of all pairs too, whose errors replicates tell
    paired = [
        number for number, form in forms.items()
        if form is None and _is_paired(evaluated.requests[number], rows.filter(request=number), reading)
    ]  # fmt: skip
    in_bands = [
        number for number, form in forms.items()
        if form is None and number not in paired and reading["interval"] == "auto"
        and has_bands(evaluated.requests[number])
    ]  # fmt: skip
    estimated = [
        number for number in in_bands
        if _kind_of(tally, evaluated.requests[number], rows.filter(request=number), reading) == "estimated"
    ]  # fmt: skip
    if paired or estimated:
        rows = _with_deviations(tally, evaluated, [*paired, *estimated], reading)
        forms |= {number: _of_pairs(evaluated.requests[number], reading) for number in paired}
    unpaired = set[int]()
    for number, form in forms.items():
        request = evaluated.requests[number]
        for (outer,), part in rows.filter(request=number).group_by("outer", maintain_order=True):
            place = number * outers + int(str(outer))
            if form is None or results[".estimate"][place] is None or (number in paired and lone[place]):
                continue
            if _is_signed(request) and _has_several_pairs(part):
                unpaired.add(number)
                continue
            about = f"{request.name} {request.by and request.by.text} {outer}"
            compared_metrics = _without_metrics(part, results[".metrics_left_out"][place])
            found[place] = form(compared_metrics, generator(reading["seed"], about))
    left = [request for number, request in enumerate(evaluated.requests) if forms[number] is None or number in unpaired]
    table = _beside(results, found, tally, left, reading, results_of, lone)
    table = _without_ends_of_distances(table, evaluated.requests, reading)
    banded = rows.filter(pl.col("request").is_in(in_bands))
    return _with_bands(table, tally, evaluated, banded, reading) if in_bands else table


def _without_metrics(rows: pl.DataFrame, left_out: pl.Series) -> pl.DataFrame:
    """The rows of the metrics that a disparity is the worst of."""
    # of labels read one by one, a metric may be left out of some and not of others
    by_label = (rows[LEVEL] != NO_LEVEL).any()
    return rows if by_label else rows.filter(~pl.col("name").is_in(left_out.to_list()))


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
        return any(not _has_several_pairs(part) for _, part in rows.group_by("outer"))
    return not isinstance(aggregate, Spread) or rows[LEVEL].n_unique() <= 1


def _is_signed(request: Request) -> bool:
    return isinstance(request.aggregate, Contrast) and bool(request.aggregate.signed)


def _has_several_pairs(part: pl.DataFrame) -> bool:
    """Whether an outer group has more values than two groups have for one label."""
    return len(part) > len(("one", "other"))


def _with_deviations(tally: Tally, evaluated: Evaluated, numbers: Sequence[int], reading: Reading) -> pl.DataFrame:
    """The rows that have a value, with the standard error of those of some requests, as replicates show it."""
    mine = replace(evaluated, rows=evaluated.rows.filter(pl.col("request").is_in(list(numbers))))
    groups = tidy_groups(mine)
    drawn = by_replicates(tally, [evaluated.requests[number] for number in numbers], reading, tidy_groups)
    keys = [name for name in drawn.columns if name not in INTERVAL]
    errors = groups.select(keys).join(drawn, on=keys, how="left", nulls_equal=True, maintain_order="left")[".std_error"]
    about = ["name", "estimator", "min_n", "unit", LEVEL]
    each = mine.rows.unique(about, keep="first", maintain_order=True).select(about).with_columns(deviation=errors)
    rows = evaluated.rows.filter(pl.col("estimate").is_not_null())
    return rows.join(each, on=about, how="left", nulls_equal=True, maintain_order="left")


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


def _beside(
    table: pl.DataFrame,
    found: Sequence[Interval | None],
    tally: Tally,
    left: Sequence[Request],
    reading: Reading,
    tidy: Callable[[Evaluated], pl.DataFrame],
    lone: pl.Series,
) -> pl.DataFrame:
    """A table with the intervals found, and those by replicates where none was and these can tell."""
    columns: dict[str, list[Any]] = {name: [] for name in INTERVAL}
    for each in found:
        values = (each.lower, each.upper, each.error, each.method, None) if each else (None,) * len(INTERVAL)
        for name, value in zip(INTERVAL, values, strict=True):
            columns[name].append(None if isinstance(value, float) and math.isnan(value) else value)
    made = pl.DataFrame(columns, schema=_SCHEMA)
    if left:
        if reading["interval"] in {"analytic", "exact"}:
            names = dict.fromkeys(request.name for request in left)
            msg = f'{listed(names)}: there is no interval in closed form; take `interval="auto"` or "bootstrap".'
            raise ArgumentError(msg)
        drawn = by_replicates(tally, left, reading, tidy)
        keys = [name for name in drawn.columns if name not in INTERVAL]
        joined = table.select(keys).join(drawn, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if reading["interval"] != "bayes":
            # what nobody has seen vary is not sure; a prior varies
            joined = joined.with_columns(pl.when(~lone).then(name).alias(name) for name in INTERVAL)
        made = made.with_columns(pl.coalesce(made[name], joined[name]).alias(name) for name in INTERVAL)
    made = made.with_columns(pl.when(table[".estimate"].is_not_null()).then(name).alias(name) for name in INTERVAL)
    after = next(name for name in (".error_bound", ".estimate") if name in table.columns)
    place = table.columns.index(after) + 1
    return table[:, :place].hstack(made).hstack(table[:, place:])
