"""Findings of an audit in sentences: how far the groups of a feature differ, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.errors import Status
from tidyfair.inference.gates import FAIL, PASS, UNSURE
from tidyfair.intervals.shares import share_of
from tidyfair.metric_sets import GroupwiseMetric, Metric
from tidyfair.metrics.classification import selection_rate
from tidyfair.metrics.titles import in_prose, title_of
from tidyfair.reports.blocks import Finding, Verdict, Verdicts
from tidyfair.reports.tables import rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidyfair.inference.gates import Gate
    from tidyfair.specs.groups import By

__all__: list[str] = []

_REASONS: dict[str, str] = {
    Status.ZERO_DENOMINATOR: "no row of the group counts for this metric",
    Status.ONE_CLASS: "all rows of the group have the same label",
    Status.NO_EVENTS: "no row of the group has the event",
    Status.TOO_FEW_GROUPS: "fewer than two groups can be compared",
    Status.UNSEEN_EVENT: "the event does not occur",
    Status.CONSTANT: "all values of the group are the same",
}
"""Reasons why a value is undefined, as a reader needs them."""


def percent(share: float) -> str:
    """A share in percent, with all of its digits."""
    return f"{share * 100:g} %"


def feature_in_words(by: By) -> str:
    """A feature as it is written in sentences, such as `sex and race`."""
    return by.text if by.sides else " and ".join(column.name for column in by.columns)


def features_in_words(bys: Sequence[By]) -> dict[str, str]:
    """The words for the features of results, by their text in `.by`."""
    return {by.text: feature_in_words(by) for by in bys}


def group_in_words(by: By, group: str) -> str:
    """A group as it is written in sentences, such as `female, Black`."""
    crossed = by.sides is None and len(by.columns) > 1 and group.count(":") == len(by.columns) - 1
    return ", ".join(group.split(":")) if crossed else group


def reason(status: str) -> str:
    """The words for a reason why there is no value."""
    return _REASONS.get(status) or Status.text_of(status)


def of_percents(metric: Metric) -> bool:
    """True for a share of rows, whose values are written in percent."""
    return share_of(metric.definition) is not None


@dataclass(frozen=True)
class Scale:
    """How values of a metric and their differences are written in sentences."""

    in_percent: bool

    def value(self, number: float) -> str:
        """A value."""
        return f"{number * 100:.1f} %" if self.in_percent else _text(number)

    def difference(self, number: float) -> str:
        """A difference of two values."""
        return f"{number * 100:.1f} points" if self.in_percent else _text(number)

    def interval(self, low: float | None, high: float | None, level: float) -> str:
        """A confidence interval of a difference, in brackets."""
        ends = [None if end is None else self.difference(end).removesuffix(" points") for end in (low, high)]
        if ends == [None, None]:
            return ""
        name = f"{percent(level)} CI"
        if ends[0] is None:
            return f" ({name} up to {ends[1]})"
        if ends[1] is None:
            return f" ({name} from {ends[0]})"
        return f" ({name} {ends[0]} to {ends[1]})"


def _text(number: float) -> str:
    """A number as text."""
    return str(rounded(pl.Series([number]))[0])


@dataclass(frozen=True)
class FeatureFinding:
    """What an audit finds for a feature: a sentence, and the metric whose values of groups show it."""

    by: By
    finding: Finding
    metric: str | None
    """The metric whose values are compared; None where no difference is computed."""
    evidence: float
    """The distance of the interval from no difference; negative where it includes none."""


def of_feature(
    by: By, parities: Sequence[GroupwiseMetric], results: pl.DataFrame, groups: pl.DataFrame, level: float
) -> FeatureFinding:
    """The finding on a feature, from its disparities and the values of its groups."""
    results = results.filter(pl.col(".by") == by.text)
    differences = {parity.name: parity for parity in parities if parity.by == by and parity.aggregate.is_difference}
    of_differences = results.filter(pl.col(".metric").is_in(list(differences)))
    if of_differences.is_empty():
        return _of_other_disparities(by, results, level)
    ranked = of_differences.with_columns(nearest_end().alias("nearest"))
    clear = ranked.filter((pl.col("nearest") > 0) & pl.col("nearest").is_finite()).sort("nearest", descending=True)
    words = feature_in_words(by)
    if clear.is_empty():
        return _no_difference(by, differences, of_differences, level)
    row = clear.row(0, named=True)
    metric = _rate_of(row, differences[row[".metric"]])
    if metric is None or row[".group_min"] is None or row[".group_max"] is None:
        return _of_several_rates(by, row, differences[row[".metric"]], level, _others(clear, of_differences))
    scale = Scale(of_percents(metric))
    name = in_prose(metric.name)
    plural = name.endswith("rate")
    lead = f"{_capital(name)}{'s differ' if plural else ' differs'} by {words}:"
    size = f"{scale.difference(abs(row['.estimate']))} apart"
    interval = scale.interval(*_ends(row), level)
    text = f"{_values(by, row, metric, groups, scale)}, {size}{interval}.{_others(clear, of_differences)}"
    return FeatureFinding(by, Finding(lead, text, is_clear=True), metric.name, row["nearest"])


def _of_several_rates(
    by: By, row: Mapping[str, Any], parity: GroupwiseMetric, level: float, others: str
) -> FeatureFinding:
    """The finding on a disparity that is no difference of two values, such as a mean of differences."""
    scale = Scale(all(of_percents(metric) for metric in parity.metrics))
    interval = scale.interval(*_ends(row), level)
    text = f"{scale.difference(abs(row['.estimate']))}{interval}.{others}"
    lead = f"{_capital(in_prose(parity.name))} by {feature_in_words(by)}:"
    return FeatureFinding(by, Finding(lead, text, is_clear=row["nearest"] > 0), None, row["nearest"])


def nearest_end() -> pl.Expr:
    """The distance of an interval from 0, negative where it includes 0."""
    # a signed difference may be clear on either side of 0
    return pl.max_horizontal(".lower", -pl.col(".upper"))


def _ends(row: Mapping[str, float | None]) -> tuple[float | None, float | None]:
    """The ends of the interval of the size of a difference."""
    low, high = row[".lower"], row[".upper"]
    if row[".estimate"] is not None and row[".estimate"] < 0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    return low, high


def _rate_of(row: Mapping[str, object], parity: GroupwiseMetric) -> Metric | None:
    """The metric whose values make a disparity; None where it is made of several, as a mean is."""
    for metric in parity.metrics:
        if metric.name == row.get(".base_metric"):
            return metric
    return parity.metrics[0] if len(parity.metrics) == 1 else None


def _values(by: By, row: Mapping[str, str], metric: Metric, groups: pl.DataFrame, scale: Scale) -> str:
    """The lowest and the highest value, and of which group they are."""
    low, high = row[".group_min"], row[".group_max"]
    of_metric = groups.filter((pl.col(".by") == by.text) & (pl.col(".metric") == metric.name))
    if row.get(".level") is not None:
        of_metric = of_metric.filter(pl.col(".level") == row[".level"])
    values = of_metric.filter(pl.col(".group").is_in([low, high]))
    of_group = dict(values.select(".group", ".estimate").rows())
    low_words, high_words = group_in_words(by, low), group_in_words(by, high)
    level = row.get(".level")
    of_label = "" if level is None else f" (label {level})"
    # different groups can have the same text
    if len(values) != 2 or low not in of_group or high not in of_group or None in of_group.values():
        return f"lowest for {low_words} and highest for {high_words}{of_label}"
    if metric.definition == selection_rate.definition and scale.in_percent:
        verb = "selected" if level is None else f"classified as {level}"
        return (
            f"{scale.value(of_group[low])} of {low_words} and {scale.value(of_group[high])} of {high_words} "
            f"rows are {verb}"
        )
    return f"{scale.value(of_group[low])} for {low_words} and {scale.value(of_group[high])} for {high_words}{of_label}"


def _others(clear: pl.DataFrame, differences: pl.DataFrame) -> str:
    """The sentence on the other disparities of a feature."""
    others, significant = len(differences) - 1, len(clear) - 1
    if others == 0:
        return ""
    if others == 1:
        return f" The other disparity is {'also' if significant else 'not'} significant."
    verb = "is" if significant == 1 else "are"
    if significant == 0:
        return f" None of the other {others} disparities is significant."
    if significant == others:
        return f" All {others} other disparities are also significant."
    return f" {significant} of the other {others} disparities {verb} also significant."


def _no_difference(
    by: By, differences: Mapping[str, GroupwiseMetric], results: pl.DataFrame, level: float
) -> FeatureFinding:
    """The finding that no difference is clear, with the largest of them."""
    words = feature_in_words(by)
    defined = results.filter(pl.col(".estimate").is_not_null())
    if defined.is_empty():
        why = reason(results[".status"][0])
        return FeatureFinding(by, Finding(f"No comparison by {words}:", f"{why}.", is_clear=False), None, -1)
    row = defined.sort(pl.col(".estimate").abs(), descending=True).row(0, named=True)
    parity = differences[row[".metric"]]
    metric = _rate_of(row, parity)
    if metric is None:
        return _of_several_rates(by, row | {"nearest": -1}, parity, level, "")
    scale = Scale(of_percents(metric))
    size = scale.difference(abs(row[".estimate"]))
    interval = scale.interval(*_ends(row), level)
    several = f" Of {len(results)} disparities, none is significant." if len(results) > 1 else ""
    lead = f"No clear difference by {words}:"
    if interval and row[".lower"] is None:
        # an interval without a lower end does not say whether there is a difference
        lead = f"Difference by {words}:"
    if not interval:
        lead, several = f"Difference by {words}:", " It has no confidence interval."
    verb = "the largest difference is" if len(results) > 1 else "the difference is"
    text = f"{verb} {size}, in {in_prose(metric.name)}{interval}.{several}"
    return FeatureFinding(by, Finding(lead, text, is_clear=False), metric.name, -1)


def _of_other_disparities(by: By, results: pl.DataFrame, level: float) -> FeatureFinding:
    """The finding on a feature with disparities that are no differences."""
    defined = results.filter(pl.col(".estimate").is_not_null())
    words = feature_in_words(by)
    if defined.is_empty():
        why = reason(results[".status"][0]) if len(results) else "no disparity is asked for"
        return FeatureFinding(by, Finding(f"No comparison by {words}:", f"{why}.", is_clear=False), None, -1)
    row = defined.row(0, named=True)
    interval = Scale(in_percent=False).interval(row[".lower"], row[".upper"], level)
    ends = ""
    if None not in (row[".group_min"], row[".group_max"]) and row[".group_min"] != row[".group_max"]:
        low, high = group_in_words(by, row[".group_min"]), group_in_words(by, row[".group_max"])
        ends = f"; lowest for {low} and highest for {high}"
    text = f"{_text(row['.estimate'])}{interval}{ends}."
    lead = f"{_capital(in_prose(row['.metric']))} by {words}:"
    return FeatureFinding(by, Finding(lead, text, is_clear=False), None, -1)


def of_gate(gate: Gate, verdicts: pl.DataFrame, words: Mapping[str, str]) -> Verdicts:
    """The verdict of a gate as a whole, and each of its verdicts."""
    sides: dict[tuple[str, str | None], str] = {}
    for metric, (side, _) in zip(gate.metrics, gate.limits, strict=True):
        by = metric.by.text if isinstance(metric, GroupwiseMetric) else None
        sides[metric.name, by] = side
    rows: list[Verdict] = []
    for row in verdicts.iter_rows(named=True):
        title = title_of(row[".metric"])
        by = row[".by"]
        if by is not None:
            title += f" by {words.get(by, by)}"
        numbers = "no value"
        if row[".estimate"] is not None:
            low, high = row[".lower"], row[".upper"]
            numbers = f"{_text(row['.estimate'])}{_between(low, high)}"
        elif row[".status"] not in {None, Status.OK}:
            numbers = f"no value, because {reason(row['.status'])}"
        side = sides.get((row[".metric"], by), "within")
        text = f"{_capital(numbers)}; must be {side} {row['.limit']:g}."
        if row[".groups_left_out"] and row[".verdict"] == UNSURE:
            text += " It cannot pass while groups are left out, which Exclusions lists."
        rows.append(Verdict(row[".verdict"], title, row[".metric"], text))
    order = {FAIL: 0, UNSURE: 1, PASS: 2}
    rows.sort(key=lambda row: order[row.verdict])
    overall = rows[0].verdict
    return Verdicts(overall, _headline(overall, rows), tuple(rows))


def _between(low: float | None, high: float | None) -> str:
    """The limits of an interval that gates decide by."""
    if low is None and high is None:
        return ""
    if low is None:
        return f" (up to {_text(high or 0.0)})"
    if high is None:
        return f" (from {_text(low)})"
    return f" ({_text(low)} to {_text(high)})"


def _headline(overall: str, verdicts: Sequence[Verdict]) -> str:
    """The verdict of a gate as a whole, in a sentence."""
    number, total = sum(one.verdict == overall for one in verdicts), len(verdicts)
    if overall == PASS:
        return "Pass: the limit is kept." if total == 1 else f"Pass: all {total} limits are kept."
    if overall == FAIL:
        if total == 1:
            return "Fail: the limit is not kept."
        return f"Fail: {number} of {total} limits {'is' if number == 1 else 'are'} not kept."
    if total == 1:
        return "Not enough evidence: the rows do not decide whether the limit is kept."
    return f"Not enough evidence: the rows do not decide {number} of {total} limits."


def _capital(text: str) -> str:
    """A text that starts with a capital letter."""
    return text[:1].upper() + text[1:]
