"""Tallies of groups that overlap: the rows of a combination of groups, once for each of its groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from tidyfair.specs import NO_GROUP, Array, By, Context, Integers, Memberships, Patterns
from tidyfair.tallies.tally import Key, Tally, key_names

SHARED_ROW = "\0shared row"
"""The column of kept rows that numbers those of the data, which several groups share."""
_COMBINATION = "\0combination"


@dataclass(frozen=True, eq=False)
class Copies:
    """A tally whose cells and rows are copies of those of another one."""

    tally: Tally
    cell: Integers
    """The cell of the other tally that each cell is a copy of."""
    row: Integers
    """The row of the other tally that each row is a copy of, where rows are kept."""

    def at(self, cells: Array, rows: Array) -> Copies:
        """Some of the copies, given as masks."""
        kept = None if self.tally.rows is None else self.tally.rows.filter(rows)
        tally = replace(self.tally, cells=self.tally.cells.filter(cells), rows=kept)
        return Copies(tally, self.cell[cells], self.row[rows])


@dataclass(frozen=True, eq=False)
class Members:
    """The groups of a `by` that overlap, in a tally that counts their combinations."""

    base: Tally
    by: By

    @cached_property
    def copies_by_group(self) -> Copies:
        """The rows of each group; those in no group, and those of unknown groups, are each a group, too."""
        combination, group = self._patterns.rows_by_group
        others = self._combinations[combination].select(self._others)
        return self._copied(combination, pl.DataFrame([group.alias(self._key), *others]))

    @cached_property
    def are_shared(self) -> bool:
        """True if some rows are in several groups."""
        return bool((self._patterns.stated.sum(axis=1) > 1).any())

    @property
    def are_in_groups(self) -> Array:
        """Mask of the cells of the data whose rows are in one of the groups or more."""
        in_groups = self._patterns.stated.sum(axis=1) > 0
        return in_groups[self._combinations_of(self.base.cells)]

    def beside(self, context: Context) -> Copies:
        """For each group the rows of all known people, or of those outside of it."""
        patterns, combinations = self._patterns, self._combinations
        known = self._is_known
        groups = self.copies_by_group.tally.cells[[self._key, *self._others]].unique(maintain_order=True)
        nobody = np.zeros(0, dtype=np.int64)
        parts: list[tuple[Integers, Integers]] = [(nobody, nobody)]
        for number, (name, *values) in enumerate(groups.rows()):
            chosen = known
            if context == "rest" and name != NO_GROUP:
                may_be_in: Array = ~patterns.is_known
                if name is not None:
                    column = patterns.groups.index(name)
                    may_be_in = patterns.stated[:, column] | patterns.unknown[:, column]
                for other, value in zip(self._others, values, strict=True):
                    own = combinations[other]
                    may_be_in &= own.eq_missing(pl.Series([value], dtype=own.dtype)).to_numpy()
                chosen = (known | self._is_partly_known) & ~may_be_in
            rows = np.flatnonzero(chosen)
            parts.append((rows, np.full(len(rows), number)))
        combination, group = (np.concatenate(column) for column in zip(*parts, strict=True))
        return self._copied(combination, groups[group])

    # Combinations of groups

    @property
    def _memberships(self) -> Memberships:
        memberships = self.by.memberships
        assert memberships is not None  # noqa: S101 - a `by` without any is none of theirs
        return memberships

    @cached_property
    def _names(self) -> list[str]:
        """The keys of the columns that are read."""
        return self.base.names(self.by.columns)

    @property
    def _others(self) -> list[str]:
        """The keys that overlapping groups are crossed with."""
        return self._names[len(self._memberships.columns) :]

    @property
    def _key(self) -> str:
        """The key of the groups."""
        return f"k{len(self.base.keys)}"

    @cached_property
    def _combinations(self) -> pl.DataFrame:
        """The combinations of groups that occur."""
        return self.base.cells.select(self._names).unique(maintain_order=True).with_row_index(_COMBINATION)

    @cached_property
    def _patterns(self) -> Patterns:
        """The groups of each combination."""
        memberships = self._memberships
        return memberships.patterns(self._combinations[self._names[: len(memberships.columns)]])

    @cached_property
    def _is_known(self) -> Array:
        """Mask of the combinations of known people, who are part of all rows and of all others."""
        patterns, is_group = self._patterns, self._is_group
        known: Array = patterns.stated[:, is_group].any(axis=1) | patterns.without_group
        if self.by.policy.unknown == "group":
            known = np.ones(len(known), dtype=bool)
        return self._among_known_others(known)

    @property
    def _is_partly_known(self) -> Array:
        """Mask of the combinations of people who are outside of some group, if not known to be in any, unless dropped.

        Whoever is in a group that means unknown is known to be outside of none.
        """
        of_no_group: Array = self._patterns.stated[:, ~self._is_group].sum(axis=1)
        is_told: Array = of_no_group == 0
        if self.by.policy.unknown == "drop":
            is_told = np.zeros(len(is_told), dtype=bool)
        return self._among_known_others(is_told)

    @property
    def _is_group(self) -> Array:
        """Mask of the groups that do not mean unknown."""
        named = pl.DataFrame({"group": pl.Series(self._patterns.groups, dtype=pl.String)})
        return ~self.by.policy.is_unknown(named).to_numpy()

    def _among_known_others(self, chosen: Array) -> Array:
        """The chosen combinations whose other features, that groups are crossed with, are known."""
        others = self._combinations.select(self._others)
        return chosen & ~self.by.policy.is_unknown(others).to_numpy() if self._others else chosen

    def _combinations_of(self, frame: pl.DataFrame) -> Integers:
        """The number of the combination of each row of a frame."""
        numbered = frame.select(self._names).join(
            self._combinations, on=self._names, how="left", nulls_equal=True, maintain_order="left"
        )
        return numbered[_COMBINATION].to_numpy().astype(np.int64)

    # Copies

    def _copied(self, combination: Integers, keys: pl.DataFrame) -> Copies:
        """The cells and rows of some combinations, with some keys each; a combination may be there several times."""
        pairs = pl.DataFrame({_COMBINATION: combination}).hstack(keys)
        cells, cell = self._copies(self.base.cells, pairs)
        rows, row = None, np.zeros(0, dtype=np.int64)
        if self.base.rows is not None:
            rows, row = self._copies(self.base.rows, pairs)
            if self.are_shared:
                rows = rows.with_columns(pl.Series(SHARED_ROW, row))
        keyed = (*self.base.keys, Key(self.by.keys[0], "by"))
        return Copies(replace(self.base, cells=cells, rows=rows, keys=keyed), cell, row)

    def _copies(self, frame: pl.DataFrame, pairs: pl.DataFrame) -> tuple[pl.DataFrame, Integers]:
        """The rows of a frame once for each pair of their combination, and the row that each is a copy of."""
        # rows that are drawn again have only the keys that are read
        columns = frame.columns
        old_keys = [name for name in key_names(self.base.keys) if name in columns]
        own = pl.DataFrame({_COMBINATION: self._combinations_of(frame)}).with_row_index("row")
        copied = own.join(pairs, on=_COMBINATION, maintain_order="left_right")
        copies = frame[copied["row"]].with_columns(copied.select(*self._others, self._key).get_columns())
        row: Array = copied["row"].to_numpy().astype(np.int64)
        return copies.select(*old_keys, self._key, *(name for name in columns if name not in old_keys)), row
