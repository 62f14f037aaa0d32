"""From counts to values: events, formulas and averages over labels, one row for each group and metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from tidyfair.formulas import ROWS, STATISTICS, other_side
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tidyfair.formulas import Formula

__all__: list[str] = []

IDS = ["by", "outer", "group"]
"""What a row is about: places in the lists of `by`s, of outer groups, and of groups of that `by`."""
LEVEL = "level"

ONE_LABEL = ("binary", "one_vs_rest")
"""Estimators that read one label against the rest."""

_POSITIVE, _NEGATIVE, _MISSING = 1, 0, -1
_CELLS = {
    "tp": (_POSITIVE, _POSITIVE), "fn": (_POSITIVE, _NEGATIVE), "fp": (_NEGATIVE, _POSITIVE), "tn": (_NEGATIVE, _NEGATIVE),
    "positive_only": (_POSITIVE, _MISSING), "negative_only": (_NEGATIVE, _MISSING),
    "selected_only": (_MISSING, _POSITIVE), "unselected_only": (_MISSING, _NEGATIVE),
    "blank": (_MISSING, _MISSING),
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


def count_events(cells: pl.DataFrame, levels: Iterable[int], *, steps: bool) -> pl.DataFrame:
    """The statistics of each level against the rest, one row for each group and level.

    `cells` holds `IDS`, `truth` and `estimate` as places among the labels, `n` rows and, with weights, `w`. Statistics
    carry their name; counted in rows, their name and `ROWS`.
    """
    measures = {"": "w", ROWS: "n"} if "w" in cells.columns else {ROWS: "n"}

    def side(name: str, level: int) -> pl.Expr:
        return (pl.col(name) == level).cast(pl.Int8).fill_null(_MISSING).alias(f"{name}_side")

    sums = [
        pl.col(measure).filter(pl.col("truth_side") == truth, pl.col("estimate_side") == estimate).sum().alias(name + suffix)
        for suffix, measure in measures.items()
        for name, (truth, estimate) in _CELLS.items()
    ]
    if steps:
        away = (pl.col("truth") - pl.col("estimate")).abs().cast(pl.Int64)
        sums += [
            (pl.col(measure) * away**power).filter(pl.col("truth_side") == _POSITIVE).sum().alias(name + suffix)
            for suffix, measure in measures.items()
            for power, name in ((1, "absolute_steps"), (2, "squared_steps"))
        ]
    tables = [
        cells.lazy()
        .with_columns(side("truth", level), side("estimate", level))
        .group_by(IDS)
        .agg(sums)
        .with_columns(pl.lit(level, pl.Int32).alias(LEVEL))
        for level in levels
    ]
    table = pl.concat(tables).with_columns(
        pl.sum_horizontal(name + suffix for name in parts).alias(margin + suffix)
        for suffix in measures
        for margin, parts in _MARGINS.items()
    )
    statistics = [name for name in STATISTICS if name != "rank" and (steps or not name.endswith("_steps"))]
    source = "" if "w" in cells.columns else ROWS
    # floats, because products of large counts overflow integers
    as_floats = [pl.col(name + source).cast(pl.Float64).alias(name) for name in statistics]
    used = [
        pl.sum_horizontal(name + ROWS for name in names).alias(_used(reads)) for reads, names in _USED.items()
    ]
    return table.with_columns(*as_floats, *used).sort(*IDS, LEVEL).collect()


def pool(table: pl.DataFrame, what: Literal["overall", "rest"]) -> pl.DataFrame:
    """The same rows with the statistics of all groups together, or of all other groups."""
    statistics = [name for name in table.columns if name not in {*IDS, LEVEL}]
    every = pl.col(statistics)
    if what == "overall":
        pooled = every.sum()
    else:
        # sums of what comes before and after: subtracting floats would leave dust where there is nothing
        before, after = every.cum_sum(), every.cum_sum(reverse=True)
        pooled = before.shift(1, fill_value=0) + after.shift(-1, fill_value=0)
    return table.with_columns(pooled.over("by", "outer", LEVEL))


def evaluate(table: pl.DataFrame, formulas: Mapping[int, Formula], estimator: str, *, na_rm: bool) -> pl.DataFrame:
    """The values of formulas: one row for each formula and group, and label where labels are read one by one.

    Columns: `IDS`, `level`, `metric` (the key of the formula), `estimate`, `denominator` and `n` (rows), `size` (weight
    of all rows) and `status`.
    """
    own = {key: formula for key, formula in formulas.items() if formula.over_levels}
    labelled = {key: formula for key, formula in formulas.items() if not formula.over_levels}
    found: list[pl.DataFrame] = []
    if own and estimator in ONE_LABEL:
        two_rows = pl.concat([table.with_columns(_rank(pl.lit(0))), other_side(table).with_columns(_rank(pl.lit(1)))])
        found.append(_values(two_rows, own, [*IDS, LEVEL], summed=True))
    elif own:
        found.append(_values(table.with_columns(_rank(pl.col(LEVEL))), own, IDS, summed=True))
    if labelled and estimator == "micro":
        used = [_used(reads) for reads in _USED]
        pooled = table.group_by(IDS, maintain_order=True).agg(pl.exclude(LEVEL, *used).sum(), pl.col(used).first())
        found.append(_values(pooled, labelled, IDS))
    elif labelled and estimator in ONE_LABEL:
        found.append(_values(table, labelled, [*IDS, LEVEL]))
    elif labelled:
        found.append(_average(_values(table, labelled, [*IDS, LEVEL]), labelled, weighted=estimator == "macro_weighted"))
    missing = (pl.col("rows") > pl.col("n")) & (not na_rm)
    estimate = pl.when(~missing).then("estimate").alias("estimate")
    status = (
        pl.when(missing).then(pl.lit("missing_values"))
        .when(pl.col("estimate").is_null()).then(pl.lit("zero_denominator"))
        .when(pl.col("estimate").is_infinite()).then(pl.lit("infinite"))
        .when("levels_left_out").then(pl.lit("levels_left_out"))
        .otherwise(pl.lit("ok")).alias("status")
    )  # fmt: skip
    return pl.concat(found, how="diagonal").select(
        *IDS, pl.col(LEVEL), "metric", estimate, "denominator", "n", "size", status
    )


def _used(reads: frozenset[str]) -> str:
    return "used by " + " and ".join(sorted(reads))


def _rank(place: pl.Expr) -> list[pl.Expr]:
    return [place.cast(pl.Float64).alias("rank"), place.cast(pl.Int64).alias("rank" + ROWS)]


def _values(
    table: pl.DataFrame, formulas: Mapping[int, Formula], keys: list[str], *, summed: bool = False
) -> pl.DataFrame:
    """One row for each key and formula; `summed` where the formulas sum over the rows of a key themselves."""

    def one(expr: pl.Expr) -> pl.Expr:
        return expr.first() if summed else expr

    wanted = {"size": one(pl.col("instances")), "rows": one(pl.col("instances" + ROWS)), "weight": one(pl.col("tp") + pl.col("fn"))}
    for key, formula in formulas.items():
        value, (_, denominator) = formula.express()[0], formula.express(ROWS)
        wanted[f"estimate {key}"] = value.cast(pl.Float64).fill_nan(None)
        wanted[f"n {key}"] = one(pl.col(_used(formula.reads)))
        wanted[f"denominator {key}"] = wanted[f"n {key}"] if denominator is None else denominator
    wide = table.group_by(keys, maintain_order=True).agg(**wanted) if summed else table.select(*keys, **wanted)
    level = [] if LEVEL in keys else [pl.lit(None, pl.Int32).alias(LEVEL)]
    return pl.concat(
        wide.select(
            *keys, *level, pl.lit(key, pl.Int32).alias("metric"), pl.col(f"estimate {key}").alias("estimate"),
            pl.col(f"denominator {key}").alias("denominator"), pl.col(f"n {key}").alias("n"),
            "size", "rows", "weight", pl.lit(value=False).alias("levels_left_out"),
        )
        for key in formulas
    )  # fmt: skip


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
    return values.group_by("metric", *IDS, maintain_order=True).agg(
        pl.lit(None, pl.Int32).alias(LEVEL),
        pl.when(complete).then(mean).fill_nan(None).alias("estimate"),
        pl.col("n").first().alias("denominator"),
        pl.col("n", "size", "rows").first(),
        (~(known | (weight == 0))).any().alias("levels_left_out"),
    )
