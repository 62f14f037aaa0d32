"""Fairness metrics, each defined by a metric, a name and an aggregate.

Unless named a ratio, each is the highest group minus the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import polars as pl

from tidyfair.calling import GroupwiseFactory, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, in_short, listed
from tidyfair.metrics.classification import (
    accuracy,
    average_odds,
    average_predictive_value,
    demographic_disparity,
    divergence_from_rest,
    fall_out,
    false_negatives_per_false_positive,
    negative_predictive_value,
    precision,
    selection_rate,
    sens,
    share_of_rows,
    smoothed_base_rate,
    smoothed_negative_rate,
    smoothed_rejection_rate,
    smoothed_selection_rate,
    spec,
)
from tidyfair.metrics.define import prob_metric
from tidyfair.metrics.dependence import distance_given_estimate, distance_given_truth, distance_to_all
from tidyfair.metrics.distances import (
    area_between_roc_curves,
    area_between_roc_curves_debiased,
    area_between_roc_curves_if_equal,
    background_negative_auc,
    background_positive_auc,
    score_distance,
    score_distance_debiased,
    score_distance_if_equal,
    score_transport,
    score_transport_debiased,
    score_transport_if_equal,
)
from tidyfair.metrics.inequality import (
    inequality_within,
    mean_benefit,
)
from tidyfair.metrics.prediction_intervals import interval_coverage
from tidyfair.metrics.probability import (
    balance_for_negative_class,
    balance_for_positive_class,
    calibration_in_the_large,
    expected_calibration_error_debiased,
    roc_auc,
)
from tidyfair.metrics.regression import squared_shift
from tidyfair.metrics.survival import calibration_in_the_large_survival, concordance_survival
from tidyfair.specs import (
    DIRECTIONS,
    Aggregate,
    Direction,
    FarthestPair,
    as_aggregate,
    coefficient_of_variation,
    difference,
    generalized_entropy,
    group_maximum,
    group_mean,
    group_minimum,
    log_ratio,
    one_of,
    ratio,
    refuse_unknown_settings,
    text,
)
from tidyfair.specs.formulas import GroupPairs, Sample

__all__ = [
    "abroca",
    "abroca_debiased",
    "abroca_if_equal",
    "auc_parity",
    "average_abs_odds_difference",
    "average_odds_difference",
    "average_predictive_value_difference",
    "between_group_coefficient_of_variation",
    "between_group_generalized_entropy_index",
    "between_group_theil_index",
    "bias_amplification",
    "bnsp_auc",
    "bpsn_auc",
    "calibration_error_parity",
    "calibration_parity",
    "class_imbalance",
    "concordance_parity",
    "conditional_demographic_disparity",
    "conditional_use_accuracy_equality",
    "demographic_parity",
    "demographic_parity_ratio",
    "differential_fairness",
    "disparate_impact",
    "equal_opportunity",
    "equal_opportunity_ratio",
    "equalized_coverage",
    "equalized_odds",
    "equalized_odds_ratio",
    "explained_by_groups",
    "generalized_equalized_odds_difference",
    "independence",
    "kl_divergence",
    "kolmogorov_smirnov",
    "kolmogorov_smirnov_debiased",
    "kolmogorov_smirnov_if_equal",
    "mutual_information",
    "negative_class_balance",
    "new_between_group_metric",
    "new_groupwise_metric",
    "overall_accuracy_equality",
    "positive_class_balance",
    "predictive_equality",
    "predictive_parity",
    "separation",
    "statistical_parity_difference",
    "sufficiency",
    "survival_calibration_parity",
    "treatment_equality",
    "wasserstein_distance",
    "wasserstein_distance_debiased",
    "wasserstein_distance_if_equal",
    "within_group_generalized_entropy_index",
]

_AIF360 = "Bellamy et al. (2018), AI Fairness 360"
_BAROCAS = "Barocas et al. (2023), Fairness and machine learning"
_BERK = "Berk et al. (2021), Fairness in criminal justice risk assessments"
_CALDERS = "Calders et al. (2009), Building classifiers with independency constraints"
_CHOULDECHOVA = "Chouldechova (2017), Fair prediction with disparate impact"
_CORBETT = "Corbett-Davies et al. (2017), Algorithmic decision making and the cost of fairness"
_DAS = "Das et al. (2021), Fairness measures for machine learning in finance"
_DWORK = "Dwork et al. (2012), Fairness through awareness"
_FELDMAN = "Feldman et al. (2015), Certifying and removing disparate impact"
_FOULDS = "Foulds et al. (2020), An intersectional definition of fairness"
_ROMANO = "Romano et al. (2020), With malice toward none: assessing uncertainty via equalized coverage"
_HARDT = "Hardt et al. (2016), Equality of opportunity in supervised learning"
_KLEINBERG = "Kleinberg et al. (2016), Inherent trade-offs in the fair determination of risk scores"
_PLEISS = "Pleiss et al. (2017), On fairness and calibration"
_SPEICHER = "Speicher et al. (2018), A unified approach to quantifying algorithmic unfairness"
_WACHTER = "Wachter et al. (2021), Why fairness cannot be automated"


@refuse_unknown_settings
def new_groupwise_metric(
    fn: Metric | MetricSet,
    name: str,
    aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float],
    direction: Direction | None = None,
    *,
    less: Metric | MetricSet | None = None,
    source: str | None = None,
    otherwise: Metric | MetricSet | None = None,
) -> GroupwiseFactory:
    """Make a fairness metric: a factory that takes the sensitive feature and returns a metric.

    Args:
        fn: A metric, or a metric set whose disparities are combined.
        name: What `.metric` says.
        aggregate: `difference()`, `ratio()` or a similar aggregate; or a polars expression or a function of a polars
            frame, as for `new_aggregate`, which can also state the value for equal groups.
        direction: `"minimize"`, `"maximize"`, `"zero"` or `"one"`; the aggregate's own unless given.
        less: A metric or set whose disparity is subtracted; the remainder is the disparity added by predictions.
        source: The paper or standard that defines it, shown in reports.
        otherwise: A metric or set to compare in calls without the columns that the others read.

    >>> from tidyfair import difference, new_groupwise_metric, npv
    >>> npv_gap = new_groupwise_metric(npv, "npv_gap", difference())
    >>> npv_gap("sex")
    <groupwise metric npv_gap('sex'): difference(to='range') of npv, minimize>
    """
    metrics = _ordinary(fn, name)
    subtracted = () if less is None else _ordinary(less, name)
    alternative = () if otherwise is None else _ordinary(otherwise, name)
    _check_name(name, direction)
    kinds = {metric.kind for metric in (*metrics, *subtracted)}
    if len(kinds) > 1 and not kinds <= {"class", "prob"}:
        apart = "numeric metrics" if "numeric" in kinds else "metrics of survival times or intervals"
        msg = (
            f"{name}: {apart} cannot be combined with others, here {listed(sorted(kinds))}, because they read "
            "different columns."
        )
        raise ArgumentError(msg)
    if source is not None:
        text("source", source)
    return GroupwiseFactory(
        name,
        metrics,
        as_aggregate(aggregate, name, direction),
        direction,
        subtracted,
        source,
        otherwise=alternative,
    )


def _ordinary(given: object, name: str) -> tuple[Metric, ...]:
    members = given.metrics if isinstance(given, MetricSet) else (given,)
    metrics = tuple(member for member in members if isinstance(member, Metric))
    if not metrics or len(metrics) < len(members):
        msg = f"{name}: a groupwise metric needs a metric or a set of ordinary metrics, not {in_short(given)}."
        raise ArgumentError(msg)
    return metrics


def _check_name(name: object, direction: object) -> None:
    if direction is not None:
        one_of("direction", direction, DIRECTIONS)
    if not isinstance(name, str) or not name:
        msg = f"The name of a groupwise metric is a non-empty text, not {in_short(name)}."
        raise ArgumentError(msg)


@refuse_unknown_settings
def new_between_group_metric(
    fn: Metric | Callable[[Sample, Sample], float],
    name: str,
    aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float] | None = None,
    *,
    against: Literal["rest", "pairs"] = "rest",
    direction: Direction | None = None,
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
) -> GroupwiseFactory:
    """Make a metric defined on a group and the others, such as the distance of their scores.

    Args:
        fn: A function of two samples, each with the arrays `truth` (whether a row has the event), `score` and `weight`
            (None without weights), which returns a number, or raises `Undefined("reason")`.
        name: What `.metric` says.
        aggregate: The aggregate of the values of groups; by default the largest.
        against: Each group is compared with the `"rest"`, or with each other group (`"pairs"`), and its value is the
            largest of its pairs.
        direction: `"minimize"`, `"maximize"`, `"zero"` or `"one"`; the aggregate's own unless given.
        range: Smallest and largest possible value.

    >>> def mean_distance(one, other):
    ...     return abs(one.score.mean() - other.score.mean())
    >>> mean_score_distance = new_between_group_metric(mean_distance, "mean_score_distance")
    >>> mean_score_distance("race")
    <groupwise metric mean_score_distance('race'): group_maximum() of mean_score_distance, minimize>
    """
    if not isinstance(fn, Metric) and not callable(fn):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"{name}: `fn` must be a function of two samples, not {in_short(fn)}."
        raise ArgumentError(msg)
    _check_name(name, direction)
    one_of("against", against, ["rest", "pairs"])
    define = prob_metric(direction=direction or "minimize", range=range, probabilities=False, against=against)
    metric = fn.alias(name) if isinstance(fn, Metric) else replace(define(fn), name=name)
    is_of_pairs = isinstance(metric.definition, GroupPairs) and metric.definition.against == "pairs"
    largest = FarthestPair() if is_of_pairs else group_maximum()
    chosen = largest if aggregate is None else as_aggregate(aggregate, name, direction)
    return GroupwiseFactory(name, (metric,), chosen, direction)


# Standard definitions

demographic_parity = new_groupwise_metric(selection_rate, "demographic_parity", difference(), source=_CALDERS)
equal_opportunity = new_groupwise_metric(sens, "equal_opportunity", difference(), source=_HARDT)
equalized_odds = new_groupwise_metric(metric_set(sens, spec), "equalized_odds", difference(signed=False), source=_HARDT)
predictive_parity = new_groupwise_metric(precision, "predictive_parity", difference(), source=_CHOULDECHOVA)
predictive_equality = new_groupwise_metric(fall_out, "predictive_equality", difference(), source=_CORBETT)
overall_accuracy_equality = new_groupwise_metric(accuracy, "overall_accuracy_equality", difference(), source=_BERK)
treatment_equality = new_groupwise_metric(
    false_negatives_per_false_positive, "treatment_equality", ratio(), source=_BERK
)
conditional_use_accuracy_equality = new_groupwise_metric(
    metric_set(precision, negative_predictive_value),
    "conditional_use_accuracy_equality",
    difference(signed=False),
    source=_BERK,
)

# The same, named by how groups are compared

demographic_parity_ratio = new_groupwise_metric(selection_rate, "demographic_parity_ratio", ratio(), source=_CALDERS)
statistical_parity_difference = new_groupwise_metric(
    selection_rate, "statistical_parity_difference", difference(), source=_DWORK
)
disparate_impact = new_groupwise_metric(selection_rate, "disparate_impact", ratio(), source=_FELDMAN)
equal_opportunity_ratio = new_groupwise_metric(sens, "equal_opportunity_ratio", ratio(), source=_HARDT)
# of fall_out, not of spec: 1% against 2% of false alarms is a ratio of 0.5, 99% against 98% of spec is 0.99
equalized_odds_ratio = new_groupwise_metric(
    metric_set(sens, fall_out), "equalized_odds_ratio", ratio(signed=False), source=_HARDT
)


average_abs_odds_difference = new_groupwise_metric(
    metric_set(fall_out, sens), "average_abs_odds_difference", difference(signed=False, across="mean"), source=_AIF360
)

# Averages of two rates (gaps can cancel)

average_odds_difference = new_groupwise_metric(
    average_odds, "average_odds_difference", difference(signed=True), source=_AIF360
)
average_predictive_value_difference = new_groupwise_metric(
    average_predictive_value, "average_predictive_value_difference", difference(signed=True), source=_AIF360
)

# Groups of any number, at once

differential_fairness = new_groupwise_metric(
    metric_set(smoothed_selection_rate, smoothed_rejection_rate),
    "differential_fairness",
    log_ratio(signed=False),
    source=_FOULDS,
    # of the labels in the data, where there are no predictions
    otherwise=metric_set(smoothed_base_rate, smoothed_negative_rate),
)
bias_amplification = new_groupwise_metric(
    metric_set(smoothed_selection_rate, smoothed_rejection_rate),
    "bias_amplification",
    log_ratio(signed=False),
    "zero",
    less=metric_set(smoothed_base_rate, smoothed_negative_rate),
    source=_FOULDS,
)
conditional_demographic_disparity = new_groupwise_metric(
    demographic_disparity, "conditional_demographic_disparity", group_mean(weighted=True), source=_WACHTER
)
kl_divergence = new_groupwise_metric(divergence_from_rest, "kl_divergence", group_maximum(), source=_DAS)
class_imbalance = new_groupwise_metric(share_of_rows, "class_imbalance", difference(), source=_DAS)

# Labels that depend on groups, and how far

independence = new_groupwise_metric(distance_to_all, "independence", group_maximum(), source=_BAROCAS)
separation = new_groupwise_metric(distance_given_truth, "separation", group_maximum(), source=_BAROCAS)
sufficiency = new_groupwise_metric(distance_given_estimate, "sufficiency", group_maximum(), source=_BAROCAS)
mutual_information = replace(
    new_groupwise_metric(distance_to_all, "mutual_information", group_mean(weighted=True)), fixed=("distance",)
)

# the share of the variance of predictions that lies between groups
explained_by_groups = new_groupwise_metric(squared_shift, "explained_by_groups", group_mean(weighted=True))

# Inequality, between groups and within

between_group_generalized_entropy_index = new_groupwise_metric(
    mean_benefit, "between_group_generalized_entropy_index", generalized_entropy(), source=_SPEICHER
)
between_group_theil_index = new_groupwise_metric(
    mean_benefit, "between_group_theil_index", generalized_entropy(1), source=_SPEICHER
)
between_group_coefficient_of_variation = new_groupwise_metric(
    mean_benefit, "between_group_coefficient_of_variation", coefficient_of_variation(weighted=True)
)
within_group_generalized_entropy_index = new_groupwise_metric(
    inequality_within, "within_group_generalized_entropy_index", group_mean(weighted=True), source=_SPEICHER
)


# Scores, compared

auc_parity = new_groupwise_metric(roc_auc, "auc_parity", difference())
# of calibration in the large, because in a small group that is noisy, but not biased
calibration_parity = new_groupwise_metric(calibration_in_the_large, "calibration_parity", difference(), source=_PLEISS)
calibration_error_parity = new_groupwise_metric(
    expected_calibration_error_debiased, "calibration_error_parity", difference()
)
positive_class_balance = new_groupwise_metric(
    balance_for_positive_class, "positive_class_balance", difference(), source=_KLEINBERG
)
negative_class_balance = new_groupwise_metric(
    balance_for_negative_class, "negative_class_balance", difference(), source=_KLEINBERG
)
generalized_equalized_odds_difference = new_groupwise_metric(
    metric_set(balance_for_positive_class, balance_for_negative_class),
    "generalized_equalized_odds_difference",
    difference(signed=False),
    source=_PLEISS,
)

# Survival times and intervals, compared

concordance_parity = new_groupwise_metric(concordance_survival, "concordance_parity", difference())
survival_calibration_parity = new_groupwise_metric(
    calibration_in_the_large_survival, "survival_calibration_parity", difference()
)
equalized_coverage = new_groupwise_metric(interval_coverage, "equalized_coverage", difference(), source=_ROMANO)

# Scores of a group and of the others

kolmogorov_smirnov = new_between_group_metric(score_distance, "kolmogorov_smirnov")
kolmogorov_smirnov_if_equal = new_between_group_metric(score_distance_if_equal, "kolmogorov_smirnov_if_equal")
kolmogorov_smirnov_debiased = new_between_group_metric(score_distance_debiased, "kolmogorov_smirnov_debiased")
wasserstein_distance = new_between_group_metric(score_transport, "wasserstein_distance")
wasserstein_distance_if_equal = new_between_group_metric(score_transport_if_equal, "wasserstein_distance_if_equal")
wasserstein_distance_debiased = new_between_group_metric(score_transport_debiased, "wasserstein_distance_debiased")
abroca = new_between_group_metric(area_between_roc_curves, "abroca")
abroca_if_equal = new_between_group_metric(area_between_roc_curves_if_equal, "abroca_if_equal")
abroca_debiased = new_between_group_metric(area_between_roc_curves_debiased, "abroca_debiased")
bpsn_auc = new_between_group_metric(background_positive_auc, "bpsn_auc", group_minimum())
bnsp_auc = new_between_group_metric(background_negative_auc, "bnsp_auc", group_minimum())
