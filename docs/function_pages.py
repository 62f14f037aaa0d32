"""A page for every public function, metric and class, written from code; and the index of them all.

`docs/catalogue.py` writes them with the other pages that are made from code.
"""  # noqa: INP001 - read by catalogue.py

from __future__ import annotations

import ast
import inspect
import io
import re
import warnings
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from textwrap import dedent, fill
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, get_overloads

import polars as pl
from function_examples import EXAMPLES
from mathematics import READING, mathematics

import tidyfair
from tidyfair import catalogue
from tidyfair.calling.metric_sets import GroupwiseFactory, Metric, MetricSet
from tidyfair.errors import MissingPredictionsWarning, UnknownGroupWarning
from tidyfair.inference.on_data import _INTERNAL as INTERNAL_ON_DATA
from tidyfair.metrics import annotators, capitalized, curves, distances, individual, ranking, title_of
from tidyfair.metrics.catalog import source_of
from tidyfair.metrics.curves import Curve
from tidyfair.metrics.other_names import places
from tidyfair.specs import options, result_kinds as kinds
from tidyfair.specs.formulas import GroupPairs, Statistic, unprefixed
from tidyfair.specs.option_table import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "pages"
MADE = {
    "consistency": individual.consistency(["age"]),
    **{
        name: getattr(ranking, name)("query")
        for name in ("exposure", "exposure_per_relevance", "attention_gap", "dcg", "ndcg")
    },
    "ndkl": ranking.ndkl("query", "group"),
    "rnd": ranking.rnd("query", "protected"),
    "fleiss_kap": annotators.fleiss_kap("item"),
    "krippendorff_alpha": annotators.krippendorff_alpha("item"),
}
"""A metric of each function that makes metrics from the names of columns."""
_RESULTS = {
    "Accumulator": ("METRICS", "GROUPS"),
    "check": ("VERDICTS", "COMPARISONS", "PAIRS", "MODELS"),
    "compare_groups": ("COMPARISONS", "FOUR_FIFTHS", "PAIRS"),
    "compare_models": ("MODELS",),
    "conf_mat": ("CONFUSION",),
    "conf_mat_summary": ("METRICS",),
    "default_metrics": ("METRICS",),
    "four_fifths": ("VERDICTS",),
    "gain_curve": ("GAIN_CURVE",),
    "lift_curve": ("LIFT_CURVE",),
    "pr_curve": ("PR_CURVE",),
    "roc_curve": ("ROC_CURVE",),
    "abstention.risk_coverage_curve": ("RISK_COVERAGE_CURVE",),
    "calibration.cumulative_curve": ("CUMULATIVE_CURVE",),
    "calibration.curve": ("CALIBRATION_CURVE",),
    "threshold_curve": ("METRICS", "GROUPS"),
    "audits.AuditPolicy": ("REQUIREMENTS",),
    "audits.quantile_ratios": ("QUANTILES",),
    "audits.standardized_differences": ("STANDARDIZED",),
    "inference.certify_subgroups": ("CERTIFICATE", "SUBGROUPS"),
    "inference.ChangeSearch": ("CHANGES",),
    "inference.Gate": ("VERDICTS",),
    "inference.PeriodTest": ("PERIODS",),
    "inference.compare_periods": ("PERIODS", "CHANGES"),
    "inference.compare_resamples": ("RESAMPLES",),
    "inference.decompose": ("COMPONENTS",),
    "inference.disparity_test": ("TESTS",),
    "inference.feature_curve": ("FEATURE_CURVE",),
    "inference.labels_needed": ("GROUPS",),
    "inference.linear_subgroup": ("HALVES",),
    "inference.missing_truth": ("MISSING_TRUTH",),
    "inference.monitor": ("LOOK", "LOOKS", "GROUPS_OF_LOOKS"),
    "inference.multicalibration_test": ("MISCALIBRATION",),
    "inference.paired_groups": ("PAIRED", "COCHRANS_Q"),
    "inference.pairwise": ("PAIRS",),
    "inference.probabilistic_groups": ("BOUNDS",),
    "inference.probability": ("PROBABILITIES",),
    "inference.shrunken_rates": ("SHRUNKEN",),
    "inference.smallest_difference": ("SMALLEST",),
    "inference.stratified": ("STRATA",),
    "inference.subgroup_search": ("SUBGROUPS",),
    "inference.summarize": ("SUMMARIES",),
    "inference.verdict_sensitivity": ("SENSITIVITY",),
    "inference.worst_groups": ("WORST",),
    "survival.kaplan_meier": ("SURVIVAL_CURVE",),
    "types.Curve": ("ROC_CURVE", "PR_CURVE", "GAIN_CURVE", "LIFT_CURVE", "CALIBRATION_CURVE"),
    "types.GroupComparison": ("COMPARISONS",),
    "types.FiledAudit": ("UNKNOWN_ROWS", "PAY_GAPS", "PAY_BANDS"),
    "types.GroupwiseMetric": ("METRICS", "GROUPS"),
    "types.Metric": ("METRICS", "GROUPS"),
    "types.MetricSet": ("METRICS", "GROUPS"),
}
"""The kinds of results of what is no metric."""
_GUIDES = {
    "audits": "tables-to-file",
    "calibration": "how-to/call#Evaluate scores and probabilities",
    "distributions": "metrics/fairness",
    "inference": "how-sure/index",
    "inequality": "how-to/inequality",
    "annotators": "how-to/annotators",
    "prediction_intervals": "how-to/numbers#Evaluate prediction intervals and quantiles",
    "rankings": "how-to/rankings",
    "survival": "how-to/survival",
    "scorers": "how-to/scikit-learn",
    "surveys": "how-to/weights#Analyze complex surveys: strata, clusters, replicate weights",
    "aggregates": "how-to/aggregates",
    "calling.streaming": "batches",
    "inference.gates": "how-to/gates",
    "inference.models": "how-to/compare-models",
    "inference.monitoring": "how-to/monitoring",
    "reports": "how-to/pictures-and-reports",
    "metrics.define": "how-to/own-metric",
    "metrics.classification": "how-to/choose-a-metric",
    "metrics.probability": "how-to/call#Evaluate scores and probabilities",
    "metrics.regression": "how-to/numbers",
    "metrics.fairness": "how-to/choose-a-metric",
    "metrics.confusion": "how-to/confusion-matrix",
    "metrics.curves": "how-to/call#Set a threshold, also one for each group",
    "specs.groups": "how-to/aggregates",
    "specs.contrasts": "how-to/aggregates",
    "specs.spreads": "how-to/aggregates",
    "specs.aggregates": "how-to/aggregates",
    "errors": "how-to/undefined-values",
}
"""The guide to a family or to the module that defines a name."""
_LOANS = """\
>>> from tidyfair.datasets import lending
>>> loans = lending()"""
_HOUSES = """\
>>> import polars as pl
>>> houses = pl.DataFrame({
...     "price": [200, 300, 400, 500, 250, 450], "guess": [210, 280, 430, 500, 270, 400],
...     "town": ["Ayr", "Ayr", "Ayr", "Rye", "Rye", "Rye"],
... })"""
_PATIENTS = """\
>>> import polars as pl
>>> patients = pl.DataFrame({
...     "days": [90, 120, 400, 700, 250, 500, 610, 300], "died": [1, 1, 0, 1, 1, 1, 0, 1],
...     "predicted": [150, 200, 300, 800, 400, 350, 500, 250],
...     "alive_200": [0.5, 0.7, 0.8, 0.9, 0.8, 0.7, 0.9, 0.6], "alive": [0.3, 0.6, 0.7, 0.9, 0.5, 0.6, 0.8, 0.4],
...     "clinic": ["north", "south", "north", "south"] * 2,
... })
>>> died = tdf.survival.outcome("days", "died")"""
_RENTS = """\
>>> import polars as pl
>>> rents = pl.DataFrame({
...     "rent": [500, 700, 900, 650], "low": [450, 600, 850, 560], "mid": [510, 690, 930, 600],
...     "high": [600, 780, 1000, 640], "town": ["Ayr", "Rye", "Ayr", "Rye"],
... })
>>> interval = tdf.prediction_intervals.interval("low", "high", level=0.9)"""
_CALLS = {
    "class": ((_LOANS, 'loans, "repaid", "approved", pos_label="yes"', "race"),),
    "prob": ((_LOANS, 'loans, "repaid", probs="score", pos_label="yes"', "race"),),
    "numeric": ((_HOUSES, 'houses, "price", "guess"', "town"),),
    "survival": (
        (_PATIENTS, 'patients, died, probs={365: "alive"}', "clinic"),
        (_PATIENTS, 'patients, died, probs={200: "alive_200", 365: "alive"}', "clinic"),
        (_PATIENTS, 'patients, died, "predicted"', "clinic"),
    ),
    "interval": (
        (_RENTS, 'rents, "rent", interval', "town"),
        (_RENTS, 'rents, "rent", {0.1: "low", 0.5: "mid", 0.9: "high"}', "town"),
    ),
}
"""Examples of calls for each kind of metric: the data, the arguments, and a feature; the first that has a value."""
_HEADERS = {"Args": "**Arguments**", "Returns": "**Returns**", "Raises": "**Errors**"}
_NAME = re.compile(r'"[^"]*"|(?<![\w.])[A-Za-z_]\w*\b(?!\s*=[^=])')
"""A text, or a name that is no attribute, keyword or variable that gets a value."""
_SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_HEADINGS = {"__call__": "Call", "__add__": "Sum of two tallies"}
"""Headings of methods that have no name for readers."""
_METHODS: dict[str, set[str]] = {
    "audits.AuditPolicy": {"__call__", "assert_holds"},
    "inference.Gate": {"__call__", "compute"},
    "inference.ModelComparison": {"__call__"},
    "types.Aggregate": set(),
    "types.CorrelationScorer": {"__call__", "set_score_request"},
    "types.FairnessScorer": {"__call__", "set_score_request"},
    "types.SubsetScorer": {"__call__", "set_score_request"},
    "types.ComparisonTable": set(),
    "types.GroupComparison": {"__call__", "compute"},
    "types.NamedAudit": {"with_groups"},
    "types.Privileged": set(),
    "types.PublishedColumn": set(),
    "types.SegmentedTable": set(),
    "types.StandardizedTable": set(),
    "types.Tally": {"__add__"},
    "types.ValuesTable": set(),
}
"""Methods to show, of classes whose other methods are for the library."""
_OBTAINED = {
    "types.ComparisonTable": ("tdf.types.ComparisonTable", "You make one, as one of the tables of a {NamedAudit}."),
    "types.Curve": (
        "tdf.roc_curve",
        "{roc_curve}, {pr_curve}, {gain_curve}, {lift_curve} and the curves of {calibration} are such objects.",
    ),
    "types.GroupwiseFactory": (
        "tdf.demographic_parity",
        (
            "Each fairness metric is one, such as {demographic_parity}; {new_groupwise_metric} and "
            "{new_between_group_metric} make one of your own."
        ),
    ),
    "types.GroupwiseMetric": (
        'tdf.demographic_parity("sex")',
        (
            'A fairness metric gives one when it is called with a feature, as in `tdf.demographic_parity("sex")`; '
            'so do comparisons of any metric, as in `tdf.accuracy.difference("sex")`.'
        ),
    ),
    "types.Metric": (
        "tdf.accuracy",
        (
            "Each metric is one, such as {accuracy}. {metric_tweak} sets options; {class_metric}, {numeric_metric} and "
            "{prob_metric} make a metric of your own."
        ),
    ),
    "types.MetricSet": (
        "tdf.metric_set(…)",
        "{metric_set} makes one of metrics, and {get_metrics} of their names; {default_metrics} is a set.",
    ),
    "types.NamedAudit": (
        "tdf.types.NamedAudit",
        "{NAMED_AUDITS} holds those of the library. You can make one of your own.",
    ),
    "types.PublishedColumn": ("tdf.types.PublishedColumn", "You make one, as a column of a table of a {NamedAudit}."),
    "types.Sample": ("", "A function that you give to {new_between_group_metric} is called with two of them."),
    "types.SegmentedTable": ("tdf.types.SegmentedTable", "You make one, as one of the tables of a {NamedAudit}."),
    "types.StandardizedTable": ("tdf.types.StandardizedTable", "You make one, as one of the tables of a {NamedAudit}."),
    "types.Tally": (
        "",
        (
            "`tally` of any metric or set counts rows, as in `tdf.sens.tally(data, truth, estimate)`; {load_state} "
            "reads one from a file."
        ),
    ),
    "types.ValuesTable": ("tdf.types.ValuesTable", "You make one, as one of the tables of a {NamedAudit}."),
}
"""The expression that a class's call begins with, and how one gets an object, where no function returns it."""
FRAME = """\
`Frame` is a frame of the kind of the data: `polars.DataFrame` for polars, lazy frames and databases, else pandas or
pyarrow."""
ALL = "- [All functions, metrics and classes](../reference/index.md)."
INDEX = """\
# All functions, metrics and classes

Each name has a page with its call, what it returns, an example, its formula and source. Names of a family are written
with it: `tdf.survival.brier`. In Python, `help(tdf.accuracy)` says the same, and `tdf.catalogue()` lists all metrics as
a frame."""


