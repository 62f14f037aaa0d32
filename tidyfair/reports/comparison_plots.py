"""Plots of comparisons: with a reference, chance, other groups, models and periods, and what is sure of them."""

from __future__ import annotations

import re

import polars as pl

from tidyfair.errors import ArgumentError, Status
from tidyfair.evaluation import texts_of
from tidyfair.metrics import capitalized, in_prose, short_title, title_of
from tidyfair.metrics.catalog import comparison_named, metric_named
from tidyfair.reports.charts import MOST_PANELS, SPAN, Picture, Span
from tidyfair.reports.dot_charts import dots, over_time, side_by_side
from tidyfair.reports.line_charts import scatter
from tidyfair.reports.plot_input import (
    PlotInput,
    by_text,
    by_words,
    listed_names,
    listed_titles,
    of_level,
    pair_text,
    reason,
    scale_of_metric,
    span_column,
    table_of,
    with_group_text,
    with_spans,
)
from tidyfair.reports.tables import as_p_value
from tidyfair.specs import open_ends
from tidyfair.specs.result_kinds import CERTIFICATE, FOUR_FIFTHS, QUANTILES, STANDARDIZED

_OF_NUMBERS = {STANDARDIZED: "Standardized differences in means", QUANTILES: "Ratios of quantiles"}
_SURE = 0.05
"""Below this p-value a sentence calls a difference larger than chance explains."""
_NO_DIFFERENCE = Span(reference=0)
_LONG_NUMBER = re.compile(r"\d+\.\d{4,}")


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
    panel = metric + by_text() + of_level()
    frame = with_group_text(plot.frame).with_columns(panel.alias("panel"), scale_of_metric())
    labels, counted = plot.with_counts(frame, plot.with_outer(pl.col(".group")))
    is_reference = (plot.frame[".group"] == plot.frame[".reference"]).fill_null(value=False)
    why = pl.when(is_reference).then(pl.lit("reference")).otherwise(reason(".disparity"))
    estimate = pl.when(~is_reference).then(".disparity")
    table = table_of(frame, ".lower", ".upper", what=labels, estimate=estimate, why=why)
    if plot.kind is FOUR_FIFTHS:
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


def _number_of_sure(frame: pl.DataFrame) -> int:
    """The number of small p-values, adjusted if they are."""
    return frame.filter(pl.coalesce(".p_adjusted", ".p_value") < _SURE).height


def periods_plot(plot: PlotInput) -> Picture:
    """Changes between periods beside the range that is expected by chance."""
    frame = plot.frame
    what = pl.format("{} to {}", texts_of(frame.select(".before")), texts_of(frame.select(".period")))
    marks = (".expected_lower", ".expected_upper")
    table = table_of(frame, *marks, panel=plot.label(), what=what, estimate=".change")
    name = listed_names(map(in_prose, table["panel"]))
    changes = "change" if len(frame) == 1 else "changes"
    finding = f"{_number_of_sure(frame) or 'none'} of {len(frame)} {changes} beyond chance"
    titles = [f"Change in {name}: {finding}", f"Change in {name}"]
    notes = ["gray: p of 0.05 or more"] if frame[".expected_lower"].count() else []
    x = "from one period to the next"
    return Picture(over_time, table, titles, notes, _NO_DIFFERENCE, x=[x], y=["Change"])


def located_plot(plot: PlotInput) -> Picture:
    """Values before and from the period on at which they change, and the change."""
    frame = plot.frame.drop_nulls(".period")
    if frame.is_empty():
        msg = "autoplot() has nothing to draw: no value can be compared before and after a period."
        raise ArgumentError(msg)
    period = pl.format("from {} on", texts_of(frame.select(".period")))
    period = pl.when(pl.col(".p_adjusted") < _SURE).then(period).otherwise(pl.lit("not beyond chance"))
    what = pl.when(pl.col(".group").is_null()).then(period).otherwise(pl.format("{}, {}", ".group", period))
    values = {"one": ".estimate_before", "other": ".estimate", "estimate": ".change"}
    table = table_of(frame, ".lower", ".upper", panel=plot.label(), what=what, **values)
    finding = f"{_number_of_sure(frame) or 'none'} of {len(frame)} changes beyond chance"
    names = listed_names(map(in_prose, table["panel"]))
    notes = ["change: with limits that hold for all periods"]
    return Picture(side_by_side, table, [f"Change in {names}: {finding}", finding], notes, names=("before", "after"))


