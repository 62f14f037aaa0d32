"""From a tally to tidy frames: what was asked for, evaluated for every outer group and every `by` at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

import polars as pl

from tidyfair.comparisons import NO_LEVEL, VALUED, compare
from tidyfair.errors import AggregateError, ArgumentError, listed, nearest
from tidyfair.groups import SIDES
from tidyfair.labels import AVERAGES, read_labels
from tidyfair.readings import LEVEL, ONE_LABEL, UNIT, add_statistics, count_cells, evaluate, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.aggregates import Aggregate, Context
    from tidyfair.formulas import Formula
    from tidyfair.groups import By
    from tidyfair.labels import Labels
    from tidyfair.tallies import Tally

__all__: list[str] = []

RESERVED = frozenset(
    {".metric", ".by", ".estimator", ".threshold", ".estimate", ".lower", ".upper", ".std_error", ".method", ".n"}
    | {".status", ".group_min", ".group_max", ".level", ".groups_left_out", ".group", ".denominator", ".overall"}
)
"""Names of the columns of results, which no outer key may have."""

ON_UNDEFINED = ("warn", "ignore", "null", "raise")
_SHOWN = 10


class Reading(TypedDict):
    """What decides how a tally is read."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Literal["binary", "macro", "macro_weighted", "micro", "one_vs_rest"] | None
    na_rm: bool
    on_undefined: Literal["warn", "ignore", "null", "raise"]


@dataclass(frozen=True)
class Request:
    """One metric to report: formulas by name and, for a groupwise metric, what is compared and how."""

    name: str
    formulas: tuple[tuple[str, Formula], ...]
    by: By | None = None
    aggregate: Aggregate | None = None
    min_n: int = 0
    label_by_label: bool = False
    """Whether more than two labels are compared one against the rest unless asked otherwise."""

    def estimator(self, labels: Labels, asked: str | None) -> str:
        """How its labels are read."""
        if labels.event is not None:
            return "binary"
        if self.by is None:
            return asked if asked in AVERAGES else "macro"
        return asked or ("one_vs_rest" if self.label_by_label else "macro")


@dataclass(frozen=True)
class Evaluated:
    """The values of all requests for each group: what tables, disparities and warnings are made from."""

    rows: pl.DataFrame
    """One row for each request, metric, label and unit, in this order."""
    requests: tuple[Request, ...]
    outer: pl.DataFrame
    """The keys of the outer groups; a single row without a name where the data are not grouped."""
    features: dict[By, pl.DataFrame]
    """The keys of the groups of each `by`."""
    labels: Labels
    estimator: str | None

    def about(self, rows: pl.DataFrame) -> dict[str, pl.Series]:
        """The columns that say what a row is about: outer keys, then `.metric`, `.by` and `.estimator`."""
        each = [
            (request.name, request.by.text if request.by else None, self._shown_estimator(request))
            for request in self.requests
        ]
        texts = pl.DataFrame(each, schema=dict.fromkeys([".metric", ".by", ".estimator"], pl.String), orient="row")
        keys = {key.name: key[rows["outer"]] for key in self.outer if key.name}
        return keys | {text.name: text[rows["request"]] for text in texts}

    def level_text(self, rows: pl.DataFrame) -> pl.Series:
        """The label that a row is about, null for all of them."""
        texts = pl.Series(".level", [*map(str, self.labels.values), None], dtype=pl.String)
        return texts[rows[LEVEL].fill_null(NO_LEVEL)]

    def _shown_estimator(self, request: Request) -> str:
        estimator = request.estimator(self.labels, self.estimator)
        own = request.formulas[0][1].over_levels
        return "multiclass" if own and estimator not in ONE_LABEL else estimator


