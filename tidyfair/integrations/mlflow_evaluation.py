"""An evaluation of MLflow: its settings and predictions come in; named numbers, tables and a report are logged."""

from __future__ import annotations

import json
import math
import re
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

import polars as pl

from tidyfair.audits import LEAST_ROWS, AuditResults, Feature, Predictions, UsualMetrics, kind_of
from tidyfair.calling import MetricSet, metric_set
from tidyfair.errors import ArgumentError, ColumnError, in_short, is_frame, listed
from tidyfair.inference.gates import FAIL, PASS, UNSURE, Gate, UnfairError
from tidyfair.reports import Report, need_packages, report
from tidyfair.specs import CallOptions, Policy, cut_as_settings, flag, is_list, refuse_unknown, string
from tidyfair.tallies import open_frame, write

_REFUSED = {"group_by", "explain", "parts", "keep_rows", "top_k", "top_fraction", "score_bins"}
"""Options of a call that an evaluation decides, or of which a run has one."""
_ILLEGAL = re.compile(r"[^\w\-. ]")
"""Characters that names of metrics in MLflow do not have; a colon is not legal on Windows."""
_LONGEST = 60
"""The length of a part of a name, of which there are at most four, and 250 characters altogether."""
_SECTIONS = {".estimate": "disparities", ".lower": "disparities lower", ".upper": "disparities upper"}
_BATCH = 1000
"""The most metrics that a request of MLflow takes."""
_VERDICT = "tidyfair.verdict"
"""The tag of a run with the worst verdict of its gate."""


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
        group_options = [option.name for option in fields(Policy)]
        known = [*own, *group_options, *accepted]
        refuse_unknown("setting of evaluator_config", given, known)
        settings = _checked({name: given[name] for name in own if name in given})
        # the minimum of a report
        stated = {"min_n": LEAST_ROWS} | {name: given[name] for name in group_options if name in given}
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
    if len({(gate.conf_level, gate.options) for gate in gates}) > 1:
        msg = (
            "evaluator_config: the gates of an evaluation have one `conf_level` and the same options; give them these."
        )
        raise ArgumentError(msg)
    limits = [limit for gate in gates for limit in gate.limits]
    return replace(gates[0], metrics=metric_set(*(gate.metrics for gate in gates)), limits=tuple(limits))


# Predictions

Predicted: TypeAlias = tuple[Any, dict[str, Any]]
"""Rows with their predictions, and the arguments of a metric that name the columns: `truth`, `estimate` and `probs`."""


@dataclass
class _Columns:
    """Columns of truth and predictions beside the features, and the arguments of a metric that name them."""

    features: Any
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])

    def add(self, name: str, values: Any) -> str:
        """Add a column, and return its name, which no other column has."""
        taken = {*map(str, self.features.columns), *self.values}
        while name in taken:
            name += "_"
        self.values[name] = values
        return name

    @property
    def frame(self) -> Any:
        """The features and the columns as one frame."""
        frame: Any = self.features.reset_index(drop=True)
        for name, values in self.values.items():
            if not is_list(values) or isinstance(values, Mapping):
                given = in_short(cast("object", values))
                msg = f"{name!r} is {given}; truth and predictions are an array or a pandas frame."
                raise ColumnError(msg)
            column = list(values)
            if len(column) != len(frame):
                msg = f"{name!r} has {len(column)} values, and the data have {len(frame)} rows."
                raise ColumnError(msg)
            frame[name] = column
        return frame


def predicted(dataset: Any, model: Any, prediction: str | None, configuration: Configuration) -> Predicted:
    """The rows of an evaluation dataset with truth and predictions, which are those of the model if there is one."""
    pd: Any = import_module("pandas")

    features: Any = dataset.features_data
    if not isinstance(features, pd.DataFrame):
        features = pd.DataFrame(features, columns=list(dataset.feature_names))
    columns = _Columns(features)
    options = configuration.options
    if dataset.has_targets:
        columns.arguments["truth"] = columns.add(dataset.targets_name or "target", dataset.labels_data)
    if model is not None:
        _add_predictions(columns, model, prediction, options)
    elif dataset.has_predictions:
        _add_prediction(columns, dataset.predictions_name or "prediction", dataset.predictions_data, options)
    if model is None and options.get("probs") is True:
        msg = (
            'evaluator_config: {"probs": True} reads `predict_proba` of a model, and there is none; name the column of '
            'scores, as {"probs": "score"}.'
        )
        raise ArgumentError(msg)
    if not {"estimate", "probs"} & columns.arguments.keys() and options.get("probs") is None:
        msg = (
            "The tidyfair evaluator has no predictions: pass `predictions=` with the column of a static dataset, a "
            'model, or {"probs": "column"} in evaluator_config.'
        )
        raise ArgumentError(msg)
    if options.get("threshold") is not None:
        # labels are those of the threshold
        columns.arguments.pop("estimate", None)
    return _with_features(columns.frame, configuration.sensitive_features), columns.arguments


