"""Audits: what is looked at, of whom, where nothing more is said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.classification import accuracy, base_rate, precision, selection_rate, sens, spec
from tidyfair.metrics.defaults import are_numbers
from tidyfair.metrics.fairness import (
    auc_parity,
    demographic_parity,
    equal_opportunity,
    equalized_odds,
    mae_difference,
    mean_prediction_difference,
    new_groupwise_metric,
    predictive_parity,
    residual_bias_difference,
)
from tidyfair.metrics.probability import roc_auc
from tidyfair.metrics.regression import mae, mean_prediction, residual_bias, rmse, rsq
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import By

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.metric_sets import GroupwiseFactory
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import Privileged
    from tidyfair.tallies.source import Source

__all__: list[str] = []

Feature: TypeAlias = "ColumnLike | Privileged | tuple[ColumnLike, ...]"
"""A column, several whose combinations are the groups, or two sides."""
Predictions: TypeAlias = Literal["selections", "labels", "scores", "numbers"]
"""What there is to look at: labels without a truth, with it, with scores too; or numbers."""

_RATES = (base_rate, selection_rate, accuracy, sens, spec, precision)
_PARITIES = (demographic_parity, equal_opportunity, equalized_odds, predictive_parity)
_USUAL: dict[Predictions, tuple[tuple[Metric, ...], tuple[GroupwiseFactory, ...]]] = {
    "selections": ((selection_rate,), (demographic_parity,)),
    "labels": (_RATES, _PARITIES),
    "scores": ((*_RATES, roc_auc), (*_PARITIES, auc_parity)),
    "numbers": (
        (mean_prediction, residual_bias, mae, rmse, rsq),
        (mean_prediction_difference, residual_bias_difference, mae_difference),
    ),
}


def kind_of(
    source: Source, truth: ColumnLike | None, estimate: ColumnLike | None, options: Mapping[str, Any]
) -> Predictions:
    """What predictions are, as far as the call and the columns say.

    Raises:
        ArgumentError: For whole numbers that may be labels or a measurement.
        ColumnError: For scores in the place of predictions.
    """
    if truth is None:
        return "selections"
    if options.get("probs") is not None:
        return "scores"
    return "numbers" if are_numbers(source, truth, estimate, options) else "labels"


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
            rates, factories = _USUAL[kind]
            # under the names that the rates are shown by
            names = {rate.definition: rate for rate in rates}
            every = {each.name: each for each in (*factories, *more)}.values()
            of_rates = [
                replace(each, metrics=tuple(names.get(rate.definition, rate) for rate in each.metrics))
                for each in every
            ]
            given = [factory(*by.features) for factory in of_rates for by in bys]
        else:
            rates = tuple(each for each in metrics if isinstance(each, Metric))
            given = [each for each in metrics if isinstance(each, GroupwiseMetric)]
        parities = [each.of_at_least(min_n) for each in given]
        shown: dict[Formula, Metric] = {}
        for rate in (*rates, *(rate for each in parities for rate in each.metrics)):
            # an alias is no other metric, and what compares groups is nothing of all rows
            if not rate.definition.compares and rate.name not in {other.name for other in shown.values()}:
                shown.setdefault(rate.definition, rate)
        compared = [
            new_groupwise_metric(rate, rate.name, difference())(*by.features)
            for by in dict.fromkeys([*bys, *(each.by for each in parities)]) for rate in shown.values()
        ]  # fmt: skip
        alone = [each for each in parities if not {rate.definition for rate in each.metrics} <= set(shown)]
        return cls(metric_set(*rates, *parities), metric_set(*shown.values(), *compared, *alone))

    def everything(self, *more: Metric | GroupwiseMetric) -> MetricSet:
        """All that is to be counted for, under names that no two share."""
        named: dict[tuple[str, str], Metric | GroupwiseMetric] = {}
        for each in (*self.groups, *self.results, *more):
            by = each.by.text if isinstance(each, GroupwiseMetric) else ""
            if named.setdefault((each.name, by), each) != each:
                other = replace(each, name=f"{each.name} {len(named)}")
                named[other.name, by] = other
        return metric_set(*named.values())

    @property
    def bys(self) -> list[By]:
        """What is compared."""
        return list(dict.fromkeys(each.by for each in self.groups if isinstance(each, GroupwiseMetric)))

    @property
    def parities(self) -> tuple[GroupwiseMetric, ...]:
        """The disparities."""
        return tuple(each for each in self.results if isinstance(each, GroupwiseMetric))
