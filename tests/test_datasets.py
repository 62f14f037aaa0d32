"""The example data are reproducible and plausible."""

from __future__ import annotations

import pytest

import tidyfair as tf
from tidyfair import datasets


def test_lending_is_reproducible_and_plausible() -> None:
    data = datasets.lending(20_000, seed=3)
    assert data.equals(datasets.lending(20_000, seed=3))
    assert not data.equals(datasets.lending(20_000, seed=4))
    assert datasets.lending(0).schema == data.schema
    assert data["score"].is_between(0, 1).all()
    assert data["weight"].mean() == pytest.approx(1, abs=0.1)
    assert (data["race"] == "Native").mean() == pytest.approx(0.015, abs=0.005)
    # the score is biased against one group beyond what the truth explains
    gap = tf.equal_opportunity("race")(data, "repaid", "approved", pos_label="yes", explain=True)
    assert gap.select(".group_min").item() == "Black"
    with pytest.raises(tf.errors.ArgumentError, match="`rows`"):
        datasets.lending(-1)
