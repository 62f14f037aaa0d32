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
_LOW, _HIGH = "\0low", "\0high"
"""The ends of the acceptable interval; null where there is none."""


def with_verdicts(
    results: pl.DataFrame, limits: Sequence[tuple[str, float]], signed: pl.Expr | pl.Series, is_complete: pl.Expr, *,
    at_limit: bool = False, may_fail: pl.Series | None = None,
    stricter: Callable[[float], pl.DataFrame] | None = None, error: float = 0.0,
) -> pl.DataFrame:  # fmt: skip
    """Results with limits and verdicts: passes one by one, failures too or, if there are stricter limits, after Holm.

    Args:
        results: Results with intervals.
        limits: The limit of each, and its good side.
        signed: Those that may have either sign, so that there are two ends of what is acceptable.
        is_complete: Those that leave out nothing that holds a pass back.
        at_limit: Whether an interval that ends at the limit itself is acceptable.
        may_fail: A mask of those that can fail; by default all.
        stricter: Gives the same results with one-sided limits of an error rate.
        error: The error rate of all failures together.
    """
    limit = pl.Series(".limit", [limit for _, limit in limits], dtype=pl.Float64)
    below = pl.Series([side == "below" for side, _ in limits], dtype=pl.Boolean)
    results = results.with_columns(
        limit,
        pl.when(~below).then(limit).when(signed).then(-limit).alias(_LOW),
        pl.when(below).then(limit).when(signed).then(1 / limit).alias(_HIGH),
    )
    may_fail = pl.Series([True]).new_from_index(0, len(results)) if may_fail is None else may_fail
    failed = _failed_after_holm(results, may_fail, stricter, error) if stricter else _fails(results) & may_fail
    low, high, lower, upper = (pl.col(name) for name in (_LOW, _HIGH, ".lower", ".upper"))
    is_above = (lower >= low) if at_limit else (lower > low)
    is_below = (upper <= high) if at_limit else (upper < high)
    passed = (low.is_null() | is_above) & (high.is_null() | is_below) & is_complete
    verdict = pl.when(failed).then(pl.lit(FAIL)).when(passed).then(pl.lit(PASS)).otherwise(pl.lit(UNSURE))
    return results.with_columns(verdict.alias(".verdict")).drop(_LOW, _HIGH)


def compares_all(outside: Outside, left_out: pl.Expr = _LEFT_OUT) -> pl.Expr:
    """The results that leave no groups out, or none but those outside of the policy of their metric."""
    if outside == "state":
        left_out = left_out.list.set_difference(".groups_outside")
    return left_out.list.len() == 0


def _fails(results: pl.DataFrame) -> pl.Series:
    """A mask of the results whose interval is not acceptable in any part."""
    is_beyond = (pl.col(".lower") > pl.col(_HIGH)) | (pl.col(".upper") < pl.col(_LOW))
    return results.select(is_beyond.fill_null(value=False)).to_series()


def _failed_after_holm(
    results: pl.DataFrame, may_fail: pl.Series, stricter: Callable[[float], pl.DataFrame], error: float
) -> pl.Series:
    """A mask of the results that fail, after Holm (1979)."""
    failed, remaining = may_fail & False, may_fail
    while remaining.any():
        # the next one is judged by as many as remain
        limits = stricter(error / int(remaining.sum()))
        beyond = remaining & _fails(limits.with_columns(results[_LOW], results[_HIGH]))
        if not beyond.any():
            break
        failed, remaining = failed | beyond, remaining & ~beyond
    return failed
