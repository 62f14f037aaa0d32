"""Pictures of results: `autoplot` draws what a frame holds, with altair (`pip install 'tidyfair[plot]'`)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain, permutations, takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import polars as pl

from tidyfair.errors import ArgumentError, Status, in_short, listed
from tidyfair.escapes import renamed
from tidyfair.evaluation import texts_of
from tidyfair.inference.models import gains, is_on_frontier
from tidyfair.metrics import at_cut, capitalized, cut_in_words, in_prose, short_title, title_of
from tidyfair.metrics.catalog import comparison_named, metric_named
from tidyfair.reports.charts import (
    LEAST_WIDTH,
    MOST_BANDS,
    MOST_PANELS,
    MOST_POINTS,
    SPAN,
    WIDTH,
    Picture,
    Span,
    dots,
    heat_map,
    lines,
    number_text,
    over_time,
    scatter,
    shown,
    side_by_side,
    unique_names,
    with_points,
)  # fmt: skip
from tidyfair.reports.tables import NO_UNITS, Units, as_p_value, left_out_in_words
from tidyfair.specs import (
    CUTS,
    POINTS,
    RESERVED,
    crossed_text,
    number,
    one_of,
    open_ends,
    refuse_unknown_settings,
    result_kinds as kinds,
    string,
    whole,
)
from tidyfair.specs.result_kinds import ResultKind, kind_of, level_of
from tidyfair.tallies import open_frame

if TYPE_CHECKING:
    from altair import TopLevelMixin

__all__ = ["autoplot"]

Form = Literal["dots", "heat map", "frontier"]
OUTER, METRIC, VALUE, COMPARED, LABEL, PANEL, GROUP, PAIR, UNIT = (
    f"\0{name}" for name in ("outer", "metric", "value", "compared", "label", "panel", "group", "pair", "unit")
)
"""The columns of texts, and of units, that `PlotInput` adds to a result; no column of the user has their names."""
CUT_TITLES: dict[str, str] = dict(
    zip(
        CUTS,
        ("threshold", "number selected", "share selected", "evaluation time", "level of the quantile"),
        strict=True,
    )
)
"""The columns of lists of cuts, and of the points of predictions, over which values are lines, in words."""
_REFERENCES = {
    "mean_prediction": None, "mean_truth": None, "net_benefit": 0.0, "standardized_net_benefit": 0.0, "lift": 1.0
}  # fmt: skip
_OF_DISPARITIES = {"Differences": Span(reference=0), "Ratios": Span(low=0, reference=1), "Disparities": Span()}
"""The panels of disparities, beside that of metrics."""
_OVER_CUTS = (kinds.METRICS, kinds.VERDICTS, kinds.LOOK, kinds.GROUPS)
"""The kinds whose values are drawn over a list of cuts."""
_NO_METRIC = {kinds.STANDARDIZED: "Means", kinds.QUANTILES: "Quantiles", kinds.SMALLEST: "Difference"}
"""The title of what is compared in rows without a metric."""
_SCALES = {kinds.STANDARDIZED: "standardized", kinds.QUANTILES: "ratio"}
"""The scale of kinds of comparisons that have no column of it."""
_CONTEXTS: Mapping[str, str] = {"overall": "all rows", "rest": "all other groups"}
ENDS, EXPECTED = (".lower", ".upper"), (".expected_lower", ".expected_upper")
_OTHER_ENDS = {one: other for ends in (ENDS, EXPECTED) for one, other in permutations(ends)}
"""The other end of an interval, which is drawn if either has values."""
_FAIRER = {
    "minimize": "\N{DOWNWARDS ARROW} lower is fairer", "maximize": "\N{UPWARDS ARROW} higher is fairer",
    "zero": "the nearer to 0 the fairer", "one": "the nearer to 1 the fairer",
}  # fmt: skip
"""The side of an axis on which a disparity is small, by its direction."""
_NAMED = 2
"""The number of metrics or features that a title names."""


@dataclass(frozen=True)
class PlotInput:
    """A result with what its rows are about in words, and the options of its plot."""

    kind: ResultKind
    frame: pl.DataFrame
    """The result; columns of results that it does not have are null."""
    outer: list[str]
    """Names of the outer keys. Their values are one column of text, so that no name of the user is in the way."""
    period: str
    """The name of the key that is a period, which is `.period` in the frame; empty where there is none."""
    cuts: list[str]
    """The columns of cuts and points that the result has."""
    form: Form | None = None
    at: float | None = None
    models: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, kind: ResultKind, result: pl.DataFrame) -> PlotInput:
        """A result, without options."""
        # the columns of curves can have the names of outer keys
        outer = list(takewhile(lambda name: name not in {*RESERVED, *kind.columns}, result.columns))
        period = ""
        if kind.has_periods:
            if not outer:
                msg = f"A result of the kind {kind.title!r} needs its column of periods before `.metric`; keep it."
                raise ArgumentError(msg)
            period = outer.pop()
            result = result.rename({period: ".period"})
        frame = with_outer_text(result, outer)
        lacking = RESERVED.difference(frame.columns)
        nothing = pl.repeat(None, len(frame), dtype=pl.Null, eager=True)
        completed = frame.hstack([nothing.alias(name) for name in lacking])
        plot = cls(kind, completed, outer, period, [name for name in CUTS if name not in lacking])
        return replace(plot, frame=plot._with_texts())

    def _with_texts(self) -> pl.DataFrame:
        """The frame with columns of what its rows are about, as people write it.

        `METRIC` is the title of the metric with its time or other cut, unless values are drawn over these; `VALUE` has
        the label too, `COMPARED` the feature, `LABEL` the feature and the outer group, and `PANEL` label and feature.
        """
        otherwise = _NO_METRIC.get(self.kind, "")
        metric = (
            pl.col(".metric").cast(pl.String).replace_strict(self.titles, default=otherwise, return_dtype=pl.String)
        )
        if self.cuts and not (self.kind in _OVER_CUTS and self.cut is not None):
            metric = pl.struct(".metric", *self.cuts).map_elements(
                lambda row: at_cut(self.titles.get(row[".metric"], otherwise), row), return_dtype=pl.String
            )
        by = pl.col(".by").cast(pl.String)
        feature = pl.format(" by {}", by.str.replace_all(":", " and ", literal=True)).fill_null("")
        level = pl.format(" of {}", pl.col(".level").cast(pl.String)).fill_null("")
        is_ratio = pl.col(".scale").cast(pl.String).str.ends_with("ratio").fill_null(value=False)
        sign = pl.when(is_ratio).then(pl.lit("/")).otherwise(pl.lit("\N{MINUS SIGN}"))
        outer = pl.col(OUTER) if self.outer else pl.lit("all rows")
        with_metric = self.frame.with_columns(
            metric.alias(METRIC), outer.alias(OUTER), groups_in_words(self.frame).alias(GROUP),
            pl.format("{} {} {}", crossed_text(".group"), sign, crossed_text(".other")).alias(PAIR),
        )  # fmt: skip
        return with_metric.with_columns(
            (pl.col(METRIC) + level).alias(VALUE), (pl.col(METRIC) + feature).alias(COMPARED),
            (pl.col(METRIC) + level + feature).alias(PANEL), self.with_outer(pl.col(METRIC) + feature).alias(LABEL),
        )  # fmt: skip

    def with_units(self, units: Units) -> PlotInput:
        """The same with the unit of each row, which is empty for plain numbers."""
        if not units:
            return self
        # curves have no metric
        metric = pl.col(".metric").cast(pl.String).fill_null("")
        unit = metric.replace_strict(units, default="", return_dtype=pl.String)
        return replace(self, frame=self.frame.with_columns(unit.alias(UNIT)))

    @property
    def cut(self) -> str | None:
        """The column of a list of cuts, or of several points of predictions, over which values are lines."""
        are_lists = (name not in POINTS or self.frame[name].drop_nulls().n_unique() > 1 for name in self.cuts)
        return next((name for name, is_list in zip(self.cuts, are_lists, strict=True) if is_list), None)

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each metric, without what is in brackets, but with its name where two have the same."""
        names = self.frame[".metric"].drop_nulls().unique(maintain_order=True).to_list()
        known = {name for name in names if metric_named(name) or comparison_named(name)}
        titles = {name: short_title(name) if name in known else title_of(name) for name in names}
        counts = Counter(titles.values())
        return {name: f"{title} ({name})" if counts[title] > 1 else title for name, title in titles.items()}

    @property
    def scale(self) -> str:
        """The scale of comparisons in words, such as `Odds ratio`; empty where there are several."""
        scales = self.frame[".scale"].drop_nulls().unique().to_list() or [_SCALES.get(self.kind, "difference")]
        words = "standardized difference" if scales[0] == "standardized" else scales[0].replace("_", " ")
        return capitalized(words) if len(scales) == 1 else ""

    @property
    def reference(self) -> str:
        """The group that all are compared with, as people write it; empty where there is none, or several."""
        references = self.frame.select(crossed_text(".reference")).to_series().drop_nulls().unique().to_list()
        return str(_CONTEXTS.get(references[0], references[0])) if len(references) == 1 else ""

    @property
    def is_ratio(self) -> bool:
        """True for comparisons that are 1 where groups are equal."""
        return self.scale.endswith("atio")

    @property
    def limits(self) -> str:
        """What `.lower` and `.upper` are, with their level, such as `95% CI`."""
        words, adjustment = self.kind.limits, self.frame[".adjustment"].drop_nulls()
        is_adjusted = self.kind is kinds.PAIRS and not adjustment.str.starts_with("none").any()
        holds_for_all = is_adjusted or self.frame[".model_other"].n_unique() > 1
        return f"{level_of(self.frame) * 100:g}% {'simultaneous ' if holds_for_all else ''}{words}"

    def with_outer(self, text: pl.Expr) -> pl.Expr:
        """A text with the outer group, if there is one."""
        return pl.format("{}, {}", text, OUTER) if self.outer else text

    def with_counts(self, frame: pl.DataFrame, label: pl.Expr) -> tuple[pl.Series, str]:
        """Labels of groups with the rows that their metrics are shares of, and the note on these.

        Panels that have the same groups share their labels. Where their metrics are of different rows, or nobody knows
        of how many, and where rows have weights, labels are without numbers.
        """
        labels = frame.select(label.alias("what"))["what"]
        sizes = self._rows_of_shares(frame)
        if sizes.count() == 0 or not (sizes.drop_nulls() % 1 == 0).all():
            return labels, ""
        counts = frame.select("panel", labels, sizes.cast(pl.Int64).alias("count"))
        groups_of_panels = counts.group_by("panel", maintain_order=True).agg("what")["what"]
        several = counts.group_by("what").agg(pl.col("count").n_unique())["count"].max() != 1
        if groups_of_panels.n_unique() == 1 and several:
            return labels, ""
        texts = counts.select(pl.format("{} ({})", "what", "count").fill_null(pl.col("what"))).to_series()
        return texts, "n in parentheses"

    def _rows_of_shares(self, frame: pl.DataFrame) -> pl.Series:
        """The rows that values are shares of; null where nobody knows."""
        if frame[".denominator"].count():
            return frame[".denominator"].cast(pl.Float64)
        # a comparison with a reference has all rows of a group in `.n`, of which few may count for its metric
        if self.kind in (kinds.COMPARISONS, kinds.FOUR_FIFTHS):
            metrics = map(metric_named, frame[".metric"].unique())
            if not all(metric is not None and metric.definition.reads == frozenset({"estimate"}) for metric in metrics):
                return pl.repeat(None, len(frame), dtype=pl.Float64, eager=True)
        return frame[".n"].cast(pl.Float64)

    def with_scales(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame with the `panel` of each row, and the `span` that is known of its values.

        Metrics, differences and ratios have a panel; so has a metric whose values exceed 1, or that is best at 0 or 1.
        """
        rows = frame.select(".metric", ".by").rows()
        spans = span_column(_OF_DISPARITIES.get(_panel_of(*row)) or span_of_metric(row[0]) for row in rows)
        frame = frame.with_columns(spans, pl.Series("panel", [_panel_of(*row) for row in rows], pl.String))
        low, high, reference = (pl.col("span").struct.field(name) for name in ("low", "high", "reference"))
        is_beyond = pl.col(".estimate").is_finite() & (pl.col(".estimate").abs() > 1)
        is_large = is_beyond.any().over("panel") & (pl.col("panel") != "Ratios")
        is_alone = is_large | (reference.is_not_null() & (pl.col("panel") == "Metrics"))
        title = pl.col(".metric").replace_strict(self.titles, return_dtype=pl.String)
        frame = frame.with_columns(panel=pl.when(is_alone).then(title).otherwise("panel"))
        span = pl.struct(
            low=pl.when(low.is_not_null().all()).then(low.min()),
            high=pl.when(high.is_not_null().all()).then(high.max()),
            reference=pl.when(reference.n_unique() == 1).then(reference.first()), is_whole=False,
        )  # fmt: skip
        frame = frame.with_columns(span.over("panel").alias("span"))
        if UNIT not in frame.columns or frame[UNIT].n_unique() < 2:
            return frame
        # an axis has one unit
        in_unit = pl.when(pl.col(UNIT) == "").then("panel").otherwise(pl.format("{} in {}", "panel", UNIT))
        return frame.with_columns(in_unit.alias("panel"))


def listed_names(names: Iterable[str]) -> str:
    """The distinct names, as a title: the first ones, and how many more there are.

    >>> listed_names(["a", "b", "c", "d"]), listed_names(["a", "a", "b"])
    ('a, b and 2 more', 'a and b')
    """
    values = list(dict.fromkeys(names))
    # "and 1 more" is no shorter than the name itself
    if len(values) > _NAMED + 1:
        return f"{', '.join(values[:_NAMED])} and {len(values) - _NAMED} more"
    *first, last = values
    return f"{', '.join(first)} and {last}" if first else last


def prose_of(titles: Iterable[str]) -> str:
    """The distinct titles of metrics inside a sentence."""
    return listed_names(map(in_prose, titles))


def listed_titles(titles: Iterable[str]) -> str:
    """The distinct titles of metrics, as one: the first starts with a capital letter."""
    first, *others = dict.fromkeys(titles)
    return listed_names([first, *map(in_prose, others)])


def subject_of(frame: pl.DataFrame, words: Callable[[Iterable[str]], str] = listed_titles) -> str:
    """The metrics of a result and the features by which it compares groups, such as `Accuracy by sex and race`."""
    features = frame[".by"].drop_nulls()
    return (
        f"{words(frame[METRIC])} by {listed_names(map(by_words, features))}" if len(features) else words(frame[METRIC])
    )


def with_shorter(title: str, end: str) -> list[str]:
    """A title with its end, and without it where there is no room."""
    return [title + end, title]


def by_words(by: str) -> str:
    """The features by which something is compared, in words."""
    return by.replace(":", " and ")


def groups_in_words(frame: pl.DataFrame) -> pl.Expr:
    """The group of each row as people write it: the parts of a crossing with commas between them."""
    is_single = pl.col(".by").cast(pl.String).is_in(frame.columns)
    text = pl.when(is_single).then(pl.col(".group").cast(pl.String)).otherwise(crossed_text(".group"))
    for by, features in crossed_features(frame).items():
        parts = [texts_of(frame.select(name)) for name in features]
        joined = pl.select(pl.concat_str(parts, separator=", ")).to_series()
        text = pl.when(pl.col(".by") == by).then(joined).otherwise(text)
    return text


def crossed_features(frame: pl.DataFrame) -> dict[str, list[str]]:
    """The columns of the features of each crossing, which stand between `.by` and `.group`, in any order."""
    columns = frame.columns[frame.columns.index(".by") + 1 : frame.columns.index(".group")]
    crossed: dict[str, list[str]] = {}
    for by in frame[".by"].drop_nulls().unique(maintain_order=True):
        if by in columns:
            continue
        named = [column for column in columns if column in by]
        orders = chain.from_iterable(permutations(named, size) for size in range(by.count(":") + 1, 1, -1))
        features = next((order for order in orders if ":".join(order) == by), None)
        if features:
            crossed[by] = list(features)
    return crossed


def with_outer_text(frame: pl.DataFrame, outer: list[str]) -> pl.DataFrame:
    """A frame with its outer keys as one column of text, without the name of a single key that is not `fold`."""
    if not outer:
        return frame
    texts = [texts_of(frame.select(name)) for name in outer]
    if len(outer) > 1 or outer == ["fold"]:
        texts = [f"{name} " + text for name, text in zip(outer, texts, strict=True)]
    joined = pl.select(pl.concat_str(texts, separator=", ").alias(OUTER)).to_series()
    return frame.select(pl.exclude(outer), joined)


def table_of(frame: pl.DataFrame, *marks: str, **columns: Any) -> pl.DataFrame:
    """The table of a picture: its panel and axis, the marks that a result has, and other columns.

    Names have no dot, which Vega would take for a path.
    """
    shown = {name: pl.col(name) for name in ("panel", "span", "scale") if name in frame.columns}
    if UNIT in frame.columns:
        shown["unit"] = pl.col(UNIT)
    if ".lower" in marks:
        shown |= {
            name: pl.Series(mask) for name, mask in zip(("above", "below"), open_ends(frame), strict=True) if any(mask)
        }
    for name in marks:
        if name == ".estimate" or frame[name].count() or frame[_OTHER_ENDS.get(name, name)].count():
            is_empty = frame.schema[name] == pl.Null
            shown[name.removeprefix(".")] = pl.col(name).cast(pl.Float64) if is_empty else pl.col(name)
    return frame.select(**{"panel": pl.lit(""), **shown, **columns})


def has_intervals(frame: pl.DataFrame) -> bool:
    """True for results of which a row has an end of an interval."""
    return bool(frame[".lower"].count() or frame[".upper"].count())


def reason(value: str = ".estimate", otherwise: str = "no value") -> pl.Expr:
    """The reason why there is no value, where there is none."""
    status = pl.col(".status").cast(pl.String).str.replace_all("_", " ").fill_null(otherwise)
    return pl.when(pl.col(value).is_null()).then(status).otherwise(pl.lit(""))


def with_spans(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with what is known of the values of each metric; panels of the same metric and scale share an axis."""
    return frame.with_columns(span_column(map(span_of_metric, frame[".metric"])), scale_of_metric())


def span_column(spans: Iterable[Span]) -> pl.Series:
    """What is known of the values of each row, as a column."""
    return pl.Series("span", [asdict(span) for span in spans], SPAN)


def scale_of_metric() -> pl.Expr:
    """The `scale` of each row: its metric and its scale. Panels with the same `scale` share an axis."""
    return pl.concat_str(".metric", ".scale", separator=" ", ignore_nulls=True).alias("scale")


def _panel_of(metric: str, by: str | None) -> str:
    """The panel of a metric, or of a disparity: the kind of its aggregate, if it is in the catalogue."""
    if by is None:
        return "Metrics"
    factory = comparison_named(metric)
    kind = "" if factory is None else factory.aggregate.kind
    return {"difference": "Differences", "ratio": "Ratios"}.get(kind, "Disparities")


def span_of_metric(name: str) -> Span:
    """The range of a metric of the catalogue, and the value at which it is best where that is 0 or 1 and no end."""
    metric = metric_named(name)
    if metric is None:
        return Span()
    low, high = (end if abs(end) < float("inf") else None for end in metric.range)
    reference = {"zero": 0.0, "one": 1.0}.get(metric.direction)
    # means of numbers have no best value, and benefits and lifts one that a model without use has
    reference = _REFERENCES.get(name, reference)
    return Span(low, high, reference)


Drawing: TypeAlias = Callable[[PlotInput], Picture]
_SURE, _LEVEL = 0.05, 0.95
"""Below this p-value a sentence calls a difference larger than chance explains; the level of intervals drawn here."""
_NO_DIFFERENCE = Span(reference=0)
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}")
_PIXELS, _FEWEST_PIXELS = 300, 40
"""Points of a curve that fall on the same of so many pixels of an axis look like one."""
_MOST_IN_ONE = 2
"""The number of calibration curves in a panel."""
_TREAT_ALL = "net_benefit_of_treating_all"
_FEW_POINTS = 12
"""The number of times or quantile levels up to which there is a dot with its interval at each, and nothing between."""
_VERBS = {
    "pass": ("passes", "pass"), "fail": ("fails", "fail"),
    "not enough evidence": ("needs more evidence", "need more evidence"), "within": ("is kept", "are kept"),
    "above the limit": ("is exceeded", "are exceeded"), "below the limit": ("is missed", "are missed"),
    "undecided": ("is undecided", "are undecided"),
}  # fmt: skip
"""Verdicts of one limit, and of several, in words."""
_LARGEST_CROSSING = 400
"""The number of cells of a heat map that can still be read."""


