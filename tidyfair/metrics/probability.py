"""Metrics of scores. A metric is its formula; parameters are sums over rows, or columns over distinct scores.

`positives`, `negatives` and `instances` are in case weights, over rows with truth and score; a statistic is a quantity
of a row whose weighted sum formulas read, and `rank` is the index of a label. Ranking metrics read each distinct
`score` of a group in descending order: `hits` and `false_alarms` are the weights of rows with this score, with and
without the event, `hit_squares` and `false_alarm_squares` the sums of their squared weights, and `percentile` is the
share of the outer group at or below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status, Undefined, in_short, listed
from tidyfair.metrics.define import array_metric, prob_metric
from tidyfair.specs import one_of, whole
from tidyfair.specs.formulas import Expr, ExprRate, Influence, Number, Rate, Sample, statistic

Array: TypeAlias = np.ndarray[Any, Any]

__all__ = [
    "average_precision",
    "balance_for_negative_class",
    "balance_for_positive_class",
    "brier_class",
    "calibration_in_the_large",
    "calibration_intercept",
    "calibration_ratio",
    "calibration_slope",
    "classification_cost",
    "cumulative_calibration_error",
    "cumulative_calibration_error_if_calibrated",
    "expected_calibration_error",
    "expected_calibration_error_debiased",
    "expected_calibration_error_if_calibrated",
    "gain_capture",
    "generalized_false_negative_rate",
    "generalized_false_negatives",
    "generalized_false_positives",
    "generalized_true_negative_rate",
    "generalized_true_negatives",
    "generalized_true_positives",
    "mean_score",
    "mn_log_loss",
    "pr_auc",
    "ranked_prob_score",
    "risk_coverage_auc",
    "roc_auc",
    "roc_aunp",
    "roc_aunu",
    "score_discrimination",
    "score_miscalibration",
    "score_uncertainty",
]

_EPSILON = 2.0**-52
"""Probabilities are kept this far from 0 and 1, as in yardstick."""
_SLACK = 1e-9
_MOST_BINS = 1_000
_MOST_STEPS = 100
_CONVERGED = 1e-12
_NEAR = 1e-3
_STEEPEST = 1e4
_LEAST_KNOWN = 1e-3
"""The share of the determinant of the information that must remain without a unit."""


# Quantities of a row


@statistic
def squared_error(truth: Expr, score: Expr) -> Expr:
    """Squared distance of the score from the truth."""
    return (truth - score) ** 2


@statistic(cumulative=True)
def squared_error_up_to(truth: Expr, score: Expr) -> Expr:
    """Squared distance of the probability of a label or one before it from 1 if one of these is true, else from 0."""
    return (truth - score) ** 2


@statistic
def surprise(truth: Expr, score: Expr) -> Expr:
    """Negative logarithm of the probability of the true label."""
    return -truth * score.clip(_EPSILON, 1 - _EPSILON).log()


@statistic
def score_total(score: Expr) -> Expr:
    """The score."""
    return score


@statistic
def positive_score(truth: Expr, score: Expr) -> Expr:
    """The score of those with the event."""
    return truth * score


@statistic
def negative_score(truth: Expr, score: Expr) -> Expr:
    """The score of those without the event."""
    return score - truth * score


# How good probabilities are


@prob_metric(direction="minimize", over_levels=True)
def brier_class(squared_error: Number, instances: Number) -> Rate:
    """Mean squared distance of probabilities from the truth (Brier, 1950), halved over labels.

    For two labels it is the mean of (y - p)². Weights count in proportion; 0 is perfect; null without rows.

    >>> brier_class.formula(squared_error=2.5, instances=10)
    0.25
    """
    return squared_error.sum(axis=-1) / 2, instances[..., 0]


@prob_metric(direction="minimize", over_levels=True, range=(0, math.inf))
def mn_log_loss(surprise: Number, instances: Number, *, sum: bool = False) -> Rate | Number:  # noqa: A002 - yardstick's name
    """Mean negative logarithm of the probability of the true label (Good, 1952); with `sum`, the total.

    Probabilities of 0 count as 2.2e-16; null without rows.

    >>> mn_log_loss.formula(surprise=[1.0, 2.0], instances=[10, 10])
    0.3
    """
    total = surprise.sum(axis=-1)
    return total if sum else (total, instances[..., 0])


@prob_metric(direction="minimize", over_levels=True)
def ranked_prob_score(squared_error_up_to: Number, instances: Number, rank: Number) -> Rate:
    """Mean squared distance of cumulated probabilities from the truth, for ordered labels (Epstein, 1969).

    Divided by the number of labels minus one; weights count in proportion; null without rows.

    >>> ranked_prob_score.formula(squared_error_up_to=[1.0, 3.0, 0.0], instances=[10, 10, 10])
    0.2
    """
    # up to the last label everything is certain
    error = np.where(rank < rank.max(), squared_error_up_to, 0.0).sum(axis=-1)
    return error / rank.max(), instances[..., 0]


@array_metric(direction="minimize", range=(0, math.inf), over_levels=True)
def classification_cost(
    truth: Array,
    score: Array,
    weight: Array | None = None,
    *,
    labels: Any = None,
    costs: Any = None,
) -> float:
    """Expected cost of a decision drawn from the probabilities; by default 1 for every wrong label.

    `costs` maps pairs `(truth, estimate)` to costs; pairs it does not list cost nothing. Null without rows.

    >>> import polars as pl
    >>> data = pl.DataFrame({"y": [1, 0], "p": [0.75, 0.5]})
    >>> classification_cost(data, "y", probs="p")[".estimate"].item()
    0.375
    """
    table = 1 - np.eye(len(labels))
    if costs is not None:
        table = np.zeros((len(labels), len(labels)))
        for pair, cost in _pairs(costs).items():
            if unknown := [label for label in pair if label not in labels]:
                msg = (
                    f"classification_cost: `costs` has {unknown[0]!r}, which is not among the labels {listed(labels)}."
                )
                raise ArgumentError(msg)
            table[labels.index(pair[0]), labels.index(pair[1])] = cost
    indices = np.array([labels.index(label) for label in truth.tolist()])
    return float(np.average((table[indices] * score).sum(axis=1), weights=weight))


def _pairs(costs: Any) -> dict[tuple[Any, Any], float]:
    """Costs by true and predicted label, checked."""
    try:
        pairs: dict[Any, Any] = dict(costs)
    except (TypeError, ValueError):
        pairs = {}
    if not pairs or not all(map(_is_cost, pairs.items())):
        msg = f"classification_cost: `costs` must map pairs (truth, estimate) to finite numbers, not {in_short(costs)}."
        raise ArgumentError(msg)
    return pairs


def _is_cost(item: tuple[Any, Any]) -> bool:
    pair, cost = item
    paired = type(pair) is tuple and len(cast("tuple[object, ...]", pair)) == 2
    return paired and isinstance(cost, Real) and math.isfinite(cost)


# How far off a metric can be if only the bins of scores are known


def _undecided_pairs(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Share of pairs of one with and one without the event that are in the same bin, so that either may be first."""
    return (hits * false_alarms).sum(), hits.sum() * false_alarms.sum()


