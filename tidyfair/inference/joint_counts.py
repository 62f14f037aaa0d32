"""Joint counts of the selections of many models on the same rows, and values of formulas with their covariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import polars as pl

from tidyfair.intervals.shares import values_of_tables
from tidyfair.specs.formulas import Formula
from tidyfair.specs.segments import Array

HALF_ROW = 0.5
"""The rows added to each cell when errors are computed."""
_STEP = 0.25
"""The step of numerical derivatives."""
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class JointCounts:
    """The rows of each group, with and without the event, that two models select, for all pairs of models."""

    both: Array
    """Groups by truth (without, with) by models by models; the diagonal is what one model selects."""
    rows: Array
    """Groups by truth."""

    @classmethod
    def of(cls, rows: pl.DataFrame) -> JointCounts:
        """Count rows, once: the index of their `group`, and whether their `truth` and predictions are the event."""
        truth, group = rows["truth"].to_numpy(), rows["group"].to_numpy().astype(np.int64)
        selected = rows.drop("truth", "group").to_numpy().T
        models = len(selected)
        part = 2 * group + truth
        parts = 2 * (int(group.max()) + 1)
        size = np.bincount(part, minlength=parts)
        order = np.argsort(part, kind="stable")
        both = np.zeros((parts, models, models))
        ends = np.cumsum(size)
        for index, (end, count) in enumerate(zip(ends, size, strict=True)):
            for start in range(end - count, end, _BLOCK):
                # whole numbers below 2**24 are exact in single precision
                block = np.take(selected, order[start : min(start + _BLOCK, end)], axis=1).astype(np.float32)
                both[index] += block @ block.T
        return cls(both.reshape(-1, 2, models, models), size.reshape(-1, 2).astype(float))

    @cached_property
    def cells(self) -> Array:
        """The table of each model in each group: models by groups by `tp`, `fn`, `fp`, `tn`."""
        selected = np.diagonal(self.both, axis1=2, axis2=3)
        fp, tp = selected[:, 0].T, selected[:, 1].T
        return np.stack([tp, self.rows[:, 1] - tp, fp, self.rows[:, 0] - fp], axis=-1)

    def covariance(self, group: int, one: Array, other: Array) -> Array:
        """The sums over rows of products of influences: models of `one` by models of `other`.

        Influences are models by `tp`, `fn`, `fp`, `tn`: what a row of that cell adds to a value.
        """
        total = 0.0
        for truth, (hit, miss) in ((1, (0, 1)), (0, (2, 3))):
            both, rows = self.both[group, truth], self.rows[group, truth]
            selected = both.diagonal()
            # an influence is that of a row that is not selected, and what being selected adds
            first, second = one[:, miss], other[:, miss]
            gain, other_gain = one[:, hit] - first, other[:, hit] - second
            total = total + rows * first[:, None] * second + first[:, None] * (other_gain * selected)
            total = total + (gain * selected)[:, None] * second + gain[:, None] * other_gain * both
        return cast("Array", total)


def influences_of(formula: Formula, cells: Array) -> Array:
    """The change of the values of a formula by one row more in each cell, with half a row more in each."""
    there = cells + HALF_ROW
    influences: list[Array] = []
    for step in np.eye(cells.shape[-1]) * _STEP:
        above, below = (values_of_tables(formula, there + sign * step)[0] for sign in (1, -1))
        influences.append((above - below) / (2 * _STEP))
    return np.stack(influences, axis=-1)
