"""Aggregates that compare groups with each other, or with a reference: differences, ratios and their logarithms."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from tidyfair.errors import AggregateError, ArgumentError, with_article
from tidyfair.specs.aggregates import CONTEXTS, Across, Aggregate, Context, Direction, GroupValues, Reduced, of_extremes
from tidyfair.specs.arguments import is_value
from tidyfair.specs.segments import NO_ROW, Floats, taken
from tidyfair.specs.signatures import refuse_unknown_settings

__all__ = ["difference", "log_ratio", "ratio"]

_IN_WORDS = {"majority": "the largest group", "overall": "all rows", "rest": "all others"}
_REFERENCES = (*_IN_WORDS, "range")
REFERENCES_IN_WORDS = (
    ", ".join(f"{reference!r} ({words})" for reference, words in _IN_WORDS.items())
    + " or 'range' (the largest minus the smallest value)"
)
"""References other than groups, for messages."""
_PRIVILEGED = ("privileged",)
"""The privileged side, as the group that the other side is compared with."""


@dataclass(frozen=True, repr=False)
class Contrast(Aggregate):
    """Comparison of groups with each other, or with a reference."""

    to: Any = None
    signed: bool | None = None

    is_relative: ClassVar[bool]
    """True if values are divided by each other: limits are on the log scale, and negative values are undefined."""
    is_quotient: ClassVar[bool] = False
    """True if the value itself is one over the other."""
    noun: ClassVar[str]
    """The comparison of two groups, with its preposition."""
    operation: ClassVar[str]
    """The word between the values of a group and of the reference."""
    range_words: ClassVar[str]
    """The rule by which the range follows from the values of all groups."""
    unsigned_words: ClassVar[str]
    """The rule by which the number follows from the comparisons of groups with the reference."""

    def __post_init__(self) -> None:
        super().__post_init__()
        group: object = self.to
        if isinstance(group, list):
            object.__setattr__(self, "to", tuple(cast("list[object]", group)))  # what is equal must hash equal
        elif not is_value(group) or callable(group):
            msg = f"{self.kind}: `to=` takes the value of a group, not {with_article(type(group).__name__)}."
            raise AggregateError(msg)
        if not (self.signed is None or isinstance(self.signed, bool)):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise ArgumentError.not_one_of("signed", self.signed, [True, False])
        if self.signed and self.to == "range":
            raise AggregateError(self._no_sign())

    @property
    def options(self) -> dict[str, object]:
        return {"to": self.to, "signed": self.signed}

    @abstractmethod
    def contrast(self, value: Floats, other: Floats) -> Floats:
        """Compare values with others, with the sign that the comparison has."""

    def unsigned(self, contrast: Floats) -> Floats:
        """Contrasts as distances from equality, whichever of the two is larger."""
        return abs(contrast)

    def contrast_of_range(self, lowest: Floats, highest: Floats) -> Floats:
        """Compare the two ends of a range."""
        return self.contrast(highest, lowest)

    def limits_of_range(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Limits of the range from those of the largest distance, which is one of logarithms if `is_relative`."""
        return lower, upper

    def limits_of_quotient(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Limits of a relative contrast from those of the quotient of two groups."""
        return lower, upper

    def alike_within(self, margin: float) -> tuple[float, float] | None:
        """The values of groups that count as alike within a margin, of ratios a share; None where it allows any."""
        if not self.is_relative:
            return -margin, margin
        one, least = np.array([1.0]), np.array([1 - margin])
        return (self.contrast(least, one).item(), self.contrast(one, least).item()) if margin < 1 else None

    def unsigned_limits(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Limits without a sign from those with one."""
        nearer, farther = np.minimum(abs(lower), abs(upper)), np.maximum(abs(lower), abs(upper))
        return np.where((lower <= 0) & (upper >= 0), 0.0, nearer), farther

    @property
    def direction(self) -> Direction:
        return "zero" if self.signed else "minimize"

    @property
    def contexts(self) -> tuple[Context, ...]:
        return (self.to,) if self.to in CONTEXTS else ()

    @property
    def compares_with_context(self) -> bool:
        return bool(self.contexts)

    @property
    def compares_with_majority(self) -> bool:
        return self.to == "majority"

    @property
    def is_signed(self) -> bool:
        return bool(self.signed)

    def without_sign(self) -> Aggregate:
        return replace(self, signed=False) if self.signed else self

    @property
    def reference(self) -> object:
        return None if self.to is None or self.to in _REFERENCES else self.to

    def in_words(self, of: str) -> str:
        if self.to == "range":
            return f"{self.noun} {of} between the groups: {self.range_words}"
        if self.to == _PRIVILEGED:
            subject = f"{self.noun} {of} between the unprivileged and the privileged"
            how = f"unprivileged {self.operation} privileged" if self.signed else self.unsigned_words
            return f"{subject}: {how}"
        reference = _IN_WORDS.get(str(self.to)) or f"the group {self.to!r}"
        subject = f"{self.noun} {of} between a group and {reference}"
        how = f"group {self.operation} {reference}" if self.signed else self.unsigned_words
        return f"{subject}: {how}, for the group that is farthest from equality"

    def in_closed_form(self, metrics: int) -> bool:
        # the sign of the worst of several metrics is that of whichever is the worst
        return not self.contexts and (metrics == 1 or (self.across == "worst" and not self.signed))

    def resolved(self, *, sides: bool, negative: str | None, direction: Direction) -> Aggregate:
        super().resolved(sides=sides, negative=negative, direction=direction)
        if sides and self.to in (None, "privileged", _PRIVILEGED):
            return replace(self, to=_PRIVILEGED, signed=self.signed is not False)
        if self.to is None and self.signed:
            raise AggregateError(self._no_sign())
        return replace(self, to="range" if self.to is None else self.to, signed=bool(self.signed))

    def reduce(self, groups: GroupValues) -> Reduced:
        if self.to != "range":
            return self._to_reference(groups)
        lowest, highest = groups.segments.minimum(groups.estimate), groups.segments.maximum(groups.estimate)
        return of_extremes(groups, self.contrast_of_range(lowest, highest))

    def severity(self, value: Floats) -> Floats:
        return abs(value)

    def _to_reference(self, groups: GroupValues) -> Reduced:
        """The contrast of the group that is farthest from the reference."""
        segments, estimate = groups.segments, groups.estimate
        compared, reference_row = estimate, np.full(len(segments.starts), NO_ROW)
        if self.contexts:
            reference, referable = groups.contexts[self.contexts[0]], True
        else:
            reference_row = segments.first_where(groups.is_reference)
            if self.compares_with_majority:
                # nobody knows the largest group where the size of one is hidden
                hidden = segments.any(groups.suppressed)
                reference_row = np.where(hidden, NO_ROW, segments.first_largest(groups.size))
            of_run = taken(estimate, reference_row, np.nan)
            reference, referable = segments.to_rows(of_run), ~np.isnan(of_run)
            # a group is not compared with itself
            compared = np.where(np.arange(len(estimate)) == segments.to_rows(reference_row), np.nan, estimate)
        contrast = self.contrast(compared, reference)
        farthest = segments.first_largest(self.severity(contrast))
        value = taken(contrast, farthest, np.nan)
        is_higher = taken(reference <= estimate, farthest, missing=False)
        low, high = np.where(is_higher, reference_row, farthest), np.where(is_higher, farthest, reference_row)
        alone = farthest == NO_ROW
        low, high = np.where(alone, NO_ROW, low), np.where(alone, NO_ROW, high)
        return Reduced(value if self.signed else self.unsigned(value), low, high, referable)

    def _no_sign(self) -> str:
        way_out = f'`aggregate={self.kind}(to="<a group>", signed=True)`'
        return (
            f"{self!r}: a range has no sign; compare two sides with `privileged(…)`, or give a reference with "
            f"{way_out}."
        )

    def __repr__(self) -> str:
        # unsigned is the default, but not between two sides
        is_shown = self.signed or (self.signed is False and self.to in (None, _PRIVILEGED))
        options = {
            "to": self.to,
            "signed": self.signed if is_shown else None,
            "across": None if self.across == "worst" else self.across,
        }
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in options.items() if value is not None)})"


