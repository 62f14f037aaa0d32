"""How the values of groups become one number: what aggregates have in common, and those that users write."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sized
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import AggregateError, ArgumentError
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, number, one_of, text
from tidyfair.specs.segments import TIE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidyfair.specs.segments import Booleans, Floats, Integers, Segments

__all__ = ["Aggregate", "new_aggregate"]

Direction: TypeAlias = Literal["maximize", "minimize", "zero", "one"]
DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize", "zero", "one")
Across: TypeAlias = Literal["worst", "mean"]
Context: TypeAlias = Literal["overall", "rest"]
CONTEXTS: tuple[Context, ...] = ("overall", "rest")

NOT_ASKED = math.inf
"""In place of the number of a user's aggregate until the user's function is called."""
_USUAL: dict[float, Direction] = {0: "minimize", 1: "maximize"}
"""Where a number goes of which only that of equal groups is said."""
_SIGNED: dict[Direction, float] = {"zero": 0.0, "one": 1.0}
"""The number of equal groups where it has a sign."""


def severity_of(value: Floats, direction: Direction | None) -> Floats:
    """How bad numbers are that should go somewhere."""
    if direction == "maximize":
        return -value
    if direction == "zero":
        return abs(value)
    if direction == "one":
        return abs(value - 1)
    return value


@dataclass(frozen=True, eq=False)
class GroupValues:
    """The values of groups that are compared, row by row in group order, and the runs of rows that are compared."""

    segments: Segments
    estimate: Floats
    """The values; nan where a group has none."""
    weight: Floats
    """The weight of the rows that each value is about."""
    size: Floats
    """The weight of all rows of each group; nan where a group is not compared."""
    suppressed: Booleans
    """Whether the size of a group is hidden."""
    is_reference: Booleans
    """Whether it is the group that the user named to be compared with."""
    contexts: Mapping[Context, Floats]
    """The value of all groups together, and of all others, beside that of each group."""

    @property
    def known(self) -> Booleans:
        """Whether each group has a value."""
        import numpy as np

        return ~np.isnan(self.estimate)


@dataclass(frozen=True, eq=False)
class Reduced:
    """One number for each run of groups, nan where there is none, and the rows of the groups that carry it."""

    value: Floats
    low: Integers
    """The row of the group with the lower value, or `NO_ROW`."""
    high: Integers
    referable: Booleans | bool = True
    """Whether what groups are compared with has a value."""


@dataclass(frozen=True)
class Aggregate(ABC):
    """How the values of groups become one number; made by `difference()`, `ratio()` and their like."""

    kind: str
    across: Across = "worst"

    def __post_init__(self) -> None:
        one_of("across", self.across, ["worst", "mean"])

    @property
    def direction(self) -> Direction | None:
        """Where the number is to go; None keeps the metric's direction."""
        return "minimize"

    @property
    def groups_needed(self) -> int:
        """How many groups must have a value, where there are several."""
        return 2

    @property
    def equality(self) -> float | None:
        """The number that equal groups have, and a single one; None where it says nothing of equality."""
        return 0.0

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Which values of the same metric it reads beside those of the groups."""
        return ()

    @property
    def reference(self) -> object:
        """The group it compares with as the user named it, or None."""
        return None

    @property
    def may_leave_metrics_out(self) -> bool:
        """Whether it still means something where one of several metrics cannot be compared."""
        return self.across == "worst"

    @property
    def reads_weight(self) -> bool:
        """Whether it matters how much the rows of groups weigh."""
        return False

    @property
    def is_distance(self) -> bool:
        """Whether equal groups are at the end of what it can be, so that chance only moves it away from there."""
        return self.equality is not None and self.direction in ("minimize", "maximize")

    def in_words(self, of: str) -> str:
        """What it gives of a metric, for those who do not read code."""
        return f"{self!r} of {of}"

    def in_closed_form(self, metrics: int) -> bool:
        """Whether there are intervals of it from those of the groups, for so many metrics."""
        del metrics
        return False

    @property
    def error_factor(self) -> float | None:
        """How many times farther off than the values of groups it can be; None where that is not known."""
        return None

    def bound(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        """The aggregate as it applies to a `by` (two sides or not) and to metrics: is one negative, what is good."""
        del sides, negative, direction
        return self

    @abstractmethod
    def reduce(self, groups: GroupValues) -> Reduced:
        """The number of each run of groups."""

    @property
    def options(self) -> dict[str, object]:
        """What a factory may set when it is called with the feature."""
        return {}

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        """The smallest and the largest number it can give for values between these."""
        return lower, upper

    def severity(self, value: Floats) -> Floats:
        """How bad numbers are, to find the worst of several metrics or labels."""
        return severity_of(value, self.direction)

    def _means_nothing(self, metric: str) -> str:
        return f"{self!r} means nothing for {metric}, which can be negative; use difference() or another metric."


@dataclass(frozen=True, repr=False, eq=False)
class UserAggregate(Aggregate):
    """A user's polars expression, or function of the tidy per-group frame, in place of one of ours."""

    kind: str = "user"
    function: Callable[[pl.DataFrame], float] | pl.Expr = field(kw_only=True)
    name: str | None = None
    at_equality: float | None = None
    """The number that equal groups have, where it is said."""
    good: Direction | None = None
    """Where the number should go, where it is said."""

    @property
    def direction(self) -> Direction:
        return self.good or "minimize"

    @property
    def equality(self) -> float | None:
        return self.at_equality

    @property
    def may_leave_metrics_out(self) -> bool:
        return False

    @property
    def contexts(self) -> tuple[Context, ...]:
        return ("overall",)

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        least, most = -math.inf, math.inf
        if self.is_distance and self.at_equality is not None:
            return (self.at_equality, most) if self.good == "minimize" else (least, self.at_equality)
        return least, most

    def reduce(self, groups: GroupValues) -> Reduced:
        """Infinity in place of the number, which is asked of the user once the rules allow one."""
        import numpy as np

        value = np.full(len(groups.segments.starts), NOT_ASKED)
        return of_extremes(groups, value)

    def number(self, result: object, name: str) -> float | None:
        """What came back for one outer group as a number, or an error that says what it is instead."""
        if result is None and isinstance(self.function, pl.Expr):
            return None  # an expression says so where it has no value
        if not isinstance(result, bool) and isinstance(result, Real):
            try:
                found = float(result)
            except OverflowError as error:
                msg = f"{name}: the aggregate {self!r} returned a number that is too large."
                raise AggregateError(msg) from error
            self._check_side(found, name)
            return None if math.isnan(found) else found
        shown = f"{len(result)} values" if is_list(result) and isinstance(result, Sized) else repr(result)
        msg = f"{name}: the aggregate {self!r} returned {shown} ({type(result).__name__}); it must return one number."
        raise AggregateError(msg)

    @property
    def _said(self) -> tuple[object, ...]:
        return self.name, self.at_equality, self.good, self.across

    def _check_side(self, found: float, name: str) -> None:
        """Refuse a number beyond that of equal groups."""
        if self.at_equality is None or not self.is_distance:
            return
        beyond = self.at_equality - found if self.good == "minimize" else found - self.at_equality
        if beyond > TIE * max(1, abs(found)):
            where = "below" if self.good == "minimize" else "above"
            msg = (
                f"{name}: the aggregate {self!r} returned {found:g}, {where} the {self.at_equality:g} of equal groups. "
                'A number that may be on both sides of it has the direction "zero" or "one".'
            )
            raise AggregateError(msg)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserAggregate):
            return NotImplemented
        one, another = self.function, other.function
        same = one.meta.eq(another) if isinstance(one, pl.Expr) and isinstance(another, pl.Expr) else one is another
        return same and self._said == other._said

    def __hash__(self) -> int:
        function = self.function
        return hash((tuple(function.meta.root_names()) if isinstance(function, pl.Expr) else function, self._said))

    def __repr__(self) -> str:
        function = self.function
        own = str(function) if isinstance(function, pl.Expr) else getattr(function, "__name__", "function")
        return visible(self.name or own)


