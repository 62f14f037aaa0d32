"""Abstention: how often a model decides, and how good its decisions are as it abstains more often, by group."""

from tidyfair.metrics.classification import coverage
from tidyfair.metrics.curves import risk_coverage_curve
from tidyfair.metrics.probability import risk_coverage_auc

__all__ = ["coverage", "risk_coverage_auc", "risk_coverage_curve"]
