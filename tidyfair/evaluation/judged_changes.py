"""Variances of the changes of results between two models, from labels of people and of a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import cast

import numpy as np

from tidyfair.evaluation.evaluator import RequestedFormula
from tidyfair.evaluation.judged import JudgedEvaluator
from tidyfair.evaluation.ranked_rows import Scope
from tidyfair.evaluation.replicates import Replicates
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.specs import Floats, Segments


def changes_by_judge(sides: Sequence[Replicates]) -> Floats:
    """The variances of the changes of all results from one side to the other, and those by labels of people alone.

    What a unit adds to a result is what it adds to values, which share the power of a judge, by the slopes of the
    result in these.
    """
    outers = len(sides[0].evaluated.group_cells.outer_keys)
    variances = [_variances(sides, number, outers) for number in range(len(sides[0].evaluated.specs))]
    return np.concatenate(variances, axis=1)


def _variances(sides: Sequence[Replicates], number: int, outers: int) -> Floats:
    """Both variances of the changes of the results of one spec, by outer group."""
    evaluated = sides[0].evaluated
    by, evaluator = evaluated.specs[number].by, cast("JudgedEvaluator", evaluated.evaluator)
    first, groups = evaluated.group_cells.spans[by]
    outer = evaluated.group_cells.outer[first : first + groups].astype(np.int64)
    formulas = [(index, own) for index, own in enumerate(evaluator.tables) if own.spec == number]
    own = evaluator.judged(formulas[0][1], by)
    # a cluster may be in several groups, and in several outer groups
    most = int(own.unit.max(initial=0)) + 1
    units, example, index = np.unique(outer[own.group] * most + own.unit, return_index=True, return_inverse=True)
    added = np.zeros((2, len(units)))
    scopes: list[Scope] = ["own", *(context for context in evaluator.contexts if context in sides[0].columns)]
    for (side, sign), scope, (formula, requested) in product(zip(sides, (-1, 1), strict=True), scopes, formulas):
        judged = cast("JudgedEvaluator", side.evaluated.evaluator).judged(requested, by, scope)
        slope = sign * _slopes(side, scope, formula, requested, first, judged.people.shape)
        at = np.searchsorted(units, outer[judged.group] * most + judged.unit)
        for row, (weight, of_units) in enumerate([(slope, judged.of_people), (slope * judged.power, judged.of_error)]):
            added[row] += np.bincount(at, (weight[judged.group] * of_units).sum(axis=1), len(units))
    people, error = added[:, :, None]
    # units of one group have a variance together; those of clusters have it in all groups
    is_clustered = bool(evaluator.tally.cluster_names)
    group = units // most if is_clustered else own.group[example]
    segments = Segments.of(group)
    change = replace(
        own, of_people=people, of_error=error, group=group, size=own.size[example],
        is_labelled=np.bincount(index, own.is_labelled) > 0, given_power=segments.any(error[:, 0] != 0)[:, None] * 1.0,
    )  # fmt: skip
    variance, alone = change.variances
    # a few rows that change say little about the judge: as many as there are in effect, by their squared influences
    fourth = segments.sum(people**4 / change.size[:, None])
    rows = segments.sum(people**2) ** 2 / np.where(fourth > 0, fourth, 1.0)
    variance = variance * np.where(change.power > 0, (rows + 1) / np.fmax(rows - 2, 1), 1.0)
    outer_of_group = units[segments.starts] // most
    return np.stack([np.bincount(outer_of_group, own[:, 0], outers).astype(float) for own in (variance, alone)])


def _slopes(
    side: Replicates, scope: Scope, formula: int, requested: RequestedFormula, first: int, shape: tuple[int, ...]
) -> Floats:
    """The slopes of results in the values of a formula: an array of the groups of a feature by labels."""
    rows, values = side.rows, side.evaluated.values
    is_of_formula = values["requested"][rows] == formula
    group, level = (values[name][rows[is_of_formula]] for name in (GROUP_CELL, LEVEL))
    slopes = np.zeros(shape)
    label = side.evaluated.label_index(level, shape[1], requested.average)
    own = side.slopes("estimate" if scope == "own" else scope)[is_of_formula]
    slopes[group - first, label] = np.nan_to_num(own)
    return slopes
