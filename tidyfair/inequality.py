"""Inequality of benefits between people, and its parts between and within groups."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.fairness import (
    between_group_coefficient_of_variation as between_group_coefficient_of_variation,
    between_group_generalized_entropy_index as between_group_generalized_entropy_index,
    between_group_theil_index as between_group_theil_index, explained_by_groups as explained_by_groups,
    within_group_generalized_entropy_index as within_group_generalized_entropy_index,
)  # fmt: skip
from tidyfair.metrics.individual import consistency as consistency
from tidyfair.metrics.inequality import (
    benefit_variation as benefit_variation, generalized_entropy_index as generalized_entropy_index,
    inequality_within as inequality_within, mean_benefit as mean_benefit, mean_log_deviation as mean_log_deviation,
    theil_index as theil_index,
)  # fmt: skip

__getattr__ = _suggestions(__name__)
