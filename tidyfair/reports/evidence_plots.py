"""Plots of tests, gates over time, pairs, strata, subgroups, and what is sure of them."""

from __future__ import annotations

import re

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.reports.charts import MOST_PANELS, Picture
from tidyfair.reports.dot_charts import DotStyle, dots
from tidyfair.reports.layout import Span
from tidyfair.reports.line_charts import LineStyle, over_time
from tidyfair.reports.plot_input import (
    OUTER,
    PlotInput,
    in_sentence,
    listed_names,
    plain,
    scales_of_metrics,
    span_of_metric,
    with_scales,
)
from tidyfair.reports.tables import as_p_value
from tidyfair.specs.result_columns import open_ends

_SURE = 0.05
"""Below this p-value a sentence calls a difference larger than chance explains."""
_NO_DIFFERENCE = Span(reference=0)
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}")


def _spans(table: pl.DataFrame, span: Span) -> dict[str, Span]:
    """The same for all panels."""
    return dict.fromkeys(table["panel"].unique(maintain_order=True).to_list(), span)


def tests_plot(plot: PlotInput) -> Picture:
    """Disparities beside the range that is expected if groups are equal."""
    frame, spans = with_scales(plot, plot.frame)
    p_value = as_p_value(frame[".p_value"]).fill_null("unknown")
    p_value = pl.when(p_value.str.starts_with("0")).then("= " + p_value).otherwise(p_value)
    table = frame.select(
        "panel",
        pl.format("{} (p {})", plot.label(), p_value).alias("what"),
        pl.col(".estimate").alias("estimate"),
        *plain(frame, ".expected_lower", ".expected_upper"),
    )
    name = listed_names(in_sentence(frame.select(plot.compared()).to_series()))
    sure = int((_p_values(frame) < _SURE).sum())
    if len(frame) == 1:
        finding = "is larger than chance explains" if sure else "is no larger than chance explains"
        titles = [f"{name} {finding}", name]
    else:
        verb = "is" if sure == 1 else "are"
        many = f"{sure or 'None'} of {len(frame)} disparities {verb}"
        titles = [f"{many} larger than chance explains", f"{many} beyond chance", name]
    return dots(table, titles, ["grey: p of 0.05 or more"], DotStyle(spans=spans))


def _p_values(frame: pl.DataFrame) -> pl.Series:
    """The p-values, adjusted if they are."""
    return frame[".p_adjusted" if ".p_adjusted" in frame.columns else ".p_value"]


def periods_plot(plot: PlotInput) -> Picture:
    """Changes between periods beside the range that is expected by chance."""
    frame = plot.frame
    table = frame.select(
        plot.label().alias("panel"),
        pl.format("{} to {}", texts_of(frame.select(".before")), texts_of(frame.select(".period"))).alias("at"),
        pl.col(".change").alias("y"),
        *plain(frame, ".expected_lower", ".expected_upper"),
    )
    name = _prose(listed_names(in_sentence(table["panel"])))
    many = int((_p_values(frame) < _SURE).sum())
    changes = "change" if len(frame) == 1 else "changes"
    titles = [f"Change in {name}: {many or 'none'} of {len(frame)} {changes} beyond chance", f"Change in {name}"]
    style = LineStyle("from one period to the next", y="Change", spans=_spans(table, _NO_DIFFERENCE))
    notes = [] if frame[".expected_lower"].null_count() == len(frame) else ["grey: p of 0.05 or more"]
    return over_time(table, titles, notes, style, "limit")


def looks_plot(plot: PlotInput) -> Picture:
    """The verdicts of monitors, period by period."""
    frame = plot.frame
    table = frame.select(
        plot.label().alias("panel"),
        texts_of(frame.select(".period")).alias("at"),
        pl.col(".estimate").alias("y"),
        *plain(frame, ".lower", ".upper", ".limit", ".verdict"),
    )
    name = listed_names(in_sentence(frame.select(plot.compared()).to_series()))
    last = frame[".verdict"][-1]
    titles = [f"{name} after each period", f"{name} so far"]
    if table["panel"].n_unique() == 1:
        words = {"within": "keeps its limit", "above the limit": "is above its limit", "below the limit": "is below it"}
        titles = [f"{name} {words.get(last, f'is {last}')} after {len(frame)} looks", f"{name}: {last}"]
    spans = {
        panel: Span(0, None) if (low is not None and low >= 0) else Span()
        for panel, low in table.group_by("panel")
        .agg(pl.min_horizontal(pl.col("y").min(), pl.col("lower").min()))
        .rows()
    }
    texts = texts_of(frame.select(".since")).to_list() if ".since" in frame.columns else [""]
    if len(set(texts)) == 1:
        style = LineStyle("all data up to and including the period", spans=spans)
    else:
        style = LineStyle("recent data up to and including the period", spans=spans)
        titles = [f"{title}, of data since {texts[-1]}" for title in titles]
    return over_time(table, titles, ["lines: confidence sequences, valid at every look"], style, "limit")


