"""The usual metrics for the kind of the truth: labels, labels with scores, or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack, overload

import polars as pl

from tidyfair.calling import metric_set
from tidyfair.errors import ArgumentError, ColumnError, listed
from tidyfair.metrics.classification import accuracy, kap
from tidyfair.metrics.probability import mn_log_loss, roc_auc
from tidyfair.metrics.regression import mae, rmse, rsq
from tidyfair.specs import (
    CUT_OPTIONS,
    CallOptions,
    Column,
    ColumnLike,
    Frame,
    PredictionInterval,
    Survival,
    refuse_unknown_keywords,
    telling,
)
from tidyfair.tallies import PolarsFrame, Source, open_frame

__all__ = ["default_metrics"]

_OF_LABELS, _OF_SCORES, _OF_NUMBERS = (
    metric_set(accuracy, kap),
    metric_set(mn_log_loss, roc_auc),
    metric_set(rmse, rsq, mae),
)
_PAIRS = ({0, 1}, {-1, 1}, {0}, {1}, {-1})
_MOST = 2
_MANY = 10
"""Values of an estimate that a truth of two labels lacks, beyond which they are scores."""


@overload
def default_metrics(
    data: PolarsFrame, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> pl.DataFrame: ...
@overload
def default_metrics(
    data: object, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> Frame: ...
@refuse_unknown_keywords
def default_metrics(
    data: object, truth: ColumnLike, estimate: ColumnLike | None = None, **options: Unpack[CallOptions]
) -> Frame:
    """Evaluate the usual metrics for the kind of the truth.

    Labels: accuracy and kap, and with `probs` mn_log_loss and roc_auc. Numbers: rmse, rsq and mae. Arguments and result
    are those of a metric set.

    Raises:
        ArgumentError: For whole numbers of more than two values, which may be labels or a measurement: list `labels=`,
            or use `metric_set(rmse, rsq, mae)`.
        ColumnError: For scores given as `estimate`, which belong to `probs`.

    >>> import polars as pl
    >>> seen = pl.DataFrame({"y": [1.5, 2.0, 4.0], "guess": [1.0, 2.5, 4.0]})
    >>> default_metrics(seen, "y", "guess")[".metric"].to_list()
    ['rmse', 'rsq', 'mae']
    """
    refuse_forecasts(truth, estimate)
    source = open_frame(data, options.get("group_by"))
    scored = options.get("probs") is not None
    if estimate is None and not scored:
        msg = (
            "default_metrics() needs predictions: labels or numbers as `estimate`, the third argument, or scores as "
            "`probs=`."
        )
        raise ColumnError(msg)
    if scored:
        cut = any(options.get(name) is not None for name in CUT_OPTIONS)
        chosen = metric_set(_OF_LABELS, _OF_SCORES) if estimate is not None or cut else _OF_SCORES
    else:
        chosen = _OF_NUMBERS if are_numbers(source, truth, estimate, options) else _OF_LABELS
    return chosen(data, truth, estimate, **options)


def refuse_forecasts(truth: object, estimate: object) -> None:
    """Refuse survival times, intervals and quantiles, which have no usual metrics."""
    if isinstance(truth, Survival):
        content, example = "survival times", "concordance_survival"
    elif isinstance(estimate, PredictionInterval):
        content, example = "intervals", "interval_coverage"
    elif isinstance(estimate, Mapping):
        content, example = "quantiles", "weighted_interval_score"
    else:
        return
    msg = (
        f"The usual metrics are of labels, scores and numbers, not of {content}; ask for metrics such as `{example}`, "
        "which a report takes as `metrics=`."
    )
    raise ColumnError(msg)


def are_numbers(source: Source, truth: ColumnLike, estimate: ColumnLike | None, options: Mapping[str, Any]) -> bool:
    """True for predictions of a measurement, if this follows from the call and the columns.

    Raises:
        ArgumentError: For whole numbers that may be labels or a measurement.
        ColumnError: For scores given as `estimate`.
    """
    if options.get("labels") is not None or options.get("pos_label") is not None:
        return False
    columns = {"truth": Column.of(truth, "truth")}
    if estimate is not None:
        columns["estimate"] = Column.of(estimate, "estimate")
    summaries = _summaries(source, columns)
    if summaries is None:
        return False
    if "estimate" in summaries:
        _check_no_scores(summaries["truth"], summaries["estimate"])
    if any(summary.fractions for summary in summaries.values()):
        return True
    of_truth = summaries["truth"]
    if of_truth.values in _PAIRS or not of_truth.values:
        return False
    msg = (
        f"`truth`: the column {of_truth.name!r} holds whole numbers, which may be labels or a measurement; list "
        "labels as `labels=`, or use metrics of numbers, such as `metric_set(rmse, rsq, mae)`."
    )
    raise ArgumentError(msg)


@dataclass(frozen=True)
class _NumericSummary:
    """Properties of a numeric column that distinguish labels, scores and measurements."""

    name: str
    fractions: bool
    """True if some are fractional."""
    shares: bool
    """True if all are from 0 to 1."""
    values: set[float]
    """Some distinct values; all of them if they are few."""


@telling("looked at the truth")
def _summaries(source: Source, columns: Mapping[str, Column]) -> dict[str, _NumericSummary] | None:
    """Summaries of the columns by their roles; None where a column is not numeric."""
    frame = source.select({role: (role, column) for role, column in columns.items()})
    if not all(dtype.is_numeric() for dtype in frame.collect_schema().values()):
        return None
    facts = list[pl.Expr]()
    for role in columns:
        values = pl.col(role).drop_nulls()
        fractions = (values != values.round(0)).any()
        few = values.unique().head(_MOST + _MANY + 1).implode()
        facts.append(pl.struct(fractions=fractions, shares=values.is_between(0, 1).all(), values=few).alias(role))
    row = frame.select(facts).collect().row(0, named=True)
    summaries: dict[str, _NumericSummary] = {}
    for role, column in columns.items():
        own = row[role]
        summaries[role] = _NumericSummary(column.name, own["fractions"], own["shares"], set(own["values"]))
    return summaries


def _check_no_scores(truth: _NumericSummary, estimate: _NumericSummary) -> None:
    """Refuse scores given as `estimate`, which would be compared with labels as numbers."""
    if truth.fractions:
        if truth.shares and estimate.values == {0, 1}:
            msg = (
                f"`truth`: the column {truth.name!r} holds fractions, and the estimate {estimate.name!r} only 0 and "
                "1: are they swapped? If both are measurements, use metrics of numbers, such as `metric_set(rmse, "
                "rsq, mae)`, or `--read-as numbers` on the command line."
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
            f"{listed(sorted(truth.values))}; give the scores as `probs=`, with `threshold=` or with the predicted "
            "labels as `estimate`. If both are measurements, use metrics of numbers, such as `metric_set(rmse, rsq, "
            "mae)`, or `--read-as numbers` on the command line."
        )
        raise ColumnError(msg)
