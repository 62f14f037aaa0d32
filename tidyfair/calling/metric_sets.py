"""Metrics, groupwise metrics and metric sets: frozen callables on dataframes."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import polars as pl

from tidyfair.calling.calls import INTERNAL, Evaluable, call_in_words, in_lines
from tidyfair.calling.comparisons import COMPARISONS, Comparable
from tidyfair.errors import AggregateError, ArgumentError, in_short, listed, nearest
from tidyfair.escapes import display, visible
from tidyfair.specs import (
    ALL_GROUPS,
    MACRO,
    OF_CALLS,
    OPTIONS,
    Aggregate,
    Better,
    By,
    Direction,
    FeatureLike,
    GroupOptions,
    Memberships,
    MetricSpec,
    Policy,
    Privileged,
    Treatment,
    as_aggregate,
    hint,
    one_of,
    privileged,
    refuse_unknown_settings,
    text,
    unknown_keyword,
)
from tidyfair.specs.formulas import Formula, GroupPairs, Kind, arithmetic_of

CALL = "(data, truth, estimate, …)"
"""The arguments of a call, in short."""

__all__ = ["GroupwiseFactory", "GroupwiseMetric", "Metric", "MetricSet", "metric_set", "metric_tweak"]


class _OfObject:
    """An attribute with one value for the class and another, computed by a function, for its objects."""

    def __init__(self, function: Callable[[Any], object], of_class: object = None) -> None:
        self.function, self.of_class = function, of_class

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None:
            return self.function(instance)
        if self.of_class is None:
            raise AttributeError(self.name)
        return self.of_class


@dataclass(frozen=True)
class Metric(Evaluable, Comparable["GroupwiseMetric"]):
    """A named formula with a direction and a range; made by `class_metric`."""

    # so that `help()` of a metric describes it, and its call
    __doc__ = _OfObject(lambda metric: metric.explained, __doc__)  # pyright: ignore[reportAssignmentType] - a text
    # an ordinary metric compares no groups
    _internal: ClassVar[frozenset[str]] = INTERNAL | {"aggregate", "base", "by", "policy"}

    name: str
    definition: Formula = field(repr=False)
    kind: Kind
    direction: Direction
    range: tuple[float, float]
    constant_averages: tuple[str, ...] = field(default=(), repr=False)
    """The averages over labels that are the same whatever the data, as of shares that add up to 1."""
    base: Metric | None = field(default=None, compare=False, repr=False)
    """The original metric, for an alias or a tweak."""
    others: tuple[Metric, ...] = field(default=(), repr=False)
    """Its variants for other kinds of predictions, used if those of its own kind are not given."""
    is_judged: bool = field(default=False, repr=False)
    """True if its direction was stated, also where the formula only describes."""
    formulas: tuple[tuple[str, Formula], ...] = field(init=False, repr=False, compare=False)
    """Its formula by its name."""

    # groups are not compared, and none is left out
    by = aggregate = None
    policy = ALL_GROUPS
    subtracted = 0
    several = label_by_label = of_distances = False

    def __post_init__(self) -> None:
        text("name", self.name)
        object.__setattr__(self, "formulas", ((self.name, self.definition),))
        object.__setattr__(self, "__module__", getattr(self.definition.function, "__module__", __name__))

    @property
    def specs(self) -> tuple[MetricSpec]:
        """The metric itself."""
        return (self,)

    @cached_property
    def readings(self) -> tuple[Metric, ...]:
        """The metric for each kind of predictions that it reads, under its own name."""
        if not self.others:
            return (self,)
        renamed = [replace(other, name=self.name, base=other.base or other) for other in self.others]
        return (replace(self, others=()), *renamed)

    def with_readings(self, *others: Metric) -> Self:
        """The metric, extended to read other kinds of predictions by the formulas of other metrics."""
        return replace(self, others=others)

    def of_kind(self, kind: Kind) -> Metric:
        """Its variant for a kind of predictions; the metric itself if it has none."""
        return next((reading for reading in self.readings if reading.kind == kind), self)

    @property
    def options(self) -> dict[str, object]:
        """Its options with their defaults; None for those that only some of its variants have."""
        options: dict[str, object] = dict(self.definition.options)
        for other in self.others:
            for name, _ in other.definition.options:
                options.setdefault(name, None)
        return options

    @property
    def of_all_rows(self) -> tuple[Metric, ...]:
        """The metric itself, which compares no groups."""
        return (self,)

    @property
    def better(self) -> Better:
        """The better values; neither for what describes the truth or the predictions alone, such as a share."""
        return "neither" if self.definition.describes and not self.is_judged else self.direction

    def range_of(self, name: str) -> tuple[float, float]:  # noqa: ARG002 - it has one metric
        """The range of the values of its metric of some name."""
        return self.range

    @refuse_unknown_settings
    def formula(self, **numbers: float | Sequence[float] | Mapping[str, Sequence[float]]) -> float | None:
        """The formula on plain numbers, one for each statistic (or a list, one for each label); None means undefined.

        For a metric that is a function of arrays, on lists.
        """
        for other in self.others:
            if not {*numbers} <= {*self.definition.needs} and {*numbers} <= {*other.definition.needs}:
                return other.formula(**numbers)
        return self.definition.on(numbers)

    @property
    def meaning(self) -> str:
        """Its meaning in words: the first paragraph of the docstring of its formula."""
        return inspect.cleandoc(self.definition.function.__doc__ or "").partition("\n\n")[0]

    @property
    def explained(self) -> str:
        """Description of the metric, of its call and of its methods, with an example of its formula."""
        prose, mark, example = inspect.cleandoc(self.definition.function.__doc__ or "").partition(">>> ")
        low, high = self.range
        facts = f"{low:g} to {high:g}, {self.better}. Call it as `{self._example_call}`."
        if self.options:
            options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
            facts += f" Options, set with `metric_tweak`: {options}."
        compared = (
            f'`{self.name}.difference("column")` compares groups, and so do `.ratio("column")`, '
            '`.group_minimum("column")` and `.group_maximum("column")`; call the result like the metric itself.'
        )
        paragraphs = [prose.strip(), facts, self.explained_call(self.name), in_lines(compared), f"{mark}{example}"]
        return "\n\n".join(filter(None, paragraphs))

    @property
    def _example_call(self) -> str:
        """The call with the columns that it reads."""
        reads = self.definition.reads
        columns = {"truth": '"truth"', "estimate": '"estimate"' if "truth" in reads else 'estimate="estimate"'}
        columns["probs"] = 'probs="score"'
        if self.kind == "survival":
            columns |= {"truth": 'survival.outcome("time", "event")', "probs": 'probs={365: "survival_at_365"}'}
        if self.kind == "interval":
            of_quantiles = self.definition.reads_points
            interval = (
                '{0.05: "q05", 0.95: "q95"}'
                if of_quantiles
                else 'prediction_intervals.interval("low", "high", level=0.9)'
            )
            columns["estimate"] = interval if "truth" in reads else f"estimate={interval}"
        given = [f", {text}" for role, text in columns.items() if role in reads]
        return f"{self.name}(data{''.join(given)})"

    def comparison_by(
        self, method: str, by: tuple[FeatureLike, ...], name: str | None, groups: GroupOptions,
        aggregate: Aggregate,
    ) -> GroupwiseMetric:  # fmt: skip
        """A comparison of groups; refused for a ratio of values that may be negative."""
        _check_comparison(self.name, method, by, groups)
        if method == "ratio" and self.range[0] == -math.inf:
            msg = (
                f"ratio() is not defined for negative values of {self.name}; where all of them are above 0, take "
                f'`compare_groups({self.name}, by=…, to=…, scale="ratio")`, and else `{self.name}.difference(…)`.'
            )
            raise AggregateError(msg)
        return comparison(self, method, aggregate)(*by, name=name, **groups)

    if not TYPE_CHECKING:  # for type checkers it would have every attribute

        def __getattr__(self, name: str) -> object:
            """Raise the error for a method that does not exist, with the comparison to write instead."""
            method = _OTHER_WORDS.get(name, name)
            way_out = "" if name.startswith("_") else nearest(method, COMPARISONS)
            if way_out and "name" in self.__dict__:
                method = next(known for known in COMPARISONS if repr(known) in way_out)
                way_out = f' Write `{self.name}.{method}("column")`.'
            msg = f"{type(self).__name__!r} object has no attribute {name!r}.{way_out}"
            raise AttributeError(msg)

    @refuse_unknown_settings
    def alias(self, name: str) -> Self:
        """The same metric under another name."""
        return replace(self, name=name, base=self.base or self)

    def tweaked(
        self, name: str, options: dict[str, object], better: Literal["higher", "lower"] | None = None
    ) -> Metric:
        """The same metric with options set, under another name; or with other values that are the better ones.

        An option of only some of its variants selects these.
        """
        if better is not None:
            return _judged(self, better).tweaked(name, options)
        if not options:
            return replace(self, name=name, base=self.base or self)
        if self.others:
            readings = [reading for reading in self.readings if {*options} <= {*reading.options}]
            if readings:
                first, *others = [reading.tweaked(name, options) for reading in readings]
                return replace(first, others=tuple(others), base=self.base or self)
        definition = self.definition.with_options(self.name, options)
        try:
            definition.check()
            for term in definition.all_terms:
                term.expression(truth=pl.col("truth"), estimate=pl.col("estimate"), score=pl.col("score"))
        except ArgumentError as error:
            if error.__cause__ is None:
                raise
            msg = f"{self.name} cannot use the options {options!r}: {error.__cause__}."
            raise ArgumentError(msg) from error
        return replace(self, name=name, definition=definition, base=self.base or self, others=())

    def __reduce__(self) -> str | tuple[Any, ...]:
        # by name, as functions do; a metric without a name in a module is made again from one that has
        module = sys.modules.get(self.__module__)
        if getattr(module, self.name, None) is self:
            return self.name
        if self.base is None:
            # a user's function pickles if it has a name in a module
            return Metric, tuple(getattr(self, argument.name) for argument in fields(self) if argument.init)
        better = ("higher" if self.direction == "maximize" else "lower") if self.is_judged else None
        return Metric.tweaked, (self.base, self.name, dict(self.definition.options), better)

    def __repr__(self) -> str:
        low, high = self.range
        return visible(f"<{self.kind} metric {self.name}: {self.better}, {low:g} to {high:g}>")

    def _repr_html_(self) -> str:
        columns = columns_of([self])
        return display(f"{self.kind} metric", columns, name=columns.pop("metric")[0], call=self._example_call)


def _judged(metric: Metric, better: str) -> Metric:
    """The metric, of which higher or lower values are the better ones."""
    one_of("better", better, [*_SIDES])
    others = tuple(_judged(other, better) for other in metric.others)
    return replace(metric, direction=_SIDES[better], is_judged=True, base=metric.base or metric, others=others)


@dataclass(frozen=True)
class GroupwiseMetric(Evaluable):
    """A metric compared between the groups of a sensitive feature; made by calling a factory."""

    __doc__ = _OfObject(lambda metric: metric.explained, __doc__)  # pyright: ignore[reportAssignmentType] - a text

    name: str
    metrics: tuple[Metric, ...]
    by: By
    aggregate: Aggregate
    """The aggregate, resolved for this `by` and these metrics."""
    own_direction: Direction | None = None
    less: tuple[Metric, ...] = ()
    """Metrics whose own disparity is subtracted."""
    source: str | None = field(default=None, repr=False, compare=False)
    """The paper or standard that defines it."""
    otherwise: tuple[Metric, ...] = field(default=(), repr=False)
    """Metrics that are compared where the columns of the others are not given."""
    formulas: tuple[tuple[str, Formula], ...] = field(init=False, repr=False, compare=False)
    """Its formulas by the names of their metrics; those that are subtracted come last."""
    subtracted: int = field(init=False, repr=False, compare=False)
    """The number of formulas whose disparity is subtracted from that of the others."""
    of_distances: bool = field(init=False, repr=False, compare=False)
    """True if the values of groups are distances from other groups, to which chance only adds."""

    def __post_init__(self) -> None:
        text("name", self.name)
        all_metrics = (*self.metrics, *self.less)
        negative = next((metric.name for metric in all_metrics if metric.range[0] < 0), None)
        compares = any(metric.definition.compares for metric in all_metrics)
        if compares and self.aggregate.compares_with_context:
            msg = f"{self.name} already compares each group with the others; use an aggregate without `to=`."
            raise ArgumentError(msg)
        direction = self.own_direction or self.metrics[0].direction
        bound = self.aggregate.resolved(sides=self.by.sides is not None, negative=negative, direction=direction)
        object.__setattr__(self, "aggregate", bound)
        formulas: list[tuple[str, Formula]] = []
        for metric in all_metrics:
            formula = metric.definition
            if isinstance(formula, GroupPairs):
                # those that compare groups themselves leave small ones out
                formula = replace(formula, min_n=self.policy.min_n, min_share=self.policy.min_share)
            formulas.append((metric.name, formula))
        object.__setattr__(self, "formulas", tuple(formulas))
        object.__setattr__(self, "subtracted", len(self.less))
        of_distances = any(
            metric.definition.compares and metric.direction == "minimize" and metric.range[0] == 0
            for metric in self.metrics
        )
        object.__setattr__(self, "of_distances", of_distances)

    @property
    def kind(self) -> Kind:
        """The kind of predictions that its metrics read."""
        return self.metrics[0].kind

    @cached_property
    def readings(self) -> tuple[GroupwiseMetric, ...]:
        """The comparison for each kind of predictions that its metrics read, and for the alternative metrics."""
        combinations = zip(*(metric.readings for metric in self.metrics), strict=False)
        readings = [replace(self, metrics=metrics, otherwise=()) for metrics in combinations]
        if self.otherwise:
            readings.append(replace(self, metrics=self.otherwise, otherwise=()))
        return tuple(readings)

    @property
    def direction(self) -> Direction:
        """The direction in which its values are ordered from bad to good."""
        return self.own_direction or self.aggregate.direction or self.metrics[0].direction

    @property
    def better(self) -> Better:
        """The better values; neither for the value of a group that is neither good nor bad."""
        return self.own_direction or self.aggregate.direction or self.metrics[0].better

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible value."""
        lower = min(metric.range[0] for metric in self.metrics)
        upper = max(metric.range[1] for metric in self.metrics)
        low, high = self.aggregate.range(lower, upper)
        return (low - high, high - low) if self.less else (low, high)

    @property
    def meaning(self) -> str:
        """Its meaning in words."""
        return self.meaning_with(lambda name: name)

    def meaning_with(self, name_of: Callable[[str], str]) -> str:
        """Its meaning in words, with other names for the metrics that are compared."""
        averaged = self.aggregate.across == "mean"
        conjunction = " and " if averaged else " or "
        compared, subtracted = (
            conjunction.join(name_of(metric.name) for metric in metrics) for metrics in (self.metrics, self.less)
        )
        meaning = self.aggregate.in_words(compared)
        if self.several:
            meaning += ", averaged over these metrics" if averaged else ", for whichever is worse"
        if self.less:
            meaning += f"; minus the same number for {subtracted}"
        return f"{meaning[0].upper()}{meaning[1:]}."

    @property
    def explained(self) -> str:
        """Description of the groupwise metric, of the metrics that are compared, and of its call."""
        return "\n\n".join([*self.described_as(f"{self.name} by {self.by.text}"), self.explained_call("metric")])

    def described_as(self, subject: str) -> list[str]:
        """Paragraphs on what it says, under some name, on the metrics that are compared, and on its source."""
        low, high = self.range
        paragraphs = [f"{subject}: {self.meaning} {low:g} to {high:g}, {self.better}."]
        paragraphs += [f"{metric.name}: {metric.meaning}" for metric in (*self.metrics, *self.less) if metric.meaning]
        return [*paragraphs, f"Source: {self.source}."] if self.source else paragraphs

    def range_of(self, name: str) -> tuple[float, float]:
        """The range of the values of one of its metrics."""
        return next(metric.range for metric in (*self.metrics, *self.less) if metric.name == name)

    @property
    def policy(self) -> Policy:
        """The groups that it compares."""
        return self.by.policy

    def least_rows(self, rows: float) -> float:
        """The rows that a group needs to be compared, given the number of rows of all groups."""
        return max(self.policy.min_n, self.policy.min_share * rows)

    def with_policy(self, policy: Policy) -> Self:
        """The same metric over other groups."""
        return replace(self, by=replace(self.by, policy=policy))

    @property
    def specs(self) -> tuple[MetricSpec]:
        """The metric itself."""
        return (self,)

    @property
    def several(self) -> bool:
        """True if it compares several metrics, of which one may be the worst."""
        return len(self.metrics) > 1

    @property
    def label_by_label(self) -> bool:
        """True if more than two labels are by default compared one against the rest."""
        return any(MACRO.name in metric.constant_averages for metric in self.metrics)

    @property
    def of_all_rows(self) -> tuple[Metric, ...]:
        """The metrics that it compares, as metrics of all rows."""
        return self.metrics

    @property
    def constant_averages(self) -> tuple[str, ...]:
        """The averages over labels of all its metrics that do not depend on the data."""
        # a disparity varies if one of its metrics does
        return min((metric.constant_averages for metric in (*self.metrics, *self.less)), key=len)

    def __reduce__(self) -> tuple[Any, ...]:
        # metrics pickle by their names, which the formulas worked out from them do not
        return GroupwiseMetric, tuple(getattr(self, argument.name) for argument in fields(self) if argument.init)

    def __repr__(self) -> str:
        made_of = f"{self.aggregate!r} of {_shown(self)}"
        return visible(f"<groupwise metric {self.name}({self.by!r}): {made_of}, {self.better}>")

    def _repr_html_(self) -> str:
        columns = columns_of([self])
        name = f"{columns.pop('metric')[0]}({self.by!r})"
        return display("groupwise metric", columns, name=name, call=f"{name}{CALL}")


