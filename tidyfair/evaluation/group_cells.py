"""From cells to units: every group of every `by` within every outer group, with the events counted in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import AggregateError, ArgumentError, listed, nearest
from tidyfair.evaluation.ranked_rows import Rows
from tidyfair.evaluation.statistics import UNIT, count_cells
from tidyfair.specs.columns import levels_of
from tidyfair.tallies.moments import ACTUAL, PREDICTED
from tidyfair.tallies.source import SQUARED, WEIGHT
from tidyfair.tallies.tally import LABELS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from tidyfair.evaluation.labels import Labels
    from tidyfair.evaluation.statistics import Table
    from tidyfair.specs.formulas import Statistic
    from tidyfair.specs.groups import By
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_MOST_CODES = 2**22
_SIDE = "\0side"

UNGROUPED = "\0ungrouped"
"""The column of outer keys where the data are not grouped, which no user's column is called."""


@dataclass(frozen=True, eq=False, repr=False)
class Units:
    """All units in order, those of one `by` after those of another; a unit is known by its place."""

    outer: pl.Series
    """The place of a unit's outer group."""
    text: pl.Series
    """Its group as results show it; null where all rows are together."""
    apart: pl.Series
    """Whether it is on neither side of a condition, and so is not compared."""
    spans: dict[By | None, tuple[int, int]]
    """The first unit of each `by`, and how many it has."""
    keys: dict[By, pl.DataFrame]
    """The keys of the units of each `by`, as the user wrote them."""
    outer_keys: pl.DataFrame
    """The keys of the outer groups; a single row without a name where the data are not grouped."""

    def find(self, by: By, reference: object, name: str) -> list[int]:
        """The units of the group that a user named by its value, its values or its text."""
        first, size = self.spans[by]
        groups = self.keys[by].with_columns(self.text[first : first + size].alias("\0text")).unique(maintain_order=True)
        wanted = cast("tuple[object, ...]", reference) if isinstance(reference, tuple) else (reference,)
        chosen = [group for group in groups.rows() if group[:-1] == wanted]
        chosen = chosen or [group for group in groups.rows() if group[-1] == reference]
        if len(chosen) == 1:
            keys = self.keys[by].with_row_index("\0place", offset=first)
            own = pl.DataFrame([chosen[0][:-1]], schema=self.keys[by].schema, orient="row")
            return keys.join(own, on=own.columns, how="semi", nulls_equal=True)["\0place"].to_list()
        if groups.is_empty() or (by.sides and wanted in {("privileged",), ("unprivileged",)}):
            return []
        texts = groups["\0text"].to_list()
        shown = reference if isinstance(reference, str) else wanted
        several = list(dict.fromkeys(texts))
        problem = (
            "names several groups; give a tuple of values." if chosen else f"is no group.{nearest(shown, several)}"
        )
        msg = f"{name}: `to={shown!r}` {problem} The groups: {listed(several)}."
        raise AggregateError(msg)


