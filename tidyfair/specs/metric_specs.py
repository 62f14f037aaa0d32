"""Metrics as evaluation sees them: formulas and, where groups are compared, features and an aggregate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidyfair.errors import ArgumentError
from tidyfair.specs.aggregates import Aggregate
from tidyfair.specs.averages import (
    AVERAGES,
    BINARY,
    HAND_TILL,
    MACRO,
    MICRO,
    MULTICLASS,
    ONE_VS_REST,
    OVER_LABELS,
    Average,
)
from tidyfair.specs.formulas import Formula, Kind
from tidyfair.specs.groups import By, Policy


class MetricSpec(Protocol):
    """A metric, or a groupwise metric, as evaluation sees it."""

    @property
    def name(self) -> str:
        """The name in `.metric`."""
        ...

    @property
    def kind(self) -> Kind:
        """The columns that it reads: labels, scores or numbers."""
        ...

    @property
    def formulas(self) -> tuple[tuple[str, Formula], ...]:
        """Its formulas, keyed by metric name; subtracted ones come last."""
        ...

    def range_of(self, name: str) -> tuple[float, float]:
        """The range of the values of one of its metrics."""
        ...

    @property
    def subtracted(self) -> int:
        """The number of formulas whose disparity is subtracted from that of the others."""
        ...

    @property
    def several(self) -> bool:
        """True if it compares several metrics, of which one may be the worst."""
        ...

    @property
    def by(self) -> By | None:
        """The features whose groups are compared, or None."""
        ...

    @property
    def aggregate(self) -> Aggregate | None:
        """The reduction of the values of groups; None if groups are not compared."""
        ...

    @property
    def policy(self) -> Policy:
        """The groups that are compared."""
        ...

    @property
    def label_by_label(self) -> bool:
        """True if more than two labels are by default compared one against the rest."""
        ...

    @property
    def of_distances(self) -> bool:
        """True if the values of groups are distances from other groups, to which chance only adds."""
        ...

    @property
    def of_all_rows(self) -> tuple[MetricSpec, ...]:
        """Its metrics without a comparison of groups."""
        ...

    @property
    def constant_averages(self) -> tuple[str, ...]:
        """The averages over labels that do not depend on the data."""
        ...


def formulas_of(*specs: MetricSpec) -> list[Formula]:
    """The formulas of some specs, without the names of their metrics."""
    return [formula for spec in specs for _, formula in spec.formulas]


def named_formulas(specs: Iterable[MetricSpec]) -> list[tuple[str, Formula]]:
    """The formulas of some specs, with the names of their metrics."""
    return [named for spec in specs for named in spec.formulas]


def compared_columns(specs: Iterable[MetricSpec]) -> list[str]:
    """The distinct columns of the user's frame whose groups are compared."""
    columns: dict[str, None] = {}
    for spec in specs:
        for column in spec.by.columns if spec.by else ():
            columns |= dict.fromkeys(column.roots)
    return list(columns)


def average_of(spec: MetricSpec, formula: Formula, requested: str | None, *, one_event: bool) -> Average:
    """The average over labels by which one of its formulas is evaluated: of one event, of each label, or of all."""
    if formula.only_average is not None:
        return formula.only_average
    if one_event:
        return BINARY
    if spec.by is not None and (requested == ONE_VS_REST.name or (requested is None and spec.label_by_label)):
        return ONE_VS_REST
    if formula.average not in (None, HAND_TILL.name):
        return AVERAGES[formula.average]  # it is an average of its own
    if requested == MICRO.name and formula.is_of_rows:
        msg = f'{spec.name} is not a sum over labels, so it has no micro average; use estimator="macro".'
        raise ArgumentError(msg)
    if formula.over_levels:
        return MULTICLASS
    name = requested if requested in OVER_LABELS else formula.average
    return AVERAGES[name or MACRO.name]
