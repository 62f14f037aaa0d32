"""Plots of tables: confusion matrices, comparisons with a reference, bounds of groups that are not observed."""

from __future__ import annotations

import polars as pl

from tidyfair.reports.charts import Picture, Span
from tidyfair.reports.dot_charts import dots
from tidyfair.reports.heat_maps import heat_map
from tidyfair.reports.plot_input import (
    OUTER,
    PlotInput,
    by_text,
    listed_titles,
    scale_of_metric,
    table_of,
    with_counts,
    with_group_text,
)

_OF_SCALES = {"ratio": 1.0, "odds_ratio": 1.0, "difference": 0.0}
"""The value of equality on each scale."""
_INTERVALS = "lines show confidence intervals"


def confusion_plot(plot: PlotInput) -> Picture:
    """Counts of labels against predictions, with their shares of each true label."""
    frame = plot.frame
    count = pl.col(".weight" if ".weight" in frame.columns else ".n").cast(pl.Float64)
    table = frame.select(
        panel=pl.col(OUTER) if plot.outer else pl.lit(""),
        row=pl.col(".truth").cast(pl.String).fill_null("null"),
        column=pl.col(".predicted").cast(pl.String).fill_null("null"),
        rows=count,
    )
    share = pl.col("rows") / pl.col("rows").sum().over("panel", "row")
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
    notes = ["shares are of all rows with the same truth"]
    return Picture(heat_map, table, titles, notes, names=("truth", "predicted"))


def comparison_plot(plot: PlotInput) -> Picture:
    """Each group compared with a reference."""
    frame = with_group_text(plot.frame)
    of_quantiles = ".quantile" in frame.columns
    if ".metric" in frame.columns:
        panel = plot.metric()
    else:
        panel = pl.lit("Ratio of quantiles" if of_quantiles else "Standardized difference")
    panel = panel + by_text()
    if ".level" in frame.columns:
        panel = panel + pl.format(" of {}", pl.col(".level")).fill_null("")
    frame = frame.with_columns(panel.alias("panel"), scale_of_metric(frame))
    labels, counted = with_counts(frame, pl.format("{}, {}", ".group", OUTER) if plot.outer else pl.col(".group"))
    status = pl.col(".status").str.replace_all("_", " ") if ".status" in frame.columns else pl.lit("no value")
    value = pl.col(".disparity")
    is_reference = (pl.col(".group") == pl.col(".reference")).fill_null(value=False)
    why = pl.when(is_reference).then(pl.lit("reference")).when(value.is_null()).then(status).otherwise(pl.lit(""))
    estimate = pl.when(~is_reference).then(value)
    table = table_of(frame, ".lower", ".upper", what=labels, estimate=estimate, why=why)
    scales = ["ratio" if of_quantiles else "difference"]
    if ".scale" in frame.columns:
        scales = frame[".scale"].unique().to_list()
    reference = _OF_SCALES.get(scales[0], 0.0) if len(scales) == 1 else None
    span = Span(low=0 if reference else None, reference=reference)
    if ".metric" in frame.columns:
        metrics = listed_titles(frame.select(plot.metric()).to_series())
        kind = {"ratio": "ratio", "odds_ratio": "odds ratio"}.get(scales[0], "difference")
        titles = [f"{metrics} of each group: {kind} to a reference", f"{metrics}, compared with a reference"]
    else:
        name = "Ratios of quantiles" if of_quantiles else "Standardized differences in means"
        titles = [f"{name}, compared with a reference", name]
    if ".below_four_fifths" in frame.columns:
        table = table.with_columns(limit=0.8)
    notes = [counted, _INTERVALS]
    return Picture(dots, table, titles, notes, span, limit="four fifths,")


def bounds_plot(plot: PlotInput) -> Picture:
    """Rates of groups that are known by probability, with all values that the data allow."""
    table = table_of(
        plot.frame,
        *(".estimate", ".lower", ".upper"),
        panel=plot.metric(),
        what=pl.format("{} ({})", ".group", pl.col(".n_expected").round(0).cast(pl.Int64)),
        expected_lower=".lower_bound",
        expected_upper=".upper_bound",
    )
    name = listed_titles(table["panel"])
    notes = ["grey: all rates that the data allow", "lines: their confidence intervals"]
    notes.append("in parentheses: expected rows")
    return Picture(dots, table, [f"{name} of groups known by probability", name], notes, Span(0, 1))


def missing_truth_plot(plot: PlotInput) -> Picture:
    """The difference in missing truths between those who were selected and those who were not."""
    group = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    what = pl.format("{} ({})", group, ".n")
    table = table_of(plot.frame, ".lower", ".upper", what=what, estimate=".difference")
    titles = ["Share without a truth: estimated positives less estimated negatives", "Missing truths by estimate"]
    return Picture(dots, table, titles, ["rows in parentheses", _INTERVALS], Span(-1, 1, 0))
