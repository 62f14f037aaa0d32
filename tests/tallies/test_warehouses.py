"""Databases through Ibis: the SQL that is sent, what comes back, and the same groups and numbers as in polars."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import narwhals.stable.v2 as nw
import polars as pl
import pytest
import sqlglot
from conftest import EAGER, ELSEWHERE, WAREHOUSES, as_polars, check_every
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.tallies import counting, source

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.filterwarnings("ignore::tidyfair.errors.UndefinedWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),  # of pandas, to Ibis
]

TEXTS = ("repaid", "approved", "sex", "race")
LOANS = lending(600).select(pl.col(TEXTS).cast(pl.String), "score", "weight", yes=pl.col("approved") == "yes")
LABELS: dict[str, Any] = {"truth": "repaid", "estimate": "approved", "pos_label": "yes"}
SCORES: dict[str, Any] = {"truth": "repaid", "probs": "score", "pos_label": "yes"}
NUMBERS: dict[str, Any] = {"truth": "weight", "estimate": "score"}
DATABASES = {name: ELSEWHERE[name] for name in ("duckdb", "ibis", "dask")} | WAREHOUSES


@pytest.fixture(params=["duckdb", *WAREHOUSES])
def database(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    """Puts a frame into a database."""
    return DATABASES[request.param]


# The SQL


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[ibis.Table]:
    """The queries that Ibis runs."""
    asked: list[ibis.Table] = []
    run: Callable[[Any], pl.DataFrame] = ibis.Table.to_polars

    def recorded(table: Any) -> pl.DataFrame:
        asked.append(table)
        return run(table)

    monkeypatch.setattr(ibis.Table, "to_polars", recorded)
    return asked


def sql(table: ibis.Table, dialect: str) -> str:
    """A query in the language of a database, on one line."""
    return " ".join(ibis.to_sql(table, dialect=dialect).split())


DIALECTS = ("bigquery", "databricks", "datafusion", "duckdb", "postgres", "snowflake", "sqlite", "trino")
COUNTS = (
    'SELECT * FROM ( SELECT "t1"."k0", "t1"."truth", "t1"."estimate", COUNT(*) AS "a0" FROM ( SELECT "t0"."race" AS '
    '"k0", "t0"."repaid" AS "truth", "t0"."approved" AS "estimate" FROM "people" AS "t0" ) AS "t1" GROUP BY 1, 2, 3 ) '
    'AS "t2"'
)
COUNTS_OF_DATAFUSION = (
    'SELECT * FROM ( SELECT "t1"."k0", "t1"."truth", "t1"."estimate", COUNT(*) AS "a0" FROM ( SELECT "t1"."k0", '
    '"t1"."truth", "t1"."estimate" FROM ( SELECT "t0"."race" AS "k0", "t0"."repaid" AS "truth", "t0"."approved" AS '
    '"estimate" FROM "people" AS "t0" ) AS "t1" ) AS t1 GROUP BY "t1"."k0", "t1"."truth", "t1"."estimate" ) AS "t2"'
)


def test_labels_are_counted_by_one_group_by_in_every_dialect(tables: list[ibis.Table]) -> None:
    tf.demographic_parity("race")(ELSEWHERE["ibis"](LOANS), **LABELS)
    (query,) = tables
    expected = dict.fromkeys(DIALECTS, COUNTS) | {"datafusion": COUNTS_OF_DATAFUSION}
    for dialect in ("bigquery", "databricks"):
        expected[dialect] = COUNTS.replace('"', "`")
    assert {dialect: sql(query, dialect) for dialect in DIALECTS} == expected


QUERIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "weights": (tf.accuracy, {**LABELS, "case_weights": "weight"}),
    "truth values as weights": (tf.accuracy, {**LABELS, "case_weights": "yes"}),
    "thresholds": (tf.sens, {**SCORES, "threshold": [0.3, 0.6]}),
    "scores": (tf.metric_set(tf.brier_class, tf.mn_log_loss), {**SCORES, "case_weights": "weight"}),
    "bins": (tf.auc_parity("race"), {**SCORES, "score_bins": 8}),
    "rows": (tf.roc_auc, SCORES),
    "numbers": (tf.metric_set(tf.rsq, tf.mae.difference("race")), NUMBERS),
    "several features": (tf.metric_set(tf.demographic_parity("race"), tf.demographic_parity("sex")), LABELS),
}


def test_every_kind_of_query_compiles_for_every_database(tables: list[ibis.Table]) -> None:
    loans = ELSEWHERE["ibis"](LOANS)
    for metric, call in QUERIES.values():
        metric(loans, **call)
    assert len(tables) == len(QUERIES) + 3  # bins count cells too, numbers have a centre, features a sample
    for query in tables:
        for dialect in DIALECTS:
            text = sql(query, dialect)
            assert text.count("GROUP BY") <= 1
            # BigQuery takes no other names of columns
            assert all(re.fullmatch(r"\w+", name) for name in re.findall(r'AS ["`](.*?)["`]', text)), text


def _depth(node: Any) -> int:
    """The number of levels of an expression."""
    return 1 + max(map(_depth, node.iter_expressions()), default=0)


def test_lists_of_columns_and_thresholds_do_not_make_deep_queries(tables: list[ibis.Table]) -> None:
    """Spark Connect takes 100 levels, of which one of SQL may be several."""
    count = 40
    shares = {f"p{index}": [(index + 1) / (count * (count + 1) / 2)] * count for index in range(count)}
    people = ELSEWHERE["ibis"](pl.DataFrame({"y": range(count), "one": [0, 1] * (count // 2), "s": 0.5, **shares}))
    design = tf.surveys.replicate_weights(weights="s", replicates=list(shares), method="brr")
    tf.sens(people, "one", probs="s", threshold=[index / count for index in range(count)])
    tf.ranked_prob_score(people, "y", probs=list(shares))
    tf.accuracy(people, "one", "one", design=design)
    assert [_depth(sqlglot.parse_one(sql(query, "duckdb"))) < 40 for query in tables] == [True] * 3


@pytest.mark.parametrize("name", ["duckdb", "ibis"])
def test_hundreds_of_thresholds_are_one_query(name: str) -> None:
    thresholds = [index / 300 for index in range(300)]
    every = [tf.sens(data, **SCORES, threshold=thresholds) for data in (DATABASES[name](LOANS), LOANS)]
    assert_frame_equal(*every)


def test_logarithms_are_those_of_floats(tables: list[ibis.Table]) -> None:
    tf.mn_log_loss(ELSEWHERE["ibis"](LOANS), **SCORES)
    text = sql(tables[-1], "postgres")
    assert "LN(" in text
    assert "LOG(" not in text
    assert "DECIMAL" not in text


def test_features_are_tried_on_a_sample_without_transferring_it(tables: list[ibis.Table]) -> None:
    metric, call = QUERIES["several features"]
    metric(ELSEWHERE["ibis"](LOANS), **call)
    assert [query.count().execute() for query in tables] == [1, LOANS.select(TEXTS).unique().height]


# The same numbers


def test_truth_values_are_weights(database: Callable[[pl.DataFrame], Any]) -> None:
    metric, call = QUERIES["truth values as weights"]
    assert_frame_equal(metric(database(LOANS), **call), metric(LOANS, **call))


def test_nan_of_either_sign_is_missing(database: Callable[[pl.DataFrame], Any]) -> None:
    row = pl.int_range(pl.len())
    nan = pl.when(row % 2 == 0).then(math.nan).otherwise(-pl.lit(math.nan))
    spoilt = LOANS.with_columns(
        score=pl.when(row % 5 > 0).then("score").otherwise(nan),
        repaid=pl.when(row % 7 > 0).then((pl.col("repaid") == "yes").cast(pl.Float64)).otherwise(nan),
    )
    labels = tf.metric_set(tf.accuracy, tf.brier_class, tf.mean_score)
    cases: list[tuple[Any, dict[str, Any]]] = [
        (labels, {"truth": "repaid", "probs": "score", "threshold": 0.5}),
        (tf.roc_auc, {"truth": "repaid", "probs": "score", "score_bins": 16}),
        (tf.metric_set(tf.mae, tf.rsq), NUMBERS),
    ]
    data = database(spoilt)
    for metric, call in cases:
        assert_frame_equal(metric(data, **call), metric(spoilt, **call), rel_tol=1e-12)


def test_infinite_numbers_raise(database: Callable[[pl.DataFrame], Any]) -> None:
    endless = LOANS.with_columns(score=pl.when(pl.int_range(pl.len()) > 0).then("score").otherwise(-math.inf))
    with pytest.raises(tf.errors.ColumnError, match="'score' holds infinite values"):
        tf.mae(database(endless), **NUMBERS)


def test_decimals_of_unlimited_precision_are_numbers_and_labels() -> None:
    people = LOANS.with_columns(score=pl.col("score") / 7, yes=pl.col("yes").cast(pl.Int64))
    table = WAREHOUSES["postgres"](people)
    data = table.mutate(score=table.score.cast("decimal"), yes=table.yes.cast("decimal"))
    cases: list[tuple[Any, dict[str, Any]]] = [
        (tf.roc_auc, SCORES),
        (tf.metric_set(tf.brier_class, tf.mean_score), SCORES),
        (tf.median_absolute_error, NUMBERS),
        (tf.accuracy, {"truth": "yes", "estimate": "yes", "case_weights": "score"}),
    ]
    for metric, call in cases:
        assert_frame_equal(metric(data, **call), metric(people, **call), rel_tol=1e-12)


# The same groups

AT = dt.datetime(2024, 3, 31, 1, 30)  # noqa: DTZ001 - without a zone on purpose
KEYS: dict[str, pl.Series] = {
    "seconds": pl.Series([AT, AT + dt.timedelta(seconds=1), None]),
    "microseconds": pl.Series([AT, AT + dt.timedelta(microseconds=1), None]),
    "in UTC": pl.Series([AT, AT + dt.timedelta(hours=1), None]).dt.replace_time_zone("UTC"),
    "days": pl.Series([dt.date(2024, 1, 1), dt.date(1800, 1, 2), None]),
    "decimals": pl.Series([Decimal("1.10"), Decimal("1.25"), None], dtype=pl.Decimal(10, 2)),
    "zeros": pl.Series([0.0, -0.0, 1.5]),
    "missing numbers": pl.Series([math.nan, None, 1.5]),
    "floats": pl.Series([0.1, 1e-7, 1e22]),
    "texts of what is missing": pl.Series(["null", None, "NULL"]),
    "empty texts": pl.Series(["", " a", "nan"]),
}
GROUPS = {
    "seconds": ["2024-03-31 01:30:00", "2024-03-31 01:30:01", "null"],
    "microseconds": ["2024-03-31 01:30:00", "2024-03-31 01:30:00.000001", "null"],
    "in UTC": ["2024-03-31 01:30:00+00:00", "2024-03-31 02:30:00+00:00", "null"],
    "days": ["1800-01-02", "2024-01-01", "null"],
    "decimals": ["1.10", "1.25", "null"],
    "zeros": ["0.0", "1.5"],
    "missing numbers": ["1.5", "null"],
    # polars writes 1e+22 from 2.0 on, and 1e22 before
    "floats": sorted(["0.1", "1e-7", *pl.Series([1e22]).cast(pl.String)]),
    "texts of what is missing": ['"null"', "NULL", "null"],
    "empty texts": ["", " a", "nan"],
}
NO_SUCH_TYPE = {("pandas", "days"): "has times only"}


def keyed(*keys: pl.Series, rows: int = 24) -> pl.DataFrame:
    """Labels by keys of three values each, with the name of the key or `k`."""
    index = pl.int_range(rows, eager=True)
    people = pl.DataFrame({"y": index % 2, "p": index % 4 // 2})
    return people.with_columns(key.gather(index % 3).alias(key.name or "k") for key in keys)


@pytest.mark.parametrize("name", ["polars", "pandas", "pyarrow", *DATABASES])
def test_groups_have_the_same_rows_and_names_everywhere(name: str) -> None:
    people = keyed(*(key.alias(what) for what, key in KEYS.items()))
    data = (EAGER | DATABASES)[name](people)

    def check(key: str) -> None:
        rates = tf.sens.difference(key)
        result = as_polars(rates.by_group(data, "y", "p")).sort(".group").select(".group", ".estimate")
        assert result[".group"].to_list() == GROUPS[key]
        assert result.equals(rates.by_group(people, "y", "p").sort(".group").select(".group", ".estimate"))

    check_every({key: key for key in KEYS if (name, key) not in NO_SUCH_TYPE}, check)


@pytest.mark.parametrize("name", ["polars", "pandas", "pandas_pyarrow", "pyarrow", "duckdb", "ibis", "dask"])
def test_nanoseconds_tell_groups_apart(name: str) -> None:
    people = keyed(pl.Series([1711848600000000000 + step for step in range(3)]).cast(pl.Datetime("ns")))
    result = as_polars(tf.demographic_parity("k").by_group((EAGER | DATABASES)[name](people), estimate="p"))
    at = "2024-03-31 01:30:00"
    assert sorted(result[".group"]) == [at, f"{at}.000000001", f"{at}.000000002"]


def test_times_of_day_tell_groups_apart() -> None:
    people = keyed(pl.Series([dt.time(1, 2, 3), dt.time(1, 2, 3, 4), None]))
    result = tf.demographic_parity("k").by_group(people, estimate="p")
    assert sorted(result[".group"]) == ["01:02:03", "01:02:03.000004", "null"]


@pytest.mark.parametrize("name", ["polars", "pandas", "pyarrow", *DATABASES])
def test_either_zero_is_shown_as_zero(name: str) -> None:
    people, opened = keyed(KEYS["zeros"]), (EAGER | DATABASES)[name]
    for data in (opened(people), opened(people[::-1]), people.lazy()):
        result = as_polars(tf.accuracy(data, "y", "p", group_by="k"))
        assert list(map(str, result["k"])) == ["0.0", "1.5"]


def test_whole_numbers_that_ibis_rounds_in_sqlite_raise() -> None:
    people = keyed(pl.Series([2**53, 2**53 + 1, None]))
    with pytest.raises(
        tf.errors.ColumnError, match=r"SQLite has missing values beside whole numbers of 2\*\*53 and more"
    ):
        tf.accuracy(WAREHOUSES["sqlite"](people), "y", "p", group_by="k")
    known = people.drop_nulls()
    result = tf.accuracy(WAREHOUSES["sqlite"](known), "y", "p", group_by="k")
    assert_frame_equal(result, tf.accuracy(known, "y", "p", group_by="k"))


@pytest.mark.parametrize("column", ["y", "k"])
def test_fractions_in_whole_numbers_of_sqlite_raise(column: str) -> None:
    table = WAREHOUSES["sqlite"](pl.DataFrame({"y": [0, 1], "p": [0, 1], "k": [0, 1], "s": [0.1, 0.9]}))
    table.get_backend().con.execute(f"update people set {column} = 0.5 where p = 1")  # noqa: S608 - our own
    calls: list[tuple[tf.types.Metric, dict[str, Any]]] = [
        (tf.accuracy, {"estimate": "p"}),
        (tf.roc_auc, {"probs": "s", "score_bins": "exact"}),
    ]
    for metric, call in calls:
        with pytest.raises(
            tf.errors.ColumnError, match=f"The column '{column}' is one of whole numbers, but SQLite has frac"
        ):
            metric(table, "y", **call, group_by="k")


# Many rows


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows that each query returns, where more than a hundred are many and more than 700 too many."""
    sizes: list[int] = []
    run: Callable[..., Any] = nw.LazyFrame.collect

    def counted(frame: Any, *arguments: Any) -> Any:
        result: Any = run(frame, *arguments)
        sizes.append(len(result))
        return result

    monkeypatch.setattr(nw.LazyFrame, "collect", counted)
    for module in (counting, source):
        monkeypatch.setattr(module, "MANY_ROWS", 100)
    monkeypatch.setattr(source, "TOO_MANY_ROWS", 700)
    return sizes


