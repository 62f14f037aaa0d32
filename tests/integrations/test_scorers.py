"""Metrics as scorers of scikit-learn's cross-validation."""

from __future__ import annotations

import copy
import math
import pickle
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import sklego.datasets
import sklego.metrics
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    f1_score,
    get_scorer,
    log_loss,
    make_scorer as sklearn_scorer,
    max_error,
    mean_absolute_error,
    roc_auc_score,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

LOANS = lending(1500).with_columns(pl.col("sex", "race", "age_band").cast(pl.String))
X, Y = LOANS.select("sex", "race", "age_band", "score"), (LOANS["repaid"] == "yes").cast(pl.Int64)


def pipeline(*, sees_sex: bool = False) -> Any:
    texts = ["race", "age_band", *(["sex"] if sees_sex else [])]
    encode = ColumnTransformer([("texts", OneHotEncoder(), texts), ("score", "passthrough", ["score"])])
    return make_pipeline(encode, LogisticRegression(max_iter=500))


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_grid_search_reports_fairness_beside_accuracy(kind: str) -> None:
    people: Any = X.to_pandas() if kind == "pandas" else X
    scoring: Any = {
        "accuracy": "accuracy", "parity": tf.scorers.make_scorer(tf.demographic_parity_ratio, by="race"),
        "odds": tf.scorers.make_scorer(tf.equalized_odds, by="sex"),
    }  # fmt: skip
    grid: Any = {"logisticregression__C": [0.01, 1.0]}
    search: Any = GridSearchCV
    result = search(pipeline(), grid, scoring=scoring, refit="parity", cv=KFold(3)).fit(people, Y.to_numpy())
    scores: Any = result.cv_results_
    assert all(0 <= score <= 1 for score in scores["mean_test_parity"])
    assert all(-1 <= score <= 0 for score in scores["mean_test_odds"])
    assert result.best_score_ == max(scores["mean_test_parity"])
    assert result.best_index_ == int(np.argmax(scores["mean_test_parity"]))


def test_grid_search_with_two_scorers() -> None:
    load: Any = sklego.datasets.load_arrests
    arrests = pl.from_pandas(load(as_frame=True)).with_columns(black=(pl.col("colour") == "Black").cast(pl.Int64))
    truth = (arrests["released"] == "Yes").cast(pl.Int64).to_numpy()
    encode = ColumnTransformer(
        [("texts", OneHotEncoder(), ["employed", "citizen"]), ("numbers", StandardScaler(), ["age", "checks"])]
    )
    model = make_pipeline(encode, LogisticRegression(class_weight="balanced"))
    scoring: Any = {
        "parity": tf.scorers.make_scorer(tf.demographic_parity_ratio, by="colour"),
        "ours": tf.scorers.equal_opportunity_score("colour"),
        "theirs": sklego.metrics.equal_opportunity_score("black"),
    }  # fmt: skip
    search: Any = GridSearchCV
    result = search(
        model, {"logisticregression__C": [0.01, 1.0]}, scoring=scoring, refit="parity", cv=StratifiedKFold(3)
    ).fit(arrests.to_pandas(), truth)
    scores: Any = result.cv_results_
    for index, strength in enumerate((0.01, 1.0)):
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(arrests, truth)):
            model.set_params(logisticregression__C=strength).fit(arrests[train].to_pandas(), truth[train])
            guess = model.predict(arrests[test].to_pandas())
            shares = [guess[(arrests["colour"][test] == colour).to_numpy()].mean() for colour in ("Black", "White")]
            assert scores[f"split{fold}_test_parity"][index] == pytest.approx(min(shares) / max(shares), abs=1e-12)
    assert scores["mean_test_ours"] == pytest.approx(scores["mean_test_theirs"], abs=1e-12)


def test_score_equals_the_metric_of_the_fold() -> None:
    model = pipeline()
    scorer = tf.scorers.make_scorer(tf.equalized_odds, by="sex")
    scores = cross_validate(model, X.to_pandas(), Y.to_numpy(), cv=KFold(4), scoring=scorer)["test_score"]
    for (train, test), score in zip(KFold(4).split(X), scores, strict=True):
        fitted = pipeline().fit(X[train].to_pandas(), Y.to_numpy()[train])
        rows = X[test].with_columns(y=Y[test], guess=pl.Series(fitted.predict(X[test].to_pandas())))
        expected = tf.equalized_odds("sex")(rows, "y", "guess")[".estimate"].item()
        assert score == pytest.approx(-expected, abs=1e-12)


def test_scorers_of_probabilities() -> None:
    scorer = tf.scorers.make_scorer(tf.auc_parity, by="sex", response="scores")
    plain = tf.scorers.make_scorer(tf.roc_auc, response="scores")
    scoring: Any = {"gap": scorer, "auc": plain, "theirs": "roc_auc"}
    result = cross_validate(pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scoring)
    assert result["test_auc"] == pytest.approx(result["test_theirs"], abs=1e-12)
    assert all(-1 <= score <= 0 for score in result["test_gap"])


def test_sensitive_feature_is_routed_to_a_blind_pipeline() -> None:
    scorer = tf.scorers.make_scorer(tf.demographic_parity_ratio, by="sex")
    with sklearn.config_context(enable_metadata_routing=True):
        routed: Any = sklearn_scorer(scorer.routed).set_score_request(sensitive_features=True)
        blind = X.drop("sex").to_pandas()
        params = {"sensitive_features": X["sex"].to_pandas()}
        result = cross_validate(pipeline(), blind, Y.to_numpy(), cv=KFold(3), scoring=routed, params=params)
    seen = cross_validate(pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer)
    assert result["test_score"] == pytest.approx(seen["test_score"], abs=1e-12)


# Metadata routing


