"""Intervals of the values of groups, and of comparisons between groups.

A quantity of a group is a share of some rows, or an area under a curve, with an error. Groups are independent of each
other. A range over groups is never below zero and grows with their number, so that no interval of the range itself
covers the truth where groups are equal; those of all pairs do.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from tidyfair.evaluation.statistics import CELLS, Table, statistics_of
from tidyfair.evaluation.values import OfRows, evaluate
from tidyfair.intervals.proportions import (
    area,
    clopper_pearson,
    difference_limits,
    on_logits,
    score_ratio,
    wilson,
    z_value,
)
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.formulas import ROWS, Formula
from tidyfair.specs.spreads import Extreme

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy as np

    from tidyfair.intervals.proportions import Limits
    from tidyfair.specs.aggregates import Aggregate

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

Kind: TypeAlias = Literal["share", "area", "estimated"]
FEW = 15
"""With fewer rows of a class the normal approximation of an area is not used."""
_MANY_GROUPS = 200
_NORMAL = 10_000
"""Counts with a larger variance are normal to three digits."""
_ROUNDED_UP = 1.001
"""The factor that makes up for the rounding of single-precision numbers."""
_PROBES = ((3, 5, 2, 7, 1, 4, 6, 2, 3), (1, 8, 9, 2, 5, 3, 2, 7, 4))


@dataclass(frozen=True)
class Share:
    """The definition of a rate: the cells of the table of its denominator, and those of its numerator."""

    among: frozenset[str]
    holds: frozenset[str]

    @property
    def misses(self) -> frozenset[str]:
        """The cells of the denominator that are not in the numerator."""
        return self.among - self.holds


@lru_cache(maxsize=1024)
def share_of(formula: Formula) -> Share | None:
    """The share that a formula is, found by trying it on tables; None if it is something else."""
    values, rows = _on_probes(formula)
    among = {name for name, count in zip(CELLS, rows, strict=False) if count}
    holds = {name for name, value in zip(CELLS, values, strict=False) if value}
    is_share = {*values[: len(CELLS)], *rows[: len(CELLS)]} <= {None, 0, 1}
    for value, size, probe in zip(values[len(CELLS) :], rows[len(CELLS) :], _PROBES, strict=False):
        all_of_them, hits = _count(probe, among), _count(probe, holds)
        is_share = is_share and bool(size) and size == all_of_them and math.isclose(value or 0.0, hits / all_of_them)
    return Share(frozenset(among), frozenset(holds)) if is_share and among else None


@lru_cache(maxsize=1024)
def odds_of(formula: Formula) -> Share | None:
    """The share whose odds a formula is, such as false negatives among errors; None if it is something else."""
    values, rows = _on_probes(formula)
    below = {name for name, count in zip(CELLS, rows, strict=False) if count}
    others = [name for name in ("tp", "fp", "fn", "tn") if name not in below]
    for size in range(1, len(others) + 1) if below else ():
        for above in itertools.combinations(others, size):
            odds = [_count(probe, above) / _count(probe, below) for probe in _PROBES]
            if all(map(math.isclose, odds, [value or 0.0 for value in values[len(CELLS) :]])):
                return Share(frozenset(below | {*above}), frozenset(above))
    return None


def _on_probes(formula: Formula) -> tuple[list[float | None], list[float | None]]:
    """The values and denominators of a formula on a table with each cell alone, and on the probes.

    Both are empty if it is not a rate of counts of labels.
    """
    import numpy as np

    of_counts = formula.kind == "class" and formula.input == "sums" and formula.given is None
    if not of_counts or formula.beyond or formula.all_terms or not formula.is_rate:
        return [], []
    tables = [*([int(name == other) for name in CELLS] for other in CELLS), *_PROBES]
    counts = {
        name + ROWS: np.array(column)[:, None] for name, column in zip(CELLS, zip(*tables, strict=True), strict=True)
    }
    values = evaluate(formula, "binary", statistics_of(Table("class"), counts), OfRows({}, {}))
    estimates = [None if math.isnan(value) else value for value in values.estimate[:, 0].tolist()]
    return estimates, values.denominator[:, 0].tolist()


def _count(probe: Sequence[int], cells: Collection[str]) -> int:
    return sum(count for name, count in zip(CELLS, probe, strict=True) if name in cells)


@dataclass(frozen=True, eq=False, repr=False)
class Quantities:
    """The same quantity of several groups that are independent of each other."""

    kind: Kind
    value: Floats
    rows: Floats
    """The effective number of rows that a share is of."""
    error: Floats
    """The standard error."""
    events: Floats
    others: Floats
    below: Floats
    above: Floats
    """The standard error on either side that empty cells add to that of replicates."""

    @classmethod
    def of(cls, kind: Kind, rows: pl.DataFrame) -> Quantities:
        """From the rows of values: `estimate` and, of shares, `denominator` or `effective`; of areas, `variance`.

        Of what is estimated it is `deviation`, the standard error seen in replicates, and those `below` and `above`.
        """
        import numpy as np

        def column(name: str) -> Floats:
            return rows[name].to_numpy().astype(float)

        value = column("estimate")
        none, nothing = np.full_like(value, math.nan), np.zeros_like(value)
        if kind == "area":
            events, others = column("events"), column("others")
            return cls(kind, value, events + others, np.sqrt(column("variance")), events, others, nothing, nothing)
        if kind == "estimated":
            return cls(kind, value, none, column("deviation"), none, none, column("below"), column("above"))
        size = column("effective" if "effective" in rows.columns else "denominator")
        return cls(kind, value, size, np.sqrt(value * (1 - value) / size), none, none, nothing, nothing)

    @classmethod
    def of_counts(cls, hits: Floats, rows: Floats) -> Quantities:
        """Shares, from the rows of groups and those of them that count."""
        table = pl.DataFrame({"estimate": hits / rows, "denominator": rows})
        return cls.of("share", table)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def widest(self) -> Floats:
        """The standard error on the side on which it is larger."""
        import numpy as np

        return np.hypot(self.error, np.fmax(self.below, self.above))

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        if self.kind == "area":
            return ["delong" if normal else "newcombe" for normal in self._normal()]
        return ["wilson" if self.kind == "share" else "bootstrap"] * len(self)

    def limits(self, z: float) -> Limits:
        """Limits of all quantities, at so many standard errors."""
        import numpy as np

        if self.kind == "share":
            return wilson(self.value, self.rows, z)
        if self.kind == "estimated":
            below, above = (np.hypot(self.error, side) for side in (self.below, self.above))
            return self.value - z * below, self.value + z * above
        exact, normal = area(self.value, self.events, self.others, z), on_logits(self.value, self.error, z)
        lower, upper = (np.where(self._normal(), one, other) for one, other in zip(normal, exact, strict=True))
        return lower, upper

    def _normal(self) -> Any:
        import numpy as np

        enough = np.minimum(self.events, self.others) >= FEW
        return enough & (self.value > 0) & (self.value < 1) & (self.error > 0)

    def logarithms(self, z: float) -> tuple[Floats, Limits]:
        """The logarithms and their limits; zero counts get a continuity correction of half a row."""
        import numpy as np

        if self.kind == "estimated":
            low, high = np.maximum(self.value - z * self.below, 0), self.value + z * self.above
            # a value of 0 counts as half of its upper limit
            value = np.where(self.value > 0, self.value, high / 2)
            with np.errstate(divide="ignore", invalid="ignore"):
                middle, half = np.log(value), z * self.error / value
                below, above = np.hypot(half, middle - np.log(low)), np.hypot(half, np.log(high) - middle)
            return middle, (middle - below, middle + above)
        lower, upper = self.limits(z)
        value = self.value if self.kind == "area" else (self.value * self.rows + 0.5) / (self.rows + 1)
        with np.errstate(divide="ignore"):
            return np.log(value), (np.log(lower), np.log(np.maximum(upper, value)))

    def deviates(self, times: int, random: np.random.Generator, *, logarithm: bool) -> tuple[Floats, Floats]:
        """Deviations of estimates from the truth by chance, `times` over, and their estimated variances.

        The truth is taken to be the estimate, shrunk a little to the middle. Groups are rows of single-precision
        arrays, so that those that are compared stay in the cache.
        """
        import numpy as np

        if self.kind != "share":
            error = (self.widest / self.value if logarithm else self.widest).astype(np.float32)[:, None]
            normal = np.ascontiguousarray(random.standard_normal((times, len(self))).T, dtype=np.float32)
            return normal * error, np.broadcast_to(error**2, normal.shape)
        rows = np.maximum(np.round(self.rows), 1)
        middle = (self.value * rows + 0.5) / (rows + 1)
        spread = rows * middle * (1 - middle)
        if spread.min() > _NORMAL:
            drawn = random.standard_normal((len(self), times), dtype=np.float32)
            drawn *= (np.sqrt(spread) / rows).astype(np.float32)[:, None]
            drawn += middle.astype(np.float32)[:, None]
        else:
            hits = random.binomial(rows.astype(np.int64), middle, (times, len(self)))
            drawn = np.ascontiguousarray(hits.T, dtype=np.float32)
            drawn += 0.5
            drawn /= (rows + 1).astype(np.float32)[:, None]
        middle, rows = (numbers.astype(np.float32)[:, None] for numbers in (middle, rows))
        variance = 1 - drawn
        if logarithm:
            variance /= drawn
            away = np.log(drawn) - np.log(middle)
        else:
            variance *= drawn
            away = drawn - middle
        variance /= rows
        return away, variance


@dataclass(frozen=True)
class Interval:
    """An interval and the name of its method."""

    lower: float
    upper: float
    error: float
    method: str


def limits_of(quantities: Quantities, level: float, *, exact: bool = False) -> list[Interval]:
    """The intervals of all quantities."""
    z = z_value(level)
    if exact and quantities.kind == "share":
        lower, upper = clopper_pearson(quantities.value, quantities.rows, level)
        methods = ["clopper_pearson"] * len(quantities)
    else:
        (lower, upper), methods = quantities.limits(z), quantities.methods
    ends = zip(lower.tolist(), upper.tolist(), quantities.error.tolist(), methods, strict=True)
    return [Interval(*columns) for columns in ends]


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
    import numpy as np

    if isinstance(aggregate, Extreme):
        return _extreme(families, aggregate, level)
    is_finite = all(np.isfinite(family.value).all() for family in families)
    if not isinstance(aggregate, Contrast) or not is_finite:
        return None
    many = max(map(len, families), default=0) > _MANY_GROUPS
    if many and all(reference is None for reference in references):
        return _bands(families, aggregate, level)
    pairs = [_pairs(len(family), reference) for family, reference in zip(families, references, strict=True)]
    have_pairs = all(len(one) for one, _ in pairs)
    if not have_pairs:
        return None
    if len(families) == 1 and len(pairs[0][0]) == 1:
        return _pair(families[0], pairs[0], aggregate, z_value(level))
    return _range(families, references, pairs, aggregate, level, times, random)


def _range(
    families: Sequence[Quantities], references: Sequence[int | None], pairs: Sequence[tuple[Floats, Floats]],
    aggregate: Contrast, level: float, times: int, random: np.random.Generator,
) -> Interval | None:  # fmt: skip
    """The interval of the largest contrast of any pair: its lower end is simultaneous, its upper end pairwise."""
    z, logarithm = z_value(level), aggregate.is_relative
    q = _largest_deviation(families, references, (1 + level) / 2, times, random, logarithm=logarithm)
    lowest, highest = [0.0], [0.0]
    for family, (one, other) in zip(families, pairs, strict=True):
        for first, second in ((one, other), (other, one)):
            lowest.append(float(_ends(family, first, second, q, logarithm=logarithm)[0].max()))
            highest.append(float(_ends(family, first, second, z, logarithm=logarithm)[1].max()))
    if any(map(math.isnan, (*lowest, *highest))):
        return None
    lower, upper = max(lowest), max(highest)
    return _of_range(families, aggregate, lower, upper, "pairwise")


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
    if all(family.kind != "estimated" for family in families):
        _, largest = aggregate.range(0, 1)
        upper = min(upper, largest)
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
    return difference_limits(value[one], (low[one], high[one]), value[other], (low[other], high[other]))


def _pair(family: Quantities, pair: tuple[Floats, Floats], aggregate: Contrast, z: float) -> Interval:
    """The interval of two groups, of which the second is the reference, if there is one."""
    import numpy as np

    one, other = pair
    error = math.nan
    if not aggregate.is_relative:
        error = float(np.hypot(family.widest[one], family.widest[other])[0])
        low, high = (float(end[0]) for end in _ends(family, one, other, z, logarithm=False))
        method = {"share": "newcombe", "area": "mover"}.get(family.kind, "bootstrap")
    elif family.kind == "share":
        ends = score_ratio(family.value[one], family.rows[one], family.value[other], family.rows[other], z)
        low, high = (float(end[0]) for end in ends)
        method = "miettinen_nurminen"
    else:
        low, high = (math.exp(float(end[0])) for end in _ends(family, one, other, z, logarithm=True))
        method = "mover" if family.kind == "area" else "bootstrap"
    if aggregate.is_relative:
        low, high = aggregate.limits_of_quotient(low, high)
    if not aggregate.signed:
        low, high = aggregate.unsigned_limits(low, high)
    return Interval(low, high, error, method)


def _largest_deviation(
    families: Sequence[Quantities], references: Sequence[int | None], share: float, times: int,
    random: np.random.Generator, *, logarithm: bool,
) -> float:  # fmt: skip
    """The quantile of the largest deviation of any pair, in standard errors, by chance alone.

    Bounds show that most draws are far below it, so that their pairs need not be compared.
    """
    import numpy as np

    drawn = [family.deviates(times, random, logarithm=logarithm) for family in families]
    least, most = np.zeros(times, dtype=np.float32), np.full(times, np.inf, dtype=np.float32)
    if all(reference is None for reference in references):
        bounds = [_bounds(away, variance) for away, variance in drawn]
        least, most = (np.fmax.reduce([of_family[side] for of_family in bounds], axis=0) for side in (0, 1))
    rank = int(share * (times - 1))
    near = np.flatnonzero(most >= np.partition(least, rank)[rank])
    for (away, variance), reference in zip(drawn, references, strict=True):
        own, own_variance = away[:, near], variance[:, near]
        largest = np.zeros(len(near), dtype=np.float32)
        for one in range(len(own)) if reference is None else [reference]:
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


def _extreme(families: Sequence[Quantities], aggregate: Extreme, level: float) -> Interval | None:
    """The interval of the smallest or largest value, from those of all groups at once."""
    if len(families) > 1:
        return None
    (family,) = families
    level_of_group = level ** (1 / max(1, len(family)))
    low, high = family.limits(z_value(level_of_group))
    return Interval(aggregate.extreme(low.tolist()), aggregate.extreme(high.tolist()), math.nan, "simultaneous")
