"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, Status, listed
from tidyfair.metrics import fairness
from tidyfair.reports.charts import (
    MOST_PANELS,
    MOST_POINTS,
    Picture,
    dots,
    heat_map,
    lines,
    named,
    side_by_side,
    strips,
    unique_names,
)
from tidyfair.reports.tables import as_p_value
from tidyfair.specs.arguments import number, one_of, string
from tidyfair.specs.result_columns import key_columns
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autoplot"]

Kind = Literal["dots", "heat map"]
_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that fall on the same of so many pixels of an axis look like one."""
_CUTS = {".threshold": "threshold", ".top_k": "number selected", ".top_fraction": "share selected"}
"""The columns of lists of cuts, over which values are lines, in words."""
_OUTER = ".outer"


def autoplot(
    result: Any, *, beside: Any = None, kind: Kind | None = None, at: float | None = None, title: str | None = None
) -> Any:
    """The picture of a result, chosen by the columns that it has.

    Values of groups are dots with their intervals around the value of all, heat maps where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are dots with their
    intervals, or strips without; curves, models, pairs, strata and subgroups have pictures of their own.

    Args:
        result: The result of a metric, `by_group`, a test, a gate, a curve, `summarize` …: a tidy frame of any kind.
        beside: The result of `disparity_test` for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals.
        at: The threshold, or other cut, that is marked where values are lines over a list of them.
        title: A title in place of one that says what is drawn.

    Returns:
        An altair chart.

    Raises:
        ArgumentError: For a frame without rows, or whose columns are those of no result; and without altair.

    >>> from tidyfair import demographic_parity
    >>> from tidyfair.datasets import lending
    >>> groups = demographic_parity("race").by_group(lending(), estimate="approved", pos_label="yes")
    >>> groups.pipe(autoplot).to_dict()["title"]["text"]
    'detection prevalence by race'
    """
    frame = open_frame(result).to_polars()
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: the result has no rows."
        raise ArgumentError(msg)
    _check_kind(kind)
    if title is not None:
        string("title", title)
    needed, draw = _picture_of(frame)
    expected = None if beside is None else _expected_of(beside, draw)
    if kind == "heat map" and (draw is not _groups or not _crossed(frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    if at is not None and _cut(frame) is None:
        msg = "`at` is a threshold that is marked in values over thresholds, and `result` holds no list of them."
        raise ArgumentError(msg)
    marked = None if at is None else number("at", at, -math.inf)
    return draw(PlotInput.of(frame, expected, kind, marked, needed)).finished(title)


def _picture_of(frame: pl.DataFrame) -> tuple[set[str], Callable[[PlotInput], Picture]]:
    """The first plot whose columns a result has, and these columns."""
    # columns of curves have no dot, as those of outer groups
    may_be_curve = ".metric" not in frame.columns
    for needed, draw in _PICTURES:
        has_dots = all(name.startswith(".") for name in needed)
        if needed <= set(frame.columns) and (has_dots or may_be_curve):
            return needed, draw
    msg = (
        "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
        f"no picture of the columns {listed(frame.columns)}."
    )
    raise ArgumentError(msg)


def _expected_of(beside: Any, draw: Callable[[PlotInput], Picture]) -> pl.DataFrame:
    """The range that is expected if groups are equal, which is drawn behind disparities."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if draw is not _results:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    return expected


@dataclass(frozen=True)
class PlotInput:
    """A result and the options of its plot."""

    frame: pl.DataFrame
    expected: pl.DataFrame | None
    kind: Kind | None
    at: float | None
    outer: list[str]
    """Names of the outer keys. Their values are one column of text, so that no name of the user is in the way."""

    @classmethod
    def of(
        cls, frame: pl.DataFrame, expected: pl.DataFrame | None, kind: Kind | None, at: float | None, needed: set[str]
    ) -> PlotInput:
        """Join the columns of the user into one, except those that a plot needs."""
        outer = [name for name in key_columns(frame) if name not in needed]
        if expected is not None:
            common = [name for name in outer if name in expected.columns]
            expected = _with_outer_text(expected.select(pl.col("^\\..*$"), *common), common)
        return cls(_with_outer_text(frame, outer), expected, kind, at, outer)


# Kinds of results, as tables of plain columns


