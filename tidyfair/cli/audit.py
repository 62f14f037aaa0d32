"""The commands `audit` and `report`: rates by group and disparities, with verdicts, pages and files on request."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import polars as pl

from tidyfair.audits import AuditResults, UsualMetrics, facts_of_audit
from tidyfair.calling import Metric, metric_set
from tidyfair.cli.fail_if import gate_of
from tidyfair.cli.flags import as_flags, names_of
from tidyfair.cli.inputs import (
    Inputs,
    added_metrics,
    check_kind,
    confidence_of,
    read_inputs,
    remarks_on_missing,
    remarks_on_threshold,
)
from tidyfair.cli.named_audits import FACTS, file_named_audit
from tidyfair.cli.outputs import Content, Document, Outputs, Part, in_words, records, with_cuts_in_words
from tidyfair.cli.verdicts import Verdicts
from tidyfair.errors import ArgumentError, ConstantWarning, MissingPredictionsWarning, Status, UndefinedWarning
from tidyfair.evaluation import missing_in_words, texts_of
from tidyfair.inference.gates import Gate
from tidyfair.reports import (
    NOTHING,
    Note,
    Report,
    feature_in_words,
    finding_on,
    group_in_words,
    groups_side_by_side,
    in_unit,
    left_out_in_words,
    missing_of,
    names_of_groups,
    need_packages,
    one_below_the_other,
    page_of,
    percent,
    reason,
    remarks_on,
    remarks_on_all_rows,
    units_of,
    with_intervals_of,
)
from tidyfair.specs import CUT_OPTIONS, RESULT_KEYS, By, key_columns
from tidyfair.tallies import ESTIMATE, Tally

_MANY_GROUPS = 30
"""Groups beyond which a feature is likely to be a number, and neither all groups nor undefined values are listed."""
_NAME = "\0name"
_EVERYBODY = "all rows"


def audit(options: Namespace) -> int:
    """An audit of a file of predictions: one that has a name, or the usual metrics."""
    if vars(options)["as"] is not None:
        return file_named_audit(options)
    outputs = Outputs.of(options)
    pages = _pages(options, outputs)
    inputs = read_inputs(options)
    for cut in CUT_OPTIONS:
        if pages and isinstance(inputs.counting.get(cut), list):
            msg = f"A page is about one set of decisions: give one number as `{cut}`, or leave out `{pages[0]}`."
            raise ArgumentError(msg)
    audited = _Audited.of(options, inputs)
    # a page has notes of its own on what is undefined
    has_tables = not pages or outputs.files.keys() > {*pages}
    notes = [*(audited.remarks_on_results() if has_tables else ()), *audited.remarks_on_rows()]
    write_evidence = partial(audited.results.save_evidence, data=inputs.data, call=_call(inputs), gate=audited.gate)
    outputs.write_evidence(write_evidence)
    page = cache(lambda: _page(audited))
    contents: dict[str, Callable[[], Content]] = {"html": lambda: page().html()}
    if options.command == "report":
        contents["markdown"] = lambda: page().markdown()
    contents |= {
        "output": lambda: audited.results.results,
        "output_groups": lambda: audited.large_groups(audited.results),
        "json": lambda: _json_of(audited),
    }
    brief = partial(_document, audited, verdicts_only=True) if audited.verdicts else None
    code = audited.verdicts.exit_code if audited.verdicts else 0
    return outputs.finish(partial(_document, audited), contents, brief=brief, notes=notes, code=code)


def _pages(options: Namespace, outputs: Outputs) -> list[str]:
    """The flags of the files that are pages; refuses what does not go with the usual metrics, or with pages."""
    for flag in ("to", "within", "complementary"):
        if getattr(options, flag) is not None:
            msg = f"`{flag}` goes with `as`, the name of an audit."
            raise ArgumentError(msg)
    if "html" not in outputs.files and (named := [flag for flag in FACTS if getattr(options, flag) is not None]):
        msg = f"`{named[0]}` stands on a page: write one by `html`, or the table of an audit by `as`."
        raise ArgumentError(msg)
    flags = ("html", "markdown") if options.command == "report" else ("html",)
    pages = [flag for flag in flags if flag in outputs.files]
    if pages and options.group_by:
        msg = (
            f"A page is about one set of predictions, and `group_by` makes several: leave it out with "
            f"{' and '.join(f'`{flag}`' for flag in pages)}, or write the values of each to a file with `output`."
        )
        raise ArgumentError(msg)
    return pages


def _call(inputs: Inputs) -> dict[str, Any]:
    """The arguments of the call, besides the data."""
    return {"truth": inputs.truth, "estimate": inputs.estimate, **inputs.counting, **inputs.reading}


def _page(audited: _Audited) -> Report:
    """The report, which ends with the command line that made it."""
    options, inputs = audited.options, audited.inputs
    need_packages()
    results = replace(audited.results, simultaneous=False) if options.simultaneous else audited.results
    facts = facts_of_audit(**{name: getattr(options, name) for name in FACTS})
    title = "Audit of predictions" if options.title is None else options.title
    return page_of(
        results, inputs.data, _call(inputs), audited.gate, title=title, facts=facts, code=options.line,
        interactive=bool(options.interactive),
    )  # fmt: skip


def _json_of(audited: _Audited) -> dict[str, Any]:
    """The content of the JSON document."""
    inputs = audited.inputs
    counting = {name: value for name, value in inputs.counting.items() if name != "group_by"}
    content: dict[str, Any] = {
        "data": {
            "name": inputs.name, "rows": audited.results.rows, "truth": inputs.truth, "estimate": inputs.estimate,
            **counting,
        },
        "conf_level": audited.results.level,
        "results": records(audited.results.results),
        "groups": records(audited.large_groups(audited.results)),
    }  # fmt: skip
    if audited.outer:
        content["pooled_results"] = records(audited.together.results)
        content["pooled_groups"] = records(audited.large_groups(audited.together))
    return content | (audited.verdicts.content if audited.verdicts else {})


@dataclass(frozen=True)
class _Audited:
    """The results of an audit, and what was asked for."""

    options: Namespace
    inputs: Inputs
    results: AuditResults
    gate: Gate | None
    verdicts: Verdicts | None

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs) -> _Audited:
        """Check what is asked for, and count the rows."""
        more = added_metrics(options, inputs)
        metrics = UsualMetrics.of(inputs.features, inputs.kind, policy=inputs.policy, more=more)
        gate = _gate(options, inputs, metrics)
        call = inputs.counting | inputs.reading
        data, truth, estimate = inputs.data, inputs.truth, inputs.estimate
        results = AuditResults.of(metrics, data, truth, estimate, call, gate, margin=options.margin)
        metrics.results.run.check_occurs(results.tally, results.options)
        verdicts = None
        if gate is not None:
            judged = results.verdicts(gate)
            shown = with_intervals_of(results, gate, judged)
            verdicts = Verdicts(
                judged, [*gate.metrics], gate.conf_level, gate.outside, shown=shown, level=results.level
            )
        results = replace(results, simultaneous=bool(options.simultaneous))
        return cls(options, inputs, results, gate, verdicts)

    @property
    def metrics(self) -> UsualMetrics:
        """The usual metrics, and those that are added to them."""
        return self.results.metrics

    @property
    def outer(self) -> list[str]:
        """The columns of outer groups, each of which is a set of predictions."""
        return [column.name for column in self.results.tally.outer_columns]

    @property
    def has_several_cuts(self) -> bool:
        """True if decisions are made at several thresholds, numbers or shares of rows."""
        return any(isinstance(self.inputs.counting.get(cut), list) for cut in CUT_OPTIONS)

    @cached_property
    def together(self) -> AuditResults:
        """The results of all outer groups together."""
        if not self.outer:
            return self.results
        return replace(self.results, tally=pooled(self.results.tally))

    @cached_property
    def units(self) -> dict[str, str]:
        """The unit of each metric, and of each disparity, that has one."""
        rates = [metric for metric in self.metrics.groups if isinstance(metric, Metric)]
        return units_of([*rates, *self.metrics.results])

    def large_groups(self, results: AuditResults) -> pl.DataFrame:
        """The values of groups that have enough rows."""
        # the size of a suppressed group is not known
        return results.groups_with_unknown.filter((pl.col(".n") >= self.inputs.policy.min_n).fill_null(value=True))

    def remarks_on_results(self) -> list[str]:
        """Sentences on features with very many groups, and on the undefined values of all others."""
        groups = self.together.groups_with_unknown
        sizes = groups.group_by(".by", ".group", maintain_order=True).agg(pl.col(".n").max()).drop_nulls(".by")
        sizes = sizes.group_by(".by", maintain_order=True).agg(pl.len().alias("groups"), pl.col(".n").median())
        many = sizes.filter(pl.col("groups") > _MANY_GROUPS)
        remarks = [
            f"{by!r} has {number:,} groups, half of which have no more than {median:,.0f} rows: "
            "put numbers into bands, and rare values together."
            for by, number, median in many.rows()
        ]
        reading: dict[str, Any] = {**self.inputs.reading, "interval": None}
        shown = [metric for metric in self.metrics.results if metric.by is None or metric.by.text not in many[".by"]]
        with warnings.catch_warnings(record=True) as caught:
            for category in (UndefinedWarning, ConstantWarning):
                warnings.simplefilter("always", category)
            # said of the rows
            warnings.simplefilter("ignore", MissingPredictionsWarning)
            metric_set(*shown).compute(self.results.tally, **reading)
        messages = [str(warning.message).partition(" (on_undefined")[0] for warning in caught]
        return remarks + [as_flags(message, names_of(self.options.command)) for message in messages]

    def remarks_on_rows(self) -> list[str]:
        """Sentences on rows that are left out, and on decisions that are all the same."""
        inputs = self.inputs
        remarks = remarks_on_missing(missing_of(self.results.tally).select("column", "missing").rows())
        missing = missing_in_words(self.results.tally, self.metrics.bys)
        if missing is not None and missing[1] and inputs.reading.get("na_rm", True):
            head, shares = missing
            remarks.append(f"{head}: {'; '.join(shares)}.")
        # the range of the scores matters only where all decisions are the same
        threshold = inputs.counting.get("threshold")
        if threshold is not None and self.results.tally.cells[ESTIMATE].drop_nulls().n_unique() == 1:
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
    return gate


# Tables and documents


def _document(audited: _Audited, *, verdicts_only: bool = False) -> Document:
    """The audit as a document."""
    verdicts = audited.verdicts
    headline = [] if verdicts is None else [verdicts.sentence()]
    parts = [] if verdicts is None else [verdicts.part(is_full=audited.options.full)]
    remarks: list[str] = []
    if not verdicts_only:
        parts += [*_results_parts(audited), *(_group_part(audited, by) for by in audited.metrics.bys)]
        remarks += _remarks_on_answers(audited)
        if not audited.has_several_cuts:
            findings = [finding_on(by, audited.together) for by in audited.metrics.bys]
            findings += remarks_on(audited.together)
            headline += [f"{finding.lead} {finding.text}" for finding in findings]
    inputs, results = audited.inputs, audited.results
    event = audited.metrics.event(results.tally, results.options)
    facts = {
        "truth": inputs.truth, "predictions": inputs.estimate, "scores": inputs.counting.get("probs"), "event": event
    }  # fmt: skip
    if results.tally.suppression is not None:
        remarks.append(results.tally.suppression.in_words)
    known = [f"{fact} {value!r}" for fact, value in facts.items() if value is not None]
    title = f"Audit of {inputs.name}: {results.rows:,} rows, {', '.join(known)}"
    compared = inputs.policy.in_words if audited.metrics.bys else ""
    return Document(title, headline, parts, remarks, compared)


def _remarks_on_answers(audited: _Audited) -> list[str]:
    """Sentences on intervals, and on when groups differ or are alike."""
    level, remarks = audited.results.level, list[str]()
    if level is not None:
        at_once = ", and those of groups hold for all groups at once" if audited.options.simultaneous else ""
        remarks.append(f"Intervals in parentheses are {percent(level)} confidence intervals{at_once}.")
    if not audited.has_several_cuts and audited.together.answers:
        error = percent(audited.together.significance.error)
        remarks.append(
            f"Groups differ: at the {error} level, adjusted for the number of disparities (Holm). They are alike: "
            f"the whole interval is within the margin, {audited.together.margin_in_words}."
        )
    return remarks


def _results_parts(audited: _Audited) -> list[Part]:
    """The tables of disparities, and of metrics of all rows where there are outer groups."""
    together = with_cuts_in_words(audited.together.compared_results)
    units = audited.units
    if not audited.outer:
        return [_disparity_part(by, together, units) for by in audited.metrics.bys]
    results, outer = with_cuts_in_words(audited.results.results), ", ".join(audited.outer)
    if audited.options.full:
        metrics = in_words(_without_details(results.filter(pl.col(".by").is_null()), units))
        metrics_part = Part(f"Metrics by {outer}", metrics, (), "metric" if "metric" in metrics.columns else "")
        return [metrics_part, *(_disparity_part(by, results, units, f" by {outer}") for by in audited.metrics.bys)]
    parts: list[Part] = []
    for by in (None, *audited.metrics.bys):
        feature_rows = pl.col(".by").eq_missing(pl.lit(by and by.text))
        pooled_rows, outer_rows = together.filter(feature_rows), results.filter(feature_rows)
        table = _without_details(pooled_rows, units).rename({".estimate": ".pooled"}, strict=False)
        compact = in_words(_over_outer_groups(outer_rows, table.drop(".by", strict=False), units))
        title = f"Metrics over {outer}" if by is None else f"Disparities of {feature_in_words(by)} over {outer}"
        notes = notes_on_left_out(compact, pooled_rows, audited.metrics.bys, outer_rows)
        parts.append(Part(title, compact, tuple(notes), "metric"))
    remark = f"Pooled: all rows together. Lowest and highest: of a {outer}, which is in parentheses."
    hint = f"`--full` shows each {outer}; `--output` and `--output-groups` write them."
    parts[-1] = replace(parts[-1], remarks=(remark, hint))
    return parts


def _without_details(results: pl.DataFrame, units: Mapping[str, str]) -> pl.DataFrame:
    """Metrics with their values and intervals."""
    hidden = {".n", ".method", ".status", ".group_min", ".group_max", ".base_metric", ".metrics_left_out"}
    return one_below_the_other(results.drop(*hidden, strict=False), units)


def _over_outer_groups(results: pl.DataFrame, together: pl.DataFrame, units: Mapping[str, str]) -> pl.DataFrame:
    """A row for each metric: its text of all rows together, then the mean, lowest and highest of outer groups."""
    keys = [name for name in (*RESULT_KEYS, ".level") if name in together.columns]
    names = texts_of(results.select(key_columns(results)), ", ").alias(_NAME)
    value, ends = pl.col(".estimate").fill_nan(None), ("lowest", "highest")
    summary = results.with_columns(names).filter(value.is_not_null()).group_by(keys, maintain_order=True).agg(
        value.mean().alias("mean"), value.min().alias("lowest"), value.max().alias("highest"),
        pl.col(_NAME).sort_by(".estimate").first().alias("name of lowest"),
        pl.col(_NAME).sort_by(".estimate").last().alias("name of highest"),
    )  # fmt: skip
    in_units = [units.get(name, "") for name in summary[".metric"]]
    # the value of all rows together names the points
    columns = {
        name: [
            in_unit(value, unit).removesuffix(" points") for value, unit in zip(summary[name], in_units, strict=True)
        ]
        for name in ("mean", *ends)
    }
    texts = summary.with_columns(pl.Series(name, column, dtype=pl.String) for name, column in columns.items())
    named = [pl.format("{} ({})", end, f"name of {end}").alias(end) for end in ends]
    texts = texts.select(*keys, "mean", *named)
    return together.join(texts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _disparity_part(by: By, results: pl.DataFrame, units: Mapping[str, str], by_outer: str = "") -> Part:
    """The table of the disparities of a feature."""
    feature_rows = results.filter(pl.col(".by") == by.text)
    ends = [".group_min", ".group_max"]
    names = {name: group_in_words(by, name) for end in ends for name in feature_rows[end].drop_nulls()}
    disparities = feature_rows.drop(".by", ".n", ".method", strict=False).with_columns(pl.col(ends).replace(names))
    table = one_below_the_other(disparities, units)
    if ".base_metric" in table.columns:
        # the metric that is the worst of several stands beside the name of the disparity
        base = pl.col(".base_metric")
        named = pl.when(base != "").then(pl.format("{} ({})", ".metric", base)).otherwise(".metric")
        table = table.with_columns(named.alias(".metric")).drop(".base_metric")
    table = in_words(table)
    notes = notes_on_left_out(table, feature_rows, [by])
    up_to = "metric" if "metric" in table.columns else ""
    return Part(f"Disparities of {feature_in_words(by)}{by_outer}", table, tuple(notes), up_to)


def notes_on_left_out(
    table: pl.DataFrame, results: pl.DataFrame, bys: Iterable[By], outer: pl.DataFrame | None = None
) -> list[Note]:
    """The groups that disparities leave out, as notes on their names in a table, whose rows are those of `results`.

    Results of all outer groups together have those of each in `outer`.
    """

    def left_out_of(rows: pl.DataFrame, group: Callable[[str], str]) -> str:
        return left_out_in_words(rows[".left_out"].explode().drop_nulls().to_list(), group)

    # an outer key of the user may be called so, too
    *_, name = (name for name in table.columns if name.strip() == "metric")
    words = {by.text: partial(group_in_words, by) for by in bys}
    outer = results.clear() if outer is None else outer
    keys = [key for key in RESULT_KEYS if key in outer.columns]
    notes: list[Note] = []
    for row, result in enumerate(results.iter_slices(1)):
        group = words.get(result[".by"].item(), str)
        texts = [left_out_of(result, group)]
        each = outer.join(result, on=keys, how="semi", nulls_equal=True)
        without = each.filter(pl.col(".left_out").list.len() > 0)
        if len(without):
            where = f"by {', '.join(key_columns(outer))}, in {len(without)} of {len(each)}: "
            texts.append(where + left_out_of(without, group))
        if text := "; ".join(filter(None, texts)):
            notes.append((name, row, f"left out: {text}"))
    return notes


def _group_part(audited: _Audited, by: By) -> Part:
    """The table of the groups of a feature, below the values of all rows."""
    is_full, min_n = audited.options.full, audited.inputs.policy.min_n
    groups = with_cuts_in_words((audited.results if is_full else audited.together).groups_with_unknown)
    overall = groups.filter(pl.col(".by").is_null())
    values = [name for name in (".estimate", ".lower", ".upper", ".status") if name in overall.columns]
    # averages over labels that are the same whatever the data say nothing
    has_meaning = ~audited.metrics.is_constant
    overall = overall.with_columns(pl.when(has_meaning).then(name).alias(name) for name in values)
    feature_rows = groups.filter(pl.col(".by") == by.text)
    feature_rows = feature_rows.with_columns(pl.col(".group").replace(names_of_groups(by, feature_rows)))
    shown, hint = feature_rows, []
    sizes = feature_rows.group_by(".group", maintain_order=True).agg(pl.col(".n").max())
    if len(sizes) > _MANY_GROUPS and not is_full:
        largest = sizes.sort(".n", descending=True, maintain_order=True).head(_MANY_GROUPS)[".group"]
        shown = feature_rows.filter(pl.col(".group").is_in(largest.to_list()))
        number = f"The {_MANY_GROUPS} largest of {len(sizes):,} groups"
        hint = [f"{number}; `--full` shows all, and `--output-groups` writes them."]
    table, notes = groups_side_by_side(pl.concat([overall, shown], how="vertical_relaxed"), None, min_n, audited.units)
    # the names of groups say who is not compared
    notes = [note for note in notes if note[2] != reason(Status.UNKNOWN)]
    remarks = [remark.replace(NOTHING, "-") for remark in remarks_on_all_rows(overall, feature_rows, min_n)]
    is_overall = pl.col(".by") == _EVERYBODY
    table = table.with_columns(pl.when(is_overall).then(pl.lit(_EVERYBODY)).otherwise(".group").alias(".group"))
    return Part(
        f"Groups of {feature_in_words(by)}", in_words(table.drop(".by")), tuple(notes), "rows", (*remarks, *hint)
    )
