"""The evaluation of all specs of a call, in all outer groups and for all features at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, LabelError, listed
from tidyfair.evaluation.evaluator import EvaluationPlan, Evaluator
from tidyfair.evaluation.group_cells import GroupCells, counting_rows_once, number_group_cells
from tidyfair.evaluation.judged import JudgedEvaluator
from tidyfair.evaluation.labels import NUMBERS, Labels, read_labels
from tidyfair.evaluation.statistics import LabelReading
from tidyfair.evaluation.value_rows import NO_LEVEL, ValueRows, value_rows
from tidyfair.specs import Average, By, Integers, MetricSpec, Options, formulas_of, named_formulas, names_of
from tidyfair.specs.formulas import Formula, LabelDistributions, LabelSums
from tidyfair.tallies import THRESHOLD, Cut, Members, Tally


class EvaluationPlans:
    """The plans of some metrics, each made once: for an estimator, and for labels of which one is the event or not.

    They are for a single `threshold` if metrics follow it.
    """

    def __init__(self, specs: tuple[MetricSpec, ...], threshold: float | None = None) -> None:
        self.specs = specs
        self.threshold = threshold
        self._plans: dict[tuple[str | None, bool], EvaluationPlan] = {}

    @cached_property
    def any_event(self) -> bool:
        """True if either of two labels may be the event, because nothing depends on it."""
        return all(isinstance(formula, LabelDistributions) for formula in formulas_of(*self.specs))

    @cached_property
    def apart(self) -> list[EvaluationPlans]:
        """The plans of metrics that are evaluated apart."""
        parts = evaluated_apart(self.specs)
        return [self] if len(parts) == 1 else [EvaluationPlans(tuple(specs)) for specs in parts]

    def at_risk(self, cut: Cut) -> list[MetricSpec]:
        """The metrics that weigh errors by the odds of the threshold."""
        specs = self.specs if cut.option == "threshold" else ()
        return [spec for spec in specs if any(formula.follows_threshold for formula in formulas_of(spec))]

    def plan(self, estimator: str | None, *, one_event: bool) -> EvaluationPlan:
        """The plan for an estimator, and for labels of which one is the event or all are read."""
        if (estimator, one_event) not in self._plans:
            self._plans[estimator, one_event] = EvaluationPlan(
                self.specs, estimator, one_event=one_event, threshold=self.threshold
            )
        return self._plans[estimator, one_event]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluated:
    """The values of all specs for each group, the source of results, disparities and warnings."""

    values: ValueRows
    """One row for each spec, metric, group cell and, where labels are read one by one, level."""
    plan: EvaluationPlan
    group_cells: GroupCells
    labels: Labels
    evaluator: Evaluator
    """The evaluator, with which intervals evaluate the same formulas on other sums."""
    cut: str | None = None
    """The name of the column of a list of thresholds, of another kind of cut, or of the points of predictions."""
    point: float | None = None
    """The value of that column for metrics at points, if there is a single point."""

    @classmethod
    def of(
        cls, evaluator: Evaluator, plan: EvaluationPlan, group_cells: GroupCells, labels: Labels, options: Options,
        cut: str | None = None,
    ) -> Evaluated:  # fmt: skip
        """The values of the metrics of a plan, from an evaluator."""
        values = [evaluator.values(metric) for metric in plan.distinct]
        rows = value_rows(plan, values, group_cells, labels, na_rm=options.na_rm)
        return cls(rows, plan, group_cells, labels, evaluator, cut=cut)

    def rests(self, options: Options) -> Evaluated:
        """The values of the people outside of each group, in the same rows, if groups overlap."""
        ((_, others, _),) = self.evaluator.beside(self.plan.bys[-1], ("rest",))
        return Evaluated.of(others, self.plan, self.group_cells, self.labels, options, self.cut)

    @property
    def specs(self) -> tuple[MetricSpec, ...]:
        """The metrics."""
        return self.plan.specs

    @property
    def rows(self) -> pl.DataFrame:
        """The values as a frame."""
        return self.values.frame

    def with_rows(self, rows: pl.DataFrame) -> Evaluated:
        """The same with other rows."""
        return replace(self, values=ValueRows.of(rows))

    def key_columns(self, rows: pl.DataFrame) -> dict[str, pl.Series]:
        """The columns that name each row: outer keys, `.metric`, `.by`, `.estimator` and a list of thresholds."""
        return self.keys_of_results(rows["spec"].to_numpy(), rows["outer"].to_numpy()).to_dict()

    def keys_of_results(self, spec: Integers, outer: Integers) -> pl.DataFrame:
        """The same columns for the results of specs in outer groups."""
        frame = self.plan.names[pl.Series(spec.astype(np.uint32, copy=False))]
        if self.group_cells.is_grouped:
            keys = self.group_cells.outer_keys[pl.Series(outer.astype(np.uint32, copy=False))]
            # thresholds come last
            frame = keys.drop(THRESHOLD, strict=False).hstack(frame) if self.cut else keys.hstack(frame)
        return frame if self.cut is None else frame.hstack([self._cut_of_rows(self.cut, spec, outer)])

    def _cut_of_rows(self, name: str, spec: Integers, outer: Integers) -> pl.Series:
        """The threshold of each row of a call with a list of thresholds."""
        if THRESHOLD not in self.group_cells.outer_keys.columns:
            points = [self.point if any(map(_is_at_each, formulas_of(own))) else None for own in self.specs]
            return pl.Series(name, [points[number] for number in spec.tolist()], pl.Float64)
        values = self.group_cells.outer_keys[THRESHOLD][outer].alias(name)
        return values.cast(pl.Int64) if name == ".top_k" else values

    def level_text(self, level: Integers) -> pl.Series:
        """The label of each row, by its index; null for values of all labels."""
        if (level == NO_LEVEL).all():
            return pl.Series(".level", [None], dtype=pl.String).new_from_index(0, len(level))
        texts = pl.Series(".level", [*map(str, self.labels.values), None], dtype=pl.String)
        # `NO_LEVEL` is -1, the index of the null at the end
        return texts[level % len(texts)]

    def label_index(self, level: Integers, labels: int, average: Average) -> Integers:
        """The index of the label of values among those of their formula, of which there are so many."""
        if labels == 1:
            return np.zeros(len(level), dtype=np.int64)
        of_formula = list(self.labels.levels_of(average))
        # `NO_LEVEL` is -1, the index of the 0 at the end
        index = np.zeros(max([*of_formula, 0]) + 2, dtype=np.int64)
        index[of_formula] = np.arange(len(of_formula))
        return index[level]


def _check_risks(specs: Sequence[MetricSpec], cut: Cut) -> None:
    """Refuse thresholds that are no risks, or not the risk `at` which a metric weighs errors."""
    thresholds = {*cut.values, *(value for _, value in cut.groups)}
    for name, formula in named_formulas(specs):
        risk = dict(formula.options).get("at")
        if formula.kind == "class" and risk not in (None, "threshold") and thresholds != {risk}:
            msg = (
                f"`threshold`: {name} weighs errors by the odds of the risk at={risk}, so it needs that threshold and "
                "no other; leave `at` out for that of the call."
            )
            raise ArgumentError(msg)
        if formula.follows_threshold and (cut.by or cut.point or not all(0 < value < 1 for value in cut.values)):
            msg = (
                f"`threshold`: {name} weighs errors by the odds of the threshold, so it needs a number between 0 and "
                f"1, or a list of these, not `{cut}`."
            )
            raise ArgumentError(msg)


def evaluated_apart(specs: Sequence[MetricSpec]) -> list[list[MetricSpec]]:
    """The metrics of each feature of overlapping groups, which read other rows, and all others."""

    def overlapping(spec: MetricSpec) -> By | None:
        return spec.by if spec.by is not None and spec.by.memberships is not None else None

    return [*_by_feature(specs, overlapping).values()]


def _by_feature(
    specs: Sequence[MetricSpec], feature_of: Callable[[MetricSpec], By | None]
) -> dict[By | None, list[MetricSpec]]:
    """The metrics by what a function gives as their feature."""
    grouped: dict[By | None, list[MetricSpec]] = {}
    for spec in specs:
        grouped.setdefault(feature_of(spec), []).append(spec)
    return grouped


def evaluate_specs(
    tally: Tally, specs: Sequence[MetricSpec], options: Options, plans: EvaluationPlans | None = None
) -> list[Evaluated]:
    """Evaluate every metric in every group; the number of queries does not depend on the number of groups.

    With a list of cuts, class metrics are evaluated at each of them, and the others once. If the event does not occur,
    all values are null. `plans` are those of these metrics, if they are kept for several calls.
    """
    plans = EvaluationPlans(tuple(specs)) if plans is None else plans
    parts = [(tally, own) for own in plans.apart]
    if tally.margins:
        # each feature on the tally of that feature alone
        by_feature = _by_feature(specs, lambda spec: spec.by)
        parts = [
            (replace(tally.of_feature(by), margins={}), EvaluationPlans(tuple(own))) for by, own in by_feature.items()
        ]
    if tally.margins or len(parts) > 1:
        return [*itertools.chain(*(evaluate_specs(counted, own.specs, options, own) for counted, own in parts))]
    if tally.cut is not None and tally.cut.option == "threshold":
        _check_risks(specs, tally.cut)
    labels = NUMBERS
    if not tally.needs.numbers:
        labels = read_labels(tally, options, any_event=plans.any_event, allow_unseen=True)
    if tally.forecast is not None or (tally.cut is not None and tally.cut.several):
        return _evaluate_at_each(tally, plans, labels, options)
    if tally.cut is not None and plans.at_risk(tally.cut):
        plans = EvaluationPlans(plans.specs, *tally.cut.values)
    return [_evaluate(tally, plans, labels, options)]


def _evaluate_at_each(tally: Tally, plans: EvaluationPlans, labels: Labels, options: Options) -> list[Evaluated]:
    """Evaluate metrics at each of several cuts, or points of predictions, and once those of all of them together."""
    _refuse_mixtures(tally, plans.specs)
    at_each = [spec for spec in plans.specs if any(map(_is_at_each, formulas_of(spec)))]
    others = [spec for spec in plans.specs if spec not in at_each]
    parts: list[tuple[Tally, list[MetricSpec], float | None]] = []
    axis, forecast, cut = None, tally.forecast, tally.cut
    if forecast is not None and at_each:
        axis = forecast.axis
        if len(forecast.points) == 1:
            # the average over a single point is that of the point
            of_point = _evaluate(tally.at_each_point(), EvaluationPlans(plans.specs), labels, options, axis)
            return [replace(of_point, point=forecast.points[0])]
        parts.append((tally.at_each_point(), at_each, None))
    elif cut is not None:
        axis = f".{cut.option}"
        at_cuts, at_risk = tally.at_each_cut() if at_each else tally, plans.at_risk(cut)
        parts.append((at_cuts, [spec for spec in at_each if spec not in at_risk], None))
        parts += [(at_cuts.at_threshold(value), at_risk, value) for value in sorted(cut.values) if at_risk]
    parts.append((tally.over_points(), others, None))
    return [
        _evaluate(counted, EvaluationPlans(tuple(own), threshold), labels, options, axis)
        for counted, own, threshold in parts
        if own
    ]


def _refuse_mixtures(tally: Tally, specs: Sequence[MetricSpec]) -> None:
    """Refuse a comparison of metrics at each of several cuts, or points, with metrics of all of them together."""
    problem = "metrics at each of several points and over all of them; compare them apart"
    if tally.cut is not None:
        problem = f"metrics of labels and of scores, so it accepts only one {tally.cut.option} at a time"
    for spec in specs:
        if len({_is_at_each(formula) for formula in formulas_of(spec)}) > 1:
            msg = f"{spec.name} combines {problem}."
            raise ArgumentError(msg)


def _is_at_each(formula: Formula) -> bool:
    """Check whether a formula has a value for each cut, or for each evaluation time, or level of a quantile."""
    return formula.kind == "class" or formula.at_points


def _evaluate(
    tally: Tally, plans: EvaluationPlans, labels: Labels, options: Options, cut: str | None = None
) -> Evaluated:
    """Evaluate the metrics of one tally, whose labels have been read."""
    specs, one_event = plans.specs, labels.event is not None
    if not labels.in_order or tally.scores is not None:
        _check_order_of_labels(tally, labels, specs)
    plan = plans.plan(options.estimator, one_event=one_event)
    members, by = None, plan.bys[-1]
    if by is not None and by.memberships is not None:
        if tally.judge is not None:
            by.refuse_memberships("`judged`", overlapping=True)
        members = Members(tally, by)
        tally = members.copies_by_group.tally
    group_cells, cells = number_group_cells(tally, labels, plan.bys)
    if members is not None:
        group_cells = counting_rows_once(group_cells, members)
    with_variances = options.interval is not None
    reading = LabelReading(
        levels=labels.levels,
        labels=len(labels.values),
        scores=scores_of_levels(tally, labels) if plan.reads_scores else {},
        steps=plan.counts_steps and not one_event,
        squares=tally.weights is not None and (with_variances or plan.reads_squares),
    )
    evaluates = Evaluator if tally.judge is None else JudgedEvaluator
    evaluator = evaluates(
        tally, labels, group_cells, cells, reading, specs, plan.tables, with_variances, members=members
    )
    for context, pool, _ in evaluator.beside(by):
        evaluator.pools[context] = pool
    evaluated = Evaluated.of(evaluator, plan, group_cells, labels, options, cut)
    if not with_variances:
        evaluator.forget_sums()
    return evaluated


def _check_order_of_labels(tally: Tally, labels: Labels, specs: Sequence[MetricSpec]) -> None:
    """Refuse labels or columns of scores without an order for formulas that read it."""
    mapped = tally.scores.labels if tally.scores else None
    if labels.in_order and (mapped is None or list(mapped) == list(labels.values)):
        return
    shown, reads_all, many = listed(labels.values), labels.event is None, len(labels.values) > 2
    no_order = f"but {shown} have no order: list them in order as `labels=[…]`, or make the columns Enums."
    # the first that applies to a metric counts
    reasons: dict[str, Callable[[Formula], bool]] = {
        f"measures the distance between truth and estimate in levels, {no_order}":
            lambda own: reads_all and not labels.in_order and isinstance(own, LabelSums) and own.counts_steps,
        f"accumulates from label to label in order, {no_order}":
            lambda own: many and not labels.in_order and isinstance(own, LabelSums) and own.reads_label_order,
        f"needs ordered labels, but the order of {shown} and of the columns of `probs` is unknown; list both in order, "
        "`labels=[…]` and `probs=[…]`.":
            lambda own: reads_all and any(term.cumulative for term in own.all_terms),
    }  # fmt: skip
    for reason, applies in reasons.items():
        for name, formula in named_formulas(specs):
            if applies(formula):
                msg = f"{name} {reason}"
                raise LabelError(msg)


def scores_of_levels(tally: Tally, labels: Labels) -> dict[int, str]:
    """The names of the scores of the labels that are read, by level."""
    scores = tally.scores
    if scores is None:
        return {}
    if not scores.several:
        if labels.event is None:
            msg = (
                f"`probs`: {scores.columns[0].name!r} is a single column of scores, but there are several labels, "
                f"{listed(labels.values)}; give a column for each label, as `probs={{label: column}}`."
            )
            raise ColumnError(msg)
        return {labels.event: "0"}
    if len(scores.columns) != len(labels.values):
        msg = (
            f"`probs` lists {len(scores.columns)} columns for {len(labels.values)} labels, {listed(labels.values)}; "
            "give one for each label, as `probs={label: column}`."
        )
        raise ColumnError(msg)
    if scores.labels is None:
        columns = _columns_by_name(names_of(scores.columns), labels)
        return {level: str(columns[level]) for level in labels.levels}
    unknown = [value for value in scores.labels if value not in labels.values]
    if unknown:
        msg = f"`probs`: {listed(unknown)} is not among the labels {listed(labels.values)}."
        raise ColumnError(msg)
    return {level: str(scores.labels.index(labels.values[level])) for level in labels.levels}


def _columns_by_name(names: Sequence[str], labels: Labels) -> list[int]:
    """The index of the column of each label, by its name where labels have no order, else by position."""
    levels: dict[str, int] = {}
    for level, text in enumerate(map(str, labels.values)):
        levels.setdefault(text, level)
        levels.setdefault(f".pred_{text}", level)
    named = [levels[name] for name in names if name in levels]
    if not labels.in_order and len(set(named)) == len(names):
        return [named.index(level) for level in range(len(names))]
    all_named = len(named) == len(names)
    without_order = not all_named and not labels.in_order
    in_other_order = all_named and named != sorted(named)
    if without_order or in_other_order:
        pairs = ", ".join(f"{value!r}: …" for value in labels.values)
        msg = (
            f"`probs`: it is unclear which of the columns {listed(names)} belongs to which of the labels "
            f"{listed(labels.values)}; write `probs={{{pairs}}}`."
        )
        raise ColumnError(msg)
    return list(range(len(names)))
