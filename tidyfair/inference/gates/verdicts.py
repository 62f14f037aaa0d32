"""Verdicts: estimates with limits against what is acceptable, and failures adjusted for their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import polars as pl

Side: TypeAlias = Literal["below", "above"]
"""The good side of a limit."""
Outside: TypeAlias = Literal["hold", "state"]
"""The effect of groups outside the policy of a metric: they hold a pass back, or are stated."""
PASS, FAIL, UNSURE = "pass", "fail", "not enough evidence"
_LEFT_OUT = pl.col(".groups_left_out")
LOW, HIGH = "\0low", "\0high"
"""The ends of the acceptable interval; null where there is none."""


def with_limits(
    results: pl.DataFrame, limits: Sequence[tuple[str, float]], signed: pl.Expr | pl.Series
) -> pl.DataFrame:  # fmt: skip
    """Results with the limit of each, and the ends of what is acceptable: two where a value may have either sign."""
    limit = pl.Series(".limit", [limit for _, limit in limits], dtype=pl.Float64)
    below = pl.Series([side == "below" for side, _ in limits], dtype=pl.Boolean)
    return results.with_columns(
        limit,
        pl.when(~below).then(limit).when(signed).then(-limit).alias(LOW),
        pl.when(below).then(limit).when(signed).then(1 / limit).alias(HIGH),
    )


def compares_all(outside: Outside, left_out: pl.Expr = _LEFT_OUT) -> pl.Expr:
    """The results that leave no groups out, or none but those outside of the policy of their metric."""
    if outside == "state":
        left_out = left_out.list.set_difference(".groups_outside")
    return left_out.list.len() == 0


def passes(*, at_limit: bool = False) -> pl.Expr:
    """The results whose interval is acceptable as a whole; an end at the limit itself only if `at_limit`."""
    low, high, lower, upper = (pl.col(name) for name in (LOW, HIGH, ".lower", ".upper"))
    is_above = (lower >= low) if at_limit else (lower > low)
    is_below = (upper <= high) if at_limit else (upper < high)
    return (low.is_null() | is_above) & (high.is_null() | is_below)


def fails() -> pl.Expr:
    """The results whose interval is not acceptable in any part; null where it has no such end."""
    return (pl.col(".lower") > pl.col(HIGH)) | (pl.col(".upper") < pl.col(LOW))


def verdict(failed: pl.Expr, passed: pl.Expr) -> pl.Expr:
    """The column of verdicts."""
    text = pl.when(failed).then(pl.lit(FAIL)).when(passed).then(pl.lit(PASS)).otherwise(pl.lit(UNSURE))
    return text.alias(".verdict")


def failed_after_holm(
    results: pl.DataFrame, may_fail: pl.Series, results_at: Callable[[float], pl.DataFrame], error: float
) -> pl.Series:
    """A mask of the results that fail, after Holm (1979).

    Args:
        results: Results with the ends of what is acceptable.
        may_fail: Those that can fail at all.
        results_at: The same results with one-sided limits of an error rate.
        error: The error rate of all failures together.
    """
    failed = pl.Series([False] * len(results), dtype=pl.Boolean)
    remaining = may_fail
    while remaining.any():
        # the next one is judged by as many as remain
        stricter = results_at(error / int(remaining.sum()))
        beyond = stricter.with_columns(results[LOW], results[HIGH]).select(fails()).to_series()
        beyond = remaining & beyond.fill_null(value=False)
        if not beyond.any():
            break
        failed, remaining = failed | beyond, remaining & ~beyond
    return failed
