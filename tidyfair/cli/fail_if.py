"""Conditions such as `equalized_odds(race) > 0.1`: read as gates, never run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Never

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, nearest
from tidyfair.inference.gates import Gate, check, out_of_range
from tidyfair.metric_sets import metric_set
from tidyfair.metrics.catalog import catalogue, comparison_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric

__all__: list[str] = []

_CONDITION = re.compile(
    r"\s*(?P<name>\w+)\s*(\((?P<by>[^()]+)\))?\s*(?P<side>[<>])\s*(?P<limit>\d*\.?\d+(?:[eE]-?\d+)?)\s*"
)
_SIDES = {"minimize": ">", "zero": ">", "maximize": "<", "one": "<"}
"""On which side of a limit a comparison is bad, by where it should go."""
_LIMITS = {">": 0.1, "<": 0.8}
"""Limits of examples."""
_RULES = {"four_fifths": ("demographic_parity_ratio", 0.8)}
"""Gates of their own, and the comparison and its limit that they are."""


def gate_of(
    conditions: Sequence[str], confidence: float, names: Sequence[str], features: Sequence[str], min_n: int = 0
) -> Gate:
    """The gate that fails where a condition holds; `features` are offered where a condition names none.

    Groups of fewer rows than `min_n` are not compared.
    """
    gates = dict[tuple[str, str], Gate]()
    for condition in conditions:
        metric, side, limit = _read(condition, names, features, min_n)
        about = (metric.name, metric.by.text)
        if about in gates:
            msg = f"`fail_if`: {condition!r} is a second limit of {metric.name}({metric.by.text}); give one."
            raise ArgumentError(msg)
        if side != _SIDES[metric.direction]:
            wanted = "large" if side == ">" else "small"
            msg = f"`fail_if`: {metric.name} should be {wanted}: write {_SIDES[metric.direction]} in {condition!r}."
            raise ArgumentError(msg)
        example = f"{metric.name}({metric.by.text}) {side} "
        if problem := out_of_range(metric, limit, lambda meant, text=example: repr(f"{text}{meant:g}")):
            msg = f"`fail_if`: {condition!r}: {problem}"
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


def comparison_of(name: str, flag: str, groups: str = "", limit: str = "") -> GroupwiseFactory:
    """The comparison of groups that is called so; `groups` and `limit` of a condition are those of examples.

    Raises:
        ArgumentError: For what is none, and for what compares two sides.
    """
    factory = comparison_named(name)
    if factory is None:
        _offer(name, flag, groups, limit)
    if factory.typical.by.sides is not None:
        msg = f"`{flag}`: {name} compares two sides, which the command line has no words for."
        raise ArgumentError(msg)
    return factory


def _read(
    condition: str, names: Sequence[str], features: Sequence[str], min_n: int
) -> tuple[GroupwiseMetric, str, float]:
    """The comparison, on which side of the limit it fails, and the limit."""
    found = _CONDITION.fullmatch(condition)
    if found is None:
        example = "'equalized_odds(race) > 0.1', with < or > and a number"
        msg = f"`fail_if`: {condition!r} is no condition such as {example}."
        raise ArgumentError(msg)
    name, by, side, limit = found.group("name", "by", "side", "limit")
    groups = f"({by or features[0]})"
    factory = comparison_of(name, "fail_if", groups, limit)
    if by is None:
        msg = f"`fail_if`: {condition!r} does not say which groups are compared: write '{name}{groups} {side} {limit}'."
        raise ArgumentError(msg)
    columns = columns_of(by.strip(), names, f"--fail-if {condition!r}")
    return factory(*columns, min_n=min_n), side, float(limit)


def _offer(name: str, flag: str, groups: str, limit: str) -> Never:
    """Say what compares the groups of a metric that is none itself."""

    def written(comparison: str, side: str, limit: object) -> str:
        return repr(f"{comparison}{groups} {side} {limit}" if groups else comparison)

    if name in _RULES:
        comparison, least = _RULES[name]
        msg = f"`{flag}`: {name} is no comparison but a rule: {written(comparison, '<', least)} is that rule."
        raise ArgumentError(msg)
    every = catalogue()
    compared = every.filter(kind="groupwise")
    called = (pl.col("name") == name) | pl.col("aliases").list.contains(name)
    found = every.filter(called, pl.col("kind") != "groupwise")
    if found.is_empty():
        way_out = nearest(name, compared["name"]) or " `tidyfair metrics` lists what there is."
        msg = f"`{flag}`: there is no comparison of groups {name!r}.{way_out}"
        raise ArgumentError(msg)
    offers = [written(f"{name}_difference", ">", _LIMITS[">"])]
    direction = found["direction"].item()
    if direction in {"maximize", "minimize"}:
        # the worst value of a group is a value of the metric, as the limit is
        worst = "group_minimum" if direction == "maximize" else "group_maximum"
        offers.insert(0, written(f"{name}_{worst}", _SIDES[direction], limit))
    msg = f"`{flag}`: {name} compares no groups: write such as {' or '.join(offers)}."
    raise ArgumentError(msg)
