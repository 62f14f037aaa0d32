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
OUTER, UNIT = ".outer", "\0unit"
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
_SCALES = {kinds.STANDARDIZED: "standardized", kinds.QUANTILES: "ratio"}
"""The scale of kinds of comparisons that have no column of it."""
_CONTEXTS: Mapping[str, str] = {"overall": "all rows", "rest": "all other groups"}
_OTHER_ENDS = {
    ".lower": ".upper", ".upper": ".lower", ".expected_lower": ".expected_upper", ".expected_upper": ".expected_lower"
}  # fmt: skip
"""The other end of an interval, which is drawn if either has values."""
_NAMED = 2
"""The number of metrics or features that a title names."""


@dataclass(frozen=True)
class PlotInput:
    """A result and the options of its plot."""

    kind: ResultKind
    frame: pl.DataFrame
    """The result; columns of results that it does not have are null."""
    outer: list[str]
    """Names of the outer keys. Their values are one column of text, so that no name of the user is in the way."""
    period: str
    """The name of the key that is a period, which is `.period` in the frame; empty where there is none."""
    cuts: list[str]
    """The columns of cuts and points that the result has."""
    expected: pl.DataFrame | None = None
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
        return cls(kind, completed, outer, period, [name for name in CUTS if name not in lacking])

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

    def metric(self) -> pl.Expr:
        """The title of the metric of a row, with its time or other cut, unless values are drawn over these."""
        is_over_cuts = self.kind in _OVER_CUTS and self.cut is not None
        if is_over_cuts or not self.cuts:
            return pl.col(".metric").replace_strict(self.titles, default="", return_dtype=pl.String)

        return pl.struct(".metric", *self.cuts).map_elements(
            lambda row: at_cut(self.titles.get(row[".metric"], ""), row), return_dtype=pl.String
        )

    def compared(self) -> pl.Expr:
        """The title of a metric, and the feature by which it is compared."""
        return self.metric() + by_text()

    def label(self) -> pl.Expr:
        """The same, with the outer group."""
        return self.with_outer(self.compared())

    def with_outer(self, text: pl.Expr) -> pl.Expr:
        """A text with the outer group, if there is one."""
        return pl.format("{}, {}", text, OUTER) if self.outer else text

    def panel(self) -> pl.Expr:
        """The metric of a value of a group, its label, and the feature."""
        return self.metric() + level_text() + by_text()

    def text(self, template: str, frame: pl.DataFrame) -> pl.Expr:
        """A text of each row, such as `{pair} ({.pairs})`: braces have columns, or the words of a row."""
        words: dict[str, Callable[[], pl.Expr]] = {
            "metric": self.metric, "panel": self.panel, "label": self.label, "pair": pair_text,
            "outer": lambda: pl.col(OUTER) if self.outer else pl.lit("all rows"),
            "label or difference": lambda: pl.when(pl.col(".metric").is_null()).then(pl.lit("Difference")).otherwise(
                self.label()
            ),
        }  # fmt: skip
        parts: list[pl.Expr] = []
        for name in re.findall(r"{(.+?)}", template):
            if name in words:
                parts.append(words[name]())
            elif frame.schema[name].is_integer() or frame.schema[name] == pl.String:
                parts.append(pl.col(name))
            else:
                parts.append(pl.lit(texts_of(frame.select(name))))
        return pl.format(re.sub(r"{.+?}", "{}", template), *parts)

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
        keys = frame.select(".metric", ".by").rows()
        beyond = frame.filter(pl.col(".estimate").is_finite() & (pl.col(".estimate").abs() > 1))
        large_kinds = {_panel_of(*key) for key in beyond.select(".metric", ".by").unique().rows()}
        panels: dict[tuple[str, str | None], str] = {}
        spans: dict[str, Span] = {}
        for key in dict.fromkeys(keys):
            kind = _panel_of(*key)
            span = _OF_DISPARITIES.get(kind) or span_of_metric(key[0])
            alone = kind == "Metrics" and (span.reference is not None or kind in large_kinds)
            panel = self.titles[key[0]] if alone or kind in large_kinds - {"Ratios"} else kind
            panels[key] = panel
            spans[panel] = _joined_span(spans[panel], span) if panel in spans else span
        names = pl.Series("panel", [panels[key] for key in keys], pl.String)
        frame = frame.with_columns(names, span_column([spans[name] for name in names]))
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


def listed_titles(titles: Iterable[str]) -> str:
    """The distinct titles of metrics, as one: the first starts with a capital letter."""
    first, *others = dict.fromkeys(titles)
    return listed_names([first, *map(in_prose, others)])


def by_words(by: str) -> str:
    """The features by which something is compared, in words."""
    return by.replace(":", " and ")


def by_text() -> pl.Expr:
    """The feature that a value is compared by, nothing for all rows."""
    by = pl.col(".by").cast(pl.String).str.replace_all(":", " and ", literal=True)
    return pl.format(" by {}", by).fill_null("")


def level_text() -> pl.Expr:
    """The label that a value is about, nothing where there is none."""
    return pl.format(" of {}", pl.col(".level").cast(pl.String)).fill_null("")


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


