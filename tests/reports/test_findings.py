"""Findings: sentences on each feature, which pages and the command line share, and the significance they report."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from command_line import called, written
from report_data import LABELS, LOANS

import tidyfair as tdf
from tidyfair.datasets import lending
from tidyfair.reports import findings_of_models

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("few_draws")
ARGUMENTS = ["--truth", "repaid", "--estimate", "approved", "--pos-label", "yes"]


def findings_of(made: tdf.types.Report) -> list[str]:
    """The findings at the top of a report in Markdown, one for each feature."""
    opening = made.markdown().partition("\n## ")[0].replace("\\", "").replace("&lt;", "<")
    lines = [line for line in opening.split("\n") if re.match(r"- \*\*(?!Not compared).* by .*:\*\* ", line)]
    return [line.replace("- ", "", 1).replace("**", "") for line in lines]


def section(made: tdf.types.Report, heading: str) -> str:
    """A section of a report in Markdown."""
    return made.markdown().partition(f"## {heading}")[2].partition("\n## ")[0]


def remarks_of(made: tdf.types.Report) -> list[str]:
    """The remarks of a report on people who are not compared, and on predictions."""
    opening = made.markdown().partition("\n## ")[0].replace("\\", "")
    start = r"- \*\*(Not compared|.* is unknown for|Predictions are missing|Stray|On neither)"
    return [line.replace("**", "")[2:] for line in opening.split("\n") if re.match(start, line)]


def count_of_findings(sentences: list[str]) -> int:
    """The number of disparities that sentences say differ: each leads its feature, or is named in the last sentence."""
    number = 0
    for sentence in sentences:
        lead, _, others = sentence.partition(" Other comparisons: ")
        number += bool(re.search(r" differs by .*: ", lead))
        differing = re.search(r"^(.*?) differs?[;.]", others)
        if differing:
            number += len(re.split(", | and ", differing[1]))
    return number


def count_in_section(text: str) -> tuple[int, int]:
    """The number of comparisons that differ, and of all of them, as the section on disparities says it."""
    every, differing = re.findall(r"\*\*Of (\d+) comparisons, in (\d+) groups differ", text)[0]
    return int(differing), int(every)


def test_findings_section_and_terminal_count_the_same_disparities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    features: list[Any] = ["sex", "race", "age_band"]
    parities = (tdf.demographic_parity, tdf.equal_opportunity, tdf.equalized_odds, tdf.predictive_parity)
    compared = [parity(feature, min_n=30, unknown="apart") for parity in parities for feature in features]
    loans = lending(8_000)
    tests = tdf.inference.disparity_test(*compared)(loans, **LABELS)
    expected = int((tests[".p_adjusted"] < 0.05).sum())
    intervals = tdf.metric_set(*compared)(loans, **LABELS, interval="auto")
    # without adjustment it would be another number
    assert expected not in {int((intervals[".lower"] > 0).sum()), int((tests[".p_value"] < 0.05).sum())}
    made = tdf.report(loans, **LABELS, by=features)
    findings = findings_of(made)
    assert count_of_findings(findings) == expected
    assert count_in_section(section(made, "Disparities")) == (expected, 12)
    # nothing that differs is within the margin here, and what is alike is so by its whole interval
    alike = intervals.filter((pl.col(".upper") <= 0.05) & (pl.col(".lower") >= -0.05))
    assert section(made, "Disparities").count("| alike |") == len(alike)
    by = [flag for feature in features for flag in ("--by", feature)]
    code, out, _ = called(capsys, "audit", written(loans, tmp_path), *ARGUMENTS, *by)
    shown = re.sub(r"\s+", " ", out)
    assert code == 0
    assert all(finding in shown for finding in findings)
    assert "Groups differ: at the 5% level, adjusted for the number of disparities (Holm)." in shown


def test_disparities_without_tests_differ_by_their_adjusted_intervals() -> None:
    features: list[Any] = ["sex", "race", "age_band"]
    made = tdf.report(LOANS, **LABELS, by=features, case_weights="weight")
    parities = (tdf.demographic_parity, tdf.equal_opportunity, tdf.equalized_odds, tdf.predictive_parity)
    compared = tdf.metric_set(*(parity(one, min_n=30, unknown="apart") for parity in parities for one in features))
    remaining, clear = 12, 0
    while True:
        # Holm's method by hand: the limits for as many disparities as remain
        result = compared(LOANS, **LABELS, case_weights="weight", interval="auto", conf_level=1 - 0.05 / remaining)
        beyond = int((result[".lower"] > 0).sum())
        if beyond == clear:
            break
        clear, remaining = beyond, 12 - beyond
    unadjusted = compared(LOANS, **LABELS, case_weights="weight", interval="auto")
    assert 0 < clear < int((unadjusted[".lower"] > 0).sum())
    assert count_of_findings(findings_of(made)) == clear
    table = section(made, "Disparities")
    assert count_in_section(table) == (clear, 12)
    assert table.count("| &lt; 0.05 |") == clear


def test_a_test_and_an_interval_are_adjusted_together() -> None:
    scored = tdf.report(lending(), **LABELS, probs="score", by=["sex", "race"])
    (finding, _) = findings_of(scored)
    pairs = 'of pairs of a row with repaid = "yes" and one without, the share in which score is higher for the first'
    values = dict(
        tdf.roc_auc(lending(), "repaid", probs="score", pos_label="yes", group_by="sex")
        .select("sex", ".estimate")
        .rows()
    )
    female, male = values["female"], values["male"]
    ends = f'{female:.1%} for sex = "female" and {male:.1%} for sex = "male", {(male - female) * 100:.1f} points apart'
    assert finding.startswith(f"Area under the ROC curve differs by sex: {pairs} is {ends} (95% CI ")
    table = section(scored, "Disparities")
    tested = tdf.inference.disparity_test(tdf.equalized_odds("race", min_n=30, unknown="apart"))(lending(), **LABELS)
    # each p-value is multiplied as if the two areas came last
    assert tested[".p_value"].item() < 0.001
    assert ": no test. Tests are of rates; other disparities are judged by their intervals." in table.replace("\\", "")
    assert (count_of_findings(findings_of(scored)), 10) == count_in_section(table)


def test_findings_name_metric_groups_size_and_certainty() -> None:
    sex, race = findings_of(tdf.report(lending(), **LABELS, by=["sex", "race"]))
    result = tdf.demographic_parity("race")(lending(), **LABELS, interval="auto", explain=True).row(0, named=True)
    rates = dict(tdf.selection_rate(lending(), **LABELS, group_by="race").select("race", ".estimate").rows())
    low, high = result[".group_min"], result[".group_max"]
    ends = f"{result['.lower'] * 100:.1f} to {result['.upper'] * 100:.1f}"
    assert race == (
        f'Selection rate differs by race: the share with approved = "yes" is {rates[low]:.1%} for race = "{low}" and '
        f'{rates[high]:.1%} for race = "{high}", '
        f"{result['.estimate'] * 100:.1f} points apart (95% CI {ends}). Other comparisons: equal opportunity and "
        "equalized odds differ; predictive parity has too few rows to tell."
    )
    spec = dict(tdf.spec(lending(), **LABELS, group_by="sex").select("sex", ".estimate").rows())
    assert sex == (
        'Too few rows to tell by sex: the largest gap is in specificity: of rows with repaid = "no", the share with '
        f'approved = "no" is {spec["female"]:.1%} for sex = "female" and {spec["male"]:.1%} for sex = "male", '
        "3.1 points apart (95% CI 0.0 to 6.9), so that groups may be alike within 5 points (the default margin) or "
        "not. Other comparisons: equal opportunity has too few rows to tell; demographic parity and predictive parity "
        "are alike."
    )


def test_groups_are_alike_within_the_margin_that_is_set() -> None:
    call: dict[str, Any] = {**LABELS, "by": "sex", "metrics": tdf.demographic_parity("sex")}
    (by_default,) = findings_of(tdf.report(lending(), **call))
    assert by_default.startswith("Alike by sex within 5 points (the default margin): selection rate: the share with ")
    # its interval reaches to 3.9 points
    (narrow,) = findings_of(tdf.report(lending(), **call, margin=0.038))
    assert narrow.startswith("Too few rows to tell by sex: selection rate: ")
    assert "so that groups may be alike within 3.8 points (the margin of this audit) or not." in narrow
    (wide,) = findings_of(tdf.report(lending(), **call, margin=0.04))
    assert wide.startswith("Alike by sex within 4 points (the margin of this audit): ")
    ratio = tdf.report(lending(), **LABELS, by="sex", metrics=tdf.demographic_parity_ratio("sex"), margin=0.1)
    assert findings_of(ratio)[0].startswith("Alike by sex within a ratio of 0.900 (the margin of this audit): ")
    with pytest.raises(tdf.errors.ArgumentError, match="`margin` is a number between 0 and 1, not 5"):
        tdf.report(lending(), **call, margin=5)


def test_a_small_difference_that_is_certain_is_small_and_beyond_chance() -> None:
    # 50 and 52 percent of 100,000 each: 2 points, and less than half a point of error
    people = pl.DataFrame({"g": ["a"] * 100_000 + ["b"] * 100_000}).with_columns(
        e=pl.int_range(200_000) % 100 < pl.when(pl.col("g") == "a").then(50).otherwise(52)
    )
    (finding,) = findings_of(tdf.report(people, estimate="e", by="g"))
    assert finding.startswith(
        "Alike by g within 5 points (the default margin): selection rate: the share with e = True "
    )
    assert re.search(r"2\.0 points apart \(95% CI 1\.\d to 2\.\d\), small but beyond chance\.$", finding)


def test_people_on_neither_side_and_of_unknown_group_are_counted() -> None:
    rows = pl.int_range(pl.len())
    people = lending(2_000).with_columns(race=pl.when(rows % 5 > 0).then(pl.col("race").cast(pl.String)))
    both = tdf.privileged(race="White", unprivileged={"race": "Black"})
    remarks = remarks_of(tdf.report(people, **LABELS, by=both, interval=None))
    others = people.filter(~pl.col("race").is_in(["White", "Black"])).height
    unknown = "Race is unknown for 400 of 2,000 rows, 20.0%; not compared."
    count = f"{others} of 2,000 rows, {others / 2000:.1%}; not compared."
    assert remarks == [unknown, f'On neither side of race = "White" vs race = "Black" are {count}']


def test_few_rows_do_not_say_that_groups_are_alike() -> None:
    # 23 of 63 and 17 of 30
    rows = [("north", number < 23) for number in range(63)] + [("south", number < 17) for number in range(30)]
    people = pl.DataFrame(rows, schema=["region", "approved"], orient="row")
    (finding,) = findings_of(tdf.report(people, estimate="approved", by="region", pos_label=True))
    assert finding.startswith("Too few rows to tell by region: selection rate: the share with approved = True is 36.5%")
    assert 'for region = "north" and 56.7% for region = "south", 20.2 points apart (95% CI ' in finding


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (tdf.sens, 'of rows with repaid = "yes", the share with approved = "yes"'),
        (tdf.miss_rate, 'of rows with repaid = "yes", the share with approved = "no"'),
        (tdf.precision, 'of rows with approved = "yes", the share with repaid = "yes"'),
        (tdf.base_rate, 'the share with repaid = "yes"'),
        (tdf.accuracy, "the share with a right prediction"),
        (tdf.f_meas, "the F measure (F1 score)"),
    ],
)
def test_metrics_are_explained_in_the_words_of_the_data(metric: tdf.types.Metric, words: str) -> None:
    (finding,) = findings_of(tdf.report(lending(), **LABELS, by="race", metrics=metric.difference("race")))
    values = dict(metric(lending(), **LABELS, group_by="race").select("race", ".estimate").rows())
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    assert f'{words} is {values[low]:.1%} for race = "{low}" and {values[high]:.1%} for race = "{high}", ' in finding


def test_scores_above_a_threshold_are_what_is_selected() -> None:
    call: dict[str, Any] = {"probs": "score", "pos_label": "yes", "by": "race", "threshold": 0.6}
    (finding,) = findings_of(tdf.report(lending(), "repaid", **call, metrics=tdf.spec.difference("race")))
    assert 'of rows with repaid = "no", the share with score < 0.6 is ' in finding


def test_headline_sentence_and_picture_are_about_the_same_label() -> None:
    sizes = pl.Series(["a"] * 400 + ["b"] * 400)
    labels = ["x", "y", "z"]
    guesses = [labels[number % 3] for number in range(400)] + [labels[number % 2 + 1] for number in range(400)]
    people = pl.DataFrame({"g": sizes, "obs": [labels[number % 3] for number in range(800)], "pred": guesses})
    made = tdf.report(people, "obs", "pred", by="g", metrics=tdf.demographic_parity("g"))
    (finding,) = findings_of(made)
    # a third of a and nobody of b is x; the others are a third and a half
    assert finding.startswith('Selection rate of label x differs by g: the share with pred = "x" is 0.0% for g = "b" ')
    assert "Selection rate of label x ranges from 0.0% " in section(made, "Groups")
    assert "Selection rate of label x by g" in made.html().partition('class="contents"')[0]


def test_unknown_people_missing_predictions_and_stray_labels_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.int_range(pl.len())
    people = lending(2_000).with_columns(
        race=pl.when(rows % 5 > 0).then(pl.col("race").cast(pl.String)),
        repaid=pl.col("repaid").cast(pl.String),
        approved=pl.when(rows % 100 == 1).then(pl.lit("maybe")).when(rows % 10 != 2).then(
            pl.col("approved").cast(pl.String)
        ),
    )  # fmt: skip
    made = tdf.report(people, **LABELS, by="race")
    few = 'race = "Native" (all metrics: too few rows). Fewer than 30 rows that count are too few.'
    expected = [
        "Race is unknown for 400 of 2,000 rows, 20.0%; not compared.",
        f"Not compared by race: {few}",
        'Stray labels: approved is "maybe" in 20 rows, which repaid never is; it counts as other than "yes".',
    ]
    remarks = remarks_of(made)
    assert [remark for remark in remarks if not remark.startswith("Predictions")] == expected
    assert "Predictions are missing in 200 of 2,000 rows, 10.0%; " in "".join(remarks)
    assert "| Unknown (not compared) | 400 |" in section(made, "Groups")
    assert "unknown" not in section(made, "Exclusions").lower()
    assert "Unknown (not compared)" in made.html().partition('class="contents"')[0]
    call = ["audit", written(people, tmp_path), *ARGUMENTS, "--by", "race"]
    out = " ".join(called(capsys, *call)[1].split())
    assert all(remark in out for remark in remarks)


def test_scores_without_decisions_have_ranking_and_calibration() -> None:
    made = tdf.report(lending(), "repaid", probs="score", by="sex", pos_label="yes")
    (finding,) = findings_of(made)
    brier = dict(
        tdf.brier_class(lending(), "repaid", probs="score", pos_label="yes", group_by="sex")
        .select("sex", ".estimate")
        .rows()
    )
    assert f'the Brier score is {brier["male"]:.3f} for sex = "male" and {brier["female"]:.3f}' in finding
    shifts = lending().group_by("sex").agg((pl.col("score").mean() - (pl.col("repaid") == "yes").mean()) * 100)
    groups = section(made, "Groups")
    for sex, shift in shifts.rows():
        (row,) = [line for line in groups.splitlines() if line.startswith(f"| {sex} |")]
        assert f"| {shift:.1f} points (" in row
    assert "selection_rate" not in section(made, "Definitions")


def test_gates_show_the_interval_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = tdf.check(tdf.demographic_parity("race"), below=0.1)
    made = tdf.report(lending(), **LABELS, by="race", gate=gate)
    result = tdf.demographic_parity("race")(lending(), **LABELS, interval="auto").row(0, named=True)
    value, low, high = (f"{result[name] * 100:.1f}" for name in (".estimate", ".lower", ".upper"))
    opening, _, rest = made.markdown().partition("\n<details>")
    assert f"{value} points (95% CI {low} to {high}); must be below 10 points." in opening
    assert f"{value} points apart (95% CI {low} to {high})" in rest
    call = ["audit", written(lending(), tmp_path), *ARGUMENTS, "--by", "race"]
    out = " ".join(called(capsys, *call, "--fail-if", "demographic_parity(race) > 0.1")[1].split())
    assert f"demographic_parity(race) is {value} points ({low} to {high}), and must be below 10 points" in out
    # where the interval of the page leaves open what the bound decides, the bound is named
    decided = tdf.check(tdf.demographic_parity("race"), below=result[".lower"] + 0.001)
    text = tdf.report(lending(), **LABELS, by="race", gate=decided).markdown().partition("\n<details>")[0]
    bound = decided(lending(), **LABELS)[".lower"].item()
    assert f"Its one-sided 95% confidence bound, which decides, is {bound * 100:.1f} points." in text


def test_ratios_and_other_disparities_name_their_metrics_and_groups() -> None:
    rates = dict(tdf.selection_rate(lending(), **LABELS, group_by="race").select("race", ".estimate").rows())
    ratio = tdf.disparate_impact("race")(lending(), **LABELS, interval="auto").row(0, named=True)
    (finding,) = findings_of(tdf.report(lending(), **LABELS, by="race", metrics=tdf.disparate_impact("race")))
    ends = f"{ratio['.lower']:.3f} to {ratio['.upper']:.3f}"
    assert finding == (
        f'Selection rate differs by race: the share with approved = "yes" is {rates["Black"]:.1%} for race = "Black" '
        f'and {rates["Asian"]:.1%} for race = "Asian", a ratio of {ratio[".estimate"]:.3f} (95% CI {ends}).'
    )
    mean = tdf.average_abs_odds_difference("race")
    (finding,) = findings_of(tdf.report(lending(), **LABELS, by="race", metrics=mean))
    sens = tdf.sens(lending(), **LABELS, group_by="race").sort(".estimate")
    assert finding.startswith("Average absolute odds difference differs by race: ")
    assert f'sensitivity is {sens[".estimate"][0]:.1%} for race = "{sens["race"][0]}" and ' in finding
    rest = tdf.accuracy.difference("race", to="rest")
    (finding,) = findings_of(tdf.report(lending(), **LABELS, by="race", metrics=rest))
    others = tdf.accuracy(lending().filter(pl.col("race") != "Asian"), **LABELS)[".estimate"].item()
    assert f"{others:.1%} for all other groups and " in finding


def _employed() -> pl.DataFrame:
    """Of 40 students 7 repaid, and 12 were approved; of 80 people the job is not known."""
    return pl.DataFrame({
        "job": ["skilled"] * 200 + ["unskilled"] * 200 + ["student"] * 40 + [None] * 80,
        "truth": [1, 0] * 200 + [1] * 7 + [0] * 33 + [1, 0] * 40,
        "guess": [1, 1, 0, 0] * 50 + [1, 0, 0, 0] * 50 + [1] * 12 + [0] * 28 + [1, 0] * 40,
        "newer": [1, 0] * 260,
        "fold": [1, 1, 1, 1, 2, 2, 2, 2] * 65,
    })  # fmt: skip


LEFT_OUT = {
    "demographic_parity": "Unknown",
    "equal_opportunity": "student (sens: too few rows); Unknown",
    "equalized_odds": "student (sens: too few rows); Unknown",
    "predictive_parity": "student (precision: too few rows); Unknown",
}


def _with_notes(out: str, title: str, names: int = 1) -> dict[str, list[str]]:
    """The first cells of a table of the terminal without their marks, and the notes that these marks refer to."""
    table = out.partition(f"{title}\n")[2].partition("\n\n")[0]
    *_, below = table.rpartition("\u2518\n")
    notes = dict(re.findall(r"\[(\d+)\] (.*?)(?= \[\d+\] | Pooled: | change: |$)", " ".join(below.split())))
    found: dict[str, list[str]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split("[\u2502\u2506]", line)[1:-1]]
        if len(cells) > names and (cell := " ".join(cells[:names])) != "metric":
            name, *marks = re.split(r" \[(\d+)\]", cell)
            found[name] = [notes[mark] for mark in marks if mark]
    return found


def test_terminal_says_beside_every_disparity_who_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(_employed(), tmp_path)
    call = ["audit", file, "--truth", "truth", "--estimate", "guess", "--pos-label", "1", "--by", "job"]
    call += ["--interval", "none"]
    _, out, _ = called(capsys, *call, "--fail-if", "equalized_odds(job) > 0.9")
    shown = _with_notes(out, "Disparities of job")
    assert {name.partition(" ")[0]: notes for name, notes in shown.items()} == {
        name: [f"left out: {words}."] for name, words in LEFT_OUT.items()
    }
    assert "equalized_odds(job) cannot pass without student (sens: too few rows)." in " ".join(out.split())
    groups = out.partition("Groups of job")[2]
    # a narrow terminal has several tables
    students = [line for line in groups.splitlines() if line.startswith("\u2502 student")]
    assert len(re.findall(r" - \[\d\] ", " ".join(students))) == 2
    assert "] not compared: too few rows" in groups
    _, out, _ = called(capsys, *call, "--group-by", "fold", "--min-n", "20")
    shown = _with_notes(out, "Disparities of job over fold")
    few = LEFT_OUT | {"equalized_odds": "student (sens, spec: too few rows); Unknown"}
    assert shown == {name: [f"left out: {words}; by fold, in 2 of 2: {few[name]}."] for name, words in LEFT_OUT.items()}
    _, out, _ = called(capsys, *call, "--group-by", "fold", "--min-n", "20", "--full")
    shown = _with_notes(out, "Disparities of job by fold", 2)
    assert shown["1 equal_opportunity"] == ["left out: student (sens: too few rows); Unknown."]
    assert shown["2 equal_opportunity"] == ["left out: student (sens: too few rows); Unknown."]
    models = ["compare", *call[1:4], "--one", "guess", "--other", "newer", *call[6:10]]
    _, out, _ = called(capsys, *models)
    assert _with_notes(out, "Both models")["equal_opportunity"] == [f"left out: {LEFT_OUT['equal_opportunity']}."]


def test_pages_say_beside_every_disparity_who_is_left_out() -> None:
    made = tdf.report(_employed(), "truth", "guess", pos_label=1, by="job", interval=None)
    few = 'job = "student" (sensitivity, precision: too few rows). Fewer than 30 rows that count are too few.'
    assert remarks_of(made) == [
        "Job is unknown for 80 of 520 rows, 15.4%; not compared.",
        f"Not compared by job: {few}",
    ]
    words = {name: text.replace("sens", "sensitivity") for name, text in LEFT_OUT.items()}
    disparities = section(made, "Disparities").replace("\\", "")
    for name, text in words.items():
        (mark,) = re.findall(rf"\| [^|]*\[(\d)\] `{name}` \|", disparities)
        assert f"\n[{mark}] left out: {text}.\n" in disparities
    assert "| [1]" not in disparities
    groups = section(made, "Groups").replace("\\", "")
    (student,) = [line for line in groups.splitlines() if line.startswith("| student |")]
    assert len(re.findall(r"\[\d\]", student)) == 2
    assert "not compared: too few rows." in groups
    pictures = re.findall(r"<svg xmlns.*?</svg>", made.html(), re.DOTALL)
    assert any("Unknown (not compared)" in picture for picture in pictures)


def test_pictures_of_results_say_who_is_left_out() -> None:
    metrics = tdf.metric_set(tdf.equal_opportunity("job", min_n=30, unknown="apart"), tdf.accuracy)
    options: dict[str, Any] = {"pos_label": 1, "on_undefined": "ignore"}
    each: list[dict[str, Any]] = [{}, {"group_by": "fold"}]
    for grouped in each:
        result = metrics(_employed(), "truth", "guess", **options, explain=True, **grouped)
        for frame in (result, result.to_pandas()):
            notes = " ".join(tdf.autoplot(frame).to_dict()["title"]["subtitle"])
            assert "left out: student (sensitivity: too few rows); null (unknown)" in notes
    everybody = metrics(_employed().filter(job="skilled"), "truth", "guess", **options, explain=True)
    assert "left out" not in str(tdf.autoplot(everybody).to_dict()["title"])


def test_groups_whose_names_are_words_are_quoted_with_their_feature(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # rates are 11 of 44 and 33 of 44; a text in quotes tells a missing group from one that is called null
    data = pl.DataFrame(
        {"agrees": ["strongly"] * 44 + ["not"] * 44, "at": ["a"] * 88, "e": [1, 0, 0, 0] * 11 + [1, 1, 1, 0] * 11}
    )
    expected = '25.0% for agrees = "strongly" and 75.0% for agrees = "not", 50.0 points apart'
    crossed = '25.0% for agrees = "strongly", at = "a" and 75.0% for agrees = "not", at = "a", 50.0 points apart'
    call: dict[str, Any] = {"estimate": "e", "pos_label": 1, "metrics": tdf.demographic_parity("agrees")}
    (finding,) = findings_of(tdf.report(data, by="agrees", **call))
    assert expected in finding
    call["metrics"] = tdf.demographic_parity("agrees", "at")
    (finding,) = findings_of(tdf.report(data, by=[("agrees", "at")], **call))
    assert crossed in finding
    asked = ["--estimate", "e", "--pos-label", "1", "--by", "agrees", "--by", "agrees:at"]
    out = " ".join(called(capsys, "audit", written(data, tmp_path), *asked)[1].split())
    assert expected in out
    assert crossed in out


def test_sides_are_worded_by_their_condition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = tdf.privileged(race="White")
    result = tdf.demographic_parity(sides)(lending(), **LABELS, interval="auto").row(0, named=True)
    assert result[".upper"] < 0
    rates = tdf.selection_rate(lending().with_columns(white=pl.col("race") == "White"), **LABELS, group_by="white")
    (others, white) = (f"{value:.1%}" for value in rates.sort("white")[".estimate"])
    made = tdf.report(lending(), **LABELS, by=sides, metrics=tdf.demographic_parity(sides))
    ends = f"{-result['.upper'] * 100:.1f} to {-result['.lower'] * 100:.1f}"
    (finding,) = findings_of(made)
    assert finding == (
        'Selection rate differs by race = "White" vs all others: the share with approved = "yes" is '
        f'{others} for all others (unprivileged) and {white} for race = "White" (privileged), '
        f"{-result['.estimate'] * 100:.1f} points apart (95% CI {ends})."
    )
    assert '| race = "White" (privileged) |' in section(made, "Groups")
    _, out, _ = called(capsys, "audit", written(lending(), tmp_path), *ARGUMENTS, "--by", "race=White")
    assert '│ race = "White" (privileged) ' in out
    assert "│ privileged" not in out
    both = tdf.privileged(race="White", unprivileged={"race": ["Black", "Native"]})
    (finding,) = findings_of(tdf.report(lending(), **LABELS, by=both))
    assert ' for race = "Black" or "Native" (unprivileged) and ' in finding


def test_one_group_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    men = lending().filter(pl.col("sex") == "male")
    made = tdf.report(men, **LABELS, by=["sex", "race"])
    expected = 'No comparison by sex: there is one group, sex = "male", and nothing to compare.'
    assert findings_of(made)[0] == expected
    rows = [line for line in section(made, "Disparities").split("\n") if "| sex |" in line]
    assert len(rows) == 4
    assert not any("0.000" in row for row in rows)
    assert "**Of 4 comparisons, " in section(made, "Disparities")
    _, out, _ = called(capsys, "audit", written(men, tmp_path), *ARGUMENTS, "--by", "sex")
    assert expected in out
    table = out.partition("Disparities of sex")[2].partition("\n\n")[0]
    assert "there are fewer than two groups to compare" in re.sub(r"\s+", " ", table.replace("│", "").replace("┆", ""))
    assert "0.000" not in table
    few = pl.concat([men, lending().filter(pl.col("sex") == "female").head(3)])
    (finding,) = findings_of(tdf.report(few, **LABELS, by="sex"))
    assert finding == (
        'No comparison by sex: there is only one group to compare, sex = "male"; '
        "the others are unknown or have too few rows."
    )


@pytest.mark.usefixtures("undrawn")
def test_without_intervals_there_are_sentences_without_certainty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tdf.report(lending(), **LABELS, by="race", interval=None)
    rates = tdf.sens(lending(), **LABELS, group_by="race").sort(".estimate")
    (lowest, low), (highest, high) = rates.select("race", ".estimate")[[0, -1]].rows()
    expected = (
        'Sensitivity by race: of rows with repaid = "yes", the share with approved = "yes" is '
        f'{low:.1%} for race = "{lowest}" and {high:.1%} for race = "{highest}", '
        f"{(high - low) * 100:.1f} points apart (no intervals asked for)."
    )
    assert findings_of(made) == [expected]
    text = made.markdown()
    assert "CI" not in text.partition("## Definitions")[0]
    assert "interval=None" in text
    assert made.html().count("no intervals asked for") == 2
    _, out, _ = called(capsys, "audit", written(lending(), tmp_path), *ARGUMENTS, "--by", "race", "--interval", "none")
    assert expected in re.sub(r"\s+", " ", out)
    assert "Groups differ:" not in out


def decided(people: pl.DataFrame, parity: tdf.types.GroupwiseMetric, limit: float) -> str:
    """The verdict of `assert_fair`."""
    call: dict[str, Any] = {"estimate": "hired", "below": limit, "on_undefined": "ignore"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tdf.assert_fair(parity, people, **call)
        except tdf.inference.UnfairError:
            return "Fail"
    return "Not enough evidence" if any(one.category is tdf.errors.EvidenceWarning for one in caught) else "Pass"


def test_gates_in_reports_decide_as_assert_fair_does() -> None:
    # the few of c, and those of whom nothing is known, are all hired
    people = pl.DataFrame(
        {
            "g": ["a"] * 400 + ["b"] * 400 + ["c"] * 20 + [None] * 60,
            "hired": [1, 0] * 400 + [1] * 80,
        }
    )  # fmt: skip
    of_known = tdf.demographic_parity("g", min_n=30, unknown="apart")
    for parity in (tdf.demographic_parity("g"), of_known, tdf.demographic_parity("g", unknown="apart")):
        for limit in (0.05, 0.2, 0.9):
            made = tdf.report(people, estimate="hired", by="g", gate=tdf.check(parity, below=limit))
            verdict = decided(people, parity, limit)
            assert f"**{verdict}**: Demographic parity" in made.markdown(), (parity, limit)
    made = tdf.report(people, estimate="hired", by="g", gate=tdf.check(tdf.demographic_parity("g"), below=0.2))
    row = "The gate also judges groups that this report leaves out; without them the value is 0.0 points."
    assert row in made.markdown()
    same = tdf.report(people, estimate="hired", by="g", gate=tdf.check(of_known, below=0.2)).markdown()
    assert "The gate also judges" not in same


@pytest.mark.parametrize("unknown", ["apart", "drop", "group"])
def test_pages_say_that_all_rows_include_unknown_groups(
    unknown: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = lending(600).with_columns(sex=pl.when(pl.int_range(600) % 10 > 0).then(pl.col("sex").cast(pl.String)))
    made = tdf.report(people, estimate="approved", pos_label="yes", by="sex", unknown=unknown)
    rate = tdf.selection_rate(people, estimate="approved", pos_label="yes")[".estimate"].item()
    groups = section(made, "Groups")
    assert f"| All rows | 600 | {rate:.1%} (" in groups
    remark = "All rows include the rows of unknown groups."
    assert (remark in groups) == (unknown != "group")
    call = ["--estimate", "approved", "--pos-label", "yes", "--by", "sex", "--unknown", unknown]
    _, out, _ = called(capsys, "audit", written(people, tmp_path), *call)
    assert (remark in out) == (unknown != "group")


def test_findings_of_numbers_are_no_percents() -> None:
    shift = pl.when(pl.col("sex") == "male").then(2.5).otherwise(0.5)
    people = LOANS.with_columns(guess=pl.col("weight") + shift + (pl.int_range(pl.len()) % 2 - 0.5) / 50)
    call: dict[str, Any] = {"by": "sex", "metrics": tdf.residual_bias.difference("sex"), "times": 50}
    (finding,) = findings_of(tdf.report(people, "weight", "guess", **call))
    ends = '0.500 for sex = "female" and 2.500 for sex = "male", '
    name = r"Mean error differs by sex: the mean error \(predicted minus actual\) is "
    assert re.match(rf"{name}{ends}(1.999|2.00\d) apart \(95% CI .*\), in the unit of weight", finding)
    made = tdf.report(LOANS.with_columns(guess=pl.col("weight") + shift), "weight", "guess", **call)
    (finding,) = findings_of(made)
    assert finding == (
        f"Mean error by sex: the mean error (predicted minus actual) is {ends}2.000 apart (no confidence interval), "
        "in the unit of weight."
    )
    assert "**No disparity has a confidence interval or a test.**" in section(made, "Disparities")


def test_a_mean_of_differences_is_no_difference_of_one_rate() -> None:
    crossed = tdf.average_abs_odds_difference("sex", "race")
    call: dict[str, Any] = {"metrics": crossed, "interval": "bootstrap", "times": 50}
    (finding,) = findings_of(tdf.report(LOANS, **LABELS, by=[("sex", "race")], **call))
    assert finding.startswith("Average absolute odds difference differs by sex and race: ")


@pytest.mark.usefixtures("undrawn")
def test_findings_on_models_name_the_outer_groups() -> None:
    stricter = lending().with_columns(other=pl.when(pl.col("score") > 0.55).then(pl.lit("yes")).otherwise(pl.lit("no")))
    call: dict[str, Any] = {"one": "approved", "other": "other", "pos_label": "yes"}
    changes = tdf.compare_models(tdf.sens)(stricter, "repaid", **call, group_by="sex")
    assert findings_of_models(changes) == [
        'other: worse in sensitivity for sex = "female", sensitivity for sex = "male".'
    ]
    page = tdf.report(changes).html()
    assert "worse in sensitivity for sex = &quot;female&quot;" in page or 'sensitivity for sex = "female"' in page


def test_findings_on_models_say_what_is_not_worse() -> None:
    shuffled = lending().with_columns(other=pl.col("approved"))
    call: dict[str, Any] = {"one": "approved", "other": "other", "pos_label": "yes"}
    changes = tdf.compare_models(tdf.accuracy, margin=0.02)(shuffled, "repaid", **call)
    verdict = changes.with_columns(pl.lit("not worse").alias(".verdict"))
    assert findings_of_models(verdict) == ["other: not worse in accuracy."]
