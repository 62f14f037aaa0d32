"""Pictures as data: what one shows, in a table and in words, and the panels of Vega-Lite that are made of it.

Columns have internal names, so that no name of the user becomes a path or an expression of Vega. Texts are visible and
open no tag: what draws a picture ends at a control character that XML forbids, and notebooks get a chart as part of a
script.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TypeAlias

import polars as pl
import polars.selectors as cs

from tidyfair.errors import ArgumentError
from tidyfair.escapes import visible_texts, without_tags
from tidyfair.reports.tables import in_unit, value_in_words
from tidyfair.reports.theme import FONT, LIGHT, SERIES

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
    "padding": {"left": 4, "top": 1, "right": 1, "bottom": 4},
    "title": {
        "anchor": "start", "frame": "bounds", "fontSize": TITLE, "fontWeight": 600, "color": INK,
        "subtitleColor": MUTED, "subtitleFontSize": TEXT, "subtitlePadding": 5, "subtitleLineHeight": 16,
        "lineHeight": 19, "offset": 14,
    },
    "view": {"stroke": None},
    "axis": {
        "domain": False, "ticks": False, "grid": True, "gridColor": RULE, "labelColor": MUTED,
        "labelFontSize": SMALL, "labelPadding": 6, "labelSeparation": 10, "titleColor": MUTED,
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
    x: str = ""
    """The title of the horizontal axis, whose brackets are left out where there is no room."""
    y: str = ""
    """The title of the vertical axis, where the headings of panels do not say it."""
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

    def parts(self) -> list[tuple[str, pl.DataFrame]]:
        """The heading of each panel, which is empty where there is one panel, and its rows."""
        parts = self.table.partition_by("panel", maintain_order=True)
        return [(part["panel"][0] if len(parts) > 1 else "", part) for part in parts]

    def span_of(self, part: pl.DataFrame) -> Span:
        """What is known of the values of a panel."""
        return Span(**part["span"][0]) if "span" in part.columns else self.span

    def rows_of_same_scale(self, part: pl.DataFrame) -> pl.DataFrame:
        """The rows of all panels that have the axis of one."""
        if "scale" not in part.columns:
            return part
        return self.table.filter(pl.col("scale").eq_missing(part["scale"][0]))

    def _check_size(self) -> None:
        """Refuse pictures of nothing, and of more than can be told apart."""
        if self.table.is_empty():
            msg = "autoplot() has nothing to draw: no value of the result is defined."
            raise ArgumentError(msg)
        sizes = {"points": (len(self.table), MOST_POINTS), "panels": (self.table["panel"].n_unique(), MOST_PANELS)}
        for what, (size, most) in sizes.items():
            if size > most:
                msg = f"autoplot() would draw {size} {what}; filter the result first, to at most {most}."
                raise ArgumentError(msg)

    def finished(self, title: str | None, width: float, *, is_printed: bool = False) -> Any:
        """The altair chart with its title, and its description for those who do not see it."""
        alt = _altair()
        self._check_size()
        table = visible_texts(self.table, shown)
        if "what" in table.columns and "outer" not in table.columns:
            table = unique_names(table, "what", "panel")
        inner = width - _MARGIN
        panels, columns = self.draw(replace(self, table=table), inner)
        titles = [shown(text) for text in (self.titles if title is None else [title])]
        # on paper no letters are larger than those of labels
        size = TEXT if is_printed else TITLE
        letters = size * _BOLD
        lines = _lines(fitting(titles, inner, letters), inner, letters, most=2 if title is None else None)
        words: Vega = {"text": lines if len(lines) > 1 else "".join(lines)}
        if note := self._note(panels):
            words["subtitle"] = _lines(note, inner, TEXT)
        theme = {**_THEME, "title": {**_THEME["title"], "fontSize": size}}
        chart = alt.ConcatChart(
            columns=columns, spacing={"row": 20, "column": COLUMN_GAP}, title=words, config=theme,
            description=f"{titles[0]}. {without_tags(_described(table))}", usermeta={"width": width},
        )  # fmt: skip
        # the panels are ours: given at once, all of them would be copied several times
        chart.concat = [alt.LayerChart(**{name: panel[name] for name in panel if name != "layer"}) for panel in panels]
        for drawn, panel in zip(chart.concat, panels, strict=True):
            encoded = [{**layer, "encoding": alt.FacetedEncoding(**layer["encoding"])} for layer in panel["layer"]]
            drawn.layer = [alt.Chart(**layer) for layer in encoded]
        return chart

    def _note(self, panels: Sequence[Vega]) -> str:
        """The notes on what is drawn, one after the other."""
        notes = [*self.notes, f"dashed: {self.diagonal}" if self.diagonal else ""]
        if any("triangle" in layer["mark"].get("shape", "") for panel in panels for layer in panel["layer"]):
            notes.append("arrows: intervals that go on")
        return "; ".join(shown(note) for note in notes if note)


def _altair() -> Any:
    """The package that pictures are drawn by."""
    try:
        return import_module("altair")
    except ModuleNotFoundError as error:
        msg = f"Pictures are drawn by altair: pip install 'tidyfair[plot]' ({error})."
        raise ArgumentError(msg) from error


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
    name = fitting(_with_shorter(axis), width, SMALL)
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
        # of three there are at least two, however round their steps are
        ticks = 5 if self.length >= 260 or self.values == "y" else 4 if self.length >= 150 else 3
        title = fitting(_with_shorter(self.title), self.length, SMALL)
        axis: Vega = {"tickCount": ticks, "title": title or None}
        if self.unit:
            axis["labelExpr"] = "format(datum.value * 100, '~r')" + " + '%'" * (self.unit == "%")
            if self.unit == "points":
                axis["title"] = f"{title} (points)" if title else "points"
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


def _with_shorter(title: str) -> list[str]:
    """A title, and the same without its brackets."""
    return [title, title.partition(" (")[0]]


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


def with_points(table: pl.DataFrame) -> pl.DataFrame:
    """Changes of values, which are in points where these have a unit, `unit_of_both`."""
    if "unit" not in table.columns:
        return table
    points = pl.when(pl.col("unit") == "").then("unit").otherwise(pl.lit("points"))
    return table.with_columns(points.alias("unit"), pl.col("unit").alias("unit_of_both"))


def number_text(value: float | None, unit: str = "") -> str:
    """A value as it is written beside a mark, rounded as in tables; nothing where there is none."""
    return "" if value is None else _as_on_axes(in_unit(value, unit))


def _as_on_axes(text: str) -> str:
    """A number with the minus of axes, or with the sign of infinity."""
    return text.replace("-", "\N{MINUS SIGN}").replace("inf", "\N{INFINITY}")


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


# Rows of dots

_GOOD, _BAD, _OPEN = (LIGHT["good"], "circle"), (LIGHT["bad"], "cross"), (LIGHT["open"], "diamond")
_VERDICTS = {
    "pass": _GOOD, "fail": _BAD, "not enough evidence": _OPEN, "within": _GOOD, "above the limit": _BAD,
    "below the limit": _BAD, "undecided": _OPEN, "better": _GOOD, "equivalent": (LIGHT["accent"], "circle"),
    "not worse": (LIGHT["accent"], "square"), "different": (INK, "square"), "worse": _BAD, "not shown": _OPEN,
    "beyond chance": (LIGHT["accent"], "diamond"), "not beyond chance": (MUTED, "circle"),
}  # fmt: skip
"""The color and the shape of verdicts."""
_ROW, _TALL_ROW, _SHIFT = 26, 42, 9
"""The height of a row; of one whose label stands above it, and by how much both stand beside its middle."""
_LEAST_ROWS = 150
"""The least width of a panel beside others."""
_WITH_VALUES = 560
"""The least width of a picture with values written beside their rows."""
_OF_ONE = {"Metrics": "Value", "Differences": "Difference", "Ratios": "Ratio", "Disparities": "Disparity"}
"""The title of the axis of a single panel, where that is no metric."""
_DRAWN = ("estimate", "lower", "upper", "limit", "expected_lower", "expected_upper", "raw", "mean")


@dataclass(frozen=True)
class _Layout:
    """The pixels of labels, which are none where these stand above their rows, of panels, and of values beside them."""

    labels: float
    columns: int
    panel: float
    values: float
    both: float
    """The room for the values of two models, between the first part and the second."""
    whole: float


def _layout_of(table: pl.DataFrame, width: float, parts: int = 1) -> _Layout:
    """The room in a picture of some width, where each panel has some parts side by side."""
    widest = max(text_width(text) for text in table["what"]) + GAP
    most = width * (0.38 if width < NARROW else 0.4)
    labels = 0.0 if width < NARROW and widest > most else min(widest, most)
    inner = width - labels
    rows = table.group_by("panel", maintain_order=True).agg(pl.col("what").unique(maintain_order=True))["what"]
    columns = 1
    if parts == 1 and rows.n_unique() == 1:
        # a panel has room for its heading, unless that is longer than half of the picture
        heading = max(text_width(text) for text in table["panel"])
        least = max(_LEAST_ROWS, min(heading, inner / 2 - COLUMN_GAP))
        columns = columns_of(len(rows), inner, least)
    inner -= COLUMN_GAP * (columns * parts - 1)
    values = both = 0.0
    if columns == 1 and width >= _WITH_VALUES and "outer" not in table.columns:
        texts = [_values_of(table), _both_of(table) if parts > 1 else []]
        values, both = (max((text_width(text, SMALL) + GAP for text in part), default=0.0) for part in texts)
        both = both if inner - values - both >= parts * _LEAST_ROWS else 0.0
    return _Layout(labels, columns, (inner - values - both) / (columns * parts), values, both, width)


def _values_of(table: pl.DataFrame) -> list[str]:
    """Values with their intervals as text."""
    rows = table.select(pl.col("estimate"), *(
        pl.col(name) if name in table.columns else pl.lit(default).alias(name)
        for name, default in (("unit", ""), ("lower", None), ("upper", None), ("above", False), ("below", False))
    ))  # fmt: skip
    return [_as_on_axes(value_in_words(*row) or "").replace(" (", "  (") for row in rows.rows()]


def _both_of(table: pl.DataFrame) -> list[str]:
    """The values of two models as text."""
    units = table["unit_of_both"] if "unit_of_both" in table.columns else [""] * len(table)
    pairs = zip(table["one"], table["other"], units, strict=True)
    return [f"{number_text(one, unit)} \N{RIGHTWARDS ARROW} {number_text(other, unit)}" for one, other, unit in pairs]


def dots(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it.

    Columns: `panel`, `what`, `estimate`; optional are `lower` and `upper`, either of which can be missing, `limit`,
    `expected_lower` and `expected_upper`, `verdict`, `raw` for a second value that is hollow, and `why` there is no
    value. With `outer` there are ticks for several values of a row, and a dot at their `mean`.
    """
    layout = _layout_of(picture.table, width)
    panels: list[Vega] = []
    parts = picture.parts()
    for heading, part in parts:
        span, name = picture.span_of(part), part["panel"][0]
        # a panel of one row that is named like it needs no heading
        is_named = name != part["what"][0]
        alone = _OF_ONE.get(name, name) if len(parts) == 1 and is_named else ""
        title = picture.x or alone if len(panels) >= len(parts) - layout.columns else ""
        axes = replace(_axes_of_rows(part, _ends_of(picture.rows_of_same_scale(part), span), layout), title=title)
        layers = _value_layers(axes, part, span.reference, picture, width - layout.labels)
        layers += _labels(axes, part, layout) if len(panels) % layout.columns == 0 else []
        layers += _texts_beside(axes, _values_of(part), part, layout.values)
        frame = "group" if layout.columns > 1 else "bounds"
        panels.append(_panel_of_rows(layers, part, layout, heading if is_named else "", frame))
    return panels, layout.columns


