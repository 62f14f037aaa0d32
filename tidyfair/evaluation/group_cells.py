"""Group cells: the groups of all `by` within all outer groups, and the cells of a tally that belong to them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.errors import AggregateError, ArgumentError, listed, nearest
from tidyfair.evaluation.group_index import GroupIndex, KeyCodes
from tidyfair.evaluation.labels import Labels
from tidyfair.evaluation.ranked_rows import Rows
from tidyfair.evaluation.statistics import GROUP_CELL, Cells
from tidyfair.specs import (
    AT_POINT,
    EVENT,
    EVENT_WEIGHT,
    NO_GROUP,
    REFERENCES_IN_WORDS,
    RESERVED,
    TIME_AT_POINT,
    WEIGHT_AT_POINT,
    Array,
    Booleans,
    By,
    Integers,
    Segments,
    levels_of,
    names_of,
)
from tidyfair.tallies import (
    ACTUAL,
    ESTIMATE,
    LABELS,
    PREDICTED,
    SHARED_ROW,
    SQUARED,
    TRUTH,
    WEIGHT,
    Copies,
    Members,
    Tally,
    score_columns,
)

_MOST_CODES = 2**22
_SIDE = "\0side"
_NO_FEATURE = "\0no feature"

UNGROUPED = "\0ungrouped"
"""The column of outer keys for ungrouped data, under a name that no user's column has."""
_UNGROUPED_KEYS = pl.DataFrame({UNGROUPED: [0]})


@dataclass(frozen=True, eq=False, repr=False)
class GroupCells:
    """All group cells, ordered by `by`; other modules refer to them by index."""

    outer: Integers
    """The index of the outer group of each group cell."""
    excluded: Booleans
    """Mask of the group cells that are not compared: on neither side of a condition, or of unknown groups."""
    unknown: Booleans
    """Mask of the group cells of unknown groups."""
    unlisted: Booleans
    """Mask of the group cells of unknown groups that results do not show."""
    indices: dict[By | None, GroupIndex]
    """The groups of each `by` within outer groups, and the index of the group of each cell."""
    outer_keys: pl.DataFrame
    """The keys of the outer groups; a single row without a name where the data are not grouped."""
    outer_rows: Array | None = None
    """Where groups overlap, the number of rows of each outer group; the sum over groups would count some twice."""
    rows_in_groups: Array | None = None
    """The number of these rows that are in some group."""

    @cached_property
    def spans(self) -> dict[By | None, tuple[int, int]]:
        """The first group cell of each `by`, and how many it has."""
        return {by: (index.first, len(index)) for by, index in self.indices.items()}

    @property
    def is_grouped(self) -> bool:
        """True if the data have outer groups."""
        return self.outer_keys.columns != [UNGROUPED]

    @cached_property
    def keys(self) -> dict[By, pl.DataFrame]:
        """The keys of the groups of each `by`, as the user wrote them."""
        keys: dict[By, pl.DataFrame] = {}
        for by, index in self.indices.items():
            if by is not None:
                keys[by] = index.keys_named(["side"]) if by.sides else index.keys
        return keys

    def features_of(self, rows: pl.Series) -> pl.DataFrame:
        """The features of the group cells of rows."""
        return self._features[rows].drop(_NO_FEATURE, strict=False)

    @cached_property
    def _features(self) -> pl.DataFrame:
        """The features of each group cell under their own names; null if the cell belongs to other features.

        Features named like a column of results appear only in the text of the group.
        """
        tables: list[pl.DataFrame] = []
        for by, (_, size) in self.spans.items():
            if by is None or by.sides:
                tables.append(_without_features(size))
            else:
                named = self.indices[by].keys_named(by.names)
                shown = [name for name in named.columns if name not in RESERVED]
                tables.append(named[shown] if shown else _without_features(size))
        return pl.concat(tables, how="diagonal")

    @cached_property
    def text(self) -> pl.Series:
        """The group of each group cell as results show it; null where all rows are together."""
        texts: list[pl.Series] = []
        for by, (_, size) in self.spans.items():
            nobody = pl.Series([None], dtype=pl.String).new_from_index(0, size)
            texts.append(nobody if by is None else texts_of(self.indices[by].keys))
        return pl.concat(texts)

    def texts(self, by: By) -> pl.Series:
        """The groups of a `by` within all outer groups, as results show them."""
        return self.text[slice_of(self, by)]

    @cached_property
    def compared(self) -> Segments:
        """The runs of groups that are compared with each other: those of a `by` within an outer group."""
        sizes = [size for _, size in self.spans.values()]
        number_of_by = np.repeat(np.arange(len(self.spans)), sizes)
        return Segments.of(number_of_by, self.outer)

    def repeated(self, times: int) -> GroupCells:
        """The group cells of so many replicates, those of a `by` together, whose outer groups are numbered anew."""
        spans = [*self.spans.values()]
        own = np.concatenate([np.tile(np.arange(first, first + size), times) for first, size in spans])
        replicate = np.concatenate([np.repeat(np.arange(times), size) for _, size in spans])
        return GroupCells(
            outer=self.outer[own] + replicate * len(self.outer_keys),
            excluded=self.excluded[own],
            unknown=self.unknown[own],
            unlisted=self.unlisted[own],
            indices={by: index.repeated(times) for by, index in self.indices.items()},
            outer_keys=self.outer_keys,
        )

    def find(self, by: By, reference: object, name: str, others: str = REFERENCES_IN_WORDS) -> list[int]:
        """The group cells of the group that a user named by its value, its values or its text.

        `others` are the references other than groups, for the message.
        """
        first, _ = self.spans[by]
        groups = self.keys[by].with_columns(self.texts(by).alias("\0text")).unique(maintain_order=True)
        values = cast("tuple[object, ...]", reference) if isinstance(reference, tuple) else (reference,)
        named = named_groups(groups, cast("object", reference))
        if len(named) == 1 and by.memberships is not None and named[0][0] == NO_GROUP:
            msg = (
                f"{name}: `to={NO_GROUP!r}` is the people in none of the groups of {by.memberships.name!r}, which are "
                'compared as part of all others only: write `to="rest"`, or make them a group by one more column of '
                "true and false."
            )
            raise AggregateError(msg)
        if len(named) == 1:
            keys = self.keys[by].with_row_index("\0index", offset=first)
            own = pl.DataFrame([named[0]], schema=self.keys[by].schema, orient="row")
            return keys.join(own, on=own.columns, how="semi", nulls_equal=True)["\0index"].to_list()
        if groups.is_empty() or (by.sides and values in {("privileged",), ("unprivileged",)}):
            return []
        distinct = list(dict.fromkeys(groups["\0text"].to_list()))
        shown = reference if isinstance(reference, str) else values
        problem = f"is not a group.{nearest(shown, distinct)}"
        if named:
            problem = "matches several groups; give a tuple of values."
        msg = f"{name}: `to={shown!r}` {problem} The groups: {listed(distinct)}."
        if not named:
            msg += f" Or {others}."
        raise AggregateError(msg)