WEIGHTS = np.random.default_rng(5).integers(1, 9, len(X))
SCORERS: dict[str, tuple[Callable[[], Any], Callable[[pl.DataFrame], float]]] = {
    "an ordinary metric": (
        lambda: tf.scorers.make_scorer(tf.accuracy),
        lambda rows: tf.accuracy(rows, "y", "guess", case_weights="w")[".estimate"].item(),
    ),
    "a comparison": (
        lambda: tf.scorers.make_scorer(tf.demographic_parity, by="sex"),
        lambda rows: -tf.demographic_parity("sex")(rows, "y", "guess", case_weights="w")[".estimate"].item(),
    ),
    "scores": (
        lambda: tf.scorers.make_scorer(tf.roc_auc),
        lambda rows: roc_auc_score(rows["y"], rows["score_of_1"], sample_weight=rows["w"]),
    ),
    "a correlation": (
        lambda: tf.scorers.correlation_score("sex"),
        lambda rows: (
            -tf.inequality.explained_by_groups("sex")(rows, None, "guess", case_weights="w")[".estimate"].sqrt().item()
        ),
    ),
    "a metric of a subset": (
        lambda: tf.scorers.subset_score(lambda people: (people["sex"] == "male").to_numpy(), tf.accuracy),
        lambda rows: tf.accuracy(rows.filter(sex="male"), "y", "guess", case_weights="w")[".estimate"].item(),
    ),
    "a function of a subset": (
        lambda: tf.scorers.subset_score(lambda people: (people["sex"] == "male").to_numpy(), accuracy_score),
        lambda rows: accuracy_score(
            *(rows.filter(sex="male")[name] for name in ("y", "guess", "w")[:2]),
            sample_weight=rows.filter(sex="male")["w"],
        ),
    ),
}


def routed_pipeline() -> Any:
    """A pipeline that is fitted without weights where they are routed."""
    made = pipeline()
    made.set_params(logisticregression=made[-1].set_fit_request(sample_weight=False))
    return made


@cache
def rows_of_folds() -> list[pl.DataFrame]:
    """The rows that are tested in each of three folds, with what is predicted of them."""
    folds: list[pl.DataFrame] = []
    for train, test in KFold(3).split(X):
        fitted = pipeline().fit(X[train].to_pandas(), Y.to_numpy()[train])
        people = X[test].to_pandas()
        rows = X[test].with_columns(
            y=Y[test], guess=pl.Series(fitted.predict(people)), w=pl.Series(WEIGHTS[test]),
            score_of_1=pl.Series(fitted.predict_proba(people)[:, 1]),
        )  # fmt: skip
        folds.append(rows)
    return folds


def expected_scores(value: Callable[[pl.DataFrame], float]) -> list[float]:
    """The values of the metric in each fold, in plain steps."""
    return [value(rows) for rows in rows_of_folds()]


@pytest.mark.parametrize("name", SCORERS)
def test_routed_sample_weight_is_used(name: str) -> None:
    make, value = SCORERS[name]
    params: Any = {"sample_weight": WEIGHTS}
    expected = expected_scores(value)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make().set_score_request(sample_weight=True)
        result = cross_validate(
            routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer, params=params
        )
        assert result["test_score"] == pytest.approx(expected, abs=1e-12)
        scores: Any = cross_val_score(
            routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer, params=params
        )
        assert scores == pytest.approx(expected, abs=1e-12)
        search: Any = GridSearchCV
        result = search(
            routed_pipeline(), {"logisticregression__C": [1.0]}, scoring={"ours": scorer}, refit=False, cv=KFold(3)
        )
        results = result.fit(X.to_pandas(), Y.to_numpy(), sample_weight=WEIGHTS).cv_results_
        assert [results[f"split{fold}_test_ours"].item() for fold in range(3)] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", SCORERS)
def test_unrequested_sample_weight_raises(name: str) -> None:
    params: Any = {"sample_weight": WEIGHTS}
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = SCORERS[name][0]()
        with pytest.raises(UnsetMetadataPassedError, match=r"Call `(make|subset)_scorer?\(.*\)\.set_score_request"):
            cross_validate(routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer, params=params)
        unweighted = cross_validate(routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer)
        scorer.set_score_request(sample_weight=False)
        weighted: Any = get_scorer("accuracy")
        scoring: Any = {"ours": scorer, "theirs": weighted.set_score_request(sample_weight=True)}
        refused = cross_validate(
            routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scoring, params=params
        )
    assert refused["test_ours"] == pytest.approx(unweighted["test_score"])


@pytest.mark.parametrize("name", SCORERS)
def test_weights_without_routing_are_used(name: str) -> None:
    # as scikit-learn's own scorers do there
    make, value = SCORERS[name]
    search: Any = GridSearchCV
    for scoring in (make(), {"ours": make(), "accuracy": "accuracy"}):
        result = search(Unweighted(), {"strength": [1.0]}, scoring=scoring, refit=False, cv=KFold(3))
        results = result.fit(X.to_pandas(), Y.to_numpy(), sample_weight=WEIGHTS).cv_results_
        key = "score" if callable(scoring) else "ours"
        scores = [results[f"split{fold}_test_{key}"].item() for fold in range(3)]
        assert scores == pytest.approx(expected_scores(value), abs=1e-12)


class Unweighted(BaseEstimator):
    """The pipeline, whose fit takes weights and has no use for them."""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def fit(self, people: Any, truth: Any, sample_weight: Any = None) -> Unweighted:
        del sample_weight
        self.model_ = pipeline().fit(people, truth)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, people: Any) -> Any:
        return self.model_.predict(people)

    def predict_proba(self, people: Any) -> Any:
        return self.model_.predict_proba(people)


