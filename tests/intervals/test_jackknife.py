"""Standard errors by leaving out rows, against plain arithmetic, other libraries and simulation."""

from __future__ import annotations

import itertools
import math
import tracemalloc
import warnings
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import tidyfair as tf
from tidyfair.intervals.estimates import Influences, Scale, SquaredCorrelation
from tidyfair.intervals.proportions import wilson, wilson_with_few
from tidyfair.intervals.resampling import Units
from tidyfair.intervals.shares import at_share, rising_share_of, sum_of_shares_of

if TYPE_CHECKING:
    from collections.abc import Callable

Z = NormalDist().inv_cdf(0.975)


def labels(seed: int, rows: int, truth: float = 0.4, right: float = 0.8) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    true = random.random(rows) < truth
    predicted = np.where(random.random(rows) < right, true, ~true)
    return pl.DataFrame(
        {"t": true, "e": predicted, "g": random.choice(["a", "b"], rows), "c": random.integers(0, 40, rows)}
    )


def numbers(seed: int, rows: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    truth = random.normal(10, 2, rows)
    return pl.DataFrame({"y": truth, "p": truth + random.standard_t(5, rows), "c": random.integers(0, 30, rows)})


def row(result: pl.DataFrame) -> dict[str, Any]:
    return result.row(0, named=True)


# Errors


def test_error_of_a_mean_is_that_of_the_textbook() -> None:
    data = numbers(1, 4_000)
    errors = (data["y"] - data["p"]).abs().to_numpy()
    result = row(tf.mae(data, "y", "p", interval="auto"))
    assert result[".std_error"] == pytest.approx(errors.std(ddof=1) / math.sqrt(4_000), rel=1e-9)
    assert result[".method"] == "jackknife"


@pytest.mark.parametrize(("rows", "parts"), [(4_000, 0), (20_001, None)])
def test_error_of_a_mean_of_random_parts_is_nearly_that_of_the_textbook(rows: int, parts: int | None) -> None:
    data = numbers(1, rows)
    errors = (data["y"] - data["p"]).abs().to_numpy()
    # a tally that is kept has random parts, and so have very many rows
    tally = tf.mae.tally(data, "y", "p", parts=parts)
    result = tf.mae(data, "y", "p", interval="auto") if parts is None else tf.mae.compute(tally, interval="auto")
    # 400 parts know an error to 1 / sqrt(800) of itself
    expected = errors.std(ddof=1) / math.sqrt(rows)
    assert row(result)[".std_error"] == pytest.approx(expected, rel=3 / math.sqrt(800))
    assert row(result)[".std_error"] != pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rows", [944, 20_001])
def test_interval_of_a_mean_does_not_depend_on_what_else_is_asked(rows: int) -> None:
    data = numbers(2, rows).with_columns(half=pl.int_range(rows) % 2, group=pl.int_range(rows) % 7)
    expected = row(tf.mae(data, "y", "p", interval="auto"))
    several = tf.metric_set(tf.mae, tf.rmse, tf.mae.difference("half"), tf.mae.difference("group"))
    result = row(several(data, "y", "p", interval="auto").head(1))
    shown = [".lower", ".upper", ".std_error"]
    assert [result[name] for name in shown] == pytest.approx([expected[name] for name in shown], rel=1e-9)
    gate = row(tf.check(tf.metric_set(tf.mae, tf.mse), below=9)(data, "y", "p").head(1))
    assert gate[".std_error"] == pytest.approx(expected[".std_error"], rel=1e-9)


def leave_one_out(value: Callable[[np.ndarray, np.ndarray], float], y: np.ndarray, p: np.ndarray) -> float:
    """The jackknife error of rows, one by one."""
    kept = ~np.eye(len(y), dtype=bool)
    values = np.array([value(y[rows], p[rows]) for rows in kept])
    return float(np.sqrt((len(y) - 1) / len(y) * ((values - values.mean()) ** 2).sum()))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (tf.rmse, lambda y, p: math.sqrt(((y - p) ** 2).mean())),
        (tf.rsq, lambda y, p: np.corrcoef(y, p)[0, 1] ** 2),
        (tf.mean_truth, lambda y, _: y.mean()),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_errors_of_clusters_of_one_row_are_those_of_leaving_out_rows(metric: tf.types.Metric, value: Any) -> None:
    data = numbers(2, 60).with_columns(c=pl.int_range(60))
    result = row(metric(data, "y", "p", cluster="c", interval="auto"))
    assert result[".std_error"] == pytest.approx(leave_one_out(value, data["y"].to_numpy(), data["p"].to_numpy()))


@pytest.mark.parametrize("metric", [tf.mcc, tf.kap, tf.f_meas, tf.bal_accuracy], ids=lambda item: item.name)
def test_error_of_labels_is_that_of_leaving_out_rows(metric: tf.types.Metric) -> None:
    data = labels(3, 900)
    counts = data.group_by("t", "e").len()
    # rows of a cell are alike; those added to each cell hardly matter among so many
    values, sizes = list[float](), list[int]()
    for true, predicted, size in counts.rows():
        index = int(np.flatnonzero(((data["t"] == true) & (data["e"] == predicted)).to_numpy())[0])
        without = data.filter(pl.int_range(pl.len()) != index)
        values.append(metric(without, "t", "e")[".estimate"].item())
        sizes.append(size)
    mean = np.average(values, weights=sizes)
    expected = math.sqrt(899 / 900 * sum(size * (value - mean) ** 2 for value, size in zip(values, sizes, strict=True)))
    assert row(metric(data, "t", "e", interval="auto"))[".std_error"] == pytest.approx(expected, rel=0.01)


def test_weights_of_one_change_nothing_and_scale_is_free() -> None:
    data = labels(4, 200).with_columns(one=1.0, many=7.0)
    plain = row(tf.mcc(data, "t", "e", interval="auto"))
    one = row(tf.mcc(data, "t", "e", interval="auto", case_weights="one"))
    many = row(tf.mcc(data, "t", "e", interval="auto", case_weights="many"))
    for end in (".lower", ".upper", ".std_error"):
        assert one[end] == pytest.approx(plain[end])
        assert many[end] == pytest.approx(plain[end])


def test_rows_that_count_several_times_are_no_weights() -> None:
    data = labels(5, 80)
    counted = data.group_by("t", "e").len()
    result = row(tf.kap(counted, "t", "e", frequency_weights="len", interval="auto"))
    assert result[".lower"] == pytest.approx(row(tf.kap(data, "t", "e", interval="auto"))[".lower"])


def test_a_metric_of_a_user_has_an_interval() -> None:
    data = labels(6, 500)
    own = tf.new_class_metric(lambda tp, fp, fn: tp**2 / ((tp + fp) * (tp + fn)), "fowlkes_mallows_squared")
    result = row(own(data, "t", "e", interval="auto"))
    drawn = row(own(data, "t", "e", interval="bootstrap", times=4_000))
    assert result[".method"] == "jackknife"
    assert result[".std_error"] == pytest.approx(drawn[".std_error"], rel=0.06)


def test_clusters_that_are_alike_inside_count_once() -> None:
    data = labels(7, 120).select("t", "e").with_row_index("c")
    tripled = pl.concat([data] * 3)
    for metric in (tf.mcc, tf.accuracy, tf.f_meas):
        once = row(metric(data, "t", "e", cluster="c", interval="auto"))
        thrice = row(metric(tripled, "t", "e", cluster="c", interval="auto"))
        assert thrice[".std_error"] == pytest.approx(once[".std_error"], rel=0.03)


# Limits


@pytest.mark.parametrize("scale", [Scale(0, 1), Scale(-1, 1), Scale(0, math.inf), Scale(-math.inf, 1)], ids=str)
def test_scales_turn_back_and_have_their_slope(scale: Scale) -> None:
    values = np.array([0.05, 0.3, 0.9])
    assert scale.inverse(scale.transform(values)) == pytest.approx(values)
    step = 1e-6
    slope = (scale.transform(values + step) - scale.transform(values - step)) / (2 * step)
    assert scale.slope(values) == pytest.approx(slope, rel=1e-6)


def test_scale_of_a_squared_correlation_is_fishers_z() -> None:
    scale = SquaredCorrelation(0, 1)
    assert scale.transform(np.array([0.25]))[0] == pytest.approx(math.atanh(0.5))
    assert scale.inverse(np.array([-0.3, math.atanh(0.5)])) == pytest.approx([0.0, 0.25])


def test_wilson_with_few_hits_covers_all_rates_of_few_rows() -> None:
    for rows, least in ((3, 0.88), (6, 0.9), (10, 0.9), (40, 0.91)):
        hits = np.arange(rows + 1.0)
        size = np.full(rows + 1, float(rows))
        rates = np.linspace(0.002, 0.998, 997)
        chances = stats.binom.pmf(hits[:, None], rows, rates)
        plain, corrected = (
            ((low[:, None] <= rates) & (rates <= high[:, None]))
            for low, high in (wilson(hits / rows, size, Z), wilson_with_few(hits / rows, size, Z))
        )
        assert (chances * corrected).sum(axis=0).min() >= least > (chances * plain).sum(axis=0).min()


def test_f1_has_the_limits_of_its_share() -> None:
    share = rising_share_of(tf.f_meas.definition)
    assert share is not None
    assert (share.holds, share.among) == (frozenset({"tp"}), frozenset({"tp", "fp", "fn"}))
    assert at_share(tf.f_meas.definition, share, np.array([0.0, 0.5, 1.0])) == pytest.approx([0, 2 / 3, 1])
    # with another beta it depends on more than that share
    assert rising_share_of(tf.metric_tweak(tf.f_meas, "f2", beta=2).definition) is None
    data = pl.DataFrame({"t": [1] * 12 + [0] * 8, "e": [1] * 9 + [0] * 3 + [1] * 2 + [0] * 6})
    low, high = (float(end[0]) for end in wilson_with_few(np.array([9 / 14]), np.array([14.0]), Z))
    result = row(tf.f_meas(data, "t", "e", interval="auto"))
    assert (result[".lower"], result[".upper"]) == pytest.approx((2 * low / (1 + low), 2 * high / (1 + high)))


def test_balanced_accuracy_has_limits_of_both_rates() -> None:
    assert sum_of_shares_of(tf.mcc.definition) is None
    data = pl.DataFrame({"t": [1] * 12 + [0] * 20, "e": [1] * 9 + [0] * 3 + [1] * 5 + [0] * 15})
    rates, sizes = np.array([9 / 12, 15 / 20]), np.array([12.0, 20.0])
    low, high = wilson_with_few(rates, sizes, Z)
    value = rates.mean()
    expected = (value - np.hypot(*(rates - low)) / 2, value + np.hypot(*(high - rates)) / 2)
    result = row(tf.bal_accuracy(data, "t", "e", interval="auto"))
    assert (result[".lower"], result[".upper"]) == pytest.approx(expected)
    youden = row(tf.j_index(data, "t", "e", interval="auto"))
    assert (youden[".lower"], youden[".upper"]) == pytest.approx([2 * end - 1 for end in expected])


def test_ranges_of_numbers_are_not_cut_at_one() -> None:
    random = np.random.default_rng(8)
    data = pl.DataFrame({"y": random.normal(0, 1, 400), "g": ["a", "b"] * 200})
    data = data.with_columns(p=pl.when(pl.col("g") == "a").then(pl.col("y") * 2 + 20).otherwise(pl.col("y") * 1.1))
    data = data.with_columns(g=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("c")).otherwise("g"))
    result = row(tf.rmse.difference("g")(data, "y", "p", interval="auto"))
    assert result[".lower"] <= result[".estimate"] <= result[".upper"]
    assert result[".upper"] > 10


