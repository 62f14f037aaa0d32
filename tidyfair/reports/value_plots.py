"""Plots of values: metrics and disparities, those of groups, crossed features, and folds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.metrics.titles import capitalized, cut_in_words, in_prose
from tidyfair.reports.charts import Picture, number_text
from tidyfair.reports.cut_plots import cut_of, groups_over_cuts, results_over_cuts
from tidyfair.reports.dot_charts import dots
from tidyfair.reports.heat_maps import heat_map
from tidyfair.reports.plot_input import (
    OUTER,
    PlotInput,
    by_words,
    crossed_features,
    listed_names,
    listed_titles,
    plain,
    scales_of_metrics,
    span_of_metric,
    with_counts,
    with_group_text,
    with_scales,
)
from tidyfair.reports.tables import left_out_in_words
from tidyfair.specs.result_columns import POINTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.reports.charts import Span

_INTERVALS = "lines show confidence intervals"
_VERBS = {
    "pass": ("passes", "pass"), "fail": ("fails", "fail"),
    "not enough evidence": ("needs more evidence", "need more evidence"), "within": ("is kept", "are kept"),
    "above the limit": ("is exceeded", "are exceeded"), "below the limit": ("is missed", "are missed"),
    "undecided": ("is undecided", "are undecided"),
}  # fmt: skip
"""Verdicts of one limit, and of several, in words."""
_ALONE = "hollow: the group alone"
_LARGEST_CROSSING = 400
"""The number of cells of a heat map that can still be read."""


def results_plot(plot: PlotInput) -> Picture:
    """Metrics and disparities, with the groups that these leave out."""
    picture = _results_picture(plot)
    if ".left_out" not in plot.frame.columns:
        return picture
    several = plot.frame[".by"].drop_nulls().n_unique() > 1
    entries: list[dict[str, Any]] = []
    for by, left_out in plot.frame.select(".by", ".left_out").rows():
        for entry in left_out or ():
            name = f"{by_words(by)} {entry['group']}" if several else entry["group"]
            entries.append({**entry, "group": name})
    return _with_note(picture, "left out", entries)


def _with_note(picture: Picture, start: str, entries: Sequence[Mapping[str, Any]]) -> Picture:
    """A picture with a note on the groups that are left out, if there are any."""
    left_out = left_out_in_words(entries, metric=in_prose)
    return replace(picture, notes=[*picture.notes, f"{start}: {left_out}"]) if left_out else picture


def _results_picture(plot: PlotInput) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    cut, judged = cut_of(plot.frame), ".verdict" in plot.frame.columns
    if judged and cut in POINTS:
        return _verdicts_at_points(plot)
    frame = plot.frame.with_columns(plot.compared(over_cuts=cut is not None).alias("what"))
    over_outer = bool(plot.outer) and not judged
    if plot.expected is not None and (cut or over_outer):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut:
        return results_over_cuts(plot, frame, cut)
    frame, spans = with_scales(plot, frame)
    if over_outer:
        return _over_outer(plot, frame, spans)
    if plot.expected is not None:
        frame = _with_expected(frame, plot.expected)
    optional = (".limit", ".verdict", ".lower", ".upper", ".expected_lower", ".expected_upper")
    estimate = pl.col(".estimate").alias("estimate")
    table = frame.select("panel", plot.label().alias("what"), estimate, *plain(frame, *optional), *_reason(frame))
    notes = [
        _INTERVALS if "lower" in table.columns else "",
        "grey: expected if groups are equal" if "expected_lower" in table.columns else "",
    ]
    title = listed_titles(frame["what"])
    titles = [*_verdicts_in_words(frame), title] if judged else [title]
    return Picture(dots, table, titles, notes, spans)


def _verdicts_at_points(plot: PlotInput) -> Picture:
    """Verdicts at several times or quantile levels: a panel for each metric, as lines have no room for limits."""
    frame, spans = with_scales(plot, plot.frame.with_columns(plot.compared(over_cuts=True).alias("what")))
    names = [capitalized(cut_in_words(row).removeprefix("at ")) for row in frame.iter_rows(named=True)]
    points = pl.Series("point", names, dtype=pl.String)
    rows = pl.when(points == "").then("what").otherwise(points)
    if plot.outer:
        rows = pl.format("{}, {}", rows, OUTER)
    optional = (".limit", ".verdict", ".lower", ".upper")
    estimate = pl.col(".estimate").alias("estimate")
    table = frame.select(
        pl.col("what").alias("panel"), rows.alias("what"), estimate, *plain(frame, *optional), *_reason(frame)
    )  # fmt: skip
    of_panels = {what: spans[panel] for what, panel in frame.select("what", "panel").unique().rows()}
    alone = frame["what"][0] if len(of_panels) == 1 else ""
    return Picture(dots, table, _verdicts_in_words(frame), [alone, _INTERVALS], of_panels)


def _reason(frame: pl.DataFrame) -> list[pl.Expr]:
    """The reason why there is no value, where there is none."""
    if not frame[".estimate"].has_nulls():
        return []
    status = pl.col(".status").str.replace_all("_", " ") if ".status" in frame.columns else pl.lit("no value")
    return [pl.when(pl.col(".estimate").is_null()).then(status).otherwise(pl.lit("")).alias("why")]


def _verdicts_in_words(frame: pl.DataFrame) -> list[str]:
    """The numbers of verdicts as a sentence."""
    counts = frame[".verdict"].value_counts()
    number = dict(counts.rows())
    total = len(frame)
    if total == 1:
        one, _ = _VERBS.get(frame[".verdict"][0], (f"is {frame['.verdict'][0]}", ""))
        return [f"{frame['what'][0]} {one}"]
    parts: list[str] = []
    for verdict, (one, several) in _VERBS.items():
        many = number.get(verdict, 0)
        if many:
            parts.append(f"{many} {one if many == 1 else several}")
    return [f"Of {total} limits, {' and '.join(parts) if len(parts) < 3 else ', '.join(parts)}", ", ".join(parts)]


def _with_expected(frame: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Disparities with the range that is expected if groups are equal."""
    keys = [".metric", ".by"]
    if OUTER in expected.columns:
        keys.append(OUTER)
    ranges = expected.select(*keys, ".expected_lower", ".expected_upper").unique(keys)
    joined = frame.join(ranges, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if joined[".expected_lower"].null_count() == len(joined):
        msg = "`beside` holds none of the disparities of the result."
        raise ArgumentError(msg)
    return joined


def groups_plot(plot: PlotInput) -> Picture:
    """Values of groups, with those that are drawn and not compared."""
    picture = _groups_picture(plot)
    needed = {
        "group": ".group",
        "metric": ".metric",
        "level": ".level",
        "status": ".status",
        "denominator": ".denominator",
    }
    if not set(needed.values()) <= set(plot.frame.columns):
        return picture
    is_small = pl.col(".status").is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value])
    small = with_group_text(plot.frame.filter(is_small & pl.col(".estimate").is_not_null()))
    return _with_note(picture, "not compared", small.select(**needed).to_dicts())


