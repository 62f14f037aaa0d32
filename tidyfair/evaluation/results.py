"""From values to tidy frames: results, the values of groups, and what a reader should be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.evaluation.disparities import COMPARED, PART, STATED, VALUED, compare
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.statistics import ERROR, LEVEL, UNIT
from tidyfair.tallies.tally import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.evaluation.disparities import Tidy
    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.options import Request

__all__: list[str] = []

_SHOWN = 10
_ABSENT = {"low": pl.String, "high": pl.String, LEVEL: pl.Int32, "name": pl.String}
_NAMES = pl.List(pl.String)
_OWN = [
    pl.col("estimate").alias("value"), *(pl.lit(None, dtype).alias(name) for name, dtype in _ABSENT.items()),
    pl.lit([], _NAMES).alias("metrics_left_out"),
]  # fmt: skip
"""What a value that is not compared has in place of a disparity's."""


def tidy_results(evaluated: Evaluated, *, undefined_is_null: bool) -> pl.DataFrame:
    """One row for each request and outer group, with all that explains it."""
    requests, rows, outer = evaluated.requests, evaluated.rows, len(evaluated.units.outer_keys)
    aggregates = {number: request.aggregate for number, request in enumerate(requests) if request.aggregate is not None}
    grouped, together, errors = pl.col("request").is_in(list(aggregates)), ["request", "outer"], _errors(rows)
    plan = rows.lazy().filter(~grouped).with_columns(_OWN).select(*COMPARED, *errors)
    if aggregates:
        groups, tidy = rows.lazy().filter(grouped), frames_of(evaluated)
        two_sided = [number for number, request in enumerate(requests) if request.by and request.by.sides]
        found = compare(rows, aggregates, two_sided=two_sided, undefined_is_null=undefined_is_null, tidy=tidy)
        compared = found.lazy()
        if errors:
            factors = {number: each.error_factor for number, each in aggregates.items()}
            compared = compared.join(_error_bounds(groups, factors), on=together, how="left")
        plan = pl.concat([plan, compared])
        if (rows["status"] != "ok").any():
            texts = pl.col("text").sort_by(UNIT).unique(maintain_order=True).alias("left_out")
            out = groups.filter(~pl.col("status").is_in(VALUED)).group_by(together).agg(texts)
            plan = plan.join(out, on=together, how="left").with_columns(pl.col("left_out").fill_null([]))
    every = plan.sort(together).collect(engine="in-memory")
    if len(every) < len(requests) * outer:
        # without rows there is no group to compare, but there is an answer
        numbers, outers = (
            pl.DataFrame({name: range(size)}, schema={name: pl.Int32})
            for name, size in zip(together, (len(requests), outer), strict=True)
        )
        every = numbers.join(outers, how="cross").join(every, on=together, how="left").sort(together)
    several = [number for number, request in enumerate(requests) if request.several]
    worst = every["name"].set(~every["request"].is_in(several), None)
    nobody = pl.Series([[]], dtype=_NAMES).new_from_index(0, len(every))
    return pl.DataFrame(
        {
            **evaluated.about(every), ".estimate": every["value"], **_error_bound(every, "value"),
            ".n": _filled(every["n"], 0), ".status": _filled(every["status"], "no_groups"),
            ".group_min": every["low"], ".group_max": every["high"], ".level": evaluated.level_text(every),
            ".base_metric": worst, ".metrics_left_out": _filled(every["metrics_left_out"], []),
            ".groups_left_out": _filled(every["left_out"], []) if "left_out" in every.columns else nobody,
        }
    )  # fmt: skip


def _errors(rows: pl.DataFrame) -> list[str]:
    """The column of how far off values can be, where there is one."""
    return [ERROR] if ERROR in rows.columns else []


def _error_bound(rows: pl.DataFrame, value: str) -> dict[str, pl.Series]:
    """The column that shows how far off values can be, of those that there are."""
    return {".error_bound": rows[ERROR].set(rows[value].is_null(), None)} if _errors(rows) else {}


def _error_bounds(groups: pl.LazyFrame, factors: Mapping[int, float | None]) -> pl.LazyFrame:
    """How far off comparisons can be, by how far off the values of the groups can be."""
    factor = pl.col("request").replace_strict(factors, return_dtype=pl.Float64)
    valued = groups.filter(pl.col("estimate").is_not_null())
    largest = pl.col(ERROR).max()
    # what is made of exact values is exact, whatever it is
    bound = pl.when(largest == 0).then(0.0).otherwise(largest * factor.first()).alias(ERROR)
    parts = valued.group_by("request", "outer", PART).agg(bound)
    # what is subtracted is off by as much on top
    return parts.group_by("request", "outer").agg(pl.when(pl.col(ERROR).is_not_null().all()).then(pl.col(ERROR).sum()))


def _filled(column: pl.Series, value: object) -> pl.Series:
    return column.fill_null(value) if column.null_count() else column


LOST = ".replicates_lost"
"""The column of how many replicates had no value for some group."""
EXPLANATION = (
    ".n", ".status", ".group_min", ".group_max", ".level", ".base_metric", ".metrics_left_out",
    ".groups_left_out", LOST,
)  # fmt: skip
"""The columns of results that are shown when asked for."""


