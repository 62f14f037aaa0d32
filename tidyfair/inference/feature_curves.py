"""Curves of a metric over a continuous feature, by local smoothing of the counts and sums that it is made of.

A fine bin of the feature is a group, and a point of the curve is the metric of a weighted sum of bins: of weights that
fit a parabola to each count near the point, so that neither the ends of the feature nor a bend draw the curve away (the
bias correction of a local line: Calonico et al., 2014). What a row adds to these sums is known, and so is its influence
on the value (Jaeckel, 1972): the influences on all points together give the band that holds all of the curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.calling import Metric, Run
from tidyfair.errors import ArgumentError, in_short
from tidyfair.evaluation import Evaluated, GroupIndex, KeyCodes, sums_of, values_of
from tidyfair.inference.on_data import CalledOnData, refuse_several_cuts
from tidyfair.inference.result_frames import frame_of_outer_groups, outer_keys_of, schema_of
from tidyfair.intervals import Shares, generator, share_of, z_value
from tidyfair.metrics.regression import mean_truth
from tidyfair.specs import (
    ALL_GROUPS,
    Array,
    Bins,
    Column,
    Floats,
    Options,
    is_list,
    number,
    refuse_unknown_keywords,
)
from tidyfair.specs.result_kinds import FEATURE_CURVE, ResultKind
from tidyfair.tallies import EXTREMES, Tally, open_frame, reduction_of

__all__ = ["FeatureCurve", "feature_curve"]

_FINE, _POINTS, _ENDS = 200, 50, (0.025, 0.975)
"""Bins that the feature is counted in, points of the curve, and the quantiles between which these are."""
_SPAN, _FEWEST, _DISTINCT = 1.5, 50, 5
"""The rows near a point, as a factor of n^(4/5); the fewest rows near it, and the fewest values of the feature."""
_STEP = 1e-3
"""The part of the weights of a point by which a cell is moved for a derivative."""
_DRAWS = 10_000
_TINY = 1e-300
_SHOWN = schema_of(FEATURE_CURVE)
_REFUSED = {
    **dict.fromkeys(("interval", "explain", "times", "score_bins", "keep_rows"), ": its band has a method of its own"),
    "on_undefined": ": a point without a value is null",
}


@dataclass(frozen=True, repr=False)
class FeatureCurve(CalledOnData):
    """A metric over a continuous feature, as a callable on dataframes; made by `feature_curve`."""

    subject: ClassVar[str] = "feature_curve()"
    kind: ClassVar[ResultKind] = FEATURE_CURVE
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metric: Metric
    feature: str
    at: tuple[float, ...] = ()
    span: float | None = None
    bins: Bins | None = None
    """The fine bins of the data."""
    centres: tuple[float, ...] = ()
    """The mean of the feature in each of them."""

    @property
    def _run(self) -> Run:
        return self.metric.difference(self.bins or self.feature).with_policy(ALL_GROUPS).run

    def _reading(self, columns: Any) -> FeatureCurve:
        return replace(self, metric=self.metric.reading(columns))

    def _counting_options(self, options: Options) -> Options:
        # sums vary within bins
        return options if options.cluster is not None else options.in_own_parts

    def _on_data(self, data: Any, truth: Any, estimate: Any, keywords: Mapping[str, Any]) -> Any:
        source = open_frame(data, keywords.get("group_by"))
        ends = source.quantiles(self.feature, [step / _FINE for step in range(_FINE + 1)])
        if None in ends:
            msg = f"feature_curve(): the column {self.feature!r} has no numbers."
            raise ArgumentError(msg)
        edges = sorted(set(map(float, ends)))
        bins = Bins(self.feature, "\0fine", tuple(map(str, range(len(edges) + 1))), tuple(edges))
        means = mean_truth.difference(bins).with_policy(ALL_GROUPS)
        of_bins = means.run.groups_of(
            means.tally(source.frame, self.feature, self.feature), Options(on_undefined="ignore")
        )
        known = dict(of_bins.select(".group", ".estimate").rows())
        centres = tuple(known.get(label, np.nan) for label in bins.labels)
        low, high = map(float, source.quantiles(self.feature, _ENDS))
        at = self.at or tuple(low + (high - low) * step / (_POINTS - 1) for step in range(_POINTS))
        binned = replace(self, bins=bins, centres=centres, at=at)
        return super(FeatureCurve, binned)._on_data(data, truth, estimate, keywords)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        refuse_several_cuts(self.subject, tally)
        (evaluated,) = self._run.evaluate(tally, options, are_features=False)
        return frame_of_outer_groups(outer_keys_of(evaluated), _SHOWN, enumerate(self._curves(evaluated, options)))

    def _curves(self, evaluated: Evaluated, options: Options) -> Iterator[dict[str, Any]]:
        """The curve of each outer group."""
        evaluator, tally = evaluated.evaluator, evaluated.evaluator.tally
        ((requested, table),) = evaluator.tables.items()
        cells, codes = np.arange(tally.cells.height), KeyCodes(tally.cells)
        sums = sums_of(
            table, requested.formula.all_terms, evaluator.cells, GroupIndex(cells, cells), evaluator.reading
        )  # fmt: skip
        fine = tally.keys_of_cells([Column(self.bins or self.feature)]).to_series().to_physical()
        x = np.array([*self.centres, np.nan])[fine.fill_null(len(self.centres)).to_numpy()]
        weight, squares = (evaluator.cells.measure(name).astype(float) for name in ("w", "w2"))
        clusters = tally.names([key.column for key in tally.clusters])
        outer, unit = codes.index(tally.outer_names).of_cell, codes.index(clusters).of_cell
        low, high = self.metric.range
        for group in range(len(evaluated.group_cells.outer_keys)):
            own = np.flatnonzero((outer == group) & ~np.isnan(x))
            local = {name: values[own].astype(float) for name, values in sums.items()}
            fits = [_Fit.of(point, x[own], weight[own], self.span) for point in self.at]
            near = np.stack([fit.weights for fit in fits])
            points = _summed(local, near)
            values = values_of(requested.formula, requested.average, points)
            influence = np.zeros(near.shape)
            for point, fit in enumerate(fits):
                step = _STEP * near[point].max()
                above, below = (
                    values_of(requested.formula, requested.average, _moved(points, local, point, away)).estimate[:, 0]
                    for away in (step, -step)
                )
                influence[point] = fit.influence((above - below) / (2 * step), weight[own])
            if clusters:
                influence = np.stack([np.bincount(unit[own], row, int(unit.max()) + 1) for row in influence])
            else:
                # the rows of a cell are alike
                influence *= np.sqrt(squares[own]) / np.maximum(weight[own], _TINY)
            with np.errstate(all="ignore"):
                rows = (near @ weight[own]) ** 2 / (near**2 @ squares[own])
                influence *= np.sqrt(rows / (rows - 1))[:, None]
                error = np.sqrt((influence**2).sum(axis=1))
                error[error == 0] = np.nan
                estimate = values.estimate[:, 0].clip(low, high)
                # a parabola says nothing beyond the rows that it is fitted to
                at = np.array(self.at)
                estimate[(at < x[own].min()) | (at > x[own].max())] = np.nan
                factor = _factor((influence / error[:, None])[np.isfinite(error)], options.conf_level, options.seed)
                lower, upper = (estimate - factor * error).clip(low), (estimate + factor * error).clip(max=high)
                if share_of(requested.formula) is not None:
                    # as many rows as the error is of, and no more than there are; half a row more at either end
                    counted = rows * values.denominator[:, 0] / values.rows[:, 0]
                    share = (estimate * counted + 0.5) / (counted + 1)
                    of_error = np.fmin(counted, share * (1 - share) / error**2)
                    lower, upper = Shares(estimate, of_error, are_far=np.ones(len(estimate), dtype=bool)).limits(factor)
            yield {
                ".metric": self.metric.name, ".by": self.feature, ".at": list(self.at), ".estimate": estimate,
                ".lower": lower, ".upper": upper, ".std_error": error, ".effective_n": rows,
            }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Fit:
    """A parabola that is fitted near a point of the feature, to any count or sum of rows."""

    kernel: Floats
    """How near a cell is, from 0 to 1."""
    powers: Floats
    """The distance of each cell to the power of 0, 1 and 2: cells by powers."""
    inverse: Floats
    """The inverse of the moments of these."""

    @classmethod
    def of(cls, point: float, x: Floats, weight: Floats, span: float | None) -> _Fit:
        """The fit to the rows of cells with some values of the feature."""
        rows, away = weight.sum(), np.abs(x - point)
        share = span or max(_SPAN * rows**-0.2, _FEWEST / rows)
        order = np.argsort(away)
        reached = min(int((np.cumsum(weight[order]) < share * rows).sum()), len(x) - 1)
        width = max(away[order[reached]], np.sort(np.abs(np.unique(x) - point))[:_DISTINCT].max(), _TINY)
        kernel = (1 - np.minimum(away / width, 1) ** 3) ** 3
        powers = ((x - point) / width)[:, None] ** np.arange(3)
        moments: Any = (powers * (kernel * weight)[:, None]).T @ powers
        return cls(kernel, powers, np.asarray(np.linalg.pinv(moments), dtype=np.float64))

    @property
    def weights(self) -> Floats:
        """The weight of a row of each cell in the height of the parabola at the point."""
        return self.kernel * (self.powers @ self.inverse[0])

    def influence(self, change: Floats, weight: Floats) -> Floats:
        """The influence of cells, from what they would change at the point; what the parabola explains is no chance."""
        explained = self.powers @ (self.inverse @ (self.powers.T @ (self.kernel * change)))
        return self.weights * (change - weight * explained)


def _summed(sums: Mapping[str, Array], weights: Floats) -> dict[str, Array]:
    """The sums of cells with some weights, one row of them for each point; extremes are those of all cells."""
    summed: dict[str, Array] = {}
    for name, values in sums.items():
        if reduction_of(name) == "sum":
            summed[name] = np.tensordot(weights, values, axes=1)
        else:
            extreme = EXTREMES.get(reduction_of(name), np.fmax).reduce(values, axis=0)
            summed[name] = np.broadcast_to(extreme, (len(weights), *extreme.shape))
    return summed


def _moved(points: Mapping[str, Array], sums: Mapping[str, Array], point: int, step: float) -> dict[str, Array]:
    """The sums of a point, once for each cell, with a part of that cell added."""
    moved: dict[str, Array] = {}
    for name, values in sums.items():
        added = step if reduction_of(name) == "sum" else 0.0
        moved[name] = points[name][point] + added * np.nan_to_num(values)
    return moved


def _factor(correlated: Floats, level: float, seed: int) -> float:
    """The standard errors at which the band holds the whole curve: the quantile of the largest of normal values."""
    values, vectors = np.linalg.eigh(correlated @ correlated.T)
    drawn = generator(seed, "band").standard_normal((_DRAWS, len(values))) @ (vectors * np.sqrt(values.clip(0))).T
    return max(z_value(level), float(np.quantile(np.abs(drawn).max(axis=1, initial=0), level)))


@refuse_unknown_keywords
def feature_curve(
    metric: Metric, feature: str, *, at: Sequence[float] | None = None, span: float | None = None,
) -> FeatureCurve:  # fmt: skip
    """A metric as a smooth function of a continuous feature, such as sensitivity over age, with a band for all of it.

    Args:
        metric: A metric of counts or sums of rows: rates, mean errors, Brier scores; not one of ranks, such as AUC.
        feature: The numeric column.
        at: The values of the feature at which the curve is computed; by default 50 between its 2.5% and 97.5%
            quantiles.
        span: The share of rows that are near enough to a value to count for it, the nearest ones most; by default
            1.5 / n^(1/5), at least 50 rows. A smaller one shows more, and more chance.

    Returns:
        A callable that takes what a metric takes (`conf_level=` is the level at which the band holds at all these
        values together, and `group_by=` gives a curve of each group), and gives a row for each value of the feature,
        `.at`: the `.estimate`, the ends of the band, `.lower` and `.upper` (null where nothing is seen to vary),
        `.std_error`, and `.effective_n`, the rows that count. Rows without the feature are left out.

    >>> from tidyfair import selection_rate
    >>> people = pl.DataFrame({"age": range(20, 80), "hired": [0] * 30 + [1] * 30})
    >>> curve = feature_curve(selection_rate, "age", at=[30, 50, 70])(people, estimate="hired")
    >>> curve[".estimate"].round(2).to_list()
    [0.0, 0.53, 1.0]
    """
    if not isinstance(metric, Metric) or metric.definition.is_of_rows or metric.definition.compares:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = (
            "feature_curve() takes a metric of counts or sums, such as sens, mae or brier_class, not "
            f"{in_short(metric)}; compare others in `bins(…)`."
        )
        raise ArgumentError(msg)
    values = list(at) if is_list(at) else [] if at is None else [at]
    points = tuple(number("at", value, -np.inf) for value in values)
    width = None if span is None else number("span", span, 0, 1, inside=True)
    return FeatureCurve(metric, Column.of(feature, "feature").roots[0], points, width)
