"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, listed
from tidyfair.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autoplot"]

Kind = Literal["dots", "heat map"]
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D31")
"""After Okabe and Ito (2008): told apart by the colour-blind too."""
GREY = "#7F7F7F"
_VERDICTS = {"pass": ("#009E73", "circle"), "fail": ("#D55E00", "cross"), "not enough evidence": ("#B07800", "diamond")}
_WIDTH, _ROW, _SIDE = 360, 26, 300
_PIXELS = 300
"""Points of a curve that are nearer than one of so many parts of an axis look like one."""
_MOST_PANELS, _MOST_POINTS, _FEWEST_PIXELS = 30, 5_000, 40
_NAMED = 2
"""How many a title names."""
_CUTS = {".threshold": "threshold", ".top_k": "number selected", ".top_fraction": "share selected"}
"""The columns of lists of cuts, over which values are lines, in words."""
_OUTER = ".outer"


def autoplot(result: Any, *, beside: Any = None, kind: Kind | None = None, title: str | None = None) -> Any:
    """The picture of a result, chosen by the columns that it has.

    Values of groups are dots with their intervals around the value of all, heat maps where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are strips; curves,
    models, pairs, strata and subgroups have pictures of their own.

    Args:
        result: What a metric, `by_group`, a test, a gate, a curve, `summarize` … has given: a tidy frame of any kind.
        beside: What `disparity_test` has given for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals.
        title: A title in place of one that says what is drawn.

    Returns:
        An altair chart.

    Raises:
        ArgumentError: For a frame without rows, or whose columns are those of no result; and without altair.

    >>> from tidyfair import demographic_parity
    >>> from tidyfair.datasets import lending
    >>> groups = demographic_parity("race").by_group(lending(), estimate="approved", pos_label="yes")
    >>> groups.pipe(autoplot).to_dict()["title"]["text"]
    'detection prevalence by race'
    """
    frame = open_frame(result).to_polars()
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: the result has no rows."
        raise ArgumentError(msg)
    _check_kind(kind)
    needed, drawn = next((each for each in _PICTURES if each[0] <= set(frame.columns)), (set[str](), None))
    if drawn is None:
        msg = (
            "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
            f"no picture of the columns {listed(frame.columns)}."
        )
        raise ArgumentError(msg)
    expected = None if beside is None else open_frame(beside).to_polars()
    if expected is not None and not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if expected is not None and drawn is not _results:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    if kind == "heat map" and (drawn is not _groups or not _crossed(frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    picture = drawn(Asked.of(frame, expected, kind, needed))
    text = title or picture.title
    chart = picture.chart.properties(
        title={"text": text, "anchor": "start", "subtitle": list(picture.notes)}, description=f"{text}. {picture.alt}"
    )
    return chart.configure_view(stroke=None).configure_axis(labelLimit=220, titleFontWeight="normal")


@dataclass(frozen=True)
class Asked:
    """What is to be drawn."""

    frame: pl.DataFrame
    expected: pl.DataFrame | None
    kind: Kind | None
    outer: list[str]
    """What outer groups are called; which of them a row is of stands in one column, so that no name is in the way."""

    @classmethod
    def of(cls, frame: pl.DataFrame, expected: pl.DataFrame | None, kind: Kind | None, needed: set[str]) -> Asked:
        """With the columns of the user, all but those that a picture needs, as one text."""
        outer = [name for name in frame.columns if not name.startswith(".") and name not in needed]
        if expected is not None:
            there = [name for name in outer if name in expected.columns]
            expected = expected.select(pl.col("^\\..*$"), *([_outer_text(expected, there)] if there else []))
        told = [_outer_text(frame, outer)] if outer else []
        return cls(frame.select(pl.exclude(outer), *told), expected, kind, outer)


@dataclass(frozen=True)
class Picture:
    """A chart without its title, and what it says in words."""

    chart: Any
    title: str
    alt: str
    notes: tuple[str, ...] = ()


# What results hold, as tables of plain columns


def _results(asked: Asked) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    about = asked.frame.with_columns(_about().alias("what"), _panel().alias("panel"))
    cut, judged = _cut(about), ".verdict" in about.columns
    if asked.expected is not None and (cut or (asked.outer and not judged)):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut:
        return _over_cuts(about, cut, "what", pl.lit(""), asked.outer)
    if asked.outer and not judged:
        return _strips(about, asked.outer)
    if asked.expected is not None:
        keys = [".metric", ".by", *([_OUTER] if _OUTER in asked.expected.columns else [])]
        known = asked.expected.select(*keys, ".expected_lower", ".expected_upper").unique(keys)
        about = about.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if about[".expected_lower"].null_count() == len(about):
            msg = "`beside` holds none of the disparities of the result."
            raise ArgumentError(msg)
    table = about.select(
        "panel", _where(asked).alias("what"), *_ends(about), *_plain(about, ".limit", ".verdict"),
        *_plain(about, ".expected_lower", ".expected_upper"),
    )  # fmt: skip
    notes = [
        ("lower" in table.columns, "lines are intervals"),
        ("expected_lower" in table.columns, "grey: expected if groups are equal"),
        ("limit" in table.columns, "dashed: the limit"),
    ]
    return _dots(table, _named(about["what"]), notes)


def _tests(asked: Asked) -> Picture:
    """Disparities beside what equal groups show."""
    frame = asked.frame
    table = frame.select(
        pl.lit("").alias("panel"),
        pl.format("{} (p {})", _where(asked), _rounded(pl.col(".p_value"))).alias("what"),
        pl.col(".estimate").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )
    title = _named(frame.select(_about()).to_series())
    return _dots(table, title, [(True, "grey: 95 % of what groups that are equal show")])


def _periods(asked: Asked) -> Picture:
    """Changes between periods beside those that there are by chance."""
    frame = asked.frame
    between = pl.format("{}, {} to {}", _where(asked), pl.col(".before"), pl.col(".period"))
    table = frame.select(
        pl.lit("").alias("panel"), between.alias("what"), pl.col(".change").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )  # fmt: skip
    title = f"changes of {_named(frame.select(_about()).to_series())}"
    return _dots(table, title, [(True, "grey: 95 % of changes where nothing has changed")])


def _groups(asked: Asked) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = asked.frame.with_columns(_panel_of_groups(asked.frame))
    grouped = frame.filter(pl.col(".by").is_not_null()) if ".by" in frame.columns else frame
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    if cut := _cut(frame):
        return _over_cuts(grouped, cut, ".group", pl.col("panel"), asked.outer)
    if asked.outer:
        return _strips(grouped.with_columns(pl.col(".group").alias("what")), asked.outer)
    # a heat map does not say how sure its values are
    if _crossed(grouped) and (asked.kind or ("dots" if ".lower" in grouped.columns else "heat map")) == "heat map":
        return _heat_map(grouped)
    keys = [name for name in (".metric", ".level") if name in frame.columns]
    every = frame.filter(pl.col(".by").is_null()) if ".by" in frame.columns else frame.clear()
    overall = every.select(*keys, pl.col(".estimate").alias(".limit"))
    grouped = grouped.join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
    why = pl.format(": {}", _words(pl.col(".status"))) if ".status" in frame.columns else pl.lit(": no value")
    why = pl.when(pl.col(".estimate").is_not_null()).then(pl.lit("")).otherwise(why)
    label = pl.format("{} ({}){}", ".group", pl.col(".n"), why).alias("what")
    table = grouped.select("panel", label, *_ends(grouped), *([] if overall.is_empty() else _plain(grouped, ".limit")))
    notes = [
        (True, "in brackets: rows"),
        ("lower" in table.columns, "lines are intervals"),
        ("limit" in table.columns, "dashed: all rows"),
    ]
    return _dots(table, _named(table["panel"]), notes)


def _pairs(asked: Asked) -> Picture:
    """Differences between two groups, with intervals: overlapping intervals of groups are no test."""
    frame = asked.frame.with_columns(_panel_of_groups(asked.frame))
    pair = pl.format("{} - {}", ".group", ".other")
    table = frame.select(
        "panel", pair.alias("what"), pl.col(".difference").alias("estimate"), *_plain(frame, ".lower", ".upper"),
        pl.lit(0.0).alias("limit"),
    )  # fmt: skip
    return _dots(table, f"differences of {_named(table['panel'])}", [(True, "dashed: no difference")])


def _strata(asked: Asked) -> Picture:
    """Differences before and after like is compared with like."""
    frame = asked.frame.with_columns(_panel_of_groups(asked.frame))
    pair = pl.format("{} - {}", ".group", ".other")
    crude = frame.select("panel", pl.format("{}: crude", pair).alias("what"), pl.col(".crude").alias("estimate"))
    within = frame.select(
        "panel", pl.format("{}: within strata", pair).alias("what"), pl.col(".adjusted").alias("estimate"),
        *_plain(frame, ".lower", ".upper"),
    )  # fmt: skip
    # each pair as it is, and then among like
    order = [place for row in range(len(frame)) for place in (row, len(frame) + row)]
    table = pl.concat([crude, within], how="diagonal")[order].with_columns(pl.lit(0.0).alias("limit"))
    return _dots(table, f"differences of {_named(table['panel'])}", [(True, "dashed: no difference")])


def _models(asked: Asked) -> Picture:
    """Two models side by side, joined by a line."""
    frame = asked.frame.with_columns(_where(asked).alias("what"), _panel())
    sides = [
        frame.select("panel", "what", pl.col(f".{side}").alias("estimate"), pl.lit(said).alias("model"))
        for side, said in (("one", "first"), ("other", "second"))
    ]
    table = pl.concat(sides)
    alt = _altair()
    base = alt.Chart(table).encode(
        x=alt.X("estimate:Q", title=None, scale=alt.Scale(zero=False)), y=_rows_of(alt)
    )  # fmt: skip
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        color=_colour(alt, "model", table),
        shape=alt.Shape("model:N", title=None, sort=None, scale=alt.Scale(domain=["first", "second"])),
        tooltip=_tooltip(alt, table),
    )
    chart = _facetted(alt, alt.layer(base.mark_line(color=GREY).encode(detail="what:N"), dots), table)
    return Picture(chart, "two models", _told(table, "estimate"), ("the line is the change",))


def _subgroups(asked: Asked) -> Picture:
    """The subgroups that differ most from the rest."""
    frame = asked.frame.drop_nulls(".difference").sort(pl.col(".difference").abs(), descending=True)
    shown = frame.head(_MOST_PANELS)
    table = shown.select(
        _words(pl.col(".metric")).alias("panel"), pl.format("{} ({})", ".subgroup", pl.col(".n")).alias("what"),
        pl.col(".difference").alias("estimate"), pl.lit(0.0).alias("limit"),
    )  # fmt: skip
    notes = [(True, "less the rest; in brackets: rows"), (len(frame) > len(shown), f"{len(shown)} of {len(frame)}")]
    return _dots(table, f"{_named(table['panel'])} of subgroups", notes)


def _probabilities(asked: Asked) -> Picture:
    """How probable it is that disparities keep their limits."""
    probability = pl.col(".probability").alias("estimate")
    table = asked.frame.select(pl.lit("").alias("panel"), _where(asked).alias("what"), probability)
    return _dots(table, "probability that the limit is kept", [], shares=True)


def _summaries(asked: Asked) -> Picture:
    """Means over resamples, with their standard errors."""
    frame = asked.frame.with_columns(_where(asked).alias("what"), _panel())
    mean, error = pl.col(".mean"), pl.col(".std_error")
    table = frame.select(
        "panel", "what", mean.alias("estimate"), (mean - error).alias("lower"),
        (mean + error).alias("upper"),
    )  # fmt: skip
    return _dots(table, "means over resamples", [(True, "lines reach one standard error to each side")])


def _roc(asked: Asked) -> Picture:
    """Sensitivity over the false positive rate."""
    frame = asked.frame.with_columns((1 - pl.col("specificity")).alias("1 - specificity")).drop("specificity")
    return _curves(asked, frame, "1 - specificity", "sensitivity", "dashed: chance")


def _precision_recall(asked: Asked) -> Picture:
    """Precision over recall."""
    return _curves(asked, asked.frame, "recall", "precision")


def _gain(asked: Asked) -> Picture:
    """The share of events found over the share of rows tested."""
    tested, found = pl.col(".percent_tested") / 100, pl.col(".percent_found") / 100
    frame = asked.frame.with_columns(tested.alias("share of rows tested"), found.alias("share of events found"))
    return _curves(asked, frame, "share of rows tested", "share of events found", "dashed: chance")


def _lift(asked: Asked) -> Picture:
    """How many times as many events as by chance over the share of rows tested."""
    tested = (pl.col(".percent_tested") / 100).alias("share of rows tested")
    return _curves(asked, asked.frame.with_columns(tested, lift=".lift"), "share of rows tested", "lift")


def _calibration(asked: Asked) -> Picture:
    """What was observed over what was said."""
    frame = asked.frame.rename({".mean_score": "mean score", ".event_rate": "rate of events"})
    return _curves(asked, frame, "mean score", "rate of events", "dashed: what is said is so")


_PICTURES: tuple[tuple[set[str], Callable[[Asked], Picture]], ...] = (
    ({"specificity", "sensitivity"}, _roc),
    ({"recall", "precision", ".threshold"}, _precision_recall),
    ({".percent_tested", ".percent_found"}, _gain),
    ({".percent_tested", ".lift"}, _lift),
    ({".mean_score", ".event_rate"}, _calibration),
    ({".subgroup", ".difference"}, _subgroups),
    ({".one", ".other", ".change"}, _models),
    ({".group", ".other", ".crude", ".adjusted"}, _strata),
    ({".group", ".other", ".difference"}, _pairs),
    ({".before", ".period", ".change", ".expected_lower"}, _periods),
    ({".metric", ".by", ".p_value", ".expected_lower", ".expected_upper"}, _tests),
    ({".metric", ".by", ".probability"}, _probabilities),
    ({".metric", ".by", ".mean", ".std_error"}, _summaries),
    ({".metric", ".group", ".estimate"}, _groups),
    ({".metric", ".by", ".estimate"}, _results),
)
"""What each picture needs, the first that fits is drawn."""


# Tables as charts


def _dots(table: pl.DataFrame, title: str, notes: list[tuple[bool, str]], *, shares: bool = False) -> Picture:
    """A dot for each row, with its interval, a dashed limit, and what is expected behind it."""
    alt = _altair()
    scale = alt.Scale(domain=[0, 1]) if shares else alt.Scale(zero=False, nice=True)
    base = alt.Chart(table).encode(y=_rows_of(alt))
    layers: list[Any] = []
    if "expected_lower" in table.columns:
        band = base.mark_bar(color=GREY, opacity=0.35, height=_ROW - 8)
        layers.append(band.encode(x=alt.X("expected_lower:Q", scale=scale, title=None), x2="expected_upper:Q"))
    if "limit" in table.columns:
        tick = base.mark_tick(color=GREY, thickness=2, size=_ROW - 4, strokeDash=[3, 2])
        layers.append(tick.encode(x=alt.X("limit:Q", scale=scale, title=None)))
    colour: Any = alt.value(COLOURS[0])
    shape: Any = alt.value("circle")
    if "verdict" in table.columns:
        domain = list(_VERDICTS)
        colour = alt.Color(
            "verdict:N", title="verdict", scale=alt.Scale(domain=domain, range=[each[0] for each in _VERDICTS.values()])
        )
        shape = alt.Shape(
            "verdict:N", title="verdict", scale=alt.Scale(domain=domain, range=[each[1] for each in _VERDICTS.values()])
        )
    if "lower" in table.columns:
        rule = base.mark_rule(size=2).encode(color=colour)
        layers.append(rule.encode(x=alt.X("lower:Q", scale=scale, title=None), x2="upper:Q"))
    dot = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=alt.X("estimate:Q", scale=scale, title=None), color=colour, shape=shape, tooltip=_tooltip(alt, table)
    )
    chart = _facetted(alt, alt.layer(*layers, dot), table)
    said = tuple(text for there, text in notes if there)
    return Picture(chart, title, _told(table, "estimate"), ("; ".join(said),) if said else ())


