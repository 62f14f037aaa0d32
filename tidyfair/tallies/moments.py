"""Sums that accompany the counts of rows, and their merging.

Numbers are summed about a center, so that means as large as a billion lose no digits. Each cell stores its center; sums
about different centers are moved to a common one before they are added.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from tidyfair.specs import (
    BINARY,
    EVENT,
    Array,
    Booleans,
    Column,
    Forecast,
    MetricSpec,
    Segments,
    number_of_rows,
    spread,
)
from tidyfair.specs.formulas import Formula, RowExpression, RowSums, Statistic, unprefixed

Quantity: TypeAlias = tuple[str, str, Any]
"""Name of the column, name of the reduction (`sum`, `min`, `max` …), and the value of a row."""

Reduction: TypeAlias = Literal["sum", "min", "max", "first"]
EXTREMES: dict[Reduction, Any] = {"min": np.fmin, "max": np.fmax}
"""The functions of arrays that take extremes, and skip nan."""
ACTUAL, PREDICTED = "actual", "predicted"
"""Truth and estimate where they are numbers."""
SCORE = "score"
"""Key of rows that have all their scores."""
MEASURE = "measure"
"""The case weight as a float."""
REST, UP_TO = "~", "<"
"""Prefixes of a score: the probability of any other label, and of this label or one before it."""

_MOMENTS = ("truth_shift", "truth_square", "estimate_shift", "estimate_square", "product")
_OF_MOMENTS = ("truth_mean", "truth_var", "estimate_", "covar")
"""Prefixes of the names of statistics computed from moments."""
_CENTRES = ("truth_centre", "estimate_centre")
_POINT = "\0at point "
"""Suffix, before the number of the point, of the names of sums at an evaluation time or level."""
_OF_REPLICATE = " of replicate "
"""Suffix, before the number of the replicate, of the names of sums with its weights."""
KNOWN_REPLICATES = "known replicates"
"""The rows of a cell that have all replicate weights."""
_LEAST, _MOST = "least ", "most "
_HARDLY = 1e-12
"""The factor of the weight of an incomplete cell when a center is chosen."""
_LOST = 1e4
"""Largest squared distance of a mean from the center, in variances, without a relevant loss of digits."""


@dataclass(frozen=True)
class Needs:
    """Quantities that a call reads besides counts of labels."""

    terms: frozenset[Statistic] = frozenset()
    """Quantities of rows to be summed."""
    numbers: bool = False
    """True if truth and estimate are numbers."""
    scores: bool = False
    """True if scores are read other than by a threshold."""
    sides: bool = False
    """True if the sums of a score are also needed for its complement."""
    moments: bool = False
    """True if means and variation of truth and estimate are needed."""
    rows: bool = False
    """True if some metrics need the rows themselves."""
    order: bool = False
    """True if some metrics depend on the order of rows."""
    undivided: frozenset[tuple[Statistic, Column]] = frozenset()
    """Quantities of lists, with the features whose groups must not divide a list."""
    censoring: bool = False
    """True if censoring weights are needed at evaluation times."""
    event_censoring: bool = False
    """True if censoring weights are needed at the time of each row."""

    @classmethod
    def of(cls, specs: Iterable[MetricSpec]) -> Needs:
        """The quantities that the formulas of some metrics read."""
        terms: set[Statistic] = set()
        statistics: set[str] = set()
        columns: set[str] = set()
        undivided: set[tuple[Statistic, Column]] = set()
        formulas: list[Formula] = []
        for spec in specs:
            for _, formula in spec.formulas:
                formulas.append(formula)
                terms |= formula.all_terms
                statistics |= {unprefixed(name) for name in formula.statistics}
                columns |= formula.columns_of_rows
                for term in formula.terms_of_lists:
                    if spec.by is not None and term.lists is not None and term.lists.undivided:
                        undivided |= {(term, column) for column in spec.by.columns}
        return cls(
            terms=frozenset(terms),
            numbers=any(not formula.has_labels for formula in formulas),
            scores=any(formula.kind == "prob" for formula in formulas),
            sides=any(isinstance(formula, RowSums) and formula.table(BINARY).sides for formula in formulas),
            moments=any(name.startswith(_OF_MOMENTS) for name in statistics),
            rows=any(formula.needs_rows for formula in formulas),
            order=any(isinstance(formula, RowExpression) and formula.reads_row_order for formula in formulas),
            undivided=frozenset(undivided),
            censoring="censoring_weight" in columns,
            event_censoring="event_weight" in columns,
        )

    # read for every batch
    @cached_property
    def anything(self) -> bool:
        """True if counts of labels are not enough."""
        return self.numbers or self.scores or self.rows or bool(self.compared)

    @cached_property
    def compared(self) -> tuple[Statistic, ...]:
        """The quantities that compare a row with others."""
        return _sorted(term for term in self.terms if term.compares_rows)

    @property
    def censored(self) -> bool:
        """True if censoring weights are needed."""
        return self.censoring or self.event_censoring

    @property
    def flags(self) -> list[str]:
        """Names of the quantities that are needed."""
        return [need.name for need in fields(self) if getattr(self, need.name) is True]

    def covers(self, other: Needs) -> bool:
        """Check whether a count with these quantities also serves others."""
        has_all = set(self.flags) >= set(other.flags) and self.terms >= other.terms
        return has_all and self.numbers == other.numbers


def _sorted(terms: Iterable[Statistic]) -> tuple[Statistic, ...]:
    """Quantities sorted by name, an order that does not vary between processes as that of sets does."""
    return tuple(sorted(terms, key=lambda term: term.column))


def ends_of(name: str) -> tuple[str, str]:
    """The columns of the smallest and of the largest value of a quantity."""
    return _LEAST + name, _MOST + name


def extremes(names: Collection[str]) -> list[tuple[str, str]]:
    """The columns of the smallest and of the largest values of quantities that have both."""
    pairs: list[tuple[str, str]] = []
    for name in names:
        if name.startswith(_LEAST):
            least, most = ends_of(name.removeprefix(_LEAST))
            if most in names:
                pairs.append((least, most))
    return pairs


def step(index: int) -> str:
    """The name of the difference of the predictions at a point and at the one before it, numbered from 0."""
    return f"step{index}"


def score_columns(count: int) -> list[str]:
    """The internal names of a number of columns of scores."""
    return [f"s{index}" for index in range(count)]


def quantities(
    needs: Needs, scores: Sequence[str], forecast: Forecast | None, *, weighted: bool, api: Any = pl
) -> list[Quantity]:
    """Quantities summed over the rows of a cell, weighted by the column `measure`; and extremes, to find infinities.

    They are polars expressions or, with `api`, narwhals expressions.
    """
    values: dict[str, Any] = {}
    for term in needs.compared:
        values[term.column] = api.col(term.column)
    own_terms = _sorted(needs.terms - {*needs.compared})
    if needs.scores:
        values |= _of_scores(own_terms, scores, sides=needs.sides, api=api)
    if forecast is not None:
        values |= _of_forecast(own_terms, forecast, api)
    elif needs.numbers:
        truth, estimate = api.col(ACTUAL), api.col(PREDICTED)
        for term in own_terms:
            values[term.column] = term.expression(truth=truth, estimate=estimate)
    totals = _totals(values, weighted=weighted, api=api)
    predictions = forecast.names if forecast is not None else []
    for index, (before, after) in enumerate(itertools.pairwise(predictions)):
        totals += _extremes_of(step(index), api.col(after) - api.col(before))
    for name in [*scores, *([ACTUAL, PREDICTED] if needs.numbers else []), *predictions]:
        value = api.col(name)
        if weighted:
            # what is infinite spoils sums even if it weighs nothing
            value = api.when((api.col(MEASURE) > 0) | (value.abs() == math.inf)).then(value)
        totals += _extremes_of(name, value)
    if len(scores) > 1:
        # null where one is missing
        totals += _extremes_of("total", cumulated(operator.add, list(map(api.col, scores)))[-1])
    return totals


def _totals(values: Mapping[str, Any], *, weighted: bool, api: Any) -> list[Quantity]:
    """The sums of values of rows, which may be weighted."""
    totals: list[Quantity] = []
    for name, value in values.items():
        weighed = value * api.col(MEASURE) if weighted else value
        totals.append((name, "sum", weighed))
    return totals


def _of_scores(terms: Sequence[Statistic], scores: Sequence[str], *, sides: bool, api: Any) -> dict[str, Any]:
    """Quantities of scores by name, for rows with the event and without it; with sides, of complements too."""
    single: dict[str, Any] = {}
    complements: dict[str, Any] = {}
    cumulative: dict[str, Any] = {}
    # the probability of this label or one before it
    totals = cumulated(operator.add, list(map(api.col, scores)))
    for index, (column, total) in enumerate(zip(scores, totals, strict=True)):
        single[str(index)] = score = api.col(column).cast(api.Float64)
        complements[f"{REST}{index}"] = 1 - score
        cumulative[f"{UP_TO}{index}"] = total
    if sides:
        single |= complements
    cumulative = single | cumulative
    values: dict[str, Any] = {}
    for term in terms:
        scores_of_term = cumulative if term.cumulative else single
        for name, score in scores_of_term.items():
            for truth in (0, 1):
                value = term.expression(truth=_number_of_rows(float(truth), score, api), score=score)
                if api is pl and not value.meta.root_names():
                    # databases sum by themselves what depends on no column
                    value = spread(value, score)
                values[f"{term.column} {name} {truth}"] = value
    return values


def _number_of_rows(value: float, column: Any, api: Any) -> Any:
    """The same number for each row, as an expression that formulas may compute with."""
    return number_of_rows(value, column) if api is pl else api.lit(value)


def _of_forecast(terms: Sequence[Statistic], forecast: Forecast, api: Any) -> dict[str, Any]:
    """Quantities of survival times, intervals and quantiles by name, with one for each point where they differ."""
    truth = api.col(ACTUAL)
    columns: dict[str, Any] = {"truth": truth, "time": truth, "estimate": api.col(PREDICTED)}
    if forecast.is_survival:
        columns["event"] = api.col(EVENT)
    if forecast.level is not None:
        lower, upper = forecast.names
        columns |= {
            "lower": api.col(lower),
            "upper": api.col(upper),
            "level": _number_of_rows(forecast.level, truth, api),
        }
    values: dict[str, Any] = {}
    for term in terms:
        if not term.at_points:
            values[term.column] = term.expression(**columns)
            continue
        points = zip(forecast.names, forecast.weight_names, forecast.points, strict=True)
        for index, (prediction, weight, point) in enumerate(points):
            point_of_rows = _number_of_rows(point, truth, api)
            at_point = {
                "survival": api.col(prediction),
                "censoring_weight": api.col(weight),
                "eval_time": point_of_rows,
            }
            at_point |= {"quantile": api.col(prediction), "quantile_level": point_of_rows}
            values[at(term.column, index)] = term.expression(**columns, **at_point)
    return values


def at(column: str, point: int) -> str:
    """The name of a sum at a point, numbered from 0."""
    return f"{column}{_POINT}{point}"


def point_of(name: str) -> tuple[str, int | None]:
    """The name of a sum without its point, and the number of the point; None for sums that do not differ by point."""
    column, mark, rest = name.partition(_POINT)
    if not mark:
        return name, None
    number, space, replicate = rest.partition(" ")
    return f"{column}{space}{replicate}", int(number)


def cumulated(operation: Callable[[Any, Any], Any], values: Sequence[Any]) -> list[Any]:
    """Combine the first expression, the first two and so on, in pairs.

    A chain is as deep as it is long, and engines limit how deep an expression may be.
    """
    if len(values) == 1:
        return [*values]
    half = len(values) // 2
    first = cumulated(operation, values[:half])
    return first + [operation(first[-1], second) for second in cumulated(operation, values[half:])]


def _extremes_of(name: str, value: Any) -> list[Quantity]:
    """The smallest and the largest value of a quantity."""
    least, most = ends_of(name)
    return [(least, "min", value), (most, "max", value)]


def moments(truth_centre: Any, estimate_centre: Any, *, weighted: bool, api: Any = pl) -> list[Quantity]:
    """First and second moments of the rows of a cell about the centers."""
    truth, estimate = api.col(ACTUAL) - truth_centre, api.col(PREDICTED) - estimate_centre
    values = (truth, truth * truth, estimate, estimate * estimate, truth * estimate)
    return _totals(dict(zip(_MOMENTS, values, strict=True)), weighted=weighted, api=api)


def summed(of_rows: Iterable[Quantity]) -> list[pl.Expr]:
    """The quantities of cells from those of their rows."""
    return [getattr(value, reduction)().alias(name) for name, reduction, value in of_rows]


def of_replicate(name: str, number: int) -> str:
    """The name of a sum with the weights of a replicate, numbered from 0."""
    return f"{name}{_OF_REPLICATE}{number}"


def is_of_replicate(name: str) -> bool:
    """Check whether columns of that name hold sums with the weights of a replicate."""
    return _OF_REPLICATE in name


def weight_columns(count: int) -> list[str]:
    """The internal names of a number of columns of replicate weights."""
    return [f"v{index}" for index in range(count)]


def is_weight_column(name: str) -> bool:
    """Check whether a column holds replicate weights: `v0`, `v1`, …."""
    return name[0] == "v" and name[1:].isdigit()


def weights_of_replicates(count: int, *, api: Any = pl) -> list[Quantity]:
    """The sums of the weights of replicates."""
    columns = weight_columns(count)
    return [(of_replicate("w", number), "sum", api.col(column)) for number, column in enumerate(columns)]


def replicated(values: Sequence[Quantity], count: int, *, api: Any = pl) -> list[Quantity]:
    """The sums of unweighted values of rows, weighted with each replicate."""
    sums: list[Quantity] = []
    for number, column in enumerate(weight_columns(count)):
        for name, reduction, value in values:
            if reduction == "sum":
                sums.append((of_replicate(name, number), "sum", value * api.col(column)))
    return sums


def _weight(cells: pl.DataFrame) -> pl.Expr:
    """The weight of the rows of a cell; without weights their number."""
    return pl.col("w") if "w" in cells.columns else pl.col("n")


def digits_lost(cells: pl.DataFrame) -> bool:
    """Check whether any cell is so far from the center that its variance loses too many digits."""
    weight = _weight(cells)

    def is_far(shift: str, square: str) -> pl.Expr:
        distance = (pl.col(shift) ** 2 / weight).fill_nan(0.0)
        return (distance > _LOST * (pl.col(square) - distance)) & (distance > 0)

    lost = is_far("truth_shift", "truth_square") | is_far("estimate_shift", "estimate_square")
    return bool(cells.select(lost.any()).item())


def own_centres(cells: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The means of each cell, as the centers of another count."""
    weight = _weight(cells)
    means: list[pl.Expr] = []
    for centre, shift in zip(_CENTRES, ("truth_shift", "estimate_shift"), strict=True):
        mean = (pl.col(centre) + pl.col(shift) / weight).fill_nan(None)
        means.append(mean.fill_null(pl.col(centre)).alias(centre))
    return cells.select(*by, *means)


