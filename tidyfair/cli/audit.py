"""The commands `audit` and `report`: rates by group and disparities, with verdicts, pages and files on request."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from tidyfair.audits.significance import (
    Significance,
    draws_of,
    has_tests,
    with_small_groups,
    without_single_groups,
)
from tidyfair.audits.usual_metrics import UsualMetrics
from tidyfair.cli.documents import Document, Part, in_words
from tidyfair.cli.fail_if import SIDES, comparison_of, gate_of
from tidyfair.cli.flags import as_flags, names_of
from tidyfair.cli.folds import over_outer_groups, pooled, with_cuts_in_words
from tidyfair.cli.headlines import exit_code_of, verdicts_in_words
from tidyfair.cli.inputs import CUTS, policy_of, read_inputs, remarks_on_missing, remarks_on_threshold, set_defaults
from tidyfair.cli.named_audits import file_named_audit
from tidyfair.cli.outputs import Outputs, as_json, records
from tidyfair.cli.terminal import note, tell
from tidyfair.errors import ArgumentError, ConstantWarning, MissingPredictionsWarning, Status, UndefinedWarning
from tidyfair.evaluation.group_cells import texts_of
from tidyfair.evaluation.missing_predictions import missing_in_words
from tidyfair.inference.gate_texts import outside_of, share_in_words
from tidyfair.inference.unknown_groups import UNKNOWN_ROWS, UNKNOWN_SHARE, WITH_UNKNOWN
from tidyfair.inference.verdicts import FAIL, PASS, UNSURE
from tidyfair.metric_sets import KINDS, PYTHON_ONLY, GroupwiseMetric, Metric, metric_set, metric_tweak
from tidyfair.metrics.catalog import metric_named
from tidyfair.reports.findings import group_in_words, of_feature, percent
from tidyfair.reports.page import report
from tidyfair.reports.reproduction import how_to_repeat
from tidyfair.reports.sections import missing_of
from tidyfair.reports.tables import (
    ALL_ROWS,
    groups_side_by_side,
    has_dropped_rows,
    left_out_in_words,
    one_below_the_other,
)
from tidyfair.specs.groups import Privileged
from tidyfair.specs.options import Options
from tidyfair.specs.result_columns import RESULT_KEYS, SELECTIONS, key_columns
from tidyfair.tallies.files import write
from tidyfair.tallies.tally import ESTIMATE

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from tidyfair.audits.usual_metrics import Feature, Predictions
    from tidyfair.cli.fail_if import Key
    from tidyfair.cli.inputs import Inputs
    from tidyfair.inference.gates import Gate
    from tidyfair.inference.verdicts import Outside
    from tidyfair.metric_sets import GroupwiseFactory
    from tidyfair.reports.findings import Finding
    from tidyfair.reports.tables import Note
    from tidyfair.specs.groups import By
    from tidyfair.tallies.tally import Tally

_CONFIDENCE = 0.95
_NAME = "\0name"
_EVERYBODY = "all rows"
_MANY = 30
"""Groups beyond which a feature is likely to be a number, and neither all groups nor undefined values are listed."""
_INTERVAL = 0.95


def audit(options: Namespace) -> int:
    """An audit of a file of predictions: one that has a name, or the usual metrics."""
    if vars(options)["as"] is not None:
        return file_named_audit(options)
    for flag in ("to", "within"):
        if getattr(options, flag) is not None:
            msg = f"`{flag}` goes with `as`, the name of an audit."
            raise ArgumentError(msg)
    set_defaults(options)
    return _usual_audit(options)


def _usual_audit(options: Namespace) -> int:
    outputs = Outputs.of(options)
    is_report = options.command == "report"
    pages = ["html", "markdown"] if is_report else ["html"]
    pages = [flag for flag in pages if flag in outputs]
    _check_pages(pages, options.group_by)
    inputs = read_inputs(options)
    _check_one_cut(pages, inputs)
    audited = _Audited.of(options, inputs)
    code = exit_code_of(audited.verdicts)
    needs_results = bool(outputs.files.keys() - {*pages}) or not pages
    # a page has notes of its own on what is undefined
    notes = audited.remarks_on_results() if needs_results else []
    notes += audited.remarks_on_rows()
    if pages:
        _write_pages(pages, outputs, options, audited)
    if needs_results:
        _write(outputs, options, audited, notes, code)
    if pages and not outputs.takes_stdout and audited.gate:
        # a page shows its verdicts, and so does the terminal beside it
        _document(audited, verdicts_only=True).print()
    for text in notes:
        note(text)
    return code


@dataclass(frozen=True)
class _Audited:
    """The rows as they were counted, and what is computed of them."""

    options: Namespace
    inputs: Inputs
    metrics: UsualMetrics
    tally: Tally
    gate: Gate | None
    verdicts: pl.DataFrame | None
    at_risks: list[_AtRisk]
    """Metrics that weigh errors by the threshold, such as net benefit, at each of several thresholds."""

    @classmethod
    def of(cls, options: Namespace, inputs: Inputs) -> _Audited:
        """Check what is asked for, and count the rows."""
        more, of_risks = _split_by_risk(added_metrics(options, inputs), inputs)
        metrics = UsualMetrics.of(inputs.features, inputs.kind, policy=policy_of(options), more=more)
        at_risks = _at_risks(of_risks, options, inputs)
        gate = _gate(options, inputs, [by.text for by in metrics.bys])
        call: dict[str, Any] = {"data": inputs.data, "truth": inputs.truth, "estimate": inputs.estimate}
        counting = dict(inputs.counting)
        if "cluster" not in counting:
            # intervals need to see how much sums vary from part to part
            counting["parts"] = inputs.reading.get("seed", 0)
        tally = metrics.everything(*(gate.metrics if gate else ())).tally(**call, **counting)
        metrics.results.run.check_occurs(tally, Options(**inputs.reading))
        verdicts = gate.compute(tally, on_undefined="ignore", **inputs.judged_by) if gate else None
        return cls(options, inputs, metrics, tally, gate, verdicts, at_risks)

    @property
    def has_outer_groups(self) -> bool:
        """True if there are several sets of predictions."""
        return bool(self.tally.outer_columns)

    @property
    def has_several_cuts(self) -> bool:
        """True if decisions are made at several thresholds, numbers or shares of rows."""
        return any(isinstance(self.inputs.counting.get(cut), list) for cut in CUTS)

    @property
    def min_n(self) -> int:
        """The rows of the smallest group that is shown."""
        return self.options.min_n

    @cached_property
    def results(self) -> pl.DataFrame:
        """Metrics of all rows and disparities, with their intervals, in each outer group."""
        return self._results(self.tally)

    @cached_property
    def pooled_results(self) -> pl.DataFrame:
        """The same of all outer groups together."""
        return self._results(pooled(self.tally)) if self.has_outer_groups else self.results

    @cached_property
    def groups(self) -> pl.DataFrame:
        """The values of groups, with their intervals, in each outer group."""
        return with_small_groups(self._groups(self.tally), self.results)

    @cached_property
    def pooled_groups(self) -> pl.DataFrame:
        """The same of all outer groups together."""
        if not self.has_outer_groups:
            return self.groups
        return with_small_groups(self._groups(pooled(self.tally)), self.pooled_results)

    @cached_property
    def compared_results(self) -> pl.DataFrame:
        """The pooled results, in which a single group has no disparity."""
        return without_single_groups(self.pooled_results, self.pooled_groups, self.metrics.parities)

    @cached_property
    def significance(self) -> Significance:
        """The significant disparities of all outer groups together."""
        tally, reading, results = pooled(self.tally), self.inputs.reading, self.compared_results
        tests = has_tests(self.inputs.counting, tally, results)
        draws = draws_of(self.pooled_groups)
        return Significance.of(self.metrics.parities, tally, reading, results, draws=draws, tests=tests)

    @property
    def level(self) -> float | None:
        """The confidence level of intervals; None where none are asked for."""
        reading = self.inputs.reading
        return reading.get("conf_level", _INTERVAL) if reading["interval"] else None

    @cached_property
    def findings(self) -> list[Finding]:
        """The finding on each feature."""
        numbers = self.compared_results, self.pooled_groups, self.significance
        return [of_feature(by, self.metrics.parities, *numbers, self.level) for by in self.metrics.bys]

    def _results(self, tally: Tally) -> pl.DataFrame:
        results = self.metrics.results.compute(tally, explain=True, on_undefined="ignore", **self.inputs.reading)
        frames = [results]
        for at_risk in self.at_risks:
            part = pooled(at_risk.tally) if tally is not self.tally else at_risk.tally
            own = at_risk.metrics.results.compute(part, explain=True, on_undefined="ignore", **self.inputs.reading)
            frames.append(own.with_columns(pl.lit(at_risk.threshold).alias(".threshold")))
        return self._with_every_cut(pl.concat(frames, how="diagonal_relaxed"))

    def _groups(self, tally: Tally) -> pl.DataFrame:
        frames = [self._groups_of(self.metrics, tally)]
        for at_risk in self.at_risks:
            part = pooled(at_risk.tally) if tally is not self.tally else at_risk.tally
            own = self._groups_of(at_risk.metrics, part)
            frames.append(own.with_columns(pl.lit(at_risk.threshold).alias(".threshold")))
        return self._with_every_cut(pl.concat(frames, how="diagonal_relaxed"))

    def _groups_of(self, metrics: UsualMetrics, tally: Tally) -> pl.DataFrame:
        """The values of groups, also of unknown ones."""
        reading: dict[str, Any] = {**self.inputs.reading, "on_undefined": "ignore"}
        if self.options.simultaneous:
            reading["simultaneous"] = True
        return metrics.with_values_of_unknown(metrics.groups.compute_by_group(tally, **reading), tally, **reading)

    def _with_every_cut(self, results: pl.DataFrame) -> pl.DataFrame:
        """Results of which those that depend on no decision, such as areas, are shown at each of several cuts."""
        cut = next((name for name in SELECTIONS if name in results.columns), None)
        if cut is None:
            return results
        cuts = results[cut].unique().drop_nulls().sort()
        lists = pl.when(pl.col(cut).is_null()).then(pl.lit(cuts).implode()).otherwise(pl.concat_list(cut))
        return results.with_columns(lists.alias(cut)).explode(cut)

    def remarks_on_results(self) -> list[str]:
        """Sentences on features with very many groups, and on undefined values."""
        remarks, many = _remarks_on_many_groups(self.pooled_groups)
        return remarks + self._undefined(many)

    def remarks_on_rows(self) -> list[str]:
        """Sentences on rows that are left out, and on decisions that are all the same."""
        inputs = self.inputs
        notes = remarks_on_missing(missing_of(self.tally).select("column", "missing").rows())
        missing = missing_in_words(self.tally, self.metrics.bys)
        if missing is not None and missing[1] and inputs.reading.get("na_rm", True):
            head, shares = missing
            notes.append(f"{head}: {'; '.join(shares)}.")
        # the range of the scores matters only where all decisions are the same
        threshold = inputs.counting.get("threshold")
        if threshold is not None and self.tally.cells[ESTIMATE].drop_nulls().n_unique() == 1:
            notes += remarks_on_threshold(inputs.data, threshold, [inputs.counting["probs"]])
        return notes

    def _undefined(self, many: Collection[str]) -> list[str]:
        """Which values are undefined, except for features with very many groups."""
        shown = [metric for metric in self.metrics.results if _feature_of(metric) not in many]
        reading: dict[str, Any] = {**self.inputs.reading, "interval": None}
        with warnings.catch_warnings(record=True) as caught:
            for category in (UndefinedWarning, ConstantWarning):
                warnings.simplefilter("always", category)
            # said of the rows
            warnings.simplefilter("ignore", MissingPredictionsWarning)
            metric_set(*shown).compute(self.tally, **reading)
        messages = [str(warning.message).partition(" (on_undefined")[0] for warning in caught]
        return [as_flags(message, names_of(self.options.command)) for message in messages]


@dataclass(frozen=True)
class _AtRisk:
    """Metrics that weigh errors by the odds of a threshold, and the counts at that threshold."""

    threshold: float
    metrics: UsualMetrics
    tally: Tally


def _split_by_risk(
    more: Sequence[Metric | GroupwiseFactory], inputs: Inputs
) -> tuple[list[Metric | GroupwiseFactory], list[Metric | GroupwiseFactory]]:
    """The metrics that are computed at one threshold or at none, and those that need a count for each threshold."""
    threshold = inputs.counting.get("threshold")
    if not isinstance(threshold, list):
        return [at_risk(metric, threshold) for metric in more], []
    of_risks = [metric for metric in more if _weighs_by_risk(metric)]
    return [metric for metric in more if metric not in of_risks], of_risks


def _weighs_by_risk(metric: Metric | GroupwiseMetric | GroupwiseFactory) -> bool:
    """Check whether a metric weighs errors by the odds of the threshold, as net benefit does."""
    metrics = [metric] if isinstance(metric, Metric) else metric.metrics
    return any("at" in part.options and part.kind == "class" for part in metrics)


def at_risk(metric: Any, threshold: Any) -> Any:
    """A metric, or what compares it, that weighs errors by the odds of the threshold, if it weighs them at all."""
    if threshold is None or isinstance(threshold, list) or not _weighs_by_risk(metric):
        return metric
    if isinstance(metric, Metric):
        return metric_tweak(metric, metric.name, at=threshold)
    metrics = tuple(at_risk(part, threshold) for part in metric.metrics)
    return replace(metric, metrics=metrics)


def _at_risks(of_risks: Sequence[Metric | GroupwiseFactory], options: Namespace, inputs: Inputs) -> list[_AtRisk]:
    """The metrics at each of several thresholds, counted one by one."""
    counted: list[_AtRisk] = []
    for threshold in inputs.counting["threshold"] if of_risks else ():
        members: list[Any] = []
        for metric in of_risks:
            tweaked = at_risk(metric, threshold)
            if isinstance(tweaked, Metric):
                members.append(tweaked)
                # groups are shown for features that are compared
                continue
            members += [tweaked(*_columns_of(feature)) for feature in inputs.features]
        metrics = UsualMetrics.of(inputs.features, inputs.kind, metrics=metric_set(*members), policy=policy_of(options))
        counting: dict[str, Any] = {**inputs.counting, "threshold": threshold}
        if "cluster" not in counting:
            counting["parts"] = inputs.reading.get("seed", 0)
        tally = metrics.everything().tally(inputs.data, truth=inputs.truth, estimate=inputs.estimate, **counting)
        counted.append(_AtRisk(threshold, metrics, tally))
    return counted


def _columns_of(feature: Feature) -> tuple[Any, ...]:
    """The arguments of a comparison for a feature."""
    return cast("tuple[Any, ...]", feature) if isinstance(feature, tuple) else (feature,)


def added_metrics(options: Namespace, inputs: Inputs) -> list[Metric | GroupwiseFactory]:
    """The metrics and disparities that `metric` adds to the usual ones."""
    has_sides = all(isinstance(feature, Privileged) for feature in inputs.features) and bool(inputs.features)
    more: list[Metric | GroupwiseFactory] = []
    for name in options.metric or ():
        metric = metric_named(name)
        if metric is not None and not metric.definition.compares:
            check_kind("metric", [metric], inputs.kind)
            more.append(metric)
            continue
        factory = comparison_of(name, "metric", has_sides=has_sides)
        check_kind("metric", [factory.typical], inputs.kind)
        more.append(factory)
    return more


def _feature_of(metric: Metric | GroupwiseMetric) -> str | None:
    """The feature that a metric compares groups by, as results show it."""
    return metric.by.text if isinstance(metric, GroupwiseMetric) else None


def _remarks_on_many_groups(groups: pl.DataFrame) -> tuple[list[str], set[str]]:
    """Sentences on features that have very many groups, and their names."""
    sizes = groups.group_by(".by", ".group", maintain_order=True).agg(pl.col(".n").max()).drop_nulls(".by")
    counts = sizes.group_by(".by", maintain_order=True).agg(pl.len().alias("groups"), pl.col(".n").median())
    many = counts.filter(pl.col("groups") > _MANY)
    remarks: list[str] = []
    for by, number, median in many.rows():
        text = f"{by!r} has {number:,} groups, half of which have no more than {median:,.0f} rows"
        remarks.append(f"{text}: put numbers into bands, and rare values together.")
    return remarks, set(many[".by"])


def _gate(options: Namespace, inputs: Inputs, features: Sequence[str]) -> Gate | None:
    """The limits that `fail_if` sets for these predictions."""
    confidence = confidence_of(options)
    if confidence is None:
        return None
    gate = gate_of(options.fail_if, confidence, inputs.schema, features, policy_of(options), options.outside or "hold")
    check_kind("fail_if", gate.metrics, inputs.kind)
    threshold = inputs.counting.get("threshold")
    for metric in gate.metrics:
        if isinstance(threshold, list) and _weighs_by_risk(metric):
            msg = f"`fail_if`: {metric.name} weighs errors by the threshold: give one number as `threshold`."
            raise ArgumentError(msg)
    return replace(gate, metrics=metric_set(*(at_risk(metric, threshold) for metric in gate.metrics)))


def confidence_of(options: Namespace) -> float | None:
    """How sure verdicts must be; None where none are asked for."""
    if options.fail_if:
        return _CONFIDENCE if options.confidence is None else options.confidence
    if options.outside is not None:
        msg = "`outside` is about the verdicts of `fail_if`, and there are none without it."
        raise ArgumentError(msg)
    if options.confidence is not None:
        msg = (
            "`confidence` is the confidence level of the verdicts of `fail_if`, and there are none without it; that of "
            "intervals is `conf_level`."
        )
        raise ArgumentError(msg)
    return None


def check_kind(flag: str, metrics: Iterable[Metric | GroupwiseMetric], kind: Predictions) -> None:
    """Refuse metrics of numbers for labels, and the reverse."""
    for metric in metrics:
        if metric.kind in PYTHON_ONLY:
            msg = f"`{flag}`: {metric.name} reads {KINDS[metric.kind]}, which only a call in Python can name."
            raise ArgumentError(msg)
        if (metric.kind == "numeric") != (kind == "numbers"):
            content = "labels" if kind == "numbers" else "numbers"
            msg = f"`{flag}`: {metric.name} is about {content}, which these predictions are not."
            raise ArgumentError(msg)


# Pages


def _check_pages(pages: Sequence[str], group_by: Sequence[str] | None) -> None:
    """Refuse pages of several sets of predictions."""
    if pages and group_by:
        flags = " and ".join(f"`{flag}`" for flag in pages)
        msg = (
            f"A page is about one set of predictions, and `group_by` makes several: leave it out with {flags}, or "
            "write the values of each to a file with `output`."
        )
        raise ArgumentError(msg)


def _check_one_cut(pages: Sequence[str], inputs: Inputs) -> None:
    """Refuse pages of decisions at several thresholds."""
    for cut in CUTS:
        if pages and isinstance(inputs.counting.get(cut), list):
            msg = f"A page is about one set of decisions: give one number as `{cut}`, or leave out `{pages[0]}`."
            raise ArgumentError(msg)


def _write_pages(pages: Sequence[str], outputs: Outputs, options: Namespace, audited: _Audited) -> None:
    """Write a report that ends with the command line that made it."""
    inputs = audited.inputs
    settings: dict[str, Any] = {"by": inputs.features, "metrics": audited.metrics.results, "gate": audited.gate}
    settings |= {name: getattr(options, name) for name in ("min_n", "min_share", "unknown", "unknown_values")}
    settings["interactive"] = bool(options.interactive)
    for name in ("title", "model", "dataset", "date"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)
    call: dict[str, Any] = {"truth": inputs.truth, "estimate": inputs.estimate, **inputs.counting, **inputs.reading}
    page = report(inputs.data, **call, **settings)
    page = replace(page, parts=(*page.parts[:-1], how_to_repeat(options.line)))
    for flag in pages:
        if flag == "markdown":
            outputs.write_text(flag, page.markdown())
        else:
            page.save(outputs.files[flag])
            tell(f"{outputs.files[flag]} is written.")


# Tables and documents


def _write(outputs: Outputs, options: Namespace, audited: _Audited, notes: list[str], code: int) -> None:
    """Write results to the files that are asked for, or print them."""
    if "output" in outputs:
        write(audited.results, outputs.files["output"])
    if "output_groups" in outputs:
        write(_without_small(audited.groups, audited.min_n), outputs.files["output_groups"])
    if "json" in outputs:
        outputs.write_text("json", as_json(_content(options, audited, notes, code)))
    if "markdown" in outputs and options.command != "report":
        outputs.write_text("markdown", _document(audited).markdown(options.line, notes))
    if not outputs:
        _document(audited).print()
    elif audited.gate and not outputs.takes_stdout and "html" not in outputs:
        _document(audited, verdicts_only=True).print()


def _content(options: Namespace, audited: _Audited, notes: list[str], code: int) -> dict[str, Any]:
    """The content of the JSON document."""
    tally, min_n = audited.tally, audited.min_n
    inputs = audited.inputs
    content: dict[str, Any] = {
        "command": options.line,
        "data": {
            "name": inputs.name,
            "rows": int(tally.cells["n"].sum()),
            "truth": inputs.truth,
            "estimate": inputs.estimate,
            **{name: value for name, value in inputs.counting.items() if name != "group_by"},
        },
        "conf_level": audited.level,
        "results": records(audited.results),
        "groups": records(_without_small(audited.groups, min_n)),
    }
    if audited.has_outer_groups:
        content["pooled_results"] = records(audited.pooled_results)
        content["pooled_groups"] = records(_without_small(audited.pooled_groups, min_n))
    if audited.verdicts is not None and audited.gate is not None:
        content["confidence"] = audited.gate.confidence
        content["verdicts"] = records(audited.verdicts)
    return content | {"exit_code": code, "notes": notes}


def _without_small(groups: pl.DataFrame, min_n: int) -> pl.DataFrame:
    """The values of groups that have enough rows."""
    return groups.filter(pl.col(".n") >= min_n)


def _document(audited: _Audited, *, verdicts_only: bool = False) -> Document:
    """The audit as a document: headline, verdicts, disparities, metrics of all rows, groups."""
    parts: list[Part] = []
    headline: list[str] = []
    remarks: list[str] = []
    if audited.verdicts is not None and audited.gate is not None:
        directions = directions_of(audited.gate.metrics)
        headline += verdicts_in_words(audited.verdicts, directions)
        is_full = audited.options.full
        gate = audited.gate
        parts.append(verdicts_part(audited.verdicts, directions, gate.confidence, gate.outside, is_full=is_full))
    if not verdicts_only:
        parts += _results_parts(audited)
        parts += _group_parts(audited)
        if not audited.has_several_cuts:
            headline += [f"{finding.lead} {finding.text}" for finding in audited.findings]
        if audited.level is not None:
            remarks.append(f"Intervals in parentheses are {percent(audited.level)} confidence intervals.")
        if not audited.has_several_cuts and audited.significance.outcomes:
            error = percent(audited.significance.error)
            remarks.append(f"Significant: at the {error} level, adjusted for the number of disparities (Holm).")
    compared = policy_of(audited.options).in_words if audited.metrics.bys else ""
    return Document(_title(audited), tuple(headline), tuple(parts), tuple(remarks), compared)


def _title(audited: _Audited) -> str:
    """Facts about the audit."""
    inputs, rows = audited.inputs, int(audited.tally.cells["n"].sum())
    given: list[str] = []
    if inputs.truth is not None:
        given.append(f"truth {inputs.truth!r}")
    if inputs.estimate is not None:
        given.append(f"predictions {inputs.estimate!r}")
    if "probs" in inputs.counting:
        given.append(f"scores {inputs.counting['probs']!r}")
    if (event := audited.metrics.event(audited.tally, Options(**inputs.reading))) is not None:
        given.append(f"event {event!r}")
    return f"Audit of {inputs.name}: {rows:,} rows, {', '.join(given)}"


def verdicts_part(
    verdicts: pl.DataFrame,
    directions: Mapping[Key, str],
    confidence: float,
    outside: Outside,
    *,
    change: str = "",
    is_full: bool = True,
) -> Part:
    """The table of verdicts, with the bounds that decide them; counts of verdicts where there are outer groups.

    Args:
        verdicts: Values or changes, with their limit and verdict.
        directions: The direction of each metric.
        confidence: How sure verdicts are.
        outside: The effect of groups outside the policy.
        change: The words before the name of a metric whose change is judged.
        is_full: Whether the verdicts of all outer groups are shown.
    """
    conditions: list[str] = []
    left_out: dict[tuple[str, str], list[pl.DataFrame]] = {}
    for index, row in enumerate(verdicts.iter_rows(named=True)):
        metric, by = row[".metric"], row[".by"]
        name = metric if by is None else f"{metric}({by})"
        conditions.append(f"{change}{name} {SIDES[directions[metric, by]]} {row['.limit']:g}")
        holds, groups = "is not about", outside_of(row)
        if row[".verdict"] != PASS:
            stated: list[str] = row[".groups_outside"] if outside == "state" else []
            left: list[str] = row[".groups_left_out"] or []
            holds, groups = "cannot pass without", [group for group in left if group not in stated]
        if groups:
            is_named = pl.element().struct.field("group").is_in(groups)
            named = verdicts[index].with_columns(pl.col(".left_out").list.filter(is_named))
            left_out.setdefault((name, holds), []).append(named)
    remarks = [f"{name} {holds} {_left_out_of(pl.concat(rows))}." for (name, holds), rows in left_out.items()]
    remarks += remarks_on_unknown(verdicts)
    named = verdicts.with_columns(pl.Series(".condition", conditions, dtype=pl.String))
    outer = key_columns(verdicts)
    if outer and not is_full:
        return Part("Verdicts", _counts_of_verdicts(named, outer), (), "fails if", tuple(remarks))
    value = ".change" if ".change" in verdicts.columns else ".estimate"
    cuts = [name for name in SELECTIONS if name in named.columns]
    shown = one_below_the_other(
        with_cuts_in_words(named).select(*outer, *cuts, ".condition", value, ".lower", ".upper", ".verdict")
    )
    remarks.append(f"Each end of an interval is a one-sided {percent(confidence)} confidence bound.")
    if len(verdicts) > 1:
        remarks.append(
            "Failures are adjusted for the number of conditions (Holm), so that a value beyond its limit may not fail."
        )
    return Part("Verdicts", in_words(shown), (), "fails if", tuple(remarks))


def remarks_on_unknown(verdicts: pl.DataFrame) -> list[str]:
    """Sentences on the rows of unknown groups, which are not compared, and on verdicts that they turn."""
    if UNKNOWN_ROWS not in verdicts.columns:
        return []
    remarks: list[str] = []
    has_rows = verdicts.filter(pl.col(UNKNOWN_ROWS) > 0)
    for (by,), judged in has_rows.group_by(".by", maintain_order=True):
        # each metric of a feature has the same rows
        one = judged.filter(pl.col(".metric") == judged[".metric"][0])
        one = one.unique(key_columns(one)) if key_columns(one) else one[:1]
        rows, share = int(one[UNKNOWN_ROWS].sum()), float(one[UNKNOWN_SHARE].max())  # pyright: ignore[reportArgumentType] - numbers
        of_all = f"{'up to ' if len(one) > 1 else ''}{share_in_words(share)} of all"
        verb = "row is" if rows == 1 else "rows are"
        remarks.append(f"{by}: {rows:,} {verb} of unknown groups ({of_all}) and not compared.")
        turned = judged.filter(pl.col(WITH_UNKNOWN) != PASS)[".metric"].unique(maintain_order=True)
        if len(turned):
            remarks[-1] += (
                f" Compared as groups of their own they keep {', '.join(turned)} from passing: `--unknown group` shows "
                "that comparison, and `--unknown drop` states that they are meant to be left out."
            )
    return remarks


def _counts_of_verdicts(verdicts: pl.DataFrame, outer: Sequence[str]) -> pl.DataFrame:
    """The number of outer groups with each verdict, for each condition, and the names of those that fail."""
    names = texts_of(verdicts.select(outer), ", ")
    is_failure = pl.col(".verdict") == FAIL
    cuts = [name for name in SELECTIONS if name in verdicts.columns]
    named = with_cuts_in_words(verdicts).with_columns(names.alias(_NAME))
    counts = named.group_by(".condition", *cuts, maintain_order=True).agg(
        *(_count_of(outcome).alias(outcome) for outcome in (FAIL, UNSURE, PASS)),
        pl.col(_NAME).filter(is_failure).str.join(", ").alias(f"failing {', '.join(outer)}"),
    )  # fmt: skip
    return in_words(counts)


def _count_of(outcome: str) -> pl.Expr:
    return (pl.col(".verdict") == outcome).sum().cast(pl.Int64)


def directions_of(metrics: Iterable[Metric | GroupwiseMetric]) -> dict[Key, str]:
    """The direction of each metric, by its name and feature."""
    return {(metric.name, _feature_of(metric)): metric.direction for metric in metrics}


def _with_base(table: pl.DataFrame) -> pl.DataFrame:
    """The table with the metric that is the worst of several beside the name of the disparity."""
    if ".base_metric" not in table.columns:
        return table
    base = pl.col(".base_metric")
    named = pl.when(base != "").then(pl.format("{} ({})", ".metric", base)).otherwise(".metric")
    return table.with_columns(named.alias(".metric")).drop(".base_metric")


def _results_parts(audited: _Audited) -> list[Part]:
    """The tables of disparities, and of metrics of all rows where there are outer groups."""
    if not audited.has_outer_groups:
        return _disparity_parts(audited, "")
    results, together = with_cuts_in_words(audited.results), with_cuts_in_words(audited.compared_results)
    outer = ", ".join(column.name for column in audited.tally.outer_columns)
    if audited.options.full:
        metrics = in_words(_of_metrics(results.filter(pl.col(".by").is_null())))
        of_all_rows = Part(f"Metrics by {outer}", metrics, (), "metric" if "metric" in metrics.columns else "")
        return [of_all_rows, *_disparity_parts(audited, f" by {outer}")]
    parts: list[Part] = []
    for by in (None, *(by.text for by in audited.metrics.bys)):
        of_feature = pl.col(".by").eq_missing(pl.lit(by))
        pooled_rows, outer_rows = together.filter(of_feature), results.filter(of_feature)
        table = _of_metrics(pooled_rows).rename({".estimate": ".pooled"}, strict=False)
        compact = in_words(over_outer_groups(outer_rows, table.drop(".by", strict=False)))
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


def _disparity_parts(audited: _Audited, by_outer: str) -> list[Part]:
    """The table of disparities of each feature."""
    results = audited.results if audited.has_outer_groups else audited.compared_results
    parts: list[Part] = []
    for by in audited.metrics.bys:
        of_feature = with_cuts_in_words(results).filter(pl.col(".by") == by.text)
        disparities = of_feature.drop(".by", ".n", ".method", strict=False)
        disparities = _with_sides(by, disparities, [".group_min", ".group_max"])
        table = in_words(_with_base(one_below_the_other(disparities)))
        up_to = "metric" if "metric" in table.columns else ""
        notes = notes_on_left_out(table, of_feature, [by])
        parts.append(Part(f"Disparities of {by.text}{by_outer}", table, tuple(notes), up_to))
    return parts


def _left_out_of(results: pl.DataFrame, group: Callable[[str], str] = str) -> str:
    """The groups that any row of results leaves out."""
    entries = results.select(pl.col(".left_out").explode().drop_nulls()).to_series().to_list()
    return left_out_in_words(entries, group)


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
        in_words = words.get(result[".by"].item(), str)
        each = outer.join(result, on=keys, how="semi", nulls_equal=True)
        without = each.filter(pl.col(".left_out").list.len() > 0)
        of_outer = f"by {', '.join(key_columns(outer))}, in {len(without)} of {len(each)}: "
        of_each = f"{of_outer}{_left_out_of(without, in_words)}" if len(without) else ""
        if text := "; ".join(filter(None, [_left_out_of(result, in_words), of_each])):
            notes.append((name, row, f"left out: {text}"))
    return notes


def _group_parts(audited: _Audited) -> list[Part]:
    """A table of groups for each feature, below the values of all rows."""
    shows_all = audited.options.full and audited.has_outer_groups
    groups = with_cuts_in_words(audited.groups if shows_all else audited.pooled_groups)
    overall = _without_constants(groups.filter(pl.col(".by").is_null()), audited.metrics.groups)
    parts: list[Part] = []
    for by in audited.metrics.bys:
        of_feature = _with_sides(by, groups.filter(pl.col(".by") == by.text), [".group"])
        shown, hint = _largest(of_feature, is_full=audited.options.full)
        table, notes = groups_side_by_side(pl.concat([overall, shown], how="vertical_relaxed"), None, audited.min_n)
        is_hidden = (shown[".n"] < audited.min_n).any()
        remarks = [f"-: hidden, fewer than {audited.min_n} rows."] if is_hidden else []
        if is_hidden or (of_feature[".status"] == Status.UNKNOWN.value).any() or has_dropped_rows(overall, of_feature):
            remarks.append(ALL_ROWS)
        is_overall = pl.col(".by") == _EVERYBODY
        table = table.with_columns(pl.when(is_overall).then(pl.lit(_EVERYBODY)).otherwise(".group").alias(".group"))
        table = in_words(table.drop(".by"))
        title = f"Groups of {by.text}"
        parts.append(Part(title, table, tuple(notes), "rows", (*remarks, *hint)))
    return parts


def _with_sides(by: By, results: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Results with the two sides of a feature in words, if it has any."""
    if by.sides is None:
        return results
    words = {side: group_in_words(by, side) for side in ("privileged", "unprivileged", "neither")}
    return results.with_columns(pl.col(columns).replace(words))


