"""Report pages: their contents, and that names of groups stay text."""

from __future__ import annotations

import errno
import re
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command_line import called, written
from conftest import CHROMIUM, in_a_browser
from report_data import HOSTILE, LABELS, LOANS, TIMES, Page, patients

import tidyfair as tf
from tidyfair.audits.call_code import call_of
from tidyfair.datasets import lending
from tidyfair.reports.blocks import Facts, Section, Table
from tidyfair.reports.page import findings_of_models

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("few_draws")

SCORES: dict[str, Any] = {"truth": "repaid", "probs": "score", "threshold": 0.5, "pos_label": "yes"}


@pytest.fixture(scope="module")
def audited() -> tf.types.Report:
    gate = tf.check(tf.demographic_parity("race"), below=0.1)
    return tf.report(LOANS, **SCORES, by=["race", ("sex", "race")], gate=gate, min_n=30, title=f"Of {HOSTILE}")


@pytest.fixture(scope="module")
def audit_page(audited: tf.types.Report) -> str:
    """Its page, with pictures that take their time to be drawn."""
    return audited.html()


def test_page_shows_values_intervals_and_sizes(audit_page: str) -> None:
    text = re.sub(r"[\s\u00a0]+", " ", Page(audit_page).text)
    results = tf.demographic_parity("race", min_n=30, unknown="apart")(LOANS, **SCORES, interval="auto")
    value, low, high = results.select(".estimate", ".lower", ".upper").row(0)
    assert f"{value * 100:.1f} points {low * 100:.1f} to {high * 100:.1f}" in text
    assert "3,000 rows; 50 without repaid." in text
    assert "Repaid truth 50 " in text.replace("repaid truth", "Repaid truth")
    sizes = LOANS["race"].value_counts()
    for race, count in sizes.rows():
        assert f"{race} {count:,} " in text
    assert "Not enough evidence to decide whether the limit is met." in text
    assert "gate = tdf.check(tdf.demographic_parity('race'), below=0.1, conf_level=0.95)" in text
    assert "tdf.report(data, truth='repaid', by=['race', ('sex', 'race')], gate=gate," in text
    assert (
        "Difference in sensitivity or specificity between the groups: largest value minus smallest value, "
        "for whichever is worse. Hardt et al. (2016)" in text
    )


@pytest.mark.usefixtures("undrawn")
def test_page_opens_with_facts_then_verdicts_then_findings_then_a_picture() -> None:
    gate = tf.check(tf.metric_set(tf.demographic_parity("race"), tf.equal_opportunity("sex")), below=0.1)
    named: dict[str, Any] = {"model": "Trees 2", "dataset": "Loans of May", "date": "1 June 2026"}
    made = tf.report(lending(), **LABELS, by=["sex", "race"], gate=gate, **named)
    html = made.html()
    page = re.sub(r"[\s\u00a0]+", " ", Page(html).text)
    opening = [
        "Model Trees 2", "Data Loans of May", "Date 1 June 2026", "Rows 5,000",
        "Not enough evidence to decide whether 1 of 2 limits is met.",
        "Not enough evidence Demographic parity (difference in selection rates) by race demographic_parity 15.2 points",
        "Pass Equal opportunity (difference in sensitivity) by sex equal_opportunity",
        "Too few rows to tell by sex:", "Selection rate differs by race:", "Disparities", "Definitions",
    ]  # fmt: skip
    positions = [page.index(text) for text in opening]
    assert positions == sorted(positions)
    markdown = made.markdown()
    assert "- **Model**: Trees 2\n- **Data**: Loans of May\n- **Date**: 1 June 2026\n" in markdown
    assert markdown.index("**Not enough evidence**") < markdown.index("**Selection rate differs by race:**")
    assert "model='Trees 2', dataset='Loans of May', date='1 June 2026'" in markdown
    picture = html.index("Selection rate by race")
    assert html.index('class="findings"') < picture < html.index('class="contents"')
    for anchor in re.findall(r'href="#([^"]+)"', html):
        assert f'<section id="{anchor}">' in html


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_verdicts_are_words_colours_and_shapes(verdict: str) -> None:
    limit = 0.9 if verdict == "pass" else 0.01
    gate = tf.check(tf.demographic_parity("race"), below=limit)
    made = tf.report(lending(), **LABELS, by="race", gate=gate)
    html = made.html()
    kind, shape, words = {
        "pass": ("good", "<circle", "Pass: the limit is met."),
        "fail": ("bad", "<path", "Fail: the limit is not met."),
    }[verdict]
    assert f'<div class="verdicts {kind}"' in html
    assert shape in html.partition("headline")[2].partition("</svg>")[0]
    assert words in made.markdown()


def test_reproduction_code_gives_the_same_report() -> None:
    fair = tf.metric_set(tf.accuracy, tf.equalized_odds("sex", min_n=20), tf.demographic_parity_ratio("race"))
    gate = tf.check(tf.equal_opportunity("sex"), below=0.2, conf_level=0.9)
    text = tf.report(LOANS, **LABELS, by="sex", metrics=fair, gate=gate).markdown()
    code = text.partition("## How to repeat this audit")[2].partition("Made with")[0]
    *made, call = (line.strip() for line in code.strip().split("\n"))
    names: dict[str, Any] = {"data": LOANS}
    exec("\n".join([*made, f"again = {call}"]), names)  # noqa: S102 - our own
    assert names["again"].markdown() == text


REPEATED: dict[str, Any] = {
    "metric of survival": tf.survival.brier.difference("ward"),
    "set": tf.metric_set(tf.survival.brier, tf.survival.concordance.ratio("ward", name="gap")),
    "option of a disparity": tf.survival.concordance_parity("ward", risk=True),
    "option of a metric": tf.metric_tweak(tf.f_meas, "f2", beta=2).difference("sex", min_n=10, unknown="drop"),
    "reference": tf.accuracy.difference("sex", to="male", signed=True),
    "other aggregate": tf.demographic_parity("race", aggregate=tf.ratio(to="White"), name="own"),
    "sides": tf.equal_opportunity(tf.privileged({"sex": "male", "race": ["a", "b"]}, unprivileged={"sex": "female"})),
    "gate": tf.check(tf.survival.brier.difference("ward"), below=0.1),
    "four-fifths rule": tf.four_fifths("sex", pos_label="yes"),
}