def test_metadata_may_be_requested_by_alias() -> None:
    expected = expected_scores(SCORERS["an ordinary metric"][1])
    params: Any = {"importance": WEIGHTS}
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = tf.scorers.make_scorer(tf.accuracy).set_score_request(sample_weight="importance")
        result = cross_validate(
            routed_pipeline(), X.to_pandas(), Y.to_numpy(), cv=KFold(3), scoring=scorer, params=params
        )
    assert result["test_score"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_sensitive_features_are_routed_as_frames(kind: str) -> None:
    beside: Any = X.select("sex", "race") if kind == "polars" else X.select("sex", "race").to_pandas()
    blind = X.drop("sex").to_pandas()
    params: Any = {"sensitive_features": beside, "sample_weight": WEIGHTS}
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = tf.scorers.make_scorer(tf.demographic_parity, by="sex")
        scorer.set_score_request(sensitive_features=True, sample_weight=True)
        accuracy = tf.scorers.make_scorer(tf.accuracy).set_score_request(sample_weight=True)
        scoring: Any = {"fair": scorer, "right": accuracy}
        result = cross_validate(routed_pipeline(), blind, Y.to_numpy(), cv=KFold(3), scoring=scoring, params=params)
    for key, name in (("test_fair", "a comparison"), ("test_right", "an ordinary metric")):
        assert result[key] == pytest.approx(expected_scores(SCORERS[name][1]), abs=1e-12)


def test_bad_requests_raise() -> None:
    scorer: Any = tf.scorers.make_scorer(tf.accuracy)
    with pytest.raises(tf.errors.ArgumentError, match=r"sklearn\.set_config\(enable_metadata_routing=True\)"):
        scorer.set_score_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(tf.errors.ArgumentError, match=r"metadata 'sample_weigth'. Did you mean 'sample_weight'"):
            scorer.set_score_request(sample_weigth=True)
        # an ordinary metric has no groups
        with pytest.raises(tf.errors.ArgumentError, match="Unknown metadata 'sensitive_features'"):
            scorer.set_score_request(sensitive_features=True)
        for odd in (1, "two words", ["sample_weight"]):
            with pytest.raises(tf.errors.ArgumentError, match="`sample_weight` is True, False, None or another name"):
                scorer.set_score_request(sample_weight=odd)
        unweighted: Any = tf.scorers.subset_score(lambda people: people["sex"] == "f", max_error)
        with pytest.raises(tf.errors.ArgumentError, match="Unknown metadata 'sample_weight'"):
            unweighted.set_score_request(sample_weight=True)


def test_requests_survive_pickle_copy_and_clone() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = tf.scorers.make_scorer(tf.accuracy).set_score_request(sample_weight=True)
        others: list[Any] = [pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer), clone(scorer, safe=False)]  # noqa: S301 - our own
        for other in others:
            assert other == scorer
            assert hash(other) == hash(scorer)
            assert other.get_metadata_routing().score.requests == {"sample_weight": True}
            # and are its own from then on
            other.set_score_request(sample_weight=False)
            assert scorer.get_metadata_routing().score.requests == {"sample_weight": True}
            assert other != scorer


def test_routed_function_of_truth_and_prediction() -> None:
    guess, weights = np.array([1, 0, 1, 1]), np.array([3, 1, 1, 1])
    assert tf.scorers.make_scorer(tf.accuracy).routed(TRUTH, guess) == 0.75
    assert tf.scorers.make_scorer(tf.accuracy).routed(TRUTH, guess, sample_weight=weights) == pytest.approx(5 / 6)
    scores = np.array([0.1, 0.3, 0.6, 0.2])
    assert tf.scorers.make_scorer(tf.roc_auc).routed(TRUTH, scores) == roc_auc_score(TRUTH, scores)
    with pytest.raises(tf.errors.ArgumentError, match="give their columns as `sensitive_features=`"):
        tf.scorers.make_scorer(tf.demographic_parity_ratio, by="sex").routed(TRUTH, guess)


def test_sklearn_make_scorer_takes_routed_functions() -> None:
    model, people = pipeline().fit(X.to_pandas(), Y.to_numpy()), X.to_pandas()
    plain: Any = sklearn_scorer(tf.scorers.make_scorer(tf.accuracy).routed)
    assert plain(model, people, Y.to_numpy()) == accuracy_score(Y, model.predict(people))
    scored: Any = sklearn_scorer(tf.scorers.make_scorer(tf.roc_auc).routed, response_method="predict_proba")
    expected = roc_auc_score(Y, model.predict_proba(people)[:, 1], sample_weight=WEIGHTS)
    assert scored(model, people, Y.to_numpy(), sample_weight=WEIGHTS) == pytest.approx(expected, abs=1e-12)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = scored.get_metadata_routing().score.requests
    assert set(asked) == {"sample_weight", "sensitive_features"}


class Classifier(ClassifierMixin, BaseEstimator):
    """A classifier of scikit-learn's that predicts what is known."""

    def __init__(self, known: Any) -> None:
        self.known = known

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Any:
        return self.known.classes_

    def predict_proba(self, people: Any) -> Any:
        return self.known.predict_proba(people)


def test_routed_function_of_multiclass_scores() -> None:
    scores = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    truth, model = np.array(["a", "b", "c", "a"]), Probable(list("abc"), scores)
    scorer: Any = sklearn_scorer(tf.scorers.make_scorer(tf.mn_log_loss).routed, response_method="predict_proba")
    assert scorer(Classifier(model), PEOPLE, truth) == pytest.approx(-log_loss(truth, scores), rel=1e-12)
    # a fold may lack a class
    some, labels = np.array(["a", "b", "b", "a"]), ["a", "b", "c"]
    with pytest.raises(tf.errors.ArgumentError, match=r"the scores have 3 classes, but the truth has 2; .*labels="):
        tf.scorers.make_scorer(tf.mn_log_loss).routed(some, scores)
    listed = tf.scorers.make_scorer(tf.mn_log_loss, labels=labels).routed(some, scores)
    assert listed == pytest.approx(-log_loss(some, scores, labels=labels), rel=1e-12)


