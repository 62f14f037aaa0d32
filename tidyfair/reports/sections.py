"""The sections of a report: words, tables and figures made from a tally and its results."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.calls import Evaluable
from tidyfair.errors import ArgumentError, ColumnError, Status
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.inference.gates import Gate
from tidyfair.metric_sets import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics import fairness
from tidyfair.metrics.catalog import comparison_named
from tidyfair.metrics.classification import selection_rate, sens
from tidyfair.metrics.curves import calibration_curve, threshold_curve
from tidyfair.metrics.fairness import new_groupwise_metric
from tidyfair.reports.plots import autoplot
from tidyfair.reports.tables import (
    NOTHING,
    Code,
    Figure,
    Section,
    Table,
    as_p_value,
    groups_side_by_side,
    one_below_the_other,
    rounded,
    too_few,
)
from tidyfair.specs.columns import names_of
from tidyfair.specs.contrasts import difference
from tidyfair.tallies.moments import SCORE, ends_of
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import ESTIMATE, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.audits.usual_metrics import UsualMetrics
    from tidyfair.specs.groups import By
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_PART, _BOTH, _NTH = "\0part", "\0both", "\0nth"
"""Internal columns, whose names no column of the user has."""
_OF_CURVES = ("truth", "probs", "pos_label", "labels", "case_weights")
_MOST_LINES = 8
"""The largest number of groups in a figure of lines."""


def question(audit: UsualMetrics, tally: Tally, options: Mapping[str, Any], results: pl.DataFrame) -> tuple[Any, ...]:
    """The question, and the answer in words."""
    columns: list[str] = []
    if tally.estimate is not None:
        columns.append(f"the predictions {tally.estimate.name!r}")
    if tally.scores is not None:
        columns.append(f"the scores {tally.scores.columns[0].name!r}")
    predictions = " and ".join(columns)
    of_truth = f" of {tally.truth.name!r}" if tally.truth else ""
    features = ", ".join(by.text for by in audit.bys)
    sentences = [f"How good are {predictions}{of_truth}, for whom, and how far apart are the groups of {features}?"]
    if options.get("pos_label") is not None:
        sentences.append(f"The event is {options['pos_label']!r}.")
    if (cut := tally.cut) is not None:
        at = "s of their own for each group" if cut.groups else f" {cut.values[0]:g}"
        sentences.append(f"Decisions are made of the scores by {cut.option.replace('_', ' ')}{at}.")
    if tally.weights is not None:
        sentences.append(f"Rows are weighted by {tally.weights.name!r}.")
    level = percent(options.get("conf_level", 0.95))
    sentences.append(
        f"Intervals are {level} confidence intervals, not adjusted for how many there are. Whether groups differ shows "
        "in the interval of their disparity, not in whether their own intervals overlap."
    )
    return (" ".join(sentences), *_summary(audit, results))


def percent(share: float) -> str:
    """A share in percent, with all of its digits."""
    return f"{share * 100:g} %"


def _summary(audit: UsualMetrics, results: pl.DataFrame) -> list[str]:
    """A sentence for each feature: the largest difference that is statistically clear, or that none is."""
    differences: dict[str, list[GroupwiseMetric]] = {}
    for parity in audit.parities:
        if parity.aggregate.is_difference:
            differences.setdefault(parity.by.text, []).append(parity)
    sentences: list[str] = []
    for by, parities in differences.items():
        sentences.append(_largest_difference(by, parities, results.filter(pl.col(".by") == by)))
    return sentences


def _largest_difference(by: str, parities: Sequence[GroupwiseMetric], results: pl.DataFrame) -> str:
    """The largest difference between the groups of a feature whose interval leaves out 0, in words."""
    names: dict[str, str] = {}
    for parity in parities:
        rates = [rate.name for rate in parity.metrics]
        names[parity.name] = " or ".join(rates)
    differences = results.filter(pl.col(".metric").is_in(list(names)))
    # a signed difference may be clear on either side of 0
    nearest_end = pl.max_horizontal(".lower", -pl.col(".upper"))
    clear = differences.filter((nearest_end > 0) & nearest_end.is_finite()).sort(nearest_end, descending=True)
    if clear.is_empty():
        return f"By {by}, no difference between groups is statistically clear."
    row = clear.row(0, named=True)
    low, high = sorted([abs(row[".lower"]), abs(row[".upper"])])
    value, low, high = rounded(pl.Series([abs(row[".estimate"]), low, high]))
    rate = row.get(".base_metric") or names[row[".metric"]]
    more = f"; {len(clear) - 1} more of {len(differences)} are statistically clear" if len(clear) > 1 else ""
    return (
        f"By {by}, groups differ: {rate.replace('_', ' ')} is lowest for {row['.group_min']} and highest "
        f"for {row['.group_max']}, {value} apart ({low} to {high}){more}."
    )


def of_data(audit: UsualMetrics, tally: Tally, min_n: int) -> tuple[Any, ...]:
    """The number of rows, their weights, missing values, and the sizes of groups."""
    rows = int(tally.cells["n"].sum())
    text = f"There are {rows:,} rows."
    if tally.weights is not None:
        total, squares = float(tally.cells["w"].sum()), float(tally.cells["w2"].sum())
        text += f" Their weights add up to {total:,.4g}; {total**2 / squares:,.0f} rows of equal weight are as precise."
    blocks: list[Any] = [text]
    missing = missing_of(tally)
    if not missing.is_empty():
        blocks.append(Table(missing))
    enough = pl.when(pl.col("rows") >= min_n)
    share = (pl.col("rows") / rows * 100).round(1).cast(pl.String) + " %"
    sizes = pl.concat([_sizes(tally, by) for by in audit.bys])
    sizes = sizes.with_columns(enough.then("rows").alias("rows")).with_columns(share.alias("share"))
    blocks.append(Table(sizes, (), too_few(min_n)))
    return tuple(blocks)


def missing_of(tally: Tally) -> pl.DataFrame:
    """The number of rows that lack a value, by column."""
    columns: list[tuple[str, str, str]] = []
    if tally.truth is not None:
        columns.append((tally.truth.name, TRUTH, TRUTH))
    if tally.estimate is not None:
        columns.append((tally.estimate.name, ESTIMATE, ESTIMATE))
    if tally.scores is not None:
        # without a score there is no decision either
        key = SCORE if SCORE in tally.cells.columns else ESTIMATE
        for column in tally.scores.columns:
            columns.append((column.name, "scores", key))
    rows: list[tuple[str, str, int]] = []
    for name, role, key in columns:
        lacking = tally.cells.filter(pl.col(key).is_null())
        rows.append((name, role, int(lacking["n"].sum())))
    return pl.DataFrame(rows, schema=["column", "read as", "missing"], orient="row")


def _sizes(tally: Tally, by: By) -> pl.DataFrame:
    """The number of rows of each group, whatever they lack."""
    names = tally.names(by.columns)
    keys = tally.cells[names].get_columns()
    if by.sides:
        keys = [pl.Series("side", by.sides.side(tally.cells[names]))]
    cells = pl.DataFrame([*keys, tally.cells["n"]])
    *groups, _ = cells.columns
    counts = cells.group_by(groups).agg(pl.col("n").sum()).sort(groups, nulls_last=True)
    return pl.DataFrame({".by": by.text, ".group": texts_of(counts[groups]), "rows": counts["n"]})


def of_groups(groups: pl.DataFrame, worst: pl.DataFrame | None, min_n: int) -> tuple[Any, ...]:
    """The values of groups, as a table and as a figure for each feature."""
    table, notes = groups_side_by_side(groups, worst, min_n)
    blocks: list[Any] = [Table(table, tuple(notes), too_few(min_n))]
    overall = groups.filter(pl.col(".by").is_null())
    for by in groups[".by"].drop_nulls().unique(maintain_order=True):
        of_feature = groups.filter((pl.col(".by") == by) & (pl.col(".n") >= min_n))
        if not of_feature.is_empty():
            blocks.append(_figure(pl.concat([overall, of_feature]), f"Each group of {by}"))
    return tuple(blocks)


def _figure(result: pl.DataFrame, title: str, *, instead: Table | None = None, **options: Any) -> Figure | Table | str:
    """The figure of a result; else the table `instead`, or a sentence that there is none."""
    try:
        return Figure(autoplot(result, title=title, **options), instead)
    except ArgumentError:
        if instead is None or instead.table.is_empty():
            return f"{title}: there is nothing to draw, or more than could be read."
        return instead


def of_disparities(
    results: pl.DataFrame, tested: pl.DataFrame | None, verdicts: pl.DataFrame | None, confidence: float
) -> tuple[Any, ...]:
    """The disparities with their intervals, tests and verdicts."""
    disparities = results.filter(pl.col(".by").is_not_null())
    if disparities.is_empty():
        return ("None was asked for.",)
    table = one_below_the_other(disparities.drop(".n", ".method"))
    blocks: list[Any] = []
    if tested is not None and not tested[".expected_lower"].count():
        tested = None
    if tested is None:
        blocks.append(Table(table))
    else:
        blocks.append(_with_tests(table, tested))
        blocks.append(
            "Expected is the range of disparities that equal groups show 95 % of the time; it is wide where a group is "
            "small. p is the probability that equal groups are as far apart as these, or farther, in standard errors, "
            "so that a small group does not hide the others."
        )
    blocks.append(_figure(disparities, "Disparities", beside=tested))
    if verdicts is not None:
        blocks.append(
            "Verdicts: a disparity passes where all of its interval keeps the limit, and fails where all of it is "
            f"beyond. Each end of these intervals is right {percent(confidence)} of the time."
        )
        blocks.append(Table(one_below_the_other(verdicts.drop(".n", ".method"))))
        blocks.append(_figure(verdicts, "Verdicts"))
    return tuple(blocks)


def _with_tests(table: pl.DataFrame, tested: pl.DataFrame) -> Table:
    """The table of disparities with the range expected if groups are equal, and the p-values."""
    keys = [".metric", ".by"]
    lower, upper = rounded(tested[".expected_lower"]), rounded(tested[".expected_upper"])
    columns = tested.select(
        *keys,
        pl.format("{} to {}", lower, upper).alias("expected"),
        as_p_value(tested[".p_value"]).alias("p"),
        as_p_value(tested[".p_adjusted"]).alias("p, adjusted"),
    )
    joined = table.join(columns, on=keys, how="left", maintain_order="left")
    remark = ""
    if joined["expected"].has_nulls():
        remark = f"{NOTHING}: not among the rates of labels that are tested here, or without a value"
    return Table(joined, (), remark)


def of_scores(audit: UsualMetrics, tally: Tally, data: Any, call: dict[str, Any], min_n: int) -> list[Section]:
    """Rates along the threshold and calibration, by feature; nothing without a truth or a single column of scores."""
    if tally.scores is None or tally.scores.several or call["truth"] is None:
        return []
    columns = {name: call[name] for name in _OF_CURVES if name in call}
    thresholds = _thresholds(tally)
    curves = _curves(audit, thresholds, data, call, columns).filter(pl.col(".n") >= min_n)
    if "frequency_weights" in call:
        # values are the same, and curves show nothing else
        columns["case_weights"] = call["frequency_weights"]
    cut, at = tally.cut, None
    if cut is not None and cut.option == "threshold" and not cut.groups:
        at = cut.values[0]
    blocks: list[Any] = []
    has_more_groups = False
    for by in audit.bys:
        of_feature = curves.filter(pl.col(".by") == by.text)
        has_more_groups |= of_feature[".group"].n_unique() > _MOST_LINES
        largest = _largest(of_feature, [".group"])
        table = _at_thresholds(largest, thresholds[10:100:10])
        blocks.append(_figure(largest, f"Thresholds, by {by.text}", at=at, instead=table))
        # a calibration curve is of the groups of columns, and of rows that lack nothing
        if not by.sides and call.get("na_rm") is not False:
            blocks.append(_calibration(by, data, call, columns, min_n))
    if has_more_groups:
        blocks.insert(0, f"Of features with more groups, the {_MOST_LINES} largest are shown.")
    return [Section("Thresholds and calibration", tuple(blocks))]


def _curves(
    audit: UsualMetrics, thresholds: list[float], data: Any, call: Mapping[str, Any], columns: Mapping[str, Any]
) -> pl.DataFrame:
    """The selection rate and the sensitivity of each group at each threshold."""
    rates = new_groupwise_metric(metric_set(selection_rate, sens), "rates", difference())
    of_features = [replace(rates(*by.features), by=by) for by in audit.bys]
    curve = threshold_curve(metric_set(*of_features), thresholds)
    options = {name: call[name] for name in ("frequency_weights", "na_rm") if name in call}
    values = curve.by_group(data, **columns, **options, on_undefined="ignore")
    return open_frame(values).to_polars()


def _calibration(
    by: By, data: Any, call: Mapping[str, Any], columns: Mapping[str, Any], min_n: int
) -> Figure | Table | str:
    """The figure of calibration in each group of a feature, or why it is not drawn."""
    features: Any = list(by.features)
    title = f"Calibration, by {by.text}"
    try:
        bins = open_frame(calibration_curve(data, **columns, group_by=features, binning="count")).to_polars()
    except ColumnError as error:
        return f"{title}, is not drawn: {error}"
    if "frequency_weights" in call:
        # a row stands for as many rows as its weight
        bins = bins.with_columns(pl.col(".weight").cast(pl.Int64).alias(".n")).drop(".weight")
    names = names_of(by.columns)
    bins = _largest(bins.filter(pl.col(".n") >= min_n), names)
    return _figure(bins, title, instead=_in_bins(bins, names))


def _thresholds(tally: Tally) -> list[float]:
    """A hundred steps over the scores, which are probabilities unless they are beyond."""
    low, high = 0.0, 1.0
    least, most = ends_of("s0")
    if {least, most} <= set(tally.cells.columns):
        ends = tally.cells.select(pl.col(least).min(), pl.col(most).max()).row(0)
        if None not in ends and (ends[0] < low or ends[1] > high):
            low, high = ends
    return [low + (high - low) * step / 100 for step in range(101)]


def _largest(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The rows of the largest groups, no more than a figure can show."""
    sizes = frame.group_by(names, maintain_order=True).agg(pl.col(".n").max())
    largest = sizes.top_k(_MOST_LINES, by=".n")
    return frame.join(largest, on=names, how="semi", nulls_equal=True, maintain_order="left")


