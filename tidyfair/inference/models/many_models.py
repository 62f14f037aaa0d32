"""Changes of many models from one, on the same rows, with limits that hold for all of them at once.

Errors that two models share cancel. The rows that both models of each pair select are counted once, by group and truth;
values, their errors and correlations follow from these counts, and critical values from correlated draws (max-T).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.evaluation import texts_of
from tidyfair.inference.result_frames import frame_of, schema_of
from tidyfair.intervals import in_progress, is_of_cells, student_limits, values_of_tables, z_value
from tidyfair.metrics.classification import accuracy
from tidyfair.specs import Array, By, Column, Options, difference
from tidyfair.specs.formulas import Formula
from tidyfair.tallies import Source, open_frame

_DRAWS = 2_000
_MOST_DRAWN = 6e8
"""The most numbers that are drawn for the largest of all deviations; beyond, the bound of Bonferroni is used."""
_MOST_GROUPS = 100
_MOST_GAPS = 128
"""The most gaps of one model, the largest, that each gap of another is compared with, beside the same gap."""
_HALF_ROW = 0.5
"""The rows added to each cell when errors are computed."""
_STEP = 0.25
"""The step of numerical derivatives."""
_ROWS_AT_ONCE = 2**15
_NOT_KNOWN = 1e3
"""The factor of errors where one row says nothing about them, so that limits are the ends of the range."""
_JITTER = 1e-9
_NAME = 'compare_models(adjust="max_t")'
_CHANGES = {
    **schema_of(".metric .by .estimator .n .n_missing .groups_left_out .one .one_lower .one_upper"),
    # where groups are compared, this is the name of a group
    ".other": pl.Float64(), **schema_of(".other_lower .other_upper .change .lower .upper"),
}  # fmt: skip


def check_compared_jointly(metrics: MetricSet) -> None:
    """Refuse metrics whose values are not functions of the rows that two models select, or other comparisons."""
    for metric in metrics:
        for name, formula in metric.formulas:
            if not is_of_cells(formula):
                msg = f"{_NAME} takes metrics computed from counts of labels, not {name}; leave out `adjust`."
                raise ArgumentError(msg)
        if isinstance(metric, Metric):
            continue
        is_range = metric.aggregate == difference(to="range", signed=False)
        if not is_range or metric.less or metric.by.sides or metric.by.memberships:
            msg = (
                f"{_NAME} needs the largest difference between any two groups, `difference()`; {metric.name} uses "
                "another comparison. Leave out `adjust`."
            )
            raise ArgumentError(msg)


def compared_jointly(metrics: MetricSet, source: Source, models: Sequence[Column], options: Options) -> pl.DataFrame:
    """The changes of metrics from the first model to each of the others, with limits of values and of changes."""
    if source.outer or source.sides:
        msg = f"{_NAME} does not accept grouped data; call it for each group."
        raise ArgumentError(msg)
    rows = _Rows.read(metrics, source, models, options)
    features = dict.fromkeys(metric.by for metric in metrics)
    counts = {by: _JointCounts.of(rows.events, rows.index[by]) for by in features} if len(rows.events) else {}
    random = np.random.default_rng(options.seed)
    tables: list[pl.DataFrame] = []
    for metric in metrics:
        table: dict[str, Any] = {
            ".metric": metric.name, ".by": metric.by and metric.by.text, ".estimator": "binary",
            ".n": len(rows.events), ".n_missing": rows.missing[1:], ".groups_left_out": [[]] * (len(models) - 1),
        }  # fmt: skip
        if counts:
            table |= _compared(metric, counts[metric.by], rows.groups[metric.by], options.conf_level, random)
        tables.append(frame_of(table, _CHANGES))
    return pl.concat(tables)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that have a truth and the predictions of all models."""

    events: pl.DataFrame
    """Whether the `truth` and the predictions of the models `m0`, `m1` … are the event."""
    index: dict[By | None, Array]
    """The group of each row, by feature; all rows are one group of none."""
    groups: dict[By | None, pl.DataFrame]
    """The groups of each feature: their `text`, and whether they are `excluded`, as unknown and small ones are."""
    missing: list[int]
    """The rows with a truth that lack the prediction of each model."""

    @classmethod
    def read(cls, metrics: MetricSet, source: Source, models: Sequence[Column], options: Options) -> _Rows:
        """Read the columns that are needed, and check the labels in them."""
        truth = Column.of(options.truth, "truth")
        compared = {metric.by: metric for metric in metrics if isinstance(metric, GroupwiseMetric)}
        features = list(dict.fromkeys(itertools.chain(*(by.columns for by in compared))))
        _check_columns(source, truth, models, features)
        names, keys = (
            [f"{letter}{index}" for index in range(len(of))] for letter, of in (("m", models), ("g", features))
        )
        wanted = {"truth": ("truth", truth)}
        wanted |= {name: ("by", column) for name, column in zip(keys, features, strict=True)}
        wanted |= {name: ("others", column) for name, column in zip(names, models, strict=True)}
        # True is 1, whichever of the columns it is in
        rows = source.read(wanted).with_columns(pl.selectors.boolean().exclude("^g.*$").cast(pl.Int8))
        rows = rows.with_columns(pl.selectors.float().exclude("^g.*$").fill_nan(None))
        event, labels = _labels(rows, truth.name, models[0].name, options)
        for name, column in zip(names, models, strict=True):
            unknown = [value for value in rows[name].unique().to_list() if value not in (None, *labels)]
            if unknown:
                msg = (
                    f"`others`: {column.name!r} holds {listed(unknown)}, which is not among the labels "
                    f"{listed(labels)}."
                )
                raise ColumnError(msg)
        with_truth = rows.drop_nulls("truth")
        missing = [int(with_truth[name].null_count()) for name in names]
        complete = with_truth.drop_nulls(names)
        if complete.is_empty() and len(rows):
            problem = "no row has a truth"
            if len(with_truth):
                worst = models[missing.index(max(missing))].name
                problem = f"{max(missing)} of {len(with_truth)} rows with a truth have no prediction in {worst!r}"
            msg = f"{_NAME} needs rows with a truth and predictions of all models, but the data have none: {problem}."
            raise ArgumentError(msg)
        index: dict[By | None, Array] = {None: np.zeros(len(complete), dtype=np.int64)}
        groups: dict[By | None, pl.DataFrame] = {None: pl.DataFrame({"text": ["all rows"], "excluded": [False]})}
        for by, metric in compared.items():
            index[by], groups[by] = _groups(metric, rows, complete, [keys[features.index(one)] for one in by.columns])
        is_event = [complete[name] == event for name in ("truth", *names)]
        return cls(complete.select(is_event), index, groups, missing)