def pages() -> dict[str, str]:
    """The text of every page by its path."""
    named = {place: _value(place) for place in places().values()}
    found = {f"functions/{place}.md": _page(place, value) for place, value in named.items() if not _is_alias(value)}
    found |= {f"functions/{family}.md": _page_of_family(family) for family in vars(tidyfair)["_FAMILIES"]}
    found["reference/index.md"] = "\n\n".join(_index()) + "\n"
    return found


def link(name: str, folder: str = "") -> str:
    """A link to the page of a public name, from a page beside it or from another folder."""
    place = places().get(name, name)
    return f"[`{place}`]({folder}{_page_of(place)}.md)"


def _page_of(place: str) -> str:
    """The page of a name, which for an alias is that of the metric."""
    value = _value(place)
    return places()[value.base.name] if isinstance(value, Metric) and _is_alias(value) and value.base else place


def _value(place: str) -> Any:
    return attrgetter(place)(tidyfair)


def _is_alias(value: object) -> bool:
    return isinstance(value, Metric) and value.base is not None and value.base.definition == value.definition


def summary(value: object) -> str:  # noqa: PLR0911 - a kind of name in each
    """What something is, in one paragraph."""
    match value:
        case Metric() if value.base is not None and not _is_alias(value):
            options = ", ".join(f"`{option}={chosen!r}`" for option, chosen in value.definition.options)
            return f"{link(value.base.name)} with {options}."
        case Metric():
            return value.meaning
        case GroupwiseFactory():
            return value.typical.meaning
        case Curve():
            return inspect.cleandoc(str(value.function.__doc__)).partition("\n\n")[0]
        case MetricSet():
            return "The usual metrics of a confusion matrix as one set."
        case FunctionType() | type() | ModuleType():
            return (inspect.getdoc(value) or "").partition("\n\n")[0]
        case _:
            return "The named audits, by their name."


