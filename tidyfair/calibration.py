"""Calibration of scores: whether they agree with the share of events, for all rows and by group."""

from tidyfair.metrics.curves import calibration_curve as curve, cumulative_calibration_curve as cumulative_curve
from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.fairness import (
    calibration_error_parity as error_parity, calibration_parity as parity,
    negative_class_balance as negative_class_balance, positive_class_balance as positive_class_balance,
)  # fmt: skip
from tidyfair.metrics.probability import (
    balance_for_negative_class as balance_for_negative_class, balance_for_positive_class as balance_for_positive_class,
    calibration_in_the_large as in_the_large, calibration_intercept as intercept, calibration_ratio as ratio,
    calibration_slope as slope, cumulative_calibration_error as cumulative_error,
    cumulative_calibration_error_if_calibrated as cumulative_error_if_calibrated, expected_calibration_error as error,
    expected_calibration_error_debiased as error_debiased,
    expected_calibration_error_if_calibrated as error_if_calibrated, score_discrimination as discrimination,
    score_miscalibration as miscalibration, score_uncertainty as uncertainty,
)  # fmt: skip
from tidyfair.metrics.regression import squared_shift as squared_shift
from tidyfair.tallies import sigmoid as sigmoid

__all__ = [
    "balance_for_negative_class", "balance_for_positive_class", "cumulative_curve", "cumulative_error",
    "cumulative_error_if_calibrated", "curve", "discrimination", "error", "error_debiased", "error_if_calibrated",
    "error_parity", "in_the_large", "intercept", "miscalibration", "negative_class_balance", "parity",
    "positive_class_balance", "ratio", "sigmoid", "slope", "squared_shift", "uncertainty",
]  # fmt: skip

__getattr__ = _suggestions(__name__)