class Difference(Contrast):
    """One value minus the other."""

    kind = "difference"
    is_relative = False
    is_difference = True
    noun = "difference in"
    operation = "minus"
    range_words = "largest value minus smallest value"
    unsigned_words = "larger value minus smaller value"

    @property
    def error_factor(self) -> float | None:
        # the farthest of several groups, with its sign, may be another one
        is_of_several = self.signed and self.to != _PRIVILEGED
        return None if self.contexts or is_of_several else 2.0

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        width = upper - lower
        return -width if self.signed else 0, width

    def contrast(self, value: Floats, other: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return value - other


class Ratio(Contrast):
    """One value over the other; 1 is equality, and the smaller of q and 1/q is the unsigned value."""

    kind = "ratio"
    is_relative = is_quotient = refuses_negative = True
    noun = "ratio of"
    operation = "divided by"
    range_words = "smallest value divided by largest value"
    unsigned_words = "smaller value divided by larger value"

    @property
    def direction(self) -> Direction:
        return "one" if self.signed else "maximize"

    @property
    def equality(self) -> float | None:
        return 1.0

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        return 0, math.inf if self.signed else 1

    def severity(self, value: Floats) -> Floats:
        return -self.unsigned(value)

    def contrast(self, value: Floats, other: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return value / other

    def unsigned(self, contrast: Floats) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(contrast, 1 / contrast)

    def contrast_of_range(self, lowest: Floats, highest: Floats) -> Floats:
        return self.contrast(lowest, highest)

    def limits_of_range(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        return np.exp(-upper), np.exp(-lower)

    def unsigned_limits(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        one, other = self.unsigned(lower), self.unsigned(upper)
        return np.minimum(one, other), np.where((lower <= 1) & (upper >= 1), 1.0, np.maximum(one, other))


class LogRatio(Contrast):
    """Logarithm of one value over the other."""

    kind = "log_ratio"
    is_relative = refuses_negative = True
    noun = "log ratio of"
    operation = "divided by"
    range_words = "logarithm of largest value divided by smallest value"
    unsigned_words = "logarithm of larger value divided by smaller value"

    def range(self, lower: float, upper: float) -> tuple[float, float]:
        del lower, upper
        return -math.inf if self.signed else 0, math.inf

    def contrast(self, value: Floats, other: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            logarithm = np.log(value / other)
        # two values of 0 are equal
        return np.where(value == other, 0.0, logarithm)

    def limits_of_quotient(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(lower, 0)), np.log(np.maximum(upper, 0))


@refuse_unknown_settings
def difference(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """Compare groups by how far apart they are.

    Args:
        to: The reference: `"range"` (largest minus smallest), `"overall"` (all groups together),
            `"rest"` (all other groups together), `"majority"` (the largest group), or a group: its value, a tuple of
            values for several columns, or its text in results. Against a reference the group farthest from it counts.
            By default the range for columns, and the privileged side for `privileged(…)`.
        signed: Signed difference, group minus reference; by default True against the privileged side.
        across: `"worst"` or `"mean"` difference of several metrics or labels. Signed differences that cancel have a
            mean of 0.

    >>> difference(to="overall")
    difference(to='overall')
    """
    return Difference(across, to, signed)


@refuse_unknown_settings
def ratio(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """Compare groups by the smaller over the larger value, between 0 and 1 (1 is equality).

    Arguments are those of `difference`. The range is the smallest over the largest value; against a reference the group
    whose ratio is farthest from 1 counts, as the smaller of q and 1/q, or as q itself when `signed`. x/0 is infinite,
    0/0 undefined. Refused for metrics that can be negative.

    >>> ratio(to=("White", "male"))
    ratio(to=('White', 'male'))
    """
    return Ratio(across, to, signed)


@refuse_unknown_settings
def log_ratio(to: object = None, *, signed: bool | None = None, across: Across = "worst") -> Aggregate:
    """Compare groups on the logarithmic scale, from 0 (equality) to infinity.

    Arguments are those of `difference`. The range is the logarithm of the largest over the smallest value; x/0 is
    infinite, and equal values, zeros included, are 0 apart. Refused for metrics that can be negative.

    >>> log_ratio()
    log_ratio()
    """
    return LogRatio(across, to, signed)