def _without_features(size: int) -> pl.DataFrame:
    """Rows without features; not all versions of polars have frames of a height without columns."""
    return pl.select(pl.repeat(None, size, dtype=pl.Boolean).alias(_NO_FEATURE))


def named_groups(groups: pl.DataFrame, reference: object) -> list[tuple[object, ...]]:
    """The keys of the groups that a user named by their value, their values or else their text, the last column."""
    values = cast("tuple[object, ...]", reference) if isinstance(reference, tuple) else (reference,)
    by_value = [group[:-1] for group in groups.rows() if group[:-1] == values]
    return by_value or [group[:-1] for group in groups.rows() if group[-1] == reference]


def number_group_cells(tally: Tally, labels: Labels, bys: Sequence[By | None]) -> tuple[GroupCells, Cells]:
    """The group cells of some features, and the cells of the tally."""
    cells, codes = tally.cells, KeyCodes(tally.cells)
    outer, outer_keys = _outer_groups(tally, codes)
    indices: dict[By | None, GroupIndex] = {}
    outers: list[Integers] = []
    masks: list[tuple[Booleans, Booleans, Booleans]] = []
    first = 0
    for by in bys:
        index, is_excluded, is_unknown = _groups_of(by, tally, codes, outer)
        size, is_hidden = len(index.example), None
        if tally.suppression is not None and cells.height:
            is_hidden = tally.hidden_groups(by, index.example)
        indices[by] = GroupIndex(index.of_cell, index.example, index.keys_of_cells, is_hidden, first)
        first += size
        # without rows there still is the one group of all rows
        outers.append(outer.of_cell[index.example] if cells.height else np.zeros(size, dtype=np.int64))
        is_unlisted = is_unknown & (by is not None and by.policy.unknown == "drop")
        masks.append((is_excluded, is_unknown, is_unlisted))
    _check_unknown_values(indices)
    excluded, unknown, unlisted = map(np.concatenate, zip(*masks, strict=True))
    group_cells = GroupCells(np.concatenate(outers), excluded, unknown, unlisted, indices, outer_keys)
    return group_cells, Cells(tally, labels)


