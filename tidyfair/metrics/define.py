"""Definition of metrics: from formulas over statistics, or from functions of arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.calling import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet
from tidyfair.errors import ArgumentError, Status, failures_of, in_short, listed
from tidyfair.specs import (
    DIRECTIONS,
    MACRO,
    MICRO,
    Column,
    Direction,
    are_columns,
    columns_of,
    flag,
    gives_a_value_per_row,
    one_of,
    refuse_unknown_settings,
)
from tidyfair.specs.formulas import (
    ROW_COLUMNS,
    SUMS,
    WEIGHTS,
    Counts,
    Expr,
    Formula,
    Given,
    GroupPairs,
    Influence,
    Kind,
    Number,
    Rate,
    RowArrays,
    RowExpression,
    Statistic,
    formula_of,
    name_of,
    settings_of,
    statistic,
    unprefixed,
)

__all__ = [
    "class_metric",
    "new_class_metric",
    "new_numeric_metric",
    "new_prob_metric",
    "numeric_metric",
    "prob_metric",
]

ConstantAverage: TypeAlias = 'bool | Literal["micro"]'

_FROM_CALL = {"labels", *WEIGHTS}
"""Parameters of a function of arrays that the call sets."""


@refuse_unknown_settings
def class_metric(
    *,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    over_levels: bool = False,
    undefined_levels: Literal["drop", "null"] = "drop",
    undefined: str = Status.ZERO_DENOMINATOR,
    constant_average: ConstantAverage = False,
    given: Given | None = None,
    ordered_with: tuple[str, str] | None = None,
    descriptive: bool = False,
) -> Callable[[Callable[..., Number | Rate]], Metric]:
    """Turn a formula into a metric of predicted labels.

    The function's name is the metric's, its parameters are statistics (`tp`, `fp`, `fn`, `tn`, `positives`,
    `negatives`, `selected`, `unselected`, `instances`, `label_count`, `row_weight`) or metrics that its module knows,
    its keyword-only parameters are options; the prefix `overall_` means all groups together, `rest_` all other groups.
    Parameters are numpy arrays of groups by labels (plain floats in `.formula(…)`), and so is the result: a number for
    each, or numerator and denominator. `row_weight`, Σw² / Σw, is the weight of one of the effective rows of a group.
    The option `at="threshold"` is the threshold of the call.

    Args:
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        over_levels: The formula has a genuine multi-class form: it sums over the labels itself, which are the last
            axis, for example with `tp.sum(axis=-1)`.
        undefined_levels: Whether averages leave out labels without a value, or are null.
        undefined: The reason, shown as the status, where it has no value.
        constant_average: True if the average over labels is constant, as for shares that add up to 1; `"micro"` if only
            the pooled one is.
        given: If given, the formula reads the `count` of each label: of predictions in all rows (`"nothing"`), of
            predictions for each true label, or of true labels for each prediction.
        ordered_with: The option, with its value, for which the order of labels matters.
        descriptive: Whether more of it is neither good nor bad, as of sums of the truth or of the predictions alone.
    """
    # a formula takes the settings of its type
    settings = locals() | {"over_levels": over_levels or given is not None}
    return partial(
        defined, kind="class", direction=direction, ends=range, settings=settings, constant_average=constant_average
    )


@refuse_unknown_settings
def prob_metric(
    *,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    over_levels: bool = False,
    undefined: str = Status.ZERO_DENOMINATOR,
    average: str | None = None,
    probabilities: bool = True,
    against: Literal["rest", "pairs"] | None = None,
    truth: bool = True,
    constant_average: ConstantAverage = False,
    counts: Counts = "instances",
    error_of_bins: Callable[..., Any] | None = None,
    deviations: tuple[Callable[..., Expr], ...] = (),
    variance: Callable[..., Expr] | None = None,
    influence: Callable[..., Influence] | None = None,
    bins_of: Callable[..., Any] | None = None,
    no_interval: str = "",
) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a formula into a metric of scores.

    Its parameters are sums (`positives`, `negatives`, `instances`, and the statistics of its module), as numpy arrays
    of groups by labels; or columns with a row for each distinct score of a group, in descending order (`score`, `hits`,
    `false_alarms` …), as polars expressions; or metrics of its module.

    Args:
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        over_levels: The formula has a genuine multi-class form: it sums over the labels' rows itself.
        undefined: The reason, shown as the status, where it has no value.
        average: The only or the default average over labels; by default the macro average.
        probabilities: True if scores must lie between 0 and 1.
        against: If given, the formula is a function of two samples: a group and the rest, or two groups.
        truth: Whether such a function reads the truth.
        constant_average: True if the average over labels is constant, as for probabilities that add up to 1; `"micro"`
            if only the pooled one is.
        counts: The rows that `min_n` and `min_share` count.
        error_of_bins: A formula of `hits` and `false_alarms`, or of two samples, for the largest error of the metric
            when scores are binned; without it the metric does not support `score_bins=`.
        deviations: Formulas of its variance, and of the effective numbers with and without the event.
        variance: A formula of its variance alone, for permutation tests.
        influence: A function of a sample and the clusters of its rows that gives the sampling variation of the value.
        bins_of: For errors of calibration, a function of scores, and of one that gives the shares at or below them
            among all rows (`"common"`) or those of the group (`"own"`), that gives their bins.
        no_interval: The reason why it has no interval.
    """
    settings = locals() | {"undefined_levels": "null", "reads_truth": truth}
    if against is not None:
        return partial(_arrayed, kind="prob", direction=direction, ends=range, settings=settings)
    return partial(
        defined, kind="prob", direction=direction, ends=range, settings=settings, constant_average=constant_average
    )


