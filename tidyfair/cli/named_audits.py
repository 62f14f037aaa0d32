"""The tables of an audit that has a name, `audit --as`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.audits.filing import NAMED_AUDITS
from tidyfair.audits.filing import audit as file_audit
from tidyfair.cli.documents import Document, Part
from tidyfair.cli.inputs import GROUPS, read_inputs, set_defaults
from tidyfair.cli.outputs import Outputs, as_json, plain_rows, records
from tidyfair.cli.terminal import say, show
from tidyfair.errors import ArgumentError
from tidyfair.specs.groups import Privileged
from tidyfair.tallies.files import write

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from tidyfair.audits.filing import FiledAudit
    from tidyfair.cli.inputs import Inputs

_REFUSED = ("metric", "fail_if", "confidence", "output_groups", "interval", "simultaneous", "full", "title")
"""Options that a named audit does not take: it says itself what is computed, and gives no verdicts."""


def file_named_audit(options: Namespace) -> int:
    """The tables of a named audit, printed or written to files, or the list of these audits."""
    name = str(vars(options)["as"])
    if name == "list":
        _show_all(options)
        return 0
    for flag in _REFUSED:
        if getattr(options, flag, None):
            msg = f"`as={name}` decides what is computed, and does not accept `{flag}`."
            raise ArgumentError(msg)
    outputs = Outputs.of(options)
    filed, inputs = _filed(name, options)
    _write(outputs, filed, {"command": options.line, "audit": name, "data": {"name": inputs.name}})
    if not outputs:
        for table in filed.published_tables().values():
            show(table.heading, table.texts, up_to="Group")
        for sentence in filed.statement:
            say(sentence)
    return 0


def _show_all(options: Namespace) -> None:
    """The list of named audits, printed or written to files."""
    outputs = Outputs.of(options)
    if "html" in outputs:
        msg = "`html`: the list of named audits cannot be a page; write it with `output`, `json` or `markdown`."
        raise ArgumentError(msg)
    every = NAMED_AUDITS.values()
    table = pl.DataFrame({"name": [one.name for one in every], "audit": [one.title for one in every]})
    document = Document("Named audits", (), (Part("", table),))
    if "output" in outputs:
        write(table, outputs.files["output"])
    if "json" in outputs:
        outputs.write_text("json", as_json({"audits": plain_rows(table)}))
    if "markdown" in outputs:
        outputs.write_text("markdown", document.markdown(options.line, []))
    if not outputs:
        show("Named audits", table)


def _filed(name: str, options: Namespace) -> tuple[FiledAudit, Inputs]:
    """The audit, and what it was computed of."""
    own = {flag: getattr(options, flag) for flag in GROUPS}
    set_defaults(options)
    inputs = read_inputs(options, scores_alone=True)
    # an audit has its own defaults; values are read as their columns are
    groups = {flag: None if value is None else getattr(options, flag) for flag, value in own.items()}
    if any(isinstance(feature, Privileged) for feature in inputs.features):
        msg = f"`as={name}` compares all groups of a column: give `by` columns, and the reference as `to`."
        raise ArgumentError(msg)
    decided = {"interval"} if options.estimator else {"interval", "estimator"}
    reading = {key: value for key, value in inputs.reading.items() if key not in decided}
    settings: Any = {"by": inputs.features, "to": _references(options.to), "within": options.within, **groups}
    return file_audit(
        name, inputs.data, inputs.truth, inputs.estimate, **settings, **inputs.counting, **reading
    ), inputs


def _write(outputs: Outputs, filed: FiledAudit, content: dict[str, Any]) -> None:
    """Write the tables and the statement to the files that are asked for."""
    if "output" in outputs:
        tables = [frame.select(pl.lit(key).alias(".table"), pl.all()) for key, frame in filed.tables.items()]
        write(pl.concat(tables, how="diagonal_relaxed"), outputs.files["output"])
    if "json" in outputs:
        tables = {key: records(frame) for key, frame in filed.tables.items()}
        document = {**content, "tables": tables, "statement": list(filed.statement), "exit_code": 0}
        outputs.write_text("json", as_json(document))
    for flag, text_of in (("markdown", filed.markdown), ("html", filed.page)):
        if flag in outputs:
            outputs.write_text(flag, text_of())


def _references(texts: Sequence[str] | None) -> dict[str, str] | None:
    """The references of features, from texts such as `race=White`."""
    if not texts:
        return None
    references: dict[str, str] = {}
    for text in texts:
        feature, is_equal, group = text.partition("=")
        if not is_equal:
            msg = f"`to`: {text!r} does not name a feature and its reference group; write `--to race=White`."
            raise ArgumentError(msg)
        references[feature] = group
    return references
