from __future__ import annotations

import functools
import gc
import gzip
import html
import importlib.util
import inspect
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import dask.dataframe
import duckdb
import ibis
import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest
import warehouses

from tidyfair.escapes import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that share the cores, and the kernels of notebooks, compute in one thread."""
    gc.disable()  # until all is collected, which lasts
    if config.getoption("numprocesses", None):
        # modules are compiled once, and not in each of the many processes
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for library in ("POLARS_MAX", "OPENBLAS_NUM", "OMP_NUM", "MKL_NUM"):
            os.environ.setdefault(f"{library}_THREADS", "1")


def pytest_xdist_setupnodes() -> None:
    """Hash texts in another way in each process of tests: it is an error where their names differ."""
    os.environ["PYTHONHASHSEED"] = "1"


def pytest_configure_node() -> None:
    os.environ["PYTHONHASHSEED"] = str(int(os.environ["PYTHONHASHSEED"]) + 1)


PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
"""`thorough` tries laws on as many examples as they name, which `.ci/run` asks for; `quick` on a third of them."""


def examples(many: int) -> int:
    """How many examples a law is tried on, others in each run."""
    return many if PROFILE == "thorough" else max(5, many // 3)


NEEDS_NEW_POLARS = {
    "test_hypothesis_tests_checks_and_model_comparison_equal_polars": "an expression of rows in a database",
    "test_every_engine_equals_polars[duckdb-expressions]": "an expression of rows in a database",
    "test_every_engine_equals_polars[table-expressions]": "an expression of rows in a database",
    "test_every_engine_equals_polars[ibis-expressions]": "an expression of rows in a database",
    "test_every_engine_equals_polars[dask-expressions]": "an expression of rows in a cluster",
    "test_expressions_may_replace_columns[duckdb]": "an expression of rows in a database",
    "test_expressions_may_replace_columns[table]": "an expression of rows in a database",
    "test_expressions_may_replace_columns[ibis]": "an expression of rows in a database",
    "test_expressions_may_replace_columns[dask]": "an expression of rows in a cluster",
    "test_hive_partitions_may_be_outer_groups": "`pl.PartitionBy` writes its data",
    "test_few_rows_take_at_most_one_query": "the constructors of older versions are queries",
    "test_unused_levels_count_on_every_engine_with_categories[polars in pandas]": "the order of an Enum in `to_pandas`",
    "test_unused_levels_count_on_every_engine_with_categories[polars in pandas_pyarrow]": "the same",
}
"""Tests that need polars 2, by what they need of it; all others pass with the oldest version, too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the notebooks, which take longest, and skip what the installed polars cannot do."""
    items.sort(key=lambda item: item.path.name != "test_notebooks.py")
    if int(pl.__version__.partition(".")[0]) >= 2:
        return
    for item in items:
        reason = NEEDS_NEW_POLARS.get(item.name, NEEDS_NEW_POLARS.get(item.name.partition("[")[0]))
        if reason:
            item.add_marker(pytest.mark.skip(reason=f"needs polars 2: {reason}"))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected, which lasts as long as the tests do."""
    gc.collect()
    gc.freeze()
    # looking for circles 300 times less often saves an eighth of the time
    gc.set_threshold(200_000, 10, 100)
    gc.enable()


