"""Everything there is, as a metric set and as a tidy frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair import fairness
from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import GroupwiseFactory, Metric, MetricSet, metric_set
from tidyfair.metrics import classification

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["catalogue", "get_metrics"]

_MODULES: tuple[ModuleType, ...] = (classification,)


def get_metrics(kind: Literal["class"] = "class") -> MetricSet:
    """All metrics of a kind as one set, without aliases.

    >>> [metric.name for metric in get_metrics("class")][:3]
    ['accuracy', 'bal_accuracy', 'base_rate']
    """
    found = [metric for metric in _metrics() if metric.kind == kind and not _is_alias(metric)]
    if not found:
        raise ArgumentError.unknown("kind", kind, sorted({metric.kind for metric in _metrics()}))
    return metric_set(*found)


def catalogue() -> pl.DataFrame:
    """Every metric and groupwise metric: `name`, `kind`, `direction`, `lower` and `upper` end of the range, `aliases`.

    Groupwise metrics have kind `groupwise`, and say in `metrics` and `aggregate` what they compare and how.

    >>> catalogue().filter(name="sens").row(0)
    ('sens', 'class', 'maximize', 0.0, 1.0, ['hit_rate', 'recall', 'sensitivity', 'true_positive_rate'], None, None)
    """
    aliases: dict[str, list[str]] = {}
    for metric in _metrics():
        if _is_alias(metric) and metric.base:
            aliases.setdefault(metric.base.name, []).append(metric.name)
    rows: list[tuple[object, ...]] = [
        (metric.name, metric.kind, metric.direction, *metric.range, aliases.get(metric.name, []), None, None)
        for metric in _metrics()
        if not _is_alias(metric)
    ]
    for name in fairness.__all__:
        factory = getattr(fairness, name)
        if isinstance(factory, GroupwiseFactory):
            example = factory("group")
            lower, upper = example.range
            metrics = [metric.name for metric in factory.metrics]
            rows.append((name, "groupwise", example.direction, lower, upper, [], metrics, repr(factory.aggregate)))
    schema = {
        "name": pl.String, "kind": pl.String, "direction": pl.String, "lower": pl.Float64, "upper": pl.Float64,
        "aliases": pl.List(pl.String), "metrics": pl.List(pl.String), "aggregate": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _metrics() -> Iterator[Metric]:
    for module in _MODULES:
        for name in module.__all__:
            metric = getattr(module, name)
            if isinstance(metric, Metric):
                yield metric


def _is_alias(metric: Metric) -> bool:
    return metric.base is not None and metric.base.definition == metric.definition
