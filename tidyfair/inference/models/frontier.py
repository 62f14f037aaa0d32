"""Choice among many models: performance and disparity of each, with limits that allow for the search.

All models are evaluated on the same rows, so errors shared by two models cancel. The rows selected by both models of
each pair are counted once, by group and truth; values, their errors and correlations follow from these counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.evaluation import texts_of
from tidyfair.inference.result_frames import frame_of, schema_of
from tidyfair.intervals import in_progress, is_of_cells, student_limits, values_of_tables, z_value
from tidyfair.specs import (
    Array,
    Column,
    ColumnLike,
    Frame,
    Options,
    are_columns,
    difference,
    refuse_unknown,
    refuse_unknown_keywords,
    show_keywords,
)
from tidyfair.specs.formulas import Formula
from tidyfair.specs.result_kinds import FRONTIER, with_level
from tidyfair.tallies import Source, open_frame

__all__ = ["ModelFrontier", "model_frontier"]

_DRAWS = 2_000
_MOST_DRAWN = 6e8
"""The most numbers that are drawn for the largest of all deviations; beyond, the bound of Bonferroni is used."""
_MOST_GROUPS = 100
_MOST_GAPS = 128
"""The most gaps of one model that those of another are compared with, beside the same gap: those that are largest."""
_HALF_ROW = 0.5
"""The rows added to each cell when errors are computed."""
_STEP = 0.25
"""The step of numerical derivatives."""
_ROWS_AT_ONCE = 2**15
_NOT_KNOWN = 1e3
"""The factor of errors where one row says nothing about them, so that limits are the ends of the range."""
_JITTER = 1e-9
_FRONTIER = schema_of("""
    .model .performance .performance_lower .performance_upper .disparity .disparity_lower .disparity_upper
    .performance_change .performance_change_lower .performance_change_upper .disparity_change .disparity_change_lower
    .disparity_change_upper .performance_metric .disparity_metric .by .on_frontier .verdict .n .n_missing
    .groups_left_out
