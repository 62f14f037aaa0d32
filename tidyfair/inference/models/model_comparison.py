"""Comparison of two models on the same rows: the change of each metric, its interval and McNemar's test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Unpack, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, columns_of, metric_set
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.escapes import display, visible
from tidyfair.evaluation import (
    CELLS,
    Evaluated,
    JudgedEvaluator,
    KeyCodes,
    ReplicatedGroups,
    Replicates,
    UnitsOfOneFeature,
    changes_by_judge,
    evaluate_specs,
    evaluated_apart,
    tidy_results,
)
from tidyfair.inference.contingency import mcnemar
from tidyfair.inference.models.many_models import check_compared_jointly, compared_jointly
from tidyfair.inference.models.model_choice import (
    margins_of,
    name_of,
    named_models,
    with_frontier,
    with_verdicts,
)
from tidyfair.inference.on_data import refuse_given, refuse_points
from tidyfair.inference.rate_tests import with_adjusted_p_values
from tidyfair.inference.unknown_groups import (
    counted_unknown,
    with_unknown,
    with_unknown_in_each_group,
)
from tidyfair.intervals import (
    DrawnCells,
    DrawnUnits,
    Draws,
    Share,
    Summary,
    Uncertainty,
    Units,
    clusters_of,
    drawn_labels,
    drawn_units,
    generator,
    is_of_labels,
    is_stratified,
    label_pairs,
    share_of,
    warn_of_few_clusters,
    without_parts,
    without_psus,
    without_rows_of_cells,
    z_value,
)
from tidyfair.metrics.fairness import demographic_parity
from tidyfair.specs import (
    CUT_OPTIONS,
    Booleans,
    By,
    Column,
    Floats,
    Frame,
    Integers,
    MetricSpec,
    Options,
    Prediction,
    ReplicateWeights,
    SurveyCallOptions,
    TruthLike,
    UserAggregate,
    flag,
    formulas_of,
    names_of,
    one_of,
    refuse_unknown_keywords,
    refuse_unknown_settings,
    show_keywords,
)
from tidyfair.specs.formulas import Formula
from tidyfair.specs.result_kinds import MODELS, with_level
from tidyfair.tallies import ESTIMATE, LABELS, PREDICTED, TRUTH, Key, Source, Tally, open_frame, recounted

__all__ = ["ModelComparison", "compare_models"]

REFUSED_OF_MODELS = {
    **dict.fromkeys(("probs", "estimate"), ": give the predictions as `one=` and `other=`"),
    **dict.fromkeys(("interval", "explain", "score_bins", "parts", "keep_rows"), ""),
    "suppress_below": ": changes tell how few rows two models judge differently; give the values of each model alone",
    **dict.fromkeys(
        CUT_OPTIONS,
        ': make labels of scores, such as `one=(pl.col("score") >= 0.4).alias("at 0.4")` and '
        '`other=(pl.col("score") >= 0.6).alias("at 0.6")`',
    ),
}
"""The options of metrics that a comparison of models does not accept, and why."""
_REFUSED_OF_MANY = {
    name: ": its limits are of rows of equal weight; leave out `adjust`"
    for name in SurveyCallOptions.__annotations__
    if name not in {"pos_label", "labels", "conf_level", "seed"}
}
COMPARISON_CALL = "(data, truth, one=…, other=…)"
_ADDED_ROWS = 2.0
"""Rows added for each true label, spread over the cells of both predictions: half a row per cell for two labels."""
_MOST_PAIRS = 100
"""With more pairs of labels no rows are added."""
_ADDED_CHANGES = 2.0
"""Rows that change as others do, and are taken to have been missed (Bonett and Price, 2012)."""
_CODES = {True: 1, False: 0, None: -1}
"""The codes of labels in tables of one label against the rest."""
_UNIT = "\0unit"
"""The key that numbers what is left out, or drawn, together."""


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Metrics of two models on the same rows, as a callable on dataframes; made by `compare_models`."""

    metrics: MetricSet
    mid_p: bool = True
    """True where McNemar's p-values are mid-p-values."""
    margins: tuple[float, ...] | None = None
    """The change of each metric up to which models are as good as each other."""
    adjust: str = "holm"
    """How limits allow for several models."""

    @refuse_unknown_keywords
    @show_keywords(SurveyCallOptions, without=REFUSED_OF_MODELS)
    def __call__(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction | None = None,
        others: Sequence[Prediction] | Mapping[str, Prediction] | None = None, **options: Unpack[SurveyCallOptions],
    ) -> Frame:  # fmt: skip
        """Compare the predictions `one` with `other`, or with each of `others`.

        Args:
            data: A frame, as in a call of a metric.
            truth: Column of the true labels or numbers.
            one: The predictions of the model that others are compared with.
            other: Those of another model.
            others: Those of several models: a list of columns, or a mapping from the names of the models.
            options: The remaining arguments are those of a metric. With `judged`, the power of the judge is that for
                the change, and rates have no McNemar test.

        Returns:
            One row for each metric, outer group and model of `others`: the values `.one` and `.other`, their `.change`
            (other minus one) with `.lower`, `.upper` and `.std_error` (Bonett and Price, 2012, for rates of the same
            rows; the jackknife for other functions of sums, areas under curves, and their comparisons, with `design`
            without one sampling unit of a survey; else the bootstrap), the rows `.n`, and a `.p_value`: McNemar's for
            rates among rows that do not depend on the prediction, such as accuracy, sensitivity and the selection rate,
            whose rows that only one of the models has right (or selects) are `.only_one` and `.only_other`; that of the
            interval for areas and their comparisons (DeLong et al., 1988), and with a `design` or `judged`; null for
            all others. `.model_one` and `.model_other` are the names of the columns, null for several columns of
            scores. With a margin, or `others`, `.verdict` says what the limits show: `better`, `worse`, `equivalent`
            (the change is smaller than `.margin`), `not worse` (by the margin or more) or `not shown`; `different` in
            place of better and worse for metrics that have no better value. Limits and verdicts of `others` hold for
            all models together, `.p_adjusted` allows for their number (Holm), and `.on_frontier` of a disparity says if
            no model is better in it or in the first metric of all rows and as good in the other.
        """
        if self.adjust == "max_t":
            return self._jointly(data, truth, one, named_models(one, other, others), options)
        models = paired_with_each(self, data, truth, one, other, others, options)
        counted = [*models.values()]
        level = 1 - (1 - counted[0].options.conf_level) / len(counted)
        results = pl.concat([paired.compared(level) for paired in counted])
        results = self.in_reading_order(results, one, [*models])
        outer = names_of(counted[0].pairs.sides[0].outer_columns)
        if others is not None:
            results = with_adjusted_p_values(results, [*outer, ".metric", ".by"], "holm")
        if others is not None or self.margins is not None:
            results = with_verdicts(results, self.metrics, self.margins)
        if others is not None:
            results = with_frontier(results, self.metrics, outer)
        return counted[0].source.restore(with_level(MODELS.frame(results), counted[0].options.conf_level))

    def _jointly(
        self, data: object, truth: TruthLike | None, one: Prediction, others: Mapping[str | None, Prediction],
        options: SurveyCallOptions,
    ) -> Frame:  # fmt: skip
        """Compare the first model with all others, with limits from correlated draws of their errors."""
        refuse_given('compare_models(adjust="max_t")', options, _REFUSED_OF_MANY | REFUSED_OF_MODELS)
        checked = self.metrics.run.options(options, SurveyCallOptions, truth=truth)
        source = open_frame(data)
        first = Column.of(one, "one")
        columns = [first, *(Column.of(model, "others") for model in others.values())]
        results = compared_jointly(self.metrics, source, columns, replace(checked, on_undefined="ignore"))
        if any(metric.by for metric in self.metrics):
            counted = self.metrics.run.count(source, replace(checked, estimate=first))
            self.metrics.run.warn_of_unknown_groups([counted], may_ignore=False)
        names = pl.Series(".model_other", [*others] * len(self.metrics), dtype=pl.String)
        results = results.with_columns(pl.lit(first.name).alias(".model_one"), names)
        results = with_frontier(with_verdicts(results, self.metrics, self.margins), self.metrics, ())
        return source.restore(with_level(MODELS.frame(results), checked.conf_level))

    @staticmethod
    def in_reading_order(results: pl.DataFrame, one: Prediction, others: Sequence[str | None]) -> pl.DataFrame:
        """Results of comparisons with one model after the other, with their names, in the order of their kind."""
        rows_of_each = len(results) // len(others)
        names = pl.Series(".model_other", [name for name in others for _ in range(rows_of_each)], dtype=pl.String)
        return MODELS.frame(results.with_columns(pl.lit(name_of(one), pl.String).alias(".model_one"), names))

    @refuse_unknown_settings
    def paired(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction,
        **options: Unpack[SurveyCallOptions],
    ) -> PairedModels:  # fmt: skip
        """Count the rows with both predictions once, to compare them at several confidence levels."""
        refuse_given("compare_models()", options, REFUSED_OF_MODELS)
        if self.adjust == "max_t":
            msg = (
                'compare_models(): `adjust="max_t"` is for limits of many models at once, and here each pair is '
                "judged by itself; leave it out."
            )
            raise ArgumentError(msg)
        on_undefined = options.get("on_undefined", "warn")
        checked = self.metrics.run.options(options, SurveyCallOptions, truth=truth)
        checked = replace(checked, on_undefined="null" if on_undefined == "null" else "ignore")
        self._check_design(checked.design)
        source = open_frame(data, checked.group_by)
        self._check_predictions(source, one=one, other=other)
        is_of_rows = checked.judged is None and (checked.cluster is not None or checked.design is not None)
        if is_of_rows or not all(map(is_of_labels, self.metrics.specs)):
            pairs = self._rows(source, one, other, checked)
        else:
            # the second prediction is one more key
            second: Any = other
            both = metric_set(*self.metrics, demographic_parity(second, name="\0other"))
            tally = both.run.count(source, replace(checked, estimate=one)).on_sides()
            pairs = _Cells(tally, Column.of(second, "other"))
        notes = on_undefined == "warn"
        if checked.na_rm:
            if notes:
                self.metrics.run.warn_of_missing_predictions(pairs.sides)
            pairs = pairs.complete()
        if on_undefined == "raise":
            for side in pairs.sides:
                self.metrics.run.refuse_undefined(side, replace(checked, on_undefined="raise"))
        models = PairedModels if checked.judged is None else JudgedModels
        return models(self, source, pairs, checked)

    def __repr__(self) -> str:
        names = [f"{metric.name}({metric.by!r})" if metric.by else metric.name for metric in self.metrics]
        return visible(f"<ModelComparison of {', '.join(names)}; call it with {COMPARISON_CALL}>")

    def _repr_html_(self) -> str:
        return display("", columns_of(self.metrics), name="ModelComparison", call=COMPARISON_CALL)

    def _check_design(self, design: object) -> None:
        """Refuse designs, and metrics with a design, whose changes have no interval."""
        if isinstance(design, ReplicateWeights):
            msg = "compare_models() takes the strata and clusters of a survey, `surveys.design(…)`, not replicates."
            raise ArgumentError(msg)
        for metric in self.metrics if design is not None else ():
            if not _is_smooth(metric):
                msg = f"compare_models(): changes of {metric.name} have no interval for a survey design; leave it out."
                raise ArgumentError(msg)

    def _check_predictions(self, source: Source, *, one: Any, other: Any) -> None:
        """Refuse predictions that are no columns, and a second one by which the data are grouped."""
        are_labels = all(map(is_of_labels, self.metrics.specs))
        for role, prediction in (("one", one), ("other", other)):
            # several columns of scores are checked where they are counted
            if are_labels or isinstance(prediction, str | pl.Expr):
                Column.of(prediction, role).check(source.columns, role)
        if not isinstance(other, str | pl.Expr):
            return
        second = Column.of(other, "other")
        features = [spec.by.columns for spec in self.metrics.specs if spec.by]
        if second in (*source.outer, *itertools.chain(*features)):
            msg = f"`other`: the data are grouped by {second.name!r}; give a column of predictions."
            raise ColumnError(msg)

    def _rows(self, source: Source, one: Any, other: Any, options: Options) -> _Rows:
        """Two tallies of the same rows, which are kept."""
        sides: list[Tally] = []
        for prediction in (one, other):
            kind = self.metrics.metrics[0].kind
            is_of_scores = kind == "prob" or (kind == "survival" and isinstance(prediction, Mapping))
            read: dict[str, Any] = {"probs" if is_of_scores else "estimate": prediction, "keep_rows": True}
            sides.append(self.metrics.run.count(source, replace(options, **read)).on_sides())
        pairs = _Rows(*sides)
        points = [side.forecast and side.forecast.points for side in pairs.sides]
        if points[0] != points[1]:
            msg = f"`one` is of {points[0]} and `other` of {points[1]}; both need the same times or levels."
            raise ColumnError(msg)
        refuse_points("compare_models()", self.metrics.specs, pairs.one)
        one_scores, other_scores = pairs.score_counts
        if one_scores != other_scores:
            msg = f"`one` has {one_scores} columns of scores and `other` {other_scores}; both need the same number."
            raise ColumnError(msg)
        return pairs


