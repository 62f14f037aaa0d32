"""Designs of complex surveys, for values and intervals of the population."""

from tidyfair.specs import replicate_weights as replicate_weights, survey_design as design

__all__ = ["design", "replicate_weights"]
