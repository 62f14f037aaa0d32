"""Every number that aequitas computed on our data: reproduced, or listed with the reason why not."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import polars as pl
import pytest
from conftest import check_every, deviations, records, reference_data, script

import tidyfair as tf

page = script("coming_from/aequitas.py")
CROSSTAB = page.ROWS["Group.get_crosstabs"]

ACCEPTED = {
    "integer attribute column": "a column of groups may have any type",
    "categorical attribute column": "a column of groups may have any type",
    "reference group missing for one attribute": "each attribute is a question with a reference of its own",
}
"""Errors of aequitas that are none of ours."""

OUT_OF_SCOPE = {
    "significance": "p-values and their masks: tests of differences are another part of the library",
    "model_id": "a field of aequitas' own: here models are outer groups",
}


RATES = {name: row() for name, row in list(CROSSTAB.items())[:10]}
COUNTS = {name: row() for name, row in list(CROSSTAB.items())[10:]}
BY_GROUP = tf.new_groupwise_metric(
    tf.metric_set(*(metric.alias(name) for name, metric in (RATES | COUNTS).items())), "crosstab", tf.difference()
)
WHOLE = tf.metric_set(tf.counts.predicted_positives.alias("k"), tf.counts.instances.alias("total_entities"))
SELECTIONS: dict[str, dict[str, Any]] = {
    "binary 0/1": {"estimate": "y_pred"},
    **{f"{value}_val": {"probs": "score", "threshold": value} for value in (0.3, 0.5, 0.7)},
    "100_abs": {"probs": "score", "top_k": 100},
    "0.25_pct": {"probs": "score", "top_fraction": 0.25},
}

PARITIES = {
    "Statistical Parity": "ppr",
    "Impact Parity": "pprev",
    "Precision Parity": "precision",
    **{f"{rate.upper()} Parity": rate for rate in ("fdr", "for", "fpr", "fnr", "tpr", "tnr", "npv")},
}
PAIRS = {
    "TypeI Parity": ("FDR Parity", "FPR Parity"),
    "TypeII Parity": ("FOR Parity", "FNR Parity"),
    "Equalized Odds": ("FPR Parity", "TPR Parity"),
    "Unsupervised Fairness": ("Statistical Parity", "Impact Parity"),
    "Supervised Fairness": ("TypeI Parity", "TypeII Parity"),
}

SCORED = [
    record
    for record in records("aequitas")
    if "case" not in record["params"] and not record["params"].get("check_significance")
]
CASES = {record["params"]["case"]: record for record in records("aequitas") if "case" in record["params"]}
DATA = {name: reference_data(name) for name in {record["data"] for record in SCORED}}
ATTRIBUTES = ("sex", "race", "age_band")
PREDEFINED = {"sex": "1", "race": "alpha", "age_band": "35-54"}


class Field(NamedTuple):
    """One number or verdict: ours, that of aequitas' rule, and the name of the rule where they differ."""

    ours: Any
    theirs: Any
    rule: str | None = None


@cache
def by_group(data: str, attribute: str, selection: str = "binary 0/1") -> dict[str, dict[str, float | None]]:
    rows = BY_GROUP(attribute).by_group(DATA[data], "y_true", on_undefined="ignore", **SELECTIONS[selection])
    values: dict[str, dict[str, float | None]] = {}
    for group, metric, value in rows.select(".group", ".metric", ".estimate").iter_rows():
        values.setdefault(group, {})[metric] = value
    return values


@cache
def whole(data: str, selection: str) -> dict[str, float]:
    result = WHOLE(DATA[data], "y_true", **SELECTIONS[selection])
    return dict(result.select(".metric", ".estimate").iter_rows())


@cache
def references(data: str, attribute: str, method: str) -> dict[str, str]:
    """The group that each rate is compared with."""
    if method == "predefined_groups":
        return dict.fromkeys(RATES, PREDEFINED[attribute])
    metrics = RATES | {"group_size": tf.counts.instances}
    ranges = [tf.new_groupwise_metric(metric, name, tf.difference())(attribute) for name, metric in metrics.items()]
    result = tf.metric_set(*ranges)(DATA[data], "y_true", "y_pred", on_undefined="ignore", explain=True)
    ends = {row[".metric"]: row for row in result.to_dicts()}
    if method == "major_group":
        return dict.fromkeys(RATES, str(ends["group_size"][".group_max"]))
    return {rate: ends[rate][".group_min"] for rate in RATES}


