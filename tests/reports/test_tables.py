"""Tables of results for reports."""

from __future__ import annotations

import re
import sqlite3
from html import unescape
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from report_data import LABELS, LOANS, Page, shown
from statsmodels.stats.proportion import proportion_confint
from test_plots import RESULTS

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.metrics.titles import capitalized
from tidyfair.reports.tables import one_below_the_other

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("few_draws")


def test_table_has_groups_as_rows_and_metrics_as_columns() -> None:
    rates = tf.new_groupwise_metric(tf.metric_set(tf.accuracy, tf.sens), "rates", tf.difference())
    groups = tf.metric_set(tf.accuracy, tf.sens, rates("sex")).by_group(LOANS, **LABELS, interval="exact")
    texts = shown(tf.as_table(groups, title="By sex"))
    assert "By sex" in texts
    headings = ["Group", "n", "Accuracy (95% CI)", "Sensitivity (95% CI)"]
    assert [text for text in texts if text in headings] == headings
    assert [text for text in texts if text in {"All rows", "Female", "Male"}] == ["All rows", "Female", "Male"]
    for value, low, high in groups.select(".estimate", ".lower", ".upper").rows():
        assert f"{value:.3f} ({low:.3f} to {high:.3f})" in texts


def test_empty_table_cells_give_the_reason() -> None:
    people = pl.DataFrame({"y": [1, 0, 0, 0] * 5 + [1], "p": [1, 0, 1, 0] * 5 + [1], "g": [*"aabb" * 5, "c"]})
    groups = tf.equal_opportunity("g").by_group(people, "y", "p", on_undefined="ignore")
    texts = shown(tf.as_table(groups, min_n=2))
    assert "\N{EN DASH}*" in texts
    assert "* No row of the group counts for this metric." in texts
    assert "\N{EN DASH}: hidden, fewer than 2 rows." in texts
    assert texts.count("1.000") == 1  # of a, and not of the only one of c


def test_worst_groups_are_marked_with_evidence_only() -> None:
    rates = tf.new_groupwise_metric(tf.sens, "rate", tf.difference())("race")
    groups = tf.metric_set(tf.sens, rates).by_group(lending(), **LABELS)
    worst = tf.inference.worst_groups(rates)(lending(), **LABELS)
    marked = Page(tf.as_table(groups, worst=worst).as_raw_html())
    rows = [line for line in marked.text.split("\n") if line.strip()]
    after = {name: [item.strip() for item in rows[rows.index(name) + 1 :][:2]] for name in ("Black", "Asian")}
    overall = groups[".estimate"][0]
    upper = dict(worst.select(".group", ".upper").rows())
    assert upper["Black"] < overall < upper["Asian"]
    black = dict(groups.select(".group", ".estimate").rows())["Black"]
    assert after["Black"] == ["882", f"{black:.3f}*"]
    assert "*" not in "".join(after["Asian"])
    assert any("worse than all rows" in row for row in rows)


def test_good_groups_are_not_marked_beside_a_tiny_one() -> None:
    sizes = {"low": (20_000, 0.7), "high": (20_000, 0.72), "tiny": (4, 0.75)}
    people = pl.concat(
        pl.DataFrame(
            {"g": [name] * rows, "y": [1] * rows, "p": [1] * round(rows * rate) + [0] * round(rows - rows * rate)}
        )
        for name, (rows, rate) in sizes.items()
    )
    rates = tf.new_groupwise_metric(tf.sens, "rate", tf.difference())("g")
    worst = tf.inference.worst_groups(rates)(people, "y", "p")
    assert set(worst[".worst"]) == {"lowest"}
    page = tf.as_table(tf.metric_set(tf.sens, rates).by_group(people, "y", "p"), worst=worst).as_raw_html()
    (row,) = [row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if "*</td>" in row]
    assert "Low" in row


