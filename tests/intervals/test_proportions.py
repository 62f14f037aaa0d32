"""Closed forms equal scipy and statsmodels, and score intervals invert their test."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chi2_contingency, fisher_exact, t
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from tidyfair.inference.contingency import chi_squared, fisher, likelihood_ratio
from tidyfair.intervals.proportions import (
    adjusted,
    clopper_pearson,
    difference_limits,
    katz,
    score_difference,
    score_ratio,
    student,
    student_limits,
    wilson,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

Z = NormalDist().inv_cdf(0.975)
STUDENT = {
    1.0: (1.0, 12.706204736174705, 636619772367581.34),
    1.3: (0.9095175281352082, 7.500529325562034, 260749284606.45459),
    2.5: (0.7850136829923011, 3.574654842003683, 1156606.4627048449),
    7.7: (0.7076786059797128, 2.3217367528308648, 208.51497502794812),
    35.0: (0.68156407804659, 2.030107928250343, 13.804767029804169),
    100.5: (0.6769387584774174, 1.9838506553357998, 9.5333122588733),
    1e4: (0.6745142844835924, 1.9602012398906263, 8.0400071479819757),
}
"""Quantiles by degrees of freedom, with half, 0.05 and 1e-15 beyond them, computed by mpmath with 40 digits."""
LAW = settings(deadline=None, max_examples=examples(150), database=None)


@st.composite
def samples(draw: st.DrawFn) -> tuple[int, int]:
    rows = draw(st.integers(1, 200))
    return draw(st.integers(0, rows)), rows


def arrays(*samples: tuple[int, int]) -> Any:
    return [np.array([float(item)]) for hits, rows in samples for item in (hits / rows, rows)]


def same(result: Any, expected: Any, *, tolerance: float = 1e-9) -> None:
    for mine, theirs in zip(result, expected, strict=True):
        assert float(mine[0]) == pytest.approx(float(theirs), rel=tolerance, abs=tolerance)


@LAW
@given(samples())
def test_wilson_and_clopper_pearson_equal_statsmodels(sample: tuple[int, int]) -> None:
    hits, rows = sample
    share, size = arrays(sample)
    same(wilson(share, size, Z), proportion_confint(hits, rows, method="wilson"))
    same(clopper_pearson(share, size, 0.025), proportion_confint(hits, rows, method="beta"))


@LAW
@given(samples(), samples())
def test_newcombe_interval_equals_statsmodels(one: tuple[int, int], other: tuple[int, int]) -> None:
    (first, rows), (second, other_rows) = np.split(np.array(arrays(one, other)).ravel(), 2)
    result = difference_limits(
        np.array([first]), wilson(np.array([first]), np.array([rows]), Z),
        np.array([second]), wilson(np.array([second]), np.array([other_rows]), Z),
    )  # fmt: skip
    same(result, confint_proportions_2indep(*one, *other, method="newcomb", compare="diff"))


@LAW
@given(samples(), samples())
def test_katz_interval_equals_statsmodels(one: tuple[int, int], other: tuple[int, int]) -> None:
    if one[0] and other[0]:
        expected = confint_proportions_2indep(*one, *other, method="log", compare="ratio")
        first, rows, second, others = arrays(one, other)
        same(katz(first, rows, second, others, Z), expected, tolerance=1e-7)


def likeliest(one: tuple[int, int], other: tuple[int, int], linked: Callable[[float], float], ends: Any) -> float:
    """The second share of the likeliest pair in which the first is a function of it, by search."""

    def loss(share: float) -> float:
        total = 0.0
        for (hits, rows), item in ((one, linked(share)), (other, share)):
            total -= hits * math.log(max(item, 1e-300)) if hits else 0.0
            total -= (rows - hits) * math.log(max(1 - item, 1e-300)) if hits < rows else 0.0
        return total

    grid = np.linspace(ends[0], ends[1], 2001)
    index = int(np.argmin([loss(item) for item in grid]))
    around = (grid[max(index - 1, 0)], grid[min(index + 1, 2000)])
    result: Any = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-13})
    return float(result.x)


PAIRS = [((3, 20), (9, 25)), ((0, 14), (32, 42)), ((1, 6), (5, 6)), ((40, 100), (41, 90)), ((6, 6), (2, 9))]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_score_interval_ends_invert_the_score_test(one: tuple[int, int], other: tuple[int, int]) -> None:
    total = one[1] + other[1]
    first, second = one[0] / one[1], other[0] / other[1]
    share_one, rows_one, share_other, rows_other = arrays(one, other)
    for (end,) in score_difference(share_one, rows_one, share_other, rows_other, Z):
        share = likeliest(one, other, lambda share, end=end: share + end, (max(0, -end), min(1, 1 - end)))
        variance = (share + end) * (1 - share - end) / one[1] + share * (1 - share) / other[1]
        reached = (first - second - end) ** 2 / (variance * total / (total - 1))
        assert reached == pytest.approx(Z**2, rel=1e-4) or end in (-1, 1)
    for (end,) in score_ratio(share_one, rows_one, share_other, rows_other, Z):
        if end in (0, math.inf):
            continue
        share = likeliest(one, other, lambda share, end=end: share * end, (0, min(1, 1 / end)))
        variance = share * end * (1 - share * end) / one[1] + end**2 * share * (1 - share) / other[1]
        reached = (first - end * second) ** 2 / (variance * total / (total - 1))
        assert reached == pytest.approx(Z**2, rel=1e-4)


def test_shares_of_0_and_1_have_intervals() -> None:
    for hits, rows in ((0, 1), (1, 1), (0, 50), (50, 50)):
        low, high = wilson(np.array([hits / rows]), np.array([rows]), Z)
        assert 0 <= low[0] < high[0] <= 1
        assert (low[0] == 0) == (hits == 0)
        assert (high[0] == 1) == (hits == rows)
    none, half, ten = (np.array([item]) for item in (0.0, 0.5, 10.0))
    assert score_ratio(none, ten, half, ten, Z)[0][0] == 0
    assert score_ratio(half, ten, none, ten, Z)[1][0] == math.inf


@LAW
@given(samples(), samples())
def test_chi_squared_and_likelihood_ratio_equal_scipy(one: tuple[int, int], other: tuple[int, int]) -> None:
    table = [[one[0], one[1] - one[0]], [other[0], other[1] - other[0]]]
    for test, power in ((chi_squared, "pearson"), (likelihood_ratio, "log-likelihood")):
        if one[0] + other[0] in {0, one[1] + other[1]}:
            # shares that can only be the same
            assert test(*one, *other) == 0
            continue
        expected: Any = chi2_contingency(table, correction=False, lambda_=power)
        assert test(*one, *other) == pytest.approx(float(expected.statistic), rel=1e-6, abs=1e-12)


@LAW
@given(samples(), samples())
def test_fisher_equals_scipy(one: tuple[int, int], other: tuple[int, int]) -> None:
    table = [[one[0], one[1] - one[0]], [other[0], other[1] - other[0]]]
    expected: Any = fisher_exact(table)
    assert fisher(*one, *other) == pytest.approx(float(expected[1]), rel=1e-6)


@pytest.mark.parametrize(("way", "theirs"), [("holm", "holm"), ("bh", "fdr_bh"), ("by", "fdr_by")])
def test_p_value_adjustments_equal_statsmodels(way: str, theirs: str) -> None:
    for seed, size in itertools.product(range(5), (1, 2, 9)):
        p_values = np.random.default_rng(seed).random(size) ** 3
        expected: Any = multipletests(p_values, method=theirs)
        assert adjusted(p_values, way) == pytest.approx(expected[1])
    assert adjusted(np.array([0.5, 0.1]), "none").tolist() == [0.5, 0.1]


@pytest.mark.parametrize("freedom", [1, 2, 5, 9, 29, 35, 200])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_student_quantiles_equal_scipy(level: float, freedom: int) -> None:
    assert student(level, freedom) == pytest.approx(float(t.ppf((1 + level) / 2, freedom)), rel=1e-8)


@pytest.mark.parametrize("freedom", STUDENT)
def test_student_limits_equal_quantiles_of_many_digits(freedom: float) -> None:
    half, nearly_all, all_but_few = STUDENT[freedom]
    z = np.array([NormalDist().inv_cdf(0.75), Z, -NormalDist().inv_cdf(5e-16)])
    expected = [half, nearly_all, all_but_few]
    assert student_limits(z, np.full(3, freedom)).tolist() == pytest.approx(expected, rel=1e-12)
    for number, limit in zip(z.tolist(), expected, strict=True):
        assert student_limits(number, np.array([freedom])).tolist() == pytest.approx([limit], rel=1e-12)


def test_student_limits_need_a_degree_of_freedom_and_are_normal_with_very_many() -> None:
    assert np.isnan(student_limits(Z, np.array([math.nan, -1, 0, 0.9]))).all()
    # one degree of freedom, but for rounding
    assert student_limits(Z, np.array([1 - 1e-14])).tolist() == pytest.approx([math.tan(0.475 * math.pi)])
    assert student_limits(Z, np.array([1e15, math.inf])).tolist() == pytest.approx([Z, Z], rel=1e-14)
    # squares of what next to nothing is beyond are numbers
    assert math.isfinite(float(student_limits(40.0, np.array([1.0]))[0]) ** 2)


def test_clopper_pearson_holds_in_very_small_tails() -> None:
    _, upper = clopper_pearson(np.array([0.0, 0.9]), np.array([10.0, 10.0]), 1e-18)
    # without hits, nothing but misses has that probability; with one miss, at least one has
    assert 1 - upper[0] == pytest.approx(1e-18 ** (1 / 10), rel=1e-12)
    assert 1 - upper[1] == pytest.approx(1e-19, abs=1e-16)
    lower, _ = clopper_pearson(np.array([0.1]), np.array([10.0]), 1e-18)
    assert lower[0] == pytest.approx(1e-19, rel=1e-12)