AREAS = tf.metric_set(tf.roc_auc, tf.auc_parity("sex"), tf.abroca("sex"), tf.distributions.kolmogorov_smirnov("sex"))
CONTINUOUS = LOANS.with_columns(score=pl.col("score") + pl.int_range(pl.len()) * 1e-9)


@pytest.mark.parametrize("name", ["duckdb", "ibis", "sqlite"])
def test_many_distinct_scores_are_counted_in_bins(name: str, transfers: list[int]) -> None:
    data = DATABASES[name](CONTINUOUS)
    engine = {"duckdb": "DuckDB", "ibis": "Ibis on duckdb", "sqlite": "Ibis on sqlite"}[name]
    message = (
        rf"{engine} has so many distinct scores in 'score' that they were counted in 4,096 bins; values are off by"
    )
    with pytest.warns(tf.errors.EngineWarning, match=message) as caught:
        result = AREAS(data, **SCORES)
    assert [warning.category for warning in caught].count(tf.errors.EngineWarning) == 1
    asked = AREAS(CONTINUOUS, **SCORES, score_bins=4_096)
    assert f"off by {asked['.error_bound'].max():.2g} at most" in " ".join(str(warning.message) for warning in caught)
    # columns follow from the call, not from the data
    exact = AREAS(CONTINUOUS, **SCORES)
    assert result.columns == exact.columns
    assert result[".estimate"].to_list() == asked[".estimate"].to_list()
    assert ((result[".estimate"] - exact[".estimate"]).abs() <= asked[".error_bound"]).all()
    # one row more than the limit shows that there are more; then there are cells
    assert transfers[0] == 101
    with pytest.warns(tf.errors.EngineWarning, match="4,096 bins"):
        groups = AREAS.by_group(data, **SCORES)
    assert groups.columns == AREAS.by_group(CONTINUOUS, **SCORES).columns


