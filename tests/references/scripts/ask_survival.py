"""Make `survival300`, `survival300_tied` and `intervals300`, and ask other libraries for their metrics.

`python tests/references/scripts/ask_survival.py` needs scikit-survival, lifelines, scoringrules and polars, and
writes the data and `survival.json.gz` anew. Case weights are whole numbers: a row of weight 3 is asked as three rows.
"""

# pyright: reportMissingImports=false
# these libraries are not needed by tests

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scoringrules
from lifelines import KaplanMeierFitter
from lifelines.utils import concordance_index
from sksurv.metrics import (
    brier_score,
    concordance_index_censored,
    concordance_index_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)
from sksurv.nonparametric import CensoringDistributionEstimator
from sksurv.util import Surv

REFERENCES = Path(__file__).parents[1]
ROWS = 300
TIMES = [2.1, 5.1, 9.1]
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
TAU = 12.1


def survival_times(seed: int, *, tied: bool) -> pl.DataFrame:
    """Rows with ties among events and among censored rows and, if `tied`, between the two."""
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], ROWS)
    score = random.normal(0, 1, ROWS)
    time = random.exponential(np.exp(2 - 0.7 * score - 0.3 * (sex == "m")))
    censored = random.exponential(15, ROWS)
    event = time <= censored
    # events on the halves; others on the quarters between them, unless all are on the same grid
    observed = np.ceil(np.minimum(time, censored) * 2) / 2 + np.where(event | tied, 0.0, 0.25)
    observed = np.minimum(observed, 20.0)
    event &= observed < 20
    rate = np.exp(-2 + 0.6 * score)
    probabilities = {f"survival_{number}": np.exp(-rate * at).round(3) for number, at in enumerate(TIMES)}
    return pl.DataFrame(
        {
            "time": observed, "event": event, "sex": sex, "risk": score.round(1),
            "predicted_time": (np.log(2) / rate).round(2), **probabilities,
            "weight": random.integers(1, 4, ROWS),
        }
    )  # fmt: skip


def intervals(seed: int) -> pl.DataFrame:
    """Rows with quantiles of a number."""
    random = np.random.default_rng(seed)
    centre = random.normal(10, 3, ROWS)
    columns = {"y": (centre + random.normal(0, 2, ROWS)).round(2), "sex": random.choice(["f", "m"], ROWS)}
    for level, z in zip(LEVELS, (-1.645, -0.674, 0, 0.674, 1.645), strict=True):
        columns[f"q{100 * level:02.0f}"] = (centre + 1.6 * z).round(2)
    return pl.DataFrame(columns | {"weight": random.integers(1, 4, ROWS)})


def answers_of_survival(rows: pl.DataFrame) -> dict[str, Any]:
    """The answers on the rows of one group, which are the training data too."""
    event, time = rows["event"].to_numpy(), rows["time"].to_numpy()
    truth = Surv.from_arrays(event, time)
    estimate = rows.select(f"survival_{number}" for number in range(len(TIMES))).to_numpy()
    areas, _ = cumulative_dynamic_auc(truth, truth, 1 - estimate, TIMES)
    at_risk = KaplanMeierFitter().fit(time, event_observed=~event)
    return {
        "sksurv concordance_index_censored": concordance_index_censored(event, time, rows["risk"].to_numpy())[0],
        "sksurv concordance_index_ipcw": concordance_index_ipcw(truth, truth, rows["risk"].to_numpy())[0],
        "sksurv concordance_index_ipcw tau": concordance_index_ipcw(truth, truth, rows["risk"].to_numpy(), tau=TAU)[0],
        "sksurv brier_score": brier_score(truth, truth, estimate, TIMES)[1].tolist(),
        "sksurv integrated_brier_score": integrated_brier_score(truth, truth, estimate, TIMES),
        "sksurv cumulative_dynamic_auc": areas.tolist(),
        "sksurv CensoringDistributionEstimator": CensoringDistributionEstimator()
        .fit(truth).predict_proba(np.array(TIMES)).tolist(),
        "lifelines concordance_index": concordance_index(time, rows["predicted_time"].to_numpy(), event),
        "lifelines KaplanMeierFitter of censoring": at_risk.survival_function_at_times(TIMES).tolist(),
    }  # fmt: skip


def answers_of_intervals(rows: pl.DataFrame) -> dict[str, Any]:
    """The answers on the rows of one group."""
    y, quantiles = rows["y"].to_numpy(), rows.select(pl.col("^q[0-9]+$")).to_numpy()
    lower, upper, median = quantiles[:, [1, 0]], quantiles[:, [3, 4]], quantiles[:, 2]
    losses = [scoringrules.quantile_score(y, quantiles[:, number], level) for number, level in enumerate(LEVELS)]
    alpha = np.array([0.5, 0.1])
    return {
        "scoringrules interval_score": float(
            np.mean(scoringrules.interval_score(y, quantiles[:, 0], quantiles[:, 4], 0.1))
        ),
        "scoringrules weighted_interval_score": float(
            np.mean(scoringrules.weighted_interval_score(y, median, lower, upper, alpha))
        ),
        "scoringrules quantile_score": [float(np.mean(loss)) for loss in losses],
        "scoringrules crps_quantile": float(np.mean(scoringrules.crps_quantile(y, quantiles, np.array(LEVELS)))),
    }


def main() -> None:
    """Write data and answers."""
    data = {
        "survival300": (survival_times(7, tied=False), answers_of_survival),
        "survival300_tied": (survival_times(8, tied=True), answers_of_survival),
        "intervals300": (intervals(9), answers_of_intervals),
    }
    records: list[dict[str, Any]] = []
    for name, (rows, answers) in data.items():
        rows.write_parquet(REFERENCES / "data" / "survival" / f"{name}.parquet")
        repeated = rows.select(pl.exclude("weight").repeat_by("weight").explode())
        for weights, frame in (("", rows), ("weight", repeated)):
            for group in ("", "f", "m"):
                own = frame.filter(pl.col("sex") == group) if group else frame
                for function, value in answers(own).items():
                    params = {"weights": weights, "group": group}
                    records.append({"function": function, "data": name, "params": params, "value": value})
    with gzip.GzipFile(REFERENCES / "survival.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(records).encode())
    print(len(records))


if __name__ == "__main__":
    main()
