"""Designs of complex surveys, for values and intervals of the population; totals and ratios of means."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.regression import prediction_total as total, ratio_of_means as ratio_of_means
from tidyfair.specs import replicate_weights as replicate_weights, survey_design as design

__all__ = ["design", "ratio_of_means", "replicate_weights", "total"]

__getattr__ = _suggestions(__name__)
