"""Confidence sequences and e-processes, against plain arithmetic, and over 1,000 looks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tidyfair.inference.monitoring.confidence_sequences import DIFFERENCE, RATIO, Pair, Totals

if TYPE_CHECKING:
    from collections.abc import Callable

BETS = [8 / 2**index for index in range(13)]
WEIGHTS = [1 / (4 + (index - 5) ** 2) for index in range(13)]
THRESHOLD = math.log(2 / 0.05)


def log_e_value(total: float, rows: float, mean: float) -> float:
    """The mixture, term by term."""
    growth = [bet * total - rows * math.log(1 - mean + mean * math.exp(bet)) for bet in BETS]
    terms = [weight * math.exp(term - max(growth)) for weight, term in zip(WEIGHTS, growth, strict=True)]
    return max(growth) + math.log(math.fsum(terms) / math.fsum(WEIGHTS))


def log_e_value_of_pair(one: tuple[float, float], other: tuple[float, float], mean: float, other_mean: float) -> float:
    total, rows = other
    return log_e_value(*one, mean) + log_e_value(rows - total, rows, 1 - other_mean)


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low


def totals(total: float, rows: float) -> Totals:
    return Totals(np.array([float(total)]), np.array([float(rows)]))


@pytest.mark.parametrize(("total", "rows"), [(0, 5), (3, 10), (9.5, 10), (60, 400), (0, 0)])
def test_e_value_equals_plain_mixture_of_bets(total: float, rows: float) -> None:
    for mean in (0.0, 0.05, 0.3, 0.9, 1.0):
        found = totals(total, rows).log_e_value(np.array([mean])).item()
        assert found == pytest.approx(log_e_value(total, rows, mean), abs=1e-10)


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_bets_cannot_be_expected_to_win(rows: int) -> None:
    total = np.arange(rows + 1.0)
    for mean in (0.02, 0.3, 0.8):
        chance = np.array(
            [math.comb(rows, hits) * mean**hits * (1 - mean) ** (rows - hits) for hits in range(rows + 1)]
        )
        own = np.exp(Totals(total, np.full(rows + 1, float(rows))).log_e_value(np.full(rows + 1, mean)))
        assert (chance * own).sum() == pytest.approx(1)
        # against larger means they lose
        larger = np.exp(Totals(total, np.full(rows + 1, float(rows))).log_e_value(np.full(rows + 1, mean + 0.1)))
        assert (chance * larger).sum() < 1


def test_bets_on_values_between_the_ends_win_less_than_on_the_ends() -> None:
    # by convexity: values of 0.5 in place of half zeros and half ones, in a single row
    for mean in (0.2, 0.5):
        ends = (1 - mean) * math.exp(log_e_value(0, 1, mean)) + mean * math.exp(log_e_value(1, 1, mean))
        assert ends == pytest.approx(1)
        assert np.exp(totals(mean, 1).log_e_value(np.array([mean]))).item() < 1


@pytest.mark.parametrize(("total", "rows"), [(0, 5), (5, 5), (3, 10), (60, 400), (9.25, 30), (20_000, 100_000)])
def test_limits_are_where_the_e_value_crosses_the_threshold(total: float, rows: float) -> None:
    lower = totals(total, rows).lower_limit(np.array([THRESHOLD])).item()

    def excess(mean: float) -> float:
        return totals(total, rows).log_e_value(np.array([mean])).item() - THRESHOLD

    expected = 0.0 if excess(0.0) <= 0 else crossing(excess, 0.0, 1.0)
    assert lower == pytest.approx(expected, abs=1e-9)
    upper = 1 - totals(rows - total, rows).lower_limit(np.array([THRESHOLD])).item()
    assert lower <= total / rows <= upper


def test_limits_without_rows_say_nothing() -> None:
    nothing = totals(0, 0)
    threshold = np.array([THRESHOLD])
    assert nothing.lower_limit(threshold).item() == 0
    assert Pair(nothing, nothing).lower_limit(DIFFERENCE, threshold).item() == -1
    assert Pair(nothing, totals(5, 10)).lower_limit(RATIO, threshold).item() == 0


@pytest.mark.parametrize(
    ("one", "other"), [((30, 100), (20, 100)), ((8, 10), (1, 200)), ((0, 4), (40, 60)), ((300, 900), (15, 50))]
)
def test_limits_of_pairs_equal_a_search_over_both_means(one: tuple[int, int], other: tuple[int, int]) -> None:
    means = np.linspace(0, 1, 801)
    logarithms = [
        np.array([log_e_value(*one, mean) for mean in means])[:, None],
        np.array([log_e_value(other[1] - other[0], other[1], 1 - mean) for mean in means])[None, :],
    ]
    is_inside = logarithms[0] + logarithms[1] < THRESHOLD
    pair, threshold = Pair(totals(*one), totals(*other)), np.array([THRESHOLD])
    difference = (means[:, None] - means[None, :])[is_inside].min()
    assert pair.lower_limit(DIFFERENCE, threshold).item() == pytest.approx(difference, abs=2 / 800)
    assert pair.lower_limit(DIFFERENCE, threshold).item() <= difference
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nanmin((means[:, None] / means[None, :])[is_inside])
    assert pair.lower_limit(RATIO, threshold).item() <= ratio
    assert pair.lower_limit(RATIO, threshold).item() == pytest.approx(ratio, rel=0.05, abs=0.01)


def test_e_value_of_a_difference_is_the_smallest_of_all_means_with_it() -> None:
    one, other = (30, 100), (20, 140)
    pair = Pair(totals(*one), totals(*other))
    for difference in (-0.2, 0.0, 0.1, 0.6):
        means = np.linspace(max(difference, 0), min(1, 1 + difference), 4001)
        smallest = min(log_e_value_of_pair(one, other, mean, mean - difference) for mean in means)
        assert pair.log_e_value(DIFFERENCE, difference).item() == pytest.approx(smallest, abs=1e-4)
    smallest = min(log_e_value_of_pair(one, other, 0.8 * mean, mean) for mean in np.linspace(0, 1, 4001))
    assert pair.log_e_value(RATIO, 0.8).item() == pytest.approx(smallest, abs=1e-4)
    assert pair.log_e_value(RATIO, math.inf).item() < 0


def test_searches_end_at_many_rows() -> None:
    random = np.random.default_rng(1)
    rows = random.integers(0, 10**9, (40, 2)).astype(float)
    rows[:10, 1] = random.integers(0, 9, 10)
    total = random.binomial(rows.astype(np.int64), random.random((40, 2)) ** 3).astype(float)
    pair = Pair(Totals(total[:, 0], rows[:, 0]), Totals(total[:, 1], rows[:, 1]))
    threshold = np.full(40, THRESHOLD)
    lower = pair.lower_limit(DIFFERENCE, threshold)
    for index in np.flatnonzero(lower > -1).tolist():
        own = Pair(totals(*pair_of(pair.one, index)), totals(*pair_of(pair.other, index)))
        # slopes are of the order of the rows, and limits exact to 1e-10
        assert own.log_e_value(DIFFERENCE, lower[index]).item() == pytest.approx(THRESHOLD, abs=0.05)


def pair_of(sums: Totals, index: int) -> tuple[float, float]:
    return sums.total[index], sums.rows[index]


def _beta_binomial_width(rows: float, rate: float) -> float:
    """Width of the confidence sequence of the beta-binomial mixture with Jeffreys' prior, in closed form."""

    def log_beta(one: float, other: float) -> float:
        return math.lgamma(one) + math.lgamma(other) - math.lgamma(one + other)

    total = rate * rows
    constant = log_beta(total + 0.5, rows - total + 0.5) - log_beta(0.5, 0.5) - math.log(20)

    def excess(mean: float) -> float:
        return constant - total * math.log(mean) - (rows - total) * math.log1p(-mean)

    return 1 - crossing(lambda distance: excess(1 - distance), 1e-12, 1 - rate) - crossing(excess, 1e-12, rate)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_limits_are_about_as_narrow_as_those_of_the_beta_binomial_mixture(rate: float) -> None:
    for rows, most in ((100, 1.04), (1_000, 0.96), (10_000, 0.9), (1_000_000, 0.87)):
        own = totals(rate * rows, rows)
        threshold = np.array([THRESHOLD])
        width = 1 - own.reversed.lower_limit(threshold) - own.lower_limit(threshold)
        assert width.item() < most * _beta_binomial_width(rows, rate)


