"""Limits of expected calibration errors: sums of the distances of bins from calibration.

A distance is never below 0, so that chance makes it larger, and most where there is none. What is normal is the gap of
a bin with its sign, whose error is known; from these follow limits that hold whatever the true gaps are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidyfair.evaluation import Evaluator, Level, Rows, rows_of, rows_with_weight, weight_shares
from tidyfair.intervals.estimates import Estimates
from tidyfair.intervals.proportions import Limits, bracket, student_limits
from tidyfair.specs import Array, Average, Booleans, By, Floats, Integers, MeanOfLabels
from tidyfair.specs.formulas import RowExpression

_MEAN = math.sqrt(2 / math.pi)
"""The mean distance of a normal variable from its mean, in standard errors."""
_CERTAIN = 2.5
"""The standard errors from which the sign of a gap is certain, so that chance does not make its distance larger."""
_HALVINGS = 30
_ROUNDED = 1e-9
"""Rounding of a number of rows."""


def calibration_error_limits(gap: Floats, error: Floats, total_error: Floats, z: float | Floats) -> Limits:
    """Limits of the sums of the distances of bins, from gaps and their standard errors: arrays of values by bins.

    By the triangle inequality chance adds no more to a sum than the distances that it makes itself, which is the lower
    limit. It adds least where gaps go with their errors (the mean of a folded normal variable is convex in that of the
    normal one: Leone et al., 1961), which is the upper limit. `total_error` is the standard error of the sum if all
    signs are certain: more than the errors of bins say where these vary together.
    """
    from scipy.special import ndtr

    distance, each, squares = np.abs(gap).sum(axis=1), error.sum(axis=1), (error**2).sum(axis=1)
    certain = np.abs(gap) > _CERTAIN * error
    unsure = np.where(certain, 0.0, error)
    half = z * total_error
    with np.errstate(divide="ignore", invalid="ignore"):
        # the part of the variance that is left where signs are unsure
        left = np.sqrt(1 - _MEAN**2 * (unsure**2).sum(axis=1) / squares)
        lower = distance - _MEAN * unsure.sum(axis=1) - half * left

        def is_below(middle: Floats) -> Booleans:
            """Mask of the sums that are larger than is likely of gaps of so many standard errors."""
            mean = _MEAN * np.exp(-(middle**2) / 2) + middle * (2 * ndtr(middle) - 1)
            return mean * each - half * np.sqrt(1 + middle**2 - mean**2) < distance

        _, high = bracket(is_below, np.zeros_like(distance), (distance + half) / each, _HALVINGS)
    return np.maximum(lower, 0.0), high * each


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationErrors(Estimates):
    """Sums of the distances of bins from calibration, which chance makes larger."""

    kind = "calibration_error"
    value: Floats
    error: Floats
    """The standard error of the sum if all signs are certain; nan where it is unknown."""
    gap: Floats
    """The share of events less the mean score, times the share of rows: values by bins.

    Where values are averages over labels, the bins are those of all labels.
    """
    errors_of_gaps: Floats
    freedom: Floats
    """The degrees of freedom of errors: infinite for rows, those of clusters otherwise."""

    @classmethod
    def of(cls, evaluator: Evaluator, formula: RowExpression, average: Average, by: By | None) -> CalibrationErrors:
        """The values of a formula in the groups of a `by`, by groups and labels."""
        labels = evaluator.labels
        rows = rows_of(evaluator.tally, labels, evaluator.group_cells, by, formula.reads)
        levels = [Level(level, evaluator.reading.scores.get(level, "")) for level in labels.levels]
        scores = [_Scores(rows, rows.event(level.label), rows.score(level.score)) for level in levels]
        # an average over labels has the bins of all of them
        values = [[own] for own in scores] if average.by_label else [scores]
        weighted = isinstance(average, MeanOfLabels) and average.by_frequency
        groups, bins = len(rows.outer_of_group_cell), dict[str, Any](formula.options)["bins"]
        gap, errors = np.zeros((2, groups * len(values), len(values[0]) * bins))
        error, freedom = np.full((2, groups * len(values)), np.nan)
        for group, counted, weight, _, units in rows_with_weight(rows):
            share = np.ones(len(counted)) if weight is None else weight
            share = share / share.sum()
            for number, own in enumerate(values, group * len(values)):
                of_bins, errors_of_bins, error[number], freedom[number] = _gaps_of_group(
                    formula, own, counted, share, units, bins, weighted=weighted
                )
                gap[number], errors[number] = of_bins.ravel(), errors_of_bins.ravel()
        return cls(np.abs(gap).sum(axis=1), error, gap, errors, freedom)

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all errors, which include the values: debiased ones may be below 0."""
        factor = student_limits(z, self.freedom)
        lower, upper = calibration_error_limits(self.gap, self.errors_of_gaps, self.error, factor)
        return np.minimum(lower, self.value), np.maximum(upper, self.value)