@dataclass(frozen=True)
class GroupwiseFactory(Comparable[GroupwiseMetric]):
    """A factory of groupwise metrics, called with the sensitive feature; made by `new_groupwise_metric`."""

    # so that `help()` of a factory describes the metric that it makes
    __doc__ = _OfObject(lambda factory: factory.explained, __doc__)  # pyright: ignore[reportAssignmentType] - a text
    __signature__ = _OfObject(lambda factory: factory.signature)

    name: str
    metrics: tuple[Metric, ...]
    aggregate: Aggregate
    direction: Direction | None = None
    less: tuple[Metric, ...] = ()
    source: str | None = field(default=None, repr=False, compare=False)
    """The paper or standard that defines it."""
    fixed: tuple[str, ...] = ()
    """Options that its name implies, which cannot be changed."""
    otherwise: tuple[Metric, ...] = ()
    """Metrics that are compared where the columns of the others are not given."""

    def __call__(
        self,
        *by: FeatureLike,
        aggregate: Aggregate | pl.Expr | Callable[[pl.DataFrame], float] | None = None,
        name: str | None = None,
        min_n: int = Policy.min_n,
        min_share: float = Policy.min_share,
        unknown: Treatment = Policy.unknown,
        unknown_values: Iterable[object] | None = Policy.unknown_values,
        **options: object,
    ) -> GroupwiseMetric:
        """Compare the groups of one or more columns, or the two sides of `privileged(…)`.

        Args:
            by: Columns (several, also as a tuple, make intersections), or one `privileged(…)`.
            aggregate: An aggregate that replaces the factory's.
            name: Another name for `.metric`.
            min_n: Groups whose denominator has fewer rows are not compared; `by_group` lists them as `below_min_n`.
            min_share: Groups with a smaller share of the rows are not compared, and listed as `below_min_share`.
            unknown: Treatment of rows whose group is missing or unknown: `"apart"`, listed as `unknown` but not
                compared, and not part of the overall or the rest; `"drop"`, not listed either; or `"group"`, a group
                like all others. A combination of features is unknown if any of them is.
            unknown_values: The values that mean unknown, in addition to null; by default texts such as "Unknown" and
                "Decline to answer".
            options: Options of its metrics or of its aggregate, such as `to="White"`, `beta=2` or `alpha=1`.

        Raises:
            ColumnError, AggregateError, ArgumentError: If the feature, the aggregate or an option does not fit.
        """
        name = self.name if name is None else name
        _check_is_feature(by, options, name)
        policy = Policy.of(name, min_n, min_share, unknown, unknown_values)
        direction, source = self.direction, self.source
        if aggregate is None:
            used = self.aggregate
        else:
            # another comparison than the one that the source defines
            used, direction, source = as_aggregate(aggregate, name), None, None
        if getattr(self.aggregate, "signed", None) and getattr(used, "signed", False) is None:
            # a signed metric stays signed, whatever it is compared with
            used = replace(used, signed=True)
        accepted = replace(self, aggregate=used).options
        for option in options:
            if option not in accepted:
                if any(option in OPTIONS[own].names_elsewhere.split() for own in OF_CALLS):
                    msg = f"{_is_factory(name)} {hint(option, OF_CALLS)}"
                    raise ArgumentError(msg)
                kind = f"option of {name}"
                raise unknown_keyword(kind, option, [*accepted, "aggregate", *GroupOptions.__annotations__, "name"])
        of_aggregate = {option: value for option, value in options.items() if option in used.options}
        if of_aggregate:
            used = replace(used, **of_aggregate)
        metrics, less, otherwise = (
            tuple(_with(metric, options) for metric in own) for own in (self.metrics, self.less, self.otherwise)
        )
        return GroupwiseMetric(name, metrics, By.of(by, name, policy), used, direction, less, source, otherwise)

    def comparison_by(
        self, method: str, by: tuple[FeatureLike, ...], name: str | None, groups: GroupOptions,
        aggregate: Aggregate,
    ) -> GroupwiseMetric:  # fmt: skip
        """Another comparison of its metrics, under a name that says which."""
        _check_comparison(self.name, method, by, groups)
        return self(*by, aggregate=aggregate, name=name or f"{self.name.removesuffix(f'_{method}')}_{method}", **groups)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INTERNAL_TO_FACTORIES]

    @property
    def options(self) -> dict[str, object]:
        """The options of its metrics and its aggregate that a call may set, with their defaults."""
        options: dict[str, object] = {}
        for metric in (*self.metrics, *self.less):
            options.update(metric.options)
        options.update(self.aggregate.options)
        return {name: default for name, default in options.items() if name not in self.fixed}

    @property
    def explained(self) -> str:
        """Description of the groupwise metric that it makes, and of the metrics that are compared."""
        call = f'Call it with the feature, then call the result with the data: `{self.name}("column")(data, …)`.'
        arguments = inspect.cleandoc(str(GroupwiseFactory.__call__.__doc__))
        described = self.typical.described_as(self.name)
        return "\n\n".join([*described, call, call_in_words(self.name, self.signature), arguments])

    @property
    def signature(self) -> inspect.Signature:
        """The signature of a call, including the options of its metrics and its aggregate."""
        signature = inspect.signature(GroupwiseFactory.__call__)
        _, by, *named, _ = signature.parameters.values()
        defaults = {"aggregate": self.aggregate, "name": self.name}
        parameters = [by]
        parameters += [
            parameter.replace(default=defaults.get(parameter.name, parameter.default)) for parameter in named
        ]
        for name, default in self.options.items():
            if name not in signature.parameters:
                parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
        return signature.replace(parameters=parameters)

    @property
    def typical(self) -> GroupwiseMetric:
        """The groupwise metric of a column, or of two sides if a sign needs them."""
        try:
            return self("a column")
        except AggregateError:
            return self(privileged({"a column": "a value"}))

    def __repr__(self) -> str:
        made_of = f"{self.aggregate!r} of {_shown(self)}"
        return visible(f'<factory of groupwise metrics {self.name}: {made_of}; call {self.name}("column")(data, …)>')

    def _repr_html_(self) -> str:
        columns = columns_of((*self.metrics, *self.less))
        remark = f"{self.aggregate!r} of {_shown(self)}"
        call = f'{self.name}("column"){CALL}'
        return display("factory of groupwise metrics", columns, name=self.name, remark=remark, call=call)


