"""Intervals by replicates: quantiles and standard errors of values and comparisons, and what replicates do not show.

Replicates leave empty cells of truth and estimate empty, so that a group without errors has none in any of them. If
none of n rows is in a cell, the share of that cell may be as large as z² / (n + z²) (Wilson, 1927): the share that z²
more rows in it have. So values are computed again with as many rows in each empty cell, and limits include them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, ClusterWarning, UndefinedWarning, warn
from tidyfair.evaluation.evaluated import labels_with_scores
from tidyfair.evaluation.group_cells import number_group_cells
from tidyfair.evaluation.group_index import KeyCodes
from tidyfair.evaluation.replicates import Replicates
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.comparisons import Intervals
from tidyfair.intervals.estimates import Resampled
from tidyfair.intervals.proportions import student, z_value
from tidyfair.intervals.resampling import drawn_clusters, drawn_indices, drawn_labels, with_pairs
from tidyfair.tallies.tally import BLOCK, ESTIMATE, HIDDEN, LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.intervals.uncertainty import Uncertainty
    from tidyfair.specs.groups import By
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.options import Options
    from tidyfair.specs.segments import Array, Booleans, Floats, Integers
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_MANY_LOST = 0.05
_FEW_CLUSTERS = 30
_LEAST_BEYOND = 4
"""The fewest replicates beyond each end of an interval."""
_MOST_FILLED = 10_000
"""The most replicates with filled cells; with more than a hundred labels not all pairs are filled."""


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
        by_design.setdefault((spec.by, is_stratified(spec), _of_rows(spec)), []).append(number)
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
    """What replicates say about numbers: arrays of these."""

    lower: Floats
    upper: Floats
    error: Floats
    lost: Integers
    """The replicates without a number, or with fewer groups than the others."""
    is_alike: Booleans
    """Mask of the numbers that all replicates agree about."""

    @classmethod
    def of(cls, values: Floats, level: float, clusters: int | None) -> Summary:
        """The quantiles of replicates by numbers, nan where there are none; wider where clusters are few."""
        import numpy as np

        tail, factor = tail_of(level, clusters)
        known = ~np.isnan(values)
        lower, upper, error = np.full((3, values.shape[1]), np.nan)
        some = known.any(axis=0)
        if some.any():
            quantile = np.quantile if known[:, some].all() else np.nanquantile
            with np.errstate(invalid="ignore"):
                lower[some], upper[some] = quantile(values[:, some], [tail, 1 - tail], axis=0)
            several = known.sum(axis=0) > 1
            with np.errstate(invalid="ignore"):
                error[several] = np.nanstd(values[:, several], axis=0, ddof=1) * factor
        alike = _are_alike(np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
        return cls(lower, upper, error, len(values) - known.sum(axis=0), alike)

    def at(self, index: Array) -> Summary:
        """What they say about some of the numbers."""
        return Summary(*(getattr(self, own.name)[index] for own in fields(self)))


def _are_alike(least: Floats, most: Floats) -> Booleans:
    """Mask of numbers whose replicates differ by rounding only."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        # infinity minus itself is not a number
        return (least == most) | (most - least <= _ROUNDED * np.maximum(np.abs(least), np.abs(most)))


def _of_results(replicates: Replicates) -> tuple[Array, ...]:
    """The results of replicates, their numbers of groups, and the extremes of the values that they are made of."""
    import numpy as np

    values = replicates.values
    lowest, highest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    return replicates.results, replicates.known, replicates.rows, lowest, highest


def tail_of(level: float, clusters: int | None) -> tuple[float, float]:
    """The share of replicates beyond each limit, and the factor of standard errors.

    With clusters limits are wider, as the interval of Student's t is (Hesterberg, 2015).
    """
    if clusters is None:
        return (1 - level) / 2, 1.0
    factor = math.sqrt(clusters / max(1, clusters - 1))
    return math.erfc(factor * student(level, max(1, clusters - 1)) / math.sqrt(2)) / 2, factor


