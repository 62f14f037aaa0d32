"""Rows in a database or a cluster are counted by one query, and results equal those of polars."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import dask.dataframe
import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import (
    EAGER,
    ELSEWHERE,
    ENGINES,
    WAREHOUSES,
    as_polars,
    partitioned,
    reference_data,
    skip_without_pandas_3,
    spark,
)
from polars.testing import assert_frame_equal
from public_names import public
from pyarrow import parquet

import tidyfair as tf
import tidyfair.tallies.pushdown as pushdown_of
from tidyfair.datasets import lending
from tidyfair.tallies.source import collected

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD = 'select "a b"; drop'
TEXTS = ("repaid", "approved", "sex", "race", "age_band")
ROW = pl.int_range(pl.len())
LOANS = (
    lending(1_200)
    .with_columns(pl.col(TEXTS).cast(pl.String), pl.col("score").alias(ODD), whole=(ROW % 5).cast(pl.Int32))
    .with_columns(
        sex=pl.when(ROW % 17 > 0).then("sex"), score=pl.when(ROW % 23 > 0).then("score"),
        repaid=pl.when(ROW % 29 > 0).then("repaid"), big=ROW % 3 + 2**40,
    )
)  # fmt: skip


_OPENED: dict[str, Any] = {}


@pytest.fixture(params=[*ELSEWHERE, *WAREHOUSES])
def there(request: pytest.FixtureRequest) -> Any:
    """The loans in an engine of their own, opened once."""
    if request.param not in _OPENED:
        _OPENED[request.param] = {**ELSEWHERE, **WAREHOUSES}[request.param](LOANS)
    return _OPENED[request.param]


LABELS: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORES: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
NUMBERS: dict[str, Any] = {"truth": "weight", "estimate": "score"}
FAIR = tf.metric_set(tf.accuracy, tf.mcc, tf.sens, tf.demographic_parity("race"), tf.equalized_odds("sex", "age_band"))
ABOVE = (pl.col("score") > 0.4).replace_strict({True: "yes", False: "no"}, return_dtype=pl.String).alias("above")
BANDS = dict.fromkeys(LOANS["age_band"].unique(), 0.5)
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (FAIR, LABELS),
    "without a truth": (tf.demographic_parity("race"), {"estimate": "approved", "pos_label": "yes"}),
    "outer groups": (FAIR, {**LABELS, "group_by": ["fold", "whole"]}),
    "weights": (FAIR, {**LABELS, "case_weights": "weight"}),
    "whole weights": (FAIR, {**LABELS, "case_weights": "big"}),
    "frequencies": (FAIR, {**LABELS, "frequency_weights": "whole"}),
    "a threshold": (FAIR, {**SCORES, "threshold": 0.5}),
    "thresholds": (FAIR, {**SCORES, "threshold": [0.7, 0.5, 0.3]}),
    "thresholds of groups": (tf.sens, {**SCORES, "threshold": {"age_band": BANDS}}),
    "the best": (tf.sens, {**SCORES, "top_k": 100}),
    "scores": (tf.metric_set(tf.brier_class, tf.mn_log_loss, tf.mean_score), SCORES),
    "weighted scores": (tf.brier_class, {**SCORES, "case_weights": "weight"}),
    "order of scores": (tf.metric_set(tf.roc_auc, tf.auc_parity("race"), tf.pr_auc), SCORES),
    "weighted order": (tf.roc_auc, {**SCORES, "case_weights": "weight"}),
    "bins of scores": (tf.metric_set(tf.roc_auc, tf.auc_parity("race")), {**SCORES, "score_bins": 64}),
    "weighted bins of scores": (tf.roc_auc, {**SCORES, "score_bins": 64, "case_weights": "weight"}),
    "bins of scores and labels": (tf.metric_set(tf.roc_auc, tf.sens), {**SCORES, "score_bins": 8, "threshold": 0.5}),
    "numbers": (tf.metric_set(tf.mae, tf.rmse, tf.rsq, tf.mae.difference("race")), NUMBERS),
    "functions of polars": (tf.metric_set(tf.prediction_intervals.pinball_loss, tf.huber_loss), NUMBERS),
    "medians": (tf.median_absolute_error, NUMBERS),
    "intervals": (FAIR, {**LABELS, "interval": "auto", "times": 50}),
    "intervals of numbers": (tf.mae, {**NUMBERS, "interval": "auto", "times": 50}),
    "clusters": (tf.sens, {**LABELS, "interval": "auto", "times": 50, "cluster": "fold"}),
    "odd names": (tf.mean_score, {**SCORES, "probs": ODD}),
    "expressions": (tf.sens, {**LABELS, "estimate": ABOVE}),
    "two sides": (tf.demographic_parity(tf.privileged(race="White")), LABELS),
    "outer sides": (tf.accuracy, {**LABELS, "group_by": tf.privileged(race="White")}),
}


@cache
def answer_of_polars(name: str) -> pl.DataFrame:
    metric, call = CASES[name]
    return metric(LOANS, **call, explain=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_every_engine_equals_polars(there: Any, name: str) -> None:
    metric, call = CASES[name]
    result, expected = metric(there, **call, explain=True), answer_of_polars(name)
    assert isinstance(result, pl.DataFrame)
    # keys of another engine may be wider numbers
    keys = [key for key in result.columns if not key.startswith(".")]
    keyed = result.with_columns(pl.col(key).cast(expected.schema[key]) for key in keys)
    assert_frame_equal(keyed, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_hypothesis_tests_checks_and_model_comparison_equal_polars(there: Any) -> None:
    models = {"truth": "repaid", "one": "approved", "other": ABOVE, "pos_label": "yes", "times": 20}
    asked: list[tuple[Any, dict[str, Any]]] = [
        (tf.inference.disparity_test(tf.demographic_parity("race")), LABELS | {"times": 50}),
        (tf.check(tf.demographic_parity("race"), below=0.1), LABELS),
        (tf.compare_models(tf.sens), models),
    ]
    for ask, call in asked:
        assert_frame_equal(ask(there, **call), ask(LOANS, **call), rel_tol=1e-9, abs_tol=1e-12)


# Every cell, and every metric

COUNTED: dict[str, tuple[Any, dict[str, Any]]] = {
    "labels": (
        tf.metric_set(tf.accuracy, tf.demographic_parity("race"), tf.equalized_odds("sex", "age_band")),
        {"truth": "y_true", "estimate": "y_pred", "case_weights": "weight"},
    ),
    "several labels": (tf.demographic_parity("sex"), {"estimate": "pred_multi", "group_by": "age_band"}),
    "scores": (
        tf.metric_set(tf.brier_class, tf.mn_log_loss, tf.mean_score.difference("race")),
        {"truth": "y_true", "probs": "score", "group_by": "sex"},
    ),
}


@pytest.mark.parametrize("name", ["a400_weighted", "c1000_nopos"])
def test_cells_of_reference_data_equal_polars(every_engine: Callable[[pl.DataFrame], Any], name: str) -> None:
    rows = reference_data(name)
    data = every_engine(rows)
    for metric, call in COUNTED.values():
        result, expected = (metric.tally(item, **call) for item in (data, rows))
        by = expected.counted_by
        assert_frame_equal(result.cells.sort(by), expected.cells.sort(by), rel_tol=1e-12, abs_tol=1e-12)


READS: dict[str, dict[str, Any]] = {
    "class": {"truth": "y_true", "estimate": "y_pred"}, "prob": {"truth": "y_true", "probs": "score"},
    "numeric": {"truth": "y_reg", "estimate": "pred_reg"},
    "survival": {
        "truth": tf.survival.outcome("score", "y_true"), "estimate": "pred_reg", "probs": {0.2: "score", 0.4: "score"},
    },
    "interval": {"truth": "y_reg", "estimate": tf.prediction_intervals.interval("low", "pred_reg", level=0.9)},
}  # fmt: skip
REFUSED = {"mase": "depend on the order of rows"}
"""What rows elsewhere cannot be asked, and why."""


@pytest.mark.parametrize("name", tf.catalogue()["name"])
@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning")
def test_every_catalogue_metric_equals_polars(name: str) -> None:
    rows = reference_data("b1000_single").with_columns(low=pl.col("pred_reg") - 5)
    asked = public(name)
    kind = (asked if isinstance(asked, tf.types.Metric) else asked.metrics[0]).kind
    if not isinstance(asked, tf.types.Metric):
        signed = "signed=True" in repr(asked.aggregate)
        asked = asked(tf.privileged(sex=1) if signed else "race")
    elif asked.definition.compares:
        asked = tf.new_groupwise_metric(asked, "largest", tf.group_maximum())("race")
    if "reference data" not in _OPENED:
        _OPENED["reference data"] = ELSEWHERE["duckdb"](rows)
    data = _OPENED["reference data"]
    if name in REFUSED:
        with pytest.raises(tf.errors.ColumnError, match=REFUSED[name]):
            asked(data, **READS[kind])
        return
    result, expected = (asked(item, **READS[kind], explain=True) for item in (data, rows))
    assert_frame_equal(result, expected, rel_tol=1e-9, abs_tol=1e-12)


# One query that returns only cells


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The SQL of each query that is sent, and how many rows came back."""
    sent: list[tuple[str, int]] = []
    collect: Callable[[Any], pl.DataFrame] = collected

    def recorded(frame: Any) -> pl.DataFrame:
        result = collect(frame)
        sent.append((frame.to_native().sql_query(), len(result)))
        return result

    monkeypatch.setattr(pushdown_of, "collected", recorded)
    return sent


