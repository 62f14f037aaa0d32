"""Ratios, tests, shortfalls and standardized differences that SolasAI computed on our data, by the rows of its page.

Not compared: what it makes of weights beyond ratios, where its weights stand for rows (quantiles, standardized
differences, odds, residuals, p-values); its tests over segments, and its ratio over them, which reallocates the
reference group.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from conftest import check_every, records, reference_data, script

import tidyfair as tdf

if TYPE_CHECKING:
    import polars as pl

page = script("coming_from/solasai.py")
ROWS = {name: row for rows in page.ROWS.values() for name, row in rows.items()}
REFERENCES = {"sex": 1, "race": "alpha"}
GROUPS = {"s0": ("sex", "0"), "beta": ("race", "beta"), "gamma": ("race", "gamma"), "rare": ("race", "rare")}
"""The groups that are compared, by the names of their columns of memberships there."""
RATES = {
    "adverse_impact_ratio": "AIR",
    "relative_rate": "Relative Rate",
    "true_positive_rate": "Ratio",
    "true_negative_rate": "Ratio",
    "false_positive_rate": "Ratio",
    "false_negative_rate": "Ratio",
    "precision": "Ratio",
    "false_discovery_rate": "Ratio",
}
UPSIDE_DOWN = {"false_positive_rate", "false_negative_rate", "false_discovery_rate"}
"""Functions whose ratio is that of the reference over the group."""
RECORDS = {record["id"]: record for record in records("solasai")}
"""Calls on two data sets, without weights and with them."""


@cache
def data(name: str) -> pl.DataFrame:
    return reference_data(name)


def compared(record: dict[str, Any], **call: Any) -> dict[tuple[str, str], dict[str, Any]]:
    table = ROWS[record["function"]](["sex", "race"], REFERENCES)
    weights = record["params"]["sample_weight"]
    result = table(data(record["data"]), "y_true", "y_pred", case_weights=weights, explain=True, **call)
    return {(row[".by"], row[".group"]): row for row in result.to_dicts()}


def number(value: object) -> float | None:
    return None if value in {"NaN", None} else float(str(value))


def check_rate(record: dict[str, Any]) -> None:
    unfavourable = {"pos_label": 0} if record["function"] == "relative_rate" else {}
    ours = compared(record, **unfavourable)
    for row in record["value"]:
        if row["Group"] not in GROUPS:
            continue
        theirs = number(row[RATES[record["function"]]])
        ratio = ours[GROUPS[row["Group"]]][".disparity"]
        if record["function"] in UPSIDE_DOWN and theirs:
            theirs = 1 / theirs
        assert ratio == (None if theirs is None else pytest.approx(theirs, rel=1e-9)), row["Group"]


@pytest.mark.parametrize("function", RATES)
def test_ratios_to_the_reference_are_reproduced(function: str) -> None:
    check_every({name: record for name, record in RECORDS.items() if record["function"] == function}, check_rate)


def check_table(record: dict[str, Any]) -> None:
    ours = compared(record)
    for row in record["value"]:
        if row["Group"] not in GROUPS:
            continue
        mine = ours[GROUPS[row["Group"]]]
        assert mine[".estimate"] == pytest.approx(row["Percent Favorable"], rel=1e-9)
        if record["params"]["sample_weight"]:
            continue  # weights are no rows: tests and shortfalls are those of the rows
        if row["Shortfall"] != "NaN":  # it is not given where the group is ahead
            assert mine[".shortfall"] == pytest.approx(row["Shortfall"], rel=1e-9)
        assert mine[".p_value"] == pytest.approx(row["P-Values"], rel=1e-6)


def test_tables_of_adverse_impact_are_reproduced() -> None:
    check_every(
        {name: record for name, record in RECORDS.items() if record["function"] == "adverse_impact_ratio"}, check_table
    )


def check_quantiles(record: dict[str, Any]) -> None:
    fractions = record["params"]["quantiles"]
    table = ROWS[record["function"]](["sex", "race"], REFERENCES)
    result = table(data(record["data"]), probs="score", top_fraction=fractions)
    ours = {(row[".top_fraction"], row[".by"], row[".group"]): row[".disparity"] for row in result.to_dicts()}
    for row in record["value"]:
        if row["Group"] in GROUPS:
            assert ours[row["Quantile"], *GROUPS[row["Group"]]] == pytest.approx(number(row["AIR"]), rel=1e-9)


def test_ratios_by_quantile_are_reproduced() -> None:
    unweighted = {
        name: record
        for name, record in RECORDS.items()
        if record["function"] == "adverse_impact_ratio_by_quantile" and not record["params"]["sample_weight"]
    }
    check_every(unweighted, check_quantiles)


def check_segments(record: dict[str, Any]) -> None:
    table = ROWS[record["function"]](["sex", "race"], REFERENCES)
    result = table(
        data(record["data"]),
        estimate="y_pred",
        group_by="age_band",
        case_weights=record["params"]["sample_weight"],
    )
    ours = {(row["age_band"], row[".by"], row[".group"]): row[".disparity"] for row in result.to_dicts()}
    compared_rows = 0
    for row in record["value"]:
        # rows of all segments together are of tests over segments
        if row["Group"] in GROUPS and row["Segment"] not in {"CMH Test", "Breslow-Day Test"}:
            compared_rows += 1
            theirs = number(row["AIR"])
            ratio = ours[row["Segment"], *GROUPS[row["Group"]]]
            assert ratio == (None if theirs is None else pytest.approx(theirs, rel=1e-9)), row
    assert compared_rows == 3 * len(GROUPS)


def test_ratios_of_segments_are_reproduced() -> None:
    check_every(
        {name: record for name, record in RECORDS.items() if record["function"] == "segmented_adverse_impact_ratio"},
        check_segments,
    )


def check_standardized(record: dict[str, Any]) -> None:
    spread = "pooled" if record["params"].get("smd_denominator") == "pooled" else "all"
    for feature, to in REFERENCES.items():
        result = tdf.audits.standardized_differences(data(record["data"]), "score", by=feature, to=to, spread=spread)
        ours = dict(result.select(".group", ".disparity").rows())
        for row in record["value"]:
            by, group = GROUPS.get(row["Group"], (None, None))
            if by == feature:
                assert 100 * ours[group] == pytest.approx(row["SMD"], rel=1e-6)


def test_standardized_mean_differences_are_reproduced() -> None:
    unweighted = {
        name: record
        for name, record in RECORDS.items()
        if record["function"] == "standardized_mean_difference" and not record["params"]["sample_weight"]
    }
    check_every(unweighted, check_standardized)


@pytest.mark.parametrize("name", ["a400_weighted", "c1000_nopos"])
def test_odds_and_residuals_of_the_audit_are_reproduced(name: str) -> None:
    frame = data(name)
    filed = tdf.audit(
        "lending_adverse_impact",
        frame,
        truth="y_true",
        estimate="y_pred",
        probs="score",
        by=["sex", "race"],
        to=REFERENCES,
    )
    odds = {(row[".by"], row[".group"]): row[".odds_ratio"] for row in filed.tables["adverse_impact"].to_dicts()}
    residuals = {(row[".by"], row[".group"]): row[".disparity"] for row in filed.tables["residuals"].to_dicts()}
    columns = {
        "odds_ratio": (odds, "Odds Ratio", 1),
        "residual_standardized_mean_difference": (residuals, "Residual SMD", 100),
    }
    for record in RECORDS.values():
        if record["function"] in columns and record["data"] == name and not record["params"]["sample_weight"]:
            ours, column, factor = columns[record["function"]]
            for row in record["value"]:
                if row["Group"] in GROUPS:
                    assert factor * ours[GROUPS[row["Group"]]] == pytest.approx(row[column], rel=1e-6)


def test_every_function_of_the_page_has_records() -> None:
    assert len(RECORDS) == 60
    weighted = [record for record in RECORDS.values() if record["params"]["sample_weight"]]
    only_ratios = {*RATES, "segmented_adverse_impact_ratio"}
    assert len([record for record in weighted if record["function"] not in only_ratios]) == 12
    assert {record["function"] for record in RECORDS.values()} - set(ROWS) == {
        "odds_ratio", "residual_standardized_mean_difference",
    }  # fmt: skip
    assert all(inspect.signature(row).parameters for row in ROWS.values())
