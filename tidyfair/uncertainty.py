"""What an interval adds to a call: the limits of every value, in closed form where there is one, else by replicates."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.comparisons import NO_LEVEL
from tidyfair.contrasts import Contrast
from tidyfair.errors import ArgumentError, ClusterWarning, listed, warn
from tidyfair.evaluations import evaluate_requests
from tidyfair.intervals import Interval, Kind, Quantities, compared, limits_of, share_of
from tidyfair.readings import LEVEL, ONE_LABEL
from tidyfair.replicates import generator, redrawn, redrawn_clusters, redrawn_rows
from tidyfair.results import tidy_groups, tidy_results
from tidyfair.tallies import BLOCK, HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.evaluations import Evaluated, Reading, Request
    from tidyfair.formulas import Formula
    from tidyfair.tallies import Tally

    _Form: TypeAlias = Callable[[pl.DataFrame, np.random.Generator], Interval | None]

__all__: list[str] = []

INTERVAL = (".lower", ".upper", ".std_error", ".method")
WAYS = ("auto", "analytic", "bootstrap", "bayes", "exact")
_KEYS = (".metric", ".by", ".group", ".level", ".threshold", ".top_k", ".top_fraction")
_SCHEMA = {".lower": pl.Float64, ".upper": pl.Float64, ".std_error": pl.Float64, ".method": pl.String}
_MOST_TIMES = 10**7
_FEW_CLUSTERS = 30


def check_reading(reading: Reading) -> None:
    """Refuse options of intervals that mean nothing."""
    if reading["interval"] is not None and reading["interval"] not in WAYS:
        raise ArgumentError.unknown("interval", reading["interval"], WAYS)
    level, times, seed = reading["conf_level"], reading["times"], reading["seed"]
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"`conf_level` is a share between 0 and 1, not {level!r}."
        raise ArgumentError(msg)
    if isinstance(times, bool) or not isinstance(times, Integral) or not 1 < times <= _MOST_TIMES:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"`times` is a number of replicates, 2 to {_MOST_TIMES}, not {times!r}."
        raise ArgumentError(msg)
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"`seed` is a whole number, 0 or more, not {seed!r}."
        raise ArgumentError(msg)


def group_intervals(tally: Tally, evaluated: Evaluated, groups: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """The values of groups with an interval of each."""
    rows = evaluated.rows.unique(["name", "estimator", "min_n", "unit", LEVEL], keep="first", maintain_order=True)
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
    return _beside(groups, found, tally, requests, reading, tidy_groups)


def result_intervals(tally: Tally, evaluated: Evaluated, results: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    """Results with an interval of each, one row for each request and outer group in this order."""
    outers = len(evaluated.units.outer_keys)
    found: list[Interval | None] = [None] * len(results)
    rows = evaluated.rows.filter(pl.col("estimate").is_not_null())
    forms = {
        number: _closed_form(tally, request, rows.filter(request=number), reading)
        for number, request in enumerate(evaluated.requests)
    }
    # a range of what has no closed form is that of all pairs too, whose errors replicates tell
    paired = [
        number for number, form in forms.items() if form is None and _is_paired(evaluated.requests[number], reading)
    ]
    if paired:
        rows = _with_deviations(tally, evaluated, paired, reading)
        forms |= {number: _of_pairs(evaluated.requests[number], reading) for number in paired}
    for number, form in forms.items():
        request = evaluated.requests[number]
        for (outer,), part in rows.filter(request=number).group_by("outer", maintain_order=True):
            place = number * outers + int(str(outer))
            if form is None or results[".estimate"][place] is None:
                continue
            about = f"{request.name} {request.by and request.by.text} {outer}"
            found[place] = form(part, generator(reading["seed"], about))
    left = [request for number, request in enumerate(evaluated.requests) if forms[number] is None]
    return _beside(results, found, tally, left, reading, lambda each: tidy_results(each, undefined_is_null=False))


def _is_paired(request: Request, reading: Reading) -> bool:
    """Whether a comparison is one of pairs of groups, or with a reference."""
    aggregate = request.aggregate
    asked = reading["interval"] == "auto" and not request.less
    return asked and aggregate is not None and aggregate.in_closed_form(len(request.formulas))


def _with_deviations(tally: Tally, evaluated: Evaluated, numbers: Sequence[int], reading: Reading) -> pl.DataFrame:
    """The rows that have a value, with the standard error of those of some requests, as replicates show it."""
    mine = replace(evaluated, rows=evaluated.rows.filter(pl.col("request").is_in(list(numbers))))
    groups = tidy_groups(mine)
    drawn = _by_replicates(tally, [evaluated.requests[number] for number in numbers], reading, tidy_groups)
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
    if not aggregate.in_closed_form(len(request.formulas)):
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
) -> pl.DataFrame:
    """A table with the intervals found, and those by replicates where none was."""
    columns: dict[str, list[Any]] = {name: [] for name in INTERVAL}
    for each in found:
        values = (each.lower, each.upper, each.error, each.method) if each else (None,) * len(INTERVAL)
        for name, value in zip(INTERVAL, values, strict=True):
            columns[name].append(None if isinstance(value, float) and math.isnan(value) else value)
    made = pl.DataFrame(columns, schema=_SCHEMA)
    if left:
        if reading["interval"] in {"analytic", "exact"}:
            names = dict.fromkeys(request.name for request in left)
            msg = f'{listed(names)}: there is no interval in closed form; take `interval="auto"` or "bootstrap".'
            raise ArgumentError(msg)
        drawn = _by_replicates(tally, left, reading, tidy)
        keys = [name for name in drawn.columns if name not in INTERVAL]
        joined = table.select(keys).join(drawn, on=keys, how="left", nulls_equal=True, maintain_order="left")
        made = made.with_columns(pl.coalesce(made[name], joined[name]).alias(name) for name in INTERVAL)
    made = made.with_columns(pl.when(table[".estimate"].is_not_null()).then(name).alias(name) for name in INTERVAL)
    after = next(name for name in (".error_bound", ".estimate") if name in table.columns)
    place = table.columns.index(after) + 1
    return table[:, :place].hstack(made).hstack(table[:, place:])


def _by_replicates(
    tally: Tally, requests: Sequence[Request], reading: Reading, tidy: Callable[[Evaluated], pl.DataFrame]
) -> pl.DataFrame:
    """The quantiles of replicates by what the rows of a tidy table are about."""
    clustered = bool(tally.clusters)
    _check_drawn(tally, requests, reading)
    way: Any = "bayes" if reading["interval"] == "bayes" else "bootstrap"
    own = clustered and tally.clusters[0].column.name != BLOCK
    method = "cluster bootstrap" if own else "dirichlet" if way == "bayes" else way
    quiet: Reading = {**reading, "interval": None, "on_undefined": "ignore"}
    together: dict[tuple[object, bool, bool], list[Request]] = {}
    for request in requests:
        together.setdefault((request.by, is_stratified(request), _of_rows(request)), []).append(request)
    tables: list[pl.DataFrame] = []
    tail = (1 - reading["conf_level"]) / 2
    for (_, stratified, of_rows), mine in together.items():
        by = mine[0].by
        random = generator(reading["seed"], f"{by and by.text} {stratified}")
        columns = by.columns if by else ()
        fixed = columns if stratified else ()
        sized: Any = {"times": reading["times"], "random": random}
        if of_rows:
            drawn = redrawn_rows(tally, columns, strata=fixed, **sized)
        elif clustered:
            drawn = redrawn_clusters(tally, columns, **sized)
        else:
            drawn = redrawn(tally, columns, strata=fixed, way=way, **sized)
        parts = [
            tidy(evaluated).drop_nulls(".estimate")
            for each in drawn
            for evaluated in evaluate_requests(each, mine, quiet)
        ]
        every = pl.concat(parts, how="diagonal_relaxed")
        outer = [key.column.name for key in tally.outer if key.role == "outer"]
        keys = [*outer, *(name for name in _KEYS if name in every.columns)]
        value = pl.col(".estimate")
        tables.append(
            every.group_by(keys).agg(
                value.quantile(tail, "linear").alias(".lower"), value.quantile(1 - tail, "linear").alias(".upper"),
                value.std().alias(".std_error"), pl.lit(method).alias(".method"),
            )
        )  # fmt: skip
    found = pl.concat(tables, how="diagonal_relaxed")
    return found if reading["interval"] != "auto" else _without_false_ends(found, requests)


def _without_false_ends(found: pl.DataFrame, requests: Sequence[Request]) -> pl.DataFrame:
    """Intervals without the end at which groups are equal: chance alone moves distances away from there.

    Replicates have chance twice, so that this end would leave out equality even where it is true.
    """
    if ".group" in found.columns:
        return found
    ends = {".lower": pl.lit(value=False), ".upper": pl.lit(value=False)}
    for request in requests:
        if request.by and request.aggregate and request.aggregate.is_distance:
            is_it = (pl.col(".metric") == request.name) & (pl.col(".by") == request.by.text)
            end = ".upper" if request.aggregate.direction == "maximize" else ".lower"
            ends[end] = ends[end] | is_it
    other = {".lower": "bootstrap, upper end", ".upper": "bootstrap, lower end"}
    return found.with_columns(
        *(pl.when(~false).then(end).alias(end) for end, false in ends.items()),
        pl.when(ends[".lower"]).then(pl.lit(other[".lower"])).when(ends[".upper"]).then(pl.lit(other[".upper"]))
        .otherwise(".method").alias(".method"),
    )  # fmt: skip


def _check_drawn(tally: Tally, requests: Sequence[Request], reading: Reading) -> None:
    """Refuse what has no replicates."""
    for request in requests:
        of_rows = _of_rows(request)
        summed = any(formula.kind != "class" or formula.all_terms for _, formula in request.formulas)
        prior_of = "rows" if of_rows else "clusters" if tally.clusters else "weights" if tally.weights else None
        reasons = {
            "groups of which are suppressed": HIDDEN in tally.cells.columns,
            "which reads rows in the order in which they stand": tally.needs.order and of_rows,
            "of which only bins of scores were counted": tally.binned and of_rows,
            "of which the tally does not say how it varies: count with `parts=0`, or call the metric itself":
                summed and not of_rows and not tally.clusters,
            f"whose {prior_of} have no prior": reading["interval"] == "bayes" and prior_of,
        }  # fmt: skip
        for why in (why for why, there in reasons.items() if there):
            msg = f"There is no interval of {request.name}, {why}; leave `interval=` out, or ask for the others alone."
            raise ArgumentError(msg)
    if tally.clusters and tally.clusters[0].column.name != BLOCK:
        names = tally.names([key.column for key in tally.clusters])
        if (count := tally.cells.select(names).n_unique()) < _FEW_CLUSTERS:
            warn(
                f"There are {count} clusters; intervals from fewer than {_FEW_CLUSTERS} are too narrow.", ClusterWarning
            )


def _of_rows(request: Request) -> bool:
    """Whether replicates need the rows: counts and sums are not enough."""
    return any(formula.way != "sums" and formula.kind != "class" for _, formula in request.formulas)


def is_stratified(request: Request) -> bool:
    """Whether the sizes of groups are fixed: not where it matters how large they are."""
    aggregate = request.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_mass)
    return request.by is not None and not shares and not any(formula.compares for _, formula in request.formulas)