PUSHED = ["labels", "outer groups", "weights", "a threshold", "thresholds", "scores", "weighted scores"]


@pytest.mark.parametrize("name", PUSHED)
@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning")
def test_one_aggregation_query_returns_cells(name: str, queries: list[tuple[str, int]]) -> None:
    metric, call = CASES[name]
    metric(ELSEWHERE["duckdb"](LOANS), **call)
    ((sql, rows),) = queries
    keys = {"race", "sex", "age_band", *call.get("group_by", ())} if metric is FAIR else set[str]()
    known = LOANS.select(*keys, "repaid").unique().height
    assert "GROUP BY" in sql
    assert rows <= 4 * known
    read = {*keys, "repaid", *(call[role] for role in ("estimate", "probs", "case_weights") if role in call)}
    for column in LOANS.columns:
        assert (f'"{column}"' in sql.replace(ODD, "")) == (column in read), column


@pytest.mark.parametrize("weights", [{}, {"case_weights": "big"}])
def test_score_bins_are_counted_in_the_database(weights: dict[str, Any], queries: list[tuple[str, int]]) -> None:
    tf.roc_auc(ELSEWHERE["duckdb"](LOANS), **SCORES, **weights, score_bins=4)
    (_, cells), (sql, rows) = queries
    # truths, with none, by whether there is a score; and by the four bins
    assert (cells, rows) == (3 * 2, 3 * 4)
    assert "GROUP BY" in sql