def _at_thresholds(curves: pl.DataFrame, thresholds: list[float]) -> Table:
    """The values of groups at a few thresholds."""
    keys = [".metric", ".by", ".group"]
    few = curves.filter(pl.col(".threshold").is_in(thresholds))
    heads = [f"at {threshold:.4g}" for threshold in thresholds]
    texts = few.with_columns(
        pl.col(".threshold").replace_strict(thresholds, heads, return_dtype=pl.String).alias(_PART),
        # different groups can have the same text
        pl.int_range(pl.len()).over(*keys, ".threshold").alias(_NTH),
        rounded(few[".estimate"]),
    )
    return Table(texts.pivot(_PART, index=[*keys, _NTH], values=".estimate").drop(_NTH))


def _in_bins(calibrated: pl.DataFrame, features: list[str]) -> Table:
    """Mean score and rate of events in each bin of the scores of a group."""
    both = pl.format("{} / {}", rounded(calibrated[".mean_score"]), rounded(calibrated[".event_rate"]))
    remark = "Mean score / rate of events in ten parts of the rows of each group, by rising score."
    texts = calibrated.select(*features, pl.format("part {}", ".bin").alias(_PART), both.alias(_BOTH))
    return Table(texts.pivot(_PART, index=features, values=_BOTH), (), remark)


