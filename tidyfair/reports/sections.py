"""The parts of a report: words, tables and pictures of what was counted and worked out."""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.calls import Evaluable
from tidyfair.errors import ArgumentError, ColumnError
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
    Drawn,
    Part,
    Shown,
    as_p_value,
    groups_side_by_side,
    one_below_the_other,
    rounded,
    too_few,
)
from tidyfair.specs.contrasts import Contrast, difference
from tidyfair.tallies.moments import SCORE, ends_of
from tidyfair.tallies.source import open_frame
from tidyfair.tallies.tally import ESTIMATE, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.audits.usual_metrics import Audit
    from tidyfair.specs.groups import By
    from tidyfair.tallies.tally import Tally

__all__: list[str] = []

_PART, _BOTH, _NTH = "\0part", "\0both", "\0nth"
"""Columns of ours, which no column of the user is called."""
_OF_CURVES = ("truth", "probs", "pos_label", "labels", "case_weights")
_MOST_LINES = 8
"""How many groups are told apart in a picture of lines."""


def question(audit: Audit, tally: Tally, reading: Mapping[str, Any], results: pl.DataFrame) -> tuple[Any, ...]:
    """The question, and the answer in words."""
    given = {"predictions": tally.estimate, "scores": tally.scores.columns[0] if tally.scores else None}
    what = " and ".join(f"the {kind} {column.name!r}" for kind, column in given.items() if column is not None)
    about = f" of {tally.truth.name!r}" if tally.truth else ""
    features = ", ".join(by.text for by in audit.bys)
    said = [f"How good are {what}{about}, for whom, and how far apart are the groups of {features}?"]
    if reading.get("pos_label") is not None:
        said.append(f"The event is {reading['pos_label']!r}.")
    if (cut := tally.cut) is not None:
        at = "s of their own for each group" if cut.groups else f" {cut.values[0]:g}"
        said.append(f"Decisions are made of the scores by {cut.way.replace('_', ' ')}{at}.")
    if tally.weights is not None:
        said.append(f"Rows are weighted by {tally.weights.name!r}.")
    level = percent(reading.get("conf_level", 0.95))
    said.append(
        f"Intervals hold what is true {level} of the time, each for itself. Whether groups differ is told by the "
        "interval of their disparity, not by whether their own intervals overlap."
    )
    return (" ".join(said), *_in_short(audit, results))


def percent(share: float) -> str:
    """A share in percent, with all of its digits."""
    return f"{share * 100:g} %"


def _in_short(audit: Audit, results: pl.DataFrame) -> list[str]:
    """For each feature whether differences are sure, and which is the largest of these."""
    said = list[str]()
    parities = [
        each for each in audit.parities if isinstance(each.aggregate, Contrast) and each.aggregate.kind == "difference"
    ]
    for by in dict.fromkeys(each.by.text for each in parities):
        names = {each.name: " or ".join(rate.name for rate in each.metrics) for each in parities if each.by.text == by}
        mine = results.filter((pl.col(".by") == by) & pl.col(".metric").is_in(list(names)))
        # what has a sign may be sure on either side
        least = pl.max_horizontal(".lower", -pl.col(".upper"))
        sure = mine.filter((least > 0) & least.is_finite()).sort(least, descending=True)
        if sure.is_empty():
            said.append(f"By {by}, no difference between groups is sure.")
            continue
        row = sure.row(0, named=True)
        low, high = sorted(abs(row[end]) for end in (".lower", ".upper"))
        value, low, high = rounded(pl.Series([abs(row[".estimate"]), low, high]))
        what = row.get(".base_metric") or names[row[".metric"]]
        more = f"; {len(sure) - 1} more of {len(mine)} are sure" if len(sure) > 1 else ""
        said.append(
            f"By {by}, groups differ: {what.replace('_', ' ')} is lowest for {row['.group_min']} and highest "
            f"for {row['.group_max']}, {value} apart ({low} to {high}){more}."
        )
    return said


def of_data(audit: Audit, tally: Tally, min_n: int) -> tuple[Any, ...]:
    """How many rows there are, what is missing, and who they are about."""
    rows = int(tally.cells["n"].sum())
    said = f"There are {rows:,} rows."
    if tally.weights is not None:
        total, squares = (float(tally.cells[name].sum()) for name in ("w", "w2"))
        said += f" Their weights add up to {total:,.4g}, and tell as much as {total**2 / squares:,.0f} equal ones."
    sizes = [_sizes(tally, by) for by in audit.bys]
    enough, share = pl.when(pl.col("rows") >= min_n), (pl.col("rows") / rows * 100).round(1).cast(pl.String) + " %"
    people = pl.concat(sizes).with_columns(enough.then("rows").alias("rows")).with_columns(share.alias("share"))
    missing = missing_of(tally)
    return said, *([Shown(missing)] if len(missing) else []), Shown(people, (), too_few(min_n))


