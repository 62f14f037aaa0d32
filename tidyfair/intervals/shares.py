"""Formulas of counts that are shares of rows, or made of shares, found by trying them on small tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tidyfair.evaluation import CELLS, values_of
from tidyfair.specs import BINARY, Array, Floats
from tidyfair.specs.formulas import ROWS, Formula, LabelSums, RowSums

_PROBES = ((3, 5, 2, 7, 1, 4, 6, 2, 3), (1, 8, 9, 2, 5, 3, 2, 7, 4))
_COMPLETE = ("tp", "fn", "fp", "tn")
_SPLITS = ((("tp", "fn"), ("fp", "tn")), (("tp", "fp"), ("fn", "tn")))
"""Rows by their true label, and by their predicted label."""
_TABLES = np.array([(5.0, 3.0, 2.0, 7.0), (1.0, 8.0, 4.0, 2.0), (6.0, 2.0, 9.0, 3.0), (2.0, 2.0, 5.0, 8.0)])
_SHARES = np.array([0.125, 0.5, 0.875])[:, None]
_CLOSE = 1e-9


@dataclass(frozen=True)
class Share:
    """The definition of a rate: the cells of the table of its denominator, and those of its numerator."""

    among: frozenset[str]
    holds: frozenset[str]

    @property
    def misses(self) -> frozenset[str]:
        """The cells of the denominator that are not in the numerator."""
        return self.among - self.holds


@dataclass(frozen=True)
class SumOfShares:
    """A formula that is a constant and a multiple of two shares of different rows, such as balanced accuracy."""

    shares: tuple[tuple[float, Share], tuple[float, Share]]


@lru_cache(maxsize=1024)
def share_of(formula: Formula) -> Share | None:
    """The share that a formula is, found by trying it on tables; None if it is something else."""
    values, rows = _on_probes(formula)
    among = {name for name, count in zip(CELLS, rows, strict=False) if count}
    holds = {name for name, value in zip(CELLS, values, strict=False) if value}
    is_share = {*values[: len(CELLS)], *rows[: len(CELLS)]} <= {None, 0, 1}
    for value, size, probe in zip(values[len(CELLS) :], rows[len(CELLS) :], _PROBES, strict=False):
        all_of_them, hits = _count(probe, among), _count(probe, holds)
        is_share = is_share and bool(size) and size == all_of_them and math.isclose(value or 0.0, hits / all_of_them)
    return Share(frozenset(among), frozenset(holds)) if is_share and among else None


@lru_cache(maxsize=1024)
def odds_of(formula: Formula) -> Share | None:
    """The share whose odds a formula is, such as false negatives among errors; None if it is something else."""
    values, rows = _on_probes(formula)
    below = {name for name, count in zip(CELLS, rows, strict=False) if count}
    others = [name for name in ("tp", "fp", "fn", "tn") if name not in below]
    for size in range(1, len(others) + 1) if below else ():
        for above in itertools.combinations(others, size):
            odds = [_count(probe, above) / _count(probe, below) for probe in _PROBES]
            if all(map(math.isclose, odds, [value or 0.0 for value in values[len(CELLS) :]])):
                return Share(frozenset(below | {*above}), frozenset(above))
    return None


@lru_cache(maxsize=1024)
def rising_share_of(formula: Formula) -> Share | None:
    """The share of some rows with which a formula rises, and of nothing else, such as tp / (tp + fp + fn) for F1."""
    if not _is_of_complete_counts(formula):
        return None
    for size in (3, 4, 2):
        for among in itertools.combinations(_COMPLETE, size):
            for held in range(1, size):
                for holds in itertools.combinations(among, held):
                    share = Share(frozenset(among), frozenset(holds))
                    if _rises_with(formula, share):
                        return share
    return None


def _rises_with(formula: Formula, share: Share) -> bool:
    """Check whether a formula depends on a share alone, and rises with it."""
    # tables with the same share in other cells, of more rows, and with other rows beside it
    tables = np.random.default_rng(0).uniform(1, 9, (len(_SHARES), 3, len(_COMPLETE)))
    for cells, part in ((share.holds, _SHARES), (share.misses, 1 - _SHARES)):
        own = np.isin(_COMPLETE, [*cells])
        tables[..., own] *= (part * (10.0, 20.0, 40.0) / tables[..., own].sum(axis=-1))[..., None]
    values = values_of_tables(formula, tables)[0]
    is_of_share = np.isfinite(values).all() and np.allclose(values, values[:, :1], rtol=_CLOSE, atol=_CLOSE)
    return bool(is_of_share and (np.diff(values[:, 0]) > 0).all())


@lru_cache(maxsize=1024)
def sum_of_shares_of(formula: Formula) -> SumOfShares | None:
    """The formula as a sum of two rates with disjoint denominators, or None."""
    if not _is_of_complete_counts(formula):
        return None
    values = values_of_tables(formula, _TABLES)[0]
    counts: dict[str, Floats] = dict(zip(_COMPLETE, _TABLES.T, strict=True))
    if not np.isfinite(values).all():
        return None
    for split in _SPLITS:
        terms = np.column_stack([*(counts[hit] / (counts[hit] + counts[miss]) for hit, miss in split), np.ones(4)])
        factors = np.linalg.lstsq(terms, values)[0]
        if np.allclose(values, terms @ factors, rtol=_CLOSE, atol=_CLOSE):
            one, other = (Share(frozenset(cells), frozenset(cells[:1])) for cells in split)
            return SumOfShares(((float(factors[0]), one), (float(factors[1]), other)))
    return None


def values_of_tables(formula: Formula, cells: Array) -> tuple[Array, Array]:
    """The values of a formula and its denominators; the last axis of the tables is that of `CELLS`, or of its first."""
    flat = cells.reshape(-1, cells.shape[-1])
    columns = dict(zip(CELLS, flat.T, strict=False))
    counts = {name + ROWS: columns.get(name, np.zeros(len(flat)))[:, None] for name in CELLS}
    values = values_of(formula, BINARY, counts)
    shape = cells.shape[:-1]
    return values.estimate[:, 0].reshape(shape), values.denominator[:, 0].reshape(shape)


def is_of_cells(formula: Formula) -> bool:
    """Check whether a formula reads only the counts of one label against the rest."""
    return formula.variation == "counts"


def on_counts(formula: Formula, counts: Sequence[Any]) -> Floats:
    """The values of a formula on counts of tp, fn, fp and tn of one label against the rest."""
    return values_of_tables(formula, np.stack(counts, axis=-1).astype(float))[0]


def at_share(formula: Formula, share: Share, values: Floats) -> Floats:
    """The values of a formula that rises with a share, at some values of the share."""
    part = {True: values / len(share.holds), False: (1 - values) / len(share.misses)}
    counts = [part[name in share.holds] if name in share.among else np.ones_like(values) for name in _COMPLETE]
    return on_counts(formula, counts)


def _is_of_complete_counts(formula: Formula) -> bool:
    """Check whether a formula reads nothing but counts of rows with truth and estimate."""
    return is_of_cells(formula) and formula.reads == frozenset({"truth", "estimate"})


@lru_cache(maxsize=1024)
def is_mean(formula: Formula) -> bool:
    """Tell whether a formula is the mean of a value over rows, by trying it on sums that add up."""
    if not isinstance(formula, RowSums):
        return False
    reads_other = formula.statistics - {"instances"} or formula.parts or formula.beyond or not formula.all_terms
    if reads_other or not formula.is_rate:
        return False
    names = [name for name, _ in formula.terms]

    def value(of_terms: Sequence[float], rows: float) -> Any:
        sums = {name: np.full((1, 2), number) for name, number in zip(names, of_terms, strict=True)}
        return formula.on_sums(sums | {"instances": np.full((1, 2), rows)})[0]

    one, other = [1.0 + index for index in range(len(names))], [3.0 + index**2 for index in range(len(names))]
    both = [first + second for first, second in zip(one, other, strict=True)]
    adds_up = np.allclose(value(both, 8), value(one, 8) + value(other, 8))
    return adds_up and np.allclose(value(one, 16), value(one, 8) / 2)


def is_share_of_flags(formula: Formula) -> bool:
    """Check whether a formula is the share of rows that have a flag, such as those in a prediction interval."""
    terms = formula.all_terms
    reads_flags = len(terms) == 1 and all(term.flag for term in terms)
    return reads_flags and is_mean(formula)


def _on_probes(formula: Formula) -> tuple[list[float | None], list[float | None]]:
    """The values and denominators of a formula on a table with each cell alone, and on the probes.

    Both are empty if it is not a rate of counts of labels.
    """
    if not isinstance(formula, LabelSums) or not is_of_cells(formula) or not formula.is_rate:
        return [], []
    values, denominators = values_of_tables(formula, np.array([*np.eye(len(CELLS)), *_PROBES]))
    return [None if math.isnan(value) else value for value in values.tolist()], denominators.tolist()


def _count(probe: Sequence[int], cells: Collection[str]) -> int:
    return sum(count for name, count in zip(CELLS, probe, strict=True) if name in cells)