def pairs_plot(plot: PlotInput) -> Picture:
    """Comparisons of two groups, with intervals: overlapping intervals of groups are no test."""
    frame = plot.frame.with_columns(plot.panel().alias("panel"))
    is_difference = pl.col(".scale") == "difference"
    sign = pl.when(is_difference).then(pl.lit("\N{MINUS SIGN}")).otherwise(pl.lit("/"))
    scales = frame[".scale"].unique(maintain_order=True).to_list()
    panel = pl.col("panel")
    if len(scales) > 1:
        panel = pl.format("{}, {}", "panel", pl.col(".scale").str.replace_all("_", " ", literal=True))
    table = frame.select(
        panel.alias("panel"),
        pl.format("{} {} {}", ".group", sign, ".other").alias("what"),
        pl.col(".disparity").alias("estimate"),
        *plain(frame, ".lower", ".upper"),
    )
    above, below = open_ends(frame)
    table = table.with_columns(pl.Series("above", above), pl.Series("below", below))
    equal = frame.select(panel.alias("panel"), is_difference.alias("is difference")).unique().rows()
    spans = {name: _NO_DIFFERENCE if is_zero else Span(0, None, 1) for name, is_zero in equal}
    kind = {"ratio": "Ratios of", "odds_ratio": "Odds ratios of"}.get(scales[0], "Differences in")
    name = _prose(listed_names(in_sentence(frame["panel"])))
    titles = [f"{kind if len(scales) == 1 else 'Comparisons of'} {name}, pair by pair", f"{kind} {name}"]
    scales = scales_of_metrics(frame.with_columns(panel.alias("panel")))
    return dots(table, titles, ["lines hold for all pairs at once"], DotStyle(spans=spans, scales=scales))


def paired_plot(plot: PlotInput) -> Picture:
    """Differences between two groups on the same items, with intervals."""
    frame = plot.frame.with_columns(plot.panel().alias("panel"))
    table = frame.select(
        "panel",
        pl.format("{} \N{MINUS SIGN} {} ({} pairs)", ".group", ".other", ".pairs").alias("what"),
        pl.col(".disparity").alias("estimate"),
        *plain(frame, ".lower", ".upper"),
    )
    name = _prose(listed_names(in_sentence(table["panel"])))
    titles = [f"Differences in {name} within pairs", f"Differences in {name}"]
    notes = ["lines: confidence intervals, each for one difference"]
    return dots(table, titles, notes, DotStyle(spans=_spans(table, _NO_DIFFERENCE)))


def _prose(title: str) -> str:
    """A title within a sentence, unless it starts with several capitals."""
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def strata_plot(plot: PlotInput) -> Picture:
    """Differences before and after like is compared with like."""
    frame = plot.frame.with_columns(plot.panel().alias("panel"))
    pair = pl.format("{} \N{MINUS SIGN} {}", ".group", ".other")
    table = frame.select(
        "panel",
        pair.alias("what"),
        pl.col(".adjusted").alias("estimate"),
        pl.col(".crude").alias("hollow"),
        *plain(frame, ".lower", ".upper"),
    )
    name = _prose(listed_names(in_sentence(table["panel"])))
    titles = [f"Differences in {name}, like compared with like", f"Differences in {name}"]
    notes = ["filled: within strata, with its confidence interval", "hollow: all rows together"]
    return dots(table, titles, notes, DotStyle(spans=_spans(table, _NO_DIFFERENCE)))


def subgroups_plot(plot: PlotInput) -> Picture:
    """The subgroups that differ most from the rest."""
    frame = plot.frame.drop_nulls(".difference")
    if ".status" in frame.columns:
        frame = frame.filter(pl.col(".status") == Status.OK.value)
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: no subgroup is compared; `.status` says why."
        raise ArgumentError(msg)
    first = frame.head(MOST_PANELS)
    rows = ".denominator" if ".denominator" in frame.columns else ".n"
    limited = [pl.col(".epsilon").alias("upper"), pl.lit(0.0).alias("lower")] if ".epsilon" in frame.columns else []
    table = first.select(
        plot.metric().alias("panel"),
        pl.format("{} ({})", _subgroup_text(), pl.col(rows)).alias("what"),
        pl.col(".difference").alias("estimate"),
        *limited,
    )
    name = listed_names(in_sentence(table["panel"]))
    if limited:
        epsilon = first[".epsilon"][0]
        titles = [
            f"No subgroup is more than {epsilon:.3f} from the others in {_prose(name)}",
            f"{name}: at most {epsilon:.3f} apart",
        ]
        notes = ["dot: the subgroup that differs most", "line: how far any subgroup may differ"]
    else:
        titles = [f"Subgroups that differ most from the rest in {_prose(name)}", f"{name} of subgroups"]
        notes = ["value of the subgroup less that of the rest", "rows that count in parentheses"]
        if len(frame) > len(first):
            notes.append(f"{len(first)} of {len(frame)}")
    return dots(table, titles, notes, DotStyle(spans=_spans(table, _NO_DIFFERENCE)))