@pytest.mark.parametrize("name", REPEATED)
def test_reproduction_code_makes_every_metric_and_gate_of_the_library(name: str) -> None:
    code = call_of({"metrics": REPEATED[name]})
    made: dict[str, Any] = {}
    exec(code.partition("tdf.report(")[0], made)  # noqa: S102 - our own
    assert made["metrics"] == REPEATED[name]


def test_reproduction_code_makes_truths_and_intervals_of_several_columns() -> None:
    call = {
        "truth": TIMES["truth"],
        "estimate": tf.prediction_intervals.interval("lo", "hi", level=0.8),
        "probs": {4: "s4"},
    }
    line = call_of(call).splitlines()[-1]
    made: dict[str, Any] = {}
    exec(f"import tidyfair as tdf\nmade = {line.replace('tdf.report(data, ', 'dict(')}", made)  # noqa: S102 - our own
    assert made["made"] == call


def test_reproduction_code_describes_custom_objects() -> None:
    own = tf.new_groupwise_metric(tf.accuracy, "own", pl.col(".estimate").max())
    sides = tf.equal_opportunity(tf.privileged(race="White"))
    text = tf.report(LOANS, **LABELS, by="sex", metrics=tf.metric_set(own("sex"), sides), times=40).markdown()
    assert "metrics = ...  # <metric set of <groupwise metric own('sex')" in text
    assert "<groupwise metric equal_opportunity(privileged(race=White))" in text
    older = call_of({"by": ["sex", pl.col("age") > 40]})
    assert older.splitlines()[2].startswith("by = ...  # [")
    assert older.endswith("tdf.report(data, by=by)")
    exact = tf.check(tf.equal_opportunity("sex"), below=0.123456789, conf_level=0.9999999)
    assert "below=0.123456789, conf_level=0.9999999)" in tf.report(LOANS, **LABELS, by="sex", gate=exact).markdown()


def test_markdown_card_has_tables_in_place_of_pictures() -> None:
    text = tf.report(LOANS, **SCORES, by="sex").markdown()
    assert "Picture" not in text
    call: dict[str, Any] = {"truth": "repaid", "probs": "score", "group_by": "sex", "pos_label": "yes"}
    rates = dict(tf.selection_rate(LOANS, **call, threshold=0.3).select("sex", ".estimate").rows())
    row = next(line for line in text.split("\n") if line.startswith("| Selection rate | female |"))
    assert row.split(" | ")[4] == f"{rates['female']:.1%}"
    last = tf.calibration.curve(LOANS, **call, binning="count").filter(pl.col(".bin") == 10)
    for sex, score, rate in last.select("sex", ".mean_score", ".event_rate").rows():
        (row,) = (line for line in part(text, "Thresholds").split("\n") if line.startswith(f"| {sex} |"))
        assert row.endswith(f"| {score:.1%} / {rate:.1%} |")


def test_calibration_bins_below_min_n_rows_are_hidden() -> None:
    data = pl.DataFrame({"y": [0, 1] * 20, "p": [index / 40 for index in range(40)], "g": ["a"] * 40, "w": [100] * 40})
    call: dict[str, Any] = {"truth": "y", "probs": "p", "threshold": 0.5, "by": "g", "min_n": 10}

    def has_bins(**weights: Any) -> bool:
        text = tf.report(data, **call, **weights).markdown()
        return "Calibration, by g: there is nothing to draw" not in text

    assert not has_bins()
    assert not has_bins(case_weights="w")
    # of these each stands for a hundred rows
    assert has_bins(frequency_weights="w")


def test_groups_section_shows_metrics_behind_disparities() -> None:
    asked = tf.metric_set(tf.accuracy, tf.demographic_parity("race"), tf.predictive_parity("sex"))
    text = tf.report(LOANS, **LABELS, by="sex", metrics=asked, min_n=0).markdown()
    groups = part(text, "Groups")
    head = "Accuracy `accuracy` | Selection rate `selection_rate` | Precision `precision` |"
    assert groups.count(head) == 2
    assert "\N{EN DASH}" not in groups
    meanings = part(text, "Definitions")
    assert "| Selection rate `selection_rate` | Share of rows" in meanings
    assert "| Precision (positive predictive value) `precision` | Share of predicted positives" in meanings


def part(text: str, heading: str) -> str:
    """One section of a report in Markdown."""
    return text.partition(f"## {heading}")[2].partition("\n## ")[0]


def test_group_sizes_count_all_rows_and_missing_rows_are_listed() -> None:
    people = pl.DataFrame({"g": ["a"] * 50 + ["b"] * 50, "y": [None] * 40 + [1, 0] * 30, "p": [1, 0] * 50})
    text = tf.report(people, "y", "p", by="g", metrics=tf.metric_set(tf.accuracy, tf.equal_opportunity("g"))).markdown()
    assert "*By g*\n\n| Group | Rows | Share |" in part(text, "Data")
    assert "| a | 50 | 50.0% |" in part(text, "Data")
    assert "40 rows without y are left out" in part(text, "Exclusions")


def test_groups_of_equal_text_are_kept_separate() -> None:
    people = pl.DataFrame({"g": ["null"] * 60 + [None] * 40, "y": [1, 0] * 50, "s": [0.2, 0.8, 0.6, 0.4] * 25})
    text = tf.report(people, "y", probs="s", threshold=0.5, by="g").markdown()
    assert {'| "null" | 60 | 60.0% |', "| Unknown | 40 | 40.0% |"} <= set(part(text, "Data").split("\n"))
    for group in ("Unknown", '"null"'):
        assert part(text, "Thresholds").count(f"| Selection rate | {group} |") == 1
    colons = people.with_columns(g=pl.Series(["a:b", "a"] * 50), h=pl.Series(["c", "b:c"] * 50))
    text = tf.report(colons, "y", probs="s", threshold=0.5, by=[("g", "h")]).markdown()
    for group in ('"a":"b:c"', '"a:b":"c"'):
        assert f"| {group} | 50 | 50.0% |" in part(text, "Data")