def _streams(kind: str, streams: int, looks: int) -> tuple[Any, Any, Any]:
    """Sums, rows and the true mean so far, of streams of batches."""
    random, number = np.random.default_rng(3), np.arange(1.0, looks + 1)
    if kind == "a rate":
        rate, batch = np.full(looks, 0.1), np.full(looks, 20)
    elif kind == "a rate that drifts":
        rate, batch = 0.2 + 0.15 * np.sin(number / 60), np.full(looks, 50)
    else:
        # large batches follow small ones
        rate, batch = np.full(looks, 0.5), np.resize([1, 1, 1, 400], looks)
    total = random.binomial(batch, rate, (streams, looks)).cumsum(axis=1).astype(float)
    rows = batch.cumsum().astype(float)
    truth = (rate * batch).cumsum() / rows
    return total, np.broadcast_to(rows, total.shape), np.broadcast_to(truth, total.shape)


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["a rate", "a rate that drifts", "uneven batches"])
def test_limits_are_hardly_ever_wrong_in_1000_looks(kind: str) -> None:
    total, rows, truth = _streams(kind, 1_000, 1_000)
    sums = Totals(total, rows)
    wrong = (sums.log_e_value(truth) >= THRESHOLD) | (sums.reversed.log_e_value(1 - truth) >= THRESHOLD)
    # 5 %, and three standard errors of it
    assert wrong.any(axis=1).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1_000)
    # intervals for one look are wrong at some look in many streams
    error = np.sqrt(truth * (1 - truth) / rows)
    assert (abs(total / rows - truth) > 1.96 * error)[:, 10:].any(axis=1).mean() > 0.3