def count_units(
    tally: Tally,
    labels: Labels,
    bys: Sequence[By | None],
    tables: Mapping[Table, frozenset[Statistic]],
    scores: Mapping[int, str],
    *,
    steps: bool,
    squares: bool = False,
) -> tuple[Units, dict[Table, pl.DataFrame]]:
    """The units, and what each table knows of them: for each `by` in turn, one row for each level and unit."""
    cells = labels.encode(tally)
    place, outer_keys = _outer_groups(tally)
    cells = cells.with_columns(place)
    counted = list[tuple[pl.DataFrame, list[str]]]()
    for by in bys:
        if by and by.sides:
            own = cells[tally.names(by.columns)]
            by.sides.check(own)
            counted.append((cells.with_columns(by.sides.side(own).alias("side")), ["outer", "side"]))
        elif not by and not tally.outer and cells.is_empty():
            # without rows there still is the one group of everything
            nobody = {
                name: [0 if name == "outer" or (dtype.is_numeric() and name not in LABELS) else None]
                for name, dtype in cells.schema.items()
            }
            counted.append((pl.DataFrame(nobody, schema=cells.schema), ["outer"]))
        else:
            counted.append((cells, ["outer", *(tally.names(by.columns) if by else ())]))
    known: dict[Table, list[pl.DataFrame]] = {table: [] for table in tables}
    outer, text, apart = list[pl.Series](), list[pl.Series](), list[pl.Series]()
    spans: dict[By | None, tuple[int, int]] = {}
    keys: dict[By, pl.DataFrame] = {}
    first = 0
    every = count_cells(
        counted, labels.levels, tables, scores, steps=steps, squares=squares, all_levels=range(len(labels.values))
    )
    for by, (distinct, counts) in zip(bys, every, strict=True):
        size = len(distinct)
        for table, each in counts.items():
            known[table].append(each)
        outer.append(distinct["outer"])
        own = distinct[:, 1:]
        text.append(texts_of(own) if by else pl.Series([None], dtype=pl.String).new_from_index(0, size))
        neither = distinct["side"] == "neither" if by and by.sides else pl.Series([False]).new_from_index(0, size)
        apart.append(neither)
        spans[by] = (first, size)
        if by:
            keys[by] = own
        first += size
    units = Units(pl.concat(outer), pl.concat(text), pl.concat(apart), spans, keys, outer_keys)
    return units, {table: pl.concat(each) for table, each in known.items()}


def rows_of(tally: Tally, labels: Labels, units: Units, by: By | None, reads: frozenset[str]) -> Rows:
    """The rows that have what is read, each with the place of its unit among those of a `by`."""
    import numpy as np

    if tally.rows is None:
        msg = "The tally has kept no rows; count again with the metrics that are to be computed."
        raise ArgumentError(msg)
    present = {"truth": ACTUAL if tally.needs.numbers else TRUTH, "estimate": PREDICTED}
    needed = [present[role] for role in sorted(reads) if role in present]
    if "probs" in reads and tally.scores:
        needed += [f"s{place}" for place in range(len(tally.scores.columns))]
    frame = tally.rows
    if by and by.sides:
        # sides go by all rows: a value that occurs only in rows that lack something is no slip
        frame = frame.with_columns(by.sides.side(frame[tally.names(by.columns)]).alias(_SIDE))
    if any(frame[name].null_count() for name in needed):
        frame = frame.filter(pl.all_horizontal(pl.col(needed).is_not_null()))
    place = slice_of(units, by)
    outer_of_unit = units.outer[place]
    names = tally.names([key.column for key in tally.outer])
    rows, distinct = list[pl.Series](), list[pl.Series]()
    if names:
        rows += [frame[name] for name in names]
        distinct += units.outer_keys[outer_of_unit].get_columns()
    if by:
        rows += [frame[_SIDE]] if by.sides else frame[tally.names(by.columns)].get_columns()
        distinct += units.keys[by].get_columns()
    counted = [*needed, *(name for name in (WEIGHT, SQUARED) if name in frame.columns)]
    unit = _place(rows, distinct) if rows else np.zeros(len(frame), dtype=np.int8)
    values = () if tally.needs.numbers else labels.values
    columns = frame.select(list(dict.fromkeys(counted)))
    return Rows(columns, values, unit, outer_of_unit.to_numpy(), units.apart[place].to_numpy())


def cells_of(tally: Tally, labels: Labels, units: Units, by: By | None) -> pl.DataFrame:
    """The cells of a tally by unit: `unit`, `truth` and `estimate` as places among the labels, `n` and `w`."""
    cells = labels.encode(tally)
    sums = [name for name in ("n", "w") if name in cells.columns]
    placed = cells.select(TRUTH, "estimate", *sums).with_columns(unit_of_cells(tally, units, by))
    outer = units.outer[slice_of(units, by)][placed[UNIT]].alias("outer")
    apart = units.apart[slice_of(units, by)][placed[UNIT]].alias("apart")
    return placed.with_columns(outer, apart).group_by(UNIT, "outer", "apart", *LABELS).agg(pl.col(sums).sum())


