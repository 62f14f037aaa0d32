"""Adapters of metrics for other libraries."""

# pyright: reportUnusedImport=false
from tidyfair.integrations.scorers import (
    CorrelationScorer, FairnessScorer, SubsetScorer, correlation_score, equal_opportunity_score, make_scorer,
    p_percent_score, subset_score,
)  # fmt: skip
