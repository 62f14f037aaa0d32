"""Audits: the usual metrics and disparities of a kind of predictions, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import polars as pl

from tidyfair.audits.significance import Significance, with_small_groups, without_single_groups
from tidyfair.calling.metric_sets import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, comparison, metric_set
from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation.evaluated import labels_with_scores
from tidyfair.inference.gates.checks import Gate
from tidyfair.inference.unknown_groups import with_unknown
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
from tidyfair.metrics.probability import roc_auc
from tidyfair.metrics.regression import mae, mean_prediction, residual_bias, rmse, rsq
from tidyfair.specs.columns import ColumnLike
from tidyfair.specs.contrasts import difference
from tidyfair.specs.formulas import Formula
from tidyfair.specs.groups import By, Policy, Privileged
from tidyfair.specs.options import Options, ReadOptions
from tidyfair.specs.result_columns import SELECTIONS
from tidyfair.tallies.source import Source
from tidyfair.tallies.tally import Tally

Feature: TypeAlias = "ColumnLike | Privileged | tuple[ColumnLike, ...]"
"""A column, several whose combinations are the groups, or two sides."""
_VALUES = (".estimate", ".lower", ".upper", ".std_error", ".method", ".denominator", ".replicates_lost")
"""Columns with the value of a group."""
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
        (
            comparison(mean_prediction, "difference"),
            comparison(residual_bias, "difference"),
            comparison(mae, "difference"),
        ),
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
        return "scores"
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


def _rates_of_groups(rates: Sequence[Metric], parities: Sequence[GroupwiseMetric]) -> dict[Formula, Metric]:
    """The rates that are computed for groups, by definition: those of all rows, and those of the parities."""
    every = list(rates)
    for parity in parities:
        every += parity.metrics
    of_groups: dict[Formula, Metric] = {}
    names: set[str] = set()
    for rate in every:
        # an alias is no other metric, and a comparison of groups has no value for all rows
        if rate.definition.compares or rate.definition in of_groups or rate.name in names:
            continue
        of_groups[rate.definition] = rate
        names.add(rate.name)
    return of_groups


def differences(rates: Iterable[Metric], bys: Iterable[By]) -> list[GroupwiseMetric]:
    """The differences of rates between the groups of features, under the names of the rates."""
    factories = [new_groupwise_metric(rate, rate.name, difference()) for rate in rates]
    return [replace(factory(*by.features), by=by) for by in bys for factory in factories]


def _disparities(metrics: MetricSet) -> list[GroupwiseMetric]:
    """The metrics of a set that compare groups."""
    return [metric for metric in metrics if isinstance(metric, GroupwiseMetric)]


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
        bys: list[By] = []
        for feature in features:
            columns = feature if isinstance(feature, tuple) else (feature,)
            bys.append(By.of(columns, "audit", policy))
        if metrics is None:
            rates, disparities = _usual(kind, more, bys)
        else:
            rates = tuple(metric for metric in metrics if isinstance(metric, Metric))
            disparities = _disparities(metrics)
        parities = [disparity.with_policy(policy.beside(disparity.policy)) for disparity in disparities]
        of_groups = _rates_of_groups(rates, parities)
        bys += [parity.by for parity in parities]
        # disparities with rates that are not in the table of groups
        others = [parity for parity in parities if not {rate.definition for rate in parity.metrics} <= of_groups.keys()]
        compared = differences(of_groups.values(), dict.fromkeys(bys))
        return cls(metric_set(*rates, *parities), metric_set(*of_groups.values(), *compared, *others))

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
        return groups.with_columns(
            pl.when(is_unknown).then(values[name]).otherwise(groups[name]).alias(name) for name in own
        )

    def event(self, tally: Tally, options: Options) -> object:
        """The label that counts as the event; None where no metric reads one label against the others."""
        reads_labels = any(metric.kind in {"class", "prob"} for metric in self.results) and not tally.needs.numbers
        if not reads_labels or (tally.truth is None and tally.estimate is None):
            return None
        labels = labels_with_scores(
            tally, labels=options.labels, pos_label=options.pos_label, estimator=options.estimator
        )
        return None if labels.event is None else labels.values[labels.event]

    @property
    def bys(self) -> list[By]:
        """The features whose groups are compared."""
        return list(dict.fromkeys(metric.by for metric in _disparities(self.groups)))

    @property
    def parities(self) -> tuple[GroupwiseMetric, ...]:
        """The disparities."""
        return tuple(_disparities(self.results))

    @property
    def is_constant(self) -> pl.Expr:
        """The rows of averages over labels that are the same whatever the data."""
        constant = pl.lit(value=False)
        for metric in self.groups:
            if isinstance(metric, Metric):
                is_average = pl.col(".estimator").is_in(list(metric.constant_averages))
                constant |= (pl.col(".metric") == metric.name) & is_average
        return constant


@dataclass(frozen=True)
class AuditResults:
    """The results of an audit, which pages, the command line and MLflow show."""

    metrics: UsualMetrics
    tally: Tally
    reading: Mapping[str, Any]
    """The options by which the tally is read."""
    counting: Mapping[str, Any]
    """The options by which rows were counted."""
    simultaneous: bool = False
    """Whether the intervals of groups hold for all groups at once."""
    at_thresholds: Sequence[AuditResults] = ()
    """Those of further metrics, which weigh errors by each of several thresholds."""

    @classmethod
    def of(
        cls, metrics: UsualMetrics, data: Any, truth: Any, estimate: Any, options: Mapping[str, Any],
        gate: Gate | None = None,
    ) -> AuditResults:  # fmt: skip
        """Count the rows that metrics and a gate read, with the options of a call."""
        reading: dict[str, Any] = {"interval": "auto", "on_undefined": "ignore"}
        counting: dict[str, Any] = {}
        for name, value in options.items():
            step = reading if name in ReadOptions.__annotations__ else counting
            step[name] = value
        if "cluster" not in counting:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = reading.get("seed", 0)
        counted = metrics.everything(*(gate.metrics if gate else ()))
        return cls(metrics, counted.tally(data, truth, estimate, **counting), reading, counting)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.tally.cells["n"].sum())

    @property
    def options(self) -> Options:
        """The options by which the tally is read."""
        return Options(**self.reading)

    @property
    def level(self) -> float | None:
        """The confidence level of intervals; None where none are asked for."""
        return self.options.conf_level if self.options.interval else None

    @cached_property
    def results(self) -> pl.DataFrame:
        """Metrics of all rows and disparities, with their intervals."""
        return self._at_all_cuts(self._own_results, [audit.results for audit in self.at_thresholds])

    @cached_property
    def groups(self) -> pl.DataFrame:
        """Values of groups, with their intervals; unknown groups are compared with none, and have none."""
        return self._at_all_cuts(self._own_groups, [audit.groups for audit in self.at_thresholds])

    @cached_property
    def groups_with_unknown(self) -> pl.DataFrame:
        """Values of groups, with those of unknown groups."""
        values = self.metrics.with_values_of_unknown(self._own_groups, self.tally, **self._reading_groups)
        return self._at_all_cuts(values, [audit.groups_with_unknown for audit in self.at_thresholds])

    @cached_property
    def compared_results(self) -> pl.DataFrame:
        """The results, in which a single group has no disparity."""
        return without_single_groups(self.results, self.groups, self.metrics.parities)

    @cached_property
    def significance(self) -> Significance:
        """The significant disparities."""
        return Significance.of(
            self.metrics.parities, self.tally, self.reading, self.counting, self.compared_results, self.groups
        )

    def verdicts(self, gate: Gate) -> pl.DataFrame:
        """The verdicts of a gate, which decides on its intervals itself."""
        reading = {name: value for name, value in self.reading.items() if name not in {"interval", "conf_level"}}
        return gate.compute(self.tally, **reading)

    @property
    def _reading_groups(self) -> dict[str, Any]:
        return {**self.reading, "simultaneous": True} if self.simultaneous else {**self.reading}

    @cached_property
    def _own_results(self) -> pl.DataFrame:
        return self.metrics.results.compute(self.tally, explain=True, **self.reading)

    @cached_property
    def _own_groups(self) -> pl.DataFrame:
        return with_small_groups(
            self.metrics.groups.compute_by_group(self.tally, **self._reading_groups), self._own_results
        )

    def _at_all_cuts(self, values: pl.DataFrame, at_thresholds: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Values with those at thresholds; what depends on no decision, such as areas, is repeated at each cut."""
        frames = [values]
        for audit, frame in zip(self.at_thresholds, at_thresholds, strict=True):
            frames.append(frame.with_columns(pl.lit(audit.counting["threshold"]).alias(".threshold")))
        values = pl.concat(frames, how="diagonal_relaxed")
        cut = next((name for name in SELECTIONS if name in values.columns), None)
        if cut is None:
            return values
        cuts = values[cut].unique().drop_nulls().sort()
        lists = pl.when(pl.col(cut).is_null()).then(pl.lit(cuts).implode()).otherwise(pl.concat_list(cut))
        return values.with_columns(lists.alias(cut)).explode(cut)