# Undefined scores


def test_undefined_score_is_nan_with_a_warning() -> None:
    everybody = PEOPLE.with_columns(one=pl.lit("all"))
    nobody: Any = np.zeros(4, dtype=int)
    calls: list[Callable[[], float]] = [
        lambda: tf.scorers.make_scorer(tf.sens)(Known([1, 0, 1, 1]), PEOPLE, nobody),
        lambda: tf.scorers.make_scorer(tf.demographic_parity_ratio, by="sex")(Known(nobody), PEOPLE, TRUTH),
        lambda: tf.scorers.make_scorer(tf.accuracy, na_rm=False)(Known([1, 0, 1, 1]), PEOPLE, [1, None, 0, 1]),
        lambda: tf.scorers.make_scorer(tf.demographic_parity_ratio("sex", min_n=9))(Known([1, 0, 1, 1]), PEOPLE, TRUTH),
        lambda: tf.scorers.correlation_score("one")(Known(nobody), everybody, TRUTH),
        lambda: tf.scorers.make_scorer(tf.sens).routed(nobody, nobody),
        lambda: tf.scorers.subset_score(lambda people: people["sex"] == "none", tf.accuracy)(
            Known(nobody), PEOPLE, TRUTH
        ),
        lambda: tf.scorers.subset_score(lambda people: people["sex"] == "none", accuracy_score)(
            Known(nobody), PEOPLE, TRUTH
        ),
    ]
    for call in calls:
        with pytest.warns(tf.errors.UndefinedWarning) as caught:
            assert math.isnan(call())
        assert sum("the score is NaN" in str(item.message) for item in caught) == 1
    assert math.isnan(tf.scorers.make_scorer(tf.sens, on_undefined="ignore")(Known([1, 0, 1, 1]), PEOPLE, nobody))
    with pytest.raises(tf.errors.UndefinedError):
        tf.scorers.make_scorer(tf.sens, on_undefined="raise")(Known([1, 0, 1, 1]), PEOPLE, nobody)


def test_undefined_groups_of_a_score_are_named() -> None:
    three = pl.DataFrame({"sex": ["f", "f", "m", "m", "x", "x"]})
    scorer = tf.scorers.make_scorer(tf.equal_opportunity_ratio, by="sex")
    with pytest.warns(tf.errors.UndefinedWarning, match="in sex 'x'"):
        assert scorer(Known([1, 0, 1, 1, 1, 1]), three, np.array([1, 1, 1, 1, 0, 0])) == 0.5


class Known:
    def __init__(self, predicted: Any) -> None:
        self.predicted = predicted

    def predict(self, people: Any) -> Any:
        del people
        return np.array(self.predicted)


def test_scores_are_signed_so_that_greater_is_better() -> None:
    people = pl.DataFrame({"sex": ["f", "f", "m", "m"]})
    known, truth = Known([1, 0, 1, 1]), np.array([1, 0, 1, 0])
    sides = tf.privileged(sex="m")
    assert tf.scorers.make_scorer(tf.demographic_parity(sides))(known, people, truth) == -0.5
    assert tf.scorers.make_scorer(tf.disparate_impact(sides))(known, people, truth) == 0.5
    assert tf.scorers.make_scorer(tf.disparate_impact(tf.privileged(sex="f")))(known, people, truth) == 0.5
    assert tf.scorers.make_scorer(tf.error_rate)(known, people, truth) == -0.25
    assert tf.scorers.make_scorer(tf.sens)(known, people, truth) == 1


def test_scorers_take_arrays_and_weights() -> None:
    known, array = Known([1, 0, 1, 1]), np.array([[0, 5], [0, 6], [1, 7], [1, 8]])
    scorer = tf.scorers.make_scorer(tf.demographic_parity_ratio, by=0)
    assert scorer(known, array, np.array([1, 0, 1, 0])) == 0.5
    assert scorer(known, array, np.array([1, 0, 1, 0]), sample_weight=np.array([3, 1, 1, 1])) == 0.75


class Probable(Known):
    def __init__(self, classes: list[Any], scores: Any) -> None:
        super().__init__([classes[index] for index in np.argmax(scores, axis=1)])
        self.classes_, self.scores = np.array(classes), np.array(scores)

    def predict_proba(self, people: Any) -> Any:
        del people
        return self.scores


PEOPLE = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [20, 30, 40, 50]})
TRUTH = np.array([1, 0, 1, 0])


