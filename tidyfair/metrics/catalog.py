"""The catalogue of all metrics, as a metric set and as a tidy frame."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair.errors import ArgumentError, in_short
from tidyfair.metric_sets import COMPARISONS, GroupwiseFactory, Metric, MetricSet, comparison, metric_set
from tidyfair.metrics import classification, dependence, fairness, inequality, probability, regression
from tidyfair.metrics.other_names import OTHER_NAMES, expression_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

__all__ = ["catalogue", "get_metrics"]

_MODULES: tuple[ModuleType, ...] = (classification, probability, regression, inequality, dependence)

_KINDS = {"class": "labels", "prob": "scores", "numeric": "numbers"}
"""The kinds of metrics, and what they read."""
_TOOLS = re.compile(r"\s+# (fmt|noqa|pyright|type): ?.*$", re.MULTILINE)
"""Comments for tools at the end of a line of code."""


def get_metrics(kind: Literal["class", "prob", "numeric"] = "class") -> MetricSet:
    """All metrics of a kind as one set, without aliases, and without those that compare a group with others.

    >>> [metric.name for metric in get_metrics("class")][:3]
    ['accuracy', 'average_odds', 'average_predictive_value']
    """
    if kind not in _KINDS:
        reads = ", ".join(f"{known!r} ({words})" for known, words in _KINDS.items())
        msg = f"get_metrics(): a kind is what metrics read, {reads}, not {in_short(kind)}."
        raise ArgumentError(msg)
    metrics = [metric.of_kind(kind) for metric in _metrics() if not _is_alias(metric)]
    return metric_set(*(metric for metric in metrics if metric.kind == kind and not metric.definition.compares))


def catalogue() -> pl.DataFrame:
    """Every metric and groupwise metric with its direction and range, as a tidy frame.

    Columns: `name`, `kind`, `direction`, `lower` and `upper` end of the range, `aliases`; `elsewhere`, the names that
    other libraries have for it; `options` with their defaults, which `metric_tweak` can fix; `formula`, as it is
    executed, null where it takes more than a line; for kind `groupwise` also what is compared and how, and the `source`
    that defines it.

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
    rows = [_row(metric, aliases, elsewhere) for metric in _metrics() if not _is_alias(metric)]
    rows += [_row_of_factory(factory, elsewhere) for factory in _factories()]
    text, texts = pl.String, pl.List(pl.String)
    schema = {"name": text, "kind": text, "direction": text, "lower": pl.Float64, "upper": pl.Float64}
    schema |= {
        "aliases": texts,
        "elsewhere": texts,
        "options": texts,
        "metrics": texts,
        "aggregate": text,
        "formula": text,
        "source": text,
    }
    return pl.DataFrame(rows, schema)


def _row(metric: Metric, aliases: Mapping[str, list[str]], elsewhere: Mapping[str, list[str]]) -> dict[str, object]:
    """The row of a metric in the catalogue."""
    low, high = metric.range
    return {
        "name": metric.name,
        "kind": metric.kind,
        "direction": metric.direction,
        "lower": low,
        "upper": high,
        "aliases": aliases.get(metric.name, []),
        "elsewhere": elsewhere.get(metric.name, []),
        "options": [f"{name}={default!r}" for name, default in metric.options.items()],
        "formula": formula_of(metric),
    }


def _row_of_factory(factory: GroupwiseFactory, elsewhere: Mapping[str, list[str]]) -> dict[str, object]:
    """The row of a groupwise metric in the catalogue."""
    low, high = factory.typical.range
    metrics = [metric.name for metric in factory.metrics]
    return {
        "name": factory.name,
        "kind": "groupwise",
        "direction": factory.typical.direction,
        "lower": low,
        "upper": high,
        "aliases": [],
        "elsewhere": elsewhere.get(factory.name, []),
        "options": [f"{name}={default!r}" for name, default in factory.options.items()],
        "metrics": metrics,
        "aggregate": repr(factory.aggregate),
        "formula": f"{factory.aggregate!r} of {', '.join(metrics)}",
        "source": factory.source,
    }


