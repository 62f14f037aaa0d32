"""Charts of altair from tables of plain columns: dots, strips, lines, heat maps, two models side by side.

Columns have internal names, so that no name of the user becomes a path or an expression of Vega. Texts are visible and
open no tag: what draws a picture ends at a control character that XML forbids, and notebooks get a chart as part of a
script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from tidyfair.errors import ArgumentError
from tidyfair.escapes import visible_texts, without_tags

__all__: list[str] = []

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D31")
"""After Okabe and Ito (2008): told apart by the colour-blind too."""
GREY = "#7F7F7F"
MOST_PANELS, MOST_POINTS = 30, 5_000
_GOOD, _BAD, _OPEN = ("#009E73", "circle"), ("#D55E00", "cross"), ("#B07800", "diamond")
_OF_GATES = {"pass": _GOOD, "fail": _BAD, "not enough evidence": _OPEN}
_OF_MONITORS = {"within": _GOOD, "above the limit": _BAD, "below the limit": _BAD, "undecided": _OPEN}
"""The colour and the shape of verdicts."""
_WIDTH, _ROW = 360, 26
_HALF = 210
"""The width and the height of panels of which two stand side by side."""
_LETTERS = 200
_NAMED = 2
"""The number of metrics or features that a title names."""


@dataclass(frozen=True)
class Picture:
    """A chart without its title, its description in words, and its notes."""

    chart: Any
    title: str
    alt: str
    notes: tuple[str, ...] = ()

    def finished(self, title: str | None) -> Any:
        """The chart with its title, and its description for those who do not see it."""
        text, alt = _short(without_tags(title or self.title)), without_tags(self.alt)
        notes = [_short(without_tags(note)) for note in self.notes]
        chart = self.chart.properties(
            title={"text": text, "anchor": "start", "subtitle": notes}, description=f"{text}. {alt}"
        )
        return chart.configure_view(stroke=None).configure_axis(labelLimit=220, titleFontWeight="normal")


def dots(table: pl.DataFrame, title: str, notes: list[tuple[bool, str]], *, shares: bool = False) -> Picture:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it.

    Columns: `panel`, `what`, `estimate`; optional are `lower` and `upper`, `limit`, `expected_lower` and
    `expected_upper`, `verdict`, and `why` there is no value. Notes are shown if their first part is true.
    """
    alt = altair()
    table = unique_names(drawable(table), "what", "panel")
    scale = alt.Scale(domain=[0, 1]) if shares else alt.Scale(zero=False, nice=True)
    base = alt.Chart(table).encode(y=_rows_of(alt))
    layers: list[Any] = []
    if "expected_lower" in table.columns:
        band = base.mark_bar(color=GREY, opacity=0.35, height=_ROW - 8)
        layers.append(band.encode(x=alt.X("expected_lower:Q", scale=scale, title=None), x2="expected_upper:Q"))
    if "limit" in table.columns:
        tick = base.mark_tick(color=GREY, thickness=2, size=_ROW - 4, strokeDash=[3, 2])
        layers.append(tick.encode(x=alt.X("limit:Q", scale=scale, title=None)))
    marks = _marks(alt, table)
    if "lower" in table.columns:
        rule = base.mark_rule(size=2).encode(color=marks["color"])
        layers.append(rule.encode(x=alt.X("lower:Q", scale=scale, title=None), x2="upper:Q"))
    x = alt.X("estimate:Q", scale=scale, title=None)
    layers.append(base.mark_point(filled=True, size=90, opacity=1).encode(x=x, tooltip=_tooltip(alt, table), **marks))
    if "why" in table.columns:
        reason = base.mark_text(align="left", color=GREY, fontStyle="italic")
        layers.append(reason.encode(x=alt.value(4), text="why:N"))
    chart = _facetted(alt, alt.layer(*layers), table)
    shown = [note for is_shown, note in notes if is_shown]
    subtitle = ("; ".join(shown),) if shown else ()
    return Picture(chart, title, described(table, "estimate", "what"), subtitle)


def _marks(alt: Any, table: pl.DataFrame) -> dict[str, Any]:
    """The colour and the shape of dots, by their verdicts where there are any."""
    if "verdict" not in table.columns:
        return {"color": alt.value(COLOURS[0]), "shape": alt.value("circle")}
    is_of_monitors = table["verdict"].is_in(list(_OF_MONITORS)).any()
    marks = _OF_MONITORS if is_of_monitors else _OF_GATES
    colours, shapes = zip(*marks.values(), strict=True)
    scale_of_colours = alt.Scale(domain=list(marks), range=list(colours))
    scale_of_shapes = alt.Scale(domain=list(marks), range=list(shapes))
    return {
        "color": alt.Color("verdict:N", title="verdict", scale=scale_of_colours),
        "shape": alt.Shape("verdict:N", title="verdict", scale=scale_of_shapes),
    }