@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning")
def test_numeric_metrics_take_one_more_query_for_the_center(queries: list[tuple[str, int]]) -> None:
    metric, call = CASES["numbers"]
    metric(ELSEWHERE["duckdb"](LOANS), **call)
    assert [rows for _, rows in queries] == [1, LOANS.select("race", pl.col("score").is_null()).unique().height]


def test_ranking_metrics_fetch_distinct_rows_with_counts(queries: list[tuple[str, int]]) -> None:
    rounded = LOANS.with_columns(pl.col("score").round(1))
    tf.roc_auc(ELSEWHERE["duckdb"](rounded), **SCORES)
    ((sql, rows),) = queries
    assert "count" in sql
    assert rows == rounded.select("repaid", "score").unique().height < 50


def test_continuous_estimate_raises_before_counting(queries: list[tuple[str, int]]) -> None:
    with pytest.raises(tf.errors.ColumnError, match="'score' holds fractional numbers"):
        tf.accuracy(ELSEWHERE["duckdb"](LOANS), "repaid", "score")
    assert [rows for _, rows in queries] == [1]


# Peculiarities of engines

TRAPS: dict[str, pl.Series] = {
    "null": pl.Series(["a", None, "b", None] * 6),
    "nan": pl.Series([1.0, float("nan"), 2.0, None] * 6),
    "truth values": pl.Series([True, False, None, True] * 6),
    "small numbers": pl.Series([1, 2, 3, 4] * 6, dtype=pl.Int8),
    "large numbers": pl.Series([2**62, 1, 2**62, 5] * 6),
    "dates": pl.Series([dt.date(2026, 1, day) for day in (1, 2, 3, 4)] * 6),
    "levels": pl.Series(["low", "high", "low", None] * 6, dtype=pl.Enum(["low", "mid", "high"])),
    "decimals": pl.Series(["1.50", "2.50", "1.50", "0.10"] * 6).str.to_decimal(scale=2),
    "categories": pl.Series(["a", "b", None, "a"] * 6, dtype=pl.Categorical),
    "no sign": pl.Series([2**32 - 1, 1, None, 5] * 6, dtype=pl.UInt32),
    "quotes": pl.Series(["it's", 'a "b"', "x;drop", ""] * 6),
}


@pytest.mark.parametrize("name", TRAPS)
def test_group_keys_of_every_type(every_engine: Callable[[pl.DataFrame], Any], name: str) -> None:
    people = pl.DataFrame({"key": TRAPS[name], "y": [1, 0, 1, 1, 0, 0] * 4, "p": [1, 1, 0, 1, 0, 1, 0, 0] * 3})
    data = every_engine(people)
    # databases have levels as text, in the order of the alphabet
    in_order, about = name != "levels", [".estimate", ".n"]
    expected, result = (as_polars(tf.demographic_parity("key").by_group(item, "y", "p")) for item in (people, data))
    assert_frame_equal(result.select(about), expected.select(about), check_row_order=in_order)
    grouped, wanted = (as_polars(tf.accuracy(item, "y", "p", group_by="key")) for item in (data, people))
    assert_frame_equal(grouped.select(".estimate"), wanted.select(".estimate"), check_row_order=in_order)
    assert grouped["key"].null_count() == wanted["key"].null_count()


@pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning")
def test_empty_table(every_engine: Callable[[pl.DataFrame], Any]) -> None:
    empty = LOANS.clear()
    result = FAIR(every_engine(empty), **LABELS, labels=["no", "yes"])
    expected = FAIR(empty, **LABELS, labels=["no", "yes"])
    assert_frame_equal(as_polars(result), expected, check_dtypes=False)


NAMES = ["select", '"a b"', "x;drop", "it's", "a.b", "`", "g ", "%s", "{0}", "group", "n", "k0"]


def test_column_names_may_be_sql_keywords(every_engine: Callable[[pl.DataFrame], Any]) -> None:
    plain = pl.DataFrame({name: [index * row % 7 % 2 for row in range(20)] for index, name in enumerate(NAMES, 2)})
    data = every_engine(plain)
    for position in range(0, len(NAMES), 3):
        truth, estimate, key = NAMES[position : position + 3]
        metrics = tf.metric_set(tf.accuracy, tf.demographic_parity(key))
        result, expected = (as_polars(metrics(item, truth, estimate)) for item in (data, plain))
        assert result[".estimate"].to_list() == expected[".estimate"].to_list()
        ordered, wanted = (as_polars(tf.roc_auc(item, truth, probs=estimate, group_by=key)) for item in (data, plain))
        assert ordered.columns == wanted.columns
        assert ordered[".estimate"].to_list() == wanted[".estimate"].to_list()