def _results(plot: PlotInput) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    frame = plot.frame.with_columns(_metric_text().alias("what"))
    cut, judged = _cut(frame), ".verdict" in frame.columns
    over_outer = bool(plot.outer) and not judged
    if plot.expected is not None and (cut or over_outer):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut:
        return _over_cuts(plot, frame, cut, "what", pl.lit(""))
    frame = frame.with_columns(_scales(frame))
    if over_outer:
        return _over_outer(plot, frame)
    if plot.expected is not None:
        frame = _with_expected(frame, plot.expected)
    optional = (".limit", ".verdict", ".expected_lower", ".expected_upper")
    table = frame.select("panel", _label(plot).alias("what"), *_ends(frame), *_plain(frame, *optional))
    notes = [
        ("lower" in table.columns, "lines are intervals"),
        ("expected_lower" in table.columns, "grey: expected if groups are equal"),
        ("limit" in table.columns, "grey line: the limit"),
    ]
    return dots(table, named(frame["what"]), notes)


def _with_expected(frame: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Disparities with the range that is expected if groups are equal."""
    keys = [".metric", ".by"]
    if _OUTER in expected.columns:
        keys.append(_OUTER)
    ranges = expected.select(*keys, ".expected_lower", ".expected_upper").unique(keys)
    joined = frame.join(ranges, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if joined[".expected_lower"].null_count() == len(joined):
        msg = "`beside` holds none of the disparities of the result."
        raise ArgumentError(msg)
    return joined


def _tests(plot: PlotInput) -> Picture:
    """Disparities beside the range that is expected if groups are equal."""
    frame = plot.frame
    p_value = as_p_value(frame[".p_value"]).fill_null("unknown")
    table = frame.select(
        pl.lit("").alias("panel"),
        pl.format("{} (p {})", _label(plot), p_value).alias("what"),
        pl.col(".estimate").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )
    title = named(frame.select(_metric_text()).to_series())
    studentized = ".method" in frame.columns and frame[".method"].str.contains("studentized", literal=True).any()
    notes = [
        (True, "grey: 95 % of what groups that are equal show"),
        (studentized, "p: of distances in standard errors"),
    ]
    return dots(table, title, notes)


def _periods(plot: PlotInput) -> Picture:
    """Changes between periods beside the range that is expected by chance."""
    frame = plot.frame
    between = pl.format("{}, {} to {}", _label(plot), pl.col(".before"), pl.col(".period"))
    table = frame.select(
        pl.lit("").alias("panel"),
        between.alias("what"),
        pl.col(".change").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )
    title = f"changes of {named(frame.select(_metric_text()).to_series())}"
    return dots(table, title, [(True, "grey: 95 % of changes where nothing has changed")])


def _looks(plot: PlotInput) -> Picture:
    """The verdicts of monitors, period by period."""
    frame = plot.frame
    optional = (".lower", ".upper", ".limit", ".verdict")
    table = frame.select(
        _label(plot).alias("panel"),
        pl.col(".period").cast(pl.String).alias("what"),
        pl.col(".estimate").alias("estimate"),
        *_plain(frame, *optional),
    )
    notes = [(True, "lines hold at all looks at once"), (True, "grey line: the limit")]
    return dots(table, named(frame.select(_metric_text()).to_series()), notes)


def _groups(plot: PlotInput) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = plot.frame.with_columns(_panel_of_groups(plot.frame))
    grouped = frame.filter(pl.col(".by").is_not_null()) if ".by" in frame.columns else frame
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    if cut := _cut(frame):
        return _over_cuts(plot, grouped, cut, ".group", pl.col("panel"))
    if plot.outer:
        return _over_outer(plot, grouped.with_columns(pl.col(".group").alias("what")))
    # a heat map shows no intervals
    usual = "dots" if ".lower" in grouped.columns else "heat map"
    if _crossed(grouped) and (plot.kind or usual) == "heat map":
        return _crossing(grouped)
    return _group_dots(frame, grouped)


def _group_dots(frame: pl.DataFrame, grouped: pl.DataFrame) -> Picture:
    """Values of groups as dots, with a line at the value of all rows."""
    columns = ["panel", pl.format("{} ({})", ".group", pl.col(".n")).alias("what"), *_ends(grouped)]
    if ".by" in frame.columns and frame[".by"].has_nulls():
        keys = [name for name in (".metric", ".level") if name in frame.columns]
        overall = frame.filter(pl.col(".by").is_null()).select(*keys, pl.col(".estimate").alias("limit"))
        grouped = grouped.join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
        columns.append("limit")
    elif ".raw" in frame.columns:
        columns.append(pl.col(".raw").alias("limit"))
    if grouped[".estimate"].has_nulls():
        status = _words(pl.col(".status")) if ".status" in frame.columns else pl.lit("no value")
        columns.append(pl.when(pl.col(".estimate").is_null()).then(status).otherwise(pl.lit("")).alias("why"))
    table = grouped.select(columns)
    notes = [
        (True, "in brackets: rows"),
        ("lower" in table.columns, "lines are intervals"),
        ("limit" in table.columns, "grey line: the group alone" if ".raw" in frame.columns else "grey line: all rows"),
    ]
    return dots(table, named(table["panel"]), notes)


def _pairs(plot: PlotInput) -> Picture:
    """Comparisons of two groups, with intervals: overlapping intervals of groups are no test."""
    frame = plot.frame.with_columns(_panel_of_groups(plot.frame))
    is_difference = pl.col(".scale") == "difference"
    what = (
        pl.when(is_difference)
        .then(pl.format("{} - {}", ".group", ".other"))
        .otherwise(pl.format("{} / {}", ".group", ".other"))
    )
    table = frame.select(
        "panel",
        what.alias("what"),
        pl.col(".disparity").alias("estimate"),
        *_plain(frame, ".lower", ".upper"),
        pl.when(is_difference).then(0.0).otherwise(1.0).alias("limit"),
    )
    scales = " and ".join(f"{scale}s".replace("_", " ") for scale in frame[".scale"].unique(maintain_order=True))
    return dots(table, f"{scales} of {named(table['panel'])}", [(True, "grey line: no difference")])


def _strata(plot: PlotInput) -> Picture:
    """Differences before and after like is compared with like."""
    frame = plot.frame.with_columns(_panel_of_groups(plot.frame)).with_row_index("index")
    pair = pl.format("{} - {}", ".group", ".other")
    crude = frame.select(
        "index", "panel", pl.format("{}: crude", pair).alias("what"), pl.col(".crude").alias("estimate")
    )
    within = frame.select(
        "index",
        "panel",
        pl.format("{}: within strata", pair).alias("what"),
        pl.col(".adjusted").alias("estimate"),
        *_plain(frame, ".lower", ".upper"),
    )
    # the two rows of a pair stand together
    table = pl.concat([crude, within], how="diagonal").sort("index", maintain_order=True)
    table = table.drop("index").with_columns(pl.lit(0.0).alias("limit"))
    return dots(table, f"differences of {named(table['panel'])}", [(True, "grey line: no difference")])


def _models(plot: PlotInput) -> Picture:
    """Two models side by side, and the change from one to the other."""
    frame = plot.frame.with_columns(pl.col(".one").alias(".estimate"), _label(plot).alias("what"))
    table = frame.with_columns(_scales(frame)).select(
        "panel", "what", *_plain(frame, ".one", ".other", ".change", ".lower", ".upper")
    )
    return side_by_side(table, named(table["what"]), ("one", "other"))


def _subgroups(plot: PlotInput) -> Picture:
    """The subgroups that differ most from the rest."""
    frame = plot.frame.drop_nulls(".difference")
    if ".status" in frame.columns:
        frame = frame.filter(pl.col(".status") == Status.OK)
    first = frame.head(MOST_PANELS)
    table = first.select(
        _words(pl.col(".metric")).alias("panel"),
        pl.format("{} ({})", ".subgroup", pl.col(".n")).alias("what"),
        pl.col(".difference").alias("estimate"),
        pl.lit(0.0).alias("limit"),
    )
    notes = [(True, "less the rest; in brackets: rows"), (len(frame) > len(first), f"{len(first)} of {len(frame)}")]
    return dots(table, f"{named(table['panel'])} of subgroups", notes)


def _sensitivity(plot: PlotInput) -> Picture:
    """The shares of errors that turn the verdict of a gate."""
    frame = plot.frame.filter(pl.col(".group").is_not_null())
    table = frame.select(
        pl.col(".error").alias("panel"),
        pl.format("{}: {} ({})", _label(plot), ".group", ".n").alias("what"),
        pl.col(".share").alias("estimate"),
        pl.when(pl.col(".share").is_null()).then(pl.lit("does not turn it")).otherwise(pl.lit("")).alias("why"),
    )
    return dots(table, "smallest share of errors that turns the verdict", [(True, "in brackets: rows")], shares=True)


def _probabilities(plot: PlotInput) -> Picture:
    """Posterior probabilities that disparities keep their limits."""
    probability = pl.col(".probability").alias("estimate")
    table = plot.frame.select(pl.lit("").alias("panel"), _label(plot).alias("what"), probability)
    return dots(table, "probability that the limit is kept", [], shares=True)


def _summaries(plot: PlotInput) -> Picture:
    """Means over resamples, with their standard errors."""
    frame = plot.frame.with_columns(_label(plot).alias("what"), pl.col(".mean").alias(".estimate"))
    frame = frame.with_columns(_scales(frame))
    mean, error = pl.col(".mean"), pl.col(".std_error")
    table = frame.select(
        "panel",
        "what",
        mean.alias("estimate"),
        (mean - error).alias("lower"),
        (mean + error).alias("upper"),
    )
    return dots(table, "means over resamples", [(True, "lines reach one standard error to each side")])


def _roc(plot: PlotInput) -> Picture:
    """Sensitivity over the false positive rate."""
    frame = plot.frame.with_columns((1 - pl.col("specificity")).alias("1 - specificity")).drop("specificity")
    return _curves(plot, frame, "1 - specificity", "sensitivity", "dashed: chance")


def _precision_recall(plot: PlotInput) -> Picture:
    """Precision over recall."""
    return _curves(plot, plot.frame, "recall", "precision")


def _gain(plot: PlotInput) -> Picture:
    """The share of events found over the share of rows tested."""
    frame = plot.frame.with_columns(
        (pl.col(".percent_tested") / 100).alias("share of rows tested"),
        (pl.col(".percent_found") / 100).alias("share of events found"),
    )
    return _curves(plot, frame, "share of rows tested", "share of events found", "dashed: chance")


def _lift(plot: PlotInput) -> Picture:
    """Lift over the share of rows tested."""
    tested = (pl.col(".percent_tested") / 100).alias("share of rows tested")
    return _curves(plot, plot.frame.with_columns(tested, lift=".lift"), "share of rows tested", "lift")


def _calibration(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score."""
    frame = plot.frame.rename({".mean_score": "mean score", ".event_rate": "rate of events"})
    return _curves(plot, frame, "mean score", "rate of events", "dashed: events as often as the scores say")


_PICTURES: tuple[tuple[set[str], Callable[[PlotInput], Picture]], ...] = (
    ({"specificity", "sensitivity"}, _roc),
    ({"recall", "precision", ".threshold"}, _precision_recall),
    ({".percent_tested", ".percent_found"}, _gain),
    ({".percent_tested", ".lift"}, _lift),
    ({".mean_score", ".event_rate"}, _calibration),
    ({".subgroup", ".difference"}, _subgroups),
    ({".error", ".group", ".becomes", ".share"}, _sensitivity),
    ({".one", ".other", ".change"}, _models),
    ({".group", ".other", ".crude", ".adjusted"}, _strata),
    ({".group", ".other", ".disparity"}, _pairs),
    ({".before", ".period", ".change", ".expected_lower"}, _periods),
    ({".metric", ".by", ".period", ".look", ".verdict"}, _looks),
    ({".metric", ".by", ".p_value", ".expected_lower", ".expected_upper"}, _tests),
    ({".metric", ".by", ".probability"}, _probabilities),
    ({".metric", ".by", ".mean", ".std_error"}, _summaries),
    ({".metric", ".group", ".estimate"}, _groups),
    ({".metric", ".by", ".estimate"}, _results),
)
"""The columns that each plot needs; the first plot that fits is drawn."""


# Shared by several plots


def _over_outer(plot: PlotInput, frame: pl.DataFrame) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    of_groups = ".group" in frame.columns
    names = frame["panel"] if of_groups else frame["what"]
    title = f"{named(names)} for each {' and '.join(plot.outer)}"
    if ".lower" in frame.columns:
        panel = pl.format("{}: {}", "panel", "what") if of_groups else pl.col("what")
        table = frame.select(panel.alias("panel"), pl.col(_OUTER).alias("what"), *_ends(frame))
        return dots(table, title, [(True, "lines are intervals")])
    # chance adds to every unsigned disparity, so that a mean of disparities is biased
    has_mean = pl.lit(value=True) if of_groups else pl.col(".by").is_null()
    average = pl.col(".estimate").mean().over("panel", "what")
    mean = pl.when(has_mean & average.is_finite()).then(average).alias("mean")
    table = frame.select("panel", "what", pl.col(_OUTER).alias("outer"), *_plain(frame, ".estimate"), mean)
    return strips(table, title)


def _cut(frame: pl.DataFrame) -> str | None:
    """The column of a list of cuts."""
    for name in _CUTS:
        if name in frame.columns:
            return name
    return None


def _over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str, series: str, panel: pl.Expr) -> Picture:
    """A line over the cuts for each series."""
    values = frame.filter(pl.col(cut).is_not_null())
    without = frame.filter(pl.col(cut).is_null())[".metric"].unique(maintain_order=True).to_list()
    words = _CUTS[cut]
    if values.is_empty():
        msg = f"autoplot() draws values over the {words}, and no metric of the result has any."
        raise ArgumentError(msg)
    name = pl.format("{}, {}", pl.col(series), _OUTER) if plot.outer else pl.col(series)
    # every n-th cut, so that no more points are drawn than a chart can hold
    step = math.ceil(len(values) / MOST_POINTS)
    fewer = values[cut].unique().sort().gather_every(step)
    table = values.filter(pl.col(cut).is_in(fewer.implode())).select(
        panel.alias("panel"),
        name.alias("series"),
        pl.col(cut).cast(pl.Float64).alias("x"),
        pl.col(".estimate").alias("y"),
    )
    # different groups can have the same text
    table = unique_names(table, "series", "panel", "x")
    title = f"{named(values.select(_metric_text()).to_series())} over the {words}"
    notes = [f"of scores, so the same for each: {', '.join(without)}"] if without else []
    return lines(table, words, "value", title, *notes, at=plot.at)


