"""Aggregates, which reduce the values of groups to one number: their common base, and those that users write."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import ClassVar, Literal, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.errors import AggregateError, ArgumentError, in_short
from tidyfair.escapes import visible
from tidyfair.specs.arguments import is_list, number, one_of, text
from tidyfair.specs.segments import NO_ROW, TIE, Booleans, Floats, Integers, Segments
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["Aggregate", "new_aggregate"]

Direction: TypeAlias = Literal["maximize", "minimize", "zero", "one"]
Better: TypeAlias = Literal[Direction, "neither"]
DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize", "zero", "one")
Across: TypeAlias = Literal["worst", "mean"]
Context: TypeAlias = Literal["overall", "rest"]
CONTEXTS: tuple[Context, ...] = ("overall", "rest")

NOT_ASKED = math.inf
"""Stands for the number of a user's aggregate until the user's function is called."""
_DIRECTION_BY_EQUALITY: dict[float, Direction] = {0: "minimize", 1: "maximize"}
"""Direction of a user's aggregate that states its number at equality only."""
_EQUALITY_BY_DIRECTION: dict[Direction, float] = {"zero": 0.0, "one": 1.0}
"""Number at equality of an aggregate with a sign."""


def severity_of(value: Floats, direction: Direction | None) -> Floats:
    """Badness of numbers with a direction: larger is worse."""
    if direction == "maximize":
        return -value
    if direction == "zero":
        return abs(value)
    if direction == "one":
        return abs(value - 1)
    return value


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Values of the groups to be compared: one row per group, sorted into runs of rows that are compared."""

    segments: Segments
    estimate: Floats
    """Values; nan where a group has none."""
    weight: Floats
    """Weight of the rows in the denominator of the value."""
    size: Floats
    """Weight of all rows of the group; nan where a group is not compared."""
    suppressed: Booleans
    """True if the size of the group is hidden."""
    is_reference: Booleans
    """True if the user named the group as the reference."""
    contexts: Mapping[Context, Floats]
    """Value of all groups together, and of all other groups, for each group."""
    with_carriers: bool = True
    """False where nobody asks which groups carry the numbers."""

    @property
    def known(self) -> Booleans:
        """Mask of the groups that have a value."""
        return ~np.isnan(self.estimate)


@dataclass(frozen=True, eq=False)
class Reduced:
    """One number per run of groups, nan where undefined, and the rows of the two groups that carry it."""

    value: Floats
    low: Integers
    """Row of the group with the lower value, or `NO_ROW`."""
    high: Integers
    """Row of the group with the higher value, or `NO_ROW`."""
    referable: Booleans | bool = True
    """True if the reference has a value."""


@dataclass(frozen=True, repr=False)
class Aggregate(ABC):
    """A reduction of the values of groups to one number; made by `difference()`, `ratio()` and their like."""

    kind: ClassVar[str]
    """Name of the function that makes it."""
    across: Across = "worst"

    is_difference: ClassVar[bool] = False
    """True if it is in the units of the metric and 0 for equal groups: the value of `difference()`."""
    is_extreme: ClassVar[bool] = False
    """True if it is the value of the lowest or of the highest group."""
    refuses_negative: ClassVar[bool] = False
    """True if the number means nothing for values below 0."""
    groups_needed: ClassVar[int] = 2
    """Smallest number of groups with a value, if there are several groups."""

    def __post_init__(self) -> None:
        one_of("across", self.across, ["worst", "mean"])

    @property
    def direction(self) -> Direction | None:
        """Direction in which the number is better; None keeps the direction of the metric."""
        return "minimize"

    @property
    def direction_is_unknown(self) -> bool:
        """True if it is a user's aggregate without a direction."""
        return False

    @property
    def equality(self) -> float | None:
        """Value for equal groups and for a single group; None if the number does not measure equality."""
        return 0.0

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Values of the same metric that it reads besides those of the groups."""
        return ()

    @property
    def compares_with_context(self) -> bool:
        """True if groups are compared with the whole, or with the rest."""
        return False

    @property
    def compares_with_majority(self) -> bool:
        """True if groups are compared with the largest group."""
        return False

    @property
    def reference(self) -> object:
        """Group that others are compared with, as the user named it, or None."""
        return None

    @property
    def is_signed(self) -> bool:
        """True if the number may be on both sides of equality."""
        return False

    def without_sign(self) -> Aggregate:
        """The same aggregate as a distance."""
        return self

    @property
    def reads_weight(self) -> bool:
        """True if the number depends on the weight of the groups' rows."""
        return False

    @property
    def calls_python(self) -> bool:
        """True if a Python function is called for each run of groups, which is slow for many replicates."""
        return False

    @property
    def is_distance(self) -> bool:
        """True if equality is an end of its range, so that chance only moves the number away from there."""
        return self.equality is not None and self.direction in ("minimize", "maximize")

    def in_words(self, of: str) -> str:
        """Describe the number, for readers who do not read code."""
        return f"{self!r} of {of} in the groups"

    def in_closed_form(self, metrics: int) -> bool:
        """Check whether its interval follows from those of the groups, for so many metrics."""
        del metrics
        return False

    @property
    def error_factor(self) -> float | None:
        """Largest error of the number over the largest error of the groups' values; None if unknown."""
        return None

    def resolved(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        """The aggregate with what was left open filled in for a `by` and metrics, which it has to suit.

        Args:
            sides: Whether the `by` has a privileged and an unprivileged side.
            negative: Name of a metric that can be negative, if there is one.
            direction: Direction of the metrics.
        """
        del sides, direction
        if negative and self.refuses_negative:
            way_out = "use difference() or another metric"
            msg = f"{self!r} is not defined for {negative}, which can be negative; {way_out}."
            raise AggregateError(msg)
        return self

    @abstractmethod
    def reduce(self, groups: GroupValues) -> Reduced:
        """Compute the number of each run of groups."""

    @property
    def options(self) -> dict[str, object]:
        """Options that a factory may set when it is called with the feature."""
        return {}

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        """Smallest and largest possible number for values between two ends."""
        return lower, upper

    def severity(self, value: Floats) -> Floats:
        """Badness of numbers, to choose the worst of several metrics or labels: larger is worse."""
        return severity_of(value, self.direction)

    def __repr__(self) -> str:
        values = [(item.name, getattr(self, item.name), item.default) for item in fields(self) if item.repr]
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value, usual in values if value != usual)})"