def missing_of(tally: Tally) -> pl.DataFrame:
    """How many rows lack what is read, by column."""
    named = {TRUTH: tally.truth, ESTIMATE: tally.estimate}
    found = [(column.name, role, role) for role, column in named.items() if column is not None]
    if tally.scores is not None:
        # without a score there is no decision either
        place = SCORE if SCORE in tally.cells.columns else ESTIMATE
        found += [(each.name, "scores", place) for each in tally.scores.columns]
    lacking = {place: int(tally.cells.filter(pl.col(place).is_null())["n"].sum()) for _, _, place in found}
    rows = [(name, role, lacking[place]) for name, role, place in found]
    return pl.DataFrame(rows, schema=["column", "read as", "missing"], orient="row")


def _sizes(tally: Tally, by: By) -> pl.DataFrame:
    """The rows of each group, whatever they lack."""
    names = tally.names(by.columns)
    keys = [pl.Series("side", by.sides.side(tally.cells[names]))] if by.sides else tally.cells[names].get_columns()
    cells = pl.DataFrame([*keys, tally.cells["n"]])
    groups = [key.name for key in keys]
    counted = cells.group_by(groups).agg(pl.col("n").sum()).sort(groups, nulls_last=True)
    return pl.DataFrame({".by": by.text, ".group": texts_of(counted[groups]), "rows": counted["n"]})


def of_groups(groups: pl.DataFrame, worst: pl.DataFrame | None, min_n: int) -> tuple[Any, ...]:
    """The values of groups, as a table and as pictures of each feature."""
    table, notes = groups_side_by_side(groups, worst, min_n)
    blocks: list[Any] = [Shown(table, tuple(notes), too_few(min_n))]
    everyone = groups.filter(pl.col(".by").is_null())
    for by in groups[".by"].drop_nulls().unique(maintain_order=True):
        own = groups.filter((pl.col(".by") == by) & (pl.col(".n") >= min_n))
        if not own.is_empty():
            blocks.append(_picture(pl.concat([everyone, own]), f"Each group of {by}"))
    return tuple(blocks)


def _picture(result: pl.DataFrame, title: str, *, instead: Shown | None = None, **how: Any) -> Drawn | Shown | str:
    """A result as it is drawn, or as a table where it is too large, or why it is not."""
    try:
        return Drawn(autoplot(result, title=title, **how), instead)
    except ArgumentError:
        none = f"{title}: there is nothing to draw, or more than could be read."
        return none if instead is None or instead.table.is_empty() else instead


def of_disparities(
    results: pl.DataFrame, tested: pl.DataFrame | None, verdicts: pl.DataFrame | None, confidence: float
) -> tuple[Any, ...]:
    """How far groups are apart, how sure that is, and what was judged."""
    apart = results.filter(pl.col(".by").is_not_null())
    if apart.is_empty():
        return ("None was asked for.",)
    shown = one_below_the_other(apart.drop(".n", ".method"))
    blocks: list[Any] = [Shown(shown)]
    if tested is not None and tested[".expected_lower"].count():
        pair = [".metric", ".by"]
        ends = [rounded(tested[f".expected_{end}"]) for end in ("lower", "upper")]
        p_values = {".p_value": "p", ".p_adjusted": "p, adjusted"}
        untested = f"{NOTHING}: not among the rates of labels that are tested here, or without a value"
        expected = tested.select(
            *pair,
            pl.format("{} to {}", *ends).alias("expected"),
            *(as_p_value(tested[name]).alias(shown_as) for name, shown_as in p_values.items()),
        )
        joined = shown.join(expected, on=pair, how="left", maintain_order="left")
        blocks = [Shown(joined, (), untested if joined["expected"].has_nulls() else "")]
        blocks.append(
            "Expected is what groups that are equal show 95 % of the time, which is much where one is small. p says "
            "how often equal groups are as far apart as these, in standard errors, so that a small group does not "
            "drown the others."
        )
    else:
        tested = None
    blocks.append(_picture(apart, "Disparities", beside=tested))
    if verdicts is not None:
        blocks.append(
            "Verdicts: a disparity passes where all of its interval keeps the limit, and fails where all of it is "
            f"beyond. Each end of these intervals is right {percent(confidence)} of the time."
        )
        blocks += [Shown(one_below_the_other(verdicts.drop(".n", ".method"))), _picture(verdicts, "Verdicts")]
    return tuple(blocks)


