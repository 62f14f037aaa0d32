"""Plots of curves of scores: ROC, precision and recall, gain, lift and calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidyfair.reports.charts import MOST_POINTS, Picture
from tidyfair.reports.layout import Span
from tidyfair.reports.line_charts import LineStyle, lines
from tidyfair.reports.plot_input import OUTER, PlotInput

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that fall on the same of so many pixels of an axis look like one."""
_LEVEL = 0.95
_MOST_IN_ONE = 2
"""The number of calibration curves in a panel."""


def roc_plot(plot: PlotInput) -> Picture:
    """Sensitivity over the false positive rate."""
    table = _points(plot, 1 - pl.col("specificity"), pl.col("sensitivity"))
    style = LineStyle("False positive rate", "Sensitivity (true positive rate)", square=True, diagonal="chance")
    return lines(table, _titles(plot, "ROC curve"), [], style)


def precision_recall_plot(plot: PlotInput) -> Picture:
    """Precision over recall."""
    table = _points(plot, pl.col("recall"), pl.col("precision"))
    style = LineStyle("Recall (true positive rate)", "Precision (positive predictive value)", square=True)
    return lines(table, _titles(plot, "Precision-recall curve"), [], style)


def gain_plot(plot: PlotInput) -> Picture:
    """The share of events found over the share of rows tested."""
    table = _points(plot, pl.col(".percent_tested") / 100, pl.col(".percent_found") / 100)
    style = LineStyle("Share of rows tested", "Share of events found", square=True, diagonal="chance")
    return lines(table, _titles(plot, "Gain curve"), [], style)


def lift_plot(plot: PlotInput) -> Picture:
    """Lift over the share of rows tested."""
    table = _points(plot, pl.col(".percent_tested") / 100, pl.col(".lift"))
    spans = dict.fromkeys(table["panel"].unique().to_list(), Span(0, None, 1))
    style = LineStyle("Share of rows tested", "Lift", span=Span(0, 1), spans=spans)
    return lines(table, _titles(plot, "Lift curve"), ["line at 1: as many events as by chance"], style)


def calibration_plot(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score, with intervals where rows count alike."""
    from tidyfair.intervals.proportions import wilson, z_value  # noqa: PLC0415 - only for intervals

    table = _points(plot, pl.col(".mean_score"), pl.col(".event_rate"))
    notes: list[str] = []
    if ".weight" not in plot.frame.columns:
        shares, rows = table["y"].to_numpy(), table["rows"].cast(pl.Float64).to_numpy()
        lower, upper = wilson(np.asarray(shares), np.asarray(rows), z_value(_LEVEL))
        table = table.with_columns(pl.Series("lower", lower), pl.Series("upper", upper))
        notes.append("lines show the 95 % confidence interval of each bin (Wilson)")
    if table["series"].n_unique() > _MOST_IN_ONE:
        # intervals of many curves would hide each other
        level = pl.col("panel")
        panel = pl.when(level == "").then("series").otherwise(pl.format("{}, {}", "series", level))
        table = table.with_columns(panel.alias("panel"), pl.lit("event rate").alias("series"))
    style = LineStyle("Mean score", "Event rate", square=True, diagonal="perfect calibration", points=True)
    return lines(table, _titles(plot, "Calibration curve"), notes, style)


def _titles(plot: PlotInput, name: str) -> Sequence[str]:
    """The name of a curve, or of curves of outer groups."""
    return [f"{name}s{plot.by_outer()}", f"{name}s"] if plot.outer else [name]


def _points(plot: PlotInput, x: pl.Expr, y: pl.Expr) -> pl.DataFrame:
    """The points of each curve, as many as can be seen."""
    frame = plot.frame
    series = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    level = pl.col(".level").cast(pl.String) if ".level" in frame.columns else pl.lit("")
    columns = [level.alias("panel"), series.alias("series"), x.alias("x"), y.alias("y")]
    if ".bin" in frame.columns:
        columns.append(pl.col(".n").alias("rows"))
    table = frame.select(columns).filter(pl.col("x").is_finite() & pl.col("y").is_finite())
    pixels = _PIXELS
    points = _one_per_pixel(table, pixels)
    while len(points) > MOST_POINTS and pixels > _FEWEST_PIXELS:
        pixels //= 2
        points = _one_per_pixel(table, pixels)
    return points


def _one_per_pixel(table: pl.DataFrame, pixels: int) -> pl.DataFrame:
    """The first point of each curve in each cell of a grid of so many pixels a side."""
    cells: list[pl.Expr] = []
    for axis in ("x", "y"):
        value = pl.col(axis)
        cells.append((value / (value.max() - value.min()) * pixels).round().alias(f"pixel on {axis}"))
    keys = ["panel", "series", "pixel on x", "pixel on y"]
    return table.with_columns(cells).unique(keys, keep="first", maintain_order=True).select(table.columns)