def _strips(frame: pl.DataFrame, outer: list[str]) -> Picture:
    """A tick for each outer group, and a dot for their mean."""
    alt = _altair()
    table = frame.select("panel", "what", pl.col(_OUTER).alias("outer"), pl.col(".estimate").alias("estimate"))
    base = alt.Chart(table).encode(y=_rows_of(alt))
    across = alt.X("estimate:Q", title=None, scale=alt.Scale(zero=False, nice=True))
    ticks = base.mark_tick(color=COLOURS[0], thickness=2, opacity=0.7).encode(x=across, tooltip=_tooltip(alt, table))
    mean = base.mark_point(color=COLOURS[1], filled=True, size=80, opacity=1).encode(
        x=alt.X("mean(estimate):Q", title=None)
    )
    title = f"{_named(table['panel'] if '.group' in frame.columns else table['what'])} for each {' and '.join(outer)}"
    chart = _facetted(alt, alt.layer(ticks, mean), table)
    return Picture(chart, title, _told(table, "estimate"), ("dot: the mean of those that have a value",))


def _cut(frame: pl.DataFrame) -> str | None:
    """The column of a list of cuts."""
    return next((name for name in _CUTS if name in frame.columns), None)


def _over_cuts(frame: pl.DataFrame, cut: str, series: str, panel: pl.Expr, outer: list[str]) -> Picture:
    """A line over the cuts for each series."""
    known = frame.filter(pl.col(cut).is_not_null())
    without = frame.filter(pl.col(cut).is_null())[".metric"].unique(maintain_order=True).to_list()
    words = _CUTS[cut]
    if known.is_empty():
        msg = f"autoplot() draws values over the {words}, and no metric of the result has any."
        raise ArgumentError(msg)
    name = pl.format("{}, {}", pl.col(series), _OUTER) if outer else pl.col(series)
    table = known.select(
        panel.alias("panel"), name.alias("series"), pl.col(cut).cast(pl.Float64).alias("x"),
        pl.col(".estimate").alias("y"),
    )  # fmt: skip
    title = f"{_named(known.select(_about()).to_series())} over the {words}"
    notes = [f"of scores, so the same for each: {', '.join(without)}"] if without else []
    return _lines(table, words, "value", title, *notes)


