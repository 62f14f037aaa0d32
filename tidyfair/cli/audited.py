"""What the commands `audit` and `report` compute: counts, the numbers and verdicts made of them, and remarks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.audits.significance import (
    Significance,
    draws_of,
    has_tests,
    with_small_groups,
    without_single_groups,
)
from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.cli.fail_if import gate_of
from tidyfair.cli.flags import as_flags, names_of
from tidyfair.cli.inputs import (
    CUTS,
    added_metrics,
    check_kind,
    confidence_of,
    remarks_on_missing,
    remarks_on_threshold,
)
from tidyfair.cli.verdicts import Verdicts, directions_of
from tidyfair.errors import ArgumentError, ConstantWarning, MissingPredictionsWarning, UndefinedWarning
from tidyfair.evaluation.missing_predictions import missing_in_words
from tidyfair.metric_sets import GroupwiseMetric, Metric, metric_set, metric_tweak
from tidyfair.reports.findings import of_feature
from tidyfair.reports.sections import missing_of
from tidyfair.specs.options import Options
from tidyfair.specs.result_columns import SELECTIONS
from tidyfair.tallies.tally import ESTIMATE

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from tidyfair.cli.inputs import Inputs
    from tidyfair.inference.gates import Gate
    from tidyfair.metric_sets import GroupwiseFactory
    from tidyfair.reports.findings import Finding
    from tidyfair.tallies.tally import Tally

MANY_GROUPS = 30
"""Groups beyond which a feature is likely to be a number, and neither all groups nor undefined values are listed."""


@dataclass(frozen=True)
class Count:
    """Metrics, and the counts that they are computed of."""

    metrics: UsualMetrics
    tally: Tally
    threshold: float | None = None
    """The threshold of metrics that weigh errors by it, such as net benefit, where there are several."""


@dataclass(frozen=True)
class Numbers:
    """What is computed of counts: in each outer group, or of all outer groups together."""

    counts: Sequence[Count]
    reading: Mapping[str, Any]
    simultaneous: bool

    @cached_property
    def results(self) -> pl.DataFrame:
        """Metrics of all rows and disparities, with their intervals."""
        return self._of_counts(lambda count: count.metrics.results.compute(count.tally, explain=True, **self.reading))

    @cached_property
    def groups(self) -> pl.DataFrame:
        """The values of groups, with their intervals, also of small and of unknown ones."""
        reading = {**self.reading, "simultaneous": True} if self.simultaneous else self.reading

        def values_of(count: Count) -> pl.DataFrame:
            groups = count.metrics.groups.compute_by_group(count.tally, **reading)
            return count.metrics.with_values_of_unknown(groups, count.tally, **reading)

        return with_small_groups(self._of_counts(values_of), self.results)

    def _of_counts(self, values_of: Callable[[Count], pl.DataFrame]) -> pl.DataFrame:
        """The values of all counts; those that depend on no decision, such as areas, are repeated at each cut."""
        frames: list[pl.DataFrame] = []
        for count in self.counts:
            at = [] if count.threshold is None else [pl.lit(count.threshold).alias(".threshold")]
            frames.append(values_of(count).with_columns(at))
        values = pl.concat(frames, how="diagonal_relaxed")
        cut = next((name for name in SELECTIONS if name in values.columns), None)
        if cut is None:
            return values
        cuts = values[cut].unique().drop_nulls().sort()
        lists = pl.when(pl.col(cut).is_null()).then(pl.lit(cuts).implode()).otherwise(pl.concat_list(cut))
        return values.with_columns(lists.alias(cut)).explode(cut)


@dataclass(frozen=True)
class Audited:
    """The rows as they were counted, and what is computed of them."""

    options: Namespace
    inputs: Inputs
    counts: Sequence[Count]
    """The count of the usual metrics, then those of metrics that weigh errors by each of several thresholds."""
    gate: Gate | None
    verdicts: Verdicts | None

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs) -> Audited:
        """Check what is asked for, and count the rows."""
        more, threshold = added_metrics(options, inputs), inputs.counting.get("threshold")
        weighed = [metric for metric in more if isinstance(threshold, list) and _weighs_by_risk(metric)]
        usual = [_at_risk(metric, threshold) for metric in more if metric not in weighed]
        metrics = UsualMetrics.of(inputs.features, inputs.kind, policy=inputs.policy, more=usual)
        gate = _gate(options, inputs, metrics)
        counting = dict(inputs.counting)
        if "cluster" not in counting:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = inputs.reading.get("seed", 0)
        call: dict[str, Any] = {"data": inputs.data, "truth": inputs.truth, "estimate": inputs.estimate, **counting}
        tally = metrics.everything(*(gate.metrics if gate else ())).tally(**call)
        metrics.results.run.check_occurs(tally, Options(**inputs.reading))
        verdicts = None
        if gate is not None:
            judged = gate.compute(tally, on_undefined="ignore", **inputs.judged_by)
            verdicts = Verdicts(judged, directions_of(gate.metrics), gate.confidence, gate.outside)
        counts = [Count(metrics, tally)]
        for cut in cast("list[float]", threshold) if weighed else ():
            members: list[Any] = []
            for metric in weighed:
                tweaked = _at_risk(metric, cut)
                if isinstance(tweaked, Metric):
                    members.append(tweaked)
                    # groups are shown for features that are compared
                    continue
                for feature in inputs.features:
                    members.append(tweaked(*feature) if isinstance(feature, tuple) else tweaked(feature))
            metrics = UsualMetrics.of(inputs.features, inputs.kind, metrics=metric_set(*members), policy=inputs.policy)
            call["threshold"] = cut
            counts.append(Count(metrics, metrics.everything().tally(**call), cut))
        return cls(options, inputs, counts, gate, verdicts)

    @property
    def metrics(self) -> UsualMetrics:
        """The usual metrics, and those that are added to them."""
        return self.counts[0].metrics

    @property
    def tally(self) -> Tally:
        """The counts of the usual metrics."""
        return self.counts[0].tally

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.tally.cells["n"].sum())

    @property
    def outer(self) -> list[str]:
        """The columns of outer groups, each of which is a set of predictions."""
        return [column.name for column in self.tally.outer_columns]

    @property
    def has_several_cuts(self) -> bool:
        """True if decisions are made at several thresholds, numbers or shares of rows."""
        return any(isinstance(self.inputs.counting.get(cut), list) for cut in CUTS)

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of each outer group."""
        reading = {**self.inputs.reading, "on_undefined": "ignore"}
        return Numbers(self.counts, reading, bool(self.options.simultaneous))

    @cached_property
    def together(self) -> Numbers:
        """The numbers of all outer groups together."""
        if not self.outer:
            return self.numbers
        return replace(self.numbers, counts=[replace(count, tally=pooled(count.tally)) for count in self.counts])

    @cached_property
    def compared_results(self) -> pl.DataFrame:
        """The results of all outer groups together, in which a single group has no disparity."""
        return without_single_groups(self.together.results, self.together.groups, self.metrics.parities)

    @cached_property
    def significance(self) -> Significance:
        """The significant disparities of all outer groups together."""
        tally, results = self.together.counts[0].tally, self.compared_results
        tests = has_tests(self.inputs.counting, tally, results)
        draws = draws_of(self.together.groups)
        return Significance.of(self.metrics.parities, tally, self.inputs.reading, results, draws=draws, tests=tests)

    @property
    def level(self) -> float | None:
        """The confidence level of intervals; None where none are asked for."""
        return self.inputs.level if self.inputs.reading["interval"] else None

    @property
    def findings(self) -> list[Finding]:
        """The finding on each feature."""
        numbers = self.compared_results, self.together.groups, self.significance
        return [of_feature(by, self.metrics.parities, *numbers, self.level) for by in self.metrics.bys]

    def remarks_on_results(self) -> list[str]:
        """Sentences on features with very many groups, and on the undefined values of all others."""
        groups = self.together.groups
        sizes = groups.group_by(".by", ".group", maintain_order=True).agg(pl.col(".n").max()).drop_nulls(".by")
        sizes = sizes.group_by(".by", maintain_order=True).agg(pl.len().alias("groups"), pl.col(".n").median())
        many = sizes.filter(pl.col("groups") > MANY_GROUPS)
        remarks: list[str] = []
        for by, number, median in many.rows():
            text = f"{by!r} has {number:,} groups, half of which have no more than {median:,.0f} rows"
            remarks.append(f"{text}: put numbers into bands, and rare values together.")
        reading: dict[str, Any] = {**self.inputs.reading, "interval": None}
        shown = [metric for metric in self.metrics.results if metric.by is None or metric.by.text not in many[".by"]]
        with warnings.catch_warnings(record=True) as caught:
            for category in (UndefinedWarning, ConstantWarning):
                warnings.simplefilter("always", category)
            # said of the rows
            warnings.simplefilter("ignore", MissingPredictionsWarning)
            metric_set(*shown).compute(self.tally, **reading)
        for warning in caught:
            message = str(warning.message).partition(" (on_undefined")[0]
            remarks.append(as_flags(message, names_of(self.options.command)))
        return remarks

    def remarks_on_rows(self) -> list[str]:
        """Sentences on rows that are left out, and on decisions that are all the same."""
        inputs = self.inputs
        remarks = remarks_on_missing(missing_of(self.tally).select("column", "missing").rows())
        missing = missing_in_words(self.tally, self.metrics.bys)
        if missing is not None and missing[1] and inputs.reading.get("na_rm", True):
            head, shares = missing
            remarks.append(f"{head}: {'; '.join(shares)}.")
        # the range of the scores matters only where all decisions are the same
        threshold = inputs.counting.get("threshold")
        if threshold is not None and self.tally.cells[ESTIMATE].drop_nulls().n_unique() == 1:
            remarks += remarks_on_threshold(inputs.data, threshold, [inputs.counting["probs"]])
        return remarks


