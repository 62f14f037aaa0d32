"""Replicates of tallies: counts as they might have been of other rows from the same population.

Rows that are drawn with replacement fall into the cells of a tally as a multinomial draw does, so that a replicate
costs cells, not rows. A replicate is one more outer key.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.progress import in_progress
from tidyfair.specs.columns import Column
from tidyfair.tallies.counting import recounted
from tidyfair.tallies.moments import SCORE, centred, is_sum, merged
from tidyfair.tallies.tally import BLOCK, LABELS, Key, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

DRAW = "\0draw"
"""The outer key that numbers replicates; no column of a user has this name."""
MOST_CELLS = 2**21
_MOST_DRAWN = 2**19
"""Counts that are drawn at once; the values of 100,000 cells then take less than 500 MB in all."""
_MOST_NUMBERS = 2**26
MOST_ROWS = 2 * 10**9
"""The most rows that are drawn in all, which takes minutes."""
MOST_SHUFFLED = 10**9
"""The most rows from which numpy draws without replacement."""
_PRIOR = 0.5
"""Jeffreys' prior weight of each cell of a group."""


def generator(seed: int, name: str) -> np.random.Generator:
    """A random generator for a name, so that random numbers do not depend on the other parts of a call."""
    import numpy as np

    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def check_shuffled(rows: int) -> None:
    """Refuse more rows than can be drawn without replacement."""
    if rows >= MOST_SHUFFLED:
        msg = f"Fewer than {MOST_SHUFFLED} rows can be shuffled; test a part of them."
        raise ArgumentError(msg)