def test_feature_may_be_named_all_rows() -> None:
    marks = [
        part(tf.report(LOANS.rename({"sex": name}), **LABELS, by=name).markdown(), "Groups").count("\\[1\\]")
        for name in ("sex", "all rows")
    ]
    assert marks[0] == marks[1]


def test_gates_and_thresholds_hide_small_groups() -> None:
    people = pl.DataFrame(
        {
            "g": ["big"] * 300 + ["tiny"] * 100, "y": [1, 0, 1, 1] * 100, "s": [0.2, 0.8, 0.6, 0.4, 0.7] * 80,
            "times": [1] * 303 + [0] * 97,
        }
    )  # fmt: skip
    gate = tf.check(tf.demographic_parity("g"), below=0.1)
    call: dict[str, Any] = {"probs": "s", "threshold": 0.5, "by": "g", "frequency_weights": "times", "gate": gate}
    text = tf.report(people, "y", **call, min_n=10).markdown()
    # the reason why a group is not drawn is the limit, and no number of the group; notes are numbered
    shown = [re.sub(r"(?i)fewer than 10 rows|\\?\[\d\\?\]", "", line) for line in text.split("\n") if "tiny" in line]
    assert shown
    assert not any(re.search(r"\d", line) for line in shown)
    assert "**Not enough evidence**: Demographic parity" in text


def test_largest_of_many_groups_are_shown() -> None:
    people = LOANS.with_columns(part=pl.int_range(pl.len()) % 40 % 27)
    text = part(tf.report(people, **SCORES, by="part").markdown(), "Thresholds")
    assert "the 8 largest are shown" in text
    assert text.count("| Selection rate |") == 8


def test_thresholds_span_the_scores() -> None:
    people = LOANS.with_columns(score=300 + 500 * pl.col("score"))
    call: dict[str, Any] = {**SCORES, "threshold": 550, "by": "sex"}
    text = part(tf.report(people, **call).markdown(), "Thresholds")
    names = re.findall(r"At [\d.]+", text)
    assert all(300 < float(name.removeprefix("At ")) < 800 for name in names)
    assert len(names) == 9


def test_confidence_is_shown_with_all_digits() -> None:
    gate = tf.check(tf.equal_opportunity("sex"), below=0.2, conf_level=0.995)
    text = tf.report(LOANS, **LABELS, by="sex", conf_level=0.975, gate=gate).markdown()
    assert "97.5% confidence intervals" in text
    assert "each end is a one-sided 99.5% bound." in text


def test_undefined_disparity_shows_its_status() -> None:
    people = pl.DataFrame({"y": [1, 0, 0, 0] * 5, "p": [1, 0, 1, 0] * 5, "g": [*"aabb" * 5]})
    text = part(tf.report(people, "y", "p", by="g", metrics=tf.equal_opportunity("g")).markdown(), "Disparities")
    assert "there are fewer than two groups to compare" in text


def test_labels_have_tables_without_blanks_and_no_average_that_cannot_vary() -> None:
    bands = lending(2_000).with_columns(guess=pl.col("age_band").shift(1))
    text = tf.report(bands, "age_band", "guess", by=["sex", ("sex", "race")], times=50).markdown()
    groups = part(text, "Groups")
    assert "25.0%" not in "".join(line for line in groups.split("\n") if line.startswith("| All rows"))
    assert "| Group | Rows | Accuracy `accuracy` | Sensitivity `sens` |" in groups
    caption = "*Selection rate, by label, with 95% confidence intervals*"
    assert f"{caption}\n\n| Group | Rows | 18-29 | 30-44 | 45-59 | 60+ |" in groups
    for line in groups.split("\n"):
        assert "|  |" not in line
    assert "by sex and race" in text
    assert "sex:race" not in text


def test_thresholds_section_without_disparity_or_visible_groups() -> None:
    text = tf.report(LOANS, **SCORES, by="sex", metrics=tf.roc_auc).markdown()
    assert "| Selection rate | female |" in part(text, "Thresholds")
    hidden = tf.report(LOANS, **SCORES, by="sex", min_n=10**6).markdown()
    assert "there is nothing to draw" in part(hidden, "Thresholds")
    lacking = LOANS.with_columns(score=pl.when(pl.int_range(pl.len()) >= 7).then("score"))
    text = tf.report(lacking, **SCORES, by="sex", metrics=tf.selection_rate).markdown()
    assert "| score | scores | 7 |" in part(text, "Data")


def test_report_of_numbers_has_usual_metrics() -> None:
    text = tf.report(LOANS, "weight", "score", by="sex", times=50).markdown()
    titles = ["Mean prediction `mean_prediction`", "Mean error `residual_bias`", "Mean absolute error `mae`"]
    assert f"| Group | Rows | {' | '.join(titles)} |" in text
    errors = tf.mae(LOANS, "weight", "score", group_by="sex")
    for sex, error in errors.select("sex", ".estimate").rows():
        assert re.search(rf"\| {sex} \|.* \| {error:.3f} \(", text)
    rooms = pl.DataFrame({"rooms": [1, 2, 3, 4], "guess": [1, 2, 3, 3], "g": list("aabb")})
    with pytest.raises(tf.errors.ArgumentError, match="may be labels or a measurement"):
        tf.report(rooms, "rooms", "guess", by="g")
    assert "accuracy" in tf.report(rooms, "rooms", "guess", by="g", labels=[1, 2, 3, 4], times=40).markdown()