def _curves(asked: Asked, frame: pl.DataFrame, x: str, y: str, diagonal: str | None = None) -> Picture:
    """A curve for each outer group, its points no nearer to each other than can be seen."""
    named = pl.col(_OUTER) if asked.outer else pl.lit("all rows")
    level = pl.col(".level").cast(pl.String) if ".level" in frame.columns else pl.lit("")
    rows = [pl.col(".n").alias("rows")] if ".bin" in frame.columns else []
    table = frame.select(level.alias("panel"), named.alias("series"), pl.col(x).alias("x"), pl.col(y).alias("y"), *rows)
    table, pixels = table.filter(pl.col("x").is_finite() & pl.col("y").is_finite()), _PIXELS
    while len(seen := _seen(table, pixels)) > _MOST_POINTS and pixels > _FEWEST_PIXELS:
        pixels //= 2
    by = f" for each {' and '.join(asked.outer)}" if asked.outer else ""
    return _lines(seen, x, y, f"{y} over {x}{by}", diagonal=diagonal)


def _seen(table: pl.DataFrame, pixels: int) -> pl.DataFrame:
    """The first of the points of a curve that fall on one of so many places of each axis."""
    places = {
        axis: (pl.col(axis) / (pl.col(axis).max() - pl.col(axis).min()) * pixels).round().alias(f"place on {axis}")
        for axis in ("x", "y")
    }
    placed = table.with_columns(places.values())
    kept = ["panel", "series", *(f"place on {axis}" for axis in places)]
    return placed.unique(kept, keep="first", maintain_order=True).select(table.columns)