def test_scores_of_the_pos_label_are_used() -> None:
    model = Probable(["no", "yes"], [[0.1, 0.9], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    truth = np.array(["yes", "no", "yes", "no"])
    for event in ("yes", "no"):
        scorer = tf.scorers.make_scorer(tf.roc_auc, response="scores", pos_label=event)
        assert scorer(model, PEOPLE, truth) == 0.75
    with pytest.raises(tf.errors.ArgumentError, match="'maybe' is not among the classes of the estimator, 'no', 'yes'"):
        tf.scorers.make_scorer(tf.roc_auc, response="scores", pos_label="maybe")(model, PEOPLE, truth)
    some = tf.scorers.subset_score(
        lambda people: people["sex"] != "none", tf.roc_auc, response="scores", pos_label="yes"
    )
    assert some(model, PEOPLE, truth) == 0.75


def test_response_defaults_to_what_the_metric_reads() -> None:
    model = Probable([0, 1], [[0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]])
    assert tf.scorers.make_scorer(tf.roc_auc)(model, PEOPLE, TRUTH) == roc_auc_score(TRUTH, model.scores[:, 1])
    assert tf.scorers.make_scorer(tf.brier_class)(model, PEOPLE, TRUTH) == -brier_score_loss(TRUTH, model.scores[:, 1])
    assert tf.scorers.make_scorer(tf.auc_parity, by="sex")(model, PEOPLE, TRUTH) == 0
    assert tf.scorers.make_scorer(tf.accuracy)(model, PEOPLE, TRUTH) == 0.5
    assert tf.scorers.make_scorer(tf.selection_rate, threshold=0.35)(model, PEOPLE, TRUTH) == 0.75
    assert tf.scorers.make_scorer(tf.selection_rate, top_k=1)(model, PEOPLE, TRUTH) == 0.25
    assert tf.scorers.make_scorer(tf.rmse)(Known([1.5, 0.5, 1.5, 0.5]), PEOPLE, TRUTH) == -0.5
    everybody: Any = lambda people: np.ones(len(people), dtype=bool)  # noqa: E731 - as it is written there
    assert tf.scorers.subset_score(everybody, tf.roc_auc)(model, PEOPLE, TRUTH) == roc_auc_score(
        TRUTH, model.scores[:, 1]
    )


def test_wrong_response_raises() -> None:
    with pytest.raises(tf.errors.ArgumentError, match="roc_auc reads scores, not labels; leave `response` out"):
        tf.scorers.make_scorer(tf.roc_auc, response="labels")
    with pytest.raises(tf.errors.ArgumentError, match=r"accuracy reads labels, not scores; .*`threshold=`"):
        tf.scorers.make_scorer(tf.accuracy, response="scores")
    with pytest.raises(tf.errors.ArgumentError, match="Known has no `predict_proba`"):
        tf.scorers.make_scorer(tf.roc_auc)(Known([1, 0, 1, 1]), PEOPLE, TRUTH)


def test_multiclass_scores_of_numeric_classes() -> None:
    scores = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    truth = np.array([0, 1, 2, 0])
    result = tf.scorers.make_scorer(tf.mn_log_loss)(Probable([0, 1, 2], scores), PEOPLE, truth)
    assert result == pytest.approx(-log_loss(truth, scores), rel=1e-12)


def test_feature_may_be_named_predictions() -> None:
    people = PEOPLE.rename({"sex": "predictions"})
    model = Probable([0, 1], [[0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]])
    assert tf.scorers.make_scorer(tf.auc_parity, by="predictions")(model, people, TRUTH) == 0


def test_multiclass_scores_are_all_read() -> None:
    scores = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    truth = np.array(["a", "b", "c", "a"])
    result = tf.scorers.make_scorer(tf.roc_auc, response="scores")(Probable(list("abc"), scores), PEOPLE, truth)
    by_label = {label: scores[:, index] for index, label in enumerate("abc")}
    assert result == tf.roc_auc.arrays(truth, probs=by_label)[".estimate"].item()


def test_custom_aggregate_without_direction_raises() -> None:
    def spread(groups: Any) -> float:
        return groups[".estimate"].min() / groups[".estimate"].max()

    with pytest.raises(tf.errors.ArgumentError, match=r"the direction of demographic_parity is unknown"):
        tf.scorers.make_scorer(tf.demographic_parity("sex", aggregate=spread))
    own = tf.new_groupwise_metric(tf.detection_prevalence, "share", spread, direction="maximize")
    assert tf.scorers.make_scorer(own, by="sex")(Known([1, 0, 1, 1]), PEOPLE, TRUTH) == 0.5


@pytest.mark.parametrize(
    ("by", "people"),
    [
        ("sex", PEOPLE), ("sex", PEOPLE["sex"]), ("sex", PEOPLE["sex"].to_list()), ("sex", PEOPLE["sex"].to_numpy()),
        ("sex", PEOPLE["sex"].to_pandas().rename(None)), (0, PEOPLE["sex"].to_numpy()), (-2, PEOPLE.to_numpy()),
        (np.int64(0), PEOPLE.to_numpy()), (7, PEOPLE.to_pandas().set_axis([7, 0], axis=1)), ("sex", PEOPLE.to_arrow()),
    ],
)  # fmt: skip
def test_routed_sensitive_features_of_any_kind(by: Any, people: Any) -> None:
    scorer = tf.scorers.make_scorer(tf.demographic_parity_ratio, by=by)
    assert scorer.routed(TRUTH, np.array([1, 0, 1, 1]), sensitive_features=people) == 0.5


@pytest.mark.parametrize("dtype", ["str", "string[pyarrow]", "string[python]", "object", "category"])
def test_pandas_text_dtypes_give_the_same_groups(dtype: str) -> None:
    people = pd.DataFrame({"sex": pd.Series(["f", "m", "f", None, "m", "m"], dtype=dtype)})[::-1]
    of_known, of_all = tf.demographic_parity("sex"), tf.demographic_parity("sex", unknown="group")
    # 1 of 2 women, 2 of 3 men, and the one who is neither
    for parity, difference in ((of_known, 1 / 6), (of_all, 2 / 3)):
        scorer = tf.scorers.make_scorer(parity)
        assert scorer(Known([1, 0, 0, 0, 1, 1]), people, [1] * 6) == pytest.approx(-difference)


NUMBERED = pd.DataFrame({1: ["f", "f", "m", "m"], 2: ["a", "b", "b", "b"], 0: ["x", "x", "x", "x"]})
"""Columns whose labels are numbers, and not their places."""


@pytest.mark.parametrize(("label", "expected"), [(1, 0.5), (2, 2 / 3), (0, 1.0)])
def test_integer_column_labels_are_read_as_labels(label: int, expected: float) -> None:
    known = Known([1, 0, 1, 1])
    shares = [known.predict(None)[NUMBERED[label] == value].mean() for value in NUMBERED[label].unique()]
    assert min(shares) / max(shares) == pytest.approx(expected)
    assert tf.scorers.p_percent_score(label)(known, NUMBERED, TRUTH) == pytest.approx(expected)
    selected = NUMBERED[[0, 2, 1]]
    assert tf.scorers.p_percent_score(label)(known, selected, TRUTH) == pytest.approx(expected)


@pytest.mark.parametrize("people", [PEOPLE, PEOPLE.to_pandas(), PEOPLE.to_arrow(), NUMBERED[[1, 2]]])
def test_integer_by_of_a_frame_raises(people: Any) -> None:
    with pytest.raises(
        tf.errors.ColumnError, match=r"`by`: there is no column 0.* A number is a position only in an array"
    ):
        tf.scorers.p_percent_score(0)(Known([1, 0, 1, 1]), people, TRUTH)


def test_duplicate_column_label_raises() -> None:
    doubled = pd.concat([NUMBERED[[1]], NUMBERED[[1]]], axis=1)
    with pytest.raises(tf.errors.ColumnError, match="X has several columns 1"):
        tf.scorers.p_percent_score(1)(Known([1, 0, 1, 1]), doubled, TRUTH)


@pytest.mark.parametrize("by", [True, False])
def test_boolean_by_raises(by: Any) -> None:
    with pytest.raises(tf.errors.ColumnError, match="not a bool"):
        tf.scorers.p_percent_score(by)


@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "numbered"])
def test_scorer_by_several_features(kind: str) -> None:
    people = PEOPLE.with_columns(race=pl.Series(["a", "b", "b", "b"]))
    guess = np.array([1, 0, 1, 1])
    by: Any = (0, 2) if kind == "array" else [3, 5] if kind == "numbered" else ("sex", "race")
    frames: dict[str, Any] = {
        "pandas": people.to_pandas(), "polars": people, "array": people.to_numpy(),
        "numbered": people.select("race", "age", "sex").to_pandas().set_axis([5, 4, 3], axis=1),
    }  # fmt: skip
    # selected are 1 of 1 (f, a), 0 of 1 (f, b) and 2 of 2 (m, b)
    assert tf.scorers.make_scorer(tf.demographic_parity, by=by)(Known(guess), frames[kind], TRUTH) == -1
    assert tf.scorers.make_scorer(tf.demographic_parity_ratio, by=by)(Known([1, 1, 1, 0]), frames[kind], TRUTH) == 0.5


