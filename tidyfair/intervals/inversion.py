"""Limits of distances that are not of pairs, such as spreads and a user's own, by inverting tests.

Chance only adds to a distance, and does so twice in replicates, which therefore do not show how small it may be. So
groups are taken to be more or less spread about their mean, in the pattern that they have: the limits are the spreads
at which so large, or so small, a distance is as rare as the level says (Garthwaite and Buckland, 1992). A second
pattern leaves out what chance alone may add, because shrinking all groups alike misses one outlier among equal ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from tidyfair.evaluation import LEVEL, Replicates
from tidyfair.intervals.comparisons import Intervals
from tidyfair.intervals.estimates import Shares
from tidyfair.intervals.resampling import generator
from tidyfair.intervals.uncertainty import Uncertainty
from tidyfair.specs import CONTEXTS, Aggregate, Array, Booleans, Floats, Integers, Segments

_SPREADS = 9
"""The spreads at which distances are drawn."""
_DRAWS = 400
_BEYOND = 4
"""The distance of the largest spread that is tried from the observed one, in standard errors."""
_MOST_NUMBERS = 2**22
_ROUNDED = 1e-12
"""The relative difference of distances that are the same is smaller."""


class Spread:
    """The values of the groups of a spec, more or less spread about their means, in some outer groups."""

    def __init__(self, uncertainty: Uncertainty, number: int, chosen: Booleans) -> None:
        column = uncertainty.column
        parts = {own: uncertainty.rows(own) for own in uncertainty.of_spec(number)}
        parts = {own: rows[chosen[column("outer")[rows]]] for own, rows in parts.items()}
        rows = np.concatenate([*parts.values()])
        order = np.argsort(column("outer")[rows], kind="stable")
        estimates = [uncertainty.estimates(own, part) for own, part in parts.items() if len(part)]

        def in_order(columns: Iterable[Floats]) -> Floats:
            """A column of all values, in the order of outer groups."""
            return np.concatenate(
                [np.broadcast_to(part, len(own)) for part, own in zip(columns, estimates, strict=True)]
            )[order]

        self._number, self._rows = number, rows[order]
        self._replicates = Replicates(uncertainty.evaluated, self._rows, {})
        self._options, self._outers = uncertainty.options, uncertainty.outers
        self._aggregate: Aggregate | None = uncertainty.evaluated.specs[number].aggregate
        self._error = in_order(own.error for own in estimates)
        self._size = in_order(own.rows if isinstance(own, Shares) else np.array(np.inf) for own in estimates)
        self._bounds = tuple(in_order(own.bounds[end] for own in estimates) for end in (0, 1))
        # the estimates of groups that share clusters
        has_shared = len(estimates) == 1 and estimates[0].influences is not None
        self._correlated = estimates[0].at(order) if has_shared else None
        self._outer = column("outer")[self._rows].astype(np.int64)
        self._segments = Segments.of(self._outer)
        self._value, self._weight = column("estimate")[self._rows], uncertainty.weights(self._rows)
        # the groups of a metric and a label, in each outer group
        codes = (self._outer, column("requested")[self._rows], column(LEVEL)[self._rows])
        self._family = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
        names = [name for name in CONTEXTS if name in uncertainty.evaluated.values]
        self._contexts = {name: column(name)[self._rows] for name in names}
        self._centre = self._means(self._value[None])[0]

    def _means(self, values: Floats) -> Floats:
        """The weighted mean of the groups of each family, for each of its groups: arrays of any number by groups."""
        sums = np.stack([np.bincount(self._family, own * self._weight) for own in values])
        return (sums / np.bincount(self._family, self._weight))[:, self._family]

    def _distances(self, values: Floats) -> Floats:
        """The distances of groups with some values, larger for more spread: arrays of any number by outer groups."""
        moved = {"estimate": values}
        for name, observed in self._contexts.items():
            # what groups are compared with moves as the mean of all groups, or of all others, does
            now, before = (self._means_of_context(name, own) for own in (values, self._value[None]))
            moved[name] = observed + now - before
        results = replace(self._replicates, columns=moved).results
        own = results[:, self._number * self._outers : (self._number + 1) * self._outers]
        return -own if self._is_maximized else own

    @property
    def _is_maximized(self) -> bool:
        """True if more spread means a smaller number."""
        return self._aggregate is not None and self._aggregate.direction == "maximize"

    def _means_of_context(self, name: str, values: Floats) -> Floats:
        """The mean of all groups, or of all other groups of the family."""
        mean = self._means(values)
        if name == "overall":
            return mean
        share = self._weight / np.bincount(self._family, self._weight)[self._family]
        with np.errstate(divide="ignore", invalid="ignore"):
            return (mean - share * values) / (1 - share)

    def put(self, intervals: Intervals) -> Booleans:
        """Set the limits; a mask of the outer groups that have some."""
        known = ~np.isnan(self._error) & np.isfinite(self._value)
        usable = np.zeros(self._outers, dtype=bool)
        usable[self._outer[self._segments.starts]] = self._segments.all(known) & (self._segments.sizes > 1)
        observed = self._distances(self._value[None])[0]
        usable &= np.isfinite(observed)
        lower, upper = observed.copy(), observed.copy()
        away = self._value - self._centre
        groups = np.bincount(self._family)[self._family]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(1 - 2 * np.log(groups) * (self._error / away) ** 2, nan=0.0, neginf=0.0)
        # the distances of groups from their means; and without what chance alone may add (Breiman, 1995)
        for pattern in (away, away * np.maximum(share, 0)):
            for ends, end in zip((lower, upper), self._ends(pattern, observed, usable), strict=True):
                ends[:] = np.fmin(ends, end) if ends is lower else np.fmax(ends, end)
        index = np.flatnonzero(usable)
        limits = (-upper[index], -lower[index]) if self._is_maximized else (lower[index], upper[index])
        intervals.put(index, limits)
        return usable

    def _ends(self, pattern: Floats, observed: Floats, usable: Booleans) -> tuple[Floats, Floats]:
        """The distances at the least and the largest spread in a pattern that the observed one does not exclude."""
        to_rows = self._segments.to_rows
        size: Floats = to_rows(self._root_mean_square(pattern))
        # all groups are equal: some lie above others in the order of their errors
        line: Floats = self._rank(self._error, self._value) - (to_rows(self._segments.sizes) - 1) / 2
        with np.errstate(invalid="ignore"):
            size_of_line: Floats = to_rows(self._root_mean_square(line))
            # a group by itself is at its mean
            unit = np.where(size > 0, pattern, line) / np.where(size > 0, size, size_of_line)
        error = self._errors(self._value)
        reach = self._root_mean_square(self._value - self._centre) + _BEYOND * self._root_mean_square(error)
        share = np.linspace(0, 1, _SPREADS)
        low, high, usual = self._quantiles(self._centre + share[:, None] * to_rows(reach) * unit)
        spreads = np.zeros((2, len(self._segments.starts)))
        for position, outer in enumerate(self._outer[self._segments.starts].tolist()):
            if not usable[outer]:
                continue
            # a distance that equals a quantile but for rounding is as rare as it
            own, rounding = float(observed[outer]), _ROUNDED * abs(float(observed[outer]))
            nearer, farther = own - rounding, own + rounding
            least = 0.0 if nearer <= high[0, outer] else np.interp(nearer, high[:, outer], share)
            # groups nearer to each other than chance leaves equal ones say no more than equal ones usually do
            spreads[:, position] = least, np.interp(max(farther, usual[outer]), low[:, outer], share)
        moved = np.stack([self._centre + to_rows(own * reach) * unit for own in spreads])
        ends = self._distances(moved.clip(*self._bounds))
        # the distance of equal groups is known without rounding
        equality = 0.0 if self._aggregate is None else self._aggregate.equality or 0.0
        is_equal = np.zeros((2, self._outers), dtype=bool)
        is_equal[:, self._outer[self._segments.starts]] = spreads == 0
        equality = -equality if self._is_maximized else equality
        return np.where(is_equal[0], equality, ends[0]), np.where(is_equal[1], equality, ends[1])

    def _rank(self, first: Floats, then: Floats) -> Integers:
        """The place of each group in its outer group by two numbers, whatever the names of groups."""
        rank = np.empty(len(first), dtype=np.int64)
        order = np.lexsort((then, first, self._outer))
        rank[order] = np.arange(len(order)) - self._segments.to_rows(self._segments.starts)
        return rank

    def _root_mean_square(self, numbers: Floats) -> Floats:
        """The root of the mean square of each outer group."""
        return np.sqrt(self._segments.sum(numbers**2) / self._segments.sizes)

    def _quantiles(self, centres: Floats) -> tuple[Floats, Floats, Floats]:
        """The quantiles of distances at some values of groups, which rise with spread: spreads by outer groups.

        With them, the median without any spread.
        """
        tail = (1 - self._options.conf_level) / 2
        quantiles, usual = np.full((2, len(centres), self._outers), np.nan), np.full(self._outers, -np.inf)
        normals = self._normals()
        for number, centre in enumerate(centres.clip(*self._bounds)):
            drawn = np.concatenate([self._distances(part) for part in self._drawn(centre, normals)])
            some = ~np.isnan(drawn).all(axis=0)
            with np.errstate(invalid="ignore"):
                quantiles[:, number, some] = np.nanquantile(drawn[:, some], [tail, 1 - tail], axis=0)
                if number == 0:
                    usual[some] = np.nanmedian(drawn[:, some], axis=0)
        low, high = np.maximum.accumulate(np.nan_to_num(quantiles, nan=-np.inf), axis=1)
        return low, high, usual

    def _normals(self) -> Array:
        """Normal deviations of groups, which do not depend on their names nor on the other outer groups."""
        most = int(self._segments.sizes.max())
        # the first of them are the same for any number of groups
        normals = generator(self._options.seed, "spreads").standard_normal((most, _DRAWS)).T
        normals = normals[:, self._rank(self._value, self._error)]
        if self._correlated is None:
            return normals
        for start, size in zip(self._segments.starts.tolist(), self._segments.sizes.tolist(), strict=True):
            own = slice(start, start + size)
            # the groups of an outer group share clusters
            one, other = (index.ravel() + start for index in np.indices((size, size)))
            correlations = np.where(one == other, 1.0, self._correlated.correlation_of(one, other))
            # the symmetric root of the matrix
            values, vectors = np.linalg.eigh(np.nan_to_num(correlations.reshape(size, size)))
            normals[:, own] = normals[:, own] @ ((vectors * np.sqrt(values.clip(0))) @ vectors.T)
        return normals

    def _errors(self, values: Floats) -> Floats:
        """The standard errors of groups at some values; a rate is taken to be half a row from 0 and 1 at least."""
        half = 0.5 / self._size
        share = np.clip(values, half, 1 - half)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(self._size), np.sqrt(share * (1 - share) / self._size), self._error)

    def _drawn(self, centre: Floats, normals: Array) -> Iterator[Floats]:
        """Values of groups as they might be by chance, as many at once as fit into memory."""
        is_share = np.isfinite(self._size)
        size = np.where(is_share, self._size, 1.0)
        rows = np.maximum(np.round(size), 1)
        # the root of a rate has an arcsine whose error is the same for all rates, however few the rows (Anscombe, 1948)
        angle = np.arcsin(np.sqrt(np.where(is_share, centre, 0.0)))
        step = max(1, _MOST_NUMBERS // len(centre))
        for start in range(0, _DRAWS, step):
            own = normals[start : start + step]
            share = np.sin((angle + own / (2 * np.sqrt(size))).clip(0, np.pi / 2)) ** 2
            share = np.round(share * rows) / rows
            yield np.where(is_share, share, (centre + self._error * own).clip(*self._bounds))
