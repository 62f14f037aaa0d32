"""The commands `check`, of predictions by a required policy, and `verify`, of a file of evidence."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import polars as pl

from tidyfair.audits import read_policy, verify_evidence, write_evidence
from tidyfair.cli.inputs import read_inputs
from tidyfair.cli.outputs import Document, Outputs, Part, in_words, plain_rows
from tidyfair.cli.verdicts import exit_code
from tidyfair.reports import one_below_the_other
from tidyfair.tallies import scan


def check(options: Namespace) -> int:
    """Judge the predictions of a file by a policy, and write evidence if a file is named."""
    policy = read_policy(options.policy)
    inputs = read_inputs(options)
    reading = {name: value for name, value in inputs.reading.items() if name != "interval"}
    call: dict[str, Any] = {**inputs.counting, **reading}
    if options.evidence is None:
        verdicts = policy(inputs.data, inputs.truth, inputs.estimate, **call)
    else:
        verdicts = write_evidence(options.evidence, policy, inputs.data, inputs.truth, inputs.estimate, **call)
    named = verdicts.with_columns(pl.col(".by").fill_null("all rows"), pl.col(".metric", ".reason").fill_null(""))
    shown = in_words(one_below_the_other(named))
    return _finish(options, f"Policy {options.policy}, held against {inputs.name}", shown, verdicts)


def verify(options: Namespace) -> int:
    """Verify a file of evidence, with the data if their file is named."""
    data = None if options.data is None else scan(options.data)
    parts = verify_evidence(options.evidence, data)
    shown = parts.rename({name: name.removeprefix(".") for name in parts.columns})
    return _finish(options, f"Evidence {options.evidence}", shown.fill_null(""), parts)


def _finish(options: Namespace, title: str, shown: pl.DataFrame, verdicts: pl.DataFrame) -> int:
    """Print the verdicts or write them, and return the exit code of the worst."""
    code = exit_code(verdicts[".verdict"])
    document = Document(title, (), [Part("", shown)])
    return Outputs.of(options).finish(lambda: document, {"json": lambda: {"verdicts": plain_rows(verdicts)}}, code=code)
