"""The command `compare`: a model and others that predict the same rows, side by side."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import polars as pl
from polars import selectors

from tidyfair.audits import UsualMetrics
from tidyfair.calling import GroupwiseMetric, Metric
from tidyfair.cli.audit import notes_on_left_out
from tidyfair.cli.fail_if import CHANGE, Condition, Key, conditions_of
from tidyfair.cli.inputs import (
    Inputs,
    added_metrics,
    check_kind,
    confidence_of,
    range_of,
    read_inputs,
    remarks_on_missing,
    remarks_on_threshold,
)
from tidyfair.cli.outputs import Document, Outputs, Part, in_words, records
from tidyfair.cli.verdicts import Verdicts, directions_of
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import read_labels, texts_of
from tidyfair.inference.gates import Outside, judged_changes
from tidyfair.inference.models import PairedModels, compare_models
from tidyfair.metrics.classification import base_rate
from tidyfair.reports import Report, need_packages, one_below_the_other, page_of_models, percent, quoted_group
from tidyfair.tallies import Cut

_DRAWS = 1_000
"""Bootstrap draws for numbers, whose rows take long to draw; labels have the usual number."""
_MOST_GROUPS = 30
"""Groups beyond which the changes within the groups of a feature are not shown."""
_ROWS = "\0rows"
_COUNTS = (".n", ".only_one", ".only_other")
"""The columns of counts, which tables in a terminal have no room for."""


@dataclass(frozen=True)
class _Comparison:
    """Metrics that are compared together, those of decisions or those of scores, on their rows with their options."""

    metrics: list[Metric | GroupwiseMetric]
    rows: pl.LazyFrame
    call: dict[str, Any]

    @cached_property
    def paired(self) -> PairedModels:
        """The counts of rows with the predictions of both models."""
        paired = compare_models(*self.metrics).paired(self.rows, **self.call)
        if self.call.get("on_undefined", "warn") == "warn":
            paired.warn_of_unknown_groups()
        return paired

    def within(self, feature: Sequence[str], groups: pl.DataFrame) -> _Comparison:
        """The metrics in each of some groups of a feature, instead of all rows and disparities."""
        metrics: list[Metric | GroupwiseMetric] = [metric for metric in self.metrics if isinstance(metric, Metric)]
        rows = self.rows.join(groups.select(feature).lazy(), on=feature, how="semi", nulls_equal=True)
        return replace(self, metrics=metrics, rows=rows, call={**self.call, "group_by": list(feature)})


@dataclass(frozen=True)
class _Pair:
    """The first model and one other: their comparisons, their changes, and those within groups."""

    options: Namespace
    """The options of the command, with one other model."""
    comparisons: list[_Comparison]
    result: pl.DataFrame
    groups: pl.DataFrame | None

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs, conditions: Sequence[Condition], models: int) -> _Pair:
        """The changes from the first model to another, with limits that hold for the changes to all other models."""
        comparisons = _comparisons(options, inputs, conditions)
        level = 1 - (1 - inputs.level) / models
        result = pl.concat([part.paired.compared(level) for part in comparisons], how="vertical_relaxed")
        groups = _changes_of_groups(options, inputs, comparisons, level)
        return cls(options, comparisons, result, groups)

    def named(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table of changes with the columns of both models."""
        one, other = (pl.lit(getattr(self.options, name)) for name in ("one", "other"))
        return table.with_columns(one.alias(".model_one"), other.alias(".model_other"))


