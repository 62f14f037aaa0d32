"""Periods that are texts: refused where their order as texts is not that of time."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair import inference

TESTS: dict[str, Any] = {
    "compare_periods": inference.compare_periods(tf.demographic_parity("g"), period="t"),
    "monitor": inference.monitor(tf.demographic_parity("g"), below=0.2, period="t"),
}
WRONG = [
    ("8", "10"), ("-2", "-1"), ("week 9", "week 10"), ("2026-9", "2026-10"), ("1.5", "10.25", "9.5"), ("Jan", "Feb"),
    ("august", "September 2026", "April 2027"), ("Q2 2025", "Q1 2026"), ("01/02/2026", "02/01/2026"),
    ("31.1.26", "1.2.26"), ("Monday", "Friday"), ("before", "after"), ("pre", "post"),
]  # fmt: skip
RIGHT = [
    ("8", "9"), ("08", "10"), ("2026-09-30", "2026-10-01"), ("2026-09-30 10:00", "2026-09-30 11:00"), ("W09", "W10"),
    ("a", "b"), ("2026-Q1", "2026-Q2"), ("Apr 2026", "Aug 2026"), ("2025", "2026"), ("2026-01 Jan", "2026-02 Feb"),
    ("31.1.26",),
]  # fmt: skip


def people(*periods: Any, dtype: Any = None) -> pl.DataFrame:
    values = pl.Series("t", [period for period in periods for _ in range(8)], dtype=dtype)
    return pl.DataFrame(
        [values, pl.Series("g", list("aabb") * 2 * len(periods)), pl.Series("p", [0, 1] * 4 * len(periods))]
    )


@pytest.mark.parametrize("periods", WRONG)
@pytest.mark.parametrize("name", TESTS)
def test_periods_whose_order_as_texts_is_not_that_of_time_are_refused(name: str, periods: tuple[str, ...]) -> None:
    before, after = sorted(periods)[:2]
    with pytest.raises(
        tf.errors.ArgumentError, match=r"Convert 't' to a number or a date, for example with `pl.col\('t'\).cast\("
    ) as raised:
        TESTS[name](people(*periods), estimate="p", group_by="t")
    assert f"{name}(): periods are sorted by value, but as text" in str(raised.value)
    if len(periods) == 2:
        assert f"{before!r} sorts before {after!r}" in str(raised.value)


@pytest.mark.parametrize("periods", RIGHT)
@pytest.mark.parametrize("name", TESTS)
def test_periods_whose_order_as_texts_may_be_that_of_time_are_taken(name: str, periods: tuple[str, ...]) -> None:
    TESTS[name](people(*periods), estimate="p", group_by="t")


def test_categories_are_texts_and_an_enum_has_an_order() -> None:
    months = ["Jan", "Feb"]
    with pytest.raises(tf.errors.ArgumentError, match="'Feb' sorts before 'Jan'"):
        TESTS["monitor"](people(*months, dtype=pl.Categorical), estimate="p", group_by="t")
    ordered = people(*months, dtype=pl.Enum(months))
    assert TESTS["monitor"](ordered, estimate="p", group_by="t")["t"].to_list() == months
    assert TESTS["compare_periods"](ordered, estimate="p", group_by="t")[".before"].to_list() == ["Jan"]


def test_rows_without_a_period_are_refused() -> None:
    for name, test in TESTS.items():
        with pytest.raises(tf.errors.ArgumentError, match=rf"{name}\(\): some rows have no value of 't'"):
            test(people(1, None), estimate="p", group_by="t")
