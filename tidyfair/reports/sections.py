"""The sections of a report: words, tables and figures made from a tally and its results."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import polars as pl

from tidyfair.audits import Answer, AuditResults, Significance, UsualMetrics, differences
from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.errors import ColumnError, Status
from tidyfair.evaluation import lacks_prediction, missing_by_group, texts_of
from tidyfair.metrics import at_cut, capitalized, in_prose, short_title, title_of
from tidyfair.metrics.classification import selection_rate, sens
from tidyfair.metrics.curves import calibration_curve, threshold_curve, with_limits_of_shares
from tidyfair.reports.blocks import Content, Facts, Figure, Folded, Part, Section, Table
from tidyfair.reports.findings import (
    Finding,
    at_same_cut,
    disparity_in_words,
    feature_in_words,
    group_in_sentence,
    group_in_words,
    names_of_groups,
    percent,
    quoted_group,
    units_of,
)
from tidyfair.reports.tables import (
    NOTHING,
    Note,
    Units,
    as_p_value,
    groups_side_by_side,
    in_unit,
    interval_in_words,
    left_out_in_words,
    reason,
    remarks_on_all_rows,
    too_few,
    with_interval,
    worse_groups,
)
from tidyfair.specs import CUTS, By, Column, Forecast, RowKey, cut_of_row, key_of, keys_of, names_of
from tidyfair.tallies import ESTIMATE, SCORE, TRUTH, Tally, ends_of, open_frame, presence_key

_PART, _BOTH, _NTH = "\0part", "\0both", "\0nth"
"""Internal columns, whose names no column of the user has."""
_CURVE_OPTIONS = ("truth", "probs", "pos_label", "labels", "case_weights")
_PERCENT: Units = {"": "%", "selection_rate": "%", "sens": "%"}
"""The units of curves over thresholds, and of calibration."""
_MOST_LINES, _MANY_GROUPS, _EXTREMES, _MOST_PANELS, _MOST_LABELS = 8, 20, 6, 9, 6
"""The most groups of a figure of lines, groups that are all drawn, lowest and highest groups that are drawn of more,
metrics beside each other, and labels that are columns of a table."""
_NARROW = 0.2
"""The range of scores below which thresholds are taken from it, and not from 0 to 1."""
_MOST_POINTS, _MOST_NAMED = 12, 12
"""The most times or quantile levels whose columns are named, and groups that are named as not drawn."""
_FEW_DISPARITIES, _FEW_ROWS, _MOST_ROWS = 8, 12, 24
"""The rows above which tables of disparities, of sizes, and of groups are folded."""
_ANSWERS: Mapping[Answer, str] = {
    "differ": "groups differ", "too few rows to tell": "there are too few rows to tell",
    "not shown to differ": "groups are not shown to differ", "alike": "groups are alike",
}  # fmt: skip


def facts_of(audit: AuditResults, given: Mapping[str, str | None]) -> Facts:
    """Facts about the audit."""
    tally, features = audit.tally, audit.metrics.bys
    facts = [(label, text) for label, text in given.items() if text is not None]
    facts.append(("Predictions", _predictions(tally)))
    if (event := audit.metrics.event(tally, audit.options)) is not None:
        facts.append(("Event", str(event)))
    if (cut := tally.cut) is not None:
        at = "one for each group" if cut.groups else repr(cut.point) if cut.point else f"{cut.values[0]:g}"
        facts.append((f"Decision {cut.option.replace('_', ' ')}", at))
    facts.append(("Features", "; ".join(map(feature_in_words, features))))
    facts.append(("Compared", audit.policy.in_words))
    if audit.level is not None:
        facts.append(("Alike", audit.margin_in_words))
    rows = f"{audit.rows:,}"
    if tally.weights is not None:
        rows += f", weighted by {tally.weights.name}"
    facts.append(("Rows", rows))
    if tally.suppression is not None:
        facts.append(("Small counts", tally.suppression.in_words))
    return Facts(tuple(facts))


def _predictions(tally: Tally) -> str:
    """The columns of predictions and truth."""
    columns = [] if tally.estimate is None else [tally.estimate.name]
    if tally.scores is not None:
        columns += [f"{column.name} (scores)" for column in tally.scores.columns]
    if tally.forecast is not None:
        columns += _columns_of_forecast(tally.forecast)
    text = ", ".join(columns)
    if tally.truth is not None:
        text += f", against {tally.truth.name}"
    if tally.forecast is not None and tally.forecast.event is not None:
        text += f" (times until the event {tally.forecast.event.name}, or censoring)"
    return text


def _columns_of_forecast(forecast: Forecast) -> list[str]:
    """The columns of an interval with its level, of quantiles, or of survival probabilities by time."""
    if not forecast.columns:
        return []
    if forecast.level is not None:
        lower, upper = forecast.columns
        return [f"the interval {lower.name} to {upper.name} (level {percent(forecast.level)})"]
    kinds, at = ("survival probability", "survival probabilities"), "at time "
    if not forecast.is_survival:
        kinds, at = ("quantile", "quantiles"), "level "
    by_point = zip(forecast.columns, forecast.points, strict=True)
    first, *others = [f"{column.name} ({at}{point:.15g})" for column, point in by_point]
    more = [f"and {len(others) + 1 - _MOST_POINTS} more"] if len(others) >= _MOST_POINTS else []
    return [f"the {kinds[bool(others)]} {first}", *others[: _MOST_POINTS - 1], *more]


def disparities_section(audit: AuditResults) -> Section:
    """The disparities with their intervals and tests."""
    disparities = audit.compared_results.filter(pl.col(".by").is_not_null())
    features = {by.text: by for by in audit.metrics.bys}
    significance, level = audit.significance, audit.level
    if disparities.is_empty():
        return Section("Disparities", (), "No disparity is asked for.")
    tested = significance.tested
    has_tests = tested is not None and tested[".expected_lower"].count() > 0
    words = {text: feature_in_words(by) for text, by in features.items() if by.sides}
    in_words = pl.col(".by").replace(words)
    table = _disparities(disparities, audit, features)
    number = len(table.table)
    blocks: list[Content] = [Folded(f"All {number} disparities", (table,)) if number > _FEW_DISPARITIES else table]
    if disparities[".estimate"].count():
        options = {"beside": tested.with_columns(in_words)} if tested is not None and has_tests else {}
        units = units_of(audit.metrics.parities)
        # who is left out is a finding, and a note in the table
        drawn = disparities.with_columns(in_words).drop(".left_out")
        blocks.insert(0, Figure(drawn, "Disparities between groups", options, units=units))
        if level is not None:
            blocks.append(Folded("How to read this", _explained(audit, level, has_tests=has_tests)))
    return Section("Disparities", tuple(blocks), _answers_in_words(disparities, audit))


def _explained(audit: AuditResults, level: float, *, has_tests: bool) -> tuple[str, ...]:
    """The meaning of intervals, tests and answers."""
    error = percent(audit.significance.error)
    intervals = (
        f"Intervals are {percent(level)} confidence intervals. Two groups can differ although their own intervals "
        "overlap: look at the interval of the disparity."
    )
    tests = (
        "Expected if equal: the disparities whose p would be 0.05 or more in the same test. "
        "p: how often equal groups would show a disparity this large."
    )
    rule = "its whole interval is on one side of the value for equal groups: 0, or 1 for a ratio"
    if has_tests:
        rule = f"its p-value is below {error} or, without a test, if {rule}"
    answers = (
        f"Groups differ if {rule}. They are alike if the whole interval is within the margin: "
        f"{audit.margin_in_words}. Otherwise there are too few rows to tell; without a margin nothing is alike."
    )
    adjustment = (
        "P-values, and the intervals by which groups differ, are adjusted for the number of disparities on this page "
        f"(Holm): if all groups are equal, the probability that any of them differ is at most {error}. The intervals "
        "that are shown are not adjusted."
    )
    return intervals, *([tests] if has_tests else []), f"{answers} {adjustment}"


def _answers_in_words(disparities: pl.DataFrame, audit: AuditResults) -> str:
    """The finding on all disparities together."""
    if audit.level is None:
        count = "One disparity" if len(disparities) == 1 else f"{len(disparities)} disparities"
        return f"{count}; no intervals asked for."
    if not disparities[".estimate"].count():
        return "No groups can be compared."
    if not audit.answers:
        return "No disparity has a confidence interval or a test."
    counts = Counter(audit.answers.values())
    if len(audit.answers) == 1:
        return f"{_ANSWERS[next(iter(counts))].capitalize()}."
    texts = [f"in {counts[answer]} {_ANSWERS[answer]}" for answer in get_args(Answer) if counts[answer]]
    return f"Of {len(audit.answers)} comparisons, {'; '.join(texts)}."


def _disparities(disparities: pl.DataFrame, audit: AuditResults, features: Mapping[str, By]) -> Table:
    """The table of disparities."""
    units = units_of(audit.metrics.parities)
    position = pl.col(".by").replace_strict(list(features), range(len(features)), return_dtype=pl.Int64)
    disparities = disparities.sort(position, maintain_order=True)
    rows = disparities.to_dicts()
    texts: list[tuple[str | None, ...]] = []
    for row in rows:
        by = features[row[".by"]]
        ends = (row.get(".group_min"), row.get(".group_max"))
        groups = [None if group is None else group_in_words(by, group) for group in ends]
        texts.append((disparity_in_words(row), feature_in_words(by), *groups))
    table = _texts(["disparity", "feature", "lowest", "highest"], texts)
    table = table.with_columns(with_interval(disparities, units=units).alias("value"))
    if audit.answers:
        answers = [audit.answers.get(key_of(row)) for row in rows]
        table = table.with_columns(pl.Series("answer", answers, dtype=pl.String))
    table = table.hstack(_tests(disparities, audit.significance, units))
    remark = "" if audit.level is None else small_print(audit.level)
    if "p" in table.columns and table["p"].has_nulls():
        remark += f" {NOTHING}: no test. Tests are of rates; other disparities are judged by their intervals."
    notes: list[Note] = []
    for index, row in enumerate(rows):
        if row[".status"] not in {None, Status.OK}:
            notes.append(("value", index, reason(row[".status"])))
        if left_out := left_out_in_words(row[".left_out"], partial(group_in_words, features[row[".by"]]), in_prose):
            notes.append(("disparity", index, f"left out: {left_out}"))
    return Table(table, tuple(notes), remark, codes=tuple(row[".metric"] for row in rows))


def _tests(disparities: pl.DataFrame, significance: Significance, units: Units) -> pl.DataFrame:
    """The tests of disparities as columns of their table; without one, the adjusted p-value is known to a bound."""
    columns: dict[str, list[str | None]] = {}
    keys, adjusted = keys_of(disparities), dict[RowKey, str]()
    signs = {True: "<", False: "\N{GREATER-THAN OR EQUAL TO}"}
    bounds = {key: f"{signs[outcome]} {significance.error:.3g}" for key, outcome in significance.outcomes.items()}
    if (tests := significance.tested) is not None:
        expected, ends_of_tests = dict[RowKey, str](), tests.select(".metric", ".expected_lower", ".expected_upper")
        for key, name, low, high in zip(keys_of(tests), *ends_of_tests, strict=True):
            expected[key] = interval_in_words(low, high, units.get(name, ""))
        p_values, adjusted = (
            dict(zip(keys_of(tests), as_p_value(tests[name]), strict=True)) for name in (".p_value", ".p_adjusted")
        )
        if expected:
            columns["expected if equal"] = [expected.get(key) for key in keys]
            columns["p"] = [p_values.get(key) for key in keys]
    if bounds:
        columns["p, adjusted"] = [adjusted[key] if key in adjusted else bounds.get(key) for key in keys]
    return pl.DataFrame(columns, dict.fromkeys(columns, pl.String))


def _texts(columns: Sequence[str], rows: Sequence[tuple[str | None, ...]]) -> pl.DataFrame:
    """A table of texts."""
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def small_print(level: float) -> str:
    """The remark on the intervals of a table."""
    return f"In small print: {percent(level)} confidence intervals."


@dataclass(frozen=True)
class GroupValues:
    """The values of groups, and what is needed to show them."""

    values: pl.DataFrame
    """Values of all rows and of the groups that are compared, by feature."""
    with_unknown: pl.DataFrame
    """The same with the values of unknown groups, which tables and pictures show."""
    worst: pl.DataFrame | None
    min_n: int
    units: Units
    level: float | None

    def part_of(self, finding: Finding, *, is_drawn: bool) -> Part:
        """The groups of the feature of a finding: those that are worse than all rows, and all values.

        Of many groups there is one picture, which is not repeated where the page opens with it.
        """
        by = finding.by
        feature_values = self.values.filter(pl.col(".by") == by.text)
        shown = feature_values.filter(pl.col(".n") >= self.min_n)
        heading = f"By {feature_in_words(by)}"
        if shown.is_empty():
            return Part(heading, (), f"No group has {self.min_n} rows.")
        values = self.with_unknown.filter(pl.col(".by") == by.text)
        blocks: list[Content] = []
        if feature_values[".group"].n_unique() <= _MANY_GROUPS:
            if not is_drawn or shown[".metric"].n_unique() > 1:
                blocks.append(self._figure(by, values.filter(pl.col(".n") >= self.min_n)))
            blocks += self._tables(by, values)
        else:
            # the lowest and the highest of many groups, and all of them in a table that folds
            if not is_drawn:
                blocks.append(self._leading_figure(finding, shown))
            ranked = _ranked(finding, shown)
            order = ranked.select(pl.col(".group").unique(maintain_order=True)).with_row_index(_NTH)
            values = values.join(order, on=".group", how="left", maintain_order="left")
            values = values.sort(_NTH, nulls_last=True, maintain_order=True).drop(_NTH)
            blocks += [self._extremes(by, shown), *self._tables(by, values, fold=True)]
        return Part(heading, tuple(blocks), self._finding(finding, feature_values, shown))

    def figures_of(self, finding: Finding) -> list[Content]:
        """The picture of the metric of a finding, where there is any to be shown."""
        shown = self.values.filter((pl.col(".by") == finding.by.text) & (pl.col(".n") >= self.min_n))
        return [] if finding.metric is None or shown.is_empty() else [self._leading_figure(finding, shown)]

    def _leading_figure(self, finding: Finding, shown: pl.DataFrame) -> Figure:
        """The picture of one metric: of all groups, or of the lowest and the highest of many."""
        metric, cut = _leading(finding, shown)
        label = "" if finding.level is None else f" of label {finding.level}"
        name, words = f"{capitalized(in_prose(metric))}{label}", feature_in_words(finding.by)
        if shown[".group"].n_unique() <= _MANY_GROUPS:
            is_drawn = (pl.col(".by") == finding.by.text) & (pl.col(".metric") == metric) & (pl.col(".n") >= self.min_n)
            drawn = self.with_unknown.filter(is_drawn)
            if finding.level is not None:
                drawn = drawn.filter(pl.col(".level") == finding.level)
            return self._figure(finding.by, drawn, f"{name} by {words}")
        ranked = _ranked(finding, shown)
        ends = pl.concat([ranked.head(_EXTREMES), ranked.tail(_EXTREMES)]).unique(maintain_order=True)
        title = f"{at_cut(name, cut)}: the lowest and the highest of {len(ranked):,} groups of {words}"
        return self._figure(finding.by, ends, title)

    def _figure(self, by: By, shown: pl.DataFrame, title: str = "") -> Figure:
        """The picture of the values of groups: of as many metrics as there is room for."""
        panels = shown.select(".metric", ".level").unique()
        if len(panels) > _MOST_PANELS:
            shown = shown.filter(pl.col(".metric") == shown[".metric"][0])
        names = pl.col(".group").replace_strict(names_of_groups(by, shown), return_dtype=pl.String)
        # labels are drawn as they are chosen, and all rows with them
        levels = shown[".level"].unique().implode()
        overall = self._values_of_all_rows(shown).filter(pl.col(".level").is_in(levels, nulls_equal=True))
        result = pl.concat([overall, shown.with_columns(names)])
        metrics = shown[".metric"].unique()
        name = capitalized(in_prose(metrics[0])) if len(metrics) == 1 else "Metrics"
        title = title or f"{name} by {feature_in_words(by)}"
        return Figure(result, title, units=self.units)

    def _values_of_all_rows(self, values: pl.DataFrame) -> pl.DataFrame:
        """The values of all rows, of the metrics of some values."""
        metrics = values[".metric"].unique().implode()
        return self.values.filter(pl.col(".by").is_null() & pl.col(".metric").is_in(metrics))

    def _finding(self, finding: Finding, values: pl.DataFrame, shown: pl.DataFrame) -> str:
        """The groups that are worse than all rows, or how many groups there are and the range of a metric."""
        by = finding.by
        known = values.filter(pl.col(".status") != Status.UNKNOWN.value)
        number = known[".group"].n_unique()
        hidden = known.filter(pl.col(".n") < self.min_n)[".group"].n_unique()
        count = f"{number} groups" if number != 1 else "One group"
        if hidden:
            count += f", of which {hidden} {'has' if hidden == 1 else 'have'} fewer than {self.min_n} rows"
        if len(known) < len(values):
            count += ", and rows whose group is unknown"
        if number == 1:
            return f"{count}."
        if self.worst is None or self.worst.filter(pl.col(".by") == by.text).is_empty():
            return f"{count}. {self._spread(finding, shown)}"
        worse: dict[str, list[str]] = {}
        worse_rows = worse_groups(self.worst, self.values).filter(pl.col(".by") == by.text)
        for group, metric in worse_rows.select(".group", ".metric").rows():
            worse.setdefault(group_in_sentence(by, group), []).append(metric)
        if not worse:
            return f"{count}. None is significantly worse than all rows together."
        parts = [f"{group} ({', '.join(map(in_prose, metrics))})" for group, metrics in list(worse.items())[:4]]
        more = f", and {len(worse) - len(parts)} more" if len(worse) > len(parts) else ""
        return f"{count}. Significantly worse than all rows together: {'; '.join(parts)}{more}."

    def _spread(self, finding: Finding, shown: pl.DataFrame) -> str:
        """The lowest and the highest value of the leading metric."""
        ranked = _ranked(finding, shown)
        if len(ranked) < 2:
            return ""
        metric, cut = _leading(finding, shown)
        texts = [in_unit(value, self.units.get(metric, "")) for value in ranked[".estimate"]]
        ends = [f"{texts[end]} ({group_in_sentence(finding.by, ranked['.group'][end])})" for end in (0, -1)]
        label = ranked[".level"][0]
        of_label = "" if label is None else f" of label {label}"
        return f"{at_cut(f'{short_title(metric)}{of_label}', cut)} ranges from {ends[0]} to {ends[1]}."

    def _tables(self, by: By, values: pl.DataFrame, *, fold: bool = False) -> tuple[Content, ...]:
        """The values of groups: a table of metrics, and one for each metric that has values by label."""
        blocks: list[Content] = []
        plain, by_label = values.filter(pl.col(".level").is_null()), values.filter(pl.col(".level").is_not_null())
        if not plain.is_empty():
            blocks.append(self._table(by, plain))
        for metric in by_label[".metric"].unique(maintain_order=True):
            blocks.append(self._table_of_labels(by, metric, by_label.filter(pl.col(".metric") == metric)))
        if not fold and sum(len(block.table) for block in blocks if isinstance(block, Table)) <= _MOST_ROWS:
            return tuple(blocks)
        return (Folded(f"All groups of {feature_in_words(by)}", tuple(blocks)),)

    def _table(self, by: By, values: pl.DataFrame) -> Table:
        """The metrics of groups side by side."""
        overall = self._values_of_all_rows(values)
        table, notes = groups_side_by_side(pl.concat([overall, values]), self.worst, self.min_n, self.units)
        # the names of groups say who is not compared
        notes = [note for note in notes if note[2] != reason(Status.UNKNOWN)]
        names = names_of_groups(by, values)
        named = table.select(".group", ".by").rows()
        # a feature may be named like all rows
        groups = [names.get(group, "All rows") if text == by.text else "All rows" for group, text in named]
        table = table.drop(".by", ".level", strict=False).with_columns(pl.Series(".group", groups, dtype=pl.String))
        for name in set(CUTS) & set(table.columns):
            texts = [None if cut is None else f"{cut:.15g}" for cut in table[name]]
            table = table.with_columns(pl.Series(name, texts, dtype=pl.String))
        heads = {metric: (short_title(metric), metric) for metric in values[".metric"].unique()}
        remarks = remarks_on_all_rows(overall, values, self.min_n)
        if self.level is not None:
            remarks.insert(0, small_print(self.level))
        return Table(table, tuple(notes), " ".join(remarks), heads=heads)

    def _table_of_labels(self, by: By, metric: str, values: pl.DataFrame) -> Table:
        """A metric of groups, label by label."""
        enough = pl.when(pl.col(".n") >= self.min_n)
        texts = values.with_columns(
            enough.then(with_interval(values, units=self.units)).alias(_BOTH), pl.col(".n").max().over(".group")
        )
        texts = texts.with_columns(
            pl.int_range(pl.len()).over(".group", ".level").alias(_NTH), enough.then(".n").alias(".n")
        )
        texts = texts.with_columns(pl.col(".group").replace_strict(names_of_groups(by, values), return_dtype=pl.String))
        labels = texts[".level"].unique(maintain_order=True).to_list()
        if len(labels) <= _MOST_LABELS:
            wide = texts.pivot(".level", index=[".group", ".n", _NTH], values=_BOTH).drop(_NTH)
        else:
            wide = texts.select(".group", ".level", ".n", pl.col(_BOTH).alias(metric))
        heads = {label: (label, "") for label in labels} | {metric: (short_title(metric), metric)}
        remark = too_few(self.min_n) if (values[".n"] < self.min_n).any() else ""
        level = "" if self.level is None else f", with {percent(self.level)} confidence intervals"
        return Table(wide, (), remark, heads=heads, caption=f"{title_of(metric)}, by label{level}")

    def _extremes(self, by: By, shown: pl.DataFrame) -> Table:
        """The lowest and the highest group in each metric."""
        rows: list[tuple[str, ...]] = []
        codes: list[str] = []
        values_of_all = self.values.filter(pl.col(".by").is_null())
        overall = dict(zip(keys_of(values_of_all), with_interval(values_of_all, units=self.units), strict=True))
        cuts = [name for name in CUTS if name in shown.columns]
        for _, values in shown.group_by(".metric", ".level", *cuts, maintain_order=True):
            ranked = values.filter(pl.col(".estimate").is_not_null()).sort(".estimate", maintain_order=True)
            if ranked.is_empty():
                continue
            texts = with_interval(ranked, units=self.units)
            first = ranked.row(0, named=True)
            metric, level = first[".metric"], first[".level"]
            label = f", label {level}" if level is not None else ""
            all_rows = str(overall.get(key_of({**first, ".by": None}), NOTHING))
            lowest, highest = (group_in_words(by, ranked[".group"][end]) for end in (0, -1))
            title = f"{at_cut(short_title(metric), first)}{label}"
            rows.append((title, all_rows, lowest, texts[0], highest, texts[-1]))
            codes.append(metric)
        columns = ["metric", "all rows", "lowest", "value of the lowest", "highest", "value of the highest"]
        remark = "" if self.level is None else f"{small_print(self.level)} "
        remark += "The extremes of many groups are partly chance: the fewer rows a group has, the farther it strays."
        return Table(_texts(columns, rows), (), remark, tuple(codes))


def _leading(finding: Finding, shown: pl.DataFrame) -> tuple[str, Mapping[str, float]]:
    """The metric whose values lead the part of a feature: that of its finding, or else the first that is shown.

    With the time or quantile level that it is at, if there are several.
    """
    if finding.metric is not None:
        return finding.metric.name, finding.cut
    first = shown.row(0, named=True)
    return first[".metric"], cut_of_row(first)


def _ranked(finding: Finding, shown: pl.DataFrame) -> pl.DataFrame:
    """The values of the leading metric, and of its label if it has several, from the lowest to the highest."""
    metric, cut = _leading(finding, shown)
    metric_values = shown.filter((pl.col(".metric") == metric) & pl.col(".estimate").is_not_null())
    metric_values = at_same_cut(metric_values, cut)
    labels = metric_values[".level"].drop_nulls()
    if len(labels):
        metric_values = metric_values.filter(pl.col(".level") == (finding.level or labels[0]))
    return metric_values.sort(".estimate", maintain_order=True)


def _in_words(by: By, groups: pl.Series) -> pl.Series:
    """A column of groups in words."""
    return pl.Series(groups.name, [group_in_words(by, group) for group in groups], dtype=pl.String)


def data_section(audit: AuditResults) -> Section:
    """The number of rows, their weights, missing values, and the sizes of groups."""
    tally, rows = audit.tally, audit.rows
    missing = missing_of(tally)
    lacking = missing.filter(pl.col("missing") > 0)
    texts = [f"{number:,} without {name}" for name, _, number in lacking.rows()]
    kinds = "prediction" if tally.truth is None else "truth or prediction"
    finding = f"{rows:,} rows; {', '.join(texts) or f'no {kinds} is missing'}."
    blocks: list[Content] = []
    if tally.weights is not None:
        total, squares = float(tally.cells["w"].sum()), float(tally.cells["w2"].sum())
        blocks.append(
            f"The weights add up to {total:,.4g}; {total**2 / squares:,.0f} rows of equal weight are as precise."
        )
    if not lacking.is_empty():
        blocks.append(Table(lacking))
    sizes = [_sizes(tally, by, rows, audit.policy.min_n) for by in audit.metrics.bys]
    is_long = sum(len(table.table) for table in sizes) > _FEW_ROWS
    blocks += [Folded("Sizes of groups", tuple(sizes))] if is_long else sizes
    return Section("Data", tuple(blocks), finding)


def missing_of(tally: Tally) -> pl.DataFrame:
    """The number of rows that lack a value, by column."""
    tally = tally.over_points()
    columns: list[tuple[str, str, str]] = []
    if tally.truth is not None:
        event = tally.forecast.event if tally.forecast is not None else None
        columns.append((_either([tally.truth] if event is None else [tally.truth, event]), TRUTH, TRUTH))
    if tally.estimate is not None:
        columns.append((tally.estimate.name, ESTIMATE, ESTIMATE))
    if tally.scores is not None:
        # without a score there is no decision either
        key = SCORE if SCORE in tally.cells.columns else ESTIMATE
        for column in tally.scores.columns:
            columns.append((column.name, "scores", key))
    if tally.forecast is not None and tally.forecast.columns:
        columns.append((_either(tally.forecast.columns), tally.forecast.role, presence_key(tally.forecast)))
    rows = [(name, role, int(tally.cells.filter(pl.col(key).is_null())["n"].sum())) for name, role, key in columns]
    return pl.DataFrame(rows, schema=["column", "role", "missing"], orient="row")


def _either(columns: Sequence[Column]) -> str:
    """The columns of which a row lacks any, in words; of many the first and the last."""
    names = names_of(columns)
    if len(names) > _MOST_POINTS:
        return f"any of {names[0]} to {names[-1]}"
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _sizes(tally: Tally, by: By, rows: int, min_n: int) -> Table:
    """The number of rows of each group, whatever they lack, and the share without a prediction if there are any."""
    lacks = lacks_prediction(tally)
    counts = missing_by_group(tally, by, lacks)
    table = counts.with_columns(_in_words(by, counts["group"]))
    enough = pl.when(pl.col("rows") >= min_n)
    columns = [enough.then("rows").alias("rows"), enough.then(_percent(pl.col("rows") / rows)).alias("share")]
    if counts["missing"].sum():
        without = _percent(pl.col("missing") / pl.col("rows"))
        columns.append(enough.then(without).alias("without a prediction"))
    remark = too_few(min_n) if (table["rows"] < min_n).any() else ""
    return Table(table.select("group", *columns), (), remark, caption=f"By {feature_in_words(by)}")


def _percent(share: pl.Expr) -> pl.Expr:
    """Shares as texts."""
    return (share * 100).round(1).cast(pl.String) + "%"


def scores_sections(audit: AuditResults, data: Any, call: dict[str, Any]) -> list[Section]:
    """Rates along the threshold and calibration, by feature; nothing without a truth or a single column of scores."""
    tally, features, min_n = audit.tally, audit.metrics.bys, audit.policy.min_n
    if tally.scores is None or tally.scores.several or call["truth"] is None or tally.suppression is not None:
        # from threshold to threshold a curve counts few people
        return []
    columns = {name: call[name] for name in _CURVE_OPTIONS if name in call}
    thresholds = thresholds_of(tally)
    curve = threshold_curve(metric_set(*differences((selection_rate, sens), features)), thresholds)
    options = {name: call[name] for name in ("frequency_weights", "na_rm") if name in call}
    values = curve.by_group(data, **columns, **options, on_undefined="ignore")
    curves = open_frame(values).to_polars()
    if "frequency_weights" in call:
        # values are the same, and curves show nothing else
        columns["case_weights"] = call["frequency_weights"]
    cut = tally.cut
    has_threshold = cut is not None and cut.option == "threshold" and len(cut.values) == 1
    marked = {"at": cut.values[0]} if cut is not None and has_threshold else {}
    parts: list[Content] = []
    for by in features:
        blocks, fit = _rates(by, curves.filter(pl.col(".by") == by.text), thresholds[10:100:10], marked, min_n), ""
        # a calibration curve is of the groups of columns, and of rows that lack nothing
        if not by.sides and call.get("na_rm") is not False:
            drawn, fit = _calibration(by, data, call, columns, min_n)
            blocks += drawn
        parts.append(Part(f"By {feature_in_words(by)}", tuple(blocks), fit))
    finding = "Selection rate and sensitivity at each threshold, and event rates compared with scores."
    groups = curves.filter(pl.col(".n") >= min_n).group_by(".by").agg(pl.col(".group").n_unique())[".group"]
    if (groups > _MOST_LINES).any():
        finding += f" Of features with more than {_MOST_LINES} groups, the {_MOST_LINES} largest are shown."
    return [Section("Thresholds and calibration", tuple(parts), finding)]


def _rates(
    by: By, all_curves: pl.DataFrame, thresholds: list[float], marked: Mapping[str, Any], min_n: int
) -> list[Content]:
    """The figure of rates over the threshold of the groups of a feature, and the groups that are not in it."""
    curves = all_curves.filter(pl.col(".n") >= min_n)
    largest = _largest(curves, [".group"])
    not_drawn = _not_drawn(by, all_curves, curves, largest, f"there are fewer than {min_n} rows")
    words = feature_in_words(by)
    if largest.is_empty():
        return [f"Thresholds, by {words}: there is nothing to draw.", *not_drawn]
    drawn, table = largest.with_columns(_in_words(by, largest[".group"])), _at_thresholds(by, largest, thresholds)
    return [Figure(drawn, f"Rates at each threshold, by {words}", marked, table, _PERCENT), *not_drawn]


def _calibration(
    by: By, data: Any, call: Mapping[str, Any], columns: Mapping[str, Any], min_n: int
) -> tuple[list[Content], str]:
    """The figure of calibration in each group of a feature and the groups that are not in it; and its finding."""
    features: Any = list(by.features)
    title = f"Calibration, by {feature_in_words(by)}"
    try:
        bins = open_frame(calibration_curve(data, **columns, group_by=features, binning="count")).to_polars()
    except ColumnError as error:
        return [f"{title}, is not drawn: {error}"], ""
    if "frequency_weights" in call:
        # a row stands for as many rows as its weight
        bins = bins.with_columns(pl.col(".weight").cast(pl.Int64).alias(".n")).drop(".weight")
        bins = with_limits_of_shares(bins)
    names = by.names
    all_bins = bins.with_columns(texts_of(bins.select(names)).alias(".group"))
    enough = all_bins.filter(pl.col(".n") >= min_n)
    bins = _largest(enough, names)
    small = f"there are fewer than {min_n} rows in each of the ten bins of their scores"
    not_drawn = _not_drawn(by, all_bins, enough, bins, small)
    bins = bins.drop(".group")
    if bins.is_empty():
        return [f"{title}: there is nothing to draw.", *not_drawn], ""
    fit = _fit(bins, names)
    if len(names) > 1:
        # a picture names a group by all columns, as in "female, Black"
        groups = _in_words(by, texts_of(bins.select(names))).alias(feature_in_words(by))
        bins = bins.drop(names).insert_column(0, groups)
        names = [feature_in_words(by)]
    both = pl.format("{} / {}", _percent(pl.col(".mean_score")), _percent(pl.col(".event_rate")))
    texts = bins.select(*names, pl.format("bin {}", ".bin").alias(_PART), both.alias(_BOTH))
    remark = "Mean score / event rate in ten bins of equally many rows of each group, by increasing score."
    table = Table(texts.pivot(_PART, index=names, values=_BOTH), (), remark)
    return [Figure(bins, title, instead=table, units=_PERCENT), *not_drawn], fit


def _not_drawn(by: By, every: pl.DataFrame, enough: pl.DataFrame, drawn: pl.DataFrame, small: str) -> list[Content]:
    """The sentence on the groups of which no point is drawn, or none has enough rows, and why; nothing without any.

    `small` is the reason where no point of a group has enough rows.
    """
    shown, with_points = set(drawn[".group"]), set(enough[".group"])
    reasons: dict[str, list[str]] = {}
    for group in every[".group"].unique(maintain_order=True):
        if group not in shown:
            why = f"only the {_MOST_LINES} largest groups are" if group in with_points else small
            reasons.setdefault(why, []).append(group_in_words(by, group))
    sentences: list[str] = []
    for why, groups in reasons.items():
        more = f"; and {len(groups) - _MOST_NAMED} more" if len(groups) > _MOST_NAMED else ""
        sentences.append(f"Not drawn, because {why}: {'; '.join(groups[:_MOST_NAMED])}{more}.")
    return [" ".join(sentences)] if sentences else []


def _fit(bins: pl.DataFrame, names: list[str]) -> str:
    """The group whose mean score is farthest from its event rate."""
    share = pl.col(".n") / pl.col(".n").sum()
    groups = bins.group_by(names, maintain_order=True).agg(
        (pl.col(".mean_score") * share).sum().alias(".score"), (pl.col(".event_rate") * share).sum().alias(".rate")
    )
    farthest = groups.sort((pl.col(".score") - pl.col(".rate")).abs(), descending=True, maintain_order=True).head(1)
    group = quoted_group(names, texts_of(farthest.select(names))[0])
    score, rate = (in_unit(farthest[name].item(), "%") for name in (".score", ".rate"))
    return f"The mean score is farthest from the event rate for {group}: {score} compared with {rate}."


def thresholds_of(tally: Tally) -> list[float]:
    """A hundred steps from 0 to 1, or over the scores where they lie beyond, or close together."""
    low, high = 0.0, 1.0
    least, most = ends_of("s0")
    if {least, most} <= set(tally.cells.columns):
        ends = tally.cells.select(pl.col(least).min(), pl.col(most).max()).row(0)
        if None not in ends and (ends[0] < low or ends[1] > high or 0 < ends[1] - ends[0] < _NARROW):
            low, high = ends
    return [low + (high - low) * step / 100 for step in range(101)]


def _largest(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The rows of the largest groups, no more than a figure can show."""
    sizes = frame.group_by(names, maintain_order=True).agg(pl.col(".n").max())
    largest = sizes.top_k(_MOST_LINES, by=".n")
    return frame.join(largest, on=names, how="semi", nulls_equal=True, maintain_order="left")


