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
    OptionsOf,
    Prediction,
    SurveyCallOptions,
    SurveyCountOptions,
    TruthLike,
    compared_columns,
    show_keywords,
)
from tidyfair.specs.result_kinds import with_level
from tidyfair.tallies import PolarsFrame, Tally, check_threads

INTERNAL = frozenset({
    "comparison_by", "constant_averages", "definition", "explained", "explained_call", "formulas", "label_by_label",
    "least_rows", "meaning_with", "of_all_rows", "of_distances", "of_kind", "others", "otherwise",
    "own_direction", "range_of", "reading", "readings", "run", "several", "specs", "subtracted", "tweaked",
    "with_policy", "with_readings",
})  # fmt: skip
"""Attributes of metrics for internal use."""
_WIDTH = 100
_CACHED = ("_run", "_sets", "readings")
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
        readings = self.readings
        if len(readings) == 1:
            return self
        for reading in readings:
            needed = {role for spec in reading.specs for _, formula in spec.formulas for role in formula.reads}
            if needed <= columns:
                return reading
        return self

    def _options(
        self, keywords: Mapping[str, Any], accepted: OptionsOf, *, truth: object = None, estimate: object = None
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
        from tidyfair.tallies import check_tally  # noqa: PLC0415 - with what counts, at the first call

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

    @property
    def run(self) -> Run:
        """The steps of a call, one by one, for tests, gates and intervals."""
        check_threads()
        return self._run

    # worked out once, so that many small calls stay cheap
    @cached_property
    def _run(self) -> Run:
        # what counts and reads is imported at the first call, so that the import of the library stays short
        from tidyfair.calling.runner import Run  # noqa: PLC0415 - at the first call

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
            group_by: Columns whose groups (folds, models, months) get separate rows; or `privileged(…)`, for separate
                rows of the two sides, named in a column `side`.
            case_weights: Column of weights, finite and not negative. Intervals and tests treat them as sampling
                weights, whose scale does not matter.
            frequency_weights: Column of the number of equal rows that a row stands for, whole numbers from 0 on.
            probs: Column of scores (probabilities of the event); with more than two labels a list of columns in the
                order of the labels, or a mapping from label to column. For survival times, a mapping from evaluation
                time to the column of survival probabilities, which adds `.eval_time`.
            threshold: Scores at or above it select the event, instead of `estimate`. A list adds `.threshold`, and
                `{"sex": {"female": 0.4, "male": 0.5}}` is a threshold for each group; `operating_point(…)` chooses one
                from the data.
            top_k: Number of rows with the highest scores to select in each outer group. Rows tied with the last one are
                selected too, with a `SelectionWarning`.
            top_fraction: The same as a share of the rows, or of their weight.
            score_bins: Number of bins (at most 65,536) of equal width between 0 and 1, from whose counts ranking
                metrics such as roc_auc are computed; a tally then keeps no scores. `.error_bound` is the largest
                possible error of a value, null if unknown. Without it more than 100,000 distinct rows of another engine
                are counted in 4,096 bins, with an `EngineWarning`; `"exact"` transfers them.
            cluster: Column that identifies dependent rows, such as those of one patient, for intervals that allow for
                it.
            design: The design of a complex survey, made by `surveys.design` or `surveys.replicate_weights`, with its
                weights; for `interval="auto"` of rates, means and areas, and their differences and ratios.
            suppress_below: Counts from 1 to below this number are not shown, nor what would give one away, as groups
                subtracted from a total do. Values of these groups are null (`suppressed`), and disparities leave them
                out.
            parts: A seed, needed for a tally of scores or numbers if intervals are to be computed: rows are assigned to
                400 random parts. A call with `interval=` leaves out up to 20,000 rows one by one, and does this itself
                with more.
            keep_rows: Whether a tally keeps its rows even if counts suffice, for tests that permute them.
            judged: Column of the labels of a judge, such as another model, for all rows, where `truth` holds labels of
                people for few of them and is null elsewhere; or of its scores of the event between 0 and 1, read to
                three decimals. Metrics of labels are estimated from both, by prediction-powered inference with power
                tuning (Angelopoulos, Duchi and Zrnic, 2023).
            label_probability: Column of the probability, by design, with which a row was drawn to be labeled by
                people, such as that of its stratum; left out if rows of a group have the same.
            pos_label: The label that is the event; needed unless labels are Boolean, 0/1 or -1/1. Where it does not
                occur among several labels, everything is null (`unseen_event`).
            labels: All labels in order, if the data do not declare them. Text of engines without levels (Spark, Ibis,
                files in Dask, Arrow in DuckDB) does not, so labels that do not occur are unknown.
            estimator: Treatment of more than two labels: "macro" (the default), "macro_weighted" or "micro" averages,
                "hand_till" (the default of roc_auc), or "one_vs_rest", which compares groups label by label; "binary"
                requires one label against the rest.
            na_rm: Whether rows without a truth, estimate or score are left out (True), or make the metric null.
            on_undefined: Groups without a value are left out with a warning ("warn") or silently ("ignore"), make
                disparities null ("null"), or raise an error ("raise").
            interval: `"auto"` adds `.lower`, `.upper`, `.std_error` and `.method` by the best method for each value;
                `"analytic"` and `"exact"` (Clopper and Pearson, of rates) are in closed form, `"bootstrap"` and
                `"bayes"` by replicates; the name of a method, such as `"jeffreys"` or `"agresti_caffo"`, asks for
                that one (an error lists those that apply).
            conf_level: Confidence level of intervals (0.95); needs `interval=`.
            times: Number of replicates (10,000 of counts and sums, 1,000 of rows, or as many as `conf_level` needs).
            seed: Random seed of the replicates; the same seed gives the same result.
            explain: Whether to add `.n`, `.status`, `.group_min`, `.group_max`, `.level`, `.base_metric` (which of
                several metrics it is the worst of), `.metrics_left_out`, `.groups_left_out`, `.groups_outside` (those
                that are unknown, or too small) and `.left_out` (the metrics that these groups were left out of, and
                why); and with `interval=` `.replicates_lost`, in how many replicates some group has no value.

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
        roles = {
            "truth": truth, "estimate": estimate, "probs": probs, "case_weights": case_weights,
            "frequency_weights": frequency_weights,
        }  # fmt: skip
        frame, named = self._framed(roles, by, group_by, ignore_index, options, CallOptions)
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
        roles = {
            "truth": truth, "estimate": estimate, "probs": probs, "case_weights": case_weights,
            "frequency_weights": frequency_weights,
        }  # fmt: skip
        frame, named = self._framed(roles, by, group_by, ignore_index, options, GroupCallOptions)
        return self.by_group(frame, **named, **options)

    def _framed(
        self, roles: Mapping[str, object], by: Mapping[str, object] | None, group_by: Mapping[str, object] | None,
        ignore_index: object, options: Mapping[str, object], accepted: OptionsOf,
    ) -> tuple[pl.DataFrame, dict[str, Any]]:  # fmt: skip
        """Convert arrays to a frame, and return the arguments that name its columns."""
        from tidyfair.tallies import frame_of_arrays  # noqa: PLC0415 - with what counts, at the first call

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
