"""How probable it is that a disparity is on the good side of a limit, by what the rows leave to believe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.results import tidy_results
from tidyfair.inference.gates import judged_metrics, limited
from tidyfair.intervals.bootstrap import is_of_labels, replicates_of, results_of
from tidyfair.specs.arguments import how_often, whole
from tidyfair.specs.options import refuse
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.inference.gates import Side
    from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.options import Options

__all__ = ["ProbabilityOf", "probability"]

_NOT_TAKEN = {
    **dict.fromkeys(("interval", "conf_level", "explain", "on_undefined", "parts", "keep_rows"), ""),
    **dict.fromkeys(("times", "seed"), " in the call; give it to `probability` itself"),
}
"""What a call of the metrics takes, and a probability does not, and why."""


@dataclass(frozen=True)
class ProbabilityOf:
    """Metrics with a limit, as a callable on dataframes; made by `probability`."""

    metrics: MetricSet
    side: Side
    limit: float
    times: int
    seed: int

    def __call__(
        self, data: Any, truth: ColumnLike | None = None, estimate: ColumnLike | None = None, **keywords: Any
    ) -> Any:
        """Evaluate on a dataframe; it takes what a metric takes, without weights and clusters."""
        refuse("A probability", keywords, _NOT_TAKEN)
        for name in ("case_weights", "cluster"):
            if keywords.get(name) is not None:
                msg = f"A probability takes no `{name}`, of which there is no prior; take intervals, or a test."
                raise ArgumentError(msg)
        if more := [spec.name for spec in self.metrics.specs if not is_of_labels(spec)]:
            msg = f"{more[0]} reads more than labels, of which there is no prior; take intervals, or a test."
            raise ArgumentError(msg)
        if fixed := [
            each.name for each in self.metrics.specs if not any(formula.reads for _, formula in each.formulas)
        ]:
            msg = f"{fixed[0]} is about how many rows groups have, of which there is no prior."
            raise ArgumentError(msg)
        run = self.metrics.run
        options = run.options(keywords, truth=truth, estimate=estimate)
        options = replace(options, interval="bayes", on_undefined="ignore", times=self.times, seed=self.seed)
        source = open_frame(data, options.group_by)
        tally = run.count(source, options)
        tables = [
            self._believed(tally, evaluated, options)
            for evaluated in run.evaluate(tally, replace(options, interval=None))
        ]
        return source.restore(pl.concat(tables, how="vertical_relaxed"))

    def _believed(self, tally: Any, evaluated: Evaluated, options: Options) -> pl.DataFrame:
        found = tidy_results(evaluated, undefined_is_null=False)
        value = pl.col(".estimate")
        there = value < self.limit if self.side == "below" else value > self.limit
        parts = [
            every.group_by(keys).agg(there.mean().alias(".probability"))
            for _, every, keys in replicates_of(tally.on_sides(), evaluated.specs, options, results_of)
        ]
        shares = pl.concat(parts, how="diagonal_relaxed")
        keys = [name for name in shares.columns if name != ".probability"]
        shown = [name for name in found.columns if not name.startswith(".")]
        shown += [".metric", ".by", ".estimator", *(name for name in keys if name not in {*shown, ".metric", ".by"})]
        told = found.select(*dict.fromkeys([*shown, ".estimate"]), pl.lit(self.limit).alias(".limit"))
        told = told.join(shares, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return told.with_columns(pl.when(value.is_not_null()).then(".probability").alias(".probability"))


def probability(
    given: Metric | GroupwiseMetric | MetricSet, *, below: float | None = None, above: float | None = None,
    times: int = 10_000, seed: int = 0,
) -> ProbabilityOf:  # fmt: skip
    """Ask how probable it is that disparities are `below` (or ratios `above`) a limit, given the rows.

    The cells of truth and estimate of each group have the Dirichlet distribution that Jeffreys' prior and their counts
    give, so that a rate of h of n rows has a Beta distribution: h + 1/2 and n - h + 1/2 for each cell that it counts.

    Args:
        given: A metric, a groupwise metric or a set, of predicted labels.
        below: The limit of differences.
        above: The limit of ratios.
        times: How many draws there are.
        seed: Of the draws; the same seed gives the same answer.

    Returns:
        A callable that takes what a metric takes, and gives the metric's rows with the `.limit` and the `.probability`.
        Null where there is no value.

    Raises:
        ArgumentError: Without one limit, for one that the metric cannot reach, and for scores, weights and clusters, of
            which there is no prior.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> small = probability(demographic_parity("sex"), below=0.05)
    >>> round(small(people, estimate="hired")[".probability"].item(), 1)
    0.9
    """
    side, limit = limited("probability", below, above)
    metrics = judged_metrics("probability", given, side, limit)
    return ProbabilityOf(metrics, side, limit, how_often(times), whole("seed", seed, 0))
