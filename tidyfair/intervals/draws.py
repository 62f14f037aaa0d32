"""Intervals by replicates: the quantiles and standard errors of values and comparisons, widened for empty cells.

Replicates leave empty cells of truth and estimate empty, so that a group without errors has none in any of them. If
none of n rows is in a cell, the share of that cell may be as large as z² / (n + z²) (Wilson, 1927): the share that z²
more rows in it have. So values are computed again with as many rows in each empty cell, one cell at a time, and limits
include them. For a rate of none or all of its rows this is Wilson's limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ClusterWarning, UndefinedWarning, warn
from tidyfair.evaluation import GROUP_CELL, Evaluated, KeyCodes, ReplicatedGroups, Replicates, number_group_cells
from tidyfair.intervals.comparisons import Intervals
from tidyfair.intervals.estimates import Scale, Smooth
from tidyfair.intervals.proportions import student, z_value
from tidyfair.intervals.resampling import (
    MOST_CELLS,
    drawn_clusters,
    drawn_decisions,
    drawn_labels,
    drawn_rows,
    is_of_labels,
    label_pairs,
    placed,
    possible_pairs,
    with_pairs,
)
from tidyfair.intervals.uncertainty import Uncertainty
from tidyfair.specs import Array, Booleans, By, Floats, Integers, MetricSpec, Options
from tidyfair.tallies import BLOCK, HIDDEN, LABELS, Tally

_SUMS = ("n", "w", "w2")
"""The columns of cells with their rows, and the weights of these."""
_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_MANY_LOST = 0.05
_FEW_CLUSTERS = 30
_ENOUGH_BEYOND = 4
"""The replicates beyond each end of an interval that are drawn at least if their number is not given."""
_MOST_REPLICATES = 10**6
_MOST_FILLED = 10_000
"""The most replicates with filled cells; with more than a hundred labels not all pairs are filled."""


@dataclass(frozen=True, eq=False)
class SharedDraws:
    """Specs that share their replicates: those of the same groups, drawn in the same way."""

    by: By | None
    stratified: bool
    of_rows: bool
    specs: tuple[int, ...]


def shared_draws(specs: Sequence[MetricSpec], numbers: Iterable[int]) -> list[SharedDraws]:
    """Some specs, by how their replicates are drawn."""
    by_draws: dict[tuple[By | None, bool, bool], list[int]] = {}
    for number in numbers:
        spec = specs[number]
        by_draws.setdefault((spec.by, is_stratified(spec), _reads_rows(spec)), []).append(number)
    return [SharedDraws(*key, tuple(own)) for key, own in by_draws.items()]


def replicates_of(evaluated: Evaluated, shared: SharedDraws, options: Options) -> Iterator[Replicates]:
    """Replicates of the specs that share them, in parts that fit into memory."""
    # groups that overlap are drawn by their combinations
    tally, columns = evaluated.evaluator.base_tally.in_few_parts(), shared.by.columns if shared.by else ()
    is_bayes, seed = options.interval == "bayes", options.seed
    # a prior of one group says nothing about another
    strata = columns if shared.stratified or is_bayes else ()
    if shared.of_rows:
        rows = tally.rows if tally.rows is not None else pl.DataFrame()
        rows, parts = drawn_rows(tally, rows, columns, strata=strata, times=options.replicates_of_rows, seed=seed)
        columns_of_sums = [name for name in _SUMS if name in tally.cells.columns]
        groups = ReplicatedGroups(evaluated, shared.specs, shared.by, replace(tally, rows=rows))
        for times in parts:
            replicate, row = np.divmod(np.repeat(np.arange(times.size), times.ravel()), max(1, len(rows)))
            sums = {name: np.tile(tally.cells[name].to_numpy(), (len(times), 1)) for name in columns_of_sums}
            yield groups.replicates(sums, (row, replicate))
        return
    if tally.cut is not None and tally.cut.point is not None:
        drawn = drawn_decisions(
            tally, tally.cut.point, columns, strata=strata, times=options.replicates_of_rows, seed=seed
        )
    elif tally.clusters:
        drawn = drawn_clusters(tally, columns, times=options.replicates, seed=seed)
    else:
        possible = possible_pairs(tally, options) if is_bayes else None
        drawn = drawn_labels(tally, columns, strata=strata, times=options.replicates, seed=seed, possible=possible)
    groups = ReplicatedGroups(evaluated, shared.specs, shared.by, drawn.tally)
    yield from map(groups.replicates, drawn.parts)


class Summary:
    """Limits and standard errors from replicates, as arrays of numbers."""

    def __init__(self, values: Floats, level: float, clusters: Integers | int | None) -> None:
        """Summarize replicates by numbers, nan where there are none; wider where clusters are few.

        `clusters` is their number, the same for all numbers or one for each.
        """
        known = ~np.isnan(values)
        self.lower, self.upper, self.error = np.full((3, values.shape[1]), np.nan)
        some, several = known.any(axis=0), known.sum(axis=0) > 1
        counts = np.broadcast_to(-1 if clusters is None else clusters, values.shape[1])
        for count in np.unique(counts).tolist():
            tail, factor = (1 - level) / 2, 1.0
            if count >= 0:
                # with clusters limits are wider, as the interval of Student's t is (Hesterberg, 2015)
                freedom = max(1, count - 1)
                factor = math.sqrt(count / freedom)
                tail = math.erfc(factor * student(level, freedom) / math.sqrt(2)) / 2
            own, varying = some & (counts == count), several & (counts == count)
            if own.any():
                with np.errstate(invalid="ignore"):
                    self.lower[own], self.upper[own] = _quantiles(values[:, own], tail)
                    self.error[varying] = np.nanstd(values[:, varying], axis=0, ddof=1) * factor
        self.times, self.lost = len(values), len(values) - known.sum(axis=0)
        """The number of replicates, and that of those without a number, or with fewer groups than the others."""
        self.is_alike = _are_alike(np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
        """Mask of the numbers that all replicates agree about."""


def _quantiles(values: Floats, tail: float) -> Array:
    """The quantiles at both ends, between the nearest two numbers; of infinite numbers the outer one of these."""
    quantile = np.nanquantile if np.isnan(values).any() else np.quantile
    ends = quantile(values, [tail, 1 - tail], axis=0)
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        least = np.nanquantile(values[:, infinite], tail, axis=0, method="lower")
        most = np.nanquantile(values[:, infinite], 1 - tail, axis=0, method="higher")
        between = ends[:, infinite]
        ends[:, infinite] = np.where(np.isnan(between), np.stack([least, most]), between)
    return ends


def _are_alike(least: Floats, most: Floats) -> Booleans:
    """Mask of numbers whose replicates differ by rounding only."""
    with np.errstate(invalid="ignore"):
        # infinity minus itself is not a number
        near = most - least <= _ROUNDED * np.maximum(np.abs(least), np.abs(most))
        return (least == most) | (near & np.isfinite(most - least))


def clusters_of(tally: Tally) -> int | None:
    """The number of the user's own clusters; None without any."""
    return tally.cells.select(tally.cluster_names).n_unique() if tally.cluster_names else None


