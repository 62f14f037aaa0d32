"""Calls as code: the code that repeats a call is written, and such code is read without running it."""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, cast

from tidyfair.calling import COMPARISONS, GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, comparison
from tidyfair.errors import ArgumentError, TidyfairError, in_short
from tidyfair.inference.gates import Gate, four_fifths
from tidyfair.metrics import places
from tidyfair.metrics.catalog import factories, metric_named
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

_MAKERS = {"metric_set", "metric_tweak", "quantile_groups"}
"""The functions that code in files may call, beside metrics, their comparisons, and makers of settings."""


def value_of_code(text: str) -> Any:
    """The value of code that `code_of` wrote: constants, collections, and what tidyfair makes of them; nothing runs."""
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, AttributeError, TypeError, ValueError, RecursionError) as error:
        msg = f"{in_short(text)} is no code of a call: {error}."
        raise ArgumentError(msg) from error


def _value(node: ast.AST) -> Any:
    """The value of a part of code."""
    if isinstance(node, ast.Call):
        named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
        return _function(node.func)(*map(_value, node.args), **named)
    if isinstance(node, ast.Attribute):
        return _function(node)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item) for item in node.elts] if isinstance(node, ast.List) else tuple(map(_value, node.elts))
    if isinstance(node, ast.Dict):
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    # a constant, or a negative number
    return ast.literal_eval(cast("ast.expr", node))


def _function(node: ast.expr) -> Any:
    """The metric, comparison or maker of a setting that code names; refuses all that could compute something."""
    text = ast.unparse(node)
    place = text.removeprefix("tdf.")
    if text == "float":
        return float
    if place in _MAKERS or place in places().values():
        made = operator.attrgetter(place)(sys.modules["tidyfair"])
        says = getattr(made, "__module__", "").startswith("tidyfair.specs.")
        if place in _MAKERS or says or isinstance(made, Metric | GroupwiseFactory):
            return made
    elif isinstance(node, ast.Attribute) and node.attr in {*COMPARISONS, "alias"}:
        metric = _function(node.value)
        if isinstance(metric, Metric):
            return getattr(metric, node.attr)
    msg = f"{text!r} is nothing that tidyfair writes"
    raise TypeError(msg)


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
        code = code_of(value)
        if code is None:
            code = f"...  # {' '.join(repr(value).split())}"
        if code.startswith("...") or isinstance(value, Metric | GroupwiseMetric | MetricSet | Gate):
            lines.append(f"{name} = {code}")
            code = name
        arguments.append(f"{name}={code}")
    return "\n".join([*lines, f"tdf.report(data, {', '.join(arguments)})"])


def code_of(value: object) -> str | None:
    """The code that makes an argument; None where that is not known."""
    return next((code(value) for kind, code in _CODE.items() if isinstance(value, kind)), None)


def _all_in_code(values: Iterable[object]) -> list[str] | None:
    """The code of each of some values; None where that of one is not known."""
    texts = [code_of(value) for value in values]
    known = [text for text in texts if text is not None]
    return known if len(known) == len(texts) else None


def _call_in_code(function: str, arguments: Iterable[object] = (), **options: object) -> str | None:
    """The code of a call; None where the code of a part is not known."""
    positional, named = _all_in_code(arguments), _all_in_code(options.values())
    if positional is None or named is None:
        return None
    return f"{function}({', '.join([*positional, *map('{}={}'.format, options, named)])})"


def _sequence(value: Sequence[object]) -> str | None:
    """The code of a list or a tuple."""
    known = _all_in_code(value)
    if known is None:
        return None
    return f"[{', '.join(known)}]" if isinstance(value, list) else f"({', '.join(known)}{',' * (len(known) == 1)})"


def _mapping(value: Mapping[object, object]) -> str | None:
    """The code of a mapping."""
    keys, contents = _all_in_code(value), _all_in_code(value.values())
    return None if keys is None or contents is None else f"{{{', '.join(map('{}: {}'.format, keys, contents))}}}"


def _bins(value: Bins) -> str | None:
    """The code of the groups of a number."""
    if value.edges is None:
        return _call_in_code("tdf.quantile_groups", [value.column, len(value.labels)], name=value.name)
    return _call_in_code("tdf.bins", [value.column, list(value.edges)], labels=list(value.labels), name=value.name)


