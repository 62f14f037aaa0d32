"""Plots of curves of scores: ROC, precision and recall, gain, lift and calibration."""

from __future__ import annotations

import polars as pl

from tidyfair.reports.charts import MOST_POINTS, Picture, Span
from tidyfair.reports.line_charts import lines
from tidyfair.reports.plot_input import OUTER, PlotInput

_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that fall on the same of so many pixels of an axis look like one."""
_LEVEL = 0.95
_MOST_IN_ONE = 2
"""The number of calibration curves in a panel."""


def roc_plot(plot: PlotInput) -> Picture:
    """Sensitivity over the false positive rate."""
    table = _points(plot, 1 - pl.col("specificity"), pl.col("sensitivity"))
    x, y = "False positive rate", "Sensitivity (true positive rate)"
    return Picture(lines, table, _titles(plot, "ROC curve"), x=[x], y=[y], square=True, diagonal="chance")


def precision_recall_plot(plot: PlotInput) -> Picture:
    """Precision over recall."""
    table = _points(plot, pl.col("recall"), pl.col("precision"))
    x, y = "Recall (true positive rate)", "Precision (positive predictive value)"
    return Picture(lines, table, _titles(plot, "Precision-recall curve"), x=[x], y=[y], square=True)


def gain_plot(plot: PlotInput) -> Picture:
    """The share of events found over the share of rows tested."""
    table = _points(plot, pl.col(".percent_tested") / 100, pl.col(".percent_found") / 100)
    x, y = "Share of rows tested", "Share of events found"
    return Picture(lines, table, _titles(plot, "Gain curve"), x=[x], y=[y], square=True, diagonal="chance")


def lift_plot(plot: PlotInput) -> Picture:
    """Lift over the share of rows tested."""
    table = _points(plot, pl.col(".percent_tested") / 100, pl.col(".lift"))
    notes, span = ["line at 1: as many events as by chance"], Span(low=0, reference=1)
    titles = _titles(plot, "Lift curve")
    return Picture(lines, table, titles, notes, span, x=["Share of rows tested"], y=["Lift"], x_span=Span(0, 1))


def calibration_plot(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score, with intervals where rows count alike."""
    from tidyfair.intervals.proportions import wilson, z_value  # noqa: PLC0415 - only for intervals

    table = _points(plot, pl.col(".mean_score"), pl.col(".event_rate"))
    notes: list[str] = []
    if ".weight" not in plot.frame.columns:
        rows = table["rows"].cast(pl.Float64).to_numpy()
        lower, upper = wilson(table["estimate"].to_numpy(), rows, z_value(_LEVEL))
        table = table.with_columns(lower=lower, upper=upper)
        notes.append("lines show the 95 % confidence interval of each bin (Wilson)")
    if table["series"].n_unique() > _MOST_IN_ONE:
        # intervals of many curves would hide each other
        panel = pl.when(pl.col("panel") == "").then("series").otherwise(pl.format("{}, {}", "series", "panel"))
        table = table.with_columns(panel=panel, series=pl.lit("event rate"))
    return Picture(
        lines, table, _titles(plot, "Calibration curve"), notes, x=["Mean score"], y=["Event rate"], square=True,
        diagonal="perfect calibration", points=True,
    )  # fmt: skip


def _titles(plot: PlotInput, name: str) -> list[str]:
    """The name of a curve, or of curves of outer groups."""
    return [f"{name}s{plot.by_outer()}", f"{name}s"] if plot.outer else [name]


def _points(plot: PlotInput, x: pl.Expr, y: pl.Expr) -> pl.DataFrame:
    """The points of each curve, as many as can be seen: the first one of each cell of a grid."""
    has_levels, has_bins = ".level" in plot.frame.columns, ".bin" in plot.frame.columns
    table = plot.frame.select(
        panel=pl.col(".level").cast(pl.String) if has_levels else pl.lit(""),
        series=pl.col(OUTER) if plot.outer else pl.lit("all rows"),
        x=x,
        estimate=y,
        **({"rows": pl.col(".n")} if has_bins else {}),
    ).filter(pl.all_horizontal(pl.col("x", "estimate").is_finite()))
    pixels = _PIXELS
    while True:
        ends = pl.col("x", "estimate")
        cell = (ends / (ends.max() - ends.min()) * pixels).round()
        keys = [pl.col("panel"), pl.col("series"), cell]
        points = table.filter(pl.struct(keys).is_first_distinct())
        if len(points) <= MOST_POINTS or pixels <= _FEWEST_PIXELS:
            return points
        pixels //= 2