@pytest.mark.parametrize("name", ["duckdb", "ibis"])
def test_scores_are_exact_where_they_are_few_or_asked_to_be(name: str, transfers: list[int]) -> None:
    rounded = LOANS.with_columns(pl.col("score").round(1))
    cases: list[tuple[pl.DataFrame, dict[str, Any]]] = [(rounded, {}), (CONTINUOUS, {"score_bins": "exact"})]
    for data, options in cases:
        result = AREAS(DATABASES[name](data), **SCORES, **options)
        assert_frame_equal(result, AREAS(data, **SCORES), rel_tol=1e-12)
    assert transfers == [rounded.select("repaid", "sex", "score").unique().height, len(CONTINUOUS)]
    assert AREAS(CONTINUOUS, **SCORES, score_bins="exact").equals(AREAS(CONTINUOUS, **SCORES))


TRANSFERRED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "medians": (tf.median_absolute_error, NUMBERS, "'weight', 'score' for median_absolute_error"),
    "logits": (tf.roc_auc, {**SCORES, "probs": "logit"}, "'repaid', 'logit' for roc_auc"),
    "other curves": (
        tf.distributions.abroca_debiased("sex"),
        SCORES,
        "'sex', 'repaid', 'score' for abroca_debiased",
    ),
    "survival times": (
        tf.survival.brier.difference("sex"),
        {"truth": tf.survival.outcome("weight", "paid"), "probs": {1.0: "score"}},
        "'sex', 'weight', 'paid', 'score' for brier_survival_difference",
    ),
    "intervals of ranks": (tf.roc_auc, {**SCORES, "interval": "auto"}, "'repaid', 'score' for roc_auc"),
    "intervals": (tf.mae, {**NUMBERS, "interval": "auto", "times": 20}, "'weight', 'score' for intervals of mae"),
}


