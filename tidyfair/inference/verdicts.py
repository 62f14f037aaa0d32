"""Verdicts: estimates with limits against what is acceptable, and failures adjusted for their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

Side: TypeAlias = Literal["below", "above"]
"""The good side of a limit."""
Outside: TypeAlias = Literal["hold", "state"]
"""The effect of groups outside the policy of a metric: they hold a pass back, or are stated."""
PASS, FAIL, UNSURE = "pass", "fail", "not enough evidence"
LOW, HIGH = "\0low", "\0high"
"""The ends of the acceptable interval; null where there is none."""


def with_ends(results: pl.DataFrame, below: pl.Expr | pl.Series, signed: pl.Expr | pl.Series) -> pl.DataFrame:
    """Results with the ends of the acceptable interval, which has two where a value may have either sign."""
    limit = pl.col(".limit")
    return results.with_columns(
        pl.when(~below).then(limit).when(signed).then(-limit).alias(LOW),
        pl.when(below).then(limit).when(signed).then(1 / limit).alias(HIGH),
    )


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
