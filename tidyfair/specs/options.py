"""What is asked of data: the options of a call, what each has where nothing is said, and the metrics to report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.specs.formulas import AVERAGES, HAND_TILL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tidyfair.specs.aggregates import Aggregate
    from tidyfair.specs.columns import Column, ColumnLike
    from tidyfair.specs.formulas import Formula, Kind
    from tidyfair.specs.groups import By, Privileged

__all__: list[str] = []

RESERVED = frozenset({
    # what a row of a result is about
    ".metric", ".by", ".group", ".other", ".level", ".estimator", ".threshold", ".top_k", ".top_fraction",
    ".period", ".before", ".subgroup", ".depth", ".bin", ".truth", ".predicted",
    # values
    ".estimate", ".overall", ".rest", ".one", ".raw", ".mean", ".difference", ".change", ".probability",
    ".estimate_other", ".estimate_before", ".crude", ".adjusted", ".violation", ".smallest", ".mean_score",
    ".event_rate", ".lift", ".percent_tested", ".percent_found", ".missing_if_positive", ".missing_if_negative",
    # how sure they are
    ".lower", ".upper", ".std_error", ".method", ".replicates_lost", ".error_bound", ".expected",
    ".expected_lower", ".expected_upper", ".hypothesis", ".p_value", ".p_adjusted", ".p_homogeneity", ".p_worst",
    ".adjustment", ".power", ".confidence", ".limit", ".verdict",
    # how many rows they are of
    ".n", ".n_other", ".n_events", ".denominator", ".effective_n", ".rows", ".groups", ".strata", ".share",
    ".weight",
    # what explains them
    ".status", ".pattern", ".worst", ".group_min", ".group_max", ".base_metric", ".metrics_left_out",
    ".groups_left_out",
})  # fmt: skip
"""Names of the columns of results, of metrics as of tests, gates, curves and comparisons."""

ALL_LABELS = "multiclass"
"""How metrics are read that have a form of their own for many labels."""
ON_UNDEFINED = ("warn", "ignore", "null", "raise")


Threshold: TypeAlias = (
    "float | Sequence[float] | Mapping[str, Mapping[Any, float]] | Mapping[tuple[str, ...], Mapping[Any, float]]"
)
"""One threshold, several, or one for each group."""
Interval: TypeAlias = Literal["auto", "analytic", "exact", "bootstrap", "bayes"]


class CountOptions(TypedDict, total=False):
    """What decides how rows are counted; the call says what each means."""

    probs: ColumnLike | Sequence[ColumnLike] | Mapping[Any, ColumnLike] | None
    group_by: ColumnLike | Privileged | Iterable[ColumnLike | Privileged] | None
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
    """What decides how counts are read; the call says what each means."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Literal["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"] | None
    na_rm: bool
    on_undefined: Literal["warn", "ignore", "null", "raise"]
    interval: Interval | None
    conf_level: float
    times: int
    seed: int


class CallOptions(CountOptions, ReadOptions, total=False):
    """Everything but the data, the truth and the estimate; the call says what each means."""

    explain: bool


Accepted: TypeAlias = type[CountOptions] | type[ReadOptions] | type[CallOptions]
"""The options of a step."""


class Reading(TypedDict):
    """What decides how a tally is read: all of `ReadOptions`, which typed dictionaries cannot say of each other."""

    pos_label: object
    labels: Sequence[object] | None
    estimator: Literal["binary", "macro", "macro_weighted", "micro", "hand_till", "one_vs_rest"] | None
    na_rm: bool
    on_undefined: Literal["warn", "ignore", "null", "raise"]
    interval: Interval | None
    conf_level: float
    times: int
    seed: int


DEFAULTS: Reading = {
    "pos_label": None, "labels": None, "estimator": None, "na_rm": True, "on_undefined": "warn", "interval": None,
    "conf_level": 0.95, "times": 10_000, "seed": 0,
}  # fmt: skip
"""How a tally is read where nothing is said."""


def refuse_reserved(role: str, columns: Iterable[Column]) -> None:
    """Refuse keys that results would show under the name of a column of their own."""
    for column in columns:
        if column.name in RESERVED:
            msg = f"`{role}`: results have a column {column.name!r} of their own; rename yours first."
            raise ColumnError(msg)


def refuse(who: str, options: Iterable[str], reasons: Mapping[str, str]) -> None:
    """Refuse options that a call of the metrics takes, but not a test, a gate or a comparison of them."""
    for name in options:
        if name in reasons:
            msg = f"{who} takes no `{name}`{reasons[name]}."
            raise ArgumentError(msg)


def in_two(options: Mapping[str, Any], group_by: object) -> tuple[Any, ReadOptions]:
    """The options of counting and those of reading; `group_by`, which may be an iterator, as it was read."""
    counting: Any = {name: value for name, value in options.items() if name not in DEFAULTS}
    if counting.get("group_by") is not None:
        counting["group_by"] = group_by
    reading: Any = {name: value for name, value in options.items() if name in DEFAULTS}
    return counting, reading


@dataclass(frozen=True)
class Request:
    """One metric to report: formulas by name and, for a groupwise metric, what is compared and how."""

    name: str
    formulas: tuple[tuple[str, Formula], ...]
    by: By | None = None
    aggregate: Aggregate | None = None
    min_n: int = 0
    label_by_label: bool = False
    """Whether more than two labels are compared one against the rest unless asked otherwise."""
    less: int = 0
    """How many of the formulas, the last ones, have a disparity of their own that is subtracted."""
    of_distances: bool = False
    """Whether the values of groups are distances themselves, from other groups, so that chance only adds to them."""
    constant: tuple[str, ...] = ()
    """The averages over labels that are the same whatever the data."""

    @property
    def several(self) -> bool:
        """Whether it is of several metrics, of which one may be the worst."""
        return len(self.formulas) - self.less > 1

    @property
    def kind(self) -> Kind:
        """What its first metric reads."""
        return self.formulas[0][1].kind

    def estimator(self, formula: Formula, asked: str | None, *, one_event: bool) -> str:
        """How labels are read by one of its formulas: one event against the rest, or all of them."""
        if formula.kind == "numeric" or formula.given is not None:
            return "standard" if formula.given is None else ALL_LABELS
        if one_event:
            return "binary"
        if self.by is not None and (asked == "one_vs_rest" or (asked is None and self.label_by_label)):
            return "one_vs_rest"
        if formula.average not in (None, HAND_TILL):
            return formula.average  # it is an average of its own
        if asked == "micro" and formula.way != "sums":
            msg = f'{self.name} is no sum over labels, so it has no micro average: take "macro".'
            raise ArgumentError(msg)
        if asked in AVERAGES:
            return asked
        return formula.average or "macro"