def centred(cells: pl.DataFrame, together: Sequence[str] = ()) -> pl.DataFrame:
    """Move the moments of cells that are `together` to one center, so that their sums may be added."""
    if "product" not in cells.columns:
        return cells
    weight = _weight(cells).cast(pl.Float64)
    # the center of the heaviest cell, because a cell of tiny weight may have an extreme mean
    labels = [name for name in ("truth", "estimate") if name in cells.columns]
    counting = weight
    if labels:
        is_complete = pl.all_horizontal(pl.col(labels).is_not_null())
        counting = pl.when(is_complete).then(weight).otherwise(weight * _HARDLY)
    centres: dict[str, pl.Expr] = {}
    for name in _CENTRES:
        centre = pl.col(name).get(counting.arg_max())
        centres[name] = centre.over(together) if together else centre
    truth = pl.col("truth_centre") - centres["truth_centre"]
    estimate = pl.col("estimate_centre") - centres["estimate_centre"]
    sums = {name: pl.col(name) for name in _MOMENTS}
    moved = _moved(sums, weight, truth, estimate)
    number = 0
    while (column := of_replicate("w", number)) in cells.columns:
        of_weights = {name: pl.col(of_replicate(name, number)) for name in _MOMENTS}
        for name, value in _moved(of_weights, pl.col(column), truth, estimate).items():
            moved[of_replicate(name, number)] = value
        number += 1
    return cells.with_columns(**moved, **centres)


