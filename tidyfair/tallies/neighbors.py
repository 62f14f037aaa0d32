"""Shares of nearest neighbours that have another label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tidyfair.errors import ColumnError

Floats = np.ndarray[Any, Any]

_TIE = 1e-12
"""Distances closer than this, relative to their size, are equal."""
_FARTHEST = 1e100
"""Squares of distances beyond this, or below its inverse, exceed the range of floats."""
_MOST_NUMBERS = 2**22
_ROW = "\0row"
"""Column of row numbers, under a name that no internal column has."""


def other_labels(
    frame: pl.DataFrame, features: Sequence[str], label: str, together: Sequence[str], n_neighbors: int
) -> pl.Series:
    """For each row the share of its nearest neighbours, itself among them, that have another label.

    Neighbours are rows with a label and equal keys `together`; rows at equal distance share the remaining places. Null
    without a label, NaN where there are too few rows.
    """
    share = np.full(len(frame), np.nan)
    labelled = frame.with_row_index(_ROW).filter(pl.col(label).is_not_null())
    pools = labelled.partition_by(together, include_key=True) if together else [labelled]
    for pool in pools:
        if len(pool) >= n_neighbors:
            share[pool[_ROW].to_numpy()] = _shares(pool.select(*features, label), n_neighbors)
    return pl.select(pl.when(frame[label].is_not_null()).then(pl.Series(share))).to_series()


def _shares(rows: pl.DataFrame, n_neighbors: int) -> Floats:
    """The shares in one pool of rows, computed once for identical rows."""
    *features, label = rows.columns
    # adding 0 makes 0 of -0
    features_of_row = pl.struct(pl.col(features).cast(pl.Float64) + 0.0)
    point = rows.select(features_of_row.rank("dense") - 1).to_series().to_numpy()
    code = rows[label].rank("dense").to_numpy() - 1
    first_rows = np.unique(point, return_index=True)[1]
    points = rows[first_rows].select(pl.col(features).cast(pl.Float64)).to_numpy()
    points, width = points - points.min(axis=0), float(np.ptp(points, axis=0).max())
    if not width < _FARTHEST:
        msg = f"`features`: values differ by {width:g}, too much to compute distances; filter or rescale them first."
        raise ColumnError(msg)
    points = points / width if 0 < width < 1 / _FARTHEST else points
    counts = np.zeros((len(points), int(code.max()) + 1))
    np.add.at(counts, (point, code), 1)
    return _of_points(points, counts, n_neighbors)[point, code]


def _of_points(points: Floats, counts: Floats, n_neighbors: int) -> Floats:
    """For each distinct point and label the share of the neighbours with another label."""
    # its trees are several times as fast as those of scikit-learn, and exact, unlike brute force
    from scipy.spatial import KDTree

    tree: Any = KDTree(points)
    shares = np.empty_like(counts)
    todo, width = np.arange(len(points)), min(n_neighbors + 1, len(points))
    while len(todo):
        step = max(1, _MOST_NUMBERS // (width * counts.shape[1]))
        left: list[Any] = []
        for start in range(0, len(todo), step):
            batch = todo[start : start + step]
            distance, near = tree.query(points[batch], range(1, width + 1), workers=-1)
            labels = counts[near]
            neighbors = labels.sum(axis=2).cumsum(axis=1)
            last = (neighbors >= n_neighbors).argmax(axis=1)
            end = distance[np.arange(len(batch)), last][:, None]
            inside, border = distance < end * (1 - _TIE), np.abs(distance - end) <= end * _TIE
            # what is as far away as the last neighbour must be seen to the end
            whole = ~border[:, -1] | (width == len(points))
            sure = np.where(inside[:, :, None], labels, 0).sum(axis=1)
            tied = np.where(border[:, :, None], labels, 0).sum(axis=1)
            rest = n_neighbors - sure.sum(axis=1, keepdims=True)
            same = sure + tied * rest / tied.sum(axis=1, keepdims=True)
            shares[batch[whole]] = (1 - same / n_neighbors)[whole]
            left.append(batch[~whole])
        todo, width = np.concatenate(left), min(2 * width, len(points))
    return shares
