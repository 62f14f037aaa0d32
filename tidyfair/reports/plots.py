"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from tidyfair.errors import ArgumentError, Status, listed
from tidyfair.metrics import fairness
from tidyfair.reports.charts import (
    MOST_PANELS,
    MOST_POINTS,
    Picture,
    dots,
    heat_map,
    lines,
    named,
    side_by_side,
    strips,
    told_apart,
)
from tidyfair.reports.tables import as_p_value
from tidyfair.specs.arguments import number, one_of, string
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autoplot"]

Kind = Literal["dots", "heat map"]
_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that are nearer than one of so many parts of an axis look like one."""
_CUTS = {".threshold": "threshold", ".top_k": "number selected", ".top_fraction": "share selected"}
"""The columns of lists of cuts, over which values are lines, in words."""
_OUTER = ".outer"


def autoplot(
    result: Any, *, beside: Any = None, kind: Kind | None = None, at: float | None = None, title: str | None = None
) -> Any:
    """The picture of a result, chosen by the columns that it has.

    Values of groups are dots with their intervals around the value of all, heat maps where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are dots with their
    intervals, or strips without; curves, models, pairs, strata and subgroups have pictures of their own.

    Args:
        result: What a metric, `by_group`, a test, a gate, a curve, `summarize` … has given: a tidy frame of any kind.
        beside: What `disparity_test` has given for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals.
        at: The threshold, or other cut, that is marked where values are lines over a list of them.
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
    if title is not None:
        string("title", title)
    needed, drawn = _picture_of(frame)
    expected = None if beside is None else _expected_of(beside, drawn)
    if kind == "heat map" and (drawn is not _groups or not _crossed(frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    if at is not None and _cut(frame) is None:
        msg = "`at` is a threshold that is marked in values over thresholds, and `result` holds no list of them."
        raise ArgumentError(msg)
    marked = None if at is None else number("at", at, -math.inf)
    return drawn(Asked.of(frame, expected, kind, marked, needed)).finished(title)


def _picture_of(frame: pl.DataFrame) -> tuple[set[str], Callable[[Asked], Picture]]:
    """The picture of a result, and the columns that it needs."""
    # columns of curves have no dot, as those of outer groups
    may_be_curve = ".metric" not in frame.columns
    for needed, drawn in _PICTURES:
        has_dots = all(name.startswith(".") for name in needed)
        if needed <= set(frame.columns) and (has_dots or may_be_curve):
            return needed, drawn
    msg = (
        "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
        f"no picture of the columns {listed(frame.columns)}."
    )
    raise ArgumentError(msg)


def _expected_of(beside: Any, drawn: Callable[[Asked], Picture]) -> pl.DataFrame:
    """The range that is expected if groups are equal, which is drawn behind disparities."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if drawn is not _results:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    return expected


@dataclass(frozen=True)
class Asked:
    """The result to be drawn, and how."""

    frame: pl.DataFrame
    expected: pl.DataFrame | None
    kind: Kind | None
    at: float | None
    outer: list[str]
    """What outer groups are called; which of them a row is of stands in one column, so that no name is in the way."""

    @classmethod
    def of(
        cls, frame: pl.DataFrame, expected: pl.DataFrame | None, kind: Kind | None, at: float | None, needed: set[str]
    ) -> Asked:
        """With the columns of the user, all but those that a picture needs, as one text."""
        outer = [name for name in frame.columns if not name.startswith(".") and name not in needed]
        if expected is not None:
            common = [name for name in outer if name in expected.columns]
            texts = [_outer_text(expected, common)] if common else []
            expected = expected.select(pl.col("^\\..*$"), *texts)
        texts = [_outer_text(frame, outer)] if outer else []
        return cls(frame.select(pl.exclude(outer), *texts), expected, kind, at, outer)


# What results hold, as tables of plain columns


def _results(asked: Asked) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    about = asked.frame.with_columns(_about().alias("what"))
    cut, judged = _cut(about), ".verdict" in about.columns
    if asked.expected is not None and (cut or (asked.outer and not judged)):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut:
        return _over_cuts(asked, about, cut, "what", pl.lit(""))
    about = about.with_columns(_scales(about))
    if asked.outer and not judged:
        return _over_outer(asked, about)
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
        ("limit" in table.columns, "grey line: the limit"),
    ]
    return dots(table, named(about["what"]), notes)


def _tests(asked: Asked) -> Picture:
    """Disparities beside what equal groups show."""
    frame = asked.frame
    table = frame.select(
        pl.lit("").alias("panel"),
        pl.format("{} (p {})", _where(asked), as_p_value(frame[".p_value"]).fill_null("unknown")).alias("what"),
        pl.col(".estimate").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )
    title = named(frame.select(_about()).to_series())
    apart = ".method" in frame.columns and frame[".method"].str.contains("studentized", literal=True).any()
    notes = [(True, "grey: 95 % of what groups that are equal show"), (apart, "p: of distances in standard errors")]
    return dots(table, title, notes)


def _periods(asked: Asked) -> Picture:
    """Changes between periods beside those that there are by chance."""
    frame = asked.frame
    between = pl.format("{}, {} to {}", _where(asked), pl.col(".before"), pl.col(".period"))
    table = frame.select(
        pl.lit("").alias("panel"), between.alias("what"), pl.col(".change").alias("estimate"),
        *_plain(frame, ".expected_lower", ".expected_upper"),
    )  # fmt: skip
    title = f"changes of {named(frame.select(_about()).to_series())}"
    return dots(table, title, [(True, "grey: 95 % of changes where nothing has changed")])


def _groups(asked: Asked) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = asked.frame.with_columns(_panel_of_groups(asked.frame))
    grouped = frame.filter(pl.col(".by").is_not_null()) if ".by" in frame.columns else frame
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    if cut := _cut(frame):
        return _over_cuts(asked, grouped, cut, ".group", pl.col("panel"))
    if asked.outer:
        return _over_outer(asked, grouped.with_columns(pl.col(".group").alias("what")))
    # a heat map does not say how sure its values are
    if _crossed(grouped) and (asked.kind or ("dots" if ".lower" in grouped.columns else "heat map")) == "heat map":
        return _crossing(grouped)
    keys = [name for name in (".metric", ".level") if name in frame.columns]
    every = frame.filter(pl.col(".by").is_null()) if ".by" in frame.columns else frame.clear()
    overall = every.select(*keys, pl.col(".estimate").alias(".limit"))
    grouped = grouped.join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
    status = _words(pl.col(".status")) if ".status" in frame.columns else pl.lit("no value")
    said = pl.when(pl.col(".estimate").is_null()).then(status).otherwise(pl.lit("")).alias("why")
    why = [said] if grouped[".estimate"].has_nulls() else []
    label = pl.format("{} ({})", ".group", pl.col(".n")).alias("what")
    limits = [] if overall.is_empty() else _plain(grouped, ".limit")
    table = grouped.select("panel", label, *_ends(grouped), *limits, *why)
    notes = [
        (True, "in brackets: rows"),
        ("lower" in table.columns, "lines are intervals"),
        ("limit" in table.columns, "grey line: all rows"),
    ]
    return dots(table, named(table["panel"]), notes)


def _pairs(asked: Asked) -> Picture:
    """Differences between two groups, with intervals: overlapping intervals of groups are no test."""
    frame = asked.frame.with_columns(_panel_of_groups(asked.frame))
    pair = pl.format("{} - {}", ".group", ".other")
    table = frame.select(
        "panel", pair.alias("what"), pl.col(".difference").alias("estimate"), *_plain(frame, ".lower", ".upper"),
        pl.lit(0.0).alias("limit"),
    )  # fmt: skip
    return dots(table, f"differences of {named(table['panel'])}", [(True, "grey line: no difference")])


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
    return dots(table, f"differences of {named(table['panel'])}", [(True, "grey line: no difference")])


def _models(asked: Asked) -> Picture:
    """Two models side by side, and the change from one to the other."""
    about = asked.frame.with_columns(pl.col(".one").alias(".estimate"), _where(asked).alias("what"))
    table = about.with_columns(_scales(about)).select(
        "panel", "what", *_plain(about, ".one", ".other", ".change", ".lower", ".upper")
    )
    return side_by_side(table, named(table["what"]), ("one", "other"))


def _subgroups(asked: Asked) -> Picture:
    """The subgroups that differ most from the rest."""
    frame = asked.frame.drop_nulls(".difference")
    frame = frame.filter(pl.col(".status") == Status.OK) if ".status" in frame.columns else frame
    shown = frame.head(MOST_PANELS)
    table = shown.select(
        _words(pl.col(".metric")).alias("panel"), pl.format("{} ({})", ".subgroup", pl.col(".n")).alias("what"),
        pl.col(".difference").alias("estimate"), pl.lit(0.0).alias("limit"),
    )  # fmt: skip
    notes = [(True, "less the rest; in brackets: rows"), (len(frame) > len(shown), f"{len(shown)} of {len(frame)}")]
    return dots(table, f"{named(table['panel'])} of subgroups", notes)


def _probabilities(asked: Asked) -> Picture:
    """How probable it is that disparities keep their limits."""
    probability = pl.col(".probability").alias("estimate")
    table = asked.frame.select(pl.lit("").alias("panel"), _where(asked).alias("what"), probability)
    return dots(table, "probability that the limit is kept", [], shares=True)


def _summaries(asked: Asked) -> Picture:
    """Means over resamples, with their standard errors."""
    frame = asked.frame.with_columns(_where(asked).alias("what"), pl.col(".mean").alias(".estimate"))
    frame = frame.with_columns(_scales(frame))
    mean, error = pl.col(".mean"), pl.col(".std_error")
    table = frame.select(
        "panel", "what", mean.alias("estimate"), (mean - error).alias("lower"),
        (mean + error).alias("upper"),
    )  # fmt: skip
    return dots(table, "means over resamples", [(True, "lines reach one standard error to each side")])


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
    return _curves(asked, frame, "mean score", "rate of events", "dashed: events as often as the scores say")


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


# What several pictures have in common


def _over_outer(asked: Asked, frame: pl.DataFrame) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    title = (
        f"{named(frame['panel'] if '.group' in frame.columns else frame['what'])} for each {' and '.join(asked.outer)}"
    )
    if ".lower" in frame.columns:
        panel = pl.format("{}: {}", "panel", "what") if ".group" in frame.columns else pl.col("what")
        table = frame.select(panel.alias("panel"), pl.col(_OUTER).alias("what"), *_ends(frame))
        return dots(table, title, [(True, "lines are intervals")])
    # chance adds to a disparity in each of them, so that their mean is of nothing
    means = pl.lit(value=True) if ".group" in frame.columns else pl.col(".by").is_null()
    finite = pl.col(".estimate").mean().over("panel", "what")
    mean = pl.when(means & finite.is_finite()).then(finite).alias("mean")
    return strips(
        frame.select("panel", "what", pl.col(_OUTER).alias("outer"), *_plain(frame, ".estimate"), mean), title
    )


def _cut(frame: pl.DataFrame) -> str | None:
    """The column of a list of cuts."""
    return next((name for name in _CUTS if name in frame.columns), None)


def _over_cuts(asked: Asked, frame: pl.DataFrame, cut: str, series: str, panel: pl.Expr) -> Picture:
    """A line over the cuts for each series."""
    known = frame.filter(pl.col(cut).is_not_null())
    without = frame.filter(pl.col(cut).is_null())[".metric"].unique(maintain_order=True).to_list()
    words = _CUTS[cut]
    if known.is_empty():
        msg = f"autoplot() draws values over the {words}, and no metric of the result has any."
        raise ArgumentError(msg)
    name = pl.format("{}, {}", pl.col(series), _OUTER) if asked.outer else pl.col(series)
    cuts = known[cut].unique().sort()
    fewer = cuts.gather_every(-(-len(known) // MOST_POINTS))
    table = known.filter(pl.col(cut).is_in(fewer.implode())).select(
        panel.alias("panel"), name.alias("series"), pl.col(cut).cast(pl.Float64).alias("x"),
        pl.col(".estimate").alias("y"),
    )  # fmt: skip
    # two groups may read alike
    table = told_apart(table, "series", "panel", "x")
    title = f"{named(known.select(_about()).to_series())} over the {words}"
    notes = [f"of scores, so the same for each: {', '.join(without)}"] if without else []
    return lines(table, words, "value", title, *notes, at=asked.at)


def _curves(asked: Asked, frame: pl.DataFrame, x: str, y: str, diagonal: str | None = None) -> Picture:
    """A curve for each outer group, its points no nearer to each other than can be seen."""
    named = pl.col(_OUTER) if asked.outer else pl.lit("all rows")
    level = pl.col(".level").cast(pl.String) if ".level" in frame.columns else pl.lit("")
    rows = [pl.col(".n").alias("rows")] if ".bin" in frame.columns else []
    table = frame.select(level.alias("panel"), named.alias("series"), pl.col(x).alias("x"), pl.col(y).alias("y"), *rows)
    table, pixels = table.filter(pl.col("x").is_finite() & pl.col("y").is_finite()), _PIXELS
    while len(seen := _seen(table, pixels)) > MOST_POINTS and pixels > _FEWEST_PIXELS:
        pixels //= 2
    by = f" for each {' and '.join(asked.outer)}" if asked.outer else ""
    return lines(seen, x, y, f"{y} over {x}{by}", diagonal=diagonal)


def _seen(table: pl.DataFrame, pixels: int) -> pl.DataFrame:
    """The first of the points of a curve that fall on one of so many places of each axis."""
    places = {
        axis: (pl.col(axis) / (pl.col(axis).max() - pl.col(axis).min()) * pixels).round().alias(f"place on {axis}")
        for axis in ("x", "y")
    }
    placed = table.with_columns(places.values())
    kept = ["panel", "series", *(f"place on {axis}" for axis in places)]
    return placed.unique(kept, keep="first", maintain_order=True).select(table.columns)


def _crossing(grouped: pl.DataFrame) -> Picture:
    """Values of two features that are crossed."""
    parts = pl.col(".group").str.splitn(":", 2).struct
    table = grouped.select(
        "panel", parts.field("field_0").alias("row"), parts.field("field_1").alias("column"),
        pl.col(".estimate").alias("estimate"), pl.col(".n").alias("rows"),
    )  # fmt: skip
    return heat_map(table, named(table["panel"]), *grouped[".by"][0].split(":"))


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


def _scales(frame: pl.DataFrame) -> pl.Series:
    """What has a scale in common: metrics, differences, ratios; each metric for itself where values are not shares."""
    panels = ["metrics" if by is None else _compared_by(metric) for metric, by in frame.select(".metric", ".by").rows()]
    told = frame.select(".metric", ".estimate", panel=pl.Series(panels))
    beyond = pl.col(".estimate").is_finite() & (pl.col(".estimate").abs() > 1)
    apart = beyond.any().over("panel")
    return told.select(pl.when(apart).then(_words(pl.col(".metric"))).otherwise("panel").alias("panel")).to_series()


def _compared_by(name: str) -> str:
    """What a disparity of ours is on the scale of."""
    aggregate = getattr(getattr(fairness, name, None), "aggregate", None)
    return "disparities" if aggregate is None else aggregate.scale


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
    # what is missing is no text
    told = [text.replace("null", '"null"').fill_null("null") for text in texts]
    if len(outer) > 1 or outer == ["fold"]:
        told = [pl.Series([f"{name} {each}" for each in text]) for name, text in zip(outer, told, strict=True)]
    return pl.select(pl.concat_str(told, separator=", ").alias(_OUTER)).to_series()


def _ends(frame: pl.DataFrame) -> list[pl.Expr]:
    """A value and its interval, which starts or ends at the value where it has no end."""
    value = pl.col(".estimate")
    known = [name for name in (".lower", ".upper") if name in frame.columns]
    return [value.alias("estimate"), *(pl.coalesce(name, value).alias(name.removeprefix(".")) for name in known)]


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
    if kind is not None:
        one_of("kind", kind, ["dots", "heat map"])
