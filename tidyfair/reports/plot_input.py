"""What plots are made of: a result, the options of its plot, and its names in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, permutations
from typing import Any, Literal

import polars as pl

from tidyfair.evaluation.group_cells import texts_of
from tidyfair.metrics.catalog import comparison_named, metric_named
from tidyfair.metrics.titles import at_cut, in_prose, short_title, title_of
from tidyfair.reports.charts import SPAN, Span
from tidyfair.specs.result_columns import CUTS

Kind = Literal["dots", "heat map"]
OUTER = ".outer"
CUT_TITLES: dict[str, str] = dict(
    zip(
        CUTS,
        ("threshold", "number selected", "share selected", "evaluation time", "level of the quantile"),
        strict=True,
    )
)
"""The columns of lists of cuts, and of the points of predictions, over which values are lines, in words."""
METRICS, DIFFERENCES, RATIOS, DISPARITIES = "Metrics", "Differences", "Ratios", "Disparities"
"""The panels of results."""
_REFERENCES = {
    "mean_prediction": None, "mean_truth": None, "net_benefit": 0.0, "standardized_net_benefit": 0.0, "lift": 1.0
}  # fmt: skip
_OF_DISPARITIES = {DIFFERENCES: Span(reference=0), RATIOS: Span(low=0, reference=1), DISPARITIES: Span()}
_NAMED = 2
"""The number of metrics or features that a title names."""


@dataclass(frozen=True)
class PlotInput:
    """A result and the options of its plot."""

    frame: pl.DataFrame
    expected: pl.DataFrame | None
    kind: Kind | None
    at: float | None
    models: tuple[str, str]
    outer: list[str]
    """Names of the outer keys. Their values are one column of text, so that no name of the user is in the way."""

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each metric, without what is in brackets, but with its name where two have the same."""
        names = self.frame[".metric"].drop_nulls().unique(maintain_order=True).to_list()
        known = {name for name in names if metric_named(name) or comparison_named(name)}
        titles = {name: short_title(name) if name in known else title_of(name) for name in names}
        counts = Counter(titles.values())
        return {name: f"{title} ({name})" if counts[title] > 1 else title for name, title in titles.items()}

    def metric(self, *, over_cuts: bool = False) -> pl.Expr:
        """The title of the metric of a row, with its time or other cut, unless values are drawn over these."""
        cuts = [] if over_cuts else [name for name in CUTS if name in self.frame.columns]
        if not cuts:
            return pl.col(".metric").replace_strict(self.titles, default="", return_dtype=pl.String)

        def title_at_cut(row: Mapping[str, Any]) -> str:
            return at_cut(self.titles.get(row[".metric"], ""), row)

        return pl.struct(".metric", *cuts).map_elements(title_at_cut, return_dtype=pl.String)

    def compared(self, *, over_cuts: bool = False) -> pl.Expr:
        """The title of a metric, and the feature by which it is compared."""
        return self.metric(over_cuts=over_cuts) + by_text()

    def label(self) -> pl.Expr:
        """The same, with the outer group."""
        return pl.format("{}, {}", self.compared(), OUTER) if self.outer else self.compared()

    def panel(self, *, one_feature: bool = False, over_cuts: bool = False) -> pl.Expr:
        """The metric of a value of a group, its label, and the feature where there are several."""
        metric = self.metric(over_cuts=over_cuts)
        if ".level" in self.frame.columns:
            metric = metric + pl.format(" of {}", pl.col(".level").cast(pl.String)).fill_null("")
        return metric if one_feature else metric + by_text()


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
    return pl.format(" by {}", pl.col(".by").str.replace_all(":", " and ", literal=True)).fill_null("")


def crossed_features(frame: pl.DataFrame) -> dict[str, list[str]]:
    """The columns of the features of each crossing, which stand between `.by` and `.group`, in any order."""
    if not {".by", ".group"} <= set(frame.columns):
        return {}
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
        if len(features) > 1:
            parts = [texts_of(frame.select(name)) for name in features]
            joined = pl.select(pl.concat_str(parts, separator=", ")).to_series()
            text = pl.when(pl.col(".by") == by).then(joined).otherwise(text)
    return frame.with_columns(text.alias(".group"))


def with_outer_text(frame: pl.DataFrame, outer: list[str]) -> pl.DataFrame:
    """A frame with its outer keys as one column of text, without the name of a single key that is not `fold`."""
    if not outer:
        return frame
    texts: list[pl.Series] = []
    for name in outer:
        text = texts_of(frame.select(name))
        if len(outer) > 1 or name == "fold":
            text = f"{name} " + text
        texts.append(text)
    joined = pl.select(pl.concat_str(texts, separator=", ").alias(OUTER)).to_series()
    return frame.select(pl.exclude(outer), joined)


