"""The command `compare`: a model and others that predict the same rows, side by side."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, cast

import polars as pl
from polars import selectors

from tidyfair.audits import UsualMetrics
from tidyfair.calling import GroupwiseMetric, Metric, metric_set
from tidyfair.cli.audit import notes_on_left_out
from tidyfair.cli.fail_if import CHANGE, Condition, conditions_of
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
from tidyfair.cli.verdicts import Verdicts
from tidyfair.errors import ArgumentError, ColumnError
from tidyfair.evaluation import read_labels, texts_of
from tidyfair.inference.gates import Outside, judged_changes
from tidyfair.inference.models import PairedModels, compare_models, with_verdicts
from tidyfair.metrics.classification import base_rate
from tidyfair.reports import (
    Note,
    findings_of_models,
    need_packages,
    one_below_the_other,
    page_of_models,
    percent,
    units_of,
)
from tidyfair.specs import Options, number
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
    margin: float | None
    """The change up to which models are as good as each other."""

    @cached_property
    def paired(self) -> PairedModels:
        """The counts of rows with the predictions of both models."""
        paired = compare_models(*self.metrics).paired(self.rows, **self.call)
        if self.call.get("on_undefined", "warn") == "warn":
            paired.warn_of_unknown_groups()
        return paired

    def compared(self, level: float) -> pl.DataFrame:
        """The changes with their intervals, and with a margin what these show."""
        changes = self.paired.compared(level)
        if self.margin is None:
            return changes
        return with_verdicts(changes, metric_set(*self.metrics), (self.margin,) * len(self.metrics))

    def within(self, feature: Sequence[str], groups: pl.DataFrame) -> _Comparison:
        """The metrics in each of some groups of a feature, instead of all rows and disparities."""
        metrics: list[Metric | GroupwiseMetric] = [metric for metric in self.metrics if isinstance(metric, Metric)]
        rows = self.rows.join(groups.select(feature).lazy(), on=feature, how="semi", nulls_equal=True)
        return replace(self, metrics=metrics, rows=rows, call={**self.call, "group_by": list(feature)})


@dataclass(frozen=True)
class _Pair:
    """The first model and one other: their comparisons, their changes, and those within groups."""

    other: str
    comparisons: list[_Comparison]
    result: pl.DataFrame
    groups: pl.DataFrame | None


def compare(options: Namespace) -> int:
    """A model and one or more others that predict the same rows, side by side."""
    outputs = Outputs.of(options)
    inputs = read_inputs(options)
    one, others = options.one, options.other
    _check_models(inputs, one, others)
    if options.margin is not None:
        number("margin", options.margin, 0)
    if outputs.files.get("html"):
        need_packages()
    confidence = confidence_of(options)
    conditions = _conditions(options, inputs) if confidence is not None else []
    pairs = _pairs(options, inputs, conditions)
    _check_within_reach(conditions, pairs[0].result, one)
    named, groups = _tables(one, pairs)
    result = pairs[0].result if len(pairs) == 1 else named
    judged, verdicts = None, []
    if confidence is not None:
        judged, verdicts = _verdicts(one, pairs, conditions, confidence, options.outside or "hold")

    def content() -> dict[str, Any]:
        return {
            "data": {"name": inputs.name, "truth": inputs.truth}, "one": one,
            "other": others if len(others) > 1 else others[0], "threshold": options.threshold,
            "conf_level": inputs.level, "results": records(result),
            **({} if groups is None else {"groups": records(groups)}), **(judged.content if judged else {}),
        }  # fmt: skip

    document, count = _document(options, inputs, pairs, named, verdicts), len(verdicts)

    def page() -> str:
        sections = [(part.title, part.table, part.notes, part.remarks) for part in document.parts]
        return page_of_models(
            named, document.title, facts={"Groups": document.compared}, code=options.line,
            sentences=document.headline[:count], findings=document.headline[count:], tables=sections,
        ).html()  # fmt: skip

    brief = partial(replace, document, headline=document.headline[:count], parts=document.parts[:count])
    contents = {"html": page, "output": lambda: result, "json": content}
    code, notes = judged.exit_code if judged else 0, _notes(options, inputs)
    return outputs.finish(lambda: document, contents, brief=brief if verdicts else None, notes=notes, code=code)


def _pairs(options: Namespace, inputs: Inputs, conditions: Sequence[Condition]) -> list[_Pair]:
    """The first model with each other, with limits that hold for the changes to all of them."""
    level, pairs = 1 - (1 - inputs.level) / len(options.other), list[_Pair]()
    for other in options.other:
        comparisons = _comparisons(Namespace(**{**vars(options), "other": other}), inputs, conditions)
        result = pl.concat([part.compared(level) for part in comparisons], how="vertical_relaxed")
        pairs.append(_Pair(other, comparisons, result, _changes_of_groups(options, inputs, comparisons, level)))
    return pairs


def _tables(one: str, pairs: Sequence[_Pair]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The changes of all pairs with the names of both models, and those within groups, if there are any."""
    of_groups = [(pair.other, pair.groups) for pair in pairs if pair.groups is not None]
    groups = pairs[0].groups if len(pairs) == 1 else _with_models(one, of_groups) if of_groups else None
    return _with_models(one, [(pair.other, pair.result) for pair in pairs]), groups


