"""Variation of numbers and scores from row to row, which differences of their means are measured in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tidyfair.audits.effect_sizes import Sample
from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.errors import ArgumentError
from tidyfair.evaluation import GROUP_CELL, LEVEL, NO_LEVEL, Evaluated, evaluate_specs
from tidyfair.intervals import ComparedGroups
from tidyfair.metrics.define import numeric_metric, prob_metric
from tidyfair.metrics.probability import mean_score, score_total
from tidyfair.metrics.regression import mean_prediction, mean_truth
from tidyfair.specs import ONE_LABEL, By, Options
from tidyfair.specs.formulas import Expr, Formula, Number, statistic
from tidyfair.tallies import Tally

_STATISTICS_OF_SCORES = (score_total,)
"""The statistics of other modules that formulas of this one read."""
_ROUNDED = 1e-12
"""The relative difference of sums of the same floats is smaller."""


@statistic
def score_square(score: Expr) -> Expr:
    """The square of the score."""
    return score**2


@numeric_metric()
def prediction_variation(estimate_variation: Number) -> Number:
    """Sum of the squared distances of the estimates from their mean."""
    return estimate_variation


@numeric_metric()
def variation_of_the_truth(truth_variation: Number) -> Number:
    """Sum of the squared distances of the truth from its mean."""
    return truth_variation


@prob_metric()
def score_variation(score_square: Number, score_total: Number, instances: Number) -> Number:
    """Sum of the squared distances of the scores from their mean."""
    variation = score_square - score_total**2 / instances
    # less than rounding errors of the sums is none
    return np.where(variation > _ROUNDED * score_square, variation, 0.0)


VARIATIONS: Mapping[Formula, Metric] = {
    mean_prediction.definition: prediction_variation, mean_truth.definition: variation_of_the_truth,
    mean_score.definition: score_variation,
}  # fmt: skip
"""The variation of what a metric is the mean of."""


def check_mean(metric: Metric, option: str) -> Metric:
    """The variation of what a metric is the mean of; refuse other metrics for an option."""
    variation = VARIATIONS.get(metric.definition)
    if variation is None:
        msg = (
            f"compare_groups(): `{option}` is for means of numbers and scores (mean_prediction, mean_truth, "
            f"mean_score), not for {metric.name}; make a column of what it is the mean of, and take its mean, or "
            "`standardized_differences(…)`."
        )
        raise ArgumentError(msg)
    return variation


def with_variation(metric: GroupwiseMetric) -> tuple[GroupwiseMetric, Metric]:
    """The variation within the groups of a metric, and that of all rows."""
    variation = check_mean(metric.metrics[0], 'scale="standardized"')
    within = replace(metric, name=f"{variation.name} by {metric.by.text}", metrics=(variation,))
    return within.with_policy(metric.policy.with_all_sizes()), variation


@dataclass(frozen=True)
class Variations:
    """The variation of a metric within the groups of a feature, and in all rows."""

    within: dict[tuple[int, int], Sample]
    """By outer group and the number of the group among those of the feature."""
    deviation: dict[int, float | None]
    """The standard deviation of all rows, by outer group."""

    @classmethod
    def of(cls, metric: GroupwiseMetric, tally: Tally, options: Options) -> Variations:
        """Work them out from a tally."""
        specs: Sequence[Any] = with_variation(metric)
        within: dict[tuple[int, int], Sample] = {}
        deviation: dict[int, float | None] = {}
        for evaluated in evaluate_specs(tally, specs, options):
            cells, group_cells = evaluated.evaluator.cells, evaluated.group_cells
            is_complete = cells.complete_in(metric.metrics[0].definition.reads)
            rows = evaluated.rows.filter(pl.col("rate").is_not_null(), pl.col(LEVEL) == NO_LEVEL)
            for number, spec in enumerate(evaluated.specs):
                (first, size), index = group_cells.spans[spec.by], group_cells.indices[spec.by].of_cell
                weight, square = (
                    np.bincount(index, np.where(is_complete, cells.measure(name), 0), size) for name in ("w", "w2")
                )
                for outer, cell, value in rows.filter(spec=number).select("outer", GROUP_CELL, "rate").rows():
                    own = cell - first
                    sample = Sample.weighted(math.nan, max(value, 0.0), float(weight[own]), float(square[own]))
                    if spec.by is None:
                        deviation[outer] = sample.deviation
                    else:
                        within[outer, own] = sample
        return cls(within, deviation)

    def samples(self, family: ComparedGroups, evaluated: Evaluated, by: By) -> list[Sample]:
        """The numbers of the groups of a family."""
        name, estimator = family.rows.select("name", "estimator").row(0)
        if family.level != NO_LEVEL or estimator not in ONE_LABEL:
            msg = (
                f"{name} is that of several labels, whose scores have no common standard deviation; read one, "
                "`pos_label=`."
            )
            raise ArgumentError(msg)
        first, _ = evaluated.group_cells.spans[by]
        rows = family.rows.select("estimate", GROUP_CELL).rows()
        return [replace(self.within[family.outer, cell - first], mean=mean) for mean, cell in rows]