""")  # fmt: skip
_BASELINE, _ALIKE = "baseline", "not told apart"
_CHANGES = {
    "maximize": ("worse performance", "better performance"),
    "minimize": ("better performance", "worse performance"),
}
"""Words for smaller and larger values of the performance, by its direction."""


class FrontierOptions(TypedDict, total=False):
    """The options of a call that a frontier takes."""

    pos_label: object
    labels: Sequence[object] | None
    conf_level: float
    seed: int


@dataclass(frozen=True)
class ModelFrontier:
    """A metric and a disparity of many models on the same rows, as a callable on dataframes; see `model_frontier`."""

    performance: Metric
    disparity: GroupwiseMetric

    @show_keywords(FrontierOptions)
    def __call__(
        self, data: object, truth: ColumnLike, *, models: Iterable[ColumnLike], baseline: ColumnLike,
        **options: Unpack[FrontierOptions],
    ) -> Frame:  # fmt: skip
        """Compare the predictions in the columns `models` with each other, and with those of `baseline`.

        All models are compared on the rows that have a truth and the predictions of all of them. The baseline may be
        one of `models`. Options: `pos_label`, `labels`, `conf_level` and `seed`, as for a metric.

        Returns:
            One row for each model, the baseline first: `.model`, its `.performance` and `.disparity`, their changes
            from the baseline (`.performance_change`, `.disparity_change`), each with simultaneous limits for all models
            (`…_lower`, `…_upper`); the names `.performance_metric`, `.disparity_metric` and `.by`; `.on_frontier`,
            whether no other model is observed to be better in one and as good in the other; the `.verdict`, which says
            what is shown beside the baseline: `less discriminatory` or `more discriminatory` if the limits of
            `.disparity_change` exclude 0, and after it or alone `better performance` or `worse performance` if those
            of `.performance_change` do, joined by a comma; `not told apart` if both include 0, and null where a value
            is undefined; the number `.n` of rows compared, the same for all models; `.n_missing`, the rows with a truth
            but without a prediction of this model, which are left out for all models; and `.groups_left_out`, in which
            the baseline has no value or too few rows, or which are unknown. With fewer than two groups, disparities are
            null.
        """
        refuse_unknown("argument", options, ["data", "truth", "models", "baseline", *FrontierOptions.__annotations__])
        checked = replace(metric_set(self.performance).run.options(options, truth=truth), on_undefined="ignore")
        source = open_frame(data)
        if source.outer or source.sides:
            msg = "model_frontier() does not accept grouped data; call it for each group."
            raise ArgumentError(msg)
        read, columns = Column.of(truth, "truth"), _models_of(models, baseline)
        self._check_columns(source, read, columns)
        rows, groups, missing = self._rows(source, read, columns, checked)
        # what there is without rows, or without two groups to compare
        table: dict[str, Any] = {
            ".model": [column.name for column in columns], ".n": len(rows), ".n_missing": missing,
            ".performance_metric": self.performance.name, ".disparity_metric": self.disparity.name,
            ".by": self.disparity.by.text, ".on_frontier": False,
            ".verdict": [_BASELINE, *[None] * (len(columns) - 1)], ".groups_left_out": [[]] * len(columns),
        }  # fmt: skip
        if not rows.is_empty():
            table |= _Comparison(self.performance, self.disparity, _JointCounts.of(rows), groups, checked).columns()
        # the baseline is not compared with itself
        changes = pl.when(pl.int_range(pl.len()) > 0).then(pl.col(r"^\..*_change.*$"))
        frontier = FRONTIER.frame(frame_of(table, _FRONTIER).with_columns(changes))
        return source.restore(with_level(frontier, checked.conf_level))

    def _check_columns(self, source: Source, truth: Column, models: Sequence[Column]) -> None:
        """Refuse columns that do not exist, and predictions that are the truth or define the groups."""
        groups = self.disparity.by.columns
        truth.check(source.columns, "truth")
        for group in groups:
            group.check(source.columns, "by")
        others = [(truth, "is the truth"), *((group, "defines the groups") for group in groups)]
        for index, model in enumerate(models):
            role = "models" if index else "baseline"
            model.check(source.columns, role)
            for other, problem in others:
                # the same column under another name
                if model.expr.meta.undo_aliases().meta.eq(other.expr.meta.undo_aliases()):
                    msg = f"`{role}`: {model.name!r} {problem}; give a column of predictions."
                    raise ColumnError(msg)

    def _rows(
        self, source: Source, truth: Column, models: Sequence[Column], options: Options
    ) -> tuple[pl.DataFrame, pl.DataFrame, list[int]]:
        """The rows that are compared, their groups, and the rows with a truth that lack the prediction of each model.

        Rows have the index of the `group`, and whether the `truth` and the predictions of the models `m0`, `m1` … are
        the event. Groups have a `text`, and are `excluded` if they are unknown or have too small a share of the rows.
        """
        keys = [f"g{index}" for index in range(len(self.disparity.by.columns))]
        names = [f"m{index}" for index in range(len(models))]
        wanted = {"truth": ("truth", truth)}
        wanted |= {name: ("by", column) for name, column in zip(keys, self.disparity.by.columns, strict=True)}
        wanted |= {name: ("models", column) for name, column in zip(names, models, strict=True)}
        # True is 1, whichever of the columns it is in
        rows = source.read(wanted).with_columns(pl.selectors.boolean().exclude("^g.*$").cast(pl.Int8))
        rows = rows.with_columns(pl.selectors.float().exclude("^g.*$").fill_nan(None))
        event, labels = self._labels(rows, truth.name, models[0].name, options)
        for name, column in zip(names, models, strict=True):
            unknown = [value for value in rows[name].unique().to_list() if value not in (None, *labels)]
            if unknown:
                msg = (
                    f"`models`: {column.name!r} holds {listed(unknown)}, which is not among the labels "
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
            msg = (
                "model_frontier() needs rows with a truth and predictions of all models, but the data have none: "
                f"{problem}."
            )
            raise ArgumentError(msg)
        every = rows.select(keys).unique()
        named = every.with_columns(texts_of(every).alias("text"))
        groups = named.join(complete, on=keys, how="semi", nulls_equal=True).sort(keys, nulls_last=True)
        if len(groups) > _MOST_GROUPS:
            msg = f"model_frontier() accepts at most {_MOST_GROUPS} groups, not {len(groups)}; pool small groups first."
            raise ArgumentError(msg)
        numbered = groups.with_row_index("group")
        complete = complete.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        policy = self.disparity.policy
        sizes = complete["group"].value_counts().sort("group")["count"]
        excluded = policy.is_unknown(groups.select(keys)) | (sizes < policy.min_share * len(complete))
        is_event = [complete[name] == event for name in ("truth", *names)]
        return complete.select("group", *is_event), groups.select("text", excluded.alias("excluded")), missing

    def _labels(self, rows: pl.DataFrame, truth: str, baseline: str, options: Options) -> tuple[object, list[Any]]:
        """The label that is the event, and all labels of the truth and of the baseline's predictions."""
        run = metric_set(self.performance).run
        two = pl.DataFrame([rows["truth"].alias(truth), rows["m0"].alias(baseline)])
        named = replace(options, truth=truth, estimate=baseline)
        (evaluated,) = run.evaluate(run.count(open_frame(two), named), named)
        labels = evaluated.labels
        if labels.event is None and len(rows):
            msg = (
                f"model_frontier() compares one label with the rest; give one of {listed(labels.values)} as "
                "`pos_label=`."
            )
            raise ArgumentError(msg)
        event = labels.values[labels.event or 0]
        return int(event) if isinstance(event, bool) else event, list(labels.values)


