"""Operating points: thresholds chosen from scores and labels, where a metric reaches a limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, LabelError, listed
from tidyfair.specs.columns import Column
from tidyfair.specs.formulas import Formula, LabelSums
from tidyfair.specs.segments import Array, Floats, Integers

_SLACK = 1e-9
"""Tolerance for a share of rows to reach a limit."""
_TRIED = {"tp": (1, 30, 60, 80, 95, 99), "fp": (0.01, 2, 8, 25, 60, 90)}
"""A hundred rows with the event and as many without it, of which better scores select more and more."""
_PAIRS = ({False, True}, {0, 1}, {-1, 1})
"""Labels of which the larger one is the event."""


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold that is chosen from the data; made by `operating_point`."""

    metric: str
    formula: LabelSums
    limit: float
    is_at_most: bool
    by: tuple[Column, ...] = ()
    """The features whose groups have thresholds of their own."""
    pos_label: object = None
    on: Any = field(default=None, compare=False)
    """The frame that thresholds are chosen on, if it is not that of the call."""

    @classmethod
    def of(cls, metric: str, formula: Formula, *settings: Any) -> Self:
        """The operating point of a metric, which must rise or fall as the threshold falls."""
        if isinstance(formula, LabelSums) and not (formula.over_levels or formula.all_terms or formula.compares):
            point = cls(metric, formula, *settings)
            if point._direction != 0:
                return point
        msg = (
            f"operating_point(): {metric} does not rise or fall with the threshold: take a rate, such as sens, spec, "
            "fall_out, precision, npv or selection_rate."
        )
        raise ArgumentError(msg)

    @cached_property
    def _direction(self) -> int:
        """1 if the metric rises as more rows are selected, -1 if it falls, 0 if neither."""
        tp, fp = (np.array(_TRIED[name], dtype=float)[None] for name in ("tp", "fp"))
        steps = np.diff(self._values(tp, fp, tp * 0 + 100, tp * 0 + 100)[0])
        return 1 if (steps > 0).all() else -1 if (steps < 0).all() else 0

    @property
    def selects_most(self) -> bool:
        """True if as many rows as possible are selected, because each further one brings the metric to its limit."""
        return (self._direction > 0) == self.is_at_most

    def _values(self, tp: Floats, fp: Floats, positives: Floats, negatives: Floats) -> Floats:
        """The metric for some numbers of selected rows with and without the event; nan where undefined."""
        fn, tn = positives - tp, negatives - fp
        counts = {
            "tp": tp, "fp": fp, "fn": fn, "tn": tn, "positives": positives, "negatives": negatives,
            "selected": tp + fp, "unselected": fn + tn, "instances": positives + negatives,
        }  # fmt: skip
        return self.formula.on_sums(counts)[0]

    def selected(self, score: Floats, hits: Floats, false_alarms: Floats) -> tuple[Integers, Floats]:
        """The number of rows to select, and the metric then: one of each for each replicate.

        A threshold selects all rows of a score. Of thresholds that select the same events the highest is chosen. Where
        none reaches the limit, the metric is as near as it can be.

        Args:
            score: The scores of rows, falling.
            hits: The weights of rows with the event, 0 for others: replicates by rows.
            false_alarms: The same of rows without the event.
        """
        ends = np.concatenate([[0], np.flatnonzero(np.append(score[1:] < score[:-1], [True] * (len(score) > 0))) + 1])
        tp, fp = (_cumulated(weights)[:, ends] for weights in (hits, false_alarms))
        values = self._values(tp, fp, np.broadcast_to(tp[:, -1:], tp.shape), np.broadcast_to(fp[:, -1:], fp.shape))
        sign = 1 if self.is_at_most else -1
        with np.errstate(invalid="ignore"):
            beyond = np.nan_to_num(sign * (values - self.limit), nan=np.inf)
        reaches = beyond <= _SLACK
        selected: Array = np.broadcast_to(np.arange(len(ends)), tp.shape)
        preferred = (tp if "truth" in self.formula.reads else selected) if self.selects_most else -selected
        index: Array = np.where(reaches, preferred, -np.inf).argmax(axis=1)
        best: Array = np.where(reaches.any(axis=1), index, beyond.argmin(axis=1))
        return ends[best], values[np.arange(len(values)), best]

    def thresholds(self, rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
        """For each group by some keys: these, its `threshold`, and the `value` of the metric there.

        The rows have the columns `truth`, `score` and `weight`. Groups where the limit is out of reach are an error.
        """
        kind = rows["score"].dtype
        if not (kind.is_numeric() or isinstance(kind, pl.Boolean | pl.Null)):
            msg = f"`probs`: {self!r} takes scores, which are numbers, and the column is {kind}."
            raise ColumnError(msg)
        if kind.is_float() and rows["score"].is_infinite().any():
            msg = f"`probs`: {self!r} takes finite scores, because rows of infinite ones are above every threshold."
            raise ColumnError(msg)
        known = rows.filter(pl.col("truth").is_not_null() & pl.col("score").is_not_null())
        known = known.with_columns(event=self.is_event(known["truth"]), score=pl.col("score").cast(pl.Float64))
        known = known.sort("score", descending=True)
        parts: dict[Any, pl.DataFrame] = known.partition_by(keys, as_dict=True) if keys else {(): known}
        groups = rows.select(keys).unique().sort(keys, nulls_last=True) if keys else pl.DataFrame()
        thresholds: list[float] = []
        values: list[float] = []
        for group in groups.rows() if keys else [()]:
            own = parts.get(group, known.clear())
            score, weight, event = (own[name].to_numpy() for name in ("score", "weight", "event"))
            count, value = self.selected(score, (weight * event)[None], (weight * ~event)[None])
            beyond = (1 if self.is_at_most else -1) * (value[0] - self.limit)
            if not beyond <= _SLACK:
                where = f" in the group {listed(group)}" if keys else ""
                reached = "is undefined" if np.isnan(value[0]) else f"is {value[0]:.3g} at the nearest"
                msg = f"`threshold`: {self!r} is out of reach{where}, where {self.metric} {reached}."
                raise ArgumentError(msg)
            thresholds.append(float(score[count[0] - 1]) if count[0] else np.inf)
            values.append(float(value[0]))
        chosen = pl.DataFrame(
            {"threshold": thresholds, "value": values}, {"threshold": pl.Float64, "value": pl.Float64}
        )
        return groups.hstack(chosen) if keys else chosen

    def is_event(self, truth: pl.Series) -> pl.Series:
        """The mask of the rows with the event; of labels other than Boolean, 0/1 or -1/1 it must have been named."""
        if self.pos_label is not None:
            try:
                return truth == self.pos_label
            except TypeError as error:
                msg = f"`threshold`: {self!r} has the `pos_label` {self.pos_label!r}, and the truth is {truth.dtype}."
                raise LabelError(msg) from error
        present = {*truth.unique().drop_nulls().to_list()}
        for pair in _PAIRS:
            if present <= pair:
                return truth.cast(pl.Int64) == max(pair)
        labels = listed(sorted(present, key=str))
        msg = f"`threshold`: {self!r} needs to know which of {labels} is the event: give it `pos_label=`."
        raise LabelError(msg)

    def __repr__(self) -> str:
        by = f", by={[column.name for column in self.by]}" if self.by else ""
        sample = ", on another sample" if self.on is not None else ""
        return f"operating_point({self.metric}, at_{'most' if self.is_at_most else 'least'}={self.limit:g}{by}{sample})"


def with_event(threshold: Any, pos_label: object) -> Any:
    """A threshold that is chosen for the event of a call, unless it names its own; any other as it is."""
    if not isinstance(threshold, OperatingPoint) or threshold.pos_label is not None or pos_label is None:
        return threshold
    return replace(threshold, pos_label=pos_label)


def _cumulated(weights: Floats) -> Floats:
    """The sums of the first rows, from none to all: replicates by one more than rows."""
    return np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights, axis=1)], axis=1)