def pooled(tally: Tally) -> Tally:
    """The tally of the same rows without outer groups."""
    keys = [replace(key, role="by") if key.role == "outer" else key for key in tally.keys]
    return replace(tally, keys=tuple(keys))


def _gate(options: Namespace, inputs: Inputs, metrics: UsualMetrics) -> Gate | None:
    """The limits that `fail_if` sets for these predictions."""
    confidence = confidence_of(options)
    if confidence is None:
        return None
    features = [by.text for by in metrics.bys]
    gate = gate_of(options.fail_if, confidence, inputs.schema, features, inputs.policy, options.outside or "hold")
    check_kind("fail_if", gate.metrics, inputs.kind)
    threshold = inputs.counting.get("threshold")
    for metric in gate.metrics:
        if isinstance(threshold, list) and _weighs_by_risk(metric):
            msg = f"`fail_if`: {metric.name} weighs errors by the threshold: give one number as `threshold`."
            raise ArgumentError(msg)
    return replace(gate, metrics=metric_set(*(_at_risk(metric, threshold) for metric in gate.metrics)))


def _weighs_by_risk(metric: Metric | GroupwiseMetric | GroupwiseFactory) -> bool:
    """Check whether a metric weighs errors by the odds of the threshold, as net benefit does."""
    metrics = [metric] if isinstance(metric, Metric) else metric.metrics
    return any("at" in part.options and part.kind == "class" for part in metrics)


def _at_risk(metric: Any, threshold: Any) -> Any:
    """A metric, or what compares it, that weighs errors by the odds of the threshold, if it weighs them at all."""
    if threshold is None or isinstance(threshold, list) or not _weighs_by_risk(metric):
        return metric
    if isinstance(metric, Metric):
        return metric_tweak(metric, metric.name, at=threshold)
    return replace(metric, metrics=tuple(_at_risk(part, threshold) for part in metric.metrics))
