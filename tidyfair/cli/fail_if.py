"""Conditions such as `equalized_odds(race) > 0.1`: read as gates, never run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Never

import polars as pl

from tidyfair.audits.usual_metrics import Groups
from tidyfair.errors import ArgumentError, ColumnError, nearest
from tidyfair.inference.gates import Gate, check, out_of_range
from tidyfair.metric_sets import metric_set
from tidyfair.metrics.catalog import catalogue, comparison_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.inference.gates import Side
    from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, MetricSet

__all__: list[str] = []

_CONDITION = re.compile(
    r"\s*(?P<name>\w+)\s*(\((?P<by>[^()]+)\))?\s*(?P<side>[<>])\s*(?P<limit>\d*\.?\d+(?:[eE]-?\d+)?)\s*"
)
_SIDES = {"minimize": ">", "zero": ">", "maximize": "<", "one": "<"}
"""The bad side of a limit, by the direction of the comparison."""
_LIMITS = {">": 0.1, "<": 0.8}
"""Limits of examples."""
_RULES = {"four_fifths": ("demographic_parity_ratio", 0.8)}
"""Ready-made gates, with the comparison and the limit that they stand for."""


def gate_of(
    conditions: Sequence[str],
    confidence: float,
    names: Sequence[str],
    features: Sequence[str],
    groups: Groups | None = None,
) -> Gate:
    """The gate that fails where a condition holds.

    Args:
        conditions: Conditions such as `equalized_odds(race) > 0.1`.
        confidence: How sure a verdict must be.
        names: The columns of the data.
        features: The features that are offered where a condition names none.
        groups: The groups that are compared.
    """
    gates: dict[tuple[str, str], Gate] = {}
    for condition in conditions:
        metric, side, limit = _read(condition, names, features)
        metric = (groups or Groups()).limited(metric)
        key = (metric.name, metric.by.text)
        if key in gates:
            msg = f"`fail_if`: {condition!r} is a second limit of {metric.name}({metric.by.text}); give one."
            raise ArgumentError(msg)
        _check_limit(condition, metric, side, limit)
        allowed: dict[str, Any] = {"below": limit} if side == ">" else {"above": limit}
        gates[key] = check(metric, **allowed, confidence=confidence)
    metrics: list[MetricSet] = []
    limits: list[tuple[Side, float]] = []
    for gate in gates.values():
        metrics.append(gate.metrics)
        limits += gate.limits
    return Gate(metric_set(*metrics), tuple(limits), confidence)


def _check_limit(condition: str, metric: GroupwiseMetric, side: str, limit: float) -> None:
    """Refuse a limit on the good side, or outside the range of the metric."""
    if side != _SIDES[metric.direction]:
        wanted = "large" if side == ">" else "small"
        msg = f"`fail_if`: {metric.name} should be {wanted}: write {_SIDES[metric.direction]} in {condition!r}."
        raise ArgumentError(msg)

    def corrected(meant: float) -> str:
        return repr(f"{metric.name}({metric.by.text}) {side} {meant:g}")

    if problem := out_of_range(metric, limit, corrected):
        msg = f"`fail_if`: {condition!r}: {problem}"
        raise ArgumentError(msg)


def columns_of(text: str, names: Sequence[str], role: str) -> tuple[str, ...]:
    """The columns of a feature; a colon is part of a name if there is such a column."""
    columns = (text,)
    if text not in names:
        columns = tuple(map(str.strip, re.split("[:,]", text)))
    for column in columns:
        if column not in names:
            raise ColumnError.missing(column, role, names)
    return columns


def comparison_of(name: str, flag: str, groups: str = "", limit: str = "") -> GroupwiseFactory:
    """The comparison of groups of that name; `groups` and `limit` of a condition are used in messages.

    Raises:
        ArgumentError: For a name that is no comparison, and for a comparison of two sides.
    """
    factory = comparison_named(name)
    if factory is None:
        _offer(name, flag, groups, limit)
    if factory.typical.by.sides is not None:
        msg = f"`{flag}`: {name} compares two sides, which the command line has no words for."
        raise ArgumentError(msg)
    return factory


def _read(condition: str, names: Sequence[str], features: Sequence[str]) -> tuple[GroupwiseMetric, str, float]:
    """The comparison of a condition, the side of the limit on which it fails, and the limit."""
    match = _CONDITION.fullmatch(condition)
    if match is None:
        example = "'equalized_odds(race) > 0.1', with < or > and a number"
        msg = f"`fail_if`: {condition!r} is no condition such as {example}."
        raise ArgumentError(msg)
    name, by, side, limit = match.group("name", "by", "side", "limit")
    groups = f"({by or features[0]})"
    factory = comparison_of(name, "fail_if", groups, limit)
    if by is None:
        msg = f"`fail_if`: {condition!r} does not say which groups are compared: write '{name}{groups} {side} {limit}'."
        raise ArgumentError(msg)
    columns = columns_of(by.strip(), names, f"--fail-if {condition!r}")
    return factory(*columns), side, float(limit)


def _offer(name: str, flag: str, groups: str, limit: str) -> Never:
    """Raise the error for a name that is no comparison, with the comparisons of that metric."""

    def written(comparison: str, side: str, limit: object) -> str:
        return repr(f"{comparison}{groups} {side} {limit}" if groups else comparison)

    if name in _RULES:
        comparison, least = _RULES[name]
        msg = f"`{flag}`: {name} is no comparison but a rule: {written(comparison, '<', least)} is that rule."
        raise ArgumentError(msg)
    every = catalogue()
    is_comparison = pl.col("kind") == "groupwise"
    has_name = (pl.col("name") == name) | pl.col("aliases").list.contains(name)
    matches = every.filter(has_name & ~is_comparison)
    if matches.is_empty():
        way_out = nearest(name, every.filter(is_comparison)["name"]) or " `tidyfair metrics` lists what there is."
        msg = f"`{flag}`: there is no comparison of groups {name!r}.{way_out}"
        raise ArgumentError(msg)
    offers = [written(f"{name}_difference", ">", _LIMITS[">"])]
    direction = matches["direction"].item()
    if direction in {"maximize", "minimize"}:
        # the worst value of a group is a value of the metric, as the limit is
        worst = "group_minimum" if direction == "maximize" else "group_maximum"
        offers.insert(0, written(f"{name}_{worst}", _SIDES[direction], limit))
    msg = f"`{flag}`: {name} compares no groups: write such as {' or '.join(offers)}."
    raise ArgumentError(msg)
