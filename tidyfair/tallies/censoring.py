"""Censoring weights of survival times, from the Kaplan-Meier estimate of the distribution of censoring times.

A row whose event is seen stands for all that were censored before it: it weighs one over the probability to be still
uncensored (Robins and Rotnitzky, 1992; Graf et al., 1999). At a tie, events come before censoring.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, WeightError, in_short, listed
from tidyfair.specs import (
    EVENT,
    EVENT_WEIGHT,
    Array,
    Booleans,
    CensoringDistribution,
    Column,
    ColumnLike,
    Floats,
    Forecast,
    Frame,
    OuterGroups,
    Survival,
    proper_share,
    refuse_reserved,
    refuse_unknown_settings,
)
from tidyfair.specs.result_kinds import SURVIVAL_CURVE, with_level
from tidyfair.tallies.moments import ACTUAL
from tidyfair.tallies.source import FREQUENCY, WEIGHT, open_frame

__all__ = ["censoring_distribution", "kaplan_meier"]

_ALL = "\0all"
"""The only group of data that are not grouped."""


@refuse_unknown_settings
def censoring_distribution(
    data: object, truth: Survival, *, case_weights: ColumnLike | None = None
) -> CensoringDistribution:
    """Estimate the distribution of censoring times (Kaplan and Meier, 1958), often from the data of the training.

    Args:
        data: A frame, as in a call of a metric.
        truth: The survival times, `survival.outcome("time", "event")`; rows without one of the two are left out.
        case_weights: Column of weights.

    >>> import polars as pl
    >>> from tidyfair.survival import outcome
    >>> train = pl.DataFrame({"days": [10, 20, 30, 40], "died": [True, False, True, False]})
    >>> censoring_distribution(train, outcome("days", "died")).probabilities
    (0.6666666666666666, 0.0)
    """
    if not isinstance(truth, Survival):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'censoring_distribution() takes `survival.outcome("time", "event")`, not {in_short(truth)}.'
        raise ArgumentError(msg)
    if truth.censoring is not None or truth.censoring_by:
        msg = "censoring_distribution() estimates one distribution: leave out `censoring` and `censoring_by`."
        raise ArgumentError(msg)
    source = open_frame(data)
    if source.group_by:
        msg = (
            "censoring_distribution() estimates one distribution, but the data are grouped. Give the frame without "
            "groups, or estimate it in each group by `survival.outcome(…, censoring_by=…)`."
        )
        raise ArgumentError(msg)
    wanted = {ACTUAL: ("truth", truth.column_of_time), EVENT: ("truth", truth.column_of_events)}
    if case_weights is not None:
        wanted[WEIGHT] = ("case_weights", Column.of(case_weights, "case_weights"))
    rows = _with_event(source.read(wanted), wanted[EVENT][1], wanted[ACTUAL][1])
    if case_weights is not None:
        rows = rows.with_columns(checked_weights(rows[WEIGHT], wanted[WEIGHT][1].name))
    rows = rows.drop_nulls(ACTUAL)
    if rows.is_empty():
        msg = (
            f"censoring_distribution(): no row has both a time in {truth.column_of_time.name!r} and an event in "
            f"{truth.column_of_events.name!r}."
        )
        raise ColumnError(msg)
    weight = None if case_weights is None else rows[WEIGHT].to_numpy()
    if weight is not None and not weight.any():
        msg = f"`case_weights`: all values of {wanted[WEIGHT][1].name!r} are zero."
        raise WeightError(msg)
    return kaplan_meier_of_censoring(rows[ACTUAL].to_numpy(), rows[EVENT].to_numpy(), weight)


@refuse_unknown_settings
def kaplan_meier(
    data: object, truth: Survival, *, group_by: OuterGroups | None = None, conf_level: float = 0.95
) -> Frame:
    """Estimate the survival of rows over time, by group (Kaplan and Meier, 1958).

    Args:
        data: A frame, as in a call of a metric, grouped or not.
        truth: The survival times, `survival.outcome("time", "event")`; rows without one of the two are left out.
        group_by: Columns whose groups each have a curve.
        conf_level: Confidence level of the limits at each time, which are on the scale of log(-log) (Kalbfleisch and
            Prentice, 1980).

    Returns:
        A row for each time with an event: outer keys, `.eval_time`, the rows `.n_at_risk` just before and the events
        `.n_events` then, `.estimate` (the probability to survive the time), `.lower`, `.upper` and `.std_error`
        (Greenwood, 1926; null where it is 0).

    >>> import polars as pl
    >>> from tidyfair.survival import outcome
    >>> people = pl.DataFrame({"days": [10, 20, 30, 40], "died": [True, False, True, False]})
    >>> kaplan_meier(people, outcome("days", "died")).select(".eval_time", ".n_at_risk", ".estimate").rows()
    [(10.0, 4, 0.75), (30.0, 2, 0.375)]
    """
    if not isinstance(truth, Survival):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'kaplan_meier() takes `survival.outcome("time", "event")`, not {in_short(truth)}.'
        raise ArgumentError(msg)
    z = NormalDist().inv_cdf((1 + proper_share("conf_level", conf_level)) / 2)
    source = open_frame(data, group_by)
    refuse_reserved("group_by", source.outer)
    wanted = {ACTUAL: ("truth", truth.column_of_time), EVENT: ("truth", truth.column_of_events)}
    outer = {f"outer {index}": key for index, key in enumerate(source.outer)}
    wanted |= {name: ("group_by", key) for name, key in outer.items()}
    rows = _with_event(source.read(wanted), truth.column_of_events, truth.column_of_time).drop_nulls(ACTUAL)
    keys = list(outer) or [_ALL]
    steps = rows.with_columns(pl.lit(0).alias(_ALL)).group_by(*keys, ACTUAL)
    steps = steps.agg(pl.len().cast(pl.Int64).alias("rows"), pl.col(EVENT).sum().cast(pl.Int64).alias(".n_events"))
    at_risk = pl.col("rows").cum_sum(reverse=True).over(keys).alias(".n_at_risk")
    steps = steps.sort(*keys, ACTUAL, nulls_last=True).with_columns(at_risk).filter(pl.col(".n_events") > 0)
    events, risk, survival = pl.col(".n_events"), pl.col(".n_at_risk"), pl.col(".estimate")
    greenwood = (events / (risk * (risk - events))).cum_sum().over(keys).sqrt()
    steps = steps.with_columns((1 - events / risk).cum_prod().over(keys).alias(".estimate"), greenwood.alias("error"))
    error, reach = pl.col("error"), z * pl.col("error") / survival.log()
    limits = {".lower": survival ** (-reach).exp(), ".upper": survival ** reach.exp(), ".std_error": survival * error}
    known = steps.with_columns(pl.when(survival > 0).then(limit).alias(name) for name, limit in limits.items())
    table = known.rename({ACTUAL: ".eval_time", **{name: key.name for name, key in outer.items()}})
    names = [*(key.name for key in outer.values()), *(name for name in SURVIVAL_CURVE.columns if name in table.columns)]
    return source.restore(with_level(table.select(names), conf_level))


def checked_weights(weights: pl.Series, name: str) -> pl.Series:
    """Weights as floats, which are finite and not negative."""
    if not (weights.dtype.is_numeric() or weights.dtype == pl.Boolean):
        msg = f"`case_weights`: the column {name!r} is {weights.dtype}; weights must be numbers."
        raise WeightError(msg)
    floats = weights.cast(pl.Float64)
    if not (floats.is_finite() & (floats >= 0)).fill_null(value=False).all():
        msg = (
            f"`case_weights`: some values of {name!r} are missing, negative or not finite; weights must be finite and "
            "not negative. Fill or filter these rows first."
        )
        raise WeightError(msg)
    return floats


def kaplan_meier_of_censoring(
    time: Floats, event: Booleans, weight: Floats | None, *, are_rows: bool = False
) -> CensoringDistribution:
    """The probability to be uncensored after each time, from the rows that are still at risk.

    Weights may be numbers of rows; else their scale means nothing.
    """
    weight = np.ones(len(time)) if weight is None else weight
    times, position = np.unique(time, return_inverse=True)
    total = np.bincount(position, weight, len(times))
    censored = np.bincount(position, np.where(event, 0.0, weight), len(times))
    # those with an event at the same time are no longer at risk to be censored
    later = np.append(np.cumsum(total[:0:-1])[::-1], 0.0)
    steps = censored > 0
    left = later[steps] / (later[steps] + censored[steps])
    share = weight / max(weight.max(initial=0.0), sys.float_info.min)
    # the effective number of rows (Kish, 1965)
    rows = weight.sum() if are_rows else share.sum() ** 2 / max((share**2).sum(), 1.0)
    return CensoringDistribution(tuple(times[steps].tolist()), tuple(np.cumprod(left).tolist()), max(float(rows), 1.0))


def with_censoring_weights(
    frame: pl.LazyFrame, forecast: Forecast, time: Column, outer: Sequence[str], *, weighted: bool, by_row: bool
) -> pl.DataFrame:
    """The rows with their events and, if `weighted`, their censoring weights.

    Args:
        frame: The rows.
        forecast: The columns of survival times.
        time: The user's column of times.
        outer: The columns of outer groups.
        weighted: Whether censoring weights are needed at points.
        by_row: Whether they are needed at the time of each row.
    """
    if forecast.event is None:
        return frame.collect()
    rows = _with_event(frame.collect(), forecast.event, time)
    if by_row and isinstance(forecast.censoring, tuple):
        msg = (
            "`censoring` gives weights at evaluation times, but some metrics need them at the time of each event; give "
            "`censoring_distribution(…)` instead."
        )
        raise ArgumentError(msg)
    weights: dict[str, pl.Series] = {}
    if (weighted or by_row) and isinstance(forecast.censoring, tuple):
        weights = _given_weights(rows, forecast)
    elif weighted or by_row:
        weights = _estimated_weights(rows, forecast, outer)
    return rows.drop(*forecast.given_weights, *forecast.named_strata).with_columns(**weights)


def _with_event(rows: pl.DataFrame, event: Column, time: Column) -> pl.DataFrame:
    """The rows with events as truth values; rows without one have no time either."""
    dtype = rows.schema[EVENT]
    if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
        msg = f"`truth`: the column of events {event.name!r} is {dtype}; it must be Boolean, or 0 and 1."
        raise ColumnError(msg)
    if not (rows.schema[ACTUAL].is_numeric() or isinstance(rows.schema[ACTUAL], pl.Null)):
        msg = f"`truth`: the column of times {time.name!r} is {rows.schema[ACTUAL]}; it must hold numbers."
        raise ColumnError(msg)
    odd = [value for value in rows[EVENT].drop_nulls().unique().sort().to_list() if value not in (0, 1)]
    if odd:
        msg = f"`truth`: the column of events {event.name!r} holds {listed(odd)}; it must be Boolean, or 0 and 1."
        raise ColumnError(msg)
    times = rows[ACTUAL].cast(pl.Float64)
    low = times.min()
    if isinstance(low, float) and low < 0:
        msg = f"`truth`: the column of times {time.name!r} holds {low:g}; survival times are not negative."
        raise ColumnError(msg)
    if times.is_infinite().any():
        msg = f"`truth`: the column {time.name!r} holds infinite values; survival times are finite numbers."
        raise ColumnError(msg)
    known = pl.col(EVENT).is_not_null()
    return rows.with_columns(
        pl.when(known).then(pl.col(ACTUAL).cast(pl.Float64).fill_nan(None)).alias(ACTUAL),
        pl.col(EVENT).cast(pl.Boolean),
    )


def _contributions(rows: pl.DataFrame, forecast: Forecast) -> Iterator[tuple[str, float, pl.Series, pl.Series]]:
    """For each point the name of its weights, its time, and which rows had the event by then, or are still observed."""
    time = rows[ACTUAL]
    for name, point in zip(forecast.weight_names, forecast.points, strict=True):
        had_event = (time <= point) & rows[EVENT]
        yield name, point, had_event.fill_null(value=False), (time > point).fill_null(value=False)


def _given_weights(rows: pl.DataFrame, forecast: Forecast) -> dict[str, pl.Series]:
    """The user's censoring weights at points, 0 for rows that were censored before."""
    weights: dict[str, pl.Series] = {}
    points = zip(_contributions(rows, forecast), forecast.given_weights.items(), strict=True)
    for (name, point, had_event, is_later), (given, column) in points:
        if not rows.schema[given].is_numeric():
            msg = f"`censoring`: the column {column.name!r} is {rows.schema[given]}; weights must be numbers."
            raise WeightError(msg)
        weight, counted = rows[given].cast(pl.Float64), had_event | is_later
        if not (weight.is_finite() & (weight >= 0)).fill_null(value=False).filter(counted).all():
            msg = (
                f"`censoring`: some weights in {column.name!r} are missing, negative or not finite, of rows that are "
                f"not censored before {point:g}."
            )
            raise WeightError(msg)
        weights[name] = pl.select(pl.when(counted).then(weight).otherwise(0.0)).to_series()
    return weights


