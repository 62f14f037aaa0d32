"""Limits of distances that are not of pairs, such as spreads and a user's own, from limits of all groups at once.

Chance only adds to a distance, and does so twice in replicates, which therefore do not show how small it may be. Its
lower limit is the least distance while every group stays within limits that hold for all groups together: values are
moved towards a common one, as far as these limits allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.evaluation.disparities import compare
from tidyfair.evaluation.results import frames_of
from tidyfair.evaluation.value_rows import ValueRows
from tidyfair.intervals.proportions import z_value
from tidyfair.specs.aggregates import CONTEXTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.intervals.quantities import Quantities
    from tidyfair.specs.metric_specs import MetricSpec

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

_STEPS = 65
"""The number of values that groups are moved towards."""


def has_bands(spec: MetricSpec) -> bool:
    """Check whether a metric is a distance of groups whose values are independent of each other."""
    if len(spec.formulas) > 1 or spec.aggregate is None or not spec.aggregate.is_distance:
        return False
    return all(formula.reads and not formula.compares for _, formula in spec.formulas)


def band_limits(evaluated: Evaluated, part: pl.DataFrame, family: Quantities, level: float) -> list[float] | None:
    """The nearest and the farthest that groups may be from equality; None where that is unknown.

    The first holds for all groups at once, the second for the group that takes them farthest.
    """
    import numpy as np

    low, high = family.limits(z_value(((1 + level) / 2) ** (1 / len(family))))
    number = int(part["spec"][0])
    spec = evaluated.specs[number]
    if spec.aggregate is None or not np.isfinite([low, high]).all():
        return None
    towards = np.linspace(float(high.min()), float(low.max()), _STEPS)[:, None]
    alone = np.eye(len(family), dtype=bool)
    moved = [np.where(alone, end, family.value) for end in family.limits(z_value(level))]
    values = np.concatenate([np.clip(towards, low, high), *moved])
    # the contexts of groups are moved towards the same value
    contexts = {
        name: np.concatenate([
            np.broadcast_to(towards, (_STEPS, len(family))),
            np.broadcast_to(part[name].to_numpy(), (2 * len(family), len(family))),
        ])
        for name in CONTEXTS if name in part.columns
    }  # fmt: skip
    moved_values = compared_values(evaluated, part, values, contexts)
    nearer, farther = (side.drop_nulls().sort() for side in (moved_values[:_STEPS], moved_values[_STEPS:]))
    if nearer.is_empty() or farther.is_empty():
        return None
    near, far = (-1, 0) if spec.aggregate.direction == "maximize" else (0, -1)
    return [nearer[near], farther[far]]


def compared_values(
    evaluated: Evaluated, part: pl.DataFrame, values: Floats, contexts: Mapping[str, Floats] | None = None
) -> pl.Series:
    """The values of a metric if the groups of some rows had other values, and other contexts; null if undefined.

    Each row of `values` has a value for each of the rows of `part`, which are those of one outer group.
    """
    import numpy as np

    number = int(part["spec"][0])
    spec = evaluated.specs[number]
    others = {"estimate": values, **(contexts or {})}
    tiled = part[np.tile(np.arange(len(part)), len(values))].with_columns(
        pl.Series("outer", np.repeat(np.arange(len(values), dtype=np.int32), len(part))),
        *(pl.Series(name, column.ravel()) for name, column in others.items()),
    )
    two_sided = [number] if spec.by and spec.by.sides else []
    aggregates = {} if spec.aggregate is None else {number: spec.aggregate}
    tidy = frames_of(evaluated)
    (compared,) = compare(ValueRows.of(tiled), aggregates, two_sided=two_sided, undefined_is_null=False, tidy=tidy)
    return pl.Series(compared.value, nan_to_null=True)
