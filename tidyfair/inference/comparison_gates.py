"""Gates of comparisons: changes from one model to another, and groups compared with each other, with a limit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from tidyfair.errors import ArgumentError, Status, listed
from tidyfair.escapes import visible
from tidyfair.evaluation.states import OUTSIDE
from tidyfair.inference.model_comparison import COMPARISON_CALL, REFUSED_OF_MODELS, ModelComparison
from tidyfair.inference.on_data import CalledOnData
from tidyfair.inference.unknown_groups import (
    UNKNOWN_ROWS,
    UNKNOWN_SHARE,
    WITH_UNKNOWN,
    pass_in_each_group,
    with_unknown_in_each_group,
)
from tidyfair.inference.verdicts import (
    HIGH,
    LOW,
    PASS,
    UNSURE,
    compares_all,
    failed_after_holm,
    fails,
    passes,
    verdict,
    with_limits,
)
from tidyfair.metric_sets import metric_set
from tidyfair.specs.options import CallOptions, ReadOptions, show_keywords
from tidyfair.specs.result_columns import key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self, Unpack

    from tidyfair.inference.model_comparison import PairedModels
    from tidyfair.inference.verdicts import Outside, Side
    from tidyfair.metric_sets import GroupwiseMetric
    from tidyfair.runner import Run
    from tidyfair.specs.forecasts import Prediction, TruthLike
    from tidyfair.specs.groups import By
    from tidyfair.specs.options import Options
    from tidyfair.tallies.tally import Tally

_REFUSED: dict[str, str] = dict.fromkeys(("interval", "conf_level", "explain"), "; its `confidence` is that of `check`")


# Results


_TESTS = (".p_value", ".p_adjusted", ".adjustment")
"""The columns of tests of no difference."""


def judged_table(
    table: pl.DataFrame, limit: float, side: Side, outside: Outside, *, at_limit: bool = False
) -> pl.DataFrame:
    """A result of comparisons with verdicts by the intervals that it has; changes at their limit (`at_limit`) pass."""
    missing = [name for name in (".lower", ".upper") if name not in table.columns]
    if missing:
        msg = f"check(): the result has no {listed(missing)}."
        raise ArgumentError(msg)
    is_about_all_rows = ".by" in table.columns and table[".by"].is_null().all()
    if outside == "hold" and not is_about_all_rows and ".reference" not in table.columns:
        msg = (
            "check(): the result does not say which groups it leaves out, and these hold a pass back. Judge the "
            'comparison itself, such as `check(pairwise(…), below=0.1)(data, …)`; or give `outside="state"` for '
            "verdicts about the groups in the result alone."
        )
        raise ArgumentError(msg)
    table = with_limits(table, [(side, limit)] * len(table), pl.lit(not at_limit))
    table = table.with_columns(verdict(fails(), passes(at_limit=at_limit)))
    return _without_references(table, outside).drop(LOW, HIGH)


def _without_references(table: pl.DataFrame, outside: Outside) -> pl.DataFrame:
    """Verdicts without those on references, which equal themselves, and on groups that are outside of the scope."""
    is_judged = ~_is_reference(table)
    if outside == "state" and ".status" in table.columns:
        is_judged &= ~pl.col(".status").is_in(OUTSIDE)
    return table.with_columns(pl.when(is_judged).then(".verdict").alias(".verdict"))


def _is_reference(table: pl.DataFrame) -> pl.Expr:
    """Mask of the groups that others are compared with, which have no comparison of their own."""
    if ".reference" not in table.columns:
        return pl.lit(value=False)
    is_itself = (pl.col(".group") == pl.col(".reference")) & pl.col(".lower").is_null()
    return is_itself.fill_null(value=False)


# Changes from one model to another


@dataclass(frozen=True, repr=False)
class ChangeGate:
    """Changes from one model to another with a limit, as a callable on dataframes that returns verdicts."""

    comparison: ModelComparison
    side: Side
    limit: float
    confidence: float
    outside: Outside

    @show_keywords(CallOptions, without=REFUSED_OF_MODELS | _REFUSED)
    def __call__(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Give a verdict on the change of each metric from `one` to `other`; arguments are those of the comparison.

        Returns:
            The results of the comparison, with one-sided limits `.lower` and `.upper`, the groups that are left out or
            outside the policy, the rows of unknown groups, the `.limit` and the `.verdict`.
        """
        paired = self.comparison.paired(data, truth, one=one, other=other, **options)
        limits: dict[tuple[str, str | None], tuple[Side, float]] = {}
        for metric in self.comparison.metrics:
            limits[metric.name, metric.by.text if metric.by else None] = (self.side, self.limit)
        verdicts = judged_changes([paired], limits, self.confidence, self.outside)
        return paired.source.restore(self.comparison.in_reading_order(verdicts, one, other))

    def __repr__(self) -> str:
        setting = f"{self.side} {self.limit:g}; confidence={self.confidence:g}"
        return visible(f"<ChangeGate of {self.comparison!r}, {setting}; call it with {COMPARISON_CALL}>")


