"""Designs of complex surveys: strata, primary sampling units and finite populations, or replicate weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.specs.arguments import flag, is_list, number, one_of
from tidyfair.specs.columns import Column, ColumnLike, are_columns
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["ReplicateWeights", "SurveyDesign", "replicate_weights", "survey_design"]

Lonely: TypeAlias = Literal["error", "adjust", "certainty"]
Method: TypeAlias = Literal["brr", "fay", "jackknife", "bootstrap", "successive_difference"]
Centre: TypeAlias = Literal["estimate", "mean"]
LONELY: tuple[Lonely, ...] = get_args(Lonely)
METHODS: tuple[Method, ...] = get_args(Method)
CENTRES: tuple[Centre, ...] = get_args(Centre)
ROLE = "design"
"""The argument that error messages name."""


@dataclass(frozen=True)
class SurveyDesign:
    """The design of a sample from strata and clusters, for linearized standard errors; made by `surveys.design`."""

    replicates: ClassVar[tuple[Column, ...]] = ()
    weights: Column | None
    strata: tuple[Column, ...]
    clusters: Column | None
    fpc: Column | None
    nested: bool
    lonely: Lonely

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns that rows are counted by."""
        own = [*self.strata, self.clusters, self.fpc]
        return tuple(dict.fromkeys(column for column in own if column is not None))

    @property
    def samples_rows(self) -> bool:
        """True where rows are sampled one by one."""
        return self.clusters is None


@dataclass(frozen=True)
class ReplicateWeights:
    """Weights with replicates, from which variances are estimated; made by `surveys.replicate_weights`."""

    keys: ClassVar[tuple[Column, ...]] = ()
    samples_rows: ClassVar[bool] = False
    weights: Column
    replicates: tuple[Column, ...]
    method: Method
    scale: float
    rscales: tuple[float, ...]
    centre: Centre
    degrees_of_freedom: float


Design: TypeAlias = SurveyDesign | ReplicateWeights


@refuse_unknown_settings
def survey_design(
    *,
    weights: ColumnLike | None = None,
    strata: ColumnLike | Sequence[ColumnLike] | None = None,
    clusters: ColumnLike | None = None,
    fpc: ColumnLike | None = None,
    nested: bool = False,
    lonely: Lonely = "error",
) -> SurveyDesign:
    """Describe a sample from strata and clusters, as `design=` of a call with `interval="auto"`.

    Standard errors are those of Taylor's linearization, from the sums of primary sampling units (PSUs) within strata,
    as if PSUs had been drawn with replacement. Groups are domains: PSUs without a row of a group count too.

    Args:
        weights: Column of the sampling weights; by default all rows have equal weight.
        strata: Column of the strata, or a list of columns whose combinations are the strata.
        clusters: Column of the PSUs, the units sampled at the first stage; by default single rows.
        fpc: Column of the finite population correction, the same in all rows of a stratum: the number of PSUs of the
            stratum in the population or, if no value is above 1, the sampled share of them.
        nested: True if clusters are numbered anew in each stratum, so equal numbers in two strata are different
            clusters; otherwise such clusters are an error.
        lonely: Treatment of strata with a single PSU, whose variance cannot be estimated: `"error"`; `"adjust"`, to use
            its distance from the mean of all PSUs; or `"certainty"`, to add no variance, for PSUs that were included
            with certainty.

    Raises:
        ArgumentError: If no column is given, or a column has two roles.

    >>> import polars as pl
    >>> from tidyfair import selection_rate
    >>> people = pl.DataFrame({"hired": [1, 0, 1, 1], "town": [1, 2, 3, 4], "region": [1, 1, 2, 2]})
    >>> design = survey_design(strata="region", clusters="town")
    >>> result = selection_rate(people, estimate="hired", design=design, interval="auto")
    >>> result.select(".estimate", pl.col(".std_error").round(3), ".method").row(0)
    (0.75, 0.25, 'survey_linearized')
    """
    own_strata: tuple[Column, ...] = ()
    if strata is not None:
        several = cast("Any", strata if are_columns(strata) else [strata])
        own_strata = tuple(Column.of(column, "strata") for column in several)
    design = SurveyDesign(
        weights=Column.if_given(weights, "weights"),
        strata=own_strata,
        clusters=Column.if_given(clusters, "clusters"),
        fpc=Column.if_given(fpc, "fpc"),
        nested=flag("nested", nested),
        lonely=cast("Lonely", one_of("lonely", lonely, LONELY)),
    )
    given = [column for column in (design.weights, *design.strata, design.clusters, design.fpc) if column is not None]
    if not given:
        msg = 'surveys.design() needs a column: `weights="w"`, `strata="region"` or `clusters="psu"`.'
        raise ArgumentError(msg)
    _refuse_repeated("surveys.design()", given)
    if design.nested and not (design.strata and design.clusters):
        msg = "surveys.design(): `nested` needs clusters within strata; give `strata=` and `clusters=`."
        raise ArgumentError(msg)
    return design


