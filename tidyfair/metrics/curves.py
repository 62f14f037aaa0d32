"""Curves of scores as tidy frames. A curve is its formula: its columns computed from the rows at or above each score.

`tp` and `fp` are the weights of rows with and without the event at or above a score, `positives` and `negatives` those
of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, ColumnError, UndefinedError, UndefinedWarning, in_short, warn
from tidyfair.evaluation import (
    UNGROUPED,
    Level,
    number_group_cells,
    read_labels,
    rows_of,
    scores_of_levels,
    sorted_scores,
)
from tidyfair.intervals import wilson, z_value
from tidyfair.metrics.probability import bin_of, check_bins, consistency_limits, isotonic_bounds, roc_auc
from tidyfair.specs import (
    Array,
    CallOptions,
    ColumnLike,
    Frame,
    Options,
    formulas_of,
    is_list,
    proper_share,
    refuse_unknown_keywords,
    refuse_unknown_settings,
    unknown_keyword,
)
from tidyfair.specs.formulas import Expr
from tidyfair.specs.result_kinds import with_level
from tidyfair.tallies import SCORE, TRUTH, PolarsFrame, check_weights, open_frame

__all__ = [
    "Curve",
    "ThresholdCurve",
    "calibration_curve",
    "cumulative_calibration_curve",
    "gain_curve",
    "lift_curve",
    "pr_curve",
    "risk_coverage_curve",
    "roc_curve",
    "threshold_curve",
]

_CURVE = ["group_cell", "level"]
"""The columns that identify curves."""
_SHOWN = 10
_STEPS = 100
_ON_UNDEFINED = ("warn", "ignore", "raise")


class CurveOptions(TypedDict, total=False):
    """The options of a curve besides data and truth, documented in the call."""

    probs: ColumnLike | Sequence[ColumnLike] | Mapping[Any, ColumnLike]
    group_by: ColumnLike | Iterable[ColumnLike] | None
    case_weights: ColumnLike | None
    pos_label: object
    labels: Sequence[object] | None
    on_undefined: Literal["warn", "ignore", "raise"]
    thresholds: Sequence[float] | None
    bins: int
    binning: Literal["width", "count", "isotonic"]
    conf_level: float


@dataclass(frozen=True)
class Curve:
    """Columns as functions of the threshold, as a callable on dataframes."""

    name: str
    function: Callable[..., dict[str, Expr]]
    rising: bool = False
    """True if points are sorted by ascending score, with an additional point where all rows are selected."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.function.__doc__)

    @overload
    def __call__(self, data: PolarsFrame, truth: ColumnLike, **options: Unpack[CurveOptions]) -> pl.DataFrame: ...
    @overload
    def __call__(self, data: object, truth: ColumnLike, **options: Unpack[CurveOptions]) -> Frame: ...
    @refuse_unknown_settings
    def __call__(self, data: object, truth: ColumnLike, **options: Unpack[CurveOptions]) -> Frame:
        """Compute the curve of each outer group and, with more than two labels, of each label against the rest.

        Args:
            data: A polars, pandas or pyarrow frame, grouped or not.
            truth: Column of the true labels.
            options: Keyword arguments, listed below.
            probs: Column of scores; with more than two labels a list of columns in their order, or a mapping.
            group_by: Columns whose groups each get a curve.
            case_weights: Column of weights.
            pos_label: The label that is the event; needed unless labels are Boolean, 0/1 or -1/1.
            labels: All labels in order, if the data do not declare them.
            on_undefined: Groups of one class cause a warning ("warn"), no message ("ignore") or an error ("raise").
            thresholds: Points of the curve, instead of every distinct score.

        Returns:
            A tidy frame of the caller's kind: outer keys, `.level` with more than two labels, `.threshold`, and the
            columns of the curve. Rows without truth or score are left out. Undefined values (a rate without events) are
            null, and an `UndefinedWarning` names the groups.
        """
        given = cast("dict[str, Any]", options)
        thresholds, on_undefined = _thresholds(given.pop("thresholds", None)), given.pop("on_undefined", "warn")
        if on_undefined not in _ON_UNDEFINED:
            raise ArgumentError.not_one_of("on_undefined", on_undefined, _ON_UNDEFINED)
        points, curves, with_keys = _points(self.name, data, truth, given)
        extra = [math.inf, *(thresholds or [])]
        if self.rising:
            extra.append(-math.inf)
        points = _cumulated(points, curves, extra)
        if thresholds is not None:
            points = points.filter("added")
        if self.rising:
            points = points.sort(*_CURVE, "score", maintain_order=True)
        columns = self.function(pl.col("tp"), pl.col("fp"), pl.col("positives"), pl.col("negatives"))
        values = points.select(*_CURVE, pl.col("score").alias(".threshold"), **columns)
        values = values.with_columns(pl.col(list(columns)).fill_nan(None))
        if on_undefined != "ignore":
            _warn(self.name, points, with_keys, strict=on_undefined == "raise")
        return with_keys(values, restored=True)

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<curve {self.name}>"