def _groups_picture(plot: PlotInput) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = plot.frame
    grouped = frame.filter(pl.col(".by").is_not_null()) if ".by" in frame.columns else frame
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    one_feature = ".by" in grouped.columns and grouped[".by"].n_unique() == 1
    cut = cut_of(frame)
    grouped = grouped.with_columns(plot.panel(one_feature=one_feature, over_cuts=cut is not None).alias("panel"))
    spans = {panel: span_of_metric(metric) for panel, metric in grouped.select("panel", ".metric").unique().rows()}
    if cut is not None:
        return groups_over_cuts(plot, with_group_text(grouped), cut)
    if plot.outer:
        return _over_outer(plot, with_group_text(grouped).with_columns(pl.col(".group").alias("what")), spans)
    if is_crossed(grouped) and plot.kind != "dots":
        return _crossing(plot, grouped, spans)
    return _group_dots(plot, frame, with_group_text(grouped), spans)


def is_crossed(frame: pl.DataFrame) -> bool:
    """True for the groups of two features crossed, and of nothing else."""
    if ".by" not in frame.columns:
        return False
    by = frame[".by"].drop_nulls().unique().to_list()
    crossed = crossed_features(frame)
    return len(by) == 1 and len(crossed.get(by[0], [])) == 2


def _group_dots(plot: PlotInput, frame: pl.DataFrame, grouped: pl.DataFrame, spans: dict[str, Span]) -> Picture:
    """Values of groups as dots, with a line at the value of all rows."""
    labels, counted = with_counts(grouped, pl.col(".group"))
    columns = [
        "panel", labels.alias("what"), pl.col(".estimate").alias("estimate"), *plain(grouped, ".lower", ".upper"),
        *_reason(grouped),
    ]  # fmt: skip
    if ".by" in frame.columns and frame[".by"].has_nulls():
        keys = [name for name in (".metric", ".level") if name in frame.columns]
        overall = frame.filter(pl.col(".by").is_null()).select(*keys, pl.col(".estimate").alias("limit"))
        grouped = grouped.join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
        columns.append("limit")
    columns += _alone(grouped)
    notes = [
        counted,
        _INTERVALS if ".lower" in grouped.columns else "",
        _ALONE if ".raw" in frame.columns else "",
    ]
    titles = _titles_of_groups(plot, grouped)
    return Picture(dots, grouped.select(columns), titles, notes, spans, scales_of_metrics(grouped), limit="all rows")


