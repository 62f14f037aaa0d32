"""Cumulative sums of metrics up to each of many looks, for monitors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.confidence_sequences import Totals
from tidyfair.inference.periods import check_periods
from tidyfair.inference.rate_tests import reads_one_label
from tidyfair.specs.contrasts import Difference, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.metric_sets import GroupwiseMetric, Metric

    Array: TypeAlias = np.ndarray[Any, Any]
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Bounds: TypeAlias = tuple[float, float]

LOOK = "\0look"
"""The column of the index of a look."""
_SLACK = 1e-9
_LIFETIME = 4
"""How long a window lasts, as a multiple of the largest power of 2 that divides the looks before it."""
MOST_PAIRS = 50_000
"""Pairs of groups, over looks, that are worked out at once."""


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks at outer groups (series), each at the end of a period or at all rows so far, sorted by series.

    A look is at one or more windows of rows that end with it, sorted by look and by their beginning.
    """

    keys: pl.DataFrame
    """The keys of the outer group of each look, the period last."""
    series: Array
    """The index of the series of each look."""
    period: Array
    """The index of the period of each look."""
    number: Array
    """The number of each look in its series, from 1."""
    of_outer: Array
    """The index of the look of each outer group of the tally."""
    has_periods: bool
    last: Array
    """The index of the look of each window."""
    first: Array
    """The index of the look with the first rows of each window."""
    share_of_window: Floats
    """The share of the error of a series for the rows from the beginning of each window on."""

    @classmethod
    def of(cls, outer_keys: pl.DataFrame, period: str | None, *, change: bool = False) -> Looks:
        """The looks at the outer groups of a tally, at all rows so far or, for changes, also at recent rows."""
        if period is not None:
            check_periods("monitor", outer_keys, period)
        series = outer_keys.drop(period or [], UNGROUPED, strict=False)
        periods = outer_keys.select([] if period is None else pl.col(period).alias(".period"))
        codes = KeyCodes(outer_keys)
        of_series = codes.index(series.columns).of_cell
        of_period = codes.index([] if period is None else [period]).of_cell
        order = np.lexsort((of_period, of_series))
        of_series, of_period, every = of_series[order], of_period[order], np.arange(len(order))
        number = every - np.searchsorted(of_series, of_series) + 1
        last, before, share = _windows(number) if change else (every, 0, np.ones(len(order)))
        return cls(
            keys=pl.concat([series, periods], how="horizontal")[order],
            series=of_series,
            period=of_period,
            number=number,
            of_outer=np.argsort(order),
            has_periods=period is not None,
            last=last,
            first=last - number[last] + 1 + before,
            share_of_window=share,
        )

    @property
    def share_of_error(self) -> Floats:
        """The share of the error for the series of each window; new series may occur later.

        With k series so far it is 1 / (k (k + 1)). The shares of the first k, and of each later one when it occurs, add
        up to 2 / (k + 1), which never exceeds 1.
        """
        if self.keys.width == self.has_periods:
            return np.ones(len(self.last))
        first = np.full(int(self.series.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, self.series, self.period)
        so_far = (first <= self.period[:, None]).sum(axis=1)[self.last]
        return 1 / (so_far * (so_far + 1))

    def add_up(self, sums: Array, *, from_start: bool = False) -> Array:
        """Sums of looks as sums of windows, or of all looks of the series to the end of each window (`from_start`)."""
        first = self.last - self.number[self.last] + 1 if from_start else self.first
        added = np.concatenate([np.zeros_like(sums[:1]), sums.cumsum(axis=0)])
        return added[self.last + 1] - added[first]

    def recent(self, is_decided: Array) -> list[int]:
        """The window that each look is about: the latest one with a verdict, or else that of the look before.

        A window never begins before that of the look before: rows that were left behind are not called upon again.
        """
        chosen: list[int] = []
        since = 0
        for windows in np.split(np.arange(len(self.last)), np.flatnonzero(np.diff(self.last, prepend=-1)))[1:]:
            # where the window of the look before has ended, the next one takes its place
            usable = windows[self.first[windows] >= since]
            decided = usable[is_decided[usable]]
            chosen.append(int(decided[-1] if len(decided) else usable[0]))
            since = self.first[chosen[-1]]
        return chosen

    def keyed(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table by window with the keys and the numbers of the looks, and the first period of the window."""
        window, columns = table[LOOK].to_numpy(), table.drop(LOOK)
        keys = self.keys[self.last[window]]
        if self.has_periods:
            at = columns.columns.index(".n")
            columns = columns.insert_column(at, self.keys[".period"][self.first[window]].alias(".since"))
            columns = columns.insert_column(at, pl.Series(".look", self.number[self.last[window]], dtype=pl.Int64))
        return pl.concat([keys, columns], how="horizontal") if keys.width else columns


def _windows(number: Array) -> tuple[Array, Array, Floats]:
    """The look of each window, the looks of its series before it, and its share of the error.

    Half of the error is for all rows so far, the other half for windows that begin after 1, 2, 3, … looks. Of it, those
    after 2ᵛ times the i-th odd number of looks have 1 / ((v + 1) (v + 2) i (i + 1)), which adds up to 1. They last for
    4 · 2ᵛ looks, so that windows of any length have begun near any look.
    """
    every = np.arange(len(number))
    parts = [(every, np.zeros_like(every), np.full(len(every), 1 / 2))]
    for scale in range(int(number.max(initial=1)).bit_length()):
        for back in range(_LIFETIME):
            multiple = (number - 1) // 2**scale - back
            look = np.flatnonzero((multiple > 0) & (multiple % 2 == 1))
            odd = (multiple[look] + 1) // 2
            share = 1 / (2 * (scale + 1) * (scale + 2) * odd * (odd + 1))
            parts.append((look, multiple[look] * 2**scale, share))
    last, before, share = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((before, last))
    return last[order], before[order], share[order]


@dataclass(frozen=True, eq=False)
class RunningSums:
    """The sums of a metric in windows up to each look, or in each of several, by window, formula and group."""

    spec: Metric | GroupwiseMetric
    totals: Totals
    """Of values between 0 and 1: how far they lie from the one bound to the other."""
    bounds: Bounds
    seen: Array
    """True if a group has occurred, by look and group, as a mask."""
    is_reference: Array
    """The group that others are compared with, as a mask."""
    are_compared: Array
    """True where a group has a value, and the rows and the share of all rows that it needs, by look, formula, group."""
    texts: pl.Series
    """The names of the groups."""
    share_of_error: Floats
    """Of each look, the share of the error that the metric may have in its outer group."""
    share_of_window: Floats
    """Of each look, the share of that for rows from the same beginning on."""

    @classmethod
    def of(cls, evaluated: Evaluated, index: int, looks: Looks, bounds: Bounds) -> RunningSums:
        """The sums of one of the metrics that were evaluated."""
        spec, cells = cast("Metric | GroupwiseMetric", evaluated.specs[index]), evaluated.group_cells
        every = evaluated.rows.filter(pl.col("spec") == index)
        rows = every.filter(~pl.col("excluded"))
        for name, formula in spec.formulas:
            if not reads_one_label(formula, rows.filter(name=name)):
                msg = f"monitor(): {spec.name} averages {name} over labels; select one label with `pos_label=`."
                raise ArgumentError(msg)
        first, size = cells.spans[spec.by]
        texts = cells.text[first : first + size]
        keys = texts.to_frame() if spec.by is None else cells.keys[spec.by]
        index_of_keys = KeyCodes(keys).index(keys.columns)

        def positions(rows: pl.DataFrame) -> tuple[Array, Array]:
            """The look and the group of each row."""
            return looks.of_outer[rows["outer"].to_numpy()], index_of_keys.of_cell[rows[GROUP_CELL].to_numpy() - first]

        look, group = positions(rows)
        numbers = {name: number for number, (name, _) in enumerate(spec.formulas)}
        formula = rows["name"].replace_strict(numbers, return_dtype=pl.Int64).to_numpy()
        shape = len(looks.series), len(index_of_keys)
        total, counted = np.zeros((2, shape[0], len(numbers), shape[1]))
        of_rows = _between(rows, bounds, spec.name)
        np.add.at(total, (look, formula, group), of_rows.total)
        np.add.at(counted, (look, formula, group), of_rows.rows)
        totals = Totals(looks.add_up(total), looks.add_up(counted))
        seen, sizes = np.zeros((2, *shape))
        seen[look, group] = 1
        # the rows of unknown groups are part of all rows
        all_rows = every.filter(pl.col("name") == spec.formulas[0][0])
        np.add.at(sizes, positions(all_rows), all_rows["n"].to_numpy())
        sizes = looks.add_up(sizes)
        is_frequent = sizes >= spec.policy.min_share * sizes.sum(axis=1, keepdims=True)
        is_reference = np.zeros(shape[1], dtype=bool)
        is_reference[group[rows["is_reference"].to_numpy()]] = True
        return cls(
            spec=spec,
            totals=totals,
            bounds=bounds,
            seen=looks.add_up(seen, from_start=True) > 0,
            is_reference=is_reference,
            are_compared=(totals.rows >= max(spec.policy.min_n, 1)) & is_frequent[:, None],
            texts=texts[index_of_keys.example],
            share_of_error=looks.share_of_error,
            share_of_window=looks.share_of_window,
        )

    @property
    def by_text(self) -> str | None:
        """The features as results show them."""
        return self.spec.by.text if self.spec.by else None

    @property
    def pairs(self) -> int:
        """The number of pairs of groups that are compared with each other, both ways round, over all looks."""
        if not isinstance(self.spec.aggregate, Difference | Ratio) or self.spec.aggregate.to != "range":
            return 0
        compared = self.are_compared.sum(axis=2)
        return int((compared * (compared - 1)).sum())

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        return self.bounds[1] - self.bounds[0]

    def on_scale(self, means: Floats) -> Floats:
        """Means between 0 and 1 as values of the metric."""
        return self.bounds[0] + means * self.width

    def at(self, looks: slice | Array) -> RunningSums:
        """The sums of some looks."""
        names = ("seen", "are_compared", "share_of_error", "share_of_window")
        return replace(self, totals=self.totals.at(looks), **{name: getattr(self, name)[looks] for name in names})

    def parts(self) -> Iterator[tuple[int, RunningSums]]:
        """The sums of some looks at a time, with the index of the first of them."""
        looks, formulas, groups = self.totals.rows.shape
        step = max(MOST_PAIRS // max(formulas * groups**2, 1), 1)
        for first in range(0, max(looks, 1), step):
            yield first, self.at(slice(first, first + step))


def _between(rows: pl.DataFrame, bounds: Bounds, name: str) -> Totals:
    """The sums of values, as far as they lie between the bounds, and the numbers of rows."""
    counted = rows["counted_rows"].fill_null(0).to_numpy().astype(np.float64)
    mean = rows["rate"].fill_null(bounds[0]).to_numpy().astype(np.float64)
    share = np.where(counted > 0, (mean - bounds[0]) / (bounds[1] - bounds[0]), 0.0)
    is_within = (share >= -_SLACK) & (share <= 1 + _SLACK)
    if not is_within.all():
        outside: Sequence[float] = mean[~is_within].tolist()
        msg = (
            f"monitor(): {name} has a mean of {outside[0]:g} in some group, so some values lie outside "
            f"`bounds=({bounds[0]:g}, {bounds[1]:g})`; give bounds that hold for the value of every row."
        )
        raise ArgumentError(msg)
    total = np.clip(share, 0, 1) * counted
    nearest = np.round(total)
    # counts of rows, but for errors of rounding
    is_whole = abs(total - nearest) <= _SLACK * np.maximum(counted, 1)
    return Totals(np.where(is_whole, nearest, total), counted)
