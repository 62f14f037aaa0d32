"""Every class and class-fairness number that yardstick computed on our data, reproduced.

Differences by design are none on these records once `on_undefined="null"` asks for yardstick's rule, and the macro
average for multi-class demographic parity, which yardstick uses and which is always 0.
"""

from __future__ import annotations

from typing import Any

import pytest
from conftest import records, reference_data

import tidyfair as tf

OURS = {
    "fpr_difference": tf.new_groupwise_metric(tf.fall_out, "fpr_difference", tf.difference()),
    "demographic_parity_ratio": tf.new_groupwise_metric(
        tf.detection_prevalence, "demographic_parity_ratio", tf.ratio()
    ),
}
OWN_MULTICLASS_FORM = {"accuracy", "kap", "mcc"}
COLUMNS = {"binary": ("y_true", "y_pred"), "multiclass": ("y_multi", "pred_multi")}
RECORDS = [record for record in records("yardstick") if record["params"]["task"] in COLUMNS]
DATA = {name: reference_data(name) for name in {record["data"] for record in RECORDS}}


def call(record: dict[str, Any], *, on_undefined: Any) -> list[dict[str, Any]]:
    params, name = record["params"], record["metric"]
    metric: Any = OURS.get(name) or getattr(tf, name)
    if "by" in params:
        metric = metric(params["by"])
    options: dict[str, Any] = {}
    if params["task"] == "multiclass":
        # a level that does not occur in a subset is a level of yardstick's factor all the same
        options["labels"] = [0, 1, 2, 3]
        if name not in OWN_MULTICLASS_FORM:
            options["estimator"] = params.get("estimator", "macro")
    result = metric(
        DATA[record["data"]],
        *COLUMNS[params["task"]],
        group_by=None if params["group"] == "none" else params["group"],
        case_weights="weight" if params["weights"] else None,
        on_undefined=on_undefined,
        **options,
    )
    return result.to_dicts()


def test_there_are_records_of_every_kind() -> None:
    assert len(RECORDS) == 1_440
    assert {record["metric"] for record in RECORDS} >= {"kap", "sedi", "equalized_odds", "fpr_difference"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_record(record: dict[str, Any]) -> None:
    results = call(record, on_undefined="null")
    assert len(results) == len(record["values"])
    for expected, found in zip(record["values"], results, strict=True):
        for name, value in expected.items():
            if name != ".estimate":
                assert found[name] == value
        estimate = expected.get(".estimate")
        assert found[".estimate"] == (None if estimate is None else pytest.approx(estimate, rel=1e-9, abs=1e-12))


def test_undefined_groups_are_left_out_unless_asked_otherwise() -> None:
    # yardstick: NA as soon as one group has no positive; ours: the range of the groups that have a value
    record = next(
        record
        for record in RECORDS
        if (record["data"], record["metric"]) == ("c1000_nopos", "equal_opportunity")
        and record["params"] == {"task": "binary", "by": "race", "group": "none", "weights": False}
    )
    assert ".estimate" not in record["values"][0]
    with pytest.warns(tf.UndefinedWarning, match="sens has no value .zero denominator. in race 'rare'"):
        (found,) = call(record, on_undefined="warn")
    others = reference_data("c1000_nopos").filter(race="rare").height
    assert others > 0
    assert found[".estimate"] is not None
    assert found[".groups_left_out"] == ["rare"]
