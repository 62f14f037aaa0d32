"""The effect of empty cells of truth and estimate on values.

Replicates leave empty cells empty, so that a group without errors has none in any of them. If none of n rows is in a
cell, the share of that cell may be as large as z² / (n + z²) (Wilson, 1927): the share that z² more rows in it have.
So values are computed again with as many rows in each empty cell, one cell at a time, and limits include them. For a
rate of none or all of its rows this is Wilson's limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidyfair.evaluation.evaluated import evaluate_specs
from tidyfair.evaluation.group_cells import group_cell_of_rows
from tidyfair.evaluation.results import tidy_groups
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.bootstrap import group_keys, is_of_labels, label_pairs, quietly
from tidyfair.intervals.resampling import DRAW, MOST_CELLS, kept_keys
from tidyfair.intervals.simultaneous import compared_values
from tidyfair.specs.columns import Column
from tidyfair.tallies.tally import BLOCK, LABELS, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, TypeAlias

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.evaluation.group_cells import GroupCells
    from tidyfair.specs.groups import By
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

LOW, HIGH = "lowest", "highest"
"""The columns of the smallest and the largest value with empty cells filled."""
_ALL, _ROW = "all rows", "one row"
_MOST_FILLED = 10_000
"""The most replicates with filled cells; with more than a hundred labels not all pairs are filled."""
_NONE = pl.Schema({".metric": pl.String, ".by": pl.String, LOW: pl.Float64, HIGH: pl.Float64})


def filled_groups(tally: Tally, specs: Sequence[MetricSpec], options: Options, z: float) -> pl.DataFrame:
    """The smallest and the largest value of each group at so many standard errors, by the keys of tidy tables.

    Metrics that read more than labels have none.
    """
    by_groups: dict[tuple[By | None, bool], list[MetricSpec]] = {}
    for spec in filter(is_of_labels, specs):
        compares = any(formula.compares for _, formula in spec.formulas)
        by_groups.setdefault((spec.by, compares), []).append(spec)
    tally, quiet = tally.at_each_cut(), quietly(options)
    tables = list[pl.DataFrame]()
    for (by, compares), own in by_groups.items():
        (evaluated,) = evaluate_specs(tally, own, quiet)
        pairs = label_pairs(tally, options)
        drawn = _filled(tally, by, evaluated.group_cells, pairs, z, one_at_a_time=compares)
        tables += [tidy_groups(values) for filled in drawn for values in evaluate_specs(filled, own, quiet)]
    if not tables:
        return pl.DataFrame(schema=_NONE)
    filled_values, value = pl.concat(tables, how="diagonal_relaxed"), pl.col(".estimate")
    ends = [value.min().alias(LOW), value.max().alias(HIGH)]
    return filled_values.filter(value.is_finite()).group_by(group_keys(tally, filled_values)).agg(ends)


def filled_result(evaluated: Evaluated, part: pl.DataFrame) -> tuple[float | None, float | None]:
    """The smallest and the largest value of a comparison if one group, or all of them, have values of filled cells."""
    import numpy as np

    if evaluated.specs[int(part["spec"][0])].aggregate is None:
        return part[LOW][0], part[HIGH][0]
    value, ends = part["estimate"].to_numpy(), [part[name].to_numpy() for name in (LOW, HIGH)]
    group_cell = part[GROUP_CELL].to_numpy()
    cases: list[Floats] = []
    for end in ends:
        # infinity minus itself is not a number
        away = np.abs(np.where(end == value, 0.0, end) - np.where(end == value, 0.0, value))
        # only the farthest groups, if there are very many
        farthest = list(dict.fromkeys(group_cell[np.argsort(-away, kind="stable")].tolist()))
        reaching = [cell for cell in farthest[: MOST_CELLS // len(part)] if (away[group_cell == cell] > 0).any()]
        cases += [np.where(group_cell == cell, end, value) for cell in reaching]
        cases += [end] if reaching else []
    if not cases:
        return None, None
    compared = compared_values(evaluated, part, np.stack(cases)).drop_nulls()
    finite: list[float] = compared.filter(compared.is_finite()).to_list()
    return (min(finite), max(finite)) if finite else (None, None)


def _filled(
    tally: Tally, by: By | None, group_cells: GroupCells, pairs: pl.DataFrame, z: float, *, one_at_a_time: bool
) -> Iterator[Tally]:
    """Replicates of a tally in which rows are added to one empty cell, or to all of them together.

    With `one_at_a_time` this is done in one group after another, for metrics that compare groups themselves.
    """
    import numpy as np

    columns = by.columns if by else ()
    outer = tally.names([key.column for key in tally.outer])
    kept = [*outer, *(name for name in tally.names(columns) if name not in outer)]
    weight, square = ("w", "w2") if "w" in tally.cells.columns else ("n", "n")
    cells = tally.cells.with_columns(
        group_cell_of_rows(tally, group_cells, by), w=pl.col(weight).cast(pl.Float64), w2=pl.col(square)
    )
    groups = cells.group_by(GROUP_CELL).agg(
        pl.col(kept).first(), pl.col("n").sum().alias("rows"), pl.col("w").sum().alias(_ALL),
        (pl.col("w2").sum() / pl.col("w").sum()).fill_nan(0.0).alias(_ROW),
    )  # fmt: skip
    groups = groups.join(_weight_of_a_unit(tally, cells), on=GROUP_CELL)
    together = cells.group_by(GROUP_CELL, *kept, *LABELS).agg(pl.col("n", "w").sum())
    added = _added(groups, together, pairs, z, one_at_a_time=one_at_a_time)
    keys, renamed = kept_keys(tally, columns)
    renamed = {**renamed, DRAW: f"k{len(keys)}"}
    order = [*(f"k{index}" for index in range(len(keys) + 1)), *LABELS, "n", "w", "w2"]
    numbers = added[DRAW].unique().sort()
    step = max(1, MOST_CELLS // max(1, len(together)))
    for start in range(0, len(numbers), step):
        drawn = numbers[start : start + step]
        same = together[np.tile(np.arange(len(together)), len(drawn))]
        same = same.with_columns(pl.Series(DRAW, np.repeat(drawn.to_numpy(), len(together))))
        frame = pl.concat([same, added.filter(pl.col(DRAW).is_in(drawn.implode())).select(same.columns)])
        frame = frame.join(groups.select(GROUP_CELL, _ALL, _ROW), on=GROUP_CELL, maintain_order="left")
        # the weight of a group stays the same
        weight = pl.col("w") * pl.col(_ALL) / pl.col("w").sum().over(GROUP_CELL, DRAW)
        frame = frame.with_columns(w=weight, w2=weight * pl.col(_ROW)).rename(renamed).select(order)
        yield replace(tally, cells=frame, keys=(*keys, Key(Column(DRAW), "outer")), weights=Column("weight"), rows=None)


def _added(
    groups: pl.DataFrame, together: pl.DataFrame, pairs: pl.DataFrame, z: float, *, one_at_a_time: bool
) -> pl.DataFrame:
    """The rows that are added to the empty cells of groups, numbered by the replicate in which they are."""
    # the values of the smallest groups move farthest
    empty = groups.sort("rows", GROUP_CELL).join(pairs.with_row_index("pair"), how="cross", maintain_order="left_right")
    occupied = together.filter(pl.col("n") > 0)
    empty = empty.join(occupied, on=[GROUP_CELL, *LABELS], how="anti", nulls_equal=True, maintain_order="left")
    rows = z**2 * pl.col("each")
    shared, alone = (
        (pl.col(GROUP_CELL).rle_id(), pl.int_range(pl.len())) if one_at_a_time else (pl.lit(0), pl.col("pair"))
    )
    several = len(groups) if one_at_a_time else 1
    filled = [
        empty.with_columns(number.cast(pl.Int64).alias(DRAW), w=weight)
        for number, weight in ((shared, rows / pl.len().over(GROUP_CELL)), (alone + several, rows))
    ]
    return pl.concat(filled).filter(pl.col(DRAW) < _MOST_FILLED).with_columns(n=pl.lit(1, pl.Int64))


def _weight_of_a_unit(tally: Tally, cells: pl.DataFrame) -> pl.DataFrame:
    """The weight of a row, or of a cluster, of each group, if all were equal and effectively as many."""
    clusters = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    weight = pl.col("w")
    if clusters:
        cells = cells.group_by(GROUP_CELL, *clusters).agg(weight.sum()).with_columns(w2=weight**2)
    return cells.group_by(GROUP_CELL).agg((pl.col("w2").sum() / weight.sum()).fill_nan(0.0).alias("each"))