def _moved(sums: Mapping[str, Any], weight: Any, truth: Any, estimate: Any) -> dict[str, Any]:
    """Moments about centers lowered by `truth` and `estimate`, for columns or arrays."""
    shift, other = sums["truth_shift"], sums["estimate_shift"]
    return {
        "truth_shift": shift + weight * truth,
        "truth_square": sums["truth_square"] + 2 * truth * shift + weight * truth**2,
        "estimate_shift": other + weight * estimate,
        "estimate_square": sums["estimate_square"] + 2 * estimate * other + weight * estimate**2,
        "product": sums["product"] + truth * other + estimate * shift + weight * truth * estimate,
    }


def recentred(columns: Mapping[str, Array], weight: Array, complete: Booleans, segments: Segments) -> dict[str, Array]:
    """Move the moments of the cells of each run to one center, so that their sums may be added."""
    # the center of the heaviest cell, because a cell of tiny weight may have an extreme mean
    heaviest = segments.first_largest(np.where(complete, weight, weight * _HARDLY))
    truth_centre = segments.to_rows(columns["truth_centre"][heaviest])
    estimate_centre = segments.to_rows(columns["estimate_centre"][heaviest])
    # cells without complete rows have no center, and nothing to be moved
    truth = np.where(weight == 0, 0.0, columns["truth_centre"] - truth_centre)
    estimate = np.where(weight == 0, 0.0, columns["estimate_centre"] - estimate_centre)
    moved = _moved(columns, weight, truth, estimate)
    return moved | {"truth_centre": truth_centre, "estimate_centre": estimate_centre}


def reduction_of(name: str) -> Reduction:
    """The reduction of a column when cells merge: the first of centers, the ends of extremes, and the sum of others."""
    if name in _CENTRES:
        return "first"
    return "min" if name.startswith(_LEAST) else "max" if name.startswith(_MOST) else "sum"


def merged(names: Iterable[str]) -> dict[str, Callable[[pl.Expr], pl.Expr]]:
    """The reduction of each column when cells merge."""
    return {name: getattr(pl.Expr, reduction_of(name)) for name in names}


def running(name: str) -> pl.Expr:
    """Merge the values of all rows except this one; columns must be `centred`."""
    column, reduction = pl.col(name), reduction_of(name)
    if reduction == "first":
        return column
    accumulate = getattr(column, f"cum_{reduction}")
    nothing = 0 if reduction == "sum" else None
    before = accumulate().shift(1, fill_value=nothing)
    after = accumulate(reverse=True).shift(-1, fill_value=nothing)
    others = before + after if reduction == "sum" else getattr(pl, f"{reduction}_horizontal")(before, after)
    return others.alias(name)