def _groups_of(
    by: By | None, tally: Tally, codes: KeyCodes, outer: GroupIndex
) -> tuple[GroupIndex, Booleans, Booleans]:
    """The groups of a `by` within outer groups, and masks of those that are not compared, and of unknown ones."""
    if by is None:
        nobody = np.zeros(len(outer.example), dtype=bool)
        return outer, nobody, nobody
    if by.sides:
        keys = tally.keys_of_cells(by.columns)
        by.sides.check(keys)
        codes.add(by.groups(keys).to_series().alias(_SIDE))
        index = codes.index([_SIDE], within=outer)
        return index, ~by.is_compared(index.keys).to_numpy(), by.is_unknown(index.keys).to_numpy()
    index = codes.index(tally.names(by.keys), within=outer)
    is_unknown = by.policy.is_unknown(index.keys_of_cells).to_numpy()[index.example]
    excluded = is_unknown if by.memberships is None else ~by.is_compared(index.keys).to_numpy()
    return index, excluded, is_unknown


def _check_unknown_values(indices: Mapping[By | None, GroupIndex]) -> None:
    """Refuse values for unknown groups that no feature can have."""
    columns: dict[tuple[object, ...], list[tuple[str, pl.DataType]]] = {}
    for by, index in indices.items():
        if by and not by.sides and by.policy.unknown_values:
            own = zip(by.names, index.keys.dtypes, strict=True)
            columns.setdefault(by.policy.unknown_values, []).extend(own)
    for values, features in columns.items():
        for value in values:
            if any(_can_hold(dtype, value) for _, dtype in features):
                continue
            name, dtype = features[0]
            is_text = isinstance(value, str)
            kind, write = ("text", "numbers, without quotes") if is_text else ("no text", "texts, in quotes")
            msg = f"`unknown_values`: {value!r} is {kind}, and the column {name!r} is {dtype}; write values as {write}."
            raise ArgumentError(msg)


def _can_hold(dtype: pl.DataType, value: object) -> bool:
    """Check whether a dtype can hold a value, distinguishing texts and numbers."""
    if dtype.is_numeric() or dtype == pl.Boolean:
        return value is None or isinstance(value, Number)
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return value is None or isinstance(value, str)
    return True


def rows_of(tally: Tally, labels: Labels, group_cells: GroupCells, by: By | None, reads: frozenset[str]) -> Rows:
    """The rows with values in all columns that are read, and the indices of their group cells within a `by`."""
    frame = _with_side(tally, _kept_rows(tally), by)
    needed = _needed(tally, reads)
    if any(frame[name].null_count() for name in needed):
        frame = frame.filter(pl.all_horizontal(pl.col(needed).is_not_null()))
    weights = [name for name in (WEIGHT, SQUARED) if name in frame.columns]
    span = slice_of(group_cells, by)
    # rows that groups share are units, as clusters are
    clusters = tally.cluster_names or [name for name in (SHARED_ROW,) if name in frame.columns]
    # the columns of survival times that are known wherever the time is
    beside = (EVENT, EVENT_WEIGHT, AT_POINT, WEIGHT_AT_POINT, TIME_AT_POINT) if tally.forecast is not None else ()
    beside = tuple(name for name in beside if name not in needed)
    return Rows(
        frame=frame.select(*needed, *(name for name in beside if name in frame.columns), *weights),
        labels=() if tally.needs.numbers else labels.values,
        group_cell=group_cell_of_frame(tally, frame, group_cells, by),
        outer_of_group_cell=group_cells.outer[span],
        excluded=group_cells.excluded[span],
        clusters=frame.select(clusters) if clusters else None,
    )


def counting_rows_once(group_cells: GroupCells, members: Members) -> GroupCells:
    """Group cells that overlap, with the rows of outer groups, and those of them that are in some group."""
    tally = members.base
    index, _ = _outer_groups(tally, KeyCodes(tally.cells))
    rows = tally.cells["n"].to_numpy()
    of_members = rows * members.are_in_groups
    every, in_groups = (
        np.bincount(index.of_cell, counted, len(index)).astype(np.int64) for counted in (rows, of_members)
    )
    return replace(group_cells, outer_rows=every, rows_in_groups=in_groups)