def unit_of_cells(tally: Tally, units: Units, by: By | None) -> pl.Series:
    """The place of the unit of each cell of a tally among those of a `by`."""
    place, _ = _outer_groups(tally)
    keys, distinct = [place], [units.outer[slice_of(units, by)]]
    if by:
        own = tally.cells[tally.names(by.columns)]
        keys += [by.sides.side(own)] if by.sides else own.get_columns()
        distinct += units.keys[by].get_columns()
    return pl.Series(UNIT, _place(keys, distinct))


def slice_of(units: Units, by: By | None) -> slice:
    """Where the units of a `by` stand among all units."""
    first, size = units.spans[by]
    return slice(first, first + size)


def _place(keys: list[pl.Series], distinct: list[pl.Series]) -> np.ndarray[Any, Any]:
    """The place of each row of keys among the distinct ones."""
    import numpy as np

    count = len(distinct[0])
    sizes = [len(levels_of(key.dtype)) + 1 for key in keys]
    if min(sizes) > 1 and math.prod(sizes) <= _MOST_CODES:
        # columns that list their values: a look-up instead of a join
        table = np.full(math.prod(sizes), -1, dtype=np.int16 if count <= np.iinfo(np.int16).max else np.int32)
        table[_codes(distinct, sizes)] = np.arange(count)
        return table[_codes(keys, sizes)]
    names = [f"k{index}" for index in range(len(keys))]
    rows, known = (pl.DataFrame(dict(zip(names, each, strict=True))) for each in (keys, distinct))
    joined = rows.join(known.with_row_index("place"), on=names, how="left", nulls_equal=True, maintain_order="left")
    return joined["place"].cast(pl.Int32).to_numpy()


def _codes(keys: list[pl.Series], sizes: list[int]) -> np.ndarray[Any, Any]:
    """One integer for each row, from the places of its values among those their dtypes list, the null after them."""
    codes: Any = 0
    for column, size in zip(keys, sizes, strict=True):
        physical = column.to_physical()
        physical = physical.cast(pl.UInt8) if physical.dtype == pl.Boolean else physical
        place = physical.cast(pl.Int32).fill_null(size - 1) if physical.null_count() else physical
        codes = place.to_numpy() if len(keys) == 1 else codes * size + place.cast(pl.Int32).to_numpy()
    return codes


def text_of(key: pl.Series) -> pl.Series:
    """The values of a key as results show them."""
    return key.dt.to_string("polars") if key.dtype == pl.Duration else key.cast(pl.String)


def texts_of(keys: pl.DataFrame) -> pl.Series:
    """Groups as results show them, by their keys."""
    texts = [text_of(key) for key in keys]
    texts = [text.fill_null("null") if text.null_count() else text for text in texts]
    return texts[0] if len(texts) == 1 else pl.select(pl.concat_str(texts, separator=":")).to_series()


def _outer_groups(tally: Tally) -> tuple[pl.Series, pl.DataFrame]:
    """The place of each cell's outer group among the distinct ones, in order and null last; and these."""
    names = tally.names([key.column for key in tally.outer])
    if not names:
        return pl.Series("outer", [0], dtype=pl.Int32).new_from_index(0, len(tally.cells)), pl.DataFrame(
            {UNGROUPED: [0]}
        )
    keys = tally.cells[names]
    distinct = keys.lazy().unique().sort(names, nulls_last=True).collect(engine="in-memory")
    numbered = distinct.with_columns(pl.int_range(len(distinct), dtype=pl.Int32, eager=True).alias("outer"))
    placed = keys.join(numbered, on=names, how="left", nulls_equal=True, maintain_order="left")
    shown = dict(zip(names, (key.column.name for key in tally.outer), strict=True))
    return placed["outer"], distinct.rename(shown)