def _alone(grouped: pl.DataFrame) -> list[pl.Expr]:
    """The rates of groups by themselves, beside those that learn from the others."""
    return [pl.col(".raw").alias("hollow")] if ".raw" in grouped.columns else []


def _titles_of_groups(plot: PlotInput, grouped: pl.DataFrame) -> list[str]:
    """The range of a single metric as a sentence, or the names of several."""
    by = listed_names(by_words(text) for text in grouped[".by"]) if ".by" in grouped.columns else "group"
    metrics = listed_titles(grouped.select(plot.metric()).to_series())
    title = f"{metrics} by {by}"
    finite = grouped.filter(pl.col(".estimate").is_finite()).sort(".estimate", maintain_order=True)
    if grouped["panel"].n_unique() > 1 or len(finite) < 2 or finite[".estimate"].n_unique() == 1:
        return [title]
    low, high = finite.row(0, named=True), finite.row(-1, named=True)
    low_text, high_text = number_text(low[".estimate"]), number_text(high[".estimate"])
    return [
        f"{metrics} by {by} is {low_text} for {low['.group']} and {high_text} for {high['.group']}",
        f"{metrics} by {by} ranges from {low_text} to {high_text}",
        title,
    ]


def _crossing(plot: PlotInput, grouped: pl.DataFrame, spans: dict[str, Span]) -> Picture:
    """Values of two features crossed: a heat map, or panels of dots where there are intervals."""
    by = grouped[".by"].drop_nulls()[0]
    features = crossed_features(grouped)[by]
    # as in `.group`: texts that would read alike are in quotes
    parts = [texts_of(grouped.select(name)) for name in features]
    grouped = grouped.with_columns(parts[0].alias("first"), parts[1].alias("second"))
    # the feature with fewer values heads the columns
    row, column = (0, 1) if parts[0].n_unique() >= parts[1].n_unique() else (1, 0)
    names = ("first", "second")
    titles = _titles_of_groups(plot, with_group_text(grouped))
    cells = grouped["first"].n_unique() * grouped["second"].n_unique()
    if (".lower" in grouped.columns and plot.kind is None) or cells > _LARGEST_CROSSING:
        several = grouped["panel"].n_unique() > 1
        value = pl.col(names[column])
        panel = pl.format("{}, {}", "panel", value) if several else value
        table = grouped.select(
            panel.alias("panel"),
            pl.col(names[row]).alias("what"),
            pl.col(".estimate").alias("estimate"),
            _rows_that_count(grouped).alias("rows"),
            *plain(grouped, ".lower", ".upper"),
            *_alone(grouped),
            *_reason(grouped),
        )
        own = grouped.select("panel", ".metric").with_columns(table["panel"].alias("of"))
        panels_of = dict(own.select("of", "panel").unique(maintain_order=True).rows())
        scales = scales_of_metrics(own.select(".metric", pl.col("of").alias("panel")))
        notes = [_INTERVALS, _ALONE if ".raw" in grouped.columns else ""]
        return Picture(dots, table, titles, notes, {of: spans[panel] for of, panel in panels_of.items()}, scales)
    text = [number_text(value) if value is not None else "\N{EN DASH}" for value in grouped[".estimate"]]
    table = grouped.select(
        "panel",
        pl.col(names[row]).alias("row"),
        pl.col(names[column]).alias("column"),
        pl.col(".estimate").alias("estimate"),
        pl.Series("text", text, dtype=pl.String),
        _size_of_cell(grouped).alias("below"),
        _rows_that_count(grouped).alias("rows"),
    )
    names = (features[row], features[column])
    return Picture(heat_map, table, titles, ["stronger colours: higher values"], names=names)


