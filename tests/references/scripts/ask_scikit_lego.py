"""Ask scikit-lego every question of `sklego.json.gz` again, and print the records that it answers otherwise.

`python tests/references/scripts/ask_scikit_lego.py` needs scikit-lego, which `pip install -e '.[test]'` installs.
"""

from __future__ import annotations

import gzip
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import sklearn.metrics
import sklego.metrics

REFERENCES = Path(__file__).parents[1]
CODES = {"alpha": 0, "beta": 1, "gamma": 2, "rare": 3}
SUBSETS: dict[str, Any] = {
    "sex == 1": lambda people: people["sex"] == 1,
    "race == 'rare'": lambda people: people["race"] == "rare",
    "race == 'gamma'": lambda people: people["race"] == "gamma",
    "race == 'nobody' (empty)": lambda people: people["race"] == "nobody",
    "y_true == 1": lambda people: people["y_true"] == 1,
    "numpy (n,1) mask": lambda people: (people["sex"] == 1).to_numpy()[:, None],
}


class Known:
    """An estimator whose predictions are known."""

    def __init__(self, predictions: np.ndarray) -> None:
        self.predictions = predictions

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803 - scikit-learn's name
        # a subset is asked for the predictions of its rows
        return self.predictions[X.index] if hasattr(X, "index") else self.predictions


def rows_of(data: str) -> pl.DataFrame:
    race = pl.col("race")
    return pl.read_parquet(REFERENCES / "data" / f"{data}.parquet").with_columns(
        race_code=race.replace_strict(CODES, return_dtype=pl.Int64),
        is_rare=(race == "rare").cast(pl.Int64),
        is_alpha=(race == "alpha").cast(pl.Int64),
        ones=pl.lit(1, pl.Int64),
    )


def ask(record: dict[str, Any]) -> float:
    params, rows = record["params"], rows_of(record["data"])
    kind, predicted = params.get("X", "pandas"), params.get("predict", "y_pred")
    column = params.get("column") or params.get("sensitive_column")
    people: Any = rows.to_pandas() if kind == "pandas" else rows
    if kind == "numpy":
        people, column = rows.select(column).to_numpy(), 0
    truth: Any = rows["y_true"] if kind == "polars, y polars" else rows["y_true"].to_numpy()
    predictions = np.zeros(len(rows), dtype=int) if predicted == "all 0" else rows[predicted].to_numpy()
    function: Any = getattr(sklego.metrics, record["function"])
    if record["function"] == "subset_score":
        score = getattr(sklearn.metrics, params["score"])
        picker = SUBSETS[params["subset"]]
        scorer = function(lambda people, _: picker(people), score, **params["kwargs"])
    elif record["function"] == "correlation_score":
        scorer = function(column)
    else:
        scorer = function(column, params["positive_target"])
    return float(scorer(Known(predictions), people, truth))


def agrees(record: dict[str, Any]) -> bool:
    try:
        answer = ask(record)
    except Exception as error:  # noqa: BLE001 - records hold errors of any kind
        return bool(record.get("error")) and record["error"]["type"] == type(error).__name__
    expected = record["value"]
    if expected is None:
        return False
    return math.isclose(answer, float(expected), rel_tol=1e-9, abs_tol=1e-12) or (
        math.isnan(answer) and math.isnan(float(expected))
    )


if __name__ == "__main__":
    with gzip.open(REFERENCES / "sklego.json.gz", "rt") as file:
        records: list[dict[str, Any]] = json.load(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differing = [record["id"] for record in records if not agrees(record)]
    print(f"{len(records) - len(differing)} of {len(records)} records agree.", *differing, sep="\n")