def test_column_names_differing_only_in_case(every_engine: Callable[[pl.DataFrame], Any]) -> None:
    people = pl.DataFrame({"y": [1, 0] * 8, "p": [1, 0, 0, 1] * 4, "sex": list("aabb") * 4, "Sex": list("abab") * 4})
    if every_engine not in (*EAGER.values(), ENGINES["lazy"], ELSEWHERE["dask"]):
        # names of databases are equal whatever their case: DuckDB renames one of the two, Spark has two of one name
        with pytest.raises(Exception, match=r"no column 'Sex'. Did you mean 'sex'|Reference `Sex` is ambiguous"):
            tf.accuracy(every_engine(people), "y", "p", group_by="Sex")
        return
    data = every_engine(people)
    for name in ("sex", "Sex"):
        expected, result = (as_polars(tf.accuracy(item, "y", "p", group_by=name)) for item in (people, data))
        assert result.rows() == expected.rows()


def test_duckdb_enum_levels_keep_their_order() -> None:
    levels = pl.Enum(["low", "mid", "high"])
    people = pl.DataFrame({"y": ["high", "low", "mid", "low"], "p": ["high", "mid", "mid", "low"]})
    connection = duckdb.connect()
    connection.register("texts", people.to_arrow())
    connection.execute("create type level as enum ('low', 'mid', 'high')")
    connection.execute("create table people as select y::level as y, p::level as p from texts")
    weighted = tf.metric_tweak(tf.kap, "weighted", weighting="linear")
    expected = weighted(people.cast(levels), "y", "p")[".estimate"].item()
    assert weighted((connection, "people"), "y", "p")[".estimate"].item() == expected


LEVELS = ["never", "low", "mid", "high"]
LEVELLED = pl.DataFrame({"y": ["high", "low", "mid", None, "low"], "p": ["high", "mid", "mid", "low", "low"]})


def _duckdb_enum(frame: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("texts", frame.cast(pl.String).to_arrow())
    connection.execute(f"create type level as enum ({', '.join(map(repr, LEVELS))})")
    connection.execute("create table people as select y::level as y, p::level as p from texts")
    return connection.table("people")


def _ordered(frame: pl.DataFrame, levels: list[Any] = LEVELS) -> pd.DataFrame:
    """Ordered categories of pandas."""
    columns = {name: pd.Categorical(frame[name].to_list(), categories=levels, ordered=True) for name in frame.columns}
    return pd.DataFrame(columns)


def _in_parts(frame: pd.DataFrame) -> pa.Table:
    """Ordered dictionaries of Arrow, of which the first part knows only its own levels."""
    own = frame[:2].apply(lambda column: column.cat.remove_unused_categories())
    parts = [pa.Table.from_pandas(part, preserve_index=False) for part in (own, frame[2:])]
    return pa.table({name: pa.chunked_array([part[name].chunk(0) for part in parts]) for name in frame.columns})


WITH_LEVELS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame.cast(pl.Enum(LEVELS)),
    "lazy": lambda frame: frame.cast(pl.Enum(LEVELS)).lazy(),
    "polars in pyarrow": lambda frame: frame.cast(pl.Enum(LEVELS)).to_arrow(),
    "polars in pandas": lambda frame: frame.cast(pl.Enum(LEVELS)).to_pandas(),
    "polars in pandas_pyarrow": lambda frame: frame.cast(pl.Enum(LEVELS)).to_pandas(use_pyarrow_extension_array=True),
    "pandas": _ordered,
    "pyarrow": lambda frame: pa.Table.from_pandas(_ordered(frame)),
    "pyarrow in parts": lambda frame: _in_parts(_ordered(frame)),
    "pandas_pyarrow": lambda frame: pa.Table.from_pandas(_ordered(frame)).to_pandas(types_mapper=pd.ArrowDtype),
    "dask": lambda frame: partitioned(_ordered(frame)),
    "duckdb": _duckdb_enum,
    "pandas in duckdb": lambda frame: duckdb.from_df(_ordered(frame)),
}
"""Engines that know the levels of a column, and those through which they come."""


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_unused_levels_count_on_every_engine_with_categories(name: str) -> None:
    data = WITH_LEVELS[name](LEVELLED)
    linear = tf.metric_tweak(tf.kap, "linear", weighting="linear")
    every = tf.metric_set(tf.sens, tf.spec, tf.prevalence, tf.accuracy, linear)
    expected = every(LEVELLED, "y", "p", labels=LEVELS, on_undefined="ignore")
    result = as_polars(every(data, "y", "p", on_undefined="ignore"))
    assert result.rows() == expected.rows()
    table = as_polars(tf.conf_mat(data, "y", "p"))
    assert table[".truth"].unique(maintain_order=True).to_list() == LEVELS
    declared = tf.selection_rate(data, estimate="p", pos_label="never")
    assert as_polars(declared)[".estimate"].item() == 0


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "pandas_pyarrow", "dask"])
@pytest.mark.parametrize("levels", [[4.0, 3.0, 1.0, 2.0], [4, 3, 1, 2], [0.5, 0.25, 1.5, 1.0]], ids=str)
def test_ordered_numeric_categories_keep_their_levels(kind: str, levels: list[float]) -> None:
    rates = pl.DataFrame(
        {"y": [levels[0], levels[2], levels[3], None], "p": [levels[0], levels[3], levels[3], levels[2]]}
    )
    frames: dict[str, Callable[[pd.DataFrame], Any]] = {
        "pandas": lambda frame: frame, "pyarrow": pa.Table.from_pandas,
        "pandas_pyarrow": lambda frame: pa.Table.from_pandas(frame).to_pandas(types_mapper=pd.ArrowDtype),
        "dask": partitioned,
    }  # fmt: skip
    data = frames[kind](_ordered(rates, levels))
    table = as_polars(tf.conf_mat(data, "y", "p"))
    assert table[".truth"].dtype.is_numeric()
    assert table[".truth"].unique(maintain_order=True).to_list() == levels
    linear = tf.metric_tweak(tf.kap, "linear", weighting="linear")
    every = tf.metric_set(tf.spec, tf.accuracy, linear)
    texts = rates.select(pl.all().replace_strict({item: f"level {item}" for item in levels}, return_dtype=pl.String))
    expected = every(texts, "y", "p", labels=[f"level {item}" for item in levels])
    assert as_polars(every(data, "y", "p"))[".estimate"].to_list() == expected[".estimate"].to_list()
    halves = [every.tally(frames[kind](_ordered(part, levels)), "y", "p") for part in (rates[:2], rates[2:])]
    assert every.compute(halves[0] + halves[1])[".estimate"].to_list() == expected[".estimate"].to_list()
    # of numbers they are the numbers
    known = rates.drop_nulls()
    assert as_polars(tf.mae(data, "y", "p"))[".estimate"].item() == (known["y"] - known["p"]).abs().mean()


