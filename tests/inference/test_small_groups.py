"""Rare groups are lumped or shrunk, and missing truths are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from conftest import as_polars
from scipy.stats import fisher_exact
from statsmodels.stats.proportion import confint_proportions_2indep

import tidyfair as tf
from tidyfair import inference

if TYPE_CHECKING:
    from collections.abc import Callable


def test_lump_rare_adds_a_column(engine: Callable[[pl.DataFrame], Any]) -> None:
    people = pl.DataFrame({"race": ["a"] * 5 + ["b"] * 2 + ["c", None, None], "p": [1, 0] * 5})
    result = as_polars(inference.lump_rare(engine(people), "race", 3, other="rare"))
    assert result["race_lumped"].to_list() == ["a"] * 5 + ["rare"] * 3 + [None] * 2
    assert result.select("race", "p").equals(people)
    assert inference.lump_rare(people, "race", 1, name="same")["same"].equals(people["race"].alias("same"))
    with pytest.raises(tf.errors.ArgumentError, match="a group is already called 'a'"):
        inference.lump_rare(people, "race", 3, other="a")
    with pytest.raises(tf.errors.ColumnError, match="'p' already"):
        inference.lump_rare(people, "race", 3, name="p")
    with pytest.raises(tf.errors.ColumnError, match="no column 'rice'"):
        inference.lump_rare(people, "rice", 3)


def test_lump_rare_leaves_nan_missing() -> None:
    people = pl.DataFrame({"age": [1.0, 1.0, float("nan"), float("nan"), float("nan"), None, 2.0]})
    for min_n, expected in ((2, "other"), (1, "2.0")):
        lumped = inference.lump_rare(people, "age", min_n)["age_lumped"].to_list()
        assert lumped == ["1.0", "1.0", None, None, None, None, expected]


def test_missing_truth_by_decision() -> None:
    random = np.random.default_rng(1)
    lent = random.random(800) < 0.5
    known = np.where(lent, random.random(800) < 0.95, random.random(800) < 0.5)
    people = pl.DataFrame(
        {
            "paid": [int(paid) if there else None for paid, there in zip(random.random(800) < 0.7, known, strict=True)],
            "lent": lent.astype(np.int64), "sex": ["f", "m"] * 400,
        }
    )  # fmt: skip
    result = inference.missing_truth(people, "paid", "lent", by="sex")
    for sex in ("f", "m"):
        mine = people.filter(pl.col("sex") == sex)
        positive, negative = (mine.filter(pl.col("lent") == side)["paid"] for side in (1, 0))
        row = result.filter(pl.col("sex") == sex).row(0, named=True)
        counts = negative.null_count(), len(negative), positive.null_count(), len(positive)
        assert row[".missing_if_negative"] == pytest.approx(counts[0] / counts[1])
        assert row[".missing_if_positive"] == pytest.approx(counts[2] / counts[3])
        expected: Any = confint_proportions_2indep(*counts, method="newcomb", compare="diff")
        assert (row[".lower"], row[".upper"]) == pytest.approx(tuple(expected))
        table = [[counts[0], counts[1] - counts[0]], [counts[2], counts[3] - counts[2]]]
        theirs: Any = fisher_exact(table)
        assert row[".p_value"] == pytest.approx(theirs[1], rel=1e-6)
        assert row[".p_adjusted"] < 0.001
    assert inference.missing_truth(people, "paid", "lent")[".n"].item() == 800
    with pytest.raises(tf.errors.ArgumentError, match="'yes' is not among the predictions"):
        inference.missing_truth(people, "paid", "lent", positive="yes")
