"""Ask svy every question of `svy.json.gz`, and write its answers; `--data` makes the data of these questions again.

`python tests/references/scripts/ask_svy.py` needs svy 0.35.0, which tests do not.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import svy  # pyright: ignore[reportMissingImports] - not needed by tests

REFERENCES = Path(__file__).parents[1]
DATA = REFERENCES / "data" / "survey400.parquet"
REPLICATES = 16
SHARED: dict[str, Any] = {"prefix": "r", "n_reps": REPLICATES}
DESIGNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "strata and clusters": ({"stratum": "stratum", "psu": "psu", "wgt": "weight"}, {}),
    "nested clusters": ({"stratum": "stratum", "psu": "number", "wgt": "weight"}, {}),
    "clusters": ({"psu": "psu", "wgt": "weight"}, {}),
    "strata": ({"stratum": "stratum", "wgt": "weight"}, {}),
    "weights": ({"wgt": "weight"}, {}),
    "finite population": ({"stratum": "stratum", "psu": "psu", "wgt": "weight", "pop_size": "population"}, {}),
    "lonely adjust": ({"stratum": "lonely", "psu": "psu", "wgt": "weight", "singleton": "center"}, {}),
    "lonely certainty": ({"stratum": "lonely", "psu": "psu", "wgt": "weight", "singleton": "skip"}, {}),
    "brr": ({"wgt": "weight", "rep_wgts": svy.BrrWgts(**SHARED)}, {}),
    "fay": ({"wgt": "weight", "rep_wgts": svy.BrrWgts(fay_coef=0.3, **SHARED)}, {}),
    "jackknife": ({"wgt": "weight", "rep_wgts": svy.JackknifeWgts(kind="jk1", **SHARED)}, {}),
    "bootstrap": ({"wgt": "weight", "rep_wgts": svy.BootstrapWgts(**SHARED)}, {}),
    "successive_difference": ({"wgt": "weight", "rep_wgts": svy.SdrWgts(**SHARED)}, {}),
    "successive_difference about the mean": (
        {"wgt": "weight", "rep_wgts": svy.SdrWgts(**SHARED)},
        {"variance_center": "rep_mean"},
    ),
}


def survey_data() -> pl.DataFrame:
    """The people of `a400_weighted` in 6 strata of 3 to 9 clusters, one of which has a single one in `lonely`."""
    random = np.random.default_rng(21)
    people = pl.read_parquet(REFERENCES / "data" / "a400_weighted.parquet")
    stratum = np.sort(random.integers(0, 6, len(people)))
    number = random.integers(0, np.array([3, 4, 5, 6, 8, 9])[stratum])
    lonely = np.where((stratum == 0) & (number == 0), 9, stratum)
    factor = random.exponential(1, (REPLICATES, 60))
    psu = 10 * stratum + number
    replicates = {f"r{index + 1}": people["weight"].to_numpy() * factor[index, psu] for index in range(REPLICATES)}
    return people.with_columns(
        stratum=stratum, number=number, psu=psu, lonely=lonely, population=np.array([12, 9, 10, 20, 40, 15])[stratum],
        hits=(pl.col("y_true") == 1) & (pl.col("y_pred") == 1), **replicates,
    ).with_columns(pl.col("hits").cast(pl.Int64))  # fmt: skip


def ask(design: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The selection rate, the mean and the sensitivity of the races, and their covariances."""
    sample = svy.Sample(pl.read_parquet(DATA), svy.Design(**design))
    if "rep_wgts" in design:
        options = {"variance_center": "estimate", "method": "replication", **options}
    estimation, by = sample.estimation, {"by": "race", **options}
    asked = {
        "selection_rate": estimation.prop("y_pred", **by),
        "mean_prediction": estimation.mean("pred_reg", **by),
        "sens": estimation.ratio("hits", "y_true", **by),
    }
    answers: dict[str, Any] = {}
    for name, answer in asked.items():
        table = answer.to_polars()
        chosen = np.ones(len(table), dtype=bool)
        if name == "selection_rate":
            chosen = (table["y_pred"].cast(pl.String) == "1").to_numpy()
        rows = table.filter(chosen).select("race", "est", "se", "lci", "uci", "df").to_dicts()
        covariance = np.asarray(answer.covariance)[np.ix_(chosen, chosen)]
        answers[name] = {"groups": rows, "covariance": covariance.tolist()}
    return answers


def main() -> None:
    """Write all records."""
    warnings.simplefilter("ignore")
    if "--data" in sys.argv:
        survey_data().write_parquet(DATA)
    records: list[dict[str, Any]] = []
    for name, (design, options) in DESIGNS.items():
        records.append(
            {"function": "estimation", "data": DATA.stem, "params": {"design": name}, "value": ask(design, options)}
        )
    with gzip.GzipFile(REFERENCES / "svy.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(records).encode())


if __name__ == "__main__":
    main()
