"""Metrics as scikit-learn's scorers: callables of an estimator, its data and the truth, of which more is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from tidyfair.columns import Column
from tidyfair.definitions import new_class_metric
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.fairness import demographic_parity_ratio, equal_opportunity_ratio, explained_by_groups
from tidyfair.frames import open_frame
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, Metric
from tidyfair.metrics.regression import rsq

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidyfair.columns import ColumnLike
    from tidyfair.groups import Privileged

__all__ = [
    "CorrelationScorer",
    "FairnessScorer",
    "SubsetScorer",
    "correlation_score",
    "equal_opportunity_score",
    "make_scorer",
    "p_percent_score",
    "subset_score",
]

_TRUTH, _PREDICTED, _WEIGHT = "y", "prediction", "sample_weight"


def _goodness(value: float | None, direction: str) -> float:
    """A value such that more is better: how near it is to where it should be."""
    if value is None:
        return math.nan
    if direction == "one":
        return min(value, 1 / value) if value > 0 else 0.0
    return {"maximize": value, "minimize": 0.0 - value, "zero": 0.0 - abs(value)}[direction]


@dataclass(frozen=True)
class FairnessScorer:
    """A metric as a scorer; made by `make_scorer` and its like."""

    metric: Metric | GroupwiseMetric
    places: tuple[int, ...] = ()
    """Which columns of an array the groups are, instead of named columns of a frame."""
    options: tuple[tuple[str, Any], ...] = ()
    response: Literal["labels", "scores"] = "labels"

    def __call__(self, estimator: Any, X: Any, y_true: Any = None, sample_weight: Any = None) -> float:  # noqa: N803 - scikit-learn's
        """How good the predictions for X are: more is better; NaN where there is no value."""
        scores = self.response == "scores"
        predicted = estimator.predict_proba(X)[:, 1] if scores else estimator.predict(X)
        return self._score(self._features(X), y_true, predicted, sample_weight)

    def routed(self, y_true: Any, predicted: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
        """The same of predictions and features beside them: a metric function for scikit-learn's `make_scorer`."""
        return self._score(self._features(sensitive_features), y_true, predicted, sample_weight)

    def _score(self, features: pl.DataFrame, y_true: Any, predicted: Any, weight: Any) -> float:
        named = {_TRUTH: y_true, _PREDICTED: predicted, _WEIGHT: weight}
        there = {name: _series(name, values) for name, values in named.items() if values is not None}
        if clash := [name for name in there if name in features.columns]:
            msg = f"A scorer adds a column {clash[0]!r}, and there is one; rename yours."
            raise ColumnError(msg)
        options: dict[str, Any] = {
            "truth": _TRUTH if _TRUTH in there else None, "case_weights": _WEIGHT if _WEIGHT in there else None,
            "probs" if self.response == "scores" else "estimate": _PREDICTED, "on_undefined": "ignore",
            **dict(self.options),
        }  # fmt: skip
        frame = pl.DataFrame([*features.get_columns(), *there.values()])
        value: float | None = self.metric(frame, **options)[".estimate"].item()
        return _goodness(value, self.metric.direction)

    def _features(self, data: Any) -> pl.DataFrame:
        """The columns that groups are made of, from a frame by their names, from an array by their places."""
        if not isinstance(self.metric, GroupwiseMetric):
            return pl.DataFrame()
        if self.places:
            array = _plain(data)
            return pl.DataFrame({_name(place): array[:, place] for place in self.places})
        roots = dict.fromkeys(root for column in self.metric.by.columns for root in column.roots)
        one = getattr(data, "name", None)
        if len(roots) == 1 and one in roots and not hasattr(data, "columns"):
            return pl.DataFrame([_series(str(one), data)])
        wanted = {root: ("by", Column(root)) for root in roots}
        return open_frame(data).select(wanted).collect()


def _name(place: int) -> str:
    return f"x{place}"


def _plain(data: Any) -> Any:
    import numpy as np

    return np.asarray(data)


def _series(name: str, values: Any) -> pl.Series:
    return values.alias(name) if isinstance(values, pl.Series) else pl.Series(name, _plain(values))