def _at_thresholds(by: By, curves: pl.DataFrame, thresholds: list[float]) -> Table:
    """The values of groups at a few thresholds."""
    keys = [".metric", ".group"]
    few = curves.filter(pl.col(".threshold").is_in(thresholds))
    heads = [f"at {threshold:.4g}" for threshold in thresholds]
    texts = few.with_columns(
        pl.col(".threshold").replace_strict(thresholds, heads, return_dtype=pl.String).alias(_PART),
        # different groups can have the same text
        pl.int_range(pl.len()).over(*keys, ".threshold").alias(_NTH),
        _percent(pl.col(".estimate")).alias(".estimate"),
    )
    wide = texts.pivot(_PART, index=[*keys, _NTH], values=".estimate").drop(_NTH)
    titles = pl.Series(".metric", map(short_title, wide[".metric"]), dtype=pl.String)
    return Table(wide.with_columns(titles, _in_words(by, wide[".group"])))


def exclusions_section(audit: AuditResults, groups: pl.DataFrame) -> Section:
    """The rows and metrics that are left out, and the values that are undefined, with the reason."""
    found: list[str] = []
    min_n = audit.policy.min_n
    results, features = audit.compared_results, {by.text: by for by in audit.metrics.bys}
    if audit.options.na_rm and (lacking := missing_of(audit.tally).filter(pl.col("missing") > 0).rows()):
        texts = [f"{rows:,} {'row' if rows == 1 else 'rows'} without {name}" for name, _, rows in lacking]
        verb = "is" if len(lacking) == 1 and lacking[0][2] == 1 else "are"
        found.append(f"{' and '.join(texts)} {verb} left out of the metrics that need these values")
    is_undefined = pl.col(".estimate").is_null() & (pl.col(".status") != Status.UNKNOWN.value)
    undefined = groups.filter(is_undefined & (pl.col(".n") >= min_n))
    undefined_values = ("value of a group is undefined", "values of groups are undefined")
    without_metrics = ("disparity leaves out metrics", "disparities leave out metrics")
    tables = [
        ("Undefined values", _undefined(undefined, features), undefined_values),
        ("Metrics that cannot be compared", _left_out_metrics(results, features), without_metrics),
    ]
    blocks: list[Content] = []
    for heading, table, (one, several) in tables:
        if number := len(table.table):
            found.append(f"{number} {several if number > 1 else one}")
            blocks.append(Folded(heading, (table,)) if number > _FEW_ROWS else Part(heading, (table,)))
    finding = f"{'; '.join(found)}." if found else "No row is left out, and no value of a group is undefined."
    return Section("Exclusions", tuple(blocks), finding)


