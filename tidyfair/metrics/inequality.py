"""Inequality of benefits. A metric is its formula, over sums that merge.

The benefit of a person is estimate - truth + 1 (Speicher et al., 2018): 0 for a false negative, 2 for a false positive,
1 for a correct prediction; for a probability, any value in between. For numbers, `benefit=` defines it. Each metric has
a formula for each kind of predictions: labels; scores, if `probs=` is given without labels; numbers, if `benefit=` is
set. `overall_` statistics are those of all groups together.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.calling import metric_tweak
from tidyfair.errors import ArgumentError, Status
from tidyfair.metrics.define import class_metric, numeric_metric, prob_metric
from tidyfair.specs import check_alpha, entropy_index, entropy_within, powered
from tidyfair.specs.formulas import Expr, Number, Rate, statistic

__all__ = [
    "benefit_variation",
    "generalized_entropy_index",
    "inequality_within",
    "mean_benefit",
    "mean_log_deviation",
    "theil_index",
]

_Sums: TypeAlias = tuple[Number, Number, Number, Number]
_Benefit: TypeAlias = Literal["ratio", "difference", "amount"]


# Benefits


def _benefit_sums(tp: Number, fp: Number, fn: Number, tn: Number, alpha: float) -> _Sums:
    """The sums of a generalized entropy: of ones, of benefits, of their powers, and of those without benefit."""
    alpha = check_alpha(alpha)
    right, double = tp + tn, {0.0: math.log(2), 1.0: 2 * math.log(2)}
    power = fp * double[alpha] if alpha in double else right + fp * 2.0**alpha
    return right + fp + fn, right + 2 * fp, power, fn


@statistic
def score_benefit(truth: Expr, score: Expr) -> Expr:
    """Benefit of a probability."""
    return score - truth + 1


@statistic
def score_power(truth: Expr, score: Expr, *, alpha: float = 2) -> Expr:
    """Power of the benefit, as a generalized entropy sums it."""
    return powered(score - truth + 1, alpha)


@statistic
def score_without(truth: Expr, score: Expr) -> Expr:
    """1 where the benefit is zero."""
    return (score - truth + 1 <= 0).cast(pl.Float64)


def _benefit_of_number(truth: Expr, estimate: Expr, benefit: _Benefit) -> tuple[Expr, Expr]:
    """The benefit that a number gives (0 where that is negative or unknown), and whether it is possible."""
    kinds = {"ratio": estimate / truth, "difference": estimate - truth + 1, "amount": estimate}
    if benefit not in kinds:
        raise ArgumentError.not_one_of("benefit", benefit, kinds)
    # a ratio to nothing is none, and neither is one of two debts
    possible = (kinds[benefit] >= 0) & ((truth > 0) | (benefit != "ratio"))
    return pl.when(possible).then(kinds[benefit]).otherwise(0.0), possible


def _if_possible(value: Number, impossible: Number) -> Number:
    return np.where(impossible == 0, value, np.nan)


@statistic
def number_benefit(truth: Expr, estimate: Expr, *, benefit: _Benefit = "ratio") -> Expr:
    """Benefit of a number."""
    return _benefit_of_number(truth, estimate, benefit)[0]


@statistic
def number_power(truth: Expr, estimate: Expr, *, alpha: float = 2, benefit: _Benefit = "ratio") -> Expr:
    """Power of the benefit, as a generalized entropy sums it."""
    return powered(_benefit_of_number(truth, estimate, benefit)[0], alpha)


@statistic
def number_without(truth: Expr, estimate: Expr, *, benefit: _Benefit = "ratio") -> Expr:
    """1 where the benefit is zero."""
    return (_benefit_of_number(truth, estimate, benefit)[0] <= 0).cast(pl.Float64)


@statistic
def number_impossible(truth: Expr, estimate: Expr, *, benefit: _Benefit = "ratio") -> Expr:
    """1 where a number is not a valid benefit, because it is negative or a ratio to 0."""
    return 1 - _benefit_of_number(truth, estimate, benefit)[1].cast(pl.Float64)


# Mean benefit


@class_metric(constant_average=True, direction="one", range=(0, 2))
def mean_benefit(tp: Number, fp: Number, fn: Number, tn: Number) -> Rate:
    """Mean benefit: 1 if as many positives are predicted as occur, above 1 if more are; null without rows.

    Of scores (`probs=` without `estimate=`), the mean of score - truth + 1. Of numbers, with `benefit`, the mean of
    their `"ratio"` (estimate / truth), of their `"difference"` plus 1, or of the estimate (`"amount"`); null where a
    benefit is negative or a ratio to nothing.

    >>> mean_benefit.formula(tp=3, fp=1, fn=2, tn=4)
    0.9
    """
    return tp + tn + 2 * fp, tp + fp + fn + tn


@prob_metric(direction="one", range=(0, 2), constant_average=True)
def _mean_benefit_of_scores(score_benefit: Number, instances: Number) -> Rate:
    """Mean of score - truth + 1: 1 where scores are right on average; null without rows.

    >>> mean_benefit.formula(score_benefit=9, instances=10)
    0.9
    """
    return score_benefit, instances


@numeric_metric(direction="one", undefined=Status.NO_POSITIVE_BENEFITS)
def _mean_benefit_of_numbers(
    number_benefit: Number, number_impossible: Number, instances: Number, *, benefit: _Benefit = "ratio"
) -> Number:
    """Mean of estimate / truth; with `benefit`, of their `"difference"` plus 1, or of the estimate (`"amount"`).

    Null without rows, or where a benefit is negative or a ratio to nothing.

    >>> mean_benefit.formula(number_benefit=9, number_impossible=0, instances=10)
    0.9
    """
    del benefit  # the statistics take it
    return _if_possible(number_benefit / instances, number_impossible)


mean_benefit = mean_benefit.with_readings(_mean_benefit_of_scores, _mean_benefit_of_numbers)


# Inequality


@class_metric(direction="minimize", range=(0, math.inf), undefined_levels="null", undefined=Status.NO_POSITIVE_BENEFITS)
def generalized_entropy_index(tp: Number, fp: Number, fn: Number, tn: Number, *, alpha: float = 2) -> Number:
    """Inequality of benefits: 0 if all are equal, no upper bound; errors of either kind make it larger.

    `alpha` 1 is Theil's index, 0 the mean logarithmic deviation; the larger, the more false positives count. Null where
    all are false negatives, infinite where some are and `alpha` is 0 or less. Scores (`probs=` without `estimate=`) and
    numbers (with `benefit`) are read as in `mean_benefit`. Speicher et al. (2018), A unified approach to
    quantifying algorithmic unfairness.

    >>> generalized_entropy_index.formula(tp=1, fp=1, fn=1, tn=1)
    0.25
    """
    return entropy_index(alpha, *_benefit_sums(tp, fp, fn, tn, alpha))


@prob_metric(direction="minimize", range=(0, math.inf), undefined=Status.NO_POSITIVE_BENEFITS)
def _generalized_entropy_index_of_scores(
    score_benefit: Number, score_power: Number, score_without: Number, instances: Number, *, alpha: float = 2
) -> Number:
    """Inequality of the benefits that probabilities give: 0 when all get the same, unbounded.

    As `generalized_entropy_index`, of score - truth + 1.

    >>> generalized_entropy_index.formula(score_benefit=4, score_power=6, score_without=1, instances=4)
    0.25
    """
    return entropy_index(alpha, instances, score_benefit, score_power, score_without)


@numeric_metric(undefined=Status.NO_POSITIVE_BENEFITS)
def _generalized_entropy_index_of_numbers(
    number_benefit: Number, number_power: Number, number_without: Number, number_impossible: Number, instances: Number,
    *, alpha: float = 2, benefit: _Benefit = "ratio",
) -> Number:  # fmt: skip
    """Inequality of the benefits that numbers give: 0 when all get the same, unbounded.

    As `generalized_entropy_index`, of estimate / truth; with `benefit`, of their `"difference"` plus 1, or of the
    estimate alone (`"amount"`). Null where a benefit is negative or a ratio to nothing.

    >>> generalized_entropy_index.formula(
    ...     number_benefit=4, number_power=6, number_without=1, number_impossible=0, instances=4
    ... )
    0.25
    """
    del benefit  # the statistics take it
    return _if_possible(
        entropy_index(alpha, instances, number_benefit, number_power, number_without), number_impossible
    )


generalized_entropy_index = generalized_entropy_index.with_readings(
    _generalized_entropy_index_of_scores, _generalized_entropy_index_of_numbers
)
theil_index = metric_tweak(generalized_entropy_index, "theil_index", alpha=1)
mean_log_deviation = metric_tweak(generalized_entropy_index, "mean_log_deviation", alpha=0)


@class_metric(direction="minimize", range=(0, math.inf), undefined_levels="null", undefined=Status.NO_POSITIVE_BENEFITS)
def benefit_variation(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Coefficient of variation of benefits: their standard deviation over their mean; null where the mean is 0.

    It is √(2 E) of the generalized entropy E of `alpha` 2.

    >>> benefit_variation.formula(tp=0, fp=1, fn=1, tn=0)
    1.0
    """
    return np.sqrt(2 * entropy_index(2, *_benefit_sums(tp, fp, fn, tn, 2)))