def _without_constants(overall: pl.DataFrame, metrics: Iterable[Metric | GroupwiseMetric]) -> pl.DataFrame:
    """The values of all rows without averages over labels that are the same whatever the data."""
    constant = pl.lit(value=False)
    for metric in metrics:
        if isinstance(metric, Metric) and metric.constant_averages:
            is_average = pl.col(".estimator").is_in(metric.constant_averages)
            constant |= (pl.col(".metric") == metric.name) & is_average
    hidden = [name for name in (".estimate", ".lower", ".upper", ".status") if name in overall.columns]
    return overall.with_columns(pl.when(~constant).then(name).alias(name) for name in hidden)


def _largest(groups: pl.DataFrame, *, is_full: bool) -> tuple[pl.DataFrame, list[str]]:
    """The largest groups of a feature that has many, and a sentence that says so."""
    sizes = groups.group_by(".group", maintain_order=True).agg(pl.col(".n").max())
    if is_full or len(sizes) <= _MANY:
        return groups, []
    largest = sizes.sort(".n", descending=True, maintain_order=True).head(_MANY)[".group"]
    hint = f"The {_MANY} largest of {len(sizes):,} groups; `--full` shows all, and `--output-groups` writes them."
    return groups.filter(pl.col(".group").is_in(largest.to_list())), [hint]