SCORED = pl.DataFrame(
    {
        "y": [0, 1] * 30, "score": [each / 60 for each in range(60)], "g": ["a", "b", "b"] * 20,
        "percent": list(range(60)), "logit": [each / 7 - 4 for each in range(60)], "three": [0, 1, 2] * 20,
        "coded": [1, 2] * 30, "priced": [10, 20] * 30, "unsure": [0.0, 1.0, float("nan")] * 20,
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("truth", "estimate"),
    [
        ("y", "score"), ("y", "logit"), ("y", "percent"), ("coded", "score"), ("priced", "score"), ("unsure", "score"),
        ((pl.col("y") * 2 - 1).alias("signs"), "score"),
    ],
)  # fmt: skip
def test_report_rejects_scores_as_estimate(truth: Any, estimate: str) -> None:
    with pytest.raises(tf.errors.ColumnError, match=f"`estimate`: the column '{estimate}' holds scores.*`probs=`"):
        tf.report(SCORED, truth, estimate, by="g")
    with pytest.raises(tf.errors.ColumnError, match="`probs=`"):
        tf.default_metrics(SCORED, truth, estimate)
    named = tf.metric_set(tf.mae, tf.mae.difference("g"))
    assert "`mae_difference`" in tf.report(SCORED, truth, estimate, by="g", metrics=named, times=40).markdown()


def test_report_rejects_swapped_truth_and_scores() -> None:
    with pytest.raises(tf.errors.ColumnError, match=r"`truth`: the column 'score' holds fractions.*swapped"):
        tf.report(SCORED, "score", "y", by="g")


@pytest.mark.parametrize(("truth", "estimate"), [("three", "score"), ("priced", "logit"), ("score", "logit")])
def test_report_accepts_measurements_as_numbers(truth: str, estimate: str) -> None:
    assert "`residual_bias`" in tf.report(SCORED, truth, estimate, by="g", times=40).markdown()


def test_page_is_self_contained(audit_page: str) -> None:
    page = Page(audit_page)
    for tag in ("script", "link", "img", "iframe", "object", "image"):
        assert not page.all(tag)
    assert "@import" not in audit_page
    assert set(re.findall(r"url\(.", audit_page)) <= {"url(#"}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    links = [str(attributes[name]) for _, attributes in page.tags for name in ("href", "src") if name in attributes]
    assert all(link.startswith("#") for link in links)


def test_page_headings_are_ordered_and_pictures_are_described(audit_page: str) -> None:
    page = Page(audit_page)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    pictures = [image for image in page.all("svg") if image.get("role") == "img"]
    # one for wide screens, and one for narrow ones
    assert len(pictures) == 2 * len(page.all("figure")) >= 16
    assert all(len(str(image["aria-label"])) > 20 for image in pictures)
    assert page.all("html") == [{"lang": "en"}]
    names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(names) == len(set(names))


def test_page_with_many_groups_shows_the_lowest_and_the_highest() -> None:
    many = pl.DataFrame({"g": [f"g{index:03d}" for index in range(120) for _ in range(40)]}).with_row_index()
    rate = pl.col("g").str.slice(1).cast(pl.Int64) * 40 // 120
    many = many.with_columns(y=pl.lit(1), p=(pl.col("index") % 40 < rate).cast(pl.Int64))
    made = tf.report(many, estimate="p", by="g")
    text = made.markdown()
    assert "| Selection rate `selection_rate` |" in part(text, "Groups")
    assert "| g000 | 0.0% (0.0 to 8.8) | g119 | 97.5% (" in part(text, "Groups")
    assert "<summary>All groups of g</summary>" in part(text, "Groups")
    assert all(f"| g{number:03d} | 40 |" in text for number in range(120))
    html = made.html()
    figure = html.partition("<figure")[2].partition("</figure>")[0]
    assert "the lowest and the highest of 120 groups of g" in figure
    drawn = set(re.findall(r"g\d{3}", figure.partition("aria-label")[2].partition(">")[2]))
    assert {"g000", "g005", "g114", "g119"} <= drawn
    assert not drawn & {"g020", "g060", "g100"}


def test_group_names_are_escaped(audited: tf.types.Report, audit_page: str) -> None:
    html, markdown = audit_page, audited.markdown()
    assert "<script" not in html
    assert "<script" not in markdown
    assert Page(html).text.count(HOSTILE) >= 5
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\| \\`x\\` &amp; \\*y\\*" in markdown
    odd = LOANS.with_columns(sex=pl.lit("~~no~~ http://a.b www.c.d"))
    assert "\\~\\~no\\~\\~ http\\://a.b www\\.c.d" in tf.report(odd, **LABELS, by="sex").markdown()
    # every row of a table has as many cells as its head
    for table in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")}) == 1


def test_names_with_characters_that_xml_forbids_are_escaped() -> None:
    odd = "{{x}} \x0b\ufffe <b>"
    people = LOANS.rename({"sex": odd}).with_columns(
        pl.col(odd).cast(pl.String).replace({"male": "m\x00\x1b[31m{{y}}"})
    )
    rate = tf.accuracy.alias("hit\x0brate")
    asked = tf.metric_set(rate, rate.difference(odd), tf.demographic_parity(odd))
    gate = tf.check(tf.demographic_parity(odd), below=0.1)
    named: dict[str, Any] = {"title": odd, "model": odd, "dataset": odd, "date": odd}
    made = tf.report(people, **LABELS, by=odd, metrics=asked, gate=gate, **named)
    html = made.html()
    for text in (html, made.markdown()):
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe]", text)
        assert "<b>" not in text.partition("import tidyfair")[0]
        assert "hit\\x0brate" in text.replace("\\\\", "\\").replace("<wbr>", "")
    assert "{{x}} \\x0b\\ufffe &lt;b&gt;" in html
    assert "m\\x00\\x1b[31m{{y}}" in html