@refuse_unknown_settings
def numeric_metric(
    *,
    direction: Direction = "minimize",
    range: tuple[float, float] = (0, math.inf),  # noqa: A002 - the field's word
    undefined: str = Status.ZERO_DENOMINATOR,
    in_order_unless: str | None = None,
    squared_correlation: bool = False,
) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a formula into a metric of predicted numbers.

    Its parameters are sums (`instances`, `truth_mean`, `truth_variation`, `estimate_mean`, `estimate_variation`,
    `covariation`, `truth_minimum`, `truth_maximum`, `weight_squares`, and the statistics that its module knows), or the
    rows of a group in their given order (`truth`, `estimate`, `weight`), or metrics of its module. Sums are numpy
    arrays with a number for each group, rows are polars expressions.

    Args:
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        undefined: The reason, shown as the status, where it has no value.
        in_order_unless: The option without which the order of rows matters.
        squared_correlation: True if it is the square of a correlation, whose interval is that of the correlation.
    """
    return partial(defined, kind="numeric", direction=direction, ends=range, settings=locals())


def array_metric(
    *,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    kind: Kind = "prob",
    over_levels: bool = False,
    probabilities: bool = True,
    counts: Counts = "instances",
    influence: Callable[..., Influence] | None = None,
    over_points: bool = False,
) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a function of two arrays, truth and scores, into a metric; it is called for each group.

    Of survival times it may read all evaluation times together (`over_points`), as arrays of rows by times.
    """
    return partial(_arrayed, kind=kind, direction=direction, ends=range, settings=locals())