def make_scorer(
    metric: Metric | GroupwiseMetric | GroupwiseFactory,
    by: ColumnLike | int | Privileged | None = None,
    *,
    response: Literal["labels", "scores"] = "labels",
    **options: Any,
) -> FairnessScorer:
    """Make a scorer for `cross_validate` and `GridSearchCV`: `scorer(estimator, X, y)`, of which more is better.

    Differences count as minus their distance from 0, signed ratios as the smaller of q and 1/q.

    Args:
        metric: A metric, a groupwise metric, or a factory with `by`.
        by: The sensitive feature: a column of X, or its place if X is an array.
        response: What is scored: predicted `"labels"`, or the `"scores"` of the second class by `predict_proba`.
        options: Those of a call, such as `pos_label` or `threshold`.

    Returns:
        A scorer that pickles as its metric does. `scorer.routed` is the same as a function of truth, prediction and
        `sensitive_features=`, for scikit-learn's own `make_scorer` and metadata routing.

    >>> from tidyfair import equalized_odds_difference
    >>> make_scorer(equalized_odds_difference, by="sex").metric
    <groupwise metric equalized_odds_difference('sex'): difference(to='range') of sens, fall_out, minimize>
    """
    if response not in ("labels", "scores"):
        raise ArgumentError.unknown("response", response, ["labels", "scores"])
    given: object = metric
    places = (by,) if isinstance(by, int) and not isinstance(by, bool) else ()
    if isinstance(given, GroupwiseFactory):
        if by is None:
            msg = f'make_scorer(): {given.name} compares groups: give the sensitive feature, `by="column"`.'
            raise ArgumentError(msg)
        given = given(_name(places[0]) if places else cast("ColumnLike | Privileged", by))
    elif by is not None:
        msg = "make_scorer(): `by` goes with a factory such as demographic_parity_ratio; other metrics have their own."
        raise ArgumentError(msg)
    if not isinstance(given, Metric | GroupwiseMetric):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"make_scorer() takes a metric, or a factory and `by=`, not {metric!r}."
        raise ArgumentError(msg)
    return FairnessScorer(given, places, tuple(options.items()), response)


def p_percent_score(sensitive_column: ColumnLike | int, positive_target: object = 1) -> FairnessScorer:
    """Scorer: the smallest over the largest selection rate of any groups (the 80 % rule asks for 0.8).

    >>> p_percent_score("sex").metric.name
    'demographic_parity_ratio'
    """
    return make_scorer(demographic_parity_ratio, sensitive_column, pos_label=positive_target)


def equal_opportunity_score(sensitive_column: ColumnLike | int, positive_target: object = 1) -> FairnessScorer:
    """Scorer: the smallest over the largest true positive rate of any groups.

    >>> equal_opportunity_score("sex").metric.name
    'equal_opportunity_ratio'
    """
    return make_scorer(equal_opportunity_ratio, sensitive_column, pos_label=positive_target)


class CorrelationScorer(FairnessScorer):
    """Correlation of predictions with a feature as a scorer; made by `correlation_score`."""

    def _score(self, features: pl.DataFrame, y_true: Any, predicted: Any, weight: Any) -> float:
        del y_true  # how far predictions depend on a feature, whatever is true
        name = features.columns[0]
        if not features.schema[name].is_float():
            return -math.sqrt(-super()._score(features, None, predicted, weight))
        explained = FairnessScorer(rsq).routed(features[name], predicted, sensitive_features=None, sample_weight=weight)
        return -math.sqrt(explained)


def correlation_score(column: ColumnLike | int) -> FairnessScorer:
    """Scorer: minus the correlation ratio of predicted numbers and groups; of two groups minus |Pearson's r|.

    It is the root of `explained_by_groups`, and needs no order of groups. Floats are a measurement, and it is minus
    |Pearson's r| of them; whole numbers, text and Booleans are groups.

    >>> correlation_score("sex").metric.name
    'explained_by_groups'
    """
    made = make_scorer(explained_by_groups, column)
    return CorrelationScorer(made.metric, made.places)


@dataclass(frozen=True)
class SubsetScorer:
    """A metric of some of the rows as a scorer; made by `subset_score`."""

    subset: Callable[[Any], Any]
    scorer: FairnessScorer

    def __call__(self, estimator: Any, X: Any, y_true: Any = None) -> float:  # noqa: N803 - scikit-learn's
        """The metric of the rows of X that the subset picks; NaN if there are none."""
        mask = _plain(self.subset(X))
        if mask.ndim != 1 or mask.dtype != bool:
            msg = f"subset_score(): the subset is one truth value for each row, not an array of shape {mask.shape}."
            raise ArgumentError(msg)
        if not mask.any():
            return math.nan
        predicted, truth = _plain(estimator.predict(X))[mask], _plain(y_true)[mask]
        return self.scorer.routed(truth, predicted, sensitive_features=None)


def subset_score(
    subset_picker: Callable[[Any], Any], score: Metric | Callable[..., float], **kwargs: Any
) -> SubsetScorer:
    """Scorer: a metric of the rows that a function of X picks.

    Args:
        subset_picker: A function of X that gives a truth value for each row.
        score: A metric, or a function of truth and prediction such as scikit-learn's.
        kwargs: Arguments of that function, or options of a call of the metric.

    >>> from tidyfair import accuracy
    >>> subset_score(lambda people: people["sex"] == "f", accuracy).scorer.metric.name
    'accuracy'
    """
    if isinstance(score, Metric):
        return SubsetScorer(subset_picker, make_scorer(score, **kwargs))
    made = new_class_metric(partial(score, **kwargs), getattr(score, "__name__", "score"), over_levels=True)
    return SubsetScorer(subset_picker, make_scorer(made))
