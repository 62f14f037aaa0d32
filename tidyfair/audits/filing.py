"""Named audits on data: the tables that people have to file, tidy and as they are published, with a statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from tidyfair.audits.chai import applied_model_card
from tidyfair.audits.credit import lending_adverse_impact
from tidyfair.audits.effect_sizes import columns_of_features
from tidyfair.audits.employment import eeoc_uniform_guidelines, nyc_ll144
from tidyfair.audits.evidence_files import Arguments, StoredCounts, write_evidence_of
from tidyfair.audits.named_audits import AuditCall, AuditTable, NamedAudit, unknown_rows
from tidyfair.audits.pay import eu_pay_transparency
from tidyfair.audits.prediction_models import clinical_tripod_ai, eu_ai_act_data, model_card
from tidyfair.audits.published import PublishedTable, html_page, save_document
from tidyfair.audits.usual_metrics import Feature
from tidyfair.errors import ArgumentError, in_short
from tidyfair.escapes import as_html, as_text
from tidyfair.specs import (
    CallOptions,
    Column,
    ColumnLike,
    CountOptions,
    Memberships,
    Privileged,
    Treatment,
    refuse,
    refuse_unknown,
    refuse_unknown_keywords,
    show_keywords,
    string,
    with_event,
)
from tidyfair.tallies import open_frame

__all__ = ["NAMED_AUDITS", "FiledAudit", "audit"]

_AUDITS = (
    nyc_ll144, eeoc_uniform_guidelines, lending_adverse_impact, clinical_tripod_ai, eu_ai_act_data, model_card,
    eu_pay_transparency,
)  # fmt: skip


class _NamedAudits(Mapping[str, NamedAudit]):
    """The audits of the library by their names; pickled by name, like functions."""

    def __getitem__(self, name: str) -> NamedAudit:
        return {named.name: named for named in _AUDITS}[name]

    def __iter__(self) -> Iterator[str]:
        return (named.name for named in _AUDITS)

    def __len__(self) -> int:
        return len(_AUDITS)

    def __reduce__(self) -> str:
        return "NAMED_AUDITS"


NAMED_AUDITS: Mapping[str, NamedAudit] = _NamedAudits()
"""The audits of the library by their names."""
_REFUSED: dict[str, str] = dict.fromkeys(("interval", "on_undefined", "explain", "parts", "keep_rows"), "")
_UNKNOWN = "unknown"
_FACTS = {
    "auditor": "Audited by", "model": "Model", "model_version": "Version", "dataset": "Data", "date": "Date"
}  # fmt: skip
"""The words for who audited what, and when, by the arguments that say it."""
_STYLE = """
.tidyfair-audit { line-height: 1.5; }
.tidyfair-audit h1 { font-size: 1.5em; line-height: 1.25; margin: 0 0 1em; }
.tidyfair-audit h2 { font-size: 1.15em; margin: 2em 0 .5em; }
.tidyfair-audit .table { overflow-x: auto; }
.tidyfair-audit .hint { display: none; font-size: .8125em; opacity: .75; margin: .5em 0; }
.tidyfair-audit table { border-collapse: collapse; font-size: .8125em; margin: 0; }
.tidyfair-audit :is(th, td) { padding: .3em .55em; text-align: left; vertical-align: top; border: 0; }
.tidyfair-audit th { font-weight: 600; vertical-align: bottom; border-bottom: 2px solid; min-width: 3em; }
.tidyfair-audit :is(th, td):first-child { padding-left: 0; }
.tidyfair-audit td { border-bottom: 1px solid rgb(128 128 128 / .35); }
.tidyfair-audit .number { text-align: right; font-variant-numeric: tabular-nums; }
.tidyfair-audit td.number { white-space: nowrap; }
.tidyfair-audit dl { display: grid; grid-template-columns: max-content 1fr; gap: .2em 1em; }
.tidyfair-audit dt { opacity: .75; }
.tidyfair-audit dd { margin: 0; }
.tidyfair-audit ul { padding-left: 1.25em; max-width: 48em; }
@media screen and (max-width: 70em) { .tidyfair-audit .hint { display: block; } }
@media print {
  .tidyfair-audit { font-size: 9pt; }
  .tidyfair-audit .table { overflow: visible; }
  .tidyfair-audit table { font-size: 7.5pt; }
  .tidyfair-audit :is(th, td) { padding: 2pt 4pt; }
  .tidyfair-audit tr { break-inside: avoid; }
  .tidyfair-audit h2 { break-after: avoid; }
}
"""
_STYLE_OF_PAGE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 80rem; padding: 1.5rem 1rem 3rem; font: 16px system-ui, sans-serif; }
@page { size: A4 landscape; margin: 15mm; }
@media print { :root { color-scheme: light; } body { max-width: none; padding: 0; } }
"""