DOCS = Path(__file__).parents[1] / "docs"
REFERENCES = Path(__file__).parent / "references"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def script(name: str) -> Any:
    """A module of the docs, from its file; it finds those beside it."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))
    spec = importlib.util.spec_from_file_location(Path(name).stem, DOCS / name)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def wide_terminal(request: pytest.FixtureRequest) -> None:
    """A terminal in which no table of tests of the command line wraps; some of them choose another width."""
    if request.path.parent.name == "cli":
        request.getfixturevalue("monkeypatch").setenv("COLUMNS", "160")


def records(library: str) -> list[dict[str, Any]]:
    with gzip.open(REFERENCES / f"{library}.json.gz", "rt") as file:
        return json.load(file)


def deviations(library: str) -> dict[str, int]:
    """The rules by which a library has other numbers by design, and how many, from `references/deviations.md`."""
    rows = [line.strip("| ").split(" | ") for line in (REFERENCES / "deviations.md").read_text("utf-8").splitlines()]
    return {row[1]: int(row[2]) for row in rows if row[0] == library}


def reference_data(name: str) -> pl.DataFrame:
    return pl.read_parquet(REFERENCES / "data" / f"{name}.parquet")


def read_csv(file: Path, **options: Any) -> pl.DataFrame:
    """A csv file in which empty texts are texts; older versions of polars have another word for that."""
    known = "empty_string_is_null" in inspect.signature(pl.read_csv).parameters
    empty = {"empty_string_is_null": False} if known else {"missing_utf8_is_empty_string": True}
    return pl.read_csv(file, **empty, **options)


def check_every(cases: Mapping[str, Any], check: Callable[[Any], None]) -> None:
    """Check all of many cases in one test, and fail with the name of every case that does not pass and why."""
    assert cases
    failures: list[str] = []
    for name, case in cases.items():
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases are checked all the same
            failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        pytest.fail("\n".join([f"{len(failures)} of {len(cases)} fail", *failures]), pytrace=False)


@pytest.fixture(scope="module")
def few_draws() -> Iterator[None]:
    """A tenth of the usual replicates of intervals, for modules that read no digits of them but beside each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidyfair.specs.options.REPLICATES", 1_000)
        patch.setattr("tidyfair.specs.options.REPLICATES_OF_ROWS", 100)
        patch.setattr("tidyfair.audits.audit_results._MOST_DRAWS", 1_000)
        patch.setattr("tidyfair.cli.compare._DRAWS", 200)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made but neither written out nor drawn, which takes longest, for tests of the words of a page."""
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'

    def described(chart: Any, name: str) -> str:
        return picture.replace(" width", f' id="{name}" aria-label="{html.escape(visible(chart.description))}" width')

    monkeypatch.setattr("vl_convert.vegalite_to_svg", lambda *_, **__: picture)
    monkeypatch.setattr("tidyfair.reports.blocks.themed_svg", described)


@pytest.fixture
def loans() -> pl.DataFrame:
    """Twelve decisions about people of two sexes and three races; `rare` has no positive."""
    return pl.DataFrame(
        {
            "truth": [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0],
            "estimate": [1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0],
            "score": [0.9, 0.4, 0.2, 0.6, 0.8, 0.7, 0.1, 0.3, 0.75, 0.55, 0.65, 0.05],
            "sex": ["f", "f", "f", "f", "m", "m", "m", "m", "f", "m", "f", "m"],
            "race": ["a", "a", "b", "b", "a", "b", "a", "b", "a", "b", "rare", "rare"],
            "fold": [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2],
            "weight": [1.0, 2.0, 1.5, 0.5, 1.0, 1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0],
        }
    )


# Every kind of frame


def _polars(frame: pl.DataFrame) -> Any:
    return frame


def _lazy(frame: pl.DataFrame) -> Any:
    return frame.lazy()


def _pandas(frame: pl.DataFrame) -> Any:
    return frame.to_pandas()


def _pandas_pyarrow(frame: pl.DataFrame) -> Any:
    return frame.to_pandas(use_pyarrow_extension_array=True)


def _pyarrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow()


@functools.cache
def _duckdb_of_all_tests() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


_NUMBERS = itertools.count()


def new_database() -> duckdb.DuckDBPyConnection:
    """An empty database of DuckDB, beside others in one instance, which takes long to start."""
    connection, name = _duckdb_of_all_tests().cursor(), f"memory_{next(_NUMBERS)}"
    connection.execute(f"attach ':memory:' as {name}")
    connection.execute(f"use {name}")
    return connection


def _duckdb(frame: pl.DataFrame) -> Any:
    connection = new_database()
    connection.register("arrow", frame.to_arrow())
    connection.execute("create table people as select * from arrow")
    return connection.table("people")


def _named_table(frame: pl.DataFrame) -> Any:
    connection = new_database()
    connection.register("people", frame.to_arrow())
    return (connection, "people")


def _ibis(frame: pl.DataFrame) -> Any:
    connection = new_database()
    connection.register("people", frame.to_arrow())
    return ibis.duckdb.from_connection(connection).table("people")


def skip_without_pandas_3() -> None:
    """Skip a test of Dask where its frames are refused."""
    if int(pd.__version__.partition(".")[0]) < 3:
        pytest.skip("Dask frames need pandas 3")


def partitioned(frame: pd.DataFrame, npartitions: int = 2) -> Any:
    """A frame of pandas as one of Dask."""
    skip_without_pandas_3()
    return dask.dataframe.from_pandas(frame, npartitions=npartitions)


def _dask(frame: pl.DataFrame) -> Any:
    return partitioned(_pandas_pyarrow(frame))


@functools.cache
def spark() -> Any:
    """One session of two workers for all tests."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where it is installed  # pyright: ignore[reportMissingImports] - only where there is Java

    options = {
        "spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.ui.showConsoleProgress": "false",
        "spark.default.parallelism": "3", "spark.sql.shuffle.partitions": "2",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _spark(frame: pl.DataFrame) -> Any:
    signed = frame.cast({cs.unsigned_integer(): pl.Int64})  # all the whole numbers that Spark has
    return spark().createDataFrame(signed.to_arrow())


EAGER: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": _polars, "pandas": _pandas, "pandas_pyarrow": _pandas_pyarrow, "pyarrow": _pyarrow,
}  # fmt: skip
"""Frames in memory, which are answered in their own kind; all others are answered with polars."""
ELSEWHERE: dict[str, Callable[[pl.DataFrame], Any]] = {
    "duckdb": _duckdb, "table": _named_table, "ibis": _ibis, "dask": _dask, "spark": _spark,
}  # fmt: skip
"""Rows that an engine of their own counts, in no order."""
WAREHOUSES: dict[str, Callable[[pl.DataFrame], Any]] = {"sqlite": warehouses.sqlite, "postgres": warehouses.postgres}
"""Databases with fewer types than frames have."""
ENGINES = {**EAGER, "lazy": _lazy, **ELSEWHERE}