def of_scores(audit: Audit, tally: Tally, data: Any, asked: dict[str, Any], min_n: int) -> list[Part]:
    """How values change with the threshold, and whether scores mean the same for all."""
    if tally.scores is None or tally.scores.several or asked["truth"] is None:
        return []
    named = {name: asked[name] for name in _OF_CURVES if name in asked}
    thresholds = _thresholds(tally)
    curves = _curves(audit, thresholds, data, asked, named).filter(pl.col(".n") >= min_n)
    if "frequency_weights" in asked:
        # values are the same, and curves show nothing else
        named["case_weights"] = asked["frequency_weights"]
    cut, at = tally.cut, None
    if cut is not None and cut.way == "threshold" and not cut.groups:
        at = cut.values[0]
    blocks: list[Any] = []
    for by in audit.bys:
        of_feature = curves.filter(pl.col(".by") == by.text)
        largest = _largest(of_feature, [".group"])
        table = _at_thresholds(largest, thresholds[10:100:10])
        blocks.append(_picture(largest, f"Thresholds, by {by.text}", at=at, instead=table))
        # a curve is of the groups of columns, and of rows that lack nothing
        if not by.sides and asked.get("na_rm") is not False:
            blocks.append(_calibration(by, data, asked, named, min_n))
    if any(of_feature[".group"].n_unique() > _MOST_LINES for of_feature in curves.partition_by(".by")):
        blocks.insert(0, f"Of features with more groups, the {_MOST_LINES} largest are shown.")
    return [Part("Thresholds and calibration", tuple(blocks))]


def _curves(
    audit: Audit, thresholds: list[float], data: Any, asked: Mapping[str, Any], named: Mapping[str, Any]
) -> pl.DataFrame:
    """The rates of each group at each threshold."""
    rates = new_groupwise_metric(metric_set(selection_rate, sens), "rates", difference())
    curve = threshold_curve(metric_set(*(rates(*by.features) for by in audit.bys)), thresholds)
    of_decisions = {name: asked[name] for name in ("frequency_weights", "na_rm") if name in asked}
    values = curve.by_group(data, **named, **of_decisions, on_undefined="ignore")
    return open_frame(values).to_polars()


def _calibration(
    by: By, data: Any, asked: Mapping[str, Any], named: Mapping[str, Any], min_n: int
) -> Drawn | Shown | str:
    """The picture of calibration in each group of a feature, or why it is not drawn."""
    features: Any = list(by.features)
    title = f"Calibration, by {by.text}"
    try:
        bins = open_frame(calibration_curve(data, **named, group_by=features, binning="count")).to_polars()
    except ColumnError as error:
        return f"{title}, is not drawn: {error}"
    if "frequency_weights" in asked:
        # each row stands for as many
        bins = bins.with_columns(pl.col(".weight").cast(pl.Int64).alias(".n"))
    names = [column.name for column in by.columns]
    bins = _largest(bins.filter(pl.col(".n") >= min_n), names)
    return _picture(bins, title, instead=_in_bins(bins, names))


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
    """The rows of the largest groups, of no more than can be told apart."""
    sizes = frame.group_by(names, maintain_order=True).agg(pl.col(".n").max())
    largest = sizes.top_k(_MOST_LINES, by=".n")
    return frame.join(largest, on=names, how="semi", nulls_equal=True, maintain_order="left")


def _at_thresholds(curves: pl.DataFrame, thresholds: list[float]) -> Shown:
    """The values of groups at a few thresholds."""
    at, about = pl.col(".threshold"), [".metric", ".by", ".group"]
    few = curves.filter(at.is_in(thresholds))
    told = few.with_columns(
        at.replace_strict(thresholds, [f"at {each:.4g}" for each in thresholds], return_dtype=pl.String).alias(_PART),
        # groups that read alike are not one
        pl.int_range(pl.len()).over(*about, ".threshold").alias(_NTH),
        rounded(few[".estimate"]),
    )
    return Shown(told.pivot(_PART, index=[*about, _NTH], values=".estimate").drop(_NTH))


def _in_bins(calibrated: pl.DataFrame, features: list[str]) -> Shown:
    """Mean score and rate of events in each bin of the scores of a group."""
    both = pl.format("{} / {}", rounded(calibrated[".mean_score"]), rounded(calibrated[".event_rate"]))
    remark = "Mean score / rate of events in ten parts of the rows of each group, by rising score."
    told = calibrated.select(*features, pl.format("part {}", ".bin").alias(_PART), both.alias(_BOTH))
    return Shown(told.pivot(_PART, index=features, values=_BOTH), (), remark)


