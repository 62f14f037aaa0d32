"""Lines and points over two axes: curves, values over thresholds, models by two measures."""

from __future__ import annotations

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Axes, Picture, Span, Vega, ends_of_axis, nominal
from tidyfair.reports.dot_charts import arrows, intervals, within_axis
from tidyfair.reports.theme import LIGHT, SERIES

_LEAST_PANEL = 250
_LEAST_SQUARE, _LARGEST_SQUARE = 155, 420
_SHARE_OF_HEIGHT, _LEAST_HEIGHT, _LARGEST_HEIGHT = 0.55, 170, 260
MOST_BANDS = 3
"""The most lines of a panel that have bands."""
_REACH = 0.75
"""The share of the height of lines at which intervals are cut, so that a wide one does not flatten the lines."""
_DASHES = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 3], [7, 2, 2, 2, 2, 2], [1, 4]]
"""The dashes of series, in their order."""
_LONG_SYMBOL = 500
_APART = 7
"""The pixels between the intervals of different lines at the same point."""
_ARROWS_APART = 24
"""The least number of pixels between the arrows of a band."""


def lines(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """A line for each series, a panel for each part.

    Columns: `panel`, `series`, `x`, `y`, `lower` and `upper` where there are intervals, the `rows` of points where
    they are of several, and `dashed` where each line has another beside it. Of more series than there are colors, the
    lowest and the highest have one.
    """
    table, colours = _with_keys(picture.table)
    parts = table.partition_by("panel", maintain_order=True)
    columns = charts.columns_of(len(parts), width, _LEAST_SQUARE if picture.square else _LEAST_PANEL)
    room = (width - charts.COLUMN_GAP * (columns - 1)) / columns
    colour = charts.legend(
        "key", colours, width - 40, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=_LONG_SYMBOL
    )
    if len(colours) == 1:
        colour["legend"] = None
    # lines can be told apart without colors, too
    dash = {**colour, "scale": {"domain": list(colours), "range": _DASHES[: len(colours)]}}
    panels: list[Vega] = []
    for part in parts:
        across, axes = _axes_of_lines(picture, part, room)
        height = min(max(room * _SHARE_OF_HEIGHT, _LEAST_HEIGHT), _LARGEST_HEIGHT)
        placed = _beside_each_other(part, picture, across)
        layers = _reference_lines(axes, across, picture, picture.span_of(part))
        layers += _line_layers(axes, across, placed, picture, {"color": colour, "detail": nominal("series")}, dash)
        height = across.length if picture.square else height
        heading = part["panel"][0] if len(parts) > 1 else ""
        panels.append(charts.panel(layers, placed, across.length, height, heading, picture.y[0], limit=room))
    return panels, columns


def _axes_of_lines(picture: Picture, part: pl.DataFrame, room: float) -> tuple[Axes, Axes]:
    """The horizontal and the vertical axis of a panel in a column of so many pixels."""
    if picture.square:
        ends = x_ends = (0.0, 1.0)
    else:
        heights: list[float | None] = []
        for other in picture.rows_of_same_scale(part).partition_by("panel"):
            heights += _heights(other)
        ends = ends_of_axis(heights, picture.span_of(part))
        x_ends = ends_of_axis([*part["x"], picture.at], picture.x_span)
    inner = room - charts.width_of_ticks(ends)
    length, unit = min(inner, _LARGEST_SQUARE) if picture.square else inner, charts.unit_of_part(part)
    across = Axes("x", x_ends, length, {}, picture.x[0], unit=unit if picture.square else "")
    return across, Axes("y", ends, inner, {"x": across.place("x")}, unit=unit)


def _heights(part: pl.DataFrame) -> list[float | None]:
    """The values that the vertical axis shows: those of lines, and intervals as far as these leave lines their room."""
    values = part["estimate"].to_list()
    if not _has_intervals(part):
        return values
    finite = part.filter(pl.col("estimate").is_finite())["estimate"]
    low, high = finite.min(), finite.max()
    ends = part.select("lower", "upper")
    if isinstance(low, float) and isinstance(high, float) and low < high:
        reach = (high - low) * _REACH
        ends = ends.select(pl.all().clip(low - reach, high + reach))
    return [*values, *ends["lower"], *ends["upper"]]


def _has_intervals(part: pl.DataFrame) -> bool:
    """True where intervals are drawn: those of many lines would hide each other."""
    return "lower" in part.columns and part["series"].n_unique() <= MOST_BANDS


def _line_layers(
    axes: Axes, across: Axes, part: pl.DataFrame, picture: Picture, channels: Vega, dash: Vega
) -> list[Vega]:
    """The marks of a panel, from behind to front."""
    layers: list[Vega] = []
    if _has_intervals(part) and picture.points:
        layers += intervals(axes, part, channels, strokeWidth=1.5, opacity=0.6)
    elif _has_intervals(part):
        known = within_axis(axes, part)
        slot = ((pl.col("x") - across.ends[0]) / across.pixel // _ARROWS_APART).alias("slot")
        keys = ["series", "goes_down", "goes_up", "slot"]
        few = known.with_columns(slot).unique(keys, keep="first", maintain_order=True)
        band = axes.layer("area", "from", "to", table=known, channels=channels, opacity=0.14)
        layers += [band, *arrows(axes, few, channels)]
    in_order = {**channels, "order": {"field": "order", "type": "quantitative"}}
    if "dashed" in part.columns:
        style: Vega = {"strokeWidth": 1.5, "strokeDash": [1, 3], "strokeCap": "round", "clip": True}
        layers.append(axes.layer("line", "dashed", channels=in_order, **style))
    front = part.filter("front")
    if len(front) < len(part):
        behind = part.filter(~pl.col("front"))
        layers.append(axes.layer("line", "estimate", table=behind, channels=in_order, strokeWidth=1, opacity=0.5))
    tooltip = {"tooltip": charts.tooltip(part)}
    shown = {**in_order, "strokeDash": dash, **tooltip}
    layers.append(axes.layer("line", "estimate", table=front, channels=shown, strokeWidth=2, strokeJoin="round"))
    if picture.points:
        shown = {**channels, **tooltip}
        layers.append(axes.layer("point", "estimate", channels=shown, filled=True, size=40, opacity=1))
    return layers


def _reference_lines(axes: Axes, across: Axes, picture: Picture, span: Span) -> list[Vega]:
    """The diagonal, the line of equality or of no change, and the value that is marked."""
    layers: list[Vega] = []
    if picture.diagonal:
        corners = pl.DataFrame({"x": [0.0, 1.0], "estimate": [0.0, 1.0]})
        style: Vega = {"color": charts.MUTED, "strokeDash": charts.DASHES, "strokeWidth": 1.25}
        layers.append(axes.layer("line", "estimate", table=corners, **style))
    if span.reference is not None:
        layers.append(axes.line_at(span.reference, charts.MUTED))
    if picture.at is not None:
        text = pl.DataFrame({"at": [picture.at], "text": [f"{picture.at:.4g}"]})
        side: Vega = {"align": "right", "dx": -5} if across.share(picture.at) > 0.5 else {"dx": 5}
        layers.append(across.line_at(picture.at, charts.INK, dashed=True))
        layers += across.text("text", {"x": across.place("at"), "y": {"value": 9}}, text, **side)
    return layers


def _beside_each_other(part: pl.DataFrame, picture: Picture, across: Axes) -> pl.DataFrame:
    """Points with `x` where they are drawn, and `point` where they belong."""
    if not picture.points or picture.square or not _has_intervals(part):
        return part
    names = part["series"].unique(maintain_order=True).to_list()
    numbers = pl.col("series").replace_strict(names, range(len(names)), return_dtype=pl.Float64)
    shift = (numbers - (len(names) - 1) / 2) * _APART * across.pixel
    return part.with_columns(pl.col("x").alias("point"), pl.col("x") + shift)


def _with_keys(table: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """Lines with the `key` of their series, and whether it stands in `front`; and the colors of keys."""
    table = table.with_columns(pl.int_range(pl.len()).alias("order"))
    names = table["series"].unique(maintain_order=True).to_list()
    if len(names) <= len(SERIES):
        colours = dict(zip(names, SERIES, strict=False))
        return table.with_columns(pl.col("series").alias("key"), pl.lit(value=True).alias("front")), colours
    means = (
        table.group_by("series", maintain_order=True)
        .agg(pl.col("estimate").mean())
        .drop_nulls("estimate")
        .sort("estimate")
    )
    low, high = means["series"][0], means["series"][-1]
    others = f"{len(names) - 2} others"
    keys = {high: f"highest: {high}", low: f"lowest: {low}"}
    key = pl.col("series").replace_strict(keys, default=others).alias("key")
    colours = {keys[high]: charts.ACCENT, keys[low]: SERIES[1], others: charts.MUTED}
    return table.with_columns(key, pl.col("series").is_in(list(keys)).alias("front")), colours


def scatter(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Models by two measures, with their names.

    Columns: `panel`, `series` (the name), `x`, `estimate`, `front` (is on the frontier), `base` (is the baseline).
    """
    colours = {"on the frontier": charts.ACCENT, "not on it": charts.MUTED, "the baseline": LIGHT["series-2"]}
    front, other, base = map(pl.lit, colours)
    key = pl.when("base").then(base).when("front").then(front).otherwise(other)
    parts = picture.parts()
    columns = charts.columns_of(len(parts), width, _LEAST_PANEL)
    room = (width - charts.COLUMN_GAP * (columns - 1)) / columns
    inner = room - max(charts.width_of_ticks(ends_of_axis(part["estimate"], Span())) for part in parts.values())
    x = charts.fitting(picture.x, inner, charts.SMALL)
    across = Axes("x", ends_of_axis(picture.table["x"], Span()), inner, {}, x)
    colour = charts.legend("key", colours, width)
    shape = {**colour, "scale": {"domain": list(colours), "range": ["circle", "circle", "diamond"]}}
    panels: list[Vega] = []
    for name, part in parts.items():
        axes = Axes("y", ends_of_axis(part["estimate"], Span()), inner, {"x": across.place("x")})
        table = part.with_columns(key.alias("key"), (pl.col("x") > sum(across.ends) / 2).alias("right"))
        channels = {"color": colour, "shape": shape, "tooltip": charts.tooltip(table)}
        frontier = table.filter("front").sort("x")
        layers = [
            axes.layer("line", "estimate", table=frontier, color=charts.ACCENT, strokeWidth=1.25, opacity=0.6),
            axes.layer("point", "estimate", channels=channels, filled=True, size=90, opacity=1),
        ]
        for side, align, dx in ((table.filter("right"), "right", -9), (table.filter(~pl.col("right")), "left", 9)):
            style: Vega = {"align": align, "dx": dx, "dy": -8, "fontSize": charts.TEXT, "limit": inner / 2}
            layers += axes.text("series", {"y": axes.place("estimate")}, side, **style)
        y = charts.fitting(picture.y, room, charts.SMALL)
        height = min(320, max(220, room * 0.45))
        panels.append(charts.panel(layers, table, inner, height, name, y, limit=room))
    return panels, columns
