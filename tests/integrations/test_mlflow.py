"""Results of MLflow evaluations: names and tables without MLflow, and runs in a store where it is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.integrations.mlflow import TidyfairEvaluator
from tidyfair.integrations.mlflow_evaluation import (
    Configuration,
    as_plain,
    evaluation_of,
    legal,
    named_values,
    predicted,
)

if TYPE_CHECKING:
    from pathlib import Path

PEOPLE: Any = lending(2000).with_columns(pl.col(pl.Enum).cast(pl.String)).to_pandas()
GATE = tf.check(tf.demographic_parity("race"), below=0.01, conf_level=0.9)
TABLES = {"report": False, "pos_label": "yes"}
"""Settings without a report, which takes its time to be drawn."""
LEGAL = re.compile(r"[\w.\- ]+(/[\w.\- ]+)*")
"""Names that MLflow takes on all systems."""


def dataset(frame: Any = PEOPLE, truth: str | None = "repaid", prediction: str | None = "approved") -> Any:
    """The rows as MLflow passes them to an evaluator."""
    own = [name for name in (truth, prediction) if name is not None]
    return SimpleNamespace(
        features_data=frame.drop(columns=own),
        feature_names=[name for name in frame.columns if name not in own],
        has_targets=truth is not None,
        targets_name=truth,
        labels_data=None if truth is None else frame[truth].to_numpy(),
        has_predictions=prediction is not None,
        predictions_name=prediction,
        predictions_data=None if prediction is None else frame[prediction].to_numpy(),
    )


def evaluated(rows: Any, *, model: Any = None, numeric: bool = False, **settings: Any) -> Any:
    configuration = Configuration.of({**TABLES, **settings})
    return evaluation_of(predicted(rows, model, None, configuration), configuration, numeric=numeric)


def test_values_of_an_evaluation_are_those_of_calls() -> None:
    given = evaluated(dataset(), by=["sex", ("sex", "race")], case_weights="weight", min_n=0).metrics
    call: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes", "case_weights": "weight"}
    accuracy = tf.accuracy(PEOPLE, **call)[".estimate"].item()
    assert given["tidyfair/overall/accuracy"] == pytest.approx(accuracy)
    parity = tf.equal_opportunity("sex")(PEOPLE, **call, interval="auto")
    assert given["tidyfair/disparities/sex/equal_opportunity"] == pytest.approx(parity[".estimate"].item())
    assert given["tidyfair/disparities upper/sex/equal_opportunity"] > parity[".estimate"].item()
    women = PEOPLE[PEOPLE["sex"] == "female"]
    assert given["tidyfair/groups/sex/female/sens"] == pytest.approx(tf.sens(women, **call)[".estimate"].item())
    black = women[women["race"] == "Black"]
    crossed = given["tidyfair/groups/sex.race/female.Black/accuracy"]
    assert crossed == pytest.approx(tf.accuracy(black, **call)[".estimate"].item())


def test_names_are_legal_distinct_and_no_beginning_of_another() -> None:
    rows = pl.DataFrame({"g": ["<18", ">18", "a/b", "..", "", " ", "x" * 300, "x" * 299, "é", None, "null", "null 2"]})
    rows = rows.with_columns(y=1, p=1)
    difference = tf.accuracy.difference("g", unknown="group")
    groups = difference.by_group(rows, "y", "p")
    result = difference(rows, "y", "p", interval="auto", explain=True)
    names = list(named_values(result, groups))
    # the disparity and its two limits
    assert len(names) == len(groups) + 3
    assert all(LEGAL.fullmatch(name) for name in names)
    assert not [name for name in names for part in name.split("/") if part in {"", ".", ".."}]
    assert max(map(len, names)) < 200
    assert not [name for name in names if any(other.startswith(f"{name}/") for other in names)]


def test_the_name_of_a_group_does_not_depend_on_the_other_groups() -> None:
    assert legal(">18") != legal("<18")
    assert legal("18-29") == "18-29"
    assert legal("sex:race") == "sex.race"


def test_values_at_several_times_are_named_by_their_time() -> None:
    rows = pl.DataFrame({"time": [2.0, 6.0, 9.0, 9.0] * 20, "died": True, "g": ["a", "b"] * 40, "s": [0.4, 0.5] * 40})
    metrics: Any = tf.survival.brier.difference("g")
    call = {"probs": {4: "s", 8: "s"}}
    result = metrics(rows, tf.survival.outcome("time", "died"), **call, explain=True)
    groups = metrics.by_group(rows, tf.survival.outcome("time", "died"), **call)
    given = named_values(result, groups)
    for at, value in result.select(".eval_time", ".estimate").rows():
        assert given[f"disparities/g/brier_survival_difference eval_time {at:g}"] == value
    for group, at, value in groups.select(".group", ".eval_time", ".estimate").rows():
        assert given[f"groups/g/{group}/brier_survival eval_time {at:g}"] == value


def test_undefined_values_are_in_tables_only() -> None:
    people = pd.DataFrame({"y": [1, 0, 0, 0], "p": [1, 0, 1, 0], "g": ["a", "a", "b", "b"]})
    given = evaluated(dataset(people, "y", "p"), by="g", pos_label=1, min_n=0)
    assert "tidyfair/groups/g/a/sens" in given.metrics
    assert "tidyfair/groups/g/b/sens" not in given.metrics
    groups = given.tables["groups"].filter(pl.col(".group") == "b", pl.col(".metric") == "sens")
    assert groups[".status"].to_list() == ["zero_denominator"]


def test_whole_numbers_of_a_regression_are_numbers() -> None:
    people = pd.DataFrame({"y": [1, 2, 3, 4, 6, 9], "p": [1, 2, 5, 4, 5, 9], "g": ["a", "a", "a", "b", "b", "b"]})
    settings = {"by": "g", "min_n": 0, "report": False}
    configuration = Configuration.of(settings)
    data = predicted(dataset(people, "y", "p"), None, None, configuration)
    metrics = evaluation_of(data, configuration, numeric=True).metrics
    assert metrics["tidyfair/groups/g/a/mae"] == pytest.approx(2 / 3)
    assert metrics["tidyfair/disparities/g/mae_difference"] == pytest.approx(1 / 3)


def test_probabilities_are_those_of_the_model_of_the_event() -> None:
    features = PEOPLE[["score", "weight"]]
    own = LogisticRegression().fit(features, PEOPLE["repaid"])
    model = SimpleNamespace(predict=own.predict, get_raw_model=lambda: own)
    rows = dataset(PEOPLE[["score", "weight", "repaid"]], prediction=None)
    given = evaluated(rows, model=model, by="sex", sensitive_features=PEOPLE[["sex"]], probs=True, pos_label="no")
    scored = PEOPLE.assign(no=own.predict_proba(features)[:, 0])
    area = tf.auc_parity("sex")(scored, "repaid", probs="no", pos_label="no")[".estimate"].item()
    assert given.metrics["tidyfair/disparities/sex/auc_parity"] == pytest.approx(area)


def test_a_column_of_scores_is_cut_at_a_threshold() -> None:
    rows = dataset(PEOPLE[["sex", "score", "repaid"]], prediction="score")
    given = evaluated(rows, by="sex", probs="score", threshold=0.6).metrics
    expected = tf.demographic_parity("sex")(PEOPLE, probs="score", threshold=0.6, pos_label="yes")
    assert given["tidyfair/disparities/sex/demographic_parity"] == expected[".estimate"].item()


def test_gates_are_judged_together() -> None:
    other = tf.check(tf.demographic_parity_ratio("sex"), above=0.2, conf_level=0.9)
    given = evaluated(dataset(), by="race", gate=[GATE, other], min_n=0)
    assert given.tables["verdicts"][".verdict"].to_list() == ["fail", "pass"]
    assert given.verdict == "fail"


def test_tables_hold_what_json_can_hold() -> None:
    plain = as_plain(pl.DataFrame({"a": [np.inf, None], "b": [["x", "y"], []]}))
    assert plain.to_numpy().tolist() == [["inf", "x;y"], [None, ""]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, 'name the sensitive features, as {"by": "sex"}'),
        ({"by": "sxe"}, "Did you mean 'sex'"),
        ({"by": "sex", "treshold": 1}, "Did you mean 'threshold'"),
        ({"by": "sex", "group_by": "fold"}, "Unknown setting of evaluator_config 'group_by'"),
        ({"by": "sex", "gate": 0.1}, r"`gate` is made by check\(…\) or four_fifths\(…\)"),
        ({"by": "sex", "gate": []}, "`gate` is an empty list"),
        ({"by": "sex", "raise_on_fail": True}, "`raise_on_fail` needs a `gate`"),
        ({"by": "sex", "report": "yes"}, "`report`"),
        ({"by": "sex", "probs": "score", "threshold": [0.4, 0.6]}, "a run has one set of decisions"),
        ({"by": "sex", "sensitive_features": {"x": [1]}}, "`sensitive_features` has 1 rows, and the data have 2000"),
        ({"by": "sex", "sensitive_features": 3}, "`sensitive_features` is a frame, or a mapping from names to columns"),
        ({"by": "sex", "sensitive_features": {"x": [1], "y": [1, 2]}}, "is a frame, .*same length"),
        ({"by": "sex", "probs": True}, "reads `predict_proba` of a model, and there is none"),
        ({"by": "sex", "sensitive_features": PEOPLE[["sex"]]}, "`sensitive_features` has the columns 'sex'"),
    ],
)
def test_wrong_settings_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.TidyfairError, match=message):
        evaluated(dataset(), **settings)


def test_missing_predictions_raise() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="has no predictions: pass `predictions=`"):
        evaluated(dataset(prediction=None), by="sex")
    model = SimpleNamespace(predict=lambda frame: frame["score"] > 0.5)
    with pytest.raises(tf.errors.ArgumentError, match="`predict_proba`, which this model has not"):
        evaluated(dataset(prediction=None), model=model, by="sex", probs=True)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (["yes"], "'prediction' has 1 values, and the data have 2000 rows"),
        (None, "'prediction' is None; truth and predictions are an array or a pandas frame"),
        ({"yes": 0.5}, "'prediction' is {'yes': 0.5}; truth and predictions are an array"),
    ],
)
def test_predictions_that_do_not_fit_the_rows_raise(output: object, message: str) -> None:
    with pytest.raises(tf.errors.ColumnError, match=message):
        evaluated(dataset(prediction=None), model=SimpleNamespace(predict=lambda _: output), by="sex")


def test_predictions_of_a_model_may_be_a_polars_frame() -> None:
    frame = pl.DataFrame({"label": PEOPLE["approved"].to_list()})
    given = evaluated(dataset(prediction=None), model=SimpleNamespace(predict=lambda _: frame), by="sex", min_n=0)
    assert given.metrics == evaluated(dataset(), by="sex", min_n=0).metrics


def test_metrics_of_an_evaluation_may_be_a_list() -> None:
    several = evaluated(dataset(), by="sex", metrics=[tf.accuracy, tf.sens])
    assert several.metrics == evaluated(dataset(), by="sex", metrics=tf.metric_set(tf.accuracy, tf.sens)).metrics


def test_evaluator_takes_part_where_it_is_asked_only() -> None:
    for settings, takes_part in (({}, False), ({"log_explainer": False}, False), ({"by": "sex"}, True)):
        assert TidyfairEvaluator.can_evaluate(model_type="classifier", evaluator_config=settings) is takes_part
    assert not TidyfairEvaluator.can_evaluate(model_type=None, evaluator_config=None)


def test_entry_point_reads_neither_mlflow_nor_polars() -> None:
    code = "import sys, tidyfair.integrations.mlflow; print([name in sys.modules for name in ('mlflow', 'polars')])"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - ours
    assert run.stdout.strip() == "[False, False]"


@pytest.mark.filterwarnings("ignore")  # those of MLflow
def test_run_in_a_store_has_metrics_tables_report_and_verdict(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    if not any(one.name == "tidyfair" for one in entry_points(group="mlflow.model_evaluator")):
        pytest.skip("the library is not installed, so that MLflow does not know it")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("lending", artifact_location=str(tmp_path / "files")))
    call: dict[str, Any] = {"targets": "repaid", "predictions": "approved", "model_type": "classifier"}
    settings = {"by": "race", "pos_label": "yes", "gate": GATE}
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(data=PEOPLE, **call, evaluators="tidyfair", evaluator_config=settings)
    stored = mlflow.MlflowClient().get_run(run.info.run_id).data
    assert stored.metrics == pytest.approx(result.metrics)
    assert stored.tags["tidyfair.verdict"] == "fail"
    files = {artifact.path for artifact in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
    assert {"tidyfair_report.html", "tidyfair_groups.csv", "tidyfair_verdicts.json"} <= files
    assert {"tidyfair_results", "tidyfair_groups", "tidyfair_verdicts"} <= set(result.tables)
    with pytest.raises(tf.inference.UnfairError, match=r"fails: demographic_parity\(race\)"), mlflow.start_run():
        mlflow.models.evaluate(
            data=PEOPLE,
            **call,
            evaluators="tidyfair",
            evaluator_config={**settings, "report": False, "raise_on_fail": True},
        )


def test_truth_and_predictions_of_one_name_are_two_columns() -> None:
    rows = dataset()
    rows.predictions_name = rows.targets_name
    assert evaluated(rows, by="sex", min_n=0).metrics == evaluated(dataset(), by="sex", min_n=0).metrics
