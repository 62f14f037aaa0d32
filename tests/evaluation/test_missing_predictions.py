"""Rows without a prediction are named once in each call, with their share in each group."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import tidyfair as tf

if TYPE_CHECKING:
    from collections.abc import Callable


WITHOUT = pl.DataFrame({
    "race": ["Black"] * 10 + ["White"] * 40,
    "sex": ["f", "m"] * 25,
    "y": [1, 0] * 25,
    "p": [None, None, *[1, 0, 0, 0] * 11, 1, 1, 0, None],
    "s": [*[0.2, 0.4, 0.9, 0.6, 0.3] * 9, math.nan, None, 0.1, 0.4, 0.7],
})  # fmt: skip


def of_missing(call: Callable[[], object]) -> list[str]:
    """What a call says about missing predictions."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught if warning.category is tf.errors.MissingPredictionsWarning]


def test_a_call_says_once_how_many_predictions_are_missing_by_group(engine: Callable[[pl.DataFrame], Any]) -> None:
    data = engine(WITHOUT)
    metrics = tf.metric_set(tf.accuracy, tf.demographic_parity("race"), tf.equal_opportunity("race"))
    (notice,) = of_missing(lambda: metrics(data, "y", "p"))
    assert notice.startswith(
        'predictions (\'p\') are missing in 3 of 50 rows: 20.0% of race = "Black", 2.5% of race = "White". Rows '
        "without a prediction are left out"
    )
    assert notice.endswith('(on_undefined="ignore" silences this.)')
    # of scores, and of decisions made from them
    cuts: list[float | list[float]] = [0.5, [0.3, 0.5]]
    for cut in cuts:
        (notice,) = of_missing(lambda cut=cut: metrics(data, "y", probs="s", threshold=cut))
        assert "predictions ('s') are missing in 2 of 50 rows: 5.0% of race = \"White\", 0.0%" in notice
    (notice,) = of_missing(lambda: tf.roc_auc.difference("race")(data, "y", probs="s", on_undefined="warn"))
    assert "predictions ('s') are missing in 2 of 50 rows" in notice


def test_the_notice_is_about_predictions_that_are_read_and_compared() -> None:
    assert of_missing(lambda: tf.accuracy(WITHOUT, "y", "p", group_by="race")) == []
    assert of_missing(lambda: tf.base_rate.difference("race")(WITHOUT, "y", "p")) == []
    assert of_missing(lambda: tf.demographic_parity("race")(WITHOUT.filter(pl.col("p").is_not_null()), "y", "p")) == []
    parity = tf.demographic_parity("race")
    assert of_missing(lambda: parity(WITHOUT, "y", "p", on_undefined="ignore")) == []
    # the value is missing then, and says so
    assert of_missing(lambda: parity(WITHOUT, "y", "p", na_rm=False)) == []
    # shares that are the same need no list
    even = WITHOUT.with_columns(p=pl.when(pl.int_range(50) % 5 == 0).then(None).otherwise("y"))
    (notice,) = of_missing(lambda: parity(even, "y", "p"))
    assert notice.startswith("predictions ('p') are missing in 10 of 50 rows. Rows without")


def test_of_many_groups_the_notice_names_the_extremes_and_each_feature() -> None:
    several = WITHOUT.with_columns(site=pl.int_range(50) // 8)
    metrics = tf.metric_set(tf.demographic_parity("site"), tf.demographic_parity("sex", "race"))
    (notice,) = of_missing(lambda: metrics(several, estimate="p"))
    assert ': 50.0% of site = "6", 25.0% of site = "0", 0.0% of site = "1", …, 0.0% of site = "5"; ' in notice
    assert '20.0% of sex = "f", race = "Black", 20.0% of sex = "m", race = "Black", ' in notice
    sides = tf.demographic_parity(tf.privileged(race="White"))
    (notice,) = of_missing(lambda: sides(WITHOUT, estimate="p"))
    assert "20.0% of unprivileged (race=White), 2.5% of privileged (race=White)" in notice


VERBS: dict[str, Callable[[], object]] = {
    "by_group": lambda: tf.demographic_parity("race").by_group(WITHOUT, "y", "p"),
    "check": lambda: tf.check(tf.demographic_parity("race"), below=0.5)(WITHOUT, "y", "p"),
    "compare_groups": lambda: tf.compare_groups(tf.selection_rate, by="race")(WITHOUT, "y", "p"),
    "gate": lambda: tf.check(tf.compare_groups(tf.sens, by="race"), below=0.5)(WITHOUT, "y", "p"),
    "pairwise": lambda: tf.inference.pairwise(tf.demographic_parity("race"))(WITHOUT, "y", "p"),
    "test": lambda: tf.inference.disparity_test(tf.demographic_parity("race"))(WITHOUT, "y", "p"),
    "models": lambda: tf.compare_models(tf.demographic_parity("race"))(WITHOUT, "y", one="p", other="y"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_missing_predictions_once(verb: str) -> None:
    (notice,) = of_missing(VERBS[verb])
    assert "predictions ('p') are missing in 3 of 50 rows: 20.0% of race = \"Black\", 2.5% of" in notice


def test_abstentions_can_be_compared_as_the_notice_says() -> None:
    abstains = pl.col("p").is_null().alias("abstains")
    shares = tf.demographic_parity("race").by_group(WITHOUT, estimate=abstains)
    assert shares.select("race", ".estimate").rows() == [("Black", 0.2), ("White", 0.025)]