def of_extremes(groups: GroupValues, value: Floats) -> Reduced:
    """Numbers that are carried by the groups with the lowest and the highest value."""
    segments = groups.segments
    return Reduced(value, segments.first_largest(-groups.estimate), segments.first_largest(groups.estimate))


def new_aggregate(
    function: Callable[[pl.DataFrame], float] | pl.Expr,
    name: str | None = None,
    *,
    equal: float | None = None,
    direction: Direction | None = None,
) -> Aggregate:
    """Make an aggregate that says what it gives where groups are equal, and where it should go.

    With `equal` and a direction of `"minimize"` or `"maximize"` it is a distance: chance only moves it away from
    equality. Intervals and gates then treat it like those of the library, provided that it does not grow when the
    values of groups come closer to each other.

    Args:
        function: A function of a polars frame, whatever the kind of the data, with one row for each group and metric
            (`.group`, the `by` columns, `.metric`, `.estimator`, `.estimate`, `.n`, `.denominator`, `.overall`) that
            returns one number; or a polars expression over it. Groups without a value are not in it.
        name: What it is called where it is shown; the name of the function unless given.
        equal: The number of equal groups, such as 0 for differences and 1 for ratios; a single group has it too. Left
            out, nobody knows whether chance has made the number, and a gate never fails by it.
        direction: `"minimize"` or `"maximize"`, and all other groups are beyond `equal`; or `"zero"` or `"one"` for a
            number with a sign, which may be on both sides of it. Left out, 0 is to be small and 1 large.

    Raises:
        ArgumentError: For a direction that does not fit `equal`, or none where `equal` is neither 0 nor 1.
        AggregateError: For what is no function and no expression; and in a call, for a number beyond `equal`.

    >>> from tidyfair import demographic_parity
    >>> value = pl.col(".estimate")
    >>> times_as_often = new_aggregate(value.max() / value.min(), "times_as_often", equal=1, direction="minimize")
    >>> demographic_parity("sex", aggregate=times_as_often)
    <groupwise metric demographic_parity('sex'): times_as_often of detection_prevalence, minimize>
    """
    _check_function(function, "new_aggregate()")
    if name is not None and (not isinstance(name, str) or not name):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"new_aggregate(): a name in words, not {name!r}."
        raise ArgumentError(msg)
    if name is not None:
        text("name", name)
    if direction is not None:
        one_of("direction", direction, DIRECTIONS)
    if equal is not None:
        equal = number("equal", equal, -math.inf)
    meant = None if direction is None else _SIGNED.get(direction)
    if meant is not None and equal not in (None, meant):
        msg = f"new_aggregate(): with the direction {direction!r} equal groups have {meant:g}, not {equal:g}."
        raise ArgumentError(msg)
    if direction is None and equal not in (None, *_USUAL):
        way_out = '`direction="minimize"` or `direction="maximize"`'
        msg = f"new_aggregate(): is {equal:g} the smallest number that there can be, or the largest? Say {way_out}."
        raise ArgumentError(msg)
    good = direction or (None if equal is None else _USUAL[equal])
    return UserAggregate(function=function, name=name, at_equality=meant if equal is None else equal, good=good)


def as_aggregate(given: object, name: str, direction: Direction | None = None) -> Aggregate:
    """Accept an aggregate of ours, a polars expression or a function, with the direction that is said of it."""
    if isinstance(given, UserAggregate) and given.good is None and direction:
        given = given.function
    if isinstance(given, Aggregate):
        return given
    _check_function(given, name)
    return new_aggregate(cast("Callable[[pl.DataFrame], float] | pl.Expr", given), direction=direction)


def _check_function(given: object, name: str) -> None:
    """Refuse what is neither a function of the user's nor an expression."""
    if isinstance(given, pl.Expr):
        return
    if not callable(given):
        takes = "difference(), ratio() or their like, a polars expression or a function"
        msg = f"{name}: an aggregate is {takes}, not {given!r}."
        raise AggregateError(msg)
    if str(getattr(given, "__module__", None)).startswith("tidyfair."):
        written = getattr(given, "__name__", "")
        msg = f"{name}: `aggregate={written}` lacks its brackets; write `aggregate={written}()`."
        raise AggregateError(msg)
