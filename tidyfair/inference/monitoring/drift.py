"""Permutation test of changes of disparities between periods."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric, MetricSet
from tidyfair.errors import ArgumentError
from tidyfair.evaluation import GROUP_CELL
from tidyfair.inference.monitoring.change_points import ChangeSearch
from tidyfair.inference.monitoring.periods import check_periods, period_column
from tidyfair.inference.rate_tests import (
    Case,
    CountedRate,
    Family,
    RateTest,
    groupwise,
    rate_counts,
)
from tidyfair.inference.result_frames import frame_of, no_rows, schema_of
from tidyfair.inference.testing import by_chance, compared_draws, farthest
from tidyfair.intervals import check_shuffled, generator
from tidyfair.specs import Array, Contrast, one_of, refuse_unknown_keywords, whole
from tidyfair.specs.result_kinds import PERIODS, ResultKind

__all__ = ["PeriodTest", "compare_periods"]

_OUTER = "\0outer"
_CHANGED = schema_of("""
    .metric .by .estimate_before .estimate .change .expected .expected_lower .expected_upper .p_value
""")  # fmt: skip


@dataclass(frozen=True, repr=False)
class PeriodTest(RateTest):
    """A test of changes of a disparity; made by `compare_periods`."""

    subject: ClassVar[str] = "compare_periods()"
    kind: ClassVar[ResultKind] = PERIODS
    period: str = "period"

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        keys = case.evaluated.group_cells.outer_keys
        check_periods("compare_periods", keys, self.period)
        others = keys.drop(self.period).columns
        of_periods, before = keys.select(*others, self.period), keys[self.period].alias(".before")
        yield no_rows(of_periods.with_columns(before), _CHANGED)
        numbered = keys.with_row_index(_OUTER)
        series = numbered.partition_by(others, maintain_order=True) if others else [numbered]
        for periods in series:
            for first, second in itertools.pairwise(periods[_OUTER].to_list()):
                row = frame_of(self._tested(case, first, second), _CHANGED)
                yield of_periods[second].with_columns(before[[first]]).join(row, how="cross")

    def _tested(self, case: Case, before: int, after: int) -> dict[str, Any]:
        """The test of a period against the one before it."""
        metric, evaluated, level = case.metric, case.evaluated, case.options.conf_level
        random, texts = generator(case.options.seed, "shuffled periods"), evaluated.group_cells.text
        counts_before, counts_after = rate_counts(case, before), rate_counts(case, after)
        shuffled = [
            _Shuffled.of(one, other, texts, case.options.replicates, random)
            for one, other in zip(counts_before, counts_after, strict=True)
        ]
        drawn_before, drawn_after = [rate.drawn_before for rate in shuffled], [rate.drawn_after for rate in shuffled]
        values_before = compared_draws(evaluated, before, counts_before, drawn_before)[0]
        values_after = compared_draws(evaluated, after, counts_after, drawn_after)[0]
        change = values_after - values_before
        row: dict[str, Any] = {
            ".metric": metric.name, ".by": metric.by.text, ".estimate_before": values_before[-1],
            ".estimate": values_after[-1],
        }  # fmt: skip
        has_value = ~np.isnan(change)
        if not has_value[-1] or has_value.sum() < 2:
            return row
        change = change[has_value]
        expected = float(change[:-1].mean())
        row |= {".change": float(change[-1])} | by_chance(change, abs(change - expected), level)
        if isinstance(metric.aggregate, Contrast) and not metric.aggregate.is_signed:
            # if all groups change alike, no disparity changes; if a disparity reverses, the difference of two groups
            # changes although the unsigned disparity does not
            largest = np.zeros(len(has_value))
            rows_after = evaluated.rows.filter(pl.col("outer") == after)
            for rate in shuffled:
                values, variance = rate.changes(relative=metric.aggregate.is_relative)
                reference_rows = rows_after.filter((pl.col("name") == rate.after.name) & pl.col("is_reference"))
                group_cells = rate.after.group_cells[rate.matches]
                reference = np.flatnonzero(np.isin(group_cells, reference_rows[GROUP_CELL].to_numpy())).tolist()
                np.fmax(largest, farthest(values, variance[None], reference), out=largest)
            # what is not significant then is no range of changes of the disparity
            row |= by_chance(np.full(len(change), math.nan), largest[has_value], level) | {".expected": expected}
        return row


@dataclass(frozen=True, eq=False)
class _Shuffled:
    """A rate in two periods, and its numerators with the rows of each group shuffled between them: draws by groups."""

    before: CountedRate
    after: CountedRate
    drawn_before: Array
    """Those of all groups; groups that only one period has are not shuffled."""
    drawn_after: Array
    indices: list[int]
    """The groups that both periods have, as indices of those before and, in the same order, of those after."""
    matches: list[int]

    @classmethod
    def of(
        cls, one: CountedRate, other: CountedRate, texts: pl.Series, times: int, random: np.random.Generator
    ) -> _Shuffled:
        """Shuffle the rows of the groups that both periods have; `texts` are the names of group cells."""
        drawn_before, drawn_after = (np.tile(rate.group_numerator, (times, 1)) for rate in (one, other))
        rows_before, rows_after = one.group_denominator, other.group_denominator
        index_of = {texts[int(group_cell)]: index for index, group_cell in enumerate(other.group_cells)}
        indices: list[int] = []
        matches: list[int] = []
        for index, group_cell in enumerate(one.group_cells):
            match = index_of.get(texts[int(group_cell)])
            if match is None:
                continue
            rows, hits = rows_before[index] + rows_after[match], drawn_before[0, index] + drawn_after[0, match]
            check_shuffled(int(rows))
            drawn_before[:, index] = random.hypergeometric(hits, rows - hits, rows_before[index], times)
            drawn_after[:, match] = hits - drawn_before[:, index]
            indices.append(index)
            matches.append(match)
        return cls(one, other, drawn_before, drawn_after, indices, matches)

    def changes(self, *, relative: bool) -> tuple[Array, Array]:
        """The change of the rate of each group that both periods have, and the variance; the observed one comes last.

        Or that of its logarithm (`relative`), with half a row more, so that all rates have one.
        """
        more = 0.5 if relative else 0.0
        rows, other_rows = self.before.group_denominator[self.indices], self.after.group_denominator[self.matches]
        hits = np.vstack([self.drawn_before, self.before.group_numerator])[:, self.indices].astype(float)
        other_hits = np.vstack([self.drawn_after, self.after.group_numerator])[:, self.matches].astype(float)
        share = (hits[-1] + other_hits[-1] + more) / (rows + other_rows + 2 * more)
        before, after = (hits + more) / (rows + 2 * more), (other_hits + more) / (other_rows + 2 * more)
        inverse_rows = 1 / rows + 1 / other_rows
        if relative:
            return np.log(after) - np.log(before), (1 - share) / share * inverse_rows
        return after - before, share * (1 - share) * inverse_rows


@refuse_unknown_keywords
def compare_periods(
    *metrics: Metric | GroupwiseMetric | MetricSet,
    period: str,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
    search: Literal["change"] | None = None,
    window: int | None = None,
) -> PeriodTest | ChangeSearch:
    """Test whether disparities change from one period to the next, or find the period from which on they are others.

    Ranges from different numbers of rows are not comparable: chance makes the range of the smaller period larger. So a
    change is compared with its distribution if only the number of rows changed, by permuting the rows of each group
    between periods.

    The p-value of an unsigned difference or ratio is based on the changes of groups: the largest distance between two
    groups' changes, in standard errors (of logarithms, for ratios). It detects a disparity that reverses with the same
    size, and nothing if all groups change alike. Other disparities are tested by their change itself.

    Few rows in each period hide a change that lasts. `search="change"` compares all periods before with all periods
    from each possible one on, and takes the one with the largest distance. It does so for the rate of each group, for
    differences and ratios of groups by the changes of these, and for a metric of all rows. The p-value is that of the
    largest distance over all periods, among permutations of the rows of each group between periods (Worsley, 1983).

    Args:
        metrics: Groupwise metrics of rates; for a search metrics of all rows, too.
        period: The column of periods, also given as `group_by=` in the call. Periods are sorted by value; texts that
            sort in another order than time, such as `"10"` before `"8"`, are an error.
        adjust: The adjustment of p-values, as for `disparity_test`; those of a search are adjusted for its groups and
            metrics, and allow for all of its periods before.
        family: The tests that are adjusted together.
        search: `"change"`: find one period from which on values are others, in place of comparing neighbors.
        window: For a search, the number of periods before and from each one on that are compared, in place of all
            others: for a change that does not last.

    Returns:
        A callable with the arguments of a metric, `times=` draws (10,000 by default) and their `seed=` among them. It
        returns one row for each metric and period except the first: the period in its own column, the previous one in
        `.before`, both values, their
        `.change`, the mean change `.expected` by chance, the range of changes that are not significant at 1 -
        `conf_level` (`.expected_lower`, `.expected_upper`; null where the test is of the changes of groups), `.p_value`
        and `.p_adjusted`.

        A search returns one row for each metric and `.group`, which is null for the disparity and for all rows: the
        `.period` from which on values are others, and the first and last one that it may be at the confidence level
        (`.period_lower`, `.period_upper`; Worsley, 1986; null where `.p_value` is 1 - `conf_level` or more), the values
        before and from it on, their `.change` with limits that hold at whichever period is taken (`.lower`, `.upper`),
        `.p_value`, `.p_adjusted` and the rows `.n` that are counted. All are null where nothing can be compared.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"month": [1] * 4 + [2] * 4, "hired": [1, 0] * 4, "sex": list("ffmm") * 2})
    >>> test = compare_periods(demographic_parity("sex"), period="month")
    >>> test(people, estimate="hired", group_by="month").select(".before", "month", ".change").row(0)
    (1, 2, 0.0)

    >>> weeks = pl.DataFrame({"week": range(20)}).join(pl.DataFrame({"sex": list("ffffmmmm")}), how="cross")
    >>> weeks = weeks.with_columns(hired=(pl.col("sex") == "m") | (pl.col("week") < 12))
    >>> search = compare_periods(demographic_parity("sex"), period="week", search="change")
    >>> search(weeks, estimate="hired", group_by="week", times=200).select(".group", ".period", ".change").rows()
    [('f', 12, -1.0), ('m', None, None), (None, 12, 1.0)]
    """
    period_column("compare_periods", period)
    settings: dict[str, Any] = {"adjust": adjust, "family": family, "period": period}
    if search is None:
        if window is not None:
            msg = 'compare_periods(): `window` is the number of periods that a search compares; add `search="change"`.'
            raise ArgumentError(msg)
        return PeriodTest(groupwise(metrics, "compare_periods"), **settings)
    one_of("search", search, ["change"])
    members: list[Any] = []
    for metric in metrics:
        members += metric if isinstance(metric, MetricSet) else [metric]
    of_groups = [metric for metric in members if not isinstance(metric, Metric)]
    for metric in groupwise(tuple(of_groups), "compare_periods") if of_groups or not members else ():
        if not isinstance(metric.aggregate, Contrast):
            msg = (
                f"compare_periods(): a search finds changes of differences and ratios of groups, and {metric.name} is "
                f"{metric.aggregate!r}. Use a difference of the same metric, which shows each group, too."
            )
            raise ArgumentError(msg)
    return ChangeSearch(tuple(members), **settings, window=None if window is None else whole("window", window, 1))