def test_report_reads_rows_once() -> None:
    times = 0

    def counted(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal times
        times += 1
        return batch

    rows = LOANS.lazy().map_batches(counted, validate_output_schema=False)
    gate = tf.check(tf.equalized_odds("race"), below=0.1)
    text = tf.report(rows, **LABELS, by=["sex", "race"], gate=gate).markdown()
    assert times == 1
    assert text == tf.report(LOANS, **LABELS, by=["sex", "race"], gate=gate).markdown()


def test_same_call_gives_the_same_page() -> None:
    few = tf.metric_set(tf.accuracy, tf.demographic_parity("sex"))
    one, other = (tf.report(LOANS.head(500), **LABELS, by="sex", metrics=few).html() for _ in range(2))
    assert one == other


def test_report_without_truth_shows_selection() -> None:
    text = tf.report(LOANS, estimate="approved", by="race", pos_label="yes").markdown()
    assert "`demographic_parity`" in text
    assert "equalized" not in text.lower()


def test_report_of_numbers_weights_and_multiclass() -> None:
    of_numbers = tf.metric_set(tf.rmse, tf.mae, tf.mae.difference("sex"))
    text = tf.report(LOANS, "weight", "score", by="sex", metrics=of_numbers, times=50).markdown()
    assert "`mae_difference`" in text
    weighed = tf.report(LOANS, **LABELS, by="race", case_weights="weight").markdown()
    assert "The weights add up to" in weighed
    bands = LOANS.with_columns(guess=pl.col("age_band").shift(1))
    several = tf.report(bands, "age_band", "guess", by="sex", times=50).markdown()
    assert "macro" not in several
    assert "`demographic_parity`" in several


def test_report_takes_sides_as_feature() -> None:
    sides = tf.privileged(race="White")
    assert "privileged" in tf.report(LOANS, **SCORES, by=sides).markdown()


def test_undefined_metrics_are_listed_as_left_out() -> None:
    people = pl.DataFrame({"y": [1, 0, 0, 0] * 5, "p": [1, 0, 1, 0] * 5, "g": [*"aabb" * 5]})
    text = tf.report(people, "y", "p", by="g", min_n=0).markdown()
    left_out = part(text, "Exclusions")
    assert "| Sensitivity `sens` | g | b | 10 | 0 | no row of the group counts for this metric |" in left_out
    reason = "no row of the group counts for this metric"
    assert f'- **Not compared by g:** g = "b" (sensitivity: {reason})' in text


def test_weighted_report_has_weighted_curves() -> None:
    people = LOANS.drop_nulls().head(1_000).with_columns(times=pl.when(pl.col("repaid") == "yes").then(9).otherwise(1))
    call: dict[str, Any] = {**LABELS, "probs": "score", "by": "sex", "metrics": tf.selection_rate}
    plain, weighed = tf.report(people, **call), tf.report(people, **call, case_weights="times")
    assert calibration(plain) != calibration(weighed)
    # frequencies draw what as many rows do, which a picture counts
    repeated = people.select(pl.all().repeat_by("times").explode())
    often = [tf.report(people, **call, frequency_weights="times"), tf.report(repeated, **call)]
    assert calibration(often[0]) == calibration(often[1])


def calibration(made: tf.types.Report) -> str:
    """The picture of calibration, the last one of its section."""
    (section,) = (section for section in made.parts if section.heading == "Thresholds and calibration")
    return section.html().rpartition("<figure")[2].partition("</figure>")[0]


def test_small_groups_are_hidden_in_every_section() -> None:
    few = LOANS.filter(pl.col("race") == HOSTILE).height
    text = tf.report(LOANS, **SCORES, by="race", min_n=few + 1).markdown()
    assert "| \N{EN DASH} | \N{EN DASH} |" in part(text, "Data")
    disparities, _, notes = part(text, "Disparities").partition("left out: ")
    assert "script" not in disparities
    assert "script" in notes
    assert "script" in text.partition("\n## ")[0]


def _reported(call: dict[str, Any]) -> tf.types.Report:
    every: dict[str, Any] = {"data": LOANS, **LABELS, "by": "sex", **call}
    return tf.report(**every)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"min_n": -1}, "min_n"),
        ({"data": LOANS.clear()}, "there are no rows"),
        ({"estimate": None, "probs": "score", "threshold": [0.3, 0.5]}, "give one threshold, not a list"),
        ({"parts": 3}, "decides `parts` for itself"),
        ({"explain": True}, "decides `explain` for itself"),
        ({"title": None}, "`title` is a text"),
        ({"dataset": 3}, "`dataset` is a text"),
        ({"gate": "x"}, "`gate` is what check"),
        ({"pos_lable": "yes"}, "Did you mean 'pos_label'"),
    ],
)
def test_report_rejects_bad_calls(call: dict[str, Any], expected: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=expected):
        _reported(call)


@pytest.mark.parametrize(
    "call",
    [
        {"seed": 3, "times": 50, "interval": "bootstrap"},
        {"probs": "score", "score_bins": 100},
        {"metrics": tf.accuracy},
        {"metrics": tf.metric_set(tf.rmse), "truth": "weight", "estimate": "score", "pos_label": None, "times": 50},
        {"data": LOANS.filter(pl.col("repaid") == "no"), "labels": ["no", "yes"]},
        {"data": LOANS.head(3)},
        {"data": LOANS.with_columns(user=pl.int_range(pl.len()) % 60), "by": "user", "probs": "score"},
    ],
)
def test_report_takes_whatever_metrics_take(call: dict[str, Any]) -> None:
    text = _reported(call).markdown()
    assert "## Definitions" in text


@pytest.mark.usefixtures("undrawn")
def test_report_saves_html_and_markdown(tmp_path: Path) -> None:
    made = tf.report(LOANS, **LABELS, by="sex", interval=None)
    assert made.save(tmp_path / "audit.html").read_text("utf-8") == made.html()
    assert made.save(str(tmp_path / "card.md")).read_text("utf-8") == made.markdown()
    with pytest.raises(tf.errors.ArgumentError, match=r"Unknown kind of report '\.pdf'"):
        made.save("audit.pdf")
    with pytest.raises(tf.errors.ArgumentError, match="without groups"):
        tf.report(LOANS.group_by("fold"), **LABELS, by="sex")
    with pytest.raises(tf.errors.ArgumentError, match="at least one feature"):
        tf.report(LOANS, **LABELS, by=[])


