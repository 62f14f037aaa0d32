"""Benchmark tables show their targets."""

from __future__ import annotations

import pytest
from benchmarks.measuring import Asked, Row

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