def in_a_line(value: object) -> str:
    """The first sentence of a summary, in one line of plain text."""
    text = re.sub(r"\s+", " ", re.sub(r"\[`?([^]`]*)`?\]\([^)]*\)", r"`\1`", summary(value)))
    ends = [found.start() for found in re.finditer(r"(?<=[^.][.:;]) (?=[A-Z`0])|: (?=0 for)|; (?=null|0 )", text)]
    # a name alone is no answer
    end = next((end for end in ends if end > 30), len(text))
    return text[:end].rstrip(".:;") + "."


def _run(code: str) -> str:
    """An example with the results of its expressions, as Python shows them."""
    space: dict[str, Any] = {}
    lines: list[str] = []
    for statement in ast.parse(code).body:
        source = str(ast.get_source_segment(code, statement))
        if decorators := getattr(statement, "decorator_list", []):
            source = f"@{ast.get_source_segment(code, decorators[0])}\n{source}"
        first, *rest = source.splitlines()
        lines += [f">>> {first}", *(f"... {line}".rstrip() for line in rest)]
        shown = io.StringIO()
        with redirect_stdout(shown):
            if isinstance(statement, ast.Expr):
                value = eval(source, space)  # noqa: S307 - an example of our own
                lines += [] if value is None else [repr(value)]
            else:
                exec(source, space)  # noqa: S102 - an example of our own
        lines += shown.getvalue().splitlines()
    return "\n".join(lines)


def _page(place: str, value: Any) -> str:
    """The page of a name."""
    match value:
        case Metric():
            parts = _metric(place, value)
        case GroupwiseFactory():
            parts = _fairness_metric(place, value)
        case Curve():
            parts = _curve(place, value)
        case MetricSet():
            parts = _set(place, value)
        case type():
            parts = _class(place, value)
        case FunctionType():
            parts = _function(place, value)
        case _:
            parts = _mapping(value)
    parts = [*parts]
    if place in EXAMPLES and not any(part.startswith("## Example") for part in parts):
        at = next((number for number, part in enumerate(parts) if part.startswith("## See also")), len(parts))
        parts.insert(at, f"## Example\n\n```pycon\n{_run(EXAMPLES[place])}\n\n```")
    return _laid_out(
        place, in_a_line(value), chain([f"::: tidyfair.{place}\n    options:\n      heading: {place}"], parts)
    )


def _laid_out(title: str, description: str, parts: Iterator[str]) -> str:
    plain = description.replace("`", "").replace('"', "'")
    head = f'---\ntitle: {title}\ndescription: "{plain}"\n---'
    return "\n\n".join([head, *(part.strip("\n") for part in parts if part)]) + "\n"