def _models_of(models: object, baseline: object) -> list[Column]:
    """The columns of the models, the baseline first."""
    if not are_columns(models):
        msg = f'`models` must be a list of columns of predictions, such as `["one", "other"]`, not {models!r}.'
        raise ArgumentError(msg)
    columns = [Column.of(model, "models") for model in models]
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = (
            f"`models`: {listed(twice)} is given more than once; list each model once, and name expressions with "
            "`.alias(…)`."
        )
        raise ArgumentError(msg)
    first = Column.of(baseline, "baseline")
    others = [column for column in columns if column != first]
    if not others:
        msg = "`models` needs a column of predictions other than the baseline."
        raise ArgumentError(msg)
    if first.name in [column.name for column in others]:
        msg = f"`models`: one model has the same name as the baseline, {first.name!r}; rename it with `.alias(…)`."
        raise ArgumentError(msg)
    return [first, *others]


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Models, of which the first is the baseline, with the covariances of their values."""

    performance: Metric
    disparity: GroupwiseMetric
    counts: _JointCounts
    groups: pl.DataFrame
    """Their `text`, and whether they are `excluded`."""
    options: Options

    def columns(self) -> dict[str, Any]:
        """The columns of results; without disparities if there are no two groups."""
        random = np.random.default_rng(self.options.seed)
        columns: dict[str, Any] = self._performances(random)
        gaps, is_compared = self._gaps(random)
        left_out = self.groups["text"].filter(pl.Series(~is_compared)).to_list()
        columns[".groups_left_out"] = [left_out] * self.counts.cells.shape[0]
        if gaps is None:
            return columns
        columns |= gaps.columns()
        sign = 1 if self.performance.direction == "maximize" else -1
        good, bad = sign * columns[".performance"], columns[".disparity"]
        known = np.isfinite(good) & np.isfinite(bad)
        better = (good[:, None] >= good) & (bad[:, None] <= bad) & ((good[:, None] > good) | (bad[:, None] < bad))
        columns[".on_frontier"] = known & ~(better & known[:, None]).any(axis=0)
        shown: list[list[str]] = []
        for change, words in (
            (".disparity_change", ("less discriminatory", "more discriminatory")),
            (".performance_change", _CHANGES[self.performance.direction]),
        ):
            is_shown = [columns[f"{change}_upper"] < 0, columns[f"{change}_lower"] > 0]
            shown.append(np.select(is_shown, words, "").tolist())
        verdicts = [
            ", ".join(filter(None, words)) or _ALIKE if is_known else None
            for *words, is_known in zip(*shown, known, strict=True)
        ]
        return columns | {".verdict": [_BASELINE, *verdicts[1:]]}

    def _wider(self, denominator: Array) -> Array:
        """The factor by which Student's t widens limits for few rows; infinite for one row."""
        z = z_value(self.options.conf_level)
        wider = student_limits(z, denominator.ravel() - 1).reshape(denominator.shape) / z
        return np.nan_to_num(wider, nan=_NOT_KNOWN)

    def _performances(self, random: np.random.Generator) -> dict[str, Any]:
        """The performance of models and its changes, with simultaneous limits about their centers."""
        formula, cells = self.performance.definition, self.counts.cells.sum(axis=1)
        values, denominator = values_of_tables(formula, cells)
        centres, _ = values_of_tables(formula, cells + _HALF_ROW)
        influence = influences_of(formula, cells)
        shared = sum(self.counts.covariance(group, influence, influence) for group in range(len(self.counts.rows)))
        wider = self._wider(denominator)
        covariance = _with_half_rows(cast("Array", shared), influence) * wider[:, None] * wider
        drawn = _draws(covariance, random)
        least, most = self.performance.range
        variance = covariance.diagonal()
        change_errors = _errors_of_changes(variance, variance[0], covariance[0])

        def limits(
            name: str, values: Array, centres: Array, errors: Array, drawn: Array, ends: tuple[float, float]
        ) -> dict[str, Array]:
            reach = float(np.quantile(_largest(drawn, errors), self.options.conf_level)) * errors
            return _columns_of(name, values, centres - reach, centres + reach, ends)

        columns = limits(".performance", values, centres, np.sqrt(variance), drawn, (least, most))
        changes = values - values[0], centres - centres[0], change_errors, drawn - drawn[:, :1]
        return columns | limits(".performance_change", *changes, (least - most, most - least))

    def _gaps(self, random: np.random.Generator) -> tuple[_Gaps | None, Array]:
        """The gaps between groups, none where there are no two; and a mask of the groups that are compared."""
        definitions, cells = [formula for _, formula in self.disparity.formulas], self.counts.cells
        pairs = [values_of_tables(formula, cells) for formula in definitions]
        # formulas by models by groups
        values, denominators = (np.stack(arrays) for arrays in zip(*pairs, strict=True))
        centres = np.stack([values_of_tables(formula, cells + _HALF_ROW)[0] for formula in definitions])
        influences = np.stack([influences_of(formula, cells) for formula in definitions])
        has_value = (denominators >= max(self.disparity.policy.min_n, 1)) & np.isfinite(values)
        has_value &= ~self.groups["excluded"].to_numpy()
        is_compared = np.all(has_value[:, 0], axis=0)
        chosen: list[int] = is_compared.nonzero()[0].tolist()
        if len(chosen) < 2:
            return None, is_compared
        formulas, models = values.shape[:2]
        variances = np.zeros((formulas, len(chosen), models))
        with_baseline = np.zeros((formulas, len(chosen), formulas, len(chosen), models))
        drawn = np.zeros((formulas, len(chosen), _DRAWS, models), dtype=np.float32)
        for index, group in enumerate(chosen):
            covariance = self._covariance_in(group, influences[:, :, group], denominators[:, :, group])
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
            one=both[0], other=both[1], level=self.options.conf_level, most=self.disparity.range[1],
        )  # fmt: skip
        return gaps, is_compared

    def _covariance_in(self, group: int, influences: Array, denominators: Array) -> Array:
        """The covariance of values in a group: formulas by models by formulas by models."""
        formulas, models = denominators.shape
        covariance = np.zeros((formulas, models, formulas, models))
        for one, other in itertools.product(range(formulas), repeat=2):
            shared = self.counts.covariance(group, influences[one], influences[other])
            covariance[one, :, other] = _with_half_rows(shared, influences[one]) if one == other else shared
        wider = self._wider(denominators)
        return np.nan_to_num(covariance * wider[:, :, None, None] * wider)


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
        disparity = (self.values[self.one] - self.values[self.other]).max(axis=0)
        lower, upper = (self.gaps - reach).max(axis=0), (self.gaps + reach).max(axis=0)
        columns = _columns_of(".disparity", disparity, lower, upper, (0, self.most))
        changes = map(self._distances_of_changes, in_progress(halves, "simulating changes"))
        critical = _critical(changes, len(self.one) * len(halves) * max(models - 1, 1), self.level)
        lower, upper = self._changes(critical)
        most = self.most
        return columns | _columns_of(".disparity_change", disparity - disparity[0], lower, upper, (-most, most))

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


