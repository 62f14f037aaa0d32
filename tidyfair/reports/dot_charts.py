"""Dots in rows or over time: values with intervals, limits and what is expected; strips of folds; two models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Axes, Picture, Span, Vega, ends_of_axis, nominal, number_text
from tidyfair.reports.theme import LIGHT, SERIES

_GOOD, _BAD, _OPEN = (LIGHT["good"], "circle"), (LIGHT["bad"], "cross"), (LIGHT["open"], "diamond")
_VERDICTS = {
    "pass": _GOOD, "fail": _BAD, "not enough evidence": _OPEN, "within": _GOOD, "above the limit": _BAD,
    "below the limit": _BAD, "undecided": _OPEN, "better": _GOOD, "equivalent": (LIGHT["accent"], "circle"),
    "not worse": (LIGHT["accent"], "square"), "different": (LIGHT["ink"], "square"), "worse": _BAD, "not shown": _OPEN,
}  # fmt: skip
"""The color and the shape of verdicts."""
_ROW, _TALL_ROW, _SHIFT = 26, 42, 9
"""The height of a row; of one whose label stands above it, and by how much both stand beside its middle."""
_LEAST_PANEL = 150
"""The least width of a panel beside others."""
_WITH_VALUES = 560
"""The least width of a picture with values written beside their rows."""
_OF_ONE = {"Metrics": "Value", "Differences": "Difference", "Ratios": "Ratio", "Disparities": "Disparity"}
"""The title of the axis of a single panel, where that is no metric."""
_MORE = "\N{HORIZONTAL ELLIPSIS}"
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
    widest = max(charts.text_width(text) for text in table["what"]) + charts.GAP
    most = width * (0.38 if width < charts.NARROW else 0.4)
    labels = 0.0 if width < charts.NARROW and widest > most else min(widest, most)
    inner = width - labels
    rows = table.group_by("panel", maintain_order=True).agg(pl.col("what").unique(maintain_order=True))["what"]
    columns = 1
    if parts == 1 and rows.n_unique() == 1:
        # a panel has room for its heading, unless that is longer than half of the picture
        heading = max(charts.text_width(text) for text in table["panel"])
        least = max(_LEAST_PANEL, min(heading, inner / 2 - charts.COLUMN_GAP))
        columns = charts.columns_of(len(rows), inner, least)
    inner -= charts.COLUMN_GAP * (columns * parts - 1)
    values = both = 0.0
    if columns == 1 and width >= _WITH_VALUES and "outer" not in table.columns:
        values = _room_of(_values_of(table))
        both = _room_of(_both_of(table)) if parts > 1 else 0.0
        both = both if inner - values - both >= parts * _LEAST_PANEL else 0.0
    return _Layout(labels, columns, (inner - values - both) / (columns * parts), values, both, width)


def _room_of(texts: Sequence[str]) -> float:
    """The room for texts beside rows."""
    return max(charts.text_width(text, charts.SMALL) for text in texts) + charts.GAP


def _values_of(table: pl.DataFrame) -> list[str]:
    """Values with their intervals as text."""
    texts: list[str] = []
    for row in table.iter_rows(named=True):
        unit = row.get("unit", "")
        text = number_text(row["estimate"], unit)
        # ends of intervals leave the unit to their value
        low, high = (number_text(row.get(end), unit).removesuffix(unit).rstrip() for end in ("lower", "upper"))
        if text and (low or high):
            # ends that are not included
            low, high = (
                "> " * row.get("above", False) + (low or _MORE),
                "< " * row.get("below", False) + (high or _MORE),
            )
            text = f"{text}  ({low} to {high})"
        texts.append(text)
    return texts


def _both_of(table: pl.DataFrame) -> list[str]:
    """The values of two models as text."""
    pairs = table.select("one", "other").rows()
    return [f"{number_text(one)} \N{RIGHTWARDS ARROW} {number_text(other)}" for one, other in pairs]


def dots(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it.

    Columns: `panel`, `what`, `estimate`; optional are `lower` and `upper`, either of which can be missing, `limit`,
    `expected_lower` and `expected_upper`, `verdict`, `raw` for a second value that is hollow, and `why` there is no
    value. With `outer` there are ticks for several values of a row, and a dot at their `mean`.
    """
    layout = _layout_of(picture.table, width)
    panels: list[Vega] = []
    parts = picture.parts()
    for name, part in parts.items():
        span = picture.span_of(part)
        ends = _ends_of(picture.rows_of_same_scale(part), span)
        is_last = len(panels) >= len(parts) - layout.columns
        alone = _OF_ONE.get(name, name) if len(parts) == 1 and name != part["what"][0] else ""
        title = picture.x[0] or alone if is_last else ""
        axes = replace(_axes_of_rows(part, ends, layout), title=title)
        labels = _labels(axes, part, layout) if len(panels) % layout.columns == 0 else []
        layers = _value_layers(axes, part, span.reference, picture, width - layout.labels)
        layers += [*labels, *_texts_beside(axes, _values_of(part), part, layout.values)]
        heading = name if len(parts) > 1 and name != part["what"][0] else ""
        panels.append(_panel(layers, part, layout, heading, "group" if layout.columns > 1 else "bounds"))
    return panels, layout.columns