def test_two_ordered_numeric_categories_are_binary() -> None:
    truth, estimate = [0.0, 1.0, 1.0, None], [1.0, 1.0, 0.0, 1.0]
    data = _ordered(pl.DataFrame({"y": truth, "p": estimate}), [0.0, 1.0])
    assert as_polars(tf.sens(data, "y", "p"))[".estimate"].item() == 0.5
    wider = _ordered(pl.DataFrame({"y": truth, "p": estimate}), [0.0, 1.0, 2.0])
    one, other = (tf.sens.tally(frame, "y", "p") for frame in (data, wider))
    with pytest.raises(
        tf.errors.ArgumentError, match=r"levels of the column 'y' are 0.0, 1.0 in one part and 0.0, 1.0, 2.0"
    ):
        _ = one + other
    assert tf.sens(partitioned(data), "y", "p")[".estimate"].item() == 0.5


def test_dictionary_levels_of_arrow_arrays_are_kept() -> None:
    truth = pa.array(["b", "b", "c"]).dictionary_encode()
    levels = pa.DictionaryArray.from_arrays(truth.indices, ["b", "c", "never"], ordered=True)
    result = tf.prevalence.arrays(levels, on_undefined="ignore")
    assert result.select(".estimator", ".estimate").row(0) == ("macro", pytest.approx(1 / 3))


def test_requests_that_engines_cannot_answer_raise() -> None:
    data = ELSEWHERE["duckdb"](LOANS.with_columns(minus=pl.lit(-1.0), endless=pl.lit(float("inf"))))
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("no column 'nowhere'", lambda: tf.accuracy(data, "repaid", "nowhere")),
        ("depend on the order of rows", lambda: tf.mase(data, "weight", "score")),
        ("may depend on other rows", lambda: tf.sens(data, "repaid", pl.col("approved").shift(1).alias("before"))),
        ("is String; regression metrics read numbers", lambda: tf.mae(data, "race", "score")),
        ("is String; weights must be numbers", lambda: tf.accuracy(data, "repaid", "approved", case_weights="race")),
        (
            "some values of 'minus' are negative",
            lambda: tf.sens(data, **LABELS, case_weights="minus"),
        ),
        (
            "holds infinite values",
            lambda: tf.mean_score(data, probs="endless"),
        ),
        ("A pair must be a connection", lambda: tf.accuracy((LOANS, "table"), "repaid", "approved")),
        (
            r"DuckDBPyConnection, which has many tables; select one with `\(con, \"table\"\)` or `con.table",
            lambda: tf.accuracy(duckdb.connect(), "repaid", "approved"),
        ),
    ]
    for expected, ask in cases:
        with pytest.raises(tf.errors.TidyfairError, match=expected):
            ask()


def _in_duckdb() -> tuple[Any, str]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 1 AS repaid, 1 AS approved")
    return connection, "DuckDB"


def _in_ibis() -> tuple[Any, str]:
    ibis = pytest.importorskip("ibis")
    connection = ibis.sqlite.connect()
    connection.raw_sql("CREATE TABLE people (repaid INT, approved INT)")
    return connection, "Ibis"


@pytest.mark.parametrize("connect", [_in_duckdb, _in_ibis])
def test_missing_tables_are_engine_errors_with_the_nearest_name(connect: Callable[[], tuple[Any, str]]) -> None:
    connection, engine = connect()
    with pytest.raises(tf.errors.EngineError) as caught:
        tf.accuracy((connection, "peopel"), "repaid", "approved")
    expected = "there is no table 'peopel'. Did you mean 'people'? Tables: 'people'."
    assert str(caught.value) == f"{engine} could not run the query: {expected}"
    assert caught.value.__cause__ is not None


