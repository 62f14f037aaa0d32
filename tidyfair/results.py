"""From a tally to tidy frames: what was asked for, evaluated for every outer group and every `by` at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict

import polars as pl

from tidyfair.comparisons import NO_LEVEL, VALUED, compare
from tidyfair.errors import AggregateError, ArgumentError, listed, nearest
from tidyfair.groups import SIDES
from tidyfair.labels import AVERAGES, read_labels
from tidyfair.readings import LEVEL, ONE_LABEL, count_events, evaluate, pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.aggregates import Aggregate
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
    """One row for each request, outer group, group, label and metric, in this order."""
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
        keys = {key.name: key.gather(rows["outer"]) for key in self.outer if key.name}
        return keys | {text.name: text.gather(rows["request"]) for text in texts}

    def level_text(self, rows: pl.DataFrame) -> pl.Series:
        """The label that a row is about, null for all of them."""
        texts = pl.Series(".level", [*map(str, self.labels.values), None], dtype=pl.String)
        return texts.gather(rows[LEVEL].replace({NO_LEVEL: len(texts) - 1, None: len(texts) - 1}))

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
    bys = {by: index for index, by in enumerate(dict.fromkeys([None, *(request.by for request in requests)]))}
    formulas = list(dict.fromkeys(formula for request in requests for _, formula in request.formulas))
    wanted = pl.DataFrame(
        [
            (number, bys[request.by], request.estimator(labels, asked), formulas.index(formula), name, request.min_n)
            for number, request in enumerate(requests)
            for name, formula in request.formulas
        ],
        schema={
            "request": pl.Int32, "by": pl.Int32, "estimator": pl.String,
            "metric": pl.Int32, "name": pl.String, "min_n": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    cells, groups, outer, features = _code(tally, labels, list(bys))
    levels = range(len(labels.values)) if labels.event is None else [labels.event]
    steps = any("absolute_steps" in formula.statistics for formula in formulas)
    table = count_events(cells, levels, steps=steps).join(groups, on=["by", "group"], maintain_order="left")
    contexts = sorted({context for request in requests if request.aggregate for context in request.aggregate.contexts})
    found: list[pl.DataFrame] = []
    for (estimator, grouped), part in wanted.group_by("estimator", pl.col("by") > 0, maintain_order=True):
        mine = {key: formulas[key] for key in part["metric"].unique(maintain_order=True)}
        some = table.filter(pl.col("by").is_in(part["by"].unique().to_list()))
        inside, outside = (some.filter(each).drop("text", "apart") for each in (~pl.col("apart"), pl.col("apart")))
        values = evaluate(inside, mine, str(estimator), na_rm=reading["na_rm"])
        for context in contexts if grouped else []:
            pooled = evaluate(pool(inside, context), mine, str(estimator), na_rm=True)["estimate"]
            values = values.with_columns(pooled.alias(context))
        if not outside.is_empty():
            values = pl.concat([values, evaluate(outside, mine, str(estimator), na_rm=True)], how="diagonal")
        found.append(values.with_columns(pl.lit(estimator).alias("estimator")))
    rows = wanted.join(pl.concat(found, how="diagonal"), on=["by", "estimator", "metric"], maintain_order="left")
    rows = rows.join(groups, on=["by", "group"], how="left", maintain_order="left")
    return Evaluated(_mark(rows, requests, features), tuple(requests), outer, features, labels, asked)


def _code(
    tally: Tally, labels: Labels, bys: Sequence[By | None]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, dict[By, pl.DataFrame]]:
    """Places instead of keys and labels: the cells once for each `by`, its groups, the outer keys and the group keys."""
    cells = labels.encode(tally)
    names = {key.column.name: name for key, name in zip(tally.outer, tally.names([key.column for key in tally.outer]), strict=True)}
    place, outer = pl.zeros(len(cells), pl.Int32, eager=True), pl.DataFrame({"": [0]})
    if names:
        place, outer = _places(cells.select(pl.col(name).alias(shown) for shown, name in names.items()))
    coded = cells.select(place.alias("outer"), "truth", "estimate", *(name for name in ("n", "w") if name in cells.columns))
    if not names and coded.is_empty():
        # without rows there still is the one outer group of everything
        coded = pl.DataFrame({name: [0 if name in {"outer", "n", "w"} else None] for name in coded.columns}, schema=coded.schema)
    parts, groups = list[pl.DataFrame](), list[pl.DataFrame]()
    features: dict[By, pl.DataFrame] = {}
    for index, by in enumerate(bys):
        if by is None:
            group, text, apart = pl.lit(0, pl.Int32), pl.Series([None], dtype=pl.String), pl.Series([False])
            parts.append(coded.with_columns(pl.lit(index, pl.Int32).alias("by"), group.alias("group")))
        else:
            own = tally.names(by.columns)
            keys = cells.select(own) if by.sides is None else by.sides.side(cells, own).to_frame()
            place, features[by] = _places(keys)
            text = features[by].select(pl.concat_str(pl.all().cast(pl.String).fill_null("null"), separator=":")).to_series()
            apart = text == "neither" if by.sides else pl.repeat(value=False, n=len(text), eager=True)
            if not cells.is_empty():
                parts.append(coded.with_columns(pl.lit(index, pl.Int32).alias("by"), place.alias("group")))
        groups.append(pl.select(by=pl.lit(index, pl.Int32), group=pl.int_range(len(text), dtype=pl.Int32), text=text, apart=apart))
    return pl.concat(parts), pl.concat(groups), outer, features


def _places(keys: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """The place of each row among the distinct rows, which come in order and null last."""
    distinct = keys.unique().sort(keys.columns, nulls_last=True)
    numbered = distinct.with_row_index("\0place")
    placed = keys.join(numbered, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")
    return placed["\0place"].cast(pl.Int32), distinct


def _mark(rows: pl.DataFrame, requests: Sequence[Request], features: dict[By, pl.DataFrame]) -> pl.DataFrame:
    """Take out the groups that are not compared, and mark those that others are compared with."""
    references = [
        (number, place)
        for number, request in enumerate(requests)
        if request.by is not None and request.aggregate is not None and request.aggregate.reference is not None
        for place in _find(request.aggregate.reference, features[request.by], request)
    ]
    chosen = pl.DataFrame(references, schema={"request": pl.Int32, "group": pl.Int32}, orient="row")
    marked = rows.join(chosen.with_columns(is_reference=True), on=["request", "group"], how="left", maintain_order="left")
    small = pl.col("denominator") < pl.col("min_n")
    return marked.with_columns(
        pl.when("apart").then(pl.lit("left_out")).when(small).then(pl.lit("below_min_n")).otherwise("status").alias("status"),
        pl.when(~(pl.col("apart") | small)).then("estimate").alias("estimate"),
        pl.col("is_reference").fill_null(value=False),
        pl.when(estimator="one_vs_rest").then(LEVEL).otherwise(NO_LEVEL).alias(LEVEL),
    )


def _find(reference: object, keys: pl.DataFrame, request: Request) -> list[int]:
    """The place of the group that a user named by its value, its values or its text."""
    texts = keys.select(pl.concat_str(pl.all().cast(pl.String).fill_null("null"), separator=":")).to_series().to_list()
    wanted = reference if isinstance(reference, tuple) else (reference,)
    places = [place for place, values in enumerate(keys.iter_rows()) if values == wanted]
    places = places or [place for place, text in enumerate(texts) if text == reference]
    if len(places) == 1 or not texts or (request.by and request.by.sides):
        return places
    shown = reference if isinstance(reference, str) else wanted
    problem = "names several groups; give a tuple of values." if places else f"is no group.{nearest(shown, texts)}"
    msg = f"{request.name}: `to={shown!r}` {problem} The groups: {listed(texts)}."
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
        out = rows.filter(grouped, ~pl.col("status").is_in(VALUED)).sort("group")
        left_out = out.group_by("request", "outer").agg(pl.col("text").unique(maintain_order=True).alias("left_out"))
        found.append(compared.join(left_out, on=["request", "outer"], how="left"))
    outers = pl.select(outer=pl.int_range(len(evaluated.outer), dtype=pl.Int32))
    every = pl.select(request=pl.int_range(len(requests), dtype=pl.Int32)).join(outers, how="cross", maintain_order="left_right")
    every = every.join(pl.concat(found, how="diagonal"), on=["request", "outer"], how="left", maintain_order="left")
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
    same = ["name", "by", "estimator", "min_n"]
    first = evaluated.rows.select("request", *same).unique(maintain_order=True).unique(same, keep="first", maintain_order=True)
    rows = evaluated.rows.join(first, on=["request", *same], how="semi", maintain_order="left")
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
    keys = evaluated.features[by] if by else pl.DataFrame()
    names = [column.name for column in by.columns] if by and not by.sides else []
    return pl.DataFrame({name: key.gather(rows["group"]) for name, key in zip(names, keys, strict=False)} | ours)


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
        places = part.unique(["outer", "group"], maintain_order=True)
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
