"""Gates: tests of whether a disparity is within a limit (equivalence), beyond it (excess), or too uncertain to say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias, Unpack, cast

import polars as pl

from tidyfair.calling import (
    Evaluable,
    GroupwiseFactory,
    GroupwiseMetric,
    Metric,
    MetricSet,
    Run,
    metric_set,
    way_to_metrics,
)
from tidyfair.errors import ArgumentError, ColumnError, EvidenceWarning, Status, TidyfairError, in_short, listed, warn
from tidyfair.escapes import visible
from tidyfair.evaluation import OUTSIDE
from tidyfair.inference.gate_listeners import notify
from tidyfair.inference.gates.texts import groups_behind, outcome_of, table_of, way_out
from tidyfair.inference.gates.verdicts import (
    FAIL,
    PASS,
    UNSURE,
    Key,
    Outside,
    Side,
    compares_all,
    keys_of_verdicts,
    pass_in_each_group,
    with_unknown_groups,
    with_verdicts,
)
from tidyfair.inference.models import (
    COMPARISON_CALL,
    REFUSED_OF_MODELS,
    ModelComparison,
    PairedModels,
    paired_with_each,
)
from tidyfair.inference.on_data import CalledOnTallies, GroupwiseOnData, MetricSetOnData, refuse_given
from tidyfair.inference.unknown_groups import (
    UNKNOWN_ROWS,
    UNKNOWN_SHARE,
    WITH_UNKNOWN,
    counted_unknown,
    has_unknown,
    with_unknown,
    with_unknown_in_each_group,
)
from tidyfair.metrics.fairness import demographic_parity_ratio
from tidyfair.specs import (
    By,
    CallOptions,
    FeatureLike,
    JudgedCallOptions,
    Options,
    Prediction,
    SurveyCallOptions,
    Treatment,
    TruthLike,
    UserAggregate,
    flag,
    number,
    one_of,
    proper_share,
    refuse_unknown_keywords,
    share_of_percent,
    show_keywords,
)
from tidyfair.specs.result_kinds import COMPARISONS, VERDICTS, ResultKind, level_of, with_level
from tidyfair.tallies import Tally, open_frame

__all__ = ["Gate", "UnfairError", "assert_fair", "check", "four_fifths"]

GateOrFrame: TypeAlias = Any
"""A gate on metrics; or for a result, the result with its verdicts."""
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("interval", "explain"), ": it has limits of its own"), "conf_level": "; give it to `check`",
}  # fmt: skip
"""The options of metrics that a gate does not accept, and why."""
_TESTS = (".p_value", ".p_adjusted", ".adjustment")
"""The columns of tests of no difference."""
_DEFAULT_RANGE, _UNKNOWN_RANGE = (0, 1), (0, math.inf)
"""The range of metrics of users without a range of their own, and the range that they may have."""
_WISHES = {"maximize": "be large", "one": "be near 1", "minimize": "be small", "zero": "be near 0"}


class UnfairError(TidyfairError, AssertionError):
    """Raised by `assert_fair`; its message has the verdicts, what a pass takes, and the values of groups."""


@dataclass(frozen=True, repr=False)
class Gate(MetricSetOnData, CalledOnTallies):
    """Metrics with a limit, as a callable on dataframes that returns verdicts; made by `check`.

    `pass` is the result of a test of equivalence, `fail` that of a test of excess; if neither test rejects, the verdict
    is `not enough evidence`. Passes are judged one by one, because all must; failures after Holm, because any does.

    Returns:
        The results of the metrics, with one-sided limits `.lower` and `.upper`, the `.limit`, and the `.verdict`.
        `.groups_outside` are the groups that no verdict is about, because they are too small or unknown. For metrics
        with `unknown="apart"` there are also the rows of unknown groups, `.unknown`, their `.unknown_share` of all rows
        and, if the known groups alone pass, the verdict `.with_unknown`, in which they are compared.
    """

    subject: ClassVar[str] = "A gate"
    accepted: ClassVar[type[Any]] = JudgedCallOptions
    follows: ClassVar[frozenset[str]] = frozenset({
        "operating_point", "points", "suppress_below", "unknown", "missing",
    })  # fmt: skip
    kind: ClassVar[ResultKind] = VERDICTS
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metrics: MetricSet
    limits: tuple[tuple[Side, float], ...]
    """The limit of each metric, and the good side of it."""
    conf_level: float = 0.95
    options: tuple[tuple[str, Any], ...] = ()
    """Options of every call."""
    outside: Outside = "hold"
    """The effect of groups outside the policy of a metric: they hold a pass back, or the result states them."""

    def _members(self) -> list[str]:
        return [f"{metric} {limit}" for metric, limit in zip(super()._members(), self._limits(), strict=True)]

    def _limits(self) -> list[str]:
        """The limits as texts."""
        return [f"{side} {limit:g}" for side, limit in self.limits]

    def _settings(self) -> list[str]:
        outside = [] if self.outside == "hold" else [f"outside={self.outside!r}"]
        return [f"conf_level={self.conf_level:g}", *outside, *(f"{name}={value!r}" for name, value in self.options)]

    def _html_columns(self) -> dict[str, list[str]]:
        columns = super()._html_columns()
        return {"metric": columns.pop("metric"), "by": columns.pop("by"), "limit": self._limits(), **columns}

    def _check_call(self, keywords: Mapping[str, Any]) -> None:
        for name, value in self.options:
            if (other := keywords.get(name)) not in (None, value):
                msg = f"`{name}` is given twice: {value!r} for the gate, and {other!r} here."
                raise ArgumentError(msg)

    def _fixed(self) -> dict[str, Any]:
        return {"explain": True, "interval": "auto", **dict(self.options)}

    def _counting_options(self, options: Options) -> Options:
        if options.cluster is None and options.parts is None:
            # intervals need to see how much sums vary from part to part
            return options.in_parts(options.seed)
        return options

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The results with their verdicts."""
        self.metrics.run.check_occurs(tally, options)
        return self.judged(tally, options, after_holm=True)

    def judged(self, tally: Tally, options: Options, *, after_holm: bool = False) -> pl.DataFrame:
        """The results with their verdicts; failures are adjusted for their number only if `after_holm`."""
        verdicts = self._verdicts(tally, options, after_holm=after_holm)
        if not any(map(has_unknown, self.metrics)):
            return verdicts
        counted = counted_unknown(tally, self.metrics, verdicts)
        silent = _silent(options)

        def compared() -> pl.Series:
            gate = replace(self, metrics=metric_set(*map(with_unknown, self.metrics)))
            others = gate._verdicts(tally, silent)[".verdict"]  # noqa: SLF001 - of the same class
            # people of unknown groups are on one of two sides, and no side of their own
            two_sided = [metric.by.text for metric in self.metrics if metric.by and _is_two_sided(metric)]
            return others.set(verdicts[".by"].is_in(two_sided), UNSURE)

        def verdicts_of(by: By) -> Iterator[pl.DataFrame]:
            return (self._verdicts(joined, silent) for joined in with_unknown_in_each_group(tally, by))

        pass_in_each = partial(pass_in_each_group, self.metrics, verdicts_of)
        judged = with_unknown_groups(verdicts, counted, self.outside, compared, pass_in_each)
        if tally.suppression is not None:
            # how many people are unknown may be a small count
            hidden = (UNKNOWN_ROWS, UNKNOWN_SHARE)
            judged = judged.with_columns(pl.lit(None, judged.schema[name]).alias(name) for name in hidden)
        return judged

    def _verdicts(self, tally: Tally, options: Options, *, after_holm: bool = False) -> pl.DataFrame:
        """The results of known groups with their verdicts; failures are adjusted for their number `after_holm`."""
        error, silent = 1 - self.conf_level, _silent(options)
        results, numbers = self._at(tally, error, options)
        metrics = [self.metrics.metrics[number] for number in numbers]
        signed = pl.Series([metric.direction in {"zero", "one"} for metric in metrics], dtype=pl.Boolean)
        # replicates of what may be a distance lie beyond equality even where groups are equal
        aggregates = [metric.aggregate for metric in metrics]
        may_be_distance = [isinstance(own, UserAggregate) and own.equality is None for own in aggregates]
        may_fail = results[".estimate"].is_not_null() & ~pl.Series(may_be_distance, dtype=pl.Boolean)
        # rows on neither side are not compared
        two_sided = pl.Series([_is_two_sided(metric) for metric in metrics], dtype=pl.Boolean)
        neither = pl.concat_list(pl.when(two_sided).then(pl.lit("neither")).otherwise(pl.lit(None, pl.String)))
        left_out = pl.col(".groups_left_out").list.set_difference(neither)
        is_complete = compares_all(self.outside, left_out) & (pl.col(".metrics_left_out").list.len() == 0)
        limits = [self.limits[number] for number in numbers]

        def at(error: float) -> pl.DataFrame:
            return self._at(tally, error, silent)[0]

        return with_verdicts(
            results, limits, signed, is_complete, may_fail=may_fail, stricter=at if after_holm else None, error=error
        )

    def _at(self, tally: Tally, error: float, options: Options) -> tuple[pl.DataFrame, list[int]]:
        """Results with one-sided limits at that error rate, and the number of the metric of each row.

        If the limit is equality itself, groups may differ to either side of it, and limits are two-sided.
        """
        results = self.metrics.run.results_of(tally, replace(options, conf_level=1 - 2 * error))
        names = [(metric.name, metric.by.text if metric.by else None) for metric in self.metrics]
        numbers = [names.index(pair) for pair in results.select(".metric", ".by").rows()]
        of_metrics = [_is_at_equality(metric, *limit) for metric, limit in zip(self.metrics, self.limits, strict=True)]
        at_equality = [of_metrics[number] for number in numbers]
        if any(at_equality):
            wider = self.metrics.run.results_of(tally, replace(_silent(options), conf_level=1 - error))
            two_sided = pl.Series(at_equality, dtype=pl.Boolean)
            results = results.with_columns(
                pl.when(two_sided).then(wider[end]).otherwise(end).alias(end) for end in (".lower", ".upper")
            )
        return results, numbers


