"""Suppression of small counts, attacked by linear programming with all that is shown."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, milp
from scipy.optimize import LinearConstraint

from tidyfair.tallies import hidden_groups

SHAPES = [
    # cells by dimension, and the margins that are shown, by the dimensions that they keep
    ((6,), [(0,), ()]),
    ((4, 3), [(0, 1), (0,), (1,), ()]),
    ((5, 3), [(0,), (1,), ()]),
    ((3, 3, 2), [(0, 1, 2), (0, 1), (0, 2), (1, 2), (0,), (1,), (2,), ()]),
    ((3, 2, 2), [(0, 1), (1, 2), (0, 2), ()]),
    ((4, 2, 2), [(0, 1), (2,), ()]),
]
"""Tables with two and three features, some of which are linked without a table of their crossing."""


def group_numbers(shape: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """The group of each cell in the margin that keeps some dimensions."""
    cells = np.array(list(itertools.product(*map(range, shape))))
    return np.array([int(np.ravel_multi_index([cell[axis] for axis in kept], [shape[axis] for axis in kept]))
                     if kept else 0 for cell in cells])  # fmt: skip


def random_tables(number: int, seed: int) -> Iterator[tuple[Any, list[Any], int]]:
    """Counts of cells by label, tables and the least count that is shown."""
    rng = np.random.default_rng(seed)
    for index in range(number):
        shape, margins = SHAPES[index % len(SHAPES)]
        labels = int(rng.integers(1, 5))
        scale = rng.choice([3, 12, 60], size=(int(np.prod(shape)), 1))
        counts = rng.poisson(scale * rng.uniform(0.1, 1.5, size=(1, labels)), size=(int(np.prod(shape)), labels))
        counts[rng.random(counts.shape) < 0.1] = 0
        yield counts, [group_numbers(shape, kept) for kept in margins], int(rng.choice([3, 5, 10]))


def ranges_of_protected(counts: Any, tables: list[Any], hidden: list[Any], below: int) -> Iterator[tuple[float, float]]:
    """The least and largest values of each small count that agree with all counts that are shown."""
    rows: list[Any] = []
    for table in tables:
        rows += [(table == group).astype(float) for group in range(int(table.max()) + 1)]
    members = np.array(rows)
    is_hidden = np.concatenate(hidden)
    totals = members @ counts
    for label in range(counts.shape[1]):
        for group in np.flatnonzero((totals[:, label] > 0) & (totals[:, label] < below)):
            ends: list[float] = []
            for sign in (1, -1):
                found = linprog(
                    sign * members[group], A_eq=members[~is_hidden] if (~is_hidden).any() else None,
                    b_eq=totals[~is_hidden, label] if (~is_hidden).any() else None,
                )  # fmt: skip
                ends.append(np.inf if found.status == 3 else abs(found.fun))
            yield ends[0], ends[1]


def attacked(number: int, seed: int) -> int:
    """The number of small counts that were attacked, none of which was recovered."""
    protected = 0
    for counts, tables, below in random_tables(number, seed):
        hidden = hidden_groups(counts, tables, below)
        for lower, upper in ranges_of_protected(counts, tables, hidden, below):
            protected += 1
            assert lower < 1e-6, (counts, below)
            assert upper > below - 1e-6, (counts, below)
    return protected


def test_linear_programming_recovers_no_small_count() -> None:
    assert attacked(240, 0) > 500


@pytest.mark.simulation
def test_linear_programming_recovers_no_small_count_in_many_tables() -> None:
    assert attacked(10_000, 1) > 20_000