def _metric(place: str, value: Metric) -> Iterator[str]:
    """Meaning, facts, call, result, example, formula, null, errors, and what it is compared by."""
    definition = value.definition
    prose, mark, example = inspect.cleandoc(str(definition.function.__doc__)).partition(">>> ")
    yield f"**{capitalized(title_of(value.name))}.** {summary(value) if value.base is not None else _prose(prose)}"
    facts = [
        ("predictions", ", ".join(dict.fromkeys(_KINDS[each.kind] for each in value.readings))),
        ("better", value.better), ("range", range_of(value)), ("reads", columns_of(value) or "no column"),
        ("options", ", ".join(f"`{option}={default!r}`" for option, default in value.options.items())),
        ("average over labels", f"`{definition.average}`" if definition.average else ""),
    ]  # fmt: skip
    yield from _facts(facts, place, value.name)
    yield from _metric_call(place)
    found = _example(f"tdf.{place}", value.kind)
    yield f"## Example\n\n{found}" if found else ""
    yield _picture(place)
    yield from _formula(value.name, definition.function, value)
    if mark:
        yield f"```pycon\n{_runnable(mark + example)}\n\n```"
    yield from _null_and_errors(value)
    yield from _see_also(place, value)
    if value.base is None:
        yield from _aliases(value.name)


_KINDS = {
    "class": "labels", "prob": "scores", "numeric": "numbers", "survival": "survival times",
    "interval": "intervals or quantiles",
}  # fmt: skip


def _facts(facts: list[tuple[str, str]], place: str, name: str) -> Iterator[str]:
    """A table of what is short, and the other names."""
    first, *others = (f"| {fact} | {text} |" for fact, text in facts if text)
    yield "\n".join([first, "|---|---|", *others])
    rows = everything().filter(name=name)
    row = rows.row(0, named=True) if rows.height else {"aliases": [], "elsewhere": []}
    if row["aliases"]:
        yield f"Also called {_listed(row['aliases'])}."
    if row["elsewhere"]:
        yield f"In other libraries {_listed(row['elsewhere'])}."
    if name != place:
        yield f"Results name it `{name}`."


def _aliases(name: str) -> Iterator[str]:
    """An entry for each other name of a metric."""
    for alias in everything().row(by_predicate=pl.col("name") == name, named=True)["aliases"]:
        heading = places()[alias]
        yield f"::: tidyfair.{heading}\n    options:\n      heading: {heading}\n      heading_level: 2"
        yield f"Another name of `{places()[name]}`, which `.metric` then shows: `tdf.{heading}(data, …)`."


def _metric_call(place: str) -> Iterator[str]:
    """The signature, which all metrics share, and the columns of the result."""
    yield "## Call"
    yield _code(_wrapped(f"tdf.{place}", inspect.signature(Metric.__call__)))
    yield (
        f'[`types.Metric`](types.Metric.md) explains each keyword. `tdf.{place}.difference("column")`, `.ratio`, '
        "`.group_minimum` and `.group_maximum` compare groups, and `group_by=` gives a row for each group."
    )
    yield "## Returns"
    yield (
        "A frame of the kind of the data (`polars.DataFrame` for polars, lazy frames and databases) with a row for "
        "each outer group: `.metric`, `.by`, `.estimator`, `.estimate`; with `interval=` also `.lower`, `.upper`, "
        "`.std_error` and `.method`; with `explain=True` also `.n`, `.status` and what was left out "
        "([columns](../reference/columns.md))."
    )


def _example(code: str, kind: str) -> str:
    """A call on data with its result; empty where none of the example data suit."""
    for data, arguments, feature in _CALLS.get(kind, ()):
        # a metric of a group and the others has no value for all rows
        for call in (f"{code}({arguments})", f'{code}.group_maximum("{feature}")({arguments})'):
            result = _tried(["import tidyfair as tdf", *_statements(data)], call)
            if result is not None and result[".estimate"].null_count() == 0:
                return f"```pycon\n>>> import tidyfair as tdf\n{data}\n>>> {call}\n{result}\n\n```"
    return ""


def _statements(block: str) -> list[str]:
    """The statements of an example without prompts."""
    return ["\n".join(line[4:] for line in block.splitlines())]


def _tried(statements: list[str], expression: str) -> Any:
    """The value of an expression after statements, or None where it raises or warns."""
    space: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnknownGroupWarning)
        warnings.simplefilter("ignore", MissingPredictionsWarning)
        try:
            for statement in statements:
                exec(statement, space)  # noqa: S102 - examples of our own
            return eval(expression, space)  # noqa: S307 - an example of our own
        except (ValueError, UserWarning, TypeError, KeyError):
            return None


@cache
def _pictures() -> dict[str, str]:
    """The picture of the gallery that shows a name, by its place: the first whose code calls it."""
    found: dict[str, str] = {}
    for _, text in _SECTION.findall((FOLDER / "gallery.md").read_text("utf-8")):
        code, _, shown = text.partition("![")
        for name in re.findall(r"tdf\.((?:\w+\.)*\w+)", code):
            images = re.findall(r"^!\[.*$", f"![{shown}", re.MULTILINE)
            found.setdefault(name, "\n".join(image.replace("](gallery/", "](../gallery/") for image in images))
            found.setdefault(name.rpartition(".")[0], found[name])
    return found


def _picture(place: str) -> str:
    """The picture with a link to its code."""
    images = "" if place in {"autoplot", "datasets.lending"} else _pictures().get(place, "")
    return f"{images}\n\nThe [gallery](../gallery.md) has the code of this picture." if images else ""


def _formula(name: str, function: Callable[..., Any], value: Any) -> Iterator[str]:
    """The formula in mathematics and as the code that is executed, with what it uses."""
    terms = value.definition.terms if isinstance(value, Metric) else ()
    yield "## Formula"
    if (block := mathematics(function, dict(terms))) is not None:
        yield block
        yield READING
    yield _source(function)
    shown = {function.__name__}
    if isinstance(value, Metric):
        yield from (_source(other.definition.function) for other in value.others)
        terms += tuple(chain.from_iterable(other.definition.terms for other in value.others))
        if parts := ", ".join(link(unprefixed(part)) for part, _ in value.definition.parts):
            yield f"Made of {parts}."
    yield from _uses(function, shown)
    yield from chain.from_iterable(_used(term.function, term.name, shown) for _, term in terms)
    yield from _quantities_of_lists(name, shown)


def _quantities_of_lists(name: str, shown: set[str]) -> Iterator[str]:
    """The quantities of rows in lists that a metric sums."""
    terms: tuple[tuple[str, Statistic], ...] = MADE[name].definition.terms if name in MADE else ()
    for _, term in terms:
        if term.lists is not None and (quantity := term.lists.quantity).__name__ not in shown:
            shown.add(quantity.__name__)
            yield from _used(quantity, quantity.__name__, shown)


