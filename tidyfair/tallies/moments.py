"""What is summed beside the counting of rows, how such sums merge, and what they are about.

Numbers are summed about a centre, so that means of a billion lose nothing. Each cell carries its centre; sums about
different centres are moved to a common one before they are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from tidyfair.specs.formulas import Statistic
    from tidyfair.specs.segments import Array, Booleans, Segments

Quantity: TypeAlias = tuple[str, str, Any]
"""What the column is called, how the values of rows become one, and the value of a row."""

__all__: list[str] = []

ACTUAL, PREDICTED = "actual", "predicted"
"""Truth and estimate where they are numbers."""
SCORE = "score"
"""The key that says whether a row has all its scores."""
MEASURE = "measure"
"""The case weight as a float."""
REST, UP_TO = "~", "<"
"""Before the name of a score: the probability of anything else, and of this label or one before it."""

_MOMENTS = ("truth_shift", "truth_square", "estimate_shift", "estimate_square", "product")
_CENTRES = ("truth_centre", "estimate_centre")
_LEAST, _MOST = "least ", "most "
_HARDLY = 1e-12
"""What a cell that is not complete weighs where a centre is chosen."""
_LOST = 1e4
"""A mean so many times farther from the centre than the spread is wide (squared) costs digits that matter."""


@dataclass(frozen=True)
class Needs:
    """What a call reads beside counts of labels."""

    terms: frozenset[Statistic] = frozenset()
    """Quantities of rows to be summed."""
    numbers: bool = False
    """Whether truth and estimate are numbers."""
    scores: bool = False
    """Whether scores are read other than by a cut."""
    sides: bool = False
    """Whether the sums of a score are also needed for its complement."""
    moments: bool = False
    """Whether means and variation of truth and estimate are needed."""
    rows: bool = False
    """Whether some metrics can only be had from the rows themselves."""
    order: bool = False
    """Whether some metrics read rows in their order."""

    # asked of every batch
    @cached_property
    def anything(self) -> bool:
        """Whether labels alone are not enough."""
        return self.numbers or self.scores or self.rows or bool(self.compared)

    @cached_property
    def compared(self) -> tuple[Statistic, ...]:
        """The quantities for which a row is compared with others."""
        return tuple(sorted((term for term in self.terms if term.neighborhood), key=lambda term: term.column))

    @property
    def flags(self) -> list[str]:
        """What of all that is needed, by name."""
        return [each.name for each in fields(self) if getattr(self, each.name) is True]

    def covers(self, other: Needs) -> bool:
        """Whether what was counted for these needs is enough for others."""
        enough = set(self.flags) >= set(other.flags) and self.terms >= other.terms
        return enough and self.numbers == other.numbers


def ends_of(name: str) -> tuple[str, str]:
    """The columns of the least and of the most of a quantity."""
    return _LEAST + name, _MOST + name


def extremes(names: Collection[str]) -> list[tuple[str, str]]:
    """The columns of the least and of the most of quantities, where both are there."""
    known = [name.removeprefix(_LEAST) for name in names if name.startswith(_LEAST)]
    return [ends_of(name) for name in known if ends_of(name)[1] in names]


def score_names(count: int, *, sides: bool, api: Any = pl) -> dict[str, Any]:
    """The scores by name; with sides, their complements too."""
    plain = {str(place): api.col(f"s{place}").cast(api.Float64) for place in range(count)}
    return plain | {REST + name: 1 - score for name, score in plain.items() if sides}


def quantities(needs: Needs, scores: int, *, weighted: bool, api: Any = pl) -> list[Quantity]:
    """What is summed over the rows of a cell, weighted by the column `measure`; and extremes, for what is not finite.

    They are expressions of polars or, through its `api`, of narwhals.
    """
    found = [(term.column, "sum", api.col(term.column)) for term in needs.compared]
    of_rows = sorted(needs.terms - {*needs.compared}, key=lambda term: term.column)
    if needs.scores:
        found += _of_scores(of_rows, scores, sides=needs.sides, api=api)
    if needs.numbers:
        truth, estimate = api.col(ACTUAL), api.col(PREDICTED)
        found += [(term.column, "sum", term.of(truth=truth, estimate=estimate)) for term in of_rows]
    if weighted:
        found = [(name, how, value * api.col(MEASURE)) for name, how, value in found]
    return found + _ends(needs, scores, weighted=weighted, api=api)


def _of_scores(terms: Sequence[Statistic], scores: int, *, sides: bool, api: Any) -> list[Quantity]:
    """The quantities of scores, as if the truth were the event, and as if it were not."""
    plain = score_names(scores, sides=sides, api=api)
    up_to = {
        f"{UP_TO}{place}": api.sum_horizontal(*(f"s{each}" for each in range(place + 1))) for place in range(scores)
    }
    found = list[Quantity]()
    for term in terms:
        for name, score in (plain | up_to if term.cumulative else plain).items():
            found += [
                (f"{term.column} {name} {side}", "sum", term.of(truth=api.lit(float(side)), score=score))
                for side in (0, 1)
            ]
    return found


def _ends(needs: Needs, scores: int, *, weighted: bool, api: Any) -> list[Quantity]:
    """The least and the most of scores and numbers, and of the sum of all scores of a row."""
    names = [f"s{place}" for place in range(scores)] if needs.scores else []
    names += [ACTUAL, PREDICTED] if needs.numbers else []
    measure, found = api.col(MEASURE), list[Quantity]()
    for name in names:
        value = api.col(name)
        if weighted:
            # what is infinite spoils sums even if it weighs nothing
            value = api.when((measure > 0) | (value.abs() == math.inf)).then(value)
        found += [(end, how, value) for end, how in zip(ends_of(name), ("min", "max"), strict=True)]
    if needs.scores and scores > 1:
        # null where one is missing
        total = sum((api.col(f"s{place}") for place in range(1, scores)), start=api.col("s0"))
        found += [(end, how, total) for end, how in zip(ends_of("total"), ("min", "max"), strict=True)]
    return found


def moments(truth_centre: Any, estimate_centre: Any, *, weighted: bool, api: Any = pl) -> list[Quantity]:
    """First and second moments of the rows of a cell about the centres."""
    truth, estimate = api.col(ACTUAL) - truth_centre, api.col(PREDICTED) - estimate_centre
    values = (truth, truth * truth, estimate, estimate * estimate, truth * estimate)
    measure = api.col(MEASURE)
    return [(name, "sum", value * measure if weighted else value) for name, value in zip(_MOMENTS, values, strict=True)]


def summed(found: Iterable[Quantity]) -> list[pl.Expr]:
    """The quantities of rows as those of cells."""
    return [getattr(value, how)().alias(name) for name, how, value in found]


def digits_lost(cells: pl.DataFrame) -> bool:
    """Whether some cell is so far from the centre that its spread cannot be told any more."""

    def far(shift: str, square: str) -> pl.Expr:
        distance = pl.col(shift) ** 2 / pl.col("w" if "w" in cells.columns else "n")
        distance = distance.fill_nan(0.0)
        return (distance > _LOST * (pl.col(square) - distance)) & (distance > 0)

    lost = far("truth_shift", "truth_square") | far("estimate_shift", "estimate_square")
    return bool(cells.select(lost.any()).item())


def own_centres(cells: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The means of each cell, to be summed about the next time."""
    weight = pl.col("w" if "w" in cells.columns else "n")
    means = [
        (pl.col(centre) + pl.col(shift) / weight).fill_nan(None).fill_null(pl.col(centre)).alias(centre)
        for centre, shift in zip(_CENTRES, ("truth_shift", "estimate_shift"), strict=True)
    ]
    return cells.select(*by, *means)