def evaluate_requests(tally: Tally, requests: Sequence[Request], reading: Reading) -> Evaluated:
    """Work out every metric of every group, in a number of queries that does not depend on how many there are."""
    if reading["on_undefined"] not in ON_UNDEFINED:
        raise ArgumentError.unknown("on_undefined", reading["on_undefined"], ON_UNDEFINED)
    asked = reading["estimator"]
    labels = read_labels(tally, labels=reading["labels"], pos_label=reading["pos_label"], estimator=asked)
    formulas = list(dict.fromkeys(formula for request in requests for _, formula in request.formulas))
    steps = any("absolute_steps" in formula.statistics for formula in formulas)
    bys = dict.fromkeys(request.by for request in requests)
    events, units, outer, features = _count_units(tally, labels, list(bys), steps=steps)
    place = {by: index for index, by in enumerate(bys)}
    wanted: dict[tuple[str, bool], list[tuple[Request, int]]] = {}
    for number, request in enumerate(requests):
        wanted.setdefault((request.estimator(labels, asked), request.by is not None), []).append((request, number))
    found: list[pl.DataFrame] = []
    for (estimator, grouped), mine in wanted.items():
        metrics = {formulas.index(formula): formula for request, _ in mine for _, formula in request.formulas}
        some = events.filter(pl.Series([by in {request.by for request, _ in mine} for by in place])[units["by"]][events[UNIT]])
        contexts = {name for request, _ in mine if request.aggregate for name in request.aggregate.contexts}
        values = _evaluate(some, units, metrics, estimator, sorted(contexts) if grouped else [], na_rm=reading["na_rm"])
        level = pl.col(LEVEL) if estimator == "one_vs_rest" else pl.lit(NO_LEVEL, pl.Int32).alias(LEVEL)
        values = values.with_columns(units["by"][values[UNIT]], pl.lit(estimator).alias("estimator"), level)
        asking = [
            (number, place[request.by], formulas.index(formula), name, request.min_n)
            for request, number in mine
            for name, formula in request.formulas
        ]
        schema = {"request": pl.Int32, "by": pl.Int32, "metric": pl.Int32, "name": pl.String, "min_n": pl.Int64}
        asked_for = pl.DataFrame(asking, schema=schema, orient="row")
        found.append(asked_for.join(values, on=["by", "metric"], maintain_order="left_right"))
    rows = pl.concat(found, how="diagonal").sort("request", maintain_order=True)
    return Evaluated(_mark(rows, units, requests, features), tuple(requests), outer, features, labels, asked)


def _count_units(
    tally: Tally, labels: Labels, bys: Sequence[By | None], *, steps: bool
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, dict[By, pl.DataFrame]]:
    """Events of every unit; the units (`by`, `outer`, `text`, `apart`); the outer keys; the keys of each `by`'s units."""
    cells = labels.encode(tally)
    place, outer = _outer_groups(tally)
    cells = cells.with_columns(place)
    levels = range(len(labels.values)) if labels.event is None else [labels.event]
    events, units = list[pl.DataFrame](), list[pl.DataFrame]()
    features: dict[By, pl.DataFrame] = {}
    first = 0
    for index, by in enumerate(bys):
        counted, own = cells, tally.names(by.columns) if by else []
        if by and by.sides:
            counted, own = cells.with_columns(by.sides.side(cells, own).alias("side")), ["side"]
        if not by and not tally.outer and cells.is_empty():
            # without rows there still is the one group of everything
            nobody = {name: [0 if name in {"outer", "n", "w"} else None] for name in cells.columns}
            counted = pl.DataFrame(nobody, schema=cells.schema)
        keys, table = count_cells(counted, ["outer", *own], levels, steps=steps)
        text, apart = pl.lit(None, pl.String), pl.lit(value=False)
        if by:
            features[by] = keys.select(own).insert_column(0, pl.Series(UNIT, range(first, first + len(keys)), pl.Int32))
            text = pl.concat_str([pl.col(name).cast(pl.String).fill_null("null") for name in own], separator=":")
            apart = pl.col("side") == "neither" if by.sides else apart
        units.append(keys.select(pl.lit(index, pl.Int32).alias("by"), "outer", text.alias("text"), apart.alias("apart")))
        events.append(table.with_columns(pl.col(UNIT) + first))
        first += len(keys)
    return add_statistics(pl.concat(events)), pl.concat(units), outer, features


def _outer_groups(tally: Tally) -> tuple[pl.Series, pl.DataFrame]:
    """The place of each cell's outer group among the distinct ones, in order and null last; and these."""
    names = tally.names([key.column for key in tally.outer])
    if not names:
        return pl.Series("outer", [0], dtype=pl.Int32).new_from_index(0, len(tally.cells)), pl.DataFrame({"": [0]})
    keys = tally.cells[names]
    distinct = keys.unique().sort(names, nulls_last=True)
    placed = keys.join(distinct.with_row_index("outer"), on=names, how="left", nulls_equal=True, maintain_order="left")
    return placed["outer"].cast(pl.Int32), distinct.rename(dict(zip(names, (key.column.name for key in tally.outer), strict=True)))