def _uses(function: Callable[..., Any], shown: set[str]) -> Iterator[str]:
    """Private numbers and functions of its module that a function uses, each in full where it is used first."""
    around: dict[str, Any] = inspect.unwrap(function).__globals__
    for name in dict.fromkeys(_names(function.__code__)):
        value = around.get(name)
        value = value.definition.function if isinstance(value, Metric) else value
        if isinstance(value, int | float):
            yield f"`{name}` is {value!r}."
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__ and name not in shown:
            shown.add(name)
            yield from _used(value, name, shown)


def _used(function: Callable[..., Any], name: str, shown: set[str]) -> Iterator[str]:
    """A statistic or helper: name, meaning, body, and what it uses in turn."""
    yield f"`{name}`: {inspect.cleandoc(function.__doc__ or '').partition('>>> ')[0].strip()}".removesuffix(": ")
    yield from [_source(function), *_uses(function, shown)]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        yield from _names(inner) if isinstance(inner, CodeType) else ()


def _source(function: Callable[..., Any]) -> str:
    """A function as it is executed, without decorators, docstring and words to tools."""
    return _code(source_of(function))


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _null_and_errors(value: Metric) -> Iterator[str]:
    """Where there is no value, and what is refused."""
    yield "## Null and errors"
    denominator = _denominator(value.definition.function)
    where = f" Here that is where `{denominator}` is 0 (`zero_denominator`)." if denominator else ""
    yield (
        f"The value is null where it is undefined, never 0; `explain=True` gives the reason in `.status` "
        f"([undefined values](../how-to/undefined-values.md)).{where}"
    )
    labels = any(reading.kind in {"class", "prob"} for reading in value.readings)
    yield (
        f"Errors: {link('ColumnError')} for columns that the data lack or whose type does not fit, "
        + (f"{link('LabelError')} where it is not clear which label is the event, " if labels else "")
        + f"{link('WeightError')} for weights that are negative or missing, and {link('ArgumentError')} for options "
        "that do not exist or do not fit."
    )


def _denominator(function: Callable[..., Any]) -> str | None:
    """The denominator of a rate, as its formula has it."""
    definition: Any = ast.parse(source_of(function)).body[0]
    match definition.body:
        case [ast.Return(value=ast.Tuple(elts=[_, denominator]))]:
            return ast.unparse(denominator)
        case _:
            return None


def _see_also(place: str, value: Metric) -> Iterator[str]:
    """The fairness metrics that compare a metric, and the pages that lead to it."""
    yield "## See also"
    versions = [link(each.name) for each in factories() if value.name in {metric.name for metric in each.metrics}]
    made_of = [unprefixed(part) for part, _ in value.definition.parts]
    uses = [
        link(each.name) for each in _metrics()
        if each.base is None and value.name in {unprefixed(part) for part, _ in each.definition.parts}
    ]  # fmt: skip
    lines = [
        ("Fairness metrics that compare it", versions), ("Metrics made of it", uses),
        ("Made of", [link(part) for part in made_of]),
        ("Guides", [_guide(place, value.definition.function.__module__)]),
    ]  # fmt: skip
    yield "\n".join(f"- {title}: {', '.join(filter(None, links))}." for title, links in lines if any(links))


def _guide(place: str, module: str) -> str:
    """A link to the guide of a family or of a module."""
    family, _, _ = place.rpartition(".")
    room = module.removeprefix("tidyfair.")
    of_module = next((guide for part, guide in _GUIDES.items() if "." in part and room.startswith(part)), None)
    if (guide := of_module or _GUIDES.get(family) or _GUIDES.get(room.partition(".")[0])) is None:
        return ""
    page, _, heading = guide.partition("#")
    title = heading or re.findall(r"^# (.+)$", (FOLDER / f"{page}.md").read_text("utf-8"), re.MULTILINE)[0]
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
    return f"[{title}](../{page}.md{f'#{anchor}' if anchor else ''})"


def _fairness_metric(place: str, value: GroupwiseFactory) -> Iterator[str]:
    """Meaning, facts, call, result, example, formula and metrics."""
    made, pairs = value.typical, value.metrics[0].definition
    paired = isinstance(pairs, GroupPairs)
    if paired:
        prose, mark, example = inspect.cleandoc(str(pairs.function.__doc__)).partition(">>> ")
        yield _prose(prose)
    else:
        mark = example = ""
    yield f"**{capitalized(title_of(value.name))}.** {made.meaning}"
    yield from (f"- {link(metric.name)}: {metric.meaning}" for metric in value.metrics if not paired)
    facts = [
        ("compared by", f"`{value.aggregate!r}`"), ("better", made.better), ("range", range_of(made)),
        ("reads", columns_of(value.metrics[0])), ("source", value.source or ""),
    ]  # fmt: skip
    yield from _facts(facts, place, value.name)
    yield "## Call"
    made_by = _wrapped(f"gap = tdf.{place}", inspect.signature(value))
    called = _wrapped("gap", inspect.signature(Metric.__call__))
    yield _code(f"{made_by}\n{called}")
    yield (
        "Call it with one or more columns, several for every combination of their groups, or with "
        f"{link('privileged')}; then call the result with data, as {link('GroupwiseMetric')} and "
        f"{link('Metric')} explain:"
    )
    documented = inspect.cleandoc(str(type(value).__call__.__doc__)).partition("Args:")[2].partition("Raises:")[0]
    yield _prose(f"Args:{documented.rstrip()}").partition("\n\n")[2]
    yield "## Returns"
    yield _kind("METRICS")
    yield f"`gap.by_group(data, …)` gives the values that are compared. {_kind('GROUPS')}"
    yield from _fairness_example(place, value)
    if mark:
        yield f"```pycon\n{_runnable(mark + example)}\n\n```"
    yield _picture(place)
    if paired:
        yield from _formula(value.name, pairs.function, value)
    yield "## Null and errors"
    yield (
        "Null where fewer than two of several groups have a value, or where the reference has none; one group in the "
        "data gives the value of equality. Groups without a value are named in a warning and, with `explain=True`, in "
        f"`.groups_left_out`. Errors: {link('ColumnError')}, {link('AggregateError')} and {link('ArgumentError')} for "
        "features, aggregates and options that do not fit."
    )
    yield "## See also"
    names = {metric.name for metric in value.metrics}
    alike = [
        link(other.name) for other in factories() if other is not value and names & {m.name for m in other.metrics}
    ]
    lines = [
        ("Metrics", [] if paired else [link(name) for name in names if name in places()]),
        ("Other comparisons of the same metrics", alike),
        ("Guides", [_guide(place, "tidyfair.metrics.fairness"), "[Fairness metrics](../metrics/fairness.md)"]),
    ]  # fmt: skip
    yield "\n".join(f"- {title}: {', '.join(filter(None, sorted(set(links))))}." for title, links in lines if links)


