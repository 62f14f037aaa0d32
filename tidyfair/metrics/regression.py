"""Metrics of predicted numbers. A metric is its formula; parameters are sums over rows, or the rows themselves.

`instances` is the number (weight) of rows with truth and prediction, `weight_squares` the sum of their squared weights;
means and variation (sums of squared distances from the mean, and `covariation` of products) are summed about a center,
so that large means lose no digits; `truth_minimum` and `truth_maximum` are the ends of the truth. Formulas over rows
read `truth`, `estimate`, `weight` (1 without weights) and the flag `weighted`. Errors are truth minus estimate, except
for `residual_bias`.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from tidyfair.errors import Status
from tidyfair.metrics.define import numeric_metric
from tidyfair.specs import number, value_at, whole
from tidyfair.specs.formulas import Expr, ExprRate, Number, Rate, statistic

__all__ = [
    "ccc",
    "gini_coef",
    "huber_loss",
    "huber_loss_pseudo",
    "iic",
    "mae",
    "mape",
    "mase",
    "mean_prediction",
    "mean_truth",
    "median_absolute_error",
    "mpe",
    "msd",
    "mse",
    "pinball_loss",
    "poisson_log_loss",
    "prediction_total",
    "ratio_of_means",
    "residual_bias",
    "rmse",
    "rmse_relative",
    "rpd",
    "rpiq",
    "rsq",
    "rsq_trad",
    "smape",
    "squared_shift",
]

_SMALLEST_RATE = 1e-15
_SLACK = 1e-12
_SHIFT = 10
"""Smallest number for Stirling's series of the factorial; smaller ones are derived by division."""


# Quantities of a row


@statistic
def error(truth: Expr, estimate: Expr) -> Expr:
    """Truth minus estimate."""
    return truth - estimate


@statistic(tail=(4, 0))
def absolute_error(truth: Expr, estimate: Expr) -> Expr:
    """Distance of truth and estimate."""
    return (truth - estimate).abs()


@statistic(tail=(12, 4))
def square_error(truth: Expr, estimate: Expr) -> Expr:
    """Squared distance of truth and estimate."""
    return (truth - estimate) ** 2


@statistic
def relative_error(truth: Expr, estimate: Expr) -> Expr:
    """Error over truth."""
    return (truth - estimate) / truth


@statistic(tail=(4, 0))
def absolute_relative_error(truth: Expr, estimate: Expr) -> Expr:
    """Size of the error over the truth."""
    return ((truth - estimate) / truth).abs()


@statistic
def symmetric_relative_error(truth: Expr, estimate: Expr) -> Expr:
    """Distance over the mean size of truth and estimate."""
    return (truth - estimate).abs() / ((truth.abs() + estimate.abs()) / 2)


@statistic(tail=(4, 0))
def huber(truth: Expr, estimate: Expr, *, delta: float = 1.0) -> Expr:
    """Half the squared error, linear beyond delta."""
    size = (truth - estimate).abs()
    return pl.when(size <= delta).then(size**2 / 2).otherwise(delta * (size - delta / 2))


@statistic(tail=(4, 0))
def pseudo_huber(truth: Expr, estimate: Expr, *, delta: float = 1.0) -> Expr:
    """A smooth form of half the squared error that is linear far beyond delta."""
    return delta**2 * ((1 + ((truth - estimate) / delta) ** 2).sqrt() - 1)


@statistic(tail=(4, 0))
def pinball(truth: Expr, estimate: Expr, *, quantile: float = 0.5) -> Expr:
    """Error, tilted so that a quantile of the truth has the smallest sum."""
    gap = truth - estimate
    return pl.when(gap >= 0).then(quantile * gap).otherwise((quantile - 1) * gap)


@statistic
def overestimate(truth: Expr, estimate: Expr) -> Expr:
    """The distance of the estimate above the truth, 0 if it is below."""
    return (estimate - truth).clip(lower_bound=0)