def _notes(options: Namespace, inputs: Inputs) -> list[str]:
    """Sentences on missing values, and on scores that are all on one side of the threshold."""
    models = [options.one, *options.other]
    rows = inputs.data.select(column for column in (inputs.truth, *models) if column is not None)
    missing = rows.with_columns(selectors.float().fill_nan(None)).null_count().collect()
    notes = remarks_on_missing(missing.row(0, named=True).items())
    if options.threshold is not None:
        notes += remarks_on_threshold(inputs.data, options.threshold, models)
    return notes


def _with_models(one: str, tables: Sequence[tuple[str, pl.DataFrame]]) -> pl.DataFrame:
    """Tables of changes below each other, with the columns of both models."""
    names = (".model_one", ".model_other")
    return pl.concat(
        [table.with_columns(pl.lit(one).alias(names[0]), pl.lit(other).alias(names[1])) for other, table in tables]
    )


def _check_models(inputs: Inputs, one: str, others: Sequence[str]) -> None:
    """Refuses the truth as a model, and a model that is named twice."""
    models = [("one", one), *(("other", other) for other in others)]
    for index, (flag, column) in enumerate(models):
        if column == inputs.truth:
            msg = f"`{flag}`: {column!r} is the truth; name the column of a model's predictions."
            raise ArgumentError(msg)
        if column in [other for _, other in models[:index]]:
            msg = f"`other`: {column!r} is named twice: name the columns of different models."
            raise ArgumentError(msg)


def _verdicts(
    one: str, pairs: Sequence[_Pair], conditions: Sequence[Condition], confidence: float, outside: Outside
) -> tuple[Verdicts, list[Verdicts]]:
    """The verdicts on the changes of all pairs, which are decided together, and those of each pair."""
    limits = {condition.key: condition.allowed for condition in conditions}
    parts = [part for pair in pairs for part in pair.comparisons]
    changes = judged_changes([part.paired for part in parts], limits, confidence, outside)
    metrics = [metric for part in parts for metric in part.metrics]
    together = Verdicts(changes, metrics, confidence, outside, CHANGE)
    if len(pairs) == 1:
        return together, [together]
    # the changes of each pair that have a limit, one pair after the other
    sizes = [sum(key in limits for key in pair.result.select(".metric", ".by").rows()) for pair in pairs]
    starts = accumulate(sizes, initial=0)
    frames = [
        _with_models(one, [(pair.other, changes[start : start + size])])
        for pair, start, size in zip(pairs, starts, sizes, strict=False)
    ]
    of_each = [
        replace(together, frame=frame, change=f"{pair.other}: {CHANGE}")
        for frame, pair in zip(frames, pairs, strict=True)
    ]
    return replace(together, frame=pl.concat(frames)), of_each


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
    metrics = _compared_metrics(options, inputs, conditions)
    reading = {name: value for name, value in inputs.reading.items() if name != "interval"}
    decided, reading_decisions = inputs.data, reading
    if inputs.kind == "numbers":
        reading.setdefault("times", _DRAWS)
    elif options.threshold is None:
        _check_labels(options, inputs)
    if options.threshold is not None:
        decided = _decided(options, inputs)
        reading_decisions = {name: value for name, value in reading.items() if name not in {"labels", "estimator"}}
        reading_decisions["pos_label"] = True
    call = {name: value for name, value in inputs.counting.items() if name != "threshold"}
    call |= {"truth": inputs.truth, "one": options.one, "other": options.other, "on_undefined": "ignore"}
    both = ((False, decided, reading_decisions), (True, inputs.data, reading))
    comparisons = [
        _Comparison(
            [metric for metric in metrics if (metric.kind == "prob") == of_scores], rows, call | read, options.margin
        )
        for of_scores, rows, read in both
    ]
    return [comparison for comparison in comparisons if comparison.metrics]


