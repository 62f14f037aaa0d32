"""The audit of the EU Pay Transparency Directive, by the steps of the method of gov.uk in plain arithmetic."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from command_line import called
from conftest import as_polars
from inline_snapshot import snapshot

import tidyfair as tdf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STAFF = pl.DataFrame(
    {
        "sex": ["f", "f", "f", "f", "f", "m", "m", "m", "m", "m", "m", None, "f"],
        "pay": [18.0, 20.0, 22.0, 25.0, 30.0, 20.0, 21.0, 26.0, 28.0, 34.0, 45.0, 24.0, None],
        "bonus": [None, 1.0, 0.0, 2.0, 3.0, None, 1.0, 2.0, 4.0, 5.0, 10.0, 3.0, 1.0],
        "category": ["a", "a", "b", "b", "b", "a", "a", "b", "b", "c", "c", "b", "a"],
    }
)
CALL: dict[str, Any] = {
    "estimate": "pay", "complementary": "bonus", "by": "sex", "to": "m", "within": "category",
}  # fmt: skip


def filed(data: Any = STAFF, **options: Any) -> tdf.types.FiledAudit:
    call = {**CALL, **options}
    return tdf.audit("eu_pay_transparency", data, **{key: value for key, value in call.items() if value is not None})


def gaps(table: pl.DataFrame, group: str = "f") -> Any:
    return table.filter(pl.col(".group") == group)[".gap"].item()


def paid(sex: str, *, column: str = "pay", category: str | None = None) -> list[float]:
    rows = [row for row in STAFF.rows(named=True) if row["sex"] == sex and row["pay"] is not None]
    rows = [row for row in rows if category in (None, row["category"])]
    if column == "basic":
        return [row["pay"] - (row["bonus"] or 0) for row in rows]
    return [row[column] for row in rows if row[column]]


def test_gaps_follow_the_steps_of_the_method() -> None:
    tables = filed().tables
    # (a) step 1: the mean of men, step 2: that of women, step 3: their difference over the mean of men
    men, women = mean(paid("m")), mean(paid("f"))
    assert (men, women) == (29.0, 23.0)
    assert gaps(tables["mean_gap"]) == pytest.approx((29 - 23) / 29)
    # (b) the same of the bonus of those who have one
    assert gaps(tables["mean_gap_complementary"]) == pytest.approx((4.4 - 2.0) / 4.4)
    # (c) and (d) the same of medians: of the middle, or of the mean of the two in the middle
    assert (median(paid("m")), median(paid("f"))) == (27.0, 22.0)
    assert gaps(tables["median_gap"]) == pytest.approx((27 - 22) / 27)
    assert gaps(tables["median_gap_complementary"]) == pytest.approx((4 - 2) / 4)
    # (e) receivers among the workers: an amount of 0 is none
    receivers = dict(tables["receivers"].select(".group", ".estimate").rows())
    assert receivers["f"] == pytest.approx(3 / 5)
    assert receivers["m"] == pytest.approx(5 / 6)


def test_bands_follow_the_steps_of_the_method() -> None:
    # eleven of known sex, ranked: 18f | 20f 20m | 21m 22f 25f 26m 28m 30f 34m 45m; a band of 3, 3, 3 and 2
    bands = filed().tables["quartile_bands"]
    assert bands.group_by(".bin", maintain_order=True).agg(pl.col(".n").sum())[".n"].to_list() == [3, 3, 3, 2]
    women = bands.filter(pl.col(".group") == "f")
    assert dict(women.select(".bin", ".n").rows()) == {1: 2, 2: 2, 3: 1, 4: 0}
    assert women[".estimate"].to_list() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0])


def test_categories_follow_the_steps_of_the_method() -> None:
    for name, column in (("categories", "pay"), ("categories_basic", "basic"), ("categories_complementary", "bonus")):
        table = filed().tables[name].filter(pl.col(".group") == "f")
        assert table["category"].to_list() == ["a", "b"]
        for category, gap in table.select("category", ".gap").rows():
            men, women = (mean(paid(sex, column=column, category=category)) for sex in "mf")
            assert gap == pytest.approx((men - women) / men)
        if column == "pay":
            assert table[".is_large_gap"].to_list() == [abs(gap) >= 0.05 for gap in table[".gap"]]


def test_categories_without_men_or_women_have_a_reason_and_no_gap() -> None:
    staff = STAFF.with_columns(category=pl.when(pl.col("sex") == "f").then(pl.lit("only women")).otherwise("category"))
    table = filed(staff).tables["categories"]
    women = table.filter(pl.col("category") == "only women")
    assert women.select(".group", ".n", ".gap", ".is_large_gap", ".status").rows() == [
        ("f", 5, None, None, "no_reference")
    ]
    assert women[".note"].item() == snapshot("no gap: no reference")
    # those of men alone have no row of women to compare
    assert table.filter(pl.col("category") == "c").select(".group", ".gap").rows() == [("m", 0.0)]
    small = filed(min_n=3).tables["categories"]
    by_status = small.filter(pl.col(".status") == "below_min_n").select("category", ".group", ".n", ".gap")
    assert by_status.rows() == [("a", "f", 2, None), ("a", "m", 2, None), ("b", "m", 2, None), ("c", "m", 2, None)]


def test_unknown_sex_is_counted_apart() -> None:
    audited = filed()
    unknown = audited.tables["mean_gap"].filter(pl.col(".status") == "unknown")
    assert unknown.select(".n", ".estimate", ".gap").rows() == [(1, 24.0, None)]
    assert None not in audited.tables["quartile_bands"][".group"].to_list()
    assert "Of 13 rows, 1 are of unknown sex." in audited.statement
    known = filed(STAFF.filter(pl.col("sex").is_not_null()))
    for name in ("mean_gap", "median_gap", "receivers"):
        assert gaps(known.tables[name]) == gaps(audited.tables[name])
    assert known.tables["quartile_bands"].equals(audited.tables["quartile_bands"])


@pytest.mark.parametrize(
    ("workers", "sizes"),
    # what is left over goes to the lower, the upper middle, or all but the upper band, as gov.uk has it
    [(320, [80, 80, 80, 80]), (321, [81, 80, 80, 80]), (322, [81, 80, 81, 80]), (323, [81, 81, 81, 80])],
)
def test_bands_are_as_even_as_can_be(workers: int, sizes: list[int]) -> None:
    random = np.random.default_rng(workers)
    pay = random.permutation(workers) + 1.0
    sex = random.choice(["f", "m"], workers)
    bands = tdf.audit("eu_pay_transparency", pl.DataFrame({"pay": pay, "sex": sex}), estimate="pay", by="sex", to="m")
    table = bands.tables["quartile_bands"]
    assert table.group_by(".bin", maintain_order=True).agg(pl.col(".n").sum())[".n"].to_list() == sizes
    ranked, start = sex[np.argsort(pay)], 0
    for band, size in enumerate(sizes, 1):
        women = int((ranked[start : start + size] == "f").sum())
        row = table.filter((pl.col(".bin") == band) & (pl.col(".group") == "f")).row(0, named=True)
        assert (row[".n"], row[".estimate"]) == (women, pytest.approx(women / size))
        start += size


def test_equal_pay_is_divided_in_the_same_proportion() -> None:
    # as regulation 13(2) of the United Kingdom's S.I. 2017/172 asks: 4 below, 10 women and 6 men of the same pay in the
    # lower three bands of 20
    pay, sex = [10.0] * 4 + [12.0] * 16, ["m"] * 4 + ["f"] * 10 + ["m"] * 6
    table = tdf.audit(
        "eu_pay_transparency", pl.DataFrame({"pay": pay, "sex": sex}), estimate="pay", by="sex", to="m"
    ).tables["quartile_bands"]
    women = dict(table.filter(pl.col(".group") == "f").select(".bin", ".n").rows())
    alike = Fraction(10, 16)
    assert women == pytest.approx({1: float(1 * alike), 2: float(5 * alike), 3: float(5 * alike), 4: float(5 * alike)})


@pytest.mark.parametrize(("women", "is_large"), [(95.0, True), (95.01, False), (105.0, True), (104.99, False)])
def test_gaps_of_five_percent_are_flagged_in_either_direction(women: float, is_large: bool) -> None:  # noqa: FBT001 - a parameter
    for scale in (1.0, 0.1, 1 / 3, 7.3):
        staff = pl.DataFrame({"pay": [women * scale, 100.0 * scale], "sex": ["f", "m"], "category": ["a", "a"]})
        table = filed(staff, complementary=None).tables["categories"]
        assert table.filter(pl.col(".group") == "f")[".is_large_gap"].item() == is_large


def test_tables_are_those_of_the_columns_that_are_given() -> None:
    of_all = ["mean_gap", "median_gap", "quartile_bands"]
    with_components = ["mean_gap_complementary", "median_gap_complementary", "receivers"]
    by_category = ["categories", "categories_basic", "categories_complementary"]
    assert set(filed(complementary=None, within=None).tables) == {*of_all, "unknown"}
    assert set(filed(within=None).tables) == {*of_all, *with_components, "unknown"}
    assert set(filed(complementary=None).tables) == {*of_all, "categories", "unknown"}
    assert set(filed().tables) == {*of_all, *with_components, *by_category, "unknown"}


def test_more_than_two_sexes_are_each_compared_with_the_reference() -> None:
    staff = pl.concat([STAFF, STAFF.head(2).with_columns(sex=pl.lit("x"))])
    table = filed(staff).tables["mean_gap"]
    assert gaps(table, "x") == pytest.approx(1 - 19 / 29)
    assert gaps(table, "f") == gaps(filed().tables["mean_gap"])


def test_outer_groups_are_audited_apart() -> None:
    sites = pl.concat(
        [STAFF.with_columns(site=pl.lit("one")), STAFF.with_columns(pl.col("pay") * 2, site=pl.lit("two"))]
    )
    grouped = filed(sites, group_by="site")
    for site in ("one", "two"):
        alone = filed(sites.filter(site=site))
        for name in ("mean_gap", "receivers", "quartile_bands", "categories", "categories_basic"):
            assert grouped.tables[name].filter(site=site).drop("site").equals(alone.tables[name])


def test_frames_of_any_kind_have_the_same_tables(engine: Callable[[pl.DataFrame], Any]) -> None:
    expected = filed()
    other = filed(engine(STAFF.drop_nulls("sex")))
    for name in ("mean_gap", "median_gap_complementary", "categories", "quartile_bands"):
        wanted = expected.tables[name]
        wanted = wanted.filter(pl.col(".status") != "unknown") if ".status" in wanted.columns else wanted
        column = ".gap" if ".gap" in wanted.columns else ".estimate"
        assert as_polars(other.tables[name])[column].to_list() == pytest.approx(wanted[column].to_list())


def test_command_line_files_the_same_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "staff.csv"
    STAFF.write_csv(path)
    out = tmp_path / "filed.md"
    flags = ["--estimate", "pay", "--complementary", "bonus", "--by", "sex", "--to", "sex=m", "--within", "category"]
    code, _, problem = called(capsys, "audit", str(path), "--as", "eu_pay_transparency", *flags, "--markdown", str(out))
    assert (code, problem) == (0, f"{out} is written.\n")
    assert out.read_text("utf-8") == filed().markdown()


def test_calls_that_do_not_fit_say_what_to_write() -> None:
    def message(data: pl.DataFrame = STAFF, **options: Any) -> str:
        with pytest.raises(tdf.errors.TidyfairError) as error:
            filed(data, **options)
        return str(error.value)

    assert message(to=None) == snapshot(
        'audit(): name the group of \'sex\' that others are compared with, as `to={"sex": "…"}`.'
    )
    assert message(estimate=None) == snapshot(
        "audit(): eu_pay_transparency needs `estimate` or `estimate` with `complementary` or `estimate` "
        "with `within` or `estimate` with `complementary` with `within`, and the call has "
        "'complementary', 'within'."
    )
    assert message(estimate="category") == snapshot(
        "`estimate`: the column 'category' has to hold pay, finite numbers of at least 0; null is no pay."
    )
    assert message(STAFF.with_columns(-pl.col("pay"))) == snapshot(
        "`estimate`: the column 'pay' has to hold pay, finite numbers of at least 0; null is no pay."
    )
    assert message(estimate="bonus", complementary="pay") == snapshot(
        "audit(): complementary components exceed pay in some rows; `estimate` is the whole of pay, and "
        "`complementary` the part of it that is not ordinary basic pay."
    )
    assert message(case_weights="pay") == snapshot(
        "audit(): the table 'mean_gap' does not accept `case_weights`; leave out `case_weights` or `estimate`."
    )
    assert "does not accept `truth`" in message(truth="sex")
    assert "does not accept `probs`" in message(probs="bonus")
    assert "does not accept `threshold`" in message(threshold=0.5)
    with pytest.raises(tdf.errors.ArgumentError) as error:
        tdf.audit("nyc_ll144", STAFF, estimate="sex", complementary="bonus", by="category")
    assert str(error.value) == snapshot(
        "audit(): nyc_ll144 has no components of pay and does not accept `complementary`."
    )


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"pay": math.inf}, {}, "the column 'pay' has to hold pay, finite numbers"),
        ({"bonus": 0.0}, {}, "nobody has pay in 'bonus'; leave `complementary` out"),
        ({}, {"within": "grade"}, "`within`: there is no column 'grade'. Columns: 'sex', 'pay', 'bonus', 'category'."),
    ],
)
def test_what_cannot_be_audited_names_its_column(
    changes: dict[str, float], options: dict[str, str], message: str
) -> None:
    staff = STAFF.with_columns(**{name: pl.lit(value) for name, value in changes.items()})
    call: dict[str, Any] = {
        "estimate": "pay",
        "complementary": "bonus",
        "within": "category",
        "to": {"sex": "m"},
    } | options
    with pytest.raises(tdf.errors.TidyfairError, match=re.escape(message)):
        tdf.audit("eu_pay_transparency", staff, by="sex", **call)
