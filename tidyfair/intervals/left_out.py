"""Replicates of tallies without some of their rows, and the limits of results that follow from these.

What a result loses without a row is the influence of that row, whatever the result is made of: values of several
groups, of two models, or of groups and all rows together. The influences of all rows give its variance (Tukey, 1958).
Rows of labels are known by their cell, with a part of a row more in each cell. Other rows are left out in random parts,
and rows of a cluster together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.intervals.proportions import student_limits, z_value
from tidyfair.intervals.resampling import DRAW, MOST_CELLS, in_order, kept_keys, placed
from tidyfair.progress import in_progress
from tidyfair.specs.columns import Column
from tidyfair.specs.segments import Segments
from tidyfair.tallies.tally import BLOCK, LABELS, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.specs.segments import Integers
    from tidyfair.tallies.tally import Tally

    Frames: TypeAlias = Iterator[tuple[pl.DataFrame, tuple[Key, ...]]]

__all__: list[str] = []

_MOST_PARTS, _FEWEST_PARTS = 400, 30
_FEW_ROWS, _MOST_ROWS = 2**22, 2**26
"""The rows that are read in all: with as many parts as few rows allow, or with the fewest parts as most rows do."""
_ROUNDED = 1e-12
"""The relative difference of sums of the same floats in another order is smaller."""
_ADDED_CHANGES = 2.0
"""Rows that change as others do, and are taken to have been missed (Bonett and Price, 2012)."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The unit that is left out of each replicate; replicate 0 has everything."""

    units: pl.DataFrame
    """For the keys of outer groups and the number of a replicate: the `stratum` of what it lacks, the `weight` of all
    that is like it, the sum of its `squares`, and how much is `left_out`."""
    freedom: pl.DataFrame
    """For the keys of outer groups and a stratum: its degrees of freedom."""
    outer: list[str]

    def limits(self, values: pl.DataFrame, level: float, *, few_change: bool) -> pl.DataFrame:
        """Limits of results and their standard errors, from the `value` of each replicate and its other keys.

        The `size` of a value is that of the numbers whose rounding errors it has.
        Where it may be that few units change, as many more are counted as Bonett and Price add to changes of rates.
        """
        names = [*self.outer, *(name for name in values.columns if name not in {*self.outer, DRAW, "value", "size"})]
        everything = values.filter(pl.col(DRAW) == 0).select(*names, "size", pl.col("value").alias("centre"))
        without = values.filter(pl.col(DRAW) > 0).drop("size").join(everything, on=names, nulls_equal=True)
        errors = self._errors(without, names, few_change=few_change)
        limits = everything.join(errors, on=names, how="left", nulls_equal=True)
        freedom = limits["freedom"].fill_nan(None).fill_null(0.0).to_numpy()
        centre, error = pl.col("centre"), pl.col(".std_error")
        half = error * pl.Series(student_limits(z_value(level), freedom))
        # what has not been seen to vary says nothing about how far it varies
        varies = (error > _ROUNDED * pl.col("size")) & half.is_finite()
        columns = {".lower": centre - half, ".upper": centre + half, ".std_error": error}
        return limits.select(*names, *(pl.when(varies).then(value).alias(name) for name, value in columns.items()))

    def _errors(self, without: pl.DataFrame, names: Sequence[str], *, few_change: bool) -> pl.DataFrame:
        """The standard errors, and degrees of freedom, of the `centre` from the values without some rows."""
        weight, squares, left_out, influence = map(pl.col, ("weight", "squares", "left_out", "influence"))
        stratum = [*names, "stratum"]
        remaining = 1 - left_out / weight.sum().over(stratum)
        influences = without.join(self.units, on=[*self.outer, DRAW], nulls_equal=True).with_columns(
            ((pl.col("centre") - pl.col("value")) / left_out * remaining).alias("influence")
        )
        count = weight.sum() ** 2 / squares.sum()
        total = (squares * influence**2).sum()
        about_mean = pl.max_horizontal(total - (weight * influence).sum() ** 2 / count, 0.0)
        variances = influences.group_by(stratum).agg(
            (about_mean * count / (count - 1)).alias("variance"),
            total.alias("squares"),
            (squares**2 * influence**4).sum().alias("fourths"),
            influence.fill_null(math.nan).is_nan().any().alias("unknown"),
        )
        # in order, so that the same rows give the same numbers to the last bit
        variances = variances.join(self.freedom, on=[*self.outer, "stratum"], nulls_equal=True).sort(stratum)
        variance, freedom = pl.col("variance"), pl.col("freedom").clip(1)
        changing = squares.sum() ** 2 / pl.col("fourths").sum()
        factor = 1 + _ADDED_CHANGES / changing if few_change else pl.lit(1.0)
        return variances.group_by(names, maintain_order=True).agg(
            pl.when(~pl.col("unknown").any()).then((variance.sum() * factor).sqrt()).alias(".std_error"),
            (variance.sum() ** 2 / (variance**2 / freedom).sum()).alias("freedom"),
        )


