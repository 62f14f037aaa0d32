"""Every number that AllenNLP computed on our data, by the calls on the page "Coming from AllenNLP"."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any

import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script

import tidyfair as tf

page = script("coming_from/allennlp.py")
CODES = {
    "sex": ("sex", {"0": "0", "1": "1"}),
    "race_code": ("race", {"alpha": "0", "beta": "1", "gamma": "2", "rare": "3"}),
    "age_code": ("age_band", {"18-34": "0", "35-54": "1", "55+": "2"}),
}
OWN = {
    "get_metric before any call": "a state of its object",
    "unknown dist_metric": "an argument of its own",
    "predicted id >= num_classes": "labels need no numbers here",
    "protected id >= num_protected_variable_labels": "groups need no numbers here",
    "shape mismatch": "columns of a frame are of one length",
    "mask all False": "a filter that leaves no rows",
}
"""Cases about AllenNLP's own arguments."""
EVERY = records("allennlp")
RECORDS = {
    f"{record['id']}-{record['function']}": record for record in EVERY if record["params"].get("case") not in OWN
}

Values = dict[tuple[str | None, str], float | None]


@cache
def ours(data: str, function: str, by: str, distance: str, *, masked: bool) -> Values:
    """Our value of each given label and group."""
    column, codes = CODES[by]
    frame = reference_data(data).with_row_index("row")
    frame = frame.filter(pl.col("row") % 5 != 2) if masked else frame
    metric = page.ROWS["fairness_metrics"][f'{function}(…, "{distance}")'](column)
    result = metric.by_group(frame, "y_multi", "pred_multi", labels=[0, 1, 2, 3], on_undefined="ignore")
    keys = result.select(".level", pl.col(".group").replace(codes)).rows()
    return dict(zip(keys, result[".estimate"], strict=True))


def asked(record: dict[str, Any]) -> Values:
    params = record["params"]
    by, masked = params["protected_variable_labels"], params["mask"] is not None
    return ours(record["data"], record["function"], by, params["dist_metric"], masked=masked)


def theirs(record: dict[str, Any]) -> Values:
    value = record["value"]
    if record["function"] == "Independence":
        return {(None, group): number(item) for group, item in value.items()}
    return {(level, group): number(item) for level, groups in value.items() for group, item in groups.items()}


def number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)


def test_records_are_reproduced() -> None:
    check_every({name: record for name, record in RECORDS.items() if record["value"] is not None}, check_record)


def check_record(record: dict[str, Any]) -> None:
    mine = asked(record)
    for key, expected in theirs(record).items():
        result = mine.get(key)
        assert (result is None) == (expected is None), key
        assert result is None or result == pytest.approx(expected, rel=1e-6, abs=1e-6), key  # single precision


def test_records_where_allennlp_raises_still_have_values() -> None:
    raised = [record for record in RECORDS.values() if record["value"] is None]
    assert {"raises": len(raised)} == deviations("allennlp")
    result = Counter(record["function"] for record in raised)
    assert result == {"Independence": 12, "Separation": 26, "Sufficiency": 20}
    assert all(any(value is not None for value in asked(record).values()) for record in raised)


def test_mutual_information_equals_g_statistic_over_twice_the_rows() -> None:
    stats = pytest.importorskip("scipy.stats")
    frame = reference_data("a400_weighted")
    result = tf.distributions.mutual_information("race")(frame, estimate="pred_multi")[".estimate"].item()
    table = frame.pivot("pred_multi", index="race", values="y_true", aggregate_function="len").fill_null(0)
    g = stats.chi2_contingency(table.drop("race").to_numpy(), correction=False, lambda_="log-likelihood").statistic
    assert 2 * frame.height * result == pytest.approx(g, rel=1e-9)
