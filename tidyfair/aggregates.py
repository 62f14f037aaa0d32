"""Aggregates of the values of groups, beside `difference`, `ratio`, `group_minimum` and `group_maximum`."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.specs import log_ratio as log_ratio
from tidyfair.specs import (
    coefficient_of_variation as coefficient_of_variation, generalized_entropy as generalized_entropy,
    group_mean as group_mean, mean_absolute_deviation as mean_absolute_deviation,
    standard_deviation as standard_deviation,
)  # fmt: skip

__getattr__ = _suggestions(__name__)