@statistic
def underestimate(truth: Expr, estimate: Expr) -> Expr:
    """The distance of the estimate below the truth, 0 if it is above."""
    return (truth - estimate).clip(lower_bound=0)


@statistic
def overestimated(truth: Expr, estimate: Expr) -> Expr:
    """1 where the estimate lies above the truth."""
    return (estimate > truth).cast(pl.Float64)


@statistic
def poisson_surprise(truth: Expr, estimate: Expr) -> Expr:
    """Negative logarithm of the Poisson probability of a count; NaN if it is not a count."""
    count = truth.floor()
    rate = estimate.clip(lower_bound=_SMALLEST_RATE)
    high = count + 1 + _SHIFT
    below = count + 1
    for step in range(1, _SHIFT):
        below = below * (count + 1 + step)
    factorial = (high - 0.5) * high.log() - high + math.log(2 * math.pi) / 2 + _stirling(high) - below.log()
    of_few = rate - count * rate.log() + factorial
    # of many the logarithms are much larger than what is left of them, so they are taken of the ratio
    off = (rate - count) / count
    logarithm = pl.when(off.abs() < 1 / 2).then(off.log1p()).otherwise((rate / count).log())
    of_many = count * (off - logarithm) + (2 * math.pi * count).log() / 2 + _stirling(count)
    return pl.when(truth >= _SHIFT).then(of_many).when(truth >= 0).then(of_few).otherwise(math.nan)


def _stirling(count: Expr) -> Expr:
    """The last terms of Stirling's series of the logarithm of a factorial."""
    return 1 / (12 * count) - 1 / (360 * count**3) + 1 / (1260 * count**5) - 1 / (1680 * count**7)


# Errors on average


@numeric_metric()
def mae(absolute_error: Number, instances: Number) -> Rate:
    """Mean absolute error, in units of the truth; null without rows.

    >>> mae.formula(absolute_error=6, instances=4)
    1.5
    """
    return absolute_error, instances


@numeric_metric()
def mse(square_error: Number, instances: Number) -> Rate:
    """Mean squared error, in squared units of the truth; null without rows.

    >>> mse.formula(square_error=6, instances=4)
    1.5
    """
    return square_error, instances


@numeric_metric()
def rmse(mse: Number) -> Number:
    """Root of the mean squared error, in units of the truth; null without rows.

    >>> rmse.formula(mse=2.25)
    1.5
    """
    return np.sqrt(mse)


@numeric_metric(undefined=Status.CONSTANT)
def rmse_relative(rmse: Number, truth_minimum: Number, truth_maximum: Number) -> Rate:
    """Root mean squared error over the range of the truth; null where the truth is constant.

    >>> rmse_relative.formula(rmse=1.5, truth_minimum=2, truth_maximum=8)
    0.25
    """
    return rmse, truth_maximum - truth_minimum


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def msd(error: Number, instances: Number) -> Rate:
    """Mean signed difference, truth minus estimate, in units of the truth; null without rows.

    >>> msd.formula(error=-2, instances=4)
    -0.5
    """
    return error, instances


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def residual_bias(error: Number, instances: Number) -> Rate:
    """Mean distance of estimates above the truth, in its units: the negative of `msd`; null without rows.

    >>> residual_bias.formula(error=-2, instances=4)
    0.5
    """
    return -error, instances


@numeric_metric()
def mape(absolute_relative_error: Number, instances: Number) -> Rate:
    """Mean absolute error relative to the truth, in percent.

    Infinite where a truth is 0, null where its estimate is 0 too, and without rows.

    >>> mape.formula(absolute_relative_error=1, instances=4)
    25.0
    """
    return 100 * absolute_relative_error, instances


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def mpe(relative_error: Number, instances: Number) -> Rate:
    """Mean signed error relative to the truth, in percent.

    Infinite where a truth is 0, null where its estimate is 0 too, and without rows.

    >>> mpe.formula(relative_error=-1, instances=4)
    -25.0
    """
    return 100 * relative_error, instances