def curve(*, rising: bool = False) -> Callable[[Callable[..., dict[str, Expr]]], Curve]:
    """Turn a formula of columns into a curve."""
    return lambda function: Curve(function.__name__, function, rising)


def _cumulated(points: pl.DataFrame, curves: pl.DataFrame, extra: list[float]) -> pl.DataFrame:
    """The points with the parameters of curves, and such points at extra scores, marked as added."""
    added = curves.join(pl.DataFrame({"score": extra}), how="cross").with_columns(
        hits=0.0, false_alarms=0.0, squares=0.0, rows=pl.lit(0, pl.Int64), added=True
    )
    points = pl.concat([points.with_columns(added=False), added.select(*points.columns, "added")])
    # an added point comes after the rows that have its score
    points = points.sort(*_CURVE, "score", "added", descending=[False, False, True, False], maintain_order=True)
    hits, alarms = pl.col("hits"), pl.col("false_alarms")
    return points.with_columns(
        tp=hits.cum_sum().over(_CURVE),
        fp=alarms.cum_sum().over(_CURVE),
        positives=hits.sum().over(_CURVE),
        negatives=alarms.sum().over(_CURVE),
    )


@curve(rising=True)
def roc_curve(tp: Expr, fp: Expr, positives: Expr, negatives: Expr) -> dict[str, Expr]:
    """Receiver operating characteristic: `specificity` and `sensitivity` at each threshold, from low to high.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1], "p": [0.9, 0.4, 0.3]})
    >>> roc_curve(seen, "y", probs="p")["sensitivity"].to_list()
    [1.0, 1.0, 0.5, 0.5, 0.0]
    """
    # sums of weights differ in the last bit by the order in which they are taken
    return {"specificity": (1 - fp / negatives).clip(0, 1), "sensitivity": (tp / positives).clip(0, 1)}


@curve()
def pr_curve(tp: Expr, fp: Expr, positives: Expr, negatives: Expr) -> dict[str, Expr]:
    """`recall` and `precision` at each threshold, from high to low; it starts at precision 1.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1], "p": [0.9, 0.4, 0.3]})
    >>> pr_curve(seen, "y", probs="p")["precision"].to_list()
    [1.0, 1.0, 0.5, 0.6666666666666666]
    """
    del negatives
    return {
        "recall": (tp / positives).clip(0, 1),
        "precision": pl.when(tp + fp > 0).then(tp / (tp + fp)).otherwise(1.0),
    }


@curve()
def gain_curve(tp: Expr, fp: Expr, positives: Expr, negatives: Expr) -> dict[str, Expr]:
    """Gain: `.percent_found` of the events among the `.percent_tested` with the highest scores, and both as weights.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.9, 0.4, 0.3, 0.1]})
    >>> gain_curve(seen, "y", probs="p")[".percent_found"].to_list()
    [0.0, 50.0, 50.0, 100.0, 100.0]
    """
    tested = tp + fp
    return {
        ".n": tested,
        ".n_events": tp,
        ".percent_tested": 100 * tested / (positives + negatives),
        ".percent_found": 100 * tp / positives,
    }


@curve()
def lift_curve(tp: Expr, fp: Expr, positives: Expr, negatives: Expr) -> dict[str, Expr]:
    """`.lift`: how many times more frequent the event is among the `.percent_tested` with the highest scores.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.9, 0.4, 0.3, 0.1]})
    >>> lift_curve(seen, "y", probs="p")[".lift"].round(2).to_list()
    [None, 2.0, 1.0, 1.33, 1.0]
    """
    tested, every = tp + fp, positives + negatives
    return {
        ".n": tested,
        ".n_events": tp,
        ".percent_tested": 100 * tested / every,
        ".lift": (tp / tested) / (positives / every),
    }


