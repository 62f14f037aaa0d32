"""Rules for small samples: parts of rows that few rows do not show, so that limits hold for what has not been seen.

A group of ten people without an event may have one among the next ten: a row with the mean score of the group, of which
each label is an equal part, keeps limits of its Brier score honest, as half a hit and half a miss do those of a rate.
Of squared errors a few rows seldom show the large ones, on which their mean depends: half a row has an error that is
rare. What is added is a constant, so that large groups do not feel it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidyfair.evaluation import Cells, Evaluator, GroupIndex, RequestedFormula, sums_of, values_of
from tidyfair.specs import Array, Floats, Integers, Segments
from tidyfair.specs.formulas import ROWS, Formula, RowSums, Table

_HALF_A_ROW = 0.5
_FEW_ERRORS = 3
_FARTHEST = 2.5
"""The largest factor by which skewness moves a limit away from its value."""
_ROUNDED = 1e-8


def area_errors(value: Floats, variance: Floats, events: Floats, others: Floats) -> Floats:
    """The standard errors of areas; the largest possible where rows do not show any (Birnbaum and Klose, 1957).

    That is so of a class of a single row, and of scores that are all tied: others need not be.
    """
    most = value * (1 - value) / np.minimum(events, others)
    return np.sqrt(np.where(np.isfinite(variance) & (variance > 0), variance, most))


def area_sides(
    value: Floats, error: Floats, events: Floats, others: Floats
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Where the limits of areas under a ROC curve are measured from, and their errors: below, then above.

    Few rows do not show the one that no score predicts, so that the limit toward 1/2 alone is too near: it counts half
    an event and half a non-event more that a score says nothing of.
    """
    away = value - 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = 0.5 + away * (events / (events + _HALF_A_ROW) + others / (others + _HALF_A_ROW) - 1)
        added = _HALF_A_ROW * away**2 * (1 / (events + _HALF_A_ROW) ** 2 + 1 / (others + _HALF_A_ROW) ** 2)
    unseen, is_above = np.sqrt(error**2 + added), value > 0.5
    below = np.where(is_above, centre, value), np.where(is_above, unseen, error)
    return below, (np.where(is_above, value, centre), np.where(is_above, error, unseen))


def counts_with_few_errors(counts: Sequence[Floats], z: float | Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts of tp, fn, fp and tn in which three errors or less are as rare as they may be; nan for more errors.

    So many errors, or more, then have the probability of a limit by Poisson's distribution, as those of a rate have
    (Brown, Cai and DasGupta, 2001).
    """
    from scipy.special import erfc, gammaincinv

    tp, fn, fp, tn = counts
    errors = fn + fp
    few = (errors > 0) & (errors <= _FEW_ERRORS) & (errors < (tp + errors + tn) / 2)
    share = gammaincinv(np.where(few, errors, 1.0), erfc(z / math.sqrt(2))) / np.where(few, errors, 1.0)
    share = np.where(few, np.minimum(share, 1), np.nan)
    return tp + fn * (1 - share), fn * share, fp * share, tn + fp * (1 - share)


def outer_factor(factor: Floats, skew: Floats) -> Floats:
    """The standard errors of a limit above values with some skewness (Hall, 1992), or those without if there are more.

    The skewness of samples is nearer to 0 than that of values, so that limits are no nearer for it; they are at most
    so many times as far.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # the root of t + skew t² / 3 + skew² t³ / 27 + skew / 6 on the other side, where it is the limit's
        unskewed = -3 / skew * (np.cbrt(1 - skew * (factor + skew / 6)) - 1)
    return np.where(np.abs(skew) < _ROUNDED, factor, np.fmin(np.fmax(factor, unskewed), _FARTHEST * factor))


# Parts of rows that are added to sums


@dataclass(frozen=True, eq=False)
class UnseenRows:
    """Parts of rows that are added to groups, because few rows do not show how far others may lie from them."""

    sums: Mapping[str, Array]
    """The sums that they add."""
    variance: Floats
    """The variance that they add to values: that of parts, left out one at a time."""
    is_above: bool = False
    """True if they are rows with large errors, which only the upper limit allows for."""


def unseen_rows(
    evaluator: Evaluator, table: Table, requested: RequestedFormula, index: GroupIndex,
    units: tuple[Mapping[str, Array], Floats, Segments],
) -> UnseenRows | None:  # fmt: skip
    """The parts of rows that are added to groups of scores, survival times or errors; None for none.

    `units` are the sums of the units of groups, their weights, and the units of each group.
    """
    formula, average, cells = requested.formula, requested.average, evaluator.cells
    everything = sums_of(table, formula.all_terms, cells, index, evaluator.reading)
    counted = cells.complete_in(table.reads)
    weight, square = (
        np.bincount(index.of_cell[counted], cells.measure(name)[counted], len(index)) for name in ("w", "w2")
    )
    # the share of the weight of each group that one of its effective rows has
    share = square / weight**2
    is_above = False
    if table.kind == "survival":
        parts, rows = _unseen_outcomes(formula, everything, share), _HALF_A_ROW
    elif table.kind == "prob":
        parts = _unseen_events(evaluator, table, formula, index, share) if counts_all_events(formula) else []
        rows = 1 / max(1, len(parts))
    else:
        is_above = is_of_errors(formula)
        parts, rows = _unseen_errors(formula, everything, share, units) if is_above else [], _HALF_A_ROW
    if not parts:
        return None
    added = {name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]}
    total = with_rows_added(everything, added)
    value = values_of(formula, average, total).estimate
    variance = np.zeros_like(value)
    for part in parts:
        without = with_rows_added(total, {name: -values for name, values in part.items()})
        variance += (value - values_of(formula, average, without).estimate) ** 2 / rows
    return UnseenRows(added, variance, is_above)