def left_out(tally: Tally, results: pl.DataFrame, groups: pl.DataFrame, min_n: int, *, na_rm: bool) -> tuple[Any, ...]:
    """Which rows and values there are not, and why."""
    keys = [".metric", ".by", ".group", ".n", ".denominator", ".status"]
    without = groups.filter((pl.col(".status") != "ok") & (pl.col(".n") >= min_n)).select(keys)
    left = pl.col(".groups_left_out")
    apart = results.filter(left.list.len() > 0).select(".metric", ".by", left.alias("groups left out"))
    left = pl.col(".metrics_left_out")
    not_compared = results.filter(left.list.len() > 0).select(".metric", ".by", left.alias("metrics left out"))
    blocks = list[Any]()
    lacking = [f"{rows:,} rows without {name!r}" for name, _, rows in missing_of(tally).rows() if rows and na_rm]
    if lacking:
        blocks.append(f"{' and '.join(lacking)} are left out of the metrics that read them.")
    if not without.is_empty():
        blocks += ["Values of groups that are not defined:", Shown(one_below_the_other(without))]
    if not apart.is_empty():
        blocks += ["Groups that a disparity is not taken over:", Shown(one_below_the_other(apart))]
    if not not_compared.is_empty():
        blocks += ["Metrics that cannot be compared between groups:", Shown(one_below_the_other(not_compared))]
    return tuple(blocks) or ("Nothing: every row counts, and every group has every value.",)


def definitions(audit: Audit) -> Shown:
    """The meaning of each number, where it should go, and between what it lies."""
    shown: dict[str, Metric | GroupwiseMetric] = {}
    for metric in (*audit.groups, *audit.results):
        # rates of which disparities are made are defined too
        if metric in audit.results or isinstance(metric, Metric):
            shown[metric.name] = metric
    rows = [(metric.name, _meaning(metric), _range(metric), _wish(metric)) for metric in shown.values()]
    columns = ["name", "meaning", "range", "better"]
    return Shown(pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row"))


def _range(metric: Metric | GroupwiseMetric) -> str:
    low, high = metric.range
    return f"{low:g} to {high:g}"


def _wish(metric: Metric | GroupwiseMetric) -> str | None:
    """Where values should go."""
    if isinstance(metric, Metric) and len(metric.definition.reads) <= 1:
        return None  # how many are selected, or have the event, is neither good nor bad
    return {"maximize": "high", "minimize": "low", "zero": "near 0", "one": "near 1"}[metric.direction]


def _meaning(metric: Metric | GroupwiseMetric) -> str:
    if isinstance(metric, GroupwiseMetric):
        return f"{metric.meaning} {metric.source}." if metric.source else metric.meaning
    return " ".join(inspect.cleandoc(metric.__doc__ or "").partition(">>>")[0].split())


def again(code: str) -> Part:
    """The call, and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Part("How to do this again", (Code(code), f"Made with {used}, on Python {python_version()}."))


def call_of(call: Mapping[str, Any]) -> str:
    """The call as it was made, after what it was made of."""
    given = {name: value for name, value in call.items() if value is not None}
    made = {name: value for name, value in given.items() if isinstance(value, Evaluable | Gate)}
    lines = ["import tidyfair as tdf", ""]
    for name, value in made.items():
        in_words = " ".join(repr(value).split())
        lines.append(f"{name} = {_in_code(value) or f'...  # {in_words}'}")
    named = (f"{name}={name if name in made else repr(value)}" for name, value in given.items())
    return "\n".join([*lines, f"tdf.report(data, {', '.join(named)})"])


def _in_code(made: object) -> str | None:
    """The code that makes a metric or a gate again; None where that is not known."""
    match made:
        case MetricSet():
            parts = [_in_code(each) for each in made]
            code = ", ".join(part for part in parts if part)
            return None if None in parts else f"tdf.metric_set({code})" if len(parts) > 1 else code
        case Gate(options=(), limits=limits) if len(set(limits)) == 1 and (metrics := _in_code(made.metrics)):
            ((side, limit),) = set(limits)
            return f"tdf.check({metrics}, {side}={limit!r}, confidence={made.confidence!r})"
        case Metric() if getattr(sys.modules["tidyfair"], made.name, None) == made:
            return f"tdf.{made.name}"
        case GroupwiseMetric() if all(isinstance(feature, str) for feature in made.by.features):
            factory = comparison_named(made.name)
            if factory is not None and factory(*made.by.features, min_n=made.min_n) == made:
                called = made.name
                if called not in fairness.__all__:
                    called = f"{made.metrics[0].name}.{called.removeprefix(made.metrics[0].name + '_')}"
                return f"tdf.{called}({made.by!r}{f', min_n={made.min_n}' if made.min_n else ''})"
        case _:
            pass
    return None