def centred(cells: pl.DataFrame, together: Sequence[str] = ()) -> pl.DataFrame:
    """The same cells, moved to one centre for those that are `together`; their sums may then be added."""
    if "product" not in cells.columns:
        return cells
    weight = pl.col("w" if "w" in cells.columns else "n").cast(pl.Float64)
    # the centre of the heaviest cell, because what hardly counts may lie far off
    complete = [pl.col(name).is_not_null() for name in ("truth", "estimate") if name in cells.columns]
    counting = pl.when(pl.all_horizontal(complete)).then(weight).otherwise(weight * _HARDLY) if complete else weight
    chosen = {name: pl.col(name).get(counting.arg_max()) for name in _CENTRES}
    first = {name: each.over(together) if together else each for name, each in chosen.items()}
    truth, estimate = (pl.col(name) - first[name] for name in _CENTRES)
    sums = {name: pl.col(name) for name in _MOMENTS}
    return cells.with_columns(**_moved(sums, weight, truth, estimate), **first)


def _moved(sums: Mapping[str, Any], weight: Any, truth: Any, estimate: Any) -> dict[str, Any]:
    """Moments about centres that are farther down by the distances given, as arithmetic of columns or arrays."""
    shift, other = sums["truth_shift"], sums["estimate_shift"]
    return {
        "truth_shift": shift + weight * truth,
        "truth_square": sums["truth_square"] + 2 * truth * shift + weight * truth**2,
        "estimate_shift": other + weight * estimate,
        "estimate_square": sums["estimate_square"] + 2 * estimate * other + weight * estimate**2,
        "product": sums["product"] + truth * other + estimate * shift + weight * truth * estimate,
    }


