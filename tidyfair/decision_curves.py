"""Net benefit of decisions by a risk, which decision curves show beside `net_benefit`: of all, and of the untreated."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.metrics.classification import (
    interventions_avoided as interventions_avoided, net_benefit_at_prevalence as net_benefit_at_prevalence,
    net_benefit_of_treating_all as net_benefit_of_treating_all, net_benefit_of_untreated as net_benefit_of_untreated,
    standardized_net_benefit as standardized_net_benefit,
)  # fmt: skip

__all__ = [
    "interventions_avoided", "net_benefit_at_prevalence", "net_benefit_of_treating_all", "net_benefit_of_untreated",
    "standardized_net_benefit",
]  # fmt: skip

__getattr__ = _suggestions(__name__)