@dataclass(frozen=True, repr=False, eq=False)
class UserAggregate(Aggregate):
    """A user's polars expression, or function of the tidy per-group frame."""

    kind = "user"
    function: Callable[[pl.DataFrame], float] | pl.Expr = field(kw_only=True)
    name: str | None = None
    at_equality: float | None = None
    """Value for equal groups, if stated."""
    good: Direction | None = None
    """Direction in which the number is better, if stated."""

    @property
    def direction(self) -> Direction:
        return self.good or "minimize"

    @property
    def direction_is_unknown(self) -> bool:
        return self.good is None

    @property
    def equality(self) -> float | None:
        return self.at_equality

    def in_words(self, of: str) -> str:
        kind = "function" if self.calls_python else "expression"
        return f"result of the {kind} {self!r} for the values of {of} in the groups"

    @property
    def contexts(self) -> tuple[Context, ...]:
        return ("overall",)

    @property
    def calls_python(self) -> bool:
        return not isinstance(self.function, pl.Expr)

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        if not self.is_distance or self.at_equality is None:
            return -math.inf, math.inf
        if self.good == "minimize":
            return self.at_equality, math.inf
        return -math.inf, self.at_equality

    def reduce(self, groups: GroupValues) -> Reduced:
        """Return `NOT_ASKED` instead of numbers: the user's function is called only once the rules allow it."""
        value = np.full(len(groups.segments.starts), NOT_ASKED)
        return of_extremes(groups, value)

    def number(self, result: object, name: str) -> float | None:
        """Check what the user's function returned for one outer group, and convert it to a number."""
        if result is None and isinstance(self.function, pl.Expr):
            return None  # the null of an expression is an undefined value
        if isinstance(result, bool) or not isinstance(result, Real):
            shown = f"{len(result)} values" if is_list(result) and isinstance(result, Sized) else repr(result)
            found = f"{shown} ({type(result).__name__})"
            msg = f"{name}: the aggregate {self!r} returned {found}; it must return one number."
            raise AggregateError(msg)
        try:
            value = float(result)
        except OverflowError as error:
            msg = f"{name}: the aggregate {self!r} returned a number that is too large."
            raise AggregateError(msg) from error
        self._check_side(value, name)
        return None if math.isnan(value) else value

    def _check_side(self, value: float, name: str) -> None:
        """Refuse a number on the wrong side of the value for equal groups."""
        if self.at_equality is None or not self.is_distance:
            return
        smaller_is_better = self.good == "minimize"
        beyond = self.at_equality - value if smaller_is_better else value - self.at_equality
        if beyond > TIE * max(1, abs(value)):
            side = "below" if smaller_is_better else "above"
            msg = (
                f"{name}: the aggregate {self!r} returned {value:g}, {side} {self.at_equality:g}, its value for equal "
                'groups. If values may lie on both sides of it, use the direction "zero" or "one".'
            )
            raise AggregateError(msg)

    @property
    def _settings(self) -> tuple[object, ...]:
        return self.name, self.at_equality, self.good, self.across

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserAggregate):
            return NotImplemented
        is_same = self.function is other.function
        if isinstance(self.function, pl.Expr) and isinstance(other.function, pl.Expr):
            is_same = self.function.meta.eq(other.function)
        return is_same and self._settings == other._settings

    def __hash__(self) -> int:
        function = self.function
        hashable = tuple(function.meta.root_names()) if isinstance(function, pl.Expr) else function
        return hash((hashable, self._settings))

    def __repr__(self) -> str:
        function = self.function
        own_name = str(function) if isinstance(function, pl.Expr) else getattr(function, "__name__", "function")
        return visible(self.name or own_name)


