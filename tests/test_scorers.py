"""Metrics as scorers in scikit-learn's cross-validation."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn
import sklego.datasets
import sklego.metrics
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer as sklearn_scorer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tidyfair as tf
from tidyfair.datasets import lending

LOANS = lending(1500).with_columns(pl.col("sex", "race", "age_band").cast(pl.String))
X, Y = LOANS.select("sex", "race", "age_band", "score"), (LOANS["repaid"] == "yes").cast(pl.Int64)


def pipeline(*, sees_sex: bool = False) -> Any:
    texts = ["race", "age_band", *(["sex"] if sees_sex else [])]
    encode = ColumnTransformer([("texts", OneHotEncoder(), texts), ("score", "passthrough", ["score"])])
    return make_pipeline(encode, LogisticRegression(max_iter=500))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_grid_search_reports_fairness_beside_accuracy(kind: str) -> None:
    people: Any = X.to_pandas() if kind == "pandas" else X
    scoring: Any = {
        "accuracy": "accuracy", "parity": tf.make_scorer(tf.demographic_parity_ratio, by="race"),
        "odds": tf.make_scorer(tf.equalized_odds_difference, by="sex"),
    }  # fmt: skip
    grid: Any = {"logisticregression__C": [0.01, 1.0]}
    search: Any = GridSearchCV
    found = search(pipeline(), grid, scoring=scoring, refit="parity", cv=KFold(3)).fit(people, Y.to_numpy())
    scores: Any = found.cv_results_
    assert all(0 <= score <= 1 for score in scores["mean_test_parity"])
    assert all(-1 <= score <= 0 for score in scores["mean_test_odds"])
    assert found.best_score_ == max(scores["mean_test_parity"])
    assert found.best_index_ == int(np.argmax(scores["mean_test_parity"]))


def test_a_search_over_arrests_with_two_scorers() -> None:
    load: Any = sklego.datasets.load_arrests
    arrests = pl.from_pandas(load(as_frame=True)).with_columns(black=(pl.col("colour") == "Black").cast(pl.Int64))
    truth = (arrests["released"] == "Yes").cast(pl.Int64).to_numpy()
    encode = ColumnTransformer(
        [("texts", OneHotEncoder(), ["employed", "citizen"]), ("numbers", StandardScaler(), ["age", "checks"])]
    )
    model = make_pipeline(encode, LogisticRegression(class_weight="balanced"))
    scoring: Any = {
        "parity": tf.make_scorer(tf.demographic_parity_ratio, by="colour"),
        "ours": tf.equal_opportunity_score("colour"),
        "theirs": sklego.metrics.equal_opportunity_score("black"),
    }  # fmt: skip
    search: Any = GridSearchCV
    found = search(
        model, {"logisticregression__C": [0.01, 1.0]}, scoring=scoring, refit="parity", cv=StratifiedKFold(3)
    ).fit(arrests.to_pandas(), truth)
    scores: Any = found.cv_results_
    for place, strength in enumerate((0.01, 1.0)):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(arrests, truth)):
            model.set_params(logisticregression__C=strength).fit(arrests[train].to_pandas(), truth[train])
            guess = model.predict(arrests[test].to_pandas())
            shares = [guess[(arrests["colour"][test] == colour).to_numpy()].mean() for colour in ("Black", "White")]
            assert scores[f"split{fold}_test_parity"][place] == pytest.approx(min(shares) / max(shares), abs=1e-12)
    assert scores["mean_test_ours"] == pytest.approx(scores["mean_test_theirs"], abs=1e-12)


def test_a_score_is_the_metric_of_the_fold() -> None:
    model = pipeline()
    scorer = tf.make_scorer(tf.equalized_odds_difference, by="sex")
    scores = cross_validate(model, X.to_pandas(), Y.to_numpy(), cv=KFold(4), scoring=scorer)["test_score"]
    for (train, test), score in zip(KFold(4).split(X), scores, strict=True):
        fitted = pipeline().fit(X[train].to_pandas(), Y.to_numpy()[train])
        rows = X[test].with_columns(y=Y[test], guess=pl.Series(fitted.predict(X[test].to_pandas())))
        expected = tf.equalized_odds_difference("sex")(rows, "y", "guess")[".estimate"].item()
        assert score == pytest.approx(-expected, abs=1e-12)


def test_scores_of_probabilities() -> None:
    scorer = tf.make_scorer(tf.auc_parity, by="sex", response="scores")
    plain = tf.make_scorer(tf.roc_auc, response="scores")
    scoring: Any = {"gap": scorer, "auc": plain, "theirs": "roc_auc"}
    found = cross_validate(pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scoring)
    assert found["test_auc"] == pytest.approx(found["test_theirs"], abs=1e-12)
    assert all(-1 <= score <= 0 for score in found["test_gap"])


def test_a_pipeline_that_does_not_see_the_feature() -> None:
    scorer = tf.make_scorer(tf.demographic_parity_ratio, by="sex")
    with sklearn.config_context(enable_metadata_routing=True):
        routed: Any = sklearn_scorer(scorer.routed).set_score_request(sensitive_features=True)
        blind = X.drop("sex").to_pandas()
        params = {"sensitive_features": X["sex"].to_pandas()}
        found = cross_validate(pipeline(), blind, Y.to_numpy(), cv=KFold(3), scoring=routed, params=params)
    seen = cross_validate(pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer)
    assert found["test_score"] == pytest.approx(seen["test_score"], abs=1e-12)


class Known:
    def __init__(self, predicted: Any) -> None:
        self.predicted = predicted

    def predict(self, people: Any) -> Any:
        del people
        return np.array(self.predicted)


def test_more_is_better() -> None:
    people = pl.DataFrame({"sex": ["f", "f", "m", "m"]})
    known, truth = Known([1, 0, 1, 1]), np.array([1, 0, 1, 0])
    sides = tf.privileged(sex="m")
    assert tf.make_scorer(tf.demographic_parity_difference(sides))(known, people, truth) == -0.5
    assert tf.make_scorer(tf.disparate_impact(sides))(known, people, truth) == 0.5
    assert tf.make_scorer(tf.disparate_impact(tf.privileged(sex="f")))(known, people, truth) == 0.5
    assert tf.make_scorer(tf.error_rate)(known, people, truth) == -0.25
    assert tf.make_scorer(tf.sens)(known, people, truth) == 1
    assert math.isnan(tf.make_scorer(tf.sens)(known, people, np.zeros(4, dtype=int)))


def test_arrays_and_weights() -> None:
    known, array = Known([1, 0, 1, 1]), np.array([[0, 5], [0, 6], [1, 7], [1, 8]])
    scorer = tf.make_scorer(tf.demographic_parity_ratio, by=0)
    assert scorer(known, array, np.array([1, 0, 1, 0])) == 0.5
    assert scorer(known, array, np.array([1, 0, 1, 0]), sample_weight=np.array([3, 1, 1, 1])) == 0.75


def test_scorers_pickle_and_compare() -> None:
    for scorer in (tf.make_scorer(tf.accuracy), tf.p_percent_score("sex"), tf.correlation_score("sex")):
        assert pickle.loads(pickle.dumps(scorer)) == scorer  # noqa: S301 - our own


def test_what_is_no_scorer() -> None:
    odd: Any = "accuracy"
    with pytest.raises(tf.ArgumentError, match='`by="column"`'):
        tf.make_scorer(tf.demographic_parity_ratio)
    with pytest.raises(tf.ArgumentError, match="`by` goes with a factory"):
        tf.make_scorer(tf.accuracy, by="sex")
    with pytest.raises(tf.ArgumentError, match="takes a metric"):
        tf.make_scorer(odd)
    with pytest.raises(tf.ArgumentError, match="response"):
        tf.make_scorer(tf.accuracy, response=odd)
    with pytest.raises(tf.ColumnError, match="there is no column 'sx'"):
        tf.make_scorer(tf.demographic_parity_ratio, by="sx")(Known([1]), pl.DataFrame({"sex": ["f"]}), [1])
    with pytest.raises(tf.ColumnError, match="adds a column 'y'"):
        tf.make_scorer(tf.demographic_parity_ratio, by="y")(Known([1]), pl.DataFrame({"y": ["f"]}), [1])