@cache
def farthest(data: str, attribute: str, method: str) -> dict[str, float | None]:
    """The ratio to the reference that is farthest from 1, for each rate."""
    named = references(data, attribute, method)
    ratios = [
        tf.new_groupwise_metric(
            metric, rate, tf.ratio(to="majority" if method == "major_group" else named[rate], signed=True)
        )(attribute)
        for rate, metric in RATES.items()
    ]
    result = tf.metric_set(*ratios)(DATA[data], "y_true", "y_pred", on_undefined="ignore")
    return dict(result.select(".metric", ".estimate").iter_rows())


def disparity(data: str, attribute: str, method: str, group: str, rate: str) -> float | None:
    values = by_group(data, attribute)
    value, reference = values[group][rate], values[references(data, attribute, method)[rate]][rate]
    if value is None or reference is None or value == reference == 0:
        return None
    return value / reference if reference else math.inf


def verdict(ratio: float | None, tau: float) -> bool | None:
    return None if ratio is None else tau <= ratio <= 1 / tau


def together(verdicts: list[bool | None]) -> bool | None:
    """Whether all hold of which something can be said."""
    known = [item for item in verdicts if item is not None]
    return all(known) if known else None


def parities(ratios: dict[str, float | None], tau: float) -> dict[str, Field]:
    """Each parity and each pair, of the ratios of one group."""
    fields = {name: Field(single := verdict(ratios[rate], tau), single) for name, rate in PARITIES.items()}
    for name, pair in PAIRS.items():
        ours, theirs = together([fields[item].ours for item in pair]), [fields[item].theirs for item in pair]
        ruled = None if theirs == [None, None] else all(theirs)
        fields[name] = Field(ours, ruled, None if ours == ruled else "half_undefined")
    return fields


def group_parities(data: str, attribute: str, method: str, group: str, tau: float) -> dict[str, Field]:
    return parities({rate: disparity(data, attribute, method, group, rate) for rate in RATES}, tau)


def attribute_parities(data: str, attribute: str, method: str, tau: float) -> dict[str, Field]:
    """Ours of the farthest groups; theirs of the verdicts on all groups."""
    ours = parities(farthest(data, attribute, method), tau)
    values = [group_parities(data, attribute, method, group, tau) for group in by_group(data, attribute)]
    fields: dict[str, Field] = {}
    for name, field in ours.items():
        ruled = together([group[name].theirs for group in values])
        fields[name] = Field(field.ours, ruled, None if field.ours == ruled else "half_undefined")
    return fields


def overall_parities(data: str, method: str, tau: float) -> dict[str, Field]:
    values = [attribute_parities(data, attribute, method, tau) for attribute in ATTRIBUTES]
    fields: dict[str, Field] = {}
    for name in ("Unsupervised Fairness", "Supervised Fairness"):
        ours = together([attribute[name].ours for attribute in values])
        ruled = all(attribute[name].theirs is not False for attribute in values)
        fields[name] = Field(ours, ruled, None if ours == ruled else "undefined_is_fair")
    ours, ruled = together([field.ours for field in fields.values()]), all(field.theirs for field in fields.values())
    return fields | {"Overall Fairness": Field(ours, ruled)}


def disparities(data: str, attribute: str, method: str, group: str) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for rate, reference in references(data, attribute, method).items():
        ratio = disparity(data, attribute, method, group, rate)
        fields[f"{rate}_disparity"] = Field(ratio, 10.0, "infinite") if ratio == math.inf else Field(ratio, ratio)
        fields[f"{rate}_ref_group_value"] = Field(reference, reference)
    return fields


def answer(record: dict[str, Any]) -> dict[str, Field]:
    params, function, data = record["params"], record["function"], record["data"]
    attribute, group = params.get("attribute_name"), params.get("attribute_value")
    method = params.get("disparity", function).removeprefix("Bias.get_disparity_")
    if function == "Group.get_crosstabs":
        selection = params["score_threshold"]
        values = by_group(data, attribute, selection)[group] | whole(data, selection)
        return {name: Field(value, value) for name, value in values.items()}
    if function == "Fairness.get_group_value_fairness":
        return group_parities(data, attribute, method, group, params["tau"])
    if function == "Fairness.get_group_attribute_fairness":
        return attribute_parities(data, attribute, method, params["tau"])
    if function == "Fairness.get_overall_fairness":
        return overall_parities(data, method, params["tau"])
    return disparities(data, attribute, method, group)


