"""What differs between versions of polars gives the same everywhere."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from tidyfair.specs import polars_versions as versions


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (pl.col("a") + 1, True), (pl.col("a").sum(), False), (pl.col("a").sum().over("b"), True),
        (pl.col("a").head(2), False), (pl.col("a").shift(), True), (pl.col("a").quantile(0.25), False),
    ],
)  # fmt: skip
def test_length_of_an_expression_is_known_without_the_data(
    monkeypatch: pytest.MonkeyPatch,
    expression: pl.Expr,
    expected: bool,  # noqa: FBT001 - a case
) -> None:
    assert versions.gives_a_value_per_row(expression, unknown=not expected) is expected
    monkeypatch.delattr(type(expression.meta), "is_length_preserving", raising=False)
    assert versions.gives_a_value_per_row(expression, unknown=not expected) is expected


def test_unknown_length_is_what_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    of_texts = pl.col("a").str.to_uppercase()
    monkeypatch.delattr(type(of_texts.meta), "is_length_preserving", raising=False)
    monkeypatch.delattr(type(of_texts.meta), "is_row_separable", raising=False)
    for unknown in (True, False):
        assert versions.gives_a_value_per_row(of_texts, unknown=unknown) is unknown
        assert versions.is_row_separable(pl.col("a") + 1, unknown=unknown) is unknown


def test_items_of_lists_are_no_columns() -> None:
    of_items = pl.concat_list("a", "b").list.eval(pl.element().mode())
    assert versions.columns_of(of_items) == ["a", "b"]


def test_numbers_of_rows_are_summed_over_rows() -> None:
    rows = pl.DataFrame({"group": [1, 1, 2], "a": [0.0, None, math.inf]})
    rest = 1 - versions.number_of_rows(0.75, pl.col("a"))
    sums = [(pl.col("group") * rest).sum().alias("product"), versions.spread(rest, pl.col("a")).sum().alias("alone")]
    result = rows.group_by("group", maintain_order=True).agg(sums)
    assert result.rows() == [(1, 0.5, 0.5), (2, 0.5, 0.25)]


def test_value_beyond_the_end_is_null() -> None:
    values = pl.DataFrame({"a": [3, 1, 2]})
    at = [values.select(versions.value_at(pl.col("a").sort(), pl.lit(index))).item() for index in range(4)]
    assert at == [1, 2, 3, None]


def test_batches_add_up_to_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pl.DataFrame({"a": range(1_000)})

    def total(batches: Any) -> int:
        return sum(batch["a"].sum() for batch in batches)

    assert total(versions.in_batches(rows.lazy(), 100)) == 499_500
    monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)
    assert total(versions.in_batches(rows.lazy(), 100)) == 499_500


def test_categories_come_back_from_their_integers() -> None:
    colours = pl.Series(["red", "blue", "red"], dtype=pl.Categorical)
    assert isinstance(colours.dtype, pl.Categorical)
    assert versions.from_physical(colours.to_physical(), colours.dtype).to_list() == ["red", "blue", "red"]