def test_worst_groups_are_marked_per_outer_group() -> None:
    rates = tf.new_groupwise_metric(tf.sens, "rate", tf.difference())("race")
    people = lending(4_000).with_columns(pl.col("approved").cast(pl.String), half=pl.int_range(4_000) % 2)
    people = people.with_columns(approved=pl.when(pl.col("half") == 1).then(pl.lit("yes")).otherwise("approved"))
    call: dict[str, Any] = {**LABELS, "group_by": "half"}
    groups = tf.metric_set(tf.sens, rates).by_group(people, **call)
    worst = tf.inference.worst_groups(rates, pooling=None)(people, **call)
    page = tf.as_table(groups, worst=worst).as_raw_html()
    assert (page.count("*</td>"), page.count(">* Significantly worse")) == (1, 1)
    with pytest.raises(tf.errors.ArgumentError, match="add the metric itself"):
        tf.as_table(rates.by_group(people, **call), worst=tf.inference.worst_groups(rates)(people, **call))


@pytest.mark.parametrize("name", ["shown", "counted", "row", "cases", "self", "detection_prevalence", "nth"])
def test_table_takes_any_outer_column_name(name: str) -> None:
    people = LOANS.rename({"fold": name}).with_columns(pl.col(name).cast(pl.String))
    groups = tf.demographic_parity("sex").by_group(people, **LABELS, group_by=name)
    texts = shown(tf.as_table(groups))
    assert {f"{capitalized(name)} {value}" for value in people[name]} <= set(texts)
    assert {f"{value:.3f}" for value in groups[".estimate"]} <= set(texts)


def test_table_keeps_rows_of_groups_that_would_read_alike() -> None:
    few = tf.demographic_parity("sex").by_group(LOANS, "repaid", probs="score", pos_label="yes", top_k=[50, 300])
    assert {f"{value:.3f}" for value in few[".estimate"]} <= set(shown(tf.as_table(few)))
    people = pl.DataFrame({"y": [1, 0, 1, 1], "g": ["null", "null", None, None]})
    texts = shown(tf.as_table(tf.demographic_parity("g", unknown="group").by_group(people, estimate="y")))
    assert {"0.500", "1.000"} <= set(texts)
    assert (texts.count("Unknown"), texts.count("&quot;null&quot;") + texts.count('"null"')) == (1, 1)


def test_braces_in_names_are_no_markup() -> None:
    odd = "{{a}} **b**"
    people = LOANS.rename({"sex": odd}).with_columns(pl.col(odd).cast(pl.String).replace({"male": "{{m/s}} ^2^"}))
    groups = tf.demographic_parity(odd).by_group(people, **LABELS, group_by=pl.col("fold").alias("{{fold}}"))
    texts = shown(tf.as_table(groups, title="{{title}}"))
    assert {"{{title}}", "{{m/s}} ^2^", "{{fold}} 1"} <= set(texts)


def test_large_numbers_have_no_decimals() -> None:
    prices = pl.DataFrame({"y": [200_000.0, 300_000.0, 400_000.0], "p": [210_000.5, 280_000.25, 430_000.0]})
    assert "20,000" in shown(tf.as_table(tf.mae(prices, "y", "p")))
    assert "120.5" in shown(tf.as_table(tf.mae(prices / 166, "y", "p")))


def test_value_rounded_to_zero_has_no_sign() -> None:
    errors = pl.DataFrame({"y": [1.0, 2.0, 3.0], "p": [1.0, 2.0, 2.9999]})
    assert "0.000" in shown(tf.as_table(tf.residual_bias(errors, "y", "p")))


def test_table_names_the_worst_label() -> None:
    bands = LOANS.with_columns(guess=pl.col("age_band").shift(1))
    worst = tf.demographic_parity("sex")(bands, "age_band", "guess", explain=True, on_undefined="ignore")
    texts = shown(tf.as_table(worst))
    assert f"Demographic parity of {worst['.level'].item()} by sex" in " ".join(texts)


def test_table_shows_one_sided_intervals() -> None:
    result = tf.independence("race")(LOANS, **LABELS, interval="auto", times=50)
    value, upper = result.select(".estimate", ".upper").row(0)
    assert f"{value:.3f} (up to {upper:.3f})" in shown(tf.as_table(result))