def _silent(options: Options) -> Options:
    """The options without warnings of undefined values."""
    return options if options.on_undefined == "null" else replace(options, on_undefined="ignore")


def _is_at_equality(metric: Metric | GroupwiseMetric, side: Side, limit: float) -> bool:
    """Check whether a limit equals the value of a distance for equal groups."""
    if metric.aggregate is None or not metric.aggregate.is_distance:
        return False
    least, most = _bounds(metric)
    return limit == (least if side == "below" else most)


def _is_two_sided(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric compares two sides, privileged and unprivileged."""
    return metric.by is not None and metric.by.sides is not None


@dataclass(frozen=True, repr=False)
class ChangeGate:
    """Changes from one model to another with a limit, as a callable on dataframes that returns verdicts."""

    comparison: ModelComparison
    side: Side
    limit: float
    conf_level: float
    outside: Outside

    def __post_init__(self) -> None:
        """Refuse a limit on the side on which metrics get better, and metrics without a better side."""
        wrong = "maximize" if self.side == "below" else "minimize"
        for metric in self.comparison.metrics:
            if metric.direction in {"zero", "one"}:
                best = 0 if metric.direction == "zero" else 1
                msg = (
                    f"check(): {metric.name} is best at {best}, so that no change of it is better or worse by itself; "
                    "take a difference or a ratio without a sign."
                )
                raise ArgumentError(msg)
            if metric.direction == wrong:
                better, other = ("rise", "above") if self.side == "below" else ("fall", "below")
                msg = (
                    f"check(): {metric.name} should {better}, so give the limit of its change as `{other}=`, such as "
                    f"`{other}={-0.02 if other == 'above' else 0.02:g}`."
                )
                raise ArgumentError(msg)

    @show_keywords(SurveyCallOptions, without=REFUSED_OF_MODELS | _REFUSED)
    def __call__(
        self, data: object, truth: TruthLike | None = None, *, one: Prediction, other: Prediction | None = None,
        others: Sequence[Prediction] | Mapping[str, Prediction] | None = None, **options: Unpack[SurveyCallOptions],
    ) -> Any:  # fmt: skip
        """Give a verdict on the change of each metric from `one` to `other`, or to each of `others`.

        Arguments are those of the comparison. Failures allow for the number of changes (Holm).

        Returns:
            The results of the comparison, with one-sided limits `.lower` and `.upper`, the groups that are left out or
            outside the policy, the rows of unknown groups, the `.limit` and the `.verdict`.
        """
        refuse_given("A gate", options, _REFUSED)
        models = paired_with_each(self.comparison, data, truth, one, other, others, options)
        counted = [*models.values()]
        judged = [(metric.name, metric.by.text if metric.by else None) for metric in self.comparison.metrics]
        limits = dict.fromkeys(judged, (self.side, self.limit))
        verdicts = judged_changes(counted, limits, self.conf_level, self.outside)
        named = self.comparison.in_reading_order(verdicts, one, [*models])
        return counted[0].source.restore(with_level(named, self.conf_level))

    def __repr__(self) -> str:
        setting = f"{self.side} {self.limit:g}; conf_level={self.conf_level:g}"
        return visible(f"<ChangeGate of {self.comparison!r}, {setting}; call it with {COMPARISON_CALL}>")


def judged_changes(
    compared: Sequence[PairedModels],
    limits: Mapping[tuple[str, str | None], tuple[Side, float]],
    conf_level: float,
    outside: Outside = "hold",
) -> pl.DataFrame:
    """The verdict on each change that has a limit, by `.metric` and `.by`: passes one by one, failures after Holm.

    A change at its limit is within it.
    """
    changes = _Changes(tuple(compared), limits, conf_level)
    results = changes.verdicts(outside, after_holm=True)
    if not any(has_unknown(metric) for models in compared for metric in models.comparison.metrics):
        return results
    counted = changes.with_limit([models.unknown() for models in compared]).select(UNKNOWN_ROWS, UNKNOWN_SHARE)
    with_all = _Changes(tuple(models.with_unknown_groups() for models in compared), limits, conf_level)

    def verdicts_of(models: PairedModels, by: By) -> Iterator[pl.DataFrame]:
        for joined in models.with_unknown_in_each_group(by):
            all_models = tuple(joined if other is models else other for other in compared)
            yield replace(changes, compared=all_models).verdicts()

    def pass_in_each(undecided: set[Key]) -> set[Key]:
        passing_of_parts = [
            pass_in_each_group(models.comparison.metrics, partial(verdicts_of, models), undecided)
            for models in compared
        ]
        return set[Key]().union(*passing_of_parts)

    judged = with_unknown_groups(results, counted, outside, lambda: with_all.verdicts()[".verdict"], pass_in_each)
    return judged.with_columns(pl.col(WITH_UNKNOWN).replace(FAIL, UNSURE))


@dataclass(frozen=True)
class _Changes:
    """Comparisons of models, and the limits of the changes that are judged, by `.metric` and `.by`."""

    compared: tuple[PairedModels, ...]
    limits: Mapping[tuple[str, str | None], tuple[Side, float]]
    conf_level: float

    def at(self, error: float) -> pl.DataFrame:
        """The changes with a limit, with one-sided bounds of an error rate."""
        return self.with_limit([models.compared(1 - 2 * error) for models in self.compared])

    def with_limit(self, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The changes that have a limit, from tables of all of them."""
        changes = pl.concat(tables, how="vertical_relaxed")
        keys = changes.select(".metric", ".by").rows()
        return changes.filter(pl.Series([key in self.limits for key in keys], dtype=pl.Boolean))

    def verdicts(self, outside: Outside = "hold", *, after_holm: bool = False) -> pl.DataFrame:
        """The changes of known groups with their verdicts; failures are adjusted for their number `after_holm`."""
        changes, error = self.at(1 - self.conf_level), 1 - self.conf_level
        left_out = self.with_limit([models.left_out() for models in self.compared])
        changes = changes.with_columns(left_out.select(".groups_left_out", ".groups_outside", ".left_out"))
        limits = [self.limits[key] for key in changes.select(".metric", ".by").rows()]
        return with_verdicts(
            changes, limits, pl.lit(value=False), compares_all(outside), at_limit=True,
            may_fail=changes[".change"].is_not_null(), stricter=self.at if after_holm else None, error=error,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class GroupsCompared(GroupwiseOnData):
    """A comparison of groups with a row for each, which `check` gives a limit."""

    scales: tuple[str, ...]
    """The scale on which each metric is compared."""

    @property
    def is_chosen_by_value(self) -> bool:
        """True if the values say which group is the reference of a metric."""
        return False

    def _result_of_tally(self, tally: Tally, options: Options, keywords: Mapping[str, Any]) -> pl.DataFrame:
        if keywords.get("on_undefined") == "raise":
            metric_set(*self.metrics).run.refuse_undefined(tally, replace(options, on_undefined="raise"))
        return super()._result_of_tally(tally, options, keywords)

    def _counting_options(self, options: Options) -> Options:
        # intervals need to see how much sums vary from part to part
        is_known = options.cluster is not None or options.design is not None
        return options if is_known else options.in_own_parts


@dataclass(frozen=True, repr=False)
class ComparisonGate(CalledOnTallies):
    """Groups compared with each other with a limit, as a callable on dataframes that returns verdicts.

    Returns:
        The rows of the comparison, with one-sided limits `.lower` and `.upper`, the `.limit` and the `.verdict`, which
        is null for the reference itself, for unknown groups that turn no pass and, with `outside="state"`, for all
        groups outside the policy.
    """

    subject: ClassVar[str] = "A gate"
    accepted: ClassVar[type[Any]] = JudgedCallOptions
    follows: ClassVar[frozenset[str]] = frozenset({"points", "unknown"})
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    _in_words: ClassVar[tuple[str, ...]] = ("comparison",)
    comparison: GroupsCompared
    side: Side
    limit: float
    conf_level: float
    outside: Outside

    def __post_init__(self) -> None:
        """Refuse a limit that does not suit the scale."""
        for metric, scale in zip(self.comparison.metrics, self.comparison.scales, strict=True):
            needed = "above" if scale in {"ratio", "odds_ratio"} else "below"
            if self.side != needed:
                kind = f"{scale.replace('_', ' ')}s"
                msg = f"check(): {metric.name} is compared by {kind}, so give the limit as `{needed}=`."
                raise ArgumentError(msg)
            if self.side == "above" and not 0 < self.limit <= 1:
                msg = f"check(): the limit of a ratio lies between 0 and 1, such as `above=0.8`, not {self.limit:g}."
                raise ArgumentError(msg)

    def _listed(self) -> Iterable[GroupwiseMetric]:
        return self.comparison.metrics

    def __repr__(self) -> str:
        setting = f"{self.side} {self.limit:g}; conf_level={self.conf_level:g}"
        return visible(f"<ComparisonGate of {self.comparison!r}, {setting}>")

    def _follows(self, step: str) -> bool:
        # the labels of a judge are used as the comparison does
        return super()._follows(step) and (step != "judged" or step in self.comparison.accepted.__annotations__)

    @property
    def _run(self) -> Run:
        return self.comparison._run  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - a gate is called as what it judges

    def _fixed(self) -> dict[str, Any]:
        return {}

    def _in_reading_order(self, table: pl.DataFrame) -> pl.DataFrame:
        return self.comparison.kind.frame(table)

    def _counting_options(self, options: Options) -> Options:
        return self.comparison._counting_options(options)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The comparisons with their verdicts."""
        verdicts = self._verdicts(tally, options)
        is_unknown = verdicts[".status"] == Status.UNKNOWN.value
        if self.outside == "state" or not is_unknown.any():
            return verdicts
        metrics = tuple(map(with_unknown, self.comparison.metrics))
        compared = replace(self, comparison=replace(self.comparison, metrics=metrics))
        is_compared = ~pl.col(".status").is_in(OUTSIDE)
        not_passing = compared._verdicts(tally, options).filter(is_compared, pl.col(".verdict") != PASS)  # noqa: SLF001 - of the same class
        held_back = set(keys_of_verdicts(not_passing))

        def verdicts_of(by: By) -> Iterator[pl.DataFrame]:
            joined = with_unknown_in_each_group(tally, by)
            return (self._verdicts(cells, options).filter(is_compared) for cells in joined)

        held_back -= pass_in_each_group(self.comparison.metrics, verdicts_of, held_back)
        passes_too = is_unknown & pl.Series(
            [key not in held_back for key in keys_of_verdicts(verdicts)], dtype=pl.Boolean
        )
        return verdicts.with_columns(pl.when(~passes_too).then(".verdict").alias(".verdict"))

    def _verdicts(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The verdict on each comparison of known groups: passes one by one, failures after Holm."""
        results, error = self._compared(tally, options, 1 - self.conf_level), 1 - self.conf_level
        is_judged = pl.col(".disparity").is_not_null() & ~pl.col(".status").is_in(OUTSIDE) & ~_is_reference(results)
        judged = results.select(is_judged).to_series()
        # any of the groups may have been the best, so that failures are adjusted for all pairs
        pairs = max(1.0, results[".group"].n_unique() / 2) if self.comparison.is_chosen_by_value else 1.0
        results = with_verdicts(
            results, [(self.side, self.limit)] * len(results), pl.lit(value=True), pl.lit(judged), may_fail=judged,
            stricter=partial(self._compared, tally, options), error=error / pairs,
        )  # fmt: skip
        # its p-values would be of no difference, and not adjusted, while verdicts are about the limit
        return _without_references(results, self.outside).drop(*_TESTS, strict=False)

    def _compared(self, tally: Tally, options: Options, error: float) -> pl.DataFrame:
        """The comparisons with one-sided limits of an error rate, and the groups that are in none of them."""
        alone, at_level = (
            replace(cast("Any", self.comparison), adjust="none"),
            replace(options, conf_level=1 - 2 * error),
        )
        table = alone._results(tally, at_level)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
        if self.comparison.kind is COMPARISONS:
            return table
        values_alone = replace(options, interval=None, on_undefined="ignore")
        groups = metric_set(*self.comparison.metrics).run.groups_of(tally, values_alone)
        left_out = groups.filter(pl.col(".by").is_not_null() & pl.col(".status").is_in(OUTSIDE))
        shown = [name for name in left_out.columns if name in table.columns]
        return pl.concat([table, left_out.select(shown)], how="diagonal_relaxed")


@refuse_unknown_keywords
def check(
    given: Any, *, below: float | None = None, above: float | None = None, conf_level: float | None = None,
    outside: Outside = "hold",
) -> GateOrFrame:  # fmt: skip
    """Check whether disparities are `below` (or ratios `above`) a limit: pass, fail, or not enough evidence.

    A pass requires that the one-sided upper confidence bound of the disparity is below the limit (a test of
    equivalence), a failure that the lower bound is above it (a test of excess). `rows_needed` gives the required number
    of rows. Failures are adjusted by Holm's method (1979) over all metrics and outer groups of the call, so one fold of
    many may not fail although it would alone; passes are judged one by one. A user's aggregate fails only if
    `new_aggregate` states its value for equal groups.

    The smallest value of groups is above a limit if each group is by its own bound, without an adjustment for the
    number of groups, and is shown to be below it by limits that hold for all groups at once; the largest value the
    other way round.

    Groups without a value make a pass impossible. Groups outside the policy of a metric (`min_n`, `min_share`,
    `unknown`) hold a pass back: small groups always, and unknown ones unless the gate also passes with them compared
    like all others or, if they have too few rows for a verdict, with their rows in any of the known groups. With
    `outside="state"` they are outside the scope of the gate: it passes without them, and `.groups_outside` names them.

    Signed comparisons are judged by their absolute size, and metrics that should be near 0 or 1 have a limit on both
    sides. A stored result does not say which direction is good, so `below` then applies to both signs, and `above` with
    a limit below 1 to comparisons and their reciprocals.

    Args:
        given: A metric, a groupwise metric or a set; or a result with intervals and explanation, such as
            `fair(data, …, interval="auto", conf_level=0.9, explain=True)`.
        below: The limit of differences.
        above: The limit of ratios.
        conf_level: Confidence level of verdicts on metrics, 0.95 by default. A result is judged by its own intervals:
            those of `conf_level=0.9` give verdicts with confidence level 0.95.
        outside: The effect of groups that are too small or unknown: they hold a pass back (`"hold"`), or the result
            states them and passes without them (`"state"`).

    Returns:
        For metrics, a callable on dataframes; for a result, the result with `.limit` and `.verdict`.

    Raises:
        ArgumentError, ColumnError: If there is not exactly one limit, if the metric cannot reach it, such as 5 instead
            of 0.05, or if a result has no intervals. Limits of results, and of users' metrics without a range, are not
            checked.

    >>> from tidyfair import demographic_parity
    >>> gate = check(demographic_parity("sex"), below=0.1)
    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> gate(people, estimate="hired")[".verdict"].item()
    'pass'
    """
    one_of("outside", outside, ("hold", "state"))
    level = _level(conf_level)
    if isinstance(given, ModelComparison):
        if given.margins is not None:
            msg = (
                "check(): the change up to which a model passes is the limit of the gate, `above=` or `below=`; leave "
                "`margin=` of compare_models() out."
            )
            raise ArgumentError(msg)
        return ChangeGate(given, *limited("check", below, above, least=-math.inf), level, outside)
    if isinstance(given, GroupsCompared):
        return ComparisonGate(given, *limited("check", below, above), level, outside)
    if _are_metrics(given):
        return gate_of("check", given, below, above, conf_level, outside)
    if conf_level is not None:
        msg = (
            "check() does not accept `conf_level` for a result, which it judges by its intervals; evaluate with "
            "`conf_level=0.9` for verdicts at confidence level 0.95."
        )
        raise ArgumentError(msg)
    return _judged(given, below, above, outside)


def _are_metrics(given: object) -> bool:
    """Check whether the argument is, or may have been meant as, metrics rather than a result."""
    return given is None or isinstance(given, Evaluable | GroupwiseFactory | list | tuple | str | Mapping)


def gate_of(
    name: str, given: object, below: object, above: object, conf_level: float | None, outside: Outside = "hold"
) -> Gate:
    """The gate of metrics with one limit."""
    metrics, side, limit = judged_metrics(name, given, below, above)
    limits: list[tuple[Side, float]] = [(side, limit)] * len(metrics)
    return Gate(metrics, tuple(limits), _level(conf_level), outside=outside)


def _level(conf_level: float | None) -> float:
    """The confidence level of verdicts."""
    return 0.95 if conf_level is None else proper_share("conf_level", conf_level, 0.5)


def limited(name: str, below: object, above: object, least: float = 0) -> tuple[Side, float]:
    """The side and the value of the only limit."""
    if (below is None) == (above is None):
        msg = f"{name}() needs one limit, a number: `below=` for differences, or `above=` for ratios."
        raise ArgumentError(msg)
    if above is None:
        return "below", number("below", below, least)
    return "above", number("above", above, least)


def judged_metrics(name: str, given: object, below: object, above: object) -> tuple[MetricSet, Side, float]:
    """The metrics without their signs, and the side and the value of their limit, which suits them."""
    side, limit = limited(name, below, above)
    if isinstance(given, GroupwiseFactory):
        msg = f'{given.name} compares the groups of a column: did you mean `{given.name}("col")`?'
        raise ArgumentError(msg)
    if not isinstance(given, Evaluable):
        way_out = way_to_metrics(given)
        if way_out and not isinstance(given, str):
            way_out = " Combine several with `metric_set(…)`."
        msg = f"{name}() takes a metric, a metric_set, or their result, not {in_short(given)}.{way_out}"
        raise ArgumentError(msg)
    metrics = metric_set(*map(_unsigned, metric_set(cast("Metric | GroupwiseMetric | MetricSet", given))))
    wrong = ("maximize", "one") if side == "below" else ("minimize", "zero")
    for metric in metrics:
        if metric.direction in wrong:
            other = "above" if side == "below" else "below"
            msg = f"{metric.name} should {_WISHES[metric.direction]}, so give its limit as `{other}=`."
            if any(member.direction not in wrong for member in metrics):
                msg += f" {name}() takes metrics with a limit on the same side; call it once for each side."
            raise ArgumentError(msg)
    for metric in metrics:
        if problem := out_of_range(metric, limit, lambda meant: f"`{side}={meant:g}`"):
            msg = f"{name}(): no verdict depends on the limit `{side}={limit:g}`, because {problem}"
            raise ArgumentError(msg)
    return metrics, side, limit


def out_of_range(metric: Metric | GroupwiseMetric, limit: float, written: Callable[[float], str]) -> str | None:
    """The problem of a limit outside the range of an unsigned metric; `written` formats a share of percent."""
    metric = _unsigned(metric)
    least, most = _bounds(metric)
    if least <= limit <= most:
        return None
    message = f"{metric.name} lies between {least:g} and {most:g}"
    if most == math.inf:
        message = f"{metric.name} is {least:g} or more"
    if metric.direction == "one":
        message += ", and its reciprocal is the other end"
    share = share_of_percent(limit) if most == 1 else None
    if share:
        message += f": {limit:g} percent is {written(share)}"
    return f"{message}."


def _bounds(metric: Metric | GroupwiseMetric) -> tuple[float, float]:
    """The range of a metric without its sign, in which its limits lie."""
    if isinstance(metric, GroupwiseMetric):
        metric = replace(metric, metrics=_with_ranges(metric.metrics), less=_with_ranges(metric.less))
    else:
        (metric,) = _with_ranges((metric,))
    least, most = metric.range
    if metric.direction == "zero":
        return 0.0, max(-least, most)
    # a ratio above 1 is judged by its reciprocal
    return (least, 1.0) if metric.direction == "one" else (least, most)


def _with_ranges(metrics: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """The metrics with their ranges; the default range of a metric of a user may not be its own."""
    return tuple(replace(metric, range=_UNKNOWN_RANGE) if lacks_range(metric) else metric for metric in metrics)


def lacks_range(metric: Metric) -> bool:
    module = str(getattr(metric.definition.function, "__module__", None))
    return metric.range == _DEFAULT_RANGE and not module.startswith("tidyfair.")


def _unsigned(metric: Metric | GroupwiseMetric) -> Metric | GroupwiseMetric:
    """The metric without its sign, as a limit holds on both sides of equality."""
    if isinstance(metric, GroupwiseMetric) and metric.aggregate.is_signed:
        return replace(metric, aggregate=metric.aggregate.without_sign())
    return metric


def _judged(result: Any, below: float | None, above: float | None, outside: Outside) -> Any:
    """A result with verdicts by the intervals that it has."""
    source = open_frame(result)
    frame = source.to_polars()
    is_change = ".change" in frame.columns
    # changes of what should be large have a negative limit
    side, limit = limited("check", below, above, least=-math.inf if is_change else 0)
    if ".metric" not in frame.columns:
        call = '`check(demographic_parity("column"), below=0.1)(data, …)`'
        msg = f"check(): the frame is not a result of metrics. Give metrics first and then data, as in {call}."
        raise ColumnError(msg)
    if is_change or ".disparity" in frame.columns:
        verdicts = _judged_comparisons(frame, limit, side, outside, at_limit=is_change)
    else:
        verdicts = _judged_values(frame, limit, side, outside)
    # both ends together err twice as often as each does
    return source.restore(with_level(verdicts.drop(".conf_level", strict=False), (1 + level_of(frame)) / 2))


def _judged_values(frame: pl.DataFrame, limit: float, side: Side, outside: Outside) -> pl.DataFrame:
    """Values and disparities with verdicts by the intervals that they have."""
    needed = (".by", ".estimate", ".lower", ".upper", ".metrics_left_out", ".groups_left_out", ".groups_outside")
    if missing := [name for name in needed if name not in frame.columns]:
        msg = f'check(): the result has no {listed(missing)}; evaluate with `interval="auto", explain=True` first.'
        raise ColumnError(msg)
    for name in needed[-3:]:
        if not isinstance(frame.schema[name], pl.List):
            msg = (
                f"check(): the column {name!r} of the result holds {frame.schema[name]} instead of lists, which csv "
                "files cannot store; save results as parquet or ndjson."
            )
            raise ColumnError(msg)
    # a result does not show whether values have a sign, except by an end on the side of equality
    if side == "below":
        signed = pl.col(".lower").is_not_null()
    else:
        signed = pl.col(".upper").is_not_null() & pl.col(".by").is_not_null() & (limit < 1)
    is_complete = compares_all(outside) & (pl.col(".metrics_left_out").list.len() == 0)
    return with_verdicts(frame, [(side, limit)] * len(frame), signed, is_complete)


def _judged_comparisons(
    table: pl.DataFrame, limit: float, side: Side, outside: Outside, *, at_limit: bool
) -> pl.DataFrame:
    """A result of comparisons with verdicts by the intervals that it has; changes at their limit (`at_limit`) pass."""
    missing = [name for name in (".lower", ".upper") if name not in table.columns]
    if missing:
        msg = f"check(): the result has no {listed(missing)}."
        raise ArgumentError(msg)
    is_about_all_rows = ".by" in table.columns and table[".by"].is_null().all()
    if outside == "hold" and not is_about_all_rows and ".reference" not in table.columns:
        verb = "compare_models" if ".model_other" in table.columns else "pairwise"
        msg = (
            "check(): the result does not say which groups it leaves out, and these hold a pass back. Judge the "
            f'comparison itself, such as `check({verb}(…), below=0.1)(data, …)`; or give `outside="state"` for '
            "verdicts about the groups in the result alone."
        )
        raise ArgumentError(msg)
    is_complete = pl.lit(value=True)
    table = with_verdicts(table, [(side, limit)] * len(table), pl.lit(not at_limit), is_complete, at_limit=at_limit)
    return _without_references(table, outside)


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


@refuse_unknown_keywords
def four_fifths(
    *by: FeatureLike, pos_label: object = None, conf_level: float = 0.95, outside: Outside = "hold",
    min_n: int = 0, min_share: float = 0.0, unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
) -> Gate:  # fmt: skip
    """The four-fifths rule as a gate: no group's selection rate is below 80% of any other's (EEOC, 1978).

    Args:
        by: The sensitive feature, as for a factory.
        pos_label: The label of those who are selected; optional if it follows from the labels.
        conf_level: Confidence level of verdicts.
        outside: The effect of groups that are too small or unknown, as for `check`.
        min_n: The fewest rows of a group that is compared.
        min_share: The smallest share of the rows of such a group.
        unknown: Rows of unknown groups are counted `"apart"`, compared (`"group"`) or left out (`"drop"`).
        unknown_values: The values that mean unknown, beside null.

    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> four_fifths("sex")(people, estimate="hired")[".verdict"].item()
    'pass'
    """
    ratio = demographic_parity_ratio(
        *by, name="four_fifths", min_n=min_n, min_share=min_share, unknown=unknown, unknown_values=unknown_values
    )
    options = () if pos_label is None else (("pos_label", pos_label),)
    return replace(check(ratio, above=0.8, conf_level=conf_level, outside=outside), options=options)


@refuse_unknown_keywords
@show_keywords(CallOptions, without=_REFUSED)
def assert_fair(
    given: Any, data: Any = None, truth: TruthLike | None = None, estimate: Prediction | None = None, *,
    below: float | None = None, above: float | None = None, conf_level: float | None = None, strict: bool = False,
    outside: Outside | None = None, one: Prediction | None = None, other: Prediction | None = None,
    **options: Unpack[CallOptions],  # pyright: ignore[reportGeneralTypeIssues] - `conf_level` is that of the gate
) -> None:  # fmt: skip
    """Raise `UnfairError` with the groups behind it if a limit is not met; for test suites.

    If the data are inconclusive, an `EvidenceWarning` with the table is issued; `strict=True` makes that a failure too.

    Args:
        given: What `check` takes: metrics, a comparison of groups or of models, or a result of these; or a gate.
        data: A dataframe, as for a metric; none for a result.
        truth: Column of the truth.
        estimate: Column of the predictions.
        below: The limit of differences.
        above: The limit of ratios.
        conf_level: Confidence level of verdicts, 0.95 by default.
        strict: Whether a lack of evidence is a failure instead of a warning.
        outside: The effect of groups that are too small or unknown, as for `check`.
        one: Of two models that are compared, the predictions of the first.
        other: The predictions of the second.
        options: The options of a call.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> assert_fair(demographic_parity("sex"), people, estimate="hired", below=0.1)
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this
    flag("strict", strict)
    gate, verdicts = _verdicts_of(given, data, below, above, conf_level, outside)
    if gate is not None:
        predictions = {"estimate": estimate, "one": one, "other": other}
        given_ones: dict[str, Any] = {name: column for name, column in predictions.items() if column is not None}
        verdicts = open_frame(gate(data, truth, **given_ones, **options)).to_polars()
    side: Side = "above" if below is None else "below"
    if gate is not None:
        side = gate.limits[0][0] if isinstance(gate, Gate) else gate.side
    # references, and groups that are stated to be outside, have no verdict
    judged = verdicts.drop_nulls(".verdict")
    notify(judged, side)
    failed = judged.filter(pl.col(".verdict").is_in([FAIL, UNSURE] if strict else [FAIL]))
    if not failed.is_empty():
        outcomes = failed[".verdict"].to_list()
        outcome = outcome_of(outcomes.count(FAIL), outcomes.count(UNSURE), len(judged))
        msg = f"{outcome}:\n{table_of(failed)}"
        if UNSURE in outcomes:
            msg += f"\n{way_out(failed.filter(pl.col('.verdict') == UNSURE))}"
        paragraphs = [msg]
        if isinstance(gate, Gate):
            if any(metric.aggregate is not None and metric.aggregate.is_extreme for metric in gate.metrics.specs):
                # each group is judged by its own bounds
                options = {**options, "interval": "auto", "conf_level": 2 * gate.conf_level - 1}
            with warnings.catch_warnings():
                # rows are counted again for the failure alone; the gate has given the warnings
                warnings.simplefilter("ignore")
                groups = open_frame(gate.metrics.by_group(data, truth, estimate, **options)).to_polars()
            paragraphs += groups_behind(gate.metrics, failed, groups, side)
        raise UnfairError("\n\n".join(paragraphs))
    unsure = judged.filter(pl.col(".verdict") == UNSURE)
    if not unsure.is_empty():
        outcome = outcome_of(0, len(unsure), len(judged))
        warn(
            f"assert_fair(): {outcome[0].lower()}{outcome[1:]}:\n{table_of(unsure)}\n{way_out(unsure)} "
            "`strict=True` makes this a failure.",
            EvidenceWarning,
        )


def _verdicts_of(
    given: Any, data: object, below: float | None, above: float | None, conf_level: float | None,
    outside: Outside | None,
) -> tuple[Gate | ComparisonGate | ChangeGate | None, pl.DataFrame]:  # fmt: skip
    """The gate to be called on data; or none, and the verdicts on a result."""
    settings: dict[str, Any] = {"below": below, "above": above, "conf_level": conf_level, "outside": outside}
    stated = {name: value for name, value in settings.items() if value is not None}
    is_gate = isinstance(given, Gate | ComparisonGate | ChangeGate)
    if is_gate and stated:
        msg = f"assert_fair() takes a gate as it is; leave out {listed(f'`{name}=`' for name in stated)}."
        raise ArgumentError(msg)
    is_result = not (is_gate or _are_metrics(given) or isinstance(given, GroupsCompared | ModelComparison))
    if is_result and data is not None:
        call = '`assert_fair(demographic_parity("column"), data, …, below=0.1)`'
        msg = f"assert_fair() takes metrics and then data, as in {call}; or a result alone, and a limit."
        raise ArgumentError(msg)
    gate = given if is_gate else check(given, **stated)
    if is_result:
        return None, open_frame(gate).to_polars()
    if data is None:
        msg = "assert_fair() takes the data in the same call: `assert_fair(metrics, data, …, below=0.1)`."
        raise ArgumentError(msg)
    return gate, pl.DataFrame()
