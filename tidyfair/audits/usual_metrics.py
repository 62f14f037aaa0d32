"""Audits: the usual metrics and disparities of a kind of predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, comparison, metric_set
from tidyfair.metrics.classification import accuracy, base_rate, precision, selection_rate, sens, spec
from tidyfair.metrics.defaults import are_numbers
from tidyfair.metrics.fairness import (
    auc_parity,
    demographic_parity,
    equal_opportunity,
    equalized_odds,
    new_groupwise_metric,
    predictive_parity,
)
from tidyfair.metrics.probability import roc_auc
from tidyfair.metrics.regression import mae, mean_prediction, residual_bias, rmse, rsq
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import By

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidyfair.metric_sets import GroupwiseFactory
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import Privileged
    from tidyfair.tallies.source import Source

__all__: list[str] = []

Feature: TypeAlias = "ColumnLike | Privileged | tuple[ColumnLike, ...]"
"""A column, several whose combinations are the groups, or two sides."""
Predictions: TypeAlias = Literal["selections", "labels", "scores", "numbers"]
"""Kinds of predictions: labels without a truth, with it, with scores too; or numbers."""

_RATES = (base_rate, selection_rate, accuracy, sens, spec, precision)
_PARITIES = (demographic_parity, equal_opportunity, equalized_odds, predictive_parity)
_USUAL: dict[Predictions, tuple[tuple[Metric, ...], tuple[GroupwiseFactory, ...]]] = {
    "selections": ((selection_rate,), (demographic_parity,)),
    "labels": (_RATES, _PARITIES),
    "scores": ((*_RATES, roc_auc), (*_PARITIES, auc_parity)),
    "numbers": (
        (mean_prediction, residual_bias, mae, rmse, rsq),
        tuple(comparison(metric, "difference") for metric in (mean_prediction, residual_bias, mae)),
    ),
}


def kind_of(
    source: Source, truth: ColumnLike | None, estimate: ColumnLike | None, options: Mapping[str, Any]
) -> Predictions:
    """The kind of predictions, as far as the call and the columns say.

    Raises:
        ArgumentError: For whole numbers that may be labels or a measurement.
        ColumnError: For scores in the place of predictions.
    """
    if truth is None:
        return "selections"
    if options.get("probs") is not None:
        return "scores"
    return "numbers" if are_numbers(source, truth, estimate, options) else "labels"


def _usual(
    kind: Predictions, more: Sequence[GroupwiseFactory], bys: Sequence[By]
) -> tuple[tuple[Metric, ...], list[GroupwiseMetric]]:
    """The usual rates of a kind of predictions, and its usual disparities and `more` of each feature."""
    rates, factories = _USUAL[kind]
    # a later factory takes the place of an earlier one of its name
    by_name = {factory.name: factory for factory in (*factories, *more)}
    disparities: list[GroupwiseMetric] = []
    for factory in by_name.values():
        renamed = _renamed(factory, rates)
        disparities += [renamed(*by.features) for by in bys]
    return rates, disparities


def _renamed(factory: GroupwiseFactory, rates: Sequence[Metric]) -> GroupwiseFactory:
    """A factory whose metrics have the names that the same rates are shown by."""
    shown = {rate.definition: rate for rate in rates}
    return replace(factory, metrics=tuple(shown.get(metric.definition, metric) for metric in factory.metrics))


def _rates_of_groups(rates: Sequence[Metric], parities: Sequence[GroupwiseMetric]) -> dict[Formula, Metric]:
    """The rates that groups have values of, by definition: those of all rows, and those of which parities are made."""
    every = list(rates)
    for parity in parities:
        every += parity.metrics
    shown: dict[Formula, Metric] = {}
    names: set[str] = set()
    for rate in every:
        # an alias is no other metric, and what compares groups is nothing of all rows
        if rate.definition.compares or rate.definition in shown or rate.name in names:
            continue
        shown[rate.definition] = rate
        names.add(rate.name)
    return shown


def _differences(rates: Iterable[Metric], bys: Iterable[By]) -> list[GroupwiseMetric]:
    """The difference of each rate between the groups of each feature, under the name of the rate."""
    factories = [new_groupwise_metric(rate, rate.name, difference()) for rate in rates]
    differences: list[GroupwiseMetric] = []
    for by in bys:
        differences += [factory(*by.features) for factory in factories]
    return differences


@dataclass(frozen=True)
class Audit:
    """Metrics of all rows and of each group, and disparities."""

    results: MetricSet
    """Those of all rows, and disparities."""
    groups: MetricSet
    """Those of all rows, and the same of each group."""

    @classmethod
    def of(
        cls, features: Sequence[Feature], kind: Predictions, *, metrics: MetricSet | None = None, min_n: int = 0,
        more: Sequence[GroupwiseFactory] = (),
    ) -> Audit:  # fmt: skip
        """The usual metrics for a kind of predictions and `more` disparities, or those of a set, for each feature.

        Disparities are taken over groups of `min_n` rows, or more. Groups show what their disparities are made of.
        """
        if not features:
            msg = "An audit compares groups: name at least one feature as `by`."
            raise ArgumentError(msg)
        bys = [By.of(feature if isinstance(feature, tuple) else (feature,), "audit") for feature in features]
        if metrics is None:
            rates, disparities = _usual(kind, more, bys)
        else:
            rates = tuple(metric for metric in metrics if isinstance(metric, Metric))
            disparities = [metric for metric in metrics if isinstance(metric, GroupwiseMetric)]
        parities = [disparity.of_at_least(min_n) for disparity in disparities]
        shown = _rates_of_groups(rates, parities)
        compared = _differences(shown.values(), dict.fromkeys([*bys, *(parity.by for parity in parities)]))
        # made of more than these rates
        others = [parity for parity in parities if any(rate.definition not in shown for rate in parity.metrics)]
        return cls(metric_set(*rates, *parities), metric_set(*shown.values(), *compared, *others))

    def everything(self, *more: Metric | GroupwiseMetric) -> MetricSet:
        """All that is to be counted for, under names that no two share."""
        named: dict[tuple[str, str], Metric | GroupwiseMetric] = {}
        for metric in (*self.groups, *self.results, *more):
            by = metric.by.text if isinstance(metric, GroupwiseMetric) else ""
            if named.setdefault((metric.name, by), metric) != metric:
                other = replace(metric, name=f"{metric.name} {len(named)}")
                named[other.name, by] = other
        return metric_set(*named.values())

    @property
    def bys(self) -> list[By]:
        """The features whose groups are compared."""
        return list(dict.fromkeys(metric.by for metric in self.groups if isinstance(metric, GroupwiseMetric)))

    @property
    def parities(self) -> tuple[GroupwiseMetric, ...]:
        """The disparities."""
        return tuple(metric for metric in self.results if isinstance(metric, GroupwiseMetric))