@refuse_unknown_settings
def replicate_weights(
    *,
    weights: ColumnLike,
    replicates: Sequence[ColumnLike],
    method: Method,
    fay: float | None = None,
    scale: float | None = None,
    rscales: Sequence[float] | None = None,
    centre: Centre = "estimate",
    degrees_of_freedom: float | None = None,
) -> ReplicateWeights:
    """Describe replicate weights, as `design=` of a call with `interval="auto"`.

    A value is computed with each of the replicate weights, in the same pass over the rows. Its variance is the sum of
    the squared distances of these from the value itself, times `scale` and `rscales`. The defaults for R
    replicates are:

    | `method` | `scale` |
    |---|---|
    | `"brr"`, balanced half-samples | 1 / R |
    | `"fay"`, the same with Fay's coefficient k | 1 / (R (1 - k)²) |
    | `"jackknife"`, one PSU left out (JK1) | (R - 1) / R; 1 where `rscales` are given (JKn) |
    | `"bootstrap"` | 1 / R, or 1 / (R - 1) about the mean |
    | `"successive_difference"`, as in the American Community Survey | 4 / R |

    Args:
        weights: Column of the full-sample weights.
        replicates: Columns of the replicate weights, such as `[f"PWGTP{i}" for i in range(1, 81)]`. They may be
            negative, as some of the American Community Survey are.
        method: The method by which replicates were made, which determines `scale`.
        fay: Fay's coefficient, from 0 to less than 1, for `method="fay"`.
        scale: The factor of all squares, if it differs from the default.
        rscales: A factor for each replicate, such as (n - 1) / n of its stratum for a stratified jackknife (JKn).
        centre: `"estimate"` for distances from the value itself, or `"mean"` from the mean of the replicates, the
            default of R's `survey`, which gives smaller variances.
        degrees_of_freedom: Degrees of freedom of Student's t, by default the number of replicates minus 1. For a
            stratified jackknife and half-samples, use the number of PSUs minus the number of strata.

    Raises:
        ArgumentError: If there are fewer than two replicates, or a scale is invalid.
    """
    if not are_columns(replicates):
        msg = (
            'surveys.replicate_weights(): `replicates` must be a list of columns, such as `["r1", "r2"]`, not '
            f"{in_short(replicates)}."
        )
        raise ArgumentError(msg)
    columns = tuple(Column.of(column, "replicates") for column in replicates)
    count = len(columns)
    if count < 2:
        msg = f"surveys.replicate_weights(): a variance needs two replicates or more, not {count}."
        raise ArgumentError(msg)
    base = Column.of(weights, "weights")
    _refuse_repeated("surveys.replicate_weights()", (base, *columns))
    own_method = cast("Method", one_of("method", method, METHODS))
    own_centre = cast("Centre", one_of("centre", centre, CENTRES))
    factors = _rscales(rscales, count)
    default = _default_scale(own_method, count, _fay(own_method, fay), own_centre, has_factors=rscales is not None)
    return ReplicateWeights(
        weights=base,
        replicates=columns,
        method=own_method,
        scale=default if scale is None else number("scale", scale, 0, inside=True),
        rscales=factors,
        centre=own_centre,
        degrees_of_freedom=count - 1
        if degrees_of_freedom is None
        else number("degrees_of_freedom", degrees_of_freedom, 1),
    )


def _refuse_repeated(function: str, columns: Sequence[Column]) -> None:
    """Refuse columns that are named twice."""
    repeated = [column.name for column in dict.fromkeys(columns) if columns.count(column) > 1]
    if repeated:
        msg = f"{function} has {listed(repeated)} twice; each column of a design can have only one role."
        raise ColumnError(msg)


def _fay(method: Method, fay: object) -> float:
    """Fay's coefficient, 0 for other methods."""
    if method == "fay":
        if fay is None:
            msg = 'surveys.replicate_weights(): `method="fay"` needs Fay\'s coefficient, such as `fay=0.5`.'
            raise ArgumentError(msg)
        coefficient = number("fay", fay, 0, 1)
        if coefficient == 1:
            msg = "`fay` is a number from 0 to less than 1; with 1 all replicates are the weights themselves."
            raise ArgumentError(msg)
        return coefficient
    if fay is not None:
        msg = f'surveys.replicate_weights(): `fay` belongs to `method="fay"`, not to {method!r}.'
        raise ArgumentError(msg)
    return 0.0


def _rscales(rscales: object, count: int) -> tuple[float, ...]:
    """The factor of each replicate."""
    if rscales is None:
        return (1.0,) * count
    if not is_list(rscales):
        msg = (
            "surveys.replicate_weights(): `rscales` must be a list of numbers, one for each replicate, not "
            f"{in_short(rscales)}."
        )
        raise ArgumentError(msg)
    factors = tuple(number("rscales", factor, 0) for factor in cast("Sequence[object]", rscales))
    if len(factors) != count:
        msg = (
            f"surveys.replicate_weights(): `rscales` has {len(factors)} factors for {count} replicates; give one each."
        )
        raise ArgumentError(msg)
    if not math.fsum(factors):
        msg = "surveys.replicate_weights(): all `rscales` are 0, so the variance would be 0."
        raise ArgumentError(msg)
    return factors


def _default_scale(method: Method, count: int, fay: float, centre: Centre, *, has_factors: bool) -> float:
    """The factor of all squares that belongs to a method."""
    if method == "jackknife":
        return 1.0 if has_factors else (count - 1) / count
    if method == "bootstrap":
        return 1 / (count if centre == "estimate" else count - 1)
    if method == "successive_difference":
        return 4 / count
    return 1 / (count * (1 - fay) ** 2)
