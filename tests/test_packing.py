"""Keys as one small integer: counted in a table, they are what a `group_by` counts."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.tallies import row_counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidyfair.tallies.key_encoding import Packing

ROWS = 60_000
RANDOM = np.random.default_rng(7)


def some(values: Iterable[object], dtype: Any = None) -> pl.Series:
    levels = pl.Series(list(values), dtype=dtype)
    return levels.gather(RANDOM.integers(0, len(levels), ROWS))


COLORS = pl.Categorical(pl.Categories("colors", "tests", pl.UInt8))
KEYS: dict[str, pl.Series] = {
    "levels": some(["low", None, "high"], dtype=pl.Enum(["low", "never", "high"])),
    "truth values": some([True, False, None]),
    "no truth value is missing": some([True, False]),
    "bytes": some([-128, 0, 127, None], dtype=pl.Int8),
    "bytes without a sign": some([0, 255], dtype=pl.UInt8),
    "numbers": some([*range(-3, 40), None]),
    "years": some(range(1990, 2027), dtype=pl.Int32),
    "numbers beyond signs": some([2**64 - 1, 2**64 - 9, None], dtype=pl.UInt64),
    "the least number": some([-(2**63), 5 - 2**63]),
    "wide numbers": some([3, None, 2**100, 2**100 + 3], dtype=pl.Int128),
    "names of customers": some(range(0, 10**12, 10**9)),
    "nothing": some([None], dtype=pl.Int64),
    "categories": some(["b", "a", None, "c"], dtype=pl.Categorical),
    "categories of their own": some(["red", None, "blue"], dtype=COLORS),
    "text": some(["b", "a", None]),
}
BY_DTYPE = {"levels", "truth values", "no truth value is missing", "bytes", "bytes without a sign"}
BY_A_LOOK = {
    "numbers", "years", "numbers beyond signs", "the least number", "nothing", "categories", "categories of their own",
}  # fmt: skip


def spied(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """How many places each table has that a function of the counting fills."""
    sizes: list[int] = []
    count: Callable[..., Any] = getattr(row_counts, name)

    def recorded(rows: Any, packed: Packing, *others: Any) -> Any:
        sizes.append(packed.size)
        return count(rows, packed, *others)

    monkeypatch.setattr(row_counts, name, recorded)
    return sizes


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tables of many rows that are filled row by row."""
    return spied(monkeypatch, "_counted")


@pytest.fixture
def crossed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tables that are filled by bitmaps."""
    return spied(monkeypatch, "crossed")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tables of few rows."""
    return spied(monkeypatch, "_counted_at_once")


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_a_table_counts_what_a_group_by_counts(name: str, lazy: bool, counted: list[int]) -> None:  # noqa: FBT001 - a case
    people = pl.DataFrame({"key": KEYS[name], "y": some([True, False, None]), "p": some([True, False])})
    expected = people.group_by("key", "y", "p").agg(n=pl.len().cast(pl.Int64))
    metric = tf.metric_set(tf.accuracy, tf.demographic_parity("key"))
    cells = metric.tally(people.lazy() if lazy else people, "y", "p").cells
    found = cells.rename({"k0": "key", "truth": "y", "estimate": "p"})
    assert_frame_equal(found, expected, check_row_order=False)
    assert bool(counted) == (name in (BY_DTYPE if lazy else BY_DTYPE | BY_A_LOOK))


def test_many_keys_make_one_number(counted: list[int]) -> None:
    names = ["levels", "numbers", "years", "categories of their own"]
    people = pl.DataFrame({name: KEYS[name] for name in names}).with_columns(y=some([0, 1]), p=some([0, 1, None]))
    cells = tf.accuracy.tally(people, "y", "p", group_by=names).cells
    expected = people.group_by(*names, "y", "p").agg(n=pl.len().cast(pl.Int64))
    keys = dict(zip(cells.columns, [*names, "y", "p"], strict=False))
    assert_frame_equal(cells.rename(keys), expected, check_row_order=False)
    # levels; from the least to the most; and null where there is one
    assert counted == [(3 + 1) * (43 + 1) * 37 * (2 + 1) * 2 * (2 + 1)]


def test_too_many_places_are_grouped_instead(counted: list[int]) -> None:
    people = pl.DataFrame({"a": some(range(1_000)), "b": some(range(1_000)), "y": some([0, 1]), "p": some([0, 1])})
    cells = tf.accuracy.tally(people, "y", "p", group_by=["a", "b"]).cells
    assert counted == []
    assert len(cells) == people.n_unique()


@pytest.mark.parametrize("weight", ["weights", "whole"])
def test_sums_are_grouped_by_that_number(weight: str, counted: list[int]) -> None:
    people = pl.DataFrame({"key": KEYS["numbers"], "y": some([0, 1]), "p": some([0, 1]), "whole": some([1, 2])})
    people = people.with_columns(weights=pl.col("whole") / 3)
    cells = tf.accuracy.tally(people, "y", "p", group_by="key", case_weights=weight).cells
    expected = people.group_by("key", "y", "p").agg(pl.col(weight).sum())
    found = cells.select(key="k0", y="truth", p="estimate", **{weight: pl.col("w")})
    assert_frame_equal(found, expected, check_row_order=False, rel_tol=1e-12)
    assert counted == []


@pytest.mark.parametrize("missing", [False, True])
def test_the_engine_that_the_user_sets_gets_the_whole_query(
    missing: bool,  # noqa: FBT001 - a case
    counted: list[int],
    crossed: list[int],
) -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([True, False, None] if missing else [True, False])})
    counted = counted if missing else crossed
    expected = tf.accuracy(people, "y", "p")
    assert len(counted) == 1
    for engine in ("in-memory", pl.InMemoryEngine()):
        with pl.Config(engine_affinity=engine):  # pyright: ignore[reportArgumentType] - a case
            assert tf.accuracy(people, "y", "p").equals(expected)
    assert len(counted) == 1
    with pl.Config(engine_affinity="streaming"):
        assert tf.accuracy(people, "y", "p").equals(expected)
    assert len(counted) == 2


@pytest.mark.skipif(find_spec("cudf_polars") is not None, reason="polars' own error shows that it was asked")
def test_a_gpu_is_asked_for_where_the_user_sets_it() -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([True, False])})
    with pl.Config(engine_affinity="gpu"), pytest.raises(ModuleNotFoundError, match="cudf_polars"):
        tf.accuracy(people, "y", "p")


def test_what_fails_while_rows_are_counted_comes_through() -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([1, 2, 3])})
    odd = pl.col("p").cast(pl.String).str.to_date("%Y").is_null().alias("odd")
    with pytest.raises(tf.TidyfairError, match="conversion"):
        tf.accuracy(people, "y", odd)
