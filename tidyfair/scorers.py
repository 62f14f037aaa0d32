"""Scorers for scikit-learn, of any metric."""

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.integrations.scorers import (
    correlation_score as correlation_score, equal_opportunity_score as equal_opportunity_score,
    make_scorer as make_scorer, p_percent_score as p_percent_score, subset_score as subset_score,
)  # fmt: skip

__getattr__ = _suggestions(__name__)