def compare(options: Namespace) -> int:
    """A model and one or more others that predict the same rows, side by side."""
    outputs = Outputs.of(options)
    inputs = read_inputs(options)
    one, others, threshold = options.one, options.other, options.threshold
    _check_models(inputs, one, others)
    if outputs.files.get("html"):
        need_packages()
    confidence = confidence_of(options)
    conditions = _conditions(options, inputs) if confidence is not None else []
    pairs = [
        _Pair.of(Namespace(**{**vars(options), "other": other}), inputs, conditions, len(others)) for other in others
    ]
    _check_within_reach(conditions, pairs[0].result, one)
    are_several = len(pairs) > 1
    result = pl.concat([pair.named(pair.result) if are_several else pair.result for pair in pairs])
    tables = [pair.named(pair.groups) if are_several else pair.groups for pair in pairs if pair.groups is not None]
    groups = pl.concat(tables) if tables else None
    judged, verdicts = None, []
    if confidence is not None:
        judged, verdicts = _verdicts(pairs, conditions, confidence, options.outside or "hold")
    rows = inputs.data.select(column for column in (inputs.truth, one, *others) if column is not None)
    missing = rows.with_columns(selectors.float().fill_nan(None)).null_count().collect()
    notes = remarks_on_missing(missing.row(0, named=True).items())
    if threshold is not None:
        notes += remarks_on_threshold(inputs.data, threshold, [one, *others])

    def content() -> dict[str, Any]:
        return {
            "data": {"name": inputs.name, "truth": inputs.truth}, "one": one,
            "other": others if are_several else others[0], "threshold": threshold,
            "conf_level": inputs.level, "results": records(result),
            **({} if groups is None else {"groups": records(groups)}), **(judged.content if judged else {}),
        }  # fmt: skip

    document = _document(inputs, pairs, verdicts)
    count = len(verdicts)
    brief = partial(replace, document, headline=document.headline[:count], parts=document.parts[:count])
    code = judged.exit_code if judged else 0
    contents = {
        "html": lambda: _page(document, pairs, options.line, document.headline[:count]).html(),
        "output": lambda: result, "json": content,
    }  # fmt: skip
    return outputs.finish(lambda: document, contents, brief=brief if verdicts else None, notes=notes, code=code)


def _check_models(inputs: Inputs, one: str, others: Sequence[str]) -> None:
    """Refuses the truth as a model, and a model that is named twice."""
    models = [("one", one), *(("other", other) for other in others)]
    for number, (flag, column) in enumerate(models):
        if column == inputs.truth:
            msg = f"`{flag}`: {column!r} is the truth; name the column of a model's predictions."
            raise ArgumentError(msg)
        if column in [other for _, other in models[:number]]:
            msg = f"`other`: {column!r} is named twice: name the columns of different models."
            raise ArgumentError(msg)


def _verdicts(
    pairs: Sequence[_Pair], conditions: Sequence[Condition], confidence: float, outside: Outside
) -> tuple[Verdicts, list[Verdicts]]:
    """The verdicts on the changes of all pairs, which are decided together, and those of each pair."""
    limits = {condition.key: condition.allowed for condition in conditions}
    parts = [part for pair in pairs for part in pair.comparisons]
    changes = judged_changes([part.paired for part in parts], limits, confidence, outside)
    directions = directions_of(metric for part in parts for metric in part.metrics)
    together = Verdicts(changes, directions, confidence, outside, CHANGE)
    if len(pairs) == 1:
        return together, [together]
    frames = [pair.named(part) for pair, part in zip(pairs, _changes_of_pairs(changes, pairs, limits), strict=True)]
    together = replace(together, frame=pl.concat(frames))
    words = [f"{pair.options.other}: {CHANGE}" for pair in pairs]
    return together, [replace(together, frame=part, change=word) for part, word in zip(frames, words, strict=True)]


def _changes_of_pairs(
    changes: pl.DataFrame, pairs: Sequence[_Pair], limits: Mapping[Key, Any]
) -> Iterator[pl.DataFrame]:
    """The part of each pair in the changes that have a limit."""
    start = 0
    for pair in pairs:
        size = sum(key in limits for key in pair.result.select(".metric", ".by").rows())
        yield changes[start : start + size]
        start += size


def _page(document: Document, pairs: Sequence[_Pair], line: str, verdicts: Sequence[str]) -> Report:
    """The comparison as a page."""
    tables = [(part.title, part.table, part.notes, part.remarks) for part in document.parts]
    result = pl.concat([pair.named(pair.result) for pair in pairs])
    facts = {"Groups": document.compared}
    return page_of_models(result, document.title, facts=facts, code=line, sentences=verdicts, tables=tables)