def _compared_metrics(
    options: Namespace, inputs: Inputs, conditions: Sequence[Condition]
) -> list[Metric | GroupwiseMetric]:
    """The usual metrics, added ones and those of conditions, each once."""
    # an audit needs a feature; without one, only its metrics of all rows are used
    features, more = inputs.features or [options.one], added_metrics(options, inputs)
    usual = UsualMetrics.of(features, inputs.kind, policy=inputs.policy, more=more).results
    metrics = [metric for metric in usual if _reads_predictions(metric) and (inputs.features or metric.by is None)]
    every = (*metrics, *(condition.metric for condition in conditions))
    by_key = {(metric.name, metric.by.text if metric.by else None): metric for metric in every}
    of_scores = [metric.name for metric in by_key.values() if metric.kind == "prob"]
    if of_scores and options.threshold is None:
        msg = f"{of_scores[0]} is about scores: `one` and `other` name scores where `threshold` is given."
        raise ArgumentError(msg)
    return [*by_key.values()]


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
        labels = read_labels(tally, Options(pos_label=pos_label, estimator="binary"))
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
        frame = pl.concat([part.compared(level) for part in parts if part.metrics], how="vertical_relaxed")
        frame = frame.join(groups, on=names, how="left", nulls_equal=True, maintain_order="left")
        frames.append(frame.select(pl.lit(":".join(names)).alias(".by"), ".group", pl.exclude(*names, ".by", ".group")))
    return pl.concat(frames, how="vertical_relaxed") if frames else None


# Documents


def _document(
    options: Namespace, inputs: Inputs, pairs: Sequence[_Pair], named: pl.DataFrame, verdicts: Sequence[Verdicts]
) -> Document:
    """The comparison as a document: headline, verdicts, and the first model beside each other with its changes."""
    parts = [one.part() for one in verdicts]
    if len(pairs) > 1:
        parts = [replace(part, title=f"{part.title} on {pair.other}") for part, pair in zip(parts, pairs, strict=False)]
    for pair in pairs:
        parts += _parts_of_pair(options, inputs, pair, len(pairs))
    of_groups = [(pair.other, pair.groups) for pair in pairs if pair.groups is not None]
    groups = [_with_models(options.one, of_groups)] if of_groups else []
    headline = [one.sentence() for one in verdicts] + findings_of_models(
        pl.concat([named, *groups], how="diagonal_relaxed")
    )
    at = "" if options.threshold is None else f" at {options.threshold:g}"
    *names, last = [options.one, *(pair.other for pair in pairs)]
    title = f"{', '.join(names)} and {last}{at}, compared on {inputs.name}"
    return Document(title, headline, parts, compared=inputs.policy.in_words if inputs.features else "")


def _parts_of_pair(options: Namespace, inputs: Inputs, pair: _Pair, models: int) -> Iterator[Part]:
    """The tables of two models, of all rows and within groups."""
    one, other, level = options.one, pair.other, percent(inputs.level)
    metrics = [metric for part in pair.comparisons for metric in part.metrics]
    table = _shown(pair.result, one, other, metrics)
    at_once = f", which holds for all {models} models at once" if models > 1 else ""
    remarks = [f"change: {other} minus {one}, with its {level} confidence interval{at_once}."]
    if options.margin is not None:
        remarks.append(f"equivalent: the whole interval is within {options.margin:g}; not worse: not below it.")
    within = [] if pair.groups is None else pair.groups.partition_by(".by", maintain_order=True)
    shown = [frame[".by"][0] for frame in within]
    remarks += [_not_shown(names) for names in _features(options, inputs) if ":".join(names) not in shown]
    both = "Both models" if models == 1 else f"{one} and {other}"
    yield Part(both, table, _notes_on(pair, table, metrics), "by" if "by" in table.columns else "metric", remarks)
    for frame in within:
        size = frame[".group"].n_unique()
        adjusted = f"Intervals are {level} confidence intervals, adjusted for {size} groups"
        adjusted += f" and {models} models." if models > 1 else "."
        title = f"{both} within the groups of {frame['.by'][0]}"
        yield Part(title, _shown(frame.drop(".by"), one, other, metrics), (), "metric", [adjusted])


def _notes_on(pair: _Pair, table: pl.DataFrame, metrics: Sequence[Metric | GroupwiseMetric]) -> list[Note]:
    """The groups that disparities leave out, as notes on their names in a table."""
    left_out = pl.concat([part.paired.left_out() for part in pair.comparisons])
    return notes_on_left_out(table, left_out, [metric.by for metric in metrics if isinstance(metric, GroupwiseMetric)])


def _not_shown(names: Sequence[str]) -> str:
    """The sentence on a feature whose groups have no table."""
    flags = " ".join(f"--group-by {name}" for name in names)
    reason = f"no group of enough rows, or more than {_MOST_GROUPS} groups"
    return f"{':'.join(names)} has {reason}; `{flags}` shows all."


def _shown(changes: pl.DataFrame, one: str, other: str, metrics: Sequence[Metric | GroupwiseMetric]) -> pl.DataFrame:
    """Changes as texts; files have the p-values of McNemar's test too."""
    table = one_below_the_other(changes.drop(".p_value", ".margin", *_COUNTS, strict=False), units_of(metrics))
    if ".by" in table.columns:
        table = table.with_columns(pl.col(".by").fill_null("all rows"))
    return in_words(table, one=one, other=other)
