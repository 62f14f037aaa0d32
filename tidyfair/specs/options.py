"""The options of a call: names, types and defaults, and the object that carries them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from textwrap import fill
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from tidyfair.errors import ArgumentError, in_short
from tidyfair.specs.columns import ColumnLike
from tidyfair.specs.forecasts import Prediction, TruthLike
from tidyfair.specs.groups import Privileged, Treatment
from tidyfair.specs.operating_points import OperatingPoint
from tidyfair.specs.option_table import OPTIONS, Estimator, Interval, OnUndefined, Option
from tidyfair.specs.result_columns import CUT_OPTIONS
from tidyfair.specs.signatures import explaining
from tidyfair.specs.survey_designs import Design, ReplicateWeights, SurveyDesign

Function = TypeVar("Function", bound="Callable[..., Any]")
_Thresholds: TypeAlias = "Mapping[str, Mapping[Any, float]] | Mapping[tuple[str, ...], Mapping[Any, float]]"
Threshold: TypeAlias = "float | Sequence[float] | _Thresholds | OperatingPoint"
"""One threshold, several, one for each group, or a choice from the data."""
Scores: TypeAlias = "ColumnLike | Sequence[ColumnLike] | Mapping[Any, ColumnLike]"
"""The column of scores of the event; or one for each label, in their order or by label."""
OuterGroups: TypeAlias = "ColumnLike | Privileged | Iterable[ColumnLike | Privileged]"


# The keywords of calls, for type checkers; `__call__` explains them


class CountOptions(TypedDict, total=False):
    """The options of counting rows."""

    probs: Scores | None
    group_by: OuterGroups | None
    case_weights: ColumnLike | None
    frequency_weights: ColumnLike | None
    threshold: Threshold | None
    top_k: int | Sequence[int] | None
    top_fraction: float | Sequence[float] | None
    score_bins: int | Literal["exact"] | None
    cluster: ColumnLike | None
    parts: int | None
    keep_rows: bool


class SurveyCountOptions(CountOptions, total=False):
    """The options of counting rows, with survey designs, judges and suppression."""

    design: Design | None
    judged: ColumnLike | None
    label_probability: ColumnLike | None
    suppress_below: int | None


class ReadOptions(TypedDict, total=False):
    """The options of computing from counts."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Estimator | None
    na_rm: bool
    on_undefined: OnUndefined
    interval: Interval | None
    conf_level: float
    times: int | None
    seed: int


class ComputeOptions(ReadOptions, total=False):
    """The options of computing from counts, and of presentation."""

    explain: bool


class CallOptions(CountOptions, ComputeOptions, total=False):
    """The options of a call."""


class JudgedCallOptions(CallOptions, total=False):
    """The options of a call, with the labels of a judge."""

    judged: ColumnLike | None
    label_probability: ColumnLike | None


class SurveyCallOptions(CallOptions, SurveyCountOptions, total=False):
    """The options of a call, with survey designs, judges and suppression."""


class GroupReadOptions(ReadOptions, total=False):
    """The options of reading the values of groups."""

    simultaneous: bool


class GroupCallOptions(SurveyCallOptions, total=False):
    """The options of a call for the values of groups."""

    simultaneous: bool


class GroupOptions(TypedDict, total=False):
    """The options that select the groups to compare, given with the feature."""

    min_n: int
    min_share: float
    unknown: Treatment
    unknown_values: Iterable[object] | None


