"""Whether disparities change from one period to the next, beside what the number of rows alone changes."""

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
        metric, evaluated = case.metric, case.evaluated
        keys = evaluated.group_cells.outer_keys
        if self.period not in keys.columns:
            msg = f"compare_periods() needs the periods as outer groups: `group_by={self.period!r}`."
            raise ArgumentError(msg)
        rest = keys.drop(self.period)
        runs = (
            keys.with_row_index(_OUTER).partition_by(rest.columns, maintain_order=True)
            if rest.width
            else [keys.with_row_index(_OUTER)]
        )
        empty = pl.DataFrame([dict.fromkeys(_CHANGED)], schema=_CHANGED).clear()
        yield (
            keys.clear()
            .rename({self.period: ".period"})
            .with_columns(keys[self.period].clear().alias(".before"))
            .join(empty, how="cross")
        )
        for run in runs:
            for first, second in itertools.pairwise(run[_OUTER].to_list()):
                about = f"{metric.name} {metric.by.text} {keys.row(first)} {keys.row(second)}"
                random = generator(self.seed, about)
                both = [self._counts(case, outer) for outer in (first, second)]
                drawn = [
                    _between(one, other, evaluated.group_cells.text, self.times, random)
                    for one, other in zip(*both, strict=True)
                ]
                values = [
                    compared_draws(
                        evaluated, evaluated.rows.filter(pl.col("outer") == outer), mine, [each[side] for each in drawn]
                    )["value"]
                    for side, (outer, mine) in enumerate(zip((first, second), both, strict=True))
                ]
                table = pl.DataFrame([self._changed(metric, *values)], schema=_CHANGED)
                named = keys[second : second + 1].rename({self.period: ".period"})
                yield named.with_columns(keys[self.period][first : first + 1].alias(".before")).join(table, how="cross")

    def _changed(self, metric: GroupwiseMetric, before: pl.Series, after: pl.Series) -> dict[str, Any]:
        """How much a disparity changes, and by chance alone; what was found comes last."""
        change = after - before
        shuffled, found = change[:-1].drop_nulls(), change[-1]
        about = dict.fromkeys(_CHANGED) | {
            ".metric": metric.name, ".by": metric.by.text, ".estimate_before": before[-1], ".estimate": after[-1],
        }  # fmt: skip
        if found is None or not len(shuffled):
            return about
        low, high = (shuffled.quantile(end, "linear") for end in CENTRAL)
        expected = float(str(shuffled.mean()))
        away = (shuffled - expected).abs()
        reached = int((away >= abs(found - expected) - SAME).sum())
        return about | {
            ".change": found, ".expected": expected, ".expected_lower": low, ".expected_upper": high,
            ".p_value": (reached + 1) / (len(shuffled) + 1),
        }  # fmt: skip


def _between(
    one: CountedRate, other: CountedRate, texts: pl.Series, times: int, random: np.random.Generator
) -> tuple[Array, Array]:
    """The hits of each group in both periods, its rows shuffled between them."""
    import numpy as np

    first, second = ((each.of_groups.denominator, each.of_groups.numerator) for each in (one, other))
    drawn = [np.tile(hits, (times, 1)) for _, hits in (first, second)]
    places = {texts[int(group_cell)]: place for place, group_cell in enumerate(other.group_cells)}
    for place, group_cell in enumerate(one.group_cells):
        match = places.get(texts[int(group_cell)])
        if match is not None:
            total, rows = first[1][place] + second[1][match], first[0][place] + second[0][match]
            moved = random.hypergeometric(total, rows - total, first[0][place], times)
            drawn[0][:, place], drawn[1][:, match] = moved, total - moved
    return drawn[0], drawn[1]


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
    is compared with what it would be if nothing but the number of rows changed.

    Args:
        metrics: Groupwise metrics of rates.
        period: The column of periods, in their order, which is also given as `group_by=` in the call.
        times: How many draws there are.
        seed: Of the draws.
        adjust: How p-values are adjusted, as for `disparity_test`.
        family: Which tests are adjusted together.

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
