"""Checks of the design of a survey: of strata, clusters and finite populations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidyfair.errors import ColumnError, listed
from tidyfair.specs.columns import Column
from tidyfair.specs.survey_designs import ROLE, SurveyDesign
from tidyfair.tallies.tally import Tally

SHOWN = 5
"""The most strata or clusters that a message names."""


def check_design(tally: Tally) -> None:
    """Refuse strata, clusters and populations that are missing, or contradict each other."""
    design = tally.design
    if not isinstance(design, SurveyDesign):
        return
    cells = tally.cells
    for column, name in zip(design.keys, tally.names(design.keys), strict=True):
        if cells[name].null_count():
            msg = f"`{ROLE}`: some values of {column.name!r} are missing; fill or filter these rows first."
            raise ColumnError(msg)
    if design.clusters is not None and design.strata and not design.nested:
        _check_nested(tally, design.strata, design.clusters)
    if design.fpc is not None:
        _check_populations(tally, design, design.fpc)


def _check_nested(tally: Tally, strata: Sequence[Column], clusters: Column) -> None:
    """Refuse clusters of one number in several strata, which may be one cluster or several."""
    (cluster,) = tally.names([clusters])
    own = list(dict.fromkeys([cluster, *tally.names(strata)]))
    pairs = tally.cells.select(own).unique(maintain_order=True)
    repeated = pairs.filter(pairs[cluster].is_duplicated())[cluster].unique().sort()
    if len(repeated):
        msg = (
            f"`{ROLE}`: the clusters {listed(repeated, shown=SHOWN)} of {clusters.name!r} are in several strata. If "
            "cluster numbers start again in each stratum, write `survey_design(…, nested=True)`; otherwise correct the "
            "data."
        )
        raise ColumnError(msg)


def _check_populations(tally: Tally, design: SurveyDesign, fpc: Column) -> None:
    """Refuse finite populations that are no numbers, or differ within a stratum."""
    (name,) = tally.names([fpc])
    column = tally.cells[name]
    if not column.dtype.is_numeric():
        msg = f"`{ROLE}`: the population {fpc.name!r} is {column.dtype}; it is a number of PSUs, or a share."
        raise ColumnError(msg)
    if not (column.is_finite() & (column > 0)).all():
        msg = (
            f"`{ROLE}`: some values of the population {fpc.name!r} are not above 0; it is a number of PSUs, or a share."
        )
        raise ColumnError(msg)
    strata = tally.names(design.strata)
    distinct = tally.cells.select(list(dict.fromkeys([*strata, name]))).unique().sort(*strata, name)
    several = distinct.select(strata).is_duplicated() if strata else distinct[name].is_null() | (len(distinct) > 1)
    if several.any():
        stratum = f" in the stratum {in_words(distinct.select(strata).filter(several).row(0))}" if strata else ""
        msg = f"`{ROLE}`: the population {fpc.name!r} has several values{stratum}; it is one number for each stratum."
        raise ColumnError(msg)


def in_words(values: tuple[Any, ...]) -> str:
    """A stratum as part of a sentence."""
    return repr(values[0]) if len(values) == 1 else repr(values)
