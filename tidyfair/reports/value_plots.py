"""Plots of values: metrics and disparities, those of groups, crossed features, and folds; confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation import texts_of
from tidyfair.metrics import capitalized, cut_in_words, in_prose
from tidyfair.reports.charts import Picture, Span, number_text
from tidyfair.reports.curve_plots import groups_over_cuts, results_over_cuts
from tidyfair.reports.dot_charts import dots
from tidyfair.reports.heat_maps import heat_map
from tidyfair.reports.plot_input import (
    OUTER,
    PlotInput,
    by_words,
    crossed_features,
    has_intervals,
    listed_names,
    listed_titles,
    of_level,
    reason,
    table_of,
    with_group_text,
    with_spans,
)
from tidyfair.reports.tables import left_out_in_words
from tidyfair.specs import POINTS
from tidyfair.specs.result_kinds import METRICS

_VERBS = {
    "pass": ("passes", "pass"), "fail": ("fails", "fail"),
    "not enough evidence": ("needs more evidence", "need more evidence"), "within": ("is kept", "are kept"),
    "above the limit": ("is exceeded", "are exceeded"), "below the limit": ("is missed", "are missed"),
    "undecided": ("is undecided", "are undecided"),
}  # fmt: skip
"""Verdicts of one limit, and of several, in words."""
_LARGEST_CROSSING = 400
"""The number of cells of a heat map that can still be read."""


def results_plot(plot: PlotInput) -> Picture:
    """Metrics, disparities and verdicts, with the groups that these leave out."""
    several = plot.frame[".by"].drop_nulls().n_unique() > 1
    entries: list[dict[str, Any]] = []
    for by, left_out in plot.frame.select(".by", ".left_out").rows():
        for entry in left_out or ():
            name = f"{by_words(by)} {entry['group']}" if several else entry["group"]
            entries.append({**entry, "group": name})
    return _with_note(_results_picture(plot), "left out", entries)


def _with_note(picture: Picture, start: str, entries: Sequence[Mapping[str, Any]]) -> Picture:
    """A picture with a note on the groups that are left out, if there are any."""
    left_out = left_out_in_words(entries, metric=in_prose)
    return replace(picture, notes=[*picture.notes, f"{start}: {left_out}"]) if left_out else picture


def _results_picture(plot: PlotInput) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    cut, judged = plot.cut, plot.kind is not METRICS
    at_points = judged and cut in POINTS
    frame = plot.frame.with_columns(what=plot.compared())
    if plot.expected is not None and not at_points and (cut or (plot.outer and not judged)):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut and not at_points:
        return results_over_cuts(plot, frame, cut)
    frame = plot.with_scales(frame)
    if plot.outer and not judged:
        return _over_outer(plot, frame)
    marks = (".estimate", ".limit", ".verdict", ".lower", ".upper", ".expected_lower", ".expected_upper")
    if at_points:
        # a panel for each metric, as lines have no room for limits
        names = [capitalized(cut_in_words(row).removeprefix("at ")) for row in frame.iter_rows(named=True)]
        points = pl.Series(names, dtype=pl.String)
        rows = plot.with_outer(pl.when(points == "").then("what").otherwise(points))
        table = table_of(frame, *marks, panel="what", what=rows, why=reason())
        alone = frame["what"][0] if frame["what"].n_unique() == 1 else ""
        return Picture(dots, table, _verdicts_in_words(frame), [alone, f"lines: {plot.limits}"])
    if plot.expected is not None:
        frame = _with_expected(frame, plot.expected)
    table = table_of(frame, *marks, what=plot.label(), why=reason())
    verdicts = _verdicts_in_words(frame) if judged else []
    return Picture(dots, table, [*verdicts, listed_titles(frame["what"])], _notes_on_marks(plot, table))


def _notes_on_marks(plot: PlotInput, table: pl.DataFrame) -> list[str]:
    """The notes on the marks beside values."""
    notes = {"lower": f"lines: {plot.limits}", "raw": "hollow: the group alone"}
    notes["expected_lower"] = "gray: expected if groups are equal"
    return [note for mark, note in notes.items() if mark in table.columns]


def _verdicts_in_words(frame: pl.DataFrame) -> list[str]:
    """The numbers of verdicts as a sentence."""
    number = dict(frame[".verdict"].value_counts().rows())
    if len(frame) == 1:
        verdict = frame[".verdict"][0]
        one, _ = _VERBS.get(verdict, (f"is {verdict}", ""))
        return [f"{frame['what'][0]} {one}"]
    parts: list[str] = []
    for verdict, (one, several) in _VERBS.items():
        many = number.get(verdict, 0)
        if many:
            parts.append(f"{many} {one if many == 1 else several}")
    both = " and ".join(parts) if len(parts) < 3 else ", ".join(parts)
    return [f"Of {len(frame)} limits, {both}", ", ".join(parts)]


def _with_expected(frame: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Disparities with the range that is expected if groups are equal."""
    ends = [".expected_lower", ".expected_upper"]
    keys = [name for name in (".metric", ".by", OUTER) if name in expected.columns]
    ranges = expected.select(*keys, *ends).unique(keys)
    joined = frame.drop(ends).join(ranges, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if joined[".expected_lower"].null_count() == len(joined):
        msg = "`beside` holds none of the disparities of the result."
        raise ArgumentError(msg)
    return joined


def groups_plot(plot: PlotInput) -> Picture:
    """Values of groups, with those that are drawn and not compared."""
    is_small = pl.col(".status").cast(pl.String).is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value])
    small = with_group_text(plot.frame.filter(is_small & pl.col(".estimate").is_not_null()))
    needed = pl.col(".group", ".metric", ".level", ".status", ".denominator")
    entries = small.select(needed.name.map(lambda name: name.removeprefix("."))).to_dicts()
    return _with_note(_groups_picture(plot), "not compared", entries)


