"""Metrics of predicted labels. A metric is its formula; parameters are counts of one label against the rest.

`tp`, `fp`, `fn`, `tn` are the cells of the confusion table, in case weights; `positives` and `negatives` count by truth
alone, `selected` and `unselected` by estimate alone, `instances` all rows. A parameter may also be a metric above.
"""

from __future__ import annotations

import math
from typing import Literal

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import metric_tweak
from tidyfair.metrics.define import class_metric
from tidyfair.specs.arguments import number
from tidyfair.specs.formulas import Expr, Rate  # noqa: TC001 - part of what a reader of a formula sees

__all__ = [
    "accuracy",
    "average_odds",
    "average_predictive_value",
    "bal_accuracy",
    "balanced_accuracy",
    "base_rate",
    "cohen_kappa",
    "critical_success_index",
    "demographic_disparity",
    "detection_prevalence",
    "diagnostic_odds_ratio",
    "divergence_from_rest",
    "error_rate",
    "f1",
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
    "hit_rate",
    "informedness",
    "instances",
    "j_index",
    "kap",
    "lift",
    "markedness",
    "matthews_corrcoef",
    "mcc",
    "miss_rate",
    "negative_likelihood_ratio",
    "negative_predictive_value",
    "negatives",
    "npv",
    "positive_likelihood_ratio",
    "positive_predictive_value",
    "positives",
    "power",
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
    "threat_score",
    "true_negative_rate",
    "true_negative_share",
    "true_negatives",
    "true_positive_rate",
    "true_positive_share",
    "true_positives",
    "youden_index",
    "zero_one_loss",
]


# Rates of the confusion table


@class_metric()
def sens(tp: Expr, fn: Expr) -> Rate:
    """Share of actual positives that were predicted positive; null without actual positives.

    >>> sens.formula(tp=3, fn=1)
    0.75
    """
    return tp, tp + fn


sensitivity = sens.alias("sensitivity")
true_positive_rate = sens.alias("true_positive_rate")
hit_rate = sens.alias("hit_rate")
recall = sens.alias("recall")


@class_metric()
def spec(tn: Expr, fp: Expr) -> Rate:
    """Share of actual negatives that were predicted negative; null without actual negatives.

    >>> spec.formula(tn=9, fp=1)
    0.9
    """
    return tn, tn + fp


specificity = spec.alias("specificity")
true_negative_rate = spec.alias("true_negative_rate")


@class_metric(direction="minimize")
def fall_out(fp: Expr, tn: Expr) -> Rate:
    """Share of actual negatives that were predicted positive; null without actual negatives.

    >>> fall_out.formula(fp=1, tn=9)
    0.1
    """
    return fp, fp + tn


false_positive_rate = fall_out.alias("false_positive_rate")


@class_metric(direction="minimize")
def miss_rate(fn: Expr, tp: Expr) -> Rate:
    """Share of actual positives that were predicted negative; null without actual positives.

    >>> miss_rate.formula(fn=1, tp=3)
    0.25
    """
    return fn, fn + tp


false_negative_rate = miss_rate.alias("false_negative_rate")


@class_metric()
def precision(tp: Expr, fp: Expr) -> Rate:
    """Share of predicted positives that were actually positive; null without predicted positives.

    >>> precision.formula(tp=3, fp=1)
    0.75
    """
    return tp, tp + fp


positive_predictive_value = precision.alias("positive_predictive_value")


@class_metric(direction="minimize")
def false_discovery_rate(fp: Expr, tp: Expr) -> Rate:
    """Share of predicted positives that were actually negative; null without predicted positives.

    >>> false_discovery_rate.formula(fp=1, tp=3)
    0.25
    """
    return fp, fp + tp


@class_metric(direction="minimize")
def false_omission_rate(fn: Expr, tn: Expr) -> Rate:
    """Share of predicted negatives that were actually positive; null without predicted negatives.

    >>> false_omission_rate.formula(fn=1, tn=4)
    0.2
    """
    return fn, fn + tn


