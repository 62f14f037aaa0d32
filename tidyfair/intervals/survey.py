"""Standard errors of values from complex surveys: by linearization within strata, or from replicate weights.

A linearized value is a sum over primary sampling units (PSUs), whose sums vary within strata (Woodruff, 1971; Binder,
1983). A group is a domain: PSUs without a row of it are zeros among the others. Replicate weights give the value again
and again, and it varies as these do (Wolter, 2007). Groups share PSUs and replicates, which correlates their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import (
    Evaluator,
    GroupIndex,
    KeyCodes,
    RepeatedCells,
    RequestedFormula,
    derivatives,
    rows_of,
    slice_of,
    statistics_of,
    sums_of,
    values_of,
)
from tidyfair.intervals.estimates import Influences, Scale, Surveyed, known_errors
from tidyfair.intervals.jackknife import MEANS
from tidyfair.intervals.resampling import DrawnUnits, Units, numbers_of_replicates, random_parts
from tidyfair.specs import (
    ROLE,
    Array,
    Average,
    Booleans,
    By,
    Floats,
    Integers,
    ReplicateWeights,
    Segments,
    SurveyDesign,
)
from tidyfair.specs.formulas import Formula, RowExpression, RowSums
from tidyfair.tallies import HIDDEN, LABELS, ROW, SHOWN, WEIGHT, Tally, in_words, of_replicate, weight_columns

_ROUNDED = 1e-9
"""The relative error of a value that does not vary is smaller."""
_GROUP, _UNIT = "\0group", "\0unit"
"""Columns beside the keys of units; no column of a tally has these names."""


def has_survey_error(formula: Formula, average: Average, tally: Tally) -> bool:
    """Check whether the values of a formula have standard errors under a design.

    Functions of sums have; areas of one label against the rest have by linearization, and whatever reads the rows of a
    group has by replicate weights.
    """
    if isinstance(formula, RowExpression):
        if tally.rows is None or formula.reads_row_order:
            return False
        return isinstance(tally.design, ReplicateWeights) or (formula.variation == "area" and average.by_label)
    is_of_sums = formula.variation == "counts" or (formula.variation == "sums" and isinstance(formula, RowSums))
    return is_of_sums and bool(formula.reads) and HIDDEN not in tally.cells.columns


def by_design(evaluator: Evaluator, requested: RequestedFormula, by: By | None, scale: Scale) -> Surveyed:
    """The values of a formula in the groups of a `by`, by groups and labels, with errors by the design.

    The design effect is their variance over that of as many rows drawn one by one.
    """
    design: Any = evaluator.tally.design
    by_sampling: Any = _of_replicates if isinstance(design, ReplicateWeights) else _linearized
    values: Surveyed = by_sampling(evaluator, design, requested, by, scale)
    simple = np.full_like(values.error, np.nan)
    if requested.formula.variation == "counts":
        simple = _simple_variance(evaluator, requested, by).ravel()
    elif requested.formula.statistics in MEANS:
        simple = _simple_variance_of_means(evaluator, requested, by).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        return replace(values, design_effect=values.error**2 / np.where(simple > 0, simple, np.nan))


def _simple_variance(evaluator: Evaluator, requested: RequestedFormula, by: By | None) -> Floats:
    """The variances of values of labels, by groups and labels, if as many rows had been drawn one by one (Kish, 1965).

    The distances of rows from a value, to which it is nearly linear, are spread in the population as with weights.
    """
    formula, average = requested.formula, requested.average
    index, cells = evaluator.group_cells.indices[by], evaluator.cells
    units = KeyCodes(evaluator.tally.cells).index(list(LABELS), within=index)
    segments = Segments.of(index.of_cell[units.example])
    sums = sums_of(formula.table(average), formula.all_terms, cells, units, evaluator.reading)
    counted = values_of(formula, average, sums).n[:, :1] > 0
    rows, weight = (
        np.where(counted, np.bincount(units.of_cell, cells.measure(name), len(units))[:, None], 0.0)
        for name in ("n", "w")
    )
    _, change = derivatives(formula, average, sums, segments)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = segments.sum(weight)
        # totals grow with each row, and do not vary by that
        change = change - weight * segments.to_rows(segments.sum(change) / total)
        squares = segments.sum(np.where(weight > 0, change**2 / weight, 0.0))
        of_groups = total * squares / (segments.sum(rows) - 1)
    variance = np.full((len(index), change.shape[1]), np.nan)
    variance[index.of_cell[units.example][segments.starts]] = of_groups
    return variance


# Linearization


def _simple_variance_of_means(evaluator: Evaluator, requested: RequestedFormula, by: By | None) -> Floats:
    """The same of means of numbers, from the squared distances of these."""
    formula = requested.formula
    table = formula.table(requested.average)
    sums = sums_of(table, formula.all_terms, evaluator.cells, evaluator.group_cells.indices[by], evaluator.reading)
    statistics = statistics_of(table, sums)
    (mean,) = formula.statistics
    variation = statistics.weights[mean.replace("_mean", "_variation")]
    with np.errstate(divide="ignore", invalid="ignore"):
        return variation / statistics.weights["instances"] / (statistics.rows["instances"] - 1)


def _strata(tally: Tally, design: SurveyDesign, codes: KeyCodes) -> tuple[Integers, Floats, Floats, Floats]:
    """The stratum of each cell; and for each stratum the PSUs that were drawn, and the factors of their variance.

    PSUs without a row of some group count, too. The first factor is that of squared distances from zero: n / (n - 1),
    less the share of a finite population. The second is that of the square of their sum, which is 0 where distances
    are from the mean of all PSUs instead of that of the stratum.
    """
    index = codes.index(tally.names(design.strata))
    if design.clusters is not None:
        clusters = codes.index(tally.names([*design.strata, design.clusters]))
        drawn = np.bincount(index.of_cell[clusters.example], minlength=len(index)).astype(float)
    else:
        rows = tally.cells["n"].to_numpy().astype(float)
        thresholds = tally.names([key.column for key in tally.keys if key.role == "threshold"])
        if thresholds:
            # each row is counted at every threshold
            rows = np.where(codes.index(thresholds).of_cell == 0, rows, 0.0)
        drawn = np.bincount(index.of_cell, rows, len(index)).astype(float)
    share = _shares_of_populations(tally, design, index, drawn)
    lonely = drawn <= 1
    if design.lonely == "error" and lonely.any() and (share[lonely] < 1).any():
        raise ArgumentError(_lonely(design, index, lonely & (share < 1)))
    factor = np.where(lonely, float(design.lonely == "adjust"), drawn / (drawn - 1)) * (1 - share)
    return index.of_cell, drawn, factor, np.where(lonely, 0.0, factor / drawn)


def _shares_of_populations(tally: Tally, design: SurveyDesign, strata: GroupIndex, drawn: Floats) -> Floats:
    """The share of the PSUs of each stratum that is in the sample; 0 for infinite populations."""
    if design.fpc is None:
        return np.zeros(len(strata))
    (name,) = tally.names([design.fpc])
    given = tally.cells[name].to_numpy().astype(float)[strata.example]
    if (given <= 1).all():
        return given
    if (given < drawn).any():
        stratum = int(np.flatnonzero(given < drawn)[0])
        subject = f"the stratum {in_words(strata.keys.row(stratum))}" if design.strata else "the population"
        msg = (
            f"`{ROLE}`: {subject} has {given[stratum]:g} PSUs by {design.fpc.name!r}, but {drawn[stratum]:g} of them "
            "are in the sample. The finite population is a number of PSUs, or a share of 1 or less in all strata."
        )
        raise ColumnError(msg)
    return drawn / given


def _lonely(design: SurveyDesign, strata: GroupIndex, lonely: Array) -> str:
    """The message for strata with a single PSU."""
    if not design.strata:
        return f"`{ROLE}`: the sample is a single PSU, so the variation between PSUs is unknown."
    shown = [in_words(row) for row in strata.keys.filter(lonely).rows()]
    more = f", and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    column = ", ".join(repr(own.name) for own in design.strata)
    return (
        f"`{ROLE}`: a single PSU is in the stratum {', '.join(shown[:SHOWN])}{more} of {column}, so the variation "
        'between its PSUs is unknown. Combine strata, or write `surveys.design(…, lonely="adjust")` to use its '
        'distance from the mean of all PSUs, or `lonely="certainty"` if it was included with certainty.'
    )


def _linearized(
    evaluator: Evaluator, design: SurveyDesign, requested: RequestedFormula, by: By | None, scale: Scale
) -> Surveyed:
    """Errors from the sums of PSUs, to which values are nearly linear."""
    tally, formula, average = evaluator.tally, requested.formula, requested.average
    index, codes = evaluator.group_cells.indices[by], KeyCodes(tally.cells)
    stratum_of_cell, drawn, factor, factor_of_total = _strata(tally, design, codes)
    # units are PSUs; or rows, of which those with the same labels are alike
    names = tally.names(design.strata)
    if design.clusters is not None:
        names += tally.names([design.clusters])
    elif formula.variation == "counts":
        names += LABELS
    else:
        names += tally.names([key.column for key in tally.keys if key.column.name == ROW])
    units = codes.index(names, within=index)
    group, stratum = index.of_cell[units.example], stratum_of_cell[units.example]
    if formula.variation == "area":
        value, change, rows = _areas_by_unit(evaluator, requested, by, units, names)
        has_weight = rows > 0
    else:
        cells, reading = evaluator.cells, evaluator.reading
        sums = sums_of(formula.table(average), formula.all_terms, cells, units, reading)
        value, change = derivatives(formula, average, sums, Segments.of(group))
        own = values_of(formula, average, sums)
        rows, has_weight = own.n[:, 0], (own.n[:, 0] > 0) & (own.weight[:, 0] > 0)
    if design.clusters is None:
        psu = np.arange(len(units))
        weight, square = (np.bincount(units.of_cell, evaluator.cells.measure(name), len(units)) for name in ("w", "w2"))
        # from what alike rows add together to the root of the sum of what each of them adds, squared
        of_alike = np.where(weight > 0, np.sqrt(square) / weight, 0.0)
    else:
        psu = codes.index(tally.names([*design.strata, design.clusters])).of_cell[units.example]
        of_alike, rows = np.ones(len(units)), np.ones(len(units))
    # the distances of all PSUs of a stratum from their mean, those without a row of a group included, are the sum of
    # squares less that of the mean: the strata within groups are units with a negative sign
    both = group * len(drawn) + stratum
    distinct, of_both = np.unique(both, return_inverse=True)
    group_of_total, stratum_of_total = np.divmod(distinct, len(drawn))
    total = np.zeros((len(distinct), change.shape[1]))
    np.add.at(total, of_both, change)
    of_totals = total * np.sqrt(factor_of_total)[stratum_of_total][:, None]
    of_units = change * (of_alike * np.sqrt(factor[stratum]))[:, None]
    # the PSUs of a group less the strata that these are in
    counted = np.where(has_weight, rows, 0.0)
    own_strata = np.bincount(np.unique(both[counted > 0]) // len(drawn), minlength=len(value))
    freedom = (np.bincount(group, counted, len(value)) - own_strata).astype(float)
    return _by_influences(
        value, np.concatenate([of_units, of_totals]), np.concatenate([group, group_of_total]),
        np.concatenate([psu, stratum_of_total + 1 + int(psu.max())]),
        np.concatenate([np.ones(len(group)), np.full(len(total), -1.0)]), freedom, scale,
    )  # fmt: skip


def _by_influences(
    value: Floats, influence: Floats, group: Integers, unit: Integers, sign: Floats, freedom: Floats, scale: Scale,
) -> Surveyed:  # fmt: skip
    """The values of groups by labels, from the influences of units."""
    variance = np.zeros_like(value)
    np.add.at(variance, group, sign[:, None] * influence**2)
    error = known_errors(np.sqrt(variance.clip(0)), value, _ROUNDED)
    influences = Influences.of_units(influence / error[group], group, unit, len(value), sign)
    freedom = np.where(freedom >= 1, freedom, np.nan)[:, None]
    return Surveyed.about(value, error, freedom, scale, influences=influences)


def _areas_by_unit(
    evaluator: Evaluator, requested: RequestedFormula, by: By | None, units: GroupIndex, keys: Sequence[str]
) -> tuple[Floats, Floats, Integers]:
    """The areas of groups, what each unit adds to them, by labels, and the number of rows of each unit.

    An area is the weighted share of pairs of an event and a non-event that scores put in their order. Its derivative by
    the weight of a row is the share of the other class that the row beats less the area, over the weight of its class
    (DeLong et al., 1988; Yao et al., 2015). Units are told apart within groups by the columns `keys` of the cells.
    """
    tally = evaluator.tally
    labels, span = evaluator.labels, slice_of(evaluator.group_cells, by)
    rows = rows_of(tally, labels, evaluator.group_cells, by, requested.formula.reads)
    value = evaluator.values(requested).estimate[span]
    # the unit of each row, from the keys and the groups of all units
    group = pl.Series(_GROUP, evaluator.group_cells.indices[by].of_cell[units.example])
    keys_of_units = tally.cells[list(keys)][units.example].with_columns(group, pl.int_range(pl.len()).alias(_UNIT))
    keys_of_rows = rows.frame.select() if rows.clusters is None else rows.clusters.select(keys)
    keys_of_rows = keys_of_rows.with_columns(pl.Series(_GROUP, rows.group_cell, dtype=group.dtype))
    on = [*keys, _GROUP]
    joined = keys_of_rows.join(keys_of_units, on=on, how="left", nulls_equal=True, maintain_order="left")
    unit = joined[_UNIT].to_numpy()
    weight = np.ones(len(unit)) if rows.weight is None else rows.weight.astype(float)
    change = np.zeros((len(units), value.shape[1]))
    for number, level in enumerate(labels.levels[: value.shape[1]]):
        event, score = rows.event(level), rows.score(evaluator.reading.scores[level])
        for own_group in np.unique(rows.group_cell):
            own = np.flatnonzero((rows.group_cell == own_group) & (weight > 0))
            np.add.at(change[:, number], unit[own], _influence(event[own], score[own], weight[own]))
    return value, change, np.bincount(unit[weight > 0], minlength=len(units))


def _influence(event: Booleans, score: Floats, weight: Floats) -> Floats:
    """The contribution of each row of a group to its area, by its weight; 0 where there is only one class."""
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


# Without one PSU


def without_psus(tally: Tally, rows: pl.DataFrame, random: np.random.Generator) -> tuple[Units, DrawnUnits]:
    """Replicates of the rows of a tally with a design, each without a PSU, or a random part of those of a stratum."""
    design: Any = tally.design
    codes, names = KeyCodes(rows), tally.names(design.strata)
    stratum, psu = codes.index(names).of_cell, np.arange(len(rows))
    if design.clusters is not None:
        psu = codes.index([*names, *tally.names([design.clusters])]).of_cell
    part = random_parts(stratum, psu, random)
    _, first, unit = np.unique(np.stack([stratum, part]), axis=1, return_index=True, return_inverse=True)
    unit = unit.ravel()
    _, drawn, factor, _ = _strata(tally, design, KeyCodes(tally.cells))
    parts = np.bincount(stratum[first], minlength=len(drawn))
    # parts of many PSUs vary as these do
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(parts > 1, factor * (drawn - 1) / drawn * parts / (parts - 1), factor)
    weight = np.zeros((len(first), len(codes.index(tally.outer_names))))
    of_row = rows[WEIGHT].to_numpy() if WEIGHT in rows.columns else 1.0
    np.add.at(weight, (unit, codes.index(tally.outer_names).of_cell), of_row)
    of_sums = np.where(parts > 1, factor / np.maximum(parts, 1), 0.0)
    # the PSUs of each outer group
    outer, psus = np.nonzero(weight.T)
    share, of_psus = (weight / weight.sum(axis=0))[psus, outer], stratum[first][psus]
    strata = Segments.of(outer, of_psus)
    own, free = of_psus[strata.starts], strata.to_rows(strata.sizes - 1.0)
    units = Units(
        outer, outer * len(drawn) + of_psus, 1 + psus, share, share**2, share, free, (factor[own], of_sums[own])
    )
    numbers = numbers_of_replicates(1 + len(first), len(rows))
    return units, DrawnUnits(unit, ((np.arange(1, 1 + len(first)) != number).astype(np.int8) for number in numbers))


# Replicate weights


def _of_replicates(
    evaluator: Evaluator, design: ReplicateWeights, requested: RequestedFormula, by: By | None, scale: Scale
) -> Surveyed:
    """Errors from the values with the weights of each replicate."""
    groups, count = len(evaluator.group_cells.indices[by]), len(design.replicates)
    values = _values_of_rows if requested.formula.is_of_rows else _values_of_sums
    value, of_replicates = values(evaluator, requested, by, count)
    centre = value if design.centre == "estimate" else of_replicates.mean(axis=0)
    factors = np.sqrt(design.scale * np.array(design.rscales))[:, None, None]
    # a value that some replicate does not have has no variance
    influence = (factors * (of_replicates - centre)).transpose(1, 0, 2).reshape(groups * count, -1)
    group, replicate = np.repeat(np.arange(groups), count), np.tile(np.arange(count), groups)
    freedom = np.full(groups, design.degrees_of_freedom)
    sign = np.ones(len(group))
    return _by_influences(value, influence, group, replicate, sign, freedom, scale)


def _values_of_sums(
    evaluator: Evaluator, requested: RequestedFormula, by: By | None, count: int
) -> tuple[Floats, Floats]:
    """The values of groups of a formula of sums, and those with the weights of so many replicates, all at once."""
    formula, average = requested.formula, requested.average
    frame, index = evaluator.tally.cells, evaluator.group_cells.indices[by]
    columns: dict[str, Array] = {}
    for name in evaluator.cells.frame.columns:
        if of_replicate(name, 0) in frame.columns:
            own = [frame[name], *(frame[of_replicate(name, number)] for number in range(count))]
            columns[name] = np.stack([column.to_numpy() for column in own])
    repeated = RepeatedCells(evaluator.tally, evaluator.labels, evaluator.cells, columns)
    table, indices = formula.table(average), evaluator.group_cells.repeated(count + 1).indices
    sums = sums_of(table, formula.all_terms, repeated, indices[by], evaluator.reading)
    values = values_of(formula, average, sums).estimate.reshape(count + 1, len(index), -1)
    return values[0], values[1:]


def _values_of_rows(
    evaluator: Evaluator, requested: RequestedFormula, by: By | None, count: int
) -> tuple[Floats, Floats]:
    """The values of groups of a formula that reads their rows, and those with the weights of so many replicates."""
    tally, span = evaluator.tally, slice_of(evaluator.group_cells, by)
    tallies = [tally]
    for name in weight_columns(count) if tally.rows is not None else []:
        rows = tally.rows
        tallies.append(tally if rows is None else replace(tally, rows=rows.with_columns(rows[name].alias(WEIGHT))))
    alone = replace(evaluator, tables={requested: evaluator.tables[requested]}, with_variances=False)
    value, *others = (replace(alone, tally=own).values(requested).estimate[span] for own in tallies)
    return value, np.array(others)
