"""Generalized entropy, an index of inequality, from sums that merge."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.specs.formulas import Number

_NEAR = 1e-8
"""Differences lose all digits with an `alpha` this close to 0 or 1."""
_LONGEST = 200


def check_alpha(alpha: object) -> float:
    """The parameter of a generalized entropy as a checked float; values next to 0 and 1 stand for these limits."""
    try:
        number = math.nan if isinstance(alpha, bool) or not isinstance(alpha, Real) else float(alpha)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        msg = "`alpha` is a finite number (2 and 1 are usual, 1 is Theil's index), not "
        raise ArgumentError(f"{msg}{alpha!r}"[:_LONGEST] + ".")
    for limit in (0.0, 1.0):
        if abs(number - limit) < _NEAR:
            return limit
    return number


def powered(benefit: pl.Expr, alpha: float) -> pl.Expr:
    """The term of a benefit in generalized entropy; 0 without a benefit."""
    alpha = check_alpha(alpha)
    terms: dict[float, pl.Expr] = {0: benefit.log(), 1: benefit * benefit.log()}
    return pl.when(benefit > 0).then(terms.get(alpha, benefit**alpha)).otherwise(0.0)


def entropy_index(alpha: float, count: Number, total: Number, power: Number, without: Number) -> Number:
    """Generalized entropy (Shorrocks, 1980) from sums: of rows, benefits, `powered` benefits, and rows with benefit 0.

    Null where the mean is 0, infinite where a row has benefit 0 and `alpha` is 0 or less.
    """
    alpha = check_alpha(alpha)
    mean = total / count
    if alpha == 1:
        index = power / total - np.log(mean)
    elif alpha == 0:
        index = np.log(mean) - power / count
    else:
        index = (power / count / mean**alpha - 1) / (alpha * (alpha - 1))
    # sums of equal benefits differ by rounding error only
    index = index.clip(0)
    if alpha <= 0:
        index = np.where(without > 0, math.inf, index)
    return np.where(total > 0, index, math.nan)


def entropy_within(
    alpha: float, count: Number, total: Number, power: Number, without: Number, mean_of_all: Number
) -> Number:
    """Contribution of a group to the overall inequality, per row: its index times (mean / overall mean)^alpha.

    A group with no benefits contributes 0 where that is the limit.
    """
    alpha = check_alpha(alpha)
    mean = total / count
    if alpha == 1:
        own = np.where(total > 0, mean * np.log(mean), 0.0)
        within = (power / count - own) / mean_of_all
    elif alpha == 0:
        within = np.log(mean) - power / count
    else:
        within = (power / count - mean**alpha) / (alpha * (alpha - 1)) / mean_of_all**alpha
    within = within.clip(0)
    if alpha <= 0:
        within = np.where(without > 0, math.inf, within)
    return np.where((mean_of_all > 0) & (count > 0), within, math.nan)
