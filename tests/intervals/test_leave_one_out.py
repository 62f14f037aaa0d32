"""Limits of results from replicates that lack one unit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import t as student_t

from tidyfair.intervals.resampling import Units


def test_limits_of_mean_are_those_of_student() -> None:
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
    half = student_t.ppf(0.95, 11) * expected
    assert (lower, upper) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-9)
    # a result that no unit changes has not been seen to vary
    same = np.ones((13, 1, 1))
    assert np.isnan(units.limits(same, np.ones((1, 1)), 0.9)).all()


def test_strata_add_up_and_outer_groups_stand_alone() -> None:
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