def _evaluate(
    events: pl.DataFrame, units: pl.DataFrame, metrics: dict[int, Formula], estimator: str, contexts: list[Context], *, na_rm: bool
) -> pl.DataFrame:
    """Values of every unit, beside those of the contexts; units that are not compared are in no context."""
    apart = units["apart"][events[UNIT]]
    inside = events.filter(~apart) if apart.any() else events
    values = evaluate(inside, metrics, estimator, na_rm=na_rm)
    pooled = [
        evaluate(pool(inside, units, context), metrics, estimator, na_rm=True)["estimate"].alias(context)
        for context in contexts
    ]
    values = values.with_columns(pooled)
    if apart.any():
        outside = evaluate(events.filter(apart), metrics, estimator, na_rm=True)
        values = pl.concat([values, outside], how="diagonal").sort("metric", UNIT, LEVEL, maintain_order=True)
    return values


def _mark(
    rows: pl.DataFrame, units: pl.DataFrame, requests: Sequence[Request], features: dict[By, pl.DataFrame]
) -> pl.DataFrame:
    """Take out the groups that are not compared, and mark those that others are compared with."""
    references = [
        (number, unit)
        for number, request in enumerate(requests)
        if request.by is not None and request.aggregate is not None and request.aggregate.reference is not None
        for unit in _find(request.aggregate.reference, features[request.by], units, request)
    ]
    marked = rows.with_columns(units[name][rows[UNIT]] for name in ("outer", "text", "apart"))
    if references:
        chosen = pl.DataFrame(references, schema={"request": pl.Int32, UNIT: pl.Int32}, orient="row").with_columns(is_reference=True)
        marked = marked.join(chosen, on=["request", UNIT], how="left", maintain_order="left")
    else:
        marked = marked.with_columns(is_reference=None)
    small = pl.col("denominator") < pl.col("min_n")
    return marked.with_columns(
        pl.when("apart").then(pl.lit("left_out")).when(small).then(pl.lit("below_min_n")).otherwise("status").alias("status"),
        pl.when(~(pl.col("apart") | small)).then("estimate").alias("estimate"),
        pl.when(~pl.col("apart")).then("size").alias("size"),
        pl.col("is_reference").fill_null(value=False),
    )


def _find(reference: object, keys: pl.DataFrame, units: pl.DataFrame, request: Request) -> list[int]:
    """The units of the group that a user named by its value, its values or its text."""
    wanted = reference if isinstance(reference, tuple) else (reference,)
    found = {unit: tuple(values) for unit, *values in keys.iter_rows()}
    chosen = [unit for unit, values in found.items() if values == wanted]
    texts = dict(zip(found, units["text"][keys[UNIT]], strict=True))
    chosen = chosen or [unit for unit, text in texts.items() if text == reference]
    if (chosen and len({found[unit] for unit in chosen}) == 1) or not found or (request.by and request.by.sides):
        return chosen
    shown = reference if isinstance(reference, str) else wanted
    several = sorted(set(texts.values()))
    problem = "names several groups; give a tuple of values." if chosen else f"is no group.{nearest(shown, several)}"
    msg = f"{request.name}: `to={shown!r}` {problem} The groups: {listed(several)}."
    raise AggregateError(msg)


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool) -> pl.DataFrame:
    """One row for each request and outer group, with all that explains it."""
    requests, rows = evaluated.requests, evaluated.rows
    aggregates = {number: request.aggregate for number, request in enumerate(requests) if request.aggregate is not None}
    grouped = pl.col("request").is_in(list(aggregates))
    found = [rows.filter(~grouped).select("request", "outer", pl.col("estimate").alias("value"), "status", "n")]
    if aggregates:

        def tidy(number: int, part: pl.DataFrame) -> tuple[str, pl.DataFrame]:
            return requests[number].name, _tidy_group_frame(evaluated, requests[number], part)

        compared = compare(rows.filter(grouped), aggregates, undefined_is_null=undefined_is_null, tidy=tidy)
        out = rows.filter(grouped & ~pl.col("status").is_in(VALUED))
        if not out.is_empty():
            texts = pl.col("text").sort_by(UNIT).unique(maintain_order=True).alias("left_out")
            compared = compared.join(out.group_by("request", "outer").agg(texts), on=["request", "outer"], how="left")
        found.append(compared)
    every = pl.concat(found, how="diagonal")
    if len(every) < len(requests) * len(evaluated.outer):
        # without rows there is no group to compare, but there is an answer
        numbers, outers = (pl.DataFrame({name: range(size)}, schema={name: pl.Int32}) for name, size in (("request", len(requests)), ("outer", len(evaluated.outer))))
        every = numbers.join(outers, how="cross").join(every, on=["request", "outer"], how="left")
    every = every.sort("request", "outer")
    absent = {"low": pl.String, "high": pl.String, LEVEL: pl.Int32, "left_out": pl.List(pl.String)}
    every = every.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in absent.items() if name not in every.columns)
    return pl.DataFrame(
        {
            **evaluated.about(every), ".estimate": every["value"],
            ".n": every["n"].fill_null(0), ".status": every["status"].fill_null("no_groups"),
            ".group_min": every["low"], ".group_max": every["high"], ".level": evaluated.level_text(every),
            ".groups_left_out": every["left_out"].fill_null([]),
        }
    )  # fmt: skip