def _check_columns(source: Source, truth: Column, models: Sequence[Column], features: Sequence[Column]) -> None:
    """Refuse columns that do not exist, and predictions that are the truth or define the groups."""
    truth.check(source.columns, "truth")
    for feature in features:
        feature.check(source.columns, "by")
    others = [(truth, "is the truth"), *((feature, "defines the groups") for feature in features)]
    for index, model in enumerate(models):
        role = "others" if index else "one"
        model.check(source.columns, role)
        for other, problem in others:
            # the same column under another name
            if model.expr.meta.undo_aliases().meta.eq(other.expr.meta.undo_aliases()):
                msg = f"`{role}`: {model.name!r} {problem}; give a column of predictions."
                raise ColumnError(msg)


def _labels(rows: pl.DataFrame, truth: str, model: str, options: Options) -> tuple[object, list[Any]]:
    """The label that is the event, and all labels of the truth and of the first model's predictions."""
    run = metric_set(accuracy).run
    two = pl.DataFrame([rows["truth"].alias(truth), rows["m0"].alias(model)])
    named = replace(options, truth=truth, estimate=model)
    (evaluated,) = run.evaluate(run.count(open_frame(two), named), named)
    labels = evaluated.labels
    if labels.event is None and len(rows):
        msg = f"{_NAME} compares one label with the rest; give one of {listed(labels.values)} as `pos_label=`."
        raise ArgumentError(msg)
    event = labels.values[labels.event or 0]
    return int(event) if isinstance(event, bool) else event, list(labels.values)


