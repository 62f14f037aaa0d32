"""The code that makes a report again."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable, Mapping
from functools import singledispatch
from importlib.metadata import version
from platform import python_version
from typing import Any

from tidyfair.calling import COMPARISONS, GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, comparison
from tidyfair.errors import TidyfairError
from tidyfair.inference.gates import Gate, four_fifths
from tidyfair.metrics import places
from tidyfair.metrics.catalog import factories, metric_named
from tidyfair.reports.blocks import Code, Section
from tidyfair.specs import (
    Aggregate,
    Bins,
    Column,
    Memberships,
    OperatingPoint,
    PredictionInterval,
    Privileged,
    Survival,
)  # fmt: skip


def how_to_repeat(code: str) -> Section:
    """The section with the code of the call and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Section("How to repeat this audit", (Code(code), f"Made with {used}, on Python {python_version()}."))


def call_of(call: Mapping[str, Any]) -> str:
    """The code of a call of `report`, after the code of the metrics and gates in it.

    What is the user's own, such as an expression or a metric, is described in a comment.
    """
    lines = ["import tidyfair as tdf", ""]
    arguments: list[str] = []
    for name, value in call.items():
        # of these only `interval` has another default
        if value is None and name != "interval":
            continue
        code = _in_code(value)
        if code is None:
            code = f"...  # {' '.join(repr(value).split())}"
        if code.startswith("...") or isinstance(value, Metric | GroupwiseMetric | MetricSet | Gate):
            lines.append(f"{name} = {code}")
            code = name
        arguments.append(f"{name}={code}")
    return "\n".join([*lines, f"tdf.report(data, {', '.join(arguments)})"])


@singledispatch
def _in_code(value: object) -> str | None:
    """The code that makes an argument; None where that is not known."""
    return "None" if value is None else None


@_in_code.register(str)
@_in_code.register(int)
def _(value: str | int) -> str:
    return repr(value)


@_in_code.register(float)
def _(value: float) -> str:
    # without the types of numpy
    return repr(float(value)) if math.isfinite(value) else f"float('{float(value)}')"


@_in_code.register(list)
@_in_code.register(tuple)
def _(value: list[object] | tuple[object, ...]) -> str | None:
    known = _all_in_code(value)
    if known is None:
        return None
    if isinstance(value, list):
        return f"[{', '.join(known)}]"
    return f"({', '.join(known)}{',' if len(known) == 1 else ''})"


@_in_code.register(dict)
def _(value: dict[object, object]) -> str | None:
    keys, contents = _all_in_code(value), _all_in_code(value.values())
    if keys is None or contents is None:
        return None
    return f"{{{', '.join(map('{}: {}'.format, keys, contents))}}}"


def _all_in_code(values: Iterable[object]) -> list[str] | None:
    """The code of each of some values; None where that of one is not known."""
    texts = [_in_code(value) for value in values]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


def _call_in_code(function: str, arguments: Iterable[object], options: Mapping[str, object]) -> str | None:
    """The code of a call; None where the code of a part is not known."""
    positional, named = _all_in_code(arguments), _all_in_code(options.values())
    if positional is None or named is None:
        return None
    return f"{function}({', '.join([*positional, *map('{}={}'.format, options, named)])})"


@_in_code.register(Column)
def _(value: Column) -> str | None:
    return _in_code(value.source)


@_in_code.register(Bins)
def _(value: Bins) -> str | None:
    name = {"name": value.name}
    if value.edges is None:
        return _call_in_code("tdf.quantile_groups", [value.column, len(value.labels)], name)
    return _call_in_code("tdf.bins", [value.column, list(value.edges)], {"labels": list(value.labels), **name})


@_in_code.register(OperatingPoint)
def _(value: OperatingPoint) -> str | None:
    metric = metric_named(value.metric)
    if metric is None or value.on is not None:
        return None
    by = {"by": tuple(column.source for column in value.by)} if value.by else {}
    limit = {"at_most" if value.is_at_most else "at_least": value.limit}
    return _call_in_code("tdf.operating_point", [metric], {**limit, **by})


@_in_code.register(Survival)
def _(value: Survival) -> str | None:
    options: dict[str, object] = {}
    if isinstance(value.censoring, tuple):
        options["censoring"] = dict(value.censoring)
    elif value.censoring is not None:
        # an estimate from the user's own data
        return None
    if value.censoring_by:
        options["censoring_by"] = list(value.censoring_by)
    return _call_in_code("tdf.survival.outcome", [value.time, value.event], options)


@_in_code.register(PredictionInterval)
def _(value: PredictionInterval) -> str | None:
    return _call_in_code("tdf.prediction_intervals.interval", [value.lower, value.upper], {"level": value.level})