def _groups_picture(plot: PlotInput) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = plot.frame
    grouped = frame.drop_nulls(".by")
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    # a single feature is in the title
    panel = plot.metric() + of_level() if grouped[".by"].n_unique() == 1 else plot.panel()
    grouped = with_spans(grouped.with_columns(panel=panel))
    named = with_group_text(grouped)
    if plot.cut is not None:
        return groups_over_cuts(plot, named, plot.cut)
    if plot.outer:
        return _over_outer(plot, named.with_columns(what=".group"))
    titles = _titles_of_groups(plot, named)
    if is_crossed(grouped) and plot.form != "dots":
        return _crossing(plot, grouped, titles)
    labels, counted = plot.with_counts(named, pl.col(".group"))
    if frame[".by"].has_nulls():
        keys = [".metric", ".level"]
        overall = frame.filter(pl.col(".by").is_null()).select(*keys, pl.col(".estimate").alias(".limit"))
        named = named.drop(".limit").join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
    table = table_of(named, ".estimate", ".lower", ".upper", ".limit", ".raw", what=labels, why=reason())
    return Picture(dots, table, titles, [counted, *_notes_on_marks(plot, table)], limit="all rows")


def is_crossed(frame: pl.DataFrame) -> bool:
    """True for the groups of two features crossed, and of nothing else."""
    by = frame[".by"].drop_nulls().unique().to_list()
    return len(by) == 1 and len(crossed_features(frame).get(by[0], [])) == 2


def _titles_of_groups(plot: PlotInput, grouped: pl.DataFrame) -> list[str]:
    """The range of a single metric as a sentence, or the names of several."""
    by = listed_names(map(by_words, grouped[".by"]))
    title = f"{listed_titles(grouped.select(plot.metric()).to_series())} by {by}"
    finite = grouped.filter(pl.col(".estimate").is_finite()).sort(".estimate", maintain_order=True)
    if grouped["panel"].n_unique() > 1 or len(finite) < 2 or finite[".estimate"].n_unique() == 1:
        return [title]
    low, high = (number_text(finite[".estimate"][row]) for row in (0, -1))
    first, last = finite[".group"][0], finite[".group"][-1]
    return [f"{title} is {low} for {first} and {high} for {last}", f"{title} ranges from {low} to {high}", title]


def _crossing(plot: PlotInput, grouped: pl.DataFrame, titles: list[str]) -> Picture:
    """Values of two features crossed: a heat map, or panels of dots where there are intervals."""
    (features,) = crossed_features(grouped).values()
    # as in `.group`: texts that would read alike are in quotes; the feature with fewer values heads the columns
    parts = [(texts_of(grouped.select(name)), name) for name in features]
    (row, row_name), (column, column_name) = sorted(parts, key=lambda part: -part[0].n_unique())
    count = pl.coalesce(".denominator", ".n")
    as_dots = has_intervals(grouped) and plot.form is None
    if as_dots or row.n_unique() * column.n_unique() > _LARGEST_CROSSING:
        panel = pl.format("{}, {}", "panel", column) if grouped["panel"].n_unique() > 1 else column
        marks = (".estimate", ".lower", ".upper", ".raw")
        table = table_of(grouped, *marks, panel=panel, what=row, rows=count, why=reason())
        return Picture(dots, table, titles, _notes_on_marks(plot, table))
    texts = [number_text(value) or "\N{EN DASH}" for value in grouped[".estimate"]]
    # rows that have weights are not counted
    size = pl.when(count % 1 == 0).then(pl.format("n = {}", count.cast(pl.Int64))).otherwise(pl.lit(""))
    table = table_of(
        grouped, ".estimate", row=row, column=column, text=pl.Series(texts, dtype=pl.String), below=size, rows=count
    )
    return Picture(heat_map, table, titles, ["stronger colors: higher values"], names=(row_name, column_name))


