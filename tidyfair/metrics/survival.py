"""Metrics of survival times. A metric is its formula: of sums over rows, or a function of the rows of a group.

The truth is `survival.outcome("time", "event")`; the estimate is a predicted time, or a risk score. Survival
probabilities at evaluation times are a mapping, `probs={365: "column"}`, and results have a row for each of them, named
in `.eval_time`. `instances` is the number (weight) of rows. A row that is censored before an evaluation time says
nothing of it: the others stand for it by `censoring_weight`, one over the probability to be uncensored (just before the
event, of rows with an event by then; just before the evaluation time, of all later ones; 0 for rows that are censored
before). In formulas, *t* is the time, *s* the evaluation time, *S* the survival probability and *c* the censoring
weight.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import Status, Undefined
from tidyfair.evaluation import SurvivalSample
from tidyfair.metrics.define import array_metric, survival_metric
from tidyfair.metrics.pair_counts import concordant_pairs
from tidyfair.specs import number
from tidyfair.specs.formulas import Expr, Influence, Number, Rate, statistic

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = [
    "brier_survival",
    "brier_survival_integrated",
    "calibration_in_the_large_survival",
    "calibration_ratio_survival",
    "concordance_survival",
    "concordance_survival_uno",
    "roc_auc_survival",
    "roc_auc_survival_mean",
]


# Quantities of a row


@statistic
def squared_survival_error(time: Expr, survival: Expr, censoring_weight: Expr, eval_time: Expr) -> Expr:
    """Squared distance of the survival probability from 1 if the row survives the time, else from 0; weighted."""
    return censoring_weight * ((time > eval_time).cast(pl.Float64) - survival) ** 2


@statistic(at_last_point=True)
def uncensored(censoring_weight: Expr) -> Expr:
    """The censoring weight, 0 where the row is censored before the time.

    Where all rows are, they also are at every later time, because those with an event keep their weight.
    """
    return censoring_weight


@statistic
def event_by_time(time: Expr, censoring_weight: Expr, eval_time: Expr) -> Expr:
    """The censoring weight of rows with the event by the time."""
    return censoring_weight * (time <= eval_time).cast(pl.Float64)


@statistic
def predicted_event(survival: Expr) -> Expr:
    """The predicted probability of the event by the time."""
    return 1 - survival


# How well the order of predictions tells who survives longer


def _concordance(concordant: Array, comparable: Array) -> float:
    """The share of comparable pairs that are concordant."""
    pairs = float(comparable.sum())
    if pairs <= 0:
        raise Undefined(Status.NO_COMPARABLE_PAIRS)
    return float(concordant.sum()) / pairs


def _influence_of_pairs(
    sample: SurvivalSample, units: Array | None, *, risk: bool, of_events: Array | float = 1.0
) -> Influence:
    """Sampling variation of a concordance, from the pairs of each row or cluster (infinitesimal jackknife).

    Censoring weights count as known, which makes limits a little wider.
    """
    time, event = sample.columns["time"], sample.columns["event"]
    estimate, weight = _signed(sample.columns["estimate"], risk=risk), _ones(sample.weight, time)
    of_event = weight * of_events
    own = concordant_pairs(time, event, estimate, of_event, weight, both_sides=False)
    value = _concordance(*own)
    concordant, comparable = concordant_pairs(time, event, estimate, of_event, weight, both_sides=True)
    change = (concordant - value * comparable) / own[1].sum()
    units = np.arange(len(change)) if units is None else units
    of_unit: Array = np.bincount(units, change)
    # degrees of freedom are those that rows with the event leave
    events = np.bincount(units, np.where(event, of_event, 0.0))
    effective = float(events.sum() ** 2 / (events**2).sum())
    count = len(of_unit)
    of_unit = of_unit * (math.sqrt(count / (count - 1)) if count > 1 else math.nan)
    return Influence(of_unit, max(1.0, effective - 1))


def _signed(estimate: Array, *, risk: bool) -> Array:
    return -estimate if risk else estimate


def _influence_on_harrell(sample: SurvivalSample, units: Array | None, *, risk: bool, tau: float | None) -> Influence:
    """Sampling variation of Harrell's concordance."""
    of_events = _events_up_to(sample.columns["time"], 1.0, tau)
    return _influence_of_pairs(sample, units, risk=risk, of_events=of_events)


def _ones(weight: Array | None, like: Array) -> Array:
    return np.ones(len(like)) if weight is None else weight


@array_metric(kind="survival", influence=_influence_on_harrell)
def concordance_survival(
    time: Array, event: Array, estimate: Array, weight: Array | None = None, *, risk: bool = False,
    tau: float | None = None,
) -> float:  # fmt: skip
    """Share of comparable pairs in which the row that survives longer has the larger estimate (Harrell et al., 1982).

    A pair is comparable if one has the event before the other one's time, or at the time at which the other one is
    censored; ties of estimates count half. With `risk` the estimate is a risk: larger ones die sooner. It depends on
    the pattern of censoring, unlike `concordance_survival_uno`. `tau` leaves out pairs whose event is at that time or
    later. Null without comparable pairs.

    >>> concordance_survival.formula(time=[1, 2, 3, 4], event=[True, True, False, True], estimate=[2, 1, 4, 3])
    0.8
    """
    weight = _ones(weight, time)
    of_event = weight * _events_up_to(time, 1.0, tau)
    return _concordance(
        *concordant_pairs(time, event, _signed(estimate, risk=risk), of_event, weight, both_sides=False)
    )