# Inequality within groups


@class_metric(direction="minimize", range=(0, math.inf), undefined_levels="null", undefined=Status.NO_POSITIVE_BENEFITS)
def inequality_within(
    tp: Number, fp: Number, fn: Number, tn: Number, overall_mean_benefit: Number, *, alpha: float = 2
) -> Number:
    """Contribution of the inequality within a group to that of all: its index times (mean / overall mean)**alpha.

    The mean over groups, weighted by their size, is the within-group part of the generalized entropy. Null where all
    benefits are 0. Scores and numbers are read as in `mean_benefit`.

    >>> inequality_within.formula(tp=1, fp=1, fn=1, tn=1, overall_mean_benefit=1)
    0.25
    """
    return entropy_within(alpha, *_benefit_sums(tp, fp, fn, tn, alpha), overall_mean_benefit)


@prob_metric(direction="minimize", range=(0, math.inf), undefined=Status.NO_POSITIVE_BENEFITS)
def _inequality_within_of_scores(
    score_benefit: Number, score_power: Number, score_without: Number, instances: Number,
    overall_mean_benefit: Number, *, alpha: float = 2,
) -> Number:  # fmt: skip
    """Contribution of the inequality inside a group to that of all, as `inequality_within`, of probabilities.

    >>> inequality_within.formula(
    ...     score_benefit=4, score_power=6, score_without=1, instances=4, overall_mean_benefit=1
    ... )
    0.25
    """
    own = (instances, score_benefit, score_power, score_without)
    return entropy_within(alpha, *own, overall_mean_benefit)


@numeric_metric(undefined=Status.NO_POSITIVE_BENEFITS)
def _inequality_within_of_numbers(
    number_benefit: Number, number_power: Number, number_without: Number, number_impossible: Number, instances: Number,
    overall_mean_benefit: Number, *, alpha: float = 2, benefit: _Benefit = "ratio",
) -> Number:  # fmt: skip
    """Contribution of the inequality inside a group to that of all, as `inequality_within`, of numbers.

    >>> inequality_within.formula(
    ...     number_benefit=4, number_power=6, number_without=1, number_impossible=0, instances=4,
    ...     overall_mean_benefit=1,
    ... )
    0.25
    """
    del benefit  # the statistics take it
    own = (instances, number_benefit, number_power, number_without)
    return _if_possible(entropy_within(alpha, *own, overall_mean_benefit), number_impossible)


inequality_within = inequality_within.with_readings(_inequality_within_of_scores, _inequality_within_of_numbers)
