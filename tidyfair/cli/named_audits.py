"""The tables of an audit that has a name, `audit --as`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import polars as pl

from tidyfair.audits import NAMED_AUDITS, audit as file_audit, read_policy, verify_evidence, write_evidence
from tidyfair.cli.inputs import GROUPS, read_inputs
from tidyfair.cli.outputs import Document, Outputs, Part, in_words, plain_rows, records
from tidyfair.cli.verdicts import exit_code
from tidyfair.errors import ArgumentError
from tidyfair.reports import one_below_the_other, units_of_names
from tidyfair.specs import Privileged
from tidyfair.tallies import scan


def check(options: Namespace) -> int:
    """Judge the predictions of a file by a policy, and write evidence if a file is named."""
    policy = read_policy(options.policy)
    inputs = read_inputs(options)
    reading = {name: value for name, value in inputs.reading.items() if name != "interval"}
    call: dict[str, Any] = {"truth": inputs.truth, "estimate": inputs.estimate, **inputs.counting, **reading}
    verdicts = Outputs.of(options).write_evidence(partial(write_evidence, audit=policy, data=inputs.data, **call))
    if verdicts is None:
        verdicts = policy(inputs.data, **call)
    named = verdicts.with_columns(pl.col(".by").fill_null("all rows"), pl.col(".metric", ".reason").fill_null(""))
    texts = one_below_the_other(named, units_of_names(named[".metric"].unique()))
    counts, limits = (
        pl.Series([None if one is None else f"{one:{digits}}" for one in named[column]], dtype=pl.String)
        for column, digits in ((".estimate", ",.0f"), (".limit", "g"))
    )
    values = texts.get_column(".estimate", default=counts)
    values = pl.when(pl.col(".requirement") == "rows").then(counts).otherwise(values).fill_null("")
    shown = in_words(texts.with_columns(values.alias(".estimate"), limits.fill_null("").alias(".limit")))
    remark = "The rows and values of a feature are those of the group where they are smallest."
    return _finish(options, f"Policy {options.policy}, held against {inputs.name}", shown, verdicts, remark)


def verify(options: Namespace) -> int:
    """Verify a file of evidence, with the data if their file is named."""
    data = None if options.data is None else scan(options.data)
    parts = verify_evidence(options.evidence, data)
    shown = parts.rename({name: name.removeprefix(".") for name in parts.columns})
    return _finish(options, f"Evidence {options.evidence}", shown.fill_null(""), parts)


def _finish(options: Namespace, title: str, shown: pl.DataFrame, verdicts: pl.DataFrame, *remarks: str) -> int:
    """Print the verdicts or write them, and return the exit code of the worst."""
    code = exit_code(verdicts[".verdict"])
    document = Document(title, (), [Part("", shown, remarks=remarks)])
    return Outputs.of(options).finish(lambda: document, {"json": lambda: {"verdicts": plain_rows(verdicts)}}, code=code)


_REFUSED = ("metric", "fail_if", "confidence", "output_groups", "interval", "simultaneous", "full", "margin")
"""Options that a named audit does not take: it says itself what is computed, and gives no verdicts."""


FACTS = ("auditor", "model", "model_version", "dataset", "date")
"""The options that say who audited what, and when."""


def file_named_audit(options: Namespace) -> int:
    """The tables of a named audit, printed or written to files, or the list of these audits."""
    name = str(vars(options)["as"])
    if name == "list":
        return _list_audits(options)
    for flag in _REFUSED:
        if getattr(options, flag):
            msg = f"`as={name}` decides what is computed, and does not accept `{flag}`."
            raise ArgumentError(msg)
    outputs = Outputs.of(options)
    inputs = read_inputs(options)
    if any(isinstance(feature, Privileged) for feature in inputs.features):
        msg = f"`as={name}` compares all groups of a column: give `by` columns, and the reference as `to`."
        raise ArgumentError(msg)
    decided = {"interval"} if options.estimator else {"interval", "estimator"}
    reading = {key: value for key, value in inputs.reading.items() if key not in decided}
    # an audit has its own defaults
    groups = {flag: getattr(inputs.policy, flag) for flag in GROUPS if getattr(options, flag) is not None}
    settings: Any = {"by": inputs.features, "to": _references(options.to), **groups}
    settings |= {"within": options.within, "complementary": options.complementary}
    facts: Any = {name: getattr(options, name) for name in FACTS}
    filed = file_audit(
        name, inputs.data, inputs.truth, inputs.estimate, **settings, **facts, **inputs.counting, **reading
    )  # fmt: skip

    outputs.write_evidence(filed.save_evidence)

    def tables() -> pl.DataFrame:
        named = [frame.select(pl.lit(key).alias(".table"), pl.all()) for key, frame in filed.tables.items()]
        return pl.concat(named, how="diagonal_relaxed")

    def content() -> dict[str, Any]:
        return {
            "audit": name, "data": {"name": inputs.name},
            "tables": {key: records(frame) for key, frame in filed.tables.items()},
            "facts": dict(filed.facts), "statement": list(filed.statement),
        }  # fmt: skip

    def document() -> Document:
        parts = [Part(table.heading, table.texts, up_to="Group") for table in filed.published_tables().values()]
        return Document("", [f"{fact}: {text}" for fact, text in filed.facts.items()], parts, filed.statement)

    contents = {"output": tables, "json": content, "markdown": filed.markdown, "html": filed.page}
    return outputs.finish(document, contents)


def _list_audits(options: Namespace) -> int:
    """The list of named audits, printed or written to files."""
    outputs = Outputs.of(options)
    if "html" in outputs.files:
        msg = "`html`: the list of named audits cannot be a page; write it with `output`, `json` or `markdown`."
        raise ArgumentError(msg)
    every = NAMED_AUDITS.values()
    table = pl.DataFrame({"name": [one.name for one in every], "audit": [one.title for one in every]})
    contents = {"output": lambda: table, "json": lambda: {"audits": plain_rows(table)}}
    return outputs.finish(lambda: Document("Named audits", (), [Part("", table)]), contents)


def _references(texts: Sequence[str] | None) -> dict[str, str] | None:
    """The references of features, from texts such as `race=White`."""
    references: dict[str, str] = {}
    for text in texts or ():
        feature, is_equal, group = text.partition("=")
        if not is_equal:
            msg = f"`to`: {text!r} does not name a feature and its reference group; write `--to race=White`."
            raise ArgumentError(msg)
        references[feature] = group
    return references or None
