"""What stands in each part of a report: words, tables and pictures of what was counted and worked out."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair import fairness
from tidyfair.calls import Evaluable
from tidyfair.contrasts import difference
from tidyfair.defaults import threshold_curve
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.exhibits import (
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
from tidyfair.fairness import new_groupwise_metric
from tidyfair.frames import open_frame
from tidyfair.gates import Gate
from tidyfair.metric_sets import GroupwiseFactory, GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.metrics.classification import selection_rate, sens
from tidyfair.metrics.curves import calibration_curve
from tidyfair.plots import autoplot
from tidyfair.sums import SCORE
from tidyfair.tallies import ESTIMATE, TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidyfair.audits import Audit
    from tidyfair.tallies import Tally

__all__: list[str] = []

_PART, _BOTH = "\0part", "\0both"
"""Columns of ours, which no column of the user is called."""
_NEAR = 1e-9
"""Thresholds that are no farther from a tenth are one."""


def question(audit: Audit, tally: Tally, reading: Mapping[str, Any]) -> tuple[Any, ...]:
    """What was asked, in words."""
    given = {"predictions": tally.estimate, "scores": tally.scores.columns[0] if tally.scores else None}
    what = " and ".join(f"the {kind} {column.name!r}" for kind, column in given.items() if column is not None)
    about = f" of {tally.truth.name!r}" if tally.truth else ""
    features = ", ".join(audit.features)
    said = [f"How good are {what}{about}, for whom, and how far apart are the groups of {features}?"]
    if reading.get("pos_label") is not None:
        said.append(f"The event is {reading['pos_label']!r}.")
    if tally.cut is not None:
        at = "" if tally.cut.groups else f" {tally.cut.values[0]:g}"
        said.append(f"Decisions are made of the scores by {tally.cut.way.replace('_', ' ')}{at}.")
    if tally.weights is not None:
        said.append(f"Rows are weighted by {tally.weights.name!r}.")
    level = reading.get("conf_level", 0.95)
    said.append(
        f"Intervals hold what is true {level:.0%} of the time, each for itself. Whether groups differ is told by the "
        "interval of their disparity, not by whether their own intervals overlap."
    )
    return (" ".join(said),)


def of_data(tally: Tally, groups: pl.DataFrame, min_n: int) -> tuple[Any, ...]:
    """How many rows there are, what is missing, and who they are about."""
    cells, rows = tally.cells, int(tally.cells["n"].sum())
    named = {TRUTH: tally.truth, ESTIMATE: tally.estimate}
    missing = [
        {"column": column.name, "read as": role, "missing": int(cells.filter(pl.col(role).is_null())["n"].sum())}
        for role, column in named.items() if column is not None
    ]  # fmt: skip
    if tally.scores is not None and SCORE in cells.columns:
        unknown = int(cells.filter(pl.col(SCORE).is_null())["n"].sum())
        missing += [{"column": each.name, "read as": "scores", "missing": unknown} for each in tally.scores.columns]
    said = f"There are {rows:,} rows."
    if tally.weights is not None:
        total, squares = float(cells["w"].sum()), float(cells["w2"].sum())
        said += f" Their weights add up to {total:,.4g}, and tell as much as {total**2 / squares:,.0f} equal ones."
    sizes = groups.filter(pl.col(".by").is_not_null()).group_by(".by", ".group", maintain_order=True)
    share = (pl.col("rows") / rows * 100).round(1).cast(pl.String) + " %"
    enough = pl.when(pl.col(".n").max() >= min_n).then(pl.col(".n").max())
    people = sizes.agg(enough.alias("rows")).with_columns(share.alias("share"))
    columns = [Shown(pl.DataFrame(missing))] if missing else []
    return said, *columns, Shown(people, (), too_few(min_n))


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


def _picture(result: pl.DataFrame, title: str, *, instead: Shown | None = None, **how: Any) -> Drawn | str:
    """A result as it is drawn, or why it is not."""
    try:
        return Drawn(autoplot(result, title=title, **how), instead)
    except ArgumentError as error:
        if "pip install" in str(error):
            raise
        return f"{title} is not drawn: {error}"


def of_disparities(
    results: pl.DataFrame, tested: pl.DataFrame | None, verdicts: pl.DataFrame | None, confidence: float
) -> tuple[Any, ...]:
    """How far groups are apart, how sure that is, and what was judged."""
    apart = results.filter(pl.col(".by").is_not_null())
    if apart.is_empty():
        return ("None was asked for.",)
    shown = one_below_the_other(apart.drop(".n", ".method", ".status"))
    blocks: list[Any] = [Shown(shown)]
    if tested is not None:
        pair = [".metric", ".by"]
        ends = [rounded(tested[f".expected_{end}"]) for end in ("lower", "upper")]
        p_values = {".p_value": "p", ".p_adjusted": "p, adjusted"}
        untested = f"{NOTHING}: not among the rates of labels that are tested here"
        expected = tested.select(
            *pair,
            pl.format("{} to {}", *ends).alias("expected"),
            *(as_p_value(tested[name]).alias(shown_as) for name, shown_as in p_values.items()),
        )
        joined = shown.join(expected, on=pair, how="left", maintain_order="left")
        blocks = [Shown(joined, (), untested if joined["expected"].has_nulls() else "")]
        blocks.append(
            "Expected is what groups that are equal show 95 % of the time; a disparity within it may be chance."
        )
    blocks.append(_picture(apart, "Disparities", beside=tested))
    if verdicts is not None:
        known = tested if tested is not None and set(verdicts[".metric"]) & set(tested[".metric"]) else None
        blocks.append(
            "Verdicts: a disparity passes where all of its interval keeps the limit, and fails where all of it is "
            f"beyond. Each end of these intervals is right {confidence:.0%} of the time."
        )
        blocks += [
            Shown(one_below_the_other(verdicts.drop(".n", ".method"))),
            _picture(verdicts, "Verdicts", beside=known),
        ]
    return tuple(blocks)


def of_scores(audit: Audit, tally: Tally, data: Any, asked: dict[str, Any], min_n: int) -> list[Part]:
    """How values change with the threshold, and whether scores mean the same for all."""
    scores = tally.scores
    if scores is None or scores.several or asked["truth"] is None:
        return []
    named = {name: asked[name] for name in ("truth", "probs", "pos_label", "labels", "case_weights") if name in asked}
    if "frequency_weights" in asked:
        # values are the same, and curves show nothing else
        named["case_weights"] = asked["frequency_weights"]
    cut, blocks = tally.cut, list[Any]()
    at = cut.values[0] if cut is not None and cut.way == "threshold" and not cut.groups else None
    bys = dict.fromkeys(each.by for each in audit.parities)
    rates = new_groupwise_metric(metric_set(selection_rate, sens), "rates", difference())
    every = threshold_curve(metric_set(*(rates(*by.features) for by in bys)))
    curves = _enough(open_frame(every.by_group(data, **named, on_undefined="ignore")).to_polars(), min_n)
    for by in bys:
        mine = curves.filter(pl.col(".by") == by.text)
        blocks.append(_picture(mine, f"Thresholds, by {by.text}", at=at, instead=_at_thresholds(mine)))
        if by.sides:
            continue  # a curve is of the groups of columns
        features: Any = list(by.features)
        try:
            calibrated = open_frame(calibration_curve(data, **named, group_by=features, binning="count")).to_polars()
        except ColumnError as error:
            blocks.append(f"Calibration, by {by.text}, is not drawn: {error}")
            continue
        calibrated = _enough(calibrated, min_n)
        title = f"Calibration, by {by.text}"
        blocks.append(_picture(calibrated, title, instead=_in_bins(calibrated, [each.name for each in by.columns])))
    return [Part("Thresholds and calibration", tuple(blocks))]


def _at_thresholds(curves: pl.DataFrame) -> Shown:
    """The values of groups at a few thresholds."""
    at = pl.col(".threshold")
    few = curves.filter(at.is_between(0, 1, closed="none") & (((at * 10).round() / 10 - at).abs() < _NEAR))
    told = few.with_columns(pl.format("at {}", pl.col(".threshold").round(1)).alias("at"), rounded(few[".estimate"]))
    return Shown(told.pivot("at", index=[".metric", ".by", ".group"], values=".estimate"))


def _in_bins(calibrated: pl.DataFrame, features: list[str]) -> Shown:
    """Mean score and rate of events in each bin of the scores of a group."""
    both = pl.format("{} / {}", rounded(calibrated[".mean_score"]), rounded(calibrated[".event_rate"]))
    remark = "Mean score / rate of events in ten parts of the rows of each group, by rising score."
    told = calibrated.select(*features, pl.format("part {}", ".bin").alias(_PART), both.alias(_BOTH))
    return Shown(told.pivot(_PART, index=features, values=_BOTH), (), remark)


def _enough(frame: pl.DataFrame, min_n: int) -> pl.DataFrame:
    return frame.filter(pl.col(".n") >= min_n)


def left_out(results: pl.DataFrame, groups: pl.DataFrame, min_n: int) -> tuple[Any, ...]:
    """Which values there are not, and why."""
    keys = [".metric", ".by", ".group", ".n", ".denominator", ".status"]
    without = _enough(groups.filter(pl.col(".status") != "ok").select(keys), min_n)
    left = pl.col(".groups_left_out")
    apart = results.filter(left.list.len() > 0).select(".metric", ".by", left.alias("groups left out"))
    blocks = list[Any]()
    if not without.is_empty():
        blocks += ["Values of groups that are not defined:", Shown(one_below_the_other(without))]
    if not apart.is_empty():
        blocks += ["Groups that a disparity is not taken over:", Shown(one_below_the_other(apart))]
    return tuple(blocks) or ("Nothing: every group has every value.",)


def definitions(audit: Audit) -> Shown:
    """What each number means, where it should go, and between what it lies."""
    # what disparities are made of is defined too
    shown = list(
        {
            each.name: each
            for each in (*audit.groups, *audit.results)
            if each in audit.results or isinstance(each, Metric)
        }.values()
    )
    rows = [(each.name, _meaning(each)) for each in shown]
    ends = [f"{low:g} to {high:g}" for low, high in (each.range for each in shown)]
    wishes = {"maximize": "high", "minimize": "low", "zero": "near 0", "one": "near 1"}
    # how many are selected, or have the event, is neither good nor bad
    better = [
        wishes[each.direction] if isinstance(each, GroupwiseMetric) or len(each.definition.reads) > 1 else None
        for each in shown
    ]
    table = pl.DataFrame(rows, schema=["name", "meaning"], orient="row")
    return Shown(table.with_columns(range=pl.Series(ends), better=pl.Series(better, dtype=pl.String)))


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
    lines = ["import tidyfair as tf", "", *(f"{name} = {_in_code(value)}" for name, value in made.items())]
    named = (f"{name}={name if name in made else repr(value)}" for name, value in given.items())
    return "\n".join([*lines, f"tf.report(data, {', '.join(named)})"])


def _in_code(made: object) -> str:
    """What makes a metric or a gate again; where code cannot be known, what it is in words."""
    if isinstance(made, MetricSet):
        return f"tf.metric_set({', '.join(map(_in_code, made))})" if len(made) > 1 else _in_code(made.metrics[0])
    if isinstance(made, Gate) and len(set(made.limits)) == 1:
        ((side, limit),) = set(made.limits)
        return f"tf.check({_in_code(made.metrics)}, {side}={limit:g}, confidence={made.confidence:g})"
    if isinstance(made, Metric) and isinstance(made.__reduce__(), str):
        return f"tf.{made.name}"
    factory = getattr(fairness, made.name, None) if isinstance(made, GroupwiseMetric) else None
    if isinstance(made, GroupwiseMetric) and isinstance(factory, GroupwiseFactory):
        same = factory(*made.by.features, min_n=made.min_n) == made
        if same and all(isinstance(feature, str) for feature in made.by.features):
            return f"tf.{made.name}({made.by!r}{f', min_n={made.min_n}' if made.min_n else ''})"
    return f"({' '.join(repr(made).split())})"