def _add_prediction(columns: _Columns, name: str, values: Any, options: Mapping[str, Any]) -> None:
    """Add a column of predicted labels or numbers, or of the scores that `probs` names."""
    added = columns.add(name, values)
    # a column of scores is no column of labels
    if options.get("probs") != added:
        columns.arguments["estimate"] = added


def _add_predictions(columns: _Columns, model: Any, prediction: str | None, options: Mapping[str, Any]) -> None:
    """Add the predictions of a model: one column, or those of a frame, and its probabilities."""
    pd: Any = import_module("pandas")

    output = model.predict(columns.features)
    if is_frame(output) and not isinstance(output, pd.DataFrame):
        output = output.to_pandas()
    if isinstance(output, pd.DataFrame) and (prediction is not None or len(output.columns) > 1):
        names: dict[Any, str] = {name: columns.add(str(name), output[name]) for name in output.columns}
        if prediction is None and options.get("probs") is None:
            msg = f"The model returns the columns {listed(names)}; name the one with the labels as `predictions=`."
            raise ArgumentError(msg)
        if prediction is not None and prediction not in names:
            raise ColumnError.missing(prediction, "predictions", names)
        if prediction is not None:
            columns.arguments["estimate"] = names[prediction]
        return
    values = output.iloc[:, 0] if isinstance(output, pd.DataFrame) else output
    _add_prediction(columns, prediction or "prediction", values, options)
    if options.get("probs") is True:
        _add_probabilities(columns, model, options)


def _add_probabilities(columns: _Columns, model: Any, options: Mapping[str, Any]) -> None:
    """Add the probabilities of a model of scikit-learn or with its methods: of the event, or of every class."""
    own: Any = model.get_raw_model() if hasattr(model, "get_raw_model") else None
    if not hasattr(own, "predict_proba"):
        msg = (
            'evaluator_config: {"probs": True} reads `predict_proba`, which this model has not; let the model return a '
            'frame with a column of scores, and name that, as {"probs": "score"}.'
        )
        raise ArgumentError(msg)
    read: Any = getattr(own, "feature_names_in_", None)
    scores = own.predict_proba(columns.features if read is None else columns.features[list(read)])
    classes = own.classes_.tolist()
    event = options.get("pos_label", classes[-1] if len(classes) == 2 else None)
    if event is not None and event not in classes:
        msg = f"`pos_label`: {event!r} is not among the classes of the model, {listed(classes)}."
        raise ArgumentError(msg)
    if event is not None:
        columns.arguments["probs"] = columns.add(f"probability {event}", scores[:, classes.index(event)])
        return
    columns.arguments["probs"] = {
        label: columns.add(f"probability {label}", scores[:, index]) for index, label in enumerate(classes)
    }


def _with_features(frame: Any, more: Any) -> Any:
    """The rows with sensitive features that the model does not get."""
    if more is None:
        return frame
    pd: Any = import_module("pandas")

    if hasattr(more, "to_pandas"):
        more = more.to_pandas()
    if not isinstance(more, pd.DataFrame):
        try:
            more = pd.DataFrame(more)
        except (TypeError, ValueError) as error:
            msg = f"evaluator_config: `sensitive_features` is a frame, or a mapping from names to columns: {error}."
            raise ArgumentError(msg) from error
    if len(more) != len(frame):
        msg = f"evaluator_config: `sensitive_features` has {len(more)} rows, and the data have {len(frame)}."
        raise ColumnError(msg)
    twice = [str(name) for name in more.columns if str(name) in map(str, frame.columns)]
    if twice:
        msg = f"evaluator_config: `sensitive_features` has the columns {listed(twice)}, which the data have too."
        raise ArgumentError(msg)
    return pd.concat([frame, more.reset_index(drop=True)], axis="columns")


# Values, tables and a page


@dataclass(frozen=True)
class Evaluation:
    """Values, tables and a page that are logged to a run."""

    metrics: dict[str, float]
    """Values by legal names; undefined values are in the tables only."""
    tables: dict[str, pl.DataFrame]
    report: Report | None
    verdict: str | None
    """The worst verdict of the gate."""