def without_rows_of_cells(
    tally: Tally, by: Sequence[Column], labels: Sequence[str], added: pl.DataFrame, rows: float
) -> tuple[LeftOut, Iterator[Tally]]:
    """Replicates of a tally of labels in which a row of one cell is left out.

    `by` is kept of the keys beside outer groups; `labels` are the columns that tell cells of a group apart. Before, so
    many rows are spread over the cells `added` of each group.
    """
    import numpy as np

    outer = tally.names([key.column for key in tally.outer])
    own = [*outer, *(name for name in tally.names(by) if name not in {*outer, *labels})]
    cells = _with_rows_added(tally, own, labels, added, rows)
    cells = cells.sort(*own, *labels, nulls_last=True)
    outer_index, keys_of_outer = placed(cells, outer)
    stratum, _ = placed(cells, own)
    segments = Segments.of(outer_index)
    number = 1 + np.arange(len(cells)) - segments.to_rows(segments.starts)
    weight, squares = (cells[name].to_numpy() for name in ("w", "w2"))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_row = np.where(weight > 0, squares / weight, 0.0)
    left_out = np.minimum(of_row, weight / 2)
    names_of_outer = [key.column.name for key in tally.outer]
    of_outer = _outer_columns(names_of_outer, keys_of_outer, outer_index)
    keys_of_cells = pl.DataFrame([*of_outer, pl.Series("stratum", stratum)])
    numbers = {DRAW: number, "weight": weight, "squares": squares, "left_out": left_out}
    units = keys_of_cells.hstack(pl.DataFrame(numbers))
    observed = keys_of_cells.hstack(cells.select("observed", "observed squares"))
    total, square = pl.col("observed").sum(), pl.col("observed squares").sum()
    freedom = observed.group_by(*names_of_outer, "stratum").agg((total**2 / square - 1).alias("freedom"))
    keys, renamed = kept_keys(tally, _columns(tally, [*own, *labels]))
    frame = cells.drop("observed", "observed squares").rename(renamed)
    sizes = segments.to_rows(segments.sizes)

    def replicates() -> Iterator[Tally]:
        draw = f"k{len(keys)}"
        order = [*(f"k{index}" for index in range(len(keys) + 1)), *LABELS, "n", "w", "w2"]
        for start, end in _runs(1 + int(segments.sizes.max(initial=0)), len(cells)):
            parts = [np.flatnonzero(sizes >= replicate) for replicate in range(start, end)]
            rows_of_parts = np.concatenate(parts)
            replicate = np.repeat(np.arange(start, end), [len(part) for part in parts])
            lacking = np.where(number[rows_of_parts] == replicate, left_out[rows_of_parts], 0.0)
            drawn = frame[rows_of_parts].with_columns(
                pl.Series(draw, replicate),
                w=pl.Series(weight[rows_of_parts] - lacking),
                w2=pl.Series(squares[rows_of_parts] - of_row[rows_of_parts] * lacking),
            )
            yield replace(
                tally, cells=drawn.select(order), keys=(*keys, Key(Column(DRAW), "outer")), weights=Column("weight"),
                rows=None,
            )  # fmt: skip

    return LeftOut(units, freedom, names_of_outer), replicates()


def _outer_columns(names: Sequence[str], keys: pl.DataFrame, index: Integers) -> list[pl.Series]:
    """The keys of outer groups, under the names of the user's columns, from the index of each."""
    return [key[index].alias(name) for name, key in zip(names, keys.get_columns(), strict=True)]


def _columns(tally: Tally, names: Sequence[str]) -> list[Column]:
    """The columns of the keys with some names in cells."""
    return [key.column for index, key in enumerate(tally.keys) if f"k{index}" in names]


