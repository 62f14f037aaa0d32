"""Areas under the ROC curve from complex surveys: what each unit adds to them.

An area is the weighted share of pairs of an event and a non-event that scores put in their order. Its derivative by the
weight of a row is the share of the other class that the row beats (its placement value) less the area, over the weight
of its class: the influence of DeLong et al. (1988), with the weights of the design (Yao et al., 2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import polars as pl

from tidyfair.evaluation.group_cells import rows_of, slice_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.evaluation.evaluator import Evaluator
    from tidyfair.evaluation.group_index import GroupIndex
    from tidyfair.evaluation.ranked_rows import Rows
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import By
    from tidyfair.specs.segments import Booleans, Floats, Integers
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_GROUP, _UNIT = "\0group", "\0unit"
"""Columns beside the keys of units; no column of a tally has these names."""


def areas_by_unit(
    evaluator: Evaluator, tally: Tally, formula: Formula, estimator: str, by: By | None, units: GroupIndex,
    keys: Sequence[str],
) -> tuple[Floats, Floats, Integers]:  # fmt: skip
    """The areas of groups, what each unit adds to them, by labels, and the number of rows of each unit.

    Units are told apart within groups by the columns `keys` of the cells of the tally.
    """
    import numpy as np

    labels, span = evaluator.labels, slice_of(evaluator.group_cells, by)
    rows = rows_of(tally, labels, evaluator.group_cells, by, formula.reads)
    requested = next(table for table in evaluator.tables if (table.formula, table.estimator) == (formula, estimator))
    value = evaluator.values(requested).estimate[span]
    group = evaluator.group_cells.indices[by].of_cell[units.example]
    unit = _units_of_rows(rows, tally.cells[list(keys)][units.example], group)
    weight = np.ones(len(unit)) if rows.weight is None else rows.weight.astype(float)
    change = np.zeros((len(units), value.shape[1]))
    for number, level in enumerate(labels.levels[: value.shape[1]]):
        event, score = rows.event(level), rows.score(evaluator.reading.scores[level])
        for own_group in np.unique(rows.group_cell):
            own = np.flatnonzero((rows.group_cell == own_group) & (weight > 0))
            np.add.at(change[:, number], unit[own], _influence(event[own], score[own], weight[own]))
    return value, change, np.bincount(unit[weight > 0], minlength=len(units))


def _units_of_rows(rows: Rows, keys: pl.DataFrame, group: Integers) -> Integers:
    """The unit of each row, from the keys and the groups of all units."""
    import numpy as np

    units = keys.with_columns(pl.Series(_GROUP, group), pl.Series(_UNIT, np.arange(len(keys))))
    own = rows.frame.select() if rows.clusters is None else rows.clusters.select(keys.columns)
    own = own.with_columns(pl.Series(_GROUP, rows.group_cell, dtype=units[_GROUP].dtype))
    joined = own.join(units, on=[*keys.columns, _GROUP], how="left", nulls_equal=True, maintain_order="left")
    return joined[_UNIT].to_numpy()


def _influence(event: Booleans, score: Floats, weight: Floats) -> Floats:
    """The contribution of each row of a group to its area, by its weight; 0 where there is only one class."""
    import numpy as np

    _, position = np.unique(score, return_inverse=True)
    hits = np.bincount(position, weight * event)
    false_alarms = np.bincount(position, weight * ~event, minlength=len(hits))
    events, others = hits.sum(), false_alarms.sum()
    if not events or not others:
        return np.zeros(len(event))
    beaten = (np.cumsum(false_alarms) - false_alarms / 2) / others
    beaten_by = 1 - (np.cumsum(hits) - hits / 2) / events
    area = float(hits @ beaten) / events
    of_events, of_others = (beaten[position] - area) / events, (beaten_by[position] - area) / others
    return cast("Floats", weight * np.where(event, of_events, of_others))
