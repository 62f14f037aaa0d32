"""The results of an MLflow evaluation: settings and predictions come in; named numbers, tables and a report go out."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

from tidyfair.audits.usual_metrics import LEAST_ROWS, Predictions, UsualMetrics, kind_of
from tidyfair.errors import ArgumentError, in_short
from tidyfair.inference.gates import Gate
from tidyfair.inference.verdicts import FAIL, PASS, UNSURE
from tidyfair.metric_sets import metric_set
from tidyfair.reports.page import Report, need_packages, report
from tidyfair.specs.arguments import flag, string
from tidyfair.specs.groups import Policy
from tidyfair.specs.options import CallOptions, ReadOptions
from tidyfair.specs.result_columns import cut_as_settings
from tidyfair.tallies.source import open_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tidyfair.audits.usual_metrics import Feature
    from tidyfair.metric_sets import MetricSet

_REFUSED = {"group_by", "explain", "parts", "keep_rows", "top_k", "top_fraction", "score_bins"}
"""Options of a call that an evaluation decides, or of which a run has one."""
_ILLEGAL = re.compile(r"[^\w\-. ]")
"""Characters that names of metrics in MLflow do not have; a colon is not legal on Windows."""
_LONGEST = 60
"""The length of a part of a name, of which there are at most four, and 250 characters altogether."""
_SECTIONS = {".estimate": "disparities", ".lower": "disparities lower", ".upper": "disparities upper"}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The `evaluator_config` of an evaluation, checked."""

    by: list[Feature]
    metrics: MetricSet | None = None
    gate: Gate | None = None
    raise_on_fail: bool = False
    report: bool = True
    title: str = "Audit of predictions"
    metric_prefix: str = "tidyfair/"
    sensitive_features: Any = None
    """A frame with columns that are not in the data, a row for each of its rows."""
    policy: Policy = field(default_factory=Policy)
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Options of a call of metrics."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Configuration:
        """The settings, checked.

        Raises:
            ArgumentError: For settings that do not exist, or have a wrong value.
        """
        accepted = [name for name in CallOptions.__annotations__ if name not in _REFUSED]
        own = [one.name for one in fields(cls) if one.name not in {"policy", "options"}]
        of_groups = [option.name for option in fields(Policy)]
        known = [*own, *of_groups, *accepted]
        for name in given:
            if name not in known:
                kind = "setting of evaluator_config"
                raise ArgumentError.unknown_keyword(kind, name, known)
        settings = _checked({name: given[name] for name in own if name in given})
        # the minimum of a report
        stated = {"min_n": LEAST_ROWS} | {name: given[name] for name in of_groups if name in given}
        policy = Policy.of("evaluator_config", **stated)
        options = {name: given[name] for name in accepted if given.get(name) is not None}
        if settings.get("report", True):
            need_packages()
        return cls(**settings, policy=policy, options=options)


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that no call has, checked: features as a list, metrics as a set, and gates as one."""
    by: Any = given.get("by")
    if not by:
        msg = 'evaluator_config: name the sensitive features, as {"by": "sex"} or {"by": ["sex", "race"]}.'
        raise ArgumentError(msg)
    settings: dict[str, Any] = {**given, "by": cast("list[Any]", by) if isinstance(by, list) else [by]}
    for name in ("raise_on_fail", "report"):
        flag(name, given.get(name, True))
    for name in ("title", "metric_prefix"):
        string(name, given.get(name, ""))
    metrics: Any = given.get("metrics")
    if metrics is not None:
        several = cast("list[Any]", metrics) if isinstance(metrics, list | tuple) else [metrics]
        settings["metrics"] = metric_set(*several)
    if given.get("gate") is not None:
        settings["gate"] = _joined(given["gate"])
    elif given.get("raise_on_fail"):
        msg = "evaluator_config: `raise_on_fail` needs a `gate`, as `tidyfair.check(…, below=0.1)`."
        raise ArgumentError(msg)
    return settings


def _joined(given: object) -> Gate:
    """One gate of several, which judges all of their metrics."""
    several = isinstance(given, list | tuple)
    gates: list[Gate] = []
    for gate in cast("Sequence[object]", given) if several else [given]:
        if not isinstance(gate, Gate):
            made_by = "check(…) or four_fifths(…), or a list of these"
            msg = f"evaluator_config: `gate` is made by {made_by}; not {in_short(gate)}."
            raise ArgumentError(msg)
        gates.append(gate)
    if not gates:
        msg = "evaluator_config: `gate` is an empty list; leave it out."
        raise ArgumentError(msg)
    if len({(gate.confidence, gate.options) for gate in gates}) > 1:
        msg = (
            "evaluator_config: the gates of an evaluation have one `confidence` and the same options; give them these."
        )
        raise ArgumentError(msg)
    limits = [limit for gate in gates for limit in gate.limits]
    return replace(gates[0], metrics=metric_set(*(gate.metrics for gate in gates)), limits=tuple(limits))


@dataclass(frozen=True)
class Predicted:
    """Rows with their predictions, and the arguments of a metric that name the columns."""

    frame: Any
    arguments: dict[str, Any]
    """`truth`, `estimate` and `probs`."""


@dataclass(frozen=True)
class Evaluation:
    """Values, tables and a page that are logged to a run."""

    metrics: dict[str, float]
    """Values by legal names; undefined values are in the tables only."""
    tables: dict[str, pl.DataFrame]
    report: Report | None
    verdict: str | None
    """The worst verdict of the gate."""


def evaluation_of(data: Predicted, configuration: Configuration, *, numeric: bool = False) -> Evaluation:
    """Evaluate predictions: metrics of all rows and by group, disparities, verdicts and the report."""
    settings, gate = configuration, configuration.gate
    options = {**settings.options, **data.arguments}
    call = {name: options.pop(name, None) for name in ("truth", "estimate")}
    kind: Predictions = "numbers"
    if settings.metrics is None and not numeric:
        kind = kind_of(open_frame(data.frame), call["truth"], call["estimate"], options)
    audit = UsualMetrics.of(settings.by, kind, metrics=settings.metrics, policy=settings.policy)
    reading: dict[str, Any] = {"interval": "auto", "on_undefined": "ignore"}
    counting: dict[str, Any] = {}
    for name, value in options.items():
        (reading if name in ReadOptions.__annotations__ else counting)[name] = value
    if "cluster" not in counting:
        counting["parts"] = reading.get("seed", 0)
    tally = audit.everything(*(gate.metrics if gate else ())).tally(data.frame, **call, **counting)
    if tally.cut is not None and tally.cut.several:
        msg = f"evaluator_config: a run has one set of decisions; give one `{tally.cut.option}`, not a list."
        raise ArgumentError(msg)
    results = audit.results.compute(tally, explain=True, **reading)
    groups = audit.groups.compute_by_group(tally, **reading)
    tables = {"results": results, "groups": groups}
    verdict = None
    if gate is not None:
        judging = {name: value for name, value in reading.items() if name not in {"interval", "conf_level"}}
        tables["verdicts"] = gate.compute(tally, **judging)
        verdicts = set(tables["verdicts"][".verdict"])
        verdict = next(one for one in (FAIL, UNSURE, PASS) if one in verdicts)
    page = None
    if settings.report:
        # whole numbers may be labels, so that a report has to know that these are none
        metrics = audit.results if numeric or settings.metrics else None
        page = report(
            data.frame, **call, by=settings.by, title=settings.title, metrics=metrics, gate=gate,
            **vars(settings.policy), **options,
        )  # fmt: skip
    values = {settings.metric_prefix + name: value for name, value in named_values(results, groups).items()}
    return Evaluation(values, tables, page, verdict)


def named_values(results: pl.DataFrame, groups: pl.DataFrame) -> dict[str, float]:
    """The values of results and of groups by names that are legal in MLflow.

    No name is the beginning of another, because stores in files have a folder for each part. A name depends on the
    names of the metric, the feature and the group only, so that the values of two runs can be compared.
    """
    values: dict[str, float] = {}
    for row in results.rows(named=True):
        metric = _name_of(row)
        if row[".by"] is None:
            _add(values, ["overall", metric], row[".estimate"])
            continue
        for column, section in _SECTIONS.items():
            _add(values, [section, row[".by"], metric], row.get(column))
    for row in groups.rows(named=True):
        if row[".by"] is not None:
            _add(values, ["groups", row[".by"], row[".group"], _name_of(row)], row[".estimate"])
    return values


def _name_of(row: Mapping[str, Any]) -> str:
    """The name of a metric; of one label, with that label, and of one time or quantile level with that."""
    level = row.get(".level")
    name = row[".metric"] if level is None or ".group_min" in row else f"{row['.metric']} {level}"
    return " ".join([name, *(setting.replace("=", " ") for setting in cut_as_settings(row))])


def _add(values: dict[str, float], parts: Sequence[str], value: float | None) -> None:
    """Add a value under its name; undefined values have none."""
    if value is None:
        return
    name = "/".join(map(legal, parts))
    # texts that are alike, such as the word null and a missing value, are told from each other by their order
    number, distinct = 2, name
    while distinct in values:
        distinct, number = f"{name} {number}", number + 1
    values[distinct] = value


def legal(text: str) -> str:
    """A part of a name with legal characters only; texts that are changed end in a code, so that they stay distinct.

    >>> legal("18-29"), legal("sex:race"), legal("<18")
    ('18-29', 'sex.race', '_18 3c6f7aca')
    """
    dotted = text.replace(":", ".")
    if dotted.strip(". ") and len(dotted) <= _LONGEST and not _ILLEGAL.search(dotted):
        return dotted
    code = zlib.crc32(text.encode("utf-8", "surrogatepass"))
    return f"{_ILLEGAL.sub('_', dotted)[:_LONGEST]} {code:08x}".lstrip(". ")