@numeric_metric(range=(0, 200))
def smape(symmetric_relative_error: Number, instances: Number) -> Rate:
    """Mean absolute error relative to the mean size of truth and estimate, in percent; null where both are 0.

    >>> smape.formula(symmetric_relative_error=1, instances=4)
    25.0
    """
    return 100 * symmetric_relative_error, instances


@numeric_metric()
def huber_loss(huber: Number, instances: Number, *, delta: float = 1.0) -> Rate:
    """Mean of half the squared error, linear beyond `delta` (Huber, 1964); null without rows.

    >>> huber_loss.formula(huber=6, instances=4)
    1.5
    """
    number("delta", delta, 0, inside=True)
    return huber, instances


@numeric_metric()
def huber_loss_pseudo(pseudo_huber: Number, instances: Number, *, delta: float = 1.0) -> Rate:
    """A smooth form of the Huber loss (Hartley and Zisserman, 2003); null without rows.

    >>> huber_loss_pseudo.formula(pseudo_huber=6, instances=4)
    1.5
    """
    number("delta", delta, 0, inside=True)
    return pseudo_huber, instances


@numeric_metric()
def pinball_loss(pinball: Number, instances: Number, *, quantile: float = 0.5) -> Rate:
    """Mean quantile loss of estimates of a `quantile` of the truth (Koenker and Bassett, 1978); null without rows.

    >>> pinball_loss.formula(pinball=6, instances=4)
    1.5
    """
    number("quantile", quantile, 0, 1)
    return pinball, instances


@numeric_metric(undefined=Status.NEGATIVE_TRUTH, range=(-math.inf, math.inf))
def poisson_log_loss(poisson_surprise: Number, instances: Number) -> Rate:
    """Mean negative logarithm of the Poisson probability of the truth, rounded down; null where one is negative.

    >>> poisson_log_loss.formula(poisson_surprise=6, instances=4)
    1.5
    """
    return poisson_surprise, instances


def _weighted_median(values: Expr, weight: Expr) -> Expr:
    """Halfway between the values at which half of the weight is reached and passed."""
    kept = weight > 0
    order = values.filter(kept).sort()
    weights = weight.sort_by(values)
    share = weights.filter(weights > 0).cum_sum() / weight.sum()
    return (order.filter(share >= 1 / 2 - _SLACK).first() + order.filter(share > 1 / 2 + _SLACK).first()) / 2


@numeric_metric()
def median_absolute_error(truth: Expr, estimate: Expr, weight: Expr) -> Expr:
    """Median of the absolute errors, in units of the truth; null without rows.

    >>> median_absolute_error.formula(truth=[1, 2, 3], estimate=[1, 4, 4], weight=[1, 1, 1])
    1.0
    """
    return _weighted_median((truth - estimate).abs(), weight)


@numeric_metric(undefined=Status.CONSTANT, in_order_unless="mae_train")
def mase(truth: Expr, estimate: Expr, weight: Expr, *, m: int = 1, mae_train: float | None = None) -> ExprRate:
    """Mean absolute error over that of predicting each truth by the one `m` rows before (Hyndman and Koehler, 2006).

    It depends on the order of rows; the denominator (unless given by `mae_train`) ignores weights. Null where the truth
    does not change.

    >>> mase.formula(truth=[1, 2, 4], estimate=[1, 3, 4], weight=[1, 1, 1])
    0.2222222222222222
    """
    whole("m", m, 1, of="mase")
    if mae_train is not None:
        number("mae_train", mae_train, 0, inside=True)
    naive = (truth - truth.shift(m)).abs().mean() if mae_train is None else pl.lit(float(mae_train))
    return ((truth - estimate).abs() * weight).sum() / weight.sum(), naive


# What the numbers are on average


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def mean_prediction(estimate_mean: Number) -> Number:
    """Mean estimate, in its units; it needs no truth; null without rows.

    >>> mean_prediction.formula(estimate_mean=1.5)
    1.5
    """
    return estimate_mean