def change_gate(
    comparison: ModelComparison, side: Side, limit: float, confidence: float, outside: Outside
) -> ChangeGate:  # fmt: skip
    """A gate on the changes of metrics, after a check that the limit is on the side on which they get worse."""
    wrong = "maximize" if side == "below" else "minimize"
    for metric in comparison.metrics:
        if metric.direction in {"zero", "one"}:
            best = 0 if metric.direction == "zero" else 1
            msg = (
                f"check(): {metric.name} is best at {best}, so that no change of it is better or worse by itself; take "
                "a difference or a ratio without a sign."
            )
            raise ArgumentError(msg)
        if metric.direction == wrong:
            better, other = ("rise", "above") if side == "below" else ("fall", "below")
            msg = (
                f"check(): {metric.name} should {better}, so give the limit of its change as `{other}=`, such as "
                f"`{other}={-0.02 if other == 'above' else 0.02:g}`."
            )
            raise ArgumentError(msg)
    return ChangeGate(comparison, side, limit, confidence, outside)


def judged_changes(
    compared: Sequence[PairedModels],
    limits: Mapping[tuple[str, str | None], tuple[Side, float]],
    confidence: float,
    outside: Outside = "hold",
) -> pl.DataFrame:
    """The verdict on each change that has a limit, by `.metric` and `.by`: passes one by one, failures after Holm.

    A change at its limit is within it.
    """
    results, left_out, passed = _changes_that_pass(compared, limits, confidence, outside)
    results = results.with_columns(left_out.select(".groups_left_out", ".groups_outside", ".left_out"))
    if any(part.has_unknown() for part in compared):
        unknown = _with_limits(pl.concat([part.unknown() for part in compared]), limits)
        results = results.with_columns(unknown.select(UNKNOWN_ROWS, UNKNOWN_SHARE))
        matters = passed & (results[UNKNOWN_ROWS] > 0).fill_null(value=False) & (outside == "hold")
        is_pass = _passes_with_unknown(compared, limits, confidence, matters)
        with_unknown = pl.when(is_pass).then(pl.lit(PASS)).otherwise(pl.lit(UNSURE))
        results = results.with_columns(pl.when(matters).then(with_unknown).alias(WITH_UNKNOWN))
        passed &= is_pass | ~matters
    results_at = partial(_changes_at, compared=compared, limits=limits)
    failed = failed_after_holm(results, results[".change"].is_not_null(), results_at, 1 - confidence)
    return results.with_columns(verdict(pl.lit(failed), pl.lit(passed))).drop(LOW, HIGH)


def _changes_at(
    error: float, compared: Sequence[PairedModels], limits: Mapping[tuple[str, str | None], tuple[Side, float]]
) -> pl.DataFrame:
    """The changes with a limit, with one-sided bounds of an error rate."""
    changes = pl.concat([part.compared(1 - 2 * error) for part in compared], how="vertical_relaxed")
    return _with_limits(changes, limits)


def _with_limits(
    changes: pl.DataFrame, limits: Mapping[tuple[str, str | None], tuple[Side, float]]
) -> pl.DataFrame:  # fmt: skip
    """The changes that have a limit, and the ends of what is acceptable."""
    keys = changes.select(".metric", ".by").rows()
    judged = changes.filter(pl.Series([key in limits for key in keys], dtype=pl.Boolean))
    return with_limits(judged, [limits[key] for key in keys if key in limits], pl.lit(value=False))