def of_extremes(groups: GroupValues, value: Floats) -> Reduced:
    """Numbers carried by the groups with the lowest and the highest value."""
    segments = groups.segments
    if not groups.with_carriers:
        nobody = np.full(len(segments.starts), NO_ROW)
        return Reduced(value, nobody, nobody)
    return Reduced(value, segments.first_largest(-groups.estimate), segments.first_largest(groups.estimate))


@refuse_unknown_settings
def new_aggregate(
    function: Callable[[pl.DataFrame], float] | pl.Expr,
    name: str | None = None,
    *,
    equal: float | None = None,
    direction: Direction | None = None,
) -> Aggregate:
    """Make an aggregate with a name, its value for equal groups, and a direction.

    With `equal` and a direction of `"minimize"` or `"maximize"` it is a distance: chance only moves it away from
    equality. Intervals and gates then treat it like the aggregates of the library, provided that it does not grow
    when the values of groups come closer to each other.

    Args:
        function: A function of a polars frame, whatever the kind of the data, with one row for each group and metric
            (`.group`, the `by` columns, `.metric`, `.estimator`, `.estimate`, `.n`, `.denominator`, `.overall`) that
            returns one number; or a polars expression over it. Groups without a value are not in it.
        name: Name in results; by default the name of the function.
        equal: Value for equal groups, such as 0 for differences and 1 for ratios; a single group has it too. If left
            out, chance cannot be told from disparity, and a gate never fails by this aggregate.
        direction: `"minimize"` or `"maximize"` if all values lie on one side of `equal`; `"zero"` or `"one"` for signed
            values on both sides of it. By default 0 means `"minimize"` and 1 means `"maximize"`.

    Raises:
        ArgumentError: If the direction does not fit `equal`, or is left out although `equal` is neither 0 nor 1.
        AggregateError: If `function` is neither a function nor an expression; in a call, for a value beyond `equal`.

    >>> from tidyfair import demographic_parity
    >>> value = pl.col(".estimate")
    >>> times_as_often = new_aggregate(value.max() / value.min(), "times_as_often", equal=1, direction="minimize")
    >>> demographic_parity("sex", aggregate=times_as_often)
    <groupwise metric demographic_parity('sex'): times_as_often of selection_rate, minimize>
    """
    _check_function(function, "new_aggregate()")
    if name is not None and (not isinstance(name, str) or not name):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"new_aggregate(): `name` is a non-empty text, not {in_short(name)}."
        raise ArgumentError(msg)
    if name is not None:
        text("name", name)
    if direction is not None:
        one_of("direction", direction, DIRECTIONS)
    if equal is not None:
        equal = number("equal", equal, -math.inf)
    implied = None if direction is None else _EQUALITY_BY_DIRECTION.get(direction)
    if implied is not None and equal not in (None, implied):
        msg = f"new_aggregate(): the direction {direction!r} requires `equal={implied:g}`, not {equal:g}."
        raise ArgumentError(msg)
    if direction is None and equal not in (None, *_DIRECTION_BY_EQUALITY):
        way_out = '`direction="minimize"` or `direction="maximize"`'
        msg = f"new_aggregate(): {equal:g} may be the smallest or the largest possible value; specify {way_out}."
        raise ArgumentError(msg)
    if direction is None and equal is not None:
        direction = _DIRECTION_BY_EQUALITY[equal]
    at_equality = implied if equal is None else equal
    return UserAggregate(function=function, name=name, at_equality=at_equality, good=direction)


def as_aggregate(value: object, name: str, direction: Direction | None = None) -> Aggregate:
    """Convert a user's expression or function to an aggregate with a direction; return aggregates unchanged."""
    if isinstance(value, UserAggregate) and value.direction_is_unknown and direction:
        value = value.function
    if isinstance(value, Aggregate):
        return value
    _check_function(value, name)
    return new_aggregate(cast("Callable[[pl.DataFrame], float] | pl.Expr", value), direction=direction)


def _check_function(value: object, name: str) -> None:
    """Refuse anything but a user's function or an expression."""
    if isinstance(value, pl.Expr):
        return
    if not callable(value):
        accepted = "difference(), ratio() or a similar aggregate, a polars expression or a function"
        msg = f"{name}: an aggregate is {accepted}, not {in_short(value)}."
        raise AggregateError(msg)
    if str(getattr(value, "__module__", None)).startswith("tidyfair."):
        factory = getattr(value, "__name__", "")
        msg = f"{name}: `aggregate={factory}` lacks parentheses; write `aggregate={factory}()`."
        raise AggregateError(msg)
