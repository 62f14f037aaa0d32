"""Choice among many models: performance and disparity of each, with limits that allow for the search.

All models are evaluated on the same rows, so errors shared by two models cancel. The rows selected by both models of
each pair are counted once, by group and truth; values, their errors and correlations follow from these counts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.inference.joint_counts import HALF_ROW, JointCounts, influences_of, is_of_cells, values_of
from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.proportions import student_limits, z_value
from tidyfair.metric_sets import GroupwiseMetric, Metric, metric_set
from tidyfair.specs.columns import Column, are_columns
from tidyfair.specs.contrasts import difference
from tidyfair.specs.options import refuse_unknown_keywords, show_keywords
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias, Unpack

    from tidyfair.evaluation.labels import Labels
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.options import Options
    from tidyfair.tallies.source import Source

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["ModelFrontier", "model_frontier"]

_DRAWS = 2_000
_MOST_DRAWN = 6e8
"""The most numbers that are drawn for the largest of all deviations; beyond, the bound of Bonferroni is used."""
_MOST_GROUPS = 100
_MOST_GAPS = 128
"""The most gaps of one model that those of another are compared with, beside the same gap: those that are largest."""
_NOT_KNOWN = 1e3
"""The factor of errors where one row says nothing about them, so that limits are the ends of the range."""
_JITTER = 1e-9
_FRONTIER = {
    ".model": pl.String,
    ".performance": pl.Float64, ".performance_lower": pl.Float64, ".performance_upper": pl.Float64,
    ".disparity": pl.Float64, ".disparity_lower": pl.Float64, ".disparity_upper": pl.Float64,
    ".performance_change": pl.Float64, ".performance_change_lower": pl.Float64, ".performance_change_upper": pl.Float64,
    ".disparity_change": pl.Float64, ".disparity_change_lower": pl.Float64, ".disparity_change_upper": pl.Float64,
    ".performance_metric": pl.String, ".disparity_metric": pl.String, ".by": pl.String,
    ".on_frontier": pl.Boolean, ".verdict": pl.String, ".n": pl.Int64, ".n_missing": pl.Int64,
    ".groups_left_out": pl.List(pl.String),
}  # fmt: skip
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
    ) -> Any:  # fmt: skip
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
        for name in options:
            if name not in FrontierOptions.__annotations__:
                known = ["data", "truth", "models", "baseline", *FrontierOptions.__annotations__]
                raise ArgumentError.unknown_keyword("argument", name, known)
        checked = replace(metric_set(self.performance).run.options(options, truth=truth), on_undefined="ignore")
        source = open_frame(data)
        if source.outer or source.sides:
            msg = "model_frontier() does not accept grouped data; call it for each group."
            raise ArgumentError(msg)
        columns = self._columns(source, Column.of(truth, "truth"), models, baseline)
        rows = self._rows(source, columns, checked)
        table = {".model": [column.name for column in columns.models]} | rows.shown | self._names(len(columns.models))
        if rows.frame.is_empty():
            return source.restore(_nothing_compared(table))
        counts = JointCounts.of(rows.frame, rows.event, len(columns.models))
        compared = _Comparison(
            self.performance, self.disparity, counts, rows.excluded, checked.conf_level, checked.seed
        )
        return source.restore(compared.table(table, rows.groups))

    def _names(self, models: int) -> dict[str, list[str]]:
        """The names of the metrics, as columns of results."""
        names = {
            ".performance_metric": self.performance.name,
            ".disparity_metric": self.disparity.name,
            ".by": self.disparity.by.text,
        }
        return {column: [name] * models for column, name in names.items()}

    def _columns(self, source: Source, truth: Column, models: object, baseline: object) -> _Columns:
        """The columns that are read, after a check that the predictions are nothing else."""
        columns = _Columns(truth, self.disparity.by.columns, _models_of(models, baseline))
        truth.check(source.columns, "truth")
        for group in columns.groups:
            group.check(source.columns, "by")
        for index, model in enumerate(columns.models):
            role = "models" if index else "baseline"
            model.check(source.columns, role)
            if _is_same(model, truth):
                msg = f"`{role}`: {model.name!r} is the truth; give a column of predictions."
                raise ColumnError(msg)
            if any(_is_same(model, group) for group in columns.groups):
                msg = f"`{role}`: {model.name!r} defines the groups; give a column of predictions."
                raise ColumnError(msg)
        return columns

    def _rows(self, source: Source, columns: _Columns, options: Options) -> _Rows:
        """The rows with a truth and the predictions of all models."""
        # True is 1, whichever of the columns it is in
        rows = source.read(columns.wanted).with_columns(pl.selectors.boolean().exclude("^g.*$").cast(pl.Int8))
        rows = rows.with_columns(pl.selectors.float().exclude("^g.*$").fill_nan(None))
        labels = self._labels(rows, columns, options)
        names = [f"m{index}" for index in range(len(columns.models))]
        for name, column in zip(names, columns.models, strict=True):
            unknown = [value for value in rows[name].unique().to_list() if value not in (None, *labels.values)]
            if unknown:
                msg = (
                    f"`models`: {column.name!r} holds {listed(unknown)}, which is not among the labels "
                    f"{listed(labels.values)}."
                )
                raise ColumnError(msg)
        with_truth = rows.drop_nulls("truth")
        missing = [int(with_truth[name].null_count()) for name in names]
        complete = with_truth.drop_nulls(names)
        if complete.is_empty() and len(rows):
            raise ArgumentError(_no_rows(len(with_truth), missing, [column.name for column in columns.models]))
        keys = [f"g{index}" for index in range(len(columns.groups))]
        every = rows.select(keys).unique()
        named = every.with_columns(texts_of(every).alias("text"))
        groups = named.join(complete, on=keys, how="semi", nulls_equal=True).sort(keys, nulls_last=True)
        if len(groups) > _MOST_GROUPS:
            msg = f"model_frontier() accepts at most {_MOST_GROUPS} groups, not {len(groups)}; pool small groups first."
            raise ArgumentError(msg)
        numbered = groups.with_row_index("group")
        complete = complete.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        event = labels.values[labels.event or 0]
        event = int(event) if isinstance(event, bool) else event
        policy = self.disparity.policy
        sizes = complete["group"].value_counts().sort("group")["count"]
        excluded = policy.is_unknown(groups.select(keys)) | (sizes < policy.min_share * len(complete))
        return _Rows(complete.select("truth", "group", *names), event, groups["text"].to_list(), excluded, missing)

    def _labels(self, rows: pl.DataFrame, columns: _Columns, options: Options) -> Labels:
        """The labels of the truth and of the baseline's predictions, of which one is the event."""
        run = metric_set(self.performance).run
        truth, baseline = columns.truth.name, columns.models[0].name
        two = pl.DataFrame([rows["truth"].alias(truth), rows["m0"].alias(baseline)])
        named = replace(options, truth=truth, estimate=baseline)
        (evaluated,) = run.evaluate(run.count(open_frame(two), named), named)
        if evaluated.labels.event is None and len(rows):
            msg = (
                f"model_frontier() compares one label with the rest; give one of {listed(evaluated.labels.values)} as "
                "`pos_label=`."
            )
            raise ArgumentError(msg)
        return evaluated.labels