def _with_left_out(picture: Picture, plot: PlotInput) -> Picture:
    """A picture with a note on the groups that disparities leave out, or that are drawn and not compared."""
    several, start = plot.frame[".by"].drop_nulls().n_unique() > 1, "left out"
    entries: Sequence[Mapping[str, Any]] = [
        {**entry, "group": f"{by_words(by)} {entry['group']}" if several else entry["group"]}
        for by, left_out in plot.frame.select(".by", ".left_out").rows()
        for entry in left_out or ()
    ]
    if PICTURES[plot.kind] is groups_plot:
        is_small = pl.col(".status").cast(pl.String).is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value])
        small = plot.frame.filter(is_small & pl.col(".estimate").is_not_null())
        start, entries = (
            "not compared",
            small.select(group=GROUP, metric=".metric", level=".level", status=".status").to_dicts(),
        )
    left_out = left_out_in_words(entries, metric=in_prose)
    return replace(picture, notes=[*picture.notes, f"{start}: {left_out}"]) if left_out else picture


def _counted(number: int, frame: pl.DataFrame, rows: str) -> str:
    """The number of rows of a table that meet a condition, as the start of a sentence."""
    return f"{number or 'None'} of {len(frame)} {rows} {'is' if number == 1 else 'are'}"


def _number_of_sure(frame: pl.DataFrame) -> int:
    """The number of small p-values, adjusted if they are."""
    return frame.filter(pl.coalesce(".p_adjusted", ".p_value") < _SURE).height