@refuse_unknown_keywords
def calibration_curve(data: Any, truth: ColumnLike, **options: Unpack[CurveOptions]) -> Frame:
    """Share of events and mean score in bins of the score; takes the arguments of a curve, and options for bins.

    Args:
        data: A polars, pandas or pyarrow frame, grouped or not.
        truth: Column of the true labels.
        options: As for a curve, with `bins` (10) and `binning` instead of thresholds: `"width"` for bins of equal width
            between 0 and 1, `"count"` for bins of equal weight in each outer group, `"isotonic"` for those in which
            isotonic regression pools scores, whose number follows from the data (CORP; Dimitriadis et al., 2021); and
            `conf_level` (0.95).

    Returns:
        A tidy frame: outer keys, `.level` with more than two labels, `.bin` (from 1), `.mean_score`, `.event_rate`,
        `.lower`, `.upper`, `.n`, the rows of the bin, and with `case_weights` their `.weight`; of isotonic bins, their
        `.lowest_score` and `.highest_score`. Limits are those of the share of events (Wilson); of isotonic bins, a
        consistency band, of what isotonic regression makes of calibrated scores (500 draws; of a bin the mean of those
        of its scores, each by itself). With weights they are null. Empty bins are left out.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.9, 0.4, 0.9, 0.1]})
    >>> calibration_curve(seen, "y", probs="p", bins=2).select(".bin", ".mean_score", ".event_rate", ".n").rows()
    [(1, 0.25, 0.0, 2), (2, 0.9, 1.0, 2)]
    """
    given = cast("dict[str, Any]", options)
    weighted = given.get("case_weights") is not None
    is_isotonic = given.get("binning") == "isotonic"
    if is_isotonic and given.get("bins") is not None:
        msg = 'calibration_curve: `binning="isotonic"` takes its bins from the data; leave out `bins`.'
        raise ArgumentError(msg)
    if weighted and given.get("conf_level") is not None:
        msg = "calibration_curve: limits are of rows that count alike, without weights; leave out `conf_level`."
        raise ArgumentError(msg)
    level = proper_share("conf_level", given.pop("conf_level", 0.95))
    bins, binning = given.pop("bins", 10), given.pop("binning", "width")
    check_bins("calibration_curve", bins, binning, ["width", "count", "isotonic"])
    points, _, with_keys = _points("calibration_curve", data, truth, given)
    if binning != "count":
        _check_probabilities(points, '; use binning="count"')
    weight, score = pl.col("hits") + pl.col("false_alarms"), pl.col("score")
    share = score if binning == "width" else weight.cum_sum(reverse=True).over(_CURVE) / weight.sum().over(_CURVE)
    more = [weight.sum().alias(".weight")] if weighted else []
    if is_isotonic:
        points = _in_isotonic_bins(points, None if weighted else level)
        more += [score.min().alias(".lowest_score"), score.max().alias(".highest_score")]
        limits = [(pl.col(end) * weight).sum() / weight.sum() for end in (".lower", ".upper")]
    else:
        points = points.with_columns((bin_of(share, bins, binning).cast(pl.Int64) + 1).alias(".bin"))
        limits = [pl.lit(math.nan).alias(end) for end in (".lower", ".upper")]
    binned = points.group_by(*_CURVE, ".bin").agg(
        ((score * weight).sum() / weight.sum()).alias(".mean_score"),
        (pl.col("hits").sum() / weight.sum()).alias(".event_rate"),
        *limits,
        pl.col("rows").sum().alias(".n"),
        *more,
    )
    if not is_isotonic and not weighted:
        binned = with_limits_of_shares(binned, level)
    binned = binned.with_columns(pl.col(".lower", ".upper").fill_nan(None)).sort(*_CURVE, ".bin")
    return with_keys(with_level(binned, level), restored=True)


def with_limits_of_shares(bins: pl.DataFrame, level: float = 0.95) -> pl.DataFrame:
    """Bins of a calibration curve with the limits of their shares of events (Wilson)."""
    shares, rows = bins[".event_rate"].to_numpy(), bins[".n"].cast(pl.Float64).to_numpy()
    lower, upper = wilson(shares, rows, z_value(level))
    return bins.with_columns(pl.Series(".lower", lower), pl.Series(".upper", upper))


