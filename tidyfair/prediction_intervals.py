"""Prediction intervals and quantiles: how a call is given them, and their metrics."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.fairness import equalized_coverage as equalized_coverage
from tidyfair.metrics.prediction_intervals import (
    interval_coverage as coverage, interval_coverage_error as coverage_error, interval_misses_above as misses_above,
    interval_misses_below as misses_below, interval_score as score, interval_width as width,
    quantile_coverage_error as quantile_coverage_error, quantile_loss as quantile_loss,
    weighted_interval_score as weighted_interval_score, winkler_score as winkler_score,
)  # fmt: skip
from tidyfair.metrics.regression import pinball_loss as pinball_loss
from tidyfair.specs import prediction_interval as interval

__all__ = [
    "coverage", "coverage_error", "equalized_coverage", "interval", "misses_above", "misses_below", "pinball_loss",
    "quantile_coverage_error", "quantile_loss", "score", "weighted_interval_score", "width", "winkler_score",
]  # fmt: skip

__getattr__ = _suggestions(__name__)
