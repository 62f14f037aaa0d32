"""Bins of a numeric column: groups with names and an order, at edges that are given or are quantiles of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import cast

import polars as pl

from tidyfair.errors import ArgumentError, in_short, listed
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, is_unicode, whole
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["Bins", "bins"]

_MOST = 1_000


@dataclass(frozen=True)
class Bins:
    """Groups of a numeric column; made by `bins` and `quantile_groups`."""

    column: str
    name: str
    """The name of the feature in results."""
    labels: tuple[str, ...]
    """The names of the groups, in order."""
    edges: tuple[float, ...] | None
    """The values at which a group begins; None for the quantiles of all rows, which are known once they are read."""

    @property
    def shares(self) -> list[float]:
        """The shares of rows below each edge, if edges are quantiles."""
        return [number / len(self.labels) for number in range(1, len(self.labels))]

    @property
    def expr(self) -> pl.Expr:
        """The group of each row, as an Enum in the order of the groups; null where the number is null."""
        value, levels = pl.col(self.column), pl.Enum(self.labels)
        edges = [value.quantile(share, "linear") for share in self.shares] if self.edges is None else self.edges
        group = pl.when(value.is_null()).then(pl.lit(None, levels))
        for label, edge in zip(self.labels, edges, strict=False):
            group = group.when(value < edge).then(pl.lit(label, levels))
        return group.otherwise(pl.lit(self.labels[-1], levels)).alias(self.name)

    def __repr__(self) -> str:
        how = f"{len(self.labels)}" if self.edges is None else f"{list(self.edges)}"
        return visible(f"{'quantile_groups' if self.edges is None else 'bins'}({self.column!r}, {how})")


@refuse_unknown_settings
def bins(column: str, edges: Sequence[float], *, labels: Sequence[str] | None = None, name: str | None = None) -> Bins:
    """Groups of a column of numbers, for `by=` and `group_by=`: below the first edge, between edges, and above.

    Args:
        column: Name of the numeric column.
        edges: The numbers at which a new group begins, ascending. A group has its lower edge and not its upper one, so
            that a value at an edge is in the group above.
        labels: Names of the groups, one more than edges; by default such as `25 to under 40`.
        name: Name of the feature in results; by default the column with the word `group`.

    Null and NaN are the unknown group. In databases the engine itself puts rows into groups.

    >>> bins("age", [25, 40, 65]).labels
    ('under 25', '25 to under 40', '40 to under 65', '65 and over')
    """
    column, name = _names("bins", column, name)
    values: list[object] = list(edges) if is_list(edges) else []
    if not values or not all(isinstance(value, Real) and math.isfinite(value) for value in values):
        msg = f"bins(): `edges` is a list of numbers, such as [25, 40, 65], not {in_short(edges)}."
        raise ArgumentError(msg)
    numbers = [float(value) for value in cast("list[float]", values)]
    if numbers != sorted(set(numbers)) or len(numbers) > _MOST:
        msg = f"bins(): `edges` are at most {_MOST:,} numbers in ascending order, each once, not {listed(values)}."
        raise ArgumentError(msg)
    if labels is None:
        texts = [str(int(number)) if number.is_integer() else repr(number) for number in numbers]
        between = [f"{low} to under {high}" for low, high in pairwise(texts)]
        names = [f"under {texts[0]}", *between, f"{texts[-1]} and over"]
    else:
        names = list(labels) if is_list(labels) else []
        if len({*names}) != len(numbers) + 1 or not all(
            isinstance(label, str) and is_unicode(label) for label in names
        ):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = (
                f"bins(): `labels` are {len(numbers) + 1} different texts, one for each group, not {in_short(labels)}."
            )
            raise ArgumentError(msg)
    return Bins(column, name, tuple(names), tuple(numbers))


def quantile_bins(column: str, groups: int, name: str | None) -> Bins:
    """Groups of as many rows, whose edges are not known yet."""
    column, name = _names("quantile_groups", column, name)
    groups = whole("groups", groups, 2, _MOST, of="quantile_groups()")
    ends = {1: " (lowest)", groups: " (highest)"}
    labels = tuple(f"{number} of {groups}{ends.get(number, '')}" for number in range(1, groups + 1))
    return Bins(column, name, labels, None)


def _names(function: str, column: object, name: object) -> tuple[str, str]:
    """The name of the column and that of the feature, checked."""
    for role, value in (("column", column), ("name", name)):
        is_text = isinstance(value, str) and is_unicode(value) and not value.startswith("\0")
        if not is_text and (role == "column" or value is not None):
            msg = f"{function}(): `{role}` is the name of a column, not {in_short(value)}; name an expression first."
            raise ArgumentError(msg)
    return str(column), f"{column} group" if name is None else str(name)
