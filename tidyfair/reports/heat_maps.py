"""Tables of cells: two features crossed, and labels against predictions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.escapes import without_tags
from tidyfair.reports import charts
from tidyfair.reports.charts import Picture, Plane
from tidyfair.reports.layout import Axis, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

_STRONGEST = 0.5
"""The opacity of the highest value, on which letters in ink can still be read, light or dark."""
_LEAST_CELL, _LARGEST_CELL, _ROW = 46, 150, 38
_COLUMNS_SHOWN = {
    "panel": "of", "row": "row", "column": "column", "estimate": "value", "rows": "rows", "text": "shown as"
}  # fmt: skip


def heat_map(table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], row: str, column: str) -> Picture:
    """Two features crossed, a value in a cell, which is the darker the higher.

    Columns: `panel`, `row`, `column`, `estimate`, the `text` in the cell, and `below` it in small letters.
    """
    charts.check_size(table)
    table = charts.drawable(table)
    draw = partial(_draw, table, *(charts.short(without_tags(name)) for name in (row, column)))
    return Picture(draw, titles, charts.described(table, "estimate", "row", "column"), notes)


def _draw(table: pl.DataFrame, row: str, column: str, width: float) -> Any:
    """Cells in panels."""
    alt = charts.altair()
    rows = table["row"].unique(maintain_order=True).to_list()
    columns = table["column"].unique(maintain_order=True).to_list()
    widest = max(text_width(row, charts.SMALL), *(text_width(text, charts.TEXT) for text in rows)) + 2
    labels = min(widest, 0.3 * width)
    panels_of_table = table.partition_by("panel", maintain_order=True)
    beside = charts.columns_of(len(panels_of_table), width - labels, max(_LEAST_CELL * len(columns), 150))
    room = (width - labels - charts.GAP - charts.COLUMN_GAP * (beside - 1)) / beside
    inner = min(room, _LARGEST_CELL * len(columns))
    panels: list[Any] = []
    for index, part in enumerate(panels_of_table):
        plane = Plane(Axis(0, len(columns), (), "d"), 0, len(rows), inner, _ROW * len(rows))
        cells = _placed(part, rows, columns)
        layers = _cells(alt, cells, plane)
        layers += _column_names(alt, columns, plane)
        if index % beside == 0:
            layers.append(_row_names(alt, rows, plane, labels))
        layers += charts.written(alt, column, 0, -26, limit=inner, colour=charts.MUTED)
        if index % beside == 0:
            layers += charts.written(alt, row, -labels - charts.GAP, -26, limit=labels, colour=charts.MUTED)
        if len(panels_of_table) > 1:
            left = 0 if beside > 1 else -labels - charts.GAP
            layers += charts.heading(alt, part["panel"][0], left, -32 - charts.HEADING, room)
        panels.append(charts.in_layers(alt, layers, plane))
    return charts.in_grid(alt, panels, beside, 20)


def _placed(part: pl.DataFrame, rows: list[str], columns: list[str]) -> pl.DataFrame:
    """Cells with their corners, and how strong their colour is."""
    value = pl.when(pl.col("estimate").is_finite()).then(pl.col("estimate"))
    low, high = part.select(value.min().alias("low"), value.max().alias("high")).row(0)
    spread = (high - low) if low is not None and high > low else None
    strength = (value - low) / spread if spread else pl.lit(0.5)
    return part.with_columns(
        pl.col("row").replace_strict({name: number for number, name in enumerate(rows)}).cast(pl.Float64).alias("y"),
        pl.col("column").replace_strict({name: number for number, name in enumerate(columns)})
        .cast(pl.Float64).alias("x"),
        pl.when(value.is_null()).then(0.0).otherwise(0.06 + strength * (_STRONGEST - 0.06)).alias("strength"),
    ).with_columns((pl.col("x") + 1).alias("x2"), (pl.col("y") + 1).alias("y2"))  # fmt: skip


def _cells(alt: Any, cells: pl.DataFrame, plane: Plane) -> list[Any]:
    """Rectangles with their values."""
    scale_x = plane.across(alt, "x")
    base = alt.Chart(cells)
    fill = base.mark_rect(color=charts.ACCENT, xOffset=1, yOffset=1, cornerRadius=2).encode(
        x=scale_x, x2=alt.X2("x2"), y=plane.down(alt, "y"), y2=alt.Y2("y2"),
        opacity=alt.Opacity("strength:Q", scale=None, legend=None), tooltip=charts.tooltip(alt, cells, _COLUMNS_SHOWN),
    )  # fmt: skip
    centred = cells.with_columns((pl.col("x") + 0.5).alias("x"), (pl.col("y") + 0.5).alias("y"))
    has_second = "below" in cells.columns
    text = alt.Chart(centred).mark_text(
        color=charts.INK, fontSize=charts.TEXT, baseline="middle", dy=-6 if has_second else 0
    ).encode(x=scale_x, y=plane.down(alt, "y"), text=alt.Text("text:N"))  # fmt: skip
    layers = [fill, text]
    if has_second:
        below = alt.Chart(centred).mark_text(
            color=charts.INK, opacity=0.75, fontSize=charts.SMALL - 1, baseline="middle", dy=8
        )
        layers.append(below.encode(x=scale_x, y=plane.down(alt, "y"), text=alt.Text("below:N")))
    return layers


def _column_names(alt: Any, columns: list[str], plane: Plane) -> list[Any]:
    """The names of columns above them, cut off where they are wider."""
    table = pl.DataFrame({"column": columns, "x": [number + 0.5 for number in range(len(columns))]})
    table = table.with_columns(plane.y_at(pl.lit(-9.0)).alias("y"))
    mark = alt.Chart(table).mark_text(
        color=charts.INK, fontSize=charts.TEXT, baseline="middle", limit=plane.width / len(columns) - 4
    )
    return [mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("column:N"))]


def _row_names(alt: Any, rows: list[str], plane: Plane, labels: float) -> Any:
    """The names of rows beside them."""
    table = pl.DataFrame({"row": rows, "y": [number + 0.5 for number in range(len(rows))]})
    table = table.with_columns(plane.x_at(pl.lit(-labels - charts.GAP)).alias("x"))
    mark = alt.Chart(table).mark_text(
        align="left", color=charts.INK, fontSize=charts.TEXT, baseline="middle", limit=labels
    )
    return mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("row:N"))