# Values of metrics and groups


def results_plot(plot: PlotInput) -> Picture:
    """Metrics, disparities and verdicts: one value each, or one for each threshold or outer group."""
    cut, judged = plot.cut, plot.kind is not kinds.METRICS
    at_points = judged and cut in POINTS
    if cut and not at_points:
        # a panel for all metrics of a scale, and a color for each; with outer groups, these have the colors
        values = plot.with_scales(_with_cuts(plot.frame, cut))
        panel, series = (COMPARED, OUTER) if plot.outer else ("panel", COMPARED)
        values = values.with_columns(panel=panel, series=series)
        return _over_cuts(plot, cut, values, listed_titles(values[COMPARED]))
    frame = plot.with_scales(plot.frame)
    if plot.outer and not judged:
        return _over_outer(plot, frame, COMPARED)
    marks = (".estimate", ".limit", ".verdict", *ENDS, *EXPECTED)
    if at_points:
        # a panel for each metric, as lines have no room for limits
        names = [capitalized(cut_in_words(row).removeprefix("at ")) for row in frame.iter_rows(named=True)]
        points = pl.Series(names, dtype=pl.String)
        rows = plot.with_outer(pl.when(points == "").then(COMPARED).otherwise(points))
        table = table_of(frame, *marks, panel=COMPARED, what=rows, why=reason())
        alone = frame[COMPARED][0] if frame[COMPARED].n_unique() == 1 else ""
        return Picture(dots, table, _verdicts_in_words(frame), [alone, f"lines: {plot.limits}"])
    table = table_of(frame, *marks, what=LABEL, why=reason())
    verdicts = _verdicts_in_words(frame) if judged else []
    return Picture(dots, table, [*verdicts, listed_titles(frame[COMPARED])], _notes_on_marks(plot, table))


def _notes_on_marks(plot: PlotInput, table: pl.DataFrame) -> list[str]:
    """The notes on the marks beside values."""
    notes = {"lower": f"lines: {plot.limits}", "raw": "hollow: the group alone"}
    notes["expected_lower"] = "gray: expected if groups are equal"
    return [note for mark, note in notes.items() if mark in table.columns]


def _verdicts_in_words(frame: pl.DataFrame) -> list[str]:
    """The numbers of verdicts as a sentence."""
    number = dict(frame[".verdict"].value_counts().rows())
    if len(frame) == 1:
        verdict = frame[".verdict"][0]
        one, _ = _VERBS.get(verdict, (f"is {verdict}", ""))
        return [f"{frame[COMPARED][0]} {one}"]
    parts = [f"{many} {verbs[many > 1]}" for verdict, verbs in _VERBS.items() if (many := number.get(verdict, 0))]
    both = " and ".join(parts) if len(parts) < 3 else ", ".join(parts)
    return [f"Of {len(frame)} limits, {both}", ", ".join(parts)]


