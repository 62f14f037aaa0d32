"""Choice among many models: performance and disparity of each, with limits that allow for having searched.

All models are seen on the same rows, so that what two of them share cancels. How often each two of them select the same
rows is counted once, by group and truth; values, their errors and how these hang together follow from these counts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, cast

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.evaluation.statistics import CELLS, Table, statistics_of
from tidyfair.evaluation.values import OfRows, evaluate
from tidyfair.intervals.proportions import z_value
from tidyfair.metric_sets import GroupwiseMetric, Metric, metric_set
from tidyfair.specs.columns import Column, are_columns
from tidyfair.specs.contrasts import difference
from tidyfair.specs.formulas import ROWS
from tidyfair.specs.options import refuse_unknown_keywords, show_keywords
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias, Unpack

    import numpy as np

    from tidyfair.evaluation.labels import Labels
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.formulas import Formula
    from tidyfair.specs.options import Options
    from tidyfair.tallies.source import Source

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["ModelFrontier", "model_frontier"]

_HALF_ROW, _STEP = 0.5, 0.25
"""What is added to each cell where errors are worked out, and the step of derivatives there."""
_BLOCK = 2**15
_DRAWS = 2_000
_MOST_CONTRASTS = 6e8
"""The most numbers that are drawn for the largest of all changes; beyond, the bound of Bonferroni is used."""
_MOST_GROUPS = 100
_FRONTIER = {
    ".model": pl.String,
    ".performance": pl.Float64, ".performance_lower": pl.Float64, ".performance_upper": pl.Float64,
    ".disparity": pl.Float64, ".disparity_lower": pl.Float64, ".disparity_upper": pl.Float64,
    ".performance_change": pl.Float64, ".performance_change_lower": pl.Float64, ".performance_change_upper": pl.Float64,
    ".disparity_change": pl.Float64, ".disparity_change_lower": pl.Float64, ".disparity_change_upper": pl.Float64,
    ".on_frontier": pl.Boolean, ".verdict": pl.String,
}  # fmt: skip
BASELINE, LESS, LESS_BUT_WORSE, NOT_SHOWN = "baseline", "less discriminatory", "less discriminatory, worse", "not shown"


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

        Rows without a truth, or without one of the predictions, are left out for all. It takes `pos_label`, `labels`,
        `conf_level` and `seed`, as a metric does.

        Returns:
            One row for each model, the baseline first: `.model`, its `.performance` and `.disparity`, how much they
            differ from those of the baseline (`.performance_change`, `.disparity_change`), each with limits that hold
            for all models together (`…_lower`, `…_upper`); `.on_frontier`, whether no other model is observed to be
            better in one and as good in the other; and the `.verdict`: `less discriminatory` where the disparity is
            demonstrably smaller than that of the baseline, and the performance is not demonstrably worse; `less
            discriminatory, worse` where it is; else `not shown`.
        """
        for name in options:
            if name not in FrontierOptions.__annotations__:
                known = ["data", "truth", "models", "baseline", *FrontierOptions.__annotations__]
                raise ArgumentError.unknown("argument", name, known)
        checked = replace(metric_set(self.performance).run.options(options, truth=truth), on_undefined="ignore")
        source = open_frame(data)
        if source.outer or source.sides:
            msg = "model_frontier() compares models on all rows; call it for each group of grouped data."
            raise ArgumentError(msg)
        columns = _columns_of(models, baseline)
        rows, event = self._rows(source, Column.of(truth, "truth"), columns, checked)
        counts = JointCounts.of(rows, event, len(columns))
        compared = _Comparison(self.performance, self.disparity, counts, checked.conf_level, checked.seed)
        return source.restore(compared.table([column.name for column in columns]))

    def _rows(
        self, source: Source, truth: Column, columns: Sequence[Column], options: Options
    ) -> tuple[pl.DataFrame, object]:
        """The complete rows, as columns `truth`, `group` and, of the models, `m0`, `m1` …; and the event."""
        truth.check(source.columns, "truth")
        for column in columns:
            column.check(source.columns, "models")
            if column == truth:
                msg = f"`models`: {column.name!r} is the truth, and no prediction."
                raise ColumnError(msg)
        groups = self.disparity.by.columns
        wanted = {"truth": ("truth", truth)}
        wanted |= {f"g{index}": ("by", column) for index, column in enumerate(groups)}
        wanted |= {f"m{index}": ("models", column) for index, column in enumerate(columns)}
        # True is 1, whichever of the columns it is in
        rows = source.read(wanted).with_columns(pl.selectors.boolean().exclude("^g.*$").cast(pl.Int8))
        names = [f"m{index}" for index in range(len(columns))]
        labels = self._labels(rows, truth, columns[0], options)
        for name, column in zip(names, columns, strict=True):
            unknown = [value for value in rows[name].unique().to_list() if value not in (None, *labels.values)]
            if unknown:
                msg = f"`models`: {column.name!r} holds {listed(unknown)}, which is none of {listed(labels.values)}."
                raise ColumnError(msg)
        rows = rows.drop_nulls(["truth", *names])
        if rows.is_empty():
            msg = "model_frontier() has no rows: none has a truth and the predictions of all models."
            raise ArgumentError(msg)
        keys = [f"g{index}" for index in range(len(groups))]
        numbered = rows.select(keys).unique(maintain_order=True).sort(keys, nulls_last=True).with_row_index("group")
        if len(numbered) > _MOST_GROUPS:
            msg = f"model_frontier() compares {_MOST_GROUPS} groups at most, not {len(numbered)}."
            raise ArgumentError(msg)
        rows = rows.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        event = labels.values[labels.event or 0]
        return rows.select("truth", "group", *names), int(event) if isinstance(event, bool) else event

    def _labels(self, rows: pl.DataFrame, truth: Column, baseline: Column, options: Options) -> Labels:
        """The labels of the truth and of the baseline's predictions, of which one is the event."""
        run = metric_set(self.performance).run
        two = pl.DataFrame([rows["truth"].alias(truth.name), rows["m0"].alias(baseline.name)])
        named = replace(options, truth=truth.name, estimate=baseline.name)
        (evaluated,) = run.evaluate(run.count(open_frame(two), named), named)
        if evaluated.labels.event is None:
            msg = (
                f"model_frontier() reads one label against the rest, of {listed(evaluated.labels.values)}: name it as "
                "`pos_label=`."
            )
            raise ArgumentError(msg)
        return evaluated.labels