def _events_up_to(time: Array, event_weight: Array | float, tau: float | None) -> Array:
    """The squared censoring weights of events before the time `tau`."""
    squared = np.broadcast_to(np.square(event_weight), time.shape)
    return squared if tau is None else np.where(time < number("tau", tau, 0), squared, 0.0)


def _influence_on_uno(sample: SurvivalSample, units: Array | None, *, risk: bool, tau: float | None) -> Influence:
    """Sampling variation of Uno's concordance."""
    of_events = _events_up_to(sample.columns["time"], sample.columns["event_weight"], tau)
    return _influence_of_pairs(sample, units, risk=risk, of_events=of_events)


@array_metric(kind="survival", influence=_influence_on_uno)
def concordance_survival_uno(
    time: Array,
    event: Array,
    event_weight: Array,
    estimate: Array,
    weight: Array | None = None,
    *,
    risk: bool = False,
    tau: float | None = None,
) -> float:
    """Concordance with pairs weighted by the squared censoring weight, which takes out censoring (Uno et al., 2011).

    The weight is that of the event, one over the probability to be uncensored just before. `tau` leaves out events at
    that time or later, where few are at risk and weights are large. With `risk` larger estimates die sooner. Null
    without comparable pairs.

    >>> rows = {"time": [1, 2, 3, 4], "event": [True, False, True, True], "estimate": [2, 1, 4, 3]}
    >>> concordance_survival_uno.formula(**rows, event_weight=[1, 0, 1.5, 1.5])
    0.38095238095238093
    """
    weight = _ones(weight, time)
    of_event = weight * _events_up_to(time, event_weight, tau)
    return _concordance(
        *concordant_pairs(time, event, _signed(estimate, risk=risk), of_event, weight, both_sides=False)
    )


# How well survival probabilities tell who has the event by a time


def _sides(sample: dict[str, Array], weight: Array) -> tuple[Array, Array, Array]:
    """The weights of rows with the event by the time and of later ones, and the index of the survival probability."""
    weighted = weight * sample["censoring_weight"]
    has_event = sample["time"] <= sample["eval_time"]
    _, rank = np.unique(sample["survival"], return_inverse=True)
    return np.where(has_event, weighted, 0.0), np.where(has_event, 0.0, weighted), rank


def _placements(cases: Array, others: Array, rank: Array) -> tuple[Array, Array, float]:
    """For each probability the share of the others above it and of the cases below it, ties half; and the area."""
    of_cases, of_others = (np.bincount(rank, side) for side in (cases, others))
    events, later = of_cases.sum(), of_others.sum()
    if events <= 0 or later <= 0:
        raise Undefined(Status.ONE_CLASS)
    above = 1 - (np.cumsum(of_others) - of_others / 2) / later
    below = (np.cumsum(of_cases) - of_cases / 2) / events
    return above, below, float(of_cases @ above) / float(events)


def _influence_on_roc_auc(sample: SurvivalSample, units: Array | None) -> Influence:
    """Sampling variation of the area at a time, from the ranks of each side in the other, given censoring weights."""
    cases, others, rank = _sides(dict(sample.columns), _ones(sample.weight, sample.columns["time"]))
    above, below, area = _placements(cases, others, rank)
    units = np.arange(len(rank)) if units is None else units
    of_cases, freedom_of_cases = _influence_of_side(cases, above[rank] - area, units)
    of_others, freedom_of_others = _influence_of_side(others, below[rank] - area, units)
    variances = np.array([(of_cases**2).sum(), (of_others**2).sum()])
    freedoms = np.array([freedom_of_cases, freedom_of_others])
    freedom = freedoms.min()
    if variances.any():
        # by Satterthwaite, from those of either side
        freedom = variances.sum() ** 2 / (variances**2 / freedoms).sum()
    return Influence(of_cases + of_others, float(freedom))


def _influence_of_side(weights: Array, distances: Array, units: Array) -> tuple[Array, float]:
    """The contributions of units to an area by their rows on one side, and its degrees of freedom.

    Args:
        weights: The weights of rows, 0 for those on the other side.
        distances: The share of the other side that each row is ahead of, minus the area.
        units: The unit of each row.
    """
    of_unit: Array = np.bincount(units, weights * distances / weights.sum())
    of_units = np.bincount(units, weights)
    count = np.count_nonzero(of_units)
    of_unit = of_unit * (math.sqrt(count / (count - 1)) if count > 1 else math.nan)
    freedom = of_units.sum() ** 2 / (of_units**2).sum() - 1
    return of_unit, max(float(freedom), 1.0)


