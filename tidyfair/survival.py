"""Survival times: the outcome that a call compares, its metrics, and their comparisons between groups."""

import sys
from types import ModuleType
from typing import Never

from tidyfair.metrics.other_names import suggestions as _suggestions
from tidyfair.errors import ArgumentError
from tidyfair.metrics.fairness import (
    concordance_parity as concordance_parity, survival_calibration_parity as calibration_parity,
)  # fmt: skip
from tidyfair.metrics.survival import (
    brier_survival as brier, brier_survival_integrated as brier_integrated,
    calibration_in_the_large_survival as calibration_in_the_large, calibration_ratio_survival as calibration_ratio,
    concordance_survival as concordance, concordance_survival_uno as concordance_uno, roc_auc_survival as roc_auc,
    roc_auc_survival_mean as roc_auc_mean,
)  # fmt: skip
from tidyfair.specs import survival as outcome
from tidyfair.tallies import censoring_distribution as censoring_distribution, kaplan_meier as kaplan_meier

__all__ = [
    "brier", "brier_integrated", "calibration_in_the_large", "calibration_parity", "calibration_ratio",
    "censoring_distribution", "concordance", "concordance_parity", "concordance_uno", "kaplan_meier", "outcome",
    "roc_auc", "roc_auc_mean",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class _Family(ModuleType):
    """A module that says what to write where it is called, as the function of this name was."""

    def __call__(self, *_: object, **__: object) -> Never:
        """Refuse the call."""
        msg = '`survival` is a family of names: write `survival.outcome("time", "event")`.'
        raise ArgumentError(msg)


sys.modules[__name__].__class__ = _Family

__getattr__ = _suggestions(__name__)
