"""Metrics over resamples: folds put together, summarised, and compared between models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["compare_resamples", "resamples", "summarize"]

_PAIR = 2
_ABOUT = (".metric", ".by", ".estimator", ".threshold", ".top_k", ".top_fraction")


def resamples(parts: Iterable[tuple[Any, Any]], data: Any = None, *, name: str = "fold") -> pl.DataFrame:
    """Put resamples together as one frame, to be evaluated with `group_by="fold"`.

    Args:
        parts: Pairs of a name and a frame of its rows; or, with `data`, pairs of the places of training and test rows
            as scikit-learn's `split` gives them, of which the test rows are kept, and numbered.
        data: The frame that splits are of.
        name: What the column of names is called.

    Raises:
        ArgumentError, ColumnError: For what is no pair, and where the frames have a column of that name.

    >>> halves = resamples([("a", pl.DataFrame({"y": [1]})), ("b", pl.DataFrame({"y": [0]}))])
    >>> halves.rows()
    [('a', 1), ('b', 0)]
    """
    whole = None if data is None else open_frame(data).to_polars()
    found = list[pl.DataFrame]()
    for number, part in enumerate(parts):
        first, second = _pair(part)
        rows = open_frame(second).to_polars() if whole is None else whole[pl.Series(second)]
        if name in rows.columns:
            msg = f"The frames have a column {name!r}; give the column of resamples another name, `name=`."
            raise ColumnError(msg)
        label = first if whole is None else number
        found.append(rows.select(pl.lit(label).alias(name), pl.all()))
    if not found:
        msg = "There are no resamples."
        raise ArgumentError(msg)
    return pl.concat(found, how="vertical_relaxed")


def _pair(part: object) -> tuple[Any, Any]:
    several = isinstance(part, tuple | list)
    pair = list(cast("Iterable[Any]", part)) if several else []
    if len(pair) != _PAIR:
        msg = "`parts` are pairs: of a name and a frame, or, with `data`, of training and test rows."
        raise ArgumentError(msg)
    return pair[0], pair[1]


def _result(result: Any, role: str) -> pl.DataFrame:
    frame = open_frame(result).to_polars()
    if missing := [name for name in (".metric", ".estimate") if name not in frame.columns]:
        msg = f"`{role}` is no result of metrics: it has no column {listed(missing)}."
        raise ColumnError(msg)
    return frame


def _keys(frame: pl.DataFrame, over: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The columns that number the resamples, and those that are kept apart."""
    outer = [column for column in frame.columns if not column.startswith(".")]
    chosen = outer if over is None else [over] if isinstance(over, str) else list(over)
    if unknown := [column for column in chosen if column not in outer]:
        raise ColumnError.missing(unknown[0], "over", outer)
    if not chosen:
        msg = "The result has no outer groups to summarise over; evaluate with `group_by=` first."
        raise ArgumentError(msg)
    about = [column for column in _ABOUT if column in frame.columns]
    return chosen, [*(column for column in outer if column not in chosen), *about]


def summarize(result: Any, over: str | Sequence[str] | None = None) -> Any:
    """Mean, number and standard error of each metric over resamples.

    Args:
        result: What a metric set gave for grouped data.
        over: The outer groups that are resamples; all of them unless given. Others are kept apart.

    Returns:
        A frame of the caller's kind with one row for each metric (and other outer group): what the result says it is
        about, `.mean`, `.n` (resamples that have a value) and `.std_error` (null of fewer than two). The error takes
        resamples for independent, which folds of one data set are not.

    >>> scores = pl.DataFrame({"fold": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
    >>> summarize(scores).rows()
    [('rmse', 2.0, 2, 1.0)]
    """
    frame = _result(result, "result")
    _, kept = _keys(frame, over)
    return open_frame(result).restore(_summary(frame, kept, pl.col(".estimate"), ".mean"))


def _summary(frame: pl.DataFrame, kept: list[str], value: pl.Expr, name: str) -> pl.DataFrame:
    count = value.count()
    error = pl.when(count >= _PAIR).then(value.std() / count.sqrt())
    return frame.group_by(kept, maintain_order=True).agg(
        value.mean().alias(name), count.cast(pl.Int64).alias(".n"), error.alias(".std_error")
    )


def compare_resamples(one: Any, other: Any, over: str | Sequence[str] | None = None) -> Any:
    """How much larger each metric is in `other` than in `one`, resample by resample.

    Args:
        one: What a metric set gave for the first model, for grouped data.
        other: The same for the second model, over the same resamples.
        over: The outer groups that are resamples; all of them unless given.

    Returns:
        A frame of the caller's kind, with `.difference` (the mean of the differences), `.n` (resamples in which both
        have a value) and `.std_error`.

    Raises:
        ArgumentError: If the two are not of the same metrics and resamples.

    >>> before = pl.DataFrame({"fold": [1, 2], ".metric": ["rmse"] * 2, ".estimate": [1.0, 3.0]})
    >>> after = before.with_columns(pl.col(".estimate") - 1)
    >>> compare_resamples(before, after).rows()
    [('rmse', -1.0, 2, 0.0)]
    """
    first, second = _result(one, "one"), _result(other, "other")
    chosen, kept = _keys(first, over)
    by = [*chosen, *kept]
    if set(by) - set(second.columns) or not _same_rows(first, second, by):
        msg = "The two results are not of the same metrics and resamples, so there are no pairs to compare."
        raise ArgumentError(msg)
    values = second.select(*by, pl.col(".estimate").alias("\0other"))
    pairs = first.join(values, on=by, how="left", nulls_equal=True, maintain_order="left")
    change = pl.col("\0other") - pl.col(".estimate")
    return open_frame(one).restore(_summary(pairs, kept, change, ".difference"))


def _same_rows(one: pl.DataFrame, other: pl.DataFrame, by: list[str]) -> bool:
    there = [frame.select(by).unique() for frame in (one, other)]
    same = len(there[0]) == len(one) == len(other) == len(there[1])
    return same and there[0].join(there[1], on=by, how="anti", nulls_equal=True).is_empty()