def _lines(table: pl.DataFrame, x: str, y: str, title: str, *notes: str, diagonal: str | None = None) -> Picture:
    """A line for each series, in a panel each where there are more than can be told apart."""
    alt = _altair()
    if table["series"].n_unique() > len(COLOURS):
        several = table["panel"].n_unique() > 1
        both = pl.format("{}: {}", "panel", "series") if several else pl.col("series")
        table = table.with_columns(both.alias("panel"), pl.lit("").alias("series"))
    data = table.with_row_index("order")
    base = alt.Chart(data).encode(
        x=alt.X("x:Q", title=x), y=alt.Y("y:Q", title=y), tooltip=_tooltip(alt, table)
    )  # fmt: skip
    line: Any = base.mark_line(point="rows" in table.columns, strokeWidth=2).encode(order="order:Q")
    if table["series"].n_unique() > 1:
        line = line.encode(color=_colour(alt, "series", table))
    layers = [line]
    if diagonal:
        layers.insert(0, _diagonal(alt, data))
        notes = (diagonal, *notes)
    chart = _facetted(alt, alt.layer(*layers), table, height=_SIDE)
    return Picture(chart, title, _told(table, "y"), notes)


def _diagonal(alt: Any, data: pl.DataFrame) -> Any:
    """The dashed line of those who know nothing, or of scores that are right."""
    return alt.Chart(data).mark_rule(color=GREY, strokeDash=[4, 4]).encode(
        x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1)
    )  # fmt: skip


