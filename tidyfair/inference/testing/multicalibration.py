"""Tests of calibration without bins: of all rows, of groups, and of all conjunctions of features (multicalibration)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, TypedDict

import numpy as np
import polars as pl

from tidyfair.calling import Metric, Run, metric_set
from tidyfair.errors import Status
from tidyfair.inference.on_data import CalledOnData, refuse_others
from tidyfair.inference.rate_tests import with_adjusted_p_values
from tidyfair.inference.testing.subgroups import features_of
from tidyfair.intervals import brownian_range_quantile, brownian_range_tail
from tidyfair.metrics.probability import (
    cumulative_calibration_error,
    cumulative_calibration_error_if_calibrated,
)
from tidyfair.specs import (
    Column,
    ColumnLike,
    Options,
    OuterGroups,
    Policy,
    Treatment,
    proper_share,
    refuse_unknown_keywords,
    whole,
)
from tidyfair.specs.result_kinds import MISCALIBRATION, ResultKind
from tidyfair.tallies import Tally

__all__ = ["MulticalibrationTest", "multicalibration_test"]

_MEAN_RANGE = math.sqrt(8 / math.pi)
"""The mean range of a Brownian motion."""
_TESTS = "\0tests"
_ROUNDED = 1e-12
"""An error of rounding, where scores of 0 and 1 leave nothing to chance."""


class CalibrationOptions(TypedDict, total=False):
    """The options of a call that a test of calibration takes."""

    probs: ColumnLike | None
    group_by: OuterGroups | None
    case_weights: ColumnLike | None
    frequency_weights: ColumnLike | None
    pos_label: object
    labels: Sequence[object] | None


@dataclass(frozen=True, repr=False)
class MulticalibrationTest(CalledOnData):
    """A test of calibration in subgroups, as a callable on dataframes; made by `multicalibration_test`.

    It takes the arguments of a metric of scores: `probs`, `group_by`, weights, `pos_label` and `labels`. Returns a
    frame of the caller's kind with a row for all rows (null `.by`), and one for each subgroup; within each outer group
    the one with the largest `.statistic` first. Columns: the outer keys, `.metric`, `.by`, the features, `.group`,
    `.estimate` (the cumulative calibration error), `.std_error` (the standard deviation of the cumulated differences
    if scores are calibrated), `.statistic` (their quotient), `.p_value`, `.p_adjusted` (Holm, for all of an outer
    group), `.detectable`, `.n` and `.status`.
    """

    subject: ClassVar[str] = "multicalibration_test()"
    kind: ClassVar[ResultKind] = MISCALIBRATION
    lists_unknown: ClassVar[bool] = True
    accepted: ClassVar[type[Any]] = CalibrationOptions
    features: tuple[Column, ...]
    depth: int
    policy: Policy
    conf_level: float
    power: float

    @cached_property
    def _run(self) -> Run:
        """The error of all rows and of each subgroup, and that by chance."""
        metrics = (cumulative_calibration_error, cumulative_calibration_error_if_calibrated)
        sizes = range(1, min(self.depth, len(self.features)) + 1)
        subsets = [names for size in sizes for names in itertools.combinations(self.features, size)]
        of_groups = [
            metric.difference(*(column.source for column in columns)).with_policy(self.policy)
            for columns in subsets
            for metric in metrics
        ]
        return metric_set(*metrics, *of_groups).run

    def _listed(self) -> Iterable[Metric]:
        return [cumulative_calibration_error]

    def _check_call(self, keywords: Any) -> None:
        refuse_others(keywords, self.accepted, "data", "truth")

    def _fixed(self) -> dict[str, Any]:
        return super()._fixed() | {"estimator": "binary"}

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        groups = self._run.groups_of(tally, options).drop(".level", ".estimator", ".denominator")
        is_error = pl.col(".metric") == cumulative_calibration_error.name
        by_chance = groups.filter(~is_error)[".estimate"].alias(".std_error") / _MEAN_RANGE
        table = groups.filter(is_error).with_columns(by_chance)
        if self.policy.unknown == "drop":
            table = table.filter(pl.col(".status") != Status.UNKNOWN.value)
        error, deviation = pl.col(".estimate"), pl.col(".std_error")
        # of scores of 0 and 1 any error is more than chance
        certain = pl.when(error > _ROUNDED).then(math.inf).otherwise(0.0)
        statistic = pl.when(deviation > 0).then(error / deviation).otherwise(certain)
        table = table.with_columns(pl.when(error.is_not_null()).then(statistic).alias(".statistic"))
        p_values = pl.Series(".p_value", brownian_range_tail(table[".statistic"].to_numpy()))
        table = table.with_columns(p_values.fill_nan(None))
        keys = table.columns[: table.columns.index(".metric")]
        table = with_adjusted_p_values(table, keys, "holm")
        tests = pl.col(".p_value").count()
        table = table.with_columns((tests.over(keys) if keys else tests).alias(_TESTS))
        needed = {count: self._needed(count) for count in table[_TESTS].unique()}
        detectable = pl.col(_TESTS).replace_strict(needed, return_dtype=pl.Float64) * deviation
        order = [*(False for _ in keys), True]
        table = table.sort(*keys, ".statistic", descending=order, nulls_last=True, maintain_order=True)
        return table.with_columns(detectable.alias(".detectable")).drop(_TESTS)

    def _needed(self, tests: int) -> float:
        """The error, in standard deviations, that one of so many tests detects with the power, wherever it is.

        Over the range of scores in which the error is, the cumulated difference has this mean, and at most the standard
        deviation of all of them; the statistic is at least as large.
        """
        return brownian_range_quantile((1 - self.conf_level) / max(tests, 1)) + NormalDist().inv_cdf(self.power)


@refuse_unknown_keywords
def multicalibration_test(
    features: Iterable[ColumnLike], *, depth: int = 2, min_n: int = 30, min_share: float = 0.0,
    unknown: Treatment = "apart", unknown_values: Iterable[object] | None = None, conf_level: float = 0.95,
    power: float = 0.8,
) -> MulticalibrationTest:  # fmt: skip
    """Test whether scores are calibrated in all rows, in each group, and in all conjunctions of up to `depth` features.

    The statistic is Kuiper's: the largest distance of the number of events from the sum of scores over all ranges of
    scores, in standard deviations. It needs no bins; if scores are calibrated it is the range of a Brownian motion,
    and less where there are few distinct scores, so that tests err on the safe side (Arrieta-Ibarra et al., 2022). The
    largest statistic of all subgroups is a test of multicalibration (Hébert-Johnson et al., 2018), whose p-value is the
    smallest `.p_adjusted`: by Holm, for any overlap. Rows must be independent.

    Args:
        features: Columns; each value may be part of a conjunction.
        depth: Largest number of features in a conjunction; with 1, groups alone.
        min_n: Smallest number of rows; smaller subgroups are listed but not tested.
        min_share: Smallest share of the rows, likewise.
        unknown: Treatment of people with a missing or unknown value of a feature, as for metrics.
        unknown_values: The values that mean unknown beside null; by default texts such as "Unknown".
        conf_level: 1 less the probability of any false alarm, for which `.detectable` is computed.
        power: The probability with which an error of `.detectable` is detected, at least.

    >>> from tidyfair.datasets import lending
    >>> test = multicalibration_test(["sex", "race"])
    >>> tested = test(lending(), "repaid", probs="score", pos_label="yes")
    >>> tested.select(".by", ".group", pl.col(".estimate", ".statistic").round(3)).row(0)
    """
    columns = features_of("multicalibration_test", features)
    policy = Policy.of("multicalibration_test()", whole("min_n", min_n, 1), min_share, unknown, unknown_values)
    levels = proper_share("conf_level", conf_level), proper_share("power", power)
    return MulticalibrationTest(columns, whole("depth", depth, 1), policy, *levels)
