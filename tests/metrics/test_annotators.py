"""Agreement of annotators equals statsmodels and the package `krippendorff`; truths made of several labels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


def value(result: Any) -> float:
    return as_polars(result)[".estimate"].item()


def exactly(number: float) -> Any:
    return pytest.approx(number, rel=1e-11, abs=1e-13)


@pytest.fixture(scope="module")
def votes() -> pl.DataFrame:
    """Four labels each of 60 items."""
    random = np.random.default_rng(4)
    own = random.integers(0, 3, 60)
    labels = np.where(random.random((4, 60)) < 0.6, own, random.integers(0, 3, (4, 60)))
    return pl.DataFrame({
        "item": range(60), "dialect": random.choice(["x", "y"], 60),
        **{f"ann{number}": np.array(["bad", "fine", "good"])[row] for number, row in enumerate(labels)},
    })  # fmt: skip


@pytest.fixture(scope="module")
def rows(votes: pl.DataFrame) -> pl.DataFrame:
    """A row for each item and annotator, of two groups of annotators."""
    long = votes.unpivot(index=["item", "dialect"], variable_name="annotator", value_name="label")
    return long.with_columns(group=pl.col("annotator").is_in(["ann0", "ann1"])).sample(fraction=1, shuffle=True, seed=1)


def fleiss(votes: pl.DataFrame, names: tuple[str, ...] = ("ann0", "ann1", "ann2", "ann3")) -> float:
    return float(fleiss_kappa(aggregate_raters(votes.select(names).to_numpy())[0]))


def alpha(rows: pl.DataFrame) -> float:
    """Krippendorff's alpha from its coincidences, one by one."""
    pairs: dict[tuple[str, str], float] = {}
    for (_,), part in rows.drop_nulls("label").group_by("item"):
        labels = part["label"].to_list()
        for index, one in enumerate(labels):
            for other in labels[:index] + labels[index + 1 :]:
                pairs[one, other] = pairs.get((one, other), 0) + 1 / (len(labels) - 1)
    total = sum(pairs.values())
    totals = {label: sum(count for (one, _), count in pairs.items() if one == label) for label, _ in pairs}
    observed = sum(count for (one, other), count in pairs.items() if one != other) / total
    alike = sum(count * (count - 1) for count in totals.values())
    return 1 - observed / (1 - alike / (total * (total - 1)))


def test_fleiss_kappa_equals_statsmodels_by_group_of_the_item(votes: pl.DataFrame, rows: pl.DataFrame) -> None:
    assert value(tf.annotators.fleiss_kap("item")(rows, estimate="label")) == exactly(fleiss(votes))
    groups = tf.annotators.fleiss_kap("item").difference("dialect").by_group(rows, estimate="label")
    for dialect, kappa in groups.select("dialect", ".estimate").iter_rows():
        assert kappa == exactly(fleiss(votes.filter(dialect=dialect)))


def test_fleiss_kappa_among_the_annotators_of_a_group(votes: pl.DataFrame, rows: pl.DataFrame) -> None:
    groups = tf.annotators.fleiss_kap(["item", "group"]).difference("group").by_group(rows, estimate="label")
    expected = {True: fleiss(votes, ("ann0", "ann1")), False: fleiss(votes, ("ann2", "ann3"))}
    assert dict(groups.select("group", ".estimate").iter_rows()) == {
        group: exactly(kappa) for group, kappa in expected.items()
    }
    with pytest.raises(
        tf.errors.ColumnError, match=r"rows with the same 'item' have different 'group'.*\['item', 'group'\]"
    ):
        tf.annotators.fleiss_kap("item").difference("group")(rows, estimate="label")


def test_krippendorffs_alpha_equals_its_coincidences(rows: pl.DataFrame) -> None:
    gaps = rows.with_columns(label=pl.when(pl.int_range(pl.len()) % 5 > 0).then("label"))
    several = gaps.filter(pl.col("label").count().over("item") > 1)
    result = tf.annotators.krippendorff_alpha("item")(several, estimate="label")
    assert value(result) == exactly(alpha(several))
    groups = tf.annotators.krippendorff_alpha("item").difference("dialect").by_group(several, estimate="label")
    for dialect, number in groups.select("dialect", ".estimate").iter_rows():
        assert number == exactly(alpha(several.filter(dialect=dialect)))


def test_krippendorffs_example_has_the_value_of_the_package_krippendorff() -> None:
    # Krippendorff (2011), Computing Krippendorff's alpha-reliability; krippendorff 0.9.0 says 0.743421052631579
    coders = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    table = [
        {"item": item, "label": int(label)} for labels in coders for item, label in enumerate(labels) if label != "."
    ]
    data = pl.DataFrame(table).filter(pl.len().over("item") > 1)
    assert value(tf.annotators.krippendorff_alpha("item")(data, estimate="label")) == exactly(0.743421052631579)


