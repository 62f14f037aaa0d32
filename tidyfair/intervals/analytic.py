"""Intervals of comparisons between groups.

A range over groups is never below zero and grows with their number, so that no interval of the range itself
covers the truth where groups are equal; those of all pairs do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from tidyfair.intervals.least_favourable import errors_needed
from tidyfair.intervals.proportions import difference_limits, z_value
from tidyfair.intervals.quantities import Interval, Surveyed
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.spreads import Extreme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tidyfair.intervals.proportions import Limits
    from tidyfair.intervals.quantities import Quantities
    from tidyfair.intervals.rest import WithRest
    from tidyfair.specs.aggregates import Aggregate

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

_MANY_GROUPS = 200
_ROUNDED_UP = 1.001
"""The factor that makes up for the rounding of single-precision numbers."""


def compared(
    families: Sequence[Quantities],
    references: Sequence[int | None],
    aggregate: Aggregate,
    level: float,
    *,
    times: int,
    random: np.random.Generator,
) -> Interval | None:
    """The interval of an aggregate of the groups of one or more families (metrics, labels); None if there is none.

    `references` are the indices of the groups that others are compared with. If the aggregate is the worst of the
    families, all their pairs count.
    """
    families = [family.finite for family in families]
    if isinstance(aggregate, Extreme):
        return _extreme(families[0], aggregate, level) if len(families) == 1 else None
    if not _have_errors(families):
        return None
    have_pairs = all(len(family) > 1 for family in families)
    if not isinstance(aggregate, Contrast) or not _are_finite(families) or not have_pairs:
        return None
    many = max(map(len, families), default=0) > _MANY_GROUPS
    if many and all(reference is None for reference in references):
        return _bands(families, aggregate, level)
    pairs = [_pairs(len(family), reference) for family, reference in zip(families, references, strict=True)]
    if len(families) == 1 and len(pairs[0][0]) == 1:
        return _pair(families[0], pairs[0], aggregate, z_value(level))
    return _range(families, references, pairs, aggregate, level, times, random)


def _have_errors(families: Sequence[Quantities]) -> bool:
    """Check whether it is known how far all values vary."""
    import numpy as np

    return not any(np.isnan(family.widest).any() for family in families)


def _are_finite(families: Sequence[Quantities]) -> bool:
    """Check whether all values are finite."""
    import numpy as np

    return all(np.isfinite(family.value).all() for family in families)


def _range(
    families: Sequence[Quantities], references: Sequence[int | None], pairs: Sequence[tuple[Floats, Floats]],
    aggregate: Contrast, level: float, times: int, random: np.random.Generator,
) -> Interval | None:  # fmt: skip
    """The interval of the largest contrast of any pair, from limits of all pairs at once.

    Its lower end is the largest limit that holds for all of them, its upper end that which holds where two groups are
    so far apart. The worst of several families has the upper end of each by itself.
    """
    z, logarithm = z_value(level), aggregate.is_relative
    q = _largest_deviation(families, references, (1 + level) / 2, times, random, logarithm=logarithm)
    lowest, highest = [0.0], [0.0]
    for family, reference, (one, other) in zip(families, references, pairs, strict=True):
        for first, second in ((one, other), (other, one)):
            lowest.append(float(_at_once(family, first, second, q, logarithm=logarithm).max()))
        highest.append(_upper_end(family, (one, other), z, is_range=reference is None, logarithm=logarithm))
    if any(map(math.isnan, (*lowest, *highest))):
        return None
    lower, upper = max(lowest), max(highest)
    return _of_range(families, aggregate, lower, upper, families[0].method_of_ranges)


def _upper_end(family: Quantities, pair: tuple[Floats, Floats], z: float, *, is_range: bool, logarithm: bool) -> float:
    """The upper end of the largest distance of any pair."""
    one, other = pair

    def largest(at: float) -> float:
        sides = (_ends(family, *order, at, logarithm=logarithm)[1].max() for order in ((one, other), (other, one)))
        return float(max(sides))

    if not is_range or not family.is_independent:
        return largest(z)
    return largest(errors_needed(family.errors_of_limits(z, logarithm=logarithm), largest, z))


def compared_with_rest(
    families: Sequence[WithRest],
    aggregate: Contrast,
    level: float,
    *,
    times: int,
    random: np.random.Generator,
) -> Interval | None:
    """The interval of the largest distance of any group to all others, or to all rows; None if there is none."""
    import numpy as np

    groups = [family.groups for family in families]
    if not _have_errors(groups) or not _are_finite(groups) or not all(len(family) > 1 for family in families):
        return None
    z = q = z_value(level)
    if max(map(len, families)) > _MANY_GROUPS:
        q = z_value(((1 + level) / 2) ** (1 / sum(map(len, families))))
    # two groups are the others of each other
    elif len(families) > 1 or len(families[0]) > 2:
        drawn = [family.largest_deviations(times, random, logarithm=aggregate.is_relative) for family in families]
        q = float(np.quantile(np.fmax.reduce(drawn), (1 + level) / 2))
    lower, upper = 0.0, 0.0
    for family in families:
        (low, high), (least, most) = _limits_to_rest(family, aggregate, q, z)
        if np.isnan([low, high, least, most]).any():
            return None
        lower = max(lower, float(low.max()), float(-high.min()))
        upper = max(upper, float(most.max()), float(-least.min()))
    return _of_range(groups, aggregate, lower, upper, "pairwise")


def _limits_to_rest(family: WithRest, aggregate: Contrast, q: float, z: float) -> tuple[Limits, Limits]:
    """Limits of the distances of groups to the others or to all rows, for all of them at once, and for each alone."""
    import numpy as np

    logarithm, count, both = aggregate.is_relative, len(family), family.quantities
    group, rest = np.arange(count), np.arange(count, 2 * count)
    alone = at_once = _ends_of_pairs(both, group, rest, z, logarithm=logarithm)
    if q != z:
        below = _at_once(both, group, rest, q, logarithm=logarithm)
        at_once = below, -_at_once(both, rest, group, q, logarithm=logarithm)
    if aggregate.to != "overall":
        return at_once, alone
    low, high, least, most = (family.to_overall(end, logarithm=logarithm) for end in (*at_once, *alone))
    return (low, high), (least, most)


def _ends_of_pairs(family: Quantities, one: Floats, other: Floats, z: float, *, logarithm: bool) -> Limits:
    """Limits of the differences of pairs, or of those of their logarithms, by the score of ratios if they have one."""
    import numpy as np

    ratio = family.ratio_limits(one, other, z) if logarithm else None
    if ratio is None:
        return _ends(family, one, other, z, logarithm=logarithm)
    with np.errstate(divide="ignore"):
        return np.log(ratio[0]), np.log(ratio[1])


def _bands(families: Sequence[Quantities], aggregate: Contrast, level: float) -> Interval:
    """The same for very many groups, from simultaneous limits of all groups, which are hardly wider then."""
    z, lower, upper = z_value(level), 0.0, 0.0
    q = z_value(level ** (1 / sum(map(len, families))))
    for family in families:
        (low, high), (least, most) = (
            family.logarithms(at)[1] if aggregate.is_relative else family.limits(at) for at in (q, z)
        )
        lower, upper = max(lower, float(low.max() - high.min())), max(upper, float(most.max() - least.min()))
    return _of_range(families, aggregate, lower, upper, "simultaneous")


def _of_range(families: Sequence[Quantities], aggregate: Contrast, lower: float, upper: float, method: str) -> Interval:
    """The interval of a range from its ends, which are logarithms where it is a ratio."""
    lower, upper = aggregate.limits_of_range(lower, upper)
    bounds = [family.bounds for family in families]
    _, largest = aggregate.range(min(low for low, _ in bounds), max(high for _, high in bounds))
    # the difference of unbounded values is not a number
    upper = upper if math.isnan(largest) else min(upper, largest)
    return Interval(lower, upper, math.nan, method)


def _pairs(count: int, reference: int | None) -> tuple[Floats, Floats]:
    """The indices of the groups of all pairs."""
    import numpy as np

    if reference is None:
        return np.triu_indices(count, 1)
    others = np.delete(np.arange(count), reference)
    return others, np.full(len(others), reference)


def _ends(family: Quantities, one: Floats, other: Floats, z: float, *, logarithm: bool) -> Limits:
    """Limits of the differences of pairs, or of those of their logarithms."""
    value, (low, high) = family.logarithms(z) if logarithm else (family.value, family.limits(z))
    correlation = family.correlation_of(one, other)
    return difference_limits(value[one], (low[one], high[one]), value[other], (low[other], high[other]), correlation)


def _at_once(family: Quantities, one: Floats, other: Floats, q: float, *, logarithm: bool) -> Floats:
    """Lower limits of the differences of pairs that hold for all of them, in the standard errors that `q` is of."""
    import numpy as np

    studentized = family.studentized_logarithms if logarithm else None
    if studentized is None:
        return _ends(family, one, other, q, logarithm=logarithm)[0]
    value, error = studentized
    return value[one] - value[other] - q * np.hypot(error[one], error[other])


def _pair(family: Quantities, pair: tuple[Floats, Floats], aggregate: Contrast, z: float) -> Interval:
    """The interval of two groups, of which the second is the reference, if there is one."""
    import numpy as np

    one, other = pair
    error = math.nan
    if not aggregate.is_relative:
        errors, correlation = (family.shown_error[one], family.shown_error[other]), family.correlation_of(one, other)
        with np.errstate(invalid="ignore"):
            error = float(np.sqrt(errors[0] ** 2 + errors[1] ** 2 - 2 * correlation * errors[0] * errors[1])[0])
        low, high = (float(end[0]) for end in _ends(family, one, other, z, logarithm=False))
        method = family.difference_method
    else:
        method = family.ratio_method
        if aggregate.is_quotient:
            error = float(family.error_of_ratio(*_as_shown(family, pair, aggregate))[0])
        ends = family.ratio_limits(one, other, z)
        if ends is None:
            logarithms = _ends(family, one, other, z, logarithm=True)
            low, high = (math.exp(float(end[0])) for end in logarithms)
        else:
            low, high = (float(end[0]) for end in ends)
    if aggregate.is_relative:
        low, high = aggregate.limits_of_quotient(low, high)
    if not aggregate.signed:
        low, high = aggregate.unsigned_limits(low, high)
    return Interval(low, high, error, method)


def _as_shown(family: Quantities, pair: tuple[Floats, Floats], aggregate: Contrast) -> tuple[Floats, Floats]:
    """The groups of a pair in the order in which their quotient is shown: without a sign it is below 1."""
    one, other = pair
    is_above = not aggregate.signed and bool((family.value[one] > family.value[other]).all())
    return (other, one) if is_above else (one, other)


def _largest_deviation(
    families: Sequence[Quantities], references: Sequence[int | None], share: float, times: int,
    random: np.random.Generator, *, logarithm: bool,
) -> float:  # fmt: skip
    """The quantile of the largest deviation of any pair, in standard errors, by chance alone.

    Bounds show that most draws are far below it, so that their pairs need not be compared.
    """
    import numpy as np

    orders = [family.order for family in families]
    drawn = [
        family.at(order).deviates(times, random, logarithm=logarithm)
        for family, order in zip(families, orders, strict=True)
    ]
    least, most = np.zeros(times, dtype=np.float32), np.full(times, np.inf, dtype=np.float32)
    if all(reference is None for reference in references):
        bounds = [_bounds(away, variance) for away, variance in drawn]
        least, most = (np.fmax.reduce([of_family[side] for of_family in bounds], axis=0) for side in (0, 1))
    rank = int(share * (times - 1))
    near = np.flatnonzero(most >= np.partition(least, rank)[rank])
    for (away, variance), order, reference in zip(drawn, orders, references, strict=True):
        own, own_variance = away[:, near], variance[:, near]
        largest = np.zeros(len(near), dtype=np.float32)
        for one in range(len(own)) if reference is None else np.flatnonzero(order == reference).tolist():
            others = slice(one + 1 if reference is None else 0, None)
            if len(own[others]):
                squared = _squared(own[others], own_variance[others], own[one], own_variance[one])
                np.fmax(largest, np.fmax.reduce(squared), out=largest)
        least[near] = np.fmax(least[near], largest)
    return float(np.sqrt(np.quantile(least, share)))


def _bounds(away: Floats, variance: Floats) -> Limits:
    """Lower and upper bounds of the largest squared distance of two groups in each draw."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.nan_to_num(away / np.sqrt(variance), nan=0.0)
    ends = [errors.argmax(axis=0)[None], errors.argmin(axis=0)[None]]
    sides = [np.take_along_axis(values, end, axis=0)[0] for end in ends for values in (away, variance, errors)]
    least = _squared(sides[0], sides[1], sides[3], sides[4])
    # by the inequality of Cauchy and Schwarz, and a little more for rounding
    most = np.maximum(sides[2], 0) ** 2 + np.minimum(sides[5], 0) ** 2
    return np.nan_to_num(least, nan=0.0), most * _ROUNDED_UP


