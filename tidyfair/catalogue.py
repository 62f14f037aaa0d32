"""Everything there is, as a metric set and as a tidy frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair import fairness
from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import GroupwiseFactory, Metric, MetricSet, metric_set
from tidyfair.metrics import classification, dependence, inequality, probability, regression

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["catalogue", "get_metrics"]

_MODULES: tuple[ModuleType, ...] = (classification, probability, regression, inequality, dependence)


def get_metrics(kind: Literal["class", "prob", "numeric"] = "class") -> MetricSet:
    """All metrics of a kind as one set, without aliases, and without those that compare a group with others.

    >>> [metric.name for metric in get_metrics("class")][:3]
    ['accuracy', 'average_odds', 'average_predictive_value']
    """
    every = [metric for metric in _metrics() if not _is_alias(metric) and not metric.definition.compares]
    found = [metric for metric in every if metric.kind == kind]
    if not found:
        raise ArgumentError.unknown("kind", kind, sorted({metric.kind for metric in _metrics()}))
    return metric_set(*found)


def catalogue() -> pl.DataFrame:
    """Every metric and groupwise metric with its direction and range, as a tidy frame.

    Columns: `name`, `kind`, `direction`, `lower` and `upper` end of the range, `aliases`, `options` with their
    defaults, which `metric_tweak` can fix; for kind `groupwise` also what is compared and how.

    >>> catalogue().filter(name="f_meas").select("lower", "upper", "options").row(0)
    (0.0, 1.0, ['beta=1'])
    """
    aliases: dict[str, list[str]] = {}
    for metric in _metrics():
        if _is_alias(metric) and metric.base:
            aliases.setdefault(metric.base.name, []).append(metric.name)
    rows = [
        {
            "name": metric.name, "kind": metric.kind, "direction": metric.direction,
            "lower": metric.range[0], "upper": metric.range[1], "aliases": aliases.get(metric.name, []),
            "options": [f"{name}={value!r}" for name, value in metric.definition.options],
        }
        for metric in _metrics() if not _is_alias(metric)
    ]  # fmt: skip
    factories = [each for name in fairness.__all__ if isinstance(each := getattr(fairness, name), GroupwiseFactory)]
    rows += [
        {
            "name": each.name, "kind": "groupwise", "direction": each.typical.direction,
            "lower": each.typical.range[0], "upper": each.typical.range[1], "aliases": [],
            "options": [f"{name}={value!r}" for name, value in each.options.items()],
            "metrics": [metric.name for metric in each.metrics], "aggregate": repr(each.aggregate),
        }
        for each in factories
    ]  # fmt: skip
    text, texts = pl.String, pl.List(pl.String)
    schema = {"name": text, "kind": text, "direction": text, "lower": pl.Float64, "upper": pl.Float64}
    return pl.DataFrame(rows, {**schema, "aliases": texts, "options": texts, "metrics": texts, "aggregate": text})


def _metrics() -> Iterator[Metric]:
    for module in _MODULES:
        for name in module.__all__:
            metric = getattr(module, name)
            if isinstance(metric, Metric):
                yield metric


def _is_alias(metric: Metric) -> bool:
    return metric.base is not None and metric.base.definition == metric.definition
