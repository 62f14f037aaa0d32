"""Evaluated values with how far they vary by chance: which kind of error they have, and the estimates of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from tidyfair.evaluation.evaluated import Evaluated
from tidyfair.evaluation.evaluator import RequestedFormula
from tidyfair.evaluation.statistics import GROUP_CELL, LEVEL
from tidyfair.intervals.calibration_errors import Gaps
from tidyfair.intervals.comparisons import Family
from tidyfair.intervals.estimates import (
    CalibrationErrors,
    Estimates,
    MadeOfShares,
    OfLabels,
    OfShare,
    Shares,
    Smooth,
    Surveyed,
)
from tidyfair.intervals.influence import Deviations
from tidyfair.intervals.jackknife import CELLS, by_jackknife, has_jackknife
from tidyfair.intervals.scales import Scale
from tidyfair.intervals.shares import Share, is_share_of_flags, rising_share_of, share_of, sum_of_shares_of
from tidyfair.intervals.small_samples import area_errors, area_sides
from tidyfair.intervals.survey import by_design, has_survey_error
from tidyfair.specs.aggregates import Aggregate
from tidyfair.specs.averages import MULTICLASS, Average
from tidyfair.specs.formulas import Formula, RowExpression
from tidyfair.specs.groups import By
from tidyfair.specs.options import Options
from tidyfair.specs.segments import NO_ROW, Array, Booleans, Floats, Integers, Segments
from tidyfair.specs.survey_designs import SurveyDesign
from tidyfair.tallies.tally import Tally

Kind: TypeAlias = Literal[
    "rate", "function_of_rate", "sum_of_rates", "area", "ranked", "calibration_error", "fit", "smooth"
]
"""The kinds of values whose errors have a closed form."""
Sampling: TypeAlias = Literal["rows", "strata", "replicate_weights"]


def sampling_of(tally: Tally) -> Sampling:
    """The way in which the rows of a tally came to be."""
    if tally.design is None:
        return "rows"
    return "strata" if isinstance(tally.design, SurveyDesign) else "replicate_weights"


def kind_of(tally: Tally, formula: Formula, average: Average) -> Kind | None:  # noqa: PLR0911 - a table of kinds
    """The kind of error that values of a formula have in closed form; None if by replicates only."""
    is_of_one, clustered = average.by_label, bool(tally.cluster_names)
    if tally.design is not None:
        return "smooth" if has_survey_error(formula, average, tally) else None
    known = has_jackknife(formula, average, tally)
    if not clustered and share_of(formula) is not None and (is_of_one or average is MULTICLASS):
        return "rate"
    if not clustered and tally.weights is None and is_share_of_flags(formula):
        return "rate"
    if formula.is_of_rows:
        return _kind_of_rows(tally, formula, average)
    if not known:
        return None
    if clustered or tally.weights is not None:
        return "smooth"
    if is_of_one and rising_share_of(formula) is not None:
        return "function_of_rate"
    return "sum_of_rates" if is_of_one and sum_of_shares_of(formula) is not None else "smooth"


def _kind_of_rows(tally: Tally, formula: Formula, average: Average) -> Kind | None:
    """The same of a formula that reads rows."""
    known, clustered = has_jackknife(formula, average, tally), bool(tally.cluster_names)
    if formula.variation == "area":
        return "area" if average.by_label and (known or not clustered) else None
    if formula.variation == "calibration_error":
        return "calibration_error"
    if not known:
        return None
    if formula.variation == "ranked":
        return "ranked"
    # the fits of calibration lines say themselves how far they vary
    return "fit" if formula.has_labels and not clustered and tally.weights is None else "smooth"


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The values of an evaluation with how far they vary; errors are worked out where they are asked for."""

    evaluated: Evaluated
    options: Options
    _deviations: dict[tuple[Formula, Average, By | None], Deviations] = field(
        default_factory=dict[tuple["Formula", "Average", "By | None"], "Deviations"], repr=False
    )
    _gaps: dict[tuple[object, ...], Gaps] = field(default_factory=dict[tuple[object, ...], "Gaps"], repr=False)

    @property
    def tally(self) -> Tally:
        """The counts that values are evaluated from."""
        return self.evaluated.evaluator.tally

    @property
    def outers(self) -> int:
        """The number of outer groups."""
        return len(self.evaluated.group_cells.outer_keys)

    @cached_property
    def requested(self) -> list[RequestedFormula]:
        """The formulas of all specs, in the order of the values."""
        return list(self.evaluated.evaluator.tables)

    def of_spec(self, number: int) -> list[int]:
        """The numbers of the formulas of a spec."""
        return [index for index, requested in enumerate(self.requested) if requested.spec == number]

    def column(self, name: str) -> Array:
        """A column of all values."""
        return self.evaluated.values.array(name)

    def rows(self, requested: int) -> Integers:
        """The rows of a formula that have a value, in the order of labels and outer groups."""
        return np.flatnonzero((self.column("requested") == requested) & ~np.isnan(self.column("estimate")))

    @property
    def interval(self) -> str:
        """The intervals that are asked for."""
        return self.options.interval or "auto"

    @cached_property
    def kinds(self) -> list[Kind | None]:
        """The kind of error of the values of each formula; None where it is that of replicates."""
        if self.interval in {"bootstrap", "bayes"}:
            return [None] * len(self.requested)
        kinds: list[Kind | None] = [
            kind_of(self.tally, requested.formula, requested.average) for requested in self.requested
        ]
        return ["rate" if kind == "rate" else None for kind in kinds] if self.interval == "exact" else kinds

    def estimates(self, number: int, rows: Integers, method: str = "") -> Estimates:
        """The estimates of some rows of a formula that has a kind of error, or by the jackknife if asked for."""
        requested, kind = self.requested[number], self.kinds[number]
        value = self.column("estimate")[rows]
        if method == "jackknife":
            return self._smooth(requested, "smooth", value, rows)
        if kind == "rate":
            return self._shares(value, rows)
        if kind == "area":
            return self._areas(requested, value, rows)
        if kind == "calibration_error":
            return self._calibration_errors(requested, value, rows)
        return self._smooth(requested, kind, value, rows)

    def _shares(self, value: Floats, rows: Integers) -> Shares:
        """Shares of rows, or of as many as weights leave of them."""
        denominator = self.column("denominator")[rows].astype(float)
        if "effective" not in self.evaluated.values:
            return Shares(value, denominator)
        effective, even = (self.column(name)[rows].astype(float) for name in ("effective", "even"))
        return Shares(value, effective, (denominator, even))

    def _areas(self, requested: RequestedFormula, value: Floats, rows: Integers) -> Smooth:
        """Areas, with as many rows of each class as clusters leave of them."""
        variance, events, others = (self.column(name)[rows] for name in ("variance", "events", "others"))
        error = area_errors(value, variance, events, others)
        freedom, influences = np.full(len(rows), np.inf), None
        if self.tally.cluster_names:
            deviations = self._deviations_of(requested, rows)
            error, freedom, influences = deviations.error, deviations.freedom, deviations.influences
            with np.errstate(divide="ignore", invalid="ignore"):
                # a share of the rows has the same variance without clusters; of areas of 0 and 1 one row of each
                of_clusters = (freedom + 1) / np.minimum(events, others)
                share = np.where(variance > 0, variance / error**2, of_clusters).clip(0, 1)
            events, others = events * share, others * share
        scale = self.scale(requested)
        low, low_error, high, high_error = area_sides(value, error, events, others)
        with np.errstate(invalid="ignore"):
            below, above = (low, low_error * scale.slope(low)), (high, high_error * scale.slope(high))
        return Smooth(value, error, freedom, scale, below, above, influences=influences, kind="area")

    def _calibration_errors(self, requested: RequestedFormula, value: Floats, rows: Integers) -> CalibrationErrors:
        """Errors of calibration, from the gaps of their bins; those with the same bins have the same."""
        formula, by = cast("RowExpression", requested.formula), self.evaluated.specs[requested.spec].by
        key = (formula.bins_of, formula.options, requested.average, by)
        if key not in self._gaps:
            self._gaps[key] = Gaps.of(self.evaluated.evaluator, formula, requested.average, by)
        gaps = self._gaps[key]
        at = self._positions(requested, rows, gaps.total_error.shape[1])
        return CalibrationErrors(value, *gaps.at(at))

    def _smooth(self, requested: RequestedFormula, kind: Kind | None, value: Floats, rows: Integers) -> Smooth:
        """Values of a function of sums; those that are made of shares have the limits of these."""
        formula, deviations = requested.formula, self._deviations_of(requested, rows)
        counts = deviations.cells
        fields: dict[str, Any] = {
            "value": value, "error": deviations.error, "freedom": deviations.freedom, "scale": self.scale(requested),
            "below": deviations.below, "above": deviations.above, "skew": deviations.skew,
            "influences": deviations.influences,
        }  # fmt: skip
        if self.tally.design is not None:
            return Surveyed(**fields, sampling=sampling_of(self.tally))
        share, made_of = rising_share_of(formula), sum_of_shares_of(formula)
        if kind == "function_of_rate" and share is not None:
            return OfShare(**fields, formula=formula, share=share, shares=_shares_of_counts(share, counts))
        if kind == "sum_of_rates" and made_of is not None:
            factors = tuple(factor for factor, _ in made_of.shares)
            shares = tuple(_shares_of_counts(share, counts) for _, share in made_of.shares)
            return MadeOfShares(**fields, factors=factors, shares=shares)
        if counts and requested.average.by_label:
            tp, fn, fp, tn = (counts[name] for name in CELLS)
            return OfLabels(**fields, formula=formula, counts=(tp, fn, fp, tn))
        return Smooth(**fields, kind=kind or "smooth")

    def scale(self, requested: RequestedFormula) -> Scale:
        """The scale on which the values of a formula are nearly normal."""
        return Scale.of(requested.formula, self.evaluated.specs[requested.spec].range_of(requested.name))

    @np.errstate(divide="ignore", invalid="ignore")
    def _deviations_of(self, requested: RequestedFormula, rows: Integers) -> Deviations:
        """The standard errors of some values of a formula; those of all groups of its feature are computed once."""
        by = self.evaluated.specs[requested.spec].by
        key = (requested.formula, requested.average, by)
        if key not in self._deviations:
            deviations_of = by_jackknife if self.tally.design is None else by_design
            self._deviations[key] = deviations_of(self.evaluated.evaluator, requested, by, self.scale(requested))
        deviations = self._deviations[key]
        return deviations.at(self._positions(requested, rows, deviations.error.shape[1]))

    def _positions(self, requested: RequestedFormula, rows: Integers, labels: int) -> Integers:
        """The positions of some rows in arrays of groups by labels."""
        first, _ = self.evaluated.group_cells.spans[self.evaluated.specs[requested.spec].by]
        group = self.column(GROUP_CELL)[rows].astype(np.int64) - first
        return group * labels + self.evaluated.label_index(self.column(LEVEL)[rows], labels, requested.average)

    # Comparisons

    def families(
        self, number: int, aggregate: Aggregate | None, estimates: Mapping[int, Any], kept: Booleans | None = None
    ) -> tuple[list[Family], list[Floats]]:
        """The families of a spec that are compared, one for each metric and label, and the weights of their groups.

        `estimates` gives those of formulas whose errors are those of replicates; `kept` is a mask of rows that count.
        """
        needed = aggregate.groups_needed if aggregate else 1
        members: list[tuple[int, Integers]] = []
        for requested in self.of_spec(number):
            rows = self.rows(requested)
            rows = rows if kept is None else rows[kept[rows]]
            level = self.column(LEVEL)[rows]
            members += [(requested, rows[level == one]) for one in np.unique(level)]
        references = [self._references(rows, aggregate) for _, rows in members]
        has_reference = np.zeros(self.outers, dtype=bool)
        for (_, rows), is_reference in zip(members, references, strict=True):
            has_reference[self.column("outer")[rows[is_reference]]] = True
        families: list[Family] = []
        weights: list[Floats] = []
        for (requested, rows), is_reference in zip(members, references, strict=True):
            outer = self.column("outer")[rows].astype(np.int64)
            own = np.bincount(outer[is_reference], minlength=self.outers) > 0
            # metrics and labels that cannot be compared are left out of the value, too
            takes_part = (np.bincount(outer, minlength=self.outers) >= needed) & (own | ~has_reference)
            chosen = takes_part[outer]
            if chosen.any():
                of_rows = estimates.get(requested, partial(self.estimates, requested))
                values = of_rows(rows[chosen])
                families.append(Family(values, outer[chosen], is_reference[chosen]))
                weights.append(self.weights(rows[chosen]))
        return families, weights

    def _references(self, rows: Integers, aggregate: Aggregate | None) -> Booleans:
        """Mask of the values that others are compared with: the first one of each outer group."""
        mask = np.zeros(len(rows), dtype=bool)
        if aggregate is None or not len(rows):
            return mask
        segments = Segments.of(self.column("outer")[rows])
        if aggregate.compares_with_majority:
            size = self.column("size")[rows]
            first = segments.first_where(size == segments.to_rows(segments.maximum(size)))
        else:
            first = segments.first_where(self.column("is_reference")[rows].astype(bool))
        mask[first[first != NO_ROW]] = True
        return mask

    def weights(self, rows: Integers) -> Floats:
        """The weights of values in the mean of several groups; with case weights, those of all rows."""
        return self.column("denominator" if self.tally.weights is None else "weight")[rows].astype(float)


def _shares_of_counts(share: Share, counts: Mapping[str, Floats]) -> Shares:
    """A share from the counts of labels."""
    hits = np.sum([counts[cell] for cell in sorted(share.holds)], axis=0)
    rows = np.sum([counts[cell] for cell in sorted(share.among)], axis=0)
    return Shares.of_counts(hits, rows)