def with_group_text(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame whose `.group` is as people write it: the parts of a crossing with commas between them."""
    text = pl.col(".group")
    for by, features in crossed_features(frame).items():
        parts = [texts_of(frame.select(name)) for name in features]
        joined = pl.select(pl.concat_str(parts, separator=", ")).to_series()
        text = pl.when(pl.col(".by") == by).then(joined).otherwise(text)
    return frame.with_columns(text.alias(".group"))


def pair_text() -> pl.Expr:
    """The two groups of a comparison."""
    is_ratio = pl.col(".scale").cast(pl.String).str.ends_with("ratio").fill_null(value=False)
    sign = pl.when(is_ratio).then(pl.lit("/")).otherwise(pl.lit("\N{MINUS SIGN}"))
    return pl.format("{} {} {}", crossed_text(".group"), sign, crossed_text(".other"))


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
    """The `scale` that panels have in common whose axis is the same, because their metric and its scale are."""
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


def _joined_span(one: Span, other: Span) -> Span:
    """The known ends of values of both kinds."""
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return Span(low, high, one.reference if one.reference == other.reference else None)


Drawing: TypeAlias = Callable[[PlotInput], Picture]
_SURE, _LEVEL = 0.05, 0.95
"""Below this p-value a sentence calls a difference larger than chance explains; the level of intervals drawn here."""
_NO_DIFFERENCE = Span(reference=0)
_OF_NUMBERS = {kinds.STANDARDIZED: "Standardized differences in means", kinds.QUANTILES: "Ratios of quantiles"}
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


def _drawn(
    draw: Callable[..., Any], *titles: str, notes: Sequence[str] = (), marks: Sequence[str] = (".lower", ".upper"),
    rows: pl.Expr | None = None, nothing: str = "", scaled: str = "", columns: Mapping[str, Any], **settings: Any,
) -> Drawing:  # fmt: skip
    """The drawing of results that have a mark for each of their rows.

    Args:
        draw: The shape of marks.
        titles: The title, and shorter ones. They and the notes name in braces what `_WORDS` has.
        notes: Sentences below the title.
        marks: The columns of marks that are drawn where a result has them.
        rows: The rows that are drawn, if not all are.
        nothing: What is wrong where there are none.
        scaled: The values whose scales make panels.
        columns: The columns of the table of the picture: those of results, expressions, texts of `PlotInput.text`, or
            functions of the input and the rows.
        settings: Other fields of the picture.
    """

    def picture(plot: PlotInput) -> Picture:
        frame = plot.frame if rows is None else plot.frame.filter(rows)
        if nothing and frame.is_empty():
            msg = f"autoplot() has nothing to draw: {nothing}."
            raise ArgumentError(msg)
        if scaled:
            frame = plot.with_scales(frame.with_columns(pl.col(scaled).alias(".estimate")))
        table = table_of(frame, *marks, **{name: _column(value, plot, frame) for name, value in columns.items()})

        def worded(templates: Sequence[str]) -> list[str]:
            return [
                text.format(
                    **{name: words(plot, frame, table) for name, words in _WORDS.items() if f"{{{name}}}" in text}
                )
                for text in templates
            ]

        return Picture(draw, table, worded(titles), worded(notes), **settings)

    return picture


def _column(value: Any, plot: PlotInput, frame: pl.DataFrame) -> Any:
    """A column of the table of a picture."""
    if isinstance(value, str) and "{" in value:
        return plot.text(value, frame)
    return value(plot, frame) if callable(value) else value


_WORDS: Mapping[str, Callable[[PlotInput, pl.DataFrame, pl.DataFrame], object]] = {
    "metrics": lambda _plot, _frame, table: listed_titles(table["panel"]),
    "prose": lambda _plot, _frame, table: listed_names(map(in_prose, table["panel"])),
    "labels": lambda plot, frame, _table: listed_names(map(in_prose, frame.select(plot.label()).to_series())),
    "limits": lambda plot, _frame, _table: plot.limits,
    "one": lambda plot, _frame, _table: plot.models[0],
    "other": lambda plot, _frame, _table: plot.models[1],
    "resamples": lambda _plot, frame, _table: frame[".n"][0],
    "power": lambda _plot, frame, _table: f"{frame['.power'].fill_null(0.8)[0] * 100:g}",
    "sure": lambda _plot, frame, _table: _number_of_sure(frame) or "none",
    "number": lambda _plot, frame, _table: len(frame),
    "changes": lambda _plot, frame, _table: "change" if len(frame) == 1 else "changes",
    "gray": lambda _plot, _frame, table: "gray: p of 0.05 or more" if "expected_lower" in table.columns else "",
}
"""What titles and notes name in braces, of the result, the rows that are drawn, or the table of the picture."""


def _number_of_sure(frame: pl.DataFrame) -> int:
    """The number of small p-values, adjusted if they are."""
    return frame.filter(pl.coalesce(".p_adjusted", ".p_value") < _SURE).height


# Values of metrics and groups


def results_plot(plot: PlotInput) -> Picture:
    """Metrics, disparities and verdicts, with the groups that these leave out."""
    several = plot.frame[".by"].drop_nulls().n_unique() > 1
    entries: list[dict[str, Any]] = []
    for by, left_out in plot.frame.select(".by", ".left_out").rows():
        for entry in left_out or ():
            name = f"{by_words(by)} {entry['group']}" if several else entry["group"]
            entries.append({**entry, "group": name})
    return _with_note(_results_picture(plot), "left out", entries)


def _with_note(picture: Picture, start: str, entries: Sequence[Mapping[str, Any]]) -> Picture:
    """A picture with a note on the groups that are left out, if there are any."""
    left_out = left_out_in_words(entries, metric=in_prose)
    return replace(picture, notes=[*picture.notes, f"{start}: {left_out}"]) if left_out else picture


def _results_picture(plot: PlotInput) -> Picture:
    """Metrics and disparities: one value each, or one for each threshold or outer group."""
    cut, judged = plot.cut, plot.kind is not kinds.METRICS
    at_points = judged and cut in POINTS
    frame = plot.frame.with_columns(what=plot.compared())
    if plot.expected is not None and not at_points and (cut or (plot.outer and not judged)):
        msg = "`beside` is drawn behind single disparities, not behind lines and strips."
        raise ArgumentError(msg)
    if cut and not at_points:
        # a panel for all metrics of a scale, and a color for each; with outer groups, these have the colors
        values = plot.with_scales(_with_cuts(frame, cut)).with_columns(series="what")
        if plot.outer:
            values = values.with_columns(panel="what", series=OUTER)
        return _over_cuts(plot, frame, cut, values, listed_titles(values["what"]))
    frame = plot.with_scales(frame)
    if plot.outer and not judged:
        return _over_outer(plot, frame)
    marks = (".estimate", ".limit", ".verdict", ".lower", ".upper", ".expected_lower", ".expected_upper")
    if at_points:
        # a panel for each metric, as lines have no room for limits
        names = [capitalized(cut_in_words(row).removeprefix("at ")) for row in frame.iter_rows(named=True)]
        points = pl.Series(names, dtype=pl.String)
        rows = plot.with_outer(pl.when(points == "").then("what").otherwise(points))
        table = table_of(frame, *marks, panel="what", what=rows, why=reason())
        alone = frame["what"][0] if frame["what"].n_unique() == 1 else ""
        return Picture(dots, table, _verdicts_in_words(frame), [alone, f"lines: {plot.limits}"])
    if plot.expected is not None:
        frame = _with_expected(frame, plot.expected)
    table = table_of(frame, *marks, what=plot.label(), why=reason())
    verdicts = _verdicts_in_words(frame) if judged else []
    return Picture(dots, table, [*verdicts, listed_titles(frame["what"])], _notes_on_marks(plot, table))


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
        return [f"{frame['what'][0]} {one}"]
    parts: list[str] = []
    for verdict, (one, several) in _VERBS.items():
        many = number.get(verdict, 0)
        if many:
            parts.append(f"{many} {one if many == 1 else several}")
    both = " and ".join(parts) if len(parts) < 3 else ", ".join(parts)
    return [f"Of {len(frame)} limits, {both}", ", ".join(parts)]


def _with_expected(frame: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Disparities with the range that is expected if groups are equal."""
    ends = [".expected_lower", ".expected_upper"]
    keys = [name for name in (".metric", ".by", OUTER) if name in expected.columns]
    ranges = expected.select(*keys, *ends).unique(keys)
    joined = frame.drop(ends).join(ranges, on=keys, how="left", nulls_equal=True, maintain_order="left")
    if joined[".expected_lower"].null_count() == len(joined):
        msg = "`beside` holds none of the disparities of the result."
        raise ArgumentError(msg)
    return joined


def groups_plot(plot: PlotInput) -> Picture:
    """Values of groups, with those that are drawn and not compared."""
    is_small = pl.col(".status").cast(pl.String).is_in([Status.BELOW_MIN_N.value, Status.BELOW_MIN_SHARE.value])
    small = with_group_text(plot.frame.filter(is_small & pl.col(".estimate").is_not_null()))
    needed = pl.col(".group", ".metric", ".level", ".status", ".denominator")
    entries = small.select(needed.name.map(lambda name: name.removeprefix("."))).to_dicts()
    return _with_note(_groups_picture(plot), "not compared", entries)


def _groups_picture(plot: PlotInput) -> Picture:
    """Values of groups around the value of all, over thresholds, crossed, or in strips of outer groups."""
    frame = plot.frame
    grouped = frame.drop_nulls(".by")
    if grouped.is_empty():
        msg = "autoplot() draws the values of groups, and these are of all rows: compare groups, or draw the result."
        raise ArgumentError(msg)
    # a single feature is in the title
    panel = plot.metric() + level_text() if grouped[".by"].n_unique() == 1 else plot.panel()
    grouped = with_spans(grouped.with_columns(panel=panel))
    named = with_group_text(grouped)
    if plot.cut is not None:
        return groups_over_cuts(plot, named, plot.cut)
    if plot.outer:
        return _over_outer(plot, named.with_columns(what=".group"))
    titles = _titles_of_groups(plot, named)
    if is_crossed(grouped) and plot.form != "dots":
        return _crossing(plot, grouped, titles)
    labels, counted = plot.with_counts(named, pl.col(".group"))
    if frame[".by"].has_nulls():
        keys = [".metric", ".level"]
        overall = frame.filter(pl.col(".by").is_null()).select(*keys, pl.col(".estimate").alias(".limit"))
        named = named.drop(".limit").join(overall, on=keys, how="left", nulls_equal=True, maintain_order="left")
    table = table_of(named, ".estimate", ".lower", ".upper", ".limit", ".raw", what=labels, why=reason())
    return Picture(dots, table, titles, [counted, *_notes_on_marks(plot, table)], limit="all rows")


def is_crossed(frame: pl.DataFrame) -> bool:
    """True for the groups of two features crossed, and of nothing else."""
    by = frame[".by"].drop_nulls().unique().to_list()
    return len(by) == 1 and len(crossed_features(frame).get(by[0], [])) == 2


def _titles_of_groups(plot: PlotInput, grouped: pl.DataFrame) -> list[str]:
    """The range of a single metric as a sentence, or the names of several."""
    by = listed_names(map(by_words, grouped[".by"]))
    title = f"{listed_titles(grouped.select(plot.metric()).to_series())} by {by}"
    finite = grouped.filter(pl.col(".estimate").is_finite()).sort(".estimate", maintain_order=True)
    if grouped["panel"].n_unique() > 1 or len(finite) < 2 or finite[".estimate"].n_unique() == 1:
        return [title]
    low, high = (number_text(finite[".estimate"][row]) for row in (0, -1))
    first, last = finite[".group"][0], finite[".group"][-1]
    return [f"{title} is {low} for {first} and {high} for {last}", f"{title} ranges from {low} to {high}", title]


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


def _over_outer(plot: PlotInput, frame: pl.DataFrame) -> Picture:
    """Outer groups, such as folds: dots with their intervals where there are any, else strips."""
    of_groups = frame[".group"].count() > 0
    outer = " and ".join(plot.outer)
    names = frame["panel"] if of_groups else frame["what"]
    titles = [f"{listed_titles(names)} in each {outer}", f"Values in each {outer}"]
    if has_intervals(frame):
        panel = pl.format("{}: {}", "panel", "what") if of_groups else pl.col("what")
        table = table_of(frame, ".estimate", ".lower", ".upper", panel=panel, what=OUTER, why=reason())
        return Picture(dots, table, titles, [f"lines: {plot.limits}"])
    # chance adds to every unsigned disparity, so that a mean of disparities is biased
    has_mean = pl.lit(value=True) if of_groups else pl.col(".by").is_null()
    average = pl.col(".estimate").mean().over("panel", "what")
    mean = pl.when(has_mean & average.is_finite()).then(average)
    table = table_of(frame, ".estimate", what="what", outer=OUTER, mean=mean)
    notes = [f"ticks: one value per {outer}"]
    if table["mean"].count():
        without = " (none for disparities: chance adds to each)" if table["mean"].has_nulls() else ""
        notes.append(f"dot: their mean{without}")
    return Picture(dots, table, titles, notes)


def confusion_plot(plot: PlotInput) -> Picture:
    """Counts of labels against predictions, with their shares of each true label."""
    frame = plot.frame
    count = pl.coalesce(".weight", ".n").cast(pl.Float64)
    row, column = (pl.col(name).cast(pl.String).fill_null("null") for name in (".truth", ".predicted"))
    panel = pl.col(OUTER) if plot.outer else pl.lit("")
    table = frame.select(panel=panel, row=row, column=column, rows=count)
    share = pl.col("rows") / pl.col("rows").sum().over("panel", "row")
    table = table.with_columns(share.fill_nan(None).alias("estimate"))
    texts = [f"{rows:,.0f}" if rows == int(rows) else f"{rows:,.1f}" for rows in table["rows"]]
    shares = ["" if value is None else f"{value * 100:.1f}%" for value in table["estimate"]]
    table = table.with_columns(pl.Series("text", texts), pl.Series("below", shares))
    right = float(table.filter(pl.col("row") == pl.col("column"))["rows"].sum())
    total = float(table["rows"].sum())
    titles = [f"{right / total * 100:.1f}% of {total:,.0f} predictions are right"] if total else []
    titles.append("Confusion matrix")
    if plot.outer:
        titles = [f"Confusion matrices by {' and '.join(plot.outer)}", "Confusion matrices"]
    notes = ["shares are of all rows with the same truth"]
    return Picture(heat_map, table, titles, notes, names=("truth", "predicted"))


# Lines


def risk_coverage_plot(plot: PlotInput) -> Picture:
    """The risk of the rows that a model decides about over their share; of groups, over that of all rows."""
    share = ".overall_coverage" if plot.outer else ".coverage"
    table = _points(plot, pl.col(share), pl.col(".risk"))
    x = "Coverage of all groups together" if plot.outer else "Coverage (share of rows decided about)"
    titles, span = _titles(plot, "Risk-coverage curve"), Span(low=0)
    y = "Risk (share of errors among these)"
    return Picture(lines, table, titles, (), span, x=[x], y=[y, "Risk"], x_span=Span(0, 1))


def feature_plot(plot: PlotInput) -> Picture:
    """A metric over a feature, with its simultaneous band."""
    values = plot.frame
    series = pl.col(OUTER) if plot.outer else pl.lit("all rows")
    table = values.select(
        panel=plot.metric(), series=series, x=pl.col(".at").cast(pl.Float64), estimate=".estimate", lower=".lower",
        upper=".upper",
    ).drop_nulls("estimate")  # fmt: skip
    feature, metric = values[".by"][0], table["panel"][0]
    name = f"{metric} over {feature}"
    titles = [f"{name} by {' and '.join(plot.outer)}", name] if plot.outer else [name]
    notes = ["bands hold the whole curve"]
    return Picture(lines, table.with_columns(panel=pl.lit("")), titles, notes, x=[feature], y=[metric])


def calibration_plot(plot: PlotInput) -> Picture:
    """Observed rate of events over mean score, with intervals where rows count alike; of isotonic bins, as steps."""
    is_isotonic = plot.frame[".lowest_score"].count() > 0
    if is_isotonic:
        ends = pl.concat_list(".lowest_score", ".highest_score").alias(".mean_score")
        plot = replace(plot, frame=plot.frame.with_columns(ends).explode(".mean_score"))
    limits = {} if plot.frame[".lower"].count() == 0 else {"lower": ".lower", "upper": ".upper"}
    table = _points(plot, pl.col(".mean_score"), pl.col(".event_rate"), rows=".n", **limits)
    notes: list[str] = []
    if is_isotonic:
        notes.append("steps: shares of events that rise with the score (isotonic regression)")
        share = f"{kinds.level_of(plot.frame) * 100:g}%"
        notes += [f"bands: where {share} of these are if scores are calibrated, each by itself"] if limits else []
    elif limits:
        notes.append(f"lines: {plot.limits} of each bin (Wilson)")
    if table["series"].n_unique() > _MOST_IN_ONE and not is_isotonic:
        # intervals of many curves would hide each other
        panel = pl.when(pl.col("panel") == "").then("series").otherwise(pl.format("{}, {}", "series", "panel"))
        table = table.with_columns(panel=panel, series=pl.lit("event rate"))
    return Picture(
        lines, table, _titles(plot, "Calibration curve"), notes, x=["Score" if is_isotonic else "Mean score"],
        y=["Event rate"], square=True, diagonal="perfect calibration", points=not is_isotonic,
    )  # fmt: skip


def cumulative_plot(plot: PlotInput) -> Picture:
    """Events minus scores, cumulated over the rows by their score, and what chance gives."""
    from tidyfair.intervals import z_value  # noqa: PLC0415 - only here

    table = _points(plot, pl.col(".share"), pl.col(".cumulative_error"), error=".std_error")
    reach = z_value(_LEVEL) * pl.col("error").cast(pl.Float64)
    table = table.with_columns(lower=-reach, upper=reach).drop("error")
    notes = ["lines rise where risks are underestimated, and fall where they are overestimated"]
    if table["series"].n_unique() <= MOST_BANDS:
        notes.append("bands hold 95% of calibrated scores at each point")
    titles, span = _titles(plot, "Cumulative calibration curve"), Span(reference=0)
    x, y = "Share of rows, from the lowest score", "Events minus scores, per row"
    return Picture(lines, table, titles, notes, span, x=[x], y=[y], x_span=Span(0, 1))


def _titles(plot: PlotInput, name: str) -> list[str]:
    """The name of a curve, or of curves of outer groups."""
    return [f"{name}s by {' and '.join(plot.outer)}", f"{name}s"] if plot.outer else [name]


def _points(plot: PlotInput, x: pl.Expr, y: pl.Expr, **columns: str) -> pl.DataFrame:
    """The points of each curve, as many as can be seen: the first one of each cell of a grid."""
    table = plot.frame.select(
        panel=pl.col(".level").cast(pl.String).fill_null(""),
        series=pl.col(OUTER) if plot.outer else pl.lit("all rows"),
        x=x,
        estimate=y,
        **{"unit": pl.col(UNIT)} if UNIT in plot.frame.columns else {},
        **columns,
    ).filter(pl.all_horizontal(pl.col("x", "estimate").is_finite()))
    pixels = _PIXELS
    while True:
        ends = pl.col("x", "estimate")
        cell = (ends / (ends.max() - ends.min()) * pixels).round()
        keys = [pl.col("panel"), pl.col("series"), cell]
        points = table.filter(pl.struct(keys).is_first_distinct())
        if len(points) <= MOST_POINTS or pixels <= _FEWEST_PIXELS:
            return points
        pixels //= 2


def groups_over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str) -> Picture:
    """A panel for each metric and feature, and a color for each group."""
    values = _with_treat_all(_with_cuts(frame, cut), cut, [OUTER] if plot.outer else [])
    series = plot.with_outer(pl.col(".group"))
    metrics = listed_titles(values.select(plot.metric()).to_series())
    name = f"{metrics} by {listed_names(map(by_words, values['.by']))}"
    return _over_cuts(plot, frame, cut, values.with_columns(series=series), name)