@class_metric()
def negative_predictive_value(tn: Expr, fn: Expr) -> Rate:
    """Share of predicted negatives that were actually negative; null without predicted negatives.

    yardstick's `npv` gives the same number wherever truth has both labels.

    >>> negative_predictive_value.formula(tn=4, fn=1)
    0.8
    """
    return tn, tn + fn


@class_metric(undefined_levels="null", constant_average=True)
def detection_prevalence(selected: Expr, unselected: Expr) -> Rate:
    """Share of rows that were predicted positive, whatever the truth; null without predictions.

    >>> detection_prevalence.formula(selected=4, unselected=6)
    0.4
    """
    return selected, selected + unselected


selection_rate = detection_prevalence.alias("selection_rate")


@class_metric(undefined_levels="null", constant_average=True)
def base_rate(positives: Expr, negatives: Expr) -> Rate:
    """Share of rows that are actually positive, whatever was predicted; null without known truth.

    >>> base_rate.formula(positives=2, negatives=8)
    0.2
    """
    return positives, positives + negatives


prevalence = base_rate.alias("prevalence")


@class_metric(over_levels=True)
def accuracy(tp: Expr, fn: Expr) -> Rate:
    """Share of rows whose prediction is right; null without rows.

    >>> accuracy.formula(tp=3, fp=1, fn=1, tn=5)
    0.8
    """
    return tp.sum(), (tp + fn).sum()


@class_metric(direction="minimize", over_levels=True)
def error_rate(tp: Expr, fn: Expr) -> Rate:
    """Share of rows whose prediction is wrong; null without rows.

    >>> error_rate.formula(tp=3, fp=1, fn=1, tn=5)
    0.2
    """
    return fn.sum(), (tp + fn).sum()


zero_one_loss = error_rate.alias("zero_one_loss")


@class_metric(undefined_levels="null")
def threat_score(tp: Expr, fp: Expr, fn: Expr) -> Rate:
    """Right predictions of the event as a share of all rows where it happened or was predicted (Jaccard index).

    Null where the event neither happened nor was predicted.

    >>> threat_score.formula(tp=3, fp=1, fn=2)
    0.5
    """
    return tp, tp + fp + fn


critical_success_index = threat_score.alias("critical_success_index")


# Cells of the confusion table, as shares of all rows


@class_metric()
def true_positive_share(tp: Expr, fp: Expr, tn: Expr, fn: Expr) -> Rate:
    """Share of rows that are actual positives that were predicted positive; null without rows.

    >>> true_positive_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.25
    """
    return tp, tp + fp + tn + fn


@class_metric(direction="minimize")
def false_positive_share(tp: Expr, fp: Expr, tn: Expr, fn: Expr) -> Rate:
    """Share of rows that are actual negatives that were predicted positive; null without rows.

    >>> false_positive_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.125
    """
    return fp, tp + fp + tn + fn


@class_metric()
def true_negative_share(tp: Expr, fp: Expr, tn: Expr, fn: Expr) -> Rate:
    """Share of rows that are actual negatives that were predicted negative; null without rows.

    >>> true_negative_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.5
    """
    return tn, tp + fp + tn + fn


@class_metric(direction="minimize")
def false_negative_share(tp: Expr, fp: Expr, tn: Expr, fn: Expr) -> Rate:
    """Share of rows that are actual positives that were predicted negative; null without rows.

    >>> false_negative_share.formula(tp=2, fp=1, tn=4, fn=1)
    0.125
    """
    return fn, tp + fp + tn + fn


# Shares, smoothed so that rare labels and small groups are not at 0 or 1 by chance


_MOST_ADDED = 1e15
"""So many rows are as good as infinitely many."""


