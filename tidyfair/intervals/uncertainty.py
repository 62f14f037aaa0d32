"""Evaluated values with how far they vary by chance: which kind of error they have, and the estimates of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from tidyfair.evaluation import GROUP_CELL, LEVEL, Evaluated, JudgedEvaluator, RequestedFormula
from tidyfair.intervals.calibration_errors import CalibrationErrors
from tidyfair.intervals.comparisons import Family
from tidyfair.intervals.estimates import Estimates, MadeOfShares, Scale, Shares, Smooth
from tidyfair.intervals.jackknife import by_jackknife, has_jackknife
from tidyfair.intervals.judged import beside_context, by_judge, rates_by_judge
from tidyfair.intervals.shares import (
    Share,
    SumOfShares,
    is_share_of_flags,
    rising_share_of,
    share_of,
    sum_of_shares_of,
)
from tidyfair.intervals.small_samples import area_errors, area_sides
from tidyfair.intervals.survey import by_design, has_survey_error
from tidyfair.specs import (
    MULTICLASS,
    NO_ROW,
    Aggregate,
    Array,
    Average,
    Booleans,
    Context,
    Floats,
    Integers,
    Options,
    Segments,
    SurveyDesign,
)
from tidyfair.specs.formulas import Formula, RowExpression
from tidyfair.tallies import Tally

Kind: TypeAlias = Literal[
    "rate", "function_of_rate", "sum_of_rates", "area", "ranked", "calibration_error", "fit", "smooth"
]
"""The kinds of values whose errors have a closed form."""
Sampling: TypeAlias = Literal["rows", "strata", "replicate_weights", "judged"]


def kind_of(tally: Tally, formula: Formula, average: Average) -> Kind | None:  # noqa: C901, PLR0911 - a table of kinds
    """The kind of error that values of a formula have in closed form; None if by replicates only."""
    if tally.design is not None:
        return "smooth" if has_survey_error(formula, average, tally) else None
    if tally.cut is not None and tally.cut.point is not None and "estimate" in formula.reads:
        # the threshold varies with the rows, too
        return None
    is_of_one, clustered = average.by_label, bool(tally.cluster_names)
    is_plain = not clustered and tally.weights is None
    if is_judged(tally, formula) and tally.judge is not None:
        is_plain = is_plain and tally.judge.probability is None
    if not clustered and share_of(formula) is not None and (is_of_one or average is MULTICLASS):
        return "rate"
    if is_plain and is_share_of_flags(formula):
        return "rate"
    known = has_jackknife(formula, average, tally)
    if formula.variation == "area":
        return "area" if is_of_one and (known or not clustered) else None
    if formula.variation == "calibration_error":
        return "calibration_error"
    if not known:
        return None
    if formula.variation == "ranked":
        return "ranked"
    if is_plain and formula.is_of_rows and formula.has_labels:
        # the fits of calibration lines say themselves how far they vary
        return "fit"
    if not (is_plain and is_of_one) or formula.is_of_rows:
        return "smooth"
    if rising_share_of(formula) is not None:
        return "function_of_rate"
    return "sum_of_rates" if sum_of_shares_of(formula) is not None else "smooth"


def is_judged(tally: Tally, formula: Formula) -> bool:
    """Check whether values of a formula are from labels of people and of a judge."""
    return tally.judge is not None and "truth" in formula.reads


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """The values of an evaluation with how far they vary; errors are worked out where they are asked for."""

    evaluated: Evaluated
    options: Options
    _estimates: dict[tuple[object, ...], Smooth | Shares | CalibrationErrors] = field(
        default_factory=dict[tuple[object, ...], "Smooth | Shares | CalibrationErrors"], repr=False
    )
    """Those of all groups of a feature, by formula: they are computed once."""
    resampled: dict[int, Smooth] = field(default_factory=dict[int, Smooth], repr=False)
    """Estimates of all values with errors from replicates, by the number of the formulas that have these."""

    @cached_property
    def tally(self) -> Tally:
        """The counts that values are evaluated from."""
        return self.evaluated.evaluator.tally

    def sampling(self, formula: Formula) -> Sampling:
        """The way in which the rows, and the labels, that a formula reads came to be."""
        if is_judged(self.tally, formula):
            return "judged"
        if self.tally.design is None:
            return "rows"
        return "strata" if isinstance(self.tally.design, SurveyDesign) else "replicate_weights"

    @cached_property
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

    @cached_property
    def column(self) -> Callable[[str], Array]:
        """The columns of all values, by name."""
        return self.evaluated.values.array

    def rows(self, requested: int) -> Integers:
        """The rows of a formula that have a value, in the order of labels and outer groups."""
        return np.flatnonzero((self.column("requested") == requested) & ~np.isnan(self.column("estimate")))

    @property
    def shares_rows(self) -> bool:
        """True if some rows are in several of the groups that are compared."""
        return self.evaluated.evaluator.shares_rows

    @cached_property
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
        if self.shares_rows:
            # how far values of groups that share rows go together is known of what has influences
            kinds = [None if kind in {"calibration_error", "fit"} else kind for kind in kinds]
        return ["rate" if kind == "rate" else None for kind in kinds] if self.interval == "exact" else kinds

    def estimates(self, number: int, rows: Integers, method: str = "") -> Estimates:
        """The estimates of some rows of a formula that has a kind of error, or by the jackknife if asked for."""
        values: Any = self._estimates_of_groups(number, rows, method)
        if not self.shares_rows or values.kind == "resampled" or self.tally.design is not None:
            return values
        requested = self.requested[number]
        if values.influences is None and has_jackknife(requested.formula, requested.average, self.tally):
            values = replace(values, influences=self._of_groups(requested, rows).influences)
        return replace(values, sampling="shared")

    def _estimates_of_groups(self, number: int, rows: Integers, method: str) -> Estimates:
        """The estimates of some rows of a formula, as those of groups that share no rows."""
        requested, kind = self.requested[number], self.kinds[number]
        if number in self.resampled:
            return self.resampled[number].at(rows)
        if method == "jackknife":
            kind = "smooth"
        is_of_judge = is_judged(self.tally, requested.formula)
        if kind == "rate" and not is_of_judge:
            return self._shares(rows)
        if kind == "area":
            return self._areas(requested, rows)
        values = self._of_groups(requested, rows)
        made_of = self._made_of(requested)
        if is_of_judge or made_of is None or not isinstance(values, Smooth):
            return values
        return MadeOfShares.of(values, made_of)

    def _made_of(self, requested: RequestedFormula) -> Share | SumOfShares | None:
        """The share, or the sum of shares, that values of a formula are made of, where their limits are, too."""
        kind = kind_of(self.tally, requested.formula, requested.average)
        if kind == "function_of_rate":
            return rising_share_of(requested.formula)
        return sum_of_shares_of(requested.formula) if kind == "sum_of_rates" else None

    def _shares(self, rows: Integers) -> Shares:
        """Shares of rows, or of as many as weights leave of them."""
        value, denominator = self.column("estimate")[rows], self.column("denominator")[rows].astype(float)
        if "effective" not in self.evaluated.values:
            return Shares(value, denominator)
        effective, even = (self.column(name)[rows].astype(float) for name in ("effective", "even"))
        return Shares(value, effective, (denominator, even))

    def _areas(self, requested: RequestedFormula, rows: Integers) -> Smooth:
        """Areas, with as many rows of each class as clusters leave of them."""
        value, variance, events, others = (
            self.column(name)[rows] for name in ("estimate", "variance", "events", "others")
        )
        error = area_errors(value, variance, events, others)
        freedom, influences = np.full(len(rows), np.inf), None
        if self.tally.cluster_names:
            clustered = cast("Smooth", self._of_groups(requested, rows))
            error, freedom, influences = clustered.error, clustered.freedom, clustered.influences
            with np.errstate(divide="ignore", invalid="ignore"):
                # a share of the rows has the same variance without clusters; of areas of 0 and 1 one row of each
                of_clusters = (freedom + 1) / np.minimum(events, others)
                share: Floats = np.where(variance > 0, variance / error**2, of_clusters).clip(0, 1)
            events, others = events * share, others * share
        scale = self.scale(requested)
        with np.errstate(invalid="ignore"):
            below, above = (
                (centre, spread * scale.slope(centre)) for centre, spread in area_sides(value, error, events, others)
            )
        return Smooth(value, error, freedom, scale, below, above, influences=influences, kind="area")

    @np.errstate(divide="ignore", invalid="ignore")
    def _of_groups(self, requested: RequestedFormula, rows: Integers) -> Smooth | Shares | CalibrationErrors:
        """Some values of a formula; those of all groups of its feature are computed once."""
        formula, by = requested.formula, self.evaluated.specs[requested.spec].by
        evaluator, average = self.evaluated.evaluator, requested.average
        # errors of calibration with the same bins have the same errors
        binned = formula if isinstance(formula, RowExpression) and formula.bins_of is not None else None
        key = (formula if binned is None else (binned.bins_of, binned.options), average, by)
        if key not in self._estimates:
            if isinstance(evaluator, JudgedEvaluator) and is_judged(self.tally, formula):
                if kind_of(self.tally, formula, average) == "rate":
                    self._estimates[key] = rates_by_judge(evaluator, requested, by)
                else:
                    made_of = self._made_of(requested)
                    self._estimates[key] = by_judge(evaluator, requested, by, self.scale(requested), made_of)
            elif self.tally.design is not None:
                values = by_design(evaluator, requested, by, self.scale(requested))
                self._estimates[key] = replace(values, sampling=self.sampling(formula))
            elif binned is not None:
                self._estimates[key] = CalibrationErrors.of(evaluator, binned, average, by)
            else:
                self._estimates[key] = by_jackknife(evaluator, requested, by, self.scale(requested))
        values = self._estimates[key]
        index = self._index_of_groups(requested, rows, len(values))
        return replace(values.at(index), value=self.column("estimate")[rows])

    def _index_of_groups(self, requested: RequestedFormula, rows: Integers, count: int) -> Integers:
        """The indices of rows among the values, of which there are so many, of all groups of a feature by labels."""
        first, groups = self.evaluated.group_cells.spans[self.evaluated.specs[requested.spec].by]
        labels = count // max(1, groups)
        group = self.column(GROUP_CELL)[rows].astype(np.int64) - first
        return group * labels + self.evaluated.label_index(self.column(LEVEL)[rows], labels, requested.average)

    def beside_context(self, number: int, rows: Integers, context: Context) -> Estimates | None:
        """The estimates of some rows of a formula, then those of what each is compared with; None without a judge."""
        requested, evaluator = self.requested[number], self.evaluated.evaluator
        by = self.evaluated.specs[requested.spec].by
        if by is None or not isinstance(evaluator, JudgedEvaluator) or not is_judged(self.tally, requested.formula):
            return None
        is_rate = self.kinds[number] == "rate"
        values = beside_context(evaluator, requested, by, context, self.scale(requested), is_rate=is_rate)
        index = self._index_of_groups(requested, rows, len(values) // 2)
        value = np.append(self.column("estimate")[rows], self.column(context)[rows])
        return replace(values.at(np.append(index, index + len(values) // 2)), value=value)

    def scale(self, requested: RequestedFormula) -> Scale:
        """The scale on which the values of a formula are nearly normal."""
        return Scale.of(requested.formula, self.evaluated.specs[requested.spec].range_of(requested.name))

    # Comparisons

    def families(self, number: int, aggregate: Aggregate | None, kept: Booleans | None = None) -> list[Family]:
        """The families of a spec, one for each metric and label; `kept` is a mask of the values that count."""
        needed, all_outers = aggregate.groups_needed if aggregate else 1, self.column("outer").astype(np.int64)
        members: list[tuple[int, Integers, Booleans]] = []
        has_reference = np.zeros(self.outers, dtype=bool)
        for requested in self.of_spec(number):
            rows = self.rows(requested)
            rows = rows if kept is None else rows[kept[rows]]
            level = self.column(LEVEL)[rows]
            for one in np.unique(level):
                own = rows[level == one]
                is_reference = self._references(own, aggregate)
                members.append((requested, own, is_reference))
                has_reference[all_outers[own[is_reference]]] = True
        families: list[Family] = []
        for requested, rows, is_reference in members:
            outer = all_outers[rows]
            referable = ~has_reference | (np.bincount(outer[is_reference], minlength=self.outers) > 0)
            # metrics and labels that cannot be compared are left out of the value, too
            takes_part = (np.bincount(outer, minlength=self.outers) >= needed) & referable
            chosen = takes_part[outer]
            if chosen.any():
                own = rows[chosen]
                values, weight = self.estimates(requested, own), self.weights(own)
                contexts = aggregate.contexts if aggregate else ()
                beside = self.beside_context(requested, own, contexts[0]) if contexts else None
                family = Family(values, outer[chosen], is_reference[chosen], self.outers, weight, beside=beside)
                families.append(family)
        return families

    def _references(self, rows: Integers, aggregate: Aggregate | None) -> Booleans:
        """Mask of the values that others are compared with: the first one of each outer group."""
        mask = np.zeros(len(rows), dtype=bool)
        if aggregate is None:
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