@dataclass(frozen=True)
class _Columns:
    """The columns that are read."""

    truth: Column
    groups: Sequence[Column]
    models: Sequence[Column]
    """The baseline comes first."""

    @property
    def wanted(self) -> dict[str, tuple[str, Column]]:
        """All of them with their roles, as `truth`, `g0`, `g1` …, and `m0`, `m1` …."""
        wanted = {"truth": ("truth", self.truth)}
        wanted |= {f"g{index}": ("by", column) for index, column in enumerate(self.groups)}
        return wanted | {f"m{index}": ("models", column) for index, column in enumerate(self.models)}


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that are compared."""

    frame: pl.DataFrame
    """Columns `truth`, the index of the `group`, and of the models `m0`, `m1` …."""
    event: object
    groups: list[str]
    excluded: pl.Series
    """A mask of the groups of unknown people, and of those with too small a share of the rows."""
    missing: list[int]
    """The rows with a truth that lack the prediction of each model."""

    @property
    def shown(self) -> dict[str, Any]:
        """The counts of rows, as columns of results."""
        return {".n": [len(self.frame)] * len(self.missing), ".n_missing": self.missing}


def _no_rows(with_truth: int, missing: Sequence[int], names: Sequence[str]) -> str:
    """The message if no row is complete."""
    needed = "model_frontier() needs rows with a truth and predictions of all models, but the data have none"
    if not with_truth:
        return f"{needed}: no row has a truth."
    most = max(missing)
    worst = names[missing.index(most)]
    return f"{needed}: {most} of {with_truth} rows with a truth have no prediction in {worst!r}."


def _nothing_compared(columns: Mapping[str, Any]) -> pl.DataFrame:
    """The results of no rows."""
    table = pl.DataFrame({name: columns.get(name, None) for name in _FRONTIER}, schema=_FRONTIER)
    is_baseline = pl.int_range(pl.len()) == 0
    return table.with_columns(
        pl.lit(value=False).alias(".on_frontier"), pl.when(is_baseline).then(pl.lit(_BASELINE)).alias(".verdict"),
        pl.lit([], pl.List(pl.String)).alias(".groups_left_out"),
    )  # fmt: skip


def _is_same(one: Column, other: Column) -> bool:
    """Check whether two columns are the same except for their names."""
    first, second = (column.expr.meta.undo_aliases() for column in (one, other))
    return first.meta.eq(second)


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
    counts: JointCounts
    excluded: pl.Series
    level: float
    seed: int

    def table(self, columns: Mapping[str, Any], groups: Sequence[str]) -> pl.DataFrame:
        """The row of each model, with the columns that are given, of groups of these names."""
        random = np.random.default_rng(self.seed)
        compared: dict[str, Any] = self._performances(random)
        gaps = self._gaps(random)
        compared |= gaps.columns() if gaps else self._no_disparities()
        compared |= self._verdicts(compared)
        shown = pl.DataFrame({**columns, **compared, ".groups_left_out": self._left_out(groups)}, schema=_FRONTIER)
        shown = shown.with_columns(pl.col(pl.Float64).fill_nan(None))
        # the baseline is not compared with itself
        is_baseline = pl.int_range(pl.len()) == 0
        return shown.with_columns(pl.when(~is_baseline).then(pl.col(r"^\..*_change.*$")))

    def _verdicts(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The models on the frontier, and what is shown of each beside the baseline."""
        sign = 1 if self.performance.direction == "maximize" else -1
        good, bad = sign * columns[".performance"], columns[".disparity"]
        known = np.isfinite(good) & np.isfinite(bad)
        better = (good[:, None] >= good) & (bad[:, None] <= bad) & ((good[:, None] > good) | (bad[:, None] < bad))
        on_frontier = known & ~(better & known[:, None]).any(axis=0)
        performance = _shown(columns, ".performance_change", _CHANGES[self.performance.direction])
        disparity = _shown(columns, ".disparity_change", ("less discriminatory", "more discriminatory"))
        verdict = [
            ", ".join(filter(None, shown)) or _ALIKE if is_known else None
            for *shown, is_known in zip(disparity, performance, known, strict=True)
        ]
        return {".on_frontier": on_frontier, ".verdict": [_BASELINE, *verdict[1:]]}

    def _wider(self, denominator: Array) -> Array:
        """The factor by which Student's t widens limits for few rows; infinite for one row."""
        z = z_value(self.level)
        wider = student_limits(z, denominator.ravel() - 1).reshape(denominator.shape) / z
        return np.nan_to_num(wider, nan=_NOT_KNOWN)

    def _performances(self, random: np.random.Generator) -> dict[str, Any]:
        """The performance of models and its changes, with limits."""
        formula, cells = self.performance.definition, self.counts.cells.sum(axis=1)
        values, denominator = values_of(formula, cells)
        centres, _ = values_of(formula, cells + HALF_ROW)
        influence = influences_of(formula, cells)
        shared = sum(self.counts.covariance(group, influence, influence) for group in range(len(self.counts.rows)))
        wider = self._wider(denominator)
        covariance = _with_half_rows(cast("Array", shared), influence) * wider[:, None] * wider
        drawn = _draws(covariance, random)
        least, most = self.performance.range
        variance = covariance.diagonal()
        columns = self._limits(".performance", values, centres, np.sqrt(variance), drawn, (least, most))
        change_errors = _errors_of_changes(variance, variance[0], covariance[0])
        changes = values - values[0], centres - centres[0], change_errors, drawn - drawn[:, :1]
        return columns | self._limits(".performance_change", *changes, (least - most, most - least))

    def _limits(
        self, name: str, values: Array, centres: Array, errors: Array, drawn: Array, ends: tuple[float, float]
    ) -> dict[str, Array]:
        """Values with simultaneous limits about their centres, within the possible range."""
        reach = _critical(_largest(drawn, errors), self.level) * errors
        return _columns_of(name, values, centres - reach, centres + reach, ends)

    # Disparities

    @cached_property
    def _values(self) -> tuple[Array, Array]:
        """The values of formulas by models by groups, where there are enough rows, and their denominators."""
        pairs = [values_of(formula, self.counts.cells) for _, formula in self.disparity.formulas]
        values, denominators = (np.stack(arrays) for arrays in zip(*pairs, strict=True))
        is_compared = (denominators >= max(self.disparity.policy.min_n, 1)) & ~self.excluded.to_numpy()
        return np.where(is_compared, values, math.nan), denominators

    @property
    def _centres(self) -> Array:
        """The values with half a row more in each cell, about which limits lie."""
        cells = self.counts.cells + HALF_ROW
        centres = np.stack([values_of(formula, cells)[0] for _, formula in self.disparity.formulas])
        return np.where(np.isfinite(self._values[0]), centres, math.nan)

    @cached_property
    def _is_compared(self) -> Array:
        """The groups of which the baseline has values."""
        values, _ = self._values
        return np.all(np.isfinite(values[:, 0]), axis=0)

    def _left_out(self, groups: Sequence[str]) -> pl.Series:
        """The names of the groups that are not compared, the same in every row."""
        left_out = [group for group, is_compared in zip(groups, self._is_compared, strict=True) if not is_compared]
        return pl.Series([left_out] * self.counts.cells.shape[0], dtype=pl.List(pl.String))

    def _no_disparities(self) -> dict[str, Array]:
        nothing = np.full(self.counts.cells.shape[0], math.nan)
        return {name: nothing for name, kind in _FRONTIER.items() if kind == pl.Float64 and "disparity" in name}

    @cached_property
    def _influences(self) -> list[Array]:
        """The influences on the values of each formula: models by groups by cells."""
        return [influences_of(formula, self.counts.cells) for _, formula in self.disparity.formulas]

    def _gaps(self, random: np.random.Generator) -> _Gaps | None:
        """The gaps between groups; None where there are no two."""
        values, _ = self._values
        chosen: list[int] = self._is_compared.nonzero()[0].tolist()
        if len(chosen) < 2:
            return None
        formulas, models = values.shape[:2]
        variances = np.zeros((formulas, len(chosen), models))
        with_baseline = np.zeros((formulas, len(chosen), formulas, len(chosen), models))
        drawn = np.zeros((formulas, len(chosen), _DRAWS, models), dtype=np.float32)
        for index, group in enumerate(chosen):
            covariance = self._covariance_in(group)
            for formula in range(formulas):
                variances[formula, index] = covariance[formula, :, formula].diagonal()
                with_baseline[formula, index, :, index] = covariance[formula, :, :, 0].T
            joint = covariance.reshape(formulas * models, formulas * models)
            drawn[:, index] = _draws(joint, random).reshape(_DRAWS, formulas, models).swapaxes(0, 1)
        size = formulas * len(chosen)
        one, other = _pairs(formulas, len(chosen))
        return _Gaps(
            values=values[:, :, chosen].swapaxes(1, 2).reshape(size, models),
            centres=self._centres[:, :, chosen].swapaxes(1, 2).reshape(size, models),
            variances=variances.reshape(size, models), with_baseline=with_baseline.reshape(size, size, models),
            drawn=drawn.reshape(size, _DRAWS, models), one=one, other=other, level=self.level,
            most=self.disparity.range[1],
        )  # fmt: skip

    def _covariance_in(self, group: int) -> Array:
        """The covariance of values in a group: formulas by models by formulas by models."""
        _, denominators = self._values
        formulas, models = denominators.shape[:2]
        covariance = np.zeros((formulas, models, formulas, models))
        for one, other in itertools.product(range(formulas), repeat=2):
            first, second = self._influences[one][:, group], self._influences[other][:, group]
            shared = self.counts.covariance(group, first, second)
            covariance[one, :, other] = _with_half_rows(shared, first) if one == other else shared
        wider = self._wider(denominators[:, :, group])
        return np.nan_to_num(covariance * wider[:, :, None, None] * wider)