def strips(table: pl.DataFrame, title: str) -> Picture:
    """A tick for each outer group, and a dot for their mean.

    Columns: `panel`, `what`, `outer`, `estimate`, and the `mean`, null where it means nothing.
    """
    alt = altair()
    table = drawable(table)
    base = alt.Chart(table).encode(y=_rows_of(alt))
    across = alt.X("estimate:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    ticks = base.mark_tick(color=COLOURS[0], thickness=2, opacity=0.7).encode(x=across, tooltip=_tooltip(alt, table))
    layers, notes = [ticks], ["each tick is one of them"]
    if table["mean"].count():
        mean = base.mark_point(color=COLOURS[1], filled=True, size=80, opacity=1)
        layers.append(mean.encode(x=alt.X("mean:Q", title=None)))
        without = "; none of disparities, to each of which chance adds" if table["mean"].has_nulls() else ""
        notes.append(f"dot: the mean of those that have a value{without}")
    chart = _facetted(alt, alt.layer(*layers), table)
    return Picture(chart, title, described(table, "estimate", "what"), ("; ".join(notes),))


def lines(
    table: pl.DataFrame, x: str, y: str, title: str, *notes: str, diagonal: str | None = None, at: float | None = None
) -> Picture:
    """A line for each series, in panels of their own where there are more than colours.

    Columns: `panel`, `series`, `x`, `y`, and the `rows` of points where they are of several.
    """
    alt = altair()
    table = drawable(table)
    if table["series"].n_unique() > len(COLOURS):
        several = table["panel"].n_unique() > 1
        # the series first, because long titles are cut off
        both = pl.format("{}: {}", "series", "panel") if several else pl.col("series")
        table = table.with_columns(both.alias("panel"), pl.lit("").alias("series"))
    data = table.with_row_index("order")
    base = alt.Chart(data).encode(x=alt.X("x:Q", title=x), y=alt.Y("y:Q", title=y), tooltip=_tooltip(alt, table))
    if table["series"].n_unique() > 1:
        base = base.encode(color=_colour(alt, "series", table))
    layers: list[Any] = [base.mark_line(strokeWidth=2).encode(order="order:Q")]
    if "rows" in table.columns:
        size = alt.Size("rows:Q", legend=None, scale=alt.Scale(rangeMin=10, rangeMax=150))
        layers.append(base.mark_point(filled=True, opacity=0.8).encode(size=size))
        notes = (*notes, "the larger a dot, the more rows")
    mark: Any = alt.Chart(data).mark_rule(color=GREY, strokeDash=[4, 4])
    if diagonal:
        layers.insert(0, mark.encode(x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1)))
        notes = (diagonal, *notes)
    if at is not None:
        layers.insert(0, mark.encode(x=alt.datum(at)))
        notes = (f"dashed: {at:g}", *notes)
    chart = _facetted(alt, alt.layer(*layers), table, height=_HALF)
    return Picture(chart, title, described(table, "y", "series"), notes)


