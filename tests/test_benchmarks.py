"""Benchmark tables show their targets, and simulations write theirs into a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks.coverage.tables import Table, write_between
from benchmarks.measuring import Asked, Row

if TYPE_CHECKING:
    from pathlib import Path

MANY = 10_000_000
AT_MOST, AT_LEAST = Asked(0.5), Asked(25)


@pytest.mark.parametrize(
    ("row", "text", "missed"),
    [
        (Row("w", "a", MANY, 10, 40), "| w | a | 10,000,000 |  | 0.25x | 10.0 ms | 40.0 ms |", False),
        (Row("w", "a", MANY, 10, 40, asked=AT_MOST), "| ≤ 0.50x | 0.25x |", False),
        (Row("w", "a", MANY, 30, 40, asked=AT_MOST), "| ≤ 0.50x | **0.75x, missed** |", True),
        (Row("w", "a", 1_000, 30, 40, asked=AT_MOST), "| ≤ 0.50x at 10,000,000 rows | 0.75x |", False),
        (Row("w", "a", MANY, 2, 80, reading="faster", asked=AT_LEAST), "| ≥ 25.0x as fast | 40.0x as fast |", False),
        (Row("w", "a", MANY, 8, 80, reading="faster", asked=AT_LEAST), "| **10.0x as fast, missed** |", True),
        (Row("w", "a", MANY, 60, 9, "MB", "itself", Asked(50)), "| ≤ 50.0 MB | **60.0 MB, missed** |", True),
        (Row("w", "a", None, 3, 2, asked=Asked(1.15)), "| w | a |  | ≤ 1.15x | **1.50x, missed** |", True),
    ],
)
def test_row_shows_target_and_whether_it_was_missed(row: Row, text: str, missed: bool) -> None:  # noqa: FBT001 - a case
    assert text in str(row)
    assert row.missed is missed


def simulated(settings: int) -> Table:
    table = Table("Some intervals", "metric | rows", ("covers, %", "no interval, %", "mean width"))
    for rows in range(settings):
        table.add(f"sens | {rows}", 0.9 + rows / 1_000, 0.5, 0.25)
        table.add(f"spec | {rows}", 0.95, 0.0, 0.5)
    return table.close()


def test_page_shows_all_settings_of_a_small_table() -> None:
    lines = simulated(2).on_page()
    assert lines[0] == "| metric | rows | covers, % | no interval, % | mean width |"
    assert lines[2:4] == ["| sens | 0 | 90.0 | 50.0 | 0.250 |", "| spec | 0 | 95.0 | 0.0 | 0.500 |"]
    assert lines[-1] == "| **largest** |  | 95.0 | 50.0 | 0.500 |"


def test_page_shows_the_subjects_of_a_large_table_with_their_worst_setting() -> None:
    lines = simulated(30).on_page()
    assert lines[0] == "60 settings: metric, rows."
    assert lines[2] == (
        "| metric | share | average, % | smallest | largest | worst setting | no interval, % | mean width |"
    )
    assert lines[4:] == [
        "| sens | covers | 91.5 | 90.0 | 92.9 | 0 | 50.0 | 0.25 |",
        "| spec | covers | 95.0 | 95.0 | 95.0 | 0 | 0.0 | 0.50 |",
    ]


def test_tables_are_written_between_their_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- rates -->\nold\n<!-- end of rates -->\nafter\n", "utf-8")
    write_between(page, "rates", ["| new |"])
    assert page.read_text("utf-8") == "before\n<!-- rates -->\n\n| new |\n\n<!-- end of rates -->\nafter\n"
    with pytest.raises(ValueError, match=r"page\.md has no <!-- areas -->"):
        write_between(page, "areas", [])