@pytest.mark.usefixtures("undrawn")
def test_failed_save_keeps_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tf.report(LOANS, **LABELS, by="sex", interval=None)
    page = tmp_path / "audit.html"
    page.write_text("what was there", "utf-8")
    write = Path.write_text

    def full(self: Path, text: str, encoding: str) -> int:
        write(self, text[:100], encoding)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.write_text", full)
        with pytest.raises(tf.errors.ArgumentError, match=r"The report cannot be written to .*No space left on device"):
            made.save(page)
    assert [item.name for item in tmp_path.iterdir()] == ["audit.html"]
    assert page.read_text("utf-8") == "what was there"


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_missing_report_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(tf.errors.ArgumentError, match=r"pip install 'tidyfair\[(report|plot)\]'"):
        tf.report(LOANS, **LABELS, by="sex").html()


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 390])
def test_offline_browser_opens_the_page(width: int, tmp_path: Path, audit_page: str) -> None:
    page = tmp_path / "audit.html"
    page.write_text(audit_page, "utf-8")
    read = Page(in_a_browser(page, tmp_path / "audit.png", width))
    assert HOSTILE in read.text
    assert "How to repeat this audit" in read.text
    assert not read.all("script")


def test_facts_name_the_event_of_labels_that_need_no_pos_label() -> None:
    people = pl.DataFrame(
        {"y": [1, 0] * 30, "p": [1, 0, 0] * 20, "s": [0.8, 0.3, 0.4] * 20, "g": ["a"] * 30 + ["b"] * 30}
    )
    assert "- **Event**: 1\n" in tf.report(people, "y", "p", by="g").markdown()
    assert "- **Event**: True\n" in tf.report(people.cast({"p": pl.Boolean}), estimate="p", by="g").markdown()
    assert "- **Event**: 0\n" in tf.report(people, "y", "p", by="g", pos_label=0).markdown()
    of_three = people.with_columns(y=pl.col("y") + (pl.int_range(60) % 5 == 0), p=pl.col("p").cast(pl.Int64))
    assert (
        "**Event**"
        not in tf.report(of_three.with_columns(pl.col("y", "p").cast(pl.String)), "y", "p", by="g").markdown()
    )
    assert "**Event**" not in tf.report(people, "s", pl.col("s").sqrt().alias("root"), by="g").markdown()


SCROLLED = """<script>
const wide = [...document.querySelectorAll(".table")].filter(box => box.scrollWidth > box.clientWidth + 1);
document.body.dataset.scrolled = wide.map(box => box.id || box.ariaLabel).join(", ");
document.body.dataset.width = document.documentElement.scrollWidth;
</script></body>"""
"""What tables do not fit, and how wide the page is, as a browser finds them."""


def wide_table_page() -> str:
    """A page whose table has the usual metrics, with intervals, of groups whose names are of two words."""
    names = ["base_rate", "selection_rate", "accuracy", "sens", "spec", "precision", "roc_auc"]
    group, cell = ["All rows", "farming, unskilled", "professional"], "0.741 (0.728 to 0.754)"
    table = pl.DataFrame({".group": group, ".n": [6366, 859, 109], **{name: [cell] * 3 for name in names}})
    titles = ["Base rate", "Selection rate", "Accuracy", "Sensitivity", "Specificity", "Precision"]
    heads = dict(zip(names, zip([*titles, "Area under the ROC curve"], names, strict=True), strict=True))
    remark = "Values of few rows are not shown. " * 20
    return tf.types.Report(
        "Wide", (Facts(()),), (Section("Groups", (Table(table, heads=heads, remark=remark),)),)
    ).html()


def employment_page() -> str:
    """A page with a table of sixteen columns."""
    people = lending().with_columns(pl.format("{} group", pl.col("race")).alias("race"))
    labels: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
    return tf.audit("eeoc_uniform_guidelines", people, **labels, by=["sex", "race"]).page()


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("page_of", [wide_table_page, employment_page])
def test_wide_tables_take_the_room_of_the_window(page_of: Callable[[], str], tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of())
    page.write_text(text.replace("</body>", SCROLLED), "utf-8")
    shown = in_a_browser(page, tmp_path / "wide.png", 1280)
    assert 'data-scrolled=""' in shown
    assert 'data-width="1280"' in shown or 'data-width="1265"' in shown


def applicants() -> pl.DataFrame:
    """10,000 applicants, of whom 20 are AIAN and all hired, with 2 to 3 % missing in each feature."""
    number = pl.int_range(10_000)
    race = pl.when(number < 20).then(pl.lit("AIAN")).when(number % 43 == 0).then(None)
    race = race.when(number % 3 == 0).then(pl.lit("Black")).otherwise(pl.lit("White"))
    sex = pl.when(number % 37 == 0).then(None).when(number % 2 == 0).then(pl.lit("F")).otherwise(pl.lit("M"))
    # those of whom nothing is known are never hired, the fewest always
    hired = (number < 20) | ((number * 7 % 10 < 5) & race.is_not_null() & sex.is_not_null())
    return pl.select(sex=sex, race=race, hired=hired.cast(pl.Int8))


def test_no_headline_rests_on_an_unknown_or_a_tiny_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = applicants()
    text = tf.report(people, estimate="hired", by=["sex", "race", ("sex", "race")]).markdown()
    headline = text.partition("\n## ")[0]
    assert "by race:**" in headline
    lines = headline.splitlines()
    compared = [line for line in lines if re.match(r"- \*\*(?!Not compared).* by .*:\*\*", line)]
    assert len(compared) == 3
    assert not any("AIAN" in line or "unknown" in line for line in compared)
    assert any(line.startswith("- **Not compared by race:**") and "AIAN" in line for line in lines)
    assert any(line.startswith("- **Race is unknown for** 232 of 10,000 rows, 2.3%;") for line in lines)
    by = ["--by", "sex", "--by", "race", "--by", "sex:race"]
    _, shown, _ = called(capsys, "audit", written(people, tmp_path), "--estimate", "hired", *by)
    compared = [line for line in shown.splitlines() if "demographic_parity" in line]
    assert compared
    assert not any("AIAN" in line or "Unknown" in line for line in compared)