def _rows_that_count(grouped: pl.DataFrame) -> pl.Expr:
    """The rows that values are shares of, where that is known."""
    return pl.col(".denominator" if ".denominator" in grouped.columns else ".n")


def _size_of_cell(grouped: pl.DataFrame) -> pl.Expr:
    """The rows of a cell in words; nothing where they have weights."""
    count = _rows_that_count(grouped)
    return pl.when(count % 1 == 0).then(pl.format("n = {}", count.cast(pl.Int64))).otherwise(pl.lit(""))


def _over_outer(plot: PlotInput, frame: pl.DataFrame, spans: dict[str, Span]) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    of_groups = ".group" in frame.columns
    names = frame["panel"] if of_groups else frame["what"]
    each_outer = f"in each {' and '.join(plot.outer)}"
    titles = [f"{listed_titles(names)} {each_outer}", f"Values {each_outer}"]
    estimate = pl.col(".estimate").alias("estimate")
    if ".lower" in frame.columns:
        panel = pl.format("{}: {}", "panel", "what") if of_groups else pl.col("what")
        table = frame.select(
            panel.alias("panel"), pl.col(OUTER).alias("what"), estimate, *plain(frame, ".lower", ".upper"),
            *_reason(frame),
        )  # fmt: skip
        of_panels = frame.select(panel.alias("both"), "panel").unique().rows()
        scales = scales_of_metrics(frame.with_columns(panel.alias("panel"))) if of_groups else {}
        return Picture(dots, table, titles, [_INTERVALS], {both: spans[one] for both, one in of_panels}, scales)
    # chance adds to every unsigned disparity, so that a mean of disparities is biased
    has_mean = pl.lit(value=True) if of_groups else pl.col(".by").is_null()
    average = pl.col(".estimate").mean().over("panel", "what")
    mean = pl.when(has_mean & average.is_finite()).then(average).alias("mean")
    table = frame.select("panel", "what", pl.col(OUTER).alias("outer"), estimate, mean)
    notes = [f"ticks: one value per {' and '.join(plot.outer)}"]
    if table["mean"].count():
        without = " (none for disparities: chance adds to each)" if table["mean"].has_nulls() else ""
        notes.append(f"dot: their mean{without}")
    return Picture(dots, table, titles, notes, spans)