def _half_undecided_pairs(hits: Expr, false_alarms: Expr) -> ExprRate:
    """The same, where such a pair counts half."""
    undecided, pairs = _undecided_pairs(hits, false_alarms)
    return undecided / 2, pairs


def _undecided_precision(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Mean over hits of the possible range of precision within their bin: with all false alarms first, or with none."""
    true_positives = hits.cum_sum()
    selected = true_positives + false_alarms.cum_sum()
    highest = true_positives / (selected - false_alarms)
    lowest = pl.when(selected > hits).then((true_positives - hits) / (selected - hits)).otherwise(1.0)
    # a bin without hits has no precision in doubt
    return pl.when(hits > 0).then(hits * (highest - lowest)).otherwise(0.0).sum(), hits.sum()


# Variance of an area


def _delong(hits: Expr, false_alarms: Expr, hit_squares: Expr, false_alarm_squares: Expr) -> Expr:
    """Variance of the area under the ROC curve (DeLong et al., 1988), from the ranks of each class in the other."""
    events, others = hits.sum(), false_alarms.sum()
    above = 1 - (false_alarms.cum_sum() - false_alarms / 2) / others
    below = (hits.cum_sum() - hits / 2) / events
    area = (false_alarms * below).sum() / others
    of_events = _variance_of_mean(above, area, events, hit_squares)
    return of_events + _variance_of_mean(below, area, others, false_alarm_squares)


def _variance_of_mean(ranks: Expr, mean: Expr, total: Expr, squares: Expr) -> Expr:
    """Variance of a weighted mean, by the effective number of rows."""
    size = total**2 / squares.sum()
    return (squares * (ranks - mean) ** 2).sum() / total**2 * size / (size - 1)


def _variance_of_gain(hits: Expr, false_alarms: Expr, hit_squares: Expr, false_alarm_squares: Expr) -> Expr:
    """Variance of 2 AUC - 1."""
    return 4 * _delong(hits, false_alarms, hit_squares, false_alarm_squares)


def _variance_of_average_precision(
    hits: Expr, false_alarms: Expr, hit_squares: Expr, false_alarm_squares: Expr
) -> Expr:  # fmt: skip
    """Variance of the mean precision over the hits."""
    return _value_of_arrays(_variance_of_precision, hits, false_alarms, hit_squares, false_alarm_squares)


def _variance_of_pr_auc(hits: Expr, false_alarms: Expr, hit_squares: Expr, false_alarm_squares: Expr) -> Expr:
    """Variance of the area under the precision-recall curve by trapezoids."""
    variance = partial(_variance_of_precision, trapezoids=True)
    return _value_of_arrays(variance, hits, false_alarms, hit_squares, false_alarm_squares)


def _value_of_arrays(function: Callable[..., float], *columns: Expr) -> Expr:
    """A function of columns as arrays, which reads many sums of the same columns faster than an expression."""

    def value_of_group(values: Sequence[pl.Series]) -> float:
        return function(*(column.to_numpy() for column in values))

    return pl.map_groups(columns, value_of_group, return_dtype=pl.Float64, returns_scalar=True)


def _variance_of_precision(
    hits: Array, false_alarms: Array, hit_squares: Array, false_alarm_squares: Array, *, trapezoids: bool = False
) -> float:
    """Variance of a mean precision over the hits, by the influence of each row.

    A row changes the precision at its own score and at all lower ones; by trapezoids, half of that before counts too.
    """
    true_positives = hits.cumsum()
    selected, events = true_positives + false_alarms.cumsum(), true_positives[-1]
    others = selected[-1] - events
    if not events:
        return math.nan
    precision, counted = true_positives / selected, hits
    change = precision
    if trapezoids:
        precision = (change + np.concatenate([[1.0], change[:-1]])) / 2
        counted = (hits + np.append(hits[1:], 0.0)) / 2
    counted = counted / selected
    by_other = (counted * change)[::-1].cumsum()[::-1]
    by_event = counted[::-1].cumsum()[::-1] - by_other
    influence = precision - hits @ precision / events + by_event
    variance = 0.0
    # by the effective numbers of either class
    for squares, influences, total in ((hit_squares, influence, events), (false_alarm_squares, by_other, others)):
        if total:
            size = total**2 / squares.sum()
            variance += squares @ influences**2 * (size / (size - 1) if size > 1 else math.nan)
    return float(variance / events**2)


def _effective_events(hits: Expr, hit_squares: Expr) -> Expr:
    return hits.sum() ** 2 / hit_squares.sum()


def _effective_others(false_alarms: Expr, false_alarm_squares: Expr) -> Expr:
    return false_alarms.sum() ** 2 / false_alarm_squares.sum()


def _influence_on_precision(sample: Sample, units: Array | None, *, trapezoids: bool) -> Influence:
    """Sampling variation of the area under the precision-recall curve, from its derivatives (Jaeckel, 1972).

    One more row changes the precision at its score and at all lower ones. Few events do not show the one that no score
    predicts, so that the lower limit has half an event more, whose precision is that of chance.
    """
    event = sample.truth.astype(bool)
    weight = np.ones(len(event)) if sample.weight is None else sample.weight
    _, threshold = np.unique(-sample.score, return_inverse=True)
    hits, false_alarms = (np.bincount(threshold, weight * rows) for rows in (event, ~event))
    events, others = hits.sum(), false_alarms.sum()
    if events == 0 or others == 0:
        # the precision of events alone is always 1
        raise Undefined(Status.ONE_CLASS)
    true_positives, selected = np.cumsum(hits), np.cumsum(hits + false_alarms)
    # what an event counts at its threshold, and what the precision at a threshold counts
    counted, precision = hits, true_positives / selected
    own = precision
    if trapezoids:
        own = (precision + np.append(1.0, precision[:-1])) / 2
        counted = (hits + np.append(hits[1:], 0.0)) / 2
    area = float(hits @ own) / events
    of_event = (own - area + _sums_from_each_on(counted * (selected - true_positives) / selected**2)) / events
    of_other = -_sums_from_each_on(counted * true_positives / selected**2) / events
    unit = np.arange(len(weight)) if units is None else units
    numbers = [_effective(np.bincount(unit, weight * rows)) for rows in (event, ~event)]
    of_unit = np.zeros(int(unit.max()) + 1)
    for rows, of_row, number in zip((event, ~event), (of_event, of_other), numbers, strict=True):
        # a single row of a class does not show how far others vary
        factor = math.sqrt(number / (number - 1)) if number > 1 + _SLACK else math.nan
        of_unit += factor * np.bincount(unit, weight * rows * of_row[threshold])
    away, with_half_an_event = max(area - events / (events + others), 0.0), numbers[0] + 0.5
    centre = area - 0.5 * away / with_half_an_event
    error = math.sqrt((of_unit**2).sum() + 0.5 * (away / with_half_an_event) ** 2)
    return Influence(of_unit, math.inf if units is None else max(1.0, numbers[0] - 1), unseen=(centre, error))


def _sums_from_each_on(values: Array) -> Array:
    """The sum of each number and all after it."""
    return np.cumsum(values[::-1])[::-1]


def _influence_on_area(sample: Sample, units: Array | None) -> Influence:
    """Sampling variation of the area under the ROC curve, from rank sums of clusters (Obuchowski, 1997)."""
    event = sample.truth.astype(bool)
    weight = np.ones(len(event)) if sample.weight is None else sample.weight
    units = np.arange(len(event)) if units is None else units
    _, position = np.unique(sample.score, return_inverse=True)
    hits, false_alarms = (np.bincount(position, weight * rows) for rows in (event, ~event))
    events, others = hits.sum(), false_alarms.sum()
    if events == 0 or others == 0:
        raise Undefined(Status.ONE_CLASS)
    below = (np.cumsum(false_alarms) - false_alarms / 2) / others
    above = 1 - (np.cumsum(hits) - hits / 2) / events
    area = float(hits @ below) / events
    of_unit, variances, freedoms = np.zeros(int(units.max()) + 1), np.zeros(2), np.zeros(2)
    for side, (rows, ranks, total) in enumerate(((event, below, events), (~event, above, others))):
        count = len(np.unique(units[rows]))
        own = np.bincount(units[rows], weight[rows] * (ranks[position[rows]] - area) / total, len(of_unit))
        own = own * (math.sqrt(count / (count - 1)) if count > 1 else math.nan)
        of_unit += own
        variances[side], freedoms[side] = (own**2).sum(), count - 1
    if not variances.any():
        return Influence(of_unit, float(freedoms.min()))
    # by Satterthwaite, from those of either class
    return Influence(of_unit, float(variances.sum() ** 2 / (variances**2 / freedoms).sum()))


# How well the order of scores tells labels apart


@prob_metric(
    probabilities=False, undefined=Status.ONE_CLASS, average="hand_till", counts="smaller_class",
    error_of_bins=_half_undecided_pairs, deviations=(_delong, _effective_events, _effective_others),
    influence=_influence_on_area,
)  # fmt: skip
def roc_auc(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Probability that an event scores higher than a non-event, ties counting half (Hanley and McNeil, 1982).

    More than two labels: the mean over pairs of labels (Hand and Till, 2001), or `estimator="macro"` or
    `"macro_weighted"` of each against the rest. Null with one class only.

    >>> roc_auc.formula(hits=[2, 1, 0], false_alarms=[0, 1, 2])
    0.9444444444444444
    """
    above = hits.cum_sum() - hits / 2
    return (false_alarms * above).sum(), hits.sum() * false_alarms.sum()


@prob_metric(
    probabilities=False, undefined=Status.ONE_CLASS, average="macro", counts="smaller_class",
    error_of_bins=_half_undecided_pairs,
)  # fmt: skip
def roc_aunu(roc_auc: Expr) -> Expr:
    """Mean of the areas under the ROC curves of each label against the rest (Ferri et al., 2009); null with one class.

    >>> roc_aunu.formula(roc_auc=0.75)
    0.75
    """
    return roc_auc


@prob_metric(
    probabilities=False, undefined=Status.ONE_CLASS, average="macro_weighted", counts="smaller_class",
    error_of_bins=_half_undecided_pairs,
)  # fmt: skip
def roc_aunp(roc_auc: Expr) -> Expr:
    """Mean of the areas under the ROC curves of each label against the rest, weighted by the frequency of the label.

    (Ferri et al., 2009.) Null with one class.

    >>> roc_aunp.formula(roc_auc=0.75)
    0.75
    """
    return roc_auc


@prob_metric(
    probabilities=False,
    undefined=Status.ONE_CLASS,
    range=(-1, 1),
    counts="smaller_class",
    error_of_bins=_undecided_pairs,
    variance=_variance_of_gain,
)
def gain_capture(roc_auc: Expr) -> Expr:
    """Share of the possible gain over chance captured by the ranking: 2 AUC - 1, the Gini coefficient of a classifier.

    Null with one class only.

    >>> gain_capture.formula(roc_auc=0.75)
    0.5
    """
    return 2 * roc_auc - 1


@prob_metric(
    probabilities=False, undefined=Status.NO_EVENTS, counts="positives", error_of_bins=_undecided_precision,
    variance=_variance_of_average_precision, influence=partial(_influence_on_precision, trapezoids=False),
)  # fmt: skip
def average_precision(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Mean precision over the hits, as the threshold falls (Zhu, 2004); null without events.

    >>> average_precision.formula(hits=[1, 0, 1], false_alarms=[0, 1, 0])
    0.8333333333333333
    """
    selected = hits.cum_sum() + false_alarms.cum_sum()
    return (hits * hits.cum_sum() / selected).sum(), hits.sum()


@prob_metric(
    probabilities=False, undefined=Status.NO_EVENTS, counts="positives", error_of_bins=_undecided_precision,
    variance=_variance_of_pr_auc, influence=partial(_influence_on_precision, trapezoids=True),
)  # fmt: skip
def pr_auc(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Area under the precision-recall curve by trapezoids, which begins at precision 1; null without events.

    >>> pr_auc.formula(hits=[1, 0, 2], false_alarms=[0, 1, 0])
    0.75
    """
    precision = hits.cum_sum() / (hits.cum_sum() + false_alarms.cum_sum())
    return (hits * (precision + precision.shift(1).fill_null(1.0)) / 2).sum(), hits.sum()


def _influence_on_risk(sample: Sample, units: Array | None) -> Influence:
    """Sampling variation of the area under the risk-coverage curve, from its derivatives (Jaeckel, 1972).

    One more row changes the risk at its own score and at all lower ones.
    """
    error = sample.truth.astype(float)
    weight = np.ones(len(error)) if sample.weight is None else sample.weight
    _, threshold = np.unique(-sample.score, return_inverse=True)
    rows, errors = np.bincount(threshold, weight), np.bincount(threshold, weight * error)
    covered = np.cumsum(rows)
    risk = np.cumsum(errors) / covered
    area = rows @ risk / covered[-1]
    by_error, by_row = _sums_from_each_on(rows / covered), _sums_from_each_on(rows * risk / covered)
    of_row = weight * (risk[threshold] - area + error * by_error[threshold] - by_row[threshold]) / covered[-1]
    of_unit = of_row if units is None else np.bincount(units, of_row)
    number = _effective(weight if units is None else np.bincount(units, weight))
    factor = math.sqrt(number / (number - 1)) if number > 1 + _SLACK else math.nan
    return Influence(
        np.asarray(factor * of_unit, dtype=np.float64), math.inf if units is None else max(1.0, number - 1)
    )


@prob_metric(direction="minimize", probabilities=False, influence=_influence_on_risk)
def risk_coverage_auc(hits: Expr, false_alarms: Expr) -> ExprRate:
    """Area under the risk-coverage curve (AURC; Geifman et al., 2019); null without rows.

    The event is an error and the score the confidence: the share of errors among the most confident rows, averaged over
    how many these are. Equal to the error rate where confidence says nothing about errors.

    >>> risk_coverage_auc.formula(hits=[0, 1], false_alarms=[1, 0])
    0.25
    """
    rows = hits + false_alarms
    return (rows * hits.cum_sum() / rows.cum_sum()).sum(), rows.sum()


# How well scores fit the truth on average


@prob_metric(constant_average=True)
def mean_score(score_total: Number, instances: Number) -> Rate:
    """Mean score; it needs no truth; null without rows.

    >>> mean_score.formula(score_total=3, instances=10)
    0.3
    """
    return score_total, instances


@prob_metric()
def balance_for_positive_class(positive_score: Number, positives: Number) -> Rate:
    """Mean score of those with the event (Kleinberg et al., 2016), the generalized true positive rate.

    Null without events.

    >>> balance_for_positive_class.formula(positive_score=3, positives=4)
    0.75
    """
    return positive_score, positives


@prob_metric(direction="minimize")
def balance_for_negative_class(negative_score: Number, negatives: Number) -> Rate:
    """Mean score of those without the event (Kleinberg et al., 2016), the generalized false positive rate.

    Null without non-events.

    >>> balance_for_negative_class.formula(negative_score=1, negatives=4)
    0.25
    """
    return negative_score, negatives


@prob_metric(direction="minimize")
def generalized_false_negative_rate(positive_score: Number, positives: Number) -> Rate:
    """Mean of 1 minus the score of rows with the event; null without events.

    >>> generalized_false_negative_rate.formula(positive_score=3, positives=4)
    0.25
    """
    return positives - positive_score, positives


@prob_metric()
def generalized_true_negative_rate(negative_score: Number, negatives: Number) -> Rate:
    """Mean of 1 minus the score of rows without the event; null without non-events.

    >>> generalized_true_negative_rate.formula(negative_score=1, negatives=4)
    0.75
    """
    return negatives - negative_score, negatives


@prob_metric(range=(0, math.inf))
def generalized_true_positives(positive_score: Number) -> Number:
    """Expected number of true positives if each row were selected with its probability.

    >>> generalized_true_positives.formula(positive_score=3)
    3.0
    """
    return positive_score


@prob_metric(direction="minimize", range=(0, math.inf))
def generalized_false_positives(negative_score: Number) -> Number:
    """Expected number of false positives if each row were selected with its probability.

    >>> generalized_false_positives.formula(negative_score=1)
    1.0
    """
    return negative_score


@prob_metric(direction="minimize", range=(0, math.inf))
def generalized_false_negatives(positive_score: Number, positives: Number) -> Number:
    """Expected number of false negatives if each row were selected with its probability.

    >>> generalized_false_negatives.formula(positive_score=3, positives=4)
    1.0
    """
    return positives - positive_score


@prob_metric(range=(0, math.inf))
def generalized_true_negatives(negative_score: Number, negatives: Number) -> Number:
    """Expected number of true negatives if each row were selected with its probability.

    >>> generalized_true_negatives.formula(negative_score=1, negatives=4)
    3.0
    """
    return negatives - negative_score


@prob_metric(direction="zero", range=(-1, 1), constant_average=True)
def calibration_in_the_large(positives: Number, score_total: Number, instances: Number) -> Rate:
    """Mean score minus share of events: above 0, risks are overestimated, as in `residual_bias`; null without rows.

    >>> calibration_in_the_large.formula(positives=4, score_total=5, instances=10)
    0.1
    """
    return score_total - positives, instances


@prob_metric(direction="one", range=(0, math.inf), constant_average="micro")
def calibration_ratio(positives: Number, score_total: Number) -> Rate:
    """Observed over expected number of events, the sum of scores: above 1, risks are underestimated.

    Null where the expected number is 0.

    >>> calibration_ratio.formula(positives=4, score_total=5)
    0.8
    """
    return positives, score_total


# How well they fit everywhere


Binning = Literal["width", "count"]
Edges = Literal["common", "own"]


def check_bins(name: str, bins: object, binning: object, known: Sequence[str] = ("width", "count")) -> None:
    """Refuse an impossible number of bins, and an unknown binning."""
    whole("bins", bins, 1, _MOST_BINS, of=name)
    one_of("binning", binning, known)


def bin_of(share: Expr, bins: int, binning: Binning) -> Expr:
    """The index of the bin of a score, from the score (`"width"`) or the share of those at or below it (`"count"`).

    That share ends its bin, so that equal scores stay together; a score on an inner edge belongs to the bin above it.
    """
    slack = -_SLACK if binning == "count" else _SLACK
    return (share * bins + slack).floor().fill_nan(0).clip(0, bins - 1)


def _bins_of(score: Expr, percentiles: Callable[[str], Expr], *, bins: int, binning: Binning, edges: Edges) -> Expr:
    """The bins of scores, from these or the shares at or below them, among all rows or those of the group.

    Series of scores have the same methods as expressions.
    """
    check_bins("expected_calibration_error", bins, binning)
    if edges not in ("common", "own"):
        raise ArgumentError.not_one_of("edges", edges, ["common", "own"])
    if binning == "count":
        share = percentiles(edges)
    else:
        share = score if edges == "common" else (score - score.min()) / (score.max() - score.min())
    return bin_of(share, bins, binning)


def _in_bins(values: Expr, weight: Expr, score: Expr, percentile: Expr, **options: Any) -> list[Expr]:
    """The sum of values in each bin of the score."""
    percentiles = {"common": percentile, "own": weight.cum_sum(reverse=True) / weight.sum()}
    index = _bins_of(score, percentiles.__getitem__, **options)
    return [values.filter(index == number).sum() for number in range(options["bins"])]


@prob_metric(direction="minimize", bins_of=_bins_of)
def expected_calibration_error(
    hits: Expr, false_alarms: Expr, score: Expr, percentile: Expr, *, bins: int = 10, binning: Binning = "width",
    edges: Edges = "common",
) -> ExprRate:  # fmt: skip
    """Mean distance between share of events and mean score, over bins of the score (Naeini et al., 2015).

    `bins` of equal `"width"`, or of equal `"count"`; edges are common to all groups of an outer group, unless
    `edges="own"`. It is biased upwards in small groups: see `expected_calibration_error_if_calibrated`. Null without
    rows.

    >>> expected_calibration_error.formula(hits=[3, 1], false_alarms=[1, 3], score=[0.75, 0.5], percentile=[1.0, 0.5])
    0.125
    """
    weight = hits + false_alarms
    gaps = _in_bins(hits - score * weight, weight, score, percentile, bins=bins, binning=binning, edges=edges)
    return pl.sum_horizontal(gap.abs() for gap in gaps), weight.sum()


@prob_metric(
    direction="minimize",
    no_interval="which is the error that chance gives this many rows and says nothing of others: the interval of "
    "expected_calibration_error takes it into account",
)  # fmt: skip
def expected_calibration_error_if_calibrated(
    hits: Expr,
    false_alarms: Expr,
    hit_squares: Expr,
    false_alarm_squares: Expr,
    score: Expr,
    percentile: Expr,
    *,
    bins: int = 10,
    binning: Binning = "width",
    edges: Edges = "common",
) -> ExprRate:
    """The mean expected calibration error of perfectly calibrated scores, by chance alone.

    By the normal approximation in each bin: √(2/π) of the standard error of its share of events. Null without rows.

    >>> ones = {"hit_squares": [3, 1], "false_alarm_squares": [1, 3], "percentile": [1.0, 0.5]}
    >>> chance = expected_calibration_error_if_calibrated.formula(
    ...     hits=[3, 1], false_alarms=[1, 3], score=[0.5, 0.1], **ones
    ... )
    >>> round(chance, 4)
    0.1596
    """
    weight, variance = hits + false_alarms, score * (1 - score) * (hit_squares + false_alarm_squares)
    variances = _in_bins(variance, weight, score, percentile, bins=bins, binning=binning, edges=edges)
    return math.sqrt(2 / math.pi) * pl.sum_horizontal(bin_variance.sqrt() for bin_variance in variances), weight.sum()


@prob_metric(direction="minimize", range=(-1, 1), bins_of=_bins_of)
def expected_calibration_error_debiased(
    expected_calibration_error: Expr,
    expected_calibration_error_if_calibrated: Expr,
    *,
    bins: int = 10,
    binning: Binning = "width",
    edges: Edges = "common",
) -> Expr:
    """The expected calibration error minus its mean for calibrated scores; null without rows.

    About 0 or below is no evidence of miscalibration.

    >>> expected_calibration_error_debiased.formula(
    ...     expected_calibration_error=0.25, expected_calibration_error_if_calibrated=0.125
    ... )
    0.125
    """
    del bins, binning, edges  # those of the parts
    return expected_calibration_error - expected_calibration_error_if_calibrated


@prob_metric(
    direction="minimize",
    no_interval="which chance makes larger, in resamples too: `inference.multicalibration_test` has its p-value",
)  # fmt: skip
def cumulative_calibration_error(hits: Expr, false_alarms: Expr, score: Expr) -> ExprRate:
    """Largest distance of the number of events from the sum of scores, over all ranges of scores, per row.

    It is Kuiper's statistic of cumulated differences, which needs no bins (Arrieta-Ibarra et al., 2022: ECCE-R). Chance
    makes it larger in small groups: see `cumulative_calibration_error_if_calibrated`. Null without rows.

    >>> labels = {"hits": [1, 0, 1, 0], "false_alarms": [0, 1, 0, 1]}
    >>> cumulative_calibration_error.formula(**labels, score=[0.8, 0.6, 0.4, 0.2])
    0.15
    """
    weight = hits + false_alarms
    cumulated = (hits - score * weight).cum_sum()
    return cumulated.max().clip(lower_bound=0) - cumulated.min().clip(upper_bound=0), weight.sum()


@prob_metric(
    direction="minimize",
    no_interval="which is the error that chance gives this many rows, and says nothing of others",
)  # fmt: skip
def cumulative_calibration_error_if_calibrated(
    hit_squares: Expr, false_alarm_squares: Expr, score: Expr, hits: Expr, false_alarms: Expr
) -> ExprRate:  # fmt: skip
    """The mean cumulative calibration error of perfectly calibrated scores, by chance alone.

    It is √(8/π) = 1.6 of the standard deviations of the sum of events, the mean range of a Brownian motion (Feller,
    1951); a little less where there are few distinct scores. Null without rows.

    >>> labels = {"hits": [1, 0, 1, 0], "false_alarms": [0, 1, 0, 1]}
    >>> squares = {"hit_squares": [1, 0, 1, 0], "false_alarm_squares": [0, 1, 0, 1]}
    >>> chance = cumulative_calibration_error_if_calibrated.formula(**labels, **squares, score=[0.8, 0.6, 0.4, 0.2])
    >>> round(chance, 4)
    0.3568
    """
    variance = (score * (1 - score) * (hit_squares + false_alarm_squares)).sum()
    return math.sqrt(8 / math.pi) * variance.sqrt(), (hits + false_alarms).sum()


# How much of a loss is miscalibration


Loss = Literal["brier", "log"]
_LOSSES = ("brier", "log")
_CELLS, _DRAWS = 1_000, 500
_FITTED = "whose isotonic regression fits chance too, in resamples even more"


def isotonic_bounds(hits: Array, weight: Array) -> Array:
    """The bounds of the runs of falling scores in which isotonic regression pools the shares of events."""
    from scipy.optimize import isotonic_regression

    fit: Any = isotonic_regression(hits / weight, weights=weight, increasing=False)
    return fit.blocks


def consistency_limits(rows: Array, score: Array, level: float) -> tuple[Array, Array]:
    """Limits of isotonic regression at each of falling scores that are calibrated, each with a probability of `level`.

    Events are drawn with the scores as their probabilities (Dimitriadis, Gneiting and Jordan, 2021). Of many scores,
    those of a thousandth of the rows are drawn together.
    """
    from scipy.optimize import isotonic_regression

    from tidyfair.intervals import generator  # noqa: PLC0415 - only for limits

    before, total = np.cumsum(rows) - rows, rows.sum()
    _, starts, cell = np.unique(before * _CELLS // total, return_index=True, return_inverse=True)
    size, expected = (np.add.reduceat(sums, starts) for sums in (rows, rows * score))
    share = (expected / size).clip(0, 1)
    drawn = generator(0, "consistency").binomial(size.astype(np.int64), share, (_DRAWS, len(size))) / size
    regress: Any = isotonic_regression
    fits = np.stack([regress(events, weights=size, increasing=False).x for events in drawn])
    lower, upper = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return lower[cell], upper[cell]


def _loss_saved(hits: Array, false_alarms: Array, score: Array | None = None, *, loss: str) -> float:
    """How much the mean loss of scores, or of one share for all, exceeds that of shares that rise with the score."""
    weight = hits + false_alarms
    bounds = isotonic_bounds(hits, weight)
    rates = np.add.reduceat(hits, bounds[:-1]) / np.add.reduceat(weight, bounds[:-1])
    forecast = np.full(len(hits), hits.sum() / weight.sum()) if score is None else score
    losses: list[float] = []
    for probability in (forecast, np.repeat(rates, np.diff(bounds))):
        of_hits, of_others = (1 - probability) ** 2, probability**2
        if loss == "log":
            clipped = probability.clip(_EPSILON, 1 - _EPSILON)
            of_hits, of_others = -np.log(clipped), -np.log1p(-clipped)
        losses.append(float(hits @ of_hits + false_alarms @ of_others) / float(weight.sum()))
    return losses[0] - losses[1]


@prob_metric(direction="minimize", range=(0, math.inf), no_interval=_FITTED)
def score_miscalibration(hits: Expr, false_alarms: Expr, score: Expr, *, loss: Loss = "brier") -> Expr:
    """How much smaller the Brier score would be, if scores were recalibrated by isotonic regression.

    Brier score = miscalibration - discrimination + uncertainty (CORP; Dimitriadis, Gneiting and Jordan, 2021); with
    `loss="log"`, the log loss. Null without rows.

    >>> score_miscalibration.formula(hits=[1, 0, 1, 0], false_alarms=[0, 1, 0, 1], score=[0.875, 0.625, 0.375, 0.125])
    0.078125
    """
    return _value_of_arrays(partial(_loss_saved, loss=one_of("loss", loss, _LOSSES)), hits, false_alarms, score)


@prob_metric(range=(0, math.inf), no_interval=_FITTED)
def score_discrimination(hits: Expr, false_alarms: Expr, *, loss: Loss = "brier") -> Expr:
    """How much smaller the Brier score of recalibrated scores is than that of the overall share of events.

    Part of the decomposition of `score_miscalibration`, with the same `loss`; above 0, scores tell rows apart. Null
    without rows.

    >>> score_discrimination.formula(hits=[1, 0, 1, 0], false_alarms=[0, 1, 0, 1])
    0.125
    """
    return _value_of_arrays(partial(_loss_saved, loss=one_of("loss", loss, _LOSSES)), hits, false_alarms)


@prob_metric(direction="minimize", range=(0, math.log(2)), constant_average="micro")
def score_uncertainty(positives: Number, instances: Number, *, loss: Loss = "brier") -> Number:
    """The Brier score of the overall share of events p, p (1 - p), which no score changes.

    Part of the decomposition of `score_miscalibration`; with `loss="log"`, the entropy. Null without rows.

    >>> score_uncertainty.formula(positives=2, instances=4)
    0.25
    """
    from scipy.special import entr

    share = positives / instances
    entropy: Number = entr(share) + entr(1 - share)
    return entropy if one_of("loss", loss, _LOSSES) == "log" else share * (1 - share)


def _fitted(design: Array, offset: Array, truth: Array, weight: Array) -> Array:
    """Coefficients of a logistic regression by Newton's method with step halving."""

    def loss(beta: Array) -> float:
        linear = offset + design @ beta
        return float((weight * (np.logaddexp(0, linear) - truth * linear)).sum())

    share = np.average(truth, weights=weight)
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(share / (1 - share)) - np.average(offset, weights=weight)
    current = loss(beta)
    for _ in range(_MOST_STEPS):
        # what is too large for a float leaves a share of 0, as it should
        with np.errstate(over="ignore"):
            expected = 1 / (1 + np.exp(-(offset + design @ beta)))
        gradient = design.T @ (weight * (truth - expected))
        curvature = (design * (weight * expected * (1 - expected))[:, None]).T @ design
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        size = 1.0
        # near the end the loss is flat, and its last digits say nothing about a step
        far = np.abs(step).max() > _NEAR
        while (proposed := loss(beta + size * step)) > current * (1 + _EPSILON) and far and size > _CONVERGED:
            size /= 2
        beta, moved, current = beta + size * step, np.abs(size * step).max(), proposed
        if np.abs(beta).max() > _STEEPEST:
            raise Undefined(Status.SEPARATION)
        if moved < _CONVERGED * max(1.0, np.abs(beta).max()):
            break
    return beta


@dataclass(frozen=True, eq=False, repr=False)
class _Line:
    """The logistic regression of the truth on the logit of the score."""

    truth: Array
    weight: Array | None
    design: Array
    """A column of ones and, unless the slope is held at 1, the logits less their mean, in standard deviations."""
    offset: Array
    beta: Array
    centre: float
    scale: float

    @classmethod
    def of(cls, truth: Array, score: Array, weight: Array | None, *, slope: bool) -> _Line:
        """Fit the line; rows without weight do not count."""
        if weight is not None:
            kept = weight > 0
            truth, score, weight = truth[kept], score[kept], weight[kept]
        if ((score <= 0) | (score >= 1)).any():
            raise Undefined(Status.SCORES_OF_0_OR_1)
        logit = np.log(score) - np.log1p(-score)
        ones, zeros = logit[truth == 1], logit[truth == 0]
        if not len(ones) or not len(zeros):
            raise Undefined(Status.ONE_CLASS)
        if slope and logit.min() == logit.max():
            raise Undefined(Status.CONSTANT)
        if slope and (ones.min() >= zeros.max() or ones.max() <= zeros.min()):
            raise Undefined(Status.SEPARATION)
        centre, scale = float(np.average(logit, weights=weight)), 1.0
        if slope:
            scale = float(np.sqrt(np.average((logit - centre) ** 2, weights=weight)))
        x = (logit - centre) / scale
        design = np.stack([np.ones_like(x), x], axis=1) if slope else np.ones((len(x), 1))
        offset = np.zeros_like(x) if slope else logit
        counted = np.ones(len(x)) if weight is None else weight
        return cls(truth, weight, design, offset, _fitted(design, offset, truth, counted), centre, scale)

    @property
    def slope(self) -> float:
        """The slope of the logits themselves."""
        return float(self.beta @ self.weights_in_slope)

    @property
    def intercept(self) -> float:
        """The intercept where the logits themselves are 0."""
        return float(self.beta @ self.weights_in_intercept)

    @property
    def weights_in_slope(self) -> Array:
        """The weights of the coefficients in the slope."""
        return np.array([0.0, 1 / self.scale])

    @property
    def weights_in_intercept(self) -> Array:
        """The weights of the coefficients in the intercept."""
        return np.array([1.0, -self.centre / self.scale][: len(self.beta)])

    def influence(self, parts: Array, units: Array | None) -> Influence:
        """Sampling variation of a sum of the coefficients, from the information of the fit.

        With weights or clusters, from one step of Newton's method without each unit.
        """
        weight = np.ones(len(self.truth)) if self.weight is None else self.weight
        with np.errstate(over="ignore"):
            expected = 1 / (1 + np.exp(-(self.offset + self.design @ self.beta)))
        spread = weight * expected * (1 - expected)
        information = (self.design * spread[:, None]).T @ self.design
        if units is None and self.weight is None:
            variance = float(parts @ np.linalg.solve(information, parts))
            return Influence(np.zeros(0), math.inf, of_model=math.sqrt(variance))
        units = np.arange(len(weight)) if units is None else units
        count, size = int(units.max()) + 1, len(self.beta)
        scores = self.design * (weight * (self.truth - expected))[:, None]
        products = self.design[:, :, None] * self.design[:, None, :] * spread[:, None, None]
        of_unit = _summed(scores, units, count)
        rest = information - _summed(products.reshape(-1, size**2), units, count).reshape(-1, size, size)
        # a unit that holds nearly all that is known cannot be left out
        known = np.linalg.det(rest) / np.linalg.det(information)
        rest = np.where((known > _LEAST_KNOWN)[:, None, None], rest, information * math.sqrt(_LEAST_KNOWN))
        changes = np.linalg.solve(rest, of_unit[:, :, None])[:, :, 0] @ parts
        return Influence(changes, _freedom(self.truth == 1, weight, units))


def _summed(values: Array, units: Array, count: int) -> Array:
    """The sums of columns over the rows of units."""
    return np.stack([np.bincount(units, column, count) for column in values.T], axis=1)


def _freedom(event: Array, weight: Array, units: Array) -> float:
    """The degrees of freedom of a fit: two for each event or non-event, whichever are fewer, less one.

    Weights and clusters make fewer of them.
    """
    classes = [_effective(np.bincount(units, weight * rows)) for rows in (event, ~event)]
    return max(1.0, min(_effective(np.bincount(units, weight)) - 2, 2 * min(classes) - 1))


def _effective(weight: Array) -> float:
    """The effective number of units with some weights."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _influence_on_slope(sample: Sample, units: Array | None) -> Influence:
    """Sampling variation of the slope of the calibration line."""
    line = _Line.of(sample.truth.astype(float), sample.score, sample.weight, slope=True)
    return line.influence(line.weights_in_slope, units)


def _influence_on_intercept(sample: Sample, units: Array | None, *, slope: str) -> Influence:
    """Sampling variation of the intercept of the calibration line."""
    line = _Line.of(sample.truth.astype(float), sample.score, sample.weight, slope=slope == "fitted")
    return line.influence(line.weights_in_intercept, units)


@array_metric(
    direction="one", range=(-math.inf, math.inf), counts="smaller_class", influence=_influence_on_slope,
)  # fmt: skip
def calibration_slope(truth: Array, score: Array, weight: Array | None = None) -> float:
    """Slope of the logistic regression of the truth on the logit of the score (Cox, 1958).

    Below 1, scores are too extreme. Null, with the reason as status, for one class, constant scores, scores of 0 or 1,
    or scores that separate the classes.

    >>> calibration_slope.formula(truth=[1, 0, 0, 1, 1, 0], score=[0.8, 0.8, 0.2, 0.2, 0.8, 0.2])
    0.5
    """
    return _Line.of(truth, score, weight, slope=True).slope


@array_metric(
    direction="zero", range=(-math.inf, math.inf), counts="smaller_class", influence=_influence_on_intercept,
)  # fmt: skip
def calibration_intercept(
    truth: Array,
    score: Array,
    weight: Array | None = None,
    *,
    slope: Literal["fitted", "one"] = "fitted",
) -> float:
    """Intercept of the logistic regression of the truth on the logit of the score (Cox, 1958).

    With `slope="one"` the slope is held at 1: above 0, risks are underestimated. Null as `calibration_slope` is.

    >>> from tidyfair import metric_tweak
    >>> given_slope = metric_tweak(calibration_intercept, "intercept_given_slope", slope="one")
    >>> given_slope.formula(truth=[1, 0, 1, 0], score=[0.5, 0.5, 0.5, 0.5])
    0.0
    """
    if slope not in ("fitted", "one"):
        raise ArgumentError.not_one_of("slope", slope, ["fitted", "one"])
    return _Line.of(truth, score, weight, slope=slope == "fitted").intercept