# What is compared


def _conditions(options: Namespace, inputs: Inputs) -> list[Condition]:
    """The limits of changes that `fail_if` sets."""
    conditions = conditions_of(options.fail_if, inputs.schema, options.by or [], inputs.policy, of_changes=True)
    check_kind("fail_if", [condition.metric for condition in conditions], inputs.kind)
    for condition in conditions:
        if not _reads_predictions(condition.metric):
            msg = f"`fail_if`: {condition.shown} reads no predictions, so that models do not change it."
            raise ArgumentError(msg)
    return conditions


def _reads_predictions(metric: Metric | GroupwiseMetric) -> bool:
    """Check whether a metric can differ between models."""
    _, formula = metric.formulas[0]
    return not {"estimate", "probs"}.isdisjoint(formula.reads)


def _comparisons(options: Namespace, inputs: Inputs, conditions: Sequence[Condition]) -> list[_Comparison]:
    """The comparisons of decisions and of scores, by the usual metrics, added ones and those of conditions."""
    more, threshold = added_metrics(options, inputs), options.threshold
    # an audit needs a feature; without one, only its metrics of all rows are used
    usual = UsualMetrics.of(inputs.features or [options.one], inputs.kind, policy=inputs.policy, more=more).results
    metrics = [metric for metric in usual if _reads_predictions(metric) and (inputs.features or metric.by is None)]
    every = (*metrics, *(condition.metric for condition in conditions))
    by_key = {(metric.name, metric.by.text if metric.by else None): metric for metric in every}
    score_metrics = [metric for metric in by_key.values() if metric.kind == "prob"]
    if score_metrics and threshold is None:
        msg = f"{score_metrics[0].name} is about scores: `one` and `other` name scores where `threshold` is given."
        raise ArgumentError(msg)
    reading = {name: value for name, value in inputs.reading.items() if name != "interval"}
    rows, decided, reading_decisions = inputs.data, inputs.data, reading
    if inputs.kind == "numbers":
        reading.setdefault("times", _DRAWS)
    elif threshold is None:
        _check_labels(options, inputs)
    if threshold is not None:
        decided = _decided(options, inputs)
        reading_decisions = {name: value for name, value in reading.items() if name not in {"labels", "estimator"}}
        reading_decisions["pos_label"] = True
    call = {name: value for name, value in inputs.counting.items() if name != "threshold"}
    call |= {"truth": inputs.truth, "one": options.one, "other": options.other, "on_undefined": "ignore"}
    others = [metric for metric in by_key.values() if metric.kind != "prob"]
    both = _Comparison(others, decided, call | reading_decisions), _Comparison(score_metrics, rows, call | reading)
    return [comparison for comparison in both if comparison.metrics]


def _check_labels(options: Namespace, inputs: Inputs) -> None:
    """Refuse scores where labels are read."""
    for flag in ("one", "other"):
        column = getattr(options, flag)
        value = pl.col(column)
        if inputs.schema[column].is_float() and inputs.data.select((value != value.round()).any()).collect().item():
            msg = f"`{flag}`: {column!r} holds numbers that are not whole: decisions are made of scores by `threshold`."
            raise ColumnError(msg)