def _squared(away: Floats, variance: Floats, other: Floats, other_variance: Floats) -> Floats:
    """The squared distance of groups, in standard errors."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        distance = away - other
        distance *= distance
        distance /= variance + other_variance
    return distance


def _extreme(family: Quantities, aggregate: Extreme, level: float) -> Interval | None:
    """The interval of the smallest or largest value, from those of all groups at once.

    In a survey, a group whose error is unknown may have any true value. The smallest value then has no lower limit, and
    is still below the upper limits of the other groups; the largest value has no upper limit.
    """
    import numpy as np

    level_of_group = level ** (1 / max(1, len(family)))
    low, high = family.limits(z_value(level_of_group))
    least, most = family.bounds
    low, high = low.clip(least, most), high.clip(least, most)
    known = ~np.isnan(family.widest)
    if known.all():
        return Interval(aggregate.extreme(low.tolist()), aggregate.extreme(high.tolist()), math.nan, "simultaneous")
    if not known.any() or not isinstance(family, Surveyed):
        return None
    if aggregate.is_highest:
        lower = aggregate.extreme(low[known].tolist())
        return Interval(lower, math.nan, math.nan, "simultaneous, lower end", one_sided=True)
    upper = aggregate.extreme(high[known].tolist())
    return Interval(math.nan, upper, math.nan, "simultaneous, upper end", one_sided=True)