def test_other_columns_of_a_frame_with_integer_labels_are_kept() -> None:
    people = PEOPLE.to_pandas().rename(columns={"age": 4}).assign(race=["a", "b", "a", "b"])
    model = Probable([0, 1], [[0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]])
    cuts: Any = {"race": {"a": 0.2, "b": 0.6}}
    scorer = tf.scorers.make_scorer(tf.demographic_parity, by=4, threshold=cuts)
    assert scorer(model, people, TRUTH) == -1


def test_columns_read_by_thresholds_and_metrics_are_kept() -> None:
    model = Probable([0, 1], [[0.7, 0.3], [0.6, 0.4], [0.4, 0.6], [0.3, 0.7]])
    cut: Any = {"sex": {"f": 0.35, "m": 0.65}}
    assert tf.scorers.make_scorer(tf.selection_rate, response="scores", threshold=cut)(model, PEOPLE, TRUTH) == 0.5
    near = tf.scorers.make_scorer(tf.inequality.consistency(["age"], n_neighbors=2))
    assert (
        near(Known([1, 1, 0, 0]), PEOPLE, TRUTH)
        == tf.inequality.consistency(["age"], n_neighbors=2)(
            PEOPLE.with_columns(guess=pl.Series([1, 1, 0, 0])), estimate="guess"
        )[".estimate"].item()
    )


def test_masked_truth_is_dropped() -> None:
    truth = np.ma.masked_array([1, 0, 1, 0], mask=[True, False, False, False])
    assert tf.scorers.make_scorer(tf.accuracy)(Known([1, 0, 1, 1]), PEOPLE, truth) == pytest.approx(2 / 3)


def test_subset_score_passes_rows_to_functions() -> None:
    def everybody(people: Any) -> list[bool]:
        return [True] * len(people)

    truth, guess = np.array(["a", "b", "b", "b"]), Known(["a", "b", "a", "b"])
    assert tf.scorers.subset_score(everybody, accuracy_score)(guess, PEOPLE, truth) == 0.75
    assert tf.scorers.subset_score(everybody, f1_score, pos_label="b")(guess, PEOPLE, truth) == pytest.approx(0.8)
    assert (
        tf.scorers.subset_score(everybody, mean_absolute_error)(Known([1.5, 2.0, 3.0, 4.5]), PEOPLE, [1, 2, 3, 4])
        == 0.25
    )
    with pytest.raises(ValueError, match="average"):
        tf.scorers.subset_score(everybody, f1_score, average="nope")(guess, PEOPLE, truth)


