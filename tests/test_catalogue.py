from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

import tidyfair as tf
from tidyfair import datasets, fairness
from tidyfair.metrics import classification, dependence, inequality, probability, regression


def test_every_metric_is_in_the_catalogue() -> None:
    table = tf.catalogue()
    named = set(table["name"]) | set(table["aliases"].explode().drop_nulls())
    modules = (classification, probability, regression, inequality, dependence, fairness)
    makers = {"new_groupwise_metric", "new_between_group_metric"}
    assert named == {name for module in modules for name in module.__all__} - makers
    assert table["name"].is_unique().all()
    assert set(table["kind"]) == {"class", "prob", "numeric", "groupwise"}
    assert set(table["direction"]) <= {"maximize", "minimize", "zero", "one"}
    assert table.filter(pl.col("lower") >= pl.col("upper")).is_empty()


def test_aliases_share_the_formula_and_keep_the_name_that_was_asked(loans: pl.DataFrame) -> None:
    assert tf.true_positive_rate.definition == tf.sens.definition
    assert tf.true_positive_rate(loans, "truth", "estimate")[".metric"].to_list() == ["true_positive_rate"]


def test_get_metrics_is_a_set_of_everything(loans: pl.DataFrame) -> None:
    every = tf.get_metrics("class")
    result = every(loans, "truth", "estimate")
    assert result[".metric"].to_list() == [metric.name for metric in every]
    assert result[".estimate"].null_count() == 0


def test_public_names_are_those_of_the_modules() -> None:
    for name in (*classification.__all__, *fairness.__all__, "metric_set", "difference", "conf_mat", "TidyfairError"):
        assert hasattr(tf, name)


def test_names_that_are_read_later_are_all_there_and_hidden_by_no_module() -> None:
    code = """
import sys, tidyfair
early = {name for name in vars(tidyfair) if not name.startswith("_")}
unwanted = {"tidyfair.questions", "narwhals", "numpy", "altair", "great_tables", "pandas", "sklearn", "scipy"}
assert not unwanted & set(sys.modules)
from importlib import import_module
from pkgutil import iter_modules
stems = {each.name for each in iter_modules(tidyfair.__path__)}
later = [name for place in tidyfair._LATER for name in import_module(f"tidyfair.{place}").__all__]
assert len(later) == len(set(later)) and not stems & set(later)
assert stems & early <= {name for name in stems if f"tidyfair.{name}" in sys.modules}
from tidyfair import *
missing = [name for name in later if name not in globals()]
assert not missing, missing
assert callable(tidyfair.catalogue) and callable(tidyfair.resamples)
assert set(later) <= set(dir(tidyfair))
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    with pytest.raises(AttributeError, match="no attribute 'accurracy'"):
        getattr(tf, "accurracy")  # noqa: B009 - it is not there, as type checkers would say


def test_conf_mat(loans: pl.DataFrame) -> None:
    table = tf.conf_mat(loans, "truth", "estimate", group_by="sex", case_weights="weight")
    assert table.columns == ["sex", ".truth", ".predicted", ".n", ".weight"]
    assert table.filter(sex="f").select(".truth", ".predicted", ".n").rows() == [
        (0, 0, 1),
        (0, 1, 2),
        (1, 0, 1),
        (1, 1, 2),
    ]
    assert table[".weight"].sum() == loans["weight"].sum()
    # pairs that do not occur are there, rows without a label are not
    holes = pl.DataFrame({"t": ["a", "b", None], "e": ["a", "a", "a"]})
    assert tf.conf_mat(holes, "t", "e", labels=["a", "b"]).rows() == [
        ("a", "a", 1), ("a", "b", 0), ("b", "a", 1), ("b", "b", 0)
    ]  # fmt: skip
    cut = tf.conf_mat(loans, "truth", probs="score", threshold=0.5)
    expected = tf.conf_mat(loans.with_columns(estimate=(pl.col("score") >= 0.5).cast(pl.Int64)), "truth", "estimate")
    assert cut.equals(expected)
    summary = tf.conf_mat_summary(loans, "truth", "estimate")
    assert "mcc" in summary[".metric"]


def test_conf_mat_in_pandas(loans: pl.DataFrame) -> None:
    table = tf.conf_mat(loans.to_pandas(), "truth", "estimate")
    assert table[".n"].tolist() == [4, 3, 1, 4]


def test_lending_is_reproducible_and_plausible() -> None:
    data = datasets.lending(20_000, seed=3)
    assert data.equals(datasets.lending(20_000, seed=3))
    assert not data.equals(datasets.lending(20_000, seed=4))
    assert datasets.lending(0).schema == data.schema
    assert data["score"].is_between(0, 1).all()
    assert data["weight"].mean() == pytest.approx(1, abs=0.1)
    assert (data["race"] == "Native").mean() == pytest.approx(0.015, abs=0.005)
    # the score is biased against one group beyond what the truth explains
    gap = tf.equal_opportunity("race")(data, "repaid", "approved", pos_label="yes", explain=True)
    assert gap.select(".group_min").item() == "Black"
    with pytest.raises(tf.ArgumentError, match="`rows`"):
        datasets.lending(-1)
