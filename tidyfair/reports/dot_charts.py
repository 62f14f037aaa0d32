"""Dots in rows: values with their intervals, limits and what is expected; strips of folds; two models side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.reports import charts
from tidyfair.reports.charts import Key, Picture, Plane
from tidyfair.reports.layout import Axis, Span, axis_of, shortened, text_width
from tidyfair.reports.theme import LIGHT, SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_GOOD, _BAD, _OPEN = (LIGHT["good"], "circle"), (LIGHT["bad"], "cross"), (LIGHT["open"], "diamond")
_VERDICTS = {
    "pass": _GOOD, "fail": _BAD, "not enough evidence": _OPEN, "within": _GOOD, "above the limit": _BAD,
    "below the limit": _BAD, "undecided": _OPEN,
}  # fmt: skip
"""The colour and the shape of verdicts."""
_ROW, _TALL_ROW = 26, 42
"""The height of a row, and of one whose label stands above it."""
_LEAST_PANEL = 150
"""The least width of a panel beside others."""
_LEAST_PART = 110
"""The least width of the values of two models, and of their changes, beside numbers."""
_WITH_VALUES = 560
"""The least width of a picture with values written beside their rows."""
_COLUMNS_SHOWN = {
    "panel": "of", "what": "row", "outer": "part", "estimate": "value", "lower": "lower end", "upper": "upper end",
    "limit": "limit", "expected_lower": "expected from", "expected_upper": "expected to", "verdict": "verdict",
    "model": "model", "change": "change", "rows": "rows",
}  # fmt: skip


@dataclass(frozen=True)
class DotStyle:
    """Parts of a picture of dots beside their values."""

    limit: str = "limit"
    """The name of the limit, where it is the same for all rows."""
    spans: Mapping[str, Span] = field(default_factory=dict[str, Span])
    """The known ends of values, by panel."""
    keys: tuple[Key, ...] = ()
    """Entries of a legend."""
    scales: Mapping[str, str] = field(default_factory=dict[str, str])
    """The scale of panels: those of the same one have the same axis."""


def dots(
    table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str] = (), style: DotStyle | None = None
) -> Picture:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it.

    Columns: `panel`, `what`, `estimate`; optional are `lower` and `upper`, either of which can be missing, `limit`,
    `expected_lower` and `expected_upper`, `verdict`, `hollow` for a second value, and `why` there is no value.
    """
    charts.check_size(table)
    style = style or DotStyle()
    table = charts.unique_names(charts.drawable(table), "what", "panel")
    draw = partial(_draw_dots, table, style)
    return Picture(draw, titles, charts.described(table, "estimate", "what"), notes)


@dataclass(frozen=True)
class Rows:
    """The room for the labels of rows, for panels, and for values beside them."""

    labels: float
    above: bool
    columns: int
    panel: float
    values: float
    whole: float
    both: float = 0.0
    """The room for the values of two models, between the first part and the second."""

    @classmethod
    def of(cls, table: pl.DataFrame, width: float, *, parts: int = 1) -> Rows:
        """The room in a picture of some width, where each panel has some parts side by side."""
        panels = table["panel"].n_unique()
        widest = max(text_width(text, charts.TEXT) for text in table["what"].to_list()) + 2
        most = 0.34 * width if width < charts.NARROW else 0.38 * width
        above = width < charts.NARROW and widest > most
        labels = 0.0 if above else min(widest, most)
        inner = width - labels - (charts.GAP if labels else 0)
        # a panel has room for its heading, unless that is longer than half of the picture
        heading_width = max(text_width(text, charts.HEADING) for text in table["panel"].to_list()) * charts.BOLD + 2
        least = max(_LEAST_PANEL, min(heading_width, inner / 2 - charts.COLUMN_GAP))
        columns = charts.columns_of(panels, inner, least) if _alike(table) and parts == 1 else 1
        values = both = 0.0
        if columns == 1 and width >= _WITH_VALUES and "outer" not in table.columns:
            values = _room_of(_values_of(table))
        inner -= charts.COLUMN_GAP * (columns * parts - 1)
        if parts > 1 and values:
            both = _room_of(_both_of(table))
            both = both if inner - values - both >= parts * _LEAST_PANEL else 0.0
            values = values if inner - values >= parts * _LEAST_PART else 0.0
        panel = (inner - values - both) / (columns * parts)
        return cls(labels, above, columns * parts, panel, values, width, both)

    @property
    def row(self) -> int:
        """The height of a row."""
        return _TALL_ROW if self.above else _ROW

    @property
    def column(self) -> float:
        """The width of a column of panels, with labels: what is wider would push the next one aside."""
        return self.whole if self.columns == 1 else self.labels + charts.GAP + self.panel

    @property
    def left(self) -> float:
        """The left end of labels, from the left end of the panel."""
        return -(self.labels + charts.GAP) if self.labels else 0