def survival_metric(
    *,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    undefined: str = Status.ALL_CENSORED,
    range_of_limits: tuple[float, float] | None = None,
    over_points: bool = False,
) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a formula of sums over rows of survival times into a metric.

    Its parameters are `instances`, the statistics of its module and its metrics, as numpy arrays. Statistics read
    `time`, `event`, `estimate`, `survival` (the survival probability at the evaluation time `eval_time`) and
    `censoring_weight`.

    Args:
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        undefined: The reason, shown as the status, where it has no value.
        range_of_limits: The range of its limits, if weights of rows may take a value beyond that of true ones.
        over_points: True if it is of the averages over evaluation times, instead of each of them.
    """
    return partial(defined, kind="survival", direction=direction, ends=range, settings=locals())


def interval_metric(
    *,
    direction: Direction = "minimize",
    range: tuple[float, float] = (0, math.inf),  # noqa: A002 - the field's word
    over_points: bool = False,
) -> Callable[[Callable[..., Any]], Metric]:
    """Turn a formula of sums over rows with intervals or quantiles into a metric.

    Its parameters are `instances`, the statistics of its module and its metrics, as numpy arrays. Statistics read
    `truth`, and `lower`, `upper` and `level` of an interval, or the `quantile` at a `quantile_level`.

    Args:
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        over_points: True if it is of the averages over levels of quantiles, instead of each of them.
    """
    return partial(defined, kind="interval", direction=direction, ends=range, settings=locals())


def defined(
    function: Callable[..., Any],
    kind: Kind,
    direction: Direction,
    ends: tuple[float, float],
    settings: Mapping[str, Any],
    *,
    constant_average: ConstantAverage = False,
    name: str | None = None,
    terms: Mapping[str, Statistic] | None = None,
) -> Metric:
    """A metric from its formula, after checks."""
    if not callable(function):
        msg = f"{kind}_metric() makes a metric of a function, below `@{kind}_metric()`, not of {in_short(function)}."
        raise ArgumentError(msg)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            msg = (
                f"{name_of(function)}(): the option {parameter.name!r} has no default; options are keyword-only "
                f"parameters with one, such as `*, {parameter.name}=1.0`, and statistics stand before the `*`."
            )
            raise ArgumentError(msg)
    _check_ends(function, direction, ends)
    formulas, statistics = _named_in_module(function, kind)
    definition = formula_of(function, kind, formulas, statistics | dict(terms or {}), settings)
    # the formulas of the library are checked by its tests, not at every import
    if not (function.__module__ or "").startswith("tidyfair."):
        definition = replace(definition, metric=name or "")
        definition.check()
        if isinstance(definition, RowExpression):
            definition.check_columns()
    averages = {True: (MACRO.name, MICRO.name), MICRO.name: (MICRO.name,)}.get(constant_average, ())
    return Metric(name or function.__name__, definition, kind, direction, ends, averages)


def _named_in_module(function: Callable[..., Any], kind: Kind) -> tuple[dict[str, Formula], dict[str, Statistic]]:
    """The metrics and statistics of a function's module that its parameters name."""
    module: dict[str, Any] = getattr(function, "__globals__", {})
    formulas: dict[str, Formula] = {}
    statistics: dict[str, Statistic] = {}
    for parameter in inspect.signature(function).parameters:
        name = unprefixed(parameter)
        value = module.get(name)
        if isinstance(value, Metric):
            formulas[name] = value.of_kind(kind).definition
        elif isinstance(value, Statistic):
            statistics[name] = value
    return formulas, statistics


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a user's function."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        msg = f"{name}: the signature of {name_of(function)} is unknown; write a function that calls it."
        raise ArgumentError(msg) from error


def _dtype_over_floats(value: Expr, columns: Iterable[str]) -> pl.DataType:
    """The dtype of an expression over columns of floats; an error of polars where it cannot be computed."""
    return pl.DataFrame(schema=dict.fromkeys(columns, pl.Float64)).select(value).to_series().dtype


def _arrayed(
    function: Callable[..., Any],
    kind: Kind,
    direction: Direction,
    ends: tuple[float, float],
    settings: Mapping[str, Any],
    *,
    name: str = "",
) -> Metric:
    """A metric from a function of arrays."""
    name = name or name_of(function)
    _check_ends(function, direction, ends)
    parameters = _parameters(name, function)
    if settings.get("against") and len(parameters) < 2:
        msg = f"{name}: the function must take two samples, not {inspect.signature(function)}."
        raise ArgumentError(msg)
    options: dict[str, Any] = {}
    for parameter in parameters:
        # a keyword with a default that the call does not set
        is_option = parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in _FROM_CALL
        if is_option and parameter.default is not parameter.empty:
            options[parameter.name] = parameter.default
    type_of_formula = GroupPairs if settings.get("against") else RowArrays
    own = settings_of(type_of_formula, settings)
    definition = type_of_formula(function, kind, options=tuple(options.items()), metric=name, **own)
    return Metric(name, definition, kind, direction, ends)


def _check_ends(function: object, direction: object, ends: object) -> None:
    """Refuse an unknown direction, and a range that is not two ascending numbers."""
    one_of("direction", direction, DIRECTIONS)
    given = ends
    pair: list[Any] = list(cast("tuple[Any, ...]", ends)) if isinstance(ends, tuple | list) else []
    are_numbers = len(pair) == 2 and all(isinstance(end, Real) for end in pair)
    if not are_numbers or not pair[0] < pair[1]:
        msg = f"{name_of(function)}: `range` must be a lower and an upper end, such as (0, 1), not {in_short(given)}."
        raise ArgumentError(msg)


def _is_of_rows(value: object) -> bool:
    """True for an expression with one value for each row, made of truth, score or estimate."""
    if not isinstance(value, pl.Expr) or value.meta.has_multiple_outputs():
        return False
    columns = set(columns_of(value))
    return columns <= {"truth", "score", "estimate"} and gives_a_value_per_row(value, unknown=True)