def test_a_feature_that_is_named_twice_is_refused() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"report\(\): `by` names 'sex' twice"):
        tf.report(LOANS, **LABELS, by=["sex", "sex"])


@pytest.fixture(scope="module")
def at_two_times() -> str:
    """A report on predictions that are wrong in one ward, at the second time only."""
    metrics = tf.metric_set(tf.survival.concordance.difference("ward"), tf.survival.brier.difference("ward"))
    gate = tf.check(tf.survival.brier.difference("ward"), below=0.1)
    return tf.report(patients(), estimate="risk", **TIMES, by="ward", metrics=metrics, gate=gate).markdown()


def brier_of(rows: pl.DataFrame, at: int) -> dict[str, float]:
    """The Brier score of each ward by its definition, as nobody is censored."""
    error = ((pl.col("time") > at).cast(pl.Float64) - pl.col(f"s{at}")) ** 2
    return dict(rows.group_by("ward").agg(error.mean()).rows())


def test_verdicts_at_several_times_name_their_time_and_are_not_mixed_up(at_two_times: str) -> None:
    verdicts = [line for line in at_two_times.splitlines() if "must be below 0.1" in line]
    assert len(verdicts) == 2
    for at, verdict in ((8, "Fail"), (4, "Pass")):
        of_wards = brier_of(patients(), at)
        (line,) = [line for line in verdicts if f"survival at time {at} by ward" in line]
        assert f"**{verdict}**" in line
        assert f" {abs(of_wards['a'] - of_wards['b']):.3f} (" in line
    assert "The gate also judges" not in at_two_times
    assert "| Difference in Brier score of survival at time 4 `brier_survival_difference` | ward |" in at_two_times


def test_verdicts_on_groups_that_a_page_leaves_out_have_the_value_without_them_of_their_time() -> None:
    is_few = pl.int_range(pl.len()) < 5
    wrong = [
        pl.when(is_few).then((pl.col("time") <= at).cast(pl.Float64)).otherwise(f"s{at}").alias(f"s{at}")
        for at in (4, 8)
    ]
    rows = patients().with_columns(*wrong, ward=pl.when(is_few).then(pl.lit("c")).otherwise("ward"))
    metrics = tf.survival.brier.difference("ward")
    gate = tf.check(metrics, below=0.1)
    text = tf.report(rows, **TIMES, by="ward", metrics=metrics, gate=gate, interval=None).markdown()
    for at in (4, 8):
        of_wards = brier_of(rows, at)
        (line,) = [line for line in text.splitlines() if f"time {at} by ward" in line and "must be below" in line]
        assert f"without them the value is {abs(of_wards['a'] - of_wards['b']):.3f}." in line


def test_disparities_at_several_times_are_judged_time_by_time(at_two_times: str) -> None:
    disparities = part(at_two_times, "Disparities")
    assert "Of 3 comparisons, in 1 groups differ; in 2 groups are not shown to differ." in disparities
    rows = {line.split("`")[0].strip("| "): line for line in disparities.splitlines() if "_difference`" in line}
    assert rows["Difference in Brier score of survival at time 8"].endswith("| &lt; 0.05 |")
    assert rows["Difference in Brier score of survival at time 4"].endswith("| \u2265 0.05 |")
    assert rows["Difference in concordance"].endswith("| \u2265 0.05 |")
    low, high = sorted(brier_of(patients(), 8).values())
    assert (
        "survival at time 8 differs by ward:** the Brier score of survival at time 8 is "
        f'{low:.3f} for ward = "a" and {high:.3f} for ward = "b"' in at_two_times
    )
    others = at_two_times.partition("Other comparisons: ")[2].partition(".\n")[0]
    assert others.endswith(" are not shown to differ")
    assert "difference in Brier score of survival at time 4" in others
    assert "difference in concordance" in others
    assert f'at time 8 ranges from {low:.3f} (ward = "a") to {high:.3f} (ward = "b")' in part(at_two_times, "Groups")


