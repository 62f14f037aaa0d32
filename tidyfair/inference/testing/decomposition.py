"""Decomposition of the difference of two rates: what the composition of groups explains, and what rates do.

The rate of a group is the sum, over the cells of some features, of the share of its rows in the cell times the rate
there. So two groups differ because they have other cells (composition), or other rates in the same cells (Kitagawa,
1955). The share of a cell is in turn a product with one factor for each feature (Das Gupta, 1993).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.calling import Metric
from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation import GROUP_CELL, Evaluated, named_groups, texts_of
from tidyfair.inference.on_data import AUDITED, RateOnData, accepting
from tidyfair.inference.rate_tests import columns_of
from tidyfair.inference.testing.subgroups import checked_rate
from tidyfair.intervals import newcombe, placed, student_limits, z_value
from tidyfair.specs import (
    Array,
    Column,
    ColumnLike,
    Options,
    names_of,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import COMPONENTS, ResultKind
from tidyfair.tallies import Source, Tally

__all__ = ["Decomposition", "decompose"]

RATES, TOTAL = "rates", "total"
_MOST_FEATURES = 6
"""The most features: each more doubles the sums that factors are made of."""
_ROUNDED = 1e-14
"""Errors that are smaller are those of rounding."""
_MOST_NUMBERS = 2**21
"""The most counts held at once, of samples that each lack one unit."""


@dataclass(frozen=True, repr=False)
class Decomposition(RateOnData):
    """A rate, and the features that may explain its difference between groups, as a callable; made by `decompose`.

    It takes the arguments of a metric: `probs`, one `threshold`, `group_by`, `pos_label`, `labels`, `frequency_weights`
    and `cluster`; no case weights.
    """

    subject: ClassVar[str] = "decompose()"
    kind: ClassVar[ResultKind] = COMPONENTS
    accepted: ClassVar[type[Any]] = accepting(f"{AUDITED} frequency_weights cluster conf_level")
    between: Column
    features: tuple[Column, ...]
    to: object = None
    clusters: tuple[Column, ...] = ()
    """The columns of clusters of a call."""

    @property
    def _features(self) -> Iterable[Column]:
        return (self.between, *self.features, *self.clusters)

    def _check_source(self, source: Source) -> None:
        for role, columns in {"between": [self.between], "by": self.features}.items():
            for column in columns:
                column.check(source.columns, role)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        # people of unknown group are not compared
        self.metric.difference(self.between.source).run.warn_of_unknown_groups(
            [tally], may_ignore=False, may_compare=False
        )
        clustered = replace(self, clusters=tuple(key.column for key in tally.clusters))
        return super(Decomposition, clustered)._results(tally, options)

    def _tables(self, evaluated: Evaluated, options: Options) -> Iterator[list[dict[str, Any]]]:
        keys = self._keys(evaluated)
        policy = self.metric.difference(self.between.source).by.policy
        groups = keys.select(self.between.name)
        rows = evaluated.rows.sort(GROUP_CELL)
        size = rows["counted_rows"].fill_null(0).to_numpy().astype(float)
        counts = np.stack([np.round(rows["rate"].fill_null(0.0).to_numpy() * size), size], axis=1)
        is_counted = ~policy.is_unknown(groups).to_numpy() & (size > 0)
        named = self._named(placed(keys.filter(is_counted), [self.between.name])[1])
        for outer in range(len(evaluated.group_cells.outer_keys)):
            chosen = np.flatnonzero(is_counted & (rows["outer"] == outer).to_numpy())
            yield self._rows_of_groups(keys[chosen], counts[chosen], named, z_value(options.conf_level))

    def _rows_of_groups(
        self, keys: pl.DataFrame, counts: Array, named: tuple[object, ...] | None, z: float
    ) -> list[dict[str, Any]]:
        """The decomposition of the difference of each group from the one that others are compared with.

        Without any number where an outer group lacks the one that is named.
        """
        of_group, groups = placed(keys, [self.between.name])
        texts, rows = texts_of(groups), list[dict[str, Any]]()
        if named is not None and named not in groups.rows():
            alone: dict[str, Any] = {".metric": self.metric.name, ".by": self.between.name, ".other": str(self.to)}
            for group, text in enumerate(texts):
                size = int(counts[of_group == group, 1].sum())
                for component in (*names_of(self.features), RATES, TOTAL):
                    rows.append(alone | {".group": text, ".n": size, ".n_other": 0, ".component": component})
            return rows
        reference = 0 if named is None else groups.rows().index(named)
        for group in range(len(groups)):
            if group != reference:
                chosen = np.flatnonzero((of_group == group) | (of_group == reference))
                sample = self._sample(keys[chosen], counts[chosen], (of_group[chosen] == group).astype(np.int64))
                rows += self._components(sample, {".group": texts[group], ".other": texts[reference]}, z)
        return rows

    def _named(self, groups: pl.DataFrame) -> tuple[object, ...] | None:
        """The key of the group that others are compared with; None for the first of each outer group."""
        if self.to is None:
            return None
        named = named_groups(groups.with_columns(texts_of(groups).alias("\0text")), self.to)
        if len(named) != 1:
            msg = f"decompose(): `to={self.to!r}` is not a group of {self.between.name!r}: {listed(texts_of(groups))}."
            raise ArgumentError(msg)
        return named[0]

    def _sample(self, keys: pl.DataFrame, counts: Array, group: Array) -> _Sample:
        """The counts of two groups by the cells of the features, and by the units that were sampled."""
        names = names_of(self.features)
        cell, cells = placed(keys, names)
        margins: dict[frozenset[str], Array] = {}
        for size in range(len(names) + 1):
            margins |= {frozenset(some): placed(cells, some)[0] for some in itertools.combinations(names, size)}
        hits, rows = counts.T
        if self.clusters:
            unit, clusters = placed(keys, names_of(self.clusters))
            return _Sample(names, margins, unit, group, cell, hits, rows, np.ones(len(clusters)), is_clustered=True)
        # a hit and a miss in each cell stand for all of them
        both = np.concatenate([hits, rows - hits])
        is_hit = np.repeat([1.0, 0.0], len(rows))
        twice = (np.tile(group, 2), np.tile(cell, 2))
        return _Sample(names, margins, np.arange(len(both)), *twice, is_hit, np.ones(len(both)), both)

    def _components(self, sample: _Sample, named: Mapping[str, str], z: float) -> Iterator[dict[str, Any]]:
        """The rows of a difference: the composition of each feature, the rates, and the total."""
        hits, rows = sample.totals
        estimate = sample.components(hits[None], rows[None])[0]
        errors, freedom = sample.errors()
        half = student_limits(z, freedom) * errors
        for index, name in enumerate([*names_of(self.features), RATES, TOTAL]):
            lower, upper = np.clip([estimate[index] - half[index], estimate[index] + half[index]], -1, 1)
            method = "jackknife"
            if name == TOTAL and not sample.is_clustered:
                (other, one), (other_rows, one_rows) = hits.sum(axis=1) / rows.sum(axis=1), rows.sum(axis=1)
                lower, upper = newcombe(one, one_rows, other, other_rows, z)
                method = "newcombe"
            numbers = {".estimate": estimate[index], ".std_error": errors[index], ".lower": lower, ".upper": upper}
            yield {
                ".metric": self.metric.name, ".by": self.between.name, **named, ".n": int(rows[1].sum()),
                ".n_other": int(rows[0].sum()), ".method": method, ".component": name,
                **{column: None if math.isnan(number) else float(number) for column, number in numbers.items()},
            }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Sample:
    """The units that were sampled from two groups: rows that are alike, or clusters."""

    names: list[str]
    """The features."""
    margins: Mapping[frozenset[str], Array]
    """For each set of features, the number of the combination of its values in each cell."""
    unit: Array
    """The unit of each count."""
    group: Array
    """The group of each count: 1, or 0 for the group that it is compared with."""
    cell: Array
    hits: Array
    rows: Array
    times: Array
    """The number of equal units that each unit stands for."""
    is_clustered: bool = False

    @property
    def totals(self) -> tuple[Array, Array]:
        """The hits and rows of all units: groups by cells."""
        hits, rows = np.zeros((2, 2, len(self.margins[frozenset()])))
        times = self.times[self.unit]
        np.add.at(hits, (self.group, self.cell), self.hits * times)
        np.add.at(rows, (self.group, self.cell), self.rows * times)
        return hits, rows

    def errors(self) -> tuple[Array, Array]:
        """The standard errors of all components by leaving out one unit at a time, and their degrees of freedom."""
        all_hits, all_rows = self.totals
        units, number = len(self.times), self.times.sum()
        step = max(1, _MOST_NUMBERS // all_rows.size)
        parts: list[Array] = []
        for first in range(0, units, step):
            size = min(step, units - first)
            some = np.flatnonzero((self.unit >= first) & (self.unit < first + size))
            index = (self.unit[some] - first, self.group[some], self.cell[some])
            hits, rows = np.zeros((2, size, *all_rows.shape))
            np.add.at(hits, index, self.hits[some])
            np.add.at(rows, index, self.rows[some])
            parts.append(self.components(all_hits - hits, all_rows - rows))
        present = self.times > 0
        without, times = np.concatenate(parts)[present], self.times[present][:, None]
        away = without - (times * without).sum(axis=0) / number
        error = np.sqrt((times * away**2).sum(axis=0) * (number - 1) / number)
        freedom = np.full(len(error), number - 1.0 if self.is_clustered else np.inf)
        # what has not been seen to vary says nothing about how far it varies
        return np.where(error > _ROUNDED, error, np.nan), freedom

    @np.errstate(divide="ignore", invalid="ignore")
    def components(self, hits: Array, rows: Array) -> Array:
        """The components of the difference of both rates, the composition of each feature first, rates, and the total.

        Counts are samples by groups by cells. A cell that one group lacks has the rate of the other.
        """
        # a cell that no group has any more does not count
        rate = np.nan_to_num(np.where(rows > 0, hits / rows, hits[:, ::-1] / rows[:, ::-1]))
        share = rows / rows.sum(axis=-1, keepdims=True)
        composition = [(rate.mean(axis=1) * change).sum(axis=-1) for change in self._changes_of_shares(rows)]
        of_rates = ((rate[:, 1] - rate[:, 0]) * share.mean(axis=1)).sum(axis=-1)
        total = (rate * share).sum(axis=-1)
        return np.stack([*composition, of_rates, total[:, 1] - total[:, 0]], axis=-1)

    def _changes_of_shares(self, rows: Array) -> Iterator[Array]:
        """The part of each feature in the difference of the shares of cells: samples by cells.

        It is the difference of its factor, times the mean of the product of the others over all orders in which factors
        may change (Das Gupta, 1993, equation 3.54).
        """
        factors = self._factors_of_shares(rows)
        for name, factor in factors.items():
            mean = np.zeros_like(factor[:, 0])
            for changed, weight in self._sets_before(name):
                others = [other[:, int(key in changed)] for key, other in factors.items() if key != name]
                mean += weight * np.prod(others, axis=0)
            yield (factor[:, 1] - factor[:, 0]) * mean

    def _factors_of_shares(self, rows: Array) -> dict[str, Array]:
        """The factor of each feature in the shares of cells, whose product they are (Das Gupta, 1993, equation 5.36).

        It is the share of its value among the rows with the values of the features before it, as a geometric mean over
        all orders of features.
        """
        logs: dict[frozenset[str], Array] = {}
        for some, margin in self.margins.items():
            order = np.argsort(margin, kind="stable")
            starts = np.flatnonzero(np.diff(margin[order], prepend=-1))
            logs[some] = np.log(np.add.reduceat(rows[..., order], starts, axis=-1)[..., margin])
        factors: dict[str, Array] = {}
        for name in self.names:
            terms = [weight * (logs[before | {name}] - logs[before]) for before, weight in self._sets_before(name)]
            # a cell without rows has no share, whatever its margins
            factors[name] = np.where(rows > 0, np.exp(np.sum(terms, axis=0)), 0.0)
        return factors

    def _sets_before(self, name: str) -> Iterator[tuple[frozenset[str], float]]:
        """The sets of features that may come before one, with the share of all orders in which they do."""
        others = [other for other in self.names if other != name]
        for size in range(len(self.names)):
            weight = 1 / (len(self.names) * math.comb(len(others), size))
            for before in itertools.combinations(others, size):
                yield frozenset(before), weight


@refuse_unknown_keywords
def decompose(
    metric: Metric, *, between: ColumnLike, by: ColumnLike | Iterable[ColumnLike], to: object = None,
) -> Decomposition:  # fmt: skip
    """Decompose the difference of a rate between two groups, or two periods, into composition and rates.

    The difference is what it would be if both had the same rates in the cells of the features, the composition, plus
    what it would be if both had the same cells, the rates (Kitagawa, 1955). Each of them is taken at the mean of both
    groups in all else, so that no part is left over. The composition of several features is the sum of one part for
    each (Das Gupta, 1993).

    Of a rate of some rows, such as `sens`, the composition is that of these rows: those with the event. A cell that
    only one group has counts as composition. This is arithmetic, not cause: rates in a cell may differ for reasons that
    no feature shows, and the composition may be the work of the same decisions.

    Args:
        metric: A rate of labels, such as `selection_rate` or `sens`.
        between: The column of the groups, or periods, whose rates are compared.
        by: The column or columns that may explain the difference, of at most six.
        to: The group that others are compared with; by default the first in order, such as the earliest period.

    Returns:
        A callable with the arguments of a metric, of which `conf_level=` is that of the intervals. It returns for each
        group (`.group`) beside the reference (`.other`) and each outer group a row for each `.component`: the
        composition of each column of `by`, `rates`, and `total`, which is their sum: the rate of the group minus that
        of the reference. `.estimate` has `.lower`, `.upper` and `.std_error`, by leaving out one row at a time, or one
        cluster (`cluster=`); the total has Newcombe's interval. `.n` and `.n_other` are the rows of the denominators.

    Raises:
        ArgumentError: For other metrics than rates of labels, for columns that are given twice, and for more than six.

    Kitagawa (1955), Components of a difference between two rates. Das Gupta (1993), Standardization and decomposition
    of rates: a user's manual.

    >>> from tidyfair import selection_rate
    >>> rows = [(g, d, p) for g, d, hits, size in (
    ...     ("a", "x", 9, 10), ("a", "y", 3, 30), ("b", "x", 24, 30), ("b", "y", 2, 10)
    ... ) for p in [1] * hits + [0] * (size - hits)]
    >>> people = pl.DataFrame(rows, schema=["g", "dept", "hired"], orient="row")
    >>> result = decompose(selection_rate, between="g", by="dept")(people, estimate="hired")
    >>> result.select(".component", pl.col(".estimate").round(3)).rows()
    [('dept', 0.35), ('rates', 0.0), ('total', 0.35)]
    """
    rate = checked_rate("decompose", metric, ("class",))
    of_groups = Column.of(between, "between")
    features = columns_of(by, "by")
    names = names_of([of_groups, *features])
    for name in names:
        if names.count(name) > 1:
            msg = f"decompose(): {name!r} is given more than once in `between` and `by`; leave it out of one."
            raise ArgumentError(msg)
        if name in {RATES, TOTAL}:
            msg = f"decompose(): {name!r} is the name of a component of the result; rename your column."
            raise ArgumentError(msg)
    if not 1 <= len(features) <= _MOST_FEATURES:
        msg = f"decompose(): `by` takes 1 to {_MOST_FEATURES} columns, not {len(features)}; cross some into one column."
        raise ArgumentError(msg)
    return Decomposition(rate, of_groups, features, to)