def counts_all_events(formula: Formula) -> bool:
    """Check whether a formula of scores reads how often labels are true in all rows."""
    of_all = "instances" in formula.statistics or any(term.reads <= frozenset({"probs"}) for term in formula.all_terms)
    return of_all and "truth" in formula.reads


def is_of_errors(formula: Formula) -> bool:
    """Check whether a formula is of errors that may be rare and large, and the number of rows, and of nothing else."""
    are_errors = bool(formula.all_terms) and all(term.tail is not None for term in formula.all_terms)
    return are_errors and formula.statistics <= {"instances"} | {term.name for term in formula.all_terms}


def _unseen_events(
    evaluator: Evaluator, table: Table, formula: Formula, index: GroupIndex, share: Floats
) -> list[dict[str, Array]]:
    """A row of each group with its mean score, of which each label is an equal part."""
    cells, reading = evaluator.cells, evaluator.reading
    # of one label against the rest, the others are all alike
    one = reading.levels[0] if len(reading.levels) == 1 else None
    labels = range(reading.labels) if one is None else (one, one + 1)
    parts: list[dict[str, Array]] = []
    for label in labels:
        sums = sums_of(table, formula.all_terms, _Labelled(cells.tally, cells.labels, label), index, reading)
        parts.append({name: _scaled(values, share / len(labels)) for name, values in sums.items()})
    return parts


def _unseen_outcomes(formula: Formula, everything: Mapping[str, Array], share: Floats) -> list[dict[str, Array]]:
    """A row of each group with its mean survival probability, half with the event by the time and half without it.

    None for formulas that do not read who survives, and for tallies that were not counted for intervals.
    """
    outcomes = formula.terms_of_outcomes if isinstance(formula, RowSums) else ()
    if not outcomes or not all(term.column in everything for term in outcomes):
        return []
    parts: list[dict[str, Array]] = []
    for has_event in (True, False):
        part = {"instances": _scaled(everything["instances"], _HALF_A_ROW * share)}
        for term in formula.all_terms:
            of_outcome = replace(term, outcome=has_event) if term.at_points else term
            part[term.column] = _scaled(everything[of_outcome.column], _HALF_A_ROW * share)
        parts.append(part)
    return parts


def _unseen_errors(
    formula: Formula, everything: Mapping[str, Array], share: Floats,
    units: tuple[Mapping[str, Array], Floats, Segments],
) -> list[dict[str, Array]]:  # fmt: skip
    """Half a row of each group with an error that is rare: so many means, or so many of the largest if that is more."""
    sums, weight, segments = units
    instances = everything["instances"]
    part = {"instances": _scaled(instances, _HALF_A_ROW * share)}
    for term in formula.all_terms:
        if term.tail is None:
            continue
        means, largest = term.tail
        mean = everything[term.column] / instances
        of_units = np.where(weight[:, None] > 0, sums[term.column] / weight[:, None], 0.0)
        error = np.fmax(means * mean, largest * segments.maximum(of_units))
        part[term.column] = _scaled(error * instances, _HALF_A_ROW * share)
    return [part]


def _scaled(values: Array, share: Floats) -> Floats:
    """The sums of groups, times a number for each."""
    return values * share.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, eq=False)
class _Labelled(Cells):
    """The cells of a tally as if one label were true of all rows."""

    label: int

    @cached_property
    def truth(self) -> Integers:
        """The index of that label."""
        return np.full(len(self.frame), self.label)


def with_rows_added(sums: Mapping[str, Array], added: Mapping[str, Array]) -> dict[str, Array]:
    """The sums of groups with more rows."""
    return {name: values + added.get(name, added.get(name.removesuffix(ROWS), 0.0)) for name, values in sums.items()}
