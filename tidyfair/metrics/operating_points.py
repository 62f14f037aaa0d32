"""Thresholds chosen from the data: where a metric reaches a limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, in_short
from tidyfair.specs import (
    By,
    Column,
    ColumnLike,
    FeatureLike,
    OperatingPoint,
    Policy,
    number,
    refuse_unknown_keywords,
    refuse_unknown_settings,
    with_event,
)
from tidyfair.tallies import checked_weights, open_frame

__all__ = ["ChosenThreshold", "operating_point"]


class ChosenThreshold(OperatingPoint):
    """An operating point that shows its thresholds."""

    @refuse_unknown_settings
    def thresholds_on(
        self, data: Any, truth: ColumnLike, *, probs: ColumnLike, case_weights: ColumnLike | None = None,
        group_by: Iterable[ColumnLike] | ColumnLike | None = None, pos_label: object = None,
    ) -> Any:  # fmt: skip
        """The thresholds that are chosen from data.

        Returns:
            A frame of the caller's kind: the outer keys and the features of `by`, `.metric`, `.threshold` (infinite
            where no row is selected), and `.estimate`, the metric at this threshold.
        """
        source = open_frame(data, group_by)
        keys = {f"k{index}": ("by", column) for index, column in enumerate((*source.outer, *self.by))}
        columns = {"truth": ("truth", Column.of(truth, "truth")), "score": ("probs", Column.of(probs, "probs"))}
        if case_weights is not None:
            columns["weight"] = ("case_weights", Column.of(case_weights, "case_weights"))
        rows = source.read(keys | columns)
        if case_weights is None:
            rows = rows.with_columns(weight=1.0)
        else:
            rows = rows.with_columns(checked_weights(rows["weight"], columns["weight"][1].name))
        chosen = with_event(self, pos_label).thresholds(rows, [*keys])
        # a feature of outer groups is there once
        names = {column.name: key for key, (_, column) in keys.items()}
        values = [pl.lit(self.metric).alias(".metric"), pl.col("threshold").alias(".threshold")]
        groups = [pl.col(key).alias(name) for name, key in names.items()]
        return source.restore(chosen.select(*groups, *values, pl.col("value").alias(".estimate")))


@refuse_unknown_keywords
def operating_point(
    metric: Metric, *, at_most: float | None = None, at_least: float | None = None,
    by: FeatureLike | None = None, on: Any = None, pos_label: object = None,
) -> ChosenThreshold:  # fmt: skip
    """A `threshold=` that is chosen from the data: where a rate is at most, or at least, a limit.

    Args:
        metric: A metric of labels that rises or falls with the threshold, such as `fall_out`, `spec`, `sens` or
            `precision`.
        at_most: The limit from above. Give this one or `at_least`.
        at_least: The limit from below.
        by: A feature, or several as a tuple, whose groups get thresholds of their own.
        on: The frame to choose thresholds on, with the columns of the call, such as the validation sample; by default
            the rows of the call, each outer group for itself.
        pos_label: The event, for text labels, where the call has no `pos_label=`.

    Where the limit allows it, as many events as possible are selected (`fall_out` at most 5%, `precision` at least
    80%), at the highest such threshold; where selecting everyone meets it (`sens` at least 90%), as few rows as
    possible. Intervals of a call choose the threshold anew in each bootstrap sample of the rows, unless `on=` fixes it;
    tests need a fixed one. With `case_weights=` rates are weighted. A limit out of reach is an error.

    >>> from tidyfair import fall_out, sens
    >>> seen = pl.DataFrame({"y": [0, 0, 0, 0, 1, 1], "p": [0.1, 0.2, 0.3, 0.8, 0.7, 0.9]})
    >>> point = operating_point(fall_out, at_most=0.25)
    >>> sens(seen, "y", probs="p", threshold=point)[".estimate"].item()
    1.0
    >>> point.thresholds_on(seen, "y", probs="p").row(0)
    ('fall_out', 0.7, 0.25)
    """
    if not isinstance(metric, Metric):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"operating_point() takes a metric, such as fall_out, not {in_short(metric)}."
        raise ArgumentError(msg)
    if (at_most is None) == (at_least is None):
        msg = "operating_point() takes one limit, `at_most=` or `at_least=`: operating_point(fall_out, at_most=0.05)."
        raise ArgumentError(msg)
    columns: tuple[Column, ...] = ()
    if by is not None:
        groups = By.of((by,), "operating_point", Policy())
        if groups.sides:
            msg = "operating_point(): `by` is a column, or a tuple of columns, not privileged(…)."
            raise ArgumentError(msg)
        groups.refuse_memberships("operating_point()")
        columns = groups.columns
    definition, name = metric.of_kind("class").definition, "at_least" if at_most is None else "at_most"
    limit = number(name, at_least if at_most is None else at_most, *metric.range)
    return ChosenThreshold.of(metric.name, definition, limit, at_most is not None, columns, pos_label, on)