_INTERNAL_TO_FACTORIES = frozenset({"comparison_by", "explained", "fixed", "signature", "typical"})
_SIDES: dict[str, Direction] = {"higher": "maximize", "lower": "minimize"}
"""Directions by the values that are better."""
_OTHER_WORDS = {
    "diff": "difference", "disparity": "difference", "gap": "difference",
    "min": "group_minimum", "minimum": "group_minimum", "group_min": "group_minimum",
    "max": "group_maximum", "maximum": "group_maximum", "group_max": "group_maximum",
}  # fmt: skip
"""Other words for comparisons."""


def comparison(metric: Metric, method: str, aggregate: Aggregate | None = None) -> GroupwiseFactory:
    """The factory of a metric's own comparison, such as `accuracy_difference`."""
    return GroupwiseFactory(f"{metric.name}_{method}", (metric,), aggregate or COMPARISONS[method]())


def _check_comparison(name: str, method: str, by: Sequence[object], groups: Mapping[str, object]) -> None:
    """Refuse a comparison without a feature, with data in its place, or with an aggregate besides that of its name."""
    call = f"{name}.{method}"
    if not by:
        msg = f'{call}() needs the sensitive feature: `{call}("column")`.'
        raise ArgumentError(msg)
    if "aggregate" in groups:
        others = ", ".join(f"`{name}.{other}(…)`" for other in COMPARISONS if other != method)
        msg = (
            f"{call}() takes no `aggregate`, which its name says. Write {others}, or "
            f'`new_groupwise_metric({name}, "name", aggregate)(…)` for any other.'
        )
        raise ArgumentError(msg)
    _check_is_feature(by, {}, call)