@pytest.mark.parametrize("name", TRANSFERRED)
@pytest.mark.usefixtures("transfers")
def test_many_rows_are_transferred_with_a_warning(name: str) -> None:
    metric, call, what = TRANSFERRED[name]
    people = CONTINUOUS.with_columns(logit=pl.col("score") * 9 - 4, paid=pl.col("repaid") == "yes")
    message = rf"Ibis on duckdb transfers 600 distinct rows of the columns {what}\. .*`data\.to_polars\(\)`"
    with pytest.warns(tf.errors.EngineWarning, match=message):
        result = metric(ELSEWHERE["ibis"](people), **call)
    assert_frame_equal(result, metric(people, **call), rel_tol=1e-9)


@pytest.mark.usefixtures("transfers")
def test_tallies_keep_scores_so_that_they_merge() -> None:
    halves = [ELSEWHERE["ibis"](part) for part in (CONTINUOUS[:300], CONTINUOUS[300:])]
    with pytest.warns(tf.errors.EngineWarning, match="Ibis on duckdb transfers 300 distinct rows"):
        one, other = (tf.roc_auc.tally(half, "repaid", probs="score") for half in halves)
    assert_frame_equal(tf.roc_auc.compute(one + other, pos_label="yes"), tf.roc_auc(CONTINUOUS, **SCORES))


