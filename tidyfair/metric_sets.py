"""Metrics, groupwise metrics and metric sets: frozen callables on dataframes, all called the same way."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, overload

from tidyfair.aggregates import as_aggregate
from tidyfair.errors import ArgumentError, ColumnError, UndefinedError, UndefinedWarning, WeightError, listed
from tidyfair.formulas import Formula
from tidyfair.frames import Column, open_frame
from tidyfair.groups import By
from tidyfair.results import (
    EXPLANATION,
    RESERVED,
    Reading,
    Request,
    complaints,
    evaluate_requests,
    tidy_groups,
    tidy_results,
)
from tidyfair.tallies import Key, Tally, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self, TypeAlias, Unpack

    import polars as pl

    from tidyfair.aggregates import Aggregate, Direction
    from tidyfair.formulas import Expr, Rate
    from tidyfair.frames import ColumnLike, PolarsFrame, Source
    from tidyfair.groups import Privileged

    Kind: TypeAlias = Literal["class", "prob", "numeric"]

__all__ = ["GroupwiseFactory", "GroupwiseMetric", "Metric", "MetricSet", "class_metric", "metric_set", "metric_tweak"]


class CountOptions(TypedDict, total=False):
    """What decides how rows are counted."""

    probs: ColumnLike | None
    """Column of scores, from which `threshold` makes labels."""
    group_by: ColumnLike | Iterable[ColumnLike] | None
    """Columns whose groups (folds, models, months) each get rows of their own."""
    case_weights: ColumnLike | None
    """Column of weights, finite numbers of zero or more."""
    threshold: float | None
    """Scores at or above it select the event."""


class ReadOptions(TypedDict, total=False):
    """What decides how counts are read."""

    pos_label: object
    """The label that is the event; needed unless labels are Boolean, 0/1 or -1/1."""
    labels: Sequence[object] | None
    """All labels in order, where the data do not say."""
    estimator: Literal["binary", "macro", "macro_weighted", "micro", "one_vs_rest"] | None
    """How more than two labels are read; `one_vs_rest` compares groups label by label."""
    na_rm: bool
    """Whether rows without a truth or estimate are left out (True), or make the metric null."""
    on_undefined: Literal["warn", "ignore", "null", "raise"]
    """Whether groups without a value are left out (with a warning, or silently), make disparities null, or raise."""


class CallOptions(CountOptions, ReadOptions, total=False):
    """Everything but the data, the truth and the estimate."""

    explain: bool
    """Whether to add `.n`, `.status`, `.group_min`, `.group_max`, `.level` and `.groups_left_out`."""


_DEFAULTS: Reading = {"pos_label": None, "labels": None, "estimator": None, "na_rm": True, "on_undefined": "warn"}


class Evaluable(ABC):
    """What can be called on a dataframe: a metric, a groupwise metric or a set of them."""

    @property
    @abstractmethod
    def members(self) -> tuple[Metric | GroupwiseMetric, ...]:
        """The metrics it reports, in order."""

    @overload
    def __call__(
        self, data: PolarsFrame, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...  # fmt: skip
    def __call__(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Evaluate on a dataframe.

        Args:
            data: A polars, pandas or pyarrow frame, grouped or not.
            truth: Column of the true labels.
            estimate: Column of the predicted labels.
            options: `probs`, `group_by`, `case_weights`, `threshold`, `pos_label`, `labels`, `estimator`, `na_rm`,
                `on_undefined` and `explain`; `CallOptions` says what they mean.

        Returns:
            A tidy frame of the caller's kind with one row for each metric and outer group: the outer keys, `.metric`,
            `.by`, `.estimator`, `.estimate` (null where undefined), and what `explain` adds.

        Raises:
            TidyfairError: For anything that cannot be read without guessing.
        """
        counting, reading = self._sorted_out(options)
        source = open_frame(data, options.get("group_by"))
        tally = self._count(source, truth, estimate, counting)
        return source.restore(self._report(tally, reading, explain=options.get("explain", False)))

    @overload
    def by_group(
        self, data: PolarsFrame, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...  # fmt: skip
    def by_group(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """The values of the groups that disparities are made of; takes what a call takes.

        Columns: outer keys, `.metric`, `.by` and `.group` (null for ordinary metrics), `.level` (with more than two
        labels), `.estimator`, `.estimate`, `.n` and `.denominator` in rows, and `.status`, which says why a value is
        null (`zero_denominator`, `missing_values`, `below_min_n`, `left_out`), or `ok`, `infinite`, `levels_left_out`.
        """
        counting, reading = self._sorted_out(options)
        source = open_frame(data, options.get("group_by"))
        tally = self._count(source, truth, estimate, counting)
        return source.restore(tidy_groups(evaluate_requests(tally, self._requests, reading)))

    def tally(
        self, data: object, truth: ColumnLike | None = None, estimate: ColumnLike | None = None,
        **options: Unpack[CountOptions],
    ) -> Tally:  # fmt: skip
        """Count the rows, and leave the reading for `compute`; tallies of parts of the data add up to the whole's."""
        counting, _ = self._sorted_out(cast("CallOptions", options))
        return self._count(open_frame(data, options.get("group_by")), truth, estimate, counting)

    def compute(self, tally: Tally, *, explain: bool = False, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Read a tally: `f.compute(f.tally(data, …), …)` is `f(data, …)`."""
        _, reading = self._sorted_out(cast("CallOptions", options))
        return self._report(tally, reading, explain=explain)

    def compute_by_group(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Read the values of the groups from a tally, as `by_group` does from data."""
        _, reading = self._sorted_out(cast("CallOptions", options))
        return tidy_groups(evaluate_requests(tally, self._requests, reading))

    @property
    def _requests(self) -> tuple[Request, ...]:
        return tuple(member.request for member in self.members)

    def _sorted_out(self, options: CallOptions) -> tuple[CountOptions, Reading]:
        given = cast("dict[str, Any]", options)
        known = CallOptions.__annotations__
        for name in given:
            if name not in known:
                owner = next((each for each in _metrics(self.members) if name in dict(each.definition.options)), None)
                if owner:
                    way_out = f'fix it with `metric_tweak({owner.name}, "a name", {name}=…)`'
                    msg = f"{name!r} is an option of a metric; {way_out}."
                    raise ArgumentError(msg)
                raise ArgumentError.unknown("argument", name, ["data", "truth", "estimate", *known])
        counting = {name: given[name] for name in CountOptions.__annotations__ if name in given}
        reading = {name: given.get(name, default) for name, default in _DEFAULTS.items()}
        return cast("CountOptions", counting), cast("Reading", reading)

    def _count(self, source: Source, truth: object, estimate: object, options: CountOptions) -> Tally:
        given = {
            "truth": truth,
            "estimate": estimate,
            "probs": options.get("probs"),
            "case_weights": options.get("case_weights"),
        }
        columns = {name: Column.of(value, name) for name, value in given.items() if value is not None}
        threshold = options.get("threshold")
        if threshold is not None:
            if isinstance(cast("object", threshold), bool) or not isinstance(cast("object", threshold), int | float):
                msg = f"`threshold` is one number, not {threshold!r}."
                raise ArgumentError(msg)
            if "estimate" in columns:
                msg = "`estimate` and `threshold` both say what is predicted: give the labels or the scores, not both."
                raise ArgumentError(msg)
            if "probs" not in columns:
                msg = f"`threshold={threshold}` needs the column of scores: `probs=`."
                raise ArgumentError(msg)
        self._check_roles({*columns, *({"estimate"} if threshold is not None else ())})
        return count(
            source,
            self._keys(source.outer),
            truth=columns.get("truth"),
            estimate=columns.get("estimate"),
            score=columns.get("probs") if threshold is not None else None,
            threshold=threshold,
            weights=columns.get("case_weights"),
        )

    def _check_roles(self, there: set[str]) -> None:
        for metric in _metrics(self.members):
            for role in sorted(metric.definition.reads - there):
                way_out = " or scores as `probs=` with `threshold=`" if role == "estimate" else ""
                kind = "predicted" if role == "estimate" else "true"
                msg = f"{metric.name} needs the column of {kind} labels: `{role}=`{way_out}."
                raise ColumnError(msg)

    def _keys(self, outer: tuple[Column, ...]) -> tuple[Key, ...]:
        keys = dict.fromkeys(Key(column, "outer") for column in outer)
        for column in outer:
            if column.name in RESERVED:
                msg = f"`group_by`: results have a column {column.name!r} of their own; rename yours first."
                raise ColumnError(msg)
        for member in self.members:
            if isinstance(member, GroupwiseMetric):
                if both := [column.name for column in member.by.columns if column in outer]:
                    msg = (
                        f"{member.name}: the data are grouped by {both[0]!r}, so that each part holds a single group "
                        "of it; group by another column, or compare another one."
                    )
                    raise ColumnError(msg)
                keys |= dict.fromkeys(Key(column, "by") for column in member.by.columns)
        return tuple(keys)

    def _report(self, tally: Tally, reading: Reading, *, explain: bool) -> pl.DataFrame:
        if tally.weights is not None and tally.cells["n"].sum() and not tally.cells["w"].sum():
            msg = f"`case_weights`: all values of {tally.weights.name!r} are zero."
            raise WeightError(msg)
        given = {"truth": tally.truth, "estimate": tally.estimate if tally.threshold is None else tally.threshold}
        self._check_roles({role for role, what in given.items() if what is not None})
        on_undefined = reading["on_undefined"]
        evaluated = evaluate_requests(tally, self._requests, reading)
        results = tidy_results(evaluated, undefined_is_null=on_undefined == "null")
        said = complaints(evaluated, results) if on_undefined in {"warn", "raise"} else []
        if said and on_undefined == "raise":
            raise UndefinedError("; ".join(said) + ".")
        if said:
            # the caller of __call__ or compute
            warnings.warn("; ".join(said) + '. (on_undefined="ignore" silences this.)', UndefinedWarning, stacklevel=3)
        if explain:
            return results
        shown = ".groups_left_out" if results[".groups_left_out"].list.len().sum() else None
        return results.drop(name for name in EXPLANATION if name != shown)


@dataclass(frozen=True)
class Metric(Evaluable):
    """A named formula with a direction and a range; made by `class_metric`."""

    name: str
    definition: Formula = field(repr=False)
    kind: Kind
    direction: Direction
    range: tuple[float, float]
    constant_average: bool = field(default=False, repr=False)
    """Whether its average over labels is the same whatever the data (shares that add up to 1)."""
    base: Metric | None = field(default=None, compare=False, repr=False)
    """The metric that it is an alias or a tweak of."""

    def __post_init__(self) -> None:
        function = self.definition.function
        object.__setattr__(self, "__doc__", function.__doc__)
        object.__setattr__(self, "__module__", function.__module__)

    @property
    def members(self) -> tuple[Metric]:
        """Itself."""
        return (self,)

    @property
    def request(self) -> Request:
        """What it asks of a tally."""
        return Request(self.name, ((self.name, self.definition),))

    def formula(self, **numbers: float | Sequence[float]) -> float | None:
        """The formula on plain numbers, one for each statistic (or a list, one for each label); None is undefined."""
        return self.definition.on(numbers)

    def alias(self, name: str) -> Self:
        """The same metric under another name."""
        return replace(self, name=name, base=self.base or self)

    def tweaked(self, name: str, options: dict[str, object]) -> Self:
        """The same metric with options fixed, under another name."""
        definition = self.definition.with_options(self.name, options)
        definition.express()  # refuses values that do not fit
        return replace(self, name=name, definition=definition, base=self.base or self)

    def __reduce__(self) -> str | tuple[Any, ...]:
        # by name, as functions do; what has no module-level name of its own is made again from what has
        module = sys.modules.get(self.__module__)
        if self.base is None or getattr(module, self.name, None) is self:
            return self.name
        return Metric.tweaked, (self.base, self.name, dict(self.definition.options))

    def __repr__(self) -> str:
        low, high = self.range
        return f"<{self.kind} metric {self.name}: {self.direction}, {low:g} to {high:g}>"


@dataclass(frozen=True)
class GroupwiseMetric(Evaluable):
    """A metric compared between the groups of a sensitive feature; made by calling a factory."""

    name: str
    metrics: tuple[Metric, ...]
    by: By
    aggregate: Aggregate
    own_direction: Direction | None = None
    min_n: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", self.bound)  # refuses an aggregate that does not fit

    @property
    def bound(self) -> Aggregate:
        """The aggregate as it applies to this `by` and these metrics."""
        negative = next((metric.name for metric in self.metrics if metric.range[0] < 0), None)
        return self.aggregate.bound(sides=self.by.sides is not None, negative=negative)

    @property
    def members(self) -> tuple[GroupwiseMetric]:
        """Itself."""
        return (self,)

    @property
    def kind(self) -> Kind:
        """What its metrics read."""
        return self.metrics[0].kind

    @property
    def direction(self) -> Direction:
        """Where it should go."""
        return self.own_direction or self.bound.direction or self.metrics[0].direction

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        lower, upper = (end(metric.range[side] for metric in self.metrics) for side, end in ((0, min), (1, max)))
        return self.bound.range(lower, upper)

    @property
    def request(self) -> Request:
        """What it asks of a tally."""
        formulas = tuple((metric.name, metric.definition) for metric in self.metrics)
        label_by_label = any(metric.constant_average for metric in self.metrics)
        return Request(self.name, formulas, self.by, self.bound, self.min_n, label_by_label)

    def __repr__(self) -> str:
        metrics = ", ".join(metric.name for metric in self.metrics)
        return f"<groupwise metric {self.name}({self.by!r}): {self.bound!r} of {metrics}, {self.direction}>"


@dataclass(frozen=True)
class GroupwiseFactory:
    """Makes groupwise metrics: call it with the sensitive feature; made by `new_groupwise_metric`."""

    name: str
    metrics: tuple[Metric, ...]
    aggregate: Aggregate
    direction: Direction | None = None

    def __call__(
        self,
        *by: ColumnLike | Privileged,
        aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float] | None = None,
        name: str | None = None,
        min_n: int = 0,
    ) -> GroupwiseMetric:
        """Compare the groups of one or more columns, or the two sides of `privileged(…)`.

        Args:
            by: Columns (several make intersections), or one `privileged(…)`.
            aggregate: Another aggregate than the factory's.
            name: Another name for `.metric`.
            min_n: Groups whose denominator has fewer rows are left out.

        Raises:
            ColumnError, AggregateError: If the feature or the aggregate does not fit.
        """
        name = name or self.name
        if not isinstance(min_n, int) or min_n < 0:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"{name}: `min_n` is a number of rows, not {min_n!r}."
            raise ArgumentError(msg)
        chosen = self.aggregate if aggregate is None else as_aggregate(aggregate, name)
        direction = self.direction if aggregate is None else None
        return GroupwiseMetric(name, self.metrics, By.of(by, name), chosen, direction, min_n)

    def __repr__(self) -> str:
        metrics = ", ".join(metric.name for metric in self.metrics)
        return (
            f'<factory of groupwise metrics {self.name}: {self.aggregate!r} of {metrics}; call {self.name}("column")>'
        )


@dataclass(frozen=True)
class MetricSet(Evaluable):
    """Several metrics in one call and one pass over the data; made by `metric_set`."""

    metrics: tuple[Metric | GroupwiseMetric, ...]

    @property
    def members(self) -> tuple[Metric | GroupwiseMetric, ...]:
        """The metrics, in the order in which they were asked for."""
        return self.metrics

    def __iter__(self) -> Iterator[Metric | GroupwiseMetric]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        return "\n".join(["<metric set of", *(f"  {member!r}" for member in self.metrics), ">"])


def metric_set(*metrics: Metric | GroupwiseMetric | MetricSet) -> MetricSet:
    """Combine metrics, groupwise metrics and other sets into one callable that reads the data once.

    Raises:
        ArgumentError: For an empty set, something that is no metric, a factory without its feature, numeric and class
            metrics together, or two metrics with the same name and `by`.

    >>> from tidyfair import accuracy, demographic_parity, metric_set
    >>> metric_set(accuracy, demographic_parity("sex"))
    <metric set of
      <class metric accuracy: maximize, 0 to 1>
      <groupwise metric demographic_parity('sex'): difference(to='range') of detection_prevalence, minimize>
    >
    """
    members: list[Metric | GroupwiseMetric] = []
    for each in metrics:
        if isinstance(each, GroupwiseFactory):
            msg = f'{each.name} compares the groups of a column: did you mean `{each.name}("col")`?'
            raise ArgumentError(msg)
        if not isinstance(each, Evaluable):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            msg = f"A metric set takes metrics, groupwise metrics and metric sets, not {each!r}."
            raise ArgumentError(msg)
        members += each.members
    if not members:
        msg = "A metric set needs at least one metric, such as `metric_set(accuracy)`."
        raise ArgumentError(msg)
    kinds = {member.kind for member in members}
    if "numeric" in kinds and len(kinds) > 1:
        names = [next(member.name for member in members if member.kind == kind) for kind in sorted(kinds)]
        msg = f"Numeric metrics do not mix with others in a set: {listed(names)} read different columns. Make two sets."
        raise ArgumentError(msg)
    seen = set[tuple[str, str | None]]()
    for member in members:
        by = member.by.text if isinstance(member, GroupwiseMetric) else None
        if (member.name, by) in seen:
            what = f"{member.name} by {by}" if by else member.name
            way_out = "name=" if by else "metric_tweak"
            msg = f"The set has two metrics {what}; give one of them another name with `{way_out}`."
            raise ArgumentError(msg)
        seen.add((member.name, by))
    return MetricSet(tuple(members))


def metric_tweak(metric: Metric, name: str, **options: object) -> Metric:
    """Fix options of a metric under a new name.

    >>> from tidyfair import f_meas
    >>> f2 = metric_tweak(f_meas, "f2", beta=2)
    >>> f2.formula(precision=0.5, recall=1.0)
    0.8333333333333334
    """
    if not isinstance(metric, Metric):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"metric_tweak() takes a metric with options, such as f_meas, not {metric!r}."
        raise ArgumentError(msg)
    return metric.tweaked(name, options)


def class_metric(
    *,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    over_levels: bool = False,
    undefined_levels: Literal["drop", "null"] = "drop",
    constant_average: bool = False,
) -> Callable[[Callable[..., Expr | Rate]], Metric]:
    """Turn a formula into a metric of predicted labels.

    The function's name is the metric's, its parameters are statistics (`tp`, `fp`, `fn`, `tn`, `positives`,
    `negatives`, `selected`, `unselected`, `instances`) or metrics that its module knows, its keyword-only parameters
    are options. It returns an expression, or numerator and denominator.

    Args:
        direction: Whether larger values are better.
        range: Smallest and largest possible value.
        over_levels: The formula has a multi-class form of its own: it sums over the labels' rows itself.
        undefined_levels: Whether averages leave out labels without a value, or are null.
        constant_average: The average over labels says nothing, as for shares that add up to 1.
    """

    def define(function: Callable[..., Expr | Rate]) -> Metric:
        known = {name: each.definition for name, each in function.__globals__.items() if isinstance(each, Metric)}
        definition = Formula.of(function, known, over_levels=over_levels, undefined_levels=undefined_levels)
        return Metric(function.__name__, definition, "class", direction, range, constant_average)

    return define


def _metrics(members: Iterable[Metric | GroupwiseMetric]) -> Iterator[Metric]:
    for member in members:
        yield from member.metrics if isinstance(member, GroupwiseMetric) else (member,)
