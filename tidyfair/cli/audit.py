"""The commands `audit` and `report`: rates by group and disparities, with verdicts, pages and files on request."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any, cast

import polars as pl

from tidyfair.audits.significance import (
    Significance,
    draws_of,
    has_tests,
    with_small_groups,
    without_single_groups,
)
from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.calling.metric_sets import GroupwiseFactory, GroupwiseMetric, Metric, metric_set, metric_tweak
from tidyfair.cli.fail_if import gate_of
from tidyfair.cli.flags import as_flags, names_of
from tidyfair.cli.inputs import (
    CUTS,
    Inputs,
    added_metrics,
    check_kind,
    confidence_of,
    read_inputs,
    remarks_on_missing,
    remarks_on_threshold,
)
from tidyfair.cli.named_audits import file_named_audit
from tidyfair.cli.outputs import Content, Document, Outputs, Part, in_words, records, with_cuts_in_words
from tidyfair.cli.verdicts import Verdicts, directions_of
from tidyfair.errors import ArgumentError, ConstantWarning, MissingPredictionsWarning, Status, UndefinedWarning
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.evaluation.missing_predictions import missing_in_words
from tidyfair.inference.gates.checks import Gate
from tidyfair.reports.findings import group_in_words, of_feature, percent
from tidyfair.reports.page import Report, report
from tidyfair.reports.reproduction import how_to_repeat
from tidyfair.reports.sections import missing_of
from tidyfair.reports.tables import (
    ALL_ROWS,
    Note,
    groups_side_by_side,
    has_dropped_rows,
    left_out_in_words,
    one_below_the_other,
    rounded,
)
from tidyfair.specs.groups import By
from tidyfair.specs.options import Options
from tidyfair.specs.result_columns import RESULT_KEYS, SELECTIONS, key_columns
from tidyfair.tallies.tally import ESTIMATE, Tally

_MANY_GROUPS = 30
"""Groups beyond which a feature is likely to be a number, and neither all groups nor undefined values are listed."""
_NAME = "\0name"
_EVERYBODY = "all rows"


def audit(options: Namespace) -> int:
    """An audit of a file of predictions: one that has a name, or the usual metrics."""
    if vars(options)["as"] is not None:
        return file_named_audit(options)
    for flag in ("to", "within"):
        if getattr(options, flag) is not None:
            msg = f"`{flag}` goes with `as`, the name of an audit."
            raise ArgumentError(msg)
    outputs = Outputs.of(options)
    is_report = options.command == "report"
    pages = [flag for flag in (("html", "markdown") if is_report else ("html",)) if flag in outputs]
    if pages and options.group_by:
        flags = " and ".join(f"`{flag}`" for flag in pages)
        msg = (
            f"A page is about one set of predictions, and `group_by` makes several: leave it out with {flags}, or "
            "write the values of each to a file with `output`."
        )
        raise ArgumentError(msg)
    inputs = read_inputs(options)
    for cut in CUTS:
        if pages and isinstance(inputs.counting.get(cut), list):
            msg = f"A page is about one set of decisions: give one number as `{cut}`, or leave out `{pages[0]}`."
            raise ArgumentError(msg)
    audited = _Audited.of(options, inputs)
    code = audited.verdicts.exit_code if audited.verdicts else 0
    # a page has notes of its own on what is undefined
    has_tables = not pages or outputs.files.keys() > {*pages}
    notes = [*(audited.remarks_on_results() if has_tables else ()), *audited.remarks_on_rows()]
    page = cache(lambda: _page(audited))
    contents: dict[str, Callable[[], Content]] = {"html": lambda: page().html()}
    if is_report:
        contents["markdown"] = lambda: page().markdown()
    contents |= {
        "output": lambda: audited.numbers.results,
        "output_groups": lambda: _without_small(audited, audited.numbers.groups),
        "json": lambda: _json_of(audited) | {"exit_code": code, "notes": notes},
    }
    contents.setdefault("markdown", lambda: _document(audited).markdown(options.line, notes))
    outputs.write(contents)
    brief = partial(_document, audited, verdicts_only=True) if audited.verdicts else None
    outputs.show(partial(_document, audited), brief, notes)
    return code


def _page(audited: _Audited) -> Report:
    """The report, which ends with the command line that made it."""
    options, inputs = audited.options, audited.inputs
    given: dict[str, Any] = {
        name: getattr(options, name) for name in ("title", "model", "dataset", "date", "interactive")
    }
    settings = vars(inputs.policy) | {name: value for name, value in given.items() if value is not None}
    call: dict[str, Any] = {"truth": inputs.truth, "estimate": inputs.estimate, **inputs.counting, **inputs.reading}
    page = report(
        inputs.data, **call, by=inputs.features, metrics=audited.metrics.results, gate=audited.gate, **settings
    )
    return replace(page, parts=(*page.parts[:-1], how_to_repeat(options.line)))


def _json_of(audited: _Audited) -> dict[str, Any]:
    """The content of the JSON document."""
    inputs = audited.inputs
    counting = {name: value for name, value in inputs.counting.items() if name != "group_by"}
    content: dict[str, Any] = {
        "command": audited.options.line,
        "data": {
            "name": inputs.name, "rows": audited.rows, "truth": inputs.truth, "estimate": inputs.estimate, **counting
        },
        "conf_level": audited.level,
        "results": records(audited.numbers.results),
        "groups": records(_without_small(audited, audited.numbers.groups)),
    }  # fmt: skip
    if audited.outer:
        content["pooled_results"] = records(audited.together.results)
        content["pooled_groups"] = records(_without_small(audited, audited.together.groups))
    return content | (audited.verdicts.content if audited.verdicts else {})


def _without_small(audited: _Audited, groups: pl.DataFrame) -> pl.DataFrame:
    """The values of groups that have enough rows."""
    return groups.filter(pl.col(".n") >= audited.inputs.policy.min_n)


# Counts and numbers


@dataclass(frozen=True)
class _Count:
    """Metrics, and the counts that they are computed of."""

    metrics: UsualMetrics
    tally: Tally
    threshold: float | None = None
    """The threshold of metrics that weigh errors by it, such as net benefit, where there are several."""


@dataclass(frozen=True)
class _Numbers:
    """The results and the values of groups from counts: of each outer group, or of all together."""

    counts: Sequence[_Count]
    reading: Mapping[str, Any]
    simultaneous: bool

    @cached_property
    def results(self) -> pl.DataFrame:
        """Metrics of all rows and disparities, with their intervals."""
        return self._results_of_counts(
            lambda count: count.metrics.results.compute(count.tally, explain=True, **self.reading)
        )

    @cached_property
    def groups(self) -> pl.DataFrame:
        """The values of groups, with their intervals, also of small and of unknown ones."""
        reading = {**self.reading, "simultaneous": True} if self.simultaneous else self.reading

        def values_of(count: _Count) -> pl.DataFrame:
            groups = count.metrics.groups.compute_by_group(count.tally, **reading)
            return count.metrics.with_values_of_unknown(groups, count.tally, **reading)

        return with_small_groups(self._results_of_counts(values_of), self.results)

    def _results_of_counts(self, values_of: Callable[[_Count], pl.DataFrame]) -> pl.DataFrame:
        """The values of all counts; those that depend on no decision, such as areas, are repeated at each cut."""
        frames: list[pl.DataFrame] = []
        for count in self.counts:
            at = [] if count.threshold is None else [pl.lit(count.threshold).alias(".threshold")]
            frames.append(values_of(count).with_columns(at))
        values = pl.concat(frames, how="diagonal_relaxed")
        cut = next((name for name in SELECTIONS if name in values.columns), None)
        if cut is None:
            return values
        cuts = values[cut].unique().drop_nulls().sort()
        lists = pl.when(pl.col(cut).is_null()).then(pl.lit(cuts).implode()).otherwise(pl.concat_list(cut))
        return values.with_columns(lists.alias(cut)).explode(cut)


@dataclass(frozen=True)
class _Audited:
    """The rows as they were counted, and what is computed of them."""

    options: Namespace
    inputs: Inputs
    counts: Sequence[_Count]
    """The count of the usual metrics, then those of metrics that weigh errors by each of several thresholds."""
    gate: Gate | None
    verdicts: Verdicts | None

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs) -> _Audited:
        """Check what is asked for, and count the rows."""
        more, threshold = added_metrics(options, inputs), inputs.counting.get("threshold")
        weighed = [metric for metric in more if isinstance(threshold, list) and _weighs_by_risk(metric)]
        usual = [_at_risk(metric, threshold) for metric in more if metric not in weighed]
        metrics = UsualMetrics.of(inputs.features, inputs.kind, policy=inputs.policy, more=usual)
        gate = _gate(options, inputs, metrics)
        counting = dict(inputs.counting)
        if "cluster" not in counting:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = inputs.reading.get("seed", 0)
        call: dict[str, Any] = {"data": inputs.data, "truth": inputs.truth, "estimate": inputs.estimate, **counting}
        tally = metrics.everything(*(gate.metrics if gate else ())).tally(**call)
        metrics.results.run.check_occurs(tally, Options(**inputs.reading))
        verdicts = None
        if gate is not None:
            # a gate decides on its intervals itself
            own = {name: value for name, value in inputs.reading.items() if name not in {"interval", "conf_level"}}
            judged = gate.compute(tally, on_undefined="ignore", **own)
            verdicts = Verdicts(judged, directions_of(gate.metrics), gate.confidence, gate.outside)
        counts = [_Count(metrics, tally)]
        for cut in cast("list[float]", threshold) if weighed else ():
            members: list[Any] = []
            for metric in weighed:
                tweaked = _at_risk(metric, cut)
                if isinstance(tweaked, Metric):
                    members.append(tweaked)
                    # groups are shown for features that are compared
                    continue
                for feature in inputs.features:
                    members.append(tweaked(*feature) if isinstance(feature, tuple) else tweaked(feature))
            metrics = UsualMetrics.of(inputs.features, inputs.kind, metrics=metric_set(*members), policy=inputs.policy)
            call["threshold"] = cut
            counts.append(_Count(metrics, metrics.everything().tally(**call), cut))
        return cls(options, inputs, counts, gate, verdicts)

    @property
    def metrics(self) -> UsualMetrics:
        """The usual metrics, and those that are added to them."""
        return self.counts[0].metrics

    @property
    def tally(self) -> Tally:
        """The counts of the usual metrics."""
        return self.counts[0].tally

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.tally.row_count

    @property
    def outer(self) -> list[str]:
        """The columns of outer groups, each of which is a set of predictions."""
        return [column.name for column in self.tally.outer_columns]

    @property
    def has_several_cuts(self) -> bool:
        """True if decisions are made at several thresholds, numbers or shares of rows."""
        return any(isinstance(self.inputs.counting.get(cut), list) for cut in CUTS)

    @cached_property
    def numbers(self) -> _Numbers:
        """The numbers of each outer group."""
        reading = {**self.inputs.reading, "on_undefined": "ignore"}
        return _Numbers(self.counts, reading, bool(self.options.simultaneous))

    @cached_property
    def together(self) -> _Numbers:
        """The numbers of all outer groups together."""
        if not self.outer:
            return self.numbers
        return replace(self.numbers, counts=[replace(count, tally=pooled(count.tally)) for count in self.counts])

    @cached_property
    def compared_results(self) -> pl.DataFrame:
        """The results of all outer groups together, in which a single group has no disparity."""
        return without_single_groups(self.together.results, self.together.groups, self.metrics.parities)

    @cached_property
    def significance(self) -> Significance:
        """The significant disparities of all outer groups together."""
        tally, results = self.together.counts[0].tally, self.compared_results
        tests = has_tests(self.inputs.counting, tally, results)
        draws = draws_of(self.together.groups)
        return Significance.of(self.metrics.parities, tally, self.inputs.reading, results, draws=draws, tests=tests)

    @property
    def level(self) -> float | None:
        """The confidence level of intervals; None where none are asked for."""
        return self.inputs.level if self.inputs.reading["interval"] else None

    def remarks_on_results(self) -> list[str]:
        """Sentences on features with very many groups, and on the undefined values of all others."""
        groups = self.together.groups
        sizes = groups.group_by(".by", ".group", maintain_order=True).agg(pl.col(".n").max()).drop_nulls(".by")
        sizes = sizes.group_by(".by", maintain_order=True).agg(pl.len().alias("groups"), pl.col(".n").median())
        many = sizes.filter(pl.col("groups") > _MANY_GROUPS)
        remarks: list[str] = []
        for by, number, median in many.rows():
            text = f"{by!r} has {number:,} groups, half of which have no more than {median:,.0f} rows"
            remarks.append(f"{text}: put numbers into bands, and rare values together.")
        reading: dict[str, Any] = {**self.inputs.reading, "interval": None}
        shown = [metric for metric in self.metrics.results if metric.by is None or metric.by.text not in many[".by"]]
        with warnings.catch_warnings(record=True) as caught:
            for category in (UndefinedWarning, ConstantWarning):
                warnings.simplefilter("always", category)
            # said of the rows
            warnings.simplefilter("ignore", MissingPredictionsWarning)
            metric_set(*shown).compute(self.tally, **reading)
        for warning in caught:
            message = str(warning.message).partition(" (on_undefined")[0]
            remarks.append(as_flags(message, names_of(self.options.command)))
        return remarks

    def remarks_on_rows(self) -> list[str]:
        """Sentences on rows that are left out, and on decisions that are all the same."""
        inputs = self.inputs
        remarks = remarks_on_missing(missing_of(self.tally).select("column", "missing").rows())
        missing = missing_in_words(self.tally, self.metrics.bys)
        if missing is not None and missing[1] and inputs.reading.get("na_rm", True):
            head, shares = missing
            remarks.append(f"{head}: {'; '.join(shares)}.")
        # the range of the scores matters only where all decisions are the same
        threshold = inputs.counting.get("threshold")
        if threshold is not None and self.tally.cells[ESTIMATE].drop_nulls().n_unique() == 1:
            remarks += remarks_on_threshold(inputs.data, threshold, [inputs.counting["probs"]])
        return remarks


def pooled(tally: Tally) -> Tally:
    """The tally of the same rows without outer groups."""
    keys = [replace(key, role="by") if key.role == "outer" else key for key in tally.keys]
    return replace(tally, keys=tuple(keys))


def _gate(options: Namespace, inputs: Inputs, metrics: UsualMetrics) -> Gate | None:
    """The limits that `fail_if` sets for these predictions."""
    confidence = confidence_of(options)
    if confidence is None:
        return None
    features = [by.text for by in metrics.bys]
    gate = gate_of(options.fail_if, confidence, inputs.schema, features, inputs.policy, options.outside or "hold")
    check_kind("fail_if", gate.metrics, inputs.kind)
    threshold = inputs.counting.get("threshold")
    for metric in gate.metrics:
        if isinstance(threshold, list) and _weighs_by_risk(metric):
            msg = f"`fail_if`: {metric.name} weighs errors by the threshold: give one number as `threshold`."
            raise ArgumentError(msg)
    return replace(gate, metrics=metric_set(*(_at_risk(metric, threshold) for metric in gate.metrics)))


def _weighs_by_risk(metric: Metric | GroupwiseMetric | GroupwiseFactory) -> bool:
    """Check whether a metric weighs errors by the odds of the threshold, as net benefit does."""
    metrics = [metric] if isinstance(metric, Metric) else metric.metrics
    return any("at" in part.options and part.kind == "class" for part in metrics)


def _at_risk(metric: Any, threshold: Any) -> Any:
    """A metric, or what compares it, that weighs errors by the odds of the threshold, if it weighs them at all."""
    if threshold is None or isinstance(threshold, list) or not _weighs_by_risk(metric):
        return metric
    if isinstance(metric, Metric):
        return metric_tweak(metric, metric.name, at=threshold)
    return replace(metric, metrics=tuple(_at_risk(part, threshold) for part in metric.metrics))


# Tables and documents


def _document(audited: _Audited, *, verdicts_only: bool = False) -> Document:
    """The audit as a document."""
    verdicts = audited.verdicts
    headline = [] if verdicts is None else [verdicts.sentence()]
    parts = [] if verdicts is None else [verdicts.part(is_full=audited.options.full)]
    remarks: list[str] = []
    if not verdicts_only:
        parts += [*_results_parts(audited), *(_group_part(audited, by) for by in audited.metrics.bys)]
        if not audited.has_several_cuts:
            numbers = audited.compared_results, audited.together.groups, audited.significance
            for by in audited.metrics.bys:
                finding = of_feature(by, audited.metrics.parities, *numbers, audited.level)
                headline.append(f"{finding.lead} {finding.text}")
        if audited.level is not None:
            at_once = ", and those of groups hold for all groups at once" if audited.options.simultaneous else ""
            remarks.append(f"Intervals in parentheses are {percent(audited.level)} confidence intervals{at_once}.")
        if not audited.has_several_cuts and audited.significance.outcomes:
            error = percent(audited.significance.error)
            remarks.append(f"Significant: at the {error} level, adjusted for the number of disparities (Holm).")
    compared = audited.inputs.policy.in_words if audited.metrics.bys else ""
    return Document(_title(audited), tuple(headline), tuple(parts), tuple(remarks), compared)


def _title(audited: _Audited) -> str:
    """Facts about the audit."""
    inputs = audited.inputs
    event = audited.metrics.event(audited.tally, Options(**inputs.reading))
    facts = {
        "truth": inputs.truth, "predictions": inputs.estimate, "scores": inputs.counting.get("probs"), "event": event
    }  # fmt: skip
    given = [f"{fact} {value!r}" for fact, value in facts.items() if value is not None]
    return f"Audit of {inputs.name}: {audited.rows:,} rows, {', '.join(given)}"


def _results_parts(audited: _Audited) -> list[Part]:
    """The tables of disparities, and of metrics of all rows where there are outer groups."""
    together = with_cuts_in_words(audited.compared_results)
    if not audited.outer:
        return [_disparity_part(by, together) for by in audited.metrics.bys]
    results, outer = with_cuts_in_words(audited.numbers.results), ", ".join(audited.outer)
    if audited.options.full:
        metrics = in_words(_of_metrics(results.filter(pl.col(".by").is_null())))
        of_all_rows = Part(f"Metrics by {outer}", metrics, (), "metric" if "metric" in metrics.columns else "")
        return [of_all_rows, *(_disparity_part(by, results, f" by {outer}") for by in audited.metrics.bys)]
    parts: list[Part] = []
    for by in (None, *(by.text for by in audited.metrics.bys)):
        of_feature = pl.col(".by").eq_missing(pl.lit(by))
        pooled_rows, outer_rows = together.filter(of_feature), results.filter(of_feature)
        table = _of_metrics(pooled_rows).rename({".estimate": ".pooled"}, strict=False)
        compact = in_words(_over_outer_groups(outer_rows, table.drop(".by", strict=False)))
        title = f"Metrics over {outer}" if by is None else f"Disparities of {by} over {outer}"
        notes = notes_on_left_out(compact, pooled_rows, audited.metrics.bys, outer_rows)
        parts.append(Part(title, compact, tuple(notes), "metric"))
    remark = f"Pooled: all rows together. Lowest and highest: of a {outer}, which is in parentheses."
    hint = f"`--full` shows each {outer}; `--output` and `--output-groups` write them."
    parts[-1] = replace(parts[-1], remarks=(remark, hint))
    return parts


def _of_metrics(results: pl.DataFrame) -> pl.DataFrame:
    """Metrics with their values and intervals."""
    hidden = {".n", ".method", ".status", ".group_min", ".group_max", ".base_metric", ".metrics_left_out"}
    return one_below_the_other(results.drop(*hidden, strict=False))


def _over_outer_groups(results: pl.DataFrame, together: pl.DataFrame) -> pl.DataFrame:
    """A row for each metric: the value of all rows, then the mean, lowest and highest value of outer groups.

    Args:
        results: Results of outer groups.
        together: The same results of all rows, as a table of texts; its rows are in the order of the metrics.
    """
    keys = [name for name in (*RESULT_KEYS, ".level") if name in together.columns]
    names = texts_of(results.select(key_columns(results)), ", ").alias(_NAME)
    value, ends = pl.col(".estimate").fill_nan(None), ("lowest", "highest")
    summary = results.with_columns(names).filter(value.is_not_null()).group_by(keys, maintain_order=True).agg(
        value.mean().alias("mean"), value.min().alias("lowest"), value.max().alias("highest"),
        pl.col(_NAME).sort_by(".estimate").first().alias("name of lowest"),
        pl.col(_NAME).sort_by(".estimate").last().alias("name of highest"),
    )  # fmt: skip
    texts = summary.with_columns(rounded(summary[name]) for name in ("mean", *ends))
    named = [pl.format("{} ({})", end, f"name of {end}").alias(end) for end in ends]
    texts = texts.select(*keys, "mean", *named)
    return together.join(texts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _disparity_part(by: By, results: pl.DataFrame, by_outer: str = "") -> Part:
    """The table of the disparities of a feature."""
    of_feature = results.filter(pl.col(".by") == by.text)
    disparities = _with_sides(by, of_feature.drop(".by", ".n", ".method", strict=False), [".group_min", ".group_max"])
    table = one_below_the_other(disparities)
    if ".base_metric" in table.columns:
        # the metric that is the worst of several stands beside the name of the disparity
        base = pl.col(".base_metric")
        named = pl.when(base != "").then(pl.format("{} ({})", ".metric", base)).otherwise(".metric")
        table = table.with_columns(named.alias(".metric")).drop(".base_metric")
    table = in_words(table)
    notes = notes_on_left_out(table, of_feature, [by])
    up_to = "metric" if "metric" in table.columns else ""
    return Part(f"Disparities of {by.text}{by_outer}", table, tuple(notes), up_to)


def notes_on_left_out(
    table: pl.DataFrame, results: pl.DataFrame, bys: Iterable[By], outer: pl.DataFrame | None = None
) -> list[Note]:
    """The groups that disparities leave out, as notes on the names of the disparities.

    Args:
        table: The disparities as they are shown.
        results: The same disparities, in the same order.
        bys: Their features.
        outer: Those of outer groups, if `results` are of all of them together.
    """
    # an outer key of the user may be called so, too
    *_, name = (name for name in table.columns if name.strip() == "metric")
    words = {by.text: partial(group_in_words, by) for by in bys}
    outer = results.clear() if outer is None else outer
    keys = [key for key in RESULT_KEYS if key in outer.columns]
    notes: list[Note] = []
    for row, result in enumerate(results.iter_slices(1)):
        in_words_of_feature = words.get(result[".by"].item(), str)
        texts = [_left_out_of(result, in_words_of_feature)]
        each = outer.join(result, on=keys, how="semi", nulls_equal=True)
        without = each.filter(pl.col(".left_out").list.len() > 0)
        if len(without):
            of_outer = f"by {', '.join(key_columns(outer))}, in {len(without)} of {len(each)}: "
            texts.append(of_outer + _left_out_of(without, in_words_of_feature))
        if text := "; ".join(filter(None, texts)):
            notes.append((name, row, f"left out: {text}"))
    return notes


def _left_out_of(results: pl.DataFrame, group: Callable[[str], str]) -> str:
    """The groups that any row of results leaves out."""
    return left_out_in_words(results[".left_out"].explode().drop_nulls().to_list(), group)


def _group_part(audited: _Audited, by: By) -> Part:
    """The table of the groups of a feature, below the values of all rows."""
    is_full, min_n = audited.options.full, audited.inputs.policy.min_n
    groups = with_cuts_in_words((audited.numbers if is_full else audited.together).groups)
    overall = _without_constants(groups.filter(pl.col(".by").is_null()), audited.metrics.groups)
    of_feature = _with_sides(by, groups.filter(pl.col(".by") == by.text), [".group"])
    shown, hint = of_feature, []
    sizes = of_feature.group_by(".group", maintain_order=True).agg(pl.col(".n").max())
    if len(sizes) > _MANY_GROUPS and not is_full:
        largest = sizes.sort(".n", descending=True, maintain_order=True).head(_MANY_GROUPS)[".group"]
        shown = of_feature.filter(pl.col(".group").is_in(largest.to_list()))
        number = f"The {_MANY_GROUPS} largest of {len(sizes):,} groups"
        hint = [f"{number}; `--full` shows all, and `--output-groups` writes them."]
    table, notes = groups_side_by_side(pl.concat([overall, shown], how="vertical_relaxed"), None, min_n)
    is_hidden = (shown[".n"] < min_n).any()
    remarks = [f"-: hidden, fewer than {min_n} rows."] if is_hidden else []
    if is_hidden or (of_feature[".status"] == Status.UNKNOWN.value).any() or has_dropped_rows(overall, of_feature):
        remarks.append(ALL_ROWS)
    is_overall = pl.col(".by") == _EVERYBODY
    table = table.with_columns(pl.when(is_overall).then(pl.lit(_EVERYBODY)).otherwise(".group").alias(".group"))
    return Part(f"Groups of {by.text}", in_words(table.drop(".by")), tuple(notes), "rows", (*remarks, *hint))


def _with_sides(by: By, results: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Results with the two sides of a feature in words, if it has any."""
    if by.sides is None:
        return results
    words = {side: group_in_words(by, side) for side in ("privileged", "unprivileged", "neither")}
    return results.with_columns(pl.col(columns).replace(words))


def _without_constants(overall: pl.DataFrame, metrics: Iterable[object]) -> pl.DataFrame:
    """The values of all rows without averages over labels that are the same whatever the data."""
    constant = pl.lit(value=False)
    for metric in metrics:
        if isinstance(metric, Metric) and metric.constant_averages:
            is_average = pl.col(".estimator").is_in(metric.constant_averages)
            constant |= (pl.col(".metric") == metric.name) & is_average
    hidden = [name for name in (".estimate", ".lower", ".upper", ".status") if name in overall.columns]
    return overall.with_columns(pl.when(~constant).then(name).alias(name) for name in hidden)
