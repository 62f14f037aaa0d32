"""Predictions that MLflow passes on, and results that are logged to its store."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from tidyfair.errors import ArgumentError, ColumnError, in_short, is_frame, listed
from tidyfair.inference.gates import UnfairError
from tidyfair.inference.verdicts import FAIL
from tidyfair.integrations.mlflow_evaluation import Predicted
from tidyfair.specs.arguments import is_list
from tidyfair.specs.result_columns import cut_as_settings
from tidyfair.tallies.files import write

if TYPE_CHECKING:
    import polars as pl

    from tidyfair.integrations.mlflow_evaluation import Configuration, Evaluation

_BATCH = 1000
"""The most metrics that a request of MLflow takes."""
_VERDICT = "tidyfair.verdict"
"""The tag of a run with the worst verdict of its gate."""


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
    return Predicted(_with_features(columns.frame, configuration.sensitive_features), columns.arguments)


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
        _add_frame(columns, output, prediction, options)
        return
    values = output.iloc[:, 0] if isinstance(output, pd.DataFrame) else output
    _add_prediction(columns, prediction or "prediction", values, options)
    if options.get("probs") is True:
        _add_probabilities(columns, model, options)


def _add_frame(columns: _Columns, output: Any, prediction: str | None, options: Mapping[str, Any]) -> None:
    """Add the columns that a model returns, one of which may be that of the labels."""
    names: dict[Any, str] = {name: columns.add(str(name), output[name]) for name in output.columns}
    if prediction is not None:
        if prediction not in names:
            raise ColumnError.missing(prediction, "predictions", names)
        columns.arguments["estimate"] = names[prediction]
    elif options.get("probs") is None:
        msg = f"The model returns the columns {listed(names)}; name the one with the labels as `predictions=`."
        raise ArgumentError(msg)


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
        names: list[str] = []
        for row in failed.iter_rows(named=True):
            name = row[".metric"] if row[".by"] is None else f"{row['.metric']}({row['.by']})"
            names.append(" ".join([name, *cut_as_settings(row)]))
        msg = (
            f"The gate of the run {run_id} fails: {', '.join(names)}. Its table is the artifact tidyfair_verdicts.csv."
        )
        raise UnfairError(msg)
    return mlflow.models.EvaluationResult(evaluation.metrics, artifacts, run_id)


def as_plain(table: pl.DataFrame) -> Any:
    """A pandas frame of texts and finite numbers, which JSON can hold; lists of names are joined by semicolons."""
    pd: Any = import_module("pandas")

    columns: dict[str, list[Any]] = {}
    for column in table:
        columns[column.name] = [_plain(value) for value in column.to_list()]
    return pd.DataFrame(columns, dtype=object)


def _plain(value: Any) -> Any:
    """A value for JSON."""
    if isinstance(value, list):
        return ";".join(map(str, cast("list[object]", value)))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