# How often limits hold the truth


CELLS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.mark.simulation
@pytest.mark.parametrize("metric", [tf.f_meas, tf.bal_accuracy, tf.mcc, tf.kap], ids=lambda item: item.name)
@pytest.mark.parametrize("rows", [6, 15, 40])
def test_intervals_of_few_labels_hold_the_truth(metric: tf.types.Metric, rows: int) -> None:
    runs, random = 1_500, np.random.default_rng(9)
    for truth, sens, spec in ((0.5, 0.8, 0.8), (0.3, 0.6, 0.95), (0.5, 0.97, 0.97)):
        shares = [truth * sens, truth * (1 - sens), (1 - truth) * (1 - spec), (1 - truth) * spec]
        drawn = random.multinomial(rows, shares, runs)
        frame = pl.DataFrame(
            [(run, *CELLS[cell], int(n)) for (run, cell), n in np.ndenumerate(drawn)],
            ["run", "t", "e", "n"], orient="row",
        )  # fmt: skip
        call: dict[str, Any] = {"frequency_weights": "n", "on_undefined": "ignore"}
        many = pl.DataFrame([(*cell, round(share * 1e6)) for cell, share in zip(CELLS, shares, strict=True)],
            ["t", "e", "n"], orient="row")  # fmt: skip
        true = metric(many, "t", "e", **call)[".estimate"].item()
        result = metric(frame, "t", "e", group_by="run", interval="auto", **call).drop_nulls(".lower")
        held = (result[".lower"] <= true + 1e-9) & (result[".upper"] >= true - 1e-9)
        # three standard errors of a simulation
        share: Any = held.mean()
        assert share >= 0.9 - 3 * math.sqrt(0.9 * 0.1 / len(held))


