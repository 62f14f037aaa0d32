"""Metrics as scikit-learn scorers: callables of an estimator, its data and the truth, where greater is better."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import numpy as np
import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric
from tidyfair.errors import ArgumentError, ColumnError, UndefinedWarning, in_short, listed, warn, with_article
from tidyfair.escapes import visible
from tidyfair.metrics.fairness import demographic_parity_ratio, equal_opportunity_ratio, explained_by_groups
from tidyfair.metrics.regression import rsq
from tidyfair.specs import Column, ColumnLike, Privileged, flag, formulas_of, one_of, refuse_unknown_settings
from tidyfair.specs.formulas import CONTENT, SEVERAL_COLUMNS
from tidyfair.tallies import Cut, from_arrays, open_frame

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

Features: TypeAlias = "ColumnLike | int | Sequence[ColumnLike | int]"
"""Columns of X, by their names or by numbers."""

_TRUTH, _PREDICTED, _WEIGHT = "y", "prediction", "sample_weight"
_MOST_CODES = 10
"""More distinct whole numbers than this may be a measurement or codes of groups, so the user must decide."""
_REFUSED = ("probs", "group_by", "case_weights", "frequency_weights", "cluster", "explain")
"""Options of a call that a scorer does not accept, or sets itself."""
_ONLY_IN_ARRAYS = " A number is a position only in an array; in a frame it is a label."


def _warn_of_nan(why: str) -> None:
    """Warn that a score is NaN, with the reason."""
    warn(f"{why}, so the score is NaN.", UndefinedWarning)


@dataclass(frozen=True, repr=False)
class Scorer(ABC):
    """A scorer, and the metadata that it requests from scikit-learn."""

    requests: dict[str, bool | str | None] = field(
        default_factory=dict[str, "bool | str | None"], hash=False, kw_only=True, repr=False
    )

    @property
    @abstractmethod
    def call(self) -> str:
        """The call that makes the scorer, for messages."""

    @property
    @abstractmethod
    def metadata(self) -> list[str]:
        """The arguments beside the estimator, X and the truth."""

    def __repr__(self) -> str:
        """The call that makes the scorer, as the displays of estimators show it."""
        return visible(self.call)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Request metadata routing, as for scikit-learn's own scorers.

        Args:
            requests: For `sample_weight` and, if groups are compared, `sensitive_features`: True to request them; False
                to score without them; another name under which they are passed; or None, for an error if they are
                passed.

        Returns:
            The scorer itself.

        Raises:
            ArgumentError: For other metadata or answers, or if routing is not enabled.
        """
        from sklearn import get_config  # noqa: PLC0415 - whoever routes has it  # pyright: ignore[reportMissingTypeStubs]

        if not get_config()["enable_metadata_routing"]:
            msg = (
                "set_score_request() has no effect, because metadata routing is off; first call "
                "`sklearn.set_config(enable_metadata_routing=True)`."
            )
            raise ArgumentError(msg)
        for name, answer in requests.items():
            if name not in self.metadata:
                raise ArgumentError.unknown("metadata", name, self.metadata)
            named = isinstance(answer, str) and answer.isidentifier()
            if answer is not None and not isinstance(answer, bool) and not named:
                msg = f"set_score_request(): `{name}` is True, False, None or another name, not {in_short(answer)}."
                raise ArgumentError(msg)
        self.requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """The `MetadataRequest` that scikit-learn uses to route metadata."""
        from sklearn.utils.metadata_routing import MetadataRequest  # noqa: PLC0415 - whoever routes has it  # pyright: ignore[reportMissingTypeStubs]

        routing: Any = MetadataRequest(owner=self.call)
        for name in self.metadata:
            routing.score.add_request(param=name, alias=self.requests.get(name))
        return routing

    def _accept_sample_weight(self) -> bool:
        """Tells scikit-learn's searches, without metadata routing, that `sample_weight` is accepted."""
        return "sample_weight" in self.metadata