def _alike(table: pl.DataFrame) -> bool:
    """True where all panels have the same rows."""
    rows = table.group_by("panel", maintain_order=True).agg(pl.col("what").unique(maintain_order=True))["what"]
    return rows.n_unique() == 1


def _values_of(table: pl.DataFrame) -> list[str]:
    """Values with their intervals as text."""
    value = "change" if "change" in table.columns else "estimate"
    if not {"lower", "upper"} <= set(table.columns):
        return [charts.number_text(number) for number in table[value]]
    # ends that are not included
    is_open = [
        pl.col(name) if name in table.columns else pl.lit(value=False).alias(name) for name in ("above", "below")
    ]
    texts: list[str] = []
    for number, low, high, above, below in table.select(value, "lower", "upper", *is_open).rows():
        text = charts.number_text(number)
        if number is not None and not (low is None and high is None):
            low_text = "\N{HORIZONTAL ELLIPSIS}" if low is None else charts.number_text(low)
            high_text = "\N{HORIZONTAL ELLIPSIS}" if high is None else charts.number_text(high)
            text += f"  ({'> ' * above}{low_text} to {'< ' * below}{high_text})"
        texts.append(text)
    return texts


def _both_of(table: pl.DataFrame) -> list[str]:
    """The values of two models as text."""
    arrow = "\N{RIGHTWARDS ARROW}"
    pairs = table.select("one", "other").rows()
    return [f"{charts.number_text(one)} {arrow} {charts.number_text(other)}" for one, other in pairs]


def _room_of(texts: Sequence[str]) -> float:
    """The room for texts beside rows."""
    return max(text_width(text, charts.SMALL) for text in texts) + charts.GAP


def _draw_dots(table: pl.DataFrame, style: DotStyle, width: float) -> Any:
    """Dots in panels."""
    alt = charts.altair()
    rows = Rows.of(table, width)
    keys = [*style.keys, *keys_of_verdicts(table)]
    panels: list[Any] = []
    named = table["panel"].n_unique() > 1
    same_limit = _limits(table)
    for index, part in enumerate(table.partition_by("panel", maintain_order=True)):
        name = part["panel"][0]
        span = style.spans.get(name, Span())
        axis = _axis_of_dots(_of_same_scale(table, name, style), rows.panel, span)
        numbered = _in_rows(part, rows)
        plane = _plane_of(axis, numbered, rows)
        layers = _dot_layers(alt, numbered, plane, span.reference)
        limit = same_limit.get(name)
        if limit is not None:
            layers += _limit_name(alt, plane, f"{style.limit} {limit:.3g}", limit)
        above = charts.Above(alt, plane, 4 if limit is None else 18)
        if rows.labels or rows.above:
            is_first = index % rows.columns == 0
            layers += _labels(alt, numbered, plane, rows) if is_first else []
        if rows.values:
            layers.append(_texts_beside(alt, numbered, plane, _values_of(numbered), rows.values))
        if named and name and name != part["what"][0]:
            alone = rows.columns == 1
            above.heading(name, rows.left if alone else 0, width if alone else rows.panel)
        if not index:
            above.legend(keys, rows.left, rows.column)
        panels.append(charts.in_layers(alt, [*layers, *above.layers], plane))
    return charts.in_grid(alt, panels, rows.columns, 20)


