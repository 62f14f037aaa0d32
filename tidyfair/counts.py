"""Counts of rows and of the cells of a confusion matrix, their shares, and smoothed and generalized rates."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.classification import (
    average_odds as average_odds, average_predictive_value as average_predictive_value,
    demographic_disparity as demographic_disparity, divergence_from_rest as divergence_from_rest,
    false_negative_share as false_negative_share, false_negatives as false_negatives,
    false_negatives_per_false_positive as false_negatives_per_false_positive,
    false_positive_share as false_positive_share, false_positives as false_positives, instances as instances,
    negatives as negatives, positives as positives, predicted_negatives as predicted_negatives,
    predicted_positives as predicted_positives, share_of_rows as share_of_rows,
    smoothed_base_rate as smoothed_base_rate, smoothed_negative_rate as smoothed_negative_rate,
    smoothed_rejection_rate as smoothed_rejection_rate, smoothed_selection_rate as smoothed_selection_rate,
    true_negative_share as true_negative_share, true_negatives as true_negatives,
    true_positive_share as true_positive_share, true_positives as true_positives,
)  # fmt: skip
from tidyfair.metrics.fairness import (
    average_predictive_value_difference as average_predictive_value_difference, class_imbalance as class_imbalance,
    generalized_equalized_odds_difference as generalized_equalized_odds_difference,
)  # fmt: skip
from tidyfair.metrics.probability import (
    generalized_false_negative_rate as generalized_false_negative_rate,
    generalized_false_negatives as generalized_false_negatives,
    generalized_false_positives as generalized_false_positives,
    generalized_true_negative_rate as generalized_true_negative_rate,
    generalized_true_negatives as generalized_true_negatives, generalized_true_positives as generalized_true_positives,
)  # fmt: skip

__getattr__ = _suggestions(__name__)