def _curves(plot: PlotInput, frame: pl.DataFrame, x: str, y: str, diagonal: str | None = None) -> Picture:
    """A curve for each outer group, with as many points as can be seen."""
    series = pl.col(_OUTER) if plot.outer else pl.lit("all rows")
    level = pl.col(".level").cast(pl.String) if ".level" in frame.columns else pl.lit("")
    columns = [level.alias("panel"), series.alias("series"), pl.col(x).alias("x"), pl.col(y).alias("y")]
    if ".bin" in frame.columns:
        columns.append(pl.col(".n").alias("rows"))
    table = frame.select(columns).filter(pl.col("x").is_finite() & pl.col("y").is_finite())
    pixels = _PIXELS
    points = _one_per_pixel(table, pixels)
    while len(points) > MOST_POINTS and pixels > _FEWEST_PIXELS:
        pixels //= 2
        points = _one_per_pixel(table, pixels)
    by = f" for each {' and '.join(plot.outer)}" if plot.outer else ""
    return lines(points, x, y, f"{y} over {x}{by}", diagonal=diagonal)


def _one_per_pixel(table: pl.DataFrame, pixels: int) -> pl.DataFrame:
    """The first point of each curve in each cell of a grid of so many pixels a side."""
    cells: list[pl.Expr] = []
    for axis in ("x", "y"):
        value = pl.col(axis)
        cells.append((value / (value.max() - value.min()) * pixels).round().alias(f"pixel on {axis}"))
    keys = ["panel", "series", "pixel on x", "pixel on y"]
    return table.with_columns(cells).unique(keys, keep="first", maintain_order=True).select(table.columns)