def _plane_of(axis: Axis, numbered: pl.DataFrame, rows: Rows) -> Plane:
    """The panel of rows that are numbered."""
    many = numbered["row"].n_unique()
    return Plane(axis, 0, many, rows.panel, rows.row * many)


def _in_rows(part: pl.DataFrame, rows: Rows) -> pl.DataFrame:
    """Rows with their numbers, and the middle at which they are drawn, which is lower under a label."""
    names = part["what"].unique(maintain_order=True).to_list()
    numbers = {name: float(number) for number, name in enumerate(names)}
    middle = 0.72 if rows.above else 0.5
    number = pl.Series("row", [numbers[name] for name in part["what"]], dtype=pl.Float64)
    return part.with_columns(number).with_columns((pl.col("row") + middle).alias("y"))


def _axis_of_dots(part: pl.DataFrame, length: float, span: Span) -> Axis:
    """The axis that holds all values, limits and ranges of a panel, and its value of equality."""
    names = ("estimate", "lower", "upper", "limit", "expected_lower", "expected_upper", "hollow", "mean")
    values: list[float | None] = []
    for name in names:
        if name in part.columns:
            values += part[name].to_list()
    return axis_of(values, length, span)


def _of_same_scale(table: pl.DataFrame, panel: str, style: DotStyle) -> pl.DataFrame:
    """The rows of all panels that have the axis of one."""
    scales = {name: style.scales.get(name, name) for name in table["panel"].unique()}
    return table.filter(pl.col("panel").replace_strict(scales) == scales[panel])


def _limits(table: pl.DataFrame) -> dict[str, float]:
    """The limit of panels in which it is the same for all rows."""
    if "limit" not in table.columns:
        return {}
    same: dict[str, float] = {}
    for part in table.partition_by("panel", maintain_order=True):
        values = part["limit"].drop_nulls().unique()
        if len(values) == 1 and not part["limit"].has_nulls():
            same[part["panel"][0]] = values[0]
    return same


def _dot_layers(alt: Any, part: pl.DataFrame, plane: Plane, reference: float | None) -> list[Any]:
    """The marks of a panel, from behind to front."""
    base = alt.Chart(part).encode(y=plane.down(alt, "y"))
    layers: list[Any] = [_guides(alt, part, plane)]
    if reference is not None:
        layers.append(_line_at(alt, plane, reference, colour=charts.MUTED))
    if "expected_lower" in part.columns:
        # a thick rule would count its thickness as length, and push the panel aside
        band = base.mark_bar(color=charts.MUTED, opacity=0.28, size=14, orient="horizontal")
        layers.append(band.encode(x=plane.across(alt, "expected_lower"), x2=alt.X2("expected_upper")))
    if "limit" in part.columns:
        limits = part["limit"].drop_nulls().unique()
        if len(limits) == 1 and not part["limit"].has_nulls():
            layers.append(_line_at(alt, plane, limits[0], colour=charts.INK, dashed=True))
        else:
            tick = base.mark_tick(color=charts.INK, thickness=1.5, size=18)
            layers.append(tick.encode(x=plane.across(alt, "limit")))
    colour, shape = colour_of_verdicts(alt, part)
    if "lower" in part.columns:
        layers += _intervals(alt, part, plane, colour)
    if "hollow" in part.columns:
        other = base.mark_point(filled=False, size=60, strokeWidth=1.5, color=charts.MUTED, opacity=1)
        layers.append(other.encode(x=plane.across(alt, "hollow")))
    points = base.mark_point(filled=True, size=80, opacity=1)
    shown = charts.tooltip(alt, part, _COLUMNS_SHOWN)
    layers.append(points.encode(x=plane.across(alt, "estimate"), color=colour, shape=shape, tooltip=shown))
    if "why" in part.columns and part["why"].str.len_chars().sum():
        layers += _reasons(alt, part, plane, reference)
    return layers


