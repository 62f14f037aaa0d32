"""Intervals by replicates: the quantiles and standard errors of values and comparisons, widened for empty cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np

from tidyfair.errors import ArgumentError, ClusterWarning, UndefinedWarning, warn
from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.replicates import Replicates
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.comparisons import Intervals
from tidyfair.intervals.empty_cells import Filled
from tidyfair.intervals.estimates import Smooth
from tidyfair.intervals.proportions import student, z_value
from tidyfair.intervals.resampling import (
    drawn_clusters,
    drawn_indices,
    drawn_labels,
    is_of_labels,
    placed,
    possible_pairs,
)
from tidyfair.intervals.scales import Scale
from tidyfair.intervals.uncertainty import Uncertainty
from tidyfair.specs.groups import By
from tidyfair.specs.metric_specs import MetricSpec
from tidyfair.specs.options import Options
from tidyfair.specs.segments import Array, Booleans, Floats, Integers
from tidyfair.tallies.tally import BLOCK, HIDDEN, Tally

_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_MANY_LOST = 0.05
_FEW_CLUSTERS = 30
_ENOUGH_BEYOND = 4
"""The replicates beyond each end of an interval that are drawn at least if their number is not given."""
_MOST_REPLICATES = 10**6


@dataclass(frozen=True, eq=False)
class Design:
    """Specs that share their replicates: those of the same groups, drawn in the same way."""

    by: By | None
    stratified: bool
    of_rows: bool
    specs: tuple[int, ...]


def designs_of(specs: Sequence[MetricSpec], numbers: Iterable[int]) -> list[Design]:
    """The designs by which the replicates of some specs are drawn."""
    by_design: dict[tuple[By | None, bool, bool], list[int]] = {}
    for number in numbers:
        spec = specs[number]
        by_design.setdefault((spec.by, is_stratified(spec), _reads_rows(spec)), []).append(number)
    return [Design(*key, tuple(own)) for key, own in by_design.items()]


def replicates_of(evaluated: Evaluated, design: Design, options: Options) -> Iterator[Replicates]:
    """Replicates of the specs of a design, in parts that fit into memory."""
    tally, columns = evaluated.evaluator.tally.in_few_parts(), design.by.columns if design.by else ()
    # a prior of one group says nothing about another
    strata = columns if design.stratified or options.interval == "bayes" else ()
    if design.of_rows:
        times = options.replicates_of_rows
        ordered, parts = drawn_indices(tally, columns, strata=strata, times=times, seed=options.seed)
        for row, replicate, count in parts:
            yield Replicates.of_rows(evaluated, design.specs, design.by, ordered, row, replicate, count)
        return
    if tally.clusters:
        drawn = drawn_clusters(tally, columns, times=options.replicates, seed=options.seed)
    else:
        method: Literal["bootstrap", "bayes"] = "bayes" if options.interval == "bayes" else "bootstrap"
        possible = possible_pairs(tally, options) if method == "bayes" else None
        drawn = drawn_labels(
            tally, columns, strata=strata, times=options.replicates, seed=options.seed, method=method, possible=possible
        )
    for sums in drawn.parts:
        yield Replicates.of_sums(evaluated, design.specs, design.by, drawn.tally, sums)


@dataclass(frozen=True, eq=False)
class Summary:
    """Limits and standard errors from replicates, as arrays of numbers."""

    lower: Floats
    upper: Floats
    error: Floats
    lost: Integers
    """The replicates without a number, or with fewer groups than the others."""
    is_alike: Booleans
    """Mask of the numbers that all replicates agree about."""

    @classmethod
    def of(cls, values: Floats, level: float, clusters: Integers | int | None) -> Summary:
        """The quantiles of replicates by numbers, nan where there are none; wider where clusters are few.

        `clusters` is their number, the same for all numbers or one for each.
        """
        known = ~np.isnan(values)
        lower, upper, error = np.full((3, values.shape[1]), np.nan)
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
                    lower[own], upper[own] = _quantiles(values[:, own], tail)
                    error[varying] = np.nanstd(values[:, varying], axis=0, ddof=1) * factor
        alike = _are_alike(np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
        return cls(lower, upper, error, len(values) - known.sum(axis=0), alike)

    def at(self, index: Array) -> Summary:
        """Those of some of the numbers."""
        return Summary(*(getattr(self, own.name)[index] for own in fields(self)))


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


@dataclass(frozen=True, eq=False)
class Draws:
    """The replicates of an evaluation."""

    uncertainty: Uncertainty

    @property
    def _evaluated(self) -> Evaluated:
        return self.uncertainty.evaluated

    @property
    def _options(self) -> Options:
        return self.uncertainty.options

    @property
    def _tally(self) -> Tally:
        return self.uncertainty.tally

    def _clusters_in(self, outer: Integers) -> Integers | None:
        """The number of the user's own clusters in some outer groups; None without any."""
        names = self._tally.cluster_names
        if not names:
            return None
        group_cells = self._evaluated.group_cells
        by, index = next(iter(group_cells.indices.items()))
        of_cell = group_cells.outer[group_cells.spans[by][0] + index.of_cell]
        cluster = placed(self._tally.cells, names)[0]
        distinct = np.unique(np.stack([of_cell, cluster]), axis=1)[0]
        return np.bincount(distinct, minlength=self.uncertainty.outers)[outer]

    def _designs(self, specs: Sequence[int], options: Options) -> Iterator[tuple[Design, Iterator[Replicates]]]:
        """The designs of some specs, and the replicates of each in parts."""
        check_drawn(self._tally, [self._evaluated.specs[number] for number in specs], options)
        for design in designs_of(self._evaluated.specs, specs):
            yield design, replicates_of(self._evaluated, design, options)

    # Values of groups

    def _values(self, specs: Sequence[int], options: Options) -> tuple[Summary, dict[int, int], Filled, Booleans]:
        """The summary of the values of some specs, nan for those of others, and the replicates of each spec.

        Beside these the values of filled cells, and a mask of the values that do not vary in either.
        """
        size = len(self.uncertainty.column("spec"))
        lower, upper, error = np.full((3, size), np.nan)
        lost, alike = np.full(size, -1), np.zeros(size, dtype=bool)
        times_of_spec: dict[int, int] = {}
        for design, drawn in self._designs(specs, options):
            parts = list(drawn)
            rows, values = parts[0].rows, np.concatenate([own.values for own in parts])
            summary = Summary.of(values, options.conf_level, self._clusters_in(self.uncertainty.column("outer")[rows]))
            lower[rows], upper[rows], error[rows] = summary.lower, summary.upper, summary.error
            lost[rows], alike[rows] = summary.lost, summary.is_alike
            times_of_spec |= dict.fromkeys(design.specs, len(values))
        filled = Filled.of(self.uncertainty, specs, z_value(options.conf_level))
        lone = self.lone | (alike & (filled.low == filled.high))
        return Summary(lower, upper, error, lost, alike), times_of_spec, filled, lone

    def estimators(self, specs: Sequence[int]) -> dict[int, Callable[[Integers], Smooth]]:
        """The estimates of the formulas of some specs, with errors from replicates and from empty cells."""
        if not specs:
            return {}
        summary, _, filled, lone = self._values(specs, self._options)
        z, value = z_value(self._options.conf_level), self.uncertainty.column("estimate")
        with np.errstate(invalid="ignore"):
            sides = ((value - filled.low) / z, (filled.high - value) / z)
        error = np.where(lone, np.nan, np.where(summary.error > 0, summary.error, 0.0))
        low_error, high_error = (np.hypot(error, np.nan_to_num(side)) for side in sides)

        def of(rows: Integers) -> Smooth:
            """The estimates of some values, whose errors empty cells add to on either side."""
            centre, freedom, scale = value[rows], np.full(len(rows), np.inf), Scale(-math.inf, math.inf)
            below, above = (centre, low_error[rows]), (centre, high_error[rows])
            widest = np.fmax(below[1], above[1])
            return Smooth(centre, widest, freedom, scale, below, above, kind="resampled")

        return {own: of for number in specs for own in self.uncertainty.of_spec(number)}

    def put_groups(self, formulas: Sequence[int], rows_shown: Booleans, intervals: Intervals) -> Integers:
        """Set the limits of the values of some formulas; the number of replicates that were lost."""
        column, formula_of = self.uncertainty.column, self.uncertainty.requested
        specs = list(dict.fromkeys(formula_of[number].spec for number in formulas))
        chosen = np.isin(column("requested"), formulas) & rows_shown & ~np.isnan(column("estimate"))
        rows = np.flatnonzero(chosen)
        together = np.ones(1)
        if self._options.simultaneous:
            runs = np.stack([column("requested")[rows], column("outer")[rows]])
            together = np.unique(runs, axis=1, return_counts=True)[1]
        options = _at_level_of(self._options, int(together.max(initial=1)))
        summary, times, filled, lone = self._values(specs, options)
        warn_of_few_clusters(self._tally)
        lost: list[tuple[str, int, int, int]] = []
        for row in rows[np.argsort(-summary.lost[rows], kind="stable")].tolist():
            spec, name = int(column("spec")[row]), formula_of[int(column("requested")[row])].name
            lost.append((name, spec, int(summary.lost[row]), times[spec]))
        self._warn_of_lost(lost)
        ends = (filled.low[rows], filled.high[rows])
        z = z_value(options.conf_level)
        self._put(rows, column("estimate")[rows], summary.at(rows), lone[rows], ends, z, intervals)
        return summary.lost

    def _put(
        self, index: Array, value: Floats, summary: Summary, lone: Booleans, ends: tuple[Floats, Floats], z: float,
        intervals: Intervals,
    ) -> None:  # fmt: skip
        """Set limits by replicates, no narrower than empty cells can make them."""
        lower, upper, error = summary.lower, summary.upper, summary.error
        known = ~(np.isnan(lower) | np.isnan(upper))
        if self._options.interval != "bayes":
            known &= ~lone
            with np.errstate(invalid="ignore"):
                wider = known & ((ends[0] < lower) | (ends[1] > upper))
                reach = np.fmax((value - ends[0]) / z, (ends[1] - value) / z)
            lower, upper = np.fmin(lower, ends[0]), np.fmax(upper, ends[1])
            # replicates that are all the same say nothing about how far values vary
            error = np.where(error > 0, np.where(wider, np.fmax(error, reach), error), np.nan)
        else:
            # as the modified interval of Jeffreys' prior, these include a rate of none or all of the rows
            lower, upper = np.fmin(lower, value), np.fmax(upper, value)
            wider = np.zeros(len(value), dtype=bool)
        own = index[known]
        intervals.put(own, (lower[known], upper[known]), error[known])
        method = "dirichlet" if self._options.interval == "bayes" else "bootstrap"
        intervals.named(method if clusters_of(self._tally) is None else "cluster bootstrap", own)
        intervals.named_further(", empty cells", index[known & wider])

    def _warn_of_lost(self, counts: Iterable[tuple[str, int, int, int]]) -> None:
        """Warn of metrics of which many replicates have no value, once for each metric and feature.

        `counts` has the metric and the spec of values, the replicates that were lost, and all of them.
        """
        messages: dict[tuple[str, str | None], str] = {}
        for name, spec, lost, times in counts:
            feature = self._evaluated.specs[spec].by
            by = feature.text if feature else None
            if lost > _MANY_LOST * times and (name, by) not in messages:
                messages[name, by] = (
                    f"{name}{f' by {by}' if by else ''}: in {lost} of {times} replicates a group has no value, and the "
                    "interval is of the others"
                )
        if messages and self._options.on_undefined == "warn":
            text = "; ".join(messages.values())
            warn(text + '. (on_undefined="ignore" silences this.)', UndefinedWarning)

    # Results

    def put_results(self, left: Booleans, value: Floats, intervals: Intervals) -> Integers:
        """Set the limits of some results; the number of replicates that were lost."""
        outers, options = self.uncertainty.outers, _at_level_of(self._options, 1)
        specs: list[int] = np.unique(np.flatnonzero(left) // outers).tolist()
        z = z_value(options.conf_level)
        lost = np.full(len(left), -1)
        counts: list[tuple[str, int, int, int]] = []
        for design, parts in self._designs(specs, options):
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
            index = np.flatnonzero(left & np.isin(np.arange(len(left)) // outers, design.specs))
            summary = Summary.of(values[:, index], options.conf_level, self._clusters_in(index % outers))
            lost[index] = summary.lost
            filled = Filled.of(self.uncertainty, design.specs, z)
            low, high = filled.of_results(index)
            ends = np.fmin(low, value[index]), np.fmax(high, value[index])
            lone = self.lone_results | self._has_alike(rows, lowest, highest, filled)
            lone = lone[index] | (summary.is_alike & (ends[0] == ends[1]))
            self._put(index, value[index], summary, lone, ends, z, intervals)
            if self._options.interval in {"auto", "bayes"}:
                self._without_false_ends(index, value[index], intervals)
            by_lost: list[int] = index[np.argsort(-lost[index], kind="stable")].tolist()
            for result in by_lost:
                spec = result // outers
                counts.append((self._evaluated.specs[spec].name, spec, int(lost[result]), len(values)))
        warn_of_few_clusters(self._tally)
        self._warn_of_lost(counts)
        return lost

    def _has_alike(self, rows: Integers, lowest: Floats, highest: Floats, filled: Filled) -> Booleans:
        """Mask of the results with a value that is the same in all replicates, and that filled cells do not move."""
        column, outers = self.uncertainty.column, self.uncertainty.outers
        is_valued = ~np.isnan(column("estimate")[rows]) & ~np.isnan(lowest)
        alike = is_valued & _are_alike(lowest, highest) & (filled.low[rows] == filled.high[rows])
        result = column("spec")[rows].astype(np.int64) * outers + column("outer")[rows]
        return np.bincount(result[alike], minlength=len(self._evaluated.specs) * outers) > 0

    def _without_false_ends(self, index: Array, value: Floats, intervals: Intervals) -> None:
        """Drop the end at which groups are equal: chance alone moves distances away from there.

        Replicates add chance once more, so that this end would exclude equality even where it is true.
        """
        results: list[int] = index.tolist()
        for result, own in zip(results, value.tolist(), strict=True):
            spec = self._evaluated.specs[result // self.uncertainty.outers]
            if np.isnan(intervals.lower[result]) or not spec.by:
                continue
            if spec.aggregate is None or not spec.aggregate.is_distance:
                continue
            at_top = spec.aggregate.direction == "maximize"
            end, words = (intervals.upper, ", lower end") if at_top else (intervals.lower, ", upper end")
            end[result] = np.nan
            # the other end includes the value, which quantiles of a low level need not
            other = intervals.lower if at_top else intervals.upper
            other[result] = min(other[result], own) if at_top else max(other[result], own)
            intervals.named_further(words, np.array([result]))

    # Values of a single row or cluster

    @cached_property
    def lone(self) -> Booleans:
        """Mask of the values of one row or cluster, so that all replicates are the same."""
        evaluated, column = self._evaluated, self.uncertainty.column
        lone = np.zeros(len(column("spec")), dtype=bool)
        codes, cells = KeyCodes(self._tally.cells), evaluated.evaluator.cells
        for number, requested in enumerate(self.uncertainty.requested):
            formula, spec = requested.formula, evaluated.specs[requested.spec]
            # how many rows there are is no value of theirs
            if not formula.reads:
                continue
            own = np.flatnonzero(column("requested") == number)
            lone[own] = column("n")[own] == 1
            of_rows = _reads_rows(spec)
            clusters = [key.column for key in self._tally.clusters if not of_rows or key.column.name != BLOCK]
            if clusters:
                index = evaluated.group_cells.indices[spec.by]
                counted = np.ones(len(cells.frame), dtype=bool)
                for role, labels in (("truth", cells.truth), ("estimate", cells.estimate)):
                    counted &= labels >= 0 if role in formula.reads and formula.kind == "class" else True
                unit = codes.index(self._tally.names(clusters), within=index).of_cell
                pairs = np.unique(np.stack([index.of_cell[counted], unit[counted]]), axis=1)
                number_of_units = np.bincount(pairs[0], minlength=len(index))
                first, _ = evaluated.group_cells.spans[spec.by]
                lone[own] |= number_of_units[column(GROUP_CELL)[own] - first] == 1
        return lone

    @cached_property
    def lone_results(self) -> Booleans:
        """Mask of the results with a lone value, or with fewer groups than their comparison needs."""
        evaluated, column, outers = self._evaluated, self.uncertainty.column, self.uncertainty.outers
        results = len(evaluated.specs) * outers
        valued = ~np.isnan(column("estimate"))
        result = column("spec").astype(np.int64) * outers + column("outer")
        has_lone = np.bincount(result[valued & self.lone], minlength=results) > 0
        groups = np.unique(np.stack([result[valued], column(GROUP_CELL)[valued]]), axis=1)[0]
        needed = [spec.aggregate.groups_needed if spec.aggregate else 1 for spec in evaluated.specs]
        return has_lone | (np.bincount(groups, minlength=results) < np.repeat(needed, outers))


def _at_level_of(options: Options, groups: int) -> Options:
    """The options at the level of one of some groups whose limits hold at once, with replicates beyond either end."""
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
