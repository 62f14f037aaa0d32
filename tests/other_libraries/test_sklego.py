"""Every number that scikit-lego's fairness scorers computed on our data: reproduced, or listed with the reason."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script
from sklearn import metrics

import tidyfair as tf

page = script("coming_from/sklego.py")
CODES = {"alpha": 0, "beta": 1, "gamma": 2, "rare": 3}
RECORDS = {f"{record['id']}-{record['function']}": record for record in records("sklego")}


class Known:
    """An estimator whose predictions are known."""

    def __init__(self, predicted: np.ndarray) -> None:
        self.predicted = predicted

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803 - scikit-learn's
        del X
        return self.predicted


@cache
def data(name: str) -> pl.DataFrame:
    race = pl.col("race")
    return reference_data(name).with_columns(
        race_code=race.replace_strict(CODES, return_dtype=pl.Int64), is_rare=(race == "rare").cast(pl.Int64),
        is_alpha=(race == "alpha").cast(pl.Int64), ones=pl.lit(1, pl.Int64),
    )  # fmt: skip


def predictions(record: dict[str, Any]) -> np.ndarray:
    asked, frame = record["params"].get("predict", "y_pred"), data(record["data"])
    return np.zeros(len(frame), dtype=int) if asked == "all 0" else frame[asked].to_numpy()


SUBSETS: dict[str, Any] = {
    "sex == 1": lambda people: people["sex"] == 1,
    "race == 'rare'": lambda people: people["race"] == "rare",
    "race == 'gamma'": lambda people: people["race"] == "gamma",
    "race == 'nobody' (empty)": lambda people: people["race"] == "nobody",
    "y_true == 1": lambda people: people["y_true"] == 1,
    "numpy (n,1) mask": lambda people: (people["sex"] == 1).to_numpy()[:, None],
}


@cache
def ours(name: str) -> float:
    record = RECORDS[name]
    params: dict[str, Any] = {"X": "pandas"} | record["params"]
    frame = data(record["data"])
    column = params.get("column") or params.get("sensitive_column")
    given = {
        "column": 0 if params["X"] == "numpy" else column, "positive_target": params.get("positive_target"),
        "subset": SUBSETS.get(params.get("subset", "")), "score": getattr(metrics, params.get("score", ""), None),
        "kwargs": params.get("kwargs"),
    }  # fmt: skip
    row = page.ROWS["metrics"][record["function"]]
    scorer = row(**{name: given[name] for name in inspect.signature(row).parameters})
    frames = {"pandas": frame.to_pandas, "numpy": lambda: frame.select(column).to_numpy()}
    people: Any = frames.get(params["X"], lambda: frame)()
    truth = frame["y_true"]
    return scorer(Known(predictions(record)), people, truth if params["X"] == "polars, y polars" else truth.to_numpy())


def deviation(name: str) -> str | None:
    record = RECORDS[name]
    params = record["params"]
    column = params.get("column") or params.get("sensitive_column")
    if column == "ones" and record["function"] != "p_percent_score":
        return "one_group"
    if record.get("error"):
        if record["function"] == "subset_score":
            return None
        return "two_groups_only" if column == "race_code" else "polars_labels"
    if record["function"] == "correlation_score" and column == "race_code":
        return "codes_are_numbers"
    mine = ours(name)
    return "undefined_is_a_number" if math.isnan(mine) and not math.isnan(float(record["value"])) else None


NAMES: dict[str, dict[str, str]] = {}
for each, its_record in RECORDS.items():
    NAMES.setdefault(its_record["function"], {})[each] = each


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*zero_division.*", "ignore::UserWarning")
@pytest.mark.parametrize("function", NAMES)
def test_records_are_reproduced(function: str) -> None:
    check_every(NAMES[function], check_record)


def check_record(name: str) -> None:
    record = RECORDS[name]
    rule = deviation(name)
    if record["params"].get("subset") == "numpy (n,1) mask":
        with pytest.raises(tf.errors.ArgumentError, match="one Boolean for each of"):
            ours(name)
        return
    mine = ours(name)
    if rule is None:
        assert mine == pytest.approx(float(record["value"]), rel=1e-9, abs=1e-9, nan_ok=True)
    elif rule == "undefined_is_a_number":
        assert record["value"] in (0, 1)
    else:
        assert math.isnan(mine) or (mine <= 0 if record["function"] == "correlation_score" else 0 <= mine <= 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*zero_division.*", "ignore::UserWarning")
def test_deviations_match_the_table() -> None:
    result = Counter(rule for name in RECORDS if (rule := deviation(name)))
    assert result == deviations("sklego")