def _fairness_example(place: str, value: GroupwiseFactory) -> Iterator[str]:
    """A comparison of groups of the example data, with the values of the groups."""
    for data, arguments, feature in _CALLS.get(value.metrics[0].kind, ()):
        for by in (f'"{feature}"', 'tdf.privileged({"race": "White"})'):
            made = f"tdf.{place}({by})"
            lines = ["import tidyfair as tdf", *_statements(data), f"gap = {made}"]
            result = _tried(lines, f"gap({arguments})")
            if result is not None and not result[".estimate"].null_count():
                break
        else:
            continue
        first, second = f"groups = gap.by_group({arguments})", 'groups.select(".metric", ".group", ".estimate", ".n")'
        shown = _tried([*lines, first], second)
        more = "" if shown is None else f"\n>>> {first}\n>>> {second}\n{shown}"
        yield "## Example"
        head = f">>> import tidyfair as tdf\n{data}\n>>> gap = {made}"
        yield f"```pycon\n{head}\n>>> gap({arguments})\n{result}{more}\n\n```"
        return


def _kind(name: str) -> str:
    """The columns of a kind of result."""
    kind: kinds.ResultKind = getattr(kinds, name)
    shown = ", ".join(f"**`{column}`**" if column in kind.known_by else f"`{column}`" for column in kind.columns)
    return f"*{kind.title}*: {shown}."


def _kinds(*made_by: str) -> Iterator[str]:
    """The columns of the results of a function, or of what it makes."""
    if found := next((place for place in made_by if place in _RESULTS), None):
        yield "## Columns of the result"
        yield (
            "In order; those in bold are always there, the others where options ask for them "
            "([what they hold](../reference/columns.md))."
        )
        yield "\n".join(f"- {_kind(name)}" for name in _RESULTS[found])


def _curve(place: str, value: Curve) -> Iterator[str]:
    prose, mark, example = inspect.cleandoc(str(value.function.__doc__)).partition(">>> ")
    yield _prose(prose)
    yield f"Points come with {'rising' if value.rising else 'falling'} scores. Reads: truth, probs."
    yield "## Call"
    yield _code(_wrapped(f"tdf.{place}", inspect.signature(Curve.__call__)))
    yield _prose(inspect.cleandoc(str(Curve.__call__.__doc__)).partition(">>> ")[0])
    yield from _kinds(place)
    yield f"## Example\n\n```pycon\n{_runnable(mark + example)}\n\n```" if mark else ""
    yield _picture(place)
    yield from _formula(value.name, value.function, value)
    yield f"## See also\n\n- Guides: {_guide(place, 'tidyfair.metrics.curves')}, [Curves](../metrics/curves.md)."


def _set(place: str, value: MetricSet) -> Iterator[str]:
    yield f"{summary(value)} It is called like every metric: `tdf.{place}(data, truth, estimate)`."
    yield f"It has {', '.join(link(metric.name) for metric in value.metrics)}."
    yield from _metric_call(place)
    found = _example(f"tdf.{place}", "class")
    yield f"## Example\n\n{found}" if found else ""
    yield f"## See also\n\n- {link('conf_mat')}, {link('MetricSet')}."


def _mapping(value: Any) -> Iterator[str]:
    yield f"A read-only mapping from names to {link('NamedAudit')}, for `tdf.audit(name, data, …)`."
    yield "\n".join(f"- `{name}`: {named.title}" for name, named in value.items())
    yield f"## See also\n\n- {link('audit')}, [Tables you have to file](../tables-to-file.md)."


def _function(place: str, value: FunctionType) -> Iterator[str]:
    """Meaning, signature, arguments, columns, example, and the class that it makes."""
    prose, mark, example = _docs(value)
    first, _, rest = prose.partition("\n\n")
    yield first
    yield "## Call"
    yield (signature := _code(_signature(f"tdf.{place}", value)))
    yield FRAME if re.search(r"\bFrame\b", signature) else ""
    yield _prose(rest)
    yield from _kinds(place)
    yield f"## Example\n\n```pycon\n{_runnable(mark + example)}\n\n```" if mark else ""
    yield _picture(place)
    if place.rpartition(".")[2] in MADE:
        made = MADE[place.rpartition(".")[2]]
        yield (
            f"What it makes reads {columns_of(made)} and the columns that it is made with. Better: {made.better}. "
            f"Range: {range_of(made)}."
        )
        yield from _formula(place.rpartition(".")[2], made.definition.function, made)
    makes = [
        link(name) for name in re.findall(r"\w+", str(inspect.signature(value).return_annotation)) if name in places()
    ]
    lines = [("Makes", makes), ("Guides", [_guide(place, value.__module__)])]
    listed = [f"- {title}: {', '.join(links)}." for title, links in lines if any(links)]
    yield "## See also\n\n" + "\n".join([*listed, ALL])