def _decided(options: Namespace, inputs: Inputs) -> pl.LazyFrame:
    """The rows with decisions in place of scores, and the event as true or false in place of the truth."""
    threshold, columns = options.threshold, [options.one, options.other]
    for flag, column in zip(("one", "other"), columns, strict=True):
        if not inputs.schema[column].is_numeric():
            msg = f"`{flag}`: the column {column!r} is {inputs.schema[column]}; `threshold` needs numbers."
            raise ColumnError(msg)
        cut = Cut("threshold", (threshold,))
        if cut.is_of_probabilities:
            low, high = range_of(inputs.data, column)
            cut.check_scores(low, high, column, flag)
    decided = [Cut.reached(pl.col(column), threshold) for column in columns]
    if inputs.truth:
        columns.append(inputs.truth)
        tally = base_rate.tally(inputs.data, inputs.truth)
        pos_label = inputs.reading.get("pos_label")
        labels = read_labels(tally, labels=None, pos_label=pos_label, estimator="binary")
        decided.append(pl.col(inputs.truth) == labels.values[labels.event or 0])
    # NaN is missing, and neither above nor below
    without_nan = (selectors.by_name(columns) & selectors.float()).fill_nan(None)
    return inputs.data.with_columns(without_nan).with_columns(decided)


def _check_within_reach(conditions: Sequence[Condition], result: pl.DataFrame, one: str) -> None:
    """Refuse limits that no second model can meet, given the values of the first one."""
    for condition in conditions:
        name, by = condition.key
        values = result.filter((pl.col(".metric") == name) & pl.col(".by").eq_missing(pl.lit(by)))[".one"]
        if len(values) != 1 or values.has_nulls():
            continue
        value = float(values.item())
        low, high = condition.metric.range
        rises = condition.side == "<"
        reach = high - value if rises else value - low
        wanted = condition.limit if rises else -condition.limit
        if wanted <= reach:
            continue
        verb, worse = ("rise", "falls") if rises else ("fall", "rises")
        written = f"{condition.shown} {condition.side}"
        msg = f"`fail_if`: {f'change in {written} {condition.limit:g}'!r}: {name} of {one!r} is {value:.3f}, and can "
        msg += f"{verb} by {reach:.3f} at most: write {f'change in {written} {-condition.limit:g}'!r} to fail where it "
        msg += f"{worse} by more than {wanted:g}; limits of the value itself go to `tidyfair audit`."
        raise ArgumentError(msg)


# Changes within groups


def _features(options: Namespace, inputs: Inputs) -> list[tuple[str, ...]]:
    """The features whose groups are shown one by one; none with outer groups, which have tables of their own."""
    features = () if options.group_by else inputs.features
    return [cast("tuple[str, ...]", feature) for feature in features if isinstance(feature, tuple)]


def _changes_of_groups(
    options: Namespace, inputs: Inputs, comparisons: Sequence[_Comparison], conf_level: float
) -> pl.DataFrame | None:
    """The changes within the groups of features, with intervals adjusted for the number of groups of each feature.

    Features with very many groups are left out.
    """
    frames, policy = list[pl.DataFrame](), inputs.policy
    for names in _features(options, inputs):
        sizes = inputs.data.group_by(names).agg(pl.len().alias(_ROWS)).collect()
        keys, rows = sizes.select(names), sizes[_ROWS]
        least = max(policy.min_n, policy.min_share * int(rows.sum()))
        is_compared = (rows >= least) & ~policy.is_unknown(keys)
        groups = keys.with_columns(texts_of(keys).alias(".group")).filter(is_compared)
        if groups.is_empty() or len(groups) > _MOST_GROUPS:
            continue
        level = 1 - (1 - conf_level) / len(groups)
        parts = [part.within(names, groups) for part in comparisons]
        frame = pl.concat([part.paired.compared(level) for part in parts if part.metrics], how="vertical_relaxed")
        frame = frame.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left")
        frames.append(frame.select(pl.lit(":".join(names)).alias(".by"), ".group", pl.exclude(*names, ".by", ".group")))
    return pl.concat(frames, how="vertical_relaxed") if frames else None


# Documents


