"""Test of a change of disparities from one period to the next."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.inference.permutation_test import CENTRAL, compared_draws
from tidyfair.inference.rate_tests import (
    ADJUSTMENTS,
    FAMILIES,
    SAME,
    Case,
    CountedRate,
    Family,
    RateTest,
    groupwise,
    rate_counts,
)
from tidyfair.intervals.resampling import generator
from tidyfair.specs.arguments import how_often, one_of, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    import numpy as np

    from tidyfair.metric_sets import GroupwiseMetric, MetricSet

    Array: TypeAlias = np.ndarray[Any, Any]

__all__ = ["PeriodTest", "compare_periods"]

_OUTER = "\0outer"
_CHANGED = {
    ".metric": pl.String, ".by": pl.String, ".estimate_before": pl.Float64, ".estimate": pl.Float64,
    ".change": pl.Float64, ".expected": pl.Float64, ".expected_lower": pl.Float64, ".expected_upper": pl.Float64,
    ".p_value": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class PeriodTest(RateTest):
    """Tests whether a disparity has changed; made by `compare_periods`."""

    subject: ClassVar[str] = "compare_periods()"
    period: str = "period"

    def _tables(self, case: Case) -> Iterator[pl.DataFrame]:
        keys = case.evaluated.group_cells.outer_keys
        if self.period not in keys.columns:
            msg = f"compare_periods() needs the periods as outer groups: `group_by={self.period!r}`."
            raise ArgumentError(msg)
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
        keys = evaluated.group_cells.outer_keys
        random = generator(self.seed, f"{metric.name} {metric.by.text} {keys.row(before)} {keys.row(after)}")
        counts_before, counts_after = rate_counts(case, before), rate_counts(case, after)
        drawn_before: list[Array] = []
        drawn_after: list[Array] = []
        for one, other in zip(counts_before, counts_after, strict=True):
            of_one, of_other = _between(one, other, evaluated.group_cells.text, self.times, random)
            drawn_before.append(of_one)
            drawn_after.append(of_other)
        rows_before, rows_after = (evaluated.rows.filter(pl.col("outer") == outer) for outer in (before, after))
        values_before = compared_draws(evaluated, rows_before, counts_before, drawn_before)["value"]
        values_after = compared_draws(evaluated, rows_after, counts_after, drawn_after)["value"]
        return pl.DataFrame([self._changed(metric, values_before, values_after)], schema=_CHANGED)

    def _changed(self, metric: GroupwiseMetric, before: pl.Series, after: pl.Series) -> dict[str, Any]:
        """The change of a disparity, and its distribution by chance alone; the observed values come last."""
        row = dict.fromkeys(_CHANGED) | {
            ".metric": metric.name, ".by": metric.by.text, ".estimate_before": before[-1], ".estimate": after[-1],
        }  # fmt: skip
        change = after - before
        shuffled, observed = change[:-1].drop_nulls(), change[-1]
        if observed is None or not len(shuffled):
            return row
        low, high = (shuffled.quantile(end, "linear") for end in CENTRAL)
        expected = float(str(shuffled.mean()))
        distance = (shuffled - expected).abs()
        as_far = int((distance >= abs(observed - expected) - SAME).sum())
        return row | {
            ".change": observed, ".expected": expected, ".expected_lower": low, ".expected_upper": high,
            ".p_value": (as_far + 1) / (len(shuffled) + 1),
        }  # fmt: skip


def _between(
    one: CountedRate, other: CountedRate, texts: pl.Series, times: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """The numerators of each group in both periods, with the rows of the group shuffled between them."""
    import numpy as np

    first, second = one.of_groups, other.of_groups
    drawn_first, drawn_second = np.tile(first.numerator, (times, 1)), np.tile(second.numerator, (times, 1))
    index_of = {texts[int(group_cell)]: index for index, group_cell in enumerate(other.group_cells)}
    for index, group_cell in enumerate(one.group_cells):
        match = index_of.get(texts[int(group_cell)])
        if match is None:
            continue
        rows = first.denominator[index] + second.denominator[match]
        hits = first.numerator[index] + second.numerator[match]
        drawn = random.hypergeometric(hits, rows - hits, first.denominator[index], times)
        drawn_first[:, index], drawn_second[:, match] = drawn, hits - drawn
    return drawn_first, drawn_second


def compare_periods(
    *metrics: GroupwiseMetric | MetricSet,
    period: str,
    times: int = 10_000,
    seed: int = 0,
    adjust: Literal["holm", "bh", "by", "none"] = "holm",
    family: Family = "all",
) -> PeriodTest:
    """Test whether disparities change from one period to the next, by shuffling the rows of each group between them.

    Ranges of different numbers of rows are not comparable: that of the smaller period is larger by chance. So a change
    is compared with its distribution if nothing but the number of rows changed.

    Args:
        metrics: Groupwise metrics of rates.
        period: The column of periods, in their order, which is also given as `group_by=` in the call.
        times: Number of draws.
        seed: Seed of the draws.
        adjust: The adjustment of p-values, as for `disparity_test`.
        family: The tests that are adjusted together.

    Returns:
        A callable that takes what a metric takes, and gives one row for each metric and period but the first: `.before`
        (the period before), both values, their `.change`, what is `.expected` if nothing changes and the range of 95 %
        of it, `.p_value` and `.p_adjusted`.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"month": [1] * 4 + [2] * 4, "hired": [1, 0] * 4, "sex": list("ffmm") * 2})
    >>> test = compare_periods(demographic_parity("sex"), period="month")
    >>> test(people, estimate="hired", group_by="month").select(".before", ".period", ".change").row(0)
    (1, 2, 0.0)
    """
    if not isinstance(period, str) or not period:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"compare_periods(): `period` is the name of a column, not {period!r}."
        raise ArgumentError(msg)
    return PeriodTest(
        groupwise(metrics, "compare_periods"), (), how_often(times), whole("seed", seed, 0),
        one_of("adjust", adjust, ADJUSTMENTS), cast("Any", one_of("family", family, FAMILIES)), period=period,
    )  # fmt: skip
