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

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Aggregate"]

SUPPRESSED = "suppressed"
"""Why a group has no value of which cells were left out on purpose."""
Direction: TypeAlias = Literal["maximize", "minimize", "zero", "one"]
DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize", "zero", "one")
Across: TypeAlias = Literal["worst", "mean"]
Context: TypeAlias = Literal["overall", "rest"]
CONTEXTS: tuple[Context, ...] = ("overall", "rest")

_TIE = 1e-12
"""Values closer than this, relative to their size, are equal: float sums do not agree to the last bit."""

ESTIMATE, TEXT = pl.col("estimate"), pl.col("text")


def first_largest(value: pl.Expr) -> pl.Expr:
    """Place of the largest value, the first of equals; null where there is none."""
    largest = value.max()
    return ((value == largest) | (value >= largest - _TIE * largest.abs())).cast(pl.Int8).arg_max()


@dataclass(frozen=True)
class Aggregate(ABC):
    """How the values of groups become one number, as polars expressions over the groups that have a value.

    Made by `difference()`, `ratio()` and their like. The expressions read the columns `estimate`, `text` and those that
    `prepare` adds; rows are in group order.
    """

    kind: str
    across: Across = "worst"

    def __post_init__(self) -> None:
        if self.across not in ("worst", "mean"):
            raise ArgumentError.unknown("across", self.across, ["worst", "mean"])

    @property
    def direction(self) -> Direction | None:
        """Where the number is to go; None keeps the metric's direction."""
        return "minimize"

    @property
    def groups_needed(self) -> int:
        """How many groups must have a value, where there are several."""
        return 2

    @property
    def for_one_group(self) -> float | None:
        """The number where the data have a single group; None leaves it to `value`."""
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
    def reads_values_only(self) -> bool:
        """Whether it needs no more than `estimate`, `text` and `mass`, and is carried by extremes."""
        return True

    @property
    def reads_mass(self) -> bool:
        """Whether it matters how much the rows of groups weigh."""
        return False

    @property
    def is_distance(self) -> bool:
        """Whether it is 0 of equal groups and larger of all others, so that chance only adds to it."""
        return self.for_one_group == 0 and self.direction == "minimize"

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
    def value(self) -> pl.Expr:
        """The number."""

    @property
    def options(self) -> dict[str, object]:
        """What a factory may set when it is called with the feature."""
        return {}

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        """The smallest and the largest number it can give for values between these."""
        return lower, upper

    def prepare(self, rows: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
        """Rows with what the expressions read beside the values; groups of equal `keys` are compared."""
        del keys
        return rows

    def referable(self) -> pl.Expr:
        """Whether what groups are compared with has a value."""
        return pl.lit(value=True)

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        """The groups that carry it, the one with the lower value first; null where that is no group."""
        return TEXT.get(first_largest(-ESTIMATE)), TEXT.get(first_largest(ESTIMATE))

    def severity(self, value: pl.Expr) -> pl.Expr:
        """How bad a number is, to find the worst of several metrics or labels."""
        return value

    def _means_nothing(self, metric: str) -> str:
        return f"{self!r} means nothing for {metric}, which can be negative; use difference() or another metric."


@dataclass(frozen=True, repr=False, eq=False)
class UserAggregate(Aggregate):
    """A user's polars expression, or function of the tidy per-group frame, in place of one of ours."""

    kind: str = "user"
    function: Callable[[pl.DataFrame], float] | pl.Expr = field(kw_only=True)

    @property
    def for_one_group(self) -> float | None:
        return None

    @property
    def reads_values_only(self) -> bool:
        return False

    @property
    def contexts(self) -> tuple[Context, ...]:
        return ("overall",)

    def value(self) -> pl.Expr:
        """The user's expression; it reads the tidy frame, not the columns that ours read."""
        return self.function if isinstance(self.function, pl.Expr) else pl.lit(None)

    def number(self, result: object, name: str) -> float | None:
        """What came back for one outer group as a number, or an error that says what it is instead."""
        if result is None and isinstance(self.function, pl.Expr):
            return None  # an expression says so where it has no value
        if not isinstance(result, bool) and isinstance(result, Real):
            return None if math.isnan(result) else float(result)
        shown = f"{len(result)} values" if isinstance(result, Sized) and type(result) is not str else repr(result)
        msg = f"{name}: the aggregate {self!r} returned {shown} ({type(result).__name__}); it must return one number."
        raise AggregateError(msg)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserAggregate):
            return NotImplemented
        if isinstance(self.function, pl.Expr) and isinstance(other.function, pl.Expr):
            return self.function.meta.eq(other.function)
        return self.function is other.function

    def __hash__(self) -> int:
        return hash(tuple(self.function.meta.root_names()) if isinstance(self.function, pl.Expr) else self.function)

    def __repr__(self) -> str:
        return (
            str(self.function) if isinstance(self.function, pl.Expr) else getattr(self.function, "__name__", "function")
        )


def as_aggregate(given: object, name: str) -> Aggregate:
    """Accept an aggregate of ours, a polars expression or a function."""
    if isinstance(given, Aggregate):
        return given
    if isinstance(given, pl.Expr):
        return UserAggregate(function=given)
    if callable(given):
        function = cast("Callable[[pl.DataFrame], float]", given)
        if str(getattr(given, "__module__", None)).startswith("tidyfair."):
            written = getattr(given, "__name__", "")
            msg = f"{name}: `aggregate={written}` lacks its brackets; write `aggregate={written}()`."
            raise AggregateError(msg)
        return UserAggregate(function=function)
    takes = "difference(), ratio() or their like, a polars expression or a function"
    msg = f"{name}: an aggregate is {takes}, not {given!r}."
    raise AggregateError(msg)
