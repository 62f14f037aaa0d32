"""Suppression of small counts: the groups of tables that are not shown, so that nobody can work out a small count.

Whoever reads several tables knows linear relations between the counts of groups: a group of one table is the sum of
groups of another. A count is protected if these relations allow it to be nothing, and not to be small at all. Of groups
that overlap, intervals of differences tell how many people two of them share, so that these count as shown, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.specs import Array, Booleans, By, Integers, whole

TableKey: TypeAlias = "tuple[bool, str | None]"
"""True for a table by outer group, and the text of the feature whose groups a table has."""
_ALL, _HIDDEN = "\0all", "\0hidden"
_DUST = 1e-6
"""The tolerance of solvers."""


@dataclass(frozen=True)
class Suppression:
    """The tables that are shown of a tally, and their groups whose counts are not."""

    below: int
    """Counts from 1 to below this number are small."""
    bys: tuple[By, ...]
    """The features whose groups are shown."""
    hidden: Mapping[TableKey, pl.DataFrame] = field(compare=False, repr=False)
    """The keys of the groups that are not shown, of each table."""

    @property
    def in_words(self) -> str:
        """What is not shown, in a sentence."""
        return (
            f"Suppressed: groups in which some count is fewer than {self.below}, or that would give away such a count."
        )

    def is_hidden(self, keys: Sequence[pl.Series], height: int, by: str | None, *, is_outer: bool = False) -> pl.Series:
        """The groups of a table that are not shown, by their keys, those of outer groups first."""
        hidden = self.hidden.get((is_outer, by))
        if hidden is None:
            msg = (
                f"`suppress_below`: the tally does not show the groups of {by or 'all rows'}; count again with all "
                "metrics that are to be shown, so that no table gives away what another one hides."
            )
            raise ArgumentError(msg)
        marked = hidden.with_columns(pl.lit(value=True).alias(_HIDDEN))
        groups = numbered(keys, height).cast(hidden.schema)
        joined = groups.join(marked, on=hidden.columns, how="left", nulls_equal=True, maintain_order="left")
        return joined[_HIDDEN].fill_null(value=False)


def suppression_of(
    tables: Mapping[TableKey, tuple[pl.Series, Sequence[pl.Series]]], counts: Integers, bys: tuple[By, ...], below: int
) -> Suppression:
    """The groups that are not shown, in tables that name cells and the group that each belongs to, or one of them.

    A group is not shown where one of its counts by label is small, or where it would give away such a count.
    """
    keys = {key: numbered(columns, len(cells)) for key, (cells, columns) in tables.items()}
    indices = [index_of_rows(groups) for groups in keys.values()]
    pairs = [(cells.to_numpy(), index) for (cells, _), index in zip(tables.values(), indices, strict=True)]
    hidden: dict[TableKey, pl.DataFrame] = {}
    for key, index, mask in zip(keys, indices, hidden_groups(counts, pairs, below), strict=True):
        firsts = np.unique(index, return_index=True)[1]
        hidden[key] = keys[key][pl.Series(firsts[mask], dtype=pl.UInt32)]
    return Suppression(below, bys, hidden)


def counts_by_labels(cells: pl.DataFrame, names: Sequence[str], labels: Sequence[str]) -> tuple[pl.Series, Integers]:
    """A cell of each combination of some keys, and its rows by labels, in columns."""
    of_label = index_of_rows(cells.select(labels))
    groups = index_of_rows(numbered(cells.select(names).get_columns(), len(cells)))
    examples = np.unique(groups, return_index=True)[1]
    counts = np.zeros((len(examples), int(of_label.max(initial=-1)) + 1), dtype=np.int64)
    np.add.at(counts, (groups, of_label), cells["n"].to_numpy())
    return pl.Series(examples, dtype=pl.UInt32), counts


def index_of_rows(frame: pl.DataFrame) -> Integers:
    """The number of the distinct row that each row equals."""
    return frame.select(pl.struct(pl.all()).rank("dense") - 1).to_series().to_numpy().astype(np.int64)


def numbered(keys: Sequence[pl.Series], height: int) -> pl.DataFrame:
    """Keys under names that are the same in all tallies, after one that all rows share."""
    every = pl.Series(_ALL, [0], dtype=pl.UInt8).new_from_index(0, height)
    return pl.DataFrame([every, *(key.alias(f"\0{number}") for number, key in enumerate(keys))])


# The groups that give small counts away


def hidden_groups(
    counts: Integers, tables: Sequence[Integers | tuple[Integers, Integers]], below: int, *,
    known: Sequence[Integers] = (), hidden: Booleans | None = None,
) -> list[Booleans]:  # fmt: skip
    """Masks of the groups of some tables that are not shown, so that no small count can be worked out.

    Args:
        counts: The rows of each cell, by label.
        tables: The group of each cell in each table that is shown; or cells, and a group of each, where cells may be
            in several groups.
        below: Counts from 1 to below this number are small.
        known: The same for tables that others may know, of which no group can be hidden.
        hidden: The groups of the first table that are hidden in any case.
    """
    whole("suppress_below", below, 1)
    groups, sizes = _Groups.of(counts, [*tables, *known])
    first, last = sum(sizes[: len(tables)]), sum(sizes)
    groups.is_known[first:last] = True
    is_small = groups.is_small(below).any(axis=1) & ~groups.is_known
    # people that two groups share are hidden with one of them
    is_small[last:] = False
    if hidden is not None:
        is_small[: len(hidden)] |= hidden
    groups.hide(np.flatnonzero(is_small))
    for label in range(counts.shape[1]):
        groups.protect(label, below)
    groups.show_needless(below)
    return np.split(groups.hidden[:first], np.cumsum(sizes[: len(tables)])[:-1])


@dataclass(eq=False)
class _Groups:
    """The groups of all tables, as sums of cells."""

    members: Any
    """A sparse matrix of groups by cells: 1 where a cell belongs to a group."""
    counts: Integers
    """The rows of each group, by label."""
    hidden: Booleans
    is_known: Booleans
    parents: Integers
    """For each group the two with which it is hidden: itself twice, or the two groups that share its people."""
    examples: list[tuple[int, Array]] = field(default_factory=list[tuple[int, Array]])
    """A label, and counts of cells that agree with all that is shown, in which small counts are something else."""
    is_protected: bool = True
    """False if others know some small count, whatever is hidden."""

    @classmethod
    def of(cls, counts: Integers, tables: Sequence[Integers | tuple[Integers, Integers]]) -> tuple[_Groups, list[int]]:
        """The groups of tables, none of which is hidden, and the number of groups of each table.

        After these come the people that two groups share, and those in the same groups, who are never shown.
        """
        sparse: Any = import_module("scipy.sparse")
        every = np.arange(len(counts))
        pairs = [table if isinstance(table, tuple) else (every, table) for table in tables]
        sizes = [int(index.max(initial=-1)) + 1 for _, index in pairs]
        blocks = [
            sparse.csr_array((np.ones(len(cells)), (index, cells)), shape=(size, len(counts)))
            for (cells, index), size in zip(pairs, sizes, strict=True)
        ]
        parents, combinations = [np.arange(sum(sizes)).repeat(2).reshape(-1, 2)], 0
        for block, first in zip(blocks[: len(sizes)], np.cumsum([0, *sizes[:-1]]), strict=True):
            if block.sum(axis=0).max(initial=0) > 1:
                one, other = sparse.triu(block @ block.T, k=1).nonzero()
                parents.append(np.column_stack([one, other]) + first)
                blocks.append(sparse.csr_array(block[one].multiply(block[other])))
        of_pairs = sum(map(len, parents))
        for block in blocks[: len(sizes)]:
            if block.sum(axis=0).max(initial=0) > 1:
                of_cell = np.unique(block.toarray(), axis=1, return_inverse=True)[1].ravel()
                blocks.append(sparse.csr_array((np.ones(len(every)), (of_cell, every))))
                combinations += blocks[-1].shape[0]
        parents.append(np.arange(of_pairs, of_pairs + combinations).repeat(2).reshape(-1, 2))
        members = sparse.vstack(blocks, format="csr") if len(every) else sparse.csr_array((0, 0))
        mask: Booleans = np.arange(len(np.concatenate(parents))) >= of_pairs
        groups = cls(members, (members @ counts).astype(np.int64), mask, np.zeros_like(mask), np.concatenate(parents))
        return groups, sizes

    def hide(self, groups: Integers) -> None:
        """Hide groups, and the people that any of them shares with another."""
        self.hidden[groups] = True
        self.hidden |= self.hidden[self.parents].any(axis=1)

    def is_small(self, below: int) -> Booleans:
        """The counts that can identify people; a count of 0 cannot."""
        return (self.counts > 0) & (self.counts < below)

    def protect(self, label: int, below: int) -> None:
        """Hide groups until each small count of a label might be 0, and might not be small, for all that is shown.

        Hiding more groups never gives anything away, so that what has been found possible stays so.
        """
        is_small = self.is_small(below)[:, label]
        small = np.flatnonzero(is_small & ~self.is_known)
        open_ends = [(group, end) for group in small[np.argsort(self.counts[small, label])] for end in (0, below)]
        while open_ends:
            group, end = open_ends[0]
            # a total that is small itself is not for others to know
            shown = np.flatnonzero(~self.hidden & ~(self.is_known & is_small))
            example, reasons = self._example(label, group, end, shown)
            if example is None:
                if not self._hide_one(group, reasons):
                    # what others know gives the count away, whatever is shown
                    self.is_protected = False
                    open_ends = open_ends[1:]
                continue
            self.examples.append((label, example))
            possible = np.rint(self.members @ example)
            reached = [possible[other] >= limit if limit else possible[other] < 1 for other, limit in open_ends]
            open_ends = [pair for pair, is_reached in zip(open_ends, reached, strict=True) if not is_reached]

    def show_needless(self, below: int) -> None:
        """Show the groups again that have the same counts in all examples, so that hiding them protects nothing."""
        if not self.is_protected:
            return
        is_needless = self.hidden & ~self.is_small(below).any(axis=1)
        # a group that is shown again would show the people that it shares with others
        is_pair = self.parents[:, 0] != self.parents[:, 1]
        is_needless[self.parents[is_pair].ravel()] = False
        is_needless &= ~is_pair
        for label, example in self.examples:
            is_needless &= np.abs(self.members @ example - self.counts[:, label]) < 1 / 2
        self.hidden &= ~is_needless

    def _example(self, label: int, group: int, end: int, shown: Integers) -> tuple[Array | None, Integers]:
        """Counts of cells that agree with what is shown, and by which a group has no rows, or at least `end`.

        Without any it is None, and the shown groups are named that rule it out.
        """
        optimize: Any = import_module("scipy.optimize")
        relations, totals = self.members[shown], self.counts[shown, label].astype(float)
        own = self.members[[group]].toarray().ravel()
        sign = -1.0 if end else 1.0
        found = optimize.linprog(
            sign * own,
            A_ub=own[None, :],
            b_ub=[end or self.counts[group, label]],
            A_eq=relations,
            b_eq=totals,
            method="highs",
        )
        reasons = shown[np.abs(found.eqlin.marginals) > _DUST]
        if abs(found.fun - sign * end) > _DUST:
            return None, reasons
        if np.abs(found.x - np.rint(found.x)).max() < _DUST:
            return found.x, reasons
        # fractions of people prove nothing about whole ones
        limits = [optimize.LinearConstraint(relations, totals, totals)]
        limits.append(optimize.LinearConstraint(own, end, np.inf if end else 0))
        return optimize.milp(own, integrality=np.ones(len(own)), constraints=limits).x, reasons

    def _hide_one(self, group: int, reasons: Integers) -> bool:
        """Hide the smallest of the groups that give another one away; False if others know all of them."""
        beside = self._sharing(reasons if len(reasons) else self._sharing(np.array([group])))
        for groups in (reasons, beside):
            able = np.unique(self.parents[groups[~(self.hidden | self.is_known)[groups]]])
            if len(able):
                self.hide(able[[np.argmin(self.counts[able].sum(axis=1))]])
                return True
        return False

    def _sharing(self, groups: Integers) -> Integers:
        """The groups that have a cell in common with some groups."""
        return np.flatnonzero(self.members @ self.members[groups].sum(axis=0))
