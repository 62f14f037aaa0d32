"""From the values of groups to one number for each outer group: the rules of what counts, then the aggregate."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidyfair.aggregates import UserAggregate
from tidyfair.errors import AggregateError, listed
from tidyfair.readings import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidyfair.aggregates import Aggregate

__all__: list[str] = []

VALUED = ["ok", "infinite", "levels_left_out"]
"""The states in which there is a number."""
STATED = [*VALUED, "left_out", "missing_values", "below_min_n"]
"""The states of a group other than having no value, which goes by the reason for it."""
NO_LEVEL = -1
"""In place of a label, for what is about all labels (or the event): the last of a list that ends in null."""
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

    `rows` holds the values of the groups: `request`, `outer`, `level`, `metric`, `unit`, `text`, `estimate`, `n`,
    `size`, `status`, `is_reference`, and the contexts of the aggregates. Requests with equal aggregates are worked out
    together. `tidy` makes the frame that a user's function sees.
    """
    together: dict[Aggregate, list[int]] = {}
    for request, aggregate in aggregates.items():
        together.setdefault(aggregate, []).append(request)
    found = [
        _compare(
            rows.filter(pl.col("request").is_in(requests)), aggregate, undefined_is_null=undefined_is_null, tidy=tidy
        )
        for aggregate, requests in together.items()
    ]
    return pl.concat(found) if len(found) > 1 else found[0]


def _compare(
    rows: pl.DataFrame,
    aggregate: Aggregate,
    *,
    undefined_is_null: bool,
    tidy: Tidy,
) -> pl.DataFrame:
    per_metric = ["request", "outer", LEVEL, "metric"]
    per_level, per_outer = per_metric[:3], per_metric[:2]
    known, status = pl.col("estimate").is_not_null(), pl.col("status")
    asked = isinstance(aggregate, UserAggregate)  # once for all metrics, after the rules
    rules = (
        aggregate.prepare(rows, per_metric)
        .group_by(per_metric, maintain_order=True)
        .agg(
            pl.lit(0.0).alias("value") if asked else aggregate.value().cast(pl.Float64).fill_nan(None).alias("value"),
            *_carriers(aggregate),
            (status != "left_out").sum().alias("groups"),
            known.sum().alias("known"),
            (status == "missing_values").any().alias("missing"),
            ((~status.is_in(STATED)).any() & undefined_is_null).alias("undefined"),
            aggregate.referable().alias("referable"),
            pl.col("n").filter(known).sum(),
        )
    )
    alone = (pl.col("groups") == 1) & (pl.col("known") == 1) & pl.col("referable")
    value = pl.col("value")
    if aggregate.for_one_group is not None:
        value = pl.when(alone).then(aggregate.for_one_group).otherwise(value)
    needed = pl.min_horizontal(aggregate.groups_needed, pl.max_horizontal("groups", 1))
    reason = (
        pl.when("missing").then(pl.lit("missing_values"))
        .when("undefined").then(pl.lit("undefined_group"))
        .when(~pl.col("referable")).then(pl.lit("no_reference"))
        .when(pl.col("known") < needed).then(pl.lit("too_few_groups"))
        .when(value.is_null()).then(pl.lit("zero_denominator"))
    )  # fmt: skip
    rules = rules.with_columns(pl.when(reason.is_null()).then(value).alias("value"), reason.alias("reason"))
    levels = _settle(rules, per_level, aggregate, all_needed=True)
    if isinstance(aggregate, UserAggregate):
        levels = _ask_user(levels, rows.filter(known), aggregate, tidy)
    # without levels there is one number for each outer group already
    one = (levels[LEVEL] == NO_LEVEL).all()
    settled = levels if one else _settle(levels, per_outer, aggregate, all_needed=undefined_is_null)
    partly = pl.when("partly").then(pl.lit("levels_left_out")).otherwise(pl.lit("ok"))
    state = pl.when(pl.col("value").is_infinite()).then(pl.lit("infinite")).otherwise(pl.coalesce("reason", partly))
    return settled.select(*per_outer, "value", "low", "high", LEVEL, "n", state.alias("status"))


def _carriers(aggregate: Aggregate) -> list[pl.Expr]:
    return [each.alias(name) for name, each in zip(("low", "high"), aggregate.carriers(), strict=True)]


def _settle(numbers: pl.DataFrame, keys: list[str], aggregate: Aggregate, *, all_needed: bool) -> pl.DataFrame:
    """Several numbers of a key as one; none, and the reason, where one of them is missing and all are needed."""
    there = pl.col("value").is_not_null()
    enough = there.all() if all_needed else there.any()
    combined = [pl.when(enough).then(each).alias(each.meta.output_name()) for each in aggregate.combine(keys)]
    reason = pl.when(~enough).then(pl.col("reason").drop_nulls().first()).alias("reason")
    partly = (enough & ~there.all()).alias("partly")
    return numbers.group_by(keys, maintain_order=True).agg(*combined, pl.col("n").max(), reason, partly)


def _ask_user(levels: pl.DataFrame, valued: pl.DataFrame, aggregate: UserAggregate, tidy: Tidy) -> pl.DataFrame:
    """Put the numbers of a user's aggregate where the rules allow one."""
    keys = ["request", "outer", LEVEL]
    allowed = valued.join(levels.filter(pl.col("reason").is_null()), on=keys, how="semi", maintain_order="left")
    answers: list[tuple[int, int, int, float | None]] = []
    for (request,), rows in allowed.group_by("request", maintain_order=True):
        name, frame = tidy(int(str(request)), rows)
        grouped = frame.with_columns(rows.select(pl.struct(keys).alias(_PLACE))).group_by(_PLACE, maintain_order=True)
        try:
            if isinstance(aggregate.function, pl.Expr):
                results = grouped.agg(aggregate.function.alias("value")).rows()
            else:
                results = [(place, aggregate.function(part.drop(_PLACE))) for (place,), part in grouped]
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0].partition(";")[0]
            msg = f"{name}: the aggregate {aggregate!r} failed: {reason}. Its columns: {listed(frame.columns)}."
            raise AggregateError(msg) from error
        except Exception as error:
            error.add_note(f"in the aggregate of {name}, whose columns are {listed(frame.columns)}")
            raise
        answers += [(*place.values(), aggregate.number(result, name)) for place, result in results]
    values = pl.DataFrame(answers, schema={**allowed.select(keys).schema, "value": pl.Float64}, orient="row")
    extremes = allowed.group_by(keys).agg(_carriers(aggregate))
    answered = levels.drop("value", "low", "high").join(values, on=keys, how="left", maintain_order="left")
    undefined = pl.when(pl.col("value").is_null()).then(pl.lit("zero_denominator"))
    return answered.join(extremes, on=keys, how="left", maintain_order="left").with_columns(
        pl.coalesce("reason", undefined).alias("reason")
    )