def among_groups_of(
    group_cells: GroupCells, by: By, copies: Copies, labels: Labels
) -> tuple[Copies, GroupCells, Cells]:
    """Copies of cells and rows for the groups of a `by` that occur, and these as group cells and cells."""
    group, of_row = (
        np.zeros(0, dtype=np.int8) if frame is None else group_cell_of_frame(copies.tally, frame, group_cells, by)
        for frame in (copies.tally.cells, copies.tally.rows)
    )
    copies = copies.at(group >= 0, of_row >= 0)
    of_cell = group[group >= 0].astype(np.int64)
    example = np.zeros(len(group_cells.indices[by]), dtype=np.int64)
    example[of_cell] = np.arange(len(of_cell))
    keys = [copies.tally.cells[name] for name in copies.tally.names(by.keys)]
    index = GroupIndex(of_cell, example, keys, first=group_cells.indices[by].first)
    return copies, replace(group_cells, indices={by: index}), Cells(copies.tally, labels)


def group_cell_of_kept_rows(tally: Tally, group_cells: GroupCells, by: By) -> np.ndarray[Any, Any]:
    """The index of the group cell of each of the rows that a tally has kept, among those of a `by`."""
    return group_cell_of_frame(tally, _with_side(tally, _kept_rows(tally), by), group_cells, by)


def _kept_rows(tally: Tally) -> pl.DataFrame:
    """The rows that a tally has kept."""
    if tally.rows is None:
        msg = "The tally has not kept its rows; count again with the metrics to be computed."
        raise ArgumentError(msg)
    return tally.rows


def _with_side(tally: Tally, rows: pl.DataFrame, by: By | None) -> pl.DataFrame:
    """The rows with their side, if a `by` has two."""
    if by is None or by.sides is None:
        return rows
    # sides are read from all rows: a value that occurs only in incomplete rows is no slip
    return rows.with_columns(by.groups(rows[tally.names(by.columns)]).to_series().alias(_SIDE))


def _needed(tally: Tally, reads: frozenset[str]) -> list[str]:
    """The columns of the rows of a tally that are read."""
    needed: list[str] = []
    if "estimate" in reads and tally.estimate is not None:
        needed.append(PREDICTED)
    if "truth" in reads:
        needed.append(ACTUAL if tally.needs.numbers else TRUTH)
    if "probs" in reads and tally.scores:
        needed += score_columns(len(tally.scores.columns))
    forecast = tally.forecast
    if forecast is not None and forecast.role in reads and forecast.points:
        needed += [AT_POINT] if tally.is_at_points else forecast.names
    return needed


def group_cell_of_frame(
    tally: Tally, frame: pl.DataFrame, group_cells: GroupCells, by: By | None
) -> np.ndarray[Any, Any]:
    """The index of the group cell of each row among those of a `by`; of two sides, `frame` has the column `_SIDE`."""
    keys_of_rows: list[pl.Series] = []
    keys_of_group_cells: list[pl.Series] = []
    outer = tally.outer_names
    if outer:
        outer_of_group_cell = group_cells.outer[slice_of(group_cells, by)]
        keys_of_rows += frame[outer].get_columns()
        keys_of_group_cells += group_cells.outer_keys[outer_of_group_cell].get_columns()
    if by:
        features = [_SIDE] if by.sides else tally.names(by.keys)
        keys_of_rows += frame[features].get_columns()
        keys_of_group_cells += group_cells.keys[by].get_columns()
    if not keys_of_rows:
        # all rows are together
        return np.zeros(len(frame), dtype=np.int8)
    return _index_among(keys_of_rows, keys_of_group_cells)


def complete_rows(tally: Tally, reads: frozenset[str]) -> Booleans:
    """Mask of the rows of a tally that have values in all columns that are read."""
    complete = pl.all_horizontal(pl.col(_needed(tally, reads)).is_not_null())
    return _kept_rows(tally).select(complete).to_series().to_numpy()


def rows_of_cells(cells: Cells, group_cells: GroupCells, by: By | None) -> Rows:
    """The cells of a tally with both labels, as rows: their indices in `truth` and `estimate`, with `n` and weights."""
    sums = {"n": "n"} | ({"w": WEIGHT} if cells.weighted else {})
    labels = {TRUTH: cells.truth, ESTIMATE: cells.estimate}
    frame = pl.DataFrame({GROUP_CELL: group_cells.indices[by].of_cell, **labels}).with_columns(
        cells.frame[name].alias(column) for name, column in sums.items()
    )
    frame = frame.filter(pl.all_horizontal(pl.col(LABELS) >= 0))
    frame = frame.group_by(GROUP_CELL, *LABELS, maintain_order=True).agg(pl.col(sums.values()).sum())
    span = slice_of(group_cells, by)
    return Rows(
        frame=frame,
        labels=cells.labels.values if cells.labels.event is None else (),
        group_cell=frame[GROUP_CELL].to_numpy(),
        outer_of_group_cell=group_cells.outer[span],
        excluded=group_cells.excluded[span],
    )