def tidy_groups(evaluated: Evaluated) -> pl.DataFrame:
    """The values that disparities are made of, each once, and those of ordinary metrics."""
    rows = evaluated.rows.unique(["name", "estimator", "min_n", UNIT, LEVEL], keep="first", maintain_order=True)
    about = evaluated.about(rows) | {".metric": rows["name"]}
    estimator, threshold = about.pop(".estimator"), evaluated.threshold(rows)
    about = {name: column for name, column in about.items() if name not in threshold}
    return pl.DataFrame(
        {
            **about, ".group": rows["text"], ".level": evaluated.level_text(rows), ".estimator": estimator, **threshold,
            ".estimate": rows["estimate"], **_error_bound(rows, "estimate"),
            ".n": rows["n"], ".denominator": rows["denominator"],
            **({".effective_n": rows["effective"]} if "effective" in rows.columns else {}), ".status": rows["status"],
        }
    )  # fmt: skip


def frames_of(evaluated: Evaluated) -> Tidy:
    """What a user's aggregate is called, and sees, of each request."""

    def tidy(number: int, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
        return evaluated.requests[number].name, _tidy_group_frame(evaluated, evaluated.requests[number], rows)

    return tidy


def _tidy_group_frame(evaluated: Evaluated, request: Request, rows: pl.DataFrame) -> pl.DataFrame:
    """What a user's aggregate sees: one row for each group and metric, its keys under their own names."""
    ours = {
        ".group": rows["text"], ".metric": rows["name"], ".estimator": rows["estimator"], ".estimate": rows["estimate"],
        ".n": rows["n"], ".denominator": rows["denominator"],
        ".overall": rows["overall"] if "overall" in rows.columns else None,
    }  # fmt: skip
    by = request.by
    if by is None or by.sides:
        return pl.DataFrame(ours)
    place = rows[UNIT] - evaluated.units.spans[by][0]
    keys = evaluated.units.keys[by]
    return pl.DataFrame({column.name: key[place] for column, key in zip(by.columns, keys, strict=True)} | ours)


_REASONS = {
    "zero_denominator": "has no value (zero denominator)",
    "levels_left_out": "is an average without the labels that have no value",
}


def complaints(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """What a reader should be told once: which metric has no value, and where."""
    said: list[str] = []
    states = evaluated.rows["status"]
    if (states != "ok").any():
        reasons = {
            state: _REASONS.get(state, f"has no value ({state if ':' in state else state.replace('_', ' ')})")
            for state in states.unique(maintain_order=True)
            if state not in STATED or state == "levels_left_out"
        }
        said += _places(evaluated, reasons)
    said += _silent(evaluated, results)
    said += _without_metrics(results)
    if (results[".status"] == "zero_denominator").any():
        ratios = results.filter(pl.col(".by").is_not_null() & (pl.col(".status") == "zero_denominator"))
        pairs = ratios.select(".metric", ".by").unique(maintain_order=True).rows()
        said += [f"{name} by {by} is 0/0" for name, by in pairs]
    return said


def _silent(evaluated: Evaluated, results: pl.DataFrame) -> list[str]:
    """Sides that have nobody to be compared with in an outer group, where no value of a group says so."""
    two_sided = [(each.name, each.by.text) for each in evaluated.requests if each.by and each.by.sides]
    if not two_sided:
        return []
    lacking = results.filter(pl.col(".status").is_in(["too_few_groups", "no_reference"]))
    outer = [name for name in results.columns if not name.startswith(".")]
    said: list[str] = []
    for (name, by), part in lacking.group_by(".metric", ".by", maintain_order=True):
        if (name, by) in two_sided:
            places = [", ".join(f"{key}={value!r}" for key, value in row.items()) for row in part[outer].to_dicts()]
            more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            where = f" in {', '.join(f'({place})' for place in places[:_SHOWN])}{more}" if outer else ""
            said.append(f"{name} has no value on one of the sides of {by}{where}")
    return said


def _without_metrics(results: pl.DataFrame) -> list[str]:
    """Metrics that cannot be compared, where the worst of the others is taken."""
    partly = results.filter(pl.col(".metrics_left_out").list.len() > 0)
    if partly.is_empty():
        return []
    pairs = partly.explode(".metrics_left_out").group_by(".metric", ".by", maintain_order=True)
    messages: list[str] = []
    for (name, by), rows in pairs:
        metrics = ", ".join(rows[".metrics_left_out"].unique(maintain_order=True))
        messages.append(f"{name} by {by} is the worst of the other metrics, because {metrics} cannot be compared")
    return messages


def _places(evaluated: Evaluated, reasons: dict[str, str]) -> list[str]:
    """Which metrics are in one of the states, and in which groups."""
    rows = evaluated.rows.filter(pl.col("status").is_in(list(reasons)))
    said: list[str] = []
    by = evaluated.about(rows)[".by"]
    for (name, text, status), part in rows.with_columns(by).group_by("name", ".by", "status", maintain_order=True):
        places = part.unique(UNIT, maintain_order=True)
        shown = [
            " ".join(filter(None, [f"{text} {group!r}" if text else "", _outer_text(evaluated, outer)]))
            for group, outer in places.head(_SHOWN).select("text", "outer").rows()
        ]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        said.append(f"{name} {reasons[str(status)]}{' in ' if any(shown) else ''}{', '.join(shown)}{more}")
    return said


def _outer_text(evaluated: Evaluated, place: int) -> str:
    row = evaluated.units.outer_keys.row(place, named=True)
    cut = (evaluated.cut or "").removeprefix(".")
    named = {cut if name == THRESHOLD else name: value for name, value in row.items() if name != UNGROUPED}
    keys = ", ".join(f"{name}={value!r}" for name, value in named.items())
    return f"({keys})" if keys else ""
