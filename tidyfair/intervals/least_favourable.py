"""The standard errors that the upper limit of a range needs, which are fewer than those of a pair.

The upper limit of each pair of groups holds by itself, so that the largest of them holds too often: chance takes other
pairs farther apart, and each of them counts. A range is surely below some number only if the limits of all pairs are.
That happens most often by chance where two groups are so far apart in truth and all others lie between them, where they
add as little as they can: the normal density is log-concave, and what is symmetric about the middle is most likely
there (Prékopa, 1973). Of groups of different size the two with the largest errors are those two. The limits of pairs at
the standard errors at which this happens as rarely as the limit may be wrong are the upper limit of the range.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

_NODES = 48
_FARTHEST = 6.5
"""The standard errors beyond which nothing is summed."""
_STEPS = 7
_SMALLEST = 0.25
"""Groups whose error is a smaller part of the largest hardly move a range; it is on the safe side to leave them out."""
_LEAST = 1e-300
"""A positive number in place of a probability of 0."""


def errors_needed(error: Floats, upper_limit: Callable[[float], float], z: float) -> float:
    """The standard errors at which the largest upper limit of all pairs is that of the range; `z` at most.

    `error` has the standard errors of independent groups, `upper_limit` gives the largest limit of any pair at some
    standard errors, and `z` are those of a single pair.
    """
    import numpy as np

    if len(error) <= 2 or not (np.isfinite(error).all() and (error > 0).all() and math.isfinite(upper_limit(z))):
        return z
    wrong = math.erfc(z / math.sqrt(2)) / 2
    descending = -np.sort(-error)
    near = np.concatenate([descending[:2], descending[2:][descending[2:] > _SMALLEST * descending[0]]])
    if len(near) == 2:
        return z
    low, high = 0.0, z
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _all_below(near, upper_limit(middle), middle) > wrong:
            low = middle
        else:
            high = middle
    return high


def _all_below(error: Floats, limit: float, z: float) -> float:
    """The probability that all pairs are `z` standard errors below a limit if the first two groups are so far apart.

    The error of a pair is at least a weighted sum of those of its groups, and just that of the first two, so that each
    group has two bounds of its own. The probability is summed over the groups that may be the lowest, and where.
    """
    import numpy as np
    from scipy.special import ndtr

    of_pair = math.hypot(error[0], error[1])
    above, below = z * error[0] / of_pair * error, z * error[1] / of_pair * error
    # the middle of the first two where they are just so much nearer
    mean = np.full(len(error), -z * (error[0] ** 2 - error[1] ** 2) / (2 * of_pair))
    mean[0], mean[1] = limit / 2, -limit / 2
    lowest = mean - below
    start, end = (float((lowest + side * _FARTHEST * error).min()) for side in (-1, 1))
    point = np.linspace(start, end, _NODES)
    low = (point - lowest[:, None]) / error[:, None]
    high = (point + limit - (mean + above)[:, None]) / error[:, None]
    within = np.log(np.maximum(ndtr(high) - ndtr(low), _LEAST))
    density = np.exp(-(low**2) / 2) / (math.sqrt(2 * math.pi) * error[:, None])
    summed = (density * np.exp(within.sum(axis=0) - within)).sum() * (end - start) / (_NODES - 1)
    return min(float(summed), math.erfc(z / math.sqrt(2)) / 2)