def _changes_that_pass(
    compared: Sequence[PairedModels],
    limits: Mapping[tuple[str, str | None], tuple[Side, float]],
    confidence: float,
    outside: Outside = "hold",
) -> tuple[pl.DataFrame, pl.DataFrame, pl.Series]:
    """The changes with a limit, the groups that are left out of each, and a mask of those that pass."""
    changes = _changes_at(1 - confidence, compared, limits)
    left_out = _with_limits(pl.concat([part.left_out() for part in compared]), limits)
    is_pass = changes.select(passes(at_limit=True)).to_series().fill_null(value=False)
    return changes, left_out, is_pass & left_out.select(compares_all(outside)).to_series()


def _passes_with_unknown(
    compared: Sequence[PairedModels],
    limits: Mapping[tuple[str, str | None], tuple[Side, float]],
    confidence: float,
    passed: pl.Series,
) -> pl.Series:
    """A mask of the changes that also pass with unknown groups, or with their few rows in any known group."""

    def passes_of(number: int, by: By) -> Iterator[pl.Series]:
        for joined in compared[number].with_unknown_in_each_group(by):
            yield _changes_that_pass([*compared[:number], joined, *compared[number + 1 :]], limits, confidence)[2]

    with_unknown = [part.with_unknown_groups() for part in compared]
    changes, _, result = _changes_that_pass(with_unknown, limits, confidence)
    undecided = passed & ~result & ~changes.select(fails()).to_series().fill_null(value=False)
    result &= passed
    for number, part in enumerate(compared):
        result |= pass_in_each_group(part.comparison.metrics, changes, undecided, partial(passes_of, number))
    return result


# Groups compared with each other


class GroupsCompared(CalledOnData):
    """A comparison of groups with a row for each, which `check` gives a limit."""

    metrics: tuple[GroupwiseMetric, ...]

    @property
    @abstractmethod
    def scales_of_metrics(self) -> tuple[str, ...]:
        """The scale on which each metric is compared."""

    @property
    def is_chosen_by_value(self) -> bool:
        """True if the values say which group is the reference of a metric."""
        return False

    @abstractmethod
    def at_level(self, level: float) -> Self:
        """The same comparison at another confidence level, without an adjustment for the number of rows."""

    def with_unknown_groups(self) -> Self:
        """The same comparison with unknown groups compared like all others."""
        changed: Any = self
        compared = [metric.with_policy(metric.policy.with_unknown()) for metric in self.metrics]
        return replace(changed, metrics=tuple(compared))


