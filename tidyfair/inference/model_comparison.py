"""Comparison of two models on the same rows: the change of each metric, its interval and McNemar's test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.escapes import visible
from tidyfair.evaluation.results import tidy_results
from tidyfair.evaluation.statistics import CELLS
from tidyfair.inference.contingency import mcnemar
from tidyfair.inference.on_data import refuse_points
from tidyfair.inference.unknown_groups import (
    counted_unknown,
    has_unknown,
    may_join,
    with_unknown,
    with_unknown_in_each_group,
)
from tidyfair.intervals.draws import (
    is_of_labels,
    is_stratified,
    label_pairs,
    warn_of_few_clusters,
)
from tidyfair.intervals.left_out import LeftOut, without_parts, without_rows_of_cells
from tidyfair.intervals.proportions import z_value
from tidyfair.intervals.resampling import DRAW, drawn_rows, generator, redrawn
from tidyfair.intervals.shares import Share, share_of
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, columns_of, metric_set
from tidyfair.metrics.fairness import demographic_parity
from tidyfair.notebook_html import display
from tidyfair.specs.aggregates import UserAggregate
from tidyfair.specs.arguments import flag
from tidyfair.specs.columns import Column
from tidyfair.specs.metric_specs import formulas_of
from tidyfair.specs.options import CallOptions, refuse, refuse_unknown_keywords, show_keywords
from tidyfair.specs.signatures import refuse_unknown_settings
from tidyfair.tallies.counting import recounted
from tidyfair.tallies.moments import PREDICTED
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import ESTIMATE, LABELS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.runner import Run
    from tidyfair.specs.forecasts import Prediction, TruthLike
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.groups import By
    from tidyfair.specs.options import Options
    from tidyfair.tallies.source import Source
    from tidyfair.tallies.tally import Key, Tally

__all__ = ["ModelComparison", "compare_models"]

_INTERVAL = (".lower", ".upper", ".std_error")
REFUSED_OF_MODELS = {
    **dict.fromkeys(("probs", "estimate"), ": give the predictions as `one=` and `other=`"),
    **dict.fromkeys(("interval", "explain", "score_bins", "parts", "keep_rows"), ""),
    **dict.fromkeys(
        ("threshold", "top_k", "top_fraction"),
        ': make labels of scores, such as `one=(pl.col("score") >= 0.4).alias("at 0.4")` and '
        '`other=(pl.col("score") >= 0.6).alias("at 0.6")`',
    ),
}
"""The options of metrics that a comparison of models does not accept, and why."""
COMPARISON_CALL = "(data, truth, one=…, other=…)"
_FINDINGS = (".change", ".lower", ".upper", ".p_value", ".limit", ".verdict")
"""The columns that readers look for beside the two values; printed frames show the last ones."""
_ADDED_ROWS = 2.0
"""Rows added for each true label, spread over the cells of both predictions: half a row per cell for two labels."""
_MOST_PAIRS = 100
"""With more pairs of labels no rows are added."""


@dataclass(frozen=True, repr=False)
class ModelComparison:
    """Metrics of two models on the same rows, as a callable on dataframes; made by `compare_models`."""

    metrics: MetricSet
    mid_p: bool = True
    """True where McNemar's p-values are mid-p-values."""

    @refuse_unknown_keywords
    @show_keywords(CallOptions, without=REFUSED_OF_MODELS)
    def __call__(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Compare the predictions `one` with `other`; the remaining arguments are those of a metric.

        Returns:
            One row for each metric and outer group: the values `.one` and `.other`, their `.change` (other minus one)
            with `.lower`, `.upper` and `.std_error` (Bonett and Price, 2012, for rates of the same rows; the jackknife
            for other functions of sums, areas under curves, and their comparisons; else the bootstrap), and McNemar's
            `.p_value` for rates among rows that do not depend on the prediction, such as accuracy, sensitivity and the
            selection rate; null for all others. `.model_one` and `.model_other` are the names of the columns, null for
            several columns of scores.
        """
        paired = self.paired(data, truth, one=one, other=other, **options)
        return paired.source.restore(self.in_reading_order(paired.compared(), one, other))

    @staticmethod
    def in_reading_order(results: pl.DataFrame, one: Prediction, other: Prediction) -> pl.DataFrame:
        """The results with the names of both models, both values at the start and the findings at the end."""
        named = results.with_columns(
            pl.lit(_name_of(one), pl.String).alias(".model_one"),
            pl.lit(_name_of(other), pl.String).alias(".model_other"),
        )
        keys = results.columns[: results.columns.index(".by") + 1]
        findings = [name for name in _FINDINGS if name in results.columns]
        between = [name for name in named.columns if name not in {*keys, ".one", ".other", *findings}]
        return named.select(*keys, ".one", ".other", *between, *findings)

    @refuse_unknown_settings
    def paired(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction,
        **options: Unpack[CallOptions],
    ) -> PairedModels:  # fmt: skip
        """Count the rows with both predictions once, to compare them at several confidence levels."""
        given = [name for name, value in options.items() if value is not None]
        refuse("compare_models()", given, REFUSED_OF_MODELS)
        checked = replace(self.metrics.run.options(options, truth=truth), on_undefined="ignore")
        source = open_frame(data, checked.group_by)
        self._check_other(other, source)
        if checked.cluster is not None or not all(map(is_of_labels, self.metrics.specs)):
            pairs = self._rows(source, one, other, checked)
        else:
            pairs = self._cells(source, one, other, checked)
        notes = options.get("on_undefined", "warn") == "warn"
        if checked.na_rm:
            if notes:
                self.metrics.run.warn_of_missing_predictions(pairs.sides)
            pairs = pairs.complete()
        if notes:
            self.metrics.run.warn_of_unknown_groups(pairs.sides[:1])
        return PairedModels(self, source, pairs, checked)

    def __repr__(self) -> str:
        names = [f"{metric.name}({metric.by!r})" if metric.by else metric.name for metric in self.metrics]
        return visible(f"<ModelComparison of {', '.join(names)}; call it with {COMPARISON_CALL}>")

    def _repr_html_(self) -> str:
        return display("", columns_of(self.metrics), name="ModelComparison", call=COMPARISON_CALL)

    def _check_other(self, other: object, source: Source) -> None:
        """Refuse a second prediction that is not a column, or by which the data are grouped."""
        if not isinstance(other, str | pl.Expr):
            return  # several columns of scores are checked where they are counted
        second = Column.of(other, "other")
        second.check(source.columns, "other")
        features = [spec.by.columns for spec in self.metrics.specs if spec.by]
        if second in (*source.outer, *itertools.chain(*features)):
            msg = f"`other`: the data are grouped by {second.name!r}; give a column of predictions."
            raise ColumnError(msg)

    def _rows(self, source: Source, one: Any, other: Any, options: Options) -> _Rows:
        """Two tallies of the same rows, which are kept."""
        pairs = _Rows(self._kept(source, one, options), self._kept(source, other, options))
        points = [side.forecast and side.forecast.points for side in pairs.sides]
        if points[0] != points[1]:
            msg = f"`one` is of {points[0]} and `other` of {points[1]}; both need the same times or levels."
            raise ColumnError(msg)
        refuse_points("compare_models()", self.metrics.specs, pairs.one)
        scores_of_one, scores_of_other = map(_score_count, pairs.sides)
        if scores_of_one != scores_of_other:
            msg = (
                f"`one` has {scores_of_one} columns of scores and `other` {scores_of_other}; both need the same number."
            )
            raise ColumnError(msg)
        return pairs

    def _kept(self, source: Source, prediction: Any, options: Options) -> Tally:
        """A tally of one of the predictions that keeps its rows."""
        kind = self.metrics.metrics[0].kind
        if kind == "prob" or (kind == "survival" and isinstance(prediction, Mapping)):
            options = replace(options, probs=prediction, keep_rows=True)
        else:
            options = replace(options, estimate=prediction, keep_rows=True)
        return self.metrics.run.count(source, options).on_sides()

    def _cells(self, source: Source, one: Any, other: Any, options: Options) -> _Cells:
        """Counts of which the second prediction is one more key."""
        second = Column.of(other, "other")
        paired = metric_set(*self.metrics, demographic_parity(other, name="\0other"))
        return _Cells(paired.run.count(source, replace(options, estimate=one)).on_sides(), second)

    def _compared(self, pairs: _Cells | _Rows, options: Options) -> pl.DataFrame:
        """The values of both models, their change with its interval, and the p-values."""
        keys = [*pairs.outer, ".metric", ".by"]
        one, other = pairs.sides
        run = self.metrics.run
        (values_of_one,), (values_of_other,) = run.evaluate(one, options), run.evaluate(other, options)
        first = tidy_results(values_of_one, undefined_is_null=False)
        second = tidy_results(values_of_other, undefined_is_null=False)
        results = first.select(*keys, ".estimator", pl.col(".estimate").alias(".one"))
        results = results.with_columns(second[".estimate"].alias(".other"))
        results = results.with_columns((pl.col(".other") - pl.col(".one")).alias(".change"))
        changes = self._changed_rows(pairs, values_of_one, len(results))
        in_closed_form = [self._is_paired_rate(metric) and changes is not None for metric in self.metrics]
        others = [metric for metric, closed in zip(self.metrics, in_closed_form, strict=True) if not closed]
        intervals = [results.select(*keys).clear().with_columns(pl.lit(0.0).alias(name) for name in _INTERVAL)]
        intervals += self._intervals(pairs, others, options)
        results = results.join(
            pl.concat(intervals, how="vertical_relaxed"), on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
        results = _including_change(results)
        if changes is not None:
            results = _with_paired_limits(results, changes, options.conf_level)
        # a single row or cluster does not vary, so it has no interval
        is_lone = lone_results(one, values_of_one) | lone_results(other, values_of_other)
        results = results.with_columns(pl.when(~is_lone).then(name).alias(name) for name in _INTERVAL)
        p_values: list[float | None] = [None] * len(results)
        for index, change in enumerate(changes or ()):
            if change is not None:
                p_values[index] = mcnemar(change.only_one, change.only_other, mid_p=self.mid_p)
        return results.with_columns(pl.Series(".p_value", p_values, dtype=pl.Float64))

    @staticmethod
    def _is_paired_rate(metric: Metric | GroupwiseMetric) -> bool:
        """Check whether a metric is a rate of the same rows for both models."""
        share = share_of(metric.definition) if isinstance(metric, Metric) else None
        return share is not None and _is_of_same_rows(share)

    def _intervals(
        self, pairs: _Cells | _Rows, metrics: Sequence[Metric | GroupwiseMetric], options: Options
    ) -> list[pl.DataFrame]:
        """The intervals of the changes of metrics: by leaving out rows where these are smooth, else by replicates."""
        smooth: dict[By | None, list[Metric | GroupwiseMetric]] = {}
        intervals: list[pl.DataFrame] = []
        for metric in metrics:
            if _is_smooth(metric):
                smooth.setdefault(metric.by, []).append(metric)
            else:
                intervals.append(self._drawn_interval(pairs, metric, options))
        intervals += [self._jackknife(pairs, by, own, options) for by, own in smooth.items()]
        return intervals

    @staticmethod
    def _jackknife(
        pairs: _Cells | _Rows, by: By | None, metrics: Sequence[Metric | GroupwiseMetric], options: Options
    ) -> pl.DataFrame:
        """The intervals of changes by leaving out rows with both predictions."""
        compared = metric_set(*metrics)
        reads_truth = all("truth" in formula.reads for formula in formulas_of(*compared.specs))
        left_out, replicates = pairs.left_out(by, options, reads_truth=reads_truth)
        widths = {metric.name: float(metric.range[1]) - float(metric.range[0]) for metric in metrics}
        width = pl.col(".metric").replace_strict(widths, return_dtype=pl.Float64)
        # shares have the rounding errors of 1, and others those of their values
        size = pl.when(width.is_finite()).then(pl.max_horizontal("size", 1.0)).otherwise("size")
        changes = pl.concat(_changes(compared.run, sides, options, pairs.outer) for sides in replicates)
        changes = changes.with_columns(size.alias("size"))
        limits = left_out.limits(changes, options.conf_level, few_change=isinstance(pairs, _Rows))
        warn_of_few_clusters(pairs.sides[0])
        bounded = limits.with_columns(
            pl.col(".lower").clip(lower_bound=-width), pl.col(".upper").clip(upper_bound=width)
        )
        return bounded.select(*pairs.outer, ".metric", ".by", *_INTERVAL)

    @staticmethod
    def _drawn_interval(pairs: _Cells | _Rows, metric: Metric | GroupwiseMetric, options: Options) -> pl.DataFrame:
        """The bootstrap interval of the change; rows are drawn again with both predictions."""
        by = metric.by.columns if metric.by else ()
        strata = by if is_stratified(metric) else ()
        random = generator(options.seed, "changes")
        times = options.replicates_of_rows if isinstance(pairs, _Rows) else options.replicates
        drawn = pairs.redrawn(by, strata=strata, times=times, random=random)
        changes = pl.concat(_changes(metric.run, sides, options, pairs.outer) for sides in drawn)
        interval = interval_of(pl.col("value"), pairs.sides[0], options.conf_level)
        return changes.drop_nulls("value").group_by(*pairs.outer, ".metric", ".by").agg(interval)

    def _changed_rows(
        self, pairs: _Cells | _Rows, evaluated: Evaluated, results: int
    ) -> list[_ChangedRows | None] | None:
        """The rows that change, for each metric and outer group; None where these are not counts of labels."""
        if isinstance(pairs, _Rows) or evaluated.labels.event is None or pairs.tally.weights is not None:
            return None
        cells = _named_cells(pairs.tally, pairs.second, evaluated)
        outers = range(len(evaluated.group_cells.outer_keys))
        changes: list[_ChangedRows | None] = []
        for metric in self.metrics:
            share = share_of(metric.definition) if isinstance(metric, Metric) else None
            for outer in outers:
                is_paired = share is not None and _is_of_same_rows(share)
                changes.append(_ChangedRows.of(cells.filter(outer=outer), share) if share and is_paired else None)
        return changes if len(changes) == results else None


def _name_of(prediction: object) -> str | None:
    """The name of the column of a prediction; None for predictions of several columns."""
    return Column.of(prediction, "one").name if isinstance(prediction, str | pl.Expr) else None


@dataclass(frozen=True, eq=False)
class PairedModels:
    """The counts of rows with the predictions of two models."""

    comparison: ModelComparison
    source: Source
    pairs: _Cells | _Rows
    options: Options

    def compared(self, conf_level: float | None = None) -> pl.DataFrame:
        """The comparison at a confidence level, or at that of the call."""
        options = self.options if conf_level is None else replace(self.options, conf_level=conf_level)
        return self.comparison._compared(self.pairs, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it is made by the comparison

    def left_out(self) -> pl.DataFrame:
        """The groups that are left out of either model, and why, and those of them outside the policy, in order."""
        run = self.comparison.metrics.run
        sides: list[pl.DataFrame] = []
        for side in self.pairs.sides:
            (values,) = run.evaluate(side, self.options)
            sides.append(tidy_results(values, undefined_is_null=False, explain=True))
        one, other = sides
        names = (".groups_left_out", ".groups_outside")
        either = [one[name].list.set_union(other[name]) for name in names]
        reasons = one[".left_out"].list.concat(other[".left_out"]).list.unique(maintain_order=True)
        return one.select(*self.pairs.outer, ".metric", ".by").with_columns(*either, reasons)

    def has_unknown(self) -> bool:
        """Check whether rows of unknown groups are counted and not compared."""
        return any(map(has_unknown, self.comparison.metrics))

    def unknown(self) -> pl.DataFrame:
        """The rows of unknown groups, which are not compared, `.unknown` and `.unknown_share`, in the same order."""
        compared = self.left_out().drop(".groups_left_out", ".groups_outside", ".left_out")
        return compared.with_columns(counted_unknown(self.pairs.sides[0], self.comparison.metrics, compared))

    def with_unknown_in_each_group(self, by: By) -> Iterator[PairedModels]:
        """The same comparison with the rows of unknown groups in each known group; nothing if these are many."""
        if not may_join(self.pairs.sides[0], by):
            return
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


def _changes(run: Run, sides: Sequence[Tally], options: Options, outer: Sequence[str]) -> pl.DataFrame:
    """The changes of all metrics in each of some replicates, and the size of the larger of both values."""
    one, other = (tidy_results(run.evaluate(side, options)[0], undefined_is_null=False) for side in sides)
    before, after = one[".estimate"], other[".estimate"]
    size = pl.max_horizontal(before.abs(), after.abs())
    return one.select(*outer, DRAW, ".metric", ".by").with_columns(value=after - before, size=size)


def _is_smooth(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a single row changes a metric only a little: functions of sums, and areas under a curve."""
    of_sums = all(formula.input == "sums" or _is_of_areas(formula) for formula in formulas_of(metric))
    return of_sums and not isinstance(metric.aggregate, UserAggregate)


def _is_of_areas(formula: Formula) -> bool:
    """Check whether a formula is an area under a ROC curve, a concordance, or a combination of these."""
    parts = [part for _, part in formula.parts]
    counts_pairs = bool(formula.deviations) or (formula.kind == "survival" and formula.influence is not None)
    return counts_pairs or (bool(parts) and all(map(_is_of_areas, parts)))


def _including_change(results: pl.DataFrame) -> pl.DataFrame:
    """The results with limits that include the changes; null limits for changes without a finite value."""
    change, lower, upper = (pl.col(name) for name in (".change", ".lower", ".upper"))
    known = change.is_finite() & lower.is_not_null() & upper.is_not_null()
    ends = {".lower": pl.min_horizontal(lower, change), ".upper": pl.max_horizontal(upper, change)}
    ends[".std_error"] = pl.col(".std_error")
    return results.with_columns(pl.when(known).then(end).alias(name) for name, end in ends.items())


@dataclass(frozen=True)
class _ChangedRows:
    """The rows in the denominator of a rate, and those that only one of two models counts."""

    only_one: int
    only_other: int
    rows: int

    @classmethod
    def of(cls, cells: pl.DataFrame, share: Share) -> _ChangedRows | None:
        """From the cells of an outer group; None without rows in the denominator."""
        denominator = cells.filter(pl.col("one").is_in(list(share.among)))
        if denominator.is_empty():
            return None
        one, other = pl.col("one").is_in(list(share.holds)), pl.col("other").is_in(list(share.holds))
        only_one = int(denominator.filter(one & ~other)["n"].sum())
        only_other = int(denominator.filter(other & ~one)["n"].sum())
        return cls(only_one, only_other, int(denominator["n"].sum()))

    def limits(self, level: float) -> tuple[float, float, float]:
        """Limits of the change, and its standard error, with a row more of either change (Bonett and Price, 2012)."""
        rows = self.rows + 2
        gained, lost = (self.only_other + 1) / rows, (self.only_one + 1) / rows
        change = gained - lost
        error = math.sqrt((gained + lost - change**2) / rows)
        z = z_value(level)
        observed = (self.only_other - self.only_one) / self.rows
        lower, upper = max(-1.0, change - z * error), min(1.0, change + z * error)
        return min(lower, observed), max(upper, observed), error


def _with_paired_limits(
    results: pl.DataFrame, changes: Sequence[_ChangedRows | None], level: float
) -> pl.DataFrame:  # fmt: skip
    """The results, with the limits of rates of the same rows."""
    rows = [(None, None, None) if change is None else change.limits(level) for change in changes]
    limits = pl.DataFrame(rows, schema=dict.fromkeys((".lower", ".upper", ".std_error"), pl.Float64), orient="row")
    return results.with_columns(pl.coalesce(limits[name], results[name]).alias(name) for name in limits.columns)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Counts of rows by both predictions, of which the second is one of the keys."""

    tally: Tally
    second: Column

    @property
    def outer(self) -> list[str]:
        return [key.column.name for key in self.tally.outer]

    @property
    def sides(self) -> list[Tally]:
        return [_side(self.tally, self.second, swapped=False), _side(self.tally, self.second, swapped=True)]

    def complete(self) -> _Cells:
        """Without the rows that lack one of the predictions."""
        (second,) = self.tally.names([self.second])
        return replace(self, tally=replace(self.tally, cells=self.tally.cells.drop_nulls([ESTIMATE, second])))

    def left_out(self, by: By | None, options: Options, *, reads_truth: bool) -> tuple[LeftOut, Iterator[list[Tally]]]:
        """Replicates without a row of one cell, for both predictions."""
        (second,) = self.tally.names([self.second])
        tally, columns = self.tally, by.columns if by else ()
        if reads_truth:
            tally = replace(tally, cells=tally.cells.drop_nulls(TRUTH))
        first, other = (label_pairs(side, options) for side in self.sides)
        cells = first.join(other.select(pl.col(ESTIMATE).alias(second)).unique(), how="cross")
        if len(first) > _MOST_PAIRS:
            cells = cells.clear()
        rows = _ADDED_ROWS * first[TRUTH].n_unique()
        if by and by.sides:
            # sides are made of many groups
            rows *= min(1.0, 2 / max(1, tally.cells.select(tally.names(columns)).n_unique()))
        left_out, replicates = without_rows_of_cells(
            tally, (*columns, self.second), [TRUTH, ESTIMATE, second], cells, rows
        )
        return left_out, (replace(self, tally=tally).sides for tally in replicates)

    def redrawn(self, by: Sequence[Column], **draws: Any) -> Iterator[list[Tally]]:
        """Bootstrap draws of the cells, for both predictions."""
        for tally in redrawn(self.tally, (*by, self.second), method="bootstrap", **draws):
            yield replace(self, tally=tally).sides


@dataclass(frozen=True, eq=False)
class _Rows:
    """Tallies of the same rows with one prediction and with the other."""

    one: Tally
    other: Tally

    @property
    def outer(self) -> list[str]:
        return [key.column.name for key in self.one.outer]

    @property
    def sides(self) -> list[Tally]:
        return [self.one, self.other]

    @property
    def own(self) -> list[str]:
        """The columns of the predictions."""
        scores = [f"s{index}" for index in range(_score_count(self.one))]
        scores += self.one.forecast.names if self.one.forecast is not None else []
        present = self.one.rows.columns if self.one.rows is not None else ()
        return [name for name in (*scores, ESTIMATE, PREDICTED) if name in present]

    def complete(self) -> _Rows:
        """Without the rows that lack one of the predictions."""
        rows, others = self.one.rows, self.other.rows
        if rows is None or others is None:
            return self
        present = pl.all_horizontal(pl.col(self.own).is_not_null())
        both = rows.select(present).to_series() & others.select(present).to_series()
        if both.all():
            return self
        one = recounted(self.one, rows.filter(both), self.one.keys)
        other = recounted(self.other, others.filter(both), self.other.keys)
        return _Rows(one, other)

    def left_out(
        self,
        by: By | None,
        options: Options,
        *,
        reads_truth: bool,  # noqa: ARG002 - cells need to know
    ) -> tuple[LeftOut, Iterator[list[Tally]]]:
        """Replicates without a part of the rows, or a cluster, for both predictions."""
        random = generator(options.seed, "parts")
        left_out, replicates = without_parts(self.one, self._both, by.columns if by else (), random)
        return left_out, (self._split(drawn, keys) for drawn, keys in replicates)

    def redrawn(self, by: Sequence[Column], **draws: Any) -> Iterator[list[Tally]]:
        """Bootstrap draws of the rows, for both predictions."""
        for drawn, keys in drawn_rows(self.one, self._both, by, **draws):
            yield self._split(drawn, keys)

    @property
    def _names_of_other(self) -> dict[str, str]:
        """The names of the other predictions beside the first ones."""
        return {name: f"\0other {name}" for name in self.own}

    @property
    def _both(self) -> pl.DataFrame:
        """The rows with both predictions."""
        rows, others = self.one.rows, self.other.rows
        if rows is None or others is None:
            msg = "models are compared row by row, and no rows were kept"
            raise AssertionError(msg)
        return rows.hstack(others.select(self.own).rename(self._names_of_other).get_columns())

    def _split(self, both: pl.DataFrame, keys: tuple[Key, ...]) -> list[Tally]:
        """The tallies of either prediction."""
        own_names = {renamed: name for name, renamed in self._names_of_other.items()}
        first = both.drop(*own_names)
        second = both.drop(self.own).rename(own_names).select(first.columns)
        return [recounted(self.one, first, keys), recounted(self.other, second, keys)]


def _score_count(tally: Tally) -> int:
    return len(tally.scores.columns) if tally.scores else 0


def _is_of_same_rows(share: Share) -> bool:
    """Check whether the denominator of a rate does not depend on the prediction."""
    cells = {CELLS[name] for name in share.among}
    return all(guess is not None and (truth, not guess) in cells for truth, guess in cells)


def _named_cells(tally: Tally, second: Column, evaluated: Evaluated) -> pl.DataFrame:
    """The cells of both predictions by outer group: the name of the cell for `one` and for `other`."""
    names = tally.names([key.column for key in tally.outer])
    (of_second,) = tally.names([second])
    event = evaluated.labels.values[evaluated.labels.event or 0]
    cells = tally.cells.drop_nulls([ESTIMATE, of_second])
    if cells.is_empty():
        # the kind of labels need not be that of the event
        return cells.select(pl.lit(0).alias("outer"), pl.lit("").alias("one"), pl.lit("").alias("other"), "n").clear()
    keys = evaluated.group_cells.outer_keys
    if names:
        outer = keys.rename(dict(zip(keys.columns, names, strict=True))).with_row_index("outer")
        cells = cells.join(outer, on=names, how="left", nulls_equal=True)
    else:
        cells = cells.with_columns(pl.lit(0).alias("outer"))
    is_true = pl.col(TRUTH) == event
    one = _cell_name(is_true, pl.col(ESTIMATE) == event).alias("one")
    other = _cell_name(is_true, pl.col(of_second) == event).alias("other")
    return cells.select("outer", one, other, "n")


def _cell_name(is_true: pl.Expr, is_predicted: pl.Expr) -> pl.Expr:
    """The name of the cell of a truth and a prediction, of which either may be null."""
    names: list[pl.Expr] = []
    for name, (truth, guess) in CELLS.items():
        is_cell = is_true.eq_missing(pl.lit(truth)) & is_predicted.eq_missing(pl.lit(guess))
        names.append(pl.when(is_cell).then(pl.lit(name)))
    return pl.coalesce(names)


def _side(tally: Tally, second: Column, *, swapped: bool) -> Tally:
    """The tally of one of the predictions."""
    (of_second,) = tally.names([second])
    keys = tuple(key for key in tally.keys if key.column != second)
    old = tally.names([key.column for key in keys])
    cells = tally.cells.with_columns(pl.col(of_second).alias(ESTIMATE)) if swapped else tally.cells
    sums = [name for name in ("n", "w", "w2") if name in cells.columns]
    named = [pl.col(name).alias(f"k{index}") for index, name in enumerate(old)]
    pooled = cells.group_by(*named, *LABELS).agg(pl.col(sums).sum())
    return replace(tally, cells=pooled, keys=keys, estimate=second if swapped else tally.estimate)


@refuse_unknown_keywords
def compare_models(*metrics: Metric | GroupwiseMetric | MetricSet, mid_p: bool = True) -> ModelComparison:
    """Compare two models on the same rows: the change of each metric and disparity from one to the other.

    Rows without one of the predictions are left out for both. Intervals are paired: both models are evaluated again
    without a row, a random part of the rows or, with `cluster`, a whole cluster, so shared errors cancel. For labels,
    half a row is added to each cell; scores and numbers that do not change have no interval. Metrics that a single row
    can change by much, and users' aggregates, have a paired bootstrap. Give `conf_level`, `times` and `seed` in the
    call.

    Args:
        metrics: Metrics of labels, of scores, or of numbers; `one` and `other` are then columns of these.
        mid_p: Use mid-p-values in McNemar's test (Fagerland et al., 2013), which nearly keep the level and have more
            power; `False` gives the exact test.

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
    return ModelComparison(compared, flag("mid_p", mid_p))
