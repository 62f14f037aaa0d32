"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, in_short, listed
from tidyfair.escapes import renamed
from tidyfair.reports import comparison_plots, curve_plots, value_plots
from tidyfair.reports.charts import LEAST_WIDTH, WIDTH, Picture, shown
from tidyfair.reports.plot_input import Kind, PlotInput, with_outer_text
from tidyfair.specs.arguments import number, one_of, string, whole
from tidyfair.specs.result_columns import key_columns
from tidyfair.specs.signatures import refuse_unknown_settings
from tidyfair.tallies.source import open_frame

__all__ = ["autoplot"]

_MODELS = ("Model 1", "Model 2")


@refuse_unknown_settings
def autoplot(
    result: Any,
    *,
    beside: Any = None,
    kind: Kind | None = None,
    at: float | None = None,
    models: Sequence[str] | None = None,
    title: str | None = None,
    width: int | None = None,
) -> Any:
    """The picture of a result, chosen by the columns that it has.

    Values of groups are dots with their intervals around the value of all rows, a grid where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are dots with their
    intervals, or strips without; monitors and comparisons of periods run over time; curves, confusion matrices,
    models, pairs, strata, subgroups, and tables that compare groups with a reference have pictures of their own.

    Args:
        result: The result of a metric, `by_group`, a test, a gate, a curve, `summarize` …: a tidy frame of any kind.
        beside: The result of `disparity_test` for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals.
        at: The threshold, or other cut, that is marked where values are lines over a list of them.
        models: The names of the two models of `compare_models` or `compare_resamples`, `("today", "challenger")`; where
            left out, those of the columns that were compared, if the result has them.
        title: A title in place of one that says what is drawn.
        width: The width of the whole picture in pixels, with labels; 640 where left out.

    Returns:
        An altair chart.

    Raises:
        ArgumentError: For a frame without rows, or whose columns are those of no result; and without altair.

    >>> from tidyfair import demographic_parity
    >>> from tidyfair.datasets import lending
    >>> groups = demographic_parity("race").by_group(lending(), estimate="approved", pos_label="yes")
    >>> groups.pipe(autoplot).to_dict()["title"]["text"]
    'Selection rate by race is 0.430 for Black and 0.582 for Asian'
    """
    frame = open_frame(result).to_polars()
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: the result has no rows."
        raise ArgumentError(msg)
    if kind is not None:
        one_of("kind", kind, ["dots", "heat map"])
    if title is not None:
        string("title", title)
    needed, draw = _picture_of(frame)
    expected = None if beside is None else _expected_of(beside, draw)
    if kind == "heat map" and (draw is not value_plots.groups_plot or not value_plots.is_crossed(frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    if at is not None and value_plots.cut_of(frame) is None:
        msg = "`at` is a threshold that is marked in values over thresholds, and `result` holds no list of them."
        raise ArgumentError(msg)
    marked = None if at is None else number("at", at, -math.inf)
    pixels = WIDTH if width is None else whole("width", width, LEAST_WIDTH, of="autoplot")
    # columns of curves can have the names of outer keys
    outer = [name for name in key_columns(frame) if name not in needed]
    if expected is not None:
        common = [name for name in outer if name in expected.columns]
        expected = with_outer_text(expected.select(pl.col("^\\..*$"), *common), common)
    plot = PlotInput(with_outer_text(frame, outer), expected, kind, marked, _names_of(models, frame), outer)
    return draw(plot).finished(title, pixels)


def _names_of(models: object, frame: pl.DataFrame) -> tuple[str, str]:
    """The names of two models, which differ: those given, or those of the columns that were compared."""
    if models is None:
        models = _MODELS
        if {".model_one", ".model_other"} <= set(frame.columns):
            pairs = frame.select(".model_one", ".model_other").unique()
            one, other = pairs.row(0)
            models = (one, other) if len(pairs) == 1 and None not in (one, other) and one != other else _MODELS
    given = cast("Sequence[object]", models) if isinstance(models, list | tuple) else ()
    names = [name for name in given if isinstance(name, str)]
    if len(given) != 2 or len(set(names)) != 2:
        given_text = in_short(cast("object", models))
        msg = f'`models` are the names of two models, `("today", "challenger")`, not {given_text}.'
        raise ArgumentError(msg)
    one, other = renamed(names, shown)
    return one, other


def _picture_of(frame: pl.DataFrame) -> tuple[set[str], Callable[[PlotInput], Picture]]:
    """The first plot whose columns a result has, and these columns."""
    # columns of curves have no dot, as those of outer groups
    may_be_curve = ".metric" not in frame.columns
    for needed, draw in _PICTURES:
        has_dots = all(name.startswith(".") for name in needed)
        if needed <= set(frame.columns) and (has_dots or may_be_curve):
            return needed, draw
    msg = (
        "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
        f"no picture of the columns {listed(frame.columns)}."
    )
    raise ArgumentError(msg)


def _expected_of(beside: Any, draw: Callable[[PlotInput], Picture]) -> pl.DataFrame:
    """The range that is expected if groups are equal, which is drawn behind disparities."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if draw is not value_plots.results_plot:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    return expected


_PICTURES: tuple[tuple[set[str], Callable[[PlotInput], Picture]], ...] = (
    ({"specificity", "sensitivity"}, curve_plots.roc_plot),
    ({"recall", "precision", ".threshold"}, curve_plots.precision_recall_plot),
    ({".percent_tested", ".percent_found"}, curve_plots.gain_plot),
    ({".percent_tested", ".lift"}, curve_plots.lift_plot),
    ({".mean_score", ".event_rate"}, curve_plots.calibration_plot),
    ({".truth", ".predicted", ".n"}, value_plots.confusion_plot),
    ({".missing_if_positive", ".missing_if_negative"}, value_plots.missing_truth_plot),
    ({".metric", ".group", ".lower_bound", ".upper_bound"}, value_plots.bounds_plot),
    ({".group", ".reference", ".disparity", ".status"}, comparison_plots.comparison_plot),
    ({".model", ".performance", ".disparity", ".on_frontier"}, comparison_plots.frontier_plot),
    ({".metric", ".subgroup", ".overall", ".violation"}, comparison_plots.halves_plot),
    ({".metric", ".subgroup", ".difference"}, comparison_plots.subgroups_plot),
    ({".error", ".group", ".becomes", ".share"}, comparison_plots.sensitivity_plot),
    ({".metric", ".one", ".other", ".change"}, comparison_plots.models_plot),
    ({".metric", ".by", ".difference", ".n", ".std_error"}, comparison_plots.resamples_plot),
    ({".group", ".other", ".crude", ".adjusted"}, comparison_plots.strata_plot),
    ({".group", ".other", ".disparity", ".scale"}, comparison_plots.pairs_plot),
    ({".group", ".other", ".disparity", ".pairs"}, comparison_plots.paired_plot),
    ({".smallest", ".difference", ".power"}, comparison_plots.smallest_differences_plot),
    ({".before", ".period", ".change", ".expected_lower"}, comparison_plots.periods_plot),
    ({".metric", ".group", ".period", ".period_lower", ".change"}, comparison_plots.located_plot),
    ({".group", ".other", ".component", ".estimate"}, comparison_plots.components_plot),
    ({".metric", ".by", ".period", ".look", ".verdict"}, comparison_plots.looks_plot),
    ({".metric", ".by", ".p_value", ".expected_lower", ".expected_upper"}, comparison_plots.tests_plot),
    ({".metric", ".by", ".probability"}, comparison_plots.probabilities_plot),
    ({".metric", ".by", ".mean", ".std_error"}, comparison_plots.summaries_plot),
    ({".metric", ".group", ".estimate"}, value_plots.groups_plot),
    ({".metric", ".by", ".estimate"}, value_plots.results_plot),
)
"""The columns that each plot needs; the first plot that fits is drawn."""