def _operating_point(value: OperatingPoint) -> str | None:
    """The code of the threshold at which a metric reaches a limit."""
    metric = metric_named(value.metric)
    if metric is None or value.on is not None:
        return None
    by = {"by": tuple(column.source for column in value.by)} if value.by else {}
    limit = {"at_most" if value.is_at_most else "at_least": value.limit}
    return _call_in_code("tdf.operating_point", [metric], **limit, **by)


def _survival(value: Survival) -> str | None:
    """The code of survival times; None for an estimate of censoring from the user's own data."""
    if value.censoring is not None and not isinstance(value.censoring, tuple):
        return None
    options = {"censoring": value.censoring and dict(value.censoring), "censoring_by": list(value.censoring_by or ())}
    given = {name: option for name, option in options.items() if option}
    return _call_in_code("tdf.survival.outcome", [value.time, value.event], **given)


def _privileged(value: Privileged) -> str | None:
    """The code of privileged groups, with conditions as a user writes them."""
    sides = [
        [{name: values[0] if len(values) == 1 else list(values) for name, values in condition} for condition in side]
        for side in (value.conditions, value.unprivileged)
    ]
    return _call_in_code("tdf.privileged", sides[0], **({"unprivileged": sides[1]} if sides[1] else {}))


def _gate(gate: Gate) -> str | None:
    """The code of a gate whose metrics have one limit."""
    first = gate.metrics.metrics[0]
    if first.name == four_fifths.__name__ and isinstance(first, GroupwiseMetric):
        selected = dict(gate.options).get("pos_label")
        options: dict[str, Any] = {} if selected is None else {"pos_label": selected}
        options["conf_level"] = gate.conf_level
        if four_fifths(*first.by.features, **options) == gate:
            return _call_in_code("tdf.four_fifths", first.by.features, **options)
    if gate.options or len(set(gate.limits)) > 1:
        return None
    side, limit = gate.limits[0]
    return _call_in_code("tdf.check", [gate.metrics], **{side: limit}, conf_level=gate.conf_level)


def _metric(metric: Metric) -> str | None:
    """The code of a metric; None for one of the user's own."""
    if metric_named(metric.name) == metric:
        return f"tdf.{places()[metric.name]}"
    base = code_of(metric.base)
    if metric.base is None or base is None:
        return None
    options = {name: value for name, value in metric.options.items() if metric.base.options.get(name) != value}
    if options:
        return _call_in_code("tdf.metric_tweak", [metric.base, metric.name], **options)
    return _call_in_code(f"{base}.alias", [metric.name])


def _groupwise_metric(metric: GroupwiseMetric) -> str | None:
    """The code of a disparity that a factory of the library makes."""
    features = metric.by.features
    for function, factory in _factories_of(metric):
        try:
            options = _options_of(factory, metric)
            is_same = factory(*features, **options) == metric
        except TidyfairError:
            # another factory may have these options
            continue
        if is_same:
            return _call_in_code(function, features, **options)
    return None


def _factories_of(metric: GroupwiseMetric) -> list[tuple[str, GroupwiseFactory]]:
    """The factories of the library that may have made a disparity, with their code; that of its name comes first."""
    names = [one.name for one in metric.metrics]
    alike = [factory for factory in factories() if [one.name for one in factory.metrics] == names]
    made = [(f"tdf.{places()[factory.name]}", factory) for factory in alike]
    for base in (metric.metrics[0].base, metric.metrics[0]) if len(names) == 1 else ():
        code = code_of(base)
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


_CODE: Mapping[type | UnionType, Callable[[Any], str | None]] = {
    type(None): repr,
    str | int: repr,
    # without the types of numpy
    float: lambda value: repr(float(value)) if math.isfinite(value) else f"float('{float(value)}')",
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
    Column: lambda column: code_of(column.source),
    Bins: _bins,
    OperatingPoint: _operating_point,
    Survival: _survival,
    PredictionInterval: lambda interval: _call_in_code(
        "tdf.prediction_intervals.interval", [interval.lower, interval.upper], level=interval.level
    ),
    Privileged: _privileged,
    Memberships: lambda groups: _call_in_code("tdf.memberships", groups.given, **groups.settings),
    Gate: _gate,
    MetricSet: lambda metrics: (
        code_of(metrics.metrics[0]) if len(metrics) == 1 else _call_in_code("tdf.metric_set", metrics)
    ),
    Aggregate: lambda aggregate: (
        _call_in_code(f"tdf.{places()[aggregate.kind]}", **_options_of_aggregate(aggregate))
        if aggregate.kind in places() else None
    ),
    Metric: _metric,
    GroupwiseMetric: _groupwise_metric,
}  # fmt: skip
"""The code of each type of argument."""
