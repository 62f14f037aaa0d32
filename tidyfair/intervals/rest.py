"""Limits of distances between groups and all others, or all rows, where values are means over rows.

The others are independent of the group, so that the two have the limits of a pair. All rows are the group and the
others, so that a group is as far from them as from the others, times the share that these have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tidyfair.intervals.quantities import Quantities, Shares

if TYPE_CHECKING:
    import numpy as np

    from tidyfair.intervals.proportions import Limits

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class WithRest:
    """A quantity of several groups that is a mean over their rows, beside that of all other groups."""

    groups: Quantities
    share: Floats
    """The shares of the weight of all rows that groups have."""

    @classmethod
    def of(cls, groups: Quantities, weight: Floats) -> WithRest:
        """The same from the weights of the rows of the groups."""
        return cls(groups, weight / weight.sum())

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def quantities(self) -> Quantities:
        """The quantities of all groups, and then those of the others of each."""
        import numpy as np

        if not isinstance(self.groups, Shares):
            return _GroupsAndRests(self.groups, self)
        with np.errstate(divide="ignore", invalid="ignore"):
            # what a row has of the weight of its group goes with 1 / rows
            square = np.nan_to_num(self.share**2 / self.groups.rows)
            rows = (1 - self.share) ** 2 / (square.sum() - square)
        return Shares(np.append(self.groups.value, self.mean(self.groups.value)), np.append(self.groups.rows, rows))

    def mean(self, values: Floats) -> Floats:
        """The mean of all other groups, for each group: groups are the rows of the array."""
        share = self.share.astype(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
        return ((share * values).sum(axis=0) - share * values) / (1 - share)

    def variance(self, variance: Floats) -> Floats:
        """The variance of that mean from those of groups."""
        square = (self.share**2).astype(variance.dtype).reshape(-1, *[1] * (variance.ndim - 1))
        others = 1 - self.share.astype(variance.dtype).reshape(-1, *[1] * (variance.ndim - 1))
        return ((square * variance).sum(axis=0) - square * variance) / others**2

    def largest_deviations(self, times: int, random: np.random.Generator, *, logarithm: bool) -> Floats:
        """The largest distances of any group and its others by chance alone, in standard errors."""
        import numpy as np

        order = self.groups.order
        ordered = WithRest(self.groups.at(order), self.share[order])
        away, variance = ordered.groups.deviates(times, random, logarithm=logarithm)
        with np.errstate(divide="ignore", invalid="ignore"):
            if logarithm:
                value = np.exp(ordered.groups.logarithms(1.0)[0]).astype(away.dtype)[:, None]
                middle = ordered.mean(value)
                of_rest = np.log(ordered.mean(value * np.exp(away)) / middle)
                of_variance = ordered.variance(variance * value**2) / middle**2
            else:
                of_rest, of_variance = ordered.mean(away), ordered.variance(variance)
            return np.fmax.reduce(np.abs(away - of_rest) / np.sqrt(variance + of_variance), axis=0)

    def to_overall(self, distance: Floats, *, logarithm: bool) -> Floats:
        """The distances to all rows from those to the others; they are of logarithms if `logarithm`."""
        import numpy as np

        if not logarithm:
            return (1 - self.share) * distance
        with np.errstate(over="ignore", divide="ignore"):
            return -np.log(self.share + (1 - self.share) * np.exp(-distance))


class _GroupsAndRests(Quantities):
    """Means of groups and of all others, which have limits from those of the groups (MOVER: Donner and Zou, 2012)."""

    difference_method: ClassVar[str] = "mover"
    ratio_method: ClassVar[str] = "mover"

    def __init__(self, groups: Quantities, rest: WithRest) -> None:
        import numpy as np

        self._groups, self._rest = groups, rest
        self.value = np.append(groups.value, rest.mean(groups.value))
        self.error = np.append(groups.widest, np.sqrt(rest.variance(groups.widest**2)))

    @property
    def methods(self) -> list[str]:
        """The names of the methods of `limits`."""
        return self._groups.methods + ["mover"] * len(self._groups)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends between which limits lie."""
        return self._groups.bounds

    def limits(self, z: float | Floats) -> Limits:
        """Limits of all quantities."""
        import numpy as np

        low, high = self._groups.limits(z)
        value, mean = self._groups.value, self.value[len(self._groups) :]
        below, above = (np.sqrt(self._rest.variance(side**2)) for side in (value - low, high - value))
        return np.append(low, mean - below), np.append(high, mean + above)