@dataclass(frozen=True, eq=False)
class _Scores:
    """The events and scores of all rows for a label."""

    rows: Rows
    event: Booleans
    score: Floats

    @cached_property
    def percentile(self) -> Floats:
        """The share at or below each score in its outer group."""
        return weight_shares(self.score, self.rows.weight, self.rows.outer)

    @cached_property
    def own_percentile(self) -> Floats:
        """The share at or below each score in its group."""
        return weight_shares(self.score, self.rows.weight, self.rows.group_cell)

    def bins(self, formula: RowExpression, chosen: Array) -> Integers:
        """The bins of the rows of a group."""

        def percentiles(edges: str) -> pl.Series:
            return pl.Series((self.percentile if edges == "common" else self.own_percentile)[chosen])

        bins_of: Any = formula.bins_of
        bins = bins_of(pl.Series(self.score[chosen]), percentiles, **dict[str, Any](formula.options))
        return bins.cast(pl.Int64).to_numpy()


def _gaps_of_group(
    formula: RowExpression, labels: Sequence[_Scores], chosen: Array, share: Floats, units: Array | None, bins: int,
    *, weighted: bool,
) -> tuple[Floats, Floats, float, float]:  # fmt: skip
    """The gaps of a group and their errors, arrays of labels by bins; the error of their sum, and its freedom.

    `share` is that of some rows in the weight; labels count alike, or `weighted` by their events.
    """
    unit = np.arange(len(chosen)) if units is None else units
    of_units = np.bincount(unit, share)
    number = 1 / float((of_units**2).sum())
    # the influence of units on the sum if all signs are certain
    influence, squares = np.zeros(len(of_units)), 0.0
    gap, variance = np.zeros((2, len(labels), bins))
    for label, own in enumerate(labels):
        event, score, bin_of = own.event[chosen], own.score[chosen], own.bins(formula, chosen)
        weight = share * (share[event].sum() if weighted else 1 / len(labels))
        off, by_chance = weight * (event - score), weight**2 * score * (1 - score)
        # the sums of units in each bin
        cell, of_rows = unit * bins + bin_of, (off**2).sum()
        if units is not None:
            cell, position = np.unique(cell, return_inverse=True)
            off = np.bincount(position, off)
        own_unit, own_bin = np.divmod(cell, bins)
        gap[label] = np.bincount(own_bin, off, bins)
        squares += (off**2).sum()
        seen = (np.bincount(own_bin, off**2, bins) - gap[label] ** 2 / number).clip(min=0)
        # few rows of a bin show too little; those of a cluster vary together
        chance = np.bincount(bin_of, by_chance, bins) * _times_more((off**2).sum(), of_rows)
        variance[label] = np.maximum(seen * (number / (number - 1) if number > 1 + _ROUNDED else math.nan), chance)
        influence += np.bincount(own_unit, np.sign(gap[label])[own_bin] * off, len(influence))
    # bins of independent rows vary apart; those of clusters, and of several labels, together
    total = variance.sum() * _times_more((influence**2).sum(), squares)
    freedom = math.inf if units is None else number - 1
    return gap, np.sqrt(variance), math.sqrt(total) if total > 0 else math.nan, freedom


def _times_more(together: float, apart: float) -> float:
    """The factor by which the variance of parts is larger because they vary together; 1 at least."""
    return max(1.0, together / apart) if apart > 0 else 1.0