def test_tables_of_a_closed_connection_are_engine_errors() -> None:
    connection = duckdb.connect()
    connection.close()
    with pytest.raises(tf.errors.EngineError, match="already been closed"):
        tf.accuracy((connection, "people"), "repaid", "approved")


def test_connections_of_sqlite_are_met_with_the_way_through_ibis() -> None:
    connection = sqlite3.connect(":memory:")
    for data in (connection, (connection, "people")):
        with pytest.raises(
            tf.errors.ArgumentError, match=r"`data` is a sqlite3.Connection; .*`\(ibis.sqlite.connect\("
        ):
            tf.accuracy(data, "repaid", "approved")
    pytest.importorskip("ibis")
    with pytest.raises(tf.errors.ArgumentError, match=r"`data` is an ibis.Backend, which has many tables"):
        tf.accuracy(_in_ibis()[0], "repaid", "approved")


def test_pandas_without_pyarrow_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_pyarrow(*_: object, **__: object) -> None:
        msg = "pyarrow is required for converting a pandas dataframe to Polars"
        raise ImportError(msg)

    monkeypatch.setattr(pl, "from_pandas", needs_pyarrow)
    with pytest.raises(tf.errors.ColumnError, match=r"need pyarrow: pip install 'tidyfair\[pandas\]'"):
        tf.accuracy(LOANS.to_pandas(), "repaid", "approved")


FOLD = pl.col("fold")
OTHER_ROWS: dict[str, pl.Expr] = {
    "shift": FOLD.shift(1) > 3, "rank": FOLD.rank() + 1 > 3, "mean": FOLD.mean() < FOLD, "running": FOLD.cum_sum() > 3,
    "over": FOLD.mean().over("race") > 3, "one of": FOLD.is_in(FOLD.mode().implode()), "length": pl.len() < FOLD,
    "Python": FOLD.map_elements(hash, return_dtype=pl.Int64),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_expressions_reading_other_rows_raise(name: str) -> None:
    with pytest.raises(tf.errors.ColumnError, match="may depend on other rows"):
        tf.accuracy(ELSEWHERE["duckdb"](LOANS), "repaid", "approved", group_by=OTHER_ROWS[name].alias("odd"))


def test_distant_groups_keep_numeric_precision() -> None:
    steps = pl.int_range(50)
    near = pl.select(y=steps.cast(pl.Float64), p=steps + steps % 3 / 2, w=pl.lit(1.0), g=pl.lit("near"))
    both = near.vstack(near.with_columns(pl.col("y", "p") + 1e9, g=pl.lit("far")))
    metrics, call = tf.metric_set(tf.ccc, tf.rsq, tf.rmse), dict[str, Any](truth="y", estimate="p")
    expected = metrics(both, **call, group_by="g")
    assert_frame_equal(metrics(ELSEWHERE["duckdb"](both), **call, group_by="g"), expected, rel_tol=1e-9)
    # what does not count says nothing of where the others are
    beside = pl.DataFrame({"y": [1e12, 1e12], "p": [None, 1.0], "w": [1.0, 0.0], "g": ["near"] * 2})
    odd = near.vstack(beside)
    result = metrics(ELSEWHERE["duckdb"](odd), **call, case_weights="w")
    assert_frame_equal(result, metrics(odd, **call, case_weights="w"), rel_tol=1e-9)


def test_unsupported_column_types_raise_only_when_used() -> None:
    connection = duckdb.connect()
    query = "select 1 as y, 1 as e, timestamp_s '2020-01-01' as z, interval 1 day as k, '101'::bit as b from range(9)"
    data = connection.sql(query)
    assert tf.accuracy(data, "y", "e")[".estimate"].item() == 1
    for name in ("k", "b"):
        with pytest.raises(tf.errors.ColumnError, match="one plain value per row"):
            tf.accuracy(data, "y", "e", group_by=name)
    tenths = connection.sql("select (0.5 + i % 2)::decimal(5, 1) as y, 1 as e from range(9) t(i)")
    with pytest.raises(tf.errors.ColumnError, match="fractional numbers"):
        tf.accuracy(tenths, "y", "e")


def test_large_weights_and_frequencies() -> None:
    connection = duckdb.connect()
    some = "case when i < 4 then 4611686018427387904 else 1 end"
    many = connection.sql(f"select {some} as f, i < 4 as y, true as e from range(9) t(i)")  # noqa: S608 - our own
    with pytest.raises(tf.errors.WeightError, match="'f' add up to more than"):
        tf.accuracy(many, "y", "e", frequency_weights="f")
    with pytest.raises(tf.errors.WeightError, match="'y' are not all whole"):
        tf.accuracy(many, "y", "e", frequency_weights="y")
    for kind in ("bigint", "ubigint"):
        heavy = connection.sql(f"select 1 as y, 1 as e, 4611686018427387904::{kind} as w from range(3)")  # noqa: S608 - our own
        assert tf.accuracy(heavy, "y", "e", case_weights="w")[".estimate"].item() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of DuckDB, by Ibis
def test_narwhals_columns_are_computed_in_the_engine(there: Any) -> None:
    opened = nw.from_native(there[0].table(there[1]) if isinstance(there, tuple) else there)
    made = opened.with_columns(heavy=nw.col("weight") > 1)
    heavy = (pl.col("weight") > 1).alias("heavy")
    metric = tf.demographic_parity("heavy")
    assert metric(made, **LABELS).equals(metric(LOANS.with_columns(heavy), **LABELS))
    with pytest.raises(tf.errors.ColumnError, match=r"`nw\.from_native\(data\)\.with_columns\(…\)` as the data"):
        tf.demographic_parity(nw.col("heavy"))  # pyright: ignore[reportArgumentType] - bad input


def test_dask_nan_labels_are_missing() -> None:
    people = pd.DataFrame({"y": [1.0, None, 0.0, 1.0] * 5, "e": [1, 0, 0, 1] * 5})
    assert tf.accuracy(partitioned(people, 3), "y", "e")[".estimate"].item() == 1


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, to Dask
def test_dask_reads_enum_levels_in_files_as_text(tmp_path: Path) -> None:
    people = pl.DataFrame({"y": ["high", "low", "mid", "low"], "p": ["high", "mid", None, "low"], "g": list("abab")})
    levels = people.with_columns(pl.col("y", "p").cast(pl.Enum(["low", "mid", "high", "never"])))
    for index, part in enumerate((levels[:1], levels[1:])):
        part.write_parquet(tmp_path / f"{index}.parquet")
    skip_without_pandas_3()
    data = dask.dataframe.read_parquet(tmp_path)
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("p"), tf.demographic_parity("g"))
    result, expected = (metrics(item, "y", "p", on_undefined="ignore") for item in (data, people))
    assert_frame_equal(result, expected)
    assert tf.accuracy(data, "y", "y", group_by="p").rows() == tf.accuracy(people, "y", "y", group_by="p").rows()