def _pairs(formulas: int, groups: int) -> tuple[Array, Array]:
    """The indices of values whose gaps are compared, of one formula each; the second half are the opposite gaps."""
    one, other = np.triu_indices(groups, 1)
    start = np.repeat(np.arange(formulas) * groups, len(one))
    one, other = start + np.tile(one, formulas), start + np.tile(other, formulas)
    return np.concatenate([one, other]), np.concatenate([other, one])


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
    def signs(self) -> Array:
        """Gaps as sums of values with a sign: gaps by values."""
        signs = np.zeros((len(self.one), len(self.values)))
        rows = np.arange(len(signs))
        signs[rows, self.one], signs[rows, self.other] = 1, -1
        return signs

    @property
    def halves(self) -> range:
        """One gap of each pair of opposites."""
        return range(len(self.one) // 2)

    def columns(self) -> dict[str, Array]:
        """The disparities and their changes from the baseline's, with limits."""
        errors = self.gap_variances**0.5
        reach = self._critical(errors) * errors
        disparity = (self.values[self.one] - self.values[self.other]).max(axis=0)
        lower, upper = (self.gaps - reach).max(axis=0), (self.gaps + reach).max(axis=0)
        columns = _columns_of(".disparity", disparity, lower, upper, (0, self.most))
        changes = self._changes(self._critical_of_changes())
        return columns | _columns_of(".disparity_change", disparity - disparity[0], *changes, (-self.most, self.most))

    def _drawn_gap(self, gap: Any) -> Array:
        """Draws of the error of one gap, or of several."""
        return self.drawn[self.one[gap]] - self.drawn[self.other[gap]]

    def _critical(self, errors: Array) -> float:
        """The simultaneous critical value of the gaps of all models, in standard errors."""
        count = len(self.halves) * errors.shape[1]
        if count * _DRAWS > _MOST_DRAWN:
            return _bonferroni(count, self.level)
        largest = np.zeros(_DRAWS)
        for gap in in_progress(self.halves, "simulating"):
            np.maximum(largest, _largest(self._drawn_gap(gap), errors[gap]), out=largest)
        return _critical(largest, self.level)

    # Changes

    def _critical_of_changes(self) -> float:
        """The simultaneous critical value of changes of gaps from gaps of the baseline, in standard errors."""
        count = len(self.one) * len(self.halves) * max(self.gaps.shape[1] - 1, 1)
        if count * _DRAWS > _MOST_DRAWN:
            return _bonferroni(count, self.level)
        drawn = self._drawn_gap(slice(None))
        largest = np.zeros(_DRAWS)
        for of_baseline in in_progress(self.halves, "simulating changes"):
            # covariances of values with this gap, and so of all gaps with it
            shared = self.signs @ np.tensordot(self.signs[of_baseline], self.with_baseline, (0, 1))
            errors = _errors_of_changes(self.gap_variances, self.gap_variances[of_baseline, 0], shared)
            changes = drawn - drawn[of_baseline, :, :1]
            np.maximum(largest, _largest(changes, errors[:, None]).max(axis=0), out=largest)
        return _critical(largest, self.level)

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
            of_baseline, own = largest[:, 0], largest[:, model]
            # covariances of gaps with values of the baseline
            shared = self.signs @ self.with_baseline[:, :, model]
            paired = self._change(model, every, every, (shared * self.signs).sum(axis=1), critical)
            above = self._change(model, every[:, None], of_baseline, shared @ self.signs[of_baseline].T, critical)
            below = self._change(model, own[:, None], every, shared[own] @ self.signs.T, critical)
            upper[model] = np.minimum(above[1].min(axis=1), paired[1]).max()
            lower[model] = np.maximum(below[0].max(axis=0), paired[0]).min()
        return lower, upper

    def _change(
        self, model: int, gap: Array, of_baseline: Array, shared: Array, critical: float
    ) -> tuple[Array, Array]:
        """Lower and upper limits of gaps of a model less gaps of the baseline, with these covariances."""
        errors = _errors_of_changes(self.gap_variances[gap, model], self.gap_variances[of_baseline, 0], shared)
        change = self.gaps[gap, model] - self.gaps[of_baseline, 0]
        return change - critical * errors, change + critical * errors


def _shown(columns: Mapping[str, Any], change: str, words: tuple[str, str]) -> list[str]:
    """The verdicts of the limits of changes: below 0, above 0, or neither shown."""
    less, more = words
    is_shown = [columns[f"{change}_upper"] < 0, columns[f"{change}_lower"] > 0]
    return np.select(is_shown, [less, more], "").tolist()


def _errors_of_changes(variance: Array, of_baseline: Array, shared: Array) -> Array:
    """Standard errors of values less those of the baseline."""
    return np.sqrt(np.maximum(variance + of_baseline - 2 * shared, 0))


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


def _critical(largest: Array, level: float) -> float:
    """The simultaneous critical value, in standard errors."""
    return float(np.quantile(largest, level))


def _bonferroni(count: int, level: float) -> float:
    """The Bonferroni critical value for a number of values."""
    return z_value(1 - (1 - level) / count)


def _with_half_rows(covariance: Array, influence: Array) -> Array:
    """A covariance plus that of half a row in each cell, not shared by models, so that perfect values have an error."""
    return covariance + np.diag(HALF_ROW * (influence**2).sum(axis=-1))


def _draws(covariance: Array, random: np.random.Generator) -> Array:
    """Normal draws with a covariance, in the columns."""
    errors = np.sqrt(covariance.diagonal())
    scale = np.where(errors > 0, errors, 1)
    # what does not vary at all has no correlations, and a little of its own keeps the matrix from being singular
    correlation = covariance / scale[:, None] / scale
    np.fill_diagonal(correlation, 1 + _JITTER)
    factor = (np.linalg.cholesky(correlation).T * errors).astype(np.float32)
    return random.standard_normal((_DRAWS, len(errors)), dtype=np.float32) @ factor


@refuse_unknown_keywords
def model_frontier(performance: Metric, disparity: GroupwiseMetric) -> ModelFrontier:
    """Compare hundreds of models on the same rows by performance and disparity, with limits that allow for the search.

    Among many models some look fairer by chance. So the intervals of values, and of changes from the baseline, are
    simultaneous for all models, from correlated draws of all errors (max-T; Bonferroni's bound for very many gaps).
    Models with similar selections cost little precision. A demonstrably smaller disparity without a demonstrable loss
    of performance is evidence of a less discriminatory alternative; `not told apart` is not evidence that none exists.

    Models are columns of labels, or expressions such as `(pl.col("score") >= 0.4).alias("at 0.4")`. Intervals are
    normal, from exact covariances, centred at values with half a row added to each cell, and wider for few rows; a
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