@dataclass(frozen=True, repr=False)
class ComparisonGate(CalledOnData):
    """Groups compared with each other with a limit, as a callable on dataframes that returns verdicts."""

    subject: ClassVar[str] = "A gate"
    follows_points: ClassVar[bool] = True
    lists_unknown: ClassVar[bool] = True
    findings: ClassVar[tuple[str, ...]] = (".disparity", ".lower", ".upper", ".limit", ".verdict")
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    comparison: GroupsCompared
    side: Side
    limit: float
    confidence: float
    outside: Outside

    @show_keywords(CallOptions, without=_REFUSED)
    def __call__(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Give a verdict on each comparison of groups; arguments are those of the comparison.

        Returns:
            The rows of the comparison, with one-sided limits `.lower` and `.upper`, the `.limit` and the `.verdict`,
            which is null for the reference itself, for unknown groups that turn no pass and, with `outside="state"`,
            for all groups outside the policy.
        """
        return self._on_data(data, truth, estimate, options)

    @show_keywords(ReadOptions, without=_REFUSED)
    def compute(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Judge a tally; equals a call on the data."""
        return self._on_tally(tally, options)

    def __repr__(self) -> str:
        setting = f"{self.side} {self.limit:g}; confidence={self.confidence:g}"
        return visible(f"<ComparisonGate of {self.comparison!r}, {setting}>")

    @property
    def _run(self) -> Run:
        return self.comparison._run  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - a gate is called as what it judges

    def _counting_options(self, options: Options) -> Options:
        return self.comparison._counting_options(options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The comparisons with their verdicts."""
        verdicts = self._verdicts(tally, options)
        is_unknown = verdicts[".status"] == Status.UNKNOWN.value
        if self.outside == "state" or not is_unknown.any():
            return verdicts
        holds = self._holding(tally, options)
        keys = verdicts.select(*key_columns(verdicts), ".metric", ".by").rows()
        passes_too = is_unknown & pl.Series([key not in holds for key in keys], dtype=pl.Boolean)
        return verdicts.with_columns(pl.when(~passes_too).then(".verdict").alias(".verdict"))

    def _holding(self, tally: Tally, options: Options) -> set[tuple[Any, ...]]:
        """The comparisons, by outer group, metric and feature, that do not pass with people of unknown groups too.

        They are groups of their own or, if they are too few for that, in any of the known groups.
        """
        compared = replace(self, comparison=self.comparison.with_unknown_groups())
        holding = _not_passing(compared._verdicts(tally, options))  # noqa: SLF001 - of the same class
        for by in dict.fromkeys(metric.by for metric in self.comparison.metrics):
            of_feature = {key for key in holding if key[-1] == by.text}
            if by.policy.unknown != "apart" or not of_feature:
                continue
            joined = [_not_passing(self._verdicts(moved, options)) for moved in with_unknown_in_each_group(tally, by)]
            if joined:
                holding -= of_feature - set[tuple[Any, ...]]().union(*joined)
        return holding

    def _verdicts(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The verdict on each comparison of known groups: passes one by one, failures after Holm."""
        results = self._compared(tally, options, 1 - self.confidence)
        results = with_limits(results, [(self.side, self.limit)] * len(results), pl.lit(value=True))
        is_judged = pl.col(".disparity").is_not_null() & ~pl.col(".status").is_in(OUTSIDE) & ~_is_reference(results)
        judged = results.select(is_judged).to_series()
        # any of the groups may have been the best, so that failures are adjusted for all pairs
        pairs = max(1.0, results[".group"].n_unique() / 2) if self.comparison.is_chosen_by_value else 1.0
        failed = failed_after_holm(
            results, judged, lambda error: self._compared(tally, options, error), (1 - self.confidence) / pairs
        )
        results = results.with_columns(verdict(pl.lit(failed), passes() & pl.lit(judged)))
        # its p-values would be of no difference, and not adjusted, while verdicts are about the limit
        return _without_references(results, self.outside).drop(LOW, HIGH, *_TESTS, strict=False)

    def _compared(self, tally: Tally, options: Options, error: float) -> pl.DataFrame:
        """The comparisons with one-sided limits of an error rate, and the groups that are in none of them."""
        table = self.comparison.at_level(1 - 2 * error)._results(tally, options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
        if ".reference" in table.columns:
            return table
        values_alone = replace(options, interval=None, on_undefined="ignore")
        groups = metric_set(*self.comparison.metrics).run.groups_of(tally, values_alone)
        left_out = groups.filter(pl.col(".by").is_not_null() & pl.col(".status").is_in(OUTSIDE))
        shown = [name for name in left_out.columns if name in table.columns]
        return pl.concat([table, left_out.select(shown)], how="diagonal_relaxed")


def comparison_gate(
    comparison: GroupsCompared, side: Side, limit: float, confidence: float, outside: Outside
) -> ComparisonGate:
    """A gate on groups that are compared with each other, after a check that the limit suits the scale."""
    for metric, scale in zip(comparison.metrics, comparison.scales_of_metrics, strict=True):
        needed = "above" if scale in {"ratio", "odds_ratio"} else "below"
        if side != needed:
            kind = f"{scale.replace('_', ' ')}s"
            msg = f"check(): {metric.name} is compared by {kind}, so give the limit as `{needed}=`."
            raise ArgumentError(msg)
        if side == "above" and not 0 < limit <= 1:
            msg = f"check(): the limit of a ratio lies between 0 and 1, such as `above=0.8`, not {limit:g}."
            raise ArgumentError(msg)
    return ComparisonGate(comparison, side, limit, confidence, outside)


def _not_passing(verdicts: pl.DataFrame) -> set[tuple[Any, ...]]:
    """The outer group, metric and feature of the comparisons of which one does not pass."""
    known = verdicts.filter(~pl.col(".status").is_in(OUTSIDE) & (pl.col(".verdict") != PASS))
    return set(known.select(*key_columns(verdicts), ".metric", ".by").rows())
