"""Pictures as data: what one shows, in a table and in words, and the panels of Vega-Lite that are made of it.

Columns have internal names, so that no name of the user becomes a path or an expression of Vega. Texts are visible and
open no tag: what draws a picture ends at a control character that XML forbids, and notebooks get a chart as part of a
script.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal

import polars as pl
import polars.selectors as cs

from tidyfair.errors import ArgumentError
from tidyfair.escapes import visible_texts, without_tags
from tidyfair.reports.theme import FONT, LIGHT

MOST_PANELS, MOST_POINTS = 30, 5_000
WIDTH, LEAST_WIDTH, NARROW = 640, 240, 480
"""The usual width of a whole picture, the least, and that below which labels stand above their rows."""
TEXT, SMALL, TITLE = 12, 11, 15
"""Sizes of letters."""
INK, MUTED, RULE, ACCENT = LIGHT["ink"], LIGHT["muted"], LIGHT["rule"], LIGHT["accent"]
DASHES = [4, 3]
GAP, COLUMN_GAP = 12, 28
"""Pixels between labels and panels, and between panels."""
_LETTER, _WIDE_LETTER, _FIRST_WIDE = 0.54, 1.0, "\u2e80"
"""The width of letters as a share of their height, rather too large, and the first one that is as wide as high."""
_BOLD = 1.1
"""By how much the letters of titles are wider."""
_MOST_LETTERS = 200
_MARGIN, _BEYOND = 12, 5
"""Pixels of a picture for dots at both ends of an axis, and by how many its labels may reach beyond it."""
_PADDING, _SHORTEST = 0.04, 0.2
"""The share by which an axis is longer than its values, and its least length where these are between 0 and 1."""
_LARGE, _SMALL_NUMBER = 1e5, 1e-3
"""Numbers beyond which ticks are written with a prefix or an exponent."""
_SHOWN = {
    "series": "series", "what": "row", "row": "row", "column": "column", "outer": "part", "model": "model",
    "point": "x", "x": "x", "estimate": "value", "lower": "lower end", "upper": "upper end", "dashed": "dashed",
    "rows": "rows", "limit": "limit", "verdict": "verdict", "expected_lower": "expected from",
    "expected_upper": "expected to", "text": "shown as",
}  # fmt: skip
"""The columns that a reader is shown who points at a mark, under names for people."""
Vega = dict[str, Any]
_THEME: dict[str, Any] = {
    "background": LIGHT["background"],
    "font": FONT,
    "padding": {"left": 1, "top": 1, "right": 1, "bottom": 4},
    "title": {
        "anchor": "start", "frame": "bounds", "fontSize": TITLE, "fontWeight": 600, "color": INK,
        "subtitleColor": MUTED, "subtitleFontSize": TEXT, "subtitlePadding": 5, "subtitleLineHeight": 16,
        "lineHeight": 19, "offset": 14,
    },
    "view": {"stroke": None},
    "axis": {
        "domain": False, "ticks": False, "grid": True, "gridColor": RULE, "labelColor": MUTED,
        "labelFontSize": SMALL, "labelPadding": 6, "labelSeparation": 6, "titleColor": MUTED,
        "titleFontSize": SMALL, "titleFontWeight": "normal", "titlePadding": 6,
    },
    "legend": {
        "orient": "top", "direction": "horizontal", "title": None, "labelColor": INK, "labelFontSize": TEXT,
        "labelLimit": 300, "columnPadding": 18, "symbolOpacity": 1, "symbolSize": 80, "offset": 10,
    },
}  # fmt: skip
"""The colors and letters of all pictures."""


@dataclass(frozen=True)
class Span:
    """Knowledge of values beforehand: the ends of their range, and the value of equality or of no change."""

    low: float | None = None
    high: float | None = None
    reference: float | None = None
    is_whole: bool = False
    """The axis shows all of the range, whatever the values."""


SPAN = pl.Struct({"low": pl.Float64, "high": pl.Float64, "reference": pl.Float64, "is_whole": pl.Boolean})


@dataclass(frozen=True)
class Picture:
    """What is drawn: a table of the marks of each `panel`, what it shows in words, and what is known of its values."""

    draw: Callable[[Picture, float], tuple[list[Vega], int]]
    """The panels in a picture of some width, and the number of those that stand side by side."""
    table: pl.DataFrame
    titles: Sequence[str]
    """The title, and shorter ones for narrow pictures."""
    notes: Sequence[str] = ()
    span: Span = field(default_factory=Span)
    """What is known of the values, where the table has no `span` of each panel."""
    limit: str = "limit"
    """The name of the limit, where it is the same for all rows."""
    x: Sequence[str] = ("",)
    """The title of the horizontal axis, and shorter ones."""
    y: Sequence[str] = ("",)
    """The title of the vertical axis, where the headings of panels do not say it, and shorter ones."""
    at: float | None = None
    """A value of the horizontal axis that is marked."""
    x_span: Span = field(default_factory=Span)
    """What is known of the values of the horizontal axis, where these are no estimates."""
    square: bool = False
    """Both axes are from 0 to 1, and equally long."""
    diagonal: str = ""
    """The name of the dashed line from corner to corner."""
    points: bool = False
    """Lines have a dot at each point, with its interval."""
    names: tuple[str, str] = ("", "")
    """The names of two models, or of the features that are the rows and columns of cells."""

    def parts(self) -> dict[str, pl.DataFrame]:
        """The rows of each panel."""
        return {part["panel"][0]: part for part in self.table.partition_by("panel", maintain_order=True)}

    def span_of(self, part: pl.DataFrame) -> Span:
        """What is known of the values of a panel."""
        return Span(**part["span"][0]) if "span" in part.columns else self.span

    def rows_of_same_scale(self, part: pl.DataFrame) -> pl.DataFrame:
        """The rows of all panels that have the axis of one."""
        if "scale" not in part.columns:
            return part
        return self.table.filter(pl.col("scale").eq_missing(part["scale"][0]))

    def finished(self, title: str | None, width: float, *, is_printed: bool = False) -> Any:
        """The altair chart with its title, and its description for those who do not see it."""
        try:
            alt: Any = import_module("altair")
        except ModuleNotFoundError as error:
            msg = f"Pictures are drawn by altair: pip install 'tidyfair[plot]' ({error})."
            raise ArgumentError(msg) from error
        if self.table.is_empty():
            msg = "autoplot() has nothing to draw: no value of the result is defined."
            raise ArgumentError(msg)
        sizes = {"points": (len(self.table), MOST_POINTS), "panels": (self.table["panel"].n_unique(), MOST_PANELS)}
        for what, (size, most) in sizes.items():
            if size > most:
                msg = f"autoplot() would draw {size} {what}; filter the result first, to at most {most}."
                raise ArgumentError(msg)
        table = visible_texts(self.table, shown)
        if "what" in table.columns and "outer" not in table.columns:
            table = unique_names(table, "what", "panel")
        inner = width - _MARGIN
        panels, columns = self.draw(replace(self, table=table), inner)
        titles = [shown(text) for text in (self.titles if title is None else [title])]
        notes = [*self.notes, f"dashed: {self.diagonal}" if self.diagonal else ""]
        if any("triangle" in layer["mark"].get("shape", "") for panel in panels for layer in panel["layer"]):
            notes.append("arrows: intervals that go on")
        note = "; ".join(shown(note) for note in notes if note)
        # on paper no letters are larger than those of labels
        size = TEXT if is_printed else TITLE
        letters = size * _BOLD
        lines = _lines(fitting(titles, inner, letters), inner, letters, most=2 if title is None else None)
        words: Vega = {"text": lines if len(lines) > 1 else "".join(lines)}
        if note:
            words["subtitle"] = _lines(note, inner, TEXT)
        theme = {**_THEME, "title": {**_THEME["title"], "fontSize": size}}
        chart = alt.ConcatChart(
            columns=columns, spacing={"row": 20, "column": COLUMN_GAP}, title=words, config=theme,
            description=f"{titles[0]}. {without_tags(_described(table))}", usermeta={"width": width},
        )  # fmt: skip
        # the panels are ours: given at once, all of them would be copied several times
        chart.concat = [_as_altair(alt, panel) for panel in panels]
        return chart


def _as_altair(alt: Any, panel: Vega) -> Any:
    """A panel of Vega-Lite as a chart of altair."""
    chart = alt.LayerChart(**{name: value for name, value in panel.items() if name != "layer"})
    chart.layer = [
        alt.Chart(**{**layer, "encoding": alt.FacetedEncoding(**layer["encoding"])}) for layer in panel["layer"]
    ]
    return chart


def _lines(text: str, width: float, size: float, most: int | None = None) -> list[str]:
    """A text in lines that fit."""
    letters = max(int(width / (_LETTER * size)), 1)
    return textwrap.wrap(text, letters, max_lines=most, placeholder="\N{HORIZONTAL ELLIPSIS}")


def panel(
    layers: Sequence[Vega], table: pl.DataFrame, width: float, height: float | Vega, heading: str = "", axis: str = "",
    **place: Any,
) -> Vega:  # fmt: skip
    """Marks on each other, from behind to front, most of them of the rows of a table.

    The heading stands above the labels, and below it the title of the vertical axis.
    """
    title: Vega = {"offset": 6, "fontSize": TEXT, "limit": width, **place, "text": heading}
    name = f"\N{UPWARDS ARROW} {axis}"
    if heading and axis:
        title |= {"subtitle": name, "subtitleFontSize": SMALL}
    elif axis:
        title |= {"text": name, "fontSize": SMALL, "fontWeight": "normal", "color": MUTED}
    marks: Vega = {"data": data(table), "width": width, "height": height, "layer": list(layers)}
    return {**marks, "title": title} if heading or axis else marks


def data(table: pl.DataFrame) -> Vega:
    """The rows of a table; numbers that are not finite are missing."""
    finite = table.select(pl.exclude("span")).with_columns(pl.when(cs.float().is_finite()).then(cs.float()))
    return {"values": finite.to_dicts()}


def nominal(name: str, **options: Any) -> Vega:
    """A column of texts for a channel."""
    return {"field": name, "type": "nominal", **options}


@dataclass(frozen=True)
class Axes:
    """Where marks stand in a panel: their values along one axis, whose ends are known, and across it."""

    values: Literal["x", "y"]
    ends: tuple[float, float]
    length: float
    """The pixels between the ends."""
    other: Vega
    """The other channel, by its name."""
    title: str = ""
    shift: Vega = field(default_factory=dict[str, Any])
    """Pixels by which marks stand beside their place."""
    unit: str = ""
    """Shares are written in `%`, and their differences in `points`."""

    def layer(
        self, mark: str, value: str, to: str | None = None, *, table: pl.DataFrame | None = None,
        channels: Vega | None = None, **style: Any,
    ) -> Vega:  # fmt: skip
        """Marks at values, or from these to others, of the rows of the panel, or of those of a table."""
        encoding = {self.values: self.place(value), **self.other, **(channels or {})}
        if to is not None:
            encoding[f"{self.values}2"] = {"field": to}
        rows = {} if table is None else {"data": data(table)}
        return {**rows, "mark": {"type": mark, **self.shift, **style}, "encoding": encoding}

    def place(self, value: str) -> Vega:
        """The channel of the values of a column."""
        low, high = self.ends
        # of four there are at least two, however round their steps are
        ticks = 4 if self.length < 260 and self.values == "x" else 5
        axis: Vega = {"tickCount": ticks, "title": self.title or None}
        if self.unit:
            axis["labelExpr"] = "format(datum.value * 100, '~r')" + " + '%'" * (self.unit == "%")
            if self.unit == "points":
                axis["title"] = f"{self.title} (points)" if self.title else "points"
        if self.values == "x":
            axis |= {"labelFlush": 4, "labelBound": _BEYOND}
        elif max(-low, high) >= _LARGE or high - low < _SMALL_NUMBER:
            axis["format"] = "~s" if max(-low, high) >= _LARGE else "~g"
        scale = {"domain": [low, high], "nice": False, "zero": False}
        return {"field": value, "type": "quantitative", "scale": scale, "axis": axis}

    def line_at(self, value: float, colour: str, *, dashed: bool = False) -> Vega:
        """A line through the whole panel."""
        style: Vega = {"color": colour, "strokeWidth": 1.25, **({"strokeDash": DASHES} if dashed else {})}
        return replace(self, other={}).layer("rule", "at", table=pl.DataFrame({"at": [value]}), **style)

    def text(self, column: str, place: Vega, table: pl.DataFrame | None = None, **style: Any) -> list[Vega]:
        """Texts on a border in the color of the page, so that lines behind them do not cross them."""
        mark: Vega = {"type": "text", "color": INK, "fontSize": SMALL, "align": "left", **self.shift, **style}
        border = {"stroke": LIGHT["background"], "strokeWidth": 4, "strokeJoin": "round"}
        rows = {} if table is None else {"data": data(table)}
        layer: Vega = {**rows, "encoding": {**self.other, **place, "text": nominal(column)}}
        return [{**layer, "mark": {**mark, **border}}, {**layer, "mark": mark}]

    @property
    def pixel(self) -> float:
        """The values that a pixel is long."""
        return (self.ends[1] - self.ends[0]) / self.length

    def share(self, value: float) -> float:
        """Where a value is between the ends of the axis, from 0 to 1."""
        low, high = self.ends
        return (value - low) / (high - low)


def width_of_ticks(ends: tuple[float, float]) -> float:
    """The width of the labels of a vertical axis, with the room beside them: about five round numbers."""
    low, high = ends
    decimals = max(0, -math.floor(math.log10((high - low) / 5)))
    texts = [f"{low:,.{decimals}f}", f"{high:,.{decimals}f}"]
    return max(text_width(text[:8], SMALL) for text in texts) + 8


def ends_of_axis(values: Iterable[float | None], span: Span) -> tuple[float, float]:
    """The ends of the axis that shows all values, and the value of equality.

    It is a little longer than its values, but does not leave their range, and small differences of shares look small.
    """
    anchors = [span.reference, span.low, span.high] if span.is_whole else [span.reference]
    shown = [value for value in [*values, *anchors] if value is not None and math.isfinite(value)]
    low, high = min(shown, default=0.0), max(shown, default=1.0)
    if (span.low, span.high) == (0, 1) and 0 <= low <= high <= 1 and high - low < _SHORTEST:
        start = min(max((low + high - _SHORTEST) / 2, 0), 1 - _SHORTEST)
        low, high = min(low, start), max(high, start + _SHORTEST)
    elif low == high:
        half = abs(low) / 10 or 0.5
        low, high = low - half, high + half
    padding = (high - low) * _PADDING
    least, most = low - padding, high + padding
    # a value beyond the range that is known is shown all the same
    if span.low is not None:
        least = min(low, max(least, span.low))
    if span.high is not None:
        most = max(high, min(most, span.high))
    return (low if low in anchors else least), (high if high in anchors else most)


def legend(name: str, colours: Mapping[str, str], width: float, **style: Any) -> Vega:
    """The color of a column of texts, with the entries of a legend."""
    widest = max(map(text_width, colours), default=0)
    entries = {"columns": max(int(width // (widest + 40)), 1), "labelLimit": width - 40, **style}
    return nominal(name, scale={"domain": list(colours), "range": list(colours.values())}, legend=entries)


def tooltip(table: pl.DataFrame) -> list[Vega]:
    """The values of a row that a reader is shown."""
    entries: list[Vega] = []
    for name, title in _SHOWN.items():
        if name not in table.columns or (name == "x" and "point" in table.columns):
            continue
        if table.schema[name].is_numeric():
            entries.append({"field": name, "type": "quantitative", "title": title, "format": ",.4~r"})
        else:
            entries.append(nominal(name, title=title))
    return entries


def columns_of(panels: int, width: float, least: float) -> int:
    """The number of panels side by side: as many as have room, and no fuller row than needed."""
    most = max(1, int((width + COLUMN_GAP) // (least + COLUMN_GAP)))
    rows = -(-panels // most)
    return -(-panels // rows)


def text_width(text: str, size: float = TEXT) -> float:
    """The width of a text in pixels, in the usual fonts without serifs, rather too large than too small."""
    return size * sum(_LETTER if letter < _FIRST_WIDE else _WIDE_LETTER for letter in text)


def fitting(texts: Sequence[str], width: float, size: float) -> str:
    """The first of several texts that fits; else the last."""
    return next((text for text in texts if text_width(text, size) <= width), texts[-1])


def shown(text: str) -> str:
    """A visible text without tags, and without its middle, if it is too long for a chart."""
    text = without_tags(text)
    half = _MOST_LETTERS // 2
    return text if len(text) <= _MOST_LETTERS else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def unique_names(table: pl.DataFrame, name: str, *within: str) -> pl.DataFrame:
    """A table in which equal texts of a column are numbered, so that different rows stay different."""
    repeats = pl.int_range(pl.len()).over(*within, name)
    return table.with_columns(pl.when(repeats > 0).then(pl.format("{} [{}]", name, repeats + 1)).otherwise(name))


def unit_of_part(part: pl.DataFrame) -> str:
    """The unit of all values of a panel; empty for plain numbers."""
    return part["unit"][0] if "unit" in part.columns else ""


def number_text(value: float | None, unit: str = "") -> str:
    """A value as it is written beside a mark, in its unit; nothing where there is none."""
    if value is None:
        return ""
    if math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "\N{MINUS SIGN}\N{INFINITY}"
    if unit:
        return f"{value * 100:z,.1f}{'%' if unit == '%' else f' {unit}'}".replace("-", "\N{MINUS SIGN}")
    decimals = 0 if abs(value) >= 1_000 else 1 if abs(value) >= 10 else 3
    # the minus of axes
    return f"{value:z,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def _described(table: pl.DataFrame) -> str:
    """A chart in words, for those who do not see it: the least and the largest value, and their rows."""
    finite = table.filter(pl.col("estimate").is_finite()).sort("estimate", maintain_order=True)
    infinite = table["estimate"].count() - len(finite)
    remark = f"{infinite} {'is' if infinite == 1 else 'are'} infinite, and not drawn." if infinite else ""
    if finite.is_empty():
        return remark or "No value is defined."
    keys = [name for name in ("panel", "series", "what", "row", "column") if name in table.columns]
    several = [name for name in keys if table[name].n_unique() > 1]
    names = [f" ({', '.join(finite[name][row] for name in several)})" if several else "" for row in (0, -1)]
    units = finite["unit"] if "unit" in finite.columns else [""] * len(finite)
    ends = [(finite["estimate"][row], units[row], name) for row, name in zip((0, -1), names, strict=True)]
    low, high = (f"{number_text(end, unit) if unit else f'{end:.3g}'}{name}" for end, unit, name in ends)
    text = f"{len(finite)} values from {low} to {high}." if len(finite) > 1 else f"One value, {low}."
    return f"{text} {remark}".rstrip()
