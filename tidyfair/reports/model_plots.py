"""Plots of models: two side by side, resamples of two, and many by performance and disparity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.metrics.titles import short_title, title_of
from tidyfair.reports.dot_charts import DotStyle, dots, side_by_side
from tidyfair.reports.layout import Span
from tidyfair.reports.line_charts import scatter
from tidyfair.reports.plot_input import PlotInput, by_words, listed_names, plain, with_scales

if TYPE_CHECKING:
    from tidyfair.reports.charts import Picture


def models_plot(plot: PlotInput) -> Picture:
    """Two models side by side, and the change from one to the other."""
    frame = plot.frame.with_columns(pl.col(".one").alias(".estimate"), plot.label().alias("what"))
    frame, spans = with_scales(plot, frame)
    table = frame.select("panel", "what", *plain(frame, ".one", ".other", ".change", ".lower", ".upper"))
    one, other = plot.models
    sure = frame.filter((pl.col(".lower") > 0) | (pl.col(".upper") < 0)) if ".lower" in frame.columns else frame.head(0)
    total = len(frame)
    finding = f"{len(sure) or 'None'} of {total} values {'is' if len(sure) == 1 else 'are'} clearly different"
    # names of columns need not start with a capital letter
    titles = [f"{finding} between {one} and {other}", finding]
    notes = [f"change: {other} less {one}, with its confidence interval"]
    return side_by_side(table, titles, notes, plot.models, DotStyle(spans=spans))


def resamples_plot(plot: PlotInput) -> Picture:
    """Mean differences between two models on the same resamples."""
    frame = plot.frame
    value, error = pl.col(".difference"), pl.col(".std_error")
    table = frame.select(
        pl.lit("").alias("panel"), plot.label().alias("what"), value.alias("estimate"),
        (value - error).alias("lower"), (value + error).alias("upper"),
    )  # fmt: skip
    one, other = plot.models
    title = f"{other} less {one}"
    titles = [f"{title}, on the same {frame['.n'][0]} resamples", title, "Differences of two models"]
    notes = ["lines reach one standard error to each side"]
    return dots(table, titles, notes, DotStyle(spans={"": Span(reference=0)}))


def frontier_plot(plot: PlotInput) -> Picture:
    """Models by their performance and their disparity."""
    frame = plot.frame
    table = frame.select(
        pl.lit("").alias("panel"),
        pl.col(".model").cast(pl.String).alias("series"),
        pl.col(".performance").alias("x"),
        pl.col(".disparity").alias("y"),
        pl.col(".on_frontier").fill_null(value=False).alias("front"),
        pl.Series("base", [index == 0 for index in range(len(frame))]),
    )
    verdict = pl.col(".verdict")
    better = frame.filter(verdict.str.starts_with("less") & ~verdict.str.ends_with("worse performance"))
    titles = ["Performance and disparity of models"]
    if len(better):
        names = listed_names(better[".model"].cast(pl.String))
        titles.insert(0, f"{names} {'is' if len(better) == 1 else 'are'} less discriminatory")
    return scatter(
        table, titles, ["the lower, the fairer"], _axis_titles(frame, "performance"), _axis_titles(frame, "disparity")
    )


def _axis_titles(frame: pl.DataFrame, side: str) -> list[str]:
    """The titles of an axis of the frontier: its metric, and a short one for narrow pictures."""
    if f".{side}_metric" not in frame.columns or frame.is_empty():
        return [side.capitalize()]
    name = frame[f".{side}_metric"][0]
    by = f" by {by_words(frame['.by'][0])}" if side == "disparity" else ""
    return [f"{title_of(name)}{by}", f"{short_title(name)}{by}"]
