"""How the values of groups become one number: differences, ratios, extremes and spread."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sized
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import AggregateError, ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = [
    "Aggregate",
    "coefficient_of_variation",
    "difference",
    "group_maximum",
    "group_minimum",
    "mean_absolute_deviation",
    "ratio",
    "standard_deviation",
]

Direction: TypeAlias = Literal["maximize", "minimize", "zero", "one"]
DIRECTIONS: tuple[Direction, ...] = ("maximize", "minimize", "zero", "one")
Across: TypeAlias = Literal["worst", "mean"]
Context: TypeAlias = Literal["overall", "rest"]
CONTEXTS: tuple[Context, ...] = ("overall", "rest")

_REFERENCES = ("range", "overall", "rest", "majority")
_TIE = 1e-12
"""Values closer than this, relative to their size, are equal: float sums do not agree to the last bit."""

_ESTIMATE, _TEXT = pl.col("estimate"), pl.col("text")


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

    def bound(self, *, sides: bool, negative: str | None) -> Aggregate:
        """The aggregate as it applies to a `by` (two sides or not), and to metrics of which one can be negative."""
        del sides, negative
        return self

    @abstractmethod
    def value(self) -> pl.Expr:
        """The number."""

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        """The smallest and the largest number it can give for values between these."""
        return lower, upper

    def prepare(self, rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
        """Rows with what the expressions read beside the values; groups of equal `keys` are compared."""
        del keys
        return rows

    def referable(self) -> pl.Expr:
        """Whether what groups are compared with has a value."""
        return pl.lit(value=True)

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        """The groups that carry it, the one with the lower value first; null where that is no group."""
        return _TEXT.get(first_largest(-_ESTIMATE)), _TEXT.get(first_largest(_ESTIMATE))

    def severity(self, value: pl.Expr) -> pl.Expr:
        """How bad a number is, to find the worst of several metrics or labels."""
        return value

    def combine(self, keys: Collection[str]) -> list[pl.Expr]:
        """Several numbers as one, the worst or the mean: `value`, `low`, `high` and, unless it is a key, `level`."""
        carried = [pl.col(name) for name in ("low", "high", "level") if name not in keys]
        if self.across == "mean":
            return [pl.col("value").mean(), *(pl.when(pl.len() == 1).then(each.first()) for each in carried)]
        worst = first_largest(self.severity(pl.col("value")))
        return [each.get(worst) for each in (pl.col("value"), *carried)]

    def _means_nothing(self, metric: str) -> str:
        return f"{self!r} means nothing for {metric}, which can be negative; use difference() or another metric."


@dataclass(frozen=True, repr=False)
class _Contrast(Aggregate):
    """Groups compared with each other, or with a reference."""

    to: Any = None
    signed: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        named: object = self.to
        if isinstance(named, list):
            object.__setattr__(self, "to", tuple(cast("list[object]", named)))  # what is equal must hash equal
        elif not isinstance(named, Hashable) or isinstance(named, pl.Expr):
            msg = f"{self.kind}: `to=` names a group by its value, not by a {type(named).__name__}."
            raise AggregateError(msg)
        if self.signed not in (None, True, False):
            raise ArgumentError.unknown("signed", self.signed, [True, False])
        if self.signed and self.to == "range":
            raise AggregateError(self._no_sign())

    @property
    def direction(self) -> Direction:
        if self.kind == "difference":
            return "zero" if self.signed else "minimize"
        return "one" if self.signed else "maximize"

    @property
    def for_one_group(self) -> float | None:
        return 0.0 if self.kind == "difference" else 1.0

    @property
    def contexts(self) -> tuple[Context, ...]:
        return ("overall",) if self.to == "overall" else ("rest",) if self.to == "rest" else ()

    @property
    def reference(self) -> object:
        return None if self.to is None or self.to in _REFERENCES else self.to

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        if self.kind == "ratio":
            return 0, math.inf if self.signed else 1
        return lower - upper if self.signed else 0, upper - lower

    def bound(self, *, sides: bool, negative: str | None) -> Aggregate:
        if negative and self.kind == "ratio":
            raise AggregateError(self._means_nothing(negative))
        if self.to is None and sides:
            return replace(self, to=("privileged",), signed=self.signed is not False)
        if self.to is None and self.signed:
            raise AggregateError(self._no_sign())
        return replace(self, to="range" if self.to is None else self.to, signed=bool(self.signed))

    def prepare(self, rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
        if self.to == "range":
            return rows
        if self.contexts:
            beside = rows.with_columns(
                pl.col(self.contexts[0]).alias("reference"), pl.lit(None, pl.String).alias("reference_text")
            )
        else:
            chosen = pl.col("is_reference")
            if self.to == "majority":
                largest = rows.group_by(keys).agg(pl.col("unit").get(first_largest(pl.col("size"))).alias("largest"))
                rows = rows.join(largest, on=keys, how="left", maintain_order="left")
                chosen = pl.col("unit") == pl.col("largest")
            own = rows.filter(chosen).select(*keys, reference="estimate", reference_text="text", other="unit")
            beside = rows.join(own, on=keys, how="left", maintain_order="left")
            # a group is not compared with itself
            beside = beside.with_columns(compared=pl.when(pl.col("unit") != pl.col("other")).then("estimate"))
        compared = pl.col("compared" if "compared" in beside.columns else "estimate")
        reference = pl.col("reference")
        contrast = compared - reference if self.kind == "difference" else compared / reference
        return beside.with_columns(contrast.fill_nan(None).alias("contrast")).with_columns(
            self.severity(pl.col("contrast")).alias("severity")
        )

    def value(self) -> pl.Expr:
        if self.to == "range":
            low, high = _ESTIMATE.min(), _ESTIMATE.max()
            return high - low if self.kind == "difference" else low / high
        farthest = pl.col("contrast").get(first_largest(pl.col("severity")))
        return farthest if self.signed else self._unsigned(farthest)

    def referable(self) -> pl.Expr:
        return pl.lit(value=True) if self.to == "range" or self.contexts else pl.col("reference").is_not_null().any()

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        if self.to == "range":
            return super().carriers()
        farthest = first_largest(pl.col("severity"))
        group, other = _TEXT.get(farthest), pl.col("reference_text").get(farthest)
        higher = (pl.col("reference") <= _ESTIMATE).get(farthest)
        return pl.when(higher).then(other).otherwise(group), pl.when(higher).then(group).otherwise(other)

    def severity(self, value: pl.Expr) -> pl.Expr:
        return value.abs() if self.kind == "difference" else -self._unsigned(value)

    def _unsigned(self, contrast: pl.Expr) -> pl.Expr:
        return contrast.abs() if self.kind == "difference" else pl.min_horizontal(contrast, 1 / contrast)

    def _no_sign(self) -> str:
        return f'{self!r}: a range has no sign; name what to compare with, such as `to="overall"` or `to="<a group>"`.'

    def __repr__(self) -> str:
        across = None if self.across == "worst" else self.across
        # unsigned is what a comparison is unless it is between two sides
        signed = self.signed or (False if self.signed is False and self.to in (None, ("privileged",)) else None)
        options = {"to": self.to, "signed": signed, "across": across}
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in options.items() if value is not None)})"


@dataclass(frozen=True, repr=False)
class _Spread(Aggregate):
    """One number that describes the values of all groups."""

    @property
    def direction(self) -> Direction | None:
        return None if self.for_one_group is None else "minimize"

    @property
    def groups_needed(self) -> int:
        return 1 if self.for_one_group is None else 2

    @property
    def for_one_group(self) -> float | None:
        return None if self.kind in {"group_minimum", "group_maximum"} else 0.0

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        # values at both ends are half the width from their mean; relative to it, they may be any number of times as far
        width = math.inf if self.kind == "coefficient_of_variation" else (upper - lower) / 2
        return (lower, upper) if self.for_one_group is None else (0, width)

    def bound(self, *, sides: bool, negative: str | None) -> Aggregate:
        del sides
        if negative and self.kind == "coefficient_of_variation":
            raise AggregateError(self._means_nothing(negative))
        return self

    def value(self) -> pl.Expr:
        mean, deviation = _ESTIMATE.mean(), _ESTIMATE.std(ddof=0)
        return {
            "group_minimum": _ESTIMATE.min(),
            "group_maximum": _ESTIMATE.max(),
            "standard_deviation": deviation,
            "coefficient_of_variation": deviation / mean,
            "mean_absolute_deviation": (_ESTIMATE - mean).abs().mean(),
        }[self.kind]

    def severity(self, value: pl.Expr) -> pl.Expr:
        return -value if self.kind == "group_minimum" else value

    def __repr__(self) -> str:
        return f"{self.kind}({'' if self.across == 'worst' else f'across={self.across!r}'})"


@dataclass(frozen=True, repr=False)
class FarthestPair(_Spread):
    """The largest of values that pairs of groups share: it is carried by both groups of the pair."""

    kind: str = "group_maximum"

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        largest = _TEXT.filter(_ESTIMATE.max() == _ESTIMATE)
        return largest.first(), largest.last()


@dataclass(frozen=True, repr=False, eq=False)
class UserAggregate(Aggregate):
    """A user's polars expression, or function of the tidy per-group frame, in place of one of ours."""

    kind: str = "user"
    function: Callable[[pl.DataFrame], float] | pl.Expr = field(kw_only=True)

    @property
    def for_one_group(self) -> float | None:
        return None

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


