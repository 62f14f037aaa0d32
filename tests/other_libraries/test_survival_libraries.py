"""Every number of scikit-survival, lifelines and scoringrules on our data: reproduced, or listed with the reason."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = (2.1, 5.1, 9.1)
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
TRUTH = tf.survival.outcome("time", "event")
PROBS = {time: f"survival_{number}" for number, time in enumerate(TIMES)}
QUANTILES = {level: f"q{100 * level:02.0f}" for level in LEVELS}
BY_RISK = tf.metric_tweak(tf.survival.concordance, "concordance", risk=True)
UNO = tf.metric_tweak(tf.survival.concordance_uno, "uno", risk=True)
UNO_TO_TAU = tf.metric_tweak(tf.survival.concordance_uno, "uno", risk=True, tau=12.1)
RECORDS = {f"{record['data']} {record['function']} {record['params']}": record for record in records("survival")}
JUST_BEFORE = 1e-7
"""Less than the distance of any two times."""


@cache
def rows_of(data: str, group: str) -> pl.DataFrame:
    rows = reference_data(f"survival/{data}")
    return rows.filter(sex=group) if group else rows


def censoring(rows: pl.DataFrame, weights: str | None) -> tf.types.CensoringDistribution:
    return tf.survival.censoring_distribution(rows, TRUTH, case_weights=weights)


def numbers(
    metric: tf.types.Metric, rows: pl.DataFrame, weights: str | None, *columns: Any, **options: Any
) -> list[float]:
    return metric(rows, *columns, case_weights=weights, **options)[".estimate"].to_list()


def calls(truth: tf.types.Survival) -> dict[str, Callable[[pl.DataFrame, str | None], list[float]]]:
    interval = tf.prediction_intervals.interval("q05", "q95", level=0.9)
    # divided by the last time, and there by the distance from the first to the last
    stretched = TIMES[-1] / (TIMES[-1] - TIMES[0])
    return {
        "sksurv concordance_index_censored": lambda rows, w: numbers(BY_RISK, rows, w, truth, "risk"),
        "sksurv concordance_index_ipcw": lambda rows, w: numbers(UNO, rows, w, truth, "risk"),
        "sksurv concordance_index_ipcw tau": lambda rows, w: numbers(UNO_TO_TAU, rows, w, truth, "risk"),
        "sksurv brier_score": lambda rows, w: numbers(tf.survival.brier, rows, w, truth, probs=PROBS),
        "sksurv integrated_brier_score": lambda rows, w: [
            stretched * value for value in numbers(tf.survival.brier_integrated, rows, w, truth, probs=PROBS)
        ],
        "sksurv cumulative_dynamic_auc": lambda rows, w: numbers(tf.survival.roc_auc, rows, w, truth, probs=PROBS),
        "sksurv CensoringDistributionEstimator": lambda rows, w: censoring(rows, w).before(np.array(TIMES)).tolist(),
        "lifelines KaplanMeierFitter of censoring": lambda rows, w: censoring(rows, w).before(np.array(TIMES)).tolist(),
        "lifelines concordance_index": lambda rows, w: numbers(
            tf.survival.concordance, rows, w, truth, "predicted_time"
        ),
        "scoringrules interval_score": lambda rows, w: numbers(tf.prediction_intervals.score, rows, w, "y", interval),
        "scoringrules weighted_interval_score": lambda rows, w: numbers(
            tf.prediction_intervals.weighted_interval_score, rows, w, "y", QUANTILES
        ),
        "scoringrules crps_quantile": lambda rows, w: numbers(
            tf.prediction_intervals.weighted_interval_score, rows, w, "y", QUANTILES
        ),
        "scoringrules quantile_score": lambda rows, w: numbers(
            tf.prediction_intervals.quantile_loss, rows, w, "y", QUANTILES
        ),
    }


def censored_at_the_event(record: dict[str, Any], rows: pl.DataFrame, weights: str | None) -> list[float]:
    """The number with the probability to be uncensored at a time, instead of just before it."""
    just_before = censoring(rows, weights)
    at_time = tf.types.CensoringDistribution(
        tuple(time - JUST_BEFORE for time in just_before.times), just_before.probabilities, just_before.rows
    )
    return calls(tf.survival.outcome("time", "event", censoring=at_time))[record["function"]](rows, weights)


def events_at_risk(record: dict[str, Any], rows: pl.DataFrame, weights: str | None) -> list[float]:
    """The censoring distribution with rows that have the event at the same time still at risk."""
    later = rows.with_columns(time=pl.col("time") + JUST_BEFORE * pl.col("event"))
    return calls(TRUTH)[record["function"]](later, weights)


def median_as_its_error(record: dict[str, Any], rows: pl.DataFrame, weights: str | None) -> list[float]:
    """The weighted interval score with the median itself in place of its absolute error."""
    (own,) = calls(TRUTH)[record["function"]](rows, weights)
    weight = np.ones(len(rows)) if weights is None else rows[weights].to_numpy()
    error = (rows["q50"] - (rows["y"] - rows["q50"]).abs()).to_numpy()
    return [own + 0.5 * float(np.average(error, weights=weight)) / (2 + 0.5)]


RULES: dict[str, Callable[[dict[str, Any], pl.DataFrame, str | None], list[float]]] = {
    "sksurv": censored_at_the_event,
    "lifelines": events_at_risk,
    "scoringrules": median_as_its_error,
}


def same(one: list[float], other: Any) -> bool:
    expected = other if isinstance(other, list) else [other]
    return one == pytest.approx(expected, rel=1e-10, abs=1e-10)


def rule_of(record: dict[str, Any]) -> str | None:
    """The rule by which a record differs; None where it is the same."""
    rows, weights = rows_of(record["data"], record["params"]["group"]), record["params"]["weights"] or None
    value = calls(TRUTH)[record["function"]](rows, weights)
    if same(value, record["value"]):
        return None
    rule = RULES[record["function"].partition(" ")[0]]
    if same(rule(record, rows, weights), record["value"]):
        return rule.__name__
    pytest.fail(f"{value} here, {record['value']} there")


def test_every_record_is_reproduced_or_follows_a_rule() -> None:
    found: Counter[str] = Counter()

    def check(record: dict[str, Any]) -> None:
        rule = rule_of(record)
        if rule is not None:
            found[f"{record['function'].partition(' ')[0]} {rule}"] += 1

    check_every(RECORDS, check)
    libraries = {library: deviations(library) for library in ("sksurv", "lifelines", "scoringrules")}
    assert found == {
        f"{library} {rule}": count for library, rules in libraries.items() for rule, count in rules.items()
    }


def test_published_example_of_yardstick_is_reproduced() -> None:
    rows = pl.DataFrame({"truth": [3.3, 7.1], "a": [1, 8], "b": [2, 9], "c": [3, 10], "d": [4, 11]})
    levels = dict(zip((0.2, 0.4, 0.6, 0.8), "abcd", strict=True))
    assert tf.prediction_intervals.weighted_interval_score(rows, "truth", levels)[".estimate"].item() == pytest.approx(
        1.275, rel=1e-12
    )