def _intervals(alt: Any, part: pl.DataFrame, plane: Plane, colour: Any) -> list[Any]:
    """Intervals; where an end is missing, they reach the end of the axis with an arrow."""
    finite = part.filter(pl.col("estimate").is_finite())
    has_any = pl.col("lower").is_not_null() | pl.col("upper").is_not_null()
    known = finite.filter(has_any).with_columns(
        pl.col("lower").fill_null(plane.x.low).clip(plane.x.low, plane.x.high).alias("from"),
        pl.col("upper").fill_null(plane.x.high).clip(plane.x.low, plane.x.high).alias("to"),
    )
    if known.is_empty():
        return []
    base = alt.Chart(known).encode(y=plane.down(alt, "y"), color=colour)
    layers = [base.mark_rule(strokeWidth=2, opacity=0.75).encode(x=plane.across(alt, "from"), x2=alt.X2("to"))]
    for name, end, shape in (("lower", "from", "triangle-left"), ("upper", "to", "triangle-right")):
        is_open = ~pl.col(name).is_finite().fill_null(value=False)
        unbounded = known.filter(is_open)
        if not unbounded.is_empty():
            arrow = alt.Chart(unbounded).mark_point(filled=True, size=70, shape=shape, opacity=1)
            layers.append(arrow.encode(x=plane.across(alt, end), y=plane.down(alt, "y"), color=colour))
    return layers


def _reasons(alt: Any, part: pl.DataFrame, plane: Plane, reference: float | None) -> list[Any]:
    """Why rows have no value: beside the line of equality, on the side that has room, or at the left."""
    table = part.filter(pl.col("why") != "")
    at = plane.width if reference is None else (reference - plane.x.low) / (plane.x.high - plane.x.low) * plane.width
    widest = max(text_width(text, charts.SMALL) for text in table["why"])
    is_left = reference is not None and at + 8 + widest > plane.width
    mark = alt.Chart(table).mark_text(
        align="right" if is_left else "left",
        dx=-8 if is_left else 8,
        color=charts.MUTED,
        fontStyle="italic",
        fontSize=charts.SMALL,
    )
    x = alt.XValue(0 if reference is None else at)
    return charts.on_border(mark.encode(x=x, y=plane.down(alt, "y"), text=alt.Text("why:N")))


def _guides(alt: Any, part: pl.DataFrame, plane: Plane) -> Any:
    """A thin line in each row, along which the eye goes from its label to its dot."""
    return (
        alt.Chart(part.select("y").unique(maintain_order=True))
        .mark_rule(color=charts.RULE)
        .encode(y=plane.down(alt, "y"))
    )


def _line_at(alt: Any, plane: Plane, value: float, *, colour: str, dashed: bool = False) -> Any:
    """A line through all rows."""
    mark = alt.Chart(pl.DataFrame({"at": [value]})).mark_rule(
        color=colour, strokeWidth=1.25, strokeDash=[4, 3] if dashed else [1, 0]
    )
    return mark.encode(x=plane.across(alt, "at"))


def _limit_name(alt: Any, plane: Plane, text: str, value: float) -> list[Any]:
    """The name of a limit above its line, inside the panel."""
    at = (value - plane.x.low) / (plane.x.high - plane.x.low) * plane.width
    half = text_width(text, charts.SMALL) / 2
    align = "center" if half <= at <= plane.width - half else "left" if at < half else "right"
    return charts.written(alt, text, at, -4, limit=plane.width, colour=charts.INK, align=align)


def _labels(alt: Any, part: pl.DataFrame, plane: Plane, rows: Rows) -> list[Any]:
    """The labels of rows, beside or above them."""
    names = part.unique("what", keep="first", maintain_order=True)
    room = rows.whole if rows.above else rows.labels
    # fonts of readers can be wider than that of the drawing, by which a limit of the mark would cut
    texts = [shortened(text, room, charts.TEXT) for text in names["what"]]
    y = pl.col("row") + (0.28 if rows.above else 0.5)
    table = names.select(pl.Series("what", texts, dtype=pl.String), y.alias("y"), pl.lit(plane.x.low).alias("x"))
    table = table.with_columns(plane.x_at(pl.lit(rows.left)).alias("x"))
    mark = alt.Chart(table).mark_text(align="left", baseline="middle", color=charts.INK, fontSize=charts.TEXT)
    labels = mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("what:N"))
    return charts.on_border(labels) if rows.above else [labels]