def heat_map(table: pl.DataFrame, title: str, row: str, column: str) -> Picture:
    """Two features crossed, a value in a cell.

    Columns: `panel`, `row`, `column`, `estimate` and `rows`.
    """
    alt = altair()
    table = unique_names(drawable(table), "row", "panel", "column")
    base = alt.Chart(table).encode(
        x=alt.X("column:N", title=_short(without_tags(column)), sort=None, axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("row:N", title=_short(without_tags(row)), sort=None),
        tooltip=_tooltip(alt, table),
    )
    finite = table.filter(pl.col("estimate").is_finite())
    ends = (pl.col("estimate").min() + pl.col("estimate").max()).fill_null(0)
    middle = float(finite.select(ends).item()) / 2
    cells = base.mark_rect().encode(
        color=alt.Color("estimate:Q", title="value", scale=alt.Scale(scheme="cividis", reverse=True))
    )
    texts = base.mark_text().encode(
        text=alt.Text("estimate:Q", format=".2f"),
        color=alt.condition(f"datum.estimate > {middle}", alt.value("white"), alt.value("black")),
    )
    chart = _facetted(alt, alt.layer(cells, texts), table, height=40 * table["row"].n_unique())
    return Picture(chart, title, described(table, "estimate", "row", "column"))


def side_by_side(table: pl.DataFrame, title: str, names: tuple[str, str]) -> Picture:
    """Two values of each row joined by a line, and their difference with its interval beside them.

    Columns: `panel`, `what`, the two values `one` and `other`, `change`, `lower` and `upper`.
    """
    alt = altair()
    _check_size(table)
    table = unique_names(drawable(table), "what", "panel")
    models = table.unpivot(["one", "other"], index=["panel", "what"], variable_name="model", value_name="estimate")
    models = models.with_columns(pl.col("model").replace_strict({"one": names[0], "other": names[1]}))
    size = {"width": _HALF, "height": alt.Step(_ROW)}
    panels: list[Any] = []
    for panel in table["panel"].unique(maintain_order=True):
        values = _values_of_models(alt, models.filter(panel=panel).drop("panel"), names)
        changes = _changes(alt, table.filter(panel=panel).drop("panel"))
        left = values.properties(title={"text": panel, "anchor": "start"}, **size)
        right = changes.properties(title={"text": "change", "anchor": "start"}, **size)
        panels.append(alt.hconcat(left, right))
    notes = (f"change: {names[1]} less {names[0]}, with its interval",)
    return Picture(alt.vconcat(*panels), title, described(table, "change", "what"), notes)


def _values_of_models(alt: Any, values: pl.DataFrame, names: tuple[str, str]) -> Any:
    """The values of two models as points joined by a line."""
    x = alt.X("estimate:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(values).encode(x=x, y=_rows_of(alt))
    points = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=_colour(alt, "model", values),
        tooltip=_tooltip(alt, values),
        shape=alt.Shape("model:N", title=None, sort=None, scale=alt.Scale(domain=list(names))),
    )
    return alt.layer(base.mark_line(color=GREY).encode(detail="what:N"), points)


def _changes(alt: Any, changes: pl.DataFrame) -> Any:
    """Changes between two models with their intervals, and a line at no change."""
    base = alt.Chart(changes).encode(y=alt.Y("what:N", sort=None, axis=None))
    zero = base.mark_rule(color=GREY, strokeDash=[3, 2]).encode(x=alt.datum(0))
    interval = base.mark_rule(size=2, color=COLOURS[2]).encode(x=alt.X("lower:Q", title=None), x2="upper:Q")
    points = base.mark_point(filled=True, size=80, opacity=1, color=COLOURS[2])
    return alt.layer(zero, interval, points.encode(x=alt.X("change:Q", title=None), tooltip=_tooltip(alt, changes)))


def _facetted(alt: Any, layers: Any, table: pl.DataFrame, height: int | None = None) -> Any:
    """A panel for each part of the table: two side by side if their rows are the same, else one below the other."""
    _check_size(table)
    panels = table["panel"].n_unique()
    alike = True
    if "what" in table.columns:
        rows_of_panels = table.group_by("panel").agg(pl.col("what"))["what"]
        alike = rows_of_panels.n_unique() == 1
    narrow = panels > 1 and alike
    size = {"width": _HALF if narrow else _WIDTH, "height": height or alt.Step(_ROW)}
    if panels == 1:
        return layers.properties(**size)
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelFontSize=12, labelLimit=size["width"])
    order = table["panel"].unique(maintain_order=True).to_list()
    facet = alt.Facet("panel:N", title=None, sort=order, header=header)
    columns = 2 if narrow else 1
    chart = layers.properties(**size).facet(facet, columns=columns)
    scale_of_rows = "shared" if alike else "independent"
    return chart.resolve_scale(x="independent", y=scale_of_rows)


def _check_size(table: pl.DataFrame) -> None:
    """Refuse a chart that is too large to be read."""
    sizes = {"points": (len(table), MOST_POINTS), "panels": (table["panel"].n_unique(), MOST_PANELS)}
    for what, (size, most) in sizes.items():
        if size > most:
            msg = f"autoplot() would draw {size} {what}; filter the result first, to at most {most}."
            raise ArgumentError(msg)


def drawable(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts are visible, short, and open no tag."""
    return visible_texts(table, lambda text: _short(without_tags(text)))


def _short(text: str) -> str:
    """A text without its middle, if it is too long for a chart."""
    if len(text) <= _LETTERS:
        return text
    half = _LETTERS // 2
    return f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def unique_names(table: pl.DataFrame, name: str, *within: str) -> pl.DataFrame:
    """A table in which equal texts of a column are numbered, so that different rows stay different."""
    repeats = pl.int_range(pl.len()).over(*within, name)
    return table.with_columns(pl.when(repeats > 0).then(pl.format("{} [{}]", name, repeats + 1)).otherwise(name))


def _rows_of(alt: Any) -> Any:
    """The axis of rows, one for each text in `what`, in their order."""
    return alt.Y("what:N", title=None, sort=None, axis=alt.Axis(grid=True, gridDash=[1, 3]))


def _colour(alt: Any, name: str, table: pl.DataFrame) -> Any:
    """A colour for each value of a column, in their order."""
    values = table[name].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=values, range=COLOURS[: len(values)])
    return alt.Color(f"{name}:N", title=None, sort=None, scale=scale)


def _tooltip(alt: Any, table: pl.DataFrame) -> list[Any]:
    """All columns of a row."""
    tooltip: list[Any] = []
    for name, dtype in table.schema.items():
        if name == "panel" and table["panel"].n_unique() == 1:
            continue
        if dtype.is_numeric():
            tooltip.append(alt.Tooltip(f"{name}:Q", format=",.4~r"))
        else:
            tooltip.append(alt.Tooltip(f"{name}:N"))
    return tooltip


def named(names: pl.Series) -> str:
    """The distinct names, as a title: the first ones, and how many more there are."""
    values = names.unique(maintain_order=True).to_list()
    title = ", ".join(values[:_NAMED])
    return f"{title} and {len(values) - _NAMED} more" if len(values) > _NAMED else title


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