def test_too_many_rows_raise_before_they_are_transferred(transfers: list[int]) -> None:
    message = r"DuckDB would have to transfer 1,200 distinct rows .* at most 700 are transferred\..*`data\.pl\(\)`"
    with pytest.raises(tf.errors.ColumnError, match=message):
        tf.median_absolute_error(ELSEWHERE["duckdb"](lending(1_200).with_columns(score=pl.int_range(1_200))), **NUMBERS)
    assert transfers == [101, 1]


WHOLE_ROWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "missing_truth": (
        "'repaid', 'approved', 'sex'",
        lambda data: tf.inference.missing_truth(data, "repaid", "approved", by="sex", positive="yes"),
    ),
    "lump_rare": (
        "'repaid', 'approved', 'sex', 'race', 'score', 'weight', 'yes'",
        lambda data: tf.inference.lump_rare(data, "race", 20),
    ),
    "resamples": (
        "'repaid', 'approved', 'sex', 'race', 'score', 'weight', 'yes'",
        lambda data: tf.inference.resamples([("one", data)]),
    ),
}


@pytest.mark.parametrize("name", WHOLE_ROWS)
@pytest.mark.usefixtures("transfers")
def test_functions_that_read_all_rows_say_so(name: str) -> None:
    columns, call = WHOLE_ROWS[name]
    with pytest.warns(tf.errors.EngineWarning, match=f"DuckDB transfers 600 rows of the columns {columns}"):
        result = call(ELSEWHERE["duckdb"](CONTINUOUS))
    assert_frame_equal(result, call(CONTINUOUS))
    with pytest.raises(
        tf.errors.ColumnError, match=r"would have to transfer 1,200 rows .* at most 700 are transferred"
    ):
        call(ELSEWHERE["duckdb"](pl.concat([CONTINUOUS, CONTINUOUS])))