def test_intervals_of_few_clusters_hold_the_truth() -> None:
    runs, clusters, random = 400, 10, np.random.default_rng(10)
    rates = np.repeat(random.beta(3, 2, runs * clusters), 8)
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), clusters * 8),
            "c": np.tile(np.repeat(np.arange(clusters), 8), runs),
            "t": True,
            "e": random.random(len(rates)) < rates,
        }
    )
    result = tf.sens(data, "t", "e", cluster="c", group_by="run", interval="auto").drop_nulls(".lower")
    held = (result[".lower"] <= 0.6) & (result[".upper"] >= 0.6)
    share: Any = held.mean()
    assert share >= 0.93 - 3 * math.sqrt(0.93 * 0.07 / runs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows_alone = tf.sens(data, "t", "e", group_by="run", interval="auto")
    of_rows: Any = ((rows_alone[".lower"] <= 0.6) & (rows_alone[".upper"] >= 0.6)).mean()
    assert of_rows < 0.9


@pytest.mark.parametrize("metric", [tf.selection_rate, tf.kap], ids=lambda item: item.name)
def test_difference_of_groups_that_share_clusters_is_that_of_pairs(metric: tf.types.Metric) -> None:
    runs, clusters, half, random = 300, 25, 6, np.random.default_rng(11)
    rates = random.beta(0.7, 0.7, (runs, clusters, 1))
    selected = random.random((runs, clusters, 2 * half)) < rates
    truth = np.where(random.random(selected.shape) < 0.8, selected, ~selected)
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), clusters * 2 * half),
            "c": np.tile(np.repeat(np.arange(clusters), 2 * half), runs),
            "g": np.tile(np.array(["a", "b"]), runs * clusters * half),
            "t": truth.ravel(),
            "e": selected.ravel(),
        }
    )
    gap = metric.difference("g", to="b", signed=True)
    result = gap(data, "t", "e", cluster="c", group_by="run", interval="auto")
    held: Any = ((result[".lower"] <= 0) & (result[".upper"] >= 0)).mean()
    assert held >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / runs)
    errors: Any = result[".std_error"].mean()
    assert errors == pytest.approx(result[".estimate"].std(), rel=0.15)
    # hospitals differ much more than the groups within one
    alone = gap(
        data, "t", "e", cluster=(pl.col("c").cast(str) + pl.col("g")).alias("own"), group_by="run", interval="auto"
    )
    if metric is tf.selection_rate:
        wide: Any = (alone[".upper"] - alone[".lower"]).mean()
        narrow: Any = (result[".upper"] - result[".lower"]).mean()
        assert narrow < 0.6 * wide


