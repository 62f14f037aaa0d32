"""From cells to units: every group of every `by` within every outer group, with the events counted in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from tidyfair.errors import AggregateError, listed, nearest
from tidyfair.readings import UNIT, add_statistics, count_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.groups import By
    from tidyfair.labels import Labels
    from tidyfair.tallies import Tally

__all__: list[str] = []

UNGROUPED = "\0ungrouped"
"""The column of outer keys where the data are not grouped, which no user's column is called."""


@dataclass(frozen=True)
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
        if groups.is_empty() or by.sides:
            return []
        texts = groups["\0text"].to_list()
        shown = reference if isinstance(reference, str) else wanted
        several = list(dict.fromkeys(texts))
        problem = (
            "names several groups; give a tuple of values." if chosen else f"is no group.{nearest(shown, several)}"
        )
        msg = f"{name}: `to={shown!r}` {problem} The groups: {listed(several)}."
        raise AggregateError(msg)


def count_units(tally: Tally, labels: Labels, bys: Sequence[By | None], *, steps: bool) -> tuple[Units, pl.DataFrame]:
    """The units, and their events: for each `by` in turn, one row for each level and unit."""
    cells = labels.encode(tally)
    place, outer_keys = _outer_groups(tally)
    cells = cells.with_columns(place)
    complete = not (cells["truth"].null_count() or cells["estimate"].null_count())
    levels = range(len(labels.values)) if labels.event is None else [labels.event]
    events, outer, text, apart = list[pl.DataFrame](), list[pl.Series](), list[pl.Series](), list[pl.Series]()
    spans: dict[By | None, tuple[int, int]] = {}
    keys: dict[By, pl.DataFrame] = {}
    first = 0
    for by in bys:
        counted, own = cells, tally.names(by.columns) if by else []
        if by and by.sides:
            counted, own = cells.with_columns(by.sides.side(cells[own]).alias("side")), ["side"]
        if not by and not tally.outer and cells.is_empty():
            # without rows there still is the one group of everything
            nobody = {name: [0 if name in {"outer", "n", "w"} else None] for name in cells.columns}
            counted = pl.DataFrame(nobody, schema=cells.schema)
        found, table = count_cells(counted, ["outer", *own], levels, steps=steps, complete=complete)
        size = len(found)
        events.append(table.with_columns(table[UNIT] + first))
        outer.append(found["outer"])
        text.append(_texts(found[own]) if own else pl.Series([None], dtype=pl.String).new_from_index(0, size))
        neither = found["side"] == "neither" if by and by.sides else pl.Series([False]).new_from_index(0, size)
        apart.append(neither)
        spans[by] = (first, size)
        if by:
            keys[by] = found[own]
        first += size
    units = Units(pl.concat(outer), pl.concat(text), pl.concat(apart), spans, keys, outer_keys)
    return units, add_statistics(pl.concat(events))


def _texts(keys: pl.DataFrame) -> pl.Series:
    texts = [key.dt.to_string("polars") if key.dtype == pl.Duration else key.cast(pl.String) for key in keys]
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
    distinct = keys.unique().sort(names, nulls_last=True)
    placed = keys.join(distinct.with_row_index("outer"), on=names, how="left", nulls_equal=True, maintain_order="left")
    shown = dict(zip(names, (key.column.name for key in tally.outer), strict=True))
    return placed["outer"].cast(pl.Int32), distinct.rename(shown)