def _with_cuts(frame: pl.DataFrame, cut: str) -> pl.DataFrame:
    """The values that depend on the cut."""
    values = frame.filter(pl.col(cut).is_not_null())
    if values.is_empty():
        msg = f"autoplot() draws values over the {CUT_TITLES[cut]}, and no metric of the result has any."
        raise ArgumentError(msg)
    return values


def _over_cuts(plot: PlotInput, frame: pl.DataFrame, cut: str, values: pl.DataFrame, name: str) -> Picture:
    """Lines of values that have a `panel` and a `series`."""
    words = CUT_TITLES[cut]
    # no more cuts than a chart can hold points
    step = math.ceil(len(values) / MOST_POINTS)
    kept = values[cut].unique().sort().gather_every(step)
    values = values.filter(pl.col(cut).is_in(kept.implode()))
    marks = ("series", ".lower", ".upper", *([".dashed"] if ".dashed" in values.columns else []))
    table = table_of(values, *marks, x=pl.col(cut).cast(pl.Float64), estimate=".estimate")
    # different groups can have the same text
    table = unique_names(table, "series", "panel", "x")
    notes: list[str] = []
    others = frame.filter(pl.col(cut).is_null()).select(plot.metric()).to_series()
    without = others.unique(maintain_order=True)
    if len(without):
        verb = "does" if len(without) == 1 else "do"
        notes.append(f"not drawn: {', '.join(without)}, which {verb} not depend on the {words}")
    are_few = cut in POINTS and table["x"].n_unique() <= _FEW_POINTS
    if "lower" in table.columns:
        notes.append(_note_on_intervals(plot, table, "vertical lines" if are_few else "bands"))
    if "dashed" in table.columns:
        notes.append("dotted: treat all; line at 0: treat none")
    titles = [f"{name} over the {words}", name]
    return Picture(lines, table, titles, notes, x=[words.capitalize()], at=plot.at, points=are_few)


