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

import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, ColumnError, UndefinedError, UndefinedWarning, in_short, warn
from tidyfair.evaluation import (
    UNGROUPED,
    Level,
    labels_with_scores,
    number_group_cells,
    rows_of,
    scores_of_levels,
    sorted_scores,
)
from tidyfair.metrics.probability import bin_of, check_bins, roc_auc
from tidyfair.specs import CallOptions, ColumnLike, Frame, is_list, refuse_unknown_keywords, refuse_unknown_settings
from tidyfair.specs.formulas import Expr
from tidyfair.tallies import PolarsFrame, check_weights, open_frame

__all__ = [
    "Curve",
    "ThresholdCurve",
    "calibration_curve",
    "gain_curve",
    "lift_curve",
    "pr_curve",
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
    binning: Literal["width", "count"]


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
        hits=0.0, false_alarms=0.0, rows=pl.lit(0, pl.Int64), added=True
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
            between 0 and 1, `"count"` for bins of equal weight in each outer group.

    Returns:
        A tidy frame: outer keys, `.level` with more than two labels, `.bin` (from 1), `.mean_score`, `.event_rate`,
        `.n`, the rows of the bin, and with `case_weights` their `.weight`. Empty bins are left out.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1, 0, 1, 0], "p": [0.9, 0.4, 0.9, 0.1]})
    >>> calibration_curve(seen, "y", probs="p", bins=2).rows()
    [(1, 0.25, 0.0, 2), (2, 0.9, 1.0, 2)]
    """
    given = cast("dict[str, Any]", options)
    weighted = given.get("case_weights") is not None
    bins, binning = given.pop("bins", 10), given.pop("binning", "width")
    check_bins("calibration_curve", bins, binning)
    points, _, with_keys = _points("calibration_curve", data, truth, given)
    low, high = points["score"].min(), points["score"].max()
    if binning == "width" and isinstance(low, float) and isinstance(high, float) and (low < 0 or high > 1):
        msg = f'`probs`: scores from {low:g} to {high:g} are not probabilities; use binning="count".'
        raise ArgumentError(msg)
    weight, score = pl.col("hits") + pl.col("false_alarms"), pl.col("score")
    share = score if binning == "width" else weight.cum_sum(reverse=True).over(_CURVE) / weight.sum().over(_CURVE)
    number = bin_of(share, bins, binning).cast(pl.Int64) + 1
    weights = [weight.sum().alias(".weight")] if weighted else []
    binned = (
        points.with_columns(number.alias(".bin"))
        .group_by(*_CURVE, ".bin")
        .agg(
            ((score * weight).sum() / weight.sum()).alias(".mean_score"),
            (pl.col("hits").sum() / weight.sum()).alias(".event_rate"),
            pl.col("rows").sum().alias(".n"),
            *weights,
        )
    )
    return with_keys(binned.sort(*_CURVE, ".bin"), restored=True)


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
    labels = labels_with_scores(tally, labels=reading["labels"], pos_label=reading["pos_label"], estimator=None)
    group_cells, _ = number_group_cells(tally, labels, [None])
    rows = rows_of(tally, labels, group_cells, None, frozenset({"truth", "probs"}))
    floats = dict.fromkeys(["score", "hits", "false_alarms"], pl.Float64())
    schema = {"group_cell": pl.Int64(), **floats, "rows": pl.Int64(), "level": pl.Int64()}
    # the empty part gives the columns where no row has a score
    parts = [pl.DataFrame(schema=schema)]
    for level, score in scores_of_levels(tally, labels).items():
        index = pl.lit(level, pl.Int64).alias("level")
        parts += [part.with_columns(index) for part in sorted_scores(rows, Level(level, score))]
    points = pl.concat(parts).sort(_CURVE, maintain_order=True)
    curves = pl.DataFrame({"group_cell": range(len(group_cells.outer))}, schema={"group_cell": pl.Int64})
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
    own = ("bins", "binning") if name == "calibration_curve" else ("on_undefined", "thresholds")
    counting = ("probs", "group_by", "case_weights")
    for option in given:
        if option not in counting:
            kind = f"argument of {name}"
            raise ArgumentError.unknown_keyword(kind, option, ["data", "truth", *counting, *reading, *own])
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
        thresholds: Thresholds of the scores, by default 0 to 1 in steps of 0.01.

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
    if thresholds is None:
        thresholds = [step / _STEPS for step in range(_STEPS + 1)]
    elif not is_list(thresholds):
        msg = f"threshold_curve() takes a list of thresholds, not {in_short(thresholds)}."
        raise ArgumentError(msg)
    return ThresholdCurve(metrics if isinstance(metrics, MetricSet) else metric_set(metrics), tuple(thresholds))
