"""Charts of altair from tables of plain columns: what all of them share.

Columns have internal names, so that no name of the user becomes a path or an expression of Vega. Texts are visible and
open no tag: what draws a picture ends at a control character that XML forbids, and notebooks get a chart as part of a
script. Everything is laid out by the width of the whole picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.escapes import visible_texts, without_tags
from tidyfair.reports.layout import Axis, fitting, shortened, text_width, wrapped
from tidyfair.reports.theme import FONT, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_PANELS, MOST_POINTS = 30, 5_000
WIDTH, LEAST_WIDTH, NARROW = 640, 240, 480
"""The usual width of a whole picture, the least, and that below which labels stand above their rows."""
TEXT, SMALL, HEADING, TITLE = 12, 11, 12, 15
"""Sizes of letters."""
INK, MUTED, RULE = LIGHT["ink"], LIGHT["muted"], LIGHT["rule"]
ACCENT, BACKGROUND = LIGHT["accent"], LIGHT["background"]
GAP, COLUMN_GAP = 12, 28
"""Pixels between labels and panels, and between panels."""
_LETTERS = 200
_LEGEND_ROW = 20
BOLD = 1.12
"""Letters in bold are so much wider."""
_MARGIN = 9
"""Pixels at the right of a picture, for letters that are wider than they were taken for."""


@dataclass(frozen=True)
class Picture:
    """A chart without its title, its description in words, and its notes."""

    draw: Callable[[float], Any]
    """The chart of a width."""
    titles: Sequence[str]
    """The title, and shorter ones for narrow pictures."""
    alt: str
    notes: Sequence[str] = ()

    def finished(self, title: str | None, width: float) -> Any:
        """The chart with its title, and its description for those who do not see it."""
        texts = [short(without_tags(text)) for text in (self.titles if title is None else [title])]
        inner = width - _MARGIN
        lines = fitting(texts, inner / BOLD, TITLE) if title is None else wrapped(texts[0], inner / BOLD, TITLE)
        notes = "; ".join(short(without_tags(note)) for note in self.notes if note)
        heading: dict[str, Any] = {"text": lines if len(lines) > 1 else lines[0]}
        if notes:
            heading["subtitle"] = wrapped(notes, inner, TEXT)
        # the chart is ours: methods such as `properties` would copy all of it
        chart = self.draw(inner)
        chart.title = heading
        chart.description = f"{texts[0]}. {without_tags(self.alt)}"
        chart.usermeta = {"width": width}
        chart.config = _theme()
        return chart


def _theme() -> dict[str, Any]:
    """The colours and letters of all pictures."""
    text = {"labelFont": FONT, "titleFont": FONT}
    return {
        "background": LIGHT["background"],
        "font": FONT,
        "padding": {"left": 1, "top": 1, "right": 1, "bottom": 4},
        "title": {
            "anchor": "start", "frame": "bounds", "font": FONT, "subtitleFont": FONT, "fontSize": TITLE,
            "fontWeight": 600, "color": INK, "subtitleColor": MUTED, "subtitleFontSize": TEXT, "subtitlePadding": 5,
            "subtitleLineHeight": 16, "lineHeight": 19, "offset": 14,
        },
        "view": {"stroke": None},
        "axis": {
            **text, "domain": False, "ticks": False, "gridColor": RULE, "gridWidth": 1, "labelColor": MUTED,
            "labelFontSize": SMALL, "labelPadding": 6, "titleColor": MUTED, "titleFontSize": SMALL,
            "titleFontWeight": "normal", "titlePadding": 6,
        },
        "text": {"font": FONT},
    }  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """Where a panel has its values: the ends of both axes, and how many pixels they are long."""

    x: Axis
    top: float
    bottom: float
    width: float
    height: float
    title: str | None = None
    """The title of the horizontal axis, which has no ticks where it is of names."""
    y: Axis | None = None
    """The vertical axis, where it is not of rows."""

    def across(self, alt: Any, field: str) -> Any:
        """The horizontal encoding of a column."""
        ticks = list(self.x.ticks)
        # dictionaries, since objects of altair are copied with all the options that are not given
        axis = {"values": ticks, "format": self.x.format, "title": self.title, "labelFlush": 4} if ticks else None
        scale = {"domain": [self.x.low, self.x.high], "nice": False, "zero": False}
        return alt.X(f"{field}:Q", axis=axis, scale=scale)

    def down(self, alt: Any, field: str) -> Any:
        """The vertical encoding of a column."""
        scale = {"domain": [self.bottom, self.top], "nice": False, "zero": False}
        shown = {"values": list(self.y.ticks), "format": self.y.format, "title": None} if self.y else None
        return alt.Y(f"{field}:Q", axis=shown, scale=scale)

    def x_at(self, pixels: pl.Expr) -> pl.Expr:
        """The value at a number of pixels from the left."""
        return self.x.low + pixels / self.width * (self.x.high - self.x.low)

    def y_at(self, pixels: pl.Expr) -> pl.Expr:
        """The value at a number of pixels from above."""
        return self.top + pixels / self.height * (self.bottom - self.top)


def written(
    alt: Any,
    text: str,
    x: float,
    y: float,
    *,
    limit: float,
    colour: str = MUTED,
    size: int = SMALL,
    bold: bool = False,
    align: str = "left",
) -> list[Any]:
    """A text at a point of a panel, in pixels."""
    table = pl.DataFrame({"text": [shortened(text, limit, size)]})
    mark = alt.Chart(table).mark_text(
        align=align, baseline="alphabetic", color=colour, fontSize=size, fontWeight=600 if bold else "normal"
    )
    texts = mark.encode(x=alt.XValue(x), y=alt.YValue(y), text=alt.Text("text:N"))
    # headings stand where there are no lines
    return [texts] if bold else on_border(texts)


def on_border(texts: Any) -> list[Any]:
    """Texts on a border in the colour of the page, so that lines behind them do not cross them."""
    behind = texts.copy(deep=False)
    behind.mark = behind.mark.copy(deep=False)
    behind.mark.stroke, behind.mark.strokeWidth, behind.mark.strokeJoin = BACKGROUND, 4, "round"
    return [behind, texts]


def heading(alt: Any, text: str, x: float, y: float, limit: float) -> list[Any]:
    """The heading of a panel."""
    return written(alt, text, x, y, limit=limit / BOLD, colour=INK, size=HEADING, bold=True)


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    label: str
    colour: str
    shape: str = "circle"
    opacity: float = 1


def legend_of(keys: Sequence[Key], width: float) -> tuple[pl.DataFrame, float]:
    """The entries of a legend with their points in pixels, from the top left, and its height."""
    rows: list[dict[str, Any]] = []
    x = y = 0.0
    for key in keys:
        label = shortened(key.label, width - 20, TEXT)
        length = 16 + text_width(label, TEXT)
        if x and x + length > width:
            x, y = 0.0, y + _LEGEND_ROW
        point = {"x": x + 5, "end": x + 16, "y": y + 8}
        rows.append({"series": label, "colour": key.colour, "shape": key.shape, "opacity": key.opacity, **point})
        x += length + 18
    return pl.DataFrame(rows), y + _LEGEND_ROW


def legend(alt: Any, keys: Sequence[Key], plane: Plane, x: float, y: float, width: float) -> list[Any]:
    """A legend beside or above a panel: its left and lower end are pixels of the panel."""
    if not keys:
        return []
    table, height = legend_of(keys, width)
    table = table.with_columns(
        plane.x_at(pl.col("x") + x).alias("x"),
        plane.x_at(pl.col("end") + x).alias("end"),
        plane.y_at(pl.col("y") + y - height).alias("y"),
    )
    layers: list[Any] = []
    # a short line has no area that could be filled
    for is_line in (False, True):
        part = table.filter((pl.col("shape") == "stroke") == is_line)
        if part.is_empty():
            continue
        size = {"size": 130, "strokeWidth": 2.5} if is_line else {"size": 75}
        points = alt.Chart(part).mark_point(filled=not is_line, **size)
        encoded = points.encode(
            x=plane.across(alt, "x"),
            y=plane.down(alt, "y"),
            color=alt.Color("colour:N", scale=None, legend=None),
            shape=alt.Shape("shape:N", scale=None, legend=None),
            opacity=alt.Opacity("opacity:Q", scale=None, legend=None),
        )
        layers.append(encoded)
    texts = alt.Chart(table).mark_text(align="left", baseline="middle", color=INK, fontSize=TEXT)
    layers.append(texts.encode(x=plane.across(alt, "end"), y=plane.down(alt, "y"), text=alt.Text("series:N")))
    return layers


@dataclass
class Above:
    """What stands above a panel, from below to above: the title of its axis, its heading, the legend."""

    alt: Any
    plane: Plane
    height: float
    """The pixels above the panel that are taken."""
    layers: list[Any] = field(default_factory=list[Any])

    def title(self, text: str, x: float, limit: float) -> None:
        """The title of the vertical axis; its row is kept free where the text is empty."""
        self.layers += written(self.alt, text, x, -self.height, limit=limit)
        self.height += SMALL + 8

    def heading(self, text: str, x: float, limit: float) -> None:
        """The heading of the panel."""
        self.layers += heading(self.alt, text, x, -self.height - 2, limit)
        self.height += HEADING + 8

    def legend(self, keys: Sequence[Key], x: float, width: float) -> None:
        """The legend, where there are entries."""
        self.layers += legend(self.alt, keys, self.plane, x, -self.height - 4, width)


def check_size(table: pl.DataFrame) -> None:
    """Refuse a chart that is too large to be read."""
    sizes = {"points": (len(table), MOST_POINTS), "panels": (table["panel"].n_unique(), MOST_PANELS)}
    for what, (size, most) in sizes.items():
        if size > most:
            msg = f"autoplot() would draw {size} {what}; filter the result first, to at most {most}."
            raise ArgumentError(msg)


def in_layers(alt: Any, layers: Sequence[Any], plane: Plane) -> Any:
    """Marks as one panel, from behind to front."""
    # the marks are ours: `layer` would copy all of them several times, which takes longer than to draw them
    panel = alt.LayerChart(width=plane.width, height=plane.height)
    panel.layer = list(layers)
    return panel


def in_grid(alt: Any, panels: Sequence[Any], columns: int, rows_apart: float) -> Any:
    """Panels as one chart, row by row."""
    if len(panels) == 1:
        return panels[0]
    # without copies, as in layers
    grid = alt.ConcatChart(columns=columns, spacing={"row": rows_apart, "column": COLUMN_GAP})
    grid.concat = list(panels)
    return grid


def columns_of(panels: int, width: float, least: float) -> int:
    """The number of panels side by side: as many as have room, and no fuller row than needed."""
    if not panels:
        msg = "autoplot() has nothing to draw: no value of the result is defined."
        raise ArgumentError(msg)
    most = max(1, int((width + COLUMN_GAP) // (least + COLUMN_GAP)))
    rows = -(-panels // most)
    return -(-panels // rows)


def drawable(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts are visible, short, and open no tag."""
    return visible_texts(table, lambda text: short(without_tags(text)))


