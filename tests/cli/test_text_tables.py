"""Tables of a terminal: as wide as it, with nothing cut off."""

from __future__ import annotations

import polars as pl
import pytest

from tidyfair.cli.terminal import lines_of


def _cells_of(lines: list[str]) -> str:
    """All texts of a table, without its lines and blanks."""
    return "".join(character for line in lines for character in line if character not in " │┆┌─┬┐╞═╪╡└┴┘")


def test_a_narrow_table_is_drawn_as_it_is() -> None:
    table = pl.DataFrame({"group": ["a", "日本"], "value": ["1.0", "-"]})
    assert lines_of(table, width=80) == [
        "┌───────┬───────┐",
        "│ group ┆ value │",
        "╞═══════╪═══════╡",
        "│ a     ┆ 1.0   │",
        "│ 日本  ┆ -     │",
        "└───────┴───────┘",
    ]
    assert lines_of(table, width=80, unicode=False)[1:3] == ["| group | value |", "+=======+=======+"]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_long_names_are_wrapped_and_never_cut(width: int) -> None:
    name = "household_income_bracket_of_the_applicant:" * 4
    table = pl.DataFrame(
        {"metric": [name, "x"], "value": ["0.198 (0.063 to 0.267)"] * 2, "lowest": ["word " * 30, "y"]}
    )
    lines = lines_of(table, width=width)
    assert max(map(len, lines)) <= width
    assert name in _cells_of(lines).replace("0.198(0.063to0.267)", "") or _cells_of(lines).count("household") == 4
    # numbers and their intervals stay on a line
    assert sum("0.198 (0.063 to 0.267)" in line for line in lines) == 2


def test_values_with_notes_stay_on_a_line() -> None:
    cells = ["0.198 (0.063 to 0.267)", "- [1]", "-", "inf", "< 0.001", "0.5 [1] [2]", "1,234"]
    table = pl.DataFrame({"group": cells, **{f"metric {number}": cells for number in range(4)}})
    lines = lines_of(table, width=80, repeated=1)
    assert all(f" {cell} " in line for cell, line in zip(cells, lines[3:10], strict=True))


def test_wide_tables_are_parts_that_repeat_the_first_columns() -> None:
    values = {f"metric {number}": ["0.198 (0.063 to 0.267)"] * 2 for number in range(6)}
    lines = lines_of(pl.DataFrame({"group": ["a", "b"], **values}), width=80, repeated=1)
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if " group " in line]
    assert len(heads) == 3
    assert [line.count("metric") for line in heads] == [2, 2, 2]
