"""Tallies in which groups are shuffled: what might have been counted, had groups nothing to do with what happened.

Shuffling draws the cells of each group from those of all without replacement, which costs cells, not rows; what reads
more than labels is shuffled row by row, or cluster by cluster. A shuffle is one more outer key, and the last one is
what was found. So is a variant of each, from which it is seen how sure values are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.intervals.resampling import DRAW, MOST_CELLS, MOST_ROWS, MOST_SHUFFLED, in_order, kept_keys, placed
from tidyfair.specs.columns import Column
from tidyfair.tallies.counting import recounted
from tidyfair.tallies.moments import centred, is_centre, is_sum, merged, running
from tidyfair.tallies.tally import LABELS, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    from tidyfair.specs.groups import By
    from tidyfair.tallies.tally import Tally

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

VARIANT = "\0variant"
"""The outer key that numbers variants: 0 as drawn, then others.

How far the values of the others are from it, squared and added up, is in proportion to the variance of the value.
"""
_PARTS, _PARTS_OF_SUMS = 20, 100
"""Random parts of the rows; the more, the less do errors depend on who is in which."""
_NEITHER = "neither"


def shuffled_cells(
    tally: Tally, by: By, within: Sequence[Column], *, times: int, random: np.random.Generator, varied: bool = True,
    among: pl.DataFrame | None = None,
) -> Iterator[Tally]:  # fmt: skip
    """Tallies of labels with the groups of `by` shuffled in each outer group, within strata, or `among` some labels.

    In each variant, if there are any, one of the cells has as many more rows as their number varies by.
    """
    import numpy as np

    keys, names = kept_keys(tally, by.columns)
    outer, own = tally.names([key.column for key in tally.outer]), tally.names(by.columns)
    strata = [*outer, *tally.names(within)]
    cells = tally.cells.filter(_is_compared(tally.cells, by, own))
    # in one order whatever that of the rows, so that a seed says everything
    cells = cells.group_by(*strata, *own, *LABELS).agg(pl.col("n").sum()).sort(*strata, *own, *LABELS, nulls_last=True)
    of_outer, outers = placed(cells, outer)
    group, groups = placed(cells, own)
    label, labels = placed(cells, LABELS)
    shape = (len(outers) if outer else 1, len(groups), len(labels))
    stratum = placed(cells, strata)[0]
    found: list[tuple[int, Array]] = []
    for place in np.unique(stratum):
        mine, table = np.flatnonzero(stratum == place), np.zeros(shape[1:], dtype=np.int64)
        np.add.at(table, (group[mine], label[mine]), cells["n"].to_numpy()[mine])
        found.append((int(of_outer[mine[0]]), table))
    if any(table.sum() >= MOST_SHUFFLED for _, table in found):
        msg = f"Fewer than {MOST_SHUFFLED} rows can be shuffled; test a part of them."
        raise ArgumentError(msg)
    every, variants = times + 1, 1 + shape[2] if varied else 1
    moves = np.ones(shape[2], dtype=bool)
    if among is not None:
        moves = labels.join(among.with_row_index(), on=list(LABELS), how="left", maintain_order="left")["index"]
        moves = moves.is_not_null().to_numpy()
    at = [each.ravel() for each in np.indices(shape)]
    sides = zip((outers, groups, labels), at, strict=True)
    known = {name: side[name].gather(each) for side, each in sides for name in side.columns}
    step = max(1, MOST_CELLS // max(1, variants * len(at[0])))
    for first in range(0, every, step):
        draws = min(step, every - first)
        drawn = np.zeros((draws, *shape), dtype=np.int64)
        for place, table in found:
            dealt = np.repeat(table[None], draws, axis=0)
            # the last is what was found
            to_deal = draws - (first + draws == every)
            dealt[:to_deal, :, moves] = _dealt(table[:, moves], to_deal, random)
            drawn[:, place] += dealt
        counts = np.repeat(drawn[:, None], variants, axis=1)
        for cell in range(variants - 1):
            counts[:, 1 + cell, ..., cell] += np.sqrt(drawn[..., cell]).round().astype(np.int64)
        number, variant, where = (each.ravel() for each in np.indices((draws, variants, len(at[0]))))
        frame = pl.DataFrame({**{name: column.gather(where) for name, column in known.items()}, "n": counts.ravel()})
        frame = _numbered(frame.rename(names), len(keys), first + number, variant).filter(pl.col("n") > 0)
        order = [*(f"k{place}" for place in range(len(keys) + 2)), *LABELS, "n"]
        yield replace(tally, cells=frame.select(order), keys=_with_draws(keys), rows=None)


def shuffled_rows(
    tally: Tally, by: By, within: Sequence[Column], *, times: int, random: np.random.Generator, varied: bool = True,
    of_sums: bool = False,
) -> Iterator[Tally]:  # fmt: skip
    """Tallies with the groups of `by` shuffled among the rows of each outer group, within strata, or among clusters.

    In each variant, if there are any, a random part of the rows is left out; where only sums are read, from them.
    """
    import numpy as np

    if tally.rows is None:
        msg = "What is no rate of labels is tested by shuffling rows: count with `keep_rows=True`, or test the data."
        raise ArgumentError(msg)
    keys, names = kept_keys(tally, by.columns)
    outer, own = tally.names([key.column for key in tally.outer]), tally.names(by.columns)
    strata, clusters = [*outer, *tally.names(within)], tally.names([key.column for key in tally.clusters])
    rows = tally.rows.filter(_is_compared(tally.rows, by, own))
    rows = in_order(tally, rows, [*names, *strata, *clusters])
    group, groups = placed(rows, own)
    of_row, stratum, of_unit = np.arange(len(rows)), placed(rows, strata)[0], group
    if clusters:
        _check_clusters(tally, rows, clusters, by, within)
        of_row = placed(rows, [*strata, *clusters])[0]
        first_row = np.unique(of_row, return_index=True)[1]
        stratum, of_unit = stratum[first_row], group[first_row]
    count = min(_PARTS_OF_SUMS if of_sums else _PARTS, len(stratum))
    chosen, variant = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    if varied and len(rows):
        part = (random.permutation(len(stratum)) % count)[of_row]
        left = [] if of_sums else [np.flatnonzero(part != place) for place in range(count)]
        variant = part if of_sums else np.repeat(np.arange(count + 1), [len(rows), *map(len, left)])
        chosen = np.concatenate([chosen, *left])
    every, one_by_one = times + 1, np.argsort(stratum, kind="stable")
    if len(chosen) * every > MOST_ROWS:
        msg = f"Shuffling {len(rows)} rows {times} times takes too long; take fewer shuffles, `times=`, or fewer rows."
        raise ArgumentError(msg)
    kept = rows.drop({*strata, *clusters, *own} - {*outer})[chosen]
    step = max(1, MOST_CELLS // max(1, len(chosen)))
    for first in range(0, every, step):
        draws = min(step, every - first)
        parts = list[pl.DataFrame]()
        for draw in range(first, first + draws):
            shuffled = of_unit.copy()
            if draw < times:
                shuffled[one_by_one] = of_unit[np.lexsort((random.random(len(stratum)), stratum))]
            its_groups = groups[shuffled[of_row][chosen]].get_columns()
            parts.append(_numbered(kept.hstack(its_groups).rename(names), len(keys), draw, variant))
        drawn = recounted(tally, pl.concat(parts), _with_draws(keys))
        yield _each_left_out(drawn, count) if varied and of_sums else drawn


def _each_left_out(tally: Tally, count: int) -> Tally:
    """The tally, and variants in each of which the rows of one of the parts, its last key, are left out."""
    last, by = f"k{len(tally.keys) - 1}", [name for name in tally.counted_by if name != f"k{len(tally.keys) - 1}"]
    cells = centred(tally.cells, by)
    names = [name for name in cells.columns if name not in {*by, last}]
    merges = merged(names)
    parts = pl.DataFrame({last: pl.int_range(count, dtype=pl.Int32, eager=True)})
    every = cells.select(by).unique().join(parts, how="cross")
    every = every.join(cells, on=[*by, last], how="left", nulls_equal=True).with_columns(
        pl.col(name).fill_null(0) if is_sum(name) else pl.col(name).drop_nulls().first().over(by) if is_centre(name)
        else pl.col(name) for name in names
    )  # fmt: skip
    without = every.with_columns(*(running(name).over(by) for name in names), pl.col(last) + 1)
    whole = cells.group_by(by).agg(merge(pl.col(name)) for name, merge in merges.items())
    both = pl.concat(
        [
            whole.with_columns(pl.lit(0, pl.Int32).alias(last)).select(tally.cells.columns),
            without.select(tally.cells.columns),
        ]
    )
    return replace(tally, cells=both.filter(pl.col("n") > 0), rows=None)


def _is_compared(frame: pl.DataFrame, by: By, own: Sequence[str]) -> pl.Series:
    """Whether rows are on some side; those on neither are no part of what is asked."""
    if by.sides is None:
        return pl.Series([True]).new_from_index(0, len(frame))
    by.sides.check(frame[own])
    return by.sides.side(frame[own]) != _NEITHER


def _dealt(table: Array, draws: int, random: np.random.Generator) -> Array:
    """The cells of each group when their rows are dealt out to groups of the same size, so many times over."""
    import numpy as np

    dealt = np.zeros((draws, *table.shape), dtype=np.int64)
    left = np.repeat(table.sum(axis=0)[None], draws, axis=0)
    for group, size in enumerate(table.sum(axis=1)):
        needed, rest = np.full(draws, size), left.sum(axis=1)
        for cell in range(table.shape[1]):
            rest -= left[:, cell]
            dealt[:, group, cell] = random.hypergeometric(left[:, cell], rest, needed)
            needed -= dealt[:, group, cell]
        left -= dealt[:, group]
    return dealt


def _check_clusters(
    tally: Tally, rows: pl.DataFrame, clusters: Sequence[str], by: By, within: Sequence[Column]
) -> None:
    """Refuse clusters that are not in one group each, which shuffling would tear apart."""
    together = tally.names([*by.columns, *within])
    each = rows.group_by(*clusters, *tally.names([key.column for key in tally.outer]))
    several = each.agg(pl.struct(together).n_unique().alias("groups")).filter(pl.col("groups") > 1)
    if len(several):
        name = tally.clusters[0].column.name
        features = listed([column.name for column in (*by.columns, *within)])
        msg = (
            f"{len(several)} clusters of {name!r} hold rows of several groups of {features}, so that whole clusters "
            f"cannot be shuffled; shuffle rows within clusters, `within={name!r}` in place of `cluster=`."
        )
        raise ArgumentError(msg)


def _numbered(frame: pl.DataFrame, keys: int, draw: Any, variant: Array) -> pl.DataFrame:
    """The frame with the numbers of draws and variants as the keys after the others."""
    import numpy as np

    numbers = (np.broadcast_to(draw, len(frame)), variant)
    return frame.with_columns(
        pl.Series(f"k{keys + place}", each.astype(np.int32)) for place, each in enumerate(numbers)
    )


def _with_draws(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return (*keys, Key(Column(DRAW), "outer"), Key(Column(VARIANT), "outer"))
