"""Sets ready to use: the usual metrics for the kind of the truth, and disparities along the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.classification import accuracy, kap
from tidyfair.metrics.probability import mn_log_loss, roc_auc
from tidyfair.metrics.regression import mae, rmse, rsq
from tidyfair.specs.arguments import is_list
from tidyfair.specs.columns import Column, telling
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

    from tidyfair.specs.columns import ColumnLike
    from tidyfair.specs.options import CallOptions
    from tidyfair.tallies.source import PolarsFrame, Source

__all__ = ["ThresholdCurve", "default_metrics", "threshold_curve"]

_OF_LABELS, _OF_SCORES, _OF_NUMBERS = (
    metric_set(accuracy, kap),
    metric_set(mn_log_loss, roc_auc),
    metric_set(rmse, rsq, mae),
)
_PAIRS = ({0, 1}, {-1, 1}, {0}, {1}, {-1})
_MOST = 2
_MANY = 10
"""Values of an estimate that a truth of two labels lacks, beyond which they are scores."""
_STEPS = 100


@overload
def default_metrics(
    data: PolarsFrame, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> pl.DataFrame: ...
@overload
def default_metrics(
    data: object, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> Any: ...
def default_metrics(
    data: object, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> Any:
    """Evaluate the usual metrics for the kind of the truth.

    Labels: accuracy and kap, and with `probs` mn_log_loss and roc_auc. Numbers: rmse, rsq and mae. Takes what a metric
    takes, and answers as a metric set does.

    Raises:
        ArgumentError: For whole numbers of more than two values, which may be labels or a measurement: list `labels=`,
            or take `metric_set(rmse, rsq, mae)`.
        ColumnError: For scores given as `estimate`, which belong to `probs`.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1.5, 2.0, 4.0], "guess": [1.0, 2.5, 4.0]})
    >>> default_metrics(seen, "y", "guess")[".metric"].to_list()
    ['rmse', 'rsq', 'mae']
    """
    source = open_frame(data, options.get("group_by"))
    scored = options.get("probs") is not None
    if not scored and are_numbers(source, truth, estimate, options):
        return _OF_NUMBERS(data, truth, estimate, **options)
    decided = estimate is not None or any(
        options.get(way) is not None for way in ("threshold", "top_k", "top_fraction")
    )
    if not scored:
        return _OF_LABELS(data, truth, estimate, **options)
    chosen = metric_set(_OF_LABELS, _OF_SCORES) if decided else _OF_SCORES
    return chosen(data, truth, estimate, **options)


def are_numbers(source: Source, truth: ColumnLike, estimate: ColumnLike | None, options: Mapping[str, Any]) -> bool:
    """Whether predictions are a measurement, where the call and the columns leave no doubt.

    Raises:
        ArgumentError: For whole numbers that may be labels or a measurement.
        ColumnError: For scores in the place of predictions.
    """
    if options.get("labels") is not None or options.get("pos_label") is not None:
        return False
    named = {"truth": truth} if estimate is None else {"truth": truth, "estimate": estimate}
    seen = _seen(source, {role: Column.of(column, role) for role, column in named.items()})
    if seen is None:
        return False
    if "estimate" in seen:
        _check_no_scores(seen["truth"], seen["estimate"])
    if any(numbers.fractions for numbers in seen.values()):
        return True
    observed = seen["truth"]
    if observed.values in _PAIRS or not observed.values:
        return False
    msg = (
        f"`truth`: the column {observed.name!r} holds whole numbers, which may be labels or a measurement: "
        "list the labels as `labels=`, or name metrics of numbers, such as `metric_set(rmse, rsq, mae)`."
    )
    raise ArgumentError(msg)


@dataclass(frozen=True)
class _Numbers:
    """A column of numbers, as far as it tells labels, scores and measurements from each other."""

    name: str
    fractions: bool
    """Whether some are not whole."""
    shares: bool
    """Whether all are from 0 to 1."""
    values: set[float]
    """Some that occur; all of them where they are few."""


@telling("looked at the truth")
def _seen(source: Source, columns: Mapping[str, Column]) -> dict[str, _Numbers] | None:
    """The columns as numbers, by their roles; None where one is of another kind."""
    frame = source.select({role: (role, column) for role, column in columns.items()})
    if not all(dtype.is_numeric() for dtype in frame.collect_schema().values()):
        return None
    facts = list[pl.Expr]()
    for role in columns:
        known = pl.col(role).drop_nulls()
        fractions, shares = (known != known.round(0)).any(), known.is_between(0, 1).all()
        few = known.unique().head(_MOST + _MANY + 1).implode()
        facts.append(pl.struct(fractions=fractions, shares=shares, values=few).alias(role))
    found = frame.select(facts).collect().row(0, named=True)
    return {
        role: _Numbers(column.name, found[role]["fractions"], found[role]["shares"], set(found[role]["values"]))
        for role, column in columns.items()
    }


def _check_no_scores(truth: _Numbers, estimate: _Numbers) -> None:
    """Refuse scores in the place of predictions: errors of numbers would be taken between them and labels."""
    if truth.fractions:
        if truth.shares and estimate.values == {0, 1}:
            msg = (
                f"`truth`: the column {truth.name!r} holds fractions, and the estimate {estimate.name!r} only 0 and 1: "
                "are they swapped? If both are a measurement, name metrics of numbers, such as "
                "`metric_set(rmse, rsq, mae)`, or say `--read-as numbers` on the command line."
            )
            raise ColumnError(msg)
        return
    binary = truth.values in _PAIRS
    if estimate.fractions:
        scores = binary or (len(truth.values) == _MOST and estimate.shares)
    else:
        scores = binary and len(estimate.values - truth.values) > _MANY
    if scores:
        msg = (
            f"`estimate`: the column {estimate.name!r} holds scores, and the truth {truth.name!r} the labels "
            f"{listed(sorted(truth.values))}: give the scores as `probs=`, with `threshold=` or with the predicted "
            "labels as `estimate`. If both are a measurement, name metrics of numbers, such as "
            "`metric_set(rmse, rsq, mae)`, or say `--read-as numbers` on the command line."
        )
        raise ColumnError(msg)


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
    def __call__(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Any: ...
    def __call__(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Any:
        """Evaluate at every threshold in one pass; takes what a metric takes but `estimate` and `threshold`."""
        return self.metrics(data, truth, **self._cut(options))

    def by_group(self, data: object, truth: ColumnLike | None = None, **options: Unpack[CallOptions]) -> Any:
        """The values of groups at every threshold, as `by_group` of the metrics gives them."""
        return self.metrics.by_group(data, truth, **self._cut(options))

    def _cut(self, options: CallOptions) -> CallOptions:
        if "threshold" in options:
            msg = (
                "The thresholds of a threshold curve are given when it is made: `threshold_curve(metric, [0.1, 0.2])`."
            )
            raise ArgumentError(msg)
        return {**options, "threshold": self.thresholds}

    def __repr__(self) -> str:
        return f"<threshold curve at {len(self.thresholds)} thresholds of {self.metrics!r}>"


def threshold_curve(
    metrics: Metric | GroupwiseMetric | MetricSet, thresholds: Iterable[float] | None = None
) -> ThresholdCurve:
    """Metrics and disparities as functions of the threshold.

    Args:
        metrics: A metric of labels, or a set; metrics of scores in it have null as their `.threshold`.
        thresholds: Where to cut the scores; 0 to 1 in steps of 0.01 where left out.

    >>> import polars as pl
    >>> from tidyfair import demographic_parity
    >>> seen = pl.DataFrame({"p": [0.2, 0.6, 0.4, 0.9], "sex": ["f", "f", "m", "m"]})
    >>> parity = threshold_curve(demographic_parity("sex"), [0.3, 0.5, 0.7])
    >>> parity(seen, probs="p", pos_label=1)[".estimate"].to_list()
    [0.5, 0.0, 0.5]
    """
    if isinstance(metrics, GroupwiseFactory) or not isinstance(metrics, Metric | GroupwiseMetric | MetricSet):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"threshold_curve() takes a metric or a metric set, not {metrics!r}."
        raise ArgumentError(msg)
    if thresholds is not None and not is_list(thresholds):
        msg = f"threshold_curve() takes a list of thresholds, not {thresholds!r}."
        raise ArgumentError(msg)
    chosen = [step / _STEPS for step in range(_STEPS + 1)] if thresholds is None else list(thresholds)
    return ThresholdCurve(metrics if isinstance(metrics, MetricSet) else metric_set(metrics), tuple(chosen))