@pytest.fixture(params=["polars", "pandas", "lazy", "duckdb"])
def engine(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    """Turns a polars frame into one of each way of reading: as it is, converted, by a query of polars, and of SQL."""
    return ENGINES[request.param]


@pytest.fixture(params=list(ENGINES))
def every_engine(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    """Turns a polars frame into a frame of each kind there is, for what kinds of frames might do differently."""
    return ENGINES[request.param]


def answer_kind(data: Any) -> type:
    """The kind of frame that answers: frames in memory are answered in their own kind, all others with polars."""
    return type(data) if isinstance(data, pl.DataFrame | pd.DataFrame | pa.Table) else pl.DataFrame


def as_polars(frame: Any) -> pl.DataFrame:
    """A frame of any kind as a polars frame, for comparison."""
    if isinstance(frame, pd.DataFrame):
        return pl.from_pandas(frame)
    if isinstance(frame, tuple):
        connection, name = cast("tuple[Any, str]", frame)
        return as_polars(connection.table(name))
    return nw.from_native(frame).lazy().collect("polars").to_native()


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""A browser, where one is installed."""


def in_a_browser(page: Path, picture: Path, width: int = 1280, state: str = "") -> str:
    """A page as a browser without a network has it in the end; what its console says is an error."""
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-sync", "--disable-component-update", f"--user-data-dir={picture.parent / 'profile'}",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", f"--window-size={width},2000",
        "--virtual-time-budget=20000", f"--screenshot={picture}", "--dump-dom", page.as_uri() + state,
    ]  # fmt: skip
    browser = subprocess.run([str(CHROMIUM), *options], check=True, capture_output=True, text=True, timeout=120)  # noqa: S603 - our own
    # of panels that have axes of their own, Vega says that it takes their columns for one; or that one has no mean
    harmless = ("WARN Detected faceted independent scales", 'WARN Infinite extent for field "mean"')
    errors = [
        line for line in browser.stderr.splitlines() if "CONSOLE" in line and not any(item in line for item in harmless)
    ]
    assert not errors
    return browser.stdout
