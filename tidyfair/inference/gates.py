"""Gates: tests of whether a disparity is within a limit (equivalence), beyond it (excess), or too uncertain to say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

import polars as pl

from tidyfair.calls import Evaluable
from tidyfair.errors import ArgumentError, ColumnError, EvidenceWarning, TidyfairError, in_short, listed, warn
from tidyfair.escapes import visible
from tidyfair.inference.gate_listeners import notify
from tidyfair.inference.gate_texts import groups_behind, outcome_of, table_of, way_out
from tidyfair.inference.on_data import MetricSetOnData
from tidyfair.inference.unknown_groups import (
    UNKNOWN_ROWS,
    WITH_UNKNOWN,
    counted_unknown,
    has_unknown,
    may_join,
    with_unknown,
    with_unknown_in_each_group,
)
from tidyfair.metric_sets import CALL, GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, metric_set, way_to_metrics
from tidyfair.metrics.fairness import demographic_parity_ratio
from tidyfair.specs.arguments import flag, number, proper_share, share_of_percent
from tidyfair.specs.options import CallOptions, ReadOptions, refuse_unknown_keywords, show_keywords
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from tidyfair.runner import Run
    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.forecasts import Prediction, TruthLike
    from tidyfair.specs.groups import Privileged
    from tidyfair.specs.options import Options, OptionsOf
    from tidyfair.tallies.tally import Tally

__all__ = ["Gate", "UnfairError", "assert_fair", "check", "four_fifths"]

Side: TypeAlias = Literal["below", "above"]
_CONFIDENCE = 0.95
_HALF = 0.5
_REFUSED: dict[str, str] = dict.fromkeys(("interval", "conf_level", "explain"), "; its `confidence` is that of `check`")
"""The options of metrics that a gate does not accept, and why."""
PASS, FAIL, UNSURE = "pass", "fail", "not enough evidence"
_LOW, _HIGH = "\0low", "\0high"
"""The ends of the acceptable interval; null where there is none."""
_DEFAULT_RANGE, _UNKNOWN_RANGE = (0, 1), (0, math.inf)
"""The range of metrics of users without a range of their own, and the range that they may have."""
_WISHES = {"maximize": "be large", "one": "be near 1", "minimize": "be small", "zero": "be near 0"}


class UnfairError(TidyfairError, AssertionError):
    """Raised by `assert_fair`; its message has the verdicts, what a pass takes, and the values of groups."""


@dataclass(frozen=True, repr=False)
class Gate(MetricSetOnData):
    """Metrics with a limit, as a callable on dataframes that returns verdicts; made by `check`.

    `pass` is the result of a test of equivalence, `fail` that of a test of excess; if neither test rejects, the verdict
    is `not enough evidence`.
    """

    subject: ClassVar[str] = "A gate"
    follows_points: ClassVar[bool] = True
    findings: ClassVar[tuple[str, ...]] = (".lower", ".upper", ".limit", ".verdict")
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    metrics: MetricSet
    limits: tuple[tuple[Side, float], ...]
    """The limit of each metric, and the good side of it."""
    confidence: float = 0.95
    options: tuple[tuple[str, Any], ...] = ()
    """Options of every call."""

    @show_keywords(CallOptions, without=_REFUSED)
    def __call__(
        self, data: object, truth: TruthLike | None = None, estimate: Prediction | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:  # fmt: skip
        """Give a verdict on each metric of each outer group; takes the arguments of a metric.

        Returns:
            The results of the metrics, with one-sided limits `.lower` and `.upper`, the `.limit`, and the `.verdict`.
            For metrics with `unknown="apart"` also the rows of unknown groups, `.unknown`, their `.unknown_share` of
            all rows, and, if the known groups alone pass, the verdict `.with_unknown`, in which they are compared.
        """
        return self._on_data(data, truth, estimate, options)

    @show_keywords(ReadOptions, without=_REFUSED)
    def compute(self, tally: Tally, **options: Unpack[ReadOptions]) -> pl.DataFrame:
        """Judge a tally of the metrics; equals a call on the data.

        Passes are judged one by one, because all must; failures after Holm, because any does.
        """
        return self._on_tally(tally, options)

    def __repr__(self) -> str:
        limits = [f"{metric} {limit}" for metric, limit in zip(self._members(), self._limits(), strict=True)]
        made_of = f"{', '.join(limits)}; {', '.join(self._settings())}"
        return visible(f"<Gate of {made_of}; call it with {CALL}>")

    def _limits(self) -> list[str]:
        """The limits as texts."""
        return [f"{side} {limit:g}" for side, limit in self.limits]

    def _settings(self) -> list[str]:
        return [f"confidence={self.confidence:g}", *(f"{name}={value!r}" for name, value in self.options)]

    def _html_columns(self) -> dict[str, list[str]]:
        columns = super()._html_columns()
        return {"metric": columns.pop("metric"), "by": columns.pop("by"), "limit": self._limits(), **columns}

    def _options(
        self, run: Run, keywords: Mapping[str, Any], accepted: OptionsOf, *, truth: Any = None, estimate: Any = None
    ) -> Options:
        options = super()._options(run, keywords, accepted, truth=truth, estimate=estimate)
        for name, own in self.options:
            if (other := keywords.get(name)) not in (None, own):
                msg = f"`{name}` is given twice: {own!r} for the gate, and {other!r} here."
                raise ArgumentError(msg)
        return replace(options, explain=True, interval="auto", **dict(self.options))

    def _counting_options(self, options: Options) -> Options:
        if options.cluster is None and options.parts is None:
            # intervals need to see how much sums vary from part to part
            return options.in_parts(options.seed)
        return options

    def _results(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The results with their verdicts."""
        self.metrics.run.check_occurs(tally, options)
        results, judged = self._with_limits(tally, options)
        failed = self._failed(tally, results, judged, options)
        verdicts = results.with_columns(_verdict(pl.lit(failed), _passes() & _is_complete(judged))).drop(_LOW, _HIGH)
        return self._with_unknown_groups(tally, options, verdicts)

    def one_by_one(self, tally: Tally, options: Options) -> pl.DataFrame:
        """The verdict on each result as if it were the only one, without Holm's adjustment of failures."""
        results, judged = self._with_limits(tally, options)
        may_fail = pl.Series([not _may_be_distance(metric) for metric in judged], dtype=pl.Boolean)
        return results.with_columns(_verdict(_fails() & may_fail, _passes() & _is_complete(judged))).drop(_LOW, _HIGH)

    def _with_unknown_groups(self, tally: Tally, options: Options, verdicts: pl.DataFrame) -> pl.DataFrame:
        """The verdicts with the rows of unknown groups; a pass needs one with these rows, too."""
        if not any(map(has_unknown, self.metrics)):
            return verdicts
        counted = counted_unknown(tally, self.metrics, verdicts)
        passes = (verdicts[".verdict"] == PASS) & (counted[UNKNOWN_ROWS] > 0).fill_null(value=False)
        others = pl.Series([None], dtype=pl.String).new_from_index(0, len(verdicts))
        if passes.any():
            on_undefined = "null" if options.on_undefined == "null" else "ignore"
            others = self._verdicts_with_unknown(tally, replace(options, on_undefined=on_undefined), verdicts, passes)
        verdicts = verdicts.with_columns(*counted, pl.when(passes).then(others).alias(WITH_UNKNOWN))
        is_turned = passes & (others != PASS)
        return verdicts.with_columns(pl.when(is_turned).then(pl.lit(UNSURE)).otherwise(".verdict").alias(".verdict"))

    def _verdicts_with_unknown(
        self, tally: Tally, options: Options, verdicts: pl.DataFrame, passes: pl.Series
    ) -> pl.Series:
        """The verdicts with unknown groups compared; if they are too few to tell, with their rows in any known group.

        Rows that keep no gate from passing, whichever known group they belong to, are too few to matter.
        """
        compared = replace(self, metrics=metric_set(*map(with_unknown, self.metrics)))
        others = compared.one_by_one(tally, options)[".verdict"]
        for metric in self.metrics:
            if not isinstance(metric, GroupwiseMetric) or not has_unknown(metric):
                continue
            is_of_metric = (verdicts[".metric"] == metric.name) & (verdicts[".by"] == metric.by.text)
            undecided = passes & is_of_metric & (others == UNSURE)
            if not undecided.any() or not may_join(tally, metric.by):
                continue
            for joined in with_unknown_in_each_group(tally, metric.by):
                undecided &= self.one_by_one(joined, options)[".verdict"] == PASS
            others = others.set(undecided, PASS)
        return others

    def _with_limits(self, tally: Tally, options: Options) -> tuple[pl.DataFrame, list[Metric | GroupwiseMetric]]:
        """The results with their limits and the ends of what is acceptable, and the metric of each."""
        results, index = self._at(tally, 1 - self.confidence, options)
        judged = [self.metrics.metrics[metric] for metric in index]
        limits = [self.limits[metric] for metric in index]
        results = results.with_columns(pl.Series(".limit", [limit for _, limit in limits], dtype=pl.Float64))
        below = pl.Series([side == "below" for side, _ in limits], dtype=pl.Boolean)
        signed = pl.Series([metric.direction in {"zero", "one"} for metric in judged], dtype=pl.Boolean)
        return _with_ends(results, below, signed), judged

    def _failed(
        self, tally: Tally, results: pl.DataFrame, judged: Sequence[Metric | GroupwiseMetric], options: Options
    ) -> pl.Series:
        """A mask of the results that fail, after Holm."""
        failed = pl.Series([False] * len(results), dtype=pl.Boolean)
        # replicates of what may be a distance lie beyond equality even where groups are equal
        may_fail = pl.Series([not _may_be_distance(metric) for metric in judged], dtype=pl.Boolean)
        remaining = failed.not_() & results[".estimate"].is_not_null() & may_fail
        on_undefined = "null" if options.on_undefined == "null" else "ignore"
        silent = replace(options, on_undefined=on_undefined)
        while remaining.any():
            # the next one is judged by as many as remain
            stricter, _ = self._at(tally, (1 - self.confidence) / int(remaining.sum()), silent)
            fails = stricter.with_columns(results[_LOW], results[_HIGH]).select(_fails()).to_series()
            fails = remaining & fails.fill_null(value=False)
            if not fails.any():
                break
            failed, remaining = failed | fails, remaining & ~fails
        return failed

    def _at(self, tally: Tally, error: float, options: Options) -> tuple[pl.DataFrame, list[int]]:
        """Results with one-sided limits at that error rate, and the index of the metric of each row.

        If the limit is equality itself, groups may differ to either side of it, and limits are two-sided.
        """
        results = self.metrics.run.results_of(tally, replace(options, conf_level=1 - 2 * error))
        names = [(metric.name, _by_text(metric)) for metric in self.metrics]
        index = [names.index(pair) for pair in results.select(".metric", ".by").rows()]
        at_equality = [_is_at_equality(self.metrics.metrics[metric], *self.limits[metric]) for metric in index]
        if any(at_equality):
            silent = replace(options, on_undefined="null" if options.on_undefined == "null" else "ignore")
            wider = self.metrics.run.results_of(tally, replace(silent, conf_level=1 - error))
            two_sided = pl.Series(at_equality, dtype=pl.Boolean)
            results = results.with_columns(
                pl.when(two_sided).then(wider[end]).otherwise(end).alias(end) for end in (".lower", ".upper")
            )
        return results, index