def _check_is_feature(by: Sequence[object], options: Mapping[str, object], name: str) -> None:
    """Refuse the arguments of a metric in a call of a factory."""
    has_frame = any(hasattr(feature, "columns") and not isinstance(feature, Privileged | Memberships) for feature in by)
    if has_frame or not OF_CALLS.isdisjoint(options):
        raise ArgumentError(_is_factory(name))


def _is_factory(name: str) -> str:
    """The message for the arguments of a metric in a call of a factory."""
    return f'{name} is a factory: write `{name}("column")(data, …)` with the sensitive feature first.'


def _shown(metric: GroupwiseMetric | GroupwiseFactory) -> str:
    """The names of the metrics that are compared."""
    compared = ", ".join(base.name for base in metric.metrics)
    less = ", ".join(base.name for base in metric.less)
    return f"{compared} minus that of {less}" if less else compared


def _with(metric: Metric, options: Mapping[str, object]) -> Metric:
    """The metric with those options that it has."""
    tweaks = {name: value for name, value in options.items() if name in metric.options}
    return metric.tweaked(metric.name, tweaks) if tweaks else metric


@dataclass(frozen=True)
class MetricSet(Evaluable, Comparable["MetricSet"]):
    """Several metrics in one call and one pass over the data; made by `metric_set`."""

    __doc__ = _OfObject(lambda metrics: metrics.explained, __doc__)  # pyright: ignore[reportAssignmentType] - a text

    metrics: tuple[Metric | GroupwiseMetric, ...]

    @property
    def specs(self) -> tuple[MetricSpec, ...]:
        """Its metrics, in order."""
        return self.metrics

    @property
    def explained(self) -> str:
        """Its metrics, and description of its call."""
        members = "\n".join(f"    {member!r}" for member in self.metrics)
        return (
            f"Metrics that are evaluated together, in one pass over the data:\n\n{members}\n\n"
            + self.explained_call("metrics")
        )

    def _variant(self, columns: AbstractSet[str]) -> MetricSet:
        """The set, with the variant of each metric for the given columns."""
        metrics = tuple(metric.reading(columns) for metric in self.metrics)
        return self if metrics == self.metrics else MetricSet(metrics)

    def comparison_by(
        self, method: str, by: tuple[FeatureLike, ...], name: str | None, groups: GroupOptions,
        aggregate: Aggregate,
    ) -> MetricSet:  # fmt: skip
        """The set of its metrics, each compared between groups."""
        if name is not None:
            msg = f"A set takes no `name`: each of its metrics has one of its own, such as `sens_{method}`."
            raise ArgumentError(msg)
        compared: list[GroupwiseMetric] = []
        for metric in self.metrics:
            if not isinstance(metric, Metric):
                msg = f"{metric.name} already compares groups; this method needs a set of ordinary metrics."
                raise ArgumentError(msg)
            compared.append(metric.comparison_by(method, by, None, groups, aggregate))
        return MetricSet(tuple(compared))

    def __iter__(self) -> Iterator[Metric | GroupwiseMetric]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __repr__(self) -> str:
        return "\n".join(["<metric set of", *(f"  {member!r}" for member in self.metrics), ">"])

    def _repr_html_(self) -> str:
        return display(f"metric set of {len(self)}", columns_of(self.metrics), call=f"metrics{CALL}")


