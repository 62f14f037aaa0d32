"""Metrics of prediction intervals and quantiles. A metric is its formula; parameters are sums over rows.

`instances` is the number (weight) of rows with truth and prediction. Quantities of a row read `truth`, and the ends
`lower` and `upper` of an interval with its nominal `level`, or the `quantile` at a `quantile_level`. The ends of an
interval are the quantiles that leave half of the rest on either side. In formulas, *l* and *u* are the ends, *λ* is the
level.
"""

from __future__ import annotations

import polars as pl

from tidyfair.metrics.define import interval_metric
from tidyfair.specs.formulas import Expr, Number, Rate, statistic

__all__ = [
    "interval_coverage",
    "interval_coverage_error",
    "interval_misses_above",
    "interval_misses_below",
    "interval_score",
    "interval_width",
    "quantile_coverage_error",
    "quantile_loss",
    "weighted_interval_score",
    "winkler_score",
]


# Quantities of a row


@statistic(flag=True)
def covered(truth: Expr, lower: Expr, upper: Expr) -> Expr:
    """1 where the truth lies in the interval, its ends included."""
    return ((truth >= lower) & (truth <= upper)).cast(pl.Float64)


@statistic
def covered_in_excess(truth: Expr, lower: Expr, upper: Expr, level: Expr) -> Expr:
    """1 where the truth lies in the interval, else 0; minus the nominal level."""
    return ((truth >= lower) & (truth <= upper)).cast(pl.Float64) - level


@statistic(flag=True)
def missed_below(truth: Expr, lower: Expr) -> Expr:
    """1 where the truth lies below the interval."""
    return (truth < lower).cast(pl.Float64)


@statistic(flag=True)
def missed_above(truth: Expr, upper: Expr) -> Expr:
    """1 where the truth lies above the interval."""
    return (truth > upper).cast(pl.Float64)


@statistic
def width(lower: Expr, upper: Expr) -> Expr:
    """The length of the interval."""
    return upper - lower


@statistic(tail=(4, 0))
def penalized_width(truth: Expr, lower: Expr, upper: Expr, level: Expr) -> Expr:
    """The length of the interval, and the distance of the truth from it, times 2 / (1 - level)."""
    distance = (lower - truth).clip(lower_bound=0) + (truth - upper).clip(lower_bound=0)
    return upper - lower + distance * (2 / (1 - level))


@statistic(tail=(4, 0))
def quantile_error(truth: Expr, quantile: Expr, quantile_level: Expr) -> Expr:
    """The error, tilted so that the quantile of the truth has the smallest sum."""
    gap = truth - quantile
    return pl.when(gap >= 0).then(quantile_level * gap).otherwise((quantile_level - 1) * gap)


@statistic
def below_quantile_in_excess(truth: Expr, quantile: Expr, quantile_level: Expr) -> Expr:
    """1 where the truth is at or below the quantile, else 0; minus the level of the quantile."""
    return (truth <= quantile).cast(pl.Float64) - quantile_level


# Intervals


@interval_metric(direction="maximize", range=(0, 1))
def interval_coverage(covered: Number, instances: Number) -> Rate:
    """Share of truths that lie in their prediction interval, its ends included; null without rows.

    It should be near the nominal level, from which `interval_coverage_error` is the distance.

    >>> interval_coverage.formula(covered=9, instances=10)
    0.9
    """
    return covered, instances


@interval_metric(direction="zero", range=(-1, 1))
def interval_coverage_error(covered_in_excess: Number, instances: Number) -> Rate:
    """Coverage minus the nominal level: below 0, intervals promise more than they hold; null without rows.

    >>> interval_coverage_error.formula(covered_in_excess=-1, instances=10)
    -0.1
    """
    return covered_in_excess, instances


@interval_metric(range=(0, 1))
def interval_misses_below(missed_below: Number, instances: Number) -> Rate:
    """Share of truths below their prediction interval; null without rows.

    >>> interval_misses_below.formula(missed_below=1, instances=10)
    0.1
    """
    return missed_below, instances


@interval_metric(range=(0, 1))
def interval_misses_above(missed_above: Number, instances: Number) -> Rate:
    """Share of truths above their prediction interval; null without rows.

    >>> interval_misses_above.formula(missed_above=1, instances=10)
    0.1
    """
    return missed_above, instances


@interval_metric()
def interval_width(width: Number, instances: Number) -> Rate:
    """Mean length of prediction intervals, in units of the truth; null without rows.

    >>> interval_width.formula(width=30, instances=10)
    3.0
    """
    return width, instances


@interval_metric()
def interval_score(penalized_width: Number, instances: Number) -> Rate:
    """Mean length of prediction intervals, and the distance of truths from them times 2 / (1 - level).

    The score of Winkler (1972) and Gneiting and Raftery (2007), in units of the truth: no other interval has a smaller
    expectation than the one between the true quantiles. Null without rows.

    >>> interval_score.formula(penalized_width=50, instances=10)
    5.0
    """
    return penalized_width, instances


winkler_score = interval_score.alias("winkler_score")


# Quantiles


@interval_metric()
def quantile_loss(quantile_error: Number, instances: Number) -> Rate:
    """Mean quantile (pinball) loss at each level (Koenker and Bassett, 1978), in units of the truth; null without rows.

    >>> quantile_loss.formula(quantile_error=6, instances=4)
    1.5
    """
    return quantile_error, instances


@interval_metric(direction="zero", range=(-1, 1))
def quantile_coverage_error(below_quantile_in_excess: Number, instances: Number) -> Rate:
    """Share of truths at or below the predicted quantile minus its level, at each level; null without rows.

    Above 0, quantiles are too high.

    >>> quantile_coverage_error.formula(below_quantile_in_excess=1, instances=10)
    0.1
    """
    return below_quantile_in_excess, instances


@interval_metric(over_points=True)
def weighted_interval_score(quantile_error: Number, instances: Number) -> Rate:
    """Twice the mean quantile loss over all levels (Bracher et al., 2021), in units of the truth; null without rows.

    With levels in pairs about the median it is the average of their interval scores, weighted by half of what lies
    outside of each, and of the absolute error of the median. With many levels it nears the continuous ranked
    probability score.

    >>> weighted_interval_score.formula(quantile_error=3, instances=4)
    1.5
    """
    return 2 * quantile_error, instances