def _note_on_intervals(plot: PlotInput, table: pl.DataFrame, shape: str) -> str:
    """The marks of intervals; none where there are many lines."""
    lines_of_panels = table.group_by("panel").agg(pl.col("series").n_unique())["series"]
    many = f"more than {MOST_BANDS} lines are drawn without"
    if (lines_of_panels > MOST_BANDS).all():
        return f"{many} their {plot.limits}"
    return f"{shape}: {plot.limits}" + (f"; {many}" if (lines_of_panels > MOST_BANDS).any() else "")


def _with_treat_all(values: pl.DataFrame, cut: str, outer: list[str]) -> pl.DataFrame:
    """Net benefit with that of treating all beside it, in place of a panel of its own.

    Net benefit depends on the costs of errors alone, so that its lines of reference are those of the same group.
    """
    if not {_TREAT_ALL, "net_benefit"} <= set(values[".metric"]):
        return values
    keys = [".by", ".group", ".level", cut, *outer]
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
    if plot.kind in _OF_NUMBERS:
        metric, name = pl.lit(plot.scale), _OF_NUMBERS[plot.kind]
        titles = [f"{name}, compared with a reference", name]
    else:
        metric, name = plot.metric(), listed_titles(plot.frame.select(plot.metric()).to_series())
        scale = plot.scale.lower() or "differences and ratios"
        titles = [f"{name} of each group: {scale} to a reference", f"{name}, compared with a reference"]
    equality = None if not plot.scale else 1.0 if plot.is_ratio else 0.0
    panel = metric + by_text() + level_text()
    frame = with_group_text(plot.frame).with_columns(panel.alias("panel"), scale_of_metric())
    labels, counted = plot.with_counts(frame, plot.with_outer(pl.col(".group")))
    is_reference = (plot.frame[".group"] == plot.frame[".reference"]).fill_null(value=False)
    why = pl.when(is_reference).then(pl.lit("reference")).otherwise(reason(".disparity"))
    estimate = pl.when(~is_reference).then(".disparity")
    table = table_of(frame, ".lower", ".upper", what=labels, estimate=estimate, why=why)
    if plot.kind is kinds.FOUR_FIFTHS:
        table = table.with_columns(limit=0.8)
    span = Span(low=0 if equality else None, reference=equality)
    x = f"{plot.scale} {'to' if plot.is_ratio else 'from'} {plot.reference}" if plot.reference else plot.scale
    return Picture(dots, table, titles, [counted, f"lines: {plot.limits}"], span, limit="four fifths,", x=[x])


