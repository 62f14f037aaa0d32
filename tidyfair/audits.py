"""Audits: what is looked at, of whom, where nothing more is said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tidyfair.contrasts import difference
from tidyfair.errors import ArgumentError
from tidyfair.fairness import (
    auc_parity,
    demographic_parity,
    equal_opportunity,
    equalized_odds,
    new_groupwise_metric,
    predictive_parity,
)
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.classification import accuracy, base_rate, precision, selection_rate, sens, spec
from tidyfair.metrics.probability import roc_auc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.columns import ColumnLike
    from tidyfair.groups import Privileged

__all__: list[str] = []

Feature: TypeAlias = "ColumnLike | Privileged | tuple[ColumnLike, ...]"
"""A column, several whose combinations are the groups, or two sides."""

_RATES = (base_rate, selection_rate, accuracy, sens, spec, precision)
_PARITIES = (demographic_parity, equal_opportunity, equalized_odds, predictive_parity)


@dataclass(frozen=True)
class Audit:
    """Metrics of all rows and of each group, and disparities."""

    results: MetricSet
    """Those of all rows, and disparities."""
    groups: MetricSet
    """Those of all rows, and the same of each group."""

    @classmethod
    def of(
        cls, features: Sequence[Feature], *, truth: bool, scores: bool, metrics: MetricSet | None = None, min_n: int = 0
    ) -> Audit:  # fmt: skip
        """The usual metrics of labels, and of scores where there are any, or those of a set, for each feature.

        Without a truth, what can be said is who is selected. Disparities are taken over groups of `min_n` rows, or
        more.
        """
        if not features:
            msg = "An audit compares groups: name at least one feature as `by`."
            raise ArgumentError(msg)
        bys = [_columns(feature) for feature in features]
        if metrics is None:
            rates: tuple[Metric, ...] = _RATES if truth else (selection_rate,)
            factories = _PARITIES if truth else (demographic_parity,)
            if truth and scores:
                rates, factories = (*rates, roc_auc), (*factories, auc_parity)
            parities = tuple(factory(*by, min_n=min_n) for factory in factories for by in bys)
        else:
            rates = tuple(each for each in metrics if isinstance(each, Metric))
            given = [each for each in metrics if isinstance(each, GroupwiseMetric)]
            parities = tuple(replace(each, min_n=max(each.min_n, min_n)) for each in given)
        compared = [
            new_groupwise_metric(metric_set(metric), metric.name, difference())(*by) for by in bys for metric in rates
        ]
        known = {metric.name for metric in rates}
        more = [each for each in parities if not {base.name for base in each.metrics} <= known]
        return cls(metric_set(*rates, *parities), metric_set(*rates, *compared, *(more if metrics else ())))

    @property
    def everything(self) -> MetricSet:
        """All that is to be counted for."""
        named = {(each.name, str(getattr(each, "by", None))): each for each in (*self.groups, *self.results)}
        return metric_set(*named.values())

    @property
    def features(self) -> list[str]:
        """What is compared, in words."""
        return list(dict.fromkeys(each.by.text for each in self.groups if isinstance(each, GroupwiseMetric)))

    @property
    def parities(self) -> tuple[GroupwiseMetric, ...]:
        """The disparities."""
        return tuple(each for each in self.results if isinstance(each, GroupwiseMetric))


def _columns(feature: Feature) -> tuple[ColumnLike | Privileged, ...]:
    return feature if isinstance(feature, tuple) else (feature,)
