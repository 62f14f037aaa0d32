"""Permutation test of changes of disparities between periods."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import polars as pl

from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.inference.periods import check_periods, period_column
from tidyfair.inference.permutation_test import by_chance, compared_draws
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    Case,
    CountedRate,
    Family,
    RateTest,
    groupwise,
    rate_counts,
)
from tidyfair.inference.studentized import farthest
from tidyfair.intervals.resampling import check_shuffled, generator
from tidyfair.specs.arguments import how_often, one_of, whole
from tidyfair.specs.contrasts import Contrast
from tidyfair.specs.options import refuse_unknown_keywords

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from tidyfair.metric_sets import GroupwiseMetric, MetricSet

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["PeriodTest", "compare_periods"]

_OUTER = "\0outer"
_CHANGED = {
    ".metric": pl.String, ".by": pl.String, ".estimate_before": pl.Float64, ".estimate": pl.Float64,
    ".change": pl.Float64, ".expected": pl.Float64, ".expected_lower": pl.Float64, ".expected_upper": pl.Float64,
    ".p_value": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class PeriodTest(RateTest):
    """A test of changes of a disparity; made by `compare_periods`."""

    subject: ClassVar[str] = "compare_periods()"
    findings: ClassVar[tuple[str, ...]] = (".estimate_before", ".estimate", ".change", ".p_adjusted")
    period: str = "period"

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        keys = case.evaluated.group_cells.outer_keys
        check_periods("compare_periods", keys, self.period)
        # the columns of a result follow from the call, not from the data
        yield self._keyed(keys, 0, 0, pl.DataFrame([dict.fromkeys(_CHANGED)], schema=_CHANGED)).clear()
        others = keys.drop(self.period).columns
        numbered = keys.with_row_index(_OUTER)
        series = numbered.partition_by(others, maintain_order=True) if others else [numbered]
        for periods in series:
            for before, after in itertools.pairwise(periods[_OUTER].to_list()):
                yield self._keyed(keys, before, after, self._tested(case, before, after))

    def _keyed(self, keys: pl.DataFrame, before: int, after: int, table: pl.DataFrame) -> pl.DataFrame:
        """A test with the keys of the outer group, and the period before."""
        named = keys[after : after + 1].rename({self.period: ".period"})
        named = named.with_columns(keys[self.period][before : before + 1].alias(".before"))
        return named.join(table, how="cross")

    def _tested(self, case: Case, before: int, after: int) -> pl.DataFrame:
        """The test of a period against the one before it."""
        metric, evaluated = case.metric, case.evaluated
        random = generator(self.seed, "shuffled periods")
        counts_before, counts_after = rate_counts(case, before), rate_counts(case, after)
        drawn_before: list[Array] = []
        drawn_after: list[Array] = []
        changes: list[_Changes] = []
        for one, other in zip(counts_before, counts_after, strict=True):
            matches = _groups_of_both(one, other, evaluated.group_cells.text)
            of_one, of_other = _between(one, other, matches, self.times, random)
            drawn_before.append(of_one)
            drawn_after.append(of_other)
            changes.append(_changes(one, other, matches, (of_one, of_other)))
        rows_before, rows_after = (evaluated.rows.filter(pl.col("outer") == outer) for outer in (before, after))
        values_before = compared_draws(evaluated, rows_before, counts_before, drawn_before)["value"]
        values_after = compared_draws(evaluated, rows_after, counts_after, drawn_after)["value"]
        change = (values_after - values_before).to_numpy()
        row = dict.fromkeys(_CHANGED) | {
            ".metric": metric.name, ".by": metric.by.text, ".estimate_before": values_before[-1],
            ".estimate": values_after[-1],
        }  # fmt: skip
        has_value = ~np.isnan(change)
        if not has_value[-1] or has_value.sum() < 2:
            return pl.DataFrame([row], schema=_CHANGED)
        change = change[has_value]
        expected = float(change[:-1].mean())
        row |= {".change": float(change[-1])} | by_chance(change, abs(change - expected))
        if isinstance(metric.aggregate, Contrast) and not metric.aggregate.is_signed:
            # what is not significant then is no range of changes of the disparity
            distances = _largest_distances(metric.aggregate, rows_after, changes)[has_value]
            row |= by_chance(np.full(len(change), math.nan), distances) | {".expected": expected}
        return pl.DataFrame([row], schema=_CHANGED)


@dataclass(frozen=True, eq=False)
class _Changes:
    """The numerators of the groups that both periods have, drawn; the observed ones come last."""

    name: str
    group_cells: Array
    """The group cells of the later period."""
    before: Array
    after: Array
    rows_before: Array
    rows_after: Array

    def of_rates(self) -> tuple[Array, Array]:
        """The change of the rate of each group in each draw, and its variance."""
        share = (self.before[-1] + self.after[-1]) / (self.rows_before + self.rows_after)
        variance = share * (1 - share) * (1 / self.rows_before + 1 / self.rows_after)
        return self.after / self.rows_after - self.before / self.rows_before, variance

    def of_logarithms(self) -> tuple[Array, Array]:
        """The same of logarithms of rates; half a row more, so that all of them have one."""
        share = (self.before[-1] + self.after[-1] + 0.5) / (self.rows_before + self.rows_after + 1)
        variance = (1 - share) / share * (1 / self.rows_before + 1 / self.rows_after)
        after = np.log((self.after + 0.5) / (self.rows_after + 1))
        return after - np.log((self.before + 0.5) / (self.rows_before + 1)), variance


def _largest_distances(aggregate: Contrast, rows: pl.DataFrame, changes: list[_Changes]) -> Array:
    """The largest distance of the changes of two groups in each draw, in standard errors.

    If all groups change alike, no disparity changes; if a disparity reverses, the difference of two groups changes
    although the unsigned disparity does not.
    """
    largest = np.zeros(len(changes[0].before))
    for change in changes:
        values, variance = change.of_logarithms() if aggregate.is_relative else change.of_rates()
        references = rows.filter((pl.col("name") == change.name) & pl.col("is_reference"))[GROUP_CELL].to_numpy()
        reference = np.flatnonzero(np.isin(change.group_cells, references)).tolist()
        np.fmax(largest, farthest(values, variance[None], reference), out=largest)
    return largest


def _groups_of_both(one: CountedRate, other: CountedRate, texts: pl.Series) -> tuple[Array, Array]:
    """The indices of the groups that two periods have, in each of them."""
    index_of = {texts[int(group_cell)]: index for index, group_cell in enumerate(other.group_cells)}
    matches = [
        (index, index_of[texts[int(group_cell)]])
        for index, group_cell in enumerate(one.group_cells)
        if texts[int(group_cell)] in index_of
    ]
    pairs = np.array(matches, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _between(
    one: CountedRate, other: CountedRate, matches: tuple[Array, Array], times: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """The numerators of each group in both periods, with the rows of the group shuffled between them."""
    first, second = one.of_groups, other.of_groups
    drawn_first, drawn_second = np.tile(first.numerator, (times, 1)), np.tile(second.numerator, (times, 1))
    for index, match in zip(*matches, strict=True):
        rows = first.denominator[index] + second.denominator[match]
        hits = first.numerator[index] + second.numerator[match]
        check_shuffled(int(rows))
        drawn = random.hypergeometric(hits, rows - hits, first.denominator[index], times)
        drawn_first[:, index], drawn_second[:, match] = drawn, hits - drawn
    return drawn_first, drawn_second


def _changes(
    one: CountedRate, other: CountedRate, matches: tuple[Array, Array], drawn: tuple[Array, Array]
) -> _Changes:
    """The draws of the groups that both periods have, and what was observed of them."""
    (index, match), first, second = matches, one.of_groups, other.of_groups
    before, after = (
        np.concatenate([of_draws, counts.numerator[None]])[:, chosen].astype(float)
        for of_draws, counts, chosen in ((drawn[0], first, index), (drawn[1], second, match))
    )
    rows_before, rows_after = first.denominator[index], second.denominator[match]
    return _Changes(one.name, other.group_cells[match], before, after, rows_before, rows_after)


@refuse_unknown_keywords
def compare_periods(
    *metrics: GroupwiseMetric | MetricSet,
    period: str,
    times: int = 10_000,
    seed: int = 0,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> PeriodTest:
    """Test whether disparities change from one period to the next, by permuting the rows of each group between them.

    Ranges from different numbers of rows are not comparable: chance makes the range of the smaller period larger. So a
    change is compared with its distribution if only the number of rows changed.

    The p-value of an unsigned difference or ratio is based on the changes of groups: the largest distance between two
    groups' changes, in standard errors (of logarithms, for ratios). It detects a disparity that reverses with the same
    size, and nothing if all groups change alike. Other disparities are tested by their change itself.

    Args:
        metrics: Groupwise metrics of rates.
        period: The column of periods, also given as `group_by=` in the call. Periods are sorted by value; texts that
            sort in another order than time, such as `"10"` before `"8"`, are an error.
        times: Number of draws.
        seed: Seed of the draws.
        adjust: The adjustment of p-values, as for `disparity_test`.
        family: The tests that are adjusted together.

    Returns:
        A callable with the arguments of a metric. It returns one row for each metric and period except the first:
        `.before` (the previous period), both values, their `.change`, the mean change `.expected` by chance, the range
        of changes that are not significant at 5 % (`.expected_lower`, `.expected_upper`; null where the test is of the
        changes of groups), `.p_value` and `.p_adjusted`.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"month": [1] * 4 + [2] * 4, "hired": [1, 0] * 4, "sex": list("ffmm") * 2})
    >>> test = compare_periods(demographic_parity("sex"), period="month")
    >>> test(people, estimate="hired", group_by="month").select(".before", ".period", ".change").row(0)
    (1, 2, 0.0)
    """
    period_column("compare_periods", period)
    return PeriodTest(
        groupwise(metrics, "compare_periods"), (), how_often(times), whole("seed", seed, 0),
        one_of("adjust", adjust, ADJUSTMENTS), cast("Any", one_of("family", family, FAMILIES)), period=period,
    )  # fmt: skip