def recentred(columns: Mapping[str, Array], weight: Array, complete: Booleans, segments: Segments) -> dict[str, Array]:
    """The moments and centres of cells, moved to one centre for each run, so that their sums may be added."""
    import numpy as np

    # the centre of the heaviest cell, because what hardly counts may lie far off
    heaviest = segments.first_largest(np.where(complete, weight, weight * _HARDLY))
    centres = {name: segments.spread(columns[name][heaviest]) for name in _CENTRES}
    truth, estimate = (columns[name] - centres[name] for name in _CENTRES)
    return _moved(columns, weight, truth, estimate) | centres


def is_sum(name: str) -> bool:
    """Whether columns of that name are added up where cells are together."""
    return name not in _CENTRES and not name.startswith((_LEAST, _MOST))


def is_end(name: str) -> bool:
    """Whether columns of that name hold the least or the most of a quantity."""
    return name.startswith((_LEAST, _MOST))


def is_least(name: str) -> bool:
    """Whether columns of that name hold the least of a quantity."""
    return name.startswith(_LEAST)


def is_centre(name: str) -> bool:
    """Whether columns of that name hold what sums are about."""
    return name in _CENTRES


def merged(names: Iterable[str]) -> dict[str, Callable[[pl.Expr], pl.Expr]]:
    """How the values of columns become one where cells are together."""
    ends = {_LEAST: pl.Expr.min, _MOST: pl.Expr.max}
    kinds = ((name, name.partition(" ")[0] + " ") for name in names)
    return {name: pl.Expr.first if name in _CENTRES else ends.get(kind, pl.Expr.sum) for name, kind in kinds}


def running(name: str) -> pl.Expr:
    """The values of all rows but this one as one; columns must be `centred`."""
    column = pl.col(name)
    if name in _CENTRES:
        return column
    if is_sum(name):
        before, after = column.cum_sum(), column.cum_sum(reverse=True)
        return (before.shift(1, fill_value=0) + after.shift(-1, fill_value=0)).alias(name)
    if name.startswith(_LEAST):
        return pl.min_horizontal(column.cum_min().shift(1), column.cum_min(reverse=True).shift(-1)).alias(name)
    return pl.max_horizontal(column.cum_max().shift(1), column.cum_max(reverse=True).shift(-1)).alias(name)