def test_table_of_other_results_has_one_row_each() -> None:
    verdicts = tf.check(tf.demographic_parity("race"), below=0.1)(LOANS, **LABELS, times=50)
    texts = shown(tf.as_table(verdicts))
    assert {"Demographic parity by race", "not enough evidence", "0.100", "Lowest", "Highest"} <= set(texts)
    folds = tf.accuracy(LOANS, **LABELS, group_by="fold")
    assert {"Fold", "Accuracy", "Value"} <= set(shown(tf.as_table(folds)))


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: tf.as_table(LOANS), "takes a result of tidyfair"),
        (lambda: tf.as_table(tf.accuracy(LOANS, **LABELS).clear()), "that has rows"),
        (lambda: tf.as_table(tf.accuracy(LOANS, **LABELS), min_n=-1), "min_n"),
        (lambda: tf.as_table(tf.accuracy(LOANS, **LABELS), title=3), "`title` is a text"),  # pyright: ignore[reportArgumentType] - bad input
        (
            lambda: tf.as_table(tf.demographic_parity("sex").by_group(LOANS, **LABELS), worst=LOANS),
            "what `worst_groups",
        ),
    ],
)
def test_as_table_rejects_other_frames(ask: Callable[[], Any], expected: str) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=expected):
        ask()


def test_tables_of_comparisons_with_a_reference_show_the_interval_of_the_disparity() -> None:
    compared = tf.compare_groups(tf.sens, by="race")(lending(2_000), "repaid", "approved", pos_label="yes")
    shown = tf.as_table(compared).as_raw_html()
    lower = compared.drop_nulls(".lower").row(0, named=True)
    words = f"{lower['.disparity']:.3f} ({lower['.lower']:.3f} to {lower['.upper']:.3f})"
    assert words.replace("-", "\N{MINUS SIGN}") in shown


def test_ends_that_are_not_included_are_shown_with_a_sign() -> None:
    decisions = pl.concat(
        pl.DataFrame({"e": [1] * hits + [0] * (50 - hits), "g": group})
        for group, hits in {"a": 2, "b": 14, "c": 24}.items()
    )
    pairs = tf.inference.pairwise(tf.demographic_parity("g"), mid_p=True)(decisions, estimate="e")
    assert pairs[".method"][2] == "newcombe, open at 0"
    expected = f"-0.200 ({pairs['.lower'][2]:.3f} to < 0.000)"
    assert one_below_the_other(pairs)[".disparity"].to_list()[2] == expected
    assert expected.replace("-", "\N{MINUS SIGN}").replace(" (", "  (") in tf.autoplot(pairs).to_json()


def test_tables_of_tests_show_what_their_interval_is_about() -> None:
    call: Any = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
    loans = lending(2_000)
    race = tf.sens.difference("race")
    pairs = one_below_the_other(tf.inference.pairwise(race)(loans, **call))
    assert len(pairs) == 10
    assert " to " in pairs[".disparity"][0]
    assert " to " not in pairs[".estimate"][0]
    assert {".other", ".p_value"} <= set(pairs.columns)
    ranked = one_below_the_other(tf.inference.worst_groups(race)(loans, **call, times=200))
    assert {".p_worst", ".worst"} <= set(ranked.columns)
    other = (pl.col("score") > 0.4).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("other")
    models = tf.compare_models(tf.accuracy)(loans, "repaid", one="approved", other=other, pos_label="yes")
    assert " to " in one_below_the_other(models)[".change"][0]
    strata = tf.inference.stratified(race, within="sex")(loans, **call)
    assert " to " in one_below_the_other(strata)[".adjusted"][0]
    folds = tf.inference.summarize(tf.accuracy(loans, **call, group_by="fold"))
    assert ".std_error" in one_below_the_other(folds).columns


def test_values_of_models_margins_and_their_limits_have_one_unit() -> None:
    data = pl.DataFrame({"y": [1, 0] * 50, "one": [1, 0, 0, 0] * 25, "other": [1, 1] * 50})
    choice = tf.compare_models(tf.accuracy, adjust="max_t", margin=0.02)
    compared = choice(data, "y", one="one", others=["other"])
    shown = one_below_the_other(compared, {"accuracy": "%"})
    assert not {".one_lower", ".one_upper", ".other_lower", ".other_upper"} & set(shown.columns)
    lower, upper = (100 * compared[name].item() for name in (".one_lower", ".one_upper"))
    assert shown[".one"].item() == f"75.0% ({lower:.1f} to {upper:.1f})"
    assert shown[".margin"].item() == "2.0 points"


