"""From the values of groups to one number for each outer group: the rules of what counts, then the aggregate."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from tidyfair.aggregates import SUPPRESSED, UserAggregate, first_largest
from tidyfair.errors import AggregateError, listed
from tidyfair.readings import LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tidyfair.aggregates import Aggregate

__all__: list[str] = []

VALUED = ["ok", "infinite", "levels_left_out", "metrics_left_out"]
"""The states in which there is a number."""
STATED = [*VALUED, "left_out", "missing_values", "below_min_n"]
"""The states of a group other than having no value, which goes by the reason for it."""
NO_LEVEL = -1
"""In place of a label, for what is about all labels (or the event)."""
PART = "part"
"""Whether a metric belongs to the disparity itself (0), or to the one that is subtracted from it (1)."""
_PLACE = "\0place"
_NOT_ASKED = pl.lit(math.inf)
"""In place of the number of a user's aggregate, which the rules never make."""
_PER_METRIC = ["request", "outer", PART, LEVEL, "metric"]
_PER_LEVEL, _PER_PART, _PER_OUTER = _PER_METRIC[:4], _PER_METRIC[:3], _PER_METRIC[:2]
COMPARED = (*_PER_OUTER, "value", "low", "high", LEVEL, "name", "n", "metrics_left_out", "status")
"""The columns of what `compare` gives."""
_STATUS = (
    pl.when(pl.col("value").is_infinite()).then(pl.lit("infinite"))
    .when(pl.col("reason").is_not_null()).then("reason")
    .when(pl.col("metrics_left_out").list.len() > 0).then(pl.lit("metrics_left_out"))
    .when("partly").then(pl.lit("levels_left_out"))
    .otherwise(pl.lit("ok"))
    .alias("status")
)  # fmt: skip
_KNOWN, _STATE = pl.col("estimate").is_not_null(), pl.col("status")
_COUNTED = (
    (_STATE != "left_out").sum().alias("groups"),
    _KNOWN.sum().alias("known"),
    (_STATE == "missing_values").any().alias("missing"),
    (_STATE == SUPPRESSED).any().alias("suppressed"),
    (~_STATE.is_in(STATED)).any().alias("undefined"),
    pl.col("two_sided").first(),
    pl.col("name").first(),
    pl.col("n").filter(_KNOWN).sum(),
)
"""What is known of the groups of a metric."""
_ALONE = (pl.col("groups") == 1) & (pl.col("known") == 1) & pl.col("referable") & ~pl.col("two_sided")
_NOT_ALL = pl.col("two_sided") | (pl.col("known") < pl.col("groups")) | (pl.col("known") == 0)
"""Whether more groups than those that have a value could be asked for."""
_REASON = (
    pl.when("missing").then(pl.lit("missing_values"))
    .when("undefined").then(pl.lit("undefined_group"))
    .when(~pl.col("referable")).then(pl.lit("no_reference"))
    .when(pl.col("lacking") & pl.col("suppressed")).then(pl.lit(SUPPRESSED))
    .when("lacking").then(pl.lit("too_few_groups"))
    .when(pl.col("value").is_null()).then(pl.lit("zero_denominator"))
    .alias("reason")
)  # fmt: skip
"""Why there is no number of them."""

_WORST = first_largest(pl.col("severity"))
_SEVERAL = (
    pl.col("value").mean().alias("mean"),
    pl.col("averaged").first(),
    (pl.len() == 1).alias("alone"),
    pl.col("value").is_not_null().all().alias("complete"),
    pl.col("reason").drop_nulls().first(),
    pl.col("n").max(),
)
"""What is known of several numbers that become one."""
_CARRIED = pl.col("enough") & (~pl.col("averaged") | pl.col("alone"))
_ONE = (
    pl.when("enough").then(pl.when("averaged").then("mean").otherwise("value")).fill_nan(None).alias("value"),
    # a mean of what is infinite on both ends is none
    pl.when(~pl.col("enough")).then("reason")
    .when(pl.col("mean").is_nan() & pl.col("averaged")).then(pl.lit("infinite_less_infinite"))
    .alias("reason"),
    (pl.col("enough") & ~pl.col("complete")).alias("partly"),
)  # fmt: skip
"""What they become."""


Tidy: TypeAlias = "Callable[[int, pl.DataFrame], tuple[str, pl.DataFrame]]"
"""From a request and its rows to its name and the frame that a user's function sees."""