def test_agreement_on_two_labels_is_that_of_either_event(rows: pl.DataFrame) -> None:
    two = rows.with_columns(label=pl.col("label") == "bad")
    metrics = tf.metric_set(tf.annotators.fleiss_kap("item"), tf.annotators.krippendorff_alpha("item"))
    result = metrics(two, estimate="label")
    assert result[".estimate"].to_list() == metrics(two, estimate="label", pos_label=False)[".estimate"].to_list()
    assert result[".estimate"][1] == exactly(alpha(two))
    with pytest.raises(tf.errors.ArgumentError, match="fleiss_kap is about all labels; leave out `pos_label`"):
        tf.annotators.fleiss_kap("item")(rows, estimate="label", pos_label="bad")


def test_agreement_on_every_engine(rows: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]) -> None:
    metrics = tf.metric_set(tf.annotators.fleiss_kap("item"), tf.annotators.krippendorff_alpha("item"))
    result = as_polars(metrics(engine(rows), estimate="label"))
    assert result[".estimate"].to_list() == [exactly(number) for number in metrics(rows, estimate="label")[".estimate"]]


def test_intervals_of_agreement_leave_out_whole_items(rows: pl.DataFrame) -> None:
    metric = tf.annotators.krippendorff_alpha("item")
    with pytest.raises(tf.errors.ArgumentError, match="krippendorff_alpha: the rows of a list depend on each other"):
        metric(rows, estimate="label", interval="auto")
    result = metric(rows, estimate="label", interval="auto", cluster="item")
    left_out = [alpha(rows.filter(pl.col("item") != item)) for item in range(60)]
    error = np.sqrt(59 / 60 * ((np.array(left_out) - np.mean(left_out)) ** 2).sum())
    assert result[".std_error"].item() == pytest.approx(error, rel=0.02)


def test_labels_that_are_all_the_same_have_no_agreement_beyond_chance(rows: pl.DataFrame) -> None:
    same = rows.with_columns(label=1)
    result = tf.annotators.fleiss_kap("item")(same, estimate="label", explain=True, on_undefined="ignore")
    assert result.select(".estimate", ".status").row(0) == (None, "constant")


def test_bad_input_of_agreement(rows: pl.DataFrame) -> None:
    fewer = rows.sort("item", "annotator")[1:]
    with pytest.raises(
        tf.errors.ColumnError, match="same number of labels for each item, two or more, but items have 3, 4"
    ):
        tf.annotators.fleiss_kap("item")(fewer, estimate="label")
    alone = rows.sort("item", "annotator")[3:]
    with pytest.raises(tf.errors.ColumnError, match="but items have 1, 4; leave out items with fewer, by `data"):
        tf.annotators.fleiss_kap("item")(alone, estimate="label")
    with pytest.raises(tf.errors.ColumnError, match="1 of 60 items has a single label, which agrees with no other"):
        tf.annotators.krippendorff_alpha("item")(alone, estimate="label")
    with pytest.raises(tf.errors.WeightError, match="counts labels alike"):
        tf.annotators.krippendorff_alpha("item")(rows.with_columns(weight=2), estimate="label", case_weights="weight")
    with pytest.raises(tf.errors.ArgumentError, match="`item` is empty or has duplicates"):
        tf.annotators.fleiss_kap([])


def test_majority_and_shares_are_the_same_from_columns_and_from_rows(votes: pl.DataFrame, rows: pl.DataFrame) -> None:
    names = ["ann0", "ann1", "ann2", "ann3"]
    wide = votes.select("item", tf.annotators.majority_label(names), tf.annotators.soft_label(names, "bad"))
    long = rows.select(
        "item",
        tf.annotators.majority_label("label", item="item"),
        tf.annotators.soft_label("label", "bad", item="item"),
    )
    assert wide.columns[1:] == ["majority of ann0, ann1, ann2, ann3", "share of bad in ann0, ann1, ann2, ann3"]
    assert wide.rows() == long.unique().sort("item").rows()
    for labels, majority, share in zip(votes.select(names).rows(), wide.to_series(1), wide.to_series(2), strict=True):
        counts = {label: labels.count(label) for label in labels}
        most = [label for label, count in counts.items() if count == max(counts.values())]
        assert majority == (most[0] if len(most) == 1 else None)
        assert share == labels.count("bad") / 4


def test_rows_without_a_majority_are_left_out(votes: pl.DataFrame) -> None:
    names = ["ann0", "ann1", "ann2", "ann3"]
    decided = votes.with_columns(truth=tf.annotators.majority_label(names)).drop_nulls("truth")
    assert len(decided) < len(votes)
    result = tf.accuracy(votes, tf.annotators.majority_label(names), "ann0")
    assert value(result) == exactly((decided["truth"] == decided["ann0"]).mean())  # pyright: ignore[reportArgumentType] - a number