def side_by_side(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Two values of each row joined by a line, and their difference with its interval beside them.

    Columns: `panel`, `what`, the two values `one` and `other`, their difference as `estimate`, `lower` and `upper`.
    """
    layout = _layout_of(picture.table, width, parts=2)
    one, other = picture.names
    colour = charts.legend("model", {one: charts.MUTED, other: charts.ACCENT}, width - layout.labels)
    panels: list[Vega] = []
    parts = picture.parts()
    for name, part in parts.items():
        axes = _axes_of_rows(part, ends_of_axis([*part["one"], *part["other"]], picture.span_of(part)), layout)
        models = part.drop("estimate").unpivot(
            ["one", "other"], index="what", variable_name="model", value_name="estimate"
        )
        models = models.with_columns(pl.col("model").replace_strict({"one": one, "other": other}))
        shape = {**colour, "scale": {"domain": [one, other], "range": ["diamond", "circle"]}}
        channels = {"color": colour, "shape": shape, "tooltip": charts.tooltip(models)}
        layers = [
            axes.layer("rule", "one", "other", color=charts.MUTED, strokeWidth=2, opacity=0.5),
            axes.layer("point", "estimate", table=models, channels=channels, filled=True, size=80, opacity=1),
        ]
        layers += [*_labels(axes, part, layout), *_texts_beside(axes, _both_of(part), part, layout.both)]
        # both parts have a heading, so that their rows stand side by side
        panels.append(_panel(layers, part, layout, name if len(parts) > 1 else " ", "bounds"))
        axes = _axes_of_rows(part, _ends_of(part, Span(reference=0)), layout)
        layers = _value_layers(axes, part, 0, picture, width, charts.INK)
        layers += _texts_beside(axes, _values_of(part), part, layout.values)
        panels.append(_panel(layers, part, layout, "Change", "group"))
    return panels, 2


def over_time(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Values in the order of periods, as dots are in rows, with their names below them."""
    panels: list[Vega] = []
    parts = picture.parts()
    for name, part in parts.items():
        span = picture.span_of(part)
        ends = _ends_of(part, span)
        inner = width - charts.width_of_ticks(ends)
        is_last = len(panels) == len(parts) - 1
        title = picture.x[0] if is_last else None
        axis = {"labelAngle": 0, "labelOverlap": True, "grid": False, "title": title}
        scale = {"type": "band", "domain": part["what"].to_list()}
        axes = Axes("y", ends, inner, {"x": nominal("what", scale=scale, axis=axis)})
        layers = _value_layers(axes, part, span.reference, picture, inner)
        line = axes.layer("line", "estimate", color=charts.MUTED, strokeWidth=1, opacity=0.6)
        heading = name if len(parts) > 1 else picture.y[0]
        height = min(max(inner * 0.4, 170), 220)
        panels.append(charts.panel([line, *layers], part, inner, height, heading, limit=width))
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
    return Axes("x", ends, layout.panel, rows, shift={"yOffset": shift}, unit=charts.unit_of_part(part))


def _panel(layers: Sequence[Vega], part: pl.DataFrame, layout: _Layout, heading: str, frame: str) -> Vega:
    """A panel of rows, with its heading above the labels ("bounds") or above the axis ("group")."""
    has_limit = "limit" in part.columns and part["limit"].n_unique() == 1
    place: Vega = {"offset": 20 if has_limit else 4, "frame": frame}
    if frame == "bounds":
        place["limit"] = layout.whole
    step = {"step": _ROW if layout.labels else _TALL_ROW}
    return charts.panel(layers, part, layout.panel, step, heading, **place)


def _labels(axes: Axes, part: pl.DataFrame, layout: _Layout) -> list[Vega]:
    """The labels of rows, beside or above them."""
    names = part.unique("what", keep="first", maintain_order=True).select("what")
    room = layout.labels - charts.GAP / 2 if layout.labels else layout.panel
    shift = 0 if layout.labels else -_SHIFT - 2
    place = {"x": {"value": -layout.labels}}
    texts = axes.text("what", place, names, fontSize=charts.TEXT, limit=room, yOffset=shift)
    # beside rows there are no lines behind them
    return texts[-1:] if layout.labels else texts


def _texts_beside(axes: Axes, texts: Sequence[str], part: pl.DataFrame, room: float) -> list[Vega]:
    """Texts of rows in a room at the right; none without it."""
    if not room:
        return []
    table = part.select("what", pl.Series("text", texts, dtype=pl.String))
    place = {"x": {"value": axes.length + room}}
    return axes.text("text", place, table, color=charts.MUTED, align="right")[-1:]


def _value_layers(
    axes: Axes, part: pl.DataFrame, reference: float | None, picture: Picture, room: float, ink: str = charts.ACCENT
) -> list[Vega]:
    """The marks of a panel, from behind to front."""
    layers: list[Vega] = []
    if reference is not None:
        layers.append(axes.line_at(reference, charts.MUTED))
    if "expected_lower" in part.columns:
        size = 14 if axes.values == "x" else min(18, room / len(part) * 0.6)
        # a thick rule would count its thickness as length, and push the panel aside
        layers.append(
            axes.layer("bar", "expected_lower", "expected_upper", color=charts.MUTED, opacity=0.28, size=size)
        )
    if "limit" in part.columns:
        layers += _limits(axes, part, picture.limit)
    verdict = _channels_of_verdicts(picture.table, room)
    colour = {"color": verdict.get("color", {"value": ink})}
    if "lower" in part.columns:
        layers += intervals(axes, part, colour, strokeWidth=2, opacity=0.75)
    shown = {"tooltip": charts.tooltip(part)}
    if "outer" in part.columns:
        layers.append(axes.layer("tick", "estimate", channels={**colour, **shown}, thickness=2, opacity=0.55, size=16))
        means = part.drop_nulls("mean").unique("what", keep="first", maintain_order=True)
        return [*layers, axes.layer("point", "mean", table=means, color=SERIES[1], filled=True, size=80, opacity=1)]
    if "raw" in part.columns:
        layers.append(axes.layer("point", "raw", color=charts.MUTED, size=60, strokeWidth=1.5, opacity=1))
    channels = {**colour, **verdict, **shown}
    layers.append(axes.layer("point", "estimate", channels=channels, filled=True, size=80, opacity=1))
    if "why" in part.columns and (part["why"] != "").any():
        layers += _reasons(axes, part, reference)
    return layers


def _limits(axes: Axes, part: pl.DataFrame, name: str) -> list[Vega]:
    """The limit as a dashed line with its name where it is the same for all rows, else as a tick in each."""
    limit = part["limit"][0]
    if part["limit"].n_unique() > 1 or limit is None:
        return [axes.layer("tick", "limit", color=charts.INK, thickness=1.5, size=18)]
    is_large = abs(limit) >= 1_000
    text = number_text(limit, axes.unit) if axes.unit or is_large else f"{limit:.3g}"
    table = pl.DataFrame({"at": [limit], "text": [f"{name} {text}"]})
    if axes.values == "x":
        share = axes.share(limit)
        align = "left" if share < 0.2 else "right" if share > 0.8 else "center"
        text = axes.text("text", {"x": axes.place("at"), "y": {"value": -8}}, table, align=align, yOffset=0)
    else:
        text = axes.text("text", {"x": {"value": "width"}, "y": axes.place("at")}, table, align="right", dy=-8)
    return [axes.line_at(limit, charts.INK, dashed=True), *text]


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
    return axes.text("why", place, table, color=charts.MUTED, fontStyle="italic", **style)


def _channels_of_verdicts(table: pl.DataFrame, width: float) -> Vega:
    """The color and the shape of dots by the verdicts of all panels, where there are any."""
    if "verdict" not in table.columns:
        return {}
    given = {verdict: _VERDICTS[verdict] for verdict in _VERDICTS if verdict in set(table["verdict"])}
    colour = charts.legend("verdict", {verdict: colour for verdict, (colour, _) in given.items()}, width)
    shapes = {"domain": list(given), "range": [shape for _, shape in given.values()]}
    return {"color": colour, "shape": {**colour, "scale": shapes}}
