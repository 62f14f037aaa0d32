"""Truth and predictions of more than one column: survival times, survival probabilities, intervals and quantiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from tidyfair.errors import ArgumentError, ColumnError, in_short, listed
from tidyfair.specs.arguments import is_list, number, proper_share
from tidyfair.specs.columns import Column, ColumnLike, are_columns, names_of
from tidyfair.specs.segments import Floats
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["CensoringDistribution", "PredictionInterval", "Survival", "prediction_interval", "survival"]

EVENT = "event"
"""True if the time of a row is that of the event, rather than of censoring."""
EVENT_WEIGHT = "event weight"
"""The censoring weight of a row with the event, just before its time; 0 for censored rows."""
AT_POINT, WEIGHT_AT_POINT = "p", "g"
"""Prefixes of the predictions at points, and of censoring weights at these; without a number, at the point of a row."""
TIME_AT_POINT = "eval time"
"""The evaluation time of rows at one point."""
_GIVEN_WEIGHT, _STRATUM = "c", "h"
"""Prefixes of the user's censoring weights, and of the columns within which they are estimated."""
EVAL_TIME, QUANTILE_LEVEL = ".eval_time", ".quantile_level"
"""The columns of points in results."""

TruthLike: TypeAlias = "ColumnLike | Survival"
"""A column of labels or numbers, or survival times."""
Prediction: TypeAlias = "ColumnLike | PredictionInterval | Mapping[float, ColumnLike]"
"""A column of predictions, a prediction interval, or quantiles by level."""


@dataclass(frozen=True)
class CensoringDistribution:
    """The probability to be uncensored after each time, a step function; made by `survival.censoring_distribution`."""

    times: tuple[float, ...]
    """The times at which rows are censored, rising."""
    probabilities: tuple[float, ...]
    """The probability to be uncensored from each time on, until the next one."""
    rows: float = field(default=math.inf, repr=False)
    """The number of rows that it was estimated from; of weighted rows, the effective one."""

    def before(self, times: Floats) -> Floats:
        """The probability to be uncensored just before some times; never 0, as in parsnip."""
        steps = np.concatenate([[1.0], self.probabilities])
        positive = steps[steps > 0]
        # all were censored: half the smallest probability, or that of a single row
        return np.fmax(steps[np.searchsorted(self.times, times, side="left")], min(positive.min() / 2, 1 / self.rows))

    def ends_before(self, time: float) -> bool:
        """Check whether all were censored, or had the event, before a time, the last of them censored."""
        return bool(self.times) and self.probabilities[-1] == 0 and time > self.times[-1]

    def __repr__(self) -> str:
        last = f", {self.probabilities[-1]:.3g} after {self.times[-1]:g}" if self.times else ""
        return f"<censoring distribution: {len(self.times)} times{last}>"


@dataclass(frozen=True)
class Survival:
    """The columns of survival times: the truth of metrics of survival; made by `survival`."""

    time: Any
    event: Any
    censoring: CensoringDistribution | tuple[tuple[float, Column], ...] | None = None
    """The distribution of censoring times, or the columns of weights at evaluation times."""
    censoring_by: tuple[Column, ...] = ()

    @property
    def column_of_time(self) -> Column:
        """The column of times in a frame."""
        return Column.of(self.time, "truth")

    @property
    def column_of_events(self) -> Column:
        """The column of events in a frame."""
        return Column.of(self.event, "truth")

    def __repr__(self) -> str:
        more = "" if self.censoring is None else ", censoring=…"
        more += f", censoring_by={names_of(self.censoring_by)}" if self.censoring_by else ""
        return f"survival.outcome({_shown(self.time)}, {_shown(self.event)}{more})"