def difference(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """How far apart groups are.

    Args:
        to: What groups are compared with: `"range"` (largest minus smallest), `"overall"` (all groups together),
            `"rest"` (all other groups together), `"majority"` (the largest group), or a group: its value, a tuple of
            values for several columns, or its text in results. Against a reference the farthest group counts. Left
            out: the range for columns, the privileged side for `privileged(…)`.
        signed: Group minus reference with its sign; True for `privileged(…)` unless said otherwise.
        across: Several metrics, or labels, give the `"worst"` or the `"mean"` of their differences. Signed differences
            that cancel have a mean of 0.

    >>> difference(to="overall")
    difference(to='overall')
    """
    return _Contrast("difference", across, to, signed)


def ratio(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """How many times smaller the value of one group is than that of another, between 0 and 1 (1 is equality).

    Arguments are those of `difference`. The range is the smallest over the largest value; against a reference the group
    whose ratio is farthest from 1 counts, as the smaller of q and 1/q, or as q itself when `signed`. x/0 is infinite,
    0/0 undefined. Refused for metrics that can be negative.

    >>> ratio(to=("White", "male"))
    ratio(to=('White', 'male'))
    """
    return _Contrast("ratio", across, to, signed)


def group_minimum(*, across: Across = "worst") -> Aggregate:
    """The smallest value of a group. It keeps the direction of the metric.

    >>> group_minimum()
    group_minimum()
    """
    return _Spread("group_minimum", across)


def group_maximum(*, across: Across = "worst") -> Aggregate:
    """The largest value of a group. It keeps the direction of the metric.

    >>> group_maximum()
    group_maximum()
    """
    return _Spread("group_maximum", across)


def standard_deviation(*, across: Across = "worst") -> Aggregate:
    """Standard deviation of the groups' values, each group counting the same (divided by their number).

    >>> standard_deviation()
    standard_deviation()
    """
    return _Spread("standard_deviation", across)


def coefficient_of_variation(*, across: Across = "worst") -> Aggregate:
    """Standard deviation of the groups' values over their mean. Refused for metrics that can be negative.

    >>> coefficient_of_variation()
    coefficient_of_variation()
    """
    return _Spread("coefficient_of_variation", across)


def mean_absolute_deviation(*, across: Across = "worst") -> Aggregate:
    """Mean distance of the groups' values from their mean.

    >>> mean_absolute_deviation()
    mean_absolute_deviation()
    """
    return _Spread("mean_absolute_deviation", across)


def as_aggregate(given: object, name: str) -> Aggregate:
    """Accept an aggregate of ours, a polars expression or a function."""
    if isinstance(given, Aggregate):
        return given
    if isinstance(given, pl.Expr):
        return UserAggregate(function=given)
    if callable(given):
        function = cast("Callable[[pl.DataFrame], float]", given)
        if getattr(given, "__module__", None) == __name__:
            written = getattr(given, "__name__", "")
            msg = f"{name}: `aggregate={written}` lacks its brackets; write `aggregate={written}()`."
            raise AggregateError(msg)
        return UserAggregate(function=function)
    takes = "difference(), ratio() or their like, a polars expression or a function"
    msg = f"{name}: an aggregate is {takes}, not {given!r}."
    raise AggregateError(msg)
