"""Lines and points over two axes: curves, values over thresholds, models by two measures."""

from __future__ import annotations

import math

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Axes, Picture, Span, Vega, constant, ends_of_axis, nominal, quantitative
from tidyfair.reports.dot_charts import arrows, intervals, within_axis
from tidyfair.reports.theme import LIGHT, SERIES

_LEAST_PANEL = 250
_LEAST_SQUARE, _LARGEST_SQUARE = 155, 420
_SHARE_OF_HEIGHT, _LEAST_HEIGHT, _LARGEST_HEIGHT = 0.55, 170, 260
MOST_BANDS = 3
"""The most lines of a panel that have bands."""
_REACH = 0.75
"""The share of the height of lines at which intervals are cut, so that a wide one does not flatten the lines."""
_APART = 7
"""The pixels between the intervals of different lines at the same point."""
_ARROWS_APART = 24
"""The least number of pixels between the arrows of a band."""


def lines(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """A line for each series, a panel for each part.

    Columns: `panel`, `series`, `x`, `y`, `lower` and `upper` where there are intervals, the `rows` of points where
    they are of several, and `dashed` where each line has another beside it. Of more series than there are colours, the
    lowest and the highest have one.
    """
    table, colours = _with_keys(picture.table)
    names = picture.table["panel"].unique(maintain_order=True).to_list()
    columns = charts.columns_of(len(names), width, _LEAST_SQUARE if picture.square else _LEAST_PANEL)
    room = (width - charts.COLUMN_GAP * (columns - 1)) / columns
    colour = {"color": charts.legend("key", colours, width - 40, symbolType="stroke", symbolStrokeWidth=2.5)}
    panels: list[Vega] = []
    for name in names:
        part = table.filter(pl.col("panel") == name)
        height = min(max(room * _SHARE_OF_HEIGHT, _LEAST_HEIGHT), _LARGEST_HEIGHT)
        axes, inner, x_ends = _axes_of_lines(picture, part, room)
        if picture.square:
            height = inner = min(inner, _LARGEST_SQUARE)
        part = _beside_each_other(part, picture, (x_ends[1] - x_ends[0]) / inner)
        layers = [*_reference_lines(axes, picture, picture.span_of(part), x_ends, inner)]
        layers += _line_layers(axes, part, picture, colour, inner)
        heading = charts.heading(name, room, axis=picture.y[0]) if name or picture.y[0] else None
        panels.append(charts.panel(layers, part, inner, height, heading))
    return panels, columns


def _axes_of_lines(picture: Picture, part: pl.DataFrame, room: float) -> tuple[Axes, float, tuple[float, float]]:
    """The axes of a panel in a column of so many pixels, its width, and the ends of the horizontal axis."""
    whole = Span(0, 1, is_whole=True)
    of_scale = picture.of_same_scale(part).partition_by("panel")
    heights = [height for other in of_scale for height in _heights(other)]
    ends = ends_of_axis([], whole) if picture.square else ends_of_axis(heights, picture.span_of(part))
    inner = room - charts.width_of_ticks(ends)
    x_ends = ends_of_axis([*part["x"], picture.at], whole if picture.square else picture.x_span)
    x = quantitative("x", x_ends, inner, picture.x[0])
    return Axes("y", ends, inner, {"x": x}), inner, x_ends


def _heights(part: pl.DataFrame) -> list[float | None]:
    """The values that the vertical axis shows: those of lines, and intervals as far as these leave lines their room."""
    values = part["y"].to_list()
    if not _has_intervals(part):
        return values
    low, high = _reach_of(part)
    ends = part.select(pl.col("lower", "upper").clip(low, high))
    return [*values, *ends["lower"], *ends["upper"]]


def _reach_of(part: pl.DataFrame) -> tuple[float, float]:
    """The ends within which intervals are shown."""
    finite = part.filter(pl.col("y").is_finite())["y"]
    low, high = finite.min(), finite.max()
    if not (isinstance(low, float) and isinstance(high, float) and low < high):
        return -math.inf, math.inf
    reach = (high - low) * _REACH
    return low - reach, high + reach


def _has_intervals(part: pl.DataFrame) -> bool:
    """True where intervals are drawn: those of many lines would hide each other."""
    return "lower" in part.columns and part["series"].n_unique() <= MOST_BANDS


def _line_layers(axes: Axes, part: pl.DataFrame, picture: Picture, colour: Vega, width: float) -> list[Vega]:
    """The marks of a panel, from behind to front."""
    layers: list[Vega] = []
    channels = {**colour, "detail": nominal("series")}
    if _has_intervals(part):
        if picture.points:
            layers += intervals(axes, part, "y", channels, strokeWidth=1.5, opacity=0.6)
        else:
            layers += _bands(axes, part, channels, width)
    in_order = {**channels, "order": {"field": "order", "type": "quantitative"}}
    if "dashed" in part.columns:
        style: Vega = {"strokeWidth": 1.25, "strokeDash": charts.DASHES, "clip": True}
        layers.append(axes.layer("line", "dashed", channels=in_order, **style))
    front = part.filter("front")
    if len(front) < len(part):
        behind = part.filter(~pl.col("front"))
        layers.append(axes.layer("line", "y", table=behind, channels=in_order, strokeWidth=1, opacity=0.5))
    tooltip = {"tooltip": charts.tooltip(part, *(["x"] if "point" in part.columns else []))}
    shown = {**in_order, **tooltip}
    layers.append(axes.layer("line", "y", table=front, channels=shown, strokeWidth=2, strokeJoin="round"))
    if picture.points:
        layers.append(axes.layer("point", "y", channels={**channels, **tooltip}, filled=True, size=40, opacity=1))
    return layers


def _bands(axes: Axes, part: pl.DataFrame, channels: Vega, width: float) -> list[Vega]:
    """Intervals as a band behind the line, with arrows that have room beside each other."""
    known = within_axis(axes, part, "y")
    x = pl.col("x")
    slot = ((x - x.min()) / (x.max() - x.min()) * width // _ARROWS_APART).alias("slot")
    few = known.with_columns(slot).unique(["series", "goes_down", "goes_up", "slot"], keep="first", maintain_order=True)
    return [
        axes.layer("area", "from", "to", table=known, channels=channels, opacity=0.14),
        *arrows(axes, few, channels),
    ]


def _reference_lines(axes: Axes, picture: Picture, span: Span, x_ends: tuple[float, float], width: float) -> list[Vega]:
    """The diagonal, the line of equality or of no change, and the value that is marked."""
    layers: list[Vega] = []
    if picture.diagonal:
        corners = pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
        style: Vega = {"color": charts.MUTED, "strokeDash": charts.DASHES, "strokeWidth": 1.25}
        layers.append(axes.layer("line", "y", table=corners, **style))
    if span.reference is not None:
        layers.append(axes.line_at(span.reference, charts.MUTED))
    if picture.at is not None:
        marked = Axes("x", x_ends, width, {})
        text = pl.DataFrame({"at": [picture.at], "text": [f"{picture.at:.4g}"]})
        side: Vega = {"align": "right", "dx": -5} if marked.share(picture.at) > 0.5 else {"dx": 5}
        layers.append(marked.line_at(picture.at, charts.INK, dashed=True))
        layers += marked.text("text", {"x": marked.place("at"), "y": constant(9)}, text, **side)
    return layers


def _beside_each_other(part: pl.DataFrame, picture: Picture, pixel: float) -> pl.DataFrame:
    """Points with `x` where they are drawn, and `point` where they belong."""
    if not picture.points or picture.square or not _has_intervals(part):
        return part
    names = part["series"].unique(maintain_order=True).to_list()
    numbers = pl.col("series").replace_strict(names, range(len(names)), return_dtype=pl.Float64)
    shift = (numbers - (len(names) - 1) / 2) * _APART * pixel
    return part.with_columns(pl.col("x").alias("point"), pl.col("x") + shift)


def _with_keys(table: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """Lines with the `key` of their series, and whether it stands in `front`; and the colours of keys."""
    table = table.with_columns(pl.int_range(pl.len()).alias("order"))
    names = table["series"].unique(maintain_order=True).to_list()
    if len(names) <= len(SERIES):
        colours = dict(zip(names, SERIES, strict=False))
        return table.with_columns(pl.col("series").alias("key"), pl.lit(value=True).alias("front")), colours
    means = table.group_by("series", maintain_order=True).agg(pl.col("y").mean()).drop_nulls("y").sort("y")
    low, high = means["series"][0], means["series"][-1]
    others = f"{len(names) - 2} others"
    keys = {high: f"highest: {high}", low: f"lowest: {low}"}
    key = pl.col("series").replace_strict(keys, default=others).alias("key")
    colours = {keys[high]: charts.ACCENT, keys[low]: SERIES[1], others: charts.MUTED}
    return table.with_columns(key, pl.col("series").is_in(list(keys)).alias("front")), colours


def scatter(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Models by two measures, with their names.

    Columns: `panel`, `series` (the name), `x`, `y`, `front` (is on the frontier), `base` (is the baseline).
    """
    colours = {"on the frontier": charts.ACCENT, "not on it": charts.MUTED, "the baseline": LIGHT["series-2"]}
    base, front, other = map(pl.lit, ("the baseline", "on the frontier", "not on it"))
    key = pl.when("base").then(base).when("front").then(front).otherwise(other)
    ends = ends_of_axis(picture.table["y"], Span())
    inner = width - charts.width_of_ticks(ends)
    x_ends = ends_of_axis(picture.table["x"], Span())
    table = picture.table.with_columns(key.alias("key"), (pl.col("x") > sum(x_ends) / 2).alias("right"))
    x = quantitative("x", x_ends, inner, charts.fitting(picture.x, inner, charts.SMALL))
    axes = Axes("y", ends, inner, {"x": x})
    colour = charts.legend("key", colours, inner)
    shape = {**colour, "scale": {"domain": list(colours), "range": ["circle", "circle", "diamond"]}}
    channels = {"color": colour, "shape": shape, "tooltip": charts.tooltip(picture.table)}
    frontier = table.filter("front").sort("x")
    layers = [
        axes.layer("line", "y", table=frontier, color=charts.ACCENT, strokeWidth=1.25, opacity=0.6),
        axes.layer("point", "y", channels=channels, filled=True, size=90, opacity=1),
    ]
    for part, align, dx in ((table.filter("right"), "right", -9), (table.filter(~pl.col("right")), "left", 9)):
        style: Vega = {"align": align, "dx": dx, "dy": -8, "fontSize": charts.TEXT, "limit": inner / 2}
        layers += axes.text("series", {"y": axes.place("y")}, part, **style)
    heading = charts.heading("", width, axis=charts.fitting(picture.y, width, charts.SMALL))
    return [charts.panel(layers, table, inner, min(320, max(220, width * 0.45)), heading)], 1