def clusters_of(tally: Tally) -> int | None:
    """The number of the user's own clusters; None without any."""
    names = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    return tally.cells.select(names).n_unique() if names else None


def warn_of_few_clusters(tally: Tally) -> None:
    """Warn of intervals from few clusters."""
    clusters = clusters_of(tally)
    if clusters is not None and 0 < clusters < _FEW_CLUSTERS:
        msg = f"There are {clusters} clusters; intervals from fewer than {_FEW_CLUSTERS} are not to be relied on."
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

    # Values of groups

    def _values(self, specs: Iterable[int], options: Options) -> tuple[Summary, dict[int, int]]:
        """What replicates say about the values of some specs, of which those of others are not looked at."""
        import numpy as np

        size = len(self.uncertainty.column("spec"))
        lower, upper, error = np.full((3, size), np.nan)
        lost, alike = np.full(size, -1), np.zeros(size, dtype=bool)
        times_of_spec: dict[int, int] = {}
        check_drawn(self._tally, [self._evaluated.specs[number] for number in specs], options)
        for design in designs_of(self._evaluated.specs, specs):
            parts = list(replicates_of(self._evaluated, design, options))
            rows, values = parts[0].rows, np.concatenate([own.values for own in parts])
            summary = Summary.of(values, options.conf_level, clusters_of(self._tally))
            lower[rows], upper[rows], error[rows] = summary.lower, summary.upper, summary.error
            lost[rows], alike[rows] = summary.lost, summary.is_alike
            times_of_spec |= dict.fromkeys(design.specs, len(values))
        return Summary(lower, upper, error, lost, alike), times_of_spec

    def estimators(self, levels: Mapping[int, float]) -> dict[int, Callable[[Integers], Resampled]]:
        """The estimates of the formulas of some specs, with errors from replicates.

        Empty cells are filled at so many standard errors for each spec.
        """
        import numpy as np

        if not levels:
            return {}
        summary, _ = self._values(levels, self._options)
        filled = Filled.of(self, levels)
        value = self.uncertainty.column("estimate")
        with np.errstate(invalid="ignore"):
            below, above = ((value - filled.low) / filled.z, (filled.high - value) / filled.z)

        def of(rows: Integers) -> Resampled:
            is_known = summary.error[rows] > 0
            sides = (np.nan_to_num(side[rows]) for side in (below, above))
            lone = self.lone[rows] | (summary.is_alike[rows] & (filled.low[rows] == filled.high[rows]))
            error = np.where(lone, np.nan, np.where(is_known, summary.error[rows], 0.0))
            return Resampled(value[rows], error, *sides)

        return {own: of for number in levels for own in self.uncertainty.of_spec(number)}

    def put_groups(self, formulas: Sequence[int], rows_shown: Booleans, intervals: Intervals) -> Integers:
        """Set the limits of the values of some formulas; the number of replicates that were lost."""
        import numpy as np

        specs = list(dict.fromkeys(self.uncertainty.requested[number].spec for number in formulas))
        chosen = np.isin(self.uncertainty.column("requested"), formulas) & rows_shown
        chosen &= ~np.isnan(self.uncertainty.column("estimate"))
        options = self._options
        if options.simultaneous:
            outer = self.uncertainty.column("outer")[chosen] + 0
            requested = self.uncertainty.column("requested")[chosen]
            together = np.unique(np.stack([requested, outer]), axis=1, return_counts=True)[1]
            options = _at_level_of(options, int(together.max(initial=1)))
        summary, times = self._values(specs, options)
        warn_of_few_clusters(self._tally)
        rows = np.flatnonzero(chosen)
        self._warn_of_lost(rows, summary.lost, times)
        z = z_value(options.conf_level)
        filled = Filled.of(self, dict.fromkeys(specs, z))
        lone = self.lone[rows] | (summary.is_alike[rows] & (filled.low[rows] == filled.high[rows]))
        ends = (filled.low[rows], filled.high[rows])
        self._put(rows, self.uncertainty.column("estimate")[rows], summary.at(rows), lone, ends, z, intervals)
        return summary.lost

    def _put(
        self, index: Array, value: Floats, summary: Summary, lone: Booleans, ends: tuple[Floats, Floats], z: float,
        intervals: Intervals,
    ) -> None:  # fmt: skip
        """Set limits by replicates, no narrower than empty cells can make them."""
        import numpy as np

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
            wider = np.zeros(len(value), dtype=bool)
        own = index[known]
        intervals.put(own, (lower[known], upper[known]), error[known])
        intervals.named(self.method, own)
        intervals.named_further(", empty cells", index[known & wider])

    @property
    def method(self) -> str:
        """The name of the method."""
        if clusters_of(self._tally) is not None:
            return "cluster bootstrap"
        return "dirichlet" if self._options.interval == "bayes" else "bootstrap"

    def _warn_of_lost(self, rows: Array, lost: Integers, times: dict[int, int]) -> None:
        """Warn of values that many replicates do not have."""
        messages: dict[tuple[str, str | None], str] = {}
        spec, requested = self.uncertainty.column("spec"), self.uncertainty.column("requested")
        for row in sorted(rows.tolist(), key=lambda row: -int(lost[row])):
            own = self._evaluated.specs[int(spec[row])]
            name = self.uncertainty.requested[int(requested[row])].name
            _add_message(messages, name, own, int(lost[row]), times[int(spec[row])])
        self._warn(messages)

    def _warn(self, messages: dict[tuple[str, str | None], str]) -> None:
        if messages and self._options.on_undefined == "warn":
            text = "; ".join(messages.values())
            warn(text + '. (on_undefined="ignore" silences this.)', UndefinedWarning)

    # Results

    def put_results(self, left: Booleans, value: Floats, intervals: Intervals) -> Integers:
        """Set the limits of some results; the number of replicates that were lost."""
        import numpy as np

        outers, options = self.uncertainty.outers, self._options
        specs = np.unique(np.flatnonzero(left) // outers).tolist()
        check_drawn(self._tally, [self._evaluated.specs[number] for number in specs], options)
        lost = np.full(len(left), -1)
        messages: dict[tuple[str, str | None], str] = {}
        for design in designs_of(self._evaluated.specs, specs):
            drawn = [_of_results(own) for own in replicates_of(self._evaluated, design, options)]
            values, known = (np.concatenate([part[number] for part in drawn]) for number in (0, 1))
            # a comparison of fewer groups is another one
            values = np.where(known == known.max(axis=0, initial=0), values, np.nan)
            index = np.flatnonzero(left & np.isin(np.arange(len(left)) // outers, design.specs))
            summary = Summary.of(values[:, index], options.conf_level, clusters_of(self._tally))
            lost[index] = summary.lost
            filled = Filled.of(self, dict.fromkeys(design.specs, z_value(options.conf_level)))
            lowest, highest = (np.array([part[number] for part in drawn]) for number in (3, 4))
            has_alike = self._has_alike(drawn[0][2], np.fmin.reduce(lowest), np.fmax.reduce(highest), filled)
            self._put_results(index, value[index], summary, filled, has_alike[index], intervals)
            for result in sorted(index.tolist(), key=lambda result: -int(lost[result])):
                spec = self._evaluated.specs[result // outers]
                _add_message(messages, spec.name, spec, int(lost[result]), len(values))
        warn_of_few_clusters(self._tally)
        self._warn(messages)
        return lost

    def _has_alike(self, rows: Integers, lowest: Floats, highest: Floats, filled: Filled) -> Booleans:
        """Mask of the results with a value that is the same in all replicates, and that filled cells do not move."""
        import numpy as np

        column, outers = self.uncertainty.column, self.uncertainty.outers
        is_valued = ~np.isnan(column("estimate")[rows]) & ~np.isnan(lowest)
        alike = is_valued & _are_alike(lowest, highest) & (filled.low[rows] == filled.high[rows])
        result = column("spec")[rows].astype(np.int64) * outers + column("outer")[rows]
        return np.bincount(result[alike], minlength=len(self._evaluated.specs) * outers) > 0

    def _put_results(
        self, index: Array, value: Floats, summary: Summary, filled: Filled, has_alike: Booleans, intervals: Intervals
    ) -> None:
        """Set the limits of the results of a design."""
        import numpy as np

        ends = tuple(np.where(np.isnan(end), value, end) for end in filled.of_results(index))
        lone = self.lone_results[index] | has_alike | (summary.is_alike & (ends[0] == ends[1]))
        z = z_value(self._options.conf_level)
        self._put(index, value, summary, lone, (ends[0], ends[1]), z, intervals)
        if self._options.interval in {"auto", "bayes"}:
            self._without_false_ends(index, value, intervals)

    def _without_false_ends(self, index: Array, value: Floats, intervals: Intervals) -> None:
        """Drop the end at which groups are equal: chance alone moves distances away from there.

        Replicates add chance once more, so that this end would exclude equality even where it is true.
        """
        import numpy as np

        for result, own in zip(index.tolist(), value.tolist(), strict=True):
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
        import numpy as np

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
            of_rows = _of_rows(spec)
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
        import numpy as np

        evaluated, column, outers = self._evaluated, self.uncertainty.column, self.uncertainty.outers
        results = len(evaluated.specs) * outers
        valued = ~np.isnan(column("estimate"))
        result = column("spec").astype(np.int64) * outers + column("outer")
        has_lone = np.bincount(result[valued & self.lone], minlength=results) > 0
        groups = np.unique(np.stack([result[valued], column(GROUP_CELL)[valued]]), axis=1)[0]
        needed = [spec.aggregate.groups_needed if spec.aggregate else 1 for spec in evaluated.specs]
        return has_lone | (np.bincount(groups, minlength=results) < np.repeat(needed, outers))


def _add_message(
    messages: dict[tuple[str, str | None], str], name: str, spec: MetricSpec, lost: int, times: int
) -> None:
    """Add the message about a metric of which many replicates have no value, once for each metric and feature."""
    by = spec.by.text if spec.by else None
    if lost > _MANY_LOST * times and (name, by) not in messages:
        messages[name, by] = (
            f"{name}{f' by {by}' if by else ''}: in {lost} of {times} replicates a group has no value, and the "
            "interval is of the others"
        )


def _at_level_of(options: Options, groups: int) -> Options:
    """The options at the level at which replicates have limits that hold for all of some groups at once."""
    level = options.conf_level ** (1 / groups)
    least = math.ceil(_LEAST_BEYOND * 2 / (1 - level))
    if options.times is None:
        return replace(options, conf_level=level, times=max(least, options.replicates_of_rows))
    if groups > 1 and options.times < least:
        msg = (
            f"`times={options.times}` replicates do not show the ends of simultaneous intervals of {groups} groups, "
            f"each at the level {level:.6g}: take `times={least}` or more."
        )
        raise ArgumentError(msg)
    return replace(options, conf_level=level)


# Empty cells


@dataclass(frozen=True, eq=False)
class Filled:
    """The smallest and the largest value of groups with empty cells filled; the values where nothing is filled."""

    draws: Draws
    low: Floats
    high: Floats
    z: Floats
    """The standard errors at which cells are filled."""

    @classmethod
    def of(cls, draws: Draws, levels: Mapping[int, float]) -> Filled:
        """Fill the empty cells of the values of some specs of labels, at so many standard errors for each."""
        import numpy as np

        uncertainty = draws.uncertainty
        value = uncertainty.column("estimate")
        filled = cls(draws, value.copy(), value.copy(), np.ones(len(value)))
        spec = uncertainty.column("spec")
        for number, z in levels.items():
            filled.z[spec == number] = z
        if uncertainty.options.interval not in {"auto", "bootstrap"}:
            return filled
        by_feature: dict[tuple[By | None, bool, float], list[int]] = {}
        for number, z in levels.items():
            own = uncertainty.evaluated.specs[number]
            if is_of_labels(own) and HIDDEN not in uncertainty.tally.cells.columns:
                compares = any(formula.compares for _, formula in own.formulas)
                by_feature.setdefault((own.by, compares, z), []).append(number)
        for (by, compares, z), numbers in by_feature.items():
            for replicates in _filled(uncertainty, by, numbers, z, one_at_a_time=compares):
                filled._add(replicates)
        return filled

    def _add(self, replicates: Replicates) -> None:
        """Include the values of some replicates."""
        import numpy as np

        values, rows = replicates.values, replicates.rows
        values = np.where(np.isfinite(values), values, np.nan)
        near = _ROUNDED * np.abs(self.draws.uncertainty.column("estimate")[rows])
        low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        with np.errstate(invalid="ignore"):
            self.low[rows] = np.where(low < self.low[rows] - near, low, self.low[rows])
            self.high[rows] = np.where(high > self.high[rows] + near, high, self.high[rows])

    def of_results(self, results: Array) -> tuple[Floats, Floats]:
        """The smallest and the largest result if one group, or all of them, have values of filled cells."""
        import numpy as np

        uncertainty = self.draws.uncertainty
        evaluated, outers = uncertainty.evaluated, uncertainty.outers
        ends = np.full((2, len(results)), np.nan)
        spec, outer = uncertainty.column("spec"), uncertainty.column("outer")
        value = uncertainty.column("estimate")
        for position, result in enumerate(results.tolist()):
            number, own = divmod(result, outers)
            rows = np.flatnonzero((spec == number) & (outer == own) & ~np.isnan(value))
            if evaluated.specs[number].aggregate is None:
                ends[:, position] = self.low[rows[0]], self.high[rows[0]]
                continue
            moved = self._moved(rows)
            if moved is not None:
                compared = Replicates.of_values(evaluated, rows, moved, {}).results[:, result]
                finite = compared[np.isfinite(compared)]
                if len(finite):
                    ends[:, position] = finite.min(), finite.max()
        return ends[0], ends[1]

    def _moved(self, rows: Integers) -> Floats | None:
        """The values of an outer group with filled cells in one group, or in all of them; None if none moves."""
        import numpy as np

        from tidyfair.intervals.resampling import MOST_CELLS  # noqa: PLC0415

        value, cells = self.draws.uncertainty.column("estimate")[rows], self.draws.uncertainty.column(GROUP_CELL)[rows]
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
    import numpy as np

    evaluated, tally, options = uncertainty.evaluated, uncertainty.tally, uncertainty.options
    columns = by.columns if by else ()
    cells = with_pairs(tally, columns, label_pairs(tally, options))
    index = number_group_cells(cells, evaluated.labels, [by])[0].indices[by].of_cell
    weighted = "w" in cells.cells.columns
    rows = cells.cells["n"].to_numpy()
    weight = cells.cells["w" if weighted else "n"].to_numpy().astype(float)
    square = cells.cells["w2" if weighted else "n"].to_numpy().astype(float)
    groups = int(index.max(initial=-1)) + 1
    total, squares = (np.bincount(index, own, groups) for own in (weight, square))
    with np.errstate(divide="ignore", invalid="ignore"):
        row = np.nan_to_num(squares / total)
    each = z**2 * _weight_of_a_unit(tally, evaluated, by, row)
    empty = np.flatnonzero((rows == 0) & (cells.cells[LABELS[0]].is_not_null() | cells.cells[LABELS[1]].is_not_null()).to_numpy())
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
    step = max(1, _MOST_CELLS // len(rows))
    for start in range(0, count, step):
        size = min(step, count - start)
        own = (replicate >= start) & (replicate < start + size)
        filled = np.tile(weight, (size, 1))
        filled[replicate[own] - start, cell[own]] += added[own]
        occupied = np.tile(np.maximum(rows, 0), (size, 1))
        occupied[replicate[own] - start, cell[own]] = 1
        # the weight of a group stays the same
        sums = np.stack([np.bincount(index, one, groups) for one in filled])
        with np.errstate(divide="ignore", invalid="ignore"):
            filled *= np.nan_to_num(total / sums)[:, index]
        drawn = {"n": occupied, "w": filled, "w2": filled * row[index]}
        yield Replicates.of_sums(evaluated, specs, by, cells, drawn)


_MOST_CELLS = 2**21


def _weight_of_a_unit(tally: Tally, evaluated: Evaluated, by: By | None, row: Floats) -> Floats:
    """The weight of a row, or of a cluster, of each group, if all were equal and effectively as many."""
    import numpy as np

    clusters = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    if not clusters:
        return row
    index, cells = evaluated.group_cells.indices[by], evaluated.evaluator.cells
    unit = KeyCodes(tally.cells).index(clusters, within=index)
    weight = np.bincount(unit.of_cell, cells.measure("w"), len(unit))
    group = index.of_cell[unit.example]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.bincount(group, weight**2) / np.bincount(group, weight))


# Labels


def possible_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All pairs of true and predicted label that are possible or occur."""
    return pl.concat([label_pairs(tally, options), tally.cells.select(LABELS)], how="vertical_relaxed").unique()


def label_pairs(tally: Tally, options: Options) -> pl.DataFrame:
    """All possible pairs of true and predicted label."""
    labels = labels_with_scores(
        tally, labels=options.labels, pos_label=options.pos_label, estimator=options.estimator,
        allow_unseen=True,
    )  # fmt: skip
    sides: list[pl.DataFrame] = []
    for name in LABELS:
        column = tally.cells[name]
        distinct = column.drop_nulls().unique()
        if name == ESTIMATE and tally.cut is not None:
            values = pl.Series([False, True]) if column.dtype == pl.Boolean else distinct
        else:
            values = pl.Series(list(labels.values)).cast(column.dtype) if len(distinct) else column.clear(1)
        sides.append(pl.DataFrame({name: values}))
    return sides[0].join(sides[1], how="cross")


# What has replicates


def check_drawn(tally: Tally, specs: Sequence[MetricSpec], options: Options) -> None:
    """Refuse specs that have no replicates."""
    for spec in specs:
        of_rows = _of_rows(spec)
        prior_of = "rows" if of_rows else "clusters" if tally.clusters else "weights" if tally.weights else None
        reasons = {
            "groups of which are suppressed": HIDDEN in tally.cells.columns,
            "which reads rows in the order in which they stand": tally.needs.order and of_rows,
            "of which only bins of scores were counted": tally.binned and of_rows,
            "which compares each row with its neighbours, so that rows and clusters do not vary independently":
                any(formula.reads_neighbors for _, formula in spec.formulas),
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


def _of_rows(spec: MetricSpec) -> bool:
    """Check whether replicates need the rows, because counts and sums are not enough."""
    return any(formula.input != "sums" and formula.kind != "class" for _, formula in spec.formulas)


def is_of_labels(spec: MetricSpec) -> bool:
    """Check whether counts of labels are enough for a spec."""
    return all(formula.kind == "class" and not formula.all_terms for _, formula in spec.formulas)


def is_stratified(spec: MetricSpec) -> bool:
    """Check whether replicates keep the sizes of groups: not where these are part of a metric."""
    aggregate = spec.aggregate
    shares = aggregate is not None and (aggregate.contexts or aggregate.reads_weight)
    return spec.by is not None and not shares and not any(formula.compares for _, formula in spec.formulas)
