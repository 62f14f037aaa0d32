"""Rows of unknown groups: how many are not compared, compared as groups of their own, or in any of the known ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.specs import By, key_columns
from tidyfair.tallies import Tally

UNKNOWN_ROWS, UNKNOWN_SHARE = ".unknown", ".unknown_share"
"""The rows of unknown groups, which are not compared, and their share of all rows of the outer group."""
WITH_UNKNOWN = ".with_unknown"
"""The verdict with unknown groups compared too, if the verdict on the known groups alone is a pass."""
_MOST_GROUPS = 30
"""The most known groups of which each may be the one of the unknown rows."""

AnyMetric = TypeVar("AnyMetric", Metric, GroupwiseMetric, Metric | GroupwiseMetric)


def has_unknown(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric counts rows of unknown groups without comparing them; dropped rows are not counted."""
    return metric.policy.unknown == "apart"


def with_unknown(metric: AnyMetric) -> AnyMetric:
    """The metric with unknown groups compared like all others."""
    if isinstance(metric, GroupwiseMetric) and has_unknown(metric):
        return metric.with_policy(metric.policy.with_unknown())
    return metric


def counted_unknown(tally: Tally, metrics: Iterable[Metric | GroupwiseMetric], results: pl.DataFrame) -> pl.DataFrame:
    """The rows of unknown groups of each result and their share; null where a metric compares all of its groups."""
    outer = key_columns(results)
    keys = [*outer, ".metric", ".by"]
    nothing = pl.lit(None, pl.Int64).alias(UNKNOWN_ROWS), pl.lit(None, pl.Float64).alias(UNKNOWN_SHARE)
    counts = [results.clear().select(*keys, *nothing)]
    for metric in metrics:
        if metric.by is None or not has_unknown(metric):
            continue
        sided = tally.of_feature(metric.by).on_sides()
        outer_keys = [sided.cells[cell].alias(name) for cell, name in zip(sided.outer_names, outer, strict=True)]
        is_unknown = metric.by.is_unknown(metric.by.groups(sided.keys_of_cells(metric.by.columns)))
        every, unknown = sided.cells["n"].alias(UNKNOWN_SHARE), (sided.cells["n"] * is_unknown).alias(UNKNOWN_ROWS)
        rows = pl.DataFrame([*outer_keys, every, unknown])
        totals = rows.group_by(outer).agg(pl.all().sum()) if outer else rows.sum()
        share = (pl.col(UNKNOWN_ROWS) / pl.col(UNKNOWN_SHARE)).fill_nan(None)
        counts.append(totals.select(
            *outer, pl.lit(metric.name).alias(".metric"), pl.lit(metric.by.text).alias(".by"),
            pl.col(UNKNOWN_ROWS).cast(pl.Int64), share.alias(UNKNOWN_SHARE),
        ))  # fmt: skip
    joined = results.select(keys).join(
        pl.concat(counts), on=keys, how="left", nulls_equal=True, maintain_order="left"
    )  # fmt: skip
    return joined.select(UNKNOWN_ROWS, UNKNOWN_SHARE)


def with_unknown_in_each_group(tally: Tally, by: By) -> Iterator[Tally]:
    """The tally with the rows of unknown groups in each of the known groups in turn; nothing if these are many."""
    names, counted = tally.names(by.columns), tally.of_feature(by)
    keys = counted.cells.select(names)
    known = keys.filter(~by.policy.is_unknown(keys)).unique().sort(names)
    if len(known) > _MOST_GROUPS:
        return
    for group in known.iter_rows(named=True):
        rows = None if counted.rows is None else _moved(counted.rows, by, names, group)
        moved = replace(counted, cells=_moved(counted.cells, by, names, group), rows=rows)
        yield moved if counted is tally else replace(tally, margins={**tally.margins, by.text: moved})


def _moved(frame: pl.DataFrame, by: By, names: list[str], group: Mapping[str, Any]) -> pl.DataFrame:
    """Cells or rows with those of unknown groups in a known one."""
    is_unknown = by.policy.is_unknown(frame.select(names))
    return frame.with_columns(
        pl.when(is_unknown).then(pl.lit(group[name], frame.schema[name])).otherwise(name).alias(name) for name in names
    )