def _undefined(undefined: pl.DataFrame, features: Mapping[str, By]) -> Table:
    """The values of groups that are undefined, with the reason."""
    rows: list[tuple[Any, ...]] = []
    for row in undefined.iter_rows(named=True):
        by = features.get(row[".by"])
        feature = "" if by is None else feature_in_words(by)
        group = "all rows" if by is None else group_in_words(by, row[".group"])
        label = f", label {row['.level']}" if row[".level"] is not None else ""
        metric = f"{at_cut(short_title(row['.metric']), row)}{label}"
        rows.append((metric, feature, group, row[".n"], row[".denominator"], reason(row[".status"])))
    schema = {
        "metric": pl.String, "feature": pl.String, "group": pl.String, "rows": pl.Int64,
        "rows that count": undefined.schema[".denominator"], "reason": pl.String,
    }  # fmt: skip
    return Table(pl.DataFrame(rows, schema=schema, orient="row"), codes=tuple(undefined[".metric"]))


def _left_out_metrics(results: pl.DataFrame, features: Mapping[str, By]) -> Table:
    """The disparities that leave out metrics."""
    excluded = results.filter(pl.col(".metrics_left_out").list.len() > 0)
    rows: list[tuple[str, str, str]] = []
    for row in excluded.iter_rows(named=True):
        names = "; ".join(row[".metrics_left_out"])
        rows.append((at_cut(short_title(row[".metric"]), row), feature_in_words(features[row[".by"]]), names))
    table = _texts(["disparity", "feature", "metrics left out"], rows)
    return Table(table, codes=tuple(excluded[".metric"]))