def _document(inputs: Inputs, pairs: Sequence[_Pair], verdicts: Sequence[Verdicts]) -> Document:
    """The comparison as a document: headline, verdicts, and the first model beside each other with its changes."""
    headline = [one.sentence() for one in verdicts]
    parts = [one.part() for one in verdicts]
    if len(pairs) > 1:
        parts = [
            replace(part, title=f"{part.title} on {pair.options.other}")
            for part, pair in zip(parts, pairs, strict=False)
        ]
    for pair in pairs:
        metrics = [metric for part in pair.comparisons for metric in part.metrics]
        headline += _changes_in_words(metrics, pair.result, pair.groups, pair.options.other)
        parts += _parts_of_pair(inputs, pair, metrics, len(pairs))
    options = pairs[0].options
    at = "" if options.threshold is None else f" at {options.threshold:g}"
    *names, last = [options.one, *(pair.options.other for pair in pairs)]
    title = f"{', '.join(names)} and {last}{at}, compared on {inputs.name}"
    return Document(title, headline, parts, compared=inputs.policy.in_words if inputs.features else "")


def _parts_of_pair(
    inputs: Inputs, pair: _Pair, metrics: Sequence[Metric | GroupwiseMetric], models: int
) -> Iterator[Part]:
    """The tables of two models, of all rows and within groups."""
    options, level = pair.options, percent(inputs.level)
    one, other = options.one, options.other

    def shown(changes: pl.DataFrame) -> pl.DataFrame:
        # files have the p-values of McNemar's test too
        table = one_below_the_other(changes.drop(".p_value", *_COUNTS))
        if ".by" in table.columns:
            table = table.with_columns(pl.col(".by").fill_null("all rows"))
        return in_words(table, one=one, other=other)

    table = shown(pair.result)
    left_out = pl.concat([part.paired.left_out() for part in pair.comparisons])
    bys = [metric.by for metric in metrics if isinstance(metric, GroupwiseMetric)]
    notes = notes_on_left_out(table, left_out, bys)
    at_once = f", which holds for all {models} models at once" if models > 1 else ""
    remarks = [f"change: {other} minus {one}, with its {level} confidence interval{at_once}."]
    within = [] if pair.groups is None else pair.groups.partition_by(".by", maintain_order=True)
    for names in _features(options, inputs):
        if ":".join(names) not in [frame[".by"][0] for frame in within]:
            flags = " ".join(f"--group-by {name}" for name in names)
            number = f"no group of enough rows, or more than {_MOST_GROUPS} groups"
            remarks.append(f"{':'.join(names)} has {number}; `{flags}` shows all.")
    both = "Both models" if models == 1 else f"{one} and {other}"
    yield Part(both, table, tuple(notes), "by" if "by" in table.columns else "metric", tuple(remarks))
    for frame in within:
        title = f"{both} within the groups of {frame['.by'][0]}"
        number = frame[".group"].n_unique()
        adjusted = f"Intervals are {level} confidence intervals, adjusted for {number} groups"
        adjusted += f" and {models} models." if models > 1 else "."
        yield Part(title, shown(frame.drop(".by")), (), "metric", (adjusted,))


def _changes_in_words(
    metrics: Sequence[Metric | GroupwiseMetric], result: pl.DataFrame, groups: pl.DataFrame | None, other: str
) -> list[str]:
    """The sentences on significant changes, of all rows, of disparities and within groups."""
    directions = directions_of(metric for metric in metrics if metric.better != "neither")
    changes = result if groups is None else pl.concat([result, groups], how="diagonal_relaxed")
    names: dict[str, dict[str, None]] = {"better": {}, "worse": {}}
    has_both = pl.col(".lower").is_not_null() & pl.col(".upper").is_not_null()
    for row in changes.filter(has_both & ((pl.col(".lower") > 0) | (pl.col(".upper") < 0))).iter_rows(named=True):
        metric, by, group = row[".metric"], row[".by"], row.get(".group")
        direction = directions.get((metric, by if group is None else None))
        if direction in {"maximize", "minimize"}:
            # a group stands where a disparity has its feature
            where = by if group is None else quoted_group(by.split(":"), group)
            word = "better" if (row[".lower"] > 0) == (direction == "maximize") else "worse"
            names[word][metric if where is None else f"{metric}({where})"] = None
    sentences = [f"{other} is significantly {word} in: {', '.join(of)}." for word, of in names.items() if of]
    return sentences or ["No significant change."]