def redrawn(
    tally: Tally,
    by: Sequence[Column],
    *,
    strata: Sequence[Column],
    times: int,
    random: np.random.Generator,
    method: Literal["bootstrap", "bayes"],
    possible: pl.DataFrame | None = None,
) -> Iterator[Tally]:
    """Replicates of a tally of labels, in parts that fit into memory.

    `by` is kept of the keys beside outer groups; outer groups, and the groups of `strata`, keep their size. With
    "bayes" cells are not drawn: their shares are, from the Dirichlet distribution that Jeffreys' prior and the counts
    of a group give to each of the `possible` pairs of truth and estimate.
    """
    import numpy as np

    outer = tally.names([key.column for key in tally.outer])
    kept = [*outer, *(name for name in tally.names(by) if name not in outer)]
    sums = [name for name in ("n", "w", "w2") if name in tally.cells.columns]
    # sorted, so that results follow from the seed, whatever the order of the rows
    cells = tally.cells.group_by(*kept, *LABELS).agg(pl.col(sums).sum())
    if method == "bayes":
        pairs = cells.select(LABELS).unique() if possible is None else possible
        groups_of_prior = cells.select(*kept, pl.lit(0).alias(DRAW)).unique().drop(DRAW)
        cells = (groups_of_prior.join(pairs, how="cross") if kept else pairs).join(
            cells, on=[*kept, *LABELS], how="left", nulls_equal=True
        )
        cells = cells.with_columns(pl.col(sums).fill_null(0))
    cells = cells.sort(*kept, *LABELS, nulls_last=True)
    fixed = [*outer, *tally.names(strata)]
    stratum = placed(cells, fixed)[0]
    groups = [np.flatnonzero(stratum == index) for index in np.unique(stratum)]
    keys, names = kept_keys(tally, by)
    draw = f"k{len(keys)}"
    step = max(1, _MOST_DRAWN // max(1, len(cells)))
    for start in in_progress(range(0, times, step), "resampling"):
        count = min(step, times - start)
        drawn = _drawn(cells, groups, count, random, method)
        rows = np.tile(np.arange(len(cells)), count)
        long = {names.get(name, name): cells[name].gather(rows) for name in (*kept, *LABELS)}
        frame = pl.DataFrame({**long, draw: np.repeat(np.arange(start, start + count), len(cells)), **drawn})
        frame = frame.filter(pl.col("n") > 0)
        order = [*(f"k{index}" for index in range(len(keys))), draw, *LABELS]
        weights = Column("weight") if "w" in drawn else None
        yield replace(
            tally, cells=frame.select(*order, pl.exclude(order)), keys=(*keys, Key(Column(DRAW), "outer")),
            weights=weights, rows=None,
        )  # fmt: skip


def redrawn_clusters(tally: Tally, by: Sequence[Column], *, times: int, random: np.random.Generator) -> Iterator[Tally]:
    """Replicates of a tally in which all rows of a cluster are drawn together.

    Sums are summed again; extremes stay the same.
    """
    import numpy as np

    labels = [*LABELS, SCORE] if SCORE in tally.cells.columns else [*LABELS]
    kept = tally.names([*(key.column for key in tally.outer), *by])
    cell = list(dict.fromkeys([*kept, *labels]))
    clusters = tally.names([key.column for key in tally.clusters])
    merges = merged(name for name in tally.cells.columns if name not in {*tally.counted_by, *labels})
    columns = {name: merge(pl.col(name)) for name, merge in merges.items()}
    sums = [name for name in columns if is_sum(name)]
    cells = centred(tally.cells).group_by(*cell, *clusters).agg(columns.values())
    cells = cells.sort(*cell, *clusters, nulls_last=True)
    cluster = placed(cells, clusters)[0]
    index, distinct = placed(cells, cell)
    count, size = int(cluster.max(initial=-1)) + 1, len(distinct)
    if count * size * len(sums) > _MOST_NUMBERS:
        msg = f"There are {count} clusters in {size} cells, which is too many to draw from; take coarser clusters."
        raise ArgumentError(msg)
    sums_of_clusters = np.zeros((count, size, len(sums)))
    sums_of_clusters[cluster, index] = cells.select(pl.col(sums).cast(pl.Float64)).to_numpy()
    extremes = [column for name, column in columns.items() if name not in sums]
    fixed = cells.group_by(cell).agg(extremes)
    fixed = distinct.join(fixed, on=cell, how="left", nulls_equal=True, maintain_order="left")
    keys, renamed = kept_keys(tally, by)
    draw = f"k{len(keys)}"
    order = [*renamed.values(), draw, *labels, *columns]
    step = max(1, min(MOST_CELLS // max(1, size), MOST_CELLS // max(1, count)))
    for start in in_progress(range(0, times, step), "resampling"):
        draws = min(step, times - start)
        times_drawn = _drawn_evenly(count, draws, random).astype(float)
        drawn = (times_drawn @ sums_of_clusters.reshape(count, size * len(sums))).reshape(draws * size, len(sums))
        frame = fixed[np.tile(np.arange(size), draws)].rename(renamed)
        frame = frame.hstack(pl.DataFrame(drawn, schema=sums))
        frame = frame.with_columns(
            pl.Series(draw, np.repeat(np.arange(start, start + draws), size)), pl.col("n").round().cast(pl.Int64)
        )
        frame = frame.filter(pl.col("n") > 0).select(order)
        yield replace(tally, cells=frame, keys=(*keys, Key(Column(DRAW), "outer")), rows=None)


def _drawn_evenly(count: int, times: int, random: np.random.Generator) -> Array:
    """The times that clusters are drawn, as many as there are: arrays of replicates by clusters."""
    import numpy as np

    if not count:
        return np.zeros((times, 0), dtype=np.int64)
    return random.multinomial(count, np.full(count, 1 / count), times)


def redrawn_rows(
    tally: Tally, by: Sequence[Column], *, strata: Sequence[Column], times: int, random: np.random.Generator
) -> Iterator[Tally]:
    """Replicates of a tally that has kept its rows, for metrics that read them in order.

    Outer groups, and the groups of `strata`, keep their size; rows of a cluster are drawn together.
    """
    if tally.rows is not None:
        for rows, keys in drawn_rows(tally, tally.rows, by, strata=strata, times=times, random=random):
            yield recounted(tally, rows, keys)


def drawn_rows(
    tally: Tally, rows: pl.DataFrame, by: Sequence[Column], *, strata: Sequence[Column], times: int,
    random: np.random.Generator,
) -> Iterator[tuple[pl.DataFrame, tuple[Key, ...]]]:  # fmt: skip
    """The rows of replicates, with all columns that they have, and their keys."""
    import numpy as np

    keys, names = kept_keys(tally, by)
    own = tally.names([key.column for key in tally.clusters if key.column.name != BLOCK])
    rows = in_order(tally, rows, [*names, *own])
    fixed = [*tally.names([key.column for key in tally.outer]), *tally.names(strata)]
    stratum, cluster = placed(rows, fixed)[0], placed(rows, own)[0]
    kept, draw = rows.drop(own).rename(names), f"k{len(keys)}"
    if len(rows) * times > MOST_ROWS:
        msg = (
            f"{times} draws of {len(rows)} rows take too long; a few hundred tell a standard error to a few percent, "
            "`times=400`."
        )
        raise ArgumentError(msg)
    order = np.argsort(stratum, kind="stable")
    sizes = np.bincount(stratum) if len(rows) else np.zeros(1, dtype=np.int64)
    size, start = sizes[stratum[order]], (np.cumsum(sizes) - sizes)[stratum[order]]
    step = max(1, MOST_CELLS // max(1, len(rows)))
    for first in in_progress(range(0, times, step), "resampling"):
        draws = min(step, times - first)
        if own and len(rows):
            count = int(cluster.max()) + 1
            times_drawn = _drawn_evenly(count, draws, random)
            rows_drawn = [np.repeat(np.arange(len(rows)), of_replicate[cluster]) for of_replicate in times_drawn]
            chosen, lengths = np.concatenate(rows_drawn), [len(indices) for indices in rows_drawn]
        else:
            chosen = order[(start + random.random((draws, len(rows))) * size).astype(np.int64).ravel()]
            lengths = [len(rows)] * draws
        number = pl.Series(draw, np.repeat(np.arange(first, first + draws, dtype=np.int32), lengths))
        yield kept[chosen].with_columns(number), (*keys, Key(Column(DRAW), "outer"))


def kept_keys(tally: Tally, by: Sequence[Column]) -> tuple[tuple[Key, ...], dict[str, str]]:
    """The keys of outer groups and of `by`, and the new names of their columns without the other keys."""
    kept = [*by, *(key.column for key in tally.outer)]
    keys = tuple(key for key in tally.keys if key.column in kept)
    return keys, {f"k{tally.keys.index(key)}": f"k{index}" for index, key in enumerate(keys)}


def placed(frame: pl.DataFrame, by: Sequence[str]) -> tuple[Array, pl.DataFrame]:
    """The index of each row among the distinct ones, which are in order and null last; and these."""
    import numpy as np

    if not by:
        return np.zeros(len(frame), dtype=np.int64), pl.DataFrame()
    distinct = frame.select(by).unique().sort(by, nulls_last=True)
    numbers = frame.select(by).join(
        distinct.with_row_index(DRAW), on=list(by), how="left", nulls_equal=True, maintain_order="left"
    )
    return numbers[DRAW].cast(pl.Int64).to_numpy(), distinct


def in_order(tally: Tally, rows: pl.DataFrame, kept: Sequence[str]) -> pl.DataFrame:
    """The rows with only the keys that are kept, sorted.

    So results follow from the seed, whatever the order of the data and the other parts of a call.
    """
    others = [f"k{index}" for index in range(len(tally.keys)) if f"k{index}" not in kept]
    return rows.drop(others).sort(pl.all(), nulls_last=True)


def _drawn(
    cells: pl.DataFrame, groups: list[Any], count: int, random: np.random.Generator, method: str
) -> dict[str, Any]:
    """The sums of the cells of a number of replicates, one after the other."""
    import numpy as np

    rows = cells["n"].to_numpy()
    drawn = np.zeros((count, len(cells)), dtype=float if method == "bayes" else np.int64)
    for group in groups:
        counts, total = rows[group], rows[group].sum()
        if method == "bayes":
            drawn[:, group] = random.dirichlet(counts + _PRIOR, count) * total
        elif total:
            drawn[:, group] = random.multinomial(total, counts / total, count)
    if method == "bayes":
        return {"n": np.tile(np.maximum(rows, 1), count), "w": drawn.ravel(), "w2": drawn.ravel()}
    sums: dict[str, Any] = {"n": drawn.ravel()}
    if "w" in cells.columns:
        # the weights of a cell by their mean and their variance
        size = np.maximum(rows, 1)
        mean, square = cells["w"].to_numpy() / size, cells["w2"].to_numpy() / size
        noise = random.standard_normal(drawn.shape) * np.sqrt(drawn * np.maximum(square - mean**2, 0))
        sums["w"] = np.maximum(drawn * mean + noise, 0).ravel()
        sums["w2"] = (drawn * square).ravel()
    return sums
