from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidyfair as tf
from tidyfair import datasets
from tidyfair.metrics import classification, dependence, fairness, inequality, probability, regression


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


def test_aliases_share_the_formula_and_keep_their_own_name(loans: pl.DataFrame) -> None:
    assert tf.true_positive_rate.definition == tf.sens.definition
    assert tf.true_positive_rate(loans, "truth", "estimate")[".metric"].to_list() == ["true_positive_rate"]


def test_get_metrics_returns_all_metrics_of_a_kind(loans: pl.DataFrame) -> None:
    every = tf.get_metrics("class")
    result = every(loans, "truth", "estimate")
    assert result[".metric"].to_list() == [metric.name for metric in every]
    assert result[".estimate"].null_count() == 0


def test_metric_names_are_public() -> None:
    for name in (*classification.__all__, *fairness.__all__, "metric_set", "difference", "conf_mat", "TidyfairError"):
        assert hasattr(tf, name)


def test_import_is_lazy_and_public_names_match_their_modules() -> None:
    code = """
import sys, tidyfair
read = {name for name in sys.modules if name.split(".")[0] in {"tidyfair", "polars", "narwhals", "numpy", "pandas"}}
assert read == {"tidyfair"}, read
from importlib import import_module
listed = {module: names.split() for module, names in tidyfair._NAMES.items()}
for module, names in listed.items():
    assert sorted(names) == sorted(import_module(f"tidyfair.{module}").__all__), module
every = [name for names in listed.values() for name in names]
assert sorted(every) == tidyfair.__all__ and len(every) == len(set(every))
from tidyfair import *
assert all(globals()[name] is getattr(tidyfair, name) for name in every)
assert set(every) <= set(dir(tidyfair))
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    with pytest.raises(AttributeError, match="no attribute 'accurracy'"):
        getattr(tf, "accurracy")  # noqa: B009 - it is not there, as type checkers would say


def test_every_module_with_public_names_is_listed() -> None:
    root = Path(tf.__file__).parent
    with_names = {
        ".".join(path.relative_to(root).with_suffix("").parts)
        for path in root.rglob("*.py")
        if re.search(r"^__all__ = \[", path.read_text("utf-8"), re.MULTILINE)
    }
    # names of the command line, of examples, and of metrics that `fairness` compares between groups
    elsewhere = {"cli.main", "datasets", "metrics.distances"}
    assert with_names - elsewhere == {*vars(tf)["_NAMES"]}


def test_conf_mat_counts_by_outer_group(loans: pl.DataFrame) -> None:
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


def test_conf_mat_summary_has_the_rows_of_yardstick(loans: pl.DataFrame) -> None:
    summary = tf.conf_mat_summary(loans, "truth", "estimate")
    assert summary[".metric"].to_list() == [
        "accuracy", "kap", "sens", "spec", "ppv", "npv", "mcc", "j_index", "bal_accuracy", "detection_prevalence",
        "precision", "recall", "f_meas",
    ]  # fmt: skip
    alone = [getattr(tf, name)(loans, "truth", "estimate")[".estimate"].item() for name in summary[".metric"]]
    assert summary[".estimate"].to_list() == alone


def test_conf_mat_of_pandas(loans: pl.DataFrame) -> None:
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


# Versions, help and signatures


def test_version_equals_package_metadata() -> None:
    code = """
import sys, tidyfair
assert "__version__" not in vars(tidyfair)
from importlib.metadata import version
from pathlib import Path
assert tidyfair.__version__ == version("tidyfair")
assert "__version__" not in tidyfair.__all__
"""
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own
    assert tf.__version__ == version("tidyfair")


def test_help_of_a_factory_describes_its_metrics() -> None:
    shown = re.sub(".\x08", "", pydoc.render_doc(tf.demographic_parity))  # without what printers print twice
    assert "demographic_parity: Largest less smallest detection_prevalence, of the groups." in shown
    assert "detection_prevalence: Share of rows that were predicted positive" in shown
    assert "Source: Calders et al. (2009)" in shown
    odds = str(tf.equalized_odds.__doc__)
    assert "sens: Share of actual positives" in odds
    assert "spec: Share of actual negatives" in odds
    factories = [item for name in fairness.__all__ if isinstance(item := getattr(fairness, name), tf.GroupwiseFactory)]
    assert len(factories) > 80
    for factory in factories:
        assert str(factory.__doc__).startswith(f"{factory.name}: "), factory.name
    # the class still says what factories are
    assert str(tf.GroupwiseFactory.__doc__).startswith("Makes groupwise metrics")


def test_signature_of_a_factory_shows_its_options() -> None:
    plain = inspect.signature(tf.demographic_parity)
    assert list(plain.parameters) == ["by", "aggregate", "name", "min_n"]
    assert plain.parameters["aggregate"].default == tf.difference()
    options = inspect.signature(tf.differential_fairness).parameters
    assert options["concentration"].default == 1
    for factory in (tf.differential_fairness, tf.f1_group_minimum, tf.mutual_information):
        given = {
            name: item.default for name, item in inspect.signature(factory).parameters.items()
            if item.kind is item.KEYWORD_ONLY
        }  # fmt: skip
        assert factory("sex", **given) == factory("sex")
    assert "metrics" in inspect.signature(tf.GroupwiseFactory).parameters


def test_event_level_argument_points_to_pos_label(loans: pl.DataFrame) -> None:
    calls: list[Any] = [tf.sens, tf.metric_set(tf.sens, tf.spec), tf.conf_mat, tf.demographic_parity("sex")]
    for call in calls:
        with pytest.raises(tf.ArgumentError, match='write `pos_label="yes"` in the call') as caught:
            call(loans, "truth", "estimate", event_level="second")
        assert "conf_level'?" not in str(caught.value)
    tweak: Any = tf.metric_tweak
    with pytest.raises(tf.ArgumentError, match="pos_label"):
        tweak(tf.sens, "second", event_level="second")
    factory: Any = tf.demographic_parity
    with pytest.raises(tf.ArgumentError, match="pos_label"):
        factory("sex", event_level="second")
    curve: Any = tf.roc_curve
    with pytest.raises(tf.ArgumentError, match="pos_label"):
        curve(loans, "truth", probs="score", event_level="second")
