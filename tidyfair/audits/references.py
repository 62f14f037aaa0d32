"""References that groups are compared with: a group, by name or by its value, all rows, or all other groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.evaluation import (
    GROUP_CELL,
    LEVEL,
    Evaluated,
    evaluate_specs,
    group_cell_of_frame,
    group_cell_of_kept_rows,
    slice_of,
)
from tidyfair.intervals import ComparedGroups, Estimates, Limits, Scale, of_all_outer_groups, p_values, z_value
from tidyfair.specs import ALL_GROUPS, By, Column, Integers, Options, difference
from tidyfair.tallies import SHARED_ROW, Key, Tally, centred, key_names, merged

Floats: TypeAlias = np.ndarray[Any, Any]

BY_VALUE = ("best", "highest", "lowest")
"""References that are the group with such a value."""
IN_WORDS = (
    '"best", "highest" or "lowest" (the group with that value), "majority" (the largest group), "overall" (all rows) '
    'or "rest" (all others)'
)
_NEAR = 1e-9
_COPY, _IS_REST = "\0copy", "\0is_rest"
"""The keys of a group that stands beside all others, and of its two sides; no column of a user has these names."""
_GROUP_OR_REST = By((Column(_IS_REST),), policy=ALL_GROUPS)
_MOST_COPIED = 2**20
"""The most cells or rows that are copied at once."""
_BESIDE: dict[str, Any] = {
    "spec": pl.Int32, LEVEL: pl.Int32, GROUP_CELL: pl.Int32, "of_rest": pl.Float64, "hits": pl.Float64,
    "rows": pl.Float64, "share": pl.Float64, "lower": pl.Float64, "upper": pl.Float64, "error": pl.Float64,
    "p_value": pl.Float64,
}  # fmt: skip


def reference_index(family: ComparedGroups, evaluated: Evaluated, to: object) -> int | None:
    """The index of the group that others are compared with among those of a family; None if it has no value."""
    rows, values = family.rows, family.estimates.value
    if not len(values):
        return None
    spec: Any = evaluated.specs[family.spec]
    if to == "majority":
        return int(rows["size"].arg_max() or 0)
    if to in BY_VALUE:
        direction = spec.metrics[0].direction
        ideal = {"zero": 0.0, "one": 1.0}.get(direction)
        if to == "best" and ideal is not None:
            return int(np.argmin(abs(values - ideal)))
        is_highest = to == "highest" or (to == "best" and direction == "maximize")
        return int(np.argmax(values) if is_highest else np.argmin(values))
    named = evaluated.group_cells.find(spec.by, to, spec.metrics[0].name, IN_WORDS)
    index = rows[GROUP_CELL].is_in(named).arg_true()
    return int(index[0]) if len(index) else None


def against_rest(
    evaluated: Evaluated, options: Options, scales: Mapping[int, Scale], drawn: AbstractSet[int]
) -> pl.DataFrame:
    """Each group beside all others together: a row for each value of some specs, by `spec`, `level` and `group_cell`.

    It has the value `of_rest`, its numerator `hits` among `rows`, the `share` that the group has in the weight of both,
    and of the comparison on the scale of the spec the limits, `lower` and `upper`, the `error` and `p_value`. The
    values of specs that are `drawn` vary by replicates, which are made for one group after the other.
    """
    z = z_value(options.conf_level)
    tables = [pl.DataFrame(schema=_BESIDE)]
    by_feature: dict[tuple[By | None, bool], list[int]] = {}
    for number in scales:
        by_feature.setdefault((evaluated.specs[number].by, number in drawn), []).append(number)
    for (by, one_by_one), numbers in by_feature.items():
        if by is None:
            continue
        specs: list[Any] = [evaluated.specs[number] for number in numbers]
        members = [replace(spec, by=_GROUP_OR_REST, aggregate=difference()) for spec in specs]
        for tally in _beside_rests(evaluated, by, one_by_one=one_by_one):
            for beside in evaluate_specs(tally, members, options):
                for member, rows, quantities in of_all_outer_groups(beside, options):
                    number = numbers[member]
                    compared = _compared(beside, rows, quantities, scales[number], z)
                    tables.append(compared.with_columns(spec=number))
    return pl.concat(tables, how="diagonal_relaxed")


def _compared(beside: Evaluated, rows: pl.DataFrame, quantities: Estimates, scale: Scale, z: float) -> pl.DataFrame:
    """The comparisons of the groups of a spec with all others, where both have a value."""
    first, _ = beside.group_cells.spans[_GROUP_OR_REST]
    is_rest = beside.group_cells.keys[_GROUP_OR_REST].to_series()[rows[GROUP_CELL] - first]
    numbered = rows.select("outer", LEVEL).with_row_index("index")
    pairs = numbered.filter(~is_rest).join(numbered.filter(is_rest), on=["outer", LEVEL], suffix="_of_rest")
    if pairs.is_empty():
        return pl.DataFrame(schema=_BESIDE).drop("spec")
    one, other = pairs["index"].to_numpy(), pairs["index_of_rest"].to_numpy()
    lower, upper = quantities.compared(one, other, z, scale)
    own, rest = rows[one], rows[other]
    hits = rest["estimate"] * rest["counted_rows"]
    return pl.DataFrame({
        GROUP_CELL: beside.group_cells.outer_keys[_COPY][own["outer"]],
        LEVEL: own[LEVEL],
        "of_rest": rest["estimate"],
        "hits": hits,
        "rows": rest["counted_rows"],
        "share": own["weight"] / (own["weight"] + rest["weight"]),
        "lower": lower,
        "upper": upper,
        "error": quantities.error_compared(one, other, scale),
        "p_value": p_values(quantities, one, other, scale),
    })  # fmt: skip


def _beside_rests(evaluated: Evaluated, by: By, *, one_by_one: bool) -> Iterator[Tally]:
    """Tallies of copies of the data, a copy for each group of a `by`: an outer group of the group and its rest."""
    tally, group_cells = evaluated.evaluator.tally, evaluated.group_cells
    span = slice_of(group_cells, by)
    if evaluated.evaluator.members is not None:
        yield _beside_others(evaluated, by)
        return
    outer, first = group_cells.outer[span], span.start
    is_compared = ~group_cells.excluded[span]
    group_cells_of_cells = group_cells.indices[by].of_cell
    group_cells_of_rows = None if tally.rows is None else group_cell_of_kept_rows(tally, group_cells, by)
    longest = max(len(group_cells_of_cells), 0 if group_cells_of_rows is None else len(group_cells_of_rows), 1)
    step = 1 if one_by_one else max(1, _MOST_COPIED // longest)
    copies = np.flatnonzero(is_compared)
    for start in range(0, len(copies), step):
        own = pl.DataFrame({"outer": outer, _COPY: np.arange(len(outer))})[copies[start : start + step]]

        def copied(frame: pl.DataFrame, group_cell: Integers, own: pl.DataFrame = own) -> pl.DataFrame:
            """The rows of a frame that are compared, once for each of some groups of the same outer group."""
            compared = pl.DataFrame({"row": np.arange(len(frame)), "group": group_cell, "outer": outer[group_cell]})
            compared = compared.filter(is_compared[group_cell])
            pairs = own.join(compared, on="outer", maintain_order="left_right")
            sides = pairs.select(pl.col(_COPY) + first, (pl.col(_COPY) != pl.col("group")).alias(_IS_REST))
            return frame[pairs["row"]].hstack(sides)

        cells = copied(tally.cells, group_cells_of_cells)
        rows = None if tally.rows is None or group_cells_of_rows is None else copied(tally.rows, group_cells_of_rows)
        yield _with_copies(tally, cells, rows)


def _beside_others(evaluated: Evaluated, by: By) -> Tally:
    """The same tally where groups overlap: the rest of a group is everybody outside of it."""
    evaluator, first = evaluated.evaluator, evaluated.group_cells.spans[by][0]
    ((_, _, others),) = evaluator.beside(by, ("rest",))
    frames: list[pl.DataFrame | None] = []
    for name in ("cells", "rows"):
        parts: list[pl.DataFrame] = []
        for tally, is_rest in ((evaluator.tally, False), (others.tally, True)):
            frame: pl.DataFrame | None = getattr(tally, name)
            if frame is not None:
                of_group = group_cell_of_frame(tally, frame, evaluated.group_cells, by)
                sides = {_COPY: of_group.astype(np.int64) + first, _IS_REST: np.full(len(frame), is_rest)}
                kept = pl.Series(~evaluated.group_cells.excluded[of_group])
                parts.append(frame.drop(SHARED_ROW, strict=False).hstack(pl.DataFrame(sides)).filter(kept))
        frames.append(pl.concat(parts) if parts else None)
    cells, rows = frames
    return _with_copies(evaluator.tally, cast("pl.DataFrame", cells), rows)


def _with_copies(tally: Tally, cells: pl.DataFrame, rows: pl.DataFrame | None) -> Tally:
    """A tally with one copy of the rows per group (the outer key), and in-group or rest as its feature."""
    kept = [key for key in tally.keys if key.role not in {"by", "side"}]
    keys = (*kept, Key(Column(_COPY), "outer"), Key(Column(_IS_REST), "by"))
    names = [f"k{tally.keys.index(key)}" for key in kept]
    renamed = dict(zip([*names, _COPY, _IS_REST], key_names(keys), strict=True))
    dropped = [name for name in key_names(tally.keys) if name not in names]

    def with_keys(frame: pl.DataFrame) -> pl.DataFrame:
        frame = frame.drop(dropped).select(*renamed, pl.exclude(*renamed))
        return frame.rename(renamed)

    counted = with_keys(cells)
    by = counted.columns[: counted.columns.index("n")]
    merging = [merge(pl.col(name)) for name, merge in merged(counted.columns).items() if name not in by]
    counted = centred(counted, by).group_by(by).agg(merging)
    return replace(tally, cells=counted, keys=keys, rows=None if rows is None else with_keys(rows), sides=None)


def share_of_group(value: Floats, rest: Floats, overall: Floats, by_rows: Floats) -> Floats:
    """The share of groups in the value of all rows, which lies between theirs and that of the rest."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (overall - rest) / (value - rest)
    # equal values say nothing, nor does a value that is no mean of the two
    return np.where((share >= 0) & (share <= 1), share, by_rows)


