"""Keys packed into one integer and counted in a table give the counts of a `group_by`."""

from __future__ import annotations

import datetime as dt
import math
import tracemalloc
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.tallies import row_counts
from tidyfair.tallies.key_encoding import Levels, Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

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
    """The tables of few rows, whose codes are all made at once."""
    sizes: list[int] = []
    codes = Packing.codes

    def recorded(packing: Packing, columns: Mapping[str, pl.Series]) -> Any:
        sizes.append(packing.size)
        return codes(packing, columns)

    monkeypatch.setattr(Packing, "codes", recorded)
    return sizes


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", KEYS)
def test_table_counts_equal_group_by(name: str, lazy: bool, counted: list[int]) -> None:  # noqa: FBT001 - a case
    people = pl.DataFrame({"key": KEYS[name], "y": some([True, False, None]), "p": some([True, False])})
    expected = people.group_by("key", "y", "p").agg(n=pl.len().cast(pl.Int64))
    metric = tf.metric_set(tf.accuracy, tf.demographic_parity("key"))
    cells = metric.tally(people.lazy() if lazy else people, "y", "p").cells
    result = cells.rename({"k0": "key", "truth": "y", "estimate": "p"})
    assert_frame_equal(result, expected, check_row_order=False)
    assert bool(counted) == (name in (BY_DTYPE if lazy else BY_DTYPE | BY_A_LOOK))


def test_many_keys_are_packed_into_one_integer(counted: list[int]) -> None:
    names = ["levels", "numbers", "years", "categories of their own"]
    people = pl.DataFrame({name: KEYS[name] for name in names}).with_columns(y=some([0, 1]), p=some([0, 1, None]))
    cells = tf.accuracy.tally(people, "y", "p", group_by=names).cells
    expected = people.group_by(*names, "y", "p").agg(n=pl.len().cast(pl.Int64))
    keys = dict(zip(cells.columns, [*names, "y", "p"], strict=False))
    assert_frame_equal(cells.rename(keys), expected, check_row_order=False)
    # levels; from the least to the most; and null where there is one
    assert counted == [(3 + 1) * (43 + 1) * 37 * (2 + 1) * 2 * (2 + 1)]


def test_too_many_key_combinations_use_group_by(counted: list[int]) -> None:
    people = pl.DataFrame({"a": some(range(1_000)), "b": some(range(1_000)), "y": some([0, 1]), "p": some([0, 1])})
    cells = tf.accuracy.tally(people, "y", "p", group_by=["a", "b"]).cells
    assert counted == []
    assert len(cells) == people.n_unique()


@pytest.mark.parametrize("weight", ["weights", "whole"])
def test_sums_are_grouped_by_the_packed_key(weight: str, counted: list[int]) -> None:
    people = pl.DataFrame({"key": KEYS["numbers"], "y": some([0, 1]), "p": some([0, 1]), "whole": some([1, 2])})
    people = people.with_columns(weights=pl.col("whole") / 3)
    cells = tf.accuracy.tally(people, "y", "p", group_by="key", case_weights=weight).cells
    expected = people.group_by("key", "y", "p").agg(pl.col(weight).sum())
    result = cells.select(key="k0", y="truth", p="estimate", **{weight: pl.col("w")})
    assert_frame_equal(result, expected, check_row_order=False, rel_tol=1e-12)
    assert counted == []


# Rows in memory, whose values are known before counting