def test_a_step_that_no_row_changes_has_no_interval() -> None:
    def step(tp: Any, fn: Any) -> Any:
        return np.where(tp / (tp + fn) > 0.5, 1.0, 0.0)

    own = tf.new_class_metric(step, "step")
    data = pl.DataFrame({"t": [1] * 19 + [0], "e": [1] * 9 + [0] * 11})
    result = row(own(data, "t", "e", interval="auto"))
    assert (result[".lower"], result[".upper"], result[".method"]) == (None, None, None)


def test_infinite_difference_has_an_interval_with_clusters_too() -> None:
    cells = {"a": [(1, 1)] * 3 + [(1, 0)] + [(0, 0)], "b": [(1, 1), (1, 0), (0, 1), (0, 0)]}
    rows = [(t, e, g) for g, pairs in cells.items() for t, e in pairs]
    data = pl.DataFrame(rows, ["t", "e", "g"], orient="row").with_row_index("c")
    gate = tf.check(tf.positive_likelihood_ratio.difference("g"), below=1)
    for options in ({}, {"cluster": "c"}):
        assert gate(data, "t", "e", **options)[".verdict"].item() == "not enough evidence"  # pyright: ignore[reportArgumentType] - options


# Large calls


def test_groups_of_many_outer_groups_keep_the_clusters_they_share() -> None:
    runs, clusters, rows = 1_300, 10, 8
    random = np.random.default_rng(3)
    rates = random.beta(0.7, 0.7, (runs, clusters, 1))
    data = pl.DataFrame(
        {
            "run": np.repeat(np.arange(runs), clusters * rows),
            "c": np.repeat(np.arange(runs * clusters), rows),
            "g": np.tile(np.array(["a", "b"]), runs * clusters * rows // 2),
            "e": (random.random((runs, clusters, rows)) < rates).ravel(),
        }
    )
    gap = tf.selection_rate.difference("g", to="b", signed=True)
    columns = (".lower", ".upper", ".std_error")
    together = gap(data, estimate="e", cluster="c", group_by="run", interval="auto")
    for run in (0, 700, 1_299):
        alone = gap(data.filter(run=run), estimate="e", cluster="c", interval="auto")
        assert together.filter(run=run).select(columns).row(0) == pytest.approx(alone.select(columns).row(0))


def test_correlations_of_very_many_groups_are_those_of_their_clusters() -> None:
    groups, clusters = 2_500, 40
    random = np.random.default_rng(4)
    influence = random.normal(size=(groups, clusters))
    influence[random.random(influence.shape) < 0.7] = 0
    influence[:, 0] = 1
    influence /= np.linalg.norm(influence, axis=1, keepdims=True)
    group, cluster = np.nonzero(influence)
    correlations = Influences.of_units(influence[group, cluster][:, None], group, cluster, groups)
    one, other = random.integers(0, groups, (2, 50))
    expected = (influence[one] * influence[other]).sum(axis=1)
    assert correlations.between(one, other) == pytest.approx(expected)


def test_error_of_many_labels_is_that_of_leaving_out_rows() -> None:
    random, labels_, rows = np.random.default_rng(6), 15, 1_500
    truth = random.integers(0, labels_, rows)
    guess = np.where(random.random(rows) < 0.7, truth, random.integers(0, labels_, rows))
    table = np.zeros((labels_, labels_))
    np.add.at(table, (truth, guess), 1)

    def f1(counts: Any) -> float:
        return float((2 * np.diag(counts) / (counts.sum(axis=0) + counts.sum(axis=1))).mean())

    changes = np.zeros_like(table)
    for pair in zip(*np.nonzero(table), strict=True):
        without = table.copy()
        without[pair] -= 1
        changes[pair] = f1(table) - f1(without)
    variance = (table * changes**2).sum() - (table * changes).sum() ** 2 / rows
    result = row(tf.f_meas(pl.DataFrame({"t": truth, "e": guess}), "t", "e", interval="auto"))
    assert result[".std_error"] == pytest.approx(math.sqrt(variance), rel=0.01)


def test_intervals_of_many_labels_take_little_memory() -> None:
    random, labels_, groups, rows = np.random.default_rng(7), 100, 20, 60_000
    truth = random.integers(0, labels_, rows)
    guess = np.where(random.random(rows) < 0.8, truth, random.integers(0, labels_, rows))
    data = pl.DataFrame({"t": truth, "e": guess, "g": random.integers(0, groups, rows)})
    tracemalloc.start()
    result = tf.f_meas(data, "t", "e", group_by="g", interval="auto")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result[".lower"].null_count() == 0
    assert peak < 200 * 2**20


# Units that are left out one at a time


def test_limits_of_a_mean_from_replicates_that_lack_one_unit_are_those_of_student() -> None:
    values = np.random.default_rng(1).normal(size=12)
    without = [np.delete(values, index).mean() for index in range(12)]
    one = np.ones(12)
    units = Units(
        np.zeros(12, dtype=np.int64), np.zeros(12, dtype=np.int64), np.arange(1, 13), one, one, one, np.full(12, 11.0)
    )
    results = np.array([values.mean(), *without])[:, None, None]
    lower, upper, error, _ = (float(own.item()) for own in units.limits(results, np.ones((1, 1)), 0.9))
    expected = values.std(ddof=1) / np.sqrt(12)
    assert error == pytest.approx(expected, rel=1e-12)
    half = stats.t.ppf(0.95, 11) * expected
    assert (lower, upper) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-9)
    # a result that no unit changes has not been seen to vary
    same = np.ones((13, 1, 1))
    assert np.isnan(units.limits(same, np.ones((1, 1)), 0.9)).all()


