"""yardstick's results on its own data, edge cases included; skipped where the data are absent.

Every record but those of curves is reproduced, except by the rules of `deviation`, which `references/deviations.md`
explains; errors about R, or about arguments that we do not have, are left out.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl
import pytest
from conftest import DOCS, SHARED, check_every, deviations
from public_names import public

import tidyfair as tf

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="yardstick's data are not here")

OWN_FORM = {"accuracy", "kap", "mcc"}
ALL_GROUPS: dict[str, Any] = {"unknown": "group"}
"""yardstick compares rows with a missing group like a group of their own."""


def load() -> list[dict[str, Any]]:
    if not SHARED.exists():
        return []
    with gzip.open(SHARED / "yardstick_records.json.gz", "rt") as file:
        result = json.load(file)
    return [record for record in result if record["section"] != "edge_curve" and not record.get("error")]


RECORDS = load()


@cache
def data(name: str) -> pl.DataFrame:
    return pl.read_parquet(SHARED / f"{name}.parquet")


def levels(record: dict[str, Any]) -> list[str]:
    dtype = data(record["data"]).schema[record["columns"]["truth"]]
    return dtype.categories.to_list() if isinstance(dtype, pl.Enum) else []


def metric(record: dict[str, Any]) -> Any:
    params = record["params"]
    if "aggregate" in params:
        parts = [public(name) for name in params["fn"]]
        pooled: dict[str, Any] = {
            "diff_range": pl.col(".estimate").max() - pl.col(".estimate").min(),
            "ratio_range": pl.col(".estimate").min() / pl.col(".estimate").max(),
        }
        # yardstick's functions see the rows of all metrics together
        aggregate = tf.difference() if params["aggregate"] == "max_metric_diff" else pooled[params["aggregate"]]
        return tf.new_groupwise_metric(tf.metric_set(*parts), record["metric"], aggregate)(params["by"], **ALL_GROUPS)
    if record["section"] == "metric_set":
        members = dict.fromkeys((row[".metric"], by(row)) for row in record["values"])
        f2 = {"f2": tf.metric_tweak(tf.f_meas, "f2", beta=2)}
        return tf.metric_set(
            *(
                public(name)(feature, **ALL_GROUPS) if feature else f2.get(name) or tweaked(name, params)
                for name, feature in members
            )
        )
    if record["metric"] == "summary.conf_mat":
        return tf.metric_set(*(tweaked(row[".metric"], params) for row in record["values"]))
    return tweaked(record["metric"], params)


def tweaked(name: str, params: dict[str, Any]) -> tf.types.Metric:
    result: tf.types.Metric = public(name)
    options = {key: value for key, value in params["options"].items() if key in dict(result.definition.options)}
    if "costs" in options:
        options["costs"] = {(row["truth"], row["estimate"]): row["cost"] for row in options["costs"]}
    return tf.metric_tweak(result, name, **options) if options else result


@dataclass(frozen=True)
class Call:
    """One call of ours: everything but the metrics, which are asked for together."""

    data: str
    truth_known: bool
    """Only the rows whose truth is known."""
    numbers: tuple[str, ...]
    """Columns of numbers, of which a file without rows does not say that they are."""
    truth: str
    estimate: str | None
    options: tuple[tuple[str, Any], ...]

    def __call__(self, metric: Any) -> pl.DataFrame:
        frame = data(self.data)
        if self.truth_known:
            frame = frame.filter(pl.col(self.truth).is_not_null())
        if frame.is_empty():
            frame = frame.with_columns(pl.col(name).cast(pl.Float64, strict=False) for name in self.numbers)
        return metric(frame, self.truth, self.estimate, **dict(self.options))


def call_of(record: dict[str, Any]) -> Call:
    params, columns = record["params"], record["columns"]
    options: dict[str, Any] = {"case_weights": columns["case_weights"], "group_by": tuple(params["group"]) or None}
    truth: str = columns["truth"]
    estimate: Any = columns["estimate"]
    if record["metric"] == "conf_mat":
        return Call(
            record["data"],
            truth_known=False,
            numbers=(),
            truth=truth,
            estimate=estimate,
            options=tuple(options.items()),
        )
    scores: list[str] = []
    if record["kind"] in ("prob", "ordered_prob", "mixed"):
        scores = list(estimate)
        estimate = scores.pop(0) if record["kind"] == "mixed" else None
        options["probs"] = scores[0] if len(scores) == 1 else tuple(scores)
    names = levels(record)
    averaged = params["estimator"] not in (None, "binary")
    if record["kind"] == "numeric":
        pass
    elif averaged or len(names) > 2:
        own = all(name in OWN_FORM for name in params.get("fn", [record["metric"]]))
        scored = record["kind"] in ("prob", "ordered_prob", "mixed")
        options["estimator"] = None if own or (scored and not params["estimator"]) else params["estimator"] or "macro"
        if columns["case_weights"] and "hand_till" not in str(params["estimator"]) and reads(record, "roc_auc"):
            # with weights, yardstick's default silently becomes the macro average; ours are weighted pairs
            options["estimator"] = params["estimator"] or "macro"
    else:
        options["pos_label"] = names[1 if params["event_level"] == "second" else 0]
    options |= {"na_rm": params["na_rm"], "on_undefined": "null"}
    reason = deviation(record)
    numbers = (truth, estimate) if record["kind"] == "numeric" else tuple(scores)
    truth_known = reason == "selection_without_truth"
    return Call(record["data"], truth_known, numbers, truth, estimate, tuple(options.items()))


def members(record: dict[str, Any]) -> list[Any]:
    asked = metric(record)
    return list(asked) if isinstance(asked, tf.types.MetricSet) else [asked]


@cache
def by_call() -> dict[Call, list[dict[str, Any]]]:
    """The records that have estimates, by the call that they are computed in."""
    calls: dict[Call, list[dict[str, Any]]] = {}
    for record in RECORDS:
        if record["metric"] != "conf_mat" and not raises(record):
            calls.setdefault(call_of(record), []).append(record)
    return calls


@cache
def answers(call: Call) -> dict[str, list[dict[str, Any]]]:
    """The rows of each record of a call, all computed together."""
    asked = [(record["id"], member) for record in by_call()[call] for member in members(record)]
    named = [replace(member, name=str(number)) for number, (_, member) in enumerate(asked)]
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in call(tf.metric_set(*named)).to_dicts():
        name, member = asked[int(row[".metric"])]
        rows.setdefault(name, []).append({**row, ".metric": member.name})
    return rows


def reads(record: dict[str, Any], name: str) -> bool:
    return name in {
        record["metric"],
        *record["params"].get("fn", []),
        *(row.get(".metric") for row in record["values"]),
    }


def cells(record: dict[str, Any]) -> tuple[dict[Any, float], dict[Any, float]]:
    table = call_of(record)(tf.conf_mat)
    count = ".weight" if record["columns"]["case_weights"] else ".n"
    keys = record["params"]["group"]
    result = {tuple(row[:-1]): row[-1] for row in table.select(*keys, ".predicted", ".truth", count).rows()}
    theirs = {
        (*(row["key"][key] for key in keys), row["Prediction"], row["Truth"]): row["n"] for row in record["values"]
    }
    return result, theirs


def estimates(record: dict[str, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
    keys = record["params"]["group"]
    result = {
        (*(row[key] for key in keys), row[".metric"], row[".by"], estimator(row)): row[".estimate"]
        for row in answers(call_of(record)).get(record["id"], [])
    }
    theirs = {
        (*(row["key"][key] for key in keys), row[".metric"], by(row), estimator(row)): row[".estimate"]
        for row in record["values"]
    }
    return result, theirs


def estimator(row: dict[str, Any]) -> str | None:
    # yardstick calls roc_aunp a macro average, which it weighs, and a binary ranked_prob_score multi-class
    return None if row[".metric"] in ("roc_aunp", "ranked_prob_score") else row[".estimator"]


def by(row: dict[str, Any]) -> str | None:
    return None if row.get(".by") in (None, "NA") else row[".by"]


def deviation(record: dict[str, Any]) -> str | None:
    """The rule of `references/deviations.md` by which our answer is another one; its first word is the kind of ours."""
    frame, columns = data(record["data"]), record["columns"]
    truth, weights, params = frame[columns["truth"]], columns["case_weights"], record["params"]
    weight: Any = frame[weights] if weights else None
    if weights and (weight.dtype == pl.String or weight.null_count() or not weight.sum()):
        return "weights_missing"
    weighing = frame.filter(weight > 0) if weights else frame
    unweighing = bool(weights) and len(weighing) < len(frame)
    scores = columns["estimate"] if record["kind"] == "prob" else []
    infinite = any(str(row.get(".estimate")) in ("Inf", "-Inf") for row in record["values"])
    reasons = {
        "weights_negative": weights and weight.min() < 0,
        "other_softmax": (weights and (reads(record, "brier_class") or reads(record, "ranked_prob_score"))),
        "selection_without_truth": (reads(record, "detection_prevalence") and truth.null_count() and params["na_rm"]),
        "order_of_columns": (len(scores) > 2 and scores != levels(record) and set(scores) == set(levels(record))),
        "other_gain_without_a_class": (
            reads(record, "gain_capture") and weighing[columns["truth"]].n_unique() < max(2, len(scores))
        ),
        "null_no_rows": (frame.is_empty() and (reads(record, "average_precision") or reads(record, "pr_auc"))),
        "other_scale_of_weights": (reads(record, "ccc") and weights and params["options"].get("bias")),
        "other_zero_weights": (reads(record, "rmse_relative") and unweighing),
        "null_division_by_zero": (
            infinite and any(reads(record, name) for name in ("rmse_relative", "mase", "rsq_trad"))
        ),
        "null_fraction_of_a_count": (reads(record, "poisson_log_loss") and len(frame) and float(str(truth.min())) < 0),
        "other_quartiles": (reads(record, "rpiq") and weights and (unweighing or truth.is_duplicated().any())),
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def raises(record: dict[str, Any]) -> bool:
    return str(deviation(record)).startswith(("weights", "order"))


OF_DATA: dict[str, dict[str, dict[str, Any]]] = {}
for each in RECORDS:
    OF_DATA.setdefault(each["data"], {})[f"{each['id']} {each['metric']}"] = each


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ConstantWarning")
@pytest.mark.parametrize("name", OF_DATA)
def test_records_are_reproduced(name: str) -> None:
    check_every(OF_DATA[name], check_record)


def check_record(record: dict[str, Any]) -> None:
    reason = deviation(record)
    if raises(record):
        with pytest.raises(tf.errors.WeightError if str(reason).startswith("weights") else tf.errors.ColumnError):
            call_of(record)(tf.conf_mat if record["metric"] == "conf_mat" else metric(record))
        return
    result, theirs = cells(record) if record["metric"] == "conf_mat" else estimates(record)
    if reason and reason.startswith("null"):
        assert set(result.values()) == {None}
        return
    if reason and reason.startswith("other"):
        assert result.keys() == theirs.keys()
        return
    assert result.keys() == theirs.keys()
    for key, value in theirs.items():
        undefined = value in ("NA", "NaN", None)
        assert result[key] == (None if undefined else pytest.approx(float(value), rel=1e-9, abs=1e-12)), key


OTHERS: dict[str, list[dict[str, Any]]] = {}
for each in RECORDS:
    if (why := deviation(each)) and why.startswith("other"):
        OTHERS.setdefault(why, []).append(each)


def test_deviations_match_the_table() -> None:
    assert Counter(filter(None, map(deviation, RECORDS))) == deviations("yardstick, own data")


@pytest.mark.parametrize("reason", OTHERS)
def test_listed_deviations_differ_from_yardstick(reason: str) -> None:
    def differs(record: dict[str, Any]) -> bool:
        result, theirs = estimates(record)
        expected = {key: None if value in ("NA", "NaN", None) else float(value) for key, value in theirs.items()}
        return any(result[key] != (value and pytest.approx(value, rel=1e-9)) for key, value in expected.items())

    assert any(differs(record) for record in OTHERS[reason])


def test_equalized_odds_on_hpc_cv() -> None:
    result = tf.metric_set(tf.sens, tf.equalized_odds("Resample"))(data("hpc_cv"), truth="obs", estimate="pred")
    assert result.select(".metric", ".by", ".estimator", pl.col(".estimate").round(3)).rows() == [
        ("sens", None, "macro", 0.560),
        ("equalized_odds", "Resample", "macro", 0.103),
    ]


# The page that shows both

PAGE = (DOCS / "pages" / "how-to" / "from-r.md").read_text("utf-8")
ON_PAGE = {
    "Metrics of several classes": ["r01727"],
    "Two classes, and the event": ["r00343", "r00215", "r00694", "r01738"],
    "Groups of rows": ["r01730"],
    "Fairness": ["r01736", "r01229", "r01325"],
}
"""The records behind each section."""


def recorded(row_name: str, ids: list[str]) -> list[tuple[str, float]]:
    """The estimator and the number of a metric, or of the accuracy of a fold, in the records."""
    rows = [row for record in RECORDS if record["id"] in ids for row in record["values"]]
    rows = [row for row in rows if row.get(".by") in {None, "Resample"}]
    named = [row for row in rows if row_name in (row[".metric"], row.get("key", {}).get("Resample"))]
    return [(row[".estimator"], row[".estimate"]) for row in named if row[".metric"] in (row_name, "accuracy")]


def test_page_shows_the_numbers_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SHARED)
    known: dict[str, Any] = {}
    sections = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
    for title, text in sections.items():
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if not blocks:
            continue
        (code,) = blocks
        *statements, last = ast.parse(code).body
        exec(compile(ast.Module(statements, []), title, "exec"), known)  # noqa: S102 - a page of ours
        if title not in ON_PAGE:
            exec(compile(ast.Module([last], []), title, "exec"), known)  # noqa: S102 - as above
            continue
        assert isinstance(last, ast.Expr)
        result = eval(compile(ast.Expression(last.value), title, "eval"), known)  # noqa: S307 - as above
        ours = {row.get("Resample", row[".metric"]): row[".estimate"] for row in result.to_dicts()}
        table = re.findall(r"^\| (\w+) \| (\w+) \| (0\.\d+) \| (0\.\d+) \|$", text, re.MULTILINE)
        assert len(table) >= 3
        for name, estimator, theirs, here in table:
            ((recorded_estimator, number),) = recorded(name, ON_PAGE[title])
            assert estimator == recorded_estimator
            assert theirs == f"{number:.10f}"
            assert here == f"{ours[name]:.10f}"
            assert ours[name] == pytest.approx(number, rel=1e-9)
