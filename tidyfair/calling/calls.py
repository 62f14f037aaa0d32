"""The common call of metrics, groupwise metrics and metric sets."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set as AbstractSet
from functools import cached_property
from textwrap import fill
from typing import Any, ClassVar, Self, Unpack, overload

import polars as pl

from tidyfair.calling.runner import Run
from tidyfair.errors import ArgumentError
from tidyfair.specs import (
    CallOptions,
    ComputeOptions,
    Frame,
    GroupCallOptions,
    GroupReadOptions,
    MetricSpec,
    Options,
    Prediction,
    SurveyCallOptions,
    SurveyCountOptions,
    TruthLike,
    compared_columns,
    show_keywords,
)
from tidyfair.specs.result_kinds import with_level
from tidyfair.tallies import PolarsFrame, Tally, check_tally, frame_of_arrays

INTERNAL = frozenset({
    "comparison_by", "constant_averages", "definition", "described_as", "explained", "explained_call", "formulas",
    "label_by_label", "least_rows", "meaning_with", "of_all_rows", "of_distances", "of_kind", "others", "otherwise",
    "own_direction", "range_of", "reading", "readings", "run", "several", "specs", "subtracted", "tweaked",
    "with_policy", "with_readings",
})  # fmt: skip
"""Attributes of metrics for internal use."""
_WIDTH = 100
_CACHED = ("run", "_variants", "readings")
"""Properties that are recomputed when a metric is copied or unpickled."""


class Evaluable(ABC):
    """A callable on dataframes: a metric, a groupwise metric or a set of them."""

    _internal: ClassVar[frozenset[str]] = INTERNAL
    """The names not offered by completion."""

    @property
    @abstractmethod
    def specs(self) -> tuple[MetricSpec, ...]:
        """The metrics that it reports, in order."""

    @cached_property
    def readings(self) -> tuple[Self, ...]:
        """Its variants for each kind of predictions that it reads."""
        return (self,)

    def reading(self, columns: AbstractSet[str]) -> Self:
        """Its variant for the given columns: labels or, without them, scores."""
        given = frozenset(columns)
        if given not in self._variants:
            self._variants[given] = self._variant(given)
        return self._variants[given]

    @cached_property
    def _variants(self) -> dict[frozenset[str], Self]:
        """The variants by the given columns."""
        return {}

    def _variant(self, columns: AbstractSet[str]) -> Self:
        """The first of its variants that reads no other columns; itself if there is none."""
        for reading in self.readings:
            needed = {role for spec in reading.specs for _, formula in spec.formulas for role in formula.reads}
            if needed <= columns:
                return reading
        return self

    def _options(
        self, keywords: Mapping[str, Any], accepted: type[Any], *, truth: object = None, estimate: object = None
    ) -> Options:
        """The options of a call, without a confidence level if it asks for no intervals."""
        options = self.run.options(keywords, accepted, truth=truth, estimate=estimate)
        # `interval=None` may ask for none
        if "conf_level" in keywords and "interval" not in keywords:
            msg = '`conf_level` is the level of intervals, which this call does not ask for: add `interval="auto"`.'
            raise ArgumentError(msg)
        return options

    def _reading_of(self, tally: Tally) -> Self:
        """Its variant for a tally."""
        check_tally(tally)
        return self.reading(tally.given)

    def explained_call(self, name: str) -> str:
        """The call, its arguments and the methods with the same arguments, as shown by `help()`."""
        call = type(self).__call__
        more = (
            f"`{name}.by_group(data, …)` takes the same arguments and returns the values of the groups; "
            f"`{name}.arrays(truth, …)` takes arrays; `{name}.tally(data, …)` counts rows, and "
            f"`{name}.compute(tally)` computes from the counts."
        )
        arguments = inspect.cleandoc(str(call.__doc__))
        return "\n\n".join([call_in_words(name, inspect.signature(call)), arguments, in_lines(more)])

    def __dir__(self) -> list[str]:
        """The names offered by completion: those for users, without the ones used by evaluation."""
        return [name for name in super().__dir__() if name not in self._internal]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _CACHED}

    @cached_property
    def run(self) -> Run:
        """The steps of a call, one by one, for tests, gates and intervals."""
        return Run(self.specs)

    @overload
    def __call__(
        self, data: PolarsFrame, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def __call__(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> Frame: ...  # fmt: skip
    @show_keywords(SurveyCallOptions)
    def __call__(
        self, data: object = None, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[SurveyCallOptions],
    ) -> Frame:  # fmt: skip
        """Evaluate on a dataframe.

        Args:
            data: A polars, pandas or pyarrow frame, grouped or not.
            truth: Column of the true labels, or numbers; or survival times, `survival.outcome("time", "event")`.
            estimate: Column of the predicted labels, or numbers; or a prediction interval,
                `prediction_intervals.interval("lower", "upper", level=0.9)`, or quantiles, as a mapping from level to
                column.
            options: Keyword arguments, listed below.

        Returns:
            A tidy frame of the caller's kind with one row for each metric and outer group (and threshold of a list):
            the outer keys, `.metric`, `.by`, `.estimator`, `.estimate` (null where undefined), and what `explain` adds.

        Raises:
            TidyfairError: If an argument or the data are invalid or ambiguous.
        """
        asked = self._options(options, SurveyCallOptions, truth=truth, estimate=estimate)
        return self.reading(asked.given).run.results(data, asked)

    def arrays(
        self, truth: object = None, estimate: object = None, *, probs: object = None, case_weights: object = None,
        frequency_weights: object = None, by: Mapping[str, object] | None = None,
        group_by: Mapping[str, object] | None = None, ignore_index: object = None, **options: Any,
    ) -> pl.DataFrame:  # fmt: skip
        """Evaluate on arrays instead of the columns of a frame.

        Args:
            truth: True labels or numbers, as a list, a numpy array, or an object convertible to one (a tensor on the
                CPU).
            estimate: Predictions.
            probs: Scores of the event, or a mapping from labels to the scores of each.
            case_weights: Case weights.
            frequency_weights: Number of equal rows that a row stands for.
            by: The sensitive features, keyed by their names in the metrics.
            group_by: Outer groups by name.
            ignore_index: Rows whose truth is this value are left out.
            options: Further options of a call.

        >>> from tidyfair import demographic_parity_ratio
        >>> parity = demographic_parity_ratio("sex")
        >>> parity.arrays(estimate=[1, 0, 1, 1], by={"sex": [0, 0, 1, 1]})[".estimate"].item()
        0.5
        """
        frame, named = self._framed(
            by, group_by, ignore_index, options, CallOptions, truth=truth, estimate=estimate, probs=probs,
            case_weights=case_weights, frequency_weights=frequency_weights,
        )  # fmt: skip
        return self(frame, **named, **options)

    def arrays_by_group(
        self, truth: object = None, estimate: object = None, *, probs: object = None, case_weights: object = None,
        frequency_weights: object = None, by: Mapping[str, object] | None = None,
        group_by: Mapping[str, object] | None = None, ignore_index: object = None, **options: Any,
    ) -> pl.DataFrame:  # fmt: skip
        """Evaluate each group on arrays: `by_group` with the arguments of `arrays`.

        >>> from tidyfair import demographic_parity
        >>> parity = demographic_parity("sex")
        >>> parity.arrays_by_group(estimate=[1, 0, 1, 1], by={"sex": [0, 0, 1, 1]})[".estimate"].to_list()
        [0.5, 1.0]
        """
        frame, named = self._framed(
            by, group_by, ignore_index, options, GroupCallOptions, truth=truth, estimate=estimate, probs=probs,
            case_weights=case_weights, frequency_weights=frequency_weights,
        )  # fmt: skip
        return self.by_group(frame, **named, **options)

    def _framed(
        self, by: Mapping[str, object] | None, group_by: Mapping[str, object] | None, ignore_index: object,
        options: Mapping[str, object], accepted: type[Any], **roles: object,
    ) -> tuple[pl.DataFrame, dict[str, Any]]:  # fmt: skip
        """Convert arrays to a frame, and return the arguments that name its columns."""
        # before there are columns to name in place of a keyword that does not exist
        for name in options:
            if name not in accepted.__annotations__:
                raise self.run.unknown_option(name, ["by", "ignore_index", *accepted.__annotations__])
        return frame_of_arrays(roles, by, group_by, ignore_index, compared_columns(self.specs))

    @overload
    def by_group(
        self, data: PolarsFrame, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[GroupCallOptions],
    ) -> pl.DataFrame: ...  # fmt: skip
    @overload
    def by_group(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[GroupCallOptions],
    ) -> Frame: ...  # fmt: skip
    @show_keywords(GroupCallOptions)
    def by_group(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[GroupCallOptions],
    ) -> Frame:  # fmt: skip
        """The values of the groups behind disparities; takes the arguments of a call.

        An ordinary metric does not compare groups, and has one row for all data. For its value in each group use
        `group_by=`, or a disparity of it, such as `accuracy.difference("sex")`.

        Columns: outer keys, `.metric`, `.by` and `.group` (null for ordinary metrics), `.level` (the label that a row
        is about, null for all or the event), `.estimator`, `.estimate`, `.n` and `.denominator` in rows, and `.status`,
        the reason why a value is null (`zero_denominator`, `one_class`, `constant`, `missing_values`, `below_min_n`,
        `left_out` …), or `ok`, `infinite`, `levels_left_out`. With weights and intervals `.effective_n` is the
        effective number of rows of the denominator (after Kish, 1965; linearized).

        With `simultaneous=True` the intervals of all groups of a metric jointly have the level `conf_level`, within
        each outer group: each of k groups has the level `conf_level ** (1 / k)` (Šidák, 1967), which is exact for
        independent groups, and conservative for groups that share clusters. `.method` then ends with `simultaneous`.
        """
        asked = self._options(options, GroupCallOptions, truth=truth, estimate=estimate)
        return self.reading(asked.given).run.groups(data, asked)

    @show_keywords(SurveyCountOptions)
    def tally(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[SurveyCountOptions],
    ) -> Tally:  # fmt: skip
        """Count the rows for a later `compute`; tallies of parts of the data add up to the tally of the whole."""
        asked = self.run.options(options, SurveyCountOptions, truth=truth, estimate=estimate)
        return self.reading(asked.given).run.tally(data, asked)

    @show_keywords(ComputeOptions)
    def compute(self, tally: Tally, **options: Unpack[ComputeOptions]) -> pl.DataFrame:
        """Compute from a tally: `f.compute(f.tally(data, …), …)` equals `f(data, …)`."""
        asked = self._options(options, ComputeOptions)
        return with_level(self._reading_of(tally).run.results_of(tally, asked), asked.conf_level)

    @show_keywords(GroupReadOptions)
    def compute_by_group(self, tally: Tally, **options: Unpack[GroupReadOptions]) -> pl.DataFrame:
        """Compute the values of the groups from a tally, as `by_group` does from data."""
        asked = self._options(options, GroupReadOptions)
        return with_level(self._reading_of(tally).run.groups_of(tally, asked), asked.conf_level)


def call_in_words(name: str, signature: inspect.Signature) -> str:
    """A call with its parameters and defaults, in short lines and without types."""
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return in_lines(f"{name}{inspect.Signature(parameters)}", indent="    ")


def in_lines(text: str, indent: str = "") -> str:
    """A paragraph wrapped for a terminal, with a hanging indent."""
    return fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
