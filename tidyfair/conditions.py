"""Conditions such as `equalized_odds(race) > 0.1`: read as gates, never run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Never

import polars as pl

from tidyfair import fairness
from tidyfair.catalogue import catalogue
from tidyfair.errors import AggregateError, ArgumentError, ColumnError, listed
from tidyfair.gates import Gate, check
from tidyfair.metric_sets import GroupwiseFactory, metric_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.metric_sets import GroupwiseMetric

__all__: list[str] = []

_CONDITION = re.compile(
    r"\s*(?P<name>\w+)\s*(\((?P<by>[^()]+)\))?\s*(?P<side>[<>])\s*(?P<limit>\d*\.?\d+(?:[eE]-?\d+)?)\s*"
)
_SIDES = {"minimize": ">", "zero": ">", "maximize": "<", "one": "<"}
"""On which side of a limit a comparison is bad, by where it should go."""
_LIMITS = {">": 0.1, "<": 0.8}
"""Limits of examples."""


def gate_of(conditions: Sequence[str], confidence: float, names: Sequence[str], features: Sequence[str]) -> Gate:
    """The gate that fails where a condition holds; `features` are offered where a condition names none."""
    gates = dict[tuple[str, str], Gate]()
    for condition in conditions:
        metric, side, limit = _read(condition, names, features)
        about = (metric.name, metric.by.text)
        if about in gates:
            msg = f"`fail_if`: {condition!r} is a second limit of {metric.name}({metric.by.text}); give one."
            raise ArgumentError(msg)
        if side != _SIDES[metric.direction]:
            wanted = "large" if side == ">" else "small"
            msg = f"`fail_if`: {metric.name} should be {wanted}: write {_SIDES[metric.direction]} in {condition!r}."
            raise ArgumentError(msg)
        gates[about] = check(metric, **{"below" if side == ">" else "above": limit}, confidence=confidence)
    return Gate(
        metric_set(*(gate.metrics for gate in gates.values())),
        tuple(limit for gate in gates.values() for limit in gate.limits),
        confidence,
    )


def columns_of(text: str, names: Sequence[str], role: str) -> tuple[str, ...]:
    """The columns of a feature; a colon is part of a name where there is such a column."""
    columns = (text,) if text in names else tuple(part.strip() for part in re.split("[:,]", text))
    for column in columns:
        if column not in names:
            raise ColumnError.missing(column, role, names)
    return columns


def _read(condition: str, names: Sequence[str], features: Sequence[str]) -> tuple[GroupwiseMetric, str, float]:
    """The comparison, on which side of the limit it fails, and the limit."""
    found = _CONDITION.fullmatch(condition)
    if found is None:
        example = "'equalized_odds(race) > 0.1', with < or > and a number"
        msg = f"`fail_if`: {condition!r} is no condition such as {example}."
        raise ArgumentError(msg)
    name, by, side, limit = found.group("name", "by", "side", "limit")
    factory = getattr(fairness, name, None) if name in fairness.__all__ else None
    groups = f"({by or features[0]})"
    if not isinstance(factory, GroupwiseFactory):
        _offer(name, groups, limit)
    if by is None:
        msg = f"`fail_if`: {condition!r} does not say which groups are compared: write '{name}{groups} {side} {limit}'."
        raise ArgumentError(msg)
    columns = columns_of(by.strip(), names, f"--fail-if {condition!r}")
    try:
        return factory(*columns), side, float(limit)
    except AggregateError as error:
        msg = f"`fail_if`: {name} compares two sides, which a condition has no words for."
        raise ArgumentError(msg) from error


def _offer(name: str, groups: str, limit: str) -> Never:
    """Say what compares the groups of a metric that is none itself."""
    every = catalogue()
    compared = every.filter(kind="groupwise")
    called = (pl.col("name") == name) | pl.col("aliases").list.contains(name)
    found = every.filter(called, pl.col("kind") != "groupwise")
    if found.is_empty():
        kind = "comparison of groups"
        raise ArgumentError.unknown(kind, name, compared["name"])
    # what has a sign compares two sides, which conditions have no words for
    own = pl.element().is_in([*found["name"], *found["aliases"].item()])
    of_it = pl.col("metrics").list.eval(own).list.all() & ~pl.col("aggregate").str.contains("signed=True")
    sides = {each: _SIDES[way] for each, way in compared.filter(of_it).select("name", "direction").rows()}
    msg = f"`fail_if`: {name} compares no groups, and only comparisons have limits"
    if not sides:
        msg = f"{msg}; of {name} there are none, and `tidyfair metrics` lists the others."
        raise ArgumentError(msg)
    # the worst value of a group is a value of the metric, as the limit is
    worst = next((each for each in sides if "_group_m" in each), None)
    best = worst or next(iter(sides))
    example = f"{best}{groups} {sides[best]} {limit if worst else _LIMITS[sides[best]]}"
    msg = f"{msg}: write such as {example!r}. Of {name} there are {listed(sides)}."
    raise ArgumentError(msg)
