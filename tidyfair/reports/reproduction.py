"""The code that makes a report again."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from tidyfair.calls import Evaluable
from tidyfair.inference.gates import Gate
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet
from tidyfair.metrics import fairness
from tidyfair.metrics.catalog import comparison_named
from tidyfair.reports.blocks import Code, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__: list[str] = []


def how_to_repeat(code: str) -> Section:
    """The section with the code of the call and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Section("How to repeat this audit", (Code(code), f"Made with {used}, on Python {python_version()}."))


def call_of(call: Mapping[str, Any]) -> str:
    """The code of a call of `report`, after the code of the metrics and gates in it."""
    lines = ["import tidyfair as tdf", ""]
    arguments: list[str] = []
    for name, value in call.items():
        # of these only `interval` has another default
        if value is None and name != "interval":
            continue
        code = repr(value)
        if isinstance(value, Evaluable | Gate):
            description = " ".join(code.split())
            lines.append(f"{name} = {_in_code(value) or f'...  # {description}'}")
            code = name
        arguments.append(f"{name}={code}")
    return "\n".join([*lines, f"tdf.report(data, {', '.join(arguments)})"])


def _in_code(value: object) -> str | None:
    """The code that makes a metric or a gate; None where that is not known."""
    match value:
        case MetricSet():
            return _set_in_code(value)
        case Gate(options=(), limits=limits) if len(set(limits)) == 1 and (metrics := _in_code(value.metrics)):
            side, limit = limits[0]
            return f"tdf.check({metrics}, {side}={limit!r}, confidence={value.confidence!r})"
        case Metric() if getattr(sys.modules["tidyfair"], value.name, None) == value:
            return f"tdf.{value.name}"
        case GroupwiseMetric():
            return _comparison_in_code(value)
        case _:
            return None


def _set_in_code(metrics: MetricSet) -> str | None:
    """The code of a metric set, or of the one metric in it."""
    parts: list[str] = []
    for metric in metrics:
        part = _in_code(metric)
        if part is None:
            return None
        parts.append(part)
    return parts[0] if len(parts) == 1 else f"tdf.metric_set({', '.join(parts)})"


def _comparison_in_code(metric: GroupwiseMetric) -> str | None:
    """The code of a disparity of the catalogue, or of a metric that compares itself."""
    if not all(isinstance(feature, str) for feature in metric.by.features):
        return None
    factory = comparison_named(metric.name)
    limits: dict[str, Any] = {"min_n": metric.min_n, "min_share": metric.min_share}
    if factory is None or replace(factory(*metric.by.features, **limits), by=metric.by) != metric:
        return None
    function = metric.name
    if function not in fairness.__all__:
        rate = metric.metrics[0].name
        function = f"{rate}.{function.removeprefix(rate + '_')}"
    given = [repr(metric.by), *(f"{name}={value}" for name, value in limits.items() if value)]
    return f"tdf.{function}({', '.join(given)})"