EXPLANATION = (".n", ".status", ".group_min", ".group_max", ".level", ".groups_left_out")
"""The columns of `tidy_results` that are shown when asked for."""


def tidy_groups(evaluated: Evaluated) -> pl.DataFrame:
    """The values that disparities are made of, each once, and those of ordinary metrics."""
    once = ["name", "by", "min_n"]
    first = evaluated.rows.select("request", *once).unique(maintain_order=True).unique(once, keep="first", maintain_order=True)
    rows = evaluated.rows.join(first, on=["request", *once], how="semi", maintain_order="left")
    about = evaluated.about(rows) | {".metric": rows["name"]}
    estimator = about.pop(".estimator")
    level = {".level": evaluated.level_text(rows)} if evaluated.labels.event is None else {}
    return pl.DataFrame(
        {
            **about, ".group": rows["text"], **level, ".estimator": estimator, ".estimate": rows["estimate"],
            ".n": rows["n"], ".denominator": rows["denominator"], ".status": rows["status"],
        }
    )  # fmt: skip


def _tidy_group_frame(evaluated: Evaluated, request: Request, rows: pl.DataFrame) -> pl.DataFrame:
    """What a user's aggregate sees: one row for each group and metric, its keys under their own names."""
    ours = {
        ".group": rows["text"], ".metric": rows["name"], ".estimator": rows["estimator"], ".estimate": rows["estimate"],
        ".n": rows["n"], ".denominator": rows["denominator"], ".overall": rows["overall"],
    }  # fmt: skip
    by = request.by
    if by is None or by.sides:
        return pl.DataFrame(ours)
    unit, *keys = evaluated.features[by]
    place = rows[UNIT] - unit[0]
    return pl.DataFrame({column.name: key[place] for column, key in zip(by.columns, keys, strict=True)} | ours)


def complaints(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """What a reader should be told once: which metric has no value, and where."""
    reasons = {
        "zero_denominator": "has no value (zero denominator)",
        "levels_left_out": "is an average without the labels that have no value",
    }
    rows = evaluated.rows.filter(pl.col("status").is_in(list(reasons)))
    said: list[str] = []
    for (name, by, status), part in rows.group_by("name", "by", "status", maintain_order=True):
        del by
        places = part.unique(UNIT, maintain_order=True)
        text = evaluated.about(places)[".by"][0]
        shown = [
            " ".join(filter(None, [f"{text} {group!r}" if text else "", _outer_text(evaluated.outer, outer)]))
            for group, outer in places.head(_SHOWN).select("text", "outer").rows()
        ]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said.append(f"{name} {reasons[str(status)]}{' in ' if any(shown) else ''}{', '.join(shown)}{more}")
    ratios = results.filter(pl.col(".by").is_not_null() & (pl.col(".status") == "zero_denominator"))
    said += [f"{name} by {by} is 0/0" for name, by in ratios.select(".metric", ".by").unique(maintain_order=True).rows()]
    return said


def _outer_text(outer: pl.DataFrame, place: int) -> str:
    keys = ", ".join(f"{name}={value!r}" for name, value in outer.row(place, named=True).items() if name)
    return f"({keys})" if keys else ""