def _is_at_equality(metric: Metric | GroupwiseMetric, side: Side, limit: float) -> bool:
    """Check whether a limit equals the value of a distance for equal groups."""
    if not isinstance(metric, GroupwiseMetric) or not metric.aggregate.is_distance:
        return False
    least, most = _bounds(metric)
    return limit == (least if side == "below" else most)


def _by_text(metric: Metric | GroupwiseMetric) -> str | None:
    return metric.by.text if isinstance(metric, GroupwiseMetric) else None


def _is_complete(judged: Sequence[Metric | GroupwiseMetric]) -> pl.Expr:
    """Mask of the results without left-out groups or metrics."""
    two_sided = pl.Series([_two_sided(metric) for metric in judged], dtype=pl.Boolean)
    # rows on neither side are not compared
    expected = pl.when(two_sided).then(pl.lit("neither")).otherwise(pl.lit(None, pl.String))
    missing = pl.col(".groups_left_out").list.set_difference(pl.concat_list(expected))
    return (missing.list.len() == 0) & (pl.col(".metrics_left_out").list.len() == 0)


def _two_sided(metric: Metric | GroupwiseMetric) -> bool:
    return isinstance(metric, GroupwiseMetric) and metric.by.sides is not None


def _may_be_distance(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether the value of a user's aggregate for equal groups is unknown."""
    return isinstance(metric, GroupwiseMetric) and metric.aggregate.equality_is_unknown


def _with_ends(results: pl.DataFrame, below: pl.Expr | pl.Series, signed: pl.Expr | pl.Series) -> pl.DataFrame:
    """Results with the ends of the acceptable interval, which has two where a value may have either sign."""
    limit = pl.col(".limit")
    return results.with_columns(
        pl.when(~below).then(limit).when(signed).then(-limit).alias(_LOW),
        pl.when(below).then(limit).when(signed).then(1 / limit).alias(_HIGH),
    )


def _passes() -> pl.Expr:
    """The results whose interval is acceptable as a whole."""
    low, high = pl.col(_LOW), pl.col(_HIGH)
    return (low.is_null() | (pl.col(".lower") > low)) & (high.is_null() | (pl.col(".upper") < high))


def _fails() -> pl.Expr:
    """The results whose interval is not acceptable in any part; null where it has no such end."""
    return (pl.col(".lower") > pl.col(_HIGH)) | (pl.col(".upper") < pl.col(_LOW))


def _verdict(failed: pl.Expr, passed: pl.Expr) -> pl.Expr:
    verdict = pl.when(failed).then(pl.lit(FAIL)).when(passed).then(pl.lit(PASS)).otherwise(pl.lit(UNSURE))
    return verdict.alias(".verdict")


@refuse_unknown_keywords
def check(
    given: Any, *, below: float | None = None, above: float | None = None, confidence: float | None = None
) -> Any:
    """Check whether disparities are `below` (or ratios `above`) a limit: pass, fail, or not enough evidence.

    A pass requires that the one-sided upper confidence bound of the disparity is below the limit (a test of
    equivalence), a failure that the lower bound is above it (a test of excess). `rows_needed` gives the required number
    of rows. Failures are adjusted by Holm's method (1979) over all metrics and outer groups of the call, so one fold of
    many may not fail although it would alone; passes are judged one by one. A user's aggregate fails only if
    `new_aggregate` states its value for equal groups. A group that was left out makes a pass impossible. With
    `unknown="apart"`, a pass also requires one with the unknown groups compared like all others or, if these have too
    few rows for a verdict, with their rows in any of the known groups; `unknown="drop"` states that they are meant to
    be left out.

    Signed comparisons are judged by their absolute size, and metrics that should be near 0 or 1 have a limit on both
    sides. A stored result does not say which direction is good, so `below` then applies to both signs, and `above` with
    a limit below 1 to comparisons and their reciprocals.

    Args:
        given: A metric, a groupwise metric or a set; or a result with intervals and explanation, such as
            `fair(data, …, interval="auto", conf_level=0.9, explain=True)`.
        below: The limit of differences.
        above: The limit of ratios.
        confidence: Confidence level of verdicts on metrics, 0.95 by default. A result is judged by its own intervals:
            those of `conf_level=0.9` give verdicts with confidence level 0.95.

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
    side, limit = limited("check", below, above)
    if _are_metrics(given):
        confidence = _CONFIDENCE if confidence is None else proper_share("confidence", confidence, _HALF)
        metrics = judged_metrics("check", cast("object", given), side, limit)
        limits: list[tuple[Side, float]] = [(side, limit)] * len(metrics)
        return Gate(metrics, tuple(limits), confidence)
    if confidence is not None:
        msg = (
            "check() does not accept `confidence` for a result, which it judges by its intervals; evaluate with "
            "`conf_level=0.9` for verdicts at confidence level 0.95."
        )
        raise ArgumentError(msg)
    return _judged(given, limit, side)


def _are_metrics(given: object) -> bool:
    """Check whether the argument is, or may have been meant as, metrics rather than a result."""
    return given is None or isinstance(given, Evaluable | GroupwiseFactory | list | tuple | str | Mapping)


def limited(name: str, below: object, above: object) -> tuple[Side, float]:
    """The side and the value of the only limit."""
    if (below is None) == (above is None):
        msg = f"{name}() needs one limit, a number: `below=` for differences, or `above=` for ratios."
        raise ArgumentError(msg)
    if above is None:
        return "below", number("below", below, 0)
    return "above", number("above", above, 0)


def judged_metrics(name: str, given: object, side: Side, limit: float) -> MetricSet:
    """The metrics without their signs, after a check that the limit suits them."""
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
    return metrics


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


def _judged(result: Any, limit: float, side: str) -> Any:
    """A result with verdicts by the intervals that it has."""
    source = open_frame(result)
    frame = source.to_polars()
    if ".metric" not in frame.columns:
        call = '`check(demographic_parity("column"), below=0.1)(data, …)`'
        msg = f"check(): the frame is not a result of metrics. Give metrics first and then data, as in {call}."
        raise ColumnError(msg)
    needed = (".by", ".estimate", ".lower", ".upper", ".metrics_left_out", ".groups_left_out")
    if missing := [name for name in needed if name not in frame.columns]:
        msg = f'check(): the result has no {listed(missing)}; evaluate with `interval="auto", explain=True` first.'
        raise ColumnError(msg)
    for name in needed[-2:]:
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
    frame = _with_ends(frame.with_columns(pl.lit(limit).alias(".limit")), pl.lit(side == "below"), signed)
    is_complete = (pl.col(".groups_left_out").list.len() == 0) & (pl.col(".metrics_left_out").list.len() == 0)
    frame = frame.with_columns(_verdict(_fails(), _passes() & is_complete))
    return source.restore(frame.drop(_LOW, _HIGH))


@refuse_unknown_keywords
def four_fifths(*by: ColumnLike | Privileged, favourable: object = None, confidence: float = 0.95) -> Gate:
    """The four-fifths rule as a gate: no group's selection rate is below 80 % of any other's (EEOC, 1978).

    Args:
        by: The sensitive feature, as for a factory.
        favourable: The favourable label; optional if it follows from the labels.
        confidence: Confidence level of verdicts.

    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> four_fifths("sex")(people, estimate="hired")[".verdict"].item()
    'pass'
    """
    ratio = metric_set(demographic_parity_ratio(*by, name="four_fifths"))
    options = () if favourable is None else (("pos_label", favourable),)
    return replace(check(ratio, above=0.8, confidence=confidence), options=options)


@refuse_unknown_keywords
@show_keywords(CallOptions, without=_REFUSED)
def assert_fair(
    metrics: Metric | GroupwiseMetric | MetricSet, data: Any = None, truth: TruthLike | None = None,
    estimate: Prediction | None = None, *, below: float | None = None, above: float | None = None,
    confidence: float = 0.95, strict: bool = False, **options: Unpack[CallOptions],
) -> None:  # fmt: skip
    """Raise `UnfairError` with the groups behind it if a disparity fails its limit; for test suites.

    If the data are inconclusive, an `EvidenceWarning` with the table is issued; `strict=True` makes that a failure too.

    Args:
        metrics: Metrics as for `check`.
        data: A dataframe, as for a metric.
        truth: Column of the truth.
        estimate: Column of the predictions.
        below: The limit of differences.
        above: The limit of ratios.
        confidence: Confidence level of verdicts.
        strict: Whether a lack of evidence is a failure instead of a warning.
        options: The options of a call.

    >>> from tidyfair import demographic_parity
    >>> people = pl.DataFrame({"hired": [1, 0] * 500, "sex": (["f"] * 2 + ["m"] * 2) * 250})
    >>> assert_fair(demographic_parity("sex"), people, estimate="hired", below=0.1)
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this
    flag("strict", strict)
    if not _are_metrics(metrics):
        call = '`assert_fair(demographic_parity("column"), data, …, below=0.1)`'
        msg = (
            f"assert_fair() takes metrics and then data, as in {call}; for a stored result use `check` and its "
            "verdicts."
        )
        raise ArgumentError(msg)
    if data is None:
        msg = "assert_fair() takes the data in the same call: `assert_fair(metrics, data, …, below=0.1)`."
        raise ArgumentError(msg)
    gate = check(metrics, below=below, above=above, confidence=confidence)
    verdicts = open_frame(gate(data, truth, estimate, **options)).to_polars()
    side: Side = "below" if above is None else "above"
    notify(verdicts, side)
    failures = [FAIL, UNSURE] if strict else [FAIL]
    failed = verdicts.filter(pl.col(".verdict").is_in(failures))
    if not failed.is_empty():
        outcomes = failed[".verdict"].to_list()
        outcome = outcome_of(outcomes.count(FAIL), outcomes.count(UNSURE), len(verdicts))
        msg = f"{outcome}:\n{table_of(failed)}"
        if UNSURE in outcomes:
            msg += f"\n{way_out(failed.filter(pl.col('.verdict') == UNSURE))}"
        with warnings.catch_warnings():
            # rows are counted again for the failure alone; the gate has given the warnings
            warnings.simplefilter("ignore")
            groups = open_frame(gate.metrics.by_group(data, truth, estimate, **options)).to_polars()
        raise UnfairError("\n\n".join([msg, *groups_behind(gate.metrics, failed, groups, side)]))
    unsure = verdicts.filter(pl.col(".verdict") == UNSURE)
    if not unsure.is_empty():
        outcome = outcome_of(0, len(unsure), len(verdicts))
        warn(
            f"assert_fair(): {outcome[0].lower()}{outcome[1:]}:\n{table_of(unsure)}\n{way_out(unsure)} "
            "`strict=True` makes this a failure.",
            EvidenceWarning,
        )
