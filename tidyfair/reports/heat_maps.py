"""Tables of cells: two features crossed, and labels against predictions."""

from __future__ import annotations

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Picture, Vega, nominal

_WEAKEST, _STRONGEST = 0.06, 0.5
"""The opacity of the lowest value, and of the highest, on which letters in ink can still be read, light or dark."""
_LEAST_CELL, _LARGEST_CELL, _ROW = 46, 150, 38


def heat_map(picture: Picture, width: float) -> tuple[list[Vega], int]:
    """Two features crossed, a value in a cell, which is the darker the higher.

    Columns: `panel`, `row`, `column`, `estimate`, the `text` in the cell, and `below` it in small letters.
    """
    table = picture.table
    rows, columns = (table[name].unique(maintain_order=True).to_list() for name in ("row", "column"))
    row_title, column_title = map(charts.shown, picture.names)
    labels = min(max(charts.text_width(text) for text in [row_title, *rows]) + charts.GAP, 0.33 * width)
    parts = picture.parts()
    beside = charts.columns_of(len(parts), width - labels, max(_LEAST_CELL * len(columns), 150))
    room = (width - labels - charts.COLUMN_GAP * (beside - 1)) / beside
    cell = min(room / len(columns), _LARGEST_CELL)
    names: Vega = {
        "labelColor": charts.INK, "labelFontSize": charts.TEXT, "labelAngle": 0, "labelOverlap": False, "grid": False,
        "titleAngle": 0, "titleAlign": "left", "titleAnchor": "start", "titleBaseline": "bottom",
    }  # fmt: skip
    of_columns = {"orient": "top", "title": column_title, "labelLimit": cell - 4, "titleLimit": cell * len(columns)}
    of_rows = {
        "title": row_title, "titleX": -labels, "titleY": -26, "titleLimit": labels, "labelAlign": "left",
        "labelPadding": labels, "labelLimit": labels - charts.GAP,
    }  # fmt: skip
    across = nominal("column", scale={"type": "band", "domain": columns, "padding": 0}, axis={**names, **of_columns})
    strength = {"field": "strength", "type": "quantitative", "scale": None, "legend": None}
    rectangle = {"type": "rect", "color": charts.ACCENT, "stroke": charts.LIGHT["background"], "cornerRadius": 2}
    text: Vega = {"type": "text", "color": charts.INK, "fontSize": charts.TEXT, "dy": -6}
    small: Vega = {**text, "dy": 8, "fontSize": charts.SMALL - 1, "opacity": 0.75}
    panels: list[Vega] = []
    for name, part in parts.items():
        axis = {**names, **of_rows} if len(panels) % beside == 0 else None
        place = {"x": across, "y": nominal("row", scale={"type": "band", "domain": rows, "padding": 0}, axis=axis)}
        layers: list[Vega] = [
            {"mark": rectangle, "encoding": {**place, "opacity": strength, "tooltip": charts.tooltip(part)}},
            {"mark": text, "encoding": {**place, "text": nominal("text")}},
            {"mark": small, "encoding": {**place, "text": nominal("below")}},
        ]
        heading = name if len(parts) > 1 else ""
        frame = "group" if beside > 1 else "bounds"
        size = (cell * len(columns), _ROW * len(rows))
        panels.append(charts.panel(layers, _with_strength(part), *size, heading, limit=room, frame=frame))
    return panels, beside


def _with_strength(part: pl.DataFrame) -> pl.DataFrame:
    """Cells with the strength of their color."""
    value = pl.when(pl.col("estimate").is_finite()).then(pl.col("estimate"))
    low, high = value.min(), value.max()
    share = pl.when(high > low).then((value - low) / (high - low)).otherwise(0.5)
    strength = pl.when(value.is_not_null()).then(_WEAKEST + share * (_STRONGEST - _WEAKEST)).otherwise(0.0)
    return part.with_columns(strength.alias("strength"))
