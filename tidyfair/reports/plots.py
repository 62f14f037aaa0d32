"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.errors import ArgumentError, in_short, listed
from tidyfair.escapes import renamed
from tidyfair.reports.charts import LEAST_WIDTH, WIDTH, Picture, shown
from tidyfair.reports.pictures import PICTURES, groups_plot, is_crossed, models_plot, results_plot
from tidyfair.reports.plot_input import Form, PlotInput, with_outer_text
from tidyfair.reports.tables import NO_UNITS, Units
from tidyfair.specs import number, one_of, refuse_unknown_settings, string, whole
from tidyfair.specs.result_kinds import kind_of
from tidyfair.tallies import open_frame

if TYPE_CHECKING:
    from altair import TopLevelMixin

__all__ = ["autoplot"]

_MODELS = ("Model 1", "Model 2")
_PAPER = {"column": "88 mm", "two columns": "180 mm"}
"""The widths of journals."""
_PIXELS_OF_MM = 96 / 25.4


@refuse_unknown_settings
def autoplot(
    result: Any,
    *,
    beside: Any = None,
    kind: Form | None = None,
    at: float | None = None,
    models: Sequence[str] | None = None,
    title: str | None = None,
    width: int | str | None = None,
) -> TopLevelMixin:
    """The picture of a result, chosen by its kind.

    Values of groups are dots with their intervals around the value of all rows, a grid where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are dots with their
    intervals, or strips without; monitors and comparisons of periods run over time; curves, confusion matrices,
    models, pairs, strata, subgroups, and tables that compare groups with a reference have pictures of their own.

    Args:
        result: The result of a metric, `by_group`, a test, a gate, a curve, `summarize` …: a tidy frame of any kind.
        beside: The result of `disparity_test` for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals. `"frontier"` draws the models of `compare_models` by the first metric of all rows and by each
            disparity, in place of their changes.
        at: The threshold, or other cut, that is marked where values are lines over a list of them.
        models: The names of the two models of `compare_models` or `compare_resamples`, `("today", "challenger")`; where
            left out, those of the columns that were compared, if the result has them.
        title: A title in place of one that says what is drawn.
        width: The width of the whole picture with labels: pixels (640 where left out); or for print, with letters of
            7 to 9 points, `"column"` (88 mm), `"two columns"` (180 mm), or a length such as `"120 mm"`. An SVG has this
            width, and so has `chart.save("figure.pdf", scale_factor=0.75)`.

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
    if title is not None:
        string("title", title)
    pixels = _pixels_of(width)
    picture = picture_of(result, beside=beside, kind=kind, at=at, models=models)
    return picture.finished(title, pixels, is_printed=isinstance(width, str))


def picture_of(
    result: Any, *, units: Units = NO_UNITS, beside: Any = None, kind: Form | None = None, at: float | None = None,
    models: Sequence[str] | None = None,
) -> Picture:  # fmt: skip
    """What `autoplot` draws, without a title of its own; metrics with a unit are written in it."""
    frame = open_frame(result).to_polars()
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: the result has no rows."
        raise ArgumentError(msg)
    if kind is not None:
        one_of("kind", kind, ["dots", "heat map", "frontier"])
    kind_of_result = kind_of(frame)
    draw = PICTURES.get(kind_of_result) if kind_of_result else None
    if kind_of_result is None or draw is None:
        msg = (
            "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
            f"no picture of the columns {listed(frame.columns)}.{_way_out(frozenset(frame.columns))}"
        )
        raise ArgumentError(msg)
    plot = PlotInput.of(kind_of_result, frame)
    expected = None if beside is None else _expected_of(beside, draw, plot.outer)
    if kind == "heat map" and (draw is not groups_plot or not is_crossed(plot.frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    if kind == "frontier" and draw is not models_plot:
        msg = "A frontier is drawn of `compare_models` of a metric and disparities."
        raise ArgumentError(msg)
    if at is not None and plot.cut is None:
        msg = "`at` is a threshold that is marked in values over thresholds, and `result` holds no list of them."
        raise ArgumentError(msg)
    marked = None if at is None else number("at", at, -math.inf)
    names = _names_of(models, plot.frame)
    plot = replace(plot.with_units(units), expected=expected, form=kind, at=marked, models=names)
    return draw(plot)


def _pixels_of(width: int | str | None) -> float:
    """The width of a picture in pixels, of which there are 96 in an inch on paper."""
    if not isinstance(width, str):
        return WIDTH if width is None else whole("width", width, LEAST_WIDTH, of="autoplot")
    length = _PAPER.get(width, width).removesuffix("mm").strip()
    if not re.fullmatch(r"\d+(\.\d+)?", length) or float(length) * _PIXELS_OF_MM < LEAST_WIDTH:
        least = math.ceil(LEAST_WIDTH / _PIXELS_OF_MM)
        msg = f'`width` is pixels, "column", "two columns" or a length of at least "{least} mm", not {width!r}.'
        raise ArgumentError(msg)
    return float(length) * _PIXELS_OF_MM


def _way_out(columns: frozenset[str]) -> str:
    """The columns without which a frame would be a result, as a sentence."""
    odd = {kind: kind.odd(columns) for kind in PICTURES if kind.known_by <= columns}
    if not odd:
        return ""
    nearest = min(odd, key=lambda kind: len(odd[kind]))
    return f" Drop {listed(sorted(odd[nearest]))} to draw: {nearest.title.lower()}."


def _names_of(models: object, frame: pl.DataFrame) -> tuple[str, str]:
    """The names of two models, which differ: those given, or those of the columns that were compared."""
    if models is None:
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


def _expected_of(beside: Any, draw: Callable[[PlotInput], Picture], outer: list[str]) -> pl.DataFrame:
    """The range that is expected if groups are equal, which is drawn behind disparities."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if draw is not results_plot:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    common = [name for name in outer if name in expected.columns]
    return with_outer_text(expected.select(pl.col("^\\..*$"), *common), common)
