"""Plots of lines: curves of scores, and values over thresholds and other cuts."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.reports.charts import MOST_POINTS, Picture, Span, unique_names
from tidyfair.reports.line_charts import MOST_BANDS, lines
from tidyfair.reports.plot_input import (
    CUT_TITLES,
    OUTER,
    UNIT,
    PlotInput,
    by_words,
    listed_names,
    listed_titles,
    table_of,
)
from tidyfair.specs import POINTS

_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that fall on the same of so many pixels of an axis look like one."""
_LEVEL = 0.95
_MOST_IN_ONE = 2
"""The number of calibration curves in a panel."""
_TREAT_ALL = "net_benefit_of_treating_all"
_FEW_POINTS = 12
"""The number of times or quantile levels up to which there is a dot with its interval at each, and nothing between."""


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


def risk_coverage_plot(plot: PlotInput) -> Picture:
    """The risk of the rows that a model decides about over their share; of groups, over that of all rows."""
    share = ".overall_coverage" if plot.outer else ".coverage"
    table = _points(plot, pl.col(share), pl.col(".risk"))
    x = "Coverage of all groups together" if plot.outer else "Coverage (share of rows decided about)"
    titles, span = _titles(plot, "Risk-coverage curve"), Span(low=0)
    y = "Risk (share of errors among these)"
    return Picture(lines, table, titles, (), span, x=[x], y=[y, "Risk"], x_span=Span(0, 1))


def feature_plot(plot: PlotInput) -> Picture:
    """A metric over a feature, with its simultaneous band."""
    values = plot.frame
    series = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    table = values.select(
        panel=plot.metric(), series=series, x=pl.col(".at").cast(pl.Float64), estimate=".estimate", lower=".lower",
        upper=".upper",
    ).drop_nulls("estimate")  # fmt: skip
    feature, metric = values[".by"][0], table["panel"][0]
    name = f"{metric} over {feature}"
    titles = [f"{name} by {' and '.join(plot.outer)}", name] if plot.outer else [name]
    notes = ["bands hold the whole curve"]
    return Picture(lines, table.with_columns(panel=pl.lit("")), titles, notes, x=[feature], y=[metric])