def compare(
    rows: pl.DataFrame,
    aggregates: Mapping[int, Aggregate],
    *,
    two_sided: Collection[int],
    undefined_is_null: bool,
    tidy: Tidy,
) -> pl.DataFrame:
    """One row for each request and outer group: `value`, `status`, `low` and `high` group, `level`, `name`, `n` rows.

    `rows` holds the values of the groups: `request`, `outer`, `part`, `level`, `metric`, `name`, `unit`, `text`,
    `estimate`, `n`, `mass`, `size`, `status`, `is_reference`, and the contexts of the aggregates; those of other
    requests do not count. Requests with equal aggregates are worked out together. Of those that are `two_sided`, one
    side alone compares with nothing. `tidy` makes the frame that a user's function sees.
    """
    together: dict[Aggregate, list[int]] = {}
    for request, aggregate in aggregates.items():
        together.setdefault(aggregate, []).append(request)
    alike = {aggregate: requests for aggregate, requests in together.items() if aggregate.reads_values_only}
    apart = ({aggregate: requests} for aggregate, requests in together.items() if aggregate not in alike)
    plans = [
        _compare(rows, batch, tidy, two_sided, undefined_is_null=undefined_is_null)
        for batch in (alike, *apart)
        if batch
    ]
    return pl.concat(pl.collect_all(plans, engine="in-memory"))


_Batch: TypeAlias = "Mapping[Aggregate, list[int]]"
"""Aggregates whose requests are one query."""


def _compare(
    rows: pl.DataFrame, batch: _Batch, tidy: Tidy, two_sided: Collection[int], *, undefined_is_null: bool
) -> pl.LazyFrame:
    """The plan of what `compare` gives, for the requests of some aggregates."""
    first, request = next(iter(batch)), pl.col("request")
    mine = rows.lazy().filter(request.is_in(list(chain(*batch.values()))))
    mine = mine.with_columns(request.is_in(list(two_sided)).alias("two_sided"))
    numbers = _rules(first.prepare(mine, _PER_METRIC), batch, undefined_is_null=undefined_is_null)
    settled = _worst_metric(numbers, batch, undefined_is_null=undefined_is_null)
    if isinstance(first, UserAggregate):
        valued = mine.filter(pl.col("estimate").is_not_null()).collect()
        settled = _ask_user(settled.collect(), valued, first, tidy).lazy()
    # without levels there is one number for each outer group already
    if (rows[LEVEL] != NO_LEVEL).any():
        settled = _worst_level(settled, batch, undefined_is_null=undefined_is_null)
    if rows[PART].max():
        settled = _less(settled)
    return settled.select(*COMPARED[:-1], _STATUS)


def _of_each(batch: _Batch, get: Callable[[Aggregate], pl.Expr]) -> pl.Expr:
    """An expression that is that of the aggregate of a row."""
    (first, _), *others = batch.items()
    chosen = get(first)
    for aggregate, requests in others:
        chosen = pl.when(pl.col("request").is_in(requests)).then(get(aggregate)).otherwise(chosen)
    return chosen


def _rules(groups: pl.LazyFrame, batch: _Batch, *, undefined_is_null: bool) -> pl.LazyFrame:
    """The number of a metric, and the reason where there is none."""
    first, places = next(iter(batch)), {aggregate: f"value {place}" for place, aggregate in enumerate(batch)}
    # a user is asked once for all metrics, after the rules
    numbers = {
        place: _NOT_ASKED if isinstance(aggregate, UserAggregate) else aggregate.value().cast(pl.Float64)
        for aggregate, place in places.items()
    }
    counted = groups.group_by(_PER_METRIC, maintain_order=True).agg(
        *(number.alias(place) for place, number in numbers.items()),
        *_carriers(first),
        *_COUNTED,
        first.referable().alias("referable"),
    )
    of_one = _of_each(batch, lambda aggregate: pl.lit(aggregate.equality, pl.Float64))
    value = pl.coalesce(pl.when(_ALONE).then(of_one), _of_each(batch, lambda aggregate: pl.col(places[aggregate])))
    asked = _of_each(batch, lambda aggregate: pl.lit(aggregate.groups_needed, pl.Int32))
    # step by step, because an expression within others is worked out in each of them
    return (
        counted.with_columns(
            value.alias("value"),
            ((pl.col("known") < asked) & _NOT_ALL).alias("lacking"),
            pl.col("undefined") & undefined_is_null,
        )
        .with_columns(pl.col("value").fill_nan(None))
        .with_columns(_REASON)
        .with_columns(pl.when(pl.col("reason").is_null()).then("value").alias("value"))
    )


def _carriers(aggregate: Aggregate) -> list[pl.Expr]:
    return [each.alias(name) for name, each in zip(("low", "high"), aggregate.carriers(), strict=True)]