def groups_plot(plot: PlotInput) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = plot.frame.drop_nulls(".by")
    if frame.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    # a single feature is in the title
    frame = with_spans(frame.with_columns(panel=VALUE if frame[".by"].n_unique() == 1 else PANEL))
    if plot.cut is not None:
        values = _with_treat_all(_with_cuts(frame, plot.cut), plot.cut)
        values = values.with_columns(series=plot.with_outer(pl.col(GROUP)))
        return _over_cuts(plot, plot.cut, values, subject_of(values))
    if plot.outer:
        return _over_outer(plot, frame, GROUP)
    titles = _titles_of_groups(frame)
    if is_crossed(frame) and plot.form != "dots":
        return _crossing(plot, frame, titles)
    labels, counted = plot.with_counts(frame, pl.col(GROUP))
    if plot.frame[".by"].has_nulls():
        keys = [".metric", ".level"]
        overall = plot.frame.filter(pl.col(".by").is_null()).select(*keys, pl.col(".estimate").alias(".limit"))
        frame = frame.drop(".limit").join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
    table = table_of(frame, ".estimate", *ENDS, ".limit", ".raw", what=labels, why=reason())
    return Picture(dots, table, titles, [counted, *_notes_on_marks(plot, table)], limit="all rows")


def is_crossed(frame: pl.DataFrame) -> bool:
    """True for the groups of two features crossed, and of nothing else."""
    by = frame[".by"].drop_nulls().unique().to_list()
    return len(by) == 1 and len(crossed_features(frame).get(by[0], [])) == 2


def _titles_of_groups(frame: pl.DataFrame) -> list[str]:
    """The range of a single metric as a sentence, or the names of several."""
    subject = subject_of(frame)
    finite = frame.filter(pl.col(".estimate").is_finite()).sort(".estimate", maintain_order=True)
    if frame["panel"].n_unique() > 1 or len(finite) < 2 or finite[".estimate"].n_unique() == 1:
        return [subject]
    (first, low), *_, (last, high) = finite.select(GROUP, ".estimate").rows()
    low, high = number_text(low), number_text(high)
    return [f"{subject} is {low} for {first} and {high} for {last}", f"{subject} ranges from {low} to {high}", subject]


def _crossing(plot: PlotInput, grouped: pl.DataFrame, titles: list[str]) -> Picture:
    """Values of two features crossed: a heat map, or panels of dots where there are intervals."""
    (features,) = crossed_features(grouped).values()
    # as in `.group`: texts that would read alike are in quotes; the feature with fewer values heads the columns
    parts = [(texts_of(grouped.select(name)), name) for name in features]
    (row, row_name), (column, column_name) = sorted(parts, key=lambda part: -part[0].n_unique())
    count = pl.coalesce(".denominator", ".n")
    as_dots = has_intervals(grouped) and plot.form is None
    if as_dots or row.n_unique() * column.n_unique() > _LARGEST_CROSSING:
        panel = pl.format("{}, {}", "panel", column) if grouped["panel"].n_unique() > 1 else column
        marks = (".estimate", ".lower", ".upper", ".raw")
        table = table_of(grouped, *marks, panel=panel, what=row, rows=count, why=reason())
        return Picture(dots, table, titles, _notes_on_marks(plot, table))
    texts = [number_text(value) or "\N{EN DASH}" for value in grouped[".estimate"]]
    # rows that have weights are not counted
    size = pl.when(count % 1 == 0).then(pl.format("n = {}", count.cast(pl.Int64))).otherwise(pl.lit(""))
    table = table_of(
        grouped, ".estimate", row=row, column=column, text=pl.Series(texts, dtype=pl.String), below=size, rows=count
    )
    return Picture(heat_map, table, titles, ["stronger colors: higher values"], names=(row_name, column_name))


def _over_outer(plot: PlotInput, frame: pl.DataFrame, what: str) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    of_groups, outer = what == GROUP, " and ".join(plot.outer)
    titles = [
        f"{listed_titles(frame['panel' if of_groups else what])} in each {outer}", f"Values in each {outer}"
    ]  # fmt: skip
    if has_intervals(frame):
        panel = pl.format("{}: {}", "panel", what) if of_groups else pl.col(what)
        table = table_of(frame, ".estimate", *ENDS, panel=panel, what=OUTER, why=reason())
        return Picture(dots, table, titles, [f"lines: {plot.limits}"])
    # chance adds to every unsigned disparity, so that a mean of disparities is biased
    has_mean = pl.lit(value=True) if of_groups else pl.col(".by").is_null()
    average = pl.col(".estimate").mean().over("panel", what)
    table = table_of(
        frame, ".estimate", what=what, outer=OUTER, mean=pl.when(has_mean & average.is_finite()).then(average)
    )
    notes = [f"ticks: one value per {outer}"]
    if table["mean"].count():
        without = " (none for disparities: chance adds to each)" if table["mean"].has_nulls() else ""
        notes.append(f"dot: their mean{without}")
    return Picture(dots, table, titles, notes)


def confusion_plot(plot: PlotInput) -> Picture:
    """Counts of labels against predictions, with their shares of each true label."""
    rows = pl.coalesce(".weight", ".n").cast(pl.Float64)
    row, column = (pl.col(name).cast(pl.String).fill_null("null") for name in (".truth", ".predicted"))
    share = (rows / rows.sum().over(OUTER, row)).fill_nan(None)
    table = plot.frame.select(
        panel=pl.col(OUTER) if plot.outer else pl.lit(""), row=row, column=column, rows=rows, estimate=share
    )
    counts = [f"{count:,.0f}" if count == int(count) else f"{count:,.1f}" for count in table["rows"]]
    shares = ["" if value is None else f"{value * 100:.1f}%" for value in table["estimate"]]
    right, total = (float(part["rows"].sum()) for part in (table.filter(pl.col("row") == pl.col("column")), table))
    titles = [f"{right / total * 100:.1f}% of {total:,.0f} predictions are right"] if total else []
    if plot.outer:
        titles = [f"Confusion matrices by {' and '.join(plot.outer)}"]
    return Picture(
        heat_map, table.with_columns(text=pl.Series(counts), below=pl.Series(shares)),
        [*titles, "Confusion matrices" if plot.outer else "Confusion matrix"],
        ["shares are of all rows with the same truth"], names=("truth", "predicted"),
    )  # fmt: skip


# Lines


def _curve(
    plot: PlotInput, name: str, x: tuple[str, pl.Expr], y: tuple[str, pl.Expr], notes: Sequence[str] = (),
    *, columns: Mapping[str, Any] | None = None, **settings: Any,
) -> Picture:  # fmt: skip
    """A curve, or one for each outer group, with the titles of both axes and what they show."""
    titles = [f"{name}s by {' and '.join(plot.outer)}", f"{name}s"] if plot.outer else [name]
    table = _points(plot.frame, x[1], y[1], **(columns or {}))
    return Picture(lines, table, titles, notes, x=x[0], y=y[0], **settings)


def _points(frame: pl.DataFrame, x: pl.Expr, y: pl.Expr, **columns: Any) -> pl.DataFrame:
    """The points of each curve, as many as can be seen: the first one of each cell of a grid."""
    panel = pl.col(".level").cast(pl.String).fill_null("")
    table = table_of(frame, panel=panel, series=OUTER, x=x, estimate=y, **columns)
    table = table.filter(pl.all_horizontal(pl.col("x", "estimate").is_finite()))
    pixels = _PIXELS
    while True:
        ends = pl.col("x", "estimate")
        cell = (ends / (ends.max() - ends.min()) * pixels).round()
        keys = [pl.col("panel"), pl.col("series"), cell]
        points = table.filter(pl.struct(keys).is_first_distinct())
        if len(points) <= MOST_POINTS or pixels <= _FEWEST_PIXELS:
            return points
        pixels //= 2


def feature_plot(plot: PlotInput) -> Picture:
    """A metric over a feature, with its simultaneous band."""
    feature, metric = plot.frame.select(".by", METRIC).row(0)
    at = pl.col(".at").cast(pl.Float64)
    table = table_of(plot.frame, *ENDS, series=OUTER, x=at, estimate=".estimate").drop_nulls("estimate")
    name = f"{metric} over {feature}"
    titles = [f"{name} by {' and '.join(plot.outer)}", name] if plot.outer else [name]
    return Picture(lines, table, titles, ["bands hold the whole curve"], x=feature, y=metric)