def as_counted(people: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """The counts of a hand-written query, in the columns of a tally that is counted by `key`."""
    named = {"k0": "key", "truth": "y", "estimate": "p"}
    result = people.group_by(named.values()).agg(n=pl.len().cast(pl.Int64)).select(*named.values(), "n")
    return result.rename({old: new for new, old in named.items()})[cells.columns]


def assert_counted(people: pl.DataFrame) -> None:
    cells = tf.metric_set(tf.accuracy, tf.demographic_parity("key")).tally(people, "y", "p").cells
    assert_frame_equal(cells, as_counted(people, cells), check_row_order=False)
    assert cells["n"].min() is None or cells["n"].min() > 0  # pyright: ignore[reportOperatorIssue] - a column of numbers


Kind: TypeAlias = "tuple[list[Any], Any]"
"""Some values, and their dtype."""
LABELS: dict[str, Kind] = {
    "truth values": ([True, False], pl.Boolean),
    "levels": (["no", "yes"], pl.Enum(["no", "yes"])),
    "one of three levels": (["b"], pl.Enum(["a", "b", "c"])),
    "bytes": ([-128, 127, -1], pl.Int8),
    "numbers": ([0, 1], pl.Int64),
    "numbers below zero": ([-1, 1], pl.Int16),
    "large numbers": ([2**63, 2**63 + 1], pl.UInt64),
    "wide numbers": ([2**100, 2**100 + 2], pl.Int128),
    "floats": ([0.0, 1.0], pl.Float64),
    "small floats": ([-2.0, 0.0], pl.Float32),
    # of their own, because the codes of the shared ones depend on what other tests have named
    "categories": (["x", "y"], pl.Categorical(pl.Categories("letters", "tests", pl.UInt8))),
    "text": (["x", "y"], pl.String),
    "dates": ([dt.date(2026, 1, 1), dt.date(2026, 1, 2)], pl.Date),
}
GROUPS: dict[str, Kind] = {
    **LABELS,
    "halves": ([0.5, 1.0], pl.Float64),
    "far numbers": ([0, 10**12], pl.Int64),
    "some numbers": ([*range(7)], pl.Int32),
}
MANY = {"bytes", "one of three levels", "text", "dates"}
"""Of these bitmaps would be too many, or there are none."""


def drawn(random: np.random.Generator, kind: Kind, rows: int, missing: float) -> pl.Series:
    values, dtype = kind
    levels = pl.Series([*values, None], dtype=dtype)
    places = random.integers(0, len(values), rows)
    places[random.random(rows) < missing] = len(values)
    return levels.gather(places)


@pytest.mark.parametrize("rows", [0, 1, 2, 100, 2**13 - 1, 2**13, 60_000])
@pytest.mark.parametrize("seed", range(12))
def test_random_frames_are_counted_as_by_group_by(rows: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, groups = list(LABELS.values()), list(GROUPS.values())
    shares = random.choice([0.0, 0.3, 1.0], 3, p=[0.6, 0.3, 0.1])
    kinds = [groups[random.integers(len(groups))], *(labels[index] for index in random.integers(len(labels), size=2))]
    columns = [drawn(random, kind, rows, share) for kind, share in zip(kinds, shares, strict=True)]
    assert_counted(pl.DataFrame(dict(zip(("key", "y", "p"), columns, strict=True))))


@pytest.mark.parametrize("rows", [2**20 - 1, 2**20, 2**20 + 1, 2**21 + 7])
def test_bitmap_counts_equal_group_by_at_word_boundaries(rows: int, crossed: list[int]) -> None:
    places = pl.int_range(rows, eager=True)
    people = pl.DataFrame(
        {"key": (places % 3).cast(pl.Int8), "y": places % 7 > 2, "p": (places % 5 > 1).cast(pl.Int64)}
    )
    assert_counted(people)
    assert crossed == [3 * 2 * 2]


@pytest.mark.parametrize("rows", [1, 500, 60_000])
@pytest.mark.parametrize("name", sorted(LABELS.keys() - MANY))
def test_bitmaps_are_used_for_few_combinations_without_nulls(name: str, rows: int, crossed: list[int]) -> None:
    random = np.random.default_rng(3)
    columns = {key: drawn(random, LABELS[name], rows, 0) for key in ("key", "y", "p")}
    assert_counted(pl.DataFrame(columns))
    # few numbers are an array as they are
    assert len(crossed) == (rows > 500 or name in {"levels", "categories", "wide numbers"})


@pytest.mark.parametrize("rows", [500, 60_000])
@pytest.mark.parametrize("name", ["key", "y", "p"])
def test_bitmaps_are_not_used_with_nulls(name: str, rows: int, crossed: list[int]) -> None:
    random = np.random.default_rng(0)
    people = {key: drawn(random, LABELS["truth values"], rows, 0.1 if key == name else 0) for key in ("key", "y", "p")}
    assert_counted(pl.DataFrame(people))
    assert crossed == []


@pytest.mark.parametrize("rows", [100, 60_000])
def test_chunked_and_sliced_frames_are_counted(rows: int) -> None:
    random, kinds = np.random.default_rng(0), {"key": "levels", "y": "truth values", "p": "numbers"}
    parts = [
        pl.DataFrame({name: drawn(random, LABELS[kind], size, 0) for name, kind in kinds.items()})
        for size in (rows, 3, rows)
    ]
    whole = pl.concat(parts, rechunk=False)
    # its columns are in different parts
    mixed = whole.with_columns(p=whole["p"].rechunk())
    for people in (whole, mixed, mixed[1:], mixed[5 : rows + 2], mixed.filter(pl.col("y"))):
        assert_counted(people)


@pytest.mark.parametrize("rows", [100, 60_000])
def test_integral_floats_are_counted_as_integers(rows: int, crossed: list[int], counted: list[int]) -> None:
    random = np.random.default_rng(0)
    columns = {name: drawn(random, LABELS["floats"], rows, 0) for name in ("key", "y", "p")}
    assert_counted(pl.DataFrame(columns))
    assert (crossed, counted) == ([] if rows == 100 else [8], [])
    with_gaps = pl.DataFrame(columns).with_columns(pl.when(pl.col("p") == 1).then(math.nan).otherwise("p").alias("y"))
    cells = tf.accuracy.tally(with_gaps, "y", "p").cells
    # what is missing has to be found first, and is null
    assert sorted(cells.select("truth", "estimate").rows(), key=str) == [(0.0, 0.0), (None, 1.0)]
    assert counted == ([] if rows == 100 else [(1 + 1) * (2 + 1)])


@pytest.mark.parametrize("rows", [100, 60_000])
@pytest.mark.parametrize("odd", [0.5, math.inf])
def test_fractional_floats_may_be_keys_but_not_labels(rows: int, odd: float) -> None:
    columns = {name: drawn(np.random.default_rng(0), LABELS["floats"], rows, 0) for name in ("key", "y", "p")}
    people = pl.DataFrame(columns).with_columns(pl.when(pl.col("key") == 1).then(odd).otherwise("key").alias("key"))
    assert_counted(people)
    if odd < 1:
        with pytest.raises(tf.errors.ColumnError, match="'key'"):
            tf.accuracy(people, "key", "p")


def test_table_size_limit_grows_with_rows(counted: list[int]) -> None:
    random = np.random.default_rng(0)
    rows, groups = 300_000, 70_000
    numbers = pl.Series(random.integers(0, groups, rows)).extend_constant(groups, 1).extend_constant(0, 1)
    people = pl.DataFrame({"key": numbers, "y": random.random(rows + 2) < 0.5, "p": random.random(rows + 2) < 0.5})
    assert_counted(people)
    assert counted == [(groups + 1) * 4]
    assert_counted(people[:200_000])
    assert counted[1:] == []


def test_a_million_levels_use_little_memory() -> None:
    tracemalloc.start()
    values = Levels(pl.Int64(), 5, 2**20).values()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(values), values[0], values[-2], values[-1]) == (2**20 + 1, 5, 2**20 + 4, None)
    assert peak < 2**20


def test_few_rows_take_at_most_one_query(monkeypatch: pytest.MonkeyPatch, at_once: list[int]) -> None:
    queries: list[pl.LazyFrame] = []
    collect: Callable[..., Any] = pl.LazyFrame.collect

    def recorded(query: pl.LazyFrame, *given: Any, **options: Any) -> Any:
        queries.append(query)
        return collect(query, *given, **options)

    people = pl.DataFrame({"y": some([0, 1]), "p": some([0, 1]), "sex": some(["f", "m"], pl.Enum(["f", "m"]))})[:1_000]
    people = people.with_columns(age=some(range(20, 60))[:1_000], race=some(list("abcd"), pl.Enum("abcde"))[:1_000])
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("sex", "race", "age"))
    counts = tf.metric_set(tf.accuracy, tf.demographic_parity("age"))
    # what is made once for all frames of a kind
    metrics.tally(people, "y", "p")
    counts.tally(people, "y", "p")
    monkeypatch.setattr(pl.LazyFrame, "collect", recorded)
    tf.accuracy.tally(people, "y", "p")
    assert len(queries) == 0
    metrics.tally(people, "y", "p")
    assert len(queries) <= 2  # the places of levels, and the keys that are there
    assert at_once[-1] == 2 * 5 * 40 * 2 * 2