def tests_plot(plot: PlotInput) -> Picture:
    """Disparities beside the range that is expected if groups are equal."""
    frame = plot.with_scales(plot.frame)
    p_value = as_p_value(frame[".p_value"]).fill_null("unknown")
    p_value = pl.when(p_value.str.starts_with("0")).then("= " + p_value).otherwise(p_value)
    what = pl.format("{} (p {})", plot.label(), p_value)
    table = table_of(frame, ".estimate", ".expected_lower", ".expected_upper", what=what)
    name = listed_titles(frame.select(plot.compared()).to_series())
    sure = _number_of_sure(frame)
    if len(frame) == 1:
        titles = [f"{name} is {'larger' if sure else 'no larger'} than chance explains", name]
    else:
        many = f"{sure or 'None'} of {len(frame)} disparities {'is' if sure == 1 else 'are'}"
        titles = [f"{many} larger than chance explains", f"{many} beyond chance", name]
    return Picture(dots, table, titles, ["gray: p of 0.05 or more"])


def looks_plot(plot: PlotInput) -> Picture:
    """The verdicts of monitors, period by period."""
    frame = plot.frame
    lowest = pl.min_horizontal(pl.col(".estimate").min(), pl.col(".lower").min()).over(plot.label())
    span = pl.struct(low=pl.when(lowest >= 0).then(0.0), high=None, reference=None, is_whole=False).cast(SPAN)
    what = texts_of(frame.select(".period"))
    marks = (".estimate", ".lower", ".upper", ".limit", ".verdict")
    table = table_of(frame, *marks, panel=plot.label(), what=what, span=span)
    name = listed_titles(frame.select(plot.compared()).to_series())
    titles = [f"{name} after each period", f"{name} so far"]
    if table["panel"].n_unique() == 1:
        last = frame[".verdict"][-1]
        words = {"within": "keeps its limit", "above the limit": "is above its limit", "below the limit": "is below it"}
        titles = [f"{name} {words.get(last, f'is {last}')} after {len(frame)} looks", f"{name}: {last}"]
    since = texts_of(frame.select(".since")).to_list()
    is_of_all = len(set(since)) == 1
    if not is_of_all:
        titles = [f"{title}, of data since {since[-1]}" for title in titles]
    x = f"{'all' if is_of_all else 'recent'} data up to and including the period"
    return Picture(over_time, table, titles, [f"lines: {plot.limits}, valid at every look"], x=[x])