KINDS = {
    "class": "labels", "prob": "scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals and quantiles",
}  # fmt: skip
"""The kinds of metrics, and what they read."""
PYTHON_ONLY = {"survival", "interval"}
"""The kinds whose columns are several, so that the command line does not read them."""
_TOGETHER = {"class", "prob"}
"""The kinds whose metrics may be in one set."""


def columns_of(metrics: Iterable[Metric | GroupwiseMetric]) -> dict[str, list[str]]:
    """Metrics as the columns of a table for notebooks."""
    columns: dict[str, list[str]] = {
        heading: [] for heading in ("metric", "by", "formula", "reads", "good", "range", "meaning")
    }
    for metric in metrics:
        low, high = metric.range
        columns["metric"].append(metric.name)
        columns["by"].append("" if metric.by is None else metric.by.text)
        of_groups = isinstance(metric, GroupwiseMetric)
        columns["formula"].append(f"{metric.aggregate!r} of {_shown(metric)}" if of_groups else _arithmetic(metric))
        columns["reads"].append(KINDS[metric.kind])
        columns["good"].append(metric.better)
        columns["range"].append(f"{low:g} to {high:g}")
        columns["meaning"].append(metric.meaning)
    return columns


def _arithmetic(metric: Metric) -> str:
    """Its formula as it is written, without the axis of labels and the name of numpy; empty if it is not one line."""
    text = arithmetic_of(metric.definition.function) or ""
    if re.search(r"\b_\w", text):
        return ""
    over_labels = r"(\w+|\([^()]*\))\.sum\(axis=-1\)"
    text = re.sub(over_labels, lambda match: f"sum({match[1].strip('()')})", text)
    return text.replace("np.", "").replace("[..., 0]", "")