def _worst_metric(numbers: pl.LazyFrame, batch: _Batch, *, undefined_is_null: bool) -> pl.LazyFrame:
    """The numbers of several metrics as one: the worst of those that can be compared, or the mean of all."""
    known = pl.col("value").is_not_null()
    # a mean of fewer metrics, and a user's function of fewer, would mean something else
    of_all = _of_each(batch, lambda aggregate: pl.lit(undefined_is_null or not aggregate.may_leave_metrics_out))
    unusable = pl.col("reason").is_in(["missing_values", SUPPRESSED]).any()
    enough = pl.when(of_all.first() | unusable).then(known.all()).otherwise(known.any())
    left_out = pl.col("name").filter(~known & enough)
    settled = _settle(numbers, _PER_LEVEL, batch, enough, left_out.alias("metrics_left_out"))
    return settled.with_columns(pl.lit(value=False).alias("partly"))


def _worst_level(numbers: pl.LazyFrame, batch: _Batch, *, undefined_is_null: bool) -> pl.LazyFrame:
    """The numbers of several labels as one: the worst of those that have one, or their mean."""
    known = pl.col("value").is_not_null()
    enough = known.all() if undefined_is_null else known.any()
    left_out = pl.col("metrics_left_out").explode(empty_as_null=False).unique(maintain_order=True)
    return _settle(numbers, _PER_PART, batch, enough, left_out.alias("metrics_left_out"))


def _settle(numbers: pl.LazyFrame, keys: list[str], batch: _Batch, enough: pl.Expr, left_out: pl.Expr) -> pl.LazyFrame:
    """Several numbers of a key as one, the worst or their mean; none, and the reason, where there are not `enough`."""
    value = pl.col("value")
    carried = [name for name in ("low", "high", LEVEL, "name") if name not in keys]
    severity = _of_each(batch, lambda aggregate: aggregate.severity(value)).alias("severity")
    across = _of_each(batch, lambda aggregate: pl.lit(aggregate.across == "mean")).alias("averaged")
    grouped = numbers.with_columns(severity, across).group_by(keys, maintain_order=True)
    settled = grouped.agg(
        pl.struct("value", *carried).get(_WORST).alias("worst"), *_SEVERAL, enough.alias("enough"), left_out
    )
    shown = [pl.when(_CARRIED).then(name).alias(name) for name in carried]
    return settled.unnest("worst").with_columns(*_ONE, *shown)


def _less(settled: pl.LazyFrame) -> pl.LazyFrame:
    """What the first parts have more than those that are subtracted from them; the groups are those of the first."""

    def of(part: int, name: str) -> pl.Expr:
        return pl.col(name).filter(pl.col(PART) == part).first()

    reason = pl.coalesce(of(0, "reason"), of(1, "reason"))
    value = of(0, "value") - pl.coalesce(of(1, "value"), pl.when(of(1, "reason").is_null()).then(0.0))
    combined = settled.group_by(_PER_OUTER, maintain_order=True).agg(
        value.fill_nan(None).alias("value"),
        *(of(0, name).alias(name) for name in ("low", "high", LEVEL, "name", "n", "partly")),
        pl.col("metrics_left_out").explode(empty_as_null=False).unique(maintain_order=True),
        reason.alias("reason"),
    )
    endless = pl.when(pl.col("value").is_null()).then(pl.lit("infinite_less_infinite"))
    return combined.with_columns(pl.coalesce("reason", endless).alias("reason"))


def _ask_user(levels: pl.DataFrame, valued: pl.DataFrame, aggregate: UserAggregate, tidy: Tidy) -> pl.DataFrame:
    """Put the numbers of a user's aggregate where the rules allow one."""
    keys = ["request", "outer", PART, LEVEL]
    there = levels.filter(pl.col("reason").is_null())
    valued = valued.join(there, on=keys, how="semi", maintain_order="left")
    to_ask = pl.col("value") == _NOT_ASKED
    allowed = valued.join(there.filter(to_ask), on=keys, how="semi", maintain_order="left")
    answers: list[tuple[int, int, int, int, float | None]] = []
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
        except (AttributeError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}".rstrip(".")
            gets = "It gets a polars DataFrame, whatever the kind of the data, with the columns"
            msg = f"{name}: the aggregate {aggregate!r} failed with {reason}. {gets} {listed(frame.columns)}."
            raise AggregateError(msg) from error
        except Exception as error:
            error.add_note(f"in the aggregate of {name}, whose columns are {listed(frame.columns)}")
            raise
        answers += [(*place.values(), aggregate.number(result, name)) for place, result in results]
    values = pl.DataFrame(answers, schema={**allowed.select(keys).schema, "answer": pl.Float64}, orient="row")
    extremes = valued.group_by(keys).agg(_carriers(aggregate))
    answered = levels.drop("low", "high").join(values, on=keys, how="left", maintain_order="left")
    answered = answered.with_columns(pl.when(to_ask).then("answer").otherwise("value").alias("value")).drop("answer")
    undefined = pl.when(pl.col("value").is_null()).then(pl.lit("zero_denominator"))
    return answered.join(extremes, on=keys, how="left", maintain_order="left").with_columns(
        pl.coalesce("reason", undefined).alias("reason")
    )
