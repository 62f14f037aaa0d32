"""The options of a call: names, types and defaults, and the object that carries them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, TypeVar

from tidyfair.errors import ArgumentError
from tidyfair.specs.arguments import flag, how_often, one_of, proper_share, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.groups import Privileged

__all__: list[str] = []

ON_UNDEFINED = ("warn", "ignore", "null", "raise")
INTERVALS = ("auto", "analytic", "bootstrap", "bayes", "exact")
_LEAST_TIMES = 2

Function = TypeVar("Function", bound="Callable[..., Any]")
Threshold: TypeAlias = (
    "float | Sequence[float] | Mapping[str, Mapping[Any, float]] | Mapping[tuple[str, ...], Mapping[Any, float]]"
)
"""One threshold, several, or one for each group."""
Scores: TypeAlias = "ColumnLike | Sequence[ColumnLike] | Mapping[Any, ColumnLike]"
"""The column of scores of the event; or one for each label, in their order or by label."""
OuterGroups: TypeAlias = "ColumnLike | Privileged | Iterable[ColumnLike | Privileged]"
Estimator: TypeAlias = Literal["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"]
OnUndefined: TypeAlias = Literal["warn", "ignore", "null", "raise"]
Interval: TypeAlias = Literal["auto", "analytic", "exact", "bootstrap", "bayes"]


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
    score_bins: int | None
    cluster: ColumnLike | None
    parts: int | None
    keep_rows: bool


class ReadOptions(TypedDict, total=False):
    """The options of reading what was counted."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Estimator | None
    na_rm: bool
    on_undefined: OnUndefined
    interval: Interval | None
    conf_level: float
    times: int
    seed: int


class ComputeOptions(ReadOptions, total=False):
    """The options of reading what was counted, and of showing it."""

    explain: bool


class CallOptions(CountOptions, ComputeOptions, total=False):
    """The options of a call."""


OptionsOf: TypeAlias = type[CountOptions] | type[ReadOptions] | type[ComputeOptions] | type[CallOptions]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of a call but its data: checked once, then handed on from step to step."""

    truth: ColumnLike | None = None
    estimate: ColumnLike | None = None
    # counting
    probs: Scores | None = None
    group_by: OuterGroups | None = None
    case_weights: ColumnLike | None = None
    frequency_weights: ColumnLike | None = None
    threshold: Threshold | None = None
    top_k: int | Sequence[int] | None = None
    top_fraction: float | Sequence[float] | None = None
    score_bins: int | None = None
    cluster: ColumnLike | None = None
    parts: int | None = None
    keep_rows: bool = False
    # reading
    pos_label: object = None
    labels: Sequence[object] | None = None
    estimator: Estimator | None = None
    na_rm: bool = True
    on_undefined: OnUndefined = "warn"
    interval: Interval | None = None
    conf_level: float = 0.95
    times: int = 10_000
    seed: int = 0
    # showing
    explain: bool = False

    def __post_init__(self) -> None:
        for name in ("keep_rows", "na_rm", "explain"):
            flag(name, getattr(self, name))
        one_of("on_undefined", self.on_undefined, ON_UNDEFINED)
        if self.interval is not None:
            one_of("interval", self.interval, INTERVALS)
        proper_share("conf_level", self.conf_level)
        object.__setattr__(self, "times", how_often(self.times, _LEAST_TIMES))
        object.__setattr__(self, "seed", whole("seed", self.seed, 0))
        if isinstance(self.group_by, Iterator):
            # it is read more than once
            object.__setattr__(self, "group_by", tuple(self.group_by))

    @property
    def given(self) -> set[str]:
        """The columns of rows that a metric can read: `truth`, `estimate` (made of scores, too) and `probs`."""
        given = {role for role in ("truth", "estimate", "probs") if getattr(self, role) is not None}
        if any(getattr(self, rule) is not None for rule in ("threshold", "top_k", "top_fraction")):
            given.add("estimate")
        return given


DEFAULTS: dict[str, object] = {option.name: option.default for option in fields(Options)}


def show_keywords(options: type[Any], *, without: Iterable[str] = ()) -> Callable[[Function], Function]:
    """Have `help()` and editors show the keywords that a function takes as `**options`, except those of `without`."""
    omitted = set(without)

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()
        explicit = {parameter.name for parameter in named}
        skipped = omitted | explicit
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[name], annotation=annotation)
            for name, annotation in _annotations(options).items()
            if name not in skipped
        ]
        function.__signature__ = signature.replace(parameters=[*named, *keywords])  # pyright: ignore[reportFunctionMemberAccess] - as the standard library has it
        return function

    return shown


def _annotations(options: type[Any]) -> dict[str, str]:
    """The types of keywords as they are written."""
    return {name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in options.__annotations__.items()}


def refuse(who: str, options: Iterable[str], reasons: Mapping[str, str]) -> None:
    """Refuse options that a call of the metrics takes, but not a test, a gate or a comparison of them."""
    for name in options:
        if name in reasons:
            msg = f"{who} takes no `{name}`{reasons[name]}."
            raise ArgumentError(msg)