def test_tables_of_searches_say_where_no_change_is_known() -> None:
    weeks = pl.DataFrame({"week": range(20)}).join(pl.DataFrame({"sex": list("ffffmmmm") * 2}), how="cross")
    random = pl.Series([(31 * row) % 7 < 3 for row in range(len(weeks))])
    weeks = weeks.with_columns(hired=pl.when(pl.col("sex") == "m").then(random).otherwise(pl.col("week") < 12))
    search = tf.inference.compare_periods(tf.demographic_parity("sex"), period="week", search="change")
    found = search(weeks, estimate="hired", group_by="week", times=200)
    assert found[".period_lower"].to_list() == [12, None, 12]
    page = tf.as_table(found).as_raw_html()
    assert "from 12 on (12 to 12)" in page
    assert "no change beyond chance" in page
    assert "null" not in page
    nothing = tf.as_table(found.filter(pl.col(".period_lower").is_null())).as_raw_html()
    assert "no change beyond chance" in nothing


def test_plain_names_keep_all_groups_that_are_left_out() -> None:
    small = [f"group {number}" for number in range(9)]
    data = pl.DataFrame({"p": [1, 0] * 20 + [1] * 9, "g": ["a", "b"] * 20 + small})
    result = tf.selection_rate.difference("g", min_n=5)(data, estimate="p", explain=True)
    (text,) = tf.plain_names(result)["left_out"]
    assert all(name in text for name in small)


def test_plain_names_are_taken_by_a_database_and_lists_are_text() -> None:
    data = pl.DataFrame({"y": [1, 0, 1, 0], "p": [1, 0, 0, 0], "g": ["a, b", "a, b", "c", None]})
    result = tf.accuracy.difference("g")(data, "y", "p", explain=True, on_undefined="ignore")
    plain = tf.plain_names(result.with_columns(mine=pl.Series([[1, None]])))
    assert plain["mine"].to_list() == ["1, None"]
    assert not any(isinstance(dtype, pl.List) for dtype in plain.dtypes)
    gate = tf.plain_names(tf.check(tf.accuracy.difference("g"), below=0.5)(data, "y", "p", on_undefined="ignore"))
    connection = sqlite3.connect(":memory:")
    for name, table in (("disparity", plain), ("gate", gate)):
        connection.execute(f"create table {name} ({', '.join(table.columns)})")


