"""Plots of tables: confusion matrices, comparisons with a reference, bounds of groups that are not observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tidyfair.reports.dot_charts import DotStyle, dots
from tidyfair.reports.heat_maps import heat_map
from tidyfair.reports.layout import Span
from tidyfair.reports.plot_input import (
    OUTER,
    PlotInput,
    by_text,
    in_sentence,
    listed_names,
    plain,
    scales_of_metrics,
    with_counts,
    with_group_text,
)

if TYPE_CHECKING:
    from tidyfair.reports.charts import Picture

_OF_SCALES = {"ratio": 1.0, "odds_ratio": 1.0, "difference": 0.0}
"""The value of equality on each scale."""
_INTERVALS = "lines show confidence intervals"


def confusion_plot(plot: PlotInput) -> Picture:
    """Counts of labels against predictions, with their shares of each true label."""
    frame = plot.frame
    panel = pl.col(OUTER) if plot.outer else pl.lit("")
    count = ".n" if ".weight" not in frame.columns else ".weight"
    keys = ["panel", "row"]
    table = frame.select(
        panel.alias("panel"),
        pl.col(".truth").cast(pl.String).fill_null("null").alias("row"),
        pl.col(".predicted").cast(pl.String).fill_null("null").alias("column"),
        pl.col(count).cast(pl.Float64).alias("rows"),
    )
    share = pl.col("rows") / pl.col("rows").sum().over(keys)
    table = table.with_columns(share.fill_nan(None).alias("estimate"))
    texts = [f"{rows:,.0f}" if rows == int(rows) else f"{rows:,.1f}" for rows in table["rows"]]
    shares = ["" if value is None else f"{value * 100:.1f} %" for value in table["estimate"]]
    table = table.with_columns(pl.Series("text", texts), pl.Series("below", shares))
    right = float(table.filter(pl.col("row") == pl.col("column"))["rows"].sum())
    total = float(table["rows"].sum())
    titles = [f"{right / total * 100:.1f} % of {total:,.0f} predictions are right"] if total else []
    titles.append("Confusion matrix")
    if plot.outer:
        titles = [f"Confusion matrices{plot.by_outer()}", "Confusion matrices"]
    return heat_map(table, titles, ["shares are of all rows with the same truth"], "truth", "predicted")


def comparison_plot(plot: PlotInput) -> Picture:
    """Each group compared with a reference."""
    frame = with_group_text(plot.frame)
    has_metric = ".metric" in frame.columns
    of_quantiles = ".quantile" in frame.columns
    what = "Ratio of quantiles" if of_quantiles else "Standardized difference"
    panel = (plot.metric() if has_metric else pl.lit(what)) + by_text()
    if ".level" in frame.columns:
        panel = panel + pl.format(" of {}", pl.col(".level")).fill_null("")
    is_reference = (pl.col(".group") == pl.col(".reference")).fill_null(value=False)
    status = pl.col(".status").str.replace_all("_", " ") if ".status" in frame.columns else pl.lit("no value")
    group = pl.format("{}, {}", ".group", OUTER) if plot.outer else pl.col(".group")
    value = pl.col(".disparity")
    frame = frame.with_columns(panel.alias("panel"))
    labels, counted = with_counts(frame, group)
    table = frame.select(
        "panel",
        labels.alias("what"),
        pl.when(~is_reference).then(value).alias("estimate"),
        *plain(frame, ".lower", ".upper"),
        pl.when(is_reference).then(pl.lit("reference"))
        .when(value.is_null()).then(status).otherwise(pl.lit("")).alias("why"),
    )  # fmt: skip
    scales = ["ratio" if of_quantiles else "difference"]
    if ".scale" in frame.columns:
        scales = frame[".scale"].unique().to_list()
    reference = _OF_SCALES.get(scales[0], 0.0) if len(scales) == 1 else None
    span = Span(0 if reference else None, None, reference)
    spans = dict.fromkeys(table["panel"].unique().to_list(), span)
    if has_metric:
        metrics = listed_names(in_sentence(frame.select(plot.metric()).to_series()))
        kind = {"ratio": "ratio", "odds_ratio": "odds ratio"}.get(scales[0], "difference")
        titles = [f"{metrics} of each group: {kind} to a reference", f"{metrics}, compared with a reference"]
    else:
        name = "Ratios of quantiles" if of_quantiles else "Standardized differences in means"
        titles = [f"{name}, compared with a reference", name]
    if ".below_four_fifths" in frame.columns:
        table = table.with_columns(pl.lit(0.8).alias("limit"))
    return dots(table, titles, [counted, _INTERVALS], DotStyle("four fifths,", spans, scales=scales_of_metrics(frame)))


def bounds_plot(plot: PlotInput) -> Picture:
    """Rates of groups that are known by probability, with all values that the data allow."""
    frame = plot.frame
    table = frame.select(
        plot.metric().alias("panel"),
        pl.format("{} ({})", ".group", pl.col(".n_expected").round(0).cast(pl.Int64)).alias("what"),
        pl.col(".estimate").alias("estimate"),
        pl.col(".lower_bound").alias("expected_lower"),
        pl.col(".upper_bound").alias("expected_upper"),
        *plain(frame, ".lower", ".upper"),
    )
    name = listed_names(in_sentence(table["panel"]))
    spans = dict.fromkeys(table["panel"].unique().to_list(), Span(0, 1))
    notes = [
        "grey: all rates that the data allow",
        "lines: their confidence intervals",
        "in parentheses: expected rows",
    ]
    return dots(table, [f"{name} of groups known by probability", name], notes, DotStyle(spans=spans))


def missing_truth_plot(plot: PlotInput) -> Picture:
    """The difference in missing truths between those who were selected and those who were not."""
    frame = plot.frame
    group = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    table = frame.select(
        pl.lit("").alias("panel"),
        pl.format("{} ({})", group, ".n").alias("what"),
        pl.col(".difference").alias("estimate"),
        *plain(frame, ".lower", ".upper"),
    )
    titles = [
        "Share without a truth: estimated positives less estimated negatives", "Missing truths by estimate"
    ]  # fmt: skip
    return dots(table, titles, ["rows in parentheses", _INTERVALS], DotStyle(spans={"": Span(-1, 1, 0)}))
