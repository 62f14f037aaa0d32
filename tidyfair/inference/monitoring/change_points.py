"""Change points: the period from which on a rate, or a difference or ratio of groups, is another one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation import GROUP_CELL, UNGROUPED, KeyCodes
from tidyfair.inference.monitoring.periods import check_periods
from tidyfair.inference.rate_tests import Case, RateTest, reads_one_label
from tidyfair.inference.result_frames import frame_of, no_rows, schema_of, with_outer_key
from tidyfair.inference.testing import farthest, slack
from tidyfair.intervals import check_shuffled, difference_limits, generator, in_progress, newcombe, share_of
from tidyfair.specs import Array, Contrast
from tidyfair.specs.result_kinds import CHANGES, ResultKind

__all__ = ["ChangeSearch"]

_MOST_DRAWN = 2_000_000
"""The most counts that are drawn at once."""
_DRAWS_OF_TIMES = 399
"""The most draws for each split that may be the true one."""
_NEVER_GAINED = 30.0
"""No split exceeds the true one by more than this in squared distance by chance."""
_FARTHEST = 6.0
"""The most standard errors from values to their limits, whose level is a number below 1."""
_SHOWN = schema_of(".metric .by .group .n .change .lower .upper .p_value .estimate_before .estimate")


@dataclass(frozen=True, eq=False)
class _RateSeries:
    """The hits and the rows of a rate: periods by groups."""

    name: str
    among: frozenset[str]
    hits: Array
    rows: Array
    texts: list[str | None]
    reference: list[int]
    """The index of the group that others are compared with, if there is one."""

    def of_groups(self, groups: Array) -> _RateSeries:
        """The series of some of the groups."""
        numbers: list[int] = groups.tolist()
        reference = [numbers.index(group) for group in self.reference if group in numbers]
        texts = [self.texts[group] for group in numbers]
        return replace(self, hits=self.hits[:, groups], rows=self.rows[:, groups], texts=texts, reference=reference)


@dataclass(frozen=True, eq=False)
class _Subject:
    """A quantity searched for a change: the rate of a group, or the comparison of the rates of several groups."""

    rates: list[_RateSeries]
    window: int | None
    """The number of periods before and after each split that are compared; None for all."""
    compares_groups: bool
    is_relative: bool = False
    """True if changes of groups are ratios."""

    @property
    def splits(self) -> range:
        """The periods from which on values may be others."""
        ends = self.window or 1
        return range(ends, len(self.rates[0].rows) - ends + 1)

    def span(self, split: int) -> tuple[int, int]:
        """The first of the periods that are compared at a split, and the one after the last."""
        periods = len(self.rates[0].rows)
        reach = self.window or periods
        return max(split - reach, 0), min(split + reach, periods)

    def shuffled(self, times: int, random: np.random.Generator, split: int = 0) -> list[Array]:
        """The hits of each rate with the rows of each group shuffled between periods, of each side of a split alone."""
        drawn: list[Array] = []
        for rate in self.rates:
            hits = np.zeros((times, *rate.hits.shape), dtype=np.int64)
            for group, side in itertools.product(range(rate.hits.shape[1]), (slice(0, split), slice(split, None))):
                rows, total = rate.rows[side, group], int(rate.hits[side, group].sum())
                check_shuffled(int(rows.sum()))
                if total:
                    hits[:, side, group] = random.multivariate_hypergeometric(rows, total, times, method="marginals")
            drawn.append(hits)
        return drawn

    @np.errstate(divide="ignore", invalid="ignore")
    def distances(self, hits: list[Array]) -> Array:
        """The distance of what comes before and after each split, in standard errors: draws by splits.

        Of several groups, it is the largest distance of the changes of two of them, or of one and the reference.
        """
        distance = np.zeros((len(hits[0]), len(self.splits)))
        for rate, drawn in zip(self.rates, hits, strict=True):
            change, variance = self._changes(drawn, rate.rows)
            if self.compares_groups:
                shape = distance.size, change.shape[-1]
                of_pairs = farthest(change.reshape(shape), variance.reshape(shape), rate.reference)
                distance = np.fmax(distance, of_pairs.reshape(distance.shape))
            else:
                distance = np.fmax(distance, np.abs(change[..., 0]) / np.sqrt(variance[..., 0]))
        return distance

    def _changes(self, hits: Array, rows: Array) -> tuple[Array, Array]:
        """The change of the rates of groups at each split, or of their logarithms, and the variance."""
        value: list[Array] = []
        variance: list[Array] = []
        for counted, all_rows in zip(self._around_splits(hits), self._around_splits(rows[None]), strict=True):
            # a hit and a miss more, so that a few rows that are all alike are not certain (Agresti and Caffo, 2000)
            share = (counted + 1) / (all_rows + 2)
            if self.is_relative:
                value.append(np.where(all_rows > 0, np.log(share), np.nan))
                variance.append((1 - share) / share / all_rows)
            else:
                value.append(counted / all_rows)
                variance.append(share * (1 - share) / all_rows)
        return value[1] - value[0], variance[0] + variance[1]

    def _around_splits(self, counts: Array) -> tuple[Array, Array]:
        """The sums of the periods before and after each split, on the second axis."""
        total = np.cumsum(counts, axis=1)
        total = np.concatenate([np.zeros_like(total[:, :1]), total], axis=1)
        splits = np.array(self.splits, dtype=np.int64)
        first, last = np.array([self.span(split) for split in splits], dtype=np.int64).reshape(-1, 2).T
        return total[:, splits] - total[:, first], total[:, last] - total[:, splits]

    def observed(self) -> Array:
        """The observed distances at all splits."""
        return self.distances([rate.hits[None] for rate in self.rates])[0]

    def largest_by_chance(self, times: int, random: np.random.Generator, split: int = 0) -> Array:
        """The largest distance at any split in each draw."""
        step = max(1, _MOST_DRAWN // max(1, sum(rate.hits.size for rate in self.rates)))
        parts: list[Array] = []
        for first in range(0, times, step):
            drawn = self.shuffled(min(step, times - first), random, split)
            parts.append(self.distances(drawn).max(axis=1))
        return np.concatenate(parts)

    def times_of_change(self, times: int, random: np.random.Generator, error: float) -> list[int]:
        """The splits at which the change may have happened (Worsley, 1986).

        If a split is the true one, rows are exchangeable on both of its sides, so that shuffling each side shows how
        large the distance at any other split is by chance.
        """
        observed = self.observed()
        largest, times = observed.max(), min(times, _DRAWS_OF_TIMES)
        possible: list[int] = []
        for split, distance in zip(self.splits, observed, strict=True):
            if largest**2 - distance**2 > _NEVER_GAINED:
                continue
            by_chance = self.largest_by_chance(times, random, split)
            reached = by_chance >= largest - slack(largest)
            if 1 + reached.sum() > error * (1 + times):
                possible.append(split)
        return possible

    def within(self, first: int, last: int) -> _Subject:
        """The same in some periods, all of which are compared."""
        rates = [replace(rate, hits=rate.hits[first:last], rows=rate.rows[first:last]) for rate in self.rates]
        return replace(self, rates=rates, window=None)


@dataclass(frozen=True, repr=False)
class ChangeSearch(RateTest):
    """A search for the period at which rates or disparities change; made by `compare_periods(…, search="change")`."""

    subject: ClassVar[str] = "compare_periods()"
    kind: ClassVar[ResultKind] = CHANGES
    period: str = "period"
    window: int | None = None

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        keys = case.evaluated.group_cells.outer_keys
        check_periods("compare_periods", keys, self.period)
        others = keys.drop(self.period, UNGROUPED, strict=False)
        of_period = dict.fromkeys((".period", ".period_lower", ".period_upper"), keys.schema[self.period])
        # the columns of a result follow from the call, not from the data
        schema = {**_SHOWN, **of_period}
        yield no_rows(others, schema)
        numbered = keys.with_row_index("\0outer")
        series = numbered.partition_by(others.columns, maintain_order=True) if others.width else [numbered]
        longest = max(map(len, series))
        if self.window is not None and 2 * self.window > longest > 0:
            msg = (
                f"compare_periods(): `window={self.window}` compares {2 * self.window} periods, and the data have "
                f"{longest}; take a window of {longest // 2} or less."
            )
            raise ArgumentError(msg)
        for periods in series if len(keys) else ():
            outers = periods["\0outer"].to_list()
            subjects = list(self._subjects(case, outers))
            rows = [self._searched(case, subject, outers) for subject in in_progress(subjects, "searching")]
            yield with_outer_key(others, outers[0], frame_of(rows, schema))

    def _together(self, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
        # disparities of the same rates give equal rows for these; rates that only share a name differ
        return super()._together(tables).unique(maintain_order=True)

    def _subjects(self, case: Case, outers: list[int]) -> Iterator[_Subject]:
        """The rate of each group in some outer groups, which are periods, and the comparison of all groups."""
        rates, aggregate = _rates(case, outers), case.metric.aggregate
        for rate in rates:
            for group in range(len(rate.texts)):
                yield _Subject([rate.of_groups(np.array([group]))], self.window, compares_groups=False)
        if isinstance(aggregate, Contrast):
            yield _Subject(rates, self.window, compares_groups=True, is_relative=aggregate.is_relative)

    def _searched(self, case: Case, subject: _Subject, outers: list[int]) -> dict[str, Any]:
        """The row of a subject: where it has changed most, in standard errors, and how often it does so by chance."""
        metric, keys = case.metric, case.evaluated.group_cells.outer_keys
        rate = subject.rates[0]
        rows = {rate.among: int(rate.rows.sum()) for rate in subject.rates}
        row: dict[str, Any] = {
            ".metric": metric.name if subject.compares_groups else rate.name,
            ".by": metric.by.text if metric.by else None,
            ".group": None if subject.compares_groups else rate.texts[0], ".n": sum(rows.values()),
        }  # fmt: skip
        observed = subject.observed()
        if not observed.any():
            return row
        split, largest = subject.splits[int(observed.argmax())], observed.max()
        options = case.options
        random = generator(options.seed, "shuffled periods")
        by_chance = np.sort(np.append(subject.largest_by_chance(options.replicates, random), largest))
        p_value = float((by_chance >= largest - slack(largest)).mean())
        # limits hold at all splits at once, so also at the one that is chosen
        z = min(float(by_chance[math.ceil(options.conf_level * len(by_chance)) - 1]), _FARTHEST)
        first, last = subject.span(split)
        if subject.compares_groups:
            values, limits = self._compared(case, outers[first:split], outers[split:last], z)
        else:
            parts = (slice(first, split), slice(split, last))
            hits, size = (np.array([count[part].sum() for part in parts], float) for count in (rate.hits, rate.rows))
            values: Array = hits / size
            lower, upper = newcombe(values[1:], size[1:], values[:1], size[:1], z)
            limits = lower[0], upper[0]
        numbers = {
            ".estimate_before": values[0], ".estimate": values[1], ".change": values[1] - values[0],
            ".lower": limits[0], ".upper": limits[1], ".p_value": p_value,
        }  # fmt: skip
        row |= {name: None if math.isnan(value) else float(value) for name, value in numbers.items()}
        row[".period"] = keys[self.period][outers[split]]
        error = 1 - options.conf_level
        if p_value < error:
            possible = subject.within(first, last).times_of_change(options.replicates, random, error)
            for name, end in ((".period_lower", min), (".period_upper", max)):
                row[name] = keys[self.period][outers[end(split, *(first + time for time in possible))]]
        return row

    def _compared(self, case: Case, before: list[int], after: list[int], z: float) -> tuple[Array, tuple[Any, Any]]:
        """The disparity of the rows of some periods and of others, and limits of its change."""
        tally, keys = case.tally.on_sides(), case.evaluated.group_cells.outer_keys
        (period,) = (name for name, key in zip(tally.outer_names, keys.columns, strict=True) if key == self.period)
        sides = keys[before + after].rename(dict(zip(keys.columns, tally.outer_names, strict=True)))
        sides = sides.with_columns((pl.int_range(pl.len()) >= len(before)).alias("\0is_after"))
        cells = tally.cells.join(sides, on=tally.outer_names, how="inner", nulls_equal=True)
        cells = cells.with_columns(pl.col("\0is_after").alias(period)).select(tally.cells.columns)
        options = replace(case.options, interval="auto", conf_level=2 * NormalDist().cdf(z) - 1)
        results = case.metric.run.results_of(replace(tally, cells=cells), options)
        numbers = results.select(pl.col(".estimate", ".lower", ".upper").fill_null(math.nan))
        value, lower, upper = numbers.to_numpy().T
        low, high = difference_limits(value[1:], (lower[1:], upper[1:]), value[:1], (lower[:1], upper[:1]))
        return value, (low[0], high[0])


def _rates(case: Case, outers: list[int]) -> list[_RateSeries]:
    """The rates of a metric by period and group, of the groups that have enough rows in all periods together."""
    spec, cells = case.metric, case.evaluated.group_cells
    first, size = cells.spans[spec.by]
    texts = cells.text[first : first + size]
    # a metric of all rows has one group without a key
    keys = cells.keys.get(spec.by, texts.to_frame())
    groups = KeyCodes(keys).index(keys.columns)
    counted = case.evaluated.rows.filter(pl.col("outer").is_in(outers) & ~pl.col("excluded"))
    rates: list[_RateSeries] = []
    for name, formula in spec.formulas:
        share, rows = share_of(formula), counted.filter(name=name)
        if share is None or not reads_one_label(rows):
            msg = (
                f"compare_periods() finds changes of rates of one label, and {name} is none. Search the rates that it "
                "is made of, such as sens and spec; select a label with `pos_label=`."
            )
            raise ArgumentError(msg)
        period = np.searchsorted(outers, rows["outer"].to_numpy())
        group = groups.of_cell[rows[GROUP_CELL].to_numpy() - first]
        hits, all_rows = np.zeros((2, len(outers), len(groups)), dtype=np.int64)
        size_of_value = rows["counted_rows"].fill_null(0).to_numpy()
        hits_of_value = np.round(rows["rate"].fill_null(0.0).to_numpy() * size_of_value)
        np.add.at(all_rows, (period, group), size_of_value.astype(np.int64))
        np.add.at(hits, (period, group), hits_of_value.astype(np.int64))
        reference = np.unique(group[rows["is_reference"].to_numpy()]).tolist()
        series = _RateSeries(name, share.among, hits, all_rows, texts[groups.example].to_list(), reference)
        # a metric of all rows has its row also where nothing is counted
        least = max(1, spec.policy.min_n, spec.policy.min_share * all_rows.sum()) if spec.by is not None else 0  # pyright: ignore[reportUnnecessaryComparison] - metrics of all rows have none
        rates.append(series.of_groups(np.flatnonzero(all_rows.sum(axis=0) >= least)))
    return rates
