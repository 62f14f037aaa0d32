"""Curves of a metric over a continuous feature, by local smoothing of the counts and sums that it is made of.

A fine bin of the feature is a group, and a point of the curve is the metric of the weighted sum of bins: of weights that
fit a parabola to each count near the point, so that neither the ends of the feature nor a bend draw the curve away (the
bias correction of a local line: Calonico et al., 2014). What a row adds to the sums of a point is known, and so is its
influence on the value there (Jaeckel, 1972): influences on all points together give the covariance of the curve, and
the band that holds all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.calling import Metric, Run
from tidyfair.errors import ArgumentError, in_short
from tidyfair.evaluation import Evaluated, GroupIndex, KeyCodes, sums_of, values_of
from tidyfair.inference.on_data import CalledOnData, refuse_several_cuts
from tidyfair.inference.result_frames import frame_of, no_rows, outer_keys_of, schema_of, with_outer_key
from tidyfair.intervals import generator, z_value
from tidyfair.metrics.regression import mean_truth
from tidyfair.specs import ALL_GROUPS, Array, Bins, By, Column, Floats, Integers, Options, is_list, number, proper_share
from tidyfair.specs import refuse_unknown_keywords, whole
from tidyfair.specs.result_kinds import FEATURE_CURVE, ResultKind
from tidyfair.tallies import Tally, is_centre, is_end, is_least, open_frame

__all__ = ["FeatureCurve", "feature_curve"]

_FINE, _POINTS = 200, 50
"""Bins that the feature is counted in, and points of the curve."""
_ENDS = (0.025, 0.975)
"""The quantiles of the feature between which a curve is drawn."""
_SPAN, _FEWEST = 1.5, 50
"""The rows near a point: this times n to the power of 4/5; 50 at least."""
_STEP = 1e-3
"""The part of a cell by which it is moved for a derivative."""
_DRAWS = 10_000
_DISTINCT = 5
"""The fewest values of the feature near a point."""
_ROUNDED, _TINY = 1e-9, 1e-300
_SHOWN = schema_of(".metric .by .at .estimate .lower .upper .std_error .effective_n")
_REFUSED = {
    **dict.fromkeys(("interval", "explain", "times", "score_bins", "keep_rows"), ": its band has a method of its own"),
    "on_undefined": ": a point without a value is null",
}


@dataclass(frozen=True, repr=False)
class FeatureCurve(CalledOnData):
    """A metric over a continuous feature, as a callable on dataframes; made by `feature_curve`.

    It takes the arguments of a metric: `probs`, one `threshold`, `group_by` for a curve of each group, `case_weights`,
    `cluster`, `pos_label` …
    """

    subject: ClassVar[str] = "feature_curve()"
    kind: ClassVar[ResultKind] = FEATURE_CURVE
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metric: Metric
    feature: str
    at: tuple[float, ...] = ()
    span: float | None = None
    conf_level: float = 0.95
    bins: Bins | None = None
    """The fine bins of the data."""
    centres: tuple[float, ...] = ()
    """The mean of the feature in each of them."""

    @property
    def _by(self) -> By:
        return By((Column(self.bins or self.feature),), policy=ALL_GROUPS)

    @property
    def _run(self) -> Run:
        return self.metric.difference(self.bins or self.feature).with_policy(ALL_GROUPS).run

    def _settings(self) -> list[str]:
        return [repr(self.feature)]

    def _reading(self, columns: Any) -> FeatureCurve:
        return replace(self, metric=self.metric.reading(columns))

    def _counting_options(self, options: Options) -> Options:
        has_units = options.cluster is not None or options.parts is not None
        return options if has_units else options.in_own_parts

    def _on_data(self, data: Any, truth: Any, estimate: Any, keywords: Mapping[str, Any]) -> Any:
        source = open_frame(data, keywords.get("group_by"))
        ends = source.quantiles(self.feature, [number / _FINE for number in range(_FINE + 1)])
        if None in ends:
            msg = f"feature_curve(): the column {self.feature!r} has no numbers."
            raise ArgumentError(msg)
        edges = sorted(set(ends))[1:] or [ends[0]]
        labels = tuple(map(str, range(len(edges) + 1)))
        fine = Bins(self.feature, "\0fine", labels, tuple(map(float, edges)))
        means = mean_truth.difference(fine).with_policy(ALL_GROUPS).by_group(source.frame, self.feature, on_undefined="ignore")
        table = dict(open_frame(means).to_polars().filter(pl.col(".by") == fine.name).select(".group", ".estimate").rows())
        centres = tuple(np.nan if table.get(label) is None else table[label] for label in labels)
        at = self.at or tuple(np.linspace(*source.quantiles(self.feature, _ENDS), _POINTS).tolist())
        binned = replace(self, bins=fine, centres=centres, at=at)
        return super(FeatureCurve, binned)._on_data(data, truth, estimate, keywords)

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        refuse_several_cuts(self.subject, tally)
        (evaluated,) = self._run.evaluate(tally, options, are_features=False)
        keys = outer_keys_of(evaluated)
        curves = self._curves(evaluated, options)
        tables = [with_outer_key(keys, number, table) for number, table in enumerate(curves)]
        return pl.concat([no_rows(keys, _SHOWN), *tables])

    def _curves(self, evaluated: Evaluated, options: Options) -> Iterator[pl.DataFrame]:
        """The curve of each outer group."""
        evaluator, tally = evaluated.evaluator, evaluated.evaluator.tally
        (requested,) = evaluator.tables
        formula, average = requested.formula, requested.average
        count = tally.cells.height
        every = GroupIndex(np.arange(count), np.arange(count))
        sums = sums_of(evaluator.tables[requested], formula.all_terms, evaluator.cells, every, evaluator.reading)
        codes = KeyCodes(tally.cells)
        outer = codes.index(tally.outer_names).of_cell if tally.outer_names else np.zeros(count, dtype=np.int64)
        bin_of_cell = tally.cells[tally.names(self._by.columns)[0]].to_physical()
        x = np.array([*self.centres, np.nan])[bin_of_cell.fill_null(len(self.centres)).to_numpy()]
        weight, squares = (evaluator.cells.measure(name).astype(float) for name in ("w", "w2"))
        clusters = tally.names([key.column for key in tally.clusters])
        unit = codes.index(clusters).of_cell if clusters else None
        low, high = self.metric.range
        for group in range(len(evaluated.group_cells.outer_keys)):
            own = np.flatnonzero((outer == group) & ~np.isnan(x))
            local = {name: values[own].astype(float) for name, values in sums.items()}
            fits = [_Fit.of(point, x[own], weight[own], self.span) for point in self.at]
            near = np.stack([fit.weights for fit in fits])
            points = _summed(local, near)
            estimate = values_of(formula, average, points).estimate[:, 0]
            influence = np.zeros(near.shape)
            for point in range(len(near)):
                step = _STEP * near[point].max()
                above, below = (
                    values_of(formula, average, _moved(points, local, point, away)).estimate[:, 0] for away in (step, -step)
                )
                change = (above - below) / (2 * step)
                influence[point] = fits[point].influence(change, weight[own])
            if unit is None:
                # the rows of a cell are alike
                of_units = influence * (np.sqrt(squares[own]) / np.maximum(weight[own], _TINY))
            else:
                of_units = np.stack([np.bincount(unit[own], row, int(unit.max(initial=0)) + 1) for row in influence])
            with np.errstate(all="ignore"):
                effective = (near @ weight[own]) ** 2 / (near**2 @ squares[own])
                of_units = of_units * np.sqrt(effective / (effective - 1))[:, None]
                error = np.sqrt((of_units**2).sum(axis=1))
                error[(error == 0) | ~np.isfinite(estimate)] = np.nan
                correlated = of_units / error[:, None]
                factor = _factor(correlated[np.isfinite(error)], self.conf_level, options.seed)
                is_share = (low, high) == (0, 1) and (estimate > 0) & (estimate < 1)
                half = factor * error
                odds, spread = np.log(estimate / (1 - estimate)), half / (estimate * (1 - estimate))
                lower, upper = (
                    np.where(is_share, 1 / (1 + np.exp(-(odds + sign * spread))), (estimate + sign * half).clip(low, high))
                    for sign in (-1, 1)
                )
            yield frame_of({
                ".metric": self.metric.name, ".by": self.feature, ".at": list(self.at),
                ".estimate": estimate.clip(low, high), ".lower": lower, ".upper": upper, ".std_error": error,
                ".effective_n": effective,
            }, _SHOWN)  # fmt: skip


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
        share = span or min(1.0, max(_SPAN * rows**-0.2, _FEWEST / rows))
        order = np.argsort(away)
        reached = np.cumsum(weight[order]) >= share * rows * (1 - _ROUNDED)
        # a parabola needs some values of the feature
        distinct = np.sort(np.abs(np.unique(x) - point))[:_DISTINCT].max()
        width = max(away[order[reached.argmax()]], distinct, _TINY) * (1 + _ROUNDED)
        kernel = (1 - np.minimum(away / width, 1) ** 3) ** 3
        powers = ((x - point) / width)[:, None] ** np.arange(3)
        return cls(kernel, powers, np.linalg.pinv((powers * (kernel * weight)[:, None]).T @ powers))

    @property
    def weights(self) -> Floats:
        """The weight of a row of each cell in the height of the parabola at the point."""
        return self.kernel * (self.powers @ self.inverse[0])

    def influence(self, change: Floats, weight: Floats) -> Floats:
        """The influence of cells on a value, from how far they would change it at the point.

        What the parabola explains is no chance.
        """
        explained = self.powers @ (self.inverse @ (self.powers.T @ (self.kernel * change)))
        return self.weights * (change - weight * explained)


def _summed(sums: Mapping[str, Array], weights: Floats) -> dict[str, Array]:
    """The sums of cells with some weights, one row of them for each point; extremes are those of all cells."""
    summed: dict[str, Array] = {}
    for name, values in sums.items():
        if is_centre(name) or is_end(name):
            extreme = np.fmin if is_least(name) else np.fmax
            summed[name] = np.repeat(extreme.reduce(values, axis=0, keepdims=True), len(weights), axis=0)
        else:
            summed[name] = np.tensordot(weights, values, axes=1)
    return summed


def _moved(points: Mapping[str, Array], sums: Mapping[str, Array], point: int, step: float) -> dict[str, Array]:
    """The sums of a point with a part of each cell more, one after the other."""
    moved: dict[str, Array] = {}
    for name, values in sums.items():
        added = 0.0 if is_centre(name) or is_end(name) else step
        moved[name] = points[name][point] + added * np.nan_to_num(values)
    return moved


def _factor(correlated: Floats, level: float, seed: int) -> float:
    """The standard errors at which the band holds the whole curve: the quantile of the largest of normal values."""
    if not len(correlated):
        return np.nan
    correlation = correlated @ correlated.T
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(values.clip(0))
    drawn = generator(seed, "band of a curve").standard_normal((_DRAWS, len(values))) @ root.T
    return max(float(np.quantile(np.abs(drawn).max(axis=1), level)), float(z_value(level)))


@refuse_unknown_keywords
def feature_curve(
    metric: Metric, feature: str, *, at: Sequence[float] | None = None, span: float | None = None,
    conf_level: float = 0.95,
) -> FeatureCurve:  # fmt: skip
    """A metric as a smooth function of a continuous feature, such as sensitivity over age, with a band for all of it.

    Args:
        metric: A metric of counts or sums of rows: rates, means of errors, Brier scores; not one of ranks, such as AUC.
        feature: The numeric column.
        at: The values of the feature at which the curve is computed; by default 50 between its 2.5 % and 97.5 %
            quantiles.
        span: The share of rows that are near enough to a value to count for it, the nearest ones most; by default
            1.5 / n^(1/5), at least 50 rows. A smaller one shows more, and more chance.
        conf_level: The level at which the band holds at all values of the feature together.

    Returns:
        A callable that takes what a metric takes, and gives a row for each value of the feature, `.at`: the
        `.estimate`, the ends of the band, `.lower` and `.upper`, the `.std_error`, and `.effective_n`, the rows that
        the value is of. The band holds the curve that smoothing aims at; it is null where no error has been seen. Rows
        without the feature are left out.

    >>> from tidyfair import selection_rate
    >>> from tidyfair.datasets import lending
    >>> rows = lending().with_columns(income=pl.int_range(pl.len()) % 97)
    >>> curve = feature_curve(selection_rate, "income", at=[10, 50])(rows, estimate="approved", pos_label="yes")
    >>> curve.select(".at", pl.col(".estimate").round(2)).rows()
    [(10.0, 0.51), (50.0, 0.51)]
    """
    if not isinstance(metric, Metric) or metric.definition.needs_rows or metric.definition.compares:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = (
            "feature_curve() takes a metric of counts or sums, such as sens, mae or brier_class, not "
            f"{in_short(metric)}; compare others in `bins(…)`."
        )
        raise ArgumentError(msg)
    if not isinstance(feature, str):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"feature_curve(): `feature` is the name of a numeric column, not {in_short(feature)}."
        raise ArgumentError(msg)
    points: list[Any] = [] if at is None else list(at) if is_list(at) else [at]
    values = tuple(number("at", value, -np.inf) for value in points)
    width = None if span is None else number("span", span, 0, 1)
    return FeatureCurve(metric, feature, values, width, proper_share("conf_level", conf_level))
