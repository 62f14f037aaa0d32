"""Fairness metrics. Each is three nouns: a metric, a name, an aggregate.

The plain names are differences between the largest and the smallest group, unless the field means a ratio.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tidyfair.aggregates import DIRECTIONS, FarthestPair, as_aggregate, difference, group_maximum, group_minimum, ratio
from tidyfair.definitions import prob_metric
from tidyfair.errors import ArgumentError, listed
from tidyfair.metric_sets import GroupwiseFactory, Metric, MetricSet, metric_set
from tidyfair.metrics.classification import (
    accuracy,
    bal_accuracy,
    base_rate,
    detection_prevalence,
    error_rate,
    f1,
    fall_out,
    false_discovery_rate,
    false_negative_rate,
    false_negatives_per_false_positive,
    false_omission_rate,
    false_positive_rate,
    negative_predictive_value,
    precision,
    recall,
    selection_rate,
    sens,
    spec,
    true_negative_rate,
    true_positive_rate,
)
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
from tidyfair.metrics.probability import (
    balance_for_negative_class,
    balance_for_positive_class,
    brier_class,
    calibration_in_the_large,
    expected_calibration_error_debiased,
    mean_score,
    mn_log_loss,
    roc_auc,
)
from tidyfair.metrics.regression import mae, mean_prediction, residual_bias, rmse, rsq

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tidyfair.aggregates import Aggregate, Direction
    from tidyfair.functions import Sample

__all__ = [
    "abroca",
    "abroca_debiased",
    "abroca_if_equal",
    "accuracy_difference",
    "accuracy_group_minimum",
    "accuracy_ratio",
    "auc_parity",
    "bal_accuracy_group_minimum",
    "base_rate_difference",
    "base_rate_ratio",
    "bnsp_auc",
    "bpsn_auc",
    "brier_class_difference",
    "calibration_error_parity",
    "calibration_parity",
    "conditional_use_accuracy_equality",
    "demographic_parity",
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "disparate_impact",
    "equal_opportunity",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "equalized_odds",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "error_rate_difference",
    "error_rate_group_maximum",
    "error_rate_ratio",
    "f1_group_minimum",
    "false_discovery_rate_difference",
    "false_discovery_rate_ratio",
    "false_negative_rate_difference",
    "false_negative_rate_ratio",
    "false_omission_rate_difference",
    "false_omission_rate_ratio",
    "false_positive_rate_difference",
    "false_positive_rate_ratio",
    "generalized_equalized_odds_difference",
    "kolmogorov_smirnov",
    "kolmogorov_smirnov_debiased",
    "kolmogorov_smirnov_if_equal",
    "mae_difference",
    "mae_ratio",
    "mean_prediction_difference",
    "mean_score_difference",
    "mn_log_loss_difference",
    "negative_class_balance",
    "new_between_group_metric",
    "new_groupwise_metric",
    "overall_accuracy_equality",
    "positive_class_balance",
    "precision_group_minimum",
    "predictive_equality",
    "predictive_parity",
    "recall_group_minimum",
    "residual_bias_difference",
    "rmse_difference",
    "rmse_group_maximum",
    "rmse_ratio",
    "roc_auc_difference",
    "roc_auc_group_minimum",
    "roc_auc_ratio",
    "rsq_difference",
    "selection_rate_difference",
    "selection_rate_ratio",
    "statistical_parity_difference",
    "treatment_equality",
    "true_negative_rate_difference",
    "true_negative_rate_ratio",
    "true_positive_rate_difference",
    "true_positive_rate_ratio",
    "wasserstein_distance",
    "wasserstein_distance_debiased",
    "wasserstein_distance_if_equal",
]


def new_groupwise_metric(
    fn: Metric | MetricSet,
    name: str,
    aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float],
    direction: Direction | None = None,
) -> GroupwiseFactory:
    """Make a fairness metric: a factory that takes the sensitive feature and gives an ordinary metric.

    Args:
        fn: A metric, or a metric set whose disparities are combined.
        name: What `.metric` says.
        aggregate: `difference()`, `ratio()` or their like; a polars expression; or a function of a polars frame with
            one row for each group and metric (`.group`, the `by` columns, `.metric`, `.estimator`, `.estimate`, `.n`,
            `.denominator`, `.overall`) that returns one number. Groups without a value are not in it.
        direction: `"minimize"`, `"maximize"`, `"zero"` or `"one"`; the aggregate's own unless given.

    >>> from tidyfair import difference, new_groupwise_metric, npv
    >>> npv_gap = new_groupwise_metric(npv, "npv_gap", difference())
    >>> npv_gap("sex")
    <groupwise metric npv_gap('sex'): difference(to='range') of npv, minimize>
    """
    given: object = fn
    members = fn.metrics if isinstance(fn, MetricSet) else (given,)
    metrics = tuple(member for member in members if isinstance(member, Metric))
    if not metrics or len(metrics) < len(members):
        msg = f"{name}: a groupwise metric is made of a metric or a set of ordinary metrics, not {fn!r}."
        raise ArgumentError(msg)
    _check_name(name, direction)
    kinds = {metric.kind for metric in metrics}
    if "numeric" in kinds and len(kinds) > 1:
        msg = f"{name}: numeric metrics do not mix with others, here {listed(sorted(kinds))}: they read other columns."
        raise ArgumentError(msg)
    return GroupwiseFactory(name, metrics, as_aggregate(aggregate, name), direction)


def _check_name(name: object, direction: object) -> None:
    if direction not in (None, *DIRECTIONS):
        raise ArgumentError.unknown("direction", direction, DIRECTIONS)
    if not isinstance(name, str) or not name:
        msg = f"A groupwise metric needs a name in words, not {name!r}."
        raise ArgumentError(msg)


def new_between_group_metric(
    fn: Metric | Callable[[Sample, Sample], float],
    name: str,
    aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float] | None = None,
    *,
    against: Literal["rest", "pairs"] = "rest",
    direction: Direction | None = None,
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
) -> GroupwiseFactory:
    """Make a metric of what a group and the others have between them, such as the distance of their scores.

    Args:
        fn: A function of two samples, each with the arrays `truth` (whether a row has the event), `score` and `weight`
            (None without weights), which returns a number; it raises `Undefined("reason")` where there is none.
        name: What `.metric` says.
        aggregate: How the values of groups become one number; the largest unless given.
        against: Each group is compared with the `"rest"`, or with each other group (`"pairs"`): its value is then that
            of the largest of its pairs.
        direction: `"minimize"`, `"maximize"`, `"zero"` or `"one"`; the aggregate's own unless given.
        range: Smallest and largest possible value.

    >>> def mean_distance(one, other):
    ...     return abs(one.score.mean() - other.score.mean())
    >>> mean_score_distance = new_between_group_metric(mean_distance, "mean_score_distance")
    >>> mean_score_distance("race")
    <groupwise metric mean_score_distance('race'): group_maximum() of mean_score_distance, minimize>
    """
    if not isinstance(fn, Metric) and not callable(fn):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"{name}: a function of two samples is asked for, not {fn!r}."
        raise ArgumentError(msg)
    _check_name(name, direction)
    if against not in ("rest", "pairs"):
        raise ArgumentError.unknown("against", against, ["rest", "pairs"])
    define = prob_metric(direction=direction or "minimize", range=range, probabilities=False, against=against)
    metric = fn.alias(name) if isinstance(fn, Metric) else replace(define(fn), name=name)
    largest = FarthestPair() if metric.definition.against == "pairs" else group_maximum()
    return GroupwiseFactory(name, (metric,), largest if aggregate is None else as_aggregate(aggregate, name), direction)


# Definitions of the field

demographic_parity = new_groupwise_metric(detection_prevalence, "demographic_parity", difference())
equal_opportunity = new_groupwise_metric(sens, "equal_opportunity", difference())
equalized_odds = new_groupwise_metric(metric_set(sens, spec), "equalized_odds", difference(signed=False))
predictive_parity = new_groupwise_metric(precision, "predictive_parity", difference())
predictive_equality = new_groupwise_metric(fall_out, "predictive_equality", difference())
overall_accuracy_equality = new_groupwise_metric(accuracy, "overall_accuracy_equality", difference())
treatment_equality = new_groupwise_metric(false_negatives_per_false_positive, "treatment_equality", ratio())
conditional_use_accuracy_equality = new_groupwise_metric(
    metric_set(precision, negative_predictive_value), "conditional_use_accuracy_equality", difference(signed=False)
)

# The same, named by how groups are compared

demographic_parity_difference = new_groupwise_metric(selection_rate, "demographic_parity_difference", difference())
demographic_parity_ratio = new_groupwise_metric(selection_rate, "demographic_parity_ratio", ratio())
statistical_parity_difference = new_groupwise_metric(selection_rate, "statistical_parity_difference", difference())
disparate_impact = new_groupwise_metric(selection_rate, "disparate_impact", ratio())
equal_opportunity_difference = new_groupwise_metric(sens, "equal_opportunity_difference", difference())
equal_opportunity_ratio = new_groupwise_metric(sens, "equal_opportunity_ratio", ratio())
equalized_odds_difference = new_groupwise_metric(
    metric_set(sens, fall_out), "equalized_odds_difference", difference(signed=False)
)
# of fall_out, not of spec: 1 % against 2 % of false alarms is a ratio of 0.5, 99 % against 98 % of spec is 0.99
equalized_odds_ratio = new_groupwise_metric(metric_set(sens, fall_out), "equalized_odds_ratio", ratio(signed=False))

# Rates, compared

accuracy_difference = new_groupwise_metric(accuracy, "accuracy_difference", difference())
accuracy_ratio = new_groupwise_metric(accuracy, "accuracy_ratio", ratio())
base_rate_difference = new_groupwise_metric(base_rate, "base_rate_difference", difference())
base_rate_ratio = new_groupwise_metric(base_rate, "base_rate_ratio", ratio())
error_rate_difference = new_groupwise_metric(error_rate, "error_rate_difference", difference())
error_rate_ratio = new_groupwise_metric(error_rate, "error_rate_ratio", ratio())
false_discovery_rate_difference = new_groupwise_metric(
    false_discovery_rate, "false_discovery_rate_difference", difference()
)
false_discovery_rate_ratio = new_groupwise_metric(false_discovery_rate, "false_discovery_rate_ratio", ratio())
false_negative_rate_difference = new_groupwise_metric(
    false_negative_rate, "false_negative_rate_difference", difference()
)
false_negative_rate_ratio = new_groupwise_metric(false_negative_rate, "false_negative_rate_ratio", ratio())
false_omission_rate_difference = new_groupwise_metric(
    false_omission_rate, "false_omission_rate_difference", difference()
)
false_omission_rate_ratio = new_groupwise_metric(false_omission_rate, "false_omission_rate_ratio", ratio())
false_positive_rate_difference = new_groupwise_metric(
    false_positive_rate, "false_positive_rate_difference", difference()
)
false_positive_rate_ratio = new_groupwise_metric(false_positive_rate, "false_positive_rate_ratio", ratio())
selection_rate_difference = new_groupwise_metric(selection_rate, "selection_rate_difference", difference())
selection_rate_ratio = new_groupwise_metric(selection_rate, "selection_rate_ratio", ratio())
true_negative_rate_difference = new_groupwise_metric(true_negative_rate, "true_negative_rate_difference", difference())
true_negative_rate_ratio = new_groupwise_metric(true_negative_rate, "true_negative_rate_ratio", ratio())
true_positive_rate_difference = new_groupwise_metric(true_positive_rate, "true_positive_rate_difference", difference())
true_positive_rate_ratio = new_groupwise_metric(true_positive_rate, "true_positive_rate_ratio", ratio())

# Worst groups

accuracy_group_minimum = new_groupwise_metric(accuracy, "accuracy_group_minimum", group_minimum())
bal_accuracy_group_minimum = new_groupwise_metric(bal_accuracy, "bal_accuracy_group_minimum", group_minimum())
error_rate_group_maximum = new_groupwise_metric(error_rate, "error_rate_group_maximum", group_maximum())
f1_group_minimum = new_groupwise_metric(f1, "f1_group_minimum", group_minimum())
precision_group_minimum = new_groupwise_metric(precision, "precision_group_minimum", group_minimum())
recall_group_minimum = new_groupwise_metric(recall, "recall_group_minimum", group_minimum())

# Scores, compared

auc_parity = new_groupwise_metric(roc_auc, "auc_parity", difference())
roc_auc_difference = new_groupwise_metric(roc_auc, "roc_auc_difference", difference())
roc_auc_ratio = new_groupwise_metric(roc_auc, "roc_auc_ratio", ratio())
roc_auc_group_minimum = new_groupwise_metric(roc_auc, "roc_auc_group_minimum", group_minimum())
brier_class_difference = new_groupwise_metric(brier_class, "brier_class_difference", difference())
mn_log_loss_difference = new_groupwise_metric(mn_log_loss, "mn_log_loss_difference", difference())
mean_score_difference = new_groupwise_metric(mean_score, "mean_score_difference", difference())
# of calibration in the large, because in a small group that is noisy, but not biased
calibration_parity = new_groupwise_metric(calibration_in_the_large, "calibration_parity", difference())
calibration_error_parity = new_groupwise_metric(
    expected_calibration_error_debiased, "calibration_error_parity", difference()
)
positive_class_balance = new_groupwise_metric(balance_for_positive_class, "positive_class_balance", difference())
negative_class_balance = new_groupwise_metric(balance_for_negative_class, "negative_class_balance", difference())
generalized_equalized_odds_difference = new_groupwise_metric(
    metric_set(balance_for_positive_class, balance_for_negative_class),
    "generalized_equalized_odds_difference",
    difference(signed=False),
)

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

# Numbers, compared

mean_prediction_difference = new_groupwise_metric(mean_prediction, "mean_prediction_difference", difference())
residual_bias_difference = new_groupwise_metric(residual_bias, "residual_bias_difference", difference())
mae_difference = new_groupwise_metric(mae, "mae_difference", difference())
mae_ratio = new_groupwise_metric(mae, "mae_ratio", ratio())
rmse_difference = new_groupwise_metric(rmse, "rmse_difference", difference())
rmse_ratio = new_groupwise_metric(rmse, "rmse_ratio", ratio())
rsq_difference = new_groupwise_metric(rsq, "rsq_difference", difference())
rmse_group_maximum = new_groupwise_metric(rmse, "rmse_group_maximum", group_maximum())