@refuse_unknown_settings
def survival(
    time: object,
    event: object,
    *,
    censoring: CensoringDistribution | Mapping[float, ColumnLike] | None = None,
    censoring_by: ColumnLike | Sequence[ColumnLike] | None = None,
) -> Survival:
    """The truth of metrics of survival: times until the event or censoring, and which of the two happened.

    Args:
        time: Column of the times, not negative (an array in `.arrays`).
        event: Column that is true (or 1) if the event happened at that time, and false (or 0) for censored rows.
        censoring: The distribution of censoring times, made by `survival.censoring_distribution`, often from the
            training data; or a mapping from evaluation times to columns of censoring weights. By default the
            distribution is estimated (Kaplan and Meier, 1958) from all rows of each outer group.
        censoring_by: Columns within whose groups that distribution is estimated, if censoring differs between them.

    >>> survival("days", "died")
    survival.outcome('days', 'died')
    """
    own: CensoringDistribution | tuple[tuple[float, Column], ...] | None = None
    if isinstance(censoring, Mapping):
        weights = _points("censoring", cast("Mapping[object, object]", censoring), "a time from 0 on", "weights")
        own = tuple(weights.items())
    elif censoring is None or isinstance(censoring, CensoringDistribution):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        own = censoring
    else:
        msg = (
            "`censoring` is made by `survival.censoring_distribution(data, …)`, or a mapping from evaluation times to "
            f"columns of weights, not {in_short(censoring)}."
        )
        raise ArgumentError(msg)
    by: Iterable[object] = ()
    if censoring_by is not None:
        by = censoring_by if are_columns(censoring_by) else [censoring_by]
    strata = tuple(Column.of(column, "censoring_by") for column in by)
    if own is not None and strata:
        msg = "`censoring` gives the distribution, and `censoring_by` estimates it: give only one of them."
        raise ArgumentError(msg)
    return Survival(_source(time, "time"), _source(event, "event"), own, strata)


@dataclass(frozen=True)
class PredictionInterval:
    """The columns of a prediction interval, and its nominal level; made by `prediction_intervals.interval`."""

    lower: Any
    upper: Any
    level: float

    def __repr__(self) -> str:
        return f"prediction_intervals.interval({_shown(self.lower)}, {_shown(self.upper)}, level={self.level:g})"


@refuse_unknown_settings
def prediction_interval(lower: object, upper: object, *, level: float) -> PredictionInterval:
    """The estimate of metrics of intervals: the columns of both ends, and the share of truths they promise to hold.

    Args:
        lower: Column of the lower ends (an array in `.arrays`).
        upper: Column of the upper ends.
        level: The nominal coverage, such as 0.9. The ends count as the quantiles that leave half of the rest on either
            side.

    >>> prediction_interval("low", "high", level=0.9)
    prediction_intervals.interval('low', 'high', level=0.9)
    """
    return PredictionInterval(_source(lower, "lower"), _source(upper, "upper"), proper_share("level", level))


def _source(value: object, role: str) -> Any:
    """A column, or an array that `.arrays` makes a column of."""
    is_array = hasattr(value, "__array__") or is_list(value)
    return value if is_array else Column.of(value, role)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, Column) else in_short(value)


def _points(
    role: str, mapping: Mapping[object, object], key: str, content: str, *, share: bool = False
) -> dict[float, Column]:
    """The columns of a mapping from times or levels, which rise."""
    columns: dict[float, Column] = {}
    for point, column in mapping.items():
        try:
            at = proper_share(key, point) if share else number(key, point, 0)
        except ArgumentError as error:
            msg = f"`{role}` maps {key} to a column of {content}, not {in_short(point)}."
            raise ArgumentError(msg) from error
        columns[at] = Column.of(column, role)
    if not columns or len(columns) < len(mapping):
        msg = f"`{role}` maps {key} to a column of {content}, each once, not {in_short(mapping)}."
        raise ArgumentError(msg)
    return dict(sorted(columns.items()))