def _class(place: str, value: type) -> Iterator[str]:
    """What it is, how one gets an object, its call, columns, example, fields and methods."""
    prose, _, _ = _docs(value)
    first, _, rest = prose.partition("\n\n")
    yield first
    makers = _makers(place, value)
    expression = f"tdf.{places()[makers[0]]}(…)" if makers else f"tdf.{place}"
    if issubclass(value, Warning | Exception):
        bases = [base for base in value.__mro__[1:] if base is not object][:2]
        names = [link(base.__name__) if base.__name__ in places() else f"`{base.__name__}`" for base in bases]
        yield f"A kind of {', '.join(names)}."
    elif place in _OBTAINED:
        expression, sentence = _OBTAINED[place]
        yield re.sub(r"\{(\w+)\}", lambda found: link(found[1]), sentence)
    elif makers:
        yield f"Returned by {', '.join(map(link, makers[:4]))}{' and others' * (len(makers) > 4)}."
    if expression == f"tdf.{place}" and not issubclass(value, Warning | Exception):
        yield f"## Call\n\n{_code(_signature(f'tdf.{place}', value))}"
    yield _prose(rest)
    methods = _methods(place, value, expression)
    is_called = "__call__" in methods
    yield from methods.pop("__call__", [])
    yield from _kinds(place, *(places()[maker] for maker in makers))
    shown = _example_of(place) or next((text for maker in makers if (text := _example_of(places()[maker]))), "")
    yield f"## Example\n\n```pycon\n{_runnable(shown)}\n\n```" if shown else ""
    yield next((picture for maker in makers if is_called and (picture := _picture(places()[maker]))), "")
    yield _fields(value)
    yield from chain.from_iterable(methods.values())
    lines = [("Made by", [*map(link, makers)]), ("Guides", [_guide(place, value.__module__)])]
    listed = [f"- {title}: {', '.join(links)}." for title, links in lines if any(links)]
    yield "## See also\n\n" + "\n".join([*listed, ALL])