def _groups(
    metric: GroupwiseMetric, rows: pl.DataFrame, complete: pl.DataFrame, keys: Sequence[str]
) -> tuple[Array, pl.DataFrame]:
    """The group of each complete row, and the groups."""
    every = rows.select(keys).unique()
    named = every.with_columns(texts_of(every).alias("text"))
    groups = named.join(complete, on=keys, how="semi", nulls_equal=True).sort(keys, nulls_last=True)
    if len(groups) > _MOST_GROUPS:
        msg = f"{_NAME} accepts at most {_MOST_GROUPS} groups, not {len(groups)}; pool small groups first."
        raise ArgumentError(msg)
    numbered = groups.with_row_index("group")
    index = complete.select(keys).join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")["group"]
    sizes = index.value_counts().sort("group")["count"]
    excluded = metric.policy.is_unknown(groups.select(keys)) | (sizes < metric.policy.min_share * len(complete))
    return index.to_numpy().astype(np.int64), groups.select("text", excluded.alias("excluded"))


def _compared(
    metric: Metric | GroupwiseMetric, counts: _JointCounts, groups: pl.DataFrame, level: float,
    random: np.random.Generator,
) -> dict[str, Any]:  # fmt: skip
    """The values of a metric and their changes, with limits; nothing of a disparity without two groups."""
    if isinstance(metric, Metric):
        return _values(metric, counts, level, random)
    gaps, is_compared = _gaps_of(metric, counts, groups["excluded"].to_numpy(), level, random)
    left_out = groups["text"].filter(pl.Series(~is_compared)).to_list()
    columns = {
        ".n": int(counts.rows[is_compared].sum()), ".groups_left_out": [left_out] * (len(counts.cells) - 1),
    }  # fmt: skip
    return columns if gaps is None else columns | gaps.columns()


def _values(metric: Metric, counts: _JointCounts, level: float, random: np.random.Generator) -> dict[str, Any]:
    """The values of all rows and their changes, with simultaneous limits about their centers."""
    formula, cells = metric.definition, counts.cells.sum(axis=1)
    values, denominator = values_of_tables(formula, cells)
    centres, _ = values_of_tables(formula, cells + _HALF_ROW)
    influence = influences_of(formula, cells)
    shared = sum(counts.covariance(group, influence, influence) for group in range(len(counts.rows)))
    wider = _wider(denominator, level)
    covariance = _with_half_rows(cast("Array", shared), influence) * wider[:, None] * wider
    drawn = _draws(covariance, random)
    variance = covariance.diagonal()
    change_errors = _errors_of_changes(variance, variance[0], covariance[0])

    def reach(errors: Array, drawn: Array) -> Array:
        return float(np.quantile(_largest(drawn, errors), level)) * errors

    around = reach(np.sqrt(variance), drawn)
    around_changes = reach(change_errors, drawn - drawn[:, :1])
    changes = centres - centres[0]
    return _columns_of(
        values, (centres - around, centres + around), (changes - around_changes, changes + around_changes), metric.range
    )


def _gaps_of(
    metric: GroupwiseMetric, counts: _JointCounts, excluded: Array, level: float, random: np.random.Generator
) -> tuple[_Gaps | None, Array]:
    """The gaps between groups, none where there are no two; and a mask of the groups that are compared."""
    definitions, cells = [formula for _, formula in metric.formulas], counts.cells
    pairs = [values_of_tables(formula, cells) for formula in definitions]
    # formulas by models by groups
    values, denominators = (np.stack(arrays) for arrays in zip(*pairs, strict=True))
    centres = np.stack([values_of_tables(formula, cells + _HALF_ROW)[0] for formula in definitions])
    influences = np.stack([influences_of(formula, cells) for formula in definitions])
    has_value = (denominators >= max(metric.policy.min_n, 1)) & np.isfinite(values) & ~excluded
    is_compared = np.all(has_value[:, 0], axis=0)
    chosen: list[int] = is_compared.nonzero()[0].tolist()
    if len(chosen) < 2:
        return None, is_compared
    formulas, models = values.shape[:2]
    variances = np.zeros((formulas, len(chosen), models))
    with_baseline = np.zeros((formulas, len(chosen), formulas, len(chosen), models))
    drawn = np.zeros((formulas, len(chosen), _DRAWS, models), dtype=np.float32)
    for index, group in enumerate(chosen):
        wider = _wider(denominators[:, :, group], level)
        covariance = counts.covariance_of_formulas(group, influences[:, :, group])
        covariance = np.nan_to_num(covariance * wider[:, :, None, None] * wider)
        for formula in range(formulas):
            variances[formula, index] = covariance[formula, :, formula].diagonal()
            with_baseline[formula, index, :, index] = covariance[formula, :, :, 0].T
        joint = covariance.reshape(formulas * models, formulas * models)
        drawn[:, index] = _draws(joint, random).reshape(_DRAWS, formulas, models).swapaxes(0, 1)
    size = formulas * len(chosen)
    values, centres = (
        np.where(has_value, numbers, math.nan)[:, :, chosen].swapaxes(1, 2).reshape(size, models)
        for numbers in (values, centres)
    )
    # gaps are of one formula each; the second half are the opposite ones
    one, other = np.triu_indices(len(chosen), 1)
    start = np.repeat(cast("Array", np.arange(formulas) * len(chosen)), len(one))
    one, other = start + np.tile(one, formulas), start + np.tile(other, formulas)
    both = np.concatenate([one, other]), np.concatenate([other, one])
    gaps = _Gaps(
        values=values, centres=centres, variances=variances.reshape(size, models),
        with_baseline=with_baseline.reshape(size, size, models), drawn=drawn.reshape(size, _DRAWS, models),
        one=both[0], other=both[1], level=level, most=metric.range[1],
    )  # fmt: skip
    return gaps, is_compared


