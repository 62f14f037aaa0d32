"""Fairness metrics. Each is three nouns: a metric, a name, an aggregate.

The plain names are differences between the largest and the smallest group, unless the field means a ratio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidyfair.aggregates import as_aggregate, difference, group_maximum, group_minimum, ratio
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

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tidyfair.aggregates import Aggregate, Direction

__all__ = [
    "accuracy_difference",
    "accuracy_group_minimum",
    "accuracy_ratio",
    "bal_accuracy_group_minimum",
    "base_rate_difference",
    "base_rate_ratio",
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
    "new_groupwise_metric",
    "overall_accuracy_equality",
    "precision_group_minimum",
    "predictive_equality",
    "predictive_parity",
    "recall_group_minimum",
    "selection_rate_difference",
    "selection_rate_ratio",
    "statistical_parity_difference",
    "treatment_equality",
    "true_negative_rate_difference",
    "true_negative_rate_ratio",
    "true_positive_rate_difference",
    "true_positive_rate_ratio",
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
    if direction not in (None, "minimize", "maximize", "zero", "one"):
        raise ArgumentError.unknown("direction", direction, ["minimize", "maximize", "zero", "one"])
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"A groupwise metric needs a name in words, not {name!r}."
        raise ArgumentError(msg)
    kinds = {metric.kind for metric in metrics}
    if "numeric" in kinds and len(kinds) > 1:
        msg = f"{name}: numeric metrics do not mix with others, here {listed(sorted(kinds))}: they read other columns."
        raise ArgumentError(msg)
    return GroupwiseFactory(name, metrics, as_aggregate(aggregate, name), direction)


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