def _columns_of(name: str, values: Array, lower: Array, upper: Array, ends: tuple[float, float]) -> dict[str, Array]:
    """Columns of values with limits that include them and lie within the possible range."""
    return {
        name: values, f"{name}_lower": np.minimum(lower, values).clip(*ends),
        f"{name}_upper": np.maximum(upper, values).clip(*ends),
    }  # fmt: skip


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
    def of(cls, rows: pl.DataFrame) -> _JointCounts:
        """Count rows, once: the index of their `group`, and whether their `truth` and predictions are the event."""
        truth, group = rows["truth"].to_numpy(), rows["group"].to_numpy().astype(np.int64)
        selected = rows.drop("truth", "group").to_numpy().T
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


def influences_of(formula: Formula, cells: Array) -> Array:
    """The change of the values of a formula by one row more in each cell, with half a row more in each."""
    there = cells + _HALF_ROW
    influences: list[Array] = []
    for step in np.eye(cells.shape[-1]) * _STEP:
        above, below = (values_of_tables(formula, there + sign * step)[0] for sign in (1, -1))
        influences.append((above - below) / (2 * _STEP))
    return np.stack(influences, axis=-1)


@refuse_unknown_keywords
def model_frontier(performance: Metric, disparity: GroupwiseMetric) -> ModelFrontier:
    """Compare hundreds of models on the same rows by performance and disparity, with limits that allow for the search.

    Among many models some look fairer by chance. So the intervals of values, and of changes from the baseline, are
    simultaneous for all models, from correlated draws of all errors (max-T; Bonferroni's bound for very many gaps).
    Models with similar selections cost little precision. A demonstrably smaller disparity without a demonstrable loss
    of performance is evidence of a less discriminatory alternative; `not told apart` is not evidence that none exists.

    Models are columns of labels, or expressions such as `(pl.col("score") >= 0.4).alias("at 0.4")`. Intervals are
    normal, from exact covariances, centered at values with half a row added to each cell, and wider for few rows; a
    group of a single row has the widest possible limits. Rows must be independent; weights are not accepted.

    Args:
        performance: A metric of labels, such as `accuracy` or `f_meas`.
        disparity: A range of one or more metrics of labels, such as `demographic_parity("race")`.

    Raises:
        ArgumentError: For metrics of scores or numbers, and for aggregates other than the range of `difference()`.

    >>> from tidyfair import accuracy, demographic_parity
    >>> from tidyfair.datasets import lending
    >>> cuts = [(pl.col("score") >= cut / 100).alias(f"at {cut}") for cut in (40, 50, 60)]
    >>> people = lending().with_columns(pl.col("repaid") == "yes")
    >>> frontier = model_frontier(accuracy, demographic_parity("race"))
    >>> compared = frontier(people, "repaid", models=cuts, baseline=cuts[1])
    >>> compared.select(".model", pl.col(".performance", ".disparity").round(2), ".on_frontier").rows()
    [('at 50', 0.69, 0.15, True), ('at 40', 0.69, 0.17, True), ('at 60', 0.69, 0.16, False)]
    """
    if not isinstance(performance, Metric) or not isinstance(disparity, GroupwiseMetric):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = (
            "model_frontier() takes a metric and a disparity, such as `model_frontier(accuracy, "
            f'demographic_parity("race"))`, not {in_short(performance)} and {in_short(disparity)}.'
        )
        raise ArgumentError(msg)
    for name, formula in (*performance.formulas, *disparity.formulas):
        if not is_of_cells(formula):
            msg = f"model_frontier() takes metrics computed from counts of labels, not {name}."
            raise ArgumentError(msg)
    if performance.direction not in {"maximize", "minimize"}:
        msg = f"model_frontier() needs a performance metric to maximize or minimize, not {performance.name}."
        raise ArgumentError(msg)
    is_range = disparity.aggregate == difference(to="range", signed=False)
    if not is_range or disparity.less or disparity.by.sides:
        msg = (
            f"model_frontier() needs the largest difference between any two groups, `difference()`; {disparity.name} "
            "uses another comparison."
        )
        raise ArgumentError(msg)
    return ModelFrontier(performance, disparity)
