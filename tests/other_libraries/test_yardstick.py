"""Every number that yardstick computed on our data, reproduced.

Once `on_undefined="null"` asks for yardstick's rule, and the macro average for multi-class demographic parity, which
yardstick uses and which is always 0, one difference is left by design, which
`test_brier_class_uses_weights_without_softmax` states.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script

import tidyfair as tf

page = script("coming_from/yardstick.py")
OURS: dict[str, Any] = {name: row for rows in page.ROWS.values() for name, row in rows.items()}
OWN_MULTICLASS_FORM = {"accuracy", "kap", "mcc"}
COLUMNS = {
    "binary": ("y_true", "y_pred"),
    "multiclass": ("y_multi", "pred_multi"),
    "binary_prob": ("y_true", None),
    "numeric": ("y_reg", "pred_reg"),
}
RECORDS = records("yardstick")
DATA = {name: reference_data(name) for name in {record["data"] for record in RECORDS}}


@dataclass(frozen=True)
class Call:
    """One call of ours: everything but the metrics, which are asked for together."""

    data: str
    task: str
    group: str
    estimator: str | None
    weights: bool


def call_of(record: dict[str, Any]) -> Call:
    params = record["params"]
    own_form = params["task"] != "multiclass" or record["metric"] in OWN_MULTICLASS_FORM
    estimator = None if own_form else params.get("estimator", "macro")
    return Call(record["data"], params["task"], params["group"], estimator, params["weights"])


def metric_of(record: dict[str, Any]) -> Any:
    params, factory = record["params"], OURS[record["metric"]]
    return factory(params["by"]) if "by" in params else factory()


def answer(call: Call, metric: Any, *, on_undefined: Any = "null") -> list[dict[str, Any]]:
    options: dict[str, Any] = {"explain": True}
    if call.task == "multiclass":
        # a level that does not occur in a subset is a level of yardstick's factor all the same
        options["labels"] = [0, 1, 2, 3]
    if call.estimator is not None:
        options["estimator"] = call.estimator
    if call.task == "binary_prob":
        options["probs"] = "score"
    result = metric(
        DATA[call.data],
        *COLUMNS[call.task],
        group_by=None if call.group == "none" else call.group,
        case_weights="weight" if call.weights else None,
        on_undefined=on_undefined,
        **options,
    )
    return result.to_dicts()


def test_records_cover_every_kind_of_metric() -> None:
    assert len(RECORDS) == 1_856
    assert {"softmax_of_weights": len(SOFTMAX)} == deviations("yardstick")
    assert {record["metric"] for record in RECORDS} >= {"kap", "equalized_odds", "roc_auc", "ccc", "rmse_difference"}


SOFTMAX = [record for record in RECORDS if record["metric"] == "brier_class" and record["params"]["weights"]]
"""yardstick weighs cases of the Brier score by the softmax of their weights."""


CALLS: dict[Call, list[dict[str, Any]]] = {}
for each in RECORDS:
    if each not in SOFTMAX:
        CALLS.setdefault(call_of(each), []).append(each)


def check_record(record: dict[str, Any], results: list[dict[str, Any]]) -> None:
    assert len(results) == len(record["values"])
    for expected, result in zip(record["values"], results, strict=True):
        for name, value in expected.items():
            if name != ".estimate":
                assert result[name] == value
        estimate = expected.get(".estimate")
        number = None if estimate is None else pytest.approx(float(estimate), rel=1e-9, abs=1e-12)
        assert result[".estimate"] == number


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ConstantWarning")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: "-".join(map(str, astuple(call))))
def test_records_are_reproduced(call: Call) -> None:
    rows: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in answer(call, tf.metric_set(*map(metric_of, CALLS[call]))):
        rows.setdefault((row[".metric"], row[".by"]), []).append(row)

    def check(record: dict[str, Any]) -> None:
        check_record(record, rows[metric_of(record).name, record["params"].get("by")])

    check_every({f"{record['id']} {record['metric']}": record for record in CALLS[call]}, check)


def test_undefined_groups_are_dropped_by_default() -> None:
    # yardstick: NA as soon as one group has no positive; ours: the range of the groups that have a value
    record = next(
        record
        for record in RECORDS
        if (record["data"], record["metric"]) == ("c1000_nopos", "equal_opportunity")
        and record["params"] == {"task": "binary", "by": "race", "group": "none", "weights": False}
    )
    assert ".estimate" not in record["values"][0]
    with pytest.warns(tf.errors.UndefinedWarning, match="sens has no value .zero denominator. in race 'rare'"):
        (result,) = answer(call_of(record), metric_of(record), on_undefined="warn")
    others = reference_data("c1000_nopos").filter(race="rare").height
    assert others > 0
    assert result[".estimate"] is not None
    assert result[".groups_left_out"] == ["rare"]


@pytest.mark.parametrize("record", SOFTMAX, ids=lambda record: record["id"])
def test_brier_class_uses_weights_without_softmax(record: dict[str, Any]) -> None:
    # ours are proportional, so that their scale means nothing; with the softmax of the weights it is yardstick's number
    weight = (pl.col("weight") - pl.col("weight").max()).exp()
    frame = DATA[record["data"]]
    outer = None if record["params"]["group"] == "none" else record["params"]["group"]
    frame = frame.with_columns(softmax=weight.over(outer) if outer else weight)
    options: dict[str, Any] = {"probs": "score", "group_by": outer}
    theirs = tf.brier_class(frame, "y_true", case_weights="softmax", **options)
    for expected, result in zip(record["values"], theirs.to_dicts(), strict=True):
        assert result[".estimate"] == pytest.approx(expected[".estimate"], rel=1e-9)
    ours = tf.brier_class(frame, "y_true", case_weights="weight", **options)
    scaled = tf.brier_class(frame, "y_true", case_weights=(pl.col("weight") * 100).alias("scaled"), **options)
    assert ours[".estimate"].to_list() == pytest.approx(scaled[".estimate"].to_list(), rel=1e-12)


def test_rows_around_metrics_run_on_a_frame() -> None:
    rows, frame = page.ROWS["Around metrics"], DATA["a400_weighted"]
    columns = (frame, "y_true", "y_pred")
    summary = dict(rows["summary.conf_mat"](*columns).select(".metric", ".estimate").rows())
    assert len(summary) == 13
    assert summary["accuracy"] == (frame["y_true"] == frame["y_pred"]).mean()
    assert rows["accuracy_vec"](frame["y_true"], frame["y_pred"])[".estimate"].item() == summary["accuracy"]
    assert rows["conf_mat"](*columns)[".n"].sum() == len(frame)
    assert rows["metrics"](*columns)[".metric"].to_list() == ["accuracy", "kap"]
    for name in ("roc_curve", "pr_curve", "gain_curve", "lift_curve"):
        assert rows[name](frame, "y_true", "score").height > 2


def test_makers_of_metrics_are_called_as_the_page_says() -> None:
    rows = page.ROWS["Around metrics"]
    tweaked = rows["metric_tweak"](tf.f_meas, "f2", {"beta": 2})
    made = rows["new_class_metric"](lambda tp, fn: (tp, tp + fn), "found")
    gap = rows["new_groupwise_metric"](made, "gap", tf.difference())("sex")
    result = tf.metric_set(tweaked, made, gap)(DATA["a400_weighted"], "y_true", "y_pred")
    assert result[".metric"].to_list() == ["f2", "found", "gap"]
    assert rows["new_prob_metric"](lambda truth, probs: probs.mean() - truth.mean(), "bias").kind == "prob"
    assert rows["new_numeric_metric"](lambda truth, estimate: abs(truth - estimate).max(), "worst").kind == "numeric"