def _texts_beside(alt: Any, part: pl.DataFrame, plane: Plane, texts: Sequence[str], room: float) -> Any:
    """Texts of rows, in a room at the right."""
    table = part.select("y", pl.Series("text", texts, dtype=pl.String))
    table = table.with_columns(plane.x_at(pl.lit(plane.width + room)).alias("x"))
    mark = alt.Chart(table).mark_text(align="right", baseline="middle", color=charts.MUTED, fontSize=charts.SMALL)
    return mark.encode(x=plane.across(alt, "x"), y=plane.down(alt, "y"), text=alt.Text("text:N"))


def colour_of_verdicts(alt: Any, table: pl.DataFrame) -> tuple[Any, Any]:
    """The colour and the shape of dots, by their verdicts where there are any."""
    if "verdict" not in table.columns:
        return alt.ColorValue(charts.ACCENT), alt.ShapeValue("circle")
    colours, shapes = zip(*_VERDICTS.values(), strict=True)
    return (
        alt.Color("verdict:N", legend=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(colours))),
        alt.Shape("verdict:N", legend=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(shapes))),
    )


def keys_of_verdicts(table: pl.DataFrame) -> list[Key]:
    """The entries of a legend of the verdicts that there are."""
    if "verdict" not in table.columns:
        return []
    given = set(table["verdict"])
    return [Key(name, colour, shape) for name, (colour, shape) in _VERDICTS.items() if name in given]


def strips(table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], style: DotStyle | None = None) -> Picture:
    """A tick for each outer group, and a dot for their mean.

    Columns: `panel`, `what`, `outer`, `estimate`, and the `mean`, null where it means nothing.
    """
    charts.check_size(table)
    table = charts.drawable(table)
    draw = partial(_draw_strips, table, style or DotStyle())
    return Picture(draw, titles, charts.described(table, "estimate", "what"), notes)


def _draw_strips(table: pl.DataFrame, style: DotStyle, width: float) -> Any:
    """Ticks in panels."""
    alt = charts.altair()
    rows = Rows.of(table, width)
    panels: list[Any] = []
    several = table["panel"].n_unique() > 1
    for index, part in enumerate(table.partition_by("panel", maintain_order=True)):
        name = part["panel"][0]
        span = style.spans.get(name, Span())
        axis = _axis_of_dots(part, rows.panel, span)
        numbered = _in_rows(part, rows)
        plane = _plane_of(axis, numbered, rows)
        layers = [_guides(alt, numbered, plane)]
        if span.reference is not None:
            layers.append(_line_at(alt, plane, span.reference, colour=charts.MUTED))
        base = alt.Chart(numbered).encode(y=plane.down(alt, "y"))
        ticks = base.mark_tick(color=charts.ACCENT, thickness=2, opacity=0.55, size=16)
        layers.append(ticks.encode(x=plane.across(alt, "estimate"), tooltip=charts.tooltip(alt, part, _COLUMNS_SHOWN)))
        means = numbered.filter(pl.col("mean").is_not_null()).unique("what", keep="first", maintain_order=True)
        if not means.is_empty():
            mean = alt.Chart(means).mark_point(color=SERIES[1], filled=True, size=80, opacity=1)
            layers.append(mean.encode(x=plane.across(alt, "mean"), y=plane.down(alt, "y")))
        layers += _labels(alt, numbered, plane, rows) if index % rows.columns == 0 else []
        if several and name:
            layers += charts.heading(alt, name, rows.left if rows.columns == 1 else 0, -6, rows.panel)
        panels.append(charts.in_layers(alt, layers, plane))
    return charts.in_grid(alt, panels, rows.columns, 20)


