"""Evaluated values with how far they vary by chance: which kind of error they have, and the estimates of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from tidyfair.errors import ArgumentError
from tidyfair.evaluation import (
    FEWEST_LABELS,
    GROUP_CELL,
    LEVEL,
    Evaluated,
    JudgedEvaluator,
    JudgedValues,
    RequestedFormula,
)
from tidyfair.intervals.calibration_errors import CalibrationErrors
from tidyfair.intervals.comparisons import Family, with_rests
from tidyfair.intervals.estimates import Estimates, Influences, MadeOfShares, Scale, Shares, Smooth
from tidyfair.intervals.jackknife import by_jackknife, has_jackknife
from tidyfair.intervals.shares import Share, SumOfShares, is_share_of_flags, rising_share_of, share_of, sum_of_shares_of
from tidyfair.intervals.small_samples import area_errors, area_sides
from tidyfair.intervals.survey import by_design, has_survey_error
from tidyfair.specs import (
    MULTICLASS,
    NO_ROW,
    Aggregate,
    Average,
    Booleans,
    By,
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


def kind_of(tally: Tally, formula: Formula, average: Average) -> Kind | None:
    """The kind of error that values of a formula have in closed form; None if by replicates only."""
    is_of_one, is_clustered, is_surveyed = average.by_label, bool(tally.cluster_names), tally.design is not None
    judge = tally.judge if is_judged(tally, formula) else None
    is_weighted = tally.weights is not None or (judge is not None and judge.probability is not None)
    is_plain = not is_clustered and not is_weighted
    # a threshold that is chosen from the rows varies with them, too
    is_chosen = tally.cut is not None and tally.cut.point is not None and "estimate" in formula.reads
    may_be_rate = not is_clustered and (is_of_one or average is MULTICLASS)
    is_known = partial(has_survey_error if is_surveyed else has_jackknife, formula, average, tally)
    of, is_of_rows = formula.variation, formula.is_of_rows
    # the first that applies counts; what tries formulas on tables is asked last
    kinds: tuple[tuple[Kind | None, Callable[[], bool]], ...] = (
        ("smooth", lambda: is_surveyed and is_known()),
        (None, lambda: is_surveyed or is_chosen),
        ("rate", lambda: may_be_rate and share_of(formula) is not None),
        ("rate", lambda: is_plain and is_share_of_flags(formula)),
        ("area", lambda: of == "area" and is_of_one and (not is_clustered or is_known())),
        (None, lambda: of == "area"),
        ("calibration_error", lambda: of == "calibration_error"),
        (None, lambda: not is_known()),
        ("ranked", lambda: of == "ranked"),
        # the fits of calibration lines say themselves how far they vary
        ("fit", lambda: is_plain and is_of_rows and formula.has_labels),
        ("smooth", lambda: is_of_rows or not (is_plain and is_of_one)),
        ("function_of_rate", lambda: rising_share_of(formula) is not None),
        ("sum_of_rates", lambda: sum_of_shares_of(formula) is not None),
        ("smooth", lambda: True),
    )
    return next(kind for kind, applies in kinds if applies())


def is_judged(tally: Tally, formula: Formula) -> bool:
    """Check whether values of a formula are from labels of people and of a judge."""
    return tally.judge is not None and "truth" in formula.reads


class Uncertainty:
    """The values of an evaluation with how far they vary; errors are worked out where they are asked for."""

    def __init__(self, evaluated: Evaluated, options: Options) -> None:
        self.evaluated, self.options, self.interval = evaluated, options, options.interval or "auto"
        tally = self.tally = evaluated.evaluator.tally
        for option, given in (("design", tally.design), ("judged", tally.judge)):
            if given is not None and self.interval not in {"auto", "analytic"}:
                msg = f'`interval={self.interval!r}` does not support `{option}`; use `interval="auto"`.'
                raise ArgumentError(msg)
        self.shares_rows, self.outers = evaluated.evaluator.shares_rows, len(evaluated.group_cells.outer_keys)
        self.column = evaluated.values.__getitem__
        self.requested = list(evaluated.evaluator.tables)
        """The formulas of all specs, in the order of the values."""
        self.resampled: dict[int, Smooth] = {}
        """Estimates of all values with errors from replicates, by the number of the formulas that have these."""
        self._estimates: dict[tuple[object, ...], Smooth | Shares | CalibrationErrors] = {}
        """Those of all groups of a feature, by formula: they are computed once."""

    def is_judged(self, number: int) -> bool:
        """Check whether values of a formula are from labels of people and of a judge."""
        return is_judged(self.tally, self.requested[number].formula)

    def sampling(self, formula: Formula) -> Sampling:
        """The way in which the rows, and the labels, that a formula reads came to be."""
        if is_judged(self.tally, formula):
            return "judged"
        if self.tally.design is None:
            return "rows"
        return "strata" if isinstance(self.tally.design, SurveyDesign) else "replicate_weights"

    def of_spec(self, number: int) -> list[int]:
        """The numbers of the formulas of a spec."""
        return [index for index, requested in enumerate(self.requested) if requested.spec == number]

    def rows(self, requested: int) -> Integers:
        """The rows of a formula that have a value, in the order of labels and outer groups."""
        return np.flatnonzero((self.column("requested") == requested) & ~np.isnan(self.column("estimate")))

    @cached_property
    def rests(self) -> Uncertainty:
        """The uncertainty of the values of all people outside of each group, where groups overlap."""
        return Uncertainty(self.evaluated.rests(self.options), self.options)

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
        if number in self.resampled:
            return self.resampled[number].at(rows)
        requested, kind = self.requested[number], "smooth" if method == "jackknife" else self.kinds[number]
        if kind == "rate" and not is_judged(self.tally, requested.formula):
            values: Any = self._shares(rows)
        elif kind == "area":
            values = self._areas(requested, rows)
        else:
            values = self._group_estimates(requested, rows, kind)
        if not self.shares_rows or self.tally.design is not None:
            return values
        if values.influences is None and has_jackknife(requested.formula, requested.average, self.tally):
            values = replace(values, influences=self._group_estimates(requested, rows).influences)
        return replace(values, sampling="shared")

    def _shares(self, rows: Integers) -> Shares:
        """Shares of rows; with weights, of the effective number of rows."""
        value, denominator = self.column("estimate")[rows], self.column("denominator")[rows].astype(float)
        if "effective" not in self.evaluated.values:
            return Shares(value, denominator)
        effective, even = (self.column(name)[rows].astype(float) for name in ("effective", "even"))
        return Shares(value, effective, (denominator, even))

    def _areas(self, requested: RequestedFormula, rows: Integers) -> Smooth:
        """Areas under curves; with clusters, with the effective number of rows of each class."""
        value, variance, events, others = (
            self.column(name)[rows] for name in ("estimate", "variance", "events", "others")
        )
        error = area_errors(value, variance, events, others)
        freedom, influences = np.full(len(rows), np.inf), None
        if self.tally.cluster_names:
            clustered = cast("Smooth", self._group_estimates(requested, rows))
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
    def _group_estimates(
        self, requested: RequestedFormula, rows: Integers, kind: Kind | None = None
    ) -> Smooth | Shares | CalibrationErrors:
        """Some values of a formula; those of all groups of its feature are computed once."""
        formula, by = requested.formula, self.evaluated.specs[requested.spec].by
        evaluator, average = self.evaluated.evaluator, requested.average
        # the share, or the sum of shares, that values are made of, where their limits are, too
        shares = {"function_of_rate": rising_share_of, "sum_of_rates": sum_of_shares_of}.get(kind or "")
        made_of = None if shares is None else shares(formula)
        is_by_judge = is_judged(self.tally, formula)
        # errors of calibration with the same bins have the same errors
        binned = formula if isinstance(formula, RowExpression) and formula.bins_of is not None else None
        key = (formula if binned is None else (binned.bins_of, binned.options), average, by, is_by_judge and kind)
        if key not in self._estimates:
            if isinstance(evaluator, JudgedEvaluator) and is_by_judge:
                if kind == "rate":
                    self._estimates[key] = shares_by_judge(evaluator.judged(requested, by))
                else:
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
        values = replace(values.at(index), value=self.column("estimate")[rows])
        if made_of is None or is_by_judge or not isinstance(values, Smooth):
            return values
        return MadeOfShares.of(values, made_of)

    def _index_of_groups(self, requested: RequestedFormula, rows: Integers, count: int) -> Integers:
        """The indices of some rows among the `count` values of all groups of a feature by labels."""
        first, groups = self.evaluated.group_cells.spans[self.evaluated.specs[requested.spec].by]
        labels = count // max(1, groups)
        group = self.column(GROUP_CELL)[rows].astype(np.int64) - first
        return group * labels + self.evaluated.label_index(self.column(LEVEL)[rows], labels, requested.average)

    def beside_rests(self, number: int, rows: Integers) -> Estimates:
        """The estimates of some rows of a formula, then those of the rest of each."""
        requested, evaluator = self.requested[number], self.evaluated.evaluator
        by = self.evaluated.specs[requested.spec].by
        if isinstance(evaluator, JudgedEvaluator) and is_judged(self.tally, requested.formula):
            judged: Any = (evaluator.judged(requested, by, scope) for scope in ("own", "rest"))
            own, rests = (self._linearized_by_judge(both, number) for both in judged)
            if not self.tally.cluster_names:
                # no row is in a group and in its rest
                own = replace(own, influences=None)
            index = self._index_of_groups(requested, rows, len(own))
            return own.at(index).with_rests(rests.at(index))
        groups = self.estimates(number, rows)
        if self.shares_rows:
            return groups.with_rests(self.rests.estimates(number, rows))
        return with_rests(groups, self.column("outer")[rows], self.shares_of_rests(rows))

    @np.errstate(divide="ignore", invalid="ignore")
    def _linearized_by_judge(self, both: JudgedValues, number: int) -> Any:
        """The values of a formula, by groups and labels, with errors from their influences alone."""
        requested = self.requested[number]
        ends = self.evaluated.specs[requested.spec].range_of(requested.name)
        value = np.where(both.denominator < FEWEST_LABELS, np.nan, both.value).clip(*ends)
        error = both.segments.to_rows(np.sqrt(both.segments.sum(both.influence**2)))
        influences = Influences.of_units(both.influence / error, both.group, both.unit, len(value))
        if self.kinds[number] == "rate":
            return replace(shares_by_judge(both), value=value.ravel(), influences=influences)
        of_people = np.sqrt(both.segments.sum(both.of_people**2) * both.ratio)
        freedom = np.fmax(np.broadcast_to(both.labelled_rows, value.shape) - 1, 1)
        scale = self.scale(requested)
        return Smooth.about(value, of_people, freedom, scale, influences=influences, sampling="judged")

    def shares_of_rests(self, rows: Integers) -> Floats:
        """The shares of the groups of an outer group in the weight of each and its rest."""
        weight = self.weights(rows)
        if self.shares_rows:
            return weight / (weight + self.rests.weights(rows))
        segments = Segments.of(self.column("outer")[rows])
        return weight / segments.to_rows(segments.sum(weight))

    def scale(self, requested: RequestedFormula) -> Scale:
        """The scale on which the values of a formula are nearly normal."""
        return Scale.of(requested.formula, self.evaluated.specs[requested.spec].range_of(requested.name))

    # Comparisons

    def families(self, number: int, aggregate: Any, kept: Booleans | None = None) -> list[Family]:
        """The families of a spec, one for each metric and label; `kept` is a mask of the values that count."""
        needed, all_outers = aggregate.groups_needed, self.column("outer").astype(np.int64)
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
                has_rests = aggregate.compares_with_context
                values = self.beside_rests(requested, own) if has_rests else self.estimates(requested, own)
                family = Family(
                    values, own, outer[chosen], is_reference[chosen], self.outers,
                    share=self.shares_of_rests(own) if has_rests else None,
                    to_all_rows="overall" in aggregate.contexts, overlap=self.shares_rows,
                )  # fmt: skip
                families.append(family)
        return families

    def _references(self, rows: Integers, aggregate: Aggregate) -> Booleans:
        """Mask of the values that others are compared with: the first one of each outer group."""
        mask = np.zeros(len(rows), dtype=bool)
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


# Labels of people for some rows and of a judge for all (prediction-powered inference)


# Estimates are those of the labels of people alone, moved to the values of both, as if people had labeled more rows:
# so many more that variances are as small as those of both. Small samples are thus treated as in all other calls.


@np.errstate(divide="ignore", invalid="ignore")
def shares_by_judge(both: JudgedValues) -> Shares:
    """The values of a rate, by groups and labels."""
    variance = both.segments.sum(both.of_people**2)
    # the rows that the labels of people alone are of; all that count where these agree
    rows = np.where(variance > 0, both.people * (1 - both.people) / variance, both.denominator) / both.ratio
    error = np.sqrt(both.segments.sum(both.influence**2))
    return Shares(both.value.ravel(), rows.ravel(), sampling="judged", error_by_judge=error.ravel())


@np.errstate(divide="ignore", invalid="ignore")
def by_judge(
    evaluator: JudgedEvaluator, requested: RequestedFormula, by: By | None, scale: Scale,
    made_of: Share | SumOfShares | None,
) -> Smooth:  # fmt: skip
    """The values of other formulas, which may be made of shares, in the groups of a feature, by groups and labels."""
    both = evaluator.judged(requested, by)
    people = by_jackknife(evaluator.sources[0], requested, by, scale)
    shift, ratio = (both.value - both.people).ravel(), both.ratio.ravel()
    error = people.error * np.sqrt(ratio)
    values = Smooth.about(people.below[0] + shift, error, people.freedom, scale, sampling="judged")
    values = replace(values, value=both.value.ravel())
    if evaluator.tally.cluster_names and by is not None:
        in_errors = both.influence / np.sqrt(both.segments.to_rows(both.segments.sum(both.influence**2)))
        return replace(values, influences=Influences.of_units(in_errors, both.group, both.unit, len(both.value)))
    return values if made_of is None else MadeOfShares.of(people, made_of).moved(values, shift, ratio)