def left_out(tally: Tally, results: pl.DataFrame, groups: pl.DataFrame, min_n: int, *, na_rm: bool) -> tuple[Any, ...]:
    """The rows that are left out, and the values that are undefined, with the reason."""
    blocks: list[Any] = []
    lacking: list[str] = []
    for name, _, rows in missing_of(tally).rows():
        if rows and na_rm:
            lacking.append(f"{rows:,} rows without {name!r}")
    if lacking:
        blocks.append(f"{' and '.join(lacking)} are left out of the metrics that read them.")
    keys = [".metric", ".by", ".group", ".n", ".denominator", ".status"]
    undefined = groups.filter((pl.col(".status") != Status.OK) & (pl.col(".n") >= min_n)).select(keys)
    excluded_groups = _excluded(results, ".groups_left_out", "groups left out")
    excluded_metrics = _excluded(results, ".metrics_left_out", "metrics left out")
    for heading, table in (
        ("Values of groups that are not defined:", undefined),
        ("Groups that a disparity is not taken over:", excluded_groups),
        ("Metrics that cannot be compared between groups:", excluded_metrics),
    ):
        if not table.is_empty():
            blocks += [heading, Table(one_below_the_other(table))]
    return tuple(blocks) or ("Nothing: every row counts, and every group has every value.",)