def _own_terms(caller: str, kind: Kind, statistics: object) -> dict[str, Statistic]:
    """The statistics of a user by their names, checked."""
    if not isinstance(statistics, Mapping):
        msg = f"{caller}: `statistics` must map names to functions of a row, not {in_short(statistics)}."
        raise ArgumentError(msg)
    terms: dict[str, Statistic] = {}
    for name, function in cast("Mapping[str, Any]", statistics).items():
        terms[name] = _own_term(caller, kind, name, function)
    return terms


def _own_term(caller: str, kind: Kind, name: str, function: Callable[..., Expr]) -> Statistic:
    """A statistic of a user, checked."""
    if not isinstance(name, str) or not callable(cast("object", function)):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f"{caller}: `statistics` must map names to functions of a row, not {in_short(name)} to {function!r}."
        raise ArgumentError(msg)
    if name in {*SUMS[kind], *ROW_COLUMNS[kind]}:
        msg = f"{caller}: the statistic {name!r} already exists; give yours another name."
        raise ArgumentError(msg)
    if unprefixed(name) != name:
        msg = (
            f"{caller}: the name {name!r} is reserved for {unprefixed(name)!r} of other groups; give the statistic "
            "another name."
        )
        raise ArgumentError(msg)
    term = replace(statistic(function), alias=name)
    value: Any = term.expression(truth=pl.col("truth"), score=pl.col("score"), estimate=pl.col("estimate"))
    if not _is_of_rows(value):
        msg = (
            f"{caller}: the statistic {name!r} must return an expression with a value for each row, not "
            f"{in_short(value)}."
        )
        raise ArgumentError(msg)
    with failures_of(f"{caller}: the statistic {name!r}", "Its parameters are columns of floats."):
        dtype = _dtype_over_floats(value, ["truth", "score", "estimate"])
    if not dtype.is_numeric() and dtype != pl.Boolean:
        msg = f"{caller}: the statistic {name!r} must return numbers, not values of the type {dtype}."
        raise ArgumentError(msg)
    return term


@refuse_unknown_settings
def new_class_metric(
    fn: Callable[..., Any],
    name: str,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    *,
    over_levels: bool = False,
) -> Metric:
    """Make a metric of predicted labels from a formula over counts, or from a function of two arrays.

    Args:
        fn: A function whose parameters are statistics (`tp`, `fp` …), as numpy arrays with a number for each group and
            label, and which returns such an array, or numerator and denominator (fast). Or a function of true and
            predicted labels such as scikit-learn's, with `sample_weight` if it takes weights (slow, because it is
            called for each group). It gets 1 for the event (each label in turn) and 0 for the rest; with
            `over_levels`, the original labels.
        name: The name in `.metric`.
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        over_levels: True if it reads all labels at once.

    Raises:
        ArgumentError: If `fn` is neither of these.

    >>> miss = new_class_metric(lambda fn, tp: (fn, fn + tp), "miss", "minimize")
    >>> miss.formula(fn=1, tp=3)
    0.25
    """
    return _new(fn, name, "class", direction, range, {"over_levels": flag("over_levels", over_levels)})


@refuse_unknown_settings
def new_prob_metric(
    fn: Callable[..., Any],
    name: str,
    direction: Direction = "maximize",
    range: tuple[float, float] = (0, 1),  # noqa: A002 - the field's word
    *,
    statistics: Mapping[str, Callable[..., Expr]] | None = None,
    over_levels: bool = False,
    probabilities: bool = False,
) -> Metric:
    """Make a metric of scores from a formula over sums or sorted scores, or from a function of two arrays.

    Args:
        fn: A function of sums (`positives`, `negatives`, `instances`, and the names in `statistics`), which are numpy
            arrays, or of columns with a row for each distinct score, descending (`score`, `hits`, `false_alarms`),
            which are polars expressions; it returns the same, or numerator and denominator (fast). Or a function of
            truth (1 for the event) and scores such as scikit-learn's, with `sample_weight` if it takes weights (slow,
            because it is called for each group).
        name: The name in `.metric`.
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        statistics: Quantities of a row that are summed, as polars expressions of `truth` (1 or 0) and `score`.
        over_levels: True if it reads all labels at once: labels, and one column of scores for each.
        probabilities: True if scores outside 0 to 1 are refused.

    >>> spread = new_prob_metric(
    ...     lambda gap, instances: (gap, instances), "spread", "minimize",
    ...     statistics={"gap": lambda truth, score: (truth - score).abs()},
    ... )
    >>> spread.formula(gap=2, instances=8)
    0.25
    """
    settings = {
        "over_levels": flag("over_levels", over_levels),
        "probabilities": flag("probabilities", probabilities),
        "undefined_levels": "null",
    }
    return _new(fn, name, "prob", direction, range, settings, statistics)


