"""Limits of comparisons between groups, in all outer groups at once.

A family is a metric (for one label) in the groups of all outer groups; comparisons are functions of index arrays of its
pairs. The largest distance of several pairs is never below zero and grows with their number, so that its lower limit
holds for all pairs at once, and its upper limit where two groups are so far apart and all others lie between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.intervals.critical_values import distance_of_pairs, errors_needed, z_of_groups
from tidyfair.intervals.estimates import Estimates, Shares, Surveyed
from tidyfair.intervals.proportions import Limits, z_value
from tidyfair.intervals.shares import share_of
from tidyfair.specs import NO_ROW, Aggregate, Array, Booleans, Contrast, Extreme, Floats, Integers, Segments
from tidyfair.specs.formulas import Formula

Form: TypeAlias = Callable[[Floats, Floats, Floats, Floats, float], Limits]
"""Limits of the difference or ratio of two rates, from these, their rows, and the standard errors."""

Scale: TypeAlias = Literal["difference", "ratio", "odds_ratio"]
"""Ways to compare two values."""
SCALES = ("difference", "ratio", "odds_ratio")
EQUALITY = {"difference": 0.0, "ratio": 1.0, "odds_ratio": 1.0}
"""The value of equal groups."""
_FARTHEST = 40.0
"""Standard errors of a normal distribution beyond which no probability is left."""
_NEAREST = 1e-6
"""Standard errors that are next to none; without any, the odds of a rate of 0 have no limits."""
_PRECISION = 1e-9
_MANY_GROUPS = 200
"""Of more groups, ranges have the limits of all groups at once, which are hardly wider then."""
_FEW = 5
"""The expected hits and misses of each group from which on the largest of several rates is about normal."""
_MOST_PAIRS = 2**20
"""The most pairs that are compared at once."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Limits of any number of results, with their standard errors and methods; nan and None where there are none."""

    lower: Floats
    upper: Floats
    error: Floats
    method: Array
    freedom: Floats
    """The degrees of freedom of values from a survey, and the effect of its design on their variance."""
    design_effect: Floats
    name: str = ""
    """The method of the results that `put` sets."""

    @classmethod
    def none(cls, count: int) -> Intervals:
        """No limits of so many results."""
        lower, upper, error, freedom, design_effect = np.full((5, count), np.nan)
        return cls(lower, upper, error, np.full(count, None, dtype=object), freedom, design_effect)

    def named(self, name: str) -> Intervals:
        """The same intervals, in which `put` sets results of this method."""
        return replace(self, name=name)

    def put(self, index: Array, limits: Limits, error: Any = math.nan, words: str = "") -> None:
        """Set the limits of some results; `words` are added to the name of the method."""
        self.lower[index], self.upper[index] = limits
        self.error[index], self.method[index] = error, self.name + words

    def part(self, index: slice) -> Intervals:
        """A view of the limits of some results: what is set there is set here."""
        return Intervals(
            self.lower[index], self.upper[index], self.error[index], self.method[index], self.freedom[index],
            self.design_effect[index],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Family:
    """The values of one metric in the groups of some outer groups, and the pairs of values that are compared.

    Groups are compared with each other, with a reference, or with their rests: all other groups of the outer group,
    whose values come after those of the groups. All rows are a group and its rest, so that a group is as far from them
    as from the rest, times the share that the rest has.
    """

    values: Estimates
    rows: Integers
    """The groups, as rows of the evaluation."""
    outer: Integers
    """The outer group of each group, in order."""
    is_reference: Booleans
    """Mask of the groups that others are compared with; without any, all pairs are compared."""
    outers: int
    """The number of all outer groups."""
    share: Any = None
    """The share of each group in the weight of itself and its rest; None where groups have no rests."""
    to_all_rows: bool = False
    overlap: bool = False
    """True if rests are evaluated by themselves, because groups overlap."""

    def among(self, outers: Booleans) -> Family:
        """The same in some outer groups, given as a mask of all."""
        kept = outers[self.outer]
        if kept.all():
            return self
        share = None if self.share is None else self.share[kept]
        of_values = kept if share is None else np.tile(kept, 2)
        return replace(
            self, values=self.values.at(of_values), rows=self.rows[kept], outer=self.outer[kept],
            is_reference=self.is_reference[kept], share=share,
        )  # fmt: skip

    @cached_property
    def outer_of_values(self) -> Integers:
        """The outer group of each value."""
        return self.outer if self.share is None else np.tile(self.outer, 2)

    @cached_property
    def sizes(self) -> Integers:
        """The number of groups of each outer group."""
        return np.bincount(self.outer, minlength=self.outers)

    @cached_property
    def number_of_pairs(self) -> Integers:
        """The number of pairs of each outer group that vary apart."""
        sizes = self.sizes.astype(np.int64)
        if self.share is not None:
            # two groups are the rests of each other
            return np.where((sizes == 2) & (not self.overlap), 1, sizes)
        references = np.bincount(self.outer, self.is_reference, self.outers).astype(np.int64)
        return np.where(references > 0, references * (sizes - references), sizes * (sizes - 1) // 2)

    def has(self, condition: Booleans) -> Booleans:
        """Mask of the outer groups in which a condition holds for some value."""
        return np.bincount(self.outer_of_values[condition], minlength=self.outers) > 0

    @property
    def is_range(self) -> bool:
        """True if all pairs of groups are compared."""
        return self.share is None and not self.is_reference.any()

    @cached_property
    def pairs(self) -> tuple[Integers, Integers]:
        """The two values of each pair, in the order of outer groups; the second is the reference, or rest, if any."""
        segments, cell = Segments.of(self.outer), np.arange(len(self.outer))
        if self.share is not None:
            return cell, cell + len(cell)
        if not self.is_range:
            reference = segments.to_rows(segments.first_where(self.is_reference))
            one = np.flatnonzero((reference != NO_ROW) & ~self.is_reference)
            return one, reference[one]
        later = segments.to_rows(segments.starts + segments.sizes) - cell - 1
        one = np.repeat(cell, later)
        return one, one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)

    def limits(self, z: Floats, scale: str, several: Booleans | None = None) -> Limits:
        """Limits of the distances of pairs at so many standard errors for each outer group.

        They hold for all pairs together in outer groups with `several` of them, given as a mask.
        """
        values, of_values = self.values, z[self.outer_of_values]
        if several is not None:
            values = values.far(several[self.outer_of_values])
        # a group and its rest share no rows; what holds for several pairs follows from limits that hold far out
        by_score = None
        if self.share is not None and scale == "ratio":
            by_score = self.values.ratio_limits(*self.pairs, of_values)
        lower, upper = values.distances(*self.pairs, of_values, scale)
        if by_score is not None:
            is_alone = np.ones(len(self.outer), dtype=bool) if several is None else ~several[self.outer]
            with np.errstate(divide="ignore"):
                pairs = [(np.log(own), end) for own, end in zip(by_score, (lower, upper), strict=True)]
            lower, upper = (np.where(is_alone, own, end) for own, end in pairs)
        if self.share is None or not self.to_all_rows:
            return lower, upper
        if scale == "difference":
            return (1 - self.share) * lower, (1 - self.share) * upper
        with np.errstate(over="ignore", divide="ignore"):
            lower, upper = (-np.log(self.share + (1 - self.share) * np.exp(-end)) for end in (lower, upper))
        return lower, upper

    def farthest(self, limits: Limits) -> Floats:
        """The largest distance of the pairs of each outer group on whichever side; minus infinity without pairs."""
        lower, upper = limits
        outer = self.outer[self.pairs[0]]
        segments, farthest = Segments.of(outer), np.full(self.outers, -np.inf)
        if segments.length:
            farthest[outer[segments.starts]] = np.maximum.reduceat(np.maximum(upper, -lower), segments.starts)
        return farthest


@np.errstate(divide="ignore", invalid="ignore")
def with_rests(groups: Estimates, outer: Integers, share: Floats) -> Estimates:
    """The values of groups that are means over rows, then those of their rests: the means of all other groups.

    Groups have independent rows and some share of the weight of their outer group.
    """
    segments = Segments.of(outer)
    value = np.append(groups.value, _means_of_others(groups.value, segments, share))
    if isinstance(groups, Shares):
        # what a row has of the weight of its group goes with 1 / rows
        square = np.nan_to_num(share**2 / groups.rows)
        rows = (1 - share) ** 2 / (segments.to_rows(segments.sum(square)) - square)
        return Shares(value, np.append(groups.rows, rows))
    of_others = np.sqrt(_means_of_others(groups.error**2, segments, share, power=2))
    return _MeansWithRests(value, np.append(groups.error, of_others), groups, outer, share)


def _means_of_others(values: Floats, segments: Segments, share: Floats, power: int = 1) -> Floats:
    """The mean of all other groups, for each group; with the power 2, its variance from those of groups."""
    weighted = share**power * values
    return (segments.to_rows(segments.sum(weighted)) - weighted) / (1 - share) ** power


@dataclass(frozen=True, eq=False, repr=False)
class _MeansWithRests(Estimates):
    """Means of groups and of their rests, with limits from those of the groups (MOVER: Zou, Huang and Zhang, 2009)."""

    value: Floats
    error: Floats
    groups: Estimates
    outer: Integers
    share: Floats
    kind = "smooth"

    def at(self, index: Array) -> Estimates:  # pyright: ignore[reportIncompatibleMethodOverride] - the same for both
        """Those of some outer groups, given as a mask of groups and rests."""
        kept = index[: len(self.groups)]
        return with_rests(self.groups.at(kept), self.outer[kept], self.share[kept])

    @property
    def bounds(self) -> tuple[Any, Any]:
        low, high = self.groups.bounds
        return (np.tile(low, 2), np.tile(high, 2)) if np.ndim(low) else (low, high)

    def limits(self, z: float | Floats) -> Limits:
        count, value, segments = len(self.groups), self.groups.value, Segments.of(self.outer)
        low, high = self.groups.limits(z[:count] if isinstance(z, np.ndarray) else z)
        below, above = (
            np.sqrt(_means_of_others(side**2, segments, self.share, power=2)) for side in (value - low, high - value)
        )
        mean = self.value[count:]
        return np.append(low, mean - below), np.append(high, mean + above)


def scale_of(aggregate: Aggregate | None) -> Literal["difference", "ratio"]:
    """The scale on which an aggregate compares two groups; differences where it has none."""
    return "ratio" if getattr(aggregate, "is_relative", False) else "difference"


def _total(families: Sequence[Family], number: Literal["sizes", "number_of_pairs"]) -> Integers:
    """The number of groups, or of pairs, of all families in each outer group."""
    return np.sum([getattr(family, number) for family in families], axis=0)


# Pairs


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The values of a metric in the groups of an outer group, for one label, and how far they vary by chance."""

    spec: int
    outer: int
    level: int
    rows: pl.DataFrame
    estimates: Estimates


def check_scale(name: str, formula: Formula, ends: tuple[float, float], scale: Scale) -> None:
    """Refuse scales that the values of a metric do not have."""
    low, _ = ends
    if scale == "ratio" and -math.inf < low < 0:
        msg = f'{name} can be negative, so its ratios are not defined; use `scale="difference"`.'
        raise ArgumentError(msg)
    if scale == "odds_ratio" and share_of(formula) is None:
        msg = f'{name} is not a rate, so it has no odds; use `scale="ratio"` or `"difference"`.'
        raise ArgumentError(msg)


def check_positive(family: ComparedGroups, scale: Scale) -> None:
    """Refuse ratios of values below 0."""
    values = family.estimates.value
    if scale == "difference" or not (values < 0).any():
        return
    index = int((values < 0).argmax())
    name, group = family.rows["name"][0], family.rows["text"][index]
    msg = (
        f"{name}: a ratio compares values above 0, and that of the group {group!r} is {values[index]:.4g}; "
        'take differences, `scale="difference"`.'
    )
    raise ArgumentError(msg)


def compare_values(value: Floats, other: Floats, scale: Scale) -> Floats:
    """Values compared with others; nan where there is no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if scale == "difference":
            return value - other
        if scale == "odds_ratio":
            value, other = value / (1 - value), other / (1 - other)
        return value / other


def p_values(family: Estimates, one: Any, other: Any, scale: Scale) -> Floats:
    """The probabilities at which intervals of pairs just hold equality: the p-values that agree with their limits."""
    # the standard errors at which the limits of pairs just hold equality
    statistic = family.ratio_statistic(one, other) if scale == "ratio" else None
    if statistic is None:
        # the groups of each pair are searched at standard errors of their own
        sides, equality = family.at(np.concatenate([one, other])), EQUALITY[scale]
        first = np.arange(len(one))
        second, correlation = first + len(one), family.correlation_of(one, other)

        def distance(z: Floats) -> Floats:
            """The distance of the nearer limit from equality, which is above 0 while an interval excludes equality."""
            low, high = sides.compared(first, second, np.concatenate([z, z]), scale, correlation)
            return np.where(equality - high > low - equality, equality - high, low - equality)

        statistic = _roots(distance, len(one))
    return np.array([math.erfc(number / math.sqrt(2)) for number in statistic.tolist()])


def _roots(distance: Callable[[Floats], Floats], count: int) -> Floats:
    """The standard errors at which falling distances are 0, by false position (Illinois); nan where they are none."""
    inside, outside = np.full(count, _NEAREST), np.full(count, _FARTHEST)
    above, below = distance(inside), distance(outside)
    root = np.full(count, np.nan)
    root[above <= 0], root[(above > 0) & (below > 0)] = 0.0, np.inf
    searched = (above > 0) & ~(below > 0)
    # 1 where the inner end moved last, -1 where the outer one did
    moved = np.zeros(count)
    while searched.any():
        is_finite = np.isfinite(below)
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = (inside * below - outside * above) / (below - above)
        middle = np.where(is_finite & searched, secant, (inside + outside) / 2)
        value = distance(middle)
        is_inside, is_hit = value > 0, np.abs(value) <= _PRECISION * np.abs(above)
        root = np.where(searched & is_hit, middle, root)
        searched &= ~is_hit
        # the end that stays a second time counts half, so that it moves, too
        halved_below = np.where((moved > 0) & is_finite, below / 2, below)
        halved_above = np.where(moved < 0, above / 2, above)
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
        above, below = np.where(is_inside, value, halved_above), np.where(is_inside, halved_below, value)
        moved = np.where(is_inside, 1, -1)
        is_near = outside - inside <= _PRECISION
        root = np.where(searched & is_near, (inside + outside) / 2, root)
        searched &= ~is_near
    return root


def pair(
    families: Sequence[Family], aggregate: Contrast, level: float, results: Intervals, form: Form | None = None,
    *, by_both: bool = False,
) -> None:  # fmt: skip
    """Limits of two groups, of which the second is the reference, if there is one.

    They are those of a pair, or from the limits `by_both` groups, or by a form of rates, which takes both with their
    rows and a number of standard errors.
    """
    for family in families:
        one, other = family.pairs
        values, z = family.values, z_value(level)
        if form is not None and isinstance(values, Shares):
            rows = values.rows_at(z)
            low, high = form(values.value[one], rows[one], values.value[other], rows[other], z)
        else:
            low, high = values.compared(one, other, z, scale_of(aggregate), by_both=by_both)
        error = np.full(len(one), np.nan)
        if not aggregate.is_relative:
            error = values.error_compared(one, other, "difference")
        elif aggregate.is_quotient:
            # quotients without a sign are shown below 1
            turned = (values.value[one] > values.value[other]) & (not aggregate.signed)
            error = values.error_compared(np.where(turned, other, one), np.where(turned, one, other), "ratio")
        if aggregate.is_relative:
            low, high = aggregate.limits_of_quotient(low, high)
        if not aggregate.signed:
            low, high = aggregate.unsigned_limits(low, high)
        results.put(family.outer[one], (low, high), error)


# Ranges, and the farthest of several groups from a reference, from all others, or from all rows


def range_of_pairs(families: Sequence[Family], aggregate: Contrast, level: float, results: Intervals) -> None:
    """Limits of the largest distance of any pair of several families; the worst has the upper end of each by itself."""
    outers, scale, z = len(results.lower), scale_of(aggregate), z_value(level)
    q, several = distance_at_once(families, level, outers), _total(families, "number_of_pairs") > 1
    lower, upper = np.zeros(outers), np.zeros(outers)
    for family in families:

        def upper_end(at: Floats, family: Family = family) -> Floats:
            return family.farthest(family.limits(at, scale))

        needed = np.full(outers, z)
        if family.is_range and family.values.influences is None:
            errors = family.values.errors_of_limits(z, scale, family.outer)
            needed = np.where(_has_few(family), z, errors_needed(errors, family.outer, upper_end, z, outers))
        # the ends toward equality
        low, high = family.limits(q, scale, several)
        lower = np.maximum(lower, family.farthest((high, low)))
        upper = np.maximum(upper, upper_end(needed))
    _put_range(families, aggregate, (lower, upper), results)


def _has_few(family: Family) -> Booleans:
    """Mask of the outer groups with a group in which few hits, or few misses, are expected at the rate of all."""
    values = family.values
    if not isinstance(values, Shares):
        return np.zeros(family.outers, dtype=bool)
    segments = Segments.of(family.outer)
    hits, rows = (segments.to_rows(segments.sum(own)) for own in (values.value * values.rows, values.rows))
    return family.has(np.minimum(hits, rows - hits) / rows * values.rows < _FEW)


def distance_at_once(families: Sequence[Family], level: float, outers: int) -> Floats:
    """The standard errors at which limits of all pairs of some families hold together, for each outer group.

    Of ranges of independent values they are those of the largest distance of normal values (Tukey, 1953; Kramer, 1956),
    of groups and a reference or their rests, and of values that share clusters, those of as many independent pairs
    (Šidák, 1967). Limits toward equality err on one side only, and least where groups are far apart, where the other
    limit errs; so both together err as often as the level says.
    """
    if all(family.is_range and family.values.influences is None for family in families):
        distinct, index = np.unique([family.sizes for family in families], axis=1, return_inverse=True)
        of_distinct = [distance_of_pairs(tuple(sorted(counts)), level) for counts in distinct.T.tolist()]
        return np.array(of_distinct)[index.ravel()]
    return np.broadcast_to(z_of_groups(_total(families, "number_of_pairs"), level), outers)


def bands(families: Sequence[Family], aggregate: Contrast, level: float, results: Intervals) -> None:
    """Limits of the range of very many groups, from limits that hold for all groups at once (Šidák, 1967)."""
    outers = len(results.lower)
    q, z = z_of_groups(_total(families, "sizes"), level), np.full(outers, z_value(level))
    lower, upper = np.zeros(outers), np.zeros(outers)
    for family in families:
        segments = Segments.of(family.outer)
        outer = family.outer[segments.starts]
        (_, (low, high)), (_, (least, most)) = (
            family.values.on_scale(scale_of(aggregate), at[family.outer]) for at in (q, z)
        )
        lower[outer] = np.maximum(lower[outer], segments.maximum(low) - segments.minimum(high))
        upper[outer] = np.maximum(upper[outer], segments.maximum(most) - segments.minimum(least))
    _put_range(families, aggregate, (lower, upper), results)


def _put_range(families: Sequence[Family], aggregate: Contrast, limits: Limits, results: Intervals) -> None:
    """Set limits of ranges from those of the largest distance, which is one of logarithms if values are divided."""
    outers = len(results.lower)
    unknown = np.isnan(limits[0]) | np.isnan(limits[1])
    lower, upper = aggregate.limits_of_range(*limits)
    lowest, highest = np.full(outers, np.inf), np.full(outers, -np.inf)
    for family in families:
        low, high = family.values.bounds
        np.minimum.at(lowest, family.outer_of_values, low)
        np.maximum.at(highest, family.outer_of_values, high)
    with np.errstate(invalid="ignore"):
        _, largest = aggregate.range(lowest, highest)  # pyright: ignore[reportArgumentType] - arrays as well
    # the difference of unbounded values is not a number
    upper = np.where(unknown, np.nan, np.fmin(upper, largest))
    index = np.flatnonzero(_total(families, "sizes"))
    results.put(index, (np.where(unknown, np.nan, lower)[index], upper[index]))


# Extremes


def extreme(families: Sequence[Family], aggregate: Extreme, level: float, results: Intervals) -> None:
    """Limits of the smallest or largest value: what it says of all groups holds for each of them by itself.

    A smallest value is above a limit if every group is: an intersection-union test at the full level (Berger, 1982). It
    is below one if some group is, which takes limits of all groups at once. In a survey, a group whose error is unknown
    may have any true value: the smallest value then has no lower limit, and is still below the upper limits of the
    others.
    """
    outers, groups = len(results.lower), _total(families, "sizes")
    q = z_of_groups(groups, level)
    is_highest, end = aggregate.is_highest, np.fmax if aggregate.is_highest else np.fmin
    of_each, at_once = np.full((2, outers), -np.inf if is_highest else np.inf)
    complete = np.ones(outers, dtype=bool)
    for family in families:
        values, known = family.values, ~np.isnan(family.values.error)
        alone, together = values.alone(z_value(level)), values.limits(q[family.outer])
        for ends, side in ((of_each, alone[is_highest]), (at_once, together[not is_highest])):
            end.at(ends, family.outer, np.where(known, np.clip(side, *values.bounds), np.nan))
        complete &= ~family.has(~known)
    is_surveyed = isinstance(families[0].values, Surveyed)
    half_known = (groups > 0) & ~complete & np.isfinite(at_once) & is_surveyed
    of_each = np.where(half_known, np.nan, of_each)
    lower, upper = (at_once, of_each) if is_highest else (of_each, at_once)
    one, other = ("upper", "lower") if is_highest else ("lower", "upper")
    for index, words in (((groups > 0) & complete, f", {one} end of each group"), (half_known, f", {other} end")):
        results.put(index, (lower[index], upper[index]), words=words)


# The shape of comparisons


def shapes_of(families: Sequence[Family], aggregate: Aggregate) -> Array:
    """The comparison of each outer group, in the words of the table of methods; None where there is none.

    There is no interval where a value is infinite, or it is not known how far it varies, or a family has one group.
    """
    taking_part = np.sum([family.sizes > 0 for family in families], axis=0)
    shapes = np.full(len(taking_part), None, dtype=object)
    if aggregate.is_extreme:
        shapes[taking_part > 0] = "extreme"
        return shapes
    usable = usable_outers(families)
    shapes[usable] = "range"
    if all(family.is_range for family in families):
        most = np.max([family.sizes for family in families], axis=0)
        shapes[usable & (most > _MANY_GROUPS)] = "many"
    shapes[usable & (taking_part == 1) & (_total(families, "number_of_pairs") == 1)] = scale_of(aggregate)
    return shapes


def usable_outers(families: Sequence[Family]) -> Booleans:
    """Mask of the outer groups in which all values are finite, vary, and are those of two groups or more."""
    usable = _total(families, "sizes") > 0
    for family in families:
        unusable = np.isnan(family.values.error) | ~np.isfinite(family.values.value)
        usable &= ~family.has(unusable) & (family.sizes != 1)
    return usable


def in_blocks(families: Sequence[Family], chosen: Booleans) -> Iterator[list[Family]]:
    """The families in some outer groups, as many of these at once as fit into memory."""
    pairs = _total(families, "number_of_pairs")
    block = np.cumsum(np.where(chosen, pairs, 0)) // _MOST_PAIRS
    for number in np.unique(block[chosen]):
        own = [family.among(chosen & (block == number)) for family in families]
        yield [family for family in own if len(family.outer)]