def _in_isotonic_bins(points: pl.DataFrame, level: float | None) -> pl.DataFrame:
    """The falling scores of each curve with the bins, from 1, in which isotonic regression pools them, and limits."""
    columns: dict[str, list[Array]] = {name: [np.zeros(0)] for name in (".bin", ".lower", ".upper")}
    for scores in points.partition_by(_CURVE, maintain_order=True):
        hits, false_alarms = scores["hits"].to_numpy(), scores["false_alarms"].to_numpy()
        sizes = np.diff(isotonic_bounds(hits, hits + false_alarms))
        bins = np.repeat(np.arange(len(sizes), 0, -1), sizes)
        limits = np.full((2, len(scores)), math.nan)
        if level is not None:
            limits = consistency_limits(hits + false_alarms, scores["score"].to_numpy(), level)
        for column, own in zip(columns.values(), (bins, *limits), strict=True):
            column.append(own)
    added = {name: np.concatenate(own) for name, own in columns.items()}
    return points.with_columns(**{name: pl.Series(own) for name, own in added.items()}).cast({".bin": pl.Int64})


@refuse_unknown_keywords
def cumulative_calibration_curve(data: Any, truth: ColumnLike, **options: Unpack[CurveOptions]) -> Frame:
    """Sum of events minus the sum of scores, cumulated from the lowest score; takes the arguments of a curve.

    Where the line rises, risks are underestimated, and where it falls, overestimated: its slope is how much. Kuiper's
    `cumulative_calibration_error` is the distance of its highest from its lowest point (Arrieta-Ibarra et al., 2022).

    Args:
        data: A polars, pandas or pyarrow frame, grouped or not.
        truth: Column of the true labels.
        options: As for a curve, without thresholds.

    Returns:
        A tidy frame: outer keys, `.level` with more than two labels, `.score` (-inf where nobody is counted yet), the
        `.share` of the weight at or below it, `.cumulative_error` (per row of the curve) and `.std_error`, its standard
        deviation if scores are calibrated.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.75, 0.25, 0.5, 0.5]})
    >>> cumulative_calibration_curve(seen, "y", probs="p")[".cumulative_error"].to_list()
    [0.0, -0.0625, -0.0625, 0.0]
    """
    points, _, with_keys = _points("cumulative_calibration_curve", data, truth, cast("dict[str, Any]", options))
    _check_probabilities(points)
    start = points.select(_CURVE).unique().with_columns(score=-math.inf)
    rising = pl.concat([start, points], how="diagonal").sort(*_CURVE, "score")
    weight, score = pl.col("hits") + pl.col("false_alarms"), pl.col("score")
    difference, variance = pl.col("hits") - score * weight, score * (1 - score) * pl.col("squares")
    total = weight.sum().over(_CURVE)
    # nobody is counted at the start
    share, error, squares = (sums.fill_null(0.0).cum_sum().over(_CURVE) for sums in (weight, difference, variance))
    values = rising.select(*_CURVE, score.alias(".score"), **{
        ".share": share / total, ".cumulative_error": error / total, ".std_error": squares.sqrt() / total,
    })  # fmt: skip
    return with_keys(values, restored=True)


def _check_probabilities(points: pl.DataFrame, way_out: str = "") -> None:
    """Refuse scores beyond 0 and 1."""
    low, high = points["score"].min(), points["score"].max()
    if isinstance(low, float) and isinstance(high, float) and (low < 0 or high > 1):
        msg = f"`probs`: scores from {low:g} to {high:g} are not probabilities{way_out}."
        raise ArgumentError(msg)


@refuse_unknown_keywords
def risk_coverage_curve(data: Any, truth: ColumnLike, **options: Unpack[CurveOptions]) -> Frame:
    """Share of errors among the rows that a model decides about, if it abstains below a confidence.

    Args:
        data: A polars, pandas or pyarrow frame, grouped or not.
        truth: Column of errors, such as `(pl.col("y") != pl.col("predicted")).alias("error")`; null where not known.
        options: As for a curve, without thresholds; `probs` is the confidence, null where the model has abstained.

    Returns:
        A tidy frame: outer keys, `.threshold` from high to low, the confidence from which on the model decides;
        `.coverage`, the share of the rows that it decides about; `.risk`, the share of errors among these, and
        `.overall_coverage`, the coverage of all outer groups together at the same threshold, at which groups are
        compared (Jones et al., 2021). Rows without an error that is known, but with a confidence, are left out.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"error": [0, 1, 0, None], "confidence": [0.9, 0.6, 0.8, None]})
    >>> risk_coverage_curve(seen, "error", probs="confidence").select(".coverage", ".risk").rows()
    [(0.25, 0.0), (0.5, 0.0), (0.75, 0.3333333333333333)]
    """
    points, curves, with_keys = _points("risk_coverage_curve", data, truth, cast("dict[str, Any]", options))
    points = points.join(curves, on=_CURVE, maintain_order="left")
    points = points.with_columns(covered=pl.col("hits") + pl.col("false_alarms"))
    everywhere = points.group_by("score").agg(pl.col("covered").sum()).sort("score", descending=True)
    share = (pl.col("covered").cum_sum() / curves["everyone"].sum()).alias(".overall_coverage")
    points = points.join(everywhere.select("score", share), on="score", maintain_order="left")
    selected = pl.col("covered").cum_sum().over(_CURVE)
    values = points.select(
        *_CURVE, pl.col("score").alias(".threshold"), (selected / pl.col("everyone")).alias(".coverage"),
        (pl.col("hits").cum_sum().over(_CURVE) / selected).alias(".risk"), ".overall_coverage",
    )  # fmt: skip
    return with_keys(values, restored=True)