@refuse_unknown_settings
def metric_set(*metrics: Metric | GroupwiseMetric | MetricSet) -> MetricSet:
    """Combine metrics, groupwise metrics and other sets into one callable that reads the data once.

    Raises:
        ArgumentError: If the set is empty, has a member that is not a metric, a factory without its feature, numeric
            and class metrics together, or two metrics with the same name and `by`.

    >>> from tidyfair import accuracy, demographic_parity, metric_set
    >>> metric_set(accuracy, demographic_parity("sex"))
    <metric set of
      <class metric accuracy: maximize, 0 to 1>
      <groupwise metric demographic_parity('sex'): difference(to='range') of selection_rate, minimize>
    >
    """
    members: list[Metric | GroupwiseMetric] = []
    for metric in metrics:
        if isinstance(metric, MetricSet):
            members += metric.metrics
        else:
            _check_is_metric(metric)
            members.append(metric)
    if not members:
        msg = "A metric set needs at least one metric, such as `metric_set(accuracy)`."
        raise ArgumentError(msg)
    _check_kinds(members)
    _check_names(members)
    return MetricSet(tuple(members))


def _check_is_metric(given: object) -> None:
    """Refuse a member of a set that is not a metric, or a factory without its feature."""
    if isinstance(given, GroupwiseFactory):
        msg = f'{given.name} compares the groups of a column: did you mean `{given.name}("col")`?'
        raise ArgumentError(msg)
    if not isinstance(given, Metric | GroupwiseMetric):
        way_out = way_to_metrics(given)
        msg = f"A metric set takes metrics, groupwise metrics and metric sets, not {in_short(given)}.{way_out}"
        raise ArgumentError(msg)


