"""What an interval adds to a call: the limits of every value, in closed form where there is one, else by replicates."""

from __future__ import annotations

import math
import zlib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.comparisons import NO_LEVEL
from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluations import evaluate_requests
from tidyfair.intervals import Interval, Kind, Quantities, compared, limits_of, share_of
from tidyfair.readings import LEVEL, ONE_LABEL
from tidyfair.replicates import redrawn
from tidyfair.results import tidy_groups, tidy_results
from tidyfair.tallies import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tidyfair.evaluations import Evaluated, Reading, Request
    from tidyfair.formulas import Formula
    from tidyfair.tallies import Tally

__all__: list[str] = []

INTERVAL = (".lower", ".upper", ".std_error", ".method")
WAYS = ("auto", "analytic", "bootstrap", "bayes", "exact")
_KEYS = (".metric", ".by", ".group", ".level", ".threshold", ".top_k", ".top_fraction")
_SCHEMA = {".lower": pl.Float64, ".upper": pl.Float64, ".std_error": pl.Float64, ".method": pl.String}
_MOST_TIMES = 10**7


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
        kind = _kind(formula, part["estimator"][0], reading)
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
    import numpy as np

    outers = len(evaluated.units.outer_keys)
    found: list[Interval | None] = [None] * len(results)
    left: list[Request] = []
    for number, request in enumerate(evaluated.requests):
        rows = evaluated.rows.filter((pl.col("request") == number) & pl.col("estimate").is_not_null())
        known = _closed_form(request, rows, reading)
        if known is None:
            left.append(request)
            continue
        for (outer,), part in rows.group_by("outer", maintain_order=True):
            place = number * outers + int(str(outer))
            if results[".estimate"][place] is None:
                continue
            # of its own for each result, so that no other metric of the call changes it
            own = zlib.crc32(f"{request.name} {request.by and request.by.text} {outer}".encode())
            found[place] = known(part, np.random.default_rng([reading["seed"], own]))
    return _beside(results, found, tally, left, reading, lambda each: tidy_results(each, undefined_is_null=False))


def _kind(formula: Formula, estimator: str, reading: Reading) -> Kind | None:
    """How the values of a formula can be sure in closed form, if they can."""
    if reading["interval"] in {"bootstrap", "bayes"}:
        return None
    if share_of(formula) is not None and (estimator in ONE_LABEL or formula.over_levels):
        return "share"
    return "area" if formula.deviations and estimator in ONE_LABEL else None


def _closed_form(
    request: Request, rows: pl.DataFrame, reading: Reading
) -> Callable[[pl.DataFrame, np.random.Generator], Interval | None] | None:
    """How the intervals of a request are worked out from the rows of an outer group; None if by replicates."""
    kinds: dict[str, Kind | None] = {
        name: _kind(formula, rows.filter(name=name)["estimator"][0], reading)
        for name, formula in request.formulas
        if (rows["name"] == name).any()
    }
    level, aggregate = reading["conf_level"], request.aggregate
    if None in kinds.values() or request.less:
        return None

    def families(part: pl.DataFrame) -> list[tuple[Quantities, int | None]]:
        found = list[tuple[Quantities, int | None]]()
        for (name, _), mine in part.group_by("name", LEVEL, maintain_order=True):
            kind = kinds[str(name)]
            at = mine["is_reference"].arg_true().to_list()
            if request.aggregate is not None and getattr(request.aggregate, "to", None) == "majority":
                at = [mine["size"].arg_max()]
            if kind is not None:
                found.append((Quantities.of(kind, mine), at[0] if at else None))
        return found

    def known(part: pl.DataFrame, random: np.random.Generator) -> Interval | None:
        if aggregate is None:
            return limits_of(families(part)[0][0], level, exact=reading["interval"] == "exact")[0]
        of_groups, references = zip(*families(part), strict=True)
        return compared(of_groups, references, aggregate, level, times=reading["times"], random=random)

    if aggregate is None:
        return known if len(kinds) == 1 and (rows[LEVEL] == NO_LEVEL).all() else None
    return known if aggregate.in_closed_form(len(request.formulas)) else None


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
    import numpy as np

    if tally.needs.anything or HIDDEN in tally.cells.columns:
        names = [request.name for request in requests]
        what = "groups of which are suppressed" if HIDDEN in tally.cells.columns else "which reads scores or numbers"
        msg = (
            f"There is no interval of {names[0]}, {what}; leave `interval=` out, or take it of the other metrics alone."
        )
        raise ArgumentError(msg)
    way: Any = "bayes" if reading["interval"] == "bayes" else "bootstrap"
    quiet: Reading = {**reading, "interval": None, "on_undefined": "ignore"}
    together: dict[tuple[object, bool], list[Request]] = {}
    for request in requests:
        together.setdefault((request.by, is_stratified(request)), []).append(request)
    tables: list[pl.DataFrame] = []
    tail = (1 - reading["conf_level"]) / 2
    for (_, stratified), mine in together.items():
        by = mine[0].by
        # of its own for each feature, so that no other metric of the call changes it
        random = np.random.default_rng([reading["seed"], zlib.crc32(f"{by and by.text} {stratified}".encode())])
        columns = by.columns if by else ()
        parts = [
            tidy(evaluated).drop_nulls(".estimate")
            for drawn in redrawn(
                tally, columns, strata=columns if stratified else (), times=reading["times"], random=random, way=way
            )
            for evaluated in evaluate_requests(drawn, mine, quiet)
        ]
        every = pl.concat(parts, how="diagonal_relaxed")
        outer = [key.column.name for key in tally.outer if key.role == "outer"]
        keys = [*outer, *(name for name in _KEYS if name in every.columns)]
        value = pl.col(".estimate")
        tables.append(
            every.group_by(keys).agg(
                value.quantile(tail, "linear").alias(".lower"), value.quantile(1 - tail, "linear").alias(".upper"),
                value.std().alias(".std_error"), pl.lit("dirichlet" if way == "bayes" else way).alias(".method"),
            )
        )  # fmt: skip
    return pl.concat(tables, how="diagonal_relaxed")


def is_stratified(request: Request) -> bool:
    """Whether the sizes of groups are fixed: not where it matters how large they are."""
    aggregate = request.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_mass)
    return request.by is not None and not shares and not any(formula.compares for _, formula in request.formulas)
