"""Standard errors, limits and degrees of freedom that svy computed for complex surveys, reproduced."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import check_every, records, reference_data
from scipy import stats

import tidyfair as tf

if TYPE_CHECKING:
    from tidyfair.specs.survey_designs import Design

PEOPLE = reference_data("survey400")
REPLICATES: dict[str, Any] = {"weights": "weight", "replicates": [f"r{number}" for number in range(1, 17)]}
DESIGNS: dict[str, Design] = {
    "strata and clusters": tf.surveys.design(weights="weight", strata="stratum", clusters="psu"),
    "nested clusters": tf.surveys.design(weights="weight", strata="stratum", clusters="number", nested=True),
    "clusters": tf.surveys.design(weights="weight", clusters="psu"),
    "strata": tf.surveys.design(weights="weight", strata="stratum"),
    "weights": tf.surveys.design(weights="weight"),
    "finite population": tf.surveys.design(weights="weight", strata="stratum", clusters="psu", fpc="population"),
    "lonely adjust": tf.surveys.design(weights="weight", strata="lonely", clusters="psu", lonely="adjust"),
    "lonely certainty": tf.surveys.design(weights="weight", strata="lonely", clusters="psu", lonely="certainty"),
    "brr": tf.surveys.replicate_weights(**REPLICATES, method="brr"),
    "fay": tf.surveys.replicate_weights(**REPLICATES, method="fay", fay=0.3),
    "jackknife": tf.surveys.replicate_weights(**REPLICATES, method="jackknife"),
    "bootstrap": tf.surveys.replicate_weights(**REPLICATES, method="bootstrap"),
    "successive_difference": tf.surveys.replicate_weights(**REPLICATES, method="successive_difference"),
    "successive_difference about the mean": tf.surveys.replicate_weights(
        **REPLICATES, method="successive_difference", centre="mean"
    ),
}
METRICS: dict[str, tuple[Any, tuple[str, str]]] = {
    "selection_rate": (tf.selection_rate, ("y_true", "y_pred")),
    "mean_prediction": (tf.mean_prediction, ("y_reg", "pred_reg")),
    "sens": (tf.sens, ("y_true", "y_pred")),
}
CASES = {
    f"{record['params']['design']}, {name}": (DESIGNS[record["params"]["design"]], name, answer)
    for record in records("svy")
    for name, answer in record["value"].items()
}
NEAR = 1e-8


def check_groups(case: tuple[Design, str, dict[str, Any]]) -> None:
    """The values of groups with their errors, and the limits of those that have the same scale in svy."""
    design, name, answer = case
    metric, columns = METRICS[name]
    ours = metric.difference("race").by_group(PEOPLE, *columns, design=design, interval="auto").to_dicts()
    by_group = {row[".group"]: row for row in ours}
    for row in answer["groups"]:
        own = by_group[row["race"]]
        assert own[".estimate"] == pytest.approx(row["est"], rel=NEAR)
        if not row["se"]:
            # all are alike, which says nothing about how far they vary
            assert (own[".std_error"], own[".lower"], own[".upper"]) == (None, None, None)
            continue
        assert own[".std_error"] == pytest.approx(row["se"], rel=NEAR)
        # svy has limits of ratios on their own scale, and those of shares on that of logits
        if name != "sens":
            assert own[".lower"] == pytest.approx(row["lci"], rel=1e-6)
            assert own[".upper"] == pytest.approx(row["uci"], rel=1e-6)


def check_pairs(case: tuple[Design, str, dict[str, Any]]) -> None:
    """Differences and ratios to a group, by the covariances of groups."""
    design, name, answer = case
    metric, columns = METRICS[name]
    groups, covariance = answer["groups"], np.array(answer["covariance"])
    value = {row["race"]: row["est"] for row in groups}
    index = {row["race"]: number for number, row in enumerate(groups)}
    compared: dict[str, dict[str, dict[str, Any]]] = {}
    for scale in ("difference", "ratio"):
        result = tf.compare_groups(metric, by="race", to="alpha", scale=scale)(PEOPLE, *columns, design=design)
        compared[scale] = {row[".group"]: row for row in result.to_dicts()}
    for other in ("beta", "gamma", "rare"):
        if not groups[index[other]]["se"]:
            continue
        for scale, rows in compared.items():
            row = rows[other]
            first, second = index[other], index["alpha"]
            one, two = value[other], value["alpha"]
            gradient = np.zeros(len(groups))
            if scale == "difference":
                gradient[first], gradient[second] = 1, -1
                middle, half = (row[".upper"] + row[".lower"]) / 2, (row[".upper"] - row[".lower"]) / 2
                expected = one - two
            else:
                gradient[first], gradient[second] = 1 / one, -1 / two
                middle = math.log(row[".upper"] * row[".lower"]) / 2
                half = math.log(row[".upper"] / row[".lower"]) / 2
                expected = math.log(one / two)
            assert middle == pytest.approx(expected, rel=1e-6, abs=1e-9)
            if groups[first]["df"] == groups[second]["df"]:
                error = math.sqrt(gradient @ covariance @ gradient)
                assert half == pytest.approx(stats.t.ppf(0.975, groups[first]["df"]) * error, rel=1e-6)


def test_svy_has_the_same_errors_of_groups() -> None:
    check_every(CASES, check_groups)


def test_svy_has_the_same_errors_of_pairs() -> None:
    check_every(CASES, check_pairs)