def components_plot(plot: PlotInput) -> Picture:
    """The components of differences of two groups."""
    groups = pl.format("{}, {}", plot.label(), pair_text())
    table = table_of(plot.frame, ".lower", ".upper", panel=groups, what=".component", estimate=".estimate")
    names = listed_names(map(in_prose, plot.frame.select(plot.label()).to_series()))
    titles = [f"What makes up the difference in {names}", f"Difference in {names}"]
    return Picture(dots, table, titles, [f"lines: {plot.limits}"], _NO_DIFFERENCE, x=["Difference"])


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


def paired_plot(plot: PlotInput) -> Picture:
    """Differences between two groups on the same items, with intervals."""
    what = pl.format("{} ({} pairs)", pair_text(), ".pairs")
    notes = [f"lines: {plot.limits}, each for one difference"]
    return _differences_plot(plot, " within pairs", notes, what=what, estimate=".disparity")


def strata_plot(plot: PlotInput) -> Picture:
    """Differences before and after like is compared with like."""
    notes = [f"filled: within strata, with its {plot.limits}", "hollow: all rows together"]
    return _differences_plot(
        plot, ", like compared with like", notes, what=pair_text(), estimate=".adjusted", raw=".crude"
    )


def _differences_plot(plot: PlotInput, how: str, notes: list[str], **columns: pl.Expr | str) -> Picture:
    """Differences of groups in each metric."""
    table = table_of(plot.frame, ".lower", ".upper", panel=plot.panel(), **columns)
    name = f"Differences in {listed_names(map(in_prose, table['panel']))}"
    return Picture(dots, table, [f"{name}{how}", name], notes, _NO_DIFFERENCE, x=["Difference"])


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
    if plot.kind is CERTIFICATE:
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


def sensitivity_plot(plot: PlotInput) -> Picture:
    """The shares of errors that turn the verdict of a gate."""
    frame = plot.frame.filter(pl.col(".group").is_not_null())
    errors = pl.Series(map(capitalized, frame[".error"]), dtype=pl.String)
    what = pl.format("{}: {} ({})", plot.label(), ".group", ".n")
    why = reason(".share", "does not turn it")
    table = table_of(frame, panel=errors, what=what, estimate=".share", why=why)
    titles = ["The smallest share of errors that turns the verdict", "Errors that turn the verdict"]
    return Picture(dots, table, titles, ["n in parentheses"], Span(0, 1, 0), x=["Share of rows"])


def probabilities_plot(plot: PlotInput) -> Picture:
    """Posterior probabilities that disparities keep their limits."""
    table = table_of(plot.frame, what=plot.label(), estimate=".probability")
    span = Span(0, 1, is_whole=True)
    title = "Probability that the limit is kept"
    return Picture(dots, table, [title], ["0: never, 1: for sure"], span, x=["Probability"])


def smallest_differences_plot(plot: PlotInput) -> Picture:
    """The smallest differences that data of this size would show."""
    frame = plot.frame
    label = pl.when(pl.col(".metric").is_null()).then(pl.lit("Difference")).otherwise(plot.label())
    what = pl.format("{} ({}: {})", label, ".smallest", ".rows")
    table = table_of(frame, what=what, estimate=".difference", why=reason(".difference", "none"))
    power = frame[".power"].fill_null(0.8)[0]
    titles = [f"The smallest differences detected {power * 100:g}% of the time", "The smallest differences detected"]
    return Picture(
        dots, table, titles, ["in parentheses: the smallest group and its rows"], Span(0, 1, 0), x=["Difference"]
    )


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
        table = table_of(plot.frame, *marks, panel=plot.label(), what=".model_other", estimate=".change")
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
    table = table_of(frame, ".lower", ".upper", **columns)
    # names of columns need not start with a capital letter
    titles = [f"{finding} between {one} and {other}", finding]
    notes = [f"change: {other} less {one}, with its {plot.limits}"]
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
    parts: list[pl.DataFrame] = []
    for part in disparities.partition_by("panel", maintain_order=True):
        values = part.join(performances.filter(pl.col(".metric") == name), on=".model_other", suffix="_x")
        base = values[:1].select("panel", series=".model_one", x=".one_x", estimate=".one")
        others = values.select("panel", series=".model_other", x=".other_x", estimate=".other")
        points = pl.concat([base, others]).with_columns(base=pl.int_range(pl.len()) == 0)
        good = points.select(_gain(name, "x"), _gain(part[".metric"][0], "estimate")).rows()
        front = [not any(_is_better(other, one) for other in good) for one in good]
        parts.append(points.with_columns(front=pl.Series(front)))
    titles = [f"{title_of(name)} and disparities of models", "Performance and disparities"]
    return Picture(scatter, pl.concat(parts), titles, x=[title_of(name), short_title(name)])


