"""References that groups are compared with: a group, by name or by its value, all rows, or all other groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.evaluation.evaluated import evaluate_specs
from tidyfair.evaluation.statistics import GROUP_CELL
from tidyfair.intervals.dispatch import families
from tidyfair.specs.aggregates import CONTEXTS
from tidyfair.specs.contrasts import difference
from tidyfair.specs.groups import SIDES, By, OneAgainstRest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tidyfair.evaluation.evaluated import Evaluated
    from tidyfair.intervals.pairs import Family, Scale
    from tidyfair.intervals.proportions import Limits
    from tidyfair.intervals.quantities import Quantities
    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.specs.options import Options

    Floats: TypeAlias = np.ndarray[Any, Any]

__all__: list[str] = []

BY_VALUE = ("best", "highest", "lowest")
"""References that are the group with such a value."""
REFERENCES = (*BY_VALUE, "majority", *CONTEXTS)
IN_WORDS = (
    '"best", "highest" or "lowest" (the group with that value), "majority" (the largest group), "overall" (all rows) '
    'or "rest" (all others)'
)
_NEAR = 1e-9


def reference_index(family: Family, evaluated: Evaluated, to: object) -> int | None:
    """The index of the group that others are compared with among those of a family; None if it has no value."""
    rows, values = family.rows, family.quantities.value
    if not len(values):
        return None
    spec: Any = evaluated.specs[family.spec]
    if to == "majority":
        return int(rows["size"].arg_max() or 0)
    if to in BY_VALUE:
        return _by_value(values, str(to), spec.metrics[0].direction)
    named = evaluated.group_cells.find(spec.by, to, spec.metrics[0].name, IN_WORDS)
    index = rows[GROUP_CELL].is_in(named).arg_true()
    return int(index[0]) if len(index) else None


def _by_value(values: Floats, which: str, direction: str) -> int:
    """The index of the highest, the lowest or the best value."""
    import numpy as np

    if which == "best":
        ideal = {"zero": 0.0, "one": 1.0}
        if direction in ideal:
            return int(np.argmin(abs(values - ideal[direction])))
        which = "highest" if direction == "maximize" else "lowest"
    return int(np.argmax(values) if which == "highest" else np.argmin(values))


def check_best(metric: GroupwiseMetric) -> None:
    """Refuse the best of values of which neither side is good."""
    (base,) = metric.metrics
    if base.direction == "zero" and not {"truth", "estimate"} <= base.definition.reads:
        msg = (
            f"{base.name} is neither good nor bad, so that no group is the best: say what others are compared with, "
            'as `to="highest"`, `to="lowest"`, `to="majority"` or a group.'
        )
        raise ArgumentError(msg)


@dataclass(frozen=True, eq=False)
class AgainstRest:
    """A group and all others together, as the two quantities of a family."""

    quantities: Quantities
    value: float
    """The value of the others."""
    numerator: float
    denominator: float
    share: float
    """The share of the group in the weight of both."""


def against_rest(
    evaluated: Evaluated, options: Options, specs: Sequence[int]
) -> dict[tuple[int, int, int, int], AgainstRest]:
    """Each group beside all others, by spec, outer group, label and group cell, for some specs."""
    members: list[Any] = []
    origin: list[tuple[int, pl.DataFrame]] = []
    for number in specs:
        spec: Any = evaluated.specs[number]
        own = evaluated.rows.filter((pl.col("spec") == number) & ~pl.col("excluded"))
        first, _ = evaluated.group_cells.spans[spec.by]
        keys = evaluated.group_cells.keys[spec.by]
        cells = own[GROUP_CELL].unique(maintain_order=True)
        distinct = keys[cells - first].unique(maintain_order=True)
        numbered = keys.with_row_index("cell", offset=first)
        for index in range(len(distinct)):
            sides = OneAgainstRest(group_columns=spec.by.columns, keys=distinct, sides=_sides(index, len(distinct)))
            by = By(spec.by.columns, sides)
            members.append(replace(spec, by=by, aggregate=difference(), min_n=0, min_share=0.0))
            same = numbered.join(distinct[index], on=distinct.columns, how="semi", nulls_equal=True)
            origin.append((number, same))
    if not members:
        return {}
    tally = evaluated.evaluator.tally
    pairs: dict[tuple[int, int, int, int], AgainstRest] = {}
    for beside in evaluate_specs(tally, members, options):
        for family in families(tally, beside, options):
            if len(family.quantities) == 2:
                number, cells = origin[family.spec]
                outer = evaluated.group_cells.outer
                own_cells = [cell for cell in cells["cell"].to_list() if outer[cell] == family.outer]
                pairs[number, family.outer, family.level, own_cells[0]] = _beside(family)
    return pairs


def _beside(family: Family) -> AgainstRest:
    """A group and all others from the family of both."""
    rest, weight = family.rows.row(1, named=True), family.rows["weight"]
    hits = rest["estimate"] * rest["counted_rows"]
    return AgainstRest(family.quantities, rest["estimate"], hits, rest["counted_rows"], weight[0] / weight.sum())


def _sides(index: int, groups: int) -> pl.Series:
    """The side of each group, of which one is against the others."""
    return pl.Series(["privileged" if group == index else "unprivileged" for group in range(groups)], dtype=SIDES)


def share_of_group(value: Floats, rest: Floats, overall: Floats, by_rows: Floats) -> Floats:
    """The share of groups in the value of all rows, which lies between theirs and that of the rest."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        share = (overall - rest) / (value - rest)
    # equal values say nothing, nor does a value that is no mean of the two
    return np.where((share >= 0) & (share <= 1), share, by_rows)


def limits_to_overall(
    limits: Limits, value: Floats, rest: Floats, overall: Floats, share: Floats, scale: Scale
) -> Limits:
    """Limits of comparisons with all rows together, from those of comparisons with all other groups.

    All rows are a mixture of the group, which has a share of them, and of the rest: a rate or a mean differs from
    theirs by as much less than from that of the rest. Of other metrics this holds for small changes, about the value.
    """
    import numpy as np

    lower, upper = limits
    others = 1 - share
    if scale == "difference":
        to_rest, to_overall = value - rest, value - overall
        return to_overall - others * (to_rest - lower), to_overall + others * (upper - to_rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_mixture = abs(share * value + others * rest - overall) <= _NEAR * np.maximum(abs(overall), 1)
        if scale == "ratio" and is_mixture.all():
            return tuple(np.where(np.isinf(end), 1 / share, end / (share * end + others)) for end in limits)  # pyright: ignore[reportReturnType] - two of them
        to_rest, to_overall = np.log(value / rest), np.log(value / overall)
        ends = to_overall - others * (to_rest - np.log(lower)), to_overall + others * (np.log(upper) - to_rest)
        return np.exp(ends[0]), np.exp(ends[1])