def definitions_section(audit: UsualMetrics) -> Section:
    """The meaning, range and direction of each number."""
    # rates of which disparities are made are defined too
    every = (*audit.groups, *audit.results)
    shown = {metric.name: metric for metric in every if isinstance(metric, Metric) or metric in audit.results}
    rows: list[tuple[str, str, str, str]] = []
    words = {"maximize": "high", "minimize": "low", "zero": "near 0", "one": "near 1", "neither": "neither"}
    for metric in shown.values():
        low, high = metric.range
        rows.append((title_of(metric.name), _meaning(metric), f"{low:g} to {high:g}", words[metric.better]))
    table = _texts(["name", "meaning", "range", "better"], rows)
    return Section("Definitions", (Table(table, codes=tuple(shown)),))


def _meaning(metric: Metric | GroupwiseMetric) -> str:
    """The meaning of a metric: its docstring up to the example, or that of a disparity with its source."""
    if isinstance(metric, GroupwiseMetric):
        meaning = metric.meaning_with(in_prose)
        meaning += f" {metric.source}." if metric.source else ""
    else:
        text, _, _ = inspect.cleandoc(metric.definition.function.__doc__ or "").partition(">>>")
        # pages give the reason where there is no value
        meaning = re.sub(r"; null [^.;]*|(?<=\.) Null [^.;]*\.", "", " ".join(text.split()))
    return meaning.replace("`", "")