def direction_of(metric: str) -> str:
    """The good side of a metric or disparity: `maximize`, `minimize`, `zero` or `one`; `neither` where none is good."""
    known, compared = metric_named(metric), comparison_named(metric)
    if known is not None:
        return known.better
    return str(compared.aggregate.direction if compared else "minimize")


def _gain(metric: str, column: str) -> pl.Expr:
    """The values of a metric or a disparity, so that larger ones are better."""
    value = pl.col(column)
    sides = {"maximize": value, "zero": -value.abs(), "one": -(value - 1).abs(), "neither": pl.lit(0.0)}
    return sides.get(direction_of(metric), -value)


def _is_better(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """True for values that are as good in all and better in one."""
    return one != other and all(first >= second for first, second in zip(one, other, strict=True))


def resamples_plot(plot: PlotInput) -> Picture:
    """Mean differences between two models on the same resamples."""
    one, other = plot.models
    title = f"{other} less {one}"
    titles = [f"{title}, on the same {plot.frame['.n'][0]} resamples", title, "Differences of two models"]
    return _with_errors(plot, plot.frame, ".difference", titles, Span(reference=0))


def summaries_plot(plot: PlotInput) -> Picture:
    """Means over resamples, with their standard errors."""
    frame = plot.with_scales(plot.frame.with_columns(pl.col(".mean").alias(".estimate")))
    titles = [f"Means of {frame['.n'][0]} resamples", "Means over resamples"]
    return _with_errors(plot, frame, ".mean", titles, Span())


def _with_errors(plot: PlotInput, frame: pl.DataFrame, value: str, titles: list[str], span: Span) -> Picture:
    """Values with their standard errors."""
    mean, error = pl.col(value), pl.col(".std_error")
    table = table_of(frame, what=plot.label(), estimate=mean, lower=mean - error, upper=mean + error)
    notes = ["lines reach one standard error to each side"]
    return Picture(dots, table, titles, notes, span, x=["Difference" if span.reference == 0 else ""])


def frontier_plot(plot: PlotInput) -> Picture:
    """Models by their performance and their disparity."""
    frame = plot.frame
    table = table_of(
        frame,
        series=pl.col(".model").cast(pl.String),
        x=".performance",
        estimate=".disparity",
        front=pl.col(".on_frontier").fill_null(value=False),
        base=pl.int_range(pl.len()) == 0,
    )
    verdict = pl.col(".verdict")
    better = frame.filter(verdict.str.starts_with("less") & ~verdict.str.ends_with("worse performance"))
    titles = ["Performance and disparity of models"]
    if len(better):
        names = listed_names(better[".model"].cast(pl.String))
        titles.insert(0, f"{names} {'is' if len(better) == 1 else 'are'} less discriminatory")
    performance, disparity, by = frame.select(".performance_metric", ".disparity_metric", ".by").row(0)
    x = [title_of(performance), short_title(performance)] if performance else ["Performance"]
    by = f" by {by_words(by)}" if by else ""
    y = [f"{title_of(disparity)}{by}", f"{short_title(disparity)}{by}"] if disparity else ["Disparity"]
    return Picture(scatter, table, titles, ["the lower, the fairer"], x=x, y=y)
