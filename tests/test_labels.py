from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import as_polars

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


def sens(
    truth: Any, estimate: Any, engine: Callable[[pl.DataFrame], Any] = pl.DataFrame, **options: Any
) -> tuple[str, float | None]:
    data = engine(pl.DataFrame({"t": truth, "e": estimate}))
    options = {"on_undefined": "ignore", **options}
    return as_polars(tf.sens(data, "t", "e", **options)).select(".estimator", ".estimate").row(0)


LEVELS = pl.Enum(["no", "yes"])


@pytest.mark.parametrize(
    ("truth", "estimate"),
    [
        ([True, True, False], [True, False, False]),
        ([1, 1, 0], [1, 0, 0]),
        ([1.0, 1.0, 0.0], [1, 0, 0]),
        ([True, True, False], [1, 0, 0]),
        ([1, 1, -1], [1, -1, -1]),
        ([1, 1, 1], [1, 0, 1]),
        (pl.Series([1, 1, 0], dtype=pl.UInt8), pl.Series([1, 0, 0], dtype=pl.Int64)),
    ],
    ids=["Boolean", "zero-one", "float-int", "Boolean-int", "minus-plus", "lone-truth", "unsigned"],
)
def test_the_event_is_plain(truth: Any, estimate: Any, engine: Callable[[pl.DataFrame], Any]) -> None:
    expected = 2 / 3 if list(truth) == [1, 1, 1] else 0.5
    assert sens(truth, estimate, engine) == ("binary", pytest.approx(expected))


def test_a_lone_label_is_one_of_a_pair() -> None:
    assert sens([0, 0], [0, 0]) == ("binary", None)
    assert sens([1, 1], [1, 1]) == ("binary", 1.0)
    assert sens([0, 0], [1, 1]) == ("binary", None)
    assert sens([True], [True]) == ("binary", 1.0)
    # of words only with the other one named
    assert sens(["no", "no"], ["no", "no"], pos_label="yes") == ("binary", None)
    with pytest.raises(tf.LabelError, match="not among the labels"):
        sens(["no", "no"], ["no", "no"], pos_label=1)


def test_level_order_never_decides() -> None:
    truth, estimate = ["yes", "yes", "no"], ["yes", "no", "no"]
    for levels in (["no", "yes"], ["yes", "no"]):
        dtype = pl.Enum(levels)
        columns = pl.Series(truth, dtype=dtype), pl.Series(estimate, dtype=dtype)
        assert sens(*columns, pos_label="yes")[1] == 0.5
        with pytest.raises(tf.LabelError, match="Which label"):
            sens(*columns)


def test_enum_against_text() -> None:
    truth = pl.Series(["yes", "yes", "no"], dtype=LEVELS)
    assert sens(truth, ["yes", "no", "no"], pos_label="yes")[1] == 0.5
    with pytest.raises(tf.LabelError, match="'Yes' is none of 'no', 'yes'"):
        sens(truth, ["Yes", "no", "no"], pos_label="yes")


def test_more_than_two_labels() -> None:
    truth, estimate = list("aabbc"), list("abbbc")
    assert sens(truth, estimate) == ("macro", pytest.approx((1 / 2 + 1 + 1) / 3))
    assert sens(truth, estimate, pos_label="a") == ("binary", 0.5)
    assert sens(truth, estimate, estimator="macro_weighted")[1] == pytest.approx((2 * 0.5 + 2 + 1) / 5)
    assert sens(truth, estimate, estimator="micro") == ("micro", 0.8)
    # averages over two labels need no event
    assert sens(["x", "y"], ["x", "x"], estimator="macro") == ("macro", 0.5)


def test_listed_labels_count_also_where_they_do_not_occur() -> None:
    truth, estimate = ["a", "b"], ["b", "b"]
    three = pl.DataFrame({"t": truth, "e": estimate})
    assert tf.detection_prevalence(three, "t", "e", labels=["a", "b", "c"])[".estimate"][0] == pytest.approx(1 / 3)
    # spec of c is 1: nobody is c, and nobody was taken for one
    assert tf.spec(three, "t", "e", labels=["a", "b", "c"])[".estimate"][0] == pytest.approx((1 + 0 + 1) / 3)
    # labels that say they belong together need not overlap
    assert sens(["a"], ["b"], labels=["a", "b"], pos_label="a") == ("binary", 0.0)


def test_label_order_matters_to_weighted_kappa_only() -> None:
    data = pl.DataFrame({"t": ["low", "mid", "high", "high"], "e": ["mid", "mid", "high", "low"]})
    linear = tf.metric_tweak(tf.kap, "linear", weighting="linear")
    in_order = linear(data, "t", "e", labels=["low", "mid", "high"])[".estimate"][0]
    alphabetical = linear(data, "t", "e", labels=["high", "low", "mid"])[".estimate"][0]
    # steps of disagreement 1 + 2; margins 1 1 2 and 1 2 1 give 3.5 by chance
    assert in_order == pytest.approx(1 - 3 / 3.5)
    assert alphabetical != pytest.approx(in_order)
    # words have no order of their own
    with pytest.raises(tf.LabelError, match="list them in order"):
        linear(data, "t", "e")
    # without weighting none is needed
    assert tf.kap(data, "t", "e")[".estimate"][0] is not None


def test_one_vs_rest_on_two_labels_is_binary() -> None:
    data = pl.DataFrame({"t": [1, 1, 0, 0], "e": [1, 0, 0, 1], "g": list("abab")})
    several = tf.metric_set(tf.equal_opportunity("g"), tf.accuracy_difference("g"))
    assert several(data, "t", "e", estimator="one_vs_rest").equals(several(data, "t", "e"))
