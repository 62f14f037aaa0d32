"""From the values of groups to one number for each outer group: the rules of what counts, then the aggregate."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidyfair.aggregates import UserAggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidyfair.aggregates import Aggregate

__all__: list[str] = []

VALUED = ["ok", "infinite", "levels_left_out"]
"""The states in which there is a number."""
NO_LEVEL = -1
_PLACE = "\0place"

Tidy: TypeAlias = "Callable[[int, pl.DataFrame], tuple[str, pl.DataFrame]]"
"""From a request and its rows to its name and the frame that a user's function sees."""


def compare(
    rows: pl.DataFrame,
    aggregates: Mapping[int, Aggregate],
    *,
    undefined_is_null: bool,
    tidy: Tidy,
) -> pl.DataFrame:
    """One row for each request and outer group: `value`, `status`, `low` and `high` group, `level` and `n` rows.

    `rows` holds the values of the groups: `request`, `outer`, `level`, `metric`, `group`, `estimate`, `n`, `size`,
    `status`, `is_reference`, and the contexts of the aggregates. Requests with equal aggregates are worked out together,
    so that thousands of outer groups cost one query. `tidy` makes the frame that a user's function sees.
    """
    together: dict[Aggregate, list[int]] = {}
    for request, aggregate in aggregates.items():
        together.setdefault(aggregate, []).append(request)
    found = [
        _compare(rows.filter(pl.col("request").is_in(requests)), aggregate, undefined_is_null=undefined_is_null, tidy=tidy)
        for aggregate, requests in together.items()
    ]
    return pl.concat(found)


def _compare(
    rows: pl.DataFrame,
    aggregate: Aggregate,
    *,
    undefined_is_null: bool,
    tidy: Tidy,
) -> pl.DataFrame:
    per_metric = ["request", "outer", "level", "metric"]
    per_level, per_outer = per_metric[:3], per_metric[:2]
    known, counts = pl.col("estimate").is_not_null(), pl.col("status") != "left_out"
    rules = rows.group_by(per_metric, maintain_order=True).agg(
        counts.sum().alias("groups"),
        known.sum().alias("known"),
        (pl.col("status") == "missing_values").any().alias("missing"),
        ((pl.col("status") == "zero_denominator").any() & undefined_is_null).alias("undefined"),
        ((pl.col("is_reference") & known).any() | (aggregate.reference is None)).alias("referable"),
        pl.col("n").filter(known).sum(),
    )
    valued = rows.filter(known)
    if isinstance(aggregate, UserAggregate):
        # it is asked once for all metrics, after the rules
        rules = rules.with_columns(pl.lit(0.0).alias("value"), pl.lit(None, pl.String).alias("low"), pl.lit(None, pl.String).alias("high"))
    else:
        values = valued.group_by(per_metric).agg(_number(aggregate.value()), *_carriers(aggregate))
        rules = rules.join(values, on=per_metric, how="left", maintain_order="left")
    alone = (pl.col("groups") == 1) & (pl.col("known") == 1) & (aggregate.for_one_group is not None)
    rules = rules.with_columns(pl.when(alone).then(aggregate.for_one_group).otherwise("value").alias("value")).with_columns(
        pl.when("missing").then(pl.lit("missing_values"))
        .when("undefined").then(pl.lit("undefined_group"))
        .when(~pl.col("referable")).then(pl.lit("no_reference"))
        .when(alone).then(pl.lit("ok"))
        .when(pl.col("known") < pl.min_horizontal(aggregate.groups_needed, pl.max_horizontal("groups", 1)))
        .then(pl.lit("too_few_groups"))
        .when(pl.col("value").is_infinite()).then(pl.lit("infinite"))
        .when(pl.col("value").is_null()).then(pl.lit("zero_denominator"))
        .otherwise(pl.lit("ok"))
        .alias("status")
    )  # fmt: skip
    levels = _settle(rules, per_level, aggregate, all_needed=True)
    if isinstance(aggregate, UserAggregate):
        levels = _ask_user(levels, valued, aggregate, tidy)
    return _settle(levels, per_outer, aggregate, all_needed=undefined_is_null)


def _ask_user(levels: pl.DataFrame, valued: pl.DataFrame, aggregate: UserAggregate, tidy: Tidy) -> pl.DataFrame:
    """Put the numbers of a user's aggregate where the rules allow one."""
    keys = ["request", "outer", "level"]
    allowed = valued.join(levels.filter(pl.col("status") == "ok"), on=keys, how="semi", maintain_order="left")
    answers: list[tuple[int, int, int, float | None]] = []
    for (request,), rows in allowed.group_by("request", maintain_order=True):
        name, frame = tidy(request, rows)
        places = rows.select(pl.struct(keys).alias(_PLACE)).to_series()
        grouped = frame.with_columns(places).group_by(_PLACE, maintain_order=True)
        if isinstance(aggregate.function, pl.Expr):
            results = grouped.agg(aggregate.function.alias("value")).rows()
        else:
            results = [(place, aggregate.function(part.drop(_PLACE))) for (place,), part in grouped]
        answers += [(*place.values(), aggregate.number(result, name)) for place, result in results]
    values = pl.DataFrame(answers, schema={**allowed.select(keys).schema, "value": pl.Float64}, orient="row")
    extremes = allowed.group_by(keys).agg(_carriers(aggregate))
    joined = levels.drop("value", "low", "high").join(values, on=keys, how="left", maintain_order="left")
    undefined = pl.col("value").is_null() & (pl.col("status") == "ok")
    return joined.join(extremes, on=keys, how="left", maintain_order="left").with_columns(
        pl.when(undefined).then(pl.lit("zero_denominator")).otherwise("status").alias("status")
    )


def _number(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Float64).fill_nan(None).alias("value")


def _carriers(aggregate: Aggregate) -> list[pl.Expr]:
    return [each.alias(name) for name, each in zip(("low", "high"), aggregate.carriers(), strict=True)]


def _settle(values: pl.DataFrame, keys: list[str], aggregate: Aggregate, *, all_needed: bool) -> pl.DataFrame:
    """Several numbers of a key as one; none where one of them is missing and all are needed."""
    valued = pl.col("status").is_in(VALUED)
    value, low, high, level = aggregate.combine()
    every = values.filter(valued).group_by(keys).agg(value, low, high, *([level] if "level" not in keys else []))
    status = values.group_by(keys, maintain_order=True).agg(
        pl.col("n").max(),
        valued.all().alias("all"),
        valued.any().alias("any"),
        pl.col("status").filter(~valued).first().alias("reason"),
    )
    there = pl.col("all") | (pl.col("any") & (not all_needed))
    return status.join(every, on=keys, how="left", maintain_order="left").select(
        *keys,
        *(pl.when(there).then(name).alias(name) for name in ("value", "low", "high", *(["level"] if "level" not in keys else []))),
        "n",
        pl.when(~there).then("reason")
        .when(pl.col("value").is_infinite()).then(pl.lit("infinite"))
        .when(~pl.col("all")).then(pl.lit("levels_left_out"))
        .otherwise(pl.lit("ok")).alias("status"),
    )  # fmt: skip