def _rows_of(table: Any) -> list[list[str]]:
    """The texts of the rows of a table, those of its head first."""
    rows = re.findall(r"<tr.*?>(.*?)</tr>", table.as_raw_html(), re.DOTALL)
    return [
        [unescape(cell).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows
    ]


def test_groups_beside_a_reference_are_a_table_of_a_journal() -> None:
    loans = lending(2_000).with_columns(race=pl.when(pl.int_range(pl.len()) % 9 > 0).then("race"))
    compare = tf.compare_groups(tf.sens, by=["sex", ("sex", "race")], scale="ratio", min_n=30)
    compared = compare(loans, "repaid", "approved", pos_label="yes", conf_level=0.9)
    title, subtitle, head, by_sex, female, *rows = _rows_of(tf.as_table(compared, title="Table 1"))
    assert (title, subtitle) == (["Table 1"], ["Sensitivity"])
    assert head == ["Group", "n (%)", "Sensitivity (90% CI)", "Ratio (90% CI)", "P", "P, adjusted"]
    values = compared.row(0, named=True)
    share, rate, ratio = values[".share"], values[".estimate"], values[".disparity"]
    assert by_sex == ["By sex"]
    assert female == [
        "Female",
        f"{values['.n']:,} ({share * 100:.1f}%)",
        f"{rate:.3f} ({values['.estimate_lower']:.3f} to {values['.estimate_upper']:.3f})",
        f"{ratio:.3f} ({values['.lower']:.3f} to {values['.upper']:.3f})",
        f"{values['.p_value']:.3f}",
        f"{values['.p_adjusted']:.3f}",
    ]
    assert rows[0][0] == "Male"
    assert rows[0][3] == "Reference"
    names = [row[0] for row in rows if len(row) == len(head)]
    assert {"Female, White", "Female, Native*", "Female, unknown\N{DAGGER}"} <= set(names)
    assert ["* Not compared: too few rows."] in [[re.sub("<.*?>", "", cell) for cell in row] for row in rows]
    counts = loans.filter(sex="female", repaid="yes").select(
        (pl.col("approved") == "yes").sum().alias("hits"), pl.len()
    )
    low, high = proportion_confint(*counts.row(0), alpha=0.1, method="wilson")
    assert (values[".estimate_lower"], values[".estimate_upper"]) == pytest.approx((low, high))


def test_tables_say_the_level_that_a_call_had() -> None:
    for level, words in ((0.95, "95% CI"), (0.8, "80% CI")):
        values = tf.accuracy(LOANS, **LABELS, interval="auto", conf_level=level)
        assert (".conf_level" in values.columns) is (level != 0.95)
        assert f"Value ({words})" in shown(tf.as_table(values))
    gate = tf.check(tf.demographic_parity("sex"), below=0.1)
    assert "Value (95% one-sided limits)" in shown(tf.as_table(gate(LOANS, **LABELS)))
    stored = tf.demographic_parity("sex")(LOANS, **LABELS, interval="auto", conf_level=0.8, explain=True)
    assert "Value (90% one-sided limits)" in shown(tf.as_table(tf.check(stored, below=0.1)))


@pytest.mark.filterwarnings("ignore:Styles are not yet supported in LaTeX output")
def test_tables_with_notes_are_written_in_latex() -> None:
    compared = tf.compare_groups(tf.sens, by="race", min_n=100)(lending(2_000), **LABELS)
    latex = tf.as_table(compared, title="50% of {these} & those").as_latex()
    assert r"50\% of \{these\} \& those" in latex
    assert "Native* & 29" in latex
    assert "* Not compared: too few rows." in latex


def test_more_notes_than_marks_have_doubled_ones() -> None:
    reasons = [f"reason {number}" for number in range(7)]
    values = pl.DataFrame(
        {".metric": "sens", ".by": "g", ".group": list("abcdefg"), ".estimate": 0.5, ".note": reasons}
    )
    texts = shown(tf.as_table(values))
    assert {"A*", "E\N{PILCROW SIGN}", "F**", f"G{2 * chr(0x2020)}", "** Reason 5."} <= set(texts)


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_table_without_names_of_code(name: str) -> None:
    # curves have hundreds of rows, and one head
    rows = _rows_of(tf.as_table(RESULTS[name]()[:40]))
    texts = [re.sub("<.*?>", "", cell) for row in rows for cell in row]
    own = {"age_band", "total_rates"}
    assert not [text for text in texts if "_" in text and text not in own]
    assert not [text for text in texts if text in {"nan", "None", "null"}]


def test_rows_of_unknown_groups_are_counted_below_verdicts_and_in_their_own_table() -> None:
    loans = lending(2_000).with_columns(race=pl.when(pl.int_range(pl.len()) % 10 > 0).then("race"))
    verdicts = tf.check(tf.demographic_parity("race"), below=0.1)(loans, **LABELS)
    assert "200 rows (10.0%) are of unknown race and not compared." in shown(tf.as_table(verdicts))
    filed = tf.audit("eeoc_uniform_guidelines", loans, estimate="approved", pos_label="yes", by=["race", "sex"])
    assert _rows_of(tf.as_table(filed.tables["unknown"])) == [
        ["Feature", "n", "Unknown"], ["race", "2,000", "200"], ["sex", "2,000", "0"], ["race and sex", "2,000", "200"],
    ]  # fmt: skip


def test_curves_without_groups_have_a_row_for_each_point() -> None:
    curve = tf.pr_curve(lending(50), "repaid", probs="score", pos_label="yes")
    assert len(_rows_of(tf.as_table(curve))) == len(curve) + 1


def test_true_and_false_are_yes_and_no_on_pages() -> None:
    compared = pl.DataFrame(RESULTS["several models"]())
    text = tf.report(compared).markdown()
    on_frontier = compared[".on_frontier"].drop_nulls()
    assert text.count("| yes |") == on_frontier.sum()
    assert text.count("| no |") == (~on_frontier).sum()
    assert "True" not in text
    assert "False" not in text
