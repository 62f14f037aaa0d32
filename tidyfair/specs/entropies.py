"""Generalized entropy: how unequally benefits are spread, from sums that merge."""

from __future__ import annotations

import math
from numbers import Real

import polars as pl

from tidyfair.errors import ArgumentError

__all__: list[str] = []

_NEAR = 1e-8
"""An `alpha` so close to 0 or 1 leaves no digits of a difference."""
_LONGEST = 200


def check_alpha(alpha: object) -> float:
    """The parameter of a generalized entropy as a float, or an error; next to 0 and 1 their limits are meant."""
    try:
        number = math.nan if isinstance(alpha, bool) or not isinstance(alpha, Real) else float(alpha)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        msg = "`alpha` is a finite number (2 and 1 are usual, 1 is Theil's index), not "
        raise ArgumentError(f"{msg}{alpha!r}"[:_LONGEST] + ".")
    return next((limit for limit in (0.0, 1.0) if abs(number - limit) < _NEAR), number)


def powered(benefit: pl.Expr, alpha: float) -> pl.Expr:
    """What generalized entropy sums of each benefit; nothing where there is none."""
    alpha = check_alpha(alpha)
    terms: dict[float, pl.Expr] = {0: benefit.log(), 1: benefit * benefit.log()}
    return pl.when(benefit > 0).then(terms.get(alpha, benefit**alpha)).otherwise(0.0)


def entropy_index(alpha: float, count: pl.Expr, total: pl.Expr, power: pl.Expr, without: pl.Expr) -> pl.Expr:
    """Generalized entropy (Shorrocks, 1980) from sums: of ones, of benefits, `powered`, and of those without any.

    Null where the mean is 0, infinite where somebody has nothing and `alpha` is 0 or less.
    """
    alpha = check_alpha(alpha)
    mean = total / count
    if alpha == 1:
        index = power / total - mean.log()
    elif alpha == 0:
        index = mean.log() - power / count
    else:
        index = (power / count / mean**alpha - 1) / (alpha * (alpha - 1))
    # sums of equal benefits differ from each other by dust only
    index = index.clip(0)
    index = pl.when(without > 0).then(math.inf).otherwise(index) if alpha <= 0 else index
    return pl.when(total > 0).then(index)


def entropy_within(
    alpha: float, count: pl.Expr, total: pl.Expr, power: pl.Expr, without: pl.Expr, mean_of_all: pl.Expr
) -> pl.Expr:
    """What the inequality of a group adds to that of all for each row: its index times (mean / mean of all)^alpha.

    Written so that a group in which nobody has anything adds nothing where that is the limit.
    """
    alpha = check_alpha(alpha)
    mean = total / count
    if alpha == 1:
        own = pl.when(total > 0).then(mean * mean.log()).otherwise(0.0)
        within = (power / count - own) / mean_of_all
    elif alpha == 0:
        within = mean.log() - power / count
    else:
        within = (power / count - mean**alpha) / (alpha * (alpha - 1)) / mean_of_all**alpha
    within = within.clip(0)
    within = pl.when(without > 0).then(math.inf).otherwise(within) if alpha <= 0 else within
    return pl.when((mean_of_all > 0) & (count > 0)).then(within)