def limits_to_overall(
    limits: Limits, value: Floats, rest: Floats, overall: Floats, share: Floats, scale: Scale
) -> Limits:
    """Limits of comparisons with all rows together, from those of comparisons with all other groups.

    All rows are a mixture of the group, which has the share s of them, and of the rest:

        overall = s * value + (1 - s) * rest
        value - overall = (1 - s) * (value - rest)
        value / overall = r / (s * r + 1 - s), where r = value / rest

    so that each limit of the difference is 1 - s of that to the rest, and each limit of the ratio follows from that to
    the rest. This holds for rates and means. Of other metrics it holds for small changes, so that the distances between
    limits and value, of ratios those of the logarithms, are 1 - s of the distances to the rest.
    """
    lower, upper = limits
    others = 1 - share
    if scale == "difference":
        to_rest, to_overall = value - rest, value - overall
        return to_overall - others * (to_rest - lower), to_overall + others * (upper - to_rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = share * value, others * rest
        is_mixture = abs(parts[0] + parts[1] - overall) <= _NEAR * (abs(parts[0]) + abs(parts[1]))
        if scale == "ratio" and is_mixture.all():
            return tuple(np.where(np.isinf(end), 1 / share, end / (share * end + others)) for end in limits)  # pyright: ignore[reportReturnType] - two of them
        to_rest, to_overall = np.log(value / rest), np.log(value / overall)
        ends = to_overall - others * (to_rest - np.log(lower)), to_overall + others * (np.log(upper) - to_rest)
        return np.exp(ends[0]), np.exp(ends[1])