# Errors


def test_queries_that_an_engine_cannot_run_name_engine_metric_and_way_out() -> None:
    people = keyed(pl.Series([dt.time(1, 2, 3), dt.time(2), None]))
    message = (
        r"Ibis on sqlite could not run the query for accuracy: .*\. If the engine cannot do this, pass the rows as a "
        r"frame in memory: `data\.to_polars\(\)`\."
    )
    with pytest.raises(tf.errors.EngineError, match=message) as caught:
        tf.accuracy(WAREHOUSES["sqlite"](people), "y", "p", group_by="k")
    assert caught.value.__cause__ is not None
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(again) == str(caught.value)


@pytest.mark.parametrize("step", ["select", "with_columns", "filter", "group_by", "collect_schema", "collect"])
def test_errors_while_a_query_is_built_are_those_of_the_engine(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call and then the next fails in this step, until none does."""
    asked: list[Callable[[], Any]] = [
        lambda: tf.metric_set(tf.demographic_parity("race"), tf.demographic_parity("sex"))(
            ELSEWHERE["duckdb"](LOANS), **LABELS
        ),
        lambda: tf.metric_set(tf.roc_auc, tf.brier_class)(ELSEWHERE["ibis"](LOANS), **SCORES),
        lambda: tf.mae(ELSEWHERE["dask"](LOANS), **NUMBERS),
        lambda: tf.inference.lump_rare(ELSEWHERE["duckdb"](LOANS), "race", 3),
    ]
    run: Callable[..., Any] = getattr(nw.LazyFrame, step)
    for ask in asked:
        for last in range(100):
            left = iter(range(last))

            def failing(*arguments: Any, left: Any = left, **options: Any) -> Any:
                if next(left, None) is None:
                    msg = "connection is busy"
                    raise ResourceWarning(msg)
                return run(*arguments, **options)

            monkeypatch.setattr(nw.LazyFrame, step, failing)
            try:
                ask()
            except tf.errors.EngineError as error:
                assert isinstance(error.__cause__, ResourceWarning)  # noqa: PT017 - it may also pass
            else:
                break


def test_one_relation_in_many_threads_gives_the_same_or_an_error_of_the_engine() -> None:
    data, expected = ELSEWHERE["duckdb"](LOANS), tf.demographic_parity("race")(LOANS, **LABELS)

    def ask(_: int) -> None:
        try:
            assert_frame_equal(tf.demographic_parity("race")(data, **LABELS), expected)
        except tf.errors.EngineError as error:
            assert isinstance(error.__cause__, duckdb.Error)  # noqa: PT017 - threads may also wait for each other

    with ThreadPoolExecutor(8) as threads:
        assert len(list(threads.map(ask, range(40)))) == 40


def test_engines_are_named_in_messages() -> None:
    unbound = nw.from_native(ibis.table({"y": "int64"}, name="people"))
    assert source.engine_of(unbound) == "Ibis"
    assert source.in_memory(unbound) == "data.to_polars()"
    assert source.engine_of(nw.from_native(ELSEWHERE["dask"](LOANS))) == "Dask"
