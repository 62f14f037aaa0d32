"""Base class of tests and gates that are called on data: from the options of a call to the result."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, Self, Unpack, cast

import polars as pl

from tidyfair.calling import CALL, GroupwiseMetric, Metric, MetricSet, Run, columns_of
from tidyfair.errors import ArgumentError
from tidyfair.escapes import display, visible
from tidyfair.evaluation import Evaluated
from tidyfair.inference.result_frames import Content, Schema, frame_of_outer_groups, outer_keys_of, schema_of
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.specs import (
    ALL_GROUPS,
    CallOptions,
    Column,
    Frame,
    MetricSpec,
    Options,
    Policy,
    Prediction,
    ReadOptions,
    SurveyCallOptions,
    TruthLike,
    difference,
    refuse,
    refuse_unknown,
    show_keywords,
)
from tidyfair.specs.result_kinds import ResultKind, with_level
from tidyfair.tallies import Source, Tally, check_tally, open_frame

_INTERNAL = frozenset({
    "accepted", "follows", "is_chosen_by_value", "judged", "kind", "refused", "subject", "without",
})  # fmt: skip
"""The names not offered by completion."""


_COUNTED = "but this tally was counted with"
_UNSUPPORTED = {
    "design": f"does not support survey designs, {_COUNTED} one; count again without `design=`",
    "judged": (
        f"does not use the labels of a judge, {_COUNTED} them; count again without `judged=`, or compare by "
        "influences: `compare_groups`, `compare_models`, `inference.pairwise`"
    ),
    "suppress_below": "does not support `suppress_below`; count again without it, and publish no result",
    "operating_point": "needs a fixed threshold: choose it on another sample, `operating_point(…, on=…)`",
}
"""The steps of counting that only some results follow, and what the others say."""


AUDITED = "probs threshold group_by pos_label labels"
"""The options that all verbs on a rate accept."""


def accepting(names: str) -> type[Any]:
    """The type of options of a call, by their names."""
    hints = SurveyCallOptions.__annotations__
    return type("AcceptedOptions", (), {"__annotations__": {name: hints[name] for name in names.split()}})


def _copy_of(function: Any) -> FunctionType:
    """A function with the same body, whose signature may be another one."""
    copied = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copied.__doc__, copied.__qualname__ = function.__doc__, function.__qualname__
    copied.__annotations__ = function.__annotations__
    return copied


class CalledOnData(ABC):
    """Metrics with a test or another analysis, as a callable on dataframes.

    A subclass states the options that it accepts, and defines the steps of a call.
    """

    subject: ClassVar[str]
    """The subject of error messages."""
    accepted: ClassVar[type[Any]] = CallOptions
    """The options that a call shows in `help()`, without those that are refused."""
    _in_words: ClassVar[tuple[str, ...]] = ("metric", "metrics")
    """The arguments other than settings, which representations show in words."""
    follows: ClassVar[frozenset[str]] = frozenset()
    """Steps of counting that the result follows beside the accepted options, and notices that it shows itself.

    `operating_point`, a threshold that is chosen from the same rows; `points`, a row for each evaluation time or level
    of a quantile; `suppress_below`, no small count of the tally that is read follows from the result; `unknown`, how
    many rows are of unknown groups; `missing`, warnings of missing predictions, by the metrics that it computes.
    """
    refused: ClassVar[Mapping[str, str]] = {}
    """The options of metrics that are not accepted unless they are None, each with the end of its error message."""
    kind: ClassVar[ResultKind]
    """The kind of the result."""
    without: ClassVar[str] = ""
    """The columns of the kind that the result does not have."""

    def __init_subclass__(cls) -> None:
        """Have `help()` and editors show the keywords that the class accepts."""
        super().__init_subclass__()
        for name, options in (("__call__", cls.accepted), ("compute", ReadOptions)):
            if hasattr(cls, name) and name not in vars(cls):
                function = _copy_of(inspect.unwrap(getattr(cls, name)))
                setattr(cls, name, show_keywords(options, without=cls.refused)(function))

    def __call__(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> Frame:  # fmt: skip
        """Evaluate on a dataframe; takes the arguments of a metric."""
        return self._on_data(data, truth, estimate, options)

    @property
    @abstractmethod
    def _run(self) -> Run:
        """The run that counts the rows and evaluates the counts."""

    @abstractmethod
    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The result, computed from a tally."""

    @property
    def _schema(self) -> Schema:
        """The columns of results beside the keys of outer groups."""
        return schema_of(self.kind, without=self.without)

    def __repr__(self) -> str:
        """The metrics, the settings that are not off or empty, and the call to write."""
        made_of = "; ".join(filter(None, [", ".join(self._members()), ", ".join(self._settings())]))
        return visible(f"<{type(self).__name__} of {made_of}; call it with {CALL}>")

    def _repr_html_(self) -> str:
        """The same for notebooks, with a table of the metrics."""
        remark = ", ".join(self._settings())
        return display("", self._html_columns(), name=type(self).__name__, remark=remark, call=CALL)

    def _settings(self) -> list[str]:
        """The settings that are not off or empty, as texts."""
        settings: list[str] = []
        for argument in fields(cast("Any", self)):
            value = getattr(self, argument.name)
            if isinstance(value, Policy):
                settings += [f"{name}={stated!r}" for name, stated in value.stated.items()]
            elif value and argument.name not in self._in_words:
                if isinstance(value, tuple):
                    # columns are written by name
                    items = cast("tuple[object, ...]", value)
                    value = [item.name if isinstance(item, Column) else item for item in items]
                settings.append(f"{argument.name}={value!r}")
        return settings

    def _html_columns(self) -> dict[str, list[str]]:
        """The metrics as columns of a table."""
        return columns_of(self._listed())

    def _listed(self) -> Iterable[Any]:
        """The metrics."""
        return vars(self).get("metrics") or [vars(self)["metric"]]

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INTERNAL]

    def _members(self) -> list[str]:
        """The metrics as texts."""
        return [f"{metric.name}({metric.by!r})" if metric.by else metric.name for metric in self._listed()]

    def _options(
        self, run: Run, keywords: Mapping[str, Any], accepted: type[Any], *, truth: Any = None, estimate: Any = None
    ) -> Options:
        """The checked options of a call, with those that are fixed here."""
        refuse_given(self.subject, keywords, self.refused)
        return replace(run.options(keywords, accepted, truth=truth, estimate=estimate), **self._fixed())

    def _check_call(self, keywords: Mapping[str, Any]) -> None:  # noqa: B027 - most have none
        """Refuse a call for other reasons than an option that is never accepted."""

    def _fixed(self) -> dict[str, Any]:
        """The options that are the same in all calls."""
        return {"on_undefined": "ignore"}

    def _reading(self, columns: AbstractSet[str]) -> Self:  # noqa: ARG002 - most have metrics of one reading
        """The same object with the variants of the metrics for the given columns."""
        return self

    def _check_source(self, source: Source) -> None:  # noqa: B027 - most read no other columns
        """Refuse data without the columns that are read in addition to those of a metric."""

    def _counting_options(self, options: Options) -> Options:
        """The options of a call with those that only counting needs."""
        return options

    def _on_data(
        self, data: object, truth: TruthLike | None, estimate: Prediction | None, keywords: Mapping[str, Any]
    ) -> Any:
        """The result for data, as a frame of the caller's kind."""
        self._check_call(keywords)
        run = self._run
        options = self._options(run, keywords, self.accepted, truth=truth, estimate=estimate)
        if options.judged is not None and not self._follows("judged"):
            raise run.unknown_option("judged", CallOptions.__annotations__)
        run.check_independence(options)
        source = open_frame(data, options.group_by)
        self._check_source(source)
        called = self._reading(options.given)
        tally = called._run.count(source, called._counting_options(options))  # noqa: SLF001 - of the same class
        return source.restore(called._result_of_tally(tally, options, keywords))  # noqa: SLF001 - as above

    def _result_of_tally(self, tally: Tally, options: Options, keywords: Mapping[str, Any]) -> pl.DataFrame:
        """The result, after a notice of people of unknown groups and without a prediction, where it shows none."""
        self._check_tally(tally)
        if keywords.get("on_undefined", "warn") == "warn":
            may_ignore = "on_undefined" not in self.refused
            if not self._follows("unknown"):
                self._run.warn_of_unknown_groups([tally], may_ignore=may_ignore)
            if not self._follows("missing") and keywords.get("na_rm", True):
                self._run.warn_of_missing_predictions([tally], may_ignore=may_ignore)
        conf_level = vars(self).get("conf_level", options.conf_level)
        return with_level(self._in_reading_order(self._results(tally, options)), conf_level)

    def _follows(self, step: str) -> bool:
        """Check whether the result follows a step of counting, or shows what would else be a warning."""
        return step in self.accepted.__annotations__ or step in self.follows

    def _check_tally(self, tally: Tally) -> None:
        """Refuse a tally of steps that the result does not follow."""
        causes = tally.design, tally.judge, tally.suppression, tally.cut and tally.cut.point
        for (step, problem), cause in zip(_UNSUPPORTED.items(), causes, strict=True):
            if cause is not None and not self._follows(step):
                msg = f"{self.subject} {problem}."
                raise ArgumentError(msg)
        if not self._follows("points"):
            refuse_points(self.subject, self._run.specs, tally)

    def _in_reading_order(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with its columns in the order of its kind."""
        return self.kind.frame(table)


class CalledOnTallies(CalledOnData):
    """The same as a callable on dataframes and tallies."""

    def compute(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Evaluate a tally of all that is counted; equals a call on the data."""
        check_tally(tally)
        self._check_tally(tally)
        self._check_call(options)
        called = self._reading(tally.given)
        read = called._options(called._run, options, ReadOptions)  # noqa: SLF001 - of the same class
        return called._result_of_tally(tally, read, options)  # noqa: SLF001 - as above


class MetricSetOnData(CalledOnData):
    """The same for a metric set, which adapts to the given columns."""

    metrics: MetricSet

    @property
    def _run(self) -> Run:
        return self.metrics.run

    def _reading(self, columns: AbstractSet[str]) -> Self:
        return replace(cast("Any", self), metrics=self.metrics.reading(columns))


@dataclass(frozen=True, repr=False)
class GroupwiseOnData(CalledOnData):
    """The same for groupwise metrics, each of which adapts to the given columns."""

    metrics: tuple[GroupwiseMetric, ...]

    def _reading(self, columns: AbstractSet[str]) -> Self:
        return replace(self, metrics=tuple(metric.reading(columns) for metric in self.metrics))


@dataclass(frozen=True, repr=False)
class RateOnData(CalledOnData):
    """A rate, counted by all values of some columns together, as a callable on dataframes."""

    metric: Metric

    @property
    @abstractmethod
    def _features(self) -> Iterable[Column]:
        """The columns by whose values rows are counted."""

    @abstractmethod
    def _tables(self, evaluated: Evaluated, options: Options) -> Iterable[Content]:
        """The results of each outer group, in order."""

    @property
    def _counted(self) -> Metric | MetricSet:
        """The metric, or those whose sums it is made of."""
        return self.metric

    @cached_property
    def _compared(self) -> GroupwiseMetric:
        factory = new_groupwise_metric(self._counted, self.metric.name, difference())
        return factory(*(column.source for column in self._features)).with_policy(ALL_GROUPS)

    @property
    def _run(self) -> Run:
        return self._compared.run

    def _check_call(self, keywords: Mapping[str, Any]) -> None:
        columns = ["data", "truth", "estimate"] if self.metric.kind == "class" else ["data", "truth"]
        refuse_unknown("argument", keywords, [*columns, *self.accepted.__annotations__])

    def _fixed(self) -> dict[str, Any]:
        return super()._fixed() | {"estimator": "binary"}

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        refuse_several_cuts(self.subject, tally)
        (evaluated,) = self._run.evaluate(tally, options, are_features=False)
        return frame_of_outer_groups(
            outer_keys_of(evaluated), self._schema, enumerate(self._tables(evaluated, options))
        )

    def _keys(self, evaluated: Evaluated) -> pl.DataFrame:
        """The values of the columns in each group cell, under their names."""
        keys = evaluated.group_cells.keys[self._compared.by]
        return keys.rename(dict(zip(keys.columns, self._compared.by.names, strict=True)))


def refuse_given(subject: str, keywords: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Refuse options that are given with a value other than None."""
    refuse(subject, [name for name, value in keywords.items() if value is not None], refused)


def refuse_several_cuts(subject: str, tally: Tally) -> None:
    """Refuse a tally of several thresholds, or of several numbers or shares of selected rows."""
    if tally.cut is not None and tally.cut.several:
        msg = f"{subject} does not accept a list of values for {tally.cut.option}; give one value."
        raise ArgumentError(msg)


def refuse_points(function: str, specs: Iterable[MetricSpec], tally: Tally) -> None:
    """Refuse metrics at several evaluation times, or levels of quantiles, for functions with one row for each group."""
    forecast = tally.forecast
    if forecast is None or len(forecast.points) < 2:
        return
    points = "evaluation times as `probs=`" if forecast.is_survival else "levels of quantiles as `estimate=`"
    for spec in specs:
        for name, formula in spec.formulas:
            if formula.at_points:
                msg = f"{function} does not accept several {points} for {name}; give one."
                raise ArgumentError(msg)