@pytest.mark.simulation
def test_differences_and_ratios_are_hardly_ever_wrong_in_1000_looks() -> None:
    random, rates, batch = np.random.default_rng(4), np.array([0.3, 0.2]), np.array([30, 12])
    rows = np.broadcast_to(batch * np.arange(1, 1_001)[:, None], (1_000, 1_000, 2)).astype(float)
    total = random.binomial(batch, rates, rows.shape).cumsum(axis=1).astype(float)
    for one, other in ((0, 1), (1, 0)):
        sums = [Totals(total[..., group], rows[..., group]) for group in (one, other)]
        at_truth = sums[0].log_e_value(np.full((1_000, 1_000), rates[one]))
        at_truth = at_truth + sums[1].reversed.log_e_value(np.full((1_000, 1_000), 1 - rates[other]))
        # elsewhere the smallest of all means with the true difference, or ratio, is below the threshold too
        some = at_truth >= THRESHOLD
        pair = Pair(*(Totals(group.total[some], group.rows[some]) for group in sums))
        for found in (
            pair.log_e_value(DIFFERENCE, rates[one] - rates[other]),
            pair.log_e_value(RATIO, rates[one] / rates[other]),
        ):
            wrong = np.zeros(some.shape, dtype=bool)
            wrong[some] = found >= THRESHOLD
            assert wrong.any(axis=1).mean() <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1_000)
    # and yet they tell the rates from each other
    last = Pair(*(Totals(total[:, -1, group], rows[:, -1, group]) for group in (0, 1)))
    assert (last.lower_limit(DIFFERENCE, np.full(1_000, THRESHOLD)) > 0).all()