def _over_outer(plot: PlotInput, frame: pl.DataFrame) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    of_groups = frame[".group"].count() > 0
    outer = " and ".join(plot.outer)
    names = frame["panel"] if of_groups else frame["what"]
    titles = [f"{listed_titles(names)} in each {outer}", f"Values in each {outer}"]
    if has_intervals(frame):
        panel = pl.format("{}: {}", "panel", "what") if of_groups else pl.col("what")
        table = table_of(frame, ".estimate", ".lower", ".upper", panel=panel, what=OUTER, why=reason())
        return Picture(dots, table, titles, [f"lines: {plot.limits}"])
    # chance adds to every unsigned disparity, so that a mean of disparities is biased
    has_mean = pl.lit(value=True) if of_groups else pl.col(".by").is_null()
    average = pl.col(".estimate").mean().over("panel", "what")
    mean = pl.when(has_mean & average.is_finite()).then(average)
    table = table_of(frame, ".estimate", what="what", outer=OUTER, mean=mean)
    notes = [f"ticks: one value per {outer}"]
    if table["mean"].count():
        without = " (none for disparities: chance adds to each)" if table["mean"].has_nulls() else ""
        notes.append(f"dot: their mean{without}")
    return Picture(dots, table, titles, notes)


def confusion_plot(plot: PlotInput) -> Picture:
    """Counts of labels against predictions, with their shares of each true label."""
    frame = plot.frame
    count = pl.coalesce(".weight", ".n").cast(pl.Float64)
    row, column = (pl.col(name).cast(pl.String).fill_null("null") for name in (".truth", ".predicted"))
    panel = pl.col(OUTER) if plot.outer else pl.lit("")
    table = frame.select(panel=panel, row=row, column=column, rows=count)
    share = pl.col("rows") / pl.col("rows").sum().over("panel", "row")
    table = table.with_columns(share.fill_nan(None).alias("estimate"))
    texts = [f"{rows:,.0f}" if rows == int(rows) else f"{rows:,.1f}" for rows in table["rows"]]
    shares = ["" if value is None else f"{value * 100:.1f}%" for value in table["estimate"]]
    table = table.with_columns(pl.Series("text", texts), pl.Series("below", shares))
    right = float(table.filter(pl.col("row") == pl.col("column"))["rows"].sum())
    total = float(table["rows"].sum())
    titles = [f"{right / total * 100:.1f}% of {total:,.0f} predictions are right"] if total else []
    titles.append("Confusion matrix")
    if plot.outer:
        titles = [f"Confusion matrices by {' and '.join(plot.outer)}", "Confusion matrices"]
    notes = ["shares are of all rows with the same truth"]
    return Picture(heat_map, table, titles, notes, names=("truth", "predicted"))


def bounds_plot(plot: PlotInput) -> Picture:
    """Rates of groups that are known by probability, with all values that the data allow."""
    what = pl.format("{} ({})", ".group", pl.col(".n_expected").round(0).cast(pl.Int64))
    marks = {"panel": plot.metric(), "what": what, "expected_lower": ".lower_bound", "expected_upper": ".upper_bound"}
    table = table_of(plot.frame, ".estimate", ".lower", ".upper", **marks)
    name = listed_titles(table["panel"])
    note = f"gray: all rates that the data allow; lines: their {plot.limits}; in parentheses: expected rows"
    return Picture(dots, table, [f"{name} of groups known by probability", name], [note], Span(0, 1))


def missing_truth_plot(plot: PlotInput) -> Picture:
    """The difference in missing truths between those who were selected and those who were not."""
    group = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    what = pl.format("{} ({})", group, ".n")
    table = table_of(plot.frame, ".lower", ".upper", what=what, estimate=".difference")
    titles = ["Share without a truth: estimated positives less estimated negatives", "Missing truths by estimate"]
    return Picture(dots, table, titles, ["n in parentheses", f"lines: {plot.limits}"], Span(-1, 1, 0), x=["Difference"])
