"""Lines and points over two axes: curves, values over thresholds, values over time, models by two measures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Key, Picture, Plane
from tidyfair.reports.dot_charts import colour_of_verdicts, keys_of_verdicts
from tidyfair.reports.layout import Axis, Span, axis_of, fitting, text_width
from tidyfair.reports.theme import LIGHT, SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LEAST_PANEL = 250
_LEAST_SQUARE, _LARGEST_SQUARE = 155, 420
_SHARE_OF_HEIGHT, _LEAST_HEIGHT, _LARGEST_HEIGHT = 0.55, 170, 260
MOST_BANDS = 3
"""The most lines of a panel that have bands."""
_REACH = 1.5
"""Intervals that reach farther beyond the lines of a panel than this share of their height are cut."""
_SHARE_OF_CUT = 0.3
"""The share at which they are cut, so that a wide one does not flatten the lines."""
_APART = 7
"""The pixels between the intervals of different lines at the same point."""
_ARROWS_APART = 24
"""The least number of pixels between the arrows of a band."""
_COLUMNS_SHOWN = {
    "panel": "of", "series": "series", "at": "at", "x": "x", "point": "x", "y": "value", "lower": "lower end",
    "upper": "upper end", "dashed": "dashed",
    "rows": "rows", "limit": "limit", "verdict": "verdict", "expected_lower": "expected from",
    "expected_upper": "expected to",
}  # fmt: skip


@dataclass(frozen=True)
class LineStyle:
    """Parts of a picture of lines beside their points."""

    x: str
    """The title of the horizontal axis."""
    y: str = ""
    """The title of the vertical axis, where the headings of panels do not say it."""
    square: bool = False
    """Both axes from 0 to 1, and equally long."""
    diagonal: str = ""
    """The name of the dashed line from corner to corner."""
    at: float | None = None
    """A value of the horizontal axis that is marked."""
    span: Span = field(default_factory=Span)
    """The known ends of the values of the horizontal axis."""
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    """The known ends of those of the vertical axis, by panel."""
    scales: Mapping[str, str] = field(default_factory=dict[str, str])
    """The scale of panels: those of the same one have the same vertical axis."""
    points: bool = False
    """A dot at each point, with its interval as a line."""
    side_by_side: bool = False
    """The intervals of different lines at the same value stand beside each other, and many lines have none."""


def lines(table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], style: LineStyle) -> Picture:
    """A line for each series, a panel for each part.

    Columns: `panel`, `series`, `x`, `y`, `lower` and `upper` where there are intervals, the `rows` of points where
    they are of several, and `dashed` where each line has another beside it. Of more series than there are colours, the
    lowest and the highest have one.
    """
    charts.check_size(table)
    table = charts.drawable(table)
    if style.diagonal:
        notes = [*notes, f"dashed: {style.diagonal}"]
    if any(_are_cut(part, style) for part in table.partition_by("panel")):
        notes = [*notes, "arrows: intervals that go on"]
    return Picture(partial(_draw_lines, table, style), titles, charts.described(table, "y", "series"), notes)


def _draw_lines(table: pl.DataFrame, style: LineStyle, width: float) -> Any:
    """Lines in panels."""
    alt = charts.altair()
    table, keys = _coloured(table)
    parts = table.partition_by("panel", maintain_order=True)
    columns = charts.columns_of(len(parts), width, _LEAST_SQUARE if style.square else _LEAST_PANEL)
    room = (width - charts.COLUMN_GAP * (columns - 1)) / columns
    panels: list[Any] = []
    for index, part in enumerate(parts):
        name = part["panel"][0]
        scale = style.scales.get(name, name)
        same = [other for other in parts if style.scales.get(other["panel"][0], other["panel"][0]) == scale]
        plane, left = _plane_of_lines(part, same, style, room)
        above = charts.Above(alt, plane, 12)
        if style.y:
            # said once in a row of panels
            above.title(f"\N{UPWARDS ARROW} {style.y}" if index % columns == 0 else "", -left, room)
        if name and len(parts) > 1:
            above.heading(name, -left, room)
        if not index and len(keys) > 1:
            # what is wider than its column would push the others aside
            above.legend(keys, -left, room if columns > 1 else width)
        layers = [*_line_layers(alt, part, plane, style), *above.layers]
        panels.append(charts.in_layers(alt, layers, plane))
    return charts.in_grid(alt, panels, columns, 20)


def _plane_of_lines(
    part: pl.DataFrame, same: Sequence[pl.DataFrame], style: LineStyle, room: float
) -> tuple[Plane, float]:
    """The panel of some lines in a column of so many pixels, and the width of the labels of its vertical axis.

    The axis is that of all parts of the same scale.
    """
    if style.square:
        most = min(room, _LARGEST_SQUARE)
        y = axis_of([], most, Span(0, 1, is_whole=True), down=True)
        left = _width_of_ticks(y)
        side = min(room - left - 4, _LARGEST_SQUARE)
        x = axis_of([], side, Span(0, 1, is_whole=True))
        return Plane(x, y.high, y.low, side, side, style.x, y), left
    heights = [value for other in same for value in _heights(other, style)]
    y = axis_of(heights, 180, style.spans.get(part["panel"][0]), down=True)
    left = _width_of_ticks(y)
    marked = [] if style.at is None else [style.at]
    x = axis_of([*part["x"], *marked], room - left, style.span)
    height = min(max(room * _SHARE_OF_HEIGHT, _LEAST_HEIGHT), _LARGEST_HEIGHT)
    return Plane(x, y.high, y.low, room - left - 4, height, style.x, y), left


def _heights(part: pl.DataFrame, style: LineStyle) -> list[float | None]:
    """The values that the vertical axis shows: those of lines, and intervals as far as these leave lines their room."""
    values = part["y"].to_list()
    if not _has_intervals(part, style):
        return values
    bands = part.select("lower", "upper")
    height = _ends_of_lines(part)
    if height is not None:
        low, high = height
        cut, ends = (high - low) * _SHARE_OF_CUT, pl.all()
        bands = bands.select(pl.when(_in_reach(*height)).then(ends).otherwise(ends.clip(low - cut, high + cut)))
    return [*values, *bands["lower"], *bands["upper"]]


def _ends_of_lines(part: pl.DataFrame) -> tuple[float, float] | None:
    """The lowest and the highest point of the lines of a panel, if these differ."""
    finite = part["y"].filter(part["y"].is_finite())
    low, high = finite.min(), finite.max()
    return (low, high) if isinstance(low, float) and isinstance(high, float) and low < high else None


def _in_reach(low: float, high: float) -> pl.Expr:
    """Mask of the ends of intervals that are near the lines, so that the axis holds them."""
    reach = (high - low) * _REACH
    return pl.all().is_between(low - reach, high + reach)


def _are_cut(part: pl.DataFrame, style: LineStyle) -> bool:
    """Check whether intervals of a panel may go on beyond its axis, or lack an end."""
    if not _has_intervals(part, style) or style.square:
        return False
    bands = part.filter(pl.col("y").is_not_null()).select("lower", "upper")
    lacks_one = bands["lower"].is_null() != bands["upper"].is_null()
    height = _ends_of_lines(part)
    if height is None:
        return bool(lacks_one.any())
    in_reach = bands.select(_in_reach(*height).fill_null(value=True).all())
    return bool(lacks_one.any()) or not all(in_reach.row(0))


def _has_intervals(part: pl.DataFrame, style: LineStyle) -> bool:
    """True where intervals are drawn: those of many lines would hide each other."""
    may_be_many = style.points and not style.side_by_side
    return "lower" in part.columns and (may_be_many or part["series"].n_unique() <= MOST_BANDS)


def _width_of_ticks(axis: Axis) -> float:
    """The width of the labels of a vertical axis, with the room beside them."""
    return max(text_width(f"{tick:{_python(axis.format)}}", charts.SMALL) for tick in axis.ticks or (0,)) + 8


def _python(d3: str) -> str:
    """The format of Python that is as wide as one of d3."""
    return ".3g" if d3.startswith("~") else d3


def _line_layers(alt: Any, part: pl.DataFrame, plane: Plane, style: LineStyle) -> list[Any]:
    """The marks of a panel, from behind to front."""
    data = _beside_each_other(part.with_row_index("order"), plane, style)
    layers = _reference_lines(alt, plane, style, part["panel"][0])
    if _has_intervals(part, style):
        layers += _ranges(alt, data, plane, style)
    encoded = {
        "x": plane.across(alt, "x"), "y": plane.down(alt, "y"), "detail": alt.Detail("series:N"),
        "color": alt.Color("colour:N", scale=None, legend=None), "order": alt.Order("order:Q"),
    }  # fmt: skip
    if "dashed" in part.columns:
        dashed = alt.Chart(data).mark_line(strokeWidth=1.25, strokeDash=[4, 3], clip=True)
        layers.append(dashed.encode(**encoded | {"y": plane.down(alt, "dashed")}))
    front = data.filter("front")
    if len(front) < len(data):
        behind = alt.Chart(data.filter(~pl.col("front"))).mark_line(strokeWidth=1, opacity=0.5)
        layers.append(behind.encode(**encoded))
    columns = {name: title for name, title in _COLUMNS_SHOWN.items() if name != "x" or "point" not in data.columns}
    shown = charts.tooltip(alt, data, columns)
    layers.append(alt.Chart(front).mark_line(strokeWidth=2, strokeJoin="round").encode(**encoded, tooltip=shown))
    if style.points:
        del encoded["order"]
        points = alt.Chart(data).mark_point(filled=True, size=40, opacity=1)
        layers.append(points.encode(**encoded, tooltip=shown))
    return layers


def _reference_lines(alt: Any, plane: Plane, style: LineStyle, name: str) -> list[Any]:
    """The diagonal, the line of equality or of no change, and the value that is marked."""
    layers: list[Any] = []
    if style.diagonal:
        corners = pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
        mark = alt.Chart(corners).mark_line(color=charts.MUTED, strokeDash=[4, 3], strokeWidth=1.25)
        layers.append(mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y")))
    reference = style.spans.get(name, Span()).reference
    if reference is not None:
        zero = alt.Chart(pl.DataFrame({"y": [reference]})).mark_rule(color=charts.MUTED, strokeWidth=1.25)
        layers.append(zero.encode(y=plane.down(alt, "y")))
    if style.at is not None:
        marked = pl.DataFrame({"x": [style.at]})
        mark = alt.Chart(marked).mark_rule(color=charts.INK, strokeDash=[4, 3], strokeWidth=1.25)
        layers.append(mark.encode(x=plane.across(alt, "x")))
        layers += _name_of_mark(alt, plane, style.at)
    return layers


def _name_of_mark(alt: Any, plane: Plane, at: float) -> list[Any]:
    """The value that is marked, beside its line."""
    pixels = (at - plane.x.low) / (plane.x.high - plane.x.low) * plane.width
    text = f"{at:.4g}"
    right = pixels > plane.width - text_width(text, charts.SMALL) - 8
    return charts.written(
        alt,
        text,
        pixels - 5 if right else pixels + 5,
        9,
        limit=80,
        colour=charts.INK,
        align="right" if right else "left",
    )


def _ranges(alt: Any, data: pl.DataFrame, plane: Plane, style: LineStyle) -> list[Any]:
    """Intervals: of dots as lines, else as a band behind the line; with arrows where they go on beyond the axis."""
    known = _within_axis(data, plane)
    if known.is_empty():
        return []
    x, low, high = plane.across(alt, "x"), plane.down(alt, "from"), alt.Y2("to")
    colour = alt.Color("colour:N", scale=None, legend=None)
    base = alt.Chart(known).encode(x=x, y=low, y2=high, color=colour, detail=alt.Detail("series:N"))
    if style.points:
        return [base.mark_rule(strokeWidth=1.5, opacity=0.6), *_arrows(alt, known, plane, x, colour)]
    pixels = (pl.col("x") - plane.x.low) / (plane.x.high - plane.x.low) * plane.width
    with_slots = known.with_columns((pixels // _ARROWS_APART).alias("slot"))
    few = with_slots.unique(["series", "goes_down", "goes_up", "slot"], keep="first", maintain_order=True)
    return [base.mark_area(opacity=0.14, line=False), *_arrows(alt, few, plane, x, colour)]


def _within_axis(data: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """The rows with an interval, `from` and `to` within the axis, and whether it `goes_down` and `goes_up` beyond."""
    low, high = sorted((plane.bottom, plane.top))
    lower, upper = pl.col("lower").fill_null(-math.inf), pl.col("upper").fill_null(math.inf)
    known = data.filter(pl.col("y").is_not_null() & (pl.col("lower").is_not_null() | pl.col("upper").is_not_null()))
    # an end on the axis may be beyond it by the last digit
    least = (high - low) * 1e-9
    return known.with_columns(
        lower.clip(low, high).alias("from"), upper.clip(low, high).alias("to"),
        (lower < low - least).alias("goes_down"), (upper > high + least).alias("goes_up"),
    )  # fmt: skip


def _arrows(alt: Any, known: pl.DataFrame, plane: Plane, x: Any, colour: Any) -> list[Any]:
    """Arrows at the ends of the axis, where intervals go on beyond it."""
    layers: list[Any] = []
    for goes_on, end, shape in (("goes_down", "from", "triangle-down"), ("goes_up", "to", "triangle-up")):
        beyond = known.filter(goes_on)
        if not beyond.is_empty():
            arrow = alt.Chart(beyond).mark_point(filled=True, size=70, shape=shape, opacity=1)
            layers.append(arrow.encode(x=x, y=plane.down(alt, end), color=colour))
    return layers


def _beside_each_other(data: pl.DataFrame, plane: Plane, style: LineStyle) -> pl.DataFrame:
    """Points with `x` where they are drawn, and `point` where they belong."""
    if not (style.side_by_side and _has_intervals(data, style)):
        return data
    names = data["series"].unique(maintain_order=True).to_list()
    numbers = pl.col("series").replace_strict(names, range(len(names)), return_dtype=pl.Float64)
    pixels = (numbers - (len(names) - 1) / 2) * _APART
    unit = (plane.x.high - plane.x.low) / plane.width
    return data.with_columns(pl.col("x").alias("point"), pl.col("x") + pixels * unit)


def _coloured(table: pl.DataFrame) -> tuple[pl.DataFrame, list[Key]]:
    """Lines with the `colour` of their series, and whether it stands in `front`, and the legend."""
    names = table["series"].unique(maintain_order=True).to_list()
    if len(names) <= len(SERIES):
        chosen = dict(zip(names, SERIES, strict=False))
        keys = [Key(name, colour, "stroke") for name, colour in chosen.items()]
        colour = pl.col("series").replace_strict(chosen)
        return table.with_columns(colour.alias("colour"), pl.lit(value=True).alias("front")), keys
    means = table.group_by("series", maintain_order=True).agg(pl.col("y").mean()).drop_nulls("y").sort("y")
    low, high = means["series"][0], means["series"][-1]
    chosen = {high: charts.ACCENT, low: SERIES[1]}
    keys = [
        Key(f"highest: {high}", charts.ACCENT, "stroke"), Key(f"lowest: {low}", SERIES[1], "stroke"),
        Key(f"{len(names) - 2} others", charts.MUTED, "stroke", 0.5),
    ]  # fmt: skip
    colour = pl.col("series").replace_strict(chosen, default=charts.MUTED)
    return table.with_columns(colour.alias("colour"), pl.col("series").is_in(list(chosen)).alias("front")), keys


def over_time(
    table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], style: LineStyle, limit: str
) -> Picture:
    """Values in the order of periods, with intervals, a limit, and what is expected.

    Columns: `panel`, `at` (the text of the period), `y`; optional are `lower` and `upper`, `limit`, `expected_lower`
    and `expected_upper`, and `verdict`.
    """
    charts.check_size(table)
    table = charts.drawable(table)
    draw = partial(_draw_over_time, table, style, limit)
    return Picture(draw, titles, charts.described(table, "y", "at"), notes)


def _draw_over_time(table: pl.DataFrame, style: LineStyle, limit: str, width: float) -> Any:
    """Values over time in panels, one below the other."""
    alt = charts.altair()
    keys = keys_of_verdicts(table)
    panels: list[Any] = []
    parts = table.partition_by("panel", maintain_order=True)
    several = len(parts) > 1
    for index, part in enumerate(parts):
        name = part["panel"][0]
        span = style.spans.get(name, Span())
        values: list[float | None] = []
        for column in ("y", "lower", "upper", "limit", "expected_lower", "expected_upper"):
            if column in part.columns:
                values += part[column].to_list()
        y = axis_of(values, 180, span, down=True)
        left = _width_of_ticks(y)
        inner = width - left - 4
        placed = part.with_columns(pl.int_range(pl.len()).cast(pl.Float64).alias("x"))
        x = Axis(-0.5, len(part) - 0.5, (), "d")
        plane = Plane(x, y.high, y.low, inner, min(max(inner * 0.4, _LEAST_HEIGHT), 220), y=y)
        layers = _time_layers(alt, placed, plane, span.reference)
        is_last = index == len(parts) - 1
        layers += _names_of_periods(alt, placed, plane, style.x if is_last else "")
        if "limit" in part.columns:
            layers += _limit_over_time(alt, placed, plane, y, limit)
        above = charts.Above(alt, plane, 8)
        if several or style.y:
            above.heading(name if several else style.y, -left, width)
        if not index:
            above.legend(keys, -left, width)
        panels.append(charts.in_layers(alt, [*layers, *above.layers], plane))
    return charts.in_grid(alt, panels, 1, 20)


def _time_layers(alt: Any, part: pl.DataFrame, plane: Plane, reference: float | None) -> list[Any]:
    """The marks of a panel over time."""
    across = plane.across(alt, "x")
    layers: list[Any] = []
    if reference is not None:
        zero = alt.Chart(pl.DataFrame({"y": [reference]})).mark_rule(color=charts.MUTED, strokeWidth=1.25)
        layers.append(zero.encode(y=plane.down(alt, "y")))
    base = alt.Chart(part).encode(x=across)
    if "expected_lower" in part.columns:
        size = min(18, plane.width / len(part) * 0.6)
        band = base.mark_rule(color=charts.MUTED, opacity=0.28, strokeWidth=size)
        layers.append(band.encode(y=plane.down(alt, "expected_lower"), y2=alt.Y2("expected_upper")))
    colour, shape = colour_of_verdicts(alt, part)
    if "lower" in part.columns:
        known = _within_axis(part, plane)
        rule = alt.Chart(known).mark_rule(strokeWidth=2, opacity=0.75)
        layers.append(rule.encode(x=across, y=plane.down(alt, "from"), y2=alt.Y2("to"), color=colour))
        layers += _arrows(alt, known, plane, across, colour)
    line = base.mark_line(color=charts.MUTED, strokeWidth=1, opacity=0.6).encode(y=plane.down(alt, "y"))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        y=plane.down(alt, "y"), color=colour, shape=shape, tooltip=charts.tooltip(alt, part, _COLUMNS_SHOWN)
    )
    return [*layers, line, points]


def _names_of_periods(alt: Any, part: pl.DataFrame, plane: Plane, title: str) -> list[Any]:
    """As many names of periods as have room, below the panel."""
    widest = max(text_width(text, charts.SMALL) for text in part["at"])
    every = max(1, -(-len(part) // max(1, int(plane.width // (widest + 10)))))
    table = part.gather_every(every).select("x", "at", pl.lit(plane.bottom).alias("y"))
    table = table.with_columns(plane.y_at(pl.lit(plane.height + 14)).alias("y"))
    mark = alt.Chart(table).mark_text(baseline="middle", color=charts.MUTED, fontSize=charts.SMALL, limit=plane.width)
    names = mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("at:N"))
    if not title:
        return [names]
    return [names, *charts.written(alt, title, plane.width / 2, plane.height + 36, limit=plane.width, align="center")]


def _limit_over_time(alt: Any, part: pl.DataFrame, plane: Plane, y: Axis, name: str) -> list[Any]:
    """The limit as a dashed line with its name."""
    values = part["limit"].drop_nulls().unique()
    mark = alt.Chart(part.filter(pl.col("limit").is_not_null()))
    if len(values) != 1:
        line = mark.mark_line(color=charts.INK, strokeDash=[4, 3], strokeWidth=1.25)
        return [line.encode(x=plane.across(alt, "x"), y=plane.down(alt, "limit"))]
    rule = alt.Chart(pl.DataFrame({"limit": values})).mark_rule(color=charts.INK, strokeDash=[4, 3], strokeWidth=1.25)
    pixels = (y.high - values[0]) / (y.high - y.low) * plane.height
    text = charts.written(
        alt, f"{name} {values[0]:.3g}", plane.width, pixels - 4, limit=plane.width, colour=charts.INK, align="right"
    )
    return [rule.encode(y=plane.down(alt, "limit")), *text]


def scatter(
    table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], x: Sequence[str], y: Sequence[str]
) -> Picture:
    """Models by two measures, with their names. Of the titles of an axis the first that fits is written.

    Columns: `panel`, `series` (the name), `x`, `y`, `front` (is on the frontier), `base` (is the baseline).
    """
    charts.check_size(table)
    table = charts.drawable(table)
    return Picture(partial(_draw_scatter, table, x, y), titles, charts.described(table, "y", "series"), notes)


def _draw_scatter(table: pl.DataFrame, x: Sequence[str], y: Sequence[str], width: float) -> Any:
    """Points with their names beside them."""
    alt = charts.altair()
    keys = [
        Key("on the frontier", charts.ACCENT),
        Key("not on it", charts.MUTED),
        Key("the baseline", LIGHT["series-2"], "diamond"),
    ]
    down = axis_of(table["y"], 220, down=True)
    left = _width_of_ticks(down)
    across = axis_of(table["x"], width - left)
    across_title, *_ = fitting(x, width - left, charts.SMALL)
    down_title, *_ = fitting([f"\N{UPWARDS ARROW} {title}" for title in y], width, charts.SMALL)
    plane = Plane(across, down.high, down.low, width - left - 4, min(320, max(220, width * 0.45)), across_title, down)
    colour = (
        pl.when("base")
        .then(pl.lit(LIGHT["series-2"]))
        .when("front")
        .then(pl.lit(charts.ACCENT))
        .otherwise(pl.lit(charts.MUTED))
    )
    middle = (across.low + across.high) / 2
    data = table.with_columns(
        colour.alias("colour"),
        pl.when("base").then(pl.lit("diamond")).otherwise(pl.lit("circle")).alias("shape"),
        (pl.col("x") > middle).alias("right"),
    )
    x_encoded, y_encoded = plane.across(alt, "x"), plane.down(alt, "y")
    layers: list[Any] = []
    frontier = data.filter("front").sort("x")
    if len(frontier) > 1:
        line = alt.Chart(frontier).mark_line(color=charts.ACCENT, strokeWidth=1.25, opacity=0.6, interpolate="linear")
        layers.append(line.encode(x=x_encoded, y=y_encoded))
    points = alt.Chart(data).mark_point(filled=True, size=90, opacity=1).encode(
        x=x_encoded, y=y_encoded, color=alt.Color("colour:N", scale=None, legend=None),
        shape=alt.Shape("shape:N", scale=None, legend=None), tooltip=charts.tooltip(alt, data, _COLUMNS_SHOWN),
    )  # fmt: skip
    layers.append(points)
    for at_right, align, shift in ((True, "right", -9), (False, "left", 9)):
        part = data.filter(pl.col("right") == at_right)
        if not part.is_empty():
            mark = alt.Chart(part).mark_text(
                align=align,
                dx=shift,
                dy=-8,
                baseline="middle",
                color=charts.INK,
                fontSize=charts.TEXT,
                limit=plane.width / 2,
            )
            layers += charts.on_border(mark.encode(x=x_encoded, y=y_encoded, text=alt.Text("series:N")))
    above = charts.Above(alt, plane, 8)
    above.title(down_title, -left, width)
    above.legend(keys, -left, width)
    return charts.in_layers(alt, [*layers, *above.layers], plane)
