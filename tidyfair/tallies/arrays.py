"""Arrays as a frame: the columns of a call whose data are arrays and tensors."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed, nearest
from tidyfair.specs import (
    EXACT,
    Column,
    PredictionInterval,
    Survival,
    is_value,
    largest_integer,
    plain,
    side_by_side,
    text,
)
from tidyfair.tallies.source import check_width, open_frame

ARRAY = "array of "
"""Prefix of the columns of arrays, which no feature name has."""
_NOT_PLAIN = (pl.List, pl.Array, pl.Struct, pl.Object)


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
    return {text("by", name): array for name, array in cast("Mapping[str, object]", features).items()}


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


# Arrays of any kind as columns


def from_arrays(arrays: Mapping[str, object]) -> pl.DataFrame:
    """Arrays, and lists or series, as the columns of a frame."""
    columns = [_from_array(name, values) for name, values in arrays.items()]
    if not columns:
        msg = 'No arrays were given; pass the truth, the estimate or the scores, and groups as `by={"sex": …}`.'
        raise ColumnError(msg)
    rows = columns[0].len()
    for column in columns:
        if isinstance(column.dtype, _NOT_PLAIN):
            msg = f"`{column.name}` must be an array of one plain value per row, not {column.dtype}."
            raise ColumnError(msg)
        if column.len() != rows:
            msg = f"`{column.name}` has {len(column)} values, but `{columns[0].name}` has {rows}."
            raise ColumnError(msg)
    return side_by_side(columns)


def _from_array(name: str, values: Any) -> pl.Series:
    """An array, a list or a series as a column."""
    if isinstance(values, pl.Series):
        return values if values.name == name else values.alias(name)
    own = type(values)  # pyright: ignore[reportUnknownVariableType] - anything
    kind, is_array = own.__module__.partition(".")[0], own is np.ndarray
    if not is_array and isinstance(values, str | bytes | Real | Mapping | AbstractSet):
        msg = f"`{name}` must be an array of one plain value per row, not {values!r}."
        raise ColumnError(msg)
    try:
        if kind == "pandas":
            series = sys.modules["pandas"].Series(values)
            if type(series.dtype).__module__.startswith("numpy") and series.dtype.kind in "biuf":
                return _from_numpy(name, series)
            # as a frame, so that it is read as columns of frames are
            return open_frame(series.to_frame(name)).to_polars()[name]
        if kind == "pyarrow":
            check_width(name, values.type)
            return open_frame(sys.modules["pyarrow"].table({name: values})).to_polars()[name]
        if not is_array and hasattr(values, "mask"):
            return pl.Series(name, values.tolist())
        numeric = is_array or hasattr(values, "__array__") or hasattr(values, "__dlpack__")
        return _from_numpy(name, values) if numeric else _from_list(name, list(values))
    except ColumnError:
        raise
    except Exception as error:
        msg = f"`{name}` cannot be read as an array of plain values: {error}"
        raise ColumnError(msg) from error


def _from_numpy(name: str, values: Any) -> pl.Series:
    """An array that numpy can read, such as a tensor, as a column."""
    array = np.asarray(values) if hasattr(values, "__array__") else np.from_dlpack(values)
    if array.ndim != 1:
        several = ", as `probs={label: array}`" if name.endswith("probs") else ""
        msg = f"`{name}` must be an array of one plain value per row{several}, but has {array.ndim} dimensions."
        raise ColumnError(msg)
    return _from_list(name, array.tolist()) if array.dtype == object else pl.Series(name, array)


def _from_list(name: str, values: list[Any]) -> pl.Series:
    """The values of a list as a column, with exact whole numbers."""
    column = _column_of_one_kind(name, values)
    is_rounded = (isinstance(value, Integral) and int(float(value)) != int(value) for value in values)
    if column.dtype.is_float() and (column.abs() >= EXACT).any() and any(is_rounded):
        msg = (
            f"`{name}` holds floats together with whole numbers that floats cannot represent exactly; convert all "
            "values to one type."
        )
        raise ColumnError(msg)
    return column


def _column_of_one_kind(name: str, values: list[Any]) -> pl.Series:
    """A list as a column, also what polars refuses: very large numbers, and several numeric types."""
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        plain: list[Any] = [value.item() if hasattr(value, "item") else value for value in values]
    has_truth_values = any(isinstance(value, bool) for value in plain)
    if not has_truth_values and all(isinstance(value, Integral) for value in plain):
        return pl.Series(name, plain, dtype=largest_integer(max(plain)))
    with_nulls = [None if isinstance(value, float) and math.isnan(value) else value for value in plain]
    present = [value for value in with_nulls if value is not None]
    if all(isinstance(value, Real) for value in present):
        floats = [None if value is None else float(value) for value in with_nulls]
        return pl.Series(name, floats, dtype=pl.Float64)
    types = sorted({type(value).__name__ for value in present})
    if len(types) > 1:
        msg = f"`{name}` holds values of several types: {', '.join(types)}; convert them to one type."
        raise ColumnError(msg)
    return pl.Series(name, with_nulls)