def with_counts(frame: pl.DataFrame, label: pl.Expr) -> tuple[pl.Series, str]:
    """Labels of groups with the rows that their metrics are shares of, and the note on these.

    Panels that have the same groups share their labels. Where their metrics are of different rows, or nobody knows of
    how many, and where rows have weights, labels are without numbers.
    """
    labels = frame.select(label.alias("what"))["what"]
    name = _column_of_counts(frame)
    if name is None or not (frame[name].cast(pl.Float64).drop_nulls() % 1 == 0).all():
        return labels, ""
    counts = frame.select("panel", labels, frame[name].cast(pl.Int64).alias("count"))
    groups_of_panels = counts.group_by("panel", maintain_order=True).agg("what")["what"]
    if groups_of_panels.n_unique() == 1 and counts.group_by("what").agg(pl.col("count").n_unique())["count"].max() != 1:
        return labels, ""
    texts = counts.select(pl.format("{} ({})", "what", "count").fill_null(pl.col("what"))).to_series()
    is_of_all = ".n" in frame.columns and (frame[name] == frame[".n"]).all()
    return texts, "rows in parentheses" if is_of_all else "rows that count in parentheses"


def _column_of_counts(frame: pl.DataFrame) -> str | None:
    """The column of the rows that values are shares of; None where there is none."""
    if ".denominator" in frame.columns:
        return ".denominator"
    if not {".metric", ".reference"} <= set(frame.columns):
        return ".n"
    # a comparison with a reference has all rows of a group in `.n`, of which few may count for its metric
    metrics = map(metric_named, frame[".metric"].unique())
    is_of_all = all(metric is not None and metric.definition.reads == frozenset({"estimate"}) for metric in metrics)
    return ".n" if is_of_all else None


def table_of(frame: pl.DataFrame, *marks: str, **columns: Any) -> pl.DataFrame:
    """The table of a picture: its panel and axis, the marks that a result has, and other columns.

    Names have no dot, which Vega would take for a path.
    """
    names = {name: name.removeprefix(".") for name in ("panel", "span", "scale", *marks) if name in frame.columns}
    columns = {"panel": pl.lit(""), **{shown: pl.col(name) for name, shown in names.items()}, **columns}
    return frame.select(**columns)


def reason(frame: pl.DataFrame, value: str = ".estimate", text: str = "no value") -> pl.Expr:
    """The reason why there is no value, where there is none."""
    status = pl.col(".status").str.replace_all("_", " ") if ".status" in frame.columns else pl.lit(text)
    return pl.when(pl.col(value).is_null()).then(status).otherwise(pl.lit(""))


def with_spans(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with what is known of the values of each metric; panels of the same metric and scale share an axis."""
    spans = [asdict(span_of_metric(name)) for name in frame[".metric"]]
    return frame.with_columns(pl.Series("span", spans, SPAN), scale_of_metric(frame))


def scale_of_metric(frame: pl.DataFrame) -> pl.Expr:
    """The `scale` that panels have in common whose axis is the same, because their metric and its scale are."""
    names = [name for name in (".metric", ".scale") if name in frame.columns]
    scale = pl.concat_str(pl.col(names), separator=" ") if names else pl.lit("")
    return scale.alias("scale")


def with_scales(plot: PlotInput, frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with the `panel` of each row, and the `span` that is known of its values.

    Metrics, differences and ratios have a panel; so has a metric whose values exceed 1, or that is best at 0 or 1.
    """
    keys = frame.select(".metric", ".by").rows()
    beyond = frame.filter(pl.col(".estimate").is_finite() & (pl.col(".estimate").abs() > 1))
    large_kinds = {_kind_of(*key) for key in beyond.select(".metric", ".by").unique().rows()}
    panels: dict[tuple[str, str | None], str] = {}
    spans: dict[str, Span] = {}
    for key in dict.fromkeys(keys):
        kind = _kind_of(*key)
        span = _OF_DISPARITIES.get(kind) or span_of_metric(key[0])
        alone = kind == METRICS and (span.reference is not None or kind in large_kinds)
        panel = plot.titles[key[0]] if alone or kind in large_kinds - {RATIOS} else kind
        panels[key] = panel
        spans[panel] = _of_both(spans[panel], span) if panel in spans else span
    names = [panels[key] for key in keys]
    return frame.with_columns(
        pl.Series("panel", names, pl.String), pl.Series("span", [asdict(spans[name]) for name in names], SPAN)
    )


def _kind_of(metric: str, by: str | None) -> str:
    """The panel of a metric, or of a disparity: the scale of its aggregate, if it is in the catalogue."""
    if by is None:
        return METRICS
    factory = comparison_named(metric)
    scale = None if factory is None else getattr(factory.aggregate, "scale", None)
    return {"differences": DIFFERENCES, "ratios": RATIOS}.get(str(scale), DISPARITIES)


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