def _crossing(grouped: pl.DataFrame) -> Picture:
    """Values of two features that are crossed."""
    parts = pl.col(".group").str.splitn(":", 2).struct
    table = grouped.select(
        "panel",
        parts.field("field_0").alias("row"),
        parts.field("field_1").alias("column"),
        pl.col(".estimate").alias("estimate"),
        pl.col(".n").alias("rows"),
    )
    return heat_map(table, named(table["panel"]), *grouped[".by"][0].split(":"))


# Words


def _words(name: pl.Expr) -> pl.Expr:
    """A name with spaces in place of underscores."""
    return name.str.replace_all("_", " ", literal=True)


def _compared() -> pl.Expr:
    """The feature that a value is compared by, nothing for all rows."""
    return pl.format(" by {}", pl.col(".by").str.replace_all(":", " and ", literal=True)).fill_null("")


def _metric_text() -> pl.Expr:
    """A metric and the feature that it is compared by, in words."""
    return _words(pl.col(".metric")) + _compared()


def _label(plot: PlotInput) -> pl.Expr:
    """The text of a metric with its outer group."""
    return pl.format("{}, {}", _metric_text(), _OUTER) if plot.outer else _metric_text()


def _scales(frame: pl.DataFrame) -> pl.Series:
    """The panel of each row: metrics, differences or ratios; the metric itself where values exceed 1."""
    panels = list(map(_panel_of, frame[".metric"], frame[".by"]))
    values = frame.select(".metric", ".estimate", panel=pl.Series(panels))
    beyond = pl.col(".estimate").is_finite() & (pl.col(".estimate").abs() > 1)
    panel = pl.when(beyond.any().over("panel")).then(_words(pl.col(".metric"))).otherwise("panel")
    return values.select(panel.alias("panel")).to_series()


