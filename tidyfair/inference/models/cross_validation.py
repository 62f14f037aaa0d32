"""Metrics over resamples: folds are stacked, summarized, and compared between models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed, nearest
from tidyfair.specs import GROUP_KEYS, RESERVED, Frame, flag, is_list, refuse_unknown_settings, stacked, text
from tidyfair.specs.result_kinds import RESAMPLES, SUMMARIES
from tidyfair.tallies import Source, alike, open_frame

__all__ = ["compare_resamples", "resamples", "summarize"]

_ROW_KEYS = frozenset(GROUP_KEYS) - {".level"} | {".estimator"}
"""The columns of results that identify a row, besides outer groups."""


@refuse_unknown_settings
def resamples(parts: Iterable[tuple[Any, Any]], data: Any = None, *, name: str = "fold") -> Frame:
    """Stack resamples into one frame, for evaluation with `group_by="fold"`.

    Args:
        parts: Pairs of a name and a frame of its rows; or, with `data`, pairs of the indices of training and test rows
            from scikit-learn's `split`, of which the test rows are kept and numbered.
        data: The frame that is split.
        name: Name of the column that identifies resamples.

    Returns:
        A frame of the kind of `data`, or of the first part.

    Raises:
        ArgumentError, ColumnError: If parts are not pairs, names are repeated, indices are out of range, or frames have
            different columns or a column called `name`.

    >>> halves = resamples([("a", pl.DataFrame({"y": [1]})), ("b", pl.DataFrame({"y": [0]}))])
    >>> halves.rows()
    [('a', 1), ('b', 0)]
    """
    text("name", name)
    labels, frames, source = _parts(parts, data)
    kinds: set[type] = set(map(type, labels))
    if len(kinds) > 1 or not kinds <= {str, int, float, bool} or len(set(labels)) < len(labels):
        msg = f"Resamples need distinct names, either all text or all numbers, not {listed(labels)}."
        raise ArgumentError(msg)
    columns = frames[0].columns
    if name in columns:
        msg = f"The frames already have a column {name!r}; give the column of resamples another name with `name=`."
        raise ColumnError(msg)
    labelled: list[pl.DataFrame] = []
    for label, frame in zip(labels, frames, strict=True):
        if odd := set(columns) ^ set(frame.columns):
            msg = f"The resamples {label!r} and {labels[0]!r} have different columns: {listed(sorted(odd))}."
            raise ColumnError(msg)
        labelled.append(frame.select(pl.lit(label).alias(name), *columns))
    for column in columns:
        # a column that is null everywhere fits any other
        types = [(label, frame.schema[column]) for label, frame in zip(labels, frames, strict=True)]
        with_values = [(label, kind) for label, kind in types if kind != pl.Null]
        for label, kind in with_values:
            first, kind_of_first = with_values[0]
            if not alike(kind_of_first, kind):
                msg = f"The column {column!r} is {kind_of_first} in the resample {first!r} and {kind} in {label!r}."
                raise ColumnError(msg)
    return source.restore(stacked(labelled, dict(zip(columns, columns, strict=True))))


def _parts(parts: object, data: object) -> tuple[list[Any], list[pl.DataFrame], Source]:
    """The names and frames of resamples, and the source whose kind the result has."""
    items: list[Any] = list(parts) if is_list(parts) else []
    if not items:
        msg = "`parts` is empty; give pairs of a name and a frame, or splits of `data`."
        raise ArgumentError(msg)
    for item in items:
        if not isinstance(item, tuple | list) or len(cast("Sequence[Any]", item)) != 2:
            msg = "`parts` must be pairs of a name and a frame or, with `data`, pairs of training and test rows."
            raise ArgumentError(msg)
    if data is None:
        sources = [_ungrouped(frame) for _, frame in items]
        return [label for label, _ in items], [source.to_polars() for source in sources], sources[0]
    source = _ungrouped(data)
    rows = source.to_polars()
    return list(range(len(items))), [rows[_test_rows(test, len(rows))] for _, test in items], source


def _ungrouped(frame: object) -> Source:
    """The opened frame, which must not be grouped."""
    source = open_frame(frame)
    if source.outer:
        msg = "resamples() does not accept grouped frames; group its result instead."
        raise ArgumentError(msg)
    return source


def _test_rows(test: object, rows: int) -> pl.Series:
    """The indices of test rows, which may also be given as a mask of all rows."""
    try:
        index = np.asarray(test)
    except ValueError:
        index = np.asarray(object())  # refused below, as an array of no dimension
    if index.dtype == bool and index.shape == (rows,):
        index = np.flatnonzero(index)
    is_whole = index.size == 0 or np.issubdtype(index.dtype, np.integer)
    if index.ndim != 1 or not is_whole or (index.size and not 0 <= index.min() <= index.max() < rows):
        msg = f"Test rows must be numbers from 0 to {rows - 1}, or a mask of {rows} Booleans, not {in_short(test)}."
        raise ArgumentError(msg)
    return pl.Series(index.astype(np.int64))


@refuse_unknown_settings
def summarize(result: Any, over: str | Sequence[str] | None = None, *, corrected: bool = False) -> Frame:
    """Mean, number and standard error of each metric over resamples.

    Args:
        result: The result of a metric set, or of its `by_group`, for grouped data.
        over: The outer groups that identify resamples; by default all. Other groups are summarized separately.
        corrected: Correct the standard error for the shared training rows of a cross-validation (Nadeau and Bengio,
            2003). This is an approximation; evaluation of all rows together, with `interval="auto"`, needs none.

    Returns:
        A frame of the caller's kind with one row for each metric (and other outer group): the columns that identify it,
        `.mean`, `.n` (resamples with a value) and `.std_error` (null for fewer than two), which assumes independent
        resamples unless `corrected`.

    >>> scores = pl.DataFrame({"fold": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
    >>> summarize(scores).rows()
    [('rmse', 2.0, 2, 1.0)]
    """
    source, frame = _result(result, "result")
    _, kept = _keys(frame, over, "result")
    return source.restore(SUMMARIES.frame(_summary(frame, kept, pl.col(".estimate"), ".mean", corrected=corrected)))


@refuse_unknown_settings
def compare_resamples(
    one: Any, other: Any, over: str | Sequence[str] | None = None, *, corrected: bool = False
) -> Frame:
    """Mean difference of each metric between `other` and `one`, resample by resample.

    Args:
        one: The result of a metric set for the first model, for grouped data.
        other: The same for the second model, over the same resamples.
        over: The outer groups that identify resamples; by default all.
        corrected: As for `summarize`.

    Returns:
        A frame of the caller's kind, with `.difference` (the mean of the differences), `.n` (resamples in which both
        have a value) and `.std_error`.

    Raises:
        ArgumentError: If the two results have different metrics or resamples.

    >>> before = pl.DataFrame({"fold": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
    >>> after = before.with_columns(pl.col(".estimate") - 1)
    >>> compare_resamples(before, after).rows()
    [('rmse', -1.0, 2, 0.0)]
    """
    (source, first), (_, second) = _result(one, "one"), _result(other, "other")
    chosen, kept = _keys(first, over, "one")
    chosen_of_second, kept_of_second = _keys(second, over, "other")
    by = [*chosen, *kept]
    have_same_keys = {*by} == {*chosen_of_second, *kept_of_second}
    can_be_paired = have_same_keys and all(alike(first.schema[name], second.schema[name]) for name in by)
    pairs = None
    if can_be_paired:
        keys = stacked([first.select(by), second.select(by)], dict(zip(by, by, strict=True)))
        values = keys[len(first) :].with_columns(second[".estimate"].alias("\0other"))
        first = first.with_columns(keys[: len(first)].get_columns())
        pairs = first.join(values, on=by, how="inner", nulls_equal=True, maintain_order="left")
    if pairs is None or not len(pairs) == len(first) == len(second):
        msg = "The two results have no metrics and resamples in common; evaluate both models on the same resamples."
        raise ArgumentError(msg)
    change = (pl.col("\0other") - pl.col(".estimate")).fill_nan(None)
    return source.restore(RESAMPLES.frame(_summary(pairs, kept, change, ".difference", corrected=corrected)))


def _result(result: object, role: str) -> tuple[Source, pl.DataFrame]:
    """The opened result of metrics, and its rows, with NaN as null."""
    source = _ungrouped(result)
    frame = source.to_polars()
    if missing := [name for name in (".metric", ".estimate") if name not in frame.columns]:
        msg = f"`{role}` is not a result of metrics: it has no column {listed(missing)}."
        raise ColumnError(msg)
    kind = frame.schema[".estimate"]
    if not (kind.is_numeric() or kind == pl.Null):
        msg = f"`{role}` is not a result of metrics: `.estimate` is {kind}."
        raise ColumnError(msg)
    return source, frame.with_columns(pl.col(".estimate").cast(pl.Float64).fill_nan(None))


def _keys(frame: pl.DataFrame, over: object, role: str) -> tuple[list[str], list[str]]:
    """The columns that number the resamples, and those that are kept apart."""
    outer = [column for column in frame.columns if column not in RESERVED]
    chosen: list[Any] = outer
    if over is not None:
        chosen = list(over) if is_list(over) else [over]
        if unknown := [column for column in chosen if not isinstance(column, str) or column not in outer]:
            close = nearest(unknown[0], outer)
            msg = f"`over`: {unknown[0]!r} is not an outer group of `{role}`.{close} Outer groups: {listed(outer)}."
            raise ColumnError(msg)
        if len(set(chosen)) < len(chosen):
            msg = f"`over` must list distinct outer groups, not {listed(chosen)}."
            raise ArgumentError(msg)
    if not chosen:
        msg = "The result has no outer groups to summarise over; evaluate with `group_by=` first."
        raise ArgumentError(msg)
    row_keys = {*_ROW_KEYS, *outer} - set(chosen)
    if ".group" in frame.columns:
        # a label identifies a value of a group; of a comparison it is part of the answer
        row_keys.add(".level")
    kept = [column for column in frame.columns if column in row_keys]
    if frame.select(*chosen, *kept).is_duplicated().any():
        msg = f"`{role}` has several values of the same metric and resample; remove the duplicates."
        raise ArgumentError(msg)
    return chosen, kept


def _summary(frame: pl.DataFrame, kept: list[str], value: pl.Expr, name: str, *, corrected: bool) -> pl.DataFrame:
    """The mean of a value over resamples, their number and the standard error, for each of the rest of the keys."""
    flag("corrected", corrected)
    count = value.count()
    # with k folds, a model is tested on one part and trained on the k - 1 others
    shared = (1 + count / (count - 1)).sqrt() if corrected else 1
    error = pl.when(count >= 2).then(value.std() / count.sqrt() * shared).fill_nan(None)
    return frame.group_by(kept, maintain_order=True).agg(
        value.mean().fill_nan(None).alias(name), count.cast(pl.Int64).alias(".n"), error.alias(".std_error")
    )
