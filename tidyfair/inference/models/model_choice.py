"""The choice among models: what the change of a metric shows beside a margin, also for several models at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.calling import MetricSet
from tidyfair.errors import ArgumentError, ColumnError, in_short, listed, nearest
from tidyfair.specs import Array, Booleans, Column, is_list, number

BETTER, WORSE, NOT_WORSE, EQUIVALENT = "better", "worse", "not worse", "equivalent"
DIFFERENT, NOT_SHOWN = "different", "not shown"
"""The verdicts on a change; `different` is for metrics without a better value."""
_SIGNS = {"maximize": 1.0, "minimize": -1.0}
"""The signs of gains; other metrics have no better value, or one in between."""
_ROW, _OF_ALL = "\0row", "\0of_all"


def margins_of(margin: object, metrics: MetricSet) -> tuple[float, ...] | None:
    """The margin of each metric: one number for all, or by the names of metrics; none is 0."""
    if margin is None:
        return None
    names = [metric.name for metric in metrics]
    if not isinstance(margin, Mapping):
        return (number("margin", margin, 0),) * len(names)
    of_names = cast("Mapping[object, object]", margin)
    for name in of_names:
        if name not in names:
            msg = f"`margin`: no metric is called {name!r}.{nearest(name, names)} There are {listed(names)}."
            raise ArgumentError(msg)
    return tuple(number("margin", of_names.get(name, 0), 0) for name in names)


def name_of(model: object) -> str | None:
    """The name of a model by its column of predictions; None of several columns."""
    return Column.of(model, "one").name if isinstance(model, str | pl.Expr) else None


def named_models(one: object, other: object, others: object) -> dict[str | None, Any]:
    """The models that the first one is compared with, by their names: `other`, or each of `others`."""
    if (other is None) == (others is None):
        msg = "compare_models() compares `one=` with `other=`, one model, or with `others=`, several."
        raise ArgumentError(msg)
    if others is None:
        return {name_of(other): other}
    if isinstance(others, Mapping):
        models: dict[str | None, Any] = {}
        for name, model in cast("Mapping[object, Any]", others).items():
            if not isinstance(name, str):
                msg = f"`others`: the name of a model is text, not {in_short(name)}."
                raise ArgumentError(msg)
            models[name] = model
    elif is_list(others) and not isinstance(others, str):
        predictions = list(cast("Sequence[Any]", others))
        names = [Column.of(prediction, "others").name for prediction in predictions]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"`others`: {listed(twice)} is given more than once; name expressions with `.alias(…)`."
            raise ArgumentError(msg)
        models = dict(zip(names, predictions, strict=True))
    else:
        msg = f"`others` is a list of columns of predictions, or a mapping from names to them, not {in_short(others)}."
        raise ArgumentError(msg)
    if not models:
        msg = "`others` names no model; give one column of predictions or more."
        raise ArgumentError(msg)
    if (first := name_of(one)) in models:
        msg = (
            f"`others`: {first!r} is the model that others are compared with; leave it out, or name another one with "
            "`.alias(…)`."
        )
        raise ColumnError(msg)
    return models


def gains(values: Array, better: str) -> Array:
    """Values turned round where smaller ones are better, or distances from 0 or 1 where these are best."""
    sides = {"maximize": values, "minimize": -values, "zero": -abs(values), "one": -abs(values - 1)}
    return sides.get(better, np.zeros_like(values))


def is_on_frontier(performance: Array, disparity: Array) -> Booleans:
    """Mask of the models that no other is better than in one of two gains and as good as in the other."""
    one, other = performance[:, None], disparity[:, None]
    beats = (one >= performance) & (other >= disparity) & ((one > performance) | (other > disparity))
    return ~beats.any(axis=0) & np.isfinite(performance + disparity)


def with_frontier(results: pl.DataFrame, metrics: MetricSet, outer: Sequence[str]) -> pl.DataFrame:
    """Results of several models, of which each disparity says if no model is better beside the performance.

    The performance is the first metric of all rows that has a better value. The model that others are compared with
    is one of them.
    """
    better = {(metric.name, metric.by and metric.by.text): metric.better for metric in metrics}
    performance = next((name for (name, by), side in better.items() if by is None and side in _SIGNS), None)
    if performance is None:
        return results.with_columns(pl.lit(None, pl.Boolean).alias(".on_frontier"))
    is_performance = (pl.col(".metric") == performance) & pl.col(".by").is_null()
    keys = [*outer, ".model_other"]
    values = results.filter(is_performance).select(*keys, pl.col(".one", ".other").name.suffix(_OF_ALL))
    numbered = results.with_row_index(_ROW).join(values, on=keys, how="left", nulls_equal=True).sort(_ROW)
    tables: list[pl.DataFrame] = []
    for rows in numbered.partition_by(*outer, ".metric", ".by", maintain_order=True):
        metric, by = rows[0, ".metric"], rows[0, ".by"]
        front = pl.lit(None, pl.Boolean)
        if by is not None:
            of_all, of_groups = (
                gains(np.append(rows[f".one{suffix}"][:1], rows[f".other{suffix}"]).astype(float), better[key])
                for suffix, key in ((_OF_ALL, (performance, None)), ("", (metric, by)))
            )
            front = pl.Series(is_on_frontier(of_all, of_groups)[1:])
        tables.append(rows.with_columns(front.alias(".on_frontier")))
    return pl.concat(tables).sort(_ROW).drop(_ROW, f".one{_OF_ALL}", f".other{_OF_ALL}")


def with_verdicts(results: pl.DataFrame, metrics: MetricSet, margins: Sequence[float] | None) -> pl.DataFrame:
    """Results with the margin of each metric, and what the limits of its change show; metrics one after the other."""
    facts = pl.DataFrame(
        {
            ".metric": [metric.name for metric in metrics],
            ".by": [metric.by.text if metric.by else None for metric in metrics],
            ".margin": margins or (0.0,) * len(metrics),
            # smaller values are better where metrics are minimized; others have no better value
            "\0sign": [_SIGNS.get(metric.better) for metric in metrics],
        },
        schema={".metric": pl.String, ".by": pl.String, ".margin": pl.Float64, "\0sign": pl.Float64},
    ).with_row_index("\0order")
    known = results.join(facts, on=[".metric", ".by"], how="left", nulls_equal=True, maintain_order="left")
    known = known.sort("\0order", maintain_order=True)
    lower, upper, margin, sign = (pl.col(name) for name in (".lower", ".upper", ".margin", "\0sign"))
    least_gain = pl.when(sign > 0).then(lower).otherwise(-upper)
    most_gain = pl.when(sign > 0).then(upper).otherwise(-lower)
    verdict = (
        pl.when(lower.is_null() | upper.is_null()).then(None)
        .when((lower > -margin) & (upper < margin)).then(pl.lit(EQUIVALENT))
        .when(sign.is_null() & ((lower > 0) | (upper < 0))).then(pl.lit(DIFFERENT))
        .when(sign.is_null()).then(pl.lit(NOT_SHOWN))
        .when(least_gain > 0).then(pl.lit(BETTER))
        .when(most_gain < 0).then(pl.lit(WORSE))
        .when((margin > 0) & (least_gain > -margin)).then(pl.lit(NOT_WORSE))
        .otherwise(pl.lit(NOT_SHOWN))
    )  # fmt: skip
    return known.with_columns(verdict.alias(".verdict")).drop("\0order", "\0sign")