def way_to_metrics(given: object) -> str:
    """The sentence on how to give metrics, for values that may have been meant as metrics; else empty."""
    if isinstance(given, str):
        return f" Write the metric itself, `tidyfair.{given}`." if given.isidentifier() else ""
    if isinstance(given, list | tuple):
        return " Write them one by one, without brackets."
    if isinstance(given, Mapping):
        return ' Write them one by one; `.alias("name")` gives a metric another name.'
    if callable(given) and not isinstance(given, type):
        return (
            " `new_class_metric(function, name)`, `new_prob_metric` and `new_numeric_metric` make a metric of a "
            "function (docs/pages/how-to/own-metric.md)."
        )
    return ""


def _check_kinds(members: Sequence[Metric | GroupwiseMetric]) -> None:
    """Refuse metrics in one set that read different columns."""
    first_names: dict[str, str] = {}
    for member in members:
        first_names.setdefault(member.kind, member.name)
    if len(first_names) > 1 and not {*first_names} <= _TOGETHER:
        names = [first_names[kind] for kind in sorted(first_names)]
        apart = next(KINDS[kind] for kind in first_names if kind not in _TOGETHER)
        kind = "numeric metrics" if "numeric" in first_names else f"metrics of {apart}"
        msg = f"A set cannot combine {kind} with others, because {listed(names)} read different columns. Make two sets."
        raise ArgumentError(msg)