def _panel_of(metric: str, by: str | None) -> str:
    """The panel of a metric, or of a disparity: the scale of its aggregate, if it is in the catalogue."""
    if by is None:
        return "metrics"
    aggregate = getattr(getattr(fairness, metric, None), "aggregate", None)
    return "disparities" if aggregate is None else aggregate.scale


def _panel_of_groups(frame: pl.DataFrame) -> pl.Expr:
    """The panel of a value of a group: its metric, its label, and the feature."""
    return (_words(pl.col(".metric")) + _level(frame) + _compared()).alias("panel")


def _level(frame: pl.DataFrame) -> pl.Expr:
    """The label of a value, if there are several."""
    if ".level" not in frame.columns:
        return pl.lit("")
    return pl.format(" of {}", pl.col(".level").cast(pl.String)).fill_null("")


def _with_outer_text(frame: pl.DataFrame, outer: list[str]) -> pl.DataFrame:
    """A frame with its outer keys as one column of text, without the name of a single key that is not `fold`."""
    if not outer:
        return frame
    texts: list[pl.Series] = []
    for name in outer:
        key = frame[name]
        text = key.dt.to_string("polars") if key.dtype == pl.Duration else key.cast(pl.String)
        # a missing key is written null, a text "null" in quotes
        text = text.replace("null", '"null"').fill_null("null")
        if len(outer) > 1 or name == "fold":
            text = f"{name} " + text
        texts.append(text)
    joined = pl.select(pl.concat_str(texts, separator=", ").alias(_OUTER)).to_series()
    return frame.select(pl.exclude(outer), joined)


def _ends(frame: pl.DataFrame) -> list[pl.Expr]:
    """A value and its interval, which starts or ends at the value where it has no end."""
    value = pl.col(".estimate")
    columns = [value.alias("estimate")]
    for name in (".lower", ".upper"):
        if name in frame.columns:
            columns.append(pl.coalesce(name, value).alias(name.removeprefix(".")))
    return columns


def _plain(frame: pl.DataFrame, *names: str) -> list[pl.Expr]:
    """Columns under names without a dot, which Vega would take for a path."""
    columns: list[pl.Expr] = []
    for name in names:
        if name in frame.columns:
            columns.append(pl.col(name).alias(name.removeprefix(".")))
    return columns


def _crossed(frame: pl.DataFrame) -> bool:
    """True for groups of two features, where no name or value holds the separator."""
    if ".by" not in frame.columns:
        return False
    by, groups = frame[".by"].drop_nulls(), frame.filter(pl.col(".by").is_not_null())[".group"]
    return by.n_unique() == 1 and by[0].count(":") == 1 and (groups.str.count_matches(":", literal=True) == 1).all()


def _check_kind(kind: object) -> None:
    """Refuse kinds of plots that do not exist."""
    if kind is not None:
        one_of("kind", kind, ["dots", "heat map"])