def evaluation_of(data: Predicted, settings: Configuration, *, numeric: bool = False) -> Evaluation:
    """Evaluate predictions: metrics of all rows and by group, disparities, verdicts and the report."""
    (frame, arguments), gate = data, settings.gate
    options = {**settings.options, **arguments}
    call = {name: options.pop(name, None) for name in ("truth", "estimate")}
    kind: Predictions = "numbers"
    if settings.metrics is None and not numeric:
        kind = kind_of(open_frame(frame), call["truth"], call["estimate"], options)
    metrics = UsualMetrics.of(settings.by, kind, metrics=settings.metrics, policy=settings.policy)
    audit = AuditResults.of(metrics, frame, call["truth"], call["estimate"], options, gate)
    cut = audit.tally.cut
    if cut is not None and cut.several:
        msg = f"evaluator_config: a run has one set of decisions; give one `{cut.option}`, not a list."
        raise ArgumentError(msg)
    tables = {"results": audit.results, "groups": metrics.groups.compute_by_group(audit.tally, **audit.reading)}
    verdict = None
    if gate is not None:
        tables["verdicts"] = audit.verdicts(gate)
        verdicts = set(tables["verdicts"][".verdict"])
        verdict = next(one for one in (FAIL, UNSURE, PASS) if one in verdicts)
    page = None
    if settings.report:
        # whole numbers may be labels, so that a report has to know that these are none
        chosen = metrics.results if numeric or settings.metrics else None
        page = report(
            frame, **call, by=settings.by, title=settings.title, metrics=chosen, gate=gate,
            **vars(settings.policy), **options,
        )  # fmt: skip
    values = {
        settings.metric_prefix + name: value
        for name, value in named_values(tables["results"], tables["groups"]).items()
    }
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


def log(evaluation: Evaluation, run_id: str, configuration: Configuration) -> Any:
    """Log an evaluation to a run.

    Returns:
        MLflow's `EvaluationResult`.

    Raises:
        UnfairError: If the gate fails and the configuration asks for that; after everything is logged.
    """
    mlflow: Any = import_module("mlflow")
    entities: Any = import_module("mlflow.entities")
    artifact: Any = import_module("mlflow.models.evaluation.artifacts")
    client: Any = mlflow.MlflowClient()
    now = int(time.time() * 1000)
    logged: list[Any] = [entities.Metric(name, value, now, 0) for name, value in evaluation.metrics.items()]
    for start in range(0, len(logged), _BATCH):
        client.log_batch(run_id, metrics=logged[start : start + _BATCH])
    if evaluation.verdict is not None:
        client.set_tag(run_id, _VERDICT, evaluation.verdict)
    artifacts: dict[str, Any] = {}
    root: str = client.get_run(run_id).info.artifact_uri
    with TemporaryDirectory() as folder:
        for name, table in evaluation.tables.items():
            file = Path(folder) / f"tidyfair_{name}.csv"
            write(table, file)
            client.log_artifact(run_id, str(file))
            plain = as_plain(table)
            client.log_table(run_id, plain, f"tidyfair_{name}.json")
            content = json.loads(plain.to_json(orient="split"))
            artifacts[file.stem] = artifact.JsonEvaluationArtifact(f"{root}/{file.stem}.json", content)
        if evaluation.report is not None:
            file = evaluation.report.save(Path(folder) / "tidyfair_report.html")
            client.log_artifact(run_id, str(file))
            artifacts[file.stem] = artifact.TextEvaluationArtifact(f"{root}/{file.name}", file.read_text("utf-8"))
    if configuration.raise_on_fail and evaluation.verdict == FAIL:
        verdicts = evaluation.tables["verdicts"]
        failed = verdicts.filter(verdicts[".verdict"] == FAIL)
        names = [
            " ".join([row[".metric"] + (f"({row['.by']})" if row[".by"] else ""), *cut_as_settings(row)])
            for row in failed.iter_rows(named=True)
        ]
        msg = (
            f"The gate of the run {run_id} fails: {', '.join(names)}. Its table is the artifact tidyfair_verdicts.csv."
        )
        raise UnfairError(msg)
    return mlflow.models.EvaluationResult(evaluation.metrics, artifacts, run_id)


def as_plain(table: pl.DataFrame) -> Any:
    """A pandas frame of texts and finite numbers, which JSON can hold; lists of names are joined by semicolons."""
    pd: Any = import_module("pandas")

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return ";".join(map(str, cast("list[object]", value)))
        is_plain = value is None or isinstance(value, str | int | bool)
        return value if is_plain or (isinstance(value, float) and math.isfinite(value)) else str(value)

    return pd.DataFrame({column.name: list(map(plain, column.to_list())) for column in table}, dtype=object)
