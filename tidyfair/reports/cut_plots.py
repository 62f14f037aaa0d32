"""Plots of values over thresholds and other cuts: groups, metrics and disparities as lines, and decision curves."""

from __future__ import annotations

import math

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.reports.charts import MOST_POINTS, Picture, unique_names
from tidyfair.reports.line_charts import MOST_BANDS, lines
from tidyfair.reports.plot_input import (
    CUT_TITLES,
    OUTER,
    PlotInput,
    by_words,
    listed_names,
    listed_titles,
    table_of,
    with_scales,
)
from tidyfair.specs.result_columns import CUTS, GROUP_KEYS, POINTS

_TREAT_ALL = "net_benefit_of_treating_all"
_FEW_POINTS = 12
"""The number of times or quantile levels up to which there is a dot with its interval at each, and nothing between."""


def cut_of(frame: pl.DataFrame) -> str | None:
    """The column of a list of cuts, or of several points of predictions."""
    for name in CUTS:
        # points of predictions are lines only if there are several
        if name in frame.columns and (name not in POINTS or frame[name].drop_nulls().n_unique() > 1):
            return name
    return None


def groups_over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str) -> Picture:
    """A panel for each metric and feature, and a colour for each group."""
    values = _with_treat_all(_with_cuts(frame, cut), cut)
    series = pl.format("{}, {}", ".group", OUTER) if plot.outer else pl.col(".group")
    metrics = listed_titles(values.select(plot.metric(over_cuts=True)).to_series())
    name = f"{metrics} by {listed_names(by_words(text) for text in values['.by'])}"
    return _over_cuts(plot, frame, cut, values.with_columns(series=series), name)


def results_over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str) -> Picture:
    """A panel for all metrics of a scale, and a colour for each; with outer groups, these have the colours."""
    values = with_scales(plot, _with_cuts(frame, cut)).with_columns(series="what")
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
    marks = ("series", ".lower", ".upper", ".dashed")
    table = table_of(values, *marks, x=pl.col(cut).cast(pl.Float64), estimate=".estimate")
    # different groups can have the same text
    table = unique_names(table, "series", "panel", "x")
    notes: list[str] = []
    others = frame.filter(pl.col(cut).is_null()).select(plot.metric(over_cuts=True)).to_series()
    without = others.unique(maintain_order=True)
    if len(without):
        verb = "does" if len(without) == 1 else "do"
        notes.append(f"not drawn: {', '.join(without)}, which {verb} not depend on the {words}")
    are_few = cut in POINTS and table["x"].n_unique() <= _FEW_POINTS
    if "lower" in table.columns:
        notes.append(_note_on_intervals(table, "vertical lines" if are_few else "bands"))
    if "dashed" in table.columns:
        notes.append("dashed: treat all; line at 0: treat none")
    titles = [f"{name} over the {words}", name]
    return Picture(lines, table, titles, notes, x=[words.capitalize()], at=plot.at, points=are_few)


def _note_on_intervals(table: pl.DataFrame, shape: str) -> str:
    """The marks of intervals; none where there are many lines."""
    lines_of_panels = table.group_by("panel").agg(pl.col("series").n_unique())["series"]
    many = f"more than {MOST_BANDS} lines are drawn without"
    if (lines_of_panels > MOST_BANDS).all():
        return f"{many} their confidence intervals"
    return f"{shape} are confidence intervals" + (f"; {many}" if (lines_of_panels > MOST_BANDS).any() else "")


def _with_treat_all(values: pl.DataFrame, cut: str) -> pl.DataFrame:
    """Net benefit with that of treating all beside it, in place of a panel of its own.

    Net benefit depends on the costs of errors alone, so that its lines of reference are those of the same group.
    """
    metrics = set(values[".metric"])
    if not {_TREAT_ALL, "net_benefit"} <= metrics:
        return values
    identifying = (*GROUP_KEYS, OUTER)
    keys = [name for name in identifying if name in values.columns and name != ".metric"]
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