def definition_of(name: str) -> str:
    """The meaning of a metric and its formula, as it is executed.

    >>> print(definition_of("true_positive_rate"))  # doctest: +ELLIPSIS
    true_positive_rate (sens): class metric, maximize, 0 to 1
    ...
    def sens(tp: Number, fn: Number) -> Rate:
        return tp, tp + fn
    """
    metrics = {metric.name: metric for metric in _metrics()}
    if name in metrics:
        return _definition(metrics[name])
    if factory := comparison_named(name):
        return _definition_of_factory(factory, metrics)
    expression = expression_for(name, metrics, fairness.__all__)
    if expression is not None:
        ours = expression.partition("(")[0].replace(".", "_")
        return f"{name} is {expression} here.\n\n{definition_of(ours)}"
    kind = "metric"
    raise ArgumentError.unknown(kind, name, [*metrics, *fairness.__all__])


def _definition(metric: Metric) -> str:
    """The definition of a metric; an alias says of what."""
    alias_of = f" ({metric.base.name})" if metric.base and _is_alias(metric) else ""
    low, high = metric.range
    facts = f"{metric.name}{alias_of}: {metric.kind} metric, {metric.direction}, {low:g} to {high:g}"
    return f"{facts}\n{metric.meaning}\n\n{source_of(metric.definition.function)}"


def _definition_of_factory(factory: GroupwiseFactory, metrics: Mapping[str, Metric]) -> str:
    """The definition of a groupwise metric, and of the metrics that it compares."""
    example = factory.typical
    low, high = example.range
    facts = f"{factory.name}: {example.aggregate!r}, {example.direction}, {low:g} to {high:g}\n{example.meaning}"
    if factory.source:
        facts += f"\n{factory.source}."
    compared = [metrics[metric.name] for metric in (*factory.metrics, *factory.less) if metric.name in metrics]
    return "\n\n".join([facts, *map(_definition, compared)])


def comparison_named(name: str) -> GroupwiseFactory | None:
    """The factory of that name: one of the field's, or a metric and how it compares itself (`accuracy_difference`)."""
    for factory in _factories():
        if factory.name == name:
            return factory
    for way in COMPARISONS:
        base = name.removesuffix(f"_{way}")
        for metric in _metrics():
            if base != name and metric.name == base:
                return comparison(metric, way)
    return None


def metric_named(name: str) -> Metric | None:
    """The metric of the catalogue of that name.

    >>> metric_named("sens").range
    (0, 1)
    """
    for metric in _metrics():
        if metric.name == name:
            return metric
    return None


def source_of(function: Callable[..., object]) -> str:
    """A function as it is executed, without decorators, docstring and comments for tools."""
    source = inspect.getsource(function)
    text = str(ast.get_source_segment(source, ast.parse(source).body[0]))
    return _TOOLS.sub("", re.sub(r'\n    """.*?"""\n+', "\n", text, count=1, flags=re.DOTALL))


def formula_of(metric: Metric) -> str | None:
    """The expression that a formula returns, where it does nothing else; a rate is a quotient."""
    (function,) = ast.parse(source_of(metric.definition.function)).body
    body = function.body if isinstance(function, ast.FunctionDef) else []
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    value = body[0].value
    if not isinstance(value, ast.Tuple):
        return ast.unparse(value)
    return " / ".join(map(_operand, value.elts))


def _operand(node: ast.expr) -> str:
    """An operand of a quotient as code, in brackets where it needs them."""
    code = ast.unparse(node)
    return f"({code})" if isinstance(node, ast.BinOp) else code


def _factories() -> list[GroupwiseFactory]:
    """The groupwise metrics that the field has names for."""
    values = [getattr(fairness, name) for name in fairness.__all__]
    return [value for value in values if isinstance(value, GroupwiseFactory)]


def _metrics() -> Iterator[Metric]:
    for module in _MODULES:
        for name in module.__all__:
            metric = getattr(module, name)
            if isinstance(metric, Metric):
                yield metric


def _is_alias(metric: Metric) -> bool:
    return metric.base is not None and metric.base.definition == metric.definition
