"""Certificates: upper bounds on how much worse any subgroup is than all others, simultaneous for all subgroups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, Status, in_short
from tidyfair.evaluation.states import OUTSIDE
from tidyfair.inference.subgroups import (
    AuditOptions,
    Combinations,
    Conjunctions,
    SubgroupAudit,
    features_of,
    is_rate_of_rows,
    listed_subgroups,
)
from tidyfair.intervals.proportions import clopper_pearson
from tidyfair.metric_sets import Metric, metric_set
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.metrics.probability import calibration_in_the_large, mean_score
from tidyfair.specs.arguments import proper_share, whole
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import ALL_GROUPS, Policy
from tidyfair.specs.options import refuse_unknown_keywords, show_keywords

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias, Unpack

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.specs.columns import Column, ColumnLike
    from tidyfair.specs.groups import By, Treatment

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__ = ["SubgroupCertificate", "certify_subgroups"]

_SPLITS = 24
"""Steps in which the error is split between a subgroup and the rest; more make limits narrower by less than 1 %."""
_CERTIFICATE = {
    ".metric": pl.String, ".epsilon": pl.Float64, ".subgroup": pl.String, ".estimate": pl.Float64,
    ".compared_with": pl.Float64, ".difference": pl.Float64, ".denominator": pl.Int64, ".searched": pl.Int64,
    ".not_searched": pl.Int64, ".min_n": pl.Int64, ".confidence": pl.Float64, ".status": pl.String,
}  # fmt: skip
_LIMITS = {
    ".metric": pl.String, ".subgroup": pl.String, ".depth": pl.Int64, ".estimate": pl.Float64,
    ".compared_with": pl.Float64, ".difference": pl.Float64, ".upper": pl.Float64, ".n": pl.Int64,
    ".denominator": pl.Int64, ".status": pl.String,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _ScoredCombinations(Combinations):
    """The combinations of features with the sums of their scores; the numerators are events."""

    scores: Floats


@dataclass(frozen=True)
class SubgroupCertificate(SubgroupAudit):
    """A bound for all conjunctions of features, as a callable on dataframes; made by `certify_subgroups`.

    Returns a frame of the caller's kind with one row for each outer group. Columns: the outer keys, `.metric`, the
    certified `.epsilon`, the `.subgroup` that determines it, whose `.estimate` is compared with `.compared_with` (the
    rate of all others, or its own mean score), their `.difference` in the unfavourable direction, the `.denominator` of
    the subgroup, the numbers of conjunctions `.searched` and `.not_searched` (fewer than `.min_n` rows in the
    denominator, or unknown people), the `.confidence`, and `.status`. If no conjunction is searched, `.epsilon` is
    null, and `.status` gives the reason.
    """

    subject: ClassVar[str] = "A certificate"
    _schema: ClassVar[Mapping[str, Any]] = _CERTIFICATE
    depth: int
    policy: Policy
    confidence: float

    @show_keywords(AuditOptions)
    def by_subgroup(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[AuditOptions],
    ) -> Any:  # fmt: skip
        """Return simultaneous limits for all conjunctions; the largest `.upper` is the certified bound.

        Returns:
            One row for each conjunction, those with the largest `.upper` first and those not searched last.
        """
        of_all = _LimitsOfAll(self.metric, self.features, self.depth, self.policy, self.confidence)
        return of_all(data, truth, estimate, **options)

    @property
    def _compared(self) -> GroupwiseMetric:
        if self.metric.kind == "class":
            return super()._compared
        factory = new_groupwise_metric(metric_set(calibration_in_the_large, mean_score), self.metric.name, difference())
        return factory(*(column.source for column in self.features)).with_policy(ALL_GROUPS)

    def _combinations(self, evaluated: Evaluated, by: By) -> list[Combinations]:
        if self.metric.kind == "class":
            return super()._combinations(evaluated, by)
        excess, scores = (self._sums(metric, evaluated, by) for metric in (0, 1))
        return [
            _ScoredCombinations(
                (total.numerator - above.numerator).round(),
                total.denominator,
                total.keys,
                total.rows,
                total.texts,
                total.numerator,
            )
            for above, total in zip(excess, scores, strict=True)
        ]

    def _sums(self, metric: int, evaluated: Evaluated, by: By) -> list[Combinations]:
        """The sums of one of the metrics that are counted."""
        return super()._combinations(evaluated.with_rows(evaluated.rows.filter(pl.col("metric") == metric)), by)

    def _audit(self, combinations: Combinations, key: pl.DataFrame) -> pl.DataFrame:
        del key
        limits = self._limits(combinations)
        searched = limits.filter(pl.col(".status") == Status.OK.value)
        shared = {
            ".searched": len(searched),
            ".not_searched": int((limits[".status"].is_in(OUTSIDE) | (limits[".denominator"] == 0)).sum()),
            ".min_n": self.policy.min_n, ".confidence": self.confidence,
        }  # fmt: skip
        if searched.is_empty():
            empty = shared | {".metric": self.metric.name, ".status": _reason(limits)}
            return pl.DataFrame([empty], schema=_CERTIFICATE)
        worst = searched[:1].rename({".upper": ".epsilon"})
        return worst.with_columns(pl.lit(value).alias(name) for name, value in shared.items()).select(
            pl.col(name).cast(dtype) for name, dtype in _CERTIFICATE.items()
        )

    def _limits(self, combinations: Combinations) -> pl.DataFrame:
        """The upper limits of all conjunctions that are searched, the largest first."""
        conjunctions = Conjunctions.of(combinations, self.depth, self.policy)
        sums = conjunctions.sums(np.stack([combinations.rows, combinations.denominator, combinations.numerator]))
        rows, denominator, numerator = sums
        _, total, total_numerator = conjunctions.totals(sums)
        is_scored = isinstance(combinations, _ScoredCombinations)
        # the whole is one conjunction more where its events are compared with its scores
        status = conjunctions.statuses(sums, searches_all=is_scored)
        searched = status == Status.OK
        error = (1 - self.confidence) / max(int(searched.sum()), 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = numerator / denominator
            if isinstance(combinations, _ScoredCombinations):
                (scores,) = conjunctions.sums(combinations.scores[None, :])
                other = scores / denominator
            else:
                other = (total_numerator - numerator) / (total - denominator)
        difference = np.abs(rate - other) if is_scored else self._badness * (rate - other)
        upper = np.full(len(rows), math.nan)
        hits, size = numerator[searched], denominator[searched]
        if is_scored:
            upper[searched] = _upper_from_scores(hits, size, other[searched], error)
        else:
            upper[searched] = self._upper_from_the_rest(
                hits, size, total_numerator[searched] - hits, total[searched] - size, error
            )
        columns = {
            ".metric": [self.metric.name] * len(rows), ".subgroup": conjunctions.texts,
            ".depth": conjunctions.depths, ".estimate": rate, ".compared_with": other,
            ".difference": np.where(searched, difference, math.nan), ".upper": upper,
            ".n": rows.astype(int), ".denominator": denominator.astype(int), ".status": status.astype(str),
        }  # fmt: skip
        table = pl.DataFrame(columns, schema=_LIMITS).with_columns(pl.col(pl.Float64).fill_nan(None))
        table = table.sort(".upper", descending=True, nulls_last=True, maintain_order=True)
        return listed_subgroups(table, self.policy)

    @property
    def _badness(self) -> int:
        """The sign of a difference towards the bad side."""
        return 1 if self.metric.direction == "minimize" else -1

    def _upper_from_the_rest(
        self, hits: Floats, rows: Floats, other_hits: Floats, other_rows: Floats, error: float
    ) -> Floats:
        """Upper limits of the differences from the rates of everybody else, towards the bad side."""
        if self._badness < 0:
            hits, other_hits = rows - hits, other_rows - other_hits
        return _excess(hits, rows, other_hits, other_rows, error)


@dataclass(frozen=True)
class _LimitsOfAll(SubgroupCertificate):
    """The limits of all conjunctions."""

    _schema: ClassVar[Mapping[str, Any]] = _LIMITS

    def _audit(self, combinations: Combinations, key: pl.DataFrame) -> pl.DataFrame:
        del key
        return self._limits(combinations)


def _reason(limits: pl.DataFrame) -> Status:
    """The reason why no conjunction is searched; of several, the one that concerns most rows."""
    reasons = set(limits[".status"])
    reasons_in_order = (
        Status.BELOW_MIN_N, Status.BELOW_MIN_SHARE, Status.NO_OTHER_GROUP, Status.ZERO_DENOMINATOR, Status.UNKNOWN
    )  # fmt: skip
    for reason in reasons_in_order:
        if reason in reasons:
            return reason
    return Status.NO_GROUPS


def _excess(hits: Floats, rows: Floats, other_hits: Floats, other_rows: Floats, error: float) -> Floats:
    """An upper limit of the difference of two shares that is too small with at most the error, exactly.

    The p-values of both exact tests are independent and no smaller than uniform ones, so that minus the logarithm of
    their product is no larger than a gamma variable of shape 2 (Fisher's combination). The limit is the largest
    difference of two shares that this test does not reject, worked out on a grid whose steps are counted twice.
    """
    from scipy.special import gammainccinv

    log_product = float(gammainccinv(2, error))
    splits = np.linspace(0, log_product, _SPLITS + 1)
    # the share of the rest, if its test uses no more than what the subgroup leaves at the start of a step
    lowest, _ = clopper_pearson(other_hits / other_rows, other_rows, np.exp(splits[:-1, None] - log_product))
    _, highest = clopper_pearson(hits / rows, rows, np.exp(-splits[1:, None]))
    return (highest - lowest).max(axis=0)


def _upper_from_scores(hits: Floats, rows: Floats, scores: Floats, error: float) -> Floats:
    """Upper limits of the distances of shares of events from mean scores.

    Events whose probabilities differ from row to row are no more spread than those of one probability with the same
    mean, beyond one event from it (Hoeffding, 1956). So the exact binomial limits hold if they are one event away.
    """
    exact_lower, exact_upper = clopper_pearson(hits / rows, rows, error / 2)
    upper = np.maximum(exact_upper, np.minimum(hits + 1, rows) / rows)
    lower = np.minimum(exact_lower, np.maximum(hits - 1, 0) / rows)
    return np.maximum(upper - scores, scores - lower)


@refuse_unknown_keywords
def certify_subgroups(
    metric: Metric, features: Iterable[ColumnLike], *, depth: int = 2, min_n: int = 30, min_share: float = 0.0,
    unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None, confidence: float = 0.95,
) -> SubgroupCertificate:  # fmt: skip
    """Certify that no conjunction of features is worse than all other rows by more than some epsilon.

    Epsilon is the smallest bound that holds, with the given confidence, simultaneously for all conjunctions of up to
    `depth` features with at least `min_n` rows. Worse means higher for metrics that should be small, such as
    `error_rate`, and lower for metrics that should be large, such as `sens`. For scores, with
    `calibration_in_the_large`, it is the distance of the share of events from the mean score in either direction: no
    subgroup is miscalibrated by more (compare the bias scan of Zhang and Neill, 2016).

    Limits are exact (Clopper and Pearson; two of them combined by Fisher's method), with a Bonferroni correction for
    the conjunctions searched, valid for any overlap. Rows must be independent.

    Args:
        metric: A rate of labels, such as `fall_out`, or `calibration_in_the_large`.
        features: Columns; each value, null included, may be part of a conjunction.
        depth: Largest number of features in a conjunction.
        min_n: Smallest number of rows in the denominator; smaller subgroups are not certified.
        min_share: Smallest share of the rows, likewise.
        unknown: Treatment of people with a missing or unknown value of a feature, as for `subgroup_search`.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".
        confidence: Confidence level of the certificate.

    >>> from tidyfair import error_rate
    >>> from tidyfair.datasets import lending
    >>> certificate = certify_subgroups(error_rate, ["sex", "age_band"], min_n=100)
    >>> certified = certificate(lending(), "repaid", "approved", pos_label="yes")
    >>> certified.select(pl.col(".epsilon").round(2), ".subgroup", ".searched").row(0)
    (0.11, 'sex=female & age_band=60+', 14)
    """
    rate, columns = _checked(metric, features)
    policy = Policy.of("certify_subgroups()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    level = proper_share("confidence", confidence)
    return SubgroupCertificate(rate, columns, whole("depth", depth, 1), policy, level)


def _checked(metric: object, features: object) -> tuple[Metric, tuple[Column, ...]]:
    """The metric and the features, or an error."""
    name = "certify_subgroups"
    if isinstance(metric, Metric) and metric.definition == calibration_in_the_large.definition:
        return metric, features_of(name, metric, features)
    if not isinstance(metric, Metric):
        msg = f"{name}() takes a metric, such as fall_out, not {in_short(metric)}."
        raise ArgumentError(msg)
    if metric.kind != "class" or not is_rate_of_rows(metric):
        msg = (
            f"{name}() takes a rate of labels, such as fall_out, miss_rate or accuracy, or calibration_in_the_large "
            f"of scores, not {metric.name}."
        )
        raise ArgumentError(msg)
    return metric, features_of(name, metric, features)
