"""Monitors: intervals and verdicts that are valid at all looks simultaneously, for any number of looks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.inference.confidence_sequences import DIFFERENCE, RATIO, Pair, Totals
from tidyfair.inference.gates import judged_metrics, lacks_range, limited
from tidyfair.inference.on_data import CalledOnData
from tidyfair.inference.running_sums import LOOK, MOST_PAIRS, Looks, RunningSums
from tidyfair.intervals.progress import in_progress
from tidyfair.intervals.shares import is_mean, share_of
from tidyfair.metric_sets import GroupwiseMetric
from tidyfair.specs.arguments import flag, is_list, number, proper_share, whole
from tidyfair.specs.contrasts import Difference, Ratio
from tidyfair.specs.options import CallOptions, ReadOptions, refuse_unknown_keywords, show_keywords
from tidyfair.specs.spreads import GroupMaximum, GroupMinimum
from tidyfair.tallies.tally import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from tidyfair.inference.verdicts import Side
    from tidyfair.metric_sets import Metric, MetricSet
    from tidyfair.runner import Run
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.options import Options, OptionsOf
    from tidyfair.tallies.tally import Tally

    Array: TypeAlias = np.ndarray[Any, Any]
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Bounds: TypeAlias = tuple[float, float]

__all__ = ["Monitor", "monitor"]

_DEPENDENT = ": it needs independent rows"
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("interval", "conf_level", "explain"), "; its `confidence` is that of `monitor`"),
    **dict.fromkeys(("times", "seed", "parts", "keep_rows", "score_bins"), ": it reads sums and draws no samples"),
    **dict.fromkeys(("top_k", "top_fraction", "cluster"), _DEPENDENT),
    "case_weights": ": it needs rows with equal weights",
    "na_rm": ": rows without a value are never counted",
    "on_undefined": ": groups without a value have no limits",
}
"""The options of metrics that a monitor does not accept, and why."""
_BEYOND: dict[Side, str] = {"below": "above the limit", "above": "below the limit"}
_WITHIN, _UNDECIDED = "within", "undecided"
_ENDS = 2
_MOST_PAIRS = 25_000_000
"""The most pairs of groups, both ways round, over all looks: about two minutes."""


@dataclass(frozen=True)
class Monitor(CalledOnData):
    """Metrics with a limit, as a callable that judges all rows so far at any time; made by `monitor`."""

    subject: ClassVar[str] = "A monitor"
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metrics: MetricSet
    side: Side
    limit: float
    confidence: float = 0.95
    period: str | None = None
    groups: int | None = None
    bounds: tuple[float, float] | None = None
    change: bool = False

    @show_keywords(CallOptions, without=_REFUSED)
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Look at all rows so far, or at the end of each period; takes the arguments of a metric."""
        return self._on_data(data, truth, estimate, options)

    @show_keywords(ReadOptions, without=_REFUSED)
    def compute(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Look at a tally of all rows so far, such as the `state` of an accumulator."""
        return self._on_tally(tally, options)

    @show_keywords(CallOptions, without=_REFUSED)
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """The values of the groups, with intervals simultaneous for all groups and looks."""
        return self._of_groups._on_data(data, truth, estimate, options)  # noqa: SLF001 - of the same class

    @show_keywords(ReadOptions, without=_REFUSED)
    def compute_by_group(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """The values of the groups of a tally of all rows so far."""
        return self._of_groups._on_tally(tally, options)  # noqa: SLF001 - of the same class

    @property
    def _of_groups(self) -> _GroupMonitor:
        return _GroupMonitor(
            self.metrics, self.side, self.limit, self.confidence, self.period, self.groups, self.bounds, self.change
        )

    @property
    def _run(self) -> Run:
        return self.metrics.run

    def _options(
        self, run: Run, keywords: Mapping[str, Any], accepted: OptionsOf, *, truth: Any = None, estimate: Any = None
    ) -> Options:
        options = super()._options(run, keywords, accepted, truth=truth, estimate=estimate)
        return replace(options, on_undefined="ignore")

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        looks, sums = self._sums(tally, options)
        return pl.concat([looks.keyed(table) for table in self._verdicts(looks, sums)])

    def _sums(self, tally: Tally, options: Options) -> tuple[Looks, list[RunningSums]]:
        """The looks at a tally, and the sums of each metric."""
        _check_counted(tally)
        (evaluated,) = self._run.evaluate(tally, options)
        looks = Looks.of(evaluated.group_cells.outer_keys, self.period, change=self.change)
        return looks, [
            RunningSums.of(evaluated, index, looks, bounds_of(metric, self.bounds))
            for index, metric in enumerate(self.metrics)
        ]

    def _verdicts(self, looks: Looks, sums: Sequence[RunningSums]) -> list[pl.DataFrame]:
        """The verdicts on each metric, a row for each look."""
        self._check_pairs(sums)
        tables: list[list[pl.DataFrame]] = [[] for _ in sums]
        parts = [(index, *part) for index, of_metric in enumerate(sums) for part in of_metric.parts()]
        for index, first, part in in_progress(parts, "monitoring"):
            judged = _judged(part, self.side, self.limit, self._level(part))
            tables[index].append(judged.with_columns(pl.col(LOOK) + first))
        judged = map(pl.concat, tables)
        return [table[looks.recent((table[".verdict"] != _UNDECIDED).to_numpy())] for table in judged]

    def _check_pairs(self, sums: Sequence[RunningSums]) -> None:
        """Refuse more pairs of groups, over all looks, than are worked out in a few minutes."""
        if sum(of_metric.pairs for of_metric in sums) <= _MOST_PAIRS:
            return
        most = max(sums, key=lambda of_metric: of_metric.pairs)
        msg = (
            f"monitor(): {most.spec.name} compares {most.pairs:,} pairs of groups of {most.by_text!r}, both ways "
            f"round and at all looks; the limit is {_MOST_PAIRS:,} for all metrics. Pool rare groups "
            "with `lump_rare`, leave out small ones with `min_n=`, look less often, compare each group with the rest "
            '(`to="rest"`) or with one group, or monitor `group_minimum` or `group_maximum`.'
        )
        raise ArgumentError(msg)

    def _level(self, sums: RunningSums) -> _Level:
        """The error that a metric may have at each look, and the share of it for the groups so far.

        New groups may occur later. With k groups so far, their limits share 1 / (k + 1) of the error. The shares of the
        first groups, and of the limits of each later one when it occurs, add up to 3 / (k + 1) for pairs, which exist
        from k = 2 on, and to 2 / (k + 1) or less otherwise: never to more than 1.
        """
        error = sums.share_of_error * (1 - self.confidence) / len(self.metrics)
        groups, share = sums.groups_so_far, sums.share_of_window
        if not sums.may_grow:
            return _Level(error, share, groups)
        if self.groups is None:
            return _Level(error, share / (groups + 1), groups)
        if (groups > self.groups).any():
            msg = (
                f"monitor(): {sums.spec.name} by {sums.by_text} has {groups.max():.0f} groups so far, more than "
                f"`groups={self.groups}`; give the largest number of groups that may ever occur."
            )
            raise ArgumentError(msg)
        return _Level(error, share, np.full(groups.shape, float(self.groups)))


class _GroupMonitor(Monitor):
    """The values of the groups of a monitor."""

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        looks, sums = self._sums(tally, options)
        tables: list[pl.DataFrame] = []
        shown: list[Array] = [np.arange(len(looks.last))] * len(sums)
        if self.change:
            shown = [table[LOOK].to_numpy() for table in self._verdicts(looks, sums)]
        for of_metric, windows in zip(sums, shown, strict=True):
            groups = _groups_of(of_metric.at(windows), self._level(of_metric.at(windows)))
            tables.append(looks.keyed(groups.with_columns(pl.Series(LOOK, windows[groups[LOOK].to_numpy()]))))
        table = pl.concat(tables)
        # metrics that compare the same values have them once
        names = [name for name in table.columns if name not in {".n", ".estimate", ".lower", ".upper"}]
        return table.unique(names, keep="first", maintain_order=True)


def _check_counted(tally: Tally) -> None:
    """Refuse tallies that a monitor cannot follow."""
    problem = None
    if tally.weights is not None:
        problem = "was counted with case weights, but a monitor needs rows with equal weights"
    elif tally.clusters:
        problem = "was counted by clusters, but a monitor needs independent rows"
    elif HIDDEN in tally.cells.columns:
        problem = "has suppressed groups, whose values are unknown; use a tally of all cells"
    elif tally.cut is not None and tally.cut.option != "threshold":
        problem = f"selects rows with `{tally.cut.option}`, so rows are not independent; use `threshold` instead"
    elif tally.cut is not None and tally.cut.several:
        problem = "has a list of thresholds; a monitor accepts one threshold"
    if problem:
        msg = f"monitor(): the tally {problem}."
        raise ArgumentError(msg)


# Limits


@dataclass(frozen=True, eq=False)
class _Level:
    """The error of a metric at each look, and how it is shared by the limits that hold at once."""

    error: Floats
    share: Floats
    """The share of it for the groups that there are; the rest is for those that turn up later."""
    groups: Floats
    """The number of groups that share it."""

    def log_threshold(self, statements: Floats) -> Floats:
        """Logarithm of the e-value required for one of a number of statements."""
        return np.log(np.maximum(statements, 1) / (self.error * self.share))

    def weight(self, statements: Floats) -> Floats:
        """The part of each of so many e-values in their sum, which begins with 1 at most."""
        return self.share / np.maximum(statements, 1)


@dataclass(frozen=True, eq=False)
class _Compared:
    """The estimate of a metric at each look, its limits, and the e-value against being within the limit."""

    estimate: Floats
    lower: Floats
    upper: Floats
    e_value: Floats


def _judged(sums: RunningSums, side: Side, limit: float, level: _Level) -> pl.DataFrame:
    """The verdicts on a metric, a row for each look."""
    compared = _compared(sums, side, limit, level)
    looks = len(compared.estimate)
    # a group that has not enough rows for one of several rates is left out
    left_out = sums.seen & ~sums.are_compared.all(axis=1)
    names = [sums.texts.filter(pl.Series(mask)).to_list() for mask in left_out]
    e_value = np.where(np.isnan(compared.estimate), np.nan, compared.e_value)
    columns = _named(sums, np.arange(looks)) | {
        ".n": pl.Series(np.where(sums.are_compared, sums.totals.rows, 0).sum(axis=(1, 2))).cast(pl.Int64),
        ".estimate": _numbers(compared.estimate),
        ".lower": _numbers(compared.lower),
        ".upper": _numbers(compared.upper),
        ".limit": pl.Series([limit], dtype=pl.Float64).new_from_index(0, looks),
        ".e_value": _numbers(e_value),
    }
    names = pl.Series(".groups_left_out", names, dtype=pl.List(pl.String))
    lower, upper = pl.col(".lower"), pl.col(".upper")
    is_beyond, is_within = (lower > limit, upper < limit) if side == "below" else (upper < limit, lower > limit)
    verdict = pl.when(is_beyond).then(pl.lit(_BEYOND[side]))
    verdict = verdict.when(is_within & (pl.lit(names).list.len() == 0)).then(pl.lit(_WITHIN))
    return pl.DataFrame(columns).with_columns(verdict.otherwise(pl.lit(_UNDECIDED)).alias(".verdict"), names)


def _named(sums: RunningSums, looks: Array) -> dict[str, pl.Series]:
    """The columns that name a metric, for each of some looks."""
    texts = {".metric": sums.spec.name, ".by": sums.by_text}
    named = {name: pl.Series([text], dtype=pl.String).new_from_index(0, len(looks)) for name, text in texts.items()}
    return {LOOK: pl.Series(looks, dtype=pl.Int64), **named}


def _numbers(values: Floats) -> pl.Series:
    return pl.Series(values, dtype=pl.Float64, nan_to_null=True)


def _compared(sums: RunningSums, side: Side, limit: float, level: _Level) -> _Compared:
    """The limits of a metric at each look."""
    if isinstance(sums.spec.aggregate, Difference | Ratio):
        return _contrasts(sums, limit, level)
    return _extremes(sums, side, limit, level)


def _limits_of_groups(sums: RunningSums, level: _Level) -> tuple[Floats, Floats]:
    """The limits of the means of all groups, which hold at once, between 0 and 1."""
    statements = _ENDS * level.groups * len(sums.spec.formulas)
    threshold = np.broadcast_to(level.log_threshold(statements)[:, None, None], sums.totals.rows.shape)
    return sums.totals.lower_limit(threshold), 1 - sums.totals.reversed.lower_limit(threshold)


def _extremes(sums: RunningSums, side: Side, limit: float, level: _Level) -> _Compared:
    """The smallest or the largest value of the groups; where none are compared, the value itself."""
    is_smallest = isinstance(sums.spec.aggregate, GroupMinimum)
    totals, compared = sums.totals, sums.are_compared
    lower, upper = _limits_of_groups(sums, level)

    def extreme(values: Floats) -> Floats:
        chosen = _smallest(values, compared) if is_smallest else _largest(values, compared)
        return sums.on_scale(chosen)

    share = (limit - sums.bounds[0]) / sums.width
    beyond, share = (totals, share) if side == "below" else (totals.reversed, 1 - share)
    e_values = _exponentials(beyond.log_e_value(np.full(totals.rows.shape, share)))
    if is_smallest == (side == "above"):
        merged = np.where(compared, e_values, 0).sum(axis=(1, 2))
    else:
        # all groups have to be beyond the limit
        merged = _smallest(e_values, compared)
    weight = level.weight(level.groups * len(sums.spec.formulas))
    return _Compared(extreme(totals.mean), extreme(lower), extreme(upper), weight * merged)


def _contrasts(sums: RunningSums, limit: float, level: _Level) -> _Compared:
    """The difference, or ratio below 1, of the groups that are farthest from each other, or from the reference."""
    is_difference = isinstance(sums.spec.aggregate, Difference)
    # against ratios of at most 1 / limit of either group to the other
    contrast, at_limit = DIFFERENCE, limit / sums.width
    if not is_difference:
        contrast, at_limit = RATIO, 1 / limit if limit else math.inf
    farthest = smallest = largest = np.full(len(level.error), np.nan)
    e_value = np.zeros(len(level.error))
    for pairs in _pairs(sums, level):
        compared = np.nonzero(pairs.compared)
        e_values = np.zeros(pairs.compared.shape)
        e_values[compared] = _exponentials(pairs.pair.at(compared).log_e_value(contrast, at_limit))
        e_value += pairs.weight * e_values.sum(axis=1)
        estimate = contrast.of(pairs.pair.one.mean, pairs.pair.other.mean)
        farthest = np.fmin(farthest, _smallest(estimate, pairs.compared))
        low, high = pairs.pair.extreme_limits(contrast, pairs.log_threshold, pairs.compared)
        smallest, largest = np.fmin(smallest, low), np.fmax(largest, high)
    if is_difference:
        lower, upper = sums.width * np.maximum(largest, 0), -sums.width * smallest
        return _Compared(sums.width * np.abs(farthest), lower, upper, e_value)
    return _Compared(farthest, smallest, 1 / np.maximum(largest, 1), e_value)


def _exponentials(logarithms: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.exp(logarithms)


def _smallest(values: Floats, compared: Array) -> Floats:
    """The smallest value that is compared at each look; nan without one, as 0/0 is none."""
    is_value = compared & ~np.isnan(values)
    axes = tuple(range(1, values.ndim))
    smallest = np.where(is_value, values, np.inf).min(axis=axes, initial=np.inf)
    return np.where(is_value.any(axis=axes), smallest, np.nan)


def _largest(values: Floats, compared: Array) -> Floats:
    """The largest value that is compared at each look."""
    return -_smallest(-values, compared)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Some of the pairs of groups that are compared, both ways round: a row for each look."""

    pair: Pair
    compared: Array
    """True if both have a value, as a mask."""
    log_threshold: Floats
    weight: Floats
    """The part of the e-value of each pair in that of all."""


def _pairs(sums: RunningSums, level: _Level) -> Iterator[_Pairs]:
    """All pairs of groups, for each formula, or those with the reference; so many at a time."""
    totals, compared, size = sums.totals, sums.are_compared, len(sums.texts)
    to = cast("Difference | Ratio", sums.spec.aggregate).to
    usable = np.flatnonzero(compared.any(axis=(0, 1)))
    one, other = usable[np.indices((len(usable), len(usable))).reshape(2, -1)]
    if to == "rest":
        # the rest of each group follows all groups
        totals, compared = _with_rests(totals, compared)
        one, other = np.arange(_ENDS * size), (np.arange(_ENDS * size) + size) % max(_ENDS * size, 1)
        statements = _ENDS * level.groups
    elif to == "range":
        chosen = one != other
        one, other, statements = one[chosen], other[chosen], level.groups * (level.groups - 1)
    else:
        chosen = (one != other) & (sums.is_reference[one] | sums.is_reference[other])
        one, other, statements = one[chosen], other[chosen], _ENDS * (level.groups - 1)
    looks, formulas = totals.rows.shape[:2]
    statements = statements * formulas

    def by_look(values: Array, index: Array) -> Array:
        return values[:, :, index].reshape(looks, formulas * len(index))

    def totals_of(index: Array) -> Totals:
        return Totals(by_look(totals.total, index), by_look(totals.rows, index))

    step = max(MOST_PAIRS // max(looks * formulas, 1), 1)
    for first in range(0, len(one), step):
        some, others = one[first : first + step], other[first : first + step]
        both: Array = by_look(compared, some) & by_look(compared, others)
        threshold = np.broadcast_to(level.log_threshold(statements)[:, None], both.shape)
        yield _Pairs(Pair(totals_of(some), totals_of(others)), both, threshold, level.weight(statements))


def _with_rests(totals: Totals, compared: Array) -> tuple[Totals, Array]:
    """The sums of all groups, and then those of all others than each of them, with the mask of those compared."""

    def with_rest(values: Floats) -> Floats:
        return np.concatenate([values, values.sum(axis=2, keepdims=True) - values], axis=2)

    several = Totals(with_rest(totals.total), with_rest(totals.rows))
    return several, np.concatenate([compared, several.rows[:, :, len(compared[0, 0]) :] > 0], axis=2)


def _groups_of(sums: RunningSums, level: _Level) -> pl.DataFrame:
    """The values of groups with enough rows, a row for each look, formula and group."""
    lower, upper = _limits_of_groups(sums, level)
    cells = np.nonzero(sums.are_compared)
    look, formula, group = cells
    rows = sums.totals.rows[cells]
    names = pl.Series([name for name, _ in sums.spec.formulas], dtype=pl.String)
    columns = _named(sums, look) | {
        ".metric": names[formula],
        ".group": sums.texts[group],
        ".n": pl.Series(rows).cast(pl.Int64),
        ".estimate": _numbers(sums.on_scale(sums.totals.total[cells] / rows)),
        ".lower": _numbers(sums.on_scale(lower[cells])),
        ".upper": _numbers(sums.on_scale(upper[cells])),
    }
    return pl.DataFrame(columns)


# What can be monitored


def bounds_of(metric: Metric | GroupwiseMetric, given: Bounds | None) -> Bounds:
    """The bounds of the values of a row, for metrics that are means of such values over rows."""
    bounds = [_bounds_of_base(base, given) for base in _bases_of(metric)]
    if len(set(bounds)) > 1:
        msg = (
            f"monitor(): the metrics of {metric.name} have different ranges, {listed(bounds)}; give one pair of "
            "`bounds` for all."
        )
        raise ArgumentError(msg)
    return bounds[0]


def _bases_of(metric: Metric | GroupwiseMetric) -> tuple[Metric, ...]:
    """The metrics whose values are compared; without a comparison the metric itself."""
    return metric.metrics if isinstance(metric, GroupwiseMetric) else (metric,)


def _is_share(metric: Metric) -> bool:
    return share_of(metric.definition) is not None


def _bounds_of_base(metric: Metric, given: Bounds | None) -> Bounds:
    if _is_share(metric):
        return 0.0, 1.0
    if not is_mean(metric.definition):
        msg = (
            f"monitor(): {metric.name} is not a mean over rows. Monitor the rates or errors behind it, such as sens "
            "and precision instead of f_meas, or mse instead of rmse; or look once, at a number of rows fixed in "
            "advance, with `check`."
        )
        raise ArgumentError(msg)
    if given is not None:
        return given
    if not all(map(math.isfinite, metric.range)) or lacks_range(metric):
        msg = (
            f"monitor(): the range of {metric.name} for a single row is unknown; give its bounds, such as `bounds=(0, "
            "100)`."
        )
        raise ArgumentError(msg)
    return float(metric.range[0]), float(metric.range[1])


def _checked_bounds(given: object) -> Bounds:
    values = [number("bounds", value, -math.inf) for value in given] if is_list(given) else []
    if len(values) != 2 or values[0] >= values[1]:
        msg = f"`bounds` must be two numbers, the smaller one first, not {given!r}."
        raise ArgumentError(msg)
    return values[0], values[1]


def _check_metric(metric: Metric | GroupwiseMetric, limit: float, given: Bounds | None) -> None:
    """Refuse metrics that cannot be followed row by row."""
    if isinstance(metric, GroupwiseMetric):
        _check_comparison(metric)
    elif metric.direction in {"zero", "one"}:
        msg = (
            f"monitor(): the best value of {metric.name} is inside its range; monitor a metric to maximize or minimize."
        )
        raise ArgumentError(msg)
    low, high = bounds_of(metric, given)
    if isinstance(metric.aggregate, Ratio):
        if low:
            msg = f"monitor(): ratios of {metric.name} need values of 0 or more; use differences, or `bounds=(0, …)`."
            raise ArgumentError(msg)
        return
    least, most = (0.0, high - low) if isinstance(metric.aggregate, Difference) else (low, high)
    if not least <= limit <= most:
        msg = f"monitor(): the limit {limit:g} is outside the range of {metric.name}, {least:g} to {most:g}."
        raise ArgumentError(msg)


def _check_comparison(metric: GroupwiseMetric) -> None:
    """Refuse comparisons without a confidence sequence."""
    aggregate, problem = metric.aggregate, None
    if metric.less:
        problem = "subtracts one disparity from another"
    elif metric.several and aggregate.across == "mean":
        problem = "averages several metrics"
    elif isinstance(aggregate, Difference | Ratio):
        if aggregate.to in {"overall", "majority"}:
            problem = f"uses the reference {aggregate.to!r}, which changes as rows arrive"
    elif type(aggregate) not in {GroupMinimum, GroupMaximum}:
        problem = f"compares groups by {aggregate!r}"
    if problem:
        msg = (
            f"monitor(): {metric.name} {problem}, which is not supported. Use the metric itself, `group_minimum`, "
            "`group_maximum`, or differences or ratios of one metric (or the worst of several): as a range, to a "
            'group, or `to="rest"`.'
        )
        raise ArgumentError(msg)


@refuse_unknown_keywords
def monitor(
    given: Metric | GroupwiseMetric | MetricSet, *, below: float | None = None, above: float | None = None,
    confidence: float = 0.95, period: str | None = None, groups: int | None = None,
    bounds: tuple[float, float] | None = None, change: bool = False,
) -> Monitor:  # fmt: skip
    """Monitor metrics of a stream of rows, with verdicts that are valid for any number and timing of looks.

    The intervals are confidence sequences: they hold simultaneously, with the given confidence, at all looks and for
    all metrics, groups and outer groups (Howard et al., 2021; Waudby-Smith and Ramdas, 2024). They cover the mean of
    the expected values of the rows since the period `.since`, so rates may drift. They need only counts and sums, so
    batches and streams can be added up beforehand.

    By default that is the first period, and many good rows hide a change that begins late. With `change=True` sequences
    also begin after later periods, and share the error (after Shin, Ramdas and Rinaldo, 2024): the probability that any
    of them is ever wrong, in however long a stream, is still at most 1 - `confidence`. Each look shows the latest one
    with a verdict, so `within` is about recent rows, and later looks never call upon the rows before it again. The
    price is width: to find a change takes two to three times the rows that a new monitor would need.

    Args:
        given: A metric, a groupwise metric or a set: shares of rows, and means of bounded values, such as
            `brier_class`; for groups, their differences, ratios, `group_minimum` and `group_maximum`.
        below: The limit of metrics that should be small.
        above: The limit of metrics that should be large.
        confidence: Joint confidence level of everything that is ever shown.
        period: The column of periods, such as days, also given as `group_by=` in the call: a look at the end of each.
            Periods are sorted by value; texts that sort in another order than time, such as `"10"` before `"8"`, are an
            error. Without periods there is one look at all rows.
        groups: The largest number of groups that may ever occur. Without it limits are wider, to allow for new groups.
        bounds: Lower and upper bound of the value of every row, for means of numbers, such as `(0, 100)`.
        change: Whether to look at recent periods, too, to find changes; needs `period`.

    Returns:
        A callable with the arguments of a metric. It returns a row for each metric, outer group and look: with
        `period` `.since` (the first period of the rows that the look is about), `.n` (the rows counted), `.estimate`,
        `.lower`, `.upper`, the `.limit`, `.e_value` (evidence of exceeding the limit: within the limit, 20 or more
        occurs in at most 1 of 20 streams), the `.verdict`, which is `within`, `above the limit` (`below the limit`) or
        `undecided`, and `.groups_left_out`. Its `compute` takes tallies, and `by_group` returns the values of groups.

    Raises:
        ArgumentError: For metrics that are not means over rows (`f_meas`, `roc_auc`), weights, clusters, more groups
            than `groups`, `change` without `period`, and more than 25,000,000 pairs of groups, both ways round, over
            all looks.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 1, 0, 0] * 900, "sex": list("fmfm") * 900, "day": [1] * 600 + [2] * 3000})
    >>> watch = monitor(demographic_parity("sex"), below=0.1, period="day", groups=2)
    >>> looks = watch(people, estimate="hired", group_by="day")
    >>> looks.select(".look", ".n", pl.col(".upper").round(2), ".verdict").rows()
    [(1, 600, 0.14, 'undecided'), (2, 3600, 0.06, 'within')]
    """
    side, limit = limited("monitor", below, above)
    metrics = judged_metrics("monitor", given, side, limit)
    confidence = proper_share("confidence", confidence)
    if period is not None and (not isinstance(period, str) or not period):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"monitor(): `period` must be the name of a column, not {period!r}."
        raise ArgumentError(msg)
    change = flag("change", change)
    if change and period is None:
        msg = "monitor(): `change=True` looks at recent periods; give their column as `period=`."
        raise ArgumentError(msg)
    if groups is not None:
        groups = whole("groups", groups, 2)
    if bounds is not None:
        bounds = _checked_bounds(bounds)
    for metric in metrics:
        _check_metric(metric, limit, bounds)
    if bounds is not None and all(_is_share(base) for metric in metrics for base in _bases_of(metric)):
        msg = "monitor(): shares of rows always lie between 0 and 1; leave out `bounds`."
        raise ArgumentError(msg)
    return Monitor(metrics, side, limit, confidence, period, groups, bounds, change)
