"""The commands `metrics` and `datasets`: what there is."""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from functools import partial
from textwrap import fill
from typing import cast

import polars as pl

from tidyfair.calling import COMPARISONS, KINDS, PYTHON_ONLY, GroupwiseFactory, Metric
from tidyfair.cli.fail_if import EXAMPLE_LIMITS, SIDES, known_names
from tidyfair.cli.outputs import Document, Outputs, Part, plain_rows
from tidyfair.datasets import lending
from tidyfair.errors import ArgumentError, nearest
from tidyfair.escapes import visible
from tidyfair.metrics import expression_for, fairness
from tidyfair.metrics.catalog import (
    catalogue,
    comparison_named,
    factories,
    metric_named,
    names_of_metrics,
    source_of,
)
from tidyfair.specs.formulas import arithmetic_of

_WIDTH = 80
_INDENT = 14
"""The column at which facts begin, after their names."""
_DIRECTIONS = {
    "maximize": "larger is better",
    "minimize": "smaller is better",
    "zero": "0 is best",
    "one": "1 is best",
    "neither": "more is neither good nor bad",
}
_STATISTICS = {
    "tp": "true positives",
    "fp": "false positives",
    "fn": "false negatives",
    "tn": "true negatives",
    "positives": "rows with the event",
    "negatives": "rows without the event",
    "selected": "rows predicted as the event",
    "instances": "rows",
}
"""The counts of formulas, in words."""
_NAMES = r"(?:van )?[A-Z][\w-]+(?: (?:et al\.|&|and|[A-Z][\w-]+))*"
_CITATION = re.compile(rf"(?:(?<=\. )|^){_NAMES} \(\d{{4}}\)(?:, \(\d{{4}}\))?[^;]*?\.(?= [A-Z]|$)")
"""A sentence that is a paper, such as Hardt et al. (2016), Equality of opportunity in supervised learning."""
_CITED = re.compile(r"\(((?:[^()]*, )?[A-Z][^()]*, \d{4})\.?\)")
"""A paper in parentheses, such as (Hand and Till, 2001)."""


def metrics(options: Namespace) -> int:
    """The list of metrics, or what some of them are."""
    outputs = Outputs.of(options)
    if options.name:
        if outputs.files:
            msg = "`--output` and `--json` write the list of all metrics; leave them out, or NAME."
            raise ArgumentError(msg)
        shown = [explanation_of(name) for name in options.name]
        print("\n\n".join(shown))
        return 0
    every, parts = catalogue(), list[Part]()
    for kind in every["kind"].unique(maintain_order=True):
        alike = every.filter(kind=kind)
        ranges = [f"{low:g} to {high:g}" for low, high in alike.select("lower", "upper").rows()]
        formula = pl.col("formula").fill_null("(several lines)")
        table = alike.select("name", formula, pl.Series("range", ranges), "direction")
        parts.append(Part(f"Metrics of kind {kind}", table))
    hint = "`tidyfair metrics NAME` explains one, with its formula, source, and the disparities that are built on it."
    contents = {"output": lambda: every, "json": lambda: {"metrics": plain_rows(every)}}
    return outputs.finish(lambda: Document("", (), parts, [hint]), contents)


def explanation_of(name: str) -> str:
    """A metric in words, with its formula, range, direction and source, and the disparities that are built on it.

    Raises:
        ArgumentError: For an unknown name; the message has the nearest one.
    """
    if metric := metric_named(name):
        return _explained_metric(metric)
    if factory := comparison_named(name):
        return _explained_comparison(factory)
    metrics = names_of_metrics()
    expression = expression_for(name, metrics, fairness.__all__)
    if expression is not None:
        ours = expression.partition("(")[0].replace(".", "_")
        return f"{visible(name)} is {expression} here.\n\n{explanation_of(ours)}"
    msg = f"There is no metric {name!r}.{nearest(name, known_names())} `tidyfair metrics` lists all."
    raise ArgumentError(msg)


def _explained_metric(metric: Metric) -> str:
    """The explanation of a metric."""
    low, high = metric.range
    meaning, source = _prose(metric)
    facts = {
        "formula": arithmetic_of(metric.definition.function) or "several lines, see below",
        "where": _statistics(metric),
        "range": f"{low:g} to {high:g}; {_DIRECTIONS[metric.better]}",
        "reads": ", ".join(f"--{role}" for role in ("truth", "estimate", "probs") if role in metric.definition.reads),
        "options": ", ".join(f"{name}={value!r}" for name, value in metric.options.items()),
        "source": source,
        **_other_names(metric.name if metric.base is None else metric.base.name, metric.name),
        "disparities": _disparities(metric),
        "gate": f"--fail-if '{metric.name} {SIDES[metric.direction]} {EXAMPLE_LIMITS[SIDES[metric.direction]]}'",
    }
    if metric.kind in PYTHON_ONLY:
        facts |= {"reads": f"{KINDS[metric.kind]}, which only a call in Python can name", "gate": ""}
    if metric.definition.compares:
        # a comparison of a group with others has no value of all rows
        facts["gate"] = ""
    return _written(metric.name, meaning, facts, [source_of(metric.definition.function)])


