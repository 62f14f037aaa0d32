"""Everything there is, as a metric set and as a tidy frame."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.metric_sets import COMPARISONS, GroupwiseFactory, Metric, MetricSet, comparison, metric_set
from tidyfair.metrics import classification, dependence, fairness, inequality, probability, regression
from tidyfair.metrics.other_names import OTHER_NAMES, expression_for
from tidyfair.specs.arguments import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

__all__ = ["catalogue", "get_metrics"]

_MODULES: tuple[ModuleType, ...] = (classification, probability, regression, inequality, dependence)

_TOOLS = re.compile(r"\s+# (fmt|noqa|pyright|type): ?.*$", re.MULTILINE)
"""Words to tools, at the end of a line of code."""


def get_metrics(kind: Literal["class", "prob", "numeric"] = "class") -> MetricSet:
    """All metrics of a kind as one set, without aliases, and without those that compare a group with others.

    >>> [metric.name for metric in get_metrics("class")][:3]
    ['accuracy', 'average_odds', 'average_predictive_value']
    """
    one_of("kind", kind, sorted({metric.kind for metric in _metrics()}))
    every = [metric for metric in _metrics() if not _is_alias(metric) and not metric.definition.compares]
    return metric_set(*(metric for metric in every if metric.kind == kind))


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
    rows = [
        {
            "name": metric.name, "kind": metric.kind, "direction": metric.direction,
            "lower": metric.range[0], "upper": metric.range[1], "aliases": aliases.get(metric.name, []),
            "elsewhere": elsewhere.get(metric.name, []),
            "options": [f"{name}={value!r}" for name, value in metric.definition.options],
            "formula": formula_of(metric),
        }
        for metric in _metrics() if not _is_alias(metric)
    ]  # fmt: skip
    factories = [each for name in fairness.__all__ if isinstance(each := getattr(fairness, name), GroupwiseFactory)]
    rows += [
        {
            "name": each.name, "kind": "groupwise", "direction": each.typical.direction,
            "lower": each.typical.range[0], "upper": each.typical.range[1], "aliases": [],
            "elsewhere": elsewhere.get(each.name, []),
            "options": [f"{name}={value!r}" for name, value in each.options.items()],
            "metrics": [metric.name for metric in each.metrics], "aggregate": repr(each.aggregate),
            "formula": f"{each.aggregate!r} of {', '.join(metric.name for metric in each.metrics)}",
            "source": each.source,
        }
        for each in factories
    ]  # fmt: skip
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


def definition_of(name: str) -> str:
    """What a metric means, and how it is worked out, as it is executed.

    >>> print(definition_of("true_positive_rate"))  # doctest: +ELLIPSIS
    true_positive_rate (sens): class metric, maximize, 0 to 1
    ...
    def sens(tp: Number, fn: Number) -> Rate:
        return tp, tp + fn
    """
    known = {metric.name: metric for metric in _metrics()}
    if name in known:
        metric = known[name]
        base = f" ({metric.base.name})" if metric.base and _is_alias(metric) else ""
        low, high = metric.range
        about = f"{name}{base}: {metric.kind} metric, {metric.direction}, {low:g} to {high:g}"
        return f"{about}\n{metric.meaning}\n\n{source_of(metric.definition.function)}"
    if factory := comparison_named(name):
        made = factory.typical
        low, high = made.range
        about = f"{name}: {made.aggregate!r}, {made.direction}, {low:g} to {high:g}\n{made.meaning}"
        source = f"\n{factory.source}." if factory.source else ""
        every = (*factory.metrics, *factory.less)
        return "\n\n".join(
            [f"{about}{source}", *(definition_of(metric.name) for metric in every if metric.name in known)]
        )
    expression = expression_for(name, [*known, *fairness.__all__])
    if expression is not None:
        ours = expression.partition("(")[0].replace(".", "_")
        return f"{name} is {expression} here.\n\n{definition_of(ours)}"
    kind = "metric"
    raise ArgumentError.unknown(kind, name, [*known, *fairness.__all__])


def comparison_named(name: str) -> GroupwiseFactory | None:
    """The factory of that name: one of the field's, or a metric and how it compares itself (`accuracy_difference`)."""
    if name in fairness.__all__:
        factory = getattr(fairness, name)
        return factory if isinstance(factory, GroupwiseFactory) else None
    for way in COMPARISONS:
        base = name.removesuffix(f"_{way}")
        for metric in _metrics():
            if base != name and metric.name == base:
                return comparison(metric, way)
    return None


def source_of(function: Callable[..., object]) -> str:
    """A function as it is executed, without decorators, docstring and words to tools."""
    source = inspect.getsource(function)
    text = str(ast.get_source_segment(source, ast.parse(source).body[0]))
    return _TOOLS.sub("", re.sub(r'\n    """.*?"""\n+', "\n", text, count=1, flags=re.DOTALL))


def formula_of(metric: Metric) -> str | None:
    """What a formula returns, where that is all that it does; a rate is a share."""
    (function,) = ast.parse(source_of(metric.definition.function)).body
    body = function.body if isinstance(function, ast.FunctionDef) else []
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    value = body[0].value
    if not isinstance(value, ast.Tuple):
        return ast.unparse(value)
    parts = [f"({ast.unparse(each)})" if isinstance(each, ast.BinOp) else ast.unparse(each) for each in value.elts]
    return " / ".join(parts)


def _metrics() -> Iterator[Metric]:
    for module in _MODULES:
        for name in module.__all__:
            metric = getattr(module, name)
            if isinstance(metric, Metric):
                yield metric


def _is_alias(metric: Metric) -> bool:
    return metric.base is not None and metric.base.definition == metric.definition
