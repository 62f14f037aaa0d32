"""The options of a call: names, types and defaults, and the object that carries them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, get_args

from tidyfair.errors import ArgumentError, in_short
from tidyfair.specs.arguments import flag, how_often, one_of, proper_share, whole
from tidyfair.specs.columns import ColumnLike
from tidyfair.specs.forecasts import Prediction, TruthLike
from tidyfair.specs.groups import Policy, Privileged, Treatment
from tidyfair.specs.operating_points import OperatingPoint
from tidyfair.specs.signatures import explaining
from tidyfair.specs.survey_designs import Design, ReplicateWeights, SurveyDesign

Function = TypeVar("Function", bound="Callable[..., Any]")
_Thresholds: TypeAlias = "Mapping[str, Mapping[Any, float]] | Mapping[tuple[str, ...], Mapping[Any, float]]"
Threshold: TypeAlias = "float | Sequence[float] | _Thresholds | OperatingPoint"
"""One threshold, several, one for each group, or a choice from the data."""
Scores: TypeAlias = "ColumnLike | Sequence[ColumnLike] | Mapping[Any, ColumnLike]"
"""The column of scores of the event; or one for each label, in their order or by label."""
OuterGroups: TypeAlias = "ColumnLike | Privileged | Iterable[ColumnLike | Privileged]"
Estimator: TypeAlias = Literal["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"]
OnUndefined: TypeAlias = Literal["warn", "ignore", "null", "raise"]
Interval: TypeAlias = Literal[
    "auto", "analytic", "bootstrap", "bayes", "exact", "wilson", "clopper_pearson", "jeffreys", "agresti_coull", "wald",
    "newcombe", "agresti_caffo", "miettinen_nurminen", "katz", "mover", "delong", "influence", "folded_normal",
    "jackknife", "information", "pairwise", "simultaneous", "test_inversion", "prediction_powered",
]  # fmt: skip
ON_UNDEFINED: tuple[OnUndefined, ...] = get_args(OnUndefined)
INTERVALS: tuple[Interval, ...] = get_args(Interval)


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


class DesignOptions(TypedDict, total=False):
    """The option of calls whose intervals support survey designs."""

    design: Design | None


class JudgedOptions(TypedDict, total=False):
    """The options of calls that estimate from labels of people and of a judge together."""

    judged: ColumnLike | None
    label_probability: ColumnLike | None


class SuppressionOptions(TypedDict, total=False):
    """The option of counts that are published."""

    suppress_below: int | None


class SurveyCountOptions(CountOptions, DesignOptions, JudgedOptions, SuppressionOptions, total=False):
    """The options of counting rows, with survey designs, judges and suppression."""


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


class JudgedCallOptions(CallOptions, JudgedOptions, total=False):
    """The options of a call, with judges."""


class SurveyCallOptions(CallOptions, DesignOptions, JudgedOptions, SuppressionOptions, total=False):
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


OptionsOf: TypeAlias = (
    type[CountOptions] | type[SurveyCountOptions] | type[ReadOptions] | type[ComputeOptions] | type[CallOptions]
    | type[JudgedCallOptions] | type[SurveyCallOptions] | type[GroupReadOptions] | type[GroupCallOptions]
)  # fmt: skip


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
        for name in ("keep_rows", "na_rm", "explain", "simultaneous"):
            flag(name, getattr(self, name))
        one_of("on_undefined", self.on_undefined, ON_UNDEFINED)
        self._check_interval()
        if self.design is not None:
            self._check_design(self.design)
        if self.judged is not None or self.label_probability is not None:
            self._check_judged()
        if self.simultaneous and self.interval is None:
            msg = '`simultaneous` needs intervals: add `interval="auto"`.'
            raise ArgumentError(msg)
        proper_share("conf_level", self.conf_level)
        if self.times is not None:
            object.__setattr__(self, "times", how_often(self.times))
        if self.suppress_below is not None:
            whole("suppress_below", self.suppress_below, 1)
        object.__setattr__(self, "seed", whole("seed", self.seed, 0))
        if isinstance(self.group_by, Iterator):
            # it is read more than once
            object.__setattr__(self, "group_by", tuple(self.group_by))

    def _check_interval(self) -> None:
        """Refuse what is no name of a method."""
        if isinstance(self.interval, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = (
                '`interval` is the name of a method: write `interval="auto"` for the recommended one, or leave it out.'
            )
            raise ArgumentError(msg)
        if str(self.interval).casefold() in _YES:
            msg = f'`interval=` is the name of a method, not {in_short(self.interval)}: write `interval="auto"`.'
            raise ArgumentError(msg)
        if self.interval is not None:
            one_of("interval", self.interval, INTERVALS)

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
        if self.interval not in _IN_CLOSED_FORM:
            msg = f'`interval={self.interval!r}` does not support `design`; use `interval="auto"`.'
            raise ArgumentError(msg)

    def _check_judged(self) -> None:
        """Refuse labels of a judge without those of people, and options that conflict with them."""
        for needed, option in (("truth", "judged"), ("judged", "label_probability")):
            if getattr(self, option) is not None and getattr(self, needed) is None:
                msg = f"`{option}` needs `{needed}`: labels of people for some rows, and of a judge for all."
                raise ArgumentError(msg)
        if not self.na_rm:
            msg = "`judged` is for rows without a label by people, so leave `na_rm=False` out."
            raise ArgumentError(msg)
        if self.interval not in _IN_CLOSED_FORM:
            msg = f'`interval={self.interval!r}` does not support `judged`; use `interval="auto"`.'
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
        if any(getattr(self, rule) is not None for rule in ("threshold", "top_k", "top_fraction")):
            given.add("estimate")
        return given


_YES = {"1", "95%", "ci", "default", "on", "t", "true", "y", "yes"}
"""Words that ask for intervals without a method."""
_IN_CLOSED_FORM = (None, "auto", "analytic")
"""The intervals that follow a design, or use the labels of a judge."""
_IN_DESIGN = {
    "case_weights": "give the weights of a survey as `weights=` of its design",
    "frequency_weights": "a survey has a row for each person",
    "cluster": "give the clusters of a survey as `clusters=` of its design",
    "parts": "the design determines the variance",
    "score_bins": "bins of scores keep no strata, clusters or replicates",
    "judged": "give the weights of the rows as `case_weights` and the clusters as `cluster`",
}
"""The options that cannot be combined with a design, and the reasons."""
DEFAULTS: dict[str, object] = {option.name: option.default for option in fields(Options)}
_OF_ROWS = frozenset({"data", "tally"})
"""The arguments that methods read rows or counts from."""
_OF_GROUPS = {option.name: getattr(Policy, option.name) for option in fields(Policy)}


def show_keywords(options: type[Any], *, without: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Have `help()` and editors show the keywords that a function takes as `**options`, except those of `without`.

    A method that needs data, or a tally, says so where it is called without them.
    """
    omitted = set(without)

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        # data are required: without them the error is one of ours
        named = [item.replace(default=item.empty) if item.name == "data" else item for item in named]
        explicit = {parameter.name for parameter in named}
        skipped = omitted | explicit
        defaults = DEFAULTS | _OF_GROUPS
        keywords: list[inspect.Parameter] = []
        for name, hint in options.__annotations__.items():
            if name not in skipped:
                # the types as they are written
                written = getattr(hint, "__forward_arg__", str(hint))
                keyword = inspect.Parameter.KEYWORD_ONLY
                keywords.append(inspect.Parameter(name, keyword, default=defaults[name], annotation=written))
        function.__signature__ = signature.replace(parameters=[*named, *keywords])  # pyright: ignore[reportFunctionMemberAccess] - as the standard library has it
        this, *arguments = signature.parameters.values()
        needs_data = this.name == "self" and any(
            item.name in _OF_ROWS and item.default is item.empty for item in arguments
        )
        return explaining(function, returns_callable=False, of_calls=()) if needs_data else function

    return shown


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
