"""Metrics of predicted labels. A metric is its formula; parameters are counts of one label against the rest.

`tp`, `fp`, `fn`, `tn` are the cells of the confusion table, in case weights; `positives` and `negatives` count by truth
alone, `selected` and `unselected` by estimate alone, `instances` all rows. A parameter may also be a metric above.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from tidyfair.errors import ArgumentError
from tidyfair.metrics.define import class_metric
from tidyfair.specs import number
from tidyfair.specs.formulas import Number, Rate

__all__ = [
    "accuracy",
    "average_odds",
    "average_predictive_value",
    "bal_accuracy",
    "base_rate",
    "coverage",
    "demographic_disparity",
    "detection_prevalence",
    "diagnostic_odds_ratio",
    "divergence_from_rest",
    "error_rate",
    "f_meas",
    "fall_out",
    "false_discovery_rate",
    "false_negative_rate",
    "false_negative_share",
    "false_negatives",
    "false_negatives_per_false_positive",
    "false_omission_rate",
    "false_positive_rate",
    "false_positive_share",
    "false_positives",
    "instances",
    "interventions_avoided",
    "j_index",
    "kap",
    "lift",
    "markedness",
    "mcc",
    "miss_rate",
    "negative_likelihood_ratio",
    "negative_predictive_value",
    "negatives",
    "net_benefit",
    "net_benefit_at_prevalence",
    "net_benefit_of_treating_all",
    "net_benefit_of_untreated",
    "npv",
    "positive_likelihood_ratio",
    "positive_predictive_value",
    "positives",
    "ppv",
    "precision",
    "predicted_negatives",
    "predicted_positives",
    "prevalence",
    "recall",
    "roc_dist",
    "sedi",
    "selection_rate",
    "sens",
    "sensitivity",
    "share_of_rows",
    "smoothed_base_rate",
    "smoothed_negative_rate",
    "smoothed_rejection_rate",
    "smoothed_selection_rate",
    "spec",
    "specificity",
    "standardized_net_benefit",
    "threat_score",
    "true_negative_rate",
    "true_negative_share",
    "true_negatives",
    "true_positive_rate",
    "true_positive_share",
    "true_positives",
]

Risk: TypeAlias = float | Literal["threshold"]
"""A risk at which one acts, or that of the threshold of the call."""


# Rates of the confusion table


@class_metric()
def sens(tp: Number, fn: Number) -> Rate:
    """Share of actual positives that were predicted positive; null without actual positives.

    >>> sens.formula(tp=3, fn=1)
    0.75
    """
    return tp, tp + fn


sensitivity = sens.alias("sensitivity")
true_positive_rate = sens.alias("true_positive_rate")
recall = sens.alias("recall")


@class_metric()
def spec(tn: Number, fp: Number) -> Rate:
    """Share of actual negatives that were predicted negative; null without actual negatives.

    >>> spec.formula(tn=9, fp=1)
    0.9
    """
    return tn, tn + fp


specificity = spec.alias("specificity")
true_negative_rate = spec.alias("true_negative_rate")


@class_metric(direction="minimize")
def fall_out(fp: Number, tn: Number) -> Rate:
    """Share of actual negatives that were predicted positive; null without actual negatives.

    >>> fall_out.formula(fp=1, tn=9)
    0.1
    """
    return fp, fp + tn


false_positive_rate = fall_out.alias("false_positive_rate")


@class_metric(direction="minimize")
def miss_rate(fn: Number, tp: Number) -> Rate:
    """Share of actual positives that were predicted negative; null without actual positives.

    >>> miss_rate.formula(fn=1, tp=3)
    0.25
    """
    return fn, fn + tp


false_negative_rate = miss_rate.alias("false_negative_rate")


@class_metric()
def precision(tp: Number, fp: Number) -> Rate:
    """Share of predicted positives that were actually positive; null without predicted positives.

    >>> precision.formula(tp=3, fp=1)
    0.75
    """
    return tp, tp + fp


positive_predictive_value = precision.alias("positive_predictive_value")


@class_metric(direction="minimize")
def false_discovery_rate(fp: Number, tp: Number) -> Rate:
    """Share of predicted positives that were actually negative; null without predicted positives.

    >>> false_discovery_rate.formula(fp=1, tp=3)
    0.25
    """
    return fp, fp + tp


@class_metric(direction="minimize")
def false_omission_rate(fn: Number, tn: Number) -> Rate:
    """Share of predicted negatives that were actually positive; null without predicted negatives.

    >>> false_omission_rate.formula(fn=1, tn=4)
    0.2
    """
    return fn, fn + tn


@class_metric()
def negative_predictive_value(tn: Number, fn: Number) -> Rate:
    """Share of predicted negatives that were actually negative; null without predicted negatives.

    yardstick's `npv` gives the same number wherever truth has both labels.

    >>> negative_predictive_value.formula(tn=4, fn=1)
    0.8
    """
    return tn, tn + fn


@class_metric(undefined_levels="null", constant_average=True)
def detection_prevalence(selected: Number, unselected: Number) -> Rate:
    """Share of rows that were predicted positive, whatever the truth; null without predictions.

    >>> detection_prevalence.formula(selected=4, unselected=6)
    0.4
    """
    return selected, selected + unselected


selection_rate = detection_prevalence.alias("selection_rate")


@class_metric(undefined_levels="null", constant_average=True)
def base_rate(positives: Number, negatives: Number) -> Rate:
    """Share of rows that are actually positive, whatever was predicted; null without known truth.

    >>> base_rate.formula(positives=2, negatives=8)
    0.2
    """
    return positives, positives + negatives


prevalence = base_rate.alias("prevalence")


@class_metric()
def coverage(selected: Number, unselected: Number, instances: Number) -> Rate:
    """Share of rows that have a prediction, because the model did not abstain; null without rows.

    >>> coverage.formula(selected=3, unselected=5, instances=10)
    0.8
    """
    return selected + unselected, instances


@class_metric(over_levels=True)
def accuracy(tp: Number, fn: Number) -> Rate:
    """Share of rows whose prediction is correct; null without rows.

    >>> accuracy.formula(tp=3, fp=1, fn=1, tn=5)
    0.8
    """
    return tp.sum(axis=-1), (tp + fn).sum(axis=-1)


@class_metric(direction="minimize", over_levels=True)
def error_rate(tp: Number, fn: Number) -> Rate:
    """Share of rows whose prediction is wrong; null without rows.

    >>> error_rate.formula(tp=3, fp=1, fn=1, tn=5)
    0.2
    """
    return fn.sum(axis=-1), (tp + fn).sum(axis=-1)


@class_metric(undefined_levels="null")
def threat_score(tp: Number, fp: Number, fn: Number) -> Rate:
    """Correct predictions of the event as a share of all rows where it happened or was predicted (Jaccard index).

    Null where the event neither happened nor was predicted.

    >>> threat_score.formula(tp=3, fp=1, fn=2)
    0.5
    """
    return tp, tp + fp + fn


# Cells of the confusion table, as shares of all rows


@class_metric()
def true_positive_share(tp: Number, fp: Number, tn: Number, fn: Number) -> Rate:
    """Share of rows that are actual positives that were predicted positive; null without rows.

    >>> true_positive_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.25
    """
    return tp, tp + fp + tn + fn


@class_metric(direction="minimize")
def false_positive_share(tp: Number, fp: Number, tn: Number, fn: Number) -> Rate:
    """Share of rows that are actual negatives that were predicted positive; null without rows.

    >>> false_positive_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.125
    """
    return fp, tp + fp + tn + fn


@class_metric()
def true_negative_share(tp: Number, fp: Number, tn: Number, fn: Number) -> Rate:
    """Share of rows that are actual negatives that were predicted negative; null without rows.

    >>> true_negative_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.5
    """
    return tn, tp + fp + tn + fn


@class_metric(direction="minimize")
def false_negative_share(tp: Number, fp: Number, tn: Number, fn: Number) -> Rate:
    """Share of rows that are actual positives that were predicted negative; null without rows.

    >>> false_negative_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.125
    """
    return fn, tp + fp + tn + fn


# Shares, smoothed so that rare labels and small groups are not at 0 or 1 by chance


_MOST_ADDED = 1e15
"""Number of rows that counts as infinite."""


def _smoothed(count: Number, other: Number, label_count: Number, row_weight: Number, concentration: float) -> Number:
    number("concentration", concentration, 0, _MOST_ADDED)
    total = count + other
    added = concentration * row_weight
    return np.where(total > 0, (count + added / label_count) / (total + added), np.nan)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_selection_rate(
    selected: Number, unselected: Number, label_count: Number, row_weight: Number, *, concentration: float = 1
) -> Number:
    """Share of rows that were predicted positive, after `concentration` more rows spread evenly over the labels.

    The mean of the share under a symmetric Dirichlet prior; null without predictions. A row that is added has the
    weight Σw² / Σw, so that a group counts as its effective number of rows (Kish, 1965), whatever the scale of weights.

    >>> smoothed_selection_rate.formula(selected=4, unselected=5, label_count=2, row_weight=1)
    0.45
    """
    return _smoothed(selected, unselected, label_count, row_weight, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_rejection_rate(
    unselected: Number, selected: Number, label_count: Number, row_weight: Number, *, concentration: float = 1
) -> Number:
    """Share of rows that were not predicted positive: 1 minus the smoothed selection rate; null without predictions.

    >>> smoothed_rejection_rate.formula(selected=4, unselected=5, label_count=2, row_weight=1)
    0.55
    """
    return 1 - _smoothed(selected, unselected, label_count, row_weight, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_base_rate(
    positives: Number, negatives: Number, label_count: Number, row_weight: Number, *, concentration: float = 1
) -> Number:
    """Share of rows that are actually positive, after `concentration` more rows spread evenly over the labels.

    Null without known truth.

    >>> smoothed_base_rate.formula(positives=4, negatives=5, label_count=2, row_weight=1)
    0.45
    """
    return _smoothed(positives, negatives, label_count, row_weight, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_negative_rate(
    negatives: Number, positives: Number, label_count: Number, row_weight: Number, *, concentration: float = 1
) -> Number:
    """Share of rows that are not actually positive: 1 minus the smoothed base rate; null without known truth.

    >>> smoothed_negative_rate.formula(positives=4, negatives=5, label_count=2, row_weight=1)
    0.55
    """
    return 1 - _smoothed(positives, negatives, label_count, row_weight, concentration)


# Shares of a group and of the others


@class_metric(direction="zero", range=(-1, 1), constant_average=True)
def demographic_disparity(
    selected: Number, unselected: Number, overall_selected: Number, overall_unselected: Number
) -> Number:
    """Share of a group among all rejected rows, minus its share among all selected rows.

    Null where no row, or every row, is selected, and for a group without predictions. Das et al. (2021), Fairness
    measures for machine learning in finance.

    >>> demographic_disparity.formula(selected=1, unselected=3, overall_selected=4, overall_unselected=4)
    0.5
    """
    disparity = unselected / overall_unselected - selected / overall_selected
    return np.where(selected + unselected > 0, disparity, np.nan)


@class_metric(direction="minimize", range=(0, math.inf), over_levels=True)
def divergence_from_rest(
    positives: Number, negatives: Number, rest_positives: Number, rest_negatives: Number
) -> Number:
    """Kullback-Leibler divergence of the labels of a group from those of the others, in nats.

    Infinite where a label occurs in the group only; null without others. Kullback & Leibler (1951), On information and
    sufficiency.

    >>> divergence_from_rest.formula(positives=[1, 1], negatives=[1, 1], rest_positives=[2, 2], rest_negatives=[2, 2])
    0.0
    """
    count, others = positives + negatives, rest_positives + rest_negatives
    own, rest = positives / count, rest_positives / others
    divergence = np.where(own > 0, own * np.log(own / rest), 0.0).sum(axis=-1)
    known = ((count > 0) & (others > 0)).all(axis=-1)
    return np.where(known, divergence, np.nan)


@class_metric(over_levels=True, descriptive=True)
def share_of_rows(instances: Number, overall_instances: Number) -> Number:
    """Share of all rows that are in the group, those without truth or estimate included.

    >>> share_of_rows.formula(instances=6, overall_instances=10)
    0.6
    """
    return (instances / overall_instances)[..., 0]


# Combinations of rates


@class_metric(descriptive=True)
def average_odds(fall_out: Number, sens: Number) -> Number:
    """Mean of false and true positive rate: what average odds differences compare; null where one of them is.

    A change of one rate can hide that of the other.

    >>> average_odds.formula(fall_out=0.25, sens=0.75)
    0.5
    """
    return (fall_out + sens) / 2


@class_metric(descriptive=True)
def average_predictive_value(precision: Number, false_omission_rate: Number) -> Number:
    """Mean of precision and false omission rate: what average predictive value differences compare.

    Null where one of them is. A change of one rate can hide that of the other.

    >>> average_predictive_value.formula(precision=0.75, false_omission_rate=0.25)
    0.5
    """
    return (precision + false_omission_rate) / 2


@class_metric(undefined_levels="null")
def bal_accuracy(sens: Number, spec: Number) -> Number:
    """Mean of sensitivity and specificity; null where one of them is.

    >>> bal_accuracy.formula(sens=0.75, spec=0.25)
    0.5
    """
    return (sens + spec) / 2


@class_metric(range=(-1, 1))
def j_index(sens: Number, spec: Number) -> Number:
    """Sensitivity plus specificity minus one: 0 is guessing, 1 is perfect; null where one of them is.

    Youden (1950), Index for rating diagnostic tests.

    >>> j_index.formula(sens=0.75, spec=0.5)
    0.25
    """
    return sens + spec - 1


def _share(base_rate: Number, prevalence: float | None) -> Number | float:
    return base_rate if prevalence is None else number("prevalence", prevalence, 0, 1)


@class_metric(undefined_levels="null")
def ppv(sens: Number, spec: Number, base_rate: Number, *, prevalence: float | None = None) -> Number:
    """Share of predicted positives that are positive at a given prevalence, by Bayes' rule from sens and spec.

    `prevalence` is that of the data unless given, and the value then equals `precision`. Null where sens or spec is,
    or where nothing is predicted positive. Altman & Bland (1994), Diagnostic tests 2.

    >>> ppv.formula(sens=0.5, spec=0.5, base_rate=0.5)
    0.5
    """
    share = _share(base_rate, prevalence)
    return sens * share / (sens * share + (1 - spec) * (1 - share))


@class_metric(undefined_levels="null")
def npv(sens: Number, spec: Number, base_rate: Number, *, prevalence: float | None = None) -> Number:
    """Share of predicted negatives that are negative at a given prevalence, by Bayes' rule from sens and spec.

    `prevalence` is that of the data unless given. Null where sens or spec is, or where nothing is predicted negative.
    Altman & Bland (1994), Diagnostic tests 2.

    >>> npv.formula(sens=0.5, spec=0.5, base_rate=0.5)
    0.5
    """
    share = _share(base_rate, prevalence)
    return spec * (1 - share) / ((1 - sens) * share + spec * (1 - share))


@class_metric(range=(-1, 1))
def markedness(precision: Number, negative_predictive_value: Number) -> Number:
    """Precision plus negative predictive value minus one; null where one of them is.

    >>> markedness.formula(precision=0.75, negative_predictive_value=0.5)
    0.25
    """
    return precision + negative_predictive_value - 1


@class_metric()
def f_meas(precision: Number, recall: Number, *, beta: float = 1) -> Number:
    """Weighted harmonic mean of precision and recall, recall counting `beta` times as much.

    0 where both are 0; null where one of them is. van Rijsbergen (1979), Information Retrieval.

    >>> f_meas.formula(precision=0.5, recall=0.5)
    0.5
    """
    number("beta", beta, 0)
    mean = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


@class_metric(range=(-math.inf, 1))
def net_benefit(tp: Number, fp: Number, fn: Number, tn: Number, *, at: Risk = "threshold") -> Rate:
    """Share of true positives minus that of false positives, weighted by the odds of the risk threshold `at`.

    `at` is the risk at or above which one acts: with 0.1, a risk of 10 percent, nine false positives cost as much as
    one true positive is worth. It is the `threshold` of the call, which may be a list, and 0.5 for labels without one.
    Vickers & Elkin (2006), Medical Decision Making 26.

    >>> net_benefit.formula(tp=30, fp=20, fn=10, tn=40)
    0.1
    """
    return tp - fp * _odds(at), tp + fp + fn + tn


@class_metric(range=(-math.inf, 1))
def standardized_net_benefit(tp: Number, fp: Number, positives: Number, *, at: Risk = "threshold") -> Rate:
    """Net benefit as a share of the largest possible, which is the share of events; null without events.

    It allows comparisons of groups with different event rates. Kerr et al. (2016), Journal of Clinical
    Oncology 34.

    >>> standardized_net_benefit.formula(tp=30, fp=20, positives=40)
    0.25
    """
    return tp - fp * _odds(at), positives


@class_metric(range=(-math.inf, 1), constant_average=True)
def net_benefit_of_treating_all(tp: Number, fp: Number, fn: Number, tn: Number, *, at: Risk = "threshold") -> Rate:
    """Net benefit of selecting all rows that the model has a risk for, beside which a decision curve is drawn.

    >>> net_benefit_of_treating_all.formula(tp=30, fp=20, fn=10, tn=40)
    -0.2
    """
    return tp + fn - (fp + tn) * _odds(at), tp + fp + fn + tn


@class_metric(range=(-math.inf, 1))
def net_benefit_of_untreated(tp: Number, fp: Number, fn: Number, tn: Number, *, at: Risk = "threshold") -> Rate:
    """Share of true negatives minus that of false negatives over the odds of the risk threshold `at`.

    It is what the model gains over treating all, over the odds: the interventions that it avoids without a loss, as a
    share of all rows. Rousson & Zumbrunn (2011), BMC Medical Informatics and Decision Making 11.

    >>> net_benefit_of_untreated.formula(tp=30, fp=20, fn=10, tn=40)
    0.3
    """
    return tn - fn / _odds(at), tp + fp + fn + tn


interventions_avoided = net_benefit_of_untreated.alias("interventions_avoided")


@class_metric(range=(-math.inf, 1))
def net_benefit_at_prevalence(
    sens: Number,
    fall_out: Number,
    base_rate: Number,
    *,
    prevalence: float | None = None,
    at: Risk = "threshold",
) -> Number:
    """Net benefit where the share of events is another one, `prevalence`, such as that of the population.

    Null without events, or without others. Vickers, van Calster & Steyerberg (2016), BMJ 352.

    >>> net_benefit_at_prevalence.formula(sens=0.75, fall_out=0.25, base_rate=0.5)
    0.25
    """
    share = _share(base_rate, prevalence)
    return sens * share - fall_out * (1 - share) * _odds(at)


def _odds(at: Risk) -> float:
    """The odds of a risk; 1 for that of labels without a threshold."""
    if at == "threshold":
        return 1.0
    number("at", at, 0, 1, inside=True)
    return at / (1 - at)


@class_metric(direction="minimize", range=(0, math.sqrt(2)))
def roc_dist(sens: Number, spec: Number) -> Number:
    """Distance of a classifier from the perfect corner of the ROC square; null where sens or spec is.

    >>> roc_dist.formula(sens=0.4, spec=0.2)
    1.0
    """
    return np.sqrt((1 - sens) ** 2 + (1 - spec) ** 2)


@class_metric(range=(-1, 1))
def sedi(sens: Number, fall_out: Number) -> Number:
    """Symmetric extremal dependence index, for rare events; rates are kept 1e-9 away from 0 and 1.

    Null where sens or fall_out is. Ferro & Stephenson (2011), Extremal dependence indices.

    >>> round(sedi.formula(sens=0.75, fall_out=0.25), 4)
    0.6563
    """
    hit, false_alarm = sens.clip(1e-9, 1 - 1e-9), fall_out.clip(1e-9, 1 - 1e-9)
    no_hit, no_alarm = np.log(1 - hit), np.log(1 - false_alarm)
    hit, false_alarm = np.log(hit), np.log(false_alarm)
    return (false_alarm - hit - no_alarm + no_hit) / (false_alarm + hit + no_alarm + no_hit)


@class_metric(undefined_levels="null", range=(0, math.inf))
def lift(precision: Number, base_rate: Number) -> Number:
    """Share of positives among the predicted positives, over that among all rows.

    Null without predicted or without actual positives.

    >>> lift.formula(precision=0.5, base_rate=0.25)
    2.0
    """
    return precision / base_rate


@class_metric(undefined_levels="null", range=(0, math.inf))
def positive_likelihood_ratio(sens: Number, fall_out: Number) -> Number:
    """Probability of a positive prediction for a positive, over that for a negative.

    Infinite where no negative is predicted positive; null where sens or fall_out is, or both are 0.

    >>> positive_likelihood_ratio.formula(sens=0.75, fall_out=0.25)
    3.0
    """
    return sens / fall_out


@class_metric(undefined_levels="null", direction="minimize", range=(0, math.inf))
def negative_likelihood_ratio(miss_rate: Number, spec: Number) -> Number:
    """Probability of a negative prediction for a positive, over that for a negative.

    Infinite where no negative is predicted negative; null where miss_rate or spec is, or both are 0.

    >>> negative_likelihood_ratio.formula(miss_rate=0.25, spec=0.5)
    0.5
    """
    return miss_rate / spec


@class_metric(undefined_levels="null", range=(0, math.inf))
def diagnostic_odds_ratio(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Odds of a positive prediction among positives over those among negatives.

    Infinite where a kind of error never happens, null where it is 0/0. Glas et al. (2003), The diagnostic odds ratio.

    >>> diagnostic_odds_ratio.formula(tp=6, fp=2, fn=3, tn=4)
    4.0
    """
    return (tp * tn) / (fp * fn)