def test_correlation_score_of_integers_needs_as_numbers() -> None:
    ages = np.arange(20, 44)
    guess = ages**2 + 10 * (ages % 2)
    people = pl.DataFrame({"age": ages})
    for data in (people, people.to_pandas()):
        with pytest.raises(
            tf.errors.ArgumentError, match=r"'age' holds 24 different whole numbers.*`as_numbers=True` or"
        ):
            tf.scorers.correlation_score("age")(Known(guess), data)
        measured = tf.scorers.correlation_score("age", as_numbers=True)(Known(guess), data)
        assert measured == pytest.approx(-np.corrcoef(ages, guess)[0, 1])
        # every age is a group of one row, which says all of its prediction
        assert tf.scorers.correlation_score("age", as_numbers=False)(Known(guess), data) == pytest.approx(-1)
    assert tf.scorers.correlation_score(0, as_numbers=True)(Known(guess), ages[:, None]) == pytest.approx(measured)
    floats = people.cast(pl.Float64)
    assert tf.scorers.correlation_score("age")(Known(guess), floats) == pytest.approx(measured)
    codes = ages % 10
    means = np.array([guess[codes == code].mean() for code in codes])
    ratio = means.std() / guess.std()
    assert tf.scorers.correlation_score("age")(Known(guess), pl.DataFrame({"age": codes})) == pytest.approx(-ratio)
    odd: Any = "yes"
    with pytest.raises(tf.errors.ArgumentError, match="`as_numbers` is True or False"):
        tf.scorers.correlation_score("age", as_numbers=odd)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "an option that is none": (lambda: tf.scorers.make_scorer(tf.accuracy, pos_lable=1), "Did you mean 'pos_label'"),
    "outer groups": (lambda: tf.scorers.make_scorer(tf.accuracy, group_by="sex"), "does not accept `group_by`"),
    "several thresholds": (
        lambda: tf.scorers.make_scorer(tf.accuracy, threshold=[0.3, 0.6]),
        "must be one value, not a list",
    ),
    "no such place": (
        lambda: tf.scorers.make_scorer(tf.demographic_parity, by=5)(Known([1, 0, 1, 1]), PEOPLE.to_numpy(), TRUTH),
        "`by=5` is out of range: X has 2 columns",
    ),
    "no name": (
        lambda: tf.scorers.make_scorer(tf.demographic_parity, by="sex")(Known([1, 0, 1, 1]), PEOPLE.to_numpy(), TRUTH),
        "give the position of the column",
    ),
    "another length": (
        lambda: tf.scorers.make_scorer(tf.demographic_parity, by="sex")(Known([1, 0, 1]), PEOPLE, TRUTH),
        "`prediction` has 3 values, but `sex` has 4",
    ),
    "a short subset": (
        lambda: tf.scorers.subset_score(lambda _: [True], tf.accuracy)(Known([1, 0, 1, 1]), PEOPLE, TRUTH),
        "one Boolean for each of 4 rows",
    ),
    "a groupwise metric of a subset": (
        lambda: tf.scorers.subset_score(len, tf.demographic_parity("sex")),
        "takes a function of X and a metric",
    ),
    "no truth": (
        lambda: tf.scorers.subset_score(lambda _: [True] * 4, accuracy_score)(Known([1, 0, 1, 1]), PEOPLE),
        "needs y",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_scoring_calls_raise(name: str) -> None:
    call, message = WRONG[name]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        call()


def test_correlation_score_of_an_expression() -> None:
    people = PEOPLE.with_columns(pl.col("age").cast(pl.Float64), old=pl.col("age") >= 35)
    known = Known([1, 0, 1, 1])
    made = tf.scorers.correlation_score((pl.col("age") >= 35).alias("over_35"))(known, people, TRUTH)
    expected = -abs(np.corrcoef([0, 0, 1, 1], [1, 0, 1, 1])[0, 1])
    assert made == pytest.approx(expected, abs=1e-12)
    assert tf.scorers.correlation_score("old")(known, people, TRUTH) == pytest.approx(expected, abs=1e-12)
    decades = tf.scorers.correlation_score((pl.col("age") / 10).alias("decades"))(known, people, TRUTH)
    assert decades == pytest.approx(-abs(np.corrcoef([2, 3, 4, 5], [1, 0, 1, 1])[0, 1]), abs=1e-12)
    both: Any = ("sex", "age")
    with pytest.raises(tf.errors.ArgumentError, match="takes one column"):
        tf.scorers.correlation_score(both)


def test_scorers_pickle_and_compare() -> None:
    for scorer in (
        tf.scorers.make_scorer(tf.accuracy),
        tf.scorers.p_percent_score("sex"),
        tf.scorers.correlation_score("sex"),
    ):
        assert pickle.loads(pickle.dumps(scorer)) == scorer  # noqa: S301 - our own


def test_bad_scorers_raise() -> None:
    odd: Any = "accuracy"
    with pytest.raises(tf.errors.ArgumentError, match='`by="column"`'):
        tf.scorers.make_scorer(tf.demographic_parity_ratio)
    with pytest.raises(tf.errors.ArgumentError, match="`by` can only be given with a factory"):
        tf.scorers.make_scorer(tf.accuracy, by="sex")
    with pytest.raises(tf.errors.ArgumentError, match="takes a metric"):
        tf.scorers.make_scorer(odd)
    with pytest.raises(tf.errors.ArgumentError, match="response"):
        tf.scorers.make_scorer(tf.accuracy, response=odd)
    with pytest.raises(tf.errors.ColumnError, match="there is no column 'sx'"):
        tf.scorers.make_scorer(tf.demographic_parity_ratio, by="sx")(Known([1]), pl.DataFrame({"sex": ["f"]}), [1])
    with pytest.raises(tf.errors.ColumnError, match="adds a column 'y'"):
        tf.scorers.make_scorer(tf.demographic_parity_ratio, by="y")(Known([1]), pl.DataFrame({"y": ["f"]}), [1])


def tuned(scorer: Any, *, text: bool = False, **passed: Any) -> Any:
    """A threshold that scikit-learn has chosen by a scorer."""
    truth = LOANS["repaid"].cast(pl.String).to_numpy() if text else Y.to_numpy()
    search: Any = TunedThresholdClassifierCV
    return search(pipeline(), scoring=scorer, thresholds=9, cv=KFold(3), store_cv_results=True).fit(X, truth, **passed)


def test_tuned_threshold_takes_a_scorer_of_labels() -> None:
    one = tuned(tf.scorers.make_scorer(tf.accuracy))
    other = tuned("accuracy")
    assert one.best_threshold_ == other.best_threshold_
    assert one.cv_results_["scores"] == pytest.approx(other.cv_results_["scores"])


def test_tuned_threshold_counts_the_event_of_a_scorer() -> None:
    one = tuned(tf.scorers.make_scorer(tf.f_meas, pos_label="no"), text=True)
    other = tuned(sklearn_scorer(f1_score, pos_label="no"), text=True)
    assert one.best_threshold_ == other.best_threshold_
    assert one.cv_results_["scores"] == pytest.approx(other.cv_results_["scores"])


def test_tuned_threshold_compares_routed_groups() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = tf.scorers.make_scorer(tf.demographic_parity, by="race").set_score_request(sensitive_features=True)
        fitted = tuned(scorer, sensitive_features=X.select("race"))
        routed = sklearn_scorer(scorer.routed).set_score_request(sensitive_features=True)
        other = tuned(routed, sensitive_features=X.select("race"))
    assert fitted.cv_results_["scores"].tolist() == other.cv_results_["scores"].tolist()
    assert len(set(fitted.cv_results_["scores"])) > 1


def test_tuned_threshold_without_groups_names_both_ways() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"shows no X to its scorer.*FixedThresholdClassifier"):
        tuned(tf.scorers.make_scorer(tf.demographic_parity, by="race"))
    with pytest.raises(tf.errors.ArgumentError, match=r"make_scorer\(roc_auc\) reads scores, which are the same"):
        tuned(tf.scorers.make_scorer(tf.roc_auc))