def warn_of_few_clusters(tally: Tally) -> None:
    """Warn of intervals from few clusters."""
    clusters = clusters_of(tally)
    if clusters is not None and 0 < clusters < _FEW_CLUSTERS:
        number = "is 1 cluster" if clusters == 1 else f"are {clusters} clusters"
        msg = f"There {number}; intervals from fewer than {_FEW_CLUSTERS} clusters are not to be relied on."
        warn(msg, ClusterWarning)


# Empty cells


class Filled:
    """The smallest and the largest value of groups with empty cells filled; the values where nothing is filled."""

    @np.errstate(divide="ignore", invalid="ignore")
    def __init__(self, uncertainty: Uncertainty, specs: Sequence[int], z: float) -> None:
        """Fill the empty cells of the values of some specs of labels, at so many standard errors."""
        self.uncertainty, value = uncertainty, uncertainty.column("estimate")
        self.low, self.high = value.copy(), value.copy()
        if uncertainty.options.interval not in {"auto", "bootstrap"} or HIDDEN in uncertainty.tally.cells.columns:
            return
        by_feature: dict[tuple[By | None, bool], list[int]] = {}
        for number in specs:
            own = uncertainty.evaluated.specs[number]
            # what overlapping groups are compared with is not filled
            overlaps = own.by is not None and own.by.memberships is not None and not is_stratified(own)
            if is_of_labels(own) and not overlaps:
                compares = any(formula.compares for _, formula in own.formulas)
                by_feature.setdefault((own.by, compares), []).append(number)
        for (by, compares), numbers in by_feature.items():
            for replicates in _filled(uncertainty, by, numbers, z, one_at_a_time=compares):
                rows = replicates.rows
                values = np.where(np.isfinite(replicates.values), replicates.values, np.nan)
                near = _ROUNDED * np.abs(value[rows])
                least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
                self.low[rows] = np.where(least < self.low[rows] - near, least, self.low[rows])
                self.high[rows] = np.where(most > self.high[rows] + near, most, self.high[rows])

    def of_results(self, results: Array) -> tuple[Floats, Floats]:
        """The smallest and the largest result if one group, or all of them, have values of filled cells."""
        uncertainty = self.uncertainty
        evaluated, outers = uncertainty.evaluated, uncertainty.outers
        ends = np.full((2, len(results)), np.nan)
        spec, outer, value = (uncertainty.column(name) for name in ("spec", "outer", "estimate"))
        for position, result in enumerate(results.tolist()):
            number, own = divmod(int(result), outers)
            rows = np.flatnonzero((spec == number) & (outer == own) & ~np.isnan(value))
            if evaluated.specs[number].aggregate is None:
                ends[:, position] = self.low[rows[0]], self.high[rows[0]]
                continue
            moved = self._moved(rows)
            if moved is not None:
                compared = Replicates(evaluated, rows, {"estimate": moved}).results[:, result]
                finite = compared[np.isfinite(compared)]
                if len(finite):
                    ends[:, position] = finite.min(), finite.max()
        return ends[0], ends[1]

    def _moved(self, rows: Integers) -> Floats | None:
        """The values of an outer group with filled cells in one group, or in all of them; None if none moves."""
        value, cells = self.uncertainty.column("estimate")[rows], self.uncertainty.column(GROUP_CELL)[rows]
        cases: list[Floats] = []
        for end in (self.low[rows], self.high[rows]):
            with np.errstate(invalid="ignore"):
                away = np.where(end == value, 0.0, np.abs(end - value))
            # only the farthest groups, if there are very many
            farthest = list(dict.fromkeys(cells[np.argsort(-away, kind="stable")].tolist()))
            reaching = [cell for cell in farthest[: MOST_CELLS // len(rows)] if (away[cells == cell] > 0).any()]
            cases += [np.where(cells == cell, end, value) for cell in reaching]
            cases += [end] if reaching else []
        return np.stack(cases) if cases else None


def _filled(
    uncertainty: Uncertainty, by: By | None, specs: Sequence[int], z: float, *, one_at_a_time: bool
) -> Iterator[Replicates]:
    """Replicates in which rows are added to one empty cell of all groups, or to all of them together.

    With `one_at_a_time` this is done in one group after another, for metrics that compare groups themselves.
    """
    evaluated, tally, options = uncertainty.evaluated, uncertainty.tally, uncertainty.options
    columns = by.keys if by else ()
    cells = with_pairs(tally, columns, label_pairs(tally, options))
    index = number_group_cells(cells, evaluated.labels, [by])[0].indices[by].of_cell
    weighted = "w" in cells.cells.columns
    rows = cells.cells["n"].to_numpy()
    weight = cells.cells["w" if weighted else "n"].to_numpy().astype(float)
    square = cells.cells["w2" if weighted else "n"].to_numpy().astype(float)
    groups = int(index.max(initial=-1)) + 1
    total, squares = (np.bincount(index, own, groups) for own in (weight, square))
    row = np.nan_to_num(squares / total)
    each = z**2 * _weight_of_a_unit(tally, evaluated, by, row)
    empty = np.flatnonzero(
        (rows == 0) & (cells.cells[LABELS[0]].is_not_null() | cells.cells[LABELS[1]].is_not_null()).to_numpy()
    )
    if not len(empty):
        return
    # all empty cells of a group together, then one of them at a time
    number_of_empty = np.bincount(index[empty], minlength=groups)
    if one_at_a_time:
        together = np.unique(index[empty], return_inverse=True)[1]
        alone = np.arange(len(empty)) + int(together.max()) + 1
    else:
        together = np.zeros(len(empty), dtype=np.int64)
        pair = cells.cells.select(pl.struct(LABELS).rank("dense")).to_series().to_numpy()[empty]
        alone = 1 + np.unique(pair, return_inverse=True)[1]
    replicate = np.concatenate([together, alone])
    cell = np.concatenate([empty, empty])
    added = np.concatenate([each[index[empty]] / number_of_empty[index[empty]], each[index[empty]]])
    count = min(int(replicate.max()) + 1, _MOST_FILLED)
    step, repeated = max(1, MOST_CELLS // len(rows)), ReplicatedGroups(evaluated, specs, by, cells)
    for start in range(0, count, step):
        size = min(step, count - start)
        own = (replicate >= start) & (replicate < start + size)
        filled = np.tile(weight, (size, 1))
        filled[replicate[own] - start, cell[own]] += added[own]
        occupied = np.tile(np.maximum(rows, 0), (size, 1))
        occupied[replicate[own] - start, cell[own]] = 1
        # the weight of a group stays the same
        sums = np.stack([np.bincount(index, one, groups) for one in filled])
        filled *= np.nan_to_num(total / sums)[:, index]
        yield repeated.replicates({"n": occupied, "w": filled, "w2": filled * row[index]})


def _weight_of_a_unit(tally: Tally, evaluated: Evaluated, by: By | None, row: Floats) -> Floats:
    """The weight of a row, or of a cluster, of each group, if all were equal and effectively as many."""
    clusters = tally.cluster_names
    if not clusters:
        return row
    index, cells = evaluated.group_cells.indices[by], evaluated.evaluator.cells
    unit = KeyCodes(tally.cells).index(clusters, within=index)
    weight = np.bincount(unit.of_cell, cells.measure("w"), len(unit))
    group = index.of_cell[unit.example]
    return np.nan_to_num(np.bincount(group, weight**2) / np.bincount(group, weight))


# Draws


_Drawn: TypeAlias = "tuple[Integers, Summary, Floats, Floats, Booleans]"
"""Values of groups, or results: their index, how far they vary in replicates, and the smallest and the largest with
filled cells; last, a mask of those of a single row or cluster, and of those that neither replicates nor filled cells
move.
"""


@dataclass(frozen=True, eq=False)
class Draws:
    """The replicates of an evaluation."""

    uncertainty: Uncertainty

    def _shared_draws(
        self, specs: Sequence[int], options: Options
    ) -> Iterator[tuple[SharedDraws, Iterator[Replicates], Filled]]:
        """Some specs by how they are drawn, their replicates in parts, and their values with filled cells."""
        evaluated, z = self.uncertainty.evaluated, z_value(options.conf_level)
        check_drawn(self.uncertainty.tally, [evaluated.specs[number] for number in specs], options)
        for shared in shared_draws(evaluated.specs, specs):
            replicates = replicates_of(evaluated, shared, options)
            yield shared, replicates, Filled(self.uncertainty, shared.specs, z)

    def _summary(self, values: Floats, level: float, outer: Integers) -> Summary:
        """The summary of numbers in some outer groups."""
        names = self.uncertainty.tally.cluster_names
        if not names:
            return Summary(values, level, None)
        group_cells = self.uncertainty.evaluated.group_cells
        by, index = next(iter(group_cells.indices.items()))
        of_cell = group_cells.outer[group_cells.spans[by][0] + index.of_cell]
        cluster = placed(self.uncertainty.tally.cells, names)[0]
        distinct = np.unique(np.stack([of_cell, cluster]), axis=1)[0]
        return Summary(values, level, np.bincount(distinct, minlength=self.uncertainty.outers)[outer])

    # Values of groups

    def _values(self, specs: Sequence[int], options: Options) -> Iterator[_Drawn]:
        """The values of some specs."""
        for _, parts, filled in self._shared_draws(specs, options):
            drawn = list(parts)
            rows, values = drawn[0].rows, np.concatenate([own.values for own in drawn])
            summary = self._summary(values, options.conf_level, self.uncertainty.column("outer")[rows])
            low, high = filled.low[rows], filled.high[rows]
            yield rows, summary, low, high, self.lone[rows] | (summary.is_alike & (low == high))

    def add_estimates(self, specs: Sequence[int]) -> None:
        """Give the formulas of some specs estimates with errors from replicates, and from empty cells."""
        z, value = z_value(self.uncertainty.options.conf_level), self.uncertainty.column("estimate")
        low_error, high_error = np.full((2, len(value)), np.nan)
        for index, summary, low, high, lone in self._values(specs, self.uncertainty.options) if specs else ():
            error = np.where(lone, np.nan, np.where(summary.error > 0, summary.error, 0.0))
            with np.errstate(invalid="ignore"):
                below, above = (value[index] - low) / z, (high - value[index]) / z
            low_error[index], high_error[index] = np.hypot(error, np.nan_to_num((below, above)))
        error, freedom, scale = np.fmax(low_error, high_error), np.full(len(value), np.inf), Scale(-math.inf, math.inf)
        resampled = Smooth(value, error, freedom, scale, (value, low_error), (value, high_error), kind="resampled")
        numbers = [number for spec in specs for number in self.uncertainty.of_spec(spec)]
        self.uncertainty.resampled.update(dict.fromkeys(numbers, resampled))

    def put_groups(self, formulas: Sequence[int], rows_shown: Booleans, intervals: Intervals) -> Integers:
        """Set the limits of the values of some formulas; the number of replicates that were lost."""
        column, requested = self.uncertainty.column, self.uncertainty.requested
        chosen = np.isin(column("requested"), formulas) & rows_shown & ~np.isnan(column("estimate"))
        together = np.ones(1)
        if self.uncertainty.options.simultaneous:
            runs = np.stack([column("requested")[chosen], column("outer")[chosen]])
            together = np.unique(runs, axis=1, return_counts=True)[1]
        options = _at_level_of(self.uncertainty.options, int(together.max(initial=1)))
        specs = list(dict.fromkeys(requested[number].spec for number in formulas))
        names = np.array([self._name(own.name, own.spec) for own in requested], dtype=object)[column("requested")]
        drawn = list(self._values(specs, options))
        return self._put(drawn, chosen, column("estimate"), options, intervals, names)

    # Results

    def put_results(self, left: Booleans, value: Floats, intervals: Intervals) -> Integers:
        """Set the limits of some results; the number of replicates that were lost."""
        evaluated, outers = self.uncertainty.evaluated, self.uncertainty.outers
        options, spec = _at_level_of(self.uncertainty.options, 1), np.arange(len(left)) // outers
        drawn: list[_Drawn] = []
        for shared, parts, filled in self._shared_draws(np.unique(spec[left]).tolist(), options):
            results: list[Floats] = []
            known: list[Integers] = []
            rows, lowest, highest = np.zeros(0, dtype=np.int64), np.array(np.nan), np.array(np.nan)
            for part in parts:
                results.append(part.results)
                known.append(part.known)
                rows, lowest = part.rows, np.fmin(lowest, np.fmin.reduce(part.values, axis=0))
                highest = np.fmax(highest, np.fmax.reduce(part.values, axis=0))
            values, groups = np.concatenate(results), np.concatenate(known)
            # a comparison of fewer groups is another one
            values = np.where(groups == groups.max(axis=0, initial=0), values, np.nan)
            index = np.flatnonzero(left & np.isin(spec, shared.specs))
            summary = self._summary(values[:, index], options.conf_level, index % outers)
            low, high = filled.of_results(index)
            low, high = np.fmin(low, value[index]), np.fmax(high, value[index])
            lone = (self.lone_results | self._has_alike(rows, lowest, highest, filled))[index]
            lone |= summary.is_alike & (low == high)
            drawn.append((index, summary, low, high, lone))
        names = np.array([self._name(own.name, index) for index, own in enumerate(evaluated.specs)], dtype=object)[spec]
        lost = self._put(drawn, left, value, options, intervals, names)
        if options.interval in {"auto", "bayes"}:
            self._without_false_ends(spec, left, value, intervals)
        return lost

    def _has_alike(self, rows: Integers, lowest: Floats, highest: Floats, filled: Filled) -> Booleans:
        """Mask of the results with a value that is the same in all replicates, and that filled cells do not move."""
        is_valued = ~np.isnan(self.uncertainty.column("estimate")[rows]) & ~np.isnan(lowest)
        alike = is_valued & _are_alike(lowest, highest) & (filled.low[rows] == filled.high[rows])
        return np.bincount(self._result[rows[alike]], minlength=len(self.lone_results)) > 0

    def _without_false_ends(self, spec: Integers, drawn: Booleans, value: Floats, intervals: Intervals) -> None:
        """Drop the end at which groups are equal: chance alone moves distances away from there.

        Replicates add chance once more, so that this end would exclude equality even where it is true.
        """
        for number, own in enumerate(self.uncertainty.evaluated.specs):
            if not own.by or own.aggregate is None or not own.aggregate.is_distance:
                continue
            index = np.flatnonzero(drawn & (spec == number) & ~np.isnan(intervals.lower))
            # the other end includes the value, which quantiles of a low level need not
            if own.aggregate.direction == "maximize":
                intervals.lower[index] = np.minimum(intervals.lower[index], value[index])
                intervals.upper[index], words = np.nan, ", lower end"
            else:
                intervals.upper[index] = np.maximum(intervals.upper[index], value[index])
                intervals.lower[index], words = np.nan, ", upper end"
            intervals.method[index] += words

    # Limits

    def _name(self, name: str, spec: int) -> str:
        """A metric and its feature."""
        by = self.uncertainty.evaluated.specs[spec].by
        return f"{name} by {by.text}" if by else name

    def _put(
        self, drawn: Sequence[_Drawn], chosen: Booleans, value: Floats, options: Options, intervals: Intervals,
        names: Array,
    ) -> Integers:  # fmt: skip
        """Set limits by replicates, no narrower than empty cells can make them; the replicates that were lost.

        `chosen` is a mask of all numbers, `names` are those of their metrics and features.
        """
        tally, lost, z = self.uncertainty.tally, np.full(len(value), -1), z_value(options.conf_level)
        method = "cluster bootstrap" if tally.cluster_names else "bootstrap"
        warn_of_few_clusters(tally)
        messages: dict[str, str] = {}
        for index, summary, lowest, highest, lone in drawn:
            lower, upper, error, own = summary.lower, summary.upper, summary.error, value[index]
            known, wider = ~(np.isnan(lower) | np.isnan(upper)) & chosen[index], np.zeros(len(lower), dtype=bool)
            if options.interval == "bayes":
                # as the modified interval of Jeffreys' prior, these include a rate of none or all of the rows
                method, low, high = "dirichlet", own, own
            else:
                known, low, high = known & ~lone, lowest, highest
                with np.errstate(invalid="ignore"):
                    wider = known & ((low < lower) | (high > upper))
                    reach = np.fmax((own - low) / z, (high - own) / z)
                # replicates that are all the same say nothing about how far values vary
                error = np.where(error > 0, np.where(wider, np.fmax(error, reach), error), np.nan)
            limits = np.fmin(lower, low)[known], np.fmax(upper, high)[known]
            intervals.named(method).put(index[known], limits, error[known])
            intervals.method[index[known & wider]] += ", empty cells"
            lost[index] = summary.lost
            many = np.flatnonzero(chosen[index] & (summary.lost > _MANY_LOST * summary.times))
            for position in many[np.argsort(-summary.lost[many], kind="stable")].tolist():
                name, of_times = str(names[index[position]]), f"{summary.lost[position]} of {summary.times} replicates"
                sentence = f"{name}: in {of_times} a group has no value, and the interval is of the others"
                messages.setdefault(name, sentence)
        if messages and options.on_undefined == "warn":
            warn("; ".join(messages.values()) + '. (on_undefined="ignore" silences this.)', UndefinedWarning)
        return lost

    # Values of a single row or cluster

    @cached_property
    def _result(self) -> Integers:
        """The result that each value belongs to."""
        column = self.uncertainty.column
        return column("spec").astype(np.int64) * self.uncertainty.outers + column("outer")

    @cached_property
    def lone(self) -> Booleans:
        """Mask of the values of one row or cluster, so that all replicates are the same."""
        evaluated, column, tally = self.uncertainty.evaluated, self.uncertainty.column, self.uncertainty.tally
        lone = np.zeros(len(column("spec")), dtype=bool)
        codes, cells = KeyCodes(tally.cells), evaluated.evaluator.cells
        for number, requested in enumerate(self.uncertainty.requested):
            formula, spec = requested.formula, evaluated.specs[requested.spec]
            # how many rows there are is no value of theirs
            if not formula.reads:
                continue
            own = np.flatnonzero(column("requested") == number)
            lone[own] = column("n")[own] == 1
            clusters = [key.column for key in tally.clusters if not _reads_rows(spec) or key.column.name != BLOCK]
            if clusters:
                index = evaluated.group_cells.indices[spec.by]
                counted = cells.complete_in(formula.reads if formula.kind == "class" else frozenset())
                unit = codes.index(tally.names(clusters), within=index).of_cell
                pairs = np.unique(np.stack([index.of_cell[counted], unit[counted]]), axis=1)
                number_of_units = np.bincount(pairs[0], minlength=len(index))
                first, _ = evaluated.group_cells.spans[spec.by]
                lone[own] |= number_of_units[column(GROUP_CELL)[own] - first] == 1
        return lone

    @cached_property
    def lone_results(self) -> Booleans:
        """Mask of the results with a lone value, or with fewer groups than their comparison needs."""
        column, results = self.uncertainty.column, len(self.uncertainty.evaluated.specs) * self.uncertainty.outers
        valued = ~np.isnan(column("estimate"))
        has_lone = np.bincount(self._result[valued & self.lone], minlength=results) > 0
        groups = np.unique(np.stack([self._result[valued], column(GROUP_CELL)[valued]]), axis=1)[0]
        needed = [spec.aggregate.groups_needed if spec.aggregate else 1 for spec in self.uncertainty.evaluated.specs]
        return has_lone | (np.bincount(groups, minlength=results) < np.repeat(needed, self.uncertainty.outers))


def _at_level_of(options: Options, groups: int) -> Options:
    """The options at the level of each of `groups` limits that hold at once, with replicates beyond either end."""
    level = options.conf_level ** (1 / groups)
    enough = math.ceil(_ENOUGH_BEYOND * 2 / (1 - level))
    if options.times is None and enough <= _MOST_REPLICATES:
        is_usual = groups == 1 and enough <= options.replicates_of_rows
        return replace(options, conf_level=level, times=None if is_usual else max(enough, options.replicates_of_rows))
    least = enough if groups > 1 else math.ceil(round(2 / (1 - level), 6))
    if options.times is not None and options.times >= least:
        return replace(options, conf_level=level)
    limits = f"simultaneous intervals of {groups} groups, each at the" if groups > 1 else "intervals at the"
    given = "Replicates" if options.times is None else f"`times={options.times}` replicates"
    way_out = f"take `times={least}` or more" if least <= _MOST_REPLICATES else "take a lower `conf_level=`"
    msg = f"{given} do not show the ends of {limits} level {level:.6g}: {way_out}."
    raise ArgumentError(msg)


# What has replicates


def check_drawn(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> None:
    """Refuse specs that have no replicates."""
    for spec in specs:
        of_rows = _reads_rows(spec)
        prior_of = "rows" if of_rows else "clusters" if tally.clusters else "weights" if tally.weights else None
        reasons = {
            "groups of which are suppressed": HIDDEN in tally.cells.columns,
            "which reads rows in the order in which they stand": tally.needs.order and of_rows,
            "of which only bins of scores were counted": tally.binned and of_rows,
            "which compares each row with its neighbours, so that rows and clusters do not vary independently":
                any(term.neighborhood for _, formula in spec.formulas for term in formula.all_terms),
            "of which the tally does not say how it varies: count with `parts=0`, or call the metric itself":
                not is_of_labels(spec) and not of_rows and not tally.clusters,
            "whose threshold, chosen from the data, has no prior": options.interval == "bayes"
                and tally.cut is not None and tally.cut.point is not None,
            f"whose {prior_of} have no prior": options.interval == "bayes" and prior_of,
            "which is about how many rows groups have": options.interval == "bayes"
                and not any(formula.reads for _, formula in spec.formulas),
        }  # fmt: skip
        reasons |= {formula.no_interval: bool(formula.no_interval) for _, formula in spec.formulas}
        for reason in [reason for reason, applies in reasons.items() if applies]:
            msg = f"There is no interval of {spec.name}, {reason}; leave `interval=` out, or ask for the others alone."
            raise ArgumentError(msg)


def _reads_rows(spec: MetricSpec) -> bool:
    """Check whether replicates need the rows, because counts and sums are not enough."""
    return any(formula.needs_rows for _, formula in spec.formulas)


def is_stratified(spec: MetricSpec) -> bool:
    """Check whether replicates keep the sizes of groups: not where these are part of a metric."""
    aggregate = spec.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_weight)
    return spec.by is not None and not shares and not any(formula.compares for _, formula in spec.formulas)