@array_metric(kind="survival", influence=_influence_on_roc_auc)
def roc_auc_survival(
    time: Array,
    survival: Array,
    censoring_weight: Array,
    eval_time: Array,
    weight: Array | None = None,
) -> float:
    """Area under the ROC curve of those with the event by a time against those who survive it (Hung and Chiang, 2010).

    The probability that one of the former has the smaller survival probability, ties counting half; rows count with
    their censoring weights (Blanche et al., 2013). Null, as `one_class`, without events by the time or survivors.

    >>> rows = {"time": [1, 2, 3, 4], "survival": [0.1, 0.6, 0.4, 0.9], "censoring_weight": [1, 0, 1.5, 1.5]}
    >>> roc_auc_survival.formula(**rows, eval_time=[2.5] * 4)
    1.0
    """
    sides = {"time": time, "survival": survival, "censoring_weight": censoring_weight, "eval_time": eval_time}
    return _placements(*_sides(sides, _ones(weight, time)))[2]


@array_metric(kind="survival", over_points=True)
def roc_auc_survival_mean(
    time: Array,
    survival: Array,
    censoring_weight: Array,
    eval_time: Array,
    weight: Array | None = None,
) -> float:
    """Mean of the areas under the ROC curve at evaluation times, for one number where there are several times.

    An area weighs as much as the share of rows with the event between the time before and its own (Lambert and Chevret,
    2016), which is estimated with censoring weights. It needs two times or more. Null, as `one_class`, where one is.

    >>> rows = {"time": [1, 2, 3, 4], "survival": [[0.5, 0.1], [0.6, 0.5], [0.4, 0.3], [0.9, 0.8]]}
    >>> times = {"censoring_weight": [[1, 1]] * 4, "eval_time": [[1.5, 3.5]] * 4}
    >>> round(roc_auc_survival_mean.formula(**rows, **times), 3)
    0.889
    """
    weight, areas, with_event = _ones(weight, time), list[float](), [0.0]
    for point in range(eval_time.shape[1]):
        columns = {"survival": survival, "censoring_weight": censoring_weight, "eval_time": eval_time}
        cases, others, rank = _sides({"time": time} | {name: own[:, point] for name, own in columns.items()}, weight)
        areas.append(_placements(cases, others, rank)[2])
        with_event.append(float(cases.sum()))
    return float(np.average(areas, weights=np.diff(with_event)))


@survival_metric(direction="minimize", range=(0, math.inf), range_of_limits=(0, 1))
def brier_survival(squared_survival_error: Number, uncensored: Number, instances: Number) -> Rate:
    """Mean squared distance of survival probabilities from what happened by a time (Graf et al., 1999).

    Rows count with their censoring weights, and all rows in the denominator, so that a small group with large weights
    may be above 1. Null where all rows are censored before the time.

    >>> brier_survival.formula(squared_survival_error=2, uncensored=9, instances=10)
    0.2
    """
    return squared_survival_error, np.where(uncensored == 0, 0.0, instances)


@survival_metric(direction="minimize", range=(0, math.inf), range_of_limits=(0, 1), over_points=True)
def brier_survival_integrated(squared_survival_error: Number, uncensored: Number, instances: Number) -> Rate:
    """Integral of the Brier score over evaluation times by trapezoids, over the last of them (Graf et al., 1999).

    As in yardstick it is divided by the last time, not by the distance of the last from the first. It needs two times
    or more. Null where all rows are censored before the last.

    >>> brier_survival_integrated.formula(squared_survival_error=2, uncensored=9, instances=10)
    0.2
    """
    return squared_survival_error, np.where(uncensored == 0, 0.0, instances)


# How well survival probabilities fit on average


@survival_metric(direction="zero", range=(-math.inf, math.inf), range_of_limits=(-1, 1))
def calibration_in_the_large_survival(
    predicted_event: Number, event_by_time: Number, uncensored: Number, instances: Number
) -> Rate:
    """Mean predicted probability of the event by a time, minus the share of rows that have it by then.

    The share is estimated with censoring weights. Above 0, risks are overestimated. Null where all rows are censored
    before the time.

    >>> calibration_in_the_large_survival.formula(predicted_event=5, event_by_time=4, uncensored=9, instances=10)
    0.1
    """
    return predicted_event - event_by_time, np.where(uncensored == 0, 0.0, instances)


@survival_metric(direction="one", range=(0, math.inf))
def calibration_ratio_survival(event_by_time: Number, uncensored: Number, predicted_event: Number) -> Rate:
    """Events by a time, estimated with censoring weights, over their expected number, the sum of probabilities.

    Null where all rows are censored before the time, or nothing is expected.

    >>> calibration_ratio_survival.formula(event_by_time=4, uncensored=9, predicted_event=5)
    0.8
    """
    return event_by_time, np.where(uncensored == 0, 0.0, predicted_event)