@dataclass(frozen=True, eq=False, repr=False)
class FiledAudit:
    """A named audit of some data: tidy tables, the tables as they are published, and a statement; made by `audit`."""

    audit: NamedAudit
    """The frames that an audit has computed, and their published form."""
    tables: Mapping[str, Any]
    """The tidy frames by name, of the caller's kind; `"unknown"` counts the rows of unknown groups."""
    _frames: Mapping[str, pl.DataFrame]
    """The same in polars."""
    _made: tuple[AuditTable, ...]
    _call: AuditCall
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """The facts of an audit by name: auditor, model, version, data and date."""

    def published(self, name: str | None = None) -> Any:
        """A table as it is published, rounded, as a frame of the caller's kind: the first, or that of a name."""
        tables = self.published_tables()
        name = next(iter(tables)) if name is None else name
        if name not in tables:
            kind = "table of the audit"
            raise ArgumentError.unknown(kind, name, tables)
        return open_frame(self.tables[name]).restore(tables[name].values)

    def published_tables(self) -> dict[str, PublishedTable]:
        """All tables as they are published, by name, with their values in polars."""
        return {table.name: table.published(self._frames[table.name]) for table in self._made}

    @property
    def statement(self) -> tuple[str, ...]:
        """Sentences on the purpose, source and version of the audit, and on unknown and small groups."""
        named = self.audit
        return (
            f"{named.title}: {named.purpose}.",
            f"Version: {named.version}.",
            f"Source: {named.source}.",
            *(f"It is not {text}." for text in named.is_not),
            *named.readings,
            f"Groups: {named.policy}.",
            *self._counts(),
        )

    def _counts(self) -> list[str]:
        """The rows of unknown groups, of the features of the tables, and the groups that are not compared."""
        features = {by for table in self._made for by in self._frames[table.name][".by"].to_list()}
        unknown = self._frames[_UNKNOWN].filter(pl.col(".by").is_in(features))
        unknown = unknown.group_by(".by", maintain_order=True).agg(pl.col(".unknown", ".n").sum())
        sentences = [
            f"Of {every:,} rows, {rows:,} are of unknown {by.replace(':', ' or ')}."
            for by, rows, every in unknown.filter(pl.col(".unknown") > 0).select(".by", ".unknown", ".n").rows()
        ] or ["No row is of an unknown group."]
        if self._call.suppression is not None:
            sentences = [self._call.suppression.in_words]
        small: dict[str, None] = {}
        for table in self._made:
            frame = self._frames[table.name]
            if ".status" in frame.columns:
                too_small = frame.filter(pl.col(".status").is_in(["below_min_n", "below_min_share"]))
                for by, group in too_small.select(".by", ".group").rows():
                    small[f"{by} {group}"] = None
        if small:
            sentences.append(f"Listed, and too small for some or all comparisons: {', '.join(small)}.")
        return sentences

    def chai(self) -> dict[str, Any]:
        """The metrics in the fields of CHAI's applied model card, schema 0.2, as a mapping that JSON can hold.

        Values of all rows are results of `UsefulnessUsabilityEfficacy`, and those of groups of `FairnessEquity`, with
        the numbers of rows as `TestingDataDescription`. A `ValueJson` is what the published cards have: a text of JSON
        of the kind `estimate_ci`, or `single` without an interval. Undefined values have no entry. All other fields
        are for people to write.

        Raises:
            ArgumentError: For an audit that has no values of groups.
        """
        return applied_model_card(
            self.audit.name, self._made, self._frames, self._counts(), self._call.reading.get("conf_level", 0.95)
        )

    def markdown(self) -> str:
        """The published tables and the statement in Markdown."""
        parts = [f"# {as_text(self.audit.title)}"]
        parts += ["\n".join(f"- {name}: {as_text(text)}" for name, text in self.facts.items())] if self.facts else []
        for table in self.published_tables().values():
            parts += [f"## {as_text(table.heading)}", table.markdown()]
        parts += ["## Statement", "\n".join(f"- {as_text(sentence)}" for sentence in self.statement)]
        return "\n\n".join(parts) + "\n"

    def html(self) -> str:
        """The published tables and the statement in HTML, as a part of a page, with a style of their own."""
        parts = [f'<div class="tidyfair-audit">\n<style>{_STYLE}</style>', f"<h1>{as_html(self.audit.title)}</h1>"]
        known = [f"<dt>{name}</dt><dd>{as_html(text)}</dd>" for name, text in self.facts.items()]
        parts += [f"<dl>{''.join(known)}</dl>"] if known else []
        for table in self.published_tables().values():
            parts += [f"<h2>{as_html(table.heading)}</h2>", table.html()]
        sentences = [f"<li>{as_html(sentence)}</li>" for sentence in self.statement]
        parts += ["<h2>Statement</h2>", "<ul>", *sentences, "</ul>", "</div>"]
        return "\n".join(parts)

    def page(self) -> str:
        """The same as a self-contained HTML page."""
        return html_page(self.audit.title, _STYLE_OF_PAGE, self.html())

    def save(self, file: str | Path) -> Path:
        """Write the page, or Markdown, by the suffix of the file.

        Raises:
            ArgumentError: For a file that ends neither in .html nor in .md, or that cannot be written.
        """
        return save_document(file, {".html": self.page, ".md": self.markdown})

    def save_evidence(self, path: str | Path, *, rows: bool = False) -> None:
        """Write the tables, and all that they rest on, into a file that `audits.verify_evidence` verifies.

        Args:
            path: Name of the file.
            rows: Write the values of rows where tables need them: pay, and scores unless `score_bins` is given.

        Raises:
            ArgumentError: For what a file cannot hold: an audit of your own, expressions, dtypes that JSON lacks, and
                rows.
        """
        named, call = self.audit, self._call
        known = NAMED_AUDITS.get(named.name)
        is_ours = known is not None and known.with_groups(**named.group_options) == named
        source = open_frame(call.data, call.counting.get("group_by"))
        arguments = {
            "audit": named.name if is_ours else named, "groups": named.group_options, "facts": dict(self.facts),
            "call": call.arguments, "suppress_below": call.suppression and call.suppression.below,
        }  # fmt: skip
        write_evidence_of(path, arguments, source.to_polars(), results_of_audit, keeps_rows=rows)

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return f"<FiledAudit of {self.audit.name}; tables: {', '.join(self.tables)}>"

    def __str__(self) -> str:
        return self.markdown()


