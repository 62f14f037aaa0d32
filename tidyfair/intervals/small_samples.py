"""Rules for small samples: parts of rows that few rows do not show, so that limits hold for what has not been seen.

What is added is a constant, so that large groups do not feel it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidyfair.intervals.proportions import on_logits

if TYPE_CHECKING:
    from tidyfair.intervals.proportions import Limits
    from tidyfair.specs.segments import Floats

__all__: list[str] = []

_HALF_A_ROW = 0.5


def area_limits(value: Floats, error: Floats, events: Floats, others: Floats, z: float | Floats) -> Limits:
    """Limits of areas under a curve on the scale of logits, at so many of DeLong's errors.

    Few rows do not show the one that no score predicts, so that only the limit towards 1/2 is too near: it counts half
    an event and half a non-event more that a score says nothing of.
    """
    import numpy as np

    away = value - 0.5
    # of a class of a single row it is only known how far an area may vary at most (Birnbaum and Klose, 1957)
    error = np.where(np.isnan(error), np.sqrt(value * (1 - value) / np.minimum(events, others)), error)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = 0.5 + away * (events / (events + _HALF_A_ROW) + others / (others + _HALF_A_ROW) - 1)
        added = _HALF_A_ROW * away**2 * (1 / (events + _HALF_A_ROW) ** 2 + 1 / (others + _HALF_A_ROW) ** 2)
    inside = (value > 0) & (value < 1) & (error > 0)
    low, high = (np.where(inside, end, value) for end in on_logits(value, error, z))
    low_unseen, high_unseen = on_logits(centre, np.sqrt(error**2 + added), z)
    lower, upper = np.where(value > 0.5, low_unseen, low), np.where(value < 0.5, high_unseen, high)
    return np.minimum(lower, value), np.maximum(upper, value)