def _estimated_weights(rows: pl.DataFrame, forecast: Forecast, outer: Sequence[str]) -> dict[str, pl.Series]:
    """Censoring weights by a distribution that is given, or estimated in each outer group."""
    known = rows[ACTUAL].is_not_null().to_numpy()
    time = rows[ACTUAL].fill_null(0.0).to_numpy()
    event = rows[EVENT].fill_null(value=False).to_numpy()
    at_event = np.zeros(len(rows))
    points = list(_contributions(rows, forecast))
    of_points = {name: np.zeros(len(rows)) for name, *_ in points}
    for chosen in _groups(rows, [*outer, *forecast.named_strata]):
        own = chosen[known[chosen]]
        distribution = _distribution(forecast, time[own], event[own], rows, own)
        had_event = own[event[own]]
        at_event[had_event] = 1 / distribution.before(time[had_event])
        for name, point, had_event_by_then, is_later in points:
            weight = of_points[name]
            cases = own[had_event_by_then.to_numpy()[own]]
            weight[cases] = at_event[cases]
            weight[own[is_later.to_numpy()[own]]] = 1 / distribution.before(np.array([point]))[0]
            if distribution.ends_before(point):
                # nobody was followed for so long: what happened to those who were censored is not known
                weight[own] = np.nan
    columns = of_points | {EVENT_WEIGHT: at_event}
    return {name: pl.Series(weights) for name, weights in columns.items()}


def _distribution(
    forecast: Forecast, time: Floats, event: Booleans, rows: pl.DataFrame, chosen: Array
) -> CensoringDistribution:
    """The distribution of censoring times of some rows."""
    if isinstance(forecast.censoring, CensoringDistribution):
        return forecast.censoring
    for name in (WEIGHT, FREQUENCY):
        if name in rows.columns:
            weight = rows[name].cast(pl.Float64).to_numpy()[chosen]
            return kaplan_meier_of_censoring(time, event, weight, are_rows=name == FREQUENCY)
    return kaplan_meier_of_censoring(time, event, None)


def _groups(rows: pl.DataFrame, by: Sequence[str]) -> list[Any]:
    """The indices of the rows of each group of some columns."""
    if not by:
        return [np.arange(len(rows))]
    indices = rows.select(by).with_row_index("\0index").group_by(by).agg("\0index")["\0index"]
    return [group.to_numpy() for group in indices]
