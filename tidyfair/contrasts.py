"""Aggregates that compare groups with each other, or with a reference: differences, ratios and their logarithms."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.aggregates import ESTIMATE, SUPPRESSED, TEXT, Aggregate, first_largest
from tidyfair.errors import AggregateError, ArgumentError

if TYPE_CHECKING:
    from tidyfair.aggregates import Across, Context, Direction

__all__ = ["difference", "log_ratio", "ratio"]

_REFERENCES = ("range", "overall", "rest", "majority")


@dataclass(frozen=True, repr=False)
class Contrast(Aggregate):
    """Groups compared with each other, or with a reference."""

    to: Any = None
    signed: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        named: object = self.to
        if isinstance(named, list):
            object.__setattr__(self, "to", tuple(cast("list[object]", named)))  # what is equal must hash equal
        elif not isinstance(named, Hashable) or isinstance(named, pl.Expr) or callable(named):
            msg = f"{self.kind}: `to=` names a group by its value, not by a {type(named).__name__}."
            raise AggregateError(msg)
        if self.signed not in (None, True, False):
            raise ArgumentError.unknown("signed", self.signed, [True, False])
        if self.signed and self.to == "range":
            raise AggregateError(self._no_sign())

    @property
    def direction(self) -> Direction:
        if self.kind == "ratio":
            return "one" if self.signed else "maximize"
        return "zero" if self.signed else "minimize"

    @property
    def equality(self) -> float | None:
        return 1.0 if self.kind == "ratio" else 0.0

    @property
    def contexts(self) -> tuple[Context, ...]:
        return ("overall",) if self.to == "overall" else ("rest",) if self.to == "rest" else ()

    @property
    def reference(self) -> object:
        return None if self.to is None or self.to in _REFERENCES else self.to

    @property
    def error_factor(self) -> float | None:
        # the farthest of several groups, with its sign, may be another one
        several = self.signed and self.to != ("privileged",)
        return None if self.kind != "difference" or self.contexts or several else 2.0

    def in_words(self, of: str) -> str:
        if self.to == "range":
            how = {"difference": "largest less smallest", "ratio": "smallest over largest"}
            return f"{how.get(self.kind, 'logarithm of largest over smallest')} {of}"
        known = {"overall": "all rows", "rest": "all others", "majority": "the largest group"}
        other = f"that of {known.get(str(self.to), self.to[0] if self.to == ('privileged',) else self.to)}"
        if self.signed:
            how = {"difference": f"{of} less {other}", "ratio": f"{of} over {other}"}
            return how.get(self.kind, f"logarithm of {of} over {other}")
        what = {"difference": "largest distance", "ratio": "smallest ratio, below 1,"}
        return f"{what.get(self.kind, 'largest logarithmic ratio')} of {of} and {other}"

    def in_closed_form(self, metrics: int) -> bool:
        several = self.signed and self.to != ("privileged",)
        return not self.contexts and not several and (metrics == 1 or self.across == "worst")

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        if self.kind == "ratio":
            return 0, math.inf if self.signed else 1
        width = upper - lower if self.kind == "difference" else math.inf
        return -width if self.signed else 0, width

    @property
    def reads_values_only(self) -> bool:
        return self.to == "range"

    def bound(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        del direction
        if negative and self.kind != "difference":
            raise AggregateError(self._means_nothing(negative))
        if sides and self.to in (None, "privileged", ("privileged",)):
            return replace(self, to=("privileged",), signed=self.signed is not False)
        if self.to is None and self.signed:
            raise AggregateError(self._no_sign())
        return replace(self, to="range" if self.to is None else self.to, signed=bool(self.signed))

    def prepare(self, rows: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
        if self.to == "range":
            return rows
        if self.contexts:
            beside = rows.with_columns(
                pl.col(self.contexts[0]).alias("reference"), pl.lit(None, pl.String).alias("reference_text")
            )
        else:
            chosen = pl.col("is_reference")
            if self.to == "majority":
                # with a group of unknown size nobody knows which one is the largest
                known = ~(pl.col("status") == SUPPRESSED).any()
                largest = pl.when(known).then(pl.col("unit").get(first_largest(pl.col("size")))).alias("largest")
                largest = rows.group_by(keys).agg(largest)
                rows = rows.join(largest, on=keys, how="left", maintain_order="left")
                chosen = pl.col("unit") == pl.col("largest")
            own = rows.filter(chosen).select(*keys, reference="estimate", reference_text="text", other="unit")
            beside = rows.join(own, on=keys, how="left", maintain_order="left")
            # a group is not compared with itself
            beside = beside.with_columns(compared=pl.when(pl.col("unit") != pl.col("other")).then("estimate"))
        compared = pl.col("estimate" if self.contexts else "compared")
        reference = pl.col("reference")
        contrast = self._contrast(compared, reference)
        contrasted = beside.with_columns(contrast.alias("contrast")).with_columns(pl.col("contrast").fill_nan(None))
        return contrasted.with_columns(self.severity(pl.col("contrast")).alias("severity"))

    def value(self) -> pl.Expr:
        if self.to == "range":
            low, high = ESTIMATE.min(), ESTIMATE.max()
            return self._contrast(low, high) if self.kind == "ratio" else self._contrast(high, low)
        farthest = pl.col("contrast").get(first_largest(pl.col("severity")))
        return farthest if self.signed else self._unsigned(farthest)

    def referable(self) -> pl.Expr:
        return pl.lit(value=True) if self.to == "range" or self.contexts else pl.col("reference").is_not_null().any()

    def carriers(self) -> tuple[pl.Expr, pl.Expr]:
        if self.to == "range":
            return super().carriers()
        farthest = first_largest(pl.col("severity"))
        group, other = TEXT.get(farthest), pl.col("reference_text").get(farthest)
        higher = (pl.col("reference") <= ESTIMATE).get(farthest)
        return pl.when(higher).then(other).otherwise(group), pl.when(higher).then(group).otherwise(other)

    def severity(self, value: pl.Expr) -> pl.Expr:
        return -self._unsigned(value) if self.kind == "ratio" else value.abs()

    def _contrast(self, value: pl.Expr, other: pl.Expr) -> pl.Expr:
        if self.kind == "difference":
            return value - other
        if self.kind == "ratio":
            return value / other
        # what never happens in either group is as likely in both
        return pl.when(value == other).then(0.0).otherwise((value / other).log())

    def _unsigned(self, contrast: pl.Expr) -> pl.Expr:
        return pl.min_horizontal(contrast, 1 / contrast) if self.kind == "ratio" else contrast.abs()

    def _no_sign(self) -> str:
        way_out = f'`aggregate={self.kind}(to="<a group>", signed=True)`'
        return f"{self!r}: a range has no sign; compare two sides, `privileged(…)`, or name a reference, {way_out}."

    def __repr__(self) -> str:
        across = None if self.across == "worst" else self.across
        # unsigned is what a comparison is unless it is between two sides
        signed = self.signed or (False if self.signed is False and self.to in (None, ("privileged",)) else None)
        options = {"to": self.to, "signed": signed, "across": across}
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in options.items() if value is not None)})"


def difference(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """How far apart groups are.

    Args:
        to: What groups are compared with: `"range"` (largest minus smallest), `"overall"` (all groups together),
            `"rest"` (all other groups together), `"majority"` (the largest group), or a group: its value, a tuple of
            values for several columns, or its text in results. Against a reference the farthest group counts. Left
            out: the range for columns, the privileged side for `privileged(…)`.
        signed: Group minus reference with its sign; True against the privileged side unless said otherwise.
        across: Several metrics, or labels, give the `"worst"` or the `"mean"` of their differences. Signed differences
            that cancel have a mean of 0.

    >>> difference(to="overall")
    difference(to='overall')
    """
    return Contrast("difference", across, to, signed)


def ratio(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """How many times smaller the value of one group is than that of another, between 0 and 1 (1 is equality).

    Arguments are those of `difference`. The range is the smallest over the largest value; against a reference the group
    whose ratio is farthest from 1 counts, as the smaller of q and 1/q, or as q itself when `signed`. x/0 is infinite,
    0/0 undefined. Refused for metrics that can be negative.

    >>> ratio(to=("White", "male"))
    ratio(to=('White', 'male'))
    """
    return Contrast("ratio", across, to, signed)


def log_ratio(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """How far apart groups are on the logarithmic scale, from 0 (equality) to infinity.

    Arguments are those of `difference`. The range is the logarithm of the largest over the smallest value; x/0 is
    infinite, and equal values, zeros included, are 0 apart. Refused for metrics that can be negative.

    >>> log_ratio()
    log_ratio()
    """
    return Contrast("log_ratio", across, to, signed)