def _thresholds(thresholds: object) -> list[float] | None:
    """The distinct finite thresholds in ascending order."""
    if thresholds is None:
        return None
    values: list[object] = list(thresholds) if is_list(thresholds) else []
    are_numbers = [isinstance(value, Real) and not math.isnan(value) for value in values]
    if not values or not all(are_numbers):
        msg = f"`thresholds` must be a list of numbers, not {in_short(thresholds)}."
        raise ArgumentError(msg)
    numbers = cast("list[float]", values)
    return sorted({float(value) for value in numbers if not math.isinf(value)})


def _points(
    name: str, data: object, truth: ColumnLike, given: dict[str, Any]
) -> tuple[pl.DataFrame, pl.DataFrame, Callable[..., Any]]:
    """Distinct scores by outer group and level, falling; all these curves; and a function that adds their keys."""
    reading = {option: given.pop(option, None) for option in ("pos_label", "labels")}
    _check_options(name, given, reading)
    tally = roc_auc.tally(data, truth, **given).on_sides()
    check_weights(tally)
    labels = read_labels(tally, Options(**reading))
    group_cells, _ = number_group_cells(tally, labels, [None])
    rows = rows_of(tally, labels, group_cells, None, frozenset({"truth", "probs"}))
    floats = dict.fromkeys(["score", "hits", "false_alarms", "squares"], pl.Float64())
    schema = {"group_cell": pl.Int64(), **floats, "rows": pl.Int64(), "level": pl.Int64()}
    # the empty part gives the columns where no row has a score
    parts = [pl.DataFrame(schema=schema)]
    for level, score in scores_of_levels(tally, labels).items():
        index = pl.lit(level, pl.Int64).alias("level")
        parts += [part.with_columns(index) for part in sorted_scores(rows, Level(level, score))]
    points = pl.concat(parts).sort(_CURVE, maintain_order=True)
    curves = pl.DataFrame({"group_cell": range(len(group_cells.outer))}, schema={"group_cell": pl.Int64})
    # the rows that a curve could be about: those without a score, too
    counts = (tally.cells[SCORE].is_null() | tally.cells[TRUTH].is_not_null()).to_numpy()
    weight = tally.cells["w" if tally.weights is not None else "n"].to_numpy() * counts
    curves = curves.with_columns(everyone=np.bincount(group_cells.indices[None].of_cell, weight, len(curves)))
    curves = curves.join(pl.DataFrame({"level": labels.levels}, schema={"level": pl.Int64}), how="cross")
    source = open_frame(data, given.get("group_by"))

    def with_keys(values: pl.DataFrame, *, restored: bool = False) -> Any:
        outer = group_cells.outer[values["group_cell"].to_numpy()]
        keys = {key.name: key[outer] for key in group_cells.outer_keys if key.name != UNGROUPED}
        if taken := [key for key in keys if key in values.columns]:
            msg = f"`group_by`: {taken[0]!r} is a reserved column of {name}; rename your column."
            raise ColumnError(msg)
        if labels.event is None:
            keys[".level"] = pl.Series(list(map(str, labels.values)), dtype=pl.String)[values["level"]]
        columns = {column.name: column for column in values.drop(_CURVE)}
        keyed = pl.DataFrame(keys | columns)
        return source.restore(keyed) if restored else keyed

    return points, curves, with_keys