@dataclass(frozen=True)
class Forecast:
    """The columns of truth and predictions beside those of one number each, and the points that these are for."""

    event: Column | None = None
    """The column of events, of survival times."""
    censoring: CensoringDistribution | tuple[Column, ...] | None = None
    """The distribution of censoring times, or the columns of weights at points; None if it is estimated."""
    strata: tuple[Column, ...] = ()
    points: tuple[float, ...] = ()
    """The evaluation times, or the levels of quantiles."""
    columns: tuple[Column, ...] = ()
    """The predictions at points."""
    level: float | None = None
    """The nominal coverage, if the columns are the ends of an interval."""

    @classmethod
    def of_survival(cls, truth: Survival, probs: object) -> Forecast:
        """The columns of survival times and, if given, of survival probabilities at evaluation times."""
        event = truth.column_of_events
        points: dict[float, Column] = {}
        if probs is not None:
            if not isinstance(probs, Mapping):
                msg = (
                    "`probs` of survival metrics maps evaluation times to columns of survival probabilities, such as "
                    f'`probs={{365: "survival_at_365"}}`, and is not {in_short(probs)}.'
                )
                raise ColumnError(msg)
            points = _points(
                "probs", cast("Mapping[object, object]", probs), "a time from 0 on", "survival probabilities"
            )
        censoring = truth.censoring
        if isinstance(censoring, tuple):
            weights = dict(censoring)
            if missing := [time for time in points if time not in weights]:
                msg = f"`censoring` has no weights for the evaluation time {listed(missing)}."
                raise ColumnError(msg)
            censoring = tuple(weights[time] for time in points)
        return cls(event, censoring, truth.censoring_by, tuple(points), tuple(points.values()))

    @classmethod
    def of_estimate(cls, estimate: object) -> Forecast:
        """The columns of an interval, or of quantiles by their levels."""
        if isinstance(estimate, PredictionInterval):
            ends = (Column.of(estimate.lower, "estimate"), Column.of(estimate.upper, "estimate"))
            # in decimals, so that the levels are those that a user writes: 0.05, and not 0.04999999999999999
            level = Decimal(str(estimate.level))
            points = (float((1 - level) / 2), float((1 + level) / 2))
            return cls(points=points, columns=ends, level=estimate.level)
        if not isinstance(estimate, Mapping):
            msg = (
                '`estimate` of metrics of intervals is `prediction_intervals.interval("lower", "upper", level=0.9)`, '
                "or a mapping from levels to columns of quantiles, such as "
                '`{0.05: "q05", 0.5: "q50", 0.95: "q95"}`, and '
                f"not {in_short(estimate)}."
            )
            raise ColumnError(msg)
        columns = _points(
            "estimate", cast("Mapping[object, object]", estimate), "a level between 0 and 1", "quantiles", share=True
        )
        return cls(points=tuple(columns), columns=tuple(columns.values()))

    @property
    def identity(self) -> str:
        """Text that identifies it, the same in every process."""
        columns = {name: column.identity for name, (_, column) in self.wanted.items()}
        given = self.censoring if isinstance(self.censoring, CensoringDistribution) else None
        distribution = None if given is None else (given.times, given.probabilities, given.rows)
        return repr((self.points, self.level, columns, distribution))

    @property
    def is_survival(self) -> bool:
        """True if the truth is a survival time."""
        return self.event is not None

    @property
    def given(self) -> set[str]:
        """The columns of a call that it stands for."""
        return {self.role} if self.points else set()

    @property
    def axis(self) -> str:
        """The column of points in results."""
        return EVAL_TIME if self.is_survival else QUANTILE_LEVEL

    @property
    def role(self) -> Literal["probs", "estimate"]:
        """The argument that gives the predictions at points."""
        return "probs" if self.is_survival else "estimate"

    @property
    def names(self) -> list[str]:
        """The internal names of the predictions at points."""
        return [f"{AT_POINT}{index}" for index in range(len(self.points))]

    @property
    def weight_names(self) -> list[str]:
        """The internal names of the censoring weights at points."""
        return [f"{WEIGHT_AT_POINT}{index}" for index in range(len(self.points))]

    @property
    def wanted(self) -> dict[str, tuple[str, Column]]:
        """The columns that are read, `{internal name: (role, column)}`."""
        wanted: dict[str, tuple[str, Column]] = {}
        if self.event is not None:
            wanted[EVENT] = ("truth", self.event)
        for name, column in zip(self.names, self.columns, strict=True):
            wanted[name] = (self.role, column)
        wanted |= {name: ("censoring", column) for name, column in self.given_weights.items()}
        wanted |= {name: ("censoring_by", column) for name, column in self.named_strata.items()}
        return wanted

    @property
    def given_weights(self) -> dict[str, Column]:
        """The user's censoring weights by their internal names."""
        columns = self.censoring if isinstance(self.censoring, tuple) else ()
        return {f"{_GIVEN_WEIGHT}{index}": column for index, column in enumerate(columns)}

    @property
    def named_strata(self) -> dict[str, Column]:
        """The columns within which the censoring distribution is estimated, by their internal names."""
        return {f"{_STRATUM}{index}": column for index, column in enumerate(self.strata)}

    @property
    def coefficients(self) -> list[float]:
        """The weights of points in an average over them: by trapezoids over time, as in yardstick, or equal ones."""
        count = len(self.points)
        if not self.is_survival:
            return [1 / count] * count
        weights = [0.0] * count
        for index, (start, end) in enumerate(itertools.pairwise(self.points)):
            for point in (index, index + 1):
                weights[point] += (end - start) / 2 / self.points[-1]
        return weights


def is_point(name: str) -> bool:
    """Check whether a column holds predictions at a point: `p0`, `p1`, …."""
    return name[0] == AT_POINT and name[1:].isdigit()