@numeric_metric(undefined=Status.CONSTANT)
def squared_shift(
    estimate_mean: Number, overall_estimate_mean: Number, overall_estimate_variation: Number, overall_instances: Number
) -> Rate:
    """Squared distance of the mean estimate of a group from that of all, over the variance of all estimates.

    Its mean over groups, weighted by size, is the share of the variance that groups explain (η², Fisher, 1925).
    Null where all estimates are equal.

    >>> squared_shift.formula(
    ...     estimate_mean=3, overall_estimate_mean=1, overall_estimate_variation=80, overall_instances=10
    ... )
    0.5
    """
    return (estimate_mean - overall_estimate_mean) ** 2 * overall_instances, overall_estimate_variation


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def prediction_total(estimate_mean: Number, instances: Number) -> Number:
    """Sum of the estimates; with the weights of a survey, that of the population. Null without rows.

    >>> prediction_total.formula(estimate_mean=1.5, instances=4)
    6.0
    """
    return estimate_mean * instances


@numeric_metric(direction="one", range=(-math.inf, math.inf))
def ratio_of_means(estimate_mean: Number, truth_mean: Number) -> Number:
    """Mean estimate over mean truth, such as spending over income; null where the latter is 0.

    >>> ratio_of_means.formula(estimate_mean=3, truth_mean=4)
    0.75
    """
    return estimate_mean / np.where(truth_mean == 0, np.nan, truth_mean)


@numeric_metric(direction="zero", range=(-math.inf, math.inf))
def mean_truth(truth_mean: Number) -> Number:
    """Mean truth, in its units; it needs no estimate; null without rows.

    >>> mean_truth.formula(truth_mean=1.5)
    1.5
    """
    return truth_mean


# How well numbers go together


@numeric_metric(direction="maximize", range=(0, 1), undefined=Status.CONSTANT, squared_correlation=True)
def rsq(covariation: Number, truth_variation: Number, estimate_variation: Number) -> Number:
    """Squared correlation of truth and estimate; null where one of them is constant.

    >>> rsq.formula(covariation=3, truth_variation=4, estimate_variation=9)
    0.25
    """
    return ((covariation / np.sqrt(truth_variation) / np.sqrt(estimate_variation)) ** 2).clip(0, 1)


@numeric_metric(direction="maximize", range=(-math.inf, 1), undefined=Status.CONSTANT)
def rsq_trad(square_error: Number, truth_variation: Number) -> Rate:
    """1 minus squared errors over squared distances of the truth from its mean; null where the truth is constant.

    >>> rsq_trad.formula(square_error=1, truth_variation=4)
    0.75
    """
    return truth_variation - square_error, truth_variation


@numeric_metric(direction="maximize", range=(-1, 1), undefined=Status.CONSTANT)
def ccc(
    covariation: Number, truth_variation: Number, estimate_variation: Number, error: Number, instances: Number,
    weight_squares: Number, *, bias: bool = False,
) -> Rate:  # fmt: skip
    """Concordance correlation (Lin, 1989): agreement of truth and estimate with the line of equality.

    Variances are unbiased unless `bias` is set, as in Lin's definition. Null where both are constant and equal, and
    below two rows.

    >>> values = {"error": -4, "instances": 4, "weight_squares": 4}
    >>> ccc.formula(covariation=3, truth_variation=6, estimate_variation=3, **values)
    0.5
    """
    unbiased = instances - weight_squares / instances
    # a single row shows no variance; the mean is of differences, because means of a billion have lost their digits
    between_means = (instances if bias else unbiased) * (error / instances) ** 2
    apart = np.where(unbiased > _SLACK * instances, between_means, np.nan)
    return 2 * covariation, truth_variation + estimate_variation + apart


@numeric_metric(direction="maximize", undefined=Status.CONSTANT)
def rpd(truth_variation: Number, instances: Number, weight_squares: Number, rmse: Number) -> Number:
    """Standard deviation of the truth over the root mean squared error (Williams, 1987).

    Infinite without any error, null below two rows.

    >>> rpd.formula(truth_variation=12, instances=4, weight_squares=4, rmse=1)
    2.0
    """
    freedom = instances - weight_squares / instances
    # a single row has no spread
    return np.where(freedom > _SLACK * instances, np.sqrt(truth_variation / freedom) / rmse, np.nan)


