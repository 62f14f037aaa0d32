"""From a tally to tidy frames: what was asked for, evaluated for every outer group and every `by` at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

import polars as pl

from tidyfair.aggregates import CONTEXTS
from tidyfair.comparisons import NO_LEVEL, VALUED, compare
from tidyfair.errors import ArgumentError, LabelError, listed
from tidyfair.labels import AVERAGES, read_labels
from tidyfair.readings import LEVEL, ONE_LABEL, UNIT, evaluate, pool
from tidyfair.units import UNGROUPED, count_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.aggregates import Aggregate
    from tidyfair.formulas import Formula
    from tidyfair.groups import By
    from tidyfair.labels import Labels
    from tidyfair.tallies import Tally
    from tidyfair.units import Units

__all__: list[str] = []

RESERVED = frozenset(
    {".metric", ".by", ".estimator", ".threshold", ".estimate", ".lower", ".upper", ".std_error", ".method", ".n"}
    | {".status", ".group_min", ".group_max", ".level", ".groups_left_out", ".group", ".denominator", ".overall"}
    | {".truth", ".predicted", ".weight"}
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
    """One row for each request, metric, unit and, where labels are read one by one, level."""
    requests: tuple[Request, ...]
    units: Units
    labels: Labels
    estimator: str | None

    def about(self, rows: pl.DataFrame) -> dict[str, pl.Series]:
        """The columns that say what a row is about: outer keys, then `.metric`, `.by` and `.estimator`."""
        each = [
            (request.name, request.by.text if request.by else None, self._shown_estimator(request))
            for request in self.requests
        ]
        texts = pl.DataFrame(each, schema=dict.fromkeys([".metric", ".by", ".estimator"], pl.String), orient="row")
        keys = {key.name: key[rows["outer"]] for key in self.units.outer_keys if key.name != UNGROUPED}
        return keys | {text.name: text[rows["request"]] for text in texts}

    def level_text(self, rows: pl.DataFrame) -> pl.Series:
        """The label that a row is about, null for all of them."""
        texts = pl.Series(".level", [*map(str, self.labels.values), None], dtype=pl.String)
        return texts[_filled(rows[LEVEL], NO_LEVEL)]

    def _shown_estimator(self, request: Request) -> str:
        estimator = request.estimator(self.labels, self.estimator)
        own = request.formulas[0][1].over_levels
        return "multiclass" if own and estimator not in ONE_LABEL else estimator


def evaluate_requests(tally: Tally, requests: Sequence[Request], reading: Reading) -> Evaluated:
    """Work out every metric of every group, in a number of queries that does not depend on the number of groups."""
    if reading["on_undefined"] not in ON_UNDEFINED:
        raise ArgumentError.unknown("on_undefined", reading["on_undefined"], ON_UNDEFINED)
    asked = reading["estimator"]
    labels = read_labels(tally, labels=reading["labels"], pos_label=reading["pos_label"], estimator=asked)
    formulas = list(dict.fromkeys(formula for request in requests for _, formula in request.formulas))
    stepping = [name for request in requests for name, formula in request.formulas if formula.counts_steps]
    steps = bool(stepping) and labels.event is None
    if steps and not labels.in_order:
        msg = (
            f"{stepping[0]} counts how many levels truth and estimate are apart, but {listed(labels.values)} have no "
            "order: list them in order as `labels=[…]`, or make the columns Enums."
        )
        raise LabelError(msg)
    # what is not grouped comes first, so that it and the rest are two runs of units
    bys = sorted(dict.fromkeys(request.by for request in requests), key=lambda by: by is not None)
    units, events = count_units(tally, labels, bys, steps=steps)
    height = 1 if labels.event is not None else len(labels.values)
    ungrouped = units.spans[None][1] if None in units.spans else 0
    runs = {False: events[: ungrouped * height], True: events[ungrouped * height :]}
    together: dict[tuple[str, bool], list[Request]] = {}
    for request in requests:
        together.setdefault((request.estimator(labels, asked), request.by is not None), []).append(request)
    blocks: dict[tuple[str, bool, Formula], pl.DataFrame] = {}
    for (estimator, grouped), mine in together.items():
        blocks |= _blocks(runs[grouped], units, mine, formulas, estimator, grouped=grouped)
    pieces: list[pl.DataFrame] = []
    described: list[tuple[int, str, str, int]] = []
    for number, request in enumerate(requests):
        estimator, (first, size) = request.estimator(labels, asked), units.spans[request.by]
        for name, formula in request.formulas:
            block = blocks[estimator, request.by is not None, formula]
            tall = height if estimator in ONE_LABEL else 1
            pieces.append(block.slice((first - ungrouped * (request.by is not None)) * tall, size * tall))
            described.append((number, name, estimator, request.min_n))
    rows = pl.concat(pieces, how="diagonal" if len({tuple(piece.columns) for piece in pieces}) > 1 else "vertical")
    piece = pl.concat(
        [pl.Series([place], dtype=pl.Int32).new_from_index(0, len(each)) for place, each in enumerate(pieces)]
    )
    schema = {"request": pl.Int32, "name": pl.String, "estimator": pl.String, "min_n": pl.Int64}
    rows = rows.hstack([column[piece] for column in pl.DataFrame(described, schema=schema, orient="row")])
    return Evaluated(_mark(rows, units, requests, na_rm=reading["na_rm"]), tuple(requests), units, labels, asked)


def _blocks(
    events: pl.DataFrame,
    units: Units,
    requests: list[Request],
    formulas: list[Formula],
    estimator: str,
    *,
    grouped: bool,
) -> dict[tuple[str, bool, Formula], pl.DataFrame]:
    """The values of the formulas of some requests, beside those of the contexts they ask for."""
    wanted = {formulas.index(formula): formula for request in requests for _, formula in request.formulas}
    values = evaluate(events, wanted, estimator)
    asked = {context for request in requests if request.aggregate for context in request.aggregate.contexts}
    if asked:
        unit = events[UNIT]
        sizes = enumerate(size for _, size in units.spans.values())
        by = pl.concat([pl.Series([place], dtype=pl.Int32).new_from_index(0, size) for place, size in sizes])
        for context in CONTEXTS:
            if context not in asked:
                continue
            pooled = pool(events, [units.outer[unit], by[unit]], units.apart[unit], context)
            values = values.hstack([evaluate(pooled, wanted, estimator)["estimate"].alias(context)])
    # evaluate() puts formulas with a form of their own first
    order = sorted(wanted, key=lambda key: not wanted[key].over_levels)
    height = len(values) // len(order)
    return {
        (estimator, grouped, wanted[key]): values[place * height : (place + 1) * height]
        for place, key in enumerate(order)
    }


def _mark(rows: pl.DataFrame, units: Units, requests: Sequence[Request], *, na_rm: bool) -> pl.DataFrame:
    """The state of each value; groups that are not compared taken out, those others are compared with marked."""
    unit = rows[UNIT]
    rows = rows.hstack(
        [units.outer[unit].alias("outer"), units.text[unit].alias("text"), units.apart[unit].alias("apart")]
    )
    references = [
        (number, place, True)
        for number, request in enumerate(requests)
        if request.by is not None and request.aggregate is not None and request.aggregate.reference is not None
        for place in units.find(request.by, request.aggregate.reference, request.name)
    ]
    if references:
        schema = {"request": pl.Int32, UNIT: pl.Int32, "is_reference": pl.Boolean}
        chosen = pl.DataFrame(references, schema=schema, orient="row")
        rows = rows.join(chosen, on=["request", UNIT], how="left", maintain_order="left")
    status = (
        pl.when("apart").then(pl.lit("left_out"))
        .when((pl.col("rows") > pl.col("n")) & (not na_rm)).then(pl.lit("missing_values"))
        .when(pl.col("denominator") < pl.col("min_n")).then(pl.lit("below_min_n"))
        .when(pl.col("estimate").is_null()).then(pl.lit("zero_denominator"))
        .when(pl.col("estimate").is_infinite()).then(pl.lit("infinite"))
        .when("levels_left_out").then(pl.lit("levels_left_out"))
        .otherwise(pl.lit("ok"))
    )  # fmt: skip
    return rows.with_columns(
        status.alias("status"),
        pl.when(status.is_in(VALUED)).then("estimate").alias("estimate"),
        pl.when(~pl.col("apart")).then("size").alias("size"),
        (pl.col("is_reference").fill_null(value=False) if references else pl.lit(value=False)).alias("is_reference"),
        pl.when(estimator="one_vs_rest").then(LEVEL).otherwise(NO_LEVEL).alias(LEVEL),
    )


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool) -> pl.DataFrame:
    """One row for each request and outer group, with all that explains it."""
    requests, rows = evaluated.requests, evaluated.rows
    aggregates = {number: request.aggregate for number, request in enumerate(requests) if request.aggregate is not None}
    grouped = pl.col("request").is_in(list(aggregates))
    found = [rows.filter(~grouped).select("request", "outer", pl.col("estimate").alias("value"), "status", "n")]
    if aggregates:

        def tidy(number: int, part: pl.DataFrame) -> tuple[str, pl.DataFrame]:
            return requests[number].name, _tidy_group_frame(evaluated, requests[number], part)

        groups = rows.filter(grouped)
        compared = compare(groups, aggregates, undefined_is_null=undefined_is_null, tidy=tidy)
        out = groups.filter(~pl.col("status").is_in(VALUED))
        if not out.is_empty():
            texts = pl.col("text").sort_by(UNIT).unique(maintain_order=True).alias("left_out")
            compared = compared.join(out.group_by("request", "outer").agg(texts), on=["request", "outer"], how="left")
        found.append(compared)
    every = pl.concat(found, how="diagonal")
    if len(every) < len(requests) * len(evaluated.units.outer_keys):
        # without rows there is no group to compare, but there is an answer
        numbers, outers = (
            pl.DataFrame({name: range(size)}, schema={name: pl.Int32})
            for name, size in (("request", len(requests)), ("outer", len(evaluated.units.outer_keys)))
        )
        every = numbers.join(outers, how="cross").join(every, on=["request", "outer"], how="left")
    every = every.sort("request", "outer")
    absent = {"low": pl.String, "high": pl.String, LEVEL: pl.Int32, "left_out": pl.List(pl.String)}
    every = every.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in absent.items() if name not in every.columns
    )
    return pl.DataFrame(
        {
            **evaluated.about(every), ".estimate": every["value"],
            ".n": _filled(every["n"], 0), ".status": _filled(every["status"], "no_groups"),
            ".group_min": every["low"], ".group_max": every["high"], ".level": evaluated.level_text(every),
            ".groups_left_out": _filled(every["left_out"], []),
        }
    )  # fmt: skip


def _filled(column: pl.Series, value: object) -> pl.Series:
    return column.fill_null(value) if column.null_count() else column


EXPLANATION = (".n", ".status", ".group_min", ".group_max", ".level", ".groups_left_out")
"""The columns of `tidy_results` that are shown when asked for."""


def tidy_groups(evaluated: Evaluated) -> pl.DataFrame:
    """The values that disparities are made of, each once, and those of ordinary metrics."""
    rows = evaluated.rows.unique(["name", "estimator", "min_n", UNIT, LEVEL], keep="first", maintain_order=True)
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
    place = rows[UNIT] - evaluated.units.spans[by][0]
    keys = evaluated.units.keys[by]
    return pl.DataFrame({column.name: key[place] for column, key in zip(by.columns, keys, strict=True)} | ours)


def complaints(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """What a reader should be told once: which metric has no value, and where."""
    reasons = {
        "zero_denominator": "has no value (zero denominator)",
        "levels_left_out": "is an average without the labels that have no value",
    }
    said: list[str] = []
    if (evaluated.rows["status"] != "ok").any():
        said += _places(evaluated, reasons)
    if (results[".status"] == "zero_denominator").any():
        ratios = results.filter(pl.col(".by").is_not_null() & (pl.col(".status") == "zero_denominator"))
        pairs = ratios.select(".metric", ".by").unique(maintain_order=True).rows()
        said += [f"{name} by {by} is 0/0" for name, by in pairs]
    return said


def _places(evaluated: Evaluated, reasons: dict[str, str]) -> list[str]:
    """Which metrics are in one of the states, and in which groups."""
    rows = evaluated.rows.filter(pl.col("status").is_in(list(reasons)))
    said: list[str] = []
    by = evaluated.about(rows)[".by"]
    for (name, text, status), part in rows.with_columns(by).group_by("name", ".by", "status", maintain_order=True):
        places = part.unique(UNIT, maintain_order=True)
        shown = [
            " ".join(
                filter(None, [f"{text} {group!r}" if text else "", _outer_text(evaluated.units.outer_keys, outer)])
            )
            for group, outer in places.head(_SHOWN).select("text", "outer").rows()
        ]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said.append(f"{name} {reasons[str(status)]}{' in ' if any(shown) else ''}{', '.join(shown)}{more}")
    return said


def _outer_text(outer: pl.DataFrame, place: int) -> str:
    keys = ", ".join(f"{name}={value!r}" for name, value in outer.row(place, named=True).items() if name != UNGROUPED)
    return f"({keys})" if keys else ""
