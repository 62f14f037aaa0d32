"""Groups of numbers, at edges that are given or at quantiles, in every engine and wherever groups are named."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair import inference

if TYPE_CHECKING:
    from collections.abc import Callable

AGES = tf.bins("age", [25, 40, 65])
NAMES = ["under 25", "25 to under 40", "40 to under 65", "65 and over"]
COLUMN: Any = pl.col("age")
NO_AGES = pl.DataFrame({"age": [None]}, {"age": pl.Int64})
CALL: dict[str, Any] = {"truth": "y", "estimate": "e"}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(3)
    ages = random.integers(18, 90, 400)
    return pl.DataFrame({
        "age": pl.Series(ages).cast(pl.Float64).scatter([5, 9], [None, None]),
        "income": random.lognormal(10, 1, 400).round(2),
        "sex": random.choice(["f", "m"], 400),
        "y": random.integers(0, 2, 400),
        "e": random.integers(0, 2, 400),
    })  # fmt: skip


def by_hand(people: pl.DataFrame, group: Callable[[float], str]) -> dict[str, float]:
    """The share of selected rows of each group, row by row."""
    selected: dict[str, list[int]] = {}
    for value, estimate in people.select("age", "e").rows():
        selected.setdefault("null" if value is None else group(value), []).append(estimate)
    return {name: sum(rows) / len(rows) for name, rows in selected.items()}


def test_groups_have_names_in_order_and_their_lower_edge() -> None:
    assert AGES.labels == tuple(NAMES)
    assert tf.bins("x", [-1.5, 0, 1e6]).labels == (
        "under -1.5", "-1.5 to under 0", "0 to under 1000000", "1000000 and over",
    )  # fmt: skip
    edges = pl.DataFrame({"age": [24.99, 25.0, 39.0, 40.0, 65.0, math.nan, None]})
    groups = tf.accuracy.difference(AGES).by_group(edges.with_columns(y=1, e=1), **CALL, on_undefined="ignore")
    counts = groups.filter(pl.col(".by") == "age group").select(".group", ".n").rows()
    assert counts == [*zip(NAMES, [1, 2, 1, 1], strict=True), ("null", 2)]
    named = tf.bins("age", [40], labels=["young", "old"], name="generation")
    assert (named.name, named.labels) == ("generation", ("young", "old"))


def test_groups_are_those_made_by_hand_in_every_engine(
    people: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    expected = by_hand(people, lambda age: NAMES[sum(age >= edge for edge in (25, 40, 65))])
    groups = as_polars(tf.demographic_parity(AGES, unknown="group").by_group(engine(people), estimate="e"))
    assert dict(groups.select(".group", ".estimate").rows()) == pytest.approx(expected)
    # in the order of the groups, null last
    assert groups[".group"].to_list() == [*NAMES, "null"]


def test_metrics_that_need_rows_have_the_same_groups_in_every_engine(
    people: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    metric = tf.roc_auc.difference("sex", AGES)
    options: dict[str, Any] = {"truth": "y", "probs": "income", "on_undefined": "ignore"}
    expected = metric.by_group(people, **options)
    ours = as_polars(metric.by_group(engine(people), **options))
    assert_frame_equal(ours.select(".group", ".estimate"), expected.select(".group", ".estimate"))


def test_quantile_groups_are_those_of_numpy_in_every_engine(
    people: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    fifths = tf.quantile_groups("income", 5)
    assert fifths.labels == ("1 of 5 (lowest)", "2 of 5", "3 of 5", "4 of 5", "5 of 5 (highest)")
    edges = np.quantile(people["income"].to_numpy(), [0.2, 0.4, 0.6, 0.8])
    number = np.searchsorted(edges, people["income"].to_numpy(), side="right")
    expected = [people["e"].to_numpy()[number == group].mean() for group in range(5)]
    data = engine(people)
    try:
        groups = as_polars(tf.demographic_parity(fifths).by_group(data, estimate="e"))
    except tf.errors.EngineError:
        pytest.skip("an engine without quantiles says so")
    assert groups[".estimate"].to_list() == pytest.approx(expected)
    fixed = tf.quantile_groups("income", 5, on=data)
    assert fixed.edges == pytest.approx(tuple(edges))
    with_fixed = tf.demographic_parity(fixed).by_group(people, estimate="e")
    assert_frame_equal(with_fixed.drop("income group"), groups.drop("income group"))


def test_equal_numbers_are_in_one_group() -> None:
    data = pl.DataFrame({"x": [1, 1, 1, 1, 1, 2, 3, 4], "e": [1, 0, 1, 0, 1, 0, 1, 1]})
    groups = tf.demographic_parity(tf.quantile_groups("x", 4)).by_group(data, estimate="e")
    # quartiles are 1, 1 and 2.25
    assert groups.select(".group", ".n").rows() == [("3 of 4", 6), ("4 of 4 (highest)", 2)]


def test_quantiles_are_those_of_all_outer_groups_together(people: pl.DataFrame) -> None:
    halves = tf.quantile_groups("income", 2)
    median = people["income"].median()
    in_parts = tf.demographic_parity(halves).by_group(people, estimate="e", group_by="sex")
    low = people.filter(pl.col("income") < median, sex="f")["e"].mean()
    assert in_parts.filter(pl.col("sex") == "f")[".estimate"][0] == pytest.approx(low)


def test_bins_are_groups_wherever_groups_are_named(people: pl.DataFrame) -> None:
    assert tf.accuracy(people, **CALL, group_by=AGES)["age group"].to_list() == [*NAMES, None]
    crossed = tf.demographic_parity("sex", AGES).by_group(people, estimate="e", on_undefined="ignore")
    assert crossed["age group"].dtype == pl.Enum(NAMES)
    assert crossed[".group"][0] == "f:under 25"
    compared = tf.compare_groups(tf.selection_rate, by=[AGES, ("sex", AGES)], to="rest")(people, estimate="e")
    assert compared.filter(pl.col(".by") == "age group")[".group"].to_list() == [*NAMES, "null"]
    quiet: dict[str, Any] = {**CALL, "on_undefined": "ignore"}
    assert tf.check(tf.demographic_parity(AGES, unknown="drop"), below=0.9)(people, **quiet).height == 1
    assert inference.pairwise(tf.demographic_parity(AGES, unknown="drop"))(people, **CALL).height == 6
    assert inference.stratified(tf.demographic_parity("sex"), within=AGES)(people, **CALL).height == 1
    assert inference.subgroup_search(tf.selection_rate, ["sex", AGES])(people, **CALL, times=20).height > 4
    filed = tf.audit("nyc_ll144", people, estimate="e", by=[AGES, ("sex", AGES)]).tables["selections"]
    assert set(NAMES) <= set(filed[".group"])
    page = tf.report(people, "y", "e", by=AGES)
    assert "25 to under 40" in page.markdown()
    assert "tdf.bins('age', [25.0, 40.0, 65.0]" in page.markdown().replace('"', "'")


def test_states_and_batches_have_fixed_edges(people: pl.DataFrame, tmp_path: Any) -> None:
    metric = tf.demographic_parity(AGES, unknown="drop")
    whole = metric.tally(people, estimate="e")
    path = tmp_path / "state.parquet"
    tf.save_state(whole, path)
    loaded = tf.load_state(path, metric.tally(people.head(0), estimate="e"))
    assert_frame_equal(metric.compute(loaded), metric.compute(whole))
    halves = [metric.tally(part, estimate="e") for part in (people.head(150), people.tail(250))]
    assert_frame_equal(metric.compute(halves[0] + halves[1]), metric.compute(whole))
    of_parts = [tf.demographic_parity(tf.quantile_groups("income", 3)).tally(people, estimate="e") for _ in range(2)]
    with pytest.raises(tf.errors.ArgumentError, match=r"has the quantiles of each part \(unless `quantile_groups"):
        _ = of_parts[0] + of_parts[1]
    fixed = tf.demographic_parity(tf.quantile_groups("income", 3, on=people))
    parts = [fixed.tally(part, estimate="e") for part in (people.head(150), people.tail(250))]
    assert_frame_equal(fixed.compute(parts[0] + parts[1]), fixed(people, estimate="e"))
    with pytest.raises(tf.errors.ArgumentError, match="`frequency_weights`: the quantiles of 'income group'"):
        tf.demographic_parity(tf.quantile_groups("income", 3))(people, estimate="e", frequency_weights="y")


def test_bins_are_equal_if_they_mean_the_same(people: pl.DataFrame) -> None:
    assert tf.bins("age", [25, 40, 65]) == AGES
    assert tf.demographic_parity(AGES) == tf.demographic_parity(tf.bins("age", [25.0, 40.0, 65.0]))
    assert tf.demographic_parity(AGES) != tf.demographic_parity(tf.bins("age", [25, 40]))
    assert repr(AGES) == "bins('age', [25.0, 40.0, 65.0])"
    both = tf.metric_set(tf.demographic_parity(AGES), tf.demographic_parity(tf.bins("age", [40], name="other")))
    assert both(people, **CALL, on_undefined="ignore")[".by"].to_list() == ["age group", "other"]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no edges": (lambda: tf.bins("age", []), "`edges` is a list of numbers"),
    "falling edges": (lambda: tf.bins("age", [40, 25]), "ascending order, each once"),
    "equal edges": (lambda: tf.bins("age", [25, 25]), "ascending order, each once"),
    "NaN": (lambda: tf.bins("age", [25, math.nan]), "`edges` is a list of numbers"),
    "too few labels": (lambda: tf.bins("age", [25], labels=["a"]), "`labels` are 2 different texts"),
    "an expression": (lambda: tf.bins(COLUMN, [25]), "`column` is the name of a column"),
    "one group": (lambda: tf.quantile_groups("age", 1), "`groups` is a whole number, 2 to 1000"),
    "no numbers": (lambda: tf.quantile_groups("age", 4, on=NO_AGES), "has no numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_groups_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(tf.errors.TidyfairError, match=message):
        make()


def test_columns_that_have_no_bins_are_refused(people: pl.DataFrame) -> None:
    with pytest.raises(tf.errors.ColumnError, match="the column 'sex' is String; bins and quantiles are those of numb"):
        tf.demographic_parity(tf.bins("sex", [1]))(people, estimate="e")
    with pytest.raises(tf.errors.ColumnError, match="'aga'"):
        tf.demographic_parity(tf.bins("aga", [1]))(people, estimate="e")
    with pytest.raises(tf.errors.ColumnError, match='give it another name with `name="…"`'):
        tf.demographic_parity(tf.bins("age", [25], name="sex"))(people, estimate="e")