@numeric_metric(direction="maximize", undefined=Status.CONSTANT)
def rpiq(truth: Expr, estimate: Expr, weight: Expr, weighted: Expr) -> Expr:
    """Interquartile range of the truth over the root mean squared error (Bellon-Maurel et al., 2010).

    Infinite without any error, null where the truth is constant too. Quartiles interpolate between the sorted values;
    with weights, between their cumulated shares.

    >>> ones, zeros = [1] * 5, [0] * 5
    >>> rpiq.formula(truth=[1, 2, 3, 4, 5], estimate=[2, 3, 4, 5, 6], weight=ones, weighted=zeros)
    2.0
    """
    kept = weight > 0
    order = truth.filter(kept).sort()
    # of equal truths the lightest first, so that the order of rows means nothing
    weights = weight.sort_by(truth, weight)
    share = weights.filter(weights > 0).cum_sum() / weight.sum()

    def quartile(at: float) -> Expr:
        above = pl.min_horizontal((share < at).sum().cast(pl.Int64), order.len().cast(pl.Int64) - 1)
        before = pl.max_horizontal(above - 1, 0)
        low, high = value_at(order, before), value_at(order, above)
        passed, reached = value_at(share, before), value_at(share, above)
        part = pl.when(reached > passed).then((at - passed) / (reached - passed)).otherwise(1.0).clip(0, 1)
        return low + (high - low) * part

    plain = truth.quantile(0.75, "linear") - truth.quantile(0.25, "linear")
    spread = pl.when((weighted != 0).any()).then(quartile(0.75) - quartile(0.25)).otherwise(plain)
    return spread / (((truth - estimate) ** 2 * weight).sum() / weight.sum()).sqrt()


@numeric_metric(direction="maximize", range=(-1, 1), undefined=Status.CONSTANT)
def iic(
    covariation: Number, truth_variation: Number, estimate_variation: Number, overestimate: Number,
    underestimate: Number, overestimated: Number, instances: Number,
) -> Rate:  # fmt: skip
    """Index of ideality of correlation (Toropova and Toropov, 2017): correlation, reduced for one-sided errors.

    Null where truth or estimate is constant, or errors all lie on one side.

    >>> sides = {"overestimate": 1, "underestimate": 2, "overestimated": 2, "instances": 4}
    >>> iic.formula(covariation=3, truth_variation=4, estimate_variation=9, **sides)
    0.25
    """
    over, under = overestimate / overestimated, underestimate / (instances - overestimated)
    correlation = (covariation / np.sqrt(truth_variation) / np.sqrt(estimate_variation)).clip(-1, 1)
    both = (overestimated > 0) & (overestimated < instances)
    return correlation * np.fmin(over, under), np.where(both, np.fmax(over, under), np.nan)


@numeric_metric(direction="maximize", range=(-1, 1), undefined=Status.CONSTANT)
def gini_coef(truth: Expr, estimate: Expr, weight: Expr) -> ExprRate:
    """Concentration of the truth in the order of estimates, over that in its own order; null where constant.

    >>> gini_coef.formula(truth=[1, 2, 3], estimate=[0.1, 0.2, 0.3], weight=[1, 1, 1])
    1.0
    """

    def gini(order: list[Expr]) -> Expr:
        # twice the area between the curve of concentration and the diagonal
        passed = weight.sort_by(order, descending=True) / weight.sum()
        gained = (truth * weight).sort_by(order, descending=True).cum_sum() / (truth * weight).sum()
        return (passed * (gained + gained.shift(1).fill_null(0.0) - 1)).sum()

    best, counting = gini([truth]), truth.filter(weight > 0)
    # dust of rounding is no concentration
    return gini([estimate, truth]), pl.when(counting.min() < counting.max()).then(best).otherwise(0.0)