def test_missing_labels_do_not_vote() -> None:
    votes = pl.DataFrame({"a": ["x", None, None], "b": ["y", "y", None], "c": [None, "x", None], "d": ["y", "y", None]})
    names = ["a", "b", "c", "d"]
    assert votes.select(tf.annotators.majority_label(names)).to_series().to_list() == ["y", "y", None]
    assert votes.select(tf.annotators.soft_label(names, "y")).to_series().to_list() == [
        exactly(2 / 3),
        exactly(2 / 3),
        None,
    ]


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64])
def test_nan_is_no_vote(dtype: pl.DataType) -> None:
    nan = float("nan")
    votes = pl.DataFrame(
        {"a": [1.0, 1.0, nan], "b": [nan, 0.0, nan], "c": [nan, nan, nan]}, schema_overrides={"b": dtype}
    )
    wide = votes.select(tf.annotators.majority_label(["a", "b", "c"]), tf.annotators.soft_label(["a", "b", "c"], 1))
    assert wide.rows() == [(1, 1), (None, 0.5), (None, None)]
    long = votes.with_row_index("item").unpivot(index="item", value_name="label").cast({"label": dtype})
    of_items = long.select(
        "item", tf.annotators.majority_label("label", item="item"), tf.annotators.soft_label("label", 1, item="item")
    )
    assert of_items.unique().sort("item").drop("item").rows() == wide.rows()
    unknown = long.with_columns(item=pl.lit(nan)).select(tf.annotators.soft_label("label", 1, item="item"))
    assert unknown.to_series().null_count() == len(long)


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["NaN", "nan", "x"])])
def test_text_that_reads_nan_is_a_vote(dtype: pl.DataType) -> None:
    votes = pl.DataFrame({"a": ["NaN", "nan"], "b": ["NaN", "x"], "c": ["x", "nan"]}).cast(dtype)
    assert votes.select(tf.annotators.majority_label(["a", "b", "c"])).to_series().to_list() == ["NaN", "nan"]
    assert votes.select(tf.annotators.soft_label(["a", "b", "c"], "nan")).to_series().to_list() == [0, exactly(2 / 3)]


def test_columns_of_several_annotators_are_read_on_every_engine(
    votes: pl.DataFrame, engine: Callable[[pl.DataFrame], Any]
) -> None:
    names = ["ann0", "ann1", "ann2", "ann3"]
    decided = votes.with_columns(
        truth=tf.annotators.majority_label(names), share=tf.annotators.soft_label(names, "bad")
    )
    expected = tf.accuracy.difference("dialect")(decided, "truth", "ann0")
    result = tf.accuracy.difference("dialect")(engine(votes), tf.annotators.majority_label(names), "ann0")
    assert value(result) == exactly(value(expected))
    assert value(tf.mse(engine(votes.with_columns(p=0.5)), tf.annotators.soft_label(names, "bad"), "p")) == exactly(
        value(tf.mse(decided.with_columns(p=0.5), "share", "p"))
    )


def test_many_annotators_are_read_at_once() -> None:
    random = np.random.default_rng(1)
    votes = random.choice(np.array(["a", "b", "c", None], dtype=object), (200, 16))
    names = [f"ann{index}" for index in range(16)]
    modes = [Counter(vote for vote in row if vote is not None).most_common(2) for row in votes]
    expected = [most[0][0] if len(most) < 2 or most[0][1] > most[1][1] else None for most in modes]
    label = tf.annotators.majority_label(names)
    assert pl.DataFrame(votes.tolist(), schema=names, orient="row").select(label).to_series().to_list() == expected
    # an expression that repeats all votes for each pair of them would take seconds
    assert len(str(label)) < 16**2 * 500


def test_bad_columns_of_labels() -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"majority_label\(\) takes the columns of several annotators"):
        tf.annotators.majority_label("label")
    with pytest.raises(
        tf.errors.ArgumentError, match=r"soft_label\(\) takes several columns of labels, or one with `item`"
    ):
        tf.annotators.soft_label(["a", "b"], "yes", item="item")


def test_rows_without_an_item_get_no_label() -> None:
    votes = pl.DataFrame({"item": [1, 1, None, None], "label": ["x", "x", "y", "y"]})
    labels = votes.select(
        tf.annotators.majority_label("label", item="item"), tf.annotators.soft_label("label", "y", item="item")
    )
    assert labels.rows() == [("x", 0.0), ("x", 0.0), (None, None), (None, None)]


@pytest.mark.parametrize("label", [None, float("nan"), ["x"], object()])
def test_counted_label_is_a_plain_value(label: object) -> None:
    with pytest.raises(tf.errors.ArgumentError, match=r"soft_label\(\): `pos_label` is the label that is counted"):
        tf.annotators.soft_label(["a", "b"], label)


def test_counted_label_may_be_a_number_of_numpy() -> None:
    votes = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    assert votes.select(tf.annotators.soft_label(["a", "b"], np.int64(1))).to_series().to_list() == [1.0, 0.5]
