"""Verdicts: estimates with limits against what is acceptable, failures adjusted for their number, and unknown groups.

A pass needs one with people of unknown groups, too. They may be a group of their own; if they are too few to tell, they
may belong to any of the known groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any, Literal, TypeAlias

import polars as pl

from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.inference.unknown_groups import UNKNOWN_ROWS, WITH_UNKNOWN, has_unknown
from tidyfair.specs import CUTS, By, key_columns

Side: TypeAlias = Literal["below", "above"]
"""The good side of a limit."""
Outside: TypeAlias = Literal["hold", "state"]
"""The effect of groups outside the policy of a metric: they hold a pass back, or are stated."""
Key: TypeAlias = tuple[Any, ...]
"""The key of a verdict."""
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


def with_unknown_groups(
    verdicts: pl.DataFrame, counted: pl.DataFrame, outside: str, compared: Callable[[], pl.Series],
    pass_in_each: Callable[[set[Key]], set[Key]],
) -> pl.DataFrame:  # fmt: skip
    """Verdicts with the rows of unknown groups; a pass needs one with these rows, too, if groups outside hold it back.

    Args:
        verdicts: The verdicts on known groups.
        counted: The rows of unknown groups, of each.
        outside: The effect of groups outside the policy.
        compared: Gives the verdicts with unknown groups compared.
        pass_in_each: Gives those of some verdicts, by key, that pass with unknown rows in each known group.
    """
    passed = (verdicts[".verdict"] == PASS) & (counted[UNKNOWN_ROWS] > 0).fill_null(value=False) & (outside == "hold")
    others = verdicts[".verdict"]
    if passed.any():
        others, keys = compared(), keys_of_verdicts(verdicts)
        passing = pass_in_each(set(compress(keys, passed & (others == UNSURE))))
        others = others.set(pl.Series([key in passing for key in keys], dtype=pl.Boolean), PASS)
    turned = pl.when(passed & (others != PASS)).then(pl.lit(UNSURE)).otherwise(".verdict")
    verdict = turned.alias(".verdict")
    return verdicts.select(pl.exclude(".verdict"), *counted, pl.when(passed).then(others).alias(WITH_UNKNOWN), verdict)


def keys_of_verdicts(verdicts: pl.DataFrame) -> list[Key]:
    """The keys of verdicts: outer groups, cuts, and the metric and its feature."""
    cuts = [name for name in CUTS if name in verdicts.columns]
    return verdicts.select(*key_columns(verdicts), *cuts, ".metric", ".by").rows()


def pass_in_each_group(
    metrics: Iterable[Metric | GroupwiseMetric], verdicts_of: Callable[[By], Iterable[pl.DataFrame]],
    undecided: set[Key],
) -> set[Key]:  # fmt: skip
    """The keys of undecided verdicts that pass whichever known group the rows of unknown groups belong to.

    Rows that keep no gate from passing, whichever known group they belong to, are too few to matter. `verdicts_of`
    gives the verdicts with these rows in each of the known groups of a feature; nothing if these are many.
    """
    features: dict[By, set[Key]] = {}
    for metric in metrics:
        if isinstance(metric, GroupwiseMetric) and has_unknown(metric):
            names = (metric.name, *(base.name for base in metric.metrics))
            features.setdefault(metric.by, set()).update((name, metric.by.text) for name in names)
    passed: set[Key] = set()
    for by, names in features.items():
        keys_of_feature = {key for key in undecided if key[-2:] in names}
        in_each_group = list(verdicts_of(by)) if keys_of_feature else []
        if in_each_group:
            failing = [verdicts.filter(pl.col(".verdict") != PASS) for verdicts in in_each_group]
            passed |= keys_of_feature.difference(*map(keys_of_verdicts, failing))
    return passed
