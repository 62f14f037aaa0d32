"""Plots of models: two side by side, resamples of two, and many by performance and disparity."""

from __future__ import annotations

import polars as pl

from tidyfair.metrics.titles import short_title, title_of
from tidyfair.reports.charts import Picture, Span
from tidyfair.reports.dot_charts import dots, side_by_side
from tidyfair.reports.line_charts import scatter
from tidyfair.reports.plot_input import PlotInput, by_words, listed_names, table_of, with_scales


def models_plot(plot: PlotInput) -> Picture:
    """Two models side by side, and the change from one to the other."""
    frame = with_scales(plot, plot.frame.with_columns(pl.col(".one").alias(".estimate")))
    table = table_of(frame, ".one", ".other", ".lower", ".upper", what=plot.label(), estimate=".change")
    one, other = plot.models
    sure = frame.filter((pl.col(".lower") > 0) | (pl.col(".upper") < 0)) if ".lower" in frame.columns else frame.head(0)
    finding = f"{len(sure) or 'None'} of {len(frame)} values {'is' if len(sure) == 1 else 'are'} clearly different"
    # names of columns need not start with a capital letter
    titles = [f"{finding} between {one} and {other}", finding]
    notes = [f"change: {other} less {one}, with its confidence interval"]
    return Picture(side_by_side, table, titles, notes, names=plot.models)


def resamples_plot(plot: PlotInput) -> Picture:
    """Mean differences between two models on the same resamples."""
    value, error = pl.col(".difference"), pl.col(".std_error")
    table = table_of(plot.frame, what=plot.label(), estimate=value, lower=value - error, upper=value + error)
    one, other = plot.models
    title = f"{other} less {one}"
    titles = [f"{title}, on the same {plot.frame['.n'][0]} resamples", title, "Differences of two models"]
    return Picture(dots, table, titles, ["lines reach one standard error to each side"], Span(reference=0))


def frontier_plot(plot: PlotInput) -> Picture:
    """Models by their performance and their disparity."""
    frame = plot.frame
    table = table_of(
        frame,
        series=pl.col(".model").cast(pl.String),
        x=".performance",
        estimate=".disparity",
        front=pl.col(".on_frontier").fill_null(value=False),
        base=pl.int_range(pl.len()) == 0,
    )
    verdict = pl.col(".verdict")
    better = frame.filter(verdict.str.starts_with("less") & ~verdict.str.ends_with("worse performance"))
    titles = ["Performance and disparity of models"]
    if len(better):
        names = listed_names(better[".model"].cast(pl.String))
        titles.insert(0, f"{names} {'is' if len(better) == 1 else 'are'} less discriminatory")
    x, y = _axis_titles(frame, "performance"), _axis_titles(frame, "disparity")
    return Picture(scatter, table, titles, ["the lower, the fairer"], x=x, y=y)


def _axis_titles(frame: pl.DataFrame, side: str) -> list[str]:
    """The titles of an axis of the frontier: its metric, and a short one for narrow pictures."""
    if f".{side}_metric" not in frame.columns or frame.is_empty():
        return [side.capitalize()]
    name = frame[f".{side}_metric"][0]
    by = f" by {by_words(frame['.by'][0])}" if side == "disparity" else ""
    return [f"{title_of(name)}{by}", f"{short_title(name)}{by}"]
