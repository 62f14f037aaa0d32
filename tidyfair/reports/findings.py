"""Findings of an audit, and their sentences: how far the groups of a feature differ, and how certain that is.

Pages and the command line lay out the same sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

import polars as pl

from tidyfair.audits import AuditResults
from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.errors import Status
from tidyfair.intervals import share_of
from tidyfair.metrics import at_cut, capitalized, in_prose, short_title
from tidyfair.reports.tables import ends_in_words, left_out_in_words, number_in_digits, reason
from tidyfair.specs import CUTS, Aggregate, By, cut_of_row, key_of

_CONTEXTS = {"rest": "all other groups", "overall": "all groups together"}
"""The references of disparities that are no group."""
_KINDS = ("difference", "ratio", "log_ratio")
"""The kinds of disparities between two groups; the first of a feature leads its finding."""


def percent(share: float) -> str:
    """A share in percent, with all of its digits."""
    return f"{share * 100:g} %"


def feature_in_words(by: By) -> str:
    """A feature as it is written in sentences, such as `sex and race`, or `sex = "male" vs all others`."""
    if by.sides is None:
        return " and ".join(by.names)
    return f"{_condition(by, 'privileged')} vs {_condition(by, 'unprivileged')}"


def group_in_words(by: By, group: str) -> str:
    """A group as tables and pictures show it, such as `female, Black`, or `sex = "male" (privileged)`."""
    if by.sides is not None:
        return f"{_condition(by, group)} ({group})" if group in {"privileged", "unprivileged"} else "on neither side"
    crossed = len(by.keys) > 1 and group.count(":") == len(by.keys) - 1
    return ", ".join(group.split(":")) if crossed else group


def group_in_sentence(by: By, group: str) -> str:
    """A group inside a sentence, such as `race = "Black"`, so that no name of a group is read as a word of it."""
    return group_in_words(by, group) if by.sides is not None else quoted_group(by.names, group)


def quoted_group(names: Sequence[str], group: str) -> str:
    """The values of a group with their features, such as `sex = "female", race = "Black"`."""
    values = group.split(":") if len(names) > 1 else [group]
    if len(values) != len(names):
        names, values = [":".join(names)], [group]
    return ", ".join(f"{name} = {_quoted(value)}" for name, value in zip(names, values, strict=True))


def _quoted(value: object) -> str:
    """A text in quotation marks, unless it has some; other values, and null, as they are."""
    is_plain = isinstance(value, str) and value != "null" and value[:1] not in {'"', "'"}
    return f'"{value}"' if is_plain else str(value)


def _condition(by: By, side: str) -> str:
    """The condition of a side, such as `sex = "male"`."""
    assert by.sides is not None  # noqa: S101 - callers have asked
    conditions = by.sides.conditions if side == "privileged" else by.sides.unprivileged
    if not conditions:
        return "all others"
    return " or ".join(
        " and ".join(f"{name} = {' or '.join(map(_quoted, values))}" for name, values in condition)
        for condition in conditions
    )


def disparity_in_words(row: Mapping[str, Any]) -> str:
    """The title of a disparity of a row of results, with the time, metric or label of which several it is about."""
    title = at_cut(short_title(row[".metric"]), row)
    if row.get(".base_metric") is not None:
        title += f", here {at_cut(in_prose(row['.base_metric']), row)}"
    if row.get(".level") is not None:
        title += f", label {row['.level']}"
    return title


def _in_unit(number: float, unit: str) -> str:
    """A number as it is written in sentences: a hundred times as large in `%` and in `points`."""
    return f"{number * 100:.1f} {unit}" if unit else number_in_digits(number)


def _is_share(metric: Metric) -> bool:
    """True for a share of rows, whose values are written in percent."""
    return share_of(metric.definition) is not None


@dataclass(frozen=True)
class Finding:
    """The finding on a feature: sentences on its leading disparity, and how certain that is."""

    by: By
    lead: str
    """The words that the finding starts with."""
    text: str
    """The values of the groups, the size of the disparity, its certainty, and the other disparities."""
    metric: Metric | None = None
    """The metric whose values differ; None for a disparity that is no comparison of two groups."""
    cut: Mapping[str, float] = field(default_factory=dict[str, float])
    """The threshold, time or quantile level that it is about, by its column, where results name it."""
    is_significant: bool | None = None
    """None where the disparity is not judged."""
    evidence: float = -1.0
    """The distance of the interval from equality; negative where the disparity is not significant."""


def finding_on(by: By, audit: AuditResults) -> Finding:
    """The finding on a feature of an audit, from its disparities and the values of its groups."""
    judged = audit.significance.outcomes
    parities = {parity.name: parity for parity in audit.metrics.parities if parity.by == by}
    is_own = (pl.col(".by") == by.text) & pl.col(".metric").is_in(list(parities))
    rows = audit.compared_results.filter(is_own).to_dicts()
    defined = [row for row in rows if row[".estimate"] is not None]
    if not defined:
        return Finding(by, f"No comparison by {feature_in_words(by)}:", f"{_why_not(by, rows, audit)}.")

    def rank(row: Mapping[str, Any]) -> tuple[bool, int, float]:
        """The order of disparities: significant ones before others, differences before ratios, then by size."""
        aggregate = parities[row[".metric"]].aggregate
        is_significant = judged.get(key_of(row), False)
        size = _evidence(row, aggregate) if is_significant else abs(row[".estimate"] - (aggregate.equality or 0.0))
        kind = _KINDS.index(aggregate.kind) if aggregate.kind in _KINDS else len(_KINDS)
        return is_significant, -kind, size

    row = max(defined, key=rank)
    parity = parities[row[".metric"]]
    others = [key_of(other) for other in defined if other is not row]
    outcomes = [judged[key] for key in others if key in judged]
    is_significant = judged.get(key_of(row))
    compared = _compared(by, row, parity, audit.groups)
    size = f"{_size(row, parity, compared)} ({_certainty(row, parity, audit.level)})"
    metric = None
    if parity.aggregate.kind in _KINDS and len(compared) == 1:
        metric, values = compared[0]
        lead, text = _sentence_on_metric(
            metric, values, size, row, is_significant=is_significant, has_others=bool(outcomes)
        )
    else:
        lead = capitalized(_metric_and_label(in_prose(parity.name), row))
        parts = [size, *(f"{at_cut(in_prose(one.name), row)} is {ends}" for one, ends in compared)]
        text = f"{'; '.join(parts)}."
        if is_significant is not None:
            text += f" It is {'' if is_significant else 'not '}significant."
    text += _on_others(outcomes)
    if left_out := left_out_in_words(row[".left_out"], partial(group_in_sentence, by), in_prose):
        text += f" Left out: {left_out}."
    evidence = _evidence(row, parity.aggregate) if is_significant else -1.0
    return Finding(by, f"{lead} by {feature_in_words(by)}:", text, metric, cut_of_row(row), is_significant, evidence)


def _sentence_on_metric(
    metric: Metric, values: str, size: str, row: Mapping[str, Any], *, is_significant: bool | None, has_others: bool
) -> tuple[str, str]:
    """The words before the feature, and the sentence on the values of two groups and the size of their disparity."""
    name = in_prose(metric.name)
    if is_significant is False:
        part = _metric_and_label(name, row)
        start = f"the largest is in {part}," if has_others else f"{part} is"
        return "No clear difference", f"{start} {values}, {size}."
    names = f"{name}s" if name.endswith("rate") else name
    verb = "" if is_significant is None else " differ" if names != name else " differs"
    return f"{capitalized(_metric_and_label(names, row))}{verb}", f"{values}, {size}."


def _metric_and_label(name: str, row: Mapping[str, Any]) -> str:
    """The name of a metric, with the label, time or quantile level of which several a disparity is about."""
    label = row.get(".level")
    return at_cut(name if label is None else f"{name} of label {label}", row)


def _on_others(outcomes: Sequence[bool]) -> str:
    """The sentence on the other disparities of a feature that are judged."""
    others, significant = len(outcomes), sum(outcomes)
    if others == 0:
        return ""
    if others == 1:
        return f" The other disparity is {'also' if significant else 'not'} significant."
    if significant == 0:
        return f" None of the other {others} disparities is significant."
    if significant == others:
        return f" All {others} other disparities are also significant."
    verb = "is" if significant == 1 else "are"
    return f" {significant} of the other {others} disparities {verb} also significant."


def _why_not(by: By, rows: Sequence[Mapping[str, Any]], audit: AuditResults) -> str:
    """The reason why the groups of a feature are not compared."""
    if not rows:
        return "no disparity is asked for"
    names = audit.groups.filter(pl.col(".by") == by.text)[".group"].n_unique()
    compared = audit.compared_groups(by)
    left_out = "the others are unknown or have too few rows"
    if len(compared) == 1:
        group = group_in_sentence(by, compared[0])
        if names == 1:
            return f"there is one group, {group}, and nothing to compare"
        return f"there is only one group to compare, {group}; {left_out}"
    if not compared:
        return "there is no group to compare; all are unknown or have too few rows"
    first = rows[0]
    return f"{at_cut(in_prose(first['.metric']), first)} has no value, because {reason(first['.status'])}"


def _evidence(row: Mapping[str, Any], aggregate: Aggregate) -> float:
    """The distance of an interval from equality; 0 where it includes it."""
    equality = aggregate.equality or 0.0
    low, high = row.get(".lower"), row.get(".upper")
    distances = [0.0 if low is None else low - equality, 0.0 if high is None else equality - high]
    return max(0.0, *(distance for distance in distances if math.isfinite(distance)))


def _compared(
    by: By, row: Mapping[str, Any], parity: GroupwiseMetric, groups: pl.DataFrame
) -> list[tuple[Metric, str]]:
    """The metrics that a disparity is made of, each with its lowest and its highest value in words."""
    metrics = [metric for metric in parity.metrics if metric.name == row.get(".base_metric")] or list(parity.metrics)
    is_known = (pl.col(".by") == by.text) & (pl.col(".status") != Status.UNKNOWN) & pl.col(".estimate").is_not_null()
    known = groups.filter(is_known)
    left_out = {(entry["group"], entry["metric"], entry["level"]) for entry in row[".left_out"] or ()}
    if row.get(".level") is not None:
        known = known.filter(pl.col(".level") == row[".level"])
    known = at_same_cut(known, row)
    compared: list[tuple[Metric, str]] = []
    for metric in metrics:
        values_of_metric = known.filter(pl.col(".metric") == metric.name)
        values: list[tuple[str, float]] = [
            (group, value)
            for group, level, value in values_of_metric.select(".group", ".level", ".estimate").rows()
            if (group, metric.name, level) not in left_out
        ]
        if len(metrics) == 1 and (row[".group_min"] or row[".group_max"]) is not None:
            compared.append((metric, _ends_of_row(by, row, parity.aggregate, metric, values)))
        elif len(values) > 1:
            (low, least), (high, most) = min(values, key=itemgetter(1)), max(values, key=itemgetter(1))
            names = (group_in_sentence(by, low), group_in_sentence(by, high))
            compared.append((metric, _ends_in_words(metric, names, (least, most))))
    return compared


def at_same_cut(values: pl.DataFrame, row: Mapping[str, Any]) -> pl.DataFrame:
    """The values at the threshold, time or quantile level of a row, and those that are at none."""
    for name in CUTS:
        if name in values.columns and name in row:
            values = values.filter(pl.col(name).eq_missing(pl.lit(row[name], values.schema[name])))
    return values


def _ends_of_row(
    by: By, row: Mapping[str, Any], aggregate: Aggregate, metric: Metric, values: Sequence[tuple[str, float]]
) -> str:
    """The groups that a disparity names, one of which may be a reference that is no group, and their values."""
    lowest, highest = row[".group_min"], row[".group_max"]
    value_of_group = dict(values)
    low, high = value_of_group.get(lowest), value_of_group.get(highest)
    if aggregate.kind in _KINDS and lowest is None:
        low = _other_value(high, row[".estimate"], aggregate.kind, is_higher=True)
    elif aggregate.kind in _KINDS and highest is None:
        high = _other_value(low, row[".estimate"], aggregate.kind, is_higher=False)
    reference = _CONTEXTS.get(str(getattr(aggregate, "to", None)), "the others")
    words = [reference if name is None else group_in_sentence(by, name) for name in (lowest, highest)]
    # different groups can have the same text
    texts = [group for group, _ in values]
    is_known = all(texts.count(name) == 1 for name in (lowest, highest) if name is not None)
    pair = (low, high) if is_known and low is not None and high is not None else None
    return _ends_in_words(metric, (words[0], words[1]), pair)


def _ends_in_words(metric: Metric, groups: tuple[str, str], values: tuple[float, float] | None) -> str:
    """The lowest and the highest value with their groups; groups alone where two of them have the same name."""
    low, high = groups
    if values is None:
        return f"lowest for {low} and highest for {high}"
    least, most = (_in_unit(value, "%" if _is_share(metric) else "") for value in values)
    return f"{least} for {low} and {most} for {high}"


def _other_value(value: float | None, estimate: float, kind: str, *, is_higher: bool) -> float | None:
    """The value of the reference, from that of the group, which may be higher or lower, and their disparity."""
    if value is None:
        return None
    if kind == "difference":
        return value - abs(estimate) if is_higher else value + abs(estimate)
    quotient = min(estimate, 1 / estimate) if estimate else 0.0
    if kind == "log_ratio":
        quotient = math.exp(-abs(estimate))
    if is_higher:
        return value * quotient
    return value / quotient if quotient else None


def _size(row: Mapping[str, Any], parity: GroupwiseMetric, compared: Sequence[tuple[Metric, str]]) -> str:
    """The size of a disparity, in words."""
    estimate, kind = row[".estimate"], parity.aggregate.kind
    if kind not in _KINDS or len(compared) != 1:
        return _in_unit(estimate, _unit_of(parity))
    if kind == "difference":
        return f"{_in_unit(abs(estimate), _unit_of(parity))} apart"
    return f"a {kind.replace('_', ' ')} of {number_in_digits(estimate)}"


def _unit_of(parity: GroupwiseMetric) -> str:
    """The unit in which a disparity is written: percent of an extreme share, points between shares."""
    if not all(map(_is_share, parity.metrics)):
        return ""
    if parity.aggregate.is_extreme:
        return "%"
    return "points" if parity.aggregate.is_difference else ""


def _certainty(row: Mapping[str, Any], parity: GroupwiseMetric, level: float | None) -> str:
    """The confidence interval of a disparity, or why there is none."""
    if level is None:
        return "no intervals asked for"
    low, high = row[".lower"], row[".upper"]
    if low is None and high is None:
        return "no confidence interval"
    if parity.aggregate.is_difference and row[".estimate"] < 0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    unit = _unit_of(parity)
    ends = [None if end is None else _in_unit(end, unit).removesuffix(f" {unit}") for end in (low, high)]
    return f"{percent(level)} CI {ends_in_words(*ends)}"
