"""Tables of plain columns as charts of altair: dots, strips, lines, heat maps, two models side by side.

Columns have names of ours, so that no name of the user becomes a path or an expression of Vega. Texts are visible and
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
_VERDICTS = {"pass": ("#009E73", "circle"), "fail": ("#D55E00", "cross"), "not enough evidence": ("#B07800", "diamond")}
_WIDTH, _ROW = 360, 26
_HALF = 210
"""The width and the height of panels of which two stand side by side."""
_LETTERS = 200
_NAMED = 2
"""How many a title names."""


@dataclass(frozen=True)
class Picture:
    """A chart without its title, and what it says in words."""

    chart: Any
    title: str
    alt: str
    notes: tuple[str, ...] = ()

    def finished(self, title: str | None) -> Any:
        """The chart with its title, and its words for those who do not see it."""
        text, alt = _short(without_tags(title or self.title)), without_tags(self.alt)
        notes = [_short(without_tags(note)) for note in self.notes]
        chart = self.chart.properties(
            title={"text": text, "anchor": "start", "subtitle": notes}, description=f"{text}. {alt}"
        )
        return chart.configure_view(stroke=None).configure_axis(labelLimit=220, titleFontWeight="normal")


def dots(table: pl.DataFrame, title: str, notes: list[tuple[bool, str]], *, shares: bool = False) -> Picture:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it.

    Columns: `panel`, `what`, `estimate`; where they are there `lower` and `upper`, `limit`, `expected_lower` and
    `expected_upper`, `verdict`, and `why` there is no value.
    """
    alt = altair()
    table = told_apart(drawable(table), "what", "panel")
    scale = alt.Scale(domain=[0, 1]) if shares else alt.Scale(zero=False, nice=True)
    base = alt.Chart(table).encode(y=_rows_of(alt))
    layers: list[Any] = []
    if "expected_lower" in table.columns:
        band = base.mark_bar(color=GREY, opacity=0.35, height=_ROW - 8)
        layers.append(band.encode(x=alt.X("expected_lower:Q", scale=scale, title=None), x2="expected_upper:Q"))
    if "limit" in table.columns:
        tick = base.mark_tick(color=GREY, thickness=2, size=_ROW - 4, strokeDash=[3, 2])
        layers.append(tick.encode(x=alt.X("limit:Q", scale=scale, title=None)))
    marks: dict[str, Any] = {"color": alt.value(COLOURS[0]), "shape": alt.value("circle")}
    if "verdict" in table.columns:
        scales = (alt.Scale(domain=list(_VERDICTS), range=list(each)) for each in zip(*_VERDICTS.values(), strict=True))
        colour, shape = (
            channel("verdict:N", title="verdict", scale=each)
            for channel, each in zip((alt.Color, alt.Shape), scales, strict=True)
        )
        marks = {"color": colour, "shape": shape}
    if "lower" in table.columns:
        rule = base.mark_rule(size=2).encode(color=marks["color"])
        layers.append(rule.encode(x=alt.X("lower:Q", scale=scale, title=None), x2="upper:Q"))
    x = alt.X("estimate:Q", scale=scale, title=None)
    layers.append(base.mark_point(filled=True, size=90, opacity=1).encode(x=x, tooltip=_tooltip(alt, table), **marks))
    if "why" in table.columns:
        reason = base.mark_text(align="left", color=GREY, fontStyle="italic")
        layers.append(reason.encode(x=alt.value(4), text="why:N"))
    said = tuple(text for there, text in notes if there)
    chart = _facetted(alt, alt.layer(*layers), table)
    return Picture(chart, title, told(table, "estimate", "what"), ("; ".join(said),) if said else ())


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
    return Picture(chart, title, told(table, "estimate", "what"), ("; ".join(notes),))