def _columns_of(models: object, baseline: object) -> list[Column]:
    """The columns of the models, the baseline first."""
    if not are_columns(models):
        msg = f'`models` is a list of columns of predictions, such as `["one", "other"]`, not {models!r}.'
        raise ArgumentError(msg)
    first = Column.of(baseline, "baseline")
    columns = [first, *dict.fromkeys(Column.of(model, "models") for model in models)]
    columns = list(dict.fromkeys(columns))
    if len(columns) < 2:
        msg = "`models` needs a column of predictions beside that of the baseline."
        raise ArgumentError(msg)
    names = [column.name for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"`models`: several models are called {listed(twice)}; give them names of their own, `.alias(…)`."
        raise ArgumentError(msg)
    return columns


@dataclass(frozen=True, eq=False)
class JointCounts:
    """How many rows of each group with and without the event are selected by each two models."""

    both: Array
    """Groups by truth (without, with) by models by models; the diagonal is what one model selects."""
    rows: Array
    """Groups by truth."""

    @classmethod
    def of(cls, rows: pl.DataFrame, event: object, models: int) -> JointCounts:
        """Count the rows, once."""
        import numpy as np

        is_event = [
            (rows[name] == event).to_numpy().astype(bool)
            for name in ("truth", *(f"m{index}" for index in range(models)))
        ]
        truth, group = is_event[0].astype(np.int64), rows["group"].to_numpy().astype(np.int64)
        part = 2 * group + truth
        parts = 2 * (int(group.max()) + 1)
        size = np.bincount(part, minlength=parts)
        order = np.argsort(part, kind="stable")
        selected = np.stack(is_event[1:])
        both = np.zeros((parts, models, models))
        ends = np.cumsum(size)
        for index, (end, count) in enumerate(zip(ends, size, strict=True)):
            for start in range(end - count, end, _BLOCK):
                # whole numbers below 2**24 are exact in single precision
                block = np.take(selected, order[start : min(start + _BLOCK, end)], axis=1).astype(np.float32)
                both[index] += block @ block.T
        return cls(both.reshape(-1, 2, models, models), size.reshape(-1, 2).astype(float))

    @cached_property
    def cells(self) -> Array:
        """The table of each model in each group: models by groups by `tp`, `fn`, `fp`, `tn`."""
        import numpy as np

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
            # an influence is that of a row that is not selected, and what being selected adds
            first, second = one[:, miss], other[:, miss]
            gain, other_gain = one[:, hit] - first, other[:, hit] - second
            total = total + rows * first[:, None] * second + first[:, None] * (other_gain * selected)
            total = total + (gain * selected)[:, None] * second + gain[:, None] * other_gain * both
        return cast("Array", total)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """Models, of which the first is the baseline, with the covariances of their values."""

    performance: Metric
    disparity: GroupwiseMetric
    counts: JointCounts
    level: float
    seed: int

    def table(self, names: Sequence[str]) -> pl.DataFrame:
        """The row of each model."""
        import numpy as np

        random = np.random.default_rng(self.seed)
        values, drawn, errors = self._performances(random)
        change, change_error = values - values[0], _error_of_change(self._covariance_of_performance)
        critical = _critical(_largest(drawn, errors), self.level)
        critical_change = _critical(_largest(drawn - drawn[:, :1], change_error), self.level)
        columns: dict[str, Any] = {
            ".model": list(names), ".performance": values, ".performance_lower": values - critical * errors,
            ".performance_upper": values + critical * errors, ".performance_change": change,
            ".performance_change_lower": change - critical_change * change_error,
            ".performance_change_upper": change + critical_change * change_error,
        }  # fmt: skip
        columns |= self._disparities(random)
        least, most = self.performance.range
        for name in (".performance_lower", ".performance_upper"):
            columns[name] = np.clip(columns[name], least, most)
        columns |= self._verdicts(columns)
        table = pl.DataFrame(columns, schema=_FRONTIER).with_columns(pl.col(pl.Float64).fill_nan(None))
        # the baseline is not compared with itself
        own = pl.int_range(pl.len()) == 0
        return table.with_columns(pl.when(~own).then(pl.col(r"^\..*_change.*$")))

    def _verdicts(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Which models are on the frontier, and which are less discriminatory alternatives."""
        import numpy as np

        sign = 1 if self.performance.direction == "maximize" else -1
        good, bad = sign * columns[".performance"], columns[".disparity"]
        known = np.isfinite(good) & np.isfinite(bad)
        better = (good[:, None] >= good) & (bad[:, None] <= bad) & ((good[:, None] > good) | (bad[:, None] < bad))
        on_frontier = known & ~(better & known[:, None]).any(axis=0)
        end = columns[".performance_change_upper" if sign == 1 else ".performance_change_lower"]
        is_worse, is_less = sign * end < 0, columns[".disparity_change_upper"] < 0
        verdict = np.select([is_less & is_worse, is_less, known], [LESS_BUT_WORSE, LESS, NOT_SHOWN], "")
        verdict[0] = BASELINE
        return {".on_frontier": on_frontier, ".verdict": pl.Series(verdict.tolist()).replace("", None)}

    # Performance

    @cached_property
    def _covariance_of_performance(self) -> Array:
        influence = influences_of(self.performance.definition, self.counts.cells.sum(axis=1))
        groups = range(len(self.counts.rows))
        shared = sum(self.counts.covariance(group, influence, influence) for group in groups)
        return _with_half_rows(cast("Array", shared), influence)

    def _performances(self, random: np.random.Generator) -> tuple[Array, Array, Array]:
        """The performance of models, draws of its error, and its standard error."""
        import numpy as np

        values, _ = values_of(self.performance.definition, self.counts.cells.sum(axis=1))
        covariance = self._covariance_of_performance
        return values, _draws(covariance, random), np.sqrt(covariance.diagonal())

    # Disparities

    def _disparities(self, random: np.random.Generator) -> dict[str, Any]:
        """The disparities and their changes, with limits."""
        import numpy as np

        values, covariances = self._group_values()
        formulas, models = values.shape[:2]
        usable = np.isfinite(values[:, 0]).all(axis=0)
        if usable.sum() < 2:
            nothing = np.full(models, math.nan)
            names = (".disparity", ".disparity_change")
            return {name + end: nothing for name in names for end in ("", "_lower", "_upper")}
        kept = np.flatnonzero(usable)
        drawn = np.stack([_draws(covariances[group], random).reshape(-1, formulas, models) for group in kept], axis=-1)
        values = values[:, :, kept]
        shared = covariances[kept].reshape(len(kept), formulas, models, formulas, models)
        pairs = [
            (formula, one, other)
            for formula in range(formulas)
            for one, other in itertools.permutations(range(len(kept)), 2)
        ]
        gaps = np.stack([values[formula, :, one] - values[formula, :, other] for formula, one, other in pairs])
        errors = np.stack([np.sqrt(_variance(shared, pair)) for pair in pairs])
        gaps_drawn = [drawn[:, formula, :, one] - drawn[:, formula, :, other] for formula, one, other in pairs]
        # the gap from one group to the other has the sign of that from the other to the one, and no more to say
        halves = [index for index, (_, one, other) in enumerate(pairs) if one < other]
        largest = np.max([_largest(gaps_drawn[index], errors[index]) for index in halves], axis=0)
        reach = _critical(largest, self.level) * errors
        result = {
            ".disparity": gaps.max(axis=0),
            ".disparity_lower": (gaps - reach).max(axis=0).clip(0),
            ".disparity_upper": (gaps + reach).max(axis=0),
        }
        change_errors = np.stack([[_error_of_gaps(shared, one, other) for other in pairs] for one in pairs])
        return result | self._changes(gaps, gaps_drawn, change_errors, halves)

    def _group_values(self) -> tuple[Array, Array]:
        """The values of formulas by models by groups, and their covariances in each group."""
        import numpy as np

        cells = self.counts.cells
        formulas = [formula for _, formula in self.disparity.formulas]
        values: list[Array] = []
        influences: list[Array] = []
        for formula in formulas:
            value, denominator = values_of(formula, cells)
            values.append(np.where(denominator >= max(self.disparity.min_n, 1), value, math.nan))
            influences.append(influences_of(formula, cells))
        models, groups = cells.shape[:2]
        covariances = np.zeros((groups, len(formulas), models, len(formulas), models))
        for group in range(groups):
            for (i, one), (j, other) in itertools.product(enumerate(influences), repeat=2):
                shared = self.counts.covariance(group, one[:, group], other[:, group])
                covariances[group, i, :, j] = _with_half_rows(shared, one[:, group]) if i == j else shared
        size = len(formulas) * models
        return np.stack(values), np.nan_to_num(covariances.reshape(groups, size, size))

    def _changes(self, gaps: Array, drawn: Sequence[Array], errors: Array, halves: Sequence[int]) -> dict[str, Any]:
        """The changes of disparities from the baseline's, with limits.

        A disparity is the largest gap, so it is no more than the baseline's plus the largest change of any gap from any
        one gap of the baseline: the least of these bounds is taken, and all of them hold together.
        """
        disparity = gaps.max(axis=0)
        reach = self._critical_change(drawn, errors, halves) * errors
        change = gaps[:, None] - gaps[None, :, :1]
        return {
            ".disparity_change": disparity - disparity[0],
            ".disparity_change_lower": (change - reach).min(axis=1).max(axis=0),
            ".disparity_change_upper": (change + reach).max(axis=0).min(axis=0),
        }

    def _critical_change(self, drawn: Sequence[Array], errors: Array, halves: Sequence[int]) -> float:
        """The standard errors that no change of a gap from one of the baseline is beyond, at the level."""
        import numpy as np

        draws, models = drawn[0].shape
        contrasts = len(drawn) * len(halves) * (models - 1)
        if contrasts * draws > _MOST_CONTRASTS:
            return z_value(1 - (1 - self.level) / contrasts)
        largest = np.zeros(draws)
        for one, other in itertools.product(range(len(drawn)), halves):
            of_pair = _largest(drawn[one] - drawn[other][:, :1], errors[one, other])
            np.maximum(largest, of_pair, out=largest)
        return _critical(largest, self.level)


def _variance(shared: Array, pair: tuple[int, int, int]) -> Array:
    """The variance of the gap of each model between two groups in a formula."""
    formula, one, other = pair
    return shared[one, formula, :, formula].diagonal() + shared[other, formula, :, formula].diagonal()


def _error_of_gaps(shared: Array, pair: tuple[int, int, int], baseline: tuple[int, int, int]) -> Array:
    """The standard error of a gap of each model less a gap of the baseline."""
    import numpy as np

    (formula, *groups), (other_formula, *other_groups) = pair, baseline
    variance = _variance(shared, pair) + _variance(shared, baseline)[0]
    signed, of_baseline = zip((1, -1), groups, strict=True), zip((1, -1), other_groups, strict=True)
    for (sign, group), (other_sign, other) in itertools.product(signed, of_baseline):
        if group == other:
            variance = variance - 2 * sign * other_sign * shared[group, formula, :, other_formula, 0]
    return np.sqrt(np.maximum(variance, 0))


def _largest(drawn: Array, errors: Array) -> Array:
    """The largest distance of each draw in standard errors, but for the baseline's from itself."""
    import numpy as np

    return np.abs(drawn / np.where(errors > 0, errors, math.inf)).max(axis=1)


def _critical(largest: Array, level: float) -> float:
    """The standard errors that no value is beyond, at the level."""
    import numpy as np

    return float(np.quantile(largest, level))


def _error_of_change(covariance: Array) -> Array:
    """The standard error of each value less the first."""
    import numpy as np

    variance = covariance.diagonal()
    return np.sqrt(np.maximum(variance + variance[0] - 2 * covariance[0], 0))


def _draws(covariance: Array, random: np.random.Generator) -> Array:
    """Normal draws with a covariance, in the columns."""
    import numpy as np

    values, vectors = np.linalg.eigh(covariance)
    shape = _DRAWS, len(values)
    return random.standard_normal(shape, dtype=np.float32) @ (vectors * np.sqrt(values.clip(0))).T.astype(np.float32)


def _with_half_rows(covariance: Array, influence: Array) -> Array:
    """A covariance with that of half a row in each cell, which models do not share: what is all right is not sure."""
    import numpy as np

    return covariance + np.diag(_HALF_ROW * (influence**2).sum(axis=-1))


def values_of(formula: Formula, cells: Array) -> tuple[Array, Array]:
    """The values of a formula and its denominators; the last axis of the tables is that of `CELLS`, or of its first."""
    import numpy as np

    flat = cells.reshape(-1, cells.shape[-1])
    columns = dict(zip(CELLS, flat.T, strict=False))
    counts = {name + ROWS: columns.get(name, np.zeros(len(flat)))[:, None] for name in CELLS}
    values = evaluate(formula, "binary", statistics_of(Table("class"), counts), OfRows({}, {}))
    shape = cells.shape[:-1]
    return values.estimate[:, 0].reshape(shape), values.denominator[:, 0].reshape(shape)


def influences_of(formula: Formula, cells: Array) -> Array:
    """What one row more in each cell adds to the values of a formula, with half a row more in each."""
    import numpy as np

    there = cells + _HALF_ROW
    influences: list[Array] = []
    for step in np.eye(cells.shape[-1]) * _STEP:
        above, below = (values_of(formula, there + sign * step)[0] for sign in (1, -1))
        influences.append((above - below) / (2 * _STEP))
    return np.stack(influences, axis=-1)


@refuse_unknown_keywords
def model_frontier(performance: Metric, disparity: GroupwiseMetric) -> ModelFrontier:
    """Compare hundreds of models on the same rows by performance and disparity, with limits that allow for the search.

    Of many models some look fairer by chance. So intervals, and those of the changes from the baseline, hold for all
    models together: draws of all of them, correlated as their predictions are, say how far any is off at once (max-T).
    Models that select alike cost little. A disparity that is demonstrably smaller at no demonstrable loss is evidence
    of a less discriminatory alternative; `not shown` is no evidence that there is none.

    Models are columns of labels, or expressions of them such as `(pl.col("score") >= 0.4).alias("at 0.4")`. Intervals
    are normal ones, from covariances that are counted; it takes independent rows, and no weights.

    Args:
        performance: A metric of labels, such as `accuracy` or `f_meas`.
        disparity: A range of one or more metrics of labels, such as `demographic_parity("race")`.

    Raises:
        ArgumentError: For metrics of scores or numbers, and for other aggregates than the range of `difference()`.

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
            "model_frontier() takes a metric and a disparity, such as "
            f'`model_frontier(accuracy, demographic_parity("race"))`, not {performance!r} and {disparity!r}.'
        )
        raise ArgumentError(msg)
    for name, formula in (*performance.formulas, *disparity.formulas):
        if not is_of_cells(formula):
            msg = f"model_frontier() takes metrics that are worked out from counts of labels; {name} is not."
            raise ArgumentError(msg)
    if performance.direction not in {"maximize", "minimize"}:
        msg = (
            f"model_frontier() needs a performance that is to be large or small; {performance.name} should be neither."
        )
        raise ArgumentError(msg)
    is_range = disparity.aggregate == difference(to="range", signed=False)
    if not is_range or disparity.less or disparity.by.sides:
        msg = (
            f"model_frontier() compares groups by the largest difference between any two, `difference()`; "
            f"{disparity.name} compares them otherwise."
        )
        raise ArgumentError(msg)
    return ModelFrontier(performance, disparity)


def is_of_cells(formula: Formula) -> bool:
    """Tell whether a formula reads nothing but the counts of one label against the rest."""
    plain = formula.kind == "class" and formula.input == "sums" and formula.given is None
    return plain and not formula.beyond and not formula.all_terms