def same(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs == "NaN":
        return ours is None and theirs == "NaN"
    if isinstance(theirs, bool | str):
        return ours is theirs or ours == theirs
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


BY_FUNCTION: dict[str, dict[str, dict[str, Any]]] = {}
for each in SCORED:
    BY_FUNCTION.setdefault(each["function"], {})[each["id"]] = each


@pytest.mark.parametrize("function", BY_FUNCTION)
def test_records_are_reproduced(function: str) -> None:
    check_every(BY_FUNCTION[function], check_record)


def check_record(record: dict[str, Any]) -> None:
    result = answer(record)
    expected = {name: value for name, value in record["value"].items() if name not in OUT_OF_SCOPE}
    assert result.keys() == expected.keys()
    for name, theirs in expected.items():
        field = result[name]
        assert same(field.theirs, theirs), (name, field, theirs)
        assert same(field.ours, theirs) == (field.rule is None), (name, field, theirs)


def test_deviations_match_the_table() -> None:
    rules = Counter(field.rule for record in SCORED for field in answer(record).values() if field.rule)
    assert rules == deviations("aequitas")


@pytest.mark.parametrize("method", ["predefined_groups", "major_group", "min_metric"])
@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("data", sorted(DATA))
def test_farthest_ratio_equals_the_extreme_ratio_over_groups(data: str, attribute: str, method: str) -> None:
    for rate, ratio in farthest(data, attribute, method).items():
        values = [disparity(data, attribute, method, group, rate) for group in by_group(data, attribute)]
        smallest = [min(one, 1 / one if one else math.inf) for one in values if one is not None]
        assert (ratio is None) == (not smallest)
        assert ratio is None or min(smallest) == pytest.approx(min(ratio, 1 / ratio if ratio else math.inf), rel=1e-9)


@pytest.mark.parametrize(
    ("function", "method"),
    [
        ("get_disparity_predefined_groups", "predefined_groups"),
        ("get_disparity_major_group", "major_group"),
        ("get_disparity_min_metric", "min_metric"),
    ],
)
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_reference_tables_of_the_page_have_the_disparities_of_groups(
    attribute: str, function: str, method: str
) -> None:
    row = page.ROWS["Bias"][function]
    for rate, group in references("a400_weighted", attribute, method).items():
        # shares of all predicted positives are to each other as their counts
        metric = tf.counts.predicted_positives if rate == "ppr" else RATES[rate]
        given = {"metric": metric, "by": attribute, "group": group}
        table = row(**{name: given[name] for name in inspect.signature(row).parameters})
        rows = table(DATA["a400_weighted"], "y_true", "y_pred")
        for name, ratio in rows.select(".group", ".disparity").iter_rows():
            expected = disparity("a400_weighted", attribute, method, name, rate)
            assert ratio == (None if expected is None else pytest.approx(expected, rel=1e-9)), (rate, name)


def test_gate_of_the_page_agrees_with_certain_verdicts() -> None:
    gate = page.ROWS["Fairness"]["get_group_attribute_fairness"](tf.selection_rate, "sex", "1", 0.8)
    result = gate(DATA["a400_weighted"], estimate="y_pred")
    assert result[".estimate"].item() == pytest.approx(
        min(
            min(ratio, 1 / ratio)
            for group in by_group("a400_weighted", "sex")
            if (ratio := disparity("a400_weighted", "sex", "predefined_groups", group, "pprev"))
        )
    )


def test_scores_given_as_estimate_raise() -> None:
    assert CASES["non-binary score without threshold"]["error"]["type"] == "ValueError"
    with pytest.raises(tf.errors.ColumnError):
        tf.accuracy(DATA["a400_weighted"], "y_true", "score")


def test_absent_reference_group_raises() -> None:
    assert CASES["reference value absent"]["error"]["type"] == "ValueError"
    with pytest.raises(tf.errors.AggregateError):
        tf.demographic_parity("sex", aggregate=tf.ratio(to="9"))(DATA["a400_weighted"], estimate="y_pred")


@pytest.mark.parametrize("case", ACCEPTED)
def test_inputs_that_aequitas_refuses_are_computed(case: str) -> None:
    assert "error" in CASES[case]
    data = DATA["a400_weighted"].with_columns(pl.col("sex").cast(pl.String).cast(pl.Categorical).alias("category"))
    typed = [tf.demographic_parity_ratio(name)(data, estimate="y_pred") for name in ("sex", "category")]
    assert typed[0][".estimate"].item() == pytest.approx(typed[1][".estimate"].item(), rel=1e-9)


def test_every_record_is_compared_or_listed() -> None:
    significance = [record for record in records("aequitas") if record["params"].get("check_significance")]
    assert all(name.endswith("significance") for record in significance for name in record["value"])
    assert len(SCORED) + len(significance) + len(CASES) == len(records("aequitas")) == 857