@refuse_unknown_keywords
@show_keywords(CallOptions, without=_REFUSED)
def audit(
    name: str | NamedAudit,
    data: object,
    truth: ColumnLike | None = None,
    estimate: ColumnLike | None = None,
    *,
    by: Feature | list[Feature] | None = None,
    to: object = None,
    within: ColumnLike | list[ColumnLike] | None = None,
    complementary: ColumnLike | None = None,
    unknown: Treatment | None = None,
    unknown_values: Iterable[object] | None = None,
    min_n: int | None = None,
    min_share: float | None = None,
    suppress_below: int | None = None,
    auditor: str | None = None,
    model: str | None = None,
    model_version: str | None = None,
    dataset: str | None = None,
    date: str | None = None,
    **options: Unpack[CallOptions],
) -> FiledAudit:
    """Compute the tables that a rule or a field asks for, tidy and as they are published.

    It computes numbers, whatever the state of the law; it is no legal advice.

    Args:
        name: The name of an audit, one of `NAMED_AUDITS`, or a `NamedAudit` of your own.
        data: The rows, as metrics take them.
        truth: The column of the truth.
        estimate: The column of decisions, or of pay.
        by: The feature, or a list of them; a tuple is a crossing, and `memberships(…)` are groups that overlap.
        to: The reference, where the audit leaves it to you, as `compare_groups` takes it.
        within: The columns whose groups are the segments, or categories of workers, of audits that compare like with
            like.
        complementary: The column of the complementary or variable components of pay, which `estimate` includes.
        unknown: In place of the audit's own treatment of unknown groups.
        unknown_values: The values that mean unknown beside null.
        min_n: In place of the audit's own least rows of a group that is compared.
        min_share: In place of its least share of the rows.
        suppress_below: Counts from 1 to below this number are in no table, nor what would give one away.
        auditor: Who made the audit; this and the following stand above the tables.
        model: The model, or the tool, that was audited.
        model_version: Its version.
        dataset: The data that it was audited on.
        date: The date of the audit.
        options: The options of a call: `probs`, `group_by`, `pos_label`, `case_weights` …

    Returns:
        An object with the tidy frames in `.tables`, `.published()`, `.statement`, `.markdown()`, `.html()`, and
        `.save("audit.html")`.

    Raises:
        ArgumentError: For an unknown audit, features that are missing, or columns that no table can be made of.

    >>> from tidyfair.datasets import lending
    >>> filed = audit("nyc_ll144", lending(), estimate="approved", pos_label="yes", by=["sex", "race"])
    >>> filed.published().head(2).drop("Note").rows()
    [('sex', 'female', 2517, 1366, 54.3, 1.0), ('sex', 'male', 2483, 1320, 53.2, 0.98)]
    """
    keywords: dict[str, Any] = dict(options)
    refuse("audit()", keywords, _REFUSED)
    known = ["truth", "estimate", "by", "to", *_FACTS, *CallOptions.__annotations__]
    refuse_unknown("argument of audit()", keywords, known)
    if by is None:
        msg = 'audit() compares groups: name the feature, `by="column"`, or a list of them, `by=["sex", "race"]`.'
        raise ArgumentError(msg)
    named = _named(name).with_groups(unknown=unknown, unknown_values=unknown_values, min_n=min_n, min_share=min_share)
    if "threshold" in keywords:
        keywords["threshold"] = with_event(keywords["threshold"], keywords.get("pos_label"))
    call = AuditCall(
        data=data, truth=truth, estimate=estimate, features=_features(by), to=to, within=within,
        complementary=complementary,
        counting={key: value for key, value in keywords.items() if key in CountOptions.__annotations__},
        reading={key: value for key, value in keywords.items() if key not in CountOptions.__annotations__},
    )  # fmt: skip
    made = named.tables_of(call)
    if suppress_below is not None:
        call = call.suppressing(made, named, suppress_below)
    frames = {table.name: table.frame(call, named) for table in made}
    frames[_UNKNOWN] = unknown_rows(call, named)
    source = open_frame(data, call.counting.get("group_by"))
    tables = {key: source.restore(frame) for key, frame in frames.items()}
    facts = facts_of_audit(auditor, model, model_version, dataset, date)
    return FiledAudit(named, tables, frames, tuple(made), call, facts)