def test_dask_nan_quotients_make_the_metric_null() -> None:
    zeros = pd.DataFrame({"y": [0.0, 1.0, None] * 4, "e": [0.0, 1.0, 1.0] * 4})
    data = partitioned(zeros, 3)
    result = tf.metric_set(tf.mape, tf.mae)(data, "y", "e", on_undefined="ignore")
    assert result[".estimate"].to_list() == [None, 0.0]


# Failing engines and files


def _changed_below(change: str) -> Any:
    """A view of a table that changes after it has been opened."""
    connection = duckdb.connect()
    connection.register("arrow", LOANS.to_arrow())
    connection.execute("create table people as select * from arrow")
    connection.execute("create view loans as select * from people")
    opened = connection.table("loans")
    connection.execute(change)
    return opened


def _dropped_table(_: Path) -> Any:
    return _changed_below("drop table people")


def _error_in_a_view(_: Path) -> Any:
    connection = duckdb.connect()
    connection.register("people", LOANS.to_arrow())
    connection.execute("create view broken as select * replace (error('no such lake') as repaid) from people")
    return connection.table("broken")


def _job_that_fails(_: Path) -> Any:
    people = ELSEWHERE["spark"](LOANS)
    return people.selectExpr("cast(raise_error('no such lake') as string) as repaid", "approved")