def _excluded(results: pl.DataFrame, column: str, head: str) -> pl.DataFrame:
    """The results with a list of excluded groups or metrics."""
    excluded = pl.col(column)
    return results.filter(excluded.list.len() > 0).select(".metric", ".by", excluded.alias(head))


def definitions(audit: UsualMetrics) -> Table:
    """The meaning, range and direction of each number."""
    shown: dict[str, Metric | GroupwiseMetric] = {}
    for metric in (*audit.groups, *audit.results):
        # rates of which disparities are made are defined too
        if metric in audit.results or isinstance(metric, Metric):
            shown[metric.name] = metric
    rows = [(metric.name, _meaning(metric), _range(metric), _wish(metric)) for metric in shown.values()]
    columns = ["name", "meaning", "range", "better"]
    return Table(pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row"))


def _range(metric: Metric | GroupwiseMetric) -> str:
    """The ends of the values of a metric."""
    low, high = metric.range
    return f"{low:g} to {high:g}"


def _wish(metric: Metric | GroupwiseMetric) -> str | None:
    """The values that are better, in words."""
    if isinstance(metric, Metric) and len(metric.definition.reads) <= 1:
        return None  # how many are selected, or have the event, is neither good nor bad
    return {"maximize": "high", "minimize": "low", "zero": "near 0", "one": "near 1"}[metric.direction]


def _meaning(metric: Metric | GroupwiseMetric) -> str:
    """The meaning of a metric: its docstring up to the example, or that of a disparity with its source."""
    if isinstance(metric, GroupwiseMetric):
        return f"{metric.meaning} {metric.source}." if metric.source else metric.meaning
    text, _, _ = inspect.cleandoc(metric.definition.function.__doc__ or "").partition(">>>")
    return " ".join(text.split())


def how_to_repeat(code: str) -> Section:
    """The section with the code of the call and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Section("How to do this again", (Code(code), f"Made with {used}, on Python {python_version()}."))


def call_of(call: Mapping[str, Any]) -> str:
    """The code of a call of `report`, after the code of the metrics and gates in it."""
    lines = ["import tidyfair as tdf", ""]
    arguments: list[str] = []
    for name, value in call.items():
        if value is None:
            continue
        code = repr(value)
        if isinstance(value, Evaluable | Gate):
            description = " ".join(code.split())
            lines.append(f"{name} = {_in_code(value) or f'...  # {description}'}")
            code = name
        arguments.append(f"{name}={code}")
    return "\n".join([*lines, f"tdf.report(data, {', '.join(arguments)})"])


def _in_code(value: object) -> str | None:
    """The code that makes a metric or a gate; None where that is not known."""
    match value:
        case MetricSet():
            return _set_in_code(value)
        case Gate(options=(), limits=limits) if len(set(limits)) == 1 and (metrics := _in_code(value.metrics)):
            side, limit = limits[0]
            return f"tdf.check({metrics}, {side}={limit!r}, confidence={value.confidence!r})"
        case Metric() if getattr(sys.modules["tidyfair"], value.name, None) == value:
            return f"tdf.{value.name}"
        case GroupwiseMetric():
            return _comparison_in_code(value)
        case _:
            return None


def _set_in_code(metrics: MetricSet) -> str | None:
    """The code of a metric set, or of the one metric in it."""
    parts: list[str] = []
    for metric in metrics:
        part = _in_code(metric)
        if part is None:
            return None
        parts.append(part)
    return parts[0] if len(parts) == 1 else f"tdf.metric_set({', '.join(parts)})"


def _comparison_in_code(metric: GroupwiseMetric) -> str | None:
    """The code of a disparity of the catalogue, or of a metric that compares itself."""
    if not all(isinstance(feature, str) for feature in metric.by.features):
        return None
    factory = comparison_named(metric.name)
    limits: dict[str, Any] = {"min_n": metric.min_n, "min_share": metric.min_share}
    if factory is None or replace(factory(*metric.by.features, **limits), by=metric.by) != metric:
        return None
    function = metric.name
    if function not in fairness.__all__:
        rate = metric.metrics[0].name
        function = f"{rate}.{function.removeprefix(rate + '_')}"
    given = [repr(metric.by), *(f"{name}={value}" for name, value in limits.items() if value)]
    return f"tdf.{function}({', '.join(given)})"
