"""Cumulative sums of metrics up to each of many looks, for monitors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.group_cells import UNGROUPED
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.confidence_sequences import Totals
from tidyfair.inference.periods import check_periods
from tidyfair.inference.rate_tests import reads_one_label
from tidyfair.specs.contrasts import Difference, Ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.metric_sets import GroupwiseMetric, Metric

    Array: TypeAlias = np.ndarray[Any, Any]
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Bounds: TypeAlias = tuple[float, float]

__all__: list[str] = []

LOOK = "\0look"
"""The column of the index of a look."""
_SERIES, _PERIOD, _CELL, _CODE, _TEXT = "\0series", "\0period", "\0cell", "\0code", "\0text"
_SLACK = 1e-9
MOST_PAIRS = 50_000
"""Pairs of groups, over looks, that are worked out at once."""


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks at outer groups (series), each at the end of a period or at all rows so far, sorted by series."""

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

    @classmethod
    def of(cls, outer_keys: pl.DataFrame, period: str | None) -> Looks:
        """The looks at the outer groups of a tally."""
        import numpy as np

        if period is not None:
            check_periods("monitor", outer_keys, period)
        series = outer_keys.drop(period or [], UNGROUPED, strict=False)
        periods = outer_keys.select([] if period is None else pl.col(period).alias(".period"))
        table = pl.DataFrame({_SERIES: _codes(series, outer_keys), _PERIOD: _codes(periods, outer_keys)})
        table = table.with_row_index(_CELL).sort(_SERIES, _PERIOD)
        number = pl.int_range(1, pl.len() + 1).over(_SERIES)
        order = table[_CELL]
        return cls(
            keys=pl.concat([series, periods], how="horizontal")[order],
            series=table[_SERIES].to_numpy(),
            period=table[_PERIOD].to_numpy(),
            number=table.select(number).to_series().to_numpy(),
            of_outer=np.argsort(order.to_numpy()),
            has_periods=period is not None,
        )

    @property
    def share_of_error(self) -> Floats:
        """The share of the error for the series of each look; new series may occur later.

        With k series so far it is 1 / (k (k + 1)). The shares of the first k, and of each later one when it occurs, add
        up to 2 / (k + 1), which never exceeds 1.
        """
        import numpy as np

        if self.keys.width == self.has_periods:
            return np.ones(len(self.series))
        first = np.full(int(self.series.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, self.series, self.period)
        so_far = (first <= self.period[:, None]).sum(axis=1)
        return 1 / (so_far * (so_far + 1))

    def add_up(self, sums: Array) -> Array:
        """Sums of looks as sums from the first look of their series on."""
        import numpy as np

        starts = np.flatnonzero(self.number == 1)
        parts = np.split(sums, starts[1:])
        return np.concatenate([part.cumsum(axis=0) for part in parts])

    def keyed(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table by look with the keys and the numbers of the looks."""
        index, columns = table[LOOK], table.drop(LOOK)
        if self.has_periods:
            number = pl.Series(".look", self.number, dtype=pl.Int64)[index]
            columns = columns.insert_column(columns.columns.index(".n"), number)
        return pl.concat([self.keys[index], columns], how="horizontal") if self.keys.width else columns


def _codes(keys: pl.DataFrame, like: pl.DataFrame) -> pl.Series:
    """The index of the combination of keys of each row, in their order, nulls last; 0 without keys."""
    if not keys.width:
        return pl.Series([0], dtype=pl.Int64).new_from_index(0, len(like))
    distinct = keys.unique().sort(keys.columns, nulls_last=True).with_row_index(_CODE)
    joined = keys.join(distinct, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined[_CODE].cast(pl.Int64)


@dataclass(frozen=True, eq=False)
class RunningSums:
    """The sums of a metric up to each look, by look, formula and group."""

    spec: Metric | GroupwiseMetric
    totals: Totals
    """Of values between 0 and 1: how far they lie from the one bound to the other."""
    bounds: Bounds
    seen: Array
    """True if a group has occurred, by look and group, as a mask."""
    is_reference: Array
    """The group that others are compared with, as a mask."""
    is_frequent: Array
    """True where a group has the share of the rows so far that it needs, by look and group."""
    texts: pl.Series
    """The names of the groups."""
    share_of_error: Floats
    """Of each look, the share of the error that the metric may have in its outer group."""

    @classmethod
    def of(cls, evaluated: Evaluated, index: int, looks: Looks, bounds: Bounds) -> RunningSums:
        """The sums of one of the metrics that were evaluated."""
        import numpy as np

        spec, cells = cast("Metric | GroupwiseMetric", evaluated.specs[index]), evaluated.group_cells
        every = evaluated.rows.filter(pl.col("spec") == index)
        rows = every.filter(~pl.col("excluded"))
        for name, formula in spec.formulas:
            if not reads_one_label(formula, rows.filter(name=name)):
                msg = f"monitor(): {spec.name} averages {name} over labels; select one label with `pos_label=`."
                raise ArgumentError(msg)
        first, size = cells.spans[spec.by]
        texts = cells.text[first : first + size]
        keys = texts.to_frame(_TEXT) if spec.by is None else cells.keys[spec.by]
        codes = _codes(keys, keys)
        names = pl.DataFrame({_CODE: codes, _TEXT: texts}).unique(_CODE).sort(_CODE)[_TEXT]
        # the index of each row among looks, formulas and groups
        group = codes.to_numpy()[rows[GROUP_CELL].to_numpy() - first]
        look = looks.of_outer[rows["outer"].to_numpy()]
        numbers = {name: number for number, (name, _) in enumerate(spec.formulas)}
        formula = rows["name"].replace_strict(numbers, return_dtype=pl.Int64).to_numpy()
        total, counted = np.zeros((2, len(looks.series), len(numbers), len(names)))
        seen = np.zeros((len(looks.series), len(names)))
        of_rows = _between(rows, bounds, spec.name)
        np.add.at(total, (look, formula, group), of_rows.total)
        np.add.at(counted, (look, formula, group), of_rows.rows)
        seen[look, group] = 1
        is_reference = np.zeros(len(names), dtype=bool)
        is_reference[group[rows["is_reference"].to_numpy()]] = True
        totals = Totals(looks.add_up(total), looks.add_up(counted))
        # the rows of unknown groups are part of all rows
        counted_first = every.filter(pl.col("name") == spec.formulas[0][0])
        sizes = np.zeros(seen.shape)
        own_group = codes.to_numpy()[counted_first[GROUP_CELL].to_numpy() - first]
        np.add.at(sizes, (looks.of_outer[counted_first["outer"].to_numpy()], own_group), counted_first["n"].to_numpy())
        sizes = looks.add_up(sizes)
        is_frequent = sizes >= spec.policy.min_share * sizes.sum(axis=1, keepdims=True)
        return cls(spec, totals, bounds, looks.add_up(seen) > 0, is_reference, is_frequent, names, looks.share_of_error)

    @property
    def by_text(self) -> str | None:
        """The features as results show them."""
        return self.spec.by.text if self.spec.by else None

    @property
    def groups_so_far(self) -> Floats:
        """Of each look, the number of groups that have occurred."""
        return self.seen.sum(axis=1).astype(float)

    @property
    def may_grow(self) -> bool:
        """True if new groups may still occur."""
        return self.spec.by is not None and self.spec.by.sides is None

    @property
    def are_compared(self) -> Array:
        """True if a group has a value and the rows that it needs, by look, formula and group, as a mask."""
        return (self.totals.rows >= max(self.spec.policy.min_n, 1)) & self.is_frequent[:, None]

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

    def parts(self) -> Iterator[tuple[int, RunningSums]]:
        """The sums of some looks at a time, with the index of the first of them."""
        looks, formulas, groups = self.totals.rows.shape
        step = max(MOST_PAIRS // max(formulas * groups**2, 1), 1)
        for first in range(0, max(looks, 1), step):
            chosen = slice(first, first + step)
            totals = Totals(self.totals.total[chosen], self.totals.rows[chosen])
            of_looks = {name: getattr(self, name)[chosen] for name in ("seen", "is_frequent", "share_of_error")}
            yield first, replace(self, totals=totals, **of_looks)


def _between(rows: pl.DataFrame, bounds: Bounds, name: str) -> Totals:
    """The sums of values, as far as they lie between the bounds, and the numbers of rows."""
    import numpy as np

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