def _check_options(name: str, given: Mapping[str, Any], reading: Iterable[str]) -> None:
    """Refuse options that a curve does not have, and a curve without scores."""
    without_options = {"cumulative_calibration_curve": (), "risk_coverage_curve": ()}
    own = (without_options | {"calibration_curve": ("bins", "binning", "conf_level")}).get(
        name, ("on_undefined", "thresholds")
    )
    counting = ("probs", "group_by", "case_weights")
    for option in given:
        if option not in counting:
            kind = f"argument of {name}"
            raise unknown_keyword(kind, option, ["data", "truth", *counting, *reading, *own])
    if given.get("probs") is None:
        msg = f"{name} needs a column of scores; add `probs=`."
        raise ColumnError(msg)


def _warn(name: str, points: pl.DataFrame, with_keys: Callable[..., Any], *, strict: bool) -> None:
    """Warn of curves with one class only."""
    totals = points.group_by(_CURVE, maintain_order=True).agg(pl.col("positives", "negatives").first())
    lacking = totals.filter((pl.col("positives") == 0) | (pl.col("negatives") == 0)).select(_CURVE)
    if lacking.is_empty():
        return
    groups = [", ".join(map("{}={!r}".format, keys, keys.values())) for keys in with_keys(lacking).to_dicts()]
    where = ""
    if any(groups):
        more = " …" if len(groups) > _SHOWN else ""
        where = f" of {'; '.join(groups[:_SHOWN])}{more}"
    msg = f"{name}{where} has one class only, so rates are null."
    if strict:
        raise UndefinedError(msg)
    warn(msg, UndefinedWarning)


# Metrics along the threshold


@dataclass(frozen=True)
class ThresholdCurve:
    """Metrics as functions of the threshold, as a callable on dataframes; made by `threshold_curve`."""

    metrics: MetricSet
    thresholds: tuple[float, ...]

    @overload
    def __call__(
        self, data: PolarsFrame, truth: ColumnLike | None = None, **options: Unpack[CallOptions]
    ) -> pl.DataFrame: ...
    @overload
    def __call__(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Frame: ...
    @refuse_unknown_settings
    def __call__(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Frame:
        """Evaluate at every threshold in one pass; arguments of a metric except `estimate` and `threshold`."""
        return self.metrics(data, truth, **self._cut(options))

    @refuse_unknown_settings
    def by_group(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Frame:
        """The values of groups at every threshold, as from `by_group` of the metrics."""
        return self.metrics.by_group(data, truth, **self._cut(options))

    def _cut(self, options: CallOptions) -> CallOptions:
        if "threshold" in options:
            msg = "Give the thresholds when creating the curve: `threshold_curve(metric, [0.1, 0.2])`."
            raise ArgumentError(msg)
        return {**options, "threshold": self.thresholds}

    def __repr__(self) -> str:
        return f"<threshold curve at {len(self.thresholds)} thresholds of {self.metrics!r}>"


@refuse_unknown_keywords
def threshold_curve(
    metrics: Metric | GroupwiseMetric | MetricSet, thresholds: Iterable[float] | None = None
) -> ThresholdCurve:
    """Metrics and disparities as functions of the threshold.

    Args:
        metrics: A metric of labels, or a set; its metrics of scores have a null `.threshold`.
        thresholds: Thresholds of the scores, by default 0 to 1 in steps of 0.01, of net benefits without both ends.

    >>> import polars as pl
    >>> from tidyfair import demographic_parity
    >>> seen = pl.DataFrame({"p": [0.2, 0.6, 0.4, 0.9], "sex": ["f", "f", "m", "m"]})
    >>> parity = threshold_curve(demographic_parity("sex"), [0.3, 0.5, 0.7])
    >>> parity(seen, probs="p", pos_label=1)[".estimate"].to_list()
    [0.5, 0.0, 0.5]
    """
    if isinstance(metrics, GroupwiseFactory) or not isinstance(metrics, Metric | GroupwiseMetric | MetricSet):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"threshold_curve() takes a metric or a metric set, not {in_short(metrics)}."
        raise ArgumentError(msg)
    metrics = metric_set(metrics)
    if thresholds is None:
        # the odds of 0 and of 1 weigh nothing
        ends = any(formula.follows_threshold for formula in formulas_of(*metrics.specs))
        thresholds = [step / _STEPS for step in range(int(ends), _STEPS + 1 - int(ends))]
    elif not is_list(thresholds):
        msg = f"threshold_curve() takes a list of thresholds, not {in_short(thresholds)}."
        raise ArgumentError(msg)
    return ThresholdCurve(metrics, tuple(thresholds))
