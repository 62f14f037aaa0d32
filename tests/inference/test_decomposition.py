"""Differences of rates split into composition and rates, against published tables and plain arithmetic."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tidyfair as tf
from tidyfair.datasets import lending
from tidyfair.inference import decompose

CALL: dict[str, Any] = {"estimate": "p", "frequency_weights": "n"}


def counted(keys: dict[str, Any], rows: Any, hits: Any) -> pl.DataFrame:
    """The rows of cells, and how many of them are hits."""
    frame, rows, hits = pl.DataFrame(keys), np.asarray(rows), np.asarray(hits)
    parts = [frame.with_columns(p=pl.lit(label), n=pl.Series(n)) for label, n in ((1, hits), (0, rows - hits))]
    return pl.concat(parts)


def random_cells(seed: int, shape: tuple[int, ...] = (2, 3, 2, 2)) -> tuple[Any, Any]:
    """Rows and hits of two groups in the cells of some features."""
    random = np.random.default_rng(seed)
    rows = random.integers(1, 40, shape)
    return rows, random.binomial(rows, random.uniform(0.2, 0.8, shape))


def frame_of(rows: Any, hits: Any) -> pl.DataFrame:
    """The same as a frame, with the group as `g` and the features as `f1`, `f2` …"""
    names = ["g", *(f"f{number}" for number in range(1, rows.ndim))]
    keys = dict(zip(names, (index.ravel() for index in np.indices(rows.shape)), strict=True))
    return counted(keys, rows.ravel(), hits.ravel())


def components(result: pl.DataFrame) -> dict[str, float]:
    return dict(result.select(".component", ".estimate").rows())


# Das Gupta (1993), Standardization and decomposition of rates: a user's manual, tables 5.1 and 5.3


def test_headship_rates_of_das_gupta() -> None:
    size = [12.9, 10.9, 9.5, 8.0, 7.8, 8.4, 8.6, 7.8, 7.0, 5.9, 4.7, 3.6, 4.9]
    size += [10.1, 11.2, 11.6, 10.9, 9.4, 7.7, 6.3, 6.0, 6.3, 5.9, 5.1, 4.0, 5.5]
    rate = [1.9, 25.8, 45.7, 49.6, 51.2, 51.6, 51.8, 54.9, 58.7, 60.4, 62.8, 66.6, 66.8]
    rate += [2.2, 24.3, 45.8, 52.5, 56.1, 55.6, 56.0, 57.4, 57.2, 61.2, 63.9, 68.6, 72.2]
    keys = {"year": np.repeat([1970, 1985], 13), "age": np.tile(np.arange(13), 2)}
    rows, hits = np.array(size) * 10**6, np.array(size) * np.array(rate) * 10**4
    data = counted(keys, rows.round().astype(int), hits.round().astype(int))
    result = decompose(tf.selection_rate, between="year", by="age")(data, **CALL)
    in_percent = {name: 100 * value for name, value in components(result).items()}
    assert in_percent == pytest.approx({"age": 1.2269, "rates": 1.7403, "total": 2.9672}, abs=1e-4)


def test_death_rates_of_das_gupta_by_age_and_race() -> None:
    size = [3041, 11577, 27450, 32711, 35480, 27411, 19555, 19795, 15254, 8022, 2472]
    size += [707, 2692, 6473, 6841, 6547, 4352, 3034, 2540, 1749, 804, 236]
    size += [2968, 11484, 34614, 30992, 21983, 20314, 20928, 16897, 11339, 5720, 1315]
    size += [535, 2162, 6120, 4781, 3096, 2718, 2363, 1767, 1149, 448, 117]
    rate = [9.163, 0.462, 0.248, 0.929, 1.084, 1.810, 4.715, 12.187, 27.728, 64.068, 157.570]
    rate += [17.208, 0.738, 0.328, 1.103, 2.045, 3.724, 8.052, 17.812, 34.128, 68.276, 125.161]
    rate += [18.469, 0.751, 0.391, 1.146, 1.287, 2.672, 6.636, 15.691, 34.723, 79.763, 176.837]
    rate += [36.993, 1.352, 0.541, 2.040, 3.523, 6.746, 12.967, 24.471, 45.091, 74.902, 123.205]
    keys = {
        "year": np.repeat([1985, 1970], 22),
        "race": np.tile(np.repeat(["white", "other"], 11), 2),
        "age": np.tile(np.arange(11), 4),
    }
    data = counted(keys, np.array(size) * 10**6, np.round(np.array(size) * np.array(rate) * 1_000).astype(int))
    result = decompose(tf.selection_rate, between="year", by=["age", "race"])(data, **CALL)
    per_thousand = {name: 1_000 * value for name, value in components(result).items()}
    published = {"age": 1.5217347, "race": 0.0197749, "rates": -2.2277254, "total": -0.6862158}
    assert per_thousand == pytest.approx(published, abs=2e-7)


# Plain arithmetic


def test_one_feature_is_kitagawas_decomposition() -> None:
    rows, hits = random_cells(1, (2, 4))
    share, rate = rows / rows.sum(axis=1, keepdims=True), hits / rows
    result = components(decompose(tf.selection_rate, between="g", by="f1")(frame_of(rows, hits), **CALL))
    composition = float(((share[1] - share[0]) * (rate[0] + rate[1]) / 2).sum())
    of_rates = float(((rate[1] - rate[0]) * (share[0] + share[1]) / 2).sum())
    assert result == pytest.approx({"f1": composition, "rates": of_rates, "total": composition + of_rates})


def plain(rows: Any, hits: Any) -> list[float]:
    """The composition of each feature by loops over cells and over all orders of features and of factors."""
    features = range(1, rows.ndim)
    rate = hits / rows
    composition = np.zeros(len(features))
    for cell in itertools.product(*map(range, rows.shape[1:])):
        factor = np.ones((2, len(features)))
        for group, feature in itertools.product((0, 1), features):
            logs: list[float] = []
            for order in itertools.permutations(features):
                before = order[: order.index(feature)]
                fixed = [slice(None) if f not in before else cell[f - 1] for f in features]
                among = rows[group][tuple(fixed)].sum()
                fixed[feature - 1] = cell[feature - 1]
                logs.append(math.log(rows[group][tuple(fixed)].sum() / among))
            factor[group, feature - 1] = math.exp(float(np.mean(logs)))
        assert np.allclose(factor.prod(axis=1), rows[(slice(None), *cell)] / rows.sum(axis=tuple(features)))
        orders = list(itertools.permutations(range(len(features))))
        for order in orders:
            for place, number in enumerate(order):
                others = factor[1, list(order[:place])].prod() * factor[0, list(order[place + 1 :])].prod()
                change = (factor[1, number] - factor[0, number]) * others
                composition[number] += rate[(slice(None), *cell)].mean() * change / len(orders)
    return composition.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_several_features_are_the_means_over_all_orders_and_add_up(seed: int) -> None:
    rows, hits = random_cells(seed)
    data = frame_of(rows, hits)
    result = decompose(tf.selection_rate, between="g", by=["f1", "f2", "f3"])(data, **CALL)
    assert result[".component"].to_list() == ["f1", "f2", "f3", "rates", "total"]
    assert result[".estimate"].to_list()[:3] == pytest.approx(plain(rows, hits))
    assert result[".estimate"][:-1].sum() == pytest.approx(result[".estimate"][-1], abs=1e-14)
    crossed = decompose(tf.selection_rate, between="g", by=["f3", "f1", "f2"])(data, **CALL)
    assert components(crossed) == pytest.approx(components(result))
    backwards = decompose(tf.selection_rate, between="g", by=["f1", "f2", "f3"], to=1)(data, **CALL)
    assert backwards[".estimate"].to_list() == pytest.approx((-result[".estimate"]).to_list())


def test_a_cell_that_one_group_lacks_is_composition() -> None:
    data = counted({"g": list("aabb"), "f": list("xyxz")}, [60, 40, 50, 50], [30, 10, 20, 45])
    result = components(decompose(tf.selection_rate, between="g", by="f")(data, **CALL))
    # in x the mean rate of 0.45, in y and z the one that there is
    expected = {"f": -0.1 * 0.45 - 0.4 * 0.25 + 0.5 * 0.9, "rates": (0.4 - 0.5) * 0.55, "total": 0.25}
    assert result == pytest.approx(expected)


def test_conditional_rates_have_the_composition_of_their_denominator() -> None:
    data = lending()
    of_sens = decompose(tf.sens, between="sex", by=["race", "age_band"])
    with_event = data.filter(pl.col("repaid") == "yes")
    of_rate = decompose(tf.selection_rate, between="sex", by=["race", "age_band"])
    result = of_sens(data, "repaid", "approved", pos_label="yes")
    expected = of_rate(with_event, estimate="approved", pos_label="yes")
    assert_frame_equal(result.drop(".metric"), expected.drop(".metric"))


# Intervals


def test_total_is_the_difference_that_pairs_have() -> None:
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
    result = decompose(tf.selection_rate, between="sex", by="race", to="male")(lending(), **call)
    (total,) = result.filter(pl.col(".component") == "total").select(".estimate", ".lower", ".upper", ".n").rows()
    (pair,) = tf.inference.pairwise(tf.demographic_parity("sex"))(lending(), **call).rows(named=True)
    assert (pair[".group"], pair[".other"]) == ("female", "male")
    assert total == pytest.approx((pair[".disparity"], pair[".lower"], pair[".upper"], pair[".n"]))
    assert pair[".method"] == result[".method"][-1] == "newcombe"
    assert set(result[".method"][:-1]) == {"jackknife"}


@pytest.mark.simulation
def test_standard_errors_are_those_of_samples_drawn_again() -> None:
    rows, hits = random_cells(4)
    rows, hits = 8 * rows, 8 * hits
    test = decompose(tf.selection_rate, between="g", by=["f1", "f2", "f3"])
    result = test(frame_of(rows, hits), **CALL)
    random, cells = np.random.default_rng(5), np.stack([hits, rows - hits])
    samples: list[pl.DataFrame] = []
    for draw in range(400):
        drawn = random.multinomial(cells.sum(), cells.ravel() / cells.sum()).reshape(cells.shape)
        samples.append(frame_of(drawn.sum(axis=0), drawn[0]).with_columns(draw=draw))
    again = test(pl.concat(samples), **CALL, group_by="draw")
    errors = again.group_by(".component", maintain_order=True).agg(pl.std(".estimate"))[".estimate"]
    assert result[".std_error"].to_list() == pytest.approx(errors.to_list(), rel=0.15)
    wider = decompose(tf.selection_rate, between="g", by=["f1", "f2", "f3"])
    half, half_wider = (
        table.select(pl.col(".upper") - pl.col(".estimate")).to_series()[0]
        for table in (result, wider(frame_of(rows, hits), **CALL, conf_level=0.99))
    )
    assert (half, half_wider) == pytest.approx((1.959964 * result[".std_error"][0], 2.575829 * result[".std_error"][0]))


def test_clusters_are_left_out_one_at_a_time() -> None:
    random = np.random.default_rng(6)
    data = pl.DataFrame(
        {"person": random.integers(0, 12, 300), "g": random.choice(["a", "b"], 300), "f": random.integers(0, 3, 300)}
    ).with_columns(p=(random.random(300) < 0.5).astype(int))
    test = decompose(tf.selection_rate, between="g", by="f")
    result = test(data, estimate="p", cluster="person")
    without = [test(data.filter(pl.col("person") != person), estimate="p")[".estimate"] for person in range(12)]
    values = np.array(without)
    errors = np.sqrt(((values - values.mean(axis=0)) ** 2).sum(axis=0) * 11 / 12)
    assert result[".std_error"].to_list() == pytest.approx(errors.tolist())
    assert result[".estimate"].to_list() == pytest.approx(test(data, estimate="p")[".estimate"].to_list())
    half = (result[".upper"] - result[".estimate"]).to_list()
    assert half == pytest.approx((2.200985 * errors).tolist(), rel=1e-5)


@pytest.mark.simulation
def test_intervals_hold_the_components_of_the_population() -> None:
    rows, hits = random_cells(9, (2, 3, 2))
    test = decompose(tf.selection_rate, between="g", by=["f1", "f2"])
    truth = components(test(frame_of(rows, hits), **CALL))
    random, share = np.random.default_rng(2), np.stack([hits, rows - hits]) / rows.sum()
    samples = [random.multinomial(600, share.ravel()).reshape(share.shape) for _ in range(500)]
    data = pl.concat(frame_of(drawn.sum(axis=0), drawn[0]).with_columns(run=run) for run, drawn in enumerate(samples))
    result = test(data, **CALL, group_by="run")
    for name, value in truth.items():
        of_runs = result.filter(pl.col(".component") == name)
        covered = of_runs.select(pl.lit(value).is_between(".lower", ".upper")).to_series().mean()
        assert covered == pytest.approx(0.95, abs=0.03), name


# Calls


def test_each_group_is_compared_with_the_reference_in_each_outer_group() -> None:
    call: dict[str, Any] = {"estimate": "approved", "pos_label": "yes"}
    result = decompose(tf.selection_rate, between="race", by="sex", to="White")(lending(), **call, group_by="fold")
    assert result.columns[:7] == ["fold", ".metric", ".by", ".group", ".other", ".n", ".n_other"]
    assert result.columns[-4:] == [".component", ".estimate", ".lower", ".upper"]
    assert set(result[".other"]) == {"White"}
    second = result.filter(pl.col("fold") == 2).drop("fold")
    alone = decompose(tf.selection_rate, between="race", by="sex", to="White")(
        lending().filter(pl.col("fold") == 2), **call
    )
    assert_frame_equal(second, alone)
    by_scores = decompose(tf.selection_rate, between="sex", by="race")(lending(), probs="score", threshold=0.5)
    rates = tf.demographic_parity("sex").by_group
    values = dict(rates(lending(), probs="score", threshold=0.5).select(".group", ".estimate").rows())
    assert by_scores[".estimate"][-1] == pytest.approx(values["male"] - values["female"])


def test_unknown_groups_are_not_compared_and_unknown_features_are_a_value() -> None:
    data = counted(
        {"g": ["a", "a", "b", "b", None], "f": ["x", None, "x", None, "x"]}, [20, 10, 15, 20, 30], [10, 3, 5, 12, 30]
    )
    with pytest.warns(tf.errors.UnknownGroupWarning, match="g is unknown in 30 of 95 rows"):
        result = decompose(tf.selection_rate, between="g", by="f")(data, **CALL)
    known = decompose(tf.selection_rate, between="g", by="f")(
        data.filter(pl.col("g").is_not_null()).with_columns(pl.col("f").fill_null("none")), **CALL
    )
    assert_frame_equal(result, known)


def test_one_group_has_nothing_to_be_compared_with() -> None:
    data = counted({"g": ["a", "b"], "f": [1, 1]}, [9, 9], [3, 4])
    test = decompose(tf.selection_rate, between="g", by="f")
    alone = test(data.filter(pl.col("g") == "a"), **CALL)
    assert alone.is_empty()
    assert alone.schema == test(data, **CALL).schema
    never = test(counted({"g": ["a", "b"], "f": [1, 1]}, [9, 9], [0, 0]), **CALL)
    assert never[".std_error"].to_list() == [None, None, None]
    assert never[".lower"].to_list()[:2] == [None, None]


def test_bad_input_says_what_to_write() -> None:
    make: Any = decompose
    with pytest.raises(tf.errors.ArgumentError, match=r"decompose\(\) takes a rate of labels, such as"):
        make(tf.f_meas, between="g", by="f")
    with pytest.raises(tf.errors.ArgumentError, match=r"decompose\(\) takes a metric, such as fall_out"):
        make(tf.demographic_parity("g"), between="g", by="f")
    with pytest.raises(tf.errors.ArgumentError, match="'g' is given more than once in `between` and `by`"):
        make(tf.selection_rate, between="g", by=["g", "f"])
    with pytest.raises(tf.errors.ArgumentError, match="'total' is the name of a component of the result"):
        make(tf.selection_rate, between="g", by="total")
    with pytest.raises(tf.errors.ArgumentError, match="`by` takes 1 to 6 columns, not 0"):
        make(tf.selection_rate, between="g", by=[])
    data = counted({"g": ["a", "b"], "f": [1, 1]}, [9, 9], [3, 4])
    with pytest.raises(tf.errors.ArgumentError, match="`to='c'` is not a group of 'g': 'a', 'b'"):
        make(tf.selection_rate, between="g", by="f", to="c")(data, **CALL)
    with pytest.raises(tf.errors.TidyfairError, match="'dept'"):
        make(tf.selection_rate, between="g", by="dept")(data, **CALL)
    with pytest.raises(
        tf.errors.TidyfairError, match="'f' already defines groups, and groups cannot serve as clusters"
    ):
        make(tf.selection_rate, between="g", by="f")(data, **CALL, cluster="f")
    with pytest.raises(tf.errors.ArgumentError, match="case_weights"):
        make(tf.selection_rate, between="g", by="f")(data, estimate="p", case_weights="n")


def test_an_outer_group_without_the_reference_has_no_numbers() -> None:
    rows, hits = random_cells(3)
    first = frame_of(rows, hits).with_columns(fold=pl.lit(1))
    second = first.filter(pl.col("g") == 1).with_columns(fold=pl.lit(2))
    call: dict[str, Any] = {"between": "g", "by": ["f1", "f2", "f3"], "to": 0}
    both = decompose(tf.selection_rate, **call)(pl.concat([first, second]), **CALL, group_by="fold")
    alone = decompose(tf.selection_rate, **call)(first, **CALL)
    assert_frame_equal(both.filter(fold=1).drop("fold"), alone)
    lacking = both.filter(fold=2)
    assert lacking[".component"].to_list() == alone[".component"].to_list()
    assert lacking[".estimate"].null_count() == len(lacking)
    assert set(lacking.select(".other", ".n_other").rows()) == {("0", 0)}
    changed: dict[str, Any] = call | {"to": 7}
    with pytest.raises(tf.errors.ArgumentError, match="`to=7` is not a group of 'g'"):
        decompose(tf.selection_rate, **changed)(first, **CALL)


def test_the_notice_of_unknown_groups_offers_no_option_that_is_not_there() -> None:
    rows, hits = random_cells(4)
    data = frame_of(rows, hits)
    unknown = data.head(2).with_columns(g=pl.lit(None, data.schema["g"]))
    with pytest.warns(tf.errors.UnknownGroupWarning, match=r"their groups not compared\.$"):
        decompose(tf.selection_rate, between="g", by="f1")(pl.concat([data, unknown]), **CALL)