def test_variances_of_units_in_strata_add_up_and_outer_groups_stand_alone() -> None:
    random = np.random.default_rng(2)
    strata = [[random.normal(size=5), random.normal(size=8)], [random.normal(size=6)]]
    outer = np.repeat([0, 1], [13, 6])
    replicate = np.concatenate([np.arange(1, 14), np.arange(1, 7)])
    stratum = np.repeat([0, 1, 2], [5, 8, 6])
    sizes = np.array([5.0, 8.0, 6.0])[stratum]
    one = np.ones(19)

    def value(outer_group: int, lacking: int) -> float:
        """The sum of the means of the strata of an outer group, without one row; all rows if it is 0."""
        rows = np.concatenate(strata[outer_group])
        kept = np.arange(1, len(rows) + 1) != lacking
        ends = np.cumsum([0, *map(len, strata[outer_group])])
        return float(sum(rows[start:end][kept[start:end]].mean() for start, end in itertools.pairwise(ends)))

    results = np.array([[[value(0, lacking), value(1, lacking)]] for lacking in range(14)])
    units = Units(outer, stratum, replicate, one, one, one, sizes - 1)
    _, _, error, _ = units.limits(results, np.ones((1, 2)), 0.95)
    variances = [sum(rows.var(ddof=1) / len(rows) for rows in own) for own in strata]
    assert error[0].tolist() == pytest.approx(np.sqrt(variances).tolist(), rel=1e-9)