def _half_a_file(folder: Path) -> Any:
    LOANS.write_parquet(folder / "loans.parquet")
    whole = (folder / "loans.parquet").read_bytes()
    (folder / "loans.parquet").write_bytes(whole[: len(whole) // 2])
    return pl.scan_parquet(folder / "loans.parquet")


def _file_without_a_column(folder: Path) -> Any:
    LOANS.write_parquet(folder / "1.parquet")
    LOANS.drop("approved").write_parquet(folder / "2.parquet")
    return pl.scan_parquet(folder / "*.parquet")


FAILURES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "dropped table": (_dropped_table, "duckdb", "people does not exist"),
    "error in a view": (_error_in_a_view, "duckdb", "no such lake"),
    "job that fails": (_job_that_fails, "pyspark", "no such lake"),
    "half a file": (_half_a_file, "polars", "parquet"),
    "file without a column": (_file_without_a_column, "polars", "approved"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_engine_errors_name_the_engine_and_the_metric(name: str, tmp_path: Path) -> None:
    opened, engine, expected = FAILURES[name]
    if engine == "pyspark":
        spark()
    data = opened(tmp_path)
    for ask in (tf.accuracy, tf.accuracy.tally, tf.demographic_parity("approved").by_group):
        with pytest.raises(Exception, match=expected) as caught:
            ask(data, "repaid", "approved")
        if engine == "polars":
            assert type(caught.value).__module__ == "polars.exceptions"
            assert caught.value.__notes__ == ["while tidyfair counted the rows"]
            continue
        assert isinstance(caught.value, tf.errors.EngineError)
        assert type(caught.value.__cause__).__module__.split(".")[0].strip("_") == engine
        assert re.match(
            r"(DuckDB|Spark) could not run the query for (accuracy|demographic_parity): ", str(caught.value)
        )


def test_dropped_column_is_named() -> None:
    opened = _changed_below("alter table people drop column approved")
    with pytest.raises(tf.errors.ColumnError, match="no column 'approved'"):
        tf.accuracy(opened, "repaid", "approved")


def test_errors_of_functions_reading_rows_carry_a_note(tmp_path: Path) -> None:
    for ask in (
        lambda data: tf.inference.lump_rare(data, "race", 3),
        lambda data: tf.inference.missing_truth(data, "repaid", "approved", positive="yes"),
        lambda data: tf.inference.resamples([("one", data)]),
    ):
        with pytest.raises(pl.exceptions.PolarsError) as caught:
            ask(_half_a_file(tmp_path))
        assert caught.value.__notes__ == ["while tidyfair read the rows"]


def test_spark_plan_is_one_aggregation_whose_cells_travel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = spark().range(30_000)
    data = rows.selectExpr(
        "cast(id % 3 = 0 as int) as truth", "cast(id % 5 < 2 as int) as estimate",
        "case when id % 7 < 4 then 'a' else 'b' end as race",
    )  # fmt: skip
    kind = type(data)
    travelled: list[tuple[Any, int]] = []
    to_arrow = kind.toArrow

    def spied(frame: Any) -> Any:
        table = to_arrow(frame)
        travelled.append((frame, table.num_rows))
        return table

    def refused(*_: object, **__: object) -> None:
        pytest.fail("rows are collected")

    monkeypatch.setattr(kind, "toArrow", spied)
    for name in ("collect", "toPandas", "toLocalIterator"):
        monkeypatch.setattr(kind, name, refused)
    metrics = tf.metric_set(tf.accuracy, tf.kap, tf.equalized_odds("race"), tf.demographic_parity("race"))
    result = metrics(data, "truth", "estimate", interval="auto")
    assert result[".estimate"][0] == pytest.approx(8 / 15)
    ((frame, cells),) = travelled
    # two races, two labels, two predictions
    assert cells == 8
    capsys.readouterr()
    frame.explain()
    plan = capsys.readouterr().out.partition("Initial Plan")[0]
    # of the rows of each partition, and of their counts
    assert plan.count("HashAggregate") == 2
    assert "Range (0, 30000" in plan
    for word in ("Python", "Sort", "Join", "Window"):
        assert word not in plan


def test_spark_runs_the_jobs_of_an_aggregation_by_hand_and_those_of_a_sample_for_several_features() -> None:
    rows = spark().range(30_000)
    data = rows.selectExpr("cast(id % 3 = 0 as int) as y", "cast(id % 5 < 2 as int) as p", "id % 2 as g", "id % 4 as h")
    context = spark().sparkContext

    def jobs(name: str, ask: Callable[[], object]) -> int:
        context.setJobGroup(name, name)
        ask()
        return len(context.statusTracker().getJobIdsForGroup(name))

    by_hand = jobs("by hand", data.groupBy("y", "p", "g").count().toArrow)
    one, other = tf.demographic_parity("g"), tf.demographic_parity("h")
    # those of a shuffle and of its result, where queries adapt
    assert by_hand == 2
    assert jobs("one feature", lambda: tf.metric_set(tf.accuracy, one)(data, "y", "p")) == by_hand
    assert jobs("several features", lambda: tf.metric_set(one, other)(data, "y", "p")) == 2 * by_hand
    context.setJobGroup("", "")


# Files


def test_hive_partitions_may_be_outer_groups(tmp_path: Path) -> None:
    LOANS.lazy().sink_parquet(pl.PartitionBy(tmp_path, key=["fold", "race"], include_key=False))
    lake = pl.scan_parquet(tmp_path, hive_partitioning=True)
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("race"))
    call: dict[str, Any] = {**LABELS, "group_by": "fold"}
    assert_frame_equal(metrics(lake, **call), metrics(LOANS, **call), check_dtypes=False)
    folders = f"{tmp_path}/**/*.parquet"
    database = duckdb.connect().read_parquet(folders, hive_partitioning=True)
    assert_frame_equal(metrics(database, **call), metrics(LOANS, **call), check_dtypes=False)


def test_unneeded_parquet_columns_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "loans.parquet"
    LOANS.with_columns(diary=ROW.cast(pl.String)).write_parquet(path, compression="zstd", statistics=False)
    pages = parquet.ParquetFile(path).metadata.row_group(0)
    chunk = next(
        pages.column(item) for item in range(pages.num_columns) if pages.column(item).path_in_schema == "diary"
    )
    written = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    written[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(written)
    with pytest.raises(pl.exceptions.PolarsError):
        pl.scan_parquet(path).select("diary").collect()
    for data in (pl.scan_parquet(path), duckdb.connect().read_parquet(str(path))):
        for name in ("labels", "scores", "numbers", "order of scores"):
            metric, call = CASES[name]
            result = metric(data, **call, on_undefined="ignore")
            assert_frame_equal(result, metric(LOANS, **call, on_undefined="ignore"), rel_tol=1e-9)


def test_duckdb_counts_parquet_files(tmp_path: Path) -> None:
    LOANS.write_parquet(tmp_path / "loans.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lake = duckdb.connect().read_parquet(str(tmp_path / "*.parquet"))
        assert_frame_equal(FAIR(lake, **LABELS), FAIR(LOANS, **LABELS))