def paired_with_each(
    comparison: ModelComparison, data: object, truth: TruthLike | None, one: Prediction, other: Prediction | None,
    others: Sequence[Prediction] | Mapping[str, Prediction] | None, options: SurveyCallOptions,
) -> dict[str | None, PairedModels]:  # fmt: skip
    """Count the rows of `one` with those of `other`, or with each of `others`, by the name of the model."""
    models = {
        name: comparison.paired(data, truth, one=one, other=model, **options)
        for name, model in named_models(one, other, others).items()
    }
    if options.get("on_undefined", "warn") == "warn":
        # the groups are the same for all models
        next(iter(models.values())).warn_of_unknown_groups()
    return models


@dataclass(frozen=True, eq=False)
class PairedModels:
    """The counts of rows with the predictions of two models."""

    comparison: ModelComparison
    source: Source
    pairs: _Cells | _Rows
    options: Options

    def compared(self, conf_level: float | None = None) -> pl.DataFrame:
        """Both values, their change with its interval, and p-values; at the confidence level of the call or another."""
        if len(apart := evaluated_apart(self.comparison.metrics.specs)) > 1:
            return self._together([part.compared(conf_level) for part in map(self._of, apart)])
        options = self.options if conf_level is None else replace(self.options, conf_level=conf_level)
        metrics, run = self.comparison.metrics.metrics, self.comparison.metrics.run
        one, other = (run.evaluate(side, options)[0] for side in self.pairs.sides)
        is_null = options.on_undefined == "null"
        results, second = (tidy_results(side, undefined_is_null=is_null, explain=True) for side in (one, other))
        both = pl.col(".estimate").alias(".one"), second[".estimate"].alias(".other")
        results = results.select(*self._outer, ".metric", ".by", ".estimator", ".n", *both)
        results = results.with_columns((pl.col(".other") - pl.col(".one")).alias(".change"))
        rates = self._rates(one, options.conf_level)
        left = [number for number in range(len(metrics)) if number not in rates]
        *limits, p_values = self._limits((one, other), left, options)
        change = results[".change"].fill_null(math.nan).to_numpy().reshape(limits[0].shape)
        lower, upper = np.minimum(limits[0], change), np.maximum(limits[1], change)
        limits = np.where(np.isfinite(change + lower + upper), [lower, upper, limits[2]], np.nan)
        disagreeing = np.full((2, *change.shape), np.nan)
        for number, (limits_of_rate, p_values_of_rate, only_in_either) in rates.items():
            limits[:, number], p_values[number], disagreeing[:, number] = (
                limits_of_rate, p_values_of_rate, only_in_either,
            )  # fmt: skip
        # without `na_rm`, a change with missing predictions is undefined, and so is its test
        p_values[~np.isfinite(change)] = np.nan
        # a single row or cluster does not vary, so it has no interval
        lone = [Draws(Uncertainty(side, options)).lone_results.reshape(change.shape) for side in (one, other)]
        limits[:, lone[0] | lone[1]] = np.nan
        columns = zip((".lower", ".upper", ".std_error", ".p_value"), (*limits, p_values), strict=True)
        counts = zip((".only_one", ".only_other"), disagreeing, strict=True)
        return results.with_columns(
            *(pl.Series(name, values.ravel(), nan_to_null=True).cast(pl.Int64) for name, values in counts),
            *(pl.Series(name, values.ravel(), nan_to_null=True) for name, values in columns),
        )

    def _of(self, specs: Sequence[MetricSpec]) -> PairedModels:
        """The same comparison of some of its metrics."""
        metrics = [metric for metric in self.comparison.metrics if metric in specs]
        return replace(self, comparison=replace(self.comparison, metrics=metric_set(*metrics)))

    def _together(self, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The comparisons of some metrics each, in the order of all metrics."""
        order = {(metric.name, metric.by and metric.by.text): i for i, metric in enumerate(self.comparison.metrics)}
        frame = pl.concat(parts)
        number = [order[key] for key in frame.select(".metric", ".by").rows()]
        return frame[np.argsort(number, kind="stable")]

    @property
    def _outer(self) -> list[str]:
        """The names of the columns of outer groups."""
        return names_of(self.pairs.sides[0].outer_columns)

    def _rates(self, evaluated: Evaluated, level: float) -> dict[int, tuple[list[Floats], list[float], list[Integers]]]:
        """The limits and McNemar's p-values of rates among rows that do not depend on the prediction, by metric.

        And the rows that are hits of the first model alone, and of the other alone.
        """
        pairs, labels = self.pairs, evaluated.labels
        if isinstance(pairs, _Rows) or labels.event is None or pairs.tally.weights is not None:
            return {}
        one, other = pairs.tallies_of_both(pairs.tally)
        indices = [labels.index(*side) for side in ((one, TRUTH), (one, ESTIMATE), (other, ESTIMATE))]
        truth, guess, guess_of_other = (np.where(index < 0, -1, index == labels.event) for index in indices)
        outer, rows = KeyCodes(one.cells).index(one.outer_names).of_cell, one.cells["n"].to_numpy()

        def are_in(names: Collection[str], guess: Integers) -> Booleans:
            """Mask of the counts in some cells of the table of truth and one prediction."""
            codes = [[_CODES[label] for label in CELLS[name]] for name in names]
            return np.any([(truth == truth_code) & (guess == guess_code) for truth_code, guess_code in codes], axis=0)

        rates: dict[int, tuple[list[Floats], list[float], list[Integers]]] = {}
        for number, metric in enumerate(self.comparison.metrics):
            share = share_of_same_rows(metric)
            if share is None:
                continue
            among = are_in(share.among, guess) & (guess >= 0) & (guess_of_other >= 0)
            hits, hits_of_other = are_in(share.holds, guess), are_in(share.holds, guess_of_other)
            only_one, only_other, every = (
                np.bincount(outer, np.where(mask, rows, 0), len(evaluated.group_cells.outer_keys)).astype(np.int64)
                for mask in (among & hits & ~hits_of_other, among & ~hits & hits_of_other, among)
            )
            p_values = [
                mcnemar(*changed, mid_p=self.comparison.mid_p) if size else math.nan
                for *changed, size in zip(only_one.tolist(), only_other.tolist(), every.tolist(), strict=True)
            ]
            limits = _limits_of_changed_rows(only_one, only_other, every, level)
            rates[number] = limits, p_values, [only_one, only_other]
        return rates

    def _limits(self, sides: Sequence[Evaluated], numbers: Sequence[int], options: Options) -> Floats:
        """Limits, errors and p-values of changes, metrics by outer groups: by leaving out rows, else by drawing."""
        metrics, pairs = self.comparison.metrics.metrics, self.pairs
        limits = np.full((4, len(metrics), len(sides[0].group_cells.outer_keys)), np.nan)
        smooth: dict[By | None, list[int]] = {}
        for number in numbers:
            metric = metrics[number]
            if _is_smooth(metric):
                smooth.setdefault(metric.by, []).append(number)
                continue
            changes = _changes(pairs.redrawn(sides, number, options))[:, 0]
            summary = Summary(changes, options.conf_level, clusters_of(pairs.sides[0]))
            limits[:3, number] = summary.lower, summary.upper, summary.error
        for numbers_of_feature in smooth.values():
            units, results = pairs.left_out(sides, numbers_of_feature, options)
            ranges = [metrics[number].range for number in numbers_of_feature]
            width = np.array([[float(highest) - float(lowest)] for lowest, highest in ranges])
            # shares have the rounding errors of 1, and others those of their values
            size = np.fmax(np.abs(results[:, 0]).max(axis=0), np.where(np.isfinite(width), 1.0, 0.0))
            added = _ADDED_CHANGES if isinstance(pairs, _Rows) and options.design is None else 0.0
            found = units.limits(_changes(results), size, options.conf_level, added_changes=added)
            lower, upper, error, p_value = found
            has_test = [[options.design is not None or _is_of_areas(metrics[number])] for number in numbers_of_feature]
            p_value = np.where(has_test, p_value, np.nan)
            limits[:, numbers_of_feature] = np.maximum(lower, -width), np.minimum(upper, width), error, p_value
        if smooth and options.design is None:
            warn_of_few_clusters(pairs.sides[0])
        return limits

    def warn_of_unknown_groups(self) -> None:
        """Say how many people of unknown groups are counted and not compared."""
        self.comparison.metrics.run.warn_of_unknown_groups(self.pairs.sides[:1])

    def left_out(self) -> pl.DataFrame:
        """The groups that are left out of either model, and why, and those of them outside the policy, in order."""
        if len(apart := evaluated_apart(self.comparison.metrics.specs)) > 1:
            return self._together([part.left_out() for part in map(self._of, apart)])
        run = self.comparison.metrics.run
        sides: list[pl.DataFrame] = []
        for side in self.pairs.sides:
            (values,) = run.evaluate(side, self.options)
            sides.append(tidy_results(values, undefined_is_null=False, explain=True))
        one, other = sides
        names = (".groups_left_out", ".groups_outside")
        either = [one[name].list.set_union(other[name]) for name in names]
        reasons = one[".left_out"].list.concat(other[".left_out"]).list.unique(maintain_order=True)
        return one.select(*self._outer, ".metric", ".by").with_columns(*either, reasons)

    def unknown(self) -> pl.DataFrame:
        """The rows of unknown groups, which are not compared, `.unknown` and `.unknown_share`, in the same order."""
        compared = self.left_out().select(*self._outer, ".metric", ".by")
        return compared.with_columns(counted_unknown(self.pairs.sides[0], self.comparison.metrics, compared))

    def with_unknown_in_each_group(self, by: By) -> Iterator[PairedModels]:
        """The same comparison with the rows of unknown groups in each known group; nothing if these are many."""
        if isinstance(self.pairs, _Cells):
            for tally in with_unknown_in_each_group(self.pairs.tally, by):
                yield replace(self, pairs=replace(self.pairs, tally=tally))
            return
        both = (with_unknown_in_each_group(side, by) for side in self.pairs.sides)
        for one, other in zip(*both, strict=True):
            yield replace(self, pairs=_Rows(one, other))

    def with_unknown_groups(self) -> PairedModels:
        """The same comparison with unknown groups compared like all others."""
        metrics = metric_set(*map(with_unknown, self.comparison.metrics))
        return replace(self, comparison=replace(self.comparison, metrics=metrics))


class JudgedModels(PairedModels):
    """The counts of rows with the predictions of two models, and labels of people and of a judge."""

    @np.errstate(divide="ignore", invalid="ignore")
    def compared(self, conf_level: float | None = None) -> pl.DataFrame:
        """Both values and their change, of a judge with the power that suits the change.

        Limits are as far from it as those by people alone are from theirs, times the root of the ratio of variances; in
        clusters they are normal.
        """
        options = self.options if conf_level is None else replace(self.options, conf_level=conf_level)
        run, pairs = self.comparison.metrics.run, cast("_Cells", self.pairs)
        sides = [run.evaluate(side, options)[0] for side in pairs.tally.with_rivals(pairs.second)]
        is_null = options.on_undefined == "null"
        results, second = (tidy_results(side, undefined_is_null=is_null) for side in sides)
        known = (results[".estimate"].is_not_null() & second[".estimate"].is_not_null()).to_numpy()
        evaluators = [cast("JudgedEvaluator", side.evaluator) for side in sides]
        evaluators[0].share_power(evaluators[1])
        specs = range(len(sides[0].specs))
        values = [Replicates.by_evaluator(side, specs, side.evaluator, times=1) for side in sides]
        one, other = (own.results[0] for own in values)
        variance, alone = changes_by_judge(values)
        change = other - one
        if pairs.tally.cluster_names:
            error = np.sqrt(np.where(variance > 0, variance, np.nan))
            lower, upper = (change + sign * z_value(options.conf_level) * error for sign in (-1, 1))
        else:
            people = replace(pairs, tally=pairs.tally.by_people)
            by_people = PairedModels(self.comparison, self.source, people, self.options).compared(conf_level)
            of_people, *ends, own = (
                by_people[name].to_numpy() for name in (".change", ".lower", ".upper", ".std_error")
            )
            part = np.sqrt(np.where(alone > 0, variance / np.where(alone > 0, alone, 1.0), 1.0).clip(max=1))
            lower, upper = (change + (end - of_people) * part for end in ends)
            error = own * part
        p_value = [math.erfc(number / math.sqrt(2)) for number in np.abs(change / error).tolist()]
        columns = [one, other, change, lower, upper, error, np.array(p_value)]
        names = (".one", ".other", ".change", ".lower", ".upper", ".std_error", ".p_value")
        numbers = np.where(known, np.stack(columns), np.nan)
        return results.select(*self._outer, ".metric", ".by", ".estimator").with_columns(
            *(pl.Series(name, own, nan_to_null=True) for name, own in zip(names, numbers, strict=True)),
        )


def _changes(results: Floats) -> Floats:
    """The changes of results from one model to the other."""
    with np.errstate(invalid="ignore"):
        return results[1] - results[0]


def _is_smooth(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a single row changes a metric only a little."""
    of_sums = all(not formula.is_of_rows or _is_area(formula) for formula in formulas_of(metric))
    return of_sums and not isinstance(metric.aggregate, UserAggregate)


def _is_of_areas(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric is an area, or compares areas."""
    return all(map(_is_area, formulas_of(metric)))


def _is_area(formula: Formula) -> bool:
    """Check whether a formula is an area under a ROC curve, a concordance, or a combination of these."""
    parts = [part for _, part in formula.parts]
    counts_pairs = formula.variation == "area" or (formula.kind == "survival" and formula.influence is not None)
    return counts_pairs or (bool(parts) and all(map(_is_area, parts)))


def _limits_of_changed_rows(only_one: Integers, only_other: Integers, rows: Integers, level: float) -> list[Floats]:
    """Limits of the change of a rate and its standard error, with a row more of either change (Bonett and Price, 2012).

    Half a row (Agresti and Min, 2005) is too little where all rows change for the better, as by a lower threshold.
    """
    more = rows + 2
    gained, lost = (only_other + 1) / more, (only_one + 1) / more
    change, half = gained - lost, z_value(level)
    error = np.sqrt((gained + lost - change**2) / more)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (only_other - only_one) / rows
    lower, upper = np.maximum(-1.0, change - half * error), np.minimum(1.0, change + half * error)
    return [np.minimum(lower, observed), np.maximum(upper, observed), np.where(rows > 0, error, np.nan)]


@dataclass(frozen=True, eq=False)
class _Cells:
    """Counts of rows by both predictions, of which the second is one of the keys."""

    tally: Tally
    second: Column

    @cached_property
    def sides(self) -> list[Tally]:
        """The tally of each of the predictions."""
        keys = tuple(key for key in self.tally.keys if key.column != self.second)
        old = self.tally.names([key.column for key in keys])
        named = [pl.col(name).alias(f"k{index}") for index, name in enumerate(old)]
        sides: list[Tally] = []
        for tally, estimate in zip(self.tallies_of_both(self.tally), (self.tally.estimate, self.second), strict=True):
            sums = [name for name in ("n", "w", "w2") if name in tally.cells.columns]
            pooled = tally.cells.group_by(*named, *LABELS).agg(pl.col(sums).sum())
            sides.append(replace(tally, cells=pooled, keys=keys, estimate=estimate))
        return sides

    def complete(self) -> _Cells:
        """Without the rows that lack one of the predictions."""
        (second,) = self.tally.names([self.second])
        return replace(self, tally=replace(self.tally, cells=self.tally.cells.drop_nulls([ESTIMATE, second])))

    def left_out(self, sides: Sequence[Evaluated], numbers: Sequence[int], options: Options) -> tuple[Units, Floats]:
        """The results of metrics of one feature, of replicates without a row of one cell."""
        specs = [sides[0].specs[number] for number in numbers]
        by, columns, (second,) = specs[0].by, _features(specs[0]), self.tally.names([self.second])
        first, other = (label_pairs(side, options) for side in self.sides)
        possible = first.join(other.select(pl.col(ESTIMATE).alias(second)).unique(), how="cross")
        rows = _ADDED_ROWS * first[TRUTH].n_unique() if len(first) <= _MOST_PAIRS else 0.0
        if by and (by.sides or by.memberships):
            # sides are made of many groups, and groups that overlap of many combinations
            rows *= min(1.0, 2 / max(1, self.tally.cells.select(self.tally.names(columns)).n_unique()))
        has_truth = all("truth" in formula.reads for formula in formulas_of(*specs))
        units, drawn = without_rows_of_cells(self.tally, columns, self.second, possible, rows, reads_truth=has_truth)
        return units, self._results(sides, numbers, drawn)

    def redrawn(self, sides: Sequence[Evaluated], number: int, options: Options) -> Floats:
        """The results of a metric, of bootstrap draws of the cells."""
        spec = sides[0].specs[number]
        columns = _features(spec)
        drawn = drawn_labels(
            self.tally, (*columns, self.second), strata=columns if is_stratified(spec) else (),
            times=options.replicates, seed=options.seed,
        )  # fmt: skip
        return self._results(sides, [number], drawn)

    def _results(self, sides: Sequence[Evaluated], numbers: Sequence[int], drawn: DrawnCells) -> Floats:
        by, tallies = sides[0].specs[numbers[0]].by, self.tallies_of_both(drawn.tally)
        groups = [ReplicatedGroups(side, numbers, by, tally) for side, tally in zip(sides, tallies, strict=True)]
        return _results_of([own.replicates(sums) for own in groups] for sums in drawn.parts)[:, :, numbers]

    def tallies_of_both(self, tally: Tally) -> list[Tally]:
        """A tally with the second prediction among its keys, with either of them as the estimate."""
        (second,) = tally.names([self.second])
        return [tally, replace(tally, cells=tally.cells.with_columns(pl.col(second).alias(ESTIMATE)))]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Tallies of the same rows with one prediction and with the other."""

    one: Tally
    other: Tally

    @property
    def sides(self) -> list[Tally]:
        """The tally of each of the predictions."""
        return [self.one, self.other]

    @property
    def frames(self) -> list[pl.DataFrame]:
        """The rows of both tallies, which keep them."""
        return [cast("pl.DataFrame", side.rows) for side in self.sides]

    @property
    def score_counts(self) -> list[int]:
        """The number of columns of scores of each of the predictions."""
        return [len(side.scores.columns) if side.scores else 0 for side in self.sides]

    @property
    def predictions(self) -> list[str]:
        """The columns of the predictions."""
        scores = [f"s{index}" for index in range(self.score_counts[0])]
        scores += self.one.forecast.names if self.one.forecast is not None else []
        present = self.frames[0].columns
        return [name for name in (*scores, ESTIMATE, PREDICTED) if name in present]

    def complete(self) -> _Rows:
        """Without the rows that lack one of the predictions."""
        rows, others = self.frames
        present = pl.all_horizontal(pl.col(self.predictions).is_not_null())
        both = rows.select(present).to_series() & others.select(present).to_series()
        if both.all():
            return self
        frames = zip(self.sides, self.frames, strict=True)
        return _Rows(*(recounted(side, frame.filter(both), side.keys) for side, frame in frames))

    def left_out(self, sides: Sequence[Evaluated], numbers: Sequence[int], options: Options) -> tuple[Units, Floats]:
        """The results of metrics of one feature, of replicates without a part of the rows, a cluster, or a PSU."""
        specs = [sides[0].specs[number] for number in numbers]
        random = generator(options.seed, "parts")
        if options.design is not None:
            psus, drawn = without_psus(self.one, self._both, random)
            return psus, self._results(specs, options, drawn)
        units, drawn = without_parts(self.one, self._both, _features(specs[0]), random)
        return units, self._results(specs, options, drawn)

    def redrawn(self, sides: Sequence[Evaluated], number: int, options: Options) -> Floats:
        """The results of a metric, of bootstrap draws of the rows."""
        spec = sides[0].specs[number]
        columns = _features(spec)
        drawn = drawn_units(
            self.one, self._both, columns, strata=columns if is_stratified(spec) else (),
            times=options.replicates_of_rows, seed=options.seed,
        )  # fmt: skip
        return self._results([spec], options, drawn)

    def _results(self, specs: Sequence[MetricSpec], options: Options, drawn: DrawnUnits) -> Floats:
        unit, units = f"k{len(self.one.keys)}", list[UnitsOfOneFeature]()
        for side, rows in zip(self.sides, self.frames, strict=True):
            keys = (*side.keys, Key(Column(_UNIT), "cluster"))
            counted = recounted(side, rows.with_columns(pl.Series(unit, drawn.unit)), keys)
            units.append(UnitsOfOneFeature(evaluate_specs(counted, specs, options)[0], unit))
        return _results_of([side.replicates(times) for side in units] for times in drawn.parts)

    @property
    def _both(self) -> pl.DataFrame:
        """The rows with both predictions."""
        rows, others = self.frames
        return rows.hstack(others.select(pl.col(self.predictions).name.prefix("\0other ")).get_columns())


def _features(spec: MetricSpec) -> tuple[Column, ...]:
    """The columns of the feature of a metric; none of a metric of all rows."""
    return spec.by.columns if spec.by else ()


def _results_of(replicates: Iterable[Sequence[Replicates]]) -> Floats:
    """The results of both models in all replicates: an array of models by replicates, metrics and outer groups."""
    blocks: list[Floats] = []
    for sides in replicates:
        shape = (sides[0].times, len(sides[0].evaluated.specs), -1)
        blocks.append(np.stack([side.results.reshape(shape) for side in sides]))
    return np.concatenate(blocks, axis=1)


def share_of_same_rows(metric: Metric | GroupwiseMetric) -> Share | None:
    """The share that a rate is whose denominator does not depend on the prediction; None for any other metric."""
    share = share_of(metric.definition) if isinstance(metric, Metric) else None
    if share is None:
        return None
    cells = {CELLS[name] for name in share.among}
    return share if all(guess is not None and (truth, not guess) in cells for truth, guess in cells) else None


@refuse_unknown_keywords
def compare_models(
    *metrics: Metric | GroupwiseMetric | MetricSet,
    margin: float | Mapping[str, float] | None = None,
    mid_p: bool = True,
    adjust: Literal["holm", "max_t"] = "holm",
) -> ModelComparison:
    """Compare two or more models on the same rows: the change of each metric and disparity from one to the others.

    Rows without one of the predictions are left out for both. Intervals are paired: both models are evaluated again
    without a row, a random part of the rows or, with `cluster`, a whole cluster, so shared errors cancel. For labels,
    half a row is added to each cell; scores and numbers that do not change have no interval. Metrics that a single row
    can change by much, and users' aggregates, have a paired bootstrap. Give `conf_level`, `times` and `seed` in the
    call.

    Args:
        metrics: Metrics of labels, of scores, or of numbers; `one` and `other` are then columns of these.
        margin: The change up to which models are as good as each other, of all metrics or by their names, such as
            `{"accuracy": 0.01}`. It adds the verdict on each change.
        mid_p: Use mid-p-values in McNemar's test (Fagerland et al., 2013), which nearly keep the level and have more
            power; `False` gives the exact test.
        adjust: How limits allow for several models: `"holm"`, by Bonferroni's and Holm's inequalities, or `"max_t"`, by
            the largest of correlated draws of the errors of all models, for hundreds of models of which many are alike.
            It is for metrics from counts of labels and their largest differences between groups (`difference()`), of
            independent rows without weights; all models are compared on the rows with the predictions of all. Limits
            of values (`.one_lower` … `.other_upper`) and of changes each hold for all models together. They are
            normal, about values with half a row more in each cell, and wider for few rows.

    Raises:
        ArgumentError: For metrics of labels and scores together, and for those that rank or compare rows.

    >>> from tidyfair import accuracy
    >>> people = pl.DataFrame({"y": [1, 0, 1, 0], "before": [0, 0, 1, 1], "after": [1, 0, 1, 0]})
    >>> compare_models(accuracy)(people, "y", one="before", other="after").select(".one", ".other", ".change").row(0)
    (0.5, 1.0, 0.5)
    """
    compared = metric_set(*metrics)
    kinds = {formula.kind for spec in compared.specs for _, formula in spec.formulas}
    if len(kinds) > 1:
        msg = "compare_models() cannot compare labels and scores in one call; call it for each."
        raise ArgumentError(msg)
    for spec in compared.specs:
        for name, formula in spec.formulas:
            if any(term.compares_rows for term in formula.all_terms):
                msg = (
                    f"compare_models() cannot compare {name}, in which rows depend on each other; evaluate both models "
                    'with `group_by="query"`, or the column of your lists, and give both to `compare_resamples`.'
                )
                raise ArgumentError(msg)
    if one_of("adjust", adjust, ["holm", "max_t"]) == "max_t":
        check_compared_jointly(compared)
    return ModelComparison(compared, flag("mid_p", mid_p), margins_of(margin, compared), adjust)