def side_by_side(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Two values of each row joined by a line, and their difference with its interval beside them.

    Columns: `panel`, `what`, the two values `one` and `other`, their difference as `estimate`, `lower` and `upper`.
    """
    layout = _layout_of(picture.table, width, parts=2)
    one, other = picture.names
    colour = legend("model", {one: MUTED, other: ACCENT}, width - layout.labels)
    shape = {**colour, "scale": {"domain": [one, other], "range": ["diamond", "circle"]}}
    panels: list[Vega] = []
    for heading, part in picture.parts():
        axes = _axes_of_rows(part, ends_of_axis([*part["one"], *part["other"]], picture.span_of(part)), layout)
        axes = replace(axes, unit=part["unit_of_both"][0] if "unit_of_both" in part.columns else "")
        models = part.drop("estimate").unpivot(
            ["one", "other"], index="what", variable_name="model", value_name="estimate"
        )
        models = models.with_columns(pl.col("model").replace_strict({"one": one, "other": other}))
        channels = {"color": colour, "shape": shape, "tooltip": tooltip(models)}
        layers = [
            axes.layer("rule", "one", "other", color=MUTED, strokeWidth=2, opacity=0.5),
            axes.layer("point", "estimate", table=models, channels=channels, filled=True, size=80, opacity=1),
            *_labels(axes, part, layout),
            *_texts_beside(axes, _both_of(part), part, layout.both),
        ]
        # both parts have a heading, so that their rows stand side by side
        panels.append(_panel_of_rows(layers, part, layout, heading or " ", "bounds"))
        axes = _axes_of_rows(part, _ends_of(part, Span(reference=0)), layout)
        layers = _value_layers(axes, part, 0, picture, width, INK)
        layers += _texts_beside(axes, _values_of(part), part, layout.values)
        panels.append(_panel_of_rows(layers, part, layout, "Change", "group"))
    return panels, 2


def over_time(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Values in the order of periods, as dots are in rows, with their names below them."""
    panels: list[Vega] = []
    parts = picture.parts()
    for heading, part in parts:
        span = picture.span_of(part)
        ends = _ends_of(part, span)
        inner = width - width_of_ticks(ends)
        title = picture.x if part is parts[-1][1] else None
        axis = {"labelAngle": 0, "labelOverlap": True, "grid": False, "title": title}
        scale = {"type": "band", "domain": part["what"].to_list()}
        axes = Axes("y", ends, inner, {"x": nominal("what", scale=scale, axis=axis)})
        layers = _value_layers(axes, part, span.reference, picture, inner)
        line = axes.layer("line", "estimate", color=MUTED, strokeWidth=1, opacity=0.6)
        height = min(max(inner * 0.4, 170), 220)
        panels.append(panel([line, *layers], part, inner, height, heading or picture.y, limit=width))
    return panels, 1


def _ends_of(table: pl.DataFrame, span: Span) -> tuple[float, float]:
    """The ends of the axis that shows all that is drawn of some rows."""
    columns = [table[name] for name in _DRAWN if name in table.columns]
    return ends_of_axis(itertools.chain(*columns), span)


def _axes_of_rows(part: pl.DataFrame, ends: tuple[float, float], layout: _Layout) -> Axes:
    """Rows with a thin line in each, along which the eye goes from its label to its dot."""
    names = part["what"].unique(maintain_order=True).to_list()
    shift = 0 if layout.labels else _SHIFT
    middle = 0.5 + shift / _TALL_ROW
    axis = {"labels": False, "title": None, "bandPosition": middle}
    scale = {"type": "band", "domain": names, "padding": 0}
    rows = {"y": nominal("what", scale=scale, axis=axis)}
    return Axes("x", ends, layout.panel, rows, shift={"yOffset": shift}, unit=unit_of_part(part))


def _panel_of_rows(layers: Sequence[Vega], part: pl.DataFrame, layout: _Layout, heading: str, frame: str) -> Vega:
    """A panel of rows, with its heading above the labels ("bounds") or above the axis ("group")."""
    has_limit = "limit" in part.columns and part["limit"].n_unique() == 1
    place: Vega = {"offset": 20 if has_limit else 4, "frame": frame}
    if frame == "bounds":
        place["limit"] = layout.whole
    step = {"step": _ROW if layout.labels else _TALL_ROW}
    return panel(layers, part, layout.panel, step, heading, **place)


def _labels(axes: Axes, part: pl.DataFrame, layout: _Layout) -> list[Vega]:
    """The labels of rows, beside or above them."""
    names = part.unique("what", keep="first", maintain_order=True).select("what")
    room = layout.labels - GAP / 2 if layout.labels else layout.panel
    shift = 0 if layout.labels else -_SHIFT - 2
    place = {"x": {"value": -layout.labels}}
    texts = axes.text("what", place, names, fontSize=TEXT, limit=room, yOffset=shift)
    # beside rows there are no lines behind them
    return texts[-1:] if layout.labels else texts


def _texts_beside(axes: Axes, texts: Sequence[str], part: pl.DataFrame, room: float) -> list[Vega]:
    """Texts of rows in a room at the right; none without it."""
    if not room:
        return []
    table = part.select("what", pl.Series("text", texts, dtype=pl.String))
    place = {"x": {"value": axes.length + room}}
    return axes.text("text", place, table, color=MUTED, align="right")[-1:]


def _value_layers(
    axes: Axes, part: pl.DataFrame, reference: float | None, picture: Picture, room: float, ink: str = ACCENT
) -> list[Vega]:
    """The marks of a panel, from behind to front."""
    layers: list[Vega] = []
    if reference is not None:
        layers.append(axes.line_at(reference, MUTED))
    if "expected_lower" in part.columns:
        size = 14 if axes.values == "x" else min(18, room / len(part) * 0.6)
        # a thick rule would count its thickness as length, and push the panel aside
        layers.append(axes.layer("bar", "expected_lower", "expected_upper", color=MUTED, opacity=0.28, size=size))
    if "limit" in part.columns:
        layers += _limits(axes, part, picture.limit)
    verdict = _channels_of_verdicts(picture.table, room)
    colour = {"color": verdict.get("color", {"value": ink})}
    if "lower" in part.columns:
        layers += intervals(axes, part, colour, strokeWidth=2, opacity=0.75)
    shown = {"tooltip": tooltip(part)}
    if "outer" in part.columns:
        layers.append(axes.layer("tick", "estimate", channels={**colour, **shown}, thickness=2, opacity=0.55, size=16))
        means = part.drop_nulls("mean").unique("what", keep="first", maintain_order=True)
        return [*layers, axes.layer("point", "mean", table=means, color=SERIES[1], filled=True, size=80, opacity=1)]
    if "raw" in part.columns:
        layers.append(axes.layer("point", "raw", color=MUTED, size=60, strokeWidth=1.5, opacity=1))
    channels = {**colour, **verdict, **shown}
    layers.append(axes.layer("point", "estimate", channels=channels, filled=True, size=80, opacity=1))
    if "why" in part.columns and (part["why"] != "").any():
        layers += _reasons(axes, part, reference)
    return layers


def _limits(axes: Axes, part: pl.DataFrame, name: str) -> list[Vega]:
    """The limit as a dashed line with its name where it is the same for all rows, else as a tick in each."""
    limit = part["limit"][0]
    if part["limit"].n_unique() > 1 or limit is None:
        return [axes.layer("tick", "limit", color=INK, thickness=1.5, size=18)]
    is_large = abs(limit) >= 1_000
    text = number_text(limit, axes.unit) if axes.unit or is_large else f"{limit:.3g}"
    table = pl.DataFrame({"at": [limit], "text": [f"{name} {text}"]})
    if axes.values == "x":
        share = axes.share(limit)
        align = "left" if share < 0.2 else "right" if share > 0.8 else "center"
        text = axes.text("text", {"x": axes.place("at"), "y": {"value": -8}}, table, align=align, yOffset=0)
    else:
        text = axes.text("text", {"x": {"value": "width"}, "y": axes.place("at")}, table, align="right", dy=-8)
    return [axes.line_at(limit, INK, dashed=True), *text]


def intervals(axes: Axes, part: pl.DataFrame, colour: Vega, **style: Any) -> list[Vega]:
    """Intervals as lines; those that lack an end, or go on beyond the axis, have an arrow at its end."""
    known = within_axis(axes, part)
    return [axes.layer("rule", "from", "to", table=known, channels=colour, **style), *arrows(axes, known, colour)]


def within_axis(axes: Axes, part: pl.DataFrame) -> pl.DataFrame:
    """The rows with an interval, `from` and `to` within the axis, and whether it `goes_down` and `goes_up` beyond."""
    low, high = axes.ends
    lower, upper = pl.col("lower").fill_null(-math.inf), pl.col("upper").fill_null(math.inf)
    has_any = pl.col("lower").is_not_null() | pl.col("upper").is_not_null()
    # an end on the axis may be beyond it by the last digit
    least = (high - low) * 1e-9
    return part.filter(pl.col("estimate").is_finite() & has_any).with_columns(
        lower.clip(low, high).alias("from"), upper.clip(low, high).alias("to"),
        (lower < low - least).alias("goes_down"), (upper > high + least).alias("goes_up"),
    )  # fmt: skip


def arrows(axes: Axes, known: pl.DataFrame, colour: Vega) -> list[Vega]:
    """Arrows at the ends of the axis, where intervals go on beyond it."""
    down, up = ("left", "right") if axes.values == "x" else ("down", "up")
    layers: list[Vega] = []
    for goes_on, end, direction in (("goes_down", "from", down), ("goes_up", "to", up)):
        beyond = known.filter(goes_on)
        if not beyond.is_empty():
            style: Vega = {"shape": f"triangle-{direction}", "filled": True, "size": 70, "opacity": 1}
            layers.append(axes.layer("point", end, table=beyond, channels=colour, **style))
    return layers


def _reasons(axes: Axes, part: pl.DataFrame, reference: float | None) -> list[Vega]:
    """Why rows have no value: beside the line of equality, on the side that has room, or at the left."""
    table = part.filter(pl.col("why") != "").select("what", "why", at=pl.lit(reference, pl.Float64))
    is_left = reference is not None and axes.share(reference) > 0.5
    place = {"x": {"value": 0} if reference is None else axes.place("at")}
    style: Vega = {"align": "right", "dx": -8} if is_left else {"dx": 8}
    return axes.text("why", place, table, color=MUTED, fontStyle="italic", **style)


def _channels_of_verdicts(table: pl.DataFrame, width: float) -> Vega:
    """The color and the shape of dots by the verdicts of all panels, where there are any."""
    if "verdict" not in table.columns:
        return {}
    given = {verdict: _VERDICTS[verdict] for verdict in _VERDICTS if verdict in set(table["verdict"])}
    colour = legend("verdict", {verdict: colour for verdict, (colour, _) in given.items()}, width)
    shapes = {"domain": list(given), "range": [shape for _, shape in given.values()]}
    return {"color": colour, "shape": {**colour, "scale": shapes}}


# Lines

_LEAST_LINES = 250
_Side: TypeAlias = tuple[str, int, int]
_SIDES: Sequence[_Side] = [
    (align, dx, dy) for dy in (-8, 9, -22, 23, -36, 37, -50, 51) for align, dx in (("left", 9), ("right", -9))
]
"""Where a name can stand beside its point: how it is aligned, and how many pixels it is moved right and down."""
_BELOW = 8
"""The pixels by which names may reach below the axis."""
_MOST_NAMED = 12
"""The most models that all have their names beside them; of more, those on the frontier and the baseline have."""
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


def _grid(panels: int, width: float, least: float) -> tuple[int, float]:
    """The number of panels side by side, and the room of each with its labels."""
    columns = columns_of(panels, width, least)
    return columns, (width - COLUMN_GAP * (columns - 1)) / columns


def lines(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """A line for each series, a panel for each part.

    Columns: `panel`, `series`, `x`, `y`, `lower` and `upper` where there are intervals, the `rows` of points where
    they are of several, and `dashed` where each line has another beside it. Of more series than there are colors, the
    lowest and the highest have one.
    """
    table, colours = _with_keys(picture.table)
    parts = replace(picture, table=table).parts()
    columns, room = _grid(len(parts), width, _LEAST_SQUARE if picture.square else _LEAST_LINES)
    colour = legend("key", colours, width - 40, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=_LONG_SYMBOL)
    if len(colours) == 1:
        colour["legend"] = None
    # lines can be told apart without colors, too
    dash = {**colour, "scale": {"domain": list(colours), "range": _DASHES[: len(colours)]}}
    panels: list[Vega] = []
    axis = f"\N{UPWARDS ARROW} {picture.y}" if picture.y else ""
    for heading, part in parts:
        across, axes = _axes_of_lines(picture, part, room)
        height = min(max(room * _SHARE_OF_HEIGHT, _LEAST_HEIGHT), _LARGEST_HEIGHT)
        placed = _beside_each_other(part, picture, across)
        layers = _reference_lines(axes, across, picture, picture.span_of(part))
        layers += _line_layers(axes, across, placed, picture, {"color": colour, "detail": nominal("series")}, dash)
        height = across.length if picture.square else height
        panels.append(panel(layers, placed, across.length, height, heading, axis, limit=room))
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
    inner = room - width_of_ticks(ends)
    length, unit = min(inner, _LARGEST_SQUARE) if picture.square else inner, unit_of_part(part)
    across = Axes("x", x_ends, length, {}, picture.x, unit=unit if picture.square else "")
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
    pointed = {"tooltip": tooltip(part)}
    shown = {**in_order, "strokeDash": dash, **pointed}
    layers.append(axes.layer("line", "estimate", table=front, channels=shown, strokeWidth=2, strokeJoin="round"))
    if picture.points:
        layers.append(
            axes.layer("point", "estimate", channels={**channels, **pointed}, filled=True, size=40, opacity=1)
        )
    return layers


def _reference_lines(axes: Axes, across: Axes, picture: Picture, span: Span) -> list[Vega]:
    """The diagonal, the line of equality or of no change, and the value that is marked."""
    layers: list[Vega] = []
    if picture.diagonal:
        corners = pl.DataFrame({"x": [0.0, 1.0], "estimate": [0.0, 1.0]})
        style: Vega = {"color": MUTED, "strokeDash": DASHES, "strokeWidth": 1.25}
        layers.append(axes.layer("line", "estimate", table=corners, **style))
    if span.reference is not None:
        layers.append(axes.line_at(span.reference, MUTED))
    if picture.at is not None:
        text = pl.DataFrame({"at": [picture.at], "text": [f"{picture.at:.4g}"]})
        side: Vega = {"align": "right", "dx": -5} if across.share(picture.at) > 0.5 else {"dx": 5}
        layers.append(across.line_at(picture.at, INK, dashed=True))
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
    colours = {keys[high]: ACCENT, keys[low]: SERIES[1], others: MUTED}
    return table.with_columns(key, pl.col("series").is_in(list(keys)).alias("front")), colours


def scatter(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Models by two measures, with their names.

    Columns: `panel`, `series` (the name), `x`, `estimate`, `front` (is on the frontier), `base` (the model that others
    are compared with), and `better`, which says on what side values are good.
    """
    colours = {
        "on the frontier": ACCENT, "not on it": MUTED, "model compared with": LIGHT["series-2"]
    }  # fmt: skip
    front, other, base = map(pl.lit, colours)
    key = pl.when("base").then(base).when("front").then(front).otherwise(other)
    parts = picture.parts()
    columns, room = _grid(len(parts), width, _LEAST_LINES)
    inner = room - max(width_of_ticks(ends_of_axis(part["estimate"], Span())) for _, part in parts)
    height = min(320, max(220, room * 0.45))
    across = Axes("x", ends_of_axis(picture.table["x"], Span()), inner, {}, picture.x)
    colour = legend("key", colours, width)
    shape = {**colour, "scale": {"domain": list(colours), "range": ["circle", "circle", "diamond"]}}
    panels: list[Vega] = []
    for _, part in parts:
        axes = Axes("y", ends_of_axis(part["estimate"], Span()), height, {"x": across.place("x")})
        table = part.with_columns(key.alias("key"))
        channels = {"color": colour, "shape": shape, "tooltip": tooltip(table)}
        frontier = table.filter("front").sort("x")
        layers = [
            axes.layer("line", "estimate", table=frontier, color=ACCENT, strokeWidth=1.25, opacity=0.6),
            axes.layer("point", "estimate", channels=channels, filled=True, size=90, opacity=1),
        ]
        # names of many would cover each other
        named = table if len(table) <= _MOST_NAMED else table.filter(pl.col("front") | pl.col("base"))
        for (align, dx, dy), names in _sides_of_names(named, across, axes):
            style: Vega = {"align": align, "dx": dx, "dy": dy, "fontSize": TEXT, "limit": inner / 2}
            layers += axes.text("series", {"y": axes.place("estimate")}, names, **style)
        panels.append(panel(layers, table, inner, height, part["panel"][0], part["better"][0], limit=room))
    return panels, columns


def _sides_of_names(table: pl.DataFrame, across: Axes, axes: Axes) -> Iterator[tuple[_Side, pl.DataFrame]]:
    """The points whose names stand at each side of them: the first one where a name covers no point and no name."""
    points = table.filter(pl.all_horizontal(pl.col("x", "estimate").is_finite()))
    places = [
        (across.share(x) * across.length, (1 - axes.share(y)) * axes.length)
        for x, y in points.select("x", "estimate").rows()
    ]
    covered = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    sides: list[int] = []
    for name, (x, y) in zip(points["series"], places, strict=True):
        size = min(text_width(name), across.length / 2)
        starts = {"left": x + 9, "right": x - 9 - size}
        boxes = [(starts[align], y + dy - 7, starts[align] + size, y + dy + 7) for align, _, dy in _SIDES]
        free = (
            side for side, (left, top, right, bottom) in enumerate(boxes)
            if left >= 0 and right <= across.length and bottom <= axes.length + _BELOW
            and not any(left < box[2] and box[0] < right and top < box[3] and box[1] < bottom for box in covered)
        )  # fmt: skip
        side = next(free, int(x > across.length / 2))
        sides.append(side)
        covered.append(boxes[side])
    for number, side in enumerate(_SIDES):
        if number in sides:
            yield side, points.filter(pl.Series(sides) == number)


# Cells

_WEAKEST, _STRONGEST = 0.06, 0.5
"""The opacity of the lowest value, and of the highest, on which letters in ink can still be read, light or dark."""
_LEAST_CELL, _LARGEST_CELL, _CELL_HEIGHT = 46, 150, 38


def heat_map(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Two features crossed, a value in a cell, which is the darker the higher.

    Columns: `panel`, `row`, `column`, `estimate`, the `text` in the cell, and `below` it in small letters.
    """
    table = picture.table
    rows, columns = (table[name].unique(maintain_order=True).to_list() for name in ("row", "column"))
    row_title, column_title = map(shown, picture.names)
    labels = min(max(text_width(text) for text in [row_title, *rows]) + GAP, 0.33 * width)
    parts = picture.parts()
    beside, room = _grid(len(parts), width - labels, max(_LEAST_CELL * len(columns), 150))
    cell = min(room / len(columns), _LARGEST_CELL)
    names: Vega = {
        "labelColor": INK, "labelFontSize": TEXT, "labelAngle": 0, "labelOverlap": False, "grid": False,
        "titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleBaseline": "bottom",
    }  # fmt: skip
    of_columns = {"orient": "top", "title": column_title, "labelLimit": cell - 4, "titleLimit": cell * len(columns)}
    of_rows = {
        "title": row_title, "titleX": -labels, "titleY": -26, "titleLimit": labels, "labelAlign": "left",
        "labelPadding": labels, "labelLimit": labels - GAP,
    }  # fmt: skip
    across = nominal("column", scale={"type": "band", "domain": columns, "padding": 0}, axis={**names, **of_columns})
    strength = {"field": "strength", "type": "quantitative", "scale": None, "legend": None}
    rectangle = {"type": "rect", "color": ACCENT, "stroke": LIGHT["background"], "cornerRadius": 2}
    text: Vega = {"type": "text", "color": INK, "fontSize": TEXT, "dy": -6}
    small: Vega = {**text, "dy": 8, "fontSize": SMALL - 1, "opacity": 0.75}
    panels: list[Vega] = []
    for heading, part in parts:
        axis = {**names, **of_rows} if len(panels) % beside == 0 else None
        place = {"x": across, "y": nominal("row", scale={"type": "band", "domain": rows, "padding": 0}, axis=axis)}
        layers: list[Vega] = [
            {"mark": rectangle, "encoding": {**place, "opacity": strength, "tooltip": tooltip(part)}},
            {"mark": text, "encoding": {**place, "text": nominal("text")}},
            {"mark": small, "encoding": {**place, "text": nominal("below")}},
        ]
        frame = "group" if beside > 1 else "bounds"
        size = (cell * len(columns), _CELL_HEIGHT * len(rows))
        panels.append(panel(layers, _with_strength(part), *size, heading, limit=room, frame=frame))
    return panels, beside


def _with_strength(part: pl.DataFrame) -> pl.DataFrame:
    """Cells with the strength of their color."""
    value = pl.when(pl.col("estimate").is_finite()).then(pl.col("estimate"))
    low, high = value.min(), value.max()
    share = pl.when(high > low).then((value - low) / (high - low)).otherwise(0.5)
    strength = pl.when(value.is_not_null()).then(_WEAKEST + share * (_STRONGEST - _WEAKEST)).otherwise(0.0)
    return part.with_columns(strength.alias("strength"))