def calibration_plot(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score, with intervals where rows count alike; of isotonic bins, as steps."""
    from tidyfair.intervals import wilson, z_value  # noqa: PLC0415 - only for intervals

    is_isotonic = plot.frame[".lowest_score"].count() > 0
    if is_isotonic:
        ends = pl.concat_list(".lowest_score", ".highest_score").alias(".mean_score")
        plot = replace(plot, frame=plot.frame.with_columns(ends).explode(".mean_score"))
    table = _points(plot, pl.col(".mean_score"), pl.col(".event_rate"), rows=".n")
    notes: list[str] = []
    if is_isotonic:
        notes.append("steps: shares of events that rise with the score (isotonic regression)")
    elif not plot.frame[".weight"].count():
        rows = table["rows"].cast(pl.Float64).to_numpy()
        lower, upper = wilson(table["estimate"].to_numpy(), rows, z_value(_LEVEL))
        table = table.with_columns(lower=lower, upper=upper)
        notes.append(f"lines: {plot.limits} of each bin (Wilson)")
    if table["series"].n_unique() > _MOST_IN_ONE and not is_isotonic:
        # intervals of many curves would hide each other
        panel = pl.when(pl.col("panel") == "").then("series").otherwise(pl.format("{}, {}", "series", "panel"))
        table = table.with_columns(panel=panel, series=pl.lit("event rate"))
    return Picture(
        lines, table, _titles(plot, "Calibration curve"), notes, x=["Score" if is_isotonic else "Mean score"],
        y=["Event rate"], square=True, diagonal="perfect calibration", points=not is_isotonic,
    )  # fmt: skip


def cumulative_plot(plot: PlotInput) -> Picture:
    """Events less scores, cumulated over the rows by their score, and what chance gives."""
    from tidyfair.intervals import z_value  # noqa: PLC0415 - only here

    table = _points(plot, pl.col(".share"), pl.col(".cumulative_error"), error=".std_error")
    reach = z_value(_LEVEL) * pl.col("error").cast(pl.Float64)
    table = table.with_columns(lower=-reach, upper=reach).drop("error")
    notes = ["lines rise where risks are underestimated, and fall where they are overestimated"]
    if table["series"].n_unique() <= MOST_BANDS:
        notes.append("bands hold 95% of calibrated scores at each point")
    titles, span = _titles(plot, "Cumulative calibration curve"), Span(reference=0)
    x, y = "Share of rows, from the lowest score", "Events less scores, per row"
    return Picture(lines, table, titles, notes, span, x=[x], y=[y], x_span=Span(0, 1))


def _titles(plot: PlotInput, name: str) -> list[str]:
    """The name of a curve, or of curves of outer groups."""
    return [f"{name}s by {' and '.join(plot.outer)}", f"{name}s"] if plot.outer else [name]


def _points(plot: PlotInput, x: pl.Expr, y: pl.Expr, **columns: str) -> pl.DataFrame:
    """The points of each curve, as many as can be seen: the first one of each cell of a grid."""
    table = plot.frame.select(
        panel=pl.col(".level").cast(pl.String).fill_null(""),
        series=pl.col(OUTER) if plot.outer else pl.lit("all rows"),
        x=x,
        estimate=y,
        **{"unit": pl.col(UNIT)} if UNIT in plot.frame.columns else {},
        **columns,
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


def groups_over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str) -> Picture:
    """A panel for each metric and feature, and a color for each group."""
    values = _with_treat_all(_with_cuts(frame, cut), cut, [OUTER] if plot.outer else [])
    series = plot.with_outer(pl.col(".group"))
    metrics = listed_titles(values.select(plot.metric()).to_series())
    name = f"{metrics} by {listed_names(map(by_words, values['.by']))}"
    return _over_cuts(plot, frame, cut, values.with_columns(series=series), name)


def results_over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str) -> Picture:
    """A panel for all metrics of a scale, and a color for each; with outer groups, these have the colors."""
    values = plot.with_scales(_with_cuts(frame, cut)).with_columns(series="what")
    if plot.outer:
        values = values.with_columns(panel="what", series=OUTER)
    return _over_cuts(plot, frame, cut, values, listed_titles(values["what"]))


def _with_cuts(frame: pl.DataFrame, cut: str) -> pl.DataFrame:
    """The values that depend on the cut."""
    values = frame.filter(pl.col(cut).is_not_null())
    if values.is_empty():
        msg = f"autoplot() draws values over the {CUT_TITLES[cut]}, and no metric of the result has any."
        raise ArgumentError(msg)
    return values


def _over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str, values: pl.DataFrame, name: str) -> Picture:
    """Lines of values that have a `panel` and a `series`."""
    words = CUT_TITLES[cut]
    # no more cuts than a chart can hold points
    step = math.ceil(len(values) / MOST_POINTS)
    kept = values[cut].unique().sort().gather_every(step)
    values = values.filter(pl.col(cut).is_in(kept.implode()))
    marks = ("series", ".lower", ".upper", *([".dashed"] if ".dashed" in values.columns else []))
    table = table_of(values, *marks, x=pl.col(cut).cast(pl.Float64), estimate=".estimate")
    # different groups can have the same text
    table = unique_names(table, "series", "panel", "x")
    notes: list[str] = []
    others = frame.filter(pl.col(cut).is_null()).select(plot.metric()).to_series()
    without = others.unique(maintain_order=True)
    if len(without):
        verb = "does" if len(without) == 1 else "do"
        notes.append(f"not drawn: {', '.join(without)}, which {verb} not depend on the {words}")
    are_few = cut in POINTS and table["x"].n_unique() <= _FEW_POINTS
    if "lower" in table.columns:
        notes.append(_note_on_intervals(plot, table, "vertical lines" if are_few else "bands"))
    if "dashed" in table.columns:
        notes.append("dotted: treat all; line at 0: treat none")
    titles = [f"{name} over the {words}", name]
    return Picture(lines, table, titles, notes, x=[words.capitalize()], at=plot.at, points=are_few)


def _note_on_intervals(plot: PlotInput, table: pl.DataFrame, shape: str) -> str:
    """The marks of intervals; none where there are many lines."""
    lines_of_panels = table.group_by("panel").agg(pl.col("series").n_unique())["series"]
    many = f"more than {MOST_BANDS} lines are drawn without"
    if (lines_of_panels > MOST_BANDS).all():
        return f"{many} their {plot.limits}"
    return f"{shape}: {plot.limits}" + (f"; {many}" if (lines_of_panels > MOST_BANDS).any() else "")


def _with_treat_all(values: pl.DataFrame, cut: str, outer: list[str]) -> pl.DataFrame:
    """Net benefit with that of treating all beside it, in place of a panel of its own.

    Net benefit depends on the costs of errors alone, so that its lines of reference are those of the same group.
    """
    if not {_TREAT_ALL, "net_benefit"} <= set(values[".metric"]):
        return values
    keys = [".by", ".group", ".level", cut, *outer]
    odds = pl.col(cut) / (1 - pl.col(cut))
    treat_all = pl.col(".estimate")
    # net benefit of treating all is the rate of events less the odds times the rate of the others
    base_rate = (treat_all + odds) / (1 + odds)
    beside = values.filter(pl.col(".metric") == _TREAT_ALL).select(
        *keys, treat_all.alias("net_benefit"), (treat_all / base_rate).alias("standardized_net_benefit")
    )
    beside = beside.unpivot(index=keys, variable_name=".metric", value_name=".dashed")
    others = values.filter(pl.col(".metric") != _TREAT_ALL)
    return others.join(beside, on=[".metric", *keys], how="left", nulls_equal=True, maintain_order="left")