def pairs_plot(plot: PlotInput) -> Picture:
    """Comparisons of two groups, with intervals: overlapping intervals of groups are no test."""
    frame = plot.frame
    panel = plot.panel()
    if not plot.scale:
        panel = pl.format("{}, {}", panel, pl.col(".scale").str.replace_all("_", " ", literal=True))
    above, below = open_ends(frame)
    table = table_of(
        frame,
        *(".lower", ".upper"),
        panel=panel,
        scale=scale_of_metric(),
        span=span_column(
            _NO_DIFFERENCE if one == "difference" else Span(low=0, reference=1) for one in frame[".scale"]
        ),
        what=pair_text(),
        estimate=".disparity",
        above=pl.Series(above),
        below=pl.Series(below),
    )
    kind = {"Ratio": "Ratios of", "Odds ratio": "Odds ratios of", "": "Comparisons of"}.get(
        plot.scale, "Differences in"
    )
    name = listed_names(map(in_prose, frame.select(plot.panel()).to_series()))
    titles = [f"{kind} {name}, pair by pair", f"{kind} {name}"]
    return Picture(dots, table, titles, [f"lines: {plot.limits}"], x=[plot.scale])


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
    table = table_of(first, panel=plot.metric(), what=what, estimate=".difference")
    name, prose = listed_titles(table["panel"]), listed_names(map(in_prose, table["panel"]))
    if plot.kind is kinds.CERTIFICATE:
        table = table.with_columns(upper=first[".epsilon"], lower=0.0)
        epsilon = f"{first['.epsilon'][0]:.3f}"
        titles = [f"No subgroup is more than {epsilon} from the others in {prose}", f"{name}: at most {epsilon} apart"]
        notes = ["dot: the subgroup that differs most", "line: how far any subgroup may differ"]
    else:
        titles = [f"Subgroups that differ most from the rest in {prose}", f"{name} of subgroups"]
        notes = ["subgroup minus everyone else", "n in parentheses"]
        if len(frame) > len(first):
            notes.append(f"{len(first)} of {len(frame)}")
    return Picture(dots, table, titles, notes, _NO_DIFFERENCE, x=["Difference"])


def halves_plot(plot: PlotInput) -> Picture:
    """The two halves that a linear threshold makes, around the rate of all."""
    frame = with_spans(plot.frame).with_columns(plot.with_outer(plot.metric()).alias("panel"))
    conditions = [
        _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.3g}", text or "no condition")
        for text in frame[".subgroup"]
    ]
    sides = [text.rpartition(") ")[0::2] for text in conditions]
    divided = {left for left, _ in sides}
    notes = ["n in parentheses"]
    if len(divided) == 1 and "" not in divided:
        # both halves have the same long left side
        notes.insert(0, f"by {divided.pop()})")
        conditions = [right for _, right in sides]
    what = pl.format("{} ({})", pl.Series(conditions, dtype=pl.String), pl.col(".denominator"))
    table = table_of(frame, ".estimate", what=what, limit=".overall")
    name = listed_titles(table["panel"])
    titles = [f"{name} on both sides of the condition that divides it most", name]
    return Picture(dots, table, titles, notes, limit="all rows")