@dataclass(frozen=True, repr=False)
class FairnessScorer(Scorer):
    """A metric as a scorer; made by `make_scorer` and similar functions."""

    metric: Metric | GroupwiseMetric
    numbers: tuple[tuple[str, int], ...] = ()
    """Columns of the metric that stand for a number: a label of a frame, or a position in an array."""
    options: tuple[tuple[str, Any], ...] = ()
    response: Literal["labels", "scores"] = "labels"

    @property
    def call(self) -> str:
        """The call that makes the scorer, for messages."""
        metric = self.metric
        made_of = [f"{metric.name}({metric.by!r})" if metric.by else metric.name]
        made_of += [f"{name}={value!r}" for name, value in self.options]
        return f"make_scorer({', '.join(made_of)})"

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - of all objects
        """The name of the metric, under which skore lists the scorer."""
        return self.metric.name

    @property
    def metadata(self) -> list[str]:
        """The arguments beside the estimator, X and the truth."""
        if self._source_columns:
            return ["sample_weight", "sensitive_features"]
        return ["sample_weight"]

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803 - scikit-learn's
        y_true: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
    ) -> float:
        """Score the predictions for X: greater is better; NaN without a value.

        Args:
            estimator: A fitted estimator.
            X: The data that it predicts from, with the columns of the groups.
            y_true: The truth.
            sample_weight: Case weights.
            sensitive_features: The columns of the groups, if these are not in X.
        """
        features = self.features(X if sensitive_features is None else sensitive_features)
        return self.score(features, y_true, self.predicted(estimator, X), sample_weight)

    def routed(self, y_true: Any, y_pred: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> float:
        """Score given predictions: a metric function for scikit-learn's `make_scorer`."""
        if sensitive_features is None and self._source_columns:
            msg = f"{self.metric.name} compares groups; give their columns as `sensitive_features=`."
            raise ArgumentError(msg)
        if self.response == "scores":
            y_pred = self._scores_by_class(y_true, y_pred)
        return self.score(self.features(sensitive_features), y_true, y_pred, sample_weight)

    # A scorer that tries thresholds is made by scikit-learn from the parts of another one: its function of truth and
    # prediction, its sign and the arguments of the function.
    _sign: ClassVar[int] = 1

    @property
    def _score_func(self) -> Callable[..., float]:
        return self._score_of_labels

    @property
    def _kwargs(self) -> dict[str, Any]:
        return {name: value for name, value in self.options if name == "pos_label"}

    def _score_of_labels(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        pos_label: Any = None,  # noqa: ARG002 - scikit-learn reads it; the metric has it already
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Score the labels of a threshold, for `TunedThresholdClassifierCV`."""
        if self.response != "labels":
            msg = f"{self.call} reads scores, which are the same at all thresholds; tune by a metric of labels."
            raise ArgumentError(msg)
        if sensitive_features is None and self._source_columns:
            msg = (
                f"{self.metric.name} compares groups, and TunedThresholdClassifierCV shows no X to its scorer: call "
                "`sklearn.set_config(enable_metadata_routing=True)`, `scorer.set_score_request("
                f"sensitive_features=True)` and `.fit(X, y, sensitive_features=X[{self._source_columns!r}])`; or "
                "search over the `threshold` of a FixedThresholdClassifier by GridSearchCV, whose scorers read the "
                "columns of X."
            )
            raise ArgumentError(msg)
        return self.routed(y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)

    def _scores_by_class(self, y_true: Any, y_pred: Any) -> Any:
        """Given scores: of the event as they are, or of all classes in sorted order."""
        scores = np.asarray(y_pred)
        if scores.ndim == 1:
            return y_pred
        classes = np.unique(dict(self.options).get("labels", y_true)).tolist()
        if len(classes) != scores.shape[1]:
            msg = (
                f"{self.metric.name}: the scores have {scores.shape[1]} classes, but the truth has {len(classes)}; "
                "list all classes with `make_scorer(…, labels=[…])`."
            )
            raise ArgumentError(msg)
        return dict(zip(classes, scores.T, strict=True))

    def score(self, features: Mapping[str, Any], y_true: Any, predicted: Any, weight: Any, subset: Any = None) -> float:
        """Score predictions beside features, truth and weights, of all rows or those that a mask selects."""
        role = "estimate" if self.response == "labels" else "probs"
        arguments: dict[str, Any] = {role: _PREDICTED}
        predictions: dict[str, Any] = {_PREDICTED: predicted}
        if isinstance(predicted, dict):
            scores = cast("dict[object, Any]", predicted)
            arguments[role] = {label: f"{_PREDICTED} {index}" for index, label in enumerate(scores)}
            predictions = dict(zip(arguments[role].values(), scores.values(), strict=True))
        added = {_TRUTH: y_true, **predictions, _WEIGHT: weight}
        added = {name: values for name, values in added.items() if values is not None}
        for name in added:
            if name in features:
                msg = f"A scorer adds a column {name!r}, which X already has; rename the column of X."
                raise ColumnError(msg)
        columns = {**features, **added}
        arguments["truth"] = _TRUTH if _TRUTH in columns else None
        arguments["case_weights"] = _WEIGHT if _WEIGHT in columns else None
        frame = from_arrays({name: _text_from_pandas(name, values) for name, values in columns.items()})
        if subset is not None:
            frame = frame.filter(pl.Series(subset))
        value, direction = self._value(frame, arguments), self.metric.direction
        if value is None:
            return math.nan
        if direction == "one":
            return min(value, 1 / value) if value > 0 else 0.0
        if direction == "zero":
            return 0.0 - abs(value)
        return 0.0 - value if direction == "minimize" else value

    def _value(self, frame: pl.DataFrame, arguments: dict[str, Any]) -> float | None:
        """The value of the metric, with a warning if there is none."""
        options = dict(self.options)
        value: float | None = self.metric(frame, **options, **arguments).get_column(".estimate").item()
        if value is None and options.get("on_undefined") != "ignore":
            _warn_of_nan(f"{self.metric.name} has no value for these rows")
        return value

    def predicted(self, estimator: Any, X: Any) -> Any:  # noqa: N803 - scikit-learn's
        """Predictions of an estimator: labels, scores of the event, or a mapping from all classes to their scores."""
        if self.response == "labels":
            return estimator.predict(X)
        kind = type(estimator).__name__
        for name in ("predict_proba", "classes_"):
            if not hasattr(estimator, name):
                msg = f"{self.metric.name} reads scores of classes, but {with_article(kind)} has no `{name}`."
                raise ArgumentError(msg)
        scores, classes = np.asarray(estimator.predict_proba(X)), np.asarray(estimator.classes_).tolist()
        if scores.ndim != 2 or scores.shape[1] != len(classes):
            msg = (
                f"`predict_proba` of {with_article(kind)} gives an array of shape {scores.shape}; a scorer needs a "
                f"column for each of its classes, {listed(classes)}."
            )
            raise ColumnError(msg)
        usual_event = classes[-1] if len(classes) == 2 else None
        event = dict(self.options).get("pos_label", usual_event)
        if event is None:
            return dict(zip(classes, scores.T, strict=True))
        if event not in classes:
            msg = f"`pos_label`: {event!r} is not among the classes of the estimator, {listed(classes)}."
            raise ArgumentError(msg)
        return scores[:, classes.index(event)]

    @cached_property
    def _source_columns(self) -> list[str]:
        """The columns of the data that are read in addition to truth and predictions."""
        cut = Cut.of(dict(self.options), {"probs"})
        columns = [*(self.metric.by.columns if self.metric.by else ()), *(cut.by if cut else ())]
        for formula in formulas_of(self.metric):
            for term in formula.all_terms:
                columns += term.compared_by
        return list(dict.fromkeys(root for column in columns for root in column.roots))

    def features(self, data: Any) -> dict[str, Any]:
        """The columns of the groups: from a frame by their names, from an array by their positions."""
        names = self._source_columns
        if not names:
            return {}
        if hasattr(type(data), "toarray"):  # pyright: ignore[reportUnknownArgumentType] - anything
            msg = "X is sparse, but a scorer reads groups from a frame or a dense array; convert it with `X.toarray()`."
            raise ColumnError(msg)
        if hasattr(data, "columns") or isinstance(data, Mapping):
            return self._features_of_frame(data, names)
        return self._features_of_array(data, names)

    def _features_of_frame(self, data: Any, names: list[str]) -> dict[str, Any]:
        """The columns of a frame or a mapping by their labels, which can be numbers."""
        is_pandas = type(data).__module__.partition(".")[0] == "pandas"
        has_labels = is_pandas or not hasattr(data, "columns")
        source: Any = data if has_labels else open_frame(data)
        present: Any = data if has_labels else source.columns
        labels = {name: dict(self.numbers).get(name, name) for name in names}
        for label in labels.values():
            if label not in present:
                error = ColumnError.missing(label, "by", list(present))
                raise ColumnError(f"{error}{_ONLY_IN_ARRAYS}") if isinstance(label, int) else error
        if not has_labels:
            read: list[pl.Series] = source.read({name: ("by", Column(name)) for name in names})
            return {column.name: column for column in read}
        features = {name: data[label] for name, label in labels.items()}
        for name, values in features.items():
            if is_pandas and values.ndim > 1:
                if data.columns.nlevels > 1:
                    raise ColumnError.missing(labels[name], "by", list(data))
                msg = f"X has several columns {labels[name]!r}; give them distinct names."
                raise ColumnError(msg)
        return features

    def _features_of_array(self, data: Any, names: list[str]) -> dict[str, Any]:
        """The columns of an array by their numbers."""
        shape, numbers = getattr(data, "shape", np.shape(data)), dict(self.numbers)
        if len(shape) == 1 and len(names) == 1:
            return {names[0]: data}
        without_number = [name for name in names if name not in numbers]
        if without_number:
            msg = (
                f"X is an array without column names, so {without_number[0]!r} cannot be found; give the position of "
                "the column, such as `by=0`."
            )
            raise ColumnError(msg)
        array = np.asarray(data)
        width = array.shape[1]
        for index in numbers.values():
            if not -width <= index < width:
                msg = f"`by={index}` is out of range: X has {width} columns."
                raise ColumnError(msg)
        return {name: array[:, numbers[name]] for name in names}


def _text_from_pandas(name: str, values: Any) -> Any:
    """Convert Arrow text of pandas to a polars column; return anything else unchanged."""
    array: Any = getattr(values, "array", None)
    if type(array).__name__ != "ArrowStringArray":
        return values
    # narwhals would take ten times as long
    return pl.Series(name, array.__arrow_array__())


@refuse_unknown_settings
def make_scorer(
    metric: Metric | GroupwiseMetric | GroupwiseFactory,
    by: Features | Privileged | None = None,
    *,
    response: Literal["labels", "scores"] | None = None,
    **options: Any,
) -> FairnessScorer:
    """Make a scorer for `cross_validate` and `GridSearchCV`: `scorer(estimator, X, y)`, where greater is better.

    Differences are converted to minus their distance from 0, signed ratios to the smaller of q and 1/q.

    Args:
        metric: A metric, a groupwise metric, or a factory with `by`.
        by: The sensitive feature: a column of X by its name, or by a number: the label of a column of a pandas frame,
            the position of one if X is an array. Several make intersections, as `by=("sex", "race")`.
        response: The predictions: `"labels"` (or numbers), or `"scores"` from `predict_proba`: of the event
            (`pos_label`, or the second of two classes), or of every class if there are more. By default the kind that
            the metric reads; with a `threshold`, scores.
        options: Options of a call, such as `pos_label` or `threshold`.

    Returns:
        A scorer, which can be pickled if its metric can. It accepts `sample_weight=`, and `sensitive_features=` if
        these are not in X; `scorer.set_score_request(sample_weight=True)` makes scikit-learn route them. Groups without
        a value and NaN scores cause warnings, as in a call (`on_undefined="ignore"` silences both). `scorer.routed` is
        the same as a function of truth and prediction, for scikit-learn's own `make_scorer`.

    Raises:
        ArgumentError: If the metric gives more than one number, or its direction is unknown; or if it reads survival
            times or intervals, which are more than a column.

    >>> from tidyfair import accuracy, equalized_odds
    >>> make_scorer(equalized_odds, by="sex").metric
    <groupwise metric equalized_odds('sex'): difference(to='range') of sens, spec, minimize>
    >>> make_scorer(accuracy.difference("sex")).metric
    <groupwise metric accuracy_difference('sex'): difference(to='range') of accuracy, minimize>
    """
    if response is not None:
        one_of("response", response, ["labels", "scores"])
    bound, numbers = _bound(metric, by)
    for name in options:
        if name in _REFUSED:
            msg = (
                f"make_scorer() does not accept `{name}`: scorers read predictions for X, and weights as "
                "`sample_weight`."
            )
            raise ArgumentError(msg)
    bound.run.options(options)
    cut = Cut.of(options, {"probs"})
    if cut is not None and cut.several:
        msg = f"make_scorer(): a score is a single number, so `{cut.option}` must be one value, not a list."
        raise ArgumentError(msg)
    return FairnessScorer(bound, numbers, tuple(options.items()), _response(bound, response, cut=cut is not None))


def _bound(
    metric: object, by: Features | Privileged | None
) -> tuple[Metric | GroupwiseMetric, tuple[tuple[str, int], ...]]:
    """The metric of a scorer, with the features of a factory, and its columns that were given by number."""
    numbers: list[tuple[str, int]] = []
    if isinstance(metric, GroupwiseFactory):
        if by is None:
            msg = f'make_scorer(): {metric.name} compares groups; give the sensitive feature as `by="column"`.'
            raise ArgumentError(msg)
        columns: list[Any] = list(by) if isinstance(by, list | tuple) else [by]
        for index, column in enumerate(columns):
            if not isinstance(column, bool) and isinstance(column, Integral):
                columns[index] = f"column {column}"
                numbers.append((columns[index], int(column)))
        metric = metric(*columns)
    elif by is not None:
        msg = (
            "make_scorer(): `by` can only be given with a factory, such as demographic_parity_ratio; leave it out "
            "for other metrics."
        )
        raise ArgumentError(msg)
    if not isinstance(metric, Metric | GroupwiseMetric):
        msg = f"make_scorer() takes a metric, or a factory and `by=`, not {in_short(metric)}."
        raise ArgumentError(msg)
    if metric.kind in SEVERAL_COLUMNS:
        msg = (
            f"make_scorer(): {metric.name} reads {CONTENT[metric.kind]}, which scorers do not have; call it with the "
            "columns of a frame."
        )
        raise ArgumentError(msg)
    if isinstance(metric, GroupwiseMetric) and metric.aggregate.direction_is_unknown:
        msg = (
            f"make_scorer(): the direction of {metric.name} is unknown; create the metric with "
            "`new_groupwise_metric(…, direction=…)`, or its aggregate with `new_aggregate(…, equal=…)`."
        )
        raise ArgumentError(msg)
    return metric, tuple(numbers)


def _response(
    metric: Metric | GroupwiseMetric, requested: Literal["labels", "scores"] | None, *, cut: bool
) -> Literal["labels", "scores"]:
    """The kind of prediction that the metric reads; scores if labels are made from them by a threshold."""
    kinds = [{formula.kind for formula in formulas_of(reading)} for reading in metric.readings]
    readable: list[Literal["labels", "scores"]] = ["scores" if cut or "prob" in kind else "labels" for kind in kinds]
    if requested is None or requested in readable:
        return requested or readable[0]
    way_out = "leave `response` out"
    if readable[0] == "labels":
        way_out += ", or give a `threshold=`, which turns scores into labels"
    msg = f"make_scorer(): {metric.name} reads {readable[0]}, not {requested}; {way_out}."
    raise ArgumentError(msg)


@refuse_unknown_settings
def p_percent_score(sensitive_column: Features, positive_target: object = 1) -> FairnessScorer:
    """Scorer: ratio of the smallest to the largest selection rate of groups (the 80% rule requires 0.8).

    >>> p_percent_score("sex").metric.name
    'demographic_parity_ratio'
    """
    return make_scorer(demographic_parity_ratio, sensitive_column, pos_label=positive_target)


@refuse_unknown_settings
def equal_opportunity_score(sensitive_column: Features, positive_target: object = 1) -> FairnessScorer:
    """Scorer: ratio of the smallest to the largest true positive rate of groups.

    >>> equal_opportunity_score("sex").metric.name
    'equal_opportunity_ratio'
    """
    return make_scorer(equal_opportunity_ratio, sensitive_column, pos_label=positive_target)


@dataclass(frozen=True, repr=False)
class CorrelationScorer(FairnessScorer):
    """Correlation of predictions with a feature as a scorer; made by `correlation_score`."""

    as_numbers: bool | None = None
    """True for a measurement; by default True for floats, and False for a few distinct whole numbers."""

    def _value(self, frame: pl.DataFrame, arguments: dict[str, Any]) -> float | None:
        """The correlation of predictions and the feature; the truth does not matter."""
        (feature,) = cast("GroupwiseMetric", self.metric).by.columns
        values = frame.select(feature.expr).to_series()
        if self.as_numbers is None and values.dtype.is_integer() and (several := values.n_unique()) > _MOST_CODES:
            msg = (
                f"correlation_score(): {values.name!r} holds {several} different whole numbers, which may be a "
                "measurement (such as age) or codes of groups; specify `as_numbers=True` or `as_numbers=False`."
            )
            raise ArgumentError(msg)
        metric, arguments["truth"] = self.metric, None
        if values.dtype.is_float() if self.as_numbers is None else self.as_numbers:
            # r squared of the predictions, with the feature in the role of the truth
            metric, arguments["truth"] = rsq, feature.source
        value: float | None = metric(frame, **arguments)[".estimate"].item()
        if value is None:
            _warn_of_nan("The correlation is undefined for these rows")
            return None
        # rounded sums may be above 1
        return min(math.sqrt(value), 1.0)


@refuse_unknown_settings
def correlation_score(column: ColumnLike | int, *, as_numbers: bool | None = None) -> FairnessScorer:
    """Scorer: minus the correlation ratio of predicted numbers and groups; for two groups minus |Pearson's r|.

    The correlation ratio is the root of `explained_by_groups`, and needs no order of groups. For a feature that is a
    measurement the score is minus |Pearson's r|.

    Args:
        column: The feature: a column of X, or its position if X is an array.
        as_numbers: True for a measurement, False for codes of groups. By default, floats are a measurement; text,
            Booleans and at most ten different whole numbers are groups; more whole numbers are an error.

    >>> correlation_score("sex").metric.name
    'explained_by_groups'
    """
    if not isinstance(column, str | pl.Expr | Integral):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"correlation_score() takes one column, not {in_short(column)}."
        raise ArgumentError(msg)
    if as_numbers is not None:
        flag("as_numbers", as_numbers)
    scorer = make_scorer(explained_by_groups, column)
    return CorrelationScorer(scorer.metric, scorer.numbers, as_numbers=as_numbers)


@dataclass(frozen=True, repr=False)
class SubsetScorer(Scorer):
    """A metric, or a function of truth and prediction, on a subset of rows as a scorer; made by `subset_score`."""

    subset: Callable[[Any], Any]
    measure: FairnessScorer | Callable[..., float]
    options: tuple[tuple[str, Any], ...] = ()
    """Arguments of a function."""

    @property
    def call(self) -> str:
        """The call that makes the scorer, for messages."""
        measure = self.measure
        name = measure.metric.name if isinstance(measure, FairnessScorer) else getattr(measure, "__name__", measure)
        return f"subset_score({name})"

    @property
    def metadata(self) -> list[str]:
        """The arguments beside the estimator, X and the truth."""
        measure = self.measure
        takes_weights = isinstance(measure, FairnessScorer) or "sample_weight" in inspect.signature(measure).parameters
        return ["sample_weight"] if takes_weights else []

    def __call__(self, estimator: Any, X: Any, y_true: Any = None, sample_weight: Any = None) -> float:  # noqa: N803 - scikit-learn's
        """The metric on the selected rows of X; NaN if there are none."""
        measure = self.measure
        predicted: Any = (
            measure.predicted(estimator, X) if isinstance(measure, FairnessScorer) else estimator.predict(X)
        )
        each = cast("dict[object, Any]", predicted).values() if isinstance(predicted, dict) else [predicted]
        count, mask = len(next(iter(each))), np.asarray(self.subset(X))
        if mask.shape != (count,) or mask.dtype != bool:
            shape = f"{mask.dtype} of shape {mask.shape}"
            msg = f"subset_score(): the subset must be one Boolean for each of {count} rows, not {shape}."
            raise ArgumentError(msg)
        if not mask.any():
            _warn_of_nan(f"The subset selects none of {len(mask)} rows")
            return math.nan
        if isinstance(measure, FairnessScorer):
            return measure.score(measure.features(X), y_true, predicted, sample_weight, mask)
        if y_true is None:
            msg = "subset_score(): a function of truth and prediction needs y; pass it to the scorer."
            raise ArgumentError(msg)
        options = dict(self.options)
        if sample_weight is not None:
            options["sample_weight"] = _selected(sample_weight, mask, "sample_weight")
        return float(measure(_selected(y_true, mask, _TRUTH), np.asarray(predicted)[mask], **options))


def _selected(values: Any, mask: Any, name: str) -> Any:
    """The selected values of an array that has one for each row."""
    array = np.asarray(values)
    if len(array) != len(mask):
        msg = f"subset_score(): `{name}` has {len(array)} values, and X has {len(mask)} rows."
        raise ColumnError(msg)
    return array[mask]


@refuse_unknown_settings
def subset_score(
    subset_picker: Callable[[Any], Any], score: Metric | Callable[..., float], **kwargs: Any
) -> SubsetScorer:
    """Scorer: a metric on the rows that a function of X selects.

    Args:
        subset_picker: A function of X that returns a Boolean for each row.
        score: A metric, or a function of truth and prediction such as scikit-learn's.
        kwargs: Arguments of that function, or options of `make_scorer` for the metric.

    >>> from tidyfair import accuracy
    >>> subset_score(lambda people: people["sex"] == "f", accuracy, pos_label="yes").measure.metric.name
    'accuracy'
    """
    picker: object = subset_picker
    if not callable(picker):
        msg = (
            "subset_score(): `subset_picker` is a function of X that returns a Boolean for each row, such as "
            f'`lambda X: X["sex"] == "female"`, not {in_short(picker)}.'
        )
        raise ArgumentError(msg)
    measure: object = score
    if isinstance(measure, Metric):
        return SubsetScorer(subset_picker, make_scorer(measure, **kwargs))
    if isinstance(measure, GroupwiseMetric | GroupwiseFactory) or not callable(measure):
        takes = "a function of X and a metric, or a function of truth and prediction"
        msg = f"subset_score() takes {takes}, not {in_short(score)}."
        raise ArgumentError(msg)
    return SubsetScorer(subset_picker, score, tuple(kwargs.items()))