def side_by_side(
    table: pl.DataFrame, titles: Sequence[str], notes: Sequence[str], names: tuple[str, str], style: DotStyle
) -> Picture:
    """Two values of each row joined by a line, and their difference with its interval beside them.

    Columns: `panel`, `what`, the two values `one` and `other`, `change`, `lower` and `upper`.
    """
    charts.check_size(table)
    table = charts.unique_names(charts.drawable(table), "what", "panel")
    draw = partial(_draw_side_by_side, table, names, style)
    return Picture(draw, titles, charts.described(table, "change", "what"), notes)


def _draw_side_by_side(table: pl.DataFrame, names: tuple[str, str], style: DotStyle, width: float) -> Any:
    """Values and changes in two columns of panels."""
    alt = charts.altair()
    rows = Rows.of(table, width, parts=2)
    keys = [Key(names[0], charts.MUTED), Key(names[1], charts.ACCENT)]
    named = table["panel"].n_unique() > 1
    panels: list[Any] = []
    for index, part in enumerate(table.partition_by("panel", maintain_order=True)):
        numbered = _in_rows(part, rows)
        name = part["panel"][0]
        axis = axis_of([*part["one"], *part["other"]], rows.panel, style.spans.get(name))
        left = _plane_of(axis, numbered, rows)
        changes = axis_of([*part["change"], *part["lower"], *part["upper"]], rows.panel, Span(reference=0))
        right = _plane_of(changes, numbered, rows)
        layers = _values_of_models(alt, numbered, left, names) + _labels(alt, numbered, left, rows)
        if rows.both:
            layers.append(_texts_beside(alt, numbered, left, _both_of(numbered), rows.both))
        above = charts.Above(alt, left, 4)
        if named:
            above.heading(name, rows.left, rows.panel + rows.labels)
        if not index:
            above.legend(keys, rows.left, rows.column)
        layers += above.layers
        right_layers = _changes(alt, numbered, right)
        if rows.values:
            right_layers.append(_texts_beside(alt, numbered, right, _values_of(numbered), rows.values))
        right_layers += charts.heading(alt, "Change", 0, -6, rows.panel)
        panels.append(charts.in_layers(alt, layers, left))
        panels.append(charts.in_layers(alt, right_layers, right))
    return charts.in_grid(alt, panels, 2, 20)


def _values_of_models(alt: Any, part: pl.DataFrame, plane: Plane, names: tuple[str, str]) -> list[Any]:
    """The values of two models as points joined by a line."""
    y = plane.down(alt, "y")
    line = alt.Chart(part).mark_rule(color=charts.MUTED, strokeWidth=2, opacity=0.5).encode(
        x=plane.across(alt, "one"), x2=alt.X2("other"), y=y
    )  # fmt: skip
    models = part.unpivot(["one", "other"], index=["what", "y"], variable_name="model", value_name="estimate")
    models = models.with_columns(pl.col("model").replace_strict({"one": names[0], "other": names[1]}))
    scale = alt.Scale(domain=list(names), range=[charts.MUTED, charts.ACCENT])
    points = alt.Chart(models).mark_point(filled=True, size=80, opacity=1).encode(
        x=plane.across(alt, "estimate"), y=y, color=alt.Color("model:N", scale=scale, legend=None),
        tooltip=charts.tooltip(alt, models, _COLUMNS_SHOWN),
    )  # fmt: skip
    return [line, points]


def _changes(alt: Any, part: pl.DataFrame, plane: Plane) -> list[Any]:
    """Changes between two models with their intervals, and a line at no change."""
    changes = part.rename({"change": "estimate"})
    colour = alt.ColorValue(charts.INK)
    points = alt.Chart(changes).mark_point(filled=True, size=70, opacity=1, color=charts.INK)
    return [
        _line_at(alt, plane, 0, colour=charts.MUTED),
        *_intervals(alt, changes, plane, colour),
        points.encode(
            x=plane.across(alt, "estimate"), y=plane.down(alt, "y"), tooltip=charts.tooltip(alt, part, _COLUMNS_SHOWN)
        ),
    ]
