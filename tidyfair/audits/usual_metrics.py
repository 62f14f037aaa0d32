"""Audits: the usual metrics and disparities of a kind of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, comparison, metric_set
from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation import Labels, read_labels
from tidyfair.inference.gates import with_unknown
from tidyfair.metrics.classification import accuracy, base_rate, precision, selection_rate, sens, spec
from tidyfair.metrics.defaults import are_numbers, refuse_forecasts
from tidyfair.metrics.fairness import (
    auc_parity,
    demographic_parity,
    equal_opportunity,
    equalized_odds,
    new_groupwise_metric,
    predictive_parity,
)
from tidyfair.metrics.probability import brier_class, calibration_in_the_large, roc_auc
from tidyfair.metrics.regression import mae, mean_prediction, residual_bias, rmse, rsq
from tidyfair.specs import (
    CUTS,
    GROUP_KEYS,
    RESERVED,
    SELECTIONS,
    By,
    ColumnLike,
    Memberships,
    Options,
    Policy,
    Privileged,
    difference,
)
from tidyfair.specs.formulas import Formula
from tidyfair.tallies import Source, Tally

Feature: TypeAlias = "ColumnLike | Memberships | Privileged | tuple[ColumnLike | Memberships, ...]"
"""A column, several whose combinations are the groups, or two sides."""
_VALUES = (".estimate", ".lower", ".upper", ".std_error", ".method", ".denominator", ".replicates_lost")
"""Columns with the value of a group."""
Predictions: TypeAlias = Literal["selections", "labels", "scores", "scores alone", "numbers"]
"""Kinds of predictions: labels without a truth, with it, with scores too; scores without labels; or numbers."""

_RATES = (base_rate, selection_rate, accuracy, sens, spec, precision)
_PARITIES = (demographic_parity, equal_opportunity, equalized_odds, predictive_parity)
_USUAL: dict[Predictions, tuple[tuple[Metric, ...], tuple[GroupwiseFactory, ...]]] = {
    "selections": ((selection_rate,), (demographic_parity,)),
    "labels": (_RATES, _PARITIES),
    "scores": ((*_RATES, roc_auc), (*_PARITIES, auc_parity)),
    "scores alone": (
        (roc_auc, brier_class, calibration_in_the_large),
        (auc_parity, *(comparison(metric, "difference") for metric in (brier_class, calibration_in_the_large))),
    ),
    "numbers": (
        (mean_prediction, residual_bias, mae, rmse, rsq),
        tuple(comparison(metric, "difference") for metric in (mean_prediction, residual_bias, mae)),
    ),
}


LEAST_ROWS = 30
"""The rows of the smallest group that audits compare unless told otherwise: of fewer, limits are 0.3 or more apart."""


def kind_of(source: Source, truth: Any, estimate: Any, options: Mapping[str, Any]) -> Predictions:
    """The kind of predictions, from the call and the columns.

    Raises:
        ArgumentError: For whole numbers that may be labels or a measurement.
        ColumnError: For scores given as `estimate`, and for survival times, intervals and quantiles.
    """
    refuse_forecasts(truth, estimate)
    if truth is None:
        return "selections"
    if options.get("probs") is not None:
        are_decided = estimate is not None or any(options.get(name[1:]) is not None for name in SELECTIONS)
        return "scores" if are_decided else "scores alone"
    return "numbers" if are_numbers(source, truth, estimate, options) else "labels"


def _usual(
    kind: Predictions, more: Sequence[Metric | GroupwiseFactory], bys: Sequence[By]
) -> tuple[tuple[Metric, ...], list[GroupwiseMetric]]:
    """The usual rates of a kind of predictions and its usual disparities by feature, and `more` of both."""
    rates, factories = _USUAL[kind]
    usual = {rate.definition for rate in rates}
    added = [metric for metric in more if isinstance(metric, Metric) and metric.definition not in usual]
    rates = (*rates, *dict.fromkeys(added))
    rate_of_definition = {rate.definition: rate for rate in rates}
    # a later factory replaces an earlier one of its name
    compared = [factory for factory in more if not isinstance(factory, Metric)]
    by_name = {factory.name: factory for factory in (*factories, *compared)}
    disparities: list[GroupwiseMetric] = []
    for factory in by_name.values():
        # the same rates have the same names in the audit
        metrics = tuple(rate_of_definition.get(metric.definition, metric) for metric in factory.metrics)
        renamed = replace(factory, metrics=metrics)
        disparities += [replace(renamed(*by.features), by=by) for by in bys]
    return rates, disparities


def _rates_and_disparities(metrics: MetricSet) -> tuple[tuple[Metric, ...], list[GroupwiseMetric]]:
    """The rates and the disparities of a set."""
    rates = tuple(metric for metric in metrics if isinstance(metric, Metric))
    return rates, [metric for metric in metrics if isinstance(metric, GroupwiseMetric)]


def _shown(rates: Iterable[Metric]) -> dict[Formula, Metric]:
    """The rates whose values of groups are shown, by their formulas."""
    shown: dict[Formula, Metric] = {}
    for rate in rates:
        # an alias is no other metric, and a comparison of groups has no value for all rows
        names = {known.name for known in shown.values()}
        if not rate.definition.compares and rate.name not in names:
            shown.setdefault(rate.definition, rate)
    return shown


def differences(rates: Iterable[Metric], bys: Iterable[By]) -> list[GroupwiseMetric]:
    """The differences of rates between the groups of features, under the names of the rates."""
    factories = [new_groupwise_metric(rate, rate.name, difference()) for rate in rates]
    return [replace(factory(*by.features), by=by) for by in bys for factory in factories]


@dataclass(frozen=True)
class UsualMetrics:
    """The metrics of an audit: of all rows, of groups, and disparities."""

    results: MetricSet
    """Metrics of all rows, and disparities."""
    groups: MetricSet
    """Metrics of all rows, and the same metrics of groups."""

    @classmethod
    def of(
        cls,
        features: Sequence[Feature],
        kind: Predictions,
        *,
        metrics: MetricSet | None = None,
        policy: Policy,
        more: Sequence[Metric | GroupwiseFactory] = (),
    ) -> UsualMetrics:
        """The usual metrics for a kind of predictions and `more` of them, or those of a set, for all features.

        `policy` says which groups disparities are taken over, unless they have one of their own. Groups show what
        their disparities are made of.
        """
        if not features:
            msg = "An audit compares groups: name at least one feature as `by`."
            raise ArgumentError(msg)
        columns = [feature if isinstance(feature, tuple) else (feature,) for feature in features]
        bys = [By.of(names, "audit", policy) for names in columns]
        rates, disparities = _usual(kind, more, bys) if metrics is None else _rates_and_disparities(metrics)
        parities = [disparity.with_policy(policy.beside(disparity.policy)) for disparity in disparities]
        shown = _shown([*rates, *(rate for parity in parities for rate in parity.metrics)])
        bys += [parity.by for parity in parities]
        # disparities with rates that are not in the table of groups
        others = [parity for parity in parities if not {rate.definition for rate in parity.metrics} <= shown.keys()]
        compared = differences(shown.values(), dict.fromkeys(bys))
        return cls(metric_set(*rates, *parities), metric_set(*shown.values(), *compared, *others))

    def everything(self, *more: Metric | GroupwiseMetric) -> MetricSet:
        """All metrics that are counted for, under names that no two share."""
        by_name: dict[tuple[str, str], Metric | GroupwiseMetric] = {}
        for metric in (*self.groups, *self.results, *more):
            by = metric.by.text if isinstance(metric, GroupwiseMetric) else ""
            if by_name.setdefault((metric.name, by), metric) != metric:
                other = replace(metric, name=f"{metric.name} {len(by_name)}")
                by_name[other.name, by] = other
        return metric_set(*by_name.values())

    def with_values_of_unknown(self, groups: pl.DataFrame, tally: Tally, **options: Any) -> pl.DataFrame:
        """The values of groups with those of unknown groups, which keep their status: nothing is compared with them."""
        is_unknown = groups[".status"] == Status.UNKNOWN
        if not is_unknown.any():
            return groups
        compared = metric_set(*map(with_unknown, self.groups))
        values = compared.compute_by_group(tally, **options)
        own = [name for name in _VALUES if name in groups.columns]
        # of two sides, people of unknown groups are on neither, and have no values
        keys = [name for name in groups.columns if name not in RESERVED or name in {*GROUP_KEYS, *CUTS}]
        values = values.select(*keys, *own).unique(keys, keep="first")
        found = groups.select(keys).join(values, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return groups.with_columns(
            pl.when(is_unknown).then(found[name]).otherwise(groups[name]).alias(name) for name in own
        )

    def labels(self, tally: Tally, options: Options) -> Labels | None:
        """The labels of an audit; None where no metric reads any."""
        reads_labels = any(metric.kind in {"class", "prob"} for metric in self.results) and not tally.needs.numbers
        if not reads_labels or (tally.truth is None and tally.estimate is None):
            return None
        return read_labels(tally, options)

    def event(self, tally: Tally, options: Options) -> object:
        """The label that counts as the event; None where no metric reads one label against the others."""
        labels = self.labels(tally, options)
        return None if labels is None or labels.event is None else labels.values[labels.event]

    @property
    def bys(self) -> list[By]:
        """The features whose groups are compared."""
        return list(dict.fromkeys(metric.by for metric in self.groups if isinstance(metric, GroupwiseMetric)))

    @property
    def parities(self) -> tuple[GroupwiseMetric, ...]:
        """The disparities."""
        return tuple(metric for metric in self.results if isinstance(metric, GroupwiseMetric))

    @property
    def is_constant(self) -> pl.Expr:
        """The rows of averages over labels that are the same whatever the data."""
        constant = pl.lit(value=False)
        for metric in self.groups:
            if isinstance(metric, Metric) and metric.constant_averages:
                is_average = pl.col(".estimator").is_in(list(metric.constant_averages))
                constant |= (pl.col(".metric") == metric.name) & is_average
        return constant