def calibration_plot(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score, with intervals where rows count alike; of isotonic bins, as steps."""
    is_isotonic = plot.frame[".lowest_score"].count() > 0
    if is_isotonic:
        ends = pl.concat_list(".lowest_score", ".highest_score").alias(".mean_score")
        plot = replace(plot, frame=plot.frame.with_columns(ends).explode(".mean_score"))
    limits = {} if plot.frame[".lower"].count() == 0 else {"lower": ".lower", "upper": ".upper"}
    notes = [f"lines: {plot.limits} of each bin (Wilson)"] if limits else []
    if is_isotonic:
        notes = ["steps: shares of events that rise with the score (isotonic regression)"]
        share = f"{kinds.level_of(plot.frame) * 100:g}%"
        notes += [f"bands: where {share} of these are if scores are calibrated, each by itself"] if limits else []
    picture = _curve(
        plot, "Calibration curve", ("Score" if is_isotonic else "Mean score", pl.col(".mean_score")),
        ("Event rate", pl.col(".event_rate")), notes, columns={"rows": ".n", **limits}, square=True,
        diagonal="perfect calibration", points=not is_isotonic,
    )  # fmt: skip
    table = picture.table
    if is_isotonic or table["series"].n_unique() <= _MOST_IN_ONE:
        return picture
    # intervals of many curves would hide each other
    panel = pl.when(pl.col("panel") == "").then("series").otherwise(pl.format("{}, {}", "series", "panel"))
    return replace(picture, table=table.with_columns(panel=panel, series=pl.lit("event rate")))


def cumulative_plot(plot: PlotInput) -> Picture:
    """Events minus scores, cumulated over the rows by their score, and what chance gives."""
    from tidyfair.intervals import z_value  # noqa: PLC0415 - only here

    reach = z_value(_LEVEL) * pl.col(".std_error").cast(pl.Float64)
    are_few = plot.frame[OUTER].n_unique() <= MOST_BANDS
    return _curve(
        plot, "Cumulative calibration curve", ("Share of rows, from the lowest score", pl.col(".share")),
        ("Events minus scores, per row", pl.col(".cumulative_error")),
        [
            "lines rise where risks are underestimated, and fall where they are overestimated",
            "bands hold 95% of calibrated scores at each point" if are_few else "",
        ],
        columns={"lower": -reach, "upper": reach}, span=Span(reference=0), x_span=Span(0, 1),
    )  # fmt: skip


def _with_cuts(frame: pl.DataFrame, cut: str) -> pl.DataFrame:
    """The values that depend on the cut."""
    values = frame.filter(pl.col(cut).is_not_null())
    if values.is_empty():
        msg = f"autoplot() draws values over the {CUT_TITLES[cut]}, and no metric of the result has any."
        raise ArgumentError(msg)
    return values


def _over_cuts(plot: PlotInput, cut: str, values: pl.DataFrame, name: str) -> Picture:
    """Lines of values that have a `panel` and a `series`."""
    words = CUT_TITLES[cut]
    # no more cuts than a chart can hold points
    step = math.ceil(len(values) / MOST_POINTS)
    kept = values[cut].unique().sort().gather_every(step)
    values = values.filter(pl.col(cut).is_in(kept.implode()))
    marks = (*ENDS, *([".dashed"] if ".dashed" in values.columns else []))
    table = table_of(values, *marks, series="series", x=pl.col(cut).cast(pl.Float64), estimate=".estimate")
    # different groups can have the same text
    table = unique_names(table, "series", "panel", "x")
    notes: list[str] = []
    of_groups = values[GROUP].count() > 0
    others = plot.frame.filter(pl.col(cut).is_null() & (pl.col(".by").is_not_null() | (not of_groups)))
    if without := others[METRIC].unique(maintain_order=True).to_list():
        verb = "does" if len(without) == 1 else "do"
        notes.append(f"not drawn: {', '.join(without)}, which {verb} not depend on the {words}")
    are_few = cut in POINTS and table["x"].n_unique() <= _FEW_POINTS
    if "lower" in table.columns:
        notes.append(_note_on_intervals(plot, table, "vertical lines" if are_few else "bands"))
    if "dashed" in table.columns:
        notes.append("dotted: treat all; line at 0: treat none")
    titles = [f"{name} over the {words}", name]
    return Picture(lines, table, titles, notes, x=words.capitalize(), at=plot.at, points=are_few)


def _note_on_intervals(plot: PlotInput, table: pl.DataFrame, shape: str) -> str:
    """The marks of intervals; none where there are many lines."""
    lines_of_panels = table.group_by("panel").agg(pl.col("series").n_unique())["series"]
    many = f"more than {MOST_BANDS} lines are drawn without"
    if (lines_of_panels > MOST_BANDS).all():
        return f"{many} their {plot.limits}"
    return f"{shape}: {plot.limits}" + (f"; {many}" if (lines_of_panels > MOST_BANDS).any() else "")


def _with_treat_all(values: pl.DataFrame, cut: str) -> pl.DataFrame:
    """Net benefit with that of treating all beside it, in place of a panel of its own.

    Net benefit depends on the costs of errors alone, so that its lines of reference are those of the same group.
    """
    if not {_TREAT_ALL, "net_benefit"} <= set(values[".metric"]):
        return values
    keys = [".by", ".group", ".level", cut, OUTER]
    odds = pl.col(cut) / (1 - pl.col(cut))
    treat_all = pl.col(".estimate")
    # net benefit of treating all is the rate of events less the odds times the rate of the others
    base_rate = (treat_all + odds) / (1 + odds)
    beside = values.filter(pl.col(".metric") == _TREAT_ALL).select(
        *keys, treat_all.alias("net_benefit"), (treat_all / base_rate).alias("standardized_net_benefit")
    )
    beside = beside.unpivot(index=keys, variable_name=".metric", value_name=".dashed")
    others = values.filter(pl.col(".metric") != _TREAT_ALL)
    return others.join(beside, on=[".metric", *keys], how="left", nulls_equal=True, maintain_order="left")


# Comparisons


def comparison_plot(plot: PlotInput) -> Picture:
    """Groups compared with a reference, which are equal at 0, or of ratios at 1."""
    frame = _disparities(plot)
    labels, counted = plot.with_counts(frame, plot.with_outer(pl.col(GROUP)))
    is_reference = (pl.col(".group") == pl.col(".reference")).fill_null(value=False)
    table = table_of(
        frame, *ENDS, what=labels, estimate=pl.when(~is_reference).then(".disparity"),
        why=pl.when(is_reference).then(pl.lit("reference")).otherwise(reason(".disparity")),
        **{"limit": pl.lit(0.8)} if plot.kind is kinds.FOUR_FIFTHS else {},
    )  # fmt: skip
    compared = f"compared with {plot.reference or 'a reference'}"
    titles = [f"{subject}, {compared}" for subject in (subject_of(frame), listed_titles(frame[METRIC]))]
    x = f"{plot.scale} {'to' if plot.is_ratio else 'from'} {plot.reference}" if plot.reference else plot.scale
    return Picture(dots, table, titles, [counted, f"lines: {plot.limits}"], limit="four fifths,", x=x)


def _pairs(plot: PlotInput, value: str, what: str | pl.Expr, end: str, notes: Sequence[str], **marks: Any) -> Picture:
    """Comparisons of two groups, with intervals: overlapping intervals of groups are no test."""
    table = table_of(_disparities(plot), *ENDS, what=what, estimate=value, **marks)
    kind = f"{plot.scale or 'Comparison'}s {'in' if plot.scale == 'Difference' else 'of'}"
    return Picture(dots, table, with_shorter(f"{kind} {subject_of(plot.frame, prose_of)}", end), notes, x=plot.scale)


def _disparities(plot: PlotInput) -> pl.DataFrame:
    """Comparisons of groups with their panels, and what is known of their values; those of a metric share an axis."""
    scale = pl.col(".scale").cast(pl.String).fill_null(_SCALES.get(plot.kind, "difference"))
    scales = plot.frame.select(scale).to_series()
    spans = [Span(low=0, reference=1) if one.endswith("ratio") else _NO_DIFFERENCE for one in scales]
    panel = pl.col(PANEL) if plot.scale else pl.format("{}, {}", PANEL, scale.str.replace_all("_", " ", literal=True))
    return plot.frame.with_columns(scale_of_metric(), span_column(spans), panel=panel)


def tests_plot(plot: PlotInput) -> Picture:
    """Disparities beside the range that is expected if groups are equal."""
    frame = plot.with_scales(plot.frame)
    p_value = as_p_value(frame[".p_value"]).fill_null("unknown")
    p_value = pl.when(p_value.str.starts_with("0")).then("= " + p_value).otherwise(p_value)
    table = table_of(frame, ".estimate", *EXPECTED, what=pl.format("{} (p {})", LABEL, p_value))
    name, sure = listed_titles(frame[COMPARED]), _number_of_sure(frame)
    many = _counted(sure, frame, "disparities")
    titles = [f"{many} larger than chance explains", f"{many} beyond chance", name]
    if len(frame) == 1:
        titles = [f"{name} is {'larger' if sure else 'no larger'} than chance explains", name]
    return Picture(dots, table, titles, ["gray: p of 0.05 or more"])


def looks_plot(plot: PlotInput) -> Picture:
    """The verdicts of monitors, period by period."""
    frame = plot.frame
    lowest = pl.min_horizontal(pl.col(".estimate").min(), pl.col(".lower").min()).over(LABEL)
    span = pl.struct(low=pl.when(lowest >= 0).then(0.0), high=None, reference=None, is_whole=False).cast(SPAN)
    what = texts_of(frame.select(".period"))
    table = table_of(frame, ".estimate", *ENDS, ".limit", ".verdict", panel=LABEL, what=what, span=span)
    name = listed_titles(frame[COMPARED])
    titles = [f"{name} after each period", f"{name} so far"]
    if table["panel"].n_unique() == 1:
        last = frame[".verdict"][-1]
        words = {"within": "keeps its limit", "above the limit": "is above its limit", "below the limit": "is below it"}
        titles = [f"{name} {words.get(last, f'is {last}')} after {len(frame)} looks", f"{name}: {last}"]
    since = texts_of(frame.select(".since"))
    is_of_all = since.n_unique() == 1
    if not is_of_all:
        titles = [f"{title}, of data since {since[-1]}" for title in titles]
    x = f"{'all' if is_of_all else 'recent'} data up to and including the period"
    return Picture(over_time, table, titles, [f"lines: {plot.limits}, valid at every look"], x=x)


def subgroups_plot(plot: PlotInput) -> Picture:
    """The subgroups that differ most from the rest, or how far any of them may differ."""
    is_compared = pl.col(".difference").is_not_null() & (pl.col(".status").fill_null("ok") == Status.OK.value)
    frame = plot.frame.filter(is_compared)
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: no subgroup is compared; `.status` says why."
        raise ArgumentError(msg)
    first = frame.head(MOST_PANELS)
    condition = pl.col(".subgroup").cast(pl.String).str.replace_all(" & ", ", ", literal=True)
    what = pl.format("{} ({})", condition, pl.coalesce(".denominator", ".n"))
    is_certificate = plot.kind is kinds.CERTIFICATE
    reach = {"lower": pl.lit(0.0), "upper": pl.col(".epsilon")} if is_certificate else {}
    table = table_of(first, panel=METRIC, what=what, estimate=".difference", **reach)
    name, prose = listed_titles(first[METRIC]), prose_of(first[METRIC])
    if is_certificate:
        epsilon = f"{first['.epsilon'][0]:.3f}"
        titles = [f"No subgroup is more than {epsilon} from the others in {prose}", f"{name}: at most {epsilon} apart"]
        notes = ["dot: the subgroup that differs most", "line: how far any subgroup may differ"]
    else:
        titles = [f"Subgroups that differ most from the rest in {prose}", f"{name} of subgroups"]
        notes = ["subgroup minus everyone else", "n in parentheses"]
        notes += [f"{len(first)} of {len(frame)}"] if len(frame) > len(first) else []
    return Picture(dots, table, titles, notes, **_DIFFERENCE)


def halves_plot(plot: PlotInput) -> Picture:
    """The two halves that a linear threshold makes, around the rate of all."""
    frame = with_spans(plot.frame).with_columns(plot.with_outer(pl.col(METRIC)).alias("panel"))
    conditions = [
        _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.3g}", text or "no condition")
        for text in frame[".subgroup"]
    ]
    divided, sides = zip(*(text.rpartition(") ")[0::2] for text in conditions), strict=True)
    notes = ["n in parentheses"]
    if len(set(divided)) == 1 and divided[0]:
        # both halves have the same long left side
        notes, conditions = [f"by {divided[0]})", *notes], sides
    what = pl.format("{} ({})", pl.Series(conditions, dtype=pl.String), pl.col(".denominator"))
    titles = with_shorter(listed_titles(frame["panel"]), " on both sides of the condition that divides it most")
    return Picture(dots, table_of(frame, ".estimate", what=what, limit=".overall"), titles, notes, limit="all rows")


def models_plot(plot: PlotInput) -> Picture:
    """Two models side by side, and the change from one to the other; of several models the changes alone."""
    if plot.form == "frontier":
        return _frontier(plot)
    frame = plot.frame
    sure = frame.filter((pl.col(".lower") > 0) | (pl.col(".upper") < 0)).height
    finding = f"{_counted(sure, frame, 'values')} clearly different"
    if frame[".model_other"].n_unique() > 1:
        base = frame[".model_one"][0]
        table = with_points(table_of(frame, *ENDS, ".verdict", panel=LABEL, what=".model_other", estimate=".change"))
        margin = frame[".margin"].cast(pl.Float64)
        margin = margin.set(margin == 0, None)
        if margin.count():
            table = table.with_columns(expected_lower=-margin, expected_upper=margin)
        notes = [f"lines: {plot.limits}", "gray: within the margin" if margin.count() else ""]
        titles = [f"{finding} from {base}", finding]
        return Picture(dots, table, titles, notes, _NO_DIFFERENCE, x=f"Change from {base}")
    frame, (one, other) = plot.with_scales(frame.with_columns(pl.col(".one").alias(".estimate"))), plot.models
    table = with_points(table_of(frame, *ENDS, what=LABEL, one=".one", other=".other", estimate=".change"))
    notes = [f"change: {other} minus {one}, with its {plot.limits}"]
    # names of columns need not start with a capital letter
    return Picture(
        side_by_side, table, [f"{finding} between {one} and {other}", finding], notes, names=plot.models
    )  # fmt: skip


def _frontier(plot: PlotInput) -> Picture:
    """Models by the first metric of all rows and by each disparity, with those that no other is better than in both."""
    frame = plot.frame.with_columns(panel=COMPARED)
    is_overall = pl.col(".by").is_null()
    performances, disparities = frame.filter(is_overall), frame.filter(~is_overall)
    if performances.is_empty() or disparities.is_empty() or plot.outer:
        msg = "autoplot(): a frontier has a metric of all rows and a disparity, of data without outer groups."
        raise ArgumentError(msg)
    names = performances[".metric"].unique(maintain_order=True).to_list()
    name = next((name for name in names if direction_of(name) != "neither"), names[0])
    performance = performances.filter(pl.col(".metric") == name)
    parts: list[pl.DataFrame] = []
    for part in disparities.partition_by("panel", maintain_order=True):
        values = part.join(performance, on=".model_other", suffix="_x", maintain_order="left")
        base = values[:1].select("panel", series=".model_one", x=".one_x", estimate=".one")
        others = values.select("panel", series=".model_other", x=".other_x", estimate=".other")
        points = pl.concat([base, others]).with_columns(
            base=pl.int_range(pl.len()) == 0, better=pl.lit(_FAIRER.get(direction_of(part[".metric"][0]), ""))
        )
        sides = (("x", name), ("estimate", part[".metric"][0]))
        good = (gains(points[column].cast(pl.Float64).to_numpy(), direction_of(metric)) for column, metric in sides)
        parts.append(points.with_columns(front=pl.Series(is_on_frontier(*good))))
    titles = [f"{title_of(name)} and disparities of models", "Performance and disparities"]
    better = {"maximize": " (higher is better)", "minimize": " (lower is better)"}.get(direction_of(name), "")
    x = f"{short_title(name)}{better}"
    if len(parts) == 1:
        losers = performance.filter(pl.col(".verdict") == "worse")[".model_other"].to_list()
        fairer = disparities.filter(pl.col(".verdict") == "better", ~pl.col(".model_other").is_in(losers))
        if len(fairer):
            verb = "is" if len(fairer) == 1 else "are"
            titles.insert(0, f"{listed_names(fairer['.model_other'])} {verb} less discriminatory")
    return Picture(scatter, pl.concat(parts), titles, x=x)


def direction_of(metric: str) -> str:
    """The good side of a metric or disparity: `maximize`, `minimize`, `zero` or `one`; `neither` where none is good."""
    known, compared = metric_named(metric), comparison_named(metric)
    if known is not None:
        return known.better
    return str(compared.aggregate.direction if compared else "minimize")


def _with_errors(value: str) -> dict[str, pl.Expr]:
    """A value with one standard error to each side."""
    mean, error = pl.col(value), pl.col(".std_error")
    return {"estimate": mean, "lower": mean - error, "upper": mean + error}


def periods_plot(plot: PlotInput) -> Picture:
    """Changes from one period to the next, beside the range that chance gives."""
    what = pl.format("{} to {}", *(texts_of(plot.frame.select(name)) for name in (".before", ".period")))
    is_sure = pl.coalesce(".p_adjusted", ".p_value") < _SURE
    verdict = pl.when(is_sure).then(pl.lit("beyond chance")).otherwise(pl.lit("not beyond chance"))
    table = table_of(plot.frame, *EXPECTED, panel=LABEL, what=what, estimate=".change", verdict=verdict)
    name, sure = f"Change in {prose_of(plot.frame[LABEL])}", _number_of_sure(plot.frame) or "none"
    changes = "change" if len(table) == 1 else "changes"
    titles = with_shorter(name, f": {sure} of {len(table)} {changes} beyond chance")
    notes = ["gray: p of 0.05 or more"] if "expected_lower" in table.columns else []
    return Picture(over_time, table, titles, notes, _NO_DIFFERENCE, x="from one period to the next", y="Change")


def changes_plot(plot: PlotInput) -> Picture:
    """Values before and after the period at which they change, and their change."""
    frame = plot.frame.filter(pl.col(".period").is_not_null())
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: no value can be compared before and after a period."
        raise ArgumentError(msg)
    period = pl.format("from {} on", texts_of(frame.select(".period")))
    period = pl.when(pl.col(".p_adjusted") < _SURE).then(period).otherwise(pl.lit("not beyond chance"))
    what = pl.when(pl.col(".group").is_null()).then(period).otherwise(pl.format("{}, {}", ".group", period))
    values = {"one": ".estimate_before", "other": ".estimate", "estimate": ".change"}
    finding = f"{_number_of_sure(frame) or 'none'} of {len(frame)} changes beyond chance"
    titles = [f"Change in {prose_of(frame[LABEL])}: {finding}", finding]
    notes = ["change: with limits that hold for all periods"]
    return Picture(
        side_by_side, table_of(frame, *ENDS, panel=LABEL, what=what, **values), titles, notes, names=("before", "after")
    )


def sensitivity_plot(plot: PlotInput) -> Picture:
    """The smallest share of errors in the data that turns a verdict."""
    frame = plot.frame.drop_nulls(".group")
    table = table_of(
        frame, panel=pl.col(".error").map_elements(capitalized, pl.String), estimate=".share",
        what=pl.format("{}: {} ({})", LABEL, ".group", ".n"), why=reason(".share", "does not turn it"),
    )  # fmt: skip
    titles = ["The smallest share of errors that turns the verdict", "Errors that turn the verdict"]
    return Picture(dots, table, titles, ["n in parentheses"], Span(0, 1, 0), x="Share of rows")


_TESTED = pl.col(".percent_tested") / 100
_DIFFERENCE: dict[str, Any] = {"span": _NO_DIFFERENCE, "x": "Difference"}

PICTURES: Mapping[kinds.ResultKind, Drawing] = {
    kinds.METRICS: results_plot, kinds.VERDICTS: results_plot, kinds.LOOK: results_plot, kinds.GROUPS: groups_plot,
    kinds.SHRUNKEN: groups_plot, kinds.WORST: groups_plot, kinds.GROUPS_OF_LOOKS: groups_plot,
    kinds.CONFUSION: confusion_plot, kinds.COMPARISONS: comparison_plot, kinds.FOUR_FIFTHS: comparison_plot,
    kinds.STANDARDIZED: comparison_plot, kinds.QUANTILES: comparison_plot,
    kinds.TESTS: tests_plot, kinds.SUBGROUPS: subgroups_plot, kinds.CERTIFICATE: subgroups_plot,
    kinds.HALVES: halves_plot, kinds.MODELS: models_plot, kinds.LOOKS: looks_plot, kinds.PERIODS: periods_plot,
    kinds.CHANGES: changes_plot, kinds.SENSITIVITY: sensitivity_plot,
    kinds.CALIBRATION_CURVE: calibration_plot, kinds.CUMULATIVE_CURVE: cumulative_plot,
    kinds.FEATURE_CURVE: feature_plot,
    kinds.BOUNDS: lambda plot: Picture(
        dots,
        table_of(
            plot.frame, *ENDS, panel=METRIC, estimate=".estimate",
            what=pl.format("{} ({})", ".group", pl.col(".n_expected").round(0).cast(pl.Int64)),
            expected_lower=".lower_bound", expected_upper=".upper_bound",
        ),
        with_shorter(listed_titles(plot.frame[METRIC]), " of groups known by probability"),
        [f"gray: all rates that the data allow; lines: their {plot.limits}; in parentheses: expected rows"], Span(0, 1),
    ),
    kinds.MISSING_TRUTH: lambda plot: Picture(
        dots, table_of(plot.frame, *ENDS, what=pl.format("{} ({})", OUTER, ".n"), estimate=".difference"),
        ["Share without a truth: estimated positives minus estimated negatives", "Missing truths by estimate"],
        ["n in parentheses", f"lines: {plot.limits}"], Span(-1, 1, 0), x="Difference",
    ),
    kinds.PAIRS: lambda plot: _pairs(plot, ".disparity", PAIR, ", pair by pair", [f"lines: {plot.limits}"]),
    kinds.PAIRED: lambda plot: _pairs(
        plot, ".disparity", pl.format("{} ({} pairs)", PAIR, ".pairs"), " within pairs",
        [f"lines: {plot.limits}, each for one difference"],
    ),
    kinds.STRATA: lambda plot: _pairs(
        plot, ".adjusted", PAIR, ", like compared with like",
        [f"filled: within strata, with its {plot.limits}", "hollow: all rows together"], raw=".crude",
    ),
    kinds.COMPONENTS: lambda plot: Picture(
        dots,
        table_of(plot.frame, *ENDS, panel=pl.format("{}, {}", LABEL, PAIR), what=".component", estimate=".estimate"),
        [f"{start} in {prose_of(plot.frame[LABEL])}" for start in ("What makes up the difference", "Difference")],
        [f"lines: {plot.limits}"], **_DIFFERENCE,
    ),
    kinds.PROBABILITIES: lambda plot: Picture(
        dots, table_of(plot.frame, what=LABEL, estimate=".probability"), ["Probability that the limit is kept"],
        ["0: never, 1: for sure"], Span(0, 1, is_whole=True), x="Probability",
    ),
    kinds.SMALLEST: lambda plot: Picture(
        dots,
        table_of(
            plot.frame, what=pl.format("{} ({}: {})", LABEL, ".smallest", ".rows"), estimate=".difference",
            why=reason(".difference", "none"),
        ),
        with_shorter(
            "The smallest differences detected", f" {plot.frame['.power'].fill_null(0.8)[0] * 100:g}% of the time"
        ),
        ["in parentheses: the smallest group and its rows"], Span(0, 1, 0), x="Difference",
    ),
    kinds.RESAMPLES: lambda plot: Picture(
        dots, table_of(plot.frame, what=LABEL, **_with_errors(".difference")),
        [
            *with_shorter("{1} minus {0}".format(*plot.models), f", on the same {plot.frame['.n'][0]} resamples"),
            "Differences of two models",
        ],
        ["lines reach one standard error to each side"], **_DIFFERENCE,
    ),
    kinds.SUMMARIES: lambda plot: Picture(
        dots,
        table_of(
            plot.with_scales(plot.frame.with_columns(pl.col(".mean").alias(".estimate"))), what=LABEL,
            **_with_errors(".mean"),
        ),
        [f"Means of {plot.frame['.n'][0]} resamples", "Means over resamples"],
        ["lines reach one standard error to each side"],
    ),
    kinds.ROC_CURVE: lambda plot: _curve(
        plot, "ROC curve", ("False positive rate", 1 - pl.col("specificity")),
        ("Sensitivity (true positive rate)", pl.col("sensitivity")), square=True, diagonal="chance",
    ),
    kinds.PR_CURVE: lambda plot: _curve(
        plot, "Precision-recall curve", ("Recall (true positive rate)", pl.col("recall")),
        ("Precision (positive predictive value)", pl.col("precision")), square=True,
    ),
    kinds.GAIN_CURVE: lambda plot: _curve(
        plot, "Gain curve", ("Share of rows tested", _TESTED),
        ("Share of events found", pl.col(".percent_found") / 100), square=True, diagonal="chance",
    ),
    kinds.LIFT_CURVE: lambda plot: _curve(
        plot, "Lift curve", ("Share of rows tested", _TESTED), ("Lift", pl.col(".lift")),
        ["line at 1: as many events as by chance"], span=Span(low=0, reference=1), x_span=Span(0, 1),
    ),
    # the risk of groups is over the share of all rows
    kinds.RISK_COVERAGE_CURVE: lambda plot: _curve(
        plot, "Risk-coverage curve",
        ("Coverage of all groups together", pl.col(".overall_coverage")) if plot.outer
        else ("Coverage (share of rows decided about)", pl.col(".coverage")),
        ("Risk (share of errors among these)", pl.col(".risk")), span=Span(low=0), x_span=Span(0, 1),
    ),
}  # fmt: skip
"""The picture of each kind of result that has one."""


_MODELS = ("Model 1", "Model 2")
_PAPER = {"column": "88 mm", "two columns": "180 mm"}
"""The widths of journals."""
_PIXELS_OF_MM = 96 / 25.4


@refuse_unknown_settings
def autoplot(
    result: Any,
    *,
    beside: Any = None,
    kind: Form | None = None,
    at: float | None = None,
    models: Sequence[str] | None = None,
    title: str | None = None,
    width: int | str | None = None,
) -> TopLevelMixin:
    """The picture of a result, chosen by its kind.

    Values of groups are dots with their intervals around the value of all rows, a grid where two features are crossed,
    and lines over thresholds; disparities are dots with their limits; outer groups, such as folds, are dots with their
    intervals, or strips without; monitors and comparisons of periods run over time; curves, confusion matrices,
    models, pairs, strata, subgroups, and tables that compare groups with a reference have pictures of their own.

    Args:
        result: The result of a metric, `by_group`, a test, a gate, a curve, `summarize` …: a tidy frame of any kind.
        beside: The result of `disparity_test` for the same metrics: the range that is expected if groups are equal is
            drawn behind each disparity.
        kind: `"dots"` or `"heat map"`, where values of crossed groups can be both; where left out, dots if they have
            intervals. `"frontier"` draws the models of `compare_models` by the first metric of all rows and by each
            disparity, in place of their changes.
        at: The threshold, or other cut, that is marked where values are lines over a list of them.
        models: The names of the two models of `compare_models` or `compare_resamples`, `("today", "challenger")`; where
            left out, those of the columns that were compared, if the result has them.
        title: A title in place of one that says what is drawn.
        width: The width of the whole picture with labels: pixels (640 where left out); or for print, with letters of
            7 to 9 points, `"column"` (88 mm), `"two columns"` (180 mm), or a length such as `"120 mm"`. An SVG has this
            width, and so has `chart.save("figure.pdf", scale_factor=0.75)`.

    Returns:
        An altair chart.

    Raises:
        ArgumentError: For a frame without rows, or whose columns are those of no result; and without altair.

    >>> from tidyfair import demographic_parity
    >>> from tidyfair.datasets import lending
    >>> groups = demographic_parity("race").by_group(lending(), estimate="approved", pos_label="yes")
    >>> groups.pipe(autoplot).to_dict()["title"]["text"]
    'Selection rate by race is 0.430 for Black and 0.582 for Asian'
    """
    if title is not None:
        string("title", title)
    pixels = _pixels_of(width)
    picture = picture_of(result, beside=beside, kind=kind, at=at, models=models)
    return picture.finished(title, pixels, is_printed=isinstance(width, str))


def picture_of(
    result: Any, *, units: Units = NO_UNITS, beside: Any = None, kind: Form | None = None, at: float | None = None,
    models: Sequence[str] | None = None,
) -> Picture:  # fmt: skip
    """What `autoplot` draws, without a title of its own; metrics with a unit are written in it."""
    frame = open_frame(result).to_polars()
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: the result has no rows."
        raise ArgumentError(msg)
    if kind is not None:
        one_of("kind", kind, ["dots", "heat map", "frontier"])
    kind_of_result = kind_of(frame)
    draw = PICTURES.get(kind_of_result) if kind_of_result else None
    if kind_of_result is None or draw is None:
        msg = (
            "autoplot() draws results of tidyfair: values, groups, tests, gates, pairs, models, means, curves; and has "
            f"no picture of the columns {listed(frame.columns)}.{_way_out(frozenset(frame.columns))}"
        )
        raise ArgumentError(msg)
    plot = PlotInput.of(kind_of_result, frame)
    if kind == "heat map" and (draw is not groups_plot or not is_crossed(plot.frame)):
        msg = (
            "A heat map is drawn of `by_group` values of two features that are crossed, as `demographic_parity(a, b)`."
        )
        raise ArgumentError(msg)
    if kind == "frontier" and draw is not models_plot:
        msg = "A frontier is drawn of `compare_models` of a metric and disparities."
        raise ArgumentError(msg)
    if at is not None and plot.cut is None:
        msg = "`at` is a threshold that is marked in values over thresholds, and `result` holds no list of them."
        raise ArgumentError(msg)
    marked = None if at is None else number("at", at, -math.inf)
    names = _names_of(models, plot.frame)
    plot = replace(plot.with_units(units), form=kind, at=marked, models=names)
    return _with_left_out(draw(plot if beside is None else _with_expected(plot, beside, draw)), plot)


def _pixels_of(width: int | str | None) -> float:
    """The width of a picture in pixels, of which there are 96 in an inch on paper."""
    if not isinstance(width, str):
        return WIDTH if width is None else whole("width", width, LEAST_WIDTH, of="autoplot")
    length = _PAPER.get(width, width).removesuffix("mm").strip()
    if not re.fullmatch(r"\d+(\.\d+)?", length) or float(length) * _PIXELS_OF_MM < LEAST_WIDTH:
        least = math.ceil(LEAST_WIDTH / _PIXELS_OF_MM)
        msg = f'`width` is pixels, "column", "two columns" or a length of at least "{least} mm", not {width!r}.'
        raise ArgumentError(msg)
    return float(length) * _PIXELS_OF_MM


def _way_out(columns: frozenset[str]) -> str:
    """The columns without which a frame would be a result, as a sentence."""
    odd = {kind: kind.odd(columns) for kind in PICTURES if kind.known_by <= columns}
    if not odd:
        return ""
    nearest = min(odd, key=lambda kind: len(odd[kind]))
    return f" Drop {listed(sorted(odd[nearest]))} to draw: {nearest.title.lower()}."


def _names_of(models: object, frame: pl.DataFrame) -> tuple[str, str]:
    """The names of two models, which differ: those given, or those of the columns that were compared."""
    if models is None:
        pairs = frame.select(".model_one", ".model_other").unique()
        one, other = pairs.row(0)
        models = (one, other) if len(pairs) == 1 and None not in (one, other) and one != other else _MODELS
    given = cast("Sequence[object]", models) if isinstance(models, list | tuple) else ()
    names = [name for name in given if isinstance(name, str)]
    if len(given) != 2 or len(set(names)) != 2:
        given_text = in_short(cast("object", models))
        msg = f'`models` are the names of two models, `("today", "challenger")`, not {given_text}.'
        raise ArgumentError(msg)
    one, other = renamed(names, shown)
    return one, other


def _with_expected(plot: PlotInput, beside: Any, draw: Drawing) -> PlotInput:
    """Disparities with the range that is expected if groups are equal, which is drawn behind them."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", *EXPECTED} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if draw is not results_plot:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    if plot.cut or (plot.outer and plot.kind is kinds.METRICS):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    common = [name for name in plot.outer if name in expected.columns]
    keys = [".metric", ".by", *([OUTER] if common else [])]
    ranges = with_outer_text(expected.select(pl.col("^\\..*$"), *common), common).select(*keys, *EXPECTED).unique(keys)
    joined = plot.frame.drop(EXPECTED).join(ranges, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if not joined[EXPECTED[0]].count():
        msg = "`beside` holds none of the disparities of the result."
        raise ArgumentError(msg)
    return replace(plot, frame=joined)
