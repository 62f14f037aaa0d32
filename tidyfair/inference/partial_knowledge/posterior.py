"""Posterior probability that a disparity is within a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet
from tidyfair.errors import ArgumentError, Status, UndefinedWarning, warn
from tidyfair.evaluation import GROUP_CELL, Evaluated, tidy_results
from tidyfair.inference.gates import Side, judged_metrics
from tidyfair.inference.on_data import MetricSetOnData
from tidyfair.inference.partial_knowledge.pooling import Pooling, check_pooling, pooled
from tidyfair.inference.rate_tests import Case, CountedRate, groupwise, rate_counts
from tidyfair.inference.testing import compared_draws, drawn_together
from tidyfair.intervals import is_of_labels, replicates_of, shared_draws
from tidyfair.specs import Array, Options, formulas_of, key_columns, refuse_unknown_keywords
from tidyfair.specs.result_kinds import PROBABILITIES, ResultKind
from tidyfair.tallies import Tally

__all__ = ["ProbabilityOf", "probability"]

_REFUSED = {
    **dict.fromkeys(("interval", "conf_level", "explain", "on_undefined", "parts", "keep_rows"), ""),
    **dict.fromkeys(("case_weights", "cluster"), ", for which no prior is defined; use intervals or a test"),
}
"""The options of metrics that a probability does not accept, and why."""


@dataclass(frozen=True, repr=False)
class ProbabilityOf(MetricSetOnData):
    """Metrics with a limit, as a callable on dataframes; made by `probability`."""

    subject: ClassVar[str] = "A probability"
    kind: ClassVar[ResultKind] = PROBABILITIES
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metrics: MetricSet
    side: Side
    limit: float
    pooling: Pooling | None = None
    """The model of the rates of all groups, if there is one."""

    def _check_call(self, keywords: Mapping[str, Any]) -> None:  # noqa: ARG002 - the options are all alike
        for spec in self.metrics.specs:
            if not is_of_labels(spec):
                msg = f"probability() needs metrics of predicted labels, not {spec.name}; use intervals or a test."
                raise ArgumentError(msg)
            if not any(formula.reads for formula in formulas_of(spec)):
                msg = (
                    f"{spec.name} depends on the size of groups, for which no prior is defined; use intervals or a "
                    "test."
                )
                raise ArgumentError(msg)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        tables: list[pl.DataFrame] = []
        for metric in groupwise((self.metrics,), "probability") if self.pooling else ():
            case = Case(metric, tally, options)
            outers = range(len(case.evaluated.group_cells.outer_keys))
            shares = [self._share_of_pooled(case, outer) for outer in outers]
            tables.append(self._table(case.evaluated, pl.Series(shares, dtype=pl.Float64)))
        for evaluated in self.metrics.run.evaluate(tally, options) if not self.pooling else ():
            tables.append(self._table(evaluated, self._shares(evaluated, replace(options, interval="bayes"))))
        return pl.concat(tables, how="vertical_relaxed")

    def _shares(self, evaluated: Evaluated, options: Options) -> pl.Series:
        """The share of posterior draws of each result on the good side of the limit."""
        results = len(evaluated.specs) * len(evaluated.group_cells.outer_keys)
        within, drawn = np.zeros((2, results), dtype=np.int64)
        for shared in shared_draws(evaluated.specs, range(len(evaluated.specs))):
            for replicates in replicates_of(evaluated, shared, options):
                within += self._is_within(replicates.results).sum(axis=0)
                drawn += (~np.isnan(replicates.results)).sum(axis=0)
        with np.errstate(invalid="ignore"):
            return pl.Series(within / drawn, nan_to_null=True)

    def _share_of_pooled(self, case: Case, outer: int) -> float | None:
        """The share of draws of the pooled rates of an outer group on the good side of the limit."""
        rates, pooling = rate_counts(case, outer), cast("Pooling", self.pooling)
        if not all(len(rate.group_cells) for rate in rates):
            return None

        def draw(rate: CountedRate) -> Array:
            return pooled(rate, pooling).draws(case.options.replicates, rate.random) * rate.group_denominator

        values, _ = compared_draws(case.evaluated, outer, rates, drawn_together(rates, draw))
        drawn = values[:-1][~np.isnan(values[:-1])]
        return float(self._is_within(drawn).mean()) if len(drawn) else None

    def _is_within(self, values: Array) -> Array:
        """A mask of the values on the good side of the limit."""
        return values < self.limit if self.side == "below" else values > self.limit

    def _table(self, evaluated: Evaluated, probability: pl.Series) -> pl.DataFrame:
        """The results with their probability; without it, with a warning, if there is no value or only one group."""
        results = tidy_results(evaluated, undefined_is_null=False)
        compared = evaluated.rows.filter(pl.col("estimate").is_not_null(), ~pl.col("excluded"))
        counted = compared.group_by("spec", "outer").agg(pl.col(GROUP_CELL).n_unique())
        groups = {(spec, outer): count for spec, outer, count in counted.rows()}
        outers = range(len(evaluated.group_cells.outer_keys))
        is_alone: list[bool] = []
        for number, spec in enumerate(evaluated.specs):
            needed = spec.aggregate.groups_needed if spec.aggregate else 1
            alone_of_spec = [0 < groups.get((number, outer), 0) < needed for outer in outers]
            is_alone += alone_of_spec
            if any(alone_of_spec) and spec.by:
                reason = Status.text_of(Status.TOO_FEW_GROUPS)
                warn(f"{spec.name} by {spec.by.text} has no probability ({reason}).", UndefinedWarning)
        is_known = pl.col(".estimate").is_not_null() & ~pl.lit(pl.Series(is_alone, dtype=pl.Boolean))
        columns = dict.fromkeys([*key_columns(results), ".metric", ".by", ".estimator", ".estimate"])
        return results.select(
            *columns, pl.lit(self.limit).alias(".limit"), pl.when(is_known).then(probability).alias(".probability")
        )


@refuse_unknown_keywords
def probability(
    given: Metric | GroupwiseMetric | MetricSet, *, below: float | None = None, above: float | None = None,
    pooling: Pooling | None = None,
) -> ProbabilityOf:  # fmt: skip
    """Estimate the posterior probability that disparities are `below` (or ratios `above`) a limit.

    The cells of truth and estimate of each group have a Dirichlet posterior, from their counts and Jeffreys' prior, so
    a rate of h of n rows has a Beta distribution: h + 1/2 and n - h + 1/2 for each cell that it counts.

    Args:
        given: A metric, a groupwise metric or a set, of predicted labels.
        below: The limit of differences.
        above: The limit of ratios.
        pooling: `"beta_binomial"` or `"additive"`, for rates that borrow strength from other groups, as in
            `shrunken_rates`; None for separate groups, whose disparities are larger by chance.

    Returns:
        A callable with the arguments of a metric, `times=` draws (10,000 by default) and their `seed=` among them. It
        returns the metric's rows with the `.limit` and the
        `.probability`, which is null without a value and, with a warning, if there is only one group.

    Raises:
        ArgumentError: If there is not exactly one limit, if the metric cannot reach it, and for scores, weights and
            clusters, for which no prior is defined.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> small = probability(demographic_parity("sex"), below=0.05)
    >>> round(small(people, estimate="hired")[".probability"].item(), 1)
    0.9
    """
    metrics, side, limit = judged_metrics("probability", given, below, above)
    if pooling is not None:
        check_pooling("probability", pooling, groupwise((metrics,), "probability"))
    return ProbabilityOf(metrics, side, limit, pooling)