REPLICATES, REPLICATES_OF_ROWS = 10_000, 1_000
"""The usual numbers of replicates: of counts and sums, and of rows."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of a call except its data: checked once, then passed from step to step."""

    truth: TruthLike | None = None
    estimate: Prediction | None = None
    # counting
    probs: Scores | None = None
    group_by: OuterGroups | None = None
    case_weights: ColumnLike | None = None
    frequency_weights: ColumnLike | None = None
    threshold: Threshold | None = None
    top_k: int | Sequence[int] | None = None
    top_fraction: float | Sequence[float] | None = None
    score_bins: int | Literal["exact"] | None = None
    cluster: ColumnLike | None = None
    parts: int | None = None
    keep_rows: bool = False
    design: Design | None = None
    judged: ColumnLike | None = None
    label_probability: ColumnLike | None = None
    suppress_below: int | None = None
    # reading
    pos_label: object = None
    labels: Sequence[object] | None = None
    estimator: Estimator | None = None
    na_rm: bool = True
    on_undefined: OnUndefined = "warn"
    interval: Interval | None = None
    conf_level: float = 0.95
    times: int | None = None
    seed: int = 0
    simultaneous: bool = False
    # showing
    explain: bool = False
    # made from these
    has_single_rows: bool = False
    """True if parts may be single rows, because the tally is not kept."""

    def __post_init__(self) -> None:
        for name, default, check in _CHECKS:
            value = getattr(self, name)
            # None stands for an option that is off
            if value is not None or default is not None:
                object.__setattr__(self, name, check(name, value))
        if self.design is not None:
            self._check_design(self.design)
        if self.judged is not None or self.label_probability is not None:
            self._check_judged()
        if self.parts is not None and self.cluster is not None:
            msg = "`parts` and `cluster` are alternatives; give only one of them."
            raise ArgumentError(msg)
        if self.simultaneous and self.interval is None:
            msg = '`simultaneous` needs intervals: add `interval="auto"`.'
            raise ArgumentError(msg)

    def _check_design(self, design: object) -> None:
        """Refuse an invalid design, and options that conflict with a design."""
        if not isinstance(design, ReplicateWeights | SurveyDesign):
            way_out = '`surveys.design(weights="w", strata="region", clusters="psu")` or `surveys.replicate_weights(…)`'
            msg = f"`design` must be made by {way_out}, not {in_short(design)}."
            raise ArgumentError(msg)
        for name, same in _IN_DESIGN.items():
            if getattr(self, name) is not None:
                msg = f"`design` and `{name}` cannot be combined: {same}."
                raise ArgumentError(msg)
        self._check_interval("design")

    def _check_judged(self) -> None:
        """Refuse labels of a judge without those of people, and options that conflict with them."""
        for needed, option in (("truth", "judged"), ("judged", "label_probability")):
            if getattr(self, option) is not None and getattr(self, needed) is None:
                msg = f"`{option}` needs `{needed}`: labels of people for some rows, and of a judge for all."
                raise ArgumentError(msg)
        if not self.na_rm:
            msg = "`judged` is for rows without a label by people, so leave `na_rm=False` out."
            raise ArgumentError(msg)
        if self.suppress_below is not None:
            msg = "`judged` and `suppress_below` cannot be combined: values of both tell small counts; leave one out."
            raise ArgumentError(msg)
        self._check_interval("judged")

    def _check_interval(self, option: str) -> None:
        """Refuse intervals by methods that do not follow a design, or use the labels of a judge."""
        if self.interval not in {None, "auto", "analytic"}:
            msg = f'`interval={self.interval!r}` does not support `{option}`; use `interval="auto"`.'
            raise ArgumentError(msg)

    def in_parts(self, seed: int) -> Options:
        """The options of a count from which intervals are computed at once: of rows, or of many parts of them."""
        return replace(self, parts=seed, has_single_rows=True)

    @cached_property
    def in_own_parts(self) -> Options:
        """The same with the seed of the call."""
        return self.in_parts(self.seed)

    @cached_property
    def plans(self) -> dict[Any, Any]:
        """What was worked out from these options, which is kept with them."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        # what was worked out does not travel
        return {option.name: getattr(self, option.name) for option in fields(self)}

    @property
    def replicates(self) -> int:
        """The number of replicates of counts and sums."""
        return self.times or REPLICATES

    @property
    def replicates_of_rows(self) -> int:
        """The number of replicates of rows, each of which is sorted and read anew."""
        return self.times or REPLICATES_OF_ROWS

    @cached_property
    def given(self) -> set[str]:
        """The columns of rows that a metric can read: `truth`, `estimate` (made of scores, too) and `probs`."""
        given = {role for role in ("truth", "estimate", "probs") if getattr(self, role) is not None}
        if any(getattr(self, rule) is not None for rule in CUT_OPTIONS):
            given.add("estimate")
        return given


_CHECKS = [(option.name, option.default, option.check) for option in OPTIONS.values() if option.check is not None]
"""The options that are checked without the others."""
_IN_DESIGN = {
    "case_weights": "give the weights of a survey as `weights=` of its design",
    "frequency_weights": "a survey has a row for each person",
    "cluster": "give the clusters of a survey as `clusters=` of its design",
    "parts": "the design determines the variance",
    "score_bins": "bins of scores keep no strata, clusters or replicates",
    "judged": "give the weights of the rows as `case_weights` and the clusters as `cluster`",
}
"""The options that cannot be combined with a design, and the reasons."""
_OF_ROWS = frozenset({"data", "tally"})
"""The arguments that methods read rows or counts from."""
_LISTED = "options: Keyword arguments, listed below.\n"
"""The line of a docstring after which the options are listed."""


def show_keywords(options: type[Any], *, without: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Have `help()` and editors show the keywords that a function takes as `**options`, except those of `without`.

    They are listed in its docstring where it says so (`_LISTED`), in the order of the table of options.
    A method that needs data, or a tally, says so where it is called without them.
    """
    omitted = set(without)

    def with_keywords(function: Function) -> Function:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        # data are required: without them the error is one of ours
        named = [item.replace(default=item.empty) if item.name == "data" else item for item in named]
        explicit = {parameter.name for parameter in named}
        shown = {name: hint for name, hint in options.__annotations__.items() if name not in omitted | explicit}
        keywords: list[inspect.Parameter] = []
        for name, hint in shown.items():
            # the types as they are written
            written, default = getattr(hint, "__forward_arg__", str(hint)), OPTIONS[name].default
            keyword = inspect.Parameter.KEYWORD_ONLY
            keywords.append(inspect.Parameter(name, keyword, default=default, annotation=written))
        documented = [option for name, option in OPTIONS.items() if name in shown and option.sentence]
        if function.__doc__ is not None:
            listed = _LISTED + "".join(map(_documentation, documented))
            function.__doc__ = function.__doc__.replace(_LISTED, listed)
        function.__signature__ = signature.replace(parameters=[*named, *keywords])  # pyright: ignore[reportFunctionMemberAccess] - as the standard library has it
        this, *arguments = signature.parameters.values()
        needs_data = this.name == "self" and any(
            item.name in _OF_ROWS and item.default is item.empty for item in arguments
        )
        return explaining(function, returns_callable=False, of_calls=()) if needs_data else function

    return with_keywords


def _documentation(option: Option) -> str:
    """The lines on an option in a docstring."""
    indent = " " * 12
    text = fill(f"{option.name}: {option.sentence}", 120, initial_indent=indent, subsequent_indent=f"{indent}    ")
    return f"{text}\n"


def refuse_unknown_keywords(function: Function) -> Function:
    """Make a function explain a call that does not fit its parameters, instead of Python's `TypeError`.

    It names the right keyword for an unknown one, the arguments that are missing, and where the data belong: in the
    same call, or in one of the object that the function returns. A function that passes keywords on to a call refuses
    only keywords of other libraries that the call has a name for.
    """
    return explaining(function, returns_callable=True, of_calls=tuple(CallOptions.__annotations__))


def refuse(who: str, options: Iterable[str], reasons: Mapping[str, str]) -> None:
    """Refuse options that a call of the metrics takes, but not a test, a gate or a comparison of them."""
    for name in options:
        if name in reasons:
            msg = f"{who} does not accept `{name}`{reasons[name]}."
            raise ArgumentError(msg)