@_in_code.register(Privileged)
def _(value: Privileged) -> str | None:
    options = {"unprivileged": _conditions(value.unprivileged)} if value.unprivileged else {}
    return _call_in_code("tdf.privileged", _conditions(value.conditions), options)


@_in_code.register(Memberships)
def _(value: Memberships) -> str | None:
    return _call_in_code("tdf.memberships", value.given, value.settings)


def _conditions(conditions: tuple[tuple[tuple[str, tuple[object, ...]], ...], ...]) -> list[dict[str, object]]:
    """Conditions as a user writes them."""
    return [
        {name: values[0] if len(values) == 1 else list(values) for name, values in condition}
        for condition in conditions
    ]


@_in_code.register(Gate)
def _(gate: Gate) -> str | None:
    first = gate.metrics.metrics[0]
    if first.name == four_fifths.__name__ and isinstance(first, GroupwiseMetric):
        selected = dict(gate.options).get("pos_label")
        options: dict[str, Any] = {} if selected is None else {"pos_label": selected}
        options["conf_level"] = gate.conf_level
        if four_fifths(*first.by.features, **options) == gate:
            return _call_in_code("tdf.four_fifths", first.by.features, options)
    if gate.options or len(set(gate.limits)) > 1:
        return None
    side, limit = gate.limits[0]
    return _call_in_code("tdf.check", [gate.metrics], {side: limit, "conf_level": gate.conf_level})


@_in_code.register(MetricSet)
def _(metrics: MetricSet) -> str | None:
    return _in_code(metrics.metrics[0]) if len(metrics) == 1 else _call_in_code("tdf.metric_set", metrics, {})


@_in_code.register(Aggregate)
def _(aggregate: Aggregate) -> str | None:
    place = places().get(aggregate.kind)
    return place and _call_in_code(f"tdf.{place}", [], _options_of_aggregate(aggregate))


@_in_code.register(Metric)
def _(metric: Metric) -> str | None:
    if metric_named(metric.name) == metric:
        return f"tdf.{places()[metric.name]}"
    base = _in_code(metric.base)
    if metric.base is None or base is None:
        # the user's own
        return None
    options = {name: value for name, value in metric.options.items() if metric.base.options.get(name) != value}
    if options:
        return _call_in_code("tdf.metric_tweak", [metric.base, metric.name], options)
    return _call_in_code(f"{base}.alias", [metric.name], {})


@_in_code.register(GroupwiseMetric)
def _(metric: GroupwiseMetric) -> str | None:
    features = metric.by.features
    for function, factory in _factories_of(metric):
        try:
            options = _options_of(factory, metric)
            is_same = factory(*features, **options) == metric
        except TidyfairError:
            # another factory may have these options
            continue
        if is_same:
            return _call_in_code(function, features, options)
    return None


def _factories_of(metric: GroupwiseMetric) -> list[tuple[str, GroupwiseFactory]]:
    """The factories of the library that may have made a disparity, with their code; that of its name comes first."""
    names = [one.name for one in metric.metrics]
    alike = [factory for factory in factories() if [one.name for one in factory.metrics] == names]
    made = [(f"tdf.{places()[factory.name]}", factory) for factory in alike]
    for base in (metric.metrics[0].base, metric.metrics[0]) if len(names) == 1 else ():
        code = _in_code(base)
        if base is not None and code is not None:
            made += [(f"{code}.{way}", comparison(base, way)) for way in COMPARISONS]
    return sorted(made, key=lambda pair: pair[1].name != metric.name)


def _options_of(factory: GroupwiseFactory, metric: GroupwiseMetric) -> dict[str, Any]:
    """The options with which a factory may make a disparity."""
    options: dict[str, Any] = {} if metric.name == factory.name else {"name": metric.name}
    options |= metric.policy.stated
    for base, default in zip(metric.metrics, factory.metrics, strict=True):
        options |= {name: value for name, value in base.options.items() if default.options.get(name) != value}
    plain = factory(*metric.by.features, **options).aggregate
    if plain == metric.aggregate:
        return options
    if plain.kind == metric.aggregate.kind:
        asked, usual = metric.aggregate.options, plain.options
        options |= {name: value for name, value in asked.items() if usual.get(name) != value}
        if plain.across == metric.aggregate.across:
            return options
    if metric.aggregate.kind in places():
        make = operator.attrgetter(places()[metric.aggregate.kind])(sys.modules["tidyfair"])
        options = {name: value for name, value in options.items() if name not in metric.aggregate.options}
        options["aggregate"] = make(**_options_of_aggregate(metric.aggregate))
    return options


def _options_of_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    """The options of an aggregate of the library that are not the usual ones."""
    own = {name: getattr(aggregate, name, None) for name in ("to", "signed", "alpha", "weighted")}
    options = {name: value for name, value in own.items() if value is not None and value is not False}
    return options if aggregate.across == "worst" else {**options, "across": aggregate.across}