def _makers(place: str, value: type) -> list[str]:
    """The functions that return an object of a class, first those that its docstring names."""
    if place in _OBTAINED:
        return []
    first = (inspect.getdoc(value) or "").partition("\n\n")[0].partition("; ")[2]
    named = [name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)(?=[`(])", first)]
    return [*dict.fromkeys([*(name for name in named if name in places()), *_returning(value.__name__)])]


@cache
def _returning(name: str) -> list[str]:
    """The functions that return an object of a class."""
    functions = {key: _value(place) for key, place in places().items() if isinstance(_value(place), FunctionType)}
    return sorted(
        key for key, function in functions.items()
        if name in re.findall(r"\w+", str(inspect.signature(function).return_annotation))
    )  # fmt: skip


def _example_of(place: str) -> str:
    """The example of a function or class in its docstring, else that of the pages."""
    _, mark, example = _docs(_value(place))
    return f"{mark}{example}" or (_run(EXAMPLES[place]) if place in EXAMPLES else "")


def _fields(value: type) -> str:
    """The fields of a class of data that have a docstring."""
    if not is_dataclass(value):
        return ""
    body = ast.parse(dedent(inspect.getsource(value))).body[0]
    names = {field.name for field in fields(value) if not field.name.startswith("_")}
    names -= {"formulas", "options", *getattr(value, "_internal", ())}
    lines: list[str] = []
    statements: list[Any] = body.body if isinstance(body, ast.ClassDef) else []
    for field, doc in pairwise(statements):
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            name = ast.unparse(field.target)
            if name in names:
                lines.append(f"- `{name}`: {inspect.cleandoc(str(doc.value.value))}")
    return "\n".join(["## Fields", "", *lines]) if lines else ""


def _methods(place: str, value: type, expression: str) -> dict[str, list[str]]:
    """Sections on the methods for users; those that all metrics have are on the page of `Metric`."""
    if issubclass(value, BaseException):
        return {}
    internal = {*getattr(value, "_internal", ()), *INTERNAL_ON_DATA}
    public = {name for name in dir(value) if name == "__call__" or not name.startswith("_")} - internal
    functions = {name for name in public if isinstance(inspect.getattr_static(value, name), FunctionType)}
    found: dict[str, list[str]] = {}
    common: list[str] = []
    for name in sorted(_METHODS.get(place, functions)):
        method = getattr(value, name)
        if not inspect.getdoc(method):
            continue
        of_metrics = getattr(Metric, name, None)
        is_common = value is not Metric and of_metrics and inspect.unwrap(method) is inspect.unwrap(of_metrics)
        if is_common and name != "__call__":
            common.append(f"`{name}`")
            continue
        prose, mark, example = _docs(method)
        first, _, rest = prose.partition("\n\n")
        signature = _code(_signature((expression or name) if name == "__call__" else name, method))
        as_of_metrics = is_common or "arguments of a metric" in first
        found[name] = [
            (f"::: tidyfair.{place}.{name}\n    options:\n      heading: {_HEADINGS.get(name, name)}\n"
            f"      toc_label: {_HEADINGS.get(name, name)}\n      heading_level: 2"),
            first, signature, FRAME if re.search(r"\bFrame\b", signature) else "",
            f"{link('Metric')} explains each keyword." if as_of_metrics else "", "" if is_common else _prose(rest),
            f"```pycon\n{_runnable(mark + example)}\n\n```" if mark else "",
        ]  # fmt: skip
    if common:
        found["common"] = [f"## Methods of every metric\n\n{link('Metric')} explains {', '.join(common)}."]
    return found


def _docs(value: Any) -> tuple[str, str, str]:
    """The prose of a docstring, and the example at its end."""
    return (inspect.getdoc(value) or "").partition(">>> ")


def _page_of_family(family: str) -> str:
    """What a family is for, and its names."""
    module = import_module(f"tidyfair.{family}")
    intro = f"::: tidyfair.{family}\n    options:\n      heading: {family}"
    prose, mark, example = _docs(module)
    shown = f"```pycon\n{_runnable(mark + example)}\n\n```" if mark else ""
    members = _rows([place for place in places().values() if place.startswith(f"{family}.")], "")
    guide = _guide(f"{family}.", "")
    more = f"The guide to it: {guide}." if guide else ""
    return _laid_out(family, in_a_line(module), iter([intro, prose, more, shown, members]))


def _rows(listed: list[str], folder: str) -> str:
    """A table of names and what they are."""
    rows = [f"| {link(place, folder)} | {_in_folder(in_a_line(_value(place)), folder)} |" for place in listed]
    return "\n".join(["| name | |", "|---|---|", *rows])


def _in_folder(text: str, folder: str) -> str:
    return re.sub(r"\]\((?=[\w.]+\.md)", f"]({folder}", text)


def _index() -> Iterator[str]:
    """All names by what they are for, then by their family."""
    yield INDEX
    for task, table in vars(tidyfair)["_TASKS"].items():
        yield f"## {task}"
        yield _rows(" ".join(table.values()).split(), "../functions/")
    for family in vars(tidyfair)["_FAMILIES"]:
        yield f"## {family}"
        yield f"{in_a_line(import_module(f'tidyfair.{family}'))} [The whole family](../functions/{family}.md)."
        yield _rows([place for place in places().values() if place.startswith(f"{family}.")], "../functions/")
    yield "## Aliases"
    aliases = [place for place in places().values() if _is_alias(_value(place))]
    yield ", ".join(f"{link(place, '../functions/')} is `{_page_of(place)}`" for place in aliases) + "."


def _signature(name: str, function: Any) -> str:
    """A call with types and defaults, one parameter a line where it is long."""
    try:
        found = inspect.signature(function)
    except ValueError:
        return f"{name}(…)"
    shown: list[str] = []
    starred = False
    for parameter in chain.from_iterable(map(_each, found.parameters.values())):
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = f"{mark}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        shown.append(text)
    returned = found.return_annotation
    kinds_returned = [inspect.signature(each).return_annotation for each in get_overloads(inspect.unwrap(function))]
    returned = " | ".join(dict.fromkeys(map(_annotation, [*kinds_returned, *([] if kinds_returned else [returned])])))
    end = "" if isinstance(function, type) or found.return_annotation is found.empty else f" -> {returned}"
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) <= 88:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){end}"])


def _each(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """A parameter, or the keywords of a typed dictionary that it unpacks."""
    unpacked = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
    if unpacked is None:
        return [parameter]
    named = next(vars(module)[unpacked[1]] for module in (options, curves) if unpacked[1] in vars(module))
    return [
        inspect.Parameter(
            name, parameter.KEYWORD_ONLY, default=OPTIONS[name].default if name in OPTIONS else ...,
            annotation=getattr(hint, "__forward_arg__", str(hint)),
        )
        for name, hint in named.__annotations__.items()
    ]  # fmt: skip


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("typing.", "").replace("collections.abc.", "")


def _default(value: object) -> str:
    text = repr(value)
    return "…" if value is ... or " at 0x" in text else text


def _wrapped(name: str, signature: inspect.Signature) -> str:
    """A call with its defaults, wrapped; types are on the page of `Metric`."""
    shown: list[str] = []
    starred = False
    for parameter in chain.from_iterable(map(_each, signature.parameters.values())):
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        # spaces inside a default do not break a line
        shown.append(f"{mark}{parameter.name}{default}".replace(" ", "\N{NO-BREAK SPACE}"))
    text = fill(
        f"{name}({', '.join(shown)})".replace(f"{name}(", f"{name.replace(' ', chr(160))}(", 1),
        84,
        subsequent_indent="    ",
        break_long_words=False,
    )
    return text.replace("\N{NO-BREAK SPACE}", " ")


def _runnable(example: str) -> str:
    """An example of a docstring as users write it, with the imports that it needs."""
    text = _as_users_write(example)
    needed = [
        (r"\btdf\.", "import tidyfair as tdf"), (r"\bpl\.", "import polars as pl"), (r"\bnp\.", "import numpy as np"),
        (r"(?<![.])\blending\(", "from tidyfair.datasets import lending"),
        (r"\bdistances\.", "from tidyfair.metrics import distances"),
    ]  # fmt: skip
    head = [line for used, line in needed if re.search(used, text) and line not in text]
    return "\n".join([*(f">>> {line}" for line in head), text])


def _as_users_write(example: str) -> str:
    """An example of a docstring with names of the library as those who import it write them."""
    lines = [line for line in example.strip().splitlines() if not line.startswith(">>> from tidyfair")]
    code = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... ")))
    nodes = [*ast.walk(ast.parse(code))]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}

    def qualified(name: re.Match[str]) -> str:
        return name[0] if name[0] in bound else _qualified(name[0])

    return "\n".join(_NAME.sub(qualified, line) if line.startswith((">>> ", "... ")) else line for line in lines)


def _qualified(name: str) -> str:
    """A name with the module that it is imported by; texts stay as they are."""
    if name in places():
        return f"tdf.{places()[name]}"
    if name in {"outcome", "interval"}:  # names of families, in the examples beside them
        return f"tdf.{_of_a_family()[name]}"
    return f"distances.{name}" if name in distances.__all__ else name


def _of_a_family() -> dict[str, str]:
    return {place.rpartition(".")[2]: place for place in places().values() if "." in place}


def _prose(text: str) -> str:
    """Prose of a docstring, with its lists of arguments as lists."""
    text = re.sub(r"\n {5,}", " ", text)
    text = re.sub(r"^ {4}(\*{0,2}\w+(?:, \w+)*): ", r"- `\1`: ", text, flags=re.MULTILINE)
    text = re.sub(r"^ {4}", "", text, flags=re.MULTILINE)
    return re.sub(r"^(Args|Returns|Raises):\n", lambda found: f"{_HEADERS[found[1]]}\n\n", text, flags=re.MULTILINE)


def _listed(names: list[str]) -> str:
    """Names as code, one after the other."""
    return ", ".join(f"`{name}`" for name in names)


@cache
def everything() -> pl.DataFrame:
    """The catalogue, read once."""
    return catalogue()


@cache
def factories() -> list[GroupwiseFactory]:
    """The fairness metrics with established names."""
    return [value for place in places().values() if isinstance(value := _value(place), GroupwiseFactory)]


@cache
def _metrics() -> list[Metric]:
    return [value for place in places().values() if isinstance(value := _value(place), Metric)]


def columns_of(metric: Metric) -> str:
    """The columns that a metric reads, for each kind of predictions."""
    read: dict[str, None] = {}
    for reading in metric.readings:
        columns = [column for column in ("truth", "estimate", "probs") if column in reading.definition.reads]
        read[", ".join(columns)] = None
    return "; or ".join(read)


def range_of(metric: Any) -> str:
    """Both ends of a range in words."""
    return " to ".join(f"{end:g}".replace("inf", "∞") for end in metric.range)
