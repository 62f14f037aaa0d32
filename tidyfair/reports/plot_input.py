"""The input of plots: a result of a known kind, the options of its plot, and its names in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain, permutations, takewhile
from typing import Any, Literal

import polars as pl

from tidyfair.evaluation import texts_of
from tidyfair.metrics import at_cut, capitalized, in_prose, short_title, title_of
from tidyfair.metrics.catalog import comparison_named, metric_named
from tidyfair.reports.charts import SPAN, Span
from tidyfair.reports.tables import Units
from tidyfair.specs import CUTS, POINTS, RESERVED, crossed_text, result_kinds as kinds
from tidyfair.specs.result_kinds import ResultKind, level_of

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
        frame = with_outer_text(result, outer)
        lacking = RESERVED.difference(frame.columns)
        nothing = pl.repeat(None, len(frame), dtype=pl.Null, eager=True)
        completed = frame.hstack([nothing.alias(name) for name in lacking])
        return cls(kind, completed, outer, [name for name in CUTS if name not in lacking])

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

        def title_at_cut(row: Mapping[str, Any]) -> str:
            return at_cut(self.titles.get(row[".metric"], ""), row)

        return pl.struct(".metric", *self.cuts).map_elements(title_at_cut, return_dtype=pl.String)

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
        return self.metric() + of_level() + by_text()

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
            spans[panel] = _of_both(spans[panel], span) if panel in spans else span
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


def of_level() -> pl.Expr:
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
    """The panel of a metric, or of a disparity: the scale of its aggregate, if it is in the catalogue."""
    if by is None:
        return "Metrics"
    factory = comparison_named(metric)
    scale = None if factory is None else getattr(factory.aggregate, "scale", None)
    return {"differences": "Differences", "ratios": "Ratios"}.get(str(scale), "Disparities")


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


def _of_both(one: Span, other: Span) -> Span:
    """The known ends of values of both kinds."""
    low = None if one.low is None or other.low is None else min(one.low, other.low)
    high = None if one.high is None or other.high is None else max(one.high, other.high)
    return Span(low, high, one.reference if one.reference == other.reference else None)
