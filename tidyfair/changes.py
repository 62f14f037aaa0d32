"""Two models on the same rows: what changes, for whom, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.columns import Column
from tidyfair.draws import is_stratified
from tidyfair.errors import ArgumentError
from tidyfair.evaluations import DEFAULTS
from tidyfair.fairness import demographic_parity
from tidyfair.frames import open_frame
from tidyfair.intervals import share_of
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.proportions import mcnemar
from tidyfair.replicates import DRAW, generator, redrawn
from tidyfair.results import tidy_results
from tidyfair.tallies import ESTIMATE, LABELS, TRUTH
from tidyfair.uncertainty import check_reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidyfair.columns import ColumnLike
    from tidyfair.evaluations import Evaluated, Reading
    from tidyfair.tallies import Tally

__all__ = ["ModelComparison", "compare_models"]

_WHEN_RIGHT = {True: ("tp", "fn"), False: ("fp", "tn")}
"""The cell of a row by whether it has the event, and whether it is predicted or not."""


@dataclass(frozen=True)
class ModelComparison:
    """Metrics of two models on the same rows, as a callable on dataframes; made by `compare_models`."""

    metrics: MetricSet

    def __call__(
        self, data: Any, truth: ColumnLike | None = None, *, one: ColumnLike, other: ColumnLike, **options: Any
    ) -> Any:
        """Compare the predictions `one` with those of `other`; the rest is what a metric takes.

        Returns:
            One row for each metric and outer group: the values `.one` and `.other`, their `.change` (other minus one)
            with `.lower`, `.upper` and `.std_error`, and of rates of the same rows `.p_value` (McNemar's, exact).
        """
        for name in ("probs", "interval", "explain", "score_bins"):
            if options.get(name) is not None:
                msg = f"compare_models() compares predicted labels, and takes no `{name}`."
                raise ArgumentError(msg)
        reading: Reading = cast("Any", {**DEFAULTS, **{name: options[name] for name in options if name in DEFAULTS}})
        reading["on_undefined"] = "ignore"
        check_reading(reading)
        counting = {name: value for name, value in options.items() if name not in DEFAULTS}
        # the second prediction is one more key of the cells
        second = Column.of(other, "other")
        paired = metric_set(*self.metrics, demographic_parity(other, name="\0other"))
        tally = paired.tally(data, truth, one, **counting)
        found = self._compared(tally, second, reading)
        return open_frame(data, options.get("group_by")).restore(found)

    def _compared(self, tally: Tally, second: Column, reading: Reading) -> pl.DataFrame:
        outer = [key.column.name for key in tally.outer]
        about = [*outer, ".metric", ".by"]
        sides = [_side(tally, second, swapped=swapped) for swapped in (False, True)]
        evaluated = [self.metrics.evaluate(side, reading)[0] for side in sides]
        first, other = (tidy_results(each, undefined_is_null=False) for each in evaluated)
        values = first.select(*about, ".estimator", pl.col(".estimate").alias(".one")).with_columns(
            other[".estimate"].alias(".other")
        )
        spread = pl.concat([self._spread(tally, second, metric, reading) for metric in self.metrics])
        found = values.with_columns((pl.col(".other") - pl.col(".one")).alias(".change"))
        found = found.join(spread, on=about, how="left", nulls_equal=True, maintain_order="left")
        p_values = self._mcnemar(tally, second, evaluated[0])
        return found.with_columns(pl.Series(".p_value", p_values, dtype=pl.Float64))

    def _spread(self, tally: Tally, second: Column, metric: Metric | GroupwiseMetric, reading: Reading) -> pl.DataFrame:
        """The quantiles of the change when rows, with both predictions, are drawn again."""
        (request,) = metric.requests
        by = request.by.columns if request.by else ()
        random = generator(reading["seed"], f"{request.name} {request.by and request.by.text}")
        parts = list[pl.DataFrame]()
        strata = by if is_stratified(request) else ()
        outer = [key.column.name for key in tally.outer]
        for drawn in redrawn(
            tally, (*by, second), strata=strata, times=reading["times"], random=random, way="bootstrap"
        ):
            one, other = (
                tidy_results(
                    metric.evaluate(_side(drawn, second, swapped=swapped), reading)[0], undefined_is_null=False
                )
                for swapped in (False, True)
            )
            change = (other[".estimate"] - one[".estimate"]).alias("change")
            parts.append(one.select(*outer, DRAW, ".metric", ".by").with_columns(change).drop_nulls("change"))
        tail, value = (1 - reading["conf_level"]) / 2, pl.col("change")
        return pl.concat(parts).group_by(*outer, ".metric", ".by").agg(
            value.quantile(tail, "linear").alias(".lower"), value.quantile(1 - tail, "linear").alias(".upper"),
            value.std().alias(".std_error"),
        )  # fmt: skip

    def _mcnemar(self, tally: Tally, second: Column, evaluated: Evaluated) -> list[float | None]:
        """Exact tests of whether one prediction is right more often, for rates whose rows do not depend on it."""
        outers = len(evaluated.units.outer_keys)
        event, found = evaluated.labels.event, list[float | None]()
        cells = _placed(tally, second, evaluated) if event is not None and tally.weights is None else None
        for metric in self.metrics:
            share = share_of(metric.definition) if isinstance(metric, Metric) else None
            same = share is not None and share.among in _SAME_ROWS
            for outer in range(outers):
                if cells is None or share is None or not same:
                    found.append(None)
                    continue
                mine = cells.filter((pl.col("outer") == outer) & pl.col("one").is_in(list(share.among)))
                holds = (pl.col(name).is_in(list(share.holds)) for name in ("one", "other"))
                differ = mine.group_by([each.alias(name) for each, name in zip(holds, ("a", "b"), strict=True)]).agg(
                    pl.col("n").sum()
                )
                more = {(a, b): n for a, b, n in differ.rows()}
                found.append(mcnemar(more.get((True, False), 0), more.get((False, True), 0)))
        return found


_SAME_ROWS = (frozenset({"tp", "fn"}), frozenset({"fp", "tn"}), frozenset({"tp", "fn", "fp", "tn"}))
"""What rates are among that does not depend on the prediction."""


def _placed(tally: Tally, second: Column, evaluated: Evaluated) -> pl.DataFrame:
    """The cells of both predictions by outer group: the name of the cell for `one` and for `other`."""
    names = tally.names([key.column for key in tally.outer])
    (place,) = tally.names([second])
    event = evaluated.labels.values[evaluated.labels.event or 0]
    cells = tally.cells.drop_nulls([TRUTH, ESTIMATE, place])
    keys = evaluated.units.outer_keys
    if names:
        shown = dict(zip(keys.columns, names, strict=True))
        outer = keys.rename(shown).with_row_index("outer")
        cells = cells.join(outer, on=names, how="left", nulls_equal=True)
    else:
        cells = cells.with_columns(pl.lit(0).alias("outer"))

    def cell(column: str) -> pl.Expr:
        truth, guess = pl.col(TRUTH) == event, pl.col(column) == event
        right = pl.when(guess).then(pl.lit("tp")).otherwise(pl.lit("fn"))
        return pl.when(truth).then(right).when(guess).then(pl.lit("fp")).otherwise(pl.lit("tn"))

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

    Rows are drawn again with both their predictions (a paired bootstrap of the cells), so that what both models share
    cancels. `conf_level`, `times` and `seed` are given with the call.

    Args:
        metrics: Metrics of labels.

    Raises:
        ArgumentError: For metrics of scores or numbers.

    >>> from tidyfair import accuracy
    >>> people = pl.DataFrame({"y": [1, 0, 1, 0], "before": [0, 0, 1, 1], "after": [1, 0, 1, 0]})
    >>> compare_models(accuracy)(people, "y", one="before", other="after").select(".one", ".other", ".change").row(0)
    (0.5, 1.0, 0.5)
    """
    made: Sequence[Any] = list(metric_set(*metrics))
    for metric in made:
        if metric.kind != "class" or any(formula.all_terms for _, formula in metric.requests[0].formulas):
            msg = f"compare_models() compares predicted labels, and {metric.name} reads more than these."
            raise ArgumentError(msg)
    return ModelComparison(metric_set(*made))