def _heat_map(grouped: pl.DataFrame) -> Picture:
    """Two features crossed, each cell with its value."""
    alt = _altair()
    parts = pl.col(".group").str.splitn(":", 2).struct
    table = grouped.select(
        "panel", parts.field("field_0").alias("row"), parts.field("field_1").alias("column"),
        pl.col(".estimate").alias("estimate"), pl.col(".n").alias("rows"),
    )  # fmt: skip
    by = grouped[".by"][0].split(":")
    base = alt.Chart(table).encode(
        x=alt.X("column:N", title=by[1], sort=None, axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("row:N", title=by[0], sort=None), tooltip=_tooltip(alt, table),
    )  # fmt: skip
    middle = float(table.select((pl.col("estimate").max() + pl.col("estimate").min()).fill_null(0) / 2).item())
    cells = base.mark_rect().encode(
        color=alt.Color("estimate:Q", title="value", scale=alt.Scale(scheme="cividis", reverse=True))
    )
    texts = base.mark_text().encode(
        text=alt.Text("estimate:Q", format=".2f"),
        color=alt.condition(f"datum.estimate > {middle}", alt.value("white"), alt.value("black")),
    )
    chart = _facetted(alt, alt.layer(cells, texts), table, height=40 * table["row"].n_unique())
    return Picture(chart, _named(table["panel"]), _told(table, "estimate"))


def _facetted(alt: Any, layers: Any, table: pl.DataFrame, height: int | None = None) -> Any:
    """A panel for each part of the table, one below the other."""
    panels = table["panel"].n_unique()
    if len(table) > _MOST_POINTS:
        msg = f"autoplot() would draw {len(table)} points; filter the result first, to at most {_MOST_POINTS}."
        raise ArgumentError(msg)
    if panels > _MOST_PANELS:
        msg = f"autoplot() would draw {panels} panels; filter the result first, to at most {_MOST_PANELS}."
        raise ArgumentError(msg)
    size = {"width": _WIDTH, "height": height or alt.Step(_ROW)}
    if panels == 1:
        return layers.properties(**size)
    header = alt.Header(labelAnchor="start", labelFontWeight="bold", labelFontSize=12, labelLimit=2 * _WIDTH)
    order = table["panel"].unique(maintain_order=True).to_list()
    facet = layers.properties(**size).facet(alt.Facet("panel:N", title=None, sort=order, header=header), columns=1)
    return facet.resolve_scale(x="independent", y="independent")


def _rows_of(alt: Any) -> Any:
    return alt.Y("what:N", title=None, sort=None, axis=alt.Axis(grid=True, gridDash=[1, 3]))


def _colour(alt: Any, name: str, table: pl.DataFrame) -> Any:
    values = table[name].unique(maintain_order=True).to_list()
    return alt.Color(f"{name}:N", title=None, sort=None, scale=alt.Scale(domain=values, range=COLOURS[: len(values)]))


def _tooltip(alt: Any, table: pl.DataFrame) -> list[Any]:
    """All that is known of a row."""
    hidden = {"panel"} if table["panel"].n_unique() == 1 else set[str]()
    return [
        alt.Tooltip(f"{name}:Q", format=",.4~r") if dtype.is_numeric() else alt.Tooltip(f"{name}:N")
        for name, dtype in table.schema.items() if name not in hidden
    ]  # fmt: skip


# Words


def _words(name: pl.Expr) -> pl.Expr:
    return name.str.replace_all("_", " ", literal=True)


def _compared() -> pl.Expr:
    """What it is compared by, nothing for all rows."""
    return pl.format(" by {}", pl.col(".by").str.replace_all(":", " and ", literal=True)).fill_null("")


def _about() -> pl.Expr:
    """A metric and what it is compared by, in words."""
    return _words(pl.col(".metric")) + _compared()


def _where(asked: Asked) -> pl.Expr:
    """The same, with the outer group that it is of."""
    return pl.format("{}, {}", _about(), _OUTER) if asked.outer else _about()


def _panel() -> pl.Expr:
    """Metrics apart from disparities, which have another scale."""
    return pl.when(pl.col(".by").is_null()).then(pl.lit("metrics")).otherwise(pl.lit("disparities")).alias("panel")


def _panel_of_groups(frame: pl.DataFrame) -> pl.Expr:
    """A metric, the label that it is of, and what it is compared by."""
    return (_words(pl.col(".metric")) + _level(frame) + _compared()).alias("panel")


def _level(frame: pl.DataFrame) -> pl.Expr:
    """Which label a value is about."""
    if ".level" not in frame.columns:
        return pl.lit("")
    return pl.format(" of {}", pl.col(".level").cast(pl.String)).fill_null("")


def _outer_text(frame: pl.DataFrame, outer: list[str]) -> pl.Series:
    """The outer group of a row; a lone one is known by its value."""
    columns = [frame[name] for name in outer]
    texts = [each.dt.to_string("polars") if each.dtype == pl.Duration else each.cast(pl.String) for each in columns]
    told = [text.fill_null("null") for text in texts]
    if len(outer) > 1 or outer == ["fold"]:
        told = [pl.Series([f"{name} {each}" for each in text]) for name, text in zip(outer, told, strict=True)]
    return pl.select(pl.concat_str(told, separator=", ").alias(_OUTER)).to_series()


def _rounded(number: pl.Expr) -> pl.Expr:
    small = pl.when(number < 0.001).then(pl.lit("< 0.001"))  # noqa: PLR2004 - as p-values are written
    return small.otherwise(number.round(3).cast(pl.String)).fill_null("unknown")


def _named(names: pl.Series) -> str:
    """What there is, as a title."""
    values = names.unique(maintain_order=True).to_list()
    more = [f"and {len(values) - _NAMED} more"] if len(values) > _NAMED else []
    return " ".join([", ".join(values[:_NAMED]), *more])


def _told(table: pl.DataFrame, name: str) -> str:
    """A chart in words, for those who do not see it."""
    known = table[name].drop_nulls()
    finite = known.filter(known.is_finite())
    endless = f" {len(known) - len(finite)} are infinite, and not drawn." if len(finite) < len(known) else ""
    if finite.is_empty():
        return endless.strip() or "No value is defined."
    return f"{len(finite)} values from {finite.min():.3g} to {finite.max():.3g}.{endless}"


def _ends(frame: pl.DataFrame) -> list[pl.Expr]:
    return [pl.col(".estimate").alias("estimate"), *_plain(frame, ".lower", ".upper")]


def _plain(frame: pl.DataFrame, *names: str) -> list[pl.Expr]:
    """Columns under names without a dot, which Vega would take for a path."""
    return [pl.col(name).alias(name.removeprefix(".")) for name in names if name in frame.columns]


def _crossed(frame: pl.DataFrame) -> bool:
    """Whether the groups are those of two features, whose values can be told apart."""
    if ".by" not in frame.columns:
        return False
    by, groups = frame[".by"].drop_nulls(), frame.filter(pl.col(".by").is_not_null())[".group"]
    return by.n_unique() == 1 and by[0].count(":") == 1 and (groups.str.count_matches(":", literal=True) == 1).all()


def _check_kind(kind: object) -> None:
    if kind not in {None, "dots", "heat map"}:
        what = "kind"
        raise ArgumentError.unknown(what, kind, ["dots", "heat map"])


def _altair() -> Any:
    try:
        import altair as alt  # noqa: PLC0415 - only where pictures are drawn
    except ModuleNotFoundError as error:
        msg = f"Pictures are drawn by altair: pip install 'tidyfair[plot]' ({error})."
        raise ArgumentError(msg) from error
    return alt
