"""Bounds of the smallest and the largest value of groups that are claims about all groups, each judged by itself.

A smallest value is above a limit if every group is, so that each group has to be shown to be by a test at the level of
the gate: an intersection-union test, which needs no adjustment for the number of groups (Berger, 1982). That some group
is beyond a limit is a union of claims, so that the other bound holds for all groups at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.evaluation.states import VALUED
from tidyfair.metric_sets import GroupwiseMetric, metric_set
from tidyfair.specs.result_columns import CUTS, key_columns
from tidyfair.specs.spreads import Extreme

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidyfair.metric_sets import Metric
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_BOUND, _METHOD = "\0bound", "\0method"


def bound_of_groups(metric: Metric | GroupwiseMetric) -> str | None:
    """The bound of a value that is a claim about all groups; None if it is no extreme of values of groups alone."""
    aggregate = metric.aggregate if isinstance(metric, GroupwiseMetric) else None
    if not isinstance(metric, GroupwiseMetric) or not isinstance(aggregate, Extreme) or aggregate.across != "worst":
        return None
    if metric.less or any(formula.compares for _, formula in metric.formulas):
        return None
    return ".upper" if aggregate.is_highest else ".lower"


def with_bounds_of_groups(
    results: pl.DataFrame, metrics: Iterable[Metric | GroupwiseMetric], tally: Tally, options: Options
) -> pl.DataFrame:
    """Results of which smallest and largest values have the farthest bound that any of their groups has by itself."""
    keys = [*key_columns(results), ".metric", ".by", *(name for name in CUTS if name in results.columns)]
    for metric in metrics:
        end = bound_of_groups(metric)
        if end is None:
            continue
        groups = metric_set(metric).run.groups_of(tally, options).with_columns(pl.lit(metric.name).alias(".metric"))
        compared = groups.filter(pl.col(".by").is_not_null() & pl.col(".status").is_in(VALUED))
        farthest = pl.col(end).min() if end == ".lower" else pl.col(end).max()
        # a group without a bound may have any value
        bound = pl.when(pl.col(end).is_not_null().all()).then(farthest).alias(_BOUND)
        bounds = compared.group_by(keys).agg(bound, pl.lit(f", {end[1:]} end of each group").alias(_METHOD))
        results = results.join(bounds, on=keys, how="left", nulls_equal=True, maintain_order="left")
        results = results.with_columns(
            pl.when(pl.col(_METHOD).is_not_null()).then(_BOUND).otherwise(end).alias(end),
            (pl.col(".method") + pl.col(_METHOD).fill_null("")).alias(".method"),
        ).drop(_BOUND, _METHOD)
    return results