def lines(
    table: pl.DataFrame, x: str, y: str, title: str, *notes: str, diagonal: str | None = None, at: float | None = None
) -> Picture:
    """A line for each series, in a panel each where there are more than can be told apart.

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
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x), y=alt.Y("y:Q", title=y), tooltip=_tooltip(alt, table)
    )  # fmt: skip
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
    return Picture(chart, title, told(table, "y", "series"), notes)


def heat_map(table: pl.DataFrame, title: str, row: str, column: str) -> Picture:
    """Two features crossed, each cell with its value.

    Columns: `panel`, `row`, `column`, `estimate` and `rows`.
    """
    alt = altair()
    table = told_apart(drawable(table), "row", "panel", "column")
    base = alt.Chart(table).encode(
        x=alt.X("column:N", title=_short(without_tags(column)), sort=None, axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("row:N", title=_short(without_tags(row)), sort=None), tooltip=_tooltip(alt, table),
    )  # fmt: skip
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
    return Picture(chart, title, told(table, "estimate", "row", "column"))


def side_by_side(table: pl.DataFrame, title: str, names: tuple[str, str]) -> Picture:
    """Two values of each row joined by a line, and their difference with its interval beside them.

    Columns: `panel`, `what`, the two values `one` and `other`, `change`, `lower` and `upper`.
    """
    alt = altair()
    _check_size(table)
    table = told_apart(drawable(table), "what", "panel")
    each = table.unpivot(["one", "other"], index=["panel", "what"], variable_name="model", value_name="estimate")
    each = each.with_columns(pl.col("model").replace_strict({"one": names[0], "other": names[1]}))
    scale = alt.Scale(zero=False, nice=True)
    parts = list[Any]()
    for panel in table["panel"].unique(maintain_order=True):
        values, changes = (some.filter(panel=panel).drop("panel") for some in (each, table))
        both = alt.Chart(values).encode(x=alt.X("estimate:Q", title=None, scale=scale), y=_rows_of(alt))
        points = both.mark_point(filled=True, size=80, opacity=1).encode(
            color=_colour(alt, "model", values), tooltip=_tooltip(alt, values),
            shape=alt.Shape("model:N", title=None, sort=None, scale=alt.Scale(domain=list(names))),
        )  # fmt: skip
        left = alt.layer(both.mark_line(color=GREY).encode(detail="what:N"), points)
        beside = alt.Chart(changes).encode(y=alt.Y("what:N", sort=None, axis=None))
        right = alt.layer(
            beside.mark_rule(color=GREY, strokeDash=[3, 2]).encode(x=alt.datum(0)),
            beside.mark_rule(size=2, color=COLOURS[2]).encode(x=alt.X("lower:Q", title=None), x2="upper:Q"),
            beside.mark_point(filled=True, size=80, opacity=1, color=COLOURS[2]).encode(
                x=alt.X("change:Q", title=None), tooltip=_tooltip(alt, changes)
            ),
        )
        size = {"width": _HALF, "height": alt.Step(_ROW)}
        titled = ({"text": text, "anchor": "start"} for text in (panel, "change"))
        sides = zip((left, right), titled, strict=True)
        parts.append(alt.hconcat(*(side.properties(title=title, **size) for side, title in sides)))
    notes = (f"change: {names[1]} less {names[0]}, with its interval",)
    return Picture(alt.vconcat(*parts), title, told(table, "change", "what"), notes)


def _facetted(alt: Any, layers: Any, table: pl.DataFrame, height: int | None = None) -> Any:
    """A panel for each part of the table: two side by side if their rows are the same, else one below the other."""
    _check_size(table)
    panels = table["panel"].n_unique()
    alike = "what" not in table.columns or table.group_by("panel").agg(pl.col("what"))["what"].n_unique() == 1
    narrow = panels > 1 and alike
    size = {"width": _HALF if narrow else _WIDTH, "height": height or alt.Step(_ROW)}
    if panels == 1:
        return layers.properties(**size)
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelFontSize=12, labelLimit=size["width"])
    order = table["panel"].unique(maintain_order=True).to_list()
    facet = alt.Facet("panel:N", title=None, sort=order, header=header)
    chart = layers.properties(**size).facet(facet, columns=2 if narrow else 1)
    return chart.resolve_scale(x="independent", y="shared" if alike else "independent")


def _check_size(table: pl.DataFrame) -> None:
    """Refuse what nobody could read."""
    sizes = {"points": (len(table), MOST_POINTS), "panels": (table["panel"].n_unique(), MOST_PANELS)}
    for what, (size, most) in sizes.items():
        if size > most:
            msg = f"autoplot() would draw {size} {what}; filter the result first, to at most {most}."
            raise ArgumentError(msg)


def drawable(table: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts a picture can hold."""
    return visible_texts(table, lambda text: _short(without_tags(text)))


def _short(text: str) -> str:
    """A text without its middle where it is so long that a picture would be made of nothing else."""
    half = _LETTERS // 2
    return text if len(text) <= _LETTERS else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def told_apart(table: pl.DataFrame, name: str, *within: str) -> pl.DataFrame:
    """What reads alike under names of their own: it is not one."""
    again = pl.int_range(pl.len()).over(*within, name)
    return table.with_columns(pl.when(again > 0).then(pl.format("{} [{}]", name, again + 1)).otherwise(name))


def _rows_of(alt: Any) -> Any:
    return alt.Y("what:N", title=None, sort=None, axis=alt.Axis(grid=True, gridDash=[1, 3]))


def _colour(alt: Any, name: str, table: pl.DataFrame) -> Any:
    values = table[name].unique(maintain_order=True).to_list()
    return alt.Color(f"{name}:N", title=None, sort=None, scale=alt.Scale(domain=values, range=COLOURS[: len(values)]))


def _tooltip(alt: Any, table: pl.DataFrame) -> list[Any]:
    """All that is known of a row."""
    hidden = {"panel"} if "panel" in table.columns and table["panel"].n_unique() == 1 else set[str]()
    return [
        alt.Tooltip(f"{name}:Q", format=",.4~r") if dtype.is_numeric() else alt.Tooltip(f"{name}:N")
        for name, dtype in table.schema.items() if name not in hidden
    ]  # fmt: skip


def named(names: pl.Series) -> str:
    """What there is, as a title."""
    values = names.unique(maintain_order=True).to_list()
    more = [f"and {len(values) - _NAMED} more"] if len(values) > _NAMED else []
    return " ".join([", ".join(values[:_NAMED]), *more])


def told(table: pl.DataFrame, value: str, *about: str) -> str:
    """A chart in words, for those who do not see it."""
    known = table.filter(pl.col(value).is_not_null())
    finite = known.filter(pl.col(value).is_finite()).sort(value, maintain_order=True)
    beyond = len(known) - len(finite)
    endless = f" {beyond} {'is' if beyond == 1 else 'are'} infinite, and not drawn." if beyond else ""
    if finite.is_empty():
        return endless.strip() or "No value is defined."
    several = pl.concat_str(
        [pl.col(name) for name in ("panel", *about) if table[name].n_unique() > 1] or [pl.lit("")], separator=", "
    )
    ends = finite.select(value, several.alias("which"))[[0, -1]].rows()
    low, high = (f"{number:.3g} ({which})" if which else f"{number:.3g}" for number, which in ends)
    values = f"{len(finite)} values from {low} to {high}" if len(finite) > 1 else f"One value, {low}"
    return f"{values}.{endless}"


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
