"""Rows that are in a database or a cluster: one query counts them, and the answer is that of polars."""

from __future__ import annotations

import datetime as dt
import importlib.util
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
import tidyfair.pushdown as pushdown_of
from tidyfair.datasets import lending

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _duckdb(frame: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("arrow", frame.to_arrow())
    connection.execute("create table people as select * from arrow")
    return connection.table("people")


def _named_table(frame: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("people", frame.to_arrow())
    return (connection, "people")


def _ibis(frame: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("people", frame.to_arrow())
    return ibis.duckdb.from_connection(connection).table("people")


def _dask(frame: pl.DataFrame) -> Any:
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(frame.to_pandas(), npartitions=3)


def _spark(frame: pl.DataFrame) -> Any:
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark needs pyspark and Java")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - where it is installed

    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    return session.createDataFrame(frame.to_arrow()).repartition(4)


ENGINES = {"duckdb": _duckdb, "table": _named_table, "ibis": _ibis, "dask": _dask, "spark": _spark}
_OPENED: dict[str, Any] = {}


@pytest.fixture(params=list(ENGINES))
def there(request: pytest.FixtureRequest) -> Any:
    """The loans in an engine of their own, opened once."""
    if request.param not in _OPENED:
        _OPENED[request.param] = ENGINES[request.param](LOANS)
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
    "numbers": (tf.metric_set(tf.mae, tf.rmse, tf.rsq, tf.mae_difference("race")), NUMBERS),
    "functions of polars": (tf.metric_set(tf.pinball_loss, tf.huber_loss), NUMBERS),
    "medians": (tf.median_absolute_error, NUMBERS),
    "intervals": (FAIR, {**LABELS, "interval": "auto", "times": 50}),
    "intervals of numbers": (tf.mae, {**NUMBERS, "interval": "auto", "times": 50}),
    "clusters": (tf.sens, {**LABELS, "interval": "auto", "times": 50, "cluster": "fold"}),
    "odd names": (tf.mean_score, {**SCORES, "probs": ODD}),
    "expressions": (tf.sens, {**LABELS, "estimate": ABOVE}),
    "two sides": (tf.demographic_parity(tf.privileged(race="White")), LABELS),
    "outer sides": (tf.accuracy, {**LABELS, "group_by": tf.privileged(race="White")}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_every_engine_answers_as_polars_does(there: Any, name: str) -> None:
    metric, call = CASES[name]
    for ask in (metric, metric.by_group):
        options = {**call, "explain": True} if ask is metric else call
        expected, found = ask(LOANS, **options), ask(there, **options)
        assert isinstance(found, pl.DataFrame)
        # keys of another engine may be wider numbers
        keys = [key for key in found.columns if not key.startswith(".")]
        found = found.with_columns(pl.col(key).cast(expected.schema[key]) for key in keys)
        assert_frame_equal(found, expected, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_tests_gates_and_two_models_are_answered_too(there: Any) -> None:
    models = {"truth": "repaid", "one": "approved", "other": ABOVE, "pos_label": "yes", "times": 20}
    asked: list[tuple[Any, dict[str, Any]]] = [
        (tf.disparity_test(tf.demographic_parity("race"), times=50), LABELS),
        (tf.check(tf.demographic_parity("race"), below=0.1), LABELS),
        (tf.compare_models(tf.sens), models),
    ]
    for ask, call in asked:
        assert_frame_equal(ask(there, **call), ask(LOANS, **call), rel_tol=1e-9, abs_tol=1e-12)


# One query, and only cells travel


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The SQL of each query that is sent, and how many rows came back."""
    sent: list[tuple[str, int]] = []
    collect: Callable[[Any], pl.DataFrame] = pushdown_of.collected

    def recorded(frame: Any) -> pl.DataFrame:
        found = collect(frame)
        sent.append((frame.to_native().sql_query(), len(found)))
        return found

    monkeypatch.setattr(pushdown_of, "collected", recorded)
    return sent


PUSHED = ["labels", "outer groups", "weights", "a threshold", "thresholds", "scores", "weighted scores"]


@pytest.mark.parametrize("name", PUSHED)
@pytest.mark.filterwarnings("ignore::tidyfair.UndefinedWarning")
def test_one_aggregation_is_sent_and_cells_come_back(name: str, queries: list[tuple[str, int]]) -> None:
    metric, call = CASES[name]
    metric(_duckdb(LOANS), **call)
    ((sql, rows),) = queries
    keys = {"race", "sex", "age_band", *call.get("group_by", ())} if metric is FAIR else set[str]()
    known = LOANS.select(*keys, "repaid").unique().height
    assert "GROUP BY" in sql
    assert rows <= 4 * known
    read = {*keys, "repaid", *(call[role] for role in ("estimate", "probs", "case_weights") if role in call)}
    for column in LOANS.columns:
        assert (f'"{column}"' in sql.replace(ODD, "")) == (column in read), column


@pytest.mark.parametrize("weights", [{}, {"case_weights": "big"}])
def test_bins_of_scores_are_counted_where_the_scores_are(
    weights: dict[str, Any], queries: list[tuple[str, int]]
) -> None:
    tf.roc_auc(_duckdb(LOANS), **SCORES, **weights, score_bins=4)
    (_, cells), (sql, rows) = queries
    # truths, with none, by whether there is a score; and by the four bins
    assert (cells, rows) == (3 * 2, 3 * 4)
    assert "GROUP BY" in sql


@pytest.mark.filterwarnings("ignore::tidyfair.UndefinedWarning")
def test_numbers_take_one_more_query_for_where_they_are(queries: list[tuple[str, int]]) -> None:
    metric, call = CASES["numbers"]
    metric(_duckdb(LOANS), **call)
    assert [rows for _, rows in queries] == [1, LOANS.select("race", pl.col("score").is_null()).unique().height]


def test_orders_of_scores_travel_as_distinct_rows(queries: list[tuple[str, int]]) -> None:
    rounded = LOANS.with_columns(pl.col("score").round(1))
    tf.roc_auc(_duckdb(rounded), **SCORES)
    ((sql, rows),) = queries
    assert "count" in sql
    assert rows == rounded.select("repaid", "score").unique().height < 50


def test_labels_that_are_no_labels_are_refused_before_they_are_counted(queries: list[tuple[str, int]]) -> None:
    with pytest.raises(tf.ColumnError, match="'score' holds numbers that are not whole"):
        tf.accuracy(_duckdb(LOANS), "repaid", "score")
    assert [rows for _, rows in queries] == [1]


# What bites in engines

TRAPS: dict[str, pl.Series] = {
    "null": pl.Series(["a", None, "b", None] * 6),
    "nan": pl.Series([1.0, float("nan"), 2.0, None] * 6),
    "truth values": pl.Series([True, False, None, True] * 6),
    "small numbers": pl.Series([1, 2, 3, 4] * 6, dtype=pl.Int8),
    "large numbers": pl.Series([2**62, 1, 2**62, 5] * 6),
    "dates": pl.Series([dt.date(2026, 1, day) for day in (1, 2, 3, 4)] * 6),
    "levels": pl.Series(["low", "high", "low", None] * 6, dtype=pl.Enum(["low", "mid", "high"])),
    "decimals": pl.Series(["1.50", "2.50", "1.50", "0.10"] * 6).str.to_decimal(scale=2),
    "quotes": pl.Series(["it's", 'a "b"', "x;drop", ""] * 6),
}


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of DuckDB, by Ibis
def test_keys_of_all_kinds_are_groups(engine: str, name: str) -> None:
    people = pl.DataFrame({"key": TRAPS[name], "y": [1, 0, 1, 1, 0, 0] * 4, "p": [1, 1, 0, 1, 0, 1, 0, 0] * 3})
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("key"))
    data = ENGINES[engine](people)
    expected, found = (tf.demographic_parity("key").by_group(each, "y", "p") for each in (people, data))
    about = [".estimate", ".n"]
    assert_frame_equal(found.select(about), expected.select(about), check_row_order=False)
    assert metrics(data, "y", "p")[".estimate"].to_list() == metrics(people, "y", "p")[".estimate"].to_list()
    grouped, wanted = (tf.accuracy(each, "y", "p", group_by="key") for each in (data, people))
    assert_frame_equal(grouped.select(".estimate"), wanted.select(".estimate"), check_row_order=name != "levels")


@pytest.mark.parametrize("engine", ["duckdb", "ibis", "dask"])
@pytest.mark.filterwarnings("ignore")
def test_nobody_there(engine: str) -> None:
    empty = LOANS.clear()
    found = FAIR(ENGINES[engine](empty), **LABELS, labels=["no", "yes"])
    expected = FAIR(empty, **LABELS, labels=["no", "yes"])
    assert_frame_equal(found, expected)


def test_levels_keep_their_order() -> None:
    levels = pl.Enum(["low", "mid", "high"])
    people = pl.DataFrame({"y": ["high", "low", "mid", "low"], "p": ["high", "mid", "mid", "low"]})
    connection = duckdb.connect()
    connection.register("texts", people.to_arrow())
    connection.execute("create type level as enum ('low', 'mid', 'high')")
    connection.execute("create table people as select y::level as y, p::level as p from texts")
    weighted = tf.metric_tweak(tf.kap, "weighted", weighting="linear")
    expected = weighted(people.cast(levels), "y", "p")[".estimate"].item()
    assert weighted((connection, "people"), "y", "p")[".estimate"].item() == expected


def test_what_cannot_be_asked_of_rows_elsewhere() -> None:
    data = _duckdb(LOANS.with_columns(minus=pl.lit(-1.0), endless=pl.lit(float("inf"))))
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("no column 'nowhere'", lambda: tf.accuracy(data, "repaid", "nowhere")),
        ("reads rows in their order", lambda: tf.mase(data, "weight", "score")),
        ("may read other rows too", lambda: tf.sens(data, "repaid", pl.col("approved").shift(1).alias("before"))),
        ("is String; regression metrics read numbers", lambda: tf.mae(data, "race", "score")),
        ("is String; weights are numbers", lambda: tf.accuracy(data, "repaid", "approved", case_weights="race")),
        (
            "some values of 'minus' are negative",
            lambda: tf.sens(data, **LABELS, case_weights="minus"),
        ),
        (
            "holds infinite values",
            lambda: tf.mean_score(data, probs="endless"),
        ),
        ("A pair is a connection", lambda: tf.accuracy((LOANS, "table"), "repaid", "approved")),
    ]
    for said, ask in cases:
        with pytest.raises(tf.TidyfairError, match=said):
            ask()


FOLD = pl.col("fold")
OTHER_ROWS: dict[str, pl.Expr] = {
    "shift": FOLD.shift(1) > 3, "rank": FOLD.rank() + 1 > 3, "mean": FOLD.mean() < FOLD, "running": FOLD.cum_sum() > 3,
    "over": FOLD.mean().over("race") > 3, "one of": FOLD.is_in(FOLD.mode().implode()), "length": pl.len() < FOLD,
    "Python": FOLD.map_elements(hash, return_dtype=pl.Int64),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_what_reads_other_rows_is_refused_wherever_it_stands(name: str) -> None:
    with pytest.raises(tf.ColumnError, match="may read other rows too"):
        tf.accuracy(_duckdb(LOANS), "repaid", "approved", group_by=OTHER_ROWS[name].alias("odd"))


def test_numbers_far_apart_lose_no_digits() -> None:
    steps = pl.int_range(50)
    near = pl.select(y=steps.cast(pl.Float64), p=steps + steps % 3 / 2, w=pl.lit(1.0), g=pl.lit("near"))
    both = near.vstack(near.with_columns(pl.col("y", "p") + 1e9, g=pl.lit("far")))
    metrics, call = tf.metric_set(tf.ccc, tf.rsq, tf.rmse), dict[str, Any](truth="y", estimate="p")
    expected = metrics(both, **call, group_by="g")
    assert_frame_equal(metrics(_duckdb(both), **call, group_by="g"), expected, rel_tol=1e-9)
    # what does not count says nothing of where the others are
    beside = pl.DataFrame({"y": [1e12, 1e12], "p": [None, 1.0], "w": [1.0, 0.0], "g": ["near"] * 2})
    odd = near.vstack(beside)
    found = metrics(_duckdb(odd), **call, case_weights="w")
    assert_frame_equal(found, metrics(odd, **call, case_weights="w"), rel_tol=1e-9)


def test_odd_columns_beside_are_not_read_and_odd_types_are_refused() -> None:
    connection = duckdb.connect()
    query = "select 1 as y, 1 as e, timestamp_s '2020-01-01' as z, interval 1 day as k, '101'::bit as b from range(9)"
    data = connection.sql(query)
    assert tf.accuracy(data, "y", "e")[".estimate"].item() == 1
    for name in ("k", "b"):
        with pytest.raises(tf.ColumnError, match="one plain value a row"):
            tf.accuracy(data, "y", "e", group_by=name)
    tenths = connection.sql("select (0.5 + i % 2)::decimal(5, 1) as y, 1 as e from range(9) t(i)")
    with pytest.raises(tf.ColumnError, match="not whole"):
        tf.accuracy(tenths, "y", "e")


def test_large_weights_and_frequencies() -> None:
    connection = duckdb.connect()
    some = "case when i < 4 then 4611686018427387904 else 1 end"
    many = connection.sql(f"select {some} as f, i < 4 as y, true as e from range(9) t(i)")  # noqa: S608 - our own
    with pytest.raises(tf.WeightError, match="'f' add up to more than"):
        tf.accuracy(many, "y", "e", frequency_weights="f")
    with pytest.raises(tf.WeightError, match="'y' are not all whole"):
        tf.accuracy(many, "y", "e", frequency_weights="y")
    for kind in ("bigint", "ubigint"):
        heavy = connection.sql(f"select 1 as y, 1 as e, 4611686018427387904::{kind} as w from range(3)")  # noqa: S608 - our own
        assert tf.accuracy(heavy, "y", "e", case_weights="w")[".estimate"].item() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of DuckDB, by Ibis
def test_narwhals_makes_columns_where_the_rows_are(there: Any) -> None:
    opened = nw.from_native(there[0].table(there[1]) if isinstance(there, tuple) else there)
    made = opened.with_columns(heavy=nw.col("weight") > 1)
    heavy = (pl.col("weight") > 1).alias("heavy")
    metric = tf.demographic_parity("heavy")
    assert metric(made, **LABELS).equals(metric(LOANS.with_columns(heavy), **LABELS))
    with pytest.raises(tf.ColumnError, match=r"`nw\.from_native\(data\)\.with_columns\(…\)` can be given"):
        tf.demographic_parity(nw.col("heavy"))  # pyright: ignore[reportArgumentType]


def test_names_with_dots_and_spaces() -> None:
    people = pl.DataFrame(
        {"y": [1, 0] * 8, "s": [0.1, 0.2, 0.3, 0.4] * 4, "a.b": list("aabb") * 4, "g ": list("abab") * 4}
    )
    for name in ("a.b", "g "):
        call: dict[str, Any] = {"truth": "y", "probs": "s", "group_by": name, "on_undefined": "ignore"}
        assert tf.roc_auc(_duckdb(people), **call).equals(tf.roc_auc(people, **call))


def test_missing_labels_of_pandas_are_missing_in_dask() -> None:
    people = pl.DataFrame({"y": [1.0, None, 0.0, 1.0] * 5, "e": [1, 0, 0, 1] * 5})
    assert tf.accuracy(_dask(people), "y", "e")[".estimate"].item() == 1


def test_an_engine_that_fails_says_what_it_was_doing() -> None:
    connection = duckdb.connect()
    connection.register("people", LOANS.to_arrow())
    connection.execute("create view broken as select *, error('no such lake') as y from people")
    with pytest.raises(duckdb.Error, match="no such lake") as caught:
        tf.accuracy(connection.table("broken"), "y", "approved")
    assert "while tidyfair counted the rows" in "".join(caught.value.__notes__)


def test_parquet_is_counted_by_the_database_too(tmp_path: Any) -> None:
    LOANS.write_parquet(tmp_path / "loans.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lake = duckdb.connect().read_parquet(str(tmp_path / "*.parquet"))
        assert_frame_equal(FAIR(lake, **LABELS), FAIR(LOANS, **LABELS))
