"""Monitors: intervals and verdicts that are valid at all looks simultaneously, for any number of looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, Unpack, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, Run
from tidyfair.errors import ArgumentError, listed
from tidyfair.evaluation import GROUP_CELL, UNGROUPED, Evaluated, KeyCodes
from tidyfair.inference.gates import FAIL, PASS, UNSURE, Side, judged_metrics, lacks_range, with_verdicts
from tidyfair.inference.monitoring.confidence_sequences import DIFFERENCE, RATIO, Pair, Totals
from tidyfair.inference.monitoring.periods import check_periods, period_column
from tidyfair.inference.on_data import CalledOnTallies
from tidyfair.inference.rate_tests import reads_one_label
from tidyfair.intervals import in_progress, is_mean, share_of
from tidyfair.specs import (
    Array,
    CallOptions,
    ColumnLike,
    Difference,
    Floats,
    GroupMaximum,
    GroupMinimum,
    Options,
    Ratio,
    ReadOptions,
    flag,
    formulas_of,
    is_list,
    number,
    proper_share,
    refuse_unknown_keywords,
    show_keywords,
    whole,
)
from tidyfair.specs.result_kinds import GROUPS_OF_LOOKS, LOOK, LOOKS
from tidyfair.tallies import HIDDEN, Tally

Bounds: TypeAlias = tuple[float, float]

__all__ = ["Monitor", "monitor"]

_DEPENDENT = ": it needs independent rows"
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("interval", "explain"), ": it has limits of its own"),
    "conf_level": "; give it to `monitor`",
    **dict.fromkeys(("times", "seed", "parts", "keep_rows", "score_bins"), ": it reads sums and draws no samples"),
    **dict.fromkeys(("top_k", "top_fraction", "cluster"), _DEPENDENT),
    "case_weights": ": it needs rows with equal weights",
    "na_rm": ": rows without a value are never counted",
    "on_undefined": ": groups without a value have no limits",
}
"""The options of metrics that a monitor does not accept, and why."""
_UNDECIDED = "undecided"
_VERDICTS: dict[Side, dict[str, str]] = {
    "below": {PASS: "within", UNSURE: _UNDECIDED, FAIL: "above the limit"},
    "above": {PASS: "within", UNSURE: _UNDECIDED, FAIL: "below the limit"},
}
"""The words for verdicts, by the good side of the limit."""
_ENDS = 2
_MOST_PAIRS, _PAIRS_AT_ONCE = 25_000_000, 50_000
"""The most pairs of groups, both ways round, over all looks (about two minutes), and those worked out at once."""
_LOOK = "\0look"
"""The column of the index of a look."""
_SLACK = 1e-9
_LIFETIME = 4
"""The looks of a window, as a multiple of the largest power of 2 that divides the number of looks before it."""


@dataclass(frozen=True)
class Monitor(CalledOnTallies):
    """Metrics with a limit, as a callable that judges all rows so far at any time; made by `monitor`.

    It looks at all rows so far, or at the end of each period. `compute` takes tallies of all rows so far, such as the
    `state` of an accumulator.
    """

    subject: ClassVar[str] = "A monitor"
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metrics: MetricSet
    side: Side
    limit: float
    conf_level: float = 0.95
    period: str | None = None
    groups: int | None = None
    bounds: tuple[float, float] | None = None
    change: bool = False

    @show_keywords(CallOptions, without=_REFUSED)
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """The values of the groups, with intervals simultaneous for all groups and looks."""
        return _GroupMonitor(**vars(self))(data, truth, estimate, **options)

    @show_keywords(ReadOptions, without=_REFUSED)
    def compute_by_group(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """The values of the groups of a tally of all rows so far."""
        return _GroupMonitor(**vars(self)).compute(tally, **options)

    @property
    def _run(self) -> Run:
        return self.metrics.run

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        looks, sums = self._sums(tally, options)
        return pl.concat([looks.keyed(table) for table in self._verdicts(looks, sums)])

    def _in_reading_order(self, table: pl.DataFrame) -> pl.DataFrame:
        return (LOOKS if self.period else LOOK).frame(table)

    def _sums(self, tally: Tally, options: Options) -> tuple[Looks, list[RunningSums]]:
        """The looks at a tally, and the sums of each metric."""
        rule = "threshold" if tally.cut is None else tally.cut.option
        problems = {
            "was counted with case weights, but a monitor needs rows with equal weights": tally.weights is not None,
            "was counted by clusters, but a monitor needs independent rows": tally.clusters,
            "has suppressed groups, whose values are unknown; use a tally of all cells": HIDDEN in tally.cells.columns,
            f"selects rows with `{rule}`, so rows are not independent; use `threshold` instead": rule != "threshold",
            "has a list of thresholds; a monitor accepts one threshold": tally.cut is not None and tally.cut.several,
        }
        for problem, occurs in problems.items():
            if occurs:
                msg = f"monitor(): the tally {problem}."
                raise ArgumentError(msg)
        (evaluated,) = self._run.evaluate(tally, options)
        looks = Looks.of(evaluated.group_cells.outer_keys, self.period, change=self.change)
        sums = [RunningSums.of(self, evaluated, index, looks) for index in range(len(self.metrics))]
        return looks, sums

    def _verdicts(self, looks: Looks, sums: Sequence[RunningSums]) -> list[pl.DataFrame]:
        """The verdicts on each metric, a row for each look."""
        if sum(sums_of_metric.pairs for sums_of_metric in sums) > _MOST_PAIRS:
            most = max(sums, key=lambda sums_of_metric: sums_of_metric.pairs)
            msg = (
                f"monitor(): {most.spec.name} compares {most.pairs:,} pairs of groups of {most.spec.by!r}, both ways "
                f"round and at all looks; the limit is {_MOST_PAIRS:,} for all metrics. Pool rare groups "
                "with `lump_rare`, leave out small ones with `min_n=`, look less often, compare each group with the "
                'rest (`to="rest"`) or with one group, or monitor `group_minimum` or `group_maximum`.'
            )
            raise ArgumentError(msg)
        tables: list[list[pl.DataFrame]] = [[] for _ in sums]
        parts = [(index, *part) for index, sums_of_metric in enumerate(sums) for part in sums_of_metric.parts()]
        for index, first, part in in_progress(parts, "monitoring"):
            judged = _judged(part, self.side, self.limit)
            tables[index].append(judged.with_columns(pl.col(_LOOK) + first))
        judged = map(pl.concat, tables)
        return [table[looks.recent((table[".verdict"] != _UNDECIDED).to_numpy())] for table in judged]


class _GroupMonitor(Monitor):
    """The values of the groups of a monitor."""

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        looks, every_sums = self._sums(tally, options)
        tables: list[pl.DataFrame] = []
        shown = self._verdicts(looks, every_sums) if self.change else [None] * len(every_sums)
        for all_sums, judged in zip(every_sums, shown, strict=True):
            windows = np.arange(len(looks.last)) if judged is None else judged[_LOOK].to_numpy()
            sums = all_sums.at(windows)
            lower, upper = _limits_of_groups(sums)
            cells = np.nonzero(sums.are_compared)
            window, formula, group = cells
            names = pl.Series([name for name, _ in sums.spec.formulas], dtype=pl.String)
            groups = _named(sums, windows[window]).with_columns(
                names[formula].alias(".metric"),
                sums.texts[group].alias(".group"),
                pl.Series(".n", sums.totals.rows[cells]).cast(pl.Int64),
                pl.Series(".estimate", sums.on_scale(sums.totals.mean[cells])),
                pl.Series(".lower", sums.on_scale(lower[cells])),
                pl.Series(".upper", sums.on_scale(upper[cells])),
            )
            tables.append(looks.keyed(groups.with_columns(pl.col(pl.Float64).fill_nan(None))))
        table = pl.concat(tables)
        # metrics that compare the same values have them once
        names = [name for name in table.columns if name not in {".n", ".estimate", ".lower", ".upper"}]
        return table.unique(names, keep="first", maintain_order=True)

    def _in_reading_order(self, table: pl.DataFrame) -> pl.DataFrame:
        return GROUPS_OF_LOOKS.frame(table)


def _judged(sums: RunningSums, side: Side, limit: float) -> pl.DataFrame:
    """The verdicts on a metric, a row for each look."""
    with np.errstate(over="ignore"):
        if isinstance(sums.spec.aggregate, Difference | Ratio):
            estimate, lower, upper, e_value = _contrasts(sums, limit)
        else:
            estimate, lower, upper, e_value = _extremes(sums, side, limit)
    # a group that has not enough rows for one of several rates is left out
    left_out = sums.seen & ~sums.are_compared.all(axis=1)
    names = [sums.texts.filter(pl.Series(mask)).to_list() for mask in left_out]
    rows = np.where(sums.are_compared, sums.totals.rows, 0).sum(axis=(1, 2))
    judged = _named(sums, np.arange(len(estimate))).with_columns(
        pl.Series(".n", rows).cast(pl.Int64),
        pl.Series(".estimate", estimate),
        pl.Series(".lower", lower),
        pl.Series(".upper", upper),
        pl.Series(".e_value", np.where(np.isnan(estimate), np.nan, e_value)),
        pl.Series(".groups_left_out", names, dtype=pl.List(pl.String)),
    )
    judged = judged.with_columns(pl.col(pl.Float64).fill_nan(None))
    unsigned, is_complete = pl.lit(value=False), pl.lit(~left_out.any(axis=1))
    judged = with_verdicts(judged, [(side, limit)] * len(judged), unsigned, is_complete)
    return judged.with_columns(pl.col(".verdict").replace_strict(_VERDICTS[side]))


def _named(sums: RunningSums, looks: Array) -> pl.DataFrame:
    """The columns that name a metric, for each of some looks."""
    by = sums.spec.by.text if sums.spec.by else None
    named = pl.DataFrame({_LOOK: pl.Series(looks, dtype=pl.Int64)})
    return named.with_columns(pl.lit(sums.spec.name).alias(".metric"), pl.lit(by, pl.String).alias(".by"))


def _limits_of_groups(sums: RunningSums) -> tuple[Floats, Floats]:
    """The limits of the means of all groups, which hold at once, between 0 and 1."""
    statements = _ENDS * sums.groups * len(sums.spec.formulas)
    threshold = np.broadcast_to(sums.log_threshold(statements)[:, None, None], sums.totals.rows.shape)
    return sums.totals.lower_limit(threshold), 1 - sums.totals.reversed.lower_limit(threshold)


def _extremes(sums: RunningSums, side: Side, limit: float) -> tuple[Floats, Floats, Floats, Floats]:
    """The smallest or the largest value of the groups, or the value of all rows, with limits and the e-value."""
    is_smallest = isinstance(sums.spec.aggregate, GroupMinimum)
    totals, compared = sums.totals, sums.are_compared
    lower, upper = _limits_of_groups(sums)

    def extreme(values: Floats) -> Floats:
        chosen = _smallest(values, compared) if is_smallest else -_smallest(-values, compared)
        return sums.on_scale(chosen)

    share = (limit - sums.bounds[0]) / sums.width
    beyond, share = (totals, share) if side == "below" else (totals.reversed, 1 - share)
    e_values = np.exp(beyond.log_e_value(np.full(totals.rows.shape, share)))
    if is_smallest == (side == "above"):
        merged = np.where(compared, e_values, 0).sum(axis=(1, 2))
    else:
        # all groups have to be beyond the limit
        merged = _smallest(e_values, compared)
    weight = sums.weight(sums.groups * len(sums.spec.formulas))
    return extreme(totals.mean), extreme(lower), extreme(upper), weight * merged


def _contrasts(sums: RunningSums, limit: float) -> tuple[Floats, Floats, Floats, Floats]:
    """The difference or ratio of the groups farthest from each other or the reference, with limits and the e-value."""
    is_difference = isinstance(sums.spec.aggregate, Difference)
    # against ratios of at most 1 / limit of either group to the other
    contrast, at_limit = DIFFERENCE, limit / sums.width
    if not is_difference:
        contrast, at_limit = RATIO, 1 / limit if limit else math.inf
    totals, are_compared, one, other, statements = _pairs(sums)
    looks, formulas = totals.rows.shape[:2]
    statements = statements * formulas

    def by_look(values: Array, groups: Array) -> Array:
        return values[:, :, groups].reshape(looks, formulas * len(groups))

    farthest = smallest = largest = np.full(looks, np.nan)
    e_value = np.zeros(looks)
    step = max(_PAIRS_AT_ONCE // max(looks * formulas, 1), 1)
    for first in range(0, len(one), step):
        some, others = one[first : first + step], other[first : first + step]
        sides = [Totals(by_look(totals.total, groups), by_look(totals.rows, groups)) for groups in (some, others)]
        pair = Pair(*sides)
        compared = by_look(are_compared, some) & by_look(are_compared, others)
        threshold = np.broadcast_to(sums.log_threshold(statements)[:, None], compared.shape)
        e_values = np.zeros(compared.shape)
        e_values[compared] = np.exp(pair.at(np.nonzero(compared)).log_e_value(contrast, at_limit))
        e_value += sums.weight(statements) * e_values.sum(axis=1)
        farthest = np.fmin(farthest, _smallest(contrast.of(pair.one.mean, pair.other.mean), compared))
        low, high = pair.extreme_limits(contrast, threshold, compared)
        smallest, largest = np.fmin(smallest, low), np.fmax(largest, high)
    if is_difference:
        lower, upper = sums.width * np.maximum(largest, 0), -sums.width * smallest
        return sums.width * np.abs(farthest), lower, upper, e_value
    return farthest, smallest, 1 / np.maximum(largest, 1), e_value


def _pairs(sums: RunningSums) -> tuple[Totals, Array, Array, Array, Floats]:
    """The sums of groups, a mask of those with a value, pairs of their indices, and the statements about a formula.

    The pairs are all of groups, both ways round, or those with the reference.
    """
    totals, compared, size = sums.totals, sums.are_compared, len(sums.texts)
    to = cast("Difference | Ratio", sums.spec.aggregate).to
    if to == "rest":
        # the rest of each group follows all groups
        total, rows = (values.sum(axis=2, keepdims=True) - values for values in (totals.total, totals.rows))
        compared = np.concatenate([compared, rows > 0], axis=2)
        totals = Totals(np.concatenate([totals.total, total], axis=2), np.concatenate([totals.rows, rows], axis=2))
        one = np.arange(_ENDS * size)
        return totals, compared, one, (one + size) % max(_ENDS * size, 1), _ENDS * sums.groups
    usable = np.flatnonzero(compared.any(axis=(0, 1)))
    one, other = usable[np.indices((len(usable), len(usable))).reshape(2, -1)]
    chosen, statements = one != other, sums.groups * (sums.groups - 1)
    if to != "range":
        chosen &= sums.is_reference[one] | sums.is_reference[other]
        statements = _ENDS * (sums.groups - 1)
    return totals, compared, one[chosen], other[chosen], statements


def _smallest(values: Floats, compared: Array) -> Floats:
    """The smallest value that is compared at each look; nan without one, as 0/0 is none."""
    is_value = compared & ~np.isnan(values)
    axes = tuple(range(1, values.ndim))
    smallest = np.where(is_value, values, np.inf).min(axis=axes, initial=np.inf)
    return np.where(is_value.any(axis=axes), smallest, np.nan)


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks at outer groups (series), each at the end of a period or at all rows so far, sorted by series.

    A look is at one or more windows of rows that end with it, sorted by look and by their beginning.
    """

    keys: pl.DataFrame
    """The keys of the outer group of each look, the period last."""
    period: str | None
    """The column of periods."""
    number: Array
    """The number of each look in its series, from 1."""
    look_of_outer: Array
    """The index of the look of each outer group of the tally."""
    last: Array
    """The index of the look of each window."""
    first: Array
    """The index of the look with the first rows of each window."""
    share_of_window: Floats
    """The share of the error of a series for the rows from the beginning of each window on."""
    share_of_error: Floats
    """The share of all errors for the series of each window; new series may occur later."""

    @classmethod
    def of(cls, outer_keys: pl.DataFrame, period: str | None, *, change: bool = False) -> Looks:
        """The looks at the outer groups of a tally, at all rows so far or, for changes, also at recent rows."""
        if period is not None:
            check_periods("monitor", outer_keys, period)
        series = outer_keys.drop(period or [], UNGROUPED, strict=False)
        periods = outer_keys.select([] if period is None else [period])
        codes = KeyCodes(outer_keys)
        series_index = codes.index(series.columns).of_cell
        period_index = codes.index(periods.columns).of_cell
        order = np.lexsort((period_index, series_index))
        series_index, period_index, every = series_index[order], period_index[order], np.arange(len(order))
        number = every - np.searchsorted(series_index, series_index) + 1
        last, before, share = _windows(number) if change else (every, 0, np.ones(len(order)))
        share_of_error = np.ones(len(last))
        if series.width:
            # with k series so far it is 1 / (k (k + 1)): the shares of the first k, and of each later one when it
            # occurs, add up to 2 / (k + 1), which never exceeds 1
            begin = period_index[number == 1]
            so_far = (begin <= period_index[:, None]).sum(axis=1)[last]
            share_of_error = 1 / (so_far * (so_far + 1))
        return cls(
            keys=pl.concat([series, periods], how="horizontal")[order],
            period=period,
            number=number,
            look_of_outer=np.argsort(order),
            last=last,
            first=last - number[last] + 1 + before,
            share_of_window=share,
            share_of_error=share_of_error,
        )

    def add_up(self, sums: Array, *, from_start: bool = False) -> Array:
        """Sums of looks as sums of windows, or of all looks of the series to the end of each window (`from_start`)."""
        first = self.last - self.number[self.last] + 1 if from_start else self.first
        added = np.concatenate([np.zeros_like(sums[:1]), sums.cumsum(axis=0)])
        return added[self.last + 1] - added[first]

    def recent(self, is_decided: Array) -> list[int]:
        """The window that each look is about: the latest one with a verdict, or else that of the look before.

        A window never begins before that of the look before: rows that were left behind are not called upon again.
        """
        chosen: list[int] = []
        since = 0
        for windows in np.split(np.arange(len(self.last)), np.flatnonzero(np.diff(self.last, prepend=-1)))[1:]:
            # where the window of the look before has ended, the next one takes its place
            usable = windows[self.first[windows] >= since]
            decided = usable[is_decided[usable]]
            chosen.append(int(decided[-1] if len(decided) else usable[0]))
            since = self.first[chosen[-1]]
        return chosen

    def keyed(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table by window with the keys and the numbers of the looks, and the first period of the window."""
        window, columns = table[_LOOK].to_numpy(), table.drop(_LOOK)
        keys = self.keys[self.last[window]]
        if self.period is not None:
            at = columns.columns.index(".n")
            columns = columns.insert_column(at, self.keys[self.period][self.first[window]].alias(".since"))
            columns = columns.insert_column(at, pl.Series(".look", self.number[self.last[window]], dtype=pl.Int64))
        return pl.concat([keys, columns], how="horizontal") if keys.width else columns


def _windows(number: Array) -> tuple[Array, Array, Floats]:
    """The look of each window, the looks of its series before it, and its share of the error.

    Half of the error is for all rows so far, the other half for windows that begin after 1, 2, 3, … looks. Of it, those
    after 2ᵛ times the i-th odd number of looks have 1 / ((v + 1) (v + 2) i (i + 1)), which adds up to 1. They last for
    4 · 2ᵛ looks, so that windows of any length have begun near any look.
    """
    every = np.arange(len(number))
    parts = [(every, np.zeros_like(every), np.full(len(every), 1 / 2))]
    for scale in range(int(number.max(initial=1)).bit_length()):
        for back in range(_LIFETIME):
            multiple = (number - 1) // 2**scale - back
            look = np.flatnonzero((multiple > 0) & (multiple % 2 == 1))
            odd = (multiple[look] + 1) // 2
            share = 1 / (2 * (scale + 1) * (scale + 2) * odd * (odd + 1))
            parts.append((look, multiple[look] * 2**scale, share))
    last, before, share = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((before, last))
    return last[order], before[order], share[order]


@dataclass(frozen=True, eq=False)
class RunningSums:
    """The sums of a metric in windows up to each look, or in each of several, by window, formula and group."""

    spec: Metric | GroupwiseMetric
    totals: Totals
    """Of values between 0 and 1: how far they lie from the one bound to the other."""
    bounds: Bounds
    seen: Array
    """True if a group has occurred, by look and group, as a mask."""
    is_reference: Array
    """The group that others are compared with, as a mask."""
    are_compared: Array
    """True where a group has a value, and the rows and the share of all rows that it needs, by look, formula, group."""
    texts: pl.Series
    """The names of the groups."""
    error: Floats
    """The error that all limits of each look may have together."""
    share: Floats
    """The share of it for the groups that there are; the rest is for those that turn up later."""
    groups: Floats
    """The number of groups that share it."""

    @classmethod
    def of(cls, monitor: Monitor, evaluated: Evaluated, index: int, looks: Looks) -> RunningSums:
        """The sums of one of the metrics that were evaluated."""
        spec, cells = monitor.metrics.metrics[index], evaluated.group_cells
        bounds = bounds_of(spec, monitor.bounds)
        every = evaluated.rows.filter(pl.col("spec") == index)
        rows = every.filter(~pl.col("excluded"))
        for name, _ in spec.formulas:
            if not reads_one_label(rows.filter(name=name)):
                msg = f"monitor(): {spec.name} averages {name} over labels; select one label with `pos_label=`."
                raise ArgumentError(msg)
        first, size = cells.spans[spec.by]
        texts = cells.text[first : first + size]
        keys = texts.to_frame() if spec.by is None else cells.keys[spec.by]
        index_of_keys = KeyCodes(keys).index(keys.columns)

        def positions(rows: pl.DataFrame) -> tuple[Array, Array]:
            """The look and the group of each row."""
            return looks.look_of_outer[rows["outer"].to_numpy()], index_of_keys.of_cell[
                rows[GROUP_CELL].to_numpy() - first
            ]

        look, group = positions(rows)
        numbers = {name: number for number, (name, _) in enumerate(spec.formulas)}
        formula = rows["name"].replace_strict(numbers, return_dtype=pl.Int64).to_numpy()
        shape = len(looks.number), len(index_of_keys)
        total, counted = np.zeros((2, shape[0], len(numbers), shape[1]))
        totals_of_rows = _between(rows, bounds, spec.name)
        np.add.at(total, (look, formula, group), totals_of_rows.total)
        np.add.at(counted, (look, formula, group), totals_of_rows.rows)
        totals = Totals(looks.add_up(total), looks.add_up(counted))
        seen, sizes = np.zeros((2, *shape))
        seen[look, group] = 1
        # the rows of unknown groups are part of all rows
        all_rows = every.filter(pl.col("name") == spec.formulas[0][0])
        np.add.at(sizes, positions(all_rows), all_rows["n"].to_numpy())
        sizes = looks.add_up(sizes)
        is_frequent = sizes >= spec.policy.min_share * sizes.sum(axis=1, keepdims=True)
        is_reference = np.zeros(shape[1], dtype=bool)
        is_reference[group[rows["is_reference"].to_numpy()]] = True
        seen = looks.add_up(seen, from_start=True) > 0
        share, groups = _shared_by_groups(spec, seen, looks.share_of_window, monitor.groups)
        return cls(
            spec=spec,
            totals=totals,
            bounds=bounds,
            seen=seen,
            is_reference=is_reference,
            are_compared=(totals.rows >= max(spec.policy.min_n, 1)) & is_frequent[:, None],
            texts=texts[index_of_keys.example],
            error=looks.share_of_error * (1 - monitor.conf_level) / len(monitor.metrics),
            share=share,
            groups=groups,
        )

    def log_threshold(self, statements: Floats) -> Floats:
        """Logarithm of the e-value required for one of a number of statements."""
        return np.log(np.maximum(statements, 1) / (self.error * self.share))

    def weight(self, statements: Floats) -> Floats:
        """The part of each of so many e-values in their sum, which begins with 1 at most."""
        return self.share / np.maximum(statements, 1)

    @property
    def pairs(self) -> int:
        """The number of pairs of groups that are compared with each other, both ways round, over all looks."""
        if not isinstance(self.spec.aggregate, Difference | Ratio) or self.spec.aggregate.to != "range":
            return 0
        compared = self.are_compared.sum(axis=2)
        return int((compared * (compared - 1)).sum())

    @property
    def width(self) -> float:
        """The distance of the bounds."""
        return self.bounds[1] - self.bounds[0]

    def on_scale(self, means: Floats) -> Floats:
        """Means between 0 and 1 as values of the metric."""
        return self.bounds[0] + means * self.width

    def at(self, looks: slice | Array) -> RunningSums:
        """The sums of some looks."""
        names = ("seen", "are_compared", "error", "share", "groups")
        return replace(self, totals=self.totals.at(looks), **{name: getattr(self, name)[looks] for name in names})

    def parts(self) -> Iterator[tuple[int, RunningSums]]:
        """The sums of some looks at a time, with the index of the first of them."""
        looks, formulas, groups = self.totals.rows.shape
        step = max(_PAIRS_AT_ONCE // max(formulas * groups**2, 1), 1)
        for first in range(0, max(looks, 1), step):
            yield first, self.at(slice(first, first + step))


def _shared_by_groups(
    spec: Metric | GroupwiseMetric, seen: Array, share: Floats, most: int | None
) -> tuple[Floats, Floats]:  # fmt: skip
    """The share of the error of each look for the groups that have been seen, and the number of groups that share it.

    New groups may occur later, `most` in all. With k groups so far, their limits share 1 / (k + 1) of the error. The
    shares of the first groups, and of the limits of each later one when it occurs, add up to 3 / (k + 1) for pairs,
    which exist from k = 2 on, and to 2 / (k + 1) or less otherwise: never to more than 1.
    """
    groups = seen.sum(axis=1).astype(float)
    if spec.by is None or spec.by.sides is not None:
        return share, groups
    if most is None:
        return share / (groups + 1), groups
    if (groups > most).any():
        msg = (
            f"monitor(): {spec.name} by {spec.by.text} has {groups.max():.0f} groups so far, more than "
            f"`groups={most}`; give the largest number of groups that may ever occur."
        )
        raise ArgumentError(msg)
    return share, np.full(groups.shape, float(most))


def _between(rows: pl.DataFrame, bounds: Bounds, name: str) -> Totals:
    """The sums of values, as far as they lie between the bounds, and the numbers of rows."""
    counted = rows["counted_rows"].fill_null(0).to_numpy().astype(np.float64)
    mean = rows["rate"].fill_null(bounds[0]).to_numpy().astype(np.float64)
    share = np.where(counted > 0, (mean - bounds[0]) / (bounds[1] - bounds[0]), 0.0)
    is_within = (share >= -_SLACK) & (share <= 1 + _SLACK)
    if not is_within.all():
        outside: Sequence[float] = mean[~is_within].tolist()
        msg = (
            f"monitor(): {name} has a mean of {outside[0]:g} in some group, so some values lie outside "
            f"`bounds=({bounds[0]:g}, {bounds[1]:g})`; give bounds that hold for the value of every row."
        )
        raise ArgumentError(msg)
    total = np.clip(share, 0, 1) * counted
    nearest = np.round(total)
    # counts of rows, but for errors of rounding
    is_whole = abs(total - nearest) <= _SLACK * np.maximum(counted, 1)
    return Totals(np.where(is_whole, nearest, total), counted)


def bounds_of(metric: Metric | GroupwiseMetric, given: Bounds | None) -> Bounds:
    """The bounds of the values of a row, for metrics that are means of such values over rows."""
    bounds: list[Bounds] = []
    for base in metric.metrics if isinstance(metric, GroupwiseMetric) else (metric,):
        if share_of(base.definition) is not None:
            bounds.append((0.0, 1.0))
            continue
        if not is_mean(base.definition):
            msg = (
                f"monitor(): {base.name} is not a mean over rows. Monitor the rates or errors behind it, such as sens "
                "and precision instead of f_meas, or mse instead of rmse; or look once, at a number of rows fixed in "
                "advance, with `check`."
            )
            raise ArgumentError(msg)
        if given is None and (not all(map(math.isfinite, base.range)) or lacks_range(base)):
            msg = (
                f"monitor(): the range of {base.name} for a single row is unknown; give its bounds, such as "
                "`bounds=(0, 100)`."
            )
            raise ArgumentError(msg)
        least, most = given or base.range
        bounds.append((float(least), float(most)))
    if len(set(bounds)) > 1:
        msg = (
            f"monitor(): the metrics of {metric.name} have different ranges, {listed(bounds)}; give one pair of "
            "`bounds` for all."
        )
        raise ArgumentError(msg)
    return bounds[0]


def _check_metric(metric: Metric | GroupwiseMetric, limit: float, given: Bounds | None) -> None:
    """Refuse metrics that cannot be followed row by row, and comparisons without a confidence sequence."""
    aggregate = metric.aggregate
    if isinstance(metric, GroupwiseMetric):
        if problem := _problem_of(metric):
            msg = (
                f"monitor(): {metric.name} {problem}, which is not supported. Use the metric itself, `group_minimum`, "
                "`group_maximum`, or differences or ratios of one metric (or the worst of several): as a range, to a "
                'group, or `to="rest"`.'
            )
            raise ArgumentError(msg)
    elif metric.direction in {"zero", "one"}:
        msg = (
            f"monitor(): the best value of {metric.name} is inside its range; monitor a metric to maximize or minimize."
        )
        raise ArgumentError(msg)
    low, high = bounds_of(metric, given)
    if isinstance(aggregate, Ratio):
        if low:
            msg = f"monitor(): ratios of {metric.name} need values of 0 or more; use differences, or `bounds=(0, …)`."
            raise ArgumentError(msg)
        return
    least, most = (0.0, high - low) if isinstance(aggregate, Difference) else (low, high)
    if not least <= limit <= most:
        msg = f"monitor(): the limit {limit:g} is outside the range of {metric.name}, {least:g} to {most:g}."
        raise ArgumentError(msg)


def _problem_of(metric: GroupwiseMetric) -> str | None:
    """The reason why a comparison has no confidence sequence, if it has none."""
    aggregate = metric.aggregate
    if metric.less:
        return "subtracts one disparity from another"
    if metric.several and aggregate.across == "mean":
        return "averages several metrics"
    if isinstance(aggregate, Difference | Ratio):
        is_moving = aggregate.to in {"overall", "majority"}
        return f"uses the reference {aggregate.to!r}, which changes as rows arrive" if is_moving else None
    return None if type(aggregate) in {GroupMinimum, GroupMaximum} else f"compares groups by {aggregate!r}"


@refuse_unknown_keywords
def monitor(
    given: Metric | GroupwiseMetric | MetricSet, *, below: float | None = None, above: float | None = None,
    conf_level: float = 0.95, period: str | None = None, groups: int | None = None,
    bounds: tuple[float, float] | None = None, change: bool = False,
) -> Monitor:  # fmt: skip
    """Monitor metrics of a stream of rows, with verdicts that are valid for any number and timing of looks.

    The intervals are confidence sequences: they hold simultaneously, with the given confidence, at all looks and for
    all metrics, groups and outer groups (Howard et al., 2021; Waudby-Smith and Ramdas, 2024). They cover the mean of
    the expected values of the rows since the period `.since`, so rates may drift. They need only counts and sums, so
    batches and streams can be added up beforehand.

    By default that is the first period, and many good rows hide a change that begins late. With `change=True` sequences
    also begin after later periods, and share the error (after Shin, Ramdas and Rinaldo, 2024): the probability that any
    of them is ever wrong, in however long a stream, is still at most 1 - `conf_level`. Each look shows the latest one
    with a verdict, so `within` is about recent rows, and later looks never call upon the rows before it again. The
    price is width: to find a change takes two to three times the rows that a new monitor would need.

    Args:
        given: A metric, a groupwise metric or a set: shares of rows, and means of bounded values, such as
            `brier_class`; for groups, their differences, ratios, `group_minimum` and `group_maximum`.
        below: The limit of metrics that should be small.
        above: The limit of metrics that should be large.
        conf_level: Joint confidence level of everything that is ever shown.
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
    metrics, side, limit = judged_metrics("monitor", given, below, above)
    conf_level = proper_share("conf_level", conf_level)
    if period is not None:
        period_column("monitor", period)
    change = flag("change", change)
    if change and period is None:
        msg = "monitor(): `change=True` looks at recent periods; give their column as `period=`."
        raise ArgumentError(msg)
    if groups is not None:
        groups = whole("groups", groups, 2)
    if bounds is not None:
        ends = [number("bounds", value, -math.inf) for value in bounds] if is_list(bounds) else []
        if len(ends) != 2 or ends[0] >= ends[1]:
            msg = f"`bounds` must be two numbers, the smaller one first, not {bounds!r}."
            raise ArgumentError(msg)
        bounds = ends[0], ends[1]
    for metric in metrics:
        _check_metric(metric, limit, bounds)
    if bounds is not None and all(share_of(formula) is not None for formula in formulas_of(*metrics)):
        msg = "monitor(): shares of rows always lie between 0 and 1; leave out `bounds`."
        raise ArgumentError(msg)
    return Monitor(metrics, side, limit, conf_level, period, groups, bounds, change)