def _wider(denominator: Array, level: float) -> Array:
    """The factor by which Student's t widens limits for few rows; infinite for one row."""
    z = z_value(level)
    wider = student_limits(z, denominator.ravel() - 1).reshape(denominator.shape) / z
    return np.nan_to_num(wider, nan=_NOT_KNOWN)


@dataclass(frozen=True, eq=False)
class _Gaps:
    """The gaps between any two groups, of which the largest is the disparity; models are the last axis.

    Values of a formula in a group are the first axis of what they are made of, and gaps that of what is made of them.
    """

    values: Array
    centres: Array
    """The values about which limits lie."""
    variances: Array
    with_baseline: Array
    """The covariances of values with those of the baseline: values by values of the baseline by models."""
    drawn: Array
    """Draws of the errors of values: values by draws by models."""
    one: Array
    other: Array
    """The values of which gaps are the differences."""
    level: float
    most: float
    """The largest gap that the metric can have."""

    @cached_property
    def gaps(self) -> Array:
        """Gaps by models, about which limits lie."""
        return self.centres[self.one] - self.centres[self.other]

    @cached_property
    def gap_variances(self) -> Array:
        """Variances of gaps, whose groups are independent."""
        return self.variances[self.one] + self.variances[self.other]

    @cached_property
    def drawn_gaps(self) -> Array:
        """Draws of the errors of all gaps: gaps by draws by models."""
        return self.drawn[self.one] - self.drawn[self.other]

    @cached_property
    def signs(self) -> Array:
        """Gaps as sums of values with a sign: gaps by values."""
        signs = np.zeros((len(self.one), len(self.values)))
        rows = np.arange(len(signs))
        signs[rows, self.one], signs[rows, self.other] = 1, -1
        return signs

    def columns(self) -> dict[str, Array]:
        """The disparities and their changes from the baseline's, with limits."""
        errors, models = self.gap_variances**0.5, self.gaps.shape[1]
        halves = range(len(self.one) // 2)  # one gap of each pair of opposites
        drawn = (self.drawn[self.one[gap]] - self.drawn[self.other[gap]] for gap in in_progress(halves, "simulating"))
        distances = map(_largest, drawn, errors)
        reach = _critical(distances, len(halves) * models, self.level) * errors
        values = (self.values[self.one] - self.values[self.other]).max(axis=0)
        limits = (self.gaps - reach).max(axis=0), (self.gaps + reach).max(axis=0)
        changes = map(self._distances_of_changes, in_progress(halves, "simulating changes"))
        critical = _critical(changes, len(self.one) * len(halves) * max(models - 1, 1), self.level)
        return _columns_of(values, limits, self._changes(critical), (0.0, self.most))

    def _distances_of_changes(self, baseline_gap: int) -> Array:
        """The largest distance of draws of the changes of all gaps from a gap of the baseline, in standard errors."""
        # covariances of values with this gap, and so of all gaps with it
        shared = self.signs @ np.tensordot(self.signs[baseline_gap], self.with_baseline, (0, 1))
        errors = _errors_of_changes(self.gap_variances, self.gap_variances[baseline_gap, 0], shared)
        drawn = self.drawn_gaps
        return _largest(drawn - drawn[baseline_gap, :, :1], errors[:, None]).max(axis=0)

    def _changes(self, critical: float) -> tuple[Array, Array]:
        """The limits of the changes of disparities from the baseline's.

        A disparity is the largest gap. So a gap of a model exceeds the baseline's disparity by at most its excess over
        any one gap of the baseline, and the disparity by at most the largest of these bounds over gaps; and vice versa.
        All bounds hold simultaneously, and a few of the largest gaps give the best of them.
        """
        models = self.gaps.shape[1]
        lower, upper = np.zeros(models), np.zeros(models)
        surely = self.gaps - critical * np.sqrt(self.gap_variances)
        largest = np.argsort(-surely, axis=0)[:_MOST_GAPS]
        every = np.arange(len(self.gaps))
        for model in in_progress(range(models), "comparing models"):
            baseline_gap, gaps_of_model = largest[:, 0], largest[:, model]
            # covariances of gaps with values of the baseline
            shared = self.signs @ self.with_baseline[:, :, model]
            paired = self._change(model, every, every, (shared * self.signs).sum(axis=1), critical)
            above = self._change(model, every[:, None], baseline_gap, shared @ self.signs[baseline_gap].T, critical)
            below = self._change(model, gaps_of_model[:, None], every, shared[gaps_of_model] @ self.signs.T, critical)
            upper[model] = np.minimum(above[1].min(axis=1), paired[1]).max()
            lower[model] = np.maximum(below[0].max(axis=0), paired[0]).min()
        return lower, upper

    def _change(
        self, model: int, gap: Array, baseline_gap: Array, shared: Array, critical: float
    ) -> tuple[Array, Array]:
        """Lower and upper limits of gaps of a model less gaps of the baseline, with these covariances."""
        errors = _errors_of_changes(self.gap_variances[gap, model], self.gap_variances[baseline_gap, 0], shared)
        change = self.gaps[gap, model] - self.gaps[baseline_gap, 0]
        return change - critical * errors, change + critical * errors


def _errors_of_changes(variance: Array, baseline_gap: Array, shared: Array) -> Array:
    """Standard errors of values less those of the baseline."""
    return np.sqrt(np.maximum(variance + baseline_gap - 2 * shared, 0))


def _columns_of(
    values: Array, limits: tuple[Array, Array], limits_of_changes: tuple[Array, Array], ends: tuple[float, float]
) -> dict[str, Array]:
    """Columns of the values of the first model, those of the others, and their changes, each with limits."""
    width = ends[1] - ends[0]
    lower, upper = _around(values, limits, ends)
    changes = values - values[0]
    changes_lower, changes_upper = _around(changes, limits_of_changes, (-width, width))
    columns = {"other": values, "other_lower": lower, "other_upper": upper}
    columns |= {"change": changes, "lower": changes_lower, "upper": changes_upper}
    models = len(values) - 1
    first = {"one": values, "one_lower": lower, "one_upper": upper}
    return {
        **{f".{name}": np.repeat(numbers[:1], models) for name, numbers in first.items()},
        **{f".{name}": numbers[1:] for name, numbers in columns.items()},
    }


def _around(values: Array, limits: tuple[Array, Array], ends: tuple[float, float]) -> tuple[Array, Array]:
    """Limits that include the values and lie within the possible range."""
    lower, upper = limits
    return np.minimum(lower, values).clip(*ends), np.maximum(upper, values).clip(*ends)


def _largest(drawn: Array, errors: Array) -> Array:
    """The largest distance of draws in standard errors over all models, but for the baseline's from itself."""
    # whole arrays in single precision, so that they stay in the cache
    scale = np.where(errors > 0, 1 / np.where(errors > 0, errors, 1), 0).astype(np.float32)
    return np.abs(drawn * scale).max(axis=-1)


def _critical(distances: Iterable[Array], count: int, level: float) -> float:
    """The simultaneous critical value of so many values, in standard errors, from the largest distances of draws.

    Of very many values it is Bonferroni's, and nothing is drawn.
    """
    if count * _DRAWS > _MOST_DRAWN:
        return z_value(1 - (1 - level) / count)
    largest = np.zeros(_DRAWS)
    for distance in distances:
        np.maximum(largest, distance, out=largest)
    return float(np.quantile(largest, level))


def _with_half_rows(covariance: Array, influence: Array) -> Array:
    """A covariance plus that of half a row in each cell, not shared by models, so that perfect values have an error."""
    return covariance + np.diag(_HALF_ROW * (influence**2).sum(axis=-1))


def _draws(covariance: Array, random: np.random.Generator) -> Array:
    """Normal draws with a covariance, in the columns."""
    errors = np.sqrt(covariance.diagonal())
    scale = np.where(errors > 0, errors, 1)
    # what does not vary at all has no correlations, and a little of its own keeps the matrix from being singular
    correlation = covariance / scale[:, None] / scale
    np.fill_diagonal(correlation, 1 + _JITTER)
    factor = (np.linalg.cholesky(correlation).T * errors).astype(np.float32)
    return random.standard_normal((_DRAWS, len(errors)), dtype=np.float32) @ factor


@dataclass(frozen=True, eq=False)
class _JointCounts:
    """The rows of each group, with and without the event, that two models select, for all pairs of models."""

    both: Array
    """Groups by truth (without, with) by models by models; the diagonal is what one model selects."""
    rows: Array
    """Groups by truth."""

    @classmethod
    def of(cls, events: pl.DataFrame, group: Array) -> _JointCounts:
        """Count rows, once: whether their `truth` and predictions are the event, and the index of their group."""
        truth, selected = events["truth"].to_numpy(), events.drop("truth").to_numpy().T
        models = len(selected)
        part = 2 * group + truth
        parts = 2 * (int(group.max()) + 1)
        size = np.bincount(part, minlength=parts)
        order = np.argsort(part, kind="stable")
        both = np.zeros((parts, models, models))
        ends = np.cumsum(size)
        for index, (end, count) in enumerate(zip(ends, size, strict=True)):
            for start in range(end - count, end, _ROWS_AT_ONCE):
                # whole numbers below 2**24 are exact in single precision
                block = np.take(selected, order[start : min(start + _ROWS_AT_ONCE, end)], axis=1).astype(np.float32)
                both[index] += block @ block.T
        return cls(both.reshape(-1, 2, models, models), size.reshape(-1, 2).astype(float))

    @cached_property
    def cells(self) -> Array:
        """The table of each model in each group: models by groups by `tp`, `fn`, `fp`, `tn`."""
        selected = np.diagonal(self.both, axis1=2, axis2=3)
        fp, tp = selected[:, 0].T, selected[:, 1].T
        return np.stack([tp, self.rows[:, 1] - tp, fp, self.rows[:, 0] - fp], axis=-1)

    def covariance(self, group: int, one: Array, other: Array) -> Array:
        """The sums over rows of products of influences: models of `one` by models of `other`.

        Influences are models by `tp`, `fn`, `fp`, `tn`: what a row of that cell adds to a value.
        """
        total = 0.0
        for truth, (hit, miss) in ((1, (0, 1)), (0, (2, 3))):
            both, rows = self.both[group, truth], self.rows[group, truth]
            selected = both.diagonal()
            # influence of an unselected row, and the increment if it is selected
            first, second = one[:, miss], other[:, miss]
            gain, other_gain = one[:, hit] - first, other[:, hit] - second
            total = total + rows * first[:, None] * second + first[:, None] * (other_gain * selected)
            total = total + (gain * selected)[:, None] * second + gain[:, None] * other_gain * both
        return cast("Array", total)

    def covariance_of_formulas(self, group: int, influences: Array) -> Array:
        """The covariance of values in a group: formulas by models by formulas by models."""
        formulas, models = influences.shape[:2]
        covariance = np.zeros((formulas, models, formulas, models))
        for one, other in itertools.product(range(formulas), repeat=2):
            shared = self.covariance(group, influences[one], influences[other])
            covariance[one, :, other] = _with_half_rows(shared, influences[one]) if one == other else shared
        return covariance


def influences_of(formula: Formula, cells: Array) -> Array:
    """The change of the values of a formula by one row more in each cell, with half a row more in each."""
    there = cells + _HALF_ROW
    influences: list[Array] = []
    for step in np.eye(cells.shape[-1]) * _STEP:
        above, below = (values_of_tables(formula, there + sign * step)[0] for sign in (1, -1))
        influences.append((above - below) / (2 * _STEP))
    return np.stack(influences, axis=-1)
