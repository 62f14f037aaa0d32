"""Arrays as a frame: the columns of a call whose data are arrays and tensors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed, nearest
from tidyfair.specs import Column, PredictionInterval, Survival, is_value, plain
from tidyfair.tallies.source import from_arrays

ARRAY = "array of "
"""Prefix of the columns of arrays, which no feature name has."""


def frame_of_arrays(
    roles: Mapping[str, object], by: object, group_by: object, ignore_index: object, compared: Sequence[str] = ()
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Convert the arrays of a call to a frame, and return the arguments that name its columns.

    Rows whose truth is `ignore_index` are left out. Each of the `compared` features needs an array.
    """
    names, arrays = _named(roles)
    features, outer = _by_name("by", by), _by_name("group_by", group_by)
    frame = from_arrays(arrays | features | outer)
    _check_features(compared, [*features, *outer])
    for name in features.keys() & outer.keys():
        if not from_arrays({name: features[name]}).equals(frame.select(name)):
            msg = f"`by` and `group_by` give {name!r} different arrays; give one of them another name."
            raise ArgumentError(msg)
    if ignore_index is not None:
        frame = _without(frame, names.get("truth"), ignore_index)
    return frame, names | {"group_by": None if group_by is None else list(outer)}


def _named(roles: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, object]]:
    """The names of the columns of each role, and the arrays by these names."""
    names: dict[str, Any] = {}
    arrays: dict[str, object] = {}
    for role, values in roles.items():
        if role in {"probs", "estimate"} and isinstance(values, Mapping):
            names[role] = {}
            for label, scores in cast("Mapping[Any, object]", values).items():
                name = f"{ARRAY}{role} of {label!r}"
                names[role][label] = name
                arrays[name] = scores
        elif isinstance(values, Survival):
            times = {"time": values.time, "event": values.event}
            arrays |= _given_arrays("survival.outcome", times)
            named = {own: Column(ARRAY + own) for own in times}
            names[role] = replace(values, **named)
        elif isinstance(values, PredictionInterval):
            ends = {"lower": values.lower, "upper": values.upper}
            arrays |= _given_arrays("prediction_intervals.interval", ends)
            names[role] = replace(values, **{own: Column(ARRAY + own) for own in ends})
        elif values is not None:
            names[role] = ARRAY + role
            arrays[names[role]] = values
    return names, arrays


def _given_arrays(function: str, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arrays that a function was given, by the names of their columns."""
    for name, value in arguments.items():
        if isinstance(value, Column):
            msg = (
                f"`{function}` takes arrays in `.arrays`, but `{name}` is the column {value.name!r}. Give the arrays, "
                "or call the metric with a frame."
            )
            raise ColumnError(msg)
    return {ARRAY + name: array for name, array in arguments.items()}


def _by_name(role: str, features: object) -> dict[str, object]:
    """The arrays of features by their names."""
    if features is None:
        return {}
    if not isinstance(features, Mapping):
        msg = f'`{role}` maps names to arrays, such as `{role}={{"sex": …}}`.'
        raise ArgumentError(msg)
    return dict(cast("Mapping[str, object]", features))


def _check_features(compared: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a comparison of groups whose arrays are missing."""
    missing = [name for name in compared if name not in given]
    if missing:
        way_out = ", ".join(f"{json.dumps(name, ensure_ascii=False)}: …" for name in compared)
        msg = f"`by`: the array of {listed(missing)} is missing; add `by={{{way_out}}}`.{nearest(missing[0], given)}"
        raise ColumnError(msg)


def _without(frame: pl.DataFrame, truth: str | None, value: Any) -> pl.DataFrame:
    """The rows whose truth is not `ignore_index`."""
    if truth is None:
        msg = "`ignore_index` is a value of the truth, but no truth was given."
        raise ArgumentError(msg)
    value = plain(value)
    kind = frame.schema[truth]
    msg = f"`ignore_index` is a value of the truth, which is {kind}, not {in_short(value)}."
    if not is_value(value) or (isinstance(value, bool) and kind != pl.Boolean):
        raise ArgumentError(msg)
    if isinstance(value, float) and value.is_integer() and kind.is_integer():
        value = int(value)  # as floats, large values of the column would be equal to their neighbours
    try:
        return frame.filter(pl.col(truth).ne_missing(pl.lit(value)))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(msg) from error