@class_metric(undefined_levels="null", direction="minimize", range=(0, math.inf), constant_average="micro")
def false_negatives_per_false_positive(fn: Number, fp: Number) -> Rate:
    """False negatives for each false positive; null without false positives.

    >>> false_negatives_per_false_positive.formula(fn=3, fp=2)
    1.5
    """
    return fn, fp


# Agreement of the whole table


@class_metric(range=(-1, 1), over_levels=True)
def mcc(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Correlation of truth and estimate (Matthews); null where one of them has a single label.

    Gorodkin (2004), Comparing two K-category assignments by a K-category correlation coefficient.

    >>> mcc.formula(tp=4, fp=1, fn=1, tn=4)
    0.6
    """
    of_estimate = ((tp + fp) * (fn + tn)).sum(axis=-1)
    of_truth = ((tp + fn) * (fp + tn)).sum(axis=-1)
    return (tp * tn - fp * fn).sum(axis=-1) / np.sqrt(of_estimate * of_truth)


@class_metric(range=(-1, 1), over_levels=True)
def kap(
    tp: Number, fp: Number, fn: Number, rank: Number, absolute_steps: Number, squared_steps: Number,
    *, weighting: Literal["none", "linear", "quadratic"] = "none",
) -> Number:  # fmt: skip
    """Agreement beyond chance (Cohen's kappa); with `weighting`, near misses of ordered labels count as partly right.

    Null where chance alone would agree perfectly. Cohen (1960), (1968).

    >>> kap.formula(tp=4, fp=1, fn=1, tn=4)
    0.6
    """
    truth, estimate, total = tp + fn, tp + fp, (tp + fn).sum(axis=-1, keepdims=True)
    if weighting == "none":
        observed, by_chance = fn, truth * (total - estimate)
    elif weighting == "linear":
        # a pair of labels is as many steps apart as there are levels between them
        below_truth, below_estimate = truth.cumsum(axis=-1), estimate.cumsum(axis=-1)
        observed = absolute_steps
        by_chance = below_truth * (total - below_estimate) + below_estimate * (total - below_truth)
    elif weighting == "quadratic":
        # counted from the first label that occurs, so that a single one gives 0 and not the dust of float sums
        first = np.argmax(truth + estimate > 0, axis=-1)[..., None]
        steps = rank - first
        observed = squared_steps
        mean_truth = (truth * steps).sum(axis=-1, keepdims=True)
        by_chance = (truth + estimate) * steps**2 * total - 2 * mean_truth * estimate * steps
    else:
        raise ArgumentError.not_one_of("weighting", weighting, ["none", "linear", "quadratic"])
    return 1 - observed.sum(axis=-1) / (by_chance.sum(axis=-1) / total[..., 0])


# Counts, in case weights


@class_metric(range=(0, math.inf), over_levels=True)
def instances(instances: Number) -> Number:
    """Number of rows, those without truth or estimate included.

    >>> instances.formula(instances=10)
    10.0
    """
    return instances[..., 0]


@class_metric(range=(0, math.inf))
def positives(positives: Number) -> Number:
    """Number of actual positives.

    >>> positives.formula(positives=4)
    4.0
    """
    return positives


@class_metric(range=(0, math.inf))
def negatives(negatives: Number) -> Number:
    """Number of actual negatives.

    >>> negatives.formula(negatives=6)
    6.0
    """
    return negatives


@class_metric(range=(0, math.inf))
def predicted_positives(selected: Number) -> Number:
    """Number of predicted positives.

    >>> predicted_positives.formula(selected=5)
    5.0
    """
    return selected


@class_metric(range=(0, math.inf))
def predicted_negatives(unselected: Number) -> Number:
    """Number of predicted negatives.

    >>> predicted_negatives.formula(unselected=5)
    5.0
    """
    return unselected


@class_metric(range=(0, math.inf))
def true_positives(tp: Number) -> Number:
    """Number of actual positives that were predicted positive.

    >>> true_positives.formula(tp=3)
    3.0
    """
    return tp


@class_metric(direction="minimize", range=(0, math.inf))
def false_positives(fp: Number) -> Number:
    """Number of actual negatives that were predicted positive.

    >>> false_positives.formula(fp=2)
    2.0
    """
    return fp


@class_metric(direction="minimize", range=(0, math.inf))
def false_negatives(fn: Number) -> Number:
    """Number of actual positives that were predicted negative.

    >>> false_negatives.formula(fn=1)
    1.0
    """
    return fn


@class_metric(range=(0, math.inf))
def true_negatives(tn: Number) -> Number:
    """Number of actual negatives that were predicted negative.

    >>> true_negatives.formula(tn=4)
    4.0
    """
    return tn
