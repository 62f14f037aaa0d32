"""The part of a report that readers can work: its data, its formulas, its policy, and what a browser shows."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import CHROMIUM, in_a_browser

import tidyfair as tdf
from tidyfair.datasets import lending
from tidyfair.reports.interactive import explorer, script_policy, scripts
from tidyfair.specs.groups import By, Policy

if TYPE_CHECKING:
    from pathlib import Path

    from tidyfair.reports.interactive import Explorer

pytestmark = pytest.mark.usefixtures("few_draws", "undrawn")

LOANS = lending()
THRESHOLDS = [0.3, 0.5, 0.7]
RATES = (tdf.selection_rate, tdf.sens)


def values(data: pl.DataFrame = LOANS, *features: str, thresholds: list[float] | None = None) -> pl.DataFrame:
    compared = [
        tdf.new_groupwise_metric(rate, rate.name, tdf.difference())(feature, unknown="group")
        for feature in features
        for rate in RATES
    ]
    metrics = tdf.metric_set(*RATES, *compared)
    return metrics.by_group(
        data, "repaid", probs="score", pos_label="yes", interval="auto", threshold=thresholds or THRESHOLDS,
        on_undefined="ignore",
    )  # fmt: skip


def made(frame: pl.DataFrame, **options: Any) -> Explorer:
    bys = [By.of((name,), "test", Policy()) for name in frame[".by"].drop_nulls().unique(maintain_order=True)]
    given: dict[str, Any] = {"min_n": 30, **options}
    result = explorer(frame, bys, **given)
    assert result is not None
    return result


def rows_of(made: Explorer) -> dict[tuple[str, str, str, float], tuple[Any, ...]]:
    data = made.data
    names = {"Selection rate": "selection_rate", "Sensitivity": "sens"}
    rows: dict[tuple[str, str, str, float], tuple[Any, ...]] = {}
    columns = data["values"]
    for feature, group, metric, threshold, value, lower, upper, out_of, size in zip(*columns.values(), strict=True):
        key = (
            data["features"][feature], data["groups"][feature][group],
            names[data["metrics"][metric]], data["thresholds"][threshold],
        )  # fmt: skip
        rows[key] = (value, lower, upper, size, out_of)
    return rows


def test_data_are_the_values_of_groups_and_of_all_rows() -> None:
    frame = values(LOANS, "sex", "race")
    rows = rows_of(made(frame))
    asked = frame.filter(pl.col(".by") == "race")
    for metric, group, threshold, value, lower, upper, n, denominator in asked.select(
        ".metric", ".group", ".threshold", ".estimate", ".lower", ".upper", ".n", ".denominator"
    ).rows():
        assert rows["race", group, metric, threshold] == (
            *(pytest.approx(number, abs=5e-5) for number in (value, lower, upper)), n, denominator,
        )  # fmt: skip
    # five races and two sexes, two times all rows
    assert len(rows) == 3 * 2 * (5 + 2 + 2)


def test_small_groups_are_not_in_the_data() -> None:
    page = made(values(LOANS, "race"), min_n=100).html("explore")
    assert "Hispanic" in page
    assert "Native" not in page


def test_limits_of_differences_are_newcombes() -> None:
    # the formula of the script, in which the ends of two intervals become those of a difference
    rows = rows_of(made(values(LOANS, "race")))
    table = tdf.compare_groups(tdf.selection_rate, by="race", to="White")
    compared = table(LOANS, "repaid", probs="score", pos_label="yes", threshold=0.5)
    reference, lower_reference, upper_reference, *_ = rows["race", "White", "selection_rate", 0.5]
    for group, lower, upper, method in compared.select(".group", ".lower", ".upper", ".method").rows():
        if group != "White":
            value, low, high, *_ = rows["race", group, "selection_rate", 0.5]
            below = math.hypot(value - low, upper_reference - reference)
            above = math.hypot(high - value, reference - lower_reference)
            assert method == "newcombe"
            assert lower == pytest.approx(value - reference - below, abs=2e-4)
            assert upper == pytest.approx(value - reference + above, abs=2e-4)


def test_groups_that_read_alike_stay_two() -> None:
    people = LOANS.with_columns(place=pl.when(pl.col("sex") == "male").then(pl.lit("null")).otherwise(None))
    rows = rows_of(made(values(people, "place").with_columns(pl.lit("null").alias(".group"))))
    assert {group for _, group, _, _ in rows} == {"all rows", "Unknown", "null [2]"}


def test_names_cannot_leave_the_data() -> None:
    name = "</script><script>alert(1)</script>"
    people = LOANS.with_columns(sex=pl.col("sex").cast(pl.String).replace("male", name))
    page = made(values(people, "sex")).html("explore")
    assert name not in page
    (data,) = re.findall(r'<script type="application/json" class="explorer-data">(.*?)</script>', page, re.DOTALL)
    assert name in json.loads(data)["groups"][0]


def test_policy_names_each_script_and_nothing_else() -> None:
    page = made(values(LOANS, "sex")).html("explore")
    bodies = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert bodies == list(scripts())
    hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in bodies]
    assert script_policy() == f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'"


def test_nothing_to_show_makes_no_explorer() -> None:
    assert explorer(values(LOANS, "race"), [By.of(("race",), "test", Policy())], min_n=10**6) is None


def opened(report: tdf.types.Report, folder: Path, state: str = "") -> str:
    """The text of the charts of a report, as a browser without a network draws them."""
    page = report.save(folder / "report.html")
    drawn = in_a_browser(page, folder / "report.png", state=state)
    return drawn.partition('class="charts')[2].partition("<script")[0]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser")
def test_browser_shows_the_values_of_the_chosen_threshold(tmp_path: Path) -> None:
    report = tdf.report(
        LOANS, "repaid", probs="score", threshold=0.5, by=["sex", "race"], pos_label="yes", interactive=True
    )
    rate = tdf.sens.difference("race").by_group(LOANS, "repaid", probs="score", threshold=0.7, pos_label="yes")
    of_black = rate.filter(pl.col(".group") == "Black")[".estimate"].item()
    charts = opened(report, tmp_path, "#feature=0&metric=2&reference=1&threshold=70")
    assert "Sensitivity" in charts
    assert f"group: Black; metric: Sensitivity; value: {of_black:.1%}" in charts
    assert "group: Native" in charts


def test_explorers_of_values_without_intervals_have_no_limits() -> None:
    options: dict[str, Any] = {"by": "sex", "pos_label": "yes", "interactive": True}
    page = tdf.report(LOANS, "repaid", "approved", **options, interval=None).html()
    assert '"lower":[null' in page.replace(" ", "")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser")
def test_reports_of_labels_have_no_slider(tmp_path: Path) -> None:
    report = tdf.report(LOANS, "repaid", "approved", by="sex", pos_label="yes", interactive=True)
    page = report.html()
    data = json.loads(re.findall(r'class="explorer-data">(.*?)</script>', page, re.DOTALL)[0])
    assert data["thresholds"] == []
    assert len(data["values"]["estimate"]) == 3 * len(data["metrics"])
    assert "group: female; metric: Selection rate; value: 54.3%" in opened(report, tmp_path)


def test_gaps_have_the_intervals_of_the_page() -> None:
    people = LOANS.with_columns(race=pl.when(pl.int_range(pl.len()) % 6 > 0).then(pl.col("race").cast(pl.String)))
    options: dict[str, Any] = {"by": ["sex", "race"], "pos_label": "yes", "interactive": True}
    page = tdf.report(people, "repaid", "approved", **options).html()
    data = json.loads(re.findall(r'class="explorer-data">(.*?)</script>', page, re.DOTALL)[0])
    expected = tdf.demographic_parity("race", min_n=30)(
        people, estimate="approved", pos_label="yes", interval="auto", on_undefined="ignore"
    ).select(".estimate", ".lower", ".upper")
    rows = zip(*data["gaps"].values(), strict=True)
    of_race = [
        row for row in rows if data["features"][row[0]] == "race" and data["metrics"][row[1]] == "Selection rate"
    ]
    assert of_race[0][3:] == pytest.approx(expected.row(0), abs=5e-5)
    # people of unknown race are shown, and compared with nobody
    number = data["features"].index("race")
    unknown = data["groups"][number].index("Unknown (not compared)")
    assert data["apart"][number] == [unknown]
    assert any(
        pair == (number, unknown) for pair in zip(data["values"]["feature"], data["values"]["group"], strict=True)
    )


def test_report_has_scripts_only_when_asked() -> None:
    options: dict[str, Any] = {"estimate": "approved", "by": "sex", "pos_label": "yes"}
    assert "<script" not in tdf.report(LOANS, **options).html()
    page = tdf.report(LOANS, **options, interactive=True).html()
    assert script_policy() in page
    assert "interactive=True" in page


def test_thresholds_of_narrow_scores_are_among_them_and_have_that_of_the_report() -> None:
    small = LOANS.with_columns(tiny=pl.col("score") / 500)
    page = tdf.report(
        small, "repaid", probs="tiny", threshold=0.001, by="sex", pos_label="yes", interactive=True
    ).html()
    data = json.loads(re.findall(r'class="explorer-data">(.*?)</script>', page, re.DOTALL)[0])
    assert data["thresholds"][data["start"]] == 0.001
    assert max(data["thresholds"]) < 0.003


@pytest.mark.parametrize(("threshold", "rate"), [(math.inf, 0.0), (-math.inf, 1.0)])
def test_explorer_starts_at_an_infinite_threshold(threshold: float, rate: float) -> None:
    options: dict[str, Any] = {"by": "sex", "pos_label": "yes", "interactive": True}
    page = tdf.report(LOANS, "repaid", probs="score", threshold=threshold, **options).html()
    data = json.loads(re.findall(r'class="explorer-data">(.*?)</script>', page, re.DOTALL)[0])
    assert float(data["thresholds"][data["start"]]) == threshold
    values = data["values"]
    at_start = [at == data["start"] for at in values["threshold"]]
    is_selection_rate = [data["metrics"][metric] == "Selection rate" for metric in values["metric"]]
    shown = [one for one, *wanted in zip(values["estimate"], at_start, is_selection_rate, strict=True) if all(wanted)]
    assert set(shown) == {rate}
    assert f"threshold=float(&#x27;{threshold}&#x27;)" in page


def test_explorer_says_when_the_report_is_about_other_decisions() -> None:
    page = tdf.report(LOANS, "repaid", "approved", probs="score", by="sex", pos_label="yes", interactive=True).html()
    assert "The rest of this report is about the decisions as they were made" in page