def test_values_of_many_groups_at_several_times_have_a_row_for_each_time() -> None:
    rows = pl.concat([patients(1_000), patients(1_000)]).with_columns(
        ward=pl.format("{}{}", "ward", pl.int_range(pl.len()) // 2 % 15)
    )
    metrics = tf.survival.brier.difference("ward")
    groups = part(tf.report(rows, **TIMES, by="ward", metrics=metrics, min_n=0).markdown(), "Groups")
    for at in (4, 8):
        of_wards = brier_of(rows, at)
        (line,) = [line for line in groups.splitlines() if line.startswith(f"| Brier score of survival at time {at} `")]
        assert f"| {min(of_wards.values()):.3f} (" in line
        assert f"| {max(of_wards.values()):.3f} (" in line


def test_findings_at_several_quantile_levels_are_of_one_level() -> None:
    random = pl.int_range(400)
    rows = pl.select(y=random, party=pl.when(random % 2 == 0).then(pl.lit("dem")).otherwise(pl.lit("rep")))
    dem = pl.col("party") == "dem"
    rows = rows.with_columns(
        q1=pl.col("y") - 1, q9=pl.when(dem | (pl.col("y") < 100)).then(pl.col("y") - 1).otherwise(pl.col("y") + 1)
    )
    metrics = tf.prediction_intervals.quantile_coverage_error.difference("party")
    text = tf.report(rows, "y", {0.1: "q1", 0.9: "q9"}, by="party", metrics=metrics).markdown()
    # the share of truths below the quantile: none at the level 0.1, and at 0.9 those of rep from 100 on
    assert 'quantiles at quantile level 0.9 ranges from -0.900 (party = "dem") to -0.150 (party = "rep")' in part(
        text, "Groups"
    )
    assert "| Difference in coverage error of quantiles at quantile level 0.1 `" in text


UNTIL = "time (times until the event died, or censoring)"
COLUMNS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "survival probabilities": (
        TIMES,
        tf.survival.brier.difference("ward"),
        f"the survival probabilities s4 (at time 4), s8 (at time 8), against {UNTIL}",
    ),
    "risk": (
        {"truth": TIMES["truth"], "estimate": "risk"},
        tf.survival.concordance.difference("ward"),
        f"risk, against {UNTIL}",
    ),
    "interval": (
        {"truth": "time", "estimate": tf.prediction_intervals.interval("s4", "time", level=0.8)},
        tf.prediction_intervals.equalized_coverage("ward"),
        "the interval s4 to time (level 80%), against time",
    ),
    "quantiles": (
        {"truth": "time", "estimate": {0.1: "s4", 0.9: "time"}},
        tf.prediction_intervals.quantile_coverage_error.difference("ward"),
        "the quantiles s4 (level 0.1), time (level 0.9), against time",
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_facts_name_the_columns_of_predictions(name: str) -> None:
    call, metrics, words = COLUMNS[name]
    text = tf.report(patients(), **call, by="ward", metrics=metrics, interval=None).markdown()
    assert f"- **Predictions**: {words}\n" in text


def test_rows_without_one_of_several_predictions_are_counted_as_missing() -> None:
    nth = pl.int_range(pl.len())
    rows = patients().with_columns(
        s8=pl.when(nth >= 20).then("s8"), died=pl.when((nth < 20) | (nth >= 27)).then("died")
    )
    metrics = tf.survival.brier.difference("ward")
    text = tf.report(rows, **TIMES, by="ward", metrics=metrics, interval=None).markdown()
    assert "400 rows; 7 without time or died, 20 without s4 or s8." in part(text, "Data")
    assert "7 rows without time or died and 20 rows without s4 or s8 are left out" in part(text, "Exclusions")


def test_groups_that_a_curve_leaves_out_are_named_with_the_reason() -> None:
    sizes = {f"g{size}": size for size in (10, 100, *range(400, 409))}
    rows = pl.concat(
        pl.select(g=pl.lit(name), y=pl.int_range(size) % 2, p=(pl.int_range(size) * 37 % 100) / 100)
        for name, size in sizes.items()
    )
    text = part(
        tf.report(rows, "y", probs="p", threshold=0.5, by="g", min_n=20).markdown(), "Thresholds and calibration"
    )
    few = "there are fewer than 20 rows in each of the ten bins of their scores"
    assert f"Not drawn, because {few}: g10; g100. Not drawn, because only the 8 largest groups are: g400." in text
    assert (
        "Not drawn, because there are fewer than 20 rows: g10. Not drawn, because only the 8 largest groups are: "
        in text
    )
    alike = part(tf.report(LOANS, **SCORES, by="sex").markdown(), "Thresholds and calibration")
    assert "Not drawn" not in alike


def test_page_shows_the_share_of_missing_predictions_by_group() -> None:
    is_lost = (pl.col("sex") == "female") & (pl.int_range(pl.len()) % 4 == 0)
    data = LOANS.with_columns(approved=pl.when(~is_lost).then("approved"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = tf.report(data, "repaid", "approved", by="sex", pos_label="yes").markdown()
    table = page.partition("## Data")[2].partition("\n## ")[0]
    assert "| Group | Rows | Share | Without a prediction |" in table
    share = data.filter(sex="female")["approved"].is_null().mean()
    assert isinstance(share, float)
    assert f" {share:.1%} |" in table
    assert "| 0.0% |" in table
    whole = tf.report(LOANS, "repaid", "approved", by="sex", pos_label="yes").markdown()
    assert "Without a prediction" not in whole


def test_report_on_several_models_names_what_each_is_better_and_worse_in(tmp_path: Path) -> None:
    yes = LOANS.with_columns(pl.col("repaid") == "yes")
    cuts = {name: (pl.col("score") >= at).alias(name) for name, at in (("loose", 0.2), ("close", 0.51))}
    models: dict[str, Any] = {"one": (pl.col("score") >= 0.5).alias("in use"), "others": cuts}
    compared = tf.compare_models(tf.sens, tf.spec, tf.demographic_parity("sex"), margin={"sens": 0.05})(
        yes, "repaid", **models
    )
    page = tf.report(compared, title="Which model?", auditor="A. Person", model_version="2")
    text = page.markdown()
    assert text.startswith("# Which model?\n\n- **Compared with**: in use\n- **Intervals**: 95% simultaneous CI")
    verdicts = {
        row[".metric"]: row[".verdict"] for row in compared.filter(pl.col(".model_other") == "loose").to_dicts()
    }
    assert (verdicts["sens"], verdicts["spec"]) == ("better", "worse")
    assert "loose: better in sensitivity; worse in specificity" in text
    assert compared.filter(pl.col(".model_other") == "close")[".verdict"][0] == "equivalent"
    assert "equivalent in sensitivity" in text
    assert text.count("| Sensitivity | all rows |") == 2
    html = page.save(tmp_path / "models.html").read_text("utf-8")
    assert html.count("<figure") == 2
    assert "<script" not in html
    alone = tf.compare_models(tf.sens)(yes, "repaid", one=models["one"], other=cuts["loose"])
    assert "loose: better in sensitivity." in tf.report(alone).markdown()
    with pytest.raises(tf.errors.ArgumentError, match="report\\(\\) compares groups"):
        tf.report(LOANS, **LABELS)


def test_models_that_are_worse_in_nothing_are_named_first() -> None:
    def row(model: str, metric: str, lower: float, upper: float) -> dict[str, Any]:
        values = {".one": 0.5, ".other": 0.5, ".change": 0.0, ".lower": lower, ".upper": upper}
        return {".metric": metric, ".by": None, ".model_one": "now", ".model_other": model, **values}

    changes = pl.DataFrame([
        row("both", "sens", 0.1, 0.2), row("both", "spec", -0.2, -0.1), row("same", "sens", -0.1, 0.1),
        row("same", "spec", -0.1, 0.1), row("best", "sens", 0.1, 0.2), row("best", "spec", -0.1, 0.1),
    ])  # fmt: skip
    assert findings_of_models(changes) == [
        "best: better in sensitivity; no change is shown in 1 of 2 values.",
        "same: no change is shown in any of 2 values.",
        "both: better in sensitivity; worse in specificity.",
    ]
