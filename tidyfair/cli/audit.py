"""The commands `audit` and `report`: rates by group and disparities, with verdicts, pages and files on request."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import polars as pl

from tidyfair.cli.audited import Audited
from tidyfair.cli.inputs import CUTS, read_inputs
from tidyfair.cli.named_audits import file_named_audit
from tidyfair.cli.outputs import Outputs, records
from tidyfair.cli.tables import document_of
from tidyfair.errors import ArgumentError
from tidyfair.reports.page import report
from tidyfair.reports.reproduction import how_to_repeat

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from tidyfair.cli.outputs import Content
    from tidyfair.reports.page import Report


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
    audited = Audited.of(options, inputs)
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
    contents.setdefault("markdown", lambda: document_of(audited).markdown(options.line, notes))
    outputs.write(contents)
    brief = partial(document_of, audited, verdicts_only=True) if audited.verdicts else None
    outputs.show(partial(document_of, audited), brief, notes)
    return code


def _page(audited: Audited) -> Report:
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


def _json_of(audited: Audited) -> dict[str, Any]:
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


def _without_small(audited: Audited, groups: pl.DataFrame) -> pl.DataFrame:
    """The values of groups that have enough rows."""
    return groups.filter(pl.col(".n") >= audited.inputs.policy.min_n)