def short(text: str) -> str:
    """A text without its middle, if it is too long for a chart."""
    if len(text) <= _LETTERS:
        return text
    half = _LETTERS // 2
    return f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def unique_names(table: pl.DataFrame, name: str, *within: str) -> pl.DataFrame:
    """A table in which equal texts of a column are numbered, so that different rows stay different."""
    repeats = pl.int_range(pl.len()).over(*within, name)
    return table.with_columns(pl.when(repeats > 0).then(pl.format("{} [{}]", name, repeats + 1)).otherwise(name))


def tooltip(alt: Any, table: pl.DataFrame, names: Mapping[str, str]) -> list[Any]:
    """The values of a row that a reader is shown, under names for people."""
    shown: list[Any] = []
    for name, title in names.items():
        if name not in table.columns or (name == "panel" and table["panel"].n_unique() == 1):
            continue
        if table.schema[name].is_numeric():
            shown.append(alt.Tooltip(f"{name}:Q", title=title, format=",.4~r"))
        else:
            shown.append(alt.Tooltip(f"{name}:N", title=title))
    return shown


def number_text(value: float | None) -> str:
    """A value as it is written beside a mark; nothing where there is none."""
    if value is None:
        return ""
    if value in (float("inf"), float("-inf")):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    decimals = 0 if abs(value) >= 1_000 else 1 if abs(value) >= 10 else 3
    # the minus of axes
    return f"{value:z,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def described(table: pl.DataFrame, value: str, *keys: str) -> str:
    """A chart in words, for those who do not see it."""
    values = table.filter(pl.col(value).is_not_null())
    finite = values.filter(pl.col(value).is_finite()).sort(value, maintain_order=True)
    infinite = len(values) - len(finite)
    remark = ""
    if infinite:
        verb = "is" if infinite == 1 else "are"
        remark = f" {infinite} {verb} infinite, and not drawn."
    if finite.is_empty():
        return remark.strip() or "No value is defined."
    several = [pl.col(name) for name in ("panel", *keys) if table[name].n_unique() > 1]
    row_name = pl.concat_str(several, separator=", ") if several else pl.lit("")
    rows = finite.select(value, row_name.alias("name"))
    low, high = _value_of_row(*rows.row(0)), _value_of_row(*rows.row(-1))
    text = f"{len(finite)} values from {low} to {high}" if len(finite) > 1 else f"One value, {low}"
    return f"{text}.{remark}"


def _value_of_row(number: float, name: str) -> str:
    """A value, and the name of its row where there are several rows."""
    return f"{number:.3g} ({name})" if name else f"{number:.3g}"


def altair() -> Any:
    """The package that draws.

    Raises:
        ArgumentError: Where it is not installed.
    """
    try:
        import altair as alt  # noqa: PLC0415 - only where pictures are drawn
    except ModuleNotFoundError as error:
        msg = f"Pictures are drawn by altair: pip install 'tidyfair[plot]' ({error})."
        raise ArgumentError(msg) from error
    return alt
