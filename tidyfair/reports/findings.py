"""Findings of an audit, and their sentences: whether the groups of a feature differ, how far, and how certain that is.

Groups differ, they are alike within a margin, or there are too few rows to tell; and who is not compared is a finding
too. Pages and the command line lay out the same sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, get_args

import polars as pl

from tidyfair.audits import Answer, AuditResults, is_percent
from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.errors import Status
from tidyfair.evaluation import lacks_prediction, missing_in_words
from tidyfair.intervals import share_of
from tidyfair.metrics import at_cut, capitalized, in_prose, short_title, title_of
from tidyfair.metrics.catalog import comparison_named, metric_named
from tidyfair.reports.plots import listed_names
from tidyfair.reports.tables import in_unit, interval_in_words, left_out_in_words, number_in_digits, reason
from tidyfair.specs import CUTS, OVER_LABELS, Aggregate, By, RowKey, cut_of_row, key_of
from tidyfair.tallies import ESTIMATE, TRUTH

_SELECTED, _EVENTS, _RIGHT = frozenset({"tp", "fp"}), frozenset({"tp", "fn"}), frozenset({"tp", "tn"})
_ROWS = frozenset({"tp", "fp", "fn", "tn"})
"""The rows with a truth and a prediction, as cells of their table."""
_IN_THE_UNIT_OF_THE_TRUTH = frozenset({"mae", "mean_prediction", "mean_truth", "residual_bias", "rmse"})


@dataclass(frozen=True)
class DataWords:
    """The columns and labels that metrics of an audit are about."""

    truth: str
    estimate: str
    """The column of predictions, or of the scores that decisions are made of."""
    scores: str
    labels: tuple[Any, ...]
    event: Any
    """The label that is read against the others; None without one."""
    cut: str = ""
    """The rule by which scores select the event, such as ` ≥ 0.5`."""

    @classmethod
    def of(cls, audit: AuditResults) -> DataWords:
        """The words for an audit."""
        tally = audit.tally
        labels = audit.metrics.labels(tally, audit.options)
        event = None if labels is None or labels.event is None else labels.values[labels.event]
        scores, cut = "" if tally.scores is None else tally.scores.columns[0].name, ""
        estimate = scores if tally.estimate is None else tally.estimate.name
        if tally.cut is not None:
            # one that is chosen from the rows has no value before
            is_one = tally.cut.option == "threshold" and len(tally.cut.values) == 1 and not tally.cut.groups
            cut = f" \N{GREATER-THAN OR EQUAL TO} {tally.cut.values[0]:g}" if is_one else " high enough to be selected"
        truth = "" if tally.truth is None else tally.truth.name
        return cls(truth, estimate, scores, () if labels is None else labels.values, event, cut)

    def meaning(self, metric: Metric, level: Any = None) -> str:
        """A metric in the words of the data, such as `of rows with repaid = "yes", the share with approved = "yes"`.

        Other metrics are `the` with their name, and what its brackets say.
        `level` is the label that it is about, if it has a value for each.
        """
        # `.level` is the text of a label
        event = self.event if level is None else next((one for one in self.labels if str(one) == level), level)
        share = share_of(metric.definition)
        if metric.name == "roc_auc" and event is not None:
            return (
                f"of pairs of a row with {_equals(self.truth, event)} and one without, "
                f"the share in which {self.scores} is higher for the first"
            )
        if share is None or event is None:
            title, name = title_of(metric.name), in_prose(metric.name)
            _, bracket, rest = title.partition(" (")
            return f"the {name}{bracket}{rest}"
        among, holds = share.among & _ROWS, share.holds & _ROWS
        conditions = self._conditions(event)
        rows = "" if among == _ROWS else next((text for cells, text in conditions if cells == among), None)
        held = next((text for cells, text in conditions if cells & among == holds and cells != among), None)
        if rows is None or held is None:
            return f"the {in_prose(metric.name)}"
        return f"of rows with {rows}, the share with {held}" if rows else f"the share with {held}"

    def unit_of(self, metric: Metric) -> str:
        """The unit of the values of a metric of numbers, as the end of a sentence; empty for others."""
        return f", in the unit of {self.truth}" if metric.name in _IN_THE_UNIT_OF_THE_TRUTH else ""

    def _conditions(self, event: Any) -> list[tuple[frozenset[str], str]]:
        """The rows that have, or do not have, a truth, a prediction, or a prediction that is right."""
        others = [label for label in self.labels if label != event]
        decided = f"{self.estimate}{self.cut}" if self.cut else _equals(self.estimate, event)
        is_two = len(others) == 1
        otherwise = decided.replace(" = ", " other than ") if not is_two else _equals(self.estimate, others[0])
        if self.cut:
            otherwise = decided.replace("\N{GREATER-THAN OR EQUAL TO}", "<").replace(" high enough", " too low")
        truth = _equals(self.truth, event)
        not_truth = _equals(self.truth, others[0]) if is_two else truth.replace(" = ", " other than ")
        return [
            (_SELECTED, decided), (_ROWS - _SELECTED, otherwise), (_EVENTS, truth), (_ROWS - _EVENTS, not_truth),
            (_RIGHT, "a right prediction"), (_ROWS - _RIGHT, "a wrong prediction"),
        ]  # fmt: skip


def _equals(column: str, label: Any) -> str:
    """A column that has a label, such as `repaid = "yes"`."""
    return f'{column} = "{label}"' if isinstance(label, str) else f"{column} = {label}"


_CONTEXTS = {"rest": "all other groups", "overall": "all groups together"}
"""The references of disparities that are no group."""
_VERBS: Mapping[Answer, tuple[str, str]] = {
    "differ": ("differs", "differ"), "too few rows to tell": ("has too few rows to tell", "have too few rows to tell"),
    "not shown to differ": ("is not shown to differ", "are not shown to differ"), "alike": ("is alike", "are alike"),
}  # fmt: skip
"""What is said of one comparison, and of several."""
_MOST_STRAY = 3
"""The most stray labels that are named."""
_KINDS = ("difference", "ratio", "log_ratio")
"""The kinds of disparities between two groups; the first of a feature leads its finding."""


def percent(share: float) -> str:
    """A share in percent, with all of its digits."""
    return f"{share * 100:g}%"


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
    values = group.split(":") if crossed else [group]
    return ", ".join("Unknown" if value == "null" else value for value in values)


def names_of_groups(by: By, values: pl.DataFrame) -> dict[str, str]:
    """The groups of some values as tables and pictures show them; those that are unknown say that they are apart."""
    unknown = set(values.filter(pl.col(".status") == Status.UNKNOWN.value)[".group"])
    apart = {group: " (not compared)" if group in unknown else "" for group in values[".group"].drop_nulls().unique()}
    return {group: f"{group_in_words(by, group)}{remark}" for group, remark in apart.items()}


def group_in_sentence(by: By, group: str) -> str:
    """A group inside a sentence, such as `race = "Black"`, so that no name of a group is read as a word of it."""
    return group_in_words(by, group) if by.sides is not None else quoted_group(by.names, group)


def quoted_group(names: Sequence[str], group: str) -> str:
    """The values of a group with their features, such as `sex = "female", race = "Black"`."""
    values = group.split(":") if len(names) > 1 else [group]
    if len(values) != len(names):
        names, values = [":".join(names)], [group]
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} unknown" if value == "null" else f"{name} = {_quoted(value)}" for name, value in pairs)


def _quoted(value: object) -> str:
    """A text in quotation marks, unless it has some; other values as they are."""
    is_plain = isinstance(value, str) and value[:1] not in {'"', "'"}
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


def units_of(metrics: Iterable[Metric | GroupwiseMetric]) -> dict[str, str]:
    """The unit of each metric that has one: percent of shares, and points between them."""
    units = {metric.name: unit_of(metric) for metric in metrics}
    return {name: unit for name, unit in units.items() if unit}


def units_of_names(names: Iterable[str]) -> dict[str, str]:
    """The unit of each metric and disparity of the catalogue that has one."""
    metrics = [
        metric_named(name) or (factory.typical if (factory := comparison_named(name)) else None) for name in names
    ]
    return units_of(metric for metric in metrics if metric is not None)


def unit_of(metric: Metric | GroupwiseMetric) -> str:
    """The unit in which a metric is written; empty for plain numbers."""
    if not all(map(is_percent, metric.metrics if isinstance(metric, GroupwiseMetric) else [metric])):
        return ""
    if isinstance(metric, Metric) or metric.aggregate.is_extreme:
        return "%" if metric.range[0] == 0 else "points"
    return "points" if metric.aggregate.is_difference else ""


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
    level: str | None = None
    """The label that it is about, where the metric has a value for each."""
    answer: Answer | None = None
    """None where the disparity is not judged."""
    evidence: float = -1.0
    """The distance of the interval from equality; negative where groups are not shown to differ."""


def finding_on(by: By, audit: AuditResults) -> Finding:
    """The finding on a feature of an audit, from its disparities and the values of its groups."""
    answers = audit.answers
    parities = {parity.name: parity for parity in audit.metrics.parities if parity.by == by}
    is_own = (pl.col(".by") == by.text) & pl.col(".metric").is_in(list(parities))
    rows = audit.compared_results.filter(is_own).to_dicts()
    defined = [row for row in rows if row[".estimate"] is not None]
    if not defined:
        return Finding(by, f"No comparison by {feature_in_words(by)}:", f"{_why_not(by, rows, audit)}.")

    row = max(defined, key=lambda row: _rank(row, parities[row[".metric"]].aggregate, answers.get(key_of(row))))
    parity, answer, feature = parities[row[".metric"]], answers.get(key_of(row)), feature_in_words(by)
    metric, text = _values_in_words(by, row, parity, audit)
    label = "" if row.get(".level") is None else f" of label {row['.level']}"
    name = at_cut(f"{in_prose(metric.name if metric else parity.name)}{label}", row)
    lead = f"{capitalized(name)}{' differs' if answer else ''} by {feature}:"
    others = {key_of(other): other for other in defined if other is not row}
    if answer and answer != "differ":
        margin = _margin_in_words(audit, parity)
        lead = f"{capitalized(answer)} by {feature}{f' within {margin}' if answer == 'alike' else ''}:"
        is_named = text.startswith(f"the {name}")
        start = "the largest gap" + ("" if is_named else f" is in {name}") if others else "" if is_named else name
        text = f"{start}: {text}" if start else text
        text += _doubt(answer, margin, row, parity, audit)
    evidence = _evidence(row, parity.aggregate) if answer == "differ" else -1.0
    text += f".{_on_others(others, answers)}"
    return Finding(by, lead, text, metric, cut_of_row(row), row.get(".level"), answer, evidence)


def _values_in_words(
    by: By, row: Mapping[str, Any], parity: GroupwiseMetric, audit: AuditResults
) -> tuple[Metric | None, str]:
    """The values of groups, the size of their disparity, and its certainty; and the metric of two groups."""
    compared = _compared(by, row, parity, audit.groups)
    size = f"{_size(row, parity, compared)} ({_certainty(row, parity, audit.level)})"
    if parity.aggregate.kind not in _KINDS or len(compared) != 1:
        return None, "; ".join([size, *(f"{at_cut(in_prose(one.name), row)} is {ends}" for one, ends in compared)])
    metric, values = compared[0]
    unit = "" if parity.aggregate.kind == "ratio" else DataWords.of(audit).unit_of(metric)
    return metric, f"{_meaning(metric, row, audit)} is {values}, {size}{unit}"


def _rank(row: Mapping[str, Any], aggregate: Aggregate, answer: Answer | None) -> tuple[int, int, float]:
    """The order of disparities: by their answers, differences before ratios, then by size."""
    order = get_args(Answer)
    size = abs(row[".estimate"] - (aggregate.equality or 0.0))
    kind = _KINDS.index(aggregate.kind) if aggregate.kind in _KINDS else len(_KINDS)
    position = order.index(answer) if answer else len(order)
    return -position, -kind, _evidence(row, aggregate) if answer == "differ" else size


def _doubt(
    answer: Answer, margin: str, row: Mapping[str, Any], parity: GroupwiseMetric, audit: AuditResults
) -> str:  # fmt: skip
    """What an answer leaves open, as the end of a sentence."""
    if answer == "alike":
        return ", small but beyond chance" if audit.significance.outcomes[key_of(row)] else ""
    doubt = "; no margin is set within which groups would be alike"
    if answer == "too few rows to tell":
        doubt = f", so that groups may be alike within {margin} or not"
    if _evidence(row, parity.aggregate) > 0:
        doubt += f"; among {len(audit.answers)} comparisons, chance may explain this one"
    return doubt


def _margin_in_words(audit: AuditResults, parity: GroupwiseMetric) -> str:
    """The margin within which groups are alike, and who has set it; empty without one."""
    if (within := audit.alike_within(parity)) is None:
        return ""
    if parity.aggregate.kind == "difference":
        size = f"{within[1] * 100:g} points" if unit_of(parity) else f"{within[1]:,g}"
    else:
        size = f"a {parity.aggregate.kind.replace('_', ' ')} of {number_in_digits(within[0])}"
    return f"{size} ({'the default margin' if audit.margin is None else 'the margin of this audit'})"


def _meaning(metric: Metric, row: Mapping[str, Any], audit: AuditResults) -> str:
    """The metric of a disparity in the words of the data; an average over labels has no rows of its own."""
    if row.get(".level") is None and row[".estimator"] in OVER_LABELS:
        return f"the {in_prose(metric.name)}, averaged over the labels,"
    return at_cut(DataWords.of(audit).meaning(metric, row.get(".level")), row)


def _on_others(others: Mapping[RowKey, Mapping[str, Any]], answers: Mapping[RowKey, Answer]) -> str:
    """The sentence on the other disparities of a feature, by their answers."""
    texts: list[str] = []
    for answer in get_args(Answer):
        names = [at_cut(in_prose(row[".metric"]), row) for key, row in others.items() if answers.get(key) == answer]
        if names:
            texts.append(f"{listed_names(names)} {_VERBS[answer][len(set(names)) > 1]}")
    return f" Other comparisons: {'; '.join(texts)}." if texts else ""


def remarks_on(audit: AuditResults) -> list[Finding]:
    """Findings on the people who are not compared, and on predictions that are missing or have a stray label."""
    tally, rows = audit.tally, audit.rows
    remarks: list[Finding] = []
    for by in audit.metrics.bys:
        feature = feature_in_words(by)
        cells = by.groups(tally.keys_of_cells(by.columns))
        any_of = " or ".join(column.name for column in by.columns)
        apart = {f"{capitalized(any_of)} is unknown for": by.is_unknown(cells)}
        if by.sides:
            apart[f"On neither side of {feature} are"] = cells.to_series() == "neither"
        why = "left out, as asked" if by.policy.unknown == "drop" else "not compared"
        for lead, is_apart in apart.items():
            if number := int(tally.cells["n"].filter(is_apart).sum()):
                text = f"{number:,} of {rows:,} rows, {number / rows:.1%}; {why}."
                if tally.suppression is not None:
                    text = f"some of {rows:,} rows; {why}."
                remarks.append(Finding(by, lead, text))
        if entries := _left_out_entries(audit, by):
            names = left_out_in_words(entries, partial(group_in_sentence, by), in_prose)
            few = f" Fewer than {audit.policy.min_n} rows that count are too few." if audit.policy.min_n > 1 else ""
            remarks.append(Finding(by, f"Not compared by {feature}:", f"{names}.{few}"))
    by = audit.metrics.bys[0]
    if (missing := missing_in_words(tally, audit.metrics.bys)) is not None:
        number = int(tally.cells["n"].filter(lacks_prediction(tally)).sum())
        shares = "".join(f"; {text}" for text in missing[1])
        remarks.append(
            Finding(by, "Predictions are missing", f"in {number:,} of {rows:,} rows, {number / rows:.1%}{shares}.")
        )
    if stray := _stray_labels(audit):
        remarks.append(Finding(by, "Stray labels:", stray))
    return remarks


def _left_out_entries(audit: AuditResults, by: By) -> list[Mapping[str, Any]]:
    """The known groups that disparities of a feature leave out, of which metrics and why, each of them once."""
    every = {metric.name for parity in audit.metrics.parities if parity.by == by for metric in parity.metrics}
    entries: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    metrics: dict[tuple[str, str], set[str]] = {}
    for left_out in audit.compared_results.filter(pl.col(".by") == by.text)[".left_out"].drop_nulls():
        for entry in left_out:
            # those on neither side are counted by themselves
            if entry["status"] != Status.UNKNOWN and not (by.sides and entry["group"] == "neither"):
                entries[entry["group"], entry["status"], entry["metric"], entry["level"]] = entry
                metrics.setdefault((entry["group"], entry["status"]), set()).add(entry["metric"])
    all_metrics = {"metric": "all metrics", "level": None}
    return [
        {**entry, **all_metrics} if metrics[group, status] == every and len(every) > 1 else entry
        for (group, status, *_), entry in entries.items()
    ]


def _stray_labels(audit: AuditResults) -> str:
    """The labels that are predicted and never true, with their rows; empty without any."""
    tally = audit.tally
    if tally.truth is None or tally.estimate is None or audit.metrics.labels(tally, audit.options) is None:
        return ""
    is_stray = ~tally.cells[ESTIMATE].cast(pl.String).is_in(tally.cells[TRUTH].cast(pl.String).implode())
    stray = tally.cells.filter(is_stray & tally.cells[TRUTH].is_not_null()).drop_nulls(ESTIMATE)
    counts = stray.group_by(pl.col(ESTIMATE).cast(pl.String)).agg(pl.col("n").sum()).sort("n", descending=True).rows()
    texts = [f"{_quoted(label)} in {number:,} {'row' if number == 1 else 'rows'}" for label, number in counts]
    if not texts:
        return ""
    more = f" and {len(texts) - _MOST_STRAY} more" if len(texts) > _MOST_STRAY else ""
    text = f"{tally.estimate.name} is {', '.join(texts[:_MOST_STRAY])}{more}, which {tally.truth.name} never is"
    event = audit.metrics.event(tally, audit.options)
    return f"{text}; " + (f"it counts as other than {_quoted(event)}." if event is not None else "it is never right.")


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
    least, most = (in_unit(value, unit_of(metric)) for value in values)
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
        return in_unit(estimate, unit_of(parity))
    if kind == "difference":
        return f"{in_unit(abs(estimate), unit_of(parity))} apart"
    return f"a {kind.replace('_', ' ')} of {number_in_digits(estimate)}"


def _certainty(row: Mapping[str, Any], parity: GroupwiseMetric, level: float | None) -> str:
    """The confidence interval of a disparity, or why there is none."""
    if level is None:
        return "no intervals asked for"
    low, high = row[".lower"], row[".upper"]
    if low is None and high is None:
        return "no confidence interval"
    if parity.aggregate.is_difference and row[".estimate"] < 0:
        low, high = (None if high is None else -high), (None if low is None else -low)
    return f"{percent(level)} CI {interval_in_words(low, high, unit_of(parity))}"