def slice_of(group_cells: GroupCells, by: By | None) -> slice:
    """The slice of the group cells of a `by` among all group cells."""
    first, size = group_cells.spans[by]
    return slice(first, first + size)


def _index_among(keys: list[pl.Series], distinct: list[pl.Series]) -> np.ndarray[Any, Any]:
    """The index of each row of keys among the distinct ones."""
    count = len(distinct[0])
    sizes = [len(levels_of(key.dtype)) + 1 for key in keys]
    if min(sizes) > 1 and math.prod(sizes) <= _MOST_CODES:
        # columns that list their values: a look-up instead of a join
        dtype = np.int16 if count <= np.iinfo(np.int16).max else np.int32
        table = np.full(math.prod(sizes), -1, dtype=dtype)
        table[_codes(distinct, sizes)] = np.arange(count)
        return table[_codes(keys, sizes)]
    names = [f"k{number}" for number in range(len(keys))]
    rows = pl.DataFrame(dict(zip(names, keys, strict=True)))
    numbered = pl.DataFrame(dict(zip(names, distinct, strict=True))).with_row_index("index")
    joined = rows.join(numbered, on=names, how="left", nulls_equal=True, maintain_order="left")
    return joined["index"].cast(pl.Int32).fill_null(-1).to_numpy()


def _codes(keys: list[pl.Series], sizes: list[int]) -> np.ndarray[Any, Any]:
    """One integer for each row, from the indices of its values among those that their dtypes list, null last."""
    codes: Any = 0
    for column, size in zip(keys, sizes, strict=True):
        physical = column.to_physical()
        if physical.dtype == pl.Boolean:
            physical = physical.cast(pl.UInt8)
        if physical.null_count():
            physical = physical.cast(pl.Int32).fill_null(size - 1)
        if len(keys) == 1:
            return physical.to_numpy()
        codes = codes * size + physical.cast(pl.Int32).to_numpy()
    return codes


def text_of(key: pl.Series) -> pl.Series:
    """The values of a key as results show them; times without the zeros that depend on their unit."""
    dtype = key.dtype
    if dtype == pl.Duration:
        return key.dt.to_string("polars")
    if dtype == pl.Time:
        return key.dt.to_string("%H:%M:%S%.f")
    if isinstance(dtype, pl.Datetime):
        offset = "%:z" if dtype.time_zone else ""
        return key.dt.to_string(f"%Y-%m-%d %H:%M:%S%.f{offset}")
    return key.cast(pl.String)


def texts_of(keys: pl.DataFrame, separator: str = ":") -> pl.Series:
    """Groups as results show them, by their keys; with quoted texts if two groups would look the same."""
    joined = _joined([text_of(key) for key in keys], separator)
    if joined.n_unique() == keys.n_unique():
        return joined
    quoted = _joined([_quoted(key) for key in keys], separator)
    groups = keys.with_columns(joined.alias("\0text")).unique()
    alike = groups["\0text"].filter(groups["\0text"].is_duplicated())
    shown = pl.select(pl.when(joined.is_in(alike.implode())).then(quoted).otherwise(joined)).to_series()
    return shown if shown.n_unique() == keys.n_unique() else quoted


def _joined(texts: Sequence[pl.Series], separator: str) -> pl.Series:
    """The texts of several keys as those of groups."""
    shown = [text.fill_null("null") if text.null_count() else text for text in texts]
    return shown[0] if len(shown) == 1 else pl.select(pl.concat_str(shown, separator=separator)).to_series()


def _quoted(key: pl.Series) -> pl.Series:
    """The values of a key, of which texts are in quotes."""
    text = text_of(key)
    if not isinstance(key.dtype, pl.String | pl.Categorical | pl.Enum):
        return text
    values = [None if value is None else json.dumps(value, ensure_ascii=False) for value in text.to_list()]
    return pl.Series(key.name, values, dtype=pl.String)


def _outer_groups(tally: Tally, codes: KeyCodes) -> tuple[GroupIndex, pl.DataFrame]:
    """The index of the outer group of each cell, and the keys of the outer groups, in order and null last."""
    names = tally.outer_names
    if not names:
        of_cell = np.zeros(tally.cells.height, dtype=np.int64)
        return GroupIndex(of_cell, np.zeros(1, dtype=np.int64)), _UNGROUPED_KEYS
    index = codes.index(names)
    return index, index.keys_named(names_of(tally.outer_columns))
