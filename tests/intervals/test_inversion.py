"""Limits of spreads and of a user's own distances hold the truth, and invert their tests."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from lending_rates import ends
from public_names import public

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


RUNS = 60
VALUE = pl.col(".estimate")
RANGE = tf.new_aggregate(VALUE.max() - VALUE.min(), equal=0)
QUOTIENT = tf.new_aggregate(VALUE.min() / VALUE.max(), equal=1)


def some_people(rates: Sequence[float], rows: Sequence[int], random: np.random.Generator) -> pl.DataFrame:
    """Decisions about groups of these sizes, drawn anew for each of `RUNS`."""
    size = sum(rows)
    rate = np.tile(np.repeat(rates, rows), RUNS)
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(RUNS), size),
            "g": np.tile(np.repeat(np.arange(len(rows)), rows), RUNS),
            "e": random.random(RUNS * size) < rate,
        }
    )


@pytest.mark.simulation
@pytest.mark.parametrize("rows", [[160] * 6, [10, 20, 100, 300, 300, 300]], ids=["even", "rare"])
def test_custom_distance_intervals_of_equal_groups_cover_equality(rows: list[int]) -> None:
    random, out = np.random.default_rng(1), dict.fromkeys(["own", "difference", "own ratio", "ratio"], 0)
    compared = dict(zip(out, [RANGE, tf.difference(), QUOTIENT, tf.ratio()], strict=True))
    of_all = tf.metric_set(*(tf.demographic_parity("g", aggregate=item, name=name) for name, item in compared.items()))
    people = some_people([0.4] * 6, rows, random)
    result = of_all(people, estimate="e", interval="auto", times=200, group_by="run")
    assert len(result) == len(out) * RUNS
    for name, estimate, lower, upper in result.select(".metric", ".estimate", ".lower", ".upper").rows():
        assert lower <= estimate <= upper
        out[name] += lower > 0 if "ratio" not in name else upper < 1
    assert (out["own"], out["own ratio"]) <= (out["difference"], out["ratio"])


@pytest.mark.simulation
@pytest.mark.parametrize("rates", [[0.3, 0.3, 0.3, 0.5, 0.5, 0.5], [0.2, 0.3, 0.5, 0.6]], ids=["tied", "apart"])
def test_spread_intervals_cover_the_truth(rates: list[float]) -> None:
    random, rows = np.random.default_rng(2), [200] * len(rates)
    middle = float(np.mean(rates))
    truth = {"range": max(rates) - min(rates), "sd": float(np.std(rates)), "far": max(abs(p - middle) for p in rates)}
    aggregates = dict(zip(truth, (RANGE, tf.aggregates.standard_deviation(), tf.difference(to="overall")), strict=True))
    spreads = tf.metric_set(
        *(tf.demographic_parity("g", aggregate=item, name=name) for name, item in aggregates.items())
    )
    wrong, above = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    people = some_people(rates, rows, random)
    result = spreads(people, estimate="e", interval="auto", times=200, group_by="run")
    assert len(result) == len(truth) * RUNS
    methods = dict(result.select(".metric", ".method").rows())
    assert methods == {"range": "test_inversion", "sd": "test_inversion", "far": "pairwise"}
    for name, lower, upper in result.select(".metric", ".lower", ".upper").rows():
        wrong[name] += not lower <= truth[name] <= upper
        above[name] += lower > 0
    # five of a hundred, give or take what 60 samples do
    assert max(wrong.values()) <= 8
    # and it is seen that groups differ
    assert min(above.values()) >= 30


def inverted(
    distance: Callable[[Any], Any], values: Any, errors: Any, weights: Any, draws: int, random: np.random.Generator
) -> tuple[float, float]:
    """The ends of a distance of values at which the observed one is a quantile, over spreads in two patterns."""
    middle, observed = np.average(values, weights=weights), float(distance(values))
    away = values - middle
    ends_of_patterns: list[tuple[float, float]] = []
    # what chance alone may add is left out of the second (Breiman, 1995)
    sparse = away * np.maximum(1 - 2 * math.log(len(values)) * (errors / away) ** 2, 0)
    for pattern in (away, sparse):
        spread = math.sqrt((pattern**2).mean())
        unit = pattern / spread if spread else away / math.sqrt((away**2).mean())
        reach = math.sqrt((away**2).mean()) + 4 * math.sqrt((errors**2).mean())
        lows, highs = [], []
        spreads = np.linspace(0, reach, 41)
        for size in spreads:
            drawn = distance(middle + size * unit + errors * random.standard_normal((draws, len(values))))
            low, high = np.quantile(drawn, [0.025, 0.975])
            lows.append(low)
            highs.append(high)
        least = 0.0 if observed <= highs[0] else float(np.interp(observed, highs, spreads))
        most = float(np.interp(observed, lows, spreads))
        ends_of_patterns.append((float(distance(middle + least * unit)), float(distance(middle + most * unit))))
    lower, upper = zip(*ends_of_patterns, strict=True)
    return min(*lower, observed), max(*upper, observed)


DISTANCES = {
    "sd": (tf.aggregates.standard_deviation(), lambda v: np.std(v, axis=-1)),
    "range": (RANGE, lambda v: np.ptp(v, axis=-1)),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_of_several_groups_invert_tests_along_their_spread(name: str) -> None:
    random, rows = np.random.default_rng(5), [300, 500, 400]
    data = pl.DataFrame({"g": np.repeat([0, 1, 2], rows), "p": random.normal(size=1_200)})
    data = data.with_columns(pl.col("p") + pl.col("g") * 0.3)
    aggregate, distance = DISTANCES[name]
    result = tf.new_groupwise_metric(tf.mean_prediction, name, aggregate)("g")(data, estimate="p", interval="auto")
    parts = [data.filter(g=group)["p"].to_numpy() for group in range(3)]
    values = np.array([part.mean() for part in parts])
    errors = np.array([part.std(ddof=1) / math.sqrt(len(part)) for part in parts])
    expected = inverted(distance, values, errors, rows, 40_000, random)
    assert result[".method"].item() == "test_inversion"
    # 400 draws know a quantile to a seventh of a standard error, and nine spreads are joined by lines
    assert ends(result) == pytest.approx(expected, abs=3 / 7 * float(errors.max()))
    assert 0 < result[".lower"].item() < result[".estimate"].item() < result[".upper"].item()


def test_standard_deviation_of_means_has_lower_end() -> None:
    random = np.random.default_rng(5)
    data = pl.DataFrame({"p": random.normal(size=1_200) + [0, 0, 1] * 400, "g": ["a", "b", "c"] * 400})
    spread = tf.new_groupwise_metric(tf.mean_prediction, "spread", tf.aggregates.standard_deviation())("g")
    result = spread(data, estimate="p", interval="auto", times=200).row(0, named=True)
    assert 0.2 < result[".lower"] < result[".estimate"] < result[".upper"]


@pytest.mark.parametrize(
    "name", ["independence", "separation", "kl_divergence", "mutual_information", "kolmogorov_smirnov", "abroca"]
)
def test_between_group_distances_have_no_end_at_equality(name: str) -> None:
    random, metric = np.random.default_rng(4), public(name)("g")
    rows = 300
    people = pl.DataFrame(
        {
            "t": random.integers(0, 2, rows), "e": random.integers(0, 2, rows), "s": random.random(rows),
            "g": random.choice(list("abc"), rows),
        }
    )  # fmt: skip
    call: dict[str, Any] = {"probs": "s"} if metric.kind == "prob" else {"estimate": "e"}
    for result in (
        metric(people, "t", **call, interval="auto", times=100),
        metric.by_group(people, "t", **call, interval="auto", times=100).drop_nulls(".estimate"),
    ):
        assert result[".lower"].null_count() == len(result)
        assert (result[".upper"] >= result[".estimate"]).all()
        assert result[".method"].str.ends_with(", upper end").all()
    (verdict,) = tf.check(metric, below=1e-4)(people, "t", **call, times=100)[".verdict"]
    assert verdict == "not enough evidence"
    most = min(5, metric.range[1])
    assert tf.check(metric, below=most)(people, "t", **call, times=100)[".verdict"].item() == "pass"


def test_spread_of_groups_that_may_be_equal_reaches_equality() -> None:
    hits = np.array([30, 33, 29, 35])
    counts = np.stack([hits, 100 - hits], axis=1).ravel()
    people = pl.DataFrame({"g": np.repeat(list("abcd"), 2), "e": [1, 0] * 4, "n": counts})
    for aggregate, equality in ((tf.aggregates.standard_deviation(), 0), (RANGE, 0), (QUOTIENT, 1)):
        lower, upper = ends(
            tf.demographic_parity("g", aggregate=aggregate)(
                people, estimate="e", frequency_weights="n", interval="auto"
            )
        )
        assert equality in (lower, upper)
        assert lower < upper
