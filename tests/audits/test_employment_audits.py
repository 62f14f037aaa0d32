"""Audits of selections for jobs, against the published examples of the rules and plain arithmetic."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import polars as pl
import pytest
from scipy import stats

import tidyfair as tdf

RACES = ["Hispanic", "White", "Black", "Pacific", "Asian", "Native", "Two or more"]
# The tables of the adopted rules (6 RCNY 5-301): applicants, selected, published rate in percent and ratio
CROSSED = {
    ("Hispanic", "Male"): (205, 90, "43.9", "0.841"),
    ("Hispanic", "Female"): (190, 82, "43.2", "0.827"),
    ("White", "Male"): (412, 215, "52.2", "1.000"),
    ("Black", "Male"): (226, 95, "42.0", "0.806"),
    ("Pacific", "Male"): (87, 37, "42.5", "0.815"),
    ("Asian", "Male"): (321, 167, "52.0", "0.997"),
    ("Native", "Male"): (24, 11, "45.8", "0.878"),
    ("Two or more", "Male"): (115, 52, "45.2", "0.866"),
    ("White", "Female"): (385, 197, "51.2", "0.981"),
    ("Black", "Female"): (164, 75, "45.7", "0.876"),
    ("Pacific", "Female"): (32, 15, "46.9", "0.898"),
    ("Asian", "Female"): (295, 135, "45.8", "0.877"),
    ("Native", "Female"): (17, 7, "41.2", "0.789"),
    ("Two or more", "Female"): (98, 44, "44.9", "0.860"),
}
BY_SEX = {"Male": (1390, 667, "48", "1.00"), "Female": (1181, 555, "47", "0.979")}
BY_RACE = {
    "Hispanic": (408, 204, "50", "0.97"),
    "White": (797, 412, "52", "1.00"),
    "Black": (390, 170, "44", "0.84"),
    "Pacific": (119, 52, "44", "0.85"),
    "Asian": (616, 302, "49", "0.95"),
    "Native": (41, 18, "44", "0.85"),
    "Two or more": (213, 96, "45", "0.87"),
}
# above the median, of how many
SCORED = {
    ("Hispanic", "Male"): (12, 16), ("Hispanic", "Female"): (6, 12), ("White", "Male"): (7, 20),
    ("Black", "Male"): (10, 20), ("Pacific", "Male"): (3, 4), ("Asian", "Male"): (7, 12), ("Native", "Male"): (5, 8),
    ("Two or more", "Male"): (6, 12), ("White", "Female"): (8, 20), ("Black", "Female"): (6, 12),
    ("Pacific", "Female"): (2, 4), ("Asian", "Female"): (3, 12), ("Native", "Female"): (5, 8),
    ("Two or more", "Female"): (4, 8),
}  # fmt: skip
PUBLISHED_SCORES = {
    "Male": "1.00", "Female": "0.82", "Hispanic": "1.00", "White": "0.58", "Black": "0.78", "Pacific": "0.97",
    "Asian": "0.65", "Native": "0.97", "Two or more": "0.78", "Hispanic:Male": "1.00", "Hispanic:Female": "0.67",
    "White:Male": "0.47", "Black:Male": "0.67", "Pacific:Male": "1.00", "Asian:Male": "0.78", "Native:Male": "0.83",
    "Two or more:Male": "0.67", "White:Female": "0.53", "Black:Female": "0.67", "Pacific:Female": "0.67",
    "Asian:Female": "0.33", "Native:Female": "0.83", "Two or more:Female": "0.67",
}  # fmt: skip
ONE_MORE = ("Would flip if one more were selected", "Would reach 4/5 if one more were selected")


def rows_of(counts: dict[Any, tuple[int, int]], *columns: str) -> pl.DataFrame:
    """Rows of so many (selected, all) for each value of the columns."""
    parts = []
    for values, (selected, every) in counts.items():
        keys = values if isinstance(values, tuple) else (values,)
        flags = [1] * selected + [0] * (every - selected)
        parts.append(
            pl.DataFrame({name: [key] * every for name, key in zip(columns, keys, strict=True)}).with_columns(
                pl.Series("selected", flags)
            )
        )
    return pl.concat(parts)


def rounded(value: float, like: str, scale: int = 1) -> str:
    """A value as the source rounds it, half up, with as many digits."""
    return str((Decimal(repr(value)) * scale).quantize(Decimal(like), ROUND_HALF_UP))


@pytest.fixture(scope="module")
def applicants() -> pl.DataFrame:
    known = rows_of({key: (selected, every) for key, (every, selected, *_) in CROSSED.items()}, "race", "sex")
    # 250 of unknown sex or race, which are counted, and change nothing
    unknown = pl.DataFrame(
        {"race": ["White"] * 100 + [None] * 150, "sex": [None] * 180 + ["Male"] * 70, "selected": [1] * 250}
    )
    return pl.concat([known, unknown.with_columns(pl.col("selected").cast(pl.Int64))])


def by_group(frame: pl.DataFrame, by: str) -> dict[str, dict[str, Any]]:
    return {row[".group"]: row for row in frame.filter(pl.col(".by") == by).to_dicts()}


def test_nyc_selections_are_those_of_the_rule(applicants: pl.DataFrame) -> None:
    """Against the table of the adopted rules, but for race, which there is of other counts."""
    filed = tdf.audit("nyc_ll144", applicants, estimate="selected", by=["race", "sex"])
    table = filed.tables["selections"]
    sexes, crossed = by_group(table, "sex"), by_group(table, "race:sex")
    for sex, (every, selected, rate, ratio) in BY_SEX.items():
        row = sexes[sex]
        assert (row[".n"], row[".numerator"]) == (every, selected)
        assert (rounded(row[".estimate"], rate, 100), rounded(row[".disparity"], ratio)) == (rate, ratio)
    for (race, sex), (every, selected, rate, ratio) in CROSSED.items():
        row = crossed[f"{race}:{sex}"]
        assert (row[".n"], row[".numerator"]) == (every, selected)
        assert (rounded(row[".estimate"], rate, 100), rounded(row[".disparity"], ratio)) == (rate, ratio)
    assert len(sexes) == 2
    assert len(crossed) == 14
    # shares, and with them a minimum share, are of all rows
    assert crossed["Hispanic:Male"][".share"] == pytest.approx(crossed["Hispanic:Male"][".n"] / 2821)
    unknown = dict(filed.tables["unknown"].select(".by", ".unknown").rows())
    assert unknown == {"race": 150, "sex": 180, "race:sex": 250}
    assert "Of 2,821 rows, 250 are of unknown race or sex." in filed.statement
    # the rule's example has 408 and 204 Hispanic applicants, and its crossings 395 and 172, so not one data set
    assert (by_group(table, "race")["Hispanic"][".n"], by_group(table, "race")["Hispanic"][".numerator"]) == (395, 172)


def test_nyc_selections_by_race_are_those_of_the_rule() -> None:
    data = rows_of({race: (selected, every) for race, (every, selected, *_) in BY_RACE.items()}, "race")
    table = by_group(tdf.audit("nyc_ll144", data, estimate="selected", by="race").tables["selections"], "race")
    for race, (_, _, rate, ratio) in BY_RACE.items():
        assert (rounded(table[race][".estimate"], rate, 100), rounded(table[race][".disparity"], ratio)) == (
            rate,
            ratio,
        )


def test_nyc_scores_are_those_of_the_rule() -> None:
    """Against the table of the adopted rules; scores at the median are not above it, and unknown rows have a say."""
    data = rows_of(SCORED, "race", "sex").rename({"selected": "score"})
    unknown = pl.DataFrame(
        {"race": ["Unknown"] * 15, "sex": ["Male"] * 15, "score": [1] * 7 + [0] * 8}, schema=data.schema
    )
    filed = tdf.audit("nyc_ll144", pl.concat([data, unknown]), probs="score", by=["race", "sex"])
    table = filed.tables["scores"]
    assert dict(table.select(".group", ".disparity").rows()).keys() == PUBLISHED_SCORES.keys()
    for group, value in table.select(".group", ".disparity").rows():
        assert rounded(value, "0.01") == PUBLISHED_SCORES[group], group
    sexes = by_group(table, "sex")
    assert (sexes["Male"][".numerator"], sexes["Male"][".n"], sexes["Female"][".numerator"], sexes["Female"][".n"]) == (
        50,
        92,
        34,
        76,
    )


def test_nyc_small_categories_are_listed_and_neither_compared_nor_a_reference(applicants: pl.DataFrame) -> None:
    best_is_small = pl.concat(
        [applicants, pl.DataFrame({"race": ["Tiny"] * 5, "sex": ["Male"] * 5, "selected": [1] * 5})]
    )
    filed = tdf.audit("nyc_ll144", best_is_small, estimate="selected", by=["race", "sex"], min_share=0.02)
    races = by_group(filed.tables["selections"], "race")
    assert races["Tiny"][".status"] == "below_min_share"
    assert races["Tiny"][".estimate"] == 1
    assert races["Tiny"][".disparity"] is None
    assert races["White"][".disparity"] == 1
    crossed = by_group(filed.tables["selections"], "race:sex")
    small = {group for group, row in crossed.items() if row[".status"] == "below_min_share"}
    assert small == {"Native:Male", "Native:Female", "Pacific:Female", "Tiny:Male"}
    assert rounded(crossed["Black:Male"][".disparity"], "0.001") == "0.806"


def test_nyc_large_example_counts_unknown_by_table() -> None:
    """Against the outputs that the documentation of solas-ai prints, which leaves out by table, not by row."""
    sexes = rows_of({"Female": (3589, 4824), "Male": (3682, 4869), None: (200, 307)}, "sex")
    per_table = replace(tdf.audits.NAMED_AUDITS["nyc_ll144"], complete_rows=False)
    table = by_group(tdf.audit(per_table, sexes, estimate="selected", by="sex").tables["selections"], "sex")
    assert table["Female"][".estimate"] == pytest.approx(0.743988, abs=5e-7)
    assert table["Male"][".estimate"] == pytest.approx(0.756213, abs=5e-7)
    assert table["Female"][".disparity"] == pytest.approx(0.983835, abs=5e-7)
    assert table["null"][".status"] == "unknown"


def test_published_nyc_table_is_rounded_and_has_no_line(applicants: pl.DataFrame) -> None:
    filed = tdf.audit("nyc_ll144", applicants, estimate="selected", by=["race", "sex"])
    published = filed.published()
    assert published.columns == ["By", "Group", "Applicants", "Selected", "Selection rate (%)", "Impact ratio", "Note"]
    row = published.row(by_predicate=pl.col("Group") == "Black, Male", named=True)
    assert (row["Selection rate (%)"], row["Impact ratio"]) == (42.0, 0.806)
    assert "| race, sex | Black, Male | 226 | 95 | 42.0 | 0.806 |" in filed.markdown()
    assert '<td class="number">42.0</td><td class="number">0.806</td>' in filed.html()


def adverse(selected: int, rows: int, best: int, of: int) -> dict[str, Any]:
    data = rows_of({"a": (selected, rows), "b": (best, of)}, "group")
    return by_group(
        tdf.audit("eeoc_uniform_guidelines", data, estimate="selected", by="group").tables["adverse_impact"], "group"
    )["a"]


def test_four_fifths_is_counted_in_whole_numbers() -> None:
    """Question 11 of the questions and answers of 1979: 48 of 60 percent is four fifths, and not below."""
    rates = {"White": 60, "American Indian": 45, "Hispanic": 48, "Black": 51}
    data = rows_of({race: (rate, 100) for race, rate in rates.items()}, "race")
    filed = tdf.audit("eeoc_uniform_guidelines", data, estimate="selected", by="race")
    table = by_group(filed.tables["adverse_impact"], "race")
    assert {race: table[race][".disparity"] for race in rates} == pytest.approx(
        {"White": 1, "American Indian": 0.75, "Hispanic": 0.8, "Black": 0.85}
    )
    assert [race for race in rates if table[race][".below_four_fifths"]] == ["American Indian"]


@pytest.mark.parametrize(
    ("counts", "z", "fisher", "mid_p", "shortfall", "pooled"),
    [
        ((12, 40, 48, 80), -3.0984, 0.0034092, 0.0021422, 12, 8),
        ((3, 20, 16, 80), -0.5098, 0.75706, 0.64095, 1, 0.8),
        ((2, 10, 15, 25), -2.1390, 0.059908, 0.043699, 4, 2.857),
    ],
)
def test_tests_and_shortfalls_equal_independent_numbers(
    counts: tuple[int, int, int, int], z: float, fisher: float, mid_p: float, shortfall: float, pooled: float
) -> None:
    """Numbers of plain arithmetic and scipy; the last counts are those of Morris (2017).

    Of 60 and 60 there is a table at the other end that is as likely, which counts half too.
    """
    row = adverse(*counts)
    hits, rows, best, of = counts
    table = [[hits, rows - hits], [best, of - best]]
    assert row[".deviations"] == pytest.approx(z, abs=5e-5)
    assert row[".p_value"] == pytest.approx(2 * stats.norm.sf(abs(z)), abs=5e-5)
    exact: Any = stats.fisher_exact(table)
    assert row[".p_fisher"] == pytest.approx(exact.pvalue, rel=1e-9)
    assert row[".p_fisher"] == pytest.approx(fisher, abs=5e-6)
    assert row[".p_mid_p"] == pytest.approx(mid_p, abs=5e-6)
    assert row[".shortfall"] == pytest.approx(shortfall)
    assert row[".shortfall_pooled"] == pytest.approx(pooled, abs=5e-4)


def test_one_selection_flips_small_numbers_and_not_large_ones() -> None:
    """16 of 80 and 3 of 20 become 15 of 80 and 4 of 20, as in question 21; 12 of 40 stay behind 47 of 80."""
    assert (adverse(3, 20, 16, 80)[".flips"], adverse(3, 20, 16, 80)[".within_one"]) == (True, True)
    assert (adverse(12, 40, 48, 80)[".flips"], adverse(12, 40, 48, 80)[".within_one"]) == (False, False)


def test_group_of_highest_rate_is_compared_with_nothing() -> None:
    data = rows_of({"a": (3, 4), "b": (2, 6)}, "group")
    row = by_group(
        tdf.audit("eeoc_uniform_guidelines", data, estimate="selected", by="group").tables["adverse_impact"], "group"
    )["a"]
    assert (row[".disparity"], row[".deviations"], row[".p_fisher"], row[".below_four_fifths"]) == (
        1,
        None,
        None,
        False,
    )


def test_four_fifths_and_flips_are_empty_where_nothing_can_be_compared() -> None:
    nobody = pl.DataFrame({"sex": ["f"] * 10 + ["m"] * 20, "hired": [0] * 30})
    table = tdf.audit("eeoc_uniform_guidelines", nobody, estimate="hired", by="sex").published()
    assert table.select("Impact ratio", "Below 4/5", *ONE_MORE).null_count().row(0) == (2, 2, 2, 2)
    people = pl.DataFrame(
        {"sex": ["f"] * 10 + ["m"] * 20, "hired": [1] * 3 + [0] * 17 + [1] * 10, "w": [1.0, 2.0] * 15}
    )
    weighted = tdf.audit("eeoc_uniform_guidelines", people, estimate="hired", by="sex", case_weights="w").published()
    assert weighted["Below 4/5"].null_count() == 0
    assert weighted.select(*ONE_MORE).null_count().row(0) == (2, 2)


@pytest.mark.parametrize("columns", [["g"], ["a", "b"]])
def test_notes_say_of_no_group_that_it_shares_people_with_itself(columns: list[str]) -> None:
    data = pl.DataFrame({"g": ["a", "b"] * 60, "a": [True, True, False] * 40, "b": [True, False] * 60})
    data = data.with_columns(hired=pl.col("a") & (pl.int_range(pl.len()) % 4 > 0))
    by = tdf.memberships("a", "b") if len(columns) > 1 else "g"
    table = tdf.audit("eeoc_uniform_guidelines", data, estimate="hired", by=by).tables["adverse_impact"]
    notes = table.select(
        ".group", pl.col(".reference") == pl.col(".group"), pl.col(".note").str.contains("shares people")
    )
    assert not notes.filter(pl.col(".reference"))[".note"].any()
    assert notes.filter(~pl.col(".reference"))[".note"].any() == (len(columns) > 1)
