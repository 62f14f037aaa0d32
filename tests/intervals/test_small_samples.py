"""Intervals with few rows, no variation or empty cells."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
from lending_rates import CALL, LOANS, Z, ends
from plain_limits import wilson

import tidyfair as tf

# Too few rows or no variation


def no_interval(result: pl.DataFrame) -> list[bool]:
    """Which rows have none."""
    actual = result.select(pl.col(".lower", ".upper", ".std_error", ".method").is_null())
    assert actual.select(pl.all_horizontal(pl.all()) | ~pl.col(".method")).to_series().all()
    return actual[".method"].to_list()


@pytest.mark.parametrize("metric", [tf.mae, tf.median_absolute_error], ids=["of sums", "of rows"])
def test_single_row_group_has_no_interval(metric: tf.types.Metric) -> None:
    random = np.random.default_rng(11)
    rows = pl.DataFrame(
        {"y": random.normal(size=61), "p": random.normal(size=61), "g": ["a"] * 30 + ["b"] * 30 + ["c"]}
    )
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    gap = tf.new_groupwise_metric(metric, "gap", tf.difference())
    assert no_interval(gap("g").by_group(rows, "y", "p", **options)) == [False, False, True]
    for aggregate in (None, tf.aggregates.standard_deviation(), tf.difference(to="overall"), tf.group_maximum()):
        assert no_interval(gap("g", aggregate=aggregate)(rows, "y", "p", **options)) == [True]
        assert no_interval(gap("g", aggregate=aggregate)(rows[:60], "y", "p", **options)) == [False]
    # who is left out is not compared
    assert no_interval(gap("g", min_n=2)(rows, "y", "p", **options)) == [False]
    # a row that lacks its truth tells as little as none
    more = pl.concat([rows, rows[-1:].with_columns(pl.lit(None, pl.Float64).alias("y"))])
    assert no_interval(gap("g").by_group(more, "y", "p", **options)) == [False, False, True]
    assert no_interval(metric(rows, "y", "p", group_by="g", **options)) == [False, False, True]
    folds = pl.concat([rows.with_columns(fold=1), rows[:60].with_columns(fold=2)])
    assert no_interval(gap("g")(folds, "y", "p", group_by="fold", **options)) == [True, False]


def test_single_row_group_has_interval_only_for_rates() -> None:
    rows = pl.DataFrame({"t": [1, 0] * 20 + [1], "e": [1, 0, 0, 1] * 10 + [1], "g": ["a"] * 40 + ["b"]})
    # with beta=1 it rises with a share, and has the interval of one
    gap = tf.metric_tweak(tf.f_meas, "f2", beta=2).difference("g", name="gap")
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    assert no_interval(gap.by_group(rows, "t", "e", **options)) == [False, True]
    assert no_interval(gap(rows, "t", "e", **options)) == [True]
    sens = tf.equal_opportunity("g")
    assert sens.by_group(rows, "t", "e", **options)[".method"].to_list() == ["wilson", "wilson"]
    assert sens(rows, "t", "e", **options)[".method"].item() == "newcombe"
    scored = rows.with_columns(s=pl.col("e") / 2)
    listed = gap(scored, "t", probs="s", threshold=[0.25, 0.75], **options)
    assert no_interval(listed) == [True, True]


@pytest.mark.filterwarnings("ignore::tidyfair.errors.ClusterWarning")
def test_single_cluster_has_no_interval() -> None:
    random = np.random.default_rng(12)
    rows = pl.DataFrame({
        "y": random.normal(size=60), "p": random.normal(size=60), "t": random.integers(0, 2, 60),
        "g": ["a"] * 40 + ["b"] * 20, "person": np.repeat([1, 2, 3, 4, 5, 5], 10),
    })  # fmt: skip
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore", "cluster": "person"}
    for metric in (tf.mae, tf.median_absolute_error):
        gap = tf.new_groupwise_metric(metric, "gap", tf.difference())("g")
        assert no_interval(gap.by_group(rows, "y", "p", **options)) == [False, True]
        assert no_interval(gap(rows, "y", "p", **options)) == [True]
    parity = tf.demographic_parity("g")
    assert no_interval(parity(rows, estimate="t", **options)) == [True]
    apart = rows.with_columns(pl.int_range(pl.len()).floordiv(10).alias("person"))
    assert no_interval(parity(apart, estimate="t", **options)) == [False]


@pytest.mark.parametrize("aggregate", [
    tf.difference(), tf.aggregates.standard_deviation(), tf.difference(to="overall"),
    tf.new_aggregate(pl.col(".estimate").max() - pl.col(".estimate").min(), equal=0),
], ids=repr)  # fmt: skip
def test_single_group_has_no_interval(aggregate: Any) -> None:
    rows = pl.DataFrame({"e": [1, 0] * 50, "g": ["a"] * 100})
    metric = tf.demographic_parity("g", aggregate=aggregate)
    result = metric(rows, estimate="e", interval="auto", times=200)
    assert result[".estimate"].item() == 0
    assert no_interval(result) == [True]
    assert tf.check(metric, below=0.1)(rows, estimate="e", times=200)[".verdict"].item() == "not enough evidence"


# Empty cells


def labelled(tp: int = 0, fn: int = 0, fp: int = 0, tn: int = 0, group: str = "a") -> pl.DataFrame:
    """People of a group: how many there are in each cell of truth and estimate."""
    truth, guess = [1] * (tp + fn) + [0] * (fp + tn), [1] * tp + [0] * fn + [1] * fp + [0] * tn
    return pl.DataFrame({"t": truth, "e": guess, "g": [group] * len(truth)})


MANY = labelled(160, 40, 40, 160, "b")
OF_LABELS = [tf.f_meas, tf.mcc, tf.kap, tf.bal_accuracy, tf.j_index]


def gap_of(metric: tf.types.Metric, aggregate: Any = None) -> tf.types.GroupwiseMetric:
    return tf.new_groupwise_metric(metric, "gap", aggregate or tf.difference())("g")


def wilson_of_all(rows: int, level: float = 0.95) -> float:
    return wilson(rows, rows, level)[0]


def test_error_free_group_has_interval_of_its_accuracy() -> None:
    for rows in (4, 8, 40, 1000):
        people = labelled(tp=rows // 2, tn=rows // 2)
        for result in (
            gap_of(tf.f_meas).by_group(people, "t", "e", interval="bootstrap", times=200, on_undefined="ignore"),
            tf.f_meas(people, "t", "e", interval="bootstrap", times=200, on_undefined="ignore"),
        ):
            # with k more rows that are wrong it is 2 tp / (2 tp + k)
            assert ends(result) == pytest.approx((wilson_of_all(rows), 1.0))
            assert result[".method"].item() == "bootstrap, empty cells"
            assert result[".std_error"].item() is None


@pytest.mark.parametrize("metric", OF_LABELS, ids=lambda item: item.name)
def test_small_error_free_group_gives_not_enough_evidence(metric: tf.types.Metric) -> None:
    people = pl.concat([labelled(tp=2, tn=2), MANY])
    value = metric(MANY, "t", "e")[".estimate"].item()
    assert (
        tf.check(gap_of(metric), below=0.05)(people, "t", "e", times=200, on_undefined="ignore")[".verdict"].item()
        == "not enough evidence"
    )
    options: dict[str, Any] = {"interval": "auto", "times": 200, "on_undefined": "ignore"}
    for aggregate in (tf.group_minimum(), tf.aggregates.group_mean(), tf.difference(to="b", signed=True)):
        result = gap_of(metric, aggregate)(people, "t", "e", **options).row(0, named=True)
        low = {"group_minimum": value, "group_mean": (1 + value) / 2, "difference": 1 - value}[aggregate.kind]
        assert result[".lower"] < low - 0.1


def test_four_error_free_rows_pass_no_check() -> None:
    people = labelled(tp=2, tn=2)
    quiet: dict[str, Any] = {"times": 200, "on_undefined": "ignore"}
    for limit in (0.6, 0.7, 0.8, 0.9, 0.99):
        for metric in (tf.f_meas.group_minimum("g"), tf.f_meas, gap_of(tf.bal_accuracy, tf.group_minimum())):
            result = tf.check(metric, above=limit)(people, "t", "e", **quiet)
            assert result[".verdict"].item() == "not enough evidence"
    # but of many such rows it is known
    assert tf.check(tf.f_meas, above=0.9)(labelled(tp=500, tn=500), "t", "e", **quiet)[".verdict"].item() == "pass"


def test_empty_cell_widens_only_its_own_end() -> None:
    # of 8 rows without the event none is wrong, and of 400 with it a quarter
    people, half = labelled(tp=300, fn=100, tn=8), Z**2
    low = (300 / 400 + 8 / (8 + half)) / 2
    result = tf.bal_accuracy(people, "t", "e", interval="bootstrap", times=400)
    assert result[".lower"].item() == pytest.approx(low)
    # nothing is added to a cell that is not empty
    assert result[".upper"].item() < 0.91


def test_intervals_without_empty_cells_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = [
        tf.new_groupwise_metric(tf.f_meas, "gap", each)("sex")
        for each in (tf.aggregates.standard_deviation(), tf.aggregates.group_mean())
    ]
    calls: list[tuple[Any, Any]] = [(gap, "auto") for gap in gaps] + [(tf.f_meas, "bootstrap")]
    allowing = [ends(metric(LOANS, **CALL, interval=interval, times=400)) for metric, interval in calls]
    monkeypatch.setattr("tidyfair.intervals.draws._filled", lambda *_, **__: iter(()))
    assert [ends(metric(LOANS, **CALL, interval=interval, times=400)) for metric, interval in calls] == allowing


def test_empty_cells_widen_only_their_outer_group() -> None:
    folds = pl.concat([MANY.with_columns(fold=1), labelled(tp=4, tn=4, group="b").with_columns(fold=2)])
    options: dict[str, Any] = {"interval": "bootstrap", "times": 400, "on_undefined": "ignore"}
    result = tf.f_meas(folds, "t", "e", group_by="fold", **options)
    assert result[".method"].to_list() == ["bootstrap", "bootstrap, empty cells"]
    assert ends(result, 1) == pytest.approx((wilson_of_all(8), 1.0))


def test_empty_cells_use_effective_rows_of_weights_and_clusters() -> None:
    people = labelled(tp=10, tn=10)
    options: dict[str, Any] = {"interval": "bootstrap", "times": 200, "on_undefined": "ignore"}
    weights = np.tile([1.0, 3.0], 10)
    effective = weights.sum() ** 2 / (weights**2).sum()
    expected = float(effective / (effective + Z**2))
    for scale in (1, 100):
        weighted = people.with_columns(w=pl.Series(weights * scale))
        result: Any = tf.f_meas(weighted, "t", "e", case_weights="w", **options)
        assert ends(result) == pytest.approx((expected, 1.0))
    # five clusters of four rows
    clustered = people.with_columns(person=pl.int_range(20) % 5)
    with pytest.warns(tf.errors.ClusterWarning):
        result = tf.f_meas(clustered, "t", "e", cluster="person", **options)
    assert ends(result) == pytest.approx((wilson_of_all(5), 1.0))
    with pytest.warns(tf.errors.ClusterWarning):
        rate: Any = tf.sens(clustered.filter(pl.col("t") == 1), "t", "e", cluster="person", **options)
    assert ends(rate) == pytest.approx((wilson_of_all(5), 1.0))


def test_empty_cells_with_thresholds_and_multiclass() -> None:
    scored = labelled(tp=6, tn=6).with_columns(s=pl.when(pl.col("e") == 1).then(0.8).otherwise(0.2))
    options: dict[str, Any] = {"interval": "bootstrap", "times": 200, "on_undefined": "ignore"}
    listed = tf.f_meas(scored, "t", probs="s", threshold=[0.5, 0.1], **options).filter(pl.col(".threshold") == 0.5)
    one = tf.f_meas(scored, "t", probs="s", threshold=0.5, **options)
    assert ends(listed) == pytest.approx(ends(one))
    assert ends(one) == pytest.approx((wilson_of_all(12), 1.0))
    letters = pl.DataFrame({"y": list("abc") * 4, "p": list("abc") * 4})
    recall = tf.sens(letters, "y", "p", **options)
    # six cells share the rows, two of each label
    lower = 4 / (4 + Z**2 / 3)
    alone = (2 + 4 / (4 + Z**2)) / 3
    assert ends(recall) == pytest.approx((min(lower, alone), 1.0))


@pytest.mark.simulation
@pytest.mark.parametrize("rates", [(0.4, 0.1), (0.45, 0.05)], ids=["0.8", "0.9"])
@pytest.mark.parametrize("rows", [(8, 400, 400), (4, 400, 400)], ids=str)
def test_rare_group_does_not_fail_a_fair_model(rows: tuple[int, ...], rates: tuple[float, float]) -> None:
    right, wrong = rates
    random, worlds = np.random.default_rng(3), 300
    drawn = np.stack([random.multinomial(size, (right, wrong, wrong, right), worlds) for size in rows])
    cells = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 1, 0], "cell": range(4)})
    places = pl.DataFrame(
        [(str(g), w, c, int(n)) for (g, w, c), n in np.ndenumerate(drawn)], ["g", "world", "cell", "n"], orient="row"
    )
    people = places.join(cells, on="cell")
    gap = gap_of(tf.f_meas)(
        people, "t", "e", frequency_weights="n", group_by="world", interval="auto", conf_level=0.9, times=200,
        on_undefined="ignore", explain=True,
    )  # fmt: skip
    for limit in (1e-9, 0.05):
        failing = gap.pipe(tf.check, below=limit)[".verdict"] == "fail"
        assert failing.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / worlds)


@pytest.mark.parametrize("metric", [tf.mae, tf.rmse, tf.median_absolute_error], ids=lambda item: item.name)
def test_constant_errors_have_no_interval(metric: tf.types.Metric) -> None:
    random = np.random.default_rng(11)
    constant = pl.DataFrame({"y": random.normal(size=12), "g": "a"}).with_columns(p=pl.col("y") + 0.1)
    rows = pl.concat([constant, pl.DataFrame({"y": random.normal(size=80), "g": "b", "p": random.normal(size=80)})])
    options: dict[str, Any] = {"interval": "auto", "times": 200}
    assert no_interval(gap_of(metric).by_group(rows, "y", "p", **options)) == [True, False]
    for aggregate in (
        None,
        tf.aggregates.standard_deviation(),
        tf.difference(to="b", signed=True),
        tf.aggregates.group_mean(),
    ):
        assert no_interval(gap_of(metric, aggregate)(rows, "y", "p", **options)) == [True]
    for limit in (0.01, 5):
        (verdict,) = tf.check(gap_of(metric), below=limit)(rows, "y", "p", times=200)[".verdict"]
        assert verdict == "not enough evidence"


@pytest.mark.parametrize("metric", [tf.mae, tf.rmse, tf.mse, tf.huber_loss], ids=lambda item: item.name)
def test_perfect_predictions_have_no_interval_and_no_numpy_warnings(metric: tf.types.Metric) -> None:
    random = np.random.default_rng(14)
    truth = random.normal(size=60)
    perfect = pl.DataFrame({"y": truth[:20], "p": truth[:20], "g": "a", "c": [1, 2, 3, 4] * 5})
    varied = pl.DataFrame({"y": truth[20:], "p": random.normal(size=40), "g": "b", "c": [1, 2, 3, 4] * 10})
    options: dict[str, Any] = {"interval": "auto", "on_undefined": "ignore"}
    for cluster in (None, "c"):
        assert no_interval(metric(perfect, "y", "p", cluster=cluster, **options)) == [True]
        rows = pl.concat([perfect, varied])
        assert no_interval(gap_of(metric).by_group(rows, "y", "p", cluster=cluster, **options)) == [True, False]


def test_replicates_that_are_all_the_same_have_no_interval() -> None:
    metric, random = tf.average_precision, np.random.default_rng(12)
    perfect = pl.DataFrame({"t": [1, 0] * 6, "s": [1.0, 0.0] * 6, "g": "a"})
    rows = pl.concat([perfect, pl.DataFrame({"t": [1, 0] * 40, "s": random.random(80), "g": "b"})])
    options: dict[str, Any] = {"interval": "bootstrap", "times": 100, "on_undefined": "ignore"}
    assert no_interval(gap_of(metric).by_group(rows, "t", probs="s", **options)) == [True, False]
    assert no_interval(gap_of(metric)(rows, "t", probs="s", **options)) == [True]


def test_infinite_values_have_intervals_that_hold_them_and_decide_no_check() -> None:
    # nobody without the event is selected in a, so that its positive likelihood ratio is infinite
    people = pl.concat([labelled(tp=20, fn=20, tn=10), MANY])
    quiet: dict[str, Any] = {"times": 200, "on_undefined": "ignore"}
    for aggregate in (tf.difference(), tf.ratio(), tf.aggregates.log_ratio()):
        gap = gap_of(tf.positive_likelihood_ratio, aggregate)
        result = gap(people, "t", "e", interval="auto", **quiet).row(0, named=True)
        assert result[".lower"] <= result[".estimate"] <= result[".upper"]
    # 20 of 40 selected among those with the event, none of 10 without: a likelihood ratio as large as of all others
    difference = tf.check(gap_of(tf.positive_likelihood_ratio), below=3)
    assert difference(people, "t", "e", **quiet)[".verdict"].item() == "not enough evidence"
    ratio = tf.check(gap_of(tf.positive_likelihood_ratio, tf.ratio()), above=0.8)
    assert ratio(people, "t", "e", **quiet)[".verdict"].item() == "not enough evidence"


def test_zero_value_has_one_sided_ratio_interval() -> None:
    people = pl.concat([labelled(fn=2, fp=2, tn=4), MANY])
    result = gap_of(tf.f_meas, tf.ratio())(people, "t", "e", interval="auto", times=200, on_undefined="ignore")
    assert result[".estimate"].item() == result[".lower"].item() == 0
    assert 0.5 < result[".upper"].item() <= 1


def test_metrics_with_different_draws_in_one_set() -> None:
    # the sizes of groups are fixed for the one, and not for the other
    gaps = [tf.new_groupwise_metric(tf.f_meas, name, item)("sex") for name, item in (
        ("spread", tf.aggregates.standard_deviation()), ("to all", tf.difference(to="overall")),
    )]  # fmt: skip
    options: dict[str, Any] = {**CALL, "interval": "auto", "times": 100}
    together = tf.metric_set(*gaps)(LOANS, **options)
    assert pl.concat([item(LOANS, **options) for item in gaps]).equals(together)
    assert len(tf.metric_set(*gaps).by_group(LOANS, **options)) == 2


@pytest.mark.parametrize("group_by", [None, "o"])
@pytest.mark.parametrize("interval", ["auto", "bootstrap"])
def test_sums_of_no_rows_have_no_interval(interval: Any, group_by: str | None) -> None:
    schema = {"y": pl.Boolean, "s": pl.Float64, "g": pl.String, "o": pl.String}
    nobody = pl.DataFrame(schema=schema)
    metrics = tf.metric_set(tf.brier_class, tf.new_groupwise_metric(tf.brier_class, "gap", tf.difference())("g"))
    result = metrics(nobody, "y", probs="s", interval=interval, times=20, group_by=group_by, on_undefined="ignore")
    assert result.select(".estimate", ".lower", ".upper").null_count().rows() == [(len(result),) * 3]


def test_infinite_groups_that_stay_infinite_are_no_cause_for_warnings() -> None:
    data = pl.DataFrame(
        {"t": [1, 1, 0, 0] * 15, "e": [1, 0, 1, 0] * 10 + [1, 1, 0, 0] * 5, "g": ["a"] * 40 + ["b"] * 20}
    )
    metric = tf.positive_likelihood_ratio.difference("g", to="overall")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = metric(data, "t", "e", interval="bootstrap", times=50, on_undefined="ignore")
    assert result[".estimate"].item() == math.inf
