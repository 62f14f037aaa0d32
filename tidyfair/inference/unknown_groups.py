"""Rows of unknown groups in gates: how many are not compared, and where the gate would pass with them too.

They may be a group of their own. If they are too few to tell, they may belong to any of the known groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, TypeAlias, TypeVar

import polars as pl

from tidyfair.calling.metric_sets import GroupwiseMetric, Metric
from tidyfair.inference.gates.verdicts import PASS, UNSURE
from tidyfair.specs.groups import By
from tidyfair.specs.result_columns import CUTS, key_columns
from tidyfair.tallies.tally import Tally

UNKNOWN_ROWS, UNKNOWN_SHARE = ".unknown", ".unknown_share"
"""The rows of unknown groups, which are not compared, and their share of all rows of the outer group."""
WITH_UNKNOWN = ".with_unknown"
"""The verdict with unknown groups compared too, if the verdict on the known groups alone is a pass."""
_MOST_GROUPS = 30
"""The most known groups of which each may be the one of the unknown rows."""

Key: TypeAlias = tuple[Any, ...]

AnyMetric = TypeVar("AnyMetric", Metric, GroupwiseMetric, Metric | GroupwiseMetric)


def has_unknown(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric counts rows of unknown groups without comparing them; dropped rows are not counted."""
    return metric.policy.unknown == "apart"


def with_unknown(metric: AnyMetric) -> AnyMetric:
    """The metric with unknown groups compared like all others."""
    if isinstance(metric, GroupwiseMetric) and has_unknown(metric):
        return metric.with_policy(metric.policy.with_unknown())
    return metric


def with_unknown_groups(
    verdicts: pl.DataFrame, counted: pl.DataFrame, outside: str, compared: Callable[[], pl.Series],
    pass_in_each: Callable[[set[Key]], set[Key]],
) -> pl.DataFrame:  # fmt: skip
    """Verdicts with the rows of unknown groups; a pass needs one with these rows, too, if groups outside hold it back.

    Args:
        verdicts: The verdicts on known groups.
        counted: The rows of unknown groups, of each.
        outside: The effect of groups outside the policy.
        compared: Gives the verdicts with unknown groups compared.
        pass_in_each: Gives those of some verdicts, by key, that pass with unknown rows in each known group.
    """
    passed = (verdicts[".verdict"] == PASS) & (counted[UNKNOWN_ROWS] > 0).fill_null(value=False) & (outside == "hold")
    others = verdicts[".verdict"]
    if passed.any():
        others, keys = compared(), keys_of_verdicts(verdicts)
        passing = pass_in_each(set(compress(keys, passed & (others == UNSURE))))
        others = others.set(pl.Series([key in passing for key in keys], dtype=pl.Boolean), PASS)
    turned = pl.when(passed & (others != PASS)).then(pl.lit(UNSURE)).otherwise(".verdict")
    verdict = turned.alias(".verdict")
    return verdicts.select(pl.exclude(".verdict"), *counted, pl.when(passed).then(others).alias(WITH_UNKNOWN), verdict)


def keys_of_verdicts(verdicts: pl.DataFrame) -> list[Key]:
    """The keys of verdicts: outer groups, cuts, and the metric and its feature."""
    cuts = [name for name in CUTS if name in verdicts.columns]
    return verdicts.select(*key_columns(verdicts), *cuts, ".metric", ".by").rows()


def pass_in_each_group(
    metrics: Iterable[Metric | GroupwiseMetric], verdicts_of: Callable[[By], Iterable[pl.DataFrame]],
    undecided: set[Key],
) -> set[Key]:  # fmt: skip
    """The keys of undecided verdicts that pass whichever known group the rows of unknown groups belong to.

    Rows that keep no gate from passing, whichever known group they belong to, are too few to matter. `verdicts_of`
    gives the verdicts with these rows in each of the known groups of a feature; nothing if these are many.
    """
    features: dict[By, set[Key]] = {}
    for metric in metrics:
        if isinstance(metric, GroupwiseMetric) and has_unknown(metric):
            names = (metric.name, *(base.name for base in metric.metrics))
            features.setdefault(metric.by, set()).update((name, metric.by.text) for name in names)
    passed: set[Key] = set()
    for by, names in features.items():
        keys_of_feature = {key for key in undecided if key[-2:] in names}
        in_each_group = list(verdicts_of(by)) if keys_of_feature else []
        if in_each_group:
            failing = [verdicts.filter(pl.col(".verdict") != PASS) for verdicts in in_each_group]
            passed |= keys_of_feature.difference(*map(keys_of_verdicts, failing))
    return passed


def counted_unknown(tally: Tally, metrics: Iterable[Metric | GroupwiseMetric], results: pl.DataFrame) -> pl.DataFrame:
    """The rows of unknown groups of each result and their share; null where a metric compares all of its groups."""
    outer = key_columns(results)
    keys = [*outer, ".metric", ".by"]
    nothing = pl.lit(None, pl.Int64).alias(UNKNOWN_ROWS), pl.lit(None, pl.Float64).alias(UNKNOWN_SHARE)
    counts = [results.clear().select(*keys, *nothing)]
    sided = tally.on_sides()
    outer_keys = [sided.cells[cell].alias(name) for cell, name in zip(sided.outer_names, outer, strict=True)]
    for metric in metrics:
        if metric.by is None or not has_unknown(metric):
            continue
        is_unknown = metric.by.is_unknown(metric.by.groups(sided.cells.select(sided.names(metric.by.columns))))
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
    names = tally.names(by.columns)
    keys = tally.cells.select(names)
    known = keys.filter(~by.policy.is_unknown(keys)).unique().sort(names)
    if len(known) > _MOST_GROUPS:
        return
    for group in known.iter_rows(named=True):
        rows = None if tally.rows is None else _moved(tally.rows, by, names, group)
        yield replace(tally, cells=_moved(tally.cells, by, names, group), rows=rows)


def _moved(frame: pl.DataFrame, by: By, names: list[str], group: Mapping[str, Any]) -> pl.DataFrame:
    """Cells or rows with those of unknown groups in a known one."""
    is_unknown = by.policy.is_unknown(frame.select(names))
    return frame.with_columns(
        pl.when(is_unknown).then(pl.lit(group[name], frame.schema[name])).otherwise(name).alias(name) for name in names
    )