@pytest.mark.parametrize("missing", [False, True])
def test_engine_affinity_of_the_user_is_respected(
    missing: bool,  # noqa: FBT001 - a case
    counted: list[int],
    crossed: list[int],
) -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([True, False, None] if missing else [True, False])})
    counted = counted if missing else crossed
    expected = tf.accuracy(people, "y", "p")
    assert len(counted) == 1
    with pl.Config(engine_affinity="in-memory"):
        assert tf.accuracy(people, "y", "p").equals(expected)
    assert len(counted) == 1
    with pl.Config(engine_affinity="streaming"):
        assert tf.accuracy(people, "y", "p").equals(expected)
    assert len(counted) == 2


@pytest.mark.skipif(find_spec("cudf_polars") is not None, reason="polars' own error shows that it was asked")
def test_gpu_engine_is_used_when_set() -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([True, False])})
    with pl.Config(engine_affinity="gpu"), pytest.raises(ModuleNotFoundError, match="cudf_polars"):
        tf.accuracy(people, "y", "p")


def test_errors_while_counting_are_raised() -> None:
    people = pl.DataFrame({"y": some([True, False]), "p": some([1, 2, 3])})
    odd = pl.col("p").cast(pl.String).str.to_date("%Y").is_null().alias("odd")
    with pytest.raises(tf.errors.TidyfairError, match="conversion"):
        tf.accuracy(people, "y", odd)