def _check_names(members: Sequence[Metric | GroupwiseMetric]) -> None:
    """Refuse two metrics with the same name and `by`, and memberships with the name of another feature."""
    seen: set[tuple[str, str | None]] = set()
    features: dict[str, object] = {}
    for member in members:
        if isinstance(member, GroupwiseMetric):
            groups = member.by.memberships
            if features.setdefault(member.by.text, groups) != groups:
                msg = f"The set has two features {member.by.text!r}; give memberships another name with `name=`."
                raise ArgumentError(msg)
        by = member.by.text if isinstance(member, GroupwiseMetric) else None
        if (member.name, by) in seen:
            what, way_out = (f"{member.name} by {by}", "name=") if by else (member.name, '.alias("…")')
            msg = f"The set has two metrics {what}; give one of them another name with `{way_out}`."
            raise ArgumentError(msg)
        seen.add((member.name, by))


@overload
def metric_tweak(
    metric: Metric, name: str, *, better: Literal["higher", "lower"] | None = None, **options: object
) -> Metric: ...
@overload
def metric_tweak(metric: GroupwiseMetric, name: str) -> GroupwiseMetric: ...
@refuse_unknown_settings
def metric_tweak(
    metric: Metric | GroupwiseMetric, name: str, *, better: Literal["higher", "lower"] | None = None, **options: object
) -> Metric | GroupwiseMetric:
    """Set options of a metric under a new name; or give any metric another name.

    Args:
        metric: A metric; or a comparison of groups, which only gets the name.
        name: The name in `.metric`.
        better: `"lower"` where low values are the good ones, such as those of a score of risk, or `"higher"`. It says
            which group is the best or the worst, which models are better, and which side a gate limits; decisions by
            `threshold=` or `top_k=` take high scores, so give these `(1 - pl.col("risk")).alias("safety")`.
        options: Options of the metric.

    >>> from tidyfair import f_meas
    >>> f2 = metric_tweak(f_meas, "f2", beta=2)
    >>> f2.formula(precision=0.5, recall=1.0)
    0.8333333333333334
    """
    if isinstance(metric, GroupwiseFactory):
        given = ", ".join(f"{option}={value!r}" for option, value in options.items())
        given = given or f'name="{name}"'
        msg = f'{metric.name} is a factory; give the options in its call: `{metric.name}("column", {given})`.'
        raise ArgumentError(msg)
    if isinstance(metric, GroupwiseMetric) and not options and better is None:
        return replace(metric, name=text("name", name))
    if not isinstance(metric, Metric):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"metric_tweak() takes a metric with options, such as f_meas, not {in_short(metric)}."
        if metric.__class__ is GroupwiseMetric:
            msg = f"{metric.name} compares groups: set the options of its metric, and compare that."
        raise ArgumentError(msg)
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"metric_tweak(): the name of a metric is a non-empty text, not {in_short(name)}."
        raise ArgumentError(msg)
    return metric.tweaked(name, options, better)