def _subgroup_text() -> pl.Expr:
    """The condition of a subgroup in words."""
    return pl.col(".subgroup").cast(pl.String).str.replace_all(" & ", ", ", literal=True)


def halves_plot(plot: PlotInput) -> Picture:
    """The two halves that a linear threshold makes, around the rate of all."""
    frame = plot.frame
    panel = pl.format("{}, {}", plot.metric(), OUTER) if plot.outer else plot.metric()
    conditions = [_LONG_NUMBER.sub(_rounded, text or "no condition") for text in frame[".subgroup"]]
    sides = [text.rpartition(") ")[0::2] for text in conditions]
    divided = {left for left, _ in sides}
    notes = ["rows in parentheses"]
    if len(divided) == 1 and "" not in divided:
        # both halves have the same long left side
        notes.insert(0, f"by {divided.pop()})")
        conditions = [right for _, right in sides]
    table = frame.select(
        panel.alias("panel"),
        pl.format("{} ({})", pl.Series(conditions, dtype=pl.String), pl.col(".denominator")).alias("what"),
        pl.col(".estimate").alias("estimate"),
        pl.col(".overall").alias("limit"),
    )
    name = listed_names(in_sentence(table["panel"]))
    spans = {name: span_of_metric(metric) for name, metric in frame.select(panel.alias("p"), ".metric").rows()}
    titles = [f"{name} on both sides of the condition that divides it most", name]
    return dots(table, titles, notes, DotStyle("all rows", spans))


def _rounded(match: re.Match[str]) -> str:
    """A number with three digits."""
    return f"{float(match[0]):.3g}"


def sensitivity_plot(plot: PlotInput) -> Picture:
    """The shares of errors that turn the verdict of a gate."""
    frame = plot.frame.filter(pl.col(".group").is_not_null())
    table = frame.select(
        _capital(pl.col(".error")).alias("panel"),
        pl.format("{}: {} ({})", plot.label(), ".group", ".n").alias("what"),
        pl.col(".share").alias("estimate"),
        pl.when(pl.col(".share").is_null()).then(pl.lit("does not turn it")).otherwise(pl.lit("")).alias("why"),
    )
    titles = ["The smallest share of errors that turns the verdict", "Errors that turn the verdict"]
    return dots(table, titles, ["rows in parentheses"], DotStyle(spans=_spans(table, Span(0, 1, 0))))


def _capital(text: pl.Expr) -> pl.Expr:
    """A text with a capital letter."""
    return text.str.slice(0, 1).str.to_uppercase() + text.str.slice(1)


def probabilities_plot(plot: PlotInput) -> Picture:
    """Posterior probabilities that disparities keep their limits."""
    probability = pl.col(".probability").alias("estimate")
    table = plot.frame.select(pl.lit("").alias("panel"), plot.label().alias("what"), probability)
    span = Span(0, 1, is_whole=True)
    return dots(table, ["Probability that the limit is kept"], ["0: never, 1: for sure"], DotStyle(spans={"": span}))


def summaries_plot(plot: PlotInput) -> Picture:
    """Means over resamples, with their standard errors."""
    frame, spans = with_scales(plot, plot.frame.with_columns(pl.col(".mean").alias(".estimate")))
    mean, error = pl.col(".mean"), pl.col(".std_error")
    table = frame.select(
        "panel", plot.label().alias("what"), mean.alias("estimate"), (mean - error).alias("lower"),
        (mean + error).alias("upper"),
    )  # fmt: skip
    notes = ["lines reach one standard error to each side"]
    return dots(table, [f"Means of {frame['.n'][0]} resamples", "Means over resamples"], notes, DotStyle(spans=spans))


def smallest_differences_plot(plot: PlotInput) -> Picture:
    """The smallest differences that data of this size would show."""
    frame = plot.frame
    label = pl.lit("Difference") if ".metric" not in frame.columns else plot.label()
    smallest = pl.format("{} ({}: {})", label, ".smallest", ".rows")
    table = frame.select(
        pl.lit("").alias("panel"), smallest.alias("what"), pl.col(".difference").alias("estimate"),
        pl.when(pl.col(".difference").is_null()).then(pl.lit("none")).otherwise(pl.lit("")).alias("why"),
    )  # fmt: skip
    power = frame[".power"][0] if ".power" in frame.columns else 0.8
    titles = [f"The smallest differences detected {power * 100:g} % of the time", "The smallest differences detected"]
    return dots(table, titles, ["in parentheses: the smallest group and its rows"], DotStyle(spans={"": Span(0, 1, 0)}))
