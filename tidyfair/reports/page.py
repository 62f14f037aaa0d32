"""Results to be shared: tables of results, and an audit as one page that opens anywhere.

It needs altair and vl-convert-python: `pip install 'tidyfair[report]'`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib import import_module
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from platform import python_version
from typing import Any

import polars as pl

from tidyfair.audits import (
    LEAST_ROWS,
    AuditResults,
    Feature,
    UsualMetrics,
    call_of,
    facts_of_audit,
    html_page,
    kind_of,
    save_document,
)
from tidyfair.calling import GroupwiseMetric, Metric, MetricSet, metric_set
from tidyfair.errors import ArgumentError, in_short, without_notices
from tidyfair.escapes import as_html, as_text
from tidyfair.inference.gates import Gate
from tidyfair.inference.partial_knowledge import worst_groups
from tidyfair.intervals import in_progress, share_of
from tidyfair.metrics import in_prose, short_title
from tidyfair.reports.blocks import Code, Content, Facts, Figure, Findings, Section, Table, html_of, markdown_of
from tidyfair.reports.findings import feature_in_words, finding_on, quoted_group, remarks_on, units_of, units_of_names
from tidyfair.reports.interactive import Explorer, explorer_of, script_policy
from tidyfair.reports.plots import PlotInput, by_words, direction_of
from tidyfair.reports.sections import (
    GroupValues,
    data_section,
    definitions_section,
    disparities_section,
    exclusions_section,
    facts_of,
    scores_sections,
)
from tidyfair.reports.tables import Note, one_below_the_other
from tidyfair.reports.theme import page_style
from tidyfair.reports.verdicts import verdicts_explained, verdicts_of_gate
from tidyfair.specs import (
    Policy,
    Prediction,
    RowKey,
    Treatment,
    TruthLike,
    flag,
    key_columns,
    keys_of,
    refuse_unknown_keywords,
    string,
)
from tidyfair.specs.result_kinds import MODELS, kind_of as kind_of_result
from tidyfair.tallies import open_frame

__all__ = ["Report", "report"]

_TITLE = "Audit of predictions"


@dataclass(frozen=True)
class Report:
    """An audit to be read by others: texts, tables and figures, as one file; made by `report`."""

    title: str
    opening: tuple[Content, ...]
    """The facts, the verdicts, the findings, and the picture that shows them."""
    parts: tuple[Section, ...]
    _save_evidence: Callable[..., None] | None = field(default=None, repr=False, compare=False)

    def html(self) -> str:
        """One page that needs no network, and runs no scripts but those of an interactive report."""
        sections = "".join(part.html() for part in in_progress(self.parts, "drawing the report"))
        links = [f'<li><a href="#{part.anchor}">{as_html(part.heading)}</a></li>' for part in self.parts]
        style, scripts = page_style("page.css"), ""
        if any(isinstance(block, Explorer) for block in self.opening):
            style, scripts = page_style("page.css", "explorer.css"), script_policy()
        body = (
            f"<main>\n<header>\n<h1>{as_html(self.title)}</h1>\n{html_of(self.opening[:1], 'facts')}\n</header>\n"
            f'<div class="opening">\n{html_of(self.opening[1:], "opening")}\n</div>\n'
            f'<nav class="contents" aria-label="Contents">\n<ol>{"".join(links)}</ol>\n</nav>\n{sections}</main>'
        )
        return html_page(self.title, style, body, scripts)

    def markdown(self) -> str:
        """The same texts and tables in Markdown, for a model card; figures become tables."""
        sections = "".join(f"{part.markdown()}\n\n" for part in self.parts)
        links = " \N{MIDDLE DOT} ".join(f"[{part.heading}](#{part.anchor})" for part in self.parts)
        return f"# {as_text(self.title)}\n\n{markdown_of(self.opening)}\n\n{links}\n\n{sections}"

    def save(self, file: str | Path) -> Path:
        """Write an HTML page, or Markdown, by the suffix of the file.

        Raises:
            ArgumentError: For a file that ends neither in .html nor in .md, or that cannot be written.
        """
        return save_document(file, {".html": self.html, ".md": self.markdown})

    def save_evidence(self, path: str | Path, *, rows: bool = False) -> None:
        """Write the results, and all that they rest on, into a file that `audits.verify_evidence` verifies.

        Args:
            path: Name of the file.
            rows: Write the values of rows where results need them, such as areas under curves without `score_bins`.

        Raises:
            ArgumentError: For a report of compared models, and what a file cannot hold: expressions, metrics of your
                own, dtypes that JSON lacks, and rows.
        """
        if self._save_evidence is None:
            msg = "save_evidence(): a report of compared models has no tallies; write evidence of the audit of each."
            raise ArgumentError(msg)
        self._save_evidence(path, rows=rows)

    def _repr_html_(self) -> str:
        # in a frame of its own, so that its style is not that of the notebook
        style = "width: 100%; height: 40rem; border: 1px solid #ccc"
        page, title = escape(self.html()), as_html(self.title)
        return f'<iframe sandbox srcdoc="{page}" title="{title}" style="{style}"></iframe>'

    def __repr__(self) -> str:
        headings = [part.heading for part in self.parts]
        return f"<report {self.title!r}: {', '.join(headings)}>"


@refuse_unknown_keywords
def report(
    data: Any,
    truth: TruthLike | None = None,
    estimate: Prediction | None = None,
    *,
    by: Feature | list[Feature] | None = None,
    metrics: Metric | GroupwiseMetric | MetricSet | None = None,
    gate: Gate | None = None,
    title: str = _TITLE,
    auditor: str | None = None,
    model: str | None = None,
    model_version: str | None = None,
    dataset: str | None = None,
    date: str | None = None,
    interactive: bool = False,
    min_n: int = LEAST_ROWS,
    min_share: float = 0.0,
    margin: float | None = None,
    unknown: Treatment = "apart",
    unknown_values: Iterable[object] | None = None,
    **options: Any,
) -> Report:
    """Audit predictions, or the result of a comparison of models, and write a report for others to read.

    Args:
        data: A frame, as metrics take it; it is not grouped. Or the result of `compare_models`, alone.
        truth: Column of the true labels, or numbers; or `survival.outcome(…)`.
        estimate: Column of the predictions; or a `prediction_intervals.interval(…)`, or quantiles by level.
        by: The feature that is compared, or a list of them: columns, tuples of columns whose combinations are the
            groups, or `privileged(…)`.
        metrics: Metrics and disparities in place of the usual ones, which are those of labels, of scores too where
            there are any, or of numbers.
        gate: A gate made by `check`: its verdicts are part of the report.
        title: The heading.
        auditor: Who made the audit, as the page says.
        model: The model that was audited, as the page names it.
        model_version: Its version.
        dataset: The data that it was audited on.
        date: The date of the audit; the page has no other, so that the same call gives the same page.
        interactive: Add controls, with which readers choose the feature, the metric, the reference and, of scores, the
            threshold. The file still needs no network. It has values of groups and never rows, and grows by about 1 MB.
        min_n: Values of groups of fewer rows are not shown, and disparities not taken over them, so that no headline
            rests on a handful of people. What is hidden can still be worked out where totals are known, unless
            `suppress_below` is given.
        min_share: Disparities are not taken over groups with a smaller share of the rows.
        margin: The margin within which groups count as alike, in the unit of the metrics: 0.05, which is five
            points, where shares are compared and nothing else is said; numbers have none of their own. For ratios it is
            the distance from 1.
        unknown: Rows whose group is missing or unknown are counted `"apart"` and not compared; or they are a `"group"`
            like all others; or they are not shown, `"drop"`.
        unknown_values: The values that mean unknown beside null; left out, texts such as "Unknown" do.
        options: Options of a call of metrics: `probs`, `threshold`, `pos_label`, `case_weights`, `suppress_below` …

    Returns:
        A `Report`: `.html()`, `.markdown()`, `.save("audit.html")`.

    Raises:
        TidyfairError: Where metrics would; for `group_by=`, a list of cuts, or no rows; for whole numbers that may be
            labels or a measurement; for scores given as `estimate`; and without the packages of `tidyfair[report]`.

    >>> from tidyfair.datasets import lending
    >>> audit = report(lending(), "repaid", "approved", by=["sex", "race"], pos_label="yes")
    >>> "Hispanic" in audit.markdown()
    True
    """
    # `interval=None` asks for none
    options = {name: value for name, value in options.items() if value is not None or name == "interval"}
    policy = Policy.of("report", min_n, min_share, unknown, unknown_values)
    flag("interactive", interactive)
    string("title", title)
    facts = facts_of_audit(auditor, model, model_version, dataset, date)
    need_packages()
    source = open_frame(data, options.get("group_by"))
    if by is None:
        result = source.to_polars()
        if kind_of_result(result) is not MODELS or result.is_empty():
            msg = (
                'report() compares groups: name the feature, `by="column"`; only results of `compare_models` need none.'
            )
            raise ArgumentError(msg)
        return page_of_models(result, "Comparison of models" if title == _TITLE else title, facts=facts)
    chosen = None if metrics is None else metric_set(metrics)
    given = by if isinstance(by, list) else [by]
    _check_arguments(given, gate, [*options, *(["group_by"] if source.group_by else [])], interactive=interactive)
    kind = "labels" if chosen else kind_of(source, truth, estimate, options)
    usual = UsualMetrics.of(given, kind, metrics=chosen, policy=policy)
    usual.results.run.options({name: value for name, value in options.items() if name != "suppress_below"})
    audit = AuditResults.of(usual, data, truth, estimate, options, gate, margin=margin)
    _check_audit(audit)
    usual.results.run.check_occurs(audit.tally, audit.options)
    own: dict[str, Any] = {
        "by": by, "metrics": metrics, "gate": gate, "unknown": unknown, "min_n": min_n, "min_share": min_share,
        "margin": margin, "unknown_values": unknown_values and list(unknown_values), "interactive": interactive,
        "auditor": auditor, "model": model, "model_version": model_version, "dataset": dataset, "date": date,
    }  # fmt: skip
    own = {name: value for name, value in own.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    code = call_of({"truth": truth, "estimate": estimate, **own, **options})
    call: dict[str, Any] = {"truth": truth, "estimate": estimate, **options}
    return page_of(
        audit, data, call, gate, title=title, facts=facts, code=code, interactive=interactive, is_usual=not chosen
    )  # fmt: skip


def _check_arguments(
    features: Sequence[object], gate: object, options: Sequence[str], *, interactive: bool
) -> None:  # fmt: skip
    """Refuse groups, a feature that is named twice, a gate that is none, and options that a report does not take."""
    if "group_by" in options:
        msg = "report() is about one set of predictions: give it the frame without groups, or a part of it."
        raise ArgumentError(msg)
    if interactive and "suppress_below" in options:
        msg = "report(): `interactive` shows counts along thresholds, so it does not go with `suppress_below`."
        raise ArgumentError(msg)
    names = [feature for feature in features if isinstance(feature, str)]
    for name in names:
        if names.count(name) > 1:
            msg = f"report(): `by` names {name!r} twice."
            raise ArgumentError(msg)
    if gate is not None and not isinstance(gate, Gate):
        msg = f"`gate` is what check(…) or four_fifths(…) has made, not {in_short(gate)}."
        raise ArgumentError(msg)
    for name in ("explain", "parts", "keep_rows"):
        if name in options:
            msg = f"report() decides `{name}` for itself; leave it out."
            raise ArgumentError(msg)


def _check_audit(audit: AuditResults) -> None:
    """Refuse several sets of decisions, and no rows."""
    if audit.tally.cut is not None and audit.tally.cut.several:
        msg = f"report() is about one set of decisions: give one {audit.tally.cut.option}, not a list."
        raise ArgumentError(msg)
    if not audit.rows:
        msg = "report() has nothing to tell: there are no rows."
        raise ArgumentError(msg)


def page_of(
    audit: AuditResults,
    data: Any,
    call: dict[str, Any],
    gate: Gate | None,
    *,
    title: str,
    facts: Mapping[str, str | None],
    code: str,
    interactive: bool,
    is_usual: bool = False,
) -> Report:
    """The report on the results of an audit of some data, with the arguments of the call besides the data.

    `facts` are the model, the data and the date; `code`, or a command line, makes the report again; and where metrics
    are the usual ones, nobody has chosen them.
    """
    worst, dotted = _worst_groups(audit), pl.col("^[.].*$")
    # an average over labels that is the same for all data is none that anybody asked for
    shown = pl.col(".by").is_not_null() | ~audit.metrics.is_constant if is_usual else pl.lit(value=True)
    groups, with_unknown = (frame.filter(shown).select(dotted) for frame in (audit.groups, audit.groups_with_unknown))
    units = units_of(metric for metric in audit.metrics.groups if isinstance(metric, Metric))
    values = GroupValues(groups, with_unknown, worst, audit.policy.min_n, units, audit.level)
    findings = [finding_on(feature, audit) for feature in audit.metrics.bys]
    # the page shows the clearest finding; a feature is read more easily than two that are crossed
    clear = [finding for finding in findings if finding.answer == "differ"]
    fewest = min((len(finding.by.keys) for finding in clear), default=0)
    simple = [finding for finding in clear if len(finding.by.keys) == fewest]
    clearest = max(simple or findings, key=lambda finding: finding.evidence)
    drawn = clearest.by if clearest.metric else None
    sections = [
        disparities_section(audit),
        Section("Groups", tuple(values.part_of(one, is_drawn=one.by == drawn) for one in findings)),
        *scores_sections(audit, data, call),
        data_section(audit),
        exclusions_section(audit, groups),
        definitions_section(audit.metrics),
        _how_to_repeat(code),
    ]
    opening: list[Content] = [facts_of(audit, facts)]
    if gate:
        opening += _verdicts_of(gate, audit)
    opening += [Findings(tuple(findings), tuple(remarks_on(audit))), *values.figures_of(clearest)]
    if interactive:
        opening += explorer_of(audit, with_unknown, data, call, clearest.by)
    return Report(title, tuple(opening), tuple(sections), partial(audit.save_evidence, data=data, call=call, gate=gate))


def _verdicts_of(gate: Gate, audit: AuditResults) -> list[Content]:
    """The verdicts of a gate, and the numbers behind them.

    A gate judges the groups of its own metrics, so that its verdicts are those of `assert_fair`. Where the page leaves
    some of these groups out, the verdict also shows the value of the groups on the page.
    """
    verdicts = audit.verdicts(gate)
    judged = [metric for metric in gate.metrics if isinstance(metric, GroupwiseMetric)]
    words = {by.text: feature_in_words(by) for by in (*audit.metrics.bys, *(metric.by for metric in judged))}
    limited = [metric.with_policy(audit.policy.beside(metric.policy)) for metric in judged]
    others: dict[RowKey, float | None] = {}
    if limited != judged:
        values_only: dict[str, Any] = {**audit.reading, "interval": None}
        values = metric_set(*limited).compute(audit.tally, **values_only)
        others = dict(zip(keys_of(values), values[".estimate"], strict=True))
    return [verdicts_of_gate(gate, verdicts, audit, words, others), verdicts_explained(gate, verdicts, words)]


def _worst_groups(audit: AuditResults) -> pl.DataFrame | None:
    """The worst groups by the rates that have a good side, where there are tests and intervals."""

    def is_judged(metric: Metric) -> bool:
        """Check for a rate of all rows that compares predictions with the truth."""
        reads_both = metric.definition.reads == frozenset({"truth", "estimate"})
        return metric.name in names and reads_both and share_of(metric.definition) is not None

    names = {metric.name for metric in audit.metrics.results if isinstance(metric, Metric)}
    judged = [metric for metric in audit.metrics.groups if isinstance(metric, GroupwiseMetric)]
    judged = [disparity for disparity in judged if all(map(is_judged, disparity.metrics))]
    draws = audit.draws_of_tests
    if not judged or not draws or audit.level is None:
        return None
    with without_notices():
        # groups are marked by limits that hold whatever the rates of others
        return worst_groups(*judged, pooling=None).compute(audit.tally, times=draws, **audit.reading_of_tests)


# Comparisons of models


NamedTable = tuple[str, pl.DataFrame, Sequence[Note], Sequence[str]]
"""A heading, a table with a column `metric`, the notes on its cells, and remarks below it."""
_DETAILS = (
    ".estimator", ".n", ".std_error", ".model_one", ".groups_left_out", ".groups_outside", ".left_out", ".unknown",
    ".unknown_share", ".with_unknown",
)  # fmt: skip


def page_of_models(
    result: pl.DataFrame, title: str, *, facts: Mapping[str, str | None], code: str = "", sentences: Sequence[str] = (),
    findings: Sequence[str] = (), tables: Iterable[NamedTable] = (),
) -> Report:  # fmt: skip
    """The page of a comparison of named models, with sentences before the changes, such as verdicts.

    `findings` and `tables` stand in place of those of the result, and `code`, or a command line, makes the page again.
    """
    plot = PlotInput.of(MODELS, result)
    known = {"Compared with": plot.frame[".model_one"][0], "Intervals": plot.limits, **facts}
    opening: list[Content] = [Facts(tuple((name, text) for name, text in known.items() if text))]
    opening += [*sentences, *(findings or findings_of_models(result))]
    if not plot.outer:
        opening.append(Figure(result, "Changes", units=units_of_names(result[".metric"].unique())))
        if result[".by"].has_nulls() and result[".by"].count():
            opening.append(Figure(result, "Performance and disparities", {"kind": "frontier"}))
    models = {str(name) for name in (*result[".model_one"].unique(), *result[".model_other"].unique())}
    sections: list[Section] = []
    for heading, table, notes, remarks in tables or [("Changes", _changes(result), (), ())]:
        heads = {name: (name, "") for name in table.columns if name in models}
        named = [pl.col(name).fill_null("all rows") for name in (".by", "by") if name in table.columns]
        if "metric" in table.columns:
            named.append(pl.col("metric").map_elements(short_title, pl.String))
        shown = Table(table.with_columns(named), tuple(notes), " ".join(remarks), heads=heads)
        sections.append(Section(heading, (shown,)))
    return Report(title, tuple(opening), (*sections, *([_how_to_repeat(code)] if code else ())))


def _changes(result: pl.DataFrame) -> pl.DataFrame:
    """The changes as texts, with a column of the other models."""
    shown = one_below_the_other(result.drop(_DETAILS, strict=False), units_of_names(result[".metric"].unique()))
    one = result[".model_one"].unique().to_list()
    names = {".one": one[0] if len(one) == 1 else "first model", ".other": "other model", ".model_other": "model"}
    renamed = shown.rename({**names, ".metric": "metric"}, strict=False)
    first = [name for name in ("metric", ".by", "model") if name in renamed.columns]
    return renamed.select(*key_columns(result), *first, pl.exclude(*key_columns(result), *first))


def findings_of_models(changes: pl.DataFrame) -> list[str]:
    """A sentence for each other model on what is shown of its metrics, such as that they are better; of groups too.

    Models that are better in something and worse in nothing are first, and those that are worse are last.
    """
    ranked, outer = list[tuple[bool, bool, str]](), key_columns(changes)
    for part in changes.partition_by(".model_other", maintain_order=True):
        names: dict[str, dict[str, None]] = {word: {} for word in _SHOWN}
        for row in part.iter_rows(named=True):
            by, group = row[".by"], row.get(".group")
            name = in_prose(row[".metric"])
            if group is not None:
                name += f" for {quoted_group(by.split(':'), group)}"
            elif by is not None:
                name += f" by {by_words(by)}"
            keys = [quoted_group([key], "null" if row[key] is None else str(row[key])) for key in outer]
            name += f" for {', '.join(keys)}" if keys else ""
            names.setdefault(row.get(".verdict") or _verdict(row), {})[name] = None
        others = sum(map(len, (of for word, of in names.items() if word not in _SHOWN)))
        clauses = [f"{word} in {', '.join(names[word])}" for word in _SHOWN if names[word]]
        every = f"any of {others}" if others == len(part) else f"{others} of {len(part)}"
        clauses += [f"no change is shown in {every} values"] if others else []
        sentence = f"{part['.model_other'][0] or 'The other model'}: {'; '.join(clauses)}."
        ranked.append((bool(names["worse"]), not names["better"], sentence))
    return [sentence for *_, sentence in sorted(ranked, key=itemgetter(0, 1))]


_SHOWN = ("better", "worse", "different", "equivalent", "not worse")


def _verdict(row: Mapping[str, object]) -> str:
    """The verdict on a change without a margin, from its limits."""
    lower, upper = row[".lower"], row[".upper"]
    if not isinstance(lower, float) or not isinstance(upper, float) or lower <= 0 <= upper:
        return "not shown"
    direction = direction_of(str(row[".metric"]))
    if direction not in {"maximize", "minimize"}:
        return "different"
    return "better" if (lower > 0) == (direction == "maximize") else "worse"


def _how_to_repeat(code: str) -> Section:
    """The section with the code of the call and the versions that it ran with."""
    used = ", ".join(f"{name} {version(name)}" for name in ("tidyfair", "polars", "narwhals", "numpy"))
    return Section("How to repeat this audit", (Code(code), f"Made with {used}, on Python {python_version()}."))


def need_packages() -> None:
    """Say what to install, before anything is counted."""
    try:
        for name in ("altair", "vl_convert"):
            import_module(name)
    except ModuleNotFoundError as error:
        msg = f"Reports are made by altair and vl-convert-python: pip install 'tidyfair[report]' ({error})."
        raise ArgumentError(msg) from error


_DEFAULTS: dict[str, object] = {"unknown": "apart", "min_share": 0.0, "interactive": False}
"""Options of a report that the code which repeats it leaves out."""