def test_grid_search_over_thresholds_reads_the_columns_of_x() -> None:
    fixed: Any = FixedThresholdClassifier(pipeline())
    search: Any = GridSearchCV
    scorer = tf.scorers.make_scorer(tf.demographic_parity, by="race")
    thresholds = [0.5, 0.7]
    result = search(fixed, {"threshold": thresholds}, scoring=scorer, cv=KFold(2)).fit(X, Y.to_numpy())
    for threshold, score in zip(thresholds, result.cv_results_["split0_test_score"], strict=True):
        train, test = next(KFold(2).split(X))
        model = pipeline().fit(X[train], Y[train].to_numpy())
        chosen = model.predict_proba(X[test])[:, 1] >= threshold
        rates = X[test].with_columns(chosen=chosen).group_by("race").agg(pl.col("chosen").mean())["chosen"]
        assert score == pytest.approx(-(rates.max() - rates.min()))  # pyright: ignore[reportOperatorIssue] - they are numbers


def test_display_of_an_estimator_shows_the_call_of_its_scorer() -> None:
    scorer = tf.scorers.make_scorer(tf.demographic_parity_ratio, by="<u>", pos_label=1)
    assert repr(scorer) == "make_scorer(demographic_parity_ratio('<u>'), pos_label=1)"
    search: Any = GridSearchCV
    shown = search(LogisticRegression(), {"C": [1.0]}, scoring=scorer)._repr_html_()
    assert "make_scorer(demographic_parity_ratio(&#x27;&lt;u&gt;&#x27;), pos_label=1)" in shown
    assert "<u>" not in shown


class Fixed:
    """An estimator whose predictions are given."""

    def __init__(self, scores: Any, classes: list[Any] | None = None) -> None:
        self.scores = scores
        if classes is not None:
            self.classes_ = classes

    def predict(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's
        return self.scores[: len(X)]

    def predict_proba(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's
        return self.scores[: len(X)]


def test_scores_without_a_column_for_each_class_raise() -> None:
    scorer = tf.scorers.make_scorer(tf.roc_auc)
    rows, truth = pd.DataFrame({"x": [1, 2]}), np.array([0, 1])
    with pytest.raises(tf.errors.ArgumentError, match="a Fixed has no `classes_`"):
        scorer(Fixed(np.full((2, 2), 0.5)), rows, truth)
    for scores in (np.ones(2), np.ones((2, 1))):
        with pytest.raises(
            tf.errors.ColumnError, match=r"`predict_proba` of a Fixed .* a column for each of its classes, 0, 1"
        ):
            scorer(Fixed(scores, [0, 1]), rows, truth)


def test_sensitive_features_may_be_a_mapping() -> None:
    scorer = tf.scorers.make_scorer(tf.demographic_parity, by="sex")
    rows, predicted = pd.DataFrame({"x": [1, 2, 3, 4]}), Fixed(np.array([1, 0, 1, 1]))
    features = {"sex": ["f", "f", "m", "m"]}
    assert scorer(predicted, rows, sensitive_features=features) == -0.5
    with pytest.raises(tf.errors.ColumnError, match=r"there is no column 'sex'\. Did you mean 'sexe'"):
        scorer(predicted, rows, sensitive_features={"sexe": features["sex"]})


@pytest.mark.parametrize(
    "metric", [tf.survival.concordance, tf.prediction_intervals.score, tf.survival.brier.difference("sex")]
)
def test_metrics_of_several_columns_make_no_scorer(metric: Any) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=f"{metric.name} reads (survival times|intervals), which scorers"):
        tf.scorers.make_scorer(metric)


def test_correlation_is_not_below_minus_one() -> None:
    # rounding makes the correlation ratio of these numbers 1 + 4e-16
    rows = pd.DataFrame({"group": [1, 2, 3, 4]})
    assert tf.scorers.correlation_score("group")(Fixed(np.array([0.1, 0.2, 0.3, 0.4])), rows) == -1


def test_subsets_name_the_argument_that_is_wrong() -> None:
    rows, truth = pd.DataFrame({"sex": ["f", "m"]}), np.array([0, 1])
    picker: Any = "sex"
    with pytest.raises(tf.errors.ArgumentError, match="`subset_picker` is a function of X"):
        tf.scorers.subset_score(picker, tf.accuracy)
    scorer = tf.scorers.subset_score(lambda people: people["sex"] == "f", accuracy_score)
    with pytest.raises(tf.errors.ColumnError, match="`y` has 1 values, and X has 2 rows"):
        scorer(Fixed(truth), rows, truth[:1])
    with pytest.raises(tf.errors.ColumnError, match="`sample_weight` has 3 values, and X has 2 rows"):
        scorer(Fixed(truth), rows, truth, sample_weight=[1, 2, 3])
