"""Rules for small samples: parts of rows that few rows do not show, so that limits hold for what has not been seen.

What is added is a constant, so that large groups do not feel it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tidyfair.specs.segments import Floats

_HALF_A_ROW = 0.5
_FEW_ERRORS = 3
_FARTHEST = 2.5
"""Limits are so many times as far as those without skewness at most."""
_ROUNDED = 1e-8


def area_errors(value: Floats, variance: Floats, events: Floats, others: Floats) -> Floats:
    """The standard errors of areas; the largest possible where rows do not show any (Birnbaum and Klose, 1957).

    That is so of a class of a single row, and of scores that are all tied: others need not be.
    """
    most = value * (1 - value) / np.minimum(events, others)
    return np.sqrt(np.where(np.isfinite(variance) & (variance > 0), variance, most))


def area_sides(
    value: Floats, error: Floats, events: Floats, others: Floats
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Where the limits of areas under a ROC curve are measured from, and their errors: below, then above.

    Few rows do not show the one that no score predicts, so that the limit towards 1/2 alone is too near: it counts half
    an event and half a non-event more that a score says nothing of.
    """
    away = value - 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = 0.5 + away * (events / (events + _HALF_A_ROW) + others / (others + _HALF_A_ROW) - 1)
        added = _HALF_A_ROW * away**2 * (1 / (events + _HALF_A_ROW) ** 2 + 1 / (others + _HALF_A_ROW) ** 2)
    unseen, is_above = np.sqrt(error**2 + added), value > 0.5
    below = np.where(is_above, centre, value), np.where(is_above, unseen, error)
    return below, (np.where(is_above, value, centre), np.where(is_above, error, unseen))


def counts_with_few_errors(counts: Sequence[Floats], z: float | Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts of tp, fn, fp and tn in which three errors or less are as rare as they may be; nan for more errors.

    So many errors, or more, then have the probability of a limit by Poisson's distribution, as those of a rate have
    (Brown, Cai and DasGupta, 2001).
    """
    from scipy.special import erfc, gammaincinv

    tp, fn, fp, tn = counts
    errors = fn + fp
    few = (errors > 0) & (errors <= _FEW_ERRORS) & (errors < (tp + errors + tn) / 2)
    share = gammaincinv(np.where(few, errors, 1.0), erfc(z / math.sqrt(2))) / np.where(few, errors, 1.0)
    share = np.where(few, np.minimum(share, 1), np.nan)
    return tp + fn * (1 - share), fn * share, fp * share, tn + fp * (1 - share)


def outer_factor(factor: Floats, skew: Floats) -> Floats:
    """The standard errors of a limit above values with some skewness (Hall, 1992), or those without if there are more.

    The skewness of samples is nearer to 0 than that of values, so that limits are no nearer for it; they are at most
    so many times as far.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # the root of t + skew t² / 3 + skew² t³ / 27 + skew / 6 on the other side, where it is the limit's
        unskewed = -3 / skew * (np.cbrt(1 - skew * (factor + skew / 6)) - 1)
    return np.where(np.abs(skew) < _ROUNDED, factor, np.fmin(np.fmax(factor, unskewed), _FARTHEST * factor))