def _runs(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Runs of replicates of so many cells that fit into memory."""
    step = max(1, MOST_CELLS // max(1, size))
    for start in in_progress(range(0, count, step), "leaving out rows"):
        yield start, min(start + step, count)


def _with_rows_added(
    tally: Tally, own: Sequence[str], labels: Sequence[str], added: pl.DataFrame, rows: float
) -> pl.DataFrame:
    """The cells of groups with their rows and weights, observed ones beside those with rows added."""
    weight = pl.col("w" if "w" in tally.cells.columns else "n").cast(pl.Float64)
    square = pl.col("w2" if "w2" in tally.cells.columns else "n").cast(pl.Float64)
    observed = tally.cells.group_by(*own, *labels).agg(
        pl.col("n").sum(), weight.sum().alias("observed"), square.sum().alias("observed squares")
    )
    total, total_square = pl.col("observed").sum(), pl.col("observed squares").sum()
    groups = observed.group_by(own) if own else observed.group_by(pl.lit(0).alias(DRAW))
    groups = groups.agg((total_square / total).fill_nan(0.0).alias("row"))
    groups = groups if own else groups.drop(DRAW)
    if added.is_empty():
        return observed.with_columns(w="observed", w2="observed squares")
    share = rows / len(added)
    of_groups = groups.join(added.select(labels).cast({name: observed.schema[name] for name in labels}), how="cross")
    cells = of_groups.join(observed, on=[*own, *labels], how="full", coalesce=True, nulls_equal=True)
    row, extra = pl.col("row").fill_null(0.0), (pl.col("row") * share).fill_null(0.0)
    cells = cells.with_columns(pl.col("n", "observed", "observed squares").fill_null(0))
    with_added = {"w": pl.col("observed") + extra, "w2": pl.col("observed squares") + extra * row}
    return cells.with_columns(**with_added).drop("row")


def without_parts(
    tally: Tally, rows: pl.DataFrame, by: Sequence[Column], random: np.random.Generator
) -> tuple[LeftOut, Frames]:
    """The rows of replicates without a random part, or a cluster, of each outer group, and their keys."""
    import numpy as np

    keys, names = kept_keys(tally, by)
    own = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    rows = in_order(tally, rows, [*names, *own])
    outer = tally.names([key.column for key in tally.outer])
    outer_index, keys_of_outer = placed(rows, outer)
    unit = np.arange(len(rows)) if not own else placed(rows, own)[0]
    part = _parts(outer_index, unit, random)
    kept, draw = rows.drop(own).rename(names), f"k{len(keys)}"
    weight = rows["weight"].to_numpy().astype(float) if "weight" in rows.columns else np.ones(len(rows))
    counted = pl.DataFrame({"outer": outer_index, "part": part, "w": weight}).group_by("outer", "part")
    sums = counted.agg(pl.col("w").sum()).sort("outer", "part")
    names_of_outer = [key.column.name for key in tally.outer]
    weights = sums["w"].to_numpy()
    numbers = {
        DRAW: sums["part"].to_numpy() + 1, "stratum": np.zeros(len(sums), dtype=np.int64), "weight": weights,
        "squares": weights**2, "left_out": weights,
    }  # fmt: skip
    keys_of_parts = _outer_columns(names_of_outer, keys_of_outer, sums["outer"].to_numpy())
    units = pl.DataFrame([*keys_of_parts, *pl.DataFrame(numbers).get_columns()])
    count = pl.col("weight").sum() ** 2 / pl.col("squares").sum()
    freedom = units.group_by(*names_of_outer, "stratum").agg((count - 1).alias("freedom"))
    parts_of_outer = np.bincount(sums["outer"].to_numpy(), minlength=1)[outer_index] if len(rows) else part

    def frames() -> Frames:
        for start, end in _runs(1 + int(parts_of_outer.max(initial=0)), len(rows)):
            chosen = [
                np.flatnonzero((part + 1 != replicate) & (parts_of_outer >= replicate))
                for replicate in range(start, end)
            ]
            replicate = np.repeat(np.arange(start, end, dtype=np.int32), [len(indices) for indices in chosen])
            drawn = kept[np.concatenate(chosen)].with_columns(pl.Series(draw, replicate))
            yield drawn, (*keys, Key(Column(DRAW), "outer"))

    return LeftOut(units, freedom, names_of_outer), frames()


def _parts(outer: Integers, unit: Integers, random: np.random.Generator) -> Integers:
    """The part of each row within its outer group: rows or clusters one by one, or random parts of many."""
    import numpy as np

    pairs = np.stack([outer, unit], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    of_outer = distinct[:, 0]
    # in random order within their outer group
    order = np.lexsort((random.random(len(distinct)), of_outer))
    segments = Segments.of(of_outer)
    number = np.empty(len(distinct), dtype=np.int64)
    number[order] = np.arange(len(distinct)) - segments.to_rows(segments.starts)
    rows = max(1, len(outer))
    most = max(_FEW_ROWS // rows, int(np.clip(_MOST_ROWS // rows, _FEWEST_PARTS, _MOST_PARTS)))
    return (number % most)[index.ravel()]
