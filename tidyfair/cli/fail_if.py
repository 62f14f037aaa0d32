"""Conditions such as `equalized_odds(race) > 0.1`: read as gates, never run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import Any, Never, TypeAlias
from zoneinfo import ZoneInfo

import polars as pl

from tidyfair.calling import COMPARISONS, GroupwiseFactory, GroupwiseMetric, Metric, metric_set
from tidyfair.errors import ArgumentError, ColumnError, nearest
from tidyfair.inference.gates import Gate, Outside, Side, check, out_of_range
from tidyfair.metrics import OTHER_NAMES, expression_for
from tidyfair.metrics.catalog import comparison_named, factories, metric_named, names_of_metrics
from tidyfair.specs import Policy, Privileged, privileged


def feature_of(text: str, names: Iterable[str], role: str) -> tuple[str, ...] | Privileged:
    """The feature that a text names: a column, several as `sex:race`, or two sides as `race=White`.

    A colon or an equal sign is part of a name if there is such a column.
    """
    present = list(names)
    if text in present:
        return (text,)
    parts = list(map(str.strip, re.split("[:,]", text)))
    is_value = [part not in present and part.partition("=")[0] in present for part in parts]
    if any(is_value):
        if not all(is_value):
            msg = f"`{role}`: {text!r} mixes columns and values: write columns, 'sex:race', or values, 'race=White'."
            raise ArgumentError(msg)
        values: dict[str, object] = {}
        for part in parts:
            # a value is read as its column is
            column, _, value = part.partition("=")
            values[column] = as_value(value, names[column] if isinstance(names, pl.Schema) else pl.String())
        return privileged(values)
    for column in parts:
        if column not in present:
            raise ColumnError.missing(column, role, present)
    return tuple(parts)


def as_value(text: str, dtype: pl.DataType) -> object:
    """The value that a text stands for in a column of this dtype; the text itself if it stands for none."""
    readers: dict[type[pl.DataType], Callable[[str], object]] = {
        pl.Boolean: _truth_value,
        pl.Date: date.fromisoformat,
        pl.Time: time.fromisoformat,
        pl.Datetime: partial(_moment, zone=getattr(dtype, "time_zone", None)),
        pl.Decimal: Decimal,
    }
    read = readers.get(type(dtype), _number if dtype.is_numeric() else None)
    if read is None:
        return text
    try:
        return read(text.strip())
    except (ValueError, ArithmeticError):
        return text


def _truth_value(text: str) -> object:
    """True or false, or a number in their place."""
    return {"true": True, "false": False}[text.casefold()] if text.casefold() in {"true", "false"} else _number(text)


def _number(text: str) -> int | float:
    """A number, whole if it can be."""
    with suppress(ValueError):
        return int(text)  # a float would lose digits
    number = float(text)
    return int(number) if number.is_integer() else number


def _moment(text: str, zone: str | None) -> datetime:
    """A date with a time, in the time zone of its column unless the text names another."""
    moment = datetime.fromisoformat(text)
    if zone is None:
        return moment.replace(tzinfo=None)
    own = ZoneInfo(zone)
    return moment.replace(tzinfo=own) if moment.tzinfo is None else moment.astimezone(own)


Key: TypeAlias = "tuple[str, str | None]"
"""The name of a metric, and the feature whose groups it compares."""
_CONDITION = re.compile(
    r"\s*(?P<change>change\s+in\s+)?(?P<name>\w+)\s*(\((?P<by>[^()]+)\))?\s*(?P<side>[<>])\s*"
    r"(?P<limit>[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)\s*"
)
SIDES = {"minimize": ">", "zero": ">", "maximize": "<", "one": "<"}
"""The bad side of a limit, by the direction of the metric."""
EXAMPLE_LIMITS = {">": 0.1, "<": 0.8}
"""Limits of examples."""
_RULE = re.compile(r"\s*(?P<name>\w+)\s*\((?P<by>[^()]+)\)\s*")
_RULES = {"four_fifths": ("demographic_parity_ratio", 0.8)}
"""Ready-made gates, with the comparison and the limit that they stand for."""
CHANGE = "change in "
"""The words of a condition on the change from one model to another."""


@dataclass(frozen=True)
class Condition:
    """A metric, and the limit beyond which it, or its change from one model to another, fails."""

    metric: Metric | GroupwiseMetric
    side: str
    """`<` where it fails below the limit, `>` where it fails above."""
    limit: float

    @property
    def key(self) -> Key:
        """The name of the metric, and the feature whose groups it compares."""
        return self.metric.name, self.metric.by.text if self.metric.by else None

    @property
    def allowed(self) -> tuple[Side, float]:
        """The good side of the limit, as gates have it."""
        return ("below" if self.side == ">" else "above"), self.limit

    @property
    def shown(self) -> str:
        """The metric as a condition names it."""
        name, by = self.key
        return name if by is None else f"{name}({by})"


def gate_of(
    conditions: Sequence[str],
    confidence: float,
    names: Iterable[str],
    features: Sequence[str],
    policy: Policy | None = None,
    outside: Outside = "hold",
) -> Gate:
    """The gate that fails where a condition such as `accuracy < 0.7` holds.

    `names` are the columns of the data, with their dtypes if there is one, and `features` are offered where a condition
    names none.
    """
    gates: list[Gate] = []
    for condition in conditions_of(conditions, names, features, policy):
        side, limit = condition.allowed
        allowed: dict[str, Any] = {side: limit}
        gates.append(check(condition.metric, **allowed, conf_level=confidence))
    limits = tuple(limit for gate in gates for limit in gate.limits)
    return Gate(metric_set(*(gate.metrics for gate in gates)), limits, confidence, outside=outside)


def conditions_of(
    texts: Sequence[str],
    names: Iterable[str],
    features: Sequence[str],
    policy: Policy | None = None,
    *,
    of_changes: bool = False,
) -> list[Condition]:
    """Conditions on values, or on changes from one model to another, read and checked."""
    conditions: dict[Key, Condition] = {}
    for text in texts:
        condition = _read(text, names, features, policy or Policy(), of_changes=of_changes)
        if condition.key in conditions:
            msg = f"`fail_if`: {text!r} is a second limit of {condition.shown}; give one."
            raise ArgumentError(msg)
        _check_limit(text, condition, of_changes=of_changes)
        conditions[condition.key] = condition
    return list(conditions.values())


def _check_limit(text: str, condition: Condition, *, of_changes: bool) -> None:
    """Refuse a limit on the good side, or outside the range of the metric."""
    metric, side, limit = condition.metric, condition.side, condition.limit
    low, high = metric.range
    problem = None
    if of_changes and metric.direction in {"zero", "one"}:
        best = 0 if metric.direction == "zero" else 1
        problem = (
            f"{metric.name} is best at {best}, so that no change of it is bad whatever its value: compare metrics that "
            "should be large, or small."
        )
    elif side != SIDES[metric.direction]:
        wanted = "large" if side == ">" else "small"
        problem = f"{metric.name} should be {wanted}: write {SIDES[metric.direction]} in {text!r}."
    elif of_changes and abs(limit) >= high - low:
        problem = f"{text!r}: {metric.name} changes by less than {high - low:g}."
    elif not of_changes and limit < 0:
        problem = f"{text!r}: limits of {metric.name} are 0 or more."
    elif not of_changes:
        outside = out_of_range(metric, limit, lambda meant: repr(f"{condition.shown} {side} {meant:g}"))
        problem = outside and f"{text!r}: {outside}"
    if problem:
        msg = f"`fail_if`: {problem}"
        raise ArgumentError(msg)


def comparison_of(
    name: str, flag: str, groups: str = "", limit: str = "", *, has_sides: bool = False
) -> GroupwiseFactory:
    """The comparison of groups of that name; `groups` and `limit` of a condition are used in messages.

    Raises:
        ArgumentError: For a name that is no comparison, and for a comparison of two sides without them.
    """
    factory = comparison_named(name)
    if factory is None:
        _offer(name, flag, groups, limit)
    if factory.typical.by.sides is not None and not has_sides:
        msg = f"`{flag}`: {name} compares two sides: name the value of one of them, such as 'race=White'."
        raise ArgumentError(msg)
    return factory


def known_names() -> list[str]:
    """The names of metrics and comparisons, here and in other libraries."""
    metrics = names_of_metrics()
    comparisons = [f"{metric}_{way}" for metric in metrics for way in COMPARISONS]
    return [*metrics, *(factory.name for factory in factories()), *comparisons, *OTHER_NAMES]


def _read(text: str, names: Iterable[str], features: Sequence[str], policy: Policy, *, of_changes: bool) -> Condition:
    """The condition that a text writes."""
    rule = _RULE.fullmatch(text)
    if rule is not None and rule["name"] in _RULES:
        comparison, least = _RULES[rule["name"]]
        text = f"{comparison}({rule['by']}) < {least}"
    match = _CONDITION.fullmatch(text)
    if match is None:
        example = "'equalized_odds(race) > 0.1' or 'accuracy < 0.7', with < or > and a number"
        msg = f"`fail_if`: {text!r} is not a condition; write one such as {example}."
        raise ArgumentError(msg)
    name, by, side, limit = match.group("name", "by", "side", "limit")
    _check_change(text, is_change=bool(match["change"]), of_changes=of_changes)
    if by is None and (metric := metric_named(name)) is not None and not metric.definition.compares:
        return Condition(metric, side, float(limit))
    written = f"({by or (features[0] if features else 'column')})"
    by, _, reference = (by or "").partition(", to=")
    feature = feature_of(by.strip(), names, f"--fail-if {text!r}") if by else ()
    has_sides = not isinstance(feature, tuple)
    factory = comparison_of(name, "fail_if", written, limit, has_sides=has_sides)
    if not by:
        change = CHANGE if of_changes else ""
        msg = f"`fail_if`: {text!r} does not say which groups are compared: write "
        msg += f"'{change}{name}{written} {side} {limit}'."
        raise ArgumentError(msg)
    compared: Any = (feature,) if has_sides else feature
    options: dict[str, Any] = {"to": reference.strip()} if reference else {}
    return Condition(factory(*compared, **options).with_policy(policy), side, float(limit))


def _check_change(text: str, *, is_change: bool, of_changes: bool) -> None:
    """Refuse conditions on a value where models are compared, and on a change where there is one model."""
    if of_changes and not is_change:
        msg = f"`fail_if`: {text!r} is about a value, and two models are compared: write {CHANGE + text.strip()!r}, "
        msg += "and mean the other model minus the first one."
        raise ArgumentError(msg)
    if is_change and not of_changes:
        msg = f"`fail_if`: {text!r} is about the change from one model to another, as `tidyfair compare` shows it."
        raise ArgumentError(msg)


def _offer(name: str, flag: str, groups: str, limit: str) -> Never:
    """Raise the error for a name that is no comparison, with the comparisons of that metric."""

    def written(comparison: str, side: str, limit: object) -> str:
        return repr(f"{comparison}{groups} {side} {limit}" if groups else comparison)

    if name in _RULES:
        comparison, least = _RULES[name]
        way_out = f"write {name + groups!r}, or" if groups else "its metric is"
        msg = f"`{flag}`: {name} is a rule with a limit of its own: {way_out} {written(comparison, '<', least)}."
        raise ArgumentError(msg)
    metric = metric_named(name)
    if metric is None:
        way_out = nearest(name, known_names()) or " `tidyfair metrics` lists what there is."
        expression = expression_for(name, names_of_metrics(), [factory.name for factory in factories()]) or name
        ours = expression.partition("(")[0].replace(".", "_")
        if expression != name and "aggregate=" not in expression and (metric_named(ours) or comparison_named(ours)):
            way_out = f" Here it is {ours!r}."
        msg = f"`{flag}`: there is no metric or disparity {name!r}.{way_out}"
        raise ArgumentError(msg)
    offers = [written(f"{name}_difference", ">", EXAMPLE_LIMITS[">"])]
    if metric.direction in {"maximize", "minimize"}:
        # the worst value of a group is a value of the metric, as the limit is
        worst = "group_minimum" if metric.direction == "maximize" else "group_maximum"
        offers.insert(0, written(f"{name}_{worst}", SIDES[metric.direction], limit))
    msg = f"`{flag}`: {name} compares no groups: write such as {' or '.join(offers)}."
    raise ArgumentError(msg)