@refuse_unknown_settings
def new_numeric_metric(
    fn: Callable[..., Any],
    name: str,
    direction: Direction = "minimize",
    range: tuple[float, float] = (0, math.inf),  # noqa: A002 - the field's word
    *,
    statistics: Mapping[str, Callable[..., Expr]] | None = None,
) -> Metric:
    """Make a metric of predicted numbers from a formula over sums or rows, or from a function of two arrays.

    Args:
        fn: A function of sums (see `numeric_metric`, and the names in `statistics`), which are numpy arrays, or of the
            rows of a group (`truth`, `estimate`, `weight`), which are polars expressions; it returns the same, or
            numerator and denominator (fast). Or a function of true and predicted numbers such as scikit-learn's, with
            `sample_weight` if it takes weights (slow).
        name: The name in `.metric`.
        direction: The better values: `"maximize"`, `"minimize"`, or near `"zero"` or `"one"`.
        range: Smallest and largest possible value.
        statistics: Quantities of a row that are summed, as polars expressions of `truth` and `estimate`.

    >>> within = new_numeric_metric(
    ...     lambda close, instances: (close, instances), "within_5", "maximize", (0, 1),
    ...     statistics={"close": lambda truth, estimate: ((truth - estimate).abs() <= 5).cast(float)},
    ... )
    >>> within.formula(close=3, instances=4)
    0.75
    """
    return _new(fn, name, "numeric", direction, range, {}, statistics)


def _new(
    function: Callable[..., Any],
    name: str,
    kind: Kind,
    direction: Direction,
    ends: tuple[float, float],
    settings: Mapping[str, Any],
    statistics: Mapping[str, Callable[..., Expr]] | None = None,
) -> Metric:
    """A user's metric, fast if its parameters are statistics."""
    caller = f"new_{kind}_metric()"
    _check_function(caller, function, name)
    terms = _own_terms(caller, kind, {} if statistics is None else statistics)
    parameters = _parameters(caller, function)
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    names = {parameter.name for parameter in required if parameter.kind is not parameter.KEYWORD_ONLY}
    vocabulary = {*SUMS[kind], *ROW_COLUMNS[kind], *terms}
    # a formula of scores does not read the truth, so these parameters are two arrays
    of_scores_in_arrays = kind == "prob" and "truth" in names
    if names & vocabulary and not of_scores_in_arrays:
        try:
            return defined(function, kind, direction, ends, settings, name=name, terms=terms)
        except Exception:
            # `truth` and `estimate` may be arrays as well as columns
            if kind != "numeric" or not names <= set(ROW_COLUMNS[kind]):
                raise
    _check_two_arrays(caller, parameters)
    return _arrayed(function, kind, direction, ends, settings, name=name)


def _check_function(caller: str, function: object, name: object) -> None:
    """Refuse metrics and other objects that are not functions, and a name that is not a text."""
    if not callable(function) or isinstance(function, Metric | GroupwiseMetric | GroupwiseFactory | MetricSet):
        way_out = " Compare its groups with `new_groupwise_metric`." if isinstance(function, Metric) else ""
        msg = f"{caller} takes a function, not {in_short(function)}.{way_out}"
        raise ArgumentError(msg)
    if not isinstance(name, str) or not name:
        msg = f"{caller}: `name` is a non-empty text, not {in_short(name)}."
        raise ArgumentError(msg)


def _check_two_arrays(caller: str, parameters: list[inspect.Parameter]) -> None:
    """Refuse parameters that do not take two arrays, truth and prediction."""
    positional = [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    if any(parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD} for parameter in positional):
        return
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    names = [parameter.name for parameter in required if parameter.name not in _FROM_CALL]
    if len(positional) < 2 or len(names) > 2:
        msg = f"{caller}: a function of arrays must take two of them, truth and prediction, not {listed(names)}."
        raise ArgumentError(msg)


def distinct_columns(given: object, role: str, wanted: str) -> tuple[Column, ...]:
    """One column, or several that are distinct, of an argument of a function that makes a metric."""
    sources = list(given) if are_columns(given) else [given]
    columns = tuple(Column.of(source, role) for source in sources)
    if not columns or len(set(columns)) < len(columns):
        msg = f"{wanted}; `{role}` is empty or has duplicates."
        raise ArgumentError(msg)
    return columns
