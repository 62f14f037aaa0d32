"""The numbers of rows before a row in one order and below it in another, for measures of concordance."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


def concordant_pairs(
    time: Array, event: Array, estimate: Array, of_event: Array, weight: Array, *, both_sides: bool
) -> tuple[Array, Array]:
    """The weight of the concordant pairs of each row, ties counting half, and that of all its comparable pairs.

    A row with the event is compared with those that survive it: of a later time, or censored at the same. Pairs count
    for the row with the event and, with `both_sides`, for the other one too.

    Args:
        time: The times of rows until the event or censoring.
        event: Whether the event happened.
        estimate: The predicted times.
        of_event: The weight of each row as the one with the event.
        weight: The weight of each row as the other one.
        both_sides: Whether pairs count for both of their rows.
    """
    # the latest first and, of the same time, the censored ones first
    order = np.lexsort((event, -time))
    time, event, weight, of_event = time[order], event[order], weight[order], np.where(event, of_event, 0.0)[order]
    _, rank = np.unique(estimate[order], return_inverse=True)
    block = np.concatenate([[True], (time[1:] != time[:-1]) | (event[1:] != event[:-1])]) if len(time) else event
    start = np.flatnonzero(block)[np.cumsum(block) - 1]
    total = np.concatenate([[0.0], np.cumsum(weight)])
    rows = np.flatnonzero(of_event > 0)
    below, tied = weights_below(rank, weight, start[rows], rank[rows])
    comparable, concordant = np.zeros(len(time)), np.zeros(len(time))
    comparable[rows] = of_event[rows] * total[start[rows]]
    concordant[rows] = of_event[rows] * (total[start[rows]] - below - tied / 2)
    if both_sides:
        # events that come before a row, in the opposite order
        reverse = rows[::-1]
        weights = of_event[reverse]
        earlier = np.concatenate([[0.0], np.cumsum(weights)])
        # those of an earlier time, or of the same if the row is censored
        time_of_events = time[reverse]
        ends = np.where(
            event, np.searchsorted(time_of_events, time, "left"), np.searchsorted(time_of_events, time, "right")
        )
        lower, tied = weights_below(rank[reverse], weights, ends, rank)
        comparable += weight * earlier[ends]
        concordant += weight * (lower + tied / 2)
    result = np.empty_like(concordant), np.empty_like(comparable)
    for values, sums in zip(result, (concordant, comparable), strict=True):
        values[order] = sums
    return result


def weights_below(rank: Array, weight: Array, end: Array, at: Array) -> tuple[Array, Array]:
    """The weight of elements below a rank, and of those at it, among the first ones of a sequence.

    Elements are split by the bits of their ranks, from the highest on (a wavelet matrix: Claude et al., 2015), so that
    n queries of n elements cost n log n.

    Args:
        rank: The rank of each element of the sequence, whole numbers from 0.
        weight: The weight of each element.
        end: For each query, the number of elements from the first on that count.
        at: For each query, the rank.
    """
    below, start, end = np.zeros(len(at)), np.zeros_like(end), end.copy()
    highest = max(int(rank.max(initial=0)), int(at.max(initial=0)))
    for bit in reversed(range(highest.bit_length())):
        is_low = (rank >> bit) & 1 == 0
        lows = np.concatenate([[0], np.cumsum(is_low)])
        weights = np.concatenate([[0.0], np.cumsum(np.where(is_low, weight, 0.0))])
        is_high = (at >> bit) & 1 == 1
        below += np.where(is_high, weights[end] - weights[start], 0.0)
        start, end = (
            np.where(is_high, lows[-1] + position - lows[position], lows[position]) for position in (start, end)
        )
        order = np.concatenate([np.flatnonzero(is_low), np.flatnonzero(~is_low)])
        rank, weight = rank[order], weight[order]
    total = np.concatenate([[0.0], np.cumsum(weight)])
    return below, total[end] - total[start]
