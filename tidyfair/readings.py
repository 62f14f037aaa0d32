"""From counts to values: events, formulas and averages over labels, one row for each unit and metric.

A unit is a group of a `by` within an outer group; it is known by its place in a list of all units.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair.formulas import ROWS, STATISTICS, ranked, two_sides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidyfair.formulas import Formula

__all__: list[str] = []

UNIT, LEVEL = "unit", "level"
ONE_LABEL = ("binary", "one_vs_rest")
"""Estimators that read one label against the rest."""

_CELLS = {
    "tp": (True, True), "fn": (True, False), "fp": (False, True), "tn": (False, False),
    "positive_only": (True, None), "negative_only": (False, None),
    "selected_only": (None, True), "unselected_only": (None, False), "blank": (None, None),
}  # fmt: skip
"""Truth and estimate in the cells of a table of one label against the rest, with those where one is missing."""

_MARGINS = {
    "positives": ("tp", "fn", "positive_only"), "negatives": ("fp", "tn", "negative_only"),
    "selected": ("tp", "fp", "selected_only"), "unselected": ("fn", "tn", "unselected_only"),
    "instances": tuple(_CELLS),
}  # fmt: skip

_USED = {
    frozenset({"truth", "estimate"}): ("tp", "fn", "fp", "tn"),
    frozenset({"truth"}): ("positives", "negatives"),
    frozenset({"estimate"}): ("selected", "unselected"),
    frozenset[str](): ("instances",),
}
"""The statistics whose rows are the rows that a formula uses, by the columns that it reads."""

_VALUES = [UNIT, LEVEL, "metric", "estimate", "n", "denominator", "size", "rows", "weight", "levels_left_out"]


@cache
def _sums(level: int, *, weighted: bool, steps: bool, complete: bool) -> tuple[pl.Expr, ...]:
    """The cells of the table of a level against the rest, as sums over coded cells of a tally.

    Where every row has truth and estimate, those without are left out.
    """

    def on_side(name: str, *, side: bool | None) -> pl.Expr:
        return pl.col(name).is_null() if side is None else pl.col(name) == level if side else pl.col(name) != level

    measures = {ROWS: "n", "": "w"} if weighted else {ROWS: "n"}
    sums = [
        pl.col(measure)
        .filter(on_side("truth", side=truth), on_side("estimate", side=estimate))
        .sum()
        .alias(f"{name}{suffix} {level}")
        for suffix, measure in measures.items()
        for name, (truth, estimate) in _CELLS.items()
        if not complete or None not in (truth, estimate)
    ]
    if steps:
        away = (pl.col("truth") - pl.col("estimate")).abs().cast(pl.Float64)
        sums += [
            (pl.col(measure) * away**power).filter(on_side("truth", side=True)).sum().alias(f"{name}{suffix} {level}")
            for suffix, measure in measures.items()
            for power, name in ((1, "absolute_steps"), (2, "squared_steps"))
        ]
    return tuple(sums)


@cache
def _statistics(*, weighted: bool, steps: bool, complete: bool) -> tuple[list[pl.Expr], list[pl.Expr]]:
    """Margins from cells; then everything as floats, and the rows that formulas use."""
    there = [name for name, sides in _CELLS.items() if not complete or None not in sides]
    margins = [
        pl.sum_horizontal(name + suffix for name in parts if name in there).alias(margin + suffix)
        for suffix in ([ROWS, ""] if weighted else [ROWS])
        for margin, parts in _MARGINS.items()
    ]
    names = [name for name in STATISTICS if name != "rank" and (steps or not name.endswith("_steps"))]
    # floats, because products of large counts overflow integers
    floats = [pl.col(name if weighted else name + ROWS).cast(pl.Float64).alias(name) for name in names]
    used = [pl.sum_horizontal(name + ROWS for name in parts).alias(_used(reads)) for reads, parts in _USED.items()]
    return margins, floats + used


def count_cells(
    cells: pl.DataFrame, keys: Sequence[str], levels: Sequence[int], *, steps: bool, complete: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The distinct keys in order, which are the units, and the cells of each level's table against the rest for each.

    `cells` holds the keys, `truth` and `estimate` as places among the labels, `n` rows and, with weights, `w`;
    `complete` cells have both truth and estimate.
    """
    options = {"weighted": "w" in cells.columns, "steps": steps, "complete": complete}
    sums = [each for level in levels for each in _sums(level, **options)]
    wide = cells.group_by(keys).agg(sums).sort(keys, nulls_last=True)
    counted = wide.columns[len(keys) :]
    names = [name.rpartition(" ")[0] for name in counted[: len(counted) // len(levels)]]
    units, times = pl.Series(range(len(wide)), dtype=pl.Int32), len(levels)
    long = {name: pl.concat([wide[f"{name} {level}"] for level in levels]) for name in names}
    return wide[list(keys)], pl.DataFrame({UNIT: repeat(units, times), LEVEL: spread(levels, len(wide)), **long})


def add_statistics(cells: pl.DataFrame) -> pl.DataFrame:
    """The statistics of formulas beside the cells they are made of.

    Statistics carry their name; counted in rows, their name and `ROWS`.
    """
    there = {name: name + ROWS in cells.columns for name in ("absolute_steps", "blank")}
    margins, rest = _statistics(
        weighted="tp" in cells.columns, steps=there["absolute_steps"], complete=not there["blank"]
    )
    return cells.with_columns(margins).with_columns(rest)


def repeat(values: pl.Series, times: int) -> pl.Series:
    """All values, several times over."""
    return pl.concat([values] * times) if times > 1 else values


def spread(values: Iterable[int], length: int) -> pl.Series:
    """Each value as often as `length` says."""
    parts = [pl.Series([value], dtype=pl.Int32).new_from_index(0, length) for value in values]
    return pl.concat(parts) if len(parts) > 1 else parts[0]


def pool(
    table: pl.DataFrame, parts: list[pl.Series], apart: pl.Series, what: Literal["overall", "rest"]
) -> pl.DataFrame:
    """The same rows with the statistics of all groups together, or of all other groups.

    Rows are together whose `parts` and level are equal; rows `apart` are in nobody's pool.
    """
    placed = table.with_columns(
        apart.alias("apart"), *(part.alias(f"part {index}") for index, part in enumerate(parts))
    )
    by = [LEVEL, *(f"part {index}" for index in range(len(parts)))]
    statistics = pl.col([name for name in table.columns if name not in {UNIT, LEVEL}])
    every = pl.when(~pl.col("apart")).then(statistics).otherwise(0)
    if what == "overall":
        pooled = every.sum()
    else:
        # sums of what comes before and after: subtracting floats would leave dust where there is nothing
        before, after = every.cum_sum(), every.cum_sum(reverse=True)
        pooled = before.shift(1, fill_value=0) + after.shift(-1, fill_value=0)
    return placed.with_columns(pooled.over(by)).select(table.columns)


def evaluate(table: pl.DataFrame, formulas: Mapping[int, Formula], estimator: str) -> pl.DataFrame:
    """The values of formulas, in blocks: those with a multi-class form of their own first, then the others.

    A block has one row for each unit or, where labels are read one by one, for each row of the table, in its order.
    Columns: `unit`, `level`, `metric` (the key of the formula), `estimate`, `denominator` and `n` (rows), `size`
    (weight of all rows), `rows`, `weight` and `levels_left_out`.
    """
    own = {key: formula for key, formula in formulas.items() if formula.over_levels}
    labelled = {key: formula for key, formula in formulas.items() if not formula.over_levels}
    found: list[pl.DataFrame] = []
    if own and estimator in ONE_LABEL:
        found.append(_values(two_sides(table), own, [UNIT, LEVEL], summed=True))
    elif own:
        found.append(_values(ranked(table, pl.col(LEVEL)), own, [UNIT], summed=True))
    if labelled and estimator == "micro":
        used = [_used(reads) for reads in _USED]
        pooled = table.group_by(UNIT, maintain_order=True).agg(pl.exclude(LEVEL, *used).sum(), pl.col(used).first())
        found.append(_values(pooled, labelled, [UNIT]))
    elif labelled and estimator in ONE_LABEL:
        found.append(_values(table, labelled, [UNIT, LEVEL]))
    elif labelled:
        found.append(
            _average(_values(table, labelled, [UNIT, LEVEL]), labelled, weighted=estimator == "macro_weighted")
        )
    return pl.concat(found)


def _used(reads: frozenset[str]) -> str:
    return "used by " + " and ".join(sorted(reads))


def _values(
    table: pl.DataFrame, formulas: Mapping[int, Formula], keys: list[str], *, summed: bool = False
) -> pl.DataFrame:
    """One row for each key and formula; `summed` where the formulas sum over the rows of a key themselves."""

    def one(expr: pl.Expr) -> pl.Expr:
        return expr.first() if summed else expr

    wanted = {
        "size": one(pl.col("instances")),
        "rows": one(pl.col(_used(frozenset()))),
    }
    for key, formula in formulas.items():
        wanted[f"estimate {key}"] = formula.value
        wanted[f"n {key}"] = one(pl.col(_used(formula.reads)))
        # how often a label is true among the rows that the formula reads
        true = pl.col("tp") + pl.col("fn") if "estimate" in formula.reads else pl.col("positives")
        wanted[f"weight {key}"] = one(true)
        wanted[f"denominator {key}"] = wanted[f"n {key}"] if formula.denominator is None else formula.denominator
    wide = table.group_by(keys, maintain_order=True).agg(**wanted) if summed else table.select(*keys, **wanted)
    absent = {LEVEL: pl.Series([None], dtype=pl.Int32), "levels_left_out": pl.Series([False])}
    columns = {name: wide[name] for name in (*keys, "size", "rows")}
    columns |= {name: each.new_from_index(0, len(wide)) for name, each in absent.items() if name not in columns}
    long = {name: repeat(column, len(formulas)) for name, column in columns.items()}
    long["metric"] = spread(formulas, len(wide))
    long |= {
        name: pl.concat([wide[f"{name} {key}"] for key in formulas])
        for name in ("estimate", "n", "denominator", "weight")
    }
    return pl.DataFrame({name: long[name] for name in _VALUES})


def _average(values: pl.DataFrame, formulas: Mapping[int, Formula], *, weighted: bool) -> pl.DataFrame:
    """The mean over labels, each counting the same or as often as it is true.

    Labels without a value are left out where the formula says so; else the mean has none, unless they weigh nothing.
    """
    weight = pl.col("weight") if weighted else pl.lit(1.0)
    known = pl.col("estimate").is_not_null()
    drops = pl.col("metric").is_in([key for key, formula in formulas.items() if formula.undefined_levels == "drop"])
    counted = known & (weight > 0)
    complete = (known | (weight == 0)).all() | drops.first()
    mean = (pl.col("estimate") * weight).filter(counted).sum() / (weight * counted).sum()
    averaged = values.group_by("metric", UNIT, maintain_order=True).agg(
        pl.lit(None, pl.Int32).alias(LEVEL),
        pl.when(complete).then(mean).fill_nan(None).alias("estimate"),
        pl.col("n", "size", "rows", "weight").first(),
        pl.col("n").first().alias("denominator"),
        (~(known | (weight == 0))).any().alias("levels_left_out"),
    )
    return averaged.select(_VALUES)
