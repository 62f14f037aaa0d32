"""Audits: usual metrics, and tables of groups against a reference; data come in, and what has to be filed goes out."""

from tidyfair.audits.effect_sizes import (
    quantile_ratios as quantile_ratios,
    standardized_differences as standardized_differences,
)
from tidyfair.audits.filing import NAMED_AUDITS as NAMED_AUDITS

__all__ = ["NAMED_AUDITS", "quantile_ratios", "standardized_differences"]


def __dir__() -> list[str]:
    return __all__
