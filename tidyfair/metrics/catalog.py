"""The catalogue of all metrics, as a metric set and as a tidy frame."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import polars as pl

from tidyfair.calling import (
    COMPARISONS,
    KINDS,
    GroupwiseFactory,
    GroupwiseMetric,
    Metric,
    MetricSet,
    comparison,
    metric_set,
)
from tidyfair.errors import ArgumentError, in_short
from tidyfair.metrics import (
    classification,
    dependence,
    fairness,
    inequality,
    prediction_intervals,
    probability,
    ranking,
    regression,
    survival,
)
from tidyfair.metrics.other_names import OTHER_NAMES
from tidyfair.specs import refuse_unknown_settings
from tidyfair.specs.formulas import Kind, arithmetic_of

__all__ = ["catalogue", "get_metrics"]

_MODULES: tuple[ModuleType, ...] = (
    classification, probability, regression, survival, prediction_intervals, inequality, dependence, ranking,
)  # fmt: skip

_TOOLS = re.compile(r"\s+# (fmt|noqa|pyright|type): ?.*$", re.MULTILINE)
"""Comments for tools at the end of a line of code."""


@refuse_unknown_settings
def get_metrics(kind: Kind = "class") -> MetricSet:
    """All metrics of a kind as one set, without aliases and metrics that compare a group with others.

    >>> [metric.name for metric in get_metrics("class")][:3]
    ['accuracy', 'average_odds', 'average_predictive_value']
    """
    if not isinstance(kind, str) or kind not in KINDS:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        reads = ", ".join(f"{known!r} ({words})" for known, words in KINDS.items())
        msg = f"get_metrics(): `kind` is one of {reads}, not {in_short(kind)}."
        raise ArgumentError(msg)
    metrics = [metric.of_kind(kind) for metric in _metrics() if not _is_alias(metric)]
    return metric_set(*(metric for metric in metrics if metric.kind == kind and not metric.definition.compares))


@refuse_unknown_settings
def catalogue() -> pl.DataFrame:
    """Every metric and groupwise metric with its direction and range, as a tidy frame.

    Columns: `name`, `kind`, `direction`, `lower` and `upper` end of the range, `aliases`; `elsewhere`, its names in
    other libraries; `options` with their defaults, which `metric_tweak` can set; `formula`, as executed, null if longer
    than a line; for kind `groupwise` also the compared metrics, the comparison, and the `source` of the definition.

    >>> catalogue().filter(name="f_meas").select("lower", "upper", "options").row(0)
    (0.0, 1.0, ['beta=1'])
    """
    aliases: dict[str, list[str]] = {}
    for metric in _metrics():
        if _is_alias(metric) and metric.base:
            aliases.setdefault(metric.base.name, []).append(metric.name)
    elsewhere: dict[str, list[str]] = {}
    for other, ours in OTHER_NAMES.items():
        elsewhere.setdefault(ours, []).append(other)

    def row(metric: Metric | GroupwiseFactory, typical: Metric | GroupwiseMetric, **more: object) -> dict[str, object]:
        low, high = typical.range
        return {
            "name": metric.name, "direction": typical.better, "lower": low, "upper": high,
            "aliases": aliases.get(metric.name, []), "elsewhere": elsewhere.get(metric.name, []),
            "options": [f"{name}={default!r}" for name, default in metric.options.items()], **more,
        }  # fmt: skip

    rows: list[dict[str, object]] = []
    for metric in _metrics():
        if not _is_alias(metric):
            rows.append(row(metric, metric, kind=metric.kind, formula=arithmetic_of(metric.definition.function)))
    for factory in factories():
        names, aggregate = [metric.name for metric in factory.metrics], repr(factory.aggregate)
        formula = f"{aggregate} of {', '.join(names)}"
        of_groups: dict[str, Any] = {"metrics": names, "aggregate": aggregate, "source": factory.source}
        rows.append(row(factory, factory.typical, kind="groupwise", formula=formula, **of_groups))
    text, texts = pl.String, pl.List(pl.String)
    schema = {
        "name": text, "kind": text, "direction": text, "lower": pl.Float64, "upper": pl.Float64, "aliases": texts,
        "elsewhere": texts, "options": texts, "metrics": texts, "aggregate": text, "formula": text, "source": text,
    }  # fmt: skip
    return pl.DataFrame(rows, schema)


def names_of_metrics() -> list[str]:
    """The names of all metrics and aliases, without comparisons."""
    return [metric.name for metric in _metrics()]


def metric_named(name: str) -> Metric | None:
    """The metric of that name, which may be an alias."""
    return next((metric for metric in _metrics() if metric.name == name), None)


def comparison_named(name: str) -> GroupwiseFactory | None:
    """The factory of that name: an established one, or a metric with its own comparison (`accuracy_difference`)."""
    for factory in factories():
        if factory.name == name:
            return factory
    for way in COMPARISONS:
        base = name.removesuffix(f"_{way}")
        for metric in _metrics():
            if base != name and metric.name == base:
                return comparison(metric, way)
    return None


def source_of(function: Callable[..., object]) -> str:
    """The source of a function, without decorators, docstring and comments for tools."""
    source = inspect.getsource(function)
    text = str(ast.get_source_segment(source, ast.parse(source).body[0]))
    return _TOOLS.sub("", re.sub(r'\n    """.*?"""\n+', "\n", text, count=1, flags=re.DOTALL))


def factories() -> list[GroupwiseFactory]:
    """The groupwise metrics with established names."""
    values = [getattr(module, name) for module in (fairness, ranking) for name in module.__all__]
    return [value for value in values if isinstance(value, GroupwiseFactory)]


def _metrics() -> Iterator[Metric]:
    for module in _MODULES:
        for name in module.__all__:
            metric = getattr(module, name)
            if isinstance(metric, Metric):
                yield metric


def _is_alias(metric: Metric) -> bool:
    return metric.base is not None and metric.base.definition == metric.definition