def results_of_audit(arguments: Arguments, data: Any, counts: StoredCounts) -> dict[str, pl.DataFrame]:
    """The tables of a named audit, for evidence; with suppressed counts without the rows of unknown groups."""
    named = _named(arguments["audit"]).with_groups(**arguments["groups"])
    call = AuditCall(data=data, counts=counts, **arguments["call"])
    made = named.tables_of(call)
    if arguments.get("suppress_below") is not None:
        call = call.suppressing(made, named, arguments["suppress_below"])
    frames = {table.name: table.frame(call, named) for table in made}
    return frames if call.suppression is not None else frames | {_UNKNOWN: unknown_rows(call, named)}


def facts_of_audit(
    auditor: object, model: object, model_version: object, dataset: object, date: object
) -> dict[str, str]:
    """The facts of an audit that were given, by name."""
    given = zip(_FACTS.items(), (auditor, model, model_version, dataset, date), strict=True)
    return {words: string(name, text) for (name, words), text in given if text is not None}


def _named(name: str | NamedAudit) -> NamedAudit:
    """The audit of a name, or one that is given."""
    if isinstance(name, NamedAudit):
        return name
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
        msg = f'audit() takes the name of an audit first, as in `audit("nyc_ll144", data, …)`, not {in_short(name)}.'
        raise ArgumentError(msg)
    if name not in NAMED_AUDITS:
        kind = "audit"
        raise ArgumentError.unknown(kind, name, NAMED_AUDITS)
    return NAMED_AUDITS[name]


def _features(by: Any) -> tuple[tuple[Any, ...], ...]:
    """The features, each as a tuple of columns."""
    distinct: dict[tuple[object, ...], tuple[Any, ...]] = {}
    for columns in columns_of_features(by):
        if not columns:
            continue
        # expressions are equal as columns, and have no hash of their own
        is_made = [isinstance(part, Privileged | Memberships) for part in columns]
        parts = tuple(part if made else Column.of(part, "by") for part, made in zip(columns, is_made, strict=True))
        names = [part.name for part in parts if not isinstance(part, Privileged)]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            msg = f"audit(): `by` crosses {twice[0]!r} with itself; name two different columns, or one without a tuple."
            raise ArgumentError(msg)
        distinct.setdefault(parts, columns)
    if not distinct:
        msg = "audit() compares groups: name at least one feature as `by`."
        raise ArgumentError(msg)
    return tuple(distinct.values())