def _prose(metric: Metric) -> tuple[str, str]:
    """The docstring of a formula without its example, and the papers that it cites."""
    docstring = inspect.cleandoc(metric.definition.function.__doc__ or "").partition(">>> ")[0]
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n")]
    words = [_CITATION.sub("", text).strip() for text in paragraphs]
    cited = [paper for text in paragraphs for paper in _CITATION.findall(text)]
    cited += [paper for text in words for paper in _CITED.findall(text)]
    return "\n".join(filter(None, words)), "; ".join(text.rstrip(". ") for text in cited)


def _statistics(metric: Metric) -> str:
    """The columns that the formula reads, in words, as far as they have names."""
    words: list[str] = []
    for need in metric.definition.needs:
        if need in _STATISTICS:
            words.append(f"{need}: {_STATISTICS[need]}")
        elif (part := metric_named(need)) is not None:
            meaning = part.meaning.partition(";")[0].partition(".")[0]
            words.append(f"{need}: {meaning[0].lower()}{meaning[1:]}")
    return "; ".join(words)


def _other_names(name: str, shown: str) -> dict[str, str]:
    """The other names of a metric, here and in other libraries."""
    rows = catalogue().filter(name=name).select("aliases", "elsewhere").rows()
    aliases, elsewhere = cast("tuple[list[str], list[str]]", rows[0] if rows else ([], []))
    here = [other for other in (name, *aliases) if other != shown]
    return {"also called": ", ".join(here), "elsewhere": ", ".join(elsewhere)}


def _disparities(metric: Metric) -> str:
    """The disparities that compare a metric, those of the field first."""
    definition = metric.definition
    names = [
        factory.name for factory in factories()
        if any(other.definition == definition for other in (*factory.metrics, *factory.less))
    ]  # fmt: skip
    if not metric.definition.compares:
        names += [f"{metric.name}_{way}" for way in COMPARISONS]
    return ", ".join(names)


def _explained_comparison(factory: GroupwiseFactory) -> str:
    """The explanation of a disparity, and the formulas of the metrics that it compares."""
    example = factory.typical
    low, high = example.range
    compared = dict.fromkeys([*factory.metrics, *factory.less])
    side = SIDES[example.direction]
    feature = "race=White" if example.by.sides else "race"
    facts = {
        "compares": "; ".join(f"{metric.name}: {metric.meaning.rstrip('.')}" for metric in compared),
        "range": f"{low:g} to {high:g}; {_DIRECTIONS[example.better]}",
        "options": ", ".join(f"{name}={value!r}" for name, value in factory.options.items()),
        "source": factory.source or "",
        **_other_names(factory.name, factory.name),
    }
    if factory.metrics[0].kind not in PYTHON_ONLY:
        facts["gate"] = f"--fail-if '{factory.name}({feature}) {side} {EXAMPLE_LIMITS[side]}'"
    code = [source_of(metric.definition.function) for metric in compared]
    return _written(factory.name, example.meaning, facts, code)


def _written(name: str, meaning: str, facts: dict[str, str], code: list[str]) -> str:
    """An explanation as text: the meaning, the facts that there are, and the formula as it is executed."""
    fitted = partial(fill, width=_WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = [*map(fitted, f"{name}: {meaning}".split("\n")), ""]
    for fact, text in facts.items():
        if text:
            start = f"  {fact}".ljust(_INDENT + 2)
            lines.append(fitted(text, initial_indent=start, subsequent_indent=" " * len(start)))
    return "\n\n".join(["\n".join(lines), "As it is computed:", *code])


def datasets(options: Namespace) -> int:
    """The example data, which no one need download."""
    outputs = Outputs.of(options)
    if options.name is None:
        if outputs.files:
            msg = "`output` needs the name of a data set: `tidyfair datasets lending --output FILE`."
            raise ArgumentError(msg)
        description = {"name": "lending", "rows": "as many as asked for", "what": "simulated decisions on loans"}
        return outputs.finish(lambda: Document("", (), [Part("Example data", pl.DataFrame([description]))]), {})
    if options.name != "lending":
        kind = "data set"
        raise ArgumentError.unknown(kind, options.name, ["lending"])
    data = lending(options.rows)
    head = Part(f"lending({options.rows})", data.head(10))
    return outputs.finish(lambda: Document("", (), [head]), {"output": lambda: data})
