"""Aggregates that compare groups with each other, or with a reference: differences, ratios and their logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from tidyfair.errors import AggregateError, ArgumentError
from tidyfair.specs.aggregates import Aggregate, Reduced, of_extremes
from tidyfair.specs.arguments import is_value
from tidyfair.specs.segments import NO_ROW, taken

if TYPE_CHECKING:
    from tidyfair.specs.aggregates import Across, Context, Direction, GroupValues
    from tidyfair.specs.segments import Floats, Integers

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
        elif not is_value(named) or callable(named):
            msg = f"{self.kind}: `to=` names a group by its value, not by a {type(named).__name__}."
            raise AggregateError(msg)
        if not (self.signed is None or isinstance(self.signed, bool)):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
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
        # the sign of the worst of several metrics is that of whichever is the worst
        return not self.contexts and (metrics == 1 or (self.across == "worst" and not self.signed))

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        if self.kind == "ratio":
            return 0, math.inf if self.signed else 1
        width = upper - lower if self.kind == "difference" else math.inf
        return -width if self.signed else 0, width

    def bound(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        del direction
        if negative and self.kind != "difference":
            raise AggregateError(self._means_nothing(negative))
        if sides and self.to in (None, "privileged", ("privileged",)):
            return replace(self, to=("privileged",), signed=self.signed is not False)
        if self.to is None and self.signed:
            raise AggregateError(self._no_sign())
        return replace(self, to="range" if self.to is None else self.to, signed=bool(self.signed))

    def reduce(self, groups: GroupValues) -> Reduced:
        return self._range(groups) if self.to == "range" else self._to_reference(groups)

    def severity(self, value: Floats) -> Floats:
        return -self._unsigned(value) if self.kind == "ratio" else abs(value)

    def _range(self, groups: GroupValues) -> Reduced:
        """The contrast of the largest and the smallest value."""
        lowest, highest = groups.segments.minimum(groups.estimate), groups.segments.maximum(groups.estimate)
        if self.kind == "ratio":
            return of_extremes(groups, self._contrast(lowest, highest))
        return of_extremes(groups, self._contrast(highest, lowest))

    def _to_reference(self, groups: GroupValues) -> Reduced:
        """The contrast of the group that is farthest from what groups are compared with."""
        import numpy as np

        segments, estimate = groups.segments, groups.estimate
        compared, beside = estimate, np.full(len(segments.starts), NO_ROW)
        if self.contexts:
            reference, referable = groups.contexts[self.contexts[0]], True
        else:
            beside = _largest_group(groups) if self.to == "majority" else segments.first_where(groups.is_reference)
            of_run = taken(estimate, beside, np.nan)
            reference, referable = segments.spread(of_run), ~np.isnan(of_run)
            # a group is not compared with itself
            compared = np.where(np.arange(len(estimate)) == segments.spread(beside), np.nan, estimate)
        contrast = self._contrast(compared, reference)
        farthest = segments.first_largest(self.severity(contrast))
        value = taken(contrast, farthest, np.nan)
        higher = taken(reference <= estimate, farthest, missing=False)
        low, high = np.where(higher, beside, farthest), np.where(higher, farthest, beside)
        alone = farthest == NO_ROW
        low, high = np.where(alone, NO_ROW, low), np.where(alone, NO_ROW, high)
        return Reduced(value if self.signed else self._unsigned(value), low, high, referable)

    def _contrast(self, value: Floats, other: Floats) -> Floats:
        import numpy as np

        if self.kind == "difference":
            with np.errstate(invalid="ignore"):
                return value - other
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = value / other
            if self.kind == "ratio":
                return quotient
            # what never happens in either group is as likely in both
            return np.where(value == other, 0.0, np.log(quotient))

    def _unsigned(self, contrast: Floats) -> Floats:
        import numpy as np

        if self.kind != "ratio":
            return abs(contrast)
        with np.errstate(divide="ignore"):
            return np.minimum(contrast, 1 / contrast)

    def _no_sign(self) -> str:
        way_out = f'`aggregate={self.kind}(to="<a group>", signed=True)`'
        return f"{self!r}: a range has no sign; compare two sides, `privileged(…)`, or name a reference, {way_out}."

    def __repr__(self) -> str:
        across = None if self.across == "worst" else self.across
        # unsigned is what a comparison is unless it is between two sides
        signed = self.signed or (False if self.signed is False and self.to in (None, ("privileged",)) else None)
        options = {"to": self.to, "signed": signed, "across": across}
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in options.items() if value is not None)})"


def _largest_group(groups: GroupValues) -> Integers:
    """The row of the largest group of each run; none where the size of a group is hidden."""
    import numpy as np

    hidden = groups.segments.any(groups.suppressed)
    return np.where(hidden, NO_ROW, groups.segments.first_largest(groups.size))


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