def _smoothed(count: Expr, other: Expr, label_count: Expr, concentration: float) -> Expr:
    number("concentration", concentration, 0, _MOST_ADDED)
    total = count + other
    return pl.when(total > 0).then((count + concentration / label_count) / (total + concentration))


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_selection_rate(selected: Expr, unselected: Expr, label_count: Expr, *, concentration: float = 1) -> Expr:
    """Share of rows that were predicted positive, after `concentration` more rows spread evenly over the labels.

    The mean of the share under a symmetric Dirichlet prior; null without predictions.

    >>> smoothed_selection_rate.formula(selected=4, unselected=5, label_count=2)
    0.45
    """
    return _smoothed(selected, unselected, label_count, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_rejection_rate(unselected: Expr, selected: Expr, label_count: Expr, *, concentration: float = 1) -> Expr:
    """Share of rows that were not predicted positive: 1 less the smoothed selection rate; null without predictions.

    >>> smoothed_rejection_rate.formula(selected=4, unselected=5, label_count=2)
    0.55
    """
    return 1 - _smoothed(selected, unselected, label_count, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_base_rate(positives: Expr, negatives: Expr, label_count: Expr, *, concentration: float = 1) -> Expr:
    """Share of rows that are actually positive, after `concentration` more rows spread evenly over the labels.

    Null without known truth.

    >>> smoothed_base_rate.formula(positives=4, negatives=5, label_count=2)
    0.45
    """
    return _smoothed(positives, negatives, label_count, concentration)


@class_metric(undefined_levels="null", constant_average=True)
def smoothed_negative_rate(negatives: Expr, positives: Expr, label_count: Expr, *, concentration: float = 1) -> Expr:
    """Share of rows that are not actually positive: 1 less the smoothed base rate; null without known truth.

    >>> smoothed_negative_rate.formula(positives=4, negatives=5, label_count=2)
    0.55
    """
    return 1 - _smoothed(positives, negatives, label_count, concentration)


# Shares of a group and of the others


@class_metric(direction="zero", range=(-1, 1), constant_average=True)
def demographic_disparity(selected: Expr, unselected: Expr, overall_selected: Expr, overall_unselected: Expr) -> Expr:
    """Share of a group among all who were rejected, less its share among all who were selected.

    Null where nobody, or everybody, is selected, and for a group without predictions. Das et al. (2021), Fairness
    measures for machine learning in finance.

    >>> demographic_disparity.formula(selected=1, unselected=3, overall_selected=4, overall_unselected=4)
    0.5
    """
    disparity = unselected / overall_unselected - selected / overall_selected
    return pl.when(selected + unselected > 0).then(disparity)


@class_metric(direction="minimize", range=(0, math.inf), over_levels=True)
def divergence_from_rest(positives: Expr, negatives: Expr, rest_positives: Expr, rest_negatives: Expr) -> Expr:
    """Kullback-Leibler divergence of the labels of a group from those of the others, in nats.

    Infinite where a label occurs in the group only; null without others. Kullback & Leibler (1951), On information and
    sufficiency.

    >>> divergence_from_rest.formula(positives=[1, 1], negatives=[1, 1], rest_positives=[2, 2], rest_negatives=[2, 2])
    0.0
    """
    count, others = positives + negatives, rest_positives + rest_negatives
    own, rest = positives / count, rest_positives / others
    return pl.when((count > 0).all() & (others > 0).all()).then(
        pl.when(own > 0).then(own * (own / rest).log()).otherwise(0.0).sum()
    )


@class_metric(direction="maximize", over_levels=True)
def share_of_rows(instances: Expr, overall_instances: Expr) -> Expr:
    """Share of all rows that are in the group, those without truth or estimate included.

    >>> share_of_rows.formula(instances=6, overall_instances=10)
    0.6
    """
    return (instances / overall_instances).first()


# Combinations of rates


@class_metric()
def average_odds(fall_out: Expr, sens: Expr) -> Expr:
    """Mean of false and true positive rate: what average odds differences compare; null where one of them is.

    A change of one rate can hide that of the other.

    >>> average_odds.formula(fall_out=0.25, sens=0.75)
    0.5
    """
    return (fall_out + sens) / 2


@class_metric()
def average_predictive_value(precision: Expr, false_omission_rate: Expr) -> Expr:
    """Mean of precision and false omission rate: what average predictive value differences compare.

    Null where one of them is. A change of one rate can hide that of the other.

    >>> average_predictive_value.formula(precision=0.75, false_omission_rate=0.25)
    0.5
    """
    return (precision + false_omission_rate) / 2


@class_metric(undefined_levels="null")
def bal_accuracy(sens: Expr, spec: Expr) -> Expr:
    """Mean of sensitivity and specificity; null where one of them is.

    >>> bal_accuracy.formula(sens=0.75, spec=0.25)
    0.5
    """
    return (sens + spec) / 2


balanced_accuracy = bal_accuracy.alias("balanced_accuracy")


@class_metric(range=(-1, 1))
def j_index(sens: Expr, spec: Expr) -> Expr:
    """Sensitivity plus specificity minus one: 0 is guessing, 1 is perfect; null where one of them is.

    Youden (1950), Index for rating diagnostic tests.

    >>> j_index.formula(sens=0.75, spec=0.5)
    0.25
    """
    return sens + spec - 1


informedness = j_index.alias("informedness")
youden_index = j_index.alias("youden_index")


def _share(base_rate: Expr, prevalence: float | None) -> Expr:
    return base_rate if prevalence is None else pl.lit(number("prevalence", prevalence, 0, 1))


@class_metric(undefined_levels="null")
def ppv(sens: Expr, spec: Expr, base_rate: Expr, *, prevalence: float | None = None) -> Expr:
    """Share of predicted positives that are positive at a given prevalence, by Bayes' rule from sens and spec.

    `prevalence` is that of the data unless given, and the value then equals `precision`. Null where sens or spec is,
    or where nothing is predicted positive. Altman & Bland (1994), Diagnostic tests 2.

    >>> ppv.formula(sens=0.5, spec=0.5, base_rate=0.5)
    0.5
    """
    share = _share(base_rate, prevalence)
    return sens * share / (sens * share + (1 - spec) * (1 - share))


@class_metric(undefined_levels="null")
def npv(sens: Expr, spec: Expr, base_rate: Expr, *, prevalence: float | None = None) -> Expr:
    """Share of predicted negatives that are negative at a given prevalence, by Bayes' rule from sens and spec.

    `prevalence` is that of the data unless given. Null where sens or spec is, or where nothing is predicted negative.
    Altman & Bland (1994), Diagnostic tests 2.

    >>> npv.formula(sens=0.5, spec=0.5, base_rate=0.5)
    0.5
    """
    share = _share(base_rate, prevalence)
    return spec * (1 - share) / ((1 - sens) * share + spec * (1 - share))


@class_metric(range=(-1, 1))
def markedness(precision: Expr, negative_predictive_value: Expr) -> Expr:
    """Precision plus negative predictive value minus one; null where one of them is.

    >>> markedness.formula(precision=0.75, negative_predictive_value=0.5)
    0.25
    """
    return precision + negative_predictive_value - 1


@class_metric()
def f_meas(precision: Expr, recall: Expr, *, beta: float = 1) -> Expr:
    """Weighted harmonic mean of precision and recall, recall counting `beta` times as much.

    0 where both are 0; null where one of them is. van Rijsbergen (1979), Information Retrieval.

    >>> f_meas.formula(precision=0.5, recall=0.5)
    0.5
    """
    number("beta", beta, 0)
    mean = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return pl.when(precision + recall == 0).then(0.0).otherwise(mean)


f1 = metric_tweak(f_meas, "f1", beta=1)


@class_metric(direction="minimize", range=(0, math.sqrt(2)))
def roc_dist(sens: Expr, spec: Expr) -> Expr:
    """Distance of a classifier from the perfect corner of the ROC square; null where sens or spec is.

    >>> roc_dist.formula(sens=0.4, spec=0.2)
    1.0
    """
    return ((1 - sens) ** 2 + (1 - spec) ** 2).sqrt()


@class_metric(range=(-1, 1))
def sedi(sens: Expr, fall_out: Expr) -> Expr:
    """Symmetric extremal dependence index, for rare events; rates are kept 1e-9 away from 0 and 1.

    Null where sens or fall_out is. Ferro & Stephenson (2011), Extremal dependence indices.

    >>> round(sedi.formula(sens=0.75, fall_out=0.25), 4)
    0.6563
    """
    hit, false_alarm = sens.clip(1e-9, 1 - 1e-9), fall_out.clip(1e-9, 1 - 1e-9)
    no_hit, no_alarm = (1 - hit).log(), (1 - false_alarm).log()
    hit, false_alarm = hit.log(), false_alarm.log()
    return (false_alarm - hit - no_alarm + no_hit) / (false_alarm + hit + no_alarm + no_hit)


@class_metric(undefined_levels="null", range=(0, math.inf))
def lift(precision: Expr, base_rate: Expr) -> Expr:
    """How many times more positives there are among the predicted positives than among all rows.

    Null without predicted or without actual positives.

    >>> lift.formula(precision=0.5, base_rate=0.25)
    2.0
    """
    return precision / base_rate


@class_metric(undefined_levels="null", range=(0, math.inf))
def positive_likelihood_ratio(sens: Expr, fall_out: Expr) -> Expr:
    """How many times likelier a positive prediction is for a positive than for a negative.

    Infinite where no negative is predicted positive; null where sens or fall_out is, or both are 0.

    >>> positive_likelihood_ratio.formula(sens=0.75, fall_out=0.25)
    3.0
    """
    return sens / fall_out


@class_metric(undefined_levels="null", direction="minimize", range=(0, math.inf))
def negative_likelihood_ratio(miss_rate: Expr, spec: Expr) -> Expr:
    """How many times likelier a negative prediction is for a positive than for a negative.

    Infinite where no negative is predicted negative; null where miss_rate or spec is, or both are 0.

    >>> negative_likelihood_ratio.formula(miss_rate=0.25, spec=0.5)
    0.5
    """
    return miss_rate / spec


@class_metric(undefined_levels="null", range=(0, math.inf))
def diagnostic_odds_ratio(tp: Expr, fp: Expr, fn: Expr, tn: Expr) -> Expr:
    """Odds of a positive prediction among positives over those among negatives.

    Infinite where a kind of error never happens, null where it is 0/0. Glas et al. (2003), The diagnostic odds ratio.

    >>> diagnostic_odds_ratio.formula(tp=6, fp=2, fn=3, tn=4)
    4.0
    """
    return (tp * tn) / (fp * fn)


@class_metric(undefined_levels="null", direction="minimize", range=(0, math.inf), constant_average="micro")
def false_negatives_per_false_positive(fn: Expr, fp: Expr) -> Rate:
    """False negatives for each false positive; null without false positives.

    >>> false_negatives_per_false_positive.formula(fn=3, fp=2)
    1.5
    """
    return fn, fp


# Agreement of the whole table


@class_metric(range=(-1, 1), over_levels=True)
def mcc(tp: Expr, fp: Expr, fn: Expr, tn: Expr) -> Expr:
    """Correlation of truth and estimate (Matthews); null where one of them has a single label.

    Gorodkin (2004), Comparing two K-category assignments by a K-category correlation coefficient.

    >>> mcc.formula(tp=4, fp=1, fn=1, tn=4)
    0.6
    """
    variances = ((tp + fp) * (fn + tn)).sum() * ((tp + fn) * (fp + tn)).sum()
    return (tp * tn - fp * fn).sum() / variances.sqrt()


matthews_corrcoef = mcc.alias("matthews_corrcoef")


@class_metric(range=(-1, 1), over_levels=True)
def kap(
    tp: Expr, fp: Expr, fn: Expr, rank: Expr, absolute_steps: Expr, squared_steps: Expr,
    *, weighting: Literal["none", "linear", "quadratic"] = "none",
) -> Expr:  # fmt: skip
    """Agreement beyond chance (Cohen's kappa); with `weighting`, near misses of ordered labels count as partly right.

    Null where chance alone would agree perfectly. Cohen (1960), (1968).

    >>> kap.formula(tp=4, fp=1, fn=1, tn=4)
    0.6
    """
    truth, estimate, total = tp + fn, tp + fp, (tp + fn).sum()
    if weighting == "none":
        observed, by_chance = fn.sum(), (truth * (total - estimate)).sum()
    elif weighting == "linear":
        # a pair of labels is as many steps apart as there are levels between them
        below_truth, below_estimate = truth.cum_sum(), estimate.cum_sum()
        observed = absolute_steps.sum()
        by_chance = (below_truth * (total - below_estimate) + below_estimate * (total - below_truth)).sum()
    elif weighting == "quadratic":
        # counted from the first label that occurs, so that a single one gives 0 and not the dust of float sums
        rank -= rank.filter(truth + estimate > 0).min()
        observed = squared_steps.sum()
        squares = ((truth + estimate) * rank**2).sum() * total
        by_chance = squares - 2 * (truth * rank).sum() * (estimate * rank).sum()
    else:
        raise ArgumentError.unknown("weighting", weighting, ["none", "linear", "quadratic"])
    return 1 - observed / (by_chance / total)


cohen_kappa = kap.alias("cohen_kappa")


# Counts, in case weights


@class_metric(range=(0, math.inf), over_levels=True)
def instances(instances: Expr) -> Expr:
    """Number of rows, those without truth or estimate included.

    >>> instances.formula(instances=10)
    10.0
    """
    return instances.first()


@class_metric(range=(0, math.inf))
def positives(positives: Expr) -> Expr:
    """Number of actual positives.

    >>> positives.formula(positives=4)
    4.0
    """
    return positives


@class_metric(range=(0, math.inf))
def negatives(negatives: Expr) -> Expr:
    """Number of actual negatives.

    >>> negatives.formula(negatives=6)
    6.0
    """
    return negatives


@class_metric(range=(0, math.inf))
def predicted_positives(selected: Expr) -> Expr:
    """Number of predicted positives.

    >>> predicted_positives.formula(selected=5)
    5.0
    """
    return selected


@class_metric(range=(0, math.inf))
def predicted_negatives(unselected: Expr) -> Expr:
    """Number of predicted negatives.

    >>> predicted_negatives.formula(unselected=5)
    5.0
    """
    return unselected


@class_metric(range=(0, math.inf))
def true_positives(tp: Expr) -> Expr:
    """Number of actual positives that were predicted positive.

    >>> true_positives.formula(tp=3)
    3.0
    """
    return tp


power = true_positives.alias("power")


@class_metric(direction="minimize", range=(0, math.inf))
def false_positives(fp: Expr) -> Expr:
    """Number of actual negatives that were predicted positive.

    >>> false_positives.formula(fp=2)
    2.0
    """
    return fp


@class_metric(direction="minimize", range=(0, math.inf))
def false_negatives(fn: Expr) -> Expr:
    """Number of actual positives that were predicted negative.

    >>> false_negatives.formula(fn=1)
    1.0
    """
    return fn


@class_metric(range=(0, math.inf))
def true_negatives(tn: Expr) -> Expr:
    """Number of actual negatives that were predicted negative.

    >>> true_negatives.formula(tn=4)
    4.0
    """
    return tn