def models_plot(plot: PlotInput) -> Picture:
    """Two models side by side, and the change from one to the other; of several models the changes alone."""
    if plot.form == "frontier":
        return _frontier_of_metrics(plot)
    frame = plot.with_scales(plot.frame.with_columns(pl.col(".one").alias(".estimate")))
    one, other = plot.models
    sure = frame.filter((pl.col(".lower") > 0) | (pl.col(".upper") < 0)).height
    finding = f"{sure or 'None'} of {len(frame)} values {'is' if sure == 1 else 'are'} clearly different"
    if frame[".model_other"].n_unique() > 1:
        marks = (".lower", ".upper", ".verdict")
        table = with_points(table_of(plot.frame, *marks, panel=plot.label(), what=".model_other", estimate=".change"))
        margin = plot.frame[".margin"].cast(pl.Float64)
        margin = margin.set(margin == 0, None)
        if margin.count():
            table = table.with_columns(expected_lower=-margin, expected_upper=margin)
        notes = [f"lines: {plot.limits}", "gray: within the margin" if "expected_lower" in table.columns else ""]
        title = f"{finding} from {frame['.model_one'][0]}"
        return Picture(
            dots, table, [title, finding], notes, _NO_DIFFERENCE, x=[f"Change from {frame['.model_one'][0]}"]
        )
    columns = {"what": plot.label(), "one": ".one", "other": ".other", "estimate": ".change"}
    table = with_points(table_of(frame, ".lower", ".upper", **columns))
    # names of columns need not start with a capital letter
    titles = [f"{finding} between {one} and {other}", finding]
    notes = [f"change: {other} minus {one}, with its {plot.limits}"]
    return Picture(side_by_side, table, titles, notes, names=plot.models)


def _frontier_of_metrics(plot: PlotInput) -> Picture:
    """Models by the first metric of all rows and by each disparity, with those that no other is better than in both."""
    frame = plot.frame.with_columns(plot.compared().alias("panel"))
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
        points = pl.concat([base, others]).with_columns(base=pl.int_range(pl.len()) == 0)
        sides = (("x", name), ("estimate", part[".metric"][0]))
        good = (gains(points[column].cast(pl.Float64).to_numpy(), direction_of(metric)) for column, metric in sides)
        parts.append(points.with_columns(front=pl.Series(is_on_frontier(*good))))
    titles = [f"{title_of(name)} and disparities of models", "Performance and disparities"]
    if len(parts) == 1:
        losers = performance.filter(pl.col(".verdict") == "worse")[".model_other"].to_list()
        fairer = disparities.filter(pl.col(".verdict") == "better", ~pl.col(".model_other").is_in(losers))
        if len(fairer):
            verb = "is" if len(fairer) == 1 else "are"
            titles.insert(0, f"{listed_names(fairer['.model_other'])} {verb} less discriminatory")
    return Picture(scatter, pl.concat(parts), titles, x=[title_of(name), short_title(name)])


def direction_of(metric: str) -> str:
    """The good side of a metric or disparity: `maximize`, `minimize`, `zero` or `one`; `neither` where none is good."""
    known, compared = metric_named(metric), comparison_named(metric)
    if known is not None:
        return known.better
    return str(compared.aggregate.direction if compared else "minimize")


def _curve(
    name: str, x: tuple[str, pl.Expr], y: tuple[str, pl.Expr], notes: Sequence[str] = (), **settings: Any
) -> Drawing:
    """The drawing of curves, with the titles of both axes and what they show."""
    titles = {"x": [x[0]], "y": [y[0]]}
    return lambda plot: Picture(lines, _points(plot, x[1], y[1]), _titles(plot, name), notes, **titles, **settings)


def _with_errors(value: str) -> dict[str, pl.Expr]:
    """A value with one standard error to each side."""
    mean, error = pl.col(value), pl.col(".std_error")
    return {"estimate": mean, "lower": mean - error, "upper": mean + error}


def _change_in_words(_plot: PlotInput, frame: pl.DataFrame) -> pl.Expr:
    """The period from which on a value is another, and the group that it is of, if it is of one."""
    period = pl.format("from {} on", texts_of(frame.select(".period")))
    period = pl.when(pl.col(".p_adjusted") < _SURE).then(period).otherwise(pl.lit("not beyond chance"))
    return pl.when(pl.col(".group").is_null()).then(period).otherwise(pl.format("{}, {}", ".group", period))


_TESTED = pl.col(".percent_tested") / 100
_DIFFERENCE: dict[str, Any] = {"span": _NO_DIFFERENCE, "x": ["Difference"]}

