"""Two models on the same rows: what changes, for whom, and how sure that is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation.results import tidy_results
from tidyfair.evaluation.statistics import CELLS
from tidyfair.intervals.analytic import Share, share_of
from tidyfair.intervals.bootstrap import interval_of, is_of_labels, is_stratified, lone_results
from tidyfair.intervals.proportions import mcnemar
from tidyfair.intervals.resampling import DRAW, drawn_rows, generator, redrawn
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.fairness import demographic_parity
from tidyfair.specs.columns import Column
from tidyfair.specs.options import refuse
from tidyfair.tallies.counting import recounted
from tidyfair.tallies.moments import PREDICTED
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import ESTIMATE, LABELS, TRUTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.options import Options
    from tidyfair.tallies.source import Source
    from tidyfair.tallies.tally import Tally

__all__ = ["ModelComparison", "compare_models"]

_SPREAD = (".lower", ".upper", ".std_error")
_NOT_TAKEN = {
    **dict.fromkeys(("probs", "estimate"), ": predictions are `one=` and `other=`"),
    **dict.fromkeys(("interval", "explain", "score_bins", "parts", "keep_rows"), " of its own"),
    **dict.fromkeys(
        ("threshold", "top_k", "top_fraction"),
        ': make labels of scores first, such as `(pl.col("score") >= 0.5).alias("decision")` for each model',
    ),
}
"""What a call of the metrics takes, and a comparison of models does not, and why."""


@dataclass(frozen=True)
class ModelComparison:
    """Metrics of two models on the same rows, as a callable on dataframes; made by `compare_models`."""

    metrics: MetricSet

    def __call__(
        self, data: Any, truth: ColumnLike | None = None, *, one: ColumnLike, other: ColumnLike, **keywords: Any
    ) -> Any:
        """Compare the predictions `one` with those of `other`; the rest is what a metric takes.

        Returns:
            One row for each metric and outer group: the values `.one` and `.other`, their `.change` (other minus one)
            with `.lower`, `.upper` and `.std_error`, and the `.p_value` (McNemar's, exact) of rates among rows that do
            not depend on the prediction, such as accuracy, sensitivity and the selection rate; null of all others.
        """
        refuse("compare_models()", [name for name, value in keywords.items() if value is not None], _NOT_TAKEN)
        options = replace(self.metrics.run.options(keywords, truth=truth), on_undefined="ignore")
        source = open_frame(data, options.group_by)
        self._check_other(other, source)
        if options.cluster is not None or not all(map(is_of_labels, self.metrics.specs)):
            pairs = self._rows(source, one, other, options)
        else:
            pairs = self._cells(source, one, other, options)
        if options.na_rm:
            pairs = pairs.complete()
        return source.restore(self._compared(pairs, options))

    def _check_other(self, other: object, source: Source) -> None:
        """Refuse a second prediction that is no column, or one by which the data are grouped."""
        if not isinstance(other, str | pl.Expr):
            return  # several columns of scores are checked where they are counted
        second = Column.of(other, "other")
        second.check(source.columns, "other")
        features = [spec.by.columns for spec in self.metrics.specs if spec.by]
        if second in (*source.outer, *itertools.chain(*features)):
            msg = f"`other`: {second.name!r} is what the data are grouped by, and no prediction."
            raise ColumnError(msg)

    def _rows(self, source: Source, one: ColumnLike, other: ColumnLike, options: Options) -> _Rows:
        """Two tallies of the same rows, which are kept."""
        pairs = _Rows(self._kept(source, one, options), self._kept(source, other, options))
        scores = [len(side.scores.columns) if side.scores else 0 for side in pairs.sides]
        if scores[0] != scores[1]:
            msg = f"`one` has {scores[0]} columns of scores and `other` {scores[1]}; both need the same."
            raise ColumnError(msg)
        return pairs

    def _kept(self, source: Source, prediction: ColumnLike, options: Options) -> Tally:
        """A tally of one of the predictions that keeps its rows."""
        if self.metrics.metrics[0].kind == "prob":
            options = replace(options, probs=prediction, keep_rows=True)
        else:
            options = replace(options, estimate=prediction, keep_rows=True)
        return self.metrics.run.count(source, options).on_sides()

    def _cells(self, source: Source, one: ColumnLike, other: ColumnLike, options: Options) -> _Cells:
        """Counts of which the second prediction is one more key."""
        second = Column.of(other, "other")
        paired = metric_set(*self.metrics, demographic_parity(other, name="\0other"))
        return _Cells(paired.run.count(source, replace(options, estimate=one)).on_sides(), second)

    def _compared(self, pairs: _Cells | _Rows, options: Options) -> pl.DataFrame:
        about = [*pairs.outer, ".metric", ".by"]
        evaluated = [self.metrics.run.evaluate(side, options)[0] for side in pairs.sides]
        first, other = (tidy_results(each, undefined_is_null=False) for each in evaluated)
        values = first.select(*about, ".estimator", pl.col(".estimate").alias(".one")).with_columns(
            other[".estimate"].alias(".other")
        )
        spread = pl.concat([self._spread(pairs, metric, options) for metric in self.metrics])
        found = values.with_columns((pl.col(".other") - pl.col(".one")).alias(".change"))
        found = found.join(spread, on=about, how="left", nulls_equal=True, maintain_order="left")
        one, other = (lone_results(side, each) for side, each in zip(pairs.sides, evaluated, strict=True))
        found = found.with_columns(pl.when(~(one | other)).then(name).alias(name) for name in _SPREAD)
        p_values = self._mcnemar(pairs, evaluated[0]) if isinstance(pairs, _Cells) else [None] * len(found)
        return found.with_columns(pl.Series(".p_value", p_values, dtype=pl.Float64))

    @staticmethod
    def _spread(pairs: _Cells | _Rows, metric: Metric | GroupwiseMetric, options: Options) -> pl.DataFrame:
        """The quantiles of the change when rows, with both predictions, are drawn again."""
        by = metric.by.columns if metric.by else ()
        random = generator(options.seed, f"{metric.name} {metric.by and metric.by.text}")
        parts = list[pl.DataFrame]()
        strata = by if is_stratified(metric) else ()
        outer = pairs.outer
        for sides in pairs.redrawn(by, strata=strata, times=options.times, random=random):
            one, other = (
                tidy_results(metric.run.evaluate(side, options)[0], undefined_is_null=False) for side in sides
            )
            change = (other[".estimate"] - one[".estimate"]).alias("change")
            parts.append(one.select(*outer, DRAW, ".metric", ".by").with_columns(change).drop_nulls("change"))
        told = interval_of(pl.col("change"), pairs.sides[0], options.conf_level)
        return pl.concat(parts).group_by(*outer, ".metric", ".by").agg(told)

    def _mcnemar(self, pairs: _Cells, evaluated: Evaluated) -> list[float | None]:
        """Exact tests of whether one prediction is right more often, for rates whose rows do not depend on it."""
        outers = len(evaluated.group_cells.outer_keys)
        event, found = evaluated.labels.event, list[float | None]()
        tally = pairs.tally
        cells = _placed(tally, pairs.second, evaluated) if event is not None and tally.weights is None else None
        for metric in self.metrics:
            share = share_of(metric.definition) if isinstance(metric, Metric) else None
            for outer in range(outers):
                if cells is None or share is None or not _is_of_same_rows(share):
                    found.append(None)
                    continue
                mine = cells.filter((pl.col("outer") == outer) & pl.col("one").is_in(list(share.among)))
                holds = (pl.col(name).is_in(list(share.holds)) for name in ("one", "other"))
                if mine.is_empty():
                    found.append(None)
                    continue
                differ = mine.group_by([each.alias(name) for each, name in zip(holds, ("a", "b"), strict=True)]).agg(
                    pl.col("n").sum()
                )
                more = {(a, b): n for a, b, n in differ.rows()}
                found.append(mcnemar(more.get((True, False), 0), more.get((False, True), 0)))
        return found


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
        return [_side(self.tally, self.second, swapped=swapped) for swapped in (False, True)]

    def complete(self) -> _Cells:
        """Without the rows that lack one of the predictions."""
        (place,) = self.tally.names([self.second])
        return replace(self, tally=replace(self.tally, cells=self.tally.cells.drop_nulls([ESTIMATE, place])))

    def redrawn(self, by: Sequence[Column], **how: Any) -> Iterator[list[Tally]]:
        for each in redrawn(self.tally, (*by, self.second), way="bootstrap", **how):
            yield replace(self, tally=each).sides


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
        scores = [f"s{place}" for place in range(len(self.one.scores.columns) if self.one.scores else 0)]
        names = set(self.one.rows.columns if self.one.rows is not None else ())
        return [name for name in (*scores, ESTIMATE, PREDICTED) if name in names]

    def complete(self) -> _Rows:
        """Without the rows that lack one of the predictions."""
        rows, others = self.one.rows, self.other.rows
        if rows is None or others is None:
            return self
        there = pl.all_horizontal(pl.col(self.own).is_not_null())
        both = rows.select(there).to_series() & others.select(there).to_series()
        if both.all():
            return self
        return _Rows(
            *(recounted(each, of.filter(both), each.keys) for each, of in ((self.one, rows), (self.other, others)))
        )

    def redrawn(self, by: Sequence[Column], **how: Any) -> Iterator[list[Tally]]:
        rows, others, own = self.one.rows, self.other.rows, self.own
        if rows is None or others is None:
            return
        apart = {name: f"\0other {name}" for name in own}
        both = rows.hstack(others.select(own).rename(apart).get_columns())
        for drawn, keys in drawn_rows(self.one, both, by, **how):
            plain = drawn.drop(*apart.values())
            second = drawn.drop(own).rename({name: mine for mine, name in apart.items()}).select(plain.columns)
            yield [recounted(self.one, plain, keys), recounted(self.other, second, keys)]


def _is_of_same_rows(share: Share) -> bool:
    """Whether it does not depend on the prediction, which it reads, which rows a rate is about."""
    cells = {CELLS[name] for name in share.among}
    return all(guess is not None and (truth, not guess) in cells for truth, guess in cells)


def _placed(tally: Tally, second: Column, evaluated: Evaluated) -> pl.DataFrame:
    """The cells of both predictions by outer group: the name of the cell for `one` and for `other`."""
    names = tally.names([key.column for key in tally.outer])
    (place,) = tally.names([second])
    event = evaluated.labels.values[evaluated.labels.event or 0]
    cells = tally.cells.drop_nulls([ESTIMATE, place])
    if cells.is_empty():
        # the kind of labels need not be that of the event
        return cells.select(pl.lit(0).alias("outer"), pl.lit("").alias("one"), pl.lit("").alias("other"), "n").clear()
    keys = evaluated.group_cells.outer_keys
    if names:
        shown = dict(zip(keys.columns, names, strict=True))
        outer = keys.rename(shown).with_row_index("outer")
        cells = cells.join(outer, on=names, how="left", nulls_equal=True)
    else:
        cells = cells.with_columns(pl.lit(0).alias("outer"))

    def cell(column: str) -> pl.Expr:
        sides = pl.col(TRUTH) == event, pl.col(column) == event
        of_cells = {
            name: pl.all_horizontal(side.eq_missing(pl.lit(value)) for side, value in zip(sides, values, strict=True))
            for name, values in CELLS.items()
        }
        return pl.coalesce(pl.when(there).then(pl.lit(name)) for name, there in of_cells.items())

    return cells.select("outer", cell(ESTIMATE).alias("one"), cell(place).alias("other"), "n")


def _side(tally: Tally, second: Column, *, swapped: bool) -> Tally:
    """The tally of one of the predictions."""
    (place,) = tally.names([second])
    keys = tuple(key for key in tally.keys if key.column != second)
    old = tally.names([key.column for key in keys])
    cells = tally.cells.with_columns(pl.col(place).alias(ESTIMATE)) if swapped else tally.cells
    sums = [name for name in ("n", "w", "w2") if name in cells.columns]
    named = [pl.col(name).alias(f"k{index}") for index, name in enumerate(old)]
    pooled = cells.group_by(*named, *LABELS).agg(pl.col(sums).sum())
    return replace(tally, cells=pooled, keys=keys, estimate=second if swapped else tally.estimate)


def compare_models(*metrics: Metric | GroupwiseMetric | MetricSet) -> ModelComparison:
    """Compare two models on the same rows: how much each metric and disparity changes from one to the other.

    Rows that lack one of the predictions are left out of both. Rows are drawn again with both, so that what both models
    share cancels: a paired bootstrap of the cells for metrics of labels, else of the rows, or of whole clusters with
    `cluster`. `conf_level`, `times` and `seed` are given with the call.

    Args:
        metrics: Metrics of labels, of scores, or of numbers; `one` and `other` are then columns of these.

    Raises:
        ArgumentError: For metrics of labels and scores together.

    >>> from tidyfair import accuracy
    >>> people = pl.DataFrame({"y": [1, 0, 1, 0], "before": [0, 0, 1, 1], "after": [1, 0, 1, 0]})
    >>> compare_models(accuracy)(people, "y", one="before", other="after").select(".one", ".other", ".change").row(0)
    (0.5, 1.0, 0.5)
    """
    made: Sequence[Any] = list(metric_set(*metrics))
    kinds = {formula.kind for metric in made for _, formula in metric.formulas}
    if len(kinds) > 1:
        msg = "compare_models() compares labels or scores, not both at once; call it for each."
        raise ArgumentError(msg)
    return ModelComparison(metric_set(*made))
