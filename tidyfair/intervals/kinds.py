"""The kinds of values that have limits of their own, and their quantities from the rows of values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tidyfair.evaluation.states import NO_LEVEL
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL, ONE_LABEL
from tidyfair.intervals.jackknife import CELLS
from tidyfair.intervals.quantities import (
    Areas,
    Estimated,
    Linearized,
    MadeOfShares,
    OfShare,
    Replicated,
    Shares,
    Smooth,
    Weighted,
)
from tidyfair.intervals.scales import Scale
from tidyfair.intervals.shares import rising_share_of, sum_of_shares_of
from tidyfair.specs.survey_designs import SurveyDesign
from tidyfair.tallies.tally import BLOCK

if TYPE_CHECKING:
    import polars as pl

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.intervals.jackknife import Correlations
    from tidyfair.intervals.quantities import Quantities
    from tidyfair.intervals.shares import Share
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.metric_specs import MetricSpec
    from tidyfair.specs.segments import Floats
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

Kind: TypeAlias = Literal["share", "area", "smooth", "estimated"]


def quantities_of(
    kind: Kind, spec: MetricSpec, formula: Formula, rows: pl.DataFrame, evaluated: Evaluated
) -> Quantities:
    """The quantities of the rows of one metric: their values, and the columns that hold how far these vary."""

    def column(name: str) -> Floats:
        return rows[name].to_numpy().astype(float)

    value = column("estimate")
    if kind == "share":
        if "effective" not in rows.columns:
            return Shares(value, column("denominator"))
        return Shares(value, column("effective"), Weighted(column("denominator"), column("even")))
    if kind == "area":
        return _areas(spec, formula, rows, evaluated)
    if kind == "estimated":
        return Estimated(value, column("deviation"), column("below"), column("above"))
    return _smooth(spec, formula, rows, evaluated)


def _areas(spec: MetricSpec, formula: Formula, rows: pl.DataFrame, evaluated: Evaluated) -> Areas:
    """Areas, with as many rows of each class as clusters leave of them."""
    import numpy as np

    def column(name: str) -> Floats:
        return rows[name].to_numpy().astype(float)

    value, variance, events, others = map(column, ("estimate", "variance", "events", "others"))
    if not _is_clustered(evaluated.evaluator.tally):
        return Areas(value, variance**0.5, events, others)
    error, freedom = column("jackknife_error"), column("freedom")
    with np.errstate(divide="ignore", invalid="ignore"):
        # a share of the rows has the same variance without clusters; of areas of 0 and 1 one row of each cluster
        share = np.where(variance > 0, variance / error**2, (freedom + 1) / np.minimum(events, others)).clip(0, 1)
    correlations = _correlations(spec, formula, rows, evaluated)
    return Areas(value, error, events * share, others * share, freedom, correlations)


def _smooth(spec: MetricSpec, formula: Formula, rows: pl.DataFrame, evaluated: Evaluated) -> Smooth:
    """Values of a function of sums; those that are made of shares have the limits of these."""

    def column(name: str) -> Floats:
        return rows[name].to_numpy().astype(float)

    name = rows["name"][0] if len(rows) else spec.formulas[0][0]
    fields: dict[str, Any] = {
        "value": column("estimate"),
        "centre": column("centre"),
        "error": column("jackknife_error"),
        "spread": column("spread"),
        "freedom": column("freedom"),
        "scale": Scale.of(formula, spec.range_of(name)),
    }
    design = evaluated.evaluator.tally.design
    if design is not None:
        correlations = _correlations(spec, formula, rows, evaluated)
        of_design = Linearized if isinstance(design, SurveyDesign) else Replicated
        return of_design(**fields, correlations=correlations, method=design.interval_method)
    counts = {cell: column(cell) for cell in CELLS}
    has_counts = not any(map(math.isnan, counts["tp"].tolist()))
    if len(rows) and has_counts and rows["estimator"][0] in ONE_LABEL:
        share = rising_share_of(formula)
        if share is not None:
            return OfShare(**fields, formula=formula, share=share, shares=_shares(share, counts))
        made_of = sum_of_shares_of(formula)
        if made_of is not None:
            factors = tuple(factor for factor, _ in made_of.shares)
            shares = tuple(_shares(share, counts) for _, share in made_of.shares)
            return MadeOfShares(**fields, factors=factors, shares=shares)
    tally = evaluated.evaluator.tally
    # the fits of calibration lines say themselves how far they vary
    of_model = (
        formula.influence is not None and formula.of_labels and tally.weights is None and not _is_clustered(tally)
    )
    method = "information" if of_model else "jackknife"
    return Smooth(**fields, correlations=_correlations(spec, formula, rows, evaluated), method=method)


def _is_clustered(tally: Tally) -> bool:
    """Check whether rows have clusters of the user's own."""
    return any(key.column.name != BLOCK for key in tally.clusters)


def _correlations(spec: MetricSpec, formula: Formula, rows: pl.DataFrame, evaluated: Evaluated) -> Correlations | None:
    """The correlations of the values of groups, which share clusters; None where they are independent."""
    import numpy as np

    if rows.is_empty():
        return None
    shared = evaluated.influences.get((formula, rows["estimator"][0], spec.by))
    if shared is None:
        return None
    first, _ = evaluated.group_cells.spans[spec.by]
    levels = {level: index for index, level in enumerate(evaluated.labels.levels)} | {NO_LEVEL: 0}
    label = np.array([levels[level] for level in rows[LEVEL]])
    return shared.of(rows[GROUP_CELL].to_numpy() - first, label)


def _shares(share: Share, counts: dict[str, Floats]) -> Shares:
    """A share from the counts of labels."""
    import numpy as np

    hits = np.sum([counts[cell] for cell in sorted(share.holds)], axis=0)
    rows = np.sum([counts[cell] for cell in sorted(share.among)], axis=0)
    return Shares.of_counts(hits, rows)