PICTURES: Mapping[kinds.ResultKind, Drawing] = {
    kinds.METRICS: results_plot, kinds.VERDICTS: results_plot, kinds.LOOK: results_plot, kinds.GROUPS: groups_plot,
    kinds.SHRUNKEN: groups_plot, kinds.WORST: groups_plot, kinds.GROUPS_OF_LOOKS: groups_plot,
    kinds.CONFUSION: confusion_plot, kinds.COMPARISONS: comparison_plot, kinds.FOUR_FIFTHS: comparison_plot,
    kinds.STANDARDIZED: comparison_plot, kinds.QUANTILES: comparison_plot, kinds.PAIRS: pairs_plot,
    kinds.TESTS: tests_plot, kinds.SUBGROUPS: subgroups_plot, kinds.CERTIFICATE: subgroups_plot,
    kinds.HALVES: halves_plot, kinds.MODELS: models_plot, kinds.LOOKS: looks_plot,
    kinds.CALIBRATION_CURVE: calibration_plot, kinds.CUMULATIVE_CURVE: cumulative_plot,
    kinds.FEATURE_CURVE: feature_plot,
    kinds.BOUNDS: _drawn(
        dots, "{metrics} of groups known by probability", "{metrics}",
        notes=["gray: all rates that the data allow; lines: their {limits}; in parentheses: expected rows"],
        columns={
            "panel": "{metric}", "what": pl.format("{} ({})", ".group", pl.col(".n_expected").round(0).cast(pl.Int64)),
            "estimate": ".estimate", "expected_lower": ".lower_bound", "expected_upper": ".upper_bound",
        },
        span=Span(0, 1),
    ),
    kinds.MISSING_TRUTH: _drawn(
        dots, "Share without a truth: estimated positives minus estimated negatives", "Missing truths by estimate",
        notes=["n in parentheses", "lines: {limits}"], columns={"what": "{outer} ({.n})", "estimate": ".difference"},
        span=Span(-1, 1, 0), x=["Difference"],
    ),
    kinds.PAIRED: _drawn(
        dots, "Differences in {prose} within pairs", "Differences in {prose}",
        notes=["lines: {limits}, each for one difference"],
        columns={"panel": "{panel}", "what": "{pair} ({.pairs} pairs)", "estimate": ".disparity"}, **_DIFFERENCE,
    ),
    kinds.STRATA: _drawn(
        dots, "Differences in {prose}, like compared with like", "Differences in {prose}",
        notes=["filled: within strata, with its {limits}", "hollow: all rows together"],
        columns={"panel": "{panel}", "what": "{pair}", "estimate": ".adjusted", "raw": ".crude"}, **_DIFFERENCE,
    ),
    kinds.COMPONENTS: _drawn(
        dots, "What makes up the difference in {labels}", "Difference in {labels}", notes=["lines: {limits}"],
        columns={"panel": "{label}, {pair}", "what": ".component", "estimate": ".estimate"}, **_DIFFERENCE,
    ),
    kinds.SENSITIVITY: _drawn(
        dots, "The smallest share of errors that turns the verdict", "Errors that turn the verdict", marks=(),
        notes=["n in parentheses"], rows=pl.col(".group").is_not_null(),
        columns={
            "panel": pl.col(".error").map_elements(capitalized, pl.String), "what": "{label}: {.group} ({.n})",
            "estimate": ".share", "why": reason(".share", "does not turn it"),
        },
        span=Span(0, 1, 0), x=["Share of rows"],
    ),
    kinds.PROBABILITIES: _drawn(
        dots, "Probability that the limit is kept", notes=["0: never, 1: for sure"], marks=(),
        columns={"what": "{label}", "estimate": ".probability"}, span=Span(0, 1, is_whole=True), x=["Probability"],
    ),
    kinds.SMALLEST: _drawn(
        dots, "The smallest differences detected {power}% of the time", "The smallest differences detected", marks=(),
        notes=["in parentheses: the smallest group and its rows"],
        columns={
            "what": "{label or difference} ({.smallest}: {.rows})", "estimate": ".difference",
            "why": reason(".difference", "none"),
        },
        span=Span(0, 1, 0), x=["Difference"],
    ),
    kinds.RESAMPLES: _drawn(
        dots, "{other} minus {one}, on the same {resamples} resamples", "{other} minus {one}",
        "Differences of two models", marks=(), notes=["lines reach one standard error to each side"],
        columns={"what": "{label}", **_with_errors(".difference")}, **_DIFFERENCE,
    ),
    kinds.SUMMARIES: _drawn(
        dots, "Means of {resamples} resamples", "Means over resamples", marks=(), scaled=".mean",
        notes=["lines reach one standard error to each side"],
        columns={"what": "{label}", **_with_errors(".mean")},
    ),
    kinds.PERIODS: _drawn(
        over_time, "Change in {prose}: {sure} of {number} {changes} beyond chance", "Change in {prose}",
        marks=(".expected_lower", ".expected_upper"), notes=["{gray}"],
        columns={"panel": "{label}", "what": "{.before} to {.period}", "estimate": ".change"},
        span=_NO_DIFFERENCE, x=["from one period to the next"], y=["Change"],
    ),
    kinds.CHANGES: _drawn(
        side_by_side, "Change in {prose}: {sure} of {number} changes beyond chance",
        "{sure} of {number} changes beyond chance",
        notes=["change: with limits that hold for all periods"], rows=pl.col(".period").is_not_null(),
        nothing="no value can be compared before and after a period",
        columns={
            "panel": "{label}", "what": _change_in_words, "one": ".estimate_before", "other": ".estimate",
            "estimate": ".change",
        },
        names=("before", "after"),
    ),
    kinds.ROC_CURVE: _curve(
        "ROC curve", ("False positive rate", 1 - pl.col("specificity")),
        ("Sensitivity (true positive rate)", pl.col("sensitivity")), square=True, diagonal="chance",
    ),
    kinds.PR_CURVE: _curve(
        "Precision-recall curve", ("Recall (true positive rate)", pl.col("recall")),
        ("Precision (positive predictive value)", pl.col("precision")), square=True,
    ),
    kinds.GAIN_CURVE: _curve(
        "Gain curve", ("Share of rows tested", _TESTED), ("Share of events found", pl.col(".percent_found") / 100),
        square=True, diagonal="chance",
    ),
    kinds.RISK_COVERAGE_CURVE: risk_coverage_plot,
    kinds.LIFT_CURVE: _curve(
        "Lift curve", ("Share of rows tested", _TESTED), ("Lift", pl.col(".lift")),
        ["line at 1: as many events as by chance"], span=Span(low=0, reference=1), x_span=Span(0, 1),
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
    expected = None if beside is None else _expected_of(beside, draw, plot.outer)
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
    plot = replace(plot.with_units(units), expected=expected, form=kind, at=marked, models=names)
    return draw(plot)


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


def _expected_of(beside: Any, draw: Callable[[PlotInput], Picture], outer: list[str]) -> pl.DataFrame:
    """The range that is expected if groups are equal, which is drawn behind disparities."""
    expected = open_frame(beside).to_polars()
    if not {".metric", ".by", ".expected_lower", ".expected_upper"} <= set(expected.columns):
        msg = "`beside` is what `disparity_test(…)` has given for the same metrics."
        raise ArgumentError(msg)
    if draw is not results_plot:
        msg = "`beside` is drawn behind disparities, and `result` holds none."
        raise ArgumentError(msg)
    common = [name for name in outer if name in expected.columns]
    return with_outer_text(expected.select(pl.col("^\\..*$"), *common), common)
