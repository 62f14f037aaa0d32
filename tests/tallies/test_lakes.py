"""Partitioned folders, Delta and Iceberg tables are read lazily: only the needed partitions and columns."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOANS = lending(2_000).with_columns(pl.col("repaid", "approved", "sex", "race", "age_band").cast(pl.String))
METRICS = tf.metric_set(tf.accuracy, tf.demographic_parity("race"), tf.equalized_odds("sex"))
CALL: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes", "group_by": "fold"}


def _folders(path: Path) -> pl.LazyFrame:
    LOANS.lazy().sink_parquet(pl.PartitionBy(path, key=["fold"], include_key=False))
    return pl.scan_parquet(path, hive_partitioning=True)


def _delta(path: Path) -> pl.LazyFrame:
    LOANS.write_delta(str(path), delta_write_options={"partition_by": ["fold"]})
    return pl.scan_delta(str(path))


def _iceberg(path: Path) -> pl.LazyFrame:
    path.mkdir()
    catalog = import_module("pyiceberg.catalog.sql").SqlCatalog(
        "local", uri=f"sqlite:///{path}/catalog.db", warehouse=f"file://{path}"
    )
    catalog.create_namespace("audits")
    table = catalog.create_table("audits.loans", schema=LOANS.to_arrow().schema)
    for _, rows in LOANS.group_by("fold", maintain_order=True):
        table.append(rows.to_arrow())
    return pl.scan_iceberg(table)


LAKES = [
    pytest.param(_folders, marks=pytest.mark.skipif(not hasattr(pl, "PartitionBy"), reason="polars 2 writes them")),
    pytest.param(_delta, marks=pytest.mark.skipif(find_spec("deltalake") is None, reason="needs deltalake")),
    pytest.param(_iceberg, marks=pytest.mark.skipif(find_spec("pyiceberg") is None, reason="needs pyiceberg")),
]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plan of each query that runs."""
    kept: list[str] = []
    collect: Callable[..., Any] = pl.LazyFrame.collect

    def recorded(query: pl.LazyFrame, *given: Any, **options: Any) -> Any:
        kept.append(query.explain())
        return collect(query, *given, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", recorded)
    return kept


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lake", LAKES)
def test_only_needed_partitions_and_columns_of_a_lake_are_read(
    lake: Callable[[Path], pl.LazyFrame], tmp_path: Path, plans: list[str]
) -> None:
    table = lake(tmp_path / "lake")
    assert_frame_equal(METRICS(table, **CALL), METRICS(LOANS, **CALL), check_dtypes=False)
    plans.clear()
    METRICS(table.filter(pl.col("fold") == 3), **CALL)
    assert plans
    for plan in plans:
        assert "SELECTION:" in plan
        assert "FILTER" not in plan
        assert "3/8 COLUMNS" in plan or "5/8 COLUMNS" in plan
        assert "fold=4" not in plan
