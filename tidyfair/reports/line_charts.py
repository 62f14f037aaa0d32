"""Lines and points over two axes: curves, values over thresholds, values over time, models by two measures."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.reports.charts import (
    ACCENT,
    HEADING,
    INK,
    MUTED,
    SMALL,
    TEXT,
    Key,
    Picture,
    Plane,
    altair,
    check_size,
    columns_of,
    described,
    drawable,
    heading,
    in_grid,
    in_layers,
    legend,
    on_border,
    tooltip,
    written,
)
from tidyfair.reports.dot_charts import colour_of_verdicts, keys_of_verdicts
from tidyfair.reports.layout import Axis, Span, axis_of, text_width
from tidyfair.reports.theme import LIGHT, SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__: list[str] = []

_LEAST_PANEL = 250
_LEAST_SQUARE, _LARGEST_SQUARE = 155, 420
_SHARE_OF_HEIGHT, _LEAST_HEIGHT, _LARGEST_HEIGHT = 0.55, 170, 260
_COLUMNS_SHOWN = {
    "panel": "of", "series": "series", "at": "at", "x": "x", "y": "value", "lower": "lower end", "upper": "upper end",
    "rows": "rows", "limit": "limit", "verdict": "verdict", "expected_lower": "expected from",
    "expected_upper": "expected to",
}  # fmt: skip


@dataclass(frozen=True)
class LineStyle:
    """What is drawn about lines beside their points."""

    x: str
    """The title of the horizontal axis."""
    y: str = ""
    """The title of the vertical axis, where the headings of panels do not say it."""
    square: bool = False
    """Both axes from 0 to 1, and equally long."""
    diagonal: str = ""
    """The name of the line from corner to corner."""
    at: float | None = None
    """A value of the horizontal axis that is marked."""
    span: Span = field(default_factory=Span)
    """What is known of the values of the horizontal axis."""
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    """What is known of those of the vertical axis, by panel."""
    points: bool = False
    """A dot at each point."""


def lines(table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], style: LineStyle) -> Picture:
    """A line for each series, a panel for each part.

    Columns: `panel`, `series`, `x`, `y`, `lower` and `upper` where there are intervals, and the `rows` of points where
    they are of several. Of more series than there are colours, the lowest and the highest have one.
    """
    check_size(table)
    table = drawable(table)
    return Picture(partial(_draw_lines, table, style), titles, described(table, "y", "series"), notes)


def _draw_lines(table: pl.DataFrame, style: LineStyle, width: float) -> Any:
    """Lines in panels."""
    alt = altair()
    colours, keys = _colours(table)
    if style.diagonal:
        keys = [*keys, Key(style.diagonal, MUTED, "stroke", 0.6)]
    table = table.with_columns(
        pl.col("series").replace_strict({name: colour for name, (colour, _) in colours.items()}).alias("colour"),
        pl.col("series").replace_strict({name: front for name, (_, front) in colours.items()}).alias("front"),
    )
    parts = table.partition_by("panel", maintain_order=True)
    columns = columns_of(len(parts), width, _LEAST_SQUARE if style.square else _LEAST_PANEL)
    room = (width - 28 * (columns - 1)) / columns
    panels: list[Any] = []
    for index, part in enumerate(parts):
        name = part["panel"][0]
        x, y, left = _axes(part, style, room, name)
        inner = room - left - 4
        if style.square:
            inner = min(inner, _LARGEST_SQUARE)
        height = inner if style.square else min(max(room * _SHARE_OF_HEIGHT, _LEAST_HEIGHT), _LARGEST_HEIGHT)
        plane = Plane(x, y.high, y.low, inner, height, style.x, y)
        layers = _line_layers(alt, part, plane, y, style, name)
        overhang = 12.0
        if style.y:
            # said once in a row of panels
            title = f"\N{UPWARDS ARROW} {style.y}" if index % columns == 0 else ""
            layers += written(alt, title, -left, -overhang, limit=room)
            overhang += SMALL + 8
        if name and len(parts) > 1:
            layers += heading(alt, name, -left, -overhang, room)
            overhang += HEADING + 8
        if not index:
            # what is wider than its column would push the others aside
            layers += legend(
                alt, keys if len(keys) > 1 else [], plane, -left, -overhang, room if columns > 1 else width
            )
        panels.append(in_layers(alt, layers, plane))
    return in_grid(alt, panels, columns, 20)


def _axes(part: pl.DataFrame, style: LineStyle, room: float, name: str) -> tuple[Axis, Axis, float]:
    """Both axes of a panel, and the width of the labels of the vertical one."""
    values = part["y"].to_list()
    for end in ("lower", "upper"):
        if end in part.columns:
            values += part[end].to_list()
    if style.square:
        y = axis_of([0, 1], 200, Span(0, 1), down=True)
    else:
        y = axis_of(values, 180, style.spans.get(name), down=True)
    left = max(text_width(f"{tick:{_python(y.format)}}", SMALL) for tick in y.ticks or (0,)) + 8
    at = [] if style.at is None else [style.at]
    x = axis_of([0, 1] if style.square else [*part["x"], *at], room - left, Span(0, 1) if style.square else style.span)
    return x, y, left


def _python(d3: str) -> str:
    """The format of Python that is as wide as one of d3."""
    return ".3g" if d3.startswith("~") else d3


def _line_layers(alt: Any, part: pl.DataFrame, plane: Plane, y: Axis, style: LineStyle, name: str) -> list[Any]:
    """The marks of a panel, from behind to front."""
    data = part.with_row_index("order")
    x_encoded, y_encoded = plane.across(alt, "x"), plane.down(alt, "y")
    colour = alt.Color("colour:N", scale=None, legend=None)
    base = alt.Chart(data).encode(x=x_encoded, y=y_encoded, color=colour, detail=alt.Detail("series:N"))
    layers: list[Any] = []
    if style.diagonal:
        corners = pl.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
        mark = alt.Chart(corners).mark_line(color=MUTED, strokeDash=[4, 3], strokeWidth=1.25)
        layers.append(mark.encode(x=x_encoded, y=y_encoded))
    reference = style.spans.get(name, Span()).reference
    if reference is not None:
        zero = alt.Chart(pl.DataFrame({"y": [reference]})).mark_rule(color=MUTED, strokeWidth=1.25)
        layers.append(zero.encode(y=y_encoded))
    if style.at is not None:
        mark = alt.Chart(pl.DataFrame({"x": [style.at]})).mark_rule(color=INK, strokeDash=[4, 3], strokeWidth=1.25)
        layers.append(mark.encode(x=x_encoded))
        layers += _name_of_mark(alt, plane, style.at)
    if "lower" in part.columns:
        layers += _ranges(alt, data, plane, y, style)
    front = data.filter(pl.col("front"))
    if len(front) < len(data):
        behind = alt.Chart(data.filter(~pl.col("front"))).mark_line(strokeWidth=1, opacity=0.5, color=MUTED)
        layers.append(
            behind.encode(x=x_encoded, y=y_encoded, detail=alt.Detail("series:N"), order=alt.Order("order:Q"))
        )
    shown = tooltip(alt, part, _COLUMNS_SHOWN)
    line = alt.Chart(front).mark_line(strokeWidth=2, strokeJoin="round")
    encoded = {"x": x_encoded, "y": y_encoded, "color": colour, "detail": alt.Detail("series:N")}
    layers.append(line.encode(**encoded, order=alt.Order("order:Q"), tooltip=shown))
    if style.points:
        layers.append(base.mark_point(filled=True, size=40, opacity=1).encode(tooltip=shown))
    return layers


def _name_of_mark(alt: Any, plane: Plane, at: float) -> list[Any]:
    """The value that is marked, beside its line."""
    pixels = (at - plane.x.low) / (plane.x.high - plane.x.low) * plane.width
    text = f"{at:.4g}"
    right = pixels > plane.width - text_width(text, SMALL) - 8
    return written(
        alt, text, pixels - 5 if right else pixels + 5, 9, limit=80, colour=INK, align="right" if right else "left"
    )


def _ranges(alt: Any, data: pl.DataFrame, plane: Plane, y: Axis, style: LineStyle) -> list[Any]:
    """Intervals: of dots as lines, else as a band behind the line."""
    known = data.filter(pl.col("lower").is_not_null() & pl.col("upper").is_not_null())
    if known.is_empty():
        return []
    clipped = known.with_columns(pl.col("lower", "upper").clip(y.low, y.high))
    x, low, high = plane.across(alt, "x"), plane.down(alt, "lower"), alt.Y2("upper")
    colour = alt.Color("colour:N", scale=None, legend=None)
    base = alt.Chart(clipped).encode(x=x, y=low, y2=high, color=colour, detail=alt.Detail("series:N"))
    if style.points:
        return [base.mark_rule(strokeWidth=1.5, opacity=0.6)]
    return [base.mark_area(opacity=0.14, line=False)]


def _colours(table: pl.DataFrame) -> tuple[dict[str, tuple[str, bool]], list[Key]]:
    """The colour of each series, whether it stands in front, and the legend."""
    names = table["series"].unique(maintain_order=True).to_list()
    if len(names) <= len(SERIES):
        chosen = dict(zip(names, SERIES, strict=False))
        return {name: (colour, True) for name, colour in chosen.items()}, [
            Key(name, colour, "stroke") for name, colour in chosen.items()
        ]
    means = table.group_by("series", maintain_order=True).agg(pl.col("y").mean()).drop_nulls("y").sort("y")
    low, high = means["series"][0], means["series"][-1]
    colours = dict.fromkeys(names, (MUTED, False)) | {high: (ACCENT, True), low: (SERIES[1], True)}
    keys = [
        Key(f"highest: {high}", ACCENT, "stroke"), Key(f"lowest: {low}", SERIES[1], "stroke"),
        Key(f"{len(names) - 2} others", MUTED, "stroke", 0.5),
    ]  # fmt: skip
    return colours, keys


def over_time(
    table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], style: LineStyle, limit: str
) -> Picture:
    """Values in the order of periods, with intervals, a limit, and what is expected.

    Columns: `panel`, `at` (the text of the period), `y`; optional are `lower` and `upper`, `limit`, `expected_lower`
    and `expected_upper`, and `verdict`.
    """
    check_size(table)
    table = drawable(table)
    draw = partial(_draw_over_time, table, style, limit)
    return Picture(draw, titles, described(table, "y", "at"), notes)


def _draw_over_time(table: pl.DataFrame, style: LineStyle, limit: str, width: float) -> Any:
    """Values over time in panels, one below the other."""
    alt = altair()
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
        left = max(text_width(f"{tick:{_python(y.format)}}", SMALL) for tick in y.ticks) + 8
        inner = width - left - 4
        placed = part.with_columns(pl.int_range(pl.len()).cast(pl.Float64).alias("x"))
        x = Axis(-0.5, len(part) - 0.5, (), "d")
        plane = Plane(x, y.high, y.low, inner, min(max(inner * 0.4, _LEAST_HEIGHT), 220), y=y)
        layers = _time_layers(alt, placed, plane, y, span.reference)
        is_last = index == len(parts) - 1
        layers += _names_of_periods(alt, placed, plane, style.x if is_last else "")
        if "limit" in part.columns:
            layers += _limit_over_time(alt, placed, plane, y, limit)
        overhang = 10.0
        if several or style.y:
            layers += heading(alt, name if several else style.y, -left, -overhang, width)
            overhang += HEADING + 8
        if not index:
            layers += legend(alt, keys, plane, -left, -overhang, width)
        panels.append(in_layers(alt, layers, plane))
    return in_grid(alt, panels, 1, 20)


def _time_layers(alt: Any, part: pl.DataFrame, plane: Plane, y: Axis, reference: float | None) -> list[Any]:
    """The marks of a panel over time."""
    across = plane.across(alt, "x")
    layers: list[Any] = []
    if reference is not None:
        zero = alt.Chart(pl.DataFrame({"y": [reference]})).mark_rule(color=MUTED, strokeWidth=1.25)
        layers.append(zero.encode(y=plane.down(alt, "y")))
    base = alt.Chart(part).encode(x=across)
    if "expected_lower" in part.columns:
        size = min(18, plane.width / len(part) * 0.6)
        band = base.mark_rule(color=MUTED, opacity=0.28, strokeWidth=size)
        layers.append(band.encode(y=plane.down(alt, "expected_lower"), y2=alt.Y2("expected_upper")))
    colour, shape = colour_of_verdicts(alt, part)
    if "lower" in part.columns:
        known = part.filter(pl.col("lower").is_not_null() | pl.col("upper").is_not_null()).with_columns(
            pl.col("lower").fill_null(y.low).clip(y.low, y.high), pl.col("upper").fill_null(y.high).clip(y.low, y.high)
        )
        rule = alt.Chart(known).mark_rule(strokeWidth=2, opacity=0.75)
        layers.append(rule.encode(x=across, y=plane.down(alt, "lower"), y2=alt.Y2("upper"), color=colour))
    line = base.mark_line(color=MUTED, strokeWidth=1, opacity=0.6).encode(y=plane.down(alt, "y"))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        y=plane.down(alt, "y"), color=colour, shape=shape, tooltip=tooltip(alt, part, _COLUMNS_SHOWN)
    )
    return [*layers, line, points]


def _names_of_periods(alt: Any, part: pl.DataFrame, plane: Plane, title: str) -> list[Any]:
    """As many names of periods as have room, below the panel."""
    widest = max(text_width(text, SMALL) for text in part["at"])
    every = max(1, -(-len(part) // max(1, int(plane.width // (widest + 10)))))
    table = part.gather_every(every).select("x", "at", pl.lit(plane.bottom).alias("y"))
    table = table.with_columns(plane.y_at(pl.lit(plane.height + 14)).alias("y"))
    mark = alt.Chart(table).mark_text(baseline="middle", color=MUTED, fontSize=SMALL, limit=plane.width)
    names = mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("at:N"))
    if not title:
        return [names]
    return [names, *written(alt, title, plane.width / 2, plane.height + 36, limit=plane.width, align="center")]


def _limit_over_time(alt: Any, part: pl.DataFrame, plane: Plane, y: Axis, name: str) -> list[Any]:
    """The limit as a dashed line with its name."""
    values = part["limit"].drop_nulls().unique()
    mark = alt.Chart(part.filter(pl.col("limit").is_not_null()))
    if len(values) != 1:
        line = mark.mark_line(color=INK, strokeDash=[4, 3], strokeWidth=1.25)
        return [line.encode(x=plane.across(alt, "x"), y=plane.down(alt, "limit"))]
    rule = alt.Chart(pl.DataFrame({"limit": values})).mark_rule(color=INK, strokeDash=[4, 3], strokeWidth=1.25)
    pixels = (y.high - values[0]) / (y.high - y.low) * plane.height
    text = written(
        alt, f"{name} {values[0]:.3g}", plane.width, pixels - 4, limit=plane.width, colour=INK, align="right"
    )
    return [rule.encode(y=plane.down(alt, "limit")), *text]


def scatter(table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], x: str, y: str) -> Picture:
    """Models by two measures, with their names.

    Columns: `panel`, `series` (the name), `x`, `y`, `front` (is on the frontier), `base` (is the baseline).
    """
    check_size(table)
    table = drawable(table)
    return Picture(partial(_draw_scatter, table, x, y), titles, described(table, "y", "series"), notes)


def _draw_scatter(table: pl.DataFrame, x: str, y: str, width: float) -> Any:
    """Points with their names beside them."""
    alt = altair()
    keys = [
        Key("on the frontier", ACCENT), Key("not on it", MUTED), Key("the baseline", LIGHT["series-2"], "diamond"),
    ]  # fmt: skip
    down = axis_of(table["y"], 220, down=True)
    left = max(text_width(f"{tick:{_python(down.format)}}", SMALL) for tick in down.ticks) + 8
    across = axis_of(table["x"], width - left)
    plane = Plane(across, down.high, down.low, width - left - 4, min(320, max(220, width * 0.45)), x, down)
    colour = pl.when("base").then(pl.lit(LIGHT["series-2"])).when("front").then(pl.lit(ACCENT)).otherwise(pl.lit(MUTED))
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
        line = alt.Chart(frontier).mark_line(color=ACCENT, strokeWidth=1.25, opacity=0.6, interpolate="linear")
        layers.append(line.encode(x=x_encoded, y=y_encoded))
    points = alt.Chart(data).mark_point(filled=True, size=90, opacity=1).encode(
        x=x_encoded, y=y_encoded, color=alt.Color("colour:N", scale=None, legend=None),
        shape=alt.Shape("shape:N", scale=None, legend=None), tooltip=tooltip(alt, data, _COLUMNS_SHOWN),
    )  # fmt: skip
    layers.append(points)
    for at_right, align, shift in ((True, "right", -9), (False, "left", 9)):
        part = data.filter(pl.col("right") == at_right)
        if not part.is_empty():
            mark = alt.Chart(part).mark_text(
                align=align, dx=shift, dy=-8, baseline="middle", color=INK, fontSize=TEXT, limit=plane.width / 2
            )
            layers += on_border(mark.encode(x=x_encoded, y=y_encoded, text=alt.Text("series:N")))
    layers += written(alt, f"\N{UPWARDS ARROW} {y}", -left, -8, limit=width)
    layers += legend(alt, keys, plane, -left, -30, width)
    return in_layers(alt, layers, plane)
